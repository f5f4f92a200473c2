//! Sweep: many ways to wait, tried on the same phases with the same seeds, and what came out.
//!
//! A [`SweepPlan`] says what is tried, a [`SweepPart`] is one method with one seed as it is appended to the results
//! file, a [`SweepResult`] is the judged whole, and a [`PollingResult`] joins several of them into the study `polling`.

use serde::{Deserialize, Serialize};

use crate::{
    machine::Fingerprint,
    storage::{WaitingInterval, WaitingReport},
};

/// Where the methods were tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SweepWorld {
    /// The queueing model.
    #[default]
    Simulator,
    /// Latencies of a trace, one after the other.
    Trace,
    /// The same of traces that were recorded on a disk of this machine, each cut into as many pieces as there are
    /// seeds.
    Recording,
    /// A file on a disk of this machine.
    Disk,
}

impl SweepWorld {
    /// Whether the times are those of a disk of this machine: another one gives others.
    pub fn is_of_this_machine(self) -> bool {
        matches!(self, Self::Recording | Self::Disk)
    }
}

/// What a method is there for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MethodRole {
    /// The one whose setting is to hold in all phases.
    Candidate,
    /// The kernel's mean with one of the published ratios.
    Ratio,
    /// Interrupt or busy polling.
    Baseline,
    /// A published predictor.
    Rival,
    /// Another setting of a family, or another predictor of ours.
    #[default]
    Variant,
    /// Knows what no predictor can know.
    Oracle,
}

/// One way to wait.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SweepMethod {
    /// Name in tables and files; unique in a plan.
    pub name: String,
    /// The predictor with its parameters, or `clairvoyant`, or `constant:SHARE`.
    pub predictor: String,
    /// Methods of a family make one curve.
    pub family: String,
    /// See [`MethodRole`].
    pub role: MethodRole,
    /// A sleep ends at the completion too.
    pub armed: bool,
    /// The predictor is told the device's time even after a sleep that was too long; only a model can.
    pub true_times: bool,
}

/// One phase of a plan: what else the device does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SweepPhase {
    /// Name.
    pub name: String,
    /// Length; 0 where a trace decides.
    pub length_ns: u64,
    /// Cores that load the device.
    pub background_cores: u32,
    /// Operations in flight of each.
    pub background_depth: u32,
}

/// What is tried.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SweepPlan {
    /// Where.
    pub world: SweepWorld,
    /// Which model, trace or file.
    pub source: String,
    /// In order of time.
    pub phases: Vec<SweepPhase>,
    /// Length of an interval of the measurement tool.
    pub interval_ns: u64,
    /// Seeds of the model, or numbers of the blocks on a disk, or of the pieces of a recording. Each method runs once
    /// with each.
    pub seeds: Vec<u64>,
    /// Methods.
    pub methods: Vec<SweepMethod>,
}

/// The figures of one method in one phase with one seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WaitingFigures {
    /// Completed operations.
    pub operations: u64,
    /// Operations a second.
    pub iops: f64,
    /// Complete when an unarmed sleep ended, of all operations.
    pub miss_rate: f64,
    /// Later than an interrupt would have told, of all operations.
    pub miss_harm_rate: f64,
    /// Armed sleeps that the completion ended, of all operations.
    pub woken_early_rate: f64,
    /// Left to the interrupt, of all operations.
    pub interrupted_rate: f64,
    /// CPU of the thread over time.
    pub cpu_share: f64,
    /// CPU of the thread for each operation.
    pub cpu_us: f64,
    /// Mean requested sleep over all operations: the effective sleep of the paper.
    pub sleep_effective_us: f64,
    /// Mean sleep as it was.
    pub sleep_actual_us: f64,
    /// Mean time of the device.
    pub device_us: f64,
    /// Mean time from issue to notice.
    pub latency_us: f64,
    /// Mean time from completion to notice.
    pub added_us: f64,
    /// Median of that.
    pub added_p50_us: Option<f64>,
    /// 99th percentile of that.
    pub added_p99_us: Option<f64>,
    /// Time slept too long over time of the device.
    pub over: f64,
    /// Time spent looking over time of the device.
    pub under: f64,
}

