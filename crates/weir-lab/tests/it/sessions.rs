//! Sessions that end early, and what they leave.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use weir_judge::sample::study;
use weir_lab::{
    alternation,
    exit::ExitCode,
    fake::{FakeArm, FakeFault, FakeLauncher, FakeStates, NEVER},
    outline,
    run::{self, Callbacks, Ended, Event, Outcome, RunError},
};
use weir_record::{
    check::CheckName,
    finding::{ExclusionKind, Finding, Stopped},
    machine::Fingerprint,
    spec::{CellRole, CellSpec, ServerHost, StudySpec},
    study::MissingArm,
    trial::Exclusion,
    verdict::Verdict,
};
use weir_report::Language;
use weir_store::{NewStudy, Store, StoreError};

use crate::fixture::{folder, fresh_folder, launcher, new_study, resume, start};

const SEED: u64 = 6;

#[test]
fn a_session_tells_how_much_longer_it_takes_and_never_past_its_time_cap() {
    let mut spec = study(&["epoll", "uring"], 4, SEED);
    let time_left = |spec: &StudySpec| {
        let mut all_left = Vec::new();
        let mut progress = |event: &Event| match event {
            Event::Started { left_ns, .. } | Event::BlockStored { left_ns, .. } => all_left.push(*left_ns),
            _ => {}
        };
        let mut launcher = launcher(SEED, FakeStates::Near, 0.8);
        let callbacks = Callbacks { launcher: &mut launcher, interrupt: &NEVER, progress: &mut progress };
        run::start(&fresh_folder("left"), &new_study(spec.clone()), callbacks).expect("a healthy study runs");
        all_left
    };
    let free = time_left(&spec);
    assert_eq!((free[0], free.len()), (outline::study_ns(&spec), 5), "{free:?}");
    assert!(free.windows(2).all(|two| two[1] < two[0]) && free[4] == 0, "{free:?}");
    spec.time_cap_ns = free[0] / 2;
    assert!(time_left(&spec)[0] <= spec.time_cap_ns);
}

type Step = (String, u32, u32, u32, String, bool);

fn steps(outcome: &Outcome) -> Vec<Step> {
    let step = |trial: &weir_record::trial::TrialRecord| {
        let arm = trial.arm.clone();
        (trial.cell_id.clone(), trial.block, trial.attempt, trial.position, arm, trial.repeat)
    };
    outcome.trials.iter().map(step).collect()
}

#[test]
fn interrupted_at_any_event_a_resumed_study_runs_the_same_schedule_and_loses_nothing() {
    let spec = study(&["epoll", "uring"], 4, SEED);
    let whole =
        start("whole", &spec, &mut launcher(SEED, FakeStates::Near, 0.8)).expect("a healthy study runs");
    let mut events = 0;
    loop {
        let folder = fresh_folder("interrupted");
        let interrupt = AtomicBool::new(false);
        let mut seen = 0;
        let mut blocks_stored = 0;
        let mut progress = |event: &Event| {
            blocks_stored += usize::from(matches!(event, Event::BlockStored { .. }));
            seen += 1;
            if seen > events {
                interrupt.store(true, Ordering::Relaxed);
            }
        };
        let mut first = launcher(SEED, FakeStates::Near, 0.8);
        let callbacks = Callbacks { launcher: &mut first, interrupt: &interrupt, progress: &mut progress };
        let outcome =
            run::start(&folder, &new_study(spec.clone()), callbacks).expect("an interruption is no error");
        if outcome.ended == Ended::Complete {
            // The flag was set after the last trial, or never.
            assert_eq!(outcome.trials.len(), whole.trials.len(), "event {events}");
            break;
        }
        assert_eq!(outcome.ended, Ended::Interrupted, "event {events}");
        assert_eq!(ExitCode::of_session(outcome.ended, &outcome.result).code(), 130);
        assert_eq!(outcome.trials.len(), 3 * blocks_stored, "event {events}");
        assert_eq!(outcome.result.complete, blocks_stored == 4, "event {events}");

        let resumed =
            resume(&folder, &mut launcher(SEED + 1, FakeStates::Near, 0.8), &NEVER).expect("it resumes");
        assert_eq!(resumed.ended, Ended::Complete, "event {events}");
        assert_eq!(steps(&resumed), steps(&whole), "event {events}");
        assert_eq!(resumed.trials[..outcome.trials.len()], outcome.trials, "event {events}");
        events += 1;
    }
    assert!(events > 24, "only {events} events");
}

