//! Checks what an earlier run wrote, without a run: after a kill, after a power failure, or years later.
//!
//! With a ledger the acknowledged write of each block is known. A block may contain that or a newer one, and must not
//! contain an older one, one of another run, one of another position, or a torn one; only where a write was in flight
//! when the run ended may the block be torn. Without a ledger a block with a stamp must be whole and at its position.
//! A block without a stamp, or beyond the end of the file, was never written or is lost: that cannot be decided, and
//! the check fails.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileTypeExt,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use weir_record::storage::{StorageJob, StorageJobReport, StorageReport};

use super::{
    Progress, RunError,
    contents::{self, TELL_EVERY_BLOCKS, Verified, read_blocks},
    ledger::{Entry, Ledger, LedgerError, UNSURE},
};
use crate::{
    engine::target::length_bytes,
    job::offsets,
    layout,
    verify::{self, VerifyError},
};

/// Blocks whose ledger entries are read at once.
const ENTRIES_AT_ONCE: usize = 256;

/// Checks what the job wrote earlier. Nothing is written.
pub(super) fn run(
    job: &StorageJob,
    interrupt: &AtomicBool,
    progress: &dyn Fn(&Progress<'_>),
) -> Result<StorageReport, RunError> {
    let failed = |source| RunError::File { path: job.file.clone(), source };
    let file = open(job)?;
    let ledger = job.ledger.as_ref().map(|path| Ledger::open(Path::new(path), job)).transpose()?;
    let has =
        layout::data_bytes(Path::new(&job.file)).map_or_else(|| length_bytes(&file), Ok).map_err(failed)?;
    let behind = has.saturating_sub(job.offset_bytes);
    let there = offsets::blocks(behind.min(job.size_bytes.unwrap_or(u64::MAX)), job.block_bytes);
    let asked = job.size_bytes.map_or(there, |size_bytes| offsets::blocks(size_bytes, job.block_bytes));
    let blocks = ledger.as_ref().map_or(there, Ledger::blocks);
    let is_alone = ledger.is_none();
    let mut checked = Checked::new(job, ledger);
    // The end of the requested area may be missing from the file.
    checked.never_written += if is_alone { asked.saturating_sub(there) } else { 0 };
    let mut broken = None;
    let tell = |found: &Verified| {
        if found.blocks.is_multiple_of(TELL_EVERY_BLOCKS) {
            progress(&Progress::Verifying { job: &job.name, done_blocks: found.blocks });
        }
    };
    let readable = usize::try_from(there.min(blocks)).unwrap_or(usize::MAX);
    let is_done = read_blocks(
        &file,
        job,
        readable,
        interrupt,
        |_| true,
        |index, block, offset_bytes| {
            let result = checked.block(index as u64, Some(block), offset_bytes);
            broken = broken.take().or(result.err());
            tell(&checked.found);
        },
    );
    checked.found.was_interrupted = !is_done.map_err(failed)?;
    for index in there.min(blocks)..blocks {
        if interrupt.load(Ordering::Relaxed) || broken.is_some() {
            break;
        }
        let offset_bytes = job.offset_bytes + index * u64::from(job.block_bytes);
        broken = checked.block(index, None, offset_bytes).err();
    }
    match broken {
        Some(error) => Err(error.into()),
        None => Ok(checked.report(job)),
    }
}

fn open(job: &StorageJob) -> Result<File, RunError> {
    let failed = |source| RunError::File { path: job.file.clone(), source };
    let kind = fs::metadata(&job.file).map_err(failed)?.file_type();
    if !kind.is_file() && !kind.is_block_device() {
        return Err(failed(io::Error::other("it is neither a regular file nor a block device")));
    }
    File::open(&job.file).map_err(failed)
}

/// Result for one block.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Finding {
    NeverWritten,
    Unacknowledged,
    Right,
    Wrong(Wrong),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Wrong {
    #[error("the file ends before it")]
    Missing,
    #[error(transparent)]
    Damaged(#[from] VerifyError),
    #[error("it lay at {0} when it was written")]
    Elsewhere(u64),
    #[error("it is of another run, or was written with another seed ({0})")]
    Stranger(u64),
    #[error("generation {found} where {acknowledged} was acknowledged: the later write is lost")]
    Older { found: u64, acknowledged: u64 },
}

/// Results so far.
struct Checked {
    ledger: Option<Ledger>,
    seeds: Vec<u64>,
    /// The ledger's entries for some blocks, by thread.
    page: Vec<Vec<Entry>>,
    page_first: Option<u64>,
    found: Verified,
    unacknowledged: u64,
    never_written: u64,
}

impl Checked {
    fn new(job: &StorageJob, ledger: Option<Ledger>) -> Self {
        let threads = ledger.as_ref().map_or(job.threads.max(1), Ledger::threads);
        let seed = |thread| match &ledger {
            Some(ledger) => ledger.seed(thread),
            None => contents::seed(job, thread),
        };
        Self {
            seeds: (0..threads).map(seed).collect(),
            page: vec![vec![Entry::default(); ENTRIES_AT_ONCE]; threads as usize],
            page_first: None,
            ledger,
            found: Verified::default(),
            unacknowledged: 0,
            never_written: 0,
        }
    }

    /// Checks a block; `None` for one beyond the end of the file.
    fn block(&mut self, index: u64, block: Option<&[u8]>, offset_bytes: u64) -> Result<(), LedgerError> {
        let finding = if self.ledger.is_some() {
            let entries = self.entries(index)?;
            by_ledger(block, offset_bytes, &self.seeds, &entries)
        } else {
            by_stamp(block, offset_bytes, &self.seeds)
        };
        match finding {
            Finding::NeverWritten => self.never_written += 1,
            Finding::Unacknowledged => self.unacknowledged += 1,
            Finding::Right => self.found.count(offset_bytes, Ok::<(), Wrong>(())),
            Finding::Wrong(wrong) => self.found.count(offset_bytes, Err(wrong)),
        }
        Ok(())
    }

    /// Each thread's entry about a block.
    fn entries(&mut self, index: u64) -> Result<Vec<Entry>, LedgerError> {
        let Some(ledger) = &self.ledger else { return Ok(Vec::new()) };
        let at_once = ENTRIES_AT_ONCE as u64;
        let first = index - index % at_once;
        if self.page_first != Some(first) {
            let count = at_once.min(ledger.blocks() - first) as usize;
            for (thread, entries) in (0..).zip(&mut self.page) {
                ledger.entries(thread, first, &mut entries[..count])?;
            }
            self.page_first = Some(first);
        }
        Ok(self.page.iter().map(|entries| entries[(index - first) as usize]).collect())
    }

    fn report(self, job: &StorageJob) -> StorageReport {
        let mut notes: Vec<String> = Vec::new();
        let is_unproven = self.ledger.is_none() && (self.never_written > 0 || self.found.blocks == 0);
        if self.ledger.is_none() {
            notes.push(format!(
                "{}: without a ledger (--ledger, when the blocks are written) it is not known what was acknowledged: a \
                 write that was lost looks like one never made, or like an earlier one",
                job.name
            ));
        }
        if is_unproven {
            notes.push(unproven(job, self.never_written));
        }
        notes.extend(self.found.first_failure.map(|failure| format!("{}: {failure}", job.name)));
        let report = StorageJobReport {
            job: Some(job.clone()),
            verified_blocks: self.found.blocks,
            verify_failures: self.found.failures,
            unacknowledged_blocks: self.unacknowledged,
            never_written_blocks: self.never_written,
            failed: self.found.failures > 0 || self.found.was_interrupted || is_unproven,
            ..StorageJobReport::default()
        };
        StorageReport {
            schema_version: weir_record::SCHEMA_VERSION,
            jobs: vec![report],
            rows: Vec::new(),
            notes,
        }
    }
}

/// Why a check without a ledger fails although no block is wrong.
fn unproven(job: &StorageJob, never_written: u64) -> String {
    if never_written == 0 {
        return format!("{}: there is no block to check; {} has no room for one", job.name, job.file);
    }
    format!(
        "{}: {never_written} blocks carry no stamp of a run, or lie behind the end of {}: they were never written, or are \
         lost. Say with --size and --offset which part was written; with --ledger the next run knows",
        job.name, job.file
    )
}

/// Checks with a ledger: one entry and one seed for each thread.
fn by_ledger(block: Option<&[u8]>, offset_bytes: u64, seeds: &[u64], entries: &[Entry]) -> Finding {
    let written = || seeds.iter().zip(entries).filter(|(_, entry)| entry.begun > 0);
    if written().next().is_none() {
        return Finding::NeverWritten;
    }
    let is_unsure = written().any(|(_, entry)| entry.acknowledged == UNSURE);
    if is_unsure || written().all(|(_, entry)| entry.acknowledged == 0) {
        return Finding::Unacknowledged;
    }
    let stamp = match block.map(verify::read) {
        None => return Finding::Wrong(Wrong::Missing),
        // A device writes the first sector atomically, so that a torn block still has its header.
        Some(Err(VerifyError::Checksum { .. }))
            if written().any(|(_, entry)| entry.begun > entry.acknowledged) =>
        {
            return Finding::Unacknowledged;
        }
        Some(Err(error)) => return Finding::Wrong(error.into()),
        Some(Ok(stamp)) => stamp,
    };
    if stamp.offset_bytes != offset_bytes {
        return Finding::Wrong(Wrong::Elsewhere(stamp.offset_bytes));
    }
    let Some((_, entry)) = written().find(|(seed, _)| **seed == stamp.seed) else {
        return Finding::Wrong(Wrong::Stranger(stamp.seed));
    };
    // A count of one is generation 0.
    if stamp.generation.saturating_add(1) < u64::from(entry.acknowledged) {
        let acknowledged = u64::from(entry.acknowledged) - 1;
        return Finding::Wrong(Wrong::Older { found: stamp.generation, acknowledged });
    }
    Finding::Right
}

/// Checks with the block alone.
fn by_stamp(block: Option<&[u8]>, offset_bytes: u64, seeds: &[u64]) -> Finding {
    match block.map(verify::read) {
        None | Some(Err(VerifyError::NoHeader)) => Finding::NeverWritten,
        Some(Err(error)) => Finding::Wrong(error.into()),
        Some(Ok(stamp)) if stamp.offset_bytes != offset_bytes => {
            Finding::Wrong(Wrong::Elsewhere(stamp.offset_bytes))
        }
        Some(Ok(stamp)) if !seeds.contains(&stamp.seed) => Finding::Wrong(Wrong::Stranger(stamp.seed)),
        Some(Ok(_)) => Finding::Right,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::Stamp;

    const SEEDS: [u64; 2] = [70, 71];
    const AT: u64 = 8192;

    fn block(seed: u64, offset_bytes: u64, generation: u64) -> Vec<u8> {
        let mut block = vec![3; 1024];
        verify::stamp(&mut block, &Stamp { seed, offset_bytes, generation });
        block
    }

    fn entry(begun: u32, acknowledged: u32) -> Entry {
        Entry { begun, acknowledged }
    }

    fn judged(block: &[u8], entries: [Entry; 2]) -> Finding {
        by_ledger(Some(block), AT, &SEEDS, &entries)
    }

    #[test]
    fn what_was_acknowledged_or_is_newer_is_right_and_what_is_older_is_lost() {
        let entries = [entry(5, 3), entry(0, 0)];
        for (generation, expected) in [
            (0, Finding::Wrong(Wrong::Older { found: 0, acknowledged: 2 })),
            (1, Finding::Wrong(Wrong::Older { found: 1, acknowledged: 2 })),
            (2, Finding::Right),
            (4, Finding::Right),
        ] {
            assert_eq!(judged(&block(70, AT, generation), entries), expected, "{generation}");
        }
    }

    #[test]
    fn a_block_of_another_run_or_place_or_none_at_all_is_wrong() {
        let entries = [entry(1, 1), entry(0, 0)];
        assert_eq!(judged(&block(9, AT, 0), entries), Finding::Wrong(Wrong::Stranger(9)));
        // A thread that never wrote it counts as unknown.
        assert_eq!(judged(&block(71, AT, 0), entries), Finding::Wrong(Wrong::Stranger(71)));
        assert_eq!(judged(&block(70, 0, 0), entries), Finding::Wrong(Wrong::Elsewhere(0)));
        assert_eq!(judged(&[0; 1024], entries), Finding::Wrong(VerifyError::NoHeader.into()));
        assert_eq!(by_ledger(None, AT, &SEEDS, &entries), Finding::Wrong(Wrong::Missing));
    }

    #[test]
    fn a_torn_block_is_wrong_unless_a_write_of_it_was_under_way() {
        let mut torn = block(70, AT, 1);
        torn[600] ^= 1;
        let found = judged(&torn, [entry(2, 2), entry(0, 0)]);
        assert!(matches!(found, Finding::Wrong(Wrong::Damaged(VerifyError::Checksum { .. }))), "{found:?}");
        assert_eq!(judged(&torn, [entry(2, 1), entry(0, 0)]), Finding::Unacknowledged);
        assert_eq!(judged(&torn, [entry(2, 2), entry(1, 0)]), Finding::Unacknowledged);
        // Whatever was in flight, zeros were never written.
        assert_eq!(
            judged(&[0; 1024], [entry(2, 1), entry(0, 0)]),
            Finding::Wrong(VerifyError::NoHeader.into())
        );
    }

    #[test]
    fn a_block_that_was_never_acknowledged_or_not_even_begun_may_hold_anything() {
        for bytes in [vec![0; 1024], block(70, AT, 0), block(9, 0, 7)] {
            assert_eq!(judged(&bytes, [entry(1, 0), entry(2, 0)]), Finding::Unacknowledged);
            assert_eq!(judged(&bytes, [entry(3, UNSURE), entry(2, 2)]), Finding::Unacknowledged);
            assert_eq!(judged(&bytes, [entry(0, 0), entry(0, 0)]), Finding::NeverWritten);
        }
    }

    #[test]
    fn any_thread_may_have_written_it_last() {
        let entries = [entry(4, 4), entry(2, 2)];
        assert_eq!(judged(&block(71, AT, 1), entries), Finding::Right);
        assert_eq!(
            judged(&block(71, AT, 0), entries),
            Finding::Wrong(Wrong::Older { found: 0, acknowledged: 1 })
        );
    }

    #[test]
    fn without_a_ledger_a_stamp_must_be_whole_and_at_its_place() {
        let judged = |bytes: &[u8]| by_stamp(Some(bytes), AT, &SEEDS);
        assert_eq!(judged(&block(71, AT, 9)), Finding::Right);
        assert_eq!(judged(&[0; 1024]), Finding::NeverWritten);
        assert_eq!(judged(&block(70, 0, 0)), Finding::Wrong(Wrong::Elsewhere(0)));
        assert_eq!(judged(&block(9, AT, 0)), Finding::Wrong(Wrong::Stranger(9)));
        let mut torn = block(70, AT, 1);
        torn[1023] ^= 0x80;
        assert!(matches!(judged(&torn), Finding::Wrong(Wrong::Damaged(VerifyError::Checksum { .. }))));
    }
}
