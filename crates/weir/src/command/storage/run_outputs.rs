//! Outputs of `weir storage run`: never onto the measured file, nor onto a device.

use std::{
    collections::HashMap,
    fs,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
};

use anyhow::Result;
use weir_record::storage::StorageJob;
use weir_storage::output::log;

use crate::{args::StorageRun, exit::UsageError, output};

/// A file, whatever its name, or the place of a file that does not exist yet.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Identity {
    Inode(u64, u64),
    Device(u64),
    Place(PathBuf),
}

impl Identity {
    fn of(path: &Path) -> Self {
        match fs::metadata(path) {
            Ok(found) if found.file_type().is_block_device() => Self::Device(found.rdev()),
            Ok(found) => Self::Inode(found.dev(), found.ino()),
            Err(_) => {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                let folder = fs::canonicalize(folder.unwrap_or(Path::new("."))).unwrap_or_default();
                Self::Place(folder.join(path.file_name().unwrap_or_default()))
            }
        }
    }
}

/// Refuses outputs that would overwrite a device, the measured file, the job file, or each other, and those that cannot
/// be written.
pub(super) fn check(
    arguments: &StorageRun,
    report: Option<&str>,
    job_files: &[PathBuf],
    jobs: &[StorageJob],
) -> Result<()> {
    let mut taken: HashMap<Identity, String> = HashMap::new();
    let job_file = job_files.iter().map(|path| (path.clone(), "the job file".to_owned()));
    let ledgers = jobs.iter().filter_map(|job| job.ledger.as_ref());
    let ledgers = ledgers.map(|path| (PathBuf::from(path), "the ledger".to_owned()));
    let files = jobs.iter().map(|job| (PathBuf::from(&job.file), format!("the file of job {}", job.name)));
    for (path, what) in job_file.chain(ledgers).chain(files) {
        taken.insert(Identity::of(&path), what);
    }
    let is_of_fio = !job_files.is_empty() || !arguments.fio.is_empty();
    let flag = if is_of_fio { "write_lat_log" } else { "--log-prefix" };
    let logs = jobs.iter().flat_map(log::paths).map(|path| (flag, PathBuf::from(path)));
    let table = arguments.csv.iter().map(|path| ("--csv", path.clone()));
    let report = report.iter().map(|path| ("--output", PathBuf::from(path)));
    let whole: Vec<(&str, PathBuf)> = table.chain(report).collect();
    for (flag, path) in whole.iter().cloned().chain(logs) {
        let shown = path.display();
        let identity = Identity::of(&path);
        if let Some(what) = taken.get(&identity) {
            let reason = format!("{flag}: {shown} is {what}, and would be overwritten; name another file");
            return Err(UsageError(reason).into());
        }
        if let Identity::Device(_) = identity {
            let reason =
                format!("{flag}: {shown} is a block device, and would be overwritten; name a regular file");
            return Err(UsageError(reason).into());
        }
        // Several writers may share a pipe or a terminal.
        if !matches!(identity, Identity::Inode(..)) || path.is_file() {
            taken.insert(identity, format!("written by {flag} too"));
        }
    }
    whole.iter().try_for_each(|(flag, path)| output::can_be_written(path, flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_every_name_and_before_it_is_there() {
        let folder = std::env::temp_dir().join(format!("weir-outputs-{}", std::process::id()));
        fs::create_dir_all(folder.join("inner")).expect("a folder can be made");
        let (first, second) = (folder.join("data"), folder.join("inner/../data"));
        assert_eq!(Identity::of(&first), Identity::of(&second));
        fs::write(&first, "x").expect("a file can be written");
        let link = folder.join("link");
        std::os::unix::fs::symlink(&first, &link).expect("a link can be made");
        assert_eq!(Identity::of(&link), Identity::of(&second));
        assert_ne!(Identity::of(&link), Identity::of(&folder.join("other")));
        fs::remove_dir_all(&folder).expect("it can be removed");
    }
}
