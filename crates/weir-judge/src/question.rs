//! One function answers every question about effects: a weighted sum of terms. Pure.
//!
//! A term is an arm compared with another one in a cell, or the figure of one arm there. Comparisons, goals, causes,
//! added costs and shares of published differences are such sums; contrasts and interactions are sums of effects that
//! were computed before ([`weir_stats::decide::weighted_sum`]). The terms determine the method:
//!
//! - Terms of one cell: within each round or block, so that what a round's terms share cancels. A unit is a round
//!   with all of them.
//! - Terms of several cells: the plan spreads the rounds of each cell over the session, each somewhere in its own
//!   n-th part of it (`plan`), so that rounds of two cells share neither their processes nor their moment, and their
//!   numbers may differ. Pairing them by number would assume a relation that the design does not have. They are
//!   compared unpaired (Welch). A slow drift affects both cells alike and widens both: the interval is conservative.
//!
//! A share is the quotient of two sums of one cell, by Fieller's interval.

use std::collections::BTreeMap;

use weir_record::{
    effect::{Effect, EffectScale, IntervalMethod, Question},
    metric_rows::MetricRow,
};
use weir_stats::{
    decide::{ALPHA, Estimate, Method, estimate_at, weighted_sum},
    quotient::{self, Quotient},
};

use crate::{
    cell_trials::CellTrials,
    gate::ValidityGate,
    units::{self, Compared},
};

/// A part of a sum.
#[derive(Clone, Copy)]
pub(crate) struct Term<'a> {
    pub(crate) weight: f64,
    pub(crate) cell: &'a CellTrials<'a>,
    pub(crate) arm: &'a str,
    /// The arm it is compared with; `None` for the arm's own figure.
    pub(crate) baseline: Option<&'a str>,
    pub(crate) row: &'static MetricRow,
}

/// The scale on which terms are summed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Summed {
    /// The metric's scale: logarithms, or figures that may be zero.
    OnItsScale,
    /// Figures in the metric's unit, whatever its scale: for added costs.
    InItsUnit,
}

/// The trials behind the answers.
#[derive(Clone, Copy)]
pub(crate) struct Measured<'a> {
    pub(crate) gate: &'a ValidityGate,
    /// The study's first arm, which runs twice.
    pub(crate) first: &'a str,
}

