//! Results of a study's validity checks.

use weir_record::finding::{
    ArmExclusions, CallsApart, CallsLacking, FailedTrial, MessageKind, MessagesInSlices, OfBaseline,
    OfEvidence, OfLoad, OfNoise, OfResponses, OfSchedule, OfStates, OfStorage, OrderEffect, PlantedApart,
    RateHeld, RoundComponents, SegmentsOfArm, SlicePlace, Stopped, UnitKind, WarmingArm,
};

use super::phrases::{failed_trial, failure_classes, per, plural, units_of};
use crate::{
    format::{self, count, percent},
    language::{Language, localized},
};

const NOTHING_COMPARED: [&str; 3] = [
    "no response came back, so that no byte could be compared",
    "돌아온 응답이 없어 비교할 바이트가 없음",
    "没有任何响应返回，无字节可比较",
];

pub(super) fn of_responses(language: Language, finding: OfResponses<'_>) -> String {
    match finding {
        OfResponses::BytesCompared { expected: 0, .. } => language.choose(NOTHING_COMPARED).to_owned(),
        OfResponses::BytesCompared { compared, expected, wrong } => {
            let (compared, expected, wrong) = (count(*compared), count(*expected), count(*wrong));
            localized!(
                language,
                "{compared} of {expected} bytes compared, {wrong} responses wrong",
                "{expected}바이트 중 {compared}바이트 비교, 잘못된 응답 {wrong}건",
                "共 {expected} 字节，已比较 {compared} 字节，{wrong} 个响应有误",
            )
        }
        OfResponses::ResponsesChecked {
            bytes,
            bytes_expected,
            compared,
            responses,
            compared_share,
            wrong,
        } => {
            let (bytes, expected, wrong) = (count(*bytes), count(*bytes_expected), count(*wrong));
            let (compared, responses) = (count(*compared), count(*responses));
            let share = percent(*compared_share);
            localized!(
                language,
                "{bytes} of {expected} content bytes checked for framing and length; {compared} of {responses} responses \
                 compared byte for byte ({share}), {wrong} wrong",
                "본문 {expected}바이트 중 {bytes}바이트의 프레이밍과 길이 확인, 응답 {responses}건 중 {compared}건({share})을 \
                 바이트 단위로 비교, 잘못된 응답 {wrong}건",
                "共 {expected} 字节内容，已检查 {bytes} 字节的分帧与长度；{responses} 个响应中逐字节比较 {compared} \
                 个（{share}），有误 {wrong} 个",
            )
        }
        OfResponses::RepliesChecked { checked, inversions, unbalanced, trials } => {
            let (checked, inversions) = (count(*checked), count(*inversions));
            localized!(
                language,
                "{checked} replies checked for their number and their turn, {inversions} out of turn; shares do not add \
                 up in {unbalanced} of {trials} trials",
                "응답 {checked}건의 번호와 순서 확인, 순서가 어긋난 것 {inversions}건, 주식 수가 맞지 않는 시행 {trials}회 중 \
                 {unbalanced}회",
                "已检查 {checked} 条回报的编号与次序，{inversions} 条次序有误；{trials} 次试验中有 {unbalanced} 次股数不符",
            )
        }
        OfResponses::Failures { count: 0, .. } => {
            language.choose(["no response failed", "실패한 응답 없음", "没有响应失败"]).to_owned()
        }
        OfResponses::Failures { count: failed, classes } => {
            let (failed, classes) = (count(*failed), failure_classes(language, classes));
            localized!(
                language,
                "{failed} responses failed: {classes}",
                "응답 {failed}건 실패: {classes}",
                "{failed} 个响应失败：{classes}",
            )
        }
        OfResponses::Reports { missing: 0, trials, .. } => localized!(
            language,
            "all {trials} trials gave a report",
            "시행 {trials}회 모두 결과를 냄",
            "全部 {trials} 次试验都给出了报告",
        ),
        OfResponses::Reports { missing, trials, first } => {
            reports(language, (*missing, *trials), first.as_ref())
        }
    }
}

/// Number of trials without a report, and the first failure.
fn reports(language: Language, (missing, trials): (u64, u64), first: Option<&FailedTrial>) -> String {
    let first = first
        .as_ref()
        .map(|first| format!("{}{}{}", first.arm, language.colon(), failed_trial(language, first)));
    let first = first.unwrap_or_default();
    localized!(
        language,
        "{missing} of {trials} trials gave no report; first: {first}",
        "시행 {trials}회 중 {missing}회가 결과를 내지 못함. 첫 사례: {first}",
        "{trials} 次试验中有 {missing} 次没有给出报告；第一次：{first}",
    )
}

