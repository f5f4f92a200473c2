//! Study files: the documented example, and the messages for errors.

use std::path::Path;

use weir_lab::{
    host_defaults::{DriverFound, HostDefaults},
    study_file::{Choices, chosen, parse},
};
use weir_record::{
    finding::Finding,
    goal::{ComparisonSpec, Goal, Side},
    metric::Metric,
    spec::{CellRole, CellSpec, LoadMode, StudySpec, Subject},
};
use weir_report::Language;

/// The example of the documentation.
pub const DOCUMENTED: &str = include_str!("../../../../docs/studies/example.toml");

/// The example with claims about closed loops: one cell for each combination.
pub const EXAMPLE: &str = include_str!("saturation.toml");

fn host_defaults() -> HostDefaults {
    HostDefaults { seed: 7, server_cpus: vec![0], load_cpus: vec![1], ..HostDefaults::default() }
}

pub fn read(text: &str) -> Result<StudySpec, String> {
    let study = parse(Path::new("a.toml"), text, &host_defaults());
    study.map(|study| study.spec).map_err(|error| error.to_string())
}

/// The example with one line replaced.
pub fn mistake(line: &str, instead: &str) -> String {
    assert!(EXAMPLE.contains(line), "the example has no line {line:?}");
    read(&EXAMPLE.replacen(line, instead, 1)).expect_err("it is a mistake")
}

#[test]
fn the_documented_example_has_fifteen_lines_and_is_a_study() {
    assert_eq!(DOCUMENTED.lines().filter(|line| !line.trim().is_empty()).count(), 15);
    let spec = read(DOCUMENTED).expect("the example is right");
    assert_eq!((spec.name.as_str(), spec.seed, spec.server_cpus.as_slice()), ("buffers", 7, [0].as_slice()));
    let Subject::Weir { driver, options, .. } = &spec.arms[1].subject else { panic!("{:?}", spec.arms[1]) };
    assert_eq!((driver.as_str(), options["buffer-bytes"].as_str()), ("uring", "16384"));
}

#[test]
fn a_study_that_asks_for_saturation_claims_about_closed_loops() {
    let spec = read(EXAMPLE).expect("the example is right");
    assert!(spec.saturation);
    let cells: Vec<_> = spec.cells.iter().map(|cell| (cell.id.as_str(), cell.role, cell.blocks)).collect();
    assert_eq!(
        cells,
        [
            ("c100-d1-m64-closed", CellRole::Exploratory, 8),
            ("c100-d16-m64-closed", CellRole::Primary, 30),
            ("c100-d16-m64-open60pct", CellRole::Exploratory, 20),
        ]
    );
    assert!(spec.cells.iter().all(|cell| cell.alternation.is_some()));
    assert_eq!(spec.cells[2].load, LoadMode::OpenShare { share: 0.6, poisson: true });
}

