//! The map: joint results of cells that differ only in levels of factors. Pure.
//!
//! Cells are estimates, not claims: cells are called different with a false discovery rate of 5 %, over all arms and
//! cells of a metric, and only if the displayed interval (99 %) also excludes no difference. A level's mean is
//! geometric, over ratios and never over raw figures, and its interval covers the measured cells: it says nothing
//! about others. Where the ratio passes one as connections increase, the crossing lies on the line between two levels
//! on the logarithmic scale, and its interval contains every number of connections at which no difference could be
//! found (Fieller, "Some Problems in Interval Estimation", Journal of the Royal Statistical Society B 16, 1954).
//!
//! If the generator was the limit the arms run at different rates, and CPU per message falls as the rate grows,
//! because each poll finds more messages. Such a cell has a ratio and no direction, unless an equal rate confirms it;
//! it is in no mean and in no crossing, and is counted separately. That is the rule of claims: a map must not suggest
//! what a verdict must not say. Cells with one equal rate each form a separate map.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use weir_record::{
    effect::{Effect, Effects},
    grid::{Crossing, Difference, Grid, GridCell, GridFactor, Marginal},
    metric::{Family, Metric},
    metric_rows::Part,
    spec::{CellSpec, LoadMode, StudySpec},
    verdict::Verdict,
};
use weir_stats::{
    decide::{self, ALPHA, Estimate, UNITS_MIN, estimate},
    false_discovery::benjamini_hochberg,
};

use crate::{
    factors::{FACTORS, level},
    interaction,
    witnesses::{Claim, Witnesses, is_generator_limited},
};

/// False discovery rate among the cells that are called different.
pub const FALSE_SHARE_MAX: f64 = 0.05;

/// The metrics of a map.
const METRICS: [Metric; 2] = [Metric::ServerCpuPerMessage, Metric::Throughput];

/// With fewer cells there is no map.
const CELLS_MIN: usize = 3;

/// Number of points between two levels at which the interval of a crossing is searched.
const STEPS: u32 = 400;

/// Grids of a study, the claim's metric first.
///
/// No difference is called before the schedule is finished: repeated looks find some by chance.
pub(crate) fn all(
    spec: &StudySpec,
    effects: &Effects,
    witnesses: &[Witnesses],
    is_finished: bool,
) -> Vec<Grid> {
    let groups: Vec<Group<'_>> = groups(spec).into_iter().chain(at_equal_rates(spec)).collect();
    let of = |metric: &Metric| of_metric(*metric, spec, &groups, (effects, witnesses), is_finished);
    METRICS.iter().flat_map(of).collect()
}

/// Cells in closed loop that differ only in levels of factors, if there are enough, in the order of the study.
///
/// The turns of a cell's arms are not a level: cells that differ in them share a map, unless some have equal levels,
/// where one would replace the other. The map of a cell follows from its properties and never from its position in
/// the study: cells with equal turns stay together, except that of two cells with the same levels the second by name
/// does not; each such set (the largest first, and of two equally large ones the one with the shorter slices) joins
/// the first map without a cell of equal levels, or becomes a separate map.
pub(crate) fn groups(spec: &StudySpec) -> Vec<Group<'_>> {
    grouped(spec, |cell| cell.load == LoadMode::Closed)
}

/// The same for cells in open loop at one share of the capacity of their slowest arm: the share that most cells have.
/// Other shares are short ladders.
fn at_equal_rates(spec: &StudySpec) -> Vec<Group<'_>> {
    let share = |cell: &CellSpec| match cell.load.without_rate() {
        LoadMode::OpenShare { share, .. } => Some(share),
        _ => None,
    };
    let with = |wanted: f64| spec.cells.iter().filter(|cell| share(cell) == Some(wanted)).count();
    let most = spec.cells.iter().filter_map(share).max_by_key(|share| with(*share));
    most.map_or_else(Vec::new, |most| grouped(spec, |cell| share(cell) == Some(most)))
}

