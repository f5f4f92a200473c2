//! The tables of an observation.

use weir_record::observation::{
    CallFigures, OUTSIDE, Observation, Purpose, StraceTable, TIMER, ThreadFigures, Trace, direction, total,
};

use super::blocks::{Columns, Window};
use crate::{
    display::printable,
    format::{self, ABSENT},
    language::Language,
    table::Table,
};

/// Most rows of a table in a view; the record contains more.
const ROWS_MAX: usize = 24;

/// Columns of the table of calls.
const HEAD_OF_CALLS: usize = 13;
/// The column of time that threads were runnable without a CPU. It and time asleep are omitted last: they explain why
/// a call takes long.
const QUEUED: usize = 6;

/// Columns that may be omitted, the least important first: percentiles before their curve.
const OPTIONAL_OF_CALLS: [usize; 9] = [10, 11, ERRORS, 4, 12, 7, 9, QUEUED, 5];
/// The share of failed calls. If it is noticeable it is omitted after all others, because calls made in vain are
/// important.
const ERRORS: usize = 8;
const ERRORS_NOTICED: f64 = 0.01;

fn optional_of_calls(trace: &Trace) -> Vec<usize> {
    let mut optional = OPTIONAL_OF_CALLS.to_vec();
    let is_noticed =
        |call: &CallFigures| call.errors as f64 > ERRORS_NOTICED * call.count.max(CALLS_NOTICED) as f64;
    if trace.calls.iter().any(is_noticed) {
        optional.retain(|column| *column != ERRORS);
        optional.push(ERRORS);
    }
    optional
}
/// Errors are ignored below this number of calls: every program looks for missing files at its start.
const CALLS_NOTICED: u64 = 1_000;

/// A table; `None` without rows.
pub(super) fn columns(
    head: Vec<String>,
    text_columns: usize,
    rows: Vec<Vec<String>>,
    optional: &[usize],
) -> Option<Columns> {
    let left_out = rows.len().saturating_sub(ROWS_MAX);
    let rows: Vec<_> = rows.into_iter().take(ROWS_MAX).collect();
    let whole = all_columns(head, text_columns, rows, optional)?;
    Some(Columns { table: Table { left_out, ..whole.table }, ..whole })
}

/// The same with every row.
pub(super) fn all_columns(
    head: Vec<String>,
    text_columns: usize,
    rows: Vec<Vec<String>>,
    optional: &[usize],
) -> Option<Columns> {
    let table = Table::with_head(head, text_columns, rows);
    let content = Columns { table, optional: optional.to_vec(), together: 1, legend: Vec::new() };
    (!content.table.rows.is_empty()).then_some(content)
}

