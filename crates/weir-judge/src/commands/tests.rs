//! Runs of a known cost through everything that judges them.

use weir_record::{
    commands::{FailedEnd, RunFigures, Written},
    goal::Side,
};
use weir_stats::random::Random;

use super::*;

const MARGIN: f64 = 0.01;
const PAIRS: u32 = 20;
const LIMIT_NS: u64 = 1_000_000_000;

fn arms(roles: &[(&str, CommandRole)]) -> Vec<CommandArm> {
    let arm = |(name, role): &(&str, CommandRole)| CommandArm {
        name: (*name).to_owned(),
        role: *role,
        words: vec![(*name).to_owned()],
        ..CommandArm::default()
    };
    roles.iter().map(arm).collect()
}

fn two() -> Vec<CommandArm> {
    arms(&[("old", CommandRole::Baseline), ("new", CommandRole::Candidate)])
}

fn run(pair: u32, (command, repeat): (usize, bool), place: usize, cpu_us: f64) -> CommandRun {
    CommandRun {
        pair,
        place: count(place),
        command: count(command),
        repeat,
        cost: RunFigures {
            wall_ns: (cpu_us * 1.1e3) as u64,
            user_ns: (cpu_us * 0.8e3) as u64,
            system_ns: (cpu_us * 0.2e3) as u64,
            memory_bytes_max: Some(1 << 20),
            ..RunFigures::default()
        },
        stdout: Written { bytes: 3, content: "abc".to_owned() },
        ..CommandRun::default()
    }
}

/// Runs of pairs in which each command has the given cost, with one scatter that its pair shares and one for each run.
fn runs(phase: RunPhase, costs_us: &[f64], pairs: u32, scatter: f64) -> Vec<CommandRun> {
    let mut random = Random::seeded(11);
    let mut all = Vec::new();
    for pair in 0..pairs {
        let shared = 0.2 * random.normal();
        for (place, slot) in order(3, phase, pair, costs_us.len()).into_iter().enumerate() {
            let cpu_us = costs_us[slot.0] * (shared + scatter * random.normal()).exp();
            all.push(CommandRun { phase, ..run(pair, slot, place, cpu_us) });
        }
    }
    all
}

fn measured(costs_us: &[f64]) -> Vec<CommandRun> {
    runs(RunPhase::Measured, costs_us, PAIRS, 0.005)
}

fn judged<'a>(commands: &'a [CommandArm], runs: &'a [CommandRun], measured_by: &'a MeasuredBy) -> Judged<'a> {
    Judged {
        commands,
        runs,
        pairs: PAIRS,
        unit_pairs: None,
        is_interrupted: false,
        is_ended_by_server: false,
        equivalence_margin: MARGIN,
        ignore_failure: false,
        is_served: false,
        limit_ns: LIMIT_NS,
        measured_by,
        thresholds: &[],
        seen: &[],
        partings: &[],
    }
}

fn concluded(commands: &[CommandArm], runs: &[CommandRun]) -> Conclusion {
    conclude(&judged(commands, runs, &MeasuredBy::default()))
}

fn decisive<'c>(conclusion: &'c Conclusion, arm: &str) -> &'c Effect {
    let mut rows = conclusion.effects.comparisons();
    rows.find(|row| row.metric == Metric::CommandCpu && row.arm == arm).expect("it is compared")
}

#[test]
fn commands_that_cost_more_less_and_as_much_are_called_so() {
    let cases = [(103_000.0, Verdict::Worse), (97_000.0, Verdict::Better), (100_000.0, Verdict::Equivalent)];
    for (cost, verdict) in cases {
        let found = concluded(&two(), &measured(&[100_000.0, cost]));
        let row = decisive(&found, "new");
        assert_eq!(row.verdict, verdict, "{row:?}");
        assert!((row.estimate.expect("it was measured") - cost / 1e5).abs() < 0.006);
        assert_eq!((row.units, row.role), (PAIRS, CellRole::Primary));
        assert_eq!(found.findings, []);
        let itself = found.effects.itself(row).expect("the baseline ran twice");
        assert!(itself.interval.is_some_and(|(low, high)| low < 1.0 && high > 1.0));
    }
}

#[test]
fn what_a_pair_shares_is_not_in_the_interval() {
    let found = concluded(&two(), &measured(&[100_000.0, 103_000.0]));
    let (low, high) = decisive(&found, "new").interval.expect("it was measured");
    assert!(high - low < 0.02, "pairs differ by 20 %: {low} {high}");
}

#[test]
fn a_claim_is_cpu_time_alone_and_several_share_a_correction() {
    let commands = arms(&[
        ("old", CommandRole::Baseline),
        ("one", CommandRole::Candidate),
        ("two", CommandRole::Candidate),
    ]);
    let found = concluded(&commands, &measured(&[100_000.0, 103_000.0, 100_300.0]));
    for row in found.effects.comparisons() {
        assert_eq!(row.p_value_holm.is_some(), row.metric == Metric::CommandCpu, "{:?}", row.metric);
        assert_eq!(row.verdict == Verdict::NoClaim, row.metric != Metric::CommandCpu, "{:?}", row.metric);
    }
    let [(one, one_holm), (two, two_holm)] = ["one", "two"].map(|name| {
        let row = decisive(&found, name);
        (row.p_value.expect("it was measured"), row.p_value_holm.expect("it is a claim"))
    });
    assert!(one < 1e-6 && one < two && two < 0.5, "{one} {two}");
    assert_eq!((one_holm, two_holm), (2.0 * one, two.max(2.0 * one)), "the smaller of two counts twice");
    assert_eq!(decisive(&found, "two").role, CellRole::Confirmatory);
    assert!(
        found.effects.comparisons().all(|row| row.metric != Metric::CommandInstructions),
        "nothing counted them"
    );
}

