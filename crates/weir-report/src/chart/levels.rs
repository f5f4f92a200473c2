//! Figures of arms at levels of a factor: a line for each arm, with the intervals of its points. Levels are in order
//! and equally spaced, because they are chosen conditions; thus 1 and 4,000 connections fit on a phone. A lower bound
//! has a hollow mark, and an interval that extends beyond the chart has an arrow. Rounds may be drawn behind their
//! figure.

use std::collections::BTreeSet;

use maud::{Markup, html};
use weir_record::figure::Figure;

use super::{
    GUTTER,
    canvas::{Anchor, Canvas, Heading, arm_class, swatch, text_width},
    framed, gutter,
    scale::Scale,
};
use crate::{display, format, overview, view::View};

const HEIGHT: f64 = 260.0;
const PLOT_Y: (f64, f64) = (214.0, 14.0);

/// Arms are next to each other at a level, so that none hides another: their distance as a part of the width.
const ARM_STEP: f64 = 1.6;

/// Minimum distance of labels, in per cent: room for one on the narrowest screen.
const LABEL_STEP: f64 = 12.0;

/// Smallest range of the vertical axis of shares close to one.
const SHARE_SPAN_MIN: f64 = 0.001;

/// How far an interval may stretch an axis from zero: this many times the largest figure. A wider one is cut, or it
/// would leave the figures no height.
const REACH_MAX: f64 = 2.0;

/// The same on an axis of factors, beyond the largest figure and below the least.
const REACH_FACTOR_MAX: f64 = 10.0;

/// Most rounds drawn at a level; a row of dots is full long before.
const UNITS_MAX: usize = 60;

/// An arm's figure at a level.
pub(crate) struct Point {
    pub arm: String,
    pub level: u64,
    pub figure: Figure,
    /// Whether it is a lower bound.
    pub is_bound: bool,
}

/// The values behind an arm's figure at a level.
pub(crate) struct Raw {
    pub arm: String,
    pub level: u64,
    /// One for each round or block.
    pub units: Vec<f64>,
}

/// Start and scale of a vertical axis.
#[derive(Clone, Copy)]
pub(crate) enum Axis {
    /// From zero, linear.
    FromZero,
    /// Logarithmic.
    Factors,
    /// Logarithmic around one.
    Ratios,
    /// Shares of at most one: starts just below the smallest.
    ToOne,
}

/// The contents of the chart.
pub(crate) struct Levels<'v> {
    /// The factor; empty if several charts share its name.
    pub factor: &'v str,
    /// Levels that the study has; those of the points are added. One without a point is a gap in the line.
    pub levels: Vec<u64>,
    pub points: Vec<Point>,
    /// Figures of charts beside this one: all of them get one vertical axis.
    pub beside: Vec<Figure>,
    /// Drawn behind them; empty for none.
    pub raw: Vec<Raw>,
    pub axis: Axis,
    /// Formats a figure in full, and as a tick.
    pub text: fn(f64) -> String,
    pub tick: fn(f64) -> String,
    /// Position of a reference line.
    pub ideal: Option<f64>,
}

/// The chart with its legend of the arms that have points.
pub(crate) fn levels(view: &View<'_>, of: &Levels<'_>) -> Markup {
    html! { (legend(view, &arms(view, of))) (without_legend(view, of)) }
}

/// Arms with their markers.
pub(super) fn legend(view: &View<'_>, arms: &[&str]) -> Markup {
    html! { ul.legend { @for arm in arms { li { (swatch(view.arm_index(arm))) " " (arm) } } } }
}

fn arms<'v>(view: &View<'v>, of: &Levels<'_>) -> Vec<&'v str> {
    let has_points = |arm: &&&str| of.points.iter().any(|point| point.arm == ***arm);
    view.arms.iter().filter(has_points).copied().collect()
}

