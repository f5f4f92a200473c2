//! The cost of a process's calls for I/O, preceded by caveats: invalid times, a CPU shared with others.
//!
//! No sentence contains a factor, and none says that batches or concurrency bring nothing: the effect of another I/O
//! model on a program does not follow from its calls.

use weir_record::observation::{Bound, Conclusion, Observation, Trace, total};

use super::{advice, blocks::Window};
use crate::{
    format::{count, percent},
    language::{Language, localized},
};

/// A process waits for CPUs if its waiting exceeds this share of its time on a CPU.
const QUEUED_PER_CPU: f64 = 0.25;
/// Waiting below this share of the window is harmless.
const QUEUED_SHARE_MIN: f64 = 0.05;
/// From this share of the CPU on, opening and closing files is mentioned.
const FILES_SHARE_MIN: f64 = 0.10;

/// Conclusions with their reasons; the most important first.
pub(super) fn lines(observation: &Observation, language: Language) -> Vec<String> {
    let mut lines = headlines(observation, language);
    lines.extend(advice::lines(observation, language));
    let Some(bound) = bound(observation).filter(|bound| bound.conclusion != Conclusion::Idle) else {
        return lines;
    };
    lines.extend(files(observation, language));
    lines.push(grounds(bound, language));
    lines
}

/// The same without reasons.
pub(super) fn headlines(observation: &Observation, language: Language) -> Vec<String> {
    let waited = is_short_of_cpu(observation).then(|| waited_for_cpu(observation, language));
    let headline = match bound(observation) {
        Some(bound) => Some(of_bound(observation, bound, language)),
        None if observation.are_times_wrong() => Some(times_are_wrong(observation, language)),
        None => of_proc(observation, language),
    };
    waited.into_iter().chain(headline).collect()
}

/// The bound; `None` if times are wrong, even if an older record contains one.
pub(super) fn bound(observation: &Observation) -> Option<&Bound> {
    observation.bound.as_ref().filter(|_| !observation.are_times_wrong())
}

fn is_short_of_cpu(observation: &Observation) -> bool {
    let totals = &observation.totals;
    let queued_ns = totals.run_delay_ns as f64;
    queued_ns > QUEUED_PER_CPU * totals.cpu_ns as f64
        && queued_ns > QUEUED_SHARE_MIN * observation.window_ns as f64
}

/// Comes first: a process that lacks CPU time learns nothing from its own calls.
fn waited_for_cpu(observation: &Observation, language: Language) -> String {
    let window = Window(observation.window_ns);
    let cpu = window.share(observation.totals.cpu_ns);
    let delay = window.share(observation.totals.run_delay_ns);
    localized!(
        language,
        "It waited for a CPU: it had {cpu} of one and was runnable without one {delay} of the time, while other \
         programs or its other threads ran. Look there first.",
        "CPU를 기다렸습니다. CPU 하나의 {cpu}를 썼고, 다른 프로그램이나 자신의 다른 스레드가 실행되는 동안 시간의 {delay}를 실행 가능한 상태로 기다렸습니다. 이것부터 확인하십시오.",
        "它在等 CPU：用了一个 CPU 的 {cpu}，另有 {delay} 的时间可运行却在等 CPU，其间运行的是其他程序或它自己的其他线程。请先检查这一点。",
    )
}

fn times_are_wrong(observation: &Observation, language: Language) -> String {
    let window = Window(observation.window_ns);
    let sum = window.share(observation.parts_ns() as u64);
    let cpu = window.share(observation.unwatched_cpu_ns() as u64);
    localized!(
        language,
        "Times on a CPU are wrong in this window, counts are not: calls and softirqs add up to {sum} of a CPU, and the \
         process had {cpu} of one. What calls cost does not follow from them.",
        "이 관찰 구간의 CPU 시간은 맞지 않습니다. 횟수는 맞습니다. 호출과 softirq를 더하면 CPU 하나의 {sum}인데 프로세스가 쓴 CPU는 {cpu}입니다. 따라서 호출의 비용을 구할 수 \
        없습니다.",
        "此观测窗口内的 CPU 时间有误，次数无误：调用与软中断合计为一个 CPU 的 {sum}，而该进程只用了 {cpu}。因此无法得出调用的开销。",
    )
}

