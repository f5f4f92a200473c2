//! Common text of the reports of all loads: times in fitting units, lines that fit a terminal, a histogram. `--json`
//! has the numbers.

use std::fmt::Display;

use weir_record::{
    failure::FailureCounts,
    latency::LatencySummary,
    load::{GeneratorPart, Generators, LoadReport},
};
use weir_report::{Language, keep_together, localized, pad_end, pad_start, spaced};

/// The column of a row's text, after its name.
const INDENT: usize = 14;
/// Narrowest and widest report.
const COLUMNS_MIN: usize = 60;
const COLUMNS_MAX: usize = 80;
/// Bars of a histogram.
const BARS_MAX: usize = 12;
/// Columns of a bar's line before the bar.
const BAR_AT: usize = 37;

/// The unit that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Message,
    Response,
    Order,
}

impl Unit {
    /// One of them, as it stands after "per".
    pub(crate) fn one(self, language: Language) -> &'static str {
        language.choose(match self {
            Self::Message => ["message", "메시지", "条消息"],
            Self::Response => ["response", "응답", "个响应"],
            Self::Order => ["order", "주문", "笔订单"],
        })
    }

    /// Several of them.
    pub(crate) fn plural(self, language: Language) -> &'static str {
        language.choose(match self {
            Self::Message => ["messages", "메시지", "消息"],
            Self::Response => ["responses", "응답", "响应"],
            Self::Order => ["orders", "주문", "订单"],
        })
    }

    /// Their rate.
    pub(crate) fn rate(self, language: Language) -> &'static str {
        language.choose(match self {
            Self::Message => ["messages/s", "메시지/초", "消息/秒"],
            Self::Response => ["responses/s", "응답/초", "响应/秒"],
            Self::Order => ["orders/s", "주문/초", "订单/秒"],
        })
    }
}

/// The width of a report on a terminal of this width.
pub(crate) fn columns(terminal: usize) -> usize {
    terminal.clamp(COLUMNS_MIN, COLUMNS_MAX)
}

/// Breaks long rows between words, and continues in the column of a row's text.
pub(crate) fn fit(rows: Vec<String>, columns: usize) -> Vec<String> {
    rows.into_iter().flat_map(|row| broken(&row, columns, INDENT)).collect()
}

/// The same for sentences without a name.
pub(crate) fn fit_sentences(sentences: Vec<String>, columns: usize) -> Vec<String> {
    sentences.into_iter().flat_map(|sentence| broken(&sentence, columns, 2)).collect()
}

fn broken(row: &str, columns: usize, indent: usize) -> Vec<String> {
    let width = weir_report::columns;
    if width(row) <= columns {
        return vec![row.to_owned()];
    }
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    // A figure and its unit stay together.
    for piece in weir_report::pieces(&keep_together(row)) {
        // A word that is longer than a line gets its own line.
        if width(&line) + width(piece.trim_end()) > columns && width(&line) > indent {
            lines.push(spaced(&std::mem::replace(&mut line, " ".repeat(indent))));
        }
        line.push_str(piece);
    }
    lines.push(spaced(&line));
    lines
}

