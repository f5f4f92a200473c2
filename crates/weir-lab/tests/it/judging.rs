//! The judge finds planted effects, and no others.

use std::time::Duration;

use weir_judge::sample::study;
use weir_lab::{
    alternation,
    exit::ExitCode,
    export,
    fake::{FakeArm, FakeFault, FakeLauncher, FakeStates, NEVER},
    host_defaults::{DriverFound, HostDefaults},
    run::{self, Callbacks, Ended, Event},
    study_file::Study,
};
use weir_record::{
    check::CheckName,
    effect::{Effect, EffectScale, Question},
    finding::{ExclusionKind, FailureClass, FailureCount, Finding, UnitKind, Witness, WitnessBearing},
    goal::{ComparisonSpec, Goal, Side},
    metric::Metric,
    spec::{CellRole, CellSpec, LoadMode, StudySpec},
    study::StudyResult,
    trial::TrialRecord,
    verdict::Verdict,
};

use weir_store::NewStudy;

use crate::fixture::{comparison, fresh_folder, launcher, new_study, start, study_on};

const CLOSED: &str = "c100-d1-m64-closed";
/// The rate at which `quick` decides if both arms keep it.
const TOP_RUNG: &str = "c100-d1-m64-open75pct";

/// Lengths of states as on the development machine: far a quarter of the time.
const SWITCHING: FakeStates =
    FakeStates::Switching { near: Duration::from_secs(60), far: Duration::from_secs(20) };

/// Rounds that a comparison excludes.
fn excluded(comparison: &Effect) -> u32 {
    let count = |finding: &Finding| match finding {
        Finding::Excluded { count, .. } => *count,
        _ => 0,
    };
    comparison.excluded.iter().map(count).sum()
}

#[test]
fn six_per_cent_more_cpu_is_found_in_nine_of_ten_studies() {
    let mut found = 0;
    for seed in 0..40 {
        let outcome =
            start("planted", &study(&["epoll", "uring"], 12, seed), &mut launcher(seed, SWITCHING, 1.06))
                .expect("a healthy study runs");
        found += u32::from(outcome.result.verdict == Verdict::Worse);
        assert_ne!(outcome.result.verdict, Verdict::Better, "seed {seed}");
    }
    assert!(found >= 36, "found in {found} of 40");
}

#[test]
fn an_arm_that_is_the_baseline_is_called_different_as_rarely_as_alpha_says() {
    let mut wrong = 0;
    for seed in 0..200 {
        let mut launcher = launcher(seed, SWITCHING, 1.0);
        launcher.noise = 0.02;
        let outcome = start("itself", &study(&["epoll", "uring"], 12, seed), &mut launcher)
            .expect("a healthy study runs");
        let called = |it: &Effect| matches!(it.verdict, Verdict::Better | Verdict::Worse);
        wrong += u32::from(outcome.result.effects.comparisons().any(called));
    }
    // One in a hundred is expected: 2 of 200. The bound adds four standard deviations of that count.
    assert!(wrong <= 7, "{wrong} of 200");
}

#[test]
fn arms_that_take_turns_find_two_per_cent_on_a_machine_that_changes_its_state() {
    let (mut found, mut wrong) = (0, 0);
    for seed in 0..20 {
        for (times, count) in [(1.02, &mut found), (1.0, &mut wrong)] {
            let mut spec = study(&["epoll", "uring"], 30, seed);
            alternation::apply(&mut spec);
            let mut launcher = launcher(seed, SWITCHING, times);
            launcher.noise = 0.03;
            let outcome = start("turns", &spec, &mut launcher).expect("a healthy study runs");
            assert!(outcome.result.complete && outcome.trials.iter().all(|trial| trial.attempt == 0));
            assert!(outcome.trials.iter().all(|trial| trial.exclusions.is_empty()));
            let primary = comparison(&outcome, CLOSED, Metric::ServerCpuPerMessage);
            assert!(primary.units >= 15, "those of one state: {:?}", primary.excluded);
            assert_eq!(primary.units + excluded(primary), 30);
            let itself = outcome.result.effects.itself(primary).expect("the first arm ran twice");
            assert_eq!(itself.values.len(), primary.units as usize);
            *count += u32::from(primary.verdict == Verdict::Worse || primary.p_value <= Some(0.01));
        }
    }
    assert!(found >= 16 && wrong <= 2, "{found} found, {wrong} called wrongly, of 20 each");
}