fn grouped(spec: &StudySpec, is_meant: impl Fn(&CellSpec) -> bool) -> Vec<Group<'_>> {
    let place = |cell: &CellSpec| spec.cells.iter().position(|own| own.id == cell.id);
    let mut cells: Vec<&CellSpec> = spec.cells.iter().filter(|cell| is_meant(cell)).collect();
    cells.sort_by_key(|cell| (slice_ns(cell), &cell.id));
    let mut alike: Vec<Group<'_>> = Vec::new();
    for cell in cells {
        let has_room = |set: &Group<'_>| slice_ns(set.cells[0]) == slice_ns(cell) && set.has_room_for(cell);
        match alike.iter_mut().find(|set| has_room(set)) {
            Some(set) => set.cells.push(cell),
            None => alike.push(Group { cells: vec![cell], factors: Vec::new() }),
        }
    }
    alike.sort_by_key(|set| (Reverse(set.cells.len()), slice_ns(set.cells[0])));
    let mut groups: Vec<Group<'_>> = Vec::new();
    for set in alike {
        match groups.iter_mut().find(|group| set.cells.iter().all(|cell| group.has_room_for(cell))) {
            Some(group) => group.cells.extend(set.cells),
            None => groups.push(set),
        }
    }
    for group in &mut groups {
        group.cells.sort_by_key(|cell| place(cell));
        group.find_factors();
    }
    groups.sort_by_key(|group| place(group.cells[0]));
    groups.retain(|group| group.cells.len() >= CELLS_MIN && !group.factors.is_empty());
    groups
}

pub(crate) struct Group<'a> {
    pub(crate) cells: Vec<&'a CellSpec>,
    /// Factors with several levels.
    factors: Vec<GridFactor>,
}

impl Group<'_> {
    /// Whether the cell differs from all of these, and only in levels.
    fn has_room_for(&self, cell: &CellSpec) -> bool {
        let levels = |cell: &CellSpec| FACTORS.map(|factor| level(cell, factor));
        self.cells.iter().all(|own| is_like(own, cell) && levels(own) != levels(cell))
    }

    fn find_factors(&mut self) {
        let varies = |factor: &GridFactor| {
            self.cells.iter().map(|cell| level(cell, *factor)).collect::<BTreeSet<_>>().len() > 1
        };
        self.factors = FACTORS.into_iter().filter(varies).collect();
    }
}

/// The slice length of a cell; whole trials count as longer than any.
fn slice_ns(cell: &CellSpec) -> u64 {
    cell.alternation.map_or(u64::MAX, |it| it.slice_ns)
}

/// Whether two cells are the same except for levels. The slice length is not a level; the distribution of connections
/// over workers is not either, and makes no difference for one worker.
fn is_like(one: &CellSpec, other: &CellSpec) -> bool {
    let bare = |cell: &CellSpec| CellSpec {
        id: String::new(),
        role: one.role,
        connections: 0,
        workers: 0,
        accept: String::new(),
        depth: 0,
        message_bytes: 0,
        server_cpus: Vec::new(),
        load: cell.load.without_rate(),
        blocks: 0,
        is_rung: false,
        window_ns: 0,
        warmup_ns_max: 0,
        alternation: None,
        ..cell.clone()
    };
    let is_spread_alike = one.workers < 2 || other.workers < 2 || one.accept() == other.accept();
    let is_of_sockets = one.storage.is_none() && one.orders.is_none();
    is_of_sockets && is_spread_alike && bare(one) == bare(other)
}

fn of_metric(
    metric: Metric,
    spec: &StudySpec,
    groups: &[Group<'_>],
    (effects, witnesses): (&Effects, &[Witnesses]),
    is_finished: bool,
) -> Vec<Grid> {
    let looked_at =
        |group: &Group<'_>| group.cells.iter().any(|cell| (metric.row().part)(cell) == Part::Claim);
    let of = |group: &Group<'_>, comparison: &&Effect| {
        comparison.metric == metric && group.cells.iter().any(|cell| cell.id == comparison.cell_id)
    };
    let groups: Vec<(u32, &Group<'_>)> = (0..).zip(groups).filter(|(_, group)| looked_at(group)).collect();
    let (own, witnesses): (Vec<&Effect>, Vec<&Witnesses>) = effects
        .comparisons()
        .zip(witnesses)
        .filter(|(it, _)| groups.iter().any(|(_, group)| of(group, it)))
        .unzip();
    let limited: Vec<bool> =
        own.iter().zip(&witnesses).map(|(it, beside)| is_generator_limited(spec, it, beside)).collect();
    let adjusted = adjusted(&own, &limited);
    let mut grids = Vec::new();
    for (map, group) in groups {
        let pairs: BTreeSet<(&str, &str)> =
            own.iter().filter(|it| of(group, it)).map(|it| (it.arm.as_str(), it.baseline.as_str())).collect();
        for (arm, baseline) in pairs {
            let points: Vec<Point<'_>> = group
                .cells
                .iter()
                .filter_map(|cell| {
                    let is_this =
                        |it: &&Effect| it.cell_id == cell.id && it.arm == arm && it.baseline == baseline;
                    let place = own.iter().position(is_this)?;
                    let claimable = match is_finished {
                        false => Claimable::NothingYet,
                        true => claimable(spec, own[place], witnesses[place]),
                    };
                    Some(Point::of(cell, own[place], limited[place], adjusted[place], claimable))
                })
                .collect();
            if points.len() >= CELLS_MIN {
                let found = grid(metric, (arm, baseline), &group.factors, &points);
                // An interaction is not called early either.
                let interactions = if is_finished { found.interactions } else { Vec::new() };
                grids.push(Grid { map, interactions, ..found });
            }
        }
    }
    grids
}

/// How much of a found difference may be called.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Claimable {
    /// Its direction.
    Direction,
    /// Only that it is not confirmed.
    Doubt,
    /// Not even its existence: the claim of the cell is undecided.
    Nothing,
    /// Not even its absence: the schedule is unfinished.
    NothingYet,
}

