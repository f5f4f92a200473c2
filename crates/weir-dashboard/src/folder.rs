//! The studies of a results folder, newest first. A study is found by its name in this list and never by a path that a
//! request gave. Neither a folder nor a store is followed through a symbolic link.

use std::{
    cmp::Reverse,
    ffi::OsString,
    fs::{self, DirEntry},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use weir_lab::run_locks::Held;

/// Most folders that are looked at: if there are more, the newest, and the page says that there are others.
pub const FOLDERS_MAX: usize = 10_000;

/// Most folders whose names are read, to find the newest among them.
pub const NAMES_MAX: usize = 100_000;

/// Most studies that are listed: the newest, or the newest matches of a search.
pub const LISTED_MAX: usize = 1_000;

/// When a store was last written, and its length with its log. Another stamp means other content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    written: Duration,
    bytes: u64,
}

/// A run folder.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Its name in the results folder, which may not be UTF-8.
    pub name: OsString,
    pub path: PathBuf,
    pub stamp: Stamp,
    /// A session works on it.
    pub is_running: bool,
}

/// The content of a results folder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listing {
    /// The newest studies, newest first.
    pub studies: Vec<Found>,
    /// Further studies, newest first: these are found by their names alone.
    pub older: Vec<Found>,
    /// There were more than [`FOLDERS_MAX`] folders, and only the newest were looked at.
    pub is_cut: bool,
}

impl Listing {
    /// Looks now. A folder that does not exist yet holds nothing.
    pub(crate) fn of(folder: &Path) -> io::Result<Self> {
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            entries => entries?,
        };
        // An entry that is gone by now, or cannot be looked at, is no study.
        let is_folder = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        let folders: Vec<DirEntry> = entries.flatten().filter(is_folder).take(NAMES_MAX).collect();
        let is_cut = folders.len() > FOLDERS_MAX;
        let looked_at = if is_cut { newest(folders) } else { folders };
        let study = |entry: DirEntry| {
            let path = entry.path();
            let stamp = stamp(&path)?;
            Some(Found { name: entry.file_name(), path, stamp, is_running: false })
        };
        let mut studies: Vec<Found> = looked_at.into_iter().filter_map(study).collect();
        studies.sort_by(|one, other| (other.stamp.written, &other.name).cmp(&(one.stamp.written, &one.name)));
        let held = Held::now();
        for study in &mut studies {
            study.is_running = held.holds(&study.path);
        }
        let older = studies.split_off(studies.len().min(LISTED_MAX));
        Ok(Self { studies, older, is_cut })
    }

    fn all(&self) -> impl Iterator<Item = &Found> {
        self.studies.iter().chain(&self.older)
    }

    /// The study of this name.
    pub(crate) fn named(&self, name: &[u8]) -> Option<&Found> {
        self.all().find(|study| study.name.as_encoded_bytes() == name)
    }

    /// Studies whose names contain this, newest first. The case of letters does not count.
    pub(crate) fn matching(&self, text: &str) -> Vec<&Found> {
        let text = text.to_lowercase();
        let has_it = |study: &&Found| study.name.to_string_lossy().to_lowercase().contains(&text);
        self.all().filter(has_it).collect()
    }

    /// The only study whose name contains this. If none or several do, their number.
    pub(crate) fn only_match(&self, text: &str) -> Result<&Found, usize> {
        let alike = self.matching(text);
        if let [only] = alike[..] { Ok(only) } else { Err(alike.len()) }
    }
}

/// The folders in which an entry was made or removed last, as a session does when it begins and when it ends.
fn newest(folders: Vec<DirEntry>) -> Vec<DirEntry> {
    let changed = |entry: &DirEntry| entry.metadata().and_then(|found| found.modified()).ok();
    let mut dated: Vec<_> = folders.into_iter().map(|entry| (changed(&entry), entry)).collect();
    dated.sort_by_key(|(changed, _)| Reverse(*changed));
    dated.truncate(FOLDERS_MAX);
    dated.into_iter().map(|(_, entry)| entry).collect()
}

/// The stamp of the store of a run folder; absent where there is no store that is a file.
pub(crate) fn stamp(folder: &Path) -> Option<Stamp> {
    let store = folder.join(weir_store::FILE_NAME);
    let found = fs::symlink_metadata(&store).ok().filter(|found| found.is_file())?;
    let mut log = store.into_os_string();
    log.push("-wal");
    // A reader may leave an empty log, which is no change.
    let log = fs::symlink_metadata(log).ok().filter(|log| log.is_file() && log.len() > 0);
    let written = |found: &fs::Metadata| {
        found
            .modified()
            .ok()
            .and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok())
            .unwrap_or_default()
    };
    let logged = log.as_ref().map(written).unwrap_or_default();
    Some(Stamp {
        written: written(&found).max(logged),
        bytes: found.size() + log.map_or(0, |log| log.size()),
    })
}