#[test]
fn an_effect_that_differs_between_states_is_told_for_each_and_judged_in_one() {
    let mut spec = study(&["epoll", "uring"], 40, 2);
    alternation::apply(&mut spec);
    let restless = FakeStates::Switching { near: Duration::from_secs(5), far: Duration::from_secs(5) };
    let mut launcher = launcher(2, restless, 0.8);
    // A ratio of 0.8 near and 0.95 far.
    launcher.arms.get_mut("epoll").expect("it is there").far_factor = 1.28;
    launcher.arms.get_mut("uring").expect("it is there").far_factor = 1.52;
    let outcome = start("by-state", &spec, &mut launcher).expect("a healthy study runs");
    let primary = comparison(&outcome, CLOSED, Metric::ServerCpuPerMessage);
    let in_state = |state| outcome.result.effects.beside(primary, state).expect("both states were met");
    let (near, far) = (in_state(Question::NearState), in_state(Question::FarState));
    for (effect, planted) in [(near, 0.8), (far, 0.95)] {
        let (low, high) = effect.interval.expect("it has one");
        assert!(low < planted && planted < high, "{planted}: {effect:?}");
    }
    let most = if far.units > near.units { far } else { near };
    assert_eq!((primary.estimate, primary.units), (most.estimate, most.units));
    assert_eq!(primary.units + excluded(primary), 40);
}

#[test]
fn an_arm_that_fails_in_some_rounds_loses_these_and_no_others_and_its_figures_are_of_the_rounds_of_its_ratio()
{
    let mut spec = study(&["epoll", "uring", "poll"], 12, 1);
    alternation::apply(&mut spec);
    let mut launcher = launcher(1, FakeStates::Near, 0.9);
    launcher.arms.insert("poll".to_owned(), FakeArm::costing(5.0));
    launcher.arms.get_mut("uring").expect("it is there").fault = FakeFault::DiesOnceAt(4);
    let outcome = start("dies-once", &spec, &mut launcher).expect("the study runs");
    let rounds = |arm: &str| {
        let of_arm = |it: &&Effect| it.arm == arm && it.metric == Metric::ServerCpuPerMessage;
        let found = outcome.result.effects.comparisons().find(of_arm).expect("it is compared");
        (found.units, found.excluded.clone())
    };
    let failed = Finding::Excluded { reason: ExclusionKind::ServerFailed, count: 1 };
    for arm in ["uring", "poll"] {
        let of_arm = outcome.result.effects.comparisons().filter(|it| it.arm == arm);
        for Effect { metric, scale, figures, units, estimate, .. } in of_arm {
            let Some((above, below)) = *figures else { continue };
            let ratio = (*scale == EffectScale::Ratio).then_some(above / below);
            assert!(ratio.is_none_or(|it| (it / estimate.unwrap_or(0.0) - 1.0).abs() < 1e-9), "{metric:?}");
            let own = |name: &str| outcome.result.arms.iter().find(|it| it.arm == name)?.figures(*metric);
            let found = own(arm).expect("it was compared");
            assert_eq!((found.mean, found.units.len()), (above, *units as usize));
            if arm == "uring" {
                let baseline = own("epoll").map(|it| it.mean);
                assert_eq!(baseline, Some(below), "the first arm it was compared with");
            }
        }
    }
    assert_eq!(rounds("uring"), (11, vec![failed]));
    assert_eq!(rounds("poll"), (12, Vec::new()));
    assert!(outcome.trials.iter().all(|trial| trial.attempt == 0), "what failed by itself is not repeated");
}

#[test]
fn an_unfinished_schedule_decides_nothing() {
    let mut spec = study(&["epoll", "uring"], 30, 1);
    spec.time_cap_ns = 40_000_000_000;
    let outcome =
        start("unfinished", &spec, &mut launcher(1, FakeStates::Near, 0.5)).expect("a healthy study runs");
    assert_eq!((outcome.ended, outcome.result.verdict), (Ended::TimeCap, Verdict::Inconclusive));
    let primary = comparison(&outcome, CLOSED, Metric::ServerCpuPerMessage);
    assert!(primary.p_value.is_some_and(|p_value| p_value < 1e-6), "{primary:?}");
    assert!(matches!(primary.reasons.as_slice(), [Finding::Unfinished { blocks: 30, .. }]), "{primary:?}");
    assert_ne!(ExitCode::of_session(outcome.ended, &outcome.result), ExitCode::Decided);
}