/// The chart without a legend, for charts that share one.
pub(super) fn without_legend(view: &View<'_>, of: &Levels<'_>) -> Markup {
    html! {
        (draw(view, of, &arms(view, of)))
        @if of.points.iter().any(|point| point.is_bound) { p.hint { (view.language.choose(BOUND)) } }
        @if of.points.iter().any(|point| goes_on(point, reach(of)) != (false, false)) {
            p.hint { (view.language.choose(GOES_ON)) }
        }
    }
}

const BOUND: [&str; 3] = [
    "A hollow mark is a lower bound: the generator was the limit in some of its cells, and the server may do more.",
    "속이 빈 표식은 하한입니다. 일부 조건에서 부하 생성기가 한계였으므로 서버는 더 처리할 수 있습니다.",
    "空心标记为下限：在部分条件下，瓶颈是负载生成器，服务器可能处理更多。",
];

const GOES_ON: [&str; 3] = [
    "An arrow: the interval goes on beyond the chart; the table has its ends, where they say something.",
    "화살표는 신뢰구간이 차트 밖까지 이어진다는 뜻입니다. 정확한 값은 표를 보십시오.",
    "箭头表示区间超出图的范围，具体数值见表。",
];

/// Width of an image that stands alone, and of the margin at its right.
pub(crate) const ALONE_WIDTH: f64 = 760.0;
const ALONE_MARGIN: f64 = 16.0;

/// Height of a line of the legend, and the widths of a mark and of the space between two entries.
const LEGEND_LINE: f64 = 22.0;
const LEGEND_MARK: f64 = 18.0;
const LEGEND_SPACE: f64 = 22.0;

/// Most columns of an arm's name in the legend.
const LEGEND_COLUMNS_MAX: usize = 48;

/// The chart as a part of an image that stands alone: its legend and its plot from `top` on, and where they end.
pub(crate) fn alone(view: &View<'_>, of: &Levels<'_>, top: f64) -> (Markup, f64) {
    let arms = arms(view, of);
    let mut legend = Canvas::new(ALONE_WIDTH);
    let (mut x, mut y) = (ALONE_MARGIN, LEGEND_LINE / 2.0);
    for arm in &arms {
        let name = display::plain_name(arm, LEGEND_COLUMNS_MAX);
        let width = LEGEND_MARK + text_width(&name);
        if x > ALONE_MARGIN && x + width > ALONE_WIDTH - ALONE_MARGIN {
            (x, y) = (ALONE_MARGIN, y + LEGEND_LINE);
        }
        let index = view.arm_index(arm);
        legend.marker(&format!("{} mark", arm_class(index)), index, (x + 6.0, y), 9.0, "");
        legend.text("", x + LEGEND_MARK, y + 4.5, Anchor::Start, &name);
        x += width + LEGEND_SPACE;
    }
    let legend_height = y + LEGEND_LINE / 2.0 + 4.0;
    legend.set_height(legend_height);
    let (plot, scale) = plotted(view, of, &arms);
    let (across, plot_top) = (ALONE_WIDTH - GUTTER - ALONE_MARGIN, top + legend_height);
    let drawn = html! {
        svg y=(top) width=(ALONE_WIDTH) height=(legend_height) { (legend.finish()) }
        svg y=(plot_top) width=(GUTTER) height=(HEIGHT) { (gutter(HEIGHT, &scale, of.tick)) }
        svg x=(GUTTER) y=(plot_top) width=(across) height=(HEIGHT) { (plot) }
    };
    (drawn, plot_top + HEIGHT)
}

fn draw(view: &View<'_>, of: &Levels<'_>, arms: &[&str]) -> Markup {
    let (plot, scale) = plotted(view, of, arms);
    framed(HEIGHT, &scale, of.tick, &plot)
}

