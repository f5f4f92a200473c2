//! How much an account may have read from journals to be sent its past: so many bytes a second, after a burst. What is
//! read counts and not what is found in it, because a few messages may lie among gigabytes of others'. The account has
//! it and not the connection, because who asks for everything again and again has a new connection each time.

use std::cell::Cell;

use weir_engine::time::Instant;

/// Bytes a second, and at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    pub(super) bytes_per_second: u64,
    pub(super) burst_bytes: u64,
}

impl Rate {
    /// How long it takes to be allowed so many bytes.
    fn time_ns(self, bytes: u64) -> u64 {
        let time_ns = u128::from(bytes) * 1_000_000_000 / u128::from(self.bytes_per_second.max(1));
        u64::try_from(time_ns).unwrap_or(u64::MAX)
    }
}

/// What one account has used of its rate.
#[derive(Debug, Default)]
pub(super) struct Allowance {
    /// When the whole burst is allowed again.
    whole_at_ns: Cell<u64>,
}

impl Allowance {
    /// So many bytes were read.
    pub(super) fn spend(&self, now: Instant, bytes: u64, rate: Rate) {
        let from_ns = self.whole_at_ns.get().max(now.as_nanos());
        self.whole_at_ns.set(from_ns.saturating_add(rate.time_ns(bytes)));
    }

    /// From when on more may be read.
    pub(super) fn next_at(&self, rate: Rate) -> Instant {
        Instant::from_nanos(self.whole_at_ns.get().saturating_sub(rate.time_ns(rate.burst_bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { bytes_per_second: 1_000, burst_bytes: 5_000 };
    const SECOND_NS: u64 = 1_000_000_000;

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * SECOND_NS)
    }

    #[test]
    fn a_burst_is_read_at_once_and_then_there_is_the_rate() {
        let allowance = Allowance::default();
        for _ in 0..5 {
            assert!(allowance.next_at(RATE) <= at(100));
            allowance.spend(at(100), 1_000, RATE);
        }
        assert_eq!(allowance.next_at(RATE), at(100), "the burst is used up exactly");
        allowance.spend(at(100), 2_000, RATE);
        assert_eq!(allowance.next_at(RATE), at(102));
        allowance.spend(at(102), 500, RATE);
        assert_eq!(allowance.next_at(RATE).as_nanos(), at(102).as_nanos() + SECOND_NS / 2);
    }

    #[test]
    fn a_pause_gives_the_burst_back_and_no_more() {
        let allowance = Allowance::default();
        allowance.spend(at(1), 6_000, RATE);
        assert_eq!(allowance.next_at(RATE), at(2));
        allowance.spend(at(1_000), 5_000, RATE);
        assert_eq!(allowance.next_at(RATE), at(1_000));
        allowance.spend(at(1_000), 1_000, RATE);
        assert_eq!(allowance.next_at(RATE), at(1_001), "a long pause is worth one burst");
    }

    #[test]
    fn a_rate_of_nothing_is_very_slow_and_no_division() {
        let rate = Rate { bytes_per_second: 0, burst_bytes: 0 };
        let allowance = Allowance::default();
        allowance.spend(at(1), u64::MAX, rate);
        assert_eq!(allowance.next_at(rate), Instant::from_nanos(u64::MAX));
    }
}