fn of_bound(observation: &Observation, bound: &Bound, language: Language) -> String {
    let share = percent(bound.share_max);
    match bound.conclusion {
        Conclusion::Idle => localized!(
            language,
            "It hardly used a CPU in this time.",
            "이 시간 동안 CPU를 거의 쓰지 않았습니다.",
            "这段时间几乎没有使用 CPU。",
        ),
        Conclusion::NotIo => localized!(
            language,
            "System calls for I/O cost {share} of its CPU: most of it goes elsewhere.",
            "I/O 시스템 콜이 CPU의 {share}를 씁니다. CPU 대부분은 다른 곳에 쓰입니다.",
            "I/O 系统调用的开销占其 CPU 的 {share}：大部分 CPU 用在别处。",
        ),
        Conclusion::NotBusy => not_busy(observation, bound, language),
        Conclusion::AlreadyBatched => localized!(
            language,
            "It submits in batches. Its system calls for I/O cost {share} of its CPU.",
            "작업을 묶어서 제출합니다. I/O 시스템 콜이 CPU의 {share}를 씁니다.",
            "它批量提交。其 I/O 系统调用的开销占其 CPU 的 {share}。",
        ),
        Conclusion::AtMost => busy_with_calls(bound, language),
    }
}

fn not_busy(observation: &Observation, bound: &Bound, language: Language) -> String {
    if is_short_of_cpu(observation) {
        return busy_with_calls(bound, language);
    }
    let [share, busy] = [bound.share_max, bound.busiest_share].map(percent);
    localized!(
        language,
        "It wanted a CPU {busy} of the time: what it waited for set its pace. Its system calls for I/O cost {share} of the \
         CPU it had.",
        "시간의 {busy}만 CPU를 필요로 했습니다. 속도를 정한 것은 CPU가 아니라 기다린 대상입니다. I/O 시스템 콜은 사용한 CPU의 {share}를 썼습니다.",
        "它只有 {busy} 的时间需要 CPU：决定其快慢的是它所等待的对象。I/O 系统调用占其所用 CPU 的 {share}。",
    )
}

/// The cost of its calls for I/O, and the parts for asking and for entering the kernel.
fn busy_with_calls(bound: &Bound, language: Language) -> String {
    let share = percent(bound.share_max);
    let Some(parts) = asking_and_entering(bound) else {
        return localized!(
            language,
            "Its system calls for I/O cost {share} of its CPU.",
            "I/O 시스템 콜이 CPU의 {share}를 씁니다.",
            "其 I/O 系统调用的开销占其 CPU 的 {share}。",
        );
    };
    let [asking, entering] = parts.map(percent);
    localized!(
        language,
        "Its system calls for I/O cost {share} of its CPU. {asking} of its CPU is asking what is ready and tries that found \
         nothing, {entering} is entering the kernel once for each other call for I/O. What another I/O model would change \
         does not follow from these figures.",
        "I/O 시스템 콜이 CPU의 {share}를 씁니다. CPU 중 {asking}는 준비 여부를 묻거나 할 일을 찾지 못한 호출이고, {entering}는 나머지 I/O 호출이 커널에 진입하는 \
        비용입니다. I/O 모델을 바꾼 결과는 이 수치로 알 수 없습니다.",
        "其 I/O 系统调用的开销占其 CPU 的 {share}。在其 CPU 中，查询就绪和空返回的调用占 {asking}，其余 I/O 调用进入内核的开销占 {entering}。换用其他 I/O \
        模型的效果无法由此得知。",
    )
}

/// The shares of its CPU for asking and for entering the kernel. Older records lack them.
fn asking_and_entering(bound: &Bound) -> Option<[f64; 2]> {
    let whole_ns = bound.io_ns / bound.share_max;
    let shares = [bound.asking_ns, bound.entering_ns].map(|ns| ns / whole_ns);
    (bound.entering_ns > 0.0 && shares.iter().sum::<f64>().is_finite()).then_some(shares)
}

/// The conclusion from /proc alone.
fn of_proc(observation: &Observation, language: Language) -> Option<String> {
    let system_ns = observation.totals.system_ns?;
    let share = percent(system_ns as f64 / observation.totals.cpu_ns.max(1) as f64);
    Some(localized!(
        language,
        "{share} of its CPU was in the kernel, so its system calls cost that at most. Which ones they are, and how much \
         of it is I/O, is shown with --trace.",
        "CPU의 {share}를 커널에서 썼으므로, 시스템 콜의 비용은 최대 그만큼입니다. 어떤 호출인지, 그중 I/O가 얼마인지는 --trace로 볼 수 있습니다.",
        "其 CPU 的 {share} 用在内核中，系统调用的开销至多如此。具体是哪些调用、其中 I/O 占多少，可用 --trace 查看。",
    ))
}