impl WaitingFigures {
    /// Figures of a measured window; `None` when nothing was completed in it.
    pub fn of(report: &WaitingReport) -> Option<Self> {
        if report.operations == 0 || report.elapsed_ns == 0 {
            return None;
        }
        let operations = report.operations as f64;
        let rate = |count: u64| count as f64 / operations;
        let mean_us = |sum_ns: u64| sum_ns as f64 / operations / 1e3;
        let of_device = |sum_ns: u64| sum_ns as f64 / report.device_ns.max(1) as f64;
        let added = |quantile| report.added.quantile_ns(quantile).map(|ns| ns as f64 / 1e3);
        let late_ns = report.oversleep_ns + report.wake_ns;
        Some(Self {
            operations: report.operations,
            iops: operations / (report.elapsed_ns as f64 / 1e9),
            miss_rate: rate(report.misses),
            miss_harm_rate: rate(report.misses_harmful),
            woken_early_rate: rate(report.woken_early),
            interrupted_rate: rate(report.interrupted),
            cpu_share: report.cpu_ns as f64 / report.elapsed_ns as f64,
            cpu_us: mean_us(report.cpu_ns),
            sleep_effective_us: mean_us(report.sleep_requested_ns),
            sleep_actual_us: mean_us(report.sleep_actual_ns),
            device_us: mean_us(report.device_ns),
            latency_us: mean_us(report.total_ns),
            added_us: mean_us(report.total_ns.saturating_sub(report.device_ns)),
            added_p50_us: added(0.5),
            added_p99_us: added(0.99),
            over: of_device(late_ns),
            under: of_device(report.spin_ns),
        })
    }
}

/// One phase of one part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PartPhase {
    /// Name of the phase.
    pub name: String,
    /// Figures; absent when nothing was completed.
    pub figures: Option<WaitingFigures>,
    /// Intervals, kept for the methods and the seed that are drawn over time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<WaitingInterval>,
}

/// One method with one seed: a line of the results file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SweepPart {
    /// Name of the method.
    pub method: String,
    /// Seed or block.
    pub seed: u64,
    /// Phases in order.
    pub phases: Vec<PartPhase>,
    /// Why there are no figures.
    pub failure: Option<String>,
}

/// A median over seeds with its interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Estimate {
    /// Median.
    pub median: f64,
    /// 95 % interval of the median, where there are values enough.
    pub interval: Option<(f64, f64)>,
    /// Values.
    pub values: u32,
}

/// One method in one phase, over all seeds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MethodResult {
    /// Name.
    pub method: String,
    /// See [`WaitingFigures::miss_rate`].
    pub miss_rate: Estimate,
    /// See [`WaitingFigures::cpu_share`].
    pub cpu_share: Estimate,
    /// See [`WaitingFigures::iops`].
    pub iops: Estimate,
    /// See [`WaitingFigures::added_p99_us`].
    pub added_p99_us: Option<Estimate>,
    /// Medians over the seeds of everything else.
    pub medians: WaitingFigures,
}

/// What is set against CPU in a plane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlaneKind {
    /// Miss rate.
    #[default]
    Miss,
    /// 99th percentile of what waiting adds to the device's time, in microseconds.
    AddedP99,
}

/// A plane of two costs; less is better on both axes, CPU share is the second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Plane {
    /// First axis.
    pub kind: PlaneKind,
    /// The corner from which volumes are counted; a point beyond it on one axis counts nothing.
    pub reference: (f64, f64),
    /// Methods, oracles left out, that no other one beats on one axis and equals on the other.
    pub ahead: Vec<String>,
    /// What the families reach, the largest first.
    pub volumes: Vec<FamilyVolume>,
    /// How far the methods are from what cannot be beaten.
    pub distances: Vec<OracleDistance>,
}

