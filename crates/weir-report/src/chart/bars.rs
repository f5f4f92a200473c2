//! One figure per cell and arm: bar from zero to the mean, whiskers minimum to maximum, dots single trials.

use maud::{Markup, html};
use weir_record::{
    metric::{Family, Metric, MetricUnit, Scale as Compared},
    metric_rows::{METRICS, MetricRow, Part},
    study::{ArmSummary, MetricFigures},
};

use super::{
    OPEN_ROWS_MAX, ROWS_MAX, Row, axis,
    canvas::{Canvas, arm_class},
    rows,
    scale::Scale,
};
use crate::{
    cited::Sentence,
    format, metrics,
    section::{Content, Plot, Section, Subject},
    sentence, tables,
    view::View,
    words::Word,
};

const ROW: f64 = 22.0;

/// The section: a plot for each metric with a claim, and for metrics that belong next to them.
pub(crate) fn bars(view: &View<'_>) -> Content {
    if groups(view).is_empty() {
        return Content::Nothing(Word::NoFigures);
    }
    let left_out = cells_left_out(view);
    let hints = view.generator_limits().into_iter().map(|(text, cells)| Sentence { text, cells });
    let drawn = drawn(view);
    Content::Shown(Box::new(Section {
        sentences: hints.collect(),
        tables: vec![tables::further_figures(view, &drawn)],
        plots: drawn.into_iter().map(|metric| plot(view, metric)).collect(),
        left_out: (left_out > 0).then(|| sentence::left_out(view, left_out)),
        ..Section::new(Word::FiguresTitle, Word::FiguresHelp)
    }))
}

fn drawn(view: &View<'_>) -> Vec<Metric> {
    let is_drawn = |row: &&MetricRow| {
        let has_figures =
            groups(view).iter().any(|(_, arms)| arms.iter().any(|it| it.figures(row.metric).is_some()));
        let measured = || view.result.spec.cells.iter().filter(|cell| !cell.is_simulated());
        let parts = || measured().map(|cell| (row.part)(cell));
        let is_time = row.family == Family::Time
            && row.scale == Compared::Ratio
            && parts().any(|part| part != Part::None);
        has_figures && (is_time || parts().any(|part| part == Part::Claim))
    };
    METRICS.iter().filter(is_drawn).map(|row| row.metric).collect()
}

fn plot(view: &View<'_>, metric: Metric) -> Plot {
    let groups = with_figures(view, metric);
    let figures = groups.iter().flat_map(|(_, arms)| arms).filter_map(|summary| summary.figures(metric));
    let values = figures.flat_map(|it| it.units.iter().copied().chain([it.mean]));
    let scale = Scale::from_zero(values, 0.0, 100.0);
    let last = groups.len().saturating_sub(1);
    let image = html! {
        @for (index, (cell, arms)) in groups.iter().enumerate() {
            p.group { (view.cell_label(cell)) }
            @let drawn: Vec<Row> = arms.iter().map(|summary| row(view, &scale, metric, summary)).collect();
            (rows(view, &drawn, &if index == last { axis(&scale, |value| tick(metric, value)) } else { html! {} }))
        }
    };
    Plot {
        id: format!("figure-{}", metric.row().key),
        title: metrics::name(view, metric),
        image,
        numbers: tables::figures_of(view, metric),
        is_table: false,
        is_half: true,
        // Times are drawn as curves too.
        is_folded: metric.row().family == Family::Time && !view.latency_cells().is_empty()
            || groups.iter().map(|(_, arms)| arms.len()).sum::<usize>() > OPEN_ROWS_MAX,
    }
}

