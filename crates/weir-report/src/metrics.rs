//! How the figures and verdicts of a metric are written, and what it is called. What a metric is, its words among it,
//! stands in the record's table.

use weir_record::{
    finding::MessageKind,
    goal::AnswerScale,
    metric::{Metric, MetricUnit, Scale},
    metric_rows::MetricText,
    verdict::Comparison,
};

use crate::{
    findings,
    format::{self, ABSENT},
    language::Language,
    view::View,
};

/// A storage job is no server, and its times are latencies of operations: name, prose, short.
const OF_STORAGE: [(Metric, [MetricText; 3]); 5] = [
    (
        Metric::ServerCpuPerMessage,
        [
            ["CPU per I/O", "I/O당 CPU", "每次 I/O 的 CPU"],
            ["CPU per I/O", "I/O당 CPU 사용량", "每次 I/O 的 CPU 用量"],
            ["CPU/IO", "I/O당 CPU", "CPU/次"],
        ],
    ),
    (
        Metric::Throughput,
        [
            ["IOPS", "IOPS", "IOPS"],
            ["I/O rate", "초당 I/O 처리량", "每秒 I/O 次数"],
            ["IOPS", "IOPS", "IOPS"],
        ],
    ),
    (
        Metric::LatencyP50,
        [
            ["Median latency", "지연시간 중앙값", "延迟中位数"],
            ["median latency", "지연시간 중앙값", "延迟中位数"],
            ["latency p50", "지연 p50", "延迟 p50"],
        ],
    ),
    (
        Metric::LatencyP99,
        [
            ["Latency p99", "지연시간 p99", "延迟 p99"],
            ["99th percentile of latency", "지연시간 p99 값", "延迟第 99 百分位"],
            ["latency p99", "지연 p99", "延迟 p99"],
        ],
    ),
    (
        Metric::GeneratorCpuPerMessage,
        [
            ["Background CPU per I/O", "I/O당 배경 부하 CPU", "每次 I/O 的背景负载 CPU"],
            ["background CPU per I/O", "I/O당 배경 부하 CPU 사용량", "每次 I/O 的背景负载 CPU 用量"],
            ["background CPU", "배경 부하 CPU", "背景负载 CPU"],
        ],
    ),
];

/// The name as a title.
pub(crate) fn name(view: &View<'_>, metric: Metric) -> String {
    in_form(view, metric, 0)
}

/// The name inside a sentence.
pub(crate) fn prose(view: &View<'_>, metric: Metric) -> String {
    in_form(view, metric, 1)
}

/// A short name for narrow tables.
pub(crate) fn short(view: &View<'_>, metric: Metric) -> String {
    in_form(view, metric, 2)
}

fn in_form(view: &View<'_>, metric: Metric, form: usize) -> String {
    let (language, kind) = (view.language, view.kind());
    let of_storage = OF_STORAGE.iter().find(|(own, _)| view.is_storage && *own == metric);
    let words = metric.row().words;
    let forms = of_storage.map_or([words.name, words.prose, words.short], |(_, forms)| *forms);
    filled(forms[form], kind, language)
}

