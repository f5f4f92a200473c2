//! Watching one process and its children for a while: what /proc tells at both ends, and the kernel's programs between.
//!
//! /proc is read once a second, so that a process that ends leaves figures; the kernel's programs keep their sums
//! themselves and are read once. Nothing here prints, and nothing is judged.

use std::{
    collections::HashMap,
    io,
    os::fd::OwnedFd,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};
use weir_record::{
    SCHEMA_VERSION,
    observation::{
        Descriptors, Ending, Note, Observation, Obstacle, Rung, RungState, THREAD_ROWS_MAX, ThreadFigures,
        Totals, Trace,
    },
};

use crate::{
    files,
    fingerprint::fingerprint,
    ladder::{
        Group, cost,
        rung::{self, Facts},
        trace::trace,
        tracer::{KernelCounts, Tracer, TracerError},
    },
    parse,
    process::{ProcessSample, ProcessTree, family_of},
};

/// Time between two readings of /proc.
const INTERVAL: Duration = Duration::from_secs(1);
/// Longest time until a stop is noticed.
const STOP_NOTICED: Duration = Duration::from_millis(100);
/// Below this, ticks say nothing of how CPU is split.
const SPLIT_WINDOW_NS: u64 = 2_000_000_000;
/// Most descriptors that are looked at.
const DESCRIPTORS_MAX: usize = 1 << 20;

/// What is to be watched.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// Highest rung to use, [`Rung::Process`] or [`Rung::Programs`].
    pub rung: Rung,
    /// What the programs count.
    pub groups: &'a [Group],
}

/// Why a process cannot be watched.
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
}

/// A process that is being watched.
#[derive(Debug)]
pub struct Watch {
    pid: u32,
    descriptor: Option<OwnedFd>,
    command: String,
    ladder: Vec<RungState>,
    notes: Vec<Note>,
    tracing: Option<Tracing>,
    began: Instant,
    began_unix_s: u64,
    before: ProcessTree,
    system_ns_before: u64,
    last: Last,
}

/// The newest reading of /proc.
#[derive(Debug)]
struct Last {
    tree: ProcessTree,
    system_ns: u64,
    descriptors: Option<Descriptors>,
    at: Instant,
}

#[derive(Debug)]
struct Tracing {
    tracer: Tracer,
    baseline: KernelCounts,
    cost: cost::Tried,
}

