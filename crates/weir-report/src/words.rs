//! Every fixed text in three languages. One table: a text without a translation does not compile.
//! Sentences with numbers in them are in `sentence.rs`.

use weir_record::{
    metric::{Family, Metric},
    spec::CellRole,
    verdict::Verdict,
};

use crate::language::Language;

macro_rules! words {
    ($($name:ident: $english:literal | $korean:literal | $chinese:literal;)*) => {
        /// A fixed text.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Word { $($name),* }

        impl Word {
            /// The text in one language.
            pub(crate) fn text(self, language: Language) -> &'static str {
                language.choose(match self {
                    $(Word::$name => [$english, $korean, $chinese],)*
                })
            }

            #[cfg(test)]
            const ALL: &[Word] = &[$(Word::$name),*];
        }
    };
}

words! {
    LessCpu: "less CPU" | "CPU 덜 씀" | "更省 CPU";
    MoreCpu: "more CPU" | "CPU 더 씀" | "更耗 CPU";
    HigherRate: "more throughput" | "처리량 높음" | "吞吐量更高";
    LowerRate: "less throughput" | "처리량 낮음" | "吞吐量更低";
    Fewer: "fewer" | "더 적음" | "更少";
    More: "more" | "더 많음" | "更多";
    LessMemory: "less memory" | "메모리 덜 씀" | "更省内存";
    MoreMemory: "more memory" | "메모리 더 씀" | "更耗内存";
    Faster: "faster" | "더 빠름" | "更快";
    Slower: "slower" | "더 느림" | "更慢";
    Equivalent: "equivalent" | "동등" | "等效";
    Inconclusive: "inconclusive" | "보류" | "无法判定";
    NotComparable: "not comparable" | "비교 불가" | "不可比较";
    OnMap: "map" | "히트맵" | "热力图";
    NoClaim: "no claim" | "참고용" | "仅供参考";


    LatencyHelpOrder: "Solid: round trip of an order, counted from the moment it was due. Dashed: service time, counted \
        from the moment it was sent. The gap between them is waiting that a closed loop would hide."
        | "실선은 왕복 시간으로, 주문을 보내기로 예정된 시각부터 잽니다. 점선은 서비스 시간으로, 실제로 보낸 시각부터 잽니다. 두 선의 차이는 폐쇄형 부하에서는 드러나지 않는 대기 시간입니다."
        | "实线为订单的往返时间，从计划发送时刻算起；虚线为服务时间，从实际发送时刻算起。两者之差是闭环负载无法显示的等待时间。";
    WhyTitleOrder: "What differs per order" | "주문당 차이" | "每笔订单的差异";
    MeasuredRatio: "measured ratio" | "측정한 비율" | "实测比值";
    PublishedRunsTitle: "Published runs beside measured" | "발표된 실행과 측정 결과의 비교" | "公布的运行与实测对照";
    PublishedRunsHelp: "Runs that others published, each beside the arm that does the same here. Measured figures are \
        geometric means of the blocks that the ratios are of; counts are arithmetic ones."
        | "다른 곳에서 발표한 실행을 같은 일을 하는 비교 대상의 측정 결과와 비교합니다. 측정 수치는 비율 계산에 쓴 블록들의 기하 평균이고, 횟수는 산술 평균입니다."
        | "他人公布的各次运行与本次做同样工作的方案对照。实测数值为计算比值所用各区组的几何平均，次数取算术平均。";
    PublishedRun: "run" | "실행" | "运行";
    AddedCostTitle: "What arms add to the baseline's cost" | "기준 대비 추가 비용" | "相对基线增加的开销";
    AddedCostHelp: "Each arm less the baseline of the same block, which does the same work without what the arm adds: the \
        mean over the blocks, with its t interval. The share is the first of these costs over that of the reference \
        (Fieller's interval, as wide as for all arms together); a dash where the reference's cost cannot be distinguished from zero."
        | "각 비교 대상에서, 추가 기능 없이 같은 일을 하는 같은 블록의 기준을 뺀 값입니다. 블록의 평균과 t 신뢰구간을 표시합니다. 비율은 첫 번째 비용을 참조 대상의 비용으로 나눈 값입니다(모든 \
        대상을 함께 보정한 Fieller 신뢰구간). 참조 대상의 비용이 0과 구별되지 않으면 비율을 표시하지 않습니다."
        | "各方案减去同一区组中做同样工作但没有附加部分的基线，给出各区组的均值与 t 置信区间。份额为第一项开销除以参照方案的开销（Fieller 置信区间，对所有方案联合校正）；若参照方案的开销与零无法区分，则不给出份额。";
    Journal: "journal" | "저널" | "日志";
    CheckReplies: "every reply came in its turn" | "모든 응답이 순서대로 도착" | "所有回报都按序到达";
    CheckChain: "the gateway received twice what the exchange did" | "게이트웨이 수신이 거래소의 두 배"
        | "网关接收量恰为交易所的两倍";
    CheckRecovered: "no work lay beside a sleeping worker" | "워커가 잠든 사이에 남은 작업 없음" | "工作线程休眠时没有遗留任务";

    LatencyHelpRequest: "Solid: response time, counted from the moment a request was due. Dashed: service time, counted \
        from the moment it was sent. The gap between them is waiting that a closed loop would hide."
        | "실선은 응답 시간으로, 요청을 보내기로 예정된 시각부터 잽니다. 점선은 서비스 시간으로, 실제로 보낸 시각부터 잽니다. 두 선의 차이는 폐쇄형 부하에서는 드러나지 않는 대기 시간입니다."
        | "实线为响应时间，从请求的计划发送时刻算起；虚线为服务时间，从实际发送时刻算起。两者之差是闭环负载无法显示的等待时间。";
    WhyTitleRequest: "What differs per request" | "요청당 차이" | "每个请求的差异";

    FiguresTitleOperation: "I/O rate and CPU" | "I/O 처리량과 CPU" | "I/O 速率与 CPU";
    LatencyTitleOperation: "Latency" | "지연 시간" | "延迟";
    LatencyHelpOperation: "From issuing an operation to noticing that it is complete, as the tool says. A tool that gives \
        quantiles alone has no curve."
        | "I/O를 요청한 시각부터 완료를 확인한 시각까지이며, 도구가 스스로 잰 값입니다. 분위수만 출력하는 도구는 곡선이 없습니다."
        | "从发出 I/O 到得知其完成的时间，由工具自行测得。只输出分位数的工具没有曲线。";
    NoLatencyOperation: "No trial gave a latency curve." | "지연 시간 곡선이 있는 시행이 없습니다." | "没有试验提供延迟曲线。";
    LatencyOperation: "latency" | "지연 시간" | "延迟";
    WhyTitleOperation: "What differs per I/O" | "I/O당 차이" | "每次 I/O 的差异";
    CheckCounted: "the kernel counted the same operations" | "커널이 센 I/O 수와 일치" | "与内核统计的 I/O 数一致";
    CheckRepeatable: "computed trials repeat" | "계산으로 얻은 시행이 재현됨" | "由计算得出的试验可以复现";
    CheckNotAsked: "not asked of a storage job" | "스토리지 작업에는 해당 없음" | "不适用于存储任务";

    FrontierTitle: "Misses against CPU" | "miss와 CPU" | "miss 与 CPU";
    FrontierHelp: "Each point is a way to wait, the mean over the blocks; settings of a family are joined. Lower left \
        is better. The step line is the frontier (marked in the table): no point but an oracle's (hollow) has less of one and no more of \
        the other. Oracles know what no thread can know. A miss is an operation that was complete when its sleep ended; a \
        harmful one was noticed later than an interrupt would have told. CPU is the time of the thread that waits over \
        all time. Differences are arm less baseline. An arm is behind the baseline when the baseline has less of one, \
        by its verdict, and no more of the other, by its margin; each part is tested by itself, so the joint statement needs no \
        further correction."
        | "점 하나는 대기 방식 하나의 블록 평균이고, 같은 계열의 설정은 선으로 이었습니다. 왼쪽 아래일수록 좋습니다. 계단선은 프런티어(표의 ◆)입니다. 오라클(빈 표식)을 제외하면, 프런티어의 \
        점보다 한쪽이 적으면서 다른 쪽이 더 많지 않은 점은 없습니다. 오라클은 스레드가 알 수 없는 정보를 미리 아는 이상적인 경우입니다. miss는 sleep이 끝났을 때 이미 완료되어 있던 \
        I/O이고, 해로운 miss는 인터럽트보다 늦게 확인한 것입니다. CPU는 기다리는 스레드의 CPU 시간을 경과 시간으로 나눈 값입니다. 차이는 ‘비교 대상 − 기준’입니다. 한쪽에서는 판정으로 \
        기준이 더 적고 다른 쪽에서는 허용 범위 안에서 기준이 더 많지 않으면, 비교 대상이 뒤진 것입니다. 두 부분을 따로 검정하므로 결합한 명제를 다시 보정할 필요는 없습니다."
        | "每个点是一种等待方式在各区组上的均值，同一族的设置以线相连，越靠左下越好。阶梯线为前沿（表中的 ◆）：除 oracle（空心，即预知结果的理想情形）外，没有点在一项上更少而另一项不更多。oracle \
        知道线程无法得知的信息。miss 指睡眠结束时已经完成的 I/O；有害 miss 指比中断更晚得知完成的 I/O。CPU 为等待线程的 CPU 时间除以经过时间。差值为“方案 − \
        基线”。若基线在一项上经判定更少，而在另一项上不超出允许范围，则该方案落后。两部分分别检验，合并结论无需再校正。";
    MissAxis: "misses" | "miss 비율" | "miss 率";
    CpuAxis: "CPU of the thread" | "스레드 CPU" | "线程 CPU";
    Standing: "against the baseline" | "기준 대비" | "与基线相比";
    StandingBehind: "behind" | "뒤짐" | "落后";
    StandingAhead: "ahead" | "앞섬" | "领先";
    StandingLevel: "level" | "대등" | "持平";
    StandingTradeOff: "trade-off" | "장단점 있음" | "各有得失";
    StandingOpen: "not decided" | "보류" | "无法判定";
    AheadOfAll: "ahead on both" | "두 항목 모두 앞섬" | "两项都领先";
    BehindOne: "not ahead of all" | "모두 앞서지는 않음" | "并非全部领先";
    SimulatedTitle: "What is simulated, and what was fixed beforehand" | "시뮬레이션한 것과 미리 정한 것"
        | "模拟的内容，以及事先确定的内容";
    SimulatedHelp: "The simulator is described in docs/guide/simulated-disk.md."
        | "시뮬레이터는 docs/guide/simulated-disk.md에 설명되어 있습니다."
        | "模拟器的说明见 docs/guide/simulated-disk.md。";

    PublishedTitle: "Published beside measured" | "발표 수치와 측정 수치 비교" | "公布的数值与实测对照";
    PublishedHelp: "What others published about such servers, and what came out here. Ratios are arm over baseline. \
        Explanations are those of the author of the study; a cause is measured only where arms switch it on."
        | "이런 서버에 대해 다른 곳에서 발표한 수치와 이번 측정 결과입니다. 비율은 비교 대상을 기준으로 나눈 값입니다. 설명은 실험 파일을 작성한 사람이 적었습니다. 원인은 그 원인만 켠 비교 \
        대상이 있을 때만 측정합니다."
        | "他人就此类服务器公布的数值，以及本次的实测结果。比值为方案除以基线。说明由实验文件的作者提供；只有存在单独打开某一原因的方案时，才测量该原因。";
    PublishedClaim: "published" | "발표 내용" | "公布的内容";
    PublishedWhy: "explanation" | "설명" | "说明";
    PublishedRatio: "published ratio" | "발표 비율" | "公布的比值";
    PublishedHelpOperation: "What others published about waiting for such a disk, and what came out here: the ratio of arm \
        over baseline, or the figures themselves."
        | "이런 디스크를 기다리는 방식에 대해 다른 곳에서 발표한 내용과 이번 측정 결과입니다. 비교 대상을 기준으로 나눈 비율이나 수치를 그대로 적습니다."
        | "他人就等待此类磁盘的方式公布的内容，以及本次结果：方案与基线的比值，或数值本身。";
    MeasuredHere: "measured here" | "측정값" | "本次实测";
    MeasuredCpuOperation: "CPU per I/O measured" | "측정한 I/O당 CPU 비율" | "实测每次 I/O 的 CPU 比值";
    MeasuredThroughput: "throughput measured" | "측정한 처리량 비율" | "实测吞吐量比值";
    MeasuredCpu: "server CPU measured" | "측정한 서버 CPU 비율" | "实测服务器 CPU 比值";
    AttributionsTitle: "How much each cause explains" | "원인별 기여도" | "各原因的贡献";
    AttributionsHelp: "The published pair again, with one cause switched on. The share is what the cause adds to the clean \
        ratio, of the published one, on the scale of logarithms: 100 % is the whole published difference. From server CPU \
        it says what one CPU could serve, also where the generator was the limit. Shares need not add up to 100 %."
        | "발표된 비교를 원인 하나만 켜고 다시 측정했습니다. 기여도는 원인을 껐을 때의 비율에 그 원인이 더하는 몫을 발표 비율로 나눈 값입니다(로그 척도). 100 %는 발표된 차이 전체를 뜻합니다. \
        서버 CPU로 구한 기여도는 CPU 하나가 처리할 수 있는 양을 나타내므로, 부하 생성기가 한계일 때도 유효합니다. 기여도의 합이 100 %가 되지 않을 수 있습니다."
        | "只打开一个原因，重新测量公布的那组对比。份额表示该原因使比值（相对关闭时）增加的部分占公布比值的比例，按对数尺度计算；100 % 即公布的全部差异。由服务器 CPU 得出的份额表示一个 CPU \
        能处理的量，即使瓶颈在负载生成器也成立。各份额之和不一定为 100 %。";
    ShareOfIt: "share of the published" | "발표된 차이에 대한 기여도" | "占公布差异的份额";
    ListeningTitle: "How connections came about" | "연결 수립 과정" | "连接的建立过程";
    ListeningHelp: "Counted by the kernel over all trials of an arm, those excluded included. Times are median / 99 % / \
        largest. Connections that took as long as a step of the SYN timer waited for it, not for the server."
        | "커널이 각 대상의 모든 시행(제외된 시행 포함)에서 센 값입니다. 시간은 중앙값 / 99 % / 최댓값입니다. SYN 타이머의 한 단계만큼 걸린 연결은 서버가 아니라 그 타이머를 기다린 \
        것입니다."
        | "由内核在每个方案的全部试验（含被剔除的试验）中计数。时间为中位数 / 99 % / 最大值。耗时恰为 SYN 定时器一个台阶的连接，等待的是该定时器，而不是服务器。";
    Overflows: "queue full" | "대기열 넘침" | "队列已满";
    ListenDrops: "dropped" | "버려진 연결" | "被丢弃";
    SynsAgain: "SYNs sent again" | "SYN 재전송" | "SYN 重传";
    SegmentsAgain: "segments sent again" | "세그먼트 재전송" | "报文段重传";
    ConnectTime: "connect" | "연결 시간" | "连接时间";
    FirstByte: "first byte" | "첫 바이트" | "首字节";
    LastByte: "last byte" | "마지막 바이트" | "末字节";
    Stalled: "waited for the SYN timer" | "SYN 타이머를 기다린 연결" | "等待 SYN 定时器的连接";

    ThreadsTitle: "What each thread did" | "스레드별 활동" | "各线程的活动";
    ThreadsHelp: "Switches (cswch: the thread waited; nvcswch: another got its CPU), CPUs in use and waiting for a CPU, by \
        thread name: median (smallest to largest) over the windows of an arm, which are whole trials, or slices in which \
        nothing else observed. Threads that did nothing are left out. Published rows are pidstat's, of one process at its own \
        rate: figures of a second compare at equal rates only, figures for each completed one always. pidstat's row of a \
        process is its first thread alone, not the sum."
        | "스레드 이름별 컨텍스트 스위치(cswch: 스레드가 스스로 대기, nvcswch: CPU를 다른 스레드에 내줌), 사용한 CPU 수, CPU 대기 시간입니다. 한 대상의 모든 측정 구간(전체 \
        시행, 또는 다른 관찰이 없던 슬라이스)에 대한 중앙값(최소 – 최대)입니다. 아무 일도 하지 않은 스레드는 뺐습니다. 발표 행은 pidstat이 한 프로세스를 그 프로세스의 처리 속도에서 잰 \
        값입니다. 초당 수치는 속도가 같을 때만 비교할 수 있고, 건당 수치는 언제나 비교할 수 있습니다. pidstat의 프로세스 행은 전체 합계가 아니라 첫 번째 스레드의 값입니다."
        | "按线程名给出上下文切换（cswch：线程主动等待；nvcswch：CPU 被让给其他线程）、占用的 CPU 数与等待 CPU 的时间，取某方案全部测量窗口（完整试验，或没有其他观测的时间片）的中位数（最小 – \
        最大）。什么都没做的线程不列出。公布的行来自 pidstat，是单个进程在其自身处理速率下的数值。每秒的数值只有在速率相同时才可比，每次处理的数值始终可比。pidstat 的进程行只是首个线程，而不是总和。";
    ThreadProcess: "process" | "프로세스" | "进程";
    ThreadName: "thread" | "스레드" | "线程";
    ThreadCpus: "CPUs" | "사용 CPU 수" | "占用 CPU 数";

    MapTitle: "The map" | "조건별 히트맵" | "热力图";
    MapHelp: "How much more or less the arm needs than the baseline in each cell: ▼ less, ▲ more, ≈ no difference that can be \
        distinguished from noise, ? one that another figure does not confirm, such as the CPU of both sides, \
        † the generator was the limit, so that the arms ran at different rates and the difference may be one of rate, \
        – nothing to compare, … no result before the schedule is finished. False discovery rate over all cells of a metric: \
        5 %. A cell that claims nothing by itself says so in its row too, with (map). Means are geometric, over the ratios of these cells alone. A number of connections from which on \
        an arm has less lies on a straight line between two levels (on the scale of logarithms), with a 99 % interval. * more \
        busy threads than CPUs."
        | "조건마다 비교 대상이 기준보다 얼마나 더 쓰거나 덜 쓰는지 나타냅니다. ▼ 적음, ▲ 많음, ≈ 노이즈와 구별되지 않음, ? 차이가 검출되었으나 양쪽 CPU 등 다른 수치가 뒷받침하지 않음, \
        † 부하 생성기가 한계여서 두 대상의 요청률이 다르고 차이가 요청률 때문일 수 있음, – 비교 불가, … 일정이 끝나지 않아 판정 전. 한 지표의 모든 조건에 대한 거짓 발견율: 5 %. 단독으로는 \
        참고용인 조건도 행에 (히트맵)을 붙여 같은 결과를 표시합니다. 평균은 이 조건들의 비율을 기하 평균한 값입니다. 몇 개의 연결부터 더 적게 쓰는지는 두 수준을 직선으로 이어 구했습니다(로그 \
        척도, 99 % 신뢰구간). * 바쁜 스레드가 CPU보다 많음."
        | "每个条件下该方案比基线多用或少用多少：▼ 更少，▲ 更多，≈ 与噪声无法区分，? 已检出差异，但双方 CPU 等其他数值不支持，† 受限于负载生成器，双方请求速率不同，差异可能来自速率，– 不可比较，… \
        计划完成前不作判定。某指标全部条件的错误发现率：5 %。单独看仅供参考的条件，其所在行也以（热力图）注明同样的结论。平均为这些条件比值的几何平均。从多少个连接起用得更少，由两个水平之间的直线求得（对数尺度，99 % \
        置信区间）。* 忙碌线程多于 CPU。";
    MapConnections: "connections" | "연결 수" | "连接数";
    MapWorkers: "workers" | "워커 수" | "工作线程数";
    MapDepth: "in flight each" | "연결당 동시 처리" | "每连接在途数";
    MapMessageBytes: "bytes each" | "건당 바이트" | "每条字节数";
    MapServerCpus: "server CPUs" | "서버 CPU 수" | "服务器 CPU 数";
    MapLevel: "level" | "수준" | "水平";
    MapMean: "geometric mean" | "기하 평균" | "几何平均";
    MapCells: "cells" | "조건 수" | "条件数";
    MapReversed: "cells that go the other way" | "반대 방향인 조건" | "方向相反的条件";
    MapDifference: "difference" | "차이" | "差异";
    MapRatio: "ratio" | "비율" | "比值";
    MapPValue: "p, adjusted" | "보정 p" | "校正 p";
    MapLess: "less" | "적음" | "更少";
    MapMore: "more" | "많음" | "更多";
    MapUndetected: "no difference detected" | "차이 미검출" | "未检出差异";
    MapNotBorneOut: "found, not confirmed" | "검출, 뒷받침 없음" | "已检出，未获佐证";
    MapLimited: "generator was the limit" | "부하 생성기 한계" | "受限于负载生成器";
    MapLimitedShort: "generator-bound" | "생성기 한계" | "受限";
    MapInvalid: "not comparable" | "비교 불가" | "不可比较";
    MapUnfinished: "not told yet, unfinished" | "미완료, 판정 전" | "未完成，暂不判定";

    OverviewTitle: "The map in tables" | "조건별 결과표" | "各条件结果表";
    OverviewHelp: "Means are geometric, over the same cells at every level and for every arm, and never over raw figures of \
        unlike cells; intervals are 99 %, over rounds. Ratios are to the baseline, within rounds, over the cells in which the \
        two may be compared. Per CPU-second is what is done for each second of the server's CPU time, at the rate that was \
        reached: it changes with the rate. Throughput marked as at least so much is a lower bound: the generator was the limit in some of the cells."
        | "평균은 기하 평균이며, 모든 수준과 모든 대상에 같은 조건을 씁니다. 서로 다른 조건의 원래 수치는 평균하지 않습니다. 신뢰구간은 99 %이고 라운드를 단위로 구합니다. 비율은 기준에 대한 \
        값으로, 두 대상을 비교할 수 있는 조건에서 라운드별로 구합니다. ‘CPU 1초당’은 서버 CPU 시간 1초에 처리한 건수입니다. 실제로 도달한 처리율에서 잰 값이므로 처리율에 따라 달라집니다. \
        ≥ 표시가 있는 처리량은 하한입니다. 일부 조건에서 부하 생성기가 한계였습니다."
        | "均值均为几何平均，各水平、各方案使用相同的条件，不对不同条件的原始数值求平均。置信区间为 99 %，以轮为单位。比值相对基线，在两者可比的条件下逐轮求得。“每 CPU 秒”是服务器每用 1 秒 CPU \
        时间处理的数量，取自实际达到的速率，因此随速率变化。带 ≥ 的吞吐量只是下限：在部分条件下，瓶颈是负载生成器。";
    AggregateTitle: "Aggregate report" | "집계 보고서(Aggregate Report)" | "聚合报告";
    AggregateHelp: "The rows of a load tester for each server. Times are those of right responses to the last byte, from the \
        moment a request was due where the load is open, and from its sending where it is closed; percentiles are of all \
        requests together, never means of percentiles. The second line has the smallest and the largest of the rounds or \
        trials. Rounds that were set aside because responses failed are in it. Peak: right responses of the best whole \
        second, or the rate of the best slice, with its length."
        | "부하 시험 도구의 집계 행을 서버별로 표시합니다. 시간은 올바른 응답의 마지막 바이트까지 잽니다. 개방형 부하는 보내기로 예정된 시각부터, 폐쇄형 부하는 실제로 보낸 시각부터 잽니다. \
        백분위는 모든 요청을 합쳐서 구하며, 백분위끼리 평균하지 않습니다. 둘째 줄은 라운드(시행)별 최솟값과 최댓값입니다. 응답 실패로 제외한 라운드도 포함합니다. 최고 처리량은 가장 좋았던 온전한 \
        1초의 올바른 응답 수이거나, 가장 좋았던 슬라이스의 처리율과 그 길이입니다."
        | "按服务器给出负载测试工具的汇总行。时间为正确响应到末字节的时间：开环从计划发送时刻算起，闭环从实际发送时刻算起。百分位由全部请求合并求得，不对百分位求平均。第二行为各轮（试验）的最小值与最大值，因响应失败而剔除的轮次也计入。峰值为最好的完整一秒内的正确响应数，或最好的时间片的速率及其长度。";
    GuidanceTitle: "What to use where" | "조건별로 무엇을 쓸 것인가" | "哪些场景该用哪种方案";
    GuidanceHelp: "Regions are adjacent cells of the map with the same result. A mean is geometric, over the ratios of \
        the region's cells, with a 99 % interval for these cells; it is not \
        corrected for their having been chosen by their results. False discovery rate: 5 %."
        | "영역은 히트맵에서 서로 이웃하고 결과가 같은 조건을 묶은 것입니다. 평균은 영역에 속한 조건의 비율을 기하 평균한 값이며, 이 조건들에 대한 99 % 신뢰구간을 함께 표시합니다. 결과를 보고 \
        조건을 골랐다는 점은 보정하지 않았습니다. 거짓 발견율: 5 %."
        | "区域由热力图上结论相同的相邻条件组成。均值为区域内各条件比值的几何平均，附这些条件的 99 % 置信区间。条件是按结果挑选的，对此未作校正。错误发现率：5 %。";
    GuidanceWhere: "where" | "범위" | "范围";
    GuidanceRange: "single cells" | "조건별 비율" | "各条件比值";
    KernelsTitle: "As on older kernels" | "이전 커널의 기능만 쓴 대상" | "模拟旧内核的方案";
    KernelsHelp: "Features masked on this kernel, as the named one would let the driver run. Only what programs ask the kernel for \
        can be masked: its network stack, its scheduler and the inside of io_uring are this kernel's, so that an older kernel \
        itself may be slower or faster than shown. From the version that has \
        them on, multishot receives are used where this kernel reports every end of a connection."
        | "이 커널에서, 표시한 버전에 없는 기능을 끄고 측정한 대상입니다. 끌 수 있는 것은 프로그램이 커널에 요청하는 기능뿐입니다. 네트워크 스택, 스케줄러, io_uring 내부는 이 커널의 \
        것이므로, 실제 이전 커널은 여기 표시한 것보다 느리거나 빠를 수 있습니다. 멀티샷 수신은 이를 지원하는 버전부터, 이 커널이 모든 연결 종료를 알려 줄 때만 씁니다."
        | "在本内核上关闭所列版本尚没有的功能后测得。能关闭的只是程序向内核请求的功能；网络栈、调度器和 io_uring \
        内部仍是本内核的，因此真正的旧内核可能比所示更慢或更快。多次触发接收自支持它的版本起使用，且仅当本内核能报告每次连接结束时使用。";
    KernelsVersion: "kernel" | "커널" | "内核";
    KernelsMasked: "left unused (since)" | "쓰지 않은 기능(도입 버전)" | "未使用的功能（引入版本）";

    EvidenceTitle: "What the kernel did" | "커널이 한 일" | "内核做了什么";
    EvidenceHelp: "From separate slices, after all that was timed; no other figure of this report rests on them. \
        Amounts are divided by what was completed in them. Observing costs CPU: the cost is that of an observed slice over one \
        that was not, in the same rounds. Time asleep in a call is no work. What one part has more of than another shows \
        where the difference is, not why."
        | "시간을 재는 측정이 모두 끝난 뒤, 따로 둔 슬라이스에서 얻은 값입니다. 이 보고서의 다른 수치는 이 값을 쓰지 않습니다. 값은 그 슬라이스에서 처리한 건수로 나눈 것입니다. 관찰에는 \
        CPU가 듭니다. 관찰 비용은 같은 라운드에서 관찰한 슬라이스를 관찰하지 않은 슬라이스로 나눈 값입니다. 시스템 콜 안에서 잠든 시간은 작업이 아닙니다. 어느 부분이 더 큰지는 차이가 생긴 위치를 \
        보여 줄 뿐, 원인을 보여 주지는 않습니다."
        | "取自全部计时测量之后另设的时间片；本报告的其他数值都不使用这些数据。数值已除以其中完成的数量。观测要消耗 \
        CPU：观测开销为同一轮中被观测时间片与未被观测时间片之比。在系统调用中睡眠的时间不算工作。某一部分更大只说明差异在哪里，不说明原因。";
    EvidenceRung: "seen by" | "관찰 수단" | "观测手段";
    EvidenceAgreement: "engine / kernel counted" | "엔진 / 커널 계수" | "引擎 / 内核计数";
    EvidenceAgrees: "same" | "일치" | "一致";
    EvidenceDisagrees: "NOT THE SAME" | "불일치" | "不一致";
    EvidenceUnknown: "not known, not every kind was counted yet" | "알 수 없음(일부 종류를 아직 세지 않던 때의 결과)"
        | "未知（当时尚未统计所有种类）";
    EvidenceCompleted: "completed" | "처리 건수" | "完成数";
    EvidenceCpu: "server CPU, observed" | "서버 CPU(관찰 중)" | "服务器 CPU（观测中）";
    EvidenceTax: "cost of observing" | "관찰 비용" | "观测开销";
    GroupTaxOver: "observed at" | "관찰한 요청률" | "观测时的请求速率";
    GroupTaxCompared: "compared with" | "비교한 값" | "对比";
    GroupProc: "/proc, ten times a second" | "/proc, 초당 10회" | "/proc，每秒 10 次";
    GroupCalls: "system calls" | "시스템 콜" | "系统调用";
    GroupScheduling: "switches and wake-ups" | "컨텍스트 스위치와 웨이크업" | "切换与唤醒";
    GroupUring: "io_uring events" | "io_uring 이벤트" | "io_uring 事件";
    GroupSoftirqs: "softirqs" | "softirq 처리" | "软中断";
    NotObserved: "not observed" | "관찰 없음" | "未观测";
    SystemCall: "system call" | "시스템 콜" | "系统调用";
    CallCount: "calls" | "호출 수" | "调用次数";
    CallReturned: "returned by one" | "호출당 결과" | "每次返回量";
    CallOnCpu: "on a CPU" | "CPU 시간" | "占用 CPU";
    CallShare: "of server CPU" | "서버 CPU 중 비율" | "占服务器 CPU";
    CallAsleep: "asleep" | "잠든 시간" | "睡眠";
    CallQueued: "waiting for a CPU" | "CPU 대기" | "等待 CPU";
    OtherCalls: "other calls" | "그 밖의 호출" | "其他调用";
    OutsideCalls: "outside of system calls" | "시스템 콜 밖" | "系统调用之外";
    SwitchesVoluntary: "switches, voluntary" | "자발적 스위치" | "自愿切换";
    SwitchesInvoluntary: "involuntary" | "비자발적 스위치" | "非自愿切换";
    Wakeups: "wake-ups" | "웨이크업" | "唤醒";
    EventsPerWait: "events a wait" | "대기 호출당 이벤트" | "每次等待的事件";
    SubmissionsPerEnter: "SQE an enter" | "enter당 SQE" | "每次 enter 的 SQE";
    CompletionsPerEnter: "CQE an enter" | "enter당 CQE" | "每次 enter 的 CQE";
    SoftirqOwn: "softirq, server's threads" | "softirq(서버 스레드)" | "软中断（服务器线程）";
    SoftirqElsewhere: "softirq, elsewhere" | "softirq(그 밖)" | "软中断（其他）";
    MachineCpuUnwatched: "CPU of both sides, not observed" | "양쪽 CPU(관찰 없음)" | "双方 CPU（未观测）";
    TcpTrouble: "queue full / dropped / sent again" | "대기열 넘침 / 버려진 연결 / 재전송" | "队列已满 / 被丢弃 / 重传";
    WokenBy: "woken by" | "깨운 스레드" | "唤醒者";
    SleptBefore: "slept before, each" | "깨기 전 평균 수면 시간" | "唤醒前平均睡眠";
    OtherWakers: "others" | "그 밖" | "其他";

    AccountTitle: "Where the server CPU goes" | "서버 CPU를 쓴 곳" | "服务器 CPU 的去向";
    AccountHelp: "Server CPU by place, divided by what was completed, from slices that the kernel's programs watched; what \
        watching adds is taken out, as the programs measure it of themselves. Intervals are 99 %, over rounds; differences are within rounds, those whose interval excludes 0 first, the largest of them at the top. The parts are compared \
        with unobserved slices of the same rounds: an account closes when the whole interval of what is \
        explained is at least 95 % of that CPU, and explains more than there is when all of it is above 105 %. Switching is what the scheduler charges a thread with before it \
        runs, above all on a CPU that was idle. A call that had begun before its slice, or went on beyond its end, is in no \
        part, so that its CPU is in what is left. That is a separate row. Over loopback the call that sends a segment \
        also receives it, in a softirq: a row has the sum of the two. It has softirqs that another row has \
        too, and is not added up. A place says where CPU goes, and not why."
        | "커널 프로그램이 관찰한 슬라이스에서 얻은 서버 CPU를, 쓴 곳별로 나누어 처리 건수로 나눈 값입니다. 관찰 때문에 늘어난 몫은 프로그램이 스스로 잰 만큼 뺐습니다. 신뢰구간은 99 %이고 \
        라운드를 단위로 구합니다. 차이는 라운드별로 구했고, 신뢰구간이 0을 포함하지 않는 것을 먼저, 큰 순서로 적었습니다. 부분의 합은 같은 라운드의 관찰하지 않은 슬라이스와 대조합니다. 설명된 \
        비율의 신뢰구간 전체가 95 % 이상이면 합계가 맞고, 전체가 105 %를 넘으면 실제보다 많이 설명된 것입니다. 스레드로의 전환은 스레드가 실행되기 전에 스케줄러가 그 스레드에 부과하는 CPU \
        시간이며, 주로 유휴였던 CPU에서 생깁니다. 슬라이스보다 먼저 시작했거나 나중에 끝난 호출은 어느 항목에도 넣지 않으므로, 그 CPU 시간은 설명되지 않은 몫이 됩니다. 설명되지 않은 몫은 따로 \
        한 행에 적습니다. 루프백에서는 세그먼트를 보내는 호출이 그 안의 softirq에서 수신까지 처리합니다. 그래서 호출에 그 softirq를 더한 값도 한 행에 적었습니다. 이 행은 softirq \
        행과 겹치므로 합계에 넣지 않습니다. CPU를 쓴 위치를 보여 줄 뿐, 원인을 보여 주지는 않습니다."
        | "服务器 CPU 按去向划分，除以完成的数量，取自由内核程序观测的时间片，并已扣除观测增加的部分（由程序自行测得）。置信区间为 99 %，以轮为单位。差异逐轮求得，置信区间不含 0 \
        的排在前面，由大到小。各部分之和与同一轮中未被观测的时间片核对：可解释比例的整个置信区间不低于 95 %，账目即相符；整个置信区间高于 105 %，则解释多于实际。线程切换是线程运行之前调度器就计入该线程的 CPU \
        时间，主要出现在原本空闲的 CPU 上。早于时间片开始、或晚于其结束的调用不计入任何一项，其 CPU \
        时间归入无法解释的部分，单列一行。在环回接口上，发送报文段的调用会在其中的软中断里完成接收，因此另有一行给出该调用与其中软中断的合计。这一行与软中断一行重叠，不计入总和。去向只说明 CPU 用在哪里，不说明原因。";
    CpuPlace: "place" | "쓴 곳" | "去向";
    DifferenceOf: "difference" | "차이" | "差异";
    ServerCpuHere: "server CPU" | "서버 CPU" | "服务器 CPU";
    WholeDifference: "the whole difference" | "차이 전체" | "全部差异";
    AccountOutcome: "account" | "합계 대조" | "核对";
    AccountCloses: "closes" | "맞음" | "相符";
    AccountDoesNotClose: "DOES NOT CLOSE" | "맞지 않음" | "不相符";
    AccountOpen: "not decided" | "보류" | "无法判定";
    NoClock: "the server does not time itself" | "서버가 시간을 재지 않음" | "服务器不自行计时";
    AccountExplained: "explained" | "설명된 비율" | "可解释比例";
    AccountCpu: "server CPU, not observed" | "서버 CPU(관찰 없음)" | "服务器 CPU（未观测）";
    SoftirqsOfServer: "softirqs on the server's threads" | "서버 스레드에서 처리된 softirq" | "服务器线程上的软中断";
    WithSoftirqs: " with the softirqs within it" | "(호출 안의 softirq 포함)" | "（含其中的软中断）";
    UringThreads: "io_uring's kernel threads" | "io_uring 커널 스레드" | "io_uring 内核线程";
    Switching: "switching to its threads" | "스레드로의 전환" | "线程切换";
    ServerWork: "the server itself" | "서버 자체 처리" | "服务器自身的处理";
    Unexplained: "not explained" | "설명되지 않음" | "无法解释";

    CausesTitle: "Causes, as experiments" | "실험으로 확인한 원인" | "由实验确认的原因";
    CausesHelp: "Arms in which one switch is turned back and all else is the same. The share is the logarithm of what the switch \
        does over that of the whole difference, paired within each round or block, with the 99 % interval that holds for all \
        switches of one difference together. A switch is a cause where the interval excludes 0; a negative share works against \
        the difference. Shares need not add up to 100 %: a switch may do more or less when another is turned back too."
        | "설정 하나만 되돌리고 나머지는 같은 대상들입니다. 기여도는 그 설정의 효과를 전체 차이로 나눈 값입니다(둘 다 로그 값이며 라운드나 블록 안에서 짝지음). 99 % 신뢰구간은 한 차이에 속한 \
        모든 설정에 함께 성립합니다. 신뢰구간이 0을 포함하지 않으면 원인입니다. 기여도가 음수이면 차이를 줄이는 설정입니다. 다른 설정도 함께 되돌리면 효과가 달라질 수 있으므로, 기여도의 합이 \
        100 %가 되지 않을 수 있습니다."
        | "只关闭一个选项、其余完全相同的方案。份额为该选项的作用除以全部差异（均取对数，在每轮或每个区组内配对）。99 % 置信区间对同一差异的所有选项同时成立。置信区间不含 0 \
        即为原因；份额为负表示起相反作用。若同时关闭另一选项，其作用可能增减，因此各份额之和不一定为 100 %。";
    CauseMetric: "figure" | "지표" | "指标";
    CauseSwitch: "switch (arm without it)" | "설정(되돌린 대상)" | "选项（关闭它的方案）";
    CauseFound: "found" | "결과" | "结论";
    CauseDifference: "difference" | "차이" | "差异";
    CauseEffect: "with / without the switch" | "설정 유 / 무" | "有 / 无该选项";
    CauseShare: "share of the difference" | "차이에 대한 기여도" | "占差异的份额";
    IsCause: "a cause" | "원인" | "是原因";
    WorksAgainst: "works against it" | "차이를 줄임" | "起反作用";
    NotShown: "not shown" | "확인되지 않음" | "未能证实";
    NoDifference: "no difference to share" | "나눌 차이 없음" | "没有可分摊的差异";

    CallOverheadTitle: "System call overhead as traffic (connections) grows" | "트래픽(연결 수) 증가에 따른 시스템 콜 오버헤드"
        | "流量（连接数）增加时的系统调用开销";
    CallOverheadHelp: "From the same slices of evidence, for each completed one: how many system calls, and their time on a CPU \
        with its part of the server CPU; geometric means over the rounds that were observed, with 99 % intervals. Both axes of a \
        chart are logarithmic. What observing adds is in these times."
        | "같은 관찰 슬라이스에서 얻은 건당 값입니다. 시스템 콜 횟수, CPU에서 쓴 시간, 서버 CPU에서 차지하는 비율을 표시합니다. 관찰한 라운드의 기하 평균과 99 % 신뢰구간입니다. 차트의 두 \
        축은 로그 척도입니다. 관찰 때문에 늘어난 시간도 들어 있습니다."
        | "取自同样的观测时间片，按每次完成计：系统调用次数，占用 CPU 的时间，及其占服务器 CPU 的比例。数值为所观测各轮的几何平均与 99 % 置信区间。图的两个坐标轴均为对数。其中包含观测增加的时间。";
    StraceTitle: "System calls under strace" | "strace로 본 시스템 콜" | "strace 下的系统调用";
    StraceHelp: "One slice of each arm under strace -c -f -w, to show what such a table says and what it does not. strace sums the \
        time between begin and end of every call: waiting for work counts as work, one time for each thread that waits, and each \
        call is stopped twice. The kernel's programs count the same calls of a server that nothing stops. Times are for each second \
        of load (s/s), or for each completed one. A ratio says how many times as much the baseline has. No figure of this report \
        rests on slices under strace."
        | "strace -c -f -w를 붙인 슬라이스를 대상마다 하나씩 두었습니다. 이런 표에서 알 수 있는 것과 알 수 없는 것을 보여 주기 위해서입니다. strace는 모든 호출의 시작부터 \
        끝까지의 시간을 더합니다. 작업을 기다린 시간도 기다린 스레드 수만큼 더하고, 호출마다 프로세스를 두 번 멈춥니다. 커널 프로그램은 추적 없이 실행되는 서버의 같은 호출을 셉니다. 시간은 부하 \
        1초당(s/s) 또는 건당 값이며, 비율은 기준이 몇 배인지를 나타냅니다. 이 보고서의 다른 수치는 strace 슬라이스를 쓰지 않습니다."
        | "每个方案各有一个在 strace -c -f -w 下的时间片，用来说明这类表格能说明什么、不能说明什么。strace \
        累加每次调用从开始到结束的时间：等待任务也算作工作，有几个线程在等就累加几次，而且每次调用都让进程停两次。内核程序统计的是未被跟踪的服务器的同样调用。时间为每秒负载（s/s）或每次完成的数值；比值表示基线是该方案的多少倍。本报告的其他数值都不使用 \
        strace 时间片。";
    StraceCalls: "strace: calls/s" | "strace: 초당 호출 수" | "strace：每秒调用";
    StraceTime: "strace: sum of times" | "strace: 시간 합계" | "strace：时间合计";
    StraceRatio: "baseline has" | "기준의 배수" | "基线的倍数";
    KernelWall: "kernel: begin to end" | "커널: 시작부터 끝까지" | "内核：从开始到结束";
    KernelAwake: "kernel: not asleep" | "커널: 잠든 시간 제외" | "内核：不含睡眠";
    KernelOnCpu: "kernel: on a CPU, each completed" | "커널: 건당 CPU 시간" | "内核：每次完成占用 CPU";
    StraceKept: "throughput left under strace" | "strace 실행 중 처리량 비율" | "strace 下剩余的吞吐量";
    StraceCount: "strace: calls" | "strace: 호출 수" | "strace：调用次数";
    StraceTotal: "total" | "합계" | "合计";
    StraceMean: "mean" | "평균" | "平均";
    StraceShare: "share" | "비율" | "占比";
    KernelOnCpuEach: "kernel: on a CPU, each" | "커널: 호출당 CPU" | "内核：每次占用 CPU";
    KernelAsleepEach: "kernel: asleep, each" | "커널: 호출당 잠든 시간" | "内核：每次睡眠";

    GoalsTitle: "Goals and further comparisons" | "목표와 추가 비교" | "目标与附加比较";
    GoalsHelp: "What the study asks beside the comparisons with the baseline. A goal is met when the whole 99 % interval is \
        on its side, missed when the whole interval is beyond it, and open otherwise. Goals claim nothing: they have no \
        verdict and are not corrected for one another. Two cells are compared unpaired (Welch), arms of one cell within \
        each round or block."
        | "기준과 비교하는 것 말고 실험이 따로 묻는 것입니다. 99 % 신뢰구간 전체가 목표를 만족하면 달성, 전체가 목표를 벗어나면 미달성, 그 밖에는 미정입니다. 목표는 가설이 아니므로 판정하지 \
        않고 서로 보정하지도 않습니다. 두 조건은 짝짓지 않고 비교하며(Welch), 한 조건의 대상들은 라운드나 블록 안에서 비교합니다."
        | "除与基线比较之外，本实验另外提出的问题。99 % \
        置信区间整体满足目标为达成，整体超出目标为未达成，否则为未定。目标不是结论：不作判定，彼此之间也不校正。两个条件之间不配对比较（Welch），同一条件的方案在每轮或每个区组内比较。";
    GoalSubject: "what" | "비교 내용" | "比较内容";
    Goal: "goal" | "목표" | "目标";
    GoalFigure: "figure [interval]" | "수치 [신뢰구간]" | "数值 [置信区间]";
    GoalReason: "reason" | "이유" | "原因";
    GoalUnits: "units" | "단위 수" | "单元数";
    Threshold: "threshold" | "임계값" | "阈值";
    GoalMet: "met" | "달성" | "达成";
    GoalMissed: "missed" | "미달성" | "未达成";
    GoalOpen: "open" | "미정" | "未定";
    ThresholdMet: "met" | "충족" | "满足";
    ThresholdMissed: "missed" | "위반" | "不满足";

    IoModelsTitle: "I/O models, and which of them this machine has" | "I/O 모델과 이 머신에서의 사용 가능 여부"
        | "I/O 模型，以及本机具备哪些";
    IoModelsHelp: "What is said of this machine was probed when the study was made; the rest is from the manual pages."
        | "이 머신에 대한 내용은 실험을 만들 때 직접 확인한 결과이고, 나머지는 매뉴얼 페이지를 따랐습니다."
        | "关于本机的内容在建立实验时实际探测得出；其余来自手册页。";
    Way: "way" | "방식" | "方式";
    WayHere: "on this machine" | "이 머신에서" | "在本机";
    IoModelSource: "found by" | "확인 방법" | "探测方法";
    IoModelModel: "I/O model" | "I/O 모델" | "I/O 模型";
    IoModelSince: "since" | "도입 버전" | "起始版本";
    IoModelStrength: "main advantage" | "주요 장점" | "主要优点";
    IoModelWeakness: "main drawback" | "주요 단점" | "主要缺点";
    IoModelYes: "yes" | "가능" | "可用";
    WayLimited: "limited" | "제한적" | "受限";
    IoModelNo: "no" | "불가" | "不可用";

    Verdict: "verdict" | "판정" | "判定";
    Arm: "arm" | "비교 대상" | "方案";
    Cell: "cell" | "조건" | "条件";
    Metric: "metric" | "지표" | "指标";
    Baseline: "baseline" | "기준" | "基线";
    RatioInterval: "ratio [interval]" | "비율 [신뢰구간]" | "比值 [置信区间]";
    DetectableShort: "MDE" | "MDE" | "MDE";
    FloorShort: "floor" | "노이즈" | "噪声";
    Detectable: "Minimum detectable effect" | "최소 검출 효과(MDE)" | "最小可检测效应（MDE）";
    Floor: "Noise floor" | "노이즈 플로어" | "噪声本底";
    Pairs: "pairs" | "쌍" | "配对数";
    PairsExcluded: "pairs kept out" | "제외된 쌍" | "排除的配对";
    WithAllPairs: "ratio with all pairs" | "모든 쌍 포함 비율" | "含全部配对的比值";
    PHolm: "p (Holm)" | "p (Holm)" | "p（Holm）";
    PValue: "p" | "p" | "p";
    Confidence: "confidence" | "신뢰수준" | "置信水平";
    Trials: "trials" | "시행 수" | "试验数";
    Primary: "primary" | "주 비교" | "主要比较";
    Confirmatory: "confirmatory" | "확증" | "验证性";
    Exploratory: "exploratory" | "탐색적" | "探索性";
    GeneratorBound: "generator-bound" | "부하 생성기 한계" | "受限于负载生成器";
    RestInReport: "the rest is in report.html" | "나머지는 report.html에 있습니다" | "其余见 report.html";
    ContentsTitle: "Contents" | "목차" | "目录";
    BesideTitle: "Beside the answer" | "답과 함께 볼 것" | "结论之外";
    ReferenceTitle: "Reference" | "참고 자료" | "参考资料";
    HowToRead: "How to read it" | "읽는 방법" | "如何阅读";
    NotesByCell: "Notes, by cell" | "조건별 참고 사항" | "各条件的说明";
    FailedCheck: "Failed check" | "통과하지 못한 점검" | "未通过的检查";
    RestByLong: "Every cell, note and check: --long, or the page." | "모든 조건, 참고, 점검: --long 또는 보고서 페이지." | "全部条件、说明与检查：--long 或报告页面。";
    ClosedLoop: "closed loop" | "폐쇄형 부하" | "闭环";
    Poisson: "Poisson arrivals" | "푸아송 도착" | "泊松到达";
    Uniform: "uniform arrivals" | "균등 간격 도착" | "均匀到达";

    Complete: "complete" | "모든 블록 완료" | "全部区组已完成";
    Incomplete: "incomplete: finished blocks only" | "미완료: 끝난 블록만 판정" | "未完成：仅判定已完成的区组";
    OneState: "one machine state" | "머신 상태 1개" | "单一机器状态";
    TwoStates: "two machine states" | "머신 상태 2개" | "两种机器状态";
    Evidence: "evidence" | "근거" | "依据";
    EvidenceProc: "/proc alone (L1)" | "/proc만 (L1)" | "仅 /proc（L1）";
    EvidenceEngine: "/proc and engine counters (L0, L1)" | "/proc와 엔진 카운터 (L0, L1)" | "/proc 与引擎计数器（L0、L1）";
    EvidencePrograms: "kernel programs, /proc and engine counters (L0 to L2)" | "커널 프로그램, /proc, 엔진 카운터 (L0~L2)" | "内核程序、/proc 与引擎计数器（L0 至 L2）";
    NotPinned: "not pinned" | "CPU 고정 안 함" | "未绑定";

    MissingTitle: "Arms that could not run" | "실행하지 못한 비교 대상" | "未能运行的方案";
    Next: "Next" | "다음 할 일" | "下一步";
    NotDrawn: "Not drawn" | "그리지 않은 것" | "未绘制";
    Unlock: "To unlock" | "해결 방법" | "解决办法";
    ComparisonsTitle: "All comparisons" | "모든 비교" | "全部比较";
    ComparisonsHelp: "Each row is one arm against the baseline: the ratio, its interval, and one faint dot for each round or pair. \
        The grey band is the noise floor, the line is 1.0. Hollow marks are exploratory: looked at, nothing claimed."
        | "행마다 비교 대상 하나를 기준과 비교합니다. 비율과 신뢰구간을 표시하고, 라운드나 쌍마다 흐린 점을 하나씩 찍었습니다. 회색 띠는 노이즈 플로어, 세로선은 1.0입니다. 속이 빈 표식은 \
        탐색적 조건으로, 참고용이며 결론을 내지 않습니다."
        | "每行是一个方案与基线的比较：比值、置信区间，以及每轮或每对一个浅色点。灰色带为噪声本底，竖线为 1.0。空心标记为探索性条件：仅供参考，不作结论。";
    BetterLeft: "← better" | "← 좋음" | "← 更好";
    BetterRight: "better →" | "좋음 →" | "更好 →";
    NoComparisons: "No comparison could be made." | "비교할 수 있는 결과가 없습니다." | "没有可比较的结果。";
    FiguresTitle: "Throughput and CPU" | "처리량과 CPU" | "吞吐量与 CPU";
    FiguresHelp: "Bars are means over the rounds or blocks that the effects are of, whiskers minimum to maximum, dots \
        single rounds or blocks: geometric means of what is compared as a ratio, arithmetic ones of what is compared as a \
        difference. An arm's figure in a round is the baseline's with the round's effect. The baseline's are those beside \
        the first arm compared with it."
        | "막대는 효과를 구한 라운드나 블록의 평균, 수염은 최소–최대, 점은 각 라운드나 블록입니다. 비율로 비교하는 지표는 기하 평균을, 차이로 비교하는 지표는 산술 평균을 씁니다. 라운드에서 \
        대상의 값은 기준의 값에 그 라운드의 효과를 적용한 값입니다. 기준의 값은 처음 비교한 대상과 같은 라운드나 블록에서 잰 값입니다."
        | "条形为计算效应所用各轮或各区组的均值，须线为最小值到最大值，圆点为单轮或单个区组。按比值比较的指标取几何平均，按差值比较的取算术平均。某轮中方案的数值由基线的数值与该轮的效应得出。基线的数值取自与它首先比较的方案所在的轮次或区组。";
    NoFigures: "No trial gave figures." | "수치가 있는 시행이 없습니다." | "没有试验给出数值。";
    LatencyTitle: "Latency at one offered rate" | "같은 요청률에서의 지연 시간" | "同一请求速率下的延迟";
    LatencyHelp: "Solid: response time, counted from the moment a message was due. Dashed: service time, counted \
        from the moment it was sent. The gap between them is waiting that a closed loop would hide."
        | "실선은 응답 시간으로, 메시지를 보내기로 예정된 시각부터 잽니다. 점선은 서비스 시간으로, 실제로 보낸 시각부터 잽니다. 두 선의 차이는 폐쇄형 부하에서는 드러나지 않는 대기 시간입니다."
        | "实线为响应时间，从消息的计划发送时刻算起；虚线为服务时间，从实际发送时刻算起。两者之差是闭环负载无法显示的等待时间。";
    NoLatency: "This study has no open-loop cell. A closed loop hides waiting, so no latency curve is drawn."
        | "이 실험에는 개방형 부하 조건이 없습니다. 폐쇄형 부하에서는 대기 시간이 드러나지 않으므로 지연 시간 곡선을 그리지 않습니다."
        | "本实验没有开环条件。闭环无法显示等待时间，因此不绘制延迟曲线。";
    ResponseTime: "response time" | "응답 시간" | "响应时间";
    ServiceTime: "service time" | "서비스 시간" | "服务时间";
    Percentile: "percentile" | "백분위" | "百分位";
    WhyTitle: "What differs per message" | "메시지당 차이" | "每条消息的差异";
    WhyHelp: "Counted, not sampled. Rows that are zero for every arm are left out."
        | "표본 추출이 아니라 모두 센 값입니다. 모든 대상에서 0인 행은 생략했습니다."
        | "均为逐次计数，并非抽样。所有方案都为 0 的行已省略。";
    NoWhy: "No arm has its own counters; only /proc was read." | "자체 카운터가 있는 대상이 없어 /proc만 읽었습니다."
        | "没有方案自带计数器，仅读取了 /proc。";
    Syscalls: "system calls" | "시스템 콜" | "系统调用";
    MoreFigures: "More figures" | "그림 더 보기" | "更多图";
    ChecksTitle: "Validity checks" | "유효성 검사" | "有效性检查";
    ChecksHelp: "What must hold for the verdicts. A failed check says what it takes away."
        | "판정이 성립하기 위한 조건입니다. 통과하지 못한 검사에는 그 때문에 무효가 되는 것을 적었습니다."
        | "判定成立所需的条件。未通过的检查会说明哪些结果因此无效。";
    Passed: "passed" | "통과" | "通过";
    Failed: "failed" | "실패" | "未通过";
    Outcome: "outcome" | "결과" | "结果";
    Check: "check" | "검사" | "检查项";
    Found: "what was found" | "확인 결과" | "检查结果";
    NoChecks: "No check was recorded." | "기록된 검사가 없습니다." | "没有记录任何检查。";
    NoTimeline: "No trial was run." | "실행된 시행이 없습니다." | "没有运行任何试验。";
    CrossCore: "cross-core round trip" | "코어 간 왕복 시간" | "核间往返时间";
    Start: "start" | "시작" | "开始";
    Length: "length" | "길이" | "时长";
    Block: "block" | "블록" | "区组";
    Steal: "steal" | "스틸(steal)" | "steal";
    Used: "used" | "사용" | "采用";
    Excluded: "excluded" | "제외" | "剔除";
    StateBoundary: "state boundary" | "상태 경계" | "状态边界";
    DefinitionsTitle: "What the words mean" | "용어 설명" | "术语说明";
    ReproduceTitle: "Run it again" | "다시 실행하기" | "复现";
    Seed: "seed" | "시드" | "随机种子";
    Specification: "the complete specification" | "전체 명세" | "完整规格";
    MachineFacts: "all facts about the machine" | "머신 상세 정보" | "机器的全部信息";
    NumbersInTable: "the numbers as a table" | "수치를 표로 보기" | "以表格查看数值";
    FurtherNumbers: "further figures as a table" | "나머지 수치를 표로 보기" | "以表格查看其余数值";
    StudyOf: "Weir study" | "Weir 실험" | "Weir 实验";
    CheckResponses: "every response was right" | "모든 응답이 올바름" | "所有响应均正确";
    CheckBytes: "every byte came back" | "모든 바이트 일치" | "所有字节均正确返回";
    CheckFailures: "every failure has a class" | "모든 실패가 분류됨" | "所有失败均已归类";
    CheckLittle: "Little's law holds" | "리틀의 법칙 성립" | "利特尔法则成立";
    CheckHeadroom: "the generator had headroom" | "부하 생성기에 여유 있음" | "负载生成器有余量";
    CheckProcesses: "every trial gave a report" | "모든 시행이 보고서를 남김" | "每次试验都给出报告";
    CheckRate: "the offered rate was kept" | "목표 요청률에 도달함" | "达到目标请求速率";
    CheckOverflow: "no completion queue overflow" | "완료 큐 넘침 없음" | "完成队列无溢出";
    CheckExclusions: "noise set all arms aside alike" | "노이즈로 제외한 시행이 대상마다 고름" | "各方案因噪声剔除的试验数相近";
    CheckSliceOrder: "slices do not depend on what ran before" | "슬라이스가 앞선 실행의 영향을 받지 않음" | "时间片不受先前运行的影响";
    CheckLink: "the network lost few packets" | "네트워크에서 잃은 패킷이 적음" | "网络丢包很少";
    CheckSegments: "slices send what long ones do" | "슬라이스가 긴 측정과 같은 트래픽을 보냄" | "时间片与长测量发送的流量一致";
    CheckSliceLength: "slices are more than ramp and drain" | "슬라이스가 시작·마무리 시간보다 충분히 김" | "时间片远长于启动与收尾";
    CheckWarm: "servers were warm" | "서버가 예열되어 있었음" | "服务器已预热";
    CheckComponents: "what rounds scatter by is known" | "라운드 편차의 원인이 확인됨" | "轮次离散的来源已知";
    CheckPrograms: "the kernel's programs saw everything" | "커널 프로그램이 빠짐없이 관찰함" | "内核程序观测无遗漏";
    CheckCalls: "engine and kernel counted the same calls" | "엔진과 커널이 같은 호출을 셈" | "引擎与内核统计的调用相同";
    CheckCover: "the calls that were seen account for the work" | "관찰한 호출로 처리한 작업이 모두 설명됨" | "观测到的调用足以解释完成的工作";
    CheckPlanted: "what was planted leads the table of parts" | "일부러 넣은 비용이 내역 표의 맨 위에 나옴" | "人为加入的开销排在各部分之首";
    CheckStates: "machine states are known" | "머신 상태 확인됨" | "机器状态已知";
    CheckSteal: "little CPU time was stolen" | "스틸(steal)이 적음" | "被占用的 CPU 时间（steal）很少";
    CheckForeign: "other processes were quiet" | "다른 프로세스의 CPU 사용이 적음" | "其他进程占用 CPU 很少";
    CheckDrift: "the machine stayed what it was" | "머신 상태가 끝까지 유지됨" | "机器自始至终保持原样";
    CheckWarmUp: "steady before the window" | "측정 전 안정 상태 도달" | "测量前已达稳态";
    CheckInterleaving: "arms took turns in random order" | "대상들을 무작위 순서로 번갈아 실행함" | "各方案按随机顺序轮流运行";
    CheckSchedule: "the schedule was finished" | "계획한 일정을 마침" | "已完成全部计划";
    CheckDistinct: "no two arms are the same" | "서로 같은 비교 대상이 없음" | "没有两个相同的方案";
    CheckRing: "arms use the driver that they name" | "비교 대상이 지정한 드라이버를 씀" | "各方案使用其指定的驱动";
    CheckBuild: "programs are release builds" | "프로그램이 릴리스 빌드임" | "程序均为发布构建";
    CheckFiles: "no program changed meanwhile" | "도중에 바뀐 프로그램 없음" | "运行期间程序没有变化";
    CheckItself: "the baseline agrees with itself" | "기준이 자기 자신과 일치" | "基线与自身一致";
}

