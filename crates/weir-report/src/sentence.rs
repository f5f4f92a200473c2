//! Sentences with numbers, per language: the primary comparison, what the study could have missed, why nothing was
//! called, definitions. Korean sentences avoid particles after names, because their form would depend on the name.

use weir_record::{
    effect::{Effect, EffectScale, Question},
    figure::Figure,
    finding::{Finding, MessageKind},
    metric::Metric,
    observation::Rung,
    spec::{CellSpec, LoadMode, Subject},
    study::{OversubscribedCell, StudyResult},
    verdict::Verdict,
};

use crate::{
    added_cost, cause, change, display, format, frontier,
    language::{Language, localized},
    metrics, saturation,
    view::View,
    words::Word,
};

/// The verdict of the primary cell in one sentence: the result, or first why there is none.
pub(crate) fn headline(view: &View<'_>) -> String {
    if let Some(answer) = added_cost::headline(view).or_else(|| frontier::headline(view)) {
        return answer;
    }
    let Some(comparison) = view.primary() else { return no_primary(view) };
    let situation = situation(view, comparison);
    let ratio = finite_ratio(view, comparison);
    let claim = match (view.result.verdict, ratio) {
        (Verdict::Inconclusive | Verdict::NoClaim, None) => return unmeasured(view, comparison),
        (Verdict::NotComparable, _) | (_, None) => return not_comparable(view, comparison),
        (Verdict::Inconclusive | Verdict::NoClaim, Some(ratio)) => {
            return inconclusive(view, comparison, ratio);
        }
        (Verdict::Better | Verdict::Worse, Some(ratio)) => effect(view, comparison, ratio),
        (Verdict::Equivalent, Some(ratio)) => equivalent(view, comparison, ratio),
    };
    localized!(view.language, "{situation}: {claim}.", "{situation}: {claim}.", "{situation}：{claim}。")
}

/// The ratio of a comparison, if it is finite.
fn finite_ratio(view: &View<'_>, comparison: &Effect) -> Option<Figure> {
    view.ratio(comparison).filter(|ratio| ratio.value.is_finite())
}

/// The arms at saturation, the tested causes, and further differences noted by the judge.
pub(crate) fn beside(view: &View<'_>) -> Option<String> {
    if let Some(text) = frontier::by_interrupt(view) {
        return Some(text);
    }
    let primary = view.primary()?;
    let found = primary.notes.iter().find(|note| matches!(note, Finding::AlsoSyscalls { .. }));
    let also = found.map(|found| {
        let text = view.finding(found);
        localized!(view.language, "{text}.", "{text}.", "{text}。")
    });
    let also = also.map(|text| capitalised(view, &text));
    let saturation = saturation::beside(view, primary).or_else(|| saturation::at_one_rate(view, primary));
    let achieved = at_achieved_rates(view, primary);
    let rates = achieved.into_iter().chain(one_rate(view, primary));
    let parts = added_cost::open(view).into_iter().chain(rates).chain(saturation);
    let parts: Vec<String> = parts.chain(cause::because(view, primary)).chain(also).collect();
    (!parts.is_empty()).then(|| parts.join(if view.language == Language::Chinese { "" } else { " " }))
}

/// The second estimate of a comparison some of whose slices missed the offered rate: including these slices, each at
/// the rate that its arm achieved.
pub(crate) fn at_achieved_rates(view: &View<'_>, comparison: &Effect) -> Option<String> {
    let row = view.beside(comparison, Question::AchievedRates)?;
    let ratio = format::ratio_and_interval(row.estimate, row.interval);
    row.estimate.filter(|ratio| ratio.is_finite())?;
    Some(localized!(
        view.language,
        "If slices that missed the rate count too, each at the rate that its arm achieved, the ratio is {ratio}.",
        "요청률에 도달하지 못한 슬라이스까지 각자 도달한 요청률로 포함하면 비율은 {ratio}입니다.",
        "若计入未达到请求速率的时间片，各按其达到的速率计算，则比值为 {ratio}。",
    ))
}