fn filled(forms: [&'static str; 3], kind: MessageKind, language: Language) -> String {
    let text = language.choose(forms).replace("{per}", findings::per(language, kind));
    text.replace("{one}", one(language, kind))
}

/// A metric inside a sentence about messages of a kind: `server CPU per request`.
pub(crate) fn of_kind(metric: Metric, kind: MessageKind, language: Language) -> String {
    filled(metric.row().words.prose, kind, language)
}

/// One of what is counted, where there is little room.
pub(crate) fn one_of_study(view: &View<'_>) -> &'static str {
    one(view.language, view.kind())
}

fn one(language: Language, kind: MessageKind) -> &'static str {
    language.choose(match kind {
        MessageKind::Message => ["msg", "메시지", "消息"],
        MessageKind::Request => ["req", "요청", "请求"],
        MessageKind::Order => ["order", "주문", "订单"],
        MessageKind::Operation => ["IO", "I/O", "次"],
    })
}

/// A figure with its unit: `5.10 µs`, `195,432 messages/s`.
pub(crate) fn figure(view: &View<'_>, metric: Metric, value: f64) -> String {
    match metric.row().unit {
        MetricUnit::Micros => format::micros(value),
        MetricUnit::Nanos => format::nanos(value),
        MetricUnit::Count => format::per_message(value),
        MetricUnit::Share => format::percent(value),
        MetricUnit::Bytes => format::memory(value),
        MetricUnit::PerSecond if value.is_finite() => {
            format!("{} {}", format::grouped(value), findings::rate(view.language, view.kind()))
        }
        MetricUnit::PerSecond => ABSENT.to_owned(),
    }
}

/// A figure without a unit that its column has.
pub(crate) fn bare(metric: Metric, value: f64) -> String {
    match metric.row().unit {
        MetricUnit::Micros => format::micros(value),
        MetricUnit::Nanos => format::nanos(value),
        MetricUnit::Count => format::per_message(value),
        MetricUnit::Share => format::percent(value),
        MetricUnit::Bytes => format::memory(value),
        MetricUnit::PerSecond => format::grouped(value),
    }
}

/// Title of a column of figures: the unit where figures have none.
pub(crate) fn column(view: &View<'_>, metric: Metric) -> String {
    match metric.row().unit {
        MetricUnit::PerSecond => findings::rate(view.language, view.kind()).to_owned(),
        _ => name(view, metric),
    }
}

/// The shortest name that says what is counted: the unit where figures have none.
pub(crate) fn brief(view: &View<'_>, metric: Metric) -> String {
    match metric.row().unit {
        MetricUnit::PerSecond => column(view, metric),
        _ => short(view, metric),
    }
}

/// The effect with its interval on the metric's scale: `0.782 [0.774, 0.790]`, `+0.31 [+0.28, +0.34]`.
pub(crate) fn effect(comparison: &Comparison) -> String {
    match (&comparison.difference, comparison.metric.row().scale) {
        (Some(it), Scale::Difference { .. }) => {
            let signed = |value: f64| format!("{value:+.3}");
            match it.interval {
                Some((low, high)) => {
                    format!("{} [{}, {}]", signed(it.difference), signed(low), signed(high))
                }
                None => signed(it.difference),
            }
        }
        _ => format::ratio_and_interval(comparison.ratio, comparison.interval),
    }
}

/// A figure of the study's own comparisons: a ratio, a difference with its sign, or a figure in the metric's unit.
pub(crate) fn answered(view: &View<'_>, metric: Metric, scale: AnswerScale, value: f64) -> String {
    match scale {
        AnswerScale::Ratio => format::ratio(Some(value)),
        AnswerScale::Figure => figure(view, metric, value),
        AnswerScale::Difference if metric.row().unit == MetricUnit::Count => format!("{value:+.3}"),
        AnswerScale::Difference => {
            let sign = if value < 0.0 { "−" } else { "+" };
            format!("{sign}{}", figure(view, metric, value.abs()))
        }
    }
}

/// The same with its interval: `0.782 [0.774, 0.790]`; a dash where there is none.
pub(crate) fn with_interval(
    view: &View<'_>,
    metric: Metric,
    scale: AnswerScale,
    figure: Option<f64>,
    interval: Option<(f64, f64)>,
) -> String {
    let number = |value: f64| answered(view, metric, scale, value);
    match (figure, interval) {
        (Some(figure), Some((low, high))) => {
            format!("{} [{}, {}]", number(figure), number(low), number(high))
        }
        (Some(figure), None) => number(figure),
        (None, _) => ABSENT.to_owned(),
    }
}

/// The equivalence margin that would have been found.
pub(crate) fn detectable(comparison: &Comparison) -> String {
    match &comparison.difference {
        Some(it) => it.detectable_effect.map_or_else(|| ABSENT.to_owned(), |effect| format!("{effect:.3}")),
        None => format::percent_or_absent(comparison.detectable_effect),
    }
}

/// How far the baseline may differ from itself.
pub(crate) fn floor(comparison: &Comparison) -> String {
    match &comparison.difference {
        Some(it) => it.noise_floor.map_or_else(|| ABSENT.to_owned(), |floor| format!("{floor:.3}")),
        None => format::percent_or_absent(comparison.noise_floor),
    }
}
