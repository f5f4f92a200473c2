//! Processes that are watched together, each with its children: their readings, and the differences.

use std::{
    collections::{HashMap, HashSet},
    io,
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use weir_record::observation::{
    self, Descriptors, Note, SELECTED_ROWS_MAX, SelectedProcess, Series, ThreadFigures, Totals,
};

use super::{
    root::Root,
    series::{Collector, Used},
    thread_sums::ThreadSums,
};
use crate::{
    files,
    ladder::tracer::KernelCounts,
    process::{PROCESSES_MAX, ProcessSample, ProcessTree, ThreadDelta, TreeDelta, family_of_all},
    selection::{Rule, Selection},
};

/// In shorter windows, ticks are too coarse to split CPU time.
const SPLIT_WINDOW_NS: u64 = 2_000_000_000;
/// Most descriptors that are checked.
const DESCRIPTORS_MAX: usize = 1 << 20;
/// A note reports CPU that no thread reading contains from this share on,
const UNREAD_SHARE_NOTED: f64 = 0.01;
/// if it exceeds a few ticks: clocks that are not read at the same moment differ by that much.
const UNREAD_NS_NOTED: u64 = 30_000_000;

/// Why processes cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// It does not exist.
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
    /// /proc belongs to another PID namespace: its numbers mean other processes to the kernel.
    #[error("/proc shows another PID namespace than this process lives in")]
    ForeignProc,
    /// It would be compared with itself.
    #[error("{0} is the same process; name another one")]
    SameProcess(u32),
    /// Children are observed with their parent, so these two would be one.
    #[error(
        "process {child} is a child of {parent}, and children are observed with their parent; name one of both"
    )]
    Relatives {
        /// One of the two.
        child: u32,
        /// The other, or its ancestor.
        parent: u32,
    },
}

/// A reading of /proc at one moment.
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

    /// Name of a process's first thread, whose number is the process's. Other threads may have smaller numbers,
    /// because numbers wrap around.
    fn name_of(&self, pid: u32) -> Option<&str> {
        let process = self.tree.processes.iter().find(|process| process.pid == pid)?;
        process.threads.iter().find(|thread| thread.tid == pid).map(|thread| thread.name.as_str())
    }
}

/// Sums over all readings, so that they include threads that ended in between.
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

/// The difference between two readings.
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
            // Not the sum's value, which only has what no reading saw of them.
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

    /// The rows of threads, those with most CPU first, and the number of further ones. A trace only knows living
    /// threads.
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

/// Processes that are watched together.
#[derive(Debug)]
pub(super) struct Subject {
    /// The first of them.
    pub(super) pid: u32,
    pub(super) command: String,
    pub(super) notes: Vec<Note>,
    pub(super) has_ended: bool,
    /// Whether a 32-bit program was among its processes at a reading, while the kernel's programs counted.
    pub(super) had_32_bits: bool,
    /// Whether it was gone at the last reading, so that the figures of /proc are older than the end.
    pub(super) is_read_late: bool,
    /// Selected processes, and those that joined; children are below them.
    roots: Vec<Root>,
    /// The rule for processes that join.
    rule: Option<Rule>,
    selection: Option<observation::Selection>,
    /// Those that joined since the last query.
    joined: Vec<u32>,
    before: Reading,
    /// Start of the window, in ticks since boot.
    began_ticks: u64,
    /// Absent if nothing is traced, or its tables could not be read.
    counts_before: Option<KernelCounts>,
    glimpsed: Reading,
    counts_glimpsed: KernelCounts,
    last: Reading,
    /// Sums since the start of the window.
    did: Sums,
    did_since_glimpse: Sums,
    /// Absent if no intervals were requested.
    intervals: Option<Collector>,
    /// End of the window.
    ended: Option<Instant>,
}

