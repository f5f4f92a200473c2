//! What is compared: the names of the metrics, and what may be said of one without a record of it. How a
//! trial has its figure, and what it is called, is in its row ([`crate::metric_rows`]).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A figure of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// CPU time of the server's processes per message. The primary metric.
    #[default]
    ServerCpuPerMessage,
    /// CPU of server, generator and softirq threads per message; of whole trials the non-idle CPU of the machine.
    MachineCpuPerMessage,
    /// CPU time of the server's processes per message, with what they use in as long a wait.
    ServerCpuWithWaiting,
    /// Voluntary context switches of the server's threads per message.
    SwitchesPerMessage,
    /// Verified messages per second.
    Throughput,
    /// Median response time at equal offered rate.
    LatencyP50,
    /// 99th percentile of response time at equal offered rate.
    LatencyP99,
    /// Median time from sending a request to the first byte of its response.
    FirstByteP50,
    /// The same to the last byte.
    LastByteP50,
    /// CPU time of the generator per message.
    GeneratorCpuPerMessage,
    /// Involuntary context switches of the server's threads per message.
    InvoluntarySwitchesPerMessage,
    /// Connections of the worker that has most, over their mean: how unevenly they are spread.
    ConnectionsMaxOverMean,
    /// Operations that were complete when their sleep ended, of all.
    MissRate,
    /// Share of the operations that were misses and were noticed later than an interrupt would have reported.
    HarmfulMissRate,
    /// CPU time of the thread that waits, over time.
    WaitingCpuShare,
    /// Mean time from the completion at the device to its notice.
    AddedLatency,
    /// Mean sleep that was asked for, operations without one included.
    EffectiveSleep,
    /// Operations that were left to the interrupt, of all.
    InterruptedRate,
    /// Memory of the server's own, that no file backs.
    ServerMemory,
    /// Orders for each commit of the gateway's journal; at level `disk` a commit is one `fdatasync`.
    OrdersPerCommit,
    /// Wakes of another worker that cost a system call, per order.
    WakesPerOrder,
    /// The same for each message handed over.
    WakesPerHandoff,
    /// Messages found each time a worker emptied its queues.
    HandoffsPerDrain,
    /// Orders that were handed to another worker, of all.
    HandedOffShare,
    /// Resident memory of the server of all kinds, its share of what it has in common with others.
    ServerPss,
    /// Memory of the kernel for the connections of a server, both ends of them.
    KernelMemory,
    /// CPU time of a run of a command, user and system, its children's among it. What `weir compare` decides by.
    CommandCpu,
    /// The part of it outside the kernel.
    CommandUserCpu,
    /// The part of it inside the kernel.
    CommandSystemCpu,
    /// Time from the start of a run of a command to its end.
    CommandWall,
    /// Largest memory that a run of a command had at one time.
    CommandMemoryMax,
    /// Pages that a run mapped without reading them from a disk.
    CommandFaultsMinor,
    /// Pages that a run read from a disk when it touched them.
    CommandFaultsMajor,
    /// Times that a run gave its CPU away to wait.
    CommandSwitchesVoluntary,
    /// Times that the scheduler took a run's CPU away.
    CommandSwitchesInvoluntary,
    /// Bytes that a run read through system calls.
    CommandReadBytes,
    /// Bytes that a run wrote through system calls.
    CommandWrittenBytes,
    /// Instructions that a run retired; only where the CPU has counters for it.
    CommandInstructions,
    /// Units of work in a second, as a load counts them; only of servers.
    CommandThroughput,
}

/// How figures of a metric are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// As ratios: figures are never zero.
    Ratio,
    /// As differences, because zero is a figure too.
    Difference {
        /// Smallest difference that matters, in the metric's unit.
        margin: f64,
    },
}

impl Scale {
    /// The mean on this scale, so that means of two sides stand in the mean of their effects: the geometric one of
    /// ratios, the arithmetic one of differences. `None` of nothing.
    pub fn mean(self, figures: &[f64]) -> Option<f64> {
        let over = |scaled: fn(f64) -> f64| {
            figures.iter().map(|figure| scaled(*figure)).sum::<f64>() / figures.len() as f64
        };
        let mean = || match self {
            Self::Ratio => over(f64::ln).exp(),
            Self::Difference { .. } => over(|figure| figure),
        };
        (!figures.is_empty()).then(mean)
    }

    /// A figure on this scale: its logarithm, or itself.
    pub fn value(self, figure: f64) -> f64 {
        if self == Self::Ratio { figure.ln() } else { figure }
    }

    /// The figure, ratio or difference that a value on this scale stands for.
    pub fn figure(self, value: f64) -> f64 {
        if self == Self::Ratio { value.exp() } else { value }
    }
}

/// Which way is an improvement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Less is better.
    Smaller,
    /// More is better.
    Larger,
}

/// What a figure is a kind of; verdicts have their words by family, and charts of one family share an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// CPU time.
    Cpu,
    /// Work done in a time.
    Rate,
    /// A time that somebody waits.
    Time,
    /// Events.
    Events,
    /// Room that something takes.
    Memory,
}

/// What figures of a metric are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricUnit {
    /// Microseconds.
    Micros,
    /// Nanoseconds.
    Nanos,
    /// A second's worth.
    PerSecond,
    /// Events.
    Count,
    /// A part of a whole, 0 to 1.
    Share,
    /// Bytes.
    Bytes,
}

impl MetricUnit {
    /// As exports name it.
    pub fn key(self) -> &'static str {
        match self {
            Self::Micros => "us",
            Self::Nanos => "ns",
            Self::PerSecond => "1/s",
            Self::Count => "count",
            Self::Share => "share",
            Self::Bytes => "B",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_of_two_sides_stand_in_the_mean_of_their_effects() {
        let (arm, baseline) = ([2.0, 9.0], [1.0, 3.0]);
        let mean = |scale: Scale, figures: &[f64]| scale.mean(figures).expect("there are some");
        let ratio = mean(Scale::Ratio, &arm) / mean(Scale::Ratio, &baseline);
        assert!((ratio - 6.0_f64.sqrt()).abs() < 1e-12, "{ratio}");
        let scale = Scale::Difference { margin: 0.1 };
        assert_eq!(mean(scale, &arm) - mean(scale, &baseline), 3.5);
        assert_eq!(Scale::Ratio.mean(&[]), None);
    }
}