/// The words for requests in place of echo's for messages.
pub(crate) fn of_requests(word: Word) -> Word {
    match word {
        Word::LatencyHelp => Word::LatencyHelpRequest,
        Word::WhyTitle => Word::WhyTitleRequest,
        other => other,
    }
}

/// The words for orders in place of echo's for messages.
pub(crate) fn of_orders(word: Word) -> Word {
    match word {
        Word::LatencyHelp => Word::LatencyHelpOrder,
        Word::WhyTitle => Word::WhyTitleOrder,
        Word::MeasuredThroughput => Word::MeasuredRatio,
        other => other,
    }
}

/// The words for operations on a disk in place of echo's for messages.
pub(crate) fn of_operations(word: Word) -> Word {
    match word {
        Word::FiguresTitle => Word::FiguresTitleOperation,
        Word::LatencyTitle => Word::LatencyTitleOperation,
        Word::LatencyHelp => Word::LatencyHelpOperation,
        Word::NoLatency => Word::NoLatencyOperation,
        Word::ResponseTime => Word::LatencyOperation,
        Word::WhyTitle => Word::WhyTitleOperation,
        Word::PublishedHelp => Word::PublishedHelpOperation,
        Word::MeasuredThroughput => Word::MeasuredHere,
        Word::MeasuredCpu => Word::MeasuredCpuOperation,
        other => other,
    }
}

