//! Observations to their ends: the content of the report, and that nothing is left of the observer.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::Path,
};

use rustix::process::Signal;
use weir_evidence::ladder::strace::Strace;
use weir_record::observation::{Ending, Note, Observation, Trace};

use super::{
    harness::{PATIENCE, Running, Server, WEIR, folder, shown, stats, until, weir},
    observe_tools::have,
    serve::stats_name,
};

fn number(process: &Running) -> String {
    process.pid().as_raw_nonzero().to_string()
}

fn record(file: &Path) -> Observation {
    let text = fs::read_to_string(file).expect("it is written");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The programs' counts, unless this user may not load them.
pub fn traced(observation: &Observation) -> Option<&Trace> {
    if observation.trace.is_none() {
        let required = std::env::var("WEIR_REQUIRE_EVIDENCE").unwrap_or_default();
        let notes = &observation.notes;
        assert!(!required.split(',').any(|rung| rung == "programs"), "WEIR_REQUIRE_EVIDENCE: {notes:?}");
        println!("skipped: {notes:?}");
    }
    observation.trace.as_ref()
}

/// Words with one space between them, without line breaks.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn echo_once(stream: &mut TcpStream) {
    let mut message = [7; 100];
    stream.write_all(&message).and_then(|()| stream.read_exact(&mut message)).expect("it echoes");
}

/// Echoes a few times, when strace counts calls. Each of them is stopped twice, so on a busy machine many of them would
/// take longer than strace looks.
fn echo_under_strace(server: &Server) {
    const ECHOES: usize = 5;
    until("strace at work", || counts_calls(&number(&server.process)));
    let mut stream = server.connect();
    (0..ECHOES).for_each(|_| echo_once(&mut stream));
}

/// The value of a line in a status of /proc, which begins with this name; empty if it is gone.
fn status(place: &str, name: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{place}/status")).unwrap_or_default();
    text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_owned()
}

/// The threads of a process, as places in /proc.
fn threads(pid: &str) -> Vec<String> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("it lives").flatten();
    threads.map(|thread| format!("{pid}/task/{}", thread.file_name().display())).collect()
}

/// Whether strace counts the calls of an idle process. A thread has a tracer a moment before its first stop, and its
/// calls are counted from that stop on. strace sleeps when it has asked every thread to stop, and a thread sleeps again
/// after its stop: in this order.
fn counts_calls(pid: &str) -> bool {
    let sleeps = |place: &str| status(place, "State:").starts_with('S');
    is_held(pid) && sleeps(&status(pid, "TracerPid:")) && threads(pid).iter().all(|thread| sleeps(thread))
}

/// How many threads of the process have a tracer, and how many have none.
fn held_and_free(pid: &str) -> (usize, usize) {
    let has_tracer = |thread: &String| !["", "0"].contains(&status(thread, "TracerPid:").as_str());
    let (held, free): (Vec<String>, Vec<String>) = threads(pid).into_iter().partition(has_tracer);
    (held.len(), free.len())
}

fn is_held(pid: &str) -> bool {
    matches!(held_and_free(pid), (1.., 0))
}

fn is_free(pid: &str) -> bool {
    matches!(held_and_free(pid), (0, 1..))
}

/// Whether strace is here and may look at a process of this user.
fn may_strace(process: &Running) -> bool {
    if !have(&["strace"]) {
        return false;
    }
    let pid = process.pid().as_raw_nonzero().get().cast_unsigned();
    match Strace::attach(pid, &[]) {
        Ok(_) => true,
        Err(error) => {
            println!("skipped: {error}");
            false
        }
    }
}

