//! Changes of arms' effects from one run to another: a row for each, with its interval, and a line at no change.
//! Drawn like the comparisons of one study.

use weir_record::{
    effect::EffectScale, metric::Metric, metric_rows::METRICS, run_pair::Change, verdict::Verdict,
};

use super::{
    ROWS_MAX, Row,
    forest::{Drawn, axis, draw},
    rows,
    scale::Scale,
};
use crate::{
    metrics,
    section::{Plot, Subject},
    table::Table,
    view::View,
    words,
};

/// Least width of an axis of differences, to each side.
const DIFFERENCE_MIN: f64 = 0.01;

/// How the changes of a metric are shown: the word of a verdict, and the table of their numbers.
pub(crate) struct Telling<'t> {
    pub verdict: &'t dyn Fn(&Change) -> String,
    pub numbers: &'t dyn Fn(&[Change]) -> Table,
}

/// A plot for each metric and scale with at least one figure.
pub(crate) fn changes(view: &View<'_>, all: &[Change], telling: &Telling<'_>) -> Vec<Plot> {
    let of = |metric: Metric, scale: EffectScale| -> Vec<Change> {
        all.iter().filter(|it| it.metric == metric && it.scale == scale).cloned().collect()
    };
    let scales = [EffectScale::Ratio, EffectScale::Difference];
    let groups = METRICS.iter().flat_map(|row| scales.map(|scale| (row.metric, scale)));
    groups
        .map(|(metric, scale)| (metric, scale, of(metric, scale)))
        .filter(|(.., own)| own.iter().any(|it| it.figure.is_some_and(f64::is_finite)))
        .map(|(metric, scale, own)| plot(view, (metric, scale), &own, telling))
        .collect()
}

fn plot(
    view: &View<'_>,
    (metric, asked): (Metric, EffectScale),
    own: &[Change],
    telling: &Telling<'_>,
) -> Plot {
    let is_difference = asked == EffectScale::Difference;
    let ends = |it: &Change| it.interval.into_iter().flat_map(|(low, high)| [low, high]).chain(it.figure);
    let values = own.iter().flat_map(ends);
    let scale = match is_difference {
        true => Scale::differences(values, DIFFERENCE_MIN, 0.0, 100.0),
        false => Scale::ratios(values, 0.0, 100.0),
    };
    let drawn: Vec<Row> =
        own.iter().take(ROWS_MAX).map(|it| row(view, (&scale, is_difference), it, telling)).collect();
    let kind = if is_difference { "difference" } else { "ratio" };
    Plot {
        id: format!("change-{}-{kind}", metric.row().key),
        title: metrics::name(view, metric),
        image: rows(view, &drawn, &axis(view, metric, is_difference, &scale)),
        numbers: (telling.numbers)(own),
        is_table: false,
        is_half: false,
        is_folded: false,
    }
}

fn row(
    view: &View<'_>,
    (scale, is_difference): (&Scale, bool),
    change: &Change,
    telling: &Telling<'_>,
) -> Row {
    let Change { cell_id, arm, baseline, metric, figure, interval, .. } = change;
    let text = view.compared(arm, baseline);
    let number = metrics::with_interval(view, *metric, change.scale, *figure, *interval);
    let verdict = (telling.verdict)(change);
    let title = format!("{text}: {number} {verdict}");
    let none = if is_difference { 0.0 } else { 1.0 };
    let drawn = Drawn { value: *figure, interval: *interval, band: None, units: Vec::new(), none };
    Row {
        group: view.cell_label(cell_id),
        subject: Subject { arm: Some(arm.clone()), text },
        plot: draw(view, scale, &drawn, (arm, cell_id), &title),
        number,
        verdict: format!("{} {verdict}", words::verdict_sign(change.verdict)),
        is_void: change.verdict == Verdict::NotComparable,
    }
}