/// A difference is called if a claim of it would stand: checked against the CPU of both sides, against CPU including
/// waiting, and against equal rates if there are any. For a cell with a claim, the judge has already checked it.
fn claimable(spec: &StudySpec, comparison: &Effect, witnesses: &Witnesses) -> Claimable {
    let p_value = comparison.p_value_holm.or(comparison.p_value);
    if !comparison.reasons.is_empty() {
        return if p_value.is_some_and(|p_value| p_value <= ALPHA) {
            Claimable::Doubt
        } else {
            Claimable::Nothing
        };
    }
    if comparison.metric != Metric::ServerCpuPerMessage {
        return Claimable::Direction;
    }
    let claim = Claim::of(comparison, spec.equivalence_margin);
    let held = witnesses.held(&claim);
    if held.iter().all(|(_, verdict)| verdict.is_none()) { Claimable::Direction } else { Claimable::Doubt }
}

/// Corrected p-values of the cells that may be called; `None` for others, and for too few units.
fn adjusted(own: &[&Effect], limited: &[bool]) -> Vec<Option<f64>> {
    let valid: Vec<(usize, f64)> = own
        .iter()
        .enumerate()
        .filter(|(place, it)| it.verdict != Verdict::NotComparable && !limited[*place])
        .filter(|(_, it)| it.values.len() >= UNITS_MIN)
        .filter_map(|(place, it)| Some((place, it.p_value?)))
        .collect();
    let values: Vec<f64> = valid.iter().map(|(_, p_value)| *p_value).collect();
    let corrected = benjamini_hochberg(&values).unwrap_or_default();
    let mut all = vec![None; own.len()];
    for ((place, _), corrected) in valid.into_iter().zip(corrected) {
        all[place] = Some(corrected);
    }
    all
}

/// A cell with its result.
struct Point<'a> {
    cell: &'a CellSpec,
    comparison: &'a Effect,
    /// `None` if the cell is not comparable.
    effect: Option<Estimate>,
    /// The generator was the limit: the effect is displayed, and not used further.
    is_limited: bool,
    p_value_adjusted: Option<f64>,
    claimable: Claimable,
}

impl<'a> Point<'a> {
    fn of(
        cell: &'a CellSpec,
        comparison: &'a Effect,
        is_limited: bool,
        p_value_adjusted: Option<f64>,
        claimable: Claimable,
    ) -> Self {
        // A rate limited by the generator is a lower bound, and two bounds have no ratio.
        let is_shown = match comparison.metric.row().family {
            Family::Rate => p_value_adjusted.is_some(),
            _ => is_limited || p_value_adjusted.is_some(),
        };
        let effect = estimate(&comparison.values).filter(|_| is_shown);
        Self { cell, comparison, effect, is_limited, p_value_adjusted, claimable }
    }

    /// Whether means and crossings may use it.
    fn is_sound(&self) -> bool {
        self.effect.is_some() && !self.is_limited
    }

    /// Whether the displayed interval includes no difference: "more" must not be displayed next to [0.999, 1.051].
    fn may_be_none(&self) -> bool {
        self.comparison.interval.is_some_and(|(low, high)| low <= 1.0 && high >= 1.0)
    }

    /// The map's result for the cell: its own verdict, if it has a decided claim, and otherwise the map's rule. Rows
    /// of cells without a claim use the same result, so that map, rows and counts have one source.
    fn difference(&self) -> Difference {
        match (&self.effect, self.p_value_adjusted) {
            _ if self.is_limited => Difference::GeneratorLimited,
            (None, _) | (_, None) => Difference::Invalid,
            _ if self.claimable == Claimable::NothingYet => Difference::Unfinished,
            (Some(effect), Some(p_value)) => match self.comparison.verdict {
                Verdict::Better | Verdict::Worse => direction(effect.mean),
                Verdict::Equivalent => Difference::Equivalent,
                Verdict::NoClaim | Verdict::Inconclusive | Verdict::NotComparable => {
                    self.by_rule(effect, p_value)
                }
            },
        }
    }

