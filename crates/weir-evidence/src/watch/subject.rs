//! One process that is watched, with its children: its readings, and what lies between two of them.

use std::{
    collections::HashMap,
    io,
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};
use weir_record::observation::{Descriptors, Note, THREAD_ROWS_MAX, ThreadFigures, Totals};

use crate::{
    files,
    ladder::tracer::KernelCounts,
    parse,
    process::{ProcessSample, ProcessTree},
};

/// Below this, ticks say nothing of how CPU is split.
const SPLIT_WINDOW_NS: u64 = 2_000_000_000;
/// Most descriptors that are looked at.
const DESCRIPTORS_MAX: usize = 1 << 20;

/// Why processes cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// There is none.
    #[error("no process {0}")]
    NoSuchProcess(u32),
    /// It could not be read.
    #[error("cannot read process {pid}")]
    Unreadable {
        /// Its number.
        pid: u32,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// It is to be compared with itself.
    #[error("{0} is the same process; name another one")]
    SameProcess(u32),
    /// Children are observed with their parent, so these two would be one.
    #[error(
        "process {child} is a child of {parent}, and children are observed with their parent; name one of both"
    )]
    Relatives {
        /// One of them.
        child: u32,
        /// The other, or the one that it descends from.
        parent: u32,
    },
}

/// What /proc tells at one moment.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub(super) tree: ProcessTree,
    pub(super) descriptors: Option<Descriptors>,
    pub(super) at: Instant,
    system_ns: u64,
}

impl Reading {
    fn of(tree: ProcessTree) -> Self {
        let (system_ns, descriptors) = (family_system_ns(&tree), descriptors(&tree));
        Self { tree, descriptors, at: Instant::now(), system_ns }
    }

    pub(super) fn totals_since(&self, before: &Self) -> Totals {
        let delta = ProcessTree::delta(&before.tree, &self.tree);
        let system_ns = self.system_ns.saturating_sub(before.system_ns);
        let window_ns = (self.at - before.at).as_nanos() as u64;
        Totals {
            cpu_ns: delta.cpu_ns,
            system_ns: (window_ns >= SPLIT_WINDOW_NS).then_some(system_ns.min(delta.cpu_ns)),
            kernel_thread_cpu_ns: delta.kernel_thread_cpu_ns,
            ended_cpu_ns: delta.ended_cpu_ns,
            run_delay_ns: delta.run_delay_ns,
            context_switches_voluntary: delta.context_switches_voluntary,
            context_switches_involuntary: delta.context_switches_involuntary,
            processes: self.tree.processes.len() as u32,
            threads: delta.threads,
            rss_anon_bytes: delta.rss_anon_bytes,
        }
    }

    fn name(&self) -> String {
        let main = self.tree.processes.first().and_then(|process| process.threads.first());
        main.map(|thread| thread.name.clone()).unwrap_or_default()
    }
}

/// A process that is being watched.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) pid: u32,
    pub(super) descriptor: Option<OwnedFd>,
    pub(super) command: String,
    pub(super) notes: Vec<Note>,
    pub(super) has_ended: bool,
    before: Reading,
    /// Absent where nothing is traced, or its tables could not be read.
    counts_before: Option<KernelCounts>,
    glimpsed: Reading,
    counts_glimpsed: KernelCounts,
    last: Reading,
}

