//! Every text of the study `polling` in three languages. `{0}`, `{1}` … stand for numbers and names.

use weir_record::sweep::{
    FrontierRule, GainStep, MethodRole, ObservationKind, Outcome, PlaneKind, Seen, SweepWorld,
};

use crate::language::Language;

macro_rules! texts {
    ($($name:ident: $english:literal | $korean:literal | $chinese:literal;)*) => {
        /// A text.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Text { $($name),* }

        impl Text {
            /// The text in one language.
            pub(crate) fn of(self, language: Language) -> &'static str {
                language.choose(match self {
                    $(Text::$name => [$english, $korean, $chinese],)*
                })
            }

            #[cfg(test)]
            pub(crate) const ALL: &[(&str, [&str; 3])] =
                &[$((stringify!($name), [$english, $korean, $chinese])),*];
        }
    };
}

impl Text {
    /// The text with its places filled.
    pub(crate) fn fill(self, language: Language, values: &[&str]) -> String {
        let mut text = self.of(language).to_owned();
        for (index, value) in values.iter().enumerate() {
            text = text.replace(&format!("{{{index}}}"), value);
        }
        text
    }
}

texts! {
    Study: "Study" | "연구" | "研究";
    Asks: "How often does a hybrid-polling sleep end too late, and can a prediction lower misses and CPU together?"
        | "하이브리드 폴링의 sleep은 얼마나 자주 늦게 끝나며, 예측으로 miss와 CPU를 함께 낮출 수 있는가?"
        | "混合轮询的睡眠有多常结束得太晚？预测能否同时降低 miss 与 CPU？";

    BadgeAhead: "ahead on both" | "두 축 모두 앞섬" | "两项都领先";
    BadgeNot: "not ahead everywhere" | "일부 조건에서 앞서지 못함" | "并非处处领先";
    BadgeOpen: "not decided" | "판정 보류" | "无法判定";

    Ahead: "Misses and CPU can be lowered together under background load: in the simulator's {3} one setting, {0}, has \
        no more misses, less CPU and no fewer IOPS, within the margins below, than {1} of {2} ratios of the kernel's mean, and \
        all other conditions hold."
        | "백그라운드 부하에서도 miss와 CPU를 함께 낮출 수 있습니다. 시뮬레이터의 {3}에서 한 가지 설정 {0}이(가) 커널 평균의 비율 {2}개 중 {1}개보다 \
        아래의 여유 안에서 miss가 더 많지 않고 CPU가 적으며 IOPS가 더 적지 않고, 나머지 조건도 모두 만족합니다."
        | "在后台负载下可以同时降低 miss 与 CPU：在模拟器的 {3} 中，同一设置 {0} 与内核均值的 {2} 个比例中的 {1} 个相比，在下述余量之内 miss 不更多、CPU 更少、IOPS 不更少，其余条件也都成立。";
    NotAhead: "Not shown in full: in the simulator's {3} one setting, {0}, has no more misses, less CPU and no fewer IOPS, \
        within the margins below, than {1} of {2} ratios of the kernel's mean; {4} of {5} conditions on held-out seeds and \
        traces hold, {6} fail."
        | "전부 입증되지는 않았습니다. 시뮬레이터의 {3}에서 한 가지 설정 {0}이(가) 커널 평균의 비율 {2}개 중 {1}개보다 아래의 여유 안에서 miss가 더 많지 않고 \
        CPU가 적으며 IOPS가 더 적지 않습니다. 미사용 시드와 트레이스의 조건 {5}개 중 {4}개를 만족하고 {6}개를 만족하지 못합니다."
        | "未能全部证实：在模拟器的 {3} 中，同一设置 {0} 与内核均值的 {2} 个比例中的 {1} 个相比，在下述余量之内 miss 不更多、CPU 更少、IOPS 不更少；留出种子与轨迹的 {5} 项条件中 {4} 项成立，{6} 项不成立。";
    OpenAhead: "Not decided yet: in the simulator's {3} one setting, {0}, has no more misses, less CPU and no fewer IOPS, \
        within the margins below, than {1} of {2} ratios of the kernel's mean; {4} of {5} conditions on held-out seeds and \
        traces hold and the rest are open."
        | "아직 판정할 수 없습니다. 시뮬레이터의 {3}에서 한 가지 설정 {0}이(가) 커널 평균의 비율 {2}개 중 {1}개보다 아래의 여유 안에서 miss가 더 많지 않고 \
        CPU가 적으며 IOPS가 더 적지 않습니다. 미사용 시드와 트레이스의 조건 {5}개 중 {4}개를 만족하고 나머지는 판정 보류입니다."
        | "尚无法判定：在模拟器的 {3} 中，同一设置 {0} 与内核均值的 {2} 个比例中的 {1} 个相比，在下述余量之内 miss 不更多、CPU 更少、IOPS 不更少；留出种子与轨迹的 {5} 项条件中 {4} 项成立，其余待定。";
    Margins: "Margins: half a point of misses, and half a percent of IOPS, which is ours. Literally, with any loss of IOPS \
        counted, {0} of {1} conditions that ask for no fewer IOPS hold and {2} fail; the largest loss is {3} %."
        | "여유: miss 0.5포인트, 그리고 저희가 둔 IOPS 0.5 %. IOPS 감소를 조금도 허용하지 않고 글자 그대로 보면 IOPS를 묻는 조건 {1}개 중 {0}개를 만족하고 \
        {2}개를 만족하지 못하며 가장 큰 감소는 {3} %입니다."
        | "余量：miss 为 0.5 个百分点，IOPS 为 0.5 %（后者是我们自定的）。按字面理解，即 IOPS 有任何下降都算，则在要求 IOPS 不更少的 {1} 项条件中 {0} 项成立、{2} 项不成立，最大降幅为 {3} %。";
    ByInterrupt: "In {0} it leaves {1} of the operations to the interrupt: what lowers both there is another way to \
        wait, not a better prediction."
        | "{0}에서는 연산의 {1}을(를) 인터럽트에 맡깁니다. 둘을 함께 낮춘 것은 더 나은 예측이 아니라 다른 대기 방식입니다."
        | "在 {0} 中，它把 {1} 的操作交给中断：同时降低两者的是另一种等待方式，而不是更好的预测。";
    BySleep: "In {0} it leaves {1} of the operations to the interrupt and sleeps before the others."
        | "{0}에서는 연산의 {1}을(를) 인터럽트에 맡기고 나머지는 sleep 뒤 폴링합니다."
        | "在 {0} 中，它把 {1} 的操作交给中断，其余先睡眠再轮询。";
    QuantileTrades: "A better prediction alone does not do it: from the kernel's default to a tracked quantile, {0} \
        changes by {1} points of misses and {2} points of CPU, along the same curve."
        | "더 나은 예측만으로는 부족합니다. 커널 기본값에서 분위수 추적으로 바꾸면 {0}에서 miss는 {1}포인트, CPU는 {2}포인트 바뀌어 같은 곡선을 따라 움직일 뿐입니다."
        | "仅靠更好的预测不够：从内核默认到分位数跟踪，{0} 的 miss 变化 {1} 个百分点，CPU 变化 {2} 个百分点，只是沿同一条曲线移动。";
    QuantileHelps: "A better prediction alone lowers both here: from the kernel's default to a tracked quantile, {0} \
        changes by {1} points of misses and {2} points of CPU."
        | "여기서는 더 나은 예측만으로도 둘 다 낮아집니다. 커널 기본값에서 분위수 추적으로 바꾸면 {0}에서 miss는 {1}포인트, CPU는 {2}포인트 바뀝니다."
        | "此处仅靠更好的预测就能同时降低两者：从内核默认到分位数跟踪，{0} 的 miss 变化 {1} 个百分点，CPU 变化 {2} 个百分点。";
    PriceAnswer: "In {0} waiting for the interrupt is the answer as long as a microsecond of latency is worth less than {1} \
        of CPU; beyond that, {2} buys it most cheaply."
        | "{0}에서는 지연시간 1 µs의 가치가 CPU {1}보다 낮은 동안은 인터럽트 대기가 답입니다. 그보다 높으면 {2}이(가) 가장 싸게 줄입니다."
        | "在 {0} 中，只要 1 µs 延迟的价值低于 {1} 的 CPU，就应等待中断；超过之后，{2} 换取延迟最便宜。";
    PriceNone: "In {0} nothing notices earlier than the interrupt." | "{0}에서 인터럽트보다 먼저 알아채는 방법은 없습니다."
        | "在 {0} 中，没有任何方法比中断更早察觉完成。";
    Elsewhere: "{0}: {1} of {2} conditions hold, {3} fail." | "{0}: 조건 {2}개 중 {1}개 성립, {3}개 불성립."
        | "{0}：{2} 项条件中 {1} 项成立，{3} 项不成立。";
    FallsShort: "Of the conditions that fail, {0} fall short on misses, {1} on CPU and {2} on IOPS, there by {3} % at most."
        | "불성립 조건 중 {0}개는 miss, {1}개는 CPU, {2}개는 IOPS에서 못 미치며 IOPS의 차이는 최대 {3} %입니다."
        | "不成立的条件中，{0} 项差在 miss，{1} 项差在 CPU，{2} 项差在 IOPS（至多 {3} %）。";
    NoJudgement: "There is no simulator part to judge." | "판정할 시뮬레이터 결과가 없습니다." | "没有可供判定的模拟器结果。";

    Complete: "complete" | "완료" | "完整";
    Incomplete: "incomplete" | "미완료" | "不完整";
    Parts: "{0} of {1} runs" | "실행 {1}개 중 {0}개" | "{1} 次运行中的 {0} 次";
    HeldOutSeeds: "Held-out seeds" | "미사용 시드" | "留出种子";
    JobLength: "Length of a job" | "작업 길이" | "作业时长";
    Machine: "Machine" | "머신" | "机器";
    MissingTitle: "What could not run" | "실행하지 못한 것" | "未能运行的部分";

    FrontierTitle: "The candidate against each ratio" | "비율별 비교" | "候选设置与各比例的比较";
    FrontierHelp: "Differences are candidate less ratio, paired by seed: the median with its 95 % interval. Ahead on all \
        three: no more misses, less CPU, no fewer IOPS. A tie: the same, with CPU that may be half a point more. Not beaten on \
        both: the ratio does not have fewer misses and less CPU at once, without any margin. No more misses allows half a \
        point, no fewer IOPS half a percent; the latter margin is ours, because two equal methods are never measured equal, \
        and the column without it says what comes out when any loss of IOPS counts. A condition holds when the whole interval \
        is on the right side, fails when the whole interval is on the wrong one, and is open otherwise."
        | "차이는 ‘후보 − 비율’이며 시드별로 짝지은 중앙값과 95 % 구간입니다. ‘세 가지 모두 앞섬’은 miss가 더 많지 않고 CPU가 적으며 IOPS가 더 적지 않음을, \
        ‘비김’은 CPU가 0.5포인트까지 더 많아도 되는 같은 조건을, ‘miss와 CPU 모두 밀리지는 않음’은 여유 없이 그 비율이 둘 다 더 낮지는 않음을 뜻합니다. \
        ‘miss가 더 많지 않음’에는 0.5포인트, ‘IOPS가 더 적지 않음’에는 0.5 %의 여유를 둡니다. 뒤의 여유는 같은 두 방법도 똑같이 측정되지는 않으므로 저희가 둔 것이며, \
        여유 없는 열은 IOPS가 조금이라도 줄면 불성립으로 본 결과입니다. 구간 전체가 조건을 만족하면 성립, 전체가 벗어나면 불성립, 그 밖에는 보류입니다."
        | "差值为“候选 − 比例”，按种子配对，给出中位数与 95 % 区间。“三项都领先”：miss 不更多、CPU 更少、IOPS 不更少。“持平”：同上，但 CPU 可多 0.5 个百分点。“不在两项上同时落后”：该比例不会同时 miss 更少且 CPU 更少，不留余量。“miss 不更多”允许 0.5 个百分点，“IOPS 不更少”允许 0.5 %；后一余量是我们自定的，因为两个相同的方法也不会测得相同，“无余量”一列给出 IOPS 有任何下降都算不成立时的结果。整个区间满足条件为成立，整个区间都不满足为不成立，其余待定。";
    Phase: "Phase" | "작업" | "阶段";
    Against: "Against" | "비교 대상" | "比较对象";
    Rule: "Condition" | "조건" | "条件";
    MissPoints: "Misses, points" | "miss, 포인트" | "miss，百分点";
    CpuPoints: "CPU, points" | "CPU, 포인트" | "CPU，百分点";
    IopsPercent: "IOPS, %" | "IOPS, %" | "IOPS，%";
    Result: "Result" | "결과" | "结果";
    NoMargin: "no margin" | "여유 없이" | "无余量";
    Holds: "holds" | "성립" | "成立";
    Fails: "fails" | "불성립" | "不成立";
    Open: "open" | "보류" | "待定";
    RuleAhead: "ahead on all three" | "세 가지 모두 앞섬" | "三项都领先";
    RuleNotBeaten: "not beaten on both" | "miss와 CPU 모두 밀리지는 않음" | "不在两项上同时落后";
    RuleTie: "a tie" | "비김" | "持平";

    PlanesTitle: "The frontier" | "프런티어" | "前沿";
    PlanesHelp: "Each point is a method over all seeds; the settings of a family are joined. Lower left is better. The \
        oracles know what no predictor can: the clairvoyant each operation's time, the other the best constant sleep."
        | "점 하나가 모든 시드에 걸친 방법 하나이며 같은 계열의 설정은 선으로 이었습니다. 왼쪽 아래일수록 좋습니다. 오라클은 예측기가 알 수 없는 것을 압니다. \
        하나는 각 연산의 시간을, 다른 하나는 최적의 고정 sleep을 압니다."
        | "每个点是一个方法在全部种子上的结果，同一族的设置以线相连，越靠左下越好。两个神谕知道预测器无法知道的：其一知道每次操作的时间，其二知道最佳的固定睡眠。";
    MissAxis: "misses" | "miss 비율" | "miss 率";
    AddedAxis: "added p99" | "추가 지연 p99" | "附加延迟 p99";
    CpuAxis: "CPU of the thread" | "스레드 CPU" | "线程 CPU";
    NumbersInTable: "the numbers as a table" | "표로 보기" | "以表格显示数据";

    MethodsTitle: "All methods" | "모든 방법" | "全部方法";
    MethodsHelp: "Medians over the seeds, in brackets the 95 % interval. Misses: complete when a sleep ended that completions do \
        not end, of all operations; harmful are those that were noticed later than an interrupt would have told. CPU: CPU time of the thread \
        that waits over time, nothing of the background. Added: from completion at the device to its notice, a dash where \
        nobody saw the completion. Effective sleep: the mean sleep asked for, operations without one included. By interrupt: \
        left to the interrupt, of all operations. Oracles know what no predictor can."
        | "시드에 걸친 중앙값이며 괄호 안은 95 % 구간입니다. miss는 완료가 깨우지 않는 sleep이 끝났을 때 이미 완료된 연산이 전체에서 차지하는 비율이고, 해로운 miss는 인터럽트보다 늦게 알아챈 것입니다. \
        CPU는 기다리는 스레드의 CPU 시간을 경과 시간으로 나눈 값으로 백그라운드는 넣지 않습니다. 추가 지연은 장치의 완료부터 알아챌 때까지이며 완료 시각을 모르면 줄표입니다. \
        유효 sleep은 sleep이 없던 연산까지 포함한 요청 sleep의 평균입니다. 인터럽트는 전체 연산 중 인터럽트에 맡긴 비율입니다. 오라클은 예측기가 알 수 없는 것을 압니다."
        | "各种子的中位数，方括号内为 95 % 区间。miss：在不会被完成唤醒的睡眠结束时已经完成的操作占全部操作的比例；有害 miss 是比中断更晚察觉的那些。CPU：等待线程的 CPU 时间除以经过时间，不含后台。附加延迟：从设备完成到被察觉，无人看到完成时刻时为短横。有效睡眠：请求睡眠的均值，含没有睡眠的操作。交给中断：占全部操作的比例。神谕知道预测器无法知道的。";
    Method: "Method" | "방법" | "方法";
    Role: "Role" | "역할" | "角色";
    Misses: "misses" | "miss" | "miss";
    Cpu: "CPU" | "CPU" | "CPU";
    Iops: "IOPS" | "IOPS" | "IOPS";
    AddedP50: "added p50" | "추가 p50" | "附加 p50";
    AddedP99: "added p99" | "추가 p99" | "附加 p99";
    Sleep: "effective sleep" | "유효 sleep" | "有效睡眠";
    CpuPerIo: "CPU per I/O" | "I/O당 CPU" | "每 I/O CPU";
    Interrupted: "by interrupt" | "인터럽트" | "交给中断";
    Harmful: "harmful" | "해로운 miss" | "有害 miss";
    RoleCandidate: "candidate" | "후보" | "候选";
    RoleRatio: "kernel's mean" | "커널 평균" | "内核均值";
    RoleBaseline: "baseline" | "기준" | "基线";
    RoleRival: "published" | "발표된 방법" | "已发表";
    RoleVariant: "variant" | "변형" | "变体";
    RoleOracle: "oracle" | "오라클" | "神谕";

    VolumesTitle: "Room behind the families" | "계열별 초부피" | "各族的超体积";
    VolumesHelp: "Hypervolume: the share of the box between the origin and the reference point that lies behind one of \
        the family's settings; 100 % would be no cost at all. Reference: 100 % misses, or {0} times the interrupt's added p99, \
        each with 100 % CPU. The difference is the candidate's family less the other, paired by seed. Further settings never \
        take room away, so a family with many has an advantage over one that has no parameter: how many were tried stands \
        beside it."
        | "초부피는 원점과 기준점 사이 상자에서 계열의 설정 뒤에 놓이는 몫이며 100 %는 비용이 전혀 없음을 뜻합니다. 기준점은 miss 100 % 또는 인터럽트 추가 지연 p99의 \
        {0}배이며 CPU는 100 %입니다. 차이는 시드별로 짝지은 ‘후보 계열 − 다른 계열’입니다. 설정이 늘어 부피가 주는 일은 없으므로 설정이 많은 계열은 매개변수가 없는 계열보다 유리합니다. 그래서 시도한 설정 수를 함께 적습니다."
        | "超体积：原点与参考点之间的方框中，位于该族某一设置之后的份额；100 % 意味着毫无代价。参考点：100 % miss，或中断附加延迟 p99 的 {0} 倍，CPU 均为 100 %。差值为“候选所在族 − 该族”，按种子配对。增加设置不会减小体积，因此设置多的族比没有参数的族占优：所试设置数列在旁边。";
    Family: "Family" | "계열" | "族";
    Settings: "settings" | "설정 수" | "设置数";
    VolumeMiss: "misses and CPU" | "miss와 CPU" | "miss 与 CPU";
    VolumeAdded: "added p99 and CPU" | "추가 p99와 CPU" | "附加 p99 与 CPU";
    LessThis: "candidate's less this" | "후보 − 이 계열" | "候选 − 该族";
    Distances: "distance to the oracles" | "오라클까지의 거리" | "到神谕的距离";
    ToClairvoyant: "to the clairvoyant" | "예지 오라클" | "到先知神谕";
    ToConstant: "to the constant sleep" | "고정 sleep 오라클" | "到固定睡眠神谕";

    GainTitle: "Where the gain is from, and its price" | "이득의 출처와 대가" | "收益的来源与代价";
    GainHelp: "The way from the kernel's default to the candidate, cut at the tracked quantile: before it the sleep is \
        better, after it the way to wait is another. Second less first, paired by seed."
        | "커널 기본값에서 후보까지의 차이를 분위수 추적 지점에서 나눴습니다. 그 앞은 더 나은 sleep, 그 뒤는 다른 대기 방식의 몫입니다. ‘둘째 − 첫째’이며 시드별로 짝지었습니다."
        | "从内核默认到候选的差距在分位数跟踪处切开：之前是更好的睡眠，之后是另一种等待方式。数值为“后者 − 前者”，按种子配对。";
    Step: "Step" | "단계" | "步骤";
    StepWhole: "whole gain" | "전체 이득" | "全部收益";
    StepQuantile: "better quantile" | "더 나은 분위수" | "更好的分位数";
    StepMechanism: "changed mechanism" | "바뀐 방식" | "改变机制";
    StepOracle: "quantile against the best constant sleep" | "분위수 추적과 최적 고정 sleep" | "分位数跟踪与最佳固定睡眠";
    StepInterrupt: "candidate against the interrupt" | "후보와 인터럽트" | "候选与中断";
    FromTo: "From → to" | "처음 → 다음" | "从 → 到";
    PriceTitle: "Price of not waiting for the interrupt" | "인터럽트를 기다리지 않는 값" | "不等待中断的代价";
    PriceUnit: "CPU-µs for each µs of latency" | "지연 1 µs당 CPU-µs" | "每 µs 延迟的 CPU-µs";
    PricePoll: "the same for busy polling" | "같은 값, 순수 폴링" | "纯轮询的同一代价";
    Saved: "latency saved" | "줄인 지연" | "节省的延迟";
    Cheapest: "cheapest" | "가장 싼 방법" | "最便宜的方法";

    FigureOne: "Figure 1: IOPS and misses over time" | "그림 1: 시간에 따른 IOPS와 miss" | "图 1：IOPS 与 miss 随时间的变化";
    FigureTwo: "Figure 2: effective sleep and misses over the sleep ratio, {0}"
        | "그림 2: sleep 비율에 따른 유효 sleep과 miss, {0}" | "图 2：有效睡眠与 miss 随睡眠比例的变化，{0}";
    FigureThree: "Figure 3: IOPS and CPU over the sleep ratio, {0}"
        | "그림 3: sleep 비율에 따른 IOPS와 CPU, {0}" | "图 3：IOPS 与 CPU 随睡眠比例的变化，{0}";
    FigureRatios: "Figures 2 and 3 over time: one ratio after the other, {0}, momentary and mean"
        | "시간에 따른 그림 2와 3: 비율을 차례로, {0}, 순간값과 평균" | "图 2 与图 3 随时间的变化：逐个比例，{0}，瞬时值与均值";
    Mean: "mean" | "평균" | "均值";
    FiguresTitle: "The paper's figures" | "논문의 그림" | "论文中的图";
    FiguresHelp: "Solid: the kernel's mean. Dashed: what a single setting of another method reaches in the same phase."
        | "실선은 커널 평균, 점선은 같은 작업에서 다른 방법의 한 가지 설정이 얻은 값입니다."
        | "实线为内核均值，虚线为同一阶段中其他方法的单一设置所达到的值。";
    Ratio: "sleep ratio" | "sleep 비율" | "睡眠比例";
    Time: "time" | "시간" | "时间";

    PublishedTitle: "Published beside measured" | "발표된 관찰과 측정 결과" | "已发表的观察与实测对照";
    PublishedHelp: "What the text of the paper says (its figures are images), and what came out here. The rule for each \
        was written before it was measured. In brackets: with both hypotheses switched on, a wake-up that is now and then late \
        and a device that is slow when a job begins."
        | "논문 본문의 서술(그림은 이미지)과 여기서 얻은 결과입니다. 판정 규칙은 측정 전에 정했습니다. 괄호 안은 두 가설, 즉 가끔 늦는 깨어남과 작업 시작 직후 느린 장치를 켠 결과입니다."
        | "论文正文所述（其图为图像）与此处的结果。每条规则都在测量之前写定。括号内为打开两个假设后的结果：偶尔迟到的唤醒，以及作业开始时较慢的设备。";
    PublishedSays: "the paper" | "논문" | "论文";
    Measured: "here" | "여기" | "此处";
    Why: "why" | "이유" | "原因";
    Shown: "shown" | "재현" | "再现";
    Partly: "in part" | "일부" | "部分再现";
    NotShown: "not shown" | "재현 안 됨" | "未再现";
    Unknown: "not measured" | "측정 안 함" | "未测量";

    FeedingTitle: "Fed with what a thread sees, and with the truth" | "관측값과 참값을 넣었을 때" | "输入观测值与输入真值";
    FeedingHelp: "After a sleep that was too long nobody knows when the device was done, and the kernel's mean takes its own \
        oversleep for the device's time. Only a model can tell it the truth. Differences: observed less true, paired by seed."
        | "sleep이 너무 길었던 뒤에는 장치가 언제 끝났는지 알 수 없어 커널 평균은 자신의 초과 sleep을 장치 시간으로 셉니다. 참값은 모델만 알려 줄 수 있습니다. 차이는 시드별로 짝지은 ‘관측 − 참’입니다."
        | "睡过头之后无从知道设备何时完成，内核均值便把自己睡过的时间算作设备时间。只有模型能告诉它真值。差值为“观测 − 真值”，按种子配对。";
    Observed: "observed" | "관측" | "观测";
    TrueTimes: "true" | "참" | "真值";
    SleepDifference: "effective sleep, µs" | "유효 sleep, µs" | "有效睡眠，µs";

    EmulatedTitle: "What is emulated, and what was fixed beforehand" | "모사한 것과 미리 정한 것" | "模拟了什么，事先固定了什么";
    EmulatedSimulator: "Simulator: device, host and load are a queueing model whose constants were fitted to published figures \
        of a Samsung 983 ZET and a Xeon Gold 6230; no disk was touched. Two of them are not published and were chosen by what \
        the paper saw: 32 operations in flight for each background core, by the IOPS of its third job, and 1.9 µs of CPU for a \
        background operation, by the misses of its second. That these two come out is no evidence."
        | "시뮬레이터: 장치, 호스트, 부하는 삼성 983 ZET와 Xeon Gold 6230의 발표된 수치에 상수를 맞춘 대기열 모델이며 디스크는 쓰지 않았습니다. 두 상수는 발표되지 않아 논문의 관찰에 맞춰 골랐습니다. \
        백그라운드 코어당 큐 깊이 32는 세 번째 작업의 IOPS에, 백그라운드 연산당 CPU 1.9 µs는 두 번째 작업의 miss에 맞춘 것입니다. 따라서 이 두 값이 나오는 것은 증거가 아닙니다."
        | "模拟器：设备、主机与负载是排队模型，其常数按三星 983 ZET 与 Xeon Gold 6230 的已发表数据拟合，没有触及任何磁盘。其中两个未公布，按论文所见选定：每个后台核心 32 个在途操作取自第三个作业的 IOPS，每次后台操作 1.9 µs CPU 取自第二个作业的 miss。因此得出这两个结果不构成证据。";
    EmulatedTrace: "Held-out traces: latencies made from seeds by three other processes (log-normal with stalls; two \
        speeds; a drifting load). None was recorded from a device, and the host that waits is the model's."
        | "미사용 트레이스: 시드에서 세 가지 다른 확률 과정(멈춤이 있는 로그정규, 두 속도, 변하는 부하)으로 만든 지연시간입니다. 장치에서 기록한 것이 아니며 기다리는 호스트는 모델입니다."
        | "留出轨迹：由种子经三种其他过程（带停顿的对数正态、两种速度、漂移的负载）生成的延迟。均非设备实录，等待的主机是模型。";
    EmulatedReplay: "Trace: the latencies are those of the file; the host that waits for them is the model's, and waiting \
        otherwise does not change them. Seeds vary that host alone, so the intervals say nothing of other traces."
        | "트레이스: 지연시간은 파일의 값이고 기다리는 호스트는 모델이며, 다르게 기다려도 지연시간은 바뀌지 않습니다. 시드는 그 호스트만 바꾸므로 구간은 다른 트레이스에 대해 아무것도 말하지 않습니다."
        | "轨迹：延迟取自文件，等待的主机是模型，以其他方式等待不会改变这些延迟。种子只改变该主机，因此区间不说明其他轨迹。";
    EmulatedRecording: "Recorded traces: how long this machine's disk took for each read of one thread, from the kernel's \
        block tracepoints. That thread read at random, one read at a time, while another kept so many more in flight; the \
        other's reads, and those that the kernel issued in another thread's name because the queue was full, are not in the \
        trace. Each trace is cut into consecutive pieces, one for each seed, and the intervals are over the pieces. The host \
        that waits is the model's, and waiting otherwise does not change the times. They stand beside the other parts and \
        decide nothing."
        | "기록한 트레이스: 이 머신의 디스크가 한 스레드의 읽기마다 쓴 시간으로, 커널의 블록 트레이스포인트에서 얻었습니다. 이 스레드는 한 번에 하나씩 임의 읽기를 하고 다른 스레드는 그만큼의 읽기를 더 진행합니다. \
        다른 스레드의 읽기와, 큐가 가득 차 커널이 다른 스레드의 이름으로 보낸 읽기는 트레이스에 없습니다. 트레이스마다 시드 수만큼 연속된 조각으로 나누며 구간은 조각에 걸친 것입니다. 기다리는 호스트는 모델이고 다르게 기다려도 시간은 바뀌지 않습니다. 다른 부분과 나란히 놓일 뿐 판정에는 쓰지 않습니다."
        | "实录轨迹：本机磁盘处理一个线程的每次读取所用的时间，取自内核的块层跟踪点。该线程随机读取，每次一个，同时另一个线程保持若干读取在途；另一线程的读取，以及因队列已满而由内核以其他线程名义发出的读取，不在轨迹中。每条轨迹切成连续的片段，每个种子一段，区间针对这些片段。等待的主机是模型，以其他方式等待不会改变这些时间。它们与其他部分并列，不参与判定。";
    NotRecorded: "No trace was recorded on this machine's disk: {0}."
        | "이 머신의 디스크에서 기록한 트레이스는 없습니다: {0}." | "未在本机磁盘上录制轨迹：{0}。";
    EmulatedDisk: "Disk: hybrid polling in user space over completions that come by interrupt, because the kernel's own has \
        been gone since Linux 6.4. The paper's one and four background cores become queue depths on one other core."
        | "디스크: 커널의 하이브리드 폴링은 리눅스 6.4에서 사라졌으므로 인터럽트로 오는 완료 위에서 사용자 공간 하이브리드 폴링을 씁니다. 논문의 백그라운드 1, 4코어는 다른 한 코어의 큐 깊이로 바꿨습니다."
        | "磁盘：内核自身的混合轮询自 Linux 6.4 起已被移除，因此在由中断到达的完成之上做用户态混合轮询。论文中的 1 个与 4 个后台核心改为另一核心上的队列深度。";
    FixedBefore: "The candidate's setting is the default of its predictor: the share of misses aimed at, and a price of 16 \
        µs of CPU for a µs of latency where no other is written. It was fixed on the simulator's training seeds 1 to 10; every \
        figure of the simulator and of made traces here is of seeds 101 and up. A disk has no seeds, only blocks, and a recorded \
        trace only pieces."
        | "후보의 설정은 해당 예측기의 기본값, 곧 목표 miss 비율과 따로 적지 않으면 지연 1 µs당 CPU 16 µs의 값입니다. 시뮬레이터의 학습용 시드 1~10에서 정했으며, \
        여기의 시뮬레이터와 생성 트레이스 수치는 모두 시드 101 이상에서 얻었습니다. 디스크에는 시드가 없고 블록만, 기록한 트레이스에는 조각만 있습니다."
        | "候选设置即其预测器的默认值：目标 miss 比例，以及未另行写明时每 µs 延迟 16 µs CPU 的价格。它在模拟器的训练种子 1 至 10 上确定；此处模拟器与生成轨迹的全部数据来自 101 及以后的种子。磁盘没有种子，只有区组；实录轨迹只有片段。";
    BaselinesAlways: "The paper has no interrupt and no busy polling under the same load; both are here in every table. \
        IOPS in its third job fall because the device is saturated: they fall for every way to wait."
        | "논문에는 같은 부하에서의 인터럽트와 순수 폴링이 없지만 여기서는 모든 표에 있습니다. 세 번째 작업의 IOPS 감소는 장치 포화 때문이며 어떤 대기 방식에서도 나타납니다."
        | "论文没有给出同一负载下的中断与纯轮询；此处每张表中都有。第三个作业的 IOPS 下降是因为设备饱和：无论以何种方式等待都会下降。";

    WorldSimulator: "Simulator" | "시뮬레이터" | "模拟器";
    WorldTrace: "Traces" | "트레이스" | "轨迹";
    WorldDisk: "Disk" | "디스크" | "磁盘";
    WorldRecording: "Recorded traces" | "기록한 트레이스" | "实录轨迹";
    Seeds: "seeds" | "시드" | "种子";
    Blocks: "blocks" | "블록" | "区组";
    Pieces: "pieces" | "조각" | "片段";
    SeedsFound: "{0} of {1} {2}" | "{2} {1}개 중 {0}개" | "{1} 个{2}中的 {0} 个";
    Background: "background: {0} × depth {1}" | "백그라운드: {0} × 깊이 {1}" | "后台：{0} × 深度 {1}";
    BackgroundNone: "no background" | "백그라운드 없음" | "无后台";
    EnvironmentTitle: "Environment" | "실험 환경" | "实验环境";
    EnvironmentHelp: "The paper's table of its environment, and the same of this machine. The disk is the one below the data \
        file; the simulator and the made traces use neither it nor this machine's clock."
        | "논문의 실험 환경 표와 이 머신의 같은 항목입니다. 디스크는 데이터 파일이 놓인 것이며, 시뮬레이터와 생성 트레이스는 이 디스크도 이 머신의 시계도 쓰지 않습니다."
        | "论文的实验环境表，以及本机的对应项。磁盘是数据文件所在的那一块；模拟器与生成轨迹既不使用它，也不使用本机的时钟。";
    Item: "item" | "항목" | "项目";
    OperatingSystem: "operating system" | "운영체제" | "操作系统";
    Kernel: "kernel" | "커널" | "内核";
    Memory: "memory" | "메모리" | "内存";
    Ssd: "disk" | "디스크" | "磁盘";
    Generator: "load generator" | "부하 생성기" | "负载生成器";
    ReproduceTitle: "Run it again" | "다시 실행하기" | "重新运行";

    SaysFirstJobQuiet: "Job1: misses rise for a moment, then stay at 0" | "Job1: miss가 초반에 잠깐 올랐다가 0을 유지"
        | "Job1：miss 短暂上升后保持为 0";
    SaysSecondJobMisses: "Job2: misses stay above 10 %" | "Job2: miss가 계속 10 % 이상" | "Job2：miss 持续高于 10 %";
    SaysSecondJobIops: "Job2: IOPS do not fall much" | "Job2: IOPS 저하는 심하지 않음" | "Job2：IOPS 下降不明显";
    SaysThirdJobPeak: "Job3: misses first rise above 80 %" | "Job3: miss가 처음에 80 % 이상으로 치솟음"
        | "Job3：miss 起初升至 80 % 以上";
    SaysThirdJobMisses: "Job3: then misses stay at about 30 %" | "Job3: 이후 miss는 약 30 % 유지"
        | "Job3：之后 miss 保持在约 30 %";
    SaysThirdJobIops: "Job3: a tenth of the IOPS of Job1" | "Job3: IOPS가 Job1의 약 1/10" | "Job3：IOPS 降至 Job1 的约 1/10";
    SaysRatioLowersMisses: "A smaller ratio sleeps less and misses less" | "비율을 줄이면 sleep과 miss가 줄어듦"
        | "比例越小，睡眠与 miss 越少";
    SaysFivePercentMisses: "At 5 % there are still considerable misses" | "5 %에서도 상당한 miss가 남음"
        | "比例 5 % 时仍有相当多的 miss";
    SaysThreePercentMisses: "Only 3 % brings misses near those of Job1" | "3 %까지 줄여야 Job1 수준에 가까움"
        | "须降至 3 % 才接近 Job1 的水平";
    SaysCpuAtHalf: "CPU below 50 % at a ratio of 50 %" | "비율 50 %에서 CPU 50 % 미만" | "比例 50 % 时 CPU 低于 50 %";
    SaysCpuAtThreePercent: "CPU above 95 % at a ratio of 3 %" | "비율 3 %에서 CPU 95 % 이상" | "比例 3 % 时 CPU 高于 95 %";
    SaysIopsFlat: "The mean of IOPS does not change with the ratio" | "IOPS 평균은 비율에 따라 큰 변화 없음"
        | "IOPS 均值不随比例变化";
    SaysIopsMoments: "At 3 % the momentary maximum of IOPS rises, the mean does not"
        | "비율 3 %에서 IOPS의 순간 최댓값은 늘지만 평균은 그대로" | "比例 3 % 时 IOPS 的瞬时最大值上升，均值不变";
    SaysNoRatioLowersBoth: "No ratio lowers misses and CPU together" | "어떤 비율도 miss와 CPU를 함께 낮추지 못함"
        | "没有任何比例能同时降低 miss 与 CPU";

    FoundMissAndPeak: "{0} overall, {1} in the worst interval" | "전체 {0}, 가장 나쁜 구간 {1}" | "总体 {0}，最差区间 {1}";
    FoundOfFirst: "{0} of Job1's" | "Job1의 {0}" | "Job1 的 {0}";
    FoundThreePercent: "{0}, against {1} in Job1" | "{0}, Job1은 {1}" | "{0}，Job1 为 {1}";
    FoundFlat: "the lowest is {0} of the highest" | "최저가 최고의 {0}" | "最低为最高的 {0}";
    FoundMoments: "most {0} → {1}, mean {2} → {3}" | "최댓값 {0} → {1}, 평균 {2} → {3}"
        | "最大值 {0} → {1}，均值 {2} → {3}";
    FoundPairs: "{0} pairs of which one is better on both" | "둘 다 나은 쌍 {0}개" | "两项都更优的配对 {0} 个";

    WhyFirstJobQuiet: "The model starts with empty statistics and a device at rest, so nothing is mispredicted at first; a \
        device that is slow when a job begins would show the rise."
        | "모델은 빈 통계와 쉬고 있는 장치로 시작해 처음에 예측이 틀릴 일이 없습니다. 작업 시작 직후 느린 장치라면 상승이 나타납니다."
        | "模型以空统计与空闲设备开始，起初不会误测；若设备在作业开始时较慢，则会出现上升。";
    WhySecondJobMisses: "Fitted, so no evidence: the CPU a background core spends on each operation is not published and was \
        chosen to give this, and the figure is very sensitive to it."
        | "맞춘 값이므로 증거가 아닙니다. 백그라운드 코어의 연산당 CPU는 공개되지 않아 이 결과가 나오도록 골랐고 결과는 그 값에 매우 민감합니다."
        | "为拟合所得，不构成证据：后台核心每次操作所用的 CPU 未公布，其取值正是为得出此结果，而结果对它非常敏感。";
    WhySecondJobIops: "The device is loaded to about two thirds: each read waits somewhat longer."
        | "장치 부하가 약 3분의 2라 읽기마다 조금 더 기다립니다." | "设备负载约三分之二：每次读取稍多等待。";
    WhyThirdJobPeak: "The mean is stale for one period of 100 ms only and then too low, not too high; the published peak needs \
        inflated statistics, which a start of slow operations leaves behind."
        | "평균은 100 ms 한 주기만 낡아 있고 그때는 높지 않고 낮습니다. 발표된 정점에는 느린 시작이 남기는 부풀려진 통계가 필요합니다."
        | "均值仅在一个 100 ms 周期内过时，且偏低而非偏高；所发表的峰值需要由缓慢开头留下的偏大统计。";
    WhyThirdJobMisses: "Latencies under a saturated device scatter so much that a third of them end before half their mean."
        | "포화된 장치의 지연은 크게 흩어져 약 3분의 1이 평균의 절반보다 먼저 끝납니다."
        | "饱和设备下的延迟分散很大，约三分之一在均值的一半之前完成。";
    WhyThirdJobIops: "Fitted, so no evidence: the queue depth of a background core is not published and was chosen to give \
        this. The device is saturated; every way to wait has the same loss."
        | "맞춘 값이므로 증거가 아닙니다. 백그라운드 코어의 큐 깊이는 공개되지 않아 이 결과가 나오도록 골랐습니다. 장치가 포화됐기 때문이며 어떤 대기 방식에서도 같습니다."
        | "为拟合所得，不构成证据：后台核心的队列深度未公布，其取值正是为得出此结果。设备已饱和；任何等待方式都有同样的损失。";
    WhyRatioLowersMisses: "A shorter sleep ends before more of the completions."
        | "짧은 sleep은 더 많은 완료보다 먼저 끝납니다." | "更短的睡眠先于更多的完成而结束。";
    WhyFivePercentMisses: "5 % of the mean is shorter than the fastest read, so nothing can be missed unless the wake-up \
        itself is late now and then."
        | "평균의 5 %는 가장 빠른 읽기보다 짧아, 깨어남 자체가 가끔 늦지 않는 한 놓칠 것이 없습니다."
        | "均值的 5 % 比最快的读取还短，除非唤醒本身偶尔迟到，否则不会有 miss。";
    WhyThreePercentMisses: "The sleep is shorter than any read here." | "sleep이 어떤 읽기보다도 짧습니다."
        | "睡眠比任何一次读取都短。";
    WhyCpuAtHalf: "The thread also pays for hand-over, for the sleep itself and for polling the second half; how the paper counts \
        is not known."
        | "스레드는 제출, sleep 자체, 나머지 절반의 폴링에도 CPU를 씁니다. 논문의 집계 방식은 알려져 있지 않습니다."
        | "线程还要为提交、睡眠本身以及后一半的轮询付出 CPU；论文的统计方式不明。";
    WhyCpuAtThreePercent: "Almost all of the wait is polled." | "대기의 거의 전부를 폴링합니다." | "几乎整个等待都在轮询。";
    WhyIopsFlat: "A saturated device decides; an oversleep costs the thread its turn, a few percent at a ratio of 50 %."
        | "포화된 장치가 결정합니다. 초과 sleep은 비율 50 %에서 몇 %의 손해를 냅니다."
        | "由饱和的设备决定；睡过头会使线程损失机会，比例 50 % 时为百分之几。";
    WhyIopsMoments: "The background of the model never changes, so that there are no fast moments: the maximum rises as the \
        mean does."
        | "모델의 백그라운드 부하는 변하지 않아 빠른 순간이 없습니다. 최댓값은 평균만큼만 오릅니다."
        | "模型的后台负载从不变化，没有快的时刻：最大值与均值一同上升。";
    WhyNoRatioLowersBoth: "For independent latencies every sleep without further knowledge lies on one curve of misses against CPU."
        | "서로 독립인 지연에서는 다른 정보 없는 모든 sleep이 miss와 CPU의 한 곡선 위에 놓입니다."
        | "对于相互独立的延迟，没有额外信息的任何睡眠都落在 miss 与 CPU 的同一条曲线上。";
}