impl Subject {
    /// All processes of a selection by numbers must exist.
    pub(super) fn of(selected: &Selection, interval: Duration) -> Result<Self, WatchError> {
        let mut roots = Vec::new();
        for &pid in &selected.pids {
            match Root::beside(pid, &roots) {
                Some(root) => roots.push(root),
                None if selected.rule.is_none() => return Err(WatchError::NoSuchProcess(pid)),
                None => {}
            }
        }
        let first = selected.pids.first().copied().unwrap_or_default();
        let pid = roots.first().map_or(first, |root| root.pid);
        let reading = Reading::of(snapshot(pid, &roots)?);
        Ok(Self {
            pid,
            command: command(pid),
            notes: Vec::new(),
            has_ended: false,
            had_32_bits: false,
            is_read_late: false,
            selection: of_record(selected, &roots, interval),
            roots,
            rule: selected.rule.clone(),
            joined: Vec::new(),
            before: reading.clone(),
            began_ticks: ticks_since_boot(),
            counts_before: None,
            glimpsed: reading.clone(),
            counts_glimpsed: KernelCounts::default(),
            last: reading,
            did: Sums::default(),
            did_since_glimpse: Sums::default(),
            intervals: None,
            ended: None,
        })
    }

    /// Starts the window.
    pub(super) fn begin(&mut self, counts: Option<KernelCounts>) -> Result<(), WatchError> {
        self.began_ticks = ticks_since_boot();
        self.before = Reading::of(snapshot(self.pid, &self.roots)?);
        (self.glimpsed, self.last) = (self.before.clone(), self.before.clone());
        (self.did, self.did_since_glimpse) = (Sums::default(), Sums::default());
        self.counts_glimpsed = counts.clone().unwrap_or_default();
        self.counts_before = counts;
        Ok(())
    }

    /// Keeps the figures of each interval of the window, which started at `began`.
    pub(super) fn keep_intervals(&mut self, interval: Duration, began: Instant) {
        self.intervals = Some(Collector::new(interval, began, self.counts_before.as_ref()));
    }

    /// Ends an interval with the latest reading.
    pub(super) fn end_interval(&mut self, at: Instant, counts: Option<&KernelCounts>) {
        let did = &self.did.tree;
        let used = Used { cpu_ns: did.cpu_ns, run_delay_ns: did.run_delay_ns };
        if let Some(intervals) = &mut self.intervals {
            intervals.add(at, used, counts);
        }
    }

    /// The figures of each interval, the last of which ends with the window: the later work on the programs is not
    /// counted.
    pub(super) fn take_series(&mut self, counts: Option<&KernelCounts>) -> Option<Series> {
        self.end_interval(self.ended.unwrap_or_else(Instant::now), counts);
        self.intervals.take().map(Collector::finish)
    }

    /// End of the next interval.
    pub(super) fn interval_due(&self) -> Option<Instant> {
        self.intervals.as_ref().map(Collector::due)
    }

    /// Its processes at the last reading.
    pub(super) fn family(&self) -> Vec<u32> {
        self.last.tree.processes.iter().map(|process| process.pid).collect()
    }

    /// The roots of the watched families, as far as /proc shows them.
    pub(super) fn roots(&self) -> Vec<u32> {
        numbers(&self.roots)
    }

    /// Ready when the first living one has ended.
    pub(super) fn descriptor(&self) -> Option<&OwnedFd> {
        self.roots.iter().find(|root| !root.has_ended)?.descriptor.as_ref()
    }

    /// Whether all of them have ended, with all their threads, reaped or not. Children that continue are then
    /// ignored.
    pub(super) fn notice_end(&mut self) -> bool {
        if !self.has_ended && !self.has_living() {
            self.join();
            self.has_ended = !self.has_living();
        }
        self.has_ended
    }

    fn has_living(&mut self) -> bool {
        self.roots.iter_mut().any(|root| !root.notice_end())
    }

