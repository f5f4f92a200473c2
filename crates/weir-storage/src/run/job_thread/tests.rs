//! The loop of one thread over a fake engine in virtual time.

use weir_record::storage::{AccessPattern, DeviceClock, StorageEngine, WaitingReport};

use super::*;
use crate::{
    measure::Meter,
    predict::Costs,
    run::recorder::Recorder,
    wait::{
        Method,
        fake::{FakeEngine, FakeTime, INTERRUPT_NS, Journal, LAG_NS, SUBMIT_NS, World},
    },
};

const COSTS: Costs = Costs {
    submit_ns: SUBMIT_NS,
    sleep_cpu_ns: 1_500,
    interrupt_cpu_ns: 2_500,
    interrupt_lag_ns: INTERRUPT_NS,
    wake_lag_ns: LAG_NS,
};
const BLOCKS: u64 = 100;

fn job() -> StorageJob {
    StorageJob {
        engine: StorageEngine::Libaio,
        pattern: AccessPattern::RandRead,
        interval_ns: 1_000_000,
        ramp_ns: 0,
        runtime_ns: None,
        time_based: false,
        ..StorageJob::default()
    }
}

struct Outcome {
    recorder: Recorder,
    journal: Journal,
    world: World,
    result: io::Result<()>,
    completed: u64,
}

impl Outcome {
    fn reads(&self) -> weir_record::storage::DirectionReport {
        self.recorder.reads.report(1_000_000_000, 1_000_000_000)
    }

    fn kinds(&self, kind: OperationKind) -> Vec<u64> {
        let journal = self.journal.borrow();
        journal.iter().filter(|(_, operation)| operation.kind == kind).map(|(at_ns, _)| *at_ns).collect()
    }

    fn waiting(self) -> WaitingReport {
        self.recorder.meter.finish(0).0
    }
}

fn run_with(
    job: &StorageJob,
    method: Method,
    make: impl FnOnce(FakeEngine) -> FakeEngine,
    stop: &AtomicBool,
) -> Outcome {
    let world = World::default();
    let engine = make(FakeEngine::new(&world, &[40_000]));
    let journal = engine.journal();
    let used_bytes = BLOCKS * u64::from(job.block_bytes);
    let completed = AtomicU64::new(0);
    let mut job_thread = JobThread::new(Parts {
        job,
        engine: Box::new(engine),
        waiter: Waiter::new(FakeTime(world.clone()), method, COSTS),
        recorder: Recorder::new(
            Meter::new(job.interval_ns, INTERRUPT_NS, DeviceClock::Observed),
            None,
            true,
            false,
        ),
        offsets: Offsets::new(job, 0, used_bytes),
        contents: Contents::new(job, 0, used_bytes, None, 1),
        schedule: Schedule::new(job, 5_000),
        shared: Shared { stop, completed: &completed },
    });
    let result = job_thread.run();
    let (_, recorder, _) = job_thread.into_parts();
    Outcome { recorder, journal, world, result, completed: completed.load(Ordering::Relaxed) }
}

fn run(job: &StorageJob, method: Method) -> Outcome {
    run_with(job, method, |engine| engine, &AtomicBool::new(false))
}

#[test]
fn a_run_without_a_time_ends_when_its_size_is_done_once() {
    let outcome = run(&job(), Method::Poll);
    assert!(outcome.result.is_ok());
    let reads = outcome.reads();
    assert_eq!((reads.operations, reads.bytes, outcome.completed), (BLOCKS, BLOCKS * 4096, BLOCKS));
    assert_eq!(reads.submission.ns_max, 1_000);
    // 40 us after the start of the call, noticed by the next poll.
    assert!((39_000..=39_150).contains(&reads.completion.ns_max), "{}", reads.completion.ns_max);
    assert!((40_000..=40_150).contains(&reads.total.ns_max), "{}", reads.total.ns_max);
    let mut offsets: Vec<u64> =
        outcome.journal.borrow().iter().map(|(_, operation)| operation.offset_bytes).collect();
    offsets.sort_unstable();
    assert_eq!(offsets, (0..BLOCKS).map(|block| block * 4096).collect::<Vec<_>>());
}

