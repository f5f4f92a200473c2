//! Why a comparison has a verdict or none, and its notes.

use weir_record::finding::{
    OfArms, OfCells, OfDecision, OfFigures, OfUnits, UnitKind, Witness, WitnessBearing, WitnessFigure,
};

use super::phrases::{exclusion, failed_trial, per, plural, rate, units_of};
use crate::{
    format::{self, count, percent},
    language::{Language, localized},
};

pub(super) fn of_units(language: Language, finding: OfUnits<'_>) -> String {
    match finding {
        OfUnits::NothingMeasured => {
            language.choose(["nothing was measured", "측정값 없음", "没有测得任何数据"]).to_owned()
        }
        OfUnits::NoCapacity { said } => localized!(
            language,
            "no arm runs here, so that none gave a capacity of which its rate is a share: {said}",
            "이 조건에서는 실행되는 대상이 없어, 요청률의 기준이 되는 처리 능력을 구하지 못함: {said}",
            "此条件下没有方案能运行，无法测得换算请求速率所需的处理能力：{said}",
        ),
        OfUnits::OneUnit { unit } => {
            let units = units_of(language, 1, *unit);
            localized!(
                language,
                "{units} alone has no interval",
                "{units}뿐이라 신뢰구간이 없음",
                "只有 {units}，没有置信区间",
            )
        }
        OfUnits::NoPairLeft => {
            language.choose(["no pair is left", "남은 쌍 없음", "没有剩余的配对"]).to_owned()
        }
        OfUnits::Excluded { reason, count } => {
            let reason = exclusion(language, *reason);
            localized!(language, "{reason} ({count})", "{reason} {count}건", "{reason} {count} 例")
        }
        OfUnits::TooFewUnits { units, units_min } => localized!(
            language,
            "{units} units are too few to decide; it takes {units_min}",
            "단위 {units}개로는 판정할 수 없음. 최소 {units_min}개 필요",
            "{units} 个单元不足以判定，至少需要 {units_min} 个",
        ),
        OfUnits::IncludesNone { none, .. } => localized!(
            language,
            "the measured difference may be chance: the interval includes {none}",
            "측정된 차이가 우연일 수 있습니다(신뢰구간이 {none}을 포함)",
            "测得的差异可能出于偶然（置信区间包含 {none}）",
        ),
        OfUnits::NotSignificant { p_value } => {
            let p = format::probability(Some(*p_value));
            localized!(
                language,
                "corrected for several claims, the test at 1 % finds no difference (p = {p})",
                "여러 가설에 대해 보정한 1 % 검정에서 차이가 유의하지 않습니다(p = {p})",
                "经多重比较校正后，1 % 水平的检验未发现差异（p = {p}）",
            )
        }
    }
}

pub(super) fn of_arms(language: Language, finding: OfArms<'_>) -> String {
    match finding {
        OfArms::WrongBytes { arm, responses } => localized!(
            language,
            "{arm} returned wrong bytes in {responses} responses",
            "{arm}: 응답 {responses}건의 바이트가 틀림",
            "{arm}：{responses} 个响应的字节有误",
        ),
        OfArms::Unexplained { arm, failures } => localized!(
            language,
            "{failures} failures of {arm} have no class",
            "{arm}: 분류되지 않은 실패 {failures}건",
            "{arm}：{failures} 个失败无法归类",
        ),
        OfArms::TrialsFailed { arm, failed, trials, first } => {
            let first = failed_trial(language, first);
            localized!(
                language,
                "{failed} of {trials} trials of {arm} failed, first: {first}",
                "{arm}: 시행 {trials}회 중 {failed}회 실패, 첫 사례: {first}",
                "{arm}：{trials} 次试验中有 {failed} 次失败，第一次：{first}",
            )
        }
        OfArms::RateNotKept { arm, missed, trials } => localized!(
            language,
            "{arm} did not keep the offered rate in {missed} of {trials} trials",
            "{arm}: {trials}회 중 {missed}회에서 목표 요청률에 도달하지 못함",
            "{arm}：{trials} 次中有 {missed} 次未达到目标请求速率",
        ),
        OfArms::RateMissed { arm, kept, of, unit } => {
            let slices = language.choose(match unit {
                UnitKind::Round => ["slices", "슬라이스", "时间片"],
                UnitKind::Pair => ["trials", "시행", "试验"],
            });
            localized!(
                language,
                "{arm} kept the offered rate in {kept} of {of} {slices}, and 95 % are needed",
                "{arm}: {slices} {of}회 중 {kept}회만 목표 요청률에 도달함(95 % 필요)",
                "{arm}：{of} 个{slices}中只有 {kept} 个达到目标请求速率（需要 95%）",
            )
        }
    }
}

