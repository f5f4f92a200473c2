//! What findings are about: the arguments of their codes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    spec::{CellSpec, StudySpec},
    trial::Exclusion,
};

/// Trials of an arm that noise excluded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArmExclusions {
    /// Arm.
    pub arm: String,
    /// So many of its trials were.
    pub excluded: u32,
    /// Of so many, attempts included.
    pub trials: u32,
}

/// System calls of one kind that engine and kernel counted, and not alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallsApart {
    /// Cell.
    pub cell_id: String,
    /// Arm.
    pub arm: String,
    /// `enter`, `wait`, `receive`, `send`, `interest`, `accept`.
    pub kind: String,
    /// By the engine.
    pub engine: u64,
    /// By the kernel's programs.
    pub kernel: u64,
}

/// How much the baseline's own CPU per message changes with the place of its slice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OrderEffect {
    /// Which place.
    pub place: SlicePlace,
    /// Cell.
    pub cell_id: String,
    /// The change, as a share.
    pub change: f64,
    /// Its interval.
    pub interval: (f64, f64),
}

/// Where a slice of the baseline stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "place", rename_all = "kebab-case")]
pub enum SlicePlace {
    /// It goes before the baseline's other slice.
    GoingFirst,
    /// It follows a slice of this arm instead of one of its own.
    Following {
        /// Arm.
        arm: String,
    },
}

/// What is sent and counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MessageKind {
    /// A message of echo.
    #[default]
    Message,
    /// An HTTP request.
    Request,
    /// An order.
    Order,
    /// An operation on a disk.
    Operation,
}

impl MessageKind {
    /// What is counted in a cell.
    pub fn of_cell(cell: &CellSpec) -> Self {
        match cell.protocol() {
            "storage" => Self::Operation,
            "http" => Self::Request,
            "orders" => Self::Order,
            _ => Self::Message,
        }
    }

    /// What is counted in a study.
    pub fn of_study(spec: &StudySpec) -> Self {
        spec.cells.first().map_or_else(Self::default, Self::of_cell)
    }
}

/// What one independent value comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UnitKind {
    /// A round of fresh processes in which the arms take turns.
    Round,
    /// A pair of whole trials of one block.
    #[default]
    Pair,
}

impl UnitKind {
    /// How a cell is compared.
    pub fn of_cell(cell: &CellSpec) -> Self {
        if cell.alternation.is_some() { Self::Round } else { Self::Pair }
    }
}

/// Why a trial, or a unit, has no part in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExclusionKind {
    /// The hypervisor took CPU time.
    Steal,
    /// Other processes were busy.
    ForeignCpu,
    /// The machine changed its state.
    StateChanged,
    /// Responses failed.
    Errors,
    /// Little's law does not hold.
    LittlesLaw,
    /// The server failed.
    ServerFailed,
    /// The generator failed.
    LoadFailed,
    /// A completion queue overflowed.
    CompletionOverflow,
    /// A storage job failed.
    JobFailed,
    /// A process beside the server failed.
    NeighbourFailed,
    /// It ran in the far state, and the cell is compared in the near one.
    InFarState,
    /// The other way round.
    InNearState,
    /// It does not have the figure.
    WithoutFigure,
}

impl From<&Exclusion> for ExclusionKind {
    fn from(exclusion: &Exclusion) -> Self {
        match exclusion {
            Exclusion::Steal => Self::Steal,
            Exclusion::ForeignCpu => Self::ForeignCpu,
            Exclusion::StateChanged => Self::StateChanged,
            Exclusion::Errors { .. } => Self::Errors,
            Exclusion::LittlesLaw => Self::LittlesLaw,
            Exclusion::ServerFailed { .. } => Self::ServerFailed,
            Exclusion::LoadFailed { .. } => Self::LoadFailed,
            Exclusion::CompletionOverflow => Self::CompletionOverflow,
            Exclusion::JobFailed { .. } => Self::JobFailed,
            Exclusion::NeighbourFailed { .. } => Self::NeighbourFailed,
        }
    }
}

/// Classes of failed responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FailureClass {
    /// The connection was refused.
    Refused,
    /// The connection was reset.
    Reset,
    /// No connection in time.
    ConnectTimeout,
    /// No response in time.
    ResponseTimeout,
    /// The response ended early.
    CutShort,
    /// A byte was wrong.
    WrongBytes,
    /// Another status than expected.
    WrongStatus,
    /// Not what the protocol allows.
    Malformed,
    /// A limit of the generator's machine.
    LocalLimit,
    /// None of these.
    Unexplained,
}

/// Failures of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailureCount {
    /// Class.
    pub class: FailureClass,
    /// How many.
    pub count: u64,
}

/// A trial that failed, as far as it knows why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FailedTrial {
    /// Arm.
    pub arm: String,
    /// What spoke against it; absent where a report is simply missing.
    pub reason: Option<ExclusionKind>,
    /// What a program said, in its own words.
    pub said: Option<String>,
    /// Failed responses.
    pub classes: Vec<FailureCount>,
    /// Connections a full accept queue lost.
    pub listen_overflows: u64,
    /// First segments that were sent again.
    pub syn_retransmits: u64,
}

/// What a verdict on server CPU is held against.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "figure", rename_all = "kebab-case")]
pub enum Witness {
    /// CPU of the whole machine.
    MachineCpu,
    /// Both arms at one rate.
    EqualRate {
        /// The rate.
        per_second: f64,
    },
}

/// What the other figure says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WitnessFigure {
    /// Arm over baseline.
    pub ratio: f64,
    /// Its interval.
    pub interval: (f64, f64),
    /// Units it is made of.
    pub units: u64,
}

/// What the other figure does to a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WitnessBearing {
    /// It is known not to go the other way.
    Supports,
    /// It could.
    Uncertain,
    /// It does.
    Contradicts,
}

/// Why a schedule is not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum Stopped {
    /// Another session goes on.
    CutShort {
        /// Time of all sessions.
        elapsed_ns: u64,
        /// Longest session.
        cap_ns: u64,
    },
    /// No two arms are left.
    NothingToCompare {
        /// Time of all sessions.
        elapsed_ns: u64,
    },
}

/// What server and generator share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SharedPart {
    /// They are on different cores.
    Nothing,
    /// One physical core.
    Core,
    /// One CPU, on which they take turns.
    Cpu,
}