pub(super) fn of_load(language: Language, finding: OfLoad<'_>) -> String {
    match finding {
        OfLoad::LittlesLaw { kind, error, over, trials, error_max } => {
            let (kind, error, limit) = (plural(language, *kind), percent(*error), percent(*error_max));
            localized!(
                language,
                "{kind} in flight as counted and as throughput times latency differ by {error} in the median trial; \
                 {over} of {trials} trials over {limit} (and what the window's edges explain) and excluded",
                "직접 센 동시 {kind} 수와 ‘처리량 × 지연시간’의 차이는 시행 중앙값 {error}. 시행 {trials}회 중 {over}회가 \
                 {limit}(와 측정 구간 경계로 설명되는 몫)를 넘어 제외됨",
                "在途{kind}数的计数值与“吞吐量 × 延迟”之差，中位数为 {error}；{trials} 次试验中有 {over} 次超过 \
                 {limit}（以及窗口边缘所能解释的部分），已剔除",
            )
        }
        OfLoad::GeneratorLimit { bound, trials } => localized!(
            language,
            "the generator was the limit in {bound} of {trials} closed-loop trials",
            "폐쇄형 부하 시행 {trials}회 중 {bound}회에서 부하 생성기가 한계였음",
            "{trials} 次闭环试验中有 {bound} 次受限于负载生成器",
        ),
        OfLoad::NoOpenLoop => {
            language.choose(["no open-loop cell", "개방형 부하 조건 없음", "没有开环条件"]).to_owned()
        }
        OfLoad::RateKept { missed, starts, least } => {
            let (missed, starts) = (count(*missed), count(*starts));
            let least = least.as_ref().map(|least| rate_held(language, least)).unwrap_or_default();
            localized!(
                language,
                "{missed} of {starts} intended starts were missed in open loop{least}",
                "개방형 부하에서 예정된 전송 {starts}건 중 {missed}건을 놓침{least}",
                "开环中 {starts} 次预定发送错过了 {missed} 次{least}",
            )
        }
        OfLoad::CompletionOverflows { count } => localized!(
            language,
            "{count} completion queue overflows",
            "완료 큐 넘침 {count}회",
            "完成队列溢出 {count} 次",
        ),
        OfLoad::LinkLosses { dropped, resent, packets, share_max } => {
            link_losses(language, [*dropped, *resent, *packets], *share_max)
        }
        OfLoad::WarmUp { trials: 0, .. } => language
            .choose([
                "slices are primed; no whole trial needed a warm-up",
                "슬라이스는 매번 예열하므로 준비 구간이 필요한 시행 없음",
                "各时间片都已预热，没有需要预热期的完整试验",
            ])
            .to_owned(),
        OfLoad::WarmUp { steady, trials } => localized!(
            language,
            "steady before the window in {steady} of {trials} trials; the others ran to the cap",
            "시행 {trials}회 중 {steady}회가 측정 전 안정 상태에 도달. 나머지는 준비 시간 상한까지 실행",
            "{trials} 次试验中有 {steady} 次在测量前已达稳态；其余运行到预热上限",
        ),
        OfLoad::ChainWhole { whole, trials } => localized!(
            language,
            "without questions about numbers, the gateway received exactly twice what the exchange received in {whole} of \
             {trials} trials",
            "번호 조회를 빼면 시행 {trials}회 중 {whole}회에서 게이트웨이 수신이 거래소 수신의 정확히 두 배",
            "不计编号查询，{trials} 次试验中有 {whole} 次网关接收量恰为交易所的两倍",
        ),
        OfLoad::WakesRecovered { recovered, pushed } => wakes_recovered(language, *recovered, *pushed),
    }
}

fn wakes_recovered(language: Language, recovered: u64, pushed: u64) -> String {
    let (recovered, pushed) = (count(recovered), count(pushed));
    localized!(
        language,
        "{recovered} of {pushed} messages handed over lay until the once-a-second look",
        "넘긴 메시지 {pushed}건 중 {recovered}건이 1초 주기 점검 때까지 방치됨",
        "交出的 {pushed} 条消息中有 {recovered} 条滞留到每秒一次的检查",
    )
}

fn link_losses(language: Language, counted: [u64; 3], share_max: f64) -> String {
    let ([dropped, resent, packets], limit) = (counted.map(count), percent(share_max));
    localized!(
        language,
        "the interfaces of both hosts dropped {dropped} of {packets} packets and TCP sent {resent} segments again; the \
         limit of each is {limit} of the packets",
        "양쪽 인터페이스가 패킷 {packets}개 중 {dropped}개를 버렸고 TCP가 세그먼트 {resent}개를 재전송함. 각각 한도 {limit}",
        "两端网卡在 {packets} 个数据包中丢弃 {dropped} 个，TCP 重传 {resent} 个报文段；各自上限为 {limit}",
    )
}

