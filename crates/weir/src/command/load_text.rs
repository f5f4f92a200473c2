//! What the reports of all loads say to people in the same words: times in fitting units, lines that fit a terminal, a
//! histogram. `--json` has the numbers.

use weir_record::load::{LatencySummary, LoadReport};

/// Where the text of a row begins, behind its name.
const INDENT: usize = 14;
/// Narrowest and widest that a report is drawn.
const COLUMNS_MIN: usize = 60;
const COLUMNS_MAX: usize = 80;
/// Bars of a histogram.
const BARS_MAX: usize = 12;
/// Columns of a bar's line before the bar.
const BAR_AT: usize = 37;

/// The width of a report on a terminal of this width.
pub(super) fn columns(terminal: usize) -> usize {
    terminal.clamp(COLUMNS_MIN, COLUMNS_MAX)
}

/// Breaks rows that are too long between words, and goes on where the texts of rows begin.
pub(super) fn fit(rows: Vec<String>, columns: usize) -> Vec<String> {
    rows.into_iter().flat_map(|row| broken(&row, columns, INDENT)).collect()
}

/// The same for sentences without a name in front.
pub(super) fn fit_sentences(sentences: Vec<String>, columns: usize) -> Vec<String> {
    sentences.into_iter().flat_map(|sentence| broken(&sentence, columns, 2)).collect()
}

fn broken(row: &str, columns: usize, indent: usize) -> Vec<String> {
    if row.chars().count() <= columns {
        return vec![row.to_owned()];
    }
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in row.split_inclusive(' ') {
        let length = line.chars().count() + word.trim_end().chars().count();
        // A word that is longer than a line stands on a line of its own.
        if length > columns && line.chars().count() > indent {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)).trim_end().to_owned());
        }
        line.push_str(word);
    }
    lines.push(line.trim_end().to_owned());
    lines
}

