//! The history of a question over stored runs: which runs ask the same, what their effects are against one fixed
//! reference, and which of them differ from the run before. Pure.
//!
//! Each run measured its program against its own baseline. Where the baseline is the same program in every run, these
//! effects are against a fixed reference as they are. Where a baseline was the program of an earlier run (the parent
//! commit, say), the effects are multiplied along the way to the reference: logarithms add, and so do the squares of
//! their standard errors, as those of independent runs do; the degrees of freedom of the sum are Satterthwaite's. What
//! moved between the runs is in no interval. If several ways lead to the same program, the one with the narrowest
//! interval counts. A program of unknown content (`contents`) is no link of such a way: another run may have another
//! program.
//!
//! A *stretch* is the runs that have one reference on one kind of machine. A run belongs to the newest stretch of
//! its kind of machine that knows its baseline, and begins another one where there is none. So runs of two machines
//! that take turns make two stretches, and not one for each run. All runs decide what the references are, also those
//! that are not asked for.
//!
//! A run *differs* from the one before it in its stretch, of those that are asked for, where their intervals do not
//! overlap. Effects that both are multiplied from have one error in both, so they are left out of either interval.
//! Where the one before is its own baseline it was measured beside it, and its own interval says whether it differs.

mod contents;
mod entries;

use weir_record::{
    effect::EffectScale,
    history::{
        HISTORY_VERSION, History, HistoryBreak, HistoryChange, HistoryFigure, HistoryLeftOut, HistoryRun,
        HistorySeries, HistoryStretch,
    },
    origin::Origin,
};
use weir_stats::student::quantile;

use crate::pool::is_same_group;
pub use entries::{Entry, is_finished, of_commands, of_study};

/// Most series.
pub const SERIES_MAX: usize = 50;

/// Most runs of a series.
pub const RUNS_MAX: usize = 1_000;

/// Most degrees of freedom that make a difference. The quantile of more of them differs by less than 0.03 %. The time
/// to compute one grows with their number, which a stored file sets.
const DEGREES_MAX: u32 = 10_000;

/// The confidence at which two ways to a program are compared.
const LEVEL: f64 = 0.99;

/// Which runs are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Only this study, or comparisons with a command of this name.
    pub name: Option<String>,
    /// Only runs of this branch.
    pub branch: Option<String>,
    /// Only runs with all these labels.
    pub labels: Vec<(String, String)>,
    /// Newest runs of each series that are given, at most [`RUNS_MAX`].
    pub runs: usize,
}

impl Asked {
    /// Whether a series is asked for: all of its entries have the same names.
    fn has_question(&self, entry: &Entry) -> bool {
        self.name.as_ref().is_none_or(|name| entry.is_named(name))
    }

    fn has_run(&self, run: &HistoryRun) -> bool {
        let Origin { branch, labels, .. } = &run.origin;
        (self.branch.is_none() || self.branch == *branch)
            && self.labels.iter().all(|(key, value)| labels.get(key) == Some(value))
    }
}

/// Puts the entries of all runs into series.
pub fn history(entries: Vec<Entry>, left_out: Vec<HistoryLeftOut>, asked: &Asked) -> History {
    let mut entries: Vec<Entry> = entries.into_iter().filter(|entry| asked.has_question(entry)).collect();
    entries.sort_by(|one, other| one.order().cmp(&other.order()));
    let mut groups: Vec<Vec<Entry>> = Vec::new();
    for entry in entries {
        match groups.iter_mut().find(|group| group[0].asks_the_same(&entry)) {
            Some(group) => group.push(entry),
            None => groups.push(vec![entry]),
        }
    }
    let mut all: Vec<HistorySeries> = groups.into_iter().filter_map(|group| series(group, asked)).collect();
    // The series with the newest run stands first.
    all.sort_by_key(|series| std::cmp::Reverse(series.runs.last().and_then(|run| run.began_unix_s)));
    let more = all.len().saturating_sub(SERIES_MAX);
    all.truncate(SERIES_MAX);
    History {
        schema_version: HISTORY_VERSION,
        series: all,
        series_left_out: u32::try_from(more).unwrap_or(u32::MAX),
        left_out,
        ..History::default()
    }
}

