//! Moves the first files of a journal elsewhere. A checkpoint stands for them from then on: it is written before one is
//! removed, and only when the copies are on the disk and have been read again. A copy that exists already is compared
//! with its original instead.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use super::{
    Checkpoint, CheckpointError, CheckpointFile, RecoverError, directory, read_segment,
    recover::failed,
    segment::{self, FILE_MODE},
};

/// Why files were not archived. Each is still in its folder, and its copy may be in the archive too.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// A file cannot be read or written, or is damaged.
    #[error(transparent)]
    File(#[from] RecoverError),
    /// The checkpoint cannot be written.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The archive has another file of the same name.
    #[error("{file} exists already and is another file; name another folder for the archive")]
    Other {
        /// The file.
        file: std::path::PathBuf,
    },
}

/// Copies the files of each worker with lower numbers than these into another folder, lets the checkpoint stand for
/// them, and removes them. No process may write the journals. Returns the files and their bytes.
///
/// # Errors
/// See [`ArchiveError`].
pub fn archive(
    from: &Path,
    to: &Path,
    before: &BTreeMap<u16, u64>,
    mut checkpoint: Checkpoint,
) -> Result<(u64, u64), ArchiveError> {
    directory::create(to).map_err(failed(to, "make it"))?;
    // An earlier attempt may have made it and crashed before its name was on the disk.
    directory::sync_name(to).map_err(failed(to, "sync its name"))?;
    let all = segment::list(from).map_err(failed(from, "list it"))?;
    let is_first = |(worker, number): &(u16, u64)| before.get(worker).is_some_and(|before| number < before);
    let first: Vec<(u16, u64)> = all.into_iter().filter(is_first).collect();
    let mut bytes = 0;
    for (worker, number) in &first {
        bytes += copy(from, to, *worker, *number)?;
    }
    directory::sync(to).map_err(failed(to, "sync it"))?;
    for (worker, before) in before {
        let known = checkpoint.archived_before.entry(*worker).or_insert(1);
        *known = (*before).max(*known);
    }
    checkpoint.write(from, CheckpointFile::Base)?;
    checkpoint.write(from, CheckpointFile::Latest)?;
    // The lowest ones first, so that no number is missing between others.
    for (worker, number) in &first {
        let path = segment::path(from, *worker, *number);
        fs::remove_file(&path).map_err(failed(&path, "remove it"))?;
        // It is derived, and may be missing.
        let _ = fs::remove_file(path.with_extension("index"));
    }
    directory::sync(from).map_err(failed(from, "sync it"))?;
    Ok((first.len() as u64, bytes))
}

/// Copies one file, and reads the copy. A copy of an earlier attempt is left as it is if it is the same.
fn copy(from: &Path, to: &Path, worker: u16, number: u64) -> Result<u64, ArchiveError> {
    let (source, copy) = (segment::path(from, worker, number), segment::path(to, worker, number));
    if copy.exists() {
        return match is_same(&source, &copy).map_err(failed(&copy, "read it"))? {
            true => Ok(sync_whole(&copy).map_err(failed(&copy, "sync it"))?),
            false => Err(ArchiveError::Other { file: copy }),
        };
    }
    let making = copy.with_extension("copying");
    let copied = fill(&source, &making).map_err(failed(&making, "write it"));
    let bytes = copied.inspect_err(|_| {
        // The error that is reported is worse.
        let _ = fs::remove_file(&making);
    })?;
    fs::rename(&making, &copy).map_err(failed(&copy, "name it"))?;
    read_segment(to, worker, number, &mut |_, _| Ok(()))?;
    Ok(bytes)
}

/// Returns the bytes of a file once they are on the disk. Who has written a copy that was there is unknown, so that it
/// may be in memory only.
fn sync_whole(copy: &Path) -> io::Result<u64> {
    let file = File::open(copy)?;
    file.sync_all()?;
    Ok(file.metadata()?.len())
}

fn fill(source: &Path, making: &Path) -> io::Result<u64> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(FILE_MODE);
    let mut copy = options.open(making)?;
    let bytes = io::copy(&mut File::open(source)?, &mut copy)?;
    copy.sync_all()?;
    Ok(bytes)
}

/// Whether two files have the same bytes.
fn is_same(one: &Path, other: &Path) -> io::Result<bool> {
    use std::io::{BufRead, BufReader};
    const PART: usize = 1 << 20;
    if fs::metadata(one)?.len() != fs::metadata(other)?.len() {
        return Ok(false);
    }
    let (mut one, mut other) = (
        BufReader::with_capacity(PART, File::open(one)?),
        BufReader::with_capacity(PART, File::open(other)?),
    );
    loop {
        let (left, right) = (one.fill_buf()?, other.fill_buf()?);
        let length = left.len().min(right.len());
        if left[..length] != right[..length] {
            return Ok(false);
        }
        if length == 0 {
            return Ok(left.is_empty() && right.is_empty());
        }
        one.consume(length);
        other.consume(length);
    }
}
