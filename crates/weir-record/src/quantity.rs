//! Sizes and rates as people write them. Pure.

use std::borrow::Cow;

/// What the names of options and flags end with that count bytes.
const OF_BYTES: &str = "-bytes";

/// A size in bytes with powers of 1024: `4096`, `4k`, `128KiB`, `1.5g`.
pub fn bytes(text: &str) -> Option<u64> {
    let lower = text.trim().to_ascii_lowercase();
    let (number, unit) = split_unit(&lower);
    let binary = unit.strip_suffix("ib").filter(|letter| !letter.is_empty());
    let letter = binary.or_else(|| unit.strip_suffix('b')).unwrap_or(unit);
    let bytes = number.parse::<f64>().ok()? * (1_u64 << binary_shift(letter)?) as f64;
    let is_size = bytes >= 0.0 && bytes <= (1_u64 << 60) as f64 && bytes.fract() == 0.0;
    is_size.then_some(bytes as u64)
}

/// A size in digits, where the text is one: `4k` is `4096`. Any other text stays as it is.
pub fn in_digits(text: &str) -> Cow<'_, str> {
    bytes(text).map_or(Cow::Borrowed(text), |bytes| Cow::Owned(bytes.to_string()))
}

/// The value of an option: in digits where its name says that it counts bytes.
pub fn option_value<'v>(name: &str, value: &'v str) -> Cow<'v, str> {
    if name.ends_with(OF_BYTES) { in_digits(value) } else { Cow::Borrowed(value) }
}

/// A rate with powers of 1000: `500`, `10k`, `1.5M`.
pub fn per_second(text: &str) -> Option<f64> {
    let (number, factor) = match text.char_indices().last()? {
        (at, 'k' | 'K') => (&text[..at], 1e3),
        (at, 'm' | 'M') => (&text[..at], 1e6),
        _ => (text, 1.0),
    };
    number.parse::<f64>().ok().map(|number| number * factor)
}

/// The number and the letters behind it.
pub fn split_unit(text: &str) -> (&str, &str) {
    text.split_at(text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len()))
}

/// How far a letter shifts a number of bytes: 10 for `k`.
pub fn binary_shift(letter: &str) -> Option<u32> {
    ["", "k", "m", "g", "t", "p"].iter().position(|unit| *unit == letter).map(|place| 10 * place as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_power_of_1024_and_a_rate_one_of_1000() {
        assert_eq!(
            ["64", "4k", "4KiB", "1.5g"].map(bytes),
            [Some(64), Some(4096), Some(4096), Some(3 << 29)]
        );
        assert_eq!(["", "k", "-1", "4x", "4ib", "0.3", "inf", "nan"].map(bytes), [None; 8]);
        let rates = [Some(500.0), Some(10_000.0), Some(1_500_000.0), Some(0.5)];
        assert_eq!(["500", "10k", "1.5M", "0.5"].map(per_second), rates);
        assert_eq!(["", "k", "10q"].map(per_second), [None; 3]);
    }

    #[test]
    fn only_what_counts_bytes_is_brought_into_digits() {
        assert_eq!((in_digits("16k"), in_digits("html")), ("16384".into(), "html".into()));
        let value = |name| option_value(name, "64k").into_owned();
        assert_eq!((value("send-zc-bytes"), value("spin-us")), ("65536".to_owned(), "64k".to_owned()));
    }
}
