//! Reads a recorded observation (`weir observe --record`).

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use thiserror::Error;
use weir_record::{SCHEMA_VERSION, observation::Observation};

/// Largest record that is read.
pub const RECORD_BYTES_MAX: u64 = 64 << 20;

/// Why a file cannot be read as an observation.
#[derive(Debug, Error)]
pub enum RecordError {
    /// It is missing or unreadable.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It contains something else.
    #[error("{} is no record of weir observe: {reason}", path.display())]
    NoRecord {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

/// Reads a record.
pub fn read(path: &Path) -> Result<Observation, RecordError> {
    let unreadable = |source| RecordError::Unreadable { path: path.to_owned(), source };
    let no_record = |reason: String| RecordError::NoRecord { path: path.to_owned(), reason };
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    match file.take(RECORD_BYTES_MAX + 1).read_to_string(&mut text) {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            return Err(no_record("it is no text".to_owned()));
        }
        read => read.map_err(unreadable)?,
    };
    if text.len() as u64 > RECORD_BYTES_MAX {
        return Err(no_record("it is too long".to_owned()));
    }
    let observation: Observation =
        serde_json::from_str(&text).map_err(|error| no_record(error.to_string()))?;
    if observation.schema_version > SCHEMA_VERSION {
        return Err(no_record("a newer Weir wrote it".to_owned()));
    }
    Ok(observation)
}
