//! What was asked: studies, arms, cells. Complete and explicit; stored with every result.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    added_cost::AddedCostSpec,
    cause::CauseSpec,
    contrast::ContrastSpec,
    doctor::FindingState,
    finding::{Finding, NoTurns, UnitKind},
    goal::ComparisonSpec,
    http::MixedRequest,
    kernel::{AS_ON_KERNEL, KernelVersion},
    origin::Origin,
    published::{PublishedClaim, PublishedRun, PublishedTable},
    storage::{AccessPattern, CompletionMethod, StorageDevice, StorageEngine, StorageEngineOptions},
    text::Text,
    wait_series::PublishedLevel,
};

mod arm_start;
mod evidence_plan;
mod server_host;

pub use arm_start::{ArmStart, Ready, RunningServer};
pub use evidence_plan::EvidencePlan;
pub use server_host::ServerHost;

/// A whole study, resolved: nothing in it depends on a default that could change later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StudySpec {
    /// Short name, also the folder name (`quick`).
    pub name: String,
    /// One sentence that says what the study asks.
    pub title: Text,
    /// Seed of every random choice: order of arms, order of cells, payloads, arrivals.
    pub seed: u64,
    /// The arms; the first is the baseline and runs twice in every block (A/A).
    pub arms: Vec<ArmSpec>,
    /// All cells; exactly one has the role `Primary`.
    pub cells: Vec<CellSpec>,
    /// Whether arms that are the same are meant to be: a study of the laboratory itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub same_arms: bool,
    /// CPUs the server side is pinned to; empty means not pinned.
    pub server_cpus: Vec<usize>,
    /// CPUs the generator is pinned to; empty means not pinned.
    pub load_cpus: Vec<usize>,
    /// Smallest ratio that matters, as a fraction: 0.03 means differences under 3 % are not called.
    #[serde(alias = "smallest_effect")]
    pub equivalence_margin: f64,
    /// No new block starts after this much time; what is finished is judged.
    pub time_cap_ns: u64,
    /// What others published about such cells; the report sets it beside what was measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<PublishedClaim>,
    /// Runs that others published with their figures, each beside its counterparts here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published_runs: Vec<PublishedRun>,
    /// Tables that others published, each beside the one of the same name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published_tables: Vec<PublishedTable>,
    /// Levels that others published of arms over time, each beside the part of a series that it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published_levels: Vec<PublishedLevel>,
    /// What arms cost beyond the baseline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added_costs: Vec<AddedCostSpec>,
    /// Switches that may cause a difference, each turned back in a separate arm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<CauseSpec>,
    /// Differences between levels that are claimed beforehand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contrasts: Vec<ContrastSpec>,
    /// Comparisons beside those with the baseline, and goals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comparisons: Vec<ComparisonSpec>,
    /// Processes that cells may have beside what they measure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub neighbours: Vec<NeighbourSpec>,
    /// I/O models as they were found where the study was made; for studies that compare them all.
    #[serde(default, alias = "ways", skip_serializing_if = "Vec::is_empty")]
    pub io_models: Vec<IoModel>,
    /// Cells that this machine cannot run: they are not among `cells` for that reason or, where that was found by
    /// trying, have no blocks there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_cells: Vec<MissingCell>,
    /// Cells whose arms do not take turns; empty in studies that were made before it was noted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub whole_trials: Vec<WholeTrials>,
    /// Identifiers of cells whose slices have the length that was asked for. In the others rounds may have longer ones
    /// than those before, where an arm turned out to be slow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slices_given: Vec<String>,
    /// Whether the claims are about closed loops, in which each arm runs at its own rate, by request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub saturation: bool,
    /// What is asked for over HTTP in every cell, where that is a mix of requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<MixedRequest>,
    /// Commit, branch, labels and a note of the run, as its first session began.
    #[serde(default, skip_serializing_if = "Origin::is_empty")]
    pub origin: Origin,
    /// The host of the servers, where that is another than the generator's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_host: Option<ServerHost>,
}

