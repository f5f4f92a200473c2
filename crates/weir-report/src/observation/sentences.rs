//! The sentences of an observation.

use std::collections::BTreeSet;

use weir_record::{
    calendar::utc,
    observation::{CallFigures, Ending, Note, Observation, Purpose, RungState, SwitchCounter, Trace, total},
};

use super::{blocks::Window, tables};
use crate::{
    display::printable,
    format::{self, count, percent},
    language::{Language, localized},
    rung,
};

/// Most kinds of calls whose errors are listed, and most errors of each.
const FAILURES_MAX: usize = 3;

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

/// Waits for readiness, and their mean number of events; `None` if they hardly ever occur, which says nothing about
/// how a program waits.
fn waits(trace: &Trace) -> Option<(u64, f64)> {
    let waits = || trace.calls.iter().filter(|call| call.purpose == Purpose::Readiness);
    let waited = total(waits().map(|call| call.count));
    let events = total(waits().map(|call| call.returned));
    let is_often = waited > 0 && waited as f64 * 1e9 >= trace.window_ns as f64;
    is_often.then(|| (waited, events as f64 / waited as f64))
}

/// Mean number of events per wait for readiness.
pub(super) fn events_of_a_wait(observation: &Observation) -> Option<f64> {
    observation.trace.as_ref().and_then(waits).map(|(_, each)| each)
}

pub(super) fn threads_left_out(observation: &Observation, language: Language) -> Option<String> {
    let count = observation.threads_left_out;
    let line = || {
        localized!(
            language,
            "{count} threads with less CPU are not kept.",
            "CPU를 적게 쓴 스레드 {count}개는 기록하지 않았습니다.",
            "另有 {count} 个 CPU 用量较少的线程未保存。",
        )
    };
    (count > 0).then(line)
}

/// Threads without a row, because it would be empty.
pub(super) fn threads_at_rest(observation: &Observation, language: Language) -> Option<String> {
    let threads = tables::threads_at_rest(observation);
    let count = threads.len();
    let mut seen = BTreeSet::new();
    let names = threads.into_iter().map(|thread| printable(&thread.name));
    let names = format::few(names.filter(|name| seen.insert(name.clone())).collect());
    let line = || {
        localized!(
            language,
            "{count} threads with hardly any CPU: {names}.",
            "CPU를 거의 쓰지 않은 스레드 {count}개: {names}.",
            "几乎未用 CPU 的线程 {count} 个：{names}。",
        )
    };
    (count > 0).then(line)
}

/// The observer's cost on this machine, in addition to its cost to the process.
pub(super) fn observer(observation: &Observation, language: Language) -> Option<String> {
    let share = Window(observation.window_ns).share(observation.observer_cpu_ns?);
    if observation.trace.is_none() {
        return Some(localized!(
            language,
            "weir itself used {share} of a CPU.",
            "weir 자체가 CPU 하나의 {share}를 썼습니다.",
            "weir 自身占用一个核的 {share}。",
        ));
    }
    Some(localized!(
        language,
        "weir itself used {share} of a CPU; what the programs cost others is not in that.",
        "weir 자체가 CPU 하나의 {share}를 썼습니다. 커널 프로그램이 다른 프로세스에 더한 비용은 들어 있지 않습니다.",
        "weir 自身占用一个核的 {share}；内核程序给其他进程带来的开销不在其中。",
    ))
}

