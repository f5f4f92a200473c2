//! The rule that ends the session of a client that ignores its rate limit.

use crate::rate::Rate;

const SECOND_NS: u64 = 1_000_000_000;
/// Multiple of its rate that counts as a flood.
const FLOOD_FACTOR: u64 = 10;
/// Consecutive clock seconds of flood that end the session.
const FLOOD_SECONDS: u32 = 3;

/// Counts the messages offered to a port in each clock second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flood {
    second: u64,
    offered: u64,
    /// Consecutive seconds before this one in which too much was offered.
    run: u32,
}

impl Flood {
    /// Counts a message. True if the session must be ended.
    pub(super) fn count(&mut self, now_ns: u64, rate: Rate) -> bool {
        let second = now_ns / SECOND_NS;
        let limit = rate.per_second.max(1).saturating_mul(FLOOD_FACTOR);
        if second != self.second {
            let goes_on = second == self.second + 1 && self.offered >= limit;
            self.run = if goes_on { self.run + 1 } else { 0 };
            self.second = second;
            self.offered = 0;
        }
        self.offered += 1;
        self.offered >= limit && self.run + 1 >= FLOOD_SECONDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { per_second: 100, burst: 100 };

    #[test]
    fn ten_times_the_rate_for_three_seconds_ends_the_session_and_less_does_not() {
        let offer = |flood: &mut Flood, second: u64, messages: u64| {
            (0..messages).any(|_| flood.count(second * SECOND_NS, RATE))
        };
        let mut flood = Flood::default();
        assert!(!offer(&mut flood, 1, 1_000));
        assert!(!offer(&mut flood, 2, 1_000));
        assert!(!offer(&mut flood, 3, 999));
        assert!(offer(&mut flood, 3, 1));

        let mut flood = Flood::default();
        assert!(!offer(&mut flood, 1, 5_000));
        assert!(!offer(&mut flood, 3, 5_000), "a second without any lies between");
        assert!(!offer(&mut flood, 4, 5_000));
        assert!(offer(&mut flood, 5, 1_000));
    }
}
