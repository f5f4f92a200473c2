//! Numbers as text, the same in every language. A value that is not finite is a dash.

use weir_record::figure::Spread;

/// Placeholder for a value that does not exist.
pub(crate) const ABSENT: &str = "–";

fn finite(value: f64, text: impl Fn(f64) -> String) -> String {
    if value.is_finite() { text(value) } else { ABSENT.to_owned() }
}

/// Three significant digits without an exponent, for magnitudes from about 0.001 up.
fn significant(value: f64) -> String {
    match value.abs() {
        magnitude if magnitude < 9.995 => format!("{value:.2}"),
        magnitude if magnitude < 99.95 => format!("{value:.1}"),
        _ => grouped(value),
    }
}

/// A whole number with commas: `195,432`.
pub(crate) fn grouped(value: f64) -> String {
    finite(value, |value| {
        let digits = format!("{:.0}", value.abs());
        let mut text = String::new();
        for (position, digit) in digits.chars().enumerate() {
            if position > 0 && (digits.len() - position).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        if value <= -0.5 { format!("-{text}") } else { text }
    })
}

/// A count with commas.
pub(crate) fn count(count: u64) -> String {
    grouped(count as f64)
}

/// A rate: `195,432/s`.
pub(crate) fn rate(per_second: f64) -> String {
    finite(per_second, |value| format!("{}/s", grouped(value)))
}

/// A possibly small rate: `25,000/s`, `0.3/s`.
pub(crate) fn rare_rate(per_second: f64) -> String {
    finite(per_second, |value| format!("{}/s", rare(value)))
}

/// The same without its unit. A nonzero rate is never shown as zero.
pub(crate) fn rare(per_second: f64) -> String {
    finite(per_second, |value| match value.abs() {
        0.0 => "0".to_owned(),
        magnitude if magnitude < 0.05 => "<0.1".to_owned(),
        magnitude if magnitude < 9.95 => format!("{value:.1}"),
        _ => grouped(value),
    })
}

/// Microseconds with three significant digits: `5.10 µs`.
pub(crate) fn micros(us: f64) -> String {
    finite(us, |value| format!("{} µs", significant(value)))
}

/// A time in a suitable unit: `57.0 µs`, `1.20 ms`.
pub(crate) fn nanos(ns: f64) -> String {
    finite(ns, |value| match value.abs() {
        magnitude if magnitude < 1e3 => format!("{value:.0} ns"),
        magnitude if magnitude < 1e6 => format!("{} µs", significant(value / 1e3)),
        magnitude if magnitude < 1e9 => format!("{} ms", significant(value / 1e6)),
        _ => format!("{} s", significant(value / 1e9)),
    })
}

/// A share or an effect: `1.1 %`.
pub(crate) fn percent(fraction: f64) -> String {
    finite(fraction, |value| {
        let percent = value * 100.0;
        let decimals = usize::from((percent * 10.0).round() % 10.0 != 0.0 || percent.abs() < 0.95);
        format!("{percent:.decimals$} %")
    })
}

/// An optional share or effect in a table. If it exceeds the figure itself, only that is shown.
pub(crate) fn percent_or_absent(fraction: Option<f64>) -> String {
    match fraction {
        Some(beyond) if beyond > 1.0 => ">100 %".to_owned(),
        _ => fraction.map_or_else(|| ABSENT.to_owned(), percent),
    }
}

/// A count per message for tables: `1.93`, `0.031`, `0.004`, `<0.001`.
pub(crate) fn per_message(count: f64) -> String {
    finite(count, |value| match value.abs() {
        0.0 => "0".to_owned(),
        magnitude if magnitude < 0.0005 => "<0.001".to_owned(),
        magnitude if magnitude < 0.0995 => format!("{value:.3}"),
        magnitude if magnitude < 100.0 => format!("{value:.2}"),
        _ => grouped(value),
    })
}

/// The same in prose, where two decimals are enough: `0.03`.
pub(crate) fn per_message_in_prose(count: f64) -> String {
    if (0.0095..100.0).contains(&count) { format!("{count:.2}") } else { per_message(count) }
}

/// A time on an axis, without trailing zeros: `50 µs`.
pub(crate) fn nanos_tick(ns: f64) -> String {
    nanos(ns).replace(".00 ", " ").replace(".0 ", " ")
}

/// Seconds on an axis, without trailing zeros: `0.6 s`.
pub(crate) fn seconds_tick(seconds: f64) -> String {
    match seconds.abs() {
        magnitude if magnitude > 0.0 && magnitude < 0.001 => nanos_tick(seconds * 1e9),
        _ => format!("{} s", bound(seconds)),
    }
}

/// A bound as requested, with no additional digits.
pub(crate) fn bound(bound: f64) -> String {
    finite(bound, |value| {
        if value.abs() < 1e4 {
            format!("{:.3}", value).trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            grouped(value)
        }
    })
}

/// A ratio with three decimals for tables: `0.782`.
pub(crate) fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| ABSENT.to_owned(), |value| finite(value, |value| format!("{value:.3}")))
}

