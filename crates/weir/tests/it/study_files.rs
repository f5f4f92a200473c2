//! Studies that cannot run as they are written: the error comes before anything runs, or as a missing arm, in bounded
//! time.

use std::{
    fs::{self, OpenOptions},
    io::{BufRead, BufReader},
    net::TcpListener,
    path::{Path, PathBuf},
    thread,
    time::Instant,
};

use weir_record::{check::CheckName, effect::Effect, finding::Finding, trial::TrialRecord};
use weir_store::Store;

use super::harness::{
    TWO_ARMS, WEIR, descriptors_asked_for, expect_refusal, folder, shell, shown, study_file, study_head, weir,
};

#[test]
fn a_mistake_is_told_with_file_and_line_and_leaves_nothing() {
    let folder = folder("study-mistakes");
    let head = study_head(8, "1s");
    let cases = [
        (format!("{head}colour = 3\n{TWO_ARMS}"), 9, &["colour", "connections"][..]),
        (format!("{head}{TWO_ARMS}").replace("[4]", "[0]"), 8, &["connections", "0", "1 to"]),
        (format!("{head}{TWO_ARMS}").replace("\"poll\"\n", "\"purple\"\n"), 14, &["purple", "uring"]),
        (format!("{head}{TWO_ARMS}options = {{ colour = 1 }}\n"), 13, &["poll", "colour", "buffer-bytes"]),
        (format!("{head}{TWO_ARMS}options = {{ buffer-bytes = 1 }}\n"), 13, &["poll", "buffer-bytes", "64"]),
        (format!("{head}{TWO_ARMS}options = {{ receive = \"single\" }}\n"), 13, &["poll", "receive"]),
        ("name = ".to_owned(), 1, &["string"]),
    ];
    for (text, line, words) in cases {
        let (file, out) = study_file(&folder, &text);
        let said = weir(&["study", &file, "--out", shown(&out)]);
        expect_refusal(&said, 2, words);
        assert!(said.stderr.contains(&format!("tiny.toml:{line}: ")), "{}", said.stderr);
        assert!(!out.exists(), "{}", said.stderr);
    }
}

#[test]
fn what_is_printed_of_a_built_in_study_is_a_file_that_comes_to_the_same() {
    let folder = folder("study-printed");
    for name in ["quick", "survey", "gateway"] {
        let printed = weir(&["study", name, "--print"]);
        assert_eq!(printed.code, Some(0), "{}", printed.stderr);
        let file = folder.join(format!("{name}.toml"));
        fs::write(&file, &printed.stdout).expect("a file can be written");
        let plan = |study: &str| weir(&["study", study, "--dry-run", "--seed", "7"]);
        let (built_in, own) = (plan(name), plan(shown(&file)));
        assert_eq!((built_in.code, own.code), (Some(0), Some(0)), "{} {}", built_in.stderr, own.stderr);
        assert_eq!(built_in.stdout, own.stdout);
        assert!(own.stdout.contains("It takes about") && own.stdout.contains("seed 7"), "{}", own.stdout);
    }
    // Nothing ran, so only the files are there.
    assert_eq!(fs::read_dir(&*folder).expect("it is there").count(), 3);
    let plan = weir(&["study", "quick", "--published-plan", "--dry-run"]);
    expect_refusal(&plan, 2, &["no plan \"published\"", "one plan only"]);
}

