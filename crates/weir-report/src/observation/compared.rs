//! Two processes of the same window, side by side: what each did per second, without a statement about which is
//! faster.

use std::collections::BTreeMap;

use weir_record::observation::{CallFigures, Observation, Trace, total};

use super::{
    advice,
    blocks::{Block, Blocks, Columns, Window, evidence, operations},
    conclusion, descriptors, sentences, series,
    tables::{answer, columns, part_or_absent, time_or_absent},
};
use crate::{
    display::{printable, truncate},
    format::{self, ABSENT},
    language::{Language, localized},
};

/// Most columns of a process's name in a heading.
const NAME_COLUMNS_MAX: usize = 18;

/// Both processes, in the order in which they were named.
type Pair<'a> = [&'a Observation; 2];

pub(super) fn all(one: &Observation, other: &Observation, language: Language) -> Blocks {
    let pair = [one, other];
    let mut blocks = vec![processes(pair, language), calls(pair, language), threads(pair, language)];
    blocks.extend(pair.into_iter().flat_map(|it| alone(it, language)));
    blocks.push(known(pair, language));
    blocks.retain(|block| !block.lines.is_empty() || block.table.is_some());
    let conclusion = pair.into_iter().flat_map(|observation| {
        let said = conclusion::headlines(observation, language);
        said.into_iter()
            .chain(advice::slept(observation, language))
            .map(|line| of(observation, &line, language))
    });
    let mut conclusion: Vec<String> = conclusion.collect();
    conclusion.push(not_judged(language).to_owned());
    Blocks { title: title(pair, language), conclusion, blocks }
}

/// The content of a view that is drawn every second.
pub(super) fn live(one: &Observation, other: &Observation, language: Language) -> Blocks {
    let pair = [one, other];
    let blocks = [processes(pair, language), calls(pair, language), threads(pair, language)];
    let blocks = blocks.into_iter().filter(|block| block.table.is_some());
    let blocks = blocks.map(|block| Block { help: String::new(), lines: Vec::new(), ..block }).collect();
    Blocks { title: title(pair, language), conclusion: Vec::new(), blocks }
}

fn title([one, other]: Pair<'_>, language: Language) -> String {
    let subject = |it: &Observation| {
        let ending = sentences::ending(it.ending, language);
        format!("{} ({}){ending}", it.pid, printable(&it.command))
    };
    let (one_name, other_name) = (subject(one), subject(other));
    let length = language.duration(one.window_ns);
    let rung = crate::rung::name(one.rung, language);
    localized!(
        language,
        "processes {one_name} and {other_name}, {length}, {rung}",
        "프로세스 {one_name}, {other_name}, {length}, {rung}",
        "进程 {one_name} 与 {other_name}，{length}，{rung}",
    )
}

fn not_judged(language: Language) -> &'static str {
    language.choose([
        "Both in the same window. It does not say which is faster: whether they did the same work is not known here. \
         A study (weir study) knows, and judges.",
        "두 프로세스를 같은 시간에 관찰했습니다. 이 결과로는 어느 쪽이 빠른지 알 수 없습니다. 같은 일을 했는지 확인하지 않았기 때문입니다. 판정하려면 weir study를 쓰십시오.",
        "两个进程在同一时段内观测。这里不能判断谁更快，因为无法确认它们是否做了同样的工作。判定请用 weir study。",
    ])
}

fn name(observation: &Observation) -> String {
    let main = observation.threads.iter().find(|thread| thread.tid == observation.pid);
    let first_word = || observation.command.split(' ').next().and_then(|path| path.rsplit('/').next());
    let name = main.map(|thread| thread.name.as_str()).or_else(first_word).unwrap_or_default();
    truncate(&format!("{} {}", observation.pid, printable(name)), NAME_COLUMNS_MAX)
}

fn of(observation: &Observation, line: &str, language: Language) -> String {
    format!("{}{}{line}", name(observation), language.colon())
}

