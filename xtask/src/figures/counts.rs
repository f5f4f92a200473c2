//! Figures that are found from several studies, or count cells: the laboratory's own tests, and the matrix.

use std::collections::BTreeMap;

use weir_record::{
    study::ArmSummary,
    verdict::{Comparison, Metric, Verdict},
};
use weir_stats::{order, power::detectable_effect_by_median};

use super::{
    Row,
    catalog::Group,
    goal::{Outcome, judge_count},
    plan,
    sample::{Export, from_logs},
    session::{Display, Laboratory, Run, Stop},
};

/// What a group of runs gave: rows, or the reason for none.
type Rows = Result<Vec<Row>, Stop>;

const QUICK_RUNS: u64 = 3;
const AA_RUNS: u64 = 20;
const POWER_RUNS: u64 = 10;
const POWER_CALLED_MIN: usize = 9;

/// Pairs of sessions: the fewest whose interval may decide, and the most.
const DISPLAY_PAIRS_MIN: usize = 6;
const DISPLAY_PAIRS_MAX: u64 = 12;

const AA: &str = "docs/studies/aa.toml";
const POWER: &str = "docs/studies/power.toml";
const DISPLAY: &str = "docs/studies/display.toml";

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

/// Largest p-value, after correction, of a loss that is listed.
const P_VALUE_MAX: f64 = 0.05;

/// Cross-core readings of two sessions in one state of the machine differ by less than this factor.
const STATE_FACTOR: f64 = 1.5;

fn runs(laboratory: &Laboratory, full: u64) -> u64 {
    if laboratory.rehearsal { REHEARSED_RUNS } else { full }
}

fn row(group: &str, figure: String, goal: &str, measured: String, outcome: Outcome) -> Row {
    let command = format!("cargo xtask figures --only {group}");
    Row { figure, goal: goal.to_owned(), measured, outcome, command }
}

/// Every run of a group, in the order they run.
pub fn runs_of(laboratory: &Laboratory, group: &Group) -> Vec<Run> {
    let numbers = |full: u64| 1..=runs(laboratory, full);
    match group.name {
        // A rehearsal cannot shorten what is built in.
        "quick" if laboratory.rehearsal => copies("docs/studies/example.toml", "quick", numbers(QUICK_RUNS)),
        "quick" => copies(plan::QUICK, "quick", numbers(QUICK_RUNS)),
        "aa" => copies(AA, "aa", numbers(AA_RUNS)),
        "power" => {
            let pilot = Run::copy(POWER, "power-pilot", 0);
            std::iter::once(pilot).chain(copies(POWER, "power", numbers(POWER_RUNS))).collect()
        }
        "display" => numbers(DISPLAY_PAIRS_MAX).flat_map(display_pair).collect(),
        _ => group.studies.iter().map(|study| Run::once(study)).collect(),
    }
}

fn copies(study: &str, name: &str, numbers: std::ops::RangeInclusive<u64>) -> Vec<Run> {
    numbers.map(|number| Run::copy(study, name, number)).collect()
}

/// Runs all of a group's studies.
fn exports(laboratory: &Laboratory, group: &Group) -> Result<Vec<Export>, Stop> {
    runs_of(laboratory, group).iter().map(|run| laboratory.study(run)).collect()
}

/// The headline's ratio over several runs, as a reader wants it beside a count.
fn headline_ratio(exports: &[Export]) -> String {
    let ratios = exports.iter().filter_map(|export| Some(headline(export)?.ratio?.ln()));
    let ratios: Vec<f64> = ratios.collect();
    from_logs(&ratios, 1).map_or_else(|| "no ratio".to_owned(), |measured| format!("ratio {measured}"))
}