pub(super) fn of_figures(language: Language, finding: OfFigures<'_>) -> String {
    match finding {
        OfFigures::LagUnknown { arm, kind } => {
            let kind = plural(language, *kind);
            localized!(
                language,
                "too few {kind} to know the generator's lag against {arm}",
                "{arm}: {kind} 수가 적어 부하 생성기의 전송 지연을 알 수 없음",
                "{arm}：{kind}太少，无法得知负载生成器的发送滞后",
            )
        }
        OfFigures::LagTooLarge { arm, share } if *share >= 2.0 => localized!(
            language,
            "the generator's p99 lag against {arm} is {share:.0} times the median response time",
            "{arm}: 부하 생성기의 p99 전송 지연이 응답 시간 중앙값의 {share:.0}배임",
            "{arm}：负载生成器的 p99 发送滞后为响应时间中位数的 {share:.0} 倍",
        ),
        OfFigures::LagTooLarge { arm, share } => {
            let share = percent(*share);
            localized!(
                language,
                "the generator's p99 lag against {arm} is {share} of the median response time",
                "{arm}: 부하 생성기의 p99 전송 지연이 응답 시간 중앙값의 {share}임",
                "{arm}：负载生成器的 p99 发送滞后为响应时间中位数的 {share}",
            )
        }
        OfFigures::LowerBound { arm, per_second, kind } => {
            let rate = format!("{} {}", format::grouped(*per_second), rate(language, *kind));
            localized!(
                language,
                "{arm} ≥ {rate} (generator-bound)",
                "{arm} ≥ {rate}(부하 생성기 한계)",
                "{arm} ≥ {rate}（受限于负载生成器）",
            )
        }
        OfFigures::AlsoSyscalls { arm, baseline, kind } => {
            let (arm, baseline) =
                (format::per_message_in_prose(*arm), format::per_message_in_prose(*baseline));
            let per = per(language, *kind);
            localized!(
                language,
                "it also enters the kernel {arm} times per {per} instead of {baseline}",
                "{per}당 시스템 콜도 {baseline}회가 아니라 {arm}회입니다",
                "每{per}的系统调用也是 {arm} 次，而不是 {baseline} 次",
            )
        }
    }
}

fn effect_moves(language: Language, lag_1: f64, (first, second): (f64, f64)) -> String {
    let lag = format!("{lag_1:.2}");
    let [first, second] = [first, second].map(|ratio| format::ratio(Some(ratio)));
    localized!(
        language,
        "the effect moved during the run: lag-1 correlation {lag}; first half {first}, second half {second}; the \
         interval allows for it",
        "측정하는 동안 효과가 변함: 이웃한 단위 간 상관계수 {lag}, 전반 {first}, 후반 {second}. 신뢰구간에 반영됨",
        "测量期间效应发生了变化：相邻单元的相关系数 {lag}，前半段 {first}，后半段 {second}；置信区间已计入这一变化",
    )
}