/// Sentences below the calls: events per wait, and calls in progress at the edges.
pub(super) fn about_calls(trace: &Trace, language: Language) -> Vec<String> {
    let mut lines = Vec::new();
    let window = Window(trace.window_ns);
    if let Some((waited, each)) = waits(trace) {
        let (each, rate) = (format::per_message(each), window.rate(waited));
        lines.push(localized!(
            language,
            "A wait for readiness gives {each} events on the mean (batch factor), {rate}.",
            "준비 상태를 한 번 기다릴 때 평균 이벤트 {each}개를 얻습니다(배치 계수), {rate}.",
            "每次就绪等待平均得到 {each} 个事件（批量系数），{rate}。",
        ));
    }
    let enters = trace.calls.iter().find(|call| call.name == "io_uring_enter" && call.count > 0);
    if let Some(enter) = enters {
        let completed = trace.uring.iter().find(|event| event.event == "complete");
        let each = |total: u64| format::per_message(total as f64 / enter.count as f64);
        let (submitted, done) = (each(enter.returned), each(completed.map_or(0, |event| event.count)));
        lines.push(localized!(
            language,
            "An io_uring_enter submits {submitted} operations and comes with {done} completions on the mean.",
            "io_uring_enter 한 번에 평균 {submitted}개를 제출하고 {done}개의 완료를 받습니다.",
            "每次 io_uring_enter 平均提交 {submitted} 个操作，得到 {done} 个完成。",
        ));
    }
    lines.extend(failures(trace, language));
    let in_flight = total(trace.calls.iter().map(|call| call.in_flight));
    if in_flight > 0 {
        let list: Vec<String> = trace
            .calls
            .iter()
            .filter(|call| call.in_flight > 0)
            .take(4)
            .map(|call| format!("{} {}", call.in_flight, printable(&call.name)))
            .collect();
        let list = list.join(language.list());
        lines.push(localized!(
            language,
            "In flight at the end, and in none of the sums: {in_flight} calls ({list}).",
            "끝날 때 진행 중이어서 합계에서 빠진 호출: {in_flight}건 ({list}).",
            "结束时仍在进行、未计入合计的调用：{in_flight} 个（{list}）。",
        ));
    }
    lines
}

/// Note that bytes cover only system calls, for users of a ring.
pub(super) fn bytes_of_rings(trace: &Trace, language: Language) -> Option<String> {
    let has_events = trace.uring.iter().any(|it| it.event == "submit_req" && it.count > 0);
    let is_used = has_events || trace.calls.iter().any(|call| call.name == "io_uring_enter");
    let line = language.choose([
        "Bytes that io_uring moved are not in these figures: they are no answer of a system call.",
        "io_uring이 전송한 바이트는 이 수치에 들어 있지 않습니다. 시스템 콜의 반환값이 아니기 때문입니다.",
        "io_uring 传输的字节不在这些数值中：它们不是系统调用的返回值。",
    ]);
    is_used.then(|| line.to_owned())
}

/// Kinds of calls that failed, most often first, with their errors.
fn failures(trace: &Trace, language: Language) -> Option<String> {
    let mut failed: Vec<&CallFigures> = trace.calls.iter().filter(|call| call.errors > 0).collect();
    failed.sort_by_key(|call| std::cmp::Reverse(call.errors));
    let of_call = |call: &CallFigures| {
        let (errors, calls, name) = (count(call.errors), count(call.count), printable(&call.name));
        let each =
            call.errors_by_kind.iter().map(|it| format!("{} {}", printable(&it.name), count(it.count)));
        let kinds = each.take(FAILURES_MAX).collect::<Vec<_>>().join(language.list());
        let kinds = if kinds.is_empty() { String::new() } else { format!(" ({kinds})") };
        localized!(
            language,
            "{errors} of {calls} {name}{kinds}",
            "{name} {calls}회 중 {errors}회{kinds}",
            "{name} {calls} 次中 {errors} 次{kinds}",
        )
    };
    let listed: Vec<String> = failed.iter().take(FAILURES_MAX).map(|call| of_call(call)).collect();
    let listed = (!listed.is_empty()).then(|| listed.join(language.semicolon()))?;
    let line = localized!(language, "Failed: {listed}.", "실패: {listed}.", "失败：{listed}。");
    Some(line)
}

/// Time and machine of the observation.
pub(super) fn when_and_where(observation: &Observation, language: Language) -> String {
    let [year, month, day, hour, minute, second] = utc(observation.began_unix_s);
    let began = format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC");
    let machine = &observation.fingerprint;
    let (host, cpus) = (printable(&machine.host), machine.cpus_online);
    let kernel = printable(&machine.kernel_release);
    localized!(
        language,
        "Begun {began} on {host}, Linux {kernel}, CPUs: {cpus}.",
        "시작 {began}, 호스트 {host}, Linux {kernel}, CPU {cpus}개.",
        "开始于 {began}，主机 {host}，Linux {kernel}，CPU {cpus} 个。",
    )
}

