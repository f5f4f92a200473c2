//! A user's own servers in study files: servers that run already, commands around a start, and mixes of requests.

use weir_lab::{
    alternation,
    study_file::{ArmKey, ArmValue, Choices, chosen},
};
use weir_record::spec::{Ready, RunningServer, StudySpec, Subject};

use super::study_file::read;

/// A study of HTTP with an arm that has these further lines.
fn with(lines: &str) -> String {
    format!(
        "name = \"own\"\nprotocol = \"http\"\nsaturation = true\n[factors]\nconnections = [4]\n\
         [[arm]]\nname = \"epoll\"\ndriver = \"epoll\"\n[[arm]]\nname = \"mine\"\n{lines}\n"
    )
}

fn mine(lines: &str) -> StudySpec {
    read(&with(lines)).unwrap_or_else(|error| panic!("{lines}: {error}"))
}

#[test]
fn an_arm_that_runs_already_takes_turns_and_says_whose_cpu_is_its_own() {
    for (line, pid, cgroup) in [
        ("running = \"http://127.0.0.1:8080\"", None, None),
        ("running = \"127.0.0.1:8080\"\npid = 77", Some(77), None),
        ("running = \"http://127.0.0.1:8080/\"\ncgroup = \"/a.slice\"", None, Some("/a.slice".to_owned())),
    ] {
        let spec = mine(line);
        let server = RunningServer { address: "127.0.0.1:8080".to_owned(), pid, cgroup };
        assert_eq!(spec.arms[1].running(), Some(&server));
        assert_eq!(alternation::obstacle(&spec, &spec.cells[0]), None);
        // The stored spec equals the spec that was read.
        let text = serde_json::to_string(&spec).expect("it serialises");
        assert_eq!(serde_json::from_str::<StudySpec>(&text).expect("it is a study"), spec);
    }
}

#[test]
fn a_start_has_what_its_keys_say() {
    let command = "command = [\"./server\"]\nenvironment = { PORT = \"{port}\", DEPTH = 3 }\nfolder = \"deploy\"\n\
                   setup = [\"make\"]\ncleanup = [\"rm\", \"-f\", \"x\"]\nsetup_timeout = \"5s\"\n\
                   ready = { line = \"up\" }\nready_timeout = \"1min\"";
    let spec = mine(command);
    let start = &spec.arms[1].start;
    assert_eq!((start.environment["DEPTH"].as_str(), start.folder.as_deref()), ("3", Some("deploy")));
    assert_eq!((&start.setup[..], start.cleanup.len()), (&["make".to_owned()][..], 3));
    assert_eq!((start.command_ns_max, start.ready_ns_max), (Some(5_000_000_000), Some(60_000_000_000)));
    assert_eq!(start.ready, Ready::Line("up".to_owned()));
    assert_eq!(spec.arms[0].start, Default::default());
    let asked =
        mine("command = [\"x\", \"{port}\"]\nready = { command = [\"curl\", \"http://{address}/\"] }");
    assert!(matches!(&asked.arms[1].start.ready, Ready::Command(words) if words.len() == 2));
    // Arms that differ only in their start are not the same arm twice.
    let two = with(
        "command = [\"x\", \"{port}\"]\nenvironment = { A = \"1\" }\n[[arm]]\nname = \"other\"\n\
                    command = [\"x\", \"{port}\"]",
    );
    assert_eq!(read(&two).expect("it is a study").same_arms(), []);
}