impl Watch {
    /// Begins now.
    pub fn begin(pid: u32, plan: Plan<'_>) -> Result<Self, WatchError> {
        let read = |pid| match ProcessTree::snapshot(pid) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(WatchError::NoSuchProcess(pid)),
            other => other.map_err(|error| WatchError::Unreadable { pid, error }),
        };
        read(pid)?;
        let descriptor = Pid::from_raw(pid as i32).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let mut ladder = rung::ladder(&Facts::read());
        let mut notes = Vec::new();
        let tracing = if plan.rung >= Rung::Programs {
            begin_tracing(pid, plan, &mut ladder, &mut notes)
        } else {
            None
        };
        let before = read(pid)?;
        let last = Last {
            tree: before.clone(),
            system_ns: family_system_ns(&before),
            descriptors: None,
            at: Instant::now(),
        };
        Ok(Self {
            pid,
            descriptor,
            command: command(pid),
            ladder,
            notes,
            tracing,
            began: last.at,
            began_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            system_ns_before: last.system_ns,
            before,
            last,
        })
    }

    /// Whether the kernel's programs count.
    pub fn is_traced(&self) -> bool {
        self.tracing.is_some()
    }

    /// Watches until the time is over, the process ends, or the flag is set.
    pub fn run(&mut self, length: Option<Duration>, stop: &AtomicBool) -> Ending {
        self.run_until(length, || stop.load(Ordering::Relaxed))
    }

    /// The same with any way to be stopped, which is asked ten times a second.
    pub fn run_until(&mut self, length: Option<Duration>, is_stopped: impl Fn() -> bool) -> Ending {
        let deadline = length.and_then(|length| self.began.checked_add(length));
        let mut due = self.began + INTERVAL;
        loop {
            let now = Instant::now();
            if is_stopped() {
                return Ending::Interrupted;
            }
            if deadline.is_some_and(|deadline| now >= deadline) {
                return Ending::Time;
            }
            if now >= due {
                self.look();
                due = now + INTERVAL;
            }
            let until = deadline.map_or(due, |deadline| deadline.min(due));
            let patience = until.saturating_duration_since(now).min(STOP_NOTICED);
            if self.has_ended(patience) {
                return Ending::TargetEnded;
            }
        }
    }

    /// Waits; true when the process ended meanwhile.
    fn has_ended(&self, patience: Duration) -> bool {
        let Some(descriptor) = &self.descriptor else {
            std::thread::park_timeout(patience);
            return is_over(self.pid);
        };
        let timeout = Timespec {
            tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: patience.subsec_nanos().into(),
        };
        // A signal ends the wait early, which does no harm.
        matches!(poll(&mut [PollFd::new(descriptor, PollFlags::IN)], Some(&timeout)), Ok(1..))
    }

    /// Reads /proc; false when the process is gone, and the last reading stays.
    fn look(&mut self) -> bool {
        let Ok(tree) = ProcessTree::snapshot(self.pid) else { return false };
        let key = |tree: &ProcessTree| tree.processes.first().map(|it| (it.pid, it.started_ticks));
        if key(&tree) != key(&self.before) {
            return false;
        }
        // One that has ended and was not waited for yet has times, and no descriptors any more.
        let descriptors = descriptors(&tree).filter(|found| found.open > 0).or(self.last.descriptors);
        self.last = Last { system_ns: family_system_ns(&tree), tree, descriptors, at: Instant::now() };
        true
    }

    /// Ends, and gives what was seen.
    pub fn end(mut self, ending: Ending) -> Observation {
        let is_whole = self.look();
        if !is_whole {
            self.notes.push(Note::EndedBetween { interval_ns: INTERVAL.as_nanos() as u64 });
        }
        let (traced, threads) = match self.tracing.take().map(Tracing::end) {
            Some((trace, counts)) => (Some(trace), Some(counts)),
            None => (None, None),
        };
        let window_ns = (self.last.at - self.began).as_nanos() as u64;
        let totals = self.totals(window_ns);
        self.note_what_changed();
        if traced.is_some() && is_of_32_bits(self.pid) {
            self.notes.push(Note::Became32Bits);
        }
        let mut rows = thread_rows(&self.before, &self.last.tree, threads.as_ref());
        rows.sort_by_key(|row| (std::cmp::Reverse(row.cpu_ns), row.pid, row.tid));
        let threads_left_out = rows.len().saturating_sub(THREAD_ROWS_MAX) as u64;
        rows.truncate(THREAD_ROWS_MAX);
        Observation {
            schema_version: SCHEMA_VERSION,
            fingerprint: fingerprint(),
            began_unix_s: self.began_unix_s,
            pid: self.pid,
            command: self.command,
            window_ns,
            ending,
            rung: if traced.is_some() { Rung::Programs } else { Rung::Process },
            ladder: self.ladder,
            notes: self.notes,
            totals,
            descriptors: self.last.descriptors,
            threads: rows,
            threads_left_out,
            trace: traced,
            bound: None,
            strace: None,
        }
    }

    fn totals(&self, window_ns: u64) -> Totals {
        let delta = ProcessTree::delta(&self.before, &self.last.tree);
        let system_ns = self.last.system_ns.saturating_sub(self.system_ns_before);
        Totals {
            cpu_ns: delta.cpu_ns,
            system_ns: (window_ns >= SPLIT_WINDOW_NS).then_some(system_ns.min(delta.cpu_ns)),
            kernel_thread_cpu_ns: delta.kernel_thread_cpu_ns,
            ended_cpu_ns: delta.ended_cpu_ns,
            run_delay_ns: delta.run_delay_ns,
            context_switches_voluntary: delta.context_switches_voluntary,
            context_switches_involuntary: delta.context_switches_involuntary,
            processes: self.last.tree.processes.len() as u32,
            threads: delta.threads,
            rss_anon_bytes: delta.rss_anon_bytes,
        }
    }

    fn note_what_changed(&mut self) {
        let delta = ProcessTree::delta(&self.before, &self.last.tree);
        if delta.threads_vanished > 0 {
            self.notes.push(Note::ThreadsEnded { count: delta.threads_vanished });
        }
        if delta.processes_vanished > 0 {
            self.notes.push(Note::ProcessesEnded { count: delta.processes_vanished });
        }
        let name = |tree: &ProcessTree| {
            let main = tree.processes.first().and_then(|process| process.threads.first());
            main.map(|thread| thread.name.clone()).unwrap_or_default()
        };
        let (from, to) = (name(&self.before), name(&self.last.tree));
        if from != to {
            self.notes.push(Note::BecameAnother { from, to });
        }
    }
}

