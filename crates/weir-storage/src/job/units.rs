//! Sizes and times in the notation of the command line and of job files. Pure.
//!
//! On the command line a `k` or a `KiB` is 1024 bytes. In a job file `k` and `kb` also mean 1024, as in fio; `kib` is
//! refused there, because fio takes it for 1000 bytes unless `kb_base` says otherwise.

use std::time::Duration;

use weir_record::{
    quantity::{self, binary_shift, split_unit},
    storage::{BlockShare, BlockSizes, Skew, StorageJob},
};
use weir_sys::affinity::cpu_set;

/// A size on the command line: `4096`, `4k`, `128KiB`, `1.5g`.
pub fn bytes(text: &str) -> Result<u64, String> {
    quantity::bytes(text).ok_or_else(|| format!("{text:?} is not a size; write 4096, 4k, 64m or 4g"))
}

/// A size in a job file: a whole number, decimal or hexadecimal, with `k`, `m`, `g`, `t` or `p`, each with or without
/// `b`.
pub fn fio_bytes(text: &str) -> Result<u64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let wrong = || format!("{text:?} is not a size; write 4096, 4k, 64m or 4g");
    if let Some(digits) = lower.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).map_err(|_| wrong());
    }
    let (number, unit) = split_unit(&lower);
    if unit.ends_with("ib") || unit.ends_with('i') {
        return Err(format!(
            "{text:?} would be a power of 1000 to fio, whatever it looks like; write {number}{} for the power of 1024",
            &unit[..1]
        ));
    }
    let scaled = number.parse::<u64>().ok().zip(binary_shift(unit.strip_suffix('b').unwrap_or(unit)));
    scaled
        .and_then(|(number, shift)| number.checked_mul(1 << shift))
        .filter(|bytes| *bytes <= 1 << 60)
        .ok_or_else(wrong)
}

/// A size in readable form that [`bytes`] can parse: `4k`, `1536`, `4g`.
pub fn shown_bytes(bytes: u64) -> String {
    let units = [(40, "t"), (30, "g"), (20, "m"), (10, "k")];
    let fits = |(shift, _): &&(u32, &str)| bytes >> shift > 0 && bytes.is_multiple_of(1 << shift);
    units
        .iter()
        .find(fits)
        .map_or_else(|| bytes.to_string(), |(shift, unit)| format!("{}{unit}", bytes >> shift))
}

/// Lengths from the smallest to the largest: `4k-16k`. Returns the largest, and the distribution.
pub(crate) fn block_range(text: &str) -> Result<(u32, BlockSizes), String> {
    let wrong = || format!("{text:?} is no range of lengths; write 4k-16k");
    let (first, last) = text.split_once('-').or_else(|| text.split_once(':')).ok_or_else(wrong)?;
    let (bytes_min, bytes_max) = (block(first)?, block(last)?);
    if bytes_min > bytes_max {
        return Err(wrong());
    }
    let sizes = if bytes_min == bytes_max { BlockSizes::Same } else { BlockSizes::Range { bytes_min } };
    Ok((bytes_max, sizes))
}

/// The length of reads and that of writes. Returns the larger one, and the distribution.
pub(crate) fn block_by_direction(reads: &str, writes: &str) -> Result<(u32, BlockSizes), String> {
    let (reads, writes) = (block(reads)?, block(writes)?);
    let sizes = if reads == writes { BlockSizes::Same } else { BlockSizes::ByDirection { reads, writes } };
    Ok((reads.max(writes), sizes))
}