/// One series of entries in order, with those runs that are asked for. All of them decide what its references are. None
/// where no run of it is asked for.
fn series(entries: Vec<Entry>, asked: &Asked) -> Option<HistorySeries> {
    let first = entries.first()?;
    let mut series = HistorySeries {
        of: first.of.clone(),
        arm: first.arm.clone(),
        baseline: first.baseline.clone(),
        metric: first.metric,
        kind: first.kind,
        scale: EffectScale::of(first.metric),
        ..HistorySeries::default()
    };
    let (mut open, mut steps): (Vec<Stretch>, Steps) = (Vec::new(), Steps::default());
    let mut placed: Vec<Placed> = Vec::new();
    for entry in entries {
        let place = open.iter().rposition(|stretch| stretch.takes(&entry)).unwrap_or_else(|| {
            let number = u32::try_from(open.len() + 1).unwrap_or(u32::MAX);
            open.push(Stretch::begin(number, &open, &entry));
            open.len() - 1
        });
        placed.push(open[place].placed(entry, &mut steps, series.scale));
    }
    series.stretches = open.into_iter().map(|stretch| stretch.record).collect();
    placed.retain(|it| asked.has_run(&it.run));
    mark(&mut placed, &series, &steps);
    let older = placed.len().saturating_sub(asked.runs.min(RUNS_MAX));
    series.runs = placed.into_iter().skip(older).map(|it| it.run).collect();
    series.runs_older = u32::try_from(older).unwrap_or(u32::MAX);
    // A stretch of which no run is left says nothing.
    let runs = &series.runs;
    series.stretches.retain(|stretch| runs.iter().any(|run| run.stretch == stretch.number));
    let is_asked_for = !series.runs.is_empty() || older > 0;
    is_asked_for.then_some(series)
}

/// A run in its stretch.
struct Placed {
    run: HistoryRun,
    /// What identifies its baseline.
    baseline: String,
    /// The place of its effect among the steps.
    step: usize,
}

/// Marks each run that differs from the one before it in its stretch.
fn mark(placed: &mut [Placed], series: &HistorySeries, steps: &Steps) {
    for stretch in &series.stretches {
        // A reference of unknown content may be another program in each run.
        if stretch.reference.content.is_empty() {
            continue;
        }
        let has_interval = |it: &Placed| it.run.from_reference.is_some_and(|it| it.interval.is_some());
        let places: Vec<usize> = (0..placed.len())
            .filter(|place| placed[*place].run.stretch == stretch.number && has_interval(&placed[*place]))
            .collect();
        for two in places.windows(2) {
            placed[two[1]].run.change = differs(&placed[two[0]], &placed[two[1]], steps, series.scale);
        }
    }
}

/// Which way a run differs from the one before it.
fn differs(before: &Placed, own: &Placed, steps: &Steps, scale: EffectScale) -> Option<HistoryChange> {
    let nothing = (scale.shown(0.0), scale.shown(0.0));
    if before.run.program.identity == own.baseline {
        return change(own.run.effect.interval?, nothing);
    }
    let [of_own, of_before] = steps.apart(own.step, before.step)?;
    let interval = |sum: Sum, run: &HistoryRun| match sum.links {
        0 => Some(nothing),
        // As it was measured.
        1 => run.effect.interval,
        _ => sum.figure(run.level, scale).interval,
    };
    change(interval(of_own, &own.run)?, interval(of_before, &before.run)?)
}

/// An effect of a run, on the way from the reference to its program.
struct Step {
    own: Option<Sum>,
    /// The step that leads to its baseline; none where that is the reference.
    before: Option<usize>,
    /// The effects along the whole way.
    total: Option<Sum>,
    /// Steps of the whole way.
    links: u32,
}

/// The effects of all runs of a series.
#[derive(Default)]
struct Steps(Vec<Step>);

impl Steps {
    /// Adds the effect of a run whose baseline another step leads to.
    fn add(&mut self, own: Option<Sum>, before: Option<usize>) -> usize {
        let (base, links) = match before {
            Some(place) => (self.0[place].total, self.0[place].links),
            None => (Some(Sum::default()), 0),
        };
        let total = base.zip(own).map(|(base, own)| base.and(own));
        self.0.push(Step { own, before, total, links: links.saturating_add(1) });
        self.0.len() - 1
    }

    /// The effects along two ways without the steps that both have. None where a step has no effect.
    fn apart(&self, one: usize, other: usize) -> Option<[Sum; 2]> {
        let (mut places, mut sums) = ([Some(one), Some(other)], [Sum::default(); 2]);
        while places[0] != places[1] {
            // A step has more links than the one before it, so the longer way is shortened first.
            let [first, second] = places.map(|place| place.map_or(0, |place| self.0[place].links));
            let side = usize::from(second > first);
            let step = &self.0[places[side]?];
            sums[side] = sums[side].and(step.own?);
            places[side] = step.before;
        }
        Some(sums)
    }
}

/// An effect on the scale of the statistics, with what its interval is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sum {
    value: f64,
    variance: f64,
    /// Squares of the variances over their degrees of freedom, added up: what Satterthwaite's rule divides by.
    spread: f64,
    links: u32,
}

impl Sum {
    /// The effect of a run; none where it has no interval that says what its error is.
    fn of(run: &HistoryRun, degrees_of_freedom: u32, scale: EffectScale) -> Option<Self> {
        let (figure, (low, high)) = (run.effect.figure?, run.effect.interval?);
        let on_scale = |value: f64| if scale == EffectScale::Ratio { value.ln() } else { value };
        let half = 0.5 * (on_scale(high) - on_scale(low));
        let degrees = degrees_of_freedom.min(DEGREES_MAX);
        let error = half / quantile(0.5 + 0.5 * run.level, degrees)?;
        let variance = error * error;
        let sum = Self {
            value: on_scale(figure),
            variance,
            spread: variance * variance / f64::from(degrees),
            links: 1,
        };
        [sum.value, sum.variance, sum.spread].iter().all(|it| it.is_finite()).then_some(sum)
    }

