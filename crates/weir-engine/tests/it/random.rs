//! Seeded random numbers and the byte pattern that streams are checked against.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    sync::Arc,
};

/// SplitMix64 (Steele, Lea, Flood 2014): every seed gives another sequence. The simulator's generator is not public.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ value >> 31
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low + (self.next() % (high - low + 1) as u64) as usize
    }

    /// True once in `count` times.
    pub fn one_in(&mut self, count: u64) -> bool {
        self.next().is_multiple_of(count)
    }

    /// An independent sequence.
    pub fn fork(&mut self) -> Self {
        Self(self.next())
    }
}

/// A seed from the operating system.
pub fn fresh_seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Period of the pattern: prime, so that no buffer size hides a shift.
const PERIOD_BYTES: usize = 65_521;

/// An endless stream of bytes that both sides know: any part of it can be made or checked by its offset.
#[derive(Clone, Debug)]
pub struct Pattern(Arc<[u8]>);

impl Pattern {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        Self((0..PERIOD_BYTES).map(|_| random.next() as u8).collect())
    }

    /// `length` bytes from `offset` on.
    pub fn bytes(&self, offset: usize, length: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(length);
        self.each_part(offset, length, |part, _| bytes.extend_from_slice(part));
        bytes
    }

    /// Fails with the first position at which `bytes` differ from the pattern at `offset`.
    #[track_caller]
    pub fn check(&self, offset: usize, bytes: &[u8]) {
        self.each_part(offset, bytes.len(), |part, start| {
            let received = &bytes[start..start + part.len()];
            if part != received {
                let place = part.iter().zip(received).position(|(left, right)| left != right);
                panic!("wrong byte at {} of the stream", offset + start + place.unwrap_or(0));
            }
        });
    }

    #[track_caller]
    fn each_part(&self, offset: usize, length: usize, mut action: impl FnMut(&[u8], usize)) {
        let mut done = 0;
        while done < length {
            let start = (offset + done) % PERIOD_BYTES;
            let count = (length - done).min(PERIOD_BYTES - start);
            action(&self.0[start..start + count], done);
            done += count;
        }
    }
}
