//! A sheet that marks are put on. Text is escaped; a mark with a coordinate that is not finite is left out.

use std::fmt::Write;

use maud::{Markup, PreEscaped};

use crate::display;

/// Arms beyond this share a colour with an earlier one, and differ by marker.
pub(crate) const ARM_STYLES: usize = 8;
const MARKER_SHAPES: usize = 5;

/// Pixels one terminal column of text takes at the charts' font size, on the wide side.
const PIXELS_PER_COLUMN: f64 = 7.3;

/// Where a text is anchored.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// Where an arrow points.
#[derive(Clone, Copy)]
pub(super) enum Heading {
    Up,
    Down,
}

/// An SVG image under construction. A *scaled* one has a width of its own, and shrinks with all its text. A *fluid* one
/// is as wide as the page lets it be: its horizontal coordinates are per cent of that, and text and marks keep their
/// size on any screen.
pub(super) struct Canvas {
    width: Option<f64>,
    height: f64,
    body: String,
}

/// Pixels a text takes, roughly.
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

fn tooltip(title: &str) -> String {
    if title.is_empty() { String::new() } else { format!("<title>{}</title>", escape(title)) }
}

impl Canvas {
    pub(super) fn new(width: f64) -> Self {
        Canvas { width: Some(width), height: 0.0, body: String::new() }
    }

    pub(super) fn fluid(height: f64) -> Self {
        Canvas { width: None, height, body: String::new() }
    }

    /// A horizontal coordinate, or a width.
    fn across(&self, value: f64) -> String {
        match self.width {
            Some(_) => format!("{value:.1}"),
            None => format!("{value:.2}%"),
        }
    }

    /// The height is known once all rows are laid out.
    pub(super) fn set_height(&mut self, height: f64) {
        self.height = height;
    }