impl Subject {
    pub(super) fn of(pid: u32) -> Result<Self, WatchError> {
        let reading = Reading::of(snapshot(pid)?);
        Ok(Self {
            pid,
            descriptor: Pid::from_raw(pid as i32).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()),
            command: command(pid),
            notes: Vec::new(),
            has_ended: false,
            before: reading.clone(),
            counts_before: None,
            glimpsed: reading.clone(),
            counts_glimpsed: KernelCounts::default(),
            last: reading,
        })
    }

    /// The window begins here.
    pub(super) fn begin(&mut self, counts: Option<KernelCounts>) -> Result<(), WatchError> {
        self.before = Reading::of(snapshot(self.pid)?);
        (self.glimpsed, self.last) = (self.before.clone(), self.before.clone());
        self.counts_glimpsed = counts.clone().unwrap_or_default();
        self.counts_before = counts;
        Ok(())
    }

    /// Its processes at the last reading.
    pub(super) fn family(&self) -> Vec<u32> {
        self.last.tree.processes.iter().map(|process| process.pid).collect()
    }

    /// Whether it has ended, with all its threads, waited for or not.
    pub(super) fn notice_end(&mut self) -> bool {
        self.has_ended |= match &self.descriptor {
            Some(descriptor) => {
                let now = Timespec { tv_sec: 0, tv_nsec: 0 };
                matches!(poll(&mut [PollFd::new(descriptor, PollFlags::IN)], Some(&now)), Ok(1..))
            }
            None => is_over(self.pid),
        };
        self.has_ended
    }

    /// Reads /proc; false when the process is gone or cannot be read any more, and the last reading stays.
    pub(super) fn look(&mut self) -> bool {
        let Ok(tree) = ProcessTree::snapshot(self.pid) else { return false };
        let key = |tree: &ProcessTree| tree.processes.first().map(|it| (it.pid, it.started_ticks));
        if key(&tree) != key(&self.before.tree) {
            return false;
        }
        let mut reading = Reading::of(tree);
        // One that has ended and was not waited for yet has times, and no descriptors any more.
        reading.descriptors = reading.descriptors.filter(|found| found.open > 0).or(self.last.descriptors);
        self.last = reading;
        true
    }

    /// The last look, and what a reader must know of the whole window.
    pub(super) fn end(&mut self, interval: Duration) {
        if !self.look() {
            let interval_ns = interval.as_nanos() as u64;
            self.notes.push(match ProcessTree::snapshot(self.pid) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Note::Unread { interval_ns, error: error.to_string() }
                }
                _ => Note::EndedBetween { interval_ns },
            });
        }
        let delta = ProcessTree::delta(&self.before.tree, &self.last.tree);
        if delta.threads_vanished > 0 {
            self.notes.push(Note::ThreadsEnded { count: delta.threads_vanished });
        }
        if delta.processes_vanished > 0 {
            self.notes.push(Note::ProcessesEnded { count: delta.processes_vanished });
        }
        let (from, to) = (self.before.name(), self.last.name());
        if from != to {
            self.notes.push(Note::BecameAnother { from, to });
        }
    }

    /// The first and the last reading.
    pub(super) fn window(&self) -> (Reading, Reading) {
        (self.before.clone(), self.last.clone())
    }

    /// Counts of the window, and when they began.
    pub(super) fn traced(&self, counts: Option<KernelCounts>) -> Option<(KernelCounts, u64)> {
        let before = self.counts_before.as_ref()?;
        Some((counts?.since(before), before.at_ns))
    }

    /// The two readings since the last glimpse.
    pub(super) fn glimpse(&mut self) -> (Reading, Reading) {
        let from = std::mem::replace(&mut self.glimpsed, self.last.clone());
        (from, self.last.clone())
    }

    /// Counts since the last glimpse, and when that was.
    pub(super) fn traced_since_glimpse(&mut self, counts: KernelCounts) -> (KernelCounts, u64) {
        let earlier = std::mem::replace(&mut self.counts_glimpsed, counts);
        (self.counts_glimpsed.since(&earlier), earlier.at_ns)
    }
}

/// Refuses two processes of which one is the other, or below it.
pub(super) fn refuse_relatives(subjects: &[Subject]) -> Result<(), WatchError> {
    let [one, other] = subjects else { return Ok(()) };
    if one.pid == other.pid {
        return Err(WatchError::SameProcess(one.pid));
    }
    for (parent, child) in [(one, other), (other, one)] {
        if parent.family().contains(&child.pid) {
            return Err(WatchError::Relatives { child: child.pid, parent: parent.pid });
        }
    }
    Ok(())
}

fn snapshot(pid: u32) -> Result<ProcessTree, WatchError> {
    match ProcessTree::snapshot(pid) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(WatchError::NoSuchProcess(pid)),
        other => other.map_err(|error| WatchError::Unreadable { pid, error }),
    }
}

/// What each thread of the second reading did since the first, those with most CPU first, and how many more there are.
pub(super) fn thread_rows(
    before: &ProcessTree,
    after: &ProcessTree,
    counts: Option<&KernelCounts>,
) -> (Vec<ThreadFigures>, u64) {
    let traced: HashMap<u32, _> =
        counts.into_iter().flat_map(|counts| &counts.threads).map(|it| (it.tid, it)).collect();
    let mut rows = ProcessTree::thread_figures(before, after);
    for row in &mut rows {
        let own = traced.get(&row.tid);
        (row.calls, row.blocked_ns) = (own.map(|it| it.calls), own.map(|it| it.blocked_ns));
    }
    rows.sort_by_key(|row| (std::cmp::Reverse(row.cpu_ns), row.pid, row.tid));
    let left_out = rows.len().saturating_sub(THREAD_ROWS_MAX) as u64;
    rows.truncate(THREAD_ROWS_MAX);
    (rows, left_out)
}