#[test]
fn an_unfinished_comparison_decides_nothing_and_says_how_far_it_came() {
    let mut runs = measured(&[100_000.0, 130_000.0]);
    runs.truncate(runs.len() - 1);
    let commands = two();
    let measured_by = MeasuredBy::default();
    let found = conclude(&Judged { is_interrupted: true, ..judged(&commands, &runs, &measured_by) });
    let row = decisive(&found, "new");
    assert_eq!(row.verdict, Verdict::Inconclusive);
    assert!(row.interval.is_some(), "what was measured is shown");
    let cut = CommandFinding::CutShort { pairs_done: PAIRS - 1, pairs: PAIRS, is_interrupted: true };
    assert_eq!(found.findings, [cut]);
}

#[test]
fn a_server_that_was_left_out_before_does_not_hide_that_the_others_were_cut() {
    let mut runs = measured(&[100_000.0, 130_000.0]);
    runs.truncate(runs.len() - 1);
    let (commands, measured_by) = (two(), MeasuredBy::default());
    let (command, said) = ("third".to_owned(), String::new());
    let seen = [CommandFinding::ServerEnded { command, end: FailedEnd::Signal(9), said }];
    let is_cut = |is_ended_by_server: bool| {
        let judged = judged(&commands, &runs, &measured_by);
        let found = conclude(&Judged {
            is_interrupted: !is_ended_by_server,
            is_ended_by_server,
            seen: &seen,
            ..judged
        });
        found.findings.iter().any(|it| matches!(it, CommandFinding::CutShort { .. }))
    };
    assert_eq!([is_cut(false), is_cut(true)], [true, false]);
}

#[test]
fn another_output_is_named_first_and_leaves_nothing_to_compare() {
    let mut runs = measured(&[100_000.0, 90_000.0]);
    for run in runs.iter_mut().filter(|run| run.command == 1) {
        run.stdout = Written { bytes: 4, content: "abcd".to_owned() };
    }
    let found = concluded(&two(), &runs);
    assert_eq!(decisive(&found, "new").verdict, Verdict::NotComparable);
    let CommandFinding::OutputDiffers { stream, bytes, runs, .. } = &found.findings[0] else {
        panic!("{found:?}")
    };
    assert_eq!((*stream, *bytes, *runs), (Stream::Stdout, (4, 3), (PAIRS, PAIRS)));
}

#[test]
fn an_output_that_differs_from_run_to_run_says_nothing_of_commands() {
    let mut runs = measured(&[100_000.0, 90_000.0]);
    for (number, run) in runs.iter_mut().enumerate() {
        run.stderr = Written { bytes: 8, content: format!("{number}") };
    }
    let found = concluded(&two(), &runs);
    assert_eq!(decisive(&found, "new").verdict, Verdict::Better);
    let varies = CommandFinding::OutputVaries { command: "old".to_owned(), stream: Stream::Stderr };
    assert_eq!(found.findings, [varies]);
}

#[test]
fn few_failures_cost_their_pairs_and_many_the_comparison() {
    let failing = |every: usize| {
        let mut runs = measured(&[100_000.0, 90_000.0]);
        let own = runs.iter_mut().filter(|run| run.command == 1);
        for run in own.step_by(every) {
            run.end = RunEnding::Exited(7);
            run.said = "the port is taken".to_owned();
        }
        concluded(&two(), &runs)
    };
    let few = failing(10);
    assert_eq!((decisive(&few, "new").verdict, decisive(&few, "new").units), (Verdict::Better, PAIRS - 2));
    let CommandFinding::FailedSometimes { end, failed, runs, said, .. } = &few.findings[0] else {
        panic!("{few:?}")
    };
    assert_eq!((*end, *failed, *runs, said.as_str()), (FailedEnd::Status(7), 2, PAIRS, "the port is taken"));
    assert_eq!(decisive(&failing(3), "new").verdict, Verdict::NotComparable);
}

#[test]
fn of_a_command_that_failed_the_output_is_not_compared() {
    let mut runs = measured(&[100_000.0, 90_000.0]);
    for run in runs.iter_mut().filter(|run| run.command == 1) {
        run.phase = RunPhase::First;
        run.end = RunEnding::Exited(2);
        run.stdout = Written { bytes: 6, content: "usage:".to_owned() };
    }
    let found = concluded(&two(), &runs);
    assert!(matches!(found.findings[0], CommandFinding::Failed { .. }), "{found:?}");
    assert!(!found.findings.iter().any(|it| matches!(it, CommandFinding::OutputDiffers { .. })), "{found:?}");
    assert_eq!(decisive(&found, "new").verdict, Verdict::NotComparable);
}