/// What the sums lack.
pub(super) fn losses(observation: &Observation, trace: &Trace, language: Language) -> Vec<String> {
    let mut lines = Vec::new();
    if trace.calls_cut > 0 {
        let cut = count(trace.calls_cut);
        lines.push(localized!(
            language,
            "At the edges of the window, begun unseen and not counted: {cut} calls.",
            "관찰 구간의 경계에 걸려 시작을 보지 못한 호출(세지 않음): {cut}건.",
            "处于观测窗口边缘、未看到开始因而未计数的调用：{cut} 个。",
        ));
    }
    let (threads, wakes, misses) = (trace.threads_lost, trace.wakes_lost, trace.misses);
    if total([threads, wakes, misses]) > 0 {
        lines.push(localized!(
            language,
            "Lost: {threads} times a thread found no room in the kernel's table, {wakes} wakes found none, {misses} \
             events came while their program ran.",
            "유실: 커널 표가 가득 차서 추적하지 못한 스레드 {threads}회, 웨이크업 {wakes}회, 프로그램 실행 중에 온 이벤트 {misses}건.",
            "丢失：内核表已满而未跟踪的线程 {threads} 次、唤醒 {wakes} 次，程序运行期间到来的事件 {misses} 个。",
        ));
    } else if !observation.are_times_wrong() {
        lines.push(localized!(language, "Nothing was lost.", "유실 없음.", "没有丢失。"));
    }
    if trace.switches_missed > 0 {
        let missed = count(trace.switches_missed);
        lines.push(localized!(
            language,
            "Switches between threads that the kernel did not announce: {missed}. What their threads did meanwhile \
             counts as time without a CPU.",
            "커널이 알리지 않은 스레드 전환: {missed}회. 그동안 해당 스레드가 한 일은 CPU를 쓰지 않은 시간으로 셉니다.",
            "内核未通告的线程切换：{missed} 次。其间相关线程的活动计为没有 CPU 的时间。",
        ));
    }
    if !trace.is_split {
        lines.push(localized!(
            language,
            "The scheduler's part could not be had: times on a CPU are wall times here.",
            "스케줄러 정보를 얻지 못했습니다. 여기의 CPU 시간은 실제 경과 시간입니다.",
            "无法获得调度器信息：此处的 CPU 时间为实际耗时。",
        ));
    }
    lines
}

/// The cost of tracing.
pub(super) fn cost(trace: &Trace, language: Language) -> String {
    let ns = |value: f64| format::nanos(value);
    let (without, with) = (ns(trace.cost.untraced_ns), ns(trace.cost.traced_ns));
    let (least, most) = (ns(trace.cost.added_ns.0), ns(trace.cost.added_ns.1));
    let more = if least == most {
        least
    } else {
        localized!(language, "{least} to {most}", "{least}~{most}", "{least} 至 {most}")
    };
    localized!(
        language,
        "While it was traced, a system call that does nothing took {with} instead of {without} ({more} more), \
         as tried right before on our own calls; every process of the machine paid most of that for each of its calls, and \
         one that only computed nothing. It is taken out of the CPU of calls, and so is what the programs measured of \
         themselves; out of totals, threads and the table of softirqs it is not. What it cost beyond that is with what is \
         outside of calls.",
        "추적하는 동안, 아무 일도 하지 않는 시스템 콜이 {without} 대신 {with} 걸렸습니다({more} 증가). 직전에 자체 호출로 잰 값입니다. 이 머신의 모든 프로세스가 호출마다 이 \
        비용의 대부분을 부담했고, 계산만 한 프로세스는 부담하지 않았습니다. 호출별 CPU에서는 이 값과 프로그램이 스스로 잰 몫을 뺐습니다. 합계, 스레드, softirq 표에서는 빼지 않았습니다. 그 \
        밖의 비용은 '시스템 콜 밖'에 들어 있습니다.",
        "跟踪期间，一个什么都不做的系统调用耗时 {with}，而非 {without}（增加 {more}）；此值在开始前用自身调用测得，本机所有进程的每次调用都承担了其中大部分，只做计算的进程则没有。\
         各调用的 CPU 已扣除此值以及程序自行测得的部分；合计、线程和软中断表未扣除。除此之外的开销计在“系统调用之外”中。",
    )
}