/// Time in the kernel since the start of each process, by ticks.
fn family_system_ns(tree: &ProcessTree) -> u64 {
    let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
    let of_process = |process: &ProcessSample| {
        files::read_text(format!("/proc/{}/stat", process.pid)).as_deref().and_then(parse::system_ticks)
    };
    tree.processes.iter().filter_map(of_process).map(|ticks| ticks.saturating_mul(tick_ns)).sum()
}

/// What it was called with; its name where that may not be read.
fn command(pid: u32) -> String {
    let words = files::read_text(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = words.trim_end_matches('\0').replace('\0', " ");
    if !words.is_empty() {
        return words;
    }
    files::read_value(format!("/proc/{pid}/comm")).unwrap_or_default()
}

/// What the processes have open; nothing where it may not be listed.
fn descriptors(tree: &ProcessTree) -> Option<Descriptors> {
    let mut found = Descriptors::default();
    let mut left = DESCRIPTORS_MAX;
    for process in &tree.processes {
        let entries = std::fs::read_dir(format!("/proc/{}/fd", process.pid)).ok()?;
        for entry in entries.flatten().take(left) {
            left -= 1;
            let Ok(target) = std::fs::read_link(entry.path()) else { continue };
            let target = target.to_string_lossy();
            found.open += 1;
            found.sockets += u64::from(target.starts_with("socket:"));
            found.epolls += u64::from(target == "anon_inode:[eventpoll]");
            found.rings += u64::from(target == "anon_inode:[io_uring]");
        }
    }
    Some(found)
}

/// Whether its program is one of 32 bits, by the fifth byte of the file (`elf(5)`, EI_CLASS).
pub(super) fn is_of_32_bits(pid: u32) -> bool {
    let mut head = [0; 5];
    let opened = std::fs::File::open(format!("/proc/{pid}/exe"));
    let read = opened.and_then(|mut file| io::Read::read_exact(&mut file, &mut head));
    read.is_ok() && head == *b"\x7fELF\x01"
}

/// Whether a process has ended, waited for or not.
fn is_over(pid: u32) -> bool {
    let text = files::read_text(format!("/proc/{pid}/status")).unwrap_or_default();
    parse::field(&text, "State").is_none_or(|state| state.starts_with(['Z', 'X']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::ThreadSample;

    fn tree(threads: Vec<ThreadSample>) -> ProcessTree {
        let process = ProcessSample { pid: 5, threads, ..ProcessSample::default() };
        ProcessTree { processes: vec![process] }
    }

    fn thread(tid: u32, cpu_ns: u64) -> ThreadSample {
        ThreadSample { tid, cpu_ns, run_delay_ns: cpu_ns / 2, ..ThreadSample::default() }
    }

    #[test]
    fn a_thread_counts_from_the_first_reading_and_a_new_one_from_zero() {
        let before = tree(vec![thread(5, 100), thread(6, 900)]);
        let after = tree(vec![thread(5, 150), thread(6, 30), thread(7, 8)]);
        let (mut rows, left_out) = thread_rows(&before, &after, None);
        rows.sort_by_key(|row| row.tid);
        let cpu: Vec<u64> = rows.iter().map(|row| row.cpu_ns).collect();
        assert_eq!((cpu, left_out), (vec![50, 30, 8], 0));
    }

    #[test]
    fn threads_beyond_the_list_are_counted_and_the_busiest_stay() {
        let all = (1..=THREAD_ROWS_MAX as u32 + 1_000).map(|tid| thread(tid, u64::from(tid))).collect();
        let (rows, left_out) = thread_rows(&ProcessTree::default(), &tree(all), None);
        assert_eq!((rows.len(), left_out), (THREAD_ROWS_MAX, 1_000));
        assert_eq!(rows.iter().map(|row| row.cpu_ns).min(), Some(1_001), "those with least are left out");
    }

    #[test]
    fn this_process_has_a_command_and_descriptors_and_is_not_over() {
        let own = std::process::id();
        assert!(!command(own).is_empty() && !is_of_32_bits(own) && !is_over(own));
        let (one, _other) = std::os::unix::net::UnixStream::pair().expect("sockets");
        let found =
            descriptors(&ProcessTree::snapshot(own).expect("it lives")).expect("its own may be listed");
        assert!(found.sockets >= 2 && found.open >= found.sockets, "{found:?}");
        drop(one);
    }
}