/// The limitation of a comparison that is measured at one offered rate and not on rungs.
fn one_rate(view: &View<'_>, primary: &Effect) -> Option<String> {
    let cell = view.cell(&primary.cell_id).filter(|cell| cell.load != LoadMode::Closed && !cell.is_rung)?;
    let is_again = |other: &&CellSpec| {
        other.id != cell.id
            && other.load != LoadMode::Closed
            && saturation::is_alike_but_for_rate(other, cell)
    };
    if view.result.spec.cells.iter().any(|other| is_again(&other)) {
        return None;
    }
    Some(
        view.language
            .choose([
                "It was measured at one offered rate; the result at other rates is not known.",
                "한 가지 요청률에서만 측정했습니다. 다른 요청률에서의 결과는 알 수 없습니다.",
                "只在一个请求速率下测量，其他请求速率下的结果未知。",
            ])
            .to_owned(),
    )
}

/// The next step, if there is no verdict, an arm is missing, or a difference has no known cause.
pub(crate) fn next_step(view: &View<'_>) -> Option<String> {
    if let Some(unlock) = view.result.missing_arms.iter().find_map(|missing| missing.unlock.as_ref()) {
        let unlock = view.finding(unlock);
        return Some(format!("{}{}{unlock}", view.word(Word::Unlock), view.language.colon()));
    }
    let primary = view.primary()?;
    let reasons = primary.reasons.iter().find_map(|reason| step_after(view, primary, reason));
    let step = reasons.or_else(|| ask_why(view, primary))?;
    Some(format!("{}{}{step}", view.word(Word::Next), view.language.colon()))
}

/// The study that asks why, if epoll and io_uring differ and no switch was tested.
fn ask_why(view: &View<'_>, primary: &Effect) -> Option<String> {
    let driver = |name: &str| {
        let arm = view.result.spec.arms.iter().find(|arm| arm.name == name)?;
        match &arm.subject {
            Subject::Weir { driver, .. } => Some(driver.as_str()),
            _ => None,
        }
    };
    let mut drivers = [driver(&primary.arm)?, driver(&primary.baseline)?];
    drivers.sort_unstable();
    let is_called = matches!(primary.verdict, Verdict::Better | Verdict::Worse);
    let is_asked = view.kind() == MessageKind::Message && view.result.spec.causes.is_empty();
    (is_called && is_asked && drivers == ["epoll", "uring"]).then(|| {
        view.language
            .choose([
                "weir study why turns switches of io_uring back one at a time, and says which of them such a difference is \
                 due to.",
                "weir study why를 실행하면 io_uring 설정을 하나씩 되돌려, 이런 차이가 어느 설정에서 오는지 알 수 있습니다.",
                "运行 weir study why，它会逐一关闭 io_uring 的选项，找出这种差异来自哪一个。",
            ])
            .to_owned()
    })
}

/// The rounds to request if a claim needs `wanted`: of a primary comparison on rungs the deciding one gets three
/// fifths.
fn rounds_asked(view: &View<'_>, primary: &Effect, wanted: u32) -> u32 {
    let is_rung = view.cell(&primary.cell_id).is_some_and(|cell| cell.is_rung);
    if is_rung { wanted.saturating_mul(5).div_ceil(3) } else { wanted }
}