impl StudySpec {
    /// CPUs of the generator in a cell.
    pub fn load_cpus_in<'a>(&'a self, cell: &'a CellSpec) -> &'a [usize] {
        if cell.load_cpus.is_empty() { &self.load_cpus } else { &cell.load_cpus }
    }

    /// CPUs of the servers in a cell.
    pub fn server_cpus_in<'a>(&'a self, cell: &'a CellSpec) -> &'a [usize] {
        if cell.server_cpus.is_empty() { &self.server_cpus } else { &cell.server_cpus }
    }

    /// With how many workers an arm runs alone, where others run with more and nothing in its command says how many
    /// there should be.
    pub fn workers_not_told(&self, arm: &str) -> Option<u32> {
        let spec = self.arms.iter().find(|spec| spec.name == arm)?;
        let of_cells = |is_own: bool| {
            let cells = self.cells.iter().filter(move |cell| !is_own || cell.has_arm(arm));
            cells.map(|cell| cell.workers).max()
        };
        let (own, all) = (of_cells(true)?, of_cells(false)?);
        let is_started = spec.running().is_none();
        (is_started && !spec.subject.is_told_workers() && own < all).then_some(own)
    }

    /// Pairs of arms that run the same with the same options, and meet in a cell. A placebo is meant to be the same.
    pub fn same_arms(&self) -> Vec<(&ArmSpec, &ArmSpec)> {
        let meet = |one: &ArmSpec, other: &ArmSpec| {
            self.cells.iter().any(|cell| cell.has_arm(&one.name) && cell.has_arm(&other.name))
        };
        let is_same = |one: &ArmSpec, other: &ArmSpec| {
            (&one.subject, &one.load_options, &one.start)
                == (&other.subject, &other.load_options, &other.start)
                && !(one.is_placebo || other.is_placebo)
        };
        let pairs = (1..)
            .zip(&self.arms)
            .flat_map(|(next, one)| self.arms.iter().skip(next).map(move |other| (one, other)));
        pairs.filter(|(one, other)| is_same(one, other) && meet(one, other)).collect()
    }

    /// What an arm is compared with: the first arm, or another that it names.
    pub fn baseline_of<'a>(&'a self, arm: &'a ArmSpec) -> &'a str {
        arm.baseline.as_deref().unwrap_or(&self.arms[0].name)
    }
}

/// A cell in which each arm is measured whole, one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WholeTrials {
    /// Its identifier.
    pub cell_id: String,
    /// Why its arms do not take turns.
    pub why: NoTurns,
}

/// A cell that a study does without.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MissingCell {
    /// Its identifier.
    pub id: String,
    /// Why it cannot run here.
    pub reason: Finding,
}

/// One way of serving the workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArmSpec {
    /// Name in tables and charts.
    pub name: String,
    /// How the server is started.
    pub subject: Subject,
    /// Engine options of the generator that loads this arm (`spin-us = "50"`, …), sorted by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub load_options: BTreeMap<String, String>,
    /// The arm that it is compared with instead of the first: another build of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// Whether it is that baseline, built again from the same source: only the layout of their code differs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_placebo: bool,
    /// How long it is loaded before its first timed slice in every round, where its processes must be warm; in a whole
    /// trial the longest warm-up, where that is more than the cell's. Zero for no own warm-up.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub warmup_ns: u64,
    /// The environment of its server, and the commands before and after it.
    #[serde(default, skip_serializing_if = "ArmStart::is_default")]
    pub start: ArmStart,
}

impl ArmSpec {
    /// The server that ran before the study, where the arm is one.
    pub fn running(&self) -> Option<&RunningServer> {
        match &self.subject {
            Subject::Running(server) => Some(server),
            _ => None,
        }
    }