#[test]
fn failures_that_are_ignored_are_compared_and_another_status_is_a_difference() {
    let commands = two();
    let measured_by = MeasuredBy::default();
    let with = |old: i32, new: i32| {
        let mut runs = measured(&[100_000.0, 90_000.0]);
        for run in &mut runs {
            run.end = RunEnding::Exited(if run.command == 0 { old } else { new });
        }
        conclude(&Judged { ignore_failure: true, ..judged(&commands, &runs, &measured_by) })
    };
    assert_eq!(decisive(&with(1, 1), "new").verdict, Verdict::Better);
    let found = with(1, 2);
    assert_eq!(decisive(&found, "new").verdict, Verdict::NotComparable);
    assert!(matches!(found.findings[0], CommandFinding::StatusDiffers { .. }), "{found:?}");
}

/// One finding about ends where failures are ignored, and what they leave of the comparison.
fn ends_found(old: &[RunEnding], new: &[RunEnding]) -> (Vec<(FailedEnd, FailedEnd)>, Verdict) {
    let (commands, measured_by) = (two(), MeasuredBy::default());
    let mut runs = measured(&[100_000.0, 90_000.0]);
    for run in &mut runs {
        let ends = if run.command == 0 { old } else { new };
        run.end = ends[run.pair as usize % ends.len()];
    }
    let found = conclude(&Judged { ignore_failure: true, ..judged(&commands, &runs, &measured_by) });
    let ends = found.findings.iter().filter_map(|it| match it {
        CommandFinding::StatusDiffers { ends, .. } => Some(*ends),
        _ => None,
    });
    (ends.collect(), decisive(&found, "new").verdict)
}

#[test]
fn where_failures_are_ignored_an_end_that_the_baseline_never_had_is_a_difference() {
    let (fine, wrong, crash) = (RunEnding::Exited(0), RunEnding::Exited(1), RunEnding::Killed(11));
    let (of_fine, of_crash) = (FailedEnd::Status(0), FailedEnd::Signal(11));
    let bars = |ends| (vec![ends], Verdict::NotComparable);
    assert_eq!(ends_found(&[fine], &[crash]), bars((of_crash, of_fine)), "it always crashes");
    assert_eq!(ends_found(&[fine], &[fine, fine, fine, wrong]), bars((FailedEnd::Status(1), of_fine)));
    assert_eq!(ends_found(&[crash], &[fine]), bars((of_fine, of_crash)));
    assert_eq!(ends_found(&[RunEnding::Exited(11)], &[crash]), bars((of_crash, FailedEnd::Status(11))));
    assert_eq!(ends_found(&[crash], &[crash]), (vec![], Verdict::Better));
    assert_eq!(ends_found(&[fine, wrong], &[wrong]), (vec![], Verdict::Better));
}

#[test]
fn where_failures_are_ignored_the_output_of_killed_runs_is_compared() {
    let (commands, measured_by) = (two(), MeasuredBy::default());
    let mut runs = measured(&[100_000.0, 90_000.0]);
    for run in &mut runs {
        run.end = RunEnding::Killed(15);
        if run.command == 1 {
            run.stdout = Written { bytes: 0, content: "nothing".to_owned() };
        }
    }
    let found = conclude(&Judged { ignore_failure: true, ..judged(&commands, &runs, &measured_by) });
    assert!(matches!(found.findings[..], [CommandFinding::OutputDiffers { bytes: (0, 3), .. }]), "{found:?}");
    assert_eq!(decisive(&found, "new").verdict, Verdict::NotComparable);
}

#[test]
fn one_wrong_output_is_not_forgiven_for_the_right_ones() {
    let mut runs = measured(&[100_000.0, 90_000.0]);
    let last = runs.iter_mut().rfind(|run| run.command == 1).expect("it ran");
    last.stdout = Written { bytes: 4, content: "abcd".to_owned() };
    let found = concluded(&two(), &runs);
    let [CommandFinding::OutputDiffers { bytes, runs, .. }] = &found.findings[..] else {
        panic!("{found:?}")
    };
    assert_eq!((*bytes, *runs), ((4, 3), (1, PAIRS)));
    assert_eq!(decisive(&found, "new").verdict, Verdict::NotComparable);
}

#[test]
fn what_weir_takes_in_each_run_is_in_no_effect_and_no_threshold() {
    let (commands, thresholds) = (two(), [ComparisonSpec { to: Vec::new(), ..cpu_threshold(120.0) }]);
    // A tenth of the first is Weir's: less a constant, the second costs a third more.
    let runs = measured(&[100.0, 130.0]);
    let of = |subtracted_cpu_ns| {
        let measured_by = MeasuredBy { subtracted_cpu_ns, ..MeasuredBy::default() };
        let found = conclude(&Judged { thresholds: &thresholds, ..judged(&commands, &runs, &measured_by) });
        let itself = found.effects.itself(decisive(&found, "new")).and_then(|row| row.estimate);
        let row = decisive(&found, "new").clone();
        (row.estimate.expect("it is known"), itself.expect("it is known"), found.thresholds.rows[0].estimate)
    };
    let (plain, itself, threshold) = of(None);
    assert!((plain - 1.3).abs() < 0.01 && (itself - 1.0).abs() < 0.01, "{plain} {itself}");
    let (less, itself, less_threshold) = of(Some(10_000));
    assert!((less - 120.0 / 90.0).abs() < 0.02 && (itself - 1.0).abs() < 0.01, "{less} {itself}");
    let fell = threshold.zip(less_threshold).map(|(one, other)| one - other);
    assert!(fell.is_some_and(|it| (it - 10.0).abs() < 1.0), "{fell:?}");
}