#[test]
fn an_interruption_during_a_trial_drops_that_block_alone() {
    let spec = study(&["epoll", "uring"], 6, SEED);
    for trial in [0, 1, 4, 17] {
        let folder = fresh_folder("during");
        let interrupt = AtomicBool::new(false);
        let mut launcher = launcher(SEED, FakeStates::Near, 0.8);
        launcher.interrupt_in_trial = Some(trial);
        let callbacks = Callbacks { launcher: &mut launcher, interrupt: &interrupt, progress: &mut |_| {} };
        let outcome =
            run::start(&folder, &new_study(spec.clone()), callbacks).expect("an interruption is no error");
        assert_eq!((outcome.ended, outcome.trials.len()), (Ended::Interrupted, trial as usize / 3 * 3));
        let store = Store::open_read_only(&folder).expect("the store is readable");
        assert_eq!(store.result().expect("it is readable"), Some(outcome.result));
    }
}

#[test]
fn the_clock_of_a_study_stands_still_between_sessions() {
    let folder = fresh_folder("clock");
    let interrupt = AtomicBool::new(false);
    let mut first = launcher(SEED, FakeStates::Near, 0.8);
    first.interrupt_in_trial = Some(6);
    let spec = study(&["epoll", "uring"], 4, SEED);
    let callbacks = Callbacks { launcher: &mut first, interrupt: &interrupt, progress: &mut |_| {} };
    run::start(&folder, &new_study(spec), callbacks).expect("an interruption is no error");
    let mut second = launcher(SEED, FakeStates::Near, 0.8);
    weir_lab::launch::Launcher::pause(&mut second, std::time::Duration::from_secs(3_600));
    let resumed = resume(&folder, &mut second, &NEVER).expect("it resumes");
    let ends: Vec<u64> = resumed.trials.iter().map(|trial| trial.started_ns + trial.elapsed_ns).collect();
    let starts: Vec<u64> = resumed.trials.iter().map(|trial| trial.started_ns).collect();
    assert!(starts[1..].iter().zip(&ends).all(|(start, end)| start >= end), "trials overlap");
    assert!(resumed.result.elapsed_ns < 60_000_000_000, "the hour between the sessions was counted");
}

#[test]
fn no_block_starts_after_the_time_cap_and_a_resumed_session_goes_on() {
    let mut spec = study(&["epoll", "uring"], 12, SEED);
    spec.time_cap_ns = 10_000_000_000;
    let outcome =
        start("cap", &spec, &mut launcher(SEED, FakeStates::Near, 0.8)).expect("the cap is no error");
    assert_eq!((outcome.ended, outcome.result.complete), (Ended::TimeCap, false));
    assert!((1..12).contains(&(outcome.trials.len() / 3)));
    assert!(outcome.trials.iter().all(|trial| trial.started_ns < 15_000_000_000));
    let done = outcome.trials.len() / 3;
    let words = format!("{done} of 12 blocks are done");
    let resume_hint =
        outcome.resume_hint(std::path::Path::new("run"), Language::English).expect("it was cut short");
    let cut = "cut by the time cap of 10 s";
    assert_eq!(resume_hint, format!("{cut}: {words}; go on with: weir study --resume run"));
    let check =
        outcome.result.checks.iter().find(|check| check.name == CheckName::Schedule).expect("it is checked");
    assert!(!check.passed, "{check:?}");
    let Finding::Schedule { blocks_done, stopped: Some(Stopped::CutShort { .. }), .. } = check.detail else {
        panic!("{check:?}")
    };
    assert_eq!(blocks_done as usize, done);
    let folder = folder("cap");
    let resumed = resume(&folder, &mut launcher(SEED, FakeStates::Near, 0.8), &NEVER).expect("it resumes");
    assert!(resumed.trials.len() > outcome.trials.len());
}

