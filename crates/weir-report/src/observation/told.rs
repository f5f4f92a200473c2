//! The sentences of an observation.

use weir_record::observation::{Bound, Conclusion, Ending, Note, Observation, Purpose, RungState, Trace};

use super::blocks::Window;
use crate::{
    display::printable,
    format::{self, count, percent},
    language::{Language, told},
    rung,
};

pub(super) fn ending(ending: Ending, language: Language) -> &'static str {
    match ending {
        Ending::Time => "",
        Ending::Interrupted => language.choose([" (stopped)", " (중단됨)", "（被中止）"]),
        Ending::OtherEnded => {
            language.choose([" (until the other ended)", " (다른 쪽이 끝날 때까지)", "（直至另一方结束）"])
        }
        Ending::TargetEnded => language.choose([" (until it ended)", " (종료할 때까지)", "（直至其结束）"]),
    }
}

/// What batching could bring at most, and on which grounds.
pub(super) fn conclusion(observation: &Observation, language: Language) -> Vec<String> {
    let Some(bound) = &observation.bound else {
        return of_proc(observation, language).into_iter().collect();
    };
    let share = percent(bound.share_max);
    let busy = percent(bound.busiest_share);
    let sentence = match bound.conclusion {
        Conclusion::Idle => told!(
            language,
            "It hardly used a CPU in this time: there is nothing to gain.",
            "이 시간 동안 CPU를 거의 쓰지 않아 얻을 것이 없습니다.",
            "这段时间几乎没有使用 CPU，没有可省的。",
        ),
        Conclusion::NotIo => told!(
            language,
            "Not your bottleneck: system calls for I/O are at most {share} of its CPU.",
            "병목이 아닙니다. I/O 시스템 콜은 CPU의 최대 {share}입니다.",
            "不是瓶颈：I/O 系统调用最多占其 CPU 的 {share}。",
        ),
        Conclusion::NotBusy => told!(
            language,
            "It wanted a CPU {busy} of the time, so CPU did not limit it: batching system calls could \
             save at most {share} of that CPU, not raise the throughput.",
            "시간의 {busy}만 CPU를 필요로 했으므로 CPU가 한계가 아니었습니다. 시스템 콜을 묶으면 그 CPU의 최대 {share}를 아낄 수 있지만 처리량은 \
             늘지 않습니다.",
            "它只有 {busy} 的时间需要 CPU，因此 CPU 并非限制：批量化系统调用最多省下其中 {share} 的 CPU，不会提高吞吐量。",
        ),
        Conclusion::AlreadyBatched => told!(
            language,
            "It submits in batches already; the rest of its system calls' time ({share} of its CPU) is work.",
            "이미 묶어서 제출합니다. 시스템 콜 시간의 나머지(CPU의 {share})는 실제 작업입니다.",
            "它已经批量提交；系统调用的其余时间（占 CPU 的 {share}）是实际工作。",
        ),
        Conclusion::AtMost => {
            let speedup = times(bound.share_max);
            told!(
                language,
                "Batching system calls (io_uring) could remove at most {share} of its CPU, {speedup}× the throughput \
                 at the very most.",
                "시스템 콜을 묶으면(io_uring) CPU의 최대 {share}를 없앨 수 있고, 처리량은 많아야 {speedup}배입니다.",
                "批量化系统调用（io_uring）最多去掉其 {share} 的 CPU，吞吐量至多 {speedup} 倍。",
            )
        }
    };
    let mut lines = vec![sentence];
    if matches!(bound.conclusion, Conclusion::AtMost | Conclusion::NotBusy) {
        lines.extend(what_goes_first(bound, language));
    }
    if bound.conclusion != Conclusion::Idle {
        let calls = count(bound.calls);
        lines.push(told!(
            language,
            "An upper bound: the whole time of {calls} calls for I/O on a CPU, with the way into the kernel and out of \
             it, over the process's CPU without what tracing added. TCP and copying stay, so expect less.",
            "상한입니다. I/O 호출 {calls}회의 CPU 시간 전체와 커널 진입·복귀 비용을, 추적이 더한 몫을 뺀 프로세스 CPU로 나눈 값입니다. TCP와 복사는 남으므로 실제 \
             이득은 더 작습니다.",
            "这是上限：{calls} 次 I/O 调用的全部 CPU 时间及进出内核的开销，除以扣除跟踪开销后的进程 CPU。TCP 与复制仍在，实际收益更小。",
        ));
    }
    lines
}

