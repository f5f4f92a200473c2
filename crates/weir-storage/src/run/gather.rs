//! From the notes of a job's threads to the job's report. Pure.

use weir_record::storage::{DeviceClock, StorageCpu, StorageJob, StorageJobReport};

use super::{
    cpu::{self, MachineBusy},
    recorder::{JOURNAL_MAX, Recorder, Traced},
    truth,
};
use crate::{capture::CapturedOperation, measure::Meter, wait::Calibration};

/// What one thread brings home.
pub(super) struct LaneReport {
    pub(super) thread_number: u32,
    pub(super) recorder: Recorder,
    /// Why it ended before its time.
    pub(super) broken: Option<String>,
}

/// What else is known about a job.
pub(super) struct Surroundings<'a> {
    pub(super) calibration: Option<&'a Calibration>,
    /// What helpers of the engine used.
    pub(super) helpers: StorageCpu,
    pub(super) machine: &'a MachineBusy,
    /// Requests as the kernel saw them, in order of issue, when they were captured.
    pub(super) captured: Option<&'a [CapturedOperation]>,
    pub(super) was_interrupted: bool,
}

/// The report of a job, and what a reader must know about it.
pub(super) fn job_report(
    job: &StorageJob,
    lanes: Vec<LaneReport>,
    around: &Surroundings<'_>,
) -> (StorageJobReport, Vec<String>) {
    let mut notes = Vec::new();
    let is_broken = lanes.iter().any(|lane| lane.broken.is_some());
    let mut cpu = around.helpers;
    let mut merged: Option<Recorder> = None;
    for mut lane in lanes {
        cpu::add_thread(&mut cpu, &lane.recorder.usage);
        if let Some(reason) = lane.broken {
            notes.push(format!("{}: a thread ended before its time: {reason}", job.name));
        }
        if let (Some(journal), Some(captured)) = (lane.recorder.journal.take(), around.captured) {
            let traced: Vec<Traced> = journal.into_iter().flatten().collect();
            notes.extend(told_partly(job, &traced, lane.recorder.operations()));
            let mut own: Vec<CapturedOperation> =
                captured.iter().filter(|request| request.thread == lane.thread_number).copied().collect();
            own.sort_unstable_by_key(|request| request.issued_ns);
            if own.is_empty() && !traced.is_empty() {
                notes.push(unseen(job));
            } else {
                let empty = empty_meter(job, around.calibration, DeviceClock::Tracepoint);
                lane.recorder.meter = truth::retold(&traced, &own, &lane.recorder.meter, empty);
            }
        }
        match &mut merged {
            None => merged = Some(lane.recorder),
            Some(merged) => merged.merge(&lane.recorder),
        }
    }
    let Some(recorder) = merged else {
        return (
            StorageJobReport { job: Some(job.clone()), failed: true, ..StorageJobReport::default() },
            notes,
        );
    };
    let mut report = of_recorder(job, recorder, around, cpu);
    report.failed |= is_broken || around.was_interrupted;
    (report, notes)
}

