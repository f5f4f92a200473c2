//! Recovery of a journal that is not being written: every record is shown once, a torn tail is cleared, and damage is
//! reported.

use std::{
    fmt,
    fs::{self, OpenOptions},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Checkpoint, Lsn, Position,
    directory::{self, Lock},
    record::{Damage, RecordView},
    segment::{self, HEADER_BYTES},
    segment_file::{Contents, SegmentFile},
    walk::Chain,
};

/// Zeros written at once.
const ZEROS_BYTES: usize = 1 << 20;

/// The result of a recovery. It holds the journal's lock as long as it lives; [`Journal::open`](super::Journal::open)
/// takes the lock over, once.
#[derive(Debug)]
pub struct Recovered {
    /// Number of records so far; behind a checkpoint, it includes those before it, which were not shown.
    pub records: u64,
    /// Number of the last one; zero if there is none.
    pub last_lsn: Lsn,
    /// The part that was cleared.
    pub torn: Option<Torn>,
    pub(super) place: Option<JournalId>,
    /// Batch of the next record.
    pub(super) next_batch: u8,
}

/// The journal that was recovered.
#[derive(Debug)]
pub(super) struct JournalId {
    pub(super) directory: PathBuf,
    pub(super) worker: u16,
    /// The position of the next record; `None` if there is no segment.
    pub(super) tail: Option<Tail>,
    pub(super) lock: Arc<Lock>,
}

/// The segment to be written next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tail {
    pub(super) end: Position,
    pub(super) segment_bytes: u64,
}

impl Recovered {
    /// The result for a journal at [`Level::None`](super::Level::None), which has nothing to recover.
    pub fn nothing() -> Self {
        Self { records: 0, last_lsn: 0, torn: None, place: None, next_batch: 0 }
    }

    /// The end of the last record; before every position if there is none.
    pub(crate) fn end(&self) -> Position {
        let tail = self.place.as_ref().and_then(|place| place.tail);
        tail.map(|tail| tail.end).unwrap_or_default()
    }
}

/// The rest of a write that never finished. Its records were never reported as durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torn {
    /// The file.
    pub file: PathBuf,
    /// The start of the first unreadable record: the next one is written there.
    pub offset: u64,
    /// Bytes from there that were not zero and have been zeroed.
    pub bytes: u64,
    /// Whole records among them.
    pub records: u64,
}

impl fmt::Display for Torn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, offset, bytes, records } = self;
        write!(
            formatter,
            "{}: the last write was not finished; {bytes} bytes from byte {offset} on were cleared, with {records} \
             whole records that were never acknowledged",
            file.display()
        )
    }
}

/// Why a journal cannot be used. No file was changed.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// A system call failed.
    #[error("{path}: cannot {doing}: {source}")]
    System {
        /// The file or folder.
        path: PathBuf,
        /// The step that failed.
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// Another process is writing it.
    #[error("{directory}: the journal of worker {worker} is in use already")]
    InUse {
        /// The folder.
        directory: PathBuf,
        /// The worker.
        worker: u16,
    },
    /// Acknowledged records are lost, or may be.
    #[error(
        "{file} is damaged at byte {offset}: {damage}, and later records exist; restore the file from a copy, for \
         nothing was changed"
    )]
    Damaged {
        /// The file.
        file: PathBuf,
        /// The position.
        offset: u64,
        /// The kind of damage.
        damage: Damage,
    },
    /// The start of a file is not the header of its segment.
    #[error(
        "{file} is damaged at byte 0: its header is not that of this segment; restore the file from a copy"
    )]
    Header {
        /// The file.
        file: PathBuf,
    },
    /// A file was truncated. The lost bytes are unknown, so this is never a torn tail.
    #[error(
        "{file} ends at byte {bytes} of {bytes_expected}: what was behind is gone; restore the file from a copy"
    )]
    Short {
        /// The file.
        file: PathBuf,
        /// Its length.
        bytes: u64,
        /// The length stated in its header.
        bytes_expected: u64,
    },
    /// A file is missing between others.
    #[error("{file} is missing, and later segments exist; restore the file from a copy")]
    Missing {
        /// The file.
        file: PathBuf,
    },
    /// A checkpoint belongs to another journal, or to one that has lost its end since.
    #[error("{file} has another record at byte {offset} than the checkpoint")]
    OtherJournal {
        /// The file.
        file: PathBuf,
        /// The start of the record.
        offset: u64,
    },
    /// The caller rejected a record.
    #[error("{file}: the record at byte {offset} cannot be used: {reason}")]
    Refused {
        /// The file.
        file: PathBuf,
        /// The start of the record.
        offset: u64,
        /// The caller's reason.
        reason: String,
    },
}

