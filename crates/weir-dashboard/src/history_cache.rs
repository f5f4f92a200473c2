//! A cache of runs for their history, valid until their files change.

use std::{
    collections::HashMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use weir_lab::stored_history::{self, FoundRuns, HistoryMetrics};

use crate::counters::Counters;

/// When a file was last written, and its length.
type Stamp = (i64, i64, u64);

/// Cached runs, by their places.
#[derive(Default)]
pub(crate) struct HistoryCache(Mutex<HashMap<PathBuf, (Stamp, FoundRuns)>>);

impl HistoryCache {
    /// The facts of these runs. A run is read again only if its file has changed; other runs are dropped from the
    /// cache.
    pub(crate) fn found(&self, runs: Vec<Run>, counters: &Counters) -> FoundRuns {
        // An interrupted reader left nothing half done: entries are whole or absent.
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut earlier = std::mem::take(&mut *kept);
        let mut all = FoundRuns::default();
        for run in runs {
            let own = earlier.remove(&run.path).filter(|(stamp, _)| *stamp == run.stamp);
            let found = own.map_or_else(|| run.read(counters), |(_, found)| found);
            all.add(found.clone());
            kept.insert(run.path, (run.stamp, found));
        }
        all
    }
}

/// A stored run of the folder.
pub(crate) struct Run {
    path: PathBuf,
    /// Its name in the folder: pages never show the folder's path.
    name: String,
    stamp: Stamp,
    is_study: bool,
}

impl Run {
    /// The run at a path, with the stamp of its file; none where that is no regular file.
    pub(crate) fn of(path: &Path, stamped: &Path, is_study: bool) -> Option<Self> {
        let found = fs::symlink_metadata(stamped).ok().filter(fs::Metadata::is_file)?;
        let name = path.file_name()?.to_string_lossy().into_owned();
        let stamp = (found.mtime(), found.mtime_nsec(), found.size());
        Some(Self { path: path.to_path_buf(), name, stamp, is_study })
    }

    fn read(&self, counters: &Counters) -> FoundRuns {
        let mut found = FoundRuns::default();
        let (at, metrics) = ((self.path.as_path(), self.name.as_str()), HistoryMetrics::default());
        counters.stores_read();
        match self.is_study {
            true => stored_history::read_study(at, &metrics, &mut found),
            false => stored_history::read_comparison(at, &metrics, &mut found),
        }
        found
    }
}