/// The fluid plot, and its vertical scale.
fn plotted(view: &View<'_>, of: &Levels<'_>, arms: &[&str]) -> (Markup, Scale) {
    let levels: BTreeSet<u64> =
        of.points.iter().map(|it| it.level).chain(of.levels.iter().copied()).collect();
    let levels: Vec<u64> = levels.into_iter().collect();
    let last = levels.len().saturating_sub(1);
    let across = Scale::linear(0.0, last as f64, 8.0, 92.0);
    let x = |index: usize| if last == 0 { 50.0 } else { across.at(index as f64) };
    let y = vertical(of);
    let mut canvas = Canvas::fluid(HEIGHT);
    for tick in y.ticks(4.0) {
        canvas.line("grid", [0.0, y.at(tick), 100.0, y.at(tick)]);
    }
    if let Some(ideal) = of.ideal {
        canvas.line("one", [0.0, y.at(ideal), 100.0, y.at(ideal)]);
    }
    let mut labelled = f64::NEG_INFINITY;
    for (index, level) in levels.iter().enumerate() {
        if x(index) - labelled >= LABEL_STEP {
            labelled = x(index);
            canvas.text("tick", x(index), PLOT_Y.0 + 18.0, Anchor::Middle, &format::count(*level));
        }
    }
    for (place, arm) in arms.iter().enumerate() {
        let beside = (place as f64 - (arms.len() as f64 - 1.0) / 2.0) * ARM_STEP;
        let at = |level: usize| x(level) + beside;
        line(&mut canvas, view.arm_index(arm), of, (*arm, &y), (&levels, &at));
    }
    if !of.factor.is_empty() {
        canvas.text("tick", 100.0, HEIGHT - 6.0, Anchor::End, &format!("{} →", of.factor));
    }
    (canvas.finish(), y)
}

/// The figures that the vertical axis is for.
fn drawn(of: &Levels<'_>) -> impl Iterator<Item = Figure> {
    of.points.iter().map(|point| point.figure).chain(of.beside.iter().copied())
}

/// The smallest and the largest value that the axis shows of intervals.
fn reach(of: &Levels<'_>) -> (f64, f64) {
    let figures = drawn(of).map(|figure| figure.value).chain(of.ideal);
    let figures = figures.filter(|figure| figure.is_finite() && *figure > 0.0);
    let (least, most) = figures.fold((f64::INFINITY, 0.0), |(least, most), figure| {
        (f64::min(least, figure), f64::max(most, figure))
    });
    match of.axis {
        Axis::FromZero if most > 0.0 => (f64::NEG_INFINITY, most * REACH_MAX),
        Axis::Factors | Axis::Ratios if most > 0.0 => (least / REACH_FACTOR_MAX, most * REACH_FACTOR_MAX),
        Axis::FromZero | Axis::Factors | Axis::Ratios | Axis::ToOne => (f64::NEG_INFINITY, f64::INFINITY),
    }
}

/// Whether an interval extends below the axis, and above it.
fn goes_on(point: &Point, (least, most): (f64, f64)) -> (bool, bool) {
    point.figure.interval.map_or((false, false), |(low, high)| (low < least, high > most))
}

fn vertical(of: &Levels<'_>) -> Scale {
    let (least, most) = reach(of);
    let ends = |figure: Figure| {
        let (low, high) = figure.interval.unwrap_or((figure.value, figure.value));
        [figure.value, low.clamp(least, most), high.clamp(least, most)]
    };
    let values = || drawn(of).flat_map(ends).chain(of.ideal);
    match of.axis {
        Axis::FromZero => Scale::from_zero(values(), PLOT_Y.0, PLOT_Y.1),
        Axis::Factors => Scale::logarithmic(values(), PLOT_Y.0, PLOT_Y.1),
        Axis::Ratios => Scale::ratios(values(), PLOT_Y.0, PLOT_Y.1),
        Axis::ToOne => {
            let least = values().filter(|it| it.is_finite()).fold(1.0 - SHARE_SPAN_MIN, f64::min);
            Scale::linear(1.0 - 1.1 * (1.0 - least), 1.0, PLOT_Y.0, PLOT_Y.1)
        }
    }
}

