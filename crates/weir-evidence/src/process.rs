//! CPU, waiting and memory of a process and its descendants between two moments.
//!
//! Sources and accuracy of the numbers:
//! - CPU of a process is its CPU clock: nanoseconds, all threads, *ended threads included*, so a worker that ends
//!   inside the window loses nothing. Only when that clock cannot be read is it the sum of the living threads.
//! - CPU of a process that ended inside the window and was reaped is taken from its parent's child times, less its
//!   use before the window. Those times are in ticks of 10 ms. A process that was not reaped, or that was adopted by
//!   a process outside the tree, is lost; [`TreeDelta::processes_vanished`] indicates that.
//! - CPU of one thread, its waiting time (`schedstat`) and its switches (`status`) end with the thread: their sums
//!   are lower bounds when threads ended. [`TreeDelta::ended_cpu_ns`] contains the CPU of such threads, also of those
//!   that started and ended between the snapshots. Code that takes more snapshots and adds up their differences
//!   ([`TreeDelta::add`]) knows each thread up to the last snapshot that contains it.
//! - A thread that runs on another CPU when it is read, without a switch since, is known as of the last tick: each
//!   edge may lag by one tick (4 ms at 250 Hz) for a thread that spins, and by almost nothing for one that sleeps
//!   often.
//!
//! The time that the kernel spends for a process in its own threads (softirq, workqueues) is attributed to no process
//! here.

use std::{
    collections::{HashMap, HashSet},
    io,
    path::{Path, PathBuf},
};

use weir_record::{observation::ThreadFigures, window::ObservedWindow};

use crate::{files, parse};

/// Most processes of a tree.
pub const PROCESSES_MAX: usize = 4096;
/// Most threads of a tree.
pub const THREADS_MAX: usize = 65_536;

/// A process and its descendants at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessTree {
    /// The root first, then its descendants.
    pub processes: Vec<ProcessSample>,
}

/// One process at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessSample {
    /// Process number.
    pub pid: u32,
    /// Parent's process number.
    pub parent: u32,
    /// The real user id.
    pub uid: u32,
    /// Start in ticks since boot; identifies the process together with `pid`.
    pub started_ticks: u64,
    /// CPU used since its start, including ended threads; without children.
    pub cpu_ns: u64,
    /// Time in the kernel, in ticks: of all threads, including ended ones; without children.
    pub system_ns: u64,
    /// CPU of children that were reaped, in steps of one tick.
    pub children_cpu_ns: u64,
    /// The kernel part of it.
    pub children_system_ns: u64,
    /// Anonymous resident memory.
    pub rss_anon_bytes: u64,
    /// Living threads, by ascending number.
    pub threads: Vec<ThreadSample>,
}

/// One thread at one moment; all counts are since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadSample {
    /// Thread number.
    pub tid: u32,
    /// Name (`comm`).
    pub name: String,
    /// Time on a CPU.
    pub cpu_ns: u64,
    /// Time runnable and waiting for a CPU.
    pub run_delay_ns: u64,
    /// Voluntary context switches.
    pub context_switches_voluntary: u64,
    /// Involuntary context switches.
    pub context_switches_involuntary: u64,
}

/// What one thread did between two snapshots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadDelta {
    /// Its process.
    pub pid: u32,
    /// Its number and name, and its counts between the two.
    pub did: ThreadSample,
    /// Whether it is new, even if an earlier thread had its number.
    pub is_new: bool,
}

impl From<ThreadDelta> for ThreadFigures {
    /// In the form of records, without fields that only a trace has.
    fn from(ThreadDelta { pid, did, .. }: ThreadDelta) -> Self {
        Self {
            pid,
            tid: did.tid,
            name: did.name,
            cpu_ns: did.cpu_ns,
            run_delay_ns: did.run_delay_ns,
            context_switches_voluntary: did.context_switches_voluntary,
            context_switches_involuntary: did.context_switches_involuntary,
            ..Self::default()
        }
    }
}

