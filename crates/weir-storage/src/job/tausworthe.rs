//! The generator of fio's random offsets, so that both tools access the same blocks. Pure.
//!
//! It is L'Ecuyer's combined Tausworthe generator of 88 bits (Mathematics of Computation 65, 1996, with the erratum
//! of 68, 1999: the components start at 2, 8 and 16 at least). It is seeded as in fio 3.33: each component starts as
//! the previous one times 69069, exclusive-or the seed (the first from 53), and six numbers are discarded.
//!
//! `random_generator=tausworthe64` is L'Ecuyer's generator of 258 bits (Mathematics of Computation 68, 1999), whose
//! components start at 2, 8, 16, 34 and 50 at least; fio's factor is then 6906969069.

/// One stream of 32-bit numbers.
#[derive(Clone, Debug)]
pub(crate) struct Tausworthe {
    parts: [u32; 3],
}

/// For each component: shift and fold of its feedback, mask, and shift of what stays.
const PARTS: [(u32, u32, u32, u32); 3] = [(13, 19, !1, 12), (2, 25, !7, 4), (3, 11, !15, 17)];

/// Below this a component would lose its period.
const PART_MIN: [u32; 3] = [1, 7, 15];

/// Start of the seeding.
const SEEDING_START: u32 = 53;

const NUMBERS_THROWN_AWAY: u32 = 6;

impl Tausworthe {
    /// A stream that depends on the lower 32 bits of the seed.
    pub(crate) fn new(seed: u64) -> Self {
        let seed = seed as u32;
        let mut before = SEEDING_START;
        let parts = PART_MIN.map(|smallest| {
            let part = before.wrapping_mul(69_069) ^ seed;
            before = if part < smallest { part + smallest } else { part };
            before
        });
        let mut stream = Self { parts };
        for _ in 0..NUMBERS_THROWN_AWAY {
            stream.next();
        }
        stream
    }

    /// The next number.
    pub(crate) fn next(&mut self) -> u32 {
        for (part, (shift, fold, mask, keep)) in self.parts.iter_mut().zip(PARTS) {
            *part = ((*part & mask) << keep) ^ (((*part << shift) ^ *part) >> fold);
        }
        self.parts.iter().fold(0, |sum, part| sum ^ part)
    }

    /// The next number, scaled to below a limit.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        (limit as f64 * (f64::from(self.next()) / 4_294_967_296.0)) as u64
    }
}

/// One stream of 64-bit numbers.
#[derive(Clone, Debug)]
pub(crate) struct Tausworthe64 {
    parts: [u64; 5],
}

/// As [`PARTS`].
const PARTS_64: [(u32, u32, u64, u32); 5] = [
    (1, 53, u64::MAX << 1, 10),
    (24, 50, u64::MAX << 9, 5),
    (3, 23, u64::MAX << 12, 29),
    (5, 24, u64::MAX << 17, 23),
    (3, 33, u64::MAX << 23, 8),
];

const PART_MIN_64: [u64; 5] = [1, 7, 15, 33, 49];

impl Tausworthe64 {
    /// A stream that depends on the seed.
    pub(crate) fn new(seed: u64) -> Self {
        let mut before = u64::from(SEEDING_START);
        let parts = PART_MIN_64.map(|smallest| {
            let part = before.wrapping_mul(6_906_969_069) ^ seed;
            before = if part < smallest { part + smallest } else { part };
            before
        });
        let mut stream = Self { parts };
        for _ in 0..NUMBERS_THROWN_AWAY {
            stream.next();
        }
        stream
    }

    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        for (part, (shift, fold, mask, keep)) in self.parts.iter_mut().zip(PARTS_64) {
            *part = ((*part & mask) << keep) ^ (((*part << shift) ^ *part) >> fold);
        }
        self.parts.iter().fold(0, |sum, part| sum ^ part)
    }
}

/// A stream of either kind.
#[derive(Clone, Debug)]
pub(crate) enum Stream {
    /// 32-bit numbers.
    Narrow(Tausworthe),
    /// 64-bit numbers.
    Wide(Tausworthe64),
}

impl Stream {
    /// A stream that depends on the seed.
    pub(crate) fn new(is_wide: bool, seed: u64) -> Self {
        match is_wide {
            true => Self::Wide(Tausworthe64::new(seed)),
            false => Self::Narrow(Tausworthe::new(seed)),
        }
    }

    /// The next number, scaled to below a limit.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        match self {
            Self::Narrow(stream) => stream.below(limit),
            Self::Wide(stream) => {
                let share = stream.next() as f64 / 18_446_744_073_709_551_616.0;
                ((limit as f64 * share) as u64).min(limit.saturating_sub(1))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recurrence_is_the_published_one() {
        // By hand from the paper's three recurrences, with all parts at 2^20.
        let mut stream = Tausworthe { parts: [1 << 20; 3] };
        // Bits shifted out of 32 are lost: of the first component only 2^20 >> 19 stays.
        let first = 1 << 1;
        let second = 1 << 24;
        let third = 1 << 12 | 1 << 9;
        assert_eq!(stream.next(), first ^ second ^ third);
    }

    #[test]
    fn equal_seeds_give_equal_streams_and_others_do_not() {
        let take = |seed| {
            let mut stream = Tausworthe::new(seed);
            (0..100).map(|_| stream.next()).collect::<Vec<_>>()
        };
        assert_eq!(take(7), take(7));
        assert_eq!(take(7), take(7 | 1 << 40), "only 32 bits count");
        assert_ne!(take(7), take(8));
        assert_eq!(take(0).len(), 100);
    }

    #[test]
    fn every_block_can_be_drawn_and_none_beyond() {
        let mut stream = Tausworthe::new(1);
        let mut seen = [0_u32; 10];
        for _ in 0..10_000 {
            seen[stream.below(10) as usize] += 1;
        }
        assert!(seen.iter().all(|count| (800..1200).contains(count)), "{seen:?}");
    }
}
