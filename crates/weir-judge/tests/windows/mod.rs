//! What the rule of decision says of windows of a long run, held against what the rest of the run says. Pure.

use weir_stats::{
    decide::{ALPHA, Estimate, estimate},
    student,
};

/// What the rule says of all windows of so many rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Windows {
    /// How many there are. They overlap, so that they are worth fewer.
    pub count: usize,
    /// Windows that do not overlap.
    pub apart: usize,
    /// Those whose interval and the rest's hold the difference of their means.
    pub hold: usize,
    /// Those that call a difference.
    pub called: usize,
    /// Those that call what is planted, and in its direction, by effect.
    pub found: [usize; 2],
    /// Sum of the widths of intervals over those of independent values.
    pub widths: f64,
}

/// Effects that are planted, as shares.
pub const PLANTED: [f64; 2] = [0.02, 0.03];

impl Windows {
    /// Of the values of a run, in the order of time. Nothing where the rest would be shorter than a window.
    pub fn of(values: &[f64], rounds: usize) -> Self {
        let mut found = Self::default();
        if rounds < 2 || values.len() < 2 * rounds {
            return found;
        }
        found.apart = values.len() / rounds;
        for (start, window) in values.windows(rounds).enumerate() {
            let rest = [&values[..start], &values[start + rounds..]].concat();
            let (Some(of_window), Some(of_rest)) = (estimate(window), estimate(&rest)) else { continue };
            found.count += 1;
            found.hold += usize::from(holds(&of_window, &of_rest));
            found.called += usize::from(of_window.p_value <= ALPHA);
            for (found, planted) in found.found.iter_mut().zip(PLANTED) {
                let with: Vec<f64> = window.iter().map(|value| value + planted.ln_1p()).collect();
                let is_found = estimate(&with).is_some_and(|it| it.p_value <= ALPHA && it.mean > 0.0);
                *found += usize::from(is_found);
            }
            found.widths += half(&of_window) / independent_half(window);
        }
        found
    }

    /// Both together.
    pub fn and(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            apart: self.apart + other.apart,
            hold: self.hold + other.hold,
            called: self.called + other.called,
            found: [self.found[0] + other.found[0], self.found[1] + other.found[1]],
            widths: self.widths + other.widths,
        }
    }

    /// What part of the windows a number of them is.
    pub fn share(&self, of_them: usize) -> f64 {
        of_them as f64 / self.count as f64
    }

    /// Mean width over that of independent values.
    pub fn width(&self) -> f64 {
        self.widths / self.count as f64
    }
}

fn half(estimate: &Estimate) -> f64 {
    (estimate.high - estimate.low) / 2.0
}

/// Whether two means of values of one run differ by no more than their intervals together allow: errors of separate
/// rounds add as squares.
fn holds(one: &Estimate, other: &Estimate) -> bool {
    (one.mean - other.mean).abs() <= half(one).hypot(half(other))
}

/// Half the width that the interval would have if no value depended on another: Student's t over all of them.
fn independent_half(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let reach = student::quantile(1.0 - ALPHA / 2.0, values.len() as u32 - 1).expect("two values or more");
    reach * (variance / count).sqrt()
}
