//! Definitions of terms: a term and a paragraph each, per language.

use weir_record::{finding::MessageKind, metric::Metric, metric_rows::METRICS, verdict::Verdict};

use crate::{
    format, metrics,
    view::View,
    ways_to_wait,
    words::{self, Word},
};

/// Terms with their explanation, in reading order.
pub(crate) fn all(view: &View<'_>) -> Vec<(String, String)> {
    let verdicts =
        [Verdict::Better, Verdict::Worse, Verdict::Equivalent, Verdict::Inconclusive, Verdict::NotComparable];
    let smallest = format::percent(view.result.spec.equivalence_margin);
    let verdicts = verdicts.into_iter().map(|verdict| {
        let name = format!("{} {}", words::verdict_sign(verdict), verdict_words(view, verdict));
        (name, view.language.choose(of_verdict(verdict)).replace("{smallest}", &smallest))
    });
    let own: &[Term] = match view.kind() {
        MessageKind::Message => &[],
        MessageKind::Request => &REQUEST_TERMS,
        MessageKind::Operation => &STORAGE_TERMS,
        MessageKind::Order => &ORDER_TERMS,
    };
    // A disk has no second clock and no engine of ours, so these terms do not apply.
    let of_servers = [Of::Word(Word::ServiceTime), Of::Word(Word::Syscalls)];
    let is_told = |of: &Of| match of {
        Of::Metric(Metric::ServerCpuWithWaiting) => {
            !view.comparisons_of(Metric::ServerCpuWithWaiting).is_empty()
        }
        of => !view.is_storage || !of_servers.contains(of),
    };
    let terms = TERMS.into_iter().filter(|(of, _)| is_told(of));
    let terms = terms.map(|(of, texts)| {
        let of_protocol = own.iter().find(|(other, _)| *other == of);
        let texts = of_protocol.map_or(texts, |(_, texts)| *texts);
        let name = match of {
            Of::Metric(metric) => metrics::name(view, metric),
            Of::Word(word) => view.word(word).to_owned(),
        };
        (name, view.language.choose(texts).to_owned())
    });
    verdicts.chain(terms).chain(ways_to_wait::terms(view)).collect()
}

/// The words of a verdict on the metrics of the study: `less CPU, faster`.
fn verdict_words(view: &View<'_>, verdict: Verdict) -> String {
    let compared = METRICS.iter().filter(|row| !view.comparisons_of(row.metric).is_empty());
    let of_primary = std::iter::once(Metric::ServerCpuPerMessage);
    let metrics = of_primary.chain(compared.map(|row| row.metric));
    let mut words: Vec<&str> = metrics.map(|metric| view.verdict_word(metric, verdict)).collect();
    let mut seen = std::collections::BTreeSet::new();
    words.retain(|word| seen.insert(*word));
    words.join(view.language.list())
}

