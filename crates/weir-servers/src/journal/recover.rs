//! What a journal holds when nobody writes it: every record is shown once, a torn tail is cleared, and damage is told.

use std::{
    fmt,
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Lsn, Position,
    directory::{self, Lock},
    record::{Damage, RecordView},
    segment::{self, HEADER_BYTES, Header},
    walk::{Chain, Remainder, WalkError, Window, scan_remainder, walk},
};

/// Zeros written at once.
const ZEROS_BYTES: usize = 1 << 20;

/// What was found. It keeps everybody else out for as long as it lives; [`Journal::open`](super::Journal::open) takes
/// that over, once.
#[derive(Debug)]
pub struct Recovered {
    /// Records that were shown.
    pub records: u64,
    /// Number of the last one; zero if there is none.
    pub last_lsn: Lsn,
    /// What was cleared.
    pub torn: Option<Torn>,
    pub(super) place: Option<JournalId>,
    /// Batch of the next record.
    pub(super) next_batch: u8,
}

/// Which journal it was.
#[derive(Debug)]
pub(super) struct JournalId {
    pub(super) directory: PathBuf,
    pub(super) worker: u16,
    /// Where the next record goes; `None` if there is no segment.
    pub(super) tail: Option<Tail>,
    pub(super) lock: Arc<Lock>,
}

/// The segment that is written next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tail {
    pub(super) end: Position,
    pub(super) segment_bytes: u64,
}

impl Recovered {
    /// For a journal at [`Level::None`](super::Level::None), of which there is nothing to recover.
    pub fn nothing() -> Self {
        Self { records: 0, last_lsn: 0, torn: None, place: None, next_batch: 0 }
    }
}

/// The rest of a write that was never finished, so that nobody was told that its records are durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torn {
    /// The file.
    pub file: PathBuf,
    /// Where the first record that cannot be read begins: the next one is written there.
    pub offset: u64,
    /// Bytes from there that were not zero and are now.
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

/// Why a journal cannot be used. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// A system call failed.
    #[error("{path}: cannot {doing}: {source}")]
    System {
        /// The file or folder.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Somebody else writes it.
    #[error("{directory}: the journal of worker {worker} is in use already")]
    InUse {
        /// The folder.
        directory: PathBuf,
        /// Whose journal.
        worker: u16,
    },
    /// Something that was acknowledged is gone, or cannot be told from it.
    #[error(
        "{file} is damaged at byte {offset}: {damage}, and later records exist; restore the file from a copy, for \
         nothing was changed"
    )]
    Damaged {
        /// The file.
        file: PathBuf,
        /// Where.
        offset: u64,
        /// How.
        damage: Damage,
    },
    /// The beginning of a file is not that of a segment.
    #[error(
        "{file} is damaged at byte 0: its header is not that of this segment; restore the file from a copy"
    )]
    Header {
        /// The file.
        file: PathBuf,
    },
    /// A file has lost its end. What was there is unknown, so this is never a torn tail.
    #[error(
        "{file} ends at byte {bytes} of {bytes_expected}: what was behind is gone; restore the file from a copy"
    )]
    Short {
        /// The file.
        file: PathBuf,
        /// Its length.
        bytes: u64,
        /// The length its header states.
        bytes_expected: u64,
    },
    /// A file is missing between others.
    #[error("{file} is missing, and later segments exist; restore the file from a copy")]
    Missing {
        /// The file.
        file: PathBuf,
    },
    /// The caller cannot use a record.
    #[error("{file}: the record at byte {offset} cannot be used: {reason}")]
    Refused {
        /// The file.
        file: PathBuf,
        /// Where the record begins.
        offset: u64,
        /// What the caller said.
        reason: String,
    },
}

