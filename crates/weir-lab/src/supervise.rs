//! Supervises a foreign server and everything it starts, for `weir supervise`: a small process between the laboratory
//! and the command. It ends all of them when its standard input closes, so also when the laboratory was killed and
//! could not clean up. If the supervisor hangs, the laboratory does this work itself ([`kill_below`]) before it ends
//! the supervisor.
//!
//! It adopts orphans below it (`PR_SET_CHILD_SUBREAPER`), so that it also finds a server that forks into the
//! background. The kernel binds the command itself to the supervisor. A process that both left its group and lost its
//! supervisor to SIGKILL cannot be ended.
//!
//! A command that only does some work, such as a setup, is supervised until it has ended: it may start a daemon that
//! is meant to stay. Until then it and all below it end as a server does.

use std::{
    ffi::OsString,
    fs,
    io::{self, Read, stdin},
    iter,
    path::Path,
    process::{Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{
        Pid, PidfdFlags, Signal, WaitOptions, getpid, kill_process, pidfd_open, set_child_subreaper, wait,
    },
};
use thiserror::Error;
use weir_sys::{
    affinity::pin_current_thread,
    child::spawn_bound,
    process_stat::{self, ProcessStat},
};

/// Written to the supervisor's input to end the server politely first.
pub const END_POLITELY: &[u8] = b"end\n";

/// Exit status of a supervisor that could not start its command, the same as in shells.
pub const EXIT_NOT_STARTED: i32 = 127;

/// Time from the polite request until everything is killed, unless the input closes earlier. The laboratory closes it
/// when its own deadline has passed; when it waits for a table of strace, it has no such deadline. On a busy machine,
/// strace takes seconds to detach from a process with thousands of threads, and if killed meanwhile it gives no
/// table.
const POLITE: Duration = Duration::from_secs(10);

/// Most rounds of killing the processes that are left. Each round kills every descendant; a second is needed only for
/// processes that started during the first.
const KILL_ROUNDS_MAX: u32 = 1_000;

/// When a supervision ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Until the command and all its descendants have ended: a server may go on in the background.
    AllEnded,
    /// Until the command has ended: processes that left its process group by then may stay.
    CommandEnded,
}

/// The flag that asks for [`Until::CommandEnded`].
pub const UNTIL_EXIT: &str = "--until-exit";

/// Why nothing was supervised.
#[derive(Debug, Error)]
pub enum SuperviseError {
    /// The command cannot be started; the exit status is [`EXIT_NOT_STARTED`].
    #[error("cannot start {program}: {source}")]
    NotStarted {
        /// The program.
        program: String,
        /// The system's error.
        source: io::Error,
    },
    /// The system refused a call that a supervisor needs.
    #[error("cannot supervise: {0}")]
    System(#[from] io::Error),
}

/// Arguments of the hidden subcommand, up to the command that is supervised.
pub fn arguments(cpus: &[usize]) -> Vec<String> {
    let mut arguments = vec!["supervise".to_owned()];
    if !cpus.is_empty() {
        let list: Vec<String> = cpus.iter().map(usize::to_string).collect();
        arguments.extend(["--pin".to_owned(), list.join(",")]);
    }
    arguments.push("--".to_owned());
    arguments
}

/// The same for a command that is supervised until it has ended, on any CPU.
pub fn arguments_until_exit() -> [&'static str; 3] {
    ["supervise", UNTIL_EXIT, "--"]
}

/// The program and its arguments, up to a command that may run on any CPU.
pub fn words(weir: &Path) -> Vec<OsString> {
    let arguments = arguments(&[]).into_iter().map(OsString::from);
    iter::once(weir.as_os_str().to_owned()).chain(arguments).collect()
}

/// Runs the command until it has ended or standard input closes. Returns the command's exit status (128 plus the
/// signal's number if a signal killed it). Must be called on the main thread of a separate process.
pub fn run(cpus: &[usize], argv: &[String], until: Until) -> Result<u8, SuperviseError> {
    set_child_subreaper(Some(getpid())).map_err(io::Error::from)?;
    if !cpus.is_empty() {
        pin_current_thread(cpus)?;
    }
    let (program, rest) = argv.split_first().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let child = spawn_bound(Command::new(program).args(rest).stdin(Stdio::null()))
        .map_err(|source| SuperviseError::NotStarted { program: program.clone(), source })?;
    let pid = Pid::from_child(&child);
    let mut household = Household { command: pid, status: None };
    match household.until_over(until)? {
        Over::ByItself => return Ok(household.status.unwrap_or(0)),
        Over::Politely => {
            household.signal_all(Signal::TERM);
            household.until_empty(Instant::now() + POLITE);
        }
        Over::AtOnce => {}
    }
    household.kill_all();
    Ok(household.status.unwrap_or(0))
}

/// How a supervision ends.
enum Over {
    /// The awaited processes have ended.
    ByItself,
    /// The laboratory asks for the end, and waits.
    Politely,
    /// The laboratory is gone, or its deadline has passed.
    AtOnce,
}

/// The command and the orphans it left to the supervisor.
struct Household {
    command: Pid,
    /// Exit status of the command, once it is reaped.
    status: Option<u8>,
}

impl Household {
    /// Waits until it has ended by itself, or the input receives a command or closes.
    fn until_over(&mut self, until: Until) -> io::Result<Over> {
        loop {
            self.reap();
            if until == Until::CommandEnded && self.status.is_some() {
                return Ok(Over::ByItself);
            }
            let Some(oldest) = self.oldest() else {
                return Ok(Over::ByItself);
            };
            let ended = match pidfd_open(oldest, PidfdFlags::empty()) {
                Ok(ended) => ended,
                Err(Errno::SRCH) => continue,
                Err(error) => return Err(error.into()),
            };
            let input = stdin();
            let mut ends = [PollFd::new(&input, PollFlags::IN), PollFd::new(&ended, PollFlags::IN)];
            match poll(&mut ends, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if !ends[0].revents().is_empty() {
                let mut word = [0; 16];
                let is_asked = input.lock().read(&mut word).is_ok_and(|length| length > 0);
                return Ok(if is_asked { Over::Politely } else { Over::AtOnce });
            }
        }
    }

    /// The command while it lives, then any child that it left.
    fn oldest(&self) -> Option<Pid> {
        if self.status.is_none() {
            return Some(self.command);
        }
        own_children().first().copied()
    }

    /// Reaps the children that have ended.
    fn reap(&mut self) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if pid == self.command {
                self.status = Some(exit_code(status));
            }
        }
    }