/// A term and its definition, in English, Korean and Chinese.
type Term = (Of, [&'static str; 3]);

/// The defined term.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Metric(Metric),
    Word(Word),
}

/// Replacements of those [`TERMS`] that mention messages, for studies of storage.
const STORAGE_TERMS: [Term; 4] = [
    (
        Of::Metric(Metric::ServerCpuPerMessage),
        [
            "CPU time of all threads of the process that does the job, those of its C library and those the kernel runs \
             for it included, divided by its operations in the same window. Read from outside, from the scheduler's \
             nanosecond accounting, in the same way for every tool. Interrupts are not in it; the CPU of both sides has them.",
            "작업을 하는 프로세스의 모든 스레드가 쓴 CPU 시간을 같은 측정 구간의 I/O 수로 나눈 값입니다. C 라이브러리의 스레드와 커널이 그 작업을 위해 실행하는 스레드도 포함합니다. 도구와 \
            관계없이 같은 방법으로, 스케줄러가 나노초 단위로 집계한 값을 밖에서 읽습니다. 인터럽트 처리는 여기에 들어가지 않고 양쪽 CPU에 들어갑니다.",
            "执行任务的进程全部线程（含其 C 库的线程与内核为其运行的线程）所用的 CPU 时间，除以同一测量窗口内的 I/O 次数。对每个工具都以同样方式从外部读取调度器的纳秒级统计。中断处理不计入其中，而计入双方 \
            CPU。",
        ],
    ),
    (
        Of::Metric(Metric::MachineCpuPerMessage),
        [
            "CPU time of the job, the background load and the kernel's softirq threads together, per operation. In whole trials it is the \
             non-idle CPU time of the machine (/proc/stat), with everything else that runs.",
            "작업, 배경 부하, 커널 softirq 스레드가 쓴 CPU 시간을 더해 I/O당으로 나타낸 값입니다. 전체 시행에서는 머신의 유휴가 아닌 CPU 시간(/proc/stat)이며, 함께 \
            실행되는 다른 프로그램도 포함합니다.",
            "任务、背景负载与内核软中断线程所用 CPU 时间之和，按每次 I/O 计。完整试验中取整机的非空闲 CPU 时间（/proc/stat），包含同时运行的其他程序。",
        ],
    ),
    (
        Of::Metric(Metric::Throughput),
        [
            "Operations a second, by the kernel's account of the bytes it let reach the disk for this process. The tool's \
             own count is checked against it.",
            "초당 I/O 수입니다. 커널이 이 프로세스의 요청 중 디스크까지 전달한 바이트를 집계한 값으로 구합니다. 도구가 스스로 센 값과 대조합니다.",
            "每秒 I/O 次数，取自内核统计的该进程到达磁盘的字节数，并与工具自报的次数核对。",
        ],
    ),
    (
        Of::Word(Word::ResponseTime),
        [
            "From issuing an operation to noticing that it is complete. Only the tool can know it.",
            "I/O를 요청한 시각부터 완료를 확인한 시각까지입니다. 도구만 알 수 있는 값이므로 도구가 보고한 값을 씁니다.",
            "从发出 I/O 到得知其完成的时间。只有工具自己知道，因此取其自报值。",
        ],
    ),
];

/// Replacements of those [`TERMS`] that mention messages, for studies of orders.
const ORDER_TERMS: [Term; 5] = [
    (
        Of::Metric(Metric::ServerCpuPerMessage),
        [
            "CPU time of all threads of the gateway, kernel threads that work for it included, divided by the orders \
             whose reply came in the same window. The exchange is not in it. From the scheduler's nanosecond accounting, \
             not sampled.",
            "게이트웨이의 모든 스레드(그 일을 하는 커널 스레드 포함)가 쓴 CPU 시간을, 같은 측정 구간에 응답이 돌아온 주문 수로 나눈 값입니다. 거래소의 CPU는 포함하지 않습니다. 표본 \
            추출이 아니라 스케줄러가 나노초 단위로 집계한 값입니다.",
            "网关全部线程（含为其工作的内核线程）所用的 CPU 时间，除以同一测量窗口内收到回报的订单数；不含交易所。取自调度器的纳秒级统计，而非抽样。",
        ],
    ),
    (
        Of::Metric(Metric::MachineCpuPerMessage),
        [
            "CPU time of gateway, generator and the kernel's softirq threads together, per order. In whole trials it is the \
             non-idle CPU time of the machine (/proc/stat), with everything else that runs.",
            "게이트웨이, 부하 생성기, 커널 softirq 스레드가 쓴 CPU 시간을 더해 주문당으로 나타낸 값입니다. 전체 시행에서는 머신의 유휴가 아닌 CPU 시간(/proc/stat)이며, 함께 \
            실행되는 다른 프로그램도 포함합니다.",
            "网关、负载生成器与内核软中断线程所用 CPU 时间之和，按每笔订单计。完整试验中取整机的非空闲 CPU 时间（/proc/stat），\
             包含同时运行的其他程序。",
        ],
    ),
    (
        Of::Metric(Metric::Throughput),
        [
            "Orders per second whose reply came back in its turn and with the right number. The gateway handles two \
             arrivals and two departures for each.",
            "응답이 올바른 순서와 번호로 돌아온 주문의 초당 건수입니다. 게이트웨이는 주문마다 두 번 받고 두 번 보냅니다.",
            "每秒按序且编号正确地收到回报的订单数。每笔订单网关要接收两次、发送两次。",
        ],
    ),
    (
        Of::Word(Word::ResponseTime),
        [
            "From the moment an order was due to be sent to its reply, through gateway and exchange and back. A stalled \
             gateway cannot hide its queue.",
            "주문을 보내기로 예정된 시각부터 게이트웨이와 거래소를 거쳐 응답이 돌아올 때까지의 시간입니다. 게이트웨이가 멈추면 대기열에서 기다린 시간도 이 값에 나타납니다.",
            "从订单的计划发送时刻起，经网关与交易所往返，到收到回报的时间。网关停顿时，排队时间也会计入。",
        ],
    ),
    (
        Of::Word(Word::ServiceTime),
        [
            "From the moment an order was really sent to its reply.",
            "주문을 실제로 보낸 시각부터 응답이 돌아올 때까지의 시간입니다.",
            "从订单实际发出的时刻到收到回报的时间。",
        ],
    ),
];

/// Replacements of those [`TERMS`] that mention messages, for studies of HTTP.
const REQUEST_TERMS: [Term; 5] = [
    (
        Of::Metric(Metric::ServerCpuPerMessage),
        [
            "CPU time of all threads of the server's processes, kernel threads that work for it included, divided by \
             the requests answered in the same window. From the scheduler's nanosecond accounting, not sampled. The \
             primary metric, because the verifying generator saturates first.",
            "서버 프로세스의 모든 스레드(그 일을 하는 커널 스레드 포함)가 쓴 CPU 시간을 같은 측정 구간에 응답한 요청 수로 나눈 값입니다. 표본 추출이 아니라 스케줄러가 나노초 단위로 집계한 \
            값입니다. 응답을 검사하는 부하 생성기가 먼저 포화되므로 처리량 대신 이 값을 주 지표로 씁니다.",
            "服务器进程全部线程（含为其工作的内核线程）所用的 CPU 时间，除以同一测量窗口内应答的请求数。取自调度器的纳秒级统计，而非抽样。校验响应的负载生成器会先饱和，因此以此为主要指标。",
        ],
    ),
    (
        Of::Metric(Metric::MachineCpuPerMessage),
        [
            "CPU time of server, generator and the kernel's softirq threads together, per request. In whole trials it is the \
             non-idle CPU time of the machine (/proc/stat), with everything else that runs. On loopback \
             the kernel does one side's work on the other side's time; the sum has both.",
            "서버, 부하 생성기, 커널 softirq 스레드가 쓴 CPU 시간을 더해 요청당으로 나타낸 값입니다. 전체 시행에서는 머신의 유휴가 아닌 CPU 시간(/proc/stat)이며, 함께 \
            실행되는 다른 프로그램도 포함합니다. 루프백에서는 커널이 한쪽의 일을 다른 쪽의 시간으로 처리하지만, 합계에는 양쪽이 모두 들어 있습니다.",
            "服务器、负载生成器与内核软中断线程所用 CPU 时间之和，按每个请求计。完整试验中取整机的非空闲 CPU \
            时间（/proc/stat），包含同时运行的其他程序。在环回接口上，内核会用一方的时间完成另一方的工作，而总和包含双方。",
        ],
    ),
    (
        Of::Metric(Metric::Throughput),
        [
            "Requests per second whose response came back complete, with the status and the length it should have. The \
             content is compared byte for byte in the share that the check names. “≥” marks a lower bound: the \
             generator was the limit, so no throughput verdict is given.",
            "상태 코드와 길이가 올바른 응답이 끝까지 돌아온 요청의 초당 건수입니다. 본문은 유효성 검사에 적힌 비율만큼 바이트 단위로 비교합니다. “≥”는 하한을 뜻합니다. 부하 생성기가 \
            한계였으므로 처리량을 판정하지 않습니다.",
            "每秒得到完整响应、且状态码与长度正确的请求数。内容按有效性检查所示的比例逐字节比较。“≥”表示下限：瓶颈在负载生成器，因此不判定吞吐量。",
        ],
    ),
    (
        Of::Word(Word::ResponseTime),
        [
            "From the moment a request was due to be sent to the last byte of its response, connecting included where \
             each request has its own connection. A stalled server cannot hide its queue.",
            "요청을 보내기로 예정된 시각부터 응답의 마지막 바이트가 돌아올 때까지의 시간입니다. 요청마다 새 연결을 여는 조건에서는 연결 시간을 포함합니다. 서버가 멈추면 대기열에서 기다린 시간도 이 \
            값에 나타납니다.",
            "从请求的计划发送时刻到收到响应末字节的时间；在每个请求新建连接的条件下，包含建立连接的时间。服务器停顿时，排队时间也会计入。",
        ],
    ),
    (
        Of::Word(Word::ServiceTime),
        [
            "From the moment a request was really begun to the last byte of its response.",
            "요청을 실제로 시작한 시각부터 응답의 마지막 바이트가 돌아올 때까지의 시간입니다.",
            "从请求实际开始的时刻到收到响应末字节的时间。",
        ],
    ),
];

/// In English, Korean and Chinese; `{smallest}` is the equivalence margin that matters.
fn of_verdict(verdict: Verdict) -> [&'static str; 3] {
    match verdict {
        Verdict::Better => [
            "Better than the baseline: a two-sided t test over the units, at 1 % and corrected for all claims of the \
             study, finds a difference. For CPU and time, better means less.",
            "기준보다 좋습니다. 단위별 값에 대한 양측 t 검정(유의수준 1 %, 실험의 모든 가설에 대해 보정)에서 차이가 유의합니다. CPU와 시간은 작을수록 좋습니다.",
            "优于基线：对各单元的双侧 t 检验（显著性水平 1 %，并对本实验的所有结论作了校正）表明差异显著。CPU 和时间越小越好。",
        ],
        Verdict::Worse => [
            "Worse than the baseline, by the same test.",
            "같은 검정에서 기준보다 나쁩니다.",
            "同一检验表明劣于基线。",
        ],
        Verdict::Equivalent => [
            "The whole interval lies within ±{smallest}: whatever the difference is, it is too small to matter.",
            "신뢰구간 전체가 ±{smallest} 안에 있습니다. 차이가 있더라도 무시할 만큼 작습니다.",
            "整个置信区间都在 ±{smallest} 之内：即使有差异，也小到无关紧要。",
        ],
        Verdict::Inconclusive => [
            "The data do not decide. This is not the same as no difference.",
            "데이터로 결론을 낼 수 없습니다. 차이가 없다는 뜻은 아닙니다.",
            "数据不足以下结论。这并不等于没有差异。",
        ],
        Verdict::NotComparable => [
            "A validity check failed, or a side was not measured under equal conditions, so no verdict is given.",
            "유효성 검사를 통과하지 못했거나, 한쪽이 같은 조건에서 측정되지 않아 판정하지 않습니다.",
            "有效性检查未通过，或双方的测量条件不同，因此不作判定。",
        ],
        Verdict::NoClaim => [
            "Looked at without a claim, so no test was made for it and none is corrected for it.",
            "참고용으로 살펴본 값입니다. 검정하지 않으며 보정에도 넣지 않습니다.",
            "仅供参考，不作结论：未作检验，也不参与校正。",
        ],
    }
}

/// Metrics and terms of the judgement, in reading order: English, Korean, Chinese.
const TERMS: [Term; 13] = [
    (
        Of::Metric(Metric::ServerCpuPerMessage),
        [
            "CPU time of all threads of the server's processes, kernel threads that work for it included, divided by \
             the messages of the same window. From the scheduler's nanosecond accounting, not sampled. The primary comparison \
             metric, because the verifying generator saturates first.",
            "서버 프로세스의 모든 스레드(그 일을 하는 커널 스레드 포함)가 쓴 CPU 시간을 같은 측정 구간의 메시지 수로 나눈 값입니다. 표본 추출이 아니라 스케줄러가 나노초 단위로 집계한 \
            값입니다. 응답을 검사하는 부하 생성기가 먼저 포화되므로 처리량 대신 이 값을 주 지표로 씁니다.",
            "服务器进程全部线程（含为其工作的内核线程）所用的 CPU 时间，除以同一测量窗口内的消息数。取自调度器的纳秒级统计，而非抽样。校验响应的负载生成器会先饱和，因此以此为主要指标。",
        ],
    ),
    (
        Of::Metric(Metric::MachineCpuPerMessage),
        [
            "CPU time of server, generator and the kernel's softirq threads together, per message. In whole trials it is the \
             non-idle CPU time of the machine (/proc/stat), with everything else that runs. On loopback \
             the kernel does one side's work on the other side's time; the sum has both.",
            "서버, 부하 생성기, 커널 softirq 스레드가 쓴 CPU 시간을 더해 메시지당으로 나타낸 값입니다. 전체 시행에서는 머신의 유휴가 아닌 CPU 시간(/proc/stat)이며, 함께 \
            실행되는 다른 프로그램도 포함합니다. 루프백에서는 커널이 한쪽의 일을 다른 쪽의 시간으로 처리하지만, 합계에는 양쪽이 모두 들어 있습니다.",
            "服务器、负载生成器与内核软中断线程所用 CPU 时间之和，按每条消息计。完整试验中取整机的非空闲 CPU \
            时间（/proc/stat），包含同时运行的其他程序。在环回接口上，内核会用一方的时间完成另一方的工作，而总和包含双方。",
        ],
    ),
    (
        Of::Metric(Metric::ServerCpuWithWaiting),
        [
            "The same with what the server uses while others have their turn, for as long a wait as its slices: timers, a \
             garbage collector, polling. A server that is stopped between its slices counts with what it used before it \
             was. No verdict on server CPU stands that this figure contradicts.",
            "서버 CPU에, 다른 대상의 차례 동안 서버가 쓰는 CPU를 자기 슬라이스와 같은 길이만큼 더한 값입니다. 타이머, 가비지 컬렉터, 폴링의 비용이 여기에 나타납니다. 슬라이스 사이에 \
            정지시킨 서버는 정지하기 전에 쓴 만큼으로 계산합니다. 서버 CPU 판정이 이 수치와 어긋나면 그 판정은 성립하지 않습니다.",
            "在服务器 CPU 之上，加上轮到其他方案时该服务器所用的 CPU，等待时长与其时间片相同。定时器、垃圾回收、轮询的开销由此体现。在时间片之间被暂停的服务器，按暂停之前的用量计。与此数值相矛盾的服务器 CPU \
            判定不成立。",
        ],
    ),
    (
        Of::Metric(Metric::Throughput),
        [
            "Messages per second that came back complete and byte for byte correct. “≥” marks a lower bound: the \
             generator was the limit, so no throughput verdict is given.",
            "모든 바이트가 올바르게 끝까지 돌아온 메시지의 초당 건수입니다. “≥”는 하한을 뜻합니다. 부하 생성기가 한계였으므로 처리량을 판정하지 않습니다.",
            "每秒完整返回且逐字节正确的消息数。“≥”表示下限：瓶颈在负载生成器，因此不判定吞吐量。",
        ],
    ),
    (
        Of::Word(Word::ResponseTime),
        [
            "From the moment a message was due to be sent to its last byte back. A stalled server cannot hide its queue.",
            "메시지를 보내기로 예정된 시각부터 마지막 바이트가 돌아올 때까지의 시간입니다. 서버가 멈추면 대기열에서 기다린 시간도 이 값에 나타납니다.",
            "从消息的计划发送时刻到收到末字节的时间。服务器停顿时，排队时间也会计入。",
        ],
    ),
    (
        Of::Word(Word::ServiceTime),
        [
            "From the moment a message was really sent to its last byte back.",
            "메시지를 실제로 보낸 시각부터 마지막 바이트가 돌아올 때까지의 시간입니다.",
            "从消息实际发送的时刻到收到末字节的时间。",
        ],
    ),
    (
        Of::Word(Word::Syscalls),
        [
            "Calls for I/O over what was completed, as an engine of Weir's counts its own: io_uring_enter, waits, ppoll, \
             accepting, receiving, sending and epoll_ctl. Setting sockets up and closing them, files and wake-ups are not in \
             it. A dash stands for a foreign server, and for results from before all of these were counted. In the tables of \
             what the kernel did it is every call, by the kernel's own count.",
            "I/O 시스템 콜 수를 처리한 건수로 나눈 값으로, Weir 엔진이 스스로 셉니다. io_uring_enter, 대기, ppoll, accept, 수신, 송신, epoll_ctl을 \
            셉니다. 소켓 설정과 닫기, 파일, 웨이크업은 세지 않습니다. 외부 서버, 그리고 모든 종류를 세기 전의 결과는 ‘–’로 표시합니다. ‘커널이 한 일’ 표에서는 커널이 직접 센 모든 시스템 \
            콜입니다.",
            "I/O 系统调用次数除以完成数，由 Weir 引擎自行统计：io_uring_enter、等待、ppoll、accept、接收、发送与 \
            epoll_ctl；不含套接字的设置与关闭、文件操作与唤醒。外部服务器，以及尚未统计全部种类时的结果，以“–”表示。“内核做了什么”的表中则是内核统计的全部系统调用。",
        ],
    ),
    (
        Of::Word(Word::RatioInterval),
        [
            "Arm divided by baseline within each unit, then the mean of the units' logarithms; 0.80 means a fifth less. A \
             unit is a round of fresh processes in which the arms take turns (the mean of the middle half of its permutations), or a \
             pair of whole trials. The interval is that of the t test that decides, at 99 %, and allows for an effect that moves. The absolute figures beside it \
             are geometric means of units: an arm's is the baseline's times the ratio where the baseline's is of the same ones.",
            "단위마다 대상을 기준으로 나누고 그 로그를 평균한 값입니다. 0.80은 5분의 1이 적다는 뜻입니다. 단위는 새 프로세스로 대상들이 번갈아 부하를 받는 라운드 하나(순열 가운데 절반의 \
            평균)이거나 전체 시행 한 쌍입니다. 신뢰구간은 판정에 쓰는 t 검정의 99 % 신뢰구간이며, 측정하는 동안 변한 효과를 반영합니다. 함께 표시하는 절대 수치는 단위들의 기하 평균입니다. \
            기준의 값이 같은 단위에서 나왔으면, 대상의 값은 기준의 값에 비율을 곱한 것과 같습니다.",
            "在每个单元内用方案除以基线，再对各单元的对数求平均；0.80 表示少五分之一。单元是一轮全新进程、各方案轮流承受负载（取各排列中间一半的均值），或一对完整试验。置信区间取自用于判定的 t 检验，置信水平为 \
            99 %，并计入测量期间效应的变化。旁边的绝对数值是各单元的几何平均；若基线的数值取自同样的单元，方案的数值便等于基线乘以比值。",
        ],
    ),
    (
        Of::Word(Word::Floor),
        [
            "The baseline runs twice in every block or round. The outer end of its interval against itself: the \
             difference two identical servers may show. A check, and no second test.",
            "기준은 블록이나 라운드마다 두 번 실행합니다. 이 값은 기준을 자기 자신과 비교한 신뢰구간의 바깥쪽 끝으로, 똑같은 두 서버 사이에서도 나올 수 있는 차이입니다. 확인용이며 두 번째 \
            검정이 아닙니다.",
            "基线在每个区组或每轮中运行两次。这是基线与自身比较的置信区间的外端，即两个相同的服务器之间也可能出现的差异；仅作核对，不是第二次检验。",
        ],
    ),
    (
        Of::Word(Word::Detectable),
        [
            "The smallest true difference this run would have found in 8 of 10 repetitions.",
            "같은 실험을 10번 반복할 때 8번 찾아낼 수 있는 가장 작은 실제 차이입니다.",
            "重复本实验 10 次约有 8 次能够检出的最小真实差异。",
        ],
    ),
    (
        Of::Word(Word::PHolm),
        [
            "p of the two-sided t test, corrected by Holm over all claims of the study that nothing else bars. \
             Exploratory cells claim nothing.",
            "양측 t 검정의 p값입니다. 다른 이유로 제외되지 않은 실험의 모든 가설에 대해 Holm 방법으로 보정했습니다. 탐색적 조건에서는 결론을 내지 않습니다.",
            "双侧 t 检验的 p 值，对本实验所有未因其他原因排除的结论按 Holm 法校正。探索性条件不作结论。",
        ],
    ),
    (
        Of::Word(Word::Block),
        [
            "Every arm once, in random order, the baseline twice, each in a fresh process. In a round the \
             servers are up together and take turns every few tens of milliseconds; otherwise whole trials \
             follow each other, and only those in one state of the machine are compared.",
            "모든 대상을 무작위 순서로 한 번씩, 기준은 두 번, 매번 새 프로세스로 실행한 묶음입니다. 라운드에서는 서버들이 동시에 떠 있고 수십 밀리초마다 번갈아 부하를 받습니다. 그렇지 않으면 \
            전체 시행을 차례로 실행하고, 머신 상태가 같은 시행끼리만 비교합니다.",
            "以随机顺序让每个方案各运行一次、基线运行两次，每次都用全新进程。在一轮中，各服务器同时在线，每隔几十毫秒轮流承受负载；否则依次运行完整试验，只比较机器状态相同的试验。",
        ],
    ),
    (
        Of::Word(Word::CrossCore),
        [
            "Time for a cache line to go from one CPU to the other and back, read before and after every trial. It \
             shows where the host has placed the CPUs.",
            "캐시 라인 하나가 한 CPU에서 다른 CPU로 갔다가 돌아오는 시간으로, 시행 전후에 잽니다. 호스트가 CPU를 어떻게 배치했는지 보여 줍니다.",
            "一条缓存行从一个 CPU 到另一个 CPU 往返一次的时间，每次试验前后各测一次，可反映宿主机如何放置这些 CPU。",
        ],
    ),
];
