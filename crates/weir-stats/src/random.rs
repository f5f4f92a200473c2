//! A small seeded generator: the same seed always gives the same plan, schedule and resamples, on every machine.
//!
//! xoshiro256++ by Blackman and Vigna, "Scrambled Linear Pseudorandom Number Generators", ACM TOMS 47 (2021), with
//! its state filled by SplitMix64 as they advise. It is written here, not taken from a crate, because a stored seed
//! must mean the same sequence after every upgrade. It is not for secrets: its output is predictable.

const SPLITMIX_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// xoshiro256++, period 2^256 - 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// A generator whose whole sequence follows from `seed`; every seed is good, zero included.
    pub fn seeded(seed: u64) -> Self {
        let mut counter = seed;
        let mut next = || splitmix(&mut counter);
        // SplitMix64 is a bijection of its counter, so four words in a row cannot all be zero.
        Self { state: [next(), next(), next(), next()] }
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let state = &mut self.state;
        let result = state[0].wrapping_add(state[3]).rotate_left(23).wrapping_add(state[0]);
        let shifted = state[1] << 17;
        state[2] ^= state[0];
        state[3] ^= state[1];
        state[1] ^= state[2];
        state[0] ^= state[3];
        state[2] ^= shifted;
        state[3] = state[3].rotate_left(45);
        result
    }

    /// A uniform whole number in `0..bound`; 0 when the bound is 0.
    ///
    /// Multiplication with rejection: Lemire, "Fast Random Integer Generation in an Interval", ACM TOMACS 29
    /// (2019).
    pub fn below(&mut self, bound: u64) -> u64 {
        let mut product = u128::from(self.next_u64()) * u128::from(bound);
        if (product as u64) < bound {
            let rejected = bound.wrapping_neg() % bound;
            while (product as u64) < rejected {
                product = u128::from(self.next_u64()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }

    /// Uniform from 0 (included) to 1 (excluded), a multiple of 2^-53.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Exponential with this mean, by inversion: the gaps of Poisson arrivals. At most 37 means, never negative.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        // 1 - u is never zero, so its logarithm is finite.
        -mean * (-self.uniform()).ln_1p()
    }

    /// Normal with mean 0 and standard deviation 1: Box and Muller, Annals of Mathematical Statistics 29 (1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential(1.0)).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Puts the items into random order, every order equally likely (Fisher and Yates; Durstenfeld 1964).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let chosen = self.below(last as u64 + 1) as usize;
            items.swap(last, chosen);
        }
    }

    /// The numbers of `0..length` in random order.
    pub fn permutation(&mut self, length: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..length).collect();
        self.shuffle(&mut order);
        order
    }
}

/// A derived seed for part `index`: block 3 of a plan, worker 2 of a generator.
///
/// Parts get unrelated sequences and may be drawn in any order, so that a resumed study repeats its plan.
pub fn derived_seed(seed: u64, index: u64) -> u64 {
    mix(mix(seed.wrapping_add(SPLITMIX_STEP)) ^ index.wrapping_mul(SPLITMIX_STEP))
}

/// The next word of SplitMix64, for uses that need only one word of state: mostly tests.
#[inline]
pub fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(SPLITMIX_STEP);
    mix(*state)
}

/// Word `index` of SplitMix64's sequence from `seed`, without computing those before it, so that both sides of a
/// check can generate bytes from their position. For one seed, no two words are the same.
#[inline]
pub fn splitmix_at(seed: u64, index: u64) -> u64 {
    mix(seed.wrapping_add(index.wrapping_add(1).wrapping_mul(SPLITMIX_STEP)))
}

