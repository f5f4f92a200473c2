//! What `weir compare` was asked, what it ran, and what follows: one document, whose format is
//! `docs/formats/compare.md`.
//!
//! A *pair* is one run each of the baseline, of the baseline again, and of every other command, in random order. The
//! values of pairs are what a verdict rests on; the rows that say so are those of studies ([`crate::effect`]).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    effect::Effects, goal::ComparisonSpec, machine::Fingerprint, metric::Metric, origin::Origin,
    verdict::Verdict,
};

mod finding;
mod server;

pub use finding::{CommandFinding, FailedEnd, FirstDifference, NoCalls, Stream};
pub use server::{CountSource, LoadRun, NotReady, ServerSettings, WorkUnit};

/// Version of the document; raised when a field changes its meaning or disappears.
pub const COMPARISON_VERSION: u32 = 1;

/// All comparisons of one call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommandReport {
    /// Version of this document.
    pub schema_version: u32,
    /// Version of weir.
    pub weir: String,
    /// When it began, in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// How long it took.
    pub elapsed_ns: u64,
    /// Seed of every random order.
    pub seed: u64,
    /// Command that does it again, in the same orders.
    pub reproduce: String,
    /// What was asked beside the commands.
    pub settings: CommandSettings,
    /// The machine.
    pub fingerprint: Fingerprint,
    /// Commit, branch, labels and a note.
    #[serde(default, skip_serializing_if = "Origin::is_empty")]
    pub origin: Origin,
    /// How the cost of a run is read.
    pub measured_by: MeasuredBy,
    /// One for each combination of parameters; a single one without parameters.
    pub comparisons: Vec<CommandComparison>,
}

/// What was asked beside the commands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommandSettings {
    /// Time for the pairs of one comparison.
    pub budget_ns: u64,
    /// Longest that a run may take.
    pub limit_ns: u64,
    /// Rounds before the first one that is looked at.
    pub warmup: u32,
    /// Pairs that were asked for; absent where the pilot decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<u32>,
    /// Fewest pairs.
    pub runs_min: u32,
    /// Shell that runs the commands; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// Folder in which they run; absent where it is that of weir.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// File on standard input; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// What becomes of the output: `compare`, `null`, `inherit`, or a file.
    pub output: String,
    /// Variables of the environment that were set, as `NAME=VALUE`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<String>,
    /// Commands before each run: one, or one for each command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prepare: Vec<String>,
    /// Command after each run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conclude: Option<String>,
    /// Command before the first run of each command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    /// Command after the last run of each command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleanup: Option<String>,
    /// Whether runs that fail are compared.
    pub ignore_failure: bool,
    /// Share of a difference that matters: 0.01 is one per cent.
    pub equivalence_margin: f64,
    /// What was asked of servers; absent where commands are compared that end by themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<ServerSettings>,
}

/// How the cost of a run is read, and what the reading itself costs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredBy {
    /// Where CPU time comes from: `cgroup-v2`, `cgroup-v1` or `rusage`.
    pub cpu_source: String,
    /// Smallest difference that it shows.
    pub cpu_resolution_ns: u64,
    /// Why it is no better source; absent where it is the best.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_source_reason: Option<String>,
    /// CPU time of what Weir does in a run before its command begins. No figure has it. Absent where it was not
    /// measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_cpu_ns: Option<u64>,
    /// Time of the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_wall_ns: Option<u64>,
    /// Upper bound of the CPU time that is still charged to every run; absent where it is known and subtracted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charged_cpu_ns: Option<u64>,
    /// CPU time that Weir takes in every run after its command began. The figures of runs have it, the effects and
    /// thresholds do not. Absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subtracted_cpu_ns: Option<u64>,
}

/// What a command is in a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CommandRole {
    /// The first one, which runs twice in each pair.
    #[default]
    Baseline,
    /// It is compared with the baseline.
    Candidate,
    /// The baseline's work in another layout: its difference is what layout alone does.
    Placebo,
}

/// A command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandArm {
    /// Its name, or the command as it was typed.
    pub name: String,
    /// What it is.
    pub role: CommandRole,
    /// Program and arguments; with a shell its call.
    pub words: Vec<String>,
    /// Contents of the files that its words name, when the comparison began: a hash by path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<CommandFile>,
}

