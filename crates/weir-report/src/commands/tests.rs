//! One comparison in every form, and as many lines as there may be.

use weir_record::{
    commands::{
        CallKind, CommandFinding, CommandRun, FailedEnd, FirstDifference, MeasuredBy, NoCalls, NotReady,
        RunFigures, Stream, SystemCalls, WorkUnit,
    },
    effect::{Effects, Question},
    finding::Finding,
    goal::{ComparisonSpec, Side},
    metric_rows::COMMAND_METRICS,
    spec::Ready,
};

use super::*;

fn arm(name: &str, role: CommandRole) -> CommandArm {
    CommandArm { name: name.to_owned(), role, ..CommandArm::default() }
}

fn row(question: Question, arm: &str, metric: Metric, verdict: Verdict) -> Effect {
    let scale = EffectScale::of(metric);
    let (estimate, interval) = match scale {
        EffectScale::Ratio => (1.031, (1.02, 1.042)),
        _ => (1_500.0, (1_000.0, 2_000.0)),
    };
    Effect {
        question,
        arm: arm.to_owned(),
        baseline: "old/sort big.txt".to_owned(),
        metric,
        scale,
        estimate: Some(if question == Question::Itself { 1.001 } else { estimate }),
        interval: Some(if question == Question::Itself { (0.994, 1.008) } else { interval }),
        units: 40,
        detectable: Some(0.012),
        verdict,
        figures: Some((51_500.0, 50_000.0)),
        ..Effect::default()
    }
}

fn comparison(candidates: &[&str], verdict: Verdict) -> CommandComparison {
    let baseline = "old/sort big.txt";
    let mut rows = Vec::new();
    for metric in COMMAND_METRICS {
        for name in candidates {
            let own = if metric.metric == Metric::CommandCpu { verdict } else { Verdict::NoClaim };
            rows.push(row(Question::Comparison, name, metric.metric, own));
        }
    }
    rows.push(row(Question::Itself, baseline, Metric::CommandCpu, Verdict::NoClaim));
    let others = candidates.iter().map(|name| arm(name, CommandRole::Candidate));
    CommandComparison {
        commands: std::iter::once(arm(baseline, CommandRole::Baseline)).chain(others).collect(),
        effects: Effects { rows },
        pairs_done: 40,
        ..CommandComparison::default()
    }
}

fn report(comparisons: Vec<CommandComparison>) -> CommandReport {
    CommandReport {
        seed: 7,
        measured_by: MeasuredBy {
            cpu_source: "cgroup-v2".to_owned(),
            cpu_resolution_ns: 1_000,
            launch_wall_ns: Some(420_000),
            charged_cpu_ns: Some(21_000),
            ..MeasuredBy::default()
        },
        comparisons,
        ..CommandReport::default()
    }
}

fn single(verdict: Verdict) -> CommandReport {
    let mut comparison = comparison(&["new/sort big.txt"], verdict);
    let kind = |name: &str, one, other| CallKind { name: name.to_owned(), counts: vec![one, other] };
    comparison.system_calls = Some(SystemCalls {
        counted_by: "strace -c -f".to_owned(),
        runs: 2,
        kinds: vec![
            kind("read", (5, 5), (9, 9)),
            kind("futex", (3, 8), (4, 4)),
            kind("mmap", (26, 26), (26, 26)),
        ],
    });
    report(vec![comparison])
}

#[test]
fn a_screen_and_a_comment_begin_with_the_verdict() {
    insta::assert_snapshot!("terminal", terminal(&single(Verdict::Worse), Language::English));
    insta::assert_snapshot!("comment", markdown(&single(Verdict::Worse), Language::English));
    insta::assert_snapshot!("terminal_ko", terminal(&single(Verdict::Worse), Language::Korean));
    insta::assert_snapshot!("terminal_zh", terminal(&single(Verdict::Worse), Language::Chinese));
    for (verdict, words) in [
        (Verdict::Better, "costs less: new"),
        (Verdict::Worse, "costs more: new"),
        (Verdict::Equivalent, "no difference above 4.2 %: new"),
        (Verdict::Inconclusive, "inconclusive: new"),
        (Verdict::NotComparable, "not comparable: new"),
    ] {
        for text in
            [terminal(&single(verdict), Language::English), markdown(&single(verdict), Language::English)]
        {
            assert!(text.starts_with(words), "{text}");
        }
    }
}

