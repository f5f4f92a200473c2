//! Lines over one horizontal axis, in panels one above the other.

use maud::Markup;

use super::{
    canvas::{Anchor, Canvas, arm_class},
    scale::Scale,
};

const WIDTH: f64 = 1040.0;
const PLOT_X: (f64, f64) = (84.0, 836.0);
const PANEL: f64 = 168.0;
const GAP: f64 = 40.0;
const TOP: f64 = 34.0;
const AXIS: f64 = 44.0;
/// Labels at line ends keep this distance.
const LABEL_STEP: f64 = 16.0;

/// One line.
pub(crate) struct PanelLine {
    /// Colour and marker.
    pub style: usize,
    /// At its end.
    pub name: String,
    /// A level that others are compared with, without marks.
    pub is_level: bool,
    /// Whether points are marked.
    pub has_marks: bool,
    /// Points by the horizontal axis.
    pub points: Vec<(f64, f64)>,
}

/// One panel.
pub(crate) struct Panel {
    /// Above it.
    pub title: String,
    /// Text of a value.
    pub tick: fn(f64) -> String,
    /// Lines.
    pub lines: Vec<PanelLine>,
}

/// The horizontal axis of all panels.
pub(crate) struct PanelAxis {
    /// First and last value.
    pub ends: (f64, f64),
    /// Values with their texts.
    pub ticks: Vec<(f64, String)>,
    /// Below.
    pub title: String,
    /// From, to, name.
    pub spans: Vec<(f64, f64, String)>,
}

/// The chart.
pub(crate) fn panels(axis: &PanelAxis, panels: &[Panel]) -> Markup {
    let x = Scale::linear(axis.ends.0, axis.ends.1, PLOT_X.0, PLOT_X.1);
    let bottom = TOP + panels.len() as f64 * (PANEL + GAP) - GAP;
    let mut canvas = Canvas::new(WIDTH);
    canvas.set_height(bottom + AXIS);
    for (index, (from, to, name)) in axis.spans.iter().enumerate() {
        let shade = if index % 2 == 0 { "run" } else { "run other" };
        canvas.rect(shade, [x.at(*from), TOP, x.at(*to) - x.at(*from), bottom - TOP], name);
        let middle = f64::midpoint(x.at(*from), x.at(*to));
        canvas.text("label strong", middle, 14.0, Anchor::Middle, name);
    }
    for (value, text) in &axis.ticks {
        canvas.line("grid", [x.at(*value), TOP, x.at(*value), bottom]);
        canvas.text("tick", x.at(*value), bottom + 17.0, Anchor::Middle, text);
    }
    canvas.text("tick", PLOT_X.1, bottom + 36.0, Anchor::End, &format!("{} →", axis.title));
    for (index, panel) in panels.iter().enumerate() {
        let top = TOP + index as f64 * (PANEL + GAP);
        draw(&mut canvas, panel, &x, (top + PANEL, top));
    }
    canvas.finish()
}

fn draw(canvas: &mut Canvas, panel: &Panel, x: &Scale, (bottom, top): (f64, f64)) {
    let values = panel.lines.iter().flat_map(|line| &line.points).map(|(_, value)| *value);
    let y = Scale::from_zero(values, bottom, top);
    for tick in y.ticks(4.0) {
        canvas.line("grid", [PLOT_X.0, y.at(tick), PLOT_X.1, y.at(tick)]);
        canvas.text("tick", PLOT_X.0 - 8.0, y.at(tick) + 4.0, Anchor::End, &(panel.tick)(tick));
    }
    canvas.text("tick strong", 4.0, top - 8.0, Anchor::Start, &panel.title);
    let mut labels = Vec::new();
    for line in &panel.lines {
        let color = arm_class(line.style);
        let points: Vec<_> = line.points.iter().map(|(at, value)| (x.at(*at), y.at(*value))).collect();
        let style = if line.is_level { "curve dashed" } else { "curve" };
        canvas.polyline(&format!("{color} {style}"), &points);
        if line.has_marks {
            for (point, (_, value)) in points.iter().zip(&line.points) {
                let title = format!("{}: {}", line.name, (panel.tick)(*value));
                canvas.marker(&format!("{color} mark"), line.style, *point, 8.0, &title);
            }
        }
        if let Some((_, end)) = points.last() {
            labels.push((*end, format!("{color} label arm"), line.name.as_str()));
        }
    }
    place(canvas, labels, bottom);
}

/// Puts names beside the line ends, pushed apart where they would overlap.
fn place(canvas: &mut Canvas, mut labels: Vec<(f64, String, &str)>, bottom: f64) {
    labels.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut free = f64::NEG_INFINITY;
    let count = labels.len();
    for (index, (end, class, name)) in labels.into_iter().enumerate() {
        let room_below = (count - 1 - index) as f64 * LABEL_STEP;
        let y = end.max(free).min(bottom - room_below);
        free = y + LABEL_STEP;
        canvas.text(&class, PLOT_X.1 + 12.0, y + 4.0, Anchor::Start, name);
    }
}