#[test]
fn a_quiet_machine_shows_equality() {
    let mut launcher = launcher(3, FakeStates::Near, 1.001);
    launcher.noise = 0.003;
    let outcome =
        start("equal", &study(&["epoll", "uring"], 12, 3), &mut launcher).expect("a healthy study runs");
    assert_eq!(outcome.result.verdict, Verdict::Equivalent);
    assert!(outcome.result.checks.iter().all(|check| check.passed), "{:#?}", outcome.result.checks);
    let foreign =
        outcome.result.checks.iter().find(|check| check.name == CheckName::ForeignCpu).expect("there");
    let Finding::ForeignCpu { over, trials, .. } = foreign.detail else { panic!("{foreign:?}") };
    assert_eq!((over, trials), (0, 36));
    assert!(outcome.result.complete);
}

#[test]
fn two_states_do_not_mislead_where_ungated_pairs_would() {
    // Equal arms, except that uring costs twice as much in the far state, which has half of the time.
    let states = FakeStates::Switching { near: Duration::from_secs(20), far: Duration::from_secs(20) };
    let (mut misled, mut two_states) = (0, 0);
    for seed in 0..20 {
        let arms = [
            ("epoll", FakeArm { far_factor: 1.1, ..FakeArm::costing(5.0) }),
            ("uring", FakeArm { far_factor: 2.0, ..FakeArm::costing(4.5) }),
        ];
        let mut launcher = FakeLauncher::new(seed, states, &arms);
        let outcome = start("two-states", &study(&["epoll", "uring"], 12, seed), &mut launcher)
            .expect("a healthy study runs");
        let primary = comparison(&outcome, CLOSED, Metric::ServerCpuPerMessage);
        two_states += u32::from(outcome.result.states.boundary_ns.is_some());
        let ratio = primary.estimate.expect("there are units");
        let (is_near, is_far) = ((ratio - 0.9).abs() < 0.02, (ratio - 0.9 * 2.0 / 1.1).abs() < 0.06);
        assert!(is_near || is_far, "seed {seed}: {ratio} belongs to no state");
        assert_eq!(outcome.result.verdict == Verdict::Better, is_near, "seed {seed}: {primary:?}");
        misled += u32::from((ungated_ratio(&outcome.trials) - ratio).abs() > 0.05);
    }
    assert!(two_states >= 12, "only {two_states} of 20 studies met both states; the test shows too little");
    assert!(misled >= 5, "only {misled} of 20 ungated studies would have misled; the test shows too little");
}

/// The estimate of a laboratory without readings: the median over all first attempts.
fn ungated_ratio(trials: &[TrialRecord]) -> f64 {
    let cost = |block: u32, arm: &str| {
        let is_run = |trial: &&TrialRecord| {
            (trial.block, trial.attempt, trial.repeat) == (block, 0, false) && trial.arm == arm
        };
        let load = trials.iter().find(is_run).and_then(|trial| trial.load.as_ref()).expect("each arm ran");
        load.observed.as_ref().expect("it is observed").cpu_ns as f64 / load.messages as f64
    };
    let ratios: Vec<f64> = (0..12).map(|block| cost(block, "uring") / cost(block, "epoll")).collect();
    weir_stats::order::median(&ratios).expect("there are pairs")
}

#[test]
fn a_machine_that_is_always_far_gives_a_valid_study() {
    let outcome = start("far", &study(&["epoll", "uring"], 12, 5), &mut launcher(5, FakeStates::Far, 0.8))
        .expect("a healthy study runs");
    assert_eq!((outcome.ended, outcome.result.verdict), (Ended::Complete, Verdict::Better));
    assert_eq!(outcome.result.states.boundary_ns, None);
    let states = outcome
        .result
        .checks
        .iter()
        .find(|check| check.name == CheckName::MachineStates)
        .expect("it is checked");
    let Finding::OneState { ns, .. } = states.detail else { panic!("{states:?}") };
    assert!(states.passed && (400.0..500.0).contains(&ns), "{states:?}");
}

