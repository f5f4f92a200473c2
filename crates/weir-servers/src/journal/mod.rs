//! The journal of one worker: an append-only log with checksums and natural group commit.
//!
//! Each worker has its own journal, so there is no lock and no communication with other threads. Records collect in
//! memory. A task on the worker's runtime writes the records that have collected since its last turn as one batch,
//! and syncs it at level [`Level::Disk`]. The next batch collects meanwhile: there is no timer, and no coordinating
//! thread. A write or a sync that fails poisons the journal: nothing is retried, and nothing becomes durable any
//! more.
//!
//! It knows nothing of orders and sessions: a record is a type, a session number, a time and bytes. The layout of the
//! files is in `docs/formats/journal.md`.
//!
//! ```no_run
//! use std::{path::PathBuf, rc::Rc};
//! use weir_servers::journal::{self, Journal, JournalConfig, Level};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let directory = PathBuf::from("journal");
//! let recovered = journal::recover(&directory, 0, &mut |record, _position| {
//!     println!("{} {:?}", record.lsn, record.payload);
//!     Ok(())
//! })?;
//! let config = JournalConfig::new(directory, 0, Level::Disk);
//! let journal: Rc<Journal> = Journal::open(config, &recovered).await?;
//! journal.start();
//! let (lsn, _position) = journal.append(b'S', 7, 0, &[b"a message ", b"in parts"])?;
//! journal.committed(lsn).await?;
//! journal.close().await;
//! # Ok(())
//! # }
//! ```

mod archive;
mod batch;
mod checkpoint;
mod chunk;
mod copy;
mod counters;
mod directory;
mod disk;
pub mod faults;
pub(crate) mod fields;
mod inspect;
mod merged;
mod one_segment;
mod reader;
pub mod record;
mod recover;
mod segment;
mod segment_file;
mod walk;
pub(crate) mod watch;
mod writer;

use std::{fmt, io, path::PathBuf, str::FromStr, sync::Arc};

pub use archive::{ArchiveError, archive};
pub use checkpoint::{Anchor, Checkpoint, CheckpointError, CheckpointFile, Place};
pub use chunk::{ChunkRecords, JournalChunk};
pub use copy::copy_until;
pub use counters::JournalCounters;
pub use directory::{FolderState, HeldUnwritten, files_in, folder_state, warning, workers_in};
pub use inspect::{Behind, JournalEnd, JournalInspection};
pub use merged::{MERGED_MAX, Outcomes, inspect_all, inspect_all_from, recover_all, recover_all_from};
pub use one_segment::{finished_segments, read_segment};
pub use reader::JournalReader;
pub use record::RecordView;
pub use recover::{RecoverError, Recovered, Torn, recover, recover_from};
pub use writer::Journal;

pub(crate) use segment::FILE_MODE;

/// Number of a record in its journal: dense, from 1. Zero is before the first one.
pub type Lsn = u64;

/// The position of a record, present or future.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Number of the segment, starting at 1.
    pub segment: u64,
    /// Bytes from the start of its file.
    pub offset: u64,
}

impl Position {
    /// Where the first record of a segment begins.
    pub fn first_of(segment: u64) -> Self {
        Self { segment, offset: segment::HEADER_BYTES as u64 }
    }

    /// Name of the file that contains it.
    pub fn file_name(self, worker: u16) -> String {
        segment::name(worker, self.segment)
    }
}

/// What a record must survive to count as durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// Nothing: no record is written, and each counts as durable at once.
    None,
    /// The end of the process: the operating system holds it.
    Os,
    /// A loss of power: the disk holds it.
    Disk,
}

impl Level {
    /// Every level, the weakest first.
    pub const ALL: [Level; 3] = [Level::None, Level::Os, Level::Disk];

    /// Name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Level::None => "none",
            Level::Os => "os",
            Level::Disk => "disk",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The error for an unknown level.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no level of a journal; expected none, os or disk")]
pub struct UnknownLevel(String);

impl FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(name: &str) -> Result<Self, UnknownLevel> {
        Self::ALL.into_iter().find(|level| level.name() == name).ok_or_else(|| UnknownLevel(name.to_owned()))
    }
}

/// Size of a segment's file.
pub const SEGMENT_BYTES_DEFAULT: u64 = 64 << 20;

/// The intended maximum of a batch; see [`JournalConfig::batch_bytes_max`].
pub const BATCH_BYTES_DEFAULT: usize = 64 << 10;

/// The configuration of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalConfig {
    /// Folder of the files; the journals of all workers may lie in one.
    pub directory: PathBuf,
    /// The worker that it belongs to.
    pub worker: u16,
    /// When a record is durable.
    pub level: Level,
    /// Size of each new segment's file, a multiple of 512.
    pub segment_bytes: u64,
    /// [`Journal::has_room`] is false while more than twice this many bytes wait, and [`Journal::append`] refuses
    /// with [`JournalError::Full`] above [`WAITING_FACTOR_MAX`] times as many: messages that have been accepted find
    /// room, and no further ones are accepted. The range between is for everything that one message may cause.
    pub batch_bytes_max: usize,
}

/// See [`JournalConfig::batch_bytes_max`].
pub const WAITING_FACTOR_MAX: usize = 1024;

impl JournalConfig {
    /// A configuration with segments and batches of the default size.
    pub fn new(directory: PathBuf, worker: u16, level: Level) -> Self {
        Self {
            directory,
            worker,
            level,
            segment_bytes: SEGMENT_BYTES_DEFAULT,
            batch_bytes_max: BATCH_BYTES_DEFAULT,
        }
    }
}

/// Why a record was not taken, or will not be durable.
#[derive(Clone, Debug, thiserror::Error)]
pub enum JournalError {
    /// Too many bytes wait for the disk; [`Journal::room`] waits until there is room again.
    #[error("too many records wait for the disk")]
    Full,
    /// It does not fit into a segment.
    #[error("a record of {bytes} bytes is longer than the {bytes_max} that a journal takes")]
    TooLong {
        /// Bytes of the record, with its header.
        bytes: usize,
        /// The longest that is accepted.
        bytes_max: usize,
    },
    /// [`Journal::close`] was called.
    #[error("the journal is closed")]
    Closed,
    /// A write or a sync has failed, now or earlier.
    #[error(transparent)]
    Failed(Arc<Failure>),
}

/// The error that poisoned a journal.
#[derive(Debug, thiserror::Error)]
#[error("{file}: cannot {doing}: {source}; nothing is acknowledged any more")]
pub struct Failure {
    /// The file, or the folder.
    pub file: PathBuf,
    /// The step that failed.
    pub doing: &'static str,
    /// The system's error.
    pub source: io::Error,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_round_trip_and_others_are_refused_by_name() {
        for level in Level::ALL {
            assert_eq!(level.to_string().parse(), Ok(level));
        }
        let error = "fsync".parse::<Level>().expect_err("there is none of that name");
        assert_eq!(error.to_string(), "\"fsync\" is no level of a journal; expected none, os or disk");
    }

    #[test]
    fn a_failure_is_told_in_one_sentence_with_its_file() {
        let failure = Failure {
            file: "j/worker-0000-0000000001.journal".into(),
            doing: "sync",
            source: io::Error::from_raw_os_error(5),
        };
        assert_eq!(
            JournalError::Failed(Arc::new(failure)).to_string(),
            "j/worker-0000-0000000001.journal: cannot sync: Input/output error (os error 5); \
             nothing is acknowledged any more"
        );
    }
}