/// What part of the bound batching removes before all else, with what that would bring a process that CPU limits.
fn what_goes_first(bound: &Bound, language: Language) -> Option<String> {
    let whole_ns = bound.io_ns / bound.share_max;
    let first = (bound.asking_ns + bound.entering_ns) / whole_ns;
    let [asking, entering] = [bound.asking_ns, bound.entering_ns].map(|ns| percent(ns / whole_ns));
    let speedup = times(first);
    let is_known = bound.entering_ns > 0.0 && first.is_finite();
    is_known.then(|| match bound.conclusion {
        Conclusion::AtMost => told!(
            language,
            "What goes first is less: {asking} of its CPU is asking what is ready and tries that found nothing, \
             {entering} is entering the kernel once for each transfer. Without both it is {speedup}× the throughput; the \
             rest of the bound is the transfers' own work in the kernel.",
            "먼저 없어지는 몫은 그보다 작습니다. 준비 여부를 묻거나 빈손으로 돌아온 호출이 CPU의 {asking}, 전송마다 커널에 진입하는 비용이 {entering}입니다. 둘 다 없애면 \
             처리량은 {speedup}배이고, 상한의 나머지는 전송 자체가 커널에서 하는 일입니다.",
            "最先省下的部分更小：询问就绪和空手而归的调用占其 CPU 的 {asking}，每次传输进入内核的开销占 {entering}。两者都去掉时吞吐量为 {speedup} 倍；\
             上限的其余部分是传输本身在内核中的工作。",
        ),
        _ => told!(
            language,
            "What goes first: asking what is ready and tries that found nothing, {asking} of its CPU, and entering the \
             kernel once for each transfer, {entering}.",
            "먼저 없어지는 몫: 준비 여부를 묻거나 빈손으로 돌아온 호출이 CPU의 {asking}, 전송마다 커널에 진입하는 비용이 {entering}입니다.",
            "最先省下的部分：询问就绪和空手而归的调用占其 CPU 的 {asking}，每次传输进入内核的开销占 {entering}。",
        ),
    })
}

/// How often the work of before fits into the CPU when this share of it is gone.
fn times(share: f64) -> String {
    format!("{:.2}", 1.0 / (1.0 - share).max(0.01))
}

/// What /proc alone allows to say.
fn of_proc(observation: &Observation, language: Language) -> Option<String> {
    let system_ns = observation.totals.system_ns?;
    let share = percent(system_ns as f64 / observation.totals.cpu_ns.max(1) as f64);
    Some(told!(
        language,
        "{share} of its CPU was in the kernel, so its system calls cost that at most. Which ones they are, and how much \
         of it is I/O, is shown with --trace.",
        "CPU의 {share}가 커널에서 쓰였으므로 시스템 콜의 비용은 많아야 그만큼입니다. 어떤 호출인지, I/O가 얼마인지는 --trace로 볼 수 있습니다.",
        "其 CPU 的 {share} 用在内核中，系统调用的开销至多如此。具体是哪些调用、其中 I/O 占多少，可用 --trace 查看。",
    ))
}

/// Waits for readiness, and what each gave on the mean; nothing where they hardly ever happen, which says nothing of
/// how a program waits.
fn waits(trace: &Trace) -> Option<(u64, f64)> {
    let waits = trace.calls.iter().filter(|call| call.purpose == Purpose::Readiness);
    let (waited, events) = waits.fold((0, 0), |sum, call| (sum.0 + call.count, sum.1 + call.returned));
    let is_often = waited > 0 && waited as f64 * 1e9 >= trace.window_ns as f64;
    is_often.then(|| (waited, events as f64 / waited as f64))
}

