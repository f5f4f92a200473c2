//! Orders: `weir serve exchange`, `weir serve gateway` and `weir load orders`.

mod arguments;
mod event_log;
mod exchange;
mod gateway;
mod gateway_check;
mod journal;
mod load;

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use weir_servers::orders::{Event, JournalsWatch, OrdersControl};

use crate::output;

use event_log::EventLog;

pub(crate) use arguments::{LoadOrders, ServeExchange, ServeGateway};
pub(super) use exchange::run as serve_exchange;
pub(super) use gateway::run as serve_gateway;

/// How often journals are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Writes what happens to sessions, and what the disk of their journals does, from a separate thread: no worker waits
/// for standard error or a file.
fn tell_events(control: &OrdersControl, at_start: Vec<Event>, mut log: EventLog) {
    at_start.iter().for_each(|event| log.write(event));
    let Some(events) = control.events() else { return };
    let watch = control.watch_journals();
    let tell = move || match watch {
        None => events.iter().for_each(|event| log.write(&event)),
        Some(watch) => tell_and_look(&events, watch, log),
    };
    if let Err(error) = thread::Builder::new().name("weir-events".into()).spawn(tell) {
        output::tell(&format!("what happens to sessions and journals is not printed: {error}"));
    }
}

fn tell_and_look(events: &Receiver<Event>, mut watch: JournalsWatch, mut log: EventLog) {
    let mut next_look = Instant::now() + LOOK_EVERY;
    loop {
        match events.recv_timeout(next_look.saturating_duration_since(Instant::now())) {
            Ok(event) => log.write(&event),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if Instant::now() >= next_look {
            watch.look().iter().for_each(|event| log.write(event));
            next_look = Instant::now() + LOOK_EVERY;
        }
    }
}