/// The word of a verdict on this metric: CPU is less or more, and only a time is faster or slower.
pub(crate) fn verdict(metric: Metric, verdict: Verdict) -> Word {
    match (verdict, metric.row().family) {
        (Verdict::Better, family) => better(family),
        (Verdict::Worse, family) => worse(family),
        (Verdict::Equivalent, _) => Word::Equivalent,
        (Verdict::Inconclusive, _) => Word::Inconclusive,
        (Verdict::NotComparable, _) => Word::NotComparable,
        (Verdict::NoClaim, _) => Word::NoClaim,
    }
}

/// The word of a verdict on a frontier, which is about the baseline. If nothing is undecided, a setting that is
/// neither ahead nor behind is a trade-off, and known to be one.
pub(crate) fn frontier_verdict(verdict: Verdict, is_open: bool) -> Word {
    match verdict {
        Verdict::Better => Word::AheadOfAll,
        Verdict::Worse => Word::BehindOne,
        Verdict::Inconclusive if !is_open => Word::BehindOne,
        Verdict::Equivalent => Word::StandingLevel,
        Verdict::Inconclusive | Verdict::NotComparable | Verdict::NoClaim => Word::StandingOpen,
    }
}

/// The word of an improvement.
fn better(family: Family) -> Word {
    match family {
        Family::Cpu => Word::LessCpu,
        Family::Rate => Word::HigherRate,
        Family::Time => Word::Faster,
        Family::Events => Word::Fewer,
        Family::Memory => Word::LessMemory,
    }
}

