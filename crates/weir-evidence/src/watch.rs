//! Watching a process and its children for a while, or two in the same window: what /proc tells at both ends, and the
//! kernel's programs between.
//!
//! /proc is read once a second, so that a process that ends leaves figures, and one or a thread that begins and ends
//! within the window is in the sums up to its last reading; the kernel's programs keep their sums themselves, and are
//! read at the end and where somebody looks on. Nothing here prints, and nothing is judged.

mod subject;
mod thread_sums;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use weir_record::{
    SCHEMA_VERSION,
    machine::Fingerprint,
    observation::{
        Ending, Note, Observation, Obstacle, ProbeCost, Rung, RungState, SwitchCounter, Totals, Trace,
    },
};

pub use self::subject::WatchError;
use self::subject::{Subject, Window, is_of_32_bits};
use crate::{
    fingerprint::{fingerprint, program_of},
    ladder::{
        Group, cost,
        rung::{self, Facts},
        tables::{CALLS_OF_32_BITS, Side},
        trace::trace,
        tracer::{KernelCounts, Tracer, TracerError},
    },
    process::family_of,
    softirq_time,
    system::{self, SystemSnapshot},
};

/// Time between two readings of /proc.
const INTERVAL: Duration = Duration::from_secs(1);
/// Longest time until a stop is noticed.
const STOP_NOTICED: Duration = Duration::from_millis(100);
/// From this share of the machine's time on it is told that the hypervisor took it.
const STOLEN_SHARE_NOTED: f64 = 0.01;

/// What is to be watched.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// Highest rung to use, [`Rung::Process`] or [`Rung::Programs`].
    pub rung: Rung,
    /// What the programs count.
    pub groups: &'a [Group],
}

/// What a step of a watch came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing; a tenth of a second passed at most.
    Waited,
    /// /proc was read, as it is once a second.
    Read,
    /// The time is over, or a process ended.
    Over(Ending),
}

/// One process that is being watched, or two.
#[derive(Debug)]
pub struct Watch {
    subjects: Vec<Subject>,
    fingerprint: Fingerprint,
    ladder: Vec<RungState>,
    tracing: Option<Tracing>,
    began: Instant,
    began_unix_s: u64,
    own_cpu_ns: Option<u64>,
    machine: Option<SystemSnapshot>,
    due: Instant,
}

/// A window, and what was counted in it from when on.
type Seen = (Window, Option<(KernelCounts, u64)>);

/// The programs at work.
#[derive(Debug)]
struct Tracing {
    tracer: Tracer,
    cost: cost::Tried,
}

impl Watch {
    /// Begins now, with another process beside the first where there is one: both in the same window, and by the same
    /// programs.
    ///
    /// # Errors
    /// When one of them is not there, or is the other or a child of it.
    pub fn begin(pid: u32, beside: Option<u32>, plan: Plan<'_>) -> Result<Self, WatchError> {
        Self::begin_told(pid, beside, plan, &|_| ())
    }

    /// The same; whoever is told what tracing costs every system call is told before any process is traced.
    ///
    /// # Errors
    /// As [`Self::begin`].
    pub fn begin_told(
        pid: u32,
        beside: Option<u32>,
        plan: Plan<'_>,
        tell: &dyn Fn(&ProbeCost),
    ) -> Result<Self, WatchError> {
        let mut subjects = vec![Subject::of(pid)?];
        subjects.extend(beside.map(Subject::of).transpose()?);
        subject::refuse_relatives(&subjects)?;
        // Before the window, because it reads whole programs.
        let programs = subjects.iter().filter_map(|subject| program_of(subject.pid)).collect();
        let fingerprint = Fingerprint { programs, ..fingerprint() };
        let mut ladder = rung::ladder(&Facts::read());
        let mut notes = Vec::new();
        let pids: Vec<u32> = subjects.iter().map(|subject| subject.pid).collect();
        let tracing = match plan.rung {
            Rung::Programs | Rung::Strace => begin_tracing(&pids, plan, tell, &mut ladder, &mut notes),
            Rung::Engine | Rung::Process => None,
        };
        for (subject, side) in subjects.iter_mut().zip(Side::ALL) {
            subject.notes.clone_from(&notes);
            let counts = tracing.as_ref().and_then(|tracing| tracing.tracer.read_side(side).ok());
            subject.begin(counts)?;
        }
        let began = Instant::now();
        Ok(Self {
            subjects,
            fingerprint,
            ladder,
            tracing,
            began,
            began_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            machine: SystemSnapshot::read().ok(),
            own_cpu_ns: own_cpu_ns(),
            due: began + INTERVAL,
        })
    }

