//! Figures that are found from several studies, or count cells: the laboratory's own tests, and the matrix.

use std::collections::BTreeMap;

use weir_record::{
    study::ArmSummary,
    verdict::{Comparison, Metric, Verdict},
};
use weir_stats::{order, power::detectable_effect_by_median};

use super::{
    Row,
    goal::{Outcome, judge_count},
    sample::{Export, from_logs},
    session::{Display, Laboratory, Run, Stop},
};

/// What a group of runs gave: rows, or the reason for none.
type Rows = Result<Vec<Row>, Stop>;

const QUICK_RUNS: u64 = 3;
const AA_RUNS: u64 = 20;
const POWER_RUNS: u64 = 10;
const POWER_CALLED_MIN: usize = 9;
const DISPLAY_PAIRS: u64 = 12;

/// Runs of each kind in a rehearsal.
const REHEARSED_RUNS: u64 = 2;

/// Share of a message's CPU time that is planted.
const PLANTED_SHARE: f64 = 0.06;

/// What a message costs in a rehearsal, whose pilot may have no clean trial.
const COST_US_REHEARSED: f64 = 5.0;

/// What the study file plants; it is replaced by what 6 % are here.
const PLANT_IN_FILE: &str = "\"--plant-ns\", \"300\"";

/// Largest minimum detectable effects, as ratios minus one.
const DETECTABLE_MAX: f64 = 0.03;
const DETECTABLE_DISPLAY_MAX: f64 = 0.02;

/// Cross-core readings of two sessions in one state of the machine differ by less than this factor.
const STATE_FACTOR: f64 = 1.5;

fn runs(laboratory: &Laboratory, full: u64) -> u64 {
    if laboratory.rehearsal { REHEARSED_RUNS } else { full }
}

fn row(group: &str, figure: String, goal: &str, measured: String, outcome: Outcome) -> Row {
    let command = format!("cargo xtask figures --only {group}");
    Row { figure, goal: goal.to_owned(), measured, outcome, command }
}

/// No cell may be called faster in one run and slower in another.
pub fn quick(laboratory: &Laboratory) -> Rows {
    let study = if laboratory.rehearsal { "docs/studies/example.toml" } else { "quick" };
    let mut exports = Vec::new();
    for number in 1..=runs(laboratory, QUICK_RUNS) {
        exports.push(laboratory.study(&Run::copy(study, "quick", number))?);
    }
    let contradictions = contradictions(&exports);
    let measured = match contradictions.as_slice() {
        [] => format!("none in {} runs", exports.len()),
        found => found.join("; "),
    };
    // Runs that compared nothing contradict nothing either.
    let is_whole =
        |export: &Export| export.result.complete && export.result.verdict != Verdict::NotComparable;
    let outcome = judge_count(contradictions.is_empty(), exports.iter().all(is_whole));
    let mut rows =
        vec![row("quick", "quick: contradictions between runs".to_owned(), "none", measured, outcome)];
    rows.push(detectable_row("quick", &exports));
    Ok(rows)
}

fn contradictions(exports: &[Export]) -> Vec<String> {
    let mut verdicts: BTreeMap<(&str, &str, Metric), Vec<Verdict>> = BTreeMap::new();
    for comparison in exports.iter().flat_map(|export| &export.result.comparisons) {
        let key = (comparison.cell_id.as_str(), comparison.arm.as_str(), comparison.metric);
        verdicts.entry(key).or_default().push(comparison.verdict);
    }
    let is_contradicted =
        |called: &Vec<Verdict>| called.contains(&Verdict::Faster) && called.contains(&Verdict::Slower);
    let found = verdicts.into_iter().filter(|(_, called)| is_contradicted(called));
    found.map(|((cell, arm, metric), _)| format!("{arm} in {cell}, {metric:?}")).collect()
}

/// The printed minimum detectable effect of the headline, over several runs.
fn detectable_row(group: &str, exports: &[Export]) -> Row {
    let printed = |export: &Export| -> Option<f64> {
        export.result.comparisons.get(export.result.headline?)?.detectable_effect
    };
    let effects: Vec<f64> = exports.iter().filter_map(printed).collect();
    let figure = format!("{group}: printed detectable effect at 100 connections");
    let goal = "≤ 3 % in every run";
    let Some(spread) = order::spread(&effects) else {
        return row(group, figure, goal, "no run printed one".to_owned(), Outcome::NotMeasured);
    };
    let outcome = match () {
        () if spread.max <= DETECTABLE_MAX && effects.len() == exports.len() => Outcome::Met,
        () if spread.median <= DETECTABLE_MAX => Outcome::MetByPointOnly,
        () if spread.min > DETECTABLE_MAX => Outcome::Missed,
        () => Outcome::Inconclusive,
    };
    let [median, min, max] = [spread.median, spread.min, spread.max].map(|effect| 100.0 * effect);
    row(
        group,
        figure,
        goal,
        format!("{median:.1} % ({min:.1} to {max:.1} in {} runs)", effects.len()),
        outcome,
    )
}

