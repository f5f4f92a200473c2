//! Properties of every closed queueing network, special cases with a closed form, and the published jobs.

use proptest::prelude::*;

use super::{
    method::Method,
    replay::{Pace, replay},
    report::{PhaseReport, SimulationReport},
    scenario::{DeviceModel, HostModel, Lag, LagTail, Phase, Scenario, StartTransient},
    simulate,
};
use crate::{predict::Direction, trace::TraceOperation};

const SEED: u64 = 7;
const SECOND_NS: u64 = 1_000_000_000;

fn method(text: &str) -> Method {
    Method::parse(text, false).unwrap_or_else(|error| panic!("{error}"))
}

fn armed(text: &str) -> Method {
    Method::parse(text, true).unwrap_or_else(|error| panic!("{error}"))
}

fn phase(name: &str, length_ns: u64, background_cores: u32, background_depth: u32) -> Phase {
    Phase { name: name.to_owned(), length_ns, background_cores, background_depth }
}

fn scenario(device: DeviceModel, host: HostModel, phases: Vec<Phase>) -> Scenario {
    Scenario { device, host, phases, interval_ns: SECOND_NS / 10, start_transient: None }
}

/// A host without variation.
fn constant_host() -> HostModel {
    HostModel {
        sleep_lag: Lag::constant(2_000),
        interrupt_lag: Lag::constant(1_500),
        background_ns: 900,
        ..HostModel::xeon_6230()
    }
}

fn alone(device: DeviceModel, text: &str) -> PhaseReport {
    let scenario = scenario(device, constant_host(), vec![phase("alone", SECOND_NS / 10, 0, 0)]);
    simulate(&scenario, &method(text), SEED).phases.remove(0)
}

#[test]
fn alone_on_a_device_that_does_not_vary_latency_is_service_pipe_and_delay() {
    let device = DeviceModel { service_jitter_ns: 0, ..DeviceModel::zet_983() };
    let waiting = alone(device, "poll").waiting;
    assert_eq!(waiting.device_ns, waiting.operations * device.alone_ns());
    assert_eq!(waiting.total_ns, waiting.device_ns, "a poller adds nothing");
    // Each takes its latency and an issue, which gives the number that fit.
    assert_eq!(waiting.operations, SECOND_NS / 10 / (device.alone_ns() + 900));
    assert_eq!(waiting.cpu_ns, waiting.operations * (device.alone_ns() + 900), "and is busy all the time");

    let waiting = alone(device, "interrupt").waiting;
    assert_eq!(waiting.total_ns, waiting.operations * (device.alone_ns() + 1_500));
    assert_eq!(waiting.operations, SECOND_NS / 10 / (device.alone_ns() + 1_500 + 900 + 440));
    assert_eq!(waiting.cpu_ns, waiting.operations * (900 + 440 + 2_220));

    let waiting = alone(device, "fixed:5us").waiting;
    let spin_ns = device.alone_ns() - 7_000;
    assert_eq!((waiting.misses, waiting.spin_ns), (0, waiting.operations * spin_ns));
    assert_eq!(waiting.cpu_ns, waiting.operations * (900 + 440 + 2_200 + spin_ns));
    assert_eq!(waiting.sleep_requested_ns, waiting.operations * 5_000);
}

#[test]
fn one_saturated_unit_serves_one_operation_each_service_time() {
    // Deterministic and closed: with N in the loop and a cycle shorter than N services, the unit is never idle, and
    // each of N equal threads waits N services for its turn.
    let (service_ns, threads) = (10_000, 5);
    let device = DeviceModel { units: 1, service_ns, service_jitter_ns: 0, pipe_ns: 500, base_ns: 3_000 };
    let phases = vec![
        phase("warm-up", SECOND_NS / 100, threads - 1, 1),
        phase("warm", SECOND_NS / 10, threads - 1, 1),
    ];
    let report = simulate(&scenario(device, constant_host(), phases), &method("poll"), SEED);
    let warm = &report.phases[1];
    let cycle_ns = u64::from(threads) * service_ns;
    let expected = SECOND_NS / 10 / cycle_ns;
    // The background restarts with the phase, which costs at most one turn of the loop.
    assert!(warm.waiting.operations.abs_diff(expected) <= 1, "{} for {expected}", warm.waiting.operations);
    let all = warm.waiting.operations + warm.background_operations;
    assert!(all.abs_diff(SECOND_NS / 10 / service_ns) <= u64::from(threads), "{all} of all");
    let latency_ns = warm.waiting.device_ns as f64 / warm.waiting.operations as f64;
    let turn_ns = (cycle_ns - 900) as f64;
    assert!((latency_ns / turn_ns - 1.0).abs() < 0.002, "{latency_ns} for {turn_ns}");
}