#[test]
fn a_time_cap_that_leaves_spoilt_blocks_unrepeated_leaves_the_study_incomplete() {
    let mut spec = study(&["epoll", "uring"], 12, 3);
    let states = FakeStates::Switching { near: Duration::from_secs(30), far: Duration::from_secs(15) };
    let whole = start("uncut", &spec, &mut launcher(3, states, 0.8)).expect("it runs");
    assert_eq!((whole.ended, whole.result.complete), (Ended::Complete, true));
    assert_eq!(whole.resume_hint(std::path::Path::new("run"), Language::English), None);
    assert!(whole.trials.iter().any(|trial| trial.attempt > 0), "no block was spoilt");
    let first_attempts = whole.trials.iter().filter(|trial| trial.attempt == 0);
    // The last planned block reaches the cap, so no excluded one is repeated.
    spec.time_cap_ns = first_attempts.map(|trial| trial.started_ns).max().expect("there are trials");
    let outcome = start("cut-in-gaps", &spec, &mut launcher(3, states, 0.8)).expect("the cap is no error");
    assert_eq!((outcome.ended, outcome.result.complete), (Ended::TimeCap, false));
    let words = weir_report::finding(&outcome.progress.finding(None), Language::English);
    assert!(
        words.starts_with("12 of 12 blocks are done, ") && words.ends_with("may be run again"),
        "{words}"
    );
    let folder = folder("cut-in-gaps");
    let resumed = resume(&folder, &mut launcher(3, FakeStates::Near, 0.8), &NEVER).expect("it resumes");
    assert_eq!((resumed.ended, resumed.result.complete), (Ended::Complete, true));
}

#[test]
fn what_decides_nothing_is_tried_twice_and_what_decides_four_times() {
    let mut spec = study(&["epoll", "uring"], 4, SEED);
    let look = CellSpec { id: "look".to_owned(), role: CellRole::Exploratory, ..spec.cells[0].clone() };
    spec.cells.push(look);
    spec.time_cap_ns = 3_600_000_000_000;
    // The state changes in every block of three trials.
    let states = FakeStates::Switching { near: Duration::from_secs(2), far: Duration::from_secs(2) };
    let (outcome, _) = run_far("attempts", &spec, states);
    let attempts = |id: &str| {
        let own = outcome.trials.iter().filter(|trial| trial.cell_id == id);
        own.map(|trial| trial.attempt + 1).max()
    };
    assert_eq!((attempts(&spec.cells[0].id), attempts("look")), (Some(4), Some(2)));
}

/// Runs a session on a machine with these states, and returns how often it waited for the near one.
fn run_far(name: &str, spec: &StudySpec, states: FakeStates) -> (Outcome, u32) {
    let mut waits = 0;
    let mut progress = |event: &Event| waits += u32::from(matches!(event, Event::WaitingForNear { .. }));
    let mut launcher = launcher(SEED, states, 0.8);
    let callbacks = Callbacks { launcher: &mut launcher, interrupt: &NEVER, progress: &mut progress };
    let outcome = run::start(&fresh_folder(name), &new_study(spec.clone()), callbacks).expect("it runs");
    (outcome, waits)
}

