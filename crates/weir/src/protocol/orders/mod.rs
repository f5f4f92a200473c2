//! Orders: `weir serve exchange`, `weir serve gateway` and `weir load orders`.

mod arguments;
mod exchange;
mod gateway;
mod gateway_check;
mod journal;
mod load;

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError},
    thread,
    time::Duration,
};

use weir_servers::orders::{JournalsWatch, OrdersControl};

use crate::output;

pub(crate) use arguments::{LoadOrders, ServeExchange, ServeGateway};
pub(super) use exchange::run as serve_exchange;
pub(super) use gateway::run as serve_gateway;

/// How often journals are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Prints what workers want people to see, and what the disk of their journals does, from a separate thread: no
/// worker waits for standard error.
fn tell_lines(control: &OrdersControl) {
    let Some(lines) = control.lines() else { return };
    let watch = control.watch_journals();
    let tell = move || match watch {
        None => lines.iter().for_each(|line| output::tell(&line)),
        Some(watch) => tell_and_look(&lines, watch),
    };
    if let Err(error) = thread::Builder::new().name("weir-notices".into()).spawn(tell) {
        output::tell(&format!("what happens to sessions and journals is not printed here: {error}"));
    }
}

fn tell_and_look(lines: &Receiver<String>, mut watch: JournalsWatch) {
    loop {
        match lines.recv_timeout(LOOK_EVERY) {
            Ok(line) => output::tell(&line),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        watch.look().iter().for_each(|line| output::tell(line));
    }
}