/// Shows every record of a worker's journal to `visit`, in order, and prepares the journal to be continued.
///
/// It blocks the thread; call it when a process starts. A torn tail is cleared: the rest of its segment is zero, on
/// the disk, before this returns. Damage before the tail is an error, and the files stay unchanged. Records are
/// visited before it is known whether damage follows; an error invalidates the visited records.
///
/// # Errors
/// See [`RecoverError`]; `visit` can end it with its own reason.
pub fn recover(
    directory: &Path,
    worker: u16,
    visit: &mut dyn FnMut(RecordView<'_>, Position) -> Result<(), String>,
) -> Result<Recovered, RecoverError> {
    recover_from(directory, worker, &Checkpoint::default(), visit)
}

/// As [`recover`], for the records behind a checkpoint. Files that have only records before it are not read: they must
/// be there, with their headers and lengths, unless they were archived.
///
/// # Errors
/// As [`recover`]; [`RecoverError::OtherJournal`] if the journal does not have the checkpoint's last record.
pub fn recover_from(
    directory: &Path,
    worker: u16,
    checkpoint: &Checkpoint,
    visit: &mut dyn FnMut(RecordView<'_>, Position) -> Result<(), String>,
) -> Result<Recovered, RecoverError> {
    let taken = Lock::take(directory, worker).map_err(failed(directory, "lock its journal"))?;
    let in_use = || RecoverError::InUse { directory: directory.to_owned(), worker };
    let lock = taken.ok_or_else(in_use)?;
    let segments = segment::list(directory).map_err(failed(directory, "list it"))?;
    let mut recovery = Recovery {
        directory,
        worker,
        chain: Chain::new(worker),
        memory: Vec::new(),
        tail: None,
        torn: None,
        blanks: Vec::new(),
    };
    let numbers = segments.into_iter().filter(|(owner, _)| *owner == worker).map(|(_, number)| number);
    let numbers: Vec<u64> = numbers.collect();
    let start = recovery.start(checkpoint)?;
    let archived_before = checkpoint.archived_before.get(&worker).copied().unwrap_or(1);
    let first = numbers.first().copied().unwrap_or(1).min(archived_before);
    for (number, expected) in numbers.into_iter().zip(first..) {
        if number != expected {
            return Err(RecoverError::Missing { file: segment::path(directory, worker, expected) });
        }
        if number < start.segment {
            recovery.pass(number)?;
        } else {
            let from = if number == start.segment { start.offset } else { HEADER_BYTES as u64 };
            recovery.take(number, from, visit)?;
        }
    }
    recovery.finish(lock)
}

/// Makes a system's error one of this journal.
pub(super) fn failed(path: &Path, doing: &'static str) -> impl Fn(io::Error) -> RecoverError {
    move |source| RecoverError::System { path: path.to_owned(), doing, source }
}

/// The progress of one journal's recovery.
struct Recovery<'a> {
    directory: &'a Path,
    worker: u16,
    chain: Chain,
    memory: Vec<u8>,
    /// The last segment with bytes behind its header.
    tail: Option<Tail>,
    /// Its torn end, valid unless records follow.
    torn: Option<(Torn, Damage)>,
    /// Segments behind it that were created and never written.
    blanks: Vec<PathBuf>,
}

impl Recovery<'_> {
    /// The position of the first record to read.
    fn start(&mut self, checkpoint: &Checkpoint) -> Result<Position, RecoverError> {
        let Some(anchor) = checkpoint.anchors.get(&self.worker) else {
            return Ok(Position { segment: 1, offset: HEADER_BYTES as u64 });
        };
        let Some(found) = anchor.continuation(self.directory, self.worker)? else {
            let file = segment::path(self.directory, self.worker, anchor.at.segment);
            return Err(RecoverError::OtherJournal { file, offset: anchor.at.offset });
        };
        self.chain = found.chain;
        Ok(found.next)
    }

    /// Checks a segment that need not be read.
    fn pass(&self, number: u64) -> Result<(), RecoverError> {
        let segment = SegmentFile::open(self.directory, self.worker, number)?;
        segment.check_length()?;
        // As in `take`.
        segment.file.sync_data().map_err(failed(&segment.path, "sync it"))
    }

    /// Processes the next segment.
    fn take(
        &mut self,
        number: u64,
        from: u64,
        visit: &mut dyn FnMut(RecordView<'_>, Position) -> Result<(), String>,
    ) -> Result<(), RecoverError> {
        let segment = SegmentFile::open(self.directory, self.worker, number)?;
        segment.check_length()?;
        let contents = segment.read(from, &mut self.chain, &mut self.memory, visit)?;
        let SegmentFile { path, file, header, .. } = segment;
        if contents.is_blank() {
            self.blanks.push(path);
            return Ok(());
        }
        if let Some((torn, damage)) = self.torn.take() {
            return Err(RecoverError::Damaged { file: torn.file, offset: torn.offset, damage });
        }
        self.blanks.clear();
        // Bytes that a killed process left to the operating system count only once they are on disk.
        file.sync_data().map_err(failed(&path, "sync it"))?;
        let Contents { offset, damage, remainder } = contents;
        self.tail = Some(Tail { end: Position { segment: number, offset }, segment_bytes: header.bytes });
        let Some(content_end) = remainder.content_end else { return Ok(()) };
        let damage = damage.unwrap_or(Damage::Hole);
        if !remainder.is_torn() {
            return Err(RecoverError::Damaged { file: path, offset, damage });
        }
        let torn = Torn { file: path, offset, bytes: content_end - offset, records: remainder.records };
        self.torn = Some((torn, damage));
        Ok(())
    }

    /// Clears a torn tail and removes unused segments; nothing else is ever changed.
    fn finish(self, lock: Lock) -> Result<Recovered, RecoverError> {
        let torn = self.torn.map(|(torn, _)| torn);
        if let (Some(torn), Some(tail)) = (&torn, self.tail) {
            clear(&torn.file, torn.offset, tail.segment_bytes)
                .map_err(failed(&torn.file, "clear its end"))?;
        }
        for blank in &self.blanks {
            fs::remove_file(blank).map_err(failed(blank, "remove it"))?;
        }
        segment::remove_unfinished(self.directory, self.worker)
            .map_err(failed(self.directory, "remove what is unfinished"))?;
        // After a loss of power the records of a file that is written again can be others than those that its index
        // was made from, and an index names no more than worker and file.
        let written_from = self.tail.map_or(0, |tail| tail.end.segment);
        segment::remove_indexes(self.directory, self.worker, written_from)
            .map_err(failed(self.directory, "remove an index"))?;
        directory::sync(self.directory).map_err(failed(self.directory, "sync it"))?;
        let place = JournalId {
            directory: self.directory.to_owned(),
            worker: self.worker,
            tail: self.tail,
            lock: Arc::new(lock),
        };
        Ok(Recovered {
            records: self.chain.records(),
            last_lsn: self.chain.last_lsn(),
            torn,
            place: Some(place),
            next_batch: self.chain.next_batch(),
        })
    }
}

/// Zeroes everything from `offset` to the end of a segment, on disk.
fn clear(path: &Path, offset: u64, segment_bytes: u64) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    let zeros = vec![0; ZEROS_BYTES];
    let mut at = offset;
    while at < segment_bytes {
        let count = (segment_bytes - at).min(ZEROS_BYTES as u64);
        file.write_all_at(&zeros[..count as usize], at)?;
        at += count;
    }
    file.sync_all()
}