/// Events that a wait for readiness gave on the mean.
pub(super) fn events_of_a_wait(observation: &Observation) -> Option<f64> {
    observation.trace.as_ref().and_then(waits).map(|(_, each)| each)
}

pub(super) fn threads_left_out(observation: &Observation, language: Language) -> Option<String> {
    let count = observation.threads_left_out;
    let line = || {
        told!(
            language,
            "{count} threads with less CPU are not kept.",
            "CPU를 덜 쓴 스레드 {count}개는 기록하지 않았습니다.",
            "另有 {count} 个 CPU 更少的线程未保存。",
        )
    };
    (count > 0).then(line)
}

/// What watching cost on this machine, beside what it costs the process itself.
pub(super) fn observer(observation: &Observation, language: Language) -> Option<String> {
    let share = Window(observation.window_ns).share(observation.observer_cpu_ns?);
    Some(told!(
        language,
        "weir itself used {share} of a CPU; what the programs cost others is not in that.",
        "weir 자체가 코어 하나의 {share}를 썼습니다. 커널 프로그램이 다른 프로세스에 더한 비용은 빠져 있습니다.",
        "weir 自身占用一个核的 {share}；内核程序给其他进程带来的开销不在其中。",
    ))
}

/// What stands below the calls: how full waits are, and what was going on at the edges.
pub(super) fn about_calls(trace: &Trace, language: Language) -> Vec<String> {
    let mut lines = Vec::new();
    let window = Window(trace.window_ns);
    if let Some((waited, each)) = waits(trace) {
        let (each, rate) = (format::per_message(each), window.rate(waited));
        lines.push(told!(
            language,
            "A wait for readiness gives {each} events on the mean (batch factor), {rate}.",
            "준비 상태 대기 한 번에 평균 이벤트 {each}개(배치 계수), {rate}.",
            "每次就绪等待平均得到 {each} 个事件（批量系数），{rate}。",
        ));
    }
    let enters = trace.calls.iter().find(|call| call.name == "io_uring_enter" && call.count > 0);
    if let Some(enter) = enters {
        let completed = trace.uring.iter().find(|event| event.event == "complete");
        let each = |total: u64| format::per_message(total as f64 / enter.count as f64);
        let (submitted, done) = (each(enter.returned), each(completed.map_or(0, |event| event.count)));
        lines.push(told!(
            language,
            "An io_uring_enter submits {submitted} operations and comes with {done} completions on the mean.",
            "io_uring_enter 한 번에 평균 {submitted}개를 제출하고 {done}개가 완료됩니다.",
            "每次 io_uring_enter 平均提交 {submitted} 个操作，伴随 {done} 个完成。",
        ));
    }
    let in_flight: u64 = trace.calls.iter().map(|call| call.in_flight).sum();
    if in_flight > 0 {
        let list: Vec<String> = trace
            .calls
            .iter()
            .filter(|call| call.in_flight > 0)
            .take(4)
            .map(|call| format!("{} {}", call.in_flight, printable(&call.name)))
            .collect();
        let list = list.join(language.list());
        lines.push(told!(
            language,
            "In flight at the end, and in none of the sums: {in_flight} calls ({list}).",
            "끝날 때 진행 중이어서 합계에 없는 호출: {in_flight}건 ({list}).",
            "结束时仍在进行、未计入合计的调用：{in_flight} 个（{list}）。",
        ));
    }
    lines
}