    fn signal_all(&self, signal: Signal) {
        for pid in descendants(std::process::id()) {
            // Fails only for a process that has ended.
            let _ = kill_process(pid, signal);
        }
    }

    /// Waits until all have ended, the deadline, or the end of the input: then the laboratory's deadline has passed.
    fn until_empty(&mut self, deadline: Instant) {
        let input = stdin();
        loop {
            self.reap();
            let left = deadline.saturating_duration_since(Instant::now());
            let Some(oldest) = own_children().first().copied() else { return };
            let (false, Ok(ended)) = (left.is_zero(), pidfd_open(oldest, PidfdFlags::empty())) else {
                return;
            };
            let Ok(timeout) = Timespec::try_from(left) else { return };
            let mut ends = [PollFd::new(&input, PollFlags::IN), PollFd::new(&ended, PollFlags::IN)];
            // The loop checks again after any other cause.
            let _ = poll(&mut ends, Some(&timeout));
            if !ends[0].revents().is_empty() {
                return;
            }
        }
    }

    fn kill_all(&mut self) {
        for _ in 0..KILL_ROUNDS_MAX {
            self.signal_all(Signal::KILL);
            // Orphans of killed parents become our children, so each round's wait finds the processes that are left.
            let Ok(Some((pid, status))) = wait(WaitOptions::empty()) else { return };
            if pid == self.command {
                self.status = Some(exit_code(status));
            }
            self.reap();
        }
    }
}

fn exit_code(status: rustix::process::WaitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let status = ExitStatus::from_raw(status.as_raw());
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

fn own_children() -> Vec<Pid> {
    children(std::process::id()).into_iter().filter_map(pid).collect()
}

/// Kills all processes below a supervisor that hangs. The supervisor must be alive, so that it still adopts orphans,
/// and must not be reaped meanwhile, so that its process number is not reused.
pub(crate) fn kill_below(root: u32) {
    for _ in 0..KILL_ROUNDS_MAX {
        let left: Vec<Pid> = descendants(root).into_iter().filter(|pid| !has_ended(*pid)).collect();
        if left.is_empty() {
            return;
        }
        for pid in left {
            // Fails only for a process that has ended.
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::yield_now();
    }
}

/// Whether the process is gone, or is a zombie that its parent has not reaped.
fn has_ended(pid: Pid) -> bool {
    let stat = process_stat::read(pid.as_raw_nonzero().get().unsigned_abs());
    stat.as_deref().and_then(ProcessStat::parse).is_none_or(|stat| stat.has_ended())
}

/// All descendants of a process, parents first.
fn descendants(root: u32) -> Vec<Pid> {
    let all = parents();
    let mut found = vec![root];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(all.iter().filter(|(_, above)| *above == parent).map(|(child, _)| *child));
        next += 1;
    }
    found.into_iter().skip(1).filter_map(pid).collect()
}

fn pid(number: u32) -> Option<Pid> {
    i32::try_from(number).ok().and_then(Pid::from_raw)
}

/// Children of a process. Empty when it has none or is gone.
pub(crate) fn children(parent: u32) -> Vec<u32> {
    parents().into_iter().filter(|(_, above)| *above == parent).map(|(child, _)| child).collect()
}

/// Every process with its parent. (`/proc/PID/task/TID/children` would be shorter, but many kernels are built without
/// it.)
fn parents() -> Vec<(u32, u32)> {
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    processes
        .filter_map(|process| {
            let process = process.ok()?;
            let number = process.file_name().to_str()?.parse().ok()?;
            Some((number, ProcessStat::parse(&process_stat::read(number)?)?.parent()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_among_its_parents_children() {
        assert!(children(std::os::unix::process::parent_id()).contains(&std::process::id()));
    }
}
