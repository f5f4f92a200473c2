//! SIGINT and SIGTERM; signals that request reopening logs; and a signal that must not end the program.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGXFSZ},
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