/// The next step that follows from a reason.
fn step_after(view: &View<'_>, primary: &Effect, reason: &Finding) -> Option<String> {
    let language = view.language;
    let units = primary.units;
    let margin = format::percent(view.result.spec.equivalence_margin);
    Some(match reason {
        Finding::IncludesNone { units_wanted: Some(wanted), .. } => {
            let rounds = rounds_asked(view, primary, *wanted);
            let (wanted, units) = (view.units(u64::from(*wanted)), view.units(u64::from(units)));
            localized!(
                language,
                "measure about {wanted} instead of {units} (--rounds {rounds}); that is enough to see a difference of \
                 {margin}.",
                "{units} 대신 약 {wanted} 측정하면(--rounds {rounds}) {margin}의 차이를 판별할 수 있습니다.",
                "测量约 {wanted}（本次为 {units}；--rounds {rounds}），即可分辨 {margin} 的差异。",
            )
        }
        Finding::IncludesNone { .. }
        | Finding::NotSignificant { .. }
        | Finding::NoPairLeft
        | Finding::RateMissed { .. } => language
            .choose([
                "run the study again with more rounds (--rounds), or while less else runs on the machine.",
                "라운드를 늘리거나(--rounds), 머신에서 실행되는 다른 작업이 적을 때 실험을 다시 실행하십시오.",
                "增加轮数（--rounds），或在机器较空闲时重新运行本实验。",
            ])
            .to_owned(),
        Finding::TooFewUnits { units_min, .. } => {
            let least = view.units(u64::from(*units_min));
            localized!(
                language,
                "measure at least {least}.",
                "최소 {least} 측정하십시오.",
                "至少测量 {least}。"
            )
        }
        Finding::Unfinished { .. } | Finding::NothingMeasured | Finding::OneUnit { .. } => resume(view),
        Finding::NoEqualRate | Finding::LagUnknown { .. } | Finding::LagTooLarge { .. } => language
            .choose([
                "add an open-loop cell at a rate that both arms keep, or give the generator more CPUs.",
                "두 대상이 모두 도달할 수 있는 요청률의 개방형 조건을 추가하거나, 부하 생성기에 CPU를 더 할당하십시오.",
                "增加一个双方都能达到其请求速率的开环条件，或给负载生成器更多 CPU。",
            ])
            .to_owned(),
        Finding::RateNotKept { .. } => language
            .choose(["offer a lower rate.", "목표 요청률을 낮추십시오.", "降低目标请求速率。"])
            .to_owned(),
        Finding::Witness { .. } | Finding::NoWitness { .. } | Finding::WitnessOtherState { .. } => language
            .choose([
                "measure more rounds, and read the CPU of both sides and the equal-rate cell beside server CPU.",
                "라운드를 늘리십시오. 서버 CPU와 함께 양쪽 CPU, 그리고 요청률이 같은 조건의 수치를 보십시오.",
                "增加轮数，并结合双方 CPU 与请求速率相同的条件来看服务器 CPU。",
            ])
            .to_owned(),
        Finding::TrialsFailed { .. } | Finding::WrongBytes { .. } | Finding::Unexplained { .. } => language
            .choose([
                "repair the arm; weir export has what it said in every trial.",
                "비교 대상을 고치십시오. 시행마다 출력한 메시지는 weir export에 있습니다.",
                "修复该方案；它在每次试验中的输出见 weir export。",
            ])
            .to_owned(),
        _ => return None,
    })
}

/// How to go on with the study: the command, with its folder where that is known.
fn resume(view: &View<'_>) -> String {
    let folder = view.folder.map(|folder| format!(" {}", display::shell_word(&folder.to_string_lossy())));
    let command = format!("weir study --resume{}", folder.unwrap_or_default());
    localized!(
        view.language,
        "{command} goes on where it stopped.",
        "{command} 명령으로 중단된 곳부터 계속하십시오.",
        "用 {command} 从中断处继续。",
    )
}

