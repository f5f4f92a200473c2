//! Computes the next block: sequential or random, each block once or freely, reads and writes mixed. Pure.
//!
//! The order is that of fio 3.33, so that a job means the same in both tools. The facts are:
//!
//! - every thread has a number, from 1 over all threads of a run. With `randrepeat` (its default) offsets depend only
//!   on that number: their seed is `0xb1899bed` times the number. Otherwise the seed is the sixth (counted from 0) of
//!   a series. The first member is `randseed` times `0x9e370001` to the fourth, and each further member multiplies by
//!   `0x9e370001` again; each is then multiplied by the thread's number and increased by its index in the series. The
//!   choice of reads and writes always uses the fourth;
//! - a random block is the number of blocks times the next random number as a fraction. With the map, a block that
//!   was already used is replaced by the next free one, wrapping at the end; when all were used, a time-limited run
//!   draws one unused number and continues with an empty map;
//! - operations of several lengths are made of units, the shortest of them. The next length is drawn from the series'
//!   first (reads) or second (writes) seed: from the smallest on by the largest times the number as a fraction, or by
//!   shares, the rarest first; drawn again if it exceeds the end. With the map a length ends before a unit that was
//!   already used;
//! - a job with several loops starts each loop with the same seeds if `randrepeat` is set; otherwise its random
//!   numbers continue, after unused draws. Each loop starts with an empty map;
//! - a mixed job chooses between reads and writes at random, and keeps a direction until its share of the operations
//!   is done; the sequential forms have a position for each direction;
//! - if reads and writes have their own lengths, a block has the length of its direction, and the map has one bit per
//!   block number, for both directions. If the next block would exceed the used part the round ends, and the next one
//!   starts with an empty map, without further unused draws;
//! - if only some operations have a random block (`rw=randread:8`), the others follow the previous one of their
//!   direction and leave the map unchanged; at the end of the used part a block is drawn for them, which is not
//!   entered into the map either;
//! - a stride (`rw=read:4k`) is added to the end of the previous operation of the direction, except at the start; at
//!   the end of the file it starts again, and at the end of the used part the job is over.
//!
//! A remainder of the size that is shorter than a block is not used.

use weir_record::storage::{BlockShare, BlockSizes, Sequencer, StorageJob};

use super::{
    skew::{Skewed, name_hash},
    tausworthe::{Stream, Tausworthe},
};

/// The next operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Whether it reads; otherwise it writes.
    pub reads: bool,
    /// Offset in the file.
    pub offset_bytes: u64,
    /// Length.
    pub bytes: u32,
}

/// The operations of one thread, in order. Allocates only when it is created.
#[derive(Clone, Debug)]
pub struct Offsets {
    unit_bytes: u64,
    first_byte: u64,
    /// Number of units.
    blocks: u64,
    seeds: Seeds,
    order: Order,
    direction: Direction,
    lengths: Lengths,
    /// Position of sequential operations.
    follow: Follow,
    /// Start and end of the last operation of each direction, in units.
    last: [Option<(u64, u64)>; 2],
    /// Rounds not started yet.
    rounds: u32,
    /// Units left in this round; unlimited when the time is the limit.
    round: u64,
    /// Operations left.
    left: u64,
}

/// State of operations without a random block.
#[derive(Clone, Copy, Debug)]
struct Follow {
    /// One operation in this many has a random block.
    random_every: u32,
    /// Operations until the next random one.
    until_random: u32,
    identical: bool,
    stride_units: i64,
    /// Units of the whole file, from its beginning.
    file_units: u64,
    /// First unit of the used part.
    first_unit: u64,
    begins_again: bool,
}

#[derive(Clone, Debug)]
enum Order {
    Sequential,
    Random { stream: Stream, map: Option<Map> },
    Skewed(Box<Skewed>),
}

#[derive(Clone, Debug)]
enum Direction {
    Reads,
    Writes,
    Mixed(Mix),
}

/// Seeds of each round.
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

/// Number of blocks of this size that fit.
pub fn blocks(used_bytes: u64, block_bytes: u32) -> u64 {
    used_bytes / u64::from(block_bytes.max(1))
}

