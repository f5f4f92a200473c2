//! Notes of one thread about its operations. Nothing here allocates per operation, except in the journal of a run
//! that is compared with the kernel's tracepoints.

use std::{borrow::Cow, iter};

use hdrhistogram::Histogram;
use weir_record::{
    latency::{LatencySummary, empty_histogram},
    storage::{DirectionReport, NeverBegun, RateSpread},
};
use weir_sys::usage::ThreadUsage;

use crate::{
    engine::OperationKind,
    measure::{Measured, Meter, whole_intervals},
    output::log::{Logged, OperationLog},
    wait::InFlight,
};

/// Most operations whose times are kept for the comparison with tracepoints.
pub(super) const JOURNAL_MAX: usize = 1 << 20;
/// Operations per allocation.
const JOURNAL_CHUNK: usize = 1 << 14;

/// Intervals allocated in advance, and the most for which a rate is kept.
const INTERVALS_USUAL: usize = 256;
const INTERVALS_MAX: usize = 1 << 20;

/// One direction.
#[derive(Clone, Debug)]
pub(super) struct Side {
    operations: u64,
    bytes: u64,
    submission: Histogram<u64>,
    completion: Histogram<u64>,
    total: Histogram<u64>,
    /// Operations and bytes of each interval.
    intervals: Vec<(u64, u64)>,
}

impl Side {
    fn new() -> Self {
        Self {
            operations: 0,
            bytes: 0,
            submission: empty_histogram(),
            completion: empty_histogram(),
            total: empty_histogram(),
            intervals: Vec::with_capacity(INTERVALS_USUAL),
        }
    }

    fn forget(&mut self) {
        (self.operations, self.bytes) = (0, 0);
        for histogram in [&mut self.submission, &mut self.completion, &mut self.total] {
            histogram.reset();
        }
        self.intervals.clear();
    }

    fn count(&mut self, interval: u64, bytes: u64) {
        self.operations += 1;
        self.bytes += bytes;
        let index = usize::try_from(interval).unwrap_or(usize::MAX);
        if index >= INTERVALS_MAX {
            return;
        }
        if index >= self.intervals.len() {
            self.intervals.resize(index + 1, (0, 0));
        }
        self.intervals[index].0 += 1;
        self.intervals[index].1 += bytes;
    }

    /// Adds another one. `first`: the interval in which each of the two windows opened, this one first.
    fn merge(&mut self, other: &Self, first: [usize; 2]) {
        self.operations += other.operations;
        self.bytes += other.bytes;
        // All histograms have the same bounds, so adding cannot fail.
        let _ = self.submission.add(&other.submission);
        let _ = self.completion.add(&other.completion);
        let _ = self.total.add(&other.total);
        let [own_first, others_first] = first;
        if own_first > 0 {
            let own = std::mem::take(&mut self.intervals);
            self.add_intervals(&own, own_first);
        }
        self.add_intervals(&other.intervals, others_first);
    }

    /// Adds intervals from this number on, up to the maximum.
    fn add_intervals(&mut self, intervals: &[(u64, u64)], first: usize) {
        let first = first.min(INTERVALS_MAX);
        let end = (first + intervals.len()).min(INTERVALS_MAX);
        self.intervals.resize(self.intervals.len().max(end), (0, 0));
        for (into, from) in self.intervals[first..].iter_mut().zip(intervals) {
            *into = (into.0 + from.0, into.1 + from.1);
        }
    }

    /// Its part of a report.
    pub(super) fn report(&self, elapsed_ns: u64, interval_ns: u64) -> DirectionReport {
        let seconds = elapsed_ns as f64 / 1e9;
        let interval_seconds = interval_ns as f64 / 1e9;
        // The rate of a partial interval is not comparable with the others.
        let whole = usize::try_from(elapsed_ns / interval_ns.max(1)).unwrap_or(usize::MAX).min(INTERVALS_MAX);
        let rows = || self.intervals.iter().copied().chain(iter::repeat((0, 0))).take(whole);
        let spread = |amount: fn((u64, u64)) -> u64| {
            if self.operations == 0 {
                return RateSpread::default();
            }
            spread(rows().map(|row| amount(row) as f64 / interval_seconds))
        };
        DirectionReport {
            operations: self.operations,
            bytes: self.bytes,
            iops: if elapsed_ns == 0 { 0.0 } else { self.operations as f64 / seconds },
            submission: LatencySummary::from_histogram(&self.submission),
            completion: LatencySummary::from_histogram(&self.completion),
            total: LatencySummary::from_histogram(&self.total),
            iops_spread: spread(|(operations, _)| operations),
            bandwidth_spread: spread(|(_, bytes)| bytes),
        }
    }
}

