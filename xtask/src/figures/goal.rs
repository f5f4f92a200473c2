//! What a figure is held against, and what came of it. Pure.
//!
//! A bound is met only if the whole interval is inside it, and missed only if the whole interval is outside. What lies
//! between has words of its own, so that a lucky median is never taken for a result.

use std::fmt;

use weir_record::verdict::Verdict;

/// Least confidence of an interval that may decide; fewer than six pairs cannot give it.
const CONFIDENCE_MIN: f64 = 0.95;

/// What is asked of a ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// From the first to the second, both allowed.
    Within(f64, f64),
    /// The verdict on ours against the other is not *slower*; the number is the smallest effect of the study.
    NotSlower(f64),
}

impl Goal {
    /// A bound from above.
    pub fn at_most(high: f64) -> Self {
        Self::Within(0.0, high)
    }

    /// A bound from below.
    pub fn at_least(low: f64) -> Self {
        Self::Within(low, f64::INFINITY)
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Within(low, high) if low <= 0.0 => write!(formatter, "≤ {high:.3}"),
            Self::Within(low, high) if high.is_infinite() => write!(formatter, "≥ {low:.3}"),
            Self::Within(low, high) => write!(formatter, "{low:.3} to {high:.3}"),
            Self::NotSlower(_) => formatter.write_str("not slower"),
        }
    }
}

/// A ratio as measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Median.
    pub ratio: f64,
    /// Lower and upper end.
    pub interval: Option<(f64, f64)>,
    /// Confidence the interval has.
    pub confidence: f64,
    /// The laboratory's verdict, where it gave one on this very comparison.
    pub verdict: Option<Verdict>,
    /// What else must be known.
    pub note: String,
}

impl Measured {
    /// The same seen from the other side: b/a instead of a/b.
    pub fn inverted(self) -> Self {
        let verdict = self.verdict.map(|verdict| match verdict {
            Verdict::Better => Verdict::Worse,
            Verdict::Worse => Verdict::Better,
            other => other,
        });
        let interval = self.interval.map(|(low, high)| (1.0 / high, 1.0 / low));
        Self { ratio: 1.0 / self.ratio, interval, verdict, ..self }
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:.3}", self.ratio)?;
        if let Some((low, high)) = self.interval {
            write!(formatter, " [{low:.3}, {high:.3}]")?;
        }
        if self.note.is_empty() { Ok(()) } else { write!(formatter, " ({})", self.note) }
    }
}

/// What came of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The whole interval is inside the bound.
    Met,
    /// The median is inside, the interval is not.
    MetByPointOnly,
    /// The whole interval is outside.
    Missed,
    /// The median is outside, the interval is not.
    Inconclusive,
    /// The laboratory found a reason not to compare.
    NotComparable,
    /// There is no figure.
    NotMeasured,
    /// Nothing is asked; the list is the result.
    Listed,
}

impl Outcome {
    /// The word of the table.
    pub fn word(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::MetByPointOnly => "met (point estimate only)",
            Self::Missed => "missed",
            Self::Inconclusive => "inconclusive",
            Self::NotComparable => "not comparable",
            Self::NotMeasured => "not measured",
            Self::Listed => "listed",
        }
    }
}

/// Holds what was measured against what was asked.
pub fn judge(goal: Goal, measured: &Measured) -> Outcome {
    if measured.verdict == Some(Verdict::NotComparable) {
        return Outcome::NotComparable;
    }
    match goal {
        Goal::Within(low, high) => within(low, high, measured),
        Goal::NotSlower(smallest_effect) => match measured.verdict {
            Some(Verdict::Better | Verdict::Equivalent) => Outcome::Met,
            Some(Verdict::Worse) => Outcome::Missed,
            _ if measured.ratio <= 1.0 + smallest_effect => Outcome::MetByPointOnly,
            _ => Outcome::Inconclusive,
        },
    }
}