/// Same against same: nothing may be called different.
pub fn aa(laboratory: &Laboratory) -> Rows {
    let mut exports = Vec::new();
    for number in 1..=runs(laboratory, AA_RUNS) {
        exports.push(laboratory.study(&Run::copy("docs/studies/aa.toml", "aa", number))?);
    }
    let is_called = |it: &&Comparison| matches!(it.verdict, Verdict::Faster | Verdict::Slower);
    let called: Vec<String> = exports
        .iter()
        .zip(1..)
        .flat_map(|(export, number)| {
            let called = export.result.comparisons.iter().filter(is_called);
            called.map(move |it| format!("run {number}: {} {:?}", it.cell_id, it.metric)).collect::<Vec<_>>()
        })
        .collect();
    let barred = exports.iter().filter(|export| export.result.verdict == Verdict::NotComparable).count();
    let mut measured = format!("{} calls in {} studies", called.len(), exports.len());
    if !called.is_empty() {
        measured.push_str(&format!(" ({})", called.join("; ")));
    }
    if barred > 0 {
        measured.push_str(&format!(", {barred} studies not comparable"));
    }
    let is_complete = barred == 0 && exports.iter().all(|export| export.result.complete);
    let outcome = judge_count(called.is_empty(), is_complete);
    Ok(vec![row("aa", "A/A: pairs called different, any metric".to_owned(), "none", measured, outcome)])
}

/// Plants extra CPU time and counts how often it is called. What 6 % are is measured first, by the same study.
pub fn power(laboratory: &Laboratory) -> Rows {
    let file = "docs/studies/power.toml";
    let pilot = laboratory.study(&Run::copy(file, "power-pilot", 1))?;
    let rehearsed_us = laboratory.rehearsal.then_some(COST_US_REHEARSED);
    let cost_us = plain_cost_us(&pilot)
        .or(rehearsed_us)
        .ok_or_else(|| Stop::Failed("power: the pilot has no clean trial".to_owned()))?;
    let plant_ns = (PLANTED_SHARE * cost_us * 1000.0).round();
    let failed = |error: std::io::Error| Stop::Failed(format!("power: {error}"));
    let text = std::fs::read_to_string(laboratory.root.join(file)).map_err(failed)?;
    let planted = laboratory.out.join("power-planted.toml");
    std::fs::write(&planted, planted_text(&text, plant_ns)).map_err(failed)?;
    let mut exports = Vec::new();
    for number in 1..=runs(laboratory, POWER_RUNS) {
        let mut run = Run::copy(file, "power", number + 1);
        run.study = planted.display().to_string();
        exports.push(laboratory.study(&run)?);
    }
    let called =
        exports.iter().filter(|export| headline(export).is_some_and(|it| it.verdict == Verdict::Slower));
    let called = called.count();
    let ratios: Vec<String> =
        exports.iter().filter_map(|export| Some(format!("{:.3}", headline(export)?.ratio?))).collect();
    let measured = format!(
        "{called} of {} ({plant_ns:.0} ns on {cost_us:.2} µs; ratios {})",
        exports.len(),
        ratios.join(" ")
    );
    let needed = if laboratory.rehearsal { exports.len() } else { POWER_CALLED_MIN };
    let outcome = judge_count(called >= needed, exports.iter().all(|export| export.result.complete));
    let figure = "power: planted 6 % of CPU per message called".to_owned();
    Ok(vec![row("power", figure, "≥ 9 of 10 runs", measured, outcome), detectable_row("power", &exports)])
}

fn headline(export: &Export) -> Option<&Comparison> {
    export.result.comparisons.get(export.result.headline?)
}

/// Server CPU per message of the arm without a plant.
fn plain_cost_us(export: &Export) -> Option<f64> {
    let is_plain = |it: &&ArmSummary| it.arm == "plain" && it.cell_id.ends_with("closed");
    export.result.arms.iter().find(is_plain).map(|summary| summary.server_cpu_us_per_message.median)
}

