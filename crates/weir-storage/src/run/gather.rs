//! From the notes of a job's threads to the job's report. Pure.

use weir_record::{
    latency::LatencySummary,
    storage::{DeviceClock, StorageCpu, StorageJob, StorageJobReport},
};

use super::{
    cpu::{self, MachineBusy},
    recorder::{Recorder, Traced},
    tracing::Captured,
    truth,
};
use crate::{capture::CapturedOperation, measure::Meter, wait::Calibration};

/// The result of one thread.
pub(super) struct JobThreadReport {
    pub(super) thread_number: u32,
    pub(super) recorder: Recorder,
    /// Why it ended early.
    pub(super) broken: Option<String>,
    /// Time to generate the bytes of a block, if this thread measured it.
    pub(super) fill_ns: Option<u64>,
}

/// Further facts about a job.
pub(super) struct HostDefaults<'a> {
    pub(super) calibration: Option<&'a Calibration>,
    /// CPU time of the engine's helpers.
    pub(super) helpers: StorageCpu,
    pub(super) machine: &'a MachineBusy,
    /// Requests recorded by the kernel, if they were captured.
    pub(super) captured: Option<&'a Captured>,
    pub(super) was_interrupted: bool,
}

/// The report of a job, and notes for the reader. `add` receives the notes of all its threads.
pub(super) fn job_report(
    job: &StorageJob,
    mut job_threads: Vec<JobThreadReport>,
    around: &HostDefaults<'_>,
    add: impl FnOnce(&Recorder, &StorageCpu),
) -> (StorageJobReport, Vec<String>) {
    let mut notes = Vec::new();
    let is_broken = job_threads.iter().any(|job_thread| job_thread.broken.is_some());
    let fill_ns = job_threads.iter().find_map(|job_thread| job_thread.fill_ns);
    let ramped = job_threads.iter().filter(|job_thread| job_thread.recorder.has_ramp_alone()).count();
    let ended_in_ramp = ramped > 0 && !job_threads.iter().any(|job_thread| job_thread.recorder.has_window());
    notes.extend((ramped > 0 && !ended_in_ramp).then(|| left_out(job, ramped, job_threads.len())));
    // Operations that threads completed before the window of the others opened do not count.
    for job_thread in
        job_threads.iter_mut().filter(|job_thread| !ended_in_ramp && job_thread.recorder.has_ramp_alone())
    {
        job_thread.recorder.forget();
    }
    let until_ns = around.captured.map(|captured| compared_until_ns(&job_threads, captured));
    let operations = job_threads.iter().map(|job_thread| job_thread.recorder.operations()).sum();
    let mut cpu = around.helpers;
    let mut merged: Option<Recorder> = None;
    for mut job_thread in job_threads {
        cpu::add_thread(&mut cpu, &job_thread.recorder.usage);
        if let Some(reason) = job_thread.broken.take() {
            notes.push(format!("{}: a thread ended before its time: {reason}", job.name));
        }
        if let (Some(captured), Some(until_ns), false) = (around.captured, until_ns, ended_in_ramp) {
            notes.extend(retell(job, &mut job_thread, captured, until_ns, around.calibration));
        }
        match &mut merged {
            None => merged = Some(job_thread.recorder),
            Some(merged) => merged.merge(&job_thread.recorder),
        }
    }
    let Some(recorder) = merged else {
        return (
            StorageJobReport { job: Some(job.clone()), failed: true, ..StorageJobReport::default() },
            notes,
        );
    };
    add(&recorder, &cpu);
    let mut report = of_recorder(job, recorder, around.machine, cpu);
    report.failed |= is_broken || around.was_interrupted;
    report.fill_ns = fill_ns;
    report.ended_in_ramp = ended_in_ramp;
    notes.extend(ended_in_ramp.then(|| in_ramp(job, report.elapsed_ns)));
    report.calibration_reads = around.calibration.map_or(0, |calibration| calibration.reads);
    notes.extend(fill_ns.map(|ns| filled(job, ns)));
    notes.extend(partial_note(job, &report, operations));
    (report, notes)
}

