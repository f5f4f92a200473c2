//! Witnesses: figures that could contradict a verdict on server CPU, and their effect on the verdict. Pure.
//!
//! Server CPU per message is not the full cost of a message. On loopback the sender of a packet runs the receiver's
//! network stack, so a server does some of the generator's work and the generator some of the server's: the CPU of both
//! sides (server, generator and softirq threads) must not go the other way. In a closed loop each arm receives as
//! much load as it can take: a server with less load finds less work at each poll, and pays more per message. So both
//! arms are also compared at one rate that both are offered and keep.
//!
//! The two operating points need not have the same ratio or direction: an arm may be cheaper at one and equal at the
//! other. The second must not show the opposite, and this must be known: a test of non-inferiority, in which an
//! interval that is too wide supports nothing. Few units therefore never help a claim.
//!
//! If the generator was not the limit a claim needs no such rate: a measured one can only contradict it. All other
//! witnesses must be from the machine state of the claim.
//!
//! Equivalence needs the whole interval of the CPU of both sides inside the margin. Servers with the same cost per
//! message that were the limit themselves had the same load, so that an equal rate can only show the opposite; if the
//! generator was the limit, its interval must also lie inside the margin.
//!
//! A claim about an offered rate is based on the slices that kept it. An arm that is disturbed misses more of them,
//! and only its good slices remain; so the estimate with all slices, at the rates they achieved, must confirm the
//! claim.
//!
//! A server's activity while others have their turn costs nothing in its own slices. So its CPU including an equally
//! long wait must not go the other way either.

use weir_record::{
    effect::Effect,
    finding::{Finding, Witness, WitnessBearing, WitnessFigure},
    goal::{Goal, Outcome},
    metric::Family,
    spec::{CellSpec, LoadMode, StudySpec},
    verdict::Verdict,
};
use weir_stats::decide::{Bearing, Estimate, UNITS_MIN, bearing};

/// A statement about server CPU, to be checked against other figures.
pub(crate) struct Claim {
    /// Log-ratio of the claim; zero for equivalence.
    log: f64,
    /// Logarithm of the claim's ratio: zero for a verdict, which is about the baseline.
    bound: f64,
    margin: f64,
    /// Whether the generator was the limit for a side.
    is_bound: bool,
}

/// The effect of a witness.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Seen {
    /// A known effect, in the machine state of the claim.
    Known(Estimate),
    /// It is not valid or was not measured.
    Invalid,
    /// It was measured in the machine's other state only.
    OtherState,
}

/// Server CPU of the arm relative to the baseline at one rate that both were offered.
#[derive(Debug)]
pub(crate) struct AtRate {
    pub(crate) per_second: f64,
    /// The number of the cell's rounds or blocks.
    pub(crate) rounds: u32,
    pub(crate) effect: Seen,
}

/// The witnesses of a statement about server CPU.
#[derive(Debug, Default)]
pub(crate) struct Witnesses {
    /// CPU of both sides and softirqs, if the cell has it.
    pub(crate) machine: Option<Seen>,
    /// Including waiting; older stores lack it.
    pub(crate) waiting: Option<Estimate>,
    /// At achieved rates, if slices missed the offered one and are not in the claim.
    pub(crate) achieved: Option<Estimate>,
    /// Why there is no decision at the offered rate.
    pub(crate) rate_missed: Option<Finding>,
    /// Equal rates, for a closed loop.
    pub(crate) rates: Vec<AtRate>,
    /// Whether the generator was the limit for a side, so that an equal rate must have been measured.
    pub(crate) is_bound: bool,
}

impl Witnesses {
    /// The result of each witness.
    pub(crate) fn held(&self, claim: &Claim) -> Vec<Held> {
        let most_rounds = most_rounds(&self.rates);
        let needs_rate = self.is_bound && self.rates.is_empty();
        let machine = self.machine.iter().map(|it| claim.held_against(Witness::MachineCpu, it));
        let waiting = self.waiting.iter();
        let waiting = waiting.map(|it| claim.held_against(Witness::WaitingCpu, &Seen::Known(*it)));
        let achieved = self.achieved.iter();
        let achieved = achieved.map(|it| claim.held_against(Witness::AchievedRates, &Seen::Known(*it)));
        let rates = self.rates.iter().filter_map(|rate| claim.held_at(rate, most_rounds));
        let missed = self.rate_missed.iter().map(|it| (it.clone(), Some(Verdict::Inconclusive)));
        machine
            .chain(waiting)
            .chain(achieved)
            .chain(missed)
            .chain(rates)
            .chain(needs_rate.then(without_rate))
            .collect()
    }

