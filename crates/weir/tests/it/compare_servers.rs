//! `weir compare --serve`: servers that are up together under a load, how they start and end, and that nothing of them
//! stays.

use std::{
    fs,
    net::{Ipv4Addr, TcpListener},
    path::Path,
    process::Command,
    thread,
};

use rustix::process::Signal;
use weir_record::{
    commands::{CommandEnd, CommandFinding, CommandReport, CountSource, RunPhase, WorkUnit},
    metric::Metric,
};

use super::harness::{PATIENCE, Running, Said, WEIR, expect_refusal, folder, shown, until, weir};

/// A server of two pipes in its folder that counts to a number for each line that it reads.
fn counter(turns: u32) -> String {
    let work = format!("i=0; while [ $i -lt {turns} ]; do i=$((i+1)); done");
    served(&format!("while read line < {{dir}}/in; do {work}; echo done > {{dir}}/out; done"))
}

/// The same with other work.
fn served(work: &str) -> String {
    format!("sh -c 'mkfifo {{dir}}/in {{dir}}/out; echo up and ready; {work}'")
}

/// Sends a line, waits for the answer, and reports two units of work.
const LOAD: &str = "sh -c 'echo go > {dir}/in; read answer < {dir}/out; echo did: 2'";

/// Flags of such a comparison: six pairs, each with a start.
const FLAGS: [&str; 12] = [
    "--ready-line",
    "and ready",
    "--count-regex",
    "did: ([0-9]+)",
    "--runs",
    "6",
    "--settle",
    "10ms",
    "--seed",
    "7",
    "--load",
    LOAD,
];

fn compared(words: &[&str]) -> Said {
    weir(&[&["compare", "--lang", "en"], words].concat())
}

/// Compares servers, with these additional flags.
fn with_servers(old: &str, new: &str, flags: &[&str]) -> Said {
    compared(&[&FLAGS[..], &["--serve", old, "--serve", new, "-n", "old", "-n", "new"], flags].concat())
}