    /// The map's own rule: a false discovery rate over the map, and an interval that excludes no difference.
    fn by_rule(&self, effect: &Estimate, p_value: f64) -> Difference {
        match self.claimable {
            _ if p_value > FALSE_SHARE_MAX || self.may_be_none() => Difference::Undetected,
            Claimable::Direction => direction(effect.mean),
            Claimable::Doubt => Difference::NotBorneOut,
            Claimable::Nothing | Claimable::NothingYet => Difference::Undetected,
        }
    }
}

pub(crate) fn direction(log_ratio: f64) -> Difference {
    if log_ratio < 0.0 { Difference::Less } else { Difference::More }
}

fn grid(metric: Metric, (arm, baseline): (&str, &str), factors: &[GridFactor], points: &[Point<'_>]) -> Grid {
    let cell = |point: &Point<'_>| GridCell {
        cell_id: point.cell.id.clone(),
        levels: factors.iter().map(|factor| level(point.cell, *factor)).collect(),
        ratio: point.effect.as_ref().map(|effect| effect.mean.exp()),
        interval: point.comparison.interval.filter(|_| point.effect.is_some()),
        p_value_adjusted: point.p_value_adjusted,
        difference: point.difference(),
    };
    Grid {
        map: 0,
        arm: arm.to_owned(),
        baseline: baseline.to_owned(),
        metric,
        factors: factors.to_vec(),
        cells: points.iter().map(cell).collect(),
        marginals: factors.iter().flat_map(|factor| marginals(*factor, points)).collect(),
        interactions: interaction::all(factors, &sound(points)),
        crossings: crossings(points),
        cells_left_out: limited(points.iter()),
    }
}

/// One for each level of a factor. Levels are only compared if all of them have the same cells.
fn marginals(factor: GridFactor, points: &[Point<'_>]) -> Vec<Marginal> {
    let others = |cell: &CellSpec| -> Vec<u64> {
        FACTORS.into_iter().filter(|it| *it != factor).map(|it| level(cell, it)).collect()
    };
    // Cells with fewer CPUs only count for the factor of CPUs.
    let most_cpus = points.iter().map(|point| level(point.cell, GridFactor::ServerCpus)).max();
    let is_meant = |point: &&Point<'_>| {
        factor == GridFactor::ServerCpus || Some(level(point.cell, GridFactor::ServerCpus)) == most_cpus
    };
    let mut levels: BTreeMap<u64, BTreeMap<Vec<u64>, &Point<'_>>> = BTreeMap::new();
    for point in points.iter().filter(|point| point.is_sound()).filter(is_meant) {
        levels.entry(level(point.cell, factor)).or_default().insert(others(point.cell), point);
    }
    let left_out = |own: u64| limited(points.iter().filter(|point| level(point.cell, factor) == own));
    let shared: BTreeSet<Vec<u64>> = levels
        .values()
        .map(|cells| cells.keys().cloned().collect::<BTreeSet<_>>())
        .reduce(|one, other| one.intersection(&other).cloned().collect())
        .unwrap_or_default();
    let one = |(level, cells): (&u64, &BTreeMap<Vec<u64>, &Point<'_>>)| {
        let own: Vec<&Point<'_>> =
            cells.iter().filter(|(rest, _)| shared.contains(*rest)).map(|(_, point)| *point).collect();
        let effects: Vec<Estimate> = own.iter().filter_map(|point| point.effect).collect();
        let (ratio, interval) = mean_of(&effects)?;
        let reversed = |point: &&&Point<'_>| {
            let known = interval.filter(|(low, high)| *low > 1.0 || *high < 1.0);
            known.is_some() && is_opposite(point.difference(), direction(ratio.ln()))
        };
        Some(Marginal {
            factor,
            level: *level,
            ratio,
            interval,
            cells: u32::try_from(own.len()).unwrap_or(u32::MAX),
            cells_left_out: left_out(*level),
            reversed: own.iter().filter(reversed).map(|point| point.cell.id.clone()).collect(),
        })
    };
    if levels.len() < 2 { Vec::new() } else { levels.iter().filter_map(one).collect() }
}

/// Cells with usable effects.
fn sound<'a>(points: &[Point<'a>]) -> Vec<(&'a CellSpec, Estimate)> {
    points.iter().filter(|it| it.is_sound()).filter_map(|it| Some((it.cell, it.effect?))).collect()
}

/// Number of these that the generator limited.
fn limited<'p>(points: impl Iterator<Item = &'p Point<'p>>) -> u32 {
    u32::try_from(points.filter(|point| point.is_limited).count()).unwrap_or(u32::MAX)
}