#[test]
fn far_blocks_are_repeated_until_the_near_ones_suffice() {
    let states = FakeStates::Switching { near: Duration::from_secs(30), far: Duration::from_secs(15) };
    let outcome = start("repeated", &study(&["epoll", "uring"], 12, 3), &mut launcher(3, states, 0.8))
        .expect("a healthy study runs");
    let primary = comparison(&outcome, CLOSED, Metric::ServerCpuPerMessage);
    assert!(outcome.result.states.trials.1 > 0, "no trial was far: {:?}", outcome.result.states);
    assert!(outcome.trials.iter().any(|trial| trial.attempt > 0));
    let itself = outcome.result.effects.itself(primary).expect("the first arm ran twice");
    assert_eq!((primary.units, itself.values.len()), (12, 12));
    assert!(outcome.trials.len() > outcome.result.effects.rows[0].units as usize * 3);
}

#[test]
fn wrong_or_failing_responses_make_a_cell_not_comparable() {
    let mut launcher = launcher(1, FakeStates::Near, 0.8);
    launcher.arms.get_mut("uring").expect("it is there").fault = FakeFault::Resets(3);
    let outcome = start("resets", &study(&["epoll", "uring"], 6, 1), &mut launcher).expect("the study runs");
    assert_eq!(outcome.result.verdict, Verdict::NotComparable);
    let primary = comparison(&outcome, CLOSED, Metric::ServerCpuPerMessage);
    let resets = [FailureCount { class: FailureClass::Reset, count: 3 }];
    let Some(Finding::TrialsFailed { arm, first, .. }) = primary.reasons.first() else {
        panic!("{primary:?}")
    };
    assert_eq!((arm.as_str(), first.reason), ("uring", Some(ExclusionKind::Errors)));
    assert_eq!(first.classes, resets);
    let failures = outcome.result.checks.iter().find(|check| check.name == CheckName::FailuresClassified);
    let failures = failures.expect("it is checked");
    let Finding::Failures { classes, .. } = &failures.detail else { panic!("{failures:?}") };
    assert!(failures.passed && classes.len() == 1, "{failures:?}");
}

/// The effect of the figures at an equal rate on a verdict.
fn equal_rate(findings: &[Finding]) -> Option<WitnessBearing> {
    findings.iter().find_map(|found| match found {
        Finding::Witness { witness: Witness::EqualRate { .. }, bearing, .. } => Some(*bearing),
        _ => None,
    })
}

fn with_open_cell(role: CellRole, seed: u64) -> weir_record::spec::StudySpec {
    let mut spec = study(&["epoll", "uring"], 12, seed);
    let mut open = CellSpec {
        role,
        load: LoadMode::OpenShare { share: 0.6, poisson: true },
        blocks: 6,
        ..spec.cells[0].clone()
    };
    open.id = weir_lab::cell_id(&open);
    spec.cells.push(open);
    spec
}

#[test]
fn a_generator_at_its_limit_leaves_no_throughput_verdict_and_needs_an_equal_rate_for_cpu() {
    let limited = |seed| {
        let mut launcher = launcher(seed, FakeStates::Near, 0.8);
        launcher.generator_us_per_message = 4.5;
        launcher
    };
    let alone =
        start("bound-alone", &study(&["epoll", "uring"], 12, 1), &mut limited(1)).expect("the study runs");
    let throughput = comparison(&alone, CLOSED, Metric::Throughput);
    assert_eq!(throughput.verdict, Verdict::NotComparable);
    let [Finding::LowerBound { arm, per_second, .. }] = throughput.reasons.as_slice() else {
        panic!("{throughput:?}")
    };
    assert_eq!((arm.as_str(), per_second.round()), ("uring", 222_222.0));
    assert_eq!(alone.result.verdict, Verdict::NotComparable);

    let confirmed = start("bound-confirmed", &with_open_cell(CellRole::Exploratory, 1), &mut limited(1))
        .expect("the study runs");
    assert_eq!(confirmed.result.verdict, Verdict::Better);
    let primary = comparison(&confirmed, CLOSED, Metric::ServerCpuPerMessage);
    assert_eq!(equal_rate(&primary.notes), Some(WitnessBearing::Supports), "{primary:?}");
}

