//! Which block is next: sequential or random, each block once or freely, reads and writes mixed. Pure.
//!
//! The order is that of fio 3.33, so that a job means the same in both tools; established are:
//!
//! - every thread has a number, from 1 over all threads of a run. With `randrepeat` (its default) offsets depend on it
//!   alone: their seed is `0xb1899bed` times the number. Otherwise the seed is the sixth (counted from 0) of a series:
//!   `randseed` times `0x9e370001` to the fourth, and in each further step times `0x9e370001` again; each times the
//!   thread's number, plus its place in the series. The choice of reads and writes has the fourth, always;
//! - a random block is the number of blocks times the next number of the stream as a fraction. With the map a block
//!   that was touched gives way to the next free one, around the end; when all were touched a run that is bound by time
//!   draws once more in vain and begins again with an empty map;
//! - operations of several lengths are made of units, the shortest of them. Which length is next is drawn from the
//!   series' first (reads) or second (writes) seed: from the smallest on by the largest times the number as a
//!   fraction, or by shares, the rarest first; again where it reaches beyond the end. With the map a length ends before
//!   a unit that was touched already;
//! - a job that is done several times begins each time with the same seeds if `randrepeat` is set; otherwise it goes on
//!   with its numbers, after draws in vain. The map is empty each time;
//! - a mixed job changes between reads and writes by lot, and keeps a direction until its share of the operations is
//!   done; the sequential forms have a position for each direction.
//!
//! A last part of the size that is shorter than a block is not used.

use weir_record::storage::{BlockShare, BlockSizes, StorageJob};

use super::{
    skew::{Skewed, name_hash},
    tausworthe::Tausworthe,
};

/// One operation that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// It reads; otherwise it writes.
    pub reads: bool,
    /// Where in the file.
    pub offset_bytes: u64,
    /// How much.
    pub bytes: u32,
}

/// The operations of one thread, in order. Allocates only when it is made.
#[derive(Clone, Debug)]
pub struct Offsets {
    unit_bytes: u64,
    first_byte: u64,
    /// Units that can be touched.
    blocks: u64,
    seeds: Seeds,
    order: Order,
    direction: Direction,
    lengths: Lengths,
    /// Rounds that have not begun.
    rounds: u32,
    /// Units of this round that are left; endless when the time is the limit.
    round: u64,
    /// Operations that are left.
    left: u64,
}

#[derive(Clone, Debug)]
enum Order {
    /// The next unit of reads and of writes.
    Sequential {
        next: [u64; 2],
    },
    Random {
        stream: Tausworthe,
        map: Option<Map>,
    },
    Skewed(Box<Skewed>),
}

#[derive(Clone, Debug)]
enum Direction {
    Reads,
    Writes,
    Mixed(Mix),
}

/// What each round begins with.
#[derive(Clone, Copy, Debug)]
struct Seeds {
    repeat: bool,
    blocks: u64,
    mix: u64,
    lengths: [u64; 2],
}

impl Seeds {
    fn new(job: &StorageJob, number: u64) -> Self {
        let of = |place| series(job.seed, number, place);
        Self {
            repeat: job.random_repeat,
            blocks: if job.random_repeat {
                REPEATED_SEED.wrapping_mul(number)
            } else {
                of(SERIES_PLACE_OF_BLOCKS)
            },
            mix: of(SERIES_PLACE_OF_MIX),
            lengths: SERIES_PLACES_OF_LENGTHS.map(of),
        }
    }
}

const READ: usize = 0;
const WRITE: usize = 1;

const REPEATED_SEED: u64 = 0xb189_9bed;
const SERIES_FACTOR: u64 = 0x9e37_0001;
const SERIES_PLACES_OF_LENGTHS: [u32; 2] = [0, 1];
const SERIES_PLACE_OF_MIX: u32 = 4;
const SERIES_PLACE_OF_BLOCKS: u32 = 6;

/// Blocks of that many bytes that fit.
pub fn blocks(used_bytes: u64, block_bytes: u32) -> u64 {
    used_bytes / u64::from(block_bytes.max(1))
}

