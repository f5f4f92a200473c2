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
use weir_record::observation::{Descriptors, Note, ThreadFigures, Totals};

use super::thread_sums::ThreadSums;
use crate::{
    files,
    ladder::tracer::KernelCounts,
    parse,
    process::{ProcessTree, ThreadDelta, TreeDelta},
};

/// Below this, ticks say nothing of how CPU is split.
const SPLIT_WINDOW_NS: u64 = 2_000_000_000;
/// Most descriptors that are looked at.
const DESCRIPTORS_MAX: usize = 1 << 20;
/// It is told that CPU was used which no reading of a thread has from this share of all on,
const UNREAD_SHARE_NOTED: f64 = 0.01;
/// if it is more than some ticks: by so much clocks differ that are not read at the same moment.
const UNREAD_NS_NOTED: u64 = 30_000_000;

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
}

impl Reading {
    fn of(tree: ProcessTree) -> Self {
        let descriptors = descriptors(&tree);
        Self { tree, descriptors, at: Instant::now() }
    }

    /// That of its first thread, whose number is the process's. Numbers of others may be smaller: they begin anew when
    /// all have been given out.
    fn name(&self) -> String {
        let main = self
            .tree
            .processes
            .first()
            .and_then(|process| process.threads.iter().find(|thread| thread.tid == process.pid));
        main.map(|thread| thread.name.clone()).unwrap_or_default()
    }
}

/// What was done, summed from each reading to the next: so it has what threads did that ended in the meantime.
#[derive(Clone, Debug, Default)]
struct Sums {
    tree: TreeDelta,
    threads: ThreadSums,
}

impl Sums {
    fn add(&mut self, tree: &TreeDelta, threads: &[ThreadDelta]) {
        self.tree.add(tree);
        self.threads.add(threads);
    }
}

/// A stretch between two readings.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub(super) from: Reading,
    pub(super) to: Reading,
    did: Sums,
}

impl Window {
    pub(super) fn totals(&self) -> Totals {
        let (did, ends) = (&self.did.tree, ProcessTree::delta(&self.from.tree, &self.to.tree));
        let living_ns = ends.cpu_ns.saturating_sub(ends.ended_cpu_ns);
        Totals {
            cpu_ns: did.cpu_ns,
            system_ns: (self.length_ns() >= SPLIT_WINDOW_NS).then_some(did.system_ns.min(did.cpu_ns)),
            kernel_thread_cpu_ns: did.kernel_thread_cpu_ns.min(did.cpu_ns),
            // Not the sum's, which has only what no reading saw of them.
            ended_cpu_ns: did.cpu_ns.saturating_sub(living_ns),
            run_delay_ns: did.run_delay_ns,
            context_switches_voluntary: did.context_switches_voluntary,
            context_switches_involuntary: did.context_switches_involuntary,
            processes: self.to.tree.processes.len() as u32,
            threads: ends.threads,
            rss_anon_bytes: ends.rss_anon_bytes,
        }
    }

    pub(super) fn length_ns(&self) -> u64 {
        (self.to.at - self.from.at).as_nanos() as u64
    }

