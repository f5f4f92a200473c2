//! `weir dashboard` as a process: its address, its refusals, and how it ends.

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
};

use rustix::{
    fs::{FlockOperation, flock},
    process::Signal,
};
use weir_lab::run_locks::Held;

use super::{
    harness::{
        PATIENCE, Running, Server, TWO_ARMS, WEIR, every_server, expect_refusal, folder, shown, study_head,
        until, weir,
    },
    study_earlier::store_run,
};

/// The page at `/` of a dashboard.
fn first_page(address: &str) -> String {
    page(address, "/")
}

/// The page at a path of a dashboard.
fn page(address: &str, path: &str) -> String {
    ask(address, &format!("GET {path} HTTP/1.1"))
}

/// The answer to a request that begins with these lines.
fn ask(address: &str, lines: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    write!(stream, "{lines}\r\nHost: {address}\r\nConnection: close\r\n\r\n").expect("it takes a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer in time");
    answer
}

#[test]
fn it_says_where_it_listens_and_ends_at_either_signal() {
    let results = folder("dashboard");
    let shown = results.display().to_string();
    for signal in [Signal::INT, Signal::TERM] {
        let mut dashboard = Running::weir(&["dashboard", &shown, "--listen", "127.0.0.1:0", "--lang", "ko"]);
        let line = dashboard.next_line().expect("it says where");
        let (address, rest) =
            line.strip_prefix("http://").and_then(|rest| rest.split_once("/ ")).expect("an address");
        assert_eq!(rest, format!("에서 {shown} 폴더의 실험을 볼 수 있습니다"));
        let answer = first_page(address);
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("<html lang=\"ko\""), "{answer}");
        dashboard.signal(signal);
        assert_eq!(dashboard.wait(PATIENCE), 0);
    }
}

#[test]
fn the_locale_is_the_language_unless_another_is_given() {
    let results = folder("dashboard-locale");
    for (environment, language) in
        [("LC_ALL= LANG=zh_CN.UTF-8", "zh-Hans"), ("LC_ALL=C LANG=ko_KR.UTF-8", "en")]
    {
        let line =
            format!("{environment} exec \"$WEIR\" dashboard {} --listen 127.0.0.1:0", results.display());
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &line]).env("WEIR", super::harness::WEIR);
        let dashboard = Running::start(&mut command);
        let line = dashboard.next_line().expect("it says where");
        let address = line.trim_start_matches("http://").split('/').next().unwrap_or_default();
        let answer = first_page(address);
        assert!(answer.contains(&format!("<html lang=\"{language}\"")), "{answer}");
    }
}

#[test]
fn runs_of_a_study_are_pooled_on_a_page_and_a_report_says_where_its_run_stands() {
    let results = folder("dashboard-pool");
    let text = study_head(12, "2min") + TWO_ARMS;
    for (seed, cost) in [(1, 4.0), (2, 4.05), (3, 3.95)] {
        store_run(&results.join(format!("run-{seed}")), &text, seed, cost);
    }
    let words = ["dashboard", shown(&results), "--listen", "127.0.0.1:0", "--lang", "en"];
    let dashboard = Running::weir(&words);
    let line = dashboard.next_line().expect("it says where");
    let address = line.trim_start_matches("http://").split('/').next().expect("an address");
    assert!(first_page(address).contains("href=\"/pool?study=tiny\""), "the list leads there");
    let pooled = page(address, "/pool?study=tiny");
    assert!(pooled.starts_with("HTTP/1.1 200 OK") && pooled.contains("3 of 3 runs"), "{pooled}");
    assert!(pooled.contains("run-2") && !pooled.contains(shown(&results)), "names, and no path");
    let other = page(address, "/pool?study=other");
    assert!(other.starts_with("HTTP/1.1 404 ") && other.contains("nothing to pool"), "{other}");
    assert!(
        page(address, "/study/run-3").contains("earlier runs on this machine (2)"),
        "its place among them"
    );
}

/// The answer to a program that requests an action.
fn act(address: &str, path: &str, form: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    let length = form.len();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: {length}\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nConnection: close\r\n\r\n{form}"
    )
    .expect("it takes a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer in time");
    answer
}

const TOKEN: &str = "correct-horse-battery-staple";

