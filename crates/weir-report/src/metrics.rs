//! Names of metrics, and the format of their figures and verdicts. The metrics themselves, including their words, are
//! in the record's table.

use weir_record::{
    effect::{Effect, EffectScale},
    finding::MessageKind,
    metric::{Metric, MetricUnit},
    metric_rows::MetricText,
};

use crate::{
    findings,
    format::{self, ABSENT},
    language::Language,
    view::View,
};

/// A storage job is not a server, and its times are latencies of operations: name, prose, short.
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
            ["Median latency", "지연 시간 중앙값", "延迟中位数"],
            ["median latency", "지연 시간 중앙값", "延迟中位数"],
            ["latency p50", "지연 p50", "延迟 p50"],
        ],
    ),
    (
        Metric::LatencyP99,
        [
            ["Latency p99", "지연 시간 p99", "延迟 p99"],
            ["99th percentile of latency", "지연 시간 p99 값", "延迟第 99 百分位"],
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

/// One of the counted units, in short.
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

/// A figure without the unit, which is in its column's title.
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

/// Title of a column of figures, with the unit if the figures lack it.
pub(crate) fn column(view: &View<'_>, metric: Metric) -> String {
    match metric.row().unit {
        MetricUnit::PerSecond => findings::rate(view.language, view.kind()).to_owned(),
        _ => name(view, metric),
    }
}

/// The shortest name of the metric, with the unit if the figures lack it.
pub(crate) fn brief(view: &View<'_>, metric: Metric) -> String {
    match metric.row().unit {
        MetricUnit::PerSecond => column(view, metric),
        _ => short(view, metric),
    }
}

/// The effect with its interval on the metric's scale: `0.782 [0.774, 0.790]`, `+0.31 [+0.28, +0.34]`.
pub(crate) fn effect(comparison: &Effect) -> String {
    match (comparison.scale, comparison.estimate, comparison.interval) {
        (EffectScale::Difference, Some(difference), Some((low, high))) => {
            format!("{} [{}, {}]", format::signed(difference), format::signed(low), format::signed(high))
        }
        (EffectScale::Difference, Some(difference), None) => format::signed(difference),
        (_, estimate, interval) => format::ratio_and_interval(estimate, interval),
    }
}

/// A figure of a further question: a ratio, a difference with its sign, a share, or one in the metric's unit.
pub(crate) fn answered(view: &View<'_>, metric: Metric, scale: EffectScale, value: f64) -> String {
    match scale {
        EffectScale::Ratio => format::ratio(Some(value)),
        EffectScale::Figure => figure(view, metric, value),
        EffectScale::Share => format::percent(value),
        EffectScale::Difference if metric.row().unit == MetricUnit::Count => format::signed(value),
        EffectScale::Difference => {
            let sign = if value < 0.0 { "−" } else { "+" };
            format!("{sign}{}", figure(view, metric, value.abs()))
        }
    }
}

/// The same with its interval: `0.782 [0.774, 0.790]`; a dash if there is none.
pub(crate) fn with_interval(
    view: &View<'_>,
    metric: Metric,
    scale: EffectScale,
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

/// The same for a row; a dash if there is neither.
pub(crate) fn found(view: &View<'_>, row: Option<&Effect>) -> String {
    row.map_or_else(
        || ABSENT.to_owned(),
        |it| with_interval(view, it.metric, it.scale, it.estimate, it.interval),
    )
}

/// The smallest effect that would have been detected.
pub(crate) fn detectable(comparison: &Effect) -> String {
    size(comparison.scale, comparison.detectable)
}

/// The noise floor: how far the baseline may differ from itself. Omitted if the difference itself was not measured.
pub(crate) fn floor(view: &View<'_>, comparison: &Effect) -> String {
    let is_told = comparison.scale == EffectScale::Ratio || comparison.estimate.is_some();
    let itself = view.itself(comparison).filter(|_| is_told);
    size(comparison.scale, itself.and_then(Effect::reach))
}

/// The size of an effect without its direction: a share more or less, or a difference.
pub(crate) fn size(scale: EffectScale, size: Option<f64>) -> String {
    match (scale, size) {
        (EffectScale::Ratio, size) => format::percent_or_absent(size),
        (_, None) => ABSENT.to_owned(),
        (_, Some(size)) => format!("{size:.3}"),
    }
}