/// Capitalises the start of a sentence; a name stays unchanged.
fn capitalised(view: &View<'_>, text: &str) -> String {
    let is_name = view.arms.iter().any(|arm| text.starts_with(arm));
    if is_name || view.language != Language::English {
        return text.to_owned();
    }
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn no_primary(view: &View<'_>) -> String {
    let missing = view.result.missing_arms.iter().map(|arm| arm.name.as_str()).collect::<Vec<_>>().join(", ");
    match (view.language, missing.is_empty()) {
        (Language::English, true) => {
            "There is no primary comparison: no pair of trials was finished.".to_owned()
        }
        (Language::English, false) => format!("There is no primary comparison: {missing} could not run."),
        (Language::Korean, true) => "주 비교가 없습니다. 끝까지 실행된 시행 쌍이 없습니다.".to_owned(),
        (Language::Korean, false) => format!("주 비교가 없습니다. 실행하지 못한 대상: {missing}."),
        (Language::Chinese, true) => "没有主要比较：没有一对试验完成。".to_owned(),
        (Language::Chinese, false) => format!("没有主要比较：{missing} 未能运行。"),
    }
}

fn situation(view: &View<'_>, comparison: &Effect) -> String {
    let Some(cell) = view.cell(&comparison.cell_id) else { return comparison.cell_id.clone() };
    let conditions = conditions(view, cell);
    // If the machine was in one state only, the state is not mentioned.
    let has_both = view.by_state(comparison).is_some();
    let state = match (comparison.notes.contains(&Finding::FarState), has_both) {
        (true, _) => view.language.choose([
            " in its far state",
            "(코어 간 지연이 긴 상태, far)",
            "（核间延迟较长的状态，far）",
        ]),
        (false, true) => view.language.choose([
            " in its near state",
            "(코어 간 지연이 짧은 상태, near)",
            "（核间延迟较短的状态，near）",
        ]),
        (false, false) => "",
    };
    let load = match cell.load {
        LoadMode::Open { rate_per_second, .. } => Load::OneRate(format::rate(rate_per_second)),
        LoadMode::Closed if view.result.spec.saturation => Load::Saturation,
        LoadMode::Closed | LoadMode::OpenShare { .. } => Load::AsIs,
    };
    match load {
        Load::OneRate(rate) => localized!(
            view.language,
            "At {rate} for every arm ({conditions}) on this machine{state}",
            "이 머신{state}에서 모든 대상에 {rate}({conditions})로 부하를 줄 때",
            "在本机{state}上，各方案同为 {rate}（{conditions}）",
        ),
        Load::Saturation => localized!(
            view.language,
            "At saturation, each arm at its own rate ({conditions}) on this machine{state}",
            "이 머신{state}에서 각자 최대 속도로 실행하는 포화 상태({conditions})",
            "在本机{state}上，各方案全速运行的饱和状态（{conditions}）",
        ),
        Load::AsIs => localized!(
            view.language,
            "At {conditions} on this machine{state}",
            "이 머신{state}에서 {conditions} 조건",
            "在本机{state}上，{conditions}",
        ),
    }
}

/// How a sentence describes the load.
enum Load {
    /// Every arm is offered this rate.
    OneRate(String),
    /// Each arm runs at full speed, as requested.
    Saturation,
    AsIs,
}

fn conditions(view: &View<'_>, cell: &CellSpec) -> String {
    let separator = if view.language == Language::Chinese { "、" } else { ", " };
    if let Some(storage) = &cell.storage {
        return view.storage_conditions(cell, storage).join(separator);
    }
    if let Some(orders) = &cell.orders {
        return view.order_conditions(cell, orders).join(separator);
    }
    let mut parts = vec![view.connections(cell.connections), view.message_size_in_prose(cell)];
    // The rate precedes them.
    parts.extend(view.further_conditions(&CellSpec { load: LoadMode::Closed, ..cell.clone() }));
    parts.join(separator)
}

/// The ratio in words: `uring uses 2.1 % less server CPU per message than epoll (99 % interval 1.2 to 3 % less)`.
fn effect(view: &View<'_>, comparison: &Effect, ratio: Figure) -> String {
    let amount = change::amount(view.language, ratio.value);
    let range = interval(view, comparison, ratio);
    let (arm, baseline) = (&comparison.arm, &comparison.baseline);
    let noun = noun(view, comparison.metric);
    let is_cpu = matches!(
        comparison.metric,
        Metric::ServerCpuPerMessage | Metric::MachineCpuPerMessage | Metric::ServerCpuWithWaiting
    );
    let verb = view.language.choose(if is_cpu {
        ["uses", "나옵니다", "测得"]
    } else {
        ["has", "나옵니다", "测得"]
    });
    localized!(
        view.language,
        "{arm} {verb} {amount} {noun} than {baseline}{range}",
        "{arm}의 {noun}이 {baseline}보다 {amount} {verb}{range}",
        "{arm} {verb}的{noun}比 {baseline} {amount}{range}",
    )
}

/// The interval after a sentence, if there is one.
fn interval(view: &View<'_>, comparison: &Effect, ratio: Figure) -> String {
    let Some(ends) = ratio.interval.filter(|(low, high)| low.is_finite() && high.is_finite()) else {
        return String::new();
    };
    let (range, level) = (change::range(view.language, ends), format::percent(comparison.level));
    localized!(
        view.language,
        " ({level} interval {range})",
        "({level} 신뢰구간 {range})",
        "（{level} 置信区间{range}）",
    )
}

fn noun(view: &View<'_>, metric: Metric) -> String {
    metrics::prose(view, metric)
}

fn equivalent(view: &View<'_>, comparison: &Effect, ratio: Figure) -> String {
    let amount = change::amount(view.language, ratio.value);
    let range = interval(view, comparison, ratio);
    let (arm, baseline) = (&comparison.arm, &comparison.baseline);
    let noun = noun(view, comparison.metric);
    let margin = format::percent(view.result.spec.equivalence_margin);
    if change::rounds_to_none(ratio.value) {
        return localized!(
            view.language,
            "{arm} and {baseline} do not differ by {margin} or more in {noun}: the estimate is no difference{range}",
            "{arm}, {baseline} 두 대상의 {noun} 차이는 {margin} 미만입니다. 추정값으로는 차이가 없습니다{range}",
            "{arm} 与 {baseline} 的{noun}相差不到 {margin}：估计值显示无差异{range}"
        );
    }
    localized!(
        view.language,
        "{arm} and {baseline} do not differ by {margin} or more in {noun}: {arm} has {amount}{range}",
        "{arm}, {baseline} 두 대상의 {noun} 차이는 {margin} 미만입니다. {arm}: 측정값이 {amount} 나왔습니다{range}",
        "{arm} 与 {baseline} 的{noun}相差不到 {margin}：{arm} {amount}{range}"
    )
}

/// First why nothing was called, then the observed figures.
fn inconclusive(view: &View<'_>, comparison: &Effect, ratio: Figure) -> String {
    let amount = change::amount(view.language, ratio.value);
    let range = interval(view, comparison, ratio);
    let (arm, baseline) = (&comparison.arm, &comparison.baseline);
    let (noun, situation) = (noun(view, comparison.metric), situation(view, comparison));
    let cause = cause(view, comparison);
    if change::rounds_to_none(ratio.value) {
        return localized!(
            view.language,
            "{cause}{situation}: the data do not decide between {arm} and {baseline} in {noun}. The estimate is no \
             difference{range}.",
            "{cause}{situation}: {arm}, {baseline} 두 대상의 {noun} 차이가 있는지 판정할 수 없습니다. 추정값으로는 차이가 \
             없습니다{range}.",
            "{cause}{situation}：无法判定 {arm} 与 {baseline} 的{noun}高低。估计值显示无差异{range}。",
        );
    }
    localized!(
        view.language,
        "{cause}{situation}: the data do not decide between {arm} and {baseline} in {noun}. {arm} has {amount}{range}.",
        "{cause}{situation}: {arm}, {baseline} 두 대상의 {noun} 차이가 있는지 판정할 수 없습니다. {arm}: 측정값이 {amount} 나왔습니다{range}.",
        "{cause}{situation}：无法判定 {arm} 与 {baseline} 的{noun}高低。{arm} {amount}{range}。",
    )
}

/// Nothing was called because no pair was finished.
fn unmeasured(view: &View<'_>, comparison: &Effect) -> String {
    let (arm, baseline) = (&comparison.arm, &comparison.baseline);
    let (noun, situation) = (noun(view, comparison.metric), situation(view, comparison));
    localized!(
        view.language,
        "No pair of trials was finished. {situation}: nothing is decided between {arm} and {baseline} in {noun}.",
        "끝까지 실행된 시행 쌍이 없습니다. {situation}: {arm}, {baseline} 두 대상의 {noun}은 판정할 수 없습니다.",
        "没有一对试验完成。{situation}：无法判定 {arm} 与 {baseline} 的{noun}。",
    )
}

/// Why nothing was called, as separate sentences; empty if the judge gave no reason.
fn cause(view: &View<'_>, comparison: &Effect) -> String {
    let reasons = comparison.reasons.iter().map(|reason| view.finding(reason));
    sentences(view, &reasons.collect::<Vec<_>>())
}

fn sentences(view: &View<'_>, texts: &[String]) -> String {
    let stop = view.language.choose([". ", ". ", "。"]);
    texts.iter().map(|text| format!("{}{stop}", capitalised(view, text))).collect()
}

fn not_comparable(view: &View<'_>, comparison: &Effect) -> String {
    let (arm, baseline) = (&comparison.arm, &comparison.baseline);
    let (noun, situation) = (noun(view, comparison.metric), situation(view, comparison));
    let failed = view.result.checks.iter().find(|check| !check.passed);
    let cause = match (cause(view, comparison), failed) {
        (none, Some(check)) if none.is_empty() => sentences(view, &[view.finding(&check.detail)]),
        (cause, _) => cause,
    };
    let measured = unconfirmed(view, comparison);
    localized!(
        view.language,
        "{cause}{situation}: {arm} and {baseline} cannot be compared in {noun}{measured}.",
        "{cause}{situation}: {arm}, {baseline} 두 대상의 {noun}은 비교할 수 없습니다{measured}.",
        "{cause}{situation}：{arm} 与 {baseline} 的{noun}不可比较{measured}。",
    )
}

/// The figures of a comparison that is valid itself, but whose verdict is barred by another figure.
fn unconfirmed(view: &View<'_>, comparison: &Effect) -> String {
    let is_of_witness = |reason: &Finding| {
        matches!(
            reason,
            Finding::Witness { .. }
                | Finding::NoWitness { .. }
                | Finding::WitnessOtherState { .. }
                | Finding::NoEqualRate
        )
    };
    let is_valid = !comparison.reasons.is_empty() && comparison.reasons.iter().all(is_of_witness);
    let Some(ratio) = finite_ratio(view, comparison).filter(|_| is_valid) else { return String::new() };
    let (number, range) = format::ratio_in_prose(ratio.value, ratio.interval);
    localized!(
        view.language,
        " (measured, and not confirmed: {number}×{range})",
        "(측정값 {number}배{range}, 확인되지 않음)",
        "（测得 {number} 倍{range}，未获证实）",
    )
}

/// The detection limit of the primary comparison, and the noise of the machine; empty without a primary comparison.
pub(crate) fn sensitivity(view: &View<'_>) -> String {
    let Some(comparison) = view.primary() else { return String::new() };
    let is_ratio = comparison.scale == EffectScale::Ratio;
    let detectable =
        comparison.detectable.filter(|effect| is_ratio && effect.is_finite()).map(format::percent);
    let floor = view.ratio_floor(comparison).filter(|floor| floor.is_finite()).map(format::percent);
    let units = view.units(u64::from(comparison.units));
    let mut parts = vec![localized!(view.language, "{units}.", "{units}.", "共 {units}。")];
    parts.extend(detectable.map(|effect| {
        localized!(
            view.language,
            "Effects of {effect} or more are found in 8 of 10 such runs (minimum detectable effect).",
            "이런 실행 10번 중 8번에서 {effect} 이상의 효과를 찾습니다(최소 검출 효과).",
            "{effect} 及以上的效应在 10 次这样的运行中有 8 次能检出（最小可检测效应）。"
        )
    }));
    parts.extend(floor.map(|floor| {
        localized!(
            view.language,
            "An A/A comparison of this size shows up to {floor} (noise floor).",
            "같은 횟수로 기준을 자기 자신과 비교하면 최대 {floor} 차이가 납니다(노이즈 플로어).",
            "同样次数下，基线与自身相比的差异最大为 {floor}（噪声本底）。"
        )
    }));
    parts.join(if view.language == Language::Chinese { "" } else { " " })
}

/// The absolute figures of the primary comparison, a line per arm, from the same units as its ratio.
pub(crate) fn absolute(view: &View<'_>) -> Vec<String> {
    let Some(primary) = view.primary() else { return Vec::new() };
    let Effect { cell_id, arm, baseline, .. } = primary;
    let shown = match primary.metric {
        Metric::WaitingCpuShare => [Metric::MissRate, Metric::WaitingCpuShare],
        _ => [Metric::ServerCpuPerMessage, Metric::Throughput],
    };
    let compared: Vec<&Effect> =
        shown.iter().filter_map(|metric| view.pair(cell_id, (arm, baseline), *metric)).collect();
    let line = |name: &str, side: fn((f64, f64)) -> f64| {
        let figures: Vec<String> = compared
            .iter()
            .filter_map(|it| {
                let value = side(it.figures?);
                let bound = view.summary(cell_id, name).map_or("", |summary| view.bound(summary, it.metric));
                let (name, figure) =
                    (metrics::short(view, it.metric), metrics::figure(view, it.metric, value));
                // For IOPS the unit is enough.
                let is_named = figure.ends_with(name.as_str());
                Some(if is_named { format!("{bound}{figure}") } else { format!("{name} {bound}{figure}") })
            })
            .collect();
        let colon = view.language.colon();
        (!figures.is_empty()).then(|| format!("{name}{colon}{}", figures.join(view.language.list())))
    };
    [line(baseline, |(_, baseline)| baseline), line(arm, |(arm, _)| arm)].into_iter().flatten().collect()
}

/// Where threads share CPUs, and the consequence for the figures.
pub(crate) fn oversubscribed(view: &View<'_>) -> Option<String> {
    let cells = &view.result.oversubscribed;
    let OversubscribedCell { threads, cpus, .. } = cells.iter().max_by_key(|cell| cell.threads)?;
    let (count, all) = (cells.len(), view.result.spec.cells.len());
    Some(localized!(
        view.language,
        "Over-subscribed: {count} of {all} cells have up to {threads} busy threads of servers and generator on {cpus} CPUs. \
         Waiting for a CPU is part of what they show; figures per second and latencies do not carry over to a machine that \
         has a CPU for each.",
        "CPU 부족: 조건 {all}개 중 {count}개에서, 서버와 부하 생성기의 바쁜 스레드가 최대 {threads}개인데 CPU는 {cpus}개입니다. CPU를 기다린 시간도 결과에 들어 \
        있습니다. 초당 수치와 지연 시간은 스레드마다 CPU가 있는 머신에 그대로 적용할 수 없습니다.",
        "CPU 不足：{all} 个条件中有 {count} 个，服务器与负载生成器的繁忙线程最多 {threads} 个，而 CPU 只有 {cpus} 个。结果包含等待 CPU \
        的时间；每秒数值与延迟不能直接用于每个线程都有 CPU 的机器。",
    ))
}

/// Number of trials used.
pub(crate) fn trials_used(view: &View<'_>) -> String {
    let timeline = &view.result.timeline;
    let clean = timeline.iter().filter(|entry| entry.clean).count();
    let total = timeline.len();
    localized!(
        view.language,
        "{clean} of {total} trials used",
        "시행 {total}회 중 {clean}회 사용",
        "{total} 次试验采用了 {clean} 次",
    )
}

/// The hypervisor's steal, from the check.
pub(crate) fn steal(view: &View<'_>) -> String {
    let found = view.result.checks.iter().find_map(|check| match &check.detail {
        Finding::Steal { share, .. } => Some(format::percent(*share)),
        _ => None,
    });
    let Some(share) = found else { return String::new() };
    localized!(
        view.language,
        "{share} of CPU time stolen (median)",
        "스틸 {share}(중앙값)",
        "steal {share}（中位数）",
    )
}

/// Machine states in words.
pub(crate) fn states(view: &View<'_>) -> (Word, String) {
    let states = &view.result.states;
    let near = format::nanos(states.near_ns);
    let (near_trials, far_trials, both) = states.trials;
    let cross_core = view.word(Word::CrossCore);
    let Some(far_ns) = states.far_ns.filter(|_| states.boundary_ns.is_some() && far_trials > 0) else {
        return (Word::OneState, format!("{cross_core} {near}"));
    };
    if near_trials == 0 {
        return (Word::OneState, format!("{cross_core} {}", format::nanos(far_ns)));
    }
    let far = format::nanos(far_ns);
    let detail = localized!(
        view.language,
        "near {near}: {near_trials} trials, far {far}: {far_trials}, changed on the way: {both}",
        "코어 간 지연이 짧은 상태(near) {near}: {near_trials}회, 긴 상태(far) {far}: {far_trials}회, 도중 변화: {both}회",
        "核间延迟较短的状态（near）{near}：{near_trials} 次，较长的状态（far）{far}：{far_trials} 次，中途变化：{both} 次",
    );
    (Word::TwoStates, detail)
}

/// `42 more are left out here` for lists that were cut.
pub(crate) fn left_out(view: &View<'_>, count: usize) -> String {
    localized!(
        view.language,
        "{count} more are left out here; the CSV export has all of them.",
        "{count}개는 생략했습니다. CSV 내보내기에는 모두 들어 있습니다.",
        "其余 {count} 项已省略；CSV 导出包含全部数据。"
    )
}

/// Heading of rows without a difference.
pub(crate) fn rows_alike(view: &View<'_>, count: usize) -> String {
    localized!(
        view.language,
        "{count} more that do not differ",
        "차이 없는 항목 {count}개",
        "另有 {count} 项没有差异",
    )
}

/// The reached rungs of evidence.
pub(crate) fn evidence(result: &StudyResult) -> Word {
    let has_counters = result.arms.iter().any(|summary| !summary.engine_per_message.is_empty());
    match result.evidence.iter().map(|arm| arm.rung).max() {
        Some(rung) if rung >= Rung::Programs => Word::EvidencePrograms,
        _ if has_counters => Word::EvidenceEngine,
        _ => Word::EvidenceProc,
    }
}
