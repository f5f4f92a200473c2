//! What is compared, one row each: how a trial and a slice have the figure, on which scale it is compared, and in which
//! cells. Judge, tables and exports go through [`METRICS`]; a further metric is a variant, a row, and its words in the
//! report.

use serde::{Deserialize, Serialize};

use crate::{
    spec::{CellSpec, LoadMode},
    storage::WaitingReport,
    trial::{ObservedWindow, SliceRecord, TrialRecord},
};

/// A figure of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// CPU time of the server's processes per message. The primary metric.
    ServerCpuPerMessage,
    /// Non-idle CPU of the whole machine per message.
    MachineCpuPerMessage,
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
    /// Operations that were complete when their sleep ended, of all.
    MissRate,
    /// Misses that were noticed later than an interrupt would have told, of all operations.
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
}

impl Metric {
    /// Its row.
    pub fn row(self) -> &'static MetricRow {
        &METRICS[self as usize]
    }

    /// Whether a larger figure is an improvement.
    pub fn larger_is_better(self) -> bool {
        self.row().better == Better::Larger
    }
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

/// What a metric is in a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It is compared, and a claim in cells that claim something.
    Claim,
    /// It is compared without a claim of its own.
    Condition,
    /// Its figures are shown and not compared.
    Figure,
    /// It says nothing there.
    None,
}

/// Everything about a metric but its words.
#[derive(Debug)]
pub struct MetricRow {
    /// The metric.
    pub metric: Metric,
    /// Stable name, as in records and exports.
    pub key: &'static str,
    /// Of its figures.
    pub unit: MetricUnit,
    /// How it is compared.
    pub scale: Scale,
    /// Which way is an improvement.
    pub better: Better,
    /// What it is a kind of.
    pub family: Family,
    /// A trial's figure; absent when it was not observed.
    pub read: fn(&TrialRecord) -> Option<f64>,
    /// A slice's figure; absent where only the whole round has it.
    pub read_slice: Option<fn(&SliceRecord) -> Option<f64>>,
    /// What it is in a cell.
    pub part: fn(&CellSpec) -> Part,
}

