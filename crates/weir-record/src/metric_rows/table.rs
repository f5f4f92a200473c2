//! The row of each metric, all in one place: what is added here is judged, stored, exported, drawn and may be
//! named in study files.

use super::{MetricRow, Part, Words};
use crate::{
    metric::{Better, Family, Metric, MetricUnit, Scale},
    orders::HandoffStats,
    spec::{CellSpec, LoadMode},
    storage::WaitingReport,
    trial::{SliceRecord, TrialRecord},
    window::ObservedWindow,
};

/// All metrics, in the order in which they are shown, which is that of the enum.
pub static METRICS: &[MetricRow] = &[
    MetricRow {
        metric: Metric::ServerCpuPerMessage,
        key: "server-cpu-per-message",
        unit: MetricUnit::Micros,
        scale: Scale::Ratio,
        better: Better::Smaller,
        family: Family::Cpu,
        words: Words {
            name: ["Server CPU per {per}", "{per}당 서버 CPU", "每{per}的服务器 CPU"],
            prose: ["server CPU per {per}", "{per}당 서버 CPU 사용량", "每{per}服务器 CPU 用量"],
            short: ["CPU/{one}", "CPU/{one}", "CPU/{one}"],
        },
        read: |trial| micros_each(trial, |seen| seen.cpu_ns).or_else(|| micros_modelled(trial)),
        read_slice: Some(|slice, _| micros_each_of_slice(slice, slice.server_cpu_ns as f64)),
        // The claims about simulated devices are misses and the share of time that the thread is on its CPU.
        part: |cell| if cell.is_simulated() { Part::Condition } else { Part::Claim },
    },
    MetricRow {
        metric: Metric::MachineCpuPerMessage,
        key: "machine-cpu-per-message",
        unit: MetricUnit::Micros,
        scale: Scale::Ratio,
        better: Better::Smaller,
        family: Family::Cpu,
        words: Words {
            name: ["CPU of both sides per {per}", "{per}당 양쪽 CPU", "每{per}的双方 CPU"],
            prose: ["CPU of both sides per {per}", "{per}당 양쪽 CPU 사용량", "每{per}双方 CPU 用量"],
            short: ["CPU of both sides", "양쪽 CPU", "双方 CPU"],
        },
        read: |trial| micros_each(trial, |seen| seen.noise.machine_busy_ns),
        read_slice: Some(|slice, _| micros_each_of_slice(slice, slice.machine_cpu_ns as f64)),
        // The machine of a gateway runs an exchange as well.
        part: |cell| match cell {
            _ if cell.is_simulated() => Part::None,
            _ if cell.orders.is_some() => Part::Figure,
            _ => Part::Condition,
        },
    },
    MetricRow {
        metric: Metric::ServerCpuWithWaiting,
        key: "server-cpu-with-waiting",
        unit: MetricUnit::Micros,
        scale: Scale::Ratio,
        better: Better::Smaller,
        family: Family::Cpu,
        words: Words {
            name: [
                "Server CPU per {per}, waiting included",
                "대기를 포함한 {per}당 서버 CPU",
                "每{per}的服务器 CPU（含等待）",
            ],
            prose: [
                "server CPU per {per} with waiting included",
                "대기를 포함한 {per}당 서버 CPU 사용량",
                "含等待的每{per}服务器 CPU 用量",
            ],
            short: ["CPU with waiting", "대기 포함 CPU", "含等待的 CPU"],
        },
        read: |trial| {
            let messages: u64 = trial.slices.iter().map(|slice| slice.messages).sum();
            let parts = trial.slices.iter().map(|slice| cpu_with_waiting_ns(slice, trial));
            let total_ns: f64 = parts.sum::<Option<f64>>()?;
            (messages > 0).then(|| total_ns / 1e3 / messages as f64)
        },
        read_slice: Some(|slice, round| micros_each_of_slice(slice, cpu_with_waiting_ns(slice, round)?)),
        // A whole trial has no waits, and a storage job is stopped in all of them.
        part: |cell| match cell.alternation {
            Some(_) if cell.storage.is_none() => Part::Condition,
            _ => Part::None,
        },
    },
    MetricRow {
        metric: Metric::SwitchesPerMessage,
        key: "switches-per-message",
        unit: MetricUnit::Count,
        scale: Scale::Difference { margin: 0.01 },
        better: Better::Smaller,
        family: Family::Events,
        words: Words {
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
        read: |trial| each(trial, |seen| seen.context_switches_voluntary),
        read_slice: None,
        // What was published of gateways.
        part: |cell| if cell.orders.is_some() { Part::Claim } else { observed_figure(cell) },
    },
    MetricRow {
        metric: Metric::Throughput,
        key: "throughput",
        unit: MetricUnit::PerSecond,
        scale: Scale::Ratio,
        better: Better::Larger,
        family: Family::Rate,
        words: Words {
            name: ["Throughput", "처리량", "吞吐量"],
            prose: ["throughput", "처리량", "吞吐量"],
            short: ["throughput", "처리량", "吞吐量"],
        },
        read: |trial| Some(trial.load.as_ref()?.throughput_per_second),
        read_slice: Some(|slice, _| {
            let is_measured = slice.messages > 0 && slice.length_ns > 0;
            is_measured.then(|| slice.messages as f64 * 1e9 / slice.length_ns as f64)
        }),
        // No generator limits a storage job.
        part: |cell| match cell {
            _ if cell.is_simulated() => Part::Condition,
            _ if is_open(cell) && cell.storage.is_none() => Part::Figure,
            _ => Part::Claim,
        },
    },
    MetricRow {
        metric: Metric::LatencyP50,
        key: "latency-p50",
        unit: MetricUnit::Nanos,
        scale: Scale::Ratio,
        better: Better::Smaller,
        family: Family::Time,
        words: Words {
            name: ["Median response time", "응답 시간 중앙값", "响应时间中位数"],
            prose: ["median response time", "응답 시간 중앙값", "响应时间中位数"],
            short: ["response p50", "응답 p50", "响应 p50"],
        },
        read: |trial| Some(trial.load.as_ref()?.response.quantile_ns(0.5)? as f64),
        read_slice: None,
        // With one order in flight the round trip is the figure; elsewhere a closed loop hides waiting.
        part: |cell| match cell {
            _ if cell.is_simulated() => Part::Figure,
            // The claim of rungs is about cost.
            _ if cell.is_rung => Part::Condition,
            _ if is_timed(cell) || cell.orders.is_some() => Part::Claim,
            _ => Part::None,
        },
    },
    MetricRow {
        metric: Metric::LatencyP99,
        key: "latency-p99",
        unit: MetricUnit::Nanos,
        scale: Scale::Ratio,
        better: Better::Smaller,
        family: Family::Time,
        words: Words {
            name: ["Response time p99", "응답 시간 p99", "响应时间 p99"],
            prose: ["99th percentile of response time", "응답 시간 p99 값", "响应时间第 99 百分位"],
            short: ["response p99", "응답 p99", "响应 p99"],
        },
        read: |trial| Some(trial.load.as_ref()?.response.quantile_ns(0.99)? as f64),
        read_slice: None,
        part: |cell| match cell.storage {
            _ if cell.is_simulated() => Part::Figure,
            // A job that is stopped between its turns has operations that waited for these among its slowest.
            Some(_) if cell.alternation.is_some() => Part::None,
            _ if cell.is_rung => Part::Condition,
            _ if is_timed(cell) => Part::Claim,
            _ => figure_of_orders(cell),
        },
    },
    MetricRow {
        metric: Metric::FirstByteP50,
        key: "first-byte-p50",
        unit: MetricUnit::Nanos,
        scale: Scale::Ratio,
        better: Better::Smaller,
        family: Family::Time,
        words: Words {
            name: ["Time to the first byte, median", "첫 바이트까지의 시간(중앙값)", "首字节时间（中位数）"],
            prose: ["median time to the first byte", "첫 바이트까지 걸린 시간 중앙값", "首字节时间中位数"],
            short: ["first byte", "첫 바이트", "首字节"],
        },
        read: |trial| Some(trial.load.as_ref()?.http.as_ref()?.first_byte.quantile_ns(0.5)? as f64),
        read_slice: None,
        part: to_a_byte,
    },
    MetricRow {
        metric: Metric::LastByteP50,
        key: "last-byte-p50",
        unit: MetricUnit::Nanos,
        scale: Scale::Ratio,
        better: Better::Smaller,
        family: Family::Time,
        words: Words {
            name: [
                "Time to the last byte, median",
                "마지막 바이트까지의 시간(중앙값)",
                "末字节时间（中位数）",
            ],
            prose: ["median time to the last byte", "마지막 바이트까지 걸린 시간 중앙값", "末字节时间中位数"],
            short: ["last byte", "마지막 바이트", "末字节"],
        },
        read: |trial| Some(trial.load.as_ref()?.http.as_ref()?.last_byte.quantile_ns(0.5)? as f64),
        read_slice: None,
        part: to_a_byte,
    },
    MetricRow {
        metric: Metric::GeneratorCpuPerMessage,
        key: "generator-cpu-per-message",
        unit: MetricUnit::Micros,
        scale: Scale::Ratio,
        better: Better::Smaller,
        family: Family::Cpu,
        words: Words {
            name: ["Generator CPU per {per}", "{per}당 부하 생성기 CPU", "每{per}的负载生成器 CPU"],
            prose: [
                "generator CPU per {per}",
                "{per}당 부하 생성기 CPU 사용량",
                "每{per}负载生成器 CPU 用量",
            ],
            short: ["generator CPU", "부하 생성기 CPU", "负载生成器 CPU"],
        },
        read: |trial| {
            let load = trial.load.as_ref()?;
            (load.messages > 0).then(|| load.generator_cpu_ns as f64 / 1e3 / load.messages as f64)
        },
        read_slice: Some(|slice, _| micros_each_of_slice(slice, slice.generator_cpu_ns as f64)),
        part: observed_figure,
    },
    MetricRow {
        metric: Metric::InvoluntarySwitchesPerMessage,
        key: "involuntary-switches-per-message",
        unit: MetricUnit::Count,
        scale: Scale::Difference { margin: 0.01 },
        better: Better::Smaller,
        family: Family::Events,
        words: Words {
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
        read: |trial| each(trial, |seen| seen.context_switches_involuntary),
        read_slice: None,
        part: observed_figure,
    },
    MetricRow {
        metric: Metric::ConnectionsMaxOverMean,
        key: "connections-max-over-mean",
        unit: MetricUnit::Count,
        scale: Scale::Ratio,
        better: Better::Smaller,
        family: Family::Events,
        words: Words {
            name: [
                "Connections of the busiest worker over the mean",
                "워커별 연결 수의 최댓값 ÷ 평균",
                "工作线程连接数的最大值 ÷ 均值",
            ],
            prose: [
                "ratio of the busiest worker's connections to the mean",
                "워커별 연결 수의 쏠림",
                "工作线程之间连接数的不均",
            ],
            short: ["connections, max/mean", "연결 쏠림", "连接不均"],
        },
        read: |trial| spread(&trial.load.as_ref()?.observed.as_ref()?.connections_by_worker),
        read_slice: None,
        // A gateway's workers have connections to the exchange as well.
        part: |cell| {
            let is_spread = cell.workers > 1 && cell.orders.is_none();
            if is_spread { observed_figure(cell) } else { Part::None }
        },
    },
    MetricRow {
        metric: Metric::MissRate,
        key: "miss-rate",
        unit: MetricUnit::Share,
        scale: Scale::Difference { margin: 0.005 },
        better: Better::Smaller,
        family: Family::Events,
        words: Words {
            name: ["Misses", "miss 비율", "miss 率"],
            prose: ["share of misses", "miss 발생률", "miss 率"],
            short: ["misses", "miss 비율", "miss 率"],
        },
        read: |trial| of_operations(trial, |waiting| waiting.misses),
        read_slice: None,
        part: |cell| of_waiting(cell, Part::Claim),
    },
    MetricRow {
        metric: Metric::HarmfulMissRate,
        key: "harmful-miss-rate",
        unit: MetricUnit::Share,
        scale: Scale::Difference { margin: 0.005 },
        better: Better::Smaller,
        family: Family::Events,
        words: Words {
            name: ["Harmful misses", "해로운 miss 비율", "有害 miss 率"],
            prose: ["share of harmful misses", "해로운 miss 발생률", "有害 miss 率"],
            short: ["harmful", "해로운 miss", "有害 miss"],
        },
        read: |trial| of_operations(trial, |waiting| waiting.misses_harmful),
        read_slice: None,
        part: |cell| of_waiting(cell, Part::Figure),
    },
    MetricRow {
        metric: Metric::WaitingCpuShare,
        key: "waiting-cpu-share",
        unit: MetricUnit::Share,
        scale: Scale::Difference { margin: 0.005 },
        better: Better::Smaller,
        family: Family::Cpu,
        words: Words {
            name: ["CPU of the thread that waits", "기다리는 스레드의 CPU", "等待线程的 CPU"],
            prose: ["CPU of the thread that waits", "기다리는 스레드의 CPU 사용률", "等待线程的 CPU 占用率"],
            short: ["CPU share", "CPU 사용률", "CPU 占用率"],
        },
        read: |trial| {
            let waiting = waiting(trial)?;
            (waiting.elapsed_ns > 0).then(|| waiting.cpu_ns as f64 / waiting.elapsed_ns as f64)
        },
        read_slice: None,
        part: |cell| of_waiting(cell, Part::Claim),
    },
    MetricRow {
        metric: Metric::AddedLatency,
        key: "added-latency",
        unit: MetricUnit::Micros,
        scale: Scale::Difference { margin: 0.1 },
        better: Better::Smaller,
        family: Family::Time,
        words: Words {
            name: ["Latency that waiting adds", "대기로 늘어난 지연 시간", "等待增加的延迟"],
            prose: ["latency that waiting adds", "대기로 늘어난 지연 시간 평균", "等待增加的延迟"],
            short: ["added", "추가 지연", "增加的延迟"],
        },
        read: |trial| of_operations(trial, |it| it.total_ns.saturating_sub(it.device_ns)).map(|ns| ns / 1e3),
        read_slice: None,
        part: |cell| of_waiting(cell, Part::Condition),
    },
    MetricRow {
        metric: Metric::EffectiveSleep,
        key: "effective-sleep",
        unit: MetricUnit::Micros,
        scale: Scale::Difference { margin: 0.1 },
        better: Better::Smaller,
        family: Family::Time,
        words: Words {
            name: ["Effective sleep", "유효 sleep 시간", "有效睡眠"],
            prose: ["effective sleep", "유효 sleep 평균", "有效睡眠"],
            short: ["sleep", "sleep 시간", "睡眠"],
        },
        read: |trial| of_operations(trial, |waiting| waiting.sleep_requested_ns).map(|ns| ns / 1e3),
        read_slice: None,
        part: |cell| of_waiting(cell, Part::Figure),
    },
    MetricRow {
        metric: Metric::InterruptedRate,
        key: "interrupted-rate",
        unit: MetricUnit::Share,
        scale: Scale::Difference { margin: 0.005 },
        better: Better::Smaller,
        family: Family::Events,
        words: Words {
            name: ["Left to the interrupt", "인터럽트에 맡긴 비율", "交给中断的比例"],
            prose: ["share left to the interrupt", "인터럽트에 맡긴 비율", "交给中断的比例"],
            short: ["by interrupt", "인터럽트 비율", "交给中断"],
        },
        read: |trial| of_operations(trial, |waiting| waiting.interrupted),
        read_slice: None,
        part: |cell| of_waiting(cell, Part::Figure),
    },
    MetricRow {
        metric: Metric::ServerMemory,
        key: "server-memory",
        unit: MetricUnit::Bytes,
        // What connections cost is a difference: the rest of the server has its memory without them.
        scale: Scale::Difference { margin: 1_048_576.0 },
        better: Better::Smaller,
        family: Family::Memory,
        words: Words {
            name: ["Server memory", "서버 메모리", "服务器内存"],
            prose: ["memory of the server", "서버 메모리 사용량", "服务器内存用量"],
            short: ["memory", "메모리", "内存"],
        },
        read: |trial| Some(trial.load.as_ref()?.observed.as_ref()?.rss_anon_bytes as f64),
        read_slice: None,
        part: figure_beside_silence,
    },
    MetricRow {
        metric: Metric::OrdersPerCommit,
        key: "orders-per-commit",
        unit: MetricUnit::Count,
        scale: Scale::Ratio,
        better: Better::Larger,
        family: Family::Events,
        words: Words {
            name: ["Orders per journal commit", "저널 커밋당 주문 수", "每次日志提交的订单数"],
            prose: [
                "number of orders per journal commit",
                "저널 커밋당 주문 건수 평균",
                "每次日志提交的订单数",
            ],
            short: ["orders/commit", "주문/커밋", "订单/提交"],
        },
        read: |trial| {
            let totals = trial.chain.as_ref()?;
            (totals.gateway_commits > 0).then(|| totals.gateway_orders as f64 / totals.gateway_commits as f64)
        },
        read_slice: None,
        part: |cell| match &cell.orders {
            Some(orders) if orders.journal != "none" => Part::Figure,
            _ => Part::None,
        },
    },
    MetricRow {
        metric: Metric::WakesPerOrder,
        key: "wakes-per-order",
        unit: MetricUnit::Count,
        scale: Scale::Difference { margin: 0.01 },
        better: Better::Smaller,
        family: Family::Events,
        words: Words {
            name: ["Wakes by system call per {per}", "{per}당 시스템 콜 웨이크업", "每{per}经系统调用的唤醒"],
            prose: [
                "number of wakes by system call per {per}",
                "{per}당 시스템 콜 웨이크업 발생량",
                "每{per}经系统调用的唤醒次数",
            ],
            short: ["wakes", "웨이크업", "唤醒"],
        },
        read: |trial| of_handoff(trial, |it, orders| (it.wakes_sent, orders)),
        read_slice: None,
        part: figure_of_orders,
    },
    MetricRow {
        metric: Metric::WakesPerHandoff,
        key: "wakes-per-handoff",
        unit: MetricUnit::Count,
        scale: Scale::Difference { margin: 0.01 },
        better: Better::Smaller,
        family: Family::Events,
        words: Words {
            name: [
                "Wakes by system call per hand-off",
                "전달당 시스템 콜 웨이크업",
                "每次移交经系统调用的唤醒",
            ],
            prose: [
                "number of wakes by system call per hand-off",
                "전달당 시스템 콜 웨이크업 발생량",
                "每次移交经系统调用的唤醒次数",
            ],
            short: ["wakes a hand-off", "전달당 웨이크업", "每次移交的唤醒"],
        },
        read: |trial| of_handoff(trial, |it, _| (it.wakes_sent, it.pushed)),
        read_slice: None,
        part: figure_of_orders,
    },
    MetricRow {
        metric: Metric::HandoffsPerDrain,
        key: "handoffs-per-drain",
        unit: MetricUnit::Count,
        scale: Scale::Ratio,
        better: Better::Larger,
        family: Family::Events,
        words: Words {
            name: ["Messages taken a drain", "꺼내기당 메시지 수", "每次取出的消息数"],
            prose: ["number of messages taken a drain", "꺼내기당 메시지 건수 평균", "每次取出的消息数"],
            short: ["taken a drain", "꺼내기당 건수", "每次取出的条数"],
        },
        read: |trial| of_handoff(trial, |it, _| (it.pushed, it.drains)),
        read_slice: None,
        part: figure_of_orders,
    },
    MetricRow {
        metric: Metric::HandedOffShare,
        key: "handed-off-share",
        unit: MetricUnit::Share,
        scale: Scale::Difference { margin: 0.005 },
        better: Better::Smaller,
        family: Family::Events,
        words: Words {
            name: ["Handed to another worker", "다른 워커에 넘긴 비율", "交给其他工作线程的比例"],
            prose: ["share handed to another worker", "다른 워커에 넘긴 비율", "交给其他工作线程的比例"],
            short: ["handed over", "넘긴 비율", "交出比例"],
        },
        read: |trial| of_handoff(trial, |it, _| (it.orders_handed_off, it.orders)),
        read_slice: None,
        part: figure_of_orders,
    },
    MetricRow {
        metric: Metric::ServerPss,
        key: "server-pss",
        unit: MetricUnit::Bytes,
        scale: Scale::Difference { margin: 1_048_576.0 },
        better: Better::Smaller,
        family: Family::Memory,
        words: Words {
            name: [
                "Server memory, shared parts among it",
                "공유 부분을 포함한 서버 메모리",
                "服务器内存（含共享部分）",
            ],
            prose: ["memory of the server (PSS)", "서버 메모리(PSS) 사용량", "服务器内存用量（PSS）"],
            short: ["PSS", "메모리 PSS", "内存 PSS"],
        },
        read: |trial| {
            let bytes = trial.load.as_ref()?.observed.as_ref()?.pss_bytes;
            (bytes > 0).then_some(bytes as f64)
        },
        read_slice: None,
        part: figure_beside_silence,
    },
    MetricRow {
        metric: Metric::KernelMemory,
        key: "kernel-memory",
        unit: MetricUnit::Bytes,
        scale: Scale::Difference { margin: 1_048_576.0 },
        better: Better::Smaller,
        family: Family::Memory,
        words: Words {
            name: ["Kernel memory of its connections", "연결이 쓰는 커널 메모리", "连接占用的内核内存"],
            prose: [
                "kernel memory of its connections",
                "연결이 쓰는 커널 메모리 사용량",
                "连接占用的内核内存",
            ],
            short: ["kernel memory", "커널 메모리", "内核内存"],
        },
        read: |trial| Some(trial.load.as_ref()?.observed.as_ref()?.kernel_bytes? as f64),
        read_slice: None,
        part: figure_beside_silence,
    },
];

fn is_open(cell: &CellSpec) -> bool {
    cell.load != LoadMode::Closed
}

/// Whether response times are those of the server: an offered rate, or a storage job, which waits for its own.
fn is_timed(cell: &CellSpec) -> bool {
    is_open(cell) || cell.storage.is_some()
}

/// Times to the first and to the last byte belong together: a clock that stops at the first says little of a large
/// content.
fn to_a_byte(cell: &CellSpec) -> Part {
    match cell.http {
        Some(_) if is_open(cell) => Part::Condition,
        Some(_) => Part::Figure,
        None => Part::None,
    }
}

/// What only processes have that were observed.
fn observed_figure(cell: &CellSpec) -> Part {
    if cell.is_simulated() { Part::None } else { Part::Figure }
}

/// The measurement points of a way to wait are compared where they are the question, which is on simulated devices; on
/// a disk not every tool has them, and of a job that is stopped between its turns they are not those of its slices.
fn of_waiting(cell: &CellSpec, simulated: Part) -> Part {
    match &cell.storage {
        Some(_) if cell.alternation.is_some() => Part::None,
        Some(storage) if storage.device.is_simulated() => simulated,
        Some(_) => Part::Figure,
        None => Part::None,
    }
}

fn waiting(trial: &TrialRecord) -> Option<&WaitingReport> {
    trial.load.as_ref()?.storage.as_ref()?.waiting.as_ref()
}

/// A sum over the operations of a trial, for each of them.
fn of_operations(trial: &TrialRecord, sum: impl Fn(&WaitingReport) -> u64) -> Option<f64> {
    let waiting = waiting(trial)?;
    (waiting.operations > 0).then(|| sum(waiting) as f64 / waiting.operations as f64)
}

/// CPU per operation of a simulated thread, which no process was.
fn micros_modelled(trial: &TrialRecord) -> Option<f64> {
    let is_modelled = trial.load.as_ref()?.observed.is_none();
    is_modelled.then(|| of_operations(trial, |waiting| waiting.cpu_ns))?.map(|ns| ns / 1e3)
}

fn each(trial: &TrialRecord, total: impl Fn(&ObservedWindow) -> u64) -> Option<f64> {
    let load = trial.load.as_ref()?;
    (load.messages > 0).then_some(total(load.observed.as_ref()?) as f64 / load.messages as f64)
}

/// The largest over the mean, where there is one to be spread over.
fn spread(connections: &[u64]) -> Option<f64> {
    let (largest, all) = (*connections.iter().max()?, connections.iter().sum::<u64>());
    (connections.len() > 1 && all > 0).then(|| largest as f64 * connections.len() as f64 / all as f64)
}

/// CPU time that is there has been measured; a window too short for the clock has none.
fn micros_each(trial: &TrialRecord, total_ns: impl Fn(&ObservedWindow) -> u64) -> Option<f64> {
    each(trial, total_ns).map(|ns| ns / 1e3)
}

fn micros_each_of_slice(slice: &SliceRecord, total_ns: f64) -> Option<f64> {
    (slice.messages > 0).then(|| total_ns / 1e3 / slice.messages as f64)
}

/// Server CPU of a slice, with what the server would use in a wait as long as the slice. How long the waits really are
/// depends on how many arms there are; and a server that is stopped meanwhile would use what it did before it was.
fn cpu_with_waiting_ns(slice: &SliceRecord, round: &TrialRecord) -> Option<f64> {
    Some(slice.server_cpu_ns as f64 + round.waiting_share()? * slice.length_ns as f64)
}

/// What connections cost that are silent.
fn figure_beside_silence(cell: &CellSpec) -> Part {
    if cell.idle_connections > 0 { Part::Figure } else { Part::None }
}

/// What only orders through a gateway have.
fn figure_of_orders(cell: &CellSpec) -> Part {
    if cell.orders.is_some() { Part::Figure } else { Part::None }
}

/// One count of a gateway's hand-off over another; the second argument is the orders of the window. Absent where the
/// second count is zero.
fn of_handoff(trial: &TrialRecord, counts: fn(&HandoffStats, u64) -> (u64, u64)) -> Option<f64> {
    let load = trial.load.as_ref()?;
    let (part, whole) = counts(load.observed.as_ref()?.node.as_ref()?.handoff.as_ref()?, load.messages);
    (load.messages > 0 && whole > 0).then(|| part as f64 / whole as f64)
}
