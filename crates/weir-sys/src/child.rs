//! Child processes that cannot outlive the thread that started them.
//!
//! Invariants:
//! 1. Between fork and exec a child runs only system calls that are safe after a fork: no allocation, no lock.
//! 2. The death signal is set before the parent is checked. A parent that died in between is then noticed by the
//!    check; one that dies later is noticed by the kernel.

use std::{
    io,
    os::unix::process::CommandExt,
    process::{Child, Command},
};

use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};

/// Starts the command in a process group of its own; the kernel kills it when the calling *thread* ends, by whatever
/// cause.
///
/// Call it from a thread that lives as long as the child should, usually the main thread. Only the child itself is
/// bound, not processes it starts.
pub fn spawn_bound(command: &mut Command) -> io::Result<Child> {
    let parent = getpid();
    command.process_group(0);
    // SAFETY: invariant 1: the closure makes two system calls (prctl, getppid), compares integers and, on failure,
    // builds an error from an error number, which does not allocate.
    unsafe { command.pre_exec(move || bind(parent)) };
    command.spawn()
}

/// Runs in the child, between fork and exec.
fn bind(parent: Pid) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() == Some(parent) {
        return Ok(());
    }
    // Invariant 2: the parent is gone, and no signal will come.
    Err(io::Error::from_raw_os_error(libc::ESRCH))
}

#[cfg(test)]
mod tests {
    use std::{os::unix::process::ExitStatusExt, process::Stdio, thread};

    use super::*;

    #[test]
    fn a_child_dies_with_the_thread_that_started_it() {
        let spawned = thread::spawn(|| spawn_bound(Command::new("cat").stdin(Stdio::piped())));
        let mut child = spawned.join().expect("the thread ends").expect("cat starts");
        // Its input stays open, so only the death signal can end it.
        let input = child.stdin.take();
        let status = child.wait().expect("it can be reaped");
        drop(input);
        assert_eq!(status.signal(), Some(Signal::KILL.as_raw()));
    }

    #[test]
    fn a_child_leads_a_process_group_of_its_own() {
        let mut command = Command::new("cat");
        let mut child = spawn_bound(command.stdin(Stdio::piped())).expect("cat starts");
        let pid = Pid::from_child(&child);
        assert_eq!(rustix::process::getpgid(Some(pid)).ok(), Some(pid));
        drop(child.stdin.take());
        assert!(child.wait().expect("it can be reaped").success());
    }
}
