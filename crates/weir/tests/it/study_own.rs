//! A user's own servers in studies: servers that run already, commands around the start of others, and mixes of
//! requests.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;
use weir_record::{load::LoadReport, study::StudyResult};

use super::harness::{
    Folder, PATIENCE, Running, Said, Server, TWO_ARMS, expect_refusal, folder, shown, study_file, study_head,
    weir,
};

const EPOLL: &str = "[[arm]]\nname = \"epoll\"\ndriver = \"epoll\"\n";

/// Runs a study with further arguments, and returns its output and the judged result.
fn judged(folder: &Folder, text: &str, words: &[&str]) -> (Said, StudyResult) {
    let (file, out) = study_file(folder, text);
    let said = weir(&[&["study", &file, "--out", shown(&out)], words].concat());
    assert!(matches!(said.code, Some(0 | 11 | 12)), "{:?} {}{}", said.code, said.stdout, said.stderr);
    let data: Value = serde_json::from_str(&weir(&["export", shown(&out)]).stdout).expect("it is JSON");
    (said, serde_json::from_value(data["result"].clone()).expect("the judged result"))
}

/// An HTTP server of Weir that runs separately.
fn http_server(body: &str) -> (Running, String) {
    let process =
        Running::weir(&["serve", "http", "--driver", "epoll", "--listen", "127.0.0.1:0", "--body", body]);
    let line = process.next_line().expect("it says where it listens");
    let address = line.strip_prefix("listening on ").expect("an address").to_owned();
    (process, address)
}

/// The arm is loaded in every round and its messages have a cost.
fn expect_loaded(result: &StudyResult, arm: &str) {
    let own = result.arms.iter().find(|it| it.arm == arm).unwrap_or_else(|| panic!("no {arm}"));
    assert!(own.trials > 0, "{own:?}");
}

#[test]
fn a_server_that_runs_already_is_an_arm_and_a_baseline() {
    let folder = folder("own-running");
    let (one, other) = (Server::start(&["--driver", "epoll"]), Server::start(&["--driver", "poll"]));
    let arm = |name: &str, server: &Server| format!("{name}=tcp://{}", server.address);
    let (one_arm, other_arm) = (arm("one", &one), arm("other", &other));
    let pid = one.process.pid().as_raw_nonzero().to_string();
    let named = format!("one={pid}");
    let words = ["--only-arms", "--arm", &one_arm, "--arm", &other_arm, "--arm-pid", &named];
    let (file, out) = study_file(&folder, &(study_head(6, "10min") + EPOLL));
    let dry = weir(&[&["study", &file, "--out", shown(&out), "--dry-run"], &words[..]].concat());
    for told in [
        format!("one    connections to {}, CPU of {} ({pid}) and all", one.address, super::harness::WEIR),
        format!("other  connections to {}, CPU of", other.address),
        "as named".to_owned(),
        "found by its port".to_owned(),
    ] {
        assert!(dry.stdout.contains(&told), "no {told:?}: {}", dry.stdout);
    }
    let (said, result) = judged(&folder, &(study_head(6, "10min") + EPOLL), &words);
    let told = format!("arm one runs already: the CPU of {} ({pid}) is read", super::harness::WEIR);
    assert!(said.stderr.contains(&told), "{}", said.stderr);
    let found = &result.fingerprint.running;
    assert_eq!((found["one"].found_by_port, found["other"].found_by_port), (false, true));
    let others = other.process.pid().as_raw_nonzero().get().unsigned_abs();
    assert_eq!((found["other"].pid, &found["other"].address), (Some(others), &other.address));
    for arm in ["one", "other"] {
        expect_loaded(&result, arm);
    }
    let report = fs::read_to_string(folder.join("out").join("report.md")).expect("it is written");
    for words in ["not started, pinned or stopped by Weir", "other ran before the study", &pid] {
        assert!(report.contains(words), "no {words:?}: {report}");
    }
    // They go on, and say so when they are asked to end.
    assert_eq!((one.terminate(), other.terminate()), (0, 0));
}

