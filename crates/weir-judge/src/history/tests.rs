//! Histories of comparisons made by hand.

use weir_record::{
    commands::{CommandArm, CommandComparison, CommandFile, CommandReport, CommandRole, CommandSettings},
    effect::{Effect, Effects, Question},
    history::HistoryQuestion,
    machine::Fingerprint,
    metric::Metric,
    origin::Origin,
    verdict::Verdict,
};

use super::*;

/// A run of `old` against `new`, whose programs have these contents.
struct Run {
    day: u64,
    contents: [&'static str; 2],
    ratio: f64,
    kernel: &'static str,
}

/// Half the width of every interval, on the scale of logarithms.
const HALF: f64 = 0.02;

const DEGREES: u32 = 20;

fn arm(name: &str, role: CommandRole, content: &str) -> CommandArm {
    let path = format!("/builds/{content}/app");
    let file = CommandFile { path: path.clone(), bytes: 1, content: content.to_owned() };
    CommandArm { name: name.to_owned(), role, words: vec![path, "--check".to_owned()], files: vec![file] }
}

/// A file whose name and content are one text.
fn file(text: &str) -> CommandFile {
    CommandFile { path: text.to_owned(), bytes: 1, content: text.to_owned() }
}

fn report(run: &Run) -> CommandReport {
    let [old, new] = run.contents;
    let row = Effect {
        question: Question::Comparison,
        arm: "new".to_owned(),
        baseline: "old".to_owned(),
        metric: Metric::CommandCpu,
        scale: EffectScale::Ratio,
        estimate: Some(run.ratio),
        interval: Some((run.ratio * (-HALF).exp(), run.ratio * HALF.exp())),
        level: 0.99,
        degrees_of_freedom: Some(DEGREES),
        verdict: Verdict::Worse,
        ..Effect::default()
    };
    let comparison = CommandComparison {
        commands: vec![arm("old", CommandRole::Baseline, old), arm("new", CommandRole::Candidate, new)],
        effects: Effects { rows: vec![row] },
        ..CommandComparison::default()
    };
    CommandReport {
        started_unix_ns: run.day * 86_400 * 1_000_000_000,
        fingerprint: Fingerprint { kernel_release: run.kernel.to_owned(), ..Fingerprint::default() },
        origin: Origin { commit: Some(new.to_owned()), branch: Some("main".to_owned()), ..Origin::default() },
        comparisons: vec![comparison],
        ..CommandReport::default()
    }
}

fn entries(reports: &[CommandReport]) -> Vec<Entry> {
    let of_one = |(number, report): (usize, &CommandReport)| {
        of_commands(report, &format!("run {number}"), Metric::CommandCpu)
    };
    reports.iter().enumerate().flat_map(of_one).collect()
}

fn asked() -> Asked {
    Asked { runs: 100, ..Asked::default() }
}

fn only_series(runs: &[(u64, [&'static str; 2], f64)]) -> HistorySeries {
    let reports: Vec<CommandReport> = runs
        .iter()
        .map(|&(day, contents, ratio)| report(&Run { day, contents, ratio, kernel: "6.1" }))
        .collect();
    let mut found = history(entries(&reports), Vec::new(), &asked());
    assert_eq!(found.series.len(), 1, "they ask the same");
    found.series.remove(0)
}

fn from_reference(run: &HistoryRun) -> (f64, (f64, f64)) {
    let found = run.from_reference.expect("it is known");
    (found.figure.expect("a figure"), found.interval.expect("an interval"))
}

fn is_near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

#[test]
fn effects_against_one_baseline_stand_as_they_were_measured() {
    // Given in another order than they ran.
    let series = only_series(&[(3, ["a", "d"], 1.10), (1, ["a", "b"], 1.0), (2, ["a", "c"], 1.01)]);
    let days: Vec<u64> = series.runs.iter().filter_map(|run| run.began_unix_s).collect();
    assert_eq!(days, [86_400, 2 * 86_400, 3 * 86_400]);
    assert_eq!(series.stretches.len(), 1);
    assert_eq!(series.stretches[0].reference.content, "a");
    assert!(series.runs.iter().all(|run| run.links == 1 && run.from_reference == Some(run.effect)));
    // Intervals of ±2 % around 1.0, 1.01 and 1.10.
    let changes: Vec<_> = series.runs.iter().map(|run| run.change).collect();
    assert_eq!(changes, [None, None, Some(HistoryChange::Up)]);
}

#[test]
fn runs_of_one_second_stand_in_their_order_whatever_their_places_are_called() {
    let of = |ns: u64, commit: &'static str| {
        let mut report = report(&Run { day: 1, contents: ["a", commit], ratio: 1.0, kernel: "6.1" });
        report.started_unix_ns += ns;
        report
    };
    let [first, second] = [of(1, "first"), of(2, "second")];
    let mut both = of_commands(&second, "compare-2.json", Metric::CommandCpu);
    both.extend(of_commands(&first, "compare.json", Metric::CommandCpu));
    let found = history(both, Vec::new(), &asked());
    let commits: Vec<_> =
        found.series[0].runs.iter().filter_map(|run| run.origin.commit.as_deref()).collect();
    assert_eq!(commits, ["first", "second"]);
}

#[test]
fn baselines_that_were_measured_before_are_multiplied_and_their_errors_add() {
    let series = only_series(&[(1, ["a", "b"], 1.05), (2, ["b", "c"], 1.10), (3, ["c", "d"], 1.0)]);
    assert_eq!(series.stretches.len(), 1);
    let links: Vec<u32> = series.runs.iter().map(|run| run.links).collect();
    assert_eq!(links, [1, 2, 3]);
    let (figure, (low, high)) = from_reference(&series.runs[1]);
    assert!(is_near(figure, 1.05 * 1.10), "{figure}");
    // Two equal errors of 20 degrees each: sqrt 2 as large, with 40 degrees.
    let error = HALF / quantile(0.995, DEGREES).expect("a quantile");
    let half = 2.0_f64.sqrt() * error * quantile(0.995, 2 * DEGREES).expect("a quantile");
    assert!(is_near((high / low).ln() * 0.5, half) && is_near(low * half.exp(), figure), "{low} {high}");
    let (third, _) = from_reference(&series.runs[2]);
    assert!(is_near(third, 1.05 * 1.10));
    // Each was measured beside the one before: its own interval says whether it differs.
    let changes: Vec<_> = series.runs.iter().map(|run| run.change).collect();
    assert_eq!(changes, [None, Some(HistoryChange::Up), None]);
}

#[test]
fn a_mark_leaves_out_what_two_runs_share() {
    // The first effect is known to 2 %, and both others are against its program.
    let series = only_series(&[(1, ["a", "b"], 1.05), (2, ["b", "c"], 1.0), (3, ["b", "d"], 1.05)]);
    assert_eq!(series.runs.iter().map(|run| run.links).collect::<Vec<_>>(), [1, 2, 2]);
    let [(_, (_, high)), (_, (low, _))] = [&series.runs[1], &series.runs[2]].map(from_reference);
    assert!(low < high, "with the shared effect they overlap: {low} {high}");
    assert_eq!(series.runs[2].change, Some(HistoryChange::Up), "1.00 ± 2 % and 1.05 ± 2 % do not");
    // The last run is against the program of the one before the run before it.
    let series = only_series(&[(1, ["a", "b"], 1.0), (2, ["b", "c"], 1.05), (3, ["b", "d"], 1.05)]);
    let changes: Vec<_> = series.runs.iter().map(|run| run.change).collect();
    assert_eq!(changes, [None, Some(HistoryChange::Up), None]);
}

#[test]
fn a_later_and_worse_estimate_of_a_program_does_not_replace_a_better_one() {
    let way = |second: f64, half: f64| {
        let of = |(day, contents, ratio): (u64, [&'static str; 2], f64)| {
            report(&Run { day, contents, ratio, kernel: "6.1" })
        };
        let mut reports = [(1, ["a", "b"], 1.05), (2, ["a", "b"], second), (3, ["b", "c"], 1.0)].map(of);
        let interval = (second * (-half).exp(), second * half.exp());
        reports[1].comparisons[0].effects.rows[0].interval = Some(interval);
        let found = history(entries(&reports), Vec::new(), &asked());
        from_reference(&found.series[0].runs[2]).0
    };
    assert!(is_near(way(1.2, 2.0 * HALF), 1.05), "it is wider");
    assert!(is_near(way(1.06, 0.5 * HALF), 1.06), "it is narrower");
}

#[test]
fn runs_that_are_not_asked_for_are_links_all_the_same() {
    let run = |day, contents, branch: &str| {
        let mut report = report(&Run { day, contents, ratio: 1.05, kernel: "6.1" });
        report.origin.branch = Some(branch.to_owned());
        report
    };
    let reports = [run(1, ["a", "b"], "main"), run(2, ["b", "c"], "topic"), run(3, ["c", "d"], "main")];
    let asked = Asked { branch: Some("main".to_owned()), ..asked() };
    let series = history(entries(&reports), Vec::new(), &asked).series.remove(0);
    assert_eq!(series.runs.iter().map(|run| (run.stretch, run.links)).collect::<Vec<_>>(), [(1, 1), (1, 3)]);
    // The run before it, of those that are asked for, is against `b` two effects away.
    assert_eq!(series.runs[1].change, Some(HistoryChange::Up));
}

#[test]
fn a_program_of_unknown_content_is_no_link_and_a_reference_of_it_marks_nothing() {
    let with_shell = |run: &Run| {
        let mut report = report(run);
        report.settings.shell = Some("sh".to_owned());
        for command in &mut report.comparisons[0].commands {
            command.words = ["/bin/sh", "-c", "./app"].map(str::to_owned).to_vec();
            command.files = Vec::new();
        }
        report
    };
    let run = |day, ratio| with_shell(&Run { day, contents: ["a", "b"], ratio, kernel: "6.1" });
    let found = history(entries(&[run(1, 1.0), run(2, 1.2)]), Vec::new(), &asked());
    let series = &found.series[0];
    assert_eq!(series.stretches[0].reference.content, "");
    assert!(series.runs.iter().all(|run| (run.stretch, run.links, run.change) == (1, 1, None)));
    // The new side of one run and the old side of the next have the same words, and may be other programs.
    let mut reports = [run(1, 1.0), run(2, 1.2)];
    let words = |text: &str| ["/bin/sh", "-c", text].map(str::to_owned).to_vec();
    for (report, [old, new]) in reports.iter_mut().zip([["./a", "./b"], ["./b", "./c"]]) {
        let commands = &mut report.comparisons[0].commands;
        (commands[0].words, commands[1].words) = (words(old), words(new));
        // Otherwise the words make another question of them.
        report.comparisons[0].commands.iter_mut().for_each(|it| it.files.push(file(&it.words[2])));
    }
    let found = history(entries(&reports), Vec::new(), &asked());
    assert_eq!(found.series[0].runs.iter().map(|run| run.stretch).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn any_number_of_degrees_of_freedom_is_computed_at_once() {
    let mut first = report(&Run { day: 1, contents: ["a", "b"], ratio: 1.1, kernel: "6.1" });
    first.comparisons[0].effects.rows[0].degrees_of_freedom = Some(u32::MAX);
    let second = report(&Run { day: 2, contents: ["b", "c"], ratio: 1.1, kernel: "6.1" });
    let found = history(entries(&[first, second]), Vec::new(), &asked());
    assert!(is_near(from_reference(&found.series[0].runs[1]).0, 1.21));
}

#[test]
fn a_baseline_that_nobody_measured_begins_another_stretch() {
    let series = only_series(&[(1, ["a", "b"], 1.0), (2, ["x", "y"], 2.0), (3, ["y", "z"], 1.5)]);
    let stretches: Vec<_> = series.stretches.iter().map(|it| (it.number, it.break_by)).collect();
    assert_eq!(stretches, [(1, None), (2, Some(HistoryBreak::Reference))]);
    assert_eq!(series.runs.iter().map(|run| run.stretch).collect::<Vec<_>>(), [1, 2, 2]);
    assert_eq!(series.runs[1].change, None, "it is not compared with another reference");
    assert!(is_near(from_reference(&series.runs[2]).0, 3.0));
}

#[test]
fn machines_that_take_turns_have_a_stretch_each() {
    let run = |day, kernel| report(&Run { day, contents: ["a", "b"], ratio: 1.0, kernel });
    let reports = [run(1, "6.1"), run(2, "6.6"), run(3, "6.1"), run(4, "6.6")];
    let found = history(entries(&reports), Vec::new(), &asked());
    let series = &found.series[0];
    assert_eq!(series.runs.iter().map(|run| run.stretch).collect::<Vec<_>>(), [1, 2, 1, 2]);
    assert_eq!(series.stretches[1].break_by, Some(HistoryBreak::Machine));
}

#[test]
fn a_program_against_itself_does_not_move_the_reference() {
    let series = only_series(&[(1, ["a", "a"], 1.03), (2, ["a", "b"], 1.0)]);
    assert_eq!(series.runs[1].links, 1);
    assert_eq!(series.runs[1].from_reference, Some(series.runs[1].effect));
}

#[test]
fn a_run_without_an_interval_is_no_link() {
    let mut first = report(&Run { day: 1, contents: ["a", "b"], ratio: 1.1, kernel: "6.1" });
    first.comparisons[0].effects.rows[0].interval = None;
    let second = report(&Run { day: 2, contents: ["b", "c"], ratio: 1.1, kernel: "6.1" });
    let found = history(entries(&[first, second]), Vec::new(), &asked());
    let series = &found.series[0];
    assert_eq!(series.runs.iter().map(|run| run.stretch).collect::<Vec<_>>(), [1, 2]);
    assert!(series.runs[0].from_reference.is_some_and(|it| it.interval.is_none()));
}

#[test]
fn names_words_and_parameters_make_the_question_and_folders_do_not() {
    let plain = report(&Run { day: 1, contents: ["a", "b"], ratio: 1.0, kernel: "6.1" });
    let mut other_words = plain.clone();
    other_words.comparisons[0].commands[1].words.push("--fast".to_owned());
    let mut with_parameter = plain.clone();
    with_parameter.comparisons[0].parameters = vec![("n".to_owned(), "2".to_owned())];
    let mut other_environment = plain.clone();
    other_environment.settings =
        CommandSettings { environment: vec!["X=1".to_owned()], ..CommandSettings::default() };
    let elsewhere = report(&Run { day: 2, contents: ["c", "d"], ratio: 1.0, kernel: "6.1" });
    let reports = [plain, other_words, with_parameter, other_environment, elsewhere];
    let found = history(entries(&reports), Vec::new(), &asked());
    let runs: Vec<usize> = found.series.iter().map(|series| series.runs.len()).collect();
    assert_eq!(runs, [2, 1, 1, 1]);
    assert_eq!(found.series[0].of, HistoryQuestion::Commands { parameters: Vec::new() });
}

#[test]
fn what_is_asked_for_is_kept_and_older_runs_are_counted() {
    let run = |day| report(&Run { day, contents: ["a", "b"], ratio: 1.0, kernel: "6.1" });
    let mut labelled = run(4);
    labelled.origin.labels.insert("host".to_owned(), "ci".to_owned());
    labelled.origin.branch = Some("topic".to_owned());
    let reports = [run(1), run(2), run(3), labelled];
    let kept = |asked: &Asked| {
        let found = history(entries(&reports), Vec::new(), asked);
        found.series.first().map(|series| (series.runs.len(), series.runs_older))
    };
    assert_eq!(kept(&Asked { runs: 2, ..Asked::default() }), Some((2, 2)));
    assert_eq!(kept(&Asked { branch: Some("topic".to_owned()), ..asked() }), Some((1, 0)));
    let label = |value: &str| vec![("host".to_owned(), value.to_owned())];
    assert_eq!(kept(&Asked { labels: label("ci"), ..asked() }), Some((1, 0)));
    assert_eq!(kept(&Asked { labels: label("desk"), ..asked() }), None);
    assert_eq!(kept(&Asked { name: Some("new".to_owned()), ..asked() }), Some((4, 0)));
    assert_eq!(kept(&Asked { name: Some("quick".to_owned()), ..asked() }), None);
}

#[test]
fn there_are_so_many_series_and_no_more() {
    let named = |number: usize| {
        let mut report = report(&Run { day: 1, contents: ["a", "b"], ratio: 1.0, kernel: "6.1" });
        report.comparisons[0].parameters = vec![("n".to_owned(), number.to_string())];
        report
    };
    let reports: Vec<CommandReport> = (0..=SERIES_MAX).map(named).collect();
    let found = history(entries(&reports), Vec::new(), &asked());
    assert_eq!((found.series.len(), found.series_left_out), (SERIES_MAX, 1));
}

#[test]
fn figures_that_are_no_numbers_break_nothing() {
    for ratio in [f64::NAN, 0.0, f64::INFINITY, f64::MAX] {
        let series = only_series(&[(1, ["a", "b"], ratio), (2, ["b", "c"], ratio), (3, ["a", "c"], 1.0)]);
        assert_eq!(series.runs.len(), 3);
    }
}

#[test]
fn a_primary_comparison_of_a_study_is_told_with_the_build_that_ran() {
    use weir_record::spec::Subject;

    let mut spec = crate::sample::study(&["old", "new"], 4, 1);
    for arm in &mut spec.arms {
        arm.subject = Subject::Command { argv: vec![format!("{}/server", arm.name), "{port}".to_owned()] };
    }
    let judged = crate::judge::judge(&crate::judge::Judged {
        spec: &spec,
        fingerprint: &Fingerprint {
            programs: ["old", "new"]
                .map(|name| (format!("/x/{name}/server"), format!("7 bytes, {name}")))
                .into(),
            ..Fingerprint::default()
        },
        trials: &[],
        missing_arms: &[],
        elapsed_ns: 0,
        reproduce: "",
    });
    let program = |name: &str| {
        let arm = judged.spec.arms.iter().find(|arm| arm.name == name).expect("it is there");
        entries::program_of_arm(&judged, arm)
    };
    assert_eq!((program("old").name.as_str(), program("old").content.as_str()), ("server", "7 bytes, old"));
    assert_ne!(program("old").identity, program("new").identity);
    // The same content from another folder, under another name, is the same program.
    let mut moved = judged.clone();
    moved.spec.arms[0].name = "base".to_owned();
    moved.spec.arms[0].subject =
        Subject::Command { argv: vec!["base/server".to_owned(), "{port}".to_owned()] };
    moved.fingerprint.programs = [("/y/base/server".to_owned(), "7 bytes, old".to_owned())].into();
    assert_eq!(entries::program_of_arm(&moved, &moved.spec.arms[0]).identity, program("old").identity);
}