/// Length of the shortest operation, of which the others are multiples.
pub fn unit_bytes(job: &StorageJob) -> u32 {
    match &job.block_sizes {
        BlockSizes::Same => job.block_bytes,
        BlockSizes::Range { bytes_min } => *bytes_min,
        BlockSizes::Split(shares) => shares.iter().map(|share| share.bytes).min().unwrap_or(job.block_bytes),
        BlockSizes::ByDirection { reads, writes } => *reads.min(writes),
    }
}

impl Offsets {
    /// The operations of a thread (from 0 within its job) over `used_bytes` bytes from the job's offset on.
    pub fn new(job: &StorageJob, thread: u32, used_bytes: u64) -> Self {
        let number = u64::from(job.thread_first.saturating_add(thread).max(1));
        let blocks = blocks(used_bytes, unit_bytes(job));
        let seeds = Seeds::new(job, number);
        let named = u64::from(name_hash(&job.file)).wrapping_mul(number);
        let skew_seed = if job.random_repeat { named } else { seeds.blocks };
        let order = if !job.pattern.is_random() {
            Order::Sequential
        } else if let Some(skewed) = Skewed::new(job.skew, blocks.max(1), skew_seed) {
            Order::Skewed(Box::new(skewed))
        } else {
            let map = (!job.no_random_map).then(|| Map::new(blocks));
            Order::Random { stream: Stream::new(job.random_wide, seeds.blocks), map }
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
            follow: Follow::new(job, used_bytes),
            last: [None; 2],
            rounds: rounds(job, blocks).saturating_sub(1),
            round: if job.time_based { u64::MAX } else { blocks },
            left: if blocks == 0 { 0 } else { most_operations(job) },
        }
    }

    /// Most operations left: practically unlimited when the time is the limit.
    pub fn left(&self) -> u64 {
        let rounds = u64::from(self.rounds).saturating_mul(self.blocks);
        self.left.min(self.round.saturating_add(rounds))
    }

