//! A judged study: everything a report needs, nothing it must compute.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    check::Check,
    connection_costs::ConnectionCosts,
    cpu_account::CpuDifference,
    effect::{Effect, Effects, Question},
    evidence::{ArmEvidence, UnderStrace},
    finding::Finding,
    frontier::{FrontierAnswer, FrontierRow},
    goal::ComparisonSpec,
    grid::Grid,
    guidance::Guidance,
    latency_map::LatencyLadder,
    machine::{Fingerprint, NetworkCounters},
    metric::Metric,
    overview::{Aggregate, Overview},
    run_pool::{AmongRuns, Period},
    spec::StudySpec,
    threads::ThreadUse,
    verdict::Verdict,
    wait_series::WaitSeries,
};

/// One finished study. Report, terminal and export draw this and recompute nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StudyResult {
    /// Version of the records; rises when a field changes its meaning or disappears.
    pub schema_version: u32,
    /// What was asked.
    pub spec: StudySpec,
    /// Where it ran.
    pub fingerprint: Fingerprint,
    /// Index into the rows of `effects` of the primary comparison (server CPU per message in the primary cell; the
    /// share of CPU where that is on a simulated device).
    pub primary: Option<usize>,
    /// The primary verdict; decides the exit code. On a simulated device it is that of the candidate, which is the
    /// baseline: better when it is ahead of the whole family of the second arm.
    pub verdict: Verdict,
    /// The table of effects: comparisons, and what stands beside them; the study's own questions, goals and contrasts;
    /// causes, added costs and shares of published differences. What follows here are figures, checks and views.
    #[serde(default)]
    pub effects: Effects,
    /// Absolute figures per cell and arm.
    pub arms: Vec<ArmSummary>,
    /// Validity checks with their outcome.
    pub checks: Vec<Check>,
    /// Machine states found from the study's own readings.
    pub states: MachineStates,
    /// Every trial in time order, for the timeline.
    pub timeline: Vec<TimelineEntry>,
    /// Arms that could not run, with the reason and what would unlock them.
    pub missing_arms: Vec<MissingArm>,
    /// Whether every planned block was finished.
    pub complete: bool,
    /// Wall time of all sessions.
    pub elapsed_ns: u64,
    /// Command that runs this study again.
    pub reproduce: String,
    /// How connections came about, by cell and arm; empty unless a listener lost some or was made to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listening: Vec<ListenSummary>,
    /// Seconds after which this kernel sends an unanswered SYN again; empty when that is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub syn_ladder_s: Vec<u32>,
    /// Cells with more busy threads than CPUs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub oversubscribed: Vec<OversubscribedCell>,
    /// Results of the slices of evidence, by cell and arm; empty where the study has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<ArmEvidence>,
    /// System calls as strace counts them, by cell and arm; empty where the study does not ask for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strace: Vec<UnderStrace>,
    /// What threads of each name did, by cell and arm, those with most switches first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<ThreadUse>,
    /// Where arms use more CPU than the baseline, or less, by cell; empty where the study has no such evidence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu_differences: Vec<CpuDifference>,
    /// The map: cells that differ in levels of factors alone, by arm and metric; empty where there are few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grids: Vec<Grid>,
    /// The same cells in tables; empty where there is no map.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overviews: Vec<Overview>,
    /// Latency against offered load; empty where no cells differ in the rate alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency_ladders: Vec<LatencyLadder>,
    /// What connections cost that are silent, and those that carry one message; absent where the study has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_costs: Option<ConnectionCosts>,
    /// The rows of a load tester for each server of an HTTP study.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aggregates: Vec<Aggregate>,
    /// What the map recommends to someone who must choose; absent without a map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guidance: Option<Guidance>,
    /// Ways to wait in the plane of misses and CPU; empty unless arms have both figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frontier: Vec<FrontierRow>,
    /// What the frontier says of the family of the second arm, the primary cell first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frontier_answers: Vec<FrontierAnswer>,
    /// How arms waited over time, interval by interval; empty where no cell has such trials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wait_series: Vec<WaitSeries>,
    /// When it ran: the minutes that it describes. The store knows it; absent in results stored before it was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<Period>,
    /// When its run folder was made, in seconds since 1970: the date in the store, which copies of the folder keep.
    /// Absent in results stored before it was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_unix_s: Option<u64>,
    /// Where its primary comparison stands among earlier runs; absent where none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub among_runs: Option<AmongRuns>,
}

impl StudyResult {
    /// The primary comparison, when there is one.
    pub fn primary(&self) -> Option<&Effect> {
        self.effects.rows.get(self.primary?)
    }

    /// The study's own comparisons and goals, with what came of each.
    pub fn asked(&self) -> impl Iterator<Item = (&ComparisonSpec, &Effect)> {
        let answered = self.effects.rows.iter().filter_map(|row| match row.question {
            Question::Asked(place) => Some((self.spec.comparisons.get(place as usize)?, row)),
            _ => None,
        });
        answered.into_iter()
    }
}

/// A cell whose threads have to share CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OversubscribedCell {
    /// Cell.
    pub cell_id: String,
    /// Threads of the servers and of the generator.
    pub threads: u32,
    /// CPUs they have.
    pub cpus: u32,
}