/// From when on some operations of these threads cannot be compared with the trace: one of their journals is full, or
/// the trace is. The same for all of them, so that their figures cover the same time.
fn compared_until_ns(job_threads: &[JobThreadReport], captured: &Captured) -> u64 {
    let full_ns = |job_thread: &JobThreadReport| {
        let journal = job_thread.recorder.journal.as_ref()?;
        let kept: usize = journal.iter().map(Vec::len).sum();
        let last = journal.last()?.last()?;
        (job_thread.recorder.operations() > kept as u64).then(|| last.measured.noticed_ns.saturating_add(1))
    };
    job_threads.iter().filter_map(full_ns).chain(captured.full_from_ns).min().unwrap_or(u64::MAX)
}

/// Measures a thread's operations again, with the device's own times.
fn retell(
    job: &StorageJob,
    job_thread: &mut JobThreadReport,
    captured: &Captured,
    until_ns: u64,
    calibration: Option<&Calibration>,
) -> Option<String> {
    let traced: Vec<Traced> = job_thread.recorder.journal.take()?.into_iter().flatten().collect();
    let mut own: Vec<CapturedOperation> = captured
        .operations
        .iter()
        .filter(|request| request.thread == job_thread.thread_number)
        .copied()
        .collect();
    own.sort_unstable_by_key(|request| request.issued_ns);
    if own.is_empty() && !traced.is_empty() {
        return Some(unseen(job));
    }
    let empty = empty_meter(job, calibration, DeviceClock::Tracepoint);
    job_thread.recorder.meter = truth::retold(&traced, &own, &job_thread.recorder.meter, empty, until_ns);
    None
}

/// The figures of all threads' notes.
pub(super) fn of_recorder(
    job: &StorageJob,
    recorder: Recorder,
    machine: &MachineBusy,
    mut cpu: StorageCpu,
) -> StorageJobReport {
    let opened_ns = recorder.opened_ns.unwrap_or(recorder.closed_ns);
    let elapsed_ns = recorder.closed_ns.saturating_sub(opened_ns);
    cpu.machine_busy_ns = machine.between(opened_ns, recorder.closed_ns);
    let never_begun = recorder.report_never_begun();
    let (waiting, mut intervals) = recorder.meter.finish(recorder.closed_ns);
    for interval in &mut intervals {
        let from_ns = opened_ns + interval.start_ns;
        interval.machine_busy_ns = machine.between(from_ns, from_ns + interval.elapsed_ns);
    }
    let errors: Vec<(String, u64)> =
        recorder.errors.into_iter().map(|(name, count)| (name.into_owned(), count)).collect();
    StorageJobReport {
        job: Some(job.clone()),
        elapsed_ns,
        reads: recorder.reads.report(elapsed_ns, job.interval_ns),
        writes: recorder.writes.report(elapsed_ns, job.interval_ns),
        in_flight: recorder.in_flight,
        submitted_at_once: recorder.submitted_at_once,
        completed_at_once: recorder.completed_at_once,
        fsyncs: recorder.fsyncs,
        fsync_latency: LatencySummary::from_histogram(&recorder.fsync_latency),
        never_begun,
        failed: !errors.is_empty(),
        errors,
        cpu,
        waiting: job.engine.is_asynchronous().then_some(waiting),
        intervals,
        ..StorageJobReport::default()
    }
}

/// A meter for a job.
pub(super) fn empty_meter(job: &StorageJob, calibration: Option<&Calibration>, clock: DeviceClock) -> Meter {
    let lag_ns = calibration.map_or(0, |found| found.costs.interrupt_lag_ns);
    let mut meter = Meter::new(job.interval_ns, lag_ns, clock);
    meter.expect_device(calibration.map_or(0, |found| found.device_ns));
    meter
}

/// Note for a job without a window: its figures come from the ramp.
fn in_ramp(job: &StorageJob, elapsed_ns: u64) -> String {
    format!(
        "{}: it ended {:.2} s after it began, inside its ramp of {:.2} s, so nothing was measured as asked: its figures \
         are those of the ramp; give it more to do (a larger size, time_based with a runtime), or a shorter ramp",
        job.name,
        elapsed_ns as f64 / 1e9,
        job.ramp_ns as f64 / 1e9
    )
}

/// Note about threads that were left out for this reason.
fn left_out(job: &StorageJob, count: usize, of: usize) -> String {
    format!(
        "{}: {count} of {of} threads ended inside the ramp, and no figure has them; give them more to do, or a shorter \
         ramp",
        job.name
    )
}