fn tick(metric: Metric, value: f64) -> String {
    let rounded = (value * 1e6).round() / 1e6;
    match metric.row().unit {
        MetricUnit::PerSecond if value >= 1e6 => format!("{} M/s", value / 1e6),
        MetricUnit::PerSecond if value >= 1e3 => format!("{} k/s", value / 1e3),
        MetricUnit::PerSecond => format!("{value}/s"),
        MetricUnit::Micros => format!("{rounded} µs"),
        MetricUnit::Nanos => format::nanos_tick(value),
        MetricUnit::Count => format!("{rounded}"),
        MetricUnit::Share => format!("{} %", (value * 1e4).round() / 1e2),
        MetricUnit::Bytes => format::memory(value),
    }
}

/// Number of cells with figures that the chart has no room for.
fn cells_left_out(view: &View<'_>) -> usize {
    let is_measured = |cell: &&&str| !view.is_simulated(cell) && !view.summaries(cell).is_empty();
    let with_figures = view.cells.iter().filter(is_measured).count();
    with_figures - groups(view).len()
}

/// The cells that have the metric.
fn with_figures<'a>(view: &View<'a>, metric: Metric) -> Vec<(&'a str, Vec<&'a ArmSummary>)> {
    let has_it = |(_, arms): &(&str, Vec<&ArmSummary>)| arms.iter().any(|it| it.figures(metric).is_some());
    groups(view).into_iter().filter(has_it).collect()
}

fn groups<'a>(view: &View<'a>) -> Vec<(&'a str, Vec<&'a ArmSummary>)> {
    let mut rows = 0;
    let measured = view.cells.iter().filter(|cell| !view.is_simulated(cell));
    let groups = measured.map(|cell| (*cell, view.summaries(cell))).filter(|(_, arms)| !arms.is_empty());
    groups
        .take_while(|(_, arms)| {
            rows += arms.len();
            rows <= ROWS_MAX
        })
        .collect()
}

fn row(view: &View<'_>, scale: &Scale, metric: Metric, summary: &ArmSummary) -> Row {
    let subject = Subject { arm: Some(summary.arm.clone()), text: summary.arm.clone() };
    let figures = summary.figures(metric).filter(|it| it.mean.is_finite());
    let Some(figures) = figures else {
        let number = format::ABSENT.to_owned();
        return Row {
            group: String::new(),
            subject,
            plot: None,
            number,
            verdict: String::new(),
            is_void: true,
        };
    };
    let mean = metrics::bare(metric, figures.mean);
    Row {
        group: String::new(),
        subject,
        plot: Some(draw(view, scale, metric, summary, figures)),
        number: format!("{}{mean}", view.bound(summary, metric)),
        verdict: String::new(),
        is_void: false,
    }
}

fn draw(
    view: &View<'_>,
    scale: &Scale,
    metric: Metric,
    summary: &ArmSummary,
    figures: &MetricFigures,
) -> Markup {
    let color = arm_class(view.arm_index(&summary.arm));
    let text = |value: f64| metrics::bare(metric, value);
    let (least, most) = figures.range();
    let title = format!("{}: {}", summary.arm, format::with_range(figures.mean, (least, most), text));
    let y = ROW / 2.0;
    let mut canvas = Canvas::fluid(ROW);
    for value in scale.ticks(4.0) {
        canvas.line("grid", [scale.at(value), 0.0, scale.at(value), ROW]);
    }
    let (zero, middle) = (scale.at(0.0), scale.at(figures.mean));
    canvas.rect(&format!("{color} bar"), [zero, y - 8.0, middle - zero, 16.0], &title);
    let dots = figures.units.iter().map(|unit| (scale.at(*unit), y));
    canvas.dots(&format!("{color} point"), 2.4, dots, &title);
    let (low, high) = (scale.at(least), scale.at(most));
    canvas.line(&format!("{color} whisker"), [low, y, high, y]);
    for end in [low, high] {
        canvas.line(&format!("{color} whisker"), [end, y - 3.5, end, y + 3.5]);
    }
    canvas.line(&format!("{color} mean"), [middle, y - 8.0, middle, y + 8.0]);
    canvas.finish()
}
