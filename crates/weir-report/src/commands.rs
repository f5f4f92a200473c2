//! Commands that were compared (`weir compare`): a screen for a terminal, a comment for a change that is reviewed, and
//! the runs as a table. The first words are one of four, in every form.

mod csv;
mod findings;
mod rows;

use weir_record::{
    commands::{CommandArm, CommandComparison, CommandReport, CommandRole},
    effect::{Effect, EffectScale},
    finding::Finding,
    goal::{Goal, Outcome},
    metric::Metric,
    verdict::Verdict,
};

use crate::{
    change,
    display::{pad_end, printable, truncate},
    format,
    language::{Language, localized},
    markdown::escape,
};

pub use csv::lines as csv;
pub use findings::finding;

/// Most lines of a terminal's screen.
pub const TERMINAL_LINES_MAX: usize = 24;

/// Most lines of a comment.
pub const MARKDOWN_LINES_MAX: usize = 15;

/// Columns that a command's name may take in a sentence.
const NAME_COLUMNS_MAX: usize = 32;

/// What a terminal shows.
pub fn terminal(report: &CommandReport, language: Language) -> String {
    let heads = heads(report, language);
    let findings = told(report, language);
    let table = rows::table(report, language);
    let ends = ends(report, language);
    // Of everything a part: the heads say what was found, the findings whether it counts.
    let room = TERMINAL_LINES_MAX.saturating_sub(ends.len() + 2);
    let heads = few(heads, 6, language);
    let findings = few(findings, 6, language);
    let table = few(table, room.saturating_sub(heads.len() + findings.len()), language);
    let parts = [heads, findings, vec![String::new()], table, ends];
    parts.concat().iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// A comment, in GitHub-flavoured Markdown.
pub fn markdown(report: &CommandReport, language: Language) -> String {
    let bullet = |line: String| format!("- {line}");
    let heads: Vec<String> =
        few(heads(report, language), 3, language).into_iter().map(|it| escape(&it)).collect();
    let findings = few(told(report, language), 3, language).into_iter().map(|it| bullet(escape(&it)));
    let table = rows::markdown(report, language, 4);
    let ends: Vec<String> = ends(report, language).into_iter().take(2).map(|it| escape(&it)).collect();
    let mut lines = heads;
    // What follows a list needs an empty line before it.
    lines.extend(findings);
    lines.push(String::new());
    lines.extend(table);
    lines.push(String::new());
    lines.push(ends.join(". "));
    lines.truncate(MARKDOWN_LINES_MAX);
    lines.join("\n") + "\n"
}

/// The first so many lines, the last of which says how many further ones there are.
fn few(mut lines: Vec<String>, most: usize, language: Language) -> Vec<String> {
    if lines.len() <= most {
        return lines;
    }
    let more = lines.len() - most.saturating_sub(1);
    lines.truncate(most.saturating_sub(1));
    lines.push(localized!(
        language,
        "and {more} more lines: --export-json FILE has them all",
        "이 밖에 {more}줄: --export-json FILE에 모두 있습니다",
        "另有 {more} 行：--export-json FILE 中有全部内容",
    ));
    lines
}

/// A name in a sentence.
fn name(arm: &str) -> String {
    truncate(&printable(arm), NAME_COLUMNS_MAX)
}

/// A line for each command, which begins with its verdict.
fn heads(report: &CommandReport, language: Language) -> Vec<String> {
    let of_comparison = |comparison: &CommandComparison| -> Vec<String> {
        let heads: Vec<String> = comparison.candidates().map(|arm| head(comparison, arm, language)).collect();
        heads.into_iter().map(|line| format!("{line}{}", with_parameters(comparison, language))).collect()
    };
    report.comparisons.iter().flat_map(of_comparison).collect()
}

fn with_parameters(comparison: &CommandComparison, language: Language) -> String {
    let shown: Vec<String> =
        comparison.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if shown.is_empty() { String::new() } else { format!(" ({})", printable(&shown.join(language.list()))) }
}

/// The four words that a verdict is told by.
pub fn verdict(row: Option<&Effect>, language: Language) -> String {
    let reach = row.and_then(Effect::reach).map(format::percent);
    match (row.map_or(Verdict::NotComparable, |row| row.verdict), reach) {
        (Verdict::Better, _) => language.choose(["costs less", "비용이 적음", "开销更小"]).to_owned(),
        (Verdict::Worse, _) => language.choose(["costs more", "비용이 많음", "开销更大"]).to_owned(),
        (Verdict::Equivalent, Some(reach)) => {
            localized!(
                language,
                "no difference above {reach}",
                "{reach}를 넘는 차이 없음",
                "没有超过 {reach} 的差别"
            )
        }
        _ => language.choose(["inconclusive", "판정 불가", "无法判定"]).to_owned(),
    }
}

fn head(comparison: &CommandComparison, arm: &CommandArm, language: Language) -> String {
    let row = comparison.decisive(&arm.name);
    let (verdict, own) = (verdict(row, language), name(&arm.name));
    let baseline = comparison.commands.first().map_or_else(String::new, |it| name(&it.name));
    let Some((row, ratio, interval)) = row.and_then(|row| Some((row, row.estimate?, row.interval?))) else {
        return localized!(
            language,
            "{verdict}: {own} was not compared with {baseline}",
            "{verdict}: {own} 명령을 {baseline} 명령과 비교하지 못했습니다",
            "{verdict}：未能将 {own} 与 {baseline} 比较",
        );
    };
    let (amount, range) = (change::amount(language, ratio), change::range(language, interval));
    let told = localized!(
        language,
        "{verdict}: {own} uses {amount} CPU time per run than {baseline} (99 % interval {range})",
        "{verdict}: {own} 명령은 {baseline} 명령보다 실행당 CPU 시간을 {amount} 씁니다(99 % 구간 {range})",
        "{verdict}：{own} 每次运行的 CPU 时间比 {baseline} {amount}（99 % 区间：{range}）",
    );
    format!("{told}{}", why_not(row, comparison.plan.unit_pairs, language))
}

/// Why there is no verdict: what the estimate itself says. Other causes are findings, and told as such.
fn why_not(row: &Effect, unit_pairs: u32, language: Language) -> String {
    let is_own = |reason: &&Finding| !matches!(reason, Finding::Unfinished { .. });
    let Some(reason) = row.reasons.iter().find(is_own).filter(|_| row.verdict == Verdict::Inconclusive)
    else {
        return String::new();
    };
    let told = crate::finding(reason, language);
    let more = match reason {
        Finding::IncludesNone { units_wanted: Some(units), .. } => {
            let pairs = units.saturating_mul(unit_pairs.max(1));
            localized!(
                language,
                "; about {pairs} pairs would decide (--runs {pairs})",
                ". 약 {pairs}쌍이면 판정할 수 있습니다(--runs {pairs})",
                "；约 {pairs} 对可以判定（--runs {pairs}）",
            )
        }
        _ => String::new(),
    };
    format!("{}{told}{more}", language.semicolon())
}

/// What was found beside, each kind once for each command, and what came of thresholds.
fn told(report: &CommandReport, language: Language) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for comparison in &report.comparisons {
        let thresholds = comparison.thresholds_asked.iter().zip(&comparison.thresholds.rows);
        let limit = thresholds.filter_map(|(asked, row)| Some(threshold(asked.goal?, row, language)));
        let notes = comparison.findings.iter().filter(|it| it.is_defect()).map(|it| finding(it, language));
        let lines = notes.chain(limit).chain(unimportant(comparison, language));
        for line in lines {
            if !all.contains(&line) {
                all.push(line);
            }
        }
    }
    all
}

