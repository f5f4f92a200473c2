//! The answer of a study in short, for programs: what stands first in its JSON documents. Everything in it is somewhere
//! in the judged study too; a reader that needs one conclusion needs no other part.

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    effect::{Effect, EffectScale},
    machine::Fingerprint,
    metric::Metric,
    verdict::Verdict,
};

/// The answer of a study. Its texts are English, whatever the language of the session; programs read the other fields.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StudyAnswer {
    /// The question, in the words of the study's author.
    pub question: String,
    /// The answer in one sentence, as the report has it. Later versions may word it differently.
    pub sentence: String,
    /// The verdict of the primary comparison; `inconclusive` while planned blocks have not run.
    pub verdict: Verdict,
    /// Whether every planned block was finished.
    pub complete: bool,
    /// The primary comparison; absent if the study has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<AnsweredEffect>,
    /// Where it was measured.
    pub machine: AnsweringMachine,
    /// When its run folder was made, or when it began if that was not noted: `2026-11-29T07:10:05Z`. Absent in results
    /// stored before either was noted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// Arms and cells that could not run; empty if all did.
    pub not_measured: Vec<Unmeasured>,
    /// Names of the validity checks that failed.
    pub failed_checks: Vec<String>,
}

/// The primary comparison: columns of its row in the table of effects.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AnsweredEffect {
    /// Cell.
    pub cell_id: String,
    /// The arm.
    pub arm: String,
    /// What it is compared with.
    pub baseline: String,
    /// What the figure is of.
    pub metric: Metric,
    /// What `estimate` is.
    pub scale: EffectScale,
    /// The figure, on `scale`. Absent if nothing was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<f64>,
    /// Its interval: lower, upper. Absent with too few units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
    /// Confidence of the interval; 0 without one.
    pub level: f64,
    /// Rounds or blocks it rests on.
    pub units: u32,
}

impl From<&Effect> for AnsweredEffect {
    fn from(row: &Effect) -> Self {
        Self {
            cell_id: row.cell_id.clone(),
            arm: row.arm.clone(),
            baseline: row.baseline.clone(),
            metric: row.metric,
            scale: row.scale,
            estimate: row.estimate,
            interval: row.interval,
            level: row.level,
            units: row.units,
        }
    }
}

/// The machine in few words; all of it is in the fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AnsweringMachine {
    /// Its name in the network; empty if it was not noted.
    pub host: String,
    /// Model of its processor.
    pub cpu_model: String,
    /// CPUs that were online.
    pub cpus_online: u32,
    /// Release of its kernel.
    pub kernel_release: String,
}

impl From<&Fingerprint> for AnsweringMachine {
    fn from(fingerprint: &Fingerprint) -> Self {
        Self {
            host: fingerprint.host.clone(),
            cpu_model: fingerprint.cpu_model.clone(),
            cpus_online: fingerprint.cpus_online,
            kernel_release: fingerprint.kernel_release.clone(),
        }
    }
}

/// An arm or a cell that could not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unmeasured {
    /// Which of the two it is.
    pub kind: UnmeasuredKind,
    /// Name of the arm, or identifier of the cell.
    pub name: String,
    /// Why.
    pub reason: String,
    /// What would make it run; absent if the reason says it or nothing is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unlock: Option<String>,
}

/// What could not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UnmeasuredKind {
    /// An arm of the study.
    Arm,
    /// A cell of the study.
    Cell,
}