    /// The next operation. `None` after the last loop over the size, unless the time is the limit, or after the job's
    /// number of operations.
    #[expect(
        clippy::should_implement_trait,
        reason = "nothing iterates over it, and an iterator promises less"
    )]
    pub fn next(&mut self) -> Option<Step> {
        self.next_of(None)
    }

    /// Like [`Self::next`], if a rate decides the direction. The random choice of a mixed job is drawn anyway.
    pub fn next_of(&mut self, reads: Option<bool>) -> Option<Step> {
        if self.round == 0 && self.left > 0 {
            self.rounds = self.rounds.checked_sub(1)?;
            self.begin_round();
        }
        self.left = self.left.checked_sub(1)?;
        let Some((direction, block, is_free)) = self.place(reads).or_else(|| self.place_anew(reads)) else {
            self.left = 0;
            return None;
        };
        let mut units = self.lengths.next(direction, self.blocks - block);
        if let Order::Random { map: Some(map), .. } = &mut self.order
            && is_free
        {
            units = self.lengths.taken(map, direction, block, units);
        }
        self.last[direction] = Some((block, block + units));
        self.round = self.round.saturating_sub(units);
        Some(Step {
            reads: direction == READ,
            offset_bytes: self.first_byte + block * self.unit_bytes,
            bytes: (units * self.unit_bytes) as u32,
        })
    }

    /// The direction of the next operation, its start, and whether to enter it into the map. `None` if it would
    /// exceed the used part.
    fn place(&mut self, reads: Option<bool>) -> Option<(usize, u64, bool)> {
        let direction = match &mut self.direction {
            Direction::Reads => READ,
            Direction::Writes => WRITE,
            Direction::Mixed(mix) => mix.next(reads),
        };
        let (block, is_free) = self.block(direction)?;
        let fits = block + self.lengths.of_direction(direction) <= self.blocks;
        fits.then_some((direction, block, is_free))
    }

    /// Like [`Self::place`] in the next round, if there is one. With lengths that differ by direction a round ends
    /// before all units are used: the rest is too short for an operation, or lies after the last block of its length.
    /// The draw that found this was the unused one.
    fn place_anew(&mut self, reads: Option<bool>) -> Option<(usize, u64, bool)> {
        self.lengths.by_direction?;
        if !self.follow.begins_again {
            self.rounds = self.rounds.checked_sub(1)?;
            self.round = self.blocks;
        }
        if let Order::Random { map: Some(map), .. } = &mut self.order {
            map.clear();
        }
        self.last = [None; 2];
        self.reseed();
        self.place(reads)
    }

    /// The start of the next operation of a direction, and whether to enter it into the map. `None` if it would
    /// exceed the used part.
    fn block(&mut self, direction: usize) -> Option<(u64, bool)> {
        let follows = match self.order {
            Order::Sequential => true,
            Order::Random { .. } | Order::Skewed(_) => !self.follow.is_random(),
        };
        let followed = follows.then(|| self.follow.next(self.last[direction], self.blocks));
        match (&mut self.order, followed) {
            (Order::Sequential, Some(Some(block))) => Some((block, false)),
            // The plain sequence starts again.
            (Order::Sequential, _) => (self.follow.stride_units == 0).then_some((0, false)),
            (_, Some(Some(block))) => Some((block, false)),
            (order, _) => {
                let length = self.lengths.of_direction(direction);
                let drawn = order.draw(self.blocks / length)? * length;
                (drawn < self.blocks).then_some((drawn, !follows))
            }
        }
    }

    fn begin_round(&mut self) {
        self.round = self.blocks;
        if let Order::Random { stream, map: Some(map) } = &mut self.order {
            map.clear();
            // An unused draw found that the map is full.
            stream.below(1);
            if let Direction::Mixed(mix) = &mut self.direction {
                mix.next(None);
            }
        }
        self.reseed();
    }

    /// Restarts the random numbers for a round, if they should repeat.
    fn reseed(&mut self) {
        if !self.seeds.repeat {
            return;
        }
        if let Order::Random { stream, .. } = &mut self.order {
            *stream = Stream::new(matches!(stream, Stream::Wide(_)), self.seeds.blocks);
        }
        if let Direction::Mixed(mix) = &mut self.direction {
            *mix = Mix::new(mix.percent[READ] as u8, Tausworthe::new(self.seeds.mix));
        }
        self.lengths.lots = self.seeds.lengths.map(Tausworthe::new);
    }
}

/// Number of passes over the used part; one if the time is the limit.
fn rounds(job: &StorageJob, blocks: u64) -> u32 {
    let used_bytes = blocks.saturating_mul(u64::from(unit_bytes(job).max(1)));
    match job.done_bytes {
        _ if job.time_based => 1,
        Some(done) if used_bytes > 0 => u32::try_from(done.div_ceil(used_bytes)).unwrap_or(u32::MAX),
        _ => job.loops,
    }
}

/// Most operations.
fn most_operations(job: &StorageJob) -> u64 {
    let of_bytes = job.done_bytes.map(|done| done.div_ceil(u64::from(job.block_bytes.max(1))));
    [job.operations_max, of_bytes].into_iter().flatten().min().unwrap_or(u64::MAX)
}

impl Order {
    /// A random block below `blocks`.
    fn draw(&mut self, blocks: u64) -> Option<u64> {
        match self {
            Self::Sequential => None,
            Self::Random { stream, map: None } => Some(stream.below(blocks)),
            Self::Random { stream, map: Some(map) } => Some(random_free(stream, map, blocks)),
            Self::Skewed(skewed) => Some(skewed.next()),
        }
    }
}

impl Follow {
    fn new(job: &StorageJob, used_bytes: u64) -> Self {
        let unit = u64::from(unit_bytes(job).max(1));
        let end = job.file_bytes.unwrap_or_else(|| job.offset_bytes.saturating_add(used_bytes));
        Self {
            random_every: job.random_every.max(1),
            until_random: 1,
            identical: job.sequencer == Sequencer::Identical,
            stride_units: job.stride_bytes / unit as i64,
            file_units: end / unit,
            first_unit: job.offset_bytes / unit,
            begins_again: job.time_based,
        }
    }

