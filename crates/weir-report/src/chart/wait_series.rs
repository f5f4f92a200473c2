//! How arms waited over time: misses, operations a second, effective sleep and CPU, one below the other, with
//! published levels as dashed lines.

use maud::{Markup, html};
use weir_record::wait_series::{LevelOf, SeriesMetric, WaitFigures, WaitPart, WaitSeries};

use super::{
    canvas::{Anchor, Canvas, arm_class, text_width},
    framed,
    scale::Scale,
};
use crate::{
    format,
    section::{Caption, Content, Plot, Section},
    view::View,
    wait_series,
};

const HEIGHT: f64 = 132.0;
const PLOT_Y: (f64, f64) = (108.0, 24.0);
/// Names of parts are above the first panel, times below each.
const NAMES_Y: f64 = 12.0;
/// Widths at which labels of parts must fit: the narrowest screen and a usual one.
const WIDTHS: [f64; 2] = [340.0, 900.0];

const TITLE: Caption = Caption::Own(["Waiting over time", "시간에 따른 대기", "随时间变化的等待"]);

const HELP: Caption = Caption::Own([
    "One trial, interval by interval; where settings are compared, a trial of each after the other. Dashed: what the \
     text of the publication says of a part (its curves are images, whose values are not printed). A sign in the table \
     says whether a published bound holds. Nothing is judged here: each part ran once.",
    "시행 하나를 시간 구간별로 그렸습니다. 설정을 비교하는 그림에는 설정별로 시행 하나씩 이어서 그렸습니다. 점선은 발표문의 본문에 적힌 값입니다(곡선은 그림뿐이며 수치가 공개되지 않았습니다). 표의 \
    기호는 발표된 한계를 이번 결과가 만족하는지 나타냅니다. 구간마다 한 번씩만 실행했으므로 판정하지 않습니다.",
    "按时间区间绘出一次试验；比较设置时，每个设置各取一次试验依次排列。虚线为公布的正文中对该阶段的说明（曲线只有图像，没有公布数值）。表中符号表示本次结果是否满足公布的界限。每个阶段只运行一次，因此不作判定。",
]);

/// The section: a drawing for each series.
pub(crate) fn section(view: &View<'_>) -> Content {
    let all = &view.result.wait_series;
    Content::unless(all.is_empty(), || Section {
        plots: all.iter().map(|series| plot(view, series)).collect(),
        ..Section::new(TITLE, HELP)
    })
}

fn plot(view: &View<'_>, series: &WaitSeries) -> Plot {
    let arm = series.parts.first().map_or("", |part| part.arm.as_str());
    Plot {
        id: format!("waiting-{}-{arm}", series.cell_id),
        title: wait_series::title(view, series),
        image: html! { @for metric in SeriesMetric::ALL { (panel(view, series, metric)) } },
        numbers: wait_series::table(view, series),
        is_table: false,
        is_half: false,
        is_folded: false,
    }
}

/// The label of a published level is above its line, and would otherwise overlap the name of the part.
const ROOM_FOR_LABEL: f64 = 1.4;
/// Least distance of a line from the top of the plot that leaves room for its label above it; otherwise it is below.
const LABEL_ABOVE_MIN: f64 = 12.0;

/// The vertical axis. A share ends at 100 %.
fn vertical(metric: SeriesMetric, values: impl Iterator<Item = f64>) -> Scale {
    let scale = Scale::from_zero(values, PLOT_Y.0, PLOT_Y.1);
    match metric {
        SeriesMetric::MissRate | SeriesMetric::CpuShare => scale.ending_at(1.0),
        SeriesMetric::Iops | SeriesMetric::EffectiveSleep => scale,
    }
}

fn end_ns(part: &WaitPart) -> u64 {
    part.start_ns + part.length_ns
}

