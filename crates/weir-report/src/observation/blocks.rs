//! The blocks of an observation's view, in order: sentences and tables, in one language.

use maud::Markup;
use weir_record::observation::{Observation, Rung, StraceTable, Trace, total};

use super::{compared, conclusion, descriptors, picture::picture, selected, sentences, series, tables};
use crate::{
    format,
    language::{Language, localized},
    rung::SOFTIRQS_ARE_APART,
    table::Table,
};

/// Lines of the summary in a view that is drawn every second.
const LIVE_LINES: usize = 2;

/// A block of the view.
#[derive(Default)]
pub(super) struct Block {
    /// Heading; empty for the first block.
    pub title: String,
    /// Explanation, in a sentence.
    pub help: String,
    /// Sentences.
    pub lines: Vec<String>,
    /// Figures.
    pub table: Option<Columns>,
    /// The figures drawn, on a page; the table follows there.
    pub picture: Option<Markup>,
}

/// A table whose less important columns may be omitted if there is no room.
pub(super) struct Columns {
    pub table: Table,
    /// Omittable columns, the least important first.
    pub optional: Vec<usize>,
    /// How many are omitted at a time.
    pub together: usize,
    /// Explanations of columns, with their indices, for a terminal without other help.
    pub legend: Vec<(usize, &'static str)>,
}

/// The blocks of a view.
pub(super) struct Blocks {
    /// The observed processes, in a line.
    pub title: String,
    /// Conclusions for a reader who considers another I/O model.
    pub conclusion: Vec<String>,
    pub blocks: Vec<Block>,
}

pub(super) fn all(observation: &Observation, language: Language) -> Blocks {
    if let Some(beside) = &observation.beside {
        return compared::all(observation, beside, language);
    }
    let mut blocks = vec![process(observation, language)];
    if let Some(trace) = &observation.trace {
        blocks.push(calls(observation, trace, language));
        blocks.extend(picture(observation, trace, language));
    }
    blocks.extend(series::block(observation, language));
    blocks.push(threads(observation, language));
    if let Some(trace) = &observation.trace {
        blocks.push(wakes(observation, trace, language));
        blocks.push(softirqs(trace, language));
        blocks.push(uring(observation, trace, language));
        blocks.push(operations(trace, language));
        blocks.extend(descriptors::block(trace, language));
    }
    if let Some(strace) = &observation.strace {
        blocks.push(under_strace(observation, strace, language));
    }
    blocks.push(evidence(observation, language));
    blocks.retain(|block| !block.lines.is_empty() || block.table.is_some());
    Blocks {
        title: title(observation, language),
        conclusion: conclusion::lines(observation, language),
        blocks,
    }
}

/// The content of a view that is drawn every second: tables without sentences.
pub(super) fn live(observation: &Observation, language: Language) -> Blocks {
    if let Some(beside) = &observation.beside {
        return compared::live(observation, beside, language);
    }
    let of_trace = observation.trace.as_ref();
    let tables = [
        of_trace.map(|trace| calls(observation, trace, language)),
        Some(threads(observation, language)),
        of_trace.map(|trace| wakes(observation, trace, language)),
    ];
    let short = |block: Block| Block {
        help: String::new(),
        lines: Vec::new(),
        table: block.table.map(|content| Columns { legend: Vec::new(), ..content }),
        ..block
    };
    let mut sums = process(observation, language);
    sums.lines.truncate(LIVE_LINES);
    let mut blocks = vec![sums];
    blocks.extend(tables.into_iter().flatten().filter(|block| block.table.is_some()).map(short));
    Blocks { title: title(observation, language), conclusion: Vec::new(), blocks }
}

fn title(observation: &Observation, language: Language) -> String {
    let subject = selected::subject(observation, language);
    let length = language.duration(observation.window_ns);
    let ending = sentences::ending(observation.ending, language);
    let rung = crate::rung::name(observation.rung, language);
    localized!(
        language,
        "{subject}, {length}{ending}, {rung}",
        "{subject}, {length}{ending}, {rung}",
        "{subject}，{length}{ending}，{rung}",
    )
}

/// A rate over the window, and a share of it.
pub(super) struct Window(pub u64);

impl Window {
    pub(super) fn rate(&self, count: u64) -> String {
        format::rare_rate(count as f64 * 1e9 / self.0 as f64)
    }