pub(crate) fn outcome(outcome: Outcome) -> Text {
    match outcome {
        Outcome::Holds => Text::Holds,
        Outcome::Fails => Text::Fails,
        Outcome::Open => Text::Open,
    }
}

pub(crate) fn rule(rule: FrontierRule) -> Text {
    match rule {
        FrontierRule::Ahead => Text::RuleAhead,
        FrontierRule::NotBeatenOnBoth => Text::RuleNotBeaten,
        FrontierRule::Tie => Text::RuleTie,
    }
}

pub(crate) fn role(role: MethodRole) -> Text {
    match role {
        MethodRole::Candidate => Text::RoleCandidate,
        MethodRole::Ratio => Text::RoleRatio,
        MethodRole::Baseline => Text::RoleBaseline,
        MethodRole::Rival => Text::RoleRival,
        MethodRole::Variant => Text::RoleVariant,
        MethodRole::Oracle => Text::RoleOracle,
    }
}

pub(crate) fn step(step: GainStep) -> Text {
    match step {
        GainStep::Whole => Text::StepWhole,
        GainStep::BetterQuantile => Text::StepQuantile,
        GainStep::ChangedMechanism => Text::StepMechanism,
        GainStep::QuantileToOracle => Text::StepOracle,
        GainStep::InterruptToCandidate => Text::StepInterrupt,
    }
}