/// Programs at work, unless something is in the way, which is noted.
fn begin_tracing(
    pid: u32,
    plan: Plan<'_>,
    ladder: &mut [RungState],
    notes: &mut Vec<Note>,
) -> Option<Tracing> {
    let state = ladder.iter_mut().find(|state| state.rung == Rung::Programs)?;
    if state.obstacle.is_none() && is_of_32_bits(pid) {
        state.obstacle = Some(Obstacle::Bits32);
    }
    if state.obstacle.is_none() {
        match Tracing::begin(pid, plan.groups) {
            Ok(tracing) => {
                notes.extend(tracing.notes());
                return Some(tracing);
            }
            Err(error) => {
                let error = match std::error::Error::source(&error) {
                    Some(cause) => format!("{error}: {cause}"),
                    None => error.to_string(),
                };
                state.obstacle = Some(Obstacle::Refused { error });
            }
        }
    }
    notes.extend(state.obstacle.clone().map(|obstacle| Note::NotTraced { obstacle }));
    None
}

impl Tracing {
    fn begin(pid: u32, groups: &[Group]) -> Result<Self, TracerError> {
        let untraced = cost::untraced();
        let tracer = Tracer::start(&[], groups)?;
        let cost = cost::tried(&tracer, &untraced)?;
        let members = family_of(pid).map_err(|_| TracerError::NoSuchProcess(pid))?;
        tracer.observe(&members)?;
        let baseline = tracer.read().map_err(|error| TracerError::Refused {
            what: "a reading".to_owned(),
            log: String::new(),
            error,
        })?;
        Ok(Self { tracer, baseline, cost })
    }

    fn notes(&self) -> Vec<Note> {
        let left_out = self.tracer.left_out().iter().map(|it| Note::PartLeftOut {
            tracepoint: it.tracepoint.to_owned(),
            error: it.error.to_string(),
        });
        let cost::Tried { made, counted, .. } = self.cost;
        let miscounted = (made != counted).then_some(Note::Miscounted { made, counted });
        left_out.chain(miscounted).collect()
    }

    /// The record, and the sums of the window for those who want threads.
    fn end(self) -> (Trace, KernelCounts) {
        let is_split = !self.tracer.left_out().iter().any(|it| it.group == Group::Scheduling);
        let counts = self.tracer.finish().unwrap_or_default().since(&self.baseline);
        (trace(&counts, self.baseline.at_ns, is_split, self.cost.cost), counts)
    }
}

/// What each thread of the second reading did since the first.
fn thread_rows(
    before: &ProcessTree,
    after: &ProcessTree,
    counts: Option<&KernelCounts>,
) -> Vec<ThreadFigures> {
    let traced: HashMap<u32, _> =
        counts.into_iter().flat_map(|counts| &counts.threads).map(|it| (it.tid, it)).collect();
    let mut rows = ProcessTree::thread_figures(before, after);
    for row in &mut rows {
        let own = traced.get(&row.tid);
        (row.calls, row.blocked_ns) = (own.map(|it| it.calls), own.map(|it| it.blocked_ns));
    }
    rows
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
fn is_of_32_bits(pid: u32) -> bool {
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
        let mut rows = thread_rows(&before, &after, None);
        rows.sort_by_key(|row| row.tid);
        let cpu: Vec<u64> = rows.iter().map(|row| row.cpu_ns).collect();
        assert_eq!(cpu, [50, 30, 8]);
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

    #[test]
    fn a_process_that_is_not_there_is_told() {
        let plan = Plan { rung: Rung::Process, groups: &[] };
        let error = Watch::begin(1 << 29, plan).expect_err("no such number");
        assert_eq!(error.to_string(), format!("no process {}", 1 << 29));
    }

    #[test]
    fn one_that_ends_meanwhile_leaves_its_last_figures() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("cat, waiting for its input");
        let plan = Plan { rung: Rung::Process, groups: &[] };
        let mut watch = Watch::begin(child.id(), plan).expect("it lives");
        drop(child.stdin.take());
        let ending = watch.run(None, &AtomicBool::new(false));
        assert_eq!(ending, Ending::TargetEnded);
        child.wait().expect("it can be reaped");
        let observation = watch.end(ending);
        let interval_ns = INTERVAL.as_nanos() as u64;
        assert!(observation.notes.contains(&Note::EndedBetween { interval_ns }), "{:?}", observation.notes);
        assert_eq!((observation.rung, observation.totals.threads), (Rung::Process, 1));
    }

    #[test]
    fn a_stop_ends_the_watch_and_keeps_what_was_seen() {
        let plan = Plan { rung: Rung::Process, groups: &[] };
        let mut watch = Watch::begin(std::process::id(), plan).expect("it lives");
        let ending = watch.run(Some(Duration::from_secs(3600)), &AtomicBool::new(true));
        assert_eq!(ending, Ending::Interrupted);
        let observation = watch.end(ending);
        assert!(!observation.threads.is_empty() && observation.totals.system_ns.is_none());
    }
}