    /// Whether the kernel's programs count.
    pub fn is_traced(&self) -> bool {
        self.tracing.is_some()
    }

    /// Watches until the time is over, a process ends, or the flag is set.
    pub fn run(&mut self, length: Option<Duration>, stop: &AtomicBool) -> Ending {
        loop {
            if stop.load(Ordering::Relaxed) {
                return Ending::Interrupted;
            }
            if let Step::Over(ending) = self.step(length) {
                return ending;
            }
        }
    }

    /// Goes on for a tenth of a second at most.
    pub fn step(&mut self, length: Option<Duration>) -> Step {
        let deadline = length.and_then(|length| self.began.checked_add(length));
        let now = Instant::now();
        if deadline.is_some_and(|deadline| now >= deadline) {
            return Step::Over(Ending::Time);
        }
        let is_due = now >= self.due;
        if is_due {
            for subject in &mut self.subjects {
                subject.look();
            }
            self.due = now + INTERVAL;
        }
        let until = deadline.map_or(self.due, |deadline| deadline.min(self.due));
        // Whoever looks on should not wait for what was read.
        let patience = if is_due { Duration::ZERO } else { until.saturating_duration_since(now) };
        if self.has_one_ended(patience.min(STOP_NOTICED)) {
            return Step::Over(Ending::TargetEnded);
        }
        if is_due { Step::Read } else { Step::Waited }
    }

    /// Waits; true when a process ended meanwhile.
    fn has_one_ended(&mut self, patience: Duration) -> bool {
        let descriptors = self.subjects.iter().filter_map(|subject| subject.descriptor.as_ref());
        let mut polled: Vec<PollFd<'_>> = descriptors.map(|it| PollFd::new(it, PollFlags::IN)).collect();
        let timeout = Timespec {
            tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: patience.subsec_nanos().into(),
        };
        // A signal ends the wait early, which does no harm.
        let _ = poll(&mut polled, Some(&timeout));
        drop(polled);
        let mut has_ended = false;
        for subject in &mut self.subjects {
            has_ended |= subject.notice_end();
        }
        has_ended
    }

    /// What was seen between the last two looks, for whoever looks on; no bound, and nothing of how it is known.
    pub fn glimpse(&mut self) -> Observation {
        let counted = self.counts();
        let parts = self.subjects.iter_mut().zip(counted).map(|(subject, counts)| {
            let window = subject.glimpse();
            let traced = counts.map(|counts| subject.traced_since_glimpse(counts));
            (window, traced)
        });
        let parts: Vec<_> = parts.collect();
        self.assembled(parts, Ending::Time, Vec::new())
    }

    /// Of each process that is watched: a table that is read costs as many bytes as the machine has CPUs.
    fn counts(&self) -> Vec<Option<KernelCounts>> {
        let sides = Side::ALL.into_iter().take(self.subjects.len());
        sides.map(|side| self.tracing.as_ref()?.tracer.read_side(side).ok()).collect()
    }