    /// Whether both run one command line with different programs that are two builds of one: of the same file name, or
    /// said to be compared. nginx and another server may well be started alike.
    pub fn is_other_build_of(&self, other: &Self) -> bool {
        if let (Subject::Gateway(one), Subject::Gateway(two)) = (&self.subject, &other.subject) {
            let as_other = GatewaySubject { program: two.program.clone(), ..one.clone() };
            return one.program != two.program && as_other == *two;
        }
        let (Subject::Command { argv: one }, Subject::Command { argv: two }) =
            (&self.subject, &other.subject)
        else {
            return false;
        };
        let [(own, own_words), (its, its_words)] = match (one.split_first(), two.split_first()) {
            (Some(one), Some(two)) => [one, two],
            _ => return false,
        };
        let is_of_one_name = own.rsplit('/').next() == its.rsplit('/').next();
        own != its
            && own_words == its_words
            && (is_of_one_name || self.baseline.as_ref() == Some(&other.name))
    }
}

/// What an arm runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// `weir serve` on a driver with options (`buffer-bytes = "2048"`, …).
    Weir {
        /// Driver name as on the command line; never `auto` in a study.
        driver: String,
        /// Engine options, sorted by name.
        options: BTreeMap<String, String>,
        /// Further words of `weir serve` (`--backlog`, `10`), substituted like those of a command.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        arguments: Vec<String>,
    },
    /// A foreign server. `{port}`, `{cpus}`, `{workers}` and `{bin}` (the folder of the running `weir`) are
    /// substituted, and in an HTTP study `{content}` (the file to answer with), `{content_type}`, `{content_dir}`
    /// (its folder) and `{scratch}` (a folder of this trial alone); ready when the port accepts.
    Command {
        /// Program and arguments.
        argv: Vec<String>,
    },
    /// A server that runs already.
    Running(RunningServer),
    /// `weir serve gateway`, with an exchange behind it that the laboratory starts first.
    Gateway(GatewaySubject),
    /// `weir storage run`.
    Storage(StorageSubject),
    /// fio, with the same job in its own words.
    Fio {
        /// The program: `fio`, or a path to one.
        program: String,
        /// The engine as Weir calls it; absent means the cell's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        engine: Option<StorageEngine>,
    },
}

impl Subject {
    /// How operations on a disk reach the kernel, where the arm says so itself.
    pub fn storage_engine(&self) -> Option<StorageEngine> {
        match self {
            Self::Storage(subject) => subject.engine,
            Self::Fio { engine, .. } => *engine,
            Self::Weir { .. } | Self::Command { .. } | Self::Running(_) | Self::Gateway(_) => None,
        }
    }

    /// Whether it hears how many workers a cell has: a foreign command does where it names them.
    pub fn is_told_workers(&self) -> bool {
        match self {
            Self::Command { argv } => argv.iter().any(|word| word.contains("{workers}")),
            Self::Running(_) => false,
            Self::Weir { .. } | Self::Gateway(_) | Self::Storage(_) | Self::Fio { .. } => true,
        }
    }

    /// The older kernel that it runs as, where it does.
    pub fn as_on_kernel(&self) -> Option<KernelVersion> {
        match self {
            Self::Weir { options, .. } => options.get(AS_ON_KERNEL)?.parse().ok(),
            _ => None,
        }
    }

    /// The engine's driver, where the arm names one.
    pub fn driver(&self) -> Option<&str> {
        match self {
            Self::Weir { driver, .. } => Some(driver),
            Self::Gateway(subject) => subject.driver.as_deref(),
            Self::Command { .. } | Self::Running(_) | Self::Storage(_) | Self::Fio { .. } => None,
        }
    }

    /// The foreign program it starts, as it was written.
    pub fn program(&self) -> Option<&str> {
        match self {
            Self::Command { argv } => argv.first().map(String::as_str),
            Self::Fio { program, .. } => Some(program),
            Self::Gateway(gateway) => gateway.program.as_deref(),
            Self::Weir { .. } | Self::Running(_) | Self::Storage(_) => None,
        }
    }
}

