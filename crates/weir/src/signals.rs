//! SIGINT and SIGTERM; those that ask for logs to be opened anew; and a signal that must not end the program.

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

/// A file that may not become longer (`ulimit -f`) is an error of that write, and no end of all that was measured.
pub(crate) fn outlive_file_limit() -> io::Result<()> {
    // Any handler keeps the signal from killing; the write fails with EFBIG, which says the same.
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false))).map(drop)
}

/// A flag that is set when the program is asked to stop. Who asks twice does not want to wait.
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

/// Calls `action` at each SIGINT or SIGTERM with how many have come, on a thread of its own.
pub(crate) fn on_stop(action: impl FnMut(usize) + Send + 'static) -> io::Result<()> {
    on(&[SIGINT, SIGTERM], "weir-signals", action)
}

/// Calls `action` at each SIGHUP or SIGUSR1, with which log rotation tells a program that its log was moved away, on a
/// thread of its own.
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