#[test]
fn a_study_is_cut_and_widened_on_the_command_line_and_can_be_kept_as_a_file() {
    let folder = folder("study-chosen");
    let chosen = [
        "--levels",
        "connections=5,50",
        "--levels",
        "workers=1",
        "--arm",
        "own='./a b' {address}",
        "--warmup",
        "3s",
    ];
    let plan = |study: &str, further: &[&str]| {
        let words = [&["study", study, "--dry-run", "--seed", "7"], further].concat();
        let said = weir(&words);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        said.stdout
    };
    let told = plan("tps", &chosen);
    for words in ["./a b", "c5-d1-m64-closed", "c50-d1-m64-closed", "3 s"] {
        assert!(told.contains(words), "{told}");
    }
    let printed = weir(&[&["study", "tps", "--print"], &chosen[..]].concat());
    let file = folder.join("own.toml");
    fs::write(&file, &printed.stdout).expect("a file can be written");
    assert_eq!(plan(shown(&file), &[]), told);
    for (words, refused) in [
        (&["--levels", "quik"][..], &["--levels quik", "no plan of that name", "quick"][..]),
        (&["--levels", "quick", "--levels", "full"], &["one plan at a time"]),
        (&["--levels", "conections=1"], &["conections", "connections"]),
        (&["--levels", "connections=0"], &["connections", "1 to"]),
        (&["--arm", "own='open"], &["a quote is open"]),
        (&["--arm", "own=./server"], &["{port} or {address}"]),
        (&["--only-arms"], &["no arm is given"]),
        (&["--warmup", "2min"], &["--warmup 2min", "at most 1min"]),
        (&["--inconclusive-passes"], &["no thresholds", "--fail-if"]),
        (&["--fail-if", "p98 > 2ms"], &["--fail-if", "no metric \"p98\"", "latency-p99"]),
    ] {
        let said = weir(&[&["study", "tps", "--dry-run"], words].concat());
        expect_refusal(&said, 2, refused);
    }
}

#[test]
fn servers_whose_commands_are_given_are_measured_in_place_of_the_arms_of_the_file() {
    let folder = folder("study-commands");
    let (file, out) = study_file(&folder, &(study_head(8, "10min") + TWO_ARMS));
    let arm = |driver: &str| {
        let words = format!("serve echo --driver {driver} --listen {{address}} --workers {{workers}}");
        format!("own-{driver}='{WEIR}' {words}")
    };
    let (first, second) = (arm("poll"), arm("epoll"));
    let arms = ["--only-arms", "--arm", &first, "--arm", &second];
    let said = weir(&[&["study", &file, "--out", shown(&out)], &arms[..]].concat());
    assert!(matches!(said.code, Some(0 | 11 | 12)), "{:?} {}{}", said.code, said.stdout, said.stderr);
    let store = Store::open_read_only(&out).expect("a store");
    let result = store.result().expect("it can be read").expect("it was judged");
    let names: Vec<&str> = result.spec.arms.iter().map(|arm| arm.name.as_str()).collect();
    assert_eq!(names, ["own-poll", "own-epoll"], "the first is the baseline");
    assert!(result.missing_arms.is_empty(), "{:?}", result.missing_arms);
    let is_held = |it: &Effect| (it.arm.as_str(), it.baseline.as_str()) == ("own-epoll", "own-poll");
    assert!(result.effects.comparisons().any(is_held), "{:?}", result.effects);
    let trials: Vec<TrialRecord> =
        store.blocks().expect("blocks").into_iter().flat_map(|block| block.trials).collect();
    for arm in names {
        let own: Vec<&TrialRecord> = trials.iter().filter(|trial| trial.arm == arm).collect();
        assert!(own.len() >= 8, "{arm}: {}", own.len());
        let answered = |trial: &&TrialRecord| trial.load.as_ref().is_some_and(|load| load.messages > 0);
        assert!(own.iter().all(answered), "{arm}: {own:?}");
    }
}

#[test]
fn limits_of_this_machine_end_a_study_before_it_begins() {
    let folder = folder("study-limits");
    // The largest cell of a map, which is its last.
    let head = study_head(8, "5s").replace("[4]\n", "[4, 1000]\n[primary]\nconnections = 4\n");
    let (file, out) = study_file(&folder, &(head + TWO_ARMS));
    let said = shell(&format!("ulimit -n 256; exec \"$WEIR\" study '{file}' --out '{}'", shown(&out)));
    expect_refusal(&said, 13, &["3000 connections", "the limit is 256", "`ulimit -n "]);
    descriptors_asked_for(&said, 3000);
    assert!(!out.exists());
    let unwritable = weir(&["study", &file, "--out", "/proc/weir-it/out"]);
    expect_refusal(&unwritable, 1, &["/proc/weir-it/out", "--out"]);
}