/// The difference between two snapshots of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeDelta {
    /// CPU of all threads, including ended ones (see the module documentation).
    pub cpu_ns: u64,
    /// The kernel part of it, in ticks; for ended processes like `cpu_ns`.
    pub system_ns: u64,
    /// The part of io_uring's kernel threads alive at the end; a lower bound when threads ended.
    pub kernel_thread_cpu_ns: u64,
    /// The part of `cpu_ns` that no thread or process alive at the end accounts for.
    pub ended_cpu_ns: u64,
    /// CPU of the threads alive at the end, by their own clocks. The rest of `cpu_ns` belongs to threads and
    /// processes that ended: in a sum over many snapshots the lags of the clocks cancel, which they do not in a sum
    /// of `ended_cpu_ns`.
    pub living_cpu_ns: u64,
    /// Time threads waited for a CPU; a lower bound when threads ended.
    pub run_delay_ns: u64,
    /// Voluntary context switches; a lower bound when threads ended.
    pub context_switches_voluntary: u64,
    /// Involuntary context switches; a lower bound when threads ended.
    pub context_switches_involuntary: u64,
    /// Threads at the end.
    pub threads: u32,
    /// Anonymous resident memory at the end.
    pub rss_anon_bytes: u64,
    /// Threads of the first snapshot that are missing in the second.
    pub threads_vanished: u32,
    /// Processes of the first snapshot that are missing in the second.
    pub processes_vanished: u32,
}

impl ProcessTree {
    /// Reads the process and its descendants. Costs two small files per thread, so some milliseconds for a thousand
    /// threads; threads and processes that end meanwhile are left out.
    pub fn snapshot(root: u32) -> io::Result<Self> {
        let tree = Self::snapshot_of(&[root])?;
        if tree.processes.first().is_none_or(|process| process.pid != root) {
            return Err(io::Error::new(io::ErrorKind::NotFound, format!("no process {root}")));
        }
        Ok(tree)
    }

    /// The same for several processes, some or all of which may be gone.
    pub fn snapshot_of(roots: &[u32]) -> io::Result<Self> {
        Self::of(family_of_all(roots)?)
    }

    /// Reads these processes, without their descendants.
    pub fn of(pids: Vec<u32>) -> io::Result<Self> {
        let mut threads_left = THREADS_MAX;
        let mut processes = Vec::with_capacity(pids.len());
        for pid in pids {
            if let Some(process) = read_process(pid, threads_left)? {
                threads_left -= process.threads.len();
                processes.push(process);
            }
        }
        Ok(Self { processes })
    }

    /// Adds processes of `found` that are missing here: their parents are here, or among them.
    pub(crate) fn adopt(&mut self, found: Self) {
        let mut known: HashSet<u32> = self.processes.iter().map(|process| process.pid).collect();
        let mut rest = found.processes;
        loop {
            let is_missing =
                |process: &ProcessSample| known.contains(&process.parent) && !known.contains(&process.pid);
            let (missing, others): (Vec<_>, Vec<_>) = rest.into_iter().partition(is_missing);
            if missing.is_empty() {
                return;
            }
            known.extend(missing.iter().map(|process| process.pid));
            self.processes.extend(missing);
            rest = others;
        }
    }

    /// The difference between `before` and `after`, two snapshots of the same root.
    pub fn delta(before: &Self, after: &Self) -> TreeDelta {
        let earlier: HashMap<_, _> =
            before.processes.iter().map(|process| (process.key(), process)).collect();
        let surviving: HashSet<_> = after.processes.iter().map(ProcessSample::key).collect();
        let inherited = inherited_times(before, &surviving);
        let nothing = ProcessSample::default();
        let mut delta = TreeDelta::default();
        for process in &after.processes {
            let start = earlier.get(&process.key()).copied().unwrap_or(&nothing);
            let old = inherited.get(&process.pid).copied().unwrap_or_default();
            let new = |now: u64, before: u64, old: u64| now.saturating_sub(before).saturating_sub(old);
            let reaped_ns = new(process.children_cpu_ns, start.children_cpu_ns, old.cpu_ns);
            delta.add_process(start, process, reaped_ns);
            delta.system_ns += process.system_ns.saturating_sub(start.system_ns)
                + new(process.children_system_ns, start.children_system_ns, old.system_ns);
        }
        for process in before.processes.iter().filter(|process| !surviving.contains(&process.key())) {
            delta.processes_vanished += 1;
            delta.threads_vanished += count(process.threads.len());
        }
        delta
    }

    /// What each thread of `after` did since `before`; for a new thread everything. Ended threads are not included.
    pub fn thread_deltas(before: &Self, after: &Self) -> Vec<ThreadDelta> {
        let earlier: HashMap<_, _> =
            before.processes.iter().map(|process| (process.key(), process)).collect();
        let nothing = ProcessSample::default();
        let of = |process: &ProcessSample| {
            let start = earlier.get(&process.key()).copied().unwrap_or(&nothing);
            process
                .threads_since(start)
                .map(|(did, is_known)| ThreadDelta { pid: process.pid, did, is_new: !is_known })
                .collect::<Vec<_>>()
        };
        after.processes.iter().flat_map(of).collect()
    }

