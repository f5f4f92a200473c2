//! Charts as inline SVG, drawn by hand so that they follow the page: colours are CSS classes (light, dark and print
//! come from one style sheet), text is real text, no ids are needed, and every mark has a tooltip, which dots of one
//! row share.
//!
//! Colours never carry meaning alone: each arm also has a marker shape, and every chart has its table next to it.
//! Essential information (arm, cell, verdict) is text of the page and not of the image, so that it moves above the
//! plot on a narrow page.
//!
//! A new chart is a file here that returns a section with its texts, a line below, and one in `sections.rs`.

mod accounts;
mod bars;
mod call_overhead;
mod canvas;
mod changes;
mod curves;
mod forest;
mod frontier;
mod history;
mod latency_map;
mod levels;
mod listed;
mod map;
mod over_time;
mod plane;
mod pooled;
mod running;
mod scale;
mod stacked;
mod timeline;
mod wait_series;
mod why;

pub(crate) use accounts::accounts;
pub(crate) use bars::bars;
pub(crate) use call_overhead::{call_levels, call_overhead};
pub(crate) use changes::{Telling, changes};
pub(crate) use curves::curves;
pub(crate) use forest::{answer, forest};
pub(crate) use frontier::{frontier, simulated};
pub(crate) use history::{HistoryPlot, HistoryRow, history};
pub(crate) use latency_map::{
    TITLE as LATENCY_MAP_TITLE, cpu_at_equal_rates, latency_map, lines as latency_lines,
};
pub(crate) use levels::{ALONE_WIDTH, Axis, Levels, Point, alone, levels as by_level};
pub use listed::Listed;
pub(crate) use listed::listed;
pub(crate) use map::{crossings, difference_word, level, levels, map, regions};
pub(crate) use over_time::{Line, OverTime, over_time};
pub(crate) use pooled::{PooledPlot, PooledRow, pooled};
pub(crate) use running::{cells as running_cells, track as running_track};
pub(crate) use stacked::{Stacked, StackedBar, stacked};
pub(crate) use timeline::timeline;
pub(crate) use wait_series::section as wait_series;
pub(crate) use why::why;

use canvas::{Anchor, Canvas, swatch};
use maud::{Markup, html};
use scale::Scale;

use crate::{section::Subject, view::View};

/// Most rows of a forest or bar chart; the tables contain more.
const ROWS_MAX: usize = 60;
/// Most rows of such a chart that is not folded: a map shows as many cells in less room.
const OPEN_ROWS_MAX: usize = 24;
/// Most trials on the timeline.
const TRIALS_MAX: usize = 2000;

/// One row of a chart: its subject, its plot, and its number.
struct Row {
    /// Text shared with adjacent rows, shown once above them; empty if there is none.
    group: String,
    subject: Subject,
    /// Absent without a figure: such a row is a line of text.
    plot: Option<Markup>,
    number: String,
    verdict: String,
    /// Shown faintly: it must not be interpreted.
    is_void: bool,
}

/// Width of the texts next to a vertical axis: seven figures with their commas.
const GUTTER: f64 = 64.0;

/// A fluid plot next to a column of fixed width with the texts of its vertical axis.
fn framed(height: f64, scale: &Scale, text: fn(f64) -> String, plot: &Markup) -> Markup {
    html! { div.framed { (gutter(height, scale, text)) (plot) } }
}

/// The texts of a vertical axis.
fn gutter(height: f64, scale: &Scale, text: fn(f64) -> String) -> Markup {
    let mut gutter = Canvas::new(GUTTER);
    gutter.set_height(height);
    for tick in scale.ticks(4.0) {
        gutter.text("tick", GUTTER - 6.0, scale.at(tick) + 4.0, Anchor::End, &text(tick));
    }
    gutter.finish()
}

/// Height of an axis below rows.
const AXIS: f64 = 22.0;

/// A horizontal axis with its texts; those at its ends stay inside it.
fn axis(scale: &Scale, text: impl Fn(f64) -> String) -> Markup {
    let mut canvas = Canvas::fluid(AXIS);
    for value in scale.ticks(4.0) {
        let x = scale.at(value);
        let anchor = match x {
            x if x < 6.0 => Anchor::Start,
            x if x > 94.0 => Anchor::End,
            _ => Anchor::Middle,
        };
        canvas.text("tick", x, AXIS - 6.0, anchor, &text(value));
    }
    canvas.finish()
}

/// Rows over a common axis, which is drawn if one of them has a plot.
fn rows(view: &View<'_>, rows: &[Row], axis: &Markup) -> Markup {
    rows_with(rows, axis, |arm| view.arm_index(arm))
}

/// The same without a study: `place` is that of an arm among those that have a colour.
fn rows_with(rows: &[Row], axis: &Markup, place: impl Fn(&str) -> usize) -> Markup {
    html! {
        div.rows {
            @for (index, row) in rows.iter().enumerate() {
                @let above = index.checked_sub(1).map_or("", |above| rows[above].group.as_str());
                @if row.group != above { p.group { (row.group) } }
                @let is_alone = row.number.is_empty() && row.verdict.is_empty();
                div.row .void[row.is_void] .bare[row.plot.is_none()] .alone[is_alone] {
                    span.subject {
                        @if let Some(arm) = &row.subject.arm { (swatch(place(arm))) " " (row.subject.text) }
                        @else { (row.subject.text) }
                    }
                    span.verdict { (row.verdict) }
                    span.number { (row.number) }
                    @if let Some(plot) = &row.plot { div.plot { (plot) } }
                }
            }
            @if rows.iter().any(|row| row.plot.is_some()) { div.row.axis { div.plot { (axis) } } }
        }
    }
}
