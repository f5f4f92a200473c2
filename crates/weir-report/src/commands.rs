//! Commands and servers that were compared (`weir compare`): a screen for a terminal, a comment for a change under
//! review, and the runs as a table. The first words are one of four, in every form.

mod csv;
mod findings;
mod rows;
mod servers;

use weir_record::{
    commands::{
        CommandArm, CommandComparison, CommandFinding, CommandReport, CommandRole, NoCalls, RunPhase,
        ServerSettings,
    },
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
    // The screen has a part of everything: the heads are the results, the findings say whether they count.
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
    // A paragraph after a list needs an empty line before it.
    lines.extend(findings);
    lines.push(String::new());
    lines.extend(table);
    lines.push(String::new());
    lines.push(match language {
        Language::Chinese if !ends.is_empty() => ends.join("。") + "。",
        _ => ends.join(". "),
    });
    lines.truncate(MARKDOWN_LINES_MAX);
    lines.join("\n") + "\n"
}

/// The first lines, at most this many; the last one gives the number of those left out.
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
        let servers = report.settings.servers.as_ref();
        let head = |arm| head(comparison, arm, servers, language);
        let heads: Vec<String> = comparison.candidates().map(head).collect();
        heads.into_iter().map(|line| format!("{line}{}", with_parameters(comparison, language))).collect()
    };
    report.comparisons.iter().flat_map(of_comparison).collect()
}

fn with_parameters(comparison: &CommandComparison, language: Language) -> String {
    let shown: Vec<String> =
        comparison.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if shown.is_empty() { String::new() } else { format!(" ({})", printable(&shown.join(language.list()))) }
}

/// The words for a verdict.
pub fn verdict(row: Option<&Effect>, language: Language) -> String {
    let reach = row.and_then(Effect::reach).map(format::percent);
    match (row.map_or(Verdict::NotComparable, |row| row.verdict), reach) {
        (Verdict::Better, _) => language.choose(["costs less", "비용이 더 적음", "开销更小"]).to_owned(),
        (Verdict::Worse, _) => language.choose(["costs more", "비용이 더 큼", "开销更大"]).to_owned(),
        (Verdict::Equivalent, Some(reach)) => {
            localized!(
                language,
                "no difference above {reach}",
                "{reach}를 넘는 차이 없음",
                "没有超过 {reach} 的差异"
            )
        }
        (Verdict::NotComparable, _) => {
            language.choose(["not comparable", "비교 불가", "不可比较"]).to_owned()
        }
        _ => language.choose(["inconclusive", "판정 보류", "无法判定"]).to_owned(),
    }
}

fn head(
    comparison: &CommandComparison,
    arm: &CommandArm,
    servers: Option<&ServerSettings>,
    language: Language,
) -> String {
    let row = comparison.decisive(&arm.name);
    let (verdict, own) = (verdict(row, language), name(&arm.name));
    let baseline = comparison.commands.first().map_or_else(String::new, |it| name(&it.name));
    let Some((row, ratio, interval)) = row.and_then(|row| Some((row, row.estimate?, row.interval?))) else {
        if servers.is_some() {
            return servers::not_compared(&verdict, &own, &baseline, language);
        }
        return localized!(
            language,
            "{verdict}: {own} was not compared with {baseline}",
            "{verdict}: {own} 명령을 {baseline} 명령과 비교하지 못했습니다",
            "{verdict}：未能将 {own} 与 {baseline} 比较",
        );
    };
    let (amount, range) = (change::amount(language, ratio), change::range(language, interval));
    if let Some(servers) = servers {
        let told = servers::head(servers.unit, [&verdict, &own, &baseline, &amount, &range], language);
        return format!("{told}{}", why_not(row, comparison, language));
    }
    let told = localized!(
        language,
        "{verdict}: {own} uses {amount} CPU time per run than {baseline} (99 % interval {range})",
        "{verdict}: {own} 명령은 {baseline} 명령보다 실행당 CPU 시간을 {amount} 씁니다(99 % 신뢰구간 {range})",
        "{verdict}：{own} 每次运行的 CPU 时间比 {baseline} {amount}（99 % 置信区间：{range}）",
    );
    format!("{told}{}", why_not(row, comparison, language))
}

