//! What was published, beside what was measured: the tables, and the sentences of the built-in studies in Korean and
//! Chinese. The laboratory records them in English; one that is not here stays English.

use weir_record::{
    spec::PublishedClaim,
    study::{Attribution, ListenSummary, PairedRatio, TimesSummary},
    verdict::Metric,
};

use crate::{format, language::Language, tables::Table, terms::Phrase, view::View, words::Word};

/// Claims and explanations.
pub(crate) const SENTENCES: &[Phrase] = &[
    [
        "Document 001: one worker 43,729 switches/s, two workers 43,722 in all, 10 clients",
        "문서 001: 클라이언트 10개에서 워커 1개 초당 전환 43,729회, 워커 2개 합계 43,722회",
        "文档 001：10 个客户端，1 个工作线程每秒切换 43,729 次，2 个合计 43,722 次",
    ],
    [
        "One request was in flight in the whole process: every order wakes one worker twice, whoever it is.",
        "프로세스 전체에서 동시 요청이 1건이었으므로, 어느 워커든 주문마다 한 워커가 두 번 깨어납니다.",
        "整个进程只有 1 个请求在途：无论是哪个工作线程，每笔订单都唤醒它两次。",
    ],
    [
        "Document 001: orders put on another worker's TaskQueue: 59,692 switches/s instead of 43,722",
        "문서 001: 주문을 다른 워커의 TaskQueue에 넣음: 초당 전환 43,722회 대신 59,692회",
        "文档 001：把订单放入另一个工作线程的 TaskQueue：每秒切换 59,692 次，而不是 43,722 次",
    ],
    [
        "The rates of requests differed; for each order it is about 3.1 against 2.0, because some of the orders cross to \
         the other worker and back, and each crossing is a wake.",
        "요청 속도가 서로 달랐습니다. 주문당으로는 약 3.1회 대 2.0회입니다. 주문 일부가 다른 워커로 갔다 돌아오고, 건널 때마다 한 번 \
         깨우기 때문입니다.",
        "两者的请求速率不同；按每笔订单计约为 3.1 次对 2.0 次，因为部分订单要到另一个工作线程再返回，每次跨越都是一次唤醒。",
    ],
    [
        "Document 001: S3 hands every packet to another worker",
        "문서 001: S3에서는 모든 패킷을 다른 워커로 넘김",
        "文档 001：S3 把每个数据包都交给另一个工作线程",
    ],
    [
        "Its source takes the session's number modulo the workers, which is not every packet; here every order is handed \
         over, and its reply back.",
        "소스를 보면 세션 번호를 워커 수로 나눈 나머지를 쓰므로 모든 패킷은 아닙니다. 여기서는 모든 주문을 넘기고 응답도 되돌려 받습니다.",
        "其源码取会话编号对工作线程数的余数，并非每个数据包；此处每笔订单都交出，回报也交回。",
    ],
    [
        "Document 001, its source: median round trip 41.1 us with the TaskQueue, 32.1 without",
        "문서 001의 소스: 왕복 시간 중앙값 TaskQueue 사용 시 41.1 us, 사용하지 않을 때 32.1 us",
        "文档 001 的源码：往返时间中位数，使用 TaskQueue 为 41.1 us，不使用为 32.1 us",
    ],
    [
        "A wake of a sleeping thread on the way out and one on the way back.",
        "나갈 때 한 번, 돌아올 때 한 번 잠든 스레드를 깨웁니다.",
        "出去时唤醒一次休眠线程，返回时再唤醒一次。",
    ],
    [
        "Document 001: TPS run: 69 k orders/s with one worker, 125 k with two (1.83 times)",
        "문서 001: TPS 실행: 워커 1개 초당 주문 6.9만 건, 2개 12.5만 건(1.83배)",
        "文档 001：TPS 运行：1 个工作线程每秒 6.9 万笔订单，2 个 12.5 万笔（1.83 倍）",
    ],
    [
        "There each worker had a CPU of its own, of 16; where gateway, exchange and clients share two, a second worker has \
         none to gain.",
        "거기서는 CPU 16개 중 워커마다 하나씩 있었습니다. 게이트웨이, 거래소, 클라이언트가 CPU 2개를 나눠 쓰면 두 번째 워커가 얻을 \
         CPU가 없습니다.",
        "那里每个工作线程都有自己的 CPU（共 16 个）；网关、交易所与客户端共用 2 个 CPU 时，第二个工作线程无从获益。",
    ],
    [
        "Document 001: handing tasks to the TaskQueue should be optimised",
        "문서 001: TaskQueue에 작업 전달 과정의 최적화가 필요할 듯하다",
        "文档 001：向 TaskQueue 传递任务的过程需要优化",
    ],
    [
        "The sentence at the top answers it: the ratio here is of the whole CPU of an order, of which handing over is a \
         part.",
        "맨 위의 문장이 답입니다. 여기의 비율은 주문 하나의 전체 CPU에 대한 것이고, 넘기는 일은 그 일부입니다.",
        "答案见顶部的句子：此处的比值针对一笔订单的全部 CPU，交接只是其中一部分。",
    ],
    [
        "Document 002: HTML page, 100 connections: uring 4800+ requests/s at 20 ms, epoll 4000+ at 23 ms",
        "문서 002: HTML 페이지, 연결 100개: uring 초당 4800건 이상 20 ms, epoll 4000건 이상 23 ms",
        "文档 002：HTML 页面，100 个连接：uring 每秒 4800+ 个请求，20 ms；epoll 4000+，23 ms",
    ],
    [
        "A connection for every request, and a log line flushed for every connection by the epoll server alone; the tool \
         stopped its clock at the head.",
        "요청마다 새 연결을 열었고, epoll 서버만 연결마다 로그 한 줄을 바로 기록했으며, 도구는 응답 헤더까지만 시간을 쟀습니다.",
        "每个请求新建一个连接，且只有 epoll 服务器为每个连接立即写出一行日志；测试工具的计时止于响应头。",
    ],
    [
        "Document 002: 148 KB image, 50 connections: uring 1300+ requests/s at 37 ms, epoll 520+ at 93 ms",
        "문서 002: 148 KB 이미지, 연결 50개: uring 초당 1300건 이상 37 ms, epoll 520건 이상 93 ms",
        "文档 002：148 KB 图片，50 个连接：uring 每秒 1300+ 个请求，37 ms；epoll 520+，93 ms",
    ],
    [
        "The epoll server sent each image with one blocking call, so that a slow reader held up all; and a clock that \
         stops at the head favours the server that sends heads first.",
        "epoll 서버는 이미지를 블로킹 호출 한 번으로 보내서 느린 수신자 하나가 모두를 막았고, 헤더에서 멈추는 시계는 헤더를 먼저 \
         보내는 서버에 유리합니다.",
        "epoll 服务器用一次阻塞调用发送整幅图片，一个慢速接收者会拖住所有连接；而计时止于响应头有利于先发响应头的服务器。",
    ],
    [
        "Document 002: the larger the content, the larger the gain of uring",
        "문서 002: 본문이 클수록 uring의 이득이 커진다",
        "文档 002：内容越大，uring 的提升越大",
    ],
    [
        "A way of waiting saves something once a request, while copying grows with the content: compare the rows from \
         64 B to 1 MiB.",
        "기다리는 방식이 아끼는 것은 요청당 한 번이지만 복사는 본문 크기에 따라 늘어납니다. 64 B부터 1 MiB까지의 행을 비교하십시오.",
        "等待方式只在每个请求上节省一次，而复制随内容增长：请比较 64 B 到 1 MiB 的各行。",
    ],
    [
        "Document 002: requests/s are connections over the mean time to the head (100 over 20 ms, 50 over 93 ms)",
        "문서 002: 초당 요청 수는 연결 수를 헤더까지의 평균 시간으로 나눈 값(100/20 ms, 50/93 ms)",
        "文档 002：每秒请求数为连接数除以到响应头的平均时间（100/20 ms，50/93 ms）",
    ],
    [
        "Here a rate is what came back whole in a window over its length, and head and last byte are timed apart.",
        "여기서는 측정 구간에 온전히 돌아온 건수를 구간 길이로 나누며, 첫 바이트와 마지막 바이트를 따로 잽니다.",
        "此处速率为窗口内完整返回的数量除以窗口长度，首字节与末字节分别计时。",
    ],
    [
        "Document 002: every reply says Connection: close, and the server keeps the socket open",
        "문서 002: 모든 응답이 Connection: close라고 하면서 서버는 소켓을 열어 둠",
        "文档 002：每个响应都声明 Connection: close，而服务器并不关闭套接字",
    ],
    [
        "A client that does as it is told opens a connection for each request: the ratio is what that costs.",
        "그 말을 따르는 클라이언트는 요청마다 새 연결을 엽니다. 비율은 그 비용입니다.",
        "照此行事的客户端会为每个请求新建连接：比值就是其代价。",
    ],
    [
        "Document 004: epoll server, 100 users: page from a file 592.8 requests/s, static value 717.7",
        "문서 004: epoll 서버, 사용자 100명: 파일에서 읽은 페이지 초당 592.8건, 고정 값 717.7건",
        "文档 004：epoll 服务器，100 个用户：从文件读取页面每秒 592.8 个请求，静态值 717.7",
    ],
    [
        "Looking up, opening and reading the page for every request costs CPU in any way of waiting; the published rates \
         hold the stalls of a full queue as well.",
        "요청마다 페이지를 찾아 열고 읽는 일은 어떤 대기 방식에서든 CPU를 씁니다. 발표된 수치에는 가득 찬 대기열로 멈춘 시간도 들어 \
         있습니다.",
        "无论哪种等待方式，每个请求都要查找、打开并读取页面，这会消耗 CPU；已发表的速率还包含队列已满造成的停顿。",
    ],
    [
        "Document 004, later version: nginx, 300 KB pages, 300 users: sendfile 346 requests/s, plain reads 310",
        "문서 004 이후 판: nginx, 300 KB 페이지, 사용자 300명: sendfile 초당 346건, 일반 읽기 310건",
        "文档 004 的后续版本：nginx，300 KB 页面，300 个用户：sendfile 每秒 346 个请求，普通读取 310",
    ],
    [
        "Sendfile spares a copy of every byte through the server's memory, which is a gain of the copy and not of the way \
         of waiting.",
        "sendfile은 모든 바이트를 서버 메모리로 복사하는 일을 아낍니다. 복사에서 얻는 이득이지 대기 방식에서 얻는 이득이 아닙니다.",
        "sendfile 省去了经服务器内存对每个字节的复制，收益来自复制，而不是等待方式。",
    ],
    [
        "Document 004, later version: nginx, 300 KB pages, 300 users: uring 322 requests/s, aio with threads 321, plain \
         reads 310, aio alone 294",
        "문서 004 이후 판: nginx, 300 KB 페이지, 사용자 300명: uring 초당 322건, 스레드를 쓴 aio 321건, 일반 읽기 310건, aio만 294건",
        "文档 004 的后续版本：nginx，300 KB 页面，300 个用户：uring 每秒 322 个请求，aio 加线程 321，普通读取 310，仅 aio 294",
    ],
    [
        "A file that is in the page cache leaves nothing to wait for; nginx gave its reads alone to uring, here sockets and \
         reads are both uring's.",
        "페이지 캐시에 있는 파일은 기다릴 것이 없습니다. nginx는 파일 읽기만 uring에 맡겼고, 여기서는 소켓과 읽기 모두 uring이 \
         맡습니다.",
        "文件已在页缓存中时没有什么可等待；nginx 只把读取交给 uring，此处套接字与读取都由 uring 处理。",
    ],
    [
        "Document 004: page from a file, 100 users: uring 615 requests/s, epoll 592.8; mean 113 and 118 ms",
        "문서 004: 파일에서 읽은 페이지, 사용자 100명: uring 초당 615건, epoll 592.8건, 평균 113 ms와 118 ms",
        "文档 004：从文件读取页面，100 个用户：uring 每秒 615 个请求，epoll 592.8；平均 113 与 118 ms",
    ],
    [
        "Both rates are samples over the time to the last straggler; before the stragglers the two show no difference.",
        "두 수치 모두 표본 수를 마지막 낙오 요청까지의 시간으로 나눈 값이며, 낙오 요청 전까지는 둘 사이에 차이가 없습니다.",
        "两个速率都是样本数除以最后一个滞留请求完成的时间；在滞留请求之前两者没有差异。",
    ],
    [
        "Document 004: static value, 100 users: uring 713.7 requests/s, epoll 717.7; median 18 ms, 99 % 3 s",
        "문서 004: 고정 값, 사용자 100명: uring 초당 713.7건, epoll 717.7건, 중앙값 18 ms, 99 % 3초",
        "文档 004：静态值，100 个用户：uring 每秒 713.7 个请求，epoll 717.7；中位数 18 ms，99 % 为 3 秒",
    ],
    [
        "Both listened with a queue of 10: most of the 100 users waited for the SYN timer, and none for a way of waiting.",
        "둘 다 대기열 10으로 수신했습니다. 사용자 100명 대부분은 SYN 재전송 타이머를 기다렸을 뿐, 기다리는 방식 때문이 아니었습니다.",
        "两者的监听队列都只有 10：100 个用户中的多数在等 SYN 重传定时器，与等待方式无关。",
    ],
    [
        "Document 004: static value, 100 users: Go net/http 1878.5 requests/s, epoll 717.7",
        "문서 004: 고정 값, 사용자 100명: Go net/http 초당 1878.5건, epoll 717.7건",
        "文档 004：静态值，100 个用户：Go net/http 每秒 1878.5 个请求，epoll 717.7",
    ],
    [
        "Go asks for the longest queue the system has, so no user waited for the SYN timer; with equal queues only the \
         cost of a request is left.",
        "Go는 시스템이 허용하는 가장 긴 대기열을 요청하므로 SYN 타이머를 기다린 사용자가 없었습니다. 대기열이 같으면 요청의 비용만 \
         남습니다.",
        "Go 使用系统允许的最长队列，因此没有用户等待 SYN 定时器；队列相同时只剩下请求本身的开销。",
    ],
    [
        "Go is not an arm here. The same server with a long queue stands above the line, with a queue of 10 below it.",
        "여기에는 Go가 없습니다. 같은 서버를 긴 대기열로 둔 것이 분자, 대기열 10으로 둔 것이 분모입니다.",
        "此处没有 Go。分子是使用长队列的同一服务器，分母是队列为 10 的服务器。",
    ],
    [
        "Document 004: the bottleneck is not the network",
        "문서 004: 병목은 네트워크가 아니다",
        "文档 004：瓶颈不在网络",
    ],
    [
        "True, and it was not the way of waiting either, but the listener's queue of 10: http-confounders switches it on.",
        "맞지만 기다리는 방식도 아니었습니다. 수신 대기열 10이 병목이었으며, http-confounders에서 켜 볼 수 있습니다.",
        "没错，但也不是等待方式，而是长度为 10 的监听队列：http-confounders 可以打开它。",
    ],
];