fn report(text: &str) -> CommandReport {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn has(report: &CommandReport, is_it: fn(&CommandFinding) -> bool) -> bool {
    report.comparisons[0].findings.iter().any(is_it)
}

#[test]
fn a_server_that_works_twice_as_much_costs_more_for_each_unit_of_work() {
    let folder = folder("servers-twice");
    let [json, csv] = ["all.json", "runs.csv"].map(|name| folder.join(name));
    let (old, new) = (counter(20_000), counter(40_000));
    let flags = [
        "--fail-if",
        "cpu ratio > 1.03",
        "--export-json",
        shown(&json),
        "--export-csv",
        shown(&csv),
        "--between",
        "test -p {dir}/in",
        "--setup",
        "touch {dir}/set-up",
    ];
    let said = with_servers(&old, &new, &flags);
    assert_eq!(said.code, Some(10), "{}{}", said.stdout, said.stderr);
    assert!(said.stdout.starts_with("costs more: new uses "), "{}", said.stdout);
    let first = said.stdout.lines().next().unwrap_or_default();
    assert!(first.contains("CPU time per unit of work than old"), "{first}");
    assert!(said.stdout.contains("which is one unit: 1; seed 7"), "{}", said.stdout);
    assert!(said.stdout.lines().count() <= 24, "{}", said.stdout);
    let report = report(&fs::read_to_string(&json).expect("it was written"));
    let servers = report.settings.servers.as_ref().expect("servers were compared");
    assert_eq!(servers.count, CountSource::Regex("did: ([0-9]+)".to_owned()));
    let comparison = &report.comparisons[0];
    assert_eq!(
        (comparison.ended, comparison.pairs_done),
        (CommandEnd::Complete, 6),
        "{:?}",
        comparison.findings
    );
    let of = |phase| comparison.runs.iter().filter(|run| run.phase == phase).count();
    assert_eq!((of(RunPhase::First), of(RunPhase::Warmup), of(RunPhase::Measured)), (3, 18, 18));
    assert!(comparison.runs.iter().all(|run| run.cost.work == Some(2) && run.load.is_some()));
    let has_row = |metric| comparison.effects.comparisons().any(|row| row.metric == metric);
    assert!(has_row(Metric::CommandThroughput) && has_row(Metric::CommandMemoryMax));
    let rows = fs::read_to_string(&csv).expect("it was written").lines().count();
    assert_eq!(rows, 1 + comparison.runs.len());
}

#[test]
fn servers_of_weir_are_loaded_by_weir_and_its_messages_are_counted() {
    let serve = format!("{WEIR} serve echo --driver epoll --listen 127.0.0.1:{{port}}");
    let load = format!("{WEIR} load echo --target 127.0.0.1:{{port}} -c 2 -n 2000 --json");
    let words = ["--serve", &serve, "--serve", &serve, "--load", &load, "--runs", "6", "--export-json", "-"];
    let said = compared(&words);
    assert!(matches!(said.code, Some(0 | 11)), "{}{}", said.stdout, said.stderr);
    let report = report(&said.stdout);
    let servers = report.settings.servers.as_ref().expect("servers were compared");
    assert_eq!(
        (&servers.count, servers.unit),
        (&CountSource::Tool("weir load".to_owned()), WorkUnit::Message)
    );
    assert!(report.comparisons[0].runs.iter().all(|run| run.cost.work == Some(2_000)), "{}", said.stderr);
    assert!(has(&report, |it| matches!(it, CommandFinding::SameCommands { .. })));
}

#[test]
fn a_server_that_does_not_start_or_ends_is_named_with_what_it_wrote() {
    let right = counter(2_000);
    let broken = "sh -c 'mkfifo {dir}/in; echo no such option >&2; exit 3'";
    let said = with_servers(&right, broken, &[]);
    assert_eq!(said.code, Some(13), "{}{}", said.stdout, said.stderr);
    assert!(said.stdout.starts_with("not comparable: new was not compared with old"), "{}", said.stdout);
    assert!(
        said.stdout.contains("ended before it was ready (exit status 3): no such option"),
        "{}",
        said.stdout
    );
    let said = with_servers(broken, &right, &[]);
    assert_eq!(said.code, Some(14), "{}{}", said.stdout, said.stderr);
    let late =
        with_servers(&right, "sh -c 'echo in {dir}; exec tail -f /dev/null'", &["--ready-timeout", "5s"]);
    assert_eq!(late.code, Some(13), "{}{}", late.stdout, late.stderr);
    assert!(late.stdout.contains("no line with 'and ready'; --ready-timeout"), "{}", late.stdout);
    // It answers three times.
    let answer = "read line < {dir}/in; echo done > {dir}/out";
    let dies =
        served(&format!("{answer}; {answer}; {answer}; read line < {{dir}}/in; echo oh no; kill -9 $$"));
    // A start has a warm-up and three pairs.
    let flags =
        ["--serve", &right, "--serve", &dies, "-n", "old", "-n", "new", "--runs", "24", "--load", LOAD];
    let said = compared(&[&FLAGS[..4], &flags].concat());
    assert_eq!(said.code, Some(12), "{}{}", said.stdout, said.stderr);
    assert!(said.stdout.contains("new ended while it was compared (signal 9)"), "{}", said.stdout);
    assert!(said.stdout.contains("oh no"), "{}", said.stdout);
}

#[test]
fn servers_that_need_the_same_thing_are_named_with_the_way_out() {
    let folder = folder("servers-lock");
    let lock = folder.join("lock");
    let locks = format!("mkdir {0} || exit 1; trap \"rmdir {0}\" EXIT TERM; ", lock.display());
    let work = "while read line < {dir}/in; do echo done > {dir}/out; done & wait";
    let server = format!("sh -c 'mkfifo {{dir}}/in {{dir}}/out; {locks} echo up and ready; {work}'");
    let said = with_servers(&counter(2_000), &server, &[]);
    assert!(matches!(said.code, Some(0 | 11)), "it has the lock alone: {}{}", said.stdout, said.stderr);
    let said = with_servers(&server, &counter(2_000), &[]);
    assert_eq!(said.code, Some(14), "the baseline has two: {}{}", said.stdout, said.stderr);
    assert!(said.stdout.contains("starts alone and not beside the other servers"), "{}", said.stdout);
    assert!(said.stdout.contains("{port} and {dir}"), "{}", said.stdout);
}

#[test]
fn a_load_that_fails_or_says_no_number_or_has_no_end_is_named() {
    let right = counter(2_000);
    // A busy machine needs time for the loads that end.
    for (load, limit, told) in [
        ("sh -c 'echo refused >&2; exit 2 # {dir}'", "60s", "failed in 1 of 1 runs (exit status 2)"),
        (
            "sh -c 'echo go > {dir}/in; read answer < {dir}/out'",
            "60s",
            "said in 1 of 1 runs no number of what it did",
        ),
        ("sh -c 'echo {dir}; exec tail -f /dev/null'", "300ms", "no end within"),
    ] {
        let flags = ["--load", load, "--limit", limit];
        let words = [&FLAGS[..10], &["--serve", &right, "--serve", &right], &flags].concat();
        let said = compared(&words);
        assert_eq!(said.code, Some(14), "{load}: {}{}", said.stdout, said.stderr);
        assert!(said.stdout.contains(told), "{load}: {}", said.stdout);
    }
}

/// Processes that servers named in a file: each appends its number and its folder.
fn named(file: &Path) -> Vec<(String, String)> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let pair = |line: &str| line.split_once(' ').map(|(one, other)| (one.to_owned(), other.to_owned()));
    text.lines().filter_map(pair).collect()
}

