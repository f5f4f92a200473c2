//! Replay: the operations of a trace, waited for by the simulated thread.
//!
//! An operation takes its recorded time, however the thread waits for it. So a replay shows how well a method
//! predicts, not the effect of waiting on the load; [`super::simulate`] shows that.

use super::{
    method::Method,
    oracle,
    report::PhaseReport,
    scenario::HostModel,
    thread::{Operation, Thread},
};
use crate::trace::TraceOperation;

/// When the next operation is issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As soon as the last one has been noticed: a closed loop.
    BackToBack,
    /// After the pause that the trace has between the completion of one and the issue of the next, if it contains
    /// issue times; at least after the time of an issue.
    Recorded,
}

/// Makes a thread wait for each operation in turn. `interval_ns` is the interval of the measurement points.
///
/// The name of the report is empty; no background is simulated.
pub fn replay(
    operations: &[TraceOperation],
    host: &HostModel,
    method: &Method,
    seed: u64,
    interval_ns: u64,
    pace: Pace,
) -> PhaseReport {
    let sleep_ns = match method {
        Method::ConstantSleep { miss_share, .. } => {
            let mut seen = oracle::Seen::new(1, host, seed);
            operations.iter().for_each(|operation| seen.add(0, operation.latency_ns));
            seen.longest_sleeps(*miss_share)
        }
        Method::Predicted { .. } | Method::Clairvoyant => Vec::new(),
    };
    let mut thread = Thread::with_method(*host, method, seed, sleep_ns);
    let mut meter = host.meter(interval_ns);
    meter.start(0);
    let (mut issued_ns, mut noticed_ns, mut busy_ns) = (host.submit_ns, 0, 0);
    meter.machine_busy(0);
    for (index, recorded) in operations.iter().enumerate() {
        let operation = Operation {
            issued_ns,
            bytes: recorded.bytes,
            direction: recorded.direction,
            in_flight_others: recorded.in_flight.map(|count| count.saturating_sub(1)),
        };
        let plan = thread.plan(0, &operation);
        let waited = thread.wait(&operation, plan, issued_ns + recorded.latency_ns);
        noticed_ns = waited.measured.noticed_ns;
        if meter.is_due(noticed_ns) {
            meter.machine_busy(busy_ns);
        }
        meter.record(&waited.measured);
        busy_ns += waited.measured.cpu_ns;
        issued_ns = match (pace, operations.get(index + 1)) {
            (Pace::Recorded, Some(next)) => waited.ready_ns.max(noticed_ns + pause_ns(recorded, next)),
            (Pace::Recorded, None) | (Pace::BackToBack, _) => waited.ready_ns,
        };
    }
    meter.machine_busy(busy_ns);
    let (waiting, intervals) = meter.finish(noticed_ns);
    PhaseReport { name: String::new(), waiting, intervals, background_operations: 0 }
}

/// Time from the completion of one operation to the issue of the next, if the trace has both.
fn pause_ns(operation: &TraceOperation, next: &TraceOperation) -> u64 {
    let pause = operation
        .issued_ns
        .zip(next.issued_ns)
        .map(|(issued_ns, next_ns)| next_ns.saturating_sub(issued_ns.saturating_add(operation.latency_ns)));
    // A pause is limited like a latency: a longer one means time stamps of another clock or a wrapped counter.
    pause.unwrap_or(0).min(crate::trace::LATENCY_NS_MAX)
}
