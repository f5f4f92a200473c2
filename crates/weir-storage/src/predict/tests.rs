//! Properties of every predictor, whatever its input.

use proptest::prelude::*;

use super::{
    ALL_DEFAULTS, Costs, Direction, Issued, Outcome, Plan, PredictorSpec, SLEEP_NS_MAX,
    rehearsal::{COSTS, Rehearsal},
};

/// The defaults, and parameters at the limits of their ranges.
fn specs() -> Vec<PredictorSpec> {
    let extremes = [
        "fixed:1000ms",
        "linux-mean:1,1",
        "linux-mean:0.001,60000",
        "dpas:no-poll",
        "ewma:1,0",
        "ewma:0.001,100",
        "quantile:0.0001",
        "quantile:0.5",
        "regime:0.0001,0",
        "regime:0.5,1000000",
        "load-aware:0.5,1000000",
    ];
    ALL_DEFAULTS.iter().chain(&extremes).map(|text| text.parse().expect("a predictor")).collect()
}

/// Times from zero to the maximum, most of them realistic.
fn time_ns() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..200_000_u64, 1 => 0..2_000_000_000_u64, 1 => any::<u64>(), 1 => Just(u64::MAX)]
}

fn costs() -> impl Strategy<Value = Costs> {
    (time_ns(), time_ns(), time_ns(), time_ns(), time_ns()).prop_map(
        |(submit_ns, sleep_cpu_ns, interrupt_cpu_ns, interrupt_lag_ns, wake_lag_ns)| Costs {
            submit_ns,
            sleep_cpu_ns,
            interrupt_cpu_ns,
            interrupt_lag_ns,
            wake_lag_ns,
        },
    )
}

#[derive(Clone, Debug)]
struct Step {
    now_ns: u64,
    bytes: u32,
    direction: Direction,
    in_flight: u32,
    in_flight_others: Option<u32>,
    elapsed_ns: u64,
    wake_lag_ns: u64,
    complete_at_wake: bool,
    woken_early: bool,
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = prop_oneof![Just(4096_u32), any::<u32>()];
    let direction = prop_oneof![Just(Direction::Read), Just(Direction::Write)];
    let times = (time_ns(), time_ns(), time_ns());
    let loads = (any::<u32>(), any::<Option<u32>>());
    (times, bytes, direction, loads, any::<(bool, bool)>()).prop_map(
        |((now_ns, elapsed_ns, wake_lag_ns), bytes, direction, loads, flags)| Step {
            now_ns,
            bytes,
            direction,
            in_flight: loads.0,
            in_flight_others: loads.1,
            elapsed_ns,
            wake_lag_ns,
            complete_at_wake: flags.0,
            woken_early: flags.1,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_it_is_told_makes_a_predictor_panic_or_sleep_too_long(
        costs in costs(),
        story in prop::collection::vec(step(), 1..600),
    ) {
        for spec in specs() {
            let mut predictor = spec.build(&costs);
            for step in &story {
                let plan = predictor.plan(&Issued {
                    now_ns: step.now_ns,
                    bytes: step.bytes,
                    direction: step.direction,
                    in_flight: step.in_flight,
                    in_flight_others: step.in_flight_others,
                });
                if let Plan::Sleep { ns } = plan {
                    prop_assert!((1..=SLEEP_NS_MAX).contains(&ns), "{spec}: {ns}");
                }
                predictor.observe(&Outcome {
                    now_ns: step.now_ns.saturating_add(step.elapsed_ns),
                    bytes: step.bytes,
                    direction: step.direction,
                    plan,
                    elapsed_ns: step.elapsed_ns,
                    complete_at_wake: step.complete_at_wake,
                    woken_early: step.woken_early,
                    wake_lag_ns: step.wake_lag_ns,
                    cpu_ns: step.elapsed_ns,
                });
            }
        }
    }

    /// Operations on a device that is idle, then saturated, then idle: no predictor sleeps much longer than the
    /// longest time it has seen.
    #[test]
    fn no_predictor_sleeps_longer_than_any_operation_took(
        idle_ns in 5_000..50_000_u64,
        factor in 1..20_u64,
        wake_lag_ns in 0..30_000_u64,
    ) {
        for spec in specs().into_iter().filter(|spec| spec.family() != "fixed") {
            let mut rehearsal = Rehearsal::with(spec.build(&COSTS)).lagging(wake_lag_ns);
            let mut longest_ns = 100;
            for round in 0..3_000_u64 {
                let saturated = (1_000..2_000).contains(&round);
                let device_ns = if saturated { idle_ns * factor } else { idle_ns } + round * 7_919 % 1_000;
                let outcome = rehearsal.wait(device_ns);
                if let Plan::Sleep { ns } = outcome.plan {
                    prop_assert!(ns <= longest_ns * 2, "{spec}: {ns} beside {longest_ns}");
                }
                longest_ns = longest_ns.max(outcome.elapsed_ns);
            }
        }
    }

    #[test]
    fn every_spec_reads_back(
        share in 0.0001..=0.5_f64,
        price in 0.0..=1e6_f64,
        period_ms in 1..=60_000_u64,
        sleep_ns in 1..=SLEEP_NS_MAX,
    ) {
        for spec in [
            PredictorSpec::Fixed { sleep_ns },
            PredictorSpec::LinuxMean { ratio: share + 0.001, period_ms },
            PredictorSpec::Ewma { weight: share + 0.001, deviations: price / 1e5 },
            PredictorSpec::Quantile { quantile: share },
            PredictorSpec::Regime { quantile: share, price },
            PredictorSpec::LoadAware { quantile: share, price },
        ] {
            prop_assert_eq!(spec.to_string().parse(), Ok(spec));
        }
    }
}

#[test]
fn the_same_story_gives_the_same_plans() {
    for spec in specs() {
        let plans = || -> Vec<Plan> {
            let mut rehearsal = Rehearsal::with(spec.build(&COSTS));
            (0..2_000_u64).map(|index| rehearsal.wait(12_000 + index * 7_919 % 9_000).plan).collect()
        };
        assert_eq!(plans(), plans(), "{spec}");
    }
}
