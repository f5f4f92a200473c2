//! Latency against offered load: one pilot for all rates, and arms that miss a rate.

use weir_judge::sample::study;
use weir_lab::{
    alternation,
    exit::ExitCode,
    fake::{FakeArm, FakeFault, FakeLauncher, FakeStates, NEVER},
    host_defaults::HostDefaults,
    outline,
    run::{self, Callbacks, Ended, Event},
    study_file,
};
use weir_record::{
    finding::Finding,
    metric::Metric,
    spec::{CellRole, CellSpec, LoadMode, StudySpec},
    verdict::Verdict,
};
use weir_report::Language;

use crate::fixture::{built_in, comparison, fresh_folder, launcher, new_study, resume, start};

/// A primary cell with this many rounds, and the same cell at shares of its capacity.
fn with_rates(shares: &[(f64, u32)]) -> StudySpec {
    let mut spec = study(&["epoll", "uring"], 12, 5);
    for (share, rounds) in shares {
        let load = LoadMode::OpenShare { share: *share, poisson: true };
        let id = format!("c100-d1-m64-open{:.0}pct", 100.0 * share);
        let role = CellRole::Exploratory;
        spec.cells.push(CellSpec { id, role, load, blocks: *rounds, ..spec.cells[0].clone() });
    }
    alternation::apply(&mut spec);
    spec
}

fn rates(spec: &StudySpec) -> Vec<f64> {
    let rate = |cell: &CellSpec| match cell.load {
        LoadMode::Open { rate_per_second, .. } => Some(rate_per_second),
        _ => None,
    };
    spec.cells.iter().filter_map(rate).collect()
}

#[test]
fn rates_of_one_shape_are_shares_of_one_capacity() {
    let mut launcher = launcher(1, FakeStates::Near, 0.8);
    launcher.noise = 0.0;
    let spec = with_rates(&[(0.9, 8), (0.5, 8), (0.7, 20)]);
    let outcome = start("rates", &spec, &mut launcher).expect("the study runs");
    assert_eq!(rates(&outcome.result.spec), [180_000.0, 100_000.0, 140_000.0]);
    let pilots = outcome.trials.iter().filter(|trial| trial.cell_id.ends_with("-pilot"));
    let pilots: Vec<(&str, u32)> = pilots.map(|trial| (trial.cell_id.as_str(), trial.attempt)).collect();
    // Three rounds of three runs, for all rates.
    let expected = (0..3).flat_map(|round| [("c100-d1-m64-open90pct-pilot", round); 3]);
    assert_eq!(pilots, expected.collect::<Vec<_>>());
    let [ladder] = &outcome.result.latency_ladders[..] else { panic!("there is one") };
    let capacity = ladder.capacity.as_ref().expect("there is a closed loop");
    assert_eq!((capacity.arm.as_str(), capacity.per_second.value.round()), ("epoll", 200_000.0));
    let rungs: Vec<(f64, usize)> =
        ladder.rungs.iter().map(|rung| (rung.rate_per_second, rung.arms.len())).collect();
    assert_eq!(rungs, [(100_000.0, 2), (140_000.0, 2), (180_000.0, 2)]);
    let p99 = |rung: usize, arm: usize| ladder.rungs[rung].arms[arm].p99_ns.expect("it kept up").value;
    assert!(p99(0, 0) < p99(1, 0) && p99(1, 0) < p99(2, 0), "{ladder:?}");
    assert!((0..3).all(|rung| p99(rung, 1) < p99(rung, 0)), "the arm is faster: {ladder:?}");
    let planned = outline::study_ns(&spec);
    assert!(planned < outline::study_ns(&with_rates(&[(0.9, 8), (0.5, 8), (0.7, 21)])));
}

#[test]
fn rates_of_one_shape_are_shares_of_one_capacity_though_its_pilot_failed_in_part() {
    let mut launcher = launcher(1, FakeStates::Near, 0.8);
    // One arm is silent in the first round and the other in the second; there is time for one round beyond three.
    for arm in launcher.arms.values_mut() {
        arm.fault = FakeFault::SilentOnceAt(1);
    }
    let spec = with_rates(&[(0.5, 8), (0.9, 8)]);
    let outcome = start("pilot-in-part", &spec, &mut launcher).expect("the study runs");
    let pilots = outcome.trials.iter().filter(|trial| trial.cell_id.ends_with("-pilot")).count();
    assert_eq!(pilots, 4 * 3, "the second rate needs no pilot");
    let [half, most] = rates(&outcome.result.spec)[..] else { panic!("there are two") };
    // Both rates are whole numbers.
    assert!((half / 0.5 - most / 0.9).abs() < 2.0, "{half} {most}");
}

