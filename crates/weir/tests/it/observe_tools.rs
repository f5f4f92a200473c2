//! `weir observe` beside well-known tools, on servers of other projects: the switches of a thread compared with
//! pidstat's, and the calls of nginx and redis with the requests that wrk and redis-benchmark count.
//!
//! Tests of missing tools are skipped by name; `WEIR_REQUIRE_TOOLS=nginx,wrk` makes that a failure.

use std::{
    net::{TcpListener, TcpStream},
    path::Path,
    process::Command,
};

use rustix::process::Signal;
use weir_record::observation::{Observation, Trace};

use super::{
    harness::{PATIENCE, Running, Server, WEIR, folder, shown, stats, until},
    serve::stats_name,
};

/// Whether all of these can be started; otherwise prints the skipped test.
pub fn have(programs: &[&str]) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let required = std::env::var("WEIR_REQUIRE_TOOLS").unwrap_or_default();
    let is_there = |program: &str| std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    let lacking: Vec<&str> = programs.iter().copied().filter(|program| !is_there(program)).collect();
    for program in &lacking {
        assert!(!required.split(',').any(|name| name == *program), "{program} is required and not installed");
        println!("skipped: {program} is not installed");
    }
    lacking.is_empty()
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it has an address").port()
}

fn lines(process: &Running) -> Vec<String> {
    std::iter::from_fn(|| process.next_line()).collect()
}

fn record(process: &Running) -> Observation {
    let text = lines(process).join("\n");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}{}", process.rest_of_errors()))
}

/// Switches a second of a thread in a row of pidstat's means: `Average: 0 - 4242 499.50 0.00 |__weir-worker`.
fn of_pidstat(line: &str) -> Option<(u32, f64)> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    match words.as_slice() {
        ["Average:", _, "-", tid, voluntary, ..] => Some((tid.parse().ok()?, voluntary.parse().ok()?)),
        _ => None,
    }
}

#[test]
fn a_row_of_pidstat_is_a_thread_and_its_voluntary_switches() {
    let rows = [
        "Average:      UID      TGID       TID   cswch/s nvcswch/s  Command",
        "Average:        0      4242         -    499.50      0.00  weir",
        "Average:        0         -      4243    499.50      1.00  |__weir-worker-0",
        "12:00:01        0         -      4243    499.50      1.00  |__weir-worker-0",
    ];
    assert_eq!(rows.map(of_pidstat), [None, None, Some((4243, 499.5)), None]);
}

#[test]
fn threads_switch_as_often_as_pidstat_says() {
    /// This many messages a second; the server sleeps before each.
    const RATE: f64 = 500.0;
    /// The two windows begin and end some milliseconds apart.
    const APART_MAX: f64 = 0.02 * RATE;
    if !have(&["pidstat"]) {
        return;
    }
    let name = stats_name("observe-pidstat");
    let server = Server::start(&["--driver", "epoll", "--workers", "1", "--stats-socket", &name]);
    let pid = server.process.pid().as_raw_nonzero().to_string();
    let rate = RATE.to_string();
    let load =
        ["load", "echo", "--target", &server.address, "-c", "1", "--rate", &rate, "--arrivals", "uniform"];
    let _load = Running::weir(&[&load[..], &["-d", "60s", "--json"]].concat());
    until("the load", || stats(&name).total.receives > 100);
    let observer = Running::weir(&["observe", "-p", &pid, "-d", "2s", "--plain", "--json"]);
    let words = ["-w", "-t", "-p", &pid, "2", "1"];
    let pidstat = Running::start(Command::new("pidstat").args(words).env("LC_ALL", "C"));
    let theirs: Vec<(u32, f64)> = lines(&pidstat).iter().filter_map(|line| of_pidstat(line)).collect();
    let ours = record(&observer);
    assert!(theirs.len() > 1, "{theirs:?}");
    let mut busy = 0;
    for thread in &ours.threads {
        let per_second = thread.context_switches_voluntary as f64 * 1e9 / ours.window_ns as f64;
        let (_, said) =
            theirs.iter().find(|(tid, _)| *tid == thread.tid).expect("pidstat has the thread too");
        assert!((per_second - said).abs() <= APART_MAX, "{}: {per_second} and {said}", thread.name);
        busy += u32::from(per_second > RATE / 2.0);
    }
    assert_eq!(busy, 1, "one worker serves: {:?}", ours.threads);
}

/// A server under `weir observe --trace`, from its first call on.
pub struct Observed {
    observer: Running,
    port: u16,
}