/// Findings that take nothing from a figure.
fn unimportant(comparison: &CommandComparison, language: Language) -> impl Iterator<Item = String> {
    comparison.findings.iter().filter(|it| !it.is_defect()).map(move |it| finding(it, language))
}

fn threshold(goal: Goal, row: &Effect, language: Language) -> String {
    let (arm, metric) = (name(&row.arm), rows::short(row.metric, language));
    let figure = |value: f64| match row.scale {
        EffectScale::Ratio => format::ratio(Some(value)),
        _ => rows::figure(row.metric, value),
    };
    let (sign, bound) = match goal {
        Goal::AtMost(bound) => ("≤", bound),
        Goal::AtLeast(bound) | Goal::Within(bound, _) => ("≥", bound),
    };
    let bound = figure(bound);
    let found = match (row.estimate, row.interval) {
        (Some(found), Some((low, high))) => format!("{} [{}, {}]", figure(found), figure(low), figure(high)),
        _ => format::ABSENT.to_owned(),
    };
    let outcome = match row.outcome {
        Some(Outcome::Met) => language.choose(["met", "충족", "满足"]),
        Some(Outcome::Missed) => language.choose(["missed", "위반", "不满足"]),
        _ => language.choose(["open", "미정", "未定"]),
    };
    localized!(
        language,
        "threshold {metric} {sign} {bound} of {arm}: {outcome}, measured {found}",
        "{arm} 임계값 {metric} {sign} {bound}: {outcome}, 측정값 {found}",
        "{arm} 的阈值 {metric} {sign} {bound}：{outcome}，测得 {found}",
    )
}