#[test]
fn what_strace_makes_of_a_process_stands_beside_and_the_process_goes_on_without_it() {
    let name = stats_name("observe-strace");
    let server = Server::start(&["--driver", "epoll", "--workers", "1", "--stats-socket", &name]);
    if !may_strace(&server.process) {
        return;
    }
    let load = ["load", "echo", "--target", &server.address, "-c", "1", "--rate", "500"];
    let loaded = Running::weir(&[&load[..], &["--arrivals", "uniform", "-d", "60s", "--json"]].concat());
    until("the load", || stats(&name).total.receives > 100);
    let (folder, pid) = (folder("observe-strace"), number(&server.process));
    let (file, page) = (folder.join("seen.json"), folder.join("seen.html"));
    let observe = ["observe", "-p", &pid, "-d", "1s", "--trace", "--strace", "--plain"];
    let said = weir(&[&observe[..], &["--record", shown(&file), "--html", shown(&page)]].concat());
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stderr.contains("stopped twice in each system call"), "it says so: {}", said.stderr);
    assert!(is_free(&pid), "the tracer is gone");
    let observation = record(&file);
    let strace = observation.strace.as_ref().unwrap_or_else(|| panic!("{:?}", observation.notes));
    let calls = |name: &str| strace.rows.iter().find(|row| row.name == name).map_or(0, |row| row.calls);
    assert!(calls("sendto") > 10 && calls("recvfrom") > 10, "{:?}", strace.rows);
    assert!(strace.window_ns >= 1_000_000_000 && observation.window_ns >= 1_000_000_000);
    let page = fs::read_to_string(&page).expect("it is written");
    for text in [&said.stdout, &page] {
        assert!(text.contains("The same under strace") && text.contains("sendto"), "{text}");
    }
    if traced(&observation).is_some() {
        assert!(words(&said.stdout).contains("under the kernel's programs"), "{}", said.stdout);
    }
    drop(loaded);
    echo_once(&mut server.connect());
    assert_eq!(server.terminate(), 0);
}

#[test]
fn strace_goes_with_an_observer_that_is_killed_and_the_process_goes_on() {
    let server = Server::start(&["--driver", "epoll", "--workers", "1"]);
    if !may_strace(&server.process) {
        return;
    }
    let pid = number(&server.process);
    let mut observer = Running::weir(&["observe", "-p", &pid, "-d", "3s", "--strace", "--plain"]);
    until("strace", || is_held(&pid));
    observer.signal(Signal::KILL);
    assert_eq!(observer.wait(PATIENCE), -9);
    until("the end of strace", || is_free(&pid));
    echo_once(&mut server.connect());
    assert_eq!(server.terminate(), 0);
}

#[test]
fn a_stop_while_strace_looks_keeps_what_was_seen_until_then_and_lets_the_process_go() {
    let server = Server::start(&["--driver", "epoll", "--workers", "1"]);
    if !may_strace(&server.process) {
        return;
    }
    let pid = number(&server.process);
    let mut observer = Running::weir(&["observe", "-p", &pid, "-d", "3s", "--strace", "--json"]);
    until("strace", || is_held(&pid));
    echo_under_strace(&server);
    observer.signal(Signal::INT);
    assert_eq!(observer.wait(PATIENCE), 130);
    assert!(is_free(&pid), "the tracer is gone");
    let text: String = std::iter::from_fn(|| observer.next_line()).collect();
    let observation: Observation = serde_json::from_str(&text).expect("a record");
    let strace = observation.strace.as_ref().unwrap_or_else(|| panic!("{:?}", observation.notes));
    assert!(strace.rows.iter().any(|row| row.name == "sendto" && row.calls >= 1), "{:?}", strace.rows);
    assert_eq!(observation.ending, Ending::Time, "before strace it had its time");
    echo_once(&mut server.connect());
    assert_eq!(server.terminate(), 0);
}

#[test]
fn a_process_that_ends_under_strace_leaves_the_table_of_what_it_did_until_then() {
    let server = Server::start(&["--driver", "epoll", "--workers", "1"]);
    if !may_strace(&server.process) {
        return;
    }
    let pid = number(&server.process);
    let mut observer = Running::weir(&["observe", "-p", &pid, "-d", "3s", "--strace", "--json"]);
    until("strace", || is_held(&pid));
    echo_under_strace(&server);
    assert_eq!(server.terminate(), 0);
    // The observation's time is not over: strace ends before Weir asks it to, and its window with it.
    assert_eq!(observer.wait(PATIENCE), 0);
    let text: String = std::iter::from_fn(|| observer.next_line()).collect();
    let observation: Observation = serde_json::from_str(&text).expect("a record");
    let strace = observation.strace.as_ref().unwrap_or_else(|| panic!("{:?}", observation.notes));
    assert!(strace.rows.iter().any(|row| row.name == "sendto"), "{:?}", strace.rows);
    assert!(strace.window_ns < 3_000_000_000, "the window ends with the process: {} ns", strace.window_ns);
}