/// How a cell was measured.
pub(super) fn of_cells(language: Language, finding: OfCells<'_>) -> String {
    match finding {
        OfCells::StateInteraction { ratio, interval } => {
            let ratio = format::ratio_and_interval(Some(*ratio), Some(*interval));
            localized!(
                language,
                "the ratio in the far state is {ratio} times that in the near state",
                "코어 간 지연이 긴 상태(far)의 비율은 짧은 상태(near)의 {ratio}배",
                "核间延迟较长的状态（far）下的比值是较短的状态（near）下的 {ratio} 倍",
            )
        }
        OfCells::EffectMoves { lag_1, halves } => effect_moves(language, *lag_1, *halves),
        OfCells::Reopened { arm, connections, slices } => {
            let (connections, slices) = (count(*connections), count(*slices));
            localized!(
                language,
                "{arm} had closed {connections} connections, which were opened again before its {slices} slices and not in \
                 them",
                "{arm}: 닫힌 연결 {connections}개를 슬라이스 {slices}개가 시작되기 전에 다시 열었음(측정에는 포함하지 않음)",
                "{arm}：已关闭 {connections} 个连接，在其 {slices} 个时间片开始之前重新打开，不计入测量",
            )
        }
        OfCells::NotStopped { arm, share, trials } => {
            let (share, trials) = (percent(*share), count(*trials));
            localized!(
                language,
                "{arm} worked on although it was stopped between its slices, with {share} of a CPU ({trials} trials): it \
                 took that from the others",
                "{arm}: 슬라이스 사이에 정지시켰는데도 CPU의 {share}를 계속 씀(시행 {trials}회). 그만큼 다른 대상의 CPU를 빼앗음",
                "{arm}：在时间片之间已被暂停，却仍占用一个 CPU 的 {share}（{trials} 次试验），占去了其他方案的 CPU",
            )
        }
        OfCells::WorkersNotTold { arm, workers } => localized!(
            language,
            "the command of {arm} names no number of workers, so it does not know how many to have: it runs in the cells with \
             {workers} alone",
            "{arm}: 명령에 워커 수를 적는 자리가 없어 워커 수를 지정할 수 없음. 워커 {workers}개인 조건에서만 실행함",
            "{arm}：命令中没有填写工作线程数的位置，无法指定其数量，因此只在工作线程数为 {workers} 的条件下运行",
        ),
        OfCells::RanBefore { arm } => localized!(
            language,
            "{arm} ran before the study, which did not choose its CPUs, its options or its state, and did not stop it \
             between slices; it is one process in all rounds, so the interval has nothing of how its starts differ",
            "{arm}: 실험 전부터 실행 중이던 서버임. CPU 고정, 옵션, 상태를 실험이 정하지 않았고 슬라이스 사이에 정지시키지도 않음. 모든 라운드가 한 프로세스이므로, 시작할 때마다 생기는 \
            차이는 신뢰구간에 들어 있지 않음",
            "{arm}：在实验之前就已运行。其 CPU 绑定、选项和状态不由实验决定，时间片之间也不会暂停。所有轮次都是同一个进程，因此置信区间不含各次启动之间的差异",
        ),
        OfCells::WholeTrials { why } => {
            let why = language.choose(why.words());
            localized!(
                language,
                "measured in whole trials, without turns: {why}",
                "번갈아 실행하지 않고 전체 시행으로 측정함: {why}",
                "未轮流运行，以完整试验测量：{why}",
            )
        }
        OfCells::StoppedBetweenSlices { arm, share, stopped, runs } => {
            let share = percent(*share);
            localized!(
                language,
                "{arm} used {share} of a CPU while it waited and was stopped between its slices in {stopped} of {runs} \
                 runs",
                "{arm}: 대기하는 동안 CPU 하나의 {share}를 씀. 실행 {runs}회 중 {stopped}회는 슬라이스 사이에 정지시킴",
                "{arm}：等待时占用一个 CPU 的 {share}，{runs} 次运行中有 {stopped} 次在时间片之间被暂停",
            )
        }
    }
}

/// Two builds, without a placebo that shows the effect of code layout.
const NO_PLACEBO: [&str; 3] = [
    "two builds of one program: the layout of their code alone can move a figure by more than its interval; \
                 the baseline's source built once more, as a further arm (--placebo), shows by how much",
    "한 프로그램의 두 빌드입니다. 코드 배치만 바뀌어도 수치가 신뢰구간보다 크게 달라질 수 있습니다. 기준의 소스를 한 번 더 빌드해 비교 대상으로 추가하면(--placebo) 그 크기를 알 수 있습니다",
    "同一程序的两个构建：仅代码布局变化就可能使数值变动超出置信区间。把基线的源码再构建一次作为另一个方案（--placebo），即可看出幅度",
];