/// Bytes of the shortest operation, of which the others are multiples.
pub fn unit_bytes(job: &StorageJob) -> u32 {
    match &job.block_sizes {
        BlockSizes::Same => job.block_bytes,
        BlockSizes::Range { bytes_min } => *bytes_min,
        BlockSizes::Split(shares) => shares.iter().map(|share| share.bytes).min().unwrap_or(job.block_bytes),
    }
}

impl Offsets {
    /// The operations of a thread (from 0 within its job) over so many bytes from the job's offset on.
    pub fn new(job: &StorageJob, thread: u32, used_bytes: u64) -> Self {
        let number = u64::from(job.thread_first.saturating_add(thread).max(1));
        let blocks = blocks(used_bytes, unit_bytes(job));
        let seeds = Seeds::new(job, number);
        let named = u64::from(name_hash(&job.file)).wrapping_mul(number);
        let skew_seed = if job.random_repeat { named } else { seeds.blocks };
        let order = if !job.pattern.is_random() {
            Order::Sequential { next: [0; 2] }
        } else if let Some(skewed) = Skewed::new(job.skew, blocks.max(1), skew_seed) {
            Order::Skewed(Box::new(skewed))
        } else {
            let map = (!job.no_random_map).then(|| Map::new(blocks));
            Order::Random { stream: Tausworthe::new(seeds.blocks), map }
        };
        let direction = match (job.pattern.reads(), job.pattern.writes()) {
            (true, true) => Direction::Mixed(Mix::new(job.read_percent, Tausworthe::new(seeds.mix))),
            (false, _) => Direction::Writes,
            (true, false) => Direction::Reads,
        };
        Self {
            unit_bytes: u64::from(unit_bytes(job)),
            first_byte: job.offset_bytes,
            blocks,
            seeds,
            order,
            direction,
            lengths: Lengths::new(job, seeds.lengths),
            rounds: if job.time_based { 0 } else { job.loops.saturating_sub(1) },
            round: if job.time_based { u64::MAX } else { blocks },
            left: if blocks == 0 { 0 } else { job.operations_max.unwrap_or(u64::MAX) },
        }
    }

    /// Operations that are left, at most: more than anybody can do when the time is the limit.
    pub fn left(&self) -> u64 {
        let rounds = u64::from(self.rounds).saturating_mul(self.blocks);
        self.left.min(self.round.saturating_add(rounds))
    }

    /// The next operation. `None` when the size is done as often as it shall be, unless the time is the limit, or when
    /// the job's number of operations is reached.
    #[expect(
        clippy::should_implement_trait,
        reason = "nothing iterates over it, and an iterator promises less"
    )]
    pub fn next(&mut self) -> Option<Step> {
        self.next_of(None)
    }

    /// The same, where a rate decides whether it reads. The lot of a mixed job is drawn all the same.
    pub fn next_of(&mut self, reads: Option<bool>) -> Option<Step> {
        if self.round == 0 && self.left > 0 {
            self.rounds = self.rounds.checked_sub(1)?;
            self.begin_round();
        }
        self.left = self.left.checked_sub(1)?;
        let direction = match &mut self.direction {
            Direction::Reads => READ,
            Direction::Writes => WRITE,
            Direction::Mixed(mix) => mix.next(reads),
        };
        let block = match &mut self.order {
            Order::Sequential { next } => next[direction] % self.blocks,
            Order::Random { stream, map: None } => stream.below(self.blocks),
            Order::Random { stream, map: Some(map) } => random_free(stream, map, self.blocks),
            Order::Skewed(skewed) => skewed.next(),
        };
        let mut units = self.lengths.next(direction, self.blocks - block);
        match &mut self.order {
            Order::Sequential { next } => next[direction] = block + units,
            Order::Random { map: Some(map), .. } => units = map.take(block, units),
            Order::Random { map: None, .. } | Order::Skewed(_) => {}
        }
        self.round = self.round.saturating_sub(units);
        Some(Step {
            reads: direction == READ,
            offset_bytes: self.first_byte + block * self.unit_bytes,
            bytes: (units * self.unit_bytes) as u32,
        })
    }

    fn begin_round(&mut self) {
        self.round = self.blocks;
        if let Order::Random { stream, map: Some(map) } = &mut self.order {
            map.clear();
            // That the map is full was found by draws in vain.
            stream.next();
            if let Direction::Mixed(mix) = &mut self.direction {
                mix.next(None);
            }
        }
        if !self.seeds.repeat {
            return;
        }
        if let Order::Random { stream, .. } = &mut self.order {
            *stream = Tausworthe::new(self.seeds.blocks);
        }
        if let Direction::Mixed(mix) = &mut self.direction {
            *mix = Mix::new(mix.percent[READ] as u8, Tausworthe::new(self.seeds.mix));
        }
        self.lengths.lots = self.seeds.lengths.map(Tausworthe::new);
    }
}

