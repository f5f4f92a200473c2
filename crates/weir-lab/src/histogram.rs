//! Merging of latency distributions without loss, from the HdrHistogram V2 text a load report carries.
//!
//! The V2 layout (the `HdrHistogram` project's own documentation and its Java reference): big-endian cookie
//! `0x1c849303` with the word size in bits 4 to 7, payload length, normalising offset, significant digits, lowest
//! and highest value, conversion ratio (40 bytes in all); then the counts in index order as zig-zag LEB128 of at
//! most nine bytes, a negative number standing for that many empty counts. Only the uncompressed form is read.

use hdrhistogram::Histogram;
use thiserror::Error;

/// Quantiles of a printed curve.
const QUANTILES: [f64; 13] =
    [0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999];

/// A quantile is printed only with at least this many samples beyond it.
const SAMPLES_BEYOND_MIN: f64 = 10.0;

const COOKIE_V2: u32 = 0x1c84_9303;
const HEADER_BYTES: usize = 40;

/// Longest text that is decoded; a histogram of three digits up to an hour has fewer than 35,000 counts.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// Why a histogram cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum HistogramError {
    #[error("not base64")]
    Base64,
    #[error("cut short")]
    Short,
    #[error("not an uncompressed HdrHistogram V2")]
    Cookie,
    #[error("bounds that no histogram has")]
    Bounds,
    #[error("a count beyond the highest value")]
    Overflow,
    #[error("longer than a histogram can be")]
    Long,
}

/// The curve of several distributions as one: (quantile, nanoseconds), with each quantile that has samples enough.
pub(crate) fn merged_quantiles<'a>(
    texts: impl Iterator<Item = &'a str>,
) -> Result<Vec<(f64, u64)>, HistogramError> {
    let merged = merged(texts)?;
    Ok(QUANTILES.into_iter().filter_map(|q| Some((q, quantile_ns(&merged, q)?))).collect())
}

/// Several distributions as one.
pub(crate) fn merged<'a>(texts: impl Iterator<Item = &'a str>) -> Result<Histogram<u64>, HistogramError> {
    let mut merged = empty(1, u64::from(u32::MAX), 3)?;
    merged.auto(true);
    for text in texts.filter(|text| !text.is_empty()) {
        let histogram = decode(text)?;
        merged.add(&histogram).map_err(|_| HistogramError::Overflow)?;
    }
    Ok(merged)
}

/// The value at a quantile that has samples enough beyond it.
pub(crate) fn quantile_ns(histogram: &Histogram<u64>, quantile: f64) -> Option<u64> {
    let beyond = quantile.min(1.0 - quantile);
    let is_known = histogram.len() as f64 * beyond >= SAMPLES_BEYOND_MIN;
    is_known.then(|| histogram.value_at_quantile(quantile))
}

fn decode(text: &str) -> Result<Histogram<u64>, HistogramError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(HistogramError::Long);
    }
    let bytes = from_base64(text)?;
    let (header, counts) = bytes.split_at_checked(HEADER_BYTES).ok_or(HistogramError::Short)?;
    let word = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let long = |at: usize| u64::from(word(at)) << 32 | u64::from(word(at + 4));
    if word(0) & !0xf0 != COOKIE_V2 {
        return Err(HistogramError::Cookie);
    }
    let length = word(4) as usize;
    let counts = counts.get(..length).ok_or(HistogramError::Short)?;
    if word(8) != 0 {
        return Err(HistogramError::Bounds);
    }
    let digits = u8::try_from(word(12)).map_err(|_| HistogramError::Bounds)?;
    let (low, high) = (long(16), long(24));
    let mut histogram = empty(low, high, digits)?;
    let layout = Layout::new(low, digits);
    let mut index: u64 = 0;
    let mut rest = counts;
    while !rest.is_empty() {
        let number = zig_zag(&mut rest)?;
        match u64::try_from(number) {
            Ok(0) => index += 1,
            Ok(count) => {
                let value = layout.value(index).ok_or(HistogramError::Overflow)?;
                histogram.record_n(value, count).map_err(|_| HistogramError::Overflow)?;
                index += 1;
            }
            Err(_) => index = index.checked_add(number.unsigned_abs()).ok_or(HistogramError::Overflow)?,
        }
    }
    Ok(histogram)
}

