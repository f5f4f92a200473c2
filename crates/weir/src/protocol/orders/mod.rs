//! Orders: `weir serve exchange`, `weir serve gateway` and `weir load orders`.

mod arguments;
mod exchange;
mod gateway;
mod journal;
mod load;

use std::{sync::mpsc::Receiver, thread};

use crate::output;

pub(crate) use arguments::{LoadOrders, ServeExchange, ServeGateway};
pub(super) use exchange::run as serve_exchange;
pub(super) use gateway::run as serve_gateway;

/// Prints the notices of workers, from a separate thread: no worker waits for standard error.
fn tell_lines(lines: Option<Receiver<String>>) {
    let Some(lines) = lines else { return };
    let tell = move || lines.iter().for_each(|line| output::tell(&line));
    if let Err(error) = thread::Builder::new().name("weir-notices".into()).spawn(tell) {
        output::tell(&format!("what happens to sessions and journals is not printed here: {error}"));
    }
}