/// Each claim with its figure, what was measured beside it, and why.
pub(crate) fn claims(view: &View<'_>) -> Table {
    let rows = view.result.spec.published.iter().map(|claim| {
        vec![
            format!("{}{}{}", claim.id, view.language.colon(), view.term(&claim.claim).0),
            view.term(&claim.explanation).0,
            subject(view, claim),
            format::ratio(claim.ratio),
            measured(view, claim, claim.metric),
            measured(view, claim, Metric::ServerCpuPerMessage),
        ]
    });
    let text = [Word::PublishedClaim, Word::PublishedWhy, Word::Arm];
    let numbers = [Word::PublishedRatio, Word::MeasuredThroughput, Word::MeasuredCpu];
    Table::new(view, &text, &numbers, rows.collect())
}

/// Whether the claim has a counterpart of its own here.
fn has_pair(claim: &PublishedClaim) -> bool {
    claim.arm != claim.baseline
}

fn subject(view: &View<'_>, claim: &PublishedClaim) -> String {
    let cell = view.cell_label(&claim.cell_id);
    if has_pair(claim) { format!("{} / {} · {cell}", claim.arm, claim.baseline) } else { cell }
}

/// The measured ratio with its interval and verdict.
fn measured(view: &View<'_>, claim: &PublishedClaim, metric: Metric) -> String {
    let found = view.pair(&claim.cell_id, (&claim.arm, &claim.baseline), metric);
    match found.filter(|it| has_pair(claim) && it.ratio.is_some()) {
        None => format::ABSENT.to_owned(),
        Some(it) => {
            let ratio = format::ratio_and_interval(it.ratio, it.interval);
            format!("{ratio} {}", view.verdict_word(it.verdict))
        }
    }
}