/// How many pairs there were, what they can show, and how it was measured.
fn ends(report: &CommandReport, language: Language) -> Vec<String> {
    let Some(comparison) = report.comparisons.first() else { return Vec::new() };
    let mut lines = Vec::new();
    let row = comparison.candidates().next().and_then(|arm| comparison.decisive(&arm.name));
    let pairs = comparison.pairs_done;
    let itself =
        row.and_then(|row| comparison.effects.itself(row)).and_then(Effect::reach).map(format::percent);
    if let (Some(detectable), Some(floor)) = (row.and_then(|row| row.detectable).map(format::percent), itself)
    {
        lines.push(localized!(
            language,
            "{pairs} pairs: an effect of {detectable} is found in 8 of 10 such comparisons; the baseline against itself \
             shows up to {floor}",
            "{pairs}쌍: {detectable} 효과는 이런 비교 10번 중 8번에서 찾습니다. 기준끼리 비교하면 최대 {floor}까지 보입니다",
            "{pairs} 对：{detectable} 的效应在 10 次此类比较中能发现 8 次；基线与自身相比最多显示 {floor}",
        ));
    }
    lines.push(measured_by(report, language));
    lines
}

/// Where CPU time comes from, and what weir adds to a run.
fn measured_by(report: &CommandReport, language: Language) -> String {
    let by = &report.measured_by;
    let source = match by.cpu_source.as_str() {
        "cgroup-v2" => language.choose(["a control group (v2)", "제어 그룹(v2)", "控制组（v2）"]),
        "cgroup-v1" => language.choose(["a control group (v1)", "제어 그룹(v1)", "控制组（v1）"]),
        _ => "rusage",
    };
    let step = format::nanos_tick(by.cpu_resolution_ns as f64);
    let own = format::nanos(by.charged_cpu_ns.unwrap_or_default() as f64);
    let launch = format::nanos(by.launch_wall_ns.unwrap_or_default() as f64);
    let seed = report.seed;
    localized!(
        language,
        "CPU from {source} in steps of {step}; starting a run takes {launch}, which no figure has, and charges it at \
         most {own}; seed {seed}",
        "CPU 출처: {source}, 단위 {step}. 실행 시작에 {launch} 걸리며 어떤 수치에도 들지 않습니다. 실행에 더해지는 \
         CPU는 최대 {own}; 시드 {seed}",
        "CPU 取自{source}，步长 {step}；启动一次运行需 {launch}，不计入任何数值，至多另计 {own}；随机种子 {seed}",
    )
}

/// Whether a comparison is of one command against another, so that all metrics have room.
fn is_single(report: &CommandReport) -> Option<(&CommandComparison, &CommandArm)> {
    let [comparison] = &report.comparisons[..] else { return None };
    let mut candidates = comparison.candidates();
    let only = candidates.next()?;
    candidates.next().is_none().then_some((comparison, only))
}

#[cfg(test)]
mod tests;