#[test]
fn weirs_own_cpu_time_is_told_as_subtracted_where_it_is() {
    let mut told = single(Verdict::Worse);
    assert!(terminal(&told, Language::English).contains("at most 21.0 µs of its CPU time is included"));
    told.measured_by.charged_cpu_ns = None;
    told.measured_by.subtracted_cpu_ns = Some(21_000);
    assert!(
        terminal(&told, Language::English).contains("21.0 µs of its CPU time in each run are subtracted")
    );
    for language in [Language::Korean, Language::Chinese] {
        assert!(
            terminal(&told, language).contains("21.0 µs")
                && !terminal(&told, language).contains("subtracted")
        );
    }
}

#[test]
fn what_counted_system_calls_is_named_in_every_language() {
    let mut told = single(Verdict::Worse);
    let calls = told.comparisons[0].system_calls.as_mut().expect("they are counted");
    calls.counted_by = "kernel-programs".to_owned();
    assert!(terminal(&told, Language::English).contains("system calls (kernel programs): "));
    for language in [Language::Korean, Language::Chinese] {
        assert!(!terminal(&told, language).contains("kernel"), "{}", terminal(&told, language));
    }
}

/// One of each finding.
fn all_findings() -> Vec<CommandFinding> {
    [findings_of_runs(), findings_beside()].concat()
}

/// Failures, and output that differs.
fn findings_of_runs() -> Vec<CommandFinding> {
    let (command, baseline) = ("new/sort big.txt".to_owned(), "old/sort big.txt".to_owned());
    let said = "cannot open\n\u{1b}[31mfile".to_owned();
    vec![
        CommandFinding::NotStarted {
            command: command.clone(),
            reason: "there is no program new/sort".to_owned(),
        },
        CommandFinding::Failed { command: command.clone(), end: FailedEnd::Status(2), said: said.clone() },
        CommandFinding::Failed { command: command.clone(), end: FailedEnd::Signal(11), said: String::new() },
        CommandFinding::Failed { command: command.clone(), end: FailedEnd::OutOfMemory, said: String::new() },
        CommandFinding::Failed {
            command: command.clone(),
            end: FailedEnd::Overran { limit_ns: 300_000_000_000 },
            said: String::new(),
        },
        CommandFinding::FailedSometimes {
            command: command.clone(),
            end: FailedEnd::Status(1),
            failed: 3,
            runs: 40,
            said: "Address already in use".to_owned(),
        },
        CommandFinding::CutSometimes {
            command: command.clone(),
            end: FailedEnd::OutOfMemory,
            cut: 2,
            runs: 40,
        },
        CommandFinding::AroundNotStarted {
            flag: "--prepare".to_owned(),
            reason: "there is no program sync;".to_owned(),
        },
        CommandFinding::AroundFailed { flag: "--prepare".to_owned(), end: FailedEnd::Status(1), said },
        CommandFinding::Broken { reason: "the process that starts runs: it is gone".to_owned() },
        CommandFinding::OutputDiffers {
            command: command.clone(),
            baseline: baseline.clone(),
            stream: Stream::Stdout,
            bytes: (12_000, 11_999),
            runs: (3, 40),
            first: None,
        },
        CommandFinding::OutputDiffers {
            command: command.clone(),
            baseline: baseline.clone(),
            stream: Stream::Stderr,
            bytes: (4, 3),
            runs: (40, 40),
            first: Some(Box::new(FirstDifference {
                offset_bytes: 3,
                line: 1_204,
                excerpts: ("a\\tb\u{7}d".to_owned(), String::new()),
            })),
        },
        CommandFinding::OutputVaries { command: command.clone(), stream: Stream::Stderr },
        CommandFinding::StatusDiffers {
            command: command.clone(),
            baseline: baseline.clone(),
            ends: (FailedEnd::Signal(11), FailedEnd::Status(0)),
        },
    ]
}

