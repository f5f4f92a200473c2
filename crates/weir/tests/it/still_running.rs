//! What a process does that was to have ended. The report of a test has to name the cause: once the process is killed
//! nobody can look at it any more.

use std::{fmt::Write, fs};

use rustix::process::Pid;

/// What is told of the process: whether signals wait or are held up, and whether somebody has stopped it.
const OF_PROCESS: [&str; 8] =
    ["State:", "TracerPid:", "Threads:", "SigPnd:", "ShdPnd:", "SigBlk:", "SigIgn:", "SigCgt:"];

/// What is told of each thread. For the stack of the kernel one has to be root.
const OF_THREAD: [&str; 4] = ["wchan", "syscall", "schedstat", "stack"];

/// Everything that /proc says of its threads, twice: `wait` lies between the two, so that a thread that computes is
/// told from one that sleeps and from one that gets no CPU (the numbers of `schedstat` are nanoseconds on a CPU and
/// nanoseconds of waiting for one, and how often it got one).
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
        // Behind the name, which may have blanks and brackets in it.
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

/// What a file says, or why it says nothing.
fn read(path: &str) -> String {
    fs::read_to_string(path).map_or_else(|error| format!("({error})"), |text| text.trim_end().to_owned())
}

#[test]
fn a_thread_that_waits_is_told_with_its_name_and_what_it_waits_in() {
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let waits = std::thread::Builder::new().name("waits".into()).spawn(move || ended.recv());
    let waits = waits.expect("a thread can be had");
    let own = rustix::process::getpid();
    // It takes its name when it runs.
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