fn planted_text(text: &str, plant_ns: f64) -> String {
    text.replace(PLANT_IN_FILE, &format!("\"--plant-ns\", \"{plant_ns:.0}\""))
}

/// Sessions with the progress bar against sessions without, in turn, each on a terminal of its own.
pub fn display(laboratory: &Laboratory) -> Rows {
    let mut logs = Vec::new();
    let mut apart = 0;
    for number in 1..=runs(laboratory, DISPLAY_PAIRS) {
        let session = |display: Display| {
            let name = if display == Display::Bar { "display-on" } else { "display-off" };
            let run = Run { display, ..Run::copy("docs/studies/display.toml", name, number) };
            laboratory.study(&run).map(|export| session_cost(&export))
        };
        let (on, off) = if number % 2 == 0 {
            let on = session(Display::Bar)?;
            (on, session(Display::Quiet)?)
        } else {
            let off = session(Display::Quiet)?;
            (session(Display::Bar)?, off)
        };
        match (on, off) {
            (Some(on), Some(off))
                if on.state_ns.max(off.state_ns) < STATE_FACTOR * on.state_ns.min(off.state_ns) =>
            {
                logs.extend(order::log_ratio(on.cpu_ns, off.cpu_ns));
            }
            _ => apart += 1,
        }
    }
    let figure = "display on / off: server CPU per message".to_owned();
    let goal = "no difference, detectable effect ≤ 2 %";
    let (Some(measured), Some(effect)) = (from_logs(&logs, 1), detectable_effect_by_median(&logs)) else {
        let reason = format!("{} pairs of sessions are left, {apart} were apart", logs.len());
        return Ok(vec![row("display", figure, goal, reason, Outcome::NotMeasured)]);
    };
    let holds_one = measured.interval.is_some_and(|(low, high)| low <= 1.0 && 1.0 <= high);
    let outcome = judge_count(holds_one, effect <= DETECTABLE_DISPLAY_MAX);
    let text = format!("{measured}, detectable {:.1} %, {} pairs of sessions", 100.0 * effect, logs.len());
    Ok(vec![row("display", figure, goal, text, outcome)])
}

/// One session as one number, and the state of the machine it met.
struct SessionCost {
    cpu_ns: f64,
    state_ns: f64,
}

fn session_cost(export: &Export) -> Option<SessionCost> {
    let clean = || export.trials.iter().filter(|trial| trial.taints.is_empty());
    let costs: Vec<f64> = clean()
        .filter_map(|trial| trial.load.as_ref())
        .filter_map(|load| Some(load.observed.as_ref()?.cpu_ns as f64 / load.messages.max(1) as f64))
        .collect();
    let readings: Vec<f64> = clean()
        .map(|trial| f64::midpoint(trial.reading_before.round_trip_ns, trial.reading_after.round_trip_ns))
        .collect();
    Some(SessionCost { cpu_ns: order::median(&costs)?, state_ns: order::median(&readings)? })
}

/// The cells in which uring loses to epoll, each with what differs per message.
pub fn matrix(export: &Export) -> Vec<Row> {
    let is_compared = |it: &&Comparison| it.metric == Metric::ServerCpuPerMessage && !is_open(&it.cell_id);
    let compared: Vec<&Comparison> = export.result.comparisons.iter().filter(is_compared).collect();
    let count = |verdict: Verdict| compared.iter().filter(|it| it.verdict == verdict).count();
    let summary = format!(
        "{} cells: {} faster, {} equivalent, {} slower, {} inconclusive, {} not comparable",
        compared.len(),
        count(Verdict::Faster),
        count(Verdict::Equivalent),
        count(Verdict::Slower),
        count(Verdict::Inconclusive),
        count(Verdict::NotComparable)
    );
    let mut rows =
        vec![row("matrix", "uring / epoll over the matrix".to_owned(), "report", summary, Outcome::Listed)];
    for lost in compared.iter().filter(|it| it.verdict == Verdict::Slower) {
        let ratio = lost.ratio.map(|ratio| format!("{ratio:.3}")).unwrap_or_default();
        let interval = lost.interval.map(|(low, high)| format!(" [{low:.3}, {high:.3}]")).unwrap_or_default();
        let measured = format!("{ratio}{interval}; {}", differences(export, lost));
        rows.push(row("matrix", format!("uring loses {}", lost.cell_id), "cause", measured, Outcome::Listed));
    }
    rows
}

