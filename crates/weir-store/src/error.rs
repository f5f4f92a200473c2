//! Errors of a store, each with its remedy.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use thiserror::Error;

/// Free space in bytes below which a failed write is attributed to a full disk.
const NEARLY_FULL_BYTES: u64 = 1 << 20;

/// Why the store refused or failed. Blocks stored before the error stay stored.
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
        /// The file or folder to create.
        path: PathBuf,
        /// The system's error message.
        reason: String,
    },
    /// The file is there and cannot be opened.
    #[error(
        "{path} cannot be opened ({reason}); make the file readable, or run this as the user it belongs to"
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// SQLite's error message.
        reason: String,
    },
    /// The file is something else.
    #[error("{path} is not a study store ({reason}); name a folder that `weir study` wrote")]
    NotAStore {
        /// The file.
        path: PathBuf,
        /// Why it is not a study store.
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
        "no space left for {path}{}: free some space, then continue with `weir study --resume`; finished blocks are kept",
        free(*free_bytes)
    )]
    Full {
        /// The file.
        path: PathBuf,
        /// Free space of its disk; `None` if the system does not report it.
        free_bytes: Option<u64>,
    },
    /// The disk has no space for the first block.
    #[error(
        "no space left for {path}{}: the disk is full or nearly so, and a study needs a few MiB; free some space, or \
         choose a folder on another disk with `--out`",
        free(*free_bytes)
    )]
    NoRoom {
        /// The file.
        path: PathBuf,
        /// Free space of its disk; `None` if the system does not report it.
        free_bytes: Option<u64>,
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
        /// The damage that was found.
        reason: String,
    },
    /// A record that cannot be read back; it is refused before anything is written.
    #[error("{what} cannot be stored: {reason}")]
    Unstorable {
        /// The record.
        what: String,
        /// The reason.
        reason: String,
    },
    /// Any other SQLite error.
    #[error("{path}: {source}")]
    Other {
        /// The file.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
}

impl StoreError {
    /// Sorts an SQLite error by its remedy for the user.
    pub(crate) fn from_sqlite(path: &Path, source: rusqlite::Error) -> Self {
        Self::sorted(path.to_path_buf(), source, free_bytes(path))
    }

    /// Sorts an error, given the free space of the disk. SQLite reports a full disk as such only when it writes. When
    /// it extends its shared index or truncates its log, a full disk is an ordinary I/O error.
    fn sorted(path: PathBuf, source: rusqlite::Error, free_bytes: Option<u64>) -> Self {
        let reason = source.to_string();
        let is_nearly_full = free_bytes.is_some_and(|free_bytes| free_bytes < NEARLY_FULL_BYTES);
        match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full { path, free_bytes },
            Some(ErrorCode::SystemIoFailure) if is_nearly_full => Self::Full { path, free_bytes },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::ReadOnly { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
            Some(ErrorCode::NotADatabase) => Self::NotAStore { path, reason },
            Some(ErrorCode::DatabaseCorrupt) => Self::Damaged { path, reason },
            Some(ErrorCode::CannotOpen) => Self::Unreadable { path, reason },
            _ => Self::Other { path, source },
        }
    }

    /// Free space of the disk in KiB; `None` unless it is small enough to explain the error.
    pub fn free_kib(&self) -> Option<u64> {
        match self {
            Self::Full { free_bytes, .. } | Self::NoRoom { free_bytes, .. } => free_kib(*free_bytes),
            _ => None,
        }
    }

    /// Converts the error for a store that has no block yet.
    pub(crate) fn before_the_first_block(self) -> Self {
        match self {
            Self::Full { path, free_bytes } => Self::NoRoom { path, free_bytes },
            Self::Unreadable { path, reason } => Self::CannotCreate { path, reason },
            other => other,
        }
    }
}

/// Free space of the disk that holds the file, as available to an ordinary user.
fn free_bytes(path: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(path.parent()?).ok()?;
    disk.f_bavail.checked_mul(disk.f_frsize)
}

/// The free space as text, if it is small enough to explain the error.
fn free(free_bytes: Option<u64>) -> String {
    free_kib(free_bytes).map(|kib| format!(" ({kib} KiB free)")).unwrap_or_default()
}

fn free_kib(free_bytes: Option<u64>) -> Option<u64> {
    free_bytes.filter(|free_bytes| *free_bytes < NEARLY_FULL_BYTES).map(|free_bytes| free_bytes >> 10)
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    fn sorted(code: i32, free_bytes: Option<u64>) -> StoreError {
        let source = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        StoreError::sorted("run/study.db".into(), source, free_bytes)
    }

    #[test]
    fn a_file_that_sqlite_cannot_open_is_a_matter_of_the_folder_only_before_it_is_made() {
        let there = sorted(ffi::SQLITE_CANTOPEN, None);
        assert!(there.to_string().starts_with("run/study.db cannot be opened ("), "{there}");
        let fresh = there.before_the_first_block().to_string();
        assert!(fresh.ends_with("choose a writable folder with `--out`"), "{fresh}");
    }

    #[test]
    fn an_io_error_on_a_nearly_full_disk_is_a_full_disk_and_elsewhere_is_not() {
        for code in [ffi::SQLITE_FULL, ffi::SQLITE_IOERR_SHMSIZE, ffi::SQLITE_IOERR_TRUNCATE] {
            let full = sorted(code, Some(NEARLY_FULL_BYTES - 1));
            assert!(matches!(full, StoreError::Full { .. }), "{full:?}");
            assert!(full.to_string().starts_with("no space left for run/study.db (1023 KiB free): free"));
        }
        for free_bytes in [None, Some(NEARLY_FULL_BYTES)] {
            let other = sorted(ffi::SQLITE_IOERR_SHMSIZE, free_bytes);
            assert!(matches!(other, StoreError::Other { .. }), "{other:?}");
            // The stated maximum is reached on disks with room, too.
            let full = sorted(ffi::SQLITE_FULL, free_bytes).to_string();
            assert!(full.starts_with("no space left for run/study.db: free"), "{full}");
        }
    }
}