    /// What each thread did, those with most CPU first, and how many more there were. A trace knows of those that live.
    pub(super) fn thread_rows(&self, counts: Option<&KernelCounts>) -> (Vec<ThreadFigures>, u64) {
        let traced: HashMap<u32, _> =
            counts.into_iter().flat_map(|counts| &counts.threads).map(|it| (it.tid, it)).collect();
        let (mut rows, left_out) = self.did.threads.rows();
        for row in rows.iter_mut().filter(|row| !row.has_ended) {
            let own = traced.get(&row.tid);
            (row.calls, row.blocked_ns) = (own.map(|it| it.calls), own.map(|it| it.blocked_ns));
        }
        (rows, left_out)
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
    /// Whether a program of 32 bits was among its processes at a reading, while the kernel's programs counted.
    pub(super) had_32_bits: bool,
    /// It was gone at the last look, so that the figures of /proc are older than the end.
    pub(super) is_read_late: bool,
    before: Reading,
    /// Absent where nothing is traced, or its tables could not be read.
    counts_before: Option<KernelCounts>,
    glimpsed: Reading,
    counts_glimpsed: KernelCounts,
    last: Reading,
    /// Since the window began.
    did: Sums,
    did_since_glimpse: Sums,
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
            had_32_bits: false,
            is_read_late: false,
            before: reading.clone(),
            counts_before: None,
            glimpsed: reading.clone(),
            counts_glimpsed: KernelCounts::default(),
            last: reading,
            did: Sums::default(),
            did_since_glimpse: Sums::default(),
        })
    }

    /// The window begins here.
    pub(super) fn begin(&mut self, counts: Option<KernelCounts>) -> Result<(), WatchError> {
        self.before = Reading::of(snapshot(self.pid)?);
        (self.glimpsed, self.last) = (self.before.clone(), self.before.clone());
        (self.did, self.did_since_glimpse) = (Sums::default(), Sums::default());
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
        self.take_in(reading);
        // All of them each time: one that was looked at before may have become another program.
        if self.counts_before.is_some() && !self.had_32_bits {
            self.had_32_bits = self.family().into_iter().any(is_of_32_bits);
        }
        true
    }

    /// Adds up what was done since the last reading: what ends before the next one is in no later reading.
    fn take_in(&mut self, reading: Reading) {
        let tree = ProcessTree::delta(&self.last.tree, &reading.tree);
        let threads = ProcessTree::thread_deltas(&self.last.tree, &reading.tree);
        self.did.add(&tree, &threads);
        self.did_since_glimpse.add(&tree, &threads);
        self.last = reading;
    }

    /// The last look, and what a reader must know of the whole window.
    pub(super) fn end(&mut self, interval: Duration) {
        if !self.look() {
            self.is_read_late = true;
            let interval_ns = interval.as_nanos() as u64;
            self.notes.push(match ProcessTree::snapshot(self.pid) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Note::Unread { interval_ns, error: error.to_string() }
                }
                _ => Note::EndedBetween { interval_ns, by_programs: false },
            });
        }
        self.notes.extend(notes_of_ended(&self.did.tree));
        let (from, to) = (self.before.name(), self.last.name());
        if from != to {
            self.notes.push(Note::BecameAnother { from, to });
        }
    }

    /// From the first reading to the last.
    pub(super) fn window(&self) -> Window {
        Window { from: self.before.clone(), to: self.last.clone(), did: self.did.clone() }
    }

    /// Counts of the window, and when they began.
    pub(super) fn traced(&self, counts: Option<KernelCounts>) -> Option<(KernelCounts, u64)> {
        let before = self.counts_before.as_ref()?;
        Some((counts?.since(before), before.at_ns))
    }

    /// What was read since the last glimpse.
    pub(super) fn glimpse(&mut self) -> Window {
        let from = std::mem::replace(&mut self.glimpsed, self.last.clone());
        Window { from, to: self.last.clone(), did: std::mem::take(&mut self.did_since_glimpse) }
    }

    /// Counts since the last glimpse, and when that was.
    pub(super) fn traced_since_glimpse(&mut self, counts: KernelCounts) -> (KernelCounts, u64) {
        let earlier = std::mem::replace(&mut self.counts_glimpsed, counts);
        (self.counts_glimpsed.since(&earlier), earlier.at_ns)
    }
}