/// A ratio with its interval for tables: `0.782 [0.774, 0.790]`.
pub(crate) fn ratio_and_interval(estimate: Option<f64>, interval: Option<(f64, f64)>) -> String {
    match interval {
        Some((low, high)) if estimate.is_some_and(f64::is_finite) => {
            let end = |value| end_of_interval(value, |value| ratio(Some(value)));
            format!("{} [{}, {}]", ratio(estimate), end(low), end(high))
        }
        _ => ratio(estimate),
    }
}

/// An end of a ratio's interval. Below a hundredth and above a hundredfold only that is shown: very few units decide
/// nothing, and digits would suggest that they do.
fn end_of_interval(value: f64, number: impl Fn(f64) -> String) -> String {
    match value {
        0.0..0.01 => "<0.01".to_owned(),
        value if value > 100.0 && value.is_finite() => ">100".to_owned(),
        value => number(value),
    }
}

/// A ratio in prose: two decimals, three when the interval is narrower than 0.01. Returns (`0.78`, `[0.77, 0.79]`).
pub(crate) fn ratio_in_prose(estimate: f64, interval: Option<(f64, f64)>) -> (String, String) {
    let decimals = match interval {
        Some((low, high)) if high - low < 0.01 => 3,
        _ => 2,
    };
    let number = |value: f64| finite(value, |value| format!("{value:.decimals$}"));
    let end = |value| end_of_interval(value, number);
    let range = interval.map_or_else(String::new, |(low, high)| format!(" [{}, {}]", end(low), end(high)));
    (number(estimate), range)
}

/// A figure with its smallest and largest value in a table: `5.10 µs (4.98 µs – 5.31 µs)`.
pub(crate) fn with_range(figure: f64, range: (f64, f64), number: impl Fn(f64) -> String) -> String {
    format!("{} ({} – {})", number(figure), number(range.0), number(range.1))
}

/// The same of a median.
pub(crate) fn spread(spread: Spread, number: impl Fn(f64) -> String) -> String {
    with_range(spread.median, (spread.min, spread.max), number)
}

/// A measured amount of memory: `930 B`, `12.3 MiB`.
pub(crate) fn memory(amount: f64) -> String {
    finite(amount, |value| bytes(value.round().max(0.0) as u64))
}

/// A size: `64 B`, `4 KiB`, `7.6 GiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.into_iter().find(|(_, size)| bytes >= *size) {
        Some((unit, size)) if bytes.is_multiple_of(size) => format!("{} {unit}", bytes / size),
        Some((unit, size)) => format!("{:.1} {unit}", bytes as f64 / size as f64),
        None => format!("{bytes} B"),
    }
}

/// A quantile as a percentage: `99.9 %`, without trailing zeros.
pub(crate) fn quantile(quantile: f64) -> String {
    finite(quantile, |value| {
        let text = format!("{:.4}", value * 100.0);
        format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
    })
}

/// A difference with its sign: `+0.031`; what rounds to zero has none.
pub(crate) fn signed(difference: f64) -> String {
    finite(difference, |value| match format!("{value:+.3}") {
        zero if zero == "-0.000" || zero == "+0.000" => "0.000".to_owned(),
        signed => signed,
    })
}

