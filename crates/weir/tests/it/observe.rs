//! `weir observe`: its refusals, its records, and that the kernel's counts equal the engine's.

use std::io::{Read, Write};

use rustix::process::Signal;
use weir_evidence::process::{family_of, is_stopped};
use weir_record::observation::{Bound, Ending, Note, Observation, Obstacle, Rung, SwitchCounter, Trace};

use super::{
    harness::{PATIENCE, Running, Said, Server, WEIR, expect_refusal, folder, shown, stats, until, weir},
    observe_ends::traced,
    observe_tools::have,
};

fn record(said: &Said) -> Observation {
    serde_json::from_str(&said.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", said.stdout, said.stderr))
}

#[test]
fn what_cannot_be_observed_is_refused_in_a_sentence() {
    expect_refusal(&weir(&["observe", "--pid", "536870911"]), 2, &["--pid", "no process 536870911"]);
    expect_refusal(&weir(&["observe", "--", "/nowhere/at/all"]), 2, &["cannot start /nowhere/at/all"]);
    expect_refusal(&weir(&["observe", "-d", "0s", "-p", "1"]), 2, &["--duration", "10s"]);
    expect_refusal(&weir(&["observe", "-d", "soon", "-p", "1"]), 2, &["--duration", "500ms"]);
    for words in [&["observe"][..], &["observe", "--without", "uring", "-p", "1"]] {
        let said = weir(words);
        assert_eq!(said.code, Some(2), "{}", said.stderr);
        assert!(said.stdout.is_empty(), "{}", said.stdout);
    }
}

#[test]
fn a_command_gives_its_exit_code_and_leaves_standard_output_to_the_record() {
    let said = weir(&["observe", "--json", "--", "sh", "-c", "echo hello; exit 7"]);
    assert_eq!(said.code, Some(7), "{}", said.stderr);
    let observation = record(&said);
    assert_eq!((observation.ending, observation.rung), (Ending::TargetEnded, Rung::Process));
    assert_eq!(observation.command, "sh -c echo hello; exit 7");
    assert!(said.stderr.contains("hello"), "{}", said.stderr);
}

#[test]
fn a_command_that_becomes_another_program_is_told_and_one_that_is_itself_is_not() {
    let become_cat = ["observe", "--json", "--", "sh", "-c", "exec cat /dev/null"];
    let said = weir(&become_cat);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let note = Note::BecameAnother { from: "sh".to_owned(), to: "cat".to_owned() };
    assert!(record(&said).notes.contains(&note), "{:?}", record(&said).notes);
    let itself = record(&weir(&["observe", "--json", "--", "cat", "/dev/null"]));
    let is_another = |note: &Note| matches!(note, Note::BecameAnother { .. });
    assert!(!itself.notes.iter().any(is_another), "{:?}", itself.notes);
}

#[test]
fn a_command_that_goes_on_is_ended_when_its_time_is_over() {
    let said = weir(&["observe", "-d", "200ms", "--json", "--", "sleep", "600"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert_eq!(record(&said).ending, Ending::Time);
}

#[test]
fn a_record_is_drawn_again_in_every_language_and_what_is_none_is_refused() {
    let folder = folder("observe-record");
    let file = folder.join("seen.json");
    let path = file.to_str().expect("text");
    let said = weir(&["observe", "--record", path, "--", "true"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let again = weir(&["report", path]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert_eq!(said.stdout, again.stdout);
    for language in ["ko", "zh"] {
        assert_eq!(weir(&["report", path, "--lang", language]).code, Some(0));
        let page = std::fs::read_to_string(folder.join("seen.html")).expect("it is beside the record");
        assert!(page.contains(&format!("lang=\"{language}")), "{page}");
    }
    let page = folder.join("seen-at-once.html");
    let said = weir(&["observe", "--html", page.to_str().expect("text"), "--lang", "ko", "--", "true"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let page = std::fs::read_to_string(page).expect("it is written at once");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("lang=\"ko"), "{page}");
    std::fs::write(&file, "{\"pid\": 1}").expect("it can be written");
    expect_refusal(&weir(&["report", path]), 2, &["no record of weir observe", "missing field"]);
}

/// A program that does nothing until it is dropped.
fn idle() -> Running {
    Running::start(std::process::Command::new("sleep").arg("600"))
}

fn number(process: &Running) -> String {
    process.pid().as_raw_nonzero().to_string()
}

#[test]
fn two_processes_are_kept_and_drawn_side_by_side() {
    let (one, other) = (idle(), idle());
    let folder = folder("observe-pair");
    let file = folder.join("pair.json");
    let path = file.to_str().expect("text");
    let words =
        ["observe", "-p", &number(&one), "--compare", &number(&other), "-d", "100ms", "--record", path];
    let said = weir(&words);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stdout.contains("Side by side") && !said.stdout.contains("faster than"), "{}", said.stdout);
    let observation: Observation =
        serde_json::from_str(&std::fs::read_to_string(&file).expect("a record")).expect("a record");
    let beside = observation.beside.expect("there were two");
    assert_eq!([observation.pid, beside.pid].map(|pid| pid.to_string()), [number(&one), number(&other)]);
    assert_eq!(observation.observer_cpu_ns, beside.observer_cpu_ns);
    let again = weir(&["report", path]);
    assert_eq!((again.code, again.stdout), (Some(0), said.stdout), "{}", again.stderr);
}

#[test]
fn what_cannot_be_compared_is_refused_in_a_sentence() {
    let (own, one) = (std::process::id().to_string(), idle());
    let pid = number(&one);
    let compared = |pid: &str, other: &str| weir(&["observe", "-p", pid, "--compare", other, "-d", "50ms"]);
    expect_refusal(&compared(&pid, &pid), 2, &["--compare", "same process", "another one"]);
    expect_refusal(&compared(&own, &pid), 2, &["--compare", "child of", &own]);
    expect_refusal(&compared(&pid, "536870911"), 2, &["--compare", "no process 536870911"]);
    for words in [&["--compare", &pid][..], &["--strace"]] {
        let said = weir(&[&["observe"][..], words, &["--", "true"]].concat());
        assert_eq!(said.code, Some(2), "{}", said.stderr);
        assert!(said.stderr.contains("cannot be used with '[COMMAND]"), "{}", said.stderr);
    }
}

#[test]
fn a_record_that_finds_no_room_does_not_cost_the_report() {
    let folder = folder("observe-full");
    let full = folder.join("full");
    std::os::unix::fs::symlink("/dev/full", &full).expect("a link can be made");
    let said = weir(&["observe", "--record", full.to_str().expect("text"), "--", "true"]);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    assert!(said.stdout.contains("The process and its children"), "{}", said.stdout);
    for word in ["full", "free some space", "--record"] {
        assert!(said.stderr.contains(word), "{word}: {}", said.stderr);
    }
}

#[test]
fn a_record_that_nobody_can_write_is_refused_before_the_command_begins() {
    let folder = folder("observe-unwritable");
    let begun = folder.join("begun");
    for flag in ["--record", "--html"] {
        for path in [folder.join("no/such/folder/seen"), folder.to_path_buf()] {
            let words = ["observe", flag, shown(&path), "--", "touch", shown(&begun)];
            let said = weir(&words);
            assert_eq!(said.code, Some(1), "{}", said.stderr);
            assert!(said.stderr.contains(flag) && said.stdout.is_empty(), "{}{}", said.stderr, said.stdout);
            assert!(!begun.exists(), "the command has run");
        }
    }
    let kept = folder.join("kept");
    std::fs::write(&kept, "before").expect("a file can be written");
    let said = weir(&["observe", "--record", shown(&kept), "--", "/nowhere/at/all"]);
    assert_eq!(said.code, Some(2), "{}", said.stderr);
    assert_eq!(std::fs::read_to_string(&kept).expect("it is there"), "before");
    assert_eq!(std::fs::read_dir(&*folder).expect("a folder").count(), 1, "nothing is left of the try");
}

#[test]
fn a_report_is_as_wide_as_columns_says() {
    let words = |columns: &str| {
        let mut command = std::process::Command::new(WEIR);
        let output =
            command.args(["observe", "--", "true"]).env("COLUMNS", columns).env("LC_ALL", "C").output();
        String::from_utf8(output.expect("it runs").stdout).expect("text")
    };
    let widest = |text: &str| text.lines().map(str::len).max().unwrap_or(0);
    assert!(widest(&words("60")) <= 60, "{}", words("60"));
    for asked in ["100", "0", "nothing"] {
        assert!((61..=100).contains(&widest(&words(asked))), "{asked}: {}", words(asked));
    }
}

#[test]
fn switches_of_children_that_no_reading_sees_are_counted() {
    const CHILDREN: u64 = 30;
    let script = format!("i=0; while [ $i -lt {CHILDREN} ]; do sleep 0.001; i=$((i+1)); done");
    let seen = record(&weir(&["observe", "--json", "--", "sh", "-c", &script]));
    let of_threads: u64 = seen.threads.iter().map(|thread| thread.context_switches_voluntary).sum();
    let all = seen.totals.context_switches_voluntary;
    assert!(all >= of_threads + CHILDREN, "{all} of which {of_threads} are of {:?}", seen.threads);
    assert!(seen.notes.contains(&Note::SwitchesOfEnded { by: SwitchCounter::Rusage }), "{:?}", seen.notes);
}

/// The programs' counts, unless this user may not load them.
fn trace_of(said: &Said) -> Option<Trace> {
    traced(&record(said)).cloned()
}

#[test]
fn looking_for_a_command_in_the_path_is_in_nobodys_trace() {
    let Some(trace) = trace_of(&weir(&["observe", "--trace", "--json", "--", "true"])) else { return };
    let exec = trace.calls.iter().find(|call| call.name == "execve").expect("it became the program");
    assert_eq!((exec.count, exec.errors), (1, 0));
}

#[test]
fn opens_that_fail_are_told_with_their_error_and_how_often() {
    const OPENS: u64 = 3_000;
    let script = format!("i=0; while [ $i -lt {OPENS} ]; do . /nowhere/at/all 2>/dev/null; i=$((i+1)); done");
    let bash = ["observe", "--trace", "--json", "--", "bash", "-c", &script];
    if !have(&["bash"]) {
        return;
    }
    let Some(trace) = trace_of(&weir(&bash)) else { return };
    let failed = trace.calls.iter().filter(|call| call.name.starts_with("open"));
    let errors = failed.flat_map(|call| &call.errors_by_kind).find(|error| error.name == "ENOENT");
    assert!(errors.is_some_and(|error| error.count >= OPENS), "{:?}", trace.calls);
}

/// Runs this program in another way; `None` if a prerequisite is missing.
fn otherwise(words: &[&str], pid: &str) -> Option<Observation> {
    let mut command = std::process::Command::new(words[0]);
    let observe = [WEIR, "observe", "--trace", "--json", "-d", "50ms", "-p", pid];
    let output = command.args(&words[1..]).args(observe).output().ok()?;
    let observation = serde_json::from_slice(&output.stdout).ok();
    if observation.is_none() {
        println!("skipped: {} {}", words[0], String::from_utf8_lossy(&output.stderr));
    }
    observation
}

fn obstacle(observation: &Observation) -> Option<&Obstacle> {
    observation.notes.iter().find_map(|note| match note {
        Note::NotTraced { obstacle } => Some(obstacle),
        _ => None,
    })
}

#[test]
fn who_may_not_trace_falls_a_rung_and_is_told_the_command() {
    let process = idle();
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let Some(observation) = otherwise(&nobody, &number(&process)) else { return };
    let observe = [WEIR, "observe", "--trace", "-d", "50ms", "-p", &number(&process)];
    let again = std::process::Command::new(nobody[0]).args(&nobody[1..]).args(observe).output();
    let again = again.expect("it could a moment ago");
    assert_eq!(again.status.code(), Some(13), "a script notices that it was not traced");
    assert!(String::from_utf8_lossy(&again.stderr).contains("--trace is refused"), "{again:?}");
    assert_eq!((observation.rung, obstacle(&observation)), (Rung::Process, Some(&Obstacle::NoPrivilege)));
    let unlock = observation.ladder.iter().find_map(|state| state.unlock.as_deref());
    assert!(unlock.is_some_and(|command| command.contains("setcap cap_bpf,cap_perfmon")), "{unlock:?}");
    assert!(!observation.threads.is_empty(), "what /proc shows everybody is there");
}

#[test]
fn in_a_pid_namespace_calls_are_counted_and_processes_have_its_numbers() {
    const BYTES: u64 = 3_000;
    /// The namespace numbers its processes from 1 on.
    const NUMBER_MAX: u32 = 50;
    if !have(&["unshare", "dd"]) {
        return;
    }
    let dd = format!("dd if=/dev/zero of=/dev/null bs=1 count={BYTES} status=none");
    let script = format!("{dd}; {dd} & wait; exec {dd}");
    let inside =
        ["--pid", "--fork", "--mount-proc", WEIR, "observe", "--trace", "--json", "--", "sh", "-c", &script];
    let output = std::process::Command::new("unshare").args(inside).output().expect("it is installed");
    let Ok(observation) = serde_json::from_slice::<Observation>(&output.stdout) else {
        println!("skipped: {}", String::from_utf8_lossy(&output.stderr));
        return;
    };
    assert!(observation.pid < NUMBER_MAX, "{}", observation.pid);
    let Some(trace) = traced(&observation) else { return };
    let writes = trace.calls.iter().find(|call| call.name == "write").map_or(0, |call| call.count);
    assert_eq!(writes, 3 * BYTES, "of the command, of its child and of the one beside it: {:?}", trace.calls);
    assert!(trace.wakes.iter().all(|wake| wake.sleeper_tid < NUMBER_MAX), "{:?}", trace.wakes);
    assert_eq!(trace.threads_lost, 0);
}

#[test]
fn where_proc_is_that_of_another_namespace_nothing_is_observed() {
    if !have(&["unshare"]) {
        return;
    }
    let inside = ["--pid", "--fork", WEIR, "observe", "-p", "1", "-d", "50ms"];
    let output = std::process::Command::new("unshare").args(inside).env("LC_ALL", "C").output();
    let output = output.expect("it is installed");
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("unshare failed") {
        println!("skipped: {said}");
        return;
    }
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--mount-proc") && output.stdout.is_empty(), "{said}");
}

#[test]
fn a_process_in_a_pid_namespace_is_traced_from_outside_of_it() {
    if !have(&["unshare", "dd"]) {
        return;
    }
    let inside = ["--pid", "--fork", "--kill-child", "dd", "if=/dev/zero", "of=/dev/null", "bs=1"];
    let process = Running::start(std::process::Command::new("unshare").args(inside));
    let pid = process.pid().as_raw_nonzero().get().cast_unsigned();
    let has_child = || family_of(pid).is_ok_and(|family| family.len() > 1);
    until("the process in its namespace, or the end without it", || has_child() || is_stopped(pid));
    if !has_child() {
        println!("skipped: {}", process.rest_of_errors());
        return;
    }
    let said = weir(&["observe", "--trace", "--json", "-d", "300ms", "-p", &number(&process)]);
    let observation = record(&said);
    let Some(trace) = &observation.trace else {
        let required = std::env::var("WEIR_REQUIRE_EVIDENCE").unwrap_or_default();
        let notes = &observation.notes;
        assert!(!required.split(',').any(|rung| rung == "programs"), "WEIR_REQUIRE_EVIDENCE: {notes:?}");
        println!("skipped: {notes:?}");
        return;
    };
    let reads = trace.calls.iter().find(|call| call.name == "read").map_or(0, |call| call.count);
    let of_thread = observation.threads.iter().find(|thread| thread.name == "dd");
    let calls = of_thread.and_then(|thread| thread.calls);
    assert!(reads > 100 && calls.is_some_and(|calls| calls > 100), "{reads} {:?}", observation.threads);
}

#[test]
fn a_stop_keeps_what_was_seen() {
    let server = Server::start(&["--driver", "epoll"]);
    let pid = server.process.pid().as_raw_nonzero().to_string();
    let mut observer = Running::weir(&["observe", "-d", "600s", "--json", "--trace", "-p", &pid]);
    let said = observer.next_error_line().expect("it says that it traces");
    assert!(said.contains("slower") || said.contains("refused"), "{said}");
    observer.signal(Signal::INT);
    assert_eq!(observer.wait(PATIENCE), 130);
    let text: String = std::iter::from_fn(|| observer.next_line()).collect();
    let observation: Observation = serde_json::from_str(&text).expect("a record");
    assert_eq!(observation.ending, Ending::Interrupted);
    assert_eq!(server.terminate(), 0);
}

/// Calls of an engine outside its loop: its start, its end, and the thread that answers requests.
const BESIDE_MAX: u64 = 16;

/// From the first call on, which a watch of a running process cannot show. `counts.rs` compares calls by kind on every
/// driver while the server is idle.
#[test]
fn a_command_is_traced_from_its_first_call_to_its_last() {
    let name = format!("@weir-it-observe-{}", std::process::id());
    let words = ["serve", "echo", "--driver", "epoll", "--workers", "1", "--listen", "127.0.0.1:0"];
    let observe = [&["observe", "--trace", "--plain", "--json", "--", WEIR], &words[..]].concat();
    let mut observer = Running::weir(&[&observe[..], &["--stats-socket", &name]].concat());
    let address = loop {
        let line = observer.next_error_line().expect("it says where it listens");
        if let Some(address) = line.strip_prefix("listening on ") {
            break address.to_owned();
        }
    };
    let mut stream = std::net::TcpStream::connect(address).expect("it accepts");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let mut message = [7; 100];
    for _ in 0..2_000 {
        stream.write_all(&message).and_then(|()| stream.read_exact(&mut message)).expect("it echoes");
    }
    let engine = stats(&name).total.send_calls;
    observer.signal(Signal::INT);
    observer.wait(PATIENCE);
    let text: String = std::iter::from_fn(|| observer.next_line()).collect();
    let observation: Observation = serde_json::from_str(&text).expect("a record");
    let Some(trace) = &observation.trace else {
        let required = std::env::var("WEIR_REQUIRE_EVIDENCE").unwrap_or_default();
        let notes = &observation.notes;
        assert!(!required.split(',').any(|rung| rung == "programs"), "WEIR_REQUIRE_EVIDENCE: {notes:?}");
        println!("skipped: {notes:?}");
        return;
    };
    let sends = trace.calls.iter().find(|call| call.name == "sendto").map_or(0, |call| call.count);
    assert!(engine >= 2_000 && (engine..=engine + BESIDE_MAX).contains(&sends), "{engine} {sends}");
    assert!(trace.calls.iter().any(|call| call.name == "execve"), "it began before the program did");
    assert_eq!((trace.threads_lost, trace.misses), (0, 0));
    // If the kernel did not announce every switch, the report says so, and no bound follows; otherwise there is one.
    assert_eq!(observation.bound.is_some(), !observation.are_times_wrong(), "{:?}", observation.totals);
    let is_share = |bound: Bound| bound.share_max > 0.0 && bound.share_max <= 1.0;
    assert!(observation.bound.is_none_or(is_share), "{:?}", observation.bound);
}