/// Note about the written bytes.
fn filled(job: &StorageJob, fill_ns: u64) -> String {
    format!(
        "{}: every block that is written has unique bytes, which nothing can compress or deduplicate; making them \
         takes {fill_ns} ns of CPU a block, before it is issued",
        job.name
    )
}

/// Note that figures cover only a part of the run.
fn partial_note(job: &StorageJob, report: &StorageJobReport, operations: u64) -> Option<String> {
    let waiting = report.waiting.as_ref().filter(|waiting| waiting.operations < operations)?;
    let seconds = waiting.elapsed_ns as f64 / 1e9;
    Some(format!(
        "{}: the waiting figures and the intervals, with their CPU, are those of the first {seconds:.2} s and {} of \
         {operations} operations: more are not compared with tracepoints",
        job.name, waiting.operations
    ))
}

/// Note that device times are estimates.
fn unseen(job: &StorageJob) -> String {
    format!(
        "{}: the tracepoints saw no request of a thread, so its device times are estimates: others issue them (sqpoll, \
         posixaio, threads), or the numbers of threads are those of a container",
        job.name
    )
}

#[cfg(test)]
mod tests {
    use weir_sys::usage::ThreadUsage;

    use super::*;
    use crate::{
        engine::{Operation, OperationKind},
        measure::Measured,
        predict::Plan,
        wait::InFlight,
    };

    fn job() -> StorageJob {
        StorageJob { name: "a".to_owned(), interval_ns: 1_000_000_000, ..StorageJob::default() }
    }

    fn job_thread(
        thread_number: u32,
        opened_ns: u64,
        closed_ns: u64,
        keeps_journal: bool,
    ) -> JobThreadReport {
        let meter = empty_meter(&job(), None, DeviceClock::Observed);
        let mut recorder = Recorder::new(meter, None, true, keeps_journal);
        recorder.open(opened_ns, 0, ThreadUsage::default());
        let flight = InFlight {
            operation: Operation { slot: 0, kind: OperationKind::Read, offset_bytes: 0, bytes: 4096 },
            intended_ns: opened_ns,
            started_ns: opened_ns,
            handed_ns: opened_ns + 1_000,
            plan: Plan::Poll,
            in_flight: 1,
            woken_ns: None,
        };
        recorder.succeeded(&flight, &polled(opened_ns + 1_000, opened_ns + 50_000));
        recorder.close(
            closed_ns,
            10,
            ThreadUsage { user_ns: 3, system_ns: 4, page_faults_minor: 5, ..ThreadUsage::default() },
        );
        JobThreadReport { thread_number, recorder, broken: None, fill_ns: None }
    }

    fn host_defaults<'a>(machine: &'a MachineBusy, captured: Option<&'a Captured>) -> HostDefaults<'a> {
        HostDefaults {
            calibration: None,
            helpers: StorageCpu { system_ns: 100, ..StorageCpu::default() },
            machine,
            captured,
            was_interrupted: false,
        }
    }

    fn reported(
        job: &StorageJob,
        job_threads: Vec<JobThreadReport>,
        around: &HostDefaults<'_>,
    ) -> (StorageJobReport, Vec<String>) {
        job_report(job, job_threads, around, |_, _| {})
    }

    #[test]
    fn threads_add_up_over_the_longest_window() {
        let mut machine = MachineBusy::default();
        machine.add(0, 0);
        machine.add(4_000_000_000, 2_000_000_000);
        let job_threads = vec![
            job_thread(7, 1_000_000_000, 3_000_000_000, false),
            job_thread(8, 1_000_000_000, 2_500_000_000, false),
        ];
        let (report, notes) = reported(&job(), job_threads, &host_defaults(&machine, None));
        assert_eq!((report.reads.operations, report.elapsed_ns, report.failed), (2, 2_000_000_000, false));
        assert!((report.reads.iops - 1.0).abs() < 1e-9);
        assert_eq!((report.cpu.user_ns, report.cpu.system_ns), (6, 108));
        assert_eq!((report.cpu.page_faults_major, report.cpu.page_faults_minor), (0, 10));
        assert_eq!(report.cpu.machine_busy_ns, 1_000_000_000);
        assert_eq!(
            report.intervals.iter().map(|row| row.machine_busy_ns).collect::<Vec<_>>(),
            [500_000_000; 2]
        );
        assert_eq!(notes, [] as [String; 0]);
        assert!(report.waiting.is_some_and(|waiting| waiting.operations == 2));
    }

