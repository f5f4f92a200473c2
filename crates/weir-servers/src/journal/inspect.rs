//! Reads the journal of one worker without a lock and without changing a byte, also while its worker writes it.
//!
//! It reads and judges as recovery does, except that a writer may be at work: what looks like damage counts only if
//! a fresh look finds it at the same byte, and a segment counts as finished only if a later one had records before it
//! was read.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use super::{
    Checkpoint, CheckpointFile, Lsn, Position, RecordView, RecoverError, Torn,
    record::{self, Damage},
    recover::failed,
    segment::{self, HEADER_BYTES},
    segment_file::{Contents, SegmentFile},
    walk::{Chain, Window, scan_behind},
};

/// Looks at a damaged place before it counts: a write of the same batch may be under way at the first one.
const LOOKS_MAX: u32 = 3;

/// What records are shown to.
type Visit<'v> = dyn FnMut(RecordView<'_>, Position) -> Result<(), String> + 'v;

/// A reader of one journal. It remembers where it ended and continues from there.
#[derive(Debug)]
pub struct JournalInspection {
    directory: PathBuf,
    worker: u16,
    chain: Chain,
    /// The position of the next record.
    next: Position,
    memory: Vec<u8>,
}

/// The end of a journal without damage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalEnd {
    /// Number of records so far; behind a checkpoint, it includes those before it, which were not shown.
    pub records: u64,
    /// Number of the last one; zero if there is none.
    pub last_lsn: Lsn,
    /// Bytes behind it that are no finished write: a worker is writing them, or the next start clears them.
    pub unfinished: Option<Torn>,
}

/// What of one file is behind a position from which no record can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Behind {
    /// The file.
    pub file: PathBuf,
    /// The first byte that cannot be used.
    pub offset: u64,
    /// Bytes from there to the last one that is not zero.
    pub bytes: u64,
    /// Whole records among them.
    pub records: u64,
}

impl JournalInspection {
    /// A reader at the first record of a worker's journal, or of the first file that was not archived.
    pub fn new(directory: &Path, worker: u16) -> Self {
        let (chain, first) = match first_archived(directory, worker) {
            Some(first) => (Chain::anywhere(worker), first),
            None => (Chain::new(worker), 1),
        };
        let next = Position::first_of(first);
        Self { directory: directory.to_owned(), worker, chain, next, memory: Vec::new() }
    }

    /// A reader at the first record that a checkpoint does not include.
    ///
    /// # Errors
    /// Those of reading files; [`RecoverError::OtherJournal`] if the journal does not have its last record.
    pub fn behind_checkpoint(
        directory: &Path,
        worker: u16,
        checkpoint: &Checkpoint,
    ) -> Result<Self, RecoverError> {
        // Only a reader that has no anchor needs to know where the journal begins, which may cost reading a base.
        let Some(anchor) = checkpoint.anchors.get(&worker) else { return Ok(Self::new(directory, worker)) };
        let Some(found) = anchor.continuation(directory, worker)? else {
            let file = segment::path(directory, worker, anchor.at.segment);
            return Err(RecoverError::OtherJournal { file, offset: anchor.at.offset });
        };
        let directory = directory.to_owned();
        Ok(Self { directory, worker, chain: found.chain, next: found.next, memory: Vec::new() })
    }

    /// The worker whose journal it reads.
    pub fn worker(&self) -> u16 {
        self.worker
    }

    /// The position behind the last record that was shown. After an error, everything before it can be used.
    pub fn position(&self) -> Position {
        self.next
    }

    /// Whether there is something behind the last record. It costs two short reads, and a list of the folder.
    ///
    /// # Errors
    /// Those of listing and reading files.
    pub fn has_more(&self) -> Result<bool, RecoverError> {
        Ok(self.is_written(self.next)? || self.is_written_after(self.next.segment)?)
    }