/// Its work on files other than transfers.
fn files(observation: &Observation, language: Language) -> Option<String> {
    let share = files_ns(observation.trace.as_ref()?) / observation.unwatched_cpu_ns();
    let is_much = share.is_finite() && share > FILES_SHARE_MIN;
    let share = percent(share);
    is_much.then(|| {
        localized!(
            language,
            "{share} of its CPU opens, looks up and closes files.",
            "CPU의 {share}를 파일을 열고 조회하고 닫는 데 씁니다.",
            "其 CPU 的 {share} 用于打开、查询和关闭文件。",
        )
    })
}

/// CPU of calls that open, look up and close files. It includes as many closes as there were opens: the others were
/// for sockets.
fn files_ns(trace: &Trace) -> f64 {
    let opens = trace.calls.iter().filter(|call| matches!(call.name.as_str(), "open" | "openat" | "openat2"));
    let opened = total(opens.map(|call| call.count)) as f64;
    let of_files = trace.calls.iter().map(|call| {
        let cpu_ns = call.cpu_ns(&trace.cost);
        match call.name.as_str() {
            "open" | "openat" | "openat2" | "stat" | "lstat" | "fstat" | "newfstatat" | "statx"
            | "access" | "faccessat" | "faccessat2" | "readlink" | "readlinkat" => cpu_ns,
            "close" => cpu_ns * (opened / call.count.max(1) as f64).min(1.0),
            _ => 0.0,
        }
    });
    of_files.sum()
}

fn grounds(bound: &Bound, language: Language) -> String {
    let calls = count(bound.calls);
    localized!(
        language,
        "That cost is the time of {calls} calls for I/O on a CPU, with the way into the kernel and out of it, over the \
         process's CPU without what tracing added. Work that stays whatever calls do it is in that: TCP, files, copying. What \
         the program itself does around each call is not, and goes with the call.",
        "이 비용은 I/O 호출 {calls}회의 CPU 시간에 커널 진입과 복귀 비용을 더하고, 추적 때문에 늘어난 몫을 뺀 프로세스 CPU로 나눈 값입니다. 어떤 호출을 쓰든 남는 작업(TCP, \
        파일, 복사)은 들어 있습니다. 프로그램이 호출 전후에 스스로 하는 작업은 들어 있지 않으며, 호출이 없어지면 함께 없어집니다.",
        "这项开销是 {calls} 次 I/O 调用的 CPU 时间加上进出内核的开销，除以扣除跟踪开销后的进程 \
        CPU。无论用哪些调用都省不掉的工作（TCP、文件、复制）包含在内。程序自身在每次调用前后所做的工作不在其中，会随调用一起减少。",
    )
}

#[cfg(test)]
mod tests {
    use weir_record::observation::{Advice, CallFigures, Totals, WaitsFor};

    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn call(name: &str, count: u64, on_cpu_ns: u64) -> CallFigures {
        CallFigures { name: name.to_owned(), count, on_cpu_ns, ..CallFigures::default() }
    }

    /// A process with this much CPU time in a window of a second, and this much waiting for a CPU.
    fn observed(cpu_ns: u64, run_delay_ns: u64, calls: Vec<CallFigures>) -> Observation {
        let bound = Bound {
            io_ns: 0.6 * cpu_ns as f64,
            asking_ns: 0.1 * cpu_ns as f64,
            entering_ns: 0.1 * cpu_ns as f64,
            share_max: 0.6,
            busiest_share: 0.4,
            conclusion: Conclusion::NotBusy,
            ..Bound::default()
        };
        Observation {
            window_ns: SECOND_NS,
            totals: Totals { cpu_ns, run_delay_ns, ..Totals::default() },
            trace: Some(Trace { window_ns: SECOND_NS, is_split: true, calls, ..Trace::default() }),
            bound: Some(bound),
            ..Observation::default()
        }
    }

    fn text_of(observation: &Observation) -> String {
        lines(observation, Language::English).join("\n")
    }

