//! How many pairs a comparison of commands has, and in which order their runs come. Pure.
//!
//! The pilot sees how runs scatter and nothing else. Every slot of a pair is in turn compared with two others, so it
//! does not matter which command is which, and a difference between commands is in no figure. The pilot can therefore
//! not favour a verdict, and its pairs are not part of the result.

use weir_record::{
    commands::{CommandRun, PairPlan, PlanReason, RunPhase},
    metric::Metric,
};
use weir_stats::{
    decide::{UNITS_MIN, expected_detectable},
    random::{Random, derived_seed},
};

use super::Pairs;
use crate::units::Slices;

/// Most pairs of a comparison.
pub const PAIRS_MAX: u32 = 10_000;

/// Fewest pairs that decide anything.
pub const PAIRS_DECIDING_MIN: u32 = UNITS_MIN as u32;

/// Factor on the number of pairs. With this many more pairs than find a difference of the margin in eight of ten
/// comparisons, nine of ten comparisons call equal commands equal: the interval must then fit into the margin around a
/// mean that is not exactly zero.
const PAIRS_FACTOR: f64 = 1.6;

/// What the pilot and the budget allow.
#[derive(Clone, Copy, Debug)]
pub struct Pilot<'a> {
    /// Commands.
    pub commands: usize,
    /// All runs so far.
    pub runs: &'a [CommandRun],
    /// Pairs of the pilot.
    pub pairs: u32,
    /// Units that fit into what is left of the budget. A unit is a pair, unless `unit_pairs` says otherwise.
    pub units_fitting: u32,
    /// Fewest pairs that the user asked for; absent where the user asked for none.
    pub pairs_min: Option<u32>,
    /// Pairs of a unit where each unit starts the servers anew. A pair of the pilot has its own start, so it scatters
    /// as a unit does, or more. `None` where the number of pairs decides.
    pub unit_pairs: Option<u32>,
    /// Share of a difference that matters.
    pub equivalence_margin: f64,
}

/// Fewest pairs by default, where they fit.
const PAIRS_MIN: u32 = 10;

/// Pairs of a round that are enough for a robust value; more of them would only make rounds few.
const UNIT_PAIRS_MAX: u32 = 8;

/// Fewer than these have no middle.
const UNIT_PAIRS_MIN: u32 = 3;

/// Rounds that are kept, so that their scatter is known well.
const ROUNDS_MIN: u32 = 24;

/// Pairs that make a round, given the planned number, which is known before the first of them runs.
pub fn unit_pairs(pairs: u32) -> u32 {
    match pairs / ROUNDS_MIN {
        0..UNIT_PAIRS_MIN => 1,
        several => several.min(UNIT_PAIRS_MAX),
    }
}

/// The round of a pair, given the pairs of a round. Pairs that would make no whole round belong to the last one.
pub(crate) fn round_of(pair: u32, pairs: u32, size: u32) -> u32 {
    let size = size.max(1);
    (pair / size).min((pairs / size).saturating_sub(1))
}

/// Plans the pairs.
pub fn planned(pilot: &Pilot<'_>) -> PairPlan {
    let values = scatter(pilot);
    let detectable = |pairs: u32| expected_detectable(&values, pairs);
    let size = pilot.unit_pairs.unwrap_or(1).max(1);
    let fewest = pilot.pairs_min.map(|pairs| pairs.div_ceil(size));
    let fewest = fewest.unwrap_or_else(|| pilot.units_fitting.clamp(PAIRS_DECIDING_MIN, PAIRS_MIN));
    let most = PAIRS_MAX / size;
    let fewest = fewest.clamp(PAIRS_DECIDING_MIN, most.max(PAIRS_DECIDING_MIN));
    let margin = pilot.equivalence_margin.ln_1p();
    let enough = fewest_that_find(margin, fewest, detectable);
    let wanted = enough.map(|pairs| (f64::from(pairs) * PAIRS_FACTOR).ceil() as u32);
    let (units, reason) = match wanted.filter(|units| *units <= most) {
        Some(units) if units <= pilot.units_fitting => (units, PlanReason::Detectable),
        _ if pilot.units_fitting > most => (most, PlanReason::Most),
        _ => (pilot.units_fitting, PlanReason::Budget),
    };
    let (units, reason) = if units < fewest { (fewest, PlanReason::Fewest) } else { (units, reason) };
    let detectable = detectable(units).map(f64::exp_m1);
    let pairs = units.saturating_mul(size);
    let unit_pairs = pilot.unit_pairs.unwrap_or_else(|| unit_pairs(pairs));
    PairPlan { pairs, pilot_pairs: pilot.pairs, unit_pairs, detectable, reason }
}

/// The fewest pairs, at least the given number, whose detectable effect is at most this; none where
/// [`PAIRS_MAX`] is too few.
fn fewest_that_find(margin: f64, fewest: u32, detectable: impl Fn(u32) -> Option<f64>) -> Option<u32> {
    let finds = |pairs: u32| detectable(pairs).is_some_and(|it| it <= margin);
    if !finds(PAIRS_MAX) {
        return None;
    }
    let (mut low, mut high) = (fewest, PAIRS_MAX);
    while low < high {
        let middle = low.midpoint(high);
        (low, high) = if finds(middle) { (low, middle) } else { (middle + 1, high) };
    }
    Some(low)
}

/// Values of every slot against the two that follow it, cyclically: one set for each slot.
fn scatter(pilot: &Pilot<'_>) -> Vec<Vec<f64>> {
    let pairs = Pairs::in_phase(pilot.commands, pilot.runs, RunPhase::Pilot);
    let (live, row) = (pairs.live(), Metric::CommandCpu.row());
    let slot = |place: usize| live[place % live.len()];
    let of_slot = |place: usize| {
        let runs = pairs.slots([slot(place), slot(place + 1), slot(place + 2)]);
        let value = |runs: [&CommandRun; 3]| {
            let [own, one, other] = runs.map(|run| run.cost.figure(row.metric));
            let mut pair = Slices::default();
            pair.push(row, [own?, one?, other?]);
            pair.effect()
        };
        runs.filter_map(value).collect()
    };
    (0..live.len()).map(of_slot).collect()
}

/// The order of a pair: commands by their place, the baseline twice, of which one is the repeat.
pub fn order(seed: u64, phase: RunPhase, pair: u32, commands: usize) -> Vec<(usize, bool)> {
    let mut order: Vec<(usize, bool)> = (0..commands).map(|command| (command, false)).collect();
    order.push((0, true));
    let of_phase = derived_seed(seed, phase as u64);
    Random::seeded(derived_seed(of_phase, u64::from(pair))).shuffle(&mut order);
    order
}