/// The same in one paragraph each, for a terminal.
pub(crate) fn paragraphs(view: &View<'_>) -> Vec<String> {
    let name = |word: Word| view.word(word);
    let (colon, stop) = if view.language == Language::Chinese { ("：", "。") } else { (": ", ". ") };
    view.result
        .spec
        .published
        .iter()
        .map(|claim| {
            let figures = [
                (name(Word::PublishedRatio), format::ratio(claim.ratio)),
                (name(Word::MeasuredThroughput), measured(view, claim, claim.metric)),
                (name(Word::MeasuredCpu), measured(view, claim, Metric::ServerCpuPerMessage)),
            ];
            let known = figures.iter().filter(|(_, figure)| figure != format::ABSENT);
            let known: Vec<String> = known.map(|(name, figure)| format!("{name}{colon}{figure}")).collect();
            let figures = if known.is_empty() { String::new() } else { format!(" [{}]", known.join("; ")) };
            let (told, why) = (view.term(&claim.claim).0, view.term(&claim.explanation).0);
            format!("{}{colon}{told}{figures}{stop}{why}", claim.id)
        })
        .collect()
}

/// What each cause of a published difference makes.
pub(crate) fn attributions(view: &View<'_>) -> Table {
    let ratio = |ratio: Option<PairedRatio>| {
        format::ratio_and_interval(ratio.map(|it| it.ratio), ratio.and_then(|it| it.interval))
    };
    let published = |it: &Attribution| {
        let claim = view.result.spec.published.iter().find(|claim| claim.id == it.claim);
        format::ratio(claim.and_then(|claim| claim.ratio))
    };
    let rows = view.result.attributions.iter().map(|it| {
        vec![
            it.claim.clone(),
            format!("{} / {}", it.arm, it.baseline),
            view.cell_label(&it.cell_id),
            published(it),
            ratio(it.throughput),
            format::percent_or_absent(it.throughput_share),
            ratio(it.server_cpu),
            format::percent_or_absent(it.server_cpu_share),
        ]
    });
    let numbers =
        [Word::PublishedRatio, Word::MeasuredThroughput, Word::ShareOfIt, Word::MeasuredCpu, Word::ShareOfIt];
    Table::new(view, &[Word::PublishedClaim, Word::Arm, Word::Cell], &numbers, rows.collect())
}