#[test]
fn a_near_state_in_which_no_trial_ran_is_not_waited_for() {
    let spec = study(&["epoll", "uring"], 12, SEED);
    // Near at the beginning of the first trial and never again.
    let (outcome, waits) = run_far("far-at-once", &spec, FakeStates::FarFrom(Duration::from_millis(100)));
    assert_eq!(outcome.result.states.trials, (0, 38, 1), "the block with the change ran again");
    assert_eq!((outcome.ended, waits, outcome.result.complete), (Ended::Complete, 0, true));
    assert_eq!((outcome.result.verdict, outcome.result.effects.rows[0].units), (Verdict::Better, 12));
    assert_eq!(outcome.result.effects.rows[0].notes[0], Finding::FarState);
    let check =
        outcome.result.checks.iter().find(|check| check.name == CheckName::MachineStates).expect("there");
    let Finding::TwoStates { near, far, changed, .. } = check.detail else { panic!("{check:?}") };
    assert_eq!((near, far, changed), (0, 38, 1));
    assert!(check.passed);
}

#[test]
fn a_near_state_that_does_not_come_back_is_waited_for_once_and_not_long() {
    let spec = study(&["epoll", "uring"], 12, SEED);
    let (outcome, waits) = run_far("far-soon", &spec, FakeStates::FarFrom(Duration::from_secs(10)));
    assert_eq!((outcome.ended, waits, outcome.result.complete), (Ended::StayedFar, 1, false));
    assert!(outcome.trials.iter().all(|trial| trial.attempt == 0), "a far attempt would fill nothing");
    let last = outcome.trials.iter().map(|trial| trial.started_ns + trial.elapsed_ns).max().expect("trials");
    let waited_s = (outcome.result.elapsed_ns - last) / 1_000_000_000;
    assert!((100..=120).contains(&waited_s), "{waited_s} s");
    insta::assert_snapshot!(outcome.resume_hint(std::path::Path::new("run"), Language::English).expect("blocks are left"), @"the machine's near state did not come back in 120 s: 12 of 12 blocks are done, 10 of these lack a clean pair in the near state and may be run again; go on with: weir study --resume run");
    assert_eq!(
        (outcome.result.verdict, ExitCode::of_session(outcome.ended, &outcome.result).code()),
        (Verdict::Better, 0)
    );
}

// Arms whose servers die.

#[test]
fn an_arm_that_dies_at_once_is_named_and_the_others_go_on() {
    let arms = [
        ("epoll", FakeArm::costing(5.0)),
        ("uring", FakeArm::costing(4.0)),
        ("nginx", FakeArm { fault: FakeFault::DiesFrom(0), ..FakeArm::costing(6.0) }),
    ];
    let mut launcher = FakeLauncher::new(SEED, FakeStates::Near, &arms);
    let outcome =
        start("dead", &study(&["epoll", "uring", "nginx"], 12, SEED), &mut launcher).expect("it runs");
    let reason = "exited with status 1: no such thing".to_owned();
    let never = Finding::NeverServed { trials: 2, said: reason.clone() };
    let missing = MissingArm { name: "nginx".to_owned(), reason: never, unlock: None };
    assert_eq!(outcome.result.missing_arms, [missing]);
    assert_eq!((outcome.ended, outcome.result.verdict), (Ended::Complete, Verdict::Better));
    assert_eq!(ExitCode::of_session(outcome.ended, &outcome.result), ExitCode::Environment);
    let dead: Vec<_> = outcome.trials.iter().filter(|trial| trial.arm == "nginx").collect();
    assert_eq!(dead.len(), 2);
    assert!(
        dead.iter().all(|trial| trial.exclusions == [Exclusion::ServerFailed { reason: reason.clone() }])
    );
}

