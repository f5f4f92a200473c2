//! `weir dashboard` as a process: where it says that it listens, what it refuses, and how it ends.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
};

use rustix::process::Signal;

use super::harness::{PATIENCE, Running, expect_refusal, folder, shell, weir};

/// The page at `/` of a dashboard.
fn first_page(address: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    write!(stream, "GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")
        .expect("it takes a request");
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
        assert_eq!(rest, format!("shows the studies in {shown}"));
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
    // Without studies yet, the folder of the first one need not be there.
    let said = shell(&format!("cd {shown} && timeout -s INT 5 \"$WEIR\" dashboard --listen 127.0.0.1:0"));
    assert!(said.stdout.ends_with("/ shows the studies in weir-results\n"), "{}{}", said.stdout, said.stderr);
}