/// What one family reaches over all its settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FamilyVolume {
    /// Family.
    pub family: String,
    /// Settings tried.
    pub settings: u32,
    /// Share of the box between the origin and the reference that is behind one of the settings.
    pub volume: Estimate,
    /// Volume of the candidate's family less this one, seed by seed; absent for that family itself.
    pub candidate_less_this: Option<Estimate>,
}

/// Distance of a method to the oracles in a plane whose axes are divided by the reference.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OracleDistance {
    /// Method.
    pub method: String,
    /// To the one that knows each operation's time.
    pub clairvoyant: Option<f64>,
    /// To the best constant sleep for this phase.
    pub constant: Option<f64>,
}

/// What waiting costs where the answer is the interrupt, and when it is not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Price {
    /// How much of the candidate's operations was left to the interrupt.
    pub candidate_interrupted_rate: f64,
    /// Method that buys latency most cheaply, against the interrupt.
    pub method: Option<String>,
    /// CPU-µs it pays for each µs of latency it saves: whoever would pay more should not wait for the interrupt.
    pub cpu_us_for_latency_us: Option<Estimate>,
    /// What it saves for each operation, in µs.
    pub latency_saved_us: Option<Estimate>,
    /// The same price for busy polling.
    pub poll_cpu_us_for_latency_us: Option<Estimate>,
}

/// One phase over all methods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhaseResult {
    /// Name.
    pub name: String,
    /// Methods in the order of the plan; those without figures are left out.
    pub methods: Vec<MethodResult>,
    /// Misses against CPU, and added p99 against CPU.
    pub planes: Vec<Plane>,
    /// See [`Price`].
    pub price: Option<Price>,
}

/// What must hold between the candidate and a ratio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FrontierRule {
    /// No more misses than the limit allows, less CPU, no fewer operations a second.
    #[default]
    Ahead,
    /// The ratio does not have both fewer misses and less CPU.
    NotBeatenOnBoth,
    /// Misses, CPU and operations a second within the limits.
    Tie,
}

/// Whether something that should hold does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The whole interval is on the right side.
    Holds,
    /// The whole interval is on the wrong side.
    Fails,
    /// The interval has both.
    #[default]
    Open,
}

/// A paired difference, candidate less other, with what is asked of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Difference {
    /// Median of the differences with its interval; a share, or for operations a second a fraction of the other.
    pub estimate: Estimate,
    /// See [`Outcome`].
    pub outcome: Outcome,
}

/// One line of the frontier table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FrontierRow {
    /// Phase.
    pub phase: String,
    /// The ratio's method.
    pub against: String,
    /// What is asked.
    pub rule: FrontierRule,
    /// Miss rate, candidate less other.
    pub misses: Difference,
    /// CPU share, candidate less other.
    pub cpu: Difference,
    /// Operations a second, candidate over other, less one.
    pub iops: Difference,
    /// Of the rule as a whole.
    pub outcome: Outcome,
}

impl FrontierRow {
    /// The rule with "no fewer operations a second" taken literally: a loss of any size fails. Absent where the rule
    /// does
    /// not ask for that.
    pub fn outcome_without_margin(&self) -> Option<Outcome> {
        let iops = match self.iops.estimate.interval {
            Some((low, _)) if low >= 0.0 => Outcome::Holds,
            Some((_, high)) if high < 0.0 => Outcome::Fails,
            _ => Outcome::Open,
        };
        let all = [self.misses.outcome, self.cpu.outcome, iops];
        (self.rule == FrontierRule::Ahead).then(|| all.into_iter().fold(Outcome::Holds, Outcome::and))
    }
}

impl Outcome {
    /// Of two things that must both hold.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Fails, _) | (_, Self::Fails) => Self::Fails,
            (Self::Open, _) | (_, Self::Open) => Self::Open,
            (Self::Holds, Self::Holds) => Self::Holds,
        }
    }
}

