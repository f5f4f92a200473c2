//! Random times in whole nanoseconds, computed with integers only: the same on every machine, independent of its
//! library's logarithm.

use weir_stats::random::Random;

use super::scenario::Lag;

/// Uniform from `min` to `max`.
#[inline]
pub(super) fn uniform(random: &mut Random, min: u64, max: u64) -> u64 {
    min + random.below(max - min + 1)
}

/// Exponential with this mean, rounded down, by comparisons alone: von Neumann, "Various techniques used in
/// connection with random digits" (1951). The length of the first descending run of uniform numbers is odd with
/// probability exp(-first); a whole mean is added for each even one.
#[inline]
pub(super) fn exponential(random: &mut Random, mean_ns: u64) -> u64 {
    let mut whole = 0_u64;
    loop {
        let first = random.next_u64();
        let (mut last, mut is_odd) = (first, true);
        loop {
            let next = random.next_u64();
            if next >= last {
                break;
            }
            last = next;
            is_odd = !is_odd;
        }
        if is_odd {
            let fraction = (u128::from(mean_ns) * u128::from(first)) >> 64;
            return whole.saturating_mul(mean_ns).saturating_add(fraction as u64);
        }
        whole += 1;
    }
}

/// A random lag.
#[inline]
pub(super) fn lag(random: &mut Random, lag: &Lag) -> u64 {
    let mut ns = lag.floor_ns;
    if lag.exponential_ns > 0 {
        ns = ns.saturating_add(exponential(random, lag.exponential_ns));
    }
    if let Some(tail) = lag.tail
        && random.below(1_000_000) < u64::from(tail.per_million)
    {
        ns += tail.extra_ns;
    }
    ns
}

#[cfg(test)]
mod tests {
    use super::{super::scenario::LagTail, *};

    const SEED: u64 = 11;

    #[test]
    fn exponential_times_have_the_distribution_of_their_name() {
        let mut random = Random::seeded(SEED);
        let (count, mean) = (200_000, 1_000_000_u64);
        let values: Vec<u64> = (0..count).map(|_| exponential(&mut random, mean)).collect();
        let found = values.iter().sum::<u64>() as f64 / f64::from(count);
        // Five standard errors of the mean, which is also the standard deviation.
        let limit = 5.0 * mean as f64 / f64::from(count).sqrt();
        assert!((found - mean as f64).abs() < limit, "seed {SEED}: mean {found}");
        for means in [0.1_f64, 0.5, 1.0, 2.0, 4.0] {
            let above = values.iter().filter(|value| **value as f64 > means * mean as f64).count() as f64;
            let expected = (-means).exp();
            let error = (expected * (1.0 - expected) / f64::from(count)).sqrt();
            let share = above / f64::from(count);
            assert!((share - expected).abs() < 5.0 * error, "seed {SEED}: {share} above {means} means");
        }
    }

    #[test]
    fn uniform_times_reach_both_ends_and_no_further() {
        let mut random = Random::seeded(SEED);
        let values: Vec<u64> = (0..1_000).map(|_| uniform(&mut random, 5, 8)).collect();
        assert_eq!((values.iter().min(), values.iter().max()), (Some(&5), Some(&8)));
        assert_eq!(uniform(&mut random, 7, 7), 7);
    }

    #[test]
    fn a_lag_has_its_floor_and_its_tail_as_often_as_said() {
        let mut random = Random::seeded(SEED);
        assert_eq!(lag(&mut random, &Lag::constant(9)), 9);
        let tail = LagTail { per_million: 250_000, extra_ns: 1_000_000 };
        let model = Lag { floor_ns: 100, exponential_ns: 10, tail: Some(tail) };
        let values: Vec<u64> = (0..10_000).map(|_| lag(&mut random, &model)).collect();
        assert!(values.iter().all(|value| *value >= 100));
        let long = values.iter().filter(|value| **value >= 1_000_000).count();
        // Five binomial standard deviations.
        assert!((2_284..=2_716).contains(&long), "seed {SEED}: {long}");
    }
}