/// The word of the opposite.
fn worse(family: Family) -> Word {
    match family {
        Family::Cpu => Word::MoreCpu,
        Family::Rate => Word::LowerRate,
        Family::Time => Word::Slower,
        Family::Events => Word::More,
        Family::Memory => Word::MoreMemory,
    }
}

/// A sign for the word, so that verdicts differ by shape and not only by colour.
pub(crate) fn verdict_sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "✓",
        Verdict::Worse => "✗",
        Verdict::Equivalent => "=",
        Verdict::Inconclusive => "?",
        Verdict::NotComparable => "–",
        Verdict::NoClaim => "·",
    }
}

/// The word of a cell's role.
pub(crate) fn role(role: CellRole) -> Word {
    match role {
        CellRole::Primary => Word::Primary,
        CellRole::Confirmatory => Word::Confirmatory,
        CellRole::Exploratory => Word::Exploratory,
    }
}

/// Explanations of the most important engine counters.
const COUNTERS: [(&str, [&str; 3]); 24] = [
    ("turns", ["turns of the event loop", "이벤트 루프 반복", "事件循环轮次"]),
    ("waits", ["turns that could sleep", "대기할 수 있던 반복", "允许休眠的轮次"]),
    ("completions", ["events from the kernel", "커널이 전달한 이벤트", "内核送达的事件"]),
    ("submissions", ["requests queued to the kernel", "커널에 제출한 요청", "提交给内核的请求"]),
    ("enters", ["io_uring_enter calls", "io_uring_enter 호출", "io_uring_enter 调用"]),
    (
        "wait_calls",
        [
            "wait calls (epoll_wait, poll, …)",
            "대기 호출(epoll_wait, poll 등)",
            "等待调用（epoll_wait、poll 等）",
        ],
    ),
    ("recv_calls", ["recv calls", "recv 호출", "recv 调用"]),
    ("send_calls", ["send calls", "send 호출", "send 调用"]),
    ("interest_calls", ["epoll_ctl calls", "epoll_ctl 호출", "epoll_ctl 调用"]),
    ("poll_calls", ["ppoll calls beside the waits", "대기 외의 ppoll 호출", "等待之外的 ppoll 调用"]),
    ("accept_calls", ["accept4 calls", "accept4 호출", "accept4 调用"]),
    ("setup_calls", ["other calls on sockets", "그 밖의 소켓 호출", "其他套接字调用"]),
    ("wake_calls", ["reads and writes of the eventfd", "eventfd 읽기와 쓰기", "eventfd 读写"]),
    ("file_calls", ["calls on files", "파일 호출", "文件调用"]),
    ("receives", ["receives with data", "데이터를 받은 수신", "收到数据的接收"]),
    ("sends", ["sends", "송신", "发送"]),
    ("sends_short", ["sends cut short", "일부만 보낸 송신", "未发完的发送"]),
    ("would_block", ["attempts that found nothing", "처리할 것이 없던 시도", "无事可做的尝试"]),
    ("rearms", ["operations started again", "다시 시작한 작업", "重新启动的操作"]),
    ("buffers_exhausted", ["receives without a free buffer", "빈 버퍼가 없던 수신", "无空闲缓冲区的接收"]),
    ("receives_full", ["receives that filled the buffer", "버퍼를 가득 채운 수신", "填满缓冲区的接收"]),
    ("bytes_received", ["bytes received", "받은 바이트", "接收字节"]),
    ("bytes_sent", ["bytes sent", "보낸 바이트", "发送字节"]),
    ("task_polls", ["task polls", "태스크 실행", "任务轮询"]),
];