/// How connections came about.
pub(crate) fn listening(view: &View<'_>) -> Table {
    let rows = view.result.listening.iter().map(|it| listening_row(view, it));
    let numbers = [
        Word::Overflows,
        Word::ListenDrops,
        Word::SynsAgain,
        Word::SegmentsAgain,
        Word::ConnectTime,
        Word::FirstByte,
        Word::LastByte,
        Word::Stalled,
    ];
    Table::new(view, &[Word::Cell, Word::Arm], &numbers, rows.collect())
}

fn listening_row(view: &View<'_>, it: &ListenSummary) -> Vec<String> {
    let count = |count: u64| format::grouped(count as f64);
    let colon = view.language.colon();
    let at_step = |(step_s, number): &(u32, u64)| format!("{step_s} s{colon}{}", count(*number));
    let stalled: Vec<String> = it.stalled.iter().map(at_step).collect();
    vec![
        view.cell_label(&it.cell_id),
        it.arm.clone(),
        count(it.network.listen_overflows),
        count(it.network.listen_drops),
        count(it.network.syn_retransmits),
        count(it.network.tcp_retransmits),
        times(&it.connect),
        times(&it.first_byte),
        times(&it.last_byte),
        if stalled.is_empty() { format::ABSENT.to_owned() } else { stalled.join(" · ") },
    ]
}

