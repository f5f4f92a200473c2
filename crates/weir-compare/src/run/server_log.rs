//! The log of a server, which grows as long as the server runs. Its beginning and its end are kept: blocks between them
//! are given back to the file system. The server appends to it as before and does not notice.

use std::{
    fs::{File, OpenOptions},
    io,
    path::Path,
};

use rustix::{
    fs::{FallocateFlags, fallocate},
    io::Errno,
};

use super::LOG_BEGINNING_BYTES;

/// Bytes of the end that are kept at least. Up to twice as many are there before the next cut.
const END_BYTES: u64 = 4 << 20;

/// A log that is kept short.
#[derive(Debug)]
pub(super) struct ServerLog {
    file: File,
    /// Bytes of the end that are kept.
    end_bytes: u64,
    /// Where the kept end begins, or the beginning ends.
    cut_to: u64,
}

impl ServerLog {
    /// The log at this path; it is there.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Self::keeping(path, LOG_BEGINNING_BYTES, END_BYTES)
    }

    fn keeping(path: &Path, beginning_bytes: u64, end_bytes: u64) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).open(path)?;
        Ok(Self { file, end_bytes, cut_to: beginning_bytes })
    }

    /// Gives back what lies between the beginning and the end, once that is as long as the end.
    pub(super) fn cut(&mut self) {
        let length = self.file.metadata().map_or(0, |found| found.len());
        let end_begins = length.saturating_sub(self.end_bytes);
        if end_begins.saturating_sub(self.cut_to) < self.end_bytes {
            return;
        }
        let punched = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match fallocate(&self.file, punched, self.cut_to, end_begins - self.cut_to) {
            Ok(()) => self.cut_to = end_begins,
            // A file system without holes. The server appends, so the log begins anew.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                // After an error the log is as long as before, and the next look tries again.
                let _ = self.file.set_len(0);
            }
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        io::{Read, Seek, SeekFrom, Write},
        os::unix::fs::MetadataExt,
    };

    use super::*;
    use crate::private_folder::PrivateFolder;

    const KEPT: u64 = 64 << 10;

    /// Appends this many bytes, each the first digit of its place in units of [`KEPT`].
    fn append(path: &Path, bytes: u64) {
        let mut file = OpenOptions::new().append(true).create(true).open(path).expect("it is ours");
        let from = file.metadata().expect("it is open").len();
        let text: Vec<u8> = (from..from + bytes).map(|at| b'0' + (at / KEPT % 10) as u8).collect();
        file.write_all(&text).expect("it can be written");
    }

    fn part(path: &Path, from: u64) -> String {
        let mut file = File::open(path).expect("it is there");
        file.seek(SeekFrom::Start(from)).expect("a place");
        let mut text = String::new();
        file.take(KEPT).read_to_string(&mut text).expect("it is text");
        text
    }

    #[test]
    fn of_a_long_log_the_beginning_and_the_end_are_kept_and_it_goes_on() {
        let folder = PrivateFolder::below(&std::env::temp_dir()).expect("it can be made");
        let path = folder.path().join("log");
        append(&path, 2 * KEPT);
        let mut log = ServerLog::keeping(&path, KEPT, KEPT).expect("it is there");
        log.cut();
        assert_eq!(
            (part(&path, 0), part(&path, KEPT)),
            ("0".repeat(KEPT as usize), "1".repeat(KEPT as usize))
        );
        for _ in 0..30 {
            append(&path, KEPT);
            log.cut();
            let found = fs::metadata(&path).expect("it is there");
            // The beginning, the end, and as much again before it is given back.
            assert!(found.blocks() * 512 <= 4 * KEPT, "{} blocks", found.blocks());
        }
        if fs::metadata(&path).expect("it is there").len() == 32 * KEPT {
            assert_eq!(part(&path, 0), "0".repeat(KEPT as usize));
            assert_eq!(part(&path, 31 * KEPT), "1".repeat(KEPT as usize), "the end");
            assert!(part(&path, 10 * KEPT).bytes().all(|byte| byte == 0), "it was given back");
        }
    }
}
