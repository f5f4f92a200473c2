//! Rates, and token buckets that enforce them. The caller decides what a token stands for: a message, a byte.

/// A rate: tokens per second, and tokens at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Tokens per second, on average.
    pub per_second: u64,
    /// Tokens that may be taken at once after a pause.
    pub burst: u64,
}

/// A token is 10^9 units, so a bucket gains `per_second` units each nanosecond and nothing is rounded. The range is
/// 9.2 * 10^9 tokens, left or owed: larger numbers are limited to that.
const TOKEN: i64 = 1_000_000_000;

fn units(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX).saturating_mul(TOKEN)
}

/// The tokens left under a rate. If the time goes back, no time has passed.
#[derive(Clone, Copy, Debug)]
pub struct TokenBucket {
    /// Negative: owed.
    units: i64,
    at_ns: u64,
}

impl TokenBucket {
    /// Full, for any burst.
    pub const FULL: Self = Self { units: i64::MAX, at_ns: 0 };

    /// Takes a token if there is one.
    pub fn take(&mut self, now_ns: u64, rate: Rate) -> bool {
        self.gain(now_ns, rate);
        let is_enough = self.units >= TOKEN;
        if is_enough {
            self.units -= TOKEN;
        }
        is_enough
    }

    /// Takes tokens that have already been used. If there are not enough, the rest is owed.
    pub fn spend(&mut self, now_ns: u64, tokens: u64, rate: Rate) {
        self.gain(now_ns, rate);
        self.units = self.units.saturating_sub(units(tokens));
    }

    /// The time from which nothing is owed.
    pub fn ready_at_ns(&self, rate: Rate) -> u64 {
        self.reaches_at_ns(0, rate)
    }

    /// When it will be full again if no more tokens are taken.
    pub fn full_at_ns(&self, rate: Rate) -> u64 {
        self.reaches_at_ns(units(rate.burst), rate)
    }

    fn reaches_at_ns(&self, wanted: i64, rate: Rate) -> u64 {
        let missing = wanted.saturating_sub(self.units).max(0).unsigned_abs();
        self.at_ns.saturating_add(missing.div_ceil(rate.per_second.max(1)))
    }

    fn gain(&mut self, now_ns: u64, rate: Rate) {
        let gained = now_ns.saturating_sub(self.at_ns).saturating_mul(rate.per_second);
        let gained = i64::try_from(gained).unwrap_or(i64::MAX);
        self.units = self.units.saturating_add(gained).min(units(rate.burst));
        self.at_ns = self.at_ns.max(now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;
    const RATE: Rate = Rate { per_second: 100, burst: 100 };

    fn taken(bucket: &mut TokenBucket, now_ns: u64, attempts: u32, rate: Rate) -> u32 {
        (0..attempts).map(|_| u32::from(bucket.take(now_ns, rate))).sum()
    }

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate_exactly() {
        let mut bucket = TokenBucket::FULL;
        assert_eq!(taken(&mut bucket, 5, 1_000, RATE), 100);
        assert_eq!(taken(&mut bucket, 5 + 9_999_999, 10, RATE), 0, "a nanosecond too early");
        assert_eq!(taken(&mut bucket, 5 + 10_000_000, 10, RATE), 1);
        let total: u32 =
            (0..100_000).map(|step| taken(&mut bucket, 10_000_005 + step * 100_000, 1, RATE)).sum();
        assert_eq!(total, 999, "ten seconds at a hundred each, the first step of them not yet due");
    }

    #[test]
    fn a_clock_that_goes_back_gives_nothing() {
        let mut bucket = TokenBucket::FULL;
        assert_eq!(taken(&mut bucket, SECOND_NS, 200, RATE), 100);
        assert_eq!(taken(&mut bucket, 0, 10, RATE), 0);
        assert_eq!(taken(&mut bucket, SECOND_NS, 10, RATE), 0);
    }

    #[test]
    fn a_lower_burst_counts_at_once() {
        let mut bucket = TokenBucket::FULL;
        bucket.take(0, RATE);
        assert_eq!(taken(&mut bucket, 0, 100, Rate { per_second: 1, burst: 5 }), 5);
    }

    #[test]
    fn a_bucket_knows_when_it_is_full_again() {
        let mut bucket = TokenBucket::FULL;
        taken(&mut bucket, 0, 50, RATE);
        assert_eq!(bucket.full_at_ns(RATE), SECOND_NS / 2);
    }

    #[test]
    fn what_is_owed_is_paid_at_the_rate_and_a_pause_is_worth_one_burst() {
        let rate = Rate { per_second: 1_000, burst: 5_000 };
        let mut bucket = TokenBucket::FULL;
        let second = |second: u64| second * SECOND_NS;
        for _ in 0..5 {
            assert!(bucket.ready_at_ns(rate) <= second(100));
            bucket.spend(second(100), 1_000, rate);
        }
        assert_eq!(bucket.ready_at_ns(rate), second(100), "the burst is used up exactly");
        bucket.spend(second(100), 2_000, rate);
        assert_eq!(bucket.ready_at_ns(rate), second(102));
        assert!(!bucket.take(second(102), rate), "nothing is owed and nothing left");
        bucket.spend(second(102), 500, rate);
        assert_eq!(bucket.ready_at_ns(rate), second(102) + SECOND_NS / 2);
        bucket.spend(second(1_000), 6_000, rate);
        assert_eq!(bucket.ready_at_ns(rate), second(1_001), "a long pause is worth one burst");
    }

    #[test]
    fn a_rate_of_nothing_is_very_slow_and_no_division() {
        let (rate, mut bucket) = (Rate { per_second: 0, burst: 0 }, TokenBucket::FULL);
        bucket.spend(SECOND_NS, u64::MAX, rate);
        bucket.spend(SECOND_NS, u64::MAX, rate);
        assert!(bucket.ready_at_ns(rate) > 100 * 365 * 86_400 * SECOND_NS);
    }
}
