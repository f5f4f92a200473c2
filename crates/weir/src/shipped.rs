//! Files that the command line names and that are on another host: the coordinator of several generators sends their
//! contents with the words. They stay in memory, because they may hold secrets.

use std::{collections::BTreeMap, fs, io, path::Path, sync::OnceLock};

use anyhow::Result;

use crate::exit::UsageError;

/// Most bytes of all files of a load from other hosts.
pub(crate) const BYTES_MAX: usize = 1 << 20;

/// Contents by path, as it is typed.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

static FILES: OnceLock<Files> = OnceLock::new();

/// Uses these contents in place of files from now on. Only the first call has an effect.
pub(crate) fn set(files: Files) {
    // A process carries out one command.
    let _ = FILES.set(files);
}

/// The content that came for a path, if one did.
pub(crate) fn find(path: &Path) -> Option<&'static [u8]> {
    FILES.get()?.get(path.to_str()?).map(Vec::as_slice)
}

/// Reads a file of the command line: what came for it, or what is here.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    find(path).map_or_else(|| fs::read(path), |content| Ok(content.to_vec()))
}

/// A path as the key of its content.
pub(crate) fn name(path: &Path) -> Result<String> {
    let name = path.to_str().map(str::to_owned);
    name.ok_or_else(|| {
        let path = path.display();
        UsageError(format!("{path}: the name of a file for other hosts must be UTF-8; rename it")).into()
    })
}