/// Blocks without a counterpart: those of one process, under its name.
fn alone(observation: &Observation, language: Language) -> Vec<Block> {
    let trace = observation.trace.as_ref();
    let blocks = [
        series::block(observation, language),
        trace.map(|trace| operations(trace, language)).filter(|block| block.table.is_some()),
        trace.and_then(|trace| descriptors::block(trace, language)),
    ];
    let named = |block: Block| Block { title: of(observation, &block.title, language), ..block };
    blocks.into_iter().flatten().map(named).collect()
}

/// The source of the data: notes about each process, and then about both.
fn known(pair: Pair<'_>, language: Language) -> Block {
    let [one, _] = pair;
    let notes = pair.into_iter().flat_map(|it| {
        it.notes.iter().map(|note| of(it, &sentences::note(note, language), language)).collect::<Vec<_>>()
    });
    let without_notes = Observation { notes: Vec::new(), ..one.clone() };
    let block = evidence(&without_notes, language);
    Block { lines: notes.chain(block.lines).collect(), title: block.title, ..Block::default() }
}

/// Headings of a group of two columns: the figure with the first process, and the second process alone.
fn twice(figure: &str, [one, other]: Pair<'_>) -> [String; 2] {
    [format!("{figure}: {}", one.pid), other.pid.to_string()]
}

fn processes(pair: Pair<'_>, language: Language) -> Block {
    let rows = rows_of_processes(pair, language);
    let figure = language.choose(["figure", "항목", "指标"]).to_owned();
    let head = [figure, name(pair[0]), name(pair[1])];
    let title = language.choose(["Side by side", "비교", "对照"]);
    let help = language.choose([
        "Counts are a second; shares are of one CPU. Each process with its children.",
        "횟수는 초당 값이고 비중은 CPU 하나 기준입니다. 각 프로세스에는 자식 프로세스가 포함됩니다.",
        "次数为每秒，占比以一个核计。各进程均含其子进程。",
    ]);
    let table = columns(head.to_vec(), 1, rows, &[]);
    Block { title: title.to_owned(), help: help.to_owned(), table, ..Block::default() }
}

