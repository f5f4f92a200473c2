//! The history of a question over stored runs: which runs ask the same, what their effects are against one fixed
//! reference, and which of them differ from the run before. Pure.
//!
//! Each run measured its program against its own baseline. Where the baseline is the same program in every run, these
//! effects are against a fixed reference as they are. Where a baseline was the program of an earlier run (the parent
//! commit, say), the effects are multiplied along the way to the reference: logarithms add, and so do the squares of
//! their standard errors, as those of independent runs do; the degrees of freedom of the sum are Satterthwaite's. What
//! moved between the runs is in no interval.
//!
//! A *stretch* is the runs that have one reference on one kind of machine. A run belongs to the newest stretch of
//! its kind of machine that knows its baseline, and begins another one where there is none. So runs of two machines
//! that take turns make two stretches, and not one for each run.
//!
//! A run *differs* from the one before it in its stretch where their intervals do not overlap. Where the one before is
//! its own baseline it was measured beside it, and its own interval says whether it differs.

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
    fn has(&self, entry: &Entry) -> bool {
        let Origin { branch, labels, .. } = &entry.run.origin;
        self.name.as_ref().is_none_or(|name| entry.is_named(name))
            && (self.branch.is_none() || self.branch == *branch)
            && self.labels.iter().all(|(key, value)| labels.get(key) == Some(value))
    }
}

/// Puts the entries of all runs into series.
pub fn history(entries: Vec<Entry>, left_out: Vec<HistoryLeftOut>, asked: &Asked) -> History {
    let mut entries: Vec<Entry> = entries.into_iter().filter(|entry| asked.has(entry)).collect();
    entries.sort_by(|one, other| one.order().cmp(&other.order()));
    let mut groups: Vec<Vec<Entry>> = Vec::new();
    for entry in entries {
        match groups.iter_mut().find(|group| group[0].asks_the_same(&entry)) {
            Some(group) => group.push(entry),
            None => groups.push(vec![entry]),
        }
    }
    // The series with the newest run stands first.
    let newest = |group: &Vec<Entry>| group.last().and_then(|entry| entry.run.began_unix_s);
    groups.sort_by_key(|group| std::cmp::Reverse(newest(group)));
    let more = groups.len().saturating_sub(SERIES_MAX);
    groups.truncate(SERIES_MAX);
    History {
        schema_version: HISTORY_VERSION,
        series: groups.into_iter().filter_map(|group| series(group, asked.runs.min(RUNS_MAX))).collect(),
        series_left_out: u32::try_from(more).unwrap_or(u32::MAX),
        left_out,
    }
}

/// One series of entries in order, the newest so many of which it shows. All of them decide what its references are.
fn series(entries: Vec<Entry>, runs_max: usize) -> Option<HistorySeries> {
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
    let mut open: Vec<Stretch> = Vec::new();
    for entry in entries {
        let place = open.iter().rposition(|stretch| stretch.takes(&entry)).unwrap_or_else(|| {
            let number = u32::try_from(open.len() + 1).unwrap_or(u32::MAX);
            open.push(Stretch::begin(number, &open, &entry));
            open.len() - 1
        });
        series.runs.push(open[place].placed(entry, series.scale));
    }
    series.stretches = open.into_iter().map(|stretch| stretch.record).collect();
    let older = series.runs.len().saturating_sub(runs_max);
    series.runs.drain(..older);
    series.runs_older = u32::try_from(older).unwrap_or(u32::MAX);
    // A stretch of which no run is left says nothing.
    let runs = &series.runs;
    series.stretches.retain(|stretch| runs.iter().any(|run| run.stretch == stretch.number));
    Some(series)
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
        let error = half / quantile(0.5 + 0.5 * run.level, degrees_of_freedom)?;
        let variance = error * error;
        let sum = Self {
            value: on_scale(figure),
            variance,
            spread: variance * variance / f64::from(degrees_of_freedom),
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

    /// The effect as it is shown.
    fn figure(self, level: f64, scale: EffectScale) -> HistoryFigure {
        let degrees =
            if self.spread > 0.0 { (self.variance * self.variance / self.spread).floor() } else { 1.0 };
        let degrees = degrees.clamp(1.0, f64::from(u32::MAX)) as u32;
        let half = quantile(0.5 + 0.5 * level, degrees).map(|t| t * self.variance.sqrt());
        HistoryFigure {
            figure: Some(scale.shown(self.value)),
            interval: half.map(|half| (scale.shown(self.value - half), scale.shown(self.value + half))),
        }
    }
}

/// A stretch while runs are put into it.
struct Stretch {
    record: HistoryStretch,
    fingerprint: weir_record::machine::Fingerprint,
    /// Programs whose effect against the reference is known, by what identifies them.
    known: Vec<(String, Sum)>,
    last: Option<Last>,
}

/// The run before, as far as the next one is compared with it.
struct Last {
    program: String,
    from_reference: (f64, f64),
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
            known: vec![(entry.reference.identity.clone(), Sum::default())],
            last: None,
        }
    }

    fn known(&self, identity: &str) -> Option<Sum> {
        self.known.iter().find(|(own, _)| own == identity).map(|(_, sum)| *sum)
    }

    /// Whether an effect against the baseline of the entry leads to the reference.
    fn takes(&self, entry: &Entry) -> bool {
        is_same_group(&self.fingerprint, &entry.fingerprint)
            && self.known(&entry.reference.identity).is_some()
    }

    /// The run with its place in the stretch, which knows it from then on.
    fn placed(&mut self, entry: Entry, scale: EffectScale) -> HistoryRun {
        let mut run = HistoryRun { stretch: self.record.number, ..entry.run };
        let own = Sum::of(&run, entry.degrees_of_freedom, scale);
        let base = self.known(&entry.reference.identity).unwrap_or_default();
        let total = own.map(|own| base.and(own));
        run.links = base.links + 1;
        run.from_reference = match (base.links, total) {
            // As it was measured, also where it has no interval.
            (0, _) => run.effect.figure.map(|_| run.effect),
            (_, total) => total.map(|total| total.figure(run.level, scale)),
        };
        if let Some(interval) = run.from_reference.and_then(|it| it.interval) {
            let before = self.last.as_ref();
            run.change = before.and_then(|it| match it.program == entry.reference.identity {
                true => change(run.effect.interval?, (scale.shown(0.0), scale.shown(0.0))),
                false => change(interval, it.from_reference),
            });
            self.last = Some(Last { program: run.program.identity.clone(), from_reference: interval });
        }
        self.learn(&run.program.identity, &entry.reference.identity, total);
        run
    }

    /// What the newest run says of a program. The reference stays what everything is against.
    fn learn(&mut self, program: &str, baseline: &str, total: Option<Sum>) {
        let is_reference = program == self.record.reference.identity || program == baseline;
        let Some(total) = total.filter(|_| !is_reference) else { return };
        match self.known.iter_mut().find(|(own, _)| own == program) {
            Some((_, sum)) => *sum = total,
            None => self.known.push((program.to_owned(), total)),
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