#[test]
fn rates_without_a_capacity_are_left_out_and_the_other_cells_are_judged() {
    for takes_turns in [false, true] {
        let mut launcher = launcher(1, FakeStates::Near, 0.8);
        for arm in launcher.arms.values_mut() {
            arm.fault = FakeFault::DiesWithWorkers(16);
        }
        let mut spec = with_rates(&[(0.5, 8), (0.9, 8)]);
        for cell in &mut spec.cells {
            cell.workers = if cell.load == LoadMode::Closed { cell.workers } else { 16 };
            cell.alternation = cell.alternation.filter(|_| takes_turns);
        }
        let folder = fresh_folder("no-capacity");
        let mut left_out = 0;
        let mut progress = |event: &Event| left_out += u32::from(matches!(event, Event::LeftOut { .. }));
        let callbacks = Callbacks { launcher: &mut launcher, interrupt: &NEVER, progress: &mut progress };
        let outcome = run::start(&folder, &new_study(spec), callbacks).expect("the others run");
        assert_eq!((left_out, outcome.ended, outcome.progress.is_complete()), (2, Ended::Complete, true));
        assert_eq!(outcome.result.effects.rows[0].verdict, Verdict::Better);
        let at_rates = outcome.result.effects.comparisons().filter(|it| it.cell_id.contains("open"));
        let reasons: Vec<_> = at_rates.map(|it| &it.reasons[..]).collect();
        let said = "exited with status 1: no such thing".to_owned();
        assert!(reasons.iter().all(|it| *it == [Finding::NoCapacity { said: said.clone() }]), "{reasons:?}");
        assert_eq!(outcome.result.spec.missing_cells.len(), 2, "the report names them");
        assert_eq!(ExitCode::of_session(outcome.ended, &outcome.result), ExitCode::Environment);
        let trials = outcome.trials.len();
        let again = resume(&folder, &mut launcher, &NEVER).expect("it can be gone on with");
        assert_eq!((again.ended, again.trials.len()), (Ended::Complete, trials), "nothing is left to run");
    }
}