/// How the order gateway of a cell is started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GatewaySubject {
    /// How work crosses between workers, as `--handoff` takes it.
    pub handoff: String,
    /// Which worker sends an order on, as `--route` takes it: `own`, `other` or `modulo`.
    pub route: String,
    /// Driver of the gateway; absent means the cell's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Workers of gateway and exchange; absent means the cell's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<u32>,
    /// Engine options of the gateway, sorted by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// Further words of `weir serve gateway`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// Another build of `weir` that is the gateway; absent means the one that runs the study.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

/// How `weir storage run` does the job of a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StorageSubject {
    /// How operations reach the kernel; absent means as the cell says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<StorageEngine>,
    /// Options of the engine.
    pub options: StorageEngineOptions,
    /// How the thread waits.
    pub completion: CompletionMethod,
}

/// A process beside a server: a client that misbehaves, or that wants something else than what is measured. It says
/// `ready` on a separate line when its work has begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NeighbourSpec {
    /// Name in cells and reports.
    pub name: String,
    /// Program and arguments. `{address}` and `{port}` of its server, `{cpus}`, `{bin}`, `{scratch}` and `{account}`
    /// are substituted.
    pub argv: Vec<String>,
}

/// One combination of factor levels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellSpec {
    /// Stable identifier, e.g. `c100-d1-m64-closed`, `c100-d1-html-closed` for HTTP, `randread-b4096-qd1` for storage.
    pub id: String,
    /// What is spoken, as a study file names it; empty in earlier studies ([`CellSpec::protocol`] is right for all).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub protocol: String,
    /// What a verdict on this cell may claim.
    pub role: CellRole,
    /// Open connections.
    pub connections: u32,
    /// Messages in flight per connection (closed loop); for storage operations in flight in all.
    pub depth: u32,
    /// Bytes per message; the content of a response for HTTP, a block for storage.
    pub message_bytes: u32,
    /// Further connections that stay idle.
    pub idle_connections: u32,
    /// Server workers (threads).
    pub workers: u32,
    /// How connections reach several workers, as `--accept` takes it; empty in earlier studies, and for what has no
    /// such choice ([`CellSpec::accept`] is right for all).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub accept: String,
    /// Congestion control at both ends of a connection, by the kernel's name for it; empty for the kernel's own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub congestion_control: String,
    /// Threads of the generator.
    #[serde(default = "one")]
    pub load_workers: u32,
    /// CPUs of the generator; empty for the study's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load_cpus: Vec<usize>,
    /// CPUs of the servers; empty for the study's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_cpus: Vec<usize>,
    /// A new connection for each message, which the client closes. For HTTP, `http` has this setting.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub close: bool,
    /// Closed loop, or open loop at a rate.
    pub load: LoadMode,
    /// Measured window per trial.
    pub window_ns: u64,
    /// Longest warm-up before the window.
    pub warmup_ns_max: u64,
    /// Blocks to run.
    pub blocks: u32,
    /// What is asked over HTTP; absent for echo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpCell>,
    /// What is asked of a disk; absent for echo and HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageCell>,
    /// What is asked of a gateway and the exchange behind it; absent for everything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orders: Option<OrdersCell>,
    /// How the arms take turns within a block; absent when each runs in a separate trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alternation: Option<Alternation>,
    /// Arms that run in this cell, the baseline among them; empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arms: Vec<String>,
    /// Neighbours that every server of this cell has, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub neighbours: Vec<String>,
    /// Whether it is one of the rates at which the primary comparison is looked at. The highest that every arm keeps
    /// decides.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_rung: bool,
}

fn one() -> u32 {
    1
}