    /// Shows each record from the last call's end on to `visit`, in order, up to the end of the journal.
    ///
    /// # Errors
    /// See [`RecoverError`]; `visit` can end it with its own reason. Records before the damage have been shown.
    pub fn read(
        &mut self,
        visit: &mut dyn FnMut(RecordView<'_>, Position) -> Result<(), String>,
    ) -> Result<JournalEnd, RecoverError> {
        let mut looks = 0;
        loop {
            let number = self.next.segment;
            // A segment is never written again once a later one has records.
            let (is_sealed, missing) = match self.is_written_after(number) {
                Ok(is_sealed) => (is_sealed, None),
                Err(missing @ RecoverError::Missing { .. }) => (true, Some(missing)),
                Err(error) => return Err(error),
            };
            match self.numbers_from(number)?.first() {
                Some(first) if *first == number => {}
                Some(_) => {
                    let file = segment::path(&self.directory, self.worker, number);
                    return Err(RecoverError::Missing { file });
                }
                None => return Ok(self.end(None)),
            }
            let file = SegmentFile::open(&self.directory, self.worker, number)?;
            let from = self.next.offset;
            let contents =
                self.show(visit, |from, chain, memory, shown| file.read(from, chain, memory, shown))?;
            file.check_length()?;
            looks = if self.next.offset > from { 0 } else { looks + 1 };
            let is_unfinished = contents.remainder.content_end.is_some();
            let is_torn = contents.remainder.is_torn();
            match missing {
                _ if is_unfinished && !is_torn => {
                    if is_sealed || looks >= LOOKS_MAX {
                        return Err(damaged(&file, &contents));
                    }
                }
                Some(missing) => return Err(missing),
                None if is_sealed && !is_unfinished => {
                    self.next = Position::first_of(number + 1);
                    looks = 0;
                }
                // The next segment was begun meanwhile.
                None if !is_sealed && self.is_written_after(number)? => {}
                None => return self.settle(file, contents, is_sealed, visit),
            }
        }
    }

    /// Shows each record that was added since the last call to `visit`. Unlike [`Self::read`] it does not examine the
    /// rest of the last file, so that it costs little while a journal grows.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn follow(
        &mut self,
        visit: &mut dyn FnMut(RecordView<'_>, Position) -> Result<(), String>,
    ) -> Result<(), RecoverError> {
        loop {
            let is_sealed = self.is_written_after(self.next.segment)?;
            let Some(file) = self.open_if_there(self.next.segment)? else { return Ok(()) };
            let stop =
                self.show(visit, |from, chain, memory, shown| file.walk(from, chain, memory, shown))?;
            match stop.damage {
                None if is_sealed => self.next = Position::first_of(self.next.segment + 1),
                None => return Ok(()),
                // It takes more to judge that.
                Some(_) => return self.read(visit).map(drop),
            }
        }
    }

    fn end(&self, unfinished: Option<Torn>) -> JournalEnd {
        JournalEnd { records: self.chain.records(), last_lsn: self.chain.last_lsn(), unfinished }
    }

    /// Shows the records of a segment from the next one on, with one of the two ways to read it. Every record that was
    /// shown is before `next`, also if an error follows.
    fn show<T>(
        &mut self,
        visit: &mut Visit<'_>,
        read: impl FnOnce(u64, &mut Chain, &mut Vec<u8>, &mut Visit<'_>) -> Result<T, RecoverError>,
    ) -> Result<T, RecoverError> {
        let next = &mut self.next;
        let from = next.offset;
        let mut shown = |record: RecordView<'_>, position: Position| {
            let end = position.offset + record::encoded_bytes(record.payload.len()) as u64;
            visit(record, position).map(|()| next.offset = end)
        };
        read(from, &mut self.chain, &mut self.memory, &mut shown)
    }

    /// The log ends in this segment, if no later one has content. A sealed segment may end only where the next one
    /// begins.
    fn settle(
        &mut self,
        last: SegmentFile,
        contents: Contents,
        is_sealed: bool,
        visit: &mut dyn FnMut(RecordView<'_>, Position) -> Result<(), String>,
    ) -> Result<JournalEnd, RecoverError> {
        let content_end = contents.remainder.content_end;
        for number in self.numbers_after(last.header.number)? {
            let Some(file) = self.open_if_there(number)? else { break };
            file.check_length()?;
            // Its records would be shown by a later call.
            let mut chain = self.chain;
            let found = file.read(HEADER_BYTES as u64, &mut chain, &mut self.memory, &mut |_, _| Ok(()))?;
            if found.is_blank() {
                continue;
            }
            let is_begun = found.offset > HEADER_BYTES as u64;
            if content_end.is_some() && (is_sealed || !is_begun) {
                return Err(damaged(&last, &contents));
            }
            if !is_begun && !self.is_written(self.next)? {
                self.next = Position::first_of(number);
            }
            // Otherwise records were written meanwhile.
            return self.read(visit);
        }
        let Contents { offset, remainder, .. } = contents;
        let torn = content_end.map(|end| {
            let (bytes, records) = (end - offset, remainder.records);
            Torn { file: last.path, offset, bytes, records }
        });
        Ok(self.end(torn))
    }

    /// What is behind the last record that can be used, file by file.
    ///
    /// # Errors
    /// Those of listing and reading files.
    pub fn behind(&mut self) -> Result<Vec<Behind>, RecoverError> {
        let mut all = Vec::new();
        let next = self.next;
        for number in self.numbers_from(next.segment)? {
            let path = segment::path(&self.directory, self.worker, number);
            let file = File::open(&path).map_err(failed(&path, "open it"))?;
            let length = file.metadata().map_err(failed(&path, "examine it"))?.len();
            let offset = if number == next.segment { next.offset } else { HEADER_BYTES as u64 };
            let mut window = Window::new(&file, length, &mut self.memory);
            let remainder =
                scan_behind(&mut window, offset, &self.chain).map_err(failed(&path, "read it"))?;
            let bytes = remainder.content_end.map_or(0, |end| end.saturating_sub(offset));
            all.push(Behind { file: path, offset, bytes, records: remainder.records });
        }
        all.retain(|behind| behind.bytes > 0);
        Ok(all)
    }

    /// Whether there is content at a record's place.
    fn is_written(&self, at: Position) -> Result<bool, RecoverError> {
        let path = segment::path(&self.directory, self.worker, at.segment);
        let mut header = [0; record::HEADER_BYTES];
        let read = File::open(&path).and_then(|file| read_up_to(&file, &mut header, at.offset));
        match read {
            Ok(()) => Ok(header.iter().any(|byte| *byte != 0)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed(&path, "read it")(error)),
        }
    }

    /// Whether a segment behind this one begins with content.
    fn is_written_after(&self, number: u64) -> Result<bool, RecoverError> {
        for later in self.numbers_after(number)? {
            if self.is_written(Position::first_of(later))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn open_if_there(&self, number: u64) -> Result<Option<SegmentFile>, RecoverError> {
        match SegmentFile::open(&self.directory, self.worker, number) {
            // A start removes segments that were never written.
            Err(RecoverError::System { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// The segments behind this one, up to the first that is missing.
    ///
    /// # Errors
    /// [`RecoverError::Missing`] if the next one is missing, and later ones exist.
    fn numbers_after(&self, number: u64) -> Result<Vec<u64>, RecoverError> {
        let found = self.numbers_from(number + 1)?;
        if found.first().is_some_and(|first| *first != number + 1) {
            let file = segment::path(&self.directory, self.worker, number + 1);
            return Err(RecoverError::Missing { file });
        }
        let follows = found.into_iter().zip(number + 1..).take_while(|(found, expected)| found == expected);
        Ok(follows.map(|(found, _)| found).collect())
    }

    fn numbers_from(&self, number: u64) -> Result<Vec<u64>, RecoverError> {
        let segments = segment::list(&self.directory).map_err(failed(&self.directory, "list it"))?;
        let own = segments.into_iter().filter(|(worker, _)| *worker == self.worker);
        Ok(own.map(|(_, found)| found).filter(|found| *found >= number).collect())
    }
}

/// The first file of a journal whose first ones were archived. `None`: it begins with number 1.
fn first_archived(directory: &Path, worker: u16) -> Option<u64> {
    if segment::path(directory, worker, 1).exists() {
        return None;
    }
    // A journal that misses its first file otherwise is damaged, and reading it says so.
    let base = Checkpoint::read(directory, CheckpointFile::Base).ok()??;
    let before = *base.archived_before.get(&worker)?;
    let all = segment::list(directory).ok()?;
    let first = all.into_iter().find(|(owner, _)| *owner == worker).map(|(_, number)| number);
    Some(first.unwrap_or(before).min(before))
}

/// Bytes behind the end of the file stay zero.
fn read_up_to(file: &File, into: &mut [u8], offset: u64) -> io::Result<()> {
    let mut filled = 0;
    while filled < into.len() {
        match file.read_at(&mut into[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn damaged(file: &SegmentFile, contents: &Contents) -> RecoverError {
    let damage = contents.damage.unwrap_or(Damage::Hole);
    RecoverError::Damaged { file: file.path.clone(), offset: contents.offset, damage }
}
