//! Histograms as text: HdrHistogram's V2 encoding, uncompressed, in base64 (RFC 4648 with padding). Pure.
//!
//! V2 is a header of 40 bytes, big endian, and the counts in order of value:
//!
//! | bytes | what |
//! | --- | --- |
//! | 0..4 | cookie 0x1c849313 |
//! | 4..8 | bytes of the counts |
//! | 8..12 | normalising offset, 0 |
//! | 12..16 | significant digits |
//! | 16..24 | smallest discernible value |
//! | 24..32 | largest trackable value |
//! | 32..40 | ratio of integer to floating-point values, 1.0 |
//!
//! Each count is a zig-zag number in base 128, lowest group first, at most nine bytes of which the ninth holds
//! eight bits. A run of two or more zero counts is the negative of its length. Counts end with the largest value.

use hdrhistogram::Histogram;

const COOKIE: u32 = 0x1c84_9313;
const HEADER_BYTES: usize = 40;

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
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::recorder::empty_histogram;

    /// Reads the encoding back, by the table above and independently of the writer.
    fn decode(bytes: &[u8]) -> Histogram<u64> {
        let (header, mut rest) = bytes.split_at(HEADER_BYTES);
        assert_eq!(header[..4], COOKIE.to_be_bytes());
        assert_eq!(u32::from_be_bytes(header[4..8].try_into().expect("four bytes")) as usize, rest.len());
        let mut histogram = empty_histogram();
        let values: Vec<u64> = histogram.iter_all().map(|step| step.value_iterated_to()).collect();
        let mut index = 0;
        while !rest.is_empty() {
            let (mut number, mut shift) = (0_u64, 0);
            loop {
                let (byte, later) = rest.split_first().expect("a whole number");
                rest = later;
                if shift == 56 {
                    number |= u64::from(*byte) << 56;
                    break;
                }
                number |= u64::from(byte & 0x7f) << shift;
                if byte & 0x80 == 0 {
                    break;
                }
                shift += 7;
            }
            let count = (number >> 1) as i64 ^ -((number & 1) as i64);
            if count < 0 {
                index += count.unsigned_abs() as usize;
            } else {
                histogram.saturating_record_n(values[index], count as u64);
                index += 1;
            }
        }
        histogram
    }

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

    proptest! {
        #[test]
        fn what_is_encoded_can_be_read_back(
            values in prop::collection::vec((0_u64..4_000_000_000_000, 1_u64..1_000_000), 0..200),
        ) {
            let mut histogram = empty_histogram();
            for (value, count) in values {
                histogram.saturating_record_n(value, count);
            }
            let decoded = decode(&histogram_v2(&histogram));
            prop_assert_eq!(decoded, histogram);
        }
    }
}
