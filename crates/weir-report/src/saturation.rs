//! The arms in a closed loop, each at its own rate, next to a primary comparison at one rate: how much more an arm
//! serves, and the cost of a message there. They are different questions, with different words.

use weir_record::{
    effect::Effect,
    finding::{Finding, Witness},
    metric::Metric,
    spec::{CellSpec, LoadMode},
    verdict::Verdict,
};

use crate::{change, format, language::localized, metrics, view::View};

/// A sentence about saturation next to the primary comparison; `None` if that itself is at saturation, or nothing was
/// measured in a closed loop.
pub(crate) fn beside(view: &View<'_>, primary: &Effect) -> Option<String> {
    let shape = view.cell(&primary.cell_id).filter(|cell| cell.load != LoadMode::Closed)?;
    let cell = view.result.spec.cells.iter().find(|cell| is_closed_loop_of(cell, shape))?;
    let pair = (primary.arm.as_str(), primary.baseline.as_str());
    let parts = [serves(view, cell, pair), costs(view, cell, pair)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        return None;
    }
    let (arm, baseline) = pair;
    let parts = parts.join(view.language.choose([", and ", ", ", "，"]));
    let is_limit = |name: &str| view.summary(&cell.id, name).is_some_and(|summary| summary.generator_bound);
    if is_limit(arm) || is_limit(baseline) {
        return Some(localized!(
            view.language,
            "In a closed loop that the load generator limited, each at its own rate, {arm} {parts} than {baseline}.",
            "부하 생성기가 한계였던 폐쇄형 부하에서 각자의 속도로 실행한 {arm}: {baseline}보다 {parts} 나옵니다.",
            "在受负载生成器限制的闭环中，各方案按自身速率运行，{arm} 比 {baseline} {parts}。",
        ));
    }
    Some(localized!(
        view.language,
        "At saturation, each at its own rate, {arm} {parts} than {baseline}.",
        "포화 상태에서 각자의 최대 속도로 실행한 {arm}: {baseline}보다 {parts} 나옵니다.",
        "在饱和状态下，各方案全速运行，{arm} 比 {baseline} {parts}。",
    ))
}

/// The same comparison at one rate for every arm, next to one at saturation, if it was measured.
pub(crate) fn at_one_rate(view: &View<'_>, primary: &Effect) -> Option<String> {
    let (rate, seen) = primary.notes.iter().find_map(|note| match note {
        Finding::Witness { witness: Witness::EqualRate { per_second }, seen, .. } => {
            Some((*per_second, seen))
        }
        _ => None,
    })?;
    let (arm, rate) = (&primary.arm, format::rate(rate));
    let (amount, range) =
        (change::amount(view.language, seen.ratio), change::range(view.language, seen.interval));
    Some(localized!(
        view.language,
        "At one rate for both, {rate}, {arm} uses {amount} (99 % interval {range}).",
        "같은 요청률({rate})에서 {arm}: {amount} 씁니다(99 % 신뢰구간 {range}).",
        "在相同请求速率（{rate}）下，{arm} {amount}（99 % 置信区间{range}）。",
    ))
}

/// Whether a cell is the closed loop that belongs to a rung: the same except for the arrival of messages.
fn is_closed_loop_of(cell: &CellSpec, rung: &CellSpec) -> bool {
    cell.load == LoadMode::Closed && is_alike_but_for_rate(cell, rung)
}

/// Whether two cells differ only in the arrival of messages.
pub(crate) fn is_alike_but_for_rate(one: &CellSpec, other: &CellSpec) -> bool {
    let bare = |cell: &CellSpec| CellSpec {
        id: String::new(),
        role: other.role,
        load: LoadMode::Closed,
        blocks: 0,
        is_rung: false,
        alternation: None,
        ..cell.clone()
    };
    bare(one) == bare(other)
}

/// How much more it serves. If the generator was the limit for the arm alone, this is a lower bound; if it was for
/// the baseline, it is unknown.
fn serves(view: &View<'_>, cell: &CellSpec, (arm, baseline): (&str, &str)) -> Option<String> {
    let throughput = view.pair(&cell.id, (arm, baseline), Metric::Throughput)?;
    let is_limit = |name: &str| view.summary(&cell.id, name).is_some_and(|summary| summary.generator_bound);
    let is_valid = throughput.reasons.iter().all(|reason| matches!(reason, Finding::LowerBound { .. }));
    let (ratio, interval) = (throughput.estimate?, throughput.interval?);
    if is_limit(baseline) || !is_valid {
        return None;
    }
    if is_limit(arm) {
        // The generator may have limited the server.
        let amount = change::amount(view.language, Some(interval.0).filter(|least| *least > 1.0)?);
        return Some(localized!(
            view.language,
            "serves at least {amount}",
            "처리량은 적어도 {amount}",
            "处理量至少{amount}",
        ));
    }
    let (amount, range) = (change::amount(view.language, ratio), change::range(view.language, interval));
    Some(localized!(
        view.language,
        "serves {amount} (99 % interval {range})",
        "처리량은 {amount}(99 % 신뢰구간 {range})",
        "处理量{amount}（99 % 置信区间{range}）",
    ))
}

fn costs(view: &View<'_>, cell: &CellSpec, pair: (&str, &str)) -> Option<String> {
    let cpu = view.pair(&cell.id, pair, Metric::ServerCpuPerMessage)?;
    let (ratio, interval) = (cpu.estimate?, cpu.interval?);
    let noun = metrics::prose(view, Metric::ServerCpuPerMessage);
    let (amount, range) = (change::amount(view.language, ratio), change::range(view.language, interval));
    // A figure barred by a check is not shown; one without a claim may be.
    let is_barred = cpu.verdict == Verdict::NotComparable && !cpu.reasons.is_empty();
    (!is_barred).then(|| {
        localized!(
            view.language,
            "uses {amount} {noun} (99 % interval {range})",
            "{noun}은 {amount}(99 % 신뢰구간 {range})",
            "{noun}{amount}（99 % 置信区间{range}）",
        )
    })
}