    /// Whether both arms were measured at equal rates, and none of them contradicts the claim.
    pub(crate) fn rates_bear_out(&self, claim: &Claim) -> bool {
        let most_rounds = most_rounds(&self.rates);
        let mut held = self.rates.iter().filter_map(|rate| claim.held_at(rate, most_rounds));
        !self.rates.is_empty() && held.all(|(_, verdict)| verdict.is_none())
    }
}

/// The result of one witness, and the verdict that replaces the claimed one; `None` if the claim stands.
pub(crate) type Held = (Finding, Option<Verdict>);

/// The remaining verdict of a claim: the most severe of the witnesses' results, in any order.
pub(crate) fn verdict_left(claimed: Verdict, held: &[Held]) -> Verdict {
    let severity = |verdict: &Verdict| match verdict {
        Verdict::NotComparable => 2,
        Verdict::Inconclusive => 1,
        Verdict::Better | Verdict::Worse | Verdict::Equivalent | Verdict::NoClaim => 0,
    };
    held.iter().filter_map(|(_, verdict)| *verdict).max_by_key(severity).unwrap_or(claimed)
}

impl Claim {
    /// A decided comparison. The margin is a share: 0.01 for 1 %.
    pub(crate) fn of(comparison: &Effect, margin: f64) -> Self {
        let log = match comparison.verdict {
            Verdict::Equivalent => 0.0,
            _ => comparison.estimate.map_or(0.0, f64::ln),
        };
        let found = || comparison.reasons.iter().chain(&comparison.notes);
        Self { log, bound: 0.0, margin: margin.ln_1p(), is_bound: found().any(is_bound) }
    }

    /// An effect as a statement: equality if its interval lies inside the margin, otherwise the side on which it
    /// lies.
    pub(crate) fn of_effect(effect: &Estimate, margin: f64, witnesses: &Witnesses) -> Self {
        let margin = margin.ln_1p();
        let is_same = -margin < effect.low && effect.high < margin;
        let log = if is_same { 0.0 } else { effect.mean };
        Self { log, bound: 0.0, margin, is_bound: witnesses.is_bound }
    }

    /// The outcome of a threshold: the ratio is below its bound, or above it. `None` without an outcome.
    pub(crate) fn of_threshold(
        goal: Goal,
        outcome: Outcome,
        margin: f64,
        witnesses: &Witnesses,
    ) -> Option<Self> {
        let (bound, is_below) = match (goal, outcome) {
            (Goal::AtMost(bound), Outcome::Met) | (Goal::AtLeast(bound), Outcome::Missed) => (bound, true),
            (Goal::AtMost(bound), Outcome::Missed) | (Goal::AtLeast(bound), Outcome::Met) => (bound, false),
            _ => return None,
        };
        let log = if is_below { -1.0 } else { 1.0 };
        let bound = (bound > 0.0).then(|| bound.ln())?;
        Some(Self { log, bound, margin: margin.ln_1p(), is_bound: witnesses.is_bound })
    }

    /// Checks the claim against both arms at one equal rate. If there are several rates, those with most rounds must
    /// confirm the claim; the others serve latency, and their few rounds are no reason to doubt it: they can only
    /// contradict. If the generator was not the limit, every rate can only contradict, because such a claim needs no
    /// equal rate.
    pub(crate) fn held_at(&self, rate: &AtRate, most_rounds: u32) -> Option<Held> {
        let witness = Witness::EqualRate { per_second: rate.per_second };
        let held = self.held_against(witness, &rate.effect);
        let contradicts = matches!(held.0, Finding::Witness { bearing: WitnessBearing::Contradicts, .. });
        if !self.is_bound && !contradicts {
            return matches!(rate.effect, Seen::Known(_)).then_some((held.0, None));
        }
        (rate.rounds >= most_rounds || contradicts || held.1.is_none()).then_some(held)
    }