    /// Those that joined since the last call.
    pub(super) fn take_joined(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.joined)
    }

    /// The selection for the record.
    pub(super) fn selection(&self) -> Option<observation::Selection> {
        self.selection.clone()
    }

    /// Adds processes that now match the selection and are not children of known ones. It reads all processes of the
    /// machine, so not more often than the documented interval.
    pub(super) fn join(&mut self) {
        if let Some(members) = self.rule.as_ref().map(Rule::members_now) {
            self.take_members(members);
        }
    }

    fn take_members(&mut self, members: Vec<u32>) {
        let seen: HashSet<u32> = self.family().into_iter().collect();
        for pid in strangers(members, family_of_all(&self.roots())) {
            if self.roots.len() >= PROCESSES_MAX {
                let note = Note::JoinedTooMany { processes_max: PROCESSES_MAX as u32 };
                if !self.notes.contains(&note) {
                    self.notes.push(note);
                }
                break;
            }
            let Some(root) = Root::beside(pid, &self.roots) else { continue };
            self.roots.push(root);
            self.joined.push(pid);
            // A child whose parent has ended was known before.
            if let Some(selection) = self.selection.as_mut().filter(|_| !seen.contains(&pid)) {
                selection.joined += 1;
            }
        }
    }

    /// Reads /proc; returns false when the processes are gone or unreadable, and keeps the last reading.
    pub(super) fn look(&mut self) -> bool {
        let Some(mut tree) = self.tree() else { return false };
        self.add_skipped(&mut tree);
        let mut reading = Reading::of(tree);
        self.begin_with_older(&reading.tree);
        // A zombie has times, but no descriptors any more.
        reading.descriptors = reading.descriptors.filter(|found| found.open > 0).or(self.last.descriptors);
        self.take_in(reading);
        // All of them each time: a known one may have become another program.
        if self.counts_before.is_some() && !self.had_32_bits {
            self.had_32_bits = self.family().into_iter().any(is_of_32_bits);
        }
        true
    }

    /// The current processes, without those that only reuse the number of an ended one. Roots that are gone are
    /// removed: their figures are in the sums, and in a long window there may be any number of them.
    fn tree(&mut self) -> Option<ProcessTree> {
        loop {
            let tree = ProcessTree::snapshot_of(&self.roots()).ok()?;
            let started: HashMap<u32, u64> =
                tree.processes.iter().map(|process| (process.pid, process.started_ticks)).collect();
            let mut has_stranger = false;
            self.roots.retain(|root| {
                let now = started.get(&root.pid);
                let is_there = now == Some(&root.started_ticks);
                has_stranger |= !is_there && now.is_some();
                is_there
            });
            if !has_stranger {
                return (!tree.processes.is_empty()).then_some(tree);
            }
        }
    }

    /// Adds processes of the last reading that are still there and that this one skipped: where a child is reaped
    /// while the kernel lists its siblings, the list may lack one of them. Without it the skipped one would end in this
    /// reading, and begin with all of its CPU in the next.
    fn add_skipped(&self, tree: &mut ProcessTree) {
        let there: HashSet<_> = tree.processes.iter().map(ProcessSample::key).collect();
        let missing = self.last.tree.processes.iter().filter(|process| !there.contains(&process.key()));
        let missing: Vec<u32> = missing.map(|process| process.pid).collect();
        if missing.is_empty() {
            return;
        }
        if let Ok(found) = ProcessTree::snapshot_of(&missing) {
            tree.adopt(found);
        }
    }

    /// Excludes what a newly seen process did before the window began.
    fn begin_with_older(&mut self, tree: &ProcessTree) {
        let key = |process: &ProcessSample| (process.pid, process.started_ticks);
        let known: HashSet<_> = self.last.tree.processes.iter().map(key).collect();
        let is_older = |process: &&ProcessSample| {
            process.started_ticks < self.began_ticks && !known.contains(&key(process))
        };
        let older: Vec<ProcessSample> = tree.processes.iter().filter(is_older).cloned().collect();
        for reading in [&mut self.before, &mut self.glimpsed, &mut self.last] {
            reading.tree.processes.extend(older.iter().cloned());
        }
    }

    /// Adds the difference to the last reading: what ends before the next one is in no later reading.
    fn take_in(&mut self, reading: Reading) {
        let tree = ProcessTree::delta(&self.last.tree, &reading.tree);
        let threads = ProcessTree::thread_deltas(&self.last.tree, &reading.tree);
        self.did.add(&tree, &threads);
        self.did_since_glimpse.add(&tree, &threads);
        self.last = reading;
    }

    /// Takes the last reading, and notes about the whole window.
    pub(super) fn end(&mut self, interval: Duration) {
        let was_read = self.look();
        self.ended = Some(Instant::now());
        if !was_read {
            self.is_read_late = true;
            let interval_ns = interval.as_nanos() as u64;
            self.notes.push(match ProcessTree::snapshot_of(&self.roots()) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Note::Unread { interval_ns, error: error.to_string() }
                }
                _ => Note::EndedBetween { interval_ns, by_programs: false },
            });
        }
        self.notes.extend(notes_of_ended(&self.did.tree));
        let names = self.before.name_of(self.pid).zip(self.last.name_of(self.pid));
        if let Some((from, to)) = names.filter(|(from, to)| from != to) {
            self.notes.push(Note::BecameAnother { from: from.to_owned(), to: to.to_owned() });
        }
    }

    /// The difference between the first and the last reading.
    pub(super) fn window(&self) -> Window {
        Window { from: self.before.clone(), to: self.last.clone(), did: self.did.clone() }
    }

    /// Counts of the window, and when they started.
    pub(super) fn traced(&self, counts: Option<KernelCounts>) -> Option<(KernelCounts, u64)> {
        let before = self.counts_before.as_ref()?;
        Some((counts?.since(before), before.at_ns))
    }

    /// The difference since the last glimpse.
    pub(super) fn glimpse(&mut self) -> Window {
        let from = std::mem::replace(&mut self.glimpsed, self.last.clone());
        Window { from, to: self.last.clone(), did: std::mem::take(&mut self.did_since_glimpse) }
    }

    /// Counts since the last glimpse, and its time.
    pub(super) fn traced_since_glimpse(&mut self, counts: KernelCounts) -> (KernelCounts, u64) {
        let earlier = std::mem::replace(&mut self.counts_glimpsed, counts);
        (self.counts_glimpsed.since(&earlier), earlier.at_ns)
    }
}