/// Spread of rates; the deviation in one pass (Welford, 1962).
fn spread(rates: impl Iterator<Item = f64>) -> RateSpread {
    let mut found = RateSpread::default();
    let mut squares = 0.0;
    for rate in rates {
        let is_first = found.count == 0;
        found.count += 1;
        found.min = if is_first { rate } else { found.min.min(rate) };
        found.max = found.max.max(rate);
        let distance = rate - found.mean;
        found.mean += distance / found.count as f64;
        squares += distance * (rate - found.mean);
    }
    if found.count > 1 {
        found.stddev = (squares / (found.count - 1) as f64).sqrt();
    }
    found
}

/// Operations that were due and never started.
#[derive(Clone, Debug)]
pub(super) struct Unbegun {
    pub(super) operations: u64,
    waited: Histogram<u64>,
}

impl Unbegun {
    fn new() -> Self {
        Self { operations: 0, waited: empty_histogram() }
    }
}

/// An operation for the comparison with tracepoints.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traced {
    pub(super) started_ns: u64,
    pub(super) measured: Measured,
}

/// Notes of one thread over its window. The ramp before it is noted as well and cleared when the window opens: a
/// thread that is done before has nothing else.
pub(super) struct Recorder {
    pub(super) reads: Side,
    pub(super) writes: Side,
    /// Reads and writes by the number in flight at their start: 1, from 2, 4, 8, 16, 32, 64 on.
    pub(super) in_flight: [u64; 7],
    /// Calls by the number of operations taken, and polls by the number of completions.
    pub(super) submitted_at_once: [u64; 6],
    pub(super) completed_at_once: [u64; 6],
    pub(super) fsyncs: u64,
    /// Latency of each fsync.
    pub(super) fsync_latency: Histogram<u64>,
    pub(super) unbegun: Unbegun,
    pub(super) errors: Vec<(Cow<'static, str>, u64)>,
    pub(super) meter: Meter,
    pub(super) usage: ThreadUsage,
    /// When the window opened, or the ramp.
    pub(super) opened_ns: Option<u64>,
    is_ramp: bool,
    pub(super) closed_ns: u64,
    /// In chunks, so that none is ever moved; absent if nothing is compared.
    pub(super) journal: Option<Vec<Vec<Traced>>>,
    log: Option<OperationLog>,
    usage_before: ThreadUsage,
    is_asynchronous: bool,
    interval_ns: u64,
}

impl Recorder {
    /// `is_asynchronous`: submitting and waiting are separate.
    pub(super) fn new(
        meter: Meter,
        log: Option<OperationLog>,
        is_asynchronous: bool,
        keeps_journal: bool,
    ) -> Self {
        Self {
            reads: Side::new(),
            writes: Side::new(),
            in_flight: [0; 7],
            submitted_at_once: [0; 6],
            completed_at_once: [0; 6],
            fsyncs: 0,
            fsync_latency: empty_histogram(),
            unbegun: Unbegun::new(),
            errors: Vec::new(),
            usage: ThreadUsage::default(),
            opened_ns: None,
            is_ramp: false,
            closed_ns: 0,
            journal: keeps_journal.then(Vec::new),
            log,
            usage_before: ThreadUsage::default(),
            is_asynchronous,
            interval_ns: meter.interval_ns(),
            meter,
        }
    }

    /// Starts the ramp.
    pub(super) fn open_ramp(&mut self, now_ns: u64, thread_cpu_ns: u64, usage: ThreadUsage) {
        self.open(now_ns, thread_cpu_ns, usage);
        self.is_ramp = true;
    }

    /// Whether the window was opened: then the figures are those of the window.
    pub(super) fn has_window(&self) -> bool {
        self.opened_ns.is_some() && !self.is_ramp
    }