pub(super) fn of_storage(language: Language, finding: OfStorage<'_>) -> String {
    match finding {
        OfStorage::OperationsCounted { operations, error, error_max } => {
            let (operations, error, limit) = (count(*operations), percent(*error), percent(*error_max));
            localized!(
                language,
                "{operations} operations by the kernel's account of the bytes; the tools' own rates differ from it by \
                 {error} in the median trial, at most {limit} are allowed",
                "커널이 집계한 바이트 기준 I/O {operations}회. 도구가 보고한 속도와의 차이는 시행 중앙값 {error}(허용 {limit})",
                "按内核的字节统计共 {operations} 次 I/O；与工具自报速率之差，中位数为 {error}，至多允许 {limit}",
            )
        }
        OfStorage::InFlightAsGiven { surplus, over, trials, surplus_max } => {
            let (surplus, limit) = (percent(*surplus), percent(*surplus_max));
            localized!(
                language,
                "operations a second times mean latency exceed the operations in flight by {surplus} in the median \
                 trial; {over} of {trials} trials over {limit} and excluded",
                "‘초당 I/O × 평균 지연시간’이 동시 I/O 수를 넘는 정도는 시행 중앙값 {surplus}. 시행 {trials}회 중 {over}회가 \
                 {limit}를 넘어 제외됨",
                "“每秒 I/O × 平均延迟”超出在途 I/O 数，中位数为 {surplus}；{trials} 次试验中有 {over} 次超过 {limit}，已剔除",
            )
        }
        OfStorage::RequestsTaken { taken, most } => {
            let (taken, most) = (count(*taken), count(*most));
            localized!(
                language,
                "{taken} of {most} requests of the machine are taken",
                "머신 전체 요청 {most}개 중 {taken}개 사용 중",
                "整机 {most} 个请求中已占用 {taken} 个",
            )
        }
        OfStorage::Repeatable { same, repeats, simulated } => {
            let (same, repeats, simulated) = (count(*same), count(*repeats), count(*simulated));
            localized!(
                language,
                "{simulated} trials are computed and depend on the seed alone; {same} of {repeats} that were computed \
                 twice came out the same bit for bit",
                "시행 {simulated}건은 시드에만 따라 계산한 것이며, 두 번 계산한 {repeats}건 가운데 {same}건이 비트까지 같음",
                "{simulated} 次试验由计算得出，只取决于种子；计算两遍的 {repeats} 次中有 {same} 次逐位相同",
            )
        }
        OfStorage::NotAsked => language
            .choose([
                "headroom of the generator, the offered rate and a steady warm-up: a storage job is its own load and \
                 waits for its own operations, after a ramp of fixed length",
                "부하 생성기의 여유, 목표 부하율, 안정된 준비 구간. 스토리지 작업은 그 자체가 부하이고 자신의 I/O를 기다리며, 준비 \
                 시간은 정해져 있음",
                "负载生成器的余量、设定的负载速率与稳态预热：存储任务自身就是负载，等待自己的 I/O，预热时长固定",
            ])
            .to_owned(),
    }
}

/// Number of an arm's excluded trials.
fn excluded(language: Language, arm: &ArmExclusions) -> String {
    match language {
        Language::English => format!("{} {} of {}", arm.arm, arm.excluded, arm.trials),
        Language::Korean => format!("{} {}회 중 {}회", arm.arm, arm.trials, arm.excluded),
        Language::Chinese => format!("{} {} 次中 {} 次", arm.arm, arm.trials, arm.excluded),
    }
}

pub(super) fn of_noise(language: Language, finding: OfNoise<'_>) -> String {
    match finding {
        OfNoise::Steal { share, unit: UnitKind::Round, .. } => {
            let share = percent(*share);
            localized!(
                language,
                "{share} of CPU time stolen by the hypervisor (median); arms that take turns meet it alike, so nothing \
                 was excluded",
                "하이퍼바이저 스틸은 CPU 시간의 {share}(중앙값). 번갈아 실행되는 대상들이 똑같이 겪으므로 제외한 것은 없음",
                "虚拟机监控程序的 steal 占 CPU 时间 {share}（中位数）；各方案轮流运行，所受影响相同，因此没有剔除",
            )
        }
        OfNoise::Steal { share, over, trials, share_max, .. } => {
            let (share, limit) = (percent(*share), percent(*share_max));
            localized!(
                language,
                "{share} of CPU time stolen by the hypervisor in the median trial; {over} of {trials} trials over {limit} \
                 and excluded",
                "하이퍼바이저 스틸은 시행 중앙값 {share}. 시행 {trials}회 중 {over}회가 {limit}를 넘어 제외됨",
                "虚拟机监控程序的 steal，中位数为 {share}；{trials} 次试验中有 {over} 次超过 {limit}，已剔除",
            )
        }
        OfNoise::ForeignCpu { cpus, unit: UnitKind::Round, .. } => {
            let cpus = format!("{cpus:.3}");
            localized!(
                language,
                "other processes used {cpus} of a CPU (median); arms that take turns meet them alike, so nothing was set \
                 aside",
                "다른 프로세스가 쓴 CPU는 {cpus}개(중앙값). 번갈아 실행되는 대상들이 똑같이 겪으므로 제외한 것은 없음",
                "其他进程占用 {cpus} 个 CPU（中位数）；各方案轮流运行，所受影响相同，因此没有剔除",
            )
        }
        OfNoise::ForeignCpu { cpus, over, trials, .. } => {
            let cpus = format!("{cpus:.3}");
            localized!(
                language,
                "other processes used {cpus} of a CPU in the median trial; {over} of {trials} trials had more beside them \
                 than always runs on this machine and were excluded",
                "다른 프로세스가 쓴 CPU는 시행 중앙값 {cpus}개. 시행 {trials}회 중 {over}회가 이 머신의 평상시보다 많아 제외됨",
                "其他进程占用的 CPU，中位数为 {cpus} 个；{trials} 次试验中有 {over} 次高于本机常态，已剔除",
            )
        }
        OfNoise::ExclusionsByArm { arms, p_value } => {
            let of = |arm: &ArmExclusions| excluded(language, arm);
            let arms = arms.iter().map(of).collect::<Vec<_>>().join(language.list());
            let p = format::probability(Some(*p_value));
            localized!(
                language,
                "trials excluded for noise, attempts included: {arms} (p = {p} that the arms differ by chance)",
                "노이즈로 제외된 시행(재시도 포함): {arms}. 우연히 이만큼 차이 날 확률 p = {p}",
                "因噪声剔除的试验（含重试）：{arms}；差异出于偶然的概率 p = {p}",
            )
        }
        OfNoise::SliceOrder { effects, change_max } => {
            let effects: Vec<String> = effects.iter().map(|effect| order_effect(language, effect)).collect();
            let (effects, limit) = (effects.join(language.list()), format!("{:.2} %", 100.0 * change_max));
            localized!(
                language,
                "change of the baseline's own CPU per message: {effects}; at most {limit} is allowed where it is more \
                 than noise",
                "기준 자신의 메시지당 CPU 변화: {effects}. 노이즈보다 클 때 허용되는 변화는 {limit}까지",
                "基线自身每条消息 CPU 的变化：{effects}；超出噪声时至多允许 {limit}",
            )
        }
    }
}