/// No cell may be called faster in one run and slower in another.
pub fn quick(laboratory: &Laboratory, group: &Group) -> Rows {
    let exports = exports(laboratory, group)?;
    let contradictions = contradictions(&exports);
    let measured = match contradictions.as_slice() {
        [] => format!("none in {} runs; headline {}", exports.len(), headline_ratio(&exports)),
        found => format!("{}; headline {}", found.join("; "), headline_ratio(&exports)),
    };
    // Runs that compared nothing contradict nothing either.
    let is_whole =
        |export: &Export| export.has_all_blocks() && export.result.verdict != Verdict::NotComparable;
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
        |called: &Vec<Verdict>| called.contains(&Verdict::Better) && called.contains(&Verdict::Worse);
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
pub fn aa(laboratory: &Laboratory, group: &Group) -> Rows {
    let exports = exports(laboratory, group)?;
    let is_called = |it: &&Comparison| matches!(it.verdict, Verdict::Better | Verdict::Worse);
    let called: Vec<String> = exports
        .iter()
        .zip(1..)
        .flat_map(|(export, number)| {
            let called = export.result.comparisons.iter().filter(is_called);
            called.map(move |it| format!("run {number}: {} {:?}", it.cell_id, it.metric)).collect::<Vec<_>>()
        })
        .collect();
    let barred = exports.iter().filter(|export| export.result.verdict == Verdict::NotComparable).count();
    let mut measured =
        format!("{} calls in {} studies; headline {}", called.len(), exports.len(), headline_ratio(&exports));
    if !called.is_empty() {
        measured.push_str(&format!(" ({})", called.join("; ")));
    }
    if barred > 0 {
        measured.push_str(&format!(", {barred} studies not comparable"));
    }
    let is_complete = barred == 0 && exports.iter().all(|export| export.has_all_blocks());
    let outcome = judge_count(called.is_empty(), is_complete);
    Ok(vec![row("aa", "A/A: pairs called different, any metric".to_owned(), "none", measured, outcome)])
}

/// Plants extra CPU time and counts how often it is called. What 6 % are is measured first, by the same study.
pub fn power(laboratory: &Laboratory, group: &Group) -> Rows {
    let mut planned = runs_of(laboratory, group).into_iter();
    let pilot = planned.next().ok_or_else(|| Stop::Failed("power: no run is planned".to_owned()))?;
    let pilot = laboratory.study(&pilot)?;
    let rehearsed_us = laboratory.rehearsal.then_some(COST_US_REHEARSED);
    let cost_us = plain_cost_us(&pilot)
        .or(rehearsed_us)
        .ok_or_else(|| Stop::Failed("power: the pilot has no clean trial".to_owned()))?;
    let plant_ns = (PLANTED_SHARE * cost_us * 1000.0).round();
    let failed = |error: std::io::Error| Stop::Failed(format!("power: {error}"));
    let text = std::fs::read_to_string(laboratory.root.join(POWER)).map_err(failed)?;
    let planted = laboratory.out.join("power-planted.toml");
    std::fs::write(&planted, planted_text(&text, plant_ns)).map_err(failed)?;
    let mut exports = Vec::new();
    for run in planned {
        exports.push(laboratory.study(&Run { study: planted.display().to_string(), ..run })?);
    }
    let called =
        exports.iter().filter(|export| headline(export).is_some_and(|it| it.verdict == Verdict::Worse));
    let called = called.count();
    let measured = format!(
        "{called} of {}; {} ({plant_ns:.0} ns on {cost_us:.2} µs)",
        exports.len(),
        headline_ratio(&exports)
    );
    let needed = if laboratory.rehearsal { exports.len() } else { POWER_CALLED_MIN };
    let outcome = judge_count(called >= needed, exports.iter().all(|export| export.has_all_blocks()));
    let figure = "power: planted 6 % of CPU per message called".to_owned();
    Ok(vec![row("power", figure, "≥ 9 of 10 runs", measured, outcome), detectable_row("power", &exports)])
}

fn headline(export: &Export) -> Option<&Comparison> {
    export.result.comparisons.get(export.result.headline?)
}

/// Server CPU per message of the arm without a plant.
fn plain_cost_us(export: &Export) -> Option<f64> {
    let is_plain = |it: &&ArmSummary| it.arm == "plain" && it.cell_id.ends_with("closed");
    export.result.arms.iter().find(is_plain).and_then(|summary| summary.median(Metric::ServerCpuPerMessage))
}

fn planted_text(text: &str, plant_ns: f64) -> String {
    text.replace(PLANT_IN_FILE, &format!("\"--plant-ns\", \"{plant_ns:.0}\""))
}

/// Sessions with the progress bar against sessions without, in turn, each on a terminal of its own. No more of them
/// than the detectable effect needs: that depends on how much the pairs scatter, not on what they say.
pub fn display(laboratory: &Laboratory) -> Rows {
    let mut logs = Vec::new();
    let mut apart = 0;
    for number in 1..=runs(laboratory, DISPLAY_PAIRS_MAX) {
        let mut costs = BTreeMap::new();
        for run in display_pair(number) {
            let cost = session_cost(&laboratory.study(&run)?);
            costs.insert(run.folder.contains("display-on"), cost);
        }
        match (costs.remove(&true).flatten(), costs.remove(&false).flatten()) {
            (Some(on), Some(off))
                if on.state_ns.max(off.state_ns) < STATE_FACTOR * on.state_ns.min(off.state_ns) =>
            {
                logs.extend(order::log_ratio(on.cpu_ns, off.cpu_ns));
            }
            _ => apart += 1,
        }
        if is_fine_enough(&logs) {
            break;
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

/// Both sessions of a pair; which comes first alternates.
fn display_pair(number: u64) -> [Run; 2] {
    let session = |display, name| Run { display, ..Run::copy(DISPLAY, name, number) };
    let (on, off) = (session(Display::Bar, "display-on"), session(Display::Quiet, "display-off"));
    if number.is_multiple_of(2) { [on, off] } else { [off, on] }
}

fn is_fine_enough(logs: &[f64]) -> bool {
    logs.len() >= DISPLAY_PAIRS_MIN
        && detectable_effect_by_median(logs).is_some_and(|effect| effect <= DETECTABLE_DISPLAY_MAX)
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
///
/// Where the generator was the limit the laboratory gives no verdict, for the arms ran at rates of their own. Such
/// cells are told apart here by interval and corrected p-value, so that a loss is listed all the same.
pub fn matrix(export: &Export) -> Vec<Row> {
    let is_compared = |it: &&Comparison| it.metric == Metric::ServerCpuPerMessage;
    let compared: Vec<&Comparison> = export.result.comparisons.iter().filter(is_compared).collect();
    let (bound, judged): (Vec<&Comparison>, Vec<&Comparison>) =
        compared.iter().partition(|it| has_own_rates(export, it));
    let count = |verdict: Verdict| judged.iter().filter(|it| it.verdict == verdict).count();
    let (less, more) =
        (bound.iter().filter(|it| costs_less(it)).count(), bound.iter().filter(|it| costs_more(it)).count());
    let summary = format!(
        "{}{} cells: {} faster, {} equivalent, {} slower, {} inconclusive, {} not comparable; at the generator's limit \
         {less} with less CPU, {more} with more, {} undecided",
        if export.has_all_blocks() { "" } else { "incomplete; " },
        compared.len(),
        count(Verdict::Better),
        count(Verdict::Equivalent),
        count(Verdict::Worse),
        count(Verdict::Inconclusive),
        count(Verdict::NotComparable),
        bound.len() - less - more
    );
    let mut rows =
        vec![row("matrix", "uring / epoll over the matrix".to_owned(), "report", summary, Outcome::Listed)];
    let lost_judged = judged.iter().filter(|it| it.verdict == Verdict::Worse);
    let lost_bound = bound.iter().filter(|it| costs_more(it));
    for lost in lost_judged.chain(lost_bound) {
        let ratio = lost.ratio.map(|ratio| format!("{ratio:.3}")).unwrap_or_default();
        let interval = lost.interval.map(|(low, high)| format!(" [{low:.3}, {high:.3}]")).unwrap_or_default();
        let measured = format!("{ratio}{interval}; {}", differences(export, lost));
        let cell = lost.cell_id.trim_end_matches("-closed");
        rows.push(row("matrix", format!("uring loses {cell}"), "cause", measured, Outcome::Listed));
    }
    rows
}

/// Whether the generator's limit is all that speaks against the comparison: every trial of its cell was answered well.
fn has_own_rates(export: &Export, comparison: &Comparison) -> bool {
    let mut trials = export.trials.iter().filter(|trial| trial.cell_id == comparison.cell_id);
    comparison.verdict == Verdict::NotComparable
        && comparison.interval.is_some()
        && trials.all(|trial| trial.load.as_ref().is_some_and(|load| load.failures.errors() == 0))
}

fn costs_more(comparison: &Comparison) -> bool {
    is_significant(comparison) && comparison.interval.is_some_and(|(low, _)| low > 1.0)
}

fn costs_less(comparison: &Comparison) -> bool {
    is_significant(comparison) && comparison.interval.is_some_and(|(_, high)| high < 1.0)
}

fn is_significant(comparison: &Comparison) -> bool {
    comparison.p_value_holm.is_some_and(|p_value| p_value <= P_VALUE_MAX)
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
    use weir_record::trial::TrialRecord;

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
            interval_self: None,
            by_state: Vec::new(),
            verdict,
            difference: None,
            levels: None,
            reasons: vec![],
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
            contradictions(&runs(&[Verdict::Better, Verdict::Inconclusive, Verdict::Equivalent])).is_empty()
        );
        let found = contradictions(&runs(&[Verdict::Better, Verdict::Equivalent, Verdict::Worse]));
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
        let rows = matrix(&with(Verdict::Worse, 0.01));
        assert_eq!(rows.len(), 2);
        assert!(rows[1].figure.ends_with("c1") && rows[1].measured.starts_with("1.500 [1.400, 1.600]"));
        assert_eq!(matrix(&with(Verdict::Better, 0.01)).len(), 1);
    }

    #[test]
    fn a_loss_at_the_generators_limit_is_listed_and_a_failing_cell_is_not() {
        let mut export = with(Verdict::NotComparable, 0.01);
        assert_eq!(matrix(&export).len(), 1, "no p-value, no loss");
        export.result.comparisons[0].p_value_holm = Some(0.01);
        assert_eq!(matrix(&export)[1].figure, "uring loses c1");
        let failed = TrialRecord { cell_id: "c1-closed".to_owned(), ..TrialRecord::default() };
        export.trials.push(failed);
        let rows = matrix(&export);
        assert_eq!(rows.len(), 1);
        assert!(rows[0].measured.contains("1 not comparable"), "{}", rows[0].measured);
    }

    #[test]
    fn pairs_of_sessions_end_when_they_are_fine_enough() {
        let calm = [0.001, -0.001, 0.002, -0.002, 0.001, 0.0];
        assert!(is_fine_enough(&calm));
        assert!(!is_fine_enough(&calm[..5]));
        assert!(!is_fine_enough(&calm.map(|log| 20.0 * log)));
    }

    #[test]
    fn the_first_session_of_a_pair_alternates() {
        let first = |number| display_pair(number)[0].folder.clone();
        assert_eq!((first(1).as_str(), first(2).as_str()), ("display-off-01", "display-on-02"));
    }
}
