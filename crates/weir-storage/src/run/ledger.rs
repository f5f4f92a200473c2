//! The ledger: a file that records for each block how often a run started to write it and how often a write was
//! acknowledged, so that the contents can be checked after a kill or a power failure.
//!
//! | bytes | field |
//! | --- | --- |
//! | 0..8 | `WEIRLEDG` |
//! | 8..12 | version, 1 |
//! | 12..16 | CRC-32C of bytes 16 to 64 |
//! | 16..24 | number of the run: the time of its start, in ns since 1970 |
//! | 24..32 | seed of the job |
//! | 32..40 | offset of the first block in the file |
//! | 40..48 | bytes of a block |
//! | 48..56 | blocks |
//! | 56..60 | threads |
//! | 60..64 | 1: acknowledged means that an fsync begun afterwards has ended; 0: that the write has ended |
//! | 64..4096 | zeros |
//! | 4096.. | for each thread, for each block: writes begun (4 bytes), writes acknowledged (4 bytes) |
//!
//! Numbers are little-endian. A write is entered as started before it is submitted to the kernel, and as acknowledged
//! after the kernel has completed it, each with a `pwrite` of 4 bytes: the entries of a killed process survive. The
//! ledger is not synced: to survive a power failure it must lie on storage with protected power. An acknowledged
//! count of `0xffff_ffff` marks a block with a failed write, whose contents are unknown.

use std::{
    collections::VecDeque,
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use crc32c::crc32c;
use weir_record::storage::StorageJob;

use super::contents::SEED_STEP;
use crate::{job::offsets, verify::noise};

const MAGIC: [u8; 8] = *b"WEIRLEDG";
const VERSION: u32 = 1;
const HEADER_BYTES: u64 = 4096;
const HEADER_FIELDS: usize = 64;
const ENTRY_BYTES: u64 = 8;
/// Largest ledger.
const LEDGER_BYTES_MAX: u64 = 8 << 30;
/// Most writes of a thread that wait for an fsync.
pub(super) const UNSYNCED_MAX: u64 = 1 << 20;
/// Count of a block with a failed write.
pub(super) const UNSURE: u32 = u32::MAX;

/// Why a ledger cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// A system call failed.
    #[error("the ledger {path}: cannot {doing}: {source}")]
    System {
        /// The ledger.
        path: PathBuf,
        /// The failed step.
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The ledger of an earlier run is not overwritten: it may be the only record of what was written.
    #[error(
        "the ledger {0} exists; check what it is about with --verify-only, then remove it or name another"
    )]
    Exists(PathBuf),
    /// The file is not a ledger, or is damaged.
    #[error(
        "{0} is no ledger of weir, or a damaged one; name the file that the writing run was given with --ledger"
    )]
    Foreign(PathBuf),
    /// The ledger belongs to another job.
    #[error("the ledger {path} is that of a job with {was}; say the same instead of {now}")]
    Other {
        /// The ledger.
        path: PathBuf,
        /// The job in the ledger.
        was: String,
        /// The requested job.
        now: String,
    },
    /// The ledger would be too large.
    #[error("the ledger {path}: {reason}")]
    TooMuch {
        /// The ledger.
        path: PathBuf,
        /// The size, and what would work.
        reason: String,
    },
}

impl LedgerError {
    /// Whether the command was wrong, rather than the machine.
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::System { .. })
    }
}

/// The job of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    run: u64,
    seed: u64,
    offset_bytes: u64,
    block_bytes: u64,
    blocks: u64,
    threads: u32,
    is_synced: bool,
}