    #[test]
    fn a_thread_that_ended_in_its_ramp_adds_neither_operations_nor_time() {
        let machine = MachineBusy::default();
        let mut ramped = job_thread(7, 0, 0, false);
        ramped.recorder = Recorder::new(empty_meter(&job(), None, DeviceClock::Observed), None, true, false);
        ramped.recorder.open_ramp(1_000_000_000, 0, ThreadUsage::default());
        ramped.recorder.close(1_500_000_000, 10, ThreadUsage::default());
        let job_threads = vec![ramped, job_thread(8, 2_000_000_000, 4_000_000_000, false)];
        let (report, notes) = reported(&job(), job_threads, &host_defaults(&machine, None));
        let waiting = report.waiting.expect("the engine is asynchronous");
        assert_eq!((report.elapsed_ns, waiting.elapsed_ns), (2_000_000_000, 2_000_000_000));
        assert_eq!(waiting.operations, 1);
        let rows: Vec<_> = report.intervals.iter().map(|row| (row.start_ns, row.operations)).collect();
        assert_eq!(rows, [(0, 1), (1_000_000_000, 0)]);
        let note = "a: 1 of 2 threads ended inside the ramp";
        assert!(notes.len() == 1 && notes[0].starts_with(note), "{notes:?}");
    }

    fn request(thread: u32, issued_ns: u64, completed_ns: u64) -> CapturedOperation {
        CapturedOperation {
            issued_ns,
            completed_ns,
            thread,
            device: crate::capture::DeviceNumber { major: 254, minor: 0 },
            sector: 0,
            bytes: 4096,
            direction: crate::predict::Direction::Read,
        }
    }

    #[test]
    fn captured_requests_tell_the_devices_time() {
        let (from_ns, to_ns) = (1_000_000_000, 1_000_041_000);
        let operations = vec![request(9, from_ns, to_ns), request(7, from_ns, to_ns)];
        let captured = Captured { operations, ..Captured::default() };
        let machine = MachineBusy::default();
        let job_threads = vec![job_thread(7, 1_000_000_000, 3_000_000_000, true)];
        let (report, notes) = reported(&job(), job_threads, &host_defaults(&machine, Some(&captured)));
        let waiting = report.waiting.expect("the engine is asynchronous");
        assert_eq!((waiting.device_known, waiting.device_ns, waiting.notice_ns), (1, 40_000, 9_000));
        assert_eq!(waiting.device_clock, DeviceClock::Tracepoint);
        assert_eq!(notes, [] as [String; 0]);
    }

    /// Five seconds of polled operations of a millisecond each, with the thread on its CPU for half of the time, and
    /// the kernel's record of them.
    fn long_job_thread(thread_number: u32) -> (JobThreadReport, Vec<CapturedOperation>) {
        let meter = empty_meter(&job(), None, DeviceClock::Observed);
        let mut recorder = Recorder::new(meter, None, true, true);
        recorder.open(0, 0, ThreadUsage::default());
        let mut requests = Vec::new();
        for number in 0..5_000_u64 {
            let started_ns = number * 1_000_000;
            let noticed_ns = started_ns + 999_000;
            let operation = Operation { slot: 0, kind: OperationKind::Read, offset_bytes: 0, bytes: 4096 };
            let (intended_ns, handed_ns) = (started_ns, started_ns);
            let (plan, in_flight, woken_ns) = (Plan::Poll, 1, None);
            let flight =
                InFlight { operation, intended_ns, started_ns, handed_ns, plan, in_flight, woken_ns };
            if recorder.meter.is_due(noticed_ns) {
                recorder.meter.thread_busy(started_ns / 2);
            }
            recorder.succeeded(&flight, &polled(started_ns, noticed_ns));
            requests.push(request(thread_number, started_ns, noticed_ns - 9_000));
        }
        recorder.close(5_000_000_000, 2_500_000_000, ThreadUsage::default());
        (JobThreadReport { thread_number, recorder, broken: None, fill_ns: None }, requests)
    }