/// The points of an arm, their intervals, and the lines between them.
fn line(
    canvas: &mut Canvas,
    index: usize,
    of: &Levels<'_>,
    (arm, y): (&str, &Scale),
    (levels, x): (&[u64], &dyn Fn(usize) -> f64),
) {
    let color = arm_class(index);
    let place = |level: u64| levels.binary_search(&level).unwrap_or_default();
    let mut own: Vec<&Point> = of.points.iter().filter(|point| point.arm == arm).collect();
    own.sort_by_key(|point| point.level);
    let at = |point: &&Point| (x(place(point.level)), y.at(point.figure.value));
    for raw in of.raw.iter().filter(|raw| raw.arm == arm) {
        let x = x(place(raw.level));
        let dots = raw.units.iter().take(UNITS_MAX).map(|unit| (x, y.at(*unit)));
        canvas.dots(&format!("{color} point"), 1.8, dots, "");
    }
    // Neighbouring levels are joined. A line over a level without a figure would claim one.
    for joined in own.chunk_by(|one, next| place(next.level) <= place(one.level) + 1) {
        canvas.polyline(&format!("{color} curve"), &joined.iter().map(at).collect::<Vec<_>>());
    }
    for point in &own {
        let at = at(point);
        if let Some((low, high)) = point.figure.interval {
            canvas.line(&format!("{color} whisker"), [at.0, y.at(low), at.0, y.at(high)]);
            let (is_below, is_above) = goes_on(point, reach(of));
            if is_below {
                canvas.arrow("arrow", (at.0, y.at(low)), Heading::Down);
            }
            if is_above {
                canvas.arrow("arrow", (at.0, y.at(high)), Heading::Up);
            }
        }
        let (least, mark) = if point.is_bound { ("≥ ", "mark hollow") } else { ("", "mark") };
        let said = overview::figure(Some(point.figure), of.text);
        let title = format!("{arm} · {}: {least}{said}", format::count(point.level));
        canvas.marker(&format!("{color} {mark}"), index, at, 8.0, &title);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(level: u64, value: f64) -> Point {
        let figure = Figure { value, interval: None };
        Point { arm: "uring".to_owned(), level, figure, is_bound: false }
    }

    fn of(points: Vec<Point>, levels: Vec<u64>, beside: Vec<Figure>) -> Levels<'static> {
        let text = |ratio: f64| format::ratio(Some(ratio));
        let (raw, axis) = (Vec::new(), Axis::Ratios);
        Levels { factor: "", levels, points, beside, raw, axis, text, tick: text, ideal: Some(1.0) }
    }

    fn curve(of: &Levels<'_>) -> String {
        let mut canvas = Canvas::fluid(HEIGHT);
        let levels = [1, 10, 100, 1_000];
        let y = vertical(of);
        line(&mut canvas, 1, of, ("uring", &y), (&levels, &|place| place as f64 * 10.0));
        let drawn = canvas.finish().into_string();
        drawn.split("curve").skip(1).map(|it| it.split('>').next().unwrap_or_default()).collect()
    }

    #[test]
    fn a_level_without_a_figure_is_a_gap_in_the_line() {
        let points = |levels: &[u64]| levels.iter().map(|level| point(*level, 0.9)).collect::<Vec<_>>();
        let whole = of(points(&[1, 10, 100, 1_000]), Vec::new(), Vec::new());
        let gap = of(points(&[1, 10, 1_000]), vec![100], Vec::new());
        let begun = of(points(&[1, 10]), vec![100, 1_000], Vec::new());
        assert_eq!(curve(&gap), curve(&begun), "the last level stands alone");
        assert_ne!(curve(&gap), curve(&whole));
    }

    #[test]
    fn charts_beside_each_other_have_one_axis() {
        let near = || vec![point(1, 0.99), point(10, 1.01)];
        let far = Figure { value: 0.5, interval: None };
        let (alone, beside) =
            (vertical(&of(near(), Vec::new(), Vec::new())), vertical(&of(near(), Vec::new(), vec![far])));
        assert!(!alone.contains(0.5) && beside.contains(0.5));
    }
}