    fn and(self, other: Self) -> Self {
        Self {
            value: self.value + other.value,
            variance: self.variance + other.variance,
            spread: self.spread + other.spread,
            links: self.links.saturating_add(other.links),
        }
    }

    /// Half the width of its interval.
    fn half(self, level: f64) -> Option<f64> {
        let degrees =
            if self.spread > 0.0 { (self.variance * self.variance / self.spread).floor() } else { 1.0 };
        let degrees = degrees.clamp(1.0, f64::from(DEGREES_MAX)) as u32;
        quantile(0.5 + 0.5 * level, degrees).map(|t| t * self.variance.sqrt())
    }

    /// The effect as it is shown.
    fn figure(self, level: f64, scale: EffectScale) -> HistoryFigure {
        let shown = |half| (scale.shown(self.value - half), scale.shown(self.value + half));
        HistoryFigure { figure: Some(scale.shown(self.value)), interval: self.half(level).map(shown) }
    }
}

/// A stretch while runs are put into it.
struct Stretch {
    record: HistoryStretch,
    fingerprint: weir_record::machine::Fingerprint,
    /// Programs whose effect against the reference is known, by what identifies them, with the step that leads to each;
    /// none for the reference.
    known: Vec<(String, Option<usize>)>,
}

impl Stretch {
    fn begin(number: u32, before: &[Self], entry: &Entry) -> Self {
        let is_known_machine = || before.iter().any(|it| is_same_group(&it.fingerprint, &entry.fingerprint));
        let break_by = (!before.is_empty())
            .then(|| if is_known_machine() { HistoryBreak::Reference } else { HistoryBreak::Machine });
        Self {
            record: HistoryStretch {
                number,
                break_by,
                reference: entry.reference.clone(),
                cpu_model: entry.fingerprint.cpu_model.clone(),
                cpus_online: entry.fingerprint.cpus_online,
                kernel_release: entry.fingerprint.kernel_release.clone(),
            },
            fingerprint: entry.fingerprint.clone(),
            known: vec![(entry.reference.identity.clone(), None)],
        }
    }

    /// The way to a known program; the inner one is none for the reference.
    fn known(&self, identity: &str) -> Option<Option<usize>> {
        self.known.iter().find(|(own, _)| own == identity).map(|(_, step)| *step)
    }

    /// Whether an effect against the baseline of the entry leads to the reference.
    fn takes(&self, entry: &Entry) -> bool {
        is_same_group(&self.fingerprint, &entry.fingerprint)
            && self.known(&entry.reference.identity).is_some()
    }

    /// The run with its place in the stretch, which knows it from then on.
    fn placed(&mut self, entry: Entry, steps: &mut Steps, scale: EffectScale) -> Placed {
        let mut run = HistoryRun { stretch: self.record.number, ..entry.run };
        let before = self.known(&entry.reference.identity).flatten();
        let step = steps.add(Sum::of(&run, entry.degrees_of_freedom, scale), before);
        let Step { total, links, .. } = steps.0[step];
        run.links = links;
        run.from_reference = match before {
            // As it was measured, also where it has no interval.
            None => run.effect.figure.map(|_| run.effect),
            Some(_) => total.map(|total| total.figure(run.level, scale)),
        };
        let baseline = entry.reference.identity;
        self.learn(&run, &baseline, step, steps);
        Placed { run, baseline, step }
    }

    /// What a run says of its program, where that is known and nothing better was known of it. The reference stays what
    /// everything is against.
    fn learn(&mut self, run: &HistoryRun, baseline: &str, step: usize, steps: &Steps) {
        let program = &run.program;
        let is_reference = program.identity == self.record.reference.identity || program.identity == baseline;
        if is_reference || program.content.is_empty() || steps.0[step].total.is_none() {
            return;
        }
        let half = |step: usize| steps.0[step].total.and_then(|total| total.half(LEVEL));
        match self.known.iter_mut().find(|(own, _)| *own == program.identity) {
            Some((_, Some(known))) => {
                if half(step).zip(half(*known)).is_some_and(|(own, other)| own < other) {
                    *known = step;
                }
            }
            Some((_, None)) => {}
            None => self.known.push((program.identity.clone(), Some(step))),
        }
    }
}

/// Which way an interval differs from another that it does not overlap.
fn change((low, high): (f64, f64), (other_low, other_high): (f64, f64)) -> Option<HistoryChange> {
    if high < other_low {
        Some(HistoryChange::Down)
    } else if low > other_high {
        Some(HistoryChange::Up)
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