#[test]
fn as_many_as_the_depth_are_in_flight_and_may_go_in_one_call() {
    let deep = StorageJob { depth: 8, batch_max: 8, ..job() };
    let outcome = run(&deep, Method::Interrupt);
    assert_eq!(outcome.reads().operations, BLOCKS);
    let starts = outcome.kinds(OperationKind::Read);
    assert_eq!(starts[..8], [starts[0]; 8]);
    // All operations of a batch take the same time here, so they complete and restart together.
    let calls = starts.chunk_by(|first, second| first == second).count();
    assert_eq!(calls as u64, BLOCKS.div_ceil(8));
    assert_eq!(outcome.recorder.in_flight, [13, 26, 49, 12, 0, 0, 0]);
    // Twelve batches of eight and one of four.
    assert_eq!(outcome.recorder.submitted_at_once, [1, 12, 0, 0, 0, 0]);
    assert_eq!(outcome.recorder.completed_at_once, [1, 12, 0, 0, 0, 0]);
    let waiting = outcome.waiting();
    assert_eq!((waiting.operations, waiting.interrupted), (BLOCKS, BLOCKS));
}

#[test]
fn a_batch_is_no_larger_than_allowed_and_all_that_may_begin_does() {
    for batch_max in [1, 3] {
        let deep = StorageJob { depth: 8, batch_max, ..job() };
        let outcome = run(&deep, Method::Interrupt);
        assert_eq!(outcome.reads().operations, BLOCKS);
        let starts = outcome.kinds(OperationKind::Read);
        let calls: Vec<usize> = starts.chunk_by(|first, second| first == second).map(<[u64]>::len).collect();
        assert!(calls.iter().all(|count| *count <= batch_max as usize), "{calls:?}");
        // The first eight are submitted before any wait: one call per batch, and no wait between them.
        let last_ns = starts[0] + u64::from(8_u32.div_ceil(batch_max) - 1) * SUBMIT_NS;
        assert!(starts[7] <= last_ns, "{starts:?}");
    }
}

#[test]
fn time_ends_a_run_and_the_ramp_is_not_counted() {
    let timed = StorageJob {
        runtime_ns: Some(10_000_000),
        ramp_ns: 5_000_000,
        start_delay_ns: 1_000_000,
        time_based: true,
        ..job()
    };
    let outcome = run(&timed, Method::Interrupt);
    let starts = outcome.kinds(OperationKind::Read);
    assert!((1_005_000..1_005_000 + 2 * LAG_NS).contains(&starts[0]), "{}", starts[0]);
    assert!(starts.iter().all(|start_ns| *start_ns <= 16_005_000 + 100_000));
    let opened_ns = outcome.recorder.opened_ns.expect("the window opened");
    assert!((6_005_000..6_150_000).contains(&opened_ns), "{opened_ns}");
    // 43 us each.
    let reads = outcome.reads().operations;
    assert!((10_000 / 45..=10_000 / 42).contains(&reads), "{reads}");
    assert!(outcome.completed > reads);
    let (waiting, intervals) = outcome.recorder.meter.finish(0);
    assert_eq!(waiting.operations, reads);
    assert!((10..=11).contains(&intervals.len()), "{}", intervals.len());
    // The fake thread is busy for half of its time.
    assert!(waiting.cpu_ns.abs_diff(waiting.elapsed_ns / 2) < 100_000);
}

#[test]
fn a_run_that_ends_inside_its_ramp_has_the_figures_of_the_ramp() {
    let short = StorageJob { ramp_ns: 60_000_000_000, start_delay_ns: 1_000_000, ..job() };
    let outcome = run(&short, Method::Interrupt);
    assert!(outcome.recorder.has_ramp_alone());
    assert_eq!(outcome.reads().operations, BLOCKS);
    assert!((1_005_000..1_005_000 + 2 * LAG_NS).contains(&outcome.recorder.opened_ns.expect("it began")));
    let waiting = outcome.waiting();
    assert_eq!((waiting.operations, waiting.latency.count), (BLOCKS, BLOCKS));
}

#[test]
fn the_number_of_operations_ends_a_run() {
    let few = StorageJob { operations_max: Some(7), depth: 4, ..job() };
    assert_eq!(run(&few, Method::Poll).reads().operations, 7);
}

#[test]
fn a_rate_is_kept_and_latency_counts_from_the_intended_start() {
    let paced = StorageJob { rate_iops: Some(10_000), operations_max: Some(50), ..job() };
    let outcome = run(&paced, Method::Poll);
    let starts = outcome.kinds(OperationKind::Read);
    for (number, start_ns) in starts.iter().enumerate() {
        let intended_ns = 5_000 + number as u64 * 100_000;
        // After the first sleeps the timer's lag is known and compensated.
        let late_ns = if number < 40 { 2 * LAG_NS } else { LAG_NS / 10 };
        assert!((intended_ns..=intended_ns + late_ns).contains(start_ns), "{number}: {start_ns}");
    }
    // A device that takes longer than the gaps builds a queue, and the queue is visible.
    let slow = run_with(
        &StorageJob { rate_iops: Some(100_000), operations_max: Some(50), ..job() },
        Method::Poll,
        |engine| engine,
        &AtomicBool::new(false),
    );
    let reads = slow.reads();
    assert!(reads.completion.ns_max < 40_000);
    assert!((1_400_000..1_600_000).contains(&reads.total.ns_max), "{}", reads.total.ns_max);
}