impl Header {
    fn of(job: &StorageJob, used_bytes: u64, run: u64) -> Self {
        Self {
            run,
            seed: job.seed,
            offset_bytes: job.offset_bytes,
            block_bytes: u64::from(job.block_bytes),
            blocks: offsets::blocks(used_bytes, job.block_bytes),
            threads: job.threads.max(1),
            is_synced: job.fsync_every > 0,
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES as usize];
        bytes[0..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        let numbers = [self.run, self.seed, self.offset_bytes, self.block_bytes, self.blocks];
        for (place, number) in bytes[16..56].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes[56..60].copy_from_slice(&self.threads.to_le_bytes());
        bytes[60..64].copy_from_slice(&u32::from(self.is_synced).to_le_bytes());
        let checksum = crc32c(&bytes[16..HEADER_FIELDS]);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; HEADER_FIELDS]) -> Option<Self> {
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| bytes[at + index]));
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|index| bytes[at + index]));
        let is_known = bytes[0..8] == MAGIC && word(8) == VERSION && word(12) == crc32c(&bytes[16..]);
        let header = is_known.then(|| Self {
            run: number(16),
            seed: number(24),
            offset_bytes: number(32),
            block_bytes: number(40),
            blocks: number(48),
            threads: word(56),
            is_synced: word(60) != 0,
        })?;
        // The checksum does not protect against a deliberate attack.
        (header.block_bytes > 0 && header.threads > 0 && header.bytes() <= LEDGER_BYTES_MAX).then_some(header)
    }

    fn bytes(&self) -> u64 {
        let entries = self.blocks.saturating_mul(u64::from(self.threads));
        entries.saturating_mul(ENTRY_BYTES).saturating_add(HEADER_BYTES)
    }

    fn shown(&self) -> String {
        let Self { seed, offset_bytes, block_bytes, threads, .. } = self;
        format!("--bs {block_bytes} --offset {offset_bytes} --seed {seed} --jobs {threads}")
    }

    fn entry_at(&self, thread: u32, block: u64) -> u64 {
        HEADER_BYTES + (u64::from(thread) * self.blocks + block) * ENTRY_BYTES
    }
}

/// How often a thread started to write a block, and how often a write was acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) begun: u32,
    pub(super) acknowledged: u32,
}

/// A complete ledger.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    path: PathBuf,
    file: Arc<File>,
    header: Header,
}

impl Ledger {
    /// Creates the ledger of a job that is about to write `used_bytes` bytes.
    pub(super) fn create(
        path: &Path,
        job: &StorageJob,
        used_bytes: u64,
        run: u64,
    ) -> Result<Self, LedgerError> {
        let header = Header::of(job, used_bytes, run);
        let too_much = |reason: String| Err(LedgerError::TooMuch { path: path.to_owned(), reason });
        if header.bytes() > LEDGER_BYTES_MAX {
            return too_much(format!(
                "it would have {} MiB, and may have {}; use a smaller size, larger blocks or fewer threads",
                header.bytes() >> 20,
                LEDGER_BYTES_MAX >> 20
            ));
        }
        if u64::from(job.fsync_every).saturating_mul(u64::from(job.depth)) > UNSYNCED_MAX {
            return too_much(format!(
                "it remembers {UNSYNCED_MAX} writes that wait for their fsync, and --fsync {} with --depth {} may leave \
                 more; use a smaller --fsync",
                job.fsync_every, job.depth
            ));
        }
        let failed = |doing| move |source| LedgerError::System { path: path.to_owned(), doing, source };
        let file = match OpenOptions::new().read(true).write(true).create_new(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(LedgerError::Exists(path.to_owned()));
            }
            file => file.map_err(failed("make it"))?,
        };
        let made = Self { path: path.to_owned(), file: Arc::new(file), header };
        let length = made.file.set_len(header.bytes()).map_err(failed("make it as long as it must be"));
        let written =
            length.and_then(|()| made.file.write_all_at(&header.encode(), 0).map_err(failed("write it")));
        // A part of a ledger would be in the way of the next run.
        written.inspect_err(|_| made.remove())?;
        Ok(made)
    }

    /// Removes the file of a ledger in which no write was entered.
    pub(super) fn remove(&self) {
        // If it stays, the next run names it.
        let _ = fs::remove_file(&self.path);
    }

    /// Reads the ledger of an earlier run of this job.
    pub(super) fn open(path: &Path, job: &StorageJob) -> Result<Self, LedgerError> {
        let failed = |doing| move |source| LedgerError::System { path: path.to_owned(), doing, source };
        let file = File::open(path).map_err(failed("open it"))?;
        let metadata = file.metadata().map_err(failed("examine it"))?;
        let mut bytes = [0; HEADER_FIELDS];
        let header = match file.read_exact_at(&mut bytes, 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
            read => read.map(|()| Header::decode(&bytes)).map_err(failed("read it"))?,
        };
        let header = header
            .filter(|header| metadata.len() == header.bytes())
            .ok_or_else(|| LedgerError::Foreign(path.to_owned()))?;
        let used_bytes = job.size_bytes.unwrap_or(header.blocks.saturating_mul(header.block_bytes));
        let asked = Header { is_synced: header.is_synced, ..Header::of(job, used_bytes, header.run) };
        if asked != header {
            let size =
                |header: &Header| format!("{} --size {}", header.shown(), header.blocks * header.block_bytes);
            let (was, now) = (size(&header), size(&asked));
            return Err(LedgerError::Other { path: path.to_owned(), was, now });
        }
        Ok(Self { path: path.to_owned(), file: Arc::new(file), header })
    }

    pub(super) fn blocks(&self) -> u64 {
        self.header.blocks
    }

    pub(super) fn threads(&self) -> u32 {
        self.header.threads
    }

    /// The seed of this run's blocks, which distinguishes them from those of an earlier run.
    pub(super) fn seed(&self, thread: u32) -> u64 {
        let seed = noise(self.header.seed, self.header.run);
        seed.wrapping_add(u64::from(thread).wrapping_mul(SEED_STEP))
    }

    /// The part of one thread.
    pub(super) fn page(&self, thread: u32) -> Page {
        Page { ledger: self.clone(), thread, unsynced: Unsynced::default() }
    }

    /// Entries of one thread for consecutive blocks.
    pub(super) fn entries(&self, thread: u32, first: u64, entries: &mut [Entry]) -> Result<(), LedgerError> {
        let mut bytes = vec![0; entries.len() * ENTRY_BYTES as usize];
        let read = self.file.read_exact_at(&mut bytes, self.header.entry_at(thread, first));
        read.map_err(|source| LedgerError::System { path: self.path.clone(), doing: "read it", source })?;
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0_u32, |word, byte| word << 8 | u32::from(*byte));
        for (entry, bytes) in entries.iter_mut().zip(bytes.chunks_exact(ENTRY_BYTES as usize)) {
            *entry = Entry { begun: word(&bytes[..4]), acknowledged: word(&bytes[4..]) };
        }
        Ok(())
    }
}

