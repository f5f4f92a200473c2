//! Suspends the processes of an arm between its slices, so that it takes nothing from the others.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use weir_evidence::process::{family_of, is_stopped};

/// Longest wait until a process has stopped.
const STOPPED_MAX: Duration = Duration::from_millis(100);

/// Time between two checks.
const LOOK: Duration = Duration::from_micros(200);

/// Stops a process and all its descendants but the supervisor, and waits until they have stopped.
pub(super) fn suspend(pid: u32, supervisor: Option<u32>) {
    let pids = signal(pid, supervisor, Signal::STOP);
    let deadline = Instant::now() + STOPPED_MAX;
    while !pids.iter().all(|pid| is_stopped(*pid)) && Instant::now() < deadline {
        std::thread::sleep(LOOK);
    }
}

/// Resumes the stopped processes.
pub(super) fn resume(pid: u32, supervisor: Option<u32>) {
    signal(pid, supervisor, Signal::CONT);
}

/// Asks stopped processes to end; they receive the signal when they are resumed.
pub(super) fn terminate(pid: u32) {
    signal(pid, None, Signal::TERM);
    signal(pid, None, Signal::CONT);
}

/// Signals the process and all its descendants, but never the supervisor (the process itself, if a server has several
/// processes). The supervisor cleans up when the laboratory is killed, which a stopped process cannot do.
fn signal(pid: u32, supervisor: Option<u32>, signal: Signal) -> Vec<u32> {
    let mut pids = family_of(pid).unwrap_or_default();
    pids.retain(|pid| Some(*pid) != supervisor);
    for pid in &pids {
        if let Some(pid) = i32::try_from(*pid).ok().and_then(Pid::from_raw) {
            // Fails only for a process that has ended.
            let _ = kill_process(pid, signal);
        }
    }
    pids
}
