//! Latency by percentile of one cell: response time solid, service time dashed. The horizontal axis counts nines, so
//! that each further nine takes the same width.

use maud::{Markup, html};
use weir_record::study::ArmSummary;

use super::{
    canvas::{Anchor, Canvas, arm_class, swatch},
    framed,
    scale::Scale,
};
use crate::{
    format,
    section::{Content, Plot, Section},
    sentence, tables,
    tables::CELLS_MAX,
    view::View,
    words::Word,
};

const HEIGHT: f64 = 340.0;
const PLOT_Y: (f64, f64) = (306.0, 18.0);
/// Minimum distance of labels, in per cent: room for one on the narrowest screen.
const LABEL_STEP: f64 = 14.0;
/// Where a label begins to be left of its tick, in per cent.
const END: f64 = 92.0;
/// Most cells with open curves.
const OPEN_MAX: usize = 4;
/// Percentiles that may have a tick.
const TICKS: [f64; 8] = [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999];

/// The section: a plot for each cell whose latency can be drawn.
pub(crate) fn curves(view: &View<'_>) -> Content {
    let cells = view.latency_cells();
    if cells.is_empty() {
        return Content::Nothing(Word::NoLatency);
    }
    let more = cells.len().saturating_sub(CELLS_MAX);
    let has_claim = cells.iter().any(|cell| !view.is_exploratory(cell));
    let plot = |(place, cell): (usize, &&str)| Plot {
        id: format!("latency-{cell}"),
        title: view.cell_heading(cell),
        image: html! { (legend(view, cell)) (draw(view, cell)) },
        numbers: tables::latency(view, cell),
        is_table: false,
        is_half: false,
        is_folded: place >= OPEN_MAX || has_claim && view.is_exploratory(cell),
    };
    Content::Shown(Box::new(Section {
        plots: cells.iter().take(CELLS_MAX).enumerate().map(plot).collect(),
        left_out: (more > 0).then(|| sentence::left_out(view, more)),
        ..Section::new(Word::LatencyTitle, Word::LatencyHelp)
    }))
}

fn legend(view: &View<'_>, cell: &str) -> Markup {
    html! {
        ul.legend {
            @for summary in view.summaries(cell) { li { (swatch(view.arm_index(&summary.arm))) " " (summary.arm) } }
        }
    }
}

/// Position of a quantile before scaling; the largest sample has q = 1 and is not drawn.
fn nines(quantile: f64) -> Option<f64> {
    ((0.0..1.0).contains(&quantile)).then(|| -(1.0 - quantile).log10())
}

fn draw(view: &View<'_>, cell: &str) -> Markup {
    let arms = view.summaries(cell);
    let points = || arms.iter().flat_map(|arm| arm.response_quantiles.iter().chain(&arm.service_quantiles));
    let furthest = points().filter_map(|(quantile, _)| nines(*quantile)).fold(1.0, f64::max);
    let x = Scale::linear(0.0, furthest, 0.5, 98.5);
    let times = points().filter(|(quantile, _)| nines(*quantile).is_some()).map(|(_, ns)| *ns as f64);
    let y = Scale::logarithmic(times, PLOT_Y.0, PLOT_Y.1);
    let mut canvas = Canvas::fluid(HEIGHT);
    for tick in y.ticks(4.0) {
        canvas.line("grid", [0.0, y.at(tick), 100.0, y.at(tick)]);
    }
    let shown = |quantile: f64| Some((x.at(nines(quantile).filter(|it| *it <= furthest + 1e-9)?), quantile));
    let ticks: Vec<(f64, f64)> = TICKS.into_iter().filter_map(shown).collect();
    // The text of a tick at the end is left of it, where it needs the room of the tick before.
    let taken = ticks.last().filter(|(at, _)| *at > END).map_or(100.0, |(at, _)| at - 1.5 * LABEL_STEP);
    let mut free = 0.0;
    for (at, quantile) in ticks {
        canvas.line("grid", [at, PLOT_Y.1, at, PLOT_Y.0]);
        if at < free || (at > taken && at <= END) {
            continue;
        }
        free = at + LABEL_STEP;
        let anchor = match at {
            at if at < 5.0 => Anchor::Start,
            at if at > END => Anchor::End,
            _ => Anchor::Middle,
        };
        canvas.text("tick", at, PLOT_Y.0 + 16.0, anchor, &format::quantile(quantile));
    }
    for arm in &arms {
        let index = view.arm_index(&arm.arm);
        curve(&mut canvas, (view, arm, index), (&x, &y), Word::ServiceTime);
        curve(&mut canvas, (view, arm, index), (&x, &y), Word::ResponseTime);
    }
    canvas.text("tick", 100.0, HEIGHT - 2.0, Anchor::End, &format!("{} →", view.word(Word::Percentile)));
    framed(HEIGHT, &y, format::nanos_tick, &canvas.finish())
}

fn curve(
    canvas: &mut Canvas,
    (view, summary, arm): (&View<'_>, &ArmSummary, usize),
    (x, y): (&Scale, &Scale),
    kind: Word,
) {
    let (curve, style) = match kind {
        Word::ServiceTime => (&summary.service_quantiles, "curve dashed"),
        _ => (&summary.response_quantiles, "curve"),
    };
    let color = arm_class(arm);
    let at =
        |(quantile, ns): &(f64, u64)| nines(*quantile).map(|position| (x.at(position), y.at(*ns as f64)));
    let points: Vec<_> = curve.iter().filter_map(at).collect();
    canvas.polyline(&format!("{color} {style}"), &points);
    let fill = if style == "curve" { "mark" } else { "mark hollow" };
    let name = format!("{}, {}", summary.arm, view.word(kind));
    for (quantile, ns) in curve {
        let title = format!("{name}, {}: {}", format::quantile(*quantile), format::nanos(*ns as f64));
        if let Some(point) = at(&(*quantile, *ns)) {
            canvas.marker(&format!("{color} {fill}"), arm, point, 7.0, &title);
        }
    }
}