/// Shows every record of a worker's journal to `visit`, in order, and makes the journal ready to be continued.
///
/// It blocks the thread and is meant for the start of a process. A torn tail is cleared: the rest of its segment is
/// zero, on the disk, before this returns. Damage before the tail is an error, after which the files are as they were.
/// Records are visited before it is known whether damage follows; an error makes what was visited void.
///
/// # Errors
/// See [`RecoverError`]; `visit` ends it with a reason of its own.
pub fn recover(
    directory: &Path,
    worker: u16,
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
    for (number, expected) in numbers.zip(1..) {
        if number != expected {
            return Err(RecoverError::Missing { file: segment::path(directory, worker, expected) });
        }
        recovery.take(number, visit)?;
    }
    recovery.finish(lock)
}

fn failed(path: &Path, doing: &'static str) -> impl Fn(io::Error) -> RecoverError {
    move |source| RecoverError::System { path: path.to_owned(), doing, source }
}

/// How far the recovery of one journal has come.
struct Recovery<'a> {
    directory: &'a Path,
    worker: u16,
    chain: Chain,
    memory: Vec<u8>,
    /// The last segment that has something behind its header.
    tail: Option<Tail>,
    /// Its end is torn, unless something follows.
    torn: Option<(Torn, Damage)>,
    /// Segments behind it that were made and never written.
    blanks: Vec<PathBuf>,
}

/// What one segment holds.
struct Contents {
    offset: u64,
    damage: Option<Damage>,
    remainder: Remainder,
}

impl Recovery<'_> {
    /// Takes the next segment.
    fn take(
        &mut self,
        number: u64,
        visit: &mut dyn FnMut(RecordView<'_>, Position) -> Result<(), String>,
    ) -> Result<(), RecoverError> {
        let path = segment::path(self.directory, self.worker, number);
        let file = File::open(&path).map_err(failed(&path, "open it"))?;
        let length = file.metadata().map_err(failed(&path, "examine it"))?.len();
        let Some(header) = self.header(&file, length, number).map_err(failed(&path, "read it"))? else {
            return Err(RecoverError::Header { file: path });
        };
        if length < header.bytes {
            return Err(RecoverError::Short { file: path, bytes: length, bytes_expected: header.bytes });
        }
        let contents = self.read(&path, &file, header, visit)?;
        if contents.offset == HEADER_BYTES as u64 && contents.remainder.content_end.is_none() {
            self.blanks.push(path);
            return Ok(());
        }
        if let Some((torn, damage)) = self.torn.take() {
            return Err(RecoverError::Damaged { file: torn.file, offset: torn.offset, damage });
        }
        self.blanks.clear();
        // What a killed process left to the operating system counts only if it survives what comes next.
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

    /// `None` if the file does not begin with the header of this segment.
    fn header(&self, file: &File, length: u64, number: u64) -> io::Result<Option<Header>> {
        if length < HEADER_BYTES as u64 {
            return Ok(None);
        }
        let mut bytes = [0; HEADER_BYTES];
        file.read_exact_at(&mut bytes, 0)?;
        let found = Header::decode(&bytes);
        Ok(found.filter(|header| (header.worker, header.number) == (self.worker, number)))
    }

    fn read(
        &mut self,
        path: &Path,
        file: &File,
        header: Header,
        visit: &mut dyn FnMut(RecordView<'_>, Position) -> Result<(), String>,
    ) -> Result<Contents, RecoverError> {
        let mut window = Window::new(file, header.bytes, &mut self.memory);
        let segment = header.number;
        let mut visit = |record: RecordView<'_>, offset| visit(record, Position { segment, offset });
        let stop =
            walk(&mut window, HEADER_BYTES as u64, &mut self.chain, &mut visit).map_err(
                |error| match error {
                    WalkError::Read(error) => failed(path, "read it")(error),
                    WalkError::Refused { offset, reason } => {
                        RecoverError::Refused { file: path.to_owned(), offset, reason }
                    }
                },
            )?;
        let remainder =
            scan_remainder(&mut window, stop.offset, &self.chain).map_err(failed(path, "read it"))?;
        Ok(Contents { offset: stop.offset, damage: stop.damage, remainder })
    }

    /// Clears what is torn and removes what was never used; nothing else is ever changed.
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

/// Makes everything from `offset` to the end of a segment zero, on the disk.
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