fn empty(low: u64, high: u64, digits: u8) -> Result<Histogram<u64>, HistogramError> {
    Histogram::new_with_bounds(low, high, digits).map_err(|_| HistogramError::Bounds)
}

/// Where a count's index lies on the scale of values.
struct Layout {
    unit_magnitude: u32,
    half_magnitude: u32,
}

impl Layout {
    fn new(low: u64, digits: u8) -> Self {
        // Values up to twice ten to the digits have a resolution of one unit.
        let linear = 2 * 10_u64.pow(u32::from(digits));
        Self { unit_magnitude: low.max(1).ilog2(), half_magnitude: linear.next_power_of_two().ilog2() - 1 }
    }

    /// Smallest value counted at this index.
    fn value(&self, index: u64) -> Option<u64> {
        let half = 1_u64 << self.half_magnitude;
        let (bucket, sub) = match index >> self.half_magnitude {
            0 => (0, index),
            row => (u32::try_from(row - 1).ok()?, index % half + half),
        };
        let shift = bucket + self.unit_magnitude;
        let value = sub.checked_shl(shift)?;
        (value >> shift == sub).then_some(value)
    }
}

/// One zig-zag LEB128 number: seven bits a byte, least first; the ninth byte holds eight.
fn zig_zag(rest: &mut &[u8]) -> Result<i64, HistogramError> {
    let mut value: u64 = 0;
    for place in 0..9 {
        let (byte, after) = rest.split_first().ok_or(HistogramError::Short)?;
        *rest = after;
        if place == 8 {
            value |= u64::from(*byte) << 56;
            break;
        }
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            break;
        }
    }
    Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
}