/// The others.
fn findings_beside() -> Vec<CommandFinding> {
    let (command, baseline) = ("new/sort big.txt".to_owned(), "old/sort big.txt".to_owned());
    let interval = (1.01, 1.03);
    vec![
        CommandFinding::LeftProcesses {
            command: command.clone(),
            names: vec!["sleep".to_owned()],
            processes_max: 2,
            runs: 40,
            is_counted: true,
        },
        CommandFinding::FileChanged { command: command.clone(), path: "/x/new/sort".to_owned() },
        CommandFinding::SameCommands { command: command.clone(), baseline },
        CommandFinding::ShortRuns { command: command.clone(), cpu_ns: 700_000, resolution_ns: 1_000 },
        CommandFinding::SplitByTicks,
        CommandFinding::StartCost { charged_cpu_ns: 21_000, share: 0.03 },
        CommandFinding::NoControlGroup { reason: "Permission denied".to_owned() },
        CommandFinding::NoSystemCalls { reason: NoCalls::NotInstalled },
        CommandFinding::NoSystemCalls { reason: NoCalls::Refused },
        CommandFinding::NoSystemCalls { reason: NoCalls::LeavesProcesses },
        CommandFinding::NoSystemCalls { reason: NoCalls::NotReached },
        CommandFinding::BaselineDiffers { ratio: 1.02, interval },
        CommandFinding::OrderEffect { change: 0.02, interval: (0.01, 0.03), change_max: 0.0025 },
        CommandFinding::WithinPlacebos { command, floor: 0.05 },
        CommandFinding::CutShort { pairs_done: 3, pairs: 40, is_interrupted: true },
        CommandFinding::CutShort { pairs_done: 3, pairs: 40, is_interrupted: false },
    ]
}

#[test]
fn every_finding_is_a_sentence_with_its_way_out() {
    let text: Vec<String> = all_findings().iter().map(|it| finding(it, Language::English)).collect();
    insta::assert_snapshot!("findings", text.join("\n"));
    for language in Language::ALL {
        for found in all_findings() {
            let text = finding(&found, language);
            assert!(!text.is_empty() && !text.contains(char::is_control), "{found:?}: {text:?}");
        }
    }
}

#[test]
fn a_screen_and_a_comment_have_room_for_so_many_lines_and_no_more() {
    let long = |number: u32| format!("new-{number}/a\tcommand with | a long name and * more");
    let names: Vec<String> = (0..15).map(long).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut full = comparison(&names, Verdict::Inconclusive);
    full.findings = all_findings();
    let side = Side { arm: names[0].to_owned(), cell_id: String::new(), metric: Metric::CommandCpu };
    let asked =
        ComparisonSpec { of: side, to: Vec::new(), goal: Some(Goal::AtMost(1.0)), is_threshold: true };
    full.thresholds_asked = vec![asked; 20];
    full.thresholds.rows = vec![row(Question::Asked(0), names[0], Metric::CommandCpu, Verdict::NoClaim); 20];
    let mut one = single(Verdict::Worse);
    one.comparisons[0].findings = all_findings();
    for report in [report(vec![full; 64]), one, report(Vec::new())] {
        for language in Language::ALL {
            let (screen, comment) = (terminal(&report, language), markdown(&report, language));
            assert!(screen.lines().count() <= TERMINAL_LINES_MAX, "{screen}");
            assert!(comment.lines().count() <= MARKDOWN_LINES_MAX, "{comment}");
        }
    }
}

#[test]
fn an_open_verdict_says_how_many_pairs_would_decide() {
    let mut report = single(Verdict::Inconclusive);
    let row = &mut report.comparisons[0].effects.rows[0];
    row.reasons = vec![Finding::IncludesNone { none: 1.0, units_wanted: Some(90) }];
    let text = terminal(&report, Language::English);
    assert!(text.contains("about 90 pairs would decide (--runs 90)"), "{text}");
}

#[test]
fn a_way_to_a_verdict_has_its_length_and_the_same_command_has_none() {
    let mut report = single(Verdict::Inconclusive);
    let comparison = &mut report.comparisons[0];
    comparison.effects.rows[0].reasons = vec![Finding::IncludesNone { none: 1.0, units_wanted: Some(928) }];
    let cost = RunFigures { wall_ns: 400_000_000, ..RunFigures::default() };
    let run = |started_ns| CommandRun { started_ns, cost, ..CommandRun::default() };
    comparison.runs = vec![run(1_000_000_000), run(33_600_000_000 + 1_000_000_000 - 400_000_000)];
    let text = terminal(&report, Language::English);
    assert!(text.contains("about 928 pairs (12 min 59 s) would decide (--runs 928)"), "{text}");
    let (command, baseline) = ("new/sort big.txt".to_owned(), "old/sort big.txt".to_owned());
    report.comparisons[0].findings = vec![CommandFinding::SameCommands { command, baseline }];
    let text = terminal(&report, Language::English);
    assert!(!text.contains("would decide") && text.contains("only noise"), "{text}");
}