pub(super) fn of_decision(language: Language, finding: OfDecision<'_>) -> String {
    match finding {
        OfDecision::NoEqualRate => language
            .choose([
                "the generator was the limit, and no open-loop cell shows both arms at one equal rate",
                "부하 생성기가 한계였고, 두 대상을 같은 요청률로 비교한 개방형 조건이 없음",
                "瓶颈在负载生成器，且没有开环条件以相同请求速率比较双方",
            ])
            .to_owned(),
        OfDecision::IncludesBound { bound } => {
            let bound = format::bound(*bound);
            localized!(
                language,
                "the interval includes the bound {bound}",
                "신뢰구간이 목표 값 {bound}을(를) 포함함",
                "置信区间包含目标值 {bound}",
            )
        }
        OfDecision::WithinPlacebos { floor } => {
            let floor = format::percent(*floor);
            localized!(
                language,
                "a placebo differs by {floor}, and with so much more or less the bound is not clear of the interval",
                "플라세보의 차이가 {floor}이며, 신뢰구간을 그만큼 넓히면 목표 값을 포함함",
                "安慰剂的差异为 {floor}，置信区间按此放宽后包含目标值",
            )
        }
        OfDecision::NoUnitLeft => language
            .choose([
                "too few trials are left that can be compared; the notes say why",
                "비교할 수 있는 시행이 너무 적음(이유는 참고 사항 참조)",
                "可比较的试验所剩过少（原因见说明）",
            ])
            .to_owned(),
        OfDecision::OtherStates => language
            .choose([
                "the two sides were met in different machine states only",
                "양쪽이 서로 다른 머신 상태에서만 측정됨",
                "双方只在不同的机器状态下测得",
            ])
            .to_owned(),
        OfDecision::NoPlacebo => language.choose(NO_PLACEBO).to_owned(),
        OfDecision::ArmMissing { arm } => {
            localized!(language, "{arm} could not run", "{arm}을(를) 실행하지 못함", "{arm} 未能运行")
        }
        OfDecision::NoWitness { witness } => {
            let witness = witness_name(language, *witness);
            localized!(
                language,
                "{witness}: no valid figure, so the verdict is not confirmed",
                "{witness}: 유효한 수치가 없어 판정을 확인할 수 없음",
                "{witness}：未取得有效数据，无法确认结论",
            )
        }
        OfDecision::WitnessOtherState { witness } => {
            let witness = witness_name(language, *witness);
            localized!(
                language,
                "{witness}: measured in the machine's other state only, so the verdict is not confirmed",
                "{witness}: 머신의 다른 상태에서만 측정되어 판정을 확인할 수 없음",
                "{witness}：只在机器的另一状态下测得，无法确认结论",
            )
        }
        OfDecision::Witness { witness, seen, bearing } => held(language, *witness, (seen, *bearing)),
    }
}

/// Whether another figure supports a verdict.
fn held(language: Language, witness: Witness, (seen, bearing): (&WitnessFigure, WitnessBearing)) -> String {
    let witness = witness_name(language, witness);
    let ratio = format::ratio_and_interval(Some(seen.ratio), Some(seen.interval));
    let units = seen.units;
    let bearing = language.choose(match bearing {
        WitnessBearing::Supports => {
            ["which does not contradict this", "판정과 어긋나지 않음", "与判定不矛盾"]
        }
        WitnessBearing::Uncertain => [
            "which is too uncertain to confirm this",
            "불확실성이 커서 판정을 확인할 수 없음",
            "不确定性过大，无法确认判定",
        ],
        WitnessBearing::Contradicts => ["which contradicts this", "판정과 어긋남", "与判定矛盾"],
    });
    localized!(
        language,
        "{witness}: ratio {ratio} from {units} units, {bearing}",
        "{witness}: 비율 {ratio}(단위 {units}개), {bearing}",
        "{witness}：比值 {ratio}（{units} 个单元），{bearing}",
    )
}

fn witness_name(language: Language, witness: Witness) -> String {
    match witness {
        Witness::MachineCpu => language.choose(["CPU of both sides", "양쪽 CPU", "双方 CPU"]).to_owned(),
        Witness::WaitingCpu => {
            language.choose(["with waiting included", "대기를 포함하면", "含等待时"]).to_owned()
        }
        Witness::AchievedRates => language
            .choose([
                "with the slices that missed the rate",
                "요청률에 도달하지 못한 슬라이스까지 포함하면",
                "计入未达到请求速率的时间片时",
            ])
            .to_owned(),
        Witness::EqualRate { per_second } => {
            let rate = format::rate(per_second);
            localized!(
                language,
                "at an equal rate of {rate}",
                "같은 요청률 {rate}에서",
                "在相同请求速率（{rate}）下"
            )
        }
    }
}