/// A probability: three decimals, `<0.001` below.
pub(crate) fn probability(p: Option<f64>) -> String {
    match p {
        Some(p) if p.is_finite() && p < 0.001 => "<0.001".to_owned(),
        Some(p) if p.is_finite() => format!("{p:.3}"),
        _ => ABSENT.to_owned(),
    }
}

/// A share of a capacity, which is known to about one per cent.
pub(crate) fn whole_percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// Names in a row before the rest is counted.
const NAMES_SHOWN: usize = 3;

/// The first of several names, and the number of further ones.
pub(crate) fn few(mut names: Vec<String>) -> String {
    let further = names.len().saturating_sub(NAMES_SHOWN);
    names.truncate(NAMES_SHOWN);
    let named = names.join("; ");
    if further > 0 { format!("{named} (+{further})") } else { named }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_people_write_them() {
        assert_eq!(grouped(195_432.4), "195,432");
        assert_eq!(grouped(-1_234.0), "-1,234");
        assert_eq!(grouped(-0.2), "0");
        assert_eq!(rate(999.6), "1,000/s");
        assert_eq!(
            [0.0, 0.04, 0.27, 9.9, 9.96, 25_000.4].map(rare_rate),
            ["0/s", "<0.1/s", "0.3/s", "9.9/s", "10/s", "25,000/s"]
        );
        assert_eq!(rare(0.3), "0.3");
        assert_eq!(micros(5.1), "5.10 µs");
        assert_eq!(micros(9.999), "10.0 µs");
        assert_eq!(nanos(1_200_000.0), "1.20 ms");
        assert_eq!(percent(0.011), "1.1 %");
        assert_eq!(percent(0.03), "3 %");
        assert_eq!(percent(0.0), "0.0 %");
        assert_eq!(per_message(0.0312), "0.031");
        assert_eq!(per_message(0.004), "0.004");
        assert_eq!(per_message_in_prose(0.0312), "0.03");
        assert_eq!(per_message_in_prose(0.004), "0.004");
        assert_eq!([0.0312, -0.5, -0.000_4, 0.000_4].map(signed), ["+0.031", "-0.500", "0.000", "0.000"]);
        assert_eq!(nanos_tick(50_000.0), "50 µs");
        assert_eq!(
            [0.0, 0.2 * 3.0, 5.0, 0.000_2, 20_000.0].map(seconds_tick),
            ["0 s", "0.6 s", "5 s", "200 µs", "20,000 s"]
        );
        assert_eq!(per_message(0.0001), "<0.001");
        assert_eq!(bytes(64), "64 B");
        assert_eq!(bytes(4096), "4 KiB");
        assert_eq!(quantile(0.999), "99.9 %");
        assert_eq!(quantile(1.0), "100 %");
    }

    #[test]
    fn an_interval_that_says_nothing_has_no_digits() {
        assert_eq!(ratio_and_interval(Some(0.874), Some((0.0001, 626_793.4))), "0.874 [<0.01, >100]");
        assert_eq!(ratio_and_interval(Some(0.874), Some((0.01, 100.0))), "0.874 [0.010, 100.000]");
        assert_eq!(ratio_in_prose(0.874, Some((0.0, 101.0))).1, " [<0.01, >100]");
    }

    #[test]
    fn what_is_not_finite_is_a_dash() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for text in
                [grouped(value), rate(value), micros(value), nanos(value), percent(value), per_message(value)]
            {
                assert_eq!(text, ABSENT);
            }
            assert_eq!(ratio(Some(value)), ABSENT);
            assert_eq!(probability(Some(value)), ABSENT);
        }
    }

    #[test]
    fn a_narrow_interval_gets_a_third_decimal() {
        assert_eq!(
            ratio_in_prose(0.781, Some((0.772, 0.789))),
            ("0.78".to_owned(), " [0.77, 0.79]".to_owned())
        );
        assert_eq!(
            ratio_in_prose(1.0, Some((0.998, 1.003))),
            ("1.000".to_owned(), " [0.998, 1.003]".to_owned())
        );
    }
}