/// Numbers of the kernel programs that a process holds.
fn programs_of(pid: &str) -> Vec<u32> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten().flatten();
    let texts = descriptors.filter_map(|entry| fs::read_to_string(entry.path()).ok());
    let of_text = |text: String| {
        text.lines().find_map(|line| line.strip_prefix("prog_id:")).and_then(|id| id.trim().parse().ok())
    };
    texts.filter_map(of_text).collect()
}

#[test]
fn nothing_is_left_in_the_kernel_of_an_observer_that_is_killed() {
    if weir_sys::bpf::programs().is_err() {
        println!("skipped: this user may not list the programs in the kernel");
        return;
    }
    let server = Server::start(&["--driver", "epoll", "--workers", "1"]);
    let pid = number(&server.process);
    let mut observer = Running::weir(&["observe", "-p", &pid, "-d", "2s", "--trace", "--plain"]);
    let own = number(&observer);
    let mut held = Vec::new();
    // Programs that only test permissions come and go; the observation has one for each tracepoint.
    until("the programs, or the end without them", || {
        held = programs_of(&own);
        held.len() > 4 || fs::read_to_string(format!("/proc/{own}/stat")).is_ok_and(|it| it.contains(") Z "))
    });
    if held.len() <= 4 {
        println!("skipped: it does not trace here: {}", observer.rest_of_errors());
        return;
    }
    observer.signal(Signal::KILL);
    assert_eq!(observer.wait(PATIENCE), -9);
    until("the end of its programs", || {
        let there = weir_sys::bpf::programs().expect("they could be listed a moment ago");
        !held.iter().any(|program| there.contains(program))
    });
    echo_once(&mut server.connect());
    assert_eq!(server.terminate(), 0);
}

/// Whether the first thread of a process is in a call that waits for events. True if the kernel does not show calls.
fn waits_for_events(pid: &str) -> bool {
    let Ok(call) = fs::read_to_string(format!("/proc/{pid}/syscall")) else { return true };
    let number = call.split(' ').next().and_then(|number| number.parse().ok());
    number.and_then(weir_sys::syscalls::name).is_some_and(|name| ["poll", "ppoll"].contains(&name))
}

#[test]
fn a_process_that_ends_while_it_is_traced_leaves_a_report_that_says_so() {
    let (folder, process) =
        (folder("observe-ends"), Running::start(std::process::Command::new("sleep").arg("600")));
    let file = folder.join("seen.json");
    let pid = number(&process);
    let observe = ["observe", "-p", &pid, "-d", "600s", "--trace", "--plain", "--record", shown(&file)];
    let mut observer = Running::weir(&observe);
    observer.next_error_line().expect("it says that it traces, or why not");
    until("the watch", || waits_for_events(&number(&observer)));
    process.signal(Signal::KILL);
    let text = std::iter::from_fn(|| observer.next_line()).collect::<Vec<_>>().join("\n");
    assert_eq!(observer.wait(PATIENCE), 0, "{}", observer.rest_of_errors());
    assert_eq!(record(&file).ending, Ending::TargetEnded);
    assert!(words(&text).contains("(until it ended)"), "{text}");
}

/// An observer that never rests would take more than ten times the promised CPU of one without events.
const SHARE_AT_REST_MAX: f64 = 0.05;

#[test]
fn what_weir_itself_took_is_measured_and_told_on_every_rung() {
    let process = Running::start(std::process::Command::new("sleep").arg("600"));
    let (folder, pid) = (folder("observe-own-cost"), number(&process));
    for is_asked_to_trace in [false, true] {
        let rung = if is_asked_to_trace { &["--trace"][..] } else { &[] };
        let file = folder.join("seen.json");
        let observe = ["observe", "-p", &pid, "-d", "2s", "--plain", "--record", shown(&file)];
        let said = weir(&[&observe[..], rung].concat());
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        assert!(words(&said.stdout).contains("weir itself used"), "{}", said.stdout);
        let observation = record(&file);
        let own_ns = observation.observer_cpu_ns.expect("it reads its own clock");
        let share = own_ns as f64 / observation.window_ns as f64;
        assert!(share > 0.0 && share < SHARE_AT_REST_MAX, "{rung:?}: {share}");
        if is_asked_to_trace && traced(&observation).is_some() {
            let told = words(&said.stdout);
            assert!(told.contains("what the programs cost others is not in that"), "{told}");
            assert!(told.contains("a system call that does nothing took"), "{told}");
        }
    }
}

