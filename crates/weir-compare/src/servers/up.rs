//! One server that was started: where it is, its output, and whether it is ready.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use super::{Slot, places::Places};
use crate::run::{LOG_BEGINNING_BYTES, Reading, ServerClock};

/// Most bytes of a file that are read: a server's output until it is ready, and all of a load's output.
const TEXT_BYTES_MAX: u64 = LOG_BEGINNING_BYTES;

/// Most bytes of the end of a server's log that are read for a message.
const SAID_BYTES_MAX: u64 = 2 << 10;

/// Most characters of the log's end that are kept, and most lines.
const SAID_MAX: usize = 400;
const SAID_LINES_MAX: usize = 3;

/// A server that was started.
#[derive(Debug)]
pub(super) struct Up {
    pub(super) slot: Slot,
    pub(super) places: Places,
    pub(super) clock: ServerClock,
    /// File to which both of its outputs are appended.
    pub(super) log: PathBuf,
    /// Holds its log and the folder for its data.
    pub(super) folder: PathBuf,
    /// Its clocks when its last load was over, or when it was ready.
    pub(super) last: Reading,
    /// Whether it has ended although nothing asked it to.
    pub(super) has_ended: bool,
}

/// Whether a line of a log that is complete holds the text.
pub(super) fn has_line(log: &Path, text: &str) -> bool {
    let written = beginning(log).unwrap_or_default();
    let complete = written.rfind('\n').map_or("", |end| &written[..end]);
    complete.lines().any(|line| line.contains(text))
}

fn beginning(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(TEXT_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A file as text; of a long file the end. Empty where there is none.
pub(super) fn text(path: &Path) -> String {
    end_of(path, TEXT_BYTES_MAX).unwrap_or_default()
}

/// The last lines of a log.
pub(super) fn said(log: &Path) -> String {
    let text = end_of(log, SAID_BYTES_MAX).unwrap_or_default();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(SAID_LINES_MAX)..].join("; ");
    let skipped = last.chars().count().saturating_sub(SAID_MAX);
    last.chars().skip(skipped).collect()
}

fn end_of(path: &Path, most: u64) -> io::Result<String> {
    // A pipe would wait for a writer.
    let found = fs::metadata(path)?;
    if !found.is_file() {
        return Ok(String::new());
    }
    let (mut file, mut bytes) = (File::open(path)?, Vec::new());
    file.seek(SeekFrom::Start(found.len().saturating_sub(most)))?;
    file.take(most).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private_folder::PrivateFolder;

    #[test]
    fn a_line_counts_when_it_is_complete_and_the_last_lines_are_told() {
        let folder = PrivateFolder::below(&std::env::temp_dir()).expect("it can be made");
        let log = folder.path().join("log");
        assert!(!has_line(&log, "ready"), "there is no log yet");
        fs::write(&log, "one\nserver is rea").expect("it is ours");
        assert!(!has_line(&log, "ready"));
        fs::write(&log, "one\ntwo\n\nserver is ready").expect("it is ours");
        assert!(!has_line(&log, "ready"), "the line goes on");
        fs::write(&log, "one\ntwo\n\nserver is ready\nmore\n").expect("it is ours");
        assert!(has_line(&log, "ready"));
        assert_eq!(said(&log), "two; server is ready; more");
        fs::write(&log, "é".repeat(5_000)).expect("it is ours");
        assert_eq!(said(&log).chars().count(), SAID_MAX);
        assert_eq!((text(folder.path()), said(Path::new("/no/such/log"))), (String::new(), String::new()));
    }
}
