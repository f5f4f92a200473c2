//! Finds processes that carry the mark of a test.

use std::{
    collections::BTreeSet,
    env, fs,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

/// Environment variable with the mark.
pub const MARK: &str = "WEIR_TEST_MARK";

/// Time for the kernel to deliver death signals.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until only this process carries the mark, and fails if another one stays. An empty mark stands for children
/// of this process, which inherit none.
pub fn expect_none(mark: &str) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found: Vec<String> = find(mark).into_iter().map(|found| found.command).collect();
        if found.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "left behind: {found:?}");
        std::thread::yield_now();
    }
}

/// Waits until a child of this process runs.
pub fn wait_for_any() {
    let deadline = Instant::now() + PATIENCE;
    while find("").is_empty() {
        assert!(Instant::now() < deadline, "nothing was started");
        std::thread::yield_now();
    }
}

/// Waits until a marked process runs whose command ends with this word.
pub fn wait_for(mark: &str, word: &str) {
    let deadline = Instant::now() + PATIENCE;
    let end = format!(" {word} ");
    while !find(mark).iter().any(|found| found.command.ends_with(&end)) {
        assert!(Instant::now() < deadline, "no {word} was started");
        std::thread::yield_now();
    }
}

/// Commands of the children of this process that were seen stopped until `over` is set, or for a while.
pub fn stopped_until(over: &AtomicBool) -> BTreeSet<String> {
    let deadline = Instant::now() + PATIENCE;
    let mut stopped = BTreeSet::new();
    while !over.load(Ordering::Relaxed) && Instant::now() < deadline {
        stopped.extend(find("").into_iter().filter(|it| it.is_stopped).map(|it| it.command));
        std::thread::yield_now();
    }
    stopped
}

/// Waits until a marked process is stopped.
pub fn wait_for_stopped(mark: &str) {
    let deadline = Instant::now() + PATIENCE;
    while !find(mark).iter().any(|found| found.is_stopped) {
        assert!(Instant::now() < deadline, "no arm was stopped");
        std::thread::yield_now();
    }
}

/// Kills a marked process whose command contains these words; `false` if there is none.
pub fn kill(mark: &str, words: &str) -> bool {
    let found = find(mark).into_iter().find(|found| found.command.contains(words));
    let pid = found.and_then(|found| Pid::from_raw(found.pid));
    // One that has ended since is none either.
    pid.is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
}

struct Found {
    pid: i32,
    command: String,
    is_stopped: bool,
}

/// Marked processes that were started from this directory, which children inherit: this program in its roles, and the
/// shells that it starts for some roles.
fn find(mark: &str) -> Vec<Found> {
    let entry = if mark.is_empty() { "\0WEIR_PADDING=".to_owned() } else { format!("\0{MARK}={mark}\0") };
    let directory = env::current_dir().expect("there is a working directory");
    let processes = fs::read_dir("/proc").expect("/proc is there");
    processes
        .filter_map(|process| {
            let path = process.ok()?.path();
            let pid = path.file_name()?.to_str()?.parse().ok()?;
            let is_own = fs::read_link(path.join("cwd")).ok()? == directory;
            let environment = fs::read(path.join("environ")).ok()?;
            let is_marked = environment.windows(entry.len()).any(|window| window == entry.as_bytes());
            let command = fs::read_to_string(path.join("cmdline")).ok()?;
            let status = fs::read_to_string(path.join("status")).ok()?;
            let found = Found {
                pid,
                command: command.replace('\0', " "),
                is_stopped: status.contains("\nState:\tT"),
            };
            (is_own && is_marked && !command.is_empty()).then_some(found)
        })
        .collect()
}