    pub(super) fn line(&mut self, class: &str, [x1, y1, x2, y2]: [f64; 4]) {
        if [x1, y1, x2, y2].iter().all(|value| value.is_finite()) {
            let (x1, x2) = (self.across(x1), self.across(x2));
            self.put(format!(r#"<line class="{class}" x1="{x1}" y1="{y1:.1}" x2="{x2}" y2="{y2:.1}"/>"#));
        }
    }

    pub(super) fn rect(&mut self, class: &str, [x, y, width, height]: [f64; 4], title: &str) {
        if [x, y, width, height].iter().all(|value| value.is_finite()) {
            let (x, width, height) = (self.across(x), self.across(width.max(0.0)), height.max(0.0));
            self.put(format!(
                r#"<rect class="{class}" x="{x}" y="{y:.1}" width="{width}" height="{height:.1}">{}</rect>"#,
                tooltip(title)
            ));
        }
    }

    pub(super) fn text(&mut self, class: &str, x: f64, y: f64, anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        if x.is_finite() && y.is_finite() {
            let (x, text) = (self.across(x), escape(text));
            self.put(format!(
                r#"<text class="{class}" x="{x}" y="{y:.1}" text-anchor="{anchor}">{text}</text>"#
            ));
        }
    }

    pub(super) fn dot(&mut self, class: &str, x: f64, y: f64, radius: f64, title: &str) {
        if x.is_finite() && y.is_finite() {
            let x = self.across(x);
            self.put(format!(
                r#"<circle class="{class}" cx="{x}" cy="{y:.1}" r="{radius:.1}">{}</circle>"#,
                tooltip(title)
            ));
        }
    }

    /// Dots at one height, each with its title. What they share is said once: a page has tens of thousands.
    pub(super) fn dots(
        &mut self,
        class: &str,
        y: f64,
        radius: f64,
        dots: impl Iterator<Item = (f64, String)>,
    ) {
        let one = |(x, title): (f64, String)| {
            let (x, title) = (self.across(x), tooltip(&title));
            format!(r#"<circle cx="{x}" r="{radius:.1}">{title}</circle>"#)
        };
        let dots: String = dots.filter(|(x, _)| x.is_finite()).map(one).collect();
        if y.is_finite() && !dots.is_empty() {
            self.put(format!(r#"<g class="{class}" transform="translate(0 {y:.1})">{dots}</g>"#));
        }
    }

    /// Dots above each other.
    pub(super) fn column(&mut self, class: &str, x: f64, radius: f64, heights: impl Iterator<Item = f64>) {
        let one = |y: f64| format!(r#"<circle cy="{y:.1}" r="{radius:.1}"></circle>"#);
        let dots: String = heights.filter(|y| y.is_finite()).map(one).collect();
        if x.is_finite() && !dots.is_empty() {
            let x = self.across(x);
            self.put(format!(r#"<svg class="at" x="{x}"><g class="{class}">{dots}</g></svg>"#));
        }
    }

    /// A line through points; those that are not finite are skipped.
    pub(super) fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        let finite: Vec<(f64, f64)> =
            points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
        if self.width.is_none() {
            // Points of a polyline cannot be per cent.
            for pair in finite.windows(2) {
                self.line(class, [pair[0].0, pair[0].1, pair[1].0, pair[1].1]);
            }
        } else if finite.len() > 1 {
            let points: Vec<_> = finite.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            self.put(format!(r#"<polyline class="{class}" points="{}"/>"#, points.join(" ")));
        }
    }

    /// An arm's marker.
    pub(super) fn marker(&mut self, class: &str, arm: usize, (x, y): (f64, f64), size: f64, title: &str) {
        if !(x.is_finite() && y.is_finite()) {
            return;
        }
        let mark = match self.width {
            Some(_) => marker(class, arm, (x, y), size, title),
            None => {
                let mark = marker(class, arm, (0.0, 0.0), size, title);
                format!(r#"<svg class="at" x="{}" y="{y:.1}">{mark}</svg>"#, self.across(x))
            }
        };
        self.put(mark);
    }

    /// A head with its tip here: what ends here goes on.
    pub(super) fn arrow(&mut self, class: &str, (x, y): (f64, f64), heading: Heading) {
        if !(x.is_finite() && y.is_finite()) {
            return;
        }
        let path = match heading {
            Heading::Up => "M-4.5 8L0 0L4.5 8z",
            Heading::Down => "M-4.5 -8L0 0L4.5 -8z",
        };
        let x = self.across(x);
        self.put(format!(
            r#"<svg class="at" x="{x}" y="{y:.1}"><path class="{class}" d="{path}"></path></svg>"#
        ));
    }

    fn put(&mut self, element: String) {
        self.body.push_str(&element);
        self.body.push('\n');
    }

    pub(super) fn finish(self) -> Markup {
        let mut svg = String::with_capacity(self.body.len() + 200);
        let height = self.height;
        let size = match self.width {
            Some(width) => {
                format!(r#"viewBox="0 0 {width:.0} {height:.0}" width="{width:.0}" height="{height:.0}""#)
            }
            None => format!(r#"width="100%" height="{height:.0}""#),
        };
        writeln!(svg, "<svg {size}>").expect("writing to a string cannot fail");
        svg.push_str(&self.body);
        svg.push_str("</svg>");
        PreEscaped(svg)
    }
}

fn marker(class: &str, arm: usize, (x, y): (f64, f64), size: f64, title: &str) -> String {
    let half = size / 2.0;
    let path = match arm % MARKER_SHAPES {
        0 => {
            let title = tooltip(title);
            return format!(
                r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="{half:.1}">{title}</circle>"#
            );
        }
        1 => diamond((x, y), half * 1.25),
        2 => format!("M{:.1} {:.1}h{size:.1}v{size:.1}h-{size:.1}z", x - half, y - half),
        3 => format!("M{x:.1} {:.1}l{half:.1} {size:.1}h-{size:.1}z", y - half),
        _ => format!("M{x:.1} {:.1}l{half:.1} -{size:.1}h-{size:.1}z", y + half),
    };
    format!(r#"<path class="{class}" d="{path}">{}</path>"#, tooltip(title))
}

fn diamond((x, y): (f64, f64), radius: f64) -> String {
    format!(
        "M{x:.1} {:.1}l{radius:.1} {radius:.1}l-{radius:.1} {radius:.1}l-{radius:.1} -{radius:.1}z",
        y - radius
    )
}

/// An arm's marker by itself, to stand beside its name in text.
pub(crate) fn swatch(arm: usize) -> Markup {
    let class = format!("{} mark", arm_class(arm));
    let mark = marker(&class, arm, (6.0, 6.0), 9.0, "");
    PreEscaped(format!(
        r#"<svg class="swatch" viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">{mark}</svg>"#
    ))
}