#[test]
fn memory_that_the_launcher_hides_is_a_bound_in_the_table_and_in_a_threshold() {
    let mut report = single(Verdict::Worse);
    let comparison = &mut report.comparisons[0];
    comparison.effects.rows.retain(|row| row.metric != Metric::CommandMemoryMax);
    let run = |command, max, below| CommandRun {
        command,
        cost: RunFigures { memory_bytes_max: max, memory_bytes_below: below, ..RunFigures::default() },
        ..CommandRun::default()
    };
    comparison.runs = vec![run(0, Some(8 << 20), None), run(1, None, Some(2 << 20))];
    let metric = Metric::CommandMemoryMax;
    let of = Side { arm: "new/sort big.txt".to_owned(), cell_id: String::new(), metric };
    let goal = Some(Goal::AtMost(f64::from(200 << 20)));
    comparison.thresholds_asked = vec![ComparisonSpec { of, to: Vec::new(), goal, is_threshold: true }];
    comparison.thresholds.rows = vec![Effect {
        scale: EffectScale::Figure,
        estimate: None,
        interval: None,
        outcome: Some(Outcome::Met),
        ..row(Question::Asked(0), "new/sort big.txt", metric, Verdict::NoClaim)
    }];
    let text = terminal(&report, Language::English);
    let line = "threshold 'memory > 200MiB' (new/sort big.txt): holds, measured less than 2 MiB";
    assert!(text.contains(line), "{text}");
    let mut lines = text.lines();
    let memory = lines.find(|line| line.starts_with("peak memory")).unwrap_or_default();
    assert!(memory.contains("8 MiB") && memory.contains("less than 2 MiB"), "{text}");
}

#[test]
fn a_threshold_is_told_in_the_words_that_were_typed() {
    let mut report = single(Verdict::Worse);
    let comparison = &mut report.comparisons[0];
    let side = |arm: &str| Side { arm: arm.to_owned(), cell_id: String::new(), metric: Metric::CommandCpu };
    comparison.thresholds_asked = vec![ComparisonSpec {
        of: side("new/sort big.txt"),
        to: vec![side("old/sort big.txt")],
        goal: Some(Goal::AtMost(1.01)),
        is_threshold: true,
    }];
    comparison.thresholds.rows = vec![Effect {
        outcome: Some(Outcome::Missed),
        ..row(Question::Asked(0), "new/sort big.txt", Metric::CommandCpu, Verdict::NoClaim)
    }];
    let text = terminal(&report, Language::English);
    let line = "threshold 'cpu ratio > 1.01' (new/sort big.txt): fails, ratio 1.031 [1.020, 1.042]";
    assert!(text.contains(line), "{text}");
}

#[test]
fn an_effect_that_has_a_verdict_and_moves_is_told() {
    let moved = Finding::EffectMoves { lag_1: 0.47, halves: (0.941, 0.958) };
    for (verdict, is_told) in [(Verdict::Better, true), (Verdict::Inconclusive, false)] {
        let mut report = single(verdict);
        report.comparisons[0].effects.rows[0].notes = vec![moved.clone()];
        for text in [terminal(&report, Language::English), markdown(&report, Language::English)] {
            assert_eq!(text.contains("new/sort big.txt: the effect moved during the run"), is_told, "{text}");
        }
    }
}

#[test]
fn among_several_commands_the_baseline_has_a_row() {
    let report = report(vec![comparison(&["new-1", "new-2"], Verdict::Worse)]);
    let text = terminal(&report, Language::English);
    let mut lines = text.lines();
    let baseline = lines.find(|line| line.starts_with("baseline old/sort big.txt")).unwrap_or_default();
    assert!(baseline.contains("50.0 ms") && !baseline.contains("51.5 ms"), "{text}");
}

