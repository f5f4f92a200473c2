//! The decision rule's results for windows of a long run, compared with the rest of the run. Pure.

use weir_stats::{
    decide::{ALPHA, Estimate, estimate},
    student,
};

/// Results of the rule for all windows of a number of rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Windows {
    /// Number of windows. They overlap, so they are not independent.
    pub count: usize,
    /// Windows that do not overlap.
    pub apart: usize,
    /// Windows whose interval and the rest's cover the difference of their means.
    pub hold: usize,
    /// Windows with a called difference.
    pub called: usize,
    /// Windows with a called planted effect in its direction, by effect.
    pub found: [usize; 2],
    /// Sum of the widths of intervals relative to independent ones.
    pub widths: f64,
}

/// Planted effects, as shares.
pub const PLANTED: [f64; 2] = [0.02, 0.03];

impl Windows {
    /// Windows of a run's values in time order. Empty if the rest would be shorter than a window.
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

    /// The sum of both.
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

    /// A number of windows as a share of all.
    pub fn share(&self, of_them: usize) -> f64 {
        of_them as f64 / self.count as f64
    }

    /// Mean width relative to independent intervals.
    pub fn width(&self) -> f64 {
        self.widths / self.count as f64
    }
}

fn half(estimate: &Estimate) -> f64 {
    (estimate.high - estimate.low) / 2.0
}

/// Whether two means of values of one run differ by at most what their intervals allow together: errors of separate
/// rounds add in squares.
fn holds(one: &Estimate, other: &Estimate) -> bool {
    (one.mean - other.mean).abs() <= half(one).hypot(half(other))
}

/// Half-width of the interval for independent values: Student's t over all of them.
fn independent_half(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let reach = student::quantile(1.0 - ALPHA / 2.0, values.len() as u32 - 1).expect("two values or more");
    reach * (variance / count).sqrt()
}