    /// The same in the form of records.
    pub fn thread_figures(before: &Self, after: &Self) -> Vec<ThreadFigures> {
        Self::thread_deltas(before, after).into_iter().map(ThreadFigures::from).collect()
    }

    /// The tree without every process that is also in `other`.
    pub fn without(mut self, other: &Self) -> Self {
        let taken: HashSet<_> = other.processes.iter().map(ProcessSample::key).collect();
        self.processes.retain(|process| !taken.contains(&process.key()));
        self
    }
}

impl ProcessSample {
    pub(crate) fn key(&self) -> (u32, u64) {
        (self.pid, self.started_ticks)
    }

    /// What each thread did since an earlier moment, and whether it existed then.
    fn threads_since(&self, start: &Self) -> impl Iterator<Item = (ThreadSample, bool)> {
        let earlier: HashMap<u32, &ThreadSample> =
            start.threads.iter().map(|thread| (thread.tid, thread)).collect();
        self.threads.iter().map(move |thread| {
            // If a count decreased, this is a new thread with a reused number.
            let known = earlier.get(&thread.tid).filter(|start| start.cpu_ns <= thread.cpu_ns);
            (known.map_or_else(|| thread.clone(), |start| thread.since(start)), known.is_some())
        })
    }
}

impl ThreadSample {
    fn since(&self, start: &Self) -> Self {
        Self {
            tid: self.tid,
            name: self.name.clone(),
            cpu_ns: self.cpu_ns.saturating_sub(start.cpu_ns),
            run_delay_ns: self.run_delay_ns.saturating_sub(start.run_delay_ns),
            context_switches_voluntary: self
                .context_switches_voluntary
                .saturating_sub(start.context_switches_voluntary),
            context_switches_involuntary: self
                .context_switches_involuntary
                .saturating_sub(start.context_switches_involuntary),
        }
    }

    /// Whether the kernel runs it for io_uring: a worker or a submission poller.
    pub fn is_uring_kernel_thread(&self) -> bool {
        self.name.starts_with("iou-wrk-") || self.name.starts_with("iou-sqp-")
    }
}

impl TreeDelta {
    fn add_process(&mut self, start: &ProcessSample, end: &ProcessSample, reaped_ns: u64) {
        let (mut matched, mut threads_cpu_ns) = (0, 0_u64);
        for (did, is_known) in end.threads_since(start) {
            matched += usize::from(is_known);
            threads_cpu_ns += did.cpu_ns;
            self.kernel_thread_cpu_ns += if did.is_uring_kernel_thread() { did.cpu_ns } else { 0 };
            self.run_delay_ns += did.run_delay_ns;
            self.context_switches_voluntary += did.context_switches_voluntary;
            self.context_switches_involuntary += did.context_switches_involuntary;
        }
        let own_ns = end.cpu_ns.saturating_sub(start.cpu_ns);
        self.cpu_ns += own_ns + reaped_ns;
        self.ended_cpu_ns += own_ns.saturating_sub(threads_cpu_ns) + reaped_ns;
        self.living_cpu_ns += threads_cpu_ns;
        self.threads += count(end.threads.len());
        self.rss_anon_bytes += end.rss_anon_bytes;
        self.threads_vanished += count(start.threads.len() - matched);
    }

    /// Adds a later window of the same tree; levels are taken from the later one.
    pub fn add(&mut self, later: &Self) {
        self.cpu_ns += later.cpu_ns;
        self.system_ns += later.system_ns;
        self.kernel_thread_cpu_ns += later.kernel_thread_cpu_ns;
        self.ended_cpu_ns += later.ended_cpu_ns;
        self.living_cpu_ns += later.living_cpu_ns;
        self.run_delay_ns += later.run_delay_ns;
        self.context_switches_voluntary += later.context_switches_voluntary;
        self.context_switches_involuntary += later.context_switches_involuntary;
        self.threads = later.threads;
        self.rss_anon_bytes = later.rss_anon_bytes;
        self.threads_vanished += later.threads_vanished;
        self.processes_vanished += later.processes_vanished;
    }