impl CellSpec {
    /// Its protocol; of a cell that names none the one whose side it has.
    pub fn protocol(&self) -> &str {
        match self {
            _ if !self.protocol.is_empty() => &self.protocol,
            _ if self.storage.is_some() => "storage",
            _ if self.orders.is_some() => "orders",
            _ if self.http.is_some() => "http",
            _ => "echo",
        }
    }

    /// How connections reach its workers. One worker gets all of them, however that is; earlier studies left it to the
    /// kernel, which spreads connections by hash.
    pub fn accept(&self) -> &str {
        match self.accept.as_str() {
            _ if self.workers < 2 => "",
            "" => "reuseport",
            named => named,
        }
    }

    /// Whether every message has its own connection.
    pub fn has_connection_per_message(&self) -> bool {
        self.close || self.http.as_ref().is_some_and(|http| http.close)
    }

    /// Whether its trials are computed, and nothing in them depends on this machine.
    pub fn is_simulated(&self) -> bool {
        self.storage.as_ref().is_some_and(|storage| storage.device.is_simulated())
    }

    /// Whether its trials show how arms wait over time. They are drawn and compared with nothing.
    pub fn is_series(&self) -> bool {
        self.storage.as_ref().is_some_and(|storage| !storage.core_steps.is_empty())
    }

    /// The measured time of a trial.
    pub fn trial_window_ns(&self) -> u64 {
        let steps = self.storage.as_ref().map_or(1, |storage| storage.core_steps.len().max(1));
        self.window_ns.saturating_mul(steps as u64)
    }

    /// How long an interval of the measurement points is where they are drawn over time: a twentieth of a step, in
    /// whole milliseconds.
    pub fn series_interval_ns(&self) -> u64 {
        (self.window_ns / 20_000_000).max(1) * 1_000_000
    }

    /// Whether the arm runs in this cell.
    pub fn has_arm(&self, arm: &str) -> bool {
        self.arms.is_empty() || self.arms.iter().any(|own| own == arm)
    }
}

/// Arms that are up together and are loaded in turn, so that two slices that are compared meet the same machine.
///
/// A block is then a round of fresh processes, and its figure for an arm is a robust mean over the permutations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Alternation {
    /// How long messages are started in a slice.
    pub slice_ns: u64,
    /// How often every arm has its slice in a block, each time in a new order.
    pub permutations: u32,
    /// Messages on each connection before a slice, outside its figures.
    pub prime_messages: u32,
    /// Slices of evidence beside those that are timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<EvidencePlan>,
}

impl UnitKind {
    /// How a cell is compared.
    pub fn of_cell(cell: &CellSpec) -> Self {
        if cell.alternation.is_some() { Self::Round } else { Self::Pair }
    }
}

/// The HTTP side of a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HttpCell {
    /// What a response carries: `html`, `image`, or a number of bytes.
    pub content: String,
    /// Whether the study's requests are asked for, and not the content.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub mix: bool,
    /// A new connection for each request.
    pub close: bool,
    /// Time over which the connections are opened; zero for at once.
    #[serde(skip_serializing_if = "is_zero")]
    pub ramp_up_ns: u64,
    /// Longest wait for a connection; zero for the generator's own.
    #[serde(skip_serializing_if = "is_zero")]
    pub connect_timeout_ns: u64,
    /// Longest wait for a response; zero for the generator's own.
    #[serde(skip_serializing_if = "is_zero")]
    pub response_timeout_ns: u64,
}

/// The orders of a cell. Its connections are sessions of clients, its depth is what each has in flight, and its message
/// bytes are those of an order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OrdersCell {
    /// Driver of gateways that name none.
    pub driver: String,
    /// What kind of load it is: `closed`, `tps`, `paced` or `flood`; names the row in reports.
    pub load: String,
    /// Orders in flight over all sessions together; absent means the cell's depth for each session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_flight_total: Option<u32>,
    /// Driver of the exchange, which is not what is compared; empty in earlier studies, whose exchange had `uring`.
    pub exchange_driver: String,
    /// How durable the journals of gateway and exchange are, as `--journal` takes it.
    pub journal: String,
    /// How connections reach the workers, as `--accept` takes it.
    pub accept: String,
    /// CPUs of the exchange; empty means the generator's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exchange_cpus: Vec<usize>,
}