/// How long operations are, in units.
#[derive(Clone, Debug)]
struct Lengths {
    unit_bytes: u64,
    most_bytes: u64,
    /// The rarest first; empty where any length may be.
    shares: Vec<BlockShare>,
    lots: [Tausworthe; 2],
}

impl Lengths {
    fn new(job: &StorageJob, seeds: [u64; 2]) -> Self {
        let mut shares = match &job.block_sizes {
            BlockSizes::Split(shares) => shares.clone(),
            BlockSizes::Same | BlockSizes::Range { .. } => Vec::new(),
        };
        shares.sort_by_key(|share| share.percent);
        Self {
            unit_bytes: u64::from(unit_bytes(job).max(1)),
            most_bytes: u64::from(job.block_bytes),
            shares,
            lots: seeds.map(Tausworthe::new),
        }
    }

    /// The next length of a direction, where so many units are left; at least one is.
    fn next(&mut self, direction: usize, units_left: u64) -> u64 {
        if self.unit_bytes >= self.most_bytes {
            return 1;
        }
        loop {
            let drawn = u64::from(self.lots[direction].next());
            let bytes = self.length(drawn, units_left * self.unit_bytes);
            let units = bytes.min(self.most_bytes) / self.unit_bytes;
            if units <= units_left {
                return units;
            }
        }
    }

    fn length(&self, drawn: u64, bytes_left: u64) -> u64 {
        let Some(last) = self.shares.last() else {
            return self.unit_bytes + (self.most_bytes as f64 * (drawn as f64 / 4_294_967_296.0)) as u64;
        };
        let mut percent = 0;
        let fits = self.shares.iter().find(|share| {
            percent += u64::from(share.percent);
            drawn / percent <= u64::from(u32::MAX) / 100 && u64::from(share.bytes) <= bytes_left
        });
        u64::from(fits.unwrap_or(last).bytes)
    }
}

/// A block by lot that was not touched yet. A map that is full begins anew, after one draw in vain.
fn random_free(stream: &mut Tausworthe, map: &mut Map, blocks: u64) -> u64 {
    let mut drawn = stream.below(blocks);
    if map.free == 0 {
        map.clear();
        drawn = stream.below(blocks);
    }
    map.free_from(drawn).or_else(|| map.free_from(0)).unwrap_or(drawn)
}

/// A seed of fio's series.
fn series(seed: u64, number: u64, place: u32) -> u64 {
    let mut state = seed;
    for _ in 0..4 + place {
        state = state.wrapping_mul(SERIES_FACTOR);
    }
    state.wrapping_mul(number).wrapping_add(u64::from(place))
}

/// Reads and writes by lot.
#[derive(Clone, Debug)]
struct Mix {
    percent: [u64; 2],
    lot: Tausworthe,
    direction: usize,
    issued: [u64; 2],
    /// The lot is drawn again when the direction has so many.
    until: u64,
}

impl Mix {
    fn new(read_percent: u8, lot: Tausworthe) -> Self {
        let reads = u64::from(read_percent.min(100));
        Self { percent: [reads, 100 - reads], lot, direction: READ, issued: [0; 2], until: 0 }
    }

    fn next(&mut self, reads: Option<bool>) -> usize {
        if self.issued[self.direction] >= self.until {
            let drawn = if self.lot.below(100) < self.percent[READ] { READ } else { WRITE };
            if drawn != self.direction {
                self.until = self.issued[self.direction] * self.percent[self.direction ^ 1] / 100;
            }
            self.direction = drawn;
        }
        if let Some(reads) = reads {
            self.direction = if reads { READ } else { WRITE };
        }
        self.issued[self.direction] += 1;
        self.direction
    }
}