#[test]
fn littles_law_holds_between_what_the_foreground_sees_and_what_the_background_does() {
    // N equal threads: the product of their total rate and the measured cycle of one of them is N.
    for threads in [2_u32, 8, 20] {
        let host = HostModel { background_ns: 900, ..HostModel::xeon_6230() };
        let phases = vec![phase("all", SECOND_NS, threads - 1, 1)];
        let report = simulate(&scenario(DeviceModel::zet_983(), host, phases), &method("poll"), SEED);
        let PhaseReport { waiting, background_operations, .. } = &report.phases[0];
        let a_second = (waiting.operations + background_operations) as f64;
        let cycle_seconds = (waiting.total_ns as f64 / waiting.operations as f64 + 900.0) / 1e9;
        let found = a_second * cycle_seconds;
        assert!((found / f64::from(threads) - 1.0).abs() < 0.01, "seed {SEED}: {found} for {threads}");
    }
}

#[test]
fn nothing_is_faster_than_its_bottleneck() {
    let cases = [
        // Units, service, pipe, background CPU: the bottleneck, in operations a second.
        (4, 10_000, 100, 100, 400_000.0),
        (8, 2_000, 2_000, 100, 500_000.0),
        (8, 2_000, 100, 8_000, 250_000.0),
    ];
    for (units, service_ns, pipe_ns, background_ns, bound) in cases {
        let device = DeviceModel { units, service_ns, service_jitter_ns: 0, pipe_ns, base_ns: 1_000 };
        let host = HostModel { background_ns, ..HostModel::xeon_6230() };
        let phases = vec![phase("full", SECOND_NS / 2, 2, 64)];
        let report = simulate(&scenario(device, host, phases), &method("interrupt"), SEED);
        let PhaseReport { waiting, background_operations, .. } = &report.phases[0];
        let a_second = 2.0 * (waiting.operations + background_operations) as f64;
        let foreground = 2.0 * waiting.operations as f64;
        assert!(a_second < bound + foreground, "{a_second} for {bound}");
        assert!(a_second > 0.95 * bound, "seed {SEED}: {a_second} for {bound}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bits_and_another_one_others() {
    let scenario = Scenario::paper(SECOND_NS / 20);
    for method in [method("linux-mean"), method("constant:0.05"), armed("fixed:20us"), method("clairvoyant")]
    {
        let run = |seed| serde_json::to_string(&simulate(&scenario, &method, seed)).expect("plain data");
        assert_eq!(run(SEED), run(SEED), "{method}");
        assert_ne!(run(SEED), run(SEED + 1), "{method}");
    }
}

#[test]
fn the_sequence_is_the_one_it_has_always_been() {
    // If any of these numbers changes, stored seeds no longer reproduce the stored figures.
    let report = simulate(&Scenario::paper(SECOND_NS / 100), &method("poll"), 1);
    let figures: Vec<(u64, u64, u64)> = report
        .phases
        .iter()
        .map(|phase| (phase.waiting.operations, phase.waiting.device_ns, phase.background_operations))
        .collect();
    assert_eq!((figures, report.events), (FIRST_SEQUENCE.to_vec(), FIRST_EVENTS));
}

/// Operations, device time and background operations of each job.
const FIRST_SEQUENCE: [(u64, u64, u64); 3] =
    [(653, 9_398_952, 0), (403, 9_626_995, 5_252), (72, 9_840_595, 7_751)];
const FIRST_EVENTS: u64 = 28_408;

#[test]
fn parts_of_the_time_add_up_in_every_phase_with_every_method() {
    let mut scenario = Scenario::paper(SECOND_NS / 20);
    scenario.host = scenario.host.with_tail(LagTail::deep_idle());
    for method in [
        method("poll"),
        method("interrupt"),
        method("fixed:12us"),
        armed("fixed:40us"),
        method("clairvoyant"),
    ] {
        for phase in simulate(&scenario, &method, SEED).phases {
            let waiting = &phase.waiting;
            let parts = waiting.device_ns + waiting.oversleep_ns + waiting.wake_ns + waiting.notice_ns;
            assert_eq!(parts, waiting.total_ns, "{method} in {}", phase.name);
            assert_eq!(waiting.device_known, waiting.operations);
            let operations: u64 = phase.intervals.iter().map(|interval| interval.operations).sum();
            let busy_ns: u64 = phase.intervals.iter().map(|interval| interval.cpu_ns).sum();
            assert_eq!((operations, busy_ns), (waiting.operations, waiting.cpu_ns));
            // One operation may have started before the phase.
            assert!(phase.cpu_share() <= 1.001, "{method}: {}", phase.cpu_share());
        }
    }
}

#[test]
fn the_machine_is_busy_with_the_foreground_and_the_background() {
    let report = simulate(&Scenario::paper(SECOND_NS / 5), &method("poll"), SEED);
    for (phase, cores) in report.phases.iter().zip([0_u64, 1, 4]) {
        let busy_ns: u64 = phase.intervals.iter().map(|interval| interval.machine_busy_ns).sum();
        let background_ns = phase.background_operations * 1_900;
        let expected = phase.waiting.cpu_ns + background_ns;
        assert!(background_ns <= cores * SECOND_NS / 5);
        assert!((busy_ns as f64 / expected as f64 - 1.0).abs() < 0.01, "{busy_ns} for {expected}");
    }
}

#[test]
fn the_clairvoyant_never_misses_and_adds_nothing() {
    for phase in simulate(&Scenario::paper(SECOND_NS / 10), &method("clairvoyant"), SEED).phases {
        assert_eq!(
            (phase.waiting.misses, phase.waiting.total_ns),
            (0, phase.waiting.device_ns),
            "{}",
            phase.name
        );
        assert!(phase.cpu_share() < 0.5, "{}", phase.cpu_share());
    }
}

#[test]
fn the_best_constant_sleep_misses_as_much_as_it_may() {
    for share in [0.01, 0.1] {
        for phase in simulate(&Scenario::paper(SECOND_NS), &method(&format!("constant:{share}")), SEED).phases
        {
            // Another way to wait changes the load a little: it meets other operations than polling does.
            let found = phase.miss_share();
            let limit = 6.0 * (share / phase.waiting.operations as f64).sqrt() + 0.1 * share;
            assert!((found - share).abs() < limit, "seed {SEED}: {found} for {share} in {}", phase.name);
        }
    }
}

#[test]
fn the_jobs_look_as_they_were_observed() {
    let run = |text: &str| simulate(&Scenario::paper(2 * SECOND_NS), &method(text), SEED).phases;
    let half = run("linux-mean:0.5");
    assert!(half[0].miss_share() < 0.01, "Job1 {}", half[0].miss_share());
    assert!((0.08..0.30).contains(&half[1].miss_share()), "Job2 {}", half[1].miss_share());
    assert!((0.25..0.45).contains(&half[2].miss_share()), "Job3 {}", half[2].miss_share());
    let ratio = half[0].iops() / half[2].iops();
    assert!((9.0..13.0).contains(&ratio), "Job1 has {ratio} times the operations of Job3");

    let few = run("linux-mean:0.03");
    assert!(few[2].cpu_share() > 0.95, "3 %: {}", few[2].cpu_share());
    assert!((0.4..0.65).contains(&half[2].cpu_share()), "50 %: {}", half[2].cpu_share());
    assert!((few[2].iops() / half[2].iops() - 1.0).abs() < 0.15, "operations a second are nearly the same");
}

#[test]
fn a_transient_slows_the_start_of_each_phase_and_nothing_else() {
    let mut scenario = Scenario::paper(SECOND_NS);
    let without = simulate(&scenario, &method("poll"), SEED);
    scenario.start_transient = Some(StartTransient::half_second());
    scenario.interval_ns = SECOND_NS / 2;
    let with = simulate(&scenario, &method("poll"), SEED);
    for (with, without) in with.phases.iter().zip(&without.phases) {
        let [slow, rest] = with.intervals[..] else { panic!("two intervals: {}", with.intervals.len()) };
        assert!(slow.operations * 2 < rest.operations, "{} of {}", slow.operations, rest.operations);
        let expected = without.waiting.operations as f64 / 2.0;
        assert!((rest.operations as f64 / expected - 1.0).abs() < 0.05, "{} for {expected}", rest.operations);
    }
}

#[test]
fn a_tail_shows_in_the_added_latency_only_of_those_who_slept() {
    let mut scenario = Scenario::paper(SECOND_NS / 10);
    scenario.host = scenario.host.with_tail(LagTail::deep_idle());
    let p99 = |text: &str| simulate(&scenario, &method(text), SEED).phases[0].waiting.added.quantile_ns(0.99);
    assert_eq!(p99("poll"), Some(0));
    assert!(p99("interrupt") > Some(100_000));
}

#[test]
fn polling_alone_meets_the_same_device_however_it_waits() {
    // The foreground has a separate random sequence, so that comparisons are paired.
    let device_mean = |text: &str| {
        let waiting =
            simulate(&Scenario::paper(SECOND_NS / 10), &method(text), SEED).phases.remove(0).waiting;
        waiting.device_ns as f64 / waiting.operations as f64
    };
    assert!((device_mean("poll") / device_mean("interrupt") - 1.0).abs() < 0.001);
}

fn recorded(latencies: &[u64]) -> Vec<TraceOperation> {
    let operation = |latency_ns: &u64| TraceOperation {
        issued_ns: None,
        latency_ns: *latency_ns,
        bytes: 4096,
        direction: Direction::Read,
        in_flight: None,
    };
    latencies.iter().map(operation).collect()
}

#[test]
fn a_replay_waits_for_each_recorded_operation() {
    let operations = recorded(&[10_000, 20_000, 5_000]);
    let run =
        |text: &str| replay(&operations, &constant_host(), &method(text), SEED, SECOND_NS, Pace::BackToBack);
    let waiting = run("poll").waiting;
    assert_eq!((waiting.operations, waiting.device_ns, waiting.elapsed_ns), (3, 35_000, 35_000 + 3 * 900));
    assert_eq!(waiting.cpu_ns, waiting.elapsed_ns);

    let waiting = run("fixed:6us").waiting;
    // Awake after 8 us: only the last was missed, by 3 us.
    assert_eq!((waiting.misses, waiting.oversleep_ns, waiting.wake_ns), (1, 1_000, 2_000));
    assert_eq!(waiting.total_ns, 10_000 + 20_000 + 8_000);

    let waiting = run("constant:0.34").waiting;
    assert_eq!((waiting.misses, waiting.sleep_requested_ns), (1, 3 * 7_999));
}

#[test]
fn recorded_pauses_are_kept_when_asked_for() {
    let mut operations = recorded(&[10_000, 20_000, 5_000]);
    for (operation, issued_ns) in operations.iter_mut().zip([0, 60_000, 80_000]) {
        operation.issued_ns = Some(issued_ns);
    }
    let elapsed = |pace| {
        replay(&operations, &constant_host(), &method("poll"), SEED, SECOND_NS, pace).waiting.elapsed_ns
    };
    assert_eq!(elapsed(Pace::BackToBack), 35_000 + 3 * 900);
    // 50 us between the first two; the third was issued as soon as the second was done.
    assert_eq!(elapsed(Pace::Recorded), 35_000 + 900 + 50_000 + 900);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_scenario_ends_with_a_report_that_adds_up(
        seed: u64,
        units in 1_u32..=9,
        service_ns in 1_u64..30_000,
        times in prop::array::uniform4(0_u64..5_000),
        cores in 0_u32..=4,
        depth in 0_u32..=20,
        sleep_us in 1_u64..60,
        is_armed: bool,
    ) {
        let [pipe_ns, base_ns, background_ns, lag_ns] = times;
        let device = DeviceModel { units, service_ns, service_jitter_ns: service_ns / 2, pipe_ns, base_ns };
        let host = HostModel {
            background_ns,
            sleep_lag: Lag { floor_ns: lag_ns, exponential_ns: lag_ns, tail: None },
            ..HostModel::xeon_6230()
        };
        let phases = vec![
            phase("a", 3_000_000, cores, depth),
            phase("b", 2_000_000, 0, 0),
            phase("c", 3_000_000, cores / 2 + 1, depth + 1),
        ];
        let method = Method::parse(&format!("fixed:{sleep_us}us"), is_armed).expect("a predictor");
        let scenario = scenario(device, host, phases);
        let SimulationReport { phases, events } = simulate(&scenario, &method, seed);
        let mut operations = 0;
        for phase in &phases {
            let waiting = &phase.waiting;
            let parts = waiting.device_ns + waiting.oversleep_ns + waiting.wake_ns + waiting.notice_ns;
            prop_assert_eq!(parts, waiting.total_ns);
            prop_assert!(waiting.device_ns >= waiting.operations * (service_ns / 2 + pipe_ns + base_ns));
            prop_assert!(!is_armed || waiting.misses == 0);
            operations += waiting.operations + phase.background_operations;
        }
        // Two events for each operation, and the ends of intervals; some operations are in flight at the end.
        let under_way = u64::from(4 * depth + 5 * (depth + 1) + 1);
        prop_assert!(events >= 2 * operations && events <= 2 * (operations + under_way) + 3, "{events} {operations}");
    }
}