/// The storage side of a cell. All of it is `O_DIRECT`: what the page cache answers says nothing about a disk. An
/// engine that has one operation in flight per thread gets as many threads as the cell has operations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StorageCell {
    /// What is waited for.
    #[serde(default, skip_serializing_if = "is_disk")]
    pub device: StorageDevice,
    /// Which blocks are touched, in which order.
    pub pattern: AccessPattern,
    /// The engine of arms that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<StorageEngine>,
    /// Random reads that another process keeps in flight meanwhile, from the CPUs of the load side; 0 for none.
    pub background_depth: u32,
    /// Cores that keep this many in flight each; only a model has more than one.
    #[serde(default = "one_core", skip_serializing_if = "is_one_core")]
    pub background_cores: u32,
    /// Background cores that keep as many in flight, one number after the other for a window each while the job goes
    /// on; empty for one load. On a disk they are one process with the depth of all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub core_steps: Vec<u32>,
    /// Bytes of the data file that are used.
    pub file_bytes: u64,
    /// A file of the user's, which is never laid out; absent means one beside the run folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

fn is_zero(length_ns: &u64) -> bool {
    *length_ns == 0
}

fn is_disk(device: &StorageDevice) -> bool {
    !device.is_simulated()
}

fn one_core() -> u32 {
    1
}

fn is_one_core(cores: &u32) -> bool {
    *cores == 1
}

/// An I/O model, and whether the machine has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IoModel {
    /// Name people know it by: `epoll`, `io_uring`, `aio`.
    pub name: String,
    /// Whether it can be used here.
    pub state: FindingState,
    /// What was found.
    pub detail: Finding,
    /// The source of this: a test, or a file of the kernel.
    pub source: Finding,
    /// What would unlock it.
    pub unlock: Option<Finding>,
}

/// How much a cell's verdict may claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CellRole {
    /// Decides the study's sentence and exit code.
    #[serde(alias = "headline")]
    Primary,
    /// Declared beforehand; corrected for multiplicity by Holm.
    #[serde(alias = "declared")]
    Confirmatory,
    /// Looked at without a claim.
    #[default]
    Exploratory,
}

/// How requests are started.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoadMode {
    /// A new message as soon as an old one returned.
    Closed,
    /// Messages start at intended times, whatever the server does.
    Open {
        /// Messages a second over all connections.
        rate_per_second: f64,
        /// Exponential gaps (`true`) or equal gaps.
        poisson: bool,
        /// What share of the smaller of the arms' pilot capacities that is; absent where the rate itself was asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        share: Option<f64>,
    },
    /// Open loop at a share of the smaller of the arms' pilot capacities, fixed before the first block.
    OpenShare {
        /// Share of the smaller capacity, 0 to 1.
        share: f64,
        /// Exponential gaps (`true`) or equal gaps.
        poisson: bool,
    },
}

impl LoadMode {
    /// What share of the smallest capacity an open loop is offered, where it is one.
    pub fn share(self) -> Option<f64> {
        match self {
            Self::Open { share, .. } => share,
            Self::OpenShare { share, .. } => Some(share),
            Self::Closed => None,
        }
    }