/// All metrics, in the order in which they are shown, which is that of the enum.
pub static METRICS: [MetricRow; 18] = [
    MetricRow {
        metric: Metric::ServerCpuPerMessage,
        key: "server-cpu-per-message",
        unit: MetricUnit::Micros,
        scale: Scale::Ratio,
        better: Better::Smaller,
        family: Family::Cpu,
        read: |trial| micros_each(trial, |seen| seen.cpu_ns).or_else(|| micros_modelled(trial)),
        read_slice: Some(|slice| micros_each_of_slice(slice, slice.server_cpu_ns)),
        // Of simulated devices the claims are misses and the share of time that the thread is on its CPU.
        part: |cell| if cell.is_simulated() { Part::Condition } else { Part::Claim },
    },
    MetricRow {
        metric: Metric::MachineCpuPerMessage,
        key: "machine-cpu-per-message",
        unit: MetricUnit::Micros,
        scale: Scale::Ratio,
        better: Better::Smaller,
        family: Family::Cpu,
        read: |trial| micros_each(trial, |seen| seen.noise.machine_busy_ns),
        read_slice: Some(|slice| micros_each_of_slice(slice, slice.machine_cpu_ns)),
        // The machine of a gateway runs an exchange as well.
        part: |cell| match cell {
            _ if cell.is_simulated() => Part::None,
            _ if cell.orders.is_some() => Part::Figure,
            _ => Part::Condition,
        },
    },
    MetricRow {
        metric: Metric::SwitchesPerMessage,
        key: "switches-per-message",
        unit: MetricUnit::Count,
        scale: Scale::Difference { margin: 0.01 },
        better: Better::Smaller,
        family: Family::Events,
        read: |trial| each(trial, |seen| seen.context_switches_voluntary),
        read_slice: None,
        // What was published of gateways.
        part: |cell| if cell.orders.is_some() { Part::Claim } else { observed_figure(cell) },
    },
    MetricRow {
        metric: Metric::Throughput,
        key: "throughput",
        unit: MetricUnit::PerSecond,
        scale: Scale::Ratio,
        better: Better::Larger,
        family: Family::Rate,
        read: |trial| Some(trial.load.as_ref()?.throughput_per_second),
        read_slice: Some(|slice| {
            let is_measured = slice.messages > 0 && slice.length_ns > 0;
            is_measured.then(|| slice.messages as f64 * 1e9 / slice.length_ns as f64)
        }),
        // No generator limits a storage job.
        part: |cell| match cell {
            _ if cell.is_simulated() => Part::Condition,
            _ if is_open(cell) && cell.storage.is_none() => Part::Figure,
            _ => Part::Claim,
        },
    },
    MetricRow {
        metric: Metric::LatencyP50,
        key: "latency-p50",
        unit: MetricUnit::Nanos,
        scale: Scale::Ratio,
        better: Better::Smaller,
        family: Family::Time,
        read: |trial| Some(trial.load.as_ref()?.response.quantile_ns(0.5)? as f64),
        read_slice: None,
        // With one order in flight the round trip is the figure; elsewhere a closed loop hides waiting.
        part: |cell| match cell {
            _ if cell.is_simulated() => Part::Figure,
            _ if is_timed(cell) || cell.orders.is_some() => Part::Claim,
            _ => Part::None,
        },
    },
    MetricRow {
        metric: Metric::LatencyP99,
        key: "latency-p99",
        unit: MetricUnit::Nanos,
        scale: Scale::Ratio,
        better: Better::Smaller,
        family: Family::Time,
        read: |trial| Some(trial.load.as_ref()?.response.quantile_ns(0.99)? as f64),
        read_slice: None,
        part: |cell| match cell.storage {
            _ if cell.is_simulated() => Part::Figure,
            // A job that is stopped between its turns has operations that waited for these among its slowest.
            Some(_) if cell.alternation.is_some() => Part::None,
            _ if is_timed(cell) => Part::Claim,
            _ => Part::None,
        },
    },
    MetricRow {
        metric: Metric::FirstByteP50,
        key: "first-byte-p50",
        unit: MetricUnit::Nanos,
        scale: Scale::Ratio,
        better: Better::Smaller,
        family: Family::Time,
        read: |trial| Some(trial.load.as_ref()?.http.as_ref()?.first_byte.quantile_ns(0.5)? as f64),
        read_slice: None,
        part: to_a_byte,
    },
    MetricRow {
        metric: Metric::LastByteP50,
        key: "last-byte-p50",
        unit: MetricUnit::Nanos,
        scale: Scale::Ratio,
        better: Better::Smaller,
        family: Family::Time,
        read: |trial| Some(trial.load.as_ref()?.http.as_ref()?.last_byte.quantile_ns(0.5)? as f64),
        read_slice: None,
        part: to_a_byte,
    },
    MetricRow {
        metric: Metric::GeneratorCpuPerMessage,
        key: "generator-cpu-per-message",
        unit: MetricUnit::Micros,
        scale: Scale::Ratio,
        better: Better::Smaller,
        family: Family::Cpu,
        read: |trial| {
            let load = trial.load.as_ref()?;
            (load.messages > 0).then(|| load.generator_cpu_ns as f64 / 1e3 / load.messages as f64)
        },
        read_slice: Some(|slice| micros_each_of_slice(slice, slice.generator_cpu_ns)),
        part: observed_figure,
    },
    MetricRow {
        metric: Metric::InvoluntarySwitchesPerMessage,
        key: "involuntary-switches-per-message",
        unit: MetricUnit::Count,
        scale: Scale::Difference { margin: 0.01 },
        better: Better::Smaller,
        family: Family::Events,
        read: |trial| each(trial, |seen| seen.context_switches_involuntary),
        read_slice: None,
        part: observed_figure,
    },
    MetricRow {
        metric: Metric::MissRate,
        key: "miss-rate",
        unit: MetricUnit::Share,
        scale: Scale::Difference { margin: 0.005 },
        better: Better::Smaller,
        family: Family::Events,
        read: |trial| of_operations(trial, |waiting| waiting.misses),
        read_slice: None,
        part: |cell| of_waiting(cell, Part::Claim),
    },
    MetricRow {
        metric: Metric::HarmfulMissRate,
        key: "harmful-miss-rate",
        unit: MetricUnit::Share,
        scale: Scale::Difference { margin: 0.005 },
        better: Better::Smaller,
        family: Family::Events,
        read: |trial| of_operations(trial, |waiting| waiting.misses_harmful),
        read_slice: None,
        part: |cell| of_waiting(cell, Part::Figure),
    },
    MetricRow {
        metric: Metric::WaitingCpuShare,
        key: "waiting-cpu-share",
        unit: MetricUnit::Share,
        scale: Scale::Difference { margin: 0.005 },
        better: Better::Smaller,
        family: Family::Cpu,
        read: |trial| {
            let waiting = waiting(trial)?;
            (waiting.elapsed_ns > 0).then(|| waiting.cpu_ns as f64 / waiting.elapsed_ns as f64)
        },
        read_slice: None,
        part: |cell| of_waiting(cell, Part::Claim),
    },
    MetricRow {
        metric: Metric::AddedLatency,
        key: "added-latency",
        unit: MetricUnit::Micros,
        scale: Scale::Difference { margin: 0.1 },
        better: Better::Smaller,
        family: Family::Time,
        read: |trial| of_operations(trial, |it| it.total_ns.saturating_sub(it.device_ns)).map(|ns| ns / 1e3),
        read_slice: None,
        part: |cell| of_waiting(cell, Part::Condition),
    },
    MetricRow {
        metric: Metric::EffectiveSleep,
        key: "effective-sleep",
        unit: MetricUnit::Micros,
        scale: Scale::Difference { margin: 0.1 },
        better: Better::Smaller,
        family: Family::Time,
        read: |trial| of_operations(trial, |waiting| waiting.sleep_requested_ns).map(|ns| ns / 1e3),
        read_slice: None,
        part: |cell| of_waiting(cell, Part::Figure),
    },
    MetricRow {
        metric: Metric::InterruptedRate,
        key: "interrupted-rate",
        unit: MetricUnit::Share,
        scale: Scale::Difference { margin: 0.005 },
        better: Better::Smaller,
        family: Family::Events,
        read: |trial| of_operations(trial, |waiting| waiting.interrupted),
        read_slice: None,
        part: |cell| of_waiting(cell, Part::Figure),
    },
    MetricRow {
        metric: Metric::ServerMemory,
        key: "server-memory",
        unit: MetricUnit::Bytes,
        // What connections cost is a difference: the rest of the server has its memory without them.
        scale: Scale::Difference { margin: 1_048_576.0 },
        better: Better::Smaller,
        family: Family::Memory,
        read: |trial| Some(trial.load.as_ref()?.observed.as_ref()?.rss_anon_bytes as f64),
        read_slice: None,
        part: |cell| if cell.idle_connections > 0 { Part::Figure } else { Part::None },
    },
    MetricRow {
        metric: Metric::OrdersPerCommit,
        key: "orders-per-commit",
        unit: MetricUnit::Count,
        scale: Scale::Ratio,
        better: Better::Larger,
        family: Family::Events,
        read: |trial| {
            let totals = trial.chain.as_ref()?;
            (totals.gateway_commits > 0).then(|| totals.gateway_orders as f64 / totals.gateway_commits as f64)
        },
        read_slice: None,
        part: |cell| match &cell.orders {
            Some(orders) if orders.journal != "none" => Part::Figure,
            _ => Part::None,
        },
    },
];