    /// The same without its unit.
    pub(super) fn per_second(&self, count: u64) -> String {
        format::rare(count as f64 * 1e9 / self.0 as f64)
    }

    pub(super) fn share(&self, ns: u64) -> String {
        format::percent(ns as f64 / self.0 as f64)
    }
}

fn process(observation: &Observation, language: Language) -> Block {
    let totals = &observation.totals;
    let window = Window(observation.window_ns);
    let cpu = window.share(totals.cpu_ns);
    let delay = window.share(totals.run_delay_ns);
    let mut lines = vec![match totals.system_ns {
        Some(system_ns) => {
            let kernel = format::percent(system_ns as f64 / totals.cpu_ns as f64);
            localized!(
                language,
                "CPU: {cpu} of one, {kernel} of it in the kernel; {delay} runnable without a CPU",
                "CPU: 코어 하나의 {cpu}, 그중 커널이 {kernel}. CPU를 기다린 시간 {delay}",
                "CPU：一个核的 {cpu}，其中 {kernel} 在内核中；可运行但在等 CPU {delay}",
            )
        }
        None => localized!(
            language,
            "CPU: {cpu} of one; {delay} runnable without a CPU",
            "CPU: 코어 하나의 {cpu}. CPU를 기다린 시간 {delay}",
            "CPU：一个核的 {cpu}；可运行但在等 CPU {delay}",
        ),
    }];
    let voluntary = window.rate(totals.context_switches_voluntary);
    let involuntary = window.rate(totals.context_switches_involuntary);
    lines.push(localized!(
        language,
        "context switches: {voluntary} voluntary (it waited), {involuntary} involuntary (another was given the CPU)",
        "컨텍스트 스위치: 자발적(스스로 대기) {voluntary}, 비자발적(CPU를 빼앗김) {involuntary}",
        "上下文切换：自愿（自身等待）{voluntary}，非自愿（CPU 让给了其他线程）{involuntary}",
    ));
    let (processes, threads) = (totals.processes, totals.threads);
    let memory = format::bytes(totals.rss_anon_bytes);
    lines.push(localized!(
        language,
        "at the end: processes {processes}, threads {threads}, private memory {memory}",
        "종료 시점: 프로세스 {processes}개, 스레드 {threads}개, 익명 메모리 {memory}",
        "结束时：{processes} 个进程，{threads} 个线程，匿名内存 {memory}",
    ));
    if let Some(open) = observation.descriptors {
        let (all, sockets, epolls, rings) = (open.open, open.sockets, open.epolls, open.rings);
        lines.push(localized!(
            language,
            "open descriptors: {all}, of them {sockets} sockets, {epolls} epoll, {rings} io_uring",
            "열린 디스크립터: {all}개, 그중 소켓 {sockets}, epoll {epolls}, io_uring {rings}",
            "打开的描述符：{all}，其中套接字 {sockets}、epoll {epolls}、io_uring {rings}",
        ));
    }
    if totals.kernel_thread_cpu_ns > 0 {
        let share = window.share(totals.kernel_thread_cpu_ns);
        lines.push(localized!(
            language,
            "io_uring's own threads in the kernel: {share} of a CPU, within the sum",
            "io_uring의 커널 스레드: 코어 하나의 {share} (합계에 포함)",
            "io_uring 的内核线程：一个核的 {share}（已计入合计）",
        ));
    }
    lines.extend(selected::lines(observation, language));
    let title = match observation.selection {
        None => language.choose(["The process and its children", "프로세스와 자식", "进程及其子进程"]),
        Some(_) => language.choose([
            "The processes and their children",
            "선택한 프로세스와 자식",
            "所选进程及其子进程",
        ]),
    };
    Block { title: title.to_owned(), lines, ..Block::default() }
}

fn calls(observation: &Observation, trace: &Trace, language: Language) -> Block {
    let title = language.choose(["System calls", "시스템 콜", "系统调用"]);
    let help = language.choose([
        "Counted by the kernel, none sampled. Share: of the process's CPU. Each: CPU a call, with the way into the \
         kernel and out of it, without softirqs; what tracing added is taken out of share, each and on CPU. Asleep: all \
         calls together. Queued: from being woken or preempted until it ran; in it, and not in the threads' table, is the \
         time in which an idle CPU wakes up for it. Empty: the share of them that found nothing to do (EAGAIN). Answer: bytes of a transfer, events of a wait, operations of a submission. The curve shows calls by wall \
         time as it was while traced, each step twice the one before; half of them took less than p50 says, and 99 % \
         less than p99.",
        "모든 호출을 커널이 셌으며 표본 추출이 아닙니다. 비중: 프로세스 CPU 중 비율. 1회: 호출당 CPU 시간(커널 진입과 복귀 포함, softirq 제외). 비중, 1회, CPU에서는 추적 \
        때문에 늘어난 몫을 뺐습니다. 대기: 모든 호출에서 잠든 시간의 합. CPU 대기: 깨어나거나 선점된 뒤 실행되기까지의 시간. 유휴 CPU가 깨어나는 시간도 들어 있으며, 이 시간은 스레드 표에는 \
        들어 있지 않습니다. 빈 호출: 할 일을 찾지 못한 호출(EAGAIN)의 비율. 반환: 전송은 바이트, 대기는 이벤트, 제출은 작업 수. 곡선은 추적하는 동안의 경과 시간별 호출 수이며, 한 칸은 \
        앞 칸의 두 배입니다. 호출의 절반은 p50, 99 %는 p99보다 빨리 끝났습니다.",
        "由内核逐一计数，并非抽样。占比：占该进程 CPU 的比例。每次：每次调用的 CPU 时间（含进出内核，不含软中断）；占比、每次和 CPU \
        均已扣除跟踪增加的部分。睡眠：所有调用合计。排队：被唤醒或被抢占后到运行前的时间，含空闲 CPU \
        被唤醒所需的时间（线程表中不含）。空返回：其中没有可处理内容（EAGAIN）的比例。返回：传输为字节，等待为事件，提交为操作数。曲线为跟踪期间按实际耗时分布的调用次数，每格是前一格的两倍；一半的调用短于 p50，99 % \
        短于 p99。",
    ]);
    let mut lines = sentences::about_calls(trace, language);
    lines.extend(sentences::losses(observation, trace, language));
    Block {
        title: title.to_owned(),
        help: help.to_owned(),
        lines,
        table: tables::calls(observation, trace, language),
        ..Block::default()
    }
}

fn threads(observation: &Observation, language: Language) -> Block {
    let title = language.choose(["Threads", "스레드", "线程"]);
    Block {
        title: title.to_owned(),
        lines: [sentences::threads_at_rest, sentences::threads_left_out]
            .iter()
            .filter_map(|line| line(observation, language))
            .collect(),
        table: tables::threads(observation, language),
        ..Block::default()
    }
}

fn wakes(observation: &Observation, trace: &Trace, language: Language) -> Block {
    let title = language.choose(["Who woke whom", "누가 누구를 깨웠는지", "谁唤醒了谁"]);
    let help = language.choose([
        "In a softirq the thread that is named only had the CPU; on loopback it is the one that sent. Slept: how long \
         each sleep that ended so had lasted.",
        "softirq 안에서는, 이름이 적힌 스레드가 그때 CPU에 있었을 뿐입니다. 루프백에서는 보낸 스레드입니다. 잠든 시간: 이 웨이크업으로 끝난 수면의 평균 길이입니다.",
        "在软中断中，所列线程只是当时占有 CPU；在环回上它就是发送方。睡眠：被如此唤醒的睡眠的平均时长。",
    ]);
    let mut lines = Vec::new();
    if trace.wakes_left_out > 0 {
        let count = trace.wakes_left_out;
        lines.push(localized!(
            language,
            "{count} less frequent pairs are not kept.",
            "횟수가 적은 쌍 {count}개는 기록하지 않았습니다.",
            "另有 {count} 对次数较少的未保存。",
        ));
    }
    Block {
        title: title.to_owned(),
        help: help.to_owned(),
        lines,
        table: tables::wakes(observation, trace, language),
        ..Block::default()
    }
}

fn softirqs(trace: &Trace, language: Language) -> Block {
    let title = language.choose(["Softirqs", "softirq", "软中断"]);
    let help = match trace.softirqs_are_apart {
        Some(true) => language.choose(SOFTIRQS_ARE_APART),
        _ => language.choose([
            "Those that ran while an observed thread had the CPU are within that thread's time.",
            "관찰한 스레드가 CPU에 있을 때 실행된 softirq는 그 스레드의 시간에 들어 있습니다.",
            "在被观测线程占有 CPU 时运行的软中断，已计入该线程的时间。",
        ]),
    };
    let table = tables::softirqs(trace, language);
    Block { title: title.to_owned(), help: help.to_owned(), table, ..Block::default() }
}

fn uring(observation: &Observation, trace: &Trace, language: Language) -> Block {
    let title = language.choose(["io_uring", "io_uring", "io_uring"]);
    let table = tables::uring(observation, trace, language);
    Block { title: title.to_owned(), table, ..Block::default() }
}

/// Operations of io_uring by kind.
pub(super) fn operations(trace: &Trace, language: Language) -> Block {
    let title = language.choose(["io_uring by operation", "io_uring 작업별", "io_uring 按操作"]);
    let help = language.choose([
        "To workers: the share that the kernel gave to its worker threads (io-wq), where each is a blocking call of another \
         thread. Operations that a thread of the kernel submits (SQPOLL) are in the table where it belongs to the process.",
        "워커로: 커널이 워커 스레드(io-wq)로 넘긴 비율. 이 작업은 다른 스레드의 블로킹 호출이 됩니다. 커널 스레드(SQPOLL)가 제출한 작업은, 그 스레드가 프로세스에 속하면 표에 들어 \
        있습니다.",
        "交给工作线程：内核交给其工作线程（io-wq）的比例，在那里每个操作都是另一个线程的阻塞调用。由内核线程（SQPOLL）提交的操作，若该线程属于此进程，也在表中。",
    ]);
    let table = tables::operations(trace, language);
    Block { title: title.to_owned(), help: help.to_owned(), table, ..Block::default() }
}

fn under_strace(observation: &Observation, strace: &StraceTable, language: Language) -> Block {
    let title =
        language.choose(["The same under strace", "strace로 본 같은 프로세스", "strace 下的同一进程"]);
    let help = language.choose([
        "strace stops a process twice in each call. Its counts are right for the slowed process; its times add up \
         waiting and its own stops, and say nothing of what the calls cost without it.",
        "strace는 호출마다 프로세스를 두 번 멈춥니다. 횟수는 느려진 프로세스에 대해 정확합니다. 시간에는 대기와 strace 자체의 정지까지 들어 있어, strace 없이 실행할 때의 호출 비용은 \
        알 수 없습니다.",
        "strace 在每次调用中让进程停两次。次数对变慢后的进程是准确的；时间则包含等待和 strace 自身的停顿，不能说明没有 strace 时调用的开销。",
    ]);
    let rate = |calls: u64, window_ns: u64| calls as f64 * 1e9 / window_ns as f64;
    let mut lines = Vec::new();
    if let Some(trace) = &observation.trace {
        let traced = rate(total(trace.calls.iter().map(|call| call.count)), trace.window_ns);
        let slowed = rate(total(strace.rows.iter().map(|row| row.calls)), strace.window_ns);
        let (traced, slowed, kept) =
            (format::rare_rate(traced), format::rare_rate(slowed), format::percent(slowed / traced));
        lines.push(localized!(
            language,
            "Under strace the process made {slowed} system calls, under the kernel's programs {traced}: {kept} of them.",
            "시스템 콜은 strace에서 {slowed}, 커널 프로그램에서 {traced}입니다. strace에서는 후자의 {kept}입니다.",
            "该进程每秒系统调用在 strace 下为 {slowed}，在内核程序观测下为 {traced}：前者是后者的 {kept}。",
        ));
    }
    Block {
        title: title.to_owned(),
        help: help.to_owned(),
        lines,
        table: tables::strace(observation, strace, language),
        ..Block::default()
    }
}

/// The source of the data, and what would show more.
pub(super) fn evidence(observation: &Observation, language: Language) -> Block {
    let title = language.choose(["How this is known", "측정 방법", "数据来源"]);
    let mut lines = vec![sentences::when_and_where(observation, language)];
    lines.extend(observation.notes.iter().map(|note| sentences::note(note, language)));
    if let Some(trace) = &observation.trace {
        lines.push(sentences::cost(trace, language));
    }
    // For two processes it is in the table next to their CPU.
    if observation.beside.is_none() {
        lines.extend(sentences::share_of_tracing(observation, language));
    }
    lines.extend(sentences::observer(observation, language));
    let next =
        observation.ladder.iter().find(|state| state.rung > observation.rung && state.rung != Rung::Strace);
    if let Some(state) = next {
        lines.push(sentences::next_rung(state, language));
    }
    Block { title: title.to_owned(), lines, ..Block::default() }
}