/// The second half of the rounds against the first.
fn drift(
    language: Language,
    (foreign_cpus, foreign_cpus_change_max): ((f64, f64), f64),
    medians: Option<(f64, f64)>,
    cells: u32,
    (change_max, kind): (f64, MessageKind),
) -> String {
    let [first, second, cpus_max] =
        [foreign_cpus.0, foreign_cpus.1, foreign_cpus_change_max].map(|cpus| format!("{cpus:.2}"));
    let (limit, per) = (percent(change_max), per(language, kind));
    let baseline = match medians {
        Some((cpu, rate)) => {
            let [cpu, rate] = [cpu, rate].map(|ratio| format::ratio(Some(ratio)));
            localized!(
                language,
                "the baseline took {cpu} times the CPU per {per} at {rate} times the throughput (median of {cells} cells)",
                "기준의 {per}당 CPU는 {cpu}배, 처리량은 {rate}배(조건 {cells}개의 중앙값)",
                "基线每{per} CPU 为 {cpu} 倍，吞吐量为 {rate} 倍（{cells} 个条件的中位数）",
            )
        }
        None => language
            .choose([
                "no cell has rounds enough of the baseline in both halves",
                "양쪽 모두에 기준의 라운드가 충분한 조건이 없음",
                "没有条件在前后两半都有足够的基线轮次",
            ])
            .to_owned(),
    };
    localized!(
        language,
        "second half of the rounds against the first: {baseline}, and other processes used {second} of a CPU after {first}; \
         at most {limit} and {cpus_max} of a CPU are allowed",
        "라운드 전반 대비 후반: {baseline}, 다른 프로세스가 쓴 CPU는 {first}개에서 {second}개로 변함. 허용 범위는 {limit}, CPU \
         {cpus_max}개",
        "后半轮次与前半相比：{baseline}，其他进程占用的 CPU 由 {first} 个变为 {second} 个；允许至多 {limit} 与 {cpus_max} 个 CPU",
    )
}

/// Segments per message, in short slices and in long ones.
fn segments(language: Language, arms: &[SegmentsOfArm], change_max: f64) -> String {
    let one = |of: &SegmentsOfArm| {
        let [slices, long] = [of.in_slices, of.in_long].map(|each| format!("{each:.3}"));
        let SegmentsOfArm { arm, cell_id, .. } = of;
        localized!(
            language,
            "{arm} {slices} and {long} ({cell_id})",
            "{arm} {slices}, {long}({cell_id})",
            "{arm} {slices} 与 {long}（{cell_id}）",
        )
    };
    let arms = arms.iter().map(one).collect::<Vec<_>>().join(language.list());
    let limit = percent(change_max);
    localized!(
        language,
        "TCP segments a message in slices and in long ones: {arms}; they may differ by {limit} where that is more than \
         noise",
        "메시지당 TCP 세그먼트(슬라이스, 긴 구간): {arms}. 노이즈보다 클 때 허용되는 차이는 {limit}까지",
        "每条消息的 TCP 报文段（时间片与长时段）：{arms}；超出噪声时至多允许相差 {limit}",
    )
}

