//! Sizes and times as they are written on the command line and in job files. Pure.
//!
//! On the command line a `k` or a `KiB` is 1024 bytes. In a job file `k` and `kb` are too, as in fio; `kib` is refused
//! there, because fio takes it for 1000 bytes unless `kb_base` says otherwise.

use std::time::Duration;

/// A size on the command line: `4096`, `4k`, `128KiB`, `1.5g`.
pub fn bytes(text: &str) -> Result<u64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let (number, unit) = split(&lower);
    let binary = unit.strip_suffix("ib").filter(|letter| !letter.is_empty());
    let letter = binary.or_else(|| unit.strip_suffix('b')).unwrap_or(unit);
    let scaled = number.parse::<f64>().ok().zip(shift(letter));
    let bytes = scaled.map(|(number, shift)| number * (1_u64 << shift) as f64);
    match bytes {
        Some(bytes) if bytes >= 0.0 && bytes <= (1_u64 << 60) as f64 && bytes.fract() == 0.0 => {
            Ok(bytes as u64)
        }
        _ => Err(format!("{text:?} is not a size; write 4096, 4k, 64m or 4g")),
    }
}

/// A size in a job file: a whole number, also hexadecimal, with `k`, `m`, `g`, `t` or `p`, each with or without `b`.
pub fn fio_bytes(text: &str) -> Result<u64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let wrong = || format!("{text:?} is not a size; write 4096, 4k, 64m or 4g");
    if let Some(digits) = lower.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).map_err(|_| wrong());
    }
    let (number, unit) = split(&lower);
    if unit.ends_with("ib") || unit.ends_with('i') {
        return Err(format!(
            "{text:?} would be a power of 1000 to fio, whatever it looks like; write {number}{} for the power of 1024",
            &unit[..1]
        ));
    }
    let scaled = number.parse::<u64>().ok().zip(shift(unit.strip_suffix('b').unwrap_or(unit)));
    scaled
        .and_then(|(number, shift)| number.checked_mul(1 << shift))
        .filter(|bytes| *bytes <= 1 << 60)
        .ok_or_else(wrong)
}

fn split(text: &str) -> (&str, &str) {
    text.split_at(text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len()))
}

fn shift(letter: &str) -> Option<u32> {
    ["", "k", "m", "g", "t", "p"].iter().position(|unit| *unit == letter).map(|place| 10 * place as u32)
}

/// A size as people read it, and as [`bytes`] reads it back: `4k`, `1536`, `4g`.
pub fn shown_bytes(bytes: u64) -> String {
    let units = [(40, "t"), (30, "g"), (20, "m"), (10, "k")];
    let fits = |(shift, _): &&(u32, &str)| bytes >> shift > 0 && bytes.is_multiple_of(1 << shift);
    units
        .iter()
        .find(fits)
        .map_or_else(|| bytes.to_string(), |(shift, unit)| format!("{}{unit}", bytes >> shift))
}

/// Unit of a time that is written without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
}

/// A time in a job file: a whole number with `us`, `ms`, `s`, `m`, `h` or `d`, or in the unit of its key.
pub fn fio_time(text: &str, unit: TimeUnit) -> Result<Duration, String> {
    const MICROSECONDS: [(&str, u64); 13] = [
        ("us", 1),
        ("usec", 1),
        ("ms", 1_000),
        ("msec", 1_000),
        ("s", 1_000_000),
        ("sec", 1_000_000),
        ("m", 60_000_000),
        ("min", 60_000_000),
        ("h", 3_600_000_000),
        ("hour", 3_600_000_000),
        ("hours", 3_600_000_000),
        ("d", 86_400_000_000),
        ("day", 86_400_000_000),
    ];
    let lower = text.trim().to_ascii_lowercase();
    let (number, name) = split(&lower);
    let scale = match name {
        "" => Some(match unit {
            TimeUnit::Seconds => 1_000_000,
            TimeUnit::Milliseconds => 1_000,
            TimeUnit::Microseconds => 1,
        }),
        _ => MICROSECONDS.iter().find(|(known, _)| *known == name).map(|(_, scale)| *scale),
    };
    let microseconds =
        number.parse::<u64>().ok().zip(scale).and_then(|(number, scale)| number.checked_mul(scale));
    microseconds
        .map(Duration::from_micros)
        .ok_or_else(|| format!("{text:?} is not a time; write 10, 10s, 500ms or 2m"))
}

/// CPUs as a list of numbers and ranges: `0-1,3`.
pub fn cpus(text: &str) -> Result<Vec<usize>, String> {
    /// More CPUs than a machine has are a mistake in a range.
    const CPUS_MAX: usize = 4096;
    let wrong = || format!("{text:?} is no list of CPUs; write 0,2 or 0-3");
    let mut list = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<usize>().map_err(|_| wrong());
        let (first, last) = (number(first)?, number(last)?);
        if last < first || last >= CPUS_MAX || list.len() > CPUS_MAX {
            return Err(wrong());
        }
        list.extend(first..=last);
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_of_the_command_line_is_a_power_of_1024() {
        for (text, expected) in [
            ("0", 0),
            ("512", 512),
            ("512b", 512),
            ("4k", 4096),
            ("4K", 4096),
            ("4kb", 4096),
            ("4KiB", 4096),
            ("1.5g", 3 << 29),
            ("2t", 2 << 40),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "k", "-1", "4x", "4ib", "4kk", "0.3", "inf", "nan", "99999p"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_size_of_a_job_file_is_what_fio_takes_it_for_or_refused() {
        for (text, expected) in
            [("512", 512), ("4k", 4096), ("4KB", 4096), ("0x1000", 4096), ("1g", 1 << 30), ("1 m", 0)]
        {
            let read = fio_bytes(text);
            if expected == 0 {
                assert!(read.is_err(), "{text}");
            } else {
                assert_eq!(read, Ok(expected), "{text}");
            }
        }
        assert!(fio_bytes("4KiB").unwrap_err().contains("write 4k"), "{:?}", fio_bytes("4KiB"));
        for text in ["", "4.5k", "50%", "-1", "0xg", "18446744073709551615k"] {
            assert!(fio_bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_shown_size_reads_back() {
        for size in [0, 1, 512, 1024, 1536, 4096, 3 << 20, 1 << 30, (1 << 40) + 512] {
            assert_eq!(bytes(&shown_bytes(size)), Ok(size), "{}", shown_bytes(size));
        }
        assert_eq!(shown_bytes(65_536), "64k");
    }

    #[test]
    fn a_time_without_a_unit_has_that_of_its_key() {
        for (text, unit, microseconds) in [
            ("10", TimeUnit::Seconds, 10_000_000),
            ("10", TimeUnit::Milliseconds, 10_000),
            ("10", TimeUnit::Microseconds, 10),
            ("500ms", TimeUnit::Seconds, 500_000),
            ("2m", TimeUnit::Microseconds, 120_000_000),
            ("1h", TimeUnit::Seconds, 3_600_000_000),
        ] {
            assert_eq!(fio_time(text, unit), Ok(Duration::from_micros(microseconds)), "{text}");
        }
        for text in ["", "s", "1.5s", "10parsec", "99999999999999999999", "99999999999999d"] {
            assert!(fio_time(text, TimeUnit::Seconds).is_err(), "{text}");
        }
    }

    #[test]
    fn cpus_are_numbers_and_ranges() {
        assert_eq!(cpus("0-2,5"), Ok(vec![0, 1, 2, 5]));
        for text in ["", "a", "2-1", "0-99999", "1,,2", "0-4095,0-4095,0"] {
            assert!(cpus(text).is_err(), "{text}");
        }
    }
}