#[test]
fn what_a_study_finds_is_told_in_the_language_that_is_asked_for() {
    let folder = folder("study-told");
    let (file, out) = study_file(&folder, &(study_head(8, "10min") + TWO_ARMS));
    let said = weir(&["study", &file, "--out", shown(&out), "--lang", "ko"]);
    assert!(matches!(said.code, Some(0 | 11 | 12)), "{:?} {}", said.code, said.stderr);
    let data: serde_json::Value =
        serde_json::from_str(&weir(&["export", shown(&out)]).stdout).expect("it is JSON");
    let result: weir_record::study::StudyResult =
        serde_json::from_value(data["result"].clone()).expect("the judged result");
    for language in ["ko", "zh"] {
        let pages = folder.join(language);
        let wrote = weir(&["report", shown(&out), "--lang", language, "--out", shown(&pages)]);
        assert_eq!(wrote.code, Some(0), "{}", wrote.stderr);
        let page = fs::read_to_string(pages.join("report.html")).expect("it is written");
        assert_eq!(page.matches(" lang=\"en\"").count(), 0, "{:?} {:?}", result.checks, result.effects);
        assert!(!result.checks.is_empty());
    }
}

#[test]
fn a_generator_of_two_threads_loads_in_turns_and_in_whole_trials() {
    let folder = folder("study-load-workers");
    for protocol in ["echo", "http"] {
        let head =
            study_head(8, "10min").replacen("rounds", &format!("protocol = \"{protocol}\"\nrounds"), 1);
        let whole = "[[cell]]\nconnections = 4\nload_workers = 2\nalternate = false\nblocks = 2\n";
        let text = head.replace("[factors]\n", "[factors]\nload_workers = [2]\n") + whole + TWO_ARMS;
        let (file, out) = study_file(&folder, &text.replace("tiny", protocol));
        let said = weir(&["study", &file, "--out", shown(&out)]);
        assert!(matches!(said.code, Some(0 | 11 | 12)), "{protocol}: {:?} {}", said.code, said.stderr);
        let data: serde_json::Value =
            serde_json::from_str(&weir(&["export", shown(&out)]).stdout).expect("it is JSON");
        let trials: Vec<TrialRecord> = serde_json::from_value(data["trials"].clone()).expect("trials");
        let of = |in_turns: bool| trials.iter().filter(move |trial| trial.slices.is_empty() != in_turns);
        assert!(of(true).count() >= 24 && of(false).count() >= 6, "{}", trials.len());
        for trial in &trials {
            let load = trial.load.as_ref().unwrap_or_else(|| panic!("{protocol}: {:?}", trial.exclusions));
            assert_eq!(load.workers, 2, "{protocol}: {}", trial.cell_id);
        }
        fs::remove_dir_all(&out).expect("it is there");
    }
}

#[test]
fn an_existing_study_is_not_overwritten() {
    let folder = folder("study-exists");
    let (file, out) = study_file(&folder, &(study_head(8, "5s") + TWO_ARMS));
    fs::create_dir(&out).expect("a folder can be made");
    fs::write(out.join("study.db"), "precious").expect("a file can be written");
    let said = weir(&["study", &file, "--out", shown(&out)]);
    expect_refusal(&said, 2, &["already exists", "--resume", "--out"]);
    assert_eq!(fs::read_to_string(out.join("study.db")).expect("it is there"), "precious");
}

#[test]
fn an_arm_that_dies_is_named_and_the_others_are_compared() {
    let folder = folder("study-dies");
    let dying =
        "[[arm]]\nname = \"dies\"\ncommand = [\"sh\", \"-c\", \"echo no luck at {port} >&2; exit 3\"]\n";
    let (file, out) = study_file(&folder, &(study_head(8, "10min") + TWO_ARMS + dying));
    let said = weir(&["study", &file, "--out", shown(&out)]);
    assert_eq!(said.code, Some(13), "{}", said.stderr);
    assert!(
        said.stderr.contains(
            "arm dies is missing: its server failed in all 2 trials: exited with status 3: no luck at"
        ),
        "{}",
        said.stderr
    );
    assert!(
        said.stdout.contains("Arms that could not run") && said.stdout.contains("dies: its server failed")
    );
    for page in ["report.html", "report.md"] {
        let text = fs::read_to_string(out.join(page)).expect("it is written");
        assert!(text.contains("no luck at"), "{page}");
    }
}