/// The explanation of an engine counter; `None` if its name must do.
pub(crate) fn counter(name: &str, language: Language) -> Option<&'static str> {
    COUNTERS.iter().find(|(counter, _)| *counter == name).map(|(_, texts)| language.choose(*texts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_written_in_its_own_script() {
        let same_everywhere = [Word::DetectableShort, Word::PHolm, Word::PValue, Word::Steal];
        for word in Word::ALL.iter().filter(|word| !same_everywhere.contains(word)) {
            let [english, korean, chinese] = Language::ALL.map(|language| word.text(language));
            assert!(english.is_ascii() || english.contains(['←', '→', '▼']), "{english}");
            assert!(korean.chars().any(|letter| ('가'..='힣').contains(&letter)), "{word:?}: {korean}");
            assert!(chinese.chars().any(|letter| ('一'..='鿿').contains(&letter)), "{word:?}: {chinese}");
            assert!(!chinese.chars().any(|letter| ('가'..='힣').contains(&letter)), "{word:?}: {chinese}");
        }
    }

    #[test]
    fn an_http_study_never_speaks_of_messages() {
        for word in Word::ALL.iter().map(|word| of_requests(*word)) {
            let texts = Language::ALL.map(|language| word.text(language));
            for (text, message) in texts.into_iter().zip(["essage", "메시지", "消息"]) {
                assert!(!text.contains(message), "{word:?}: {text}");
            }
        }
    }

    #[test]
    fn a_study_of_storage_never_speaks_of_messages_or_of_servers_that_answer() {
        for word in Word::ALL.iter().map(|word| of_operations(*word)) {
            let texts = Language::ALL.map(|language| word.text(language));
            for (text, message) in texts.into_iter().zip(["essage", "메시지", "消息"]) {
                assert!(!text.contains(message), "{word:?}: {text}");
            }
        }
    }

    #[test]
    fn verdict_words_differ_from_each_other_in_every_language() {
        let words = [
            Word::Faster,
            Word::Slower,
            Word::Equivalent,
            Word::Inconclusive,
            Word::NotComparable,
            Word::NoClaim,
        ];
        for language in Language::ALL {
            for (index, word) in words.iter().enumerate() {
                assert!(words[..index].iter().all(|other| other.text(language) != word.text(language)));
            }
        }
    }
}