/// The entries of one thread.
#[derive(Clone, Debug)]
pub(super) struct Page {
    ledger: Ledger,
    thread: u32,
    unsynced: Unsynced,
}

impl Page {
    /// Enters a write that is about to be submitted, with its count.
    pub(super) fn begin(&self, block: u64, count: u32) -> io::Result<()> {
        self.enter(block, 0, count)
    }

    /// Enters a successful write.
    pub(super) fn written(&mut self, block: u64, count: u32) -> io::Result<()> {
        if self.ledger.header.is_synced {
            self.unsynced.writes.push_back((block, count));
            return Ok(());
        }
        self.enter(block, 4, count)
    }

    /// Enters a failed write: the contents of the block are unknown.
    pub(super) fn failed(&mut self, block: u64) -> io::Result<()> {
        let of_block = |(unsynced, _): &&mut (u64, u32)| *unsynced == block;
        self.unsynced.writes.iter_mut().filter(of_block).for_each(|(_, count)| *count = UNSURE);
        self.enter(block, 4, UNSURE)
    }

    /// Notes an fsync that is about to be submitted; returns its number.
    pub(super) fn sync_begins(&self) -> u64 {
        self.unsynced.first + self.unsynced.writes.len() as u64
    }

    /// Notes the end of that fsync: writes before it are durable, or will never be known to be.
    pub(super) fn sync_ended(&mut self, known_by: u64, succeeded: bool) -> io::Result<()> {
        while self.unsynced.first < known_by {
            let Some((block, count)) = self.unsynced.writes.pop_front() else { break };
            self.unsynced.first += 1;
            if succeeded {
                self.enter(block, 4, count)?;
            }
        }
        Ok(())
    }

    fn enter(&self, block: u64, at: u64, count: u32) -> io::Result<()> {
        let at = self.ledger.header.entry_at(self.thread, block) + at;
        self.ledger.file.write_all_at(&count.to_le_bytes(), at)
    }
}