/// Lengths and their percentages: `4k/10:64k/90`; those without a number share the rest. Returns the largest, and the
/// distribution.
pub(crate) fn block_split(text: &str) -> Result<(u32, BlockSizes), String> {
    /// More block sizes than fio accepts.
    const SHARES_MAX: usize = 64;
    let wrong = || format!("{text:?} is no split of lengths; write 4k/10:64k/90, together 100");
    let mut shares = Vec::new();
    for part in text.split(':').map(str::trim) {
        let (length, percent) = part.split_once('/').unwrap_or((part, ""));
        let percent: Option<u8> = match percent {
            "" => None,
            digits => Some(digits.parse().ok().filter(|percent| *percent > 0).ok_or_else(wrong)?),
        };
        shares.push((block(length)?, percent));
    }
    let given: u32 = shares.iter().filter_map(|(_, percent)| percent.map(u32::from)).sum();
    let without = shares.iter().filter(|(_, percent)| percent.is_none()).count() as u32;
    let each = 100_u32.checked_sub(given).ok_or_else(wrong)?.checked_div(without);
    if shares.len() > SHARES_MAX || each == Some(0) || (each.is_none() && given < 100) {
        return Err(wrong());
    }
    let share = |(bytes, percent): &(u32, Option<u8>)| BlockShare {
        bytes: *bytes,
        percent: percent.unwrap_or(each.unwrap_or(0) as u8),
    };
    let shares: Vec<BlockShare> = shares.iter().map(share).collect();
    let most = shares.iter().map(|share| share.bytes).max().unwrap_or(0);
    let differ = shares.iter().any(|share| share.bytes != most);
    Ok((most, if differ { BlockSizes::Split(shares) } else { BlockSizes::Same }))
}

fn block(text: &str) -> Result<u32, String> {
    u32::try_from(fio_bytes(text)?).map_err(|_| format!("{text:?} is too large"))
}

/// A distribution of random blocks: `zipf:1.2`, `pareto:0.2`, `normal:10`, optionally followed by the position of the
/// likeliest: `zipf:1.2:0.5`.
pub(crate) fn skew(text: &str) -> Result<Skew, String> {
    /// Above this every operation goes to one block.
    const THETA_MAX: f64 = 100.0;
    let mut parts = text.split(':');
    let law = parts.next().unwrap_or_default();
    if !["zipf", "pareto", "normal"].contains(&law) {
        return Err(format!(
            "{text:?} is not possible here; use random, zipf:THETA, pareto:SHARE or normal:DEVIATION"
        ));
    }
    let mut numbers = [None; 2];
    for number in &mut numbers {
        *number = match parts.next() {
            Some(part) => Some(part.parse::<f64>().map_err(|_| format!("{part:?} is not a number"))?),
            None => None,
        };
    }
    let [first, center] = numbers;
    if parts.next().is_some() || center.is_some_and(|center| !(0.0..1.0).contains(&center)) {
        return Err(format!(
            "{text:?}: a place in the file is from 0 to less than 1, and nothing follows it"
        ));
    }
    match law {
        "zipf" => match first.unwrap_or(1.1) {
            theta if theta > 0.0 && theta <= THETA_MAX && theta != 1.0 => Ok(Skew::Zipf { theta, center }),
            theta => Err(format!("theta is from 0 to {THETA_MAX}, but neither 0 nor 1, not {theta}")),
        },
        "pareto" => match first.unwrap_or(0.2) {
            share if share > 0.0 && share < 1.0 => Ok(Skew::Pareto { share, center }),
            share => Err(format!("pareto is between 0 and 1, not {share}")),
        },
        _ => match first.unwrap_or(0.0) {
            percent if (0.0..=100.0).contains(&percent) => Ok(Skew::Normal { percent, center }),
            percent => Err(format!("the deviation is from 0 to 100 percent, not {percent}")),
        },
    }
}

/// The lengths of a job in the form of a job file: key and value.
pub fn shown_sizes(job: &StorageJob) -> (&'static str, String) {
    let shown = |bytes: u32| shown_bytes(u64::from(bytes));
    match &job.block_sizes {
        BlockSizes::Same => ("bs", shown(job.block_bytes)),
        BlockSizes::Range { bytes_min } => {
            ("bsrange", format!("{}-{}", shown(*bytes_min), shown(job.block_bytes)))
        }
        BlockSizes::ByDirection { reads, writes } => ("bs", format!("{},{}", shown(*reads), shown(*writes))),
        BlockSizes::Split(shares) => {
            let parts: Vec<String> =
                shares.iter().map(|share| format!("{}/{}", shown(share.bytes), share.percent)).collect();
            ("bssplit", parts.join(":"))
        }
    }
}

