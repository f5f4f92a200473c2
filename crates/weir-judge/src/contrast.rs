//! Declared contrasts: whether the ratio of an arm to its baseline at some levels differs from that at others. Pure.
//!
//! The means of two sets of cells are geometric, each cell with the same weight. Rounds of different cells share
//! nothing, so the error is that of all cells, with degrees of freedom by Welch and Satterthwaite. A contrast is a
//! claim: its p-value is corrected with those of all others (Holm). A cell that may not be compared, or in which the
//! generator was the limit, bars it: at rates that differ the ratio may be one of the rates.

use weir_record::{
    contrast::{Contrast, ContrastSpec},
    grid::Difference,
    spec::StudySpec,
};
use weir_stats::decide::{ALPHA, Estimate, UNITS_MIN, of_sum};

use crate::grid::direction;

/// What is known of one cell.
pub(crate) enum CellEffect {
    /// Something bars it.
    Barred,
    /// The generator was the limit for a side.
    Limited,
    /// An effect that may be compared.
    Known(Estimate),
}

/// A contrast before the correction.
pub(crate) struct Draft<'s> {
    asked: &'s ContrastSpec,
    effect: Result<Estimate, Difference>,
}

impl<'s> Draft<'s> {
    /// One for each that the study declares, with what is known of an arm against a baseline in a cell.
    pub(crate) fn all(spec: &'s StudySpec, known: impl Fn(&ContrastSpec, &str) -> CellEffect) -> Vec<Self> {
        let of = |asked: &'s ContrastSpec| {
            let effects = |cells: &[String]| -> Result<Vec<Estimate>, Difference> {
                let known = |cell: &String| match known(asked, cell) {
                    CellEffect::Known(effect) => Ok(effect),
                    CellEffect::Limited => Err(Difference::GeneratorLimited),
                    CellEffect::Barred => Err(Difference::Invalid),
                };
                cells.iter().map(known).collect()
            };
            let effect = effects(&asked.of).and_then(|of| {
                let to = effects(&asked.to)?;
                apart(&of, &to).ok_or(Difference::Invalid)
            });
            Draft { asked, effect }
        };
        spec.contrasts.iter().map(of).collect()
    }

    /// Its own p-value, where it takes part in the correction.
    pub(crate) fn p_value(&self) -> Option<f64> {
        self.effect.as_ref().ok().map(|effect| effect.p_value)
    }

    pub(crate) fn decided(&self, p_value_holm: Option<f64>) -> Contrast {
        let effect = self.effect.as_ref().ok();
        let difference = match (&self.effect, p_value_holm) {
            (Err(barred), _) => *barred,
            (Ok(effect), Some(p_value)) if p_value <= ALPHA && effect.units >= UNITS_MIN => {
                direction(effect.mean)
            }
            (Ok(_), _) => Difference::Undetected,
        };
        Contrast {
            asked: self.asked.clone(),
            ratio: effect.map(|it| it.mean.exp()),
            interval: effect.map(|it| (it.low.exp(), it.high.exp())),
            p_value: effect.map(|it| it.p_value),
            p_value_holm,
            difference,
        }
    }
}

/// Contrasts as they may be told: before the schedule is finished, nothing is told to differ.
pub(crate) fn told(mut contrasts: Vec<Contrast>, is_finished: bool) -> Vec<Contrast> {
    let withheld = contrasts.iter_mut().filter(|_| !is_finished);
    withheld.for_each(|contrast| contrast.difference = Difference::Unfinished);
    contrasts
}

/// How far the mean of some effects lies above that of others.
fn apart(of: &[Estimate], to: &[Estimate]) -> Option<Estimate> {
    let sides = [(1.0, of), (-1.0, to)];
    let (mut sum, mut parts, mut units) = (0.0, Vec::new(), usize::MAX);
    for (sign, effects) in sides {
        let weight = sign / effects.len() as f64;
        for effect in effects {
            sum += weight * effect.mean;
            let error = weight * effect.standard_error()?;
            parts.push((error.powi(2), effect.units.checked_sub(1)? as f64));
            units = units.min(effect.units);
        }
    }
    of_sum(sum, &parts, units, ALPHA).filter(|_| !of.is_empty() && !to.is_empty())
}