#[test]
fn what_is_no_server_here_is_refused_before_anything_runs() {
    let folder = folder("own-refused");
    let (file, out) = study_file(&folder, &(study_head(6, "10min") + TWO_ARMS));
    let server = Server::start(&["--driver", "epoll"]);
    let own = format!("mine=tcp://{}", server.address);
    let study = |words: &[&str]| weir(&[&["study", &file, "--out", shown(&out)], words].concat());
    // TEST-NET-1 (RFC 5737) has no hosts.
    expect_refusal(&study(&["--arm", "mine=tcp://192.0.2.1:7"]), 2, &["arm mine: ", "another machine's"]);
    expect_refusal(
        &study(&["--arm", "mine=tcp://127.0.0.1:1"]),
        13,
        &["arm mine: ", "start the server first"],
    );
    let other = format!("mine={}", std::process::id());
    let unrelated = study(&["--arm", &own, "--arm-pid", &other]);
    expect_refusal(&unrelated, 2, &["arm mine: ", "the laboratory itself is below"]);
    let http = own.replace("tcp:", "http:");
    expect_refusal(&study(&["--arm", &http]), 2, &["--arm: ", "needs tcp://HOST:PORT"]);
    let unknown = study(&["--arm", &own, "--arm-env", "yours=A=1"]);
    expect_refusal(&unknown, 2, &["--arm-env yours", "no arm of that name", "mine"]);
    let started = study(&["--arm", &own, "--arm-dir", "mine=/tmp"]);
    expect_refusal(&started, 2, &["it runs already", "`folder`"]);
    expect_refusal(
        &study(&["--arm-ready", "epoll=line:x"]),
        2,
        &["--arm-ready: ", "says itself when it listens"],
    );
    expect_refusal(&study(&["--arm-setup-timeout", "epoll=1h"]), 2, &["--arm-setup-timeout: ", "10min"]);
    let group = study(&["--arm", &own, "--arm-cgroup", "mine=/no-such.slice"]);
    expect_refusal(&group, 2, &["arm mine: ", "no control group /no-such.slice"]);
    assert!(!out.exists(), "nothing was begun");
}

#[test]
fn a_command_has_its_folder_its_variables_and_what_runs_around_it() {
    let folder = folder("own-around");
    let log = folder.join("log");
    let noting = |word: &str| format!("mine=sh -c 'echo {word} $WORD >> log'");
    let arm = format!(
        "mine=sh -c 'exec {} serve echo --driver epoll --listen 127.0.0.1:$PORT'",
        super::harness::WEIR
    );
    let (setup, cleanup) = (noting("setup"), noting("cleanup"));
    let place = format!("mine={}", shown(&folder));
    let around = [
        "--arm",
        &arm,
        "--arm-env",
        "mine=PORT={port}",
        "--arm-env",
        "mine=WORD=own",
        "--arm-dir",
        &place,
        "--arm-setup",
        &setup,
        "--arm-cleanup",
        &cleanup,
        "--arm-ready",
        "mine=line:listening on",
    ];
    let (_, result) = judged(&folder, &(study_head(6, "10min") + EPOLL), &around);
    expect_loaded(&result, "mine");
    let noted = fs::read_to_string(&log).expect("they ran");
    let lines: Vec<&str> = noted.lines().collect();
    assert!(lines.len() >= 4 && lines.chunks(2).all(|two| two == ["setup own", "cleanup own"]), "{noted}");
    // Ctrl-C, at any moment after the first start.
    fs::remove_file(&log).expect("it is there");
    let (file, out) = study_file(&folder, &(study_head(400, "1h") + EPOLL));
    let again = out.with_file_name("again");
    let mut study = Running::weir(&[&["study", &file, "--out", shown(&again)], &around[..]].concat());
    super::harness::until("the setup", || log.exists());
    study.signal(Signal::INT);
    assert_eq!(study.wait(PATIENCE), 130);
    let noted = fs::read_to_string(&log).expect("they ran");
    // A setup that was ended before it noted anything is followed by its cleanup too.
    assert!(noted.ends_with("cleanup own\n"), "{noted}");
    assert!(noted.matches("cleanup").count() >= noted.matches("setup").count(), "{noted}");
}

const MIX: &str = "\
[[request]]\npath = \"/\"\nweight = 3\n\
[[request]]\nname = \"upload\"\npath = \"/upload\"\nbody = \"hello\"\nexpect_length = 5\n\
expect_hash = \"e4cfa39a3d37be31c59609e807970799caa68a19bfaa15135f165085e01d41a65ba1e1b146aeb6bd0092b49eac214c103ccfa3a365954bbbe52f74a2b3620c94\"\n";

