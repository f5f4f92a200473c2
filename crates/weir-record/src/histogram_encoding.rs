//! Histograms as text: HdrHistogram's V2 encoding, uncompressed, in base64 (RFC 4648). Pure.
//!
//! V2 is a header of 40 bytes, big endian, and the counts in order of value:
//!
//! | bytes | what |
//! | --- | --- |
//! | 0..4 | cookie 0x1c849303 with the word size in bits 4 to 7; 0x1c849313 is written |
//! | 4..8 | bytes of the counts |
//! | 8..12 | normalising offset, 0 |
//! | 12..16 | significant digits |
//! | 16..24 | smallest discernible value |
//! | 24..32 | largest trackable value |
//! | 32..40 | ratio of integer to floating-point values, 1.0 |
//!
//! Each count is a zig-zag number in base 128, lowest group first, at most nine bytes of which the ninth holds
//! eight bits. A run of two or more zero counts is the negative of its length. Counts end with the largest value.
//!
//! The crate of the histograms has this encoding too, and a test compares ours with it byte for byte. It is
//! written here once more because the crate's needs three others in every program that keeps a record
//! (deflate, which is not used, a parser of the logs of histograms, and base64), and because a record may
//! come from anywhere: a text has a longest length, and what is wrong with it has a name.

use hdrhistogram::Histogram;
use thiserror::Error;

const COOKIE: u32 = 0x1c84_9313;
const COOKIE_MASK: u32 = 0xf0;
const HEADER_BYTES: usize = 40;

/// Longest text that is decoded; a histogram of three digits up to an hour has fewer than 35,000 counts.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// Most significant digits of a histogram.
const DIGITS_MAX: u8 = 5;

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// In place of a value, for what is no letter of base64.
const NO_LETTER: u8 = u8::MAX;

/// The value of each letter.
const SIX_BITS: [u8; 256] = {
    let mut values = [NO_LETTER; 256];
    let mut six = 0;
    while six < LETTERS.len() {
        values[LETTERS[six] as usize] = six as u8;
        six += 1;
    }
    values
};

/// Why a histogram cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HistogramError {
    /// A letter that base64 does not have.
    #[error("not base64")]
    Base64,
    /// Fewer bytes than the header says.
    #[error("cut short")]
    Short,
    /// Another format.
    #[error("not an uncompressed HdrHistogram V2")]
    Cookie,
    /// A header that no histogram has.
    #[error("bounds that no histogram has")]
    Bounds,
    /// A count outside the bounds.
    #[error("a count beyond the highest value")]
    Overflow,
    /// More text than the largest histogram needs.
    #[error("longer than a histogram can be")]
    Long,
}

/// The V2 encoding of a histogram. Counts beyond 2^63 - 1 are cut to it.
pub fn histogram_v2(histogram: &Histogram<u64>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + 4096);
    bytes.extend_from_slice(&COOKIE.to_be_bytes());
    bytes.extend_from_slice(&[0; 8]);
    bytes.extend_from_slice(&u32::from(histogram.sigfig()).to_be_bytes());
    bytes.extend_from_slice(&histogram.low().to_be_bytes());
    bytes.extend_from_slice(&histogram.high().to_be_bytes());
    bytes.extend_from_slice(&1.0_f64.to_be_bytes());
    let mut zeros = 0_i64;
    let last = histogram.max();
    for step in histogram.iter_all() {
        let count = step.count_at_value();
        if count == 0 {
            zeros += 1;
        } else {
            push_zeros(&mut bytes, std::mem::take(&mut zeros));
            push_number(&mut bytes, i64::try_from(count).unwrap_or(i64::MAX));
        }
        if step.value_iterated_to() >= last {
            break;
        }
    }
    // Only an empty histogram ends in zeros; it keeps its one zero, as every histogram has at least one count.
    push_zeros(&mut bytes, zeros);
    let counts_bytes = u32::try_from(bytes.len() - HEADER_BYTES).unwrap_or(u32::MAX);
    bytes[4..8].copy_from_slice(&counts_bytes.to_be_bytes());
    bytes
}