fn is_open(cell: &str) -> bool {
    !cell.ends_with("-closed")
}

/// The counters that tell the arms of a cell apart, for whoever looks for the cause.
fn differences(export: &Export, comparison: &Comparison) -> String {
    let summary =
        |arm: &str| export.result.arms.iter().find(|it| it.cell_id == comparison.cell_id && it.arm == arm);
    let counters = |arm: &str| -> String {
        let Some(summary) = summary(arm) else { return format!("{arm}: no counters") };
        let told = ["receives", "sends", "sends_short", "buffers_exhausted", "rearms", "receive_pauses"];
        let counts = summary
            .engine_per_message
            .iter()
            .filter(|(name, count)| told.contains(&name.as_str()) && *count >= 0.001);
        let counts: Vec<String> = counts.map(|(name, count)| format!("{name} {count:.3}")).collect();
        let calls = summary
            .syscalls_per_message
            .map_or_else(String::new, |calls| format!("system calls {calls:.3}, "));
        format!("{arm}: {calls}{}", counts.join(", "))
    };
    format!("a message: {}; {}", counters(&comparison.arm), counters(&comparison.baseline))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::sample::tests::export;

    fn comparison(metric: Metric, verdict: Verdict, detectable: f64) -> Comparison {
        Comparison {
            cell_id: "c1-closed".to_owned(),
            arm: "uring".to_owned(),
            baseline: "epoll".to_owned(),
            metric,
            ratio: Some(1.5),
            interval: Some((1.4, 1.6)),
            confidence: 0.95,
            interval_method: "bootstrap".to_owned(),
            p_value: None,
            p_value_holm: None,
            noise_floor: None,
            detectable_effect: Some(detectable),
            pairs: 12,
            pairs_excluded: vec![],
            ratios: vec![],
            ratios_self: vec![],
            ratio_all_pairs: None,
            verdict,
            notes: vec![],
        }
    }

    fn with(verdict: Verdict, detectable: f64) -> Export {
        let mut export = export();
        export.result.comparisons.push(comparison(Metric::ServerCpuPerMessage, verdict, detectable));
        export.result.headline = Some(0);
        export
    }

    #[test]
    fn faster_here_and_slower_there_is_a_contradiction_and_nothing_else_is() {
        let runs = |verdicts: &[Verdict]| -> Vec<Export> {
            verdicts.iter().map(|verdict| with(*verdict, 0.01)).collect()
        };
        assert!(
            contradictions(&runs(&[Verdict::Faster, Verdict::Inconclusive, Verdict::Equivalent])).is_empty()
        );
        let found = contradictions(&runs(&[Verdict::Faster, Verdict::Equivalent, Verdict::Slower]));
        assert_eq!(found, ["uring in c1-closed, ServerCpuPerMessage"]);
    }

    #[test]
    fn the_detectable_effect_must_hold_in_every_run() {
        let outcome = |effects: &[f64]| {
            let exports: Vec<Export> =
                effects.iter().map(|effect| with(Verdict::Equivalent, *effect)).collect();
            detectable_row("quick", &exports).outcome
        };
        assert_eq!(outcome(&[0.01, 0.02, 0.03]), Outcome::Met);
        assert_eq!(outcome(&[0.01, 0.02, 0.04]), Outcome::MetByPointOnly);
        assert_eq!(outcome(&[0.02, 0.04, 0.05]), Outcome::Inconclusive);
        assert_eq!(outcome(&[0.04, 0.05]), Outcome::Missed);
        assert_eq!(outcome(&[]), Outcome::NotMeasured);
    }

    #[test]
    fn the_plant_of_the_study_file_is_the_one_that_is_replaced() {
        let path = crate::workspace_root().join("docs/studies/power.toml");
        let text = std::fs::read_to_string(path).expect("the file is there");
        assert_eq!(text.matches(PLANT_IN_FILE).count(), 1);
        assert!(planted_text(&text, 287.0).contains("\"--plant-ns\", \"287\""));
    }

    #[test]
    fn lost_cells_are_listed_one_by_one() {
        let rows = matrix(&with(Verdict::Slower, 0.01));
        assert_eq!(rows.len(), 2);
        assert!(rows[1].figure.contains("c1-closed") && rows[1].measured.starts_with("1.500 [1.400, 1.600]"));
        assert_eq!(matrix(&with(Verdict::Faster, 0.01)).len(), 1);
    }
}