#[test]
fn a_dead_baseline_ends_the_study_in_good_order() {
    let arms = [
        ("epoll", FakeArm { fault: FakeFault::DiesFrom(0), ..FakeArm::costing(5.0) }),
        ("uring", FakeArm::costing(4.0)),
    ];
    let mut launcher = FakeLauncher::new(SEED, FakeStates::Near, &arms);
    let outcome =
        start("dead-baseline", &study(&["epoll", "uring"], 12, SEED), &mut launcher).expect("it ends");
    assert_eq!((outcome.ended, outcome.result.verdict), (Ended::ArmsMissing, Verdict::NotComparable));
    assert_eq!(outcome.trials.len(), 3);
    assert_eq!(ExitCode::of_session(outcome.ended, &outcome.result).code(), 13);
    let schedule = found(&outcome, CheckName::Schedule);
    let Finding::Schedule { blocks_done: 1, blocks: 12, stopped: Some(stopped), .. } = schedule else {
        panic!("{schedule:?}")
    };
    assert!(matches!(stopped, Stopped::NothingToCompare { .. }), "{stopped:?}");
}

#[test]
fn slices_grow_to_what_the_slowest_arm_needs_as_far_as_there_is_time() {
    let mut asked = study(&["epoll", "uring"], 12, SEED);
    alternation::apply(&mut asked);
    let planned = asked.cells[0].alternation.expect("they take turns").slice_ns;
    // 2,500 messages a second over 100 connections: less than one message on each in a slice.
    let lengths = |name: &str, spec: &StudySpec| {
        let arms = [("epoll", FakeArm::costing(5.0)), ("uring", FakeArm::costing(400.0))];
        let mut launcher = FakeLauncher::new(SEED, FakeStates::Near, &arms);
        let outcome = start(name, spec, &mut launcher).expect("it runs");
        let cell = &outcome.result.spec.cells[0];
        let of_round = |block: u32| {
            let trial = outcome.trials.iter().find(|it| it.cell_id == cell.id && it.block == block);
            trial.and_then(|trial| trial.slices.first()).map_or(0, |slice| slice.length_ns)
        };
        let check = found(&outcome, CheckName::SliceLength).clone();
        (of_round(0), of_round(11), check)
    };
    let (first, last, check) = lengths("slices-grow", &asked);
    assert_eq!(first, planned);
    assert!(last > 4 * planned, "{last}");
    let Finding::SliceMessages { arms, each_min } = &check else { panic!("{check:?}") };
    assert!(arms[0].each >= f64::from(*each_min), "{arms:?}");
    let given = StudySpec { slices_given: vec![asked.cells[0].id.clone()], ..asked.clone() };
    let capped = StudySpec { time_cap_ns: outline::study_ns(&asked) * 3 / 2, ..asked };
    for (name, spec) in [("slices-given", given), ("slices-capped", capped)] {
        let (_, last, check) = lengths(name, &spec);
        assert_eq!(last, planned, "{name}");
        let Finding::SliceMessages { arms, .. } = &check else { panic!("{check:?}") };
        assert_eq!((arms.len(), arms[0].arm.as_str()), (1, "uring"), "{name}: {arms:?}");
    }
}

/// The sample's cell and one with sixteen workers.
fn with_many_workers(arms: &[&str], blocks: u32, many_blocks: u32) -> StudySpec {
    let mut spec = study(arms, blocks, SEED);
    let many = CellSpec { id: "w16".to_owned(), workers: 16, blocks: many_blocks, ..spec.cells[0].clone() };
    spec.cells.push(CellSpec { role: CellRole::Exploratory, ..many });
    spec
}

#[test]
fn a_cell_whose_baseline_was_given_up_runs_nothing_more_and_the_others_are_judged() {
    let mut launcher = launcher(SEED, FakeStates::Near, 0.8);
    launcher.arms.get_mut("epoll").expect("it is there").fault = FakeFault::DiesWithWorkers(16);
    let spec = with_many_workers(&["epoll", "uring"], 12, 12);
    let outcome = start("over", &spec, &mut launcher).expect("the study runs");
    assert_eq!((outcome.ended, outcome.progress.is_complete()), (Ended::Complete, true));
    let of = |cell: &str| outcome.trials.iter().filter(|trial| trial.cell_id == cell).count();
    assert_eq!((of("w16"), of(&spec.cells[0].id)), (3, 36), "its baseline died twice in the first block");
    assert_eq!(outcome.result.effects.rows[0].verdict, Verdict::Better);
}

