//! What a job writes, and whether it can be read back.
//!
//! Without verification every block has unique bytes ([`Payload`]). With verification every block has a stamp: the
//! seed of the thread, its position, and how often the thread wrote it before. Two writes of one block that are in
//! flight together have the same stamp, because their order is unknown. A block with a failed write is not checked,
//! because its contents are unknown.
//!
//! Several threads of one job may write the same block; it is right when it contains the last write of any of them.
//! Jobs that write to one file at the same time overwrite each other's blocks: their verification fails, as it
//! should.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    sync::atomic::{AtomicBool, Ordering},
};

use weir_record::storage::StorageJob;

use super::{
    ledger::{Ledger, Page, UNSURE},
    payload::Payload,
};
use crate::{
    verify::{self, HEADER_BYTES, Stamp, VerifyError, noise},
    wait::time::thread_cpu_ns,
};

/// Bytes per read when blocks are compared.
const CHUNK_BYTES: u64 = 1 << 20;
/// Progress is reported after this many blocks.
pub(super) const TELL_EVERY_BLOCKS: u64 = 256;
/// Difference between the seeds of threads, so that their blocks differ.
pub(super) const SEED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// How often one thread wrote each block; [`UNSURE`] after a failed write.
#[derive(Clone, Debug)]
pub(super) struct Written {
    seed: u64,
    counts: Vec<u32>,
}

/// Bytes that are generated to measure the cost, and number of attempts.
const REHEARSED_BYTES: u64 = 256 << 10;
const REHEARSALS: usize = 20;

/// The blocks of one thread.
#[derive(Clone, Debug)]
pub(super) struct Contents {
    seed: u64,
    first_byte: u64,
    block_bytes: u64,
    payload: Payload,
    written: Option<Written>,
    page: Option<Page>,
    /// What each slot is doing.
    slots: Vec<Doing>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    /// Nothing that changes the file.
    Nothing,
    /// A write of this block.
    Writing(u64),
    /// An fsync, with its number in the ledger.
    Syncing(u64),
}

impl Contents {
    /// Contents for one thread of a job that uses `used_bytes` bytes from its offset on. `run` distinguishes runs.
    pub(super) fn new(
        job: &StorageJob,
        thread: u32,
        used_bytes: u64,
        ledger: Option<&Ledger>,
        run: u64,
    ) -> Self {
        let block_bytes = u64::from(job.block_bytes.max(1));
        let seed = ledger.map_or_else(|| seed(job, thread), |ledger| ledger.seed(thread));
        let is_stamped =
            job.verify_crc32c && job.pattern.writes() && job.block_bytes as usize >= HEADER_BYTES;
        let blocks = usize::try_from(used_bytes / block_bytes).unwrap_or(usize::MAX);
        Self {
            seed,
            first_byte: job.offset_bytes,
            block_bytes,
            payload: Payload::new(
                noise(job.seed, run),
                job.thread_first.saturating_add(thread),
                job.block_bytes as usize,
            ),
            written: is_stamped.then(|| Written { seed, counts: vec![0; blocks] }),
            page: ledger.filter(|_| is_stamped).map(|ledger| ledger.page(thread)),
            slots: vec![Doing::Nothing; job.depth as usize],
        }
    }

    /// CPU time to generate the bytes of one block: the best of several short attempts, which are the least
    /// disturbed. It does not change what the job writes.
    pub(super) fn fill_ns(&self, buffer: &mut [u8]) -> u64 {
        let mut payload = self.payload.clone();
        let rounds = (REHEARSED_BYTES / self.block_bytes).clamp(1, 1000);
        let mut try_once = || {
            let start_ns = thread_cpu_ns();
            for round in 0..rounds {
                match self.written {
                    Some(_) => self.stamp(round * self.block_bytes, round, buffer),
                    None => payload.fill(buffer),
                }
            }
            (thread_cpu_ns() - start_ns).div_ceil(rounds)
        };
        (0..REHEARSALS).map(|_| try_once()).min().unwrap_or(0)
    }