/// Standard alphabet; padding is optional, anything else is an error.
fn from_base64(text: &str) -> Result<Vec<u8>, HistogramError> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut held) = (0_u32, 0_u32);
    for symbol in text.trim_end_matches('=').bytes() {
        let six = match symbol {
            b'A'..=b'Z' => symbol - b'A',
            b'a'..=b'z' => symbol - b'a' + 26,
            b'0'..=b'9' => symbol - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return Err(HistogramError::Base64),
        };
        bits = bits << 6 | u32::from(six);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Writes what [`decode`] reads: counts by index, empty stretches as one negative number.
    fn encode(counts: &[u64]) -> String {
        let mut payload = Vec::new();
        let mut empty: i64 = 0;
        for count in counts {
            if *count == 0 {
                empty += 1;
                continue;
            }
            if empty > 0 {
                put(&mut payload, -empty);
                empty = 0;
            }
            put(&mut payload, i64::try_from(*count).expect("small counts"));
        }
        let mut bytes = Vec::new();
        for word in [COOKIE_V2 | 0x10, u32::try_from(payload.len()).expect("short"), 0, 3] {
            bytes.extend(word.to_be_bytes());
        }
        bytes.extend(1_u64.to_be_bytes());
        bytes.extend(3_600_000_000_000_u64.to_be_bytes());
        bytes.extend(1.0_f64.to_be_bytes());
        bytes.extend(payload);
        to_base64(&bytes)
    }

    fn put(bytes: &mut Vec<u8>, number: i64) {
        let mut value = (number << 1 ^ number >> 63).cast_unsigned();
        while value >= 0x80 {
            bytes.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
    }

    fn to_base64(bytes: &[u8]) -> String {
        const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::new();
        for chunk in bytes.chunks(3) {
            let bits =
                (0..3).fold(0_u32, |bits, at| bits << 8 | u32::from(chunk.get(at).copied().unwrap_or(0)));
            for at in 0..=chunk.len() {
                text.push(char::from(ALPHABET[(bits >> (18 - 6 * at) & 63) as usize]));
            }
        }
        text
    }

    #[test]
    fn base64_of_known_texts() {
        for (text, plain) in [("", ""), ("TQ==", "M"), ("TWE=", "Ma"), ("TWFu", "Man"), ("TWFuTQ", "ManM")] {
            assert_eq!(from_base64(text), Ok(plain.as_bytes().to_vec()));
        }
        assert_eq!(from_base64("TW-u"), Err(HistogramError::Base64));
    }

    #[test]
    fn rising_bucket_widths_have_the_values_of_the_format() {
        let layout = Layout::new(1, 3);
        let values: Vec<_> =
            [0, 1, 2_047, 2_048, 2_049, 3_071, 3_072].map(|index| layout.value(index)).to_vec();
        assert_eq!(values, [0, 1, 2_047, 2_048, 2_050, 4_094, 4_096].map(Some));
        assert_eq!(layout.value(u64::MAX), None);
    }

    #[test]
    fn merged_is_the_same_as_recorded_together() {
        let counts: Vec<u64> = (0..3_000_u64).map(|index| if index % 3 == 0 { index } else { 0 }).collect();
        let mut together = empty(1, 3_600_000_000_000, 3).expect("bounds");
        let layout = Layout::new(1, 3);
        for (index, count) in counts.iter().enumerate() {
            together
                .record_n(layout.value(index as u64).expect("on the scale"), 2 * count)
                .expect("in bounds");
        }
        let text = encode(&counts);
        let merged = merged_quantiles([text.as_str(), "", text.as_str()].into_iter()).expect("it decodes");
        assert!(merged.len() >= 10);
        for (quantile, value) in merged {
            assert_eq!(value, together.value_at_quantile(quantile));
        }
    }

    #[test]
    fn a_text_of_the_reference_library_has_the_counts_it_was_made_from() {
        // Made with the V2 serializer of the hdrhistogram crate, version 7.6.0: 1 ns to 1 h, three digits.
        let text = "HISTEwAAAB8AAAAAAAAAAwAAAAAAAAABAAADRjC4oAA/8AAAAAAAAAACjAEAAvMf2AQK/0iAiXrlAv7//////////6ueAwQ=";
        let histogram = decode(text).expect("it is a histogram");
        let expected = [
            (1, 1),
            (2, 70),
            (4, 1),
            (2_047, 300),
            (2_048, 5),
            (51_234, 1_000_000),
            (57_001, u64::MAX >> 1),
            (3_600_000_000_000, 2),
        ];
        for (value, count) in expected {
            assert_eq!(histogram.count_at(value), count, "at {value}");
        }
        assert_eq!(
            decode("HISTEwAAAAEAAAAAAAAAAwAAAAAAAAABAAADRjC4oAA/8AAAAAAAAAA=").map(|empty| empty.len()),
            Ok(0)
        );
    }

    #[test]
    fn a_quantile_needs_ten_samples_beyond_it() {
        let mut counts = vec![0; 200];
        counts[100] = 1_000;
        let curve = merged_quantiles([encode(&counts).as_str()].into_iter()).expect("it decodes");
        assert_eq!(curve.last().map(|(quantile, _)| *quantile), Some(0.99));
        assert_eq!(curve.first().map(|(quantile, _)| *quantile), Some(0.01));
        assert_eq!(merged_quantiles(std::iter::empty()), Ok(Vec::new()));
    }

    #[test]
    fn damage_is_an_error() {
        let text = encode(&[0, 5, 9]);
        assert_eq!(decode(&text[..40]).err(), Some(HistogramError::Short));
        assert_eq!(decode(&to_base64(&[7; 60])).err(), Some(HistogramError::Cookie));
    }

    proptest! {
        #[test]
        fn any_text_decodes_or_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), length in 0_u8..60) {
            let mut whole = (COOKIE_V2 | 0x10).to_be_bytes().to_vec();
            whole.extend([0, 0, 0, length, 0, 0, 0, 0, 0, 0, 0, 3]);
            whole.extend(bytes);
            // Only that it returns: what random bytes mean does not matter.
            let _ = decode(&to_base64(&whole));
        }

        #[test]
        fn counts_come_back_at_their_values(counts in prop::collection::vec(0_u64..1_000_000, 0..4_000)) {
            let histogram = decode(&encode(&counts)).expect("it decodes");
            let layout = Layout::new(1, 3);
            for (index, count) in counts.iter().enumerate() {
                let value = layout.value(index as u64).expect("on the scale");
                prop_assert_eq!(histogram.count_at(value), *count);
            }
        }
    }
}