/// Messages on each connection in a slice.
fn slice_messages(language: Language, arms: &[MessagesInSlices], each_min: u32) -> String {
    let one = |of: &MessagesInSlices| {
        let [length, needed] = [of.length_ns, of.needed_ns].map(|ns| format!("{:.0}", ns as f64 / 1e6));
        let (MessagesInSlices { arm, cell_id, .. }, each) = (of, format!("{:.1}", of.each));
        localized!(
            language,
            "{arm} {each} in {length} ms ({cell_id}; {each_min} take {needed} ms)",
            "{arm} {length} ms에 {each}개({cell_id}, {each_min}개에는 {needed} ms 필요)",
            "{arm} {length} ms 内 {each} 条（{cell_id}，{each_min} 条需 {needed} ms）",
        )
    };
    let arms = arms.iter().map(one).collect::<Vec<_>>().join(language.list());
    localized!(
        language,
        "messages on each connection in a slice: {arms}; with fewer than {each_min} most of it is ramp and drain",
        "슬라이스에서 연결마다 처리한 메시지: {arms}. {each_min}개보다 적으면 대부분이 시작·마무리 구간임",
        "一个时间片内每个连接的消息：{arms}；少于 {each_min} 条时主要是启动与收尾",
    )
}

/// How the cost of a message changes within rounds.
fn warming(language: Language, arms: &[WarmingArm], change_max: f64) -> String {
    let one = |of: &WarmingArm| {
        let [change, low, high] =
            [of.change, of.interval.0, of.interval.1].map(|it| format!("{:+.2}", 100.0 * it));
        format!("{} {change} % [{low}, {high}] ({})", of.arm, of.cell_id)
    };
    let arms = arms.iter().map(one).collect::<Vec<_>>().join(language.list());
    let limit = format!("{:.2} %", 100.0 * change_max);
    localized!(
        language,
        "CPU per message in the last third of a round against the first, beyond what the other side's did: {arms}; where \
         it is more than {limit} and than noise, a server was not warm and needs a `warmup`",
        "라운드 첫 1/3 대비 마지막 1/3의 메시지당 CPU 변화(상대의 변화 제외): {arms}. {limit}와 노이즈보다 크면 서버가 예열되지 않은 \
         것이므로 `warmup`이 필요함",
        "每轮最后三分之一相对最初三分之一的每条消息 CPU 变化（已扣除对方的变化）：{arms}；超过 {limit} 且超出噪声时，服务器尚未预热，\
         需要 `warmup`",
    )
}

/// Components of the rounds' variance.
fn components(language: Language, arms: &[RoundComponents]) -> String {
    let one = |of: &RoundComponents| {
        let RoundComponents { arm, permutations, rounds, permutations_best, rounds_best, .. } = of;
        let (within, between) = (percent(of.within), percent(of.between));
        localized!(
            language,
            "{arm} {within} within and {between} between {rounds} rounds of {permutations} permutations, in whose time \
             {rounds_best} rounds of {permutations_best} would do best",
            "{arm} 라운드 안 {within}, 라운드 간 {between}(순열 {permutations}개씩 {rounds}회). 같은 시간이면 순열 \
             {permutations_best}개씩 {rounds_best}회가 최선",
            "{arm} 轮内 {within}、轮间 {between}（{rounds} 轮，每轮 {permutations} 个排列），同样时间内以 {rounds_best} 轮、每轮 \
             {permutations_best} 个排列为最佳",
        )
    };
    let arms = arms.iter().map(one).collect::<Vec<_>>().join(language.semicolon());
    localized!(
        language,
        "standard deviation of a round's ratio: {arms}",
        "라운드 비율의 표준편차: {arms}",
        "每轮比值的标准差：{arms}",
    )
}

fn order_effect(language: Language, effect: &OrderEffect) -> String {
    let signed = |share: f64| format!("{:+.2}", 100.0 * share);
    let (change, low, high) = (signed(effect.change), signed(effect.interval.0), signed(effect.interval.1));
    let cell = &effect.cell_id;
    match &effect.place {
        SlicePlace::GoingFirst => localized!(
            language,
            "{change} % [{low}, {high}] going first ({cell})",
            "먼저 실행될 때 {change} % [{low}, {high}]({cell})",
            "先运行时 {change} % [{low}, {high}]（{cell}）",
        ),
        SlicePlace::Following { arm } => localized!(
            language,
            "{change} % [{low}, {high}] following {arm} ({cell})",
            "{arm} 다음에 실행될 때 {change} % [{low}, {high}]({cell})",
            "紧接 {arm} 之后 {change} % [{low}, {high}]（{cell}）",
        ),
    }
}

/// Why the way between two cores was not read.
const NO_CROSS_CORE: [&str; 3] = [
    "no cross-core readings: the two sides do not have a CPU each",
    "코어 간 왕복 측정값 없음: 양쪽에 CPU를 하나씩 줄 수 없음",
    "没有核间往返读数：双方无法各占一个 CPU",
];

/// Why there is none.
const TWO_HOSTS: [&str; 3] = [
    "servers and generator run on two hosts, so that there is no way between two cores to read",
    "서버와 부하 생성기가 서로 다른 호스트에 있어 코어 간 왕복을 측정하지 않음",
    "服务器与负载生成器位于两台主机，无需读取核间往返",
];