#[test]
fn where_first_runs_part_is_told_with_the_output_that_differs() {
    let mut runs = measured(&[100_000.0, 90_000.0]);
    let own = runs.iter_mut().find(|run| run.command == 1).expect("it ran");
    own.stdout = Written { bytes: 4, content: "abcd".to_owned() };
    let at = FirstDifference { offset_bytes: 2, line: 1, excerpts: ("d".to_owned(), "c".to_owned()) };
    let parting = |stream| Parting { command: 1, stream, at: at.clone() };
    let (commands, measured_by) = (two(), MeasuredBy::default());
    let first = |partings: &[Parting]| {
        let found = conclude(&Judged { partings, ..judged(&commands, &runs, &measured_by) });
        match &found.findings[..] {
            [CommandFinding::OutputDiffers { first, .. }] => first.as_deref().cloned(),
            _ => panic!("{found:?}"),
        }
    };
    assert_eq!(first(&[parting(Stream::Stderr), parting(Stream::Stdout)]), Some(at.clone()));
    assert_eq!(first(&[parting(Stream::Stderr)]), None);
}

#[test]
fn one_measured_run_that_was_cut_leaves_nothing_to_compare() {
    let thresholds = [cpu_threshold(1.01), ComparisonSpec { to: Vec::new(), ..cpu_threshold(200_000.0) }];
    let (commands, measured_by) = (two(), MeasuredBy::default());
    for (command, end, ignore_failure) in [
        (1, RunEnding::Overran, false),
        (1, RunEnding::OutOfMemory, true),
        (0, RunEnding::OutOfMemory, false),
        (0, RunEnding::Overran, true),
    ] {
        let mut runs = measured(&[100_000.0, 90_000.0]);
        let mut own = runs.iter_mut().filter(|run| run.command == command);
        own.next().expect("it ran").end = RunEnding::Exited(if ignore_failure { 0 } else { 7 });
        own.next().expect("it ran").end = end;
        let asked =
            Judged { ignore_failure, thresholds: &thresholds, ..judged(&commands, &runs, &measured_by) };
        let found = conclude(&asked);
        assert_eq!(decisive(&found, "new").verdict, Verdict::NotComparable, "{command} {end:?}");
        assert!(found.thresholds.rows.iter().all(|row| row.outcome == Some(Outcome::Open)), "{found:?}");
        let ran = |row: &Effect| row.reasons.contains(&Finding::NoUnitLeft);
        assert!(found.thresholds.rows.iter().all(ran), "it ran, and is not missing: {found:?}");
        let cut = [FailedEnd::OutOfMemory, FailedEnd::Overran { limit_ns: LIMIT_NS }];
        let is_named = |it: &CommandFinding| match it {
            CommandFinding::CutSometimes { end, cut: 1, .. } => cut.contains(end),
            _ => false,
        };
        assert!(found.findings.iter().any(is_named), "{found:?}");
        let failed = found.findings.iter().filter_map(|it| match it {
            CommandFinding::FailedSometimes { end, failed, .. } => Some((*end, *failed)),
            _ => None,
        });
        let expected = if ignore_failure { vec![] } else { vec![(FailedEnd::Status(7), 1)] };
        assert_eq!(failed.collect::<Vec<_>>(), expected, "a run that was cut is no such failure");
    }
}

#[test]
fn a_run_that_was_cut_before_any_was_measured_costs_nothing_but_itself() {
    let mut runs = runs(RunPhase::Pilot, &[100_000.0, 90_000.0], 5, 0.005);
    runs[0].end = RunEnding::Overran;
    runs.extend(measured(&[100_000.0, 90_000.0]));
    assert_eq!(decisive(&concluded(&two(), &runs), "new").verdict, Verdict::Better);
}

#[test]
fn a_figure_that_some_runs_lack_has_no_interval_and_they_are_counted() {
    let memory = |runs: &[CommandRun], command: &str| {
        let side = Side { arm: command.to_owned(), cell_id: String::new(), metric: Metric::CommandMemoryMax };
        let thresholds = [ComparisonSpec { of: side, to: Vec::new(), ..cpu_threshold(f64::from(1 << 21)) }];
        let (commands, measured_by) = (two(), MeasuredBy::default());
        let found = conclude(&Judged { thresholds: &thresholds, ..judged(&commands, runs, &measured_by) });
        let mut rows = found.effects.comparisons();
        let row = rows.find(|row| row.metric == Metric::CommandMemoryMax).expect("most runs have it");
        (row.interval.is_some(), row.excluded.clone(), found.thresholds.rows[0].outcome)
    };
    let mut runs = measured(&[100_000.0, 90_000.0]);
    assert_eq!(memory(&runs, "new"), (true, vec![], Some(Outcome::Met)));
    for (command, name) in [(0, "old"), (1, "new")] {
        runs = measured(&[100_000.0, 90_000.0]);
        let own = runs.iter_mut().find(|run| run.command == command && !run.repeat).expect("it ran");
        own.cost.memory_bytes_max = None;
        let counted = vec![Finding::Excluded { reason: ExclusionKind::WithoutFigure, count: 1 }];
        assert_eq!(memory(&runs, name), (false, counted, Some(Outcome::Open)));
    }
}

