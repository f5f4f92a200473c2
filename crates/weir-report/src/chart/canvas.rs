//! A drawing surface for marks. Text is escaped; a mark with a coordinate that is not finite is left out. A page has
//! tens of thousands of marks: common attributes are written once, and coordinates have no invisible digits.

use std::collections::BTreeSet;

use maud::{Markup, PreEscaped};

use crate::display;

/// Further arms reuse the colour of an earlier one, and differ by marker.
pub(crate) const ARM_STYLES: usize = 8;
const MARKER_SHAPES: usize = 5;

/// Pixels of one terminal column of text at the charts' font size, rounded up.
const PIXELS_PER_COLUMN: f64 = 7.3;

/// Units across a fluid image in which its lines and areas are drawn: one is about a pixel or less.
const UNITS_ACROSS: f64 = 1000.0;

/// The end of a path, before which more of it may be inserted.
const PATH_END: &str = r#""/>"#;

/// Where a text is anchored.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// Direction of an arrow.
#[derive(Clone, Copy)]
pub(super) enum Heading {
    Up,
    Down,
}

/// An SVG image under construction. A *scaled* one has a fixed width, and shrinks with all its text. A *fluid* one is
/// as wide as the page permits: its horizontal coordinates are per cent of that, and text and marks keep their size
/// on any screen. Lines and areas have no such size, and coordinates of a path cannot be per cent: they are drawn in
/// a separate image that is stretched, in which the style sheet keeps the stroke widths.
pub(super) struct Canvas {
    width: Option<f64>,
    height: f64,
    /// Areas, lines and dots, in drawing order.
    below: String,
    /// The class of the lines at the end of `below`; empty if it ends with something else.
    line: String,
    /// Texts and marks, above all lines.
    above: String,
}

/// Approximate pixels of a text.
pub(super) fn text_width(text: &str) -> f64 {
    display::columns(text) as f64 * PIXELS_PER_COLUMN
}

/// The class that gives a mark an arm's colour.
pub(super) fn arm_class(arm: usize) -> String {
    format!("a{}", arm % ARM_STYLES)
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            control if control.is_control() => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}

/// An element with its tooltip, if it has one.
fn element(name: &str, attributes: &str, title: &str) -> String {
    match title {
        "" => format!("<{name} {attributes}/>"),
        title => format!("<{name} {attributes}><title>{}</title></{name}>", escape(title)),
    }
}

/// Rounds to `steps` steps per unit. A zero never has a sign: `-0` would be valid too, but look odd.
fn rounded(value: f64, steps: f64) -> f64 {
    (value * steps).round() / steps + 0.0
}

fn tenth(value: f64) -> f64 {
    rounded(value, 10.0)
}

impl Canvas {
    pub(super) fn new(width: f64) -> Self {
        Canvas {
            width: Some(width),
            height: 0.0,
            below: String::new(),
            line: String::new(),
            above: String::new(),
        }
    }

    pub(super) fn fluid(height: f64) -> Self {
        Canvas { width: None, height, ..Canvas::new(0.0) }
    }

    /// A horizontal coordinate of a text or a mark.
    fn place(&self, value: f64) -> String {
        match self.width {
            Some(_) => tenth(value).to_string(),
            None => format!("{}%", rounded(value, 100.0)),
        }
    }

    /// A horizontal coordinate, or a width, of what is drawn below texts and marks.
    fn across(&self, value: f64) -> f64 {
        if self.width.is_some() { value } else { value * UNITS_ACROSS / 100.0 }
    }

    /// Sets the height, once all rows are laid out.
    pub(super) fn set_height(&mut self, height: f64) {
        self.height = height;
    }

    pub(super) fn line(&mut self, class: &str, [x1, y1, x2, y2]: [f64; 4]) {
        self.polyline(class, &[(x1, y1), (x2, y2)]);
    }

