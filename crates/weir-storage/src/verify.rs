//! Contents of a block: seeded bytes that depend only on the seed and the offset, and, in blocks that a job writes, a
//! header that identifies the block, with a checksum over everything.
//!
//! | bytes | field |
//! | --- | --- |
//! | 0..4 | `WBLK` |
//! | 4..8 | CRC-32C (Castagnoli; RFC 3720, appendix B.4) of bytes 8 to the end |
//! | 8..16 | seed of the job |
//! | 16..24 | offset in the file |
//! | 24..32 | generation: how often the job has written this block |
//! | 32.. | seeded bytes |
//!
//! Numbers are little-endian. It detects a torn write, a write at another position and a lost write (an older
//! generation), but not that two jobs with one seed wrote the same block.

use crc32c::crc32c;
use weir_stats::random::splitmix_at;

/// Bytes of a block's header; the smallest block that can be verified.
pub const HEADER_BYTES: usize = 32;

const MAGIC: [u8; 4] = *b"WBLK";

/// Identity of a block, and which write of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Seed of the job.
    pub seed: u64,
    /// Offset in the file.
    pub offset_bytes: u64,
    /// How often it was written before.
    pub generation: u64,
}

/// An error in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// The block has no stamp.
    #[error("no block header: it was never written, or by somebody else")]
    NoHeader,
    /// The checksum does not match the one in the header.
    #[error("checksum {found:#010x}, and the header says {expected:#010x}")]
    Checksum {
        /// Checksum of the bytes.
        found: u32,
        /// Checksum in the header.
        expected: u32,
    },
    /// A whole block, but another one, or an older write.
    #[error(
        "seed {}, offset {}, generation {} where seed {}, offset {}, generation {} was written",
        found.seed, found.offset_bytes, found.generation, expected.seed, expected.offset_bytes, expected.generation
    )]
    Other {
        /// Stamp in the header.
        found: Stamp,
        /// Stamp of the last write.
        expected: Stamp,
    },
}

/// Writes the header and the checksum into a block whose other bytes are already there.
///
/// # Panics
/// Panics if the block is shorter than [`HEADER_BYTES`]; jobs with such blocks are refused before.
pub fn stamp(block: &mut [u8], stamp: &Stamp) {
    assert!(block.len() >= HEADER_BYTES, "a block of {} bytes has no room for a header", block.len());
    block[0..4].copy_from_slice(&MAGIC);
    block[8..16].copy_from_slice(&stamp.seed.to_le_bytes());
    block[16..24].copy_from_slice(&stamp.offset_bytes.to_le_bytes());
    block[24..32].copy_from_slice(&stamp.generation.to_le_bytes());
    let checksum = crc32c(&block[8..]);
    block[4..8].copy_from_slice(&checksum.to_le_bytes());
}

/// Checks that a block is whole and the expected one.
pub fn check(block: &[u8], expected: &Stamp) -> Result<(), VerifyError> {
    let found = read(block)?;
    if found == *expected { Ok(()) } else { Err(VerifyError::Other { found, expected: *expected }) }
}

/// The stamp of a whole block.
pub fn read(block: &[u8]) -> Result<Stamp, VerifyError> {
    if block.len() < HEADER_BYTES || block[0..4] != MAGIC {
        return Err(VerifyError::NoHeader);
    }
    let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| block[at + index]));
    let checksum = u32::from_le_bytes(std::array::from_fn(|index| block[4 + index]));
    let found = crc32c(&block[8..]);
    if found != checksum {
        return Err(VerifyError::Checksum { found, expected: checksum });
    }
    Ok(Stamp { seed: number(8), offset_bytes: number(16), generation: number(24) })
}

/// Fills bytes at an offset of a file: each depends only on the seed and on its own position, so any part of a file
/// can be compared without the rest. Offset and length should be multiples of 8.
pub fn fill(seed: u64, offset_bytes: u64, bytes: &mut [u8]) {
    let skipped = (offset_bytes % 8) as usize;
    let mut word = offset_bytes / 8;
    let (first, rest) =
        if skipped == 0 { bytes.split_at_mut(0) } else { bytes.split_at_mut((8 - skipped).min(bytes.len())) };
    if !first.is_empty() {
        first.copy_from_slice(&word_at(seed, word)[skipped..skipped + first.len()]);
        word += 1;
    }
    let mut words = rest.chunks_exact_mut(8);
    for place in &mut words {
        place.copy_from_slice(&word_at(seed, word));
        word += 1;
    }
    let rest = words.into_remainder();
    rest.copy_from_slice(&word_at(seed, word)[..rest.len()]);
}

/// One word of that sequence. For one seed, no two words are the same.
pub(crate) fn noise(seed: u64, word: u64) -> u64 {
    splitmix_at(seed, word)
}

fn word_at(seed: u64, word: u64) -> [u8; 8] {
    noise(seed, word).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STAMP: Stamp = Stamp { seed: 7, offset_bytes: 4096, generation: 2 };

    fn stamped(bytes: usize) -> Vec<u8> {
        let mut block = vec![0; bytes];
        fill(STAMP.seed, STAMP.offset_bytes, &mut block);
        stamp(&mut block, &STAMP);
        block
    }

    #[test]
    fn a_stamped_block_is_itself_and_no_other() {
        for bytes in [HEADER_BYTES, 512, 4096] {
            let block = stamped(bytes);
            assert_eq!(check(&block, &STAMP), Ok(()));
            for other in [
                Stamp { seed: 8, ..STAMP },
                Stamp { offset_bytes: 0, ..STAMP },
                Stamp { generation: 1, ..STAMP },
            ] {
                assert_eq!(check(&block, &other), Err(VerifyError::Other { found: STAMP, expected: other }));
            }
        }
    }

    #[test]
    fn zeros_and_pieces_are_no_block() {
        assert_eq!(check(&[0; 512], &STAMP), Err(VerifyError::NoHeader));
        assert_eq!(check(&stamped(512)[..31], &STAMP), Err(VerifyError::NoHeader));
        assert_eq!(check(&[], &STAMP), Err(VerifyError::NoHeader));
    }

    #[test]
    fn a_torn_block_is_seen() {
        let mut block = stamped(4096);
        block[512..].fill(0);
        assert!(matches!(check(&block, &STAMP), Err(VerifyError::Checksum { .. })));
    }

    proptest! {
        #[test]
        fn every_flipped_bit_is_seen(bit in 0_usize..512 * 8) {
            let mut block = stamped(512);
            block[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(check(&block, &STAMP).is_err());
        }

        #[test]
        fn a_part_is_filled_as_in_the_whole(seed in any::<u64>(), start in 0_usize..100, length in 0_usize..100) {
            let mut whole = vec![0; 300];
            fill(seed, 4096, &mut whole);
            let mut part = vec![0; length];
            fill(seed, 4096 + start as u64, &mut part);
            prop_assert_eq!(&part[..], &whole[start..start + length]);
        }
    }
}
