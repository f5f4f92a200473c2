//! Signals that end a program, those that request reopening logs, and those that must not end a program.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGXFSZ},
    iterator::Signals,
};

/// Turns a write beyond the file size limit (`ulimit -f`) into an error of that write, instead of the end of the
/// program.
pub(crate) fn outlive_file_limit() -> io::Result<()> {
    // Any handler keeps the signal from killing; the write fails with EFBIG, which says the same.
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false))).map(drop)
}

/// A flag that is set when the program is asked to stop. A second request ends it without a wait.
pub(crate) fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    on_stop(move |count| {
        flag.store(true, Ordering::Relaxed);
        if count > 1 {
            std::process::exit(130);
        }
    })?;
    Ok(stop)
}

/// Calls `action` at each SIGINT or SIGTERM with their number so far, on a separate thread.
pub(crate) fn on_stop(action: impl FnMut(usize) + Send + 'static) -> io::Result<()> {
    on(&[SIGINT, SIGTERM], "weir-signals", action)
}

/// The effect of a signal on a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// It drains, so that clients get their messages and orders are cancelled that need that.
    Stop,
    /// A terminal was closed, or an operator wants something read anew.
    HangUp,
    /// None.
    Nothing,
}

/// By default each of these ends a process at once, without a drain.
const OF_SERVER: [(i32, Effect); 6] = [
    (SIGINT, Effect::Stop),
    (SIGTERM, Effect::Stop),
    (SIGQUIT, Effect::Stop),
    (SIGHUP, Effect::HangUp),
    (SIGUSR1, Effect::Nothing),
    (SIGUSR2, Effect::Nothing),
];

/// Decides for all servers: calls `stop` at each SIGINT, SIGTERM or SIGQUIT with their number so far, and `hang_up` at
/// each SIGHUP, on a separate thread. SIGUSR1 and SIGUSR2 have no effect here; [`on_rotation`] may add one. Neither
/// function may wait.
pub(crate) fn of_server(
    mut stop: impl FnMut(usize) + Send + 'static,
    mut hang_up: impl FnMut() + Send + 'static,
) -> io::Result<()> {
    let mut signals = Signals::new(OF_SERVER.map(|(number, _)| number))?;
    let listen = move || {
        let mut stops = 0;
        for signal in signals.forever() {
            match OF_SERVER.iter().find(|(number, _)| *number == signal) {
                Some((_, Effect::Stop)) => {
                    stops += 1;
                    stop(stops);
                }
                Some((_, Effect::HangUp)) => hang_up(),
                Some((_, Effect::Nothing)) | None => {}
            }
        }
    };
    thread::Builder::new().name("weir-signals".into()).spawn(listen).map(drop)
}

/// Calls `action` at each SIGHUP or SIGUSR1, on a separate thread. Log rotation sends them after it has moved a log
/// away.
pub(crate) fn on_rotation(mut action: impl FnMut() + Send + 'static) -> io::Result<()> {
    on(&[SIGHUP, SIGUSR1], "weir-rotation", move |_| action())
}

fn on(numbers: &[i32], name: &str, mut action: impl FnMut(usize) + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new(numbers)?;
    let listen = move || {
        for (count, _) in signals.forever().enumerate() {
            action(count + 1);
        }
    };
    thread::Builder::new().name(name.into()).spawn(listen).map(drop)
}