/// Median, 99th percentile and largest.
fn times(times: &TimesSummary) -> String {
    if times.count == 0 {
        return format::ABSENT.to_owned();
    }
    let known = |ns: Option<u64>| ns.map_or_else(|| format::ABSENT.to_owned(), |ns| format::nanos(ns as f64));
    format!("{} / {} / {}", known(times.p50_ns), known(times.p99_ns), format::nanos(times.ns_max as f64))
}

/// Steps of the ladder that are named.
const STEPS_SHOWN: usize = 7;

/// The ladder of kernels before 6.5, and of the published times.
const OLD_LADDER: &str = "1, 3, 7, 15";

/// The ladder of kernels from 6.5 on, as they come.
const NEW_LADDER: &str = "1, 2, 3, 4, 5, 7, 11";

/// When this kernel sends an unanswered SYN again, and why published times show other steps: those of document 004,
/// where the study is set beside it.
pub(crate) fn ladder(view: &View<'_>) -> Option<String> {
    let steps = &view.result.syn_ladder_s;
    let second = *steps.get(1)?;
    let shown: Vec<String> = steps.iter().take(STEPS_SHOWN).map(u32::to_string).collect();
    let shown = shown.join(", ");
    // Waits that double at once have their second step at three seconds.
    let is_linear = second < 3;
    let linear = view.result.fingerprint.limits.get("tcp_syn_linear_timeouts");
    let sysctl = linear.map(|value| format!("tcp_syn_linear_timeouts = {value}")).unwrap_or_default();
    let is_beside = view.result.spec.published.iter().any(|claim| claim.claim.starts_with("Document 004"));
    if !is_beside {
        return Some(ladder_alone(view.language, is_linear, &shown, &sysctl));
    }
    Some(match (view.language, is_linear) {
        (Language::English, true) => format!(
            "This kernel sends an unanswered SYN again after {shown} s ({sysctl}). Kernels before 6.5, among them the \
             5.7 of document 004, do so after {OLD_LADDER} s: these are the steps in its published times."
        ),
        (Language::English, false) => format!(
            "This kernel sends an unanswered SYN again after {shown} s, as the 5.7 of document 004 did; from 6.5 on \
             the steps are {NEW_LADDER} s."
        ),
        (Language::Korean, true) => format!(
            "이 커널은 응답 없는 SYN을 {shown}초 뒤에 다시 보냅니다({sysctl}). 문서 004의 5.7을 포함해 6.5 이전 커널은 \
             {OLD_LADDER}초 뒤에 보내며, 발표된 시간에 보이는 계단이 바로 이것입니다."
        ),
        (Language::Korean, false) => format!(
            "이 커널은 문서 004의 5.7처럼 응답 없는 SYN을 {shown}초 뒤에 다시 보냅니다. 6.5부터는 {NEW_LADDER}초입니다."
        ),
        (Language::Chinese, true) => format!(
            "本机内核在 {shown} 秒后重发未获应答的 SYN（{sysctl}）。6.5 之前的内核（包括文档 004 的 5.7）在 {OLD_LADDER} \
             秒后重发：其发表的时间中可以看到这些台阶。"
        ),
        (Language::Chinese, false) => format!(
            "本机内核与文档 004 的 5.7 一样，在 {shown} 秒后重发未获应答的 SYN；从 6.5 起为 {NEW_LADDER} 秒。"
        ),
    })
}