/// A time in the unit that fits it.
pub(super) fn scaled(nanoseconds: f64) -> String {
    const UNITS: [(&str, f64); 4] = [("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
    in_unit(nanoseconds, &UNITS)
}

/// Bytes a second in the unit that fits.
pub(super) fn byte_rate(bytes_per_second: f64) -> String {
    const UNITS: [(&str, f64); 4] = [("B/s", 1.0), ("kB/s", 1e3), ("MB/s", 1e6), ("GB/s", 1e9)];
    in_unit(bytes_per_second, &UNITS)
}

/// The first unit in which the value stays below a thousand, or the last.
fn in_unit(value: f64, units: &[(&str, f64)]) -> String {
    let mut shown = String::new();
    for (unit, size) in units {
        let amount = value / size;
        shown = match amount {
            // What rounds up to 10 has one digit less.
            _ if *size == 1.0 => format!("{amount:.0} {unit}"),
            ..9.995 => format!("{amount:.2} {unit}"),
            _ => format!("{amount:.1} {unit}"),
        };
        if amount < 999.95 {
            break;
        }
    }
    shown
}

/// A length in seconds, without zeros at its end.
fn seconds(nanoseconds: u64) -> String {
    let text = format!("{:.2}", nanoseconds as f64 / 1e9);
    format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
}

/// How long it took, and how much of that was measured.
pub(super) fn time(report: &LoadReport) -> String {
    let measured = seconds(report.window_ns);
    if report.warmup_ns == 0 {
        return format!("time          {measured}, all of it measured");
    }
    let steady = if report.warmup_steady { "" } else { " (not steady when it ended)" };
    let (all, warmup) = (seconds(report.warmup_ns + report.window_ns), seconds(report.warmup_ns));
    format!("time          {all}: {warmup} warm-up{steady}, {measured} measured")
}

/// What a counted run did not reach.
pub(super) fn unreached(report: &LoadReport, unit: &str) -> Option<String> {
    let asked = report.messages_asked.filter(|asked| report.messages < *asked)?;
    let started = report.messages_started.min(asked);
    Some(format!(
        "{} of the {asked} {unit} asked for came back right: {} failed or were cut off, {} were not started in {}",
        report.messages,
        started.saturating_sub(report.messages),
        asked - started,
        seconds(report.window_ns)
    ))
}

/// What the generator itself cost.
pub(super) fn generator(report: &LoadReport, unit: &str) -> String {
    let cpu_ns = report.generator_cpu_ns as f64;
    let busy = report.generator_busy_max * 100.0;
    let cost = match report.messages {
        0 => format!("{} CPU for no right {unit}", scaled(cpu_ns)),
        messages => format!("{} CPU per {unit}", scaled(cpu_ns / messages as f64)),
    };
    format!("generator     {cost}, busiest thread {busy:.0} % of the time measured")
}

/// What the server cost, when it was observed.
pub(super) fn server(report: &LoadReport, unit: &str) -> Option<String> {
    let observed = report.observed.as_ref()?;
    let (cpu_ns, threads) = (observed.cpu_ns as f64, observed.threads);
    let switches = (observed.context_switches_voluntary + observed.context_switches_involuntary) as f64;
    Some(match report.messages {
        0 => format!("server        {} CPU for no right {unit}, {threads} threads", scaled(cpu_ns)),
        messages => format!(
            "server        {} CPU per {unit}, {:.4} context switches per {unit}, {threads} threads",
            scaled(cpu_ns / messages as f64),
            switches / messages as f64
        ),
    })
}

/// The quantiles that people look for; `--json` has all of them.
const QUANTILES_SHOWN: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];

pub(crate) fn latency(summary: &LatencySummary) -> String {
    if summary.count == 0 {
        return "no samples".into();
    }
    let quantile = |(quantile, nanoseconds): &(f64, u64)| {
        // 0.999 reads p99.9
        let percent = (quantile * 1e6).round() / 1e4;
        format!("p{percent} {}", scaled(*nanoseconds as f64))
    };
    let shown = summary.quantiles.iter().filter(|(quantile, _)| QUANTILES_SHOWN.contains(quantile));
    let mut parts = vec![format!("mean {}", scaled(summary.ns_mean))];
    parts.extend(shown.map(quantile));
    parts.push(format!("max {}", scaled(summary.ns_max as f64)));
    parts.join(", ")
}

/// A bar for each of equal steps of the logarithm between the shortest and the longest time; empty without samples.
pub(super) fn histogram(summary: &LatencySummary, unit: &str, columns: usize) -> Vec<String> {
    // One that cannot be read is not ours; the quantiles stand above.
    let Ok(histogram) = summary.histogram() else { return Vec::new() };
    if histogram.is_empty() {
        return Vec::new();
    }
    let edges = edges(histogram.min(), histogram.max());
    let mut counts = vec![0; edges.len()];
    for step in histogram.iter_recorded() {
        let bar = edges.partition_point(|edge| *edge < step.value_iterated_to());
        counts[bar.min(edges.len() - 1)] += step.count_since_last_iteration();
    }
    let most = counts.iter().copied().max().unwrap_or(0).max(1) as f64;
    let room = columns.saturating_sub(BAR_AT) as f64;
    let mut rows = vec![format!("{:>13} {unit:>11} {:>9}", "up to", "share")];
    for (edge, count) in edges.iter().zip(counts) {
        let share = count as f64 * 100.0 / histogram.len() as f64;
        let bar = "█".repeat((count as f64 / most * room).ceil() as usize);
        let row = format!("{:>13} {count:>11} {share:>7.2} %  {bar}", scaled(*edge as f64));
        rows.push(row.trim_end().to_owned());
    }
    rows
}

/// Upper edges of the bars; rising.
fn edges(min: u64, max: u64) -> Vec<u64> {
    let (min, max) = (min.max(1), max.max(1));
    let ratio = max as f64 / min as f64;
    let edge = |bar: usize| (min as f64 * ratio.powf(bar as f64 / BARS_MAX as f64)).round() as u64;
    let mut edges: Vec<u64> = (1..BARS_MAX).map(edge).chain([max]).collect();
    edges.dedup();
    edges
}

pub(super) fn failures(report: &LoadReport) -> String {
    let counts = &report.failures;
    let classes = [
        ("refused", counts.refused),
        ("reset", counts.reset),
        ("connect timeout", counts.connect_timeout),
        ("response timeout", counts.response_timeout),
        ("short", counts.short),
        ("wrong bytes", counts.wrong_bytes),
        ("wrong status", counts.wrong_status),
        ("malformed", counts.malformed),
        ("local limit", counts.local_limit),
        ("unexplained", counts.unexplained),
        ("cut off at end", counts.cut_off_at_end),
    ];
    let seen: Vec<String> = classes
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    if seen.is_empty() { "none".into() } else { seen.join(", ") }
}

/// What went wrong first.
pub(super) fn failure_first(report: &LoadReport) -> Option<String> {
    report.failure_first.as_ref().map(|first| format!("first failure {}", first.text))
}

#[cfg(test)]
mod tests {
    use weir_record::latency::empty_histogram;

    use super::*;

    #[test]
    fn a_time_is_told_in_the_unit_that_fits_it() {
        let told = [
            (0.0, "0 ns"),
            (999.0, "999 ns"),
            (1234.0, "1.23 µs"),
            (9_999.0, "10.0 µs"),
            (999_949.0, "999.9 µs"),
            (999_960.0, "1.00 ms"),
            (126_550_000.0, "126.5 ms"),
            (3.6e12, "3600.0 s"),
        ];
        for (nanoseconds, text) in told {
            assert_eq!(scaled(nanoseconds), text);
        }
        assert_eq!((byte_rate(0.0), byte_rate(5.55e9)), ("0 B/s".into(), "5.55 GB/s".into()));
    }

    #[test]
    fn the_time_says_what_was_warm_up_and_what_was_measured() {
        let (warmup_ns, window_ns) = (5_000_000_000, 5_020_000_000);
        let report = LoadReport { warmup_ns, window_ns, warmup_steady: true, ..LoadReport::default() };
        assert_eq!(time(&report), "time          10.02 s: 5 s warm-up, 5.02 s measured");
        let unsteady = LoadReport { warmup_steady: false, ..report.clone() };
        assert!(time(&unsteady).contains("5 s warm-up (not steady when it ended), 5.02 s"));
        assert_eq!(time(&LoadReport { warmup_ns: 0, ..report }), "time          5.02 s, all of it measured");
    }

    #[test]
    fn a_number_that_was_not_reached_is_said_with_what_became_of_the_rest() {
        let report = LoadReport {
            messages_asked: Some(350),
            messages_started: 345,
            messages: 340,
            window_ns: 10_000_000_000,
            ..LoadReport::default()
        };
        assert_eq!(
            unreached(&report, "responses").expect("ten are missing"),
            "340 of the 350 responses asked for came back right: 5 failed or were cut off, 5 were not started in 10 s"
        );
        assert_eq!(unreached(&LoadReport { messages: 350, ..report.clone() }, "responses"), None);
        assert_eq!(unreached(&LoadReport { messages_asked: None, ..report }, "responses"), None);
    }

    #[test]
    fn what_it_cost_is_not_divided_by_nothing() {
        let report = LoadReport { generator_cpu_ns: 5_059_810, ..LoadReport::default() };
        assert!(generator(&report, "response").contains("5.06 ms CPU for no right response"));
        let one = LoadReport { messages: 1000, ..report };
        assert!(generator(&one, "response").contains("5.06 µs CPU per response"));
    }

    #[test]
    fn rows_are_broken_between_words_and_fit() {
        let row =
            "first byte    mean 126.6 µs, p50 120.1 µs, p90 150.2 µs, p99 999.9 µs, max 1.23 ms".to_owned();
        let rows = fit(vec![row.clone(), "short".into()], 60);
        assert_eq!(rows.len(), 3);
        assert!(rows.iter().all(|row| row.chars().count() <= 60), "{rows:#?}");
        assert_eq!(rows.iter().take(2).map(|row| row.trim()).collect::<Vec<_>>().join(" "), row);
        assert!(rows[1].starts_with(&" ".repeat(INDENT)));
        let long = "x".repeat(100);
        assert_eq!(
            fit(vec![format!("target        {long}")], 60).len(),
            1,
            "a name and its word stay together"
        );
    }

    #[test]
    fn the_bars_hold_every_sample_and_fit() {
        for (values, bars) in [(vec![5; 3], 1), (vec![100, 200], 12), (vec![1, u64::MAX], 12)] {
            let mut histogram = empty_histogram();
            values.iter().for_each(|value| histogram.saturating_record(*value));
            let summary = LatencySummary::from_histogram(&histogram);
            for columns in [60, 80] {
                let rows = super::histogram(&summary, "responses", columns);
                assert_eq!(rows.len(), bars + 1, "{rows:#?}");
                assert!(rows.iter().all(|row| row.chars().count() <= columns), "{rows:#?}");
                let counted = |row: &String| row.rsplit_once(" %").map(|_| row[13..].trim_start().to_owned());
                let counts = rows.iter().filter_map(counted);
                let sum: usize = counts
                    .filter_map(|row| row.split_whitespace().find_map(|word| word.parse::<usize>().ok()))
                    .sum();
                assert_eq!(sum, values.len(), "{rows:#?}");
            }
        }
        assert!(super::histogram(&LatencySummary::default(), "responses", 80).is_empty());
    }
}