#[test]
fn limits_are_asked_of_arms_that_run_here_and_of_cells_that_lack_a_block() {
    let spec = with_many_workers(&["epoll", "uring", "poll"], 12, 2);
    let folder = fresh_folder("asked");
    let mut first = launcher(SEED, FakeStates::Near, 0.8);
    // Interrupted in the last of fourteen blocks of three runs: the third arm is missing.
    first.interrupt_in_trial = Some(13 * 3);
    let gone = MissingArm { name: "poll".to_owned(), reason: Finding::InstallProgram, unlock: None };
    let new = NewStudy { missing_arms: vec![gone], ..new_study(spec.clone()) };
    let callbacks =
        Callbacks { launcher: &mut first, interrupt: &AtomicBool::new(false), progress: &mut |_| {} };
    let outcome = run::start(&folder, &new, callbacks).expect("an interruption is no error");
    assert_eq!((outcome.ended, outcome.trials.len()), (Ended::Interrupted, 13 * 3));
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let (arms, large) = (names(&["epoll", "uring"]), spec.cells[0].id.as_str());
    assert_eq!(first.asked.take(), [(arms.clone(), names(&[large, "w16"]))]);
    let mut second = launcher(SEED, FakeStates::Near, 0.8);
    resume(&folder, &mut second, &NEVER).expect("it goes on");
    assert_eq!(second.asked.take(), [(arms, names(&[large]))], "the other cell is finished");
}

#[test]
fn a_study_without_a_trial_says_so() {
    let mut launcher = launcher(SEED, FakeStates::Near, 0.8);
    launcher.interrupt_in_trial = Some(0);
    let interrupt = AtomicBool::new(false);
    let callbacks = Callbacks { launcher: &mut launcher, interrupt: &interrupt, progress: &mut |_| {} };
    let spec = study(&["epoll", "uring"], 12, SEED);
    let outcome = run::start(&fresh_folder("no-trial"), &new_study(spec), callbacks).expect("it ends");
    assert_eq!((outcome.ended, outcome.trials.len()), (Ended::Interrupted, 0));
    assert_eq!(*found(&outcome, CheckName::MachineStates), Finding::NoTrial);
}

/// The finding of a check.
fn found(outcome: &Outcome, check: CheckName) -> &Finding {
    let mut checks = outcome.result.checks.iter();
    &checks.find(|found| found.name == check).expect("it is checked").detail
}

#[test]
fn a_server_that_dies_once_costs_its_block_and_is_not_tried_until_it_does_not() {
    let mut launcher = launcher(SEED, FakeStates::Near, 0.8);
    launcher.arms.get_mut("uring").expect("it is there").fault = FakeFault::DiesOnceAt(3);
    let outcome = start("dies-once", &study(&["epoll", "uring"], 12, SEED), &mut launcher).expect("it runs");
    assert_eq!((outcome.ended, outcome.result.verdict), (Ended::Complete, Verdict::Better));
    assert_eq!(outcome.result.effects.rows[0].units, 11);
    let excluded = [Finding::Excluded { reason: ExclusionKind::ServerFailed, count: 1 }];
    assert_eq!(outcome.result.effects.rows[0].excluded, excluded);
    assert!(outcome.result.missing_arms.is_empty() && outcome.result.complete);
    assert_eq!(outcome.trials.iter().filter(|trial| !trial.exclusions.is_empty()).count(), 1);
}

#[test]
fn an_arm_the_environment_refuses_is_not_tried_again() {
    let mut launcher = launcher(SEED, FakeStates::Near, 0.8);
    launcher.arms.get_mut("uring").expect("it is there").fault = FakeFault::Environment;
    let outcome = start("refused", &study(&["epoll", "uring"], 12, SEED), &mut launcher).expect("it ends");
    assert_eq!(outcome.ended, Ended::ArmsMissing);
    let refused = Finding::CannotRunHere { said: "io_uring is switched off".to_owned() };
    assert_eq!(outcome.result.missing_arms[0].reason, refused);
    assert_eq!(ExitCode::of_session(outcome.ended, &outcome.result).code(), 13);
}