    /// Whether all notes are from before the window.
    pub(super) fn has_ramp_alone(&self) -> bool {
        self.opened_ns.is_some() && self.is_ramp
    }

    /// Clears all notes except failures.
    pub(super) fn forget(&mut self) {
        self.reads.forget();
        self.writes.forget();
        self.in_flight = [0; 7];
        (self.submitted_at_once, self.completed_at_once) = ([0; 6], [0; 6]);
        self.fsyncs = 0;
        self.fsync_latency.reset();
        self.unbegun.operations = 0;
        self.unbegun.waited.reset();
        self.meter.forget();
        self.usage = ThreadUsage::default();
        (self.opened_ns, self.is_ramp) = (None, false);
    }

    /// Opens the window.
    pub(super) fn open(&mut self, now_ns: u64, thread_cpu_ns: u64, usage: ThreadUsage) {
        if self.is_ramp {
            self.forget();
        }
        self.opened_ns = Some(now_ns);
        self.closed_ns = now_ns;
        self.usage_before = usage;
        self.meter.start(now_ns);
        self.meter.thread_busy(thread_cpu_ns);
    }

    /// Closes the window.
    pub(super) fn close(&mut self, now_ns: u64, thread_cpu_ns: u64, usage: ThreadUsage) {
        if self.opened_ns.is_some() {
            self.closed_ns = now_ns;
            self.usage = usage.since(&self.usage_before);
            self.meter.thread_busy(thread_cpu_ns);
        } else {
            self.meter.start(now_ns);
        }
        self.meter.stop(now_ns);
    }

    /// Writes what is left in the log. An error concerns only the log.
    pub(super) fn finish_log(&mut self) -> std::io::Result<()> {
        let window_ns = self.closed_ns.saturating_sub(self.opened_ns.unwrap_or(self.closed_ns));
        self.log.take().map_or(Ok(()), |log| log.finish(window_ns))
    }

    /// Notes a call that submitted `count` operations.
    #[inline]
    pub(super) fn submitted(&mut self, count: usize) {
        if self.opened_ns.is_some() && count > 0 {
            self.submitted_at_once[class_at_once(count)] += 1;
        }
    }

    /// Notes a poll that found `count` completions. Empty polls are not counted: a polling thread makes millions.
    #[inline]
    pub(super) fn completed(&mut self, count: usize) {
        if self.opened_ns.is_some() && count > 0 {
            self.completed_at_once[class_at_once(count)] += 1;
        }
    }

    /// Notes a successful operation.
    #[inline]
    pub(super) fn succeeded(&mut self, flight: &InFlight, measured: &Measured) {
        let Some(opened_ns) = self.opened_ns else { return };
        let reads = match flight.operation.kind {
            OperationKind::Read => true,
            OperationKind::Write => false,
            OperationKind::Fsync | OperationKind::Fdatasync => {
                self.fsyncs += 1;
                self.fsync_latency.saturating_record(measured.noticed_ns.saturating_sub(flight.started_ns));
                return;
            }
        };
        self.in_flight[flight.in_flight.max(1).ilog2().min(6) as usize] += 1;
        let noticed_ns = measured.noticed_ns;
        let side = if reads { &mut self.reads } else { &mut self.writes };
        let submission_ns = flight.handed_ns - flight.started_ns;
        let completion_ns = noticed_ns.saturating_sub(flight.handed_ns);
        let total_ns = noticed_ns.saturating_sub(flight.intended_ns);
        side.count(
            noticed_ns.saturating_sub(opened_ns) / self.interval_ns,
            u64::from(flight.operation.bytes),
        );
        if self.is_asynchronous {
            side.submission.saturating_record(submission_ns);
        }
        side.completion.saturating_record(completion_ns);
        side.total.saturating_record(total_ns);
        self.meter.record(measured);
        if self.is_ramp {
            return;
        }
        if let Some(log) = &mut self.log {
            log.record(&Logged {
                at_ns: noticed_ns.saturating_sub(opened_ns),
                reads,
                offset_bytes: flight.operation.offset_bytes,
                bytes: flight.operation.bytes,
                submission_ns,
                completion_ns,
                total_ns,
            });
        }
        if let Some(journal) = &mut self.journal {
            write_journal(journal, Traced { started_ns: flight.started_ns, measured: *measured });
        }
    }

