//! A forest of runs: a row for each run with its interval, a diamond as wide as the interval of the common mean, and
//! a bar where the next run is expected.

use maud::Markup;
use weir_record::{metric::Metric, verdict::Verdict};

use super::{
    Row,
    canvas::{Canvas, arm_class},
    forest::{Drawn, axis, draw_of_arm},
    rows,
    scale::Scale,
};
use crate::{
    section::{Plot, Subject},
    table::Table,
    view::View,
    words,
};

const ROW: f64 = 28.0;

/// Half the height of a diamond.
const DIAMOND: f64 = 8.0;

/// Most rows of one plot; its table contains more.
const ROWS_MAX: usize = 120;

/// Smallest half-width of an axis of differences.
const DIFFERENCE_MIN: f64 = 0.01;

/// One effect, in words and numbers.
pub(crate) struct PooledPlot<'a> {
    pub id: String,
    pub title: String,
    /// The arm, which determines colour and marker.
    pub arm: &'a str,
    pub metric: Metric,
    pub is_difference: bool,
    pub rows: Vec<PooledRow>,
    pub numbers: Table,
}

/// A row. Rows of a group are below its name.
pub(crate) enum PooledRow {
    /// One run.
    Run {
        group: String,
        text: String,
        number: String,
        verdict: (Verdict, String),
        figure: f64,
        interval: Option<(f64, f64)>,
    },
    /// Several runs together; without an interval nothing is drawn.
    Pooled {
        group: String,
        text: String,
        number: String,
        verdict: Option<(Verdict, String)>,
        interval: Option<(f64, f64)>,
    },
    /// The next run.
    Next { group: String, text: String, number: String, range: (f64, f64) },
}

impl PooledRow {
    /// Values that must be inside the axis.
    fn ends(&self) -> Vec<f64> {
        let both = |range: Option<(f64, f64)>| range.into_iter().flat_map(|(low, high)| [low, high]);
        match self {
            Self::Run { figure, interval, .. } => both(*interval).chain([*figure]).collect(),
            Self::Pooled { interval, .. } => both(*interval).collect(),
            Self::Next { range, .. } => both(Some(*range)).collect(),
        }
    }
}

/// The plot with its numbers.
pub(crate) fn pooled(view: &View<'_>, plot: PooledPlot<'_>) -> Plot {
    let values = plot.rows.iter().flat_map(PooledRow::ends);
    let scale = match plot.is_difference {
        true => Scale::differences(values, DIFFERENCE_MIN, 0.0, 100.0),
        false => Scale::ratios(values, 0.0, 100.0),
    };
    let none = if plot.is_difference { 0.0 } else { 1.0 };
    let arm = view.arm_index(plot.arm);
    let drawn: Vec<Row> = plot.rows.iter().take(ROWS_MAX).map(|it| row(it, (&scale, none), arm)).collect();
    Plot {
        id: plot.id,
        title: plot.title,
        image: rows(view, &drawn, &axis(view, plot.metric, plot.is_difference, &scale)),
        numbers: plot.numbers,
        is_table: false,
        is_half: false,
        is_folded: false,
    }
}

fn row(row: &PooledRow, (scale, none): (&Scale, f64), arm: usize) -> Row {
    let signed = |(verdict, word): &(Verdict, String)| format!("{} {word}", words::verdict_sign(*verdict));
    match row {
        PooledRow::Run { group, text, number, verdict, figure, interval } => {
            let drawn =
                Drawn { value: Some(*figure), interval: *interval, band: None, units: Vec::new(), none };
            let title = format!("{text}: {number} {}", verdict.1);
            Row {
                group: group.clone(),
                subject: Subject { arm: None, text: text.clone() },
                plot: draw_of_arm(scale, &drawn, (arm, "mark"), &title, ""),
                number: number.clone(),
                verdict: signed(verdict),
                is_void: verdict.0 == Verdict::NotComparable,
            }
        }
        PooledRow::Pooled { group, text, number, verdict, interval } => Row {
            group: group.clone(),
            subject: Subject { arm: None, text: text.clone() },
            plot: interval.map(|interval| diamond((scale, none), arm, interval)),
            number: number.clone(),
            verdict: verdict.as_ref().map(signed).unwrap_or_default(),
            is_void: false,
        },
        PooledRow::Next { group, text, number, range } => Row {
            group: group.clone(),
            subject: Subject { arm: None, text: text.clone() },
            plot: Some(bar((scale, none), arm, *range, &format!("{text}: {number}"))),
            number: number.clone(),
            verdict: String::new(),
            is_void: false,
        },
    }
}

/// A row with its grid and the line at no difference.
fn empty(scale: &Scale, none: f64) -> Canvas {
    let mut canvas = Canvas::fluid(ROW);
    for tick in scale.ticks(5.0) {
        canvas.line("grid", [scale.at(tick), 0.0, scale.at(tick), ROW]);
    }
    canvas.line("one", [scale.at(none), 0.0, scale.at(none), ROW]);
    canvas
}

fn diamond((scale, none): (&Scale, f64), arm: usize, (low, high): (f64, f64)) -> Markup {
    let mut canvas = empty(scale, none);
    let (left, right, y) = (scale.at(low), scale.at(high), ROW / 2.0);
    let middle = 0.5 * (left + right);
    let corners = [(left, y), (middle, y - DIAMOND), (right, y), (middle, y + DIAMOND), (left, y)];
    canvas.polyline(&format!("{} diamond", arm_class(arm)), &corners);
    canvas.finish()
}

fn bar((scale, none): (&Scale, f64), arm: usize, (low, high): (f64, f64), title: &str) -> Markup {
    let mut canvas = empty(scale, none);
    let (left, right) = (scale.at(low), scale.at(high));
    canvas.rect(&format!("{} bar", arm_class(arm)), [left, 9.0, right - left, ROW - 18.0], title);
    canvas.finish()
}