    #[test]
    fn who_waited_for_a_cpu_is_told_that_first_and_never_that_cpu_did_not_limit_it() {
        let text = text_of(&observed(300_000_000, 0, Vec::new()));
        assert!(
            text.starts_with("It wanted a CPU 40 % of the time: what it waited for set its pace"),
            "{text}"
        );
        let mut starved = observed(300_000_000, 330_000_000, Vec::new());
        let text = text_of(&starved);
        assert!(text.starts_with("It waited for a CPU: it had 30 % of one and was"), "{text}");
        assert!(text.contains("33 % of the time") && !text.contains("set its pace"), "{text}");
        starved.trace = None;
        starved.bound = None;
        assert!(text_of(&starved).starts_with("It waited for a CPU"), "/proc alone shows it too");
        for (cpu_ns, run_delay_ns) in [(300_000_000, 70_000_000), (1_000, 40_000_000)] {
            let text = text_of(&observed(cpu_ns, run_delay_ns, Vec::new()));
            assert!(!text.contains("waited for a CPU"), "{text}");
        }
    }

    /// Words that no conclusion may contain, because the effect of batches or another I/O model is unknown.
    const UNKNOWN: [&str; 6] = ["×", "throughput", "io_uring", "can remove", "could save", "nothing to gain"];

    #[test]
    fn what_calls_cost_is_told_and_never_what_another_io_model_brings() {
        let mut seen = observed(900_000_000, 0, Vec::new());
        for conclusion in [
            Conclusion::Idle,
            Conclusion::NotIo,
            Conclusion::NotBusy,
            Conclusion::AlreadyBatched,
            Conclusion::AtMost,
        ] {
            seen.bound.as_mut().expect("it was traced").conclusion = conclusion;
            let text = text_of(&seen);
            assert!(!UNKNOWN.iter().any(|word| text.contains(word)), "{conclusion:?}: {text}");
            assert_eq!(text.contains("cost 60 % of "), conclusion != Conclusion::Idle, "{text}");
            for language in Language::ALL {
                assert!(!lines(&seen, language).join(" ").contains('×'), "{conclusion:?} {language:?}");
            }
        }
        assert!(text_of(&seen).contains("10 % of its CPU is asking what is ready"), "{}", text_of(&seen));
        seen.bound.as_mut().expect("it was traced").entering_ns = 0.0;
        assert!(text_of(&seen).starts_with("Its system calls for I/O cost 60 % of its CPU.\n"));
    }

    #[test]
    fn who_hardly_used_a_cpu_is_told_where_it_slept_too() {
        let mut seen = observed(5_000_000, 0, Vec::new());
        seen.bound.as_mut().expect("it was traced").conclusion = Conclusion::Idle;
        seen.advice = vec![Advice::Slept {
            call: "fsync".to_owned(),
            waits_for: WaitsFor::Durability,
            calls: 300,
            slept_ns: 900_000_000,
        }];
        let text = text_of(&seen);
        assert!(text.contains("fsync 90 % (300 calls") && text.contains("One call after several"), "{text}");
    }

    #[test]
    fn where_times_are_wrong_counts_are_said_to_be_right_and_no_bound_is_given() {
        // An older record contains a bound despite this.
        let wrong = observed(100_000_000, 0, vec![call("futex", 10, 1_600_000_000)]);
        let text = text_of(&wrong);
        assert!(text.starts_with("Times on a CPU are wrong in this window, counts are not"), "{text}");
        assert!(text.contains("160 % of a CPU, and the process had 10 % of one"), "{text}");
        for language in Language::ALL {
            assert_eq!(lines(&wrong, language).len(), 1, "{language:?}");
        }
    }

    #[test]
    fn calls_for_files_are_told_where_they_are_much_and_closed_sockets_are_none() {
        let of_files = |closes| {
            vec![
                call("openat", 100, 40_000_000),
                call("newfstatat", 200, 30_000_000),
                call("close", closes, 40_000_000),
            ]
        };
        let text = text_of(&observed(900_000_000, 0, of_files(100)));
        assert!(text.contains("12.2 % of its CPU opens, looks up and closes files"), "{text}");
        // Three in four closes were for sockets.
        let text = text_of(&observed(900_000_000, 0, of_files(400)));
        assert!(!text.contains("closes files"), "{text}");
    }
}