    /// Generates the bytes of a slot that is about to write a block. Errors are those of the ledger.
    pub(super) fn write(&mut self, slot: u32, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
        let block = (offset_bytes - self.first_byte) / self.block_bytes;
        let counts = self.written.as_mut().and_then(|written| written.counts.get_mut(block as usize));
        let Some(count) = counts else {
            self.payload.fill(buffer);
            return Ok(());
        };
        let is_shared = self.slots.contains(&Doing::Writing(block));
        if !is_shared && *count < UNSURE - 1 {
            *count += 1;
        }
        let count = *count;
        self.slots[slot as usize] = Doing::Writing(block);
        self.stamp(offset_bytes, u64::from(count.saturating_sub(1)), buffer);
        self.page.as_ref().map_or(Ok(()), |page| page.begin(block, count))
    }

    /// All bytes of a block depend on its position, so that equal stamps mean equal bytes.
    fn stamp(&self, offset_bytes: u64, generation: u64, buffer: &mut [u8]) {
        verify::fill(self.seed, offset_bytes, buffer);
        verify::stamp(buffer, &Stamp { seed: self.seed, offset_bytes, generation });
    }

    /// A slot is about to sync the file.
    pub(super) fn sync(&mut self, slot: u32) {
        if let Some(page) = &self.page {
            self.slots[slot as usize] = Doing::Syncing(page.sync_begins());
        }
    }

    /// The operation of a slot ended. Errors are those of the ledger.
    pub(super) fn ended(&mut self, slot: u32, succeeded: bool) -> io::Result<()> {
        let Some(doing) = self.slots.get_mut(slot as usize) else { return Ok(()) };
        match std::mem::replace(doing, Doing::Nothing) {
            Doing::Nothing => Ok(()),
            Doing::Writing(block) => self.written(block, succeeded),
            Doing::Syncing(known_by) => {
                self.page.as_mut().map_or(Ok(()), |page| page.sync_ended(known_by, succeeded))
            }
        }
    }

    fn written(&mut self, block: u64, succeeded: bool) -> io::Result<()> {
        let counts = self.written.as_mut().and_then(|written| written.counts.get_mut(block as usize));
        let Some(count) = counts else { return Ok(()) };
        if !succeeded {
            *count = UNSURE;
        }
        match &mut self.page {
            Some(page) if *count == UNSURE => page.failed(block),
            Some(page) => page.written(block, *count),
            None => Ok(()),
        }
    }

    /// What was written, if blocks have stamps.
    pub(super) fn into_written(self) -> Option<Written> {
        self.written
    }
}

/// Seed of one thread's data, if no ledger distinguishes its runs.
pub(super) fn seed(job: &StorageJob, thread: u32) -> u64 {
    job.seed.wrapping_add(u64::from(thread).wrapping_mul(SEED_STEP))
}

/// Result of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Verified {
    /// Blocks compared.
    pub(super) blocks: u64,
    /// Wrong blocks among them.
    pub(super) failures: u64,
    /// About the first wrong one.
    pub(super) first_failure: Option<String>,
    /// Whether it ended before everything was compared.
    pub(super) was_interrupted: bool,
}

impl Verified {
    /// Counts a compared block.
    pub(super) fn count(&mut self, offset_bytes: u64, result: Result<(), impl std::fmt::Display>) {
        self.blocks += 1;
        if let Err(error) = result {
            self.failures += 1;
            let first = || format!("the block at {offset_bytes} is wrong: {error}");
            self.first_failure.get_or_insert_with(first);
        }
    }
}

/// Reads consecutive blocks of the job, several at a time, and calls `compare` for each, until the last one or an
/// interrupt; returns false after an interrupt. Blocks that are not `wanted` may be skipped. The page cache is asked
/// to drop the file first, so that the data comes from the device if possible.
pub(super) fn read_blocks(
    file: &File,
    job: &StorageJob,
    blocks: usize,
    interrupt: &AtomicBool,
    wanted: impl Fn(usize) -> bool,
    mut compare: impl FnMut(usize, &[u8], u64),
) -> io::Result<bool> {
    // If a device or a file system does not support this, it is read anyway.
    let _ = file.sync_data();
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
    let block_bytes = u64::from(job.block_bytes);
    let per_chunk = (CHUNK_BYTES / block_bytes).max(1) as usize;
    let mut buffer = vec![0; per_chunk * block_bytes as usize];
    for first in (0..blocks).step_by(per_chunk) {
        if interrupt.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let count = per_chunk.min(blocks - first);
        if !(first..first + count).any(&wanted) {
            continue;
        }
        let bytes = &mut buffer[..count * block_bytes as usize];
        let offset_bytes = job.offset_bytes + first as u64 * block_bytes;
        file.read_exact_at(bytes, offset_bytes)?;
        for (index, block) in bytes.chunks_exact(block_bytes as usize).enumerate() {
            compare(first + index, block, offset_bytes + index as u64 * block_bytes);
        }
    }
    Ok(true)
}

