//! The measurement points: exact sums of parts, and bounded intervals.

use proptest::prelude::*;

use super::*;

const LAG_NS: u64 = 2_000;
const INTERVAL_NS: u64 = 1_000_000;

fn meter(clock: DeviceClock) -> Meter {
    let mut meter = Meter::new(INTERVAL_NS, LAG_NS, clock);
    meter.start(0);
    meter
}

/// An unarmed sleep of `ns` from 0, awake at `woken_ns`, noticed at `noticed_ns`.
fn slept(ns: u64, woken_ns: u64, noticed_ns: u64, device_done_ns: Option<u64>) -> Measured {
    Measured {
        issued_ns: 0,
        plan: Plan::Sleep { ns },
        woken_ns: Some(woken_ns),
        complete_at_wake: device_done_ns.is_some_and(|done_ns| done_ns <= woken_ns),
        woken_early: false,
        noticed_ns,
        device_done_ns,
        cpu_ns: 0,
    }
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

fn parts(device_ns: u64, oversleep_ns: u64, wake_ns: u64, notice_ns: u64) -> Parts {
    Parts { device_ns, oversleep_ns, wake_ns, notice_ns }
}

#[test]
fn a_sleep_that_was_too_long_is_divided_at_the_requested_end_and_at_the_wake() {
    let measured = slept(50_000, 65_000, 65_300, Some(40_000));
    assert_eq!(Parts::of(&measured, 40_000), parts(40_000, 10_000, 15_000, 300));
}

#[test]
fn a_request_that_ended_in_time_but_woke_late_is_all_wake() {
    let measured = slept(20_000, 44_000, 44_200, Some(40_000));
    assert_eq!(Parts::of(&measured, 40_000), parts(40_000, 0, 4_000, 200));
}

#[test]
fn a_sleep_that_ended_in_time_leaves_only_the_notice() {
    let measured = slept(10_000, 24_000, 40_100, Some(40_000));
    assert_eq!(Parts::of(&measured, 40_000), parts(40_000, 0, 0, 100));
}

#[test]
fn a_wait_that_the_completion_ended_has_no_oversleep() {
    let early =
        Measured { woken_early: true, complete_at_wake: false, ..slept(90_000, 42_000, 42_500, None) };
    assert_eq!(Parts::of(&early, 40_000), parts(40_000, 0, 2_000, 500));
    let interrupted = Measured { plan: Plan::Interrupt, ..slept(0, 43_000, 43_000, None) };
    assert_eq!(Parts::of(&interrupted, 40_000), parts(40_000, 0, 3_000, 0));
}

#[test]
fn a_miss_is_harmful_when_an_interrupt_would_have_told_earlier() {
    let mut meter = meter(DeviceClock::Tracepoint);
    meter.record(&slept(30_000, 41_900, 41_950, Some(40_000)));
    meter.record(&slept(30_000, 42_100, 42_150, Some(40_000)));
    meter.record(&slept(30_000, 35_000, 40_100, Some(40_000)));
    let (report, _) = meter.finish(100_000);
    assert_eq!((report.operations, report.slept, report.misses, report.misses_harmful), (3, 3, 2, 1));
    assert_eq!((report.sleep_requested_ns, report.sleep_actual_ns), (90_000, 119_000));
    assert_eq!((report.device_known, report.added.count), (3, 3));
    assert_eq!(report.spin_ns, 50 + 50 + 5_100);
}

#[test]
fn what_was_not_seen_is_estimated_from_what_was() {
    let mut meter = meter(DeviceClock::Observed);
    // Nothing is known yet: a miss shows only its wake.
    meter.record(&Measured { complete_at_wake: true, ..slept(50_000, 65_000, 65_000, None) });
    assert_eq!(meter.sums.device_ns, 65_000);
    meter.record(&polled(0, 40_000));
    assert_eq!(meter.sums.device_ns, 105_000);
    meter.record(&Measured { complete_at_wake: true, ..slept(50_000, 65_000, 65_000, None) });
    assert_eq!(
        (meter.sums.device_ns, meter.sums.oversleep_ns, meter.sums.wake_ns),
        (145_000, 10_000, 15_000)
    );
    // An interrupt shows its own time, less its lag.
    meter.record(&Measured { plan: Plan::Interrupt, ..slept(0, 42_000, 42_000, None) });
    assert_eq!((meter.sums.device_ns, meter.sums.wake_ns), (185_000, 17_000));
    let (report, _) = meter.finish(1_000_000);
    assert_eq!((report.device_known, report.added.count, report.latency.count), (0, 0, 4));
    assert_eq!((report.polled, report.interrupted, report.slept), (1, 1, 2));
}

#[test]
fn what_is_expected_before_the_run_is_where_the_estimate_begins() {
    let mut meter = meter(DeviceClock::Observed);
    meter.expect_device(40_000);
    meter.record(&Measured { complete_at_wake: true, ..slept(50_000, 65_000, 65_000, None) });
    assert_eq!((meter.sums.device_ns, meter.sums.oversleep_ns), (40_000, 10_000));
}

#[test]
fn a_planned_sleep_that_did_not_happen_counts_as_polled() {
    let mut meter = meter(DeviceClock::Observed);
    meter.record(&Measured { woken_ns: None, ..slept(50_000, 0, 30_000, None) });
    assert_eq!((meter.sums.polled, meter.sums.slept, meter.sums.sleep_requested_ns), (1, 0, 0));
    assert_eq!((meter.sums.device_ns, meter.sums.spin_ns), (30_000, 30_000));
}

#[test]
fn operations_fall_into_the_interval_in_which_they_were_noticed() {
    let mut meter = meter(DeviceClock::Observed);
    meter.record(&polled(999_000, 999_999));
    meter.record(&polled(999_000, 1_000_000));
    meter.record(&polled(3_200_000, 3_300_000));
    let (report, intervals) = meter.finish(3_500_000);
    let rows: Vec<_> = intervals.iter().map(|row| (row.start_ns, row.elapsed_ns, row.operations)).collect();
    assert_eq!(
        rows,
        [(0, 1_000_000, 1), (1_000_000, 1_000_000, 1), (2_000_000, 1_000_000, 0), (3_000_000, 500_000, 1)]
    );
    assert_eq!((report.operations, report.elapsed_ns), (3, 3_500_000));
}

#[test]
fn a_short_rest_belongs_to_the_last_whole_interval() {
    let mut meter = meter(DeviceClock::Observed);
    meter.record(&polled(0, 10));
    meter.record(&polled(1_000_000, 1_050_000));
    let (report, intervals) = meter.finish(1_099_999);
    assert_eq!((intervals.len(), intervals[0].operations, intervals[0].elapsed_ns), (1, 2, 1_099_999));
    assert_eq!(report.elapsed_ns, 1_099_999);
}

#[test]
fn readings_belong_to_the_interval_that_was_open() {
    let mut meter = meter(DeviceClock::Observed);
    meter.thread_busy(7_000);
    meter.machine_busy(90_000);
    meter.record(&Measured { cpu_ns: 55, ..polled(0, 10) });
    assert!(!meter.is_due(999_999) && meter.is_due(1_000_000));
    meter.thread_busy(507_000);
    meter.machine_busy(1_090_000);
    meter.record(&polled(0, 1_000_000));
    meter.thread_busy(607_000);
    let (report, intervals) = meter.finish(1_500_000);
    assert_eq!(intervals.iter().map(|row| row.cpu_ns).collect::<Vec<_>>(), [500_000, 100_000]);
    assert_eq!(intervals.iter().map(|row| row.machine_busy_ns).collect::<Vec<_>>(), [1_000_000, 0]);
    assert_eq!(report.cpu_ns, 600_000);
}

#[test]
fn without_readings_the_cpu_of_operations_adds_up() {
    let mut meter = meter(DeviceClock::Simulated);
    meter.record(&Measured { cpu_ns: 55, ..polled(0, 10) });
    meter.record(&Measured { cpu_ns: 45, ..polled(0, 1_000_000) });
    let (report, intervals) = meter.finish(1_500_000);
    assert_eq!(intervals.iter().map(|row| row.cpu_ns).collect::<Vec<_>>(), [55, 45]);
    assert_eq!(report.cpu_ns, 100);
}

#[test]
fn the_cpu_of_a_part_of_a_run_is_that_of_its_intervals() {
    let mut whole = meter(DeviceClock::Observed);
    whole.thread_busy(0);
    whole.record(&polled(0, 10));
    whole.thread_busy(500_000);
    whole.record(&polled(0, 1_000_000));
    whole.thread_busy(600_000);
    whole.stop(1_500_000);
    // All of a finished interval, a share by time of a running one, and never more than existed.
    let ends =
        [(400_000, 400_000, 200_000), (1_400_000, 1_000_000, 500_000), (9_000_000, 1_500_000, 600_000)];
    for (until_ns, end_ns, cpu_ns) in ends {
        assert_eq!(whole.last_reading_ns(until_ns), end_ns);
        let mut part = meter(DeviceClock::Tracepoint);
        part.stop(end_ns);
        part.adopt_cpu(&whole);
        let (report, intervals) = part.finish(end_ns);
        assert_eq!((report.cpu_ns, report.elapsed_ns), (cpu_ns, end_ns), "{until_ns}");
        assert_eq!(intervals.iter().map(|row| row.cpu_ns).sum::<u64>(), cpu_ns, "{until_ns}");
    }
    assert_eq!(Meter::new(INTERVAL_NS, LAG_NS, DeviceClock::Observed).last_reading_ns(5), 0);
}

#[test]
fn intervals_end_at_their_maximum_and_the_last_takes_the_rest() {
    let mut meter = Meter::new(1, LAG_NS, DeviceClock::Observed);
    meter.start(0);
    meter.record(&polled(0, 10));
    let far_ns = 2 * INTERVALS_MAX as u64;
    meter.record(&polled(0, far_ns));
    meter.record(&polled(0, far_ns + 5));
    let (report, intervals) = meter.finish(far_ns + 9);
    assert_eq!((report.operations, intervals.len()), (3, INTERVALS_MAX));
    let last = intervals.last().expect("it has intervals");
    assert_eq!(last.operations, 2);
    assert_eq!(last.start_ns + last.elapsed_ns, far_ns + 9);
}

#[test]
fn two_threads_add_up() {
    let (mut first, mut second) = (meter(DeviceClock::Tracepoint), meter(DeviceClock::Tracepoint));
    first.record(&slept(30_000, 42_100, 42_150, Some(40_000)));
    second.record(&slept(30_000, 35_000, 40_100, Some(40_000)));
    second.record(&polled(1_500_000, 1_600_000));
    first.stop(1_200_000);
    second.stop(1_700_000);
    first.merge(&second);
    let (report, intervals) = first.finish(9_000_000);
    assert_eq!((report.operations, report.misses, report.latency.count), (3, 1, 3));
    assert_eq!(report.elapsed_ns, 1_700_000);
    assert_eq!(intervals.iter().map(|row| row.operations).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(intervals[1].elapsed_ns, 700_000);
}

#[test]
fn intervals_of_runs_that_started_apart_are_those_of_one_time() {
    // From 0 to 1.2 ms, and from 3.1 ms to 5.1 ms.
    let run = |start_ns: u64, end_ns: u64| {
        let mut meter = Meter::new(INTERVAL_NS, LAG_NS, DeviceClock::Observed);
        meter.start(start_ns);
        meter.record(&polled(start_ns, start_ns + 500_000));
        meter.record(&polled(start_ns, start_ns + 1_100_000));
        meter.stop(end_ns);
        meter
    };
    let (early, late) = (run(0, 1_200_000), run(3_100_000, 5_100_000));
    for (mut first, second) in [(early.clone(), &late), (late.clone(), &early)] {
        first.merge(second);
        let (report, intervals) = first.finish(9_000_000);
        assert_eq!((report.operations, report.elapsed_ns), (4, 5_100_000));
        assert_eq!(intervals.iter().map(|row| row.operations).collect::<Vec<_>>(), [1, 1, 0, 1, 1]);
        assert!(intervals.iter().enumerate().all(|(place, row)| row.start_ns == place as u64 * INTERVAL_NS));
        assert_eq!(intervals.iter().map(|row| row.elapsed_ns).collect::<Vec<_>>(), [INTERVAL_NS; 5]);
    }
    // Starts that differ by less than half of an interval count as one.
    let (mut first, second) = (run(0, 2_000_000), run(400_000, 2_400_000));
    first.merge(&second);
    assert_eq!(first.finish(0).1.len(), 2);
}

#[test]
fn intervals_of_runs_far_apart_are_no_more_than_the_maximum() {
    let run = |start_ns: u64| {
        let mut meter = Meter::new(INTERVAL_NS, LAG_NS, DeviceClock::Observed);
        meter.start(start_ns);
        meter.record(&polled(start_ns, start_ns + 10));
        meter.stop(start_ns + INTERVAL_NS);
        meter
    };
    for [first_ns, second_ns] in [[0, u64::MAX / 2], [u64::MAX / 2, 0]] {
        let mut first = run(first_ns);
        first.merge(&run(second_ns));
        let (report, intervals) = first.finish(0);
        assert_eq!((report.operations, intervals.len()), (2, INTERVALS_MAX));
        assert_eq!(intervals.iter().map(|row| row.operations).sum::<u64>(), 2);
    }
}

#[test]
fn a_run_whose_records_were_cleared_adds_no_time() {
    let (mut first, mut second) = (meter(DeviceClock::Observed), meter(DeviceClock::Observed));
    first.record(&polled(0, 10));
    first.stop(500_000);
    first.forget();
    second.start(7_000_000);
    second.record(&polled(7_000_000, 7_000_010));
    second.stop(9_000_000);
    first.merge(&second);
    let (report, intervals) = first.finish(9_000_000);
    assert_eq!((report.operations, report.elapsed_ns), (1, 2_000_000));
    let rows: Vec<_> = intervals.iter().map(|row| (row.start_ns, row.operations)).collect();
    assert_eq!(rows, [(0, 1), (1_000_000, 0)]);
}

fn any_plan() -> impl Strategy<Value = Plan> {
    prop_oneof![
        Just(Plan::Poll),
        Just(Plan::Interrupt),
        (0_u64..200_000).prop_map(|ns| Plan::Sleep { ns }),
        Just(Plan::Sleep { ns: u64::MAX }),
    ]
}

prop_compose! {
    fn any_measured()(
        issued_ns in 0_u64..3_000_000,
        plan in any_plan(),
        woken_ns in proptest::option::of(0_u64..3_500_000),
        (complete_at_wake, woken_early) in (any::<bool>(), any::<bool>()),
        noticed_ns in 0_u64..3_500_000,
        device_done_ns in proptest::option::of(0_u64..4_000_000),
    ) -> Measured {
        Measured {
            issued_ns, plan, woken_ns, complete_at_wake, woken_early, noticed_ns, device_done_ns, cpu_ns: 3,
        }
    }
}

proptest! {
    #[test]
    fn the_parts_add_up_to_the_total_whatever_the_clocks_said(
        operations in proptest::collection::vec(any_measured(), 1..60)
    ) {
        let mut meter = meter(DeviceClock::Observed);
        let mut expected_ns = 0;
        for measured in &operations {
            meter.record(measured);
            expected_ns += measured.noticed_ns.saturating_sub(measured.issued_ns);
        }
        let (report, intervals) = meter.finish(3_500_000);
        let sum_ns = report.device_ns + report.oversleep_ns + report.wake_ns + report.notice_ns;
        prop_assert_eq!(sum_ns, report.total_ns);
        prop_assert_eq!(report.total_ns, expected_ns);
        let count = operations.len() as u64;
        prop_assert_eq!(report.slept + report.polled + report.interrupted, count);
        prop_assert!(report.misses_harmful <= report.misses && report.misses <= report.slept);
        prop_assert_eq!(intervals.iter().map(|row| row.operations).sum::<u64>(), count);
        prop_assert_eq!(intervals.iter().map(|row| row.misses).sum::<u64>(), report.misses);
        prop_assert_eq!(intervals.iter().map(|row| row.cpu_ns).sum::<u64>(), report.cpu_ns);
        prop_assert_eq!(intervals.iter().map(|row| row.elapsed_ns).sum::<u64>(), report.elapsed_ns);
    }

    #[test]
    fn a_part_never_reaches_beyond_its_ends(measured in any_measured(), done_ns in 0_u64..4_000_000) {
        let parts = Parts::of(&measured, done_ns);
        prop_assert_eq!(parts.total_ns(), measured.noticed_ns.saturating_sub(measured.issued_ns));
        prop_assert!(parts.device_ns <= done_ns.saturating_sub(measured.issued_ns));
    }
}
