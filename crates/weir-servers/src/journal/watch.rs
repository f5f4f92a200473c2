//! What operators learn about a journal's disk while it works: that it stalls, and that it is nearly full. Both stop
//! the orders sooner or later, and no other message says so.

use std::{
    collections::BTreeMap,
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use rustix::fs::statvfs;
use weir_record::orders::JournalStats;

/// How often the free space is looked at: the largest journal writes a file in some seconds.
const LOOK_EVERY: Duration = Duration::from_secs(5);
const UNKNOWN: u64 = u64::MAX;

/// The free space of a folder's disk. A separate thread asks for it, because on a disk that hangs the question hangs
/// too.
#[derive(Debug)]
pub(crate) struct DiskRoom {
    free_bytes: Arc<AtomicU64>,
    segment_bytes: u64,
}

impl DiskRoom {
    /// Starts to look, for as long as this lives.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub(crate) fn watch(directory: &Path, segment_bytes: u64) -> io::Result<Self> {
        let free_bytes = Arc::new(AtomicU64::new(UNKNOWN));
        let (here, directory) = (Arc::downgrade(&free_bytes), directory.to_owned());
        let look = move || {
            while let Some(free_bytes) = here.upgrade() {
                // A disk that cannot be asked keeps its last value; the journal reports what fails.
                if let Ok(found) = statvfs(&directory) {
                    free_bytes.store(found.f_bavail.saturating_mul(found.f_frsize), Relaxed);
                }
                drop(free_bytes);
                thread::sleep(LOOK_EVERY);
            }
        };
        thread::Builder::new().name("weir-disk".into()).spawn(look)?;
        Ok(Self { free_bytes, segment_bytes })
    }

    /// See [`JournalStats::files_left`].
    pub(crate) fn files_left(&self, workers: usize) -> Option<u64> {
        let free_bytes = Some(self.free_bytes.load(Relaxed)).filter(|bytes| *bytes != UNKNOWN)?;
        Some(free_bytes / self.segment_bytes.max(1) / workers.max(1) as u64)
    }
}

/// One look at the journals of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct JournalLook {
    /// By worker: how long its commit has been under way. Journals that have failed are left out.
    pub(crate) waiting_ns: BTreeMap<u16, u64>,
    /// See [`JournalStats::files_left`].
    pub(crate) files_left: Option<u64>,
}

/// What has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskChange {
    /// The disk does not answer this worker.
    Stalled(u16),
    /// It answers again.
    Answers(u16),
    /// There is room for few more files.
    Scarce,
    /// There is room again.
    HasRoom,
}

/// Turns looks into lines: one when something begins, and one when it is over.
#[derive(Debug, Default)]
pub(crate) struct JournalWatch {
    /// Workers whose stall was reported, with the longest wait that was seen.
    stalled_ns: BTreeMap<u16, u64>,
    /// The smallest number of files that was reported.
    reported: Option<u64>,
}

impl JournalWatch {
    /// What has changed, in words.
    pub(crate) fn look(&mut self, seen: &JournalLook) -> Vec<(DiskChange, String)> {
        let mut lines = Vec::new();
        self.stalled_ns.retain(|worker, longest_ns| match seen.waiting_ns.get(worker) {
            // Its failure has a line.
            None => false,
            Some(waiting_ns) if *waiting_ns >= JournalStats::STALLED_NS => {
                *longest_ns = (*waiting_ns).max(*longest_ns);
                true
            }
            Some(_) => {
                let seconds = *longest_ns / 1_000_000_000;
                let text = format!(
                    "the journal's disk answers again, after {seconds} s or more; what waited goes on"
                );
                lines.push((DiskChange::Answers(*worker), text));
                false
            }
        });
        for (worker, waiting_ns) in &seen.waiting_ns {
            if *waiting_ns >= JournalStats::STALLED_NS && !self.stalled_ns.contains_key(worker) {
                self.stalled_ns.insert(*worker, *waiting_ns);
                let stalled = stalled(*waiting_ns);
                let text = format!("{stalled}; orders and answers wait for it, the kill switch does not");
                lines.push((DiskChange::Stalled(*worker), text));
            }
        }
        lines.extend(seen.files_left.and_then(|files_left| self.look_at_room(files_left)));
        lines
    }