/// How connections of one arm in one cell came about, over all its trials, the ones excluded included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ListenSummary {
    /// Cell.
    pub cell_id: String,
    /// Arm.
    pub arm: String,
    /// Trials.
    pub trials: u32,
    /// What the kernel counted, over all trials.
    pub network: NetworkCounters,
    /// Connection times.
    pub connect: TimesSummary,
    /// Times to the first byte of a response.
    pub first_byte: TimesSummary,
    /// Times to the last byte of a response.
    pub last_byte: TimesSummary,
    /// Connections that took as long as a step of the ladder: (seconds, how many).
    pub stalled: Vec<(u32, u64)>,
}

/// A distribution in a few figures; absent ones had too few samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TimesSummary {
    /// Samples.
    pub count: u64,
    /// Median.
    pub p50_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// Largest.
    pub ns_max: u64,
}

/// Absolute figures of one arm in one cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ArmSummary {
    /// Cell.
    pub cell_id: String,
    /// Arm.
    pub arm: String,
    /// Clean trials.
    pub trials: u32,
    /// Figures by metric, those that say something in the cell.
    pub figures: Vec<MetricFigures>,
    /// The throughput is only a lower bound: the generator was the limit.
    pub generator_bound: bool,
    /// Engine counters per message, by name, sorted; empty for foreign servers.
    pub engine_per_message: Vec<(String, f64)>,
    /// System calls for I/O per message by the engine's counters: `enters`, `wait_calls`, `poll_calls`,
    /// `accept_calls`, `recv_calls`, `send_calls` and `interest_calls`. Absent for foreign servers, and for trials of
    /// `schema_version` 1, whose engines did not count all of these.
    pub syscalls_per_message: Option<f64>,
    /// Response-time curve merged over trials: (quantile, ns).
    pub response_quantiles: Vec<(f64, u64)>,
    /// Service-time curve merged over trials: (quantile, ns).
    pub service_quantiles: Vec<(f64, u64)>,
}

impl ArmSummary {
    /// The figures of a metric.
    pub fn figures(&self, metric: Metric) -> Option<&MetricFigures> {
        self.figures.iter().find(|it| it.metric == metric)
    }

    /// The absolute figure of a metric.
    pub fn mean(&self, metric: Metric) -> Option<f64> {
        self.figures(metric).map(|it| it.mean)
    }
}

/// Figures of one metric, in its unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricFigures {
    /// Metric.
    pub metric: Metric,
    /// Their mean on the metric's scale, as their effects have theirs.
    pub mean: f64,
    /// Interval of the mean (99 %), by the rule of effects; absent with a single unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
    /// One for each round or block that the arm's ratio is of, in time order.
    #[serde(alias = "trials")]
    pub units: Vec<f64>,
}

impl MetricFigures {
    /// Figures of these units, without an interval; `None` of none.
    pub fn of(metric: Metric, units: Vec<f64>) -> Option<Self> {
        Some(Self { metric, mean: metric.row().scale.mean(&units)?, interval: None, units })
    }

    /// The smallest and the largest.
    pub fn range(&self) -> (f64, f64) {
        let over = |pick: fn(f64, f64) -> f64, from| self.units.iter().copied().fold(from, pick);
        (over(f64::min, f64::INFINITY), over(f64::max, f64::NEG_INFINITY))
    }
}

/// States of the machine, found by clustering the cross-core readings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MachineStates {
    /// Boundary between near and far in nanoseconds; absent when there is one state.
    pub boundary_ns: Option<f64>,
    /// Median reading of the near state (or of the only one).
    pub near_ns: f64,
    /// Median reading of the far state.
    pub far_ns: Option<f64>,
    /// Trials in the near state, far state, and with readings on both sides.
    pub trials: (u32, u32, u32),
}

/// One trial on the timeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineEntry {
    /// Arm name.
    pub arm: String,
    /// Cell.
    pub cell_id: String,
    /// Block.
    pub block: u32,
    /// Start since the study began.
    pub started_ns: u64,
    /// Length.
    pub elapsed_ns: u64,
    /// Mean of the two cross-core readings.
    pub round_trip_ns: f64,
    /// Steal share in the window.
    pub steal_share: f64,
    /// Whether the trial was used.
    pub clean: bool,
}

/// An arm that could not run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MissingArm {
    /// Arm.
    pub name: String,
    /// Why.
    pub reason: Finding,
    /// What would unlock it.
    pub unlock: Option<Finding>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_stored_as_faster_or_slower_opens() {
        let read = |text: &str| serde_json::from_str::<Verdict>(text).expect("it is a verdict");
        assert_eq!([read("\"faster\""), read("\"better\"")], [Verdict::Better; 2]);
        assert_eq!([read("\"slower\""), read("\"worse\"")], [Verdict::Worse; 2]);
    }

    #[test]
    fn a_result_stored_before_http_opens() {
        let old = r#"{"schema_version":1,
            "spec":{"name":"quick","title":"t","seed":7,"arms":[],"cells":[],"server_cpus":[],"load_cpus":[],
                    "equivalence_margin":0.03,"time_cap_ns":1},
            "fingerprint":{"kernel_release":"6.18.2"},"primary":null,"verdict":"inconclusive","effects":[],
            "arms":[{"cell_id":"c100-d1-m64-closed","arm":"epoll","trials":24}],"checks":[],
            "states":{"boundary_ns":null,"near_ns":0.0,"far_ns":null,"trials":[0,0,0]},"timeline":[],
            "missing_arms":[],"complete":false,"elapsed_ns":5,"reproduce":"weir study quick --seed 7"}"#;
        let result: StudyResult = serde_json::from_str(old).expect("it is a result");
        assert_eq!(result.arms[0].trials, 24);
        assert!(result.effects.rows.is_empty() && result.listening.is_empty());
        assert!(result.syn_ladder_s.is_empty());
    }
}