#[test]
fn reads_and_writes_with_rates_of_their_own_both_keep_them() {
    let mixed = StorageJob {
        pattern: AccessPattern::RandRw,
        read_percent: 90,
        rate_iops: Some(5_000),
        rate_writes_iops: Some(2_500),
        runtime_ns: Some(10_000_000),
        time_based: true,
        depth: 4,
        ..job()
    };
    let outcome = run(&mixed, Method::Interrupt);
    assert_eq!(outcome.kinds(OperationKind::Read).len(), 50);
    assert_eq!(outcome.kinds(OperationKind::Write).len(), 25);
}

#[test]
fn a_rate_with_depth_issues_while_others_are_in_flight() {
    let paced = StorageJob { rate_iops: Some(100_000), operations_max: Some(60), depth: 8, ..job() };
    let outcome = run(&paced, Method::Interrupt);
    let starts = outcome.kinds(OperationKind::Read);
    for (number, start_ns) in starts.iter().enumerate().skip(50) {
        let intended_ns = 5_000 + number as u64 * 10_000;
        assert!((intended_ns..=intended_ns + 5_000).contains(start_ns), "{number}: {start_ns}");
    }
    assert!(outcome.reads().total.ns_max < 80_000);
}

/// A job of 10,000 operations a second for 10 ms, on a device with these times.
fn stalled(job: StorageJob, times_ns: &[u64], stop: &AtomicBool) -> Outcome {
    let paced = StorageJob { rate_iops: Some(10_000), runtime_ns: Some(10_000_000), ..job };
    run_with(&paced, Method::Poll, |engine| engine.lasting(times_ns), stop)
}

#[test]
fn what_a_stall_to_the_end_kept_from_beginning_is_counted_with_its_wait() {
    let endless = || StorageJob { time_based: true, ..job() };
    let outcome = stalled(endless(), &[50_000_000], &AtomicBool::new(false));
    // One of the rate times the stall was in flight.
    let told = outcome.recorder.report_never_begun();
    assert_eq!((outcome.reads().operations, told.operations, told.waited.count), (1, 99, 99));
    // Waits last until the time was over, not until the device came back.
    assert!((99_900..=100_000).contains(&told.waited.ns_min), "{}", told.waited.ns_min);
    assert!((9_890_000..9_910_000).contains(&told.waited.ns_max), "{}", told.waited.ns_max);
    assert_eq!(told.total_at_least.count, 100);
    assert_eq!(outcome.reads().total.count, 1);

    let in_time = stalled(endless(), &[40_000], &AtomicBool::new(false));
    assert_eq!((in_time.reads().operations, in_time.recorder.unbegun.operations), (100, 0));
    // Half of the requested operations are done; the rest is not lost.
    let slow = stalled(endless(), &[200_000], &AtomicBool::new(false));
    assert_eq!(slow.reads().operations + slow.recorder.unbegun.operations, 100);
    assert!((45..=55).contains(&slow.recorder.unbegun.operations), "{}", slow.recorder.unbegun.operations);
}

#[test]
fn what_a_job_would_not_have_begun_anyway_is_not_counted() {
    let few = StorageJob { operations_max: Some(30), time_based: true, ..job() };
    let outcome = stalled(few.clone(), &[50_000_000], &AtomicBool::new(false));
    assert_eq!(outcome.recorder.unbegun.operations, 29);
    assert_eq!(stalled(few, &[40_000], &AtomicBool::new(false)).recorder.unbegun.operations, 0);
    let closed = StorageJob { time_based: true, runtime_ns: Some(10_000_000), ..job() };
    assert_eq!(run(&closed, Method::Poll).recorder.unbegun.operations, 0, "without a rate nothing is due");
    let stopped = stalled(job(), &[40_000], &AtomicBool::new(true));
    assert_eq!(stopped.recorder.unbegun.operations, 0, "the window never opened");
}

#[test]
fn a_pause_follows_each_completion() {
    let slow = StorageJob { think_time_ns: 200_000, operations_max: Some(20), ..job() };
    let outcome = run(&slow, Method::Poll);
    let starts = outcome.kinds(OperationKind::Read);
    for pair in starts.windows(2) {
        assert!((240_000..240_200 + 2 * LAG_NS).contains(&(pair[1] - pair[0])), "{pair:?}");
    }
    // No part of the pause is latency.
    assert!(outcome.reads().total.ns_max < 41_000);
}

