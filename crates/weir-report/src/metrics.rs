//! The words of each metric, and how its figures and verdicts are written. What a metric is stands in the record's
//! table; a further one needs its line here.

use weir_record::{
    finding::MessageKind,
    goal::AnswerScale,
    metric::{Metric, MetricUnit, Scale},
    verdict::Comparison,
};

use crate::{
    findings,
    format::{self, ABSENT},
    language::Language,
    view::View,
};

/// A text in three languages; `{per}` stands for one of what is counted.
type Text = [&'static str; 3];

struct MetricWords {
    metric: Metric,
    /// As a title.
    name: Text,
    /// Inside a sentence. The Korean nouns all end in a consonant, so that one particle fits them.
    prose: Text,
    /// In narrow tables.
    short: Text,
}

/// In the order of the record's table.
const WORDS: [MetricWords; 18] = [
    MetricWords {
        metric: Metric::ServerCpuPerMessage,
        name: ["Server CPU per {per}", "{per}당 서버 CPU", "每{per}的服务器 CPU"],
        prose: ["server CPU per {per}", "{per}당 서버 CPU 사용량", "每{per}服务器 CPU 用量"],
        short: ["CPU/{one}", "CPU/{one}", "CPU/{one}"],
    },
    MetricWords {
        metric: Metric::MachineCpuPerMessage,
        name: ["Whole-machine CPU per {per}", "{per}당 전체 머신 CPU", "每{per}的整机 CPU"],
        prose: ["whole-machine CPU per {per}", "{per}당 전체 머신 CPU 사용량", "每{per}整机 CPU 用量"],
        short: ["machine CPU", "전체 머신 CPU", "整机 CPU"],
    },
    MetricWords {
        metric: Metric::SwitchesPerMessage,
        name: [
            "Voluntary context switches per {per}",
            "{per}당 자발적 컨텍스트 스위치",
            "每{per}的自愿上下文切换",
        ],
        prose: [
            "number of voluntary context switches per {per}",
            "{per}당 자발적 컨텍스트 스위치 발생량",
            "每{per}自愿上下文切换次数",
        ],
        short: ["switches", "컨텍스트 스위치", "上下文切换"],
    },
    MetricWords {
        metric: Metric::Throughput,
        name: ["Throughput", "처리량", "吞吐量"],
        prose: ["throughput", "처리량", "吞吐量"],
        short: ["throughput", "처리량", "吞吐量"],
    },
    MetricWords {
        metric: Metric::LatencyP50,
        name: ["Median response time", "응답시간 중앙값", "响应时间中位数"],
        prose: ["median response time", "응답시간 중앙값", "响应时间中位数"],
        short: ["response p50", "응답 p50", "响应 p50"],
    },
    MetricWords {
        metric: Metric::LatencyP99,
        name: ["Response time p99", "응답시간 p99", "响应时间 p99"],
        prose: ["99th percentile of response time", "응답시간 p99 값", "响应时间第 99 百分位"],
        short: ["response p99", "응답 p99", "响应 p99"],
    },
    MetricWords {
        metric: Metric::FirstByteP50,
        name: ["Time to the first byte, median", "첫 바이트까지의 시간(중앙값)", "首字节时间（中位数）"],
        prose: ["median time to the first byte", "첫 바이트까지 걸린 시간 중앙값", "首字节时间中位数"],
        short: ["first byte", "첫 바이트", "首字节"],
    },
    MetricWords {
        metric: Metric::LastByteP50,
        name: ["Time to the last byte, median", "마지막 바이트까지의 시간(중앙값)", "末字节时间（中位数）"],
        prose: ["median time to the last byte", "마지막 바이트까지 걸린 시간 중앙값", "末字节时间中位数"],
        short: ["last byte", "마지막 바이트", "末字节"],
    },
    MetricWords {
        metric: Metric::GeneratorCpuPerMessage,
        name: ["Generator CPU per {per}", "{per}당 부하 생성기 CPU", "每{per}的负载生成器 CPU"],
        prose: ["generator CPU per {per}", "{per}당 부하 생성기 CPU 사용량", "每{per}负载生成器 CPU 用量"],
        short: ["generator CPU", "부하 생성기 CPU", "负载生成器 CPU"],
    },
    MetricWords {
        metric: Metric::InvoluntarySwitchesPerMessage,
        name: [
            "Involuntary context switches per {per}",
            "{per}당 비자발적 컨텍스트 스위치",
            "每{per}的非自愿上下文切换",
        ],
        prose: [
            "number of involuntary context switches per {per}",
            "{per}당 비자발적 컨텍스트 스위치 발생량",
            "每{per}非自愿上下文切换次数",
        ],
        short: ["involuntary", "비자발적 스위치", "非自愿切换"],
    },
    MetricWords {
        metric: Metric::MissRate,
        name: ["Misses", "miss 비율", "miss 率"],
        prose: ["share of misses", "miss 발생률", "miss 率"],
        short: ["misses", "miss 비율", "miss 率"],
    },
    MetricWords {
        metric: Metric::HarmfulMissRate,
        name: ["Harmful misses", "해로운 miss 비율", "有害 miss 率"],
        prose: ["share of harmful misses", "해로운 miss 발생률", "有害 miss 率"],
        short: ["harmful", "해로운 miss", "有害 miss"],
    },
    MetricWords {
        metric: Metric::WaitingCpuShare,
        name: ["CPU of the thread that waits", "기다리는 스레드의 CPU", "等待线程的 CPU"],
        prose: ["CPU of the thread that waits", "기다리는 스레드의 CPU 사용률", "等待线程的 CPU 占用率"],
        short: ["CPU share", "CPU 사용률", "CPU 占用率"],
    },
    MetricWords {
        metric: Metric::AddedLatency,
        name: ["Latency that waiting adds", "대기가 더하는 지연시간", "等待附加的延迟"],
        prose: ["latency that waiting adds", "대기가 더하는 지연시간 평균", "等待附加的延迟"],
        short: ["added", "추가 지연", "附加延迟"],
    },
    MetricWords {
        metric: Metric::EffectiveSleep,
        name: ["Effective sleep", "유효 sleep 시간", "有效睡眠"],
        prose: ["effective sleep", "유효 sleep 평균", "有效睡眠"],
        short: ["sleep", "sleep 시간", "睡眠"],
    },
    MetricWords {
        metric: Metric::InterruptedRate,
        name: ["Left to the interrupt", "인터럽트에 맡긴 비율", "交给中断的比例"],
        prose: ["share left to the interrupt", "인터럽트에 맡긴 비율", "交给中断的比例"],
        short: ["by interrupt", "인터럽트 비율", "交给中断"],
    },
    MetricWords {
        metric: Metric::ServerMemory,
        name: ["Server memory", "서버 메모리", "服务器内存"],
        prose: ["memory of the server", "서버 메모리 사용량", "服务器内存用量"],
        short: ["memory", "메모리", "内存"],
    },
    MetricWords {
        metric: Metric::OrdersPerCommit,
        name: ["Orders per journal commit", "저널 커밋당 주문 수", "每次日志提交的订单数"],
        prose: ["number of orders per journal commit", "저널 커밋당 주문 건수 평균", "每次日志提交的订单数"],
        short: ["orders/commit", "주문/커밋", "订单/提交"],
    },
];

/// A storage job is no server, and its times are latencies of operations: name, prose, short.
const OF_STORAGE: [(Metric, [Text; 3]); 5] = [
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
    told(view, metric, 0)
}

/// The name inside a sentence.
pub(crate) fn prose(view: &View<'_>, metric: Metric) -> String {
    told(view, metric, 1)
}

/// A short name for narrow tables.
pub(crate) fn short(view: &View<'_>, metric: Metric) -> String {
    told(view, metric, 2)
}

fn told(view: &View<'_>, metric: Metric, form: usize) -> String {
    let (language, kind) = (view.language, view.kind());
    let of_storage = OF_STORAGE.iter().find(|(own, _)| view.is_storage && *own == metric);
    let own = WORDS.iter().find(|words| words.metric == metric);
    let own = own.map(|words| [words.name, words.prose, words.short]);
    let forms = of_storage.map(|(_, forms)| *forms).or(own);
    let text = forms.map_or(metric.row().key, |forms| language.choose(forms[form]));
    text.replace("{per}", findings::per(language, kind)).replace("{one}", one(language, kind))
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

#[cfg(test)]
mod tests {
    use weir_record::metric::METRICS;

    use super::*;

    #[test]
    fn every_metric_has_its_words_in_the_order_of_the_record() {
        for (row, words) in METRICS.iter().zip(&WORDS) {
            assert_eq!(row.metric, words.metric);
            for [english, korean, chinese] in [words.name, words.prose, words.short] {
                assert!(english.is_ascii(), "{english}");
                assert!(
                    korean == "CPU/{one}" || korean.chars().any(|letter| ('가'..='힣').contains(&letter))
                );
                let is_han = |letter: char| ('一'..='鿿').contains(&letter);
                assert!(chinese == "CPU/{one}" || chinese.chars().any(is_han), "{chinese}");
            }
        }
        assert_eq!(METRICS.len(), WORDS.len());
    }

    #[test]
    fn korean_prose_takes_one_particle() {
        for words in &WORDS {
            let last = words.prose[1].chars().last().expect("it is not empty");
            let has_final_consonant = !(last as u32 - '가' as u32).is_multiple_of(28);
            assert!(has_final_consonant, "{}", words.prose[1]);
        }
    }
}