    fn polled(issued_ns: u64, noticed_ns: u64) -> Measured {
        Measured {
            issued_ns,
            plan: Plan::Poll,
            woken_ns: None,
            complete_at_wake: false,
            woken_early: false,
            noticed_ns,
            device_done_ns: None,
            cpu_ns: 0,
        }
    }

    /// The figures of a job whose comparison ends early: all of the first two seconds, and nothing else.
    fn expect_two_seconds(job_threads: Vec<JobThreadReport>, captured: &Captured) {
        let (machine, threads) = (MachineBusy::default(), job_threads.len() as u64);
        let (report, notes) = reported(&job(), job_threads, &host_defaults(&machine, Some(captured)));
        let waiting = report.waiting.expect("the engine is asynchronous");
        assert_eq!((waiting.operations, waiting.device_known), (2_000 * threads, 2_000 * threads));
        assert_eq!((waiting.elapsed_ns, waiting.cpu_ns), (2_000_000_000, 1_000_000_000 * threads));
        let rows: Vec<_> = report.intervals.iter().map(|row| (row.operations, row.cpu_ns)).collect();
        assert_eq!(rows, [(1_000 * threads, 500_000_000 * threads); 2]);
        assert_eq!((report.elapsed_ns, report.reads.operations), (5_000_000_000, 5_000 * threads));
        let text = format!("the first 2.00 s and {} of {} operations", 2_000 * threads, 5_000 * threads);
        assert!(notes.len() == 1 && notes[0].contains(&text), "{notes:?}");
    }

    #[test]
    fn when_a_journal_is_full_operations_time_and_cpu_end_together() {
        let (mut first, mut operations) = long_job_thread(7);
        let (second, more) = long_job_thread(8);
        operations.extend(more);
        for chunk in first.recorder.journal.iter_mut().flatten() {
            chunk.truncate(2_400);
        }
        expect_two_seconds(vec![first, second], &Captured { operations, ..Captured::default() });
    }

    #[test]
    fn when_the_trace_is_full_operations_time_and_cpu_end_together() {
        let (job_thread, mut operations) = long_job_thread(7);
        operations.truncate(2_700);
        let full_from_ns = Some(2_700 * 1_000_000);
        expect_two_seconds(vec![job_thread], &Captured { operations, full_from_ns, ..Captured::default() });
    }

    #[test]
    fn a_thread_whose_requests_nobody_saw_has_estimates_and_says_so() {
        let machine = MachineBusy::default();
        let job_threads = vec![job_thread(7, 1_000_000_000, 3_000_000_000, true)];
        let captured = Captured::default();
        let (report, notes) = reported(&job(), job_threads, &host_defaults(&machine, Some(&captured)));
        let waiting = report.waiting.expect("the engine is asynchronous");
        assert_eq!((waiting.operations, waiting.device_clock), (1, DeviceClock::Observed));
        assert!(notes.len() == 1 && notes[0].starts_with("a: the tracepoints saw no request"), "{notes:?}");
    }

    #[test]
    fn what_went_wrong_fails_the_job_and_keeps_its_figures() {
        let machine = MachineBusy::default();
        let mut broken = job_thread(7, 0, 1_000_000_000, false);
        broken.broken = Some("out of luck".to_owned());
        let (report, notes) = reported(&job(), vec![broken], &host_defaults(&machine, None));
        assert!(report.failed && report.reads.operations == 1);
        assert_eq!(notes, ["a: a thread ended before its time: out of luck"]);
        let mut wrong = job_thread(7, 0, 1_000_000_000, false);
        wrong.recorder.failed("EIO".into());
        let (report, _) = reported(&job(), vec![wrong], &host_defaults(&machine, None));
        assert!(report.failed && report.reads.total.count == 1);
        assert_eq!(report.errors, [("EIO".to_owned(), 1)]);
        let around = HostDefaults { was_interrupted: true, ..host_defaults(&machine, None) };
        let (report, _) = reported(&job(), vec![job_thread(7, 0, 1_000_000_000, false)], &around);
        assert!(report.failed && report.reads.operations == 1);
        assert!(reported(&job(), vec![], &host_defaults(&machine, None)).0.failed);
    }
}