#[test]
fn a_pause_waits_for_all_that_is_in_flight() {
    let slow = StorageJob { think_time_ns: 200_000, operations_max: Some(20), depth: 4, ..job() };
    let one_by_one = |engine: FakeEngine| engine.lasting(&[40_000, 60_000, 80_000, 100_000, 40_000]);
    let starts =
        run_with(&slow, Method::Interrupt, one_by_one, &AtomicBool::new(false)).kinds(OperationKind::Read);
    // Until the first pause the depth is that of the job, and then one.
    let paused = starts.windows(2).filter(|pair| pair[1] - pair[0] > 240_000).count();
    assert_eq!((starts.len(), paused), (20, 16), "{starts:?}");
}

#[test]
fn failed_operations_are_counted_and_what_succeeded_is_kept() {
    let outcome = run_with(
        &job(),
        Method::Poll,
        |engine| engine.failing(&[(3, -5), (4, -28), (9, 100)]),
        &AtomicBool::new(false),
    );
    assert!(outcome.result.is_ok());
    assert_eq!(outcome.reads().operations, BLOCKS - 3);
    let errors: Vec<(&str, u64)> =
        outcome.recorder.errors.iter().map(|(name, count)| (name.as_ref(), *count)).collect();
    assert_eq!(errors, [("EIO", 1), ("ENOSPC", 1), ("short", 1)]);
}

#[test]
fn a_run_in_which_too_much_fails_ends() {
    let all: Vec<(u64, i32)> = (0..2 * FAILURES_MAX).map(|number| (number, -5)).collect();
    let endless = StorageJob { time_based: true, runtime_ns: Some(1 << 40), depth: 4, ..job() };
    let outcome =
        run_with(&endless, Method::Interrupt, |engine| engine.failing(&all), &AtomicBool::new(false));
    assert!(outcome.result.is_ok());
    let count = outcome.recorder.errors[0].1;
    assert!((FAILURES_MAX..FAILURES_MAX + 4).contains(&count), "{count}");
    assert_eq!(outcome.reads().operations, 0);
}

#[test]
fn a_run_that_is_stopped_begins_nothing_more() {
    let outcome = run_with(&job(), Method::Poll, |engine| engine, &AtomicBool::new(true));
    assert!(outcome.result.is_ok());
    assert_eq!((outcome.journal.borrow().len(), outcome.recorder.opened_ns), (0, None));
    let delayed = StorageJob { start_delay_ns: 1 << 40, ..job() };
    let outcome = run_with(&delayed, Method::Poll, |engine| engine, &AtomicBool::new(true));
    assert!(outcome.world.now_ns() < 1_000_000_000);
    assert_eq!(outcome.waiting().elapsed_ns, 0);
}

#[test]
fn what_the_kernel_does_not_take_is_offered_again() {
    let deep = StorageJob { depth: 8, batch_max: 8, ..job() };
    let outcome = run_with(&deep, Method::Interrupt, |engine| engine.taking(3), &AtomicBool::new(false));
    assert!(outcome.result.is_ok());
    assert_eq!(outcome.reads().operations, BLOCKS);
    let refused = run_with(&deep, Method::Interrupt, |engine| engine.taking(0), &AtomicBool::new(false));
    assert!(refused.result.is_err());
}

#[test]
fn writes_are_synced_every_so_often() {
    let synced = StorageJob { pattern: AccessPattern::RandWrite, fsync_every: 10, depth: 2, ..job() };
    let outcome = run(&synced, Method::Interrupt);
    assert_eq!(outcome.recorder.writes.report(1, 1_000_000_000).operations, BLOCKS);
    assert_eq!((outcome.recorder.fsyncs, outcome.kinds(OperationKind::Fsync).len()), (10, 10));
    let journal = outcome.journal.borrow();
    let first = journal.iter().position(|(_, operation)| operation.kind == OperationKind::Fsync);
    assert_eq!(first, Some(10));
}

fn order(outcome: &Outcome) -> Vec<OperationKind> {
    outcome.journal.borrow().iter().map(|(_, operation)| operation.kind).collect()
}