fn within(low: f64, high: f64, measured: &Measured) -> Outcome {
    let is_inside = |value: f64| (low..=high).contains(&value);
    let by_point = if is_inside(measured.ratio) { Outcome::MetByPointOnly } else { Outcome::Inconclusive };
    match measured.interval {
        Some((lower, upper)) if measured.confidence >= CONFIDENCE_MIN => {
            if is_inside(lower) && is_inside(upper) {
                Outcome::Met
            } else if upper < low || lower > high {
                Outcome::Missed
            } else {
                by_point
            }
        }
        _ => by_point,
    }
}

/// A count that must be none, or all: whole runs, not ratios.
pub fn judge_count(is_reached: bool, is_complete: bool) -> Outcome {
    match (is_reached, is_complete) {
        (true, true) => Outcome::Met,
        (false, _) => Outcome::Missed,
        (true, false) => Outcome::Inconclusive,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(ratio: f64, low: f64, high: f64) -> Measured {
        Measured {
            ratio,
            interval: Some((low, high)),
            confidence: 0.95,
            verdict: Some(Verdict::Inconclusive),
            note: String::new(),
        }
    }

    #[test]
    fn only_the_whole_interval_meets_or_misses_a_bound() {
        let goal = Goal::at_most(1.03);
        assert_eq!(judge(goal, &measured(1.01, 0.99, 1.03)), Outcome::Met);
        assert_eq!(judge(goal, &measured(1.01, 0.99, 1.04)), Outcome::MetByPointOnly);
        assert_eq!(judge(goal, &measured(1.04, 1.02, 1.06)), Outcome::Inconclusive);
        assert_eq!(judge(goal, &measured(1.05, 1.04, 1.06)), Outcome::Missed);
        assert_eq!(judge(Goal::Within(0.95, 1.05), &measured(0.97, 0.94, 1.0)), Outcome::MetByPointOnly);
        assert_eq!(judge(Goal::Within(0.95, 1.05), &measured(1.0, 0.96, 1.04)), Outcome::Met);
    }

    #[test]
    fn a_bound_from_below_is_judged_and_written_as_one() {
        let goal = Goal::at_least(3.0);
        assert_eq!(goal.to_string(), "≥ 3.000");
        assert_eq!(judge(goal, &measured(4.0, 3.0, 5.0)), Outcome::Met);
        assert_eq!(judge(goal, &measured(3.1, 2.9, 3.3)), Outcome::MetByPointOnly);
        assert_eq!(judge(goal, &measured(2.5, 2.4, 2.6)), Outcome::Missed);
    }

    #[test]
    fn an_interval_of_too_few_pairs_decides_nothing() {
        let few = Measured { confidence: 0.875, ..measured(1.01, 1.0, 1.02) };
        assert_eq!(judge(Goal::at_most(1.03), &few), Outcome::MetByPointOnly);
        let none = Measured { interval: None, ..measured(1.5, 1.0, 1.0) };
        assert_eq!(judge(Goal::at_most(1.03), &none), Outcome::Inconclusive);
    }

    #[test]
    fn what_the_laboratory_does_not_compare_is_not_held_against_a_bound() {
        let barred = Measured { verdict: Some(Verdict::NotComparable), ..measured(0.5, 0.4, 0.6) };
        assert_eq!(judge(Goal::at_most(1.03), &barred), Outcome::NotComparable);
        assert_eq!(judge(Goal::NotSlower(0.03), &barred), Outcome::NotComparable);
    }

    #[test]
    fn a_peer_that_is_called_faster_is_a_figure_missed() {
        let peer = Measured { verdict: Some(Verdict::Better), ..measured(0.8, 0.7, 0.9) };
        let ours = peer.inverted();
        assert_eq!((ours.ratio, ours.interval), (1.25, Some((1.0 / 0.9, 1.0 / 0.7))));
        assert_eq!(judge(Goal::NotSlower(0.03), &ours), Outcome::Missed);
        assert_eq!(judge(Goal::NotSlower(0.03), &measured(1.02, 0.9, 1.1)), Outcome::MetByPointOnly);
        assert_eq!(judge(Goal::NotSlower(0.03), &measured(1.04, 0.9, 1.1)), Outcome::Inconclusive);
    }
}