/// What is missing in the sums.
pub(super) fn losses(trace: &Trace, language: Language) -> Vec<String> {
    let mut lines = Vec::new();
    if trace.calls_cut > 0 {
        let cut = count(trace.calls_cut);
        lines.push(told!(
            language,
            "At the edges of the window, begun unseen and not counted: {cut} calls.",
            "관찰 구간의 경계에서 시작을 보지 못해 세지 않은 호출: {cut}건.",
            "处于观察窗口边缘、未看到开始因而未计数的调用：{cut} 个。",
        ));
    }
    let (threads, wakes, misses) = (trace.threads_lost, trace.wakes_lost, trace.misses);
    if threads + wakes + misses > 0 {
        lines.push(told!(
            language,
            "Lost: {threads} times a thread found no room in the kernel's table, {wakes} wakes found none, {misses} \
             events came while their program ran.",
            "유실: 표가 차서 따라가지 못한 스레드 {threads}회, 깨우기 {wakes}회, 프로그램 실행 중에 온 이벤트 {misses}건.",
            "丢失：内核表已满而未跟踪的线程 {threads} 次、唤醒 {wakes} 次，程序运行期间到来的事件 {misses} 个。",
        ));
    } else {
        lines.push(told!(language, "Nothing was lost.", "유실 없음.", "没有丢失。"));
    }
    if !trace.is_split {
        lines.push(told!(
            language,
            "The scheduler's part could not be had: times on a CPU are wall times here.",
            "스케줄러 정보를 얻지 못해 여기의 CPU 시간은 실제 경과 시간입니다.",
            "无法获得调度器信息：此处的 CPU 时间为实际耗时。",
        ));
    }
    lines
}

/// What being traced cost.
pub(super) fn cost(trace: &Trace, language: Language) -> String {
    let ns = |value: f64| format::nanos(value);
    let (without, with) = (ns(trace.cost.untraced_ns), ns(trace.cost.traced_ns));
    let (least, most) = (ns(trace.cost.added_ns.0), ns(trace.cost.added_ns.1));
    told!(
        language,
        "While it was traced, a system call that does nothing took {with} instead of {without} ({least} to {most} more), \
         as tried right before on calls of our own; every process of the machine paid most of that. It is taken out of the \
         CPU of calls, and so is what the programs measured of themselves; out of totals, threads and the table of softirqs it is \
         not.",
        "추적하는 동안 아무 일도 하지 않는 시스템 콜이 {without} 대신 {with} 걸렸습니다({least}~{most} 증가). 직전에 자체 호출로 잰 값이며, 이 머신의 모든 프로세스가 \
         그 대부분을 치렀습니다. 호출별 CPU에서는 이 값과 프로그램이 스스로 잰 몫을 뺐고, 합계·스레드·softirq 표에서는 빼지 않았습니다.",
        "跟踪期间，一个什么都不做的系统调用耗时 {with}，而非 {without}（增加 {least} 至 {most}）；此值在开始前用自身调用测得，本机所有进程都承担了其中大部分。\
         各调用的 CPU 已扣除此值以及程序自行测得的部分；合计、线程和软中断表未扣除。",
    )
}

/// What would show more.
pub(super) fn next_rung(state: &RungState, language: Language) -> String {
    let name = rung::name(state.rung, language);
    match (&state.obstacle, &state.unlock) {
        (None, _) => told!(
            language,
            "{name} can be had here: add --trace.",
            "여기서 {name}까지 쓸 수 있습니다. --trace를 붙이십시오.",
            "此处可用 {name}：请加 --trace。",
        ),
        (Some(obstacle), None) => {
            let why = rung::obstacle(obstacle, language);
            told!(language, "No {name}: {why}.", "{name} 사용 불가: {why}.", "无 {name}：{why}。")
        }
        (Some(obstacle), Some(unlock)) => {
            let why = rung::obstacle(obstacle, language);
            told!(
                language,
                "No {name}: {why}. It is unlocked by: {unlock}",
                "{name} 사용 불가: {why}. 해제: {unlock}",
                "无 {name}：{why}。解锁：{unlock}",
            )
        }
    }
}