fn push_zeros(bytes: &mut Vec<u8>, zeros: i64) {
    match zeros {
        0 => {}
        1 => push_number(bytes, 0),
        _ => push_number(bytes, -zeros),
    }
}

fn push_number(bytes: &mut Vec<u8>, number: i64) {
    let mut rest = ((number << 1) ^ (number >> 63)) as u64;
    for _ in 0..8 {
        if rest < 0x80 {
            bytes.push(rest as u8);
            return;
        }
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

/// Base64 with padding.
pub fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let padded = [group[0], group.get(1).copied().unwrap_or(0), group.get(2).copied().unwrap_or(0)];
        let word = u32::from(padded[0]) << 16 | u32::from(padded[1]) << 8 | u32::from(padded[2]);
        for place in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= group.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

/// Reads the text of a histogram.
pub fn decode(text: &str) -> Result<Histogram<u64>, HistogramError> {
    let bytes = bytes_of(text)?;
    let parts = Parts::of(&bytes)?;
    let mut histogram = Histogram::new_with_bounds(parts.low, parts.high, parts.digits)
        .map_err(|_| HistogramError::Bounds)?;
    parts.add_to(&mut histogram)?;
    Ok(histogram)
}

/// Adds the counts of a text to a histogram, as reading the text and adding what it gave would: but without a second
/// histogram, which takes a quarter of a megabyte for a few hundred counts. After an error some of them are added.
pub fn add_decoded(text: &str, sum: &mut Histogram<u64>) -> Result<(), HistogramError> {
    Parts::of(&bytes_of(text)?)?.add_to(sum)
}

fn bytes_of(text: &str) -> Result<Vec<u8>, HistogramError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(HistogramError::Long);
    }
    from_base64(text)
}

/// A histogram's bounds, which one can have, and its counts as they are written.
struct Parts<'b> {
    low: u64,
    high: u64,
    digits: u8,
    counts: &'b [u8],
}

impl<'b> Parts<'b> {
    fn of(bytes: &'b [u8]) -> Result<Self, HistogramError> {
        let (header, counts) = bytes.split_at_checked(HEADER_BYTES).ok_or(HistogramError::Short)?;
        let word =
            |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let long = |at: usize| u64::from(word(at)) << 32 | u64::from(word(at + 4));
        if word(0) & !COOKIE_MASK != COOKIE & !COOKIE_MASK {
            return Err(HistogramError::Cookie);
        }
        let length = word(4) as usize;
        let counts = counts.get(..length).ok_or(HistogramError::Short)?;
        if word(8) != 0 {
            return Err(HistogramError::Bounds);
        }
        let digits = u8::try_from(word(12)).map_err(|_| HistogramError::Bounds)?;
        let (low, high) = (long(16), long(24));
        let is_one = digits <= DIGITS_MAX
            && low > 0
            && low.checked_mul(2).is_some_and(|twice| twice <= high)
            && Layout::new(low, digits).fits();
        if !is_one {
            return Err(HistogramError::Bounds);
        }
        Ok(Self { low, high, digits, counts })
    }

    fn add_to(&self, histogram: &mut Histogram<u64>) -> Result<(), HistogramError> {
        let layout = Layout::new(self.low, self.digits);
        let end = layout.end(self.high);
        let is_inside = |value: &u64| end.is_none_or(|end| *value < end);
        let mut index: u64 = 0;
        let mut rest = self.counts;
        while !rest.is_empty() {
            let number = zig_zag(&mut rest)?;
            let passed = match u64::try_from(number) {
                Ok(0) => 1,
                Ok(count) => {
                    let value = layout.value(index).filter(is_inside).ok_or(HistogramError::Overflow)?;
                    histogram.record_n(value, count).map_err(|_| HistogramError::Overflow)?;
                    1
                }
                Err(_) => number.unsigned_abs(),
            };
            index = index.checked_add(passed).ok_or(HistogramError::Overflow)?;
        }
        Ok(())
    }
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

    /// Whether the finest scale has a place among 64-bit values.
    fn fits(&self) -> bool {
        self.unit_magnitude + self.half_magnitude < 63
    }

