//! SIGINT and SIGTERM.

use std::{io, thread};

use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};

/// Calls `action` at each SIGINT or SIGTERM with how many have come, on a thread of its own.
pub(crate) fn on_stop(mut action: impl FnMut(usize) + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let listen = move || {
        for (count, _) in signals.forever().enumerate() {
            action(count + 1);
        }
    };
    thread::Builder::new().name("weir-signals".into()).spawn(listen).map(drop)
}
