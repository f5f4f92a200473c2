//! Watches a process and its children for a while, several together, or two in the same window: /proc at both ends,
//! and the kernel's programs in between.
//!
//! /proc is read once a second, so that a process that ends leaves figures, and a process or thread that starts and
//! ends within the window is in the sums up to its last reading. The kernel's programs keep sums themselves, and are
//! read at the end and for a live view. This module prints nothing and judges nothing.

mod descriptors;
mod root;
mod series;
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
        DescriptorTable, Ending, Note, Observation, Obstacle, ProbeCost, Rung, RungState, Series,
        SwitchCounter, Totals, Trace, total,
    },
};

pub use self::subject::WatchError;
use self::{
    descriptors::{Files, Moment, is_open},
    subject::{Subject, Window, is_of_32_bits},
};
use crate::{
    fingerprint::{fingerprint, program_of},
    ladder::{
        Group, cost,
        rung::{self, Facts},
        tables::{CALLS_OF_32_BITS, Side},
        trace::trace,
        tracer::{KernelCounts, Tracer, TracerError},
    },
    process::family_of_all,
    selection::Selection,
    softirq_time,
    system::{self, SystemSnapshot},
};

/// Time between two readings of /proc.
const INTERVAL: Duration = Duration::from_secs(1);
/// Longest delay until a stop is noticed.
const STOP_NOTICED: Duration = Duration::from_millis(100);
/// From this share of the machine's time on a note reports the hypervisor's steal.
const STOLEN_SHARE_NOTED: f64 = 0.01;

/// The specification of a watch.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// Highest rung to use, [`Rung::Process`] or [`Rung::Programs`].
    pub rung: Rung,
    /// The groups of programs.
    pub groups: &'a [Group],
}

/// Result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing; at most a tenth of a second passed.
    Waited,
    /// /proc was read, as it is once a second.
    Read,
    /// The time is over, or a process ended.
    Over(Ending),
}

/// An active watch of one or two processes.
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

/// The intervals that end at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Due {
    /// A second since the last such moment.
    of_second: bool,
    /// An interval of the series, which may be shorter.
    of_interval: bool,
}

impl Due {
    /// Also advances the end of the second.
    fn at(now: Instant, second: &mut Instant, interval: Option<Instant>) -> Self {
        let of_second = now >= *second;
        if of_second {
            *second = now + INTERVAL;
        }
        Self { of_second, of_interval: interval.is_some_and(|due| now >= due) }
    }
}

/// A window, its counts, and when counting started.
type Seen = (Window, Option<(KernelCounts, u64)>);

/// The attached programs.
#[derive(Debug)]
struct Tracing {
    tracer: Tracer,
    cost: cost::Tried,
    /// One per side; empty if descriptors are not counted.
    files: Vec<Files>,
}

impl Watch {
    /// Starts now, optionally with a second process: both in the same window, with the same programs.
    ///
    /// # Errors
    /// Fails when one of them does not exist, or is the other or its child.
    pub fn begin(pid: u32, beside: Option<u32>, plan: Plan<'_>) -> Result<Self, WatchError> {
        Self::begin_told(&Selection::pid(pid), beside, plan, &|_| ())
    }