#[test]
fn what_a_placebo_does_is_no_verdict_on_a_command() {
    let commands = arms(&[
        ("old", CommandRole::Baseline),
        ("new", CommandRole::Candidate),
        ("shuffled", CommandRole::Placebo),
    ]);
    let of = |new: f64, shuffled: f64| concluded(&commands, &measured(&[100_000.0, new, shuffled]));
    assert_eq!(decisive(&of(104_000.0, 100_500.0), "new").verdict, Verdict::Worse);
    let found = of(104_000.0, 95_000.0);
    assert_eq!(decisive(&found, "new").verdict, Verdict::Inconclusive);
    assert!(matches!(found.findings[0], CommandFinding::WithinPlacebos { .. }), "{found:?}");
    assert_eq!(decisive(&found, "shuffled").verdict, Verdict::NoClaim);
}

#[test]
fn a_threshold_that_layout_alone_could_decide_is_open() {
    let commands = arms(&[
        ("old", CommandRole::Baseline),
        ("new", CommandRole::Candidate),
        ("shuffled", CommandRole::Placebo),
    ]);
    let figure = ComparisonSpec { to: Vec::new(), ..cpu_threshold(90_000.0) };
    let thresholds = [cpu_threshold(1.03), cpu_threshold(1.06), cpu_threshold(1.2), figure];
    let measured_by = MeasuredBy::default();
    let of = |new: f64, shuffled: f64| {
        let runs = measured(&[100_000.0, new, shuffled]);
        let found = conclude(&Judged { thresholds: &thresholds, ..judged(&commands, &runs, &measured_by) });
        found.thresholds.rows
    };
    let outcomes = |rows: &[Effect]| rows.iter().filter_map(|row| row.outcome).collect::<Vec<_>>();
    let (met, missed, open) = (Outcome::Met, Outcome::Missed, Outcome::Open);
    assert_eq!(outcomes(&of(104_000.0, 100_100.0))[..3], [missed, met, met]);
    let held = of(104_000.0, 95_000.0);
    assert_eq!(outcomes(&held)[..3], [open, open, met]);
    let [Finding::WithinPlacebos { floor }] = held[0].reasons[..] else { panic!("{held:?}") };
    assert!((floor - 0.05).abs() < 0.01, "{floor}");
    assert_eq!(outcomes(&of(130_000.0, 95_000.0))[..3], [missed; 3], "layout does not do as much");
    assert_eq!(held[3].outcome, of(104_000.0, 100_100.0)[3].outcome, "a figure alone has no baseline");
}

/// The CPU time of `new` against that of `old`.
fn cpu_threshold(bound: f64) -> ComparisonSpec {
    let side = |arm: &str| Side { arm: arm.to_owned(), cell_id: String::new(), metric: Metric::CommandCpu };
    ComparisonSpec {
        of: side("new"),
        to: vec![side("old")],
        goal: Some(Goal::AtMost(bound)),
        is_threshold: true,
    }
}

#[test]
fn a_threshold_is_held_against_the_whole_interval_and_needs_a_comparable_command() {
    let figure = ComparisonSpec { to: Vec::new(), ..cpu_threshold(200_000.0) };
    let thresholds = [cpu_threshold(1.01), cpu_threshold(1.03), cpu_threshold(1.06), figure];
    let (commands, measured_by) = (two(), MeasuredBy::default());
    let runs = measured(&[100_000.0, 103_000.0]);
    let answers = |runs: &[CommandRun]| {
        conclude(&Judged { thresholds: &thresholds, ..judged(&commands, runs, &measured_by) }).thresholds.rows
    };
    let outcomes =
        |runs: &[CommandRun]| answers(runs).iter().filter_map(|row| row.outcome).collect::<Vec<_>>();
    assert_eq!(outcomes(&runs), [Outcome::Missed, Outcome::Open, Outcome::Met, Outcome::Met]);
    let mut wrong = runs.clone();
    for run in wrong.iter_mut().filter(|run| run.command == 1) {
        run.stdout.content = "other".to_owned();
    }
    assert_eq!(outcomes(&wrong), [Outcome::Open; 4]);
    let cut = &runs[..30];
    assert_eq!(outcomes(cut), [Outcome::Open; 4], "it is unfinished");
    let unfinished = Finding::Unfinished { blocks_done: 10, blocks: PAIRS };
    for row in answers(cut) {
        assert!(row.reasons.contains(&unfinished), "one that is open anyhow has the reason too: {row:?}");
    }
}

#[test]
fn short_runs_processes_left_and_equal_commands_are_named() {
    let mut commands = two();
    commands[1].words = commands[0].words.clone();
    let mut runs = measured(&[800.0, 800.0]);
    runs[0].children_left = 2;
    runs[0].children_left_names = vec!["sleep".to_owned()];
    let measured_by = MeasuredBy {
        cpu_source: "cgroup-v2".to_owned(),
        cpu_resolution_ns: 1_000,
        charged_cpu_ns: Some(20_000),
        ..MeasuredBy::default()
    };
    let found = conclude(&judged(&commands, &runs, &measured_by)).findings;
    let has = |is_it: fn(&CommandFinding) -> bool| found.iter().any(is_it);
    assert!(has(|it| matches!(it, CommandFinding::ShortRuns { .. })), "{found:?}");
    assert!(has(|it| matches!(
        it,
        CommandFinding::LeftProcesses { processes_max: 2, runs: 1, is_counted: true, .. }
    )));
    assert!(has(|it| matches!(it, CommandFinding::SameCommands { .. })));
    assert!(has(|it| matches!(it, CommandFinding::StartCost { share, .. } if (0.02..0.03).contains(share))));
}

