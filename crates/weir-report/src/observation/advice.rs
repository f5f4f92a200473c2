//! Advice from the calls of an observed process, in sentences. Each states a fact and the number of calls that its
//! remedy changes. None states how much faster a process becomes.

use weir_record::observation::{Advice, BATCHED_OPERATIONS, GATHERED_BYTES, Observation, WaitsFor};

use super::blocks::Window;
use crate::{
    display::printable,
    format::{self, count, percent},
    language::{Language, localized},
};

/// All advice, starting with where it slept.
pub(super) fn lines(observation: &Observation, language: Language) -> Vec<String> {
    let slept = slept(observation, language);
    slept.into_iter().chain(observation.advice.iter().filter_map(|advice| line(advice, language))).collect()
}

/// Where its threads slept, and what each such call waits for.
pub(super) fn slept(observation: &Observation, language: Language) -> Option<String> {
    let window = Window(observation.trace.as_ref()?.window_ns);
    let of = |advice: &Advice| match advice {
        Advice::Slept { call, waits_for, calls, slept_ns } => {
            let (call, share, calls) = (printable(call), window.share(*slept_ns), count(*calls));
            let what = waited_for(*waits_for, language);
            Some(localized!(
                language,
                "{call} {share} ({calls} calls; {what})",
                "{call} {share} ({calls}회, {what})",
                "{call} {share}（{calls} 次；{what}）",
            ))
        }
        _ => None,
    };
    let calls: Vec<String> = observation.advice.iter().filter_map(of).collect();
    let calls = (!calls.is_empty()).then(|| calls.join(language.list()))?;
    Some(localized!(
        language,
        "Asleep, all threads together, of the time of the window: {calls}.",
        "잠든 시간(모든 스레드 합계, 관찰 구간 대비): {calls}.",
        "睡眠时间（所有线程合计，占观测窗口之比）：{calls}。",
    ))
}

fn waited_for(waits_for: WaitsFor, language: Language) -> &'static str {
    language.choose(match waits_for {
        WaitsFor::Durability => {
            ["until changes are on the disk", "변경 내용이 디스크에 기록될 때까지", "等待更改写入磁盘"]
        }
        WaitsFor::File => ["for a file", "파일 대기", "等待文件"],
        WaitsFor::FileOrPeer => [
            "for a file, or the other end of a pipe, a socket or a terminal",
            "파일 또는 파이프·소켓·터미널의 상대편 대기",
            "等待文件，或管道、套接字、终端的另一端",
        ],
        WaitsFor::Peer => ["for its peer", "상대편 대기", "等待对端"],
        WaitsFor::Readiness => ["until something is ready", "무언가 준비될 때까지", "等待有描述符就绪"],
        WaitsFor::Operations => {
            ["for operations that it has in flight", "진행 중인 자신의 작업 대기", "等待自己在途的操作"]
        }
        WaitsFor::Time => ["for time to pass", "정해진 시간까지 대기", "等待一段时间"],
        WaitsFor::Own => [
            "for its own threads or children",
            "자신의 스레드나 자식 프로세스 대기",
            "等待自己的线程或子进程",
        ],
        WaitsFor::Other => ["for something else", "그 밖의 대기", "等待其他事件"],
    })
}

