//! Sessions with canned runs: which commands run, in which order, and what the record contains.

use std::{collections::BTreeMap, ffi::OsString, time::Duration};

use weir_record::{commands::CommandSettings, finding::Finding, metric::Metric, verdict::Verdict};
use weir_stats::random::Random;

use super::*;
use crate::{
    asked::AskedCommand,
    machine::CountedRun,
    run::{LaunchCost, OutputBlock, OutputDigest, OutputTo, RunCost, RunEnd, RunOutcome, RunSpec},
    servers::{Loaded, ServerFailure, Slot},
};

const MILLISECOND_NS: u64 = 1_000_000;

/// What a program does beside its cost, given the number of runs before.
type Does = fn(usize, &mut RunOutcome);

/// Canned runs, in time that passes only while they run: `cost 50` takes 50 ms of CPU.
struct Fake {
    now_ns: u64,
    random: Random,
    /// Every command that ran, as its words.
    ran: Vec<String>,
    /// The run after which the test interrupts.
    interrupted_after: usize,
    /// What programs do beside their cost, by their word.
    does: BTreeMap<&'static str, Does>,
    /// Whether the kernel counts system calls, and the limit of each run whose calls it counted.
    counts: bool,
    limits: Vec<Duration>,
}

impl Fake {
    fn new() -> Self {
        Self {
            now_ns: 0,
            random: Random::seeded(1),
            ran: Vec::new(),
            interrupted_after: usize::MAX,
            does: BTreeMap::new(),
            counts: false,
            limits: Vec::new(),
        }
    }