pub(crate) fn is_opposite(one: Difference, other: Difference) -> bool {
    matches!((one, other), (Difference::Less, Difference::More) | (Difference::More, Difference::Less))
}

/// The geometric mean of the cells' ratios and its interval; `None` without cells.
pub(crate) fn mean_of(effects: &[Estimate]) -> Option<(f64, Option<(f64, f64)>)> {
    let mean = decide::mean_of(effects)?;
    Some((mean.mean.exp(), Some((mean.low.exp(), mean.high.exp()))))
}

/// One for each line of increasing connections on which the known differences change their direction once.
fn crossings(points: &[Point<'_>]) -> Vec<Crossing> {
    let mut lines: BTreeMap<(u32, u32, u32, usize), Vec<&Point<'_>>> = BTreeMap::new();
    for point in points {
        let CellSpec { workers, depth, message_bytes, .. } = *point.cell;
        let server_cpus = point.cell.server_cpus.len();
        lines.entry((workers, depth, message_bytes, server_cpus)).or_default().push(point);
    }
    let mut found = Vec::new();
    for line in lines.into_values() {
        let mut sound: Vec<&Point<'_>> = line.iter().copied().filter(|point| point.is_sound()).collect();
        sound.sort_by_key(|point| point.cell.connections);
        let cells_left_out = limited(line.into_iter());
        found.extend(crossing(&sound).map(|crossing| Crossing { cells_left_out, ..crossing }));
    }
    found
}

fn crossing(line: &[&Point<'_>]) -> Option<Crossing> {
    let differences = line.iter().map(|point| point.difference()).enumerate();
    let known: Vec<(usize, Difference)> =
        differences.filter(|(_, it)| matches!(it, Difference::Less | Difference::More)).collect();
    let mut turns = known.windows(2).filter(|two| is_opposite(two[0].1, two[1].1));
    let (Some([(near, _), (far, beyond)]), None) = (turns.next(), turns.next()) else { return None };
    crossing_between(&line.first()?.cell.id, &line[*near..=*far], *beyond)
}

/// The crossing between two cells that are known to differ, in opposite directions. Cells before or after them may
/// have either sign by chance.
fn crossing_between(cell_id: &str, line: &[&Point<'_>], beyond: Difference) -> Option<Crossing> {
    let sign = if beyond == Difference::Less { -1.0 } else { 1.0 };
    // Towards the far side the sign changes from negative to positive.
    let at = |x: f64| band(line, x).map(|(mean, error, degrees)| (sign * mean, error, degrees));
    let ends =
        (f64::from(line.first()?.cell.connections).ln(), f64::from(line.last()?.cell.connections).ln());
    let steps = STEPS * u32::try_from(line.len() - 1).ok()?;
    let place = |step: u32| ends.0 + (ends.1 - ends.0) * f64::from(step) / f64::from(steps);
    let is_decided = |step: u32, side: f64| {
        at(place(step)).is_some_and(|(mean, error, degrees)| {
            decide::reach(degrees).is_some_and(|reach| side * mean > reach * error)
        })
    };
    let middle = (0..steps).find(|step| {
        let (here, next) = (at(place(*step)), at(place(step + 1)));
        matches!((here, next), (Some(here), Some(next)) if here.0 <= 0.0 && next.0 > 0.0)
    })?;
    let low = (0..=middle).rev().find(|step| is_decided(*step, -1.0));
    let high = (middle + 1..=steps).find(|step| is_decided(*step, 1.0));
    Some(Crossing {
        cell_id: cell_id.to_owned(),
        connections: place(middle).exp(),
        low: low.map(|step| place(step).exp()),
        high: high.map(|step| place(step).exp()),
        beyond,
        cells_left_out: 0,
    })
}

/// Mean log-ratio, its standard error and degrees of freedom at a point between two levels.
fn band(line: &[&Point<'_>], x: f64) -> Option<(f64, f64, u32)> {
    let place = |point: &Point<'_>| f64::from(point.cell.connections).ln();
    let pair = line.windows(2).find(|two| x <= place(two[1]) + 1e-9)?;
    let (one, other) = (pair[0].effect.as_ref()?, pair[1].effect.as_ref()?);
    let share = ((x - place(pair[0])) / (place(pair[1]) - place(pair[0]))).clamp(0.0, 1.0);
    let variance = one.part(1.0 - share).variance + other.part(share).variance;
    let degrees = one.degrees_of_freedom.min(other.degrees_of_freedom);
    Some(((1.0 - share) * one.mean + share * other.mean, variance.sqrt(), degrees))
}
