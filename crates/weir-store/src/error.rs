//! What can go wrong with a store, each with its way out.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use thiserror::Error;

/// Why the store could not do what was asked. Blocks stored before the error stay stored.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The folder holds no store.
    #[error("{path} does not exist: this folder holds no study; name a folder that `weir study` wrote")]
    NotFound {
        /// The file that was looked for.
        path: PathBuf,
    },
    /// The folder already holds a store.
    #[error(
        "{path} already exists: continue it with `weir study --resume`, or choose another folder with `--out`"
    )]
    Exists {
        /// The file that is there.
        path: PathBuf,
    },
    /// The folder or the file in it cannot be made.
    #[error("cannot create {path}: {reason}; choose a writable folder with `--out`")]
    CannotCreate {
        /// What was to be created.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The file is something else.
    #[error("{path} is not a study store ({reason}); name a folder that `weir study` wrote")]
    NotAStore {
        /// The file.
        path: PathBuf,
        /// What gave it away.
        reason: String,
    },
    /// A later version of Weir wrote the file.
    #[error(
        "{path} was written by a later version of Weir (store version {found}, this program knows {known}); open it with that version"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Version found.
        found: u32,
        /// Version this program writes.
        known: u32,
    },
    /// No space left, or the store reached its stated maximum.
    #[error(
        "no space left for {path}: free some space, then continue with `weir study --resume`; finished blocks are kept"
    )]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The file or its folder cannot be written.
    #[error("{path} cannot be written: make the folder writable, then continue with `weir study --resume`")]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// Another process is writing.
    #[error("{path} is in use by another process; wait for it to end")]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The file was damaged after it was written.
    #[error("{path} is damaged ({reason}); restore it from a copy, or run the study again")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// A record that could not be read back; refused before anything was written.
    #[error("{what} cannot be stored: {reason}")]
    Unstorable {
        /// Which record.
        what: String,
        /// Why.
        reason: String,
    },
    /// Anything else SQLite says.
    #[error("{path}: {source}")]
    Other {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
}

impl StoreError {
    /// Sorts an SQLite error by what a person can do about it.
    pub(crate) fn from_sqlite(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_path_buf();
        let reason = source.to_string();
        match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::ReadOnly { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
            Some(ErrorCode::NotADatabase) => Self::NotAStore { path, reason },
            Some(ErrorCode::DatabaseCorrupt) => Self::Damaged { path, reason },
            Some(ErrorCode::CannotOpen) => Self::CannotCreate { path, reason },
            _ => Self::Other { path, source },
        }
    }
}