    /// Checks the claim against another figure.
    pub(crate) fn held_against(&self, witness: Witness, other: &Seen) -> Held {
        let other = match other {
            Seen::Known(other) => other,
            Seen::Invalid => return (Finding::NoWitness { witness }, Some(Verdict::NotComparable)),
            Seen::OtherState => {
                return (Finding::WitnessOtherState { witness }, Some(Verdict::NotComparable));
            }
        };
        let seen = WitnessFigure {
            ratio: other.mean.exp(),
            interval: (other.low.exp(), other.high.exp()),
            units: u64::try_from(other.units).unwrap_or(u64::MAX),
        };
        let from_bound = Estimate {
            mean: other.mean - self.bound,
            low: other.low - self.bound,
            high: other.high - self.bound,
            ..*other
        };
        let (bearing, verdict) = match bearing(self.log, &from_bound, self.margin) {
            Bearing::Supports if other.units >= UNITS_MIN => (WitnessBearing::Supports, None),
            Bearing::Supports | Bearing::Uncertain => {
                (WitnessBearing::Uncertain, Some(Verdict::Inconclusive))
            }
            Bearing::Contradicts => (WitnessBearing::Contradicts, Some(Verdict::NotComparable)),
        };
        (Finding::Witness { witness, seen, bearing }, verdict)
    }
}

/// Whether a finding says that the generator was the limit for a side.
fn is_bound(found: &Finding) -> bool {
    matches!(found, Finding::LowerBound { .. })
}

/// The generator was the limit, and no equal rate was measured.
fn without_rate() -> Held {
    (Finding::NoEqualRate, Some(Verdict::NotComparable))
}

/// Rate of an open-loop cell with the same shape.
pub(crate) fn equal_rate_of(other: &CellSpec, shape: &CellSpec) -> Option<f64> {
    let LoadMode::Open { rate_per_second, .. } = other.load else { return None };
    is_same_shape(other, shape).then_some(rate_per_second)
}

/// Whether two cells have the same levels, whatever their load.
pub fn is_same_shape(one: &CellSpec, other: &CellSpec) -> bool {
    let levels = |cell: &CellSpec| {
        let servers = (cell.connections, cell.depth, cell.message_bytes, cell.workers, cell.idle_connections);
        let cpus = (cell.server_cpus.clone(), cell.load_cpus.clone());
        let sockets = (cell.accept().to_owned(), cell.congestion_control.clone());
        (servers, sockets, cell.close, cell.load_workers, cpus)
    };
    let asked = |cell: &CellSpec| {
        let http = cell.http.clone().map(|http| (http.content, http.close));
        let orders = cell.orders.clone().map(|orders| (orders.driver, orders.in_flight_total));
        (http, cell.storage.clone(), orders, cell.neighbours.clone())
    };
    levels(one) == levels(other) && asked(one) == asked(other)
}

/// Whether a closed-loop comparison was only measured at rates set by the generator: it was the limit for a side,
/// nothing else bars the comparison, and no equal rate confirms the difference. This is the rule of claims, for cells
/// without claims.
pub(crate) fn is_generator_limited(spec: &StudySpec, comparison: &Effect, witnesses: &Witnesses) -> bool {
    let is_of_rates = |found: &Finding| match found {
        Finding::Witness { witness, .. }
        | Finding::NoWitness { witness }
        | Finding::WitnessOtherState { witness } => {
            matches!(witness, Witness::EqualRate { .. })
        }
        _ => is_bound(found) || *found == Finding::NoEqualRate,
    };
    let is_barred =
        comparison.verdict == Verdict::NotComparable && !comparison.reasons.iter().all(is_of_rates);
    comparison.reasons.iter().chain(&comparison.notes).any(is_bound)
        && !is_barred
        && (comparison.metric.row().family == Family::Rate || {
            let claim = Claim::of(comparison, spec.equivalence_margin);
            !witnesses.rates_bear_out(&claim)
        })
}