impl Measured<'_> {
    /// The estimate of a sum, with confidence `1 - alpha`. `None` without terms, and below two units in a cell.
    pub(crate) fn sum(self, terms: &[Term<'_>], summed: Summed, alpha: f64) -> Option<Estimate> {
        let mut by_cell: BTreeMap<&str, Vec<Term<'_>>> = BTreeMap::new();
        for term in terms {
            by_cell.entry(&term.cell.spec.id).or_default().push(*term);
        }
        let of_cell = |terms: &Vec<Term<'_>>| estimate_at(&values(&self.within(terms, summed)), alpha);
        let cells: Option<Vec<Estimate>> = by_cell.values().map(of_cell).collect();
        match cells?.as_slice() {
            [one] => Some(*one),
            several => weighted_sum(several.iter().map(|it| (1.0, *it)), alpha),
        }
    }

    /// The quotient of two sums of the same cell. `None` if the second is below zero or not distinguishable from it.
    pub(crate) fn quotient(
        self,
        of: &[Term<'_>],
        over: &[Term<'_>],
        summed: Summed,
        alpha: f64,
    ) -> Option<Quotient> {
        let under: BTreeMap<u32, f64> = self.within(over, summed).into_iter().collect();
        let both = |(block, value): (u32, f64)| Some((value, *under.get(&block)?));
        let pairs: Vec<(f64, f64)> = self.within(of, summed).into_iter().filter_map(both).collect();
        quotient::quotient(&pairs, alpha)
    }

    /// A sum of terms of one cell by round or block, in the order in which they ran: for rounds with every term.
    fn within(self, terms: &[Term<'_>], summed: Summed) -> Vec<(u32, f64)> {
        let mut series = terms.iter().map(|term| self.series(term, summed));
        let Some(first) = series.next() else { return Vec::new() };
        series.fold(first, |sum, own| {
            let own: BTreeMap<u32, f64> = own.into_iter().collect();
            let both = |(block, value): (u32, f64)| Some((block, value + own.get(&block)?));
            sum.into_iter().filter_map(both).collect()
        })
    }

    fn series(self, term: &Term<'_>, summed: Summed) -> Vec<(u32, f64)> {
        let Term { weight, cell, arm, baseline, row } = *term;
        let own = match (baseline, summed) {
            (None, _) => units::alone_in_time_order(self.gate, cell, arm, row),
            (Some(baseline), Summed::OnItsScale) => {
                units::of(self.gate, cell, Compared { arm, baseline, row }).by_block()
            }
            (Some(baseline), Summed::InItsUnit) => units::differences(self.gate, cell, (arm, baseline), row),
        };
        own.into_iter().map(|(block, value)| (block, weight * value)).collect()
    }
}

fn values(series: &[(u32, f64)]) -> Vec<f64> {
    series.iter().map(|(_, value)| *value).collect()
}

/// A row of the table with an estimate, and without its subject.
pub(crate) fn row(question: Question, scale: EffectScale, found: Option<&Estimate>) -> Effect {
    Effect {
        question,
        scale,
        estimate: found.map(|it| scale.shown(it.mean)),
        interval: found.map(|it| (scale.shown(it.low), scale.shown(it.high))),
        level: level(found.is_some()),
        method: found.map_or(IntervalMethod::None, |it| method(it.method)),
        units: found.map_or(0, |it| count(it.units)),
        degrees_of_freedom: found.map(|it| it.degrees_of_freedom),
        ..Effect::default()
    }
}

/// The same with a quotient of two sums.
pub(crate) fn row_of_quotient(question: Question, scale: EffectScale, found: Option<&Quotient>) -> Effect {
    Effect {
        question,
        scale,
        estimate: found.map(|it| it.ratio),
        interval: found.map(|it| (it.low, it.high)),
        level: level(found.is_some()),
        method: found.map_or(IntervalMethod::None, |_| IntervalMethod::Fieller),
        units: found.map_or(0, |it| count(it.pairs)),
        is_paired: true,
        degrees_of_freedom: found.map(|it| count(it.pairs).saturating_sub(1)),
        ..Effect::default()
    }
}

/// The record's name of an interval's method.
pub(crate) fn method(method: Method) -> IntervalMethod {
    match method {
        Method::Independent => IntervalMethod::StudentT,
        Method::LongRun => IntervalMethod::StudentTLongRun,
    }
}

/// Confidence of an interval; simultaneous for intervals that must hold together.
fn level(is_there: bool) -> f64 {
    if is_there { 1.0 - ALPHA } else { 0.0 }
}

/// An index in a list of the specification.
pub(crate) fn place(index: usize) -> u32 {
    count(index)
}

pub(crate) fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use weir_record::{metric::Metric, trial::TrialRecord};

    use super::*;
    use crate::sample;

    const CELL: &str = "c100-d1-m64-closed";

    /// epoll at 10 µs, uring at 8 and poll at 9, in rounds that are slow or fast as a whole.
    fn trials() -> Vec<TrialRecord> {
        let of_block = |block: u32| {
            let slow = 1.0 + 0.3 * f64::from(block % 3);
            let own = |arm: &str, cost: f64, number: u32| {
                let noise = 1.0 + 0.001 * f64::from((block * 5 + number * 3) % 8);
                sample::trial(CELL, arm, block, cost * slow * noise)
            };
            [own("epoll", 10.0, 0), own("uring", 8.0, 1), own("poll", 9.0, 2)]
        };
        (0..8).flat_map(of_block).collect()
    }

    fn asked<T>(ask: impl FnOnce(Measured<'_>, &dyn Fn(f64, &'static str) -> Term<'static>) -> T) -> T {
        let spec = Box::leak(Box::new(sample::study(&["epoll", "uring", "poll"], 8, 1)));
        let trials: &'static [TrialRecord] = Box::leak(trials().into_boxed_slice());
        let gate = ValidityGate::new(trials);
        let of_cell: Vec<&TrialRecord> = trials.iter().collect();
        let cell: &'static CellTrials<'static> =
            Box::leak(Box::new(CellTrials::of(&spec.cells[0], &gate, &of_cell)));
        let row = Metric::ServerCpuPerMessage.row();
        let term = move |weight, arm| Term { weight, cell, arm, baseline: Some("epoll"), row };
        ask(Measured { gate: &gate, first: "epoll" }, &term)
    }

    #[test]
    fn a_sum_within_a_cell_is_found_within_its_rounds() {
        asked(|measured, term| {
            let terms = [term(1.0, "uring"), term(-1.0, "poll")];
            let found = measured.sum(&terms, Summed::OnItsScale, ALPHA).expect("there are rounds");
            assert!((found.mean.exp() - 8.0 / 9.0).abs() < 0.001 && found.units == 8, "{found:?}");
            assert!(found.high - found.low < 0.02, "what the rounds share cancels: {found:?}");
            let opposite = [term(-1.0, "uring"), term(1.0, "poll")];
            let negated = measured.sum(&opposite, Summed::OnItsScale, ALPHA).expect("there are rounds");
            assert_eq!((negated.mean, negated.low), (-found.mean, -found.high));
        });
    }

    #[test]
    fn a_sum_in_the_metrics_unit_is_a_difference_and_a_quotient_is_a_share() {
        asked(|measured, term| {
            let added = |arm| [term(-1.0, arm)];
            let saved = measured.sum(&added("uring"), Summed::InItsUnit, ALPHA).expect("there are rounds");
            assert!((saved.mean - 2.0 * 1.2625).abs() < 0.02, "slow rounds save more: {saved:?}");
            let share = measured.quotient(&added("poll"), &added("uring"), Summed::InItsUnit, ALPHA);
            let share = share.expect("what uring saves is above zero");
            assert!((share.ratio - 0.5).abs() < 0.02 && share.pairs == 8, "{share:?}");
            let negative = measured.quotient(&added("poll"), &[term(1.0, "uring")], Summed::InItsUnit, ALPHA);
            assert_eq!(negative, None);
        });
    }
}
