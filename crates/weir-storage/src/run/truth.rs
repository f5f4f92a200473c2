//! Ground truth: matches completions at the device with operations of a run. Pure.
//!
//! A thread with one operation in flight issues its requests one after the other, and the kernel records the issuing
//! thread. So a request belongs to the operation during which the thread issued it; if an operation became several
//! requests, the last of them completed it. A request that the kernel issued later, on behalf of the thread, is not
//! found: the device time of its operation counts as unknown.

use super::recorder::Traced;
use crate::{
    capture::CapturedOperation,
    measure::{Measured, Meter},
};

/// The trace is in microseconds, so its times are rounded.
const RESOLUTION_NS: u64 = 1_000;

/// For each operation the device's completion time, if known. Both lists are in order of time, and from one thread.
pub(super) fn completions(traced: &[Traced], captured: &[CapturedOperation]) -> Vec<Option<u64>> {
    let mut next = 0;
    let of = |operation: &Traced| {
        let from_ns = operation.started_ns.saturating_sub(RESOLUTION_NS);
        let until_ns = operation.measured.noticed_ns.saturating_add(RESOLUTION_NS);
        while captured.get(next).is_some_and(|request| request.issued_ns < from_ns) {
            next += 1;
        }
        let mut done_ns = None;
        while let Some(request) = captured.get(next).filter(|request| request.completed_ns <= until_ns) {
            done_ns = done_ns.max(Some(request.completed_ns));
            next += 1;
        }
        done_ns
    };
    traced.iter().map(of).collect()
}

/// Measures the operations again, with the device's own times. `observed` is the measurement made during the run.
///
/// From `until_ns` on the data are incomplete, so the figures end there, or rather at the last CPU reading before it:
/// operations, time and CPU then cover the same part of the run.
pub(super) fn retold(
    traced: &[Traced],
    captured: &[CapturedOperation],
    observed: &Meter,
    empty: Meter,
    until_ns: u64,
) -> Meter {
    let end_ns = observed.last_reading_ns(until_ns);
    let is_whole = end_ns == observed.stopped_ns();
    let mut meter = empty;
    meter.start(observed.started_ns());
    for (operation, device_done_ns) in traced.iter().zip(completions(traced, captured)) {
        if !is_whole && operation.measured.noticed_ns >= end_ns {
            break;
        }
        meter.record(&Measured { device_done_ns, ..operation.measured });
    }
    meter.stop(end_ns);
    meter.adopt_cpu(observed);
    meter
}

#[cfg(test)]
mod tests {
    use weir_record::storage::DeviceClock;

    use super::*;
    use crate::{
        capture::DeviceNumber,
        predict::{Direction, Plan},
    };

    fn traced(started_ns: u64, noticed_ns: u64) -> Traced {
        Traced {
            started_ns,
            measured: Measured {
                issued_ns: started_ns + 2_000,
                plan: Plan::Sleep { ns: 30_000 },
                woken_ns: Some(started_ns + 50_000),
                complete_at_wake: true,
                woken_early: false,
                noticed_ns,
                device_done_ns: None,
                cpu_ns: 0,
            },
        }
    }

    fn captured(issued_ns: u64, completed_ns: u64) -> CapturedOperation {
        CapturedOperation {
            issued_ns,
            completed_ns,
            thread: 7,
            device: DeviceNumber { major: 254, minor: 0 },
            sector: 0,
            bytes: 4096,
            direction: Direction::Read,
        }
    }

    #[test]
    fn each_operation_gets_the_request_that_was_issued_during_it() {
        let operations = [traced(100_000, 160_000), traced(170_000, 230_000), traced(240_000, 300_000)];
        let requests = [captured(50_000, 90_000), captured(101_000, 142_000), captured(241_000, 281_000)];
        assert_eq!(completions(&operations, &requests), [Some(142_000), None, Some(281_000)]);
    }

    #[test]
    fn the_last_of_several_requests_completed_it() {
        let operations = [traced(100_000, 160_000), traced(170_000, 230_000)];
        let requests = [captured(101_000, 150_000), captured(102_000, 142_000), captured(171_000, 200_000)];
        assert_eq!(completions(&operations, &requests), [Some(150_000), Some(200_000)]);
    }

    #[test]
    fn times_of_the_trace_may_be_off_by_their_resolution() {
        let operations = [traced(100_400, 160_300)];
        assert_eq!(completions(&operations, &[captured(100_000, 161_000)]), [Some(161_000)]);
    }

    #[test]
    fn retold_with_the_truth_a_miss_has_its_oversleep() {
        let operations = [traced(0, 52_100), traced(1_500_000, 1_552_100)];
        let mut observed = Meter::new(1_000_000, 2_000, DeviceClock::Observed);
        observed.start(0);
        observed.thread_busy(0);
        for operation in &operations {
            observed.record(&operation.measured);
        }
        observed.thread_busy(77_000);
        observed.stop(2_000_000);
        let requests = [captured(1_000, 22_000), captured(1_501_000, 1_522_000)];
        let empty = || Meter::new(1_000_000, 2_000, DeviceClock::Tracepoint);
        let told = retold(&operations, &requests, &observed, empty(), u64::MAX);
        let (report, intervals) = told.finish(9_000_000);
        assert_eq!((report.operations, report.misses, report.device_known), (2, 2, 2));
        assert_eq!((report.device_ns, report.oversleep_ns, report.wake_ns), (40_000, 20_000, 36_000));
        assert_eq!((report.elapsed_ns, report.cpu_ns, intervals.len()), (2_000_000, 77_000, 2));
        assert_eq!(report.device_clock, DeviceClock::Tracepoint);
        // Data until the notice of the second operation count for the first interval only.
        let told = retold(&operations, &requests, &observed, empty(), 1_552_101);
        let (report, intervals) = told.finish(9_000_000);
        assert_eq!((report.operations, report.elapsed_ns, intervals.len()), (1, 1_000_000, 1));
        assert_eq!(report.cpu_ns, intervals[0].cpu_ns);
    }
}