#[test]
fn mistakes_are_named_with_file_line_and_key() {
    insta::assert_snapshot!(mistake("connections = [100]", "conections = [100]"), @"a.toml:8: conections: there is no such key; did you mean connections?");
    insta::assert_snapshot!(mistake("connections = [100]", "connections = [100, 0]"), @"a.toml:8: connections: 0 is out of range; it must be from 1 to 60000");
    insta::assert_snapshot!(mistake("connections = [100]", "connections = []"), @"a.toml:8: connections: the list is empty; it must hold at least one level");
    insta::assert_snapshot!(mistake("depth = 16", "depth = 8"), @"a.toml:4: primary.depth: 8 is not a level of the factor; there are 1, 16");
    insta::assert_snapshot!(mistake("primary = { depth = 16 }", ""), @"a.toml:1: primary.depth: one level must be picked; there are 1, 16");
    insta::assert_snapshot!(mistake("driver = \"epoll\"", "driver = \"auto\""), @"a.toml:13: arm.driver: an arm must name its driver; `auto` would leave open what was measured");
    insta::assert_snapshot!(mistake("driver = \"epoll\"", "driver = \"kqueue\""), @r#"a.toml:13: arm.driver: there is no driver "kqueue"; there are uring, epoll, poll, select, blocking"#);
    insta::assert_snapshot!(mistake("driver = \"epoll\"", "command = [\"nginx\"]"), @"a.toml:13: arm.command: no word of the command or variable of its environment holds {port} or {address}, so the server cannot be told where to listen");
    insta::assert_snapshot!(mistake("driver = \"epoll\"", "driver = \"epoll\"\ncommand = [\"nginx\", \"{port}\"]"), @"a.toml:11: arm: give one of `driver`, `command` and `running`");
    insta::assert_snapshot!(mistake("name = \"epoll\"", "name = \"uring-16k\""), @r#"a.toml:16: arm.name: two arms are named "uring-16k""#);
    insta::assert_snapshot!(mistake("name = \"buffers\"", "name = \"a/b\""), @r#"a.toml:1: name: "a/b" is not a name; it must be 1 to 64 letters, digits, `-`, `_`, `.` or `+`, and not begin with `.` or `-`"#);
    insta::assert_snapshot!(mistake("window = \"1s\"", "window = \"1 second\""), @r#"a.toml:3: window: "1 second" is not a length of time; write it like "400ms", "1s", "3.5min" or "1h""#);
    insta::assert_snapshot!(mistake("window = \"1s\"", "window = \"1h\""), @"a.toml:3: window: it must be from 100ms to 10min");
    insta::assert_snapshot!(mistake("share = 0.6", "share = 0.6, rate = 100"), @"a.toml:5: latency.rate: give either `share` or `rate`");
    insta::assert_snapshot!(mistake("depth = [1, 16]", "depth = [1, 16]\nmessage_bytes = [16_000_000]"), @"a.toml:7: factors: c100-d1-m16000000-closed has 1525 MiB in flight (connections x depth x message_bytes); at most 256 MiB are allowed");
    insta::assert_snapshot!(mistake("window = \"1s\"", "window ="), @"a.toml:3: string values must be quoted, expected literal string");
}

/// The example with this many numbers of connections and depths.
fn with_levels(connections: usize, depths: usize) -> Result<StudySpec, String> {
    let list = |count: usize| (1..=count).map(|level| level.to_string()).collect::<Vec<_>>().join(", ");
    let text = EXAMPLE
        .replacen("connections = [100]", &format!("connections = [{}]", list(connections)), 1)
        .replacen("depth = [1, 16]", &format!("depth = [{}]", list(depths)), 1)
        .replacen("primary = { depth = 16 }", "primary = { connections = 1, depth = 1 }", 1);
    read(&text)
}

#[test]
fn a_study_of_too_many_cells_is_told_how_to_have_fewer() {
    // The error comes before any of the ten thousand cells is made.
    insta::assert_snapshot!(with_levels(100, 100).expect_err("they are too many"), @"a.toml:7: factors: the factors make more than 200 cells; cut a factor with --levels FACTOR=LEVEL,LEVEL, or leave levels out of the file");
    insta::assert_snapshot!(with_levels(67, 3).expect_err("they are too many"), @"a.toml:7: factors: the factors make more than 200 cells; cut a factor with --levels FACTOR=LEVEL,LEVEL, or leave levels out of the file");
    // The maximum number of cells, and the cell at an equal rate in addition.
    let error = with_levels(100, 2).expect_err("they are too many");
    assert!(error.contains("201 cells") && error.contains("--levels FACTOR=LEVEL,LEVEL"), "{error}");
    assert_eq!(with_levels(199, 1).expect("they are few enough").cells.len(), 200);
}

/// The example as a study of HTTP.
fn http(factors: &str) -> String {
    EXAMPLE
        .replacen("window = \"1s\"", "protocol = \"http\"\nwindow = \"1s\"", 1)
        .replacen("primary = { depth = 16 }", "primary = { content = \"html\", close = false }", 1)
        .replacen("depth = [1, 16]", factors, 1)
}

#[test]
fn an_http_study_has_content_and_close_among_its_factors() {
    let text = http("content = [\"html\", \"image\", 1024]\nclose = [false, true]");
    let arguments = "driver = \"epoll\"\narguments = [\"--backlog\", 10, \"{scratch}/log\"]";
    let spec = read(&text.replacen("driver = \"epoll\"", arguments, 1)).expect("it is right");
    assert!(spec.is_http());
    let cells: Vec<_> =
        spec.cells.iter().map(|cell| (cell.id.as_str(), cell.role, cell.message_bytes)).collect();
    let page = spec.cells[0].message_bytes;
    assert!((400..1_000).contains(&page), "{page}");
    assert_eq!(
        cells,
        [
            ("c100-d1-html-closed", CellRole::Primary, page),
            ("c100-d1-html-reconnect-closed", CellRole::Exploratory, page),
            ("c100-d1-image-closed", CellRole::Exploratory, 151_552),
            ("c100-d1-image-reconnect-closed", CellRole::Exploratory, 151_552),
            ("c100-d1-b1024-closed", CellRole::Exploratory, 1_024),
            ("c100-d1-b1024-reconnect-closed", CellRole::Exploratory, 1_024),
            ("c100-d1-html-open60pct", CellRole::Exploratory, page),
        ]
    );
    let asked = spec.cells[5].http.as_ref().expect("it is HTTP");
    assert_eq!((asked.content.as_str(), asked.close), ("1024", true));
    let Subject::Weir { arguments, .. } = &spec.arms[0].subject else { panic!("{:?}", spec.arms[0]) };
    assert_eq!(arguments, &["--backlog", "10", "{scratch}/log"]);
    let plain = read(&http("").replacen("primary = { content = \"html\", close = false }", "", 1));
    assert_eq!(plain.expect("html is the default").cells[0].id, "c100-d1-html-closed");
}

#[test]
fn connections_are_taken_in_turn_by_workers_and_the_kernels_way_is_a_level() {
    let factors = "depth = [16]\nworkers = [1, 2]\naccept = [\"acceptor\", \"reuseport\"]";
    let text = EXAMPLE.replacen("depth = [1, 16]", factors, 1).replacen(
        "primary = { depth = 16 }",
        "primary = { workers = 1, accept = \"acceptor\" }",
        1,
    );
    let spec = read(&text).expect("it is right");
    let closed = spec.cells.iter().filter(|cell| cell.load == LoadMode::Closed);
    let cells: Vec<_> = closed.map(|cell| (cell.id.as_str(), cell.accept())).collect();
    let expected = [
        ("c100-d16-m64-closed", ""),
        ("c100-d16-m64-w2-closed", "acceptor"),
        ("c100-d16-m64-w2-reuseport-closed", "reuseport"),
    ];
    assert_eq!(cells, expected, "with one worker there is nothing to spread");
    insta::assert_snapshot!(mistake("depth = [1, 16]", "depth = [1, 16]\naccept = [\"hash\"]"), @r#"a.toml:10: accept: there is no "hash"; there are acceptor, reuseport, exclusive"#);
}

#[test]
fn mistakes_of_http_are_named_too() {
    let wrong = |factors: &str| read(&http(factors)).expect_err("it is a mistake");
    let content = "content = [\"html\"]";
    insta::assert_snapshot!(wrong("content = [\"png\"]"), @r#"a.toml:10: content: "png" is none: a content is `html`, `image` or a number of bytes"#);
    insta::assert_snapshot!(wrong("content = [64, \"64\"]"), @"a.toml:10: content: 64 occurs twice");
    insta::assert_snapshot!(wrong("content = [\"image\"]"), @"a.toml:5: primary.content: html is not a level of the factor; there are image");
    insta::assert_snapshot!(wrong("message_bytes = [64]"), @r#"a.toml:10: message_bytes: it is a factor of protocol = "echo", and this study is of http"#);
    insta::assert_snapshot!(wrong(&format!("{content}\nclose = [false, true]\ndepth = [4]")), @"a.toml:12: depth: c100-d4-html-reconnect-closed closes after each request, so that only one can be in flight");
    insta::assert_snapshot!(mistake("depth = [1, 16]", "depth = [1, 16]\ncontent = [\"html\"]"), @r#"a.toml:10: content: it is a factor of protocol = "http", and this study is of echo"#);
    insta::assert_snapshot!(mistake("depth = 16 }", "depth = 16, content = \"html\" }"), @r#"a.toml:4: primary.content: it is a factor of protocol = "http", and this study is of echo"#);
    insta::assert_snapshot!(mistake("depth = [1, 16]", "depth = [1, 16]\nclose = [true]"), @"a.toml:9: depth: c100-d16-m64-reconnect-closed closes after each message, so that only one can be in flight");
    insta::assert_snapshot!(mistake("window = \"1s\"", "protocol = \"gopher\""), @r#"a.toml:3: protocol: there is no protocol "gopher"; there are echo, http, storage, orders"#);
    insta::assert_snapshot!(mistake("driver = \"epoll\"", "driver = \"epoll\"\narguments = [\"--listen=1\"]"), @r#"a.toml:11: arm.arguments: "--listen=1" is what the laboratory says itself, from the arm's and the cell's own keys"#);
    insta::assert_snapshot!(mistake("driver = \"epoll\"", "command = [\"x\", \"{port}\"]\narguments = [\"y\"]"), @"a.toml:11: arm: `options` and `arguments` belong to a driver; write a command's into the command");
}

#[test]
fn select_is_refused_more_connections_than_it_can_name() {
    let select = |connections: &str| {
        let text = EXAMPLE.replacen("driver = \"epoll\"", "driver = \"select\"", 1);
        read(&text.replacen("connections = [100]", connections, 1))
    };
    insta::assert_snapshot!(select("connections = [1011]").expect_err("it cannot"), @"a.toml:13: arm.driver: select watches descriptors below 1024, which leaves 1010 for connections, and c1011-d1-m64-closed has 1011 (idle ones included); use poll or epoll, or cells with fewer");
    insta::assert_snapshot!(select("connections = [100]\nidle_connections = [911]").expect_err("it cannot"), @"a.toml:14: arm.driver: select watches descriptors below 1024, which leaves 1010 for connections, and c100-d1-m64-i911-closed has 1011 (idle ones included); use poll or epoll, or cells with fewer");
    select("connections = [100]\nidle_connections = [910]").expect("it just fits");
    // Each worker needs further descriptors.
    insta::assert_snapshot!(select("connections = [1009]\nworkers = [2]").expect_err("it cannot"), @"a.toml:14: arm.driver: select watches descriptors below 1024, which leaves 1008 for connections, and c1009-d1-m64-w2-closed has 1009 (idle ones included); use poll or epoll, or cells with fewer");
    let study = weir_judge::sample::study(&["epoll", "select"], 6, 1);
    assert_eq!(weir_lab::validate::study(&study), Ok(()));
    let mut large = study;
    large.cells[0].connections = 1_011;
    assert!(weir_lab::validate::study(&large).is_err());
}

#[test]
fn a_baseline_alone_is_no_study() {
    let one = EXAMPLE.rfind("[[arm]]").expect("the example has arms");
    insta::assert_snapshot!(read(&EXAMPLE[..one]).expect_err("there is nothing to compare"), @"a.toml:11: arm: a study needs a baseline and from 1 to 23 other arms; this one has 1 in all");
}

#[test]
fn a_command_arm_keeps_its_words() {
    let text = EXAMPLE.replacen(
        "driver = \"epoll\"",
        "command = [\"./server\", \"--port\", \"{port}\", \"{cpus}\"]",
        1,
    );
    let spec = read(&text).expect("it is right");
    let Subject::Command { argv } = &spec.arms[0].subject else { panic!("{:?}", spec.arms[0]) };
    assert_eq!(argv, &["./server", "--port", "{port}", "{cpus}"]);
}

#[test]
fn every_claim_gets_its_equal_rate_cell() {
    let text = EXAMPLE.replacen("[factors]", "[[confirmatory]]\ndepth = 1\n\n[factors]", 1);
    let spec = read(&text).expect("it is right");
    let cells: Vec<_> = spec.cells.iter().map(|cell| (cell.id.as_str(), cell.role)).collect();
    assert_eq!(
        cells,
        [
            ("c100-d1-m64-closed", CellRole::Confirmatory),
            ("c100-d16-m64-closed", CellRole::Primary),
            ("c100-d1-m64-open60pct", CellRole::Exploratory),
            ("c100-d16-m64-open60pct", CellRole::Exploratory),
        ]
    );
}

#[test]
fn every_study_file_of_the_project_is_right() {
    let studies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/studies");
    let folders = [studies.join("recordings"), studies];
    let mut files = 0;
    for entry in folders.iter().flat_map(|folder| std::fs::read_dir(folder).expect("the folder is there")) {
        let path = entry.expect("it can be listed").path();
        // fio's job files are there too; the tests of storage read them.
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("it can be read");
        let spec = parse(&path, &text, &host_defaults()).unwrap_or_else(|error| panic!("{error}")).spec;
        assert_eq!(
            !spec.same_arms().is_empty(),
            spec.same_arms,
            "{}: arms are equal on purpose",
            path.display()
        );
        files += 1;
    }
    assert!(files >= 1);
}

#[test]
fn a_study_says_that_it_compares_equal_arms_on_purpose() {
    let twice = format!("{EXAMPLE}\n[[arm]]\nname = \"again\"\ndriver = \"epoll\"");
    let names = |spec: &StudySpec| -> Vec<(String, String)> {
        spec.same_arms().iter().map(|(one, other)| (one.name.clone(), other.name.clone())).collect()
    };
    let spec = read(&twice).expect("it can be run");
    assert_eq!((spec.same_arms, names(&spec)), (false, vec![("epoll".to_owned(), "again".to_owned())]));
    assert!(read(&format!("same_arms = true\n{twice}")).expect("it is meant").same_arms);
    assert!(names(&read(EXAMPLE).expect("it is right")).is_empty());
}

#[test]
fn every_study_of_the_documentation_is_right_and_each_protocol_has_one() {
    let text = include_str!("../../../../docs/study-file.md");
    let mut protocols = Vec::new();
    for block in text.split("```toml\n").skip(1) {
        let (study, _) = block.split_once("```").expect("a block ends");
        let spec = read(study).unwrap_or_else(|error| panic!("{error} in\n{study}"));
        protocols.push((spec.is_http(), spec.is_storage(), spec.is_orders()));
    }
    let kinds = [(false, false, false), (true, false, false), (false, true, false), (false, false, true)];
    assert!(kinds.iter().all(|kind| protocols.contains(kind)), "{protocols:?}");
}

#[test]
fn evidence_is_for_claims_in_a_closed_loop_unless_a_cell_asks_for_it() {
    let with = |text: &str| read(&format!("evidence_rounds = 4\n{EXAMPLE}\n{text}"));
    let of_cells = |spec: &StudySpec| -> Vec<(String, Option<(u32, u64)>)> {
        let plan = |cell: &CellSpec| cell.alternation.and_then(|turns| turns.evidence);
        let cells = spec.cells.iter().map(|cell| (cell.id.clone(), plan(cell)));
        cells.map(|(id, plan)| (id, plan.map(|plan| (plan.rounds, plan.slice_ns / 1_000_000)))).collect()
    };
    let asks = "[[cell]]\nconnections = 7\nevidence_rounds = 2\nevidence_slice = \"1s\"";
    let found = of_cells(&with(asks).expect("it is right"));
    let plan = |id: &str| found.iter().find(|(own, _)| own == id).expect("the cell is there").1;
    assert_eq!(plan("c100-d16-m64-closed"), Some((4, 500)), "the primary cell");
    assert_eq!(plan("c100-d1-m64-closed"), None, "nothing is claimed of it");
    assert_eq!(plan("c7-d1-m64-closed"), Some((2, 1_000)));
    let wrong = |text: &str| with(text).expect_err("it is wrong");
    insta::assert_snapshot!(wrong("[[cell]]\nconnections = 7\nevidence_slice = \"0.09s\""), @"a.toml:23: evidence_slice: it must be from 0.1s to 60s");
    insta::assert_snapshot!(wrong("[[cell]]\nconnections = 7\nevidence_rounds = 2000"), @"a.toml:23: cell.evidence_rounds: 2000 is out of range; it must be from 0 to 1000");
    insta::assert_snapshot!(wrong("[[cell]]\nconnections = 7\nalternate = false\nevidence_rounds = 2"), @"a.toml:24: alternate: rounds, slices, permutations and evidence have no meaning with alternate = false; leave them out");
}

#[test]
fn all_cells_can_be_confirmatory_and_too_large_ones_left_out() {
    let matrix = "[factors]\nmessage_bytes = [64, 16_000_000]\n";
    let text =
        EXAMPLE.replacen("primary = { depth = 16 }", "primary = { depth = 16, message_bytes = 64 }", 1);
    let whole = text.replacen("[factors]\n", matrix, 1);
    assert!(read(&whole).is_err(), "a cell has 1525 MiB in flight");
    let spec =
        read(&format!("all_confirmatory = true\nin_flight_max_mib = 64\n{whole}")).expect("it is right");
    let cells: Vec<_> = spec.cells.iter().map(|cell| (cell.id.as_str(), cell.role)).collect();
    assert_eq!(
        cells,
        [
            ("c100-d1-m64-closed", CellRole::Confirmatory),
            ("c100-d16-m64-closed", CellRole::Primary),
            ("c100-d1-m64-open60pct", CellRole::Exploratory),
            ("c100-d16-m64-open60pct", CellRole::Exploratory),
        ]
    );
    insta::assert_snapshot!(read(&format!("in_flight_max_mib = 257\n{whole}")).expect_err("it is a mistake"), @"a.toml:1: in_flight_max_mib: 257 is out of range; it must be from 1 to 256");
}

#[test]
fn an_arm_takes_the_generators_options_of_the_study_unless_it_has_its_own() {
    let text = EXAMPLE.replacen(
        "name = \"uring-16k\"",
        "name = \"uring-16k\"\nload_options = { driver = \"x\" }",
        1,
    );
    let spec = read(&format!("load_options = {{ spin-us = 50 }}\n{text}")).expect("it is right");
    let options = |arm: usize| spec.arms[arm].load_options.clone().into_iter().collect::<Vec<_>>();
    assert_eq!(options(0), [("spin-us".to_owned(), "50".to_owned())]);
    assert_eq!(options(1), [("driver".to_owned(), "x".to_owned())]);
}

/// The example with further lines at its end.
pub fn with(lines: &str) -> Result<StudySpec, String> {
    read(&format!("{EXAMPLE}\n{lines}"))
}

#[test]
fn a_cell_beside_the_factors_has_a_role_levels_a_rate_and_arms_of_its_own() {
    let cell = "[[cell]]\nconnections = [10, 50]\nshare = [0.3, 0.6]\nrounds = 9\nslice = \"50ms\"\n\
                arms = [\"epoll\", \"uring-16k\"]\n";
    let spec = with(cell).expect("it is right");
    let own: Vec<_> = spec.cells[2..6].iter().map(|cell| (cell.id.as_str(), cell.blocks)).collect();
    let ids =
        ["c10-d1-m64-open30pct", "c10-d1-m64-open60pct", "c50-d1-m64-open30pct", "c50-d1-m64-open60pct"];
    assert_eq!(own, ids.map(|id| (id, 9)));
    let slices: Vec<_> =
        spec.cells[2..6].iter().map(|cell| cell.alternation.expect("turns").slice_ns).collect();
    assert_eq!(slices, [50_000_000; 4]);
    // A cell with all arms has an empty list of arms.
    assert!(spec.cells.iter().all(|cell| cell.arms.is_empty()));
    let alone = with("[[cell]]\nrole = \"confirmatory\"\nconnections = 7\n").expect("it is right");
    let confirmatory: Vec<_> = alone.cells.iter().map(|cell| (cell.id.as_str(), cell.role)).collect();
    assert!(confirmatory.contains(&("c7-d1-m64-closed", CellRole::Confirmatory)), "{confirmatory:?}");
    assert!(confirmatory.contains(&("c7-d1-m64-open60pct", CellRole::Exploratory)), "{confirmatory:?}");
}

#[test]
fn a_cell_may_have_slices_of_several_lengths_and_whole_trials_beside_them() {
    let spec = with(
        "[[cell]]\nrole = \"confirmatory\"\nconnections = 7\nslice = [\"20ms\", \"0.5s\"]\n\
                     [[cell]]\nconnections = 7\nalternate = false\nblocks = 6\n",
    )
    .expect("it is right");
    let own = spec.cells.iter().filter(|cell| cell.connections == 7);
    let own: Vec<_> = own
        .map(|cell| (cell.id.as_str(), cell.alternation.map(|it| it.slice_ns / 1_000_000), cell.blocks))
        .collect();
    assert_eq!(
        own,
        [
            ("c7-d1-m64-closed-s20ms", Some(20), 30),
            ("c7-d1-m64-closed-s500ms", Some(500), 30),
            ("c7-d1-m64-closed-whole", None, 6),
            ("c7-d1-m64-open60pct", Some(50), 20),
        ]
    );
    insta::assert_snapshot!(with("[[cell]]\nalternate = false\nrounds = 8\n").expect_err("no rounds"), @"a.toml:22: alternate: rounds, slices, permutations and evidence have no meaning with alternate = false; leave them out");
    insta::assert_snapshot!(read(&format!("slice = [\"20ms\", \"50ms\"]\n{EXAMPLE}")).expect_err("several"), @"a.toml:1: slice: one length for all cells; several belong in a [[cell]]");
}

#[test]
fn the_generators_threads_and_cpus_are_a_setting_and_factors() {
    let levels = "[factors]\nload_workers = [1, 2]\nload_cpus = [\"1\", \"2-3,5\"]";
    let factors = EXAMPLE.replacen(
        "primary = { depth = 16 }",
        "primary = { depth = 16, load_workers = 2, load_cpus = \"1\" }",
        1,
    );
    let spec = read(&factors.replacen("[factors]", levels, 1)).expect("it is right");
    let shown: Vec<_> = spec
        .cells
        .iter()
        .map(|cell| (cell.id.as_str(), cell.load_workers, spec.load_cpus_in(cell)))
        .filter(|(id, _, _)| id.starts_with("c100-d16-m64-l"))
        .collect();
    assert_eq!(
        shown,
        [
            ("c100-d16-m64-lcpu1-closed", 1, &[1][..]),
            ("c100-d16-m64-lcpu2+3+5-closed", 1, &[2, 3, 5]),
            ("c100-d16-m64-lw2-lcpu1-closed", 2, &[1]),
            ("c100-d16-m64-lw2-lcpu2+3+5-closed", 2, &[2, 3, 5]),
            ("c100-d16-m64-lw2-lcpu1-open60pct", 2, &[1]),
        ]
    );
    let all = read(&format!("load_workers = 3\n{EXAMPLE}")).expect("it is right");
    assert!(all.cells.iter().all(|cell| cell.load_workers == 3 && cell.load_cpus.is_empty()));
    assert_eq!(all.cells[0].id, "c100-d1-m64-lw3-closed");
    let wrong = |level: &str| mistake("[factors]", &format!("[factors]\n{level}"));
    insta::assert_snapshot!(wrong("load_cpus = [\"3-2\"]"), @r#"a.toml:8: load_cpus: it must name CPUs, such as "1", "0,2" or "2-3""#);
    insta::assert_snapshot!(wrong("load_workers = [257]"), @"a.toml:8: load_workers: 257 is out of range; it must be from 1 to 256");
    insta::assert_snapshot!(wrong("load_workers = [101]"), @"a.toml:8: load_workers: 101 workers of the generator have 100 connections to share; each needs one");
}

#[test]
fn mistakes_in_cells_and_published_figures_are_named() {
    let wrong = |lines: &str| with(lines).expect_err("it is a mistake");
    insta::assert_snapshot!(wrong("[[cell]]\nrole = \"primry\""), @r#"a.toml:21: cell.role: there is no role "primry"; did you mean primary?"#);
    insta::assert_snapshot!(wrong("[[cell]]\nrole = \"primary\""), @"a.toml:4: primary: a [[cell]] is the primary comparison already; one of them must go");
    insta::assert_snapshot!(wrong("[[cell]]\narms = [\"epol\"]"), @r#"a.toml:21: cell.arms: there is no arm "epol"; did you mean epoll?"#);
    insta::assert_snapshot!(wrong("[[cell]]\nconections = 3"), @"a.toml:21: cell.conections: there is no such key; did you mean connections?");
    insta::assert_snapshot!(wrong("[[cell]]\npoisson = false"), @"a.toml:21: cell.poisson: it belongs to a rate; give `share` or `rate`, or leave it out");
    insta::assert_snapshot!(wrong("[[cell]]\nconnections = 3000\nidle_connections = 3000\nrounds = 8"), @"a.toml:23: cell.rounds: the arms of c3000-d1-m64-i3000-closed cannot take turns: connections to all arms together are more than one generator may hold; give `blocks`");
    insta::assert_snapshot!(wrong("[[cell]]\nconnections = 3\nblocks = 8"), @"a.toml:22: cell.blocks: the arms of c3-d1-m64-closed take turns; give `rounds`");
    insta::assert_snapshot!(read(&format!("blocks = 8\n{EXAMPLE}")).expect_err("no blocks"), @"a.toml:1: blocks: the arms of every cell take turns; give `rounds`, or `alternate = false`");
    let closing = format!(
        "protocol = \"http\"\nrounds = 8\n{}",
        EXAMPLE.replacen("depth = [1, 16]", "close = [true]", 1).replacen(
            "primary = { depth = 16 }\n",
            "",
            1
        )
    );
    insta::assert_snapshot!(read(&closing).expect_err("no rounds"), @"a.toml:2: rounds: no arms take turns (a connection for each message leaves work in the kernel for the next slice); give `blocks` and a `window`");
    insta::assert_snapshot!(read(&format!("exploratory_blocks = 8\n{EXAMPLE}")).expect_err("no blocks"), @"a.toml:1: exploratory_blocks: the arms of every cell take turns; give `exploratory_rounds`, or `alternate = false`");
    insta::assert_snapshot!(read(&format!("alternate = false\n{EXAMPLE}[[cell]]\nslice = \"50ms\"")).expect_err("no slices"), @"a.toml:21: alternate: rounds, slices, permutations and evidence have no meaning with alternate = false; leave them out");
    let alone = EXAMPLE.replacen(
        "[factors]\nconnections = [100]\ndepth = [1, 16]",
        "[[cell]]\nrole = \"primary\"",
        1,
    );
    insta::assert_snapshot!(read(&alone).expect_err("there are no factors"), @"a.toml:4: primary: it is about the combinations of [factors], and the file has none");
    let figure = "[[published]]\nid = \"x\"\nsource = \"y\"\nclaim = \"z\"\nmetric = \"throughput\"\n\
                  cell = \"c100-d1-m64-closed\"\narm = \"uring-16k\"\nbaseline = \"epoll\"\nexplanation = \"w\"\n";
    let spec =
        with(&format!("{figure}ratio = [3, 2]\nclaim.ko = \"k\"").replacen("claim = ", "claim.en = ", 1));
    let claim = &spec.expect("it is right").published[0];
    assert_eq!(
        (claim.ratio, claim.claim.ko.as_deref(), claim.source.en.as_str()),
        (Some(1.5), Some("k"), "y")
    );
    insta::assert_snapshot!(wrong(&figure.replace("throughput", "thruput")), @r#"a.toml:24: published.metric: there is no metric "thruput"; did you mean throughput?"#);
    insta::assert_snapshot!(wrong(&figure.replace("c100-d1-m64", "c100-d2-m64")), @r#"a.toml:25: published.cell: there is no cell "c100-d2-m64-closed"; did you mean c100-d1-m64-closed?"#);
    insta::assert_snapshot!(wrong(&figure.replace("uring-16k", "uring")), @r#"a.toml:26: published.arm: there is no arm "uring"; there are epoll, uring-16k"#);
    insta::assert_snapshot!(wrong(&format!("{figure}ratio = 0")), @"a.toml:29: published.ratio: write one number above 0, or the two figures: [of the arm, of the baseline]");
    insta::assert_snapshot!(wrong(&figure.replace("id = \"x\"\n", "")), @"a.toml:20: published.id: it must be given");
}

#[test]
fn an_arm_runs_where_it_says_and_a_combination_without_another_is_left_out() {
    let text = EXAMPLE.replacen("driver = \"uring\"", "driver = \"uring\"\nwhere = { depth = 16 }", 1);
    let spec = read(&text).expect("it is right");
    let ids: Vec<&str> = spec.cells.iter().map(|cell| cell.id.as_str()).collect();
    assert_eq!(ids, ["c100-d16-m64-closed", "c100-d16-m64-open60pct"]);
    let nowhere = text.replacen("depth = 16 }\noptions", "depth = 4 }\noptions", 1);
    insta::assert_snapshot!(read(&nowhere).expect_err("it runs nowhere"), @"a.toml:18: arm.where: uring-16k runs in no cell; look at its `where` and at the arms of the cells");
}

#[test]
fn levels_may_be_as_many_as_the_machine_has_cpus() {
    let text =
        |workers: &str| EXAMPLE.replacen("depth = [1, 16]", &format!("depth = 16\nworkers = {workers}"), 1);
    let asked = |workers: &str, cpus: usize| {
        let host_defaults = HostDefaults { server_cpus: (0..cpus).collect(), ..host_defaults() };
        let text = text(workers).replacen("depth = 16 }", "workers = 1 }", 1);
        let study = parse(Path::new("a.toml"), &text, &host_defaults).map_err(|error| error.to_string())?;
        let closed = study.spec.cells.iter().filter(|cell| cell.load == LoadMode::Closed);
        Ok::<_, String>(closed.map(|cell| cell.workers).collect::<Vec<_>>())
    };
    assert_eq!(asked("[\"up-to-cpus\"]", 6), Ok(vec![1, 2, 4, 6]));
    assert_eq!(asked("[1, \"cpus\"]", 3), Ok(vec![1, 3]));
    insta::assert_snapshot!(asked("[\"cpus\"]", 0).expect_err("nobody knows"), @"a.toml:10: workers: it is not known which CPUs the server's side has here; give server_cpus, or a number");
    insta::assert_snapshot!(asked("[\"all\"]", 2).expect_err("there is no such name"), @r#"a.toml:10: workers: "all" is none; write a number, "cpus" or "up-to-cpus""#);
}

#[test]
fn mistakes_in_what_is_for_another_plan_or_machine_are_found_before_they_are_needed() {
    let wrong = |lines: &str| with(lines).expect_err("it is a mistake");
    insta::assert_snapshot!(wrong("[plan.long]\nround = 60"), @"a.toml:21: round: there is no such key; did you mean rounds?");
    insta::assert_snapshot!(wrong("[plan.long]\nprimary = { depth = 2 }"), @"a.toml:21: primary.depth: 2 is not a level of the factor; there are 1, 16");
    insta::assert_snapshot!(wrong("[without.uring]\ntitel = \"x\""), @"a.toml:21: titel: there is no such key; did you mean title?");
    insta::assert_snapshot!(wrong("[without.urin]\ntitle = \"x\""), @"a.toml:20: without.urin: there is no such key; did you mean uring?");
    insta::assert_snapshot!(wrong("[plan.long]\nrounds = 5"), @"a.toml:21: rounds: c100-d16-m64-closed claims something and has 5 rounds; with 2 claims in the study it needs 6 or more");
}

#[test]
fn a_claim_beside_a_cell_that_this_machine_lacks_has_no_place_and_a_wrong_one_is_a_mistake() {
    let orders = "name = \"o\"\nprotocol = \"orders\"\n[factors]\ndriver = [\"uring\", \"epoll\"]\n\
                  [[arm]]\nname = \"owner\"\nhandoff = \"owner\"\n[[arm]]\nname = \"naive\"\nhandoff = \"naive\"\n\
                  [[published]]\nid = \"x\"\nsource = \"y\"\nclaim = \"z\"\nmetric = \"throughput\"\n\
                  cell = \"closed-uring-w2\"\narm = \"naive\"\nbaseline = \"owner\"\nexplanation = \"w\"\n";
    let gone = DriverFound {
        driver: "uring".to_owned(),
        available: false,
        detail: Finding::IoUringDisabled { level: 2 },
        unlock: None,
    };
    let without = HostDefaults { tried: vec![gone], ..host_defaults() };
    let study = parse(Path::new("a.toml"), orders, &without).expect("it is right");
    let ids: Vec<&str> = study.spec.cells.iter().map(|cell| cell.id.as_str()).collect();
    assert_eq!((ids, study.spec.published.len()), (vec!["closed-epoll-w2"], 0));
    assert_eq!(read(orders).expect("it is right").published.len(), 1);
    let wrong = read(&orders.replace("closed-uring-w2", "closed-uring-w3")).expect_err("there is none");
    assert!(wrong.contains("did you mean closed-uring-w2?"), "{wrong}");
}

/// The comparisons of a study in short: `uring at c1 / epoll at c1`.
fn in_short(spec: &StudySpec) -> Vec<String> {
    let side = |side: &Side| format!("{} at {}", side.arm, side.cell_id.trim_end_matches("-m64-closed"));
    let asked = |asked: &ComparisonSpec| {
        let to: Vec<String> = asked.to.iter().map(side).collect();
        format!("{} / {}", side(&asked.of), to.join(", "))
    };
    spec.comparisons.iter().map(asked).collect()
}

#[test]
fn a_comparison_names_what_differs_and_takes_the_rest_from_the_other_side() {
    let metric = "metric = \"server-cpu-per-message\"\n";
    let of = |lines: &str| in_short(&with(&format!("[[comparison]]\n{metric}{lines}")).expect("it is right"));
    assert_eq!(
        of("of = { arm = \"uring-16k\" }"),
        ["uring-16k at c100-d1 / epoll at c100-d1", "uring-16k at c100-d16 / epoll at c100-d16"],
        "the baseline, in every cell in closed loop"
    );
    assert_eq!(
        of("of = { arm = [\"epoll\", \"uring-16k\"], depth = 16 }\nto = { depth = 1 }"),
        ["epoll at c100-d16 / epoll at c100-d1", "uring-16k at c100-d16 / uring-16k at c100-d1"]
    );
    assert_eq!(
        of("of = { arm = \"epoll\", cell = \"c100-d16-m64-open60pct\" }\nto = { arm = \"uring-16k\" }"),
        ["epoll at c100-d16-m64-open60pct / uring-16k at c100-d16-m64-open60pct"]
    );
    assert_eq!(
        of("of = { arm = \"epoll\", depth = [1] }\nbest_of = [\"uring-16k\"]"),
        ["epoll at c100-d1 / uring-16k at c100-d1"]
    );
    let twice = "of = { arm = \"epoll\", depth = 1 }\nto = { metric = \"generator-cpu-per-message\" }";
    let spec = with(&format!("[[comparison]]\n{metric}{twice}\nwithin = [0.5, 2]")).expect("it is right");
    assert_eq!(spec.comparisons[0].to[0].metric, Metric::GeneratorCpuPerMessage);
    assert_eq!(spec.comparisons[0].goal, Some(Goal::Within(0.5, 2.0)));
    let alone = "[[goal]]\nof = { arm = \"epoll\", depth = 1 }\nmetric = \"latency-p50\"\nat_most = 50000";
    let spec = with(alone).expect("it is right");
    assert_eq!((spec.comparisons[0].to.len(), spec.comparisons[0].goal), (0, Some(Goal::AtMost(50_000.0))));
}

#[test]
fn not_slower_is_the_margin_of_the_study_in_the_direction_of_the_metric() {
    let goal = |metric: &str| {
        let text = format!(
            "[[comparison]]\nof = {{ arm = \"uring-16k\", depth = 1 }}\nmetric = \"{metric}\"\nnot_slower = true"
        );
        with(&text).expect("it is right").comparisons[0].goal
    };
    assert_eq!(goal("server-cpu-per-message"), Some(Goal::AtMost(1.03)));
    assert_eq!(goal("throughput"), Some(Goal::AtLeast(1.0 / 1.03)));
    assert_eq!(goal("switches-per-message"), Some(Goal::AtMost(0.01)));
}

#[test]
fn mistakes_in_comparisons_and_goals_are_named() {
    let metric = "metric = \"throughput\"\n";
    let wrong = |lines: &str| with(&format!("[[comparison]]\n{lines}")).expect_err("it is a mistake");
    let epoll = format!("{metric}of = {{ arm = \"epoll\", depth = 1 }}\n");
    insta::assert_snapshot!(wrong(&epoll), @"a.toml:22: comparison.of: both sides are epoll in c100-d1-m64-closed; say what differs");
    insta::assert_snapshot!(wrong(&epoll.replace("epoll", "epol")), @r#"a.toml:22: comparison.of.arm: there is no arm "epol"; did you mean epoll?"#);
    insta::assert_snapshot!(wrong(&epoll.replace("throughput", "thruput")), @r#"a.toml:21: comparison.metric: there is no metric "thruput"; did you mean throughput?"#);
    insta::assert_snapshot!(wrong(&epoll.replace("depth", "dpeth")), @"a.toml:22: comparison.of.dpeth: there is no such key; did you mean depth?");
    insta::assert_snapshot!(wrong(&epoll.replace("depth = 1", "depth = 2")), @"a.toml:22: comparison.of: epoll runs in no such cell; there are c100-d1-m64-closed, c100-d16-m64-closed, c100-d16-m64-open60pct");
    insta::assert_snapshot!(wrong(&epoll.replace("depth = 1", "cell = \"c100-d2-m64-closed\"")), @r#"a.toml:22: comparison.of.cell: there is no cell "c100-d2-m64-closed"; did you mean c100-d1-m64-closed?"#);
    insta::assert_snapshot!(wrong(&epoll.replace("arm = \"epoll\", ", "")), @r#"a.toml:22: comparison.of: name an arm: of = { arm = "…" }"#);
    insta::assert_snapshot!(wrong(&epoll.replace(metric, "")), @"a.toml:20: comparison.metric: it must be given");
    insta::assert_snapshot!(wrong(&format!("{epoll}to = {{ depth = 3 }}")), @r#"a.toml:23: comparison.to: there is no cell "c100-d3-m64-closed"; did you mean c100-d1-m64-closed?"#);
    insta::assert_snapshot!(wrong(&format!("{epoll}to = {{ depth = [1, 16] }}")), @"a.toml:23: comparison.to: give one level of depth; `of` may have several");
    insta::assert_snapshot!(wrong(&format!("{epoll}to = {{ depth = 16 }}\nbest_of = [\"epoll\"]")), @"a.toml:24: comparison.best_of: give either `to` or `best_of`");
    insta::assert_snapshot!(wrong(&format!("{epoll}to = {{ metric = \"latency-p50\" }}")), @"a.toml:20: comparison.metric: throughput and latency-p50 are not counted in the same unit");
    insta::assert_snapshot!(wrong(&format!("{epoll}to = {{ depth = 16 }}\nat_most = 1\nat_least = 2")), @"a.toml:20: comparison: give either `at_most` or `at_least`");
    insta::assert_snapshot!(wrong(&format!("{epoll}to = {{ depth = 16 }}\nwithin = [2, 1]")), @"a.toml:24: comparison.within: write two numbers, the smaller one first: [0.95, 1.05]");
    insta::assert_snapshot!(wrong(&format!("{epoll}to = {{ depth = 16 }}\nat_most = inf")), @"a.toml:24: comparison.at_most: it is no number that a figure could have");
    insta::assert_snapshot!(wrong(&format!("{epoll}to = {{ depth = 16 }}\nnot_slower = false")), @"a.toml:24: comparison.not_slower: write true, or leave it out");
    insta::assert_snapshot!(wrong(&format!("{epoll}to = {{ neighbours = [\"x\"] }}")), @r#"a.toml:23: comparison.to.neighbours: there is no neighbour "x"; there is none at all"#);
    let goal = |lines: &str| with(&format!("[[goal]]\n{epoll}{lines}")).expect_err("it is a mistake");
    insta::assert_snapshot!(goal(""), @"a.toml:20: goal: give `at_most`, `at_least` or `within`");
    insta::assert_snapshot!(goal("not_slower = true"), @"a.toml:20: goal: a figure by itself is slower than nothing; write a [[comparison]]");
    insta::assert_snapshot!(goal("at_mst = 3"), @"a.toml:23: goal.at_mst: there is no such key; did you mean at_most?");
    let many = "[[comparison]]\nof = { arm = \"uring-16k\" }\nmetric = \"throughput\"\n".repeat(101);
    insta::assert_snapshot!(with(&many).expect_err("they are too many"), @"a.toml:320: comparison: the file asks for more than 200 comparisons and goals");
    assert_eq!(with(&many[..many.len() / 101 * 100]).expect("they just fit").comparisons.len(), 200);
}

#[test]
fn a_cell_has_neighbours_by_their_names_and_shows_them() {
    let drip = "[[neighbour]]\nname = \"drip\"\ncommand = [\"{bin}/drip\", \"{address}\"]\n";
    let cell = "[[cell]]\nconnections = 50\nneighbours = [\"drip\"]\n[[cell]]\nconnections = 50\n";
    let asked = "[[comparison]]\nof = { arm = \"epoll\", neighbours = [\"drip\"] }\nto = { neighbours = [] }\n\
                 metric = \"latency-p99\"\n";
    let spec = with(&format!("{drip}{cell}{asked}")).expect("it is right");
    assert_eq!(in_short(&spec), ["epoll at c50-d1-m64-closed-beside-drip / epoll at c50-d1"]);
    assert!(
        spec.cells.iter().all(|cell| cell.alternation.is_some()),
        "arms take turns beside neighbours too"
    );
    let wrong = |lines: &str| with(lines).expect_err("it is a mistake");
    insta::assert_snapshot!(wrong(drip), @r#"a.toml:20: neighbour: no cell has the neighbour "drip"; name it in the `neighbours` of a [[cell]]"#);
    insta::assert_snapshot!(wrong(cell), @r#"a.toml:22: cell.neighbours: there is no neighbour "drip"; write a [[neighbour]]"#);
    insta::assert_snapshot!(wrong(&format!("{drip}{}", cell.replace("drip", "drop"))), @r#"a.toml:25: cell.neighbours: there is no neighbour "drop"; did you mean drip?"#);
    insta::assert_snapshot!(wrong(&format!("{drip}{}", cell.replace("[\"drip\"]", "[\"drip\", \"drip\"]"))), @"a.toml:23: cell.neighbours: c50-d1-m64-closed-beside-drip-beside-drip has a neighbour twice");
    insta::assert_snapshot!(wrong(&drip.repeat(2)), @r#"a.toml:23: neighbour.name: two neighbours are named "drip""#);
    insta::assert_snapshot!(wrong("[[neighbour]]\nname = \"drip\"\ncommand = []"), @"a.toml:22: neighbour.command: it is empty; it must name a program");
    let many = |count: u32| -> String {
        (0..count).map(|number| drip.replace("name = \"drip\"", &format!("name = \"n{number}\""))).collect()
    };
    let all = "[[cell]]\nconnections = 50\n\
               neighbours = [\"n0\", \"n1\", \"n2\", \"n3\", \"n4\", \"n5\", \"n6\", \"n7\"]\n";
    assert_eq!(with(&(many(8) + all)).expect("they just fit").neighbours.len(), 8);
    insta::assert_snapshot!(wrong(&many(9)), @"a.toml:44: neighbour: a study has at most 8 neighbours");
    let storage = "name = \"a\"\nprotocol = \"storage\"\n[[cell]]\nrole = \"primary\"\nneighbours = [\"drip\"]\n\
                   [[arm]]\nname = \"a\"\nengine = \"pread\"\n[[arm]]\nname = \"b\"\nengine = \"libaio\"\n";
    insta::assert_snapshot!(read(&format!("{storage}{drip}")).expect_err("it is a mistake"), @"a.toml:3: cell.neighbours: a storage job has no server to be beside; it has `background_depth`");
}

#[test]
fn a_cause_is_one_switch_of_an_arm_that_is_not_the_first() {
    let with = |text: &str| {
        let arms = "[[arm]]\nname = \"uring\"\ndriver = \"uring\"\noptions = { spin-us = 5 }\n\
            [[arm]]\nname = \"plain\"\ndriver = \"uring\"\n\
            [[arm]]\nname = \"two\"\ndriver = \"uring\"\noptions = { spin-us = 6, receive = \"single\" }\n\
            [[arm]]\nname = \"same\"\ndriver = \"uring\"\noptions = { spin-us = 5 }\n\
            [[arm]]\nname = \"backlog\"\ndriver = \"uring\"\noptions = { spin-us = 5 }\n\
            arguments = [\"--backlog\", \"10\"]\n";
        read(&format!("name = \"a\"\n[[arm]]\nname = \"epoll\"\ndriver = \"epoll\"\n{arms}{text}"))
    };
    let cause =
        |of: &str, without: &str| format!("[[cause]]\nof = {{ arm = {of} }}\nwithout = \"{without}\"\n");
    let found = |text: &str| with(text).expect("it is right").causes.clone();
    let [one] = &found(&cause("\"uring\"", "plain"))[..] else { panic!("there is one") };
    assert_eq!((one.switch.as_str(), one.cells.len()), ("options.spin-us", 1));
    assert_eq!(found(&cause("\"uring\"", "backlog"))[0].switch, "arguments.--backlog");
    let wrong = |text: &str| with(text).expect_err("it is wrong");
    insta::assert_snapshot!(wrong(&cause("\"uring\"", "two")), @"a.toml:25: cause.without: two differs from uring in options.receive and options.spin-us; a cause is one switch, with all else the same");
    insta::assert_snapshot!(wrong(&cause("\"uring\"", "same")), @"a.toml:25: cause.without: same does not differ from uring");
    insta::assert_snapshot!(wrong(&cause("\"uring\"", "epoll")), @"a.toml:26: cause.of: the difference is that from the study's first arm, which can be neither");
    insta::assert_snapshot!(wrong(&cause("\"uring\"", "plane")), @r#"a.toml:27: cause.without: there is no arm "plane"; there are epoll, uring, plain, two, same, backlog"#);
    insta::assert_snapshot!(wrong(&cause("[\"uring\", \"same\"]", "plain")), @r#"a.toml:26: cause.of: name the one arm that has the switch: of = { arm = "…" }"#);
    insta::assert_snapshot!(wrong(&format!("{}metric = \"miss-rate\"\n", cause("\"uring\"", "plain"))), @"a.toml:25: cause.metric: figures that may be zero have no ratio to give shares of");
    insta::assert_snapshot!(wrong(&cause("\"uring\"", "plain").repeat(17)), @"a.toml:73: cause: 17 causes; at most 16 are allowed");
    assert_eq!(found(&cause("\"uring\"", "plain").repeat(16)).len(), 16);
}

#[test]
fn strace_is_one_more_slice_of_evidence() {
    let plan = |text: &str| {
        let spec = read(&format!("evidence_strace = true\n{text}{EXAMPLE}")).expect("it is right");
        let primary = spec.cells.iter().find(|cell| cell.role == CellRole::Primary);
        primary.and_then(|cell| cell.alternation?.evidence)
    };
    assert!(plan("evidence_rounds = 4\n").is_some_and(|plan| plan.strace));
    let others = "evidence_rounds = 4\nexploratory_evidence_rounds = 2\nevidence_strace = true\n";
    let spec = read(&format!("{others}{EXAMPLE}")).expect("it is right");
    let mut exploratory = 0;
    for cell in &spec.cells {
        let found = cell.alternation.and_then(|it| it.evidence).map(|it| (it.rounds, it.strace));
        let is_exploratory = cell.role == CellRole::Exploratory;
        let expected = if is_exploratory { (2, false) } else { (4, true) };
        let is_closed = cell.load == LoadMode::Closed;
        assert_eq!(found, is_closed.then_some(expected), "claims alone are held by strace: {cell:?}");
        exploratory += u32::from(is_exploratory && is_closed);
    }
    assert!(exploratory > 0);
    let whole = format!("exploratory_evidence_rounds = 2\nalternate = false\n{EXAMPLE}");
    insta::assert_snapshot!(read(&whole).expect_err("no slices"), @"a.toml:1: alternate: rounds, slices, permutations and evidence have no meaning with alternate = false; leave them out");
    let alone = read(&format!("evidence_strace = true\n{EXAMPLE}")).expect_err("there is no evidence");
    insta::assert_snapshot!(alone, @"a.toml:1: evidence_strace: it asks for more slices of evidence, and there are none; give `evidence_rounds`");
    let groups = read(&format!("evidence_by_group = true\n{EXAMPLE}")).expect_err("there is no evidence");
    insta::assert_snapshot!(groups, @"a.toml:1: evidence_by_group: it asks for more slices of evidence, and there are none; give `evidence_rounds`");
    let both = format!("evidence_rounds = 4\nevidence_by_group = true\n{EXAMPLE}");
    let spec = read(&both).expect("it is right");
    let plans = spec.cells.iter().filter_map(|cell| cell.alternation?.evidence);
    assert!(plans.clone().count() > 0 && plans.clone().all(|plan| plan.by_group && !plan.strace));
    let pairs = read(&format!("evidence_pairs = 4\n{EXAMPLE}")).expect_err("there is no evidence");
    insta::assert_snapshot!(pairs, @"a.toml:1: evidence_pairs: it asks for more slices of evidence, and there are none; give `evidence_rounds`");
    let many = read(&format!("evidence_rounds = 4\nevidence_pairs = 9\n{EXAMPLE}"));
    assert!(many.is_err_and(|error| error.contains("evidence_pairs")), "8 are the most");
    let spec = read(&format!("evidence_rounds = 4\nevidence_pairs = 4\n{EXAMPLE}")).expect("it is right");
    let mut plans = spec.cells.iter().filter_map(|cell| cell.alternation?.evidence);
    assert!(plans.clone().count() > 0 && plans.all(|plan| (plan.rounds, plan.pairs) == (4, 4)));
    let cell = "[[cell]]\nconnections = 7\nevidence_strace = true\n";
    insta::assert_snapshot!(read(&format!("{EXAMPLE}{cell}")).expect_err("none there either"), @"a.toml:21: cell.evidence_strace: it asks for more slices of evidence, and there are none; give `evidence_rounds`");
}

/// The example with these thresholds, as given on a command line.
fn with_thresholds(lines: &[&str]) -> Result<StudySpec, String> {
    let fail_if = lines.iter().map(|line| (*line).to_owned()).collect();
    read(&chosen(EXAMPLE, &Choices { fail_if, ..Choices::default() }).expect("it is TOML"))
}

#[test]
fn a_threshold_is_a_goal_of_each_arm_that_is_meant() {
    let asked = |line: &str| {
        let spec = with_thresholds(&[line]).expect("it is right");
        let told = spec.comparisons.iter().map(|it| {
            assert!(it.is_threshold);
            let to: Vec<&str> = it.to.iter().map(|side| side.arm.as_str()).collect();
            let Side { arm, cell_id, metric } = &it.of;
            format!("{arm} {cell_id} {} {to:?} {:?}", metric.row().key, it.goal.expect("it has one"))
        });
        told.collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(asked("cpu_per_message ratio > 1.05"), @r#"uring-16k c100-d16-m64-closed server-cpu-per-message ["epoll"] AtMost(1.05)"#);
    insta::assert_snapshot!(asked("p99>2ms"), @"uring-16k c100-d16-m64-open60pct latency-p99 [] AtMost(2000000.0)");
    insta::assert_snapshot!(asked("epoll cpu > 900 ns at c100-d1-m64-closed"), @"epoll c100-d1-m64-closed server-cpu-per-message [] AtMost(0.9)");
    insta::assert_snapshot!(asked("throughput ratio < 0.95"), @r#"uring-16k c100-d16-m64-closed throughput ["epoll"] AtLeast(0.95)"#);
    insta::assert_snapshot!(asked("switches-per-message > 2.5"), @"uring-16k c100-d16-m64-closed switches-per-message [] AtMost(2.5)");
    for (written, plain) in [
        ("cpu_per_message ratio > 3%", "cpu ratio > 1.03"),
        ("cpu > 3 %", "cpu ratio > 1.03"),
        ("CPU/msg ratio >= 1.03", "cpu ratio > 1.03"),
        ("tps ratio < -5%", "throughput ratio < 0.95"),
        ("tps <= -5%", "throughput ratio < 0.95"),
    ] {
        assert_eq!(asked(written), asked(plain), "{written}");
    }
    let beside = format!("fail_if = \"p50 > 1ms\"\n{EXAMPLE}");
    let both = chosen(&beside, &Choices { fail_if: vec!["p99 > 2ms".to_owned()], ..Choices::default() });
    assert_eq!(
        read(&both.expect("it is TOML")).expect("it is right").comparisons.len(),
        2 * asked("p99>2ms").lines().count()
    );
}

#[test]
fn mistakes_in_thresholds_are_named() {
    let wrong = |line: &str| with_thresholds(&[line]).expect_err("it is a mistake");
    insta::assert_snapshot!(wrong("p99"), @r#"a.toml:1: fail_if: "p99": write [ARM] METRIC [ratio] > NUMBER[UNIT] [at CELL], or < in place of >"#);
    insta::assert_snapshot!(wrong("> 3"), @r#"a.toml:1: fail_if: "> 3": write [ARM] METRIC [ratio] > NUMBER[UNIT] [at CELL], or < in place of >"#);
    insta::assert_snapshot!(wrong("a b c > 3"), @r#"a.toml:1: fail_if: "a b c > 3": write [ARM] METRIC [ratio] > NUMBER[UNIT] [at CELL], or < in place of >"#);
    insta::assert_snapshot!(wrong("p98 > 2ms"), @r#"a.toml:1: fail_if: "p98 > 2ms": there is no metric "p98"; there are server-cpu-per-message, machine-cpu-per-message, server-cpu-with-waiting, switches-per-message, throughput, latency-p50, latency-p99, first-byte-p50, last-byte-p50, generator-cpu-per-message, involuntary-switches-per-message, connections-max-over-mean, miss-rate, harmful-miss-rate, waiting-cpu-share, added-latency, effective-sleep, interrupted-rate, server-memory, orders-per-commit, wakes-per-order, wakes-per-handoff, handoffs-per-drain, handed-off-share, server-pss, kernel-memory"#);
    insta::assert_snapshot!(wrong("p99 > 2"), @r#"a.toml:1: fail_if: "p99 > 2": latency-p99 is counted in ns, us, µs, ms, s"#);
    insta::assert_snapshot!(wrong("p99 > 2 parsecs"), @r#"a.toml:1: fail_if: "p99 > 2 parsecs": latency-p99 is counted in ns, us, µs, ms, s"#);
    insta::assert_snapshot!(wrong("p99 > ms"), @r#"a.toml:1: fail_if: "p99 > ms": "ms" is no number"#);
    insta::assert_snapshot!(wrong("p99 ratio > 5 parsecs"), @r#"a.toml:1: fail_if: "p99 ratio > 5 parsecs": "5 parsecs" is no ratio; write 1.03 or 3%"#);
    insta::assert_snapshot!(wrong("p99 ratio > much%"), @r#"a.toml:1: fail_if: "p99 ratio > much%": "much%" is no number"#);
    insta::assert_snapshot!(wrong("switches_per_message ratio > 2"), @r#"a.toml:1: fail_if: "switches_per_message ratio > 2": switches-per-message may be zero and has no ratio; give its figure a bound"#);
    insta::assert_snapshot!(wrong("epol p99 > 2ms"), @r#"a.toml:1: fail_if: "epol p99 > 2ms": there is no arm "epol"; did you mean epoll?"#);
    insta::assert_snapshot!(wrong("epoll p99 ratio > 2"), @r#"a.toml:1: fail_if: "epoll p99 ratio > 2": epoll is the baseline, and its ratio to itself is 1"#);
    insta::assert_snapshot!(wrong("miss-rate > 5%"), @r#"a.toml:1: fail_if: "miss-rate > 5%": miss-rate is not measured in this study"#);
    insta::assert_snapshot!(wrong("p99 > 2ms at c100-d16-m64-closed"), @r#"a.toml:1: fail_if: "p99 > 2ms at c100-d16-m64-closed": latency-p99 is not measured in c100-d16-m64-closed, but in c100-d16-m64-open60pct"#);
    insta::assert_snapshot!(wrong("p99 > 2ms at c10"), @r#"a.toml:1: fail_if: "p99 > 2ms at c10": there is no cell "c10"; there are c100-d1-m64-closed, c100-d16-m64-closed, c100-d16-m64-open60pct"#);
    insta::assert_snapshot!(read(&format!("fail_if = [3]\n{EXAMPLE}")).expect_err("it is a mistake"), @"a.toml:1: fail_if: this is of type integer; write a text in quotes");
    insta::assert_snapshot!(with_thresholds(&["cpu > 1us"; 201]).expect_err("they are too many"), @"a.toml:1: comparison: the file asks for more than 200 comparisons and goals");
}

#[test]
fn mistakes_in_thresholds_are_told_in_every_language_with_what_was_typed() {
    let cases: [(&str, &[&str]); 12] = [
        ("p99", &["[ARM] METRIC [ratio] > NUMBER[UNIT] [at CELL]"]),
        ("p98 > 2ms", &["\"p98\"", "latency-p99"]),
        ("p99 > 2", &["latency-p99", "ns, us, µs, ms, s"]),
        ("p99 > ms", &["\"ms\""]),
        ("p99 ratio > 5 parsecs", &["\"5 parsecs\"", "3%"]),
        ("switches_per_message ratio > 2", &["switches-per-message"]),
        ("epol p99 > 2ms", &["\"epol\"", "epoll"]),
        ("epoll p99 ratio > 2", &["epoll", "1"]),
        ("miss-rate > 5%", &["miss-rate"]),
        ("p99 > 2ms at c100-d16-m64-closed", &["latency-p99", "c100-d16-m64-open60pct"]),
        ("p99 > 2ms at c10", &["\"c10\"", "c100-d1-m64-closed"]),
        ("> 3", &["METRIC"]),
    ];
    for (line, words) in cases {
        let fail_if = vec![line.to_owned()];
        let text = chosen(EXAMPLE, &Choices { fail_if, ..Choices::default() }).expect("it is TOML");
        let error = parse(Path::new("a.toml"), &text, &host_defaults()).expect_err("it is a mistake");
        let texts = Language::ALL.map(|language| error.localized(language));
        assert_eq!(error.to_string(), texts[0]);
        assert!(texts[0] != texts[1] && texts[1] != texts[2] && texts[0] != texts[2], "{texts:?}");
        for text in texts {
            assert!(text.starts_with("a.toml:1: fail_if") && text.contains(&format!("{line:?}")), "{text}");
            assert!(words.iter().all(|word| text.contains(word)), "{text}");
        }
    }
}