#[test]
fn an_exploratory_cell_claims_nothing_however_clear_it_is() {
    let mut spec = with_open_cell(CellRole::Exploratory, 1);
    let mut other =
        CellSpec { role: CellRole::Exploratory, connections: 1_000, blocks: 6, ..spec.cells[0].clone() };
    other.id = weir_lab::cell_id(&other);
    spec.cells.push(other);
    let outcome = start("exploratory", &spec, &mut launcher(1, FakeStates::Near, 0.8)).expect("it runs");
    assert_eq!(comparison(&outcome, CLOSED, Metric::ServerCpuPerMessage).verdict, Verdict::Better);
    let condition = comparison(&outcome, CLOSED, Metric::MachineCpuPerMessage);
    assert_eq!((condition.verdict, condition.p_value_holm), (Verdict::NoClaim, None));
    for metric in [Metric::ServerCpuPerMessage, Metric::MachineCpuPerMessage, Metric::Throughput] {
        let other = comparison(&outcome, "c1000-d1-m64-closed", metric);
        assert_eq!((other.verdict, other.p_value_holm), (Verdict::NoClaim, None), "{other:?}");
        assert!(other.estimate.is_some() && other.interval.is_some(), "the figures are shown all the same");
    }
}

#[test]
fn what_is_barred_takes_no_part_in_the_correction() {
    let mut launcher = launcher(1, FakeStates::Near, 0.8);
    launcher.generator_us_per_message = 4.5;
    let outcome =
        start("barred", &with_open_cell(CellRole::Exploratory, 1), &mut launcher).expect("the study runs");
    let throughput = comparison(&outcome, CLOSED, Metric::Throughput);
    assert_eq!((throughput.verdict, throughput.p_value_holm), (Verdict::NotComparable, None));
    let primary = comparison(&outcome, CLOSED, Metric::ServerCpuPerMessage);
    assert_eq!(primary.p_value_holm, primary.p_value, "it is the only claim");
}

#[test]
fn a_cpu_verdict_stands_beside_an_equal_rate_at_which_the_arms_are_alike() {
    let mut stood = 0;
    for seed in 0..20 {
        let mut launcher = launcher(seed, FakeStates::Near, 0.9);
        launcher.generator_us_per_message = 4.8;
        launcher.arms.get_mut("uring").expect("it is there").open_factor = 1.0 / 0.9;
        let mut spec = with_open_cell(CellRole::Exploratory, seed);
        spec.cells[1].blocks = 12;
        let outcome = start("alike", &spec, &mut launcher).expect("the study runs");
        let primary = comparison(&outcome, CLOSED, Metric::ServerCpuPerMessage);
        assert!(equal_rate(&primary.notes).is_some(), "{primary:?}");
        stood += u32::from(outcome.result.verdict == Verdict::Better);
    }
    assert_eq!(stood, 20);
}

#[test]
fn a_cpu_verdict_that_an_equal_rate_contradicts_does_not_stand() {
    let mut launcher = launcher(1, FakeStates::Near, 0.8);
    launcher.generator_us_per_message = 4.5;
    launcher.arms.get_mut("uring").expect("it is there").open_factor = 1.4;
    let outcome = start("contradicted", &with_open_cell(CellRole::Exploratory, 1), &mut launcher)
        .expect("the study runs");
    assert_eq!(outcome.result.verdict, Verdict::NotComparable);
    let primary = comparison(&outcome, CLOSED, Metric::ServerCpuPerMessage);
    assert_eq!(equal_rate(&primary.reasons), Some(WitnessBearing::Contradicts), "{primary:?}");
}

const OPEN: &str = "c100-d1-m64-open60pct";