pub(super) fn of_states(language: Language, finding: OfStates<'_>) -> String {
    match finding {
        OfStates::NoTrial => {
            language.choose(["no trial was run", "실행된 시행 없음", "没有运行任何试验"]).to_owned()
        }
        OfStates::NoCrossCore => language.choose(NO_CROSS_CORE).to_owned(),
        OfStates::TwoHosts => language.choose(TWO_HOSTS).to_owned(),
        OfStates::MachineDrift {
            foreign_cpus,
            foreign_cpus_change_max,
            server_cpu,
            throughput,
            cells,
            change_max,
            kind,
        } => {
            let foreign = (*foreign_cpus, *foreign_cpus_change_max);
            drift(language, foreign, server_cpu.zip(*throughput), *cells, (*change_max, *kind))
        }
        OfStates::OneState { ns, trials } => {
            let ns = format::nanos(*ns);
            localized!(
                language,
                "one state, {ns} between the cores, in all {trials} trials",
                "상태 1개, 코어 간 왕복 {ns}, 시행 {trials}회 모두",
                "单一状态，核间往返 {ns}，全部 {trials} 次试验",
            )
        }
        OfStates::TwoStates { near_ns, far_ns, near, far, changed } if *near == 0 || *far == 0 => {
            let (ns, trials, other) =
                if *far == 0 { (near_ns, near, far_ns) } else { (far_ns, far, near_ns) };
            let (ns, other) = (format::nanos(*ns), format::nanos(*other));
            localized!(
                language,
                "one state, {ns} between the cores, in {trials} trials; no trial lay in the other one ({other}) as a whole, \
                 {changed} changed on the way",
                "상태 1개, 코어 간 왕복 {ns}, 시행 {trials}회. 다른 상태({other})에만 있던 시행은 없고, {changed}회는 도중에 바뀜",
                "单一状态，核间往返 {ns}，{trials} 次试验；没有试验完全处于另一状态（{other}），{changed} 次中途变化",
            )
        }
        OfStates::TwoStates { near_ns, far_ns, near, far, changed } => {
            let (near_ns, far_ns) = (format::nanos(*near_ns), format::nanos(*far_ns));
            localized!(
                language,
                "two states, {near_ns} and {far_ns} between the cores: {near} trials in the near one, {far} in the far \
                 one, {changed} changed on the way",
                "상태 2개: 코어 간 지연이 짧은 상태(near, {near_ns}) {near}회, 긴 상태(far, {far_ns}) {far}회, 도중에 바뀜 {changed}회",
                "两种状态：核间延迟较短的状态（near，{near_ns}）{near} 次试验，较长的状态（far，{far_ns}）{far} 次，中途变化 {changed} 次",
            )
        }
        OfStates::Oversubscribed { threads, cpus } => localized!(
            language,
            "oversubscribed: {threads} threads share {cpus} CPUs, so that the figures are those of the scheduler as well",
            "CPU보다 스레드가 많음: 스레드 {threads}개가 CPU {cpus}개를 나눠 쓰므로 스케줄러의 영향도 포함된 수치",
            "线程多于 CPU：{threads} 个线程共用 {cpus} 个 CPU，数字也包含调度器的影响",
        ),
        OfStates::FarState => language
            .choose([
                "compared in the machine's far state, which most clean trials of this cell met",
                "이 조건의 정상 시행 대부분이 코어 간 지연이 긴 상태(far)여서 그 상태에서 비교함",
                "在核间延迟较长的状态（far）下比较，该条件的多数有效试验处于此状态",
            ])
            .to_owned(),
    }
}

pub(super) fn of_evidence(language: Language, finding: OfEvidence<'_>) -> String {
    match finding {
        OfEvidence::ProgramsComplete { missed, without_room, slices, failed } => {
            let seen = localized!(
                language,
                "in {slices} slices of evidence the kernel's programs missed {missed} events, and {without_room} threads \
                 and wake-ups found no room",
                "관찰 구간 {slices}개에서 커널 프로그램이 놓친 이벤트 {missed}건, 자리가 없던 스레드와 깨움 {without_room}건",
                "{slices} 个观测时间片中，内核程序漏掉 {missed} 个事件，{without_room} 个线程和唤醒没有位置可记",
            );
            if *failed == 0 {
                seen
            } else {
                format!("{seen}{}{}", language.semicolon(), unobserved(language, *failed))
            }
        }
        OfEvidence::CallsAgree { servers, apart } if apart.is_empty() => localized!(
            language,
            "engine and kernel counted the same system calls of every kind, of {servers} arms in their cells",
            "엔진과 커널이 센 시스템 콜이 종류마다 일치함(조건별 대상 {servers}개)",
            "引擎与内核统计的各类系统调用一致（各条件下共 {servers} 个方案）",
        ),
        OfEvidence::CallsAgree { servers, apart } => {
            let list: Vec<String> = apart.iter().map(|it| calls_apart(language, it)).collect();
            let list = list.join(language.semicolon());
            localized!(
                language,
                "of {servers} arms in their cells engine and kernel counted different system calls, which is a mistake of \
                 Weir's: {list}",
                "조건별 대상 {servers}개 중 엔진과 커널이 센 시스템 콜이 다른 것이 있음(Weir의 오류): {list}",
                "各条件下共 {servers} 个方案，其中引擎与内核统计的系统调用不同，这是 Weir 的错误：{list}",
            )
        }
        OfEvidence::CallsCover { servers, share_min, lacking } => {
            calls_cover(language, *servers, *share_min, lacking)
        }
        OfEvidence::PlantedLeads { differences, apart } if apart.is_empty() => localized!(
            language,
            "what was planted leads with its size in each of {differences} differences from the baseline",
            "기준과의 차이 {differences}건 모두에서 일부러 넣은 것이 그 크기로 맨 위에 옴",
            "与基线的 {differences} 项差异中，人为加入的部分均居首位且大小相符",
        ),
        OfEvidence::PlantedLeads { differences, apart } => {
            let list: Vec<String> = apart.iter().map(|it| planted_apart(language, it)).collect();
            let list = list.join(language.semicolon());
            localized!(
                language,
                "of {differences} differences from the baseline, what was planted does not lead or has another \
                 size: {list}",
                "기준과의 차이 {differences}건 중 일부러 넣은 것이 맨 위에 오지 않거나 크기가 다른 것이 있음: {list}",
                "与基线的 {differences} 项差异中，人为加入的部分未居首位或大小不符：{list}",
            )
        }
    }
}

