//! Lossless merging of latency distributions, from the HdrHistogram V2 text of a load report.

use hdrhistogram::Histogram;
use weir_record::latency::{HistogramError, add_decoded};

/// Quantiles of a printed curve.
const QUANTILES: [f64; 13] =
    [0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999];

/// A quantile is printed only with at least this many samples above it.
const SAMPLES_BEYOND_MIN: f64 = 10.0;

/// The curve of several distributions combined: (quantile, nanoseconds), for each quantile with enough samples.
pub(crate) fn merged_quantiles<'a>(
    texts: impl Iterator<Item = &'a str>,
) -> Result<Vec<(f64, u64)>, HistogramError> {
    let merged = merged(texts)?;
    Ok(QUANTILES.into_iter().filter_map(|q| Some((q, quantile_ns(&merged, q)?))).collect())
}

/// Whether a single distribution has enough samples above a quantile. Pooling over rounds does not lower this
/// requirement: the rounds are the independent units.
pub(crate) fn is_held(samples: u64, quantile: f64) -> bool {
    samples as f64 * quantile.min(1.0 - quantile) >= SAMPLES_BEYOND_MIN * (1.0 - 1e-9)
}

/// Several distributions combined.
pub(crate) fn merged<'a>(texts: impl Iterator<Item = &'a str>) -> Result<Histogram<u64>, HistogramError> {
    let mut merged =
        Histogram::new_with_bounds(1, u64::from(u32::MAX), 3).map_err(|_| HistogramError::Bounds)?;
    merged.auto(true);
    for text in texts.filter(|text| !text.is_empty()) {
        add_decoded(text, &mut merged)?;
    }
    Ok(merged)
}

/// The value at a quantile with enough samples above it.
pub(crate) fn quantile_ns(histogram: &Histogram<u64>, quantile: f64) -> Option<u64> {
    is_held(histogram.len(), quantile).then(|| histogram.value_at_quantile(quantile))
}

#[cfg(test)]
mod tests {
    use weir_record::latency::{LatencySummary, decode, empty_histogram};

    use super::*;

    /// The text of a distribution with these counts at each value.
    fn text(counts: impl IntoIterator<Item = (u64, u64)>) -> String {
        let mut histogram = empty_histogram();
        counts.into_iter().for_each(|(value, count)| histogram.saturating_record_n(value, count));
        LatencySummary::from_histogram(&histogram).histogram_v2_base64
    }

    #[test]
    fn merged_is_the_same_as_recorded_together() {
        let counts = || (1..3_000_u64).map(|step| (step * step, step % 3));
        let once = text(counts());
        let together = decode(&text(counts().map(|(value, count)| (value, 2 * count)))).expect("it decodes");
        let merged = merged_quantiles([once.as_str(), "", once.as_str()].into_iter()).expect("it decodes");
        assert_eq!(merged.len(), 9, "from 1 % to 99 % there are ten samples beyond");
        for (quantile, value) in merged {
            assert_eq!(value, together.value_at_quantile(quantile));
        }
    }

    #[test]
    fn a_quantile_needs_ten_samples_beyond_it() {
        let once = text([(100, 1_000)]);
        let curve = merged_quantiles([once.as_str()].into_iter()).expect("it decodes");
        assert_eq!(curve.last().map(|(quantile, _)| *quantile), Some(0.99));
        assert_eq!(curve.first().map(|(quantile, _)| *quantile), Some(0.01));
        assert_eq!(merged_quantiles(std::iter::empty()), Ok(Vec::new()));
    }

    #[test]
    fn damage_is_an_error() {
        assert_eq!(merged(["damage!"].into_iter()).err(), Some(HistogramError::Base64));
    }
}
