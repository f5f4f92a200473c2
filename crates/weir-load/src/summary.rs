//! Sums of histograms, and the report's row for one second of them. Pure.

use hdrhistogram::Histogram;
use weir_record::load::SecondRow;

/// One second of the window, with the times of its answers.
pub fn second_row(messages: u64, errors: u64, times: &Histogram<u64>) -> SecondRow {
    let at = |quantile| if times.is_empty() { 0 } else { times.value_at_quantile(quantile) };
    SecondRow { messages, errors, p50_ns: at(0.5), p99_ns: at(0.99) }
}

/// Adds a histogram to another.
pub(crate) fn add(sum: &mut Histogram<u64>, part: &Histogram<u64>) {
    if let Err(error) = sum.add(part) {
        panic!("all histograms have the same bounds: {error}");
    }
}

/// Subtracts a part of a histogram from it.
pub(crate) fn subtract(sum: &mut Histogram<u64>, part: &Histogram<u64>) {
    if let Err(error) = sum.subtract(part) {
        panic!("only what is in a histogram is taken out: {error}");
    }
}

#[cfg(test)]
mod tests {
    use weir_record::latency::empty_histogram;

    use super::*;

    #[test]
    fn nothing_recorded_is_an_empty_row() {
        assert_eq!(second_row(0, 3, &empty_histogram()), SecondRow { errors: 3, ..SecondRow::default() });
    }
}