    /// Notes a failed operation. Failures before the window count too.
    #[cold]
    pub(super) fn failed(&mut self, name: Cow<'static, str>) {
        add_error(&mut self.errors, name, 1);
    }

    /// Notes `count` operations that were due when the time was over, had waited this long, and will never start.
    /// Nothing is noted before the job starts.
    pub(super) fn never_begun(&mut self, waited_ns: u64, count: u64) {
        if self.opened_ns.is_some() {
            self.unbegun.operations += count;
            self.unbegun.waited.saturating_record_n(waited_ns, count);
        }
    }

    /// Their part of a report. Their waits are separate from the latencies of completed operations: those were
    /// measured, these are lower bounds.
    pub(super) fn report_never_begun(&self) -> NeverBegun {
        if self.unbegun.operations == 0 {
            return NeverBegun::default();
        }
        let mut all = self.unbegun.waited.clone();
        for side in [&self.reads, &self.writes] {
            // All histograms have the same bounds, so adding cannot fail.
            let _ = all.add(&side.total);
        }
        NeverBegun {
            operations: self.unbegun.operations,
            waited: LatencySummary::from_histogram(&self.unbegun.waited),
            total_at_least: LatencySummary::from_histogram(&all),
        }
    }

    /// Operations of both directions.
    pub(super) fn operations(&self) -> u64 {
        self.reads.operations + self.writes.operations
    }

    /// The same notes without journal and log, for sums over jobs.
    pub(super) fn copied(&self) -> Self {
        Self {
            reads: self.reads.clone(),
            writes: self.writes.clone(),
            in_flight: self.in_flight,
            submitted_at_once: self.submitted_at_once,
            completed_at_once: self.completed_at_once,
            fsyncs: self.fsyncs,
            fsync_latency: self.fsync_latency.clone(),
            unbegun: self.unbegun.clone(),
            errors: self.errors.clone(),
            meter: self.meter.clone(),
            usage: self.usage,
            opened_ns: self.opened_ns,
            is_ramp: self.is_ramp,
            closed_ns: self.closed_ns,
            journal: None,
            log: None,
            usage_before: self.usage_before,
            is_asynchronous: self.is_asynchronous,
            interval_ns: self.interval_ns,
        }
    }

    /// Adds the notes of another thread, without its journal.
    pub(super) fn merge(&mut self, other: &Self) {
        let first = self.first_intervals(other);
        self.reads.merge(&other.reads, first);
        self.writes.merge(&other.writes, first);
        add_counts(&mut self.in_flight, &other.in_flight);
        add_counts(&mut self.submitted_at_once, &other.submitted_at_once);
        add_counts(&mut self.completed_at_once, &other.completed_at_once);
        self.fsyncs += other.fsyncs;
        let _ = self.fsync_latency.add(&other.fsync_latency);
        self.unbegun.operations += other.unbegun.operations;
        let _ = self.unbegun.waited.add(&other.unbegun.waited);
        for (name, count) in &other.errors {
            add_error(&mut self.errors, name.clone(), *count);
        }
        self.meter.merge(&other.meter);
        self.closed_ns = self.closed_ns.max(other.closed_ns);
        if self.opened_ns.is_none() {
            self.is_ramp = other.is_ramp;
        }
        self.opened_ns = match (self.opened_ns, other.opened_ns) {
            (Some(own_ns), Some(other_ns)) => Some(own_ns.min(other_ns)),
            (own, other) => own.or(other),
        };
    }

