//! What a job writes, and whether it can be read back.
//!
//! Without verification every buffer is filled once with seeded bytes, which costs nothing per operation. With it every
//! block carries a stamp: the seed of the thread, its place, and how often the thread wrote it before. Two writes of
//! one block that are in flight together carry the same stamp, for nobody knows which of them is last. A block of which
//! a write failed is not judged, because nobody knows what it holds.
//!
//! Several threads of one job may write the same block; it is right when it is what any of them wrote last. Jobs that
//! write to one file side by side spoil each other's blocks: their verification fails, and that is what it is for.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    sync::atomic::{AtomicBool, Ordering},
};

use weir_record::storage::StorageJob;

use crate::verify::{self, HEADER_BYTES, Stamp};

/// Bytes read at once when blocks are compared.
const CHUNK_BYTES: u64 = 1 << 20;
/// Of each thread, so that their blocks differ.
const SEED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// How often one thread wrote each block; [`UNSURE`] when a write failed.
#[derive(Clone, Debug)]
pub(super) struct Written {
    seed: u64,
    counts: Vec<u32>,
}

const UNSURE: u32 = u32::MAX;

/// The blocks of one thread.
#[derive(Clone, Debug)]
pub(super) struct Contents {
    seed: u64,
    first_byte: u64,
    block_bytes: u64,
    written: Option<Written>,
    /// Block that each slot is writing.
    writing: Vec<Option<u64>>,
}

impl Contents {
    /// Contents for one thread of a job that uses so many bytes from its offset on.
    pub(super) fn new(job: &StorageJob, thread: u32, used_bytes: u64) -> Self {
        let block_bytes = u64::from(job.block_bytes.max(1));
        let seed = job.seed.wrapping_add(u64::from(thread).wrapping_mul(SEED_STEP));
        let is_stamped =
            job.verify_crc32c && job.pattern.writes() && job.block_bytes as usize >= HEADER_BYTES;
        let blocks = usize::try_from(used_bytes / block_bytes).unwrap_or(usize::MAX);
        Self {
            seed,
            first_byte: job.offset_bytes,
            block_bytes,
            written: is_stamped.then(|| Written { seed, counts: vec![0; blocks] }),
            writing: vec![None; job.depth as usize],
        }
    }

    /// Whether blocks carry stamps.
    pub(super) fn is_stamped(&self) -> bool {
        self.written.is_some()
    }

    /// Fills the buffer of a slot, once.
    pub(super) fn prepare(&self, slot: u32, buffer: &mut [u8]) {
        verify::fill(self.seed, u64::from(slot) * self.block_bytes, buffer);
    }

    /// Stamps the buffer of a slot that is about to be written.
    pub(super) fn stamp(&mut self, slot: u32, offset_bytes: u64, buffer: &mut [u8]) {
        let Some(written) = &mut self.written else { return };
        let block = (offset_bytes - self.first_byte) / self.block_bytes;
        let Some(count) = written.counts.get_mut(block as usize) else { return };
        let is_shared = self.writing.contains(&Some(block));
        if !is_shared && *count < UNSURE - 1 {
            *count += 1;
        }
        self.writing[slot as usize] = Some(block);
        // All of it depends on the place, so that equal stamps mean equal bytes.
        verify::fill(self.seed, offset_bytes, buffer);
        let generation = u64::from(count.saturating_sub(1));
        verify::stamp(buffer, &Stamp { seed: self.seed, offset_bytes, generation });
    }

    /// A write of a slot ended.
    pub(super) fn ended(&mut self, slot: u32, succeeded: bool) {
        let Some(block) = self.writing.get_mut(slot as usize).and_then(Option::take) else { return };
        if !succeeded
            && let Some(count) =
                self.written.as_mut().and_then(|written| written.counts.get_mut(block as usize))
        {
            *count = UNSURE;
        }
    }

    /// What was written, when blocks carry stamps.
    pub(super) fn into_written(self) -> Option<Written> {
        self.written
    }
}

