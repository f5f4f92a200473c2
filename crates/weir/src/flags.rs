//! Flags that servers and loads of all protocols have, and values that are refused in words that say what to
//! write.

use std::str::FromStr;

mod load;
mod serve;
mod settings;

pub(crate) use load::{Arrivals, LoadShared, MaxErrors};
pub(crate) use serve::{Accept, ServeShared};
pub(crate) use settings::{Settings, of as settings_of};

/// What is said of a value that is no whole number.
pub(crate) const NO_WHOLE_NUMBER: &str = "write a whole number, 0 or more";

/// What is said of a value that is no number.
pub(crate) const NO_NUMBER: &str = "write a number such as 2 or 0.5";

/// A whole number, refused in words that say what to write.
pub(crate) fn number<N: FromStr>(text: &str) -> Result<N, &'static str> {
    text.parse().map_err(|_| NO_WHOLE_NUMBER)
}

/// A number that need not be whole.
fn fraction(text: &str) -> Result<f64, &'static str> {
    text.parse().map_err(|_| NO_NUMBER)
}

/// What is said of a value that is no rate, and of one that is no size.
pub(crate) const NO_RATE: &str = "write a number such as 500, 10k or 1.5M";
pub(crate) const NO_SIZE: &str = "write bytes such as 64, 4k or 1m (powers of 1024)";

/// A rate: `10k` is ten thousand.
fn rate(text: &str) -> Result<f64, &'static str> {
    let (digits, factor) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1e3),
        Some((at, 'm' | 'M')) => (&text[..at], 1e6),
        _ => (text, 1.0),
    };
    digits.parse::<f64>().map(|number| number * factor).map_err(|_| NO_RATE)
}

/// A size in bytes: `4k` is 4096, as the storage commands have it.
pub(crate) fn size(text: &str) -> Result<u32, &'static str> {
    weir_storage::job::units::bytes(text).ok().and_then(|bytes| bytes.try_into().ok()).ok_or(NO_SIZE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_count_in_thousands_and_sizes_in_powers_of_1024() {
        assert_eq!(
            ["500", "10k", "1.5M", "0.5"].map(rate),
            [Ok(500.0), Ok(10_000.0), Ok(1_500_000.0), Ok(0.5)]
        );
        assert_eq!(["64", "4k", "4KiB", "1m"].map(size), [Ok(64), Ok(4096), Ok(4096), Ok(1 << 20)]);
        assert_eq!((rate("10q"), rate(""), rate("k")), (Err(NO_RATE), Err(NO_RATE), Err(NO_RATE)));
        assert_eq!((size("64q"), size(""), size("8192m")), (Err(NO_SIZE), Err(NO_SIZE), Err(NO_SIZE)));
    }
}
