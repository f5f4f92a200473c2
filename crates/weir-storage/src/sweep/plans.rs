//! The sweeps of the study: over the model, over made traces, over a disk.

use std::ops::RangeInclusive;

use weir_record::sweep::{SweepMethod, SweepPhase, SweepPlan, SweepWorld};

use crate::simulate::Scenario;

/// Seeds on which settings may be chosen.
pub const TRAINING_SEEDS: RangeInclusive<u64> = 1..=10;
/// Seeds nobody looked at before.
pub const HELD_OUT_SEEDS: RangeInclusive<u64> = 101..=120;

/// Name of the model in results.
pub const SOURCE_MODEL: &str = "983 ZET";
/// The same with both hypotheses about the paper's device.
pub const SOURCE_HYPOTHESES: &str = "983 ZET, late wake-ups, slow starts";
/// Name of the made traces.
pub const SOURCE_SYNTHETIC: &str = "synthetic";

/// Intervals of a job that is shorter than twenty seconds, at least.
const INTERVALS: u64 = 20;
/// The shortest interval.
const INTERVAL_NS_MIN: u64 = 5_000_000;
/// The paper's unit is not published; a second gives its figures.
const INTERVAL_NS_MAX: u64 = 1_000_000_000;

/// Held-out seeds, the first `count` of them and more if asked.
pub fn held_out(count: u64) -> Vec<u64> {
    (0..count).map(|index| HELD_OUT_SEEDS.start() + index).collect()
}

/// Length of an interval for jobs of this length.
pub fn interval_ns(job_ns: u64) -> u64 {
    (job_ns / INTERVALS).clamp(INTERVAL_NS_MIN, INTERVAL_NS_MAX)
}

/// The scenario of the paper with jobs of this length.
pub fn scenario(job_ns: u64) -> Scenario {
    Scenario { interval_ns: interval_ns(job_ns), ..Scenario::paper(job_ns) }
}

/// A sweep over a scenario.
pub fn of_scenario(
    scenario: &Scenario,
    source: &str,
    seeds: Vec<u64>,
    methods: Vec<SweepMethod>,
) -> SweepPlan {
    let phase = |phase: &crate::simulate::Phase| SweepPhase {
        name: phase.name.clone(),
        length_ns: phase.length_ns,
        background_cores: phase.background_cores,
        background_depth: phase.background_depth,
    };
    SweepPlan {
        world: SweepWorld::Simulator,
        source: source.to_owned(),
        phases: scenario.phases.iter().map(phase).collect(),
        interval_ns: scenario.interval_ns,
        seeds,
        methods,
    }
}

/// A sweep over traces, one for each phase.
pub fn of_traces(
    source: &str,
    phases: &[&str],
    interval_ns: u64,
    seeds: Vec<u64>,
    methods: Vec<SweepMethod>,
) -> SweepPlan {
    let phase = |name: &&str| SweepPhase { name: (*name).to_owned(), ..SweepPhase::default() };
    SweepPlan {
        world: SweepWorld::Trace,
        source: source.to_owned(),
        phases: phases.iter().map(phase).collect(),
        interval_ns,
        seeds,
        methods,
    }
}

/// A sweep over a file: one phase for each background depth on one other core.
pub fn of_disk(
    file: &str,
    length_ns: u64,
    depths: &[u32],
    blocks: u64,
    methods: Vec<SweepMethod>,
) -> SweepPlan {
    SweepPlan {
        world: SweepWorld::Disk,
        source: file.to_owned(),
        phases: phases_of(depths, length_ns),
        interval_ns: interval_ns(length_ns),
        seeds: (1..=blocks).collect(),
        methods,
    }
}

/// A sweep over traces that were recorded beside these depths, each cut into so many pieces.
pub fn of_recordings(
    source: &str,
    depths: &[u32],
    interval_ns: u64,
    pieces: u64,
    methods: Vec<SweepMethod>,
) -> SweepPlan {
    SweepPlan {
        world: SweepWorld::Recording,
        source: source.to_owned(),
        phases: phases_of(depths, 0),
        interval_ns,
        seeds: (1..=pieces).collect(),
        methods,
    }
}

/// A phase for each background depth on one other core.
fn phases_of(depths: &[u32], length_ns: u64) -> Vec<SweepPhase> {
    let phase = |depth: &u32| SweepPhase {
        name: phase_name(*depth),
        length_ns,
        background_cores: u32::from(*depth > 0),
        background_depth: *depth,
    };
    depths.iter().map(phase).collect()
}

/// Name of the phase with a background of this depth.
pub fn phase_name(depth: u32) -> String {
    format!("background {depth}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_out_seeds_are_none_that_settings_were_chosen_on() {
        assert_eq!(held_out(20), HELD_OUT_SEEDS.collect::<Vec<_>>());
        assert!(held_out(200).iter().all(|seed| !TRAINING_SEEDS.contains(seed)));
    }

    #[test]
    fn a_long_job_has_intervals_of_a_second_and_a_short_one_twenty() {
        assert_eq!(interval_ns(20_000_000_000), 1_000_000_000);
        assert_eq!(interval_ns(2_000_000_000), 100_000_000);
        assert_eq!(interval_ns(1), 5_000_000);
    }

    #[test]
    fn the_scenarios_phases_are_the_plans() {
        let plan = of_scenario(&scenario(1_000_000_000), SOURCE_MODEL, held_out(1), Vec::new());
        let loads: Vec<_> =
            plan.phases.iter().map(|phase| (phase.name.as_str(), phase.background_cores)).collect();
        assert_eq!(loads, [("Job1", 0), ("Job2", 1), ("Job3", 4)]);
    }
}