/// Reads what the threads of a job wrote, and compares.
pub(super) fn verify(
    job: &StorageJob,
    threads: &[Written],
    interrupt: &AtomicBool,
    progress: &dyn Fn(u64),
) -> io::Result<Verified> {
    let file = File::open(&job.file)?;
    let blocks = threads.iter().map(|written| written.counts.len()).max().unwrap_or(0);
    let mut found = Verified::default();
    let wanted = |block| is_judged(threads, block);
    let is_done = read_blocks(&file, job, blocks, interrupt, wanted, |index, block, offset_bytes| {
        compare(threads, index, block, offset_bytes, &mut found);
        if found.blocks.is_multiple_of(TELL_EVERY_BLOCKS) {
            progress(found.blocks);
        }
    })?;
    found.was_interrupted = !is_done;
    Ok(found)
}

/// Whether a thread wrote the block, and no write of it failed.
fn is_judged(threads: &[Written], block: usize) -> bool {
    let mut counts = threads.iter().filter_map(|written| written.counts.get(block));
    counts.clone().any(|count| *count > 0) && counts.all(|count| *count != UNSURE)
}

fn compare(threads: &[Written], index: usize, block: &[u8], offset_bytes: u64, found: &mut Verified) {
    if !is_judged(threads, index) {
        return;
    }
    let check = |written: &Written| {
        let count = written.counts.get(index).copied().filter(|count| *count > 0)?;
        let stamp = Stamp { seed: written.seed, offset_bytes, generation: u64::from(count - 1) };
        Some(verify::check(block, &stamp))
    };
    let mut first_error = None;
    for result in threads.iter().filter_map(check) {
        match result {
            Ok(()) => return found.count(offset_bytes, Ok::<(), VerifyError>(())),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    found.count(offset_bytes, first_error.map_or(Ok(()), Err));
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, fs, path::PathBuf};

    use weir_record::storage::AccessPattern;

    use super::*;

    const BLOCK: usize = 512;

    /// A file with room for eight blocks after its first, removed at the end.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("weir-contents-{name}-{}", std::process::id()));
            fs::write(&path, vec![0; 9 * BLOCK]).expect("a file in the folder for temporary files");
            Self(path)
        }

        fn job(&self) -> StorageJob {
            StorageJob {
                file: self.0.to_string_lossy().into_owned(),
                offset_bytes: BLOCK as u64,
                block_bytes: BLOCK as u32,
                pattern: AccessPattern::RandWrite,
                depth: 4,
                verify_crc32c: true,
                ..StorageJob::default()
            }
        }

        /// Writes a block as an engine would.
        fn write(&self, contents: &mut Contents, slot: u32, block: u64, succeeds: bool) {
            let mut buffer = vec![0; BLOCK];
            let offset_bytes = (block + 1) * BLOCK as u64;
            contents.write(slot, offset_bytes, &mut buffer).expect("no ledger fails");
            if succeeds {
                let file = fs::OpenOptions::new().write(true).open(&self.0).expect("it is there");
                file.write_all_at(&buffer, offset_bytes).expect("there is room");
            }
            contents.ended(slot, succeeds).expect("no ledger fails");
        }

        fn verify(&self, threads: Vec<Contents>) -> Verified {
            let written: Vec<Written> = threads.into_iter().filter_map(Contents::into_written).collect();
            verify(&self.job(), &written, &AtomicBool::new(false), &|_| {}).expect("it can be read")
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    fn contents(scratch: &Scratch, thread: u32) -> Contents {
        Contents::new(&scratch.job(), thread, 8 * BLOCK as u64, None, 1)
    }

    #[test]
    fn what_was_written_is_found_again_and_nothing_else_is_judged() {
        let scratch = Scratch::new("found");
        let mut contents = contents(&scratch, 0);
        for block in [0, 3, 3, 7] {
            scratch.write(&mut contents, 1, block, true);
        }
        assert_eq!(scratch.verify(vec![contents]), Verified { blocks: 3, ..Verified::default() });
    }

    #[test]
    fn a_lost_write_is_seen() {
        let scratch = Scratch::new("lost");
        let mut contents = contents(&scratch, 0);
        scratch.write(&mut contents, 0, 2, true);
        let mut buffer = vec![0; BLOCK];
        contents.write(0, 3 * BLOCK as u64, &mut buffer).expect("no ledger fails");
        contents.ended(0, true).expect("no ledger fails");
        let found = scratch.verify(vec![contents]);
        assert_eq!((found.blocks, found.failures), (1, 1));
        let text = found.first_failure.expect("a sentence about it");
        assert!(text.contains("the block at 1536 is wrong") && text.contains("generation 0"), "{text}");
    }

    #[test]
    fn a_block_of_a_failed_write_is_not_judged() {
        let scratch = Scratch::new("failed");
        let mut contents = contents(&scratch, 0);
        scratch.write(&mut contents, 0, 2, true);
        scratch.write(&mut contents, 0, 2, false);
        assert_eq!(scratch.verify(vec![contents]), Verified::default());
    }

    #[test]
    fn two_writes_of_a_block_in_flight_are_the_same_bytes() {
        let scratch = Scratch::new("twice");
        let mut contents = contents(&scratch, 0);
        let (mut first, mut second) = (vec![0; BLOCK], vec![1; BLOCK]);
        contents.write(0, BLOCK as u64, &mut first).expect("no ledger fails");
        contents.write(1, BLOCK as u64, &mut second).expect("no ledger fails");
        assert_eq!(first, second);
        contents.ended(0, true).expect("no ledger fails");
        contents.ended(1, true).expect("no ledger fails");
        contents.write(0, BLOCK as u64, &mut second).expect("no ledger fails");
        assert_ne!(first, second);
    }

    #[test]
    fn a_block_is_right_when_any_thread_wrote_it_last() {
        let scratch = Scratch::new("threads");
        let (mut first, mut second) = (contents(&scratch, 0), contents(&scratch, 1));
        scratch.write(&mut first, 0, 4, true);
        scratch.write(&mut second, 0, 4, true);
        scratch.write(&mut second, 0, 5, true);
        scratch.write(&mut first, 0, 5, true);
        assert_eq!(scratch.verify(vec![first, second]), Verified { blocks: 2, ..Verified::default() });
    }

    #[test]
    fn without_verification_every_write_has_bytes_of_its_own_and_nothing_is_kept() {
        let scratch = Scratch::new("plain");
        let job = StorageJob { verify_crc32c: false, ..scratch.job() };
        let mut contents = Contents::new(&job, 0, 8 * BLOCK as u64, None, 1);
        let mut seen = HashSet::new();
        for turn in 0..100 {
            // Whatever the buffer contained before, and wherever the block lies.
            let mut buffer = vec![0; BLOCK];
            contents.write(turn % 4, BLOCK as u64, &mut buffer).expect("no ledger fails");
            contents.ended(turn % 4, true).expect("no ledger fails");
            assert!(buffer.chunks(8).all(|word| seen.insert(word.to_vec())));
        }
        assert!(contents.into_written().is_none());
    }

    #[test]
    fn what_the_bytes_cost_is_known_and_changes_none_of_them() {
        let scratch = Scratch::new("cost");
        for verify_crc32c in [false, true] {
            let job = StorageJob { verify_crc32c, ..scratch.job() };
            let mut buffers = [vec![0; BLOCK], vec![0; BLOCK]];
            let mut contents = [0, 1].map(|_| Contents::new(&job, 0, 8 * BLOCK as u64, None, 1));
            assert!(contents[0].fill_ns(&mut buffers[0]) > 0);
            for (contents, buffer) in contents.iter_mut().zip(&mut buffers) {
                contents.write(0, BLOCK as u64, buffer).expect("no ledger fails");
            }
            assert_eq!(buffers[0], buffers[1]);
        }
    }
}