/// Explanation of a column: index, and words in each language.
pub(super) type Legend = (usize, [&'static str; 3]);

const LEGEND_OF_CALLS: [Legend; 7] = [
    (2, ["of its CPU", "프로세스 CPU 중 비율", "占该进程 CPU 的比例"]),
    (3, ["CPU a call", "호출당 CPU 시간", "每次调用的 CPU 时间"]),
    (5, ["all calls together, costs no CPU", "모든 호출의 합, CPU 비용 아님", "所有调用合计，不占 CPU"]),
    (
        QUEUED,
        [
            "woken or preempted, not running yet",
            "깨어나거나 선점된 뒤 실행되기까지의 시간",
            "被唤醒或被抢占后到运行前",
        ],
    ),
    (7, ["found nothing to do", "할 일을 찾지 못한 호출", "没有可处理内容的调用"]),
    (
        9,
        [
            "bytes, messages, events or operations a call",
            "호출당 바이트·메시지·이벤트·작업 수",
            "每次调用的字节、消息、事件或操作数",
        ],
    ),
    (
        12,
        [
            "calls by how long they took, each step twice the one before",
            "걸린 시간별 호출 수, 한 칸마다 두 배",
            "按耗时分布的调用次数，每格加倍",
        ],
    ),
];

const LEGEND_OF_THREADS: [Legend; 3] = [
    (3, ["runnable without a CPU", "실행 가능한데 CPU를 기다림", "可运行但在等 CPU"]),
    (4, ["it waited", "스스로 대기", "自身等待"]),
    (5, ["another was given the CPU", "CPU를 빼앗김", "CPU 让给了其他线程"]),
];

const LEGEND_OF_WAKES: [Legend; 2] = [
    (
        2,
        [
            "a softirq, in which the thread that is named only had the CPU",
            "softirq. 이름이 적힌 스레드는 그때 CPU에 있었을 뿐임",
            "软中断，其中所列线程只是当时占有 CPU",
        ],
    ),
    (4, ["before each wake, on the mean", "깨어나기 전 평균", "每次被唤醒前的平均值"]),
];

const LEGEND_OF_STRACE: [Legend; 1] = [(
    2,
    [
        "with waiting and strace's own stops, which is no cost of the calls",
        "대기와 strace 자체의 정지가 들어 있으며, 호출의 비용이 아님",
        "含等待与 strace 自身的停顿，不是调用的开销",
    ],
)];

/// The table with explanations of its columns.
pub(super) fn explained(content: Columns, legend: &[Legend], language: Language) -> Columns {
    let legend = legend.iter().map(|(column, words)| (*column, language.choose(*words))).collect();
    Columns { legend, ..content }
}

fn owned(head: &[&str]) -> Vec<String> {
    head.iter().map(|&title| title.to_owned()).collect()
}

fn head_of_calls(language: Language) -> [&'static str; HEAD_OF_CALLS] {
    match language {
        Language::English => [
            "call",
            "calls",
            "share",
            "each",
            "on CPU",
            "asleep",
            "queued",
            "empty",
            "errors",
            "answer",
            "wall p50",
            "wall p99",
            "wall time",
        ],
        Language::Korean => [
            "호출",
            "횟수",
            "비중",
            "1회",
            "CPU",
            "대기",
            "CPU 대기",
            "빈 호출",
            "오류",
            "반환",
            "경과 p50",
            "경과 p99",
            "경과 시간",
        ],
        Language::Chinese => [
            "调用",
            "次数",
            "占比",
            "每次",
            "CPU",
            "睡眠",
            "排队",
            "空返回",
            "错误",
            "返回",
            "耗时 p50",
            "耗时 p99",
            "实际耗时",
        ],
    }
}

pub(super) fn calls(observation: &Observation, trace: &Trace, language: Language) -> Option<Columns> {
    let window = Window(trace.window_ns);
    let whole_ns = observation.unwatched_cpu_ns();
    let row = |(call, cpu_ns): &(&CallFigures, f64)| {
        vec![
            printable(&call.name),
            window.rate(call.count),
            format::percent(cpu_ns / whole_ns),
            format::nanos(cpu_ns / call.count as f64),
            time_or_absent(*cpu_ns as u64),
            time_or_absent(call.blocked_ns),
            time_or_absent(call.queued_ns),
            part_or_absent(call.again, call.count),
            part_or_absent(call.errors, call.count),
            answer(call),
            below(call, 0.5),
            below(call, 0.99),
            curve(&call.buckets),
        ]
    };
    let mut calls: Vec<(&CallFigures, f64)> =
        trace.calls.iter().map(|call| (call, call.cpu_ns(&trace.cost))).collect();
    calls.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let rows = calls.iter().map(row).collect();
    let found = columns(owned(&head_of_calls(language)), 1, rows, &optional_of_calls(trace))?;
    let mut found = explained(found, &LEGEND_OF_CALLS, language);
    let sum_ns: f64 = calls.iter().map(|(_, cpu_ns)| cpu_ns).sum();
    found.table.rows.extend(beside_calls(trace, sum_ns, whole_ns, language));
    Some(found)
}

/// Further uses of the CPU: rows with the same columns, so that all shares have the same base.
fn beside_calls(trace: &Trace, calls_ns: f64, whole_ns: f64, language: Language) -> Vec<Vec<String>> {
    // Without the scheduler's data, time asleep would count as work.
    if !trace.is_split || whole_ns <= 0.0 {
        return Vec::new();
    }
    let window = Window(trace.window_ns);
    let row = |names: [&'static str; 3], count: Option<u64>, cpu_ns: f64| {
        let count_of = |written: fn(f64) -> String| count.map(|count| written(cpu_ns / count as f64));
        let mut row = vec![
            language.choose(names).to_owned(),
            count.map_or_else(|| ABSENT.to_owned(), |count| window.rate(count)),
            format::percent(cpu_ns / whole_ns),
            count_of(format::nanos).unwrap_or_else(|| ABSENT.to_owned()),
            time_or_absent(cpu_ns.max(0.0) as u64),
        ];
        row.resize(HEAD_OF_CALLS, ABSENT.to_owned());
        row
    };
    let softirqs_ns = trace.softirqs_ns();
    let count = total(trace.softirqs.iter().map(|softirq| softirq.count));
    let softirqs =
        (softirqs_ns > 0.0).then(|| row(["softirqs", "softirq", "软中断"], Some(count), softirqs_ns));
    let outside_ns = (whole_ns - calls_ns - softirqs_ns).max(0.0);
    let mut outside = row(["outside of calls", "시스템 콜 밖", "系统调用之外"], None, outside_ns);
    let in_calls_ns = total(trace.calls.iter().map(|call| call.queued_ns));
    outside[QUEUED] = time_or_absent(trace.queued_ns.saturating_sub(in_calls_ns));
    softirqs.into_iter().chain([outside]).collect()
}

pub(super) fn time_or_absent(ns: u64) -> String {
    if ns == 0 { ABSENT.to_owned() } else { format::nanos(ns as f64) }
}

/// A share of the calls of a kind; a nonzero share is never shown as zero.
pub(super) fn part_or_absent(part: u64, calls: u64) -> String {
    let share = part as f64 / calls as f64;
    match part {
        0 => ABSENT.to_owned(),
        _ if share < 0.000_5 => "<0.1 %".to_owned(),
        _ => format::percent(share),
    }
}

/// Mean result of a call, if that is an amount.
pub(super) fn answer(call: &CallFigures) -> String {
    let answered = call.count.saturating_sub(call.errors).saturating_sub(call.again);
    let mean = call.returned as f64 / answered as f64;
    match call.purpose {
        Purpose::Readiness | Purpose::Ring => format::per_message(call.returned as f64 / call.count as f64),
        Purpose::Transfer if matches!(&*call.name, "recvmmsg" | "sendmmsg") => format::per_message(mean),
        Purpose::Transfer if direction(&call.name).is_some() => format::memory(mean),
        _ => ABSENT.to_owned(),
    }
}

/// A time below which this share of the calls returned; the buckets have a resolution of a factor of two, and the
/// last one is open.
fn below(call: &CallFigures, share: f64) -> String {
    match call.wall_bounds_ns(share) {
        None => ABSENT.to_owned(),
        Some((_, Some(below_ns))) => format!("<{}", format::nanos_tick(below_ns as f64)),
        Some((from_ns, None)) => format!("≥{}", format::nanos_tick(from_ns as f64)),
    }
}

/// Calls by wall time: the start of the first column, and a column for each factor of two.
fn curve(buckets: &[u64]) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const COLUMNS_MAX: usize = 16;
    let Some(first) = buckets.iter().position(|count| *count > 0) else { return String::new() };
    let shown = &buckets[first..buckets.len().min(first + COLUMNS_MAX)];
    let highest = shown.iter().copied().max().unwrap_or(1).max(1);
    let column = |count: &u64| match count {
        0 => ' ',
        count => HEIGHTS[(count.saturating_mul(7) / highest).min(7) as usize],
    };
    let beyond = if buckets.len() > first + COLUMNS_MAX { "…" } else { "" };
    let from = format::nanos_tick((1_u64 << first.min(63)) as f64);
    format!("{from} {}{beyond}", shown.iter().map(column).collect::<String>())
}

pub(super) fn threads(observation: &Observation, language: Language) -> Option<Columns> {
    let head = match language {
        Language::English => ["TID", "name", "CPU", "queued", "cswch/s", "nvcswch/s", "calls"],
        Language::Korean => ["TID", "이름", "CPU", "CPU 대기", "cswch/s", "nvcswch/s", "시스템 콜"],
        Language::Chinese => ["TID", "名称", "CPU", "排队", "cswch/s", "nvcswch/s", "系统调用"],
    };
    let window = Window(observation.window_ns);
    let are_folded = !threads_at_rest(observation).is_empty();
    let shown = |thread: &&ThreadFigures| !(are_folded && is_at_rest(thread, observation.window_ns));
    let ended = language.choose(["(ended)", "(종료됨)", "(已结束)"]);
    let rows = observation.threads.iter().filter(shown).map(|thread| {
        let name = printable(&thread.name);
        vec![
            thread.tid.to_string(),
            if thread.has_ended { format!("{name} {ended}") } else { name },
            window.share(thread.cpu_ns),
            window.share(thread.run_delay_ns),
            window.per_second(thread.context_switches_voluntary),
            window.per_second(thread.context_switches_involuntary),
            thread.calls.map_or_else(|| ABSENT.to_owned(), |calls| window.rate(calls)),
        ]
    });
    let found = columns(owned(&head), 2, rows.collect(), &[3])?;
    Some(explained(found, &LEGEND_OF_THREADS, language))
}

/// Threads whose rows would be empty, to be listed together; empty if that would leave no row, or saves none.
pub(super) fn threads_at_rest(observation: &Observation) -> Vec<&ThreadFigures> {
    let threads = &observation.threads;
    let at_rest: Vec<_> = threads.iter().filter(|thread| is_at_rest(thread, observation.window_ns)).collect();
    if (2..threads.len()).contains(&at_rest.len()) { at_rest } else { Vec::new() }
}

/// Whether its shares round to zero, and it switched less than once a second.
fn is_at_rest(thread: &ThreadFigures, window_ns: u64) -> bool {
    let least_ns = window_ns / 2_000;
    let switches = total([thread.context_switches_voluntary, thread.context_switches_involuntary]);
    let is_switched = switches as f64 * 1e9 >= window_ns as f64;
    thread.cpu_ns < least_ns && thread.run_delay_ns < least_ns && !is_switched
}

pub(super) fn wakes(observation: &Observation, trace: &Trace, language: Language) -> Option<Columns> {
    let head = match language {
        Language::English => ["woken", "by", "in", "wakes", "slept"],
        Language::Korean => ["깨어난 스레드", "깨운 스레드", "컨텍스트", "횟수", "수면"],
        Language::Chinese => ["被唤醒", "唤醒者", "上下文", "次数", "睡眠"],
    };
    let window = Window(trace.window_ns);
    let idle = language.choose(["an idle CPU", "유휴 CPU", "空闲 CPU"]);
    let timer = language.choose(["a timer", "타이머", "定时器"]);
    let outside = language.choose(["outside:", "바깥:", "外部："]);
    let rows = trace.wakes.iter().map(|wake| {
        let context = wake.context.as_deref().filter(|context| *context != TIMER);
        let sleeper = observation.threads.iter().find(|thread| thread.tid == wake.sleeper_tid);
        let name = sleeper.map_or_else(String::new, |thread| format!(" {}", printable(&thread.name)));
        let waker = match wake.waker_tid {
            OUTSIDE => format!("{outside} {}", printable(&wake.waker_name)),
            0 if context != wake.context.as_deref() => timer.to_owned(),
            0 => idle.to_owned(),
            tid => format!("{tid} {}", printable(&wake.waker_name)),
        };
        vec![
            format!("{}{name}", wake.sleeper_tid),
            waker,
            context.map_or_else(|| ABSENT.to_owned(), printable),
            window.rate(wake.count),
            format::nanos(wake.blocked_ns as f64 / wake.count as f64),
        ]
    });
    let found = columns(owned(&head), 3, rows.collect(), &[4])?;
    Some(explained(found, &LEGEND_OF_WAKES, language))
}

/// strace's time next to the kernel programs', each as a share of its window.
pub(super) fn strace(observation: &Observation, strace: &StraceTable, language: Language) -> Option<Columns> {
    let head = match language {
        Language::English => ["call", "strace: calls", "time", "each", "kernel: on CPU", "asleep", "each"],
        Language::Korean => ["호출", "strace: 횟수", "시간", "1회", "커널: CPU", "대기", "1회"],
        Language::Chinese => ["调用", "strace：次数", "时间", "每次", "内核：CPU", "睡眠", "每次"],
    };
    let window = Window(strace.window_ns);
    let rows = strace.rows.iter().map(|row| {
        let trace = observation.trace.as_ref();
        let own = trace.and_then(|trace| trace.calls.iter().find(|call| call.name == row.name));
        let share = |ns: fn(&CallFigures, &Trace) -> u64| match (trace, own) {
            (Some(trace), Some(call)) => Window(trace.window_ns).share(ns(call, trace)),
            _ => ABSENT.to_owned(),
        };
        let cpu_ns = trace.zip(own).map(|(trace, call)| call.cpu_ns(&trace.cost) / call.count as f64);
        vec![
            printable(&row.name),
            window.rate(row.calls),
            window.share(row.time_ns),
            format::nanos(row.time_ns as f64 / row.calls as f64),
            share(|call, trace| call.cpu_ns(&trace.cost) as u64),
            share(|call, _| call.blocked_ns),
            cpu_ns.map_or_else(|| ABSENT.to_owned(), format::nanos),
        ]
    });
    let found = columns(owned(&head), 1, rows.collect(), &[6, 3, 5])?;
    Some(explained(found, &LEGEND_OF_STRACE, language))
}

pub(super) fn softirqs(trace: &Trace, language: Language) -> Option<Columns> {
    let head = match language {
        Language::English => ["kind", "in its threads", "time", "elsewhere", "time"],
        Language::Korean => ["종류", "관찰한 스레드에서", "시간", "다른 곳에서", "시간"],
        Language::Chinese => ["种类", "在其线程中", "时间", "别处", "时间"],
    };
    let window = Window(trace.window_ns);
    let rows = trace.softirqs.iter().filter(|it| it.count > 0).map(|it| {
        vec![
            printable(&it.kind),
            window.rate(it.count),
            window.share(it.ns),
            window.rate(it.elsewhere_count),
            window.share(it.elsewhere_ns),
        ]
    });
    columns(owned(&head), 1, rows.collect(), &[])
}

/// Only for processes with a ring: other processes' rings have events in any thread that a softirq interrupts.
pub(super) fn uring(observation: &Observation, trace: &Trace, language: Language) -> Option<Columns> {
    let is_open = observation.descriptors.is_some_and(|open| open.rings > 0);
    let is_used =
        trace.uring.iter().any(|it| it.count > 0 && matches!(it.event.as_str(), "submit_req" | "complete"));
    if !is_open && !is_used {
        return None;
    }
    let head = match language {
        Language::English => ["event", "what it is", "in its threads"],
        Language::Korean => ["이벤트", "뜻", "관찰한 스레드에서"],
        Language::Chinese => ["事件", "含义", "在其线程中"],
    };
    let window = Window(trace.window_ns);
    let own = trace.uring.iter().filter(|it| it.count > 0);
    let rows = own.map(|it| {
        let meaning = meaning_of_event(&it.event).map_or(ABSENT, |words| language.choose(words));
        vec![printable(&it.event), meaning.to_owned(), window.rate(it.count)]
    });
    columns(owned(&head), 2, rows.collect(), &[1])
}

/// Operations of io_uring by kind.
pub(super) fn operations(trace: &Trace, language: Language) -> Option<Columns> {
    let head = match language {
        Language::English => ["operation", "submitted", "to workers", "of them"],
        Language::Korean => ["작업", "제출", "워커로", "그 비율"],
        Language::Chinese => ["操作", "提交", "交给工作线程", "占比"],
    };
    let window = Window(trace.window_ns);
    let rows = trace.operations.iter().map(|it| {
        // An operation that is given to a worker twice counts once.
        let share = part_or_absent(it.to_workers.min(it.submitted), it.submitted);
        vec![printable(&it.name), window.rate(it.submitted), window.rate(it.to_workers), share]
    });
    columns(owned(&head), 1, rows.collect(), &[])
}

/// The meaning of an io_uring event for the process.
fn meaning_of_event(event: &str) -> Option<[&'static str; 3]> {
    Some(match event {
        "submit_req" => ["operation submitted", "제출된 작업", "提交的操作"],
        "complete" => ["completion", "완료", "完成"],
        "queue_async_work" => {
            ["given to a worker thread of the kernel", "커널의 워커 스레드로 넘김", "交给内核的工作线程"]
        }
        "poll_arm" => ["waits for readiness", "준비될 때까지 대기", "等待就绪"],
        "task_add" => {
            ["rest of an operation, left to the thread", "스레드에 남은 작업", "留给线程的剩余操作"]
        }
        "local_work_run" => {
            ["thread did what was left to it", "스레드가 남은 작업을 처리", "线程处理了剩余操作"]
        }
        "cqe_overflow" => ["completion queue was full", "완료 큐가 가득 참", "完成队列已满"],
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use weir_record::observation::{CALL_BUCKETS, OperationFigures, Totals};

    use super::*;

    #[test]
    fn parts_of_calls_are_shares_and_what_happened_is_never_nothing() {
        let texts = [(0, 9), (9, 9), (1, 2), (2, 200_000)].map(|(part, calls)| part_or_absent(part, calls));
        assert_eq!(texts, [ABSENT, "100 %", "50 %", "<0.1 %"]);
    }

    #[test]
    fn an_operation_says_how_many_workers_had_and_never_more_than_all() {
        let operation = |name: &str, submitted, to_workers| OperationFigures {
            name: name.to_owned(),
            submitted,
            to_workers,
            ..OperationFigures::default()
        };
        let operations = vec![operation("fsync", 8, 9), operation("read", 4, 1), operation("nop", 2, 0)];
        let trace = Trace { window_ns: 1_000_000_000, operations, ..Trace::default() };
        let found = super::operations(&trace, Language::English).expect("there are some").table;
        let shares: Vec<&str> = found.rows.iter().map(|row| row[3].as_str()).collect();
        assert_eq!(shares, ["100 %", "25 %", ABSENT]);
        assert!(super::operations(&Trace::default(), Language::English).is_none());
    }

    #[test]
    fn a_call_that_moves_collects_or_hands_over_says_how_much() {
        let of = |name: &str, purpose, returned| {
            answer(&CallFigures { name: name.to_owned(), purpose, count: 10, returned, ..Default::default() })
        };
        assert_eq!(of("copy_file_range", Purpose::Transfer, 40_960), "4 KiB");
        assert_eq!(of("tee", Purpose::Transfer, 640), "64 B");
        assert_eq!(of("recvmmsg", Purpose::Transfer, 320), format::per_message(32.0), "messages, not bytes");
        for name in ["io_submit", "io_uring_enter", "io_getevents", "io_pgetevents"] {
            assert_eq!(of(name, Purpose::Ring, 160), format::per_message(16.0), "{name}");
        }
        assert_eq!(of("accept4", Purpose::Transfer, 90), ABSENT, "descriptors are no amount");
    }

    #[test]
    fn percentiles_of_wall_time_stand_beside_the_curve_and_say_what_is_below_them() {
        let call = |buckets: &[u64]| CallFigures { buckets: buckets.to_vec(), ..CallFigures::default() };
        // Half of a hundred calls took less than 1024 ns, and all except one less than 4096.
        let mut buckets = vec![0; 9];
        buckets.extend([50, 40, 9, 0, 0, 1]);
        let texts = [0.5, 0.99, 1.0].map(|share| below(&call(&buckets), share));
        assert_eq!(texts, ["<1.02 µs", "<4.10 µs", "<32.8 µs"]);
        assert_eq!(below(&call(&[]), 0.5), ABSENT);
        assert_eq!(below(&call(&[1]), 0.99), "<2 ns");
        // The last bucket contains all calls longer than nine minutes.
        let mut buckets = vec![0; CALL_BUCKETS - 2];
        buckets.extend([1, 1]);
        let longest = call(&buckets);
        let from = format::nanos_tick(2_f64.powi(39));
        assert_eq!([0.5, 1.0].map(|share| below(&longest, share)), [format!("<{from}"), format!("≥{from}")]);
        // A forged record may contain anything.
        assert_eq!(below(&call(&[u64::MAX; 3]), 0.5), "<2 ns");
        buckets.extend([u64::MAX; 30]);
        assert_eq!(below(&call(&buckets), 1.0), format!("≥{from}"));
    }

    #[test]
    fn where_room_is_short_what_a_call_waited_for_goes_last() {
        let call = CallFigures {
            name: "sched_yield".to_owned(),
            count: 10,
            on_cpu_ns: 9_000,
            queued_ns: 5_000,
            ..CallFigures::default()
        };
        let trace = Trace {
            window_ns: 100_000,
            calls: vec![call],
            queued_ns: 8_000,
            is_split: true,
            ..Trace::default()
        };
        let totals = Totals { cpu_ns: 50_000, ..Totals::default() };
        let observation = Observation { totals, trace: Some(trace.clone()), ..Observation::default() };
        let found = calls(&observation, &trace, Language::English).expect("there is a call");
        assert_eq!(found.optional, OPTIONAL_OF_CALLS);
        assert_eq!(found.optional[7..], [QUEUED, 5], "what it waited for");
        let queued: Vec<&str> = found.table.rows.iter().map(|row| row[QUEUED].as_str()).collect();
        assert_eq!(queued, ["5.00 µs", "3.00 µs"], "in the call, and outside of calls");
    }

    #[test]
    fn a_curve_begins_at_its_first_call_and_shows_rare_ones() {
        assert_eq!(curve(&[0, 0, 0, 800, 100, 0, 1]), "8 ns █▁ ▁");
        assert_eq!(curve(&[]), "");
        assert_eq!(curve(&[0; 40]), "");
        assert!(curve(&[1; 40]).ends_with('…'));
        assert!(!curve(&[u64::MAX; 40]).is_empty());
    }
}
