//! The files of a journal: names, headers, creation. The bytes behind the header are handled elsewhere.
//!
//! | bytes | field |
//! | --- | --- |
//! | 0..16 | `weir journal seg` |
//! | 16..20 | version, 1 |
//! | 20..24 | CRC-32C of bytes 24 to 64 |
//! | 24..32 | number of the segment |
//! | 32..40 | bytes of the file |
//! | 40..42 | worker |
//! | 42..64 | zeros |
//!
//! Numbers are little-endian.

use std::{
    any::Any,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use weir_engine::fs::{self, File, OpenOptions};

/// Bytes before the first record.
pub(super) const HEADER_BYTES: usize = 64;

/// A segment's length is a multiple of this: disks write in this unit.
pub(super) const SECTOR_BYTES: u64 = 512;

/// Smallest segment.
pub(super) const SEGMENT_BYTES_MIN: u64 = 4096;

/// Permissions of a created file: a journal has every order of every client.
pub(crate) const FILE_MODE: u32 = 0o600;

const MAGIC: [u8; 16] = *b"weir journal seg";
const VERSION: u32 = 1;

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) worker: u16,
    pub(super) number: u64,
    /// Length of the whole file.
    pub(super) bytes: u64,
}

impl Header {
    pub(super) fn encode(self) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        header[0..16].copy_from_slice(&MAGIC);
        header[16..20].copy_from_slice(&VERSION.to_le_bytes());
        header[24..32].copy_from_slice(&self.number.to_le_bytes());
        header[32..40].copy_from_slice(&self.bytes.to_le_bytes());
        header[40..42].copy_from_slice(&self.worker.to_le_bytes());
        let checksum = crc32c::crc32c(&header[24..]);
        header[20..24].copy_from_slice(&checksum.to_le_bytes());
        header
    }

    /// `None` if these bytes are not a valid header.
    pub(super) fn decode(header: &[u8; HEADER_BYTES]) -> Option<Self> {
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|index| header[at + index]));
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| header[at + index]));
        let found = Self {
            worker: u16::from_le_bytes([header[40], header[41]]),
            number: number(24),
            bytes: number(32),
        };
        let is_known = header[0..16] == MAGIC
            && word(16) == VERSION
            && word(20) == crc32c::crc32c(&header[24..])
            && is_size(found.bytes);
        is_known.then_some(found)
    }
}

/// Whether a segment may have this length.
pub(super) fn is_size(bytes: u64) -> bool {
    bytes >= SEGMENT_BYTES_MIN && bytes.is_multiple_of(SECTOR_BYTES) && bytes <= i64::MAX as u64
}

/// The path of a segment.
pub(super) fn path(directory: &Path, worker: u16, number: u64) -> PathBuf {
    directory.join(name(worker, number))
}

/// The name of a segment's file.
pub(super) fn name(worker: u16, number: u64) -> String {
    format!("worker-{worker:05}-{number:010}.journal")
}

/// Worker and number from a file's name; `None` for any other file.
pub(super) fn parse_name(text: &str) -> Option<(u16, u64)> {
    let numbers = text.strip_prefix("worker-")?.strip_suffix(".journal")?;
    let (worker, number) = numbers.split_once('-')?;
    let found = (worker.parse().ok()?, number.parse().ok()?);
    (found.1 > 0 && name(found.0, found.1) == text).then_some(found)
}

/// Worker and number of every segment in a folder, in order.
pub(super) fn list(directory: &Path) -> io::Result<Vec<(u16, u64)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        if let Some(segment) = entry?.file_name().to_str().and_then(parse_name) {
            found.push(segment);
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Removes segments whose creation a crash interrupted. The caller must hold the worker's lock.
pub(super) fn remove_unfinished(directory: &Path, worker: u16) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let is_it = entry.file_name().to_str().is_some_and(|name| is_unfinished(name, worker));
        if is_it {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Removes the indexes of a worker's segments from this one on. The caller must hold the worker's lock.
pub(super) fn remove_indexes(directory: &Path, worker: u16, from: u64) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let of_segment = entry.file_name().to_str().and_then(parse_index_name);
        if of_segment.is_none_or(|(owner, number)| owner != worker || number < from) {
            continue;
        }
        match std::fs::remove_file(entry.path()) {
            // It is derived, and others may remove it too.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed?,
        }
    }
    Ok(())
}

fn parse_index_name(name: &str) -> Option<(u16, u64)> {
    parse_name(&format!("{}.journal", name.strip_suffix(".index")?))
}

