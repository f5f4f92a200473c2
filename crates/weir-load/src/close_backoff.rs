//! How long to wait for a peer to close a connection that it should close. Pure.
//!
//! A server that sends `Connection: close` and closes does so within the time of a few packets. One that does not
//! close would cost the whole wait on every message, and the generator would measure its own timeout. So after a few
//! connections that were kept open, the generator waits for a close only now and then, to see whether the server has
//! changed its behaviour.

use std::time::Duration;

use weir_engine::time::Instant;

/// The wait, until the server has failed to close [`KEPT_OPEN_MAX`] times in a row.
const LIMIT: Duration = Duration::from_millis(100);
/// Connections kept open in a row after which waiting becomes the exception.
const KEPT_OPEN_MAX: u32 = 3;
/// Time between two waits after that: a user spends at most a tenth of its time waiting.
const TRIAL_INTERVAL: Duration = Duration::from_secs(1);

/// How one server has behaved so far.
#[derive(Debug, Default)]
pub(crate) struct CloseBackoff {
    kept_open_in_a_row: u32,
    trial_next: Instant,
}

impl CloseBackoff {
    /// How long to wait for this close; zero for not at all.
    pub(crate) fn limit(&mut self, now: Instant) -> Duration {
        if self.kept_open_in_a_row < KEPT_OPEN_MAX {
            return LIMIT;
        }
        if now < self.trial_next {
            return Duration::ZERO;
        }
        self.trial_next = now + TRIAL_INTERVAL;
        LIMIT
    }

    /// Records whether the peer closed within `limit`.
    pub(crate) fn saw(&mut self, closed: bool, limit: Duration, now: Instant) {
        if closed {
            self.kept_open_in_a_row = 0;
        } else if !limit.is_zero() {
            self.kept_open_in_a_row = self.kept_open_in_a_row.saturating_add(1);
            self.trial_next = now + TRIAL_INTERVAL;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    #[test]
    fn a_server_that_never_closes_is_waited_for_three_times_and_then_once_in_a_while() {
        let mut close_backoff = CloseBackoff::default();
        let (mut now, mut waits) = (0, Vec::new());
        for _ in 0..300 {
            let limit = close_backoff.limit(at(now));
            now += limit.as_millis() as u64;
            close_backoff.saw(false, limit, at(now));
            if !limit.is_zero() {
                waits.push(now);
            }
            now += 10;
        }
        assert_eq!(waits, [100, 210, 320, 1420, 2520]);
    }

    #[test]
    fn one_connection_that_closes_brings_the_hope_back() {
        let mut close_backoff = CloseBackoff::default();
        for now in 0..10 {
            let limit = close_backoff.limit(at(now));
            close_backoff.saw(false, limit, at(now));
        }
        assert_eq!(close_backoff.limit(at(10)), Duration::ZERO);
        close_backoff.saw(true, Duration::ZERO, at(10));
        assert_eq!(close_backoff.limit(at(10)), LIMIT);
    }
}