#[test]
fn an_arm_that_fails_with_many_workers_is_compared_with_few() {
    let folder = folder("study-many-workers");
    let head = study_head(8, "10min").replace("[4]\n", "[4]\nworkers = [1, 16]\n[primary]\nworkers = 1\n");
    let picky = "[[arm]]\nname = \"picky\"\ncommand = [\"sh\", \"-c\", \"[ {workers} = 16 ] && exit 1; exec {bin}/weir \
                 serve echo --driver poll --listen 127.0.0.1:{port}\"]\n";
    let (file, out) = study_file(&folder, &(head + TWO_ARMS + picky));
    let said = weir(&["study", &file, "--out", shown(&out)]);
    assert!(matches!(said.code, Some(0 | 11 | 12)), "{:?} {}", said.code, said.stderr);
    let blocks = Store::open_read_only(&out).and_then(|store| store.blocks()).expect("a store");
    let tried = |is_many: bool| {
        let own = blocks.iter().filter(|block| block.key.cell_id.contains("w16") == is_many);
        own.flat_map(|block| &block.trials).filter(|trial| trial.arm == "picky").count()
    };
    assert_eq!((tried(false), tried(true)), (8, 2));
}

#[test]
fn an_arm_that_never_listens_takes_bounded_time() {
    let folder = folder("study-mute");
    // A length of time that no other process sleeps for.
    let sleeper = format!("sleep {}", 100_000 + std::process::id());
    let mute = format!(
        "[[arm]]\nname = \"mute\"\ncommand = [\"sh\", \"-c\", \"{sleeper} & echo {{port}}; wait\"]\n"
    );
    let (file, out) = study_file(&folder, &(study_head(8, "1s") + TWO_ARMS + &mute));
    let began = Instant::now();
    let said = weir(&["study", &file, "--long", "--out", shown(&out)]);
    // One wait of ten seconds for it: the time cap is over then.
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
    // Line breaks depend on the text before.
    let told = said.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("did not accept connections within"), "{}{}", said.stdout, said.stderr);
    assert!(out.join("report.html").exists());
    let commands = fs::read_dir("/proc").expect("/proc is there").flatten();
    let left = commands.filter(|process| {
        let command = fs::read_to_string(process.path().join("cmdline")).unwrap_or_default();
        command.replace('\0', " ").contains(&sleeper)
    });
    assert_eq!(left.count(), 0, "{sleeper} is left");
}

/// Servers in this process, for commands of a study that report their identity and address through a pipe. Their
/// threads end with the test process.
fn silent_servers(folder: &Path) -> PathBuf {
    let path = folder.join("servers");
    assert_eq!(shell(&format!("mkfifo '{}'", path.display())).code, Some(0));
    // A reader with write access never sees the end of the pipe.
    let pipe = OpenOptions::new().read(true).write(true).open(&path).expect("a pipe");
    thread::spawn(move || {
        let mut deaf = Vec::new();
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            let (how, port) = line.split_once(' ').expect("two words");
            let port: u16 = port.parse().expect("a number");
            let listener = TcpListener::bind(("127.0.0.1", port)).expect("the port is free");
            match how {
                "deaf" => deaf.push(listener),
                "mute" => drop(thread::spawn(move || listener.incoming().collect::<Vec<_>>())),
                _ => drop(thread::spawn(move || listener.incoming().for_each(drop))),
            }
        }
    });
    path
}

#[test]
fn arms_that_never_answer_are_named_and_given_up_and_the_others_are_compared() {
    let folder = folder("study-silent");
    let pipe = silent_servers(&folder);
    let silent = ["deaf", "mute", "closes"];
    let arms = silent.map(|how| {
        let script = format!("echo {how} {{port}} > '{}'; exec sleep 1000", pipe.display());
        format!("[[arm]]\nname = \"{how}\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\n")
    });
    for (turns, said_of_them) in [
        ("rounds = 8", "answered 0 of 8 messages"),
        ("alternate = false\nblocks = 8", "no response was completed in the window"),
    ] {
        let http = "protocol = \"http\"\nconnect_timeout = \"500ms\"\nresponse_timeout = \"500ms\"\n";
        let head = study_head(8, "10min").replacen("rounds = 8", &format!("{http}{turns}"), 1);
        let (file, out) = study_file(&folder, &(head + TWO_ARMS + &arms.concat()));
        let said = weir(&["study", &file, "--out", shown(&out)]);
        assert_eq!(said.code, Some(13), "{}", said.stderr);
        let store = Store::open_read_only(&out).expect("a store");
        let trials: Vec<TrialRecord> =
            store.blocks().expect("blocks").into_iter().flat_map(|block| block.trials).collect();
        let of = |arm: &str| trials.iter().filter(|trial| trial.arm == arm).count();
        assert_eq!(silent.map(of), [2, 2, 2], "{turns}");
        assert!(of("poll") >= 8, "{turns}: the others go on");
        let data: serde_json::Value =
            serde_json::from_str(&weir(&["export", shown(&out)]).stdout).expect("it is JSON");
        let result: weir_record::study::StudyResult =
            serde_json::from_value(data["result"].clone()).expect("the judged result");
        for arm in silent {
            let missing = result.missing_arms.iter().find(|gone| gone.name == arm);
            let reason = &missing.unwrap_or_else(|| panic!("{arm}: {:?}", result.missing_arms)).reason;
            let Finding::NeverServed { trials: 2, said } = reason else { panic!("{arm}: {reason:?}") };
            assert!(said.contains(said_of_them), "{arm}: {said}");
        }
        assert!(result.effects.comparisons().any(|comparison| comparison.arm == "poll"), "{turns}");
        fs::remove_dir_all(&out).expect("it is there");
    }
}