/// The same in a study that nothing published stands beside.
fn ladder_alone(language: Language, is_linear: bool, shown: &str, sysctl: &str) -> String {
    match (language, is_linear) {
        (Language::English, true) => format!(
            "This kernel sends an unanswered SYN again after {shown} s ({sysctl}); kernels before 6.5 do so after \
             {OLD_LADDER} s."
        ),
        (Language::English, false) => format!(
            "This kernel sends an unanswered SYN again after {shown} s; from 6.5 on the steps are {NEW_LADDER} s."
        ),
        (Language::Korean, true) => format!(
            "이 커널은 응답 없는 SYN을 {shown}초 뒤에 다시 보냅니다({sysctl}). 6.5 이전 커널은 {OLD_LADDER}초 뒤에 보냅니다."
        ),
        (Language::Korean, false) => {
            format!("이 커널은 응답 없는 SYN을 {shown}초 뒤에 다시 보냅니다. 6.5부터는 {NEW_LADDER}초입니다.")
        }
        (Language::Chinese, true) => format!(
            "本机内核在 {shown} 秒后重发未获应答的 SYN（{sysctl}）；6.5 之前的内核在 {OLD_LADDER} 秒后重发。"
        ),
        (Language::Chinese, false) => {
            format!("本机内核在 {shown} 秒后重发未获应答的 SYN；从 6.5 起为 {NEW_LADDER} 秒。")
        }
    }
}

/// Whether the table of claims is worth its place.
pub(crate) fn has_claims(view: &View<'_>) -> bool {
    !view.result.spec.published.is_empty()
}
