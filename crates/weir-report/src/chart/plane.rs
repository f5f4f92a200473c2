//! A plane of two costs: families of ways to wait as curves, and the frontier; lower left is better.

use maud::Markup;

use super::{
    canvas::{Anchor, Canvas, arm_class, text_width},
    scale::Scale,
};

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 340.0;
const PLOT_X: (f64, f64) = (52.0, 466.0);
const PLOT_Y: (f64, f64) = (292.0, 22.0);
/// Minimum distance of labels.
const LABEL_STEP: f64 = 15.0;
/// Minimum distance of texts below the axis.
const TICK_STEP: f64 = 46.0;

/// A way to wait.
pub(crate) struct PlanePoint {
    /// First cost.
    pub x: f64,
    /// Second cost.
    pub y: f64,
    /// Tooltip.
    pub title: String,
    /// Label next to the mark.
    pub label: String,
    /// Whether it is on the frontier.
    pub is_on_frontier: bool,
}

/// Ways that differ in a parameter, from left to right, connected by a line.
pub(crate) struct PlaneFamily {
    /// Colour and marker.
    pub style: usize,
    /// An oracle: hollow, and not connected.
    pub is_oracle: bool,
    /// The candidate: larger.
    pub is_candidate: bool,
    /// From left to right.
    pub points: Vec<PlanePoint>,
}

/// Smallest range of the first axis: smaller differences are drawn close together.
const MISSES_MIN: f64 = 0.02;

/// The chart, with the titles of the first axis (below) and the second (above). Both are shares.
pub(crate) fn plane((x_title, y_title): (&str, &str), families: &[PlaneFamily]) -> Markup {
    let points = || families.iter().flat_map(|family| &family.points);
    let x = Scale::from_zero(points().map(|point| point.x).chain([MISSES_MIN]), PLOT_X.0, PLOT_X.1);
    let y = Scale::from_zero(points().map(|point| point.y).chain([1.0]), PLOT_Y.0, PLOT_Y.1);
    let mut canvas = Canvas::new(WIDTH);
    canvas.set_height(HEIGHT);
    for tick in y.ticks(5.0) {
        canvas.line("grid", [PLOT_X.0, y.at(tick), PLOT_X.1, y.at(tick)]);
        canvas.text("tick", PLOT_X.0 - 8.0, y.at(tick) + 4.0, Anchor::End, &percent(tick));
    }
    let mut free = f64::NEG_INFINITY;
    for tick in x.ticks(6.0) {
        canvas.line("grid", [x.at(tick), PLOT_Y.1, x.at(tick), PLOT_Y.0]);
        if x.at(tick) >= free {
            free = x.at(tick) + TICK_STEP;
            canvas.text("tick", x.at(tick), PLOT_Y.0 + 18.0, Anchor::Middle, &percent(tick));
        }
    }
    canvas.text("tick", PLOT_X.1, HEIGHT - 8.0, Anchor::End, &format!("{x_title} →"));
    canvas.text("tick", 4.0, 12.0, Anchor::Start, &format!("↑ {y_title}"));
    let on_frontier: Vec<&PlanePoint> = points().filter(|point| point.is_on_frontier).collect();
    canvas.polyline("frontier", &steps(on_frontier, (&x, &y)));
    for family in families {
        draw(&mut canvas, family, (&x, &y));
    }
    label(&mut canvas, families, (&x, &y));
    canvas.finish()
}

fn percent(share: f64) -> String {
    format!("{} %", (share * 1e4).round() / 1e2)
}

/// The frontier as steps: from each of its points to the right, and down at the next.
fn steps(mut points: Vec<&PlanePoint>, (x, y): (&Scale, &Scale)) -> Vec<(f64, f64)> {
    points.sort_by(|a, b| a.x.total_cmp(&b.x).then(b.y.total_cmp(&a.y)));
    let mut line: Vec<(f64, f64)> = Vec::new();
    for point in points {
        let at = (x.at(point.x), y.at(point.y));
        line.extend(line.last().map(|before| (at.0, before.1)));
        line.push(at);
    }
    line.extend(line.last().map(|last| (PLOT_X.1, last.1)));
    line
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

/// Most steps up or down between a label and its mark.
const STEPS_MAX: i32 = 3;

/// Names next to their marks, moved where they would overlap, on the side with room: first the candidate's, then
/// those of whole families. A label that does not fit is in the tooltip and in the table.
fn label(canvas: &mut Canvas, families: &[PlaneFamily], (x, y): (&Scale, &Scale)) {
    let rank = |family: &PlaneFamily| (!family.is_candidate, family.points.len() > 1);
    let mut ordered: Vec<&PlaneFamily> = families.iter().collect();
    ordered.sort_by_key(|family| rank(family));
    let points = ordered.iter().flat_map(|family| family.points.iter().map(|point| (family.style, point)));
    let mut taken: Vec<[f64; 4]> = Vec::new();
    for (style, point) in points {
        let (x, y, text) = (x.at(point.x), y.at(point.y), point.label.as_str());
        let width = text_width(text);
        let is_left = x + width + 16.0 > PLOT_X.1;
        let (start, anchor) =
            if is_left { (x - 11.0 - width, Anchor::End) } else { (x + 11.0, Anchor::Start) };
        let is_free = |baseline: &f64| {
            let inside = (PLOT_Y.1 + 4.0..PLOT_Y.0 - 2.0).contains(baseline);
            let overlaps = |[left, top, right, bottom]: &[f64; 4]| {
                start < *right && start + width > *left && baseline - 11.0 < *bottom && *baseline > *top
            };
            inside && !taken.iter().any(overlaps)
        };
        // Next to the mark, then a step below, a step above, two below.
        let steps = (0..=2 * STEPS_MAX).map(|n| if n % 2 == 1 { (n + 1) / 2 } else { -n / 2 });
        let places = steps.map(|step| y + 4.0 + f64::from(step) * LABEL_STEP);
        let Some(baseline) = places.into_iter().find(is_free) else { continue };
        taken.push([start, baseline - 11.0, start + width, baseline]);
        let position = if is_left { x - 11.0 } else { x + 11.0 };
        canvas.text(&format!("{} label arm", arm_class(style)), position, baseline, anchor, text);
    }
}