fn of_recorder(
    job: &StorageJob,
    recorder: Recorder,
    around: &Surroundings<'_>,
    mut cpu: StorageCpu,
) -> StorageJobReport {
    let opened_ns = recorder.opened_ns.unwrap_or(recorder.closed_ns);
    let elapsed_ns = recorder.closed_ns.saturating_sub(opened_ns);
    cpu.machine_busy_ns = around.machine.between(opened_ns, recorder.closed_ns);
    let (waiting, mut intervals) = recorder.meter.finish(recorder.closed_ns);
    for interval in &mut intervals {
        let from_ns = opened_ns + interval.start_ns;
        interval.machine_busy_ns = around.machine.between(from_ns, from_ns + interval.elapsed_ns);
    }
    let errors: Vec<(String, u64)> =
        recorder.errors.into_iter().map(|(name, count)| (name.into_owned(), count)).collect();
    StorageJobReport {
        job: Some(job.clone()),
        elapsed_ns,
        reads: recorder.reads.report(elapsed_ns),
        writes: recorder.writes.report(elapsed_ns),
        fsyncs: recorder.fsyncs,
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

fn told_partly(job: &StorageJob, traced: &[Traced], operations: u64) -> Option<String> {
    (traced.len() == JOURNAL_MAX && operations > JOURNAL_MAX as u64).then(|| {
        format!(
            "{}: the waiting figures are those of the first {JOURNAL_MAX} operations: more are not compared with \
             tracepoints",
            job.name
        )
    })
}

/// Estimates are not passed off as the device's own times.
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
        wait::Flight,
    };

    fn job() -> StorageJob {
        StorageJob { name: "a".to_owned(), interval_ns: 1_000_000_000, ..StorageJob::default() }
    }

    fn lane(thread_number: u32, opened_ns: u64, closed_ns: u64, keeps_journal: bool) -> LaneReport {
        let meter = empty_meter(&job(), None, DeviceClock::Observed);
        let mut recorder = Recorder::new(meter, None, true, keeps_journal);
        recorder.open(opened_ns, 0, ThreadUsage::default());
        let flight = Flight {
            operation: Operation { slot: 0, kind: OperationKind::Read, offset_bytes: 0, bytes: 4096 },
            intended_ns: opened_ns,
            started_ns: opened_ns,
            handed_ns: opened_ns + 1_000,
            plan: Plan::Poll,
            in_flight: 1,
            woken_ns: None,
        };
        let measured = Measured {
            issued_ns: opened_ns + 1_000,
            plan: Plan::Poll,
            woken_ns: None,
            complete_at_wake: false,
            woken_early: false,
            noticed_ns: opened_ns + 50_000,
            device_done_ns: None,
            cpu_ns: 0,
        };
        recorder.succeeded(&flight, &measured);
        recorder.close(closed_ns, 10, ThreadUsage { user_ns: 3, system_ns: 4, ..ThreadUsage::default() });
        LaneReport { thread_number, recorder, broken: None }
    }

    fn surroundings<'a>(
        machine: &'a MachineBusy,
        captured: Option<&'a [CapturedOperation]>,
    ) -> Surroundings<'a> {
        Surroundings {
            calibration: None,
            helpers: StorageCpu { system_ns: 100, ..StorageCpu::default() },
            machine,
            captured,
            was_interrupted: false,
        }
    }

    #[test]
    fn threads_add_up_over_the_longest_window() {
        let mut machine = MachineBusy::default();
        machine.add(0, 0);
        machine.add(4_000_000_000, 2_000_000_000);
        let lanes =
            vec![lane(7, 1_000_000_000, 3_000_000_000, false), lane(8, 1_000_000_000, 2_500_000_000, false)];
        let (report, notes) = job_report(&job(), lanes, &surroundings(&machine, None));
        assert_eq!((report.reads.operations, report.elapsed_ns, report.failed), (2, 2_000_000_000, false));
        assert!((report.reads.iops - 1.0).abs() < 1e-9);
        assert_eq!((report.cpu.user_ns, report.cpu.system_ns), (6, 108));
        assert_eq!(report.cpu.machine_busy_ns, 1_000_000_000);
        assert_eq!(
            report.intervals.iter().map(|row| row.machine_busy_ns).collect::<Vec<_>>(),
            [500_000_000; 2]
        );
        assert_eq!(notes, [] as [String; 0]);
        assert!(report.waiting.is_some_and(|waiting| waiting.operations == 2));
    }

    #[test]
    fn captured_requests_tell_the_devices_time() {
        let request = |thread| CapturedOperation {
            issued_ns: 1_000_000_000,
            completed_ns: 1_000_041_000,
            thread,
            device: crate::capture::DeviceNumber { major: 254, minor: 0 },
            sector: 0,
            bytes: 4096,
            direction: crate::predict::Direction::Read,
        };
        let captured = [request(9), request(7)];
        let machine = MachineBusy::default();
        let lanes = vec![lane(7, 1_000_000_000, 3_000_000_000, true)];
        let (report, _) = job_report(&job(), lanes, &surroundings(&machine, Some(&captured)));
        let waiting = report.waiting.expect("the engine is asynchronous");
        assert_eq!((waiting.device_known, waiting.device_ns, waiting.notice_ns), (1, 40_000, 9_000));
        assert_eq!(waiting.device_clock, DeviceClock::Tracepoint);
    }

    #[test]
    fn a_thread_whose_requests_nobody_saw_has_estimates_and_says_so() {
        let machine = MachineBusy::default();
        let lanes = vec![lane(7, 1_000_000_000, 3_000_000_000, true)];
        let (report, notes) = job_report(&job(), lanes, &surroundings(&machine, Some(&[])));
        let waiting = report.waiting.expect("the engine is asynchronous");
        assert_eq!((waiting.operations, waiting.device_clock), (1, DeviceClock::Observed));
        assert!(notes.len() == 1 && notes[0].starts_with("a: the tracepoints saw no request"), "{notes:?}");
    }

    #[test]
    fn what_went_wrong_fails_the_job_and_keeps_its_figures() {
        let machine = MachineBusy::default();
        let mut broken = lane(7, 0, 1_000_000_000, false);
        broken.broken = Some("out of luck".to_owned());
        let (report, notes) = job_report(&job(), vec![broken], &surroundings(&machine, None));
        assert!(report.failed && report.reads.operations == 1);
        assert_eq!(notes, ["a: a thread ended before its time: out of luck"]);
        let mut wrong = lane(7, 0, 1_000_000_000, false);
        wrong.recorder.failed("EIO".into());
        let (report, _) = job_report(&job(), vec![wrong], &surroundings(&machine, None));
        assert!(report.failed && report.reads.total.count == 1);
        assert_eq!(report.errors, [("EIO".to_owned(), 1)]);
        let around = Surroundings { was_interrupted: true, ..surroundings(&machine, None) };
        let (report, _) = job_report(&job(), vec![lane(7, 0, 1_000_000_000, false)], &around);
        assert!(report.failed && report.reads.operations == 1);
        assert!(job_report(&job(), vec![], &surroundings(&machine, None)).0.failed);
    }
}
