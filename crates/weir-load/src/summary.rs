//! Sums of histograms. Pure.

use hdrhistogram::Histogram;

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