#[test]
fn a_generator_that_lags_leaves_cpu_but_no_latency_verdict() {
    let mut launcher = launcher(1, FakeStates::Near, 0.8);
    launcher.lag_share = 0.12;
    let outcome =
        start("lag", &with_open_cell(CellRole::Exploratory, 1), &mut launcher).expect("the study runs");
    for metric in [Metric::LatencyP50, Metric::LatencyP99] {
        let latency = comparison(&outcome, OPEN, metric);
        assert_eq!(latency.verdict, Verdict::NotComparable);
        let Some(Finding::LagTooLarge { arm, share }) = latency.reasons.first() else {
            panic!("{latency:?}")
        };
        assert_eq!((arm.as_str(), (100.0 * share).round()), ("epoll", 12.0));
    }
    assert_eq!(comparison(&outcome, OPEN, Metric::ServerCpuPerMessage).verdict, Verdict::NoClaim);
}

#[test]
fn an_arm_that_does_not_keep_the_rate_leaves_a_figure_and_no_verdict_at_it() {
    let mut spec = with_open_cell(CellRole::Confirmatory, 1);
    spec.cells[1].load = LoadMode::Open { rate_per_second: 230_000.0, poisson: true, share: None };
    let outcome = start("overload", &spec, &mut launcher(1, FakeStates::Near, 0.8)).expect("the study runs");
    let open = comparison(&outcome, OPEN, Metric::ServerCpuPerMessage);
    assert_eq!((open.verdict, open.interval.is_some()), (Verdict::Inconclusive, true));
    let found = Finding::RateMissed { arm: "epoll".to_owned(), kept: 0, of: 12, unit: UnitKind::Pair };
    assert_eq!(open.reasons, [found]);
    let latency = comparison(&outcome, OPEN, Metric::LatencyP50);
    assert_eq!(
        latency.verdict,
        Verdict::NotComparable,
        "who waits for a queue that grows waits as long as it is let"
    );
}

#[test]
fn every_arm_is_offered_the_same_rate_of_the_smaller_capacity() {
    let mut launcher = launcher(1, FakeStates::Near, 0.8);
    launcher.noise = 0.0;
    let outcome =
        start("rate", &with_open_cell(CellRole::Confirmatory, 1), &mut launcher).expect("the study runs");
    assert_eq!(
        outcome.result.spec.cells[1].load,
        LoadMode::Open { rate_per_second: 120_000.0, poisson: true, share: Some(0.6) }
    );
    let rates: Vec<_> = outcome
        .trials
        .iter()
        .filter(|trial| trial.cell_id == "c100-d1-m64-open60pct")
        .map(|trial| trial.load.as_ref().and_then(|load| load.rate_per_second))
        .collect();
    assert_eq!(rates, vec![Some(120_000.0); 18]);
    let latency = comparison(&outcome, "c100-d1-m64-open60pct", Metric::LatencyP50);
    assert!(latency.p_value_holm.is_some() && latency.estimate.is_some(), "{latency:?}");
}

#[test]
fn a_pilot_in_which_nothing_came_back_is_run_again_and_gives_no_rate() {
    let mut launcher = launcher(1, FakeStates::Near, 0.8);
    launcher.noise = 0.0;
    launcher.arms.get_mut("uring").expect("it is there").fault = FakeFault::SilentOnceAt(0);
    let spec = with_open_cell(CellRole::Exploratory, 1);
    let outcome = start("silent-pilot", &spec, &mut launcher).expect("the study runs");
    let rate = LoadMode::Open { rate_per_second: 120_000.0, poisson: true, share: Some(0.6) };
    assert_eq!(outcome.result.spec.cells[1].load, rate);
}

#[test]
fn the_same_trials_give_the_same_verdict_whatever_their_order() {
    let spec = study(&["epoll", "uring"], 12, 4);
    let outcome = start("order", &spec, &mut launcher(4, SWITCHING, 0.95)).expect("a healthy study runs");
    let mut backwards = outcome.trials.clone();
    backwards.reverse();
    assert_eq!(judged_again(&outcome.result, &backwards), outcome.result);
    assert_eq!(outcome.result.period.map(|period| period.sessions), Some(1));
    let began = outcome.result.period.map(|period| period.began_unix_s);
    assert!(outcome.result.created_unix_s.is_some() && outcome.result.created_unix_s <= began);
}

/// Judges other trials of the same study, from the same period.
fn judged_again(result: &StudyResult, trials: &[TrialRecord]) -> StudyResult {
    let judged = weir_judge::judge::judge(&weir_judge::judge::Judged {
        spec: &result.spec,
        fingerprint: &result.fingerprint,
        trials,
        missing_arms: &[],
        elapsed_ns: result.elapsed_ns,
        reproduce: &result.reproduce,
    });
    StudyResult { period: result.period, created_unix_s: result.created_unix_s, ..judged }
}

