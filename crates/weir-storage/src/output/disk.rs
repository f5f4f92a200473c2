//! Counters of the disk under a file: the kernel's own numbers, read at both ends of a run.

use std::{fs, io, os::unix::fs::MetadataExt, path::Path};

use rustix::fs::{major, minor};
use serde_json::{Value, json};

/// Counters of one block device since the machine started (`Documentation/block/stat.rst` of the kernel).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskCounters {
    /// Name of the device.
    pub name: String,
    /// Reads, merged reads, sectors read, milliseconds of reading, then the same for writes, operations in flight,
    /// milliseconds busy, milliseconds weighted by the operations in flight.
    counters: [u64; 11],
}

impl DiskCounters {
    /// Counters of the device of a file, or of a device itself. `None` if there is no such device (tmpfs, overlay,
    /// network).
    pub fn of_file(path: &Path) -> Option<Self> {
        let metadata = path.metadata().ok()?;
        // A device node has its own number in `rdev`; for a regular file that is 0.
        let device = if metadata.rdev() == 0 { metadata.dev() } else { metadata.rdev() };
        Self::of_device(device).ok()
    }

    fn of_device(device: u64) -> io::Result<Self> {
        let folder = format!("/sys/dev/block/{}:{}", major(device), minor(device));
        let link = fs::read_link(&folder)?;
        let name = link.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let text = fs::read_to_string(format!("{folder}/stat"))?;
        parse(name, &text).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    }

    /// The counts until a later reading, as an entry of fio's `disk_util`.
    pub fn until(&self, later: &Self, elapsed_ns: u64) -> Value {
        let since = |place: usize| later.counters[place].saturating_sub(self.counters[place]);
        let busy_ms = since(9);
        let util = busy_ms as f64 * 1e8 / elapsed_ns.max(1) as f64;
        json!({
            "name": self.name,
            "read_ios": since(0),
            "write_ios": since(4),
            "read_sectors": since(2),
            "write_sectors": since(6),
            "read_merges": since(1),
            "write_merges": since(5),
            "read_ticks": since(3),
            "write_ticks": since(7),
            "in_queue": since(10),
            "util": util.min(100.0),
        })
    }
}

fn parse(name: String, text: &str) -> Option<DiskCounters> {
    let mut counters = [0; 11];
    let mut numbers = text.split_ascii_whitespace();
    for counter in &mut counters {
        *counter = numbers.next()?.parse().ok()?;
    }
    Some(DiskCounters { name, counters })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_differences_by_their_place() {
        let before = parse("vda".into(), " 1 2 3 4 5 6 7 8 9 10 11 12 13").expect("eleven and more");
        let after = parse("vda".into(), "11 22 33 44 55 66 77 88 0 60 111").expect("eleven");
        let entry = before.until(&after, 100_000_000);
        assert_eq!((&entry["read_ios"], &entry["write_ios"]), (&json!(10), &json!(50)));
        assert_eq!(
            (&entry["read_merges"], &entry["read_ticks"], &entry["in_queue"]),
            (&json!(20), &json!(40), &json!(100))
        );
        assert_eq!((&entry["name"], &entry["util"]), (&json!("vda"), &json!(50.0)));
        assert_eq!(parse("x".into(), "1 2 3"), None);
        assert_eq!(parse("x".into(), ""), None);
    }

    #[test]
    fn a_file_that_is_not_there_lies_on_no_disk() {
        assert_eq!(DiskCounters::of_file(Path::new("/nonexistent/file")), None);
        assert_eq!(DiskCounters::of_file(Path::new("/proc/self/stat")), None);
    }
}
