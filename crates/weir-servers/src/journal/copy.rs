//! Copies a journal up to a position. The original is only read.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

use rustix::{
    fs::{FallocateFlags, fallocate},
    io::Errno,
};

use super::{
    Position, RecoverError,
    recover::failed,
    segment::{self, HEADER_BYTES, Header},
};

/// Copies the records of a worker's journal before `end` into another folder, which must have none of its files, and
/// returns the bytes that were copied. Behind them the last file is zero, so that recovery reads exactly these
/// records. They are on the disk when this returns.
///
/// # Errors
/// Those of reading and writing files.
pub fn copy_until(directory: &Path, worker: u16, end: Position, to: &Path) -> Result<u64, RecoverError> {
    let mut bytes = 0;
    let all = segment::list(directory).map_err(failed(directory, "list it"))?;
    // The first ones may be archived.
    let first = all.into_iter().find(|(owner, _)| *owner == worker).map_or(1, |(_, number)| number);
    for number in first..=end.segment {
        let is_last = number == end.segment;
        if is_last && end.offset <= HEADER_BYTES as u64 {
            break;
        }
        let from = segment::path(directory, worker, number);
        let mut source = File::open(&from).map_err(failed(&from, "open it"))?;
        let mut header = [0; HEADER_BYTES];
        source.read_exact(&mut header).map_err(failed(&from, "read it"))?;
        let header = Header::decode(&header).ok_or_else(|| RecoverError::Header { file: from.clone() })?;
        let wanted = if is_last { end.offset } else { header.bytes };
        let path = segment::path(to, worker, number);
        bytes += fill(&from, &path, header.bytes, wanted).map_err(failed(&path, "write it"))?;
    }
    Ok(bytes)
}

fn fill(from: &Path, to: &Path, length: u64, wanted: u64) -> io::Result<u64> {
    let source = File::open(from)?;
    let permissions = source.metadata()?.permissions();
    let mut file = File::create_new(to)?;
    match fallocate(&file, FallocateFlags::empty(), 0, length) {
        // The file system cannot reserve space: a hole of the same length reads the same.
        Err(Errno::OPNOTSUPP) => file.set_len(length)?,
        reserved => reserved?,
    }
    let copied = io::copy(&mut source.take(wanted), &mut file)?;
    if copied < wanted {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    fs::set_permissions(to, permissions)?;
    file.sync_all()?;
    Ok(copied)
}