/// Notes about what ended within a window, and how much of it is missing in the sums.
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

/// Refuses two processes if one is the other, or its descendant.
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

fn snapshot(pid: u32, roots: &[Root]) -> Result<ProcessTree, WatchError> {
    let tree =
        ProcessTree::snapshot_of(&numbers(roots)).map_err(|error| WatchError::Unreadable { pid, error })?;
    if tree.processes.is_empty() { Err(WatchError::NoSuchProcess(pid)) } else { Ok(tree) }
}

fn numbers(roots: &[Root]) -> Vec<u32> {
    roots.iter().map(|root| root.pid).collect()
}

/// Members of a selection that are in no known family. If families could not be listed nothing counts as new: a known
/// process must not be taken for another one.
fn strangers(members: Vec<u32>, known: io::Result<Vec<u32>>) -> Vec<u32> {
    let Ok(known) = known else { return Vec::new() };
    let known: HashSet<u32> = known.into_iter().collect();
    members.into_iter().filter(|pid| !known.contains(pid)).collect()
}

/// The record of a selection at its start.
fn of_record(selected: &Selection, roots: &[Root], interval: Duration) -> Option<observation::Selection> {
    let process = |root: &Root| SelectedProcess { pid: root.pid, command: command(root.pid) };
    Some(observation::Selection {
        found: selected.found.clone()?,
        processes: roots.iter().take(SELECTED_ROWS_MAX).map(process).collect(),
        processes_left_out: roots.len().saturating_sub(SELECTED_ROWS_MAX) as u64,
        joined: 0,
        looked_every_ns: interval.as_nanos() as u64,
    })
}

/// In the unit of process starts in `/proc/PID/stat`.
fn ticks_since_boot() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let (seconds, ns) = (now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs());
    let ticks_per_second = rustix::param::clock_ticks_per_second();
    seconds.saturating_mul(ticks_per_second) + ns.saturating_mul(ticks_per_second) / 1_000_000_000
}

