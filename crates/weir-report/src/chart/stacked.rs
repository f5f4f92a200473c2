//! Bars made of parts: a bar for each subject, a part for each place, in the order of the legend above them. A part
//! contains its number in the legend if there is room, so that it is not identified by colour alone.

use maud::{Markup, html};

use super::{
    axis,
    canvas::{Anchor, Canvas, arm_class},
    scale::Scale,
};

const ROW: f64 = 26.0;
/// A part narrower than this, in per cent of the plot, has no room for its number.
const NUMBERED: f64 = 4.0;

/// The chart.
pub(crate) struct Stacked {
    /// Names of the parts.
    pub(crate) parts: Vec<String>,
    pub(crate) bars: Vec<StackedBar>,
    /// Formats an amount.
    pub(crate) text: fn(f64) -> String,
    pub(crate) tick: fn(f64) -> String,
}

/// A bar.
pub(crate) struct StackedBar {
    pub(crate) name: String,
    /// An amount for each part; zero and negative ones are not drawn.
    pub(crate) amounts: Vec<f64>,
    /// The independently measured total of the parts: a line.
    pub(crate) whole: Option<f64>,
    /// Text next to the bar.
    pub(crate) number: String,
}

impl StackedBar {
    fn drawn(&self) -> impl Iterator<Item = (usize, f64)> {
        let amounts = self.amounts.iter().copied().enumerate();
        amounts.filter(|(_, amount)| amount.is_finite() && *amount > 0.0)
    }

    fn length(&self) -> f64 {
        self.drawn().map(|(_, amount)| amount).sum()
    }
}

/// Legend, bars and axis.
pub(crate) fn stacked(chart: &Stacked) -> Markup {
    let ends = chart.bars.iter().flat_map(|bar| [bar.length(), bar.whole.unwrap_or_default()]);
    let scale = Scale::from_zero(ends, 0.0, 100.0);
    html! {
        ul.legend {
            @for (index, name) in chart.parts.iter().enumerate() { li { (key(index)) " " (name) } }
        }
        div.rows {
            @for bar in &chart.bars {
                div.row {
                    span.subject { (bar.name) }
                    span.number { (bar.number) }
                    div.plot { (draw(chart, bar, &scale)) }
                }
            }
            div.row.axis { div.plot { (axis(&scale, chart.tick)) } }
        }
    }
}

/// A part's colour with its number.
fn key(index: usize) -> Markup {
    let mut canvas = Canvas::new(22.0);
    canvas.set_height(16.0);
    canvas.rect(&class(index), [0.0, 0.0, 22.0, 16.0], "");
    canvas.text("tick part-number", 11.0, 12.0, Anchor::Middle, &(index + 1).to_string());
    canvas.finish()
}

fn class(index: usize) -> String {
    format!("{} part", arm_class(index))
}

fn draw(chart: &Stacked, bar: &StackedBar, scale: &Scale) -> Markup {
    let mut canvas = Canvas::fluid(ROW);
    for tick in scale.ticks(4.0) {
        canvas.line("grid", [scale.at(tick), 0.0, scale.at(tick), ROW]);
    }
    let mut end = 0.0;
    for (index, amount) in bar.drawn() {
        let (left, right) = (scale.at(end), scale.at(end + amount));
        end += amount;
        let name = chart.parts.get(index).map_or("", String::as_str);
        let title = format!("{} · {name}: {}", bar.name, (chart.text)(amount));
        canvas.rect(&class(index), [left, 3.0, right - left, ROW - 6.0], &title);
        if right - left >= NUMBERED {
            let number = (index + 1).to_string();
            canvas.text(
                "tick part-number",
                f64::midpoint(left, right),
                ROW / 2.0 + 4.0,
                Anchor::Middle,
                &number,
            );
        }
    }
    if let Some(whole) = bar.whole {
        canvas.line("one", [scale.at(whole), 0.0, scale.at(whole), ROW]);
    }
    canvas.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(amounts: Vec<f64>, whole: Option<f64>) -> String {
        let bar = StackedBar { name: "uring".to_owned(), amounts, whole, number: "7 ns".to_owned() };
        let chart = Stacked {
            parts: ["sendto", "softirqs", "the rest"].map(str::to_owned).to_vec(),
            bars: vec![bar],
            text: |ns| format!("{ns} ns"),
            tick: |ns| format!("{ns}"),
        };
        stacked(&chart).into_string()
    }

    #[test]
    fn a_part_has_its_width_its_number_and_its_amount_and_the_whole_is_a_line() {
        let drawn = chart(vec![50.0, 30.0, 20.0], Some(100.0));
        // The axis extends 2 % beyond the longest.
        assert!(drawn.contains(r#"x="0" y="3" width="490.2""#), "{drawn}");
        assert!(drawn.contains("uring · softirqs: 30 ns") && drawn.contains(">3</text>"), "{drawn}");
        assert!(drawn.contains(r#"class="one" d="M980.4 0V26""#), "{drawn}");
    }

    #[test]
    fn what_is_less_than_nothing_or_no_number_is_not_drawn() {
        for amount in [-5.0, 0.0, f64::NAN, f64::INFINITY] {
            let drawn = chart(vec![50.0, amount, 20.0], None);
            assert!(!drawn.contains("softirqs:"), "{drawn}");
            assert!(drawn.contains("uring · the rest: 20 ns"), "{drawn}");
        }
        let nothing = chart(Vec::new(), None);
        assert!(
            !nothing.contains("NaN") && !nothing.contains("class=\"a0 part\" x=\"0\" y=\"3\""),
            "{nothing}"
        );
    }

    #[test]
    fn a_narrow_part_has_no_number_in_it() {
        let drawn = chart(vec![97.0, 1.0, 2.0], None);
        // Three numbers are in the legend.
        assert_eq!(drawn.matches("part-number").count(), 4, "{drawn}");
    }
}