/// What a reader must know beside the figures.
pub(super) fn note(note: &Note, language: Language) -> String {
    match note {
        Note::ThreadsEnded { count } => told!(
            language,
            "{count} threads ended meanwhile: their CPU is in the sums, their switches and waiting are not.",
            "그동안 스레드 {count}개가 끝났습니다. 그 CPU는 합계에 있고, 컨텍스트 스위치와 대기는 없습니다.",
            "其间有 {count} 个线程结束：其 CPU 已计入合计，切换与等待未计入。",
        ),
        Note::ProcessesEnded { count } => told!(
            language,
            "{count} processes ended meanwhile.",
            "그동안 프로세스 {count}개가 끝났습니다.",
            "其间有 {count} 个进程结束。",
        ),
        Note::BecameAnother { from, to } => {
            let (from, to) = (printable(from), printable(to));
            told!(
                language,
                "It became another program meanwhile: {from}, then {to}.",
                "그동안 다른 프로그램이 되었습니다: {from} → {to}.",
                "其间变成了另一个程序：{from} → {to}。",
            )
        }
        Note::Became32Bits => told!(
            language,
            "It became a program of 32 bits, whose system calls have other numbers: names may be wrong.",
            "32비트 프로그램이 되어 시스템 콜 번호가 다르므로 이름이 틀릴 수 있습니다.",
            "它变成了 32 位程序，系统调用号不同：名称可能有误。",
        ),
        Note::Stolen { stolen_ns, machine_ns } => {
            let share = percent(*stolen_ns as f64 / (*machine_ns).max(1) as f64);
            told!(
                language,
                "The hypervisor took {share} of the machine's CPU time meanwhile (steal): calls that were under way then \
                 have it in their time on a CPU, and the CPU of processes may be without it.",
                "그동안 하이퍼바이저가 머신 CPU 시간의 {share}를 가져갔습니다(steal). 그때 진행 중이던 호출의 CPU 시간에는 들어 있고, 프로세스의 CPU에는 빠져 있을 수 \
                 있습니다.",
                "其间虚拟机监控程序占用了本机 CPU 时间的 {share}（steal）：当时进行中的调用的 CPU 时间包含它，而进程的 CPU 可能不含。",
            )
        }
        Note::EndedBetween { interval_ns } => of_last_reading(*interval_ns, None, language),
        Note::Unread { interval_ns, error } => of_last_reading(*interval_ns, Some(error), language),
        // Why, and the command that unlocks it, stand with the rung.
        Note::NotTraced { .. } => told!(
            language,
            "Tracing was asked for and could not be had; the next lower rung was used.",
            "추적을 요청했지만 할 수 없어 한 단계 아래를 사용했습니다.",
            "要求跟踪但无法实现，已改用下一级。",
        ),
        Note::Miscounted { made, counted } => told!(
            language,
            "The programs counted {counted} of {made} calls that were made to try them: do not trust the counts.",
            "시험 삼아 한 호출 {made}회 중 {counted}회만 세었습니다. 횟수를 믿지 마십시오.",
            "试探性的 {made} 次调用只计到 {counted} 次：请勿相信计数。",
        ),
        Note::NoStrace { error } => {
            let error = printable(error);
            told!(language, "Without strace: {error}.", "strace 없음: {error}.", "没有 strace：{error}。")
        }
        Note::PartLeftOut { tracepoint, error } => {
            let (tracepoint, error) = (printable(tracepoint), printable(error));
            told!(
                language,
                "Without {tracepoint}: {error}.",
                "{tracepoint} 제외: {error}.",
                "缺少 {tracepoint}：{error}。",
            )
        }
    }
}

/// Figures are of the last reading: because it ended, or for another reason.
fn of_last_reading(interval_ns: u64, error: Option<&str>, language: Language) -> String {
    let interval = language.duration(interval_ns);
    match error.map(printable) {
        None => told!(
            language,
            "It ended and was gone: figures of /proc are those of the last reading, at most {interval} before.",
            "종료되어 사라졌습니다. /proc 수치는 길어야 {interval} 전의 마지막 값입니다.",
            "它已结束并消失：/proc 的数值来自最后一次读取，至多早 {interval}。",
        ),
        Some(error) => told!(
            language,
            "It could not be read any more ({error}): figures of /proc are those of the last reading, {interval} \
             before or earlier.",
            "더 이상 읽을 수 없었습니다({error}). /proc 수치는 {interval} 이상 전의 마지막 값입니다.",
            "无法再读取（{error}）：/proc 的数值来自最后一次读取，早 {interval} 或更久。",
        ),
    }
}