fn planted_apart(language: Language, found: &PlantedApart) -> String {
    let PlantedApart { cell_id, arm, planted, part, ns, interval: (low, high), more_calls } = found;
    let [ns, low, high] = [*ns, *low, *high].map(format::nanos);
    let calls = more_calls.map_or_else(String::new, |more| {
        let more = format::per_message(more);
        localized!(
            language,
            ", {more} further calls a message",
            ", 메시지당 추가 호출 {more}회",
            "，每条消息多 {more} 次调用"
        )
    });
    localized!(
        language,
        "{arm} ({cell_id}) {planted}: {part} leads with {ns} [{low}, {high}]{calls}",
        "{arm}({cell_id}) {planted}: 맨 위는 {part} {ns} [{low}, {high}]{calls}",
        "{arm}（{cell_id}）{planted}：居首的是 {part} {ns} [{low}, {high}]{calls}",
    )
}

/// `; least often uring, in 116 of 120 slices of c100-d1-m64-open50pct`.
fn rate_held(language: Language, RateHeld { cell_id, arm, kept, of, unit }: &RateHeld) -> String {
    let slices = language.choose(match unit {
        UnitKind::Round => ["slices", "구간", "时间片"],
        UnitKind::Pair => ["trials", "시행", "试验"],
    });
    localized!(
        language,
        "; {arm} kept its rate least often, in {kept} of {of} {slices} of {cell_id}",
        ". 목표 부하율을 가장 적게 지킨 대상: {arm}({cell_id}, {slices} {of}회 중 {kept}회)",
        "；{arm} 保持速率的次数最少：在 {cell_id} 的 {of} 个{slices}中保持了 {kept} 个",
    )
}

fn calls_apart(language: Language, found: &CallsApart) -> String {
    let CallsApart { cell_id, arm, kind, engine, kernel } = found;
    let (engine, kernel) = (format::count(*engine), format::count(*kernel));
    localized!(
        language,
        "{arm} ({cell_id}) {kind}: {engine} by the engine, {kernel} by the kernel",
        "{arm}({cell_id}) {kind}: 엔진 {engine}, 커널 {kernel}",
        "{arm}（{cell_id}）{kind}：引擎 {engine}，内核 {kernel}",
    )
}

fn unobserved(language: Language, failed: u64) -> String {
    localized!(
        language,
        "{failed} further ones they could not observe",
        "그 밖의 구간 {failed}개는 관찰하지 못함",
        "另有 {failed} 个时间片未能观测",
    )
}

fn calls_cover(language: Language, servers: u64, share_min: f64, lacking: &[CallsLacking]) -> String {
    let least = percent(share_min);
    if lacking.is_empty() {
        return localized!(
            language,
            "of {servers} arms in their cells the calls that were seen moved {least} and more of what the messages need",
            "조건별 대상 {servers}개 모두에서, 관찰된 호출로 메시지에 필요한 양의 {least} 이상이 처리됨",
            "各条件下共 {servers} 个方案，所见调用均足以完成消息所需的 {least} 以上",
        );
    }
    let of_arm = |CallsLacking { cell_id, arm, share }: &CallsLacking| {
        let share = percent(*share);
        localized!(
            language,
            "{arm} ({cell_id}) {share}",
            "{arm}({cell_id}) {share}",
            "{arm}（{cell_id}）{share}"
        )
    };
    let list = lacking.iter().map(of_arm).collect::<Vec<String>>().join(language.semicolon());
    localized!(
        language,
        "of {servers} arms in their cells there are some whose calls, as they were seen, cannot have moved the messages, \
         so that their tables are not those of the data path; seen of what is needed, which is {least} at least: {list}",
        "조건별 대상 {servers}개 중 관찰된 호출만으로는 메시지를 옮길 수 없어 호출 표가 데이터 경로의 것이 아닌 것이 있음. 필요한 것 중 \
         관찰된 비율({least} 이상이어야 함): {list}",
        "各条件下共 {servers} 个方案，其中有的仅凭所见调用无法传送消息，其调用表并非数据路径的全部；所见占所需的比例（至少应为 {least}）：{list}",
    )
}