/// Why there is no verdict, as far as the estimate itself says. Other causes are findings.
fn why_not(row: &Effect, comparison: &CommandComparison, language: Language) -> String {
    let is_own = |reason: &&Finding| !matches!(reason, Finding::Unfinished { .. });
    let Some(reason) = row.reasons.iter().find(is_own).filter(|_| row.verdict == Verdict::Inconclusive)
    else {
        return String::new();
    };
    let told = crate::finding(reason, language);
    // More pairs that are the same on both sides decide nothing.
    let is_same = comparison
        .findings
        .iter()
        .any(|it| matches!(it, CommandFinding::SameCommands { command, .. } if *command == row.arm));
    let more = match reason {
        Finding::IncludesNone { units_wanted: Some(units), .. } if !is_same => {
            let pairs = units.saturating_mul(comparison.plan.unit_pairs.max(1));
            let length = pair_ns(comparison).map(|ns| language.duration(ns.saturating_mul(pairs.into())));
            let length =
                length.map_or_else(String::new, |it| localized!(language, " ({it})", "({it})", "（{it}）"));
            localized!(
                language,
                "; about {pairs} pairs{length} would decide (--runs {pairs})",
                ". 약 {pairs}쌍{length}을 실행하면 판정할 수 있습니다(--runs {pairs})",
                "；再运行到约 {pairs} 对{length}即可判定（--runs {pairs}）",
            )
        }
        _ => String::new(),
    };
    format!("{}{told}{more}", language.semicolon())
}

/// How long a pair took, with what runs around its commands.
fn pair_ns(comparison: &CommandComparison) -> Option<u64> {
    let measured = || comparison.runs.iter().filter(|run| run.phase == RunPhase::Measured);
    let began_ns = measured().map(|run| run.started_ns).min()?;
    let ended_ns = measured().map(|run| run.started_ns.saturating_add(run.cost.wall_ns)).max()?;
    ended_ns.saturating_sub(began_ns).checked_div(comparison.pairs_done.into())
}

/// Other findings, each kind once for each command, and the outcome of thresholds.
fn told(report: &CommandReport, language: Language) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for comparison in &report.comparisons {
        let thresholds = comparison.thresholds_asked.iter().zip(&comparison.thresholds.rows);
        let limit =
            thresholds.filter_map(|(asked, row)| Some(threshold(comparison, asked.goal?, row, language)));
        let notes = comparison.findings.iter().filter(|it| it.is_defect()).map(|it| finding(it, language));
        let lines =
            notes.chain(moves(comparison, language)).chain(limit).chain(unimportant(comparison, language));
        for line in lines {
            if !all.contains(&line) {
                all.push(line);
            }
        }
    }
    all
}

/// Effects that have a verdict and moved while they were measured.
fn moves(comparison: &CommandComparison, language: Language) -> impl Iterator<Item = String> {
    let decided = comparison.candidates().filter_map(|arm| comparison.decisive(&arm.name));
    let decided =
        decided.filter(|row| matches!(row.verdict, Verdict::Better | Verdict::Worse | Verdict::Equivalent));
    decided.filter_map(move |row| {
        let moved = row.notes.iter().find(|it| matches!(it, Finding::EffectMoves { .. }))?;
        Some(format!("{}{}{}", name(&row.arm), language.colon(), crate::finding(moved, language)))
    })
}

/// Findings that do not affect a figure. Where nothing was compared, missing system calls are not reported.
fn unimportant(comparison: &CommandComparison, language: Language) -> impl Iterator<Item = String> {
    let is_missed = |it: &&CommandFinding| {
        comparison.pairs_done > 0
            || !matches!(it, CommandFinding::NoSystemCalls { reason: NoCalls::NotReached })
    };
    let notes = comparison.findings.iter().filter(|it| !it.is_defect());
    notes.filter(is_missed).map(move |it| finding(it, language))
}

/// The words of a threshold as people type them.
fn typed(goal: Goal, row: &Effect) -> String {
    let metric = match row.metric {
        Metric::CommandMemoryMax => "memory".to_owned(),
        other => rows::short(other, Language::English).to_lowercase().replace(' ', "-"),
    };
    let (sign, bound) = match goal {
        Goal::AtMost(bound) => ('>', bound),
        Goal::AtLeast(bound) | Goal::Within(bound, _) => ('<', bound),
    };
    if row.scale == EffectScale::Ratio {
        return format!("{metric} ratio {sign} {bound}");
    }
    let bound = rows::figure(row.metric, bound);
    let number = bound.split_once(' ').and_then(|(number, unit)| Some((number.parse::<f64>().ok()?, unit)));
    let bound = number.map_or(bound.clone(), |(number, unit)| format!("{number}{unit}"));
    format!("{metric} {sign} {bound}")
}