/// A step from one method to another that shows where a gain is from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GainStep {
    /// The kernel's default to the candidate: all of it.
    #[default]
    Whole,
    /// The kernel's default to a tracked quantile: a better sleep.
    BetterQuantile,
    /// A tracked quantile to the candidate: another way to wait.
    ChangedMechanism,
    /// What the tracked quantile leaves to the best constant sleep.
    QuantileToOracle,
    /// What the candidate differs from waiting for the interrupt at once.
    InterruptToCandidate,
}

/// One step in one phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gain {
    /// Phase.
    pub phase: String,
    /// See [`GainStep`].
    pub step: GainStep,
    /// First method.
    pub from: String,
    /// Second method.
    pub to: String,
    /// Miss rate, second less first.
    pub misses: Estimate,
    /// CPU share, second less first.
    pub cpu: Estimate,
    /// Operations a second, second over first, less one.
    pub iops: Estimate,
    /// Added p99 in microseconds, second less first.
    pub added_p99_us: Option<Estimate>,
}

/// One method over time, with one seed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MethodSeries {
    /// Method.
    pub method: String,
    /// Seed or block.
    pub seed: u64,
    /// Intervals of all phases, each with its phase's name.
    pub points: Vec<SeriesPoint>,
}

/// One interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeriesPoint {
    /// Phase.
    pub phase: String,
    /// Start since the first phase began.
    pub start_ns: u64,
    /// Length.
    pub elapsed_ns: u64,
    /// Operations a second.
    pub iops: f64,
    /// Complete when the sleep ended, of all operations.
    pub miss_rate: f64,
    /// CPU of the thread.
    pub cpu_share: f64,
    /// Mean requested sleep.
    pub sleep_effective_us: f64,
}

/// A method or a part that could not be had.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MissingMethod {
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// A judged sweep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SweepResult {
    /// [`crate::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// What was asked.
    pub plan: SweepPlan,
    /// The method that is judged; absent when the plan has none.
    pub candidate: Option<String>,
    /// Parts of which every phase is done, of methods times seeds.
    pub parts_done: u32,
    /// Whether all are.
    pub complete: bool,
    /// Phases in order.
    pub phases: Vec<PhaseResult>,
    /// The candidate against each ratio.
    pub frontier: Vec<FrontierRow>,
    /// Where the gain is from.
    pub gains: Vec<Gain>,
    /// Methods over time.
    pub series: Vec<MethodSeries>,
    /// Methods without figures, with the reason.
    pub missing: Vec<MissingMethod>,
    /// What a reader must know besides.
    pub notes: Vec<String>,
}

impl SweepResult {
    /// A phase by its name.
    pub fn phase(&self, name: &str) -> Option<&PhaseResult> {
        self.phases.iter().find(|phase| phase.name == name)
    }

    /// Whether every part is done but those of the methods that could not be had.
    pub fn is_whole_but_for_missing(&self) -> bool {
        let methods = self.plan.methods.len().saturating_sub(self.missing.len());
        self.complete || usize::try_from(self.parts_done) == Ok(methods * self.plan.seeds.len())
    }

    /// Fewest and most seeds with figures that a method has in a phase; both are those of the plan when all is done.
    /// Methods that could not be had are left out.
    pub fn seeds_with_figures(&self) -> (usize, usize) {
        let is_had = |method: &&SweepMethod| self.missing.iter().all(|missing| missing.name != method.name);
        let had = || self.plan.methods.iter().filter(is_had);
        let seeds = |phase: &PhaseResult, method: &SweepMethod| {
            phase.method(&method.name).map_or(0, |found| found.miss_rate.values as usize)
        };
        let counts = self.phases.iter().flat_map(|phase| had().map(move |method| seeds(phase, method)));
        let range = counts.fold(None, |range: Option<(usize, usize)>, count| {
            Some(range.map_or((count, count), |(least, most)| (least.min(count), most.max(count))))
        });
        range.unwrap_or_default()
    }