#[test]
fn nothing_of_servers_is_left_when_weir_is_interrupted_or_killed() {
    for (signal, code) in [(Signal::INT, 130_i32), (Signal::KILL, -9)] {
        let folder = folder(&format!("servers-end-{}", code.abs()));
        let list = folder.join("servers");
        let server = served(&format!(
            "echo $$ {{dir}} >> {}; sh -c \"while read line < {{dir}}/in; do echo done > {{dir}}/out; done\"",
            list.display()
        ));
        let words = ["compare", "--lang", "en", "--serve", &server, "--serve", &server];
        let words = [&words[..], &FLAGS[..4], &["--runs", "10000", "--load", LOAD]].concat();
        let mut running = Running::weir(&words);
        let planned = running.error_line_with("10000 pairs");
        assert!(planned.starts_with("10000 pairs"), "{planned}");
        running.signal(signal);
        assert_eq!(running.wait(PATIENCE), code);
        let servers = named(&list);
        assert!(servers.len() >= 3, "{servers:?}");
        for (process, data) in servers {
            let is_gone = || !Path::new(&format!("/proc/{process}")).exists() && !Path::new(&data).exists();
            until(&format!("the end of {process} with {data}"), is_gone);
        }
    }
}

/// A named pipe: a reader waits for a writer.
fn fifo(file: &Path) -> String {
    let made = Command::new("mkfifo").arg(file).status().expect("coreutils are everywhere");
    assert!(made.success());
    shown(file).to_owned()
}

#[test]
fn the_folder_of_servers_goes_when_weir_is_killed_in_the_first_setup() {
    let folder = folder("servers-setup");
    let (told, temporary) = (fifo(&folder.join("told")), folder.join("temporary"));
    fs::create_dir(&temporary).expect("a folder can be made");
    let setup = format!("sh -c 'echo {{dir}} > {told}; exec tail -f /dev/null'");
    let server = counter(2_000);
    let words = ["compare", "--lang", "en", "--serve", &server, "--serve", &server, "--setup", &setup];
    let words = [&words[..], &FLAGS].concat();
    let mut running = Running::start(Command::new(WEIR).args(words).env("TMPDIR", &temporary));
    let data = fs::read_to_string(&told).expect("the setup writes it");
    assert!(Path::new(data.trim()).starts_with(&temporary), "{data}");
    assert!(Path::new(data.trim()).is_dir(), "{data}");
    running.signal(Signal::KILL);
    assert_eq!(running.wait(PATIENCE), -9);
    let is_empty = || fs::read_dir(&temporary).expect("it is ours").next().is_none();
    until("the end of the folder", is_empty);
}