/// Which blocks were touched: a bit for each, and above it levels in which a bit stands for a full word below.
#[derive(Clone, Debug)]
struct Map {
    levels: Vec<Vec<u64>>,
    blocks: u64,
    free: u64,
}

const WORD_BITS: u64 = u64::BITS as u64;

impl Map {
    fn new(blocks: u64) -> Self {
        let mut levels = Vec::new();
        let mut bits = blocks;
        loop {
            let words = bits.div_ceil(WORD_BITS).max(1);
            levels.push(vec![0; words as usize]);
            if words == 1 {
                break;
            }
            bits = words;
        }
        let mut map = Self { levels, blocks, free: blocks };
        map.clear();
        map
    }

    /// Makes all blocks free. Bits beyond the end stay taken, so that no search finds them.
    fn clear(&mut self) {
        let mut bits = self.blocks;
        for level in &mut self.levels {
            level.fill(0);
            let beyond = bits % WORD_BITS;
            if let Some(last) = level.last_mut()
                && (beyond != 0 || bits == 0)
            {
                *last = u64::MAX << beyond;
            }
            bits = level.len() as u64;
        }
        self.free = self.blocks;
    }

    /// Takes free blocks from this one on, up to one that is taken; says how many.
    fn take(&mut self, block: u64, count: u64) -> u64 {
        let is_free = |block: u64| {
            self.levels[0]
                .get((block / WORD_BITS) as usize)
                .is_some_and(|word| word >> (block % WORD_BITS) & 1 == 0)
        };
        let taken = (1..count).find(|next| !is_free(block + next)).unwrap_or(count);
        (block..block + taken).for_each(|block| self.take_one(block));
        taken
    }

    fn take_one(&mut self, block: u64) {
        let mut index = block;
        for level in &mut self.levels {
            let word = &mut level[(index / WORD_BITS) as usize];
            *word |= 1 << (index % WORD_BITS);
            if *word != u64::MAX {
                break;
            }
            index /= WORD_BITS;
        }
        self.free -= 1;
    }

