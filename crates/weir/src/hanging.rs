//! Workers that hang at the end: which ones, and the state of each thread of the process when they were left behind.
//! The report contains it because it cannot be inspected after the process has gone.

use std::fs;

/// Workers that had not ended long after the drain limit: exit code 15.
#[derive(Debug, thiserror::Error)]
#[error(
    "{workers} had not ended long after the limit of the drain, so the process ends without waiting any longer; its \
     threads: {threads}"
)]
pub(crate) struct WorkersHang {
    workers: String,
    threads: String,
}

impl WorkersHang {
    /// These workers, and the threads as they are now.
    pub(crate) fn now(workers: &[usize]) -> Self {
        let numbers: Vec<String> = workers.iter().map(ToString::to_string).collect();
        let noun = if workers.len() == 1 { "worker" } else { "workers" };
        Self { workers: format!("{noun} {}", numbers.join(", ")), threads: threads() }
    }
}

/// Each thread with its name, its state, its system call, and where it sleeps in the kernel.
fn threads() -> String {
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return "/proc has none".into() };
    let mut lines: Vec<String> = threads.flatten().map(|thread| thread_line(&thread)).collect();
    lines.sort_unstable();
    lines.join("; ")
}

fn thread_line(thread: &fs::DirEntry) -> String {
    // A value that cannot be read is a question mark: the rest is still useful.
    let of = |file: &str| match fs::read_to_string(thread.path().join(file)) {
        Ok(text) if !text.trim().is_empty() => text.trim().to_owned(),
        _ => "?".to_owned(),
    };
    let (stat, call) = (of("stat"), of("syscall"));
    // After the name, which may contain blanks and brackets.
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').next()).unwrap_or("?");
    let call = call.split(' ').next().unwrap_or("?");
    format!("{} is {state} in call {call} at {}", of("comm"), of("wchan"))
}

#[cfg(test)]
mod tests {
    use std::{
        sync::mpsc,
        thread,
        time::{Duration, Instant},
    };

    use super::*;

    #[test]
    fn workers_that_hang_are_named_with_what_every_thread_does() {
        let (end, ended) = mpsc::channel::<()>();
        let hanging = thread::Builder::new().name("weir-hangs".into()).spawn(move || ended.recv());
        let hanging = hanging.expect("a thread can be had");
        let deadline = Instant::now() + Duration::from_secs(20);
        // A thread takes its name when it runs, and then sleeps.
        let said = loop {
            let said = WorkersHang::now(&[0, 2]).to_string();
            if said.contains("weir-hangs is S in call ") {
                break said;
            }
            assert!(Instant::now() < deadline, "{said}");
            thread::yield_now();
        };
        drop(end);
        assert!(hanging.join().expect("it does not panic").is_err());
        assert!(said.starts_with("workers 0, 2 had not ended long after the limit of the drain"), "{said}");
        assert!(WorkersHang::now(&[1]).to_string().starts_with("worker 1 had not ended"));
    }
}