#[test]
fn a_load_asks_for_a_mix_and_counts_failures_by_request() {
    let folder = folder("own-mix");
    let file = folder.join("mix.toml");
    fs::write(&file, MIX).expect("it is written");
    let (_server, address) = http_server("echo");
    let url = format!("http://{address}/");
    let words = ["load", "http", &url, "--request-mix", shown(&file), "-c", "4", "-n", "160", "--json"];
    let load = || weir(&words);
    let report = |said: &Said| -> LoadReport { serde_json::from_str(&said.stdout).expect("a report") };
    let said = load();
    assert_eq!(said.code, Some(0), "{}{}", said.stderr, said.stdout);
    let whole = report(&said);
    let http = whole.http.expect("it was a load of HTTP");
    let rows: Vec<(&str, u32, u64)> =
        http.requests.iter().map(|it| (it.name.as_str(), it.weight, it.right)).collect();
    assert_eq!(rows, [("GET /", 3, 120), ("upload", 1, 40)]);
    assert_eq!((http.responses_compared, http.method.as_str()), (160, ""));
    fs::write(&file, MIX.replace("expect_length = 5", "expect_length = 6")).expect("it is written");
    let wrong = report(&load()).http.expect("it was a load of HTTP").requests;
    assert_eq!((wrong[0].right, wrong[0].failures.errors()), (120, 0));
    assert_eq!((wrong[1].right, wrong[1].failures.wrong_bytes), (0, 40));
    let shown_words = &words[..words.len() - 1];
    let table = weir(shown_words).stdout;
    assert!(table.contains("upload (weight 1): 0 right, failures: 40 wrong bytes"), "{table}");
    fs::write(&file, "[[request]]\npath = \"/\"\nweihgt = 2\n").expect("it is written");
    expect_refusal(&load(), 2, &["mix.toml:3: request.weihgt", "did you mean weight?"]);
    let twice = [&words[..], &["-X", "PUT"]].concat();
    assert_eq!(weir(&twice).code, Some(2));
    fs::write(&file, MIX).expect("it is written");
    let with_path = format!("{url}a");
    let path = ["load", "http", &with_path, "--request-mix", shown(&file)];
    expect_refusal(&weir(&path), 2, &["the paths are in the file"]);
}

#[test]
fn a_study_of_http_asks_servers_that_run_already_for_a_mix() {
    let folder = folder("own-study-mix");
    let file = folder.join("mix.toml");
    fs::write(&file, MIX).expect("it is written");
    let ((_one, first), (_other, second)) = (http_server("echo"), http_server("echo"));
    let (one, other) = (format!("one=http://{first}"), format!("other=http://{second}/"));
    let head = study_head(6, "10min").replacen("saturation", "protocol = \"http\"\nsaturation", 1);
    let words = ["--only-arms", "--arm", &one, "--arm", &other, "--request-mix", shown(&file)];
    let (_, result) = judged(&folder, &(head.clone() + EPOLL), &words);
    for arm in ["one", "other"] {
        expect_loaded(&result, arm);
    }
    assert!(result.spec.cells[0].id.contains("-mix-"), "{}", result.spec.cells[0].id);
    let [page, upload] = &result.spec.requests[..] else { panic!("{:?}", result.spec.requests) };
    assert_eq!((page.weight, upload.body.as_deref()), (3, Some("hello")));
    // In a study file it is the same, and a printed study contains it.
    let (own, _) = study_file(&folder, &(head.clone() + EPOLL + &EPOLL.replace("epoll", "poll") + MIX));
    assert_eq!(weir(&["study", &own, "--dry-run"]).code, Some(0));
    let (plain, _) = study_file(&folder, &(head + TWO_ARMS));
    let printed = weir(&["study", &plain, "--request-mix", shown(&file), "--print"]);
    assert!(printed.stdout.contains("[[request]]") && printed.stdout.contains("hello"), "{}", printed.stdout);
    let (echo, _) = study_file(&folder, &(study_head(6, "10min") + TWO_ARMS));
    let refused = weir(&["study", &echo, "--request-mix", shown(&file), "--dry-run"]);
    expect_refusal(&refused, 2, &["--request-mix: it belongs to studies of HTTP"]);
}
