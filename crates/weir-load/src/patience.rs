//! How long to wait for a peer to close a connection that it should close. Pure.
//!
//! A server that says `Connection: close` and closes does so within the time of a few packets. One that does not
//! would cost every message the whole wait, and the generator would measure its own patience. So after a few
//! connections that were kept open the peer is waited for only now and then, to see whether it has mended its ways.

use std::time::Duration;

/// The wait, while there is hope.
const LIMIT: Duration = Duration::from_millis(100);
/// Connections kept open in a row that take the hope away.
const KEPT_OPEN_MAX: u32 = 3;
/// Without hope, one connection in so many is waited for.
const CONNECTIONS_PER_TRIAL: u32 = 64;

/// Experience with one server.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    kept_open_in_a_row: u32,
    since_trial: u32,
}

impl Patience {
    /// How long to wait this time.
    pub(crate) fn limit(&mut self) -> Duration {
        if self.kept_open_in_a_row < KEPT_OPEN_MAX {
            return LIMIT;
        }
        self.since_trial += 1;
        if self.since_trial < CONNECTIONS_PER_TRIAL {
            return Duration::ZERO;
        }
        self.since_trial = 0;
        LIMIT
    }

    /// What came of it.
    pub(crate) fn saw(&mut self, closed: bool, limit: Duration) {
        if closed {
            self.kept_open_in_a_row = 0;
        } else if !limit.is_zero() {
            self.kept_open_in_a_row = self.kept_open_in_a_row.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_never_closes_is_waited_for_three_times_and_then_once_in_sixty_four() {
        let mut patience = Patience::default();
        let mut waits = Vec::new();
        for number in 0..200 {
            let limit = patience.limit();
            patience.saw(false, limit);
            if !limit.is_zero() {
                waits.push(number);
            }
        }
        assert_eq!(waits, [0, 1, 2, 66, 130, 194]);
    }

    #[test]
    fn one_connection_that_closes_brings_the_hope_back() {
        let mut patience = Patience::default();
        for _ in 0..10 {
            let limit = patience.limit();
            patience.saw(false, limit);
        }
        assert_eq!(patience.limit(), Duration::ZERO);
        patience.saw(true, Duration::ZERO);
        assert_eq!(patience.limit(), LIMIT);
    }
}