    /// Like [`Self::begin`] for selections; `tell` receives the cost of tracing per system call before any process is
    /// traced.
    ///
    /// # Errors
    /// As for [`Self::begin`].
    pub fn begin_told(
        selected: &Selection,
        beside: Option<u32>,
        plan: Plan<'_>,
        tell: &dyn Fn(&ProbeCost),
    ) -> Result<Self, WatchError> {
        if !is_own_proc() {
            return Err(WatchError::ForeignProc);
        }
        let mut subjects = vec![Subject::of(selected, INTERVAL)?];
        let beside = beside.map(|pid| Subject::of(&Selection::pid(pid), INTERVAL));
        subjects.extend(beside.transpose()?);
        subject::refuse_relatives(&subjects)?;
        // Before the window, because it reads whole programs.
        let programs = subjects.iter().filter_map(|subject| program_of(subject.pid)).collect();
        let fingerprint = Fingerprint { programs, ..fingerprint() };
        let mut ladder = rung::ladder(&Facts::read());
        let mut notes = Vec::new();
        let each = subjects.iter().zip(Side::ALL);
        let roots: Vec<(u32, Side)> = each
            .flat_map(|(subject, side)| subject.roots().into_iter().map(move |root| (root, side)))
            .collect();
        let mut tracing = match plan.rung {
            Rung::Programs | Rung::Strace => begin_tracing(&roots, plan, tell, &mut ladder, &mut notes),
            Rung::Engine | Rung::Process => None,
        };
        for (subject, side) in subjects.iter_mut().zip(Side::ALL) {
            subject.notes.clone_from(&notes);
            let counts = tracing.as_ref().and_then(|tracing| tracing.tracer.read_side(side).ok());
            subject.begin(counts)?;
        }
        if let Some(tracing) = &mut tracing {
            tracing.begin_descriptors(subjects.len());
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

    /// Keeps the figures of each interval of this length from the start on: at most [`INTERVALS_MAX`], then adjacent
    /// ones are joined. /proc and the programs' tables are read at the end of each.
    ///
    /// [`INTERVALS_MAX`]: weir_record::observation::INTERVALS_MAX
    pub fn keep_intervals(&mut self, interval: Duration) {
        for subject in &mut self.subjects {
            subject.keep_intervals(interval, self.began);
        }
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

    /// Continues for at most a tenth of a second.
    pub fn step(&mut self, length: Option<Duration>) -> Step {
        let deadline = length.and_then(|length| self.began.checked_add(length));
        let now = Instant::now();
        if deadline.is_some_and(|deadline| now >= deadline) {
            return Step::Over(Ending::Time);
        }
        let interval_due = self.subjects.iter().filter_map(Subject::interval_due).min();
        let Due { of_second, of_interval } = Due::at(now, &mut self.due, interval_due);
        if of_second {
            // New members are searched among all processes of the machine.
            self.subjects.iter_mut().for_each(Subject::join);
        }
        let is_due = of_second || of_interval;
        if is_due {
            for subject in &mut self.subjects {
                subject.look();
            }
            self.mark_joined();
        }
        if let Some(tracing) = &mut self.tracing {
            tracing.look_at_descriptors(if of_second { Moment::Second } else { Moment::Between });
        }
        if of_interval {
            self.end_interval();
        }
        let interval_due = self.subjects.iter().filter_map(Subject::interval_due).min();
        let until = [deadline, interval_due].into_iter().flatten().fold(self.due, Instant::min);
        // A live view should not wait for what was read.
        let patience = if is_due { Duration::ZERO } else { until.saturating_duration_since(now) };
        if self.has_one_ended(patience.min(STOP_NOTICED)) {
            return Step::Over(Ending::TargetEnded);
        }
        if is_due { Step::Read } else { Step::Waited }
    }

    /// Uses the latest reading of /proc, and the programs' current sums.
    fn end_interval(&mut self) {
        let counted = self.counts();
        let at = Instant::now();
        for (subject, counts) in self.subjects.iter_mut().zip(counted) {
            subject.end_interval(at, counts.as_ref());
        }
    }

    /// Waits; returns true when a process ended meanwhile.
    fn has_one_ended(&mut self, patience: Duration) -> bool {
        let descriptors = self.subjects.iter().filter_map(Subject::descriptor);
        let mut polled: Vec<PollFd<'_>> = descriptors.map(|it| PollFd::new(it, PollFlags::IN)).collect();
        let timeout = Timespec {
            tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: patience.subsec_nanos().into(),
        };
        // A signal ends the wait early, which is harmless.
        let _ = poll(&mut polled, Some(&timeout));
        drop(polled);
        let mut has_ended = false;
        for subject in &mut self.subjects {
            has_ended |= subject.notice_end();
        }
        self.mark_joined();
        has_ended
    }

    /// Processes that joined are traced from here on.
    fn mark_joined(&mut self) {
        for (subject, side) in self.subjects.iter_mut().zip(Side::ALL) {
            let joined = subject.take_joined();
            let Some(tracing) = self.tracing.as_ref().filter(|_| !joined.is_empty()) else { continue };
            let roots: Vec<(u32, Side)> = joined.into_iter().map(|pid| (pid, side)).collect();
            if let Err(error) = tracing.tracer.add_families(&roots) {
                let note = Note::JoinedUntraced { error: error.to_string() };
                if !subject.notes.contains(&note) {
                    subject.notes.push(note);
                }
            }
        }
    }

    /// The figures between the last two readings, for a live view; without bounds and quality notes.
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

    /// Reads the counts of each watched process: reading a table costs as many bytes as the machine has CPUs.
    fn counts(&self) -> Vec<Option<KernelCounts>> {
        let sides = Side::ALL.into_iter().take(self.subjects.len());
        sides.map(|side| self.tracing.as_ref()?.tracer.read_side(side).ok()).collect()
    }

    /// Ends, and returns the observation.
    pub fn end(mut self, ending: Ending) -> Observation {
        for subject in &mut self.subjects {
            subject.join();
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
        let mut tables = self.tracing.as_mut().map(Tracing::end_descriptors).unwrap_or_default();
        let each = self.subjects.iter_mut().zip(&counted);
        let series = each.map(|(subject, counts)| subject.take_series(counts.as_ref()));
        let mut series: Vec<Option<Series>> = series.collect();
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
        tables.resize(series.len(), None);
        let mut take = |observation: &mut Observation| {
            observation.observer_cpu_ns = own_cpu_ns;
            observation.series = series.pop().flatten();
            if let Some((trace, table)) = observation.trace.as_mut().zip(tables.pop()) {
                trace.descriptors = table;
            }
        };
        // The second process's notes come last.
        observation.beside.as_deref_mut().into_iter().for_each(&mut take);
        take(&mut observation);
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
            selection: subject.selection(),
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

/// Whether the programs saw calls of a 32-bit program, however short-lived.
fn has_32_bits(counts: &KernelCounts) -> bool {
    counts.calls.contains_key(&CALLS_OF_32_BITS)
}

/// Totals, and the length of their window, including what no reading of /proc has and the programs saw: switches of
/// ended threads, and everything a process did between its last reading and its end.
fn beyond_readings(
    (mut totals, mut window_ns): (Totals, u64),
    trace: &Trace,
    is_read_late: bool,
    notes: &mut Vec<Note>,
) -> (Totals, u64) {
    if totals.take_switches(trace.sleeps, trace.preemptions) {
        notes.push(Note::SwitchesOfEnded { by: SwitchCounter::Programs });
    }
    let softirqs_ns = total(trace.softirqs.iter().map(|softirq| softirq.ns));
    let apart_ns = if trace.softirqs_are_apart == Some(true) { softirqs_ns } else { 0 };
    let ran_ns = trace.ran_ns.saturating_sub(apart_ns);
    if is_read_late && ran_ns > totals.cpu_ns {
        totals.ended_cpu_ns = totals.ended_cpu_ns.saturating_add(ran_ns - totals.cpu_ns);
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

/// A process that is read like a watch on the rung of /proc: each second, and nothing more.
#[derive(Debug)]
pub struct Looks(Subject);

impl Looks {
    /// Reads it for the first time.
    ///
    /// # Errors
    /// Fails when it does not exist.
    pub fn begin(pid: u32) -> Result<Self, WatchError> {
        Subject::of(&Selection::pid(pid), INTERVAL).map(Self)
    }

    /// Reads it again; returns false when it is gone.
    pub fn look(&mut self) -> bool {
        self.0.look()
    }
}

/// Whether /proc shows the PID namespace of this process. A /proc that was not remounted shows the outer namespace.
fn is_own_proc() -> bool {
    let own = std::fs::read_link("/proc/self").ok();
    own.is_none_or(|number| number.to_str() == Some(&std::process::id().to_string()))
}

/// CPU of this process since its start.
fn own_cpu_ns() -> Option<u64> {
    weir_sys::clock::process_cpu_ns(std::process::id()).ok()
}

/// Attached programs, unless there is an obstacle, which is noted.
fn begin_tracing(
    roots: &[(u32, Side)],
    plan: Plan<'_>,
    tell: &dyn Fn(&ProbeCost),
    ladder: &mut [RungState],
    notes: &mut Vec<Note>,
) -> Option<Tracing> {
    let state = ladder.iter_mut().find(|state| state.rung == Rung::Programs)?;
    let pids: Vec<u32> = roots.iter().map(|(pid, _)| *pid).collect();
    let family = family_of_all(&pids).unwrap_or_default();
    if state.obstacle.is_none() && family.into_iter().any(is_of_32_bits) {
        state.obstacle = Some(Obstacle::Bits32);
    }
    if state.obstacle.is_none() {
        match Tracing::begin(roots, plan.groups, tell) {
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
    fn begin(
        roots: &[(u32, Side)],
        groups: &[Group],
        tell: &dyn Fn(&ProbeCost),
    ) -> Result<Self, TracerError> {
        // Tested once, and before the window.
        softirq_time::is_apart();
        let untraced = cost::untraced();
        let tracer = Tracer::start(&[], groups)?;
        let cost = cost::tried(&tracer, &untraced)?;
        tell(&cost.cost);
        tracer.add_families(roots)?;
        Ok(Self { tracer, cost, files: Vec::new() })
    }

    /// Excludes what was moved before the window.
    fn begin_descriptors(&mut self, sides: usize) {
        if self.tracer.counts(Group::Descriptors) {
            let of_side = |side| Files::begin(self.tracer.descriptors(side).unwrap_or_default());
            self.files = Side::ALL.into_iter().take(sides).map(of_side).collect();
        }
    }

    /// Identifies descriptors that were opened meanwhile: all of them once a second, and in between if there are few.
    fn look_at_descriptors(&mut self, moment: Moment) {
        for (files, side) in self.files.iter_mut().zip(Side::ALL) {
            if moment != Moment::Between || files.are_few() {
                files.look(&self.tracer.descriptors(side).unwrap_or_default().0, moment);
            }
        }
    }

    /// Call after the programs have stopped.
    fn end_descriptors(&mut self) -> Vec<Option<DescriptorTable>> {
        let end = |(files, side): (&mut Files, Side)| {
            let now = self.tracer.descriptors(side).ok()?;
            files.look(&now.0, Moment::End);
            Some(files.table(&now, &is_open))
        };
        self.files.iter_mut().zip(Side::ALL).map(end).collect()
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
mod tests;