fn threshold(comparison: &CommandComparison, goal: Goal, row: &Effect, language: Language) -> String {
    let (arm, asked) = (name(&row.arm), typed(goal, row));
    let figure = |value: f64| match row.scale {
        EffectScale::Ratio => format::ratio(Some(value)),
        _ => rows::figure(row.metric, value),
    };
    let below = || rows::memory_below(comparison, &row.arm, language);
    let below = (row.metric == Metric::CommandMemoryMax).then(below).flatten();
    let found = match (row.estimate, row.interval) {
        (Some(found), Some((low, high))) => format!("{} [{}, {}]", figure(found), figure(low), figure(high)),
        _ => below.unwrap_or_else(|| format::ABSENT.to_owned()),
    };
    let what = language.choose(match row.scale {
        EffectScale::Ratio => ["ratio", "비율", "比值"],
        _ => ["measured", "측정값", "测得"],
    });
    let outcome = match row.outcome {
        Some(Outcome::Met) => language.choose(["holds", "충족", "满足"]),
        Some(Outcome::Missed) => language.choose(["fails", "위반", "不满足"]),
        _ => language.choose(["open", "미정", "未定"]),
    };
    localized!(
        language,
        "threshold '{asked}' ({arm}): {outcome}, {what} {found}",
        "임계값 '{asked}'({arm}): {outcome}, {what} {found}",
        "阈值 '{asked}'（{arm}）：{outcome}，{what} {found}",
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
        let planned = comparison.plan.pairs.max(pairs);
        lines.push(localized!(
            language,
            "{pairs} of {planned} planned pairs find an effect of {detectable} in 8 of 10 such comparisons; the \
             baseline's two runs, one against the other, differ by {floor} at most (a command is compared with both)",
            "계획한 {planned}쌍 중 {pairs}쌍을 실행했습니다. 이런 비교 10번 중 8번에서 {detectable} 이상의 효과를 찾습니다. 기준을 두 번 실행하면 서로 최대 \
            {floor} 차이가 납니다(각 명령은 두 실행 모두와 비교)",
            "计划 {planned} 对，完成 {pairs} 对：{detectable} 的效应在 10 次这样的比较中有 8 次能检出；基线的两次运行彼此最多相差 {floor}（每个命令与两次运行都比较）",
        ));
    }
    lines.push(measured_by(report, language));
    lines
}

/// Where CPU time comes from, and what Weir adds to a run.
fn measured_by(report: &CommandReport, language: Language) -> String {
    if let Some(servers) = &report.settings.servers {
        return servers::measured_by(report, servers, language);
    }
    let by = &report.measured_by;
    let source = source(&by.cpu_source, language).unwrap_or("rusage");
    let step = format::nanos_tick(by.cpu_resolution_ns as f64);
    let launch = format::nanos(by.launch_wall_ns.unwrap_or_default() as f64);
    let own = own_cpu(report, language);
    let seed = report.seed;
    localized!(
        language,
        "CPU from {source} in steps of {step}; weir needs {launch} to start a run (not included); {own}; seed {seed}",
        "CPU 측정 방법: {source}, 단위 {step}. weir가 실행을 시작하는 데 {launch} 걸립니다(수치에서 제외). {own}; 시드 {seed}",
        "CPU 数据来源：{source}，步长 {step}；weir 启动一次运行需 {launch}（不计入）；{own}；随机种子 {seed}",
    )
}

/// Weir's own CPU time in a run.
fn own_cpu(report: &CommandReport, language: Language) -> String {
    let by = &report.measured_by;
    match by.subtracted_cpu_ns {
        Some(own_ns) => {
            let own = format::nanos(own_ns as f64);
            localized!(
                language,
                "{own} of its CPU time in each run are subtracted",
                "실행마다 weir의 CPU 시간 {own}를 뺐습니다",
                "每次运行已减去 weir 的 CPU 时间 {own}",
            )
        }
        None => {
            let own = format::nanos(by.charged_cpu_ns.unwrap_or_default() as f64);
            localized!(
                language,
                "at most {own} of its CPU time is included, in every command alike",
                "weir의 CPU 시간이 최대 {own} 들어 있으며, 모든 명령에 똑같습니다",
                "其中至多含 weir 的 CPU 时间 {own}，各命令相同",
            )
        }
    }
}

/// Name of a control group as a source of CPU time; `None` for another source.
fn source(name: &str, language: Language) -> Option<&'static str> {
    match name {
        "cgroup-v2" => Some(language.choose(["a control group (v2)", "cgroup(v2)", "cgroup（v2）"])),
        "cgroup-v1" => Some(language.choose(["a control group (v1)", "cgroup(v1)", "cgroup（v1）"])),
        _ => None,
    }
}

/// Whether one command is compared with one other, so that all metrics fit.
fn is_single(report: &CommandReport) -> Option<(&CommandComparison, &CommandArm)> {
    let [comparison] = &report.comparisons[..] else { return None };
    let mut candidates = comparison.candidates();
    let only = candidates.next()?;
    candidates.next().is_none().then_some((comparison, only))
}

#[cfg(test)]
mod tests;