/// Calls of an engine outside its loop: its start, its end, and requests to its statistics.
const ENTERS_BESIDE_MAX: u64 = 100;

/// A server on io_uring under `--trace`, from its first call on; it prints its address, and then the report.
fn start_on_uring(options: &[&str], stats: &str) -> (Running, String) {
    let observe = [&["observe", "--trace", "--plain"][..], options, &["--", WEIR]].concat();
    let serve = ["serve", "echo", "--driver", "uring", "--workers", "1", "--listen", "127.0.0.1:0"];
    let observer = Running::weir(&[&observe[..], &serve[..], &["--stats-socket", stats]].concat());
    loop {
        let line = observer.next_line().expect("it says where it listens");
        if let Some(address) = line.strip_prefix("listening on ") {
            let address = address.to_owned();
            return (observer, address);
        }
    }
}

/// Whether a kernel lacks one of the events of io_uring.
fn is_of_uring(note: &Note) -> bool {
    let Note::PartLeftOut { tracepoint, .. } = note else { return false };
    tracepoint.starts_with("io_uring")
}

#[test]
fn of_a_server_on_io_uring_the_report_says_batches_and_events_and_who_reads_it_knows_what_to_do() {
    const CONNECTIONS: usize = 8;
    const ROUNDS: usize = 200;
    let Some(tried) = Server::on_driver("uring", &[]) else { return };
    assert_eq!(tried.terminate(), 0);
    let (folder, name) = (folder("observe-uring"), stats_name("observe-uring"));
    let (file, page) = (folder.join("seen.json"), folder.join("seen.html"));
    let options = ["--record", shown(&file), "--html", shown(&page)];
    let (mut observer, address) = start_on_uring(&options, &name);
    let connect = |_| {
        let stream = TcpStream::connect(&address).expect("it accepts");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream
    };
    let mut streams: Vec<TcpStream> = (0..CONNECTIONS).map(connect).collect();
    let mut message = [7; 100];
    for _ in 0..ROUNDS {
        streams.iter_mut().for_each(|stream| stream.write_all(&message).expect("it reads"));
        streams.iter_mut().for_each(|stream| stream.read_exact(&mut message).expect("it echoes"));
    }
    let engine = stats(&name).total;
    observer.signal(Signal::INT);
    let text = std::iter::from_fn(|| observer.next_line()).collect::<Vec<_>>().join("\n");
    observer.wait(PATIENCE);
    let observation = record(&file);
    let Some(trace) = traced(&observation) else { return };
    let enter = trace.calls.iter().find(|call| call.name == "io_uring_enter").expect("it enters");
    let (entered, counted) = (engine.enters, enter.count + enter.in_flight);
    assert!((entered..=entered + ENTERS_BESIDE_MAX).contains(&counted), "{entered} {counted}");
    assert_eq!((trace.threads_lost, trace.misses), (0, 0));
    let page = fs::read_to_string(&page).expect("it is written");
    let told = words(&text);
    assert!(told.contains("An io_uring_enter submits") && told.contains("completions on the mean"), "{text}");
    // There is a bound, or a reason why there is none.
    assert!(observation.bound.is_some() || observation.are_times_wrong(), "{text}");
    assert!(page.contains("io_uring_enter") && told.contains("weir itself used"), "{text}");
    if let Some(note) = observation.notes.iter().find(|note| is_of_uring(note)) {
        println!("skipped: {note:?}");
        return;
    }
    for event in ["submit_req", "complete"] {
        let seen = trace.uring.iter().find(|it| it.event == event).map_or(0, |it| it.count);
        assert!(seen > 0, "{event}: {:?}", trace.uring);
        assert!(text.contains(event) && page.contains(event), "{event}: {text}");
    }
}
