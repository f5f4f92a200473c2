//! Lists which socket waits for what, in words, for the error of a wait that would never end.

use std::io;

use super::{Backend, Kernel, Kind, Readiness};
use crate::{
    driver::{connection::Receiving, contract::DriverOps},
    slab::SlotId,
};

/// Sockets that an error lists.
const LISTED_MAX: usize = 16;

impl<B: Backend<K>, K: Kernel> Readiness<B, K> {
    /// Adds the list of waiting sockets to the error that every task waits.
    #[cold]
    pub(in crate::driver) fn explain(&self, error: io::Error) -> io::Error {
        if error.kind() != io::ErrorKind::Deadlock {
            return error;
        }
        let waiting = self.sockets.ids().into_iter().filter_map(|id| {
            let waits = self.waits(id);
            (!waits.is_empty()).then(|| format!("{} waits for {}", self.describe(id), waits.join(" and ")))
        });
        let mut listed: Vec<String> = waiting.collect();
        let more = listed.len().saturating_sub(LISTED_MAX);
        listed.truncate(LISTED_MAX);
        if more > 0 {
            listed.push(format!("{more} more"));
        }
        if listed.is_empty() {
            listed.push("no task waits for a socket or a timer, they wait for each other".into());
        }
        io::Error::new(io::ErrorKind::Deadlock, format!("{error}: {}", listed.join("; ")))
    }

    /// The events that a socket's waiters wait for; empty when there are no waiters.
    fn waits(&self, id: SlotId) -> Vec<&'static str> {
        let Some(socket) = self.sockets.get(id) else { return Vec::new() };
        let receiving =
            socket.receive_waiter.is_some().then_some(match (socket.kind, socket.connection.receiving()) {
                (Kind::Listener { .. }, _) => "accept",
                (_, Receiving::Starved) => "a receive buffer",
                _ => "receive",
            });
        let sending = socket.send.waiter.is_some().then_some(match socket.kind {
            Kind::Connecting => "connect",
            Kind::Listener { .. } | Kind::Stream => "room to send",
        });
        receiving.into_iter().chain(sending).collect()
    }

    fn describe(&self, id: SlotId) -> String {
        let name = |address: io::Result<_>| {
            address
                .map_or_else(|_| "unnamed".to_owned(), |address: crate::address::Address| address.to_string())
        };
        match self.sockets.get(id).map(|socket| socket.kind) {
            Some(Kind::Listener { .. }) => format!("listener {}", name(self.local_address(id))),
            Some(Kind::Connecting | Kind::Stream) => {
                format!("stream {} to {}", name(self.local_address(id)), name(self.peer_address(id)))
            }
            None => "a closed socket".into(),
        }
    }
}