    /// The first free block from this one on.
    fn free_from(&self, block: u64) -> Option<u64> {
        let mut index = block;
        // Up, until a word has something free at or behind the place; then down along the first free bits.
        for (height, level) in self.levels.iter().enumerate() {
            let word = level.get((index / WORD_BITS) as usize)?;
            let free = !word & (u64::MAX << (index % WORD_BITS));
            if free != 0 {
                let found = index / WORD_BITS * WORD_BITS + u64::from(free.trailing_zeros());
                return Some(self.levels[..height].iter().rev().fold(found, |at, below| {
                    at * WORD_BITS + u64::from(below[at as usize].trailing_ones())
                }));
            }
            index = index / WORD_BITS + 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir_record::storage::{AccessPattern, Skew};

    use super::*;

    fn job(pattern: AccessPattern) -> StorageJob {
        StorageJob { pattern, ..StorageJob::default() }
    }

    fn all(job: &StorageJob, used_bytes: u64) -> Vec<Step> {
        let mut offsets = Offsets::new(job, 0, used_bytes);
        std::iter::from_fn(|| offsets.next()).collect()
    }

    fn blocks_of(steps: &[Step]) -> Vec<u64> {
        steps.iter().map(|step| step.offset_bytes / 4096).collect()
    }

    #[test]
    fn random_blocks_are_those_of_fio() {
        // Made with fio 3.33: write_iolog of psync jobs with bs=4k over 2 MiB.
        let of = |job: StorageJob| all(&job, 512 * 4096);
        let repeated = |thread_first| {
            let repeated = StorageJob { random_repeat: true, thread_first, ..job(AccessPattern::RandRead) };
            blocks_of(&of(repeated))
        };
        let first = repeated(1);
        assert_eq!(first[..10], [30, 379, 431, 240, 205, 430, 194, 181, 467, 34]);
        assert_eq!(first[509..], [9, 156, 157], "the last free blocks, found around the end");
        let second = repeated(2);
        assert_eq!(second[..10], [130, 93, 307, 20, 231, 315, 356, 145, 147, 43]);
        assert_eq!(second[509..], [196, 219, 220]);
        let third = StorageJob { seed: 42, thread_first: 3, ..job(AccessPattern::RandRead) };
        let seeded = blocks_of(&of(third));
        assert_eq!(seeded[..10], [404, 27, 448, 336, 349, 70, 165, 445, 182, 245]);
        let fourth = StorageJob { seed: 7, read_percent: 70, thread_first: 4, ..job(AccessPattern::RandRw) };
        let mixed = of(fourth);
        assert_eq!(blocks_of(&mixed)[..10], [495, 281, 115, 393, 385, 168, 246, 105, 106, 255]);
        let reads: Vec<bool> = mixed[..10].iter().map(|step| step.reads).collect();
        assert_eq!(reads, [true, true, true, true, false, false, true, false, true, true]);
    }

    /// Kilobytes and lengths, with the direction in front where it matters: `r4+8`.
    fn shown(steps: &[Step]) -> String {
        let one = |step: &Step| {
            let direction = if step.reads { 'r' } else { 'w' };
            format!("{direction}{}+{}", step.offset_bytes / 1024, step.bytes / 1024)
        };
        steps.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    fn repeating(pattern: AccessPattern) -> StorageJob {
        StorageJob { random_repeat: true, seed: 0x89, ..job(pattern) }
    }

    #[test]
    fn operations_of_several_lengths_are_those_of_fio() {
        // As above, over 128 KiB.
        let range = StorageJob {
            block_bytes: 16_384,
            block_sizes: BlockSizes::Range { bytes_min: 4096 },
            ..repeating(AccessPattern::RandRead)
        };
        let of = |job: &StorageJob| shown(&all(job, 128 << 10));
        assert_eq!(
            of(&range),
            "r4+4 r92+12 r104+16 r60+8 r48+12 r120+4 r68+16 r44+4 r124+4 r8+4 r0+4 r84+8 r12+4 r28+4 r16+4 r20+8 r32+12"
        );
        let without_map = StorageJob { no_random_map: true, ..range.clone() };
        assert!(of(&without_map).starts_with("r4+4 r92+12 r104+16 r60+8 r48+16 r104+4 r48+16"));
        let mixed = StorageJob { pattern: AccessPattern::RandRw, ..range };
        assert!(
            of(&mixed).starts_with("r4+4 r92+12 r104+16 w60+4 r48+8 r120+4 w56+4 w44+4 w124+4 r8+16 w0+4")
        );
        let shares =
            [(4096, 10), (16_384, 60), (8192, 30)].map(|(bytes, percent)| BlockShare { bytes, percent });
        let split = StorageJob {
            block_bytes: 16_384,
            block_sizes: BlockSizes::Split(shares.to_vec()),
            ..repeating(AccessPattern::RandRead)
        };
        assert_eq!(
            of(&split),
            "r4+8 r92+16 r108+16 r60+8 r48+12 r124+4 r68+4 r44+4 r0+4 r12+16 r28+16 r80+12 r72+8"
        );
        let written = StorageJob { pattern: AccessPattern::Write, ..split };
        assert_eq!(
            of(&written),
            "w0+8 w8+4 w12+8 w20+16 w36+16 w52+8 w60+16 w76+8 w84+16 w100+16 w116+8 w124+4"
        );
    }

    #[test]
    fn a_job_that_is_done_twice_begins_again_as_fio_does() {
        let twice = |job: StorageJob| shown(&all(&StorageJob { loops: 2, ..job }, 64 << 10));
        let once =
            "r0+4 r44+4 r52+4 r28+4 r24+4 r56+4 r32+4 r20+4 r60+4 r4+4 r8+4 r40+4 r12+4 r16+4 r36+4 r48+4";
        assert_eq!(twice(repeating(AccessPattern::RandRead)), format!("{once} {once}"));
        let seeded = StorageJob { seed: 7, ..job(AccessPattern::RandRead) };
        assert_eq!(
            twice(seeded.clone()),
            "r32+4 r36+4 r48+4 r60+4 r0+4 r28+4 r4+4 r52+4 r8+4 r40+4 r44+4 r56+4 r12+4 r16+4 r20+4 r24+4 \
             r16+4 r24+4 r0+4 r36+4 r28+4 r48+4 r40+4 r44+4 r52+4 r56+4 r60+4 r32+4 r4+4 r8+4 r12+4 r20+4"
        );
        assert_eq!(
            twice(StorageJob { pattern: AccessPattern::RandRw, ..seeded.clone() }),
            "w32+4 w36+4 r48+4 r60+4 r0+4 w28+4 w4+4 w52+4 r8+4 w40+4 r44+4 w56+4 r12+4 r16+4 r20+4 w24+4 \
             w16+4 w24+4 r0+4 w36+4 r28+4 w48+4 w40+4 w44+4 r52+4 r56+4 w60+4 r32+4 w4+4 r8+4 w12+4 w20+4"
        );
        let lengths =
            StorageJob { block_bytes: 16_384, block_sizes: BlockSizes::Range { bytes_min: 4096 }, ..seeded };
        assert_eq!(
            twice(lengths),
            "r32+16 r48+4 r52+8 r60+4 r0+16 r28+4 r16+12 r60+4 r40+12 r36+4 r52+8 r0+12 r12+8 r20+8 r28+4 r32+4"
        );
        let thrice = StorageJob { loops: 3, ..job(AccessPattern::Read) };
        assert_eq!(shown(&all(&thrice, 8192)), "r0+4 r4+4 r0+4 r4+4 r0+4 r4+4");
        assert_eq!(Offsets::new(&thrice, 0, 8192).left(), 6);
    }

    #[test]
    fn skewed_blocks_are_those_of_fio() {
        // As above, over 2 MiB, of a file with the name `data`.
        let first = |skew, job: StorageJob| {
            let skewed = StorageJob { skew, file: "data".into(), operations_max: Some(12), ..job };
            let offsets: Vec<u64> =
                all(&skewed, 2 << 20).iter().map(|step| step.offset_bytes / 1024).collect();
            offsets
        };
        assert_eq!(
            first(Skew::Zipf { theta: 1.2, center: None }, repeating(AccessPattern::RandRead)),
            [408, 460, 628, 440, 460, 1920, 124, 1528, 492, 1976, 124, 460]
        );
        assert_eq!(
            first(Skew::Pareto { share: 0.3, center: None }, repeating(AccessPattern::RandRead)),
            [1220, 1164, 628, 1988, 1500, 840, 1396, 60, 1472, 468, 976, 1080]
        );
        let seeded = StorageJob { seed: 42, ..job(AccessPattern::RandRead) };
        assert_eq!(
            first(Skew::Zipf { theta: 0.8, center: Some(0.25) }, seeded),
            [384, 428, 344, 8, 1552, 1440, 8, 748, 1876, 428, 1292, 1048]
        );
    }

    #[test]
    fn sequential_blocks_follow_each_other_from_the_offset_on() {
        let job = StorageJob { offset_bytes: 8192, ..job(AccessPattern::Write) };
        let steps = all(&job, 4 * 4096 + 100);
        assert_eq!(blocks_of(&steps), [2, 3, 4, 5]);
        assert!(steps.iter().all(|step| !step.reads));
    }

    #[test]
    fn a_run_that_is_bound_by_time_begins_again() {
        for pattern in AccessPattern::ALL {
            let job = StorageJob { time_based: true, operations_max: Some(1000), ..job(pattern) };
            let steps = all(&job, 7 * 4096);
            assert_eq!(steps.len(), 1000, "{pattern}");
            assert!(steps.iter().all(|step| step.offset_bytes < 7 * 4096), "{pattern}");
        }
    }

    #[test]
    fn with_the_map_every_round_touches_every_block_once() {
        let rounds =
            StorageJob { time_based: true, operations_max: Some(3000), ..job(AccessPattern::RandRead) };
        for round in blocks_of(&all(&rounds, 1000 * 4096)).chunks(1000) {
            let mut sorted = round.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..1000).collect::<Vec<_>>());
            assert_ne!(sorted, round);
        }
    }

    #[test]
    fn without_the_map_blocks_repeat() {
        let free = StorageJob { no_random_map: true, ..job(AccessPattern::RandWrite) };
        let mut blocks = blocks_of(&all(&free, 1000 * 4096));
        assert_eq!(blocks.len(), 1000);
        blocks.sort_unstable();
        blocks.dedup();
        // 1 - 1/e of them, give or take.
        assert!((580..690).contains(&blocks.len()), "{}", blocks.len());
    }

    #[test]
    fn threads_and_seeds_differ_unless_they_shall_repeat() {
        let base = job(AccessPattern::RandRead);
        let of = |job: &StorageJob, thread| {
            let mut offsets = Offsets::new(job, thread, 1 << 30);
            (0..50).filter_map(|_| offsets.next()).collect::<Vec<_>>()
        };
        let seeded = StorageJob { seed: 2, ..base.clone() };
        assert_ne!(of(&base, 0), of(&base, 1));
        assert_ne!(of(&base, 0), of(&seeded, 0));
        let repeat = |seed| StorageJob { random_repeat: true, seed, ..base.clone() };
        assert_eq!(of(&repeat(1), 0), of(&repeat(2), 0));
        let second = StorageJob { thread_first: 2, ..repeat(1) };
        assert_eq!(of(&second, 0), of(&repeat(1), 1), "a thread is known by its number in the run");
    }

    #[test]
    fn mixed_jobs_keep_their_share() {
        for (percent, pattern) in [(70, AccessPattern::RandRw), (20, AccessPattern::ReadWrite)] {
            let mixed = StorageJob { read_percent: percent, ..job(pattern) };
            let steps = all(&mixed, 20_000 * 4096);
            let reads = steps.iter().filter(|step| step.reads).count();
            let expected = 200 * usize::from(percent);
            assert!(reads.abs_diff(expected) < 500, "{reads} of {} at {percent} %", steps.len());
        }
        for (percent, reads) in [(0, false), (100, true)] {
            let whole = StorageJob { read_percent: percent, ..job(AccessPattern::RandRw) };
            assert!(all(&whole, 100 * 4096)[1..].iter().all(|step| step.reads == reads), "{percent}");
        }
    }

    #[test]
    fn each_direction_of_a_sequential_mix_has_its_own_place() {
        let steps = all(&job(AccessPattern::ReadWrite), 1000 * 4096);
        for reads in [true, false] {
            let of: Vec<Step> = steps.iter().copied().filter(|step| step.reads == reads).collect();
            assert_eq!(blocks_of(&of), (0..of.len() as u64).collect::<Vec<_>>());
        }
    }

    #[test]
    fn fewer_bytes_than_a_block_are_no_operation() {
        assert_eq!(all(&job(AccessPattern::RandRead), 4095), []);
        assert_eq!(all(&StorageJob { time_based: true, ..job(AccessPattern::Read) }, 0), []);
    }

    proptest! {
        #[test]
        fn the_map_finds_what_a_plain_list_finds(
            blocks in 1_u64..9000,
            draws in prop::collection::vec(any::<u64>(), 1..100),
        ) {
            let mut map = Map::new(blocks);
            let mut plain = vec![false; blocks as usize];
            for draw in draws {
                let from = draw % blocks;
                // Long runs of taken blocks, so that searches have to climb.
                for _ in 0..draw % 200 {
                    let expected = (from..blocks).find(|block| !plain[*block as usize]);
                    prop_assert_eq!(map.free_from(from), expected);
                    let Some(block) = expected else { break };
                    plain[block as usize] = true;
                    map.take(block, 1);
                }
                prop_assert_eq!(map.free as usize, plain.iter().filter(|taken| !**taken).count());
            }
            map.clear();
            prop_assert_eq!(map.free_from(0), Some(0));
        }

        #[test]
        fn every_block_is_touched_exactly_once(blocks in 1_u64..3000, seed in any::<u64>()) {
            let seeded = StorageJob { seed, ..job(AccessPattern::RandRead) };
            let mut touched = blocks_of(&all(&seeded, blocks * 4096));
            touched.sort_unstable();
            prop_assert_eq!(touched, (0..blocks).collect::<Vec<_>>());
        }
    }
}