fn line(advice: &Advice, language: Language) -> Option<String> {
    match advice {
        Advice::Slept { call, waits_for, calls, .. } => overlap(call, *waits_for, *calls, language),
        Advice::Coalesce { call, calls, bytes, calls_gathered } => {
            Some(coalesce(call, (*calls, *bytes), *calls_gathered, language))
        }
        Advice::OneASubmission { call, operations, calls, calls_batched } => {
            let (call, operations) = (printable(call), count(*operations));
            let (calls, batched, batch) = (count(*calls), count(*calls_batched), BATCHED_OPERATIONS);
            Some(localized!(
                language,
                "{call} hands over one operation at a time: {calls} calls for {operations} operations. Those that are \
                 known before the first is waited for can go together; {batch} at once are {batched} calls.",
                "{call}이(가) 작업을 하나씩 넘깁니다. 작업 {operations}개에 호출이 {calls}회입니다. 첫 작업의 완료를 기다리기 전에 이미 알고 있는 작업은 함께 넘길 수 \
                있습니다. {batch}개씩 넘기면 호출은 {batched}회입니다.",
                "{call} 每次只提交一个操作：{operations} 个操作用了 {calls} 次调用。在等待第一个操作之前就已知的操作可以一起提交。每次提交 {batch} 个，则为 {batched} \
                次调用。",
            ))
        }
        Advice::KeepOpen { files, opens, path, path_opens } => {
            let (files, opens, path_opens) = (count(*files), count(*opens), count(*path_opens));
            let path = printable(path);
            Some(localized!(
                language,
                "It opened the same names again and again: {files} names {opens} times, most often {path}, {path_opens} times. \
                 A program that keeps the descriptors (nginx: open_file_cache) opens each once, which is {files} opens.",
                "같은 파일을 거듭 열었습니다. 이름 {files}개를 {opens}회 열었고, 가장 자주 연 파일은 {path}({path_opens}회)입니다. 디스크립터를 닫지 않고 다시 \
                쓰면(nginx: open_file_cache) 파일마다 한 번씩, 모두 {files}회만 열면 됩니다.",
                "同样的文件被反复打开：{files} 个名称打开了 {opens} 次，最多的是 {path}，{path_opens} \
                次。保留已打开的描述符（nginx：open_file_cache），则每个只需打开一次，共 {files} 次。",
            ))
        }
        Advice::ToWorkers { submitted, to_workers } => {
            let share = percent(*to_workers as f64 / (*submitted).max(1) as f64);
            Some(localized!(
                language,
                "{share} of the operations of its rings went to worker threads of the kernel (io-wq), which make a \
                 blocking call for each. That costs more than the same call made directly, and a larger batch does not \
                 change it.",
                "링에 제출한 작업의 {share}를 커널의 워커 스레드(io-wq)가 처리했습니다. 워커 스레드는 작업마다 블로킹 호출을 하므로, 같은 호출을 직접 하는 것보다 비용이 큽니다. 더 \
                많이 묶어 제출해도 달라지지 않습니다.",
                "环上 {share} 的操作交给了内核的工作线程（io-wq），由它们逐个执行阻塞调用。这比直接进行同样的调用开销更大，加大批量也不会改变。",
            ))
        }
    }
}

/// What could be waited for at the same time; `None` if that is not up to the process.
fn overlap(call: &str, waits_for: WaitsFor, calls: u64, language: Language) -> Option<String> {
    let (call, calls) = (printable(call), count(calls));
    Some(match waits_for {
        WaitsFor::Durability => localized!(
            language,
            "It called {call} {calls} times and slept until changes were on the disk. One call after several changes (a \
             transaction), instead of one after each, makes them as many times fewer.",
            "{call}을(를) {calls}회 호출하고, 변경 내용이 디스크에 기록될 때까지 잠들었습니다. 변경할 때마다 호출하지 말고 여러 변경을 모아(트랜잭션) 한 번 호출하면 횟수가 그만큼 \
            줄어듭니다.",
            "它调用了 {calls} 次 {call}，并睡眠等待更改写入磁盘。不要每次更改后都调用，而是在多次更改之后调用一次（一个事务），次数便成倍减少。",
        ),
        WaitsFor::File => localized!(
            language,
            "A thread has one {call} in flight at a time. Several that are handed over together (io_uring, libaio) or made \
             by several threads are waited for together.",
            "스레드 하나는 {call}을(를) 한 번에 하나만 진행합니다. 여러 개를 함께 넘기거나(io_uring, libaio) 여러 스레드에서 호출하면 한꺼번에 기다립니다.",
            "一个线程同时只有一个在途的 {call}。把多个一起提交（io_uring、libaio），或由多个线程发出，便可一起等待。",
        ),
        WaitsFor::FileOrPeer => localized!(
            language,
            "Where {call} is of a file, a thread has one in flight at a time, and several that are handed over together \
             (io_uring) or made by several threads are waited for together; of a pipe, a socket or a terminal it waits \
             for the other end.",
            "{call} 대상이 파일이면 스레드 하나가 한 번에 하나만 진행합니다. 여러 개를 함께 넘기거나(io_uring) 여러 스레드에서 호출하면 한꺼번에 기다립니다. 파이프·소켓·터미널이면 \
            상대편을 기다리는 것입니다.",
            "若 {call} 针对文件，则一个线程同时只有一个在途；把多个一起提交（io_uring）或由多个线程发出，便可一起等待。若针对管道、套接字或终端，则是在等待另一端。",
        ),
        WaitsFor::Peer
        | WaitsFor::Readiness
        | WaitsFor::Operations
        | WaitsFor::Time
        | WaitsFor::Own
        | WaitsFor::Other => return None,
    })
}