#[test]
fn the_second_rate_of_a_shape_needs_no_trial_and_a_session_that_goes_on_runs_no_pilot_again() {
    let mut launcher = launcher(1, FakeStates::Near, 0.8);
    launcher.noise = 0.0;
    let folder = fresh_folder("pilot-interrupted");
    let mut fixed = 0;
    let interrupt = std::sync::atomic::AtomicBool::new(false);
    let mut progress = |event: &Event| {
        if matches!(event, Event::RateFixed { .. }) {
            fixed += 1;
            interrupt.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    };
    let spec = with_rates(&[(0.5, 8), (0.9, 8)]);
    let callbacks = Callbacks { launcher: &mut launcher, interrupt: &interrupt, progress: &mut progress };
    run::start(&folder, &new_study(spec), callbacks).expect("it ends in good order");
    let outcome = resume(&folder, &mut launcher, &NEVER).expect("it goes on");
    assert_eq!(rates(&outcome.result.spec), [100_000.0, 180_000.0]);
    let pilots = outcome.trials.iter().filter(|trial| trial.cell_id.ends_with("-pilot")).count();
    assert_eq!((pilots, fixed), (9, 2));
}

#[test]
fn an_arm_that_is_slower_at_a_rate_than_in_closed_loop_has_no_latency_where_it_does_not_keep_up() {
    let slow = FakeArm { open_factor: 1.2, ..FakeArm::costing(5.0) };
    let mut launcher =
        FakeLauncher::new(1, FakeStates::Near, &[("epoll", FakeArm::costing(5.0)), ("uring", slow)]);
    launcher.noise = 0.0;
    let outcome =
        start("too-fast", &with_rates(&[(0.5, 8), (0.9, 8)]), &mut launcher).expect("the study runs");
    let [ladder] = &outcome.result.latency_ladders[..] else { panic!("there is one") };
    let late = &ladder.rungs[1].arms[1];
    assert_eq!((late.arm.as_str(), late.p50_ns, late.p99_ns), ("uring", None, None));
    assert!(late.achieved_per_second < 170_000.0 && ladder.rungs[1].arms[0].p99_ns.is_some());
    assert!(matches!(&late.reasons[..], [Finding::RateNotKept { arm, .. }] if arm == "uring"));
}

#[test]
fn few_rounds_at_other_rates_do_not_leave_open_what_the_one_with_most_bears_out() {
    let verdict = |shares: &[(f64, u32)], open_factor: f64| {
        let arm = FakeArm { open_factor, ..FakeArm::costing(4.5) };
        let arms = [("epoll", FakeArm::costing(5.0)), ("uring", arm)];
        let mut launcher = FakeLauncher::new(3, FakeStates::Near, &arms);
        launcher.generator_us_per_message = 5.2;
        let outcome = start("few", &with_rates(shares), &mut launcher).expect("the study runs");
        comparison(&outcome, "c100-d1-m64-closed", Metric::ServerCpuPerMessage).verdict
    };
    assert_eq!(verdict(&[(0.7, 20)], 1.0), Verdict::Better);
    assert_eq!(verdict(&[(0.7, 20), (0.5, 3), (0.9, 3)], 1.0), Verdict::Better);
    assert_eq!(verdict(&[(0.7, 3), (0.5, 3)], 1.0), Verdict::Inconclusive, "somebody must bear it out");
    assert_eq!(verdict(&[(0.7, 20), (0.5, 8)], 1.3), Verdict::NotComparable, "more expensive at any rate");
}

#[test]
fn the_map_has_latency_and_connections_within_its_time() {
    let minutes = |plan: Option<&str>| {
        let host_defaults = HostDefaults {
            seed: 3,
            server_cpus: vec![0],
            load_cpus: vec![1],
            plan: plan.map(str::to_owned),
            ..HostDefaults::default()
        };
        let study = weir_lab::builtin::BuiltIn::named("tps").expect("it is built in");
        let spec = study.study(&host_defaults).unwrap_or_else(|error| panic!("{error}")).spec;
        outline::study_ns(&spec) as f64 / 60e9
    };
    let (quick, standard) = (minutes(Some("quick")), minutes(None));
    assert!(quick < 10.0 && standard < 60.0, "quick {quick:.1} min, standard {standard:.1} min");
}

#[test]
fn server_cpus_are_a_factor_where_there_are_several_and_else_the_plan_says_so() {
    let asked = |server_cpus: Vec<usize>| {
        let host_defaults =
            HostDefaults { seed: 3, server_cpus, load_cpus: vec![9], ..HostDefaults::default() };
        weir_lab::builtin::BuiltIn::named("tps")
            .expect("it is built in")
            .study(&host_defaults)
            .unwrap_or_else(|error| panic!("{error}"))
    };
    let one = asked(vec![0]);
    assert!(one.spec.cells.iter().all(|cell| cell.server_cpus.is_empty()));
    let plan_of = |study: &study_file::Study| outline::text(study, Language::English);
    assert!(plan_of(&one).contains("server CPUs have one level"), "{}", plan_of(&one));
    let several = asked((0..6).collect());
    let cells = several.spec.cells.iter().filter(|cell| cell.id.contains("scpu"));
    let cells: Vec<(&str, usize)> = cells.map(|cell| (cell.id.as_str(), cell.server_cpus.len())).collect();
    let ids = |connections: u32| {
        [("0", 1), ("0+1", 2), ("0+1+2+3", 4)]
            .map(|(cpus, count)| (format!("c{connections}-d1-m64-w16-scpu{cpus}-closed"), count))
    };
    let expected: Vec<(String, usize)> = [ids(100), ids(1000)].concat();
    assert_eq!(cells, expected.iter().map(|(id, count)| (id.as_str(), *count)).collect::<Vec<_>>());
    let others = several.spec.cells.iter().filter(|cell| !cell.id.contains("scpu"));
    assert!(others.into_iter().all(|cell| cell.server_cpus == several.spec.server_cpus), "all are a level");
    assert!(!plan_of(&several).contains("one level"));
    assert!(built_in("tps").cells.iter().all(|cell| cell.server_cpus.is_empty()), "no CPU is known");
}