    /// Of the frontier table as a whole: fails when a line fails, holds when all do; absent without a line.
    pub fn outcome(&self) -> Option<Outcome> {
        whole(self.frontier.iter())
    }

    /// A method of the plan by its name.
    pub fn method(&self, name: &str) -> Option<&SweepMethod> {
        self.plan.methods.iter().find(|method| method.name == name)
    }
}

/// Fails when a line fails, holds when all do; absent without a line.
fn whole<'r>(rows: impl Iterator<Item = &'r FrontierRow>) -> Option<Outcome> {
    rows.map(|row| row.outcome).reduce(Outcome::and)
}

impl PhaseResult {
    /// A method's figures.
    pub fn method(&self, name: &str) -> Option<&MethodResult> {
        self.methods.iter().find(|method| method.method == name)
    }
}

/// Something the paper says it saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObservationKind {
    /// Job1: misses rise for a moment and are 0 from then on.
    #[default]
    FirstJobQuiet,
    /// Job2: misses stay above 10 %.
    SecondJobMisses,
    /// Job2: operations a second do not fall much.
    SecondJobIops,
    /// Job3: misses first rise above 80 %.
    ThirdJobPeak,
    /// Job3: misses stay at about 30 %.
    ThirdJobMisses,
    /// Job3: a tenth of the operations a second of Job1.
    ThirdJobIops,
    /// A smaller ratio sleeps less and misses less.
    RatioLowersMisses,
    /// At 5 % there are still many misses.
    FivePercentMisses,
    /// At 3 % misses are about those of Job1.
    ThreePercentMisses,
    /// CPU below half at 50 %.
    CpuAtHalf,
    /// CPU above 95 % at 3 %.
    CpuAtThreePercent,
    /// The mean of operations a second does not change with the ratio.
    IopsFlat,
    /// The momentary maximum of operations a second rises at 3 %.
    IopsMoments,
    /// No ratio lowers misses and CPU together.
    NoRatioLowersBoth,
}

/// Whether an observation is seen here too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    /// The same.
    Shown,
    /// The same direction, another size.
    Partly,
    /// Not seen.
    #[default]
    NotShown,
    /// Not measured here.
    Unknown,
}

/// A published observation beside the measured one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Observation {
    /// What the paper says.
    pub kind: ObservationKind,
    /// Measured figures, in the order the kind has them.
    pub measured: Vec<f64>,
    /// See [`Seen`].
    pub seen: Seen,
    /// The same with the hypotheses switched on (a wake-up tail, a slow start); empty when that was not run.
    pub with_hypotheses: Vec<f64>,
    /// Whether it is seen then.
    pub seen_with_hypotheses: Option<Seen>,
}

/// The kernel's default in one phase, fed with what a thread sees and with what the device took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Feeding {
    /// Phase.
    pub phase: String,
    /// Fed with what the thread saw.
    pub observed: WaitingFigures,
    /// Fed with the device's times.
    pub true_times: WaitingFigures,
    /// Miss rate, observed less true.
    pub misses: Estimate,
    /// Mean requested sleep in microseconds, observed less true.
    pub sleep_effective_us: Estimate,
}

/// A disk as the kernel describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskFacts {
    /// Name, without `/dev`.
    pub name: String,
    /// Model, where the device tells one.
    pub model: Option<String>,
    /// Driver.
    pub driver: Option<String>,
    /// Size.
    pub bytes: u64,
}

/// What belongs to the environment of a study of a disk and is not in a [`Fingerprint`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskEnvironment {
    /// The operating system, as it calls itself; empty where it does not.
    pub operating_system: String,
    /// The disk below the data file; absent where none is known.
    pub disk: Option<DiskFacts>,
    /// The file system of the data file.
    pub filesystem: String,
}