/// A figure's name in each language, and its format.
type Row = ([&'static str; 3], fn(&Observation) -> String);

const ROWS: [Row; 18] = [
    (["CPU", "CPU", "CPU"], |it| Window(it.window_ns).share(it.totals.cpu_ns)),
    (["of it in the kernel", "그중 커널", "其中在内核"], |it| {
        or_absent(it.totals.system_ns, |ns| format::percent(ns as f64 / it.totals.cpu_ns as f64))
    }),
    (["of it tracing", "그중 추적", "其中跟踪"], |it| {
        or_absent(sentences::tracing(it), std::convert::identity)
    }),
    (["runnable without a CPU", "CPU를 기다린 시간", "可运行但在等 CPU"], |it| {
        Window(it.window_ns).share(it.totals.run_delay_ns)
    }),
    (["system calls", "시스템 콜", "系统调用"], |it| {
        of_trace(it, |trace, window| window.rate(total(trace.calls.iter().map(|call| call.count))))
    }),
    (["of them found nothing", "그중 빈 호출", "其中空返回"], |it| {
        of_trace(it, |trace, window| window.rate(total(trace.calls.iter().map(|call| call.again))))
    }),
    (["events a wait", "대기당 이벤트", "每次等待的事件"], |it| {
        or_absent(sentences::events_of_a_wait(it), format::per_message)
    }),
    (["wake-ups", "웨이크업", "唤醒"], |it| {
        of_trace(it, |trace, window| window.rate(total(trace.wakes.iter().map(|wake| wake.count))))
    }),
    (["voluntary switches", "자발적 컨텍스트 스위치", "自愿切换"], |it| {
        Window(it.window_ns).rate(it.totals.context_switches_voluntary)
    }),
    (["involuntary switches", "비자발적 컨텍스트 스위치", "非自愿切换"], |it| {
        Window(it.window_ns).rate(it.totals.context_switches_involuntary)
    }),
    (["softirqs in its threads", "스레드 안의 softirq", "其线程中的软中断"], |it| {
        of_trace(it, |trace, window| window.share(total(trace.softirqs.iter().map(|softirq| softirq.ns))))
    }),
    (["processes", "프로세스", "进程"], |it| it.totals.processes.to_string()),
    (["threads", "스레드", "线程"], |it| it.totals.threads.to_string()),
    (["private memory", "익명 메모리", "匿名内存"], |it| format::bytes(it.totals.rss_anon_bytes)),
    (["sockets", "소켓", "套接字"], |it| or_absent(it.descriptors, |open| open.sockets.to_string())),
    (["epoll instances", "epoll 인스턴스", "epoll 实例"], |it| {
        or_absent(it.descriptors, |open| open.epolls.to_string())
    }),
    (["rings of io_uring", "io_uring 링", "io_uring 环"], |it| {
        or_absent(it.descriptors, |open| open.rings.to_string())
    }),
    (["CPU of calls for I/O", "I/O 호출의 CPU", "I/O 调用的 CPU"], |it| {
        or_absent(conclusion::bound(it), |bound| format::percent(bound.share_max))
    }),
];

fn rows_of_processes(pair: Pair<'_>, language: Language) -> Vec<Vec<String>> {
    let row = |(names, written): &Row| {
        let [one, other] = pair.map(written);
        vec![language.choose(*names).to_owned(), one, other]
    };
    ROWS.iter().map(row).filter(|row| row[1] != ABSENT || row[2] != ABSENT).collect()
}

fn or_absent<T>(value: Option<T>, written: impl Fn(T) -> String) -> String {
    value.map_or_else(|| ABSENT.to_owned(), written)
}

fn of_trace(observation: &Observation, written: fn(&Trace, Window) -> String) -> String {
    or_absent(observation.trace.as_ref(), |trace| written(trace, Window(trace.window_ns)))
}

fn calls(pair: Pair<'_>, language: Language) -> Block {
    let title = language.choose(["System calls", "시스템 콜", "系统调用"]);
    let help = language.choose([
        "As for one process: share is of that process's CPU, each is CPU a call; what tracing added is taken out.",
        "프로세스 하나일 때와 같습니다. 비중은 그 프로세스 CPU 중 비율이고, 1회는 호출당 CPU 시간입니다. 추적 때문에 늘어난 몫은 뺐습니다.",
        "与单个进程相同：占比为占该进程 CPU 的比例，每次为每次调用的 CPU 时间，均已扣除跟踪增加的部分。",
    ]);
    Block {
        title: title.to_owned(),
        help: help.to_owned(),
        table: table_of_calls(pair, language),
        ..Block::default()
    }
}

fn table_of_calls(pair: Pair<'_>, language: Language) -> Option<Columns> {
    let names = match language {
        Language::English => ["call", "calls", "share", "each", "empty", "answer", "asleep"],
        Language::Korean => ["호출", "횟수", "비중", "1회", "빈 호출", "반환", "대기"],
        Language::Chinese => ["调用", "次数", "占比", "每次", "空返回", "返回", "睡眠"],
    };
    let mut head = vec![names[0].to_owned()];
    head.extend(names[1..].iter().flat_map(|name| twice(name, pair)));
    let found = |it: &Observation, name: &str| {
        it.trace.as_ref()?.calls.iter().find(|call| call.name == name).cloned()
    };
    let mut kinds: BTreeMap<&str, f64> = BTreeMap::new();
    for trace in pair.into_iter().filter_map(|it| it.trace.as_ref()) {
        for call in &trace.calls {
            *kinds.entry(&call.name).or_default() += call.cpu_ns(&trace.cost);
        }
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    // Kinds with equal time are ordered by name.
    kinds.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let rows = kinds.into_iter().map(|(name, _)| {
        let cells = pair.map(|it| cells_of_call(it, found(it, name).as_ref()));
        let mut row = vec![printable(name)];
        row.extend((0..cells[0].len()).flat_map(|at| [cells[0][at].clone(), cells[1][at].clone()]));
        row
    });
    pairs(head, rows.collect(), &[11, 12, 9, 10, 7, 8, 5, 6])
}

fn cells_of_call(observation: &Observation, call: Option<&CallFigures>) -> [String; 6] {
    let (Some(call), Some(trace)) = (call, &observation.trace) else {
        return std::array::from_fn(|_| ABSENT.to_owned());
    };
    let cpu_ns = call.cpu_ns(&trace.cost);
    [
        Window(trace.window_ns).rate(call.count),
        format::percent(cpu_ns / observation.unwatched_cpu_ns()),
        format::nanos(cpu_ns / call.count as f64),
        part_or_absent(call.again, call.count),
        answer(call),
        time_or_absent(call.blocked_ns),
    ]
}

/// A table in which all columns except the first come in pairs.
fn pairs(head: Vec<String>, rows: Vec<Vec<String>>, optional: &[usize]) -> Option<Columns> {
    columns(head, 1, rows, optional).map(|content| Columns { together: 2, ..content })
}

/// Sums over the threads with one name.
#[derive(Clone, Copy, Default, PartialEq)]
struct Named {
    /// Number of those alive at the end.
    threads: u64,
    cpu_ns: u64,
    run_delay_ns: u64,
    voluntary: u64,
    involuntary: u64,
}

fn threads(pair: Pair<'_>, language: Language) -> Block {
    let names = match language {
        Language::English => ["threads called", "number", "CPU", "queued", "cswch/s", "nvcswch/s"],
        Language::Korean => ["스레드 이름", "개수", "CPU", "CPU 대기", "cswch/s", "nvcswch/s"],
        Language::Chinese => ["线程名称", "数量", "CPU", "排队", "cswch/s", "nvcswch/s"],
    };
    let mut head = vec![names[0].to_owned()];
    head.extend(names[1..].iter().flat_map(|name| twice(name, pair)));
    let mut by_name: BTreeMap<&str, [Named; 2]> = BTreeMap::new();
    for (place, observation) in pair.into_iter().enumerate() {
        for thread in &observation.threads {
            let sum = &mut by_name.entry(&thread.name).or_default()[place];
            sum.threads += u64::from(!thread.has_ended);
            for (sum, own) in [
                (&mut sum.cpu_ns, thread.cpu_ns),
                (&mut sum.run_delay_ns, thread.run_delay_ns),
                (&mut sum.voluntary, thread.context_switches_voluntary),
                (&mut sum.involuntary, thread.context_switches_involuntary),
            ] {
                *sum = sum.saturating_add(own);
            }
        }
    }
    let mut by_name: Vec<_> = by_name.into_iter().collect();
    by_name.sort_by_key(|(name, sums)| (std::cmp::Reverse(total(sums.map(|sum| sum.cpu_ns))), *name));
    let rows = by_name.into_iter().map(|(name, sums)| {
        let cells = [cells_of_threads(pair[0], sums[0]), cells_of_threads(pair[1], sums[1])];
        let mut row = vec![printable(name)];
        row.extend((0..cells[0].len()).flat_map(|at| [cells[0][at].clone(), cells[1][at].clone()]));
        row
    });
    let title = language.choose(["Threads, by name", "이름별 스레드", "按名称的线程"]);
    let lines =
        pair.iter().filter_map(|it| Some(of(it, &sentences::threads_left_out(it, language)?, language)));
    let lines = lines.collect();
    let table = pairs(head, rows.collect(), &[5, 6, 9, 10, 7, 8, 1, 2]);
    Block { title: title.to_owned(), lines, table, ..Block::default() }
}

fn cells_of_threads(observation: &Observation, sum: Named) -> [String; 5] {
    if sum == Named::default() {
        return std::array::from_fn(|_| ABSENT.to_owned());
    }
    let window = Window(observation.window_ns);
    [
        sum.threads.to_string(),
        window.share(sum.cpu_ns),
        window.share(sum.run_delay_ns),
        window.per_second(sum.voluntary),
        window.per_second(sum.involuntary),
    ]
}