/// A file that a command's words name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandFile {
    /// Path.
    pub path: String,
    /// Length.
    pub bytes: u64,
    /// BLAKE2b (128 bits) of its content, in hexadecimal.
    pub content: String,
}

/// The baseline against every other command, with the same parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommandComparison {
    /// Parameters and their values; empty without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<(String, String)>,
    /// The baseline first.
    pub commands: Vec<CommandArm>,
    /// How many pairs were planned, and why.
    pub plan: PairPlan,
    /// Pairs that ran.
    pub pairs_done: u32,
    /// Why it ended.
    pub ended: CommandEnd,
    /// How long it took, with everything around the pairs.
    pub elapsed_ns: u64,
    /// What a reader must know, the gravest first.
    pub findings: Vec<CommandFinding>,
    /// The rows: comparisons first, then the baseline against itself.
    pub effects: Effects,
    /// System calls of each command by kind; absent where nothing could count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_calls: Option<SystemCalls>,
    /// Thresholds that were set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds_asked: Vec<ComparisonSpec>,
    /// What came of them, in the same order: rows with an outcome.
    #[serde(default, skip_serializing_if = "Effects::is_empty")]
    pub thresholds: Effects,
    /// Every run.
    pub runs: Vec<CommandRun>,
}

/// How many pairs were planned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairPlan {
    /// Pairs.
    pub pairs: u32,
    /// Pairs of the pilot, which are not part of the result.
    pub pilot_pairs: u32,
    /// Pairs that follow one another and make a unit of the rows: one value of each round of them.
    pub unit_pairs: u32,
    /// Smallest effect that this many pairs were expected to find, as a ratio less one; absent without a pilot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detectable: Option<f64>,
    /// What set their number.
    pub reason: PlanReason,
}

/// What set the number of pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlanReason {
    /// `--runs`.
    #[default]
    Asked,
    /// This many are expected to find what matters.
    Detectable,
    /// More did not fit into the budget.
    Budget,
    /// The fewest that may be: fewer would have fitted.
    Fewest,
    /// The most that are kept.
    Most,
}

/// Why a comparison ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CommandEnd {
    /// Every planned pair ran.
    #[default]
    Complete,
    /// It took several times its budget.
    TimeCap,
    /// Somebody interrupted it.
    Interrupted,
    /// The baseline, or all that it was to be compared with, cannot run.
    NothingToCompare,
    /// Something around the runs failed.
    Broken,
    /// A server ended while it was compared, or did not start again.
    ServerEnded,
}

/// Why a run was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunPhase {
    /// To see whether the command runs, and what it writes.
    First,
    /// To warm caches.
    Warmup,
    /// To plan.
    Pilot,
    /// To compare.
    #[default]
    Measured,
}

/// One run of a command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommandRun {
    /// Why it was made.
    pub phase: RunPhase,
    /// Number of its pair within its phase, from 0.
    pub pair: u32,
    /// Its place in the pair, from 0.
    pub place: u32,
    /// Place of its command in the list of commands.
    pub command: u32,
    /// Whether it is the baseline's second run in its pair. Which one is called so is part of the random order.
    pub repeat: bool,
    /// When it began, from the beginning of the comparison.
    pub started_ns: u64,
    /// How it ended.
    pub end: RunEnding,
    /// What it cost.
    pub cost: RunFigures,
    /// What it wrote to standard output.
    pub stdout: Written,
    /// What it wrote to standard error.
    pub stderr: Written,
    /// Processes that outlived it and were ended.
    pub children_left: u32,
    /// Names of some of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children_left_names: Vec<String>,
    /// Where it failed: the end of what it wrote to standard error.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub said: String,
    /// What a load run showed beside its cost; absent for commands that end by themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadRun>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunEnding {
    /// With this status.
    Exited(i32),
    /// By this signal.
    Killed(i32),
    /// The kernel ended it because memory was short.
    OutOfMemory,
    /// It took longer than `limit_ns` and was ended.
    Overran,
    /// A load ended with status 0 and did not say how many units of work it did.
    NoCount,
}

impl Default for RunEnding {
    fn default() -> Self {
        Self::Exited(0)
    }
}

impl RunEnding {
    /// Whether it ended in good order.
    pub fn is_success(self) -> bool {
        self == Self::Exited(0)
    }
}

