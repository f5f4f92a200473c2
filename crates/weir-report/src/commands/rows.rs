//! The table of what was measured: by metric where two commands were compared, and else by command.

use weir_record::{
    commands::{CallKind, CommandRun, RunPhase, SystemCalls},
    metric::{MetricUnit, Scale},
    metric_rows::COMMAND_METRICS,
};

use super::*;

/// Kinds of system calls that are named.
const KINDS_SHOWN: usize = 6;

/// A row: what it is of, the baseline's figure, the command's, and the effect.
type Row = [String; 4];

/// Name of a metric in a table.
pub(super) fn short(metric: Metric, language: Language) -> &'static str {
    language.choose(metric.row().words.short)
}

/// A figure with its unit, in the unit that suits it.
pub(super) fn figure(metric: Metric, value: f64) -> String {
    match metric.row().unit {
        MetricUnit::Micros => format::nanos(value * 1e3),
        MetricUnit::Bytes => format::memory(value),
        MetricUnit::PerSecond => format!("{}/s", format::grouped(value)),
        _ => format::per_message(value),
    }
}

/// An effect with its interval: `0.782 [0.774, 0.790]`, `+1.20 ms [+1.00 ms, +1.40 ms]`.
fn effect(row: &Effect) -> String {
    let signed = |value: f64| {
        let sign = if value < 0.0 { "−" } else { "+" };
        format!("{sign}{}", figure(row.metric, value.abs()))
    };
    match (row.metric.row().scale, row.estimate, row.interval) {
        (Scale::Difference { .. }, Some(found), Some((low, high))) => {
            format!("{} [{}, {}]", signed(found), signed(low), signed(high))
        }
        (Scale::Difference { .. }, Some(found), None) => signed(found),
        (_, found, interval) => format::ratio_and_interval(found, interval),
    }
}

/// Lines for a terminal, the head first.
pub(super) fn table(report: &CommandReport, language: Language) -> Vec<String> {
    let rows = rows(report, language);
    if rows.len() < 2 {
        return Vec::new();
    }
    let width = |column: usize| rows.iter().map(|row| crate::columns(&row[column])).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];
    let line = |row: &Row| {
        let columns = row.iter().zip(widths.iter().chain(&[0]));
        columns.map(|(text, width)| pad_end(text, *width)).collect::<Vec<_>>().join("  ")
    };
    rows.iter().map(line).chain(calls(report, language)).collect()
}

/// The same in Markdown, with at most this many rows.
pub(super) fn markdown(report: &CommandReport, language: Language, most: usize) -> Vec<String> {
    let rows = rows(report, language);
    if rows.len() < 2 {
        return Vec::new();
    }
    let line = |row: &Row| format!("| {} |", row.each_ref().map(|text| escape(text)).join(" | "));
    let mut lines: Vec<String> = rows.iter().take(most + 1).map(line).collect();
    lines.insert(1.min(lines.len()), "| --- | --- | --- | --- |".to_owned());
    lines
}

fn rows(report: &CommandReport, language: Language) -> Vec<Row> {
    let per_unit = servers::per_unit(report, language);
    match is_single(report) {
        Some((comparison, arm)) => by_metric(comparison, arm, per_unit, language),
        None => by_command(report, language),
    }
}

fn by_metric(
    comparison: &CommandComparison,
    arm: &CommandArm,
    per_unit: String,
    language: Language,
) -> Vec<Row> {
    let baseline = comparison.commands.first().map_or_else(String::new, |it| name(&it.name));
    let head = [per_unit, baseline, name(&arm.name), effect_title(language)];
    let own = |metric: Metric| {
        comparison.effects.comparisons().find(|row| row.arm == arm.name && row.metric == metric)
    };
    // Events that never happened on either side need no row.
    let has_happened = |row: &&Effect| row.figures.is_some_and(|figures| figures != (0.0, 0.0));
    let row = |row: &Effect| {
        let (of, to) = row.figures.unwrap_or_default();
        let figures = [to, of].map(|value| figure(row.metric, value));
        let [baseline, own] = figures;
        [short(row.metric, language).to_owned(), baseline, own, effect(row)]
    };
    let of_metric = |metric: Metric| {
        let bound = (metric == Metric::CommandMemoryMax).then(|| small_memory(comparison, arm, language));
        bound.flatten().or_else(|| own(metric).filter(has_happened).map(row))
    };
    let all = COMMAND_METRICS.iter().filter_map(|row| of_metric(row.metric));
    std::iter::once(head).chain(all).collect()
}

/// The row of memory where most runs of a command have only an upper bound.
fn small_memory(comparison: &CommandComparison, arm: &CommandArm, language: Language) -> Option<Row> {
    let metric = Metric::CommandMemoryMax;
    let sides = [comparison.commands.first()?.name.as_str(), arm.name.as_str()];
    let bounds = sides.map(|name| memory_below(comparison, name, language));
    if bounds.iter().all(Option::is_none) {
        return None;
    }
    let known = |name: &str| {
        let runs = measured(comparison, name).filter_map(|run| run.cost.figure(metric));
        let runs: Vec<f64> = runs.collect();
        figure(metric, runs.iter().sum::<f64>() / runs.len() as f64)
    };
    let [baseline, own] = [0, 1].map(|side| bounds[side].clone().unwrap_or_else(|| known(sides[side])));
    Some([short(metric, language).to_owned(), baseline, own, format::ABSENT.to_owned()])
}