#[test]
fn memory_that_is_only_known_to_be_small_meets_a_threshold_above_it() {
    let of = Side { arm: "new".to_owned(), cell_id: String::new(), metric: Metric::CommandMemoryMax };
    let asked =
        |goal| ComparisonSpec { of: of.clone(), to: Vec::new(), goal: Some(goal), is_threshold: true };
    let mib = |size: u32| f64::from(size) * f64::from(1 << 20);
    let thresholds = [
        asked(Goal::AtMost(mib(200))),
        asked(Goal::AtMost(mib(3))),
        asked(Goal::AtMost(mib(1))),
        asked(Goal::AtLeast(mib(1))),
    ];
    let (commands, measured_by) = (two(), MeasuredBy::default());
    let mut runs = measured(&[100_000.0, 100_000.0]);
    for run in &mut runs {
        (run.cost.memory_bytes_max, run.cost.memory_bytes_below) = (None, Some(2 << 20));
    }
    let found = conclude(&Judged { thresholds: &thresholds, ..judged(&commands, &runs, &measured_by) });
    let outcomes: Vec<Outcome> = found.thresholds.rows.iter().filter_map(|row| row.outcome).collect();
    assert_eq!(outcomes, [Outcome::Met, Outcome::Met, Outcome::Open, Outcome::Open], "below 2 MiB");
    assert!(found.thresholds.rows.iter().all(|row| row.estimate.is_none() && row.interval.is_none()));
    assert!(found.effects.rows.iter().all(|row| row.metric != Metric::CommandMemoryMax));
}

/// A kernel that samples gives a short run all its time on one side. The mean difference of such values is random, and
/// its interval was shown as if it were measured.
#[test]
fn user_and_system_time_that_ticks_divide_have_no_rows_and_meet_no_threshold() {
    let side = Side { arm: "new".to_owned(), cell_id: String::new(), metric: Metric::CommandSystemCpu };
    let goal = Some(Goal::AtMost(1e9));
    let alone = ComparisonSpec { of: side.clone(), to: Vec::new(), goal, is_threshold: true };
    let against = ComparisonSpec { to: vec![Side { arm: "old".to_owned(), ..side }], ..alone.clone() };
    let (thresholds, commands, measured_by) = ([alone, against], two(), MeasuredBy::default());
    let exact = measured(&[5_000.0, 5_000.0]);
    let mut sampled = exact.clone();
    for (number, run) in sampled.iter_mut().enumerate() {
        let cpu_ns = run.cost.cpu_ns();
        (run.cost.user_ns, run.cost.system_ns) = if number % 3 == 0 { (0, cpu_ns) } else { (cpu_ns, 0) };
    }
    for (runs, is_coarse) in [(exact, false), (sampled, true)] {
        let found = conclude(&Judged { thresholds: &thresholds, ..judged(&commands, &runs, &measured_by) });
        assert_eq!(found.findings.contains(&CommandFinding::SplitByTicks), is_coarse, "{found:?}");
        let is_split = |it: &&Effect| matches!(it.metric, Metric::CommandUserCpu | Metric::CommandSystemCpu);
        assert_eq!(found.effects.rows.iter().filter(is_split).count(), if is_coarse { 0 } else { 4 });
        assert_eq!(decisive(&found, "new").verdict, Verdict::Equivalent, "the sum is exact");
        let outcome = if is_coarse { Outcome::Open } else { Outcome::Met };
        assert!(found.thresholds.rows.iter().all(|row| row.outcome == Some(outcome)), "{found:?}");
    }
}

#[test]
fn going_first_is_told_where_it_costs_more_than_the_margin_allows() {
    let slowed = |by: f64| {
        let mut runs = measured(&[100_000.0, 100_000.0]);
        let places: Vec<(u32, u32)> =
            runs.iter().filter(|run| run.command == 0).map(|run| (run.pair, run.place)).collect();
        for run in runs.iter_mut().filter(|run| run.command == 0) {
            let is_earlier = places.iter().all(|(pair, place)| *pair != run.pair || run.place <= *place);
            if is_earlier {
                run.cost.user_ns = (run.cost.user_ns as f64 * (1.0 + by)) as u64;
            }
        }
        concluded(&two(), &runs).findings
    };
    assert!(
        slowed(0.05)
            .iter()
            .any(|it| matches!(it, CommandFinding::OrderEffect { change, .. } if *change > 0.03))
    );
    assert!(!slowed(0.0).iter().any(|it| matches!(it, CommandFinding::OrderEffect { .. })));
}

#[test]
fn nothing_at_all_is_judged_without_a_panic() {
    let found = concluded(&two(), &[]);
    assert_eq!(decisive(&found, "new").verdict, Verdict::Inconclusive);
    assert_eq!(so_far(&judged(&two(), &[], &MeasuredBy::default())), None);
    let stray = CommandRun { command: 9, ..CommandRun::default() };
    assert_eq!(decisive(&concluded(&two(), &[stray]), "new").verdict, Verdict::Inconclusive);
}

