//! Processes that never outlive this one, and that a signal ends in good order.
//!
//! The kernel kills them when this process dies, by whatever cause. At the first SIGINT or SIGTERM they are asked to
//! end, which a study does after storing what is finished; at the second this process ends at once, and they with it.
//! They lead process groups of their own, so that a terminal's Ctrl-C reaches them only this way, and only once.

use std::{
    io::{self, Read},
    os::fd::OwnedFd,
    process::{Child, ChildStdout, Command, ExitStatus, Stdio},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};
use weir_sys::child::spawn_bound;

const CODE_INTERRUPTED: i32 = 130;

/// Starts processes and passes on the user's wish to stop.
pub struct Children {
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    interrupted: AtomicBool,
    /// Handles of those that run; a handle never names another process.
    running: Mutex<Vec<Arc<OwnedFd>>>,
}

impl State {
    fn running(&self) -> MutexGuard<'_, Vec<Arc<OwnedFd>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end_all(&self) {
        for handle in self.running().iter() {
            // Fails only for a process that has ended.
            let _ = pidfd_send_signal(handle, Signal::TERM);
        }
    }
}

impl Children {
    /// Listens to the signals of this process from now on. Once in a process.
    pub fn watched() -> io::Result<Self> {
        let children = Self::unwatched();
        let state = Arc::clone(&children.state);
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let listen = move || {
            for _ in signals.forever() {
                if state.interrupted.swap(true, Ordering::SeqCst) {
                    std::process::exit(CODE_INTERRUPTED);
                }
                state.end_all();
            }
        };
        thread::Builder::new().name("signals".to_owned()).spawn(listen)?;
        Ok(children)
    }

    /// Without an ear for signals.
    pub fn unwatched() -> Self {
        Self { state: Arc::default() }
    }

    /// Whether the user has had enough: nothing more is begun.
    pub fn is_interrupted(&self) -> bool {
        self.state.interrupted.load(Ordering::SeqCst)
    }

    /// Starts the command. From the thread that lives longest: the kernel binds the child to it.
    pub fn start(&self, command: &mut Command) -> io::Result<Running> {
        let child = spawn_bound(command)?;
        let handle = Arc::new(pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?);
        self.state.running().push(Arc::clone(&handle));
        if self.is_interrupted() {
            // The signal came before the handle was there to be found.
            self.state.end_all();
        }
        Ok(Running { child, handle, state: Arc::clone(&self.state) })
    }
}

/// A child that runs. Dropping it kills it.
pub struct Running {
    child: Child,
    handle: Arc<OwnedFd>,
    state: Arc<State>,
}

impl Running {
    /// Number of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its output, if that was piped and nobody has it.
    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Waits for its end.
    pub fn wait(mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.state.running().retain(|other| !Arc::ptr_eq(other, &self.handle));
        // Both fail only when it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the command to its end and gives what it printed.
pub fn output(children: &Children, command: &mut Command) -> io::Result<(ExitStatus, Vec<u8>)> {
    let mut running = children.start(command.stdout(Stdio::piped()))?;
    let mut printed = Vec::new();
    if let Some(mut stdout) = running.stdout() {
        stdout.read_to_end(&mut printed)?;
    }
    Ok((running.wait()?, printed))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn what_runs_is_asked_to_end_and_what_starts_later_as_well() {
        let children = Children::unwatched();
        let start = || children.start(Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()));
        let first = start().expect("cat starts");
        children.state.interrupted.store(true, Ordering::SeqCst);
        children.state.end_all();
        assert_eq!(first.wait().expect("it ends").signal(), Some(SIGTERM));
        let late = start().expect("cat starts");
        assert_eq!(late.wait().expect("it ends").signal(), Some(SIGTERM));
        assert!(children.state.running().is_empty());
    }

    #[test]
    fn a_child_that_is_dropped_is_gone() {
        let children = Children::unwatched();
        let running = children
            .start(Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()))
            .expect("cat starts");
        let handle = Arc::clone(&running.handle);
        drop(running);
        assert_eq!(pidfd_send_signal(&handle, Signal::TERM), Err(rustix::io::Errno::SRCH));
    }

    #[test]
    fn what_a_child_printed_is_read_whole() {
        let (status, printed) =
            output(&Children::unwatched(), Command::new("echo").arg("text").stdin(Stdio::null()))
                .expect("echo runs");
        assert!(status.success());
        assert_eq!(printed, b"text\n");
    }
}