impl Observed {
    pub fn start(command: &[&str], port: u16) -> Self {
        let observe = ["observe", "--trace", "--plain", "--json", "--"];
        let observer = Running::start(Command::new(WEIR).args(observe).args(command).env("LC_ALL", "C"));
        until("the server", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { observer, port }
    }

    /// Ends the server, and returns its calls unless this user may not trace.
    pub fn end(mut self) -> Option<Trace> {
        self.observer.signal(Signal::INT);
        let observation = record(&self.observer);
        self.observer.wait(PATIENCE);
        if observation.trace.is_none() {
            let required = std::env::var("WEIR_REQUIRE_EVIDENCE").unwrap_or_default();
            let notes = &observation.notes;
            assert!(!required.split(',').any(|rung| rung == "programs"), "WEIR_REQUIRE_EVIDENCE: {notes:?}");
            println!("skipped: {notes:?}");
        }
        observation.trace
    }
}

pub fn calls(trace: &Trace, name: &str) -> u64 {
    trace.calls.iter().find(|call| call.name == name).map_or(0, |call| call.count)
}

/// The output of a program that ended successfully.
pub fn said(command: &mut Command) -> String {
    let output = command.env("LC_ALL", "C").output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn configure_nginx(folder: &Path, port: u16) {
    let text = format!(
        "daemon off; master_process off; pid {0}/nginx.pid; error_log {0}/error.log;\n\
         events {{ worker_connections 64; }}\n\
         http {{ access_log off; client_body_temp_path {0}; proxy_temp_path {0}; fastcgi_temp_path {0};\n\
         uwsgi_temp_path {0}; scgi_temp_path {0}; keepalive_requests 100000000;\n\
         server {{ listen 127.0.0.1:{port}; location / {{ return 200 'what was asked for'; }} }} }}\n",
        shown(folder)
    );
    std::fs::write(folder.join("nginx.conf"), text).expect("a file can be written");
}

/// `12345 requests in 1.00s, 2.10MB read`.
fn of_wrk(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.trim().split_once(" requests in ")?.0.parse().ok())
}

#[test]
fn nginx_under_wrk_receives_and_answers_each_request_once() {
    /// Each connection may have a request in flight when wrk stops counting.
    const CONNECTIONS: u64 = 8;
    if !have(&["nginx", "wrk"]) {
        return;
    }
    let (folder, port) = (folder("observe-nginx"), free_port());
    configure_nginx(&folder, port);
    let config = folder.join("nginx.conf");
    let server = Observed::start(&["nginx", "-p", shown(&folder), "-c", shown(&config)], port);
    let url = format!("http://127.0.0.1:{}/", server.port);
    let connections = CONNECTIONS.to_string();
    let text = said(Command::new("wrk").args(["-t", "1", "-c", &connections, "-d", "1", &url]));
    let requests = of_wrk(&text).unwrap_or_else(|| panic!("{text}"));
    let Some(trace) = server.end() else { return };
    assert!(requests > 100, "{text}");
    let (received, sent) = (calls(&trace, "recvfrom"), calls(&trace, "writev"));
    assert!((requests..=requests + CONNECTIONS).contains(&sent), "{requests} requests, {sent} of writev");
    assert!(received >= requests, "{requests} requests, {received} of recvfrom");
    assert_eq!((trace.threads_lost, trace.misses), (0, 0));
}

#[test]
fn redis_under_its_benchmark_answers_each_request_once() {
    const REQUESTS: u64 = 20_000;
    /// Its log, the benchmark's own requests, and its own writes.
    const BESIDE_MAX: u64 = 100;
    if !have(&["redis-server", "redis-benchmark"]) {
        return;
    }
    let (folder, port) = (folder("observe-redis"), free_port());
    let number = port.to_string();
    let server = [
        "redis-server",
        "--port",
        &number,
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--appendonly",
        "no",
        "--dir",
        shown(&folder),
    ];
    let server = Observed::start(&server, port);
    let requests = REQUESTS.to_string();
    let load = ["-p", &number, "-n", &requests, "-c", "4", "-t", "ping_mbulk", "-q"];
    let text = said(Command::new("redis-benchmark").args(load));
    assert!(text.contains("PING"), "{text}");
    let Some(trace) = server.end() else { return };
    let (received, sent) = (calls(&trace, "read"), calls(&trace, "write"));
    assert!((REQUESTS..=REQUESTS + BESIDE_MAX).contains(&sent), "{sent} of write");
    assert!(received >= REQUESTS, "{received} of read");
    assert_eq!((trace.threads_lost, trace.misses), (0, 0));
}
