//! Straight lines through measurements, and Little's law: is the load steady, and do its numbers fit together?

/// `y = intercept + slope * x`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Change of y for one unit of x.
    pub slope: f64,
    /// y at x = 0.
    pub intercept: f64,
}

/// Ordinary least squares line (Legendre 1805), by centred sums so that large offsets cost no precision.
///
/// Assumes that x is exact and all errors of y are alike. `None` below two points, when all x are equal, when the
/// lengths differ, or when a number is not finite or overflows.
pub fn least_squares(x: &[f64], y: &[f64]) -> Option<Line> {
    if x.len() != y.len() || x.len() < 2 {
        return None;
    }
    let count = x.len() as f64;
    let mean = |values: &[f64]| values.iter().map(|value| value / count).sum::<f64>();
    let (mean_x, mean_y) = (mean(x), mean(y));
    let (mut squares, mut products) = (0.0, 0.0);
    for (at, value) in x.iter().zip(y) {
        squares += (at - mean_x).powi(2);
        products += (at - mean_x) * (value - mean_y);
    }
    if squares == 0.0 {
        return None;
    }
    let slope = products / squares;
    let intercept = mean_y - slope * mean_x;
    (slope.is_finite() && intercept.is_finite()).then_some(Line { slope, intercept })
}

/// Change a second relative to the mean, of values taken `step_seconds` apart: 0.01 means it rises by 1 % a
/// second.
///
/// The steadiness test of a warm-up: least squares over the last buckets of a rate (the idea of fio's
/// `steadystate`). `None` as for [`least_squares`], when the step is not positive, or when the mean is zero.
pub fn relative_slope_per_second(values: &[f64], step_seconds: f64) -> Option<f64> {
    if !step_seconds.is_finite() || step_seconds <= 0.0 {
        return None;
    }
    let times: Vec<f64> = (0..values.len()).map(|index| index as f64 * step_seconds).collect();
    let line = least_squares(&times, values)?;
    let mean = values.iter().map(|value| value / values.len() as f64).sum::<f64>();
    let relative = line.slope / mean.abs();
    relative.is_finite().then_some(relative)
}

/// Gap of Little's law, `L = lambda * W` (Little, Operations Research 9, 1961), relative to L: 0.02 means that
/// rate times mean time gives 2 % more requests in flight than were seen.
///
/// Holds for any stable system whatever its distributions, so a gap means lost or double-counted requests, a
/// wrong clock, or edges that are large against the window. `None` unless all are finite, the number in flight is
/// above zero and the others are not negative.
pub fn littles_law_gap(in_flight_mean: f64, rate_per_second: f64, time_mean_seconds: f64) -> Option<f64> {
    let valid = in_flight_mean > 0.0 && rate_per_second >= 0.0 && time_mean_seconds >= 0.0;
    let gap = rate_per_second * time_mean_seconds / in_flight_mean - 1.0;
    (valid && in_flight_mean.is_finite() && gap.is_finite()).then_some(gap)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn points_on_a_line_give_that_line() {
        let line = least_squares(&[1.0, 2.0, 4.0], &[5.0, 7.0, 11.0]).unwrap();
        assert!((line.slope - 2.0).abs() < 1e-12 && (line.intercept - 3.0).abs() < 1e-12, "{line:?}");
    }

    #[test]
    fn a_fit_by_hand_agrees() {
        // Means 1.5 and 2.0, sum of products 4, sum of squares 5.
        let line = least_squares(&[0.0, 1.0, 2.0, 3.0], &[1.0, 1.0, 3.0, 3.0]).unwrap();
        assert!((line.slope - 0.8).abs() < 1e-12 && (line.intercept - 0.8).abs() < 1e-12, "{line:?}");
    }

    #[test]
    fn a_rate_that_climbs_one_percent_a_second_says_so() {
        // Ten buckets of 100 ms, 1000 in the middle, one more per bucket.
        let buckets: Vec<f64> = (0..10).map(|index| 995.5 + f64::from(index)).collect();
        assert!((relative_slope_per_second(&buckets, 0.1).unwrap() - 0.01).abs() < 1e-12);
    }

    #[test]
    fn degenerate_points_have_no_line() {
        assert_eq!(least_squares(&[], &[]), None);
        assert_eq!(least_squares(&[1.0], &[1.0]), None);
        assert_eq!(least_squares(&[1.0, 2.0], &[1.0]), None);
        assert_eq!(least_squares(&[2.0, 2.0], &[1.0, 5.0]), None);
        assert_eq!(least_squares(&[1.0, 2.0], &[1.0, f64::NAN]), None);
        assert_eq!(least_squares(&[1.0, f64::INFINITY], &[1.0, 2.0]), None);
        assert_eq!(relative_slope_per_second(&[0.0, 0.0], 0.1), None);
        assert_eq!(relative_slope_per_second(&[1.0, 2.0], 0.0), None);
        assert_eq!(relative_slope_per_second(&[], 0.1), None);
    }

    #[test]
    fn littles_law_finds_missing_requests() {
        assert!(littles_law_gap(100.0, 200_000.0, 500e-6).unwrap().abs() < 1e-12);
        assert!((littles_law_gap(100.0, 190_000.0, 500e-6).unwrap() + 0.05).abs() < 1e-12);
        assert_eq!(littles_law_gap(0.0, 1.0, 1.0), None);
        assert_eq!(littles_law_gap(1.0, -1.0, 1.0), None);
        assert_eq!(littles_law_gap(1.0, f64::NAN, 1.0), None);
        assert_eq!(littles_law_gap(f64::INFINITY, 1.0, 1.0), None);
    }

    proptest! {
        #[test]
        fn the_line_follows_scale_and_shift(
            y in prop::collection::vec(-10.0_f64..10.0, 2..40), scale in 0.1_f64..10.0,
        ) {
            let x: Vec<f64> = (0..y.len()).map(|index| index as f64).collect();
            let line = least_squares(&x, &y).unwrap();
            let moved: Vec<f64> = y.iter().map(|value| value * scale + 7.0).collect();
            let other = least_squares(&x, &moved).unwrap();
            prop_assert!((other.slope - line.slope * scale).abs() < 1e-9);
            prop_assert!((other.intercept - line.intercept * scale - 7.0).abs() < 1e-8);
        }
    }
}