#[test]
fn the_running_estimate_needs_as_many_pairs_as_a_verdict() {
    let (commands, measured_by) = (two(), MeasuredBy::default());
    let runs = measured(&[100_000.0, 103_000.0]);
    let so_far = |pairs: usize| so_far(&judged(&commands, &runs[..3 * pairs], &measured_by));
    assert_eq!(so_far(5), None);
    let (ratio, (low, high)) = so_far(20).expect("there are pairs");
    assert!(low < ratio && ratio < high && (ratio - 1.03).abs() < 0.01);
}

fn pilot(costs_us: &[f64], scatter: f64, pairs_fitting: u32) -> weir_record::commands::PairPlan {
    let runs = runs(RunPhase::Pilot, costs_us, 10, scatter);
    let pilot = Pilot {
        commands: costs_us.len(),
        runs: &runs,
        pairs: 10,
        units_fitting: pairs_fitting,
        unit_pairs: None,
        pairs_min: None,
        equivalence_margin: MARGIN,
    };
    planned(&pilot)
}

#[test]
fn the_pilot_sees_scatter_and_no_difference() {
    let equal = pilot(&[100_000.0, 100_000.0], 0.02, PAIRS_MAX);
    let apart = pilot(&[100_000.0, 250_000.0], 0.02, PAIRS_MAX);
    assert_eq!(equal.pairs, apart.pairs, "a difference between commands is in no figure of the plan");
    let swapped = pilot(&[250_000.0, 100_000.0], 0.02, PAIRS_MAX);
    assert_eq!(apart.pairs, swapped.pairs, "nor is which of them is which");
}

#[test]
fn more_scatter_takes_more_pairs_until_the_budget_ends_them() {
    use weir_record::commands::PlanReason;
    let (calm, noisy) = (pilot(&[1e5, 1e5], 0.003, 5_000), pilot(&[1e5, 1e5], 0.02, 5_000));
    assert!(calm.pairs >= 10 && 5 * calm.pairs < noisy.pairs, "{calm:?} {noisy:?}");
    assert_eq!((calm.reason, noisy.reason), (PlanReason::Detectable, PlanReason::Detectable));
    assert!(noisy.detectable.is_some_and(|it| it <= MARGIN), "{noisy:?}");
    let short = pilot(&[1e5, 1e5], 0.02, 30);
    assert_eq!((short.pairs, short.reason), (30, PlanReason::Budget));
    assert!(short.detectable.is_some_and(|it| it > MARGIN));
    let none = pilot(&[1e5, 1e5], 0.02, 2);
    assert_eq!((none.pairs, none.reason), (PAIRS_DECIDING_MIN, PlanReason::Fewest));
    let wild = pilot(&[1e5, 1e5], 3.0, u32::MAX);
    assert_eq!((wild.pairs, wild.reason), (PAIRS_MAX, PlanReason::Most));
}

#[test]
fn many_pairs_make_rounds_that_are_as_many_as_their_scatter_needs() {
    for (pairs, size) in [(0, 1), (6, 1), (71, 1), (72, 3), (100, 4), (192, 8), (PAIRS_MAX, 8)] {
        assert_eq!(unit_pairs(pairs), size, "{pairs}");
    }
    let rounds: Vec<u32> = (0..74).map(|pair| plan::round_of(pair, 74, unit_pairs(74))).collect();
    assert!(rounds.is_sorted() && rounds[..6] == [0, 0, 0, 1, 1, 1] && rounds[71..] == [23, 23, 23]);
    assert_eq!(plan::round_of(0, 0, 0), 0);
}

/// Pairs of which one run in ten takes half as long again: the interval by pairs and by rounds.
#[test]
fn a_run_that_something_disturbed_reaches_no_value_of_a_round() {
    let mut random = Random::seeded(4);
    let mut disturbed = runs(RunPhase::Measured, &[100_000.0, 100_000.0], 240, 0.005);
    for run in &mut disturbed {
        if random.uniform() < 0.1 {
            run.cost.user_ns += run.cost.user_ns / 2;
        }
    }
    let (commands, measured_by) = (two(), MeasuredBy::default());
    let width = |pairs: u32| {
        let found = conclude(&Judged { pairs, ..judged(&commands, &disturbed, &measured_by) });
        let row = decisive(&found, "new");
        (row.units, row.interval.map(|(low, high)| high - low).expect("it was measured"))
    };
    // This few planned pairs have no rounds.
    let ((_, by_pair), (units, in_rounds)) = (width(20), width(240));
    assert_eq!(units, 30);
    assert!(in_rounds < 0.4 * by_pair, "{in_rounds} {by_pair}");
}

#[test]
fn an_order_is_that_of_its_seed_and_every_run_has_a_place() {
    assert_eq!(order(1, RunPhase::Measured, 5, 3), order(1, RunPhase::Measured, 5, 3));
    assert_ne!(
        (0..9).map(|pair| order(1, RunPhase::Measured, pair, 3)).collect::<Vec<_>>(),
        (0..9).map(|pair| order(1, RunPhase::Pilot, pair, 3)).collect::<Vec<_>>()
    );
    let mut places = order(1, RunPhase::Measured, 0, 3);
    places.sort_unstable();
    assert_eq!(places, [(0, false), (0, true), (1, false), (2, false)]);
}