    fn look_at_room(&mut self, files_left: u64) -> Option<(DiskChange, String)> {
        let is_scarce = files_left <= JournalStats::FILES_SCARCE;
        match self.reported {
            None if is_scarce => {
                self.reported = Some(files_left);
                Some((DiskChange::Scarce, scarce(files_left)))
            }
            Some(before) if is_scarce && files_left < before => {
                self.reported = Some(files_left);
                Some((DiskChange::Scarce, scarce(files_left)))
            }
            // One more, so that a disk at the limit has one line.
            Some(_) if files_left > JournalStats::FILES_SCARCE + 1 => {
                self.reported = None;
                let text =
                    format!("the journal's disk has room for {files_left} more files of each worker again");
                Some((DiskChange::HasRoom, text))
            }
            _ => None,
        }
    }
}

/// That a journal stalls.
pub(crate) fn stalled(waiting_ns: u64) -> String {
    format!("the journal's disk has not answered for {} s", waiting_ns / 1_000_000_000)
}

/// That there is room for few more files.
pub(crate) fn scarce(files_left: u64) -> String {
    format!(
        "the journal's disk has room for {files_left} more files of each worker; a worker that finds none for its next \
         file takes no more orders, so free some space"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn waiting(all: &[(u16, u64)]) -> JournalLook {
        let waiting_ns = all.iter().map(|(worker, seconds)| (*worker, seconds * SECOND)).collect();
        JournalLook { waiting_ns, files_left: None }
    }

    #[test]
    fn a_stall_has_a_line_when_it_begins_and_one_when_it_ends_for_each_worker() {
        let mut watch = JournalWatch::default();
        assert!(watch.look(&waiting(&[(0, 0), (1, 1)])).is_empty(), "a sync may take its time");
        let lines = watch.look(&waiting(&[(0, 0), (1, 2)]));
        assert_eq!(
            lines,
            [(
                DiskChange::Stalled(1),
                "the journal's disk has not answered for 2 s; orders and answers wait for it, the kill switch does not"
                    .to_owned()
            )]
        );
        assert!(watch.look(&waiting(&[(0, 0), (1, 30)])).is_empty());
        let lines = watch.look(&waiting(&[(0, 5), (1, 0)]));
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert_eq!(lines[0].0, DiskChange::Answers(1));
        assert!(lines[0].1.starts_with("the journal's disk answers again, after 30 s"), "{lines:?}");
        assert_eq!(lines[1].0, DiskChange::Stalled(0));
        assert!(lines[1].1.starts_with("the journal's disk has not answered for 5 s"), "{lines:?}");
        assert!(
            watch.look(&waiting(&[(1, 0)])).is_empty(),
            "the other one has failed, which has its own line"
        );
        assert!(watch.look(&waiting(&[(0, 0), (1, 0)])).is_empty());
    }

    #[test]
    fn a_disk_that_fills_has_a_line_at_two_files_one_at_each_fewer_and_one_when_there_is_room_again() {
        let mut watch = JournalWatch::default();
        let mut look = |files_left| {
            let lines = watch.look(&JournalLook { files_left: Some(files_left), ..JournalLook::default() });
            lines.first().map(|(_, line)| line[..line.find(" more").unwrap_or_default()].to_owned())
        };
        let line = |files: u64| Some(format!("the journal's disk has room for {files}"));
        let seen = [9, 3, 2, 2, 1, 2, 1, 0, 3, 2, 4, 5, 1].map(&mut look);
        let none = || None;
        assert_eq!(
            seen,
            [
                none(),
                none(),
                line(2),
                none(),
                line(1),
                none(),
                none(),
                line(0),
                none(),
                none(),
                line(4),
                none(),
                line(1)
            ]
        );
    }

    #[test]
    fn room_is_counted_in_files_of_each_worker() {
        let room =
            |free_bytes| DiskRoom { free_bytes: Arc::new(AtomicU64::new(free_bytes)), segment_bytes: 64 };
        assert_eq!(room(UNKNOWN).files_left(2), None);
        assert_eq!([0, 127, 128, 300].map(|bytes| room(bytes).files_left(2)), [0, 0, 1, 2].map(Some));
    }
}
