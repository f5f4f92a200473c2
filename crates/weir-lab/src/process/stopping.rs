//! Stops the processes of an arm between its slices, so that it takes nothing from the others.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use weir_evidence::process::{family_of, is_stopped};

/// Longest wait until a stopped process is stopped.
const STOPPED_MAX: Duration = Duration::from_millis(100);

/// Between two looks.
const LOOK: Duration = Duration::from_micros(200);

/// Stops a process and everything below it, and waits until they are.
pub(super) fn stop(pid: u32) {
    signal(pid, Signal::STOP);
    let deadline = Instant::now() + STOPPED_MAX;
    let pids = family_of(pid).unwrap_or_default();
    while !pids.iter().all(|pid| is_stopped(*pid)) && Instant::now() < deadline {
        std::thread::sleep(LOOK);
    }
}

/// Lets them go on.
pub(super) fn go_on(pid: u32) {
    signal(pid, Signal::CONT);
}

/// Asks stopped processes to end, which they hear of when they go on.
pub(super) fn end(pid: u32) {
    signal(pid, Signal::TERM);
    signal(pid, Signal::CONT);
}

/// To the process and everything below it; never to the supervisor above, which cleans up.
fn signal(pid: u32, signal: Signal) {
    for pid in family_of(pid).unwrap_or_default() {
        if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
            // Fails only for a process that has ended.
            let _ = kill_process(pid, signal);
        }
    }
}