/// The upper bound of a command's memory, where most of its runs have nothing better.
pub(super) fn memory_below(comparison: &CommandComparison, name: &str, language: Language) -> Option<String> {
    let runs = measured(comparison, name).count();
    let below: Vec<u64> = measured(comparison, name).filter_map(|run| run.cost.memory_bytes_below).collect();
    let most = below.iter().max().filter(|_| 2 * below.len() > runs)?;
    let most = format::bytes(*most);
    Some(localized!(language, "less than {most}", "{most} 미만", "少于 {most}"))
}

/// Measured runs of a command.
fn measured<'a>(comparison: &'a CommandComparison, name: &str) -> impl Iterator<Item = &'a CommandRun> {
    let place = comparison.commands.iter().position(|it| it.name == name);
    let runs = comparison.runs.iter().filter(|run| run.phase == RunPhase::Measured);
    runs.filter(move |run| Some(run.command as usize) == place)
}

fn by_command(report: &CommandReport, language: Language) -> Vec<Row> {
    let head = [
        match report.settings.servers {
            None => language.choose(["command", "명령", "命令"]).to_owned(),
            Some(_) => language.choose(["server", "서버", "服务器"]).to_owned(),
        },
        short(Metric::CommandCpu, language).to_owned(),
        short(Metric::CommandWall, language).to_owned(),
        effect_title(language),
    ];
    let mut rows = vec![head];
    for comparison in &report.comparisons {
        rows.push(of_baseline(comparison, language));
        for arm in comparison.commands.iter().skip(1) {
            let of = |metric: Metric| {
                comparison.effects.comparisons().find(|row| row.metric == metric && row.arm == arm.name)
            };
            let own = |metric: Metric| {
                let figures = of(metric).and_then(|row| row.figures);
                figures.map_or_else(|| format::ABSENT.to_owned(), |(own, _)| figure(metric, own))
            };
            let title = format!(
                "{}{}{}",
                role(arm, language),
                name(&arm.name),
                with_parameters(comparison, language)
            );
            let effect = of(Metric::CommandCpu).map_or_else(|| format::ABSENT.to_owned(), effect);
            rows.push([title, own(Metric::CommandCpu), own(Metric::CommandWall), effect]);
        }
    }
    rows
}

/// The row of the baseline: its figures beside those of the first command that has any.
fn of_baseline(comparison: &CommandComparison, language: Language) -> Row {
    let own = |metric: Metric| {
        let mut rows = comparison.effects.comparisons().filter(|row| row.metric == metric);
        let figures = rows.find_map(|row| row.figures);
        figures.map_or_else(|| format::ABSENT.to_owned(), |(_, baseline)| figure(metric, baseline))
    };
    let title = comparison.commands.first().map_or_else(String::new, |arm| {
        format!("{}{}{}", role(arm, language), name(&arm.name), with_parameters(comparison, language))
    });
    [title, own(Metric::CommandCpu), own(Metric::CommandWall), format::ABSENT.to_owned()]
}

fn role(arm: &CommandArm, language: Language) -> &'static str {
    match arm.role {
        CommandRole::Placebo => language.choose(["placebo ", "플라세보 ", "安慰剂 "]),
        CommandRole::Baseline => language.choose(["baseline ", "기준 ", "基线 "]),
        CommandRole::Candidate => "",
    }
}

fn effect_title(language: Language) -> String {
    language.choose(["ratio or difference [99 %]", "비율 또는 차이 [99 %]", "比值或差值 [99 %]"]).to_owned()
}

/// System calls that differ between two commands.
fn calls(report: &CommandReport, language: Language) -> Option<String> {
    let (comparison, arm) = is_single(report)?;
    let place = comparison.commands.iter().position(|it| it.name == arm.name)?;
    let SystemCalls { counted_by, kinds, .. } = comparison.system_calls.as_ref()?;
    let counted_by = match counted_by.as_str() {
        "kernel-programs" => language.choose(["kernel programs", "커널 프로그램", "内核程序"]),
        other => other,
    };
    let sides = |kind: &CallKind| Some((*kind.counts.first()?, *kind.counts.get(place)?));
    let differ = |kind: &&CallKind| sides(kind).is_some_and(|(one, other)| one != other);
    let different: Vec<&CallKind> = kinds.iter().filter(differ).collect();
    let equal = kinds.len() - different.len();
    let shown = different.iter().take(KINDS_SHOWN).filter_map(|kind| {
        let (one, other) = sides(kind)?;
        Some(format!("{} {} → {}", kind.name, range(one), range(other)))
    });
    let shown: Vec<String> = shown.collect();
    Some(match shown.is_empty() {
        true => localized!(
            language,
            "system calls ({counted_by}): all {equal} kinds are equal",
            "시스템 콜({counted_by}): {equal}종 모두 같음",
            "系统调用（{counted_by}）：{equal} 种全部相同",
        ),
        false => {
            let shown = shown.join(language.list());
            let shown = match different.len().saturating_sub(KINDS_SHOWN) {
                0 => shown,
                more => localized!(
                    language,
                    "{shown}, {more} more differ",
                    "{shown}, 그 밖에 {more}종이 다름",
                    "{shown}，另有 {more} 种不同"
                ),
            };
            localized!(
                language,
                "system calls ({counted_by}): {shown}; equal kinds: {equal}",
                "시스템 콜({counted_by}): {shown}. 횟수가 같은 것 {equal}종",
                "系统调用（{counted_by}）：{shown}；相同的有 {equal} 种",
            )
        }
    })
}

fn range((low, high): (u64, u64)) -> String {
    if low == high { format::count(low) } else { format!("{}–{}", format::count(low), format::count(high)) }
}