/// The study `polling`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PollingResult {
    /// [`crate::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The plan's jobs are as long as the paper's.
    pub published_plan: bool,
    /// Seed of the order in which a disk is asked; the model has seeds of its own.
    pub seed: u64,
    /// Data file of the disk part, where the user named one.
    pub data_file: Option<String>,
    /// Where it ran.
    pub fingerprint: Option<Fingerprint>,
    /// The rest of where it ran.
    pub environment: Option<DiskEnvironment>,
    /// The model, the traces, the disk, and traces that were recorded on it.
    pub sweeps: Vec<SweepResult>,
    /// The model with the hypotheses switched on.
    pub hypotheses: Option<SweepResult>,
    /// Published beside measured.
    pub observations: Vec<Observation>,
    /// What feeding a predictor with its own oversleep does.
    pub feeding: Vec<Feeding>,
    /// Parts that could not run, with the reason.
    pub missing: Vec<MissingMethod>,
    /// Why no trace was recorded, where none could be. That needs privileges, and nothing is decided by it.
    pub unrecorded: Option<String>,
    /// Every part that was planned is done.
    pub complete: bool,
    /// Wall time of all sessions.
    pub elapsed_ns: u64,
    /// Command that runs this study again.
    pub reproduce: String,
}

impl PollingResult {
    /// The lines of the frontier table that decide: those of the model and of the made traces. A disk of this machine,
    /// and what was recorded on it, are reported beside them.
    pub fn deciding(&self) -> impl Iterator<Item = &FrontierRow> {
        let decides = |sweep: &&SweepResult| !sweep.plan.world.is_of_this_machine();
        self.sweeps.iter().filter(decides).flat_map(|sweep| &sweep.frontier)
    }

    /// Of these lines as a whole; absent without one.
    pub fn outcome(&self) -> Option<Outcome> {
        whole(self.deciding())
    }

    /// The sweep of one world; the first, if there are several.
    pub fn sweep(&self, world: SweepWorld) -> Option<&SweepResult> {
        self.sweeps.iter().find(|sweep| sweep.plan.world == world)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three methods, four seeds, two phases; `values` seeds of each method have figures in each phase.
    fn sweep(values: [u32; 3], parts_done: u32) -> SweepResult {
        let names = ["a", "b", "c"];
        let methods = names.map(|name| SweepMethod { name: name.to_owned(), ..SweepMethod::default() });
        let found = |(name, values): (&str, u32)| MethodResult {
            method: name.to_owned(),
            miss_rate: Estimate { values, ..Estimate::default() },
            ..MethodResult::default()
        };
        let phase = PhaseResult {
            methods: names.into_iter().zip(values).filter(|(_, values)| *values > 0).map(found).collect(),
            ..PhaseResult::default()
        };
        let plan = SweepPlan { seeds: vec![1, 2, 3, 4], methods: methods.into(), ..SweepPlan::default() };
        SweepResult { plan, parts_done, phases: vec![phase.clone(), phase], ..SweepResult::default() }
    }

    #[test]
    fn a_method_that_cannot_be_had_excuses_itself_and_no_other() {
        let missing = || vec![MissingMethod { name: "c".to_owned(), reason: "no".to_owned() }];
        let of = |parts_done, missing| {
            SweepResult { missing, ..sweep([4, 4, 0], parts_done) }.is_whole_but_for_missing()
        };
        assert!(of(8, missing()));
        assert!(!of(7, missing()), "the others have parts to do");
        assert!(!of(8, Vec::new()), "nobody says why");
    }

    #[test]
    fn seeds_with_figures_are_counted_over_the_methods_that_could_be_had() {
        assert_eq!(sweep([4, 4, 4], 12).seeds_with_figures(), (4, 4));
        assert_eq!(sweep([4, 2, 0], 6).seeds_with_figures(), (0, 4));
        let mut without = sweep([4, 2, 0], 6);
        without.missing.push(MissingMethod { name: "c".to_owned(), reason: "no".to_owned() });
        assert_eq!(without.seeds_with_figures(), (2, 4));
        assert_eq!(SweepResult::default().seeds_with_figures(), (0, 0));
    }
}