    /// The interval in which this window opened and that of another one, from the start of the earlier one on.
    fn first_intervals(&self, other: &Self) -> [usize; 2] {
        let Some((own_ns, others_ns)) = self.opened_ns.zip(other.opened_ns) else { return [0; 2] };
        [(others_ns, own_ns), (own_ns, others_ns)]
            .map(|(from_ns, to_ns)| whole_intervals(from_ns, to_ns, self.interval_ns))
    }
}

fn add_counts(into: &mut [u64], from: &[u64]) {
    into.iter_mut().zip(from).for_each(|(into, from)| *into += from);
}

/// The class of a number of operations at once: up to 4, 8, 16, 32, 64, and more.
fn class_at_once(count: usize) -> usize {
    count.clamp(4, 65).next_power_of_two().ilog2() as usize - 2
}

fn add_error(errors: &mut Vec<(Cow<'static, str>, u64)>, name: Cow<'static, str>, count: u64) {
    match errors.iter_mut().find(|(known, _)| *known == name) {
        Some((_, known)) => *known += count,
        None => errors.push((name, count)),
    }
}

fn write_journal(journal: &mut Vec<Vec<Traced>>, traced: Traced) {
    if journal.last().is_none_or(|chunk| chunk.len() == JOURNAL_CHUNK) {
        if journal.len() >= JOURNAL_MAX / JOURNAL_CHUNK {
            return;
        }
        journal.push(Vec::with_capacity(JOURNAL_CHUNK));
    }
    if let Some(chunk) = journal.last_mut() {
        chunk.push(traced);
    }
}

#[cfg(test)]
mod tests {
    use weir_record::storage::DeviceClock;

    use super::*;
    use crate::{engine::Operation, predict::Plan};

    fn recorder(is_asynchronous: bool, keeps_journal: bool) -> Recorder {
        let meter = Meter::new(1_000_000_000, 2_000, DeviceClock::Observed);
        Recorder::new(meter, None, is_asynchronous, keeps_journal)
    }

    fn flight(kind: OperationKind) -> InFlight {
        InFlight {
            operation: Operation { slot: 0, kind, offset_bytes: 0, bytes: 4096 },
            intended_ns: 9_000,
            started_ns: 10_000,
            handed_ns: 11_500,
            plan: Plan::Poll,
            in_flight: 1,
            woken_ns: None,
        }
    }

    fn measured() -> Measured {
        Measured {
            issued_ns: 11_500,
            plan: Plan::Poll,
            woken_ns: None,
            complete_at_wake: false,
            woken_early: false,
            noticed_ns: 52_000,
            device_done_ns: None,
            cpu_ns: 0,
        }
    }

    #[test]
    fn operations_at_once_are_counted_in_the_window_by_how_many_they_are() {
        let mut notes = recorder(true, false);
        notes.submitted(1);
        notes.open_ramp(5_000, 0, ThreadUsage::default());
        notes.submitted(1);
        notes.open(6_000, 0, ThreadUsage::default());
        for count in [0, 1, 4, 5, 8, 9, 16, 17, 32, 33, 64, 65, 4096] {
            notes.submitted(count);
        }
        notes.completed(0);
        notes.completed(6);
        let mut sum = notes.copied();
        sum.merge(&notes);
        assert_eq!((notes.submitted_at_once, notes.completed_at_once), ([2; 6], [0, 1, 0, 0, 0, 0]));
        assert_eq!((sum.submitted_at_once, sum.completed_at_once), ([4; 6], [0, 2, 0, 0, 0, 0]));
    }

    #[test]
    fn an_operation_has_three_times_and_counts_from_its_intended_start() {
        let mut recorder = recorder(true, false);
        recorder.open(5_000, 0, ThreadUsage::default());
        recorder.succeeded(&flight(OperationKind::Read), &measured());
        recorder.succeeded(&flight(OperationKind::Write), &measured());
        recorder.succeeded(&flight(OperationKind::Fsync), &measured());
        let side = recorder.reads.report(1_000_000_000, 1_000_000_000);
        assert_eq!((side.operations, side.bytes), (1, 4096));
        assert!((side.iops - 1.0).abs() < 1e-9);
        assert_eq!((side.submission.ns_max, side.completion.ns_max), (1_500, 40_511));
        assert_eq!(side.total.ns_max, 43_007);
        assert_eq!((recorder.writes.operations, recorder.fsyncs, recorder.operations()), (1, 1, 2));
        assert_eq!(recorder.in_flight, [2, 0, 0, 0, 0, 0, 0]);
        assert_eq!(
            (recorder.fsync_latency.len(), recorder.fsync_latency.max()),
            (1, 42_015),
            "no rate has them in it"
        );
    }

    #[test]
    fn before_the_window_only_failures_count() {
        let mut recorder = recorder(true, true);
        recorder.succeeded(&flight(OperationKind::Read), &measured());
        recorder.failed("EIO".into());
        recorder.failed("EIO".into());
        recorder.failed("ENOSPC".into());
        recorder.close(90_000, 5, ThreadUsage::default());
        assert_eq!((recorder.operations(), recorder.opened_ns), (0, None));
        assert_eq!(recorder.errors, [("EIO".into(), 2), ("ENOSPC".into(), 1)]);
        assert_eq!(recorder.journal.expect("it was asked for").len(), 0);
    }

    #[test]
    fn the_ramp_is_forgotten_when_the_window_opens_and_is_all_there_is_where_it_never_does() {
        let ramped = || {
            let mut recorder = recorder(true, true);
            recorder.open_ramp(5_000, 0, ThreadUsage::default());
            recorder.succeeded(&flight(OperationKind::Read), &measured());
            recorder.never_begun(7, 3);
            recorder.failed("EIO".into());
            recorder
        };
        let mut alone = ramped();
        alone.close(90_000, 5, ThreadUsage::default());
        assert_eq!((alone.operations(), alone.has_window(), alone.has_ramp_alone()), (1, false, true));
        assert_eq!(alone.journal.as_ref().map(Vec::len), Some(0), "the trace begins with the window");
        let mut opened = ramped();
        opened.open(60_000, 9, ThreadUsage::default());
        assert_eq!((opened.operations(), opened.unbegun.operations, opened.errors.len()), (0, 0, 1));
        opened.succeeded(&flight(OperationKind::Write), &Measured { noticed_ns: 70_000, ..measured() });
        opened.close(90_000, 19, ThreadUsage::default());
        assert!(opened.has_window() && !opened.has_ramp_alone());
        assert_eq!((opened.opened_ns, opened.operations()), (Some(60_000), 1));
        let (waiting, intervals) = opened.meter.finish(90_000);
        assert_eq!((waiting.operations, waiting.cpu_ns, waiting.elapsed_ns), (1, 10, 30_000));
        assert_eq!(intervals.len(), 1);
    }

    #[test]
    fn what_was_never_begun_is_told_apart_and_as_a_bound_of_the_whole() {
        let (mut first, mut second) = (recorder(true, false), recorder(true, false));
        first.never_begun(1_000_000, 9);
        assert_eq!(first.report_never_begun(), NeverBegun::default(), "the window is not open");
        for recorder in [&mut first, &mut second] {
            recorder.open(5_000, 0, ThreadUsage::default());
            recorder.succeeded(&flight(OperationKind::Read), &measured());
        }
        assert_eq!(first.report_never_begun().total_at_least.count, 0, "there is nothing to add");
        first.never_begun(1_000_000, 2);
        second.never_begun(3_000_000, 1);
        first.merge(&second);
        let told = first.report_never_begun();
        assert_eq!((told.operations, told.waited.count, told.total_at_least.count), (3, 3, 5));
        let completed = first.reads.report(1, 1_000_000_000).total;
        assert_eq!(
            (told.total_at_least.ns_min, told.total_at_least.ns_max),
            (completed.ns_min, told.waited.ns_max)
        );
        assert!((999_000..=1_000_000).contains(&told.waited.ns_min), "{}", told.waited.ns_min);
        assert_eq!(completed.count, 2, "what was measured stays what it is");
    }

    #[test]
    fn one_system_call_that_does_all_has_no_time_of_submission() {
        let mut recorder = recorder(false, false);
        recorder.open(0, 0, ThreadUsage::default());
        recorder.succeeded(&flight(OperationKind::Read), &measured());
        assert_eq!(recorder.reads.report(1, 1_000_000_000).submission, LatencySummary::default());
        assert_eq!(recorder.reads.report(0, 1_000_000_000).iops, 0.0);
    }

    #[test]
    fn threads_of_a_job_add_up() {
        let (mut first, mut second) = (recorder(true, false), recorder(true, false));
        for recorder in [&mut first, &mut second] {
            recorder.open(5_000, 0, ThreadUsage::default());
            recorder.succeeded(&flight(OperationKind::Read), &measured());
            recorder.failed("EIO".into());
        }
        first.close(100_000, 0, ThreadUsage::default());
        second.close(120_000, 0, ThreadUsage::default());
        first.merge(&second);
        assert_eq!((first.operations(), first.closed_ns, first.opened_ns), (2, 120_000, Some(5_000)));
        assert_eq!(first.errors, [("EIO".into(), 2)]);
        assert_eq!(first.reads.report(1, 1_000_000_000).total.count, 2);
    }

    #[test]
    fn rates_of_windows_that_opened_apart_are_added_where_they_were() {
        let window = |opened_ns: u64| {
            let mut recorder = recorder(true, false);
            recorder.open(opened_ns, 0, ThreadUsage::default());
            for half_seconds in [1, 3] {
                let noticed_ns = opened_ns + half_seconds * 500_000_000;
                recorder.succeeded(&flight(OperationKind::Read), &Measured { noticed_ns, ..measured() });
            }
            recorder.close(opened_ns + 2_000_000_000, 0, ThreadUsage::default());
            recorder
        };
        for [first_ns, second_ns] in [[20_000, 3_000_020_000], [3_000_020_000, 20_000]] {
            let mut sum = window(first_ns);
            sum.merge(&window(second_ns));
            let elapsed_ns = sum.closed_ns - sum.opened_ns.expect("both were opened");
            assert_eq!(elapsed_ns, 5_000_000_000);
            // The third second has no operation of either.
            let spread = sum.reads.report(elapsed_ns, 1_000_000_000).iops_spread;
            assert_eq!((spread.count, spread.min, spread.max), (5, 0.0, 1.0));
            let (waiting, intervals) = sum.meter.finish(sum.closed_ns);
            assert_eq!(waiting.elapsed_ns, elapsed_ns);
            assert_eq!(intervals.iter().map(|row| row.operations).collect::<Vec<_>>(), [1, 1, 0, 1, 1]);
        }
    }

    #[test]
    fn rates_of_windows_far_apart_are_no_more_than_the_maximum() {
        let (mut side, mut other) = (Side::new(), Side::new());
        side.count(0, 512);
        other.count(0, 512);
        side.merge(&other, [0, usize::MAX]);
        assert_eq!((side.operations, side.intervals[0], side.intervals.len()), (2, (1, 512), INTERVALS_MAX));
        other.merge(&Side::new(), [usize::MAX, 0]);
        assert_eq!((other.operations, other.intervals.len()), (1, INTERVALS_MAX));
    }

    #[test]
    fn the_journal_ends_at_its_maximum() {
        let mut journal = Vec::new();
        for _ in 0..JOURNAL_MAX + 3 {
            write_journal(&mut journal, Traced { started_ns: 0, measured: measured() });
        }
        assert_eq!(journal.iter().map(Vec::len).sum::<usize>(), JOURNAL_MAX);
    }

    #[test]
    fn rates_of_whole_intervals_differ_by_what_a_sample_does() {
        let mut side = Side::new();
        for (interval, operations) in [(0, 2), (1, 0), (2, 4), (3, 1)] {
            (0..operations).for_each(|_| side.count(interval, 512));
        }
        // The fourth interval is partial; the second is empty.
        let report = side.report(3_500_000_000, 1_000_000_000);
        assert_eq!(report.iops_spread, RateSpread { count: 3, min: 0.0, max: 4.0, mean: 2.0, stddev: 2.0 });
        assert_eq!((report.bandwidth_spread.max, report.bandwidth_spread.stddev), (2048.0, 1024.0));
        let mut other = Side::new();
        other.count(1, 512);
        other.merge(&side, [0; 2]);
        let report = other.report(3_000_000_000, 1_000_000_000);
        assert_eq!((report.iops_spread.min, report.iops_spread.count), (1.0, 3));
        assert_eq!(side.report(900_000_000, 1_000_000_000).iops_spread, RateSpread::default());
        assert_eq!(Side::new().report(3_000_000_000, 1_000_000_000).iops_spread, RateSpread::default());
    }

    #[test]
    fn rates_are_kept_of_so_many_intervals_and_no_more() {
        let mut side = Side::new();
        side.count(INTERVALS_MAX as u64 - 1, 1);
        side.count(INTERVALS_MAX as u64, 1);
        side.count(u64::MAX, 1);
        assert_eq!((side.operations, side.intervals.len()), (3, INTERVALS_MAX));
        assert_eq!(side.report(u64::MAX, 1).iops_spread.count, INTERVALS_MAX as u64);
    }
}
