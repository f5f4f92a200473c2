//! When the warm-up ends: a rule over buckets of 100 ms. Pure.
//!
//! The first bucket is ignored, because connections start in it. The load is steady when, over the last second (at
//! least half of it):
//! - the least-squares slope of the throughput is known to within 10 % of its mean per second (standard error), and
//!   is below 1 % or not significant at 95 % (Student's t). Ten buckets of a load with random arrivals show slopes of
//!   several per cent by chance alone, so a limit of 1 % alone would never be met;
//! - the median service times of the older and the newer half differ by less than 2 %.

use std::{collections::VecDeque, time::Duration};

/// Length of a bucket.
pub const BUCKET: Duration = Duration::from_millis(100);
/// Buckets that the rule uses.
const BUCKETS_MAX: usize = 10;
/// Fewest buckets that the rule needs.
const BUCKETS_MIN: usize = 5;
/// Two-sided 95 % quantiles of Student's t for a line through 5, 6, ... 10 buckets (two degrees of freedom fewer).
const STUDENT_T: [f64; BUCKETS_MAX - BUCKETS_MIN + 1] = [3.182, 2.776, 2.571, 2.447, 2.365, 2.306];
const SLOPE_PER_SECOND_MAX: f64 = 0.01;
const SLOPE_ERROR_PER_SECOND_MAX: f64 = 0.1;
const MEDIAN_CHANGE_MAX: f64 = 0.02;

/// Measurements of one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// Messages completed.
    pub messages: u64,
    /// Their median service time.
    pub service_ns_median: u64,
}

/// The buckets of the last second.
#[derive(Clone, Debug, Default)]
pub struct Warmup {
    has_begun: bool,
    buckets: VecDeque<Bucket>,
}

impl Warmup {
    /// Adds the next bucket and returns whether the load is steady now.
    pub fn push(&mut self, bucket: Bucket) -> bool {
        if !std::mem::replace(&mut self.has_begun, true) {
            return false;
        }
        if self.buckets.len() == BUCKETS_MAX {
            self.buckets.pop_front();
        }
        self.buckets.push_back(bucket);
        self.is_steady()
    }

    fn is_steady(&self) -> bool {
        let enough = self.buckets.len() >= BUCKETS_MIN;
        enough
            && self.buckets.iter().all(|bucket| bucket.messages > 0)
            && self.is_level()
            && self.is_settled()
    }

    /// Whether throughput has no trend.
    fn is_level(&self) -> bool {
        let counts: Vec<f64> = self.buckets.iter().map(|bucket| bucket.messages as f64).collect();
        let (slope, error) = slope_per_second(&counts);
        let slope_max = SLOPE_PER_SECOND_MAX.max(STUDENT_T[counts.len() - BUCKETS_MIN] * error);
        error < SLOPE_ERROR_PER_SECOND_MAX && slope.abs() < slope_max
    }

    /// Whether the median service time is stable.
    fn is_settled(&self) -> bool {
        let half = self.buckets.len() / 2;
        let older = median(self.buckets.iter().take(half));
        let newer = median(self.buckets.iter().skip(self.buckets.len() - half));
        (newer - older).abs() < MEDIAN_CHANGE_MAX * older
    }
}

/// Least-squares slope of counts in buckets and its standard error, both as shares of the mean per second.
fn slope_per_second(counts: &[f64]) -> (f64, f64) {
    let number = counts.len() as f64;
    let mean = counts.iter().sum::<f64>() / number;
    let middle = (number - 1.0) / 2.0;
    let spread: f64 = (0..counts.len()).map(|index| (index as f64 - middle).powi(2)).sum();
    let joint: f64 =
        counts.iter().enumerate().map(|(index, count)| (index as f64 - middle) * (count - mean)).sum();
    let slope = joint / spread;
    let residuals =
        counts.iter().enumerate().map(|(index, count)| count - mean - slope * (index as f64 - middle));
    let variance = residuals.map(|residual| residual * residual).sum::<f64>() / (number - 2.0);
    let scale = mean * BUCKET.as_secs_f64();
    (slope / scale, (variance / spread).sqrt() / scale)
}

/// Median of the buckets' medians.
fn median<'a>(buckets: impl Iterator<Item = &'a Bucket>) -> f64 {
    let mut medians: Vec<u64> = buckets.map(|bucket| bucket.service_ns_median).collect();
    medians.sort_unstable();
    let middle = medians.len() / 2;
    if medians.len() % 2 == 1 {
        medians[middle] as f64
    } else {
        (medians[middle - 1] + medians[middle]) as f64 / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady_after(buckets: impl IntoIterator<Item = (u64, u64)>) -> Option<usize> {
        let mut warmup = Warmup::default();
        let mut buckets = buckets.into_iter();
        buckets
            .position(|(messages, service_ns_median)| warmup.push(Bucket { messages, service_ns_median }))
            .map(|index| index + 1)
    }

    #[test]
    fn a_level_load_is_steady_half_a_second_after_its_first_bucket() {
        assert_eq!(steady_after([(1000, 500); 6]), Some(6));
        assert_eq!(steady_after([(1000, 500); 5]), None);
        assert_eq!(
            steady_after([(0, 0)].into_iter().chain([(1000, 500); 5])),
            Some(6),
            "the first is not looked at"
        );
    }

    #[test]
    fn a_rising_load_is_not_steady_until_its_rise_has_left_the_last_second() {
        let rise = (0..8).map(|step| (1000 + 50 * step, 500));
        let level = std::iter::repeat_n((1400, 500), 12);
        let steady = steady_after(rise.chain(level)).expect("level at last");
        assert!((12..=18).contains(&steady), "{steady}");
        assert_eq!(steady_after((0..40).map(|step| (1000 + 10 * step, 500))), None);
    }

    #[test]
    fn a_falling_latency_is_not_steady_although_throughput_is_level() {
        assert_eq!(steady_after((0..9).map(|step| (1000, 1000 - 30 * step))), None);
    }

    #[test]
    fn random_arrivals_without_a_trend_are_steady() {
        // Ten counts of mean 1000 with the spread of random arrivals; the slope alone is above 1 % a second.
        let counts = [1031, 968, 1012, 1040, 989, 1005, 961, 1022, 995, 1018];
        let values: Vec<f64> = counts.iter().map(|count| f64::from(*count)).collect();
        assert!(slope_per_second(&values[..5]).0.abs() > SLOPE_PER_SECOND_MAX);
        assert!(steady_after(counts.map(|count| (count as u64, 500))).is_some());
    }

    #[test]
    fn wild_counts_and_silent_buckets_are_not_steady() {
        let wild = [400, 1600, 100, 2000, 300, 1500, 900, 2500, 100, 1200];
        assert_eq!(steady_after(wild.map(|count| (count, 500))), None);
        assert_eq!(steady_after([(0, 0); 20]), None);
        let mut stalled = [(1000, 500); 10];
        stalled[7] = (0, 0);
        assert_eq!(steady_after(stalled.into_iter().skip(3)), None);
    }

    #[test]
    fn the_slope_of_a_line_is_its_slope() {
        let (slope, error) = slope_per_second(&[900.0, 950.0, 1000.0, 1050.0, 1100.0]);
        assert!((slope - 0.5).abs() < 1e-9 && error.abs() < 1e-9);
    }
}