#[test]
fn where_the_state_of_the_machine_was_not_read_there_is_no_effect_of_it() {
    let mut spec = study(&["epoll", "uring"], 12, 4);
    alternation::apply(&mut spec);
    let outcome = start("unread", &spec, &mut launcher(4, SWITCHING, 0.95)).expect("a healthy study runs");
    let mut unread = outcome.trials;
    for trial in &mut unread {
        trial.reading_before.round_trip_ns = 0.0;
        trial.reading_after.round_trip_ns = 0.0;
    }
    let again = judged_again(&outcome.result, &unread);
    let is_of_state = |it: &Effect| matches!(it.question, Question::NearState | Question::FarState);
    assert!(!again.effects.rows.iter().any(is_of_state));
    assert!(again.effects.comparisons().any(|it| it.estimate.is_some()), "they are compared all the same");
}

#[test]
fn quick_ends_within_a_minute_and_a_half_on_a_restless_machine_and_has_its_verdict() {
    let spec = study_on("quick", &HostDefaults { seed: 11, ..HostDefaults::default() }).spec;
    let mut launcher = launcher(11, SWITCHING, 0.78);
    launcher.generator_us_per_message = 4.2;
    let outcome = start("quick", &spec, &mut launcher).expect("quick runs");
    assert!(
        outcome.result.complete && outcome.result.elapsed_ns < 90_000_000_000,
        "{}",
        outcome.result.elapsed_ns
    );
    assert_eq!(outcome.result.verdict, Verdict::Better);
    let primary = comparison(&outcome, TOP_RUNG, Metric::ServerCpuPerMessage);
    assert!(primary.units >= 16 && primary.detectable.is_some_and(|effect| effect < 0.02), "{primary:?}");
    assert_eq!(primary.units + excluded(primary), 34);
    let exploratory = comparison(&outcome, "c10-d1-m64-open50pct", Metric::ServerCpuPerMessage);
    let judged = (exploratory.verdict, exploratory.estimate.is_some(), exploratory.p_value_holm);
    assert_eq!(judged, (Verdict::NoClaim, true, None));
    assert_eq!(ExitCode::of_session(outcome.ended, &outcome.result), ExitCode::Decided);
}

#[test]
fn quick_says_within_half_a_minute_what_it_sees_so_far() {
    let spec = study_on("quick", &HostDefaults { seed: 11, ..HostDefaults::default() }).spec;
    let mut launcher = launcher(11, FakeStates::Near, 0.78);
    let (mut now_ns, mut first, mut last) = (0, None, None);
    let mut progress = |event: &Event| match event {
        Event::TrialFinished { trial } => now_ns = trial.started_ns + trial.elapsed_ns,
        Event::SoFar { estimate } => {
            first.get_or_insert((now_ns, estimate.clone()));
            last = Some(estimate.clone());
        }
        _ => {}
    };
    let callbacks = Callbacks { launcher: &mut launcher, interrupt: &NEVER, progress: &mut progress };
    let outcome = run::start(&fresh_folder("so-far"), &new_study(spec), callbacks).expect("quick runs");
    let (at_ns, first) = first.expect("it says something");
    assert!(at_ns < 30_000_000_000, "{at_ns}");
    assert!(first.interval.0 < 0.78 && 0.78 < first.interval.1, "{first:?}");
    let primary = comparison(&outcome, TOP_RUNG, Metric::ServerCpuPerMessage);
    let last = last.expect("it says something");
    assert_eq!((Some(last.ratio), Some(last.interval)), (primary.estimate, primary.interval));
}