/// The finaliser of SplitMix64: Steele, Lea and Flood, OOPSLA 2014 (variant 13 of Stafford).
#[inline]
fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        // First outputs of the reference implementation for the state 1, 2, 3, 4.
        let mut random = Random { state: [1, 2, 3, 4] };
        let found: Vec<u64> = (0..6).map(|_| random.next_u64()).collect();
        let expected = [
            41_943_041,
            58_720_359,
            3_588_806_011_781_223,
            3_591_011_842_654_386,
            9_228_616_714_210_784_205,
            9_973_669_472_204_895_162,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn seeding_fills_the_state_with_the_published_splitmix_words() {
        // First outputs of the reference SplitMix64 for the seed 1234567.
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
        ];
        assert_eq!(Random::seeded(1_234_567).state, expected);
        assert_eq!([0, 1, 2, 3].map(|index| splitmix_at(1_234_567, index)), expected);
    }

    #[test]
    fn numbers_below_a_bound_are_equally_likely() {
        let (mut random, mut counts) = (Random::seeded(3), [0_u32; 7]);
        for _ in 0..70_000 {
            counts[random.below(7) as usize] += 1;
        }
        // Chi-squared with 6 degrees of freedom stays under 22.5 with probability 0.999.
        let deviation: f64 = counts.iter().map(|count| (f64::from(*count) - 1e4).powi(2) / 1e4).sum();
        assert!(deviation < 22.5, "counts {counts:?}");
        assert_eq!(random.below(0), 0);
        assert_eq!(random.below(1), 0);
    }

    #[test]
    fn deviates_have_the_mean_and_variance_of_their_distribution() {
        let mut random = Random::seeded(4);
        let mut check = |name: &str, mean: f64, variance: f64, draw: fn(&mut Random) -> f64| {
            let values: Vec<f64> = (0..100_000).map(|_| draw(&mut random)).collect();
            let found_mean = values.iter().sum::<f64>() / 1e5;
            let found_variance = values.iter().map(|value| (value - found_mean).powi(2)).sum::<f64>() / 1e5;
            // Five standard errors of the mean, and 5 % on the variance.
            assert!((found_mean - mean).abs() < 5.0 * (variance / 1e5).sqrt(), "{name}: mean {found_mean}");
            assert!((found_variance / variance - 1.0).abs() < 0.05, "{name}: variance {found_variance}");
        };
        check("uniform", 0.5, 1.0 / 12.0, Random::uniform);
        check("exponential", 3.0, 9.0, |random| random.exponential(3.0));
        check("normal", 0.0, 1.0, Random::normal);
    }

    #[test]
    fn every_order_of_three_is_equally_likely() {
        let (mut random, mut counts) = (Random::seeded(5), std::collections::BTreeMap::new());
        for _ in 0..6_000 {
            *counts.entry(random.permutation(3)).or_insert(0_i32) += 1;
        }
        assert_eq!(counts.len(), 6);
        // Five binomial standard deviations (28.9) around 1000.
        assert!(counts.values().all(|count| (count - 1_000).abs() < 145), "{counts:?}");
    }

    #[test]
    fn derived_seeds_differ_between_parts_and_between_seeds() {
        let seeds: HashSet<u64> =
            (0..100).flat_map(|seed| (0..100).map(move |index| derived_seed(seed, index))).collect();
        assert_eq!(seeds.len(), 10_000);
    }

    proptest! {
        #[test]
        fn draws_stay_in_their_bounds(seed: u64, bound in 1_u64.., mean in 1e-9_f64..1e9) {
            let mut random = Random::seeded(seed);
            for _ in 0..100 {
                prop_assert!(random.below(bound) < bound);
                prop_assert!((0.0..1.0).contains(&random.uniform()));
                prop_assert!((0.0..=37.0 * mean).contains(&random.exponential(mean)));
                prop_assert!(random.normal().is_finite());
            }
        }

        #[test]
        fn a_permutation_holds_every_number_once(seed: u64, length in 0_usize..200) {
            let mut order = Random::seeded(seed).permutation(length);
            order.sort_unstable();
            prop_assert_eq!(order, (0..length).collect::<Vec<_>>());
        }
    }
}