#[test]
fn mistakes_of_own_servers_are_named_with_line_and_key() {
    let server = "command = [\"x\", \"{port}\"]";
    for (lines, told) in [
        (
            "running = \"tcp://127.0.0.1:1\"".to_owned(),
            "11: arm.running: \"tcp://127.0.0.1:1\": a study of http",
        ),
        ("running = \"http://a:1\"\npid = 0".to_owned(), "12: arm.pid: a process has a number from 1 on"),
        (
            "running = \"http://a:1\"\npid = 1\ncgroup = \"/x\"".to_owned(),
            "9: arm: give either `pid` or `cgroup`",
        ),
        (
            "running = \"http://a:1\"\nsetup = [\"x\"]".to_owned(),
            "9: arm: it runs already, and is not started here",
        ),
        (
            "running = \"http://a:1\"\ndriver = \"epoll\"".to_owned(),
            "9: arm: give one of `driver`, `command` and `running`",
        ),
        (format!("{server}\npid = 7"), "12: arm.pid: there is no such key"),
        (format!("{server}\nready = \"soon\""), "12: arm.ready: write \"port\""),
        (format!("{server}\nready = {{ line = \"\" }}"), "12: arm.ready: every line holds the empty text"),
        (format!("{server}\nsetup = []"), "12: arm.setup: the command is empty"),
        (
            format!("{server}\nsetup_timeout = \"1h\""),
            "12: arm.setup_timeout: it must be from 100ms to 10min",
        ),
        (format!("{server}\nenvironment = {{ \"A=B\" = \"1\" }}"), "12: arm.environment: \"A=B\" is no name"),
        (
            "driver = \"poll\"\nready = { line = \"x\" }".to_owned(),
            "12: arm.ready: a server of Weir's says itself",
        ),
        (
            "command = [\"x\"]\nenvironment = { A = \"b\" }".to_owned(),
            "11: arm.command: no word of the command",
        ),
    ] {
        let error = read(&with(&lines)).expect_err(&lines);
        assert!(error.starts_with(&format!("a.toml:{told}")), "{lines}: {error}");
    }
    let whole = with("running = \"http://a:1\"\ncgroup = \"/x\"").replacen(
        "saturation",
        "alternate = false\nsaturation",
        1,
    );
    let error = read(&whole).expect_err("a control group is read in slices alone");
    assert!(error.contains("arm.cgroup: the arms of") && error.contains("give `pid`"), "{error}");
}

#[test]
fn requests_of_a_mix_are_part_of_the_study_and_name_its_cells() {
    let text = with("command = [\"x\", \"{port}\"]")
        + "[[request]]\npath = \"/a\"\nweight = 2\n[[request]]\npath = \"/b\"\n";
    let spec = read(&text).expect("it is a study");
    assert_eq!(spec.requests.len(), 2);
    assert!(spec.cells.iter().all(|cell| cell.http.as_ref().is_some_and(|http| http.mix)));
    assert!(spec.cells[0].id.contains("-mix-"), "{}", spec.cells[0].id);
    let error = read(&text.replace("weight = 2", "weight = 0")).expect_err("it is none");
    assert!(error.starts_with("a.toml:14: request.weight: "), "{error}");
    let echo = text.replacen("protocol = \"http\"\n", "", 1);
    assert!(read(&echo).expect_err("echo has none").contains("request: there is no such key"));
}

#[test]
fn a_command_line_says_the_same_of_an_arm_as_a_file() {
    let key =
        |flag: &'static str, key: &'static str, value| ArmKey { flag, arm: "mine".to_owned(), key, value };
    let text = |text: &str| ArmValue::Text(text.to_owned());
    let entry = |name: &str, value| ArmValue::Entry(name.to_owned(), Box::new(value));
    let choices = Choices {
        arms: vec![("mine".to_owned(), vec!["./server".to_owned()])],
        arm_keys: vec![
            key("--arm-env", "environment", entry("PORT", text("{port}"))),
            key("--arm-env", "environment", entry("A", text("b"))),
            key("--arm-ready", "ready", entry("line", text("up"))),
            key("--arm-dir", "folder", text("deploy")),
        ],
        ..Choices::default()
    };
    let file = with("").replace("[[arm]]\nname = \"mine\"\n", "");
    let spec = read(&chosen(&file, &choices).expect("they fit")).expect("it is a study");
    let start = &spec.arms[1].start;
    assert_eq!((start.environment.len(), &start.ready), (2, &Ready::Line("up".to_owned())));
    let choices = Choices {
        arms: vec![("mine".to_owned(), vec!["http://127.0.0.1:80".to_owned()])],
        arm_keys: vec![key("--arm-pid", "pid", ArmValue::Number(7))],
        ..Choices::default()
    };
    let spec = read(&chosen(&file, &choices).expect("they fit")).expect("it is a study");
    let Subject::Running(server) = &spec.arms[1].subject else { panic!("{:?}", spec.arms[1]) };
    assert_eq!((server.address.as_str(), server.pid), ("127.0.0.1:80", Some(7)));
}