fn is_unfinished(name: &str, worker: u16) -> bool {
    let of_segment = name.strip_suffix(UNFINISHED).and_then(|stem| parse_name(&format!("{stem}.journal")));
    of_segment.is_some_and(|(owner, _)| owner == worker)
}

/// Creates a segment under a name that recovery ignores: its whole length is reserved, and it is empty except for its
/// header. Nothing is synced. So a file with a segment's name has a complete header, or is damaged. `lock` is the
/// right to do so, and each write keeps it alive.
///
/// Every step is an operation of the engine: no worker thread waits for it. An existing file of that name is
/// overwritten, not truncated, so an opening whose caller is gone does no harm even if the kernel performs it late.
///
/// # Errors
/// The system's errors; `AlreadyExists` if the segment exists. Nothing is left behind in these cases.
pub(super) async fn create(
    directory: &Path,
    header: Header,
    lock: Arc<dyn Any + Send + Sync>,
) -> io::Result<File> {
    match File::open(path(directory, header.worker, header.number)).await {
        Ok(_) => return Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let unfinished = path_unfinished(directory, header.worker, header.number);
    let options = OpenOptions { read: true, write: true, create: true, truncate: false, mode: FILE_MODE };
    let file = File::open_with(&unfinished, options).await?;
    match fill(&file, header, lock).await {
        Ok(()) => Ok(file),
        Err(error) => {
            // Report the first error; the next recovery removes a leftover.
            let _ = std::fs::remove_file(&unfinished);
            Err(error)
        }
    }
}

async fn fill(file: &File, header: Header, lock: Arc<dyn Any + Send + Sync>) -> io::Result<()> {
    match file.allocate(header.bytes).await {
        // The file system cannot reserve space: a hole of the same length reads the same.
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            file.write_at_holding(header.bytes - 1, vec![0], lock.clone()).await?;
        }
        reserved => reserved?,
    }
    file.write_at_holding(0, header.encode().to_vec(), lock).await.map(drop)
}

/// Renames a created segment to its final name. `lock` is the right to do so, and is kept until the rename is done.
pub(super) async fn finish(
    directory: &Path,
    worker: u16,
    number: u64,
    lock: Arc<dyn Any + Send + Sync>,
) -> io::Result<()> {
    let unfinished = path_unfinished(directory, worker, number);
    fs::rename(unfinished, path(directory, worker, number), lock).await
}

const UNFINISHED: &str = ".making";

fn path_unfinished(directory: &Path, worker: u16, number: u64) -> PathBuf {
    path(directory, worker, number).with_extension(&UNFINISHED[1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Header = Header { worker: 258, number: 3, bytes: 4096 };

    #[test]
    fn a_header_is_read_back_and_every_flipped_bit_is_found() {
        let bytes = HEADER.encode();
        assert_eq!(Header::decode(&bytes), Some(HEADER));
        assert_eq!(bytes[0..16], *b"weir journal seg");
        assert_eq!(bytes[24..42], [3, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 2, 1]);
        for bit in 0..HEADER_BYTES * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::decode(&damaged), None, "bit {bit}");
        }
        assert_eq!(Header::decode(&[0; HEADER_BYTES]), None);
    }

    #[test]
    fn only_whole_sectors_are_a_size() {
        for bytes in [4096, 4608, 64 << 20] {
            assert!(is_size(bytes), "{bytes}");
        }
        for bytes in [0, 512, 4095, 4097, u64::MAX, u64::MAX - 511] {
            assert!(!is_size(bytes), "{bytes}");
        }
    }

    #[test]
    fn names_round_trip_and_no_other_name_is_one() {
        for segment in [(0, 1), (65_535, 9_999_999_999), (7, u64::MAX)] {
            assert_eq!(parse_name(&name(segment.0, segment.1)), Some(segment));
        }
        assert_eq!(name(3, 12), "worker-00003-0000000012.journal");
        let others = [
            "worker-00003.lock",
            "worker-3-0000000012.journal",
            "worker-00003-12.journal",
            "worker-00003-0000000000.journal",
            "worker-+0003-0000000012.journal",
            "worker-00003-0000000012.making",
            "worker-70000-0000000012.journal",
        ];
        for other in others {
            assert_eq!(parse_name(other), None, "{other}");
        }
    }

    #[test]
    fn what_is_unfinished_is_told_by_its_name_and_its_worker() {
        assert!(is_unfinished("worker-00003-0000000012.making", 3));
        for other in
            ["worker-00003-0000000012.journal", "worker-00004-0000000012.making", "notes.making", ".making"]
        {
            assert!(!is_unfinished(other, 3), "{other}");
        }
    }
}
