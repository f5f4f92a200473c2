//! Reads the journal of another worker: the records that an account left there when that was its home.

use std::{io, path::PathBuf};

use super::{JournalChunk, JournalConfig, Level, Position, disk::Disk, segment};

/// A position behind every record.
const END: Position = Position { segment: u64::MAX, offset: u64::MAX };

/// Reads recovered records, even if the worker now writes behind them.
#[derive(Debug)]
pub struct JournalReader(Disk);

impl JournalReader {
    /// Reads the journal of this worker.
    pub fn new(directory: PathBuf, worker: u16) -> Self {
        Self(Disk::new(&JournalConfig::new(directory, worker, Level::Os), None, None))
    }

    /// As [`Journal::read`](super::Journal::read), from a record that recovery has seen. Records that recovery has
    /// not seen may not be durable, and reading at the very end is an error.
    ///
    /// # Errors
    /// Those of reading files; `InvalidData` for damage.
    pub async fn read(&self, from: Position, bytes_max: usize) -> io::Result<JournalChunk> {
        self.0.read(from, END, bytes_max).await
    }

    /// The same up to `end`, which must be the end of a durable record.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) async fn read_until(
        &self,
        from: Position,
        end: Position,
        bytes_max: usize,
    ) -> io::Result<JournalChunk> {
        self.0.read(from, end, bytes_max).await
    }

    /// The first position in the files that were not archived. Blocks for as long as the folder takes to be listed.
    ///
    /// # Errors
    /// Those of listing the folder.
    pub(crate) fn begin(&self) -> io::Result<Position> {
        let all = segment::list(self.0.directory())?;
        let first = all.into_iter().find(|(worker, _)| *worker == self.0.worker());
        Ok(Position::first_of(first.map_or(1, |(_, number)| number)))
    }
}