/// A distribution of random blocks in parseable form; `None` for the uniform one.
pub(crate) fn shown_skew(skew: Skew) -> Option<String> {
    let (law, number, center) = match skew {
        Skew::None => return None,
        Skew::Zipf { theta, center } => ("zipf", theta, center),
        Skew::Pareto { share, center } => ("pareto", share, center),
        Skew::Normal { percent, center } => ("normal", percent, center),
    };
    Some(format!("{law}:{number}{}", center.map(|center| format!(":{center}")).unwrap_or_default()))
}

/// Unit of a time without one.
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
    let (number, name) = split_unit(&lower);
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

/// CPUs as numbers and ranges: `0-1,3`. A sorted set as in fio, which gives threads the CPUs of a mask in ascending
/// order.
pub fn cpus(text: &str) -> Result<Vec<usize>, String> {
    cpu_set(text).ok_or_else(|| format!("{text:?} is no list of CPUs; write 0,2 or 0-3"))
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
    fn lengths_that_differ_are_read_and_shown_again() {
        let (most, range) = block_range("4k-16k").expect("a range");
        assert_eq!((most, &range), (16_384, &BlockSizes::Range { bytes_min: 4096 }));
        assert_eq!(block_range("8k-8k"), Ok((8192, BlockSizes::Same)));
        let (most, split) = block_split("4k/50:8k/:16k/").expect("a split");
        let percents =
            [(4096, 50), (8192, 25), (16_384, 25)].map(|(bytes, percent)| BlockShare { bytes, percent });
        assert_eq!((most, &split), (16_384, &BlockSizes::Split(percents.to_vec())));
        assert_eq!(block_split("4k"), Ok((4096, BlockSizes::Same)));
        for sizes in [range, split] {
            let job = StorageJob { block_bytes: 16_384, block_sizes: sizes.clone(), ..StorageJob::default() };
            let (key, value) = shown_sizes(&job);
            let again = if key == "bsrange" { block_range(&value) } else { block_split(&value) };
            assert_eq!(again, Ok((16_384, sizes)));
        }
        for text in ["16k-4k", "4k", "4k-", "-", "4k-8q"] {
            assert!(block_range(text).is_err(), "{text}");
        }
        for text in ["4k/60:8k/60", "4k/0:8k/100", "4k/10:8k/20", "4k/100:8k", "4k/x", "", &"4k:".repeat(99)]
        {
            assert!(block_split(text).is_err(), "{text}");
        }
    }

    #[test]
    fn laws_of_blocks_are_read_and_shown_again() {
        assert_eq!(skew("zipf"), Ok(Skew::Zipf { theta: 1.1, center: None }));
        assert_eq!(skew("pareto"), Ok(Skew::Pareto { share: 0.2, center: None }));
        assert_eq!(skew("normal"), Ok(Skew::Normal { percent: 0.0, center: None }));
        for text in ["zipf:0.5", "zipf:1.2:0.25", "pareto:0.3:0", "normal:20:0.5"] {
            assert_eq!(skew(text).map(shown_skew), Ok(Some(text.to_owned())));
        }
        for text in [
            "zipf:1",
            "zipf:-1",
            "zipf:nan",
            "zipf:1e9",
            "pareto:1",
            "pareto:0",
            "zipf:2:1",
            "zipf:2:0.1:3",
            "normal:101",
            "normal:-1",
            "zoned:50/5",
        ] {
            assert!(skew(text).is_err(), "{text}");
        }
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
    fn cpus_are_the_set_that_fio_takes_them_for() {
        assert_eq!(cpus("0-2,5"), Ok(vec![0, 1, 2, 5]));
        assert_eq!(cpus("3,1,0-1"), Ok(vec![0, 1, 3]));
        for text in ["", "a", "2-1", "0-99999", "1,,2"] {
            assert!(cpus(text).is_err(), "{text}");
        }
    }
}
