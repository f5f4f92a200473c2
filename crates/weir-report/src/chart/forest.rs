//! All comparisons of one metric: ratio with interval, one faint dot a block, noise-floor band, line at 1.0.

use maud::Markup;
use weir_record::verdict::{Comparison, Metric, Verdict};

use super::{
    ROWS_MAX,
    canvas::{Anchor, Canvas, arm_class, fit},
    scale::Scale,
};
use crate::{
    format,
    view::{METRICS, View},
    words::{self, Word},
};

const WIDTH: f64 = 1040.0;
const LABEL_END: f64 = 344.0;
const PLOT: (f64, f64) = (358.0, 728.0);
const TEXT_START: f64 = 744.0;
const VERDICT_START: f64 = 904.0;
const ROW: f64 = 30.0;
const HEAD: f64 = 26.0;
const AXIS: f64 = 26.0;
/// Room above the exploratory rows for their title.
const DIVIDER: f64 = 24.0;

/// One forest plot. Metrics of a kind share the axis, so that plots above each other can be compared by eye; response
/// times have one of their own, because their ratios spread over decades where those of CPU differ by per cent.
pub(crate) fn forest(view: &View<'_>, metric: Metric) -> Markup {
    let mut rows = view.comparisons_of(metric);
    rows.truncate(ROWS_MAX);
    let is_exploratory = |row: &&Comparison| view.is_exploratory(&row.cell_id);
    let (exploratory, claimed): (Vec<_>, Vec<_>) = rows.into_iter().partition(is_exploratory);
    let divider = if exploratory.is_empty() { 0.0 } else { DIVIDER };
    let scale = Scale::ratios(
        METRICS
            .iter()
            .filter(|it| is_response_time(**it) == is_response_time(metric))
            .flat_map(|it| view.comparisons_of(*it))
            .flat_map(extent),
        PLOT.0,
        PLOT.1,
    );
    let divider_top = HEAD + claimed.len() as f64 * ROW;
    let bottom = divider_top + divider + exploratory.len() as f64 * ROW;
    let mut canvas = Canvas::new(WIDTH);
    canvas.set_height(bottom + AXIS);
    for tick in scale.ticks(7.0) {
        let x = scale.at(tick);
        canvas.line("grid", [x, HEAD, x, bottom]);
        canvas.text("tick", x, bottom + 17.0, Anchor::Middle, &tick_label(tick));
    }
    let claimed = claimed.into_iter().enumerate().map(|(index, row)| (HEAD + index as f64 * ROW, row));
    let below = divider_top + divider;
    let exploratory =
        exploratory.into_iter().enumerate().map(|(index, row)| (below + index as f64 * ROW, row));
    let rows: Vec<_> = claimed.chain(exploratory).collect();
    for (top, row) in &rows {
        band(&mut canvas, &scale, row, *top);
    }
    heads(&mut canvas, view, metric, scale.at(1.0), bottom);
    if divider > 0.0 {
        canvas.text("tick", LABEL_END, divider_top + 17.0, Anchor::End, view.word(Word::Exploratory));
    }
    for (top, row) in &rows {
        draw_row(&mut canvas, view, &scale, row, top + ROW / 2.0);
    }
    canvas.finish()
}

fn is_response_time(metric: Metric) -> bool {
    matches!(metric, Metric::LatencyP50 | Metric::LatencyP99)
}

/// The line at 1.0, which side of it is better, and the title of the numbers.
fn heads(canvas: &mut Canvas, view: &View<'_>, metric: Metric, one: f64, bottom: f64) {
    canvas.line("one", [one, HEAD - 4.0, one, bottom]);
    let (better, anchor, x) = match metric.larger_is_better() {
        true => (Word::BetterRight, Anchor::Start, one + 8.0),
        false => (Word::BetterLeft, Anchor::End, one - 8.0),
    };
    canvas.text("tick", x, HEAD - 9.0, anchor, view.word(better));
    canvas.text("tick", TEXT_START, HEAD - 9.0, Anchor::Start, view.word(Word::RatioInterval));
}

/// Everything of a comparison that must be inside the axis.
fn extent(row: &Comparison) -> Vec<f64> {
    let interval = row.interval.map(|(low, high)| [low, high]);
    let floor = row.noise_floor.map(|floor| [1.0 / (1.0 + floor), 1.0 + floor]);
    let ends = interval.into_iter().chain(floor).flatten();
    ends.chain(row.ratio).chain(row.ratios.iter().copied()).collect()
}

fn band(canvas: &mut Canvas, scale: &Scale, row: &Comparison, top: f64) {
    if let Some(floor) = row.noise_floor.filter(|floor| *floor > 0.0 && floor.is_finite()) {
        let (left, right) = (scale.at(1.0 / (1.0 + floor)), scale.at(1.0 + floor));
        canvas.rect(
            "band",
            [left, top + 2.0, right - left, ROW - 4.0],
            &format!("±{}", format::percent(floor)),
        );
    }
}

fn draw_row(canvas: &mut Canvas, view: &View<'_>, scale: &Scale, row: &Comparison, y: f64) {
    let exploratory = view.is_exploratory(&row.cell_id);
    let arm = view.arm_index(&row.arm);
    let color = arm_class(arm);
    let label = row_label(view, row);
    // Nothing may be read from a ratio that was not judged: it is shown, but faintly.
    let void = if row.verdict == Verdict::NotComparable { " void" } else { "" };
    canvas.text("label", LABEL_END, y + 4.5, Anchor::End, &fit(&label, LABEL_END));
    let numbers = format::ratio_and_interval(row.ratio, row.interval);
    let verdict = view.verdict_word(row.verdict);
    let title = format!("{label}: {numbers} {verdict}");
    for ratio in row.ratios.iter().filter(|ratio| scale.contains(**ratio)) {
        canvas.dot(&format!("{color} point{void}"), scale.at(*ratio), y, 2.6, &format::ratio(Some(*ratio)));
    }
    if let Some((low, high)) = row.interval.filter(|(low, high)| low.is_finite() && high.is_finite()) {
        let (left, right) = (scale.at(low), scale.at(high));
        canvas.line(&format!("{color} interval{void}"), [left, y, right, y]);
        for end in [left, right] {
            canvas.line(&format!("{color} interval{void}"), [end, y - 5.0, end, y + 5.0]);
        }
    }
    if let Some(ratio) = row.ratio {
        let fill = if exploratory { "mark hollow" } else { "mark" };
        canvas.marker(&format!("{color} {fill}{void}"), arm, (scale.at(ratio), y), 11.0, &title);
    }
    canvas.text(&format!("number{void}"), TEXT_START, y + 4.5, Anchor::Start, &numbers);
    let words = format!("{} {verdict}", words::verdict_sign(row.verdict));
    canvas.text("label strong", VERDICT_START, y + 4.5, Anchor::Start, &words);
}

fn row_label(view: &View<'_>, row: &Comparison) -> String {
    let cell = view.cell_label(&row.cell_id);
    // With two arms in the study the arm is always the same one.
    if view.arms.len() > 2 { format!("{} · {cell}", view.compared(&row.arm, &row.baseline)) } else { cell }
}

fn tick_label(tick: f64) -> String {
    let text = format!("{tick:.3}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if short.contains('.') { short.to_owned() } else { format!("{short}.0") }
}