/// Completed writes that wait for an fsync, with their counts, in the order of completion.
#[derive(Clone, Debug, Default)]
struct Unsynced {
    writes: VecDeque<(u64, u32)>,
    /// Number of writes before the first.
    first: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A temporary path, removed at the end.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("weir-ledger-{name}-{}", std::process::id()));
            let _ = fs::remove_file(&path);
            Self(path)
        }

        fn entries(&self, thread: u32) -> Vec<Entry> {
            let mut entries = vec![Entry::default(); 4];
            let ledger = Ledger::open(&self.0, &job(0)).expect("it is there");
            ledger.entries(thread, 4, &mut entries).expect("it has eight");
            entries
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    fn job(fsync_every: u32) -> StorageJob {
        StorageJob {
            seed: 5,
            offset_bytes: 512,
            block_bytes: 512,
            threads: 2,
            fsync_every,
            ..StorageJob::default()
        }
    }

    fn made(place: &Place, fsync_every: u32) -> Ledger {
        Ledger::create(&place.0, &job(fsync_every), 8 * 512, 99).expect("made")
    }

    fn entry(begun: u32, acknowledged: u32) -> Entry {
        Entry { begun, acknowledged }
    }

    #[test]
    fn what_threads_enter_is_read_as_it_was_entered() {
        let place = Place::new("enter");
        let ledger = made(&place, 0);
        let mut pages = [0, 1].map(|thread| ledger.page(thread));
        pages[0].begin(4, 1).expect("room");
        pages[0].written(4, 1).expect("room");
        pages[0].begin(4, 2).expect("room");
        pages[1].begin(7, 3).expect("room");
        pages[1].failed(7).expect("room");
        let empty = Entry::default();
        assert_eq!(place.entries(0), [entry(2, 1), empty, empty, empty]);
        assert_eq!(place.entries(1), [empty, empty, empty, entry(3, UNSURE)]);
    }

    #[test]
    fn with_an_fsync_only_what_ended_before_it_began_is_acknowledged() {
        let place = Place::new("sync");
        let mut page = made(&place, 2).page(0);
        for block in 4..7 {
            page.begin(block, 1).expect("room");
        }
        page.written(4, 1).expect("room");
        let first = page.sync_begins();
        page.written(5, 1).expect("room");
        let second = page.sync_begins();
        page.written(6, 1).expect("room");
        page.sync_ended(first, true).expect("room");
        assert_eq!(place.entries(0)[..3], [entry(1, 1), entry(1, 0), entry(1, 0)]);
        // Linux reports a failed write once: what this fsync covered is never known to be durable.
        page.sync_ended(second, false).expect("room");
        let third = page.sync_begins();
        page.failed(6).expect("room");
        page.sync_ended(third, true).expect("room");
        assert_eq!(place.entries(0)[..3], [entry(1, 1), entry(1, 0), entry(1, UNSURE)]);
    }

    #[test]
    fn a_ledger_is_neither_overwritten_nor_taken_for_that_of_another_job() {
        let place = Place::new("other");
        drop(made(&place, 0));
        let again = Ledger::create(&place.0, &job(0), 8 * 512, 1).expect_err("it is there");
        assert!(again.is_usage() && again.to_string().contains("--verify-only"), "{again}");
        assert!(Ledger::open(&place.0, &StorageJob { size_bytes: Some(8 * 512), ..job(3) }).is_ok());
        for other in [
            StorageJob { seed: 6, ..job(0) },
            StorageJob { block_bytes: 1024, ..job(0) },
            StorageJob { offset_bytes: 0, ..job(0) },
            StorageJob { threads: 1, ..job(0) },
            StorageJob { size_bytes: Some(512), ..job(0) },
        ] {
            let text = Ledger::open(&place.0, &other).expect_err("another job").to_string();
            let was = "--bs 512 --offset 512 --seed 5 --jobs 2 --size 4096";
            assert!(text.contains(was) && text.contains("instead of"), "{text}");
        }
    }

    #[test]
    fn what_is_no_ledger_is_told() {
        let place = Place::new("damaged");
        drop(made(&place, 0));
        let whole = fs::read(&place.0).expect("there");
        let mut wrongs: Vec<Vec<u8>> = vec![Vec::new(), vec![7; 5000], whole[..whole.len() - 1].to_vec()];
        for at in [0, 8, 12, 16, 24, 32, 40, 48, 56, 60, 63] {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            wrongs.push(damaged);
        }
        for wrong in wrongs {
            fs::write(&place.0, wrong).expect("written");
            let error = Ledger::open(&place.0, &job(0)).expect_err("damaged");
            assert!(matches!(error, LedgerError::Foreign(_)), "{error}");
        }
        let missing = Ledger::open(Path::new("/nowhere/ledger"), &job(0)).expect_err("none");
        assert!(missing.to_string().contains("cannot open it"), "{missing}");
    }

    #[test]
    fn more_than_a_ledger_keeps_is_refused_before_it_is_made() {
        let place = Place::new("limits");
        let refused = |job: &StorageJob, used_bytes| {
            let text = Ledger::create(&place.0, job, used_bytes, 1).expect_err("too much").to_string();
            assert!(!place.0.exists());
            text
        };
        // Two threads of 16 bytes for each block of 512 bytes.
        let blocks = (LEDGER_BYTES_MAX - HEADER_BYTES) / 16;
        assert!(refused(&job(0), (blocks + 1) * 512).contains("smaller size"));
        let often = StorageJob { fsync_every: 1 << 19, depth: 3, ..job(0) };
        assert!(refused(&often, 8 * 512).contains("--fsync 524288 with --depth 3"));
        Ledger::create(&place.0, &StorageJob { depth: 2, ..often }, 8 * 512, 1).expect("just enough");
    }
}