#[test]
fn a_mixed_job_syncs_once_for_its_writes_or_as_often_as_fio() {
    let once = StorageJob { pattern: AccessPattern::RandRw, fsync_every: 4, ..job() };
    let outcome = run(&once, Method::Interrupt);
    let writes = outcome.kinds(OperationKind::Write).len();
    assert_eq!(outcome.kinds(OperationKind::Fsync).len(), writes / 4);
    let again = run(&StorageJob { syncs_as_fio: true, ..once }, Method::Interrupt);
    let order = order(&again);
    let mut writes = 0;
    for pair in order.windows(2) {
        writes += u32::from(pair[0] == OperationKind::Write);
        let is_due = pair[0] != OperationKind::Fsync && writes > 0 && writes % 4 == 0;
        assert_eq!(pair[1] == OperationKind::Fsync, is_due, "{order:?}");
    }
    assert_ne!(order.last(), Some(&OperationKind::Fsync));
    assert!(again.kinds(OperationKind::Fsync).len() > outcome.kinds(OperationKind::Fsync).len());
}

#[test]
fn where_two_kinds_of_sync_are_due_there_is_one() {
    let both = StorageJob { pattern: AccessPattern::Write, fsync_every: 4, fdatasync_every: 2, ..job() };
    let outcome = run(&both, Method::Interrupt);
    let syncs: Vec<OperationKind> = order(&outcome).into_iter().filter(|kind| !kind.transfers()).collect();
    assert_eq!(syncs[..4], [OperationKind::Fdatasync, OperationKind::Fsync].repeat(2));
    assert_eq!((outcome.kinds(OperationKind::Fsync).len(), syncs.len()), (25, 50));
}

#[test]
fn a_rate_is_one_of_writes_however_often_they_are_synced() {
    let paced = StorageJob {
        pattern: AccessPattern::Write,
        fsync_every: 1,
        rate_iops: Some(5_000),
        operations_max: Some(40),
        ..job()
    };
    let outcome = run(&paced, Method::Poll);
    let writes = outcome.kinds(OperationKind::Write);
    let last_ns = 5_000 + 39 * 200_000;
    assert!((last_ns..last_ns + 2 * LAG_NS).contains(&writes[39]), "{}", writes[39]);
    for (write_ns, sync_ns) in writes.iter().zip(outcome.kinds(OperationKind::Fsync)) {
        assert!(sync_ns - write_ns < 45_000, "it follows at once");
    }
}

#[test]
fn times_of_a_hybrid_wait_add_up_and_misses_are_seen() {
    use crate::predict::PredictorSpec;
    let spec: PredictorSpec = "fixed:35us".parse().expect("a spec");
    let job = StorageJob { operations_max: Some(80), ..job() };
    let missed = run(&job, Method::Hybrid { predictor: spec.build(&COSTS), armed: false }).waiting();
    assert_eq!((missed.slept, missed.misses), (80, 80));
    let sum_ns = missed.device_ns + missed.oversleep_ns + missed.wake_ns + missed.notice_ns;
    assert_eq!(sum_ns, missed.total_ns);
    let spec: PredictorSpec = "fixed:20us".parse().expect("a spec");
    let hit = run(&job, Method::Hybrid { predictor: spec.build(&COSTS), armed: false }).waiting();
    assert_eq!((hit.slept, hit.misses), (80, 0));
    assert_eq!(hit.sleep_requested_ns, 80 * 20_000);
    assert_eq!(hit.sleep_actual_ns, 80 * (20_000 + LAG_NS));
    assert!(hit.latency.ns_max < missed.latency.ns_max);
}

#[test]
fn what_was_written_is_made_durable_at_the_end_where_that_is_asked_for() {
    let of = |end_fsync, pattern| {
        let job = StorageJob { end_fsync, pattern, file: "/nowhere/at/all".into(), ..job() };
        run_with(&job, Method::Interrupt, |engine| engine, &AtomicBool::new(false)).result.is_ok()
    };
    assert!(of(false, AccessPattern::Write) && of(true, AccessPattern::Read));
    assert!(!of(true, AccessPattern::Write), "a file that is not there cannot be made durable");
}

#[test]
fn a_sync_as_the_last_operation_does_not_replace_the_one_at_the_end() {
    for (fsync_every, fdatasync_every, last) in
        [(0, 1, OperationKind::Fdatasync), (1, 0, OperationKind::Fsync)]
    {
        let job = StorageJob {
            end_fsync: true,
            pattern: AccessPattern::Write,
            file: "/nowhere/at/all".into(),
            fsync_every,
            fdatasync_every,
            depth: 4,
            ..job()
        };
        let outcome = run(&job, Method::Interrupt);
        assert_eq!(order(&outcome).last(), Some(&last));
        assert!(outcome.result.is_err(), "without the file there can be no sync at the end: {last:?}");
    }
}