/// The rows that are compared in a cell.
pub fn compared(cell: &CellSpec) -> impl Iterator<Item = &'static MetricRow> {
    METRICS.iter().filter(move |row| matches!((row.part)(cell), Part::Claim | Part::Condition))
}

/// The rows that have figures in a cell.
pub fn shown(cell: &CellSpec) -> impl Iterator<Item = &'static MetricRow> {
    METRICS.iter().filter(move |row| (row.part)(cell) != Part::None)
}

fn is_open(cell: &CellSpec) -> bool {
    cell.load != LoadMode::Closed
}

/// Whether response times are those of the server: an offered rate, or a storage job, which waits for its own.
fn is_timed(cell: &CellSpec) -> bool {
    is_open(cell) || cell.storage.is_some()
}

/// Times to the first and to the last byte belong together: a clock that stops at the first says little of a large
/// content.
fn to_a_byte(cell: &CellSpec) -> Part {
    match cell.http {
        Some(_) if is_open(cell) => Part::Condition,
        Some(_) => Part::Figure,
        None => Part::None,
    }
}

/// What only processes have that were observed.
fn observed_figure(cell: &CellSpec) -> Part {
    if cell.is_simulated() { Part::None } else { Part::Figure }
}

/// The measurement points of a way to wait are compared where they are the question, which is on simulated devices; on
/// a disk not every tool has them, and of a job that is stopped between its turns they are not those of its slices.
fn of_waiting(cell: &CellSpec, simulated: Part) -> Part {
    match &cell.storage {
        Some(_) if cell.alternation.is_some() => Part::None,
        Some(storage) if storage.device.is_simulated() => simulated,
        Some(_) => Part::Figure,
        None => Part::None,
    }
}

