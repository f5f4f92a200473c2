//! Bytes for blocks that are not verified. No piece of them repeats, in a run or in a later one: storage that
//! compresses or deduplicates finds no redundancy, within a block or across blocks.
//!
//! A piece is seeded noise, generated once per thread, combined with a separate key over each word. That takes one
//! pass over the buffer, several times as fast as new noise, and is independent of what was read into the buffer
//! meanwhile.

use crate::verify::noise;

/// Small enough for the first-level cache.
const PIECE_BYTES: usize = 16 << 10;
const WORD_BYTES: usize = 8;
/// A thread has enough separate keys for a month of blocks.
const PIECES_OF_THREAD_BITS: u32 = 40;

/// The bytes of one thread.
#[derive(Clone, Debug)]
pub(super) struct Payload {
    seed: u64,
    noise: Box<[u64]>,
    next_piece: u64,
}

impl Payload {
    /// For a thread with this number among all threads of the run, which share a seed that no other run has.
    pub(super) fn new(seed: u64, thread_number: u32, block_bytes: usize) -> Self {
        let words = block_bytes.min(PIECE_BYTES).div_ceil(WORD_BYTES) as u64;
        Self {
            seed,
            noise: (0..words).map(|word| noise(!seed, word)).collect(),
            next_piece: u64::from(thread_number) << PIECES_OF_THREAD_BITS,
        }
    }

    /// The bytes of the next block.
    pub(super) fn fill(&mut self, block: &mut [u8]) {
        for piece in block.chunks_mut(PIECE_BYTES) {
            // For one seed all keys differ, so no word of the noise is written twice.
            let key = noise(self.seed, self.next_piece);
            self.next_piece = self.next_piece.wrapping_add(1);
            let mut places = piece.chunks_exact_mut(WORD_BYTES);
            let mut words = self.noise.iter().map(|word| (word ^ key).to_le_bytes());
            for (place, word) in (&mut places).zip(&mut words) {
                place.copy_from_slice(&word);
            }
            let rest = places.into_remainder();
            if let Some(word) = words.next() {
                rest.copy_from_slice(&word[..rest.len()]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_word_comes_twice_in_blocks_of_any_size_and_thread() {
        for block_bytes in [512, 4096, PIECE_BYTES + 512, 3 * PIECE_BYTES] {
            let mut seen = HashSet::new();
            for thread in 1..4 {
                let mut payload = Payload::new(1, thread, block_bytes);
                let mut block = vec![0; block_bytes];
                for _ in 0..20 {
                    payload.fill(&mut block);
                    assert!(block.chunks(WORD_BYTES).all(|word| seen.insert(word.to_vec())), "{block_bytes}");
                }
            }
        }
    }

    #[test]
    fn every_byte_of_a_block_is_filled_whatever_its_length() {
        for block_bytes in [1, 7, 8, 9, 1001, PIECE_BYTES + 3] {
            let mut payload = Payload::new(5, 1, block_bytes);
            let mut ones = vec![0_u8; block_bytes];
            let mut filled = vec![0_u8; block_bytes];
            for _ in 0..64 {
                payload.fill(&mut filled);
                ones.iter_mut().zip(&filled).for_each(|(ones, byte)| *ones |= byte);
            }
            assert!(ones.iter().all(|ones| *ones == 0xff), "{block_bytes}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes() {
        let (mut first, mut second) = (vec![1; 1000], vec![2; 1000]);
        Payload::new(9, 1, 1000).fill(&mut first);
        Payload::new(9, 1, 1000).fill(&mut second);
        assert_eq!(first, second);
        Payload::new(10, 1, 1000).fill(&mut second);
        assert_ne!(first, second);
    }
}
