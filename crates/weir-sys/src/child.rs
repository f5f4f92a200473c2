//! Child processes that cannot outlive the thread that started them, and children that wait before their exec.
//!
//! Invariants:
//! 1. Between fork and exec a child runs only system calls that are safe after a fork: no allocation, no lock.
//! 2. The death signal is set before the parent is checked. The check then notices a parent that died in between; the
//!    kernel notices one that dies later.

use std::{
    io::{self, PipeReader, PipeWriter, Read, Write},
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd},
        unix::process::CommandExt,
    },
    process::{Child, Command},
};

use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};

/// Starts the command in a separate process group; the kernel kills it when the calling *thread* ends, for whatever
/// reason.
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

/// Holds a child between fork and exec.
#[derive(Debug)]
pub struct ExecGate {
    number: PipeReader,
    go: PipeWriter,
}

/// Makes the command's child wait before its exec until the gate is opened; if the gate is dropped, the child exits
/// instead. Spawn the command once, and on another thread than the one that opens the gate: spawning returns after
/// the exec.
pub fn hold(command: &mut Command) -> io::Result<ExecGate> {
    let (number, number_of_child) = io::pipe()?;
    let (go_of_child, go) = io::pipe()?;
    let gates_end = go.as_raw_fd();
    // SAFETY: invariant 1: the closure only makes system calls (close, getpid, write, read), and its errors are made
    // from numbers, which does not allocate. The descriptor it closes is the child's copy of the gate's end, which
    // nothing in the child uses.
    unsafe { command.pre_exec(move || wait_at_gate(gates_end, &number_of_child, &go_of_child)) };
    Ok(ExecGate { number, go })
}

/// Runs in the child, between fork and exec.
fn wait_at_gate(gates_end: i32, mut number: &PipeWriter, mut go: &PipeReader) -> io::Result<()> {
    // If this end were open here as well, the death of the parent would go unnoticed. SAFETY: see `hold`: the number
    // is this process's own copy, and nobody else closes it.
    drop(unsafe { OwnedFd::from_raw_fd(gates_end) });
    let own = getpid().as_raw_nonzero().get().to_ne_bytes();
    let sent = number.write(&own)?;
    let mut byte = [0];
    if sent == own.len() && go.read(&mut byte)? == 1 {
        return Ok(());
    }
    Err(io::Error::from_raw_os_error(libc::ECANCELED))
}

impl ExecGate {
    /// Waits for the child and returns its process id; an error if it could not be started.
    pub fn wait_for_child(&mut self) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.number.read_exact(&mut bytes)?;
        u32::try_from(i32::from_ne_bytes(bytes)).map_err(io::Error::other)
    }

    /// Lets the child continue to its exec.
    pub fn open(mut self) -> io::Result<()> {
        self.go.write_all(b".")
    }
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
    fn a_child_is_held_until_its_gate_is_opened() {
        let mut command = Command::new("true");
        let mut gate = hold(&mut command).expect("pipes");
        let held = thread::spawn(move || {
            let pid = gate.wait_for_child().expect("it was forked");
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).expect("it lives");
            gate.open().expect("it waits");
            (pid, name)
        });
        let mut child = command.spawn().expect("true starts");
        let (pid, name) = held.join().expect("the thread ends");
        assert_eq!(pid, child.id());
        assert_ne!(name, "true\n", "it was no program yet");
        assert!(child.wait().expect("it can be reaped").success());
    }

    #[test]
    fn a_child_whose_gate_is_dropped_never_begins() {
        let mut command = Command::new("true");
        let mut gate = hold(&mut command).expect("pipes");
        let dropped = thread::spawn(move || gate.wait_for_child().map(drop));
        let error = command.spawn().expect_err("the gate was dropped");
        assert_eq!(error.raw_os_error(), Some(libc::ECANCELED));
        dropped.join().expect("the thread ends").expect("it was forked");
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