fn coalesce(call: &str, (calls, bytes): (u64, u64), gathered: u64, language: Language) -> String {
    let each = format::memory(bytes as f64 / calls.max(1) as f64);
    let (call, calls, gathered) = (printable(call), count(calls), count(gathered));
    let piece = format::memory(GATHERED_BYTES as f64);
    localized!(
        language,
        "{call} moves {each} a call. Gather first, before any other I/O model: in pieces of {piece} (a larger buffer, \
         writev) the same bytes are {gathered} calls instead of {calls}. That holds for bytes that no peer waits for in \
         between: not for a request and its answer.",
        "{call}은(는) 한 번에 {each}만 옮깁니다. I/O 모델을 바꾸기 전에 먼저 모아서 처리하십시오. {piece}씩(더 큰 버퍼, writev) 옮기면 같은 바이트에 호출이 \
        {calls}회에서 {gathered}회로 줄어듭니다. 중간에 기다리는 쪽이 없는 바이트에만 해당합니다. 요청과 응답은 모을 수 없습니다.",
        "{call} 每次调用只传输 {each}。在更换 I/O 模型之前先合并：以 {piece} 为一块（更大的缓冲区、writev），同样的字节只需 {gathered} 次调用，而不是 {calls} \
        次。这只适用于中间没有一方在等待的字节，不适用于请求与其应答。",
    )
}

#[cfg(test)]
mod tests {
    use weir_record::observation::Trace;

    use super::*;

    fn seen(advice: Vec<Advice>) -> Observation {
        let trace = Trace { window_ns: 1_000_000_000, ..Trace::default() };
        Observation { trace: Some(trace), advice, ..Observation::default() }
    }

    fn slept(call: &str, waits_for: WaitsFor) -> Advice {
        Advice::Slept { call: call.to_owned(), waits_for, calls: 300, slept_ns: 620_000_000 }
    }

    #[test]
    fn who_sleeps_is_told_where_and_what_could_overlap() {
        let told = |waits_for| lines(&seen(vec![slept("a_call", waits_for)]), Language::English);
        let durable = told(WaitsFor::Durability);
        assert!(durable[0].contains("a_call 62 % (300 calls; until changes are on the disk)"), "{durable:?}");
        assert!(durable[1].contains("One call after several changes"), "{durable:?}");
        assert!(told(WaitsFor::File)[1].contains("one a_call in flight at a time"));
        assert!(told(WaitsFor::FileOrPeer)[1].contains("it waits for the other end"));
        for waits_for in [WaitsFor::Peer, WaitsFor::Readiness, WaitsFor::Time, WaitsFor::Own] {
            assert_eq!(told(waits_for).len(), 1, "that is not up to it: {waits_for:?}");
        }
        assert!(lines(&seen(Vec::new()), Language::English).is_empty());
    }

    #[test]
    fn every_advice_has_its_figures_in_every_language_and_no_factor() {
        let call = "write".to_owned();
        let all = seen(vec![
            slept("fsync", WaitsFor::Durability),
            slept("pread64", WaitsFor::File),
            slept("read", WaitsFor::FileOrPeer),
            Advice::Coalesce { call: call.clone(), calls: 20_000, bytes: 320_000, calls_gathered: 79 },
            Advice::OneASubmission { call, calls: 1_600, operations: 1_601, calls_batched: 101 },
            Advice::ToWorkers { submitted: 1_000, to_workers: 990 },
            Advice::KeepOpen { files: 4, opens: 7_007, path: "/srv/x".to_owned(), path_opens: 6_006 },
        ]);
        for language in Language::ALL {
            let told = lines(&all, language);
            assert_eq!(told.len(), 8, "{told:?}");
            let text = told.join("\n");
            for figure in
                ["62 %", "16 B", "79", "20,000", "1,600", "1,601", "101", "99 %", "7,007", "6,006", "/srv/x"]
            {
                assert!(text.contains(figure), "{figure}: {text}");
            }
            assert!(!text.contains('×'), "{text}");
        }
    }
}
