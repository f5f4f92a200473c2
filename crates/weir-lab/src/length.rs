//! Lengths of time as people write them, in study files and on the command line.

/// Nanoseconds of a length such as `20us`, `400ms`, `1s`, `3.5min` (or `3.5m`) or `1h`; `None` if the text is no
/// length.
pub fn length_ns(text: &str) -> Option<u64> {
    let digits = text.find(|symbol: char| !symbol.is_ascii_digit() && symbol != '.')?;
    let number: f64 = text[..digits].parse().ok()?;
    let unit_ns = match &text[digits..] {
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" | "min" => 6e10,
        "h" => 3.6e12,
        _ => return None,
    };
    let nanoseconds = number * unit_ns;
    // About two centuries. The caller refuses anything near it, because it knows the sensible range.
    (nanoseconds < 6e18).then_some(nanoseconds.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_five_units_and_fractions() {
        for (text, ns) in [
            ("20us", Some(20_000)),
            ("400ms", Some(400_000_000)),
            ("1s", Some(1_000_000_000)),
            ("3.5min", Some(210_000_000_000)),
            ("2m", Some(120_000_000_000)),
            ("1h", Some(3_600_000_000_000)),
            ("0.33s", Some(330_000_000)),
            ("1", None),
            ("s", None),
            ("1 s", None),
            ("-1s", None),
            ("1d", None),
            ("9000000000h", None),
        ] {
            assert_eq!(length_ns(text), ns, "{text}");
        }
    }
}