/// The number of rounds of the rates that must confirm a claim.
fn most_rounds(rates: &[AtRate]) -> u32 {
    rates.iter().map(|rate| rate.rounds).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(low: f64, high: f64, units: usize) -> Estimate {
        let (low, high) = (low.ln(), high.ln());
        Estimate { mean: 0.5 * (low + high), low, high, units, ..Estimate::default() }
    }

    fn outcome(claimed: f64, other: Option<Estimate>) -> (Option<Verdict>, Finding) {
        let claim = Claim { log: claimed.ln(), bound: 0.0, margin: 1.01_f64.ln(), is_bound: false };
        let (found, verdict) = claim.held_against(Witness::MachineCpu, &seen(other));
        (verdict, found)
    }

    fn seen(effect: Option<Estimate>) -> Seen {
        effect.map_or(Seen::Invalid, Seen::Known)
    }

    #[test]
    fn a_figure_that_is_known_not_to_go_the_other_way_lets_the_verdict_stand() {
        let (verdict, found) = outcome(0.95, Some(estimate(0.94, 1.005, 12)));
        assert_eq!(verdict, None);
        let Finding::Witness { seen, bearing, .. } = found else { panic!("{found:?}") };
        assert_eq!((seen.units, bearing), (12, WitnessBearing::Supports));
        assert!((seen.ratio - 0.972).abs() < 1e-3, "{seen:?}");
        assert_eq!(outcome(1.05, Some(estimate(0.995, 1.2, 12))).0, None);
        assert_eq!(outcome(1.0, Some(estimate(0.992, 1.008, 12))).0, None);
    }

    #[test]
    fn a_wide_interval_bears_nothing_out_and_neither_do_few_units() {
        let wide = Some(estimate(0.90, 1.05, 12));
        assert_eq!(outcome(0.95, wide).0, Some(Verdict::Inconclusive));
        let few = Some(estimate(0.94, 1.005, 4));
        assert_eq!(outcome(0.95, few).0, Some(Verdict::Inconclusive));
        for machine in [estimate(0.7, 1.4, 44), estimate(0.98, 1.02, 44), estimate(0.999, 1.015, 44)] {
            assert_eq!(outcome(1.0, Some(machine)).0, Some(Verdict::Inconclusive), "{machine:?}");
        }
    }

    #[test]
    fn an_equal_rate_must_bear_equivalence_out_where_the_generator_was_the_limit() {
        let held = |is_bound: bool, effect: Option<Estimate>| {
            let claim = Claim { log: 0.0, bound: 0.0, margin: 1.01_f64.ln(), is_bound };
            claim
                .held_at(&AtRate { per_second: 1e5, rounds: 66, effect: seen(effect) }, 66)
                .and_then(|(_, verdict)| verdict)
        };
        let (wide, apart) = (Some(estimate(0.9, 1.2, 66)), Some(estimate(1.02, 1.05, 66)));
        assert_eq!(held(true, wide), Some(Verdict::Inconclusive));
        assert_eq!(held(true, Some(estimate(0.995, 1.005, 66))), None);
        assert_eq!(held(false, wide), None);
        assert_eq!(held(false, apart), Some(Verdict::NotComparable));
    }

    #[test]
    fn rates_with_few_rounds_may_contradict_and_not_leave_open_what_the_others_bear_out() {
        let claim = Claim { log: 0.95_f64.ln(), bound: 0.0, margin: 1.01_f64.ln(), is_bound: true };
        let held = |rounds: u32, effect: Option<Estimate>| {
            let rate = AtRate { per_second: 1e5, rounds, effect: seen(effect) };
            claim.held_at(&rate, 66).map(|(_, verdict)| verdict)
        };
        let wide = Some(estimate(0.90, 1.05, 14));
        assert_eq!(held(14, wide), None);
        assert_eq!(held(14, None), None, "an arm may not keep that rate");
        assert_eq!(held(14, Some(estimate(0.94, 0.96, 14))), Some(None));
        assert_eq!(held(14, Some(estimate(1.02, 1.05, 14))), Some(Some(Verdict::NotComparable)));
        assert_eq!(held(66, wide), Some(Some(Verdict::Inconclusive)));
        assert_eq!(held(66, None), Some(Some(Verdict::NotComparable)));
    }

    #[test]
    fn what_a_threshold_came_to_is_held_against_figures_on_its_side_of_the_bound() {
        let held = |outcome: Outcome, effect: Estimate| {
            let rates = vec![AtRate { per_second: 1e5, rounds: 12, effect: Seen::Known(effect) }];
            let witnesses = Witnesses { rates, is_bound: true, ..Witnesses::default() };
            let claim =
                Claim::of_threshold(Goal::AtMost(1.03), outcome, 0.02, &witnesses).expect("there is one");
            let held = witnesses.held(&claim);
            assert_eq!(held.len(), 1);
            held[0].1
        };
        // Wider than equivalence allows, but below the bound.
        assert_eq!(held(Outcome::Met, estimate(0.978, 1.008, 12)), None);
        assert_eq!(held(Outcome::Met, estimate(0.95, 1.09, 12)), Some(Verdict::Inconclusive));
        assert_eq!(held(Outcome::Met, estimate(1.06, 1.09, 12)), Some(Verdict::NotComparable));
        assert_eq!(held(Outcome::Missed, estimate(1.02, 1.09, 12)), None);
        assert_eq!(held(Outcome::Missed, estimate(0.97, 1.09, 12)), Some(Verdict::Inconclusive));
        assert_eq!(held(Outcome::Missed, estimate(0.97, 1.0, 12)), Some(Verdict::NotComparable));
        let none = Witnesses { is_bound: true, ..Witnesses::default() };
        assert!(Claim::of_threshold(Goal::AtMost(1.03), Outcome::Open, 0.02, &none).is_none());
        let claim =
            Claim::of_threshold(Goal::AtLeast(0.97), Outcome::Met, 0.02, &none).expect("there is one");
        assert_eq!(none.held(&claim), [without_rate()]);
    }

    #[test]
    fn a_claim_that_needs_no_equal_rate_is_only_contradicted_by_one() {
        let claim = Claim { log: 0.95_f64.ln(), bound: 0.0, margin: 1.01_f64.ln(), is_bound: false };
        let held = |effect: Seen| {
            let rates = vec![AtRate { per_second: 1e5, rounds: 6, effect }];
            let held = Witnesses { rates, ..Witnesses::default() }.held(&claim);
            (held.len(), verdict_left(Verdict::Better, &held))
        };
        assert_eq!(held(Seen::Invalid), (0, Verdict::Better), "no rate was kept, and none is needed");
        assert_eq!(held(Seen::OtherState), (0, Verdict::Better));
        assert_eq!(held(Seen::Known(estimate(0.9, 1.2, 6))), (1, Verdict::Better));
        assert_eq!(held(Seen::Known(estimate(1.02, 1.05, 6))), (1, Verdict::NotComparable));
    }

    #[test]
    fn a_witness_of_the_other_state_is_none_and_says_so() {
        let claim = Claim { log: 0.95_f64.ln(), bound: 0.0, margin: 1.01_f64.ln(), is_bound: true };
        let rate = AtRate { per_second: 1e5, rounds: 6, effect: Seen::OtherState };
        let witness = Witness::EqualRate { per_second: 1e5 };
        let expected = (Finding::WitnessOtherState { witness }, Some(Verdict::NotComparable));
        assert_eq!(claim.held_at(&rate, 6), Some(expected));
    }

    #[test]
    fn the_most_severe_witness_decides_in_every_order() {
        let claim = Claim { log: 0.95_f64.ln(), bound: 0.0, margin: 1.01_f64.ln(), is_bound: true };
        let effects = [estimate(0.94, 0.96, 12), estimate(1.02, 1.05, 12), estimate(0.9, 1.05, 12)];
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let of = |chosen: &[usize]| {
                let rate = |index: &usize| AtRate {
                    per_second: 1e5,
                    rounds: 12,
                    effect: Seen::Known(effects[*index]),
                };
                let rates = chosen.iter().map(rate).collect();
                let held = Witnesses { rates, is_bound: true, ..Witnesses::default() }.held(&claim);
                verdict_left(Verdict::Better, &held)
            };
            assert_eq!(of(&order), Verdict::NotComparable, "{order:?}");
            let without: Vec<usize> = order.into_iter().filter(|index| *index != 1).collect();
            assert_eq!(of(&without), Verdict::Inconclusive, "{without:?}");
            assert_eq!(of(&[0]), Verdict::Better);
        }
    }

    #[test]
    fn the_opposite_and_nothing_at_all_take_the_verdict_away() {
        let opposite = Some(estimate(1.02, 1.05, 12));
        assert_eq!(outcome(0.95, opposite).0, Some(Verdict::NotComparable));
        assert_eq!(outcome(1.0, opposite).0, Some(Verdict::NotComparable));
        assert_eq!(outcome(0.95, None).0, Some(Verdict::NotComparable));
        assert_eq!(without_rate().1, Some(Verdict::NotComparable));
    }
}
