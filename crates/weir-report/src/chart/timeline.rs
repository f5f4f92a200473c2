//! The session trial by trial: a lane per arm, the cells above, cross-core readings and steal below.

use maud::Markup;
use weir_record::study::TimelineEntry;

use super::{
    TRIALS_MAX,
    canvas::{Anchor, Canvas, arm_class, fit, text_width},
    scale::Scale,
};
use crate::{format, view::View, words::Word};

const WIDTH: f64 = 1040.0;
const LABEL_END: f64 = 132.0;
const PLOT: (f64, f64) = (144.0, 1024.0);
const CELLS: f64 = 24.0;
const LANE: f64 = 24.0;
const READINGS: f64 = 96.0;
const AXIS: f64 = 26.0;
/// Between the lanes and the readings, with room for their title.
const GAP: f64 = 26.0;

/// The chart.
pub(crate) fn timeline(view: &View<'_>) -> Markup {
    let entries = &view.result.timeline[..view.result.timeline.len().min(TRIALS_MAX)];
    let end =
        entries.iter().map(|entry| entry.started_ns.saturating_add(entry.elapsed_ns)).max().unwrap_or(1);
    let time = Scale::linear(0.0, end as f64 / 1e9, PLOT.0, PLOT.1);
    let lanes_bottom = CELLS + view.arms.len() as f64 * LANE;
    let bottom = lanes_bottom + GAP + READINGS;
    let mut canvas = Canvas::new(WIDTH);
    canvas.set_height(bottom + AXIS);
    for tick in time.ticks(8.0) {
        canvas.line("grid", [time.at(tick), CELLS, time.at(tick), bottom]);
        canvas.text("tick", time.at(tick), bottom + 17.0, Anchor::Middle, &format!("{tick} s"));
    }
    cells(&mut canvas, view, &time, entries);
    for (lane, arm) in view.arms.iter().enumerate() {
        let y = CELLS + (lane as f64 + 0.5) * LANE;
        canvas.line("rule", [PLOT.0, y, PLOT.1, y]);
        canvas.text("label", LABEL_END, y + 4.5, Anchor::End, &fit(arm, LABEL_END));
    }
    for entry in entries {
        let lane = view.arm_index(&entry.arm);
        let top = CELLS + lane as f64 * LANE + 3.0;
        let class = if entry.clean { "trial" } else { "trial aside" };
        let class = format!("{} {class}", arm_class(lane));
        canvas.rect(&class, span(&time, entry, top, LANE - 6.0), &describe(view, entry));
    }
    readings(&mut canvas, view, &time, entries, lanes_bottom + GAP);
    canvas.finish()
}

fn span(time: &Scale, entry: &TimelineEntry, top: f64, height: f64) -> [f64; 4] {
    let start = entry.started_ns as f64 / 1e9;
    let (left, right) = (time.at(start), time.at(start + entry.elapsed_ns as f64 / 1e9));
    [left, top, (right - left - 1.0).max(1.5), height]
}

fn describe(view: &View<'_>, entry: &TimelineEntry) -> String {
    let outcome = view.word(if entry.clean { Word::Used } else { Word::SetAside });
    let cell = view.cell_label(&entry.cell_id);
    let block = view.word(Word::Block);
    let reading = format::nanos(entry.round_trip_ns);
    format!("{} · {cell} · {block} {} · {outcome} · {reading}", entry.arm, entry.block)
}

/// Marks where a run of trials of one cell begins, with the cell's name where there is room.
fn cells(canvas: &mut Canvas, view: &View<'_>, time: &Scale, entries: &[TimelineEntry]) {
    let runs = entries.chunk_by(|a, b| a.cell_id == b.cell_id);
    for (index, run) in runs.enumerate() {
        let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
        let left = time.at(first.started_ns as f64 / 1e9);
        let right = time.at((last.started_ns.saturating_add(last.elapsed_ns)) as f64 / 1e9);
        let label = view.cell_label(&first.cell_id);
        let shade = if index % 2 == 0 { "run" } else { "run other" };
        canvas.rect(shade, [left, 2.0, right - left - 1.0, CELLS - 8.0], &label);
        let short = view.cell(&first.cell_id).map(|cell| cell.connections.to_string()).unwrap_or_default();
        let text = [label, short].into_iter().find(|text| text_width(text) + 6.0 < right - left);
        if let Some(text) = text {
            canvas.text("tick", f64::midpoint(left, right), 14.5, Anchor::Middle, &text);
        }
    }
}

fn readings(canvas: &mut Canvas, view: &View<'_>, time: &Scale, entries: &[TimelineEntry], top: f64) {
    let states = &view.result.states;
    let values = entries.iter().map(|entry| entry.round_trip_ns).chain(states.boundary_ns);
    let scale = Scale::from_zero(values, top + READINGS, top);
    for tick in scale.ticks(4.0) {
        canvas.line("grid", [PLOT.0, scale.at(tick), PLOT.1, scale.at(tick)]);
        canvas.text("tick", LABEL_END, scale.at(tick) + 4.0, Anchor::End, &format::nanos_tick(tick));
    }
    if let Some(boundary) = states.boundary_ns {
        canvas.line("boundary", [PLOT.0, scale.at(boundary), PLOT.1, scale.at(boundary)]);
        let label = view.word(Word::StateBoundary);
        canvas.text("tick", PLOT.1, scale.at(boundary) - 4.0, Anchor::End, label);
    }
    canvas.text("tick", PLOT.0 + 2.0, top - 2.0, Anchor::Start, view.word(Word::CrossCore));
    for entry in entries {
        let middle = time.at((entry.started_ns as f64 + entry.elapsed_ns as f64 / 2.0) / 1e9);
        let steal = entry.steal_share.clamp(0.0, 1.0);
        if steal >= 0.001 {
            let height = steal * READINGS;
            let title = format!("{} {}", view.word(Word::Steal), format::percent(steal));
            canvas.rect("steal", [middle - 1.5, top + READINGS - height, 3.0, height], &title);
        }
        let class = if entry.clean { "reading" } else { "reading aside" };
        canvas.dot(class, middle, scale.at(entry.round_trip_ns), 2.8, &describe(view, entry));
    }
}
