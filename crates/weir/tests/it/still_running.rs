//! The state of a process that should have ended. A failed test must report the cause, because a killed process can no
//! longer be inspected.

use std::{fmt::Write, fs};

use rustix::process::Pid;

/// Reported lines about the process: pending and blocked signals, and whether it is stopped.
const OF_PROCESS: [&str; 8] =
    ["State:", "TracerPid:", "Threads:", "SigPnd:", "ShdPnd:", "SigBlk:", "SigIgn:", "SigCgt:"];

/// Reported files about each thread. The kernel's stack needs root.
const OF_THREAD: [&str; 4] = ["wchan", "syscall", "schedstat", "stack"];

/// Reads /proc for all its threads, twice, with `wait` in between. This distinguishes a thread that computes from one
/// that sleeps and from one that gets no CPU (the numbers of `schedstat` are nanoseconds on a CPU, nanoseconds of
/// waiting for one, and how often it got one).
pub fn report(pid: Pid, wait: impl FnOnce()) -> String {
    let before = looked_at(pid);
    wait();
    format!("it does:\n{before}a while later:\n{}", looked_at(pid))
}

fn looked_at(pid: Pid) -> String {
    let folder = format!("/proc/{}", pid.as_raw_nonzero());
    let mut text = String::new();
    let status = read(&format!("{folder}/status"));
    for line in status.lines().filter(|line| OF_PROCESS.iter().any(|name| line.starts_with(name))) {
        writeln!(text, "  {line}").expect("memory takes it");
    }
    let Ok(threads) = fs::read_dir(format!("{folder}/task")) else { return text + "  it has no threads\n" };
    for thread in threads.flatten() {
        let of = |name: &str| read(&thread.path().join(name).display().to_string());
        // After the name, which may contain blanks and brackets.
        let stat = of("stat");
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').next()).unwrap_or("gone");
        let id = thread.file_name();
        writeln!(text, "  thread {} {}: {state}", id.display(), of("comm")).expect("memory takes it");
        for name in OF_THREAD {
            let told = of(name).replace('\n', "\n      ");
            writeln!(text, "    {name}: {told}").expect("memory takes it");
        }
    }
    text
}

/// The content of a file, or why it cannot be read.
fn read(path: &str) -> String {
    fs::read_to_string(path).map_or_else(|error| format!("({error})"), |text| text.trim_end().to_owned())
}

#[test]
fn a_thread_that_waits_is_told_with_its_name_and_what_it_waits_in() {
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let waits = std::thread::Builder::new().name("waits".into()).spawn(move || ended.recv());
    let waits = waits.expect("a thread can be had");
    let own = rustix::process::getpid();
    // A thread takes its name when it runs.
    super::harness::until("its name", || report(own, || {}).contains(" waits: "));
    let told = report(own, || {});
    drop(end);
    assert!(waits.join().expect("it does not panic").is_err());
    let (_, thread) = told.split_once(" waits: ").expect("it is there");
    for name in OF_PROCESS.into_iter().chain(["a while later:"]) {
        assert!(told.contains(name), "no {name} in {told}");
    }
    for name in OF_THREAD {
        assert!(thread.contains(&format!("    {name}: ")), "no {name} in {thread}");
    }
}