    /// The same but for a rate that a pilot has found.
    pub fn without_rate(self) -> Self {
        match self {
            Self::Open { share: Some(share), poisson, .. } => Self::OpenShare { share, poisson },
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A study as it was stored before there was HTTP.
    const OLD: &str = r#"{"name":"quick","title":"t","seed":7,
        "arms":[{"name":"epoll","subject":{"weir":{"driver":"epoll","options":{}}}},
                {"name":"go","subject":{"command":{"argv":["go-echo","{port}"]}},"load_options":{"spin-us":"50"}}],
        "cells":[{"id":"c100-d1-m64-closed","role":"headline","connections":100,"depth":1,"message_bytes":64,
                  "idle_connections":0,"workers":1,"load":"closed","window_ns":800000000,
                  "warmup_ns_max":1000000000,"blocks":12}],
        "server_cpus":[0],"load_cpus":[1],"smallest_effect":0.03,"time_cap_ns":215000000000}"#;

    #[test]
    fn other_builds_are_programs_of_one_name_or_held_against_each_other() {
        let arm = |name: &str, program: &str, baseline: Option<&str>| ArmSpec {
            name: name.to_owned(),
            subject: Subject::Command { argv: vec![program.to_owned(), "{port}".to_owned()] },
            load_options: BTreeMap::new(),
            baseline: baseline.map(str::to_owned),
            is_placebo: false,
            warmup_ns: 0,
            start: ArmStart::default(),
        };
        let old = arm("old", "old/server", None);
        assert!(arm("new", "new/server", None).is_other_build_of(&old));
        assert!(arm("new", "new/server-2", Some("old")).is_other_build_of(&old));
        assert!(!arm("nginx", "peers/bin/nginx-http", None).is_other_build_of(&old));
        assert!(!arm("same", "old/server", None).is_other_build_of(&old));
    }

    #[test]
    fn a_study_stored_before_http_means_what_it_meant() {
        let spec: StudySpec = serde_json::from_str(OLD).expect("it is a study");
        assert!(!spec.is_http() && spec.published.is_empty() && spec.io_models.is_empty());
        let with = |workers: u32| CellSpec { workers, ..spec.cells[0].clone() };
        assert_eq!((with(1).accept(), with(2).accept()), ("", "reuseport"), "as its servers had it");
        assert_eq!((spec.cells[0].role, spec.equivalence_margin), (CellRole::Primary, 0.03));
        assert!(spec.cells[0].has_arm("epoll") && spec.cells[0].has_arm("anything"));
        let subject =
            Subject::Weir { driver: "epoll".to_owned(), options: BTreeMap::new(), arguments: Vec::new() };
        assert_eq!(spec.arms[0].subject, subject);
        let again = serde_json::to_string(&spec).expect("it serialises");
        for new in ["http", "storage", "arguments", "published", "io_models", "\"arms\":[]"] {
            assert!(!again.contains(new), "an echo study does not speak of {new}: {again}");
        }
        assert_eq!(serde_json::from_str::<StudySpec>(&again).expect("it is a study"), spec);
    }

    #[test]
    fn an_arm_of_storage_says_only_what_it_has() {
        let subject =
            Subject::Storage(StorageSubject { engine: Some(StorageEngine::Libaio), ..Default::default() });
        let text = serde_json::to_string(&subject).expect("it serialises");
        assert!(text.starts_with(r#"{"storage":{"engine":"libaio","#), "{text}");
        assert_eq!(serde_json::from_str::<Subject>(&text).expect("it is one"), subject);
        assert_eq!(subject.storage_engine(), Some(StorageEngine::Libaio));
        let short: Subject = serde_json::from_str(r#"{"fio":{"program":"fio"}}"#).expect("it is one");
        assert_eq!(
            (short.storage_engine(), short),
            (None, Subject::Fio { program: "fio".to_owned(), engine: None })
        );
    }

    #[test]
    fn an_http_cell_leaves_out_what_it_does_not_ask() {
        let cell = HttpCell { content: "html".to_owned(), close: true, ..HttpCell::default() };
        let text = serde_json::to_string(&cell).expect("it serialises");
        assert_eq!(text, r#"{"content":"html","close":true}"#);
        assert_eq!(serde_json::from_str::<HttpCell>(&text).expect("it is a cell"), cell);
    }
}