/// What comparing found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Verified {
    /// Blocks compared.
    pub(super) blocks: u64,
    /// Of these, wrong ones.
    pub(super) failures: u64,
    /// About the first wrong one.
    pub(super) first_failure: Option<String>,
    /// It ended before all was compared.
    pub(super) was_interrupted: bool,
}

/// Reads what the threads of a job wrote, and compares. The page cache is asked to forget the file first, so that what
/// is compared comes from the device where that is possible.
pub(super) fn verify(
    job: &StorageJob,
    threads: &[Written],
    interrupt: &AtomicBool,
    progress: &dyn Fn(u64),
) -> io::Result<Verified> {
    let file = File::open(&job.file)?;
    // A device or a file system that cannot do this is read all the same.
    let _ = file.sync_data();
    let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
    let blocks = threads.iter().map(|written| written.counts.len()).max().unwrap_or(0);
    let block_bytes = u64::from(job.block_bytes);
    let per_chunk = (CHUNK_BYTES / block_bytes).max(1) as usize;
    let mut buffer = vec![0; per_chunk * block_bytes as usize];
    let mut found = Verified::default();
    for first in (0..blocks).step_by(per_chunk) {
        if interrupt.load(Ordering::Relaxed) {
            found.was_interrupted = true;
            break;
        }
        let count = per_chunk.min(blocks - first);
        if !(first..first + count).any(|block| is_judged(threads, block)) {
            continue;
        }
        let bytes = &mut buffer[..count * block_bytes as usize];
        let offset_bytes = job.offset_bytes + first as u64 * block_bytes;
        file.read_exact_at(bytes, offset_bytes)?;
        for (index, block) in bytes.chunks_exact(block_bytes as usize).enumerate() {
            let offset_bytes = offset_bytes + index as u64 * block_bytes;
            compare(threads, first + index, block, offset_bytes, &mut found);
        }
        progress(found.blocks);
    }
    Ok(found)
}

/// Whether anybody wrote the block, and nobody failed to.
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
    found.blocks += 1;
    let mut first_error = None;
    for result in threads.iter().filter_map(check) {
        match result {
            Ok(()) => return,
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    found.failures += 1;
    if let (None, Some(error)) = (&found.first_failure, first_error) {
        found.first_failure = Some(format!("the block at {offset_bytes} is wrong: {error}"));
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf};

    use weir_record::storage::AccessPattern;

    use super::*;

    const BLOCK: usize = 512;

    /// A file with room for eight blocks behind its first, removed at the end.
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
            contents.stamp(slot, offset_bytes, &mut buffer);
            if succeeds {
                let file = fs::OpenOptions::new().write(true).open(&self.0).expect("it is there");
                file.write_all_at(&buffer, offset_bytes).expect("there is room");
            }
            contents.ended(slot, succeeds);
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
        Contents::new(&scratch.job(), thread, 8 * BLOCK as u64)
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
        contents.stamp(0, 3 * BLOCK as u64, &mut buffer);
        contents.ended(0, true);
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
        contents.stamp(0, BLOCK as u64, &mut first);
        contents.stamp(1, BLOCK as u64, &mut second);
        assert_eq!(first, second);
        contents.ended(0, true);
        contents.ended(1, true);
        contents.stamp(0, BLOCK as u64, &mut second);
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
    fn without_verification_buffers_are_filled_once_and_nothing_is_kept() {
        let scratch = Scratch::new("plain");
        let job = StorageJob { verify_crc32c: false, ..scratch.job() };
        let contents = Contents::new(&job, 0, 8 * BLOCK as u64);
        let mut buffers = [vec![0; BLOCK], vec![0; BLOCK]];
        for (slot, buffer) in (0..).zip(&mut buffers) {
            contents.prepare(slot, buffer);
        }
        assert_ne!(buffers[0], buffers[1]);
        assert!(!contents.is_stamped() && contents.into_written().is_none());
    }
}
