//! The session trial by trial: a lane per arm, the cells above, cross-core readings and steal below.

use maud::Markup;
use weir_record::study::TimelineEntry;

use super::{
    TRIALS_MAX,
    canvas::{Anchor, Canvas, arm_class, text_width},
    framed,
    scale::Scale,
};
use crate::{
    format,
    section::{Caption, Content, Plot, Section},
    sentence, tables,
    view::View,
    words::Word,
};

/// Width of the narrowest and of a usual drawing: a label that only fits the usual one is omitted in the other.
const WIDTHS: [f64; 2] = [340.0, 1000.0];
const CELLS: f64 = 24.0;
/// The arm's name with its trials below.
const LANE: f64 = 36.0;
const NAME: f64 = 14.0;
const READINGS: f64 = 96.0;
const AXIS: f64 = 26.0;
/// Width of the smallest box, and of the smallest stripe of a cell, in per cent.
const BOX_MIN: f64 = 0.15;
/// Readings closer than this, in per cent and in pixels, are one dot.
const DOTS_APART: (f64, f64) = (BOX_MIN, 2.0);
/// Gap between the lanes and the readings, with room for their title.
const GAP: f64 = 30.0;

const TITLE: Caption = Caption::Own(["The session, trial by trial", "시행별 진행 기록", "逐次试验的时间线"]);

const HELP: Caption = Caption::Own([
    "Every box is one trial, in the order it ran: the arms take turns, so a drift of the machine hits \
        all of them. Hollow boxes were excluded. Below: the cross-core reading around each trial, which shows \
        machine states apart.",
    "상자 하나가 시행 하나이며, 실행한 순서대로 놓았습니다. 대상들을 번갈아 실행하므로 머신 상태의 변화는 모두에게 똑같이 영향을 줍니다. 속이 빈 상자는 제외한 시행입니다. 아래에는 시행 전후의 코어 간 \
    왕복 시간을 표시합니다. 이 값으로 머신 상태를 구분합니다.",
    "每个方块是一次试验，按实际运行顺序排列：各方案轮流运行，机器状态的漂移会同等影响所有方案。空心方块为被剔除的试验。\
        下方为每次试验前后的核间往返时间，用于区分机器状态。",
]);

/// The section.
pub(crate) fn timeline(view: &View<'_>) -> Content {
    if view.result.timeline.is_empty() {
        return Content::Nothing(Word::NoTimeline);
    }
    let more = view.result.timeline.len().saturating_sub(TRIALS_MAX);
    Content::Shown(Box::new(Section {
        plots: vec![Plot {
            id: "session".to_owned(),
            title: sentence::trials_used(view),
            image: draw(view),
            numbers: tables::timeline(view),
            is_table: false,
            is_half: false,
            is_folded: false,
        }],
        left_out: (more > 0).then(|| sentence::left_out(view, more)),
        ..Section::new(TITLE, HELP)
    }))
}

fn draw(view: &View<'_>) -> Markup {
    let entries = &view.result.timeline[..view.result.timeline.len().min(TRIALS_MAX)];
    let end =
        entries.iter().map(|entry| entry.started_ns.saturating_add(entry.elapsed_ns)).max().unwrap_or(1);
    let time = Scale::linear(0.0, end as f64 / 1e9, 0.0, 100.0);
    let lanes_bottom = CELLS + view.arms.len() as f64 * LANE;
    let bottom = lanes_bottom + GAP + READINGS;
    let mut canvas = Canvas::fluid(bottom + AXIS);
    for tick in time.ticks(5.0) {
        let x = time.at(tick);
        let anchor = match x {
            x if x < 4.0 => Anchor::Start,
            x if x > 95.0 => Anchor::End,
            _ => Anchor::Middle,
        };
        canvas.line("grid", [x, CELLS, x, bottom]);
        canvas.text("tick", x, bottom + 17.0, anchor, &format::seconds_tick(tick));
    }
    cells(&mut canvas, view, &time, entries);
    for (lane, arm) in view.arms.iter().enumerate() {
        let top = CELLS + lane as f64 * LANE;
        let y = top + NAME + (LANE - NAME) / 2.0;
        canvas.line("rule", [0.0, y, 100.0, y]);
        canvas.text("label halo", 0.0, top + 12.0, Anchor::Start, arm);
    }
    for lane in 0..view.arms.len() {
        let top = CELLS + lane as f64 * LANE + NAME + 2.0;
        for run in boxes(&time, entries.iter().filter(|entry| view.arm_index(&entry.arm) == lane)) {
            let class = if run.first.clean { "trial" } else { "trial aside" };
            let class = format!("{} {class}", arm_class(lane));
            let place = [run.left, top, run.right - run.left, LANE - NAME - 4.0];
            canvas.rect(&class, place, &run.describe(view));
        }
    }
    let scale = readings(&mut canvas, view, &time, entries, lanes_bottom + GAP);
    framed(bottom + AXIS, &scale, format::nanos_tick, &canvas.finish())
}

/// Trials of one arm that are drawn as one box: a trial, or several indistinguishable ones.
struct Run<'a> {
    left: f64,
    right: f64,
    first: &'a TimelineEntry,
    trials: usize,
    /// Whether they are the turns of one round.
    is_one_block: bool,
}