#[test]
fn quick_without_io_uring_compares_poll_and_says_what_is_missing() {
    let gone = DriverFound {
        driver: "uring".to_owned(),
        available: false,
        detail: Finding::IoUringDisabled { level: 2 },
        unlock: Some(Finding::RunCommand { command: "sysctl kernel.io_uring_disabled=0".to_owned() }),
    };
    let host_defaults = HostDefaults { seed: 11, tried: vec![gone], ..HostDefaults::default() };
    let Study { spec, missing_arms } = study_on("quick", &host_defaults);
    assert_eq!((spec.arms[1].name.as_str(), missing_arms[0].name.as_str()), ("poll", "uring"));
    let arms = [("epoll", FakeArm::costing(5.0)), ("poll", FakeArm::costing(5.05))];
    let mut launcher = FakeLauncher::new(11, FakeStates::Near, &arms);
    let study = NewStudy { missing_arms, ..new_study(spec) };
    let callbacks = Callbacks { launcher: &mut launcher, interrupt: &NEVER, progress: &mut |_| {} };
    let outcome = run::start(&fresh_folder("quick-poll"), &study, callbacks).expect("quick runs");
    assert!(outcome.result.complete);
    assert_eq!(outcome.result.missing_arms, study.missing_arms);
    assert_eq!(ExitCode::of_session(outcome.ended, &outcome.result).code(), 13);
}

#[test]
fn the_exported_document_has_the_result_and_every_trial_with_all_its_exclusions() {
    let outcome = start("export", &study(&["epoll", "uring"], 12, 3), &mut launcher(3, SWITCHING, 0.8))
        .expect("a healthy study runs");
    let text = export::json(&outcome.result, &outcome.trials).expect("it serialises");
    let document: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let trials = document["trials"].as_array().expect("a list");
    assert_eq!(trials.len(), outcome.trials.len());
    let excluded = trials
        .iter()
        .filter(|trial| trial["exclusions"].as_array().is_some_and(|exclusions| !exclusions.is_empty()));
    let unclean = outcome.result.timeline.iter().filter(|entry| !entry.clean);
    // Trials in the other state of the machine have no exclusion and are not used either.
    assert!(excluded.count() < unclean.count());
    assert_eq!(document["result"]["verdict"], "better");
}

/// Two arms, and a bound on what the second one costs.
fn with_threshold(bound: f64) -> StudySpec {
    let side = |arm: &str| Side {
        arm: arm.to_owned(),
        cell_id: CLOSED.to_owned(),
        metric: Metric::ServerCpuPerMessage,
    };
    let asked = ComparisonSpec {
        of: side("uring"),
        to: vec![side("epoll")],
        goal: Some(Goal::AtMost(bound)),
        is_threshold: true,
    };
    StudySpec { comparisons: vec![asked], ..study(&["epoll", "uring"], 12, 4) }
}

#[test]
fn a_threshold_decides_the_exit_code_by_its_interval_and_never_by_a_point() {
    // Cost ratio of the second arm to the first, bound of the ratio, and exit code.
    for (ratio, bound, code) in [
        (1.10, 1.05, ExitCode::Threshold),
        (1.02, 1.05, ExitCode::Decided),
        (1.05, 1.05, ExitCode::Inconclusive),
    ] {
        let mut spec = with_threshold(bound);
        let outcome = start("threshold", &spec, &mut launcher(4, FakeStates::Near, ratio))
            .expect("a healthy study runs");
        assert_eq!(ExitCode::of_session(outcome.ended, &outcome.result), code, "{ratio}");
        spec.comparisons[0].is_threshold = false;
        let goal = start("goal", &spec, &mut launcher(4, FakeStates::Near, 1.5)).expect("it runs");
        assert_eq!(ExitCode::of_session(goal.ended, &goal.result), ExitCode::Decided, "a goal fails nothing");
    }
}

#[test]
fn a_threshold_on_server_cpu_does_not_hold_where_nothing_shows_both_arms_at_one_rate() {
    let spec = with_threshold(1.05);
    let mut launcher = launcher(4, FakeStates::Near, 0.9);
    launcher.generator_us_per_message = 20.0;
    let outcome = start("threshold-bound", &spec, &mut launcher).expect("a healthy study runs");
    let answers: Vec<&Effect> = outcome.result.asked().map(|(_, row)| row).collect();
    let [answer] = answers[..] else { panic!("one was asked for") };
    assert!(answer.interval.is_some_and(|(_, high)| high < 1.05), "by its figure it holds: {answer:?}");
    assert!(answer.reasons.contains(&Finding::NoEqualRate), "{answer:?}");
    assert_eq!(ExitCode::of_session(outcome.ended, &outcome.result), ExitCode::NotComparable);
}
