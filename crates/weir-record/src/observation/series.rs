//! What was done in each interval of an observation.

use serde::{Deserialize, Serialize};

/// Most intervals of a record. An observation whose end is not known joins neighbours when it has as many, and goes on
/// with intervals twice as long.
pub const INTERVALS_MAX: usize = 1_000;
/// Most kinds of calls that have figures in each interval, those that were made most often; the others are in the sums.
pub const INTERVAL_KINDS_MAX: usize = 16;

/// Intervals one after another, without gaps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// Length that was asked for.
    pub asked_ns: u64,
    /// Length at the end: more where neighbours were joined.
    pub interval_ns: u64,
    /// Names of the kinds of calls, those that were made most often first; none without a trace.
    pub kinds: Vec<String>,
    /// In their order.
    pub intervals: Vec<Interval>,
}

/// A stretch of time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// From the begin of the observation.
    pub from_ns: u64,
    /// Not exactly what was asked for: as long as it was between two readings.
    pub length_ns: u64,
    /// CPU of the processes, as of [`super::Totals::cpu_ns`].
    pub cpu_ns: u64,
    /// Time runnable without a CPU.
    pub run_delay_ns: u64,
    /// What the kernel's programs counted; absent without a trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traced: Option<IntervalCalls>,
}

/// System calls that returned in an interval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntervalCalls {
    /// Calls of all kinds.
    pub sum: IntervalKind,
    /// Bytes that they read.
    pub read_bytes: u64,
    /// Bytes that they wrote, or moved from one descriptor to another.
    pub written_bytes: u64,
    /// Calls of the kinds of [`Series::kinds`], in that order.
    pub kinds: Vec<IntervalKind>,
}

/// System calls of one kind, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntervalKind {
    /// Calls that returned.
    pub calls: u64,
    /// Their time on a CPU, as it was while traced.
    pub on_cpu_ns: u64,
    /// Time asleep within the interval, also of calls that began before it or go on after it.
    pub blocked_ns: u64,
    /// Bytes that they answered.
    pub bytes: u64,
}

impl IntervalKind {
    /// Adds what others did.
    pub fn add(&mut self, other: &Self) {
        for (own, other) in [
            (&mut self.calls, other.calls),
            (&mut self.on_cpu_ns, other.on_cpu_ns),
            (&mut self.blocked_ns, other.blocked_ns),
            (&mut self.bytes, other.bytes),
        ] {
            *own = own.saturating_add(other);
        }
    }
}

impl Interval {
    /// Adds the interval that follows.
    pub fn add(&mut self, next: &Self) {
        for (own, next) in [
            (&mut self.length_ns, next.length_ns),
            (&mut self.cpu_ns, next.cpu_ns),
            (&mut self.run_delay_ns, next.run_delay_ns),
        ] {
            *own = own.saturating_add(next);
        }
        if let (Some(own), Some(other)) = (&mut self.traced, &next.traced) {
            own.sum.add(&other.sum);
            own.read_bytes = own.read_bytes.saturating_add(other.read_bytes);
            own.written_bytes = own.written_bytes.saturating_add(other.written_bytes);
            for (own, other) in own.kinds.iter_mut().zip(&other.kinds) {
                own.add(other);
            }
        }
    }
}