impl Run<'_> {
    fn describe(&self, view: &View<'_>) -> String {
        if self.is_one_block {
            return describe(view, self.first);
        }
        let outcome = view.word(if self.first.clean { Word::Used } else { Word::Excluded });
        format!("{} · {outcome} ({})", self.first.arm, self.trials)
    }
}

/// The boxes of a lane, in per cent of its width. Overlapping trials with the same outcome are one box: in a session
/// of hours a trial is less than a pixel wide.
fn boxes<'a>(time: &Scale, entries: impl Iterator<Item = &'a TimelineEntry>) -> Vec<Run<'a>> {
    let mut runs: Vec<Run<'a>> = Vec::new();
    for entry in entries {
        let start = entry.started_ns as f64 / 1e9;
        let (left, end) = (time.at(start), time.at(start + entry.elapsed_ns as f64 / 1e9));
        let right = left + (0.92 * (end - left)).max(BOX_MIN);
        match runs.last_mut() {
            Some(run) if left < run.right && run.first.clean == entry.clean => {
                run.right = run.right.max(right);
                run.trials += 1;
                run.is_one_block &= (&run.first.cell_id, run.first.block) == (&entry.cell_id, entry.block);
            }
            _ => runs.push(Run { left, right, first: entry, trials: 1, is_one_block: true }),
        }
    }
    runs
}

fn describe(view: &View<'_>, entry: &TimelineEntry) -> String {
    let outcome = view.word(if entry.clean { Word::Used } else { Word::Excluded });
    let cell = view.cell_label(&entry.cell_id);
    let block = view.word(Word::Block);
    let reading = format::nanos(entry.round_trip_ns);
    format!("{} · {cell} · {block} {} · {outcome} · {reading}", entry.arm, entry.block)
}

/// Whether two trials are slices of the same round, which has one reading.
fn is_one_reading(a: &TimelineEntry, b: &TimelineEntry) -> bool {
    (&a.cell_id, a.block, a.started_ns, a.elapsed_ns) == (&b.cell_id, b.block, b.started_ns, b.elapsed_ns)
        && a.round_trip_ns == b.round_trip_ns
        && a.steal_share == b.steal_share
}

/// Marks the start of a run of trials of one cell, with the cell's name if there is room.
fn cells(canvas: &mut Canvas, view: &View<'_>, time: &Scale, entries: &[TimelineEntry]) {
    let runs = entries.chunk_by(|a, b| a.cell_id == b.cell_id);
    for (index, run) in runs.enumerate() {
        let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
        let left = time.at(first.started_ns as f64 / 1e9);
        let right = time.at((last.started_ns.saturating_add(last.elapsed_ns)) as f64 / 1e9);
        if right - left < BOX_MIN {
            // Stripes of less than a pixel or two are invisible.
            continue;
        }
        let label = view.cell_label(&first.cell_id);
        let shade = if index % 2 == 0 { "run" } else { "run other" };
        canvas.rect(shade, [left, 2.0, right - left, CELLS - 8.0], &label);
        let [narrow, usual] = WIDTHS.map(|width| text_width(&label) + 6.0 < (right - left) / 100.0 * width);
        if usual {
            let class = if narrow { "tick" } else { "tick wide" };
            canvas.text(class, f64::midpoint(left, right), 14.5, Anchor::Middle, &label);
        }
    }
}

/// Draws the readings; returns their scale.
fn readings(
    canvas: &mut Canvas,
    view: &View<'_>,
    time: &Scale,
    entries: &[TimelineEntry],
    top: f64,
) -> Scale {
    let states = &view.result.states;
    let values = entries.iter().map(|entry| entry.round_trip_ns).chain(states.boundary_ns);
    let scale = Scale::from_zero(values, top + READINGS, top);
    for tick in scale.ticks(4.0) {
        canvas.line("grid", [0.0, scale.at(tick), 100.0, scale.at(tick)]);
    }
    if let Some(boundary) = states.boundary_ns {
        canvas.line("boundary", [0.0, scale.at(boundary), 100.0, scale.at(boundary)]);
    }
    canvas.text("tick", 0.0, top - 8.0, Anchor::Start, view.word(Word::CrossCore));
    // Arms that take turns share their round's reading: it is drawn once.
    let mut last: Option<(f64, f64, &str)> = None;
    for round in entries.chunk_by(is_one_reading) {
        let Some(entry) = round.first() else { continue };
        let middle = time.at((entry.started_ns as f64 + entry.elapsed_ns as f64 / 2.0) / 1e9);
        let steal = entry.steal_share.clamp(0.0, 1.0);
        if steal >= 0.001 {
            let height = steal * READINGS;
            let title = format!("{} {}", view.word(Word::Steal), format::percent(steal));
            canvas.rect("steal", [middle - 0.15, top + READINGS - height, 0.3, height], &title);
        }
        let class = if round.iter().any(|entry| entry.clean) { "reading" } else { "reading aside" };
        let y = scale.at(entry.round_trip_ns);
        let is_there = |(x, other, its): (f64, f64, &str)| {
            middle - x < DOTS_APART.0 && (y - other).abs() < DOTS_APART.1 && its == class
        };
        if last.is_some_and(is_there) {
            continue;
        }
        canvas.dot(class, middle, y, 2.8, &describe(view, entry));
        last = Some((middle, y, class));
    }
    if let Some(boundary) = states.boundary_ns {
        let label = view.word(Word::StateBoundary);
        canvas.text("tick halo", 100.0, scale.at(boundary) - 4.0, Anchor::End, label);
    }
    scale
}