    /// Ends, and gives what was seen.
    pub fn end(mut self, ending: Ending) -> Observation {
        for subject in &mut self.subjects {
            subject.end(INTERVAL);
        }
        let own_cpu_ns = self.own_cpu_ns.zip(own_cpu_ns()).map(|(before, now)| now.saturating_sub(before));
        if let Some(tracing) = &mut self.tracing {
            tracing.tracer.stop();
        }
        let mut counted = self.counts();
        for (counts, side) in counted.iter_mut().zip(Side::ALL) {
            if let Some((counts, tracing)) = counts.as_mut().zip(self.tracing.as_ref()) {
                counts.opened = tracing.tracer.opened(side).unwrap_or_default();
            }
        }
        let parts = self.subjects.iter_mut().zip(counted).map(|(subject, counts)| {
            let traced = subject.traced(counts);
            if self.tracing.is_some() && traced.is_none() {
                let error = "the tables of its programs could not be read".to_owned();
                subject.notes.push(Note::NotTraced { obstacle: Obstacle::Refused { error } });
            }
            if traced.as_ref().is_some_and(|(counts, _)| subject.had_32_bits || has_32_bits(counts)) {
                subject.notes.push(Note::Became32Bits);
            }
            (subject.window(), traced)
        });
        let parts: Vec<_> = parts.collect();
        let stolen = self.stolen();
        for subject in &mut self.subjects {
            subject.notes.extend(stolen.clone());
        }
        let notes = self.subjects.iter_mut().map(|subject| std::mem::take(&mut subject.notes)).collect();
        let mut observation = self.assembled(parts, ending, notes);
        observation.observer_cpu_ns = own_cpu_ns;
        if let Some(beside) = &mut observation.beside {
            beside.observer_cpu_ns = own_cpu_ns;
        }
        observation
    }

    fn stolen(&self) -> Option<Note> {
        let (stolen_ns, machine_ns) = system::stolen(self.machine.as_ref()?, &SystemSnapshot::read().ok()?);
        let is_noted = stolen_ns as f64 > STOLEN_SHARE_NOTED * machine_ns as f64;
        is_noted.then_some(Note::Stolen { stolen_ns, machine_ns })
    }

    /// The record of both windows, the second one's within the first one's.
    fn assembled(&self, parts: Vec<Seen>, ending: Ending, mut notes: Vec<Vec<Note>>) -> Observation {
        notes.resize(self.subjects.len(), Vec::new());
        let each = self.subjects.iter().zip(parts).zip(notes);
        let mut observations =
            each.map(|((subject, part), notes)| self.observation(subject, part, ending, notes));
        let first = observations.next();
        let beside = observations.next().map(Box::new);
        Observation { beside, ..first.unwrap_or_default() }
    }

    fn observation(
        &self,
        subject: &Subject,
        (window, counted): Seen,
        ending: Ending,
        notes: Vec<Note>,
    ) -> Observation {
        let (threads, threads_left_out) = window.thread_rows(counted.as_ref().map(|it| &it.0));
        let trace = counted.and_then(|(counts, began_ns)| self.trace(&counts, began_ns));
        let mut notes = notes;
        let mut seen = (window.totals(), window.length_ns());
        if let Some(trace) = trace.as_ref().filter(|trace| trace.is_split) {
            seen = beyond_readings(seen, trace, subject.is_read_late, &mut notes);
        }
        let (totals, window_ns) = seen;
        let ending = match ending {
            Ending::TargetEnded if !subject.has_ended => Ending::OtherEnded,
            other => other,
        };
        Observation {
            schema_version: SCHEMA_VERSION,
            fingerprint: self.fingerprint.clone(),
            began_unix_s: self.began_unix_s,
            pid: subject.pid,
            command: subject.command.clone(),
            window_ns,
            ending,
            rung: if trace.is_some() { Rung::Programs } else { Rung::Process },
            ladder: self.ladder.clone(),
            notes,
            totals,
            descriptors: window.to.descriptors,
            threads,
            threads_left_out,
            trace,
            ..Observation::default()
        }
    }

    fn trace(&self, counts: &KernelCounts, began_ns: u64) -> Option<Trace> {
        let tracing = self.tracing.as_ref()?;
        let is_split = tracing.tracer.counts(Group::Scheduling);
        let softirqs_are_apart = softirq_time::is_apart();
        Some(Trace { softirqs_are_apart, ..trace(counts, began_ns, is_split, tracing.cost.cost) })
    }
}