#[test]
fn what_the_generator_refuses_is_a_usage_error() {
    let mut launcher = launcher(SEED, FakeStates::Near, 0.8);
    launcher.arms.get_mut("uring").expect("it is there").fault = FakeFault::Usage;
    let error =
        start("usage", &study(&["epoll", "uring"], 12, SEED), &mut launcher).expect_err("it cannot run");
    assert!(matches!(error, RunError::Usage(_)), "{error}");
    assert_eq!(ExitCode::of_error(&error).code(), 2);
}

#[test]
fn a_disk_that_fills_up_is_reported_with_what_is_kept_and_the_study_goes_on_later() {
    let folder = fresh_folder("full");
    let spec = study(&["epoll", "uring"], 40, SEED);
    let store = Store::create(&folder, &new_study(spec)).expect("a fresh folder takes a store");
    store.limit_bytes(160 << 10).expect("the limit is taken");
    let mut first = launcher(SEED, FakeStates::Near, 0.8);
    let callbacks = Callbacks { launcher: &mut first, interrupt: &NEVER, progress: &mut |_| {} };
    let error = run::run(store, callbacks).expect_err("the disk is full");
    let RunError::Store { source: StoreError::Full { .. }, blocks_done } = &error else {
        panic!("{error:?}");
    };
    assert!(*blocks_done > 0);
    assert_eq!(ExitCode::of_error(&error).code(), 1);
    let kept = Store::open_read_only(&folder).expect("the store is readable").blocks().expect("blocks");
    assert_eq!(kept.len(), *blocks_done);

    let resumed =
        resume(&folder, &mut launcher(SEED, FakeStates::Near, 0.8), &NEVER).expect("there is space again");
    assert_eq!((resumed.ended, resumed.trials.len()), (Ended::Complete, 120));
}

#[test]
fn slices_are_long_against_the_questions_of_the_session_that_resumes() {
    const MILLISECOND_NS: u64 = 1_000_000;
    let folder = fresh_folder("delay");
    let mut spec = study(&["epoll", "uring"], 4, SEED);
    alternation::apply(&mut spec);
    spec.server_host = Some(ServerHost { control_delay_ns: MILLISECOND_NS / 5, ..ServerHost::default() });
    let mut launcher = launcher(SEED, FakeStates::Near, 0.8);
    launcher.control_delay_ns = Some(MILLISECOND_NS / 5);
    let interrupt = AtomicBool::new(false);
    let mut progress = |event: &Event| {
        interrupt.fetch_or(matches!(event, Event::BlockStored { .. }), Ordering::Relaxed);
    };
    let callbacks = Callbacks { launcher: &mut launcher, interrupt: &interrupt, progress: &mut progress };
    let first = run::start(&folder, &new_study(spec), callbacks).expect("it stores what it has");
    assert_eq!(first.ended, Ended::Interrupted);
    let planned = |outcome: &Outcome| {
        let spec = &outcome.result.spec;
        let slice_ns = spec.cells[0].alternation.expect("they take turns").slice_ns;
        let delay_ns = spec.server_host.as_ref().expect("it is another host").control_delay_ns;
        (slice_ns / MILLISECOND_NS, delay_ns)
    };
    assert_eq!(planned(&first), (25, MILLISECOND_NS / 5));
    launcher.control_delay_ns = Some(5 * MILLISECOND_NS);
    let slower = resume(&folder, &mut launcher, &NEVER).expect("it goes on");
    assert_eq!(planned(&slower), (200, 5 * MILLISECOND_NS));
    let lengths: Vec<u64> = slower
        .trials
        .iter()
        .filter_map(|trial| Some(trial.slices.first()?.length_ns / MILLISECOND_NS))
        .collect();
    assert_eq!((lengths.first(), lengths.last()), (Some(&25), Some(&200)), "earlier rounds stay");
    launcher.control_delay_ns = Some(MILLISECOND_NS / 5);
    let faster = resume(&folder, &mut launcher, &NEVER).expect("it is complete");
    assert_eq!(planned(&faster), (200, 5 * MILLISECOND_NS), "the longest time is stored");
}