fn token_file(folder: &Path, mode: u32) -> String {
    let path = folder.join("token");
    fs::write(&path, TOKEN).expect("a file can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("its mode can be set");
    shown(&path).to_owned()
}

/// Whether a session works on a study of the folder.
fn is_worked_on(results: &Path) -> bool {
    let held = Held::now();
    let entries = fs::read_dir(results).expect("a folder").flatten();
    entries.map(|entry| entry.path()).any(|path| held.holds(&path))
}

#[test]
fn a_study_that_was_started_here_ends_with_the_dashboard_however_that_ends() {
    for signal in [Signal::TERM, Signal::KILL] {
        let root = folder(&format!("dashboard-control-{}", signal.as_raw()));
        let (token, results) = (token_file(&root, 0o600), root.join("results"));
        fs::create_dir(&results).expect("a folder can be made");
        fs::write(root.join("long.toml"), study_head(400, "1h") + TWO_ARMS).expect("a file can be written");
        let words = ["dashboard", shown(&results), "--listen", "127.0.0.1:0", "--token-file", &token];
        let mut dashboard = Running::weir(&[&words[..], &["--studies", shown(&root)]].concat());
        let line = dashboard.next_line().expect("it says where");
        let address = line.trim_start_matches("http://").split('/').next().unwrap_or_default().to_owned();
        let started = act(&address, "/start", "study=long.toml");
        assert!(started.starts_with("HTTP/1.1 303 ") && started.contains("/live"), "{started}");
        until("a session", || is_worked_on(&results));
        assert!(act(&address, "/start", "study=long.toml").starts_with("HTTP/1.1 409 "));
        dashboard.signal(signal);
        let code = dashboard.wait(PATIENCE);
        assert_eq!(code, if signal == Signal::TERM { 0 } else { -9 });
        until("the end of the session", || !is_worked_on(&results));
    }
}

#[test]
fn running_servers_and_recorded_observations_are_pages_where_it_was_told_of_them() {
    let root = folder("dashboard-watches");
    let (results, records) = (root.join("results"), root.join("records"));
    for folder in [&results, &records] {
        fs::create_dir(folder).expect("a folder can be made");
    }
    let name = format!("@weir-it-dashboard-{}", std::process::id());
    let server = Server::start(&["--driver", "epoll", "--stats-socket", &name]);
    let (pid, file) = (server.process.pid().as_raw_nonzero().to_string(), records.join("one two.json"));
    let observed = weir(&["observe", "--pid", &pid, "--duration", "100ms", "--record", shown(&file)]);
    assert_eq!(observed.code, Some(0), "{}", observed.stderr);
    fs::write(records.join("odd.json"), "{}").expect("a file can be written");
    fs::write(root.join("outside.json"), "{}").expect("a file can be written");
    symlink(&file, records.join("link.json")).expect("a link can be made");

    let words = ["dashboard", shown(&results), "--listen", "127.0.0.1:0", "--lang", "en"];
    let watched = ["--stats", &name, "--records", shown(&records)];
    let dashboard = Running::weir(&[&words[..], &watched].concat());
    let line = dashboard.next_line().expect("it says where");
    let address = line.trim_start_matches("http://").split('/').next().unwrap_or_default().to_owned();
    let first = first_page(&address);
    assert!(first.contains("href=\"/top\"") && first.contains("href=\"/observe\""), "{first}");
    let top = page(&address, "/top");
    assert!(
        top.contains("ECHO") && top.contains("cswch/s") && top.contains(&format!("data-key=\"{pid}\"")),
        "{top}"
    );
    assert!(page(&address, "/top?lang=ko").contains("weir top과"));
    let list = page(&address, "/observe");
    assert!(list.contains("/observe?record=one%20two.json") && !list.contains("link.json"), "{list}");
    let shown = page(&address, "/observe?record=one%20two.json&lang=zh");
    assert!(shown.starts_with("HTTP/1.1 200") && shown.contains("weir observe：") && shown.contains("<nav"));
    assert!(page(&address, "/observe?record=odd.json").contains("is no record of weir observe"));
    for hidden in ["../outside.json", "link.json", "nothing.json", ""] {
        let answer = page(&address, &format!("/observe?record={hidden}"));
        assert!(answer.starts_with("HTTP/1.1 404"), "{hidden}: {answer}");
    }
    assert_eq!(server.terminate(), 0);
    assert!(page(&address, "/top").starts_with("HTTP/1.1 200"), "a server that has ended is a gap");
}

#[test]
fn every_server_of_this_user_is_shown_where_that_was_asked_for_and_observed_while_somebody_looks() {
    let _every_server = every_server();
    let root = folder("dashboard-auto");
    let token = token_file(&root, 0o600);
    let words = ["dashboard", shown(&root), "--listen", "127.0.0.1:0", "--lang", "en", "--stats", "auto"];
    let dashboard = Running::weir(&[&words[..], &["--token-file", &token]].concat());
    let line = dashboard.next_line().expect("it says where");
    let address = line.trim_start_matches("http://").split('/').next().unwrap_or_default().to_owned();
    // The folder did not exist when the dashboard began.
    let server = Server::start(&["--driver", "epoll"]);
    let pid = server.process.pid().as_raw_nonzero();
    let link = format!("/observe?pid={pid}");
    until("the server", || page(&address, "/top").contains(&link));
    assert!(page(&address, "/observe").contains(&link));
    until("figures", || {
        let seen = page(&address, &link);
        assert!(seen.starts_with("HTTP/1.1 200") && !seen.contains("refresh:"), "{seen}");
        assert!(seen.contains("src=\"/current.js\""), "{seen}");
        seen.contains("serve echo") && seen.contains("<table")
    });
    assert!(page(&address, &format!("{link}&lang=ko")).contains("<html lang=\"ko\""));

    let own = format!("/observe?pid={}", std::process::id());
    let refused = page(&address, &own);
    assert!(refused.starts_with("HTTP/1.1 403") && refused.contains("need the token"), "{refused}");
    let with = |token: &str, path: &str| {
        ask(&address, &format!("GET {path} HTTP/1.1\r\nAuthorization: Bearer {token}"))
    };
    assert!(with("wrong-token-of-some-length", &own).starts_with("HTTP/1.1 403"));
    assert!(with(TOKEN, &own).starts_with("HTTP/1.1 200"));
    for nothing in ["4294967295", "-1", "x", ""] {
        let answer = with(TOKEN, &format!("/observe?pid={nothing}"));
        assert!(answer.starts_with("HTTP/1.1 404"), "{nothing}: {answer}");
    }
    assert_eq!(server.terminate(), 0);
    until("its absence", || !page(&address, "/top").contains(&link));
}

#[test]
fn beside_a_session_of_another_pid_namespace_no_study_is_started() {
    let root = folder("dashboard-namespace");
    let (token, results) = (token_file(&root, 0o600), root.join("results"));
    let run = results.join("elsewhere");
    fs::create_dir_all(&run).expect("a folder can be made");
    fs::write(run.join("study.db"), "").expect("a file can be written");
    let unshare = ["--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc"];
    let tried = std::process::Command::new("unshare").args(unshare).arg("true").output();
    if !tried.as_ref().is_ok_and(|tried| tried.status.success()) {
        println!("skipped: this machine makes no PID namespace: {tried:?}");
        return;
    }
    let session = fs::File::open(&run).expect("the folder can be opened");
    flock(&session, FlockOperation::NonBlockingLockExclusive).expect("nobody else has it");
    let mut command = std::process::Command::new("unshare");
    command.args(unshare).arg(WEIR).args(["dashboard", shown(&results), "--listen", "127.0.0.1:0"]);
    let dashboard = Running::start(command.args(["--token-file", &token]));
    let line = dashboard.next_line().expect("it says where");
    let address = line.trim_start_matches("http://").split('/').next().unwrap_or_default().to_owned();
    assert!(!first_page(&address).contains(">running<"), "the session is in another namespace");
    assert!(act(&address, "/start", "study=quick").starts_with("HTTP/1.1 409 "));
    assert!(fs::read_dir(&results).expect("a folder").count() == 1, "nothing was started");
}

#[test]
fn what_it_cannot_show_is_refused_before_it_listens() {
    let results = folder("dashboard-unshown");
    let shown = results.display().to_string();
    let run = |words: &[&str]| weir(&[&["dashboard", &shown, "--listen", "127.0.0.1:0"], words].concat());
    expect_refusal(&run(&["--stats", "plain"]), 2, &["--stats plain", "@NAME or auto"]);
    let many: Vec<String> = (0..65).map(|number| format!("--stats=@{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    expect_refusal(&run(&many), 2, &["65 targets; at most 64"]);
    expect_refusal(&run(&["--records", "/nowhere"]), 2, &["--records /nowhere"]);
}

#[test]
fn what_keeps_it_from_acting_safely_keeps_it_from_starting() {
    let results = folder("dashboard-token");
    let (shown, open) = (results.display().to_string(), token_file(&results, 0o644));
    let run = |words: &[&str]| {
        weir(&[&["dashboard", &shown, "--listen", "127.0.0.1:0", "--token-file"], words].concat())
    };
    expect_refusal(&run(&[&open]), 2, &["--token-file", "mode 644", "chmod 600"]);
    expect_refusal(&run(&["/nowhere/token"]), 2, &["--token-file /nowhere/token", "umask 077"]);
    let token = token_file(&results, 0o600);
    expect_refusal(&run(&[&token, "--origin", "lab.example"]), 2, &["--origin lab.example", "http://lab"]);
    expect_refusal(&run(&[&token, "--studies", "/nowhere"]), 2, &["--studies /nowhere"]);
    let wide = ["dashboard", &shown, "--listen", "0.0.0.0:0", "--token-file", &token];
    expect_refusal(&weir(&wide), 2, &["0.0.0.0:0", "add --origin"]);
    let without = weir(&["dashboard", &shown, "--studies", &shown]);
    assert_eq!(without.code, Some(2));
    assert!(without.stderr.contains("--token-file"), "{}", without.stderr);
}

#[test]
fn what_keeps_it_from_starting_is_told_in_the_language_that_was_given() {
    let results = folder("dashboard-refused-in");
    let (shown, open) = (results.display().to_string(), token_file(&results, 0o644));
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("it listens").to_string();
    for (language, in_use, others) in
        [("ko", "이미 사용 중인 주소입니다", "다른 사용자도"), ("zh", "已被占用", "对其他用户开放")]
    {
        let run = |words: &[&str]| weir(&[&["dashboard", &shown, "--lang", language], words].concat());
        expect_refusal(&run(&["--listen", &address]), 1, &[in_use, "--listen 127.0.0.1:"]);
        expect_refusal(&run(&["--token-file", &open]), 2, &["--token-file", others, "644", "chmod 600"]);
    }
}

#[test]
fn what_it_cannot_do_is_told_in_a_sentence() {
    let results = folder("dashboard-refused");
    let shown = results.display().to_string();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("it listens").to_string();
    expect_refusal(
        &weir(&["dashboard", &shown, "--listen", &address]),
        1,
        &["is in use", "--listen 127.0.0.1:"],
    );
    expect_refusal(
        &weir(&["dashboard", &shown, "--listen", "3000"]),
        2,
        &["--listen 3000", "127.0.0.1:3000"],
    );
    expect_refusal(&weir(&["dashboard", &shown, "--lang", "fr"]), 2, &["fr", "en, ko or zh"]);
    expect_refusal(&weir(&["dashboard", "/nowhere/at/all"]), 2, &["/nowhere/at/all is not there"]);
    std::fs::write(results.join("study.db"), "").expect("a file can be written");
    let listen = ["--listen", "127.0.0.1:0"];
    expect_refusal(&weir(&[&["dashboard", &shown], &listen[..]].concat()), 2, &["one study", "weir report"]);
    // Without studies yet, the folder of the first one need not exist.
    let line = format!("cd {shown} && exec \"$0\" dashboard --listen 127.0.0.1:0");
    let mut command = std::process::Command::new("sh");
    let mut dashboard = Running::start(command.args(["-c", &line, WEIR]).env("LC_ALL", "C"));
    let line = dashboard.next_line().unwrap_or_else(|| panic!("{}", dashboard.rest_of_errors()));
    assert!(line.ends_with("/ shows the studies in weir-results"), "{line}");
    dashboard.signal(Signal::INT);
    assert_eq!(dashboard.wait(PATIENCE), 0);
}