/// The same for the process itself, which is what matters to it.
pub(super) fn share_of_tracing(observation: &Observation, language: Language) -> Option<String> {
    let share = tracing(observation)?;
    Some(localized!(
        language,
        "In this window tracing was {share} of its CPU at least, as far as that can be measured call by call.",
        "이 관찰 구간에서 추적은 프로세스 CPU의 {share} 이상을 썼습니다(호출별로 잴 수 있는 몫).",
        "在此观测窗口内，跟踪至少占该进程 CPU 的 {share}（可按调用测得的部分）。",
    ))
}

/// The share alone.
pub(super) fn tracing(observation: &Observation) -> Option<String> {
    let added_ns = observation.trace.as_ref()?.added_ns();
    let cpu_ns = observation.totals.cpu_ns;
    (cpu_ns > 0).then(|| percent((added_ns / cpu_ns as f64).min(1.0)))
}

/// How to see more.
pub(super) fn next_rung(state: &RungState, language: Language) -> String {
    let name = rung::name(state.rung, language);
    match (&state.obstacle, &state.unlock) {
        (None, _) => localized!(
            language,
            "{name} can be had here: add --trace.",
            "이 머신에서 {name}까지 쓸 수 있습니다. --trace를 추가하십시오.",
            "本机可用 {name}：请加 --trace。",
        ),
        (Some(obstacle), None) => {
            let why = rung::obstacle(obstacle, language);
            localized!(language, "No {name}: {why}.", "{name} 사용 불가: {why}.", "{name} 不可用：{why}。")
        }
        (Some(obstacle), Some(unlock)) => {
            let why = rung::obstacle(obstacle, language);
            localized!(
                language,
                "No {name}: {why}. It is unlocked by: {unlock}",
                "{name} 사용 불가: {why}. 해제: {unlock}",
                "{name} 不可用：{why}。解除：{unlock}",
            )
        }
    }
}

fn without_strace(error: &str, language: Language) -> String {
    let error = printable(error);
    localized!(language, "Without strace: {error}.", "strace 없음: {error}.", "没有 strace：{error}。")
}

fn joined_untraced(error: &str, language: Language) -> String {
    let error = printable(error);
    localized!(
        language,
        "Processes that joined could not be traced ({error}): their calls are missing.",
        "합류한 프로세스를 추적하지 못했습니다({error}). 그 호출은 결과에 없습니다.",
        "无法跟踪后来加入的进程（{error}）：结果中没有其调用。",
    )
}

fn joined_too_many(processes_max: u32, language: Language) -> String {
    let most = count(processes_max.into());
    localized!(
        language,
        "More processes belong to the selection than can be observed at one time ({most}): further ones were not \
         observed.",
        "선택에 속한 프로세스가 한 번에 관찰할 수 있는 수({most}개)보다 많습니다. 나머지는 관찰하지 않았습니다.",
        "属于所选范围的进程多于可同时观测的数量（{most} 个）：其余的未被观测。",
    )
}