/// Whether the programs saw calls of a program of 32 bits, however short it lived.
fn has_32_bits(counts: &KernelCounts) -> bool {
    counts.calls.contains_key(&CALLS_OF_32_BITS)
}

/// Totals, and the length of their window, with what no reading of /proc has and the programs saw: switches of threads
/// that ended, and all that a process did between its last reading and its end.
fn beyond_readings(
    (mut totals, mut window_ns): (Totals, u64),
    trace: &Trace,
    is_read_late: bool,
    notes: &mut Vec<Note>,
) -> (Totals, u64) {
    if totals.take_switches(trace.sleeps, trace.preemptions) {
        notes.push(Note::SwitchesOfEnded { by: SwitchCounter::Programs });
    }
    let softirqs_ns: u64 = trace.softirqs.iter().map(|softirq| softirq.ns).sum();
    let apart_ns = if trace.softirqs_are_apart == Some(true) { softirqs_ns } else { 0 };
    let ran_ns = trace.ran_ns.saturating_sub(apart_ns);
    if is_read_late && ran_ns > totals.cpu_ns {
        totals.ended_cpu_ns += ran_ns - totals.cpu_ns;
        totals.cpu_ns = ran_ns;
        window_ns = window_ns.max(trace.window_ns);
        for note in notes {
            if let Note::EndedBetween { by_programs, .. } = note {
                *by_programs = true;
            }
        }
    }
    (totals, window_ns)
}

/// A process that is read as a watch on the rung of /proc reads it each second, and nothing more.
#[derive(Debug)]
pub struct Looks(Subject);

impl Looks {
    /// Reads it for the first time.
    ///
    /// # Errors
    /// When it is not there.
    pub fn begin(pid: u32) -> Result<Self, WatchError> {
        Subject::of(pid).map(Self)
    }

    /// Reads it again; false when it is gone.
    pub fn look(&mut self) -> bool {
        self.0.look()
    }
}

/// CPU of this process since its start.
fn own_cpu_ns() -> Option<u64> {
    weir_sys::clock::process_cpu_ns(std::process::id()).ok()
}