/// The shares of comparisons of this many pairs that call the command better, and worse.
fn called(effect: f64, pairs: u32, comparisons: u64) -> (f64, f64) {
    let mut random = Random::seeded(20_261_130);
    let commands = two();
    let measured_by = MeasuredBy::default();
    let mut one = || {
        let mut runs = Vec::new();
        for pair in 0..pairs {
            // Heavy tails on one side: something disturbs one run of ten.
            let shared = 0.1 * random.normal();
            for (place, slot) in order(random.next_u64(), RunPhase::Measured, pair, 2).into_iter().enumerate()
            {
                let tail = if random.uniform() < 0.1 { random.exponential(0.05) } else { 0.0 };
                let own = if slot.0 == 1 { effect } else { 0.0 };
                let cpu_us = 50_000.0 * (shared + own + 0.01 * random.normal() + tail).exp();
                runs.push(run(pair, slot, place, cpu_us));
            }
        }
        let found = conclude(&Judged { pairs, ..judged(&commands, &runs, &measured_by) });
        decisive(&found, "new").verdict
    };
    let verdicts: Vec<Verdict> = (0..comparisons).map(|_| one()).collect();
    let share = |of| verdicts.iter().filter(|it| **it == of).count() as f64 / comparisons as f64;
    (share(Verdict::Better), share(Verdict::Worse))
}

#[test]
fn equal_commands_are_called_different_as_seldom_as_alpha_says() {
    // The fewest pairs, one value for each pair, and rounds of three.
    for (pairs, comparisons) in [(PAIRS_DECIDING_MIN, 1_000), (PAIRS, 1_000), (72, 400)] {
        let (better, worse) = called(0.0, pairs, comparisons);
        // Half a per cent for each direction, and four standard deviations of this many comparisons.
        let most = 0.005 + 4.0 * (0.005 * 0.995 / comparisons as f64).sqrt();
        assert!(better < most && worse < most, "{pairs}: {better} {worse} {most}");
    }
}

#[test]
fn a_command_that_costs_three_per_cent_more_is_found() {
    let (better, worse) = called(0.03, PAIRS, 200);
    assert!(worse > 0.5 && better == 0.0, "{better} {worse}");
}

/// Servers whose cost differs from start to start: values of pairs, and of starts.
#[test]
fn pairs_of_one_start_are_one_value() {
    let commands = two();
    let mut random = Random::seeded(8);
    let mut runs = runs(RunPhase::Measured, &[100_000.0, 100_000.0], 60, 0.001);
    let mut factor = [1.0; 3];
    for run in &mut runs {
        if run.pair.is_multiple_of(3) && run.place == 0 {
            factor = [0; 3].map(|_| (0.02 * random.normal()).exp());
        }
        let slot = if run.repeat { 2 } else { run.command as usize };
        run.cost.user_ns = (run.cost.user_ns as f64 * factor[slot]) as u64;
        run.cost.system_ns = (run.cost.system_ns as f64 * factor[slot]) as u64;
        run.cost.work = Some(1_000);
    }
    let measured_by = MeasuredBy::default();
    let judged = Judged { pairs: 60, is_served: true, ..judged(&commands, &runs, &measured_by) };
    let reach = |unit_pairs| {
        let found = conclude(&Judged { unit_pairs, ..judged });
        let row = decisive(&found, "new").clone();
        (row.units, row.reach().expect("it has an interval"), row.figures.expect("it has figures").1)
    };
    let ((units, of_starts, figure), (pairs, of_pairs, _)) = (reach(Some(3)), reach(None));
    assert_eq!((units, pairs), (20, 60));
    assert!(of_starts > of_pairs, "what starts differ by is in the interval: {of_starts} {of_pairs}");
    // A figure alone rests on starts, too.
    let mut alone = cpu_threshold(1.0);
    alone.to.clear();
    let thresholds = [alone];
    let found = conclude(&Judged { unit_pairs: Some(3), thresholds: &thresholds, ..judged });
    assert_eq!(found.thresholds.rows[0].units, 20);
    assert!((figure - 100.0).abs() < 3.0, "100 ms for 1,000 units of work are 100 µs for one: {figure}");
}

#[test]
fn a_plan_of_starts_has_whole_ones_and_enough_of_them() {
    let runs = runs(RunPhase::Pilot, &[1e5, 1e5], 10, 0.004);
    let pilot = Pilot {
        commands: 2,
        runs: &runs,
        pairs: 10,
        units_fitting: 2,
        unit_pairs: Some(3),
        pairs_min: None,
        equivalence_margin: MARGIN,
    };
    let few = planned(&pilot);
    assert_eq!((few.pairs, few.unit_pairs), (18, 3), "{few:?}");
    let many = planned(&Pilot { units_fitting: 5_000, ..pilot });
    assert!(many.pairs.is_multiple_of(3) && many.pairs > 30 && many.unit_pairs == 3, "{many:?}");
    let asked = planned(&Pilot { pairs_min: Some(100), ..pilot });
    assert_eq!(asked.pairs, 102, "as many starts as have this many pairs");
    let most = planned(&Pilot { units_fitting: u32::MAX, equivalence_margin: 1e-7, ..pilot });
    assert_eq!(most.pairs, PAIRS_MAX / 3 * 3);
}
