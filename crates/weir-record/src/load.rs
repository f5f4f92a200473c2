//! What a load run measured.

pub mod merge;
pub mod parts;
mod rows;

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    failure::{FailureCounts, FailureSample},
    http::HttpLoadReport,
    latency::LatencySummary,
    orders::OrdersLoadReport,
    storage_trial::StorageTrial,
    window::ObservedWindow,
};

pub use rows::too_short;

/// Result of `weir load`, printed by `--json`. Documented in `docs/formats/load-report.md`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadReport {
    /// Version of the records; rises when a field changes its meaning or disappears.
    pub schema_version: u32,
    /// Target as given.
    pub target: String,
    /// Driver the generator itself ran on.
    pub driver: String,
    /// `closed` or `open`.
    pub mode: String,
    /// Connections asked for.
    pub connections: u32,
    /// Messages in flight per connection.
    pub depth: u32,
    /// Bytes per message; for HTTP the content of a response, 0 when contents differ in length.
    pub message_bytes: u32,
    /// Generator threads.
    pub workers: u32,
    /// Seed of payloads and arrivals.
    pub seed: u64,
    /// Every setting of the command line by the name of its flag, as given or by default; empty in a slice.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// Offered rate in messages a second; absent in closed loop.
    pub rate_per_second: Option<f64>,
    /// Warm-up actually spent.
    pub warmup_ns: u64,
    /// Messages asked for; absent in a run of a given time.
    #[serde(default)]
    pub messages_asked: Option<u64>,
    /// Whether the warm-up ended because throughput was steady (`false`: the cap ended it).
    pub warmup_steady: bool,
    /// Length of the measured window.
    pub window_ns: u64,
    /// Messages completed and verified inside the window.
    pub messages: u64,
    /// Messages started inside the window.
    pub messages_started: u64,
    /// Messages completed and verified over the whole run, warm-up included.
    #[serde(default)]
    pub messages_whole_run: u64,
    /// Messages per second in the window.
    pub throughput_per_second: f64,
    /// Payload bytes returned and compared in the window; must equal `messages * message_bytes`. For HTTP the content
    /// bytes of responses whose framing and length were checked.
    pub bytes_verified: u64,
    /// Failures by class, over the whole run (not only the window).
    pub failures: FailureCounts,
    /// Share of failures and of `failed_starts` in all that ended over the whole run, 0 to 1: without those that the
    /// end cut off.
    #[serde(default)]
    pub error_share: f64,
    /// The first failure of the run.
    #[serde(default)]
    pub failure_first: Option<FailureSample>,
    /// Response time: from the intended start to the last byte. In closed loop the same as service time. In open loop
    /// every start that was intended in the window has one: also what came back after it, and, as at least so long,
    /// what never did and what was never started.
    pub response: LatencySummary,
    /// Response times that are at least so long: there was no answer within the response timeout, or no start before
    /// the end of the window.
    #[serde(default)]
    pub response_at_least: u64,
    /// Service time: from the actual send to the last byte.
    pub service: LatencySummary,
    /// Actual minus intended send time (open loop).
    pub send_lag: LatencySummary,
    /// Intended starts in the window that were never sent before its end (open loop).
    pub missed_starts: u64,
    /// Those of them for which a connection was free for a millisecond or more: the generator was late. For the others
    /// every connection was waiting for the server.
    #[serde(default)]
    pub missed_starts_free: u64,
    /// Those of the missed starts that had been due for more than 100 ms at the end of the window. They are errors.
    #[serde(default)]
    pub failed_starts: u64,
    /// Little's law: mean number in flight by counting, and by throughput times mean service time.
    pub littles_law: LittlesLaw,
    /// CPU the generator's threads used in the window.
    pub generator_cpu_ns: u64,
    /// Share of the window the busiest generator thread was on a CPU, 0 to 1.
    pub generator_busy_max: f64,
    /// The generator was the limit: `generator_busy_max` above 0.95, or more than one start in 1000 missed although a
    /// connection was free, or missed while its busiest thread was on a CPU or waited for one for more than 0.95 of the
    /// window.
    pub generator_bound: bool,
    /// Whole seconds of the window, oldest first.
    pub seconds: Vec<SecondRow>,
    /// What was observed about the target's process, when asked for.
    pub observed: Option<ObservedWindow>,
    /// The generators on other hosts, each with its own report; absent if the load came from this machine alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generators: Option<Generators>,
    /// What only HTTP has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpLoadReport>,
    /// What only a run of orders has. Messages are then orders whose reply came, and `response` is their round trip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orders: Option<OrdersLoadReport>,
    /// What only a trial of storage has. Messages are then operations, and `response` is their latency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageTrial>,
}

impl LoadReport {
    /// Failures that speak against the server or the run, and starts that were due for long and never made.
    pub fn errors(&self) -> u64 {
        self.failures.errors() + self.failed_starts
    }
}

/// Generators on several hosts that loaded one target together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Generators {
    /// Their windows, or the slices of all rounds, began within this time of each other, at most. It is a difference of
    /// two readings of the coordinator's clock.
    pub skew_ns: u64,
    /// One for each generator, in the order in which the hosts were named.
    pub parts: Vec<GeneratorPart>,
}

/// One of several generators.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GeneratorPart {
    /// Its host.
    pub host: String,
    /// What it measured alone.
    pub report: LoadReport,
}

/// A generator's thread that is on its CPU for more than this share of the window has no headroom.
pub const GENERATOR_BUSY_MAX: f64 = 0.95;

/// Both sides of Little's law over the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LittlesLaw {
    /// Time-averaged number of messages in flight, by integrating the count.
    pub in_flight_mean: f64,
    /// Throughput times mean service time.
    pub throughput_times_latency: f64,
}

/// One second of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SecondRow {
    /// Messages completed.
    pub messages: u64,
    /// Errors seen.
    pub errors: u64,
    /// Median response time in this second; 0 without an answer.
    pub p50_ns: u64,
    /// 99th percentile of response time in this second; 0 without an answer.
    pub p99_ns: u64,
}

impl SecondRow {
    /// The row of a second with the times of its answers.
    pub fn of(messages: u64, errors: u64, times: &Histogram<u64>) -> Self {
        let at = |quantile| if times.is_empty() { 0 } else { times.value_at_quantile(quantile) };
        Self { messages, errors, p50_ns: at(0.5), p99_ns: at(0.99) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::empty_histogram;

    #[test]
    fn nothing_recorded_is_an_empty_row() {
        assert_eq!(SecondRow::of(0, 3, &empty_histogram()), SecondRow { errors: 3, ..SecondRow::default() });
    }
}
