//! Percentile curves of one cell: x = log 1/(1-q), so that each further nine takes the same room.

use maud::Markup;
use weir_record::study::ArmSummary;

use super::{
    canvas::{Anchor, Canvas, arm_class},
    scale::Scale,
};
use crate::{format, view::View, words::Word};

const WIDTH: f64 = 1040.0;
const HEIGHT: f64 = 380.0;
const PLOT_X: (f64, f64) = (72.0, 800.0);
const PLOT_Y: (f64, f64) = (330.0, 14.0);
/// Labels at line ends keep this distance.
const LABEL_STEP: f64 = 17.0;
/// Percentiles that may get a tick.
const TICKS: [f64; 8] = [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999];

/// Where a quantile lies before scaling; the largest sample has q = 1 and is not drawn.
fn nines(quantile: f64) -> Option<f64> {
    ((0.0..1.0).contains(&quantile)).then(|| -(1.0 - quantile).log10())
}

/// The chart of one cell.
pub(crate) fn curves(view: &View<'_>, cell: &str) -> Markup {
    let arms = view.summaries(cell);
    let points = || arms.iter().flat_map(|arm| arm.response_quantiles.iter().chain(&arm.service_quantiles));
    let furthest = points().filter_map(|(quantile, _)| nines(*quantile)).fold(1.0, f64::max);
    let x = Scale::linear(0.0, furthest, PLOT_X.0, PLOT_X.1);
    let times = points().filter(|(quantile, _)| nines(*quantile).is_some()).map(|(_, ns)| *ns as f64);
    let y = Scale::logarithmic(times, PLOT_Y.0, PLOT_Y.1);
    let mut canvas = Canvas::new(WIDTH);
    canvas.set_height(HEIGHT);
    for tick in y.ticks(5.0) {
        canvas.line("grid", [PLOT_X.0, y.at(tick), PLOT_X.1, y.at(tick)]);
        canvas.text("tick", PLOT_X.0 - 8.0, y.at(tick) + 4.0, Anchor::End, &format::nanos_tick(tick));
    }
    for quantile in TICKS {
        if let Some(position) = nines(quantile).filter(|position| *position <= furthest + 1e-9) {
            canvas.line("grid", [x.at(position), PLOT_Y.1, x.at(position), PLOT_Y.0]);
            canvas.text("tick", x.at(position), PLOT_Y.0 + 18.0, Anchor::Middle, &format::quantile(quantile));
        }
    }
    canvas.text("tick", PLOT_X.1, HEIGHT - 8.0, Anchor::End, view.word(Word::Percentile));
    let mut labels = Vec::new();
    for arm in &arms {
        let index = view.arm_index(&arm.arm);
        draw(&mut canvas, (view, arm, index), (&x, &y), Word::ServiceTime, &mut labels);
        draw(&mut canvas, (view, arm, index), (&x, &y), Word::ResponseTime, &mut labels);
    }
    place(&mut canvas, labels);
    canvas.finish()
}

struct Label {
    y: f64,
    text: String,
    class: String,
}

fn draw(
    canvas: &mut Canvas,
    (view, summary, arm): (&View<'_>, &ArmSummary, usize),
    (x, y): (&Scale, &Scale),
    kind: Word,
    labels: &mut Vec<Label>,
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
    if let Some((_, end)) = points.last() {
        labels.push(Label { y: *end, text: name, class: format!("{color} label arm") });
    }
}

/// Puts the labels beside the line ends, pushed apart where they would overlap.
fn place(canvas: &mut Canvas, mut labels: Vec<Label>) {
    labels.sort_by(|a, b| a.y.total_cmp(&b.y));
    let mut free = f64::NEG_INFINITY;
    let count = labels.len();
    for (index, label) in labels.into_iter().enumerate() {
        let room_below = (count - 1 - index) as f64 * LABEL_STEP;
        let y = label.y.max(free).min(PLOT_Y.0 - room_below);
        free = y + LABEL_STEP;
        canvas.text(&label.class, PLOT_X.1 + 12.0, y + 4.0, Anchor::Start, &label.text);
    }
}