/// A row of a report: its name and its text.
pub(crate) fn row(language: Language, name: [&'static str; 3], text: impl Display) -> String {
    format!("{}{text}", pad_end(language.choose(name), INDENT))
}

/// A time in a fitting unit.
pub(crate) fn scaled(nanoseconds: f64) -> String {
    const UNITS: [(&str, f64); 4] = [("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
    in_unit(nanoseconds, &UNITS)
}

/// A time in one second of the run; none in a second without an answer.
pub(crate) fn scaled_or_none(nanoseconds: u64) -> String {
    if nanoseconds == 0 { "-".into() } else { scaled(nanoseconds as f64) }
}

/// Bytes a second in a fitting unit.
pub(crate) fn byte_rate(bytes_per_second: f64) -> String {
    const UNITS: [(&str, f64); 4] = [("B/s", 1.0), ("kB/s", 1e3), ("MB/s", 1e6), ("GB/s", 1e9)];
    in_unit(bytes_per_second, &UNITS)
}

/// The first unit in which the value stays below a thousand, or the last.
fn in_unit(value: f64, units: &[(&str, f64)]) -> String {
    let mut shown = String::new();
    for (unit, size) in units {
        let amount = value / size;
        shown = match amount {
            // A value that rounds up to 10 has one digit less.
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

/// A length in seconds, without trailing zeros.
fn seconds(nanoseconds: u64, language: Language) -> String {
    let text = format!("{:.2}", nanoseconds as f64 / 1e9);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    localized!(language, "{text} s", "{text}초", "{text} 秒")
}

/// How long it took, and how much of that was measured.
pub(crate) fn time(report: &LoadReport, language: Language) -> String {
    let measured = seconds(report.window_ns, language);
    let text = if report.warmup_ns == 0 {
        localized!(
            language,
            "{measured}, all of it measured",
            "{measured}, 모두 측정 구간",
            "{measured}，全部为测量窗口"
        )
    } else {
        let unsteady = [" (not steady when it ended)", "(안정되기 전에 끝남)", "（结束时尚未达到稳态）"];
        let steady = if report.warmup_steady { "" } else { language.choose(unsteady) };
        let all = seconds(report.warmup_ns + report.window_ns, language);
        let warmup = seconds(report.warmup_ns, language);
        localized!(
            language,
            "{all}: {warmup} warm-up{steady}, {measured} measured",
            "{all}: 예열 {warmup}{steady}, 측정 구간 {measured}",
            "{all}：预热 {warmup}{steady}，测量 {measured}",
        )
    };
    row(language, ["time", "시간", "时长"], text)
}

/// The messages of a counted run that failed or were not started.
pub(crate) fn unreached(report: &LoadReport, unit: Unit, language: Language) -> Option<String> {
    let asked = report.messages_asked.filter(|asked| report.messages < *asked)?;
    let (messages, started) = (report.messages, report.messages_started.min(asked));
    let (failed, left) = (started.saturating_sub(messages), asked - started);
    let (unit, time) = (unit.plural(language), seconds(report.window_ns, language));
    Some(localized!(
        language,
        "{messages} of the {asked} {unit} asked for came back right: {failed} failed or were cut off, {left} were not \
         started in {time}",
        "지정한 {unit} {asked}건 중 {messages}건이 올바르게 돌아옴. {failed}건은 실패하거나 끊겼고, {left}건은 {time} 안에 시작하지 못함",
        "指定的{unit}共 {asked}，正确返回 {messages}：{failed} 个失败或中断，{left} 个在 {time}内未能开始",
    ))
}

/// The same as a row.
pub(crate) fn asked_for(report: &LoadReport, unit: Unit, language: Language) -> Option<String> {
    unreached(report, unit, language).map(|text| row(language, ["asked for", "지정 건수", "指定次数"], text))
}

/// The generator's own CPU time.
pub(crate) fn generator(report: &LoadReport, unit: Unit, language: Language) -> String {
    let cost = cpu(report.generator_cpu_ns, report.messages, unit, language);
    let busy = report.generator_busy_max * 100.0;
    let text = localized!(
        language,
        "{cost}, busiest thread {busy:.0} % of the time measured",
        "{cost}, 가장 바쁜 스레드의 CPU 사용률 {busy:.0} %",
        "{cost}，最忙线程的 CPU 占用率 {busy:.0} %",
    );
    row(language, ["generator", "부하 생성기", "负载生成器"], text)
}

/// CPU time per unit, or in all where there are no units.
fn cpu(cpu_ns: u64, messages: u64, unit: Unit, language: Language) -> String {
    let unit = unit.one(language);
    if messages == 0 {
        let all = scaled(cpu_ns as f64);
        return localized!(
            language,
            "{all} CPU for no right {unit}",
            "CPU {all}(올바른 {unit} 없음)",
            "CPU {all}（没有一{unit}正确）",
        );
    }
    let each = scaled(cpu_ns as f64 / messages as f64);
    localized!(language, "{each} CPU per {unit}", "{unit}당 CPU {each}", "每{unit} CPU {each}")
}

/// The server's CPU time, if it was observed.
pub(crate) fn server(report: &LoadReport, unit: Unit, language: Language) -> Option<String> {
    let observed = report.observed.as_ref()?;
    let threads = observed.threads;
    let cost = cpu(observed.cpu_ns, report.messages, unit, language);
    let text = if report.messages == 0 {
        localized!(
            language,
            "{cost}, {threads} threads",
            "{cost}, 스레드 {threads}개",
            "{cost}，{threads} 个线程"
        )
    } else {
        let all = observed.context_switches_voluntary + observed.context_switches_involuntary;
        let switches = all as f64 / report.messages as f64;
        let unit = unit.one(language);
        localized!(
            language,
            "{cost}, {switches:.4} context switches per {unit}, {threads} threads",
            "{cost}, {unit}당 컨텍스트 스위치 {switches:.4}회, 스레드 {threads}개",
            "{cost}，每{unit}上下文切换 {switches:.4} 次，{threads} 个线程",
        )
    };
    Some(row(language, ["server", "서버", "服务器"], text))
}

/// The usual quantiles; `--json` has all of them.
const QUANTILES_SHOWN: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];

pub(crate) fn latency(summary: &LatencySummary, language: Language) -> String {
    if summary.count == 0 {
        return language.choose(["no samples", "표본 없음", "没有样本"]).to_owned();
    }
    let quantile = |(quantile, nanoseconds): &(f64, u64)| {
        // 0.999 is p99.9
        let percent = (quantile * 1e6).round() / 1e4;
        format!("p{percent} {}", scaled(*nanoseconds as f64))
    };
    let shown = summary.quantiles.iter().filter(|(quantile, _)| QUANTILES_SHOWN.contains(quantile));
    let named = |name: [&'static str; 3], ns: f64| format!("{} {}", language.choose(name), scaled(ns));
    let mut parts = vec![named(["mean", "평균", "平均"], summary.ns_mean)];
    parts.extend(shown.map(quantile));
    parts.push(named(["max", "최대", "最大"], summary.ns_max as f64));
    parts.join(language.list())
}

/// A bar for each of equal steps of the logarithm between the shortest and the longest time; empty without samples.
pub(crate) fn histogram(
    summary: &LatencySummary,
    unit: Unit,
    columns: usize,
    language: Language,
) -> Vec<String> {
    // A histogram that cannot be read is not ours; the quantiles stand above.
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
    let head = [
        pad_start(language.choose(["up to", "이하", "不超过"]), 13),
        pad_start(unit.plural(language), 11),
        pad_start(language.choose(["share", "비율", "占比"]), 9),
    ];
    let mut rows = vec![head.join(" ")];
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

pub(crate) fn failures(report: &LoadReport, language: Language) -> String {
    failures_of(&report.failures, report.failed_starts, language)
}

/// The same for any counts, with starts that were never made.
pub(crate) fn failures_of(counts: &FailureCounts, failed_starts: u64, language: Language) -> String {
    let classes = [
        (["refused", "연결 거부", "连接被拒"], counts.refused),
        (["reset", "연결 리셋", "连接被重置"], counts.reset),
        (["connect timeout", "연결 시간 초과", "连接超时"], counts.connect_timeout),
        (["response timeout", "응답 시간 초과", "响应超时"], counts.response_timeout),
        (["short", "응답 잘림", "响应不完整"], counts.short),
        (["wrong bytes", "잘못된 바이트", "字节有误"], counts.wrong_bytes),
        (["wrong status", "다른 상태 코드", "状态码不符"], counts.wrong_status),
        (["malformed", "형식이 잘못된 응답", "格式错误"], counts.malformed),
        (["local limit", "로컬 한도", "本机限制"], counts.local_limit),
        (["unexplained", "원인 불명", "原因不明"], counts.unexplained),
        (["never started", "시작하지 못함", "未能发出"], failed_starts),
        (["cut off at end", "종료할 때 중단됨", "结束时中断"], counts.cut_off_at_end),
    ];
    let seen: Vec<String> = classes
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| {
            let name = language.choose(*name);
            localized!(language, "{count} {name}", "{name} {count}건", "{name} {count} 例")
        })
        .collect();
    if seen.is_empty() { none(language).to_owned() } else { seen.join(language.list()) }
}

/// A row's text for zero.
pub(crate) fn none(language: Language) -> &'static str {
    language.choose(["none", "없음", "无"])
}

/// The failures by class, and the first error.
pub(crate) fn failure_rows(report: &LoadReport, language: Language) -> Vec<String> {
    let first = report.failure_first.as_ref();
    let first = first.map(|first| row(language, ["first failure", "첫 실패", "首个失败"], &first.text));
    let all = row(language, ["failures", "실패", "失败"], failures(report, language));
    std::iter::once(all).chain(first).collect()
}

/// The rows that only an open loop has.
pub(crate) fn paced(report: &LoadReport, language: Language) -> Vec<String> {
    if report.rate_per_second.is_none() {
        return Vec::new();
    }
    vec![
        row(language, ["service time", "서비스 시간", "服务时间"], latency(&report.service, language)),
        row(language, ["send lag", "전송 지연", "发送延迟"], latency(&report.send_lag, language)),
        row(language, ["missed starts", "미전송 건수", "未发出数"], missed_starts(report, language)),
    ]
    .into_iter()
    .chain(at_least(report, language))
    .collect()
}

/// The number of starts that were never made, and whether the server or the generator was late.
fn missed_starts(report: &LoadReport, language: Language) -> String {
    let (missed, free) = (report.missed_starts, report.missed_starts_free);
    if missed == 0 {
        return "0".into();
    }
    if report.generator_bound {
        return localized!(
            language,
            "{missed} (the generator was late: a connection was free for {free} of them)",
            "{missed}(부하 생성기가 늦음: 그중 {free}건은 유휴 연결이 있었음)",
            "{missed}（负载生成器延误：其中 {free} 个有空闲连接）",
        );
    }
    if free == 0 {
        return localized!(
            language,
            "{missed} (every connection was waiting for the server)",
            "{missed}(모든 연결이 서버를 기다림)",
            "{missed}（所有连接都在等待服务器）",
        );
    }
    localized!(
        language,
        "{missed} (a connection was free for {free} of them; for the others all were waiting for the server)",
        "{missed}(그중 {free}건은 유휴 연결이 있었고, 나머지는 모든 연결이 서버를 기다림)",
        "{missed}（其中 {free} 个有空闲连接，其余的所有连接都在等待服务器）",
    )
}

/// The number of response times that have only a lower bound.
fn at_least(report: &LoadReport, language: Language) -> Option<String> {
    let count = report.response_at_least;
    let text = localized!(
        language,
        "{count} response times are at least so long: no answer, or no start, until the run ended",
        "응답 시간 {count}건은 하한값임: 실행이 끝날 때까지 응답이 없거나 시작하지 못함",
        "有 {count} 个响应时间只是下限：直到运行结束都没有应答，或未能发出",
    );
    (count > 0).then(|| row(language, ["unanswered", "무응답", "无应答"], text))
}

/// The target, and the kind of load.
pub(crate) fn target(report: &LoadReport, target: &str, language: Language) -> String {
    let mode = match report.mode.as_str() {
        "open" => language.choose(["open", "개방형", "开环"]),
        "closed" => language.choose(["closed", "폐쇄형", "闭环"]),
        other => other,
    };
    let driver = &report.driver;
    let text = localized!(
        language,
        "{target} ({mode} loop, generator on {driver})",
        "{target} ({mode} 부하, 부하 생성기 드라이버 {driver})",
        "{target}（{mode}，负载生成器使用 {driver}）",
    );
    row(language, ["target", "대상", "目标"], text)
}

/// The rate that was reached, and whether it is a lower bound.
pub(crate) fn throughput(report: &LoadReport, unit: Unit, language: Language) -> String {
    let bound = match report.generator_bound {
        true => language.choose([
            " (the generator was the limit: a lower bound)",
            "(부하 생성기가 한계여서 하한값임)",
            "（瓶颈在负载生成器，仅为下限）",
        ]),
        false if report.failed_starts > 0 => language.choose([
            " (the server was the limit: it did not keep the rate)",
            "(서버가 한계여서 요청률에 도달하지 못함)",
            "（瓶颈在服务器，未达到请求速率）",
        ]),
        false => "",
    };
    let text = format!("{:.0} {}{bound}", report.throughput_per_second, unit.rate(language));
    row(language, ["throughput", "처리량", "吞吐量"], text)
}

/// The rows of generators on other hosts, each with what it measured alone; empty without them.
pub(crate) fn generators(report: &LoadReport, unit: Unit, columns: usize, language: Language) -> String {
    let Some(Generators { skew_ns, parts }) = &report.generators else { return String::new() };
    let (count, skew) = (parts.len(), scaled(*skew_ns as f64));
    let all = localized!(
        language,
        "{count}; their windows opened within {skew} of each other",
        "{count}대, 측정 구간 시작 시각의 차이 최대 {skew}",
        "{count} 台；测量窗口的开始时间相差不超过 {skew}",
    );
    let mut rows = vec![row(language, ["hosts", "호스트", "主机"], all)];
    for GeneratorPart { host, report } in parts {
        let bound = match report.generator_bound {
            true => language.choose([
                ", the limit: it fell behind",
                ", 이 호스트의 부하 생성기가 한계",
                "，该主机的负载生成器是瓶颈",
            ]),
            false => "",
        };
        let (rate, unit) = (report.throughput_per_second, unit.rate(language));
        let (busy, times) = (report.generator_busy_max * 100.0, latency(&report.response, language));
        let errors = failures(report, language);
        let text = localized!(
            language,
            "{rate:.0} {unit}; {times}; failures: {errors}; busiest thread {busy:.0} %{bound}",
            "{rate:.0} {unit}; {times}; 실패: {errors}; 가장 바쁜 스레드 {busy:.0} %{bound}",
            "{rate:.0} {unit}；{times}；失败：{errors}；最忙线程 {busy:.0} %{bound}",
        );
        rows.push(format!("{} {text}", pad_end(host, INDENT - 1)));
    }
    format!("\n{}", fit(rows, columns).join("\n"))
}

/// The report for people, for messages without a protocol-specific part.
pub(crate) fn table(report: &LoadReport, columns: usize, language: Language) -> String {
    let LoadReport { connections, depth, message_bytes, messages, bytes_verified, .. } = report;
    let load = localized!(
        language,
        "{connections} connections x {depth} in flight, {message_bytes} B messages",
        "연결 {connections}개 x 동시 {depth}건, 메시지 {message_bytes} B",
        "{connections} 个连接 x 在途 {depth} 条，消息 {message_bytes} B",
    );
    let compared = localized!(
        language,
        "{messages} ({bytes_verified} bytes compared)",
        "{messages}건({bytes_verified}바이트 비교)",
        "{messages} 条（已比较 {bytes_verified} 字节）",
    );
    let unit = Unit::Message;
    let mut rows = vec![
        target(report, &report.target, language),
        row(language, ["load", "부하", "负载"], load),
        time(report, language),
        row(language, ["messages", "메시지", "消息"], compared),
        throughput(report, unit, language),
        row(language, ["response time", "응답 시간", "响应时间"], latency(&report.response, language)),
    ];
    rows.extend(paced(report, language));
    rows.extend(failure_rows(report, language));
    rows.push(generator(report, unit, language));
    rows.extend(server(report, unit, language));
    rows.extend(asked_for(report, unit, language));
    fit(rows, columns).join("\n")
}

#[cfg(test)]
mod tests {
    use weir_record::latency::empty_histogram;

    use super::*;

    #[test]
    fn a_time_is_told_in_the_unit_that_fits_it() {
        let expected = [
            (0.0, "0 ns"),
            (999.0, "999 ns"),
            (1234.0, "1.23 µs"),
            (9_999.0, "10.0 µs"),
            (999_949.0, "999.9 µs"),
            (999_960.0, "1.00 ms"),
            (126_550_000.0, "126.5 ms"),
            (3.6e12, "3600.0 s"),
        ];
        for (nanoseconds, text) in expected {
            assert_eq!(scaled(nanoseconds), text);
        }
        assert_eq!((byte_rate(0.0), byte_rate(5.55e9)), ("0 B/s".into(), "5.55 GB/s".into()));
    }

    #[test]
    fn missed_starts_are_told_with_who_was_late() {
        let paced = LoadReport { rate_per_second: Some(400.0), missed_starts: 1205, ..LoadReport::default() };
        let told = |report: &LoadReport| super::paced(report, Language::English).join("\n");
        assert!(
            told(&paced).contains("1205 (every connection was waiting for the server)"),
            "{}",
            told(&paced)
        );
        let some = LoadReport { missed_starts_free: 1, ..paced.clone() };
        assert!(told(&some).contains("a connection was free for 1 of them"), "{}", told(&some));
        let late = LoadReport { generator_bound: true, missed_starts_free: 900, ..paced.clone() };
        assert!(told(&late).contains("the generator was late"), "{}", told(&late));
        assert!(!told(&paced).contains("unanswered"));
        let stalled = LoadReport { response_at_least: 1225, failed_starts: 1100, ..paced };
        assert!(told(&stalled).contains("unanswered    1225 response times"), "{}", told(&stalled));
        assert_eq!(failures(&stalled, Language::English), "1100 never started");
        let reached = throughput(&stalled, Unit::Message, Language::English);
        assert!(reached.contains("the server was the limit"), "{reached}");
    }

    #[test]
    fn the_time_says_what_was_warm_up_and_what_was_measured() {
        let (warmup_ns, window_ns) = (5_000_000_000, 5_020_000_000);
        let report = LoadReport { warmup_ns, window_ns, warmup_steady: true, ..LoadReport::default() };
        assert_eq!(time(&report, Language::English), "time          10.02 s: 5 s warm-up, 5.02 s measured");
        let unsteady = LoadReport { warmup_steady: false, ..report.clone() };
        assert!(
            time(&unsteady, Language::English).contains("5 s warm-up (not steady when it ended), 5.02 s")
        );
        let unwarmed = LoadReport { warmup_ns: 0, ..report };
        assert_eq!(time(&unwarmed, Language::English), "time          5.02 s, all of it measured");
        assert_eq!(time(&unwarmed, Language::Korean), "시간          5.02초, 모두 측정 구간");
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
            unreached(&report, Unit::Response, Language::English).expect("ten are missing"),
            "340 of the 350 responses asked for came back right: 5 failed or were cut off, 5 were not started in 10 s"
        );
        let whole = LoadReport { messages: 350, ..report.clone() };
        assert_eq!(unreached(&whole, Unit::Response, Language::English), None);
        let uncounted = LoadReport { messages_asked: None, ..report };
        assert_eq!(unreached(&uncounted, Unit::Response, Language::English), None);
    }

    #[test]
    fn what_it_cost_is_not_divided_by_nothing() {
        let report = LoadReport { generator_cpu_ns: 5_059_810, ..LoadReport::default() };
        let line = |report: &LoadReport| generator(report, Unit::Response, Language::English);
        assert!(line(&report).contains("5.06 ms CPU for no right response"));
        let one = LoadReport { messages: 1000, ..report };
        assert!(line(&one).contains("5.06 µs CPU per response"));
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
        let narrow = (30..60).flat_map(|columns| fit(vec![row.clone()], columns));
        assert!(narrow.clone().all(|row| !row.trim().starts_with("ms") && !row.trim().starts_with("µs")));
        assert!(narrow.into_iter().all(|row| !row.contains('\u{a0}')));
        let long = "x".repeat(100);
        assert_eq!(
            fit(vec![format!("target        {long}")], 60).len(),
            1,
            "a name and its word stay together"
        );
    }

    #[test]
    fn a_report_has_the_same_rows_and_fits_in_every_language() {
        let report = LoadReport {
            target: "127.0.0.1:7000".into(),
            mode: "open".into(),
            driver: "epoll".into(),
            rate_per_second: Some(1_000.0),
            messages: 340,
            messages_asked: Some(350),
            messages_started: 345,
            window_ns: 10_000_000_000,
            generator_bound: true,
            failures: FailureCounts { reset: 3, cut_off_at_end: 2, ..FailureCounts::default() },
            ..LoadReport::default()
        };
        for columns in [60, 80] {
            let texts = Language::ALL.map(|language| table(&report, columns, language));
            let numbers = |text: &str| {
                let mut all: Vec<String> = text
                    .split(|letter: char| !letter.is_ascii_digit())
                    .filter(|number| !number.is_empty())
                    .map(str::to_owned)
                    .collect();
                all.sort_unstable();
                all
            };
            for text in &texts {
                assert!(text.lines().all(|line| weir_report::columns(line) <= columns), "{text}");
                assert_eq!(numbers(text), numbers(&texts[0]), "{text}");
            }
        }
    }

    #[test]
    fn the_bars_hold_every_sample_and_fit() {
        for (values, bars) in [(vec![5; 3], 1), (vec![100, 200], 12), (vec![1, u64::MAX], 12)] {
            let mut histogram = empty_histogram();
            values.iter().for_each(|value| histogram.saturating_record(*value));
            let summary = LatencySummary::from_histogram(&histogram);
            for columns in [60, 80] {
                let rows = super::histogram(&summary, Unit::Response, columns, Language::English);
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
        let none = super::histogram(&LatencySummary::default(), Unit::Response, 80, Language::English);
        assert!(none.is_empty());
    }
}
