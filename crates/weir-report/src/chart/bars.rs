//! One figure per cell and arm: bar from zero to the median, whiskers minimum to maximum, dots single trials.

use maud::Markup;
use weir_record::study::{ArmSummary, Spread};

use super::{
    ROWS_MAX,
    canvas::{Anchor, Canvas, arm_class, fit, text_width},
    scale::Scale,
};
use crate::{format, view::View};

const WIDTH: f64 = 520.0;
const LABEL_END: f64 = 96.0;
const PLOT: (f64, f64) = (106.0, 420.0);
const ROW: f64 = 24.0;
const HEAD: f64 = 28.0;
const AXIS: f64 = 26.0;

/// Which figure is drawn.
#[derive(Clone, Copy)]
pub(crate) enum Figure {
    Throughput,
    ServerCpu,
}

impl Figure {
    fn spread(self, summary: &ArmSummary) -> Spread {
        match self {
            Figure::Throughput => summary.throughput_per_second,
            Figure::ServerCpu => summary.server_cpu_us_per_message,
        }
    }

    fn trials(self, summary: &ArmSummary) -> &[f64] {
        match self {
            Figure::Throughput => &summary.throughput_trials,
            Figure::ServerCpu => &summary.server_cpu_trials,
        }
    }

    fn text(self, value: f64) -> String {
        match self {
            Figure::Throughput => format::rate(value),
            Figure::ServerCpu => format::micros(value),
        }
    }

    fn median(self, view: &View<'_>, summary: &ArmSummary) -> String {
        match self {
            Figure::Throughput => view.throughput(summary),
            Figure::ServerCpu => format::micros(summary.server_cpu_us_per_message.median),
        }
    }

    fn tick(self, value: f64) -> String {
        match self {
            Figure::Throughput if value >= 1e6 => format!("{} M/s", value / 1e6),
            Figure::Throughput if value >= 1e3 => format!("{} k/s", value / 1e3),
            Figure::Throughput => format!("{value}/s"),
            Figure::ServerCpu => format!("{} µs", (value * 1e6).round() / 1e6),
        }
    }
}

/// The chart; cells that do not fit are left to the table.
pub(crate) fn bars(view: &View<'_>, figure: Figure) -> Markup {
    let groups = groups(view);
    let values = groups.iter().flat_map(|(_, arms)| arms).flat_map(|summary| {
        let spread = figure.spread(summary);
        figure.trials(summary).iter().copied().chain([spread.median, spread.max])
    });
    let scale = Scale::from_zero(values, PLOT.0, PLOT.1);
    let rows: usize = groups.iter().map(|(_, arms)| arms.len()).sum();
    let bottom = groups.len() as f64 * HEAD + rows as f64 * ROW + 4.0;
    let mut canvas = Canvas::new(WIDTH);
    canvas.set_height(bottom + AXIS);
    for tick in scale.ticks(4.0) {
        let x = scale.at(tick);
        canvas.line("grid", [x, 4.0, x, bottom]);
        canvas.text("tick", x, bottom + 17.0, Anchor::Middle, &figure.tick(tick));
    }
    let mut y = 0.0;
    for (cell, arms) in &groups {
        let label = fit(&view.cell_label(cell), WIDTH);
        canvas.rect("paper", [0.0, y + 3.0, text_width(&label), 21.0], "");
        canvas.text("label strong", 0.0, y + 18.5, Anchor::Start, &label);
        y += HEAD;
        for summary in arms {
            draw_row(&mut canvas, view, &scale, figure, summary, y + ROW / 2.0);
            y += ROW;
        }
    }
    canvas.finish()
}

/// Cells with figures that the chart has no room for.
pub(crate) fn cells_left_out(view: &View<'_>) -> usize {
    let with_figures = view.cells.iter().filter(|cell| !view.summaries(cell).is_empty()).count();
    with_figures - groups(view).len()
}

fn groups<'a>(view: &View<'a>) -> Vec<(&'a str, Vec<&'a ArmSummary>)> {
    let mut rows = 0;
    let groups =
        view.cells.iter().map(|cell| (*cell, view.summaries(cell))).filter(|(_, arms)| !arms.is_empty());
    groups
        .take_while(|(_, arms)| {
            rows += arms.len();
            rows <= ROWS_MAX
        })
        .collect()
}

fn draw_row(
    canvas: &mut Canvas,
    view: &View<'_>,
    scale: &Scale,
    figure: Figure,
    summary: &ArmSummary,
    y: f64,
) {
    let spread = figure.spread(summary);
    let arm = view.arm_index(&summary.arm);
    let color = arm_class(arm);
    let median = figure.median(view, summary);
    let range = format!("{} – {}", figure.text(spread.min), figure.text(spread.max));
    let title = format!("{}: {median} ({range})", summary.arm);
    canvas.text("label", LABEL_END, y + 4.5, Anchor::End, &fit(&summary.arm, LABEL_END));
    if !spread.median.is_finite() {
        canvas.text("number", PLOT.1 + 8.0, y + 4.5, Anchor::Start, format::ABSENT);
        return;
    }
    let zero = scale.at(0.0);
    canvas.rect(&format!("{color} bar"), [zero, y - 8.0, scale.at(spread.median) - zero, 16.0], &title);
    for trial in figure.trials(summary) {
        canvas.dot(&format!("{color} point"), scale.at(*trial), y, 2.4, &figure.text(*trial));
    }
    let (low, high) = (scale.at(spread.min), scale.at(spread.max));
    canvas.line("whisker", [low, y, high, y]);
    for end in [low, high] {
        canvas.line("whisker", [end, y - 3.5, end, y + 3.5]);
    }
    let middle = scale.at(spread.median);
    canvas.line(&format!("{color} median"), [middle, y - 8.0, middle, y + 8.0]);
    canvas.text("number", PLOT.1 + 8.0, y + 4.5, Anchor::Start, &median);
}