/// Takes the port of each setup, as many times as it is told, and lets the setup end. Ends when the pipe says so.
fn takes_ports(asks: String, answers: String, times: usize) -> thread::JoinHandle<usize> {
    thread::spawn(move || {
        let mut taken = Vec::new();
        loop {
            let text = fs::read_to_string(&asks).expect("a pipe can be read");
            let Ok(port) = text.trim().parse::<u16>() else { return taken.len() };
            if taken.len() < times {
                taken.push(TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("nobody else takes it"));
            }
            fs::write(&answers, "go on\n").expect("the setup waits for it");
        }
    })
}

#[test]
fn a_server_whose_port_another_process_takes_starts_again_on_another_port() {
    let folder = folder("servers-port");
    let [asks, answers] = ["asks", "answers"].map(|name| fifo(&folder.join(name)));
    let setup = format!("sh -c 'echo {{port}} > {asks}; read answer < {answers}'");
    let serve = format!("{WEIR} serve echo --driver epoll --listen 127.0.0.1:{{port}}");
    let load = format!("{WEIR} load echo --target 127.0.0.1:{{port}} -c 2 -n 200 --json");
    let words = ["--serve", &serve, "--serve", &serve, "--load", &load, "--runs", "6", "--setup", &setup];
    let said_with = |taken: usize| {
        let taker = takes_ports(asks.clone(), answers.clone(), taken);
        let said = compared(&[&words[..], &["--ready-line", "listening on"]].concat());
        fs::write(&asks, "over\n").expect("the other end reads");
        assert_eq!(taker.join().expect("it does not panic"), taken);
        said
    };
    let said = said_with(3);
    assert!(matches!(said.code, Some(0 | 11)), "{}{}", said.stdout, said.stderr);
    let said = said_with(4);
    assert!(matches!(said.code, Some(13 | 14)), "{}{}", said.stdout, said.stderr);
}

#[test]
fn mistakes_about_servers_are_refused_before_anything_starts() {
    let one = ["--serve", "a {port}", "--serve", "b {port}"];
    let with = |more: &[&'static str]| [&one[..], &["--load", "true {port}"], more].concat();
    for (words, there) in [
        (one.to_vec(), "--serve needs a load: add --load"),
        (vec!["a", "b", "--load", "true {port}"], "--load is about servers; write --serve before"),
        (vec!["a", "b", "--settle", "1s"], "--settle is about servers"),
        (with(&["c"]), "\"c\" is a command that ends"),
        (vec!["--serve", "a", "--serve", "b {port}", "--load", "true {port}"], "--serve \"a\": write {port}"),
        (
            vec!["--serve", "a {port}", "--serve", "b {port}", "--load", "true"],
            "--load \"true\": write {port}",
        ),
        (
            vec!["--serve", "a {dir}", "--serve", "b {port}", "--load", "true {dir}"],
            "has no {port}, so weir cannot see",
        ),
        (with(&["--prepare", "true"]), "--prepare is not for servers: write --between"),
        (with(&["--input", "/dev/null"]), "--input is not for servers"),
        (with(&["--output", "null"]), "--output is not for servers"),
        (with(&["--show-output"]), "--show-output is not for servers"),
        (with(&["--count-regex", "[0-9]+"]), "has 0 groups; put round brackets around the number"),
        (with(&["--count-regex", "(a"]), "--count-regex"),
        (with(&["--count-json", "totals"]), "write a pointer such as /totals/count"),
        (with(&["-L", "port", "1,2"]), "{port} is what weir puts in"),
        (with(&["--pairs-per-start", "4", "--runs", "20"]), "is 5 starts, and fewer than 6"),
        (with(&["--pairs-per-start", "0"]), "--pairs-per-start 0: write 1 to 1000"),
        (vec!["--serve", "a {port}", "--load", "true {port}"], "one command alone"),
        (
            vec!["--serve", "a {port}", "--serve", "b {port}", "--load", "/no/load {port}"],
            "--load \"/no/load {port}\": there is no program /no/load",
        ),
        (with(&["--serve", "c 'd {port}"]), "--serve \"c 'd {port}\": a quote is open"),
    ] {
        expect_refusal(&weir(&[&["compare", "--lang", "en"], &words[..]].concat()), 2, &[there]);
    }
}