/// The cost of a run. Under a load the figures are the server's, except the time, which is the load's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunFigures {
    /// From its start to its end.
    pub wall_ns: u64,
    /// CPU time outside the kernel.
    pub user_ns: u64,
    /// CPU time inside the kernel.
    pub system_ns: u64,
    /// Largest memory at one time; absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes_max: Option<u64>,
    /// An upper bound where it is not known: it does not stand out from the memory of the process that starts runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes_below: Option<u64>,
    /// Page faults without a disk.
    pub faults_minor: u64,
    /// Page faults that read a disk.
    pub faults_major: u64,
    /// Switches to wait.
    pub switches_voluntary: u64,
    /// Switches by the scheduler.
    pub switches_involuntary: u64,
    /// Bytes read; absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Bytes written; absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
    /// Instructions; absent where the CPU has no counters for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<u64>,
    /// Units of work that a load reported. In `effects`, figures that grow with the work are those of one unit. Absent
    /// where none were reported, and of commands that end by themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<u64>,
}

impl RunFigures {
    /// User and system time together.
    pub fn cpu_ns(&self) -> u64 {
        self.user_ns.saturating_add(self.system_ns)
    }

    /// The figure of a metric, in its unit: of one unit of work where a load reported these. Metrics of studies have
    /// none.
    pub fn figure(&self, metric: Metric) -> Option<f64> {
        let of_one = |amount: f64| self.work.map_or(amount, |work| amount / work as f64);
        let micros = |ns: u64| ns as f64 / 1e3;
        let events = |number: u64| Some(of_one(number as f64));
        match metric {
            Metric::CommandCpu => Some(of_one(micros(self.cpu_ns()))),
            Metric::CommandUserCpu => Some(of_one(micros(self.user_ns))),
            Metric::CommandSystemCpu => Some(of_one(micros(self.system_ns))),
            Metric::CommandWall => Some(micros(self.wall_ns)),
            Metric::CommandMemoryMax => self.memory_bytes_max.map(|it| it as f64),
            Metric::CommandFaultsMinor => events(self.faults_minor),
            Metric::CommandFaultsMajor => events(self.faults_major),
            Metric::CommandSwitchesVoluntary => events(self.switches_voluntary),
            Metric::CommandSwitchesInvoluntary => events(self.switches_involuntary),
            Metric::CommandReadBytes => self.read_bytes.and_then(events),
            Metric::CommandWrittenBytes => self.written_bytes.and_then(events),
            Metric::CommandInstructions => self.instructions.and_then(events),
            Metric::CommandThroughput => {
                self.work.filter(|_| self.wall_ns > 0).map(|work| work as f64 / self.wall_ns as f64 * 1e9)
            }
            _ => None,
        }
    }

    /// The figure of a metric, or what it stays below.
    pub fn figure_at_most(&self, metric: Metric) -> Option<f64> {
        let below = self.memory_bytes_below.filter(|_| metric == Metric::CommandMemoryMax);
        self.figure(metric).or(below.map(|it| it as f64))
    }
}

/// What a run wrote to a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Written {
    /// Bytes.
    pub bytes: u64,
    /// Hash of them, in hexadecimal; empty where the output was not looked at.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub content: String,
}

/// System calls by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SystemCalls {
    /// What counted them.
    pub counted_by: String,
    /// Runs of each command that were counted; they are not part of any other figure.
    pub runs: u32,
    /// One for each kind, those first whose counts differ most.
    pub kinds: Vec<CallKind>,
}

/// A kind of system call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallKind {
    /// Name.
    pub name: String,
    /// Fewest and most of a run, one for each command.
    pub counts: Vec<(u64, u64)>,
}

impl CommandComparison {
    /// Commands that are compared with the baseline, placebos left out.
    pub fn candidates(&self) -> impl Iterator<Item = &CommandArm> {
        self.commands.iter().filter(|it| it.role == CommandRole::Candidate)
    }

    /// The row that decides about a command: its CPU time against the baseline's.
    pub fn decisive(&self, name: &str) -> Option<&crate::effect::Effect> {
        let mut rows = self.effects.comparisons();
        rows.find(|row| row.metric == Metric::CommandCpu && row.arm == name)
    }

    /// The verdict on the first command that is compared.
    pub fn verdict(&self) -> Verdict {
        let first = self.candidates().next().and_then(|it| self.decisive(&it.name));
        first.map_or(Verdict::NotComparable, |row| row.verdict)
    }
}
