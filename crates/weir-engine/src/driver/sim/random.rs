//! The simulator's only source of randomness: a small seeded generator, so that a seed determines a whole run.
//!
//! SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014). Not for secrets.
//! `weir-stats` contains it too: an engine should not depend on a statistics crate for ten lines.

use std::time::Duration;

/// A stream of numbers that its seed determines.
#[derive(Debug)]
pub(in crate::driver) struct Random {
    state: u64,
}

impl Random {
    pub(in crate::driver) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub(in crate::driver) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`; zero when `limit` is zero.
    pub(in crate::driver) fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.next()) * limit as u128) >> 64) as usize
    }

    /// True `per_mille` times in 1000. A chance of zero draws nothing.
    pub(in crate::driver) fn chance(&mut self, per_mille: u16) -> bool {
        per_mille > 0 && self.below(1000) < usize::from(per_mille)
    }

    /// A duration from `low` to `high`, both included.
    pub(in crate::driver) fn between(&mut self, low: Duration, high: Duration) -> Duration {
        let span = high.saturating_sub(low).as_nanos() as usize;
        low + Duration::from_nanos(self.below(span.saturating_add(1)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_published_one() {
        let mut random = Random::new(1_234_567);
        let published = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([random.next(), random.next(), random.next()], published);
    }

    #[test]
    fn ranges_hold_and_both_ends_are_reached() {
        let mut random = Random::new(7);
        let (low, high) = (Duration::from_nanos(5), Duration::from_nanos(8));
        let drawn: Vec<Duration> = (0..200).map(|_| random.between(low, high)).collect();
        assert!(drawn.iter().all(|delay| (low..=high).contains(delay)));
        assert!(drawn.contains(&low) && drawn.contains(&high));
        assert_eq!(random.below(0), 0);
        assert_eq!(random.between(high, low), high, "an empty range is its lower end");
    }

    #[test]
    fn a_chance_of_all_or_nothing_is_certain() {
        let mut random = Random::new(7);
        assert!((0..100).all(|_| random.chance(1000)));
        assert!(!(0..100).any(|_| random.chance(0)));
    }
}