fn panel(view: &View<'_>, series: &WaitSeries, metric: SeriesMetric) -> Markup {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let length = series.parts.iter().map(end_ns).max().unwrap_or(1);
    let x = Scale::linear(0.0, seconds(length), 0.5, 99.5);
    let levels =
        || series.parts.iter().flat_map(|part| part.published.iter().map(move |level| (part, level)));
    let shown =
        || levels().filter(|(_, it)| it.published.metric == metric && it.published.of != LevelOf::First);
    let values = series.points.iter().map(|point| point.figures.get(metric));
    let levels_with_room = shown().map(|(_, it)| it.published.level * ROOM_FOR_LABEL);
    let y = vertical(metric, values.chain(levels_with_room));
    let written = wait_series::written(metric);
    let mut canvas = Canvas::fluid(HEIGHT);
    for tick in y.ticks(4.0) {
        canvas.line("grid", [0.0, y.at(tick), 100.0, y.at(tick)]);
    }
    for part in &series.parts {
        let (from, to) = (x.at(seconds(part.start_ns)), x.at(seconds(end_ns(part))));
        canvas.line("grid", [from, PLOT_Y.1, from, PLOT_Y.0]);
        canvas.text("tick", from, PLOT_Y.0 + 16.0, Anchor::Start, &format!("{} s", seconds(part.start_ns)));
        name_part(&mut canvas, &wait_series::part(view, series.kind, part), (from, to));
    }
    for (part, level) in shown() {
        let at = y.at(level.published.level);
        let (from, to) = (x.at(seconds(part.start_ns)), x.at(seconds(end_ns(part))));
        canvas.line("boundary", [from, at, to, at]);
        let label_y = if at < PLOT_Y.1 + LABEL_ABOVE_MIN { at + 12.0 } else { at - 3.0 };
        canvas.text("tick halo wide", from + 0.5, label_y, Anchor::Start, &wait_series::level(view, level));
    }
    for part in &series.parts {
        curve(&mut canvas, (view, series, part), metric, (&x, &y));
    }
    let title = wait_series::name(view, metric);
    let whole: Vec<String> = series
        .parts
        .iter()
        .map(|part| {
            part.figures.map_or_else(|| format::ABSENT.to_owned(), |it: WaitFigures| written(it.get(metric)))
        })
        .collect();
    let label = format!("{title}{}{}", view.language.colon(), whole.join(" · "));
    html! {
        p.tick { (label) }
        (framed(HEIGHT, &y, written, &canvas.finish()))
    }
}

/// The name of a part, if there is room for it.
fn name_part(canvas: &mut Canvas, name: &str, (from, to): (f64, f64)) {
    let [narrow, usual] = WIDTHS.map(|width| text_width(name) + 6.0 < (to - from) / 100.0 * width);
    if usual {
        let class = if narrow { "tick" } else { "tick wide" };
        canvas.text(class, f64::midpoint(from, to), NAMES_Y, Anchor::Middle, name);
    }
}

/// The measurements of a part. Parts are not connected, because something was changed between them.
fn curve(
    canvas: &mut Canvas,
    (view, series, part): (&View<'_>, &WaitSeries, &WaitPart),
    metric: SeriesMetric,
    (x, y): (&Scale, &Scale),
) {
    let own = series.points.iter().filter(|it| (part.start_ns..end_ns(part)).contains(&it.at_ns));
    let points: Vec<(f64, f64)> =
        own.map(|it| (x.at(it.at_ns as f64 / 1e9), y.at(it.figures.get(metric)))).collect();
    let color = arm_class(view.arm_index(&part.arm));
    canvas.polyline(&format!("{color} curve"), &points);
    let name = wait_series::part(view, series.kind, part);
    canvas.dots(&format!("{color} point"), 2.0, points.into_iter(), &name);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_ends_at_a_hundred_per_cent_and_other_figures_have_room_for_their_labels() {
        let ticks = |metric, largest: f64| vertical(metric, [largest].into_iter()).ticks(4.0);
        for largest in [0.9 * ROOM_FOR_LABEL, ROOM_FOR_LABEL, 1e9] {
            let ticks = ticks(SeriesMetric::CpuShare, largest);
            assert_eq!(ticks.last().copied(), Some(1.0), "{largest}: {ticks:?}");
        }
        let small = vertical(SeriesMetric::MissRate, [0.1].into_iter());
        assert!(small.contains(0.1) && !small.contains(0.2), "a small share has an axis of its size");
        assert!(vertical(SeriesMetric::Iops, [1.4].into_iter()).contains(1.4));
    }
}