#[test]
fn system_calls_are_missed_only_where_something_was_compared() {
    for pairs_done in [0, 1] {
        let mut report = single(Verdict::NotComparable);
        let comparison = &mut report.comparisons[0];
        comparison.pairs_done = pairs_done;
        comparison.findings = vec![CommandFinding::NoSystemCalls { reason: NoCalls::NotReached }];
        let text = terminal(&report, Language::English);
        assert_eq!(text.contains("system calls were not counted"), pairs_done > 0, "{text}");
    }
}

#[test]
fn every_run_is_a_line_of_the_table() {
    let mut report = single(Verdict::Worse);
    let cost = RunFigures { wall_ns: 5, user_ns: 3, memory_bytes_max: Some(9), ..RunFigures::default() };
    report.comparisons[0].runs = vec![CommandRun { cost, command: 1, ..CommandRun::default() }; 2];
    let text = csv(&report);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3);
    let columns = lines[0].split(',').count();
    assert!(lines.iter().all(|line| line.split(',').count() == columns), "{text}");
    assert!(lines[1].starts_with("0,measured,0,0,new/sort big.txt,false,0,exit-0,5,3,0,9,"), "{}", lines[1]);
}

/// What a load compared, by requests.
fn served(verdict: Verdict) -> CommandReport {
    let mut report = single(verdict);
    report.settings.servers = Some(ServerSettings {
        load: "wrk -d1s http://127.0.0.1:{port}/".to_owned(),
        unit: WorkUnit::Request,
        settle_ns: 100_000_000,
        pairs_per_start: 3,
        ..ServerSettings::default()
    });
    report.comparisons[0].plan.unit_pairs = 3;
    report.comparisons[0].system_calls = None;
    report
}

#[test]
fn servers_are_told_by_the_unit_of_their_work() {
    insta::assert_snapshot!("served", terminal(&served(Verdict::Worse), Language::English));
    for (language, words) in [
        (Language::English, "CPU time per request than old/sort big.txt"),
        (Language::Korean, "요청당 CPU 시간"),
        (Language::Chinese, "每个请求的 CPU 时间"),
    ] {
        let screen = terminal(&served(Verdict::Worse), language);
        assert!(screen.contains(words) && screen.contains("100 ms"), "{screen}");
        let none = terminal(&served(Verdict::NotComparable), language);
        assert!(!none.is_empty());
    }
}

#[test]
fn what_is_found_of_servers_is_one_sentence_in_every_language() {
    let command = || "new/server".to_owned();
    let said = || "Address already in use".to_owned();
    let late = |ready| NotReady::TooLate { ready, limit_ns: 30_000_000_000 };
    let not_ready = |why| CommandFinding::ServerNotReady { command: command(), why, said: said() };
    let failed =
        |end| CommandFinding::LoadFailed { command: command(), end, failed: 2, runs: 40, said: said() };
    let errors = |work| CommandFinding::LoadErrors { command: command(), errors: 12_345, work, runs: 3 };
    let found = [
        not_ready(NotReady::Ended(FailedEnd::Status(1))),
        not_ready(late(Ready::Port)),
        not_ready(late(Ready::Line("listening".to_owned()))),
        not_ready(late(Ready::Command(vec!["pg_isready".to_owned()]))),
        CommandFinding::ServersCollide { command: command(), said: said() },
        CommandFinding::ServerEnded { command: command(), end: FailedEnd::Signal(11), said: said() },
        failed(FailedEnd::Status(1)),
        failed(FailedEnd::NoCount),
        failed(FailedEnd::Overran { limit_ns: 5_000_000_000 }),
        errors(Some(1_000_000)),
        errors(None),
        CommandFinding::ShortLoads { command: command(), cpu_ns: 700_000, resolution_ns: 1_000 },
        CommandFinding::BackgroundCpu { command: command(), cpu_ns_per_second: 3_000_000, share: 0.03 },
    ];
    let text: Vec<String> = found.iter().map(|it| finding(it, Language::English)).collect();
    insta::assert_snapshot!("servers_found", text.join("\n"));
    for language in Language::ALL {
        for it in &found {
            let told = finding(it, language);
            assert!(told.contains("new/server") && !told.contains('\n'), "{told}");
        }
    }
}
