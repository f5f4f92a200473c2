//! Declared contrasts: whether the ratio of an arm to its baseline at some levels, or in one cell, differs from that
//! at others, or is equivalent within a margin. Pure.
//!
//! The means of two sets of cells are geometric, with equal weights. Rounds of different cells are independent, so
//! the error combines those of all cells, with degrees of freedom by Welch and Satterthwaite. A contrast is a claim:
//! its p-value is corrected with those of all others (Holm). A cell that is not comparable, or in which the generator
//! was the limit, bars it: at different rates the ratio may reflect the rates. If all its cells have the same levels,
//! one equal rate covers all of them, and the limit bars nothing that is confirmed there.
//!
//! The rule is that of verdicts (`weir_stats::decide`): *equivalent* if the interval lies inside the margin, which is
//! the contrast's own or the study's. A contrast of server CPU is checked against the same contrast of CPU of both
//! sides and of CPU including waiting, like a verdict.

use weir_record::{
    contrast::ContrastSpec,
    effect::{Effect, EffectScale, Question},
    grid::Difference,
    metric::Metric,
    spec::{CellRole, StudySpec},
};
use weir_stats::decide::{ALPHA, Bearing, Direction, Estimate, Reading, bearing, decide, weighted_sum};

use crate::{grid::direction, question};

/// Figures that must not contradict a contrast of server CPU, if cells have them.
const BESIDE: [Metric; 2] = [Metric::MachineCpuPerMessage, Metric::ServerCpuWithWaiting];

/// The effect in one cell.
pub(crate) enum CellEffect {
    /// Something bars it.
    Barred,
    /// The generator was the limit for a side.
    Limited,
    /// A valid effect.
    Known(Estimate),
    /// It was not measured there.
    Absent,
}

/// A contrast before the correction.
pub(crate) struct Draft<'s> {
    asked: &'s ContrastSpec,
    effect: Result<Estimate, Difference>,
    /// The same contrast of the witness figures; `None` for an invalid one.
    beside: Vec<Option<Estimate>>,
    margin: f64,
}

impl<'s> Draft<'s> {
    /// One for each declared contrast; the argument returns the effect of a metric of its arms in a cell.
    pub(crate) fn all(
        spec: &'s StudySpec,
        known: impl Fn(&ContrastSpec, Metric, &str) -> CellEffect,
    ) -> Vec<Self> {
        let of_metric = |asked: &ContrastSpec, metric: Metric| {
            let effects = |cells: &[String]| -> Result<Vec<Estimate>, Difference> {
                let known = |cell: &String| match known(asked, metric, cell) {
                    CellEffect::Known(effect) => Ok(effect),
                    CellEffect::Limited => Err(Difference::GeneratorLimited),
                    CellEffect::Barred | CellEffect::Absent => Err(Difference::Invalid),
                };
                cells.iter().map(known).collect()
            };
            let (of, to) = (effects(&asked.of)?, effects(&asked.to)?);
            apart(&of, &to).ok_or(Difference::Invalid)
        };
        let is_measured = |asked: &ContrastSpec, metric: Metric| {
            let mut cells = asked.of.iter().chain(&asked.to);
            cells.any(|cell| !matches!(known(asked, metric, cell), CellEffect::Absent))
        };
        let draft = |asked: &'s ContrastSpec| {
            let is_of_server = asked.metric == Metric::ServerCpuPerMessage;
            let beside = BESIDE.into_iter().filter(|metric| is_of_server && is_measured(asked, *metric));
            Draft {
                asked,
                effect: of_metric(asked, asked.metric),
                beside: beside.map(|metric| of_metric(asked, metric).ok()).collect(),
                margin: asked.equivalence_margin.unwrap_or(spec.equivalence_margin).ln_1p(),
            }
        };
        spec.contrasts.iter().map(draft).collect()
    }

    /// Whether no witness contradicts the claim: `claimed` is a log-ratio, zero for equivalence.
    fn is_borne_out(&self, claimed: f64) -> bool {
        let supports = |other: &Estimate| bearing(claimed, other, self.margin) == Bearing::Supports;
        self.beside.iter().all(|other| other.as_ref().is_some_and(supports))
    }

    /// Its uncorrected p-value, if it takes part in the correction.
    pub(crate) fn p_value(&self) -> Option<f64> {
        self.effect.as_ref().ok().map(|effect| effect.p_value)
    }

    fn difference(&self, effect: &Estimate, p_value_holm: Option<f64>) -> Difference {
        let p_value = p_value_holm.unwrap_or(effect.p_value);
        let (claimed, difference) =
            match decide(effect, &Reading { p_value, margin: self.margin, larger_is_better: true }) {
                Direction::Equivalent => (0.0, Difference::Equivalent),
                Direction::Better | Direction::Worse => (effect.mean, direction(effect.mean)),
                Direction::Undecided => return Difference::Undetected,
            };
        if self.is_borne_out(claimed) { difference } else { Difference::NotBorneOut }
    }

    /// Its row, with its index in the specification.
    pub(crate) fn decided(&self, place: u32, p_value_holm: Option<f64>) -> Effect {
        let effect = self.effect.as_ref().ok();
        let difference = match &self.effect {
            Err(barred) => *barred,
            Ok(effect) => self.difference(effect, p_value_holm),
        };
        Effect {
            arm: self.asked.arm.clone(),
            baseline: self.asked.baseline.clone(),
            metric: self.asked.metric,
            p_value: effect.map(|it| it.p_value),
            p_value_holm,
            role: CellRole::Confirmatory,
            difference: Some(difference),
            ..question::row(Question::Contrast(place), EffectScale::of(self.asked.metric), effect)
        }
    }
}

/// Contrasts for the report: before the schedule is finished, no difference is called.
pub(crate) fn withhold_unfinished(mut rows: Vec<Effect>, is_finished: bool) -> Vec<Effect> {
    for row in rows.iter_mut().filter(|_| !is_finished) {
        row.difference = Some(Difference::Unfinished);
    }
    rows
}

/// The difference of the means of two sets of effects.
fn apart(of: &[Estimate], to: &[Estimate]) -> Option<Estimate> {
    let sides = [(1.0, of), (-1.0, to)].into_iter();
    let terms = sides.flat_map(|(sign, effects)| {
        let weight = sign / effects.len() as f64;
        effects.iter().map(move |effect| (weight, *effect))
    });
    weighted_sum(terms, ALPHA).filter(|_| !of.is_empty() && !to.is_empty())
}
