//! A plane of two costs: families of methods as curves, lower left is better.

use maud::Markup;

use super::{
    canvas::{Anchor, Canvas, arm_class, text_width},
    scale::Scale,
};

const WIDTH: f64 = 620.0;
const HEIGHT: f64 = 380.0;
const PLOT_X: (f64, f64) = (64.0, 604.0);
const PLOT_Y: (f64, f64) = (330.0, 14.0);
/// Labels keep this distance.
const LABEL_STEP: f64 = 15.0;
/// Texts below the axis keep this one.
const TICK_STEP: f64 = 46.0;

/// A method.
pub(crate) struct PlanePoint {
    /// First cost.
    pub x: f64,
    /// Second cost.
    pub y: f64,
    /// Tooltip.
    pub title: String,
    /// Written beside the mark.
    pub label: Option<String>,
}

/// Methods that are joined, in the order of their parameter.
pub(crate) struct PlaneFamily {
    /// Colour and marker.
    pub style: usize,
    /// An oracle: hollow, and not joined.
    pub is_oracle: bool,
    /// The one everything is about: larger.
    pub is_candidate: bool,
    /// Methods.
    pub points: Vec<PlanePoint>,
}

/// The axes.
pub(crate) struct PlaneAxes<'a> {
    /// Below the first axis.
    pub x_title: &'a str,
    /// Above the second.
    pub y_title: &'a str,
    /// Text of a value on the first axis.
    pub x_tick: fn(f64) -> String,
    /// Text of a value on the second.
    pub y_tick: fn(f64) -> String,
    /// Whether the first axis is logarithmic; values below `x_min` land on it.
    pub x_min: Option<f64>,
}

/// The chart.
pub(crate) fn plane(axes: &PlaneAxes<'_>, families: &[PlaneFamily]) -> Markup {
    let points = || families.iter().flat_map(|family| &family.points);
    let xs = points().map(|point| point.x);
    let x = match axes.x_min {
        Some(least) => Scale::logarithmic(xs.map(|x| x.max(least)), PLOT_X.0, PLOT_X.1),
        None => Scale::from_zero(xs.chain([0.02]), PLOT_X.0, PLOT_X.1),
    };
    let y = Scale::from_zero(points().map(|point| point.y).chain([1.0]), PLOT_Y.0, PLOT_Y.1);
    let mut canvas = Canvas::new(WIDTH);
    canvas.set_height(HEIGHT);
    for tick in y.ticks(5.0) {
        canvas.line("grid", [PLOT_X.0, y.at(tick), PLOT_X.1, y.at(tick)]);
        canvas.text("tick", PLOT_X.0 - 8.0, y.at(tick) + 4.0, Anchor::End, &(axes.y_tick)(tick));
    }
    let mut free = f64::NEG_INFINITY;
    for tick in x.ticks(6.0) {
        canvas.line("grid", [x.at(tick), PLOT_Y.1, x.at(tick), PLOT_Y.0]);
        if x.at(tick) >= free {
            free = x.at(tick) + TICK_STEP;
            canvas.text("tick", x.at(tick), PLOT_Y.0 + 18.0, Anchor::Middle, &(axes.x_tick)(tick));
        }
    }
    canvas.text("tick", PLOT_X.1, HEIGHT - 10.0, Anchor::End, &format!("{} →", axes.x_title));
    canvas.text("tick", 4.0, 10.0, Anchor::Start, &format!("↑ {}", axes.y_title));
    for family in families {
        draw(&mut canvas, family, (&x, &y));
    }
    label(&mut canvas, families, (&x, &y));
    canvas.finish()
}

fn draw(canvas: &mut Canvas, family: &PlaneFamily, (x, y): (&Scale, &Scale)) {
    let color = arm_class(family.style);
    let at = |point: &PlanePoint| (x.at(point.x), y.at(point.y));
    if !family.is_oracle {
        let line: Vec<_> = family.points.iter().map(at).collect();
        canvas.polyline(&format!("{color} curve joined"), &line);
    }
    let (class, size) = match (family.is_oracle, family.is_candidate) {
        (true, _) => ("mark hollow", 11.0),
        (false, true) => ("mark", 13.0),
        (false, false) => ("mark", 8.5),
    };
    for point in &family.points {
        canvas.marker(&format!("{color} {class}"), family.style, at(point), size, &point.title);
    }
}

/// Names beside their marks, moved where they would overlap, on the side that has room.
fn label(canvas: &mut Canvas, families: &[PlaneFamily], (x, y): (&Scale, &Scale)) {
    let mut wanted: Vec<(f64, f64, &str, usize)> = families
        .iter()
        .flat_map(|family| family.points.iter().map(move |point| (family.style, point)))
        .filter_map(|(style, point)| Some((x.at(point.x), y.at(point.y), point.label.as_deref()?, style)))
        .filter(|(x, y, ..)| x.is_finite() && y.is_finite())
        .collect();
    wanted.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut taken: Vec<[f64; 4]> = Vec::new();
    for (x, y, text, style) in wanted {
        let width = text_width(text);
        let is_left = x + width + 16.0 > PLOT_X.1;
        let (start, anchor) =
            if is_left { (x - 11.0 - width, Anchor::End) } else { (x + 11.0, Anchor::Start) };
        let is_free = |baseline: &f64| {
            let inside = (LABEL_STEP..PLOT_Y.0 - 2.0).contains(baseline);
            let overlaps = |[left, top, right, bottom]: &[f64; 4]| {
                start < *right && start + width > *left && baseline - 11.0 < *bottom && *baseline > *top
            };
            inside && !taken.iter().any(overlaps)
        };
        // Beside the mark, then a step below, a step above, two below; a label without a place is in the tooltip.
        let steps = (0..2 * taken.len() as i32 + 2).map(|n| if n % 2 == 1 { (n + 1) / 2 } else { -n / 2 });
        let places = steps.map(|step| y + 4.0 + f64::from(step) * LABEL_STEP);
        let Some(baseline) = places.into_iter().find(is_free) else { continue };
        taken.push([start, baseline - 11.0, start + width, baseline]);
        let position = if is_left { x - 11.0 } else { x + 11.0 };
        canvas.text(&format!("{} label arm", arm_class(style)), position, baseline, anchor, text);
    }
}