/// What ended within a window, and how much of that is missing in its sums.
fn notes_of_ended(did: &TreeDelta) -> Vec<Note> {
    let mut notes = Vec::new();
    if did.threads_vanished > 0 {
        notes.push(Note::ThreadsEnded { count: did.threads_vanished, in_sums: true });
    }
    if did.processes_vanished > 0 {
        notes.push(Note::ProcessesEnded { count: did.processes_vanished });
    }
    let unread_ns = did.cpu_ns.saturating_sub(did.living_cpu_ns);
    if unread_ns > UNREAD_NS_NOTED && unread_ns as f64 > UNREAD_SHARE_NOTED * did.cpu_ns as f64 {
        notes.push(Note::EndedUnread { cpu_ns: unread_ns, of_cpu_ns: did.cpu_ns });
    }
    notes
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
    use crate::process::{ProcessSample, ThreadSample};

    fn tree(threads: Vec<ThreadSample>) -> ProcessTree {
        let process = ProcessSample { pid: 5, threads, ..ProcessSample::default() };
        ProcessTree { processes: vec![process] }
    }

    fn thread(tid: u32, cpu_ns: u64) -> ThreadSample {
        ThreadSample { tid, cpu_ns, run_delay_ns: cpu_ns / 2, ..ThreadSample::default() }
    }

    /// A process with its clock and its threads.
    fn reading(cpu_ns: u64, threads: Vec<ThreadSample>) -> Reading {
        let mut tree = tree(threads);
        tree.processes[0].cpu_ns = cpu_ns;
        Reading { tree, descriptors: None, at: Instant::now() }
    }

    fn subject(first: Reading) -> Subject {
        Subject {
            pid: 5,
            descriptor: None,
            command: String::new(),
            notes: Vec::new(),
            has_ended: false,
            had_32_bits: false,
            is_read_late: false,
            before: first.clone(),
            counts_before: None,
            glimpsed: first.clone(),
            counts_glimpsed: KernelCounts::default(),
            last: first,
            did: Sums::default(),
            did_since_glimpse: Sums::default(),
        }
    }

    #[test]
    fn threads_that_begin_and_end_within_a_window_are_counted_up_to_their_last_reading() {
        const MS: u64 = 1_000_000;
        let mut subject = subject(reading(100 * MS, vec![thread(5, 100 * MS)]));
        // Thread 6 was born, and another one had 50 ms and is gone already.
        subject.take_in(reading(400 * MS, vec![thread(5, 150 * MS), thread(6, 200 * MS)]));
        // Thread 6 had 50 ms more before it ended.
        subject.take_in(reading(500 * MS, vec![thread(5, 200 * MS)]));
        let totals = subject.window().totals();
        assert_eq!((totals.cpu_ns, totals.ended_cpu_ns, totals.threads), (400 * MS, 300 * MS, 1));
        assert_eq!(totals.run_delay_ns, (100 + 200) / 2 * MS, "half of the CPU that was read");
        let ended = Note::ThreadsEnded { count: 1, in_sums: true };
        let unread = Note::EndedUnread { cpu_ns: 100 * MS, of_cpu_ns: 400 * MS };
        assert_eq!(notes_of_ended(&subject.did.tree), [ended, unread]);
        assert_eq!(subject.glimpse().totals(), totals, "nobody had looked on before");
        let nothing = subject.glimpse().totals();
        assert_eq!((nothing.cpu_ns, nothing.run_delay_ns, nothing.threads), (0, 0, 1));
    }

    #[test]
    fn the_name_of_a_process_is_that_of_its_first_thread_whatever_numbers_the_others_have() {
        let named = |tid, name: &str| ThreadSample { name: name.to_owned(), ..thread(tid, 0) };
        let seen = reading(0, vec![named(3, "helper"), named(5, "server"), named(9, "other")]);
        assert_eq!(seen.name(), "server");
    }

    #[test]
    fn clocks_that_differ_by_some_ticks_are_no_threads_that_ended() {
        let did = |cpu_ns, living_cpu_ns| TreeDelta { cpu_ns, living_cpu_ns, ..TreeDelta::default() };
        let of = |cpu_ns: u64, unread_ns: u64| notes_of_ended(&did(cpu_ns, cpu_ns - unread_ns)).len();
        assert_eq!((of(1_000_000_000, UNREAD_NS_NOTED), of(1_000_000_000, UNREAD_NS_NOTED + 1)), (0, 1));
        assert_eq!(of(10_000_000_000, 90_000_000), 0, "that is no noticeable share");
        assert!(notes_of_ended(&did(0, 5)).is_empty(), "a thread's clock may be ahead");
    }

    #[test]
    fn a_thread_counts_from_the_first_reading_and_a_new_one_from_zero() {
        let mut subject = subject(reading(0, vec![thread(5, 100), thread(6, 900)]));
        subject.take_in(reading(0, vec![thread(5, 150), thread(6, 30), thread(7, 8)]));
        let (rows, left_out) = subject.window().thread_rows(None);
        let cpu: Vec<_> = rows.iter().map(|row| (row.tid, row.cpu_ns)).collect();
        assert_eq!(
            (cpu, left_out),
            (vec![(5, 50), (6, 30), (7, 8)], 0),
            "another thread has the number 6 now"
        );
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