pub(super) fn of_schedule(language: Language, finding: OfSchedule<'_>) -> String {
    match finding {
        OfSchedule::Interleaving { matching, blocks, seed } => localized!(
            language,
            "{matching} of {blocks} blocks ran in the random order of seed {seed}",
            "블록 {blocks}개 중 {matching}개가 시드 {seed}의 무작위 순서대로 실행됨",
            "{blocks} 个区组中有 {matching} 个按随机种子 {seed} 的顺序运行",
        ),
        OfSchedule::Schedule { blocks_done: ran, blocks, blocks_to_repeat, has_near_state, stopped } => {
            let done = blocks_done(language, (*ran, *blocks), *blocks_to_repeat, *has_near_state);
            match stopped {
                None => done,
                Some(stopped) => cut(language, stopped, &done),
            }
        }
        OfSchedule::Unfinished { blocks_done, blocks } => localized!(
            language,
            "no verdict from an unfinished schedule: {blocks_done} of {blocks} blocks are done",
            "일정이 끝나지 않아 판정하지 않음: 블록 {blocks}개 중 {blocks_done}개 완료",
            "计划尚未完成，不作判定：{blocks} 个区组完成了 {blocks_done} 个",
        ),
    }
}

/// Why a schedule stopped.
fn cut(language: Language, stopped: &Stopped, done: &str) -> String {
    match stopped {
        Stopped::NothingToCompare { elapsed_ns } => {
            let elapsed = language.duration(*elapsed_ns);
            localized!(
                language,
                "nothing is left to compare after {elapsed}: {done}",
                "{elapsed} 뒤 비교할 대상이 남지 않음: {done}",
                "{elapsed}后已没有可比较的对象：{done}",
            )
        }
        Stopped::CutShort { elapsed_ns, cap_ns } => {
            let (elapsed, cap) = (language.duration(*elapsed_ns), language.duration(*cap_ns));
            localized!(
                language,
                "cut short after {elapsed}, with a time cap of {cap} for a session: {done}; weir study --resume goes on",
                "{elapsed} 뒤 중단됨(세션 시간 상한 {cap}): {done}. weir study --resume로 이어서 실행",
                "{elapsed}后中断（每次会话时间上限 {cap}）：{done}；可用 weir study --resume 继续",
            )
        }
    }
}

fn blocks_done(
    language: Language,
    (blocks_done, blocks): (u32, u32),
    blocks_to_repeat: u32,
    has_near_state: bool,
) -> String {
    let done = localized!(
        language,
        "{blocks_done} of {blocks} blocks are done",
        "블록 {blocks}개 중 {blocks_done}개 완료",
        "{blocks} 个区组已完成 {blocks_done} 个",
    );
    if blocks_to_repeat == 0 {
        return done;
    }
    let state = match has_near_state {
        true => language.choose([
            " in the near state",
            "코어 간 지연이 짧은 상태(near)의 ",
            "核间延迟较短的状态（near）下的",
        ]),
        false => "",
    };
    let lack = if blocks_to_repeat == 1 { "lacks" } else { "lack" };
    let lack = language.choose([lack, "없어", "缺少"]);
    localized!(
        language,
        "{done}, {blocks_to_repeat} of these {lack} a clean pair{state} and may be run again",
        "{done}, 그중 {blocks_to_repeat}개는 {state}정상 쌍이 {lack} 다시 실행할 수 있음",
        "{done}，其中 {blocks_to_repeat} 个{lack}{state}有效配对，可重新运行",
    )
}

pub(super) fn of_baseline(language: Language, finding: OfBaseline<'_>) -> String {
    match finding {
        OfBaseline::RoundComponents { arms } => components(language, arms),
        OfBaseline::Segments { arms, change_max } => segments(language, arms, *change_max),
        OfBaseline::SliceMessages { arms, each_min } => slice_messages(language, arms, *each_min),
        OfBaseline::Warming { arms, change_max } => warming(language, arms, *change_max),
        OfBaseline::NeverAgainstItself => language
            .choose([
                "the baseline was never paired with itself",
                "기준을 자기 자신과 짝지은 쌍이 없음",
                "基线从未与自身配对",
            ])
            .to_owned(),
        OfBaseline::AgainstItself { units, unit, kind, ratio, interval } => {
            let ratio = format::ratio_and_interval(Some(*ratio), *interval);
            let (units, per) = (units_of(language, *units, *unit), per(language, *kind));
            localized!(
                language,
                "over {units} the baseline's second run took {ratio} times the CPU per {per} of its first",
                "{units}에서 기준의 두 번째 실행은 {per}당 CPU를 첫 번째의 {ratio}배 씀",
                "在 {units}中，基线第二次运行的每{per} CPU 是第一次的 {ratio} 倍",
            )
        }
    }
}