/// Its command line; its name if that is unreadable.
fn command(pid: u32) -> String {
    let words = files::read_text(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = words.trim_end_matches('\0').replace('\0', " ");
    if !words.is_empty() {
        return words;
    }
    files::read_value(format!("/proc/{pid}/comm")).unwrap_or_default()
}

/// Open descriptors of the processes; `None` if they may not be listed.
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

/// Whether its program is a 32-bit one, by the fifth byte of the file (`elf(5)`, EI_CLASS).
pub(super) fn is_of_32_bits(pid: u32) -> bool {
    let mut head = [0; 5];
    let opened = std::fs::File::open(format!("/proc/{pid}/exe"));
    let read = opened.and_then(|mut file| io::Read::read_exact(&mut file, &mut head));
    read.is_ok() && head == *b"\x7fELF\x01"
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
            command: String::new(),
            notes: Vec::new(),
            has_ended: false,
            had_32_bits: false,
            is_read_late: false,
            roots: Vec::new(),
            rule: None,
            selection: None,
            joined: Vec::new(),
            began_ticks: 0,
            before: first.clone(),
            counts_before: None,
            glimpsed: first.clone(),
            counts_glimpsed: KernelCounts::default(),
            last: first,
            did: Sums::default(),
            did_since_glimpse: Sums::default(),
            intervals: None,
            ended: None,
        }
    }

    #[test]
    fn threads_that_begin_and_end_within_a_window_are_counted_up_to_their_last_reading() {
        const MS: u64 = 1_000_000;
        let mut subject = subject(reading(100 * MS, vec![thread(5, 100 * MS)]));
        // Thread 6 started, and another one used 50 ms and is already gone.
        subject.take_in(reading(400 * MS, vec![thread(5, 150 * MS), thread(6, 200 * MS)]));
        // Thread 6 used 50 ms more before it ended.
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
    fn a_process_that_a_reading_skipped_is_in_it_if_it_is_still_there() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("cat starts");
        let whole = ProcessTree::snapshot(std::process::id()).expect("it runs");
        let own = |tree: &ProcessTree| tree.processes.iter().filter(|it| it.pid == child.id()).count();
        assert_eq!(own(&whole), 1);
        let subject = subject(Reading { tree: whole.clone(), descriptors: None, at: Instant::now() });
        let mut skipped = whole;
        skipped.processes.retain(|process| process.pid != child.id());
        subject.add_skipped(&mut skipped);
        assert_eq!(own(&skipped), 1);
        subject.add_skipped(&mut skipped);
        assert_eq!(own(&skipped), 1, "once");
        let stranger = |parent| ProcessSample { pid: 1 << 30, parent, ..ProcessSample::default() };
        let before = skipped.clone();
        skipped.adopt(ProcessTree { processes: vec![stranger(1 << 29)] });
        assert_eq!(skipped, before, "its parent is elsewhere");
        let below = ProcessSample { pid: (1 << 30) + 1, ..stranger(1 << 30) };
        skipped.adopt(ProcessTree { processes: vec![below, stranger(child.id())] });
        assert_eq!(skipped.processes.len(), before.processes.len() + 2, "a child, and its child");
        drop(child.stdin.take());
        child.wait().expect("it can be reaped");
    }

    #[test]
    fn what_a_process_did_before_the_window_is_not_counted_when_it_joins_later() {
        let joining = |pid, started_ticks, cpu_ns| ProcessSample {
            pid,
            started_ticks,
            cpu_ns,
            threads: vec![thread(pid, cpu_ns)],
            ..ProcessSample::default()
        };
        let mut subject = subject(reading(100, vec![thread(5, 100)]));
        subject.began_ticks = 50;
        for (older_ns, younger_ns) in [(900, 30), (950, 40)] {
            let mut now = reading(110, vec![thread(5, 110)]);
            now.tree.processes.extend([joining(8, 49, older_ns), joining(9, 50, younger_ns)]);
            subject.begin_with_older(&now.tree);
            subject.take_in(now);
        }
        let totals = subject.window().totals();
        assert_eq!((totals.cpu_ns, totals.ended_cpu_ns, totals.processes), (10 + 50 + 40, 0, 3));
        let (rows, _) = subject.window().thread_rows(None);
        assert_eq!(rows.iter().map(|row| row.cpu_ns).collect::<Vec<_>>(), [50, 40, 10]);
    }

    /// The root of a process that does not exist.
    fn gone(pid: u32) -> Root {
        Root { pid, started_ticks: 0, descriptor: None, has_ended: false }
    }

    /// A living process next to other roots.
    fn with_roots(others: impl Iterator<Item = Root>) -> Subject {
        let own = Root::of(std::process::id(), 0).expect("it lives");
        Subject { roots: std::iter::once(own).chain(others).collect(), ..subject(reading(0, Vec::new())) }
    }

    #[test]
    fn roots_that_are_gone_make_room_and_what_they_did_stays() {
        let mut subject = with_roots((0..500).map(|it| gone((1 << 29) + it)));
        let mut earlier = reading(0, Vec::new());
        earlier.tree.processes[0].pid = 1 << 29;
        subject.last = earlier.clone();
        let mut later = earlier;
        later.tree.processes[0].cpu_ns = 77_000;
        subject.take_in(later);
        assert!(subject.look() && subject.look());
        assert_eq!(subject.roots(), [std::process::id()]);
        assert!(subject.did.tree.cpu_ns >= 77_000 && subject.did.tree.processes_vanished >= 1);
        // All are gone.
        subject.roots = vec![gone(1 << 29)];
        assert!(!subject.look() && subject.roots.is_empty() && subject.notice_end());
    }

    #[test]
    fn whoever_joins_beyond_the_most_is_not_observed_which_is_told_once() {
        let others = (1..PROCESSES_MAX as u32).map(|it| gone((1 << 29) + it));
        let mut subject = Subject { roots: others.collect(), ..subject(reading(0, Vec::new())) };
        let (mut one, mut other) = (waiting(), waiting());
        for _ in 0..2 {
            subject.take_members(vec![one.id(), other.id()]);
        }
        let note = Note::JoinedTooMany { processes_max: PROCESSES_MAX as u32 };
        assert_eq!((subject.roots.len(), subject.take_joined()), (PROCESSES_MAX, vec![one.id()]));
        assert_eq!(subject.notes, [note]);
        for child in [&mut one, &mut other] {
            drop(child.stdin.take());
            child.wait().expect("it ends with its input");
        }
    }

    fn waiting() -> std::process::Child {
        let mut command = std::process::Command::new("cat");
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null());
        command.spawn().expect("cat, waiting for its input")
    }

    #[test]
    fn nobody_is_taken_in_twice_where_families_cannot_be_listed() {
        let too_many = || Err(io::Error::other("more than there may be"));
        assert_eq!(strangers(vec![5, 6], Ok(vec![5])), [6]);
        assert_eq!(strangers(vec![5, 6], too_many()), [0; 0]);
    }

    #[test]
    fn the_last_interval_ends_with_the_window_whatever_is_done_afterwards() {
        let mut subject = with_roots(std::iter::empty());
        let began = Instant::now();
        subject.keep_intervals(Duration::from_secs(3_600), began);
        subject.end(Duration::from_secs(1));
        let ended = Instant::now();
        // The programs are stopped meanwhile.
        while Instant::now() == ended {}
        let series = subject.take_series(None).expect("it was asked for");
        let [last] = &series.intervals[..] else { panic!("{series:?}") };
        assert!(u128::from(last.length_ns) <= (ended - began).as_nanos(), "{last:?}");
    }

    #[test]
    fn the_name_of_a_process_is_that_of_its_first_thread_whatever_numbers_the_others_have() {
        let named = |tid, name: &str| ThreadSample { name: name.to_owned(), ..thread(tid, 0) };
        let seen = reading(0, vec![named(3, "helper"), named(5, "server"), named(9, "other")]);
        assert_eq!((seen.name_of(5), seen.name_of(3)), (Some("server"), None));
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
    fn this_process_has_a_command_and_descriptors() {
        let own = std::process::id();
        assert!(!command(own).is_empty() && !is_of_32_bits(own));
        let (one, _other) = std::os::unix::net::UnixStream::pair().expect("sockets");
        let found =
            descriptors(&ProcessTree::snapshot(own).expect("it lives")).expect("its own may be listed");
        assert!(found.sockets >= 2 && found.open >= found.sockets, "{found:?}");
        drop(one);
    }
}