/// Notes on the figures.
pub(super) fn note(note: &Note, language: Language) -> String {
    match note {
        Note::ThreadsEnded { count, in_sums } => threads_ended(*count, *in_sums, language),
        Note::EndedUnread { cpu_ns, of_cpu_ns } => ended_unread(*cpu_ns, *of_cpu_ns, language),
        Note::ProcessesEnded { count } => localized!(
            language,
            "{count} processes ended meanwhile.",
            "그동안 프로세스 {count}개가 끝났습니다.",
            "其间有 {count} 个进程结束。",
        ),
        Note::BecameAnother { from, to } => {
            let (from, to) = (printable(from), printable(to));
            localized!(
                language,
                "Its name changed meanwhile, from {from} to {to}: it became another program, or renamed itself.",
                "그동안 이름이 {from}에서 {to}(으)로 바뀌었습니다. 다른 프로그램을 실행(exec)했거나 이름을 바꾼 것입니다.",
                "其间名称由 {from} 变为 {to}：它执行了另一个程序（exec），或自行改了名。",
            )
        }
        Note::Became32Bits => localized!(
            language,
            "It, or a child, became a program of 32 bits, whose system calls have other numbers: they are listed as \
             calls_of_32_bits where the change was seen, and by wrong names where it was not.",
            "이 프로세스나 자식이 32비트 프로그램이 되어 시스템 콜 번호가 다릅니다. 바뀌는 것을 확인한 경우에는 calls_of_32_bits로 표시하고, 확인하지 못한 경우에는 이름이 틀립니다.",
            "它或其子进程变成了 32 位程序，系统调用号不同：看到其变化时列为 calls_of_32_bits，否则名称有误。",
        ),
        Note::Stolen { stolen_ns, machine_ns } => {
            let share = percent(*stolen_ns as f64 / (*machine_ns).max(1) as f64);
            localized!(
                language,
                "The hypervisor took {share} of the machine's CPU time meanwhile (steal): calls that were under way then \
                 have it in their time on a CPU, and the CPU of processes may be without it.",
                "그동안 하이퍼바이저가 머신 CPU 시간의 {share}를 가져갔습니다(steal). 그때 진행 중이던 호출의 CPU 시간에는 이 시간이 들어 있고, 프로세스의 CPU에는 빠져 있을 \
                수 있습니다.",
                "其间虚拟机监控程序占用了本机 CPU 时间的 {share}（steal）：当时进行中的调用的 CPU 时间包含它，而进程的 CPU 可能不含。",
            )
        }
        Note::EndedBetween { interval_ns, by_programs: false } => {
            of_last_reading(*interval_ns, None, language)
        }
        Note::EndedBetween { interval_ns, by_programs: true } => up_to_its_end(*interval_ns, language),
        Note::SwitchesOfEnded { by } => switches_of_ended(*by, language),
        Note::Unread { interval_ns, error } => of_last_reading(*interval_ns, Some(error), language),
        // The reason, and the command that unlocks it, are with the rung.
        Note::NotTraced { .. } => localized!(
            language,
            "Tracing was asked for and could not be had; the next lower rung was used.",
            "추적을 요청했지만 할 수 없어 한 단계 낮은 방법을 썼습니다.",
            "要求跟踪但无法实现，已改用下一级。",
        ),
        Note::Miscounted { made, counted } => localized!(
            language,
            "The programs counted {counted} of {made} calls that were made to try them: do not trust the counts.",
            "시험용 호출 {made}회 중 {counted}회만 셌습니다. 횟수를 신뢰할 수 없습니다.",
            "试探性的 {made} 次调用只计到 {counted} 次：计数不可信。",
        ),
        Note::NoStrace { error } => without_strace(error, language),
        Note::JoinedUntraced { error } => joined_untraced(error, language),
        Note::JoinedTooMany { processes_max } => joined_too_many(*processes_max, language),
        Note::PartLeftOut { tracepoint, error } => {
            let (tracepoint, error) = (printable(tracepoint), printable(error));
            localized!(
                language,
                "Without {tracepoint}: {error}.",
                "{tracepoint} 제외: {error}.",
                "缺少 {tracepoint}：{error}。",
            )
        }
    }
}

