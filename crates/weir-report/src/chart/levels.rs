//! Figures of arms at levels of a factor: a line for each arm, with the intervals of its points. Levels are in order
//! and equally spaced, because they are chosen conditions; thus 1 and 4,000 connections fit on a phone. A lower bound
//! has a hollow mark, and an interval that extends beyond the chart has an arrow. Rounds may be drawn behind their
//! figure.

use std::collections::BTreeSet;

use maud::{Markup, html};
use weir_record::figure::Figure;

use super::{
    canvas::{Anchor, Canvas, Heading, arm_class, swatch},
    framed,
    scale::Scale,
};
use crate::{format, overview, view::View};

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
    pub points: Vec<Point>,
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

fn draw(view: &View<'_>, of: &Levels<'_>, arms: &[&str]) -> Markup {
    let levels: Vec<u64> = of.points.iter().map(|it| it.level).collect::<BTreeSet<_>>().into_iter().collect();
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
        let at = |level: &u64| levels.binary_search(level).map_or(f64::NAN, |index| x(index) + beside);
        line(&mut canvas, view.arm_index(arm), of, (*arm, &y), at);
    }
    if !of.factor.is_empty() {
        canvas.text("tick", 100.0, HEIGHT - 6.0, Anchor::End, &format!("{} →", of.factor));
    }
    framed(HEIGHT, &y, of.tick, &canvas.finish())
}

/// The smallest and the largest value that the axis shows of intervals.
fn reach(of: &Levels<'_>) -> (f64, f64) {
    let figures = of.points.iter().map(|point| point.figure.value).chain(of.ideal);
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
    let ends = |point: &Point| {
        let (low, high) = point.figure.interval.unwrap_or((point.figure.value, point.figure.value));
        [point.figure.value, low.clamp(least, most), high.clamp(least, most)]
    };
    let values = || of.points.iter().flat_map(ends).chain(of.ideal);
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
    at: impl Fn(&u64) -> f64,
) {
    let color = arm_class(index);
    let mut own: Vec<&Point> = of.points.iter().filter(|point| point.arm == arm).collect();
    own.sort_by_key(|point| point.level);
    let joined: Vec<(f64, f64)> =
        own.iter().map(|point| (at(&point.level), y.at(point.figure.value))).collect();
    for raw in of.raw.iter().filter(|raw| raw.arm == arm) {
        let x = at(&raw.level);
        let dots = raw.units.iter().take(UNITS_MAX).map(|unit| (x, y.at(*unit)));
        canvas.dots(&format!("{color} point"), 1.8, dots, "");
    }
    canvas.polyline(&format!("{color} curve"), &joined);
    for (point, at) in own.iter().zip(&joined) {
        if let Some((low, high)) = point.figure.interval {
            canvas.line("whisker", [at.0, y.at(low), at.0, y.at(high)]);
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
        canvas.marker(&format!("{color} {mark}"), index, *at, 8.0, &title);
    }
}