fn waiting(trial: &TrialRecord) -> Option<&WaitingReport> {
    trial.load.as_ref()?.storage.as_ref()?.waiting.as_ref()
}

/// A sum over the operations of a trial, for each of them.
fn of_operations(trial: &TrialRecord, sum: impl Fn(&WaitingReport) -> u64) -> Option<f64> {
    let waiting = waiting(trial)?;
    (waiting.operations > 0).then(|| sum(waiting) as f64 / waiting.operations as f64)
}

/// CPU per operation of a simulated thread, which no process was.
fn micros_modelled(trial: &TrialRecord) -> Option<f64> {
    let is_modelled = trial.load.as_ref()?.observed.is_none();
    is_modelled.then(|| of_operations(trial, |waiting| waiting.cpu_ns))?.map(|ns| ns / 1e3)
}

fn each(trial: &TrialRecord, total: impl Fn(&ObservedWindow) -> u64) -> Option<f64> {
    let load = trial.load.as_ref()?;
    (load.messages > 0).then_some(total(load.observed.as_ref()?) as f64 / load.messages as f64)
}

/// CPU time that is there has been measured; a window too short for the clock has none.
fn micros_each(trial: &TrialRecord, total_ns: impl Fn(&ObservedWindow) -> u64) -> Option<f64> {
    each(trial, total_ns).map(|ns| ns / 1e3)
}

fn micros_each_of_slice(slice: &SliceRecord, total_ns: u64) -> Option<f64> {
    (slice.messages > 0).then(|| total_ns as f64 / 1e3 / slice.messages as f64)
}

impl MetricRow {
    /// A trial's figure, where it can be compared on the metric's scale.
    pub fn of_trial(&self, trial: &TrialRecord) -> Option<f64> {
        (self.read)(trial).filter(|figure| self.has(*figure))
    }

    /// Whether the scale has such a figure.
    pub fn has(&self, figure: f64) -> bool {
        match self.scale {
            Scale::Ratio => figure.is_finite() && figure > 0.0,
            Scale::Difference { .. } => figure.is_finite(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::LoadReport;

    #[test]
    fn rows_stand_in_the_order_of_the_enum_and_have_the_names_of_the_records() {
        for (index, row) in METRICS.iter().enumerate() {
            assert_eq!(row.metric as usize, index, "{}", row.key);
            let name = serde_json::to_value(row.metric).expect("it is plain data");
            assert_eq!(name, row.key);
            assert!(std::ptr::eq(row.metric.row(), row));
        }
    }

    #[test]
    fn zero_is_a_figure_on_the_scale_of_differences_alone() {
        let load =
            LoadReport { messages: 10, observed: Some(ObservedWindow::default()), ..LoadReport::default() };
        let trial = TrialRecord { load: Some(load), ..TrialRecord::default() };
        assert_eq!(Metric::SwitchesPerMessage.row().of_trial(&trial), Some(0.0));
        assert_eq!(Metric::ServerCpuPerMessage.row().of_trial(&trial), None);
        assert_eq!(Metric::SwitchesPerMessage.row().of_trial(&TrialRecord::default()), None);
    }
}
