//! Token buckets, and the rule that ends a session which is told to slow down and does not.

/// A rate: so many a second, and so many at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Messages a second, on average.
    pub per_second: u32,
    /// Messages that may come at once after a pause.
    pub burst: u32,
}

/// A token is 10^9 units, so a bucket gains `per_second` units each nanosecond and nothing is rounded.
const TOKEN: u64 = 1_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// What is left of a rate. Time that goes back counts as none that passed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    units: u64,
    at_ns: u64,
}

impl Bucket {
    /// Full, whatever the burst is.
    pub(super) const FULL: Self = Self { units: u64::MAX, at_ns: 0 };

    /// Takes a token if there is one.
    pub(super) fn take(&mut self, now_ns: u64, rate: Rate) -> bool {
        self.units = self.units_at(now_ns, rate);
        self.at_ns = self.at_ns.max(now_ns);
        let is_enough = self.units >= TOKEN;
        if is_enough {
            self.units -= TOKEN;
        }
        is_enough
    }

    /// The share of the burst that is used, from 0 to 1.
    pub(super) fn usage(&self, now_ns: u64, rate: Rate) -> f64 {
        let full = u64::from(rate.burst) * TOKEN;
        if full == 0 { 1.0 } else { 1.0 - self.units_at(now_ns, rate) as f64 / full as f64 }
    }

    /// When it will be full again if nothing more is taken.
    pub(super) fn full_at_ns(&self, rate: Rate) -> u64 {
        let missing = (u64::from(rate.burst) * TOKEN).saturating_sub(self.units);
        let wait = missing.div_ceil(u64::from(rate.per_second).max(1));
        self.at_ns.saturating_add(wait)
    }

    fn units_at(&self, now_ns: u64, rate: Rate) -> u64 {
        let gained = now_ns.saturating_sub(self.at_ns).saturating_mul(rate.per_second.into());
        self.units.saturating_add(gained).min(u64::from(rate.burst) * TOKEN)
    }
}

/// How many times its rate a port may be offered.
const FLOOD_FACTOR: u64 = 10;
/// For how many seconds of the clock in a row.
const FLOOD_SECONDS: u32 = 3;

/// Counts what a port is offered in each second of the clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flood {
    second: u64,
    offered: u64,
    /// Seconds before this one, without a gap, that were offered too much.
    run: u32,
}

impl Flood {
    /// Counts a message. True when the session is to be ended.
    pub(super) fn count(&mut self, now_ns: u64, rate: Rate) -> bool {
        let second = now_ns / SECOND_NS;
        let limit = u64::from(rate.per_second).max(1) * FLOOD_FACTOR;
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

    fn taken(bucket: &mut Bucket, now_ns: u64, attempts: u32, rate: Rate) -> u32 {
        (0..attempts).map(|_| u32::from(bucket.take(now_ns, rate))).sum()
    }

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate_exactly() {
        let mut bucket = Bucket::FULL;
        assert_eq!(taken(&mut bucket, 5, 1_000, RATE), 100);
        assert_eq!(taken(&mut bucket, 5 + 9_999_999, 10, RATE), 0, "a nanosecond too early");
        assert_eq!(taken(&mut bucket, 5 + 10_000_000, 10, RATE), 1);
        let total: u32 =
            (0..100_000).map(|step| taken(&mut bucket, 10_000_005 + step * 100_000, 1, RATE)).sum();
        assert_eq!(total, 999, "ten seconds at a hundred each, the first step of them not yet due");
    }

    #[test]
    fn a_clock_that_goes_back_gives_nothing() {
        let mut bucket = Bucket::FULL;
        assert_eq!(taken(&mut bucket, SECOND_NS, 200, RATE), 100);
        assert_eq!(taken(&mut bucket, 0, 10, RATE), 0);
        assert_eq!(taken(&mut bucket, SECOND_NS, 10, RATE), 0);
    }

    #[test]
    fn a_lower_burst_counts_at_once() {
        let mut bucket = Bucket::FULL;
        bucket.take(0, RATE);
        assert_eq!(taken(&mut bucket, 0, 100, Rate { per_second: 1, burst: 5 }), 5);
    }

    #[test]
    fn a_bucket_knows_when_it_is_full_again() {
        let mut bucket = Bucket::FULL;
        taken(&mut bucket, 0, 50, RATE);
        assert_eq!(bucket.full_at_ns(RATE), SECOND_NS / 2);
        assert_eq!(bucket.usage(0, RATE), 0.5);
        assert_eq!(bucket.usage(SECOND_NS / 2, RATE), 0.0);
    }

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