    fn that(does: &[(&'static str, Does)]) -> Self {
        Self { does: does.iter().copied().collect(), ..Self::new() }
    }

    fn ran(&self, command: &str) -> usize {
        self.ran.iter().filter(|it| *it == command).count()
    }
}

impl Launch for Fake {
    fn run(&mut self, spec: &RunSpec, stop: &AtomicBool) -> Result<RunOutcome, RunError> {
        let words: Vec<&str> = spec.words.iter().filter_map(|word| word.to_str()).collect();
        if stop.load(Ordering::Relaxed) {
            return Err(RunError::Stopped);
        }
        match words[0] {
            "missing" | "strace" => return Err(RunError::Missing(words[0].to_owned())),
            "nowhere" => {
                let (flag, path, reason) = ("--dir".to_owned(), "x".to_owned(), "it is not there".to_owned());
                return Err(RunError::File { flag, path, reason });
            }
            "late" if matches!(spec.output, OutputTo::Block(_)) => {
                return Err(RunError::NotStarted { program: "late".to_owned(), reason: "busy".to_owned() });
            }
            "lost" => return Err(RunError::Launcher("it is gone".to_owned())),
            "gone" if self.ran.len() > 5 => return Err(RunError::Launcher("it is gone".to_owned())),
            _ => {}
        }
        let cpu_ms = words.get(1).and_then(|text| text.parse::<f64>().ok()).unwrap_or(1.0);
        let cpu_ns = (cpu_ms * 1e6 * (0.004 * self.random.normal()).exp()) as u64;
        let mut outcome = RunOutcome {
            cost: RunCost { wall_ns: cpu_ns, user_ns: cpu_ns, ..RunCost::default() },
            end: RunEnd::Exited(0),
            stdout: OutputDigest { bytes: 1, hash: "same".to_owned(), ..OutputDigest::default() },
            stderr: OutputDigest::default(),
            children_left: 0,
            children_left_names: Vec::new(),
            launch: LaunchCost::default(),
        };
        if let Some(does) = self.does.get(words[0]) {
            does(self.ran.len(), &mut outcome);
        }
        self.now_ns += outcome.cost.wall_ns;
        self.ran.push(words.join(" "));
        if self.ran.len() == self.interrupted_after {
            stop.store(true, Ordering::Relaxed);
        }
        Ok(outcome)
    }

    fn counts_calls(&mut self) -> bool {
        self.counts
    }

    fn run_counted(&mut self, spec: &RunSpec, stop: &AtomicBool) -> Option<CountedRun> {
        self.limits.push(spec.limit);
        Some(self.run(spec, stop).map(|outcome| (outcome, BTreeMap::from([("read".to_owned(), 1)]))))
    }

    fn now_ns(&mut self) -> u64 {
        self.now_ns
    }

    fn start_server(&mut self, _: &Asked, _: Slot, _: &AtomicBool) -> Result<(), ServerFailure> {
        Err(RunError::Empty.into())
    }

    fn load_server(&mut self, _: &Asked, _: Slot, _: &AtomicBool) -> Result<Loaded, ServerFailure> {
        Err(RunError::Empty.into())
    }

    fn end_servers(&mut self, _: &Asked) -> Result<(), ServerFailure> {
        Ok(())
    }
}

fn words(text: &str) -> Vec<OsString> {
    text.split_whitespace().map(OsString::from).collect()
}

fn asked(commands: &[&str]) -> Asked {
    let command = |(place, text): (usize, &&str)| AskedCommand {
        name: (*text).to_owned(),
        role: if place == 0 { CommandRole::Baseline } else { CommandRole::Candidate },
        words: words(text),
        ..AskedCommand::default()
    };
    Asked {
        parameters: Vec::new(),
        commands: commands.iter().enumerate().map(command).collect(),
        settings: CommandSettings {
            budget_ns: 60_000 * MILLISECOND_NS,
            limit_ns: 10_000 * MILLISECOND_NS,
            equivalence_margin: 0.01,
            ..CommandSettings::default()
        },
        environment: Vec::new(),
        folder: None,
        input: None,
        output: OutputTo::Digest,
        thresholds: Vec::new(),
        seed: 5,
        servers: None,
    }
}

fn compared(asked: &Asked, fake: &mut Fake) -> CommandComparison {
    let stop = AtomicBool::new(false);
    compare(asked, &MeasuredBy::default(), fake, &stop, &mut |_| {}).expect("it can run")
}

#[test]
fn a_pilot_plans_the_pairs_and_one_look_decides() {
    let mut fake = Fake::new();
    let found = compared(&asked(&["cost 50", "cost 51.5"]), &mut fake);
    assert_eq!(
        (found.ended, found.verdict()),
        (CommandEnd::Complete, Verdict::Worse),
        "{:?}",
        found.findings
    );
    assert_eq!((found.plan.pilot_pairs, found.plan.reason), (PILOT_PAIRS_MAX, PlanReason::Detectable));
    assert_eq!(found.pairs_done, found.plan.pairs);
    let row = found.decisive("cost 51.5").expect("it is compared");
    assert_eq!(row.units, found.plan.pairs, "the pilot is not part of the result");
    let pairs = (1 + found.plan.pilot_pairs + found.plan.pairs) as usize;
    assert_eq!((fake.ran("cost 50"), fake.ran("cost 51.5")), (2 * pairs, pairs));
}

#[test]
fn the_same_seed_runs_in_the_same_order() {
    let ran = |seed: u64| {
        let mut fake = Fake::new();
        let mut asked = asked(&["cost 50", "cost 51"]);
        asked.seed = seed;
        asked.settings.runs = Some(10);
        compared(&asked, &mut fake);
        fake.ran
    };
    assert_eq!(ran(5), ran(5));
    assert_ne!(ran(5), ran(6));
}

#[test]
fn long_commands_have_no_pilot_and_the_fewest_pairs_that_decide() {
    let mut fake = Fake::new();
    let found = compared(&asked(&["cost 9000", "cost 9000"]), &mut fake);
    assert_eq!((found.plan.pairs, found.plan.pilot_pairs), (6, 0));
    assert_eq!((found.plan.reason, found.ended), (PlanReason::Fewest, CommandEnd::Complete));
}

#[test]
fn pairs_that_are_asked_for_are_run_and_warm_up_is_not_compared() {
    let mut fake = Fake::new();
    let mut asked = asked(&["cost 50", "cost 50"]);
    (asked.settings.runs, asked.settings.warmup) = (Some(8), 2);
    let found = compared(&asked, &mut fake);
    assert_eq!((found.plan.pairs, found.plan.reason), (8, PlanReason::Asked));
    assert_eq!(fake.ran.len(), 3 * (1 + 2 + 8));
    assert_eq!(found.effects.comparisons().next().map(|row| row.units), Some(8));
}

#[test]
fn what_runs_around_a_command_runs_where_it_says() {
    let mut fake = Fake::new();
    let mut asked = asked(&["a 1", "b 1"]);
    asked.settings.runs = Some(6);
    for command in &mut asked.commands {
        (command.prepare, command.conclude) = (words("prepare"), words("conclude"));
        (command.setup, command.cleanup) = (words("setup"), words("cleanup"));
    }
    compared(&asked, &mut fake);
    assert_eq!(fake.ran[..3], ["setup", "setup", "prepare"]);
    assert_eq!(fake.ran[4..6], ["conclude", "prepare"]);
    let length = fake.ran.len();
    assert_eq!(fake.ran[length - 4..], ["prepare", "conclude", "cleanup", "cleanup"]);
    // One more pair around the run under `strace`, which is not there.
    assert_eq!((fake.ran("prepare"), fake.ran("conclude")), (22, 22));
}

#[test]
fn what_runs_after_a_command_also_runs_after_one_that_did_not_start() {
    let mut asked = asked(&["cost 50", "missing x", "cost 51"]);
    asked.settings.runs = Some(6);
    for command in &mut asked.commands {
        (command.prepare, command.conclude) = (words("prepare"), words("conclude"));
    }
    let mut fake = Fake::new();
    compared(&asked, &mut fake);
    assert_eq!(fake.ran("prepare"), fake.ran("conclude"));
    assert!(fake.ran("prepare") > 20, "{:?}", fake.ran);
}

#[test]
fn what_runs_after_a_command_also_runs_after_an_interruption_wherever_that_comes() {
    for counts in [false, true] {
        let mut asked = asked(&["cost 50", "cost 51"]);
        asked.settings.runs = Some(6);
        for command in &mut asked.commands {
            (command.prepare, command.conclude) = (words("prepare"), words("conclude"));
        }
        let mut whole = Fake { counts, ..Fake::new() };
        compared(&asked, &mut whole);
        for interrupted_after in 1..=whole.ran.len() {
            let mut fake = Fake { counts, interrupted_after, ..Fake::new() };
            compared(&asked, &mut fake);
            let ran = &fake.ran;
            assert_eq!(fake.ran("prepare"), fake.ran("conclude"), "after {interrupted_after}: {ran:?}");
        }
    }
}

#[test]
fn a_run_whose_calls_the_kernel_counts_may_take_as_long_as_any_other() {
    let mut fake = Fake { counts: true, ..Fake::new() };
    let mut asked = asked(&["cost 50", "cost 51"]);
    (asked.settings.runs, asked.settings.limit_ns) = (Some(6), 3_600_000 * MILLISECOND_NS);
    let found = compared(&asked, &mut fake);
    assert!(found.system_calls.is_some_and(|calls| calls.counted_by == "kernel-programs"));
    assert_eq!(fake.limits, [Duration::from_secs(3_600); 4]);
}

#[test]
fn what_runs_after_a_command_also_runs_after_a_run_for_its_bytes_that_fails() {
    let (same, late): (Does, Does) = (
        |_, it| it.stdout.blocks = vec![OutputBlock::default(), OutputBlock { hash: 1, lines: 0 }],
        |_, it| {
            it.stdout.hash = "other".to_owned();
            it.stdout.blocks = vec![OutputBlock::default(), OutputBlock { hash: 2, lines: 0 }];
        },
    );
    let mut asked = asked(&["cost 50", "late 50"]);
    asked.settings.runs = Some(6);
    for command in &mut asked.commands {
        (command.prepare, command.conclude) = (words("prepare"), words("conclude"));
    }
    let mut fake = Fake::that(&[("cost", same), ("late", late)]);
    let found = compared(&asked, &mut fake);
    assert!(found.findings.iter().any(|it| matches!(it, CommandFinding::OutputDiffers { .. })));
    // First runs, pairs, one run for the bytes of a block, and one under `strace`, which is not there.
    let prepared = 3 * (1 + 6) + 1 + 1;
    assert_eq!((fake.ran("prepare"), fake.ran("conclude")), (prepared, prepared));
}

#[test]
fn a_command_that_cannot_run_is_named_and_the_others_go_on() {
    let mut fake = Fake::that(&[("bad", |_, it| {
        it.end = RunEnd::Exited(3);
        it.stderr.tail = "no such option\n".to_owned();
    })]);
    let found = compared(&asked(&["cost 50", "missing x", "bad 1", "cost 55"]), &mut fake);
    assert_eq!(found.decisive("cost 55").map(|row| row.verdict), Some(Verdict::Worse));
    assert_eq!(fake.ran("bad 1"), 1, "what fails in its first run is not run again");
    let is_named = |name: &str| {
        found.findings.iter().any(|it| match it {
            CommandFinding::NotStarted { command, .. } => command == name,
            CommandFinding::Failed { command, said, .. } => command == name && said == "no such option",
            _ => false,
        })
    };
    assert!(is_named("missing x") && is_named("bad 1"), "{:?}", found.findings);
    assert_eq!(found.decisive("bad 1").map(|row| row.verdict), Some(Verdict::NotComparable));
}

#[test]
fn without_a_baseline_or_another_command_nothing_is_compared() {
    for commands in [["missing x", "cost 50"], ["cost 50", "missing x"]] {
        let found = compared(&asked(&commands), &mut Fake::new());
        assert_eq!((found.ended, found.verdict()), (CommandEnd::NothingToCompare, Verdict::NotComparable));
        assert_eq!(found.pairs_done, 0);
    }
}

#[test]
fn who_interrupts_keeps_what_was_measured() {
    let mut fake = Fake { interrupted_after: 100, ..Fake::new() };
    let mut asked = asked(&["cost 50", "cost 60"]);
    asked.settings.runs = Some(40);
    asked.commands[0].cleanup = words("cleanup");
    let found = compared(&asked, &mut fake);
    assert_eq!((found.ended, found.verdict()), (CommandEnd::Interrupted, Verdict::Inconclusive));
    let row = found.decisive("cost 60").expect("it is shown");
    assert!(row.interval.is_some() && row.units == 32, "{row:?}");
    assert!(row.reasons.iter().any(|it| matches!(it, Finding::Unfinished { blocks: 40, .. })));
    assert!(matches!(found.findings[0], CommandFinding::CutShort { is_interrupted: true, .. }));
    assert_eq!(fake.ran.last().map(String::as_str), Some("cleanup"), "what was set up is cleaned up");
}

#[test]
fn a_comparison_that_takes_several_times_its_budget_is_cut() {
    // After the pilot everything takes a thousand times as long.
    let slow: Does = |ran, it| it.cost.wall_ns *= if ran > 45 { 1_000 } else { 1 };
    let mut fake = Fake::that(&[("cost", slow)]);
    let found = compared(&asked(&["cost 50", "cost 51"]), &mut fake);
    assert_eq!((found.ended, found.verdict()), (CommandEnd::TimeCap, Verdict::Inconclusive));
    assert!(found.pairs_done < found.plan.pairs && fake.now_ns < 500_000 * MILLISECOND_NS);
}

#[test]
fn a_helper_that_is_gone_and_a_setup_that_fails_end_it_with_a_reason() {
    let found = compared(&asked(&["cost 50", "gone 50"]), &mut Fake::new());
    assert_eq!(found.ended, CommandEnd::Broken);
    assert!(
        found.findings.iter().any(|it| matches!(it, CommandFinding::Broken { .. })),
        "{:?}",
        found.findings
    );
    let mut asked = asked(&["cost 50", "cost 51"]);
    asked.commands[1].setup = words("bad");
    let mut fake = Fake::that(&[("bad", |_, it| it.end = RunEnd::Exited(1))]);
    let found = compared(&asked, &mut fake);
    assert_eq!((found.ended, fake.ran.len()), (CommandEnd::Broken, 1));
    let CommandFinding::AroundFailed { flag, .. } = &found.findings[0] else {
        panic!("{:?}", found.findings)
    };
    assert_eq!(flag, "--setup");
    asked.commands[0].setup = words("missing x");
    let found = compared(&asked, &mut Fake::new());
    assert_eq!(found.ended, CommandEnd::Broken);
    assert!(matches!(found.findings[0], CommandFinding::AroundNotStarted { .. }), "{:?}", found.findings);
}

#[test]
fn a_folder_that_is_not_there_is_an_error_of_whoever_named_it() {
    let stop = AtomicBool::new(false);
    let asked = asked(&["nowhere", "cost 50"]);
    let mut asked = asked;
    asked.commands[1].cleanup = words("cleanup");
    let mut fake = Fake::new();
    let error = compare(&asked, &MeasuredBy::default(), &mut fake, &stop, &mut |_| {});
    assert!(matches!(error, Err(RunError::File { .. })), "{error:?}");
    assert_eq!(fake.ran("cleanup"), 1, "what was set up is cleaned up");
}

#[test]
fn a_helper_that_is_gone_in_the_first_runs_is_no_mistake_of_a_command() {
    let found = compared(&asked(&["cost 50", "lost", "cost 50"]), &mut Fake::new());
    assert_eq!(found.ended, CommandEnd::Broken);
    let is_broken = |it: &CommandFinding| matches!(it, CommandFinding::Broken { .. });
    let is_left_out = |it: &CommandFinding| matches!(it, CommandFinding::NotStarted { .. });
    assert!(found.findings.iter().any(is_broken), "{:?}", found.findings);
    assert!(!found.findings.iter().any(is_left_out), "{:?}", found.findings);
}

#[test]
fn a_cleanup_that_fails_ends_it_and_the_other_cleanups_run() {
    let mut asked = asked(&["cost 50", "cost 60"]);
    asked.settings.runs = Some(8);
    (asked.commands[0].cleanup, asked.commands[1].cleanup) = (words("bad"), words("cleanup"));
    let mut fake = Fake::that(&[("bad", |_, it| it.end = RunEnd::Exited(1))]);
    let found = compared(&asked, &mut fake);
    assert_eq!((found.ended, found.pairs_done, fake.ran("cleanup")), (CommandEnd::Broken, 8, 1));
    let is_cleanup =
        |it: &CommandFinding| matches!(it, CommandFinding::AroundFailed { flag, .. } if flag == "--cleanup");
    assert!(found.findings.iter().any(is_cleanup), "{:?}", found.findings);
}

#[test]
fn first_runs_that_say_nothing_of_later_ones_do_not_make_the_plan() {
    let all_pilot = (PILOT_PAIRS_MAX, PlanReason::Detectable);
    let endless: Does = |_, it| (it.end, it.cost.wall_ns) = (RunEnd::Overran, 600_000 * MILLISECOND_NS);
    let found =
        compared(&asked(&["cost 50", "cost 51.5", "endless"]), &mut Fake::that(&[("endless", endless)]));
    assert_eq!((found.plan.pilot_pairs, found.plan.reason), all_pilot, "it is left out");
    let cold: Does = |ran, it| it.cost.wall_ns *= if ran < 3 { 100 } else { 1 };
    let found = compared(&asked(&["cost 50", "cost 51.5"]), &mut Fake::that(&[("cost", cold)]));
    assert_eq!((found.plan.pilot_pairs, found.plan.reason), all_pilot, "a pair shows how long one takes");
    let colder: Does = |ran, it| it.cost.wall_ns *= if ran < 3 { 10_000 } else { 1 };
    let mut asked = asked(&["cost 50", "cost 51.5"]);
    asked.settings.warmup = 1;
    let found = compared(&asked, &mut Fake::that(&[("cost", colder)]));
    assert_eq!((found.plan.pilot_pairs, found.plan.reason), all_pilot, "the warm-up does");
}

#[test]
fn a_pilot_takes_its_share_of_the_budget_and_no_more() {
    assert!(pilot_goes_on(0, 0, 40, 100) && !pilot_goes_on(0, 0, 41, 100));
    assert!(pilot_goes_on(2, 30, 10, 100) && !pilot_goes_on(2, 31, 10, 100));
    assert!(pilot_goes_on(PILOT_PAIRS_MIN, 15, 5, 100) && !pilot_goes_on(PILOT_PAIRS_MIN, 16, 5, 100));
    assert!(pilot_goes_on(PILOT_PAIRS_MAX - 1, 1, 1, 100) && !pilot_goes_on(PILOT_PAIRS_MAX, 1, 1, 100));
    assert!(!pilot_goes_on(0, u64::MAX, u64::MAX, 100));
}

fn file_of_setup() -> std::path::PathBuf {
    std::env::temp_dir().join(format!("weir-compare-set-up-{}", std::process::id()))
}

#[test]
fn files_that_a_setup_makes_and_a_cleanup_removes_are_looked_at_between_them() {
    let sets_up: Does = |_, _| std::fs::write(file_of_setup(), "x").expect("it can be written");
    let cleans_up: Does = |_, _| std::fs::remove_file(file_of_setup()).expect("it is there");
    let text = format!("cost 50 {}", file_of_setup().display());
    let mut asked = asked(&[&text, "cost 51"]);
    asked.settings.runs = Some(6);
    (asked.commands[0].setup, asked.commands[0].cleanup) = (words("set-up"), words("clean-up"));
    let found = compared(&asked, &mut Fake::that(&[("set-up", sets_up), ("clean-up", cleans_up)]));
    let files: Vec<&str> = found.commands[0].files.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(files, [file_of_setup().to_str().expect("a plain name")]);
    let has_changed = |it: &CommandFinding| matches!(it, CommandFinding::FileChanged { .. });
    assert!(!found.findings.iter().any(has_changed), "{:?}", found.findings);
}

#[test]
fn a_run_that_overruns_is_left_out_although_failures_are_ignored() {
    let mut asked = asked(&["cost 50", "endless"]);
    asked.settings.ignore_failure = true;
    let mut fake = Fake::that(&[("endless", |_, it| it.end = RunEnd::Overran)]);
    let found = compared(&asked, &mut fake);
    assert_eq!((found.ended, fake.ran("endless")), (CommandEnd::NothingToCompare, 1));
}

#[test]
fn commands_that_leave_processes_are_not_traced() {
    let mut fake = Fake::that(&[("leaving", |_, it| it.children_left = 1)]);
    let mut asked = asked(&["cost 50", "leaving 50"]);
    asked.settings.runs = Some(6);
    let found = compared(&asked, &mut fake).findings;
    let reasons: Vec<NoCalls> = found
        .iter()
        .filter_map(|it| if let CommandFinding::NoSystemCalls { reason } = it { Some(*reason) } else { None })
        .collect();
    assert_eq!(reasons, [NoCalls::LeavesProcesses]);
}

#[test]
fn output_that_is_not_read_is_not_compared() {
    let differs: Does = |_, it| it.stdout.hash = "other".to_owned();
    let mut asked = asked(&["cost 50", "other 55"]);
    let verdict = |asked: &Asked| compared(asked, &mut Fake::that(&[("other", differs)])).verdict();
    assert_eq!(verdict(&asked), Verdict::NotComparable);
    asked.output = OutputTo::Discard;
    assert_eq!(verdict(&asked), Verdict::Worse);
}

#[test]
fn other_output_is_said_before_the_pilot_and_only_of_commands_that_differ() {
    let differs: Does = |_, it| it.stdout.hash = "other".to_owned();
    let varies: Does = |ran, it| it.stdout.hash = ran.to_string();
    let heard = |commands: &[&str]| {
        let (mut heard, stop) = (Vec::new(), AtomicBool::new(false));
        let mut fake = Fake::that(&[("other", differs), ("varying", varies)]);
        let mut note = |event: &Event| match event {
            Event::OutputDiffers(CommandFinding::OutputDiffers { command, .. }) => {
                heard.push(command.clone())
            }
            Event::Planned { .. } => heard.push("the plan".to_owned()),
            _ => {}
        };
        compare(&asked(commands), &MeasuredBy::default(), &mut fake, &stop, &mut note).expect("it can run");
        heard
    };
    assert_eq!(heard(&["cost 50", "other 50", "cost 51"]), ["other 50", "the plan"]);
    assert_eq!(heard(&["varying 50", "other 50"]), ["the plan"], "the baseline differs from itself");
}

#[test]
fn the_display_hears_of_the_plan_and_of_every_pair() {
    let (mut planned, mut pairs, mut estimates) = (0, 0, 0);
    let stop = AtomicBool::new(false);
    let mut count = |event: &Event| match event {
        Event::Planned { .. } => planned += 1,
        Event::Pair { estimate, .. } => {
            pairs += 1;
            estimates += u32::from(estimate.is_some());
        }
        Event::OutputDiffers(_) | Event::Calls => {}
    };
    let mut asked = asked(&["cost 50", "cost 51"]);
    asked.settings.runs = Some(30);
    compare(&asked, &MeasuredBy::default(), &mut Fake::new(), &stop, &mut count).expect("it can run");
    assert_eq!((planned, pairs), (1, 30));
    assert!((20..30).contains(&estimates), "{estimates}");
}

#[test]
fn runs_stand_in_the_record_with_their_place_and_cost() {
    let mut asked = asked(&["cost 50", "cost 51"]);
    asked.settings.runs = Some(6);
    let found = compared(&asked, &mut Fake::new());
    let of = |phase: RunPhase| found.runs.iter().filter(|run| run.phase == phase).count();
    assert_eq!((of(RunPhase::First), of(RunPhase::Measured)), (3, 18));
    assert!(found.runs.windows(2).all(|two| two[0].started_ns <= two[1].started_ns));
    assert!(found.runs.iter().all(|run| run.cost.figure(Metric::CommandCpu).is_some_and(|it| it > 40_000.0)));
}
