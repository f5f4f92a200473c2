//! The seed of a run, and the random choices of scripts.

use std::hash::{BuildHasher, Hasher, RandomState};

pub use weir_stats::random::Random;

/// A number from `low` to `high`, both included.
pub fn between(random: &mut Random, low: usize, high: usize) -> usize {
    low + random.below((high - low) as u64 + 1) as usize
}

pub fn bytes(random: &mut Random, length: usize) -> Vec<u8> {
    (0..length).map(|_| random.next_u64() as u8).collect()
}

/// The seed of this run, which is printed.
pub fn seed() -> u64 {
    let asked = std::env::var("WEIR_TEST_SEED").ok().and_then(|text| text.parse().ok());
    let seed = asked.unwrap_or_else(|| RandomState::new().build_hasher().finish());
    println!("WEIR_TEST_SEED={seed}");
    seed
}
