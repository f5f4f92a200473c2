//! Figures over time: a line for each, in steps, because a figure covers a whole interval.

use maud::{Markup, html};

use super::{
    canvas::{Anchor, Canvas, arm_class, swatch},
    framed,
    scale::Scale,
};
use crate::format;

const HEIGHT: f64 = 200.0;
const PLOT_Y: (f64, f64) = (170.0, 12.0);

/// The contents of the chart.
pub(crate) struct OverTime {
    /// Start and end of each interval, in seconds.
    pub(crate) intervals: Vec<(f64, f64)>,
    pub(crate) lines: Vec<Line>,
    /// Formats an amount on the vertical axis.
    pub(crate) tick: fn(f64) -> String,
}

/// A figure.
pub(crate) struct Line {
    pub(crate) name: String,
    /// One for each interval.
    pub(crate) values: Vec<f64>,
}

/// Legend, lines and axes.
pub(crate) fn over_time(chart: &OverTime) -> Markup {
    html! {
        ul.legend {
            @for (index, line) in chart.lines.iter().enumerate() { li { (swatch(index)) " " (line.name) } }
        }
        (draw(chart))
    }
}

fn draw(chart: &OverTime) -> Markup {
    let end = chart.intervals.last().map_or(1.0, |(_, end)| *end);
    let x = Scale::linear(0.0, end, 0.0, 100.0);
    let values = chart.lines.iter().flat_map(|line| line.values.iter().copied());
    let y = Scale::from_zero(values.filter(|value| value.is_finite()), PLOT_Y.0, PLOT_Y.1);
    let mut canvas = Canvas::fluid(HEIGHT);
    for tick in y.ticks(4.0) {
        canvas.line("grid", [0.0, y.at(tick), 100.0, y.at(tick)]);
    }
    for tick in x.ticks(5.0) {
        let at = x.at(tick);
        let anchor = match at {
            at if at < 4.0 => Anchor::Start,
            at if at > 95.0 => Anchor::End,
            _ => Anchor::Middle,
        };
        canvas.line("grid", [at, PLOT_Y.1, at, PLOT_Y.0]);
        canvas.text("tick", at, PLOT_Y.0 + 17.0, anchor, &format::seconds_tick(tick));
    }
    for (index, line) in chart.lines.iter().enumerate() {
        let steps = chart.intervals.iter().zip(&line.values).filter(|(_, value)| value.is_finite());
        let points: Vec<(f64, f64)> = steps
            .flat_map(|((from, to), value)| [(x.at(*from), y.at(*value)), (x.at(*to), y.at(*value))])
            .collect();
        canvas.polyline(&format!("{} curve", arm_class(index)), &points);
    }
    framed(HEIGHT, &y, chart.tick, &canvas.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_step_for_each_interval_and_what_is_no_number_is_left_out() {
        let line = |name: &str, values: &[f64]| Line { name: name.to_owned(), values: values.to_vec() };
        let chart = OverTime {
            intervals: vec![(0.0, 1.0), (1.0, 2.0)],
            lines: vec![line("calls <all>", &[0.0, 10.0]), line("none", &[f64::NAN, f64::NAN])],
            tick: |value| format!("{value}/s"),
        };
        let drawn = over_time(&chart).into_string();
        assert!(drawn.contains("calls &lt;all&gt;") && drawn.contains("10/s"), "{drawn}");
        // Ticks are multiples of a step, which binary numbers represent inexactly.
        let narrow = OverTime { intervals: vec![(0.0, 0.65)], ..chart };
        let drawn_narrow = over_time(&narrow).into_string();
        assert!(drawn_narrow.contains("0.6 s") && !drawn_narrow.contains("0.6000"), "{drawn_narrow}");
        assert!(drawn.contains("M0 170H500V") && !drawn.contains("NaN"), "{drawn}");
        let empty = OverTime { intervals: Vec::new(), lines: Vec::new(), tick: |_| String::new() };
        assert!(over_time(&empty).into_string().contains("svg"));
    }
}