    /// Writes these figures into a record; engine counters and noise stay unchanged.
    pub fn fill(&self, window: &mut ObservedWindow) {
        window.cpu_ns = self.cpu_ns;
        window.kernel_thread_cpu_ns = self.kernel_thread_cpu_ns;
        window.run_delay_ns = self.run_delay_ns;
        window.context_switches_voluntary = self.context_switches_voluntary;
        window.context_switches_involuntary = self.context_switches_involuntary;
        window.threads = self.threads;
        window.rss_anon_bytes = self.rss_anon_bytes;
    }
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// Times of processes that vanished.
#[derive(Clone, Copy, Debug, Default)]
struct Inherited {
    cpu_ns: u64,
    system_ns: u64,
}

/// What vanished processes had used before the first snapshot, by their nearest surviving ancestor: it will have
/// arrived in that ancestor's child times, but it is older than the window.
fn inherited_times(before: &ProcessTree, surviving: &HashSet<(u32, u64)>) -> HashMap<u32, Inherited> {
    let by_pid: HashMap<u32, &ProcessSample> =
        before.processes.iter().map(|process| (process.pid, process)).collect();
    let mut inherited: HashMap<u32, Inherited> = HashMap::new();
    for process in before.processes.iter().filter(|process| !surviving.contains(&process.key())) {
        let mut ancestor = by_pid.get(&process.parent);
        // Bounded, because a snapshot taken while numbers are reused could contain a cycle.
        for _ in 0..before.processes.len() {
            match ancestor {
                Some(found) if surviving.contains(&found.key()) => {
                    let sum = inherited.entry(found.pid).or_default();
                    sum.cpu_ns += process.cpu_ns + process.children_cpu_ns;
                    sum.system_ns += process.system_ns + process.children_system_ns;
                    break;
                }
                Some(found) => ancestor = by_pid.get(&found.parent),
                None => break,
            }
        }
    }
    inherited
}

/// The process and its descendants, parents before children.
pub fn family_of(root: u32) -> io::Result<Vec<u32>> {
    family_of_all(&[root])
}

/// The same for several processes, each once. The observing process is left out unless it is named: otherwise
/// observing its shell would include the observer.
pub fn family_of_all(roots: &[u32]) -> io::Result<Vec<u32>> {
    family(roots, lists_children())
}

/// Whether a process is the same as another one, or its ancestor.
pub fn is_above(above: u32, pid: u32) -> bool {
    above == pid || ancestors(pid, parent).any(|pid| pid == above)
}

/// The parent of a process, its parent's parent, and so on; bounded, because ending processes may form a cycle.
pub(crate) fn ancestors(pid: u32, parent: impl Fn(u32) -> Option<u32>) -> impl Iterator<Item = u32> {
    std::iter::successors(parent(pid), move |pid| parent(*pid)).take(PROCESSES_MAX)
}

/// The parent of a process.
pub(crate) fn parent(pid: u32) -> Option<u32> {
    let text = files::read_text(format!("/proc/{pid}/stat"))?;
    Some(parse::stat_line(&text)?.parent)
}

/// Not every kernel lists children (CONFIG_PROC_CHILDREN); the alternative is to read the parent of every process.
fn lists_children() -> bool {
    Path::new("/proc/thread-self/children").exists()
}

/// CPU of the process and its living descendants since their start, including ended threads. Unreadable processes
/// count as zero. Cheaper than a snapshot, and exact for processes that sleep.
pub fn family_cpu_ns(root: u32) -> u64 {
    let pids = family_of(root).unwrap_or_default();
    pids.into_iter().filter_map(|pid| weir_sys::clock::process_cpu_ns(pid).ok()).sum()
}

/// Whether the process is stopped by a signal; a process that cannot be read is gone, which counts as stopped.
pub fn is_stopped(pid: u32) -> bool {
    let text = files::read_text(format!("/proc/{pid}/status")).unwrap_or_default();
    parse::field(&text, "State").is_none_or(|state| state.starts_with(['T', 'Z', 'X']))
}

/// CPUs that a process may run on, in the kernel's form (`0-3,8`).
pub fn cpus_allowed(pid: u32) -> Option<String> {
    let text = files::read_text(format!("/proc/{pid}/status"))?;
    parse::field(&text, "Cpus_allowed_list").map(str::to_owned)
}

/// The kernel's softirq threads: on loopback they process what the sender did not.
pub fn softirq_threads() -> Vec<u32> {
    let is_softirq = |pid: &u32| {
        files::read_text(format!("/proc/{pid}/comm")).is_some_and(|name| name.starts_with("ksoftirqd/"))
    };
    files::numbered_entries("/proc").into_iter().filter(is_softirq).collect()
}

/// CPU of kernel threads or processes, each without its descendants.
pub fn cpu_ns_of(pids: &[u32]) -> u64 {
    let one = |pid: &u32| {
        let text = files::read_text(format!("/proc/{pid}/schedstat"))?;
        Some(parse::schedstat(&text)?.0)
    };
    pids.iter().filter_map(one).sum()
}

/// The roots and their descendants, parents before children.
fn family(roots: &[u32], lists_children: bool) -> io::Result<Vec<u32>> {
    let mut seen = HashSet::new();
    let mut found: Vec<u32> = roots.iter().copied().filter(|root| seen.insert(*root)).collect();
    seen.insert(std::process::id());
    let parents = if lists_children { Vec::new() } else { all_parents() };
    let mut next = 0;
    while next < found.len() {
        let children =
            if lists_children { listed_children(found[next]) } else { children_in(&parents, found[next]) };
        found.extend(children.into_iter().filter(|child| seen.insert(*child)));
        if found.len() > PROCESSES_MAX {
            return Err(too_large("processes", PROCESSES_MAX));
        }
        next += 1;
    }
    Ok(found)
}

fn too_large(what: &str, limit: usize) -> io::Error {
    io::Error::other(format!(
        "more than {limit} {what} would be observed at one time; observe fewer processes"
    ))
}

fn listed_children(pid: u32) -> Vec<u32> {
    let mut children = Vec::new();
    for tid in files::numbered_entries(format!("/proc/{pid}/task")) {
        let text = files::read_text(format!("/proc/{pid}/task/{tid}/children")).unwrap_or_default();
        children.extend(text.split_ascii_whitespace().filter_map(|word| word.parse::<u32>().ok()));
    }
    children
}

/// Every process with its parent.
fn all_parents() -> Vec<(u32, u32)> {
    files::numbered_entries("/proc").into_iter().filter_map(|pid| Some((pid, parent(pid)?))).collect()
}

fn children_in(parents: &[(u32, u32)], pid: u32) -> Vec<u32> {
    parents.iter().filter(|(_, parent)| *parent == pid).map(|(child, _)| *child).collect()
}

fn read_process(pid: u32, threads_max: usize) -> io::Result<Option<ProcessSample>> {
    let directory = PathBuf::from(format!("/proc/{pid}"));
    let Some(line) = files::read_text(directory.join("stat")).as_deref().and_then(parse::stat_line) else {
        return Ok(None);
    };
    let clock_ns = weir_sys::clock::process_cpu_ns(pid).ok();
    let tids = files::numbered_entries(directory.join("task"));
    if tids.len() > threads_max {
        return Err(too_large("threads", THREADS_MAX));
    }
    let mut threads = Vec::with_capacity(tids.len());
    let (mut rss_anon_bytes, mut uid) = (0, 0);
    for tid in tids {
        let task = directory.join("task").join(tid.to_string());
        let (Some(times), Some(status)) =
            (files::read_text(task.join("schedstat")), files::read_text(task.join("status")))
        else {
            continue;
        };
        // The memory is the same for every thread; a zombie thread shows none.
        rss_anon_bytes = rss_anon_bytes.max(parse::number_field(&status, "RssAnon").unwrap_or(0) * 1024);
        uid = parse::number_field(&status, "Uid").and_then(|uid| u32::try_from(uid).ok()).unwrap_or(0);
        threads.push(thread_sample(tid, &times, &status));
    }
    let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
    Ok(Some(ProcessSample {
        pid,
        parent: line.parent,
        uid,
        started_ticks: line.started_ticks,
        cpu_ns: clock_ns.unwrap_or_else(|| threads.iter().map(|thread| thread.cpu_ns).sum()),
        system_ns: line.system_ticks.saturating_mul(tick_ns),
        children_cpu_ns: line.children_ticks.saturating_mul(tick_ns),
        children_system_ns: line.children_system_ticks.saturating_mul(tick_ns),
        rss_anon_bytes,
        threads,
    }))
}

fn thread_sample(tid: u32, times: &str, status: &str) -> ThreadSample {
    let (cpu_ns, run_delay_ns) = parse::schedstat(times).unwrap_or_default();
    ThreadSample {
        tid,
        name: parse::field(status, "Name").unwrap_or_default().to_owned(),
        cpu_ns,
        run_delay_ns,
        context_switches_voluntary: parse::number_field(status, "voluntary_ctxt_switches").unwrap_or(0),
        context_switches_involuntary: parse::number_field(status, "nonvoluntary_ctxt_switches").unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(tid: u32, name: &str, cpu_ns: u64) -> ThreadSample {
        ThreadSample {
            tid,
            name: name.to_owned(),
            cpu_ns,
            run_delay_ns: cpu_ns / 10,
            context_switches_voluntary: cpu_ns / 100,
            context_switches_involuntary: cpu_ns / 1000,
        }
    }

    fn process(
        pid: u32,
        parent: u32,
        cpu_ns: u64,
        children_cpu_ns: u64,
        threads: Vec<ThreadSample>,
    ) -> ProcessSample {
        let started_ticks = u64::from(pid);
        ProcessSample {
            pid,
            parent,
            uid: 0,
            started_ticks,
            cpu_ns,
            children_cpu_ns,
            rss_anon_bytes: 4096,
            threads,
            ..ProcessSample::default()
        }
    }

    fn tree(processes: Vec<ProcessSample>) -> ProcessTree {
        ProcessTree { processes }
    }

    #[test]
    fn kernel_threads_of_the_ring_are_counted_apart() {
        let before = tree(vec![process(
            1,
            0,
            5_000,
            0,
            vec![thread(1, "server", 4_000), thread(2, "iou-sqp-1", 1_000)],
        )]);
        let end =
            vec![thread(1, "server", 7_000), thread(2, "iou-sqp-1", 3_000), thread(3, "iou-wrk-1", 500)];
        let delta = ProcessTree::delta(&before, &tree(vec![process(1, 0, 10_500, 0, end)]));
        assert_eq!(delta.cpu_ns, 5_500);
        assert_eq!(delta.kernel_thread_cpu_ns, 2_500);
        assert_eq!(delta.ended_cpu_ns, 0);
        assert_eq!(delta.run_delay_ns, 550);
        assert_eq!((delta.context_switches_voluntary, delta.context_switches_involuntary), (55, 5));
        assert_eq!((delta.threads, delta.rss_anon_bytes), (3, 4096));
        let mut window = ObservedWindow::default();
        delta.fill(&mut window);
        assert_eq!((window.cpu_ns, window.kernel_thread_cpu_ns, window.threads), (5_500, 2_500, 3));
    }

    #[test]
    fn a_thread_that_ended_leaves_its_cpu_in_the_process_clock() {
        let before = tree(vec![process(1, 0, 5_000, 0, vec![thread(1, "a", 4_000), thread(2, "b", 1_000)])]);
        let after = tree(vec![process(1, 0, 9_000, 0, vec![thread(1, "a", 5_000)])]);
        let delta = ProcessTree::delta(&before, &after);
        assert_eq!((delta.cpu_ns, delta.ended_cpu_ns, delta.threads_vanished), (4_000, 3_000, 1));
    }

    #[test]
    fn a_thread_number_used_again_counts_from_zero() {
        let before = tree(vec![process(1, 0, 4_000, 0, vec![thread(1, "a", 1_000), thread(2, "b", 3_000)])]);
        let after = tree(vec![process(1, 0, 4_700, 0, vec![thread(1, "a", 1_000), thread(2, "c", 700)])]);
        let delta = ProcessTree::delta(&before, &after);
        assert_eq!((delta.cpu_ns, delta.ended_cpu_ns, delta.threads_vanished), (700, 0, 1));
    }

    #[test]
    fn counters_that_wrapped_count_nothing_and_the_others_of_the_thread_stay() {
        let of = |cpu_ns: u64, others: u64| {
            let own = ThreadSample {
                run_delay_ns: others,
                context_switches_voluntary: others,
                context_switches_involuntary: others,
                ..thread(1, "a", cpu_ns)
            };
            tree(vec![process(1, 0, cpu_ns, others, vec![own])])
        };
        let (before, after) = (of(1_000, u64::MAX), of(1_700, 5));
        let delta = ProcessTree::delta(&before, &after);
        assert_eq!((delta.cpu_ns, delta.threads_vanished), (700, 0));
        assert_eq!((delta.run_delay_ns, delta.ended_cpu_ns), (0, 0));
        assert_eq!((delta.context_switches_voluntary, delta.context_switches_involuntary), (0, 0));
        let rows = ProcessTree::thread_figures(&before, &after);
        let [row] = rows.as_slice() else { panic!("one thread: {rows:?}") };
        assert_eq!((row.cpu_ns, row.run_delay_ns, row.context_switches_voluntary), (700, 0, 0));
        assert_eq!(ProcessTree::delta(&of(u64::MAX, 0), &of(3, 0)).cpu_ns, 0, "the clock went back");
    }

    #[test]
    fn a_child_born_in_the_window_counts_whole() {
        let before = tree(vec![process(1, 0, 1_000, 0, vec![])]);
        let after =
            tree(vec![process(1, 0, 1_500, 0, vec![]), process(2, 1, 300, 40, vec![thread(2, "x", 300)])]);
        assert_eq!(ProcessTree::delta(&before, &after).cpu_ns, 840);
    }

    #[test]
    fn a_child_that_ended_counts_without_what_it_used_before_the_window() {
        // 2 had used 70, its own child 3 had used 30; both end, and 1 inherits 70+30+25, of which 25 are new.
        let before = tree(vec![
            process(1, 0, 1_000, 10, vec![]),
            process(2, 1, 70, 0, vec![]),
            process(3, 2, 30, 0, vec![]),
        ]);
        let after = tree(vec![process(1, 0, 1_100, 135, vec![])]);
        let delta = ProcessTree::delta(&before, &after);
        assert_eq!((delta.cpu_ns, delta.ended_cpu_ns, delta.processes_vanished), (125, 25 + 100, 2));
    }

    #[test]
    fn time_in_the_kernel_of_a_child_that_ended_is_counted_once_whether_anybody_waited_for_it_or_not() {
        let with = |system_ns, children_system_ns, pid| ProcessSample {
            system_ns,
            children_system_ns,
            ..process(pid, u32::from(pid == 2), 0, 0, vec![])
        };
        // The child had 30 before, and 5 more; the parent did 90 meanwhile.
        let before = tree(vec![with(100, 0, 1), with(30, 0, 2)]);
        let of = |children_system_ns| {
            ProcessTree::delta(&before, &tree(vec![with(190, children_system_ns, 1)])).system_ns
        };
        assert_eq!((of(35), of(0)), (95, 90));
    }

    #[test]
    fn a_process_number_used_again_is_another_process() {
        let before =
            tree(vec![process(1, 0, 0, 0, vec![]), process(2, 1, 9_000, 0, vec![thread(2, "old", 9_000)])]);
        let mut reborn = process(2, 1, 50, 0, vec![thread(2, "new", 50)]);
        reborn.started_ticks = 99;
        let delta = ProcessTree::delta(&before, &tree(vec![process(1, 0, 0, 0, vec![]), reborn]));
        assert_eq!((delta.cpu_ns, delta.processes_vanished, delta.threads_vanished), (50, 1, 1));
    }

    #[test]
    fn nothing_between_equal_snapshots() {
        let same = tree(vec![process(1, 0, 9, 9, vec![thread(1, "a", 9)]), process(2, 1, 5, 0, vec![])]);
        let delta = ProcessTree::delta(&same, &same);
        assert_eq!((delta.cpu_ns, delta.run_delay_ns, delta.threads_vanished), (0, 0, 0));
        assert!(same.clone().without(&same).processes.is_empty());
    }

    #[test]
    fn both_ways_to_find_children_find_a_living_child() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("cat, waiting for its input");
        let own = std::process::id();
        for lists_children in [Path::new("/proc/thread-self/children").exists(), false] {
            let found = family(&[own], lists_children).expect("own process");
            assert_eq!(found[0], own);
            assert!(found.contains(&child.id()), "listed {lists_children}: {found:?}");
        }
        drop(child.stdin.take());
        child.wait().expect("cat ends with its input");
    }

    #[test]
    fn broken_thread_files_read_as_zero() {
        assert_eq!(thread_sample(7, "", ""), ThreadSample { tid: 7, ..ThreadSample::default() });
        let status = "Name:\t(odd) name)\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_sw";
        let sample = thread_sample(7, "55", status);
        assert_eq!(
            (sample.name.as_str(), sample.cpu_ns, sample.context_switches_voluntary),
            ("(odd) name)", 0, 12)
        );
    }
}
