//! Flags that servers and loads of all protocols have, and errors about values that say what to write.

use std::{ops::RangeInclusive, str::FromStr};

use weir_record::quantity;

mod load;
mod serve;
mod settings;

pub(crate) use load::{Arrivals, LoadShared, MaxErrors};
pub(crate) use serve::{Accept, ServeShared};
pub(crate) use settings::{Settings, of as settings_of};

/// The error about a value that is no whole number.
pub(crate) const NO_WHOLE_NUMBER: &str = "write a whole number, 0 or more";

/// The error about a value that is no number.
pub(crate) const NO_NUMBER: &str = "write a number such as 2 or 0.5";

/// A whole number, with an error that says what to write.
pub(crate) fn number<N: FromStr>(text: &str) -> Result<N, &'static str> {
    text.parse().map_err(|_| NO_WHOLE_NUMBER)
}

/// A number that need not be whole.
fn fraction(text: &str) -> Result<f64, &'static str> {
    text.parse().map_err(|_| NO_NUMBER)
}

/// The errors about a value that is no rate, and about one that is no size.
pub(crate) const NO_RATE: &str = "write a number such as 500, 10k or 1.5M";
pub(crate) const NO_SIZE: &str = "write bytes such as 64, 4k or 1m (powers of 1024)";

/// A rate: `10k` is ten thousand.
fn rate(text: &str) -> Result<f64, &'static str> {
    quantity::per_second(text).ok_or(NO_RATE)
}

/// A rate of whole operations.
pub(crate) fn whole_rate(text: &str) -> Result<u32, &'static str> {
    let is_whole = |rate: &f64| rate.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(rate);
    rate(text).ok().filter(is_whole).map(|rate| rate as u32).ok_or(NO_RATE)
}

/// A size in bytes: `4k` is 4096, as in the storage commands.
pub(crate) fn size<N: TryFrom<u64>>(text: &str) -> Result<N, &'static str> {
    quantity::bytes(text).and_then(|bytes| bytes.try_into().ok()).ok_or(NO_SIZE)
}

/// A size in a range, with clap's error for a number outside a range.
pub(crate) fn size_within(text: &str, range: RangeInclusive<usize>) -> Result<usize, String> {
    let bytes = size::<usize>(text)?;
    if range.contains(&bytes) {
        return Ok(bytes);
    }
    Err(format!("{text} is not in {}..={}", range.start(), range.end()))
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
        let sizes: [Result<u32, _>; 4] = ["64", "4k", "4KiB", "1m"].map(size);
        assert_eq!(sizes, [Ok(64), Ok(4096), Ok(4096), Ok(1 << 20)]);
        assert_eq!((rate("10q"), rate(""), rate("k")), (Err(NO_RATE), Err(NO_RATE), Err(NO_RATE)));
        let refused: [Result<u32, _>; 3] = ["64q", "", "8192m"].map(size);
        assert_eq!(refused, [Err(NO_SIZE), Err(NO_SIZE), Err(NO_SIZE)]);
        assert_eq!((whole_rate("2k"), whole_rate("0.5")), (Ok(2_000), Err(NO_RATE)));
        assert_eq!(size_within("16k", 256..=1 << 20), Ok(16_384));
        assert_eq!(size_within("2m", 256..=1 << 20), Err("2m is not in 256..=1048576".to_owned()));
    }
}
