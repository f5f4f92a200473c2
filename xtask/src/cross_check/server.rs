//! A server under test: its process, its address, and the CPU time of all its threads.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
};

use weir_sys::child::spawn_bound;

/// A server that runs until it is dropped.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
}

impl Server {
    /// Starts `weir serve echo` on the CPUs of the calling thread, and waits until it listens.
    pub fn start(weir: &Path, driver: &str) -> Result<Self, String> {
        let mut command = Command::new(weir);
        command.args([
            "serve",
            "echo",
            "--listen",
            "127.0.0.1:0",
            "--stats-socket",
            "off",
            "--driver",
            driver,
        ]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child =
            spawn_bound(&mut command).map_err(|error| format!("cannot start {}: {error}", weir.display()))?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            let _ = BufReader::new(output).read_line(&mut line);
        }
        match line.trim().strip_prefix("listening on ").and_then(|address| address.parse().ok()) {
            Some(address) => Ok(Self { child, address }),
            None => {
                let _ = child.kill();
                let _ = child.wait();
                Err(format!("the server on {driver} does not say where it listens"))
            }
        }
    }

    /// The CPU time of its threads so far.
    pub fn cpu(&self) -> Result<CpuReading, String> {
        CpuReading::of(self.child.id())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// CPU time by thread in nanoseconds. Threads that the kernel runs for io_uring are also tasks of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuReading(BTreeMap<u32, u64>);

impl CpuReading {
    fn of(process: u32) -> Result<Self, String> {
        let ended = || format!("the server (process {process}) has ended");
        let tasks = fs::read_dir(format!("/proc/{process}/task")).map_err(|_| ended())?;
        let of_task = |entry: fs::DirEntry| {
            let clock = fs::read_to_string(entry.path().join("schedstat")).ok()?;
            Some((entry.file_name().to_str()?.parse().ok()?, on_cpu_ns(&clock)?))
        };
        let found: BTreeMap<u32, u64> = tasks.flatten().filter_map(of_task).collect();
        // A zombie process has a task whose clock no longer runs.
        if found.is_empty() { Err(ended()) } else { Ok(Self(found)) }
    }

    /// CPU time used since an earlier reading. The time of a thread that has ended meanwhile is lost.
    pub fn since(&self, earlier: &Self) -> u64 {
        let of_thread =
            |(thread, now): (&u32, &u64)| now - earlier.0.get(thread).copied().unwrap_or(0).min(*now);
        self.0.iter().map(of_thread).sum()
    }
}

/// The first of the three numbers of `schedstat`.
fn on_cpu_ns(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_threads_that_began_later_counts_and_that_of_threads_that_ended_does_not() {
        let earlier = CpuReading([(1, 100), (2, 500)].into());
        let later = CpuReading([(1, 130), (3, 7)].into());
        assert_eq!(later.since(&earlier), 37);
        assert_eq!(earlier.since(&earlier), 0);
    }

    #[test]
    fn a_process_that_works_has_used_more_and_one_that_is_not_there_has_ended() {
        let own = std::process::id();
        let before = CpuReading::of(own).expect("this process runs");
        let mut now = before.clone();
        // The clock of a running thread lags by a tick, so a later reading is higher.
        while now.since(&before) == 0 {
            now = CpuReading::of(own).expect("this process runs");
        }
        assert_eq!(on_cpu_ns("123 45 6\n"), Some(123));
        let error = CpuReading::of(u32::MAX).expect_err("there is no such process");
        assert!(error.ends_with("has ended"), "{error}");
    }

    #[test]
    fn a_program_that_does_not_listen_is_named_by_its_driver() {
        let error = Server::start(Path::new("true"), "epoll").err().expect("it says nothing");
        assert_eq!(error, "the server on epoll does not say where it listens");
        let error = Server::start(Path::new("/nowhere/weir"), "epoll").err().expect("there is none");
        assert!(error.starts_with("cannot start /nowhere/weir: "), "{error}");
    }
}
