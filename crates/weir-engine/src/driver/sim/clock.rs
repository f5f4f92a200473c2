//! How virtual time passes, and what is said when it never could again.

use std::{io, time::Duration};

use super::{Sim, endpoint::Kind};
use crate::{driver::Wait, net::Address, slots::SlotId};

/// Turns in a row in which tasks only looked: then time goes on although somebody is always ready, so that a loop
/// that yields until its time has come does come to an end.
const LOOKS_MAX: u32 = 1000;
/// How far time goes on at each further look.
const LOOK: Duration = Duration::from_micros(1);
impl Sim {
    /// Moves time to where `wait` ends. An error: it would never end.
    pub(super) fn pass_time(&mut self, wait: Wait) -> io::Result<()> {
        let next = self.network.next_at();
        self.looks = if wait == Wait::No { self.looks.saturating_add(1) } else { 0 };
        match (wait, next) {
            (Wait::No, _) if self.looks > LOOKS_MAX => self.network.advance(self.network.now() + LOOK),
            (Wait::No, _) => {}
            (Wait::Until(deadline), next) => {
                self.network.advance(next.map_or(deadline, |next| next.min(deadline)));
            }
            (Wait::Forever, Some(next)) => self.network.advance(next),
            (Wait::Forever, None) => {
                // Another thread may have said something after the runtime last looked.
                if rustix::io::read(&*self.parts.wake, &mut [0u8; 8]).is_err() {
                    return Err(self.deadlock());
                }
            }
        }
        Ok(())
    }

    /// Everybody waits, and nothing will ever happen: who waits for what.
    pub(super) fn deadlock(&self) -> io::Error {
        const LISTED_MAX: usize = 16;
        let waiting = self.sockets.ids().into_iter().filter_map(|id| {
            let waits = self.sockets.get(id)?.waits();
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
        let time = self.network.now().as_nanos();
        io::Error::new(
            io::ErrorKind::Deadlock,
            format!("deadlock at virtual time {time} ns, nothing can happen any more: {}", listed.join("; ")),
        )
    }

    pub(super) fn describe(&self, id: SlotId) -> String {
        let name = |address: Option<&Address>| address.map_or("unnamed".to_owned(), Address::to_string);
        match self.sockets.get(id).map(|socket| socket.kind) {
            Some(Kind::Listener(listener)) => {
                format!("listener {}", name(self.network.listener_address(listener)))
            }
            Some(Kind::Connecting(end) | Kind::Stream(end)) => {
                let (own, peer) = (self.network.address(end), self.network.peer_address(end));
                format!("stream {} to {}", name(own), name(peer))
            }
            None => "a closed socket".into(),
        }
    }
}