pub(crate) fn world(world: SweepWorld) -> Text {
    match world {
        SweepWorld::Simulator => Text::WorldSimulator,
        SweepWorld::Trace => Text::WorldTrace,
        SweepWorld::Recording => Text::WorldRecording,
        SweepWorld::Disk => Text::WorldDisk,
    }
}

pub(crate) fn axis(kind: PlaneKind) -> Text {
    match kind {
        PlaneKind::Miss => Text::MissAxis,
        PlaneKind::AddedP99 => Text::AddedAxis,
    }
}

pub(crate) fn seen(seen: Seen) -> Text {
    match seen {
        Seen::Shown => Text::Shown,
        Seen::Partly => Text::Partly,
        Seen::NotShown => Text::NotShown,
        Seen::Unknown => Text::Unknown,
    }
}

/// What the paper says, and what explains the figure here.
pub(crate) fn observation(kind: ObservationKind) -> (Text, Text) {
    match kind {
        ObservationKind::FirstJobQuiet => (Text::SaysFirstJobQuiet, Text::WhyFirstJobQuiet),
        ObservationKind::SecondJobMisses => (Text::SaysSecondJobMisses, Text::WhySecondJobMisses),
        ObservationKind::SecondJobIops => (Text::SaysSecondJobIops, Text::WhySecondJobIops),
        ObservationKind::ThirdJobPeak => (Text::SaysThirdJobPeak, Text::WhyThirdJobPeak),
        ObservationKind::ThirdJobMisses => (Text::SaysThirdJobMisses, Text::WhyThirdJobMisses),
        ObservationKind::ThirdJobIops => (Text::SaysThirdJobIops, Text::WhyThirdJobIops),
        ObservationKind::RatioLowersMisses => (Text::SaysRatioLowersMisses, Text::WhyRatioLowersMisses),
        ObservationKind::FivePercentMisses => (Text::SaysFivePercentMisses, Text::WhyFivePercentMisses),
        ObservationKind::ThreePercentMisses => (Text::SaysThreePercentMisses, Text::WhyThreePercentMisses),
        ObservationKind::CpuAtHalf => (Text::SaysCpuAtHalf, Text::WhyCpuAtHalf),
        ObservationKind::CpuAtThreePercent => (Text::SaysCpuAtThreePercent, Text::WhyCpuAtThreePercent),
        ObservationKind::IopsFlat => (Text::SaysIopsFlat, Text::WhyIopsFlat),
        ObservationKind::IopsMoments => (Text::SaysIopsMoments, Text::WhyIopsMoments),
        ObservationKind::NoRatioLowersBoth => (Text::SaysNoRatioLowersBoth, Text::WhyNoRatioLowersBoth),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(text: &str) -> Vec<&str> {
        let mut found: Vec<&str> = (0..9)
            .map(|index| ["{0}", "{1}", "{2}", "{3}", "{4}", "{5}", "{6}", "{7}", "{8}"][index])
            .filter(|place| text.contains(place))
            .collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn every_language_has_every_text_with_the_same_places() {
        for (name, [english, korean, chinese]) in Text::ALL {
            assert_eq!(places(english), places(korean), "{name}");
            assert_eq!(places(english), places(chinese), "{name}");
            assert!(!korean.contains("  ") && !chinese.contains("  ") && !english.contains("  "), "{name}");
        }
    }

    #[test]
    fn places_are_filled() {
        assert_eq!(Text::Parts.fill(Language::English, &["3", "7"]), "3 of 7 runs");
        assert_eq!(Text::Parts.fill(Language::Korean, &["3", "7"]), "실행 7개 중 3개");
    }
}