fn threads_ended(count: u32, in_sums: bool, language: Language) -> String {
    if in_sums {
        return localized!(
            language,
            "{count} threads ended meanwhile: their CPU is in the sums, their switches and waiting up to the last \
             reading of each.",
            "그동안 스레드 {count}개가 끝났습니다. CPU는 합계에 있고, 컨텍스트 스위치와 대기는 마지막으로 읽은 시점까지만 있습니다.",
            "其间有 {count} 个线程结束：其 CPU 已计入合计，切换与等待计至各自最后一次读取。",
        );
    }
    localized!(
        language,
        "{count} threads ended meanwhile: their CPU is in the sums, their switches and waiting are not.",
        "그동안 스레드 {count}개가 끝났습니다. CPU는 합계에 있고, 컨텍스트 스위치와 대기는 없습니다.",
        "其间有 {count} 个线程结束：其 CPU 已计入合计，切换与等待未计入。",
    )
}

/// CPU of what ended between two readings of /proc, after its last reading.
fn ended_unread(cpu_ns: u64, of_cpu_ns: u64, language: Language) -> String {
    let share = percent((cpu_ns as f64 / of_cpu_ns.max(1) as f64).min(1.0));
    localized!(
        language,
        "Threads or children that ended had {share} of its CPU after their last reading, or were never read: their \
         switches and waiting of then are not in the sums.",
        "끝난 스레드나 자식이 마지막으로 읽은 뒤에, 또는 한 번도 읽히지 않은 채 CPU의 {share}를 썼습니다. 그때의 컨텍스트 스위치와 대기는 합계에 없습니다.",
        "已结束的线程或子进程在最后一次读取之后（或从未被读取）用了 CPU 的 {share}：那时的切换与等待未计入合计。",
    )
}

/// CPU and switches come from the programs, the rest from the last reading.
fn up_to_its_end(interval_ns: u64, language: Language) -> String {
    let interval = language.duration(interval_ns);
    localized!(
        language,
        "It ended and was gone: CPU and switches are those that the kernel's programs counted until its end, other figures of \
         /proc are those of the last reading, at most {interval} before.",
        "프로세스가 끝나 사라졌습니다. CPU와 컨텍스트 스위치는 커널 프로그램이 끝까지 센 값입니다. 그 밖의 /proc 수치는 최대 {interval} 전에 마지막으로 읽은 값입니다.",
        "它已结束并消失：CPU 与切换是内核程序计到其结束的值，其他 /proc 数值来自最后一次读取，至多早 {interval}。",
    )
}

fn switches_of_ended(by: SwitchCounter, language: Language) -> String {
    let who = language.choose(match by {
        SwitchCounter::Programs => ["the kernel's programs", "커널 프로그램", "内核程序"],
        SwitchCounter::Rusage => [
            "the kernel's own account of the command (rusage)",
            "커널이 명령에 대해 집계한 값(rusage)",
            "内核对该命令的统计（rusage）",
        ],
    });
    localized!(
        language,
        "Context switches are those of {who}: those of threads and children that ended are in them.",
        "컨텍스트 스위치는 {who} 기준이며, 끝난 스레드와 자식의 것도 들어 있습니다.",
        "上下文切换取自{who}，包括已结束的线程和子进程。",
    )
}

/// Figures are from the last reading, because the process ended or for another reason.
fn of_last_reading(interval_ns: u64, error: Option<&str>, language: Language) -> String {
    let interval = language.duration(interval_ns);
    match error.map(printable) {
        None => localized!(
            language,
            "It ended and was gone: figures of /proc are those of the last reading, at most {interval} before.",
            "프로세스가 끝나 사라졌습니다. /proc 수치는 최대 {interval} 전에 마지막으로 읽은 값입니다.",
            "它已结束并消失：/proc 的数值来自最后一次读取，至多早 {interval}。",
        ),
        Some(error) => localized!(
            language,
            "It could not be read any more ({error}): figures of /proc are those of the last reading, {interval} \
             before or earlier.",
            "프로세스를 더 이상 읽을 수 없었습니다({error}). /proc 수치는 {interval} 이상 전에 마지막으로 읽은 값입니다.",
            "无法再读取（{error}）：/proc 的数值来自最后一次读取，早于 {interval}。",
        ),
    }
}