/// Programs at work, unless something is in the way, which is noted.
fn begin_tracing(
    pids: &[u32],
    plan: Plan<'_>,
    tell: &dyn Fn(&ProbeCost),
    ladder: &mut [RungState],
    notes: &mut Vec<Note>,
) -> Option<Tracing> {
    let state = ladder.iter_mut().find(|state| state.rung == Rung::Programs)?;
    let families = pids.iter().flat_map(|pid| family_of(*pid).unwrap_or_default());
    if state.obstacle.is_none() && families.into_iter().any(is_of_32_bits) {
        state.obstacle = Some(Obstacle::Bits32);
    }
    if state.obstacle.is_none() {
        match Tracing::begin(pids, plan.groups, tell) {
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
    fn begin(pids: &[u32], groups: &[Group], tell: &dyn Fn(&ProbeCost)) -> Result<Self, TracerError> {
        // Tried once, and not in the window.
        softirq_time::is_apart();
        let untraced = cost::untraced();
        let tracer = Tracer::start(&[], groups)?;
        let cost = cost::tried(&tracer, &untraced)?;
        tell(&cost.cost);
        let roots: Vec<(u32, Side)> = pids.iter().copied().zip(Side::ALL).collect();
        tracer.add_families(&roots)?;
        Ok(Self { tracer, cost })
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_not_there_is_told() {
        let plan = Plan { rung: Rung::Process, groups: &[] };
        let error = Watch::begin(1 << 29, None, plan).expect_err("no such number");
        assert_eq!(error.to_string(), format!("no process {}", 1 << 29));
    }

    #[test]
    fn one_that_ends_meanwhile_leaves_its_last_figures() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("cat, waiting for its input");
        let plan = Plan { rung: Rung::Process, groups: &[] };
        let mut watch = Watch::begin(child.id(), None, plan).expect("it lives");
        drop(child.stdin.take());
        let ending = watch.run(None, &AtomicBool::new(false));
        assert_eq!(ending, Ending::TargetEnded);
        child.wait().expect("it can be reaped");
        let observation = watch.end(ending);
        let interval_ns = INTERVAL.as_nanos() as u64;
        let note = Note::EndedBetween { interval_ns, by_programs: false };
        assert!(observation.notes.contains(&note), "{:?}", observation.notes);
        assert_eq!((observation.rung, observation.totals.threads), (Rung::Process, 1));
    }

    #[test]
    #[expect(clippy::print_stdout, reason = "says why the test was skipped")]
    fn what_it_did_between_its_last_reading_and_its_end_is_in_the_whole_where_it_is_traced() {
        // Byte by byte: far more than what the window has before it.
        let mut child = becoming("dd if=/dev/zero of=/dev/null bs=1 count=200000 status=none");
        let plan = Plan { rung: Rung::Programs, groups: &Group::ALL };
        let mut watch = Watch::begin(child.id(), None, plan).expect("it lives");
        drop(child.stdin.take());
        // It is waited for before anybody reads it again.
        child.wait().expect("it can be reaped");
        let observation = watch.run(None, &AtomicBool::new(false));
        let observation = watch.end(observation);
        let Some(trace) = observation.trace.as_ref().filter(|trace| trace.is_split) else {
            println!("skipped: nothing is traced here: {:?}", observation.notes);
            return;
        };
        let reads = trace.calls.iter().find(|call| call.name == "read").map_or(0, |call| call.count);
        assert!(reads >= 200_000, "{reads}");
        assert!(
            observation.totals.cpu_ns >= trace.ran_ns / 2 && trace.ran_ns > 0,
            "{:?}",
            observation.totals
        );
        let is_known = |note: &Note| matches!(note, Note::EndedBetween { by_programs: true, .. });
        assert!(observation.notes.iter().any(is_known), "{:?}", observation.notes);
        // They were of what the shell had before, which is next to nothing.
        let parts = observation.parts_ns() / observation.unwatched_cpu_ns();
        assert!(trace.switches_missed > 0 || parts < 2.0, "{parts}");
    }

    #[test]
    fn switches_that_no_reading_has_are_the_programs_and_fewer_are_not_taken() {
        let trace = Trace { sleeps: 20, preemptions: 5, ran_ns: 90, window_ns: 70, ..Trace::default() };
        let read = Totals { cpu_ns: 10, context_switches_voluntary: 3, ..Totals::default() };
        let mut notes = vec![Note::EndedBetween { interval_ns: 9, by_programs: false }];
        let (totals, window_ns) = beyond_readings((read, 50), &trace, false, &mut notes);
        assert_eq!((totals.context_switches_voluntary, totals.context_switches_involuntary), (20, 5));
        assert_eq!((totals.cpu_ns, window_ns, notes.len()), (10, 50, 2), "it was read at its end");
        let (late, window_ns) = beyond_readings((totals, 50), &trace, true, &mut notes);
        assert_eq!((late.cpu_ns, late.ended_cpu_ns, window_ns, notes.len()), (90, 80, 70, 2));
        assert_eq!(notes[0], Note::EndedBetween { interval_ns: 9, by_programs: true });
    }

    #[test]
    fn a_stop_ends_the_watch_and_keeps_what_was_seen() {
        let plan = Plan { rung: Rung::Process, groups: &[] };
        let mut watch = Watch::begin(std::process::id(), None, plan).expect("it lives");
        let ending = watch.run(Some(Duration::from_secs(3600)), &AtomicBool::new(true));
        assert_eq!(ending, Ending::Interrupted);
        let observation = watch.end(ending);
        assert!(!observation.threads.is_empty() && observation.totals.system_ns.is_none());
    }

    /// A shell that waits for a line and then becomes another program.
    fn becoming(program: &str) -> std::process::Child {
        std::process::Command::new("sh")
            .args(["-c", &format!("read line; exec {program}")])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("sh, waiting for its input")
    }

    /// Gives it the line, and waits until it is the other program.
    fn let_it_become(child: &mut std::process::Child, name: &str) {
        use std::io::Write;
        child.stdin.as_mut().expect("a pipe").write_all(b"\n").expect("it reads");
        let comm = format!("/proc/{}/comm", child.id());
        while std::fs::read_to_string(&comm).is_ok_and(|now| now.trim() != name) {
            std::thread::yield_now();
        }
    }

    fn end(mut child: std::process::Child) {
        child.kill().and_then(|()| child.wait()).expect("it can be ended");
    }

    #[test]
    fn an_exec_meanwhile_is_told_and_nothing_is_lost() {
        let mut child = becoming("cat");
        let plan = Plan { rung: Rung::Programs, groups: &Group::ALL };
        let watch = Watch::begin(child.id(), None, plan).expect("it lives");
        let_it_become(&mut child, "cat");
        let observation = watch.end(Ending::Time);
        let note = Note::BecameAnother { from: "sh".to_owned(), to: "cat".to_owned() };
        assert!(observation.notes.contains(&note), "{:?}", observation.notes);
        if let Some(trace) = &observation.trace {
            // It is tried in each folder of the path.
            let exec = trace.calls.iter().find(|call| call.name == "execve").expect("it did");
            assert_eq!(exec.count - exec.errors, 1, "{exec:?}");
        }
        end(child);
    }

    /// The smallest program of 32 bits: it pauses for ever.
    fn program_of_32_bits(path: &std::path::Path) {
        use std::os::unix::fs::PermissionsExt;
        const BASE: u32 = 0x0804_8000;
        const CODE: [u8; 9] = [0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7];
        let bytes = 52 + 32 + CODE.len() as u32;
        let mut file = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x03\0".to_vec();
        for word in [1, BASE + 84, 52, 0, 0, 52 | 32 << 16, 1, 0] {
            file.extend(u32::to_le_bytes(word));
        }
        for word in [1, 0, BASE, BASE, bytes, bytes, 5, 0x1000] {
            file.extend(u32::to_le_bytes(word));
        }
        file.extend(CODE);
        std::fs::write(path, file).expect("a file can be written");
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("it is ours");
    }

    #[test]
    #[expect(clippy::print_stdout, reason = "says why the test was skipped")]
    fn programs_of_32_bits_are_not_traced_and_one_that_became_such_is_told() {
        let path = std::env::temp_dir().join(format!("weir32-{}", std::process::id()));
        program_of_32_bits(&path);
        let plan = Plan { rung: Rung::Programs, groups: &Group::ALL };
        let started = std::process::Command::new(&path).spawn();
        let Ok(child) = started else {
            println!("skipped: this machine runs no programs of 32 bits: {started:?}");
            return;
        };
        let watch = Watch::begin(child.id(), None, plan).expect("it lives");
        let refused = !watch.is_traced();
        let observation = watch.end(Ending::Time);
        let obstacle = observation.notes.iter().find(|note| matches!(note, Note::NotTraced { .. }));
        assert!(refused && obstacle.is_some(), "{:?}", observation.notes);
        end(child);

        let name = path.file_name().and_then(|name| name.to_str()).expect("text");
        let mut child = becoming(path.to_str().expect("text"));
        let watch = Watch::begin(child.id(), None, plan).expect("it lives");
        let is_traced = watch.is_traced();
        let_it_become(&mut child, &name[..name.len().min(15)]);
        let observation = watch.end(Ending::Time);
        assert_eq!(observation.notes.contains(&Note::Became32Bits), is_traced, "{:?}", observation.notes);
        end(child);
        std::fs::remove_file(&path).expect("it can be removed");
    }

    /// A shell that runs a program between a first line and a second, and waits for a third.
    fn running(program: &std::path::Path) -> std::process::Child {
        let script = format!("read line; {} & read line; kill $!; wait; read line", program.display());
        std::process::Command::new("sh")
            .args(["-c", &script])
            .stdin(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("sh, waiting for its input")
    }

    /// Gives it the next line, and waits until a program of 32 bits is among its processes, or none.
    fn let_it_go_on(child: &mut std::process::Child, has_32_bits: bool) {
        use std::io::Write;
        child.stdin.as_mut().expect("a pipe").write_all(b"\n").expect("it reads");
        let begun = Instant::now();
        let has_now = || family_of(child.id()).unwrap_or_default().into_iter().any(is_of_32_bits);
        while has_now() != has_32_bits {
            assert!(begun.elapsed() < Duration::from_secs(30), "its program begins and ends");
            std::thread::yield_now();
        }
    }

    #[test]
    #[expect(clippy::print_stdout, reason = "says why the test was skipped")]
    fn a_child_of_32_bits_that_ends_before_the_window_does_is_told() {
        let path = std::env::temp_dir().join(format!("weir32-child-{}", std::process::id()));
        program_of_32_bits(&path);
        let started = std::process::Command::new(&path).spawn();
        let Ok(alone) = started else {
            println!("skipped: this machine runs no programs of 32 bits: {started:?}");
            return;
        };
        end(alone);
        for counts in [Some(KernelCounts::default()), None] {
            let mut shell = running(&path);
            let is_traced = counts.is_some();
            let mut subject = Subject::of(shell.id()).expect("it lives");
            subject.begin(counts).expect("it lives");
            let_it_go_on(&mut shell, true);
            assert!(subject.look());
            let_it_go_on(&mut shell, false);
            assert!(subject.look());
            assert_eq!(subject.had_32_bits, is_traced, "numbers of calls matter to a trace alone");
            end(shell);
        }
        std::fs::remove_file(&path).expect("it can be removed");
    }

    #[test]
    fn a_thousand_threads_are_followed() {
        let (release, held) = std::sync::mpsc::channel::<()>();
        let held = std::sync::Mutex::new(held);
        std::thread::scope(|scope| {
            for _ in 0..1_000 {
                let body = || drop(held.lock().map(|held| held.recv()));
                std::thread::Builder::new().stack_size(1 << 16).spawn_scoped(scope, body).expect("room");
            }
            let plan = Plan { rung: Rung::Programs, groups: &Group::ALL };
            let watch = Watch::begin(std::process::id(), None, plan).expect("it lives");
            let observation = watch.end(Ending::Time);
            drop(release);
            assert!(observation.threads.len() > 1_000 && observation.threads_left_out == 0);
            assert!(observation.trace.is_none_or(|trace| trace.threads_lost == 0));
        });
    }

    #[test]
    fn of_two_the_one_that_ends_ends_the_window_of_both() {
        let (mut one, mut other) = (becoming("true"), becoming("true"));
        let plan = Plan { rung: Rung::Process, groups: &[] };
        let mut watch = Watch::begin(one.id(), Some(other.id()), plan).expect("both live");
        drop(other.stdin.take());
        let ending = watch.run(None, &AtomicBool::new(false));
        let observation = watch.end(ending);
        let beside = observation.beside.as_ref().expect("there were two");
        assert_eq!((observation.ending, beside.ending), (Ending::OtherEnded, Ending::TargetEnded));
        assert_eq!((observation.pid, beside.pid), (one.id(), other.id()));
        drop(one.stdin.take());
        for child in [&mut one, &mut other] {
            child.wait().expect("it ends with its input");
        }
    }

    #[test]
    fn relatives_are_not_compared() {
        let child = becoming("true");
        let (own, child_pid) = (std::process::id(), child.id());
        let plan = Plan { rung: Rung::Process, groups: &[] };
        let begin = |pid, beside| Watch::begin(pid, Some(beside), plan).map(drop);
        assert!(matches!(begin(own, own), Err(WatchError::SameProcess(pid)) if pid == own));
        for (pid, beside) in [(own, child_pid), (child_pid, own)] {
            let error = begin(pid, beside).expect_err("children are observed with their parent");
            assert!(
                matches!(error, WatchError::Relatives { child, parent } if (child, parent) == (child_pid, own))
            );
        }
        assert!(matches!(begin(child_pid, 1 << 29), Err(WatchError::NoSuchProcess(_))));
        end(child);
    }
}