#[test]
fn a_study_is_not_continued_on_another_machine() {
    let folder = fresh_folder("moved");
    let spec = study(&["epoll", "uring"], 4, SEED);
    let mut launcher = launcher(SEED, FakeStates::Near, 0.8);
    let callbacks = Callbacks { launcher: &mut launcher, interrupt: &NEVER, progress: &mut |_| {} };
    run::start(&folder, &new_study(spec), callbacks).expect("a healthy study runs");
    let elsewhere = Fingerprint { cpus_online: 64, ..Fingerprint::default() };
    let callbacks = Callbacks { launcher: &mut launcher, interrupt: &NEVER, progress: &mut |_| {} };
    let error = run::resume(&folder, &elsewhere, callbacks).expect_err("the blocks cannot be mixed");
    assert!(error.to_string().contains("cpus_online 0 there, 64 here"), "{error}");
    assert_eq!(ExitCode::of_error(&error).code(), 12);
}

#[test]
fn a_second_session_on_the_same_folder_is_refused() {
    let folder = fresh_folder("busy");
    let spec = study(&["epoll", "uring"], 4, SEED);
    let mut refused = None;
    let mut progress = |_: &Event| {
        if refused.is_none() {
            let mut other = launcher(SEED, FakeStates::Near, 0.8);
            refused = Some(resume(&folder, &mut other, &NEVER).expect_err("the first session still runs"));
        }
    };
    let mut first = launcher(SEED, FakeStates::Near, 0.8);
    let callbacks = Callbacks { launcher: &mut first, interrupt: &NEVER, progress: &mut progress };
    run::start(&folder, &new_study(spec), callbacks).expect("the first session is not disturbed");
    let refused = refused.expect("events were told");
    assert!(matches!(refused, RunError::Busy { .. }), "{refused}");
}

#[test]
fn a_folder_is_locked_before_anything_in_it_is_opened_or_made() {
    let folder = fresh_folder("locked");
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let lock = run::lock(&folder).expect("nobody has it");
    let mut other = launcher(SEED, FakeStates::Near, 0.8);
    let resumed = resume(&folder, &mut other, &NEVER).expect_err("somebody works on it");
    assert!(matches!(resumed, RunError::Busy { .. }), "{resumed}");
    let spec = study(&["epoll", "uring"], 4, SEED);
    let new = new_study(spec);
    let callbacks = Callbacks { launcher: &mut other, interrupt: &NEVER, progress: &mut |_| {} };
    let begun = run::start(&folder, &new, callbacks).expect_err("somebody works on it");
    assert!(matches!(begun, RunError::Busy { .. }), "{begun}");
    assert!(!folder.join(weir_store::FILE_NAME).exists(), "nothing was made");
    drop(lock);
    let callbacks = Callbacks { launcher: &mut other, interrupt: &NEVER, progress: &mut |_| {} };
    run::start(&folder, &new, callbacks).expect("the folder is free");
}

#[test]
fn a_folder_without_a_study_is_a_usage_error() {
    let mut launcher = launcher(SEED, FakeStates::Near, 0.8);
    let error =
        resume(&fresh_folder("nothing"), &mut launcher, &NEVER).expect_err("there is nothing to continue");
    assert_eq!(ExitCode::of_error(&error), ExitCode::Usage);
    assert!(error.to_string().ends_with("name a folder that `weir study` wrote"), "{error}");
}