    /// Whether the next operation has a random block.
    fn is_random(&mut self) -> bool {
        self.until_random -= 1;
        if self.until_random == 0 {
            self.until_random = self.random_every;
        }
        self.until_random == self.random_every
    }

    /// The block after the last operation, in a used part of `blocks`; `None` if it exceeds that part.
    fn next(&self, last: Option<(u64, u64)>, blocks: u64) -> Option<u64> {
        let (begun, ended) = last.unwrap_or((0, 0));
        if self.identical {
            return Some(begun);
        }
        let ended = if self.begins_again && ended >= blocks { 0 } else { ended };
        // Positions count from the start of the used part, the file's end from its own start.
        if ended + self.first_unit >= self.file_units {
            return None;
        }
        let next = match ended.checked_add_signed(self.stride_units) {
            _ if ended == 0 || self.stride_units == 0 => ended,
            Some(next) if next < self.file_units => next,
            _ if self.stride_units > 0 => self.first_unit,
            _ => self.file_units.min(blocks).saturating_add_signed(self.stride_units),
        };
        (next < blocks).then_some(next)
    }
}

/// Lengths of operations, in units.
#[derive(Clone, Debug)]
struct Lengths {
    unit_bytes: u64,
    most_bytes: u64,
    /// Lengths of reads and of writes, if they differ.
    by_direction: Option<[u64; 2]>,
    /// The rarest first; empty if all lengths are equally likely.
    shares: Vec<BlockShare>,
    lots: [Tausworthe; 2],
}

impl Lengths {
    fn new(job: &StorageJob, seeds: [u64; 2]) -> Self {
        let mut shares = match &job.block_sizes {
            BlockSizes::Split(shares) => shares.clone(),
            BlockSizes::Same | BlockSizes::Range { .. } | BlockSizes::ByDirection { .. } => Vec::new(),
        };
        let by_direction = match job.block_sizes {
            BlockSizes::ByDirection { reads, writes } => Some([reads, writes].map(u64::from)),
            _ => None,
        };
        shares.sort_by_key(|share| share.percent);
        Self {
            unit_bytes: u64::from(unit_bytes(job).max(1)),
            most_bytes: u64::from(job.block_bytes),
            by_direction,
            shares,
            lots: seeds.map(Tausworthe::new),
        }
    }

    /// The next length of a direction, with `units_left` units left; at least one is.
    fn next(&mut self, direction: usize, units_left: u64) -> u64 {
        if self.by_direction.is_some() {
            return self.of_direction(direction);
        }
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

    /// Units of a block of a direction, if its length is fixed; else 1.
    fn of_direction(&self, direction: usize) -> u64 {
        self.by_direction.map_or(1, |lengths| lengths[direction] / self.unit_bytes)
    }

    /// Enters the units of an operation into the map; returns how many it may use.
    fn taken(&self, map: &mut Map, direction: usize, block: u64, units: u64) -> u64 {
        let length = self.of_direction(direction);
        match self.by_direction {
            // One bit per block, by its number among those of its direction.
            Some(_) => map.take(block / length, 1) * units,
            None => map.take(block, units),
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

/// A random block that is not used yet. A full map is cleared, after one unused draw.
fn random_free(stream: &mut Stream, map: &mut Map, blocks: u64) -> u64 {
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

/// Random choice of reads and writes.
#[derive(Clone, Debug)]
struct Mix {
    percent: [u64; 2],
    lot: Tausworthe,
    direction: usize,
    issued: [u64; 2],
    /// Number of operations of the direction at which the choice is drawn again.
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

/// The used blocks: a bit for each, and above it levels in which a bit stands for a full word below.
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

    /// Frees all blocks. Bits beyond the end stay set, so that no search finds them.
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

    /// Marks free blocks as used from this one on, up to the first used one; returns how many.
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
        // Ascends until a word has a free bit at or after the position; then descends along the first free bits.
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
mod tests;