    /// The first value beyond the counts of a histogram up to `high`; absent where all are within. Counts come in
    /// halves of the scale, of which the last is whole.
    fn end(&self, high: u64) -> Option<u64> {
        let mut end = 1_u64 << (self.unit_magnitude + self.half_magnitude + 1);
        while end <= high {
            end = end.checked_mul(2)?;
        }
        Some(end)
    }

    /// Smallest value counted at this index.
    fn value(&self, index: u64) -> Option<u64> {
        let half = 1_u64 << self.half_magnitude;
        let (bucket, sub) = match index >> self.half_magnitude {
            0 => (0, index),
            row => (u32::try_from(row - 1).ok()?, index % half + half),
        };
        let shift = bucket.checked_add(self.unit_magnitude)?;
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
        let six = SIX_BITS[usize::from(symbol)];
        if six == NO_LETTER {
            return Err(HistogramError::Base64);
        }
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
    use crate::latency::empty_histogram;

    #[test]
    fn the_encoding_is_byte_for_byte_that_of_the_reference_library() {
        // Made with the V2 serializer of the hdrhistogram crate, version 7.6.0.
        let cases: [(&[(u64, u64)], &str); 3] = [
            (&[], "HISTEwAAAAEAAAAAAAAAAwAAAAAAAAABAAADRjC4oAA/8AAAAAAAAAA="),
            (&[(0, 1)], "HISTEwAAAAEAAAAAAAAAAwAAAAAAAAABAAADRjC4oAA/8AAAAAAAAAI="),
            (
                &[
                    (1, 1),
                    (2, 70),
                    (4, 1),
                    (2047, 300),
                    (2048, 5),
                    (51_234, 1_000_000),
                    (57_001, u64::MAX >> 1),
                    (3_600_000_000_000, 2),
                ],
                "HISTEwAAAB8AAAAAAAAAAwAAAAAAAAABAAADRjC4oAA/8AAAAAAAAAACjAEAAvMf2AQK/0iAiXrlAv7//////////6ueAwQ=",
            ),
        ];
        for (values, expected) in cases {
            let mut histogram = empty_histogram();
            for (value, count) in values {
                histogram.saturating_record_n(*value, *count);
            }
            assert_eq!(base64(&histogram_v2(&histogram)), expected);
        }
    }

    #[test]
    fn base64_is_that_of_the_standard() {
        // RFC 4648, section 10.
        let cases = ["", "f", "fo", "foo", "foob", "fooba", "foobar"];
        let expected = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        for (text, expected) in cases.iter().zip(expected) {
            assert_eq!(base64(text.as_bytes()), expected);
        }
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
    fn damage_is_an_error() {
        let mut histogram = empty_histogram();
        histogram.saturating_record(70);
        let text = base64(&histogram_v2(&histogram));
        assert_eq!(decode(&text[..40]).err(), Some(HistogramError::Short));
        assert_eq!(decode(&base64(&[7; 60])).err(), Some(HistogramError::Cookie));
    }

    /// The text of a histogram of three digits from `low` to `high` with these numbers as its counts.
    fn written((low, high): (u64, u64), counts: &[i64]) -> String {
        let mut numbers = Vec::new();
        counts.iter().for_each(|count| push_number(&mut numbers, *count));
        let length = u32::try_from(numbers.len()).expect("there are few");
        let mut bytes = COOKIE.to_be_bytes().to_vec();
        bytes.extend(length.to_be_bytes());
        bytes.extend([0, 0, 0, 0, 0, 0, 0, 3]);
        [low, high, 1.0_f64.to_bits()].iter().for_each(|long| bytes.extend(long.to_be_bytes()));
        bytes.extend(numbers);
        base64(&bytes)
    }

    #[test]
    fn a_count_beyond_its_own_bounds_is_refused_although_the_sum_had_room_for_it() {
        let mut sum = empty_histogram();
        // Up to 3,000 there are two halves of 1,024 counts of one unit, and one of two units.
        for (skipped, is_inside) in [(3_071, true), (3_072, false)] {
            let text = written((1, 3_000), &[-skipped, 7]);
            let expected = if is_inside { Ok(()) } else { Err(HistogramError::Overflow) };
            assert_eq!(decode(&text).map(drop), expected, "{skipped}");
            assert_eq!(add_decoded(&text, &mut sum), expected, "{skipped}");
        }
        assert_eq!(add_decoded(&written((1, 1), &[7]), &mut sum), Err(HistogramError::Bounds));
        assert_eq!(sum.len(), 7);
    }

    #[test]
    fn a_count_so_far_out_that_its_place_is_no_number_is_refused() {
        // With units of two, the power of two that a value there is multiplied by does not fit either.
        let beyond_powers = &[-(1_i64 << 42), 7][..];
        let beyond_places = &[i64::MIN, -i64::MAX, 0][..];
        for (low, counts) in [(2, beyond_powers), (1, beyond_places), (1, &[i64::MIN, i64::MIN][..])] {
            let text = written((low, 3_000), counts);
            assert_eq!(decode(&text).err(), Some(HistogramError::Overflow), "{counts:?}");
            let mut sum = empty_histogram();
            assert_eq!(add_decoded(&text, &mut sum), Err(HistogramError::Overflow), "{counts:?}");
        }
    }

    /// Bounds that a histogram of three digits can have.
    fn bounds() -> impl Strategy<Value = (u64, u64)> {
        let low = prop_oneof![Just(1_u64), Just(2_u64), (0_u32..=52).prop_map(|power| 1_u64 << power)];
        let times = prop_oneof![2_u64..5_000, 2_u64..=u64::MAX];
        (low, times).prop_map(|(low, times)| (low, low.saturating_mul(times)))
    }

    /// A count, or a run of none, of any length that can be written.
    fn count() -> impl Strategy<Value = i64> {
        let extreme = vec![i64::MIN, -i64::MAX, -(1 << 53), -(1 << 42), i64::MAX];
        prop_oneof![
            4 => 0_i64..100,
            3 => -3_000_i64..0,
            1 => prop::sample::select(extreme),
            1 => any::<i64>(),
        ]
    }

    proptest! {
        #[test]
        fn any_counts_decode_or_are_refused(
            range in bounds(),
            counts in prop::collection::vec(count(), 0..40),
        ) {
            let text = written(range, &counts);
            let mut sum = empty_histogram();
            sum.auto(true);
            prop_assert_eq!(decode(&text).map(drop), add_decoded(&text, &mut sum));
        }

        #[test]
        fn any_text_decodes_or_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), length in 0_u8..60) {
            let mut whole = COOKIE.to_be_bytes().to_vec();
            whole.extend([0, 0, 0, length, 0, 0, 0, 0, 0, 0, 0, 3]);
            whole.extend(bytes);
            // What random bytes mean does not matter: only that it returns, and always the same.
            let text = base64(&whole);
            let mut sum = empty_histogram();
            sum.auto(true);
            prop_assert_eq!(decode(&text).map(drop), add_decoded(&text, &mut sum));
        }

        #[test]
        fn what_is_added_from_a_text_is_what_was_read_from_it(
            parts in prop::collection::vec(
                prop::collection::vec((0_u64..4_000_000_000_000, 1_u64..1_000_000), 0..50),
                1..4,
            ),
        ) {
            let (mut added, mut read) = (empty_histogram(), empty_histogram());
            for values in parts {
                let mut histogram = empty_histogram();
                for (value, count) in values {
                    histogram.saturating_record_n(value, count);
                }
                let text = base64(&histogram_v2(&histogram));
                prop_assert_eq!(add_decoded(&text, &mut added), Ok(()));
                read.add(decode(&text).expect("it is a histogram")).expect("equal bounds");
            }
            prop_assert_eq!(added, read);
        }

        #[test]
        fn what_is_encoded_can_be_read_back(
            values in prop::collection::vec((0_u64..4_000_000_000_000, 1_u64..1_000_000), 0..200),
        ) {
            let mut histogram = empty_histogram();
            for (value, count) in values {
                histogram.saturating_record_n(value, count);
            }
            prop_assert_eq!(decode(&base64(&histogram_v2(&histogram))), Ok(histogram));
        }
    }
}