#[test]
fn a_command_that_is_not_there_is_refused_before_the_first_block() {
    let folder = folder("study-no-command");
    let arms = "[[arm]]\nname = \"epoll\"\ndriver = \"epoll\"\n[[arm]]\nname = \"typo\"\ncommand = \
                [\"weir-no-such-server\", \"{port}\"]\n";
    let (file, out) = study_file(&folder, &(study_head(8, "6s") + arms));
    let said = weir(&["study", &file, "--long", "--out", shown(&out)]);
    assert_eq!(said.code, Some(13), "{}", said.stderr);
    assert!(
        said.stderr.contains("arm typo is missing: weir-no-such-server is not on the PATH"),
        "{}",
        said.stderr
    );
    assert!(said.stdout.contains("install it, or write its path"), "{}", said.stdout);
    let blocks = Store::open_read_only(&out).and_then(|store| store.blocks()).expect("a store").len();
    assert_eq!(blocks, 0, "nothing is left to compare with");
}

#[test]
fn a_study_of_http_gives_files_to_foreign_arms_and_checks_every_response() {
    let folder = folder("study-http");
    let head = study_head(8, "10min").replacen("rounds", "protocol = \"http\"\nblocks", 1);
    let arms = TWO_ARMS.replacen(
        "driver = \"poll\"",
        "driver = \"poll\"\narguments = [\"--log-connections\", \"{scratch}/connections.log\"]",
        1,
    );
    let foreign = "[[arm]]\nname = \"foreign\"\ncommand = [\"{bin}/weir\", \"serve\", \"http\", \"--listen\", \
                   \"127.0.0.1:{port}\", \"--root\", \"{content_dir}\"]\n";
    let (file, out) =
        study_file(&folder, &(head + "content = [\"html\"]\nclose = [true]\n" + &arms + foreign));
    let said = weir(&["study", &file, "--out", shown(&out)]);
    assert!(matches!(said.code, Some(0 | 11 | 12)), "{:?} {}", said.code, said.stderr);
    let data: serde_json::Value =
        serde_json::from_str(&weir(&["export", shown(&out)]).stdout).expect("it is JSON");
    let result: weir_record::study::StudyResult =
        serde_json::from_value(data["result"].clone()).expect("the judged result");
    let checked =
        result.checks.iter().find(|check| check.name == CheckName::ResponsesChecked).expect("it is there");
    let Finding::ResponsesChecked { compared_share, wrong, .. } = checked.detail else {
        panic!("{checked:?}")
    };
    assert!(checked.passed && (compared_share, wrong) == (1.0, 0), "{checked:?}");
    assert!(result.missing_arms.is_empty(), "{:?}", result.missing_arms);
    let trials = data["trials"].as_array().expect("a list");
    for arm in ["epoll", "poll", "foreign"] {
        let answers = |trial: &&serde_json::Value| {
            trial["arm"] == arm && trial["load"]["messages"].as_u64().is_some_and(|count| count > 0)
        };
        assert!(trials.iter().any(|trial| answers(&trial)), "{arm}");
    }
    let page = fs::read(out.join("content/html/index.html")).expect("the foreign arm's file");
    assert_eq!(page.len() as u64, u64::from(result.spec.cells[0].message_bytes));
    assert!(!out.join("scratch").exists());
}