    pub(super) fn rect(&mut self, class: &str, [x, y, width, height]: [f64; 4], title: &str) {
        if [x, y, width, height].iter().all(|value| value.is_finite()) {
            let [x, width] = [x, width.max(0.0)].map(|value| tenth(self.across(value)));
            let [y, height] = [y, height.max(0.0)].map(tenth);
            let place = format!(r#"x="{x}" y="{y}" width="{width}" height="{height}""#);
            self.put_below(&element("rect", &format!(r#"class="{class}" {place}"#), title));
        }
    }

    pub(super) fn text(&mut self, class: &str, x: f64, y: f64, anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => r#" text-anchor="middle""#,
            Anchor::End => r#" text-anchor="end""#,
        };
        if x.is_finite() && y.is_finite() {
            let (x, y, text) = (self.place(x), tenth(y), escape(text));
            self.above.push_str(&format!(r#"<text class="{class}" x="{x}" y="{y}"{anchor}>{text}</text>"#));
        }
    }

    pub(super) fn dot(&mut self, class: &str, x: f64, y: f64, radius: f64, title: &str) {
        if x.is_finite() && y.is_finite() {
            let (x, y, radius) = (self.place(x), tenth(y), tenth(radius));
            let attributes = format!(r#"class="{class}" cx="{x}" cy="{y}" r="{radius}""#);
            self.above.push_str(&element("circle", &attributes, title));
        }
    }

    /// Dots as one path with one title: nearly zero-length lines, whose round ends are visible. Indistinguishable
    /// dots are merged. The standard also permits zero length, but not every browser draws it.
    pub(super) fn dots(
        &mut self,
        class: &str,
        radius: f64,
        places: impl Iterator<Item = (f64, f64)>,
        title: &str,
    ) {
        let one = |(x, y): (f64, f64)| format!("M{} {}h.01", rounded(self.across(x), 1.0), tenth(y));
        let places = places.filter(|(x, y)| x.is_finite() && y.is_finite());
        let path = places.map(one).collect::<BTreeSet<String>>().into_iter().collect::<String>();
        if !path.is_empty() {
            let width = tenth(2.0 * radius);
            let attributes = format!(r#"class="{class}" stroke-width="{width}" d="{path}""#);
            self.put_below(&element("path", &attributes, title));
        }
    }

    /// A line through points; points that are not finite are skipped.
    pub(super) fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        let finite = points.iter().filter(|(x, y)| x.is_finite() && y.is_finite());
        let points: Vec<(f64, f64)> = finite.map(|(x, y)| (tenth(self.across(*x)), tenth(*y))).collect();
        let Some((first, rest)) = points.split_first().filter(|(_, rest)| !rest.is_empty()) else { return };
        let mut path = format!("M{} {}", first.0, first.1);
        for (from, to) in points.iter().zip(rest) {
            path.push_str(&match to {
                (x, y) if *x == from.0 => format!("V{y}"),
                (x, y) if *y == from.1 => format!("H{x}"),
                (x, y) => format!("L{x} {y}"),
            });
        }
        self.stroke(class, &path);
    }

    /// Consecutive lines of a class become one path.
    fn stroke(&mut self, class: &str, path: &str) {
        if self.line == class {
            self.below.truncate(self.below.len() - PATH_END.len());
        } else {
            self.below.push_str(&format!(r#"<path class="{class}" d=""#));
            class.clone_into(&mut self.line);
        }
        self.below.push_str(path);
        self.below.push_str(PATH_END);
    }

    /// An arm's marker.
    pub(super) fn marker(&mut self, class: &str, arm: usize, (x, y): (f64, f64), size: f64, title: &str) {
        if !(x.is_finite() && y.is_finite()) {
            return;
        }
        match self.width {
            Some(_) => self.above.push_str(&marker(class, arm, (x, y), size, title)),
            // A circle's position may be in per cent, a path must be in an image positioned that way.
            None if arm.is_multiple_of(MARKER_SHAPES) => self.dot(class, x, y, size / 2.0, title),
            None => self.put_at((x, y), &marker(class, arm, (0.0, 0.0), size, title)),
        }
    }

    /// An arrowhead with its tip here: the interval continues beyond the chart.
    pub(super) fn arrow(&mut self, class: &str, (x, y): (f64, f64), heading: Heading) {
        if !(x.is_finite() && y.is_finite()) {
            return;
        }
        let path = match heading {
            Heading::Up => "M-4.5 8L0 0L4.5 8z",
            Heading::Down => "M-4.5 -8L0 0L4.5 -8z",
        };
        self.put_at((x, y), &element("path", &format!(r#"class="{class}" d="{path}""#), ""));
    }

    fn put_below(&mut self, element: &str) {
        self.line.clear();
        self.below.push_str(element);
    }

    fn put_at(&mut self, (x, y): (f64, f64), element: &str) {
        let (x, y) = (self.place(x), tenth(y));
        self.above.push_str(&format!(r#"<svg x="{x}" y="{y}">{element}</svg>"#));
    }

    pub(super) fn finish(self) -> Markup {
        let Canvas { width, height, below, above, .. } = self;
        let (size, below) = match width {
            Some(width) => (format!(r#"viewBox="0 0 {width:.0} {height:.0}" width="{width:.0}""#), below),
            None if below.is_empty() => (r#"width="100%""#.to_owned(), below),
            None => {
                let size = format!(r#"viewBox="0 0 {UNITS_ACROSS} {height:.0}" preserveAspectRatio="none""#);
                (r#"width="100%""#.to_owned(), format!("<svg {size}>{below}</svg>"))
            }
        };
        PreEscaped(format!(r#"<svg {size} height="{height:.0}">{below}{above}</svg>"#))
    }
}

fn marker(class: &str, arm: usize, (x, y): (f64, f64), size: f64, title: &str) -> String {
    let [x, y, left, top, bottom] = [x, y, x - size / 2.0, y - size / 2.0, y + size / 2.0].map(tenth);
    let [size, half] = [size, size / 2.0].map(tenth);
    let path = match arm % MARKER_SHAPES {
        0 => {
            let attributes = format!(r#"class="{class}" cx="{x}" cy="{y}" r="{half}""#);
            return element("circle", &attributes, title);
        }
        1 => diamond((x, y), half * 1.25),
        2 => format!("M{left} {top}h{size}v{size}h-{size}z"),
        3 => format!("M{x} {top}l{half} {size}h-{size}z"),
        _ => format!("M{x} {bottom}l{half}-{size}h-{size}z"),
    };
    element("path", &format!(r#"class="{class}" d="{path}""#), title)
}

fn diamond((x, y): (f64, f64), radius: f64) -> String {
    let (top, radius) = (tenth(y - radius), tenth(radius));
    format!("M{x} {top}l{radius} {radius}-{radius} {radius}-{radius}-{radius}z")
}

/// An arm's marker alone, for use next to its name in text.
pub(crate) fn swatch(arm: usize) -> Markup {
    let class = format!("{} mark", arm_class(arm));
    let mark = marker(&class, arm, (6.0, 6.0), 9.0, "");
    PreEscaped(format!(r#"<svg class="swatch" aria-hidden="true">{mark}</svg>"#))
}
