//! What the methods wait for: a scenario of the model, made traces, or a trace that was read. Pure: the same method and
//! seed give the same phases. A disk is measured by whoever can start processes.

use weir_record::sweep::{MethodRole, PartPhase, SweepMethod, SweepPlan, WaitingFigures};

use super::{methods, synthetic};
use crate::{
    simulate::{HostModel, Pace, PhaseReport, Scenario, replay, simulate},
    trace::TraceOperation,
};

/// What is waited for.
#[derive(Clone, Debug)]
pub enum World {
    /// The model.
    Model(Scenario),
    /// Traces made from the seed, by [`synthetic::KINDS`].
    Synthetic {
        /// Who waits.
        host: HostModel,
        /// Interval of the measurement points.
        interval_ns: u64,
    },
    /// Traces that were read, one for each phase.
    Recorded {
        /// In the order of the phases.
        traces: Vec<RecordedTrace>,
        /// What a seed stands for.
        seeds: SeedOfTrace,
        /// Who waits.
        host: HostModel,
        /// Interval of the measurement points.
        interval_ns: u64,
    },
}

/// A trace with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedTrace {
    /// Its name in results.
    pub name: String,
    /// Its operations.
    pub operations: Vec<TraceOperation>,
}

impl RecordedTrace {
    /// The piece of one of the plan's seeds: consecutive ones of equal length, whose rest is left out.
    fn piece(&self, plan: &SweepPlan, seed: u64) -> &[TraceOperation] {
        let length = self.operations.len() / plan.seeds.len().max(1);
        let index = plan.seeds.iter().position(|known| *known == seed);
        index.and_then(|index| self.operations.get(index * length..(index + 1) * length)).unwrap_or_default()
    }
}

/// What a seed stands for where latencies are recorded ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeedOfTrace {
    /// The host's chances alone: every seed meets the whole trace. Intervals say nothing of other traces.
    Host,
    /// A piece of the trace, beside the host's chances.
    Piece,
}

impl World {
    /// One method with one seed. `plan` says which parts are kept over time: the kernel's default and the candidate
    /// with the first seed.
    pub fn measure(
        &self,
        plan: &SweepPlan,
        method: &SweepMethod,
        seed: u64,
    ) -> Result<Vec<PartPhase>, String> {
        let simulated = methods::simulated(method)?;
        let reports = match self {
            Self::Model(scenario) => {
                scenario.check().map_err(|error| error.to_string())?;
                simulate(scenario, &simulated, seed).phases
            }
            Self::Synthetic { host, interval_ns } => {
                let of = |(kind, name): (usize, &&str)| {
                    let operations = synthetic::trace(kind, seed);
                    let report = replay(&operations, host, &simulated, seed, *interval_ns, Pace::BackToBack);
                    PhaseReport { name: (*name).to_owned(), ..report }
                };
                synthetic::KINDS.iter().enumerate().map(of).collect()
            }
            Self::Recorded { traces, seeds, host, interval_ns } => {
                let of = |trace: &RecordedTrace| {
                    let operations = match seeds {
                        SeedOfTrace::Host => trace.operations.as_slice(),
                        SeedOfTrace::Piece => trace.piece(plan, seed),
                    };
                    let report = replay(operations, host, &simulated, seed, *interval_ns, Pace::BackToBack);
                    PhaseReport { name: trace.name.clone(), ..report }
                };
                traces.iter().map(of).collect()
            }
        };
        let keeps = keeps_intervals(plan, method, seed);
        Ok(reports.into_iter().map(|report| part(report, keeps)).collect())
    }
}

/// Whether the intervals of a part are kept.
pub fn keeps_intervals(plan: &SweepPlan, method: &SweepMethod, seed: u64) -> bool {
    let is_drawn = matches!(method.role, MethodRole::Ratio | MethodRole::Candidate);
    is_drawn && plan.seeds.first() == Some(&seed)
}

fn part(report: PhaseReport, keeps_intervals: bool) -> PartPhase {
    PartPhase {
        figures: WaitingFigures::of(&report.waiting),
        intervals: if keeps_intervals { report.intervals } else { Vec::new() },
        name: report.name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        frontier,
        sweep::plans::{self, SOURCE_MODEL},
    };

    #[test]
    fn the_model_gives_each_phase_and_the_same_bits_again() {
        let scenario = plans::scenario(20_000_000);
        let plan = plans::of_scenario(&scenario, SOURCE_MODEL, plans::held_out(1), methods::brief());
        let world = World::Model(scenario);
        let first = world.measure(&plan, &plan.methods[1], 101).unwrap();
        assert_eq!(first, world.measure(&plan, &plan.methods[1], 101).unwrap());
        assert_eq!(first.len(), 3);
        assert!(first.iter().all(|phase| phase.figures.is_some() && !phase.intervals.is_empty()));
        let other = world.measure(&plan, &plan.methods[1], 102).unwrap();
        assert!(other.iter().all(|phase| phase.intervals.is_empty()));
        assert_ne!(other[2].figures, first[2].figures);
    }

    #[test]
    fn busy_polling_misses_nothing_and_takes_the_whole_cpu_on_made_traces() {
        let world = World::Synthetic { host: HostModel::xeon_6230(), interval_ns: 1_000_000_000 };
        let plan = plans::of_traces("made", &synthetic::KINDS, 1_000_000_000, vec![101], methods::brief());
        let poll = plan.methods.iter().find(|method| method.name == methods::POLL).unwrap();
        for phase in world.measure(&plan, poll, 101).unwrap() {
            let figures = phase.figures.unwrap();
            assert_eq!(figures.miss_rate, 0.0);
            assert!(figures.cpu_share > 0.99, "{figures:?}");
        }
    }

    #[test]
    fn a_seed_meets_the_whole_of_a_trace_or_a_piece_of_its_own() {
        // Three pieces of two operations, and one operation that belongs to none.
        let latencies_us = [10, 20, 30, 40, 50, 60, 999_u64];
        let operation = |us: u64| TraceOperation {
            issued_ns: None,
            latency_ns: us * 1_000,
            bytes: 4096,
            direction: crate::predict::Direction::Read,
            in_flight: None,
        };
        let traces = vec![RecordedTrace {
            name: "a".into(),
            operations: latencies_us.into_iter().map(operation).collect(),
        }];
        let methods = vec![methods::parse("poll").unwrap().remove(0)];
        let plan = plans::of_traces("a", &["a"], 1_000_000, vec![101, 102, 103], methods);
        let mean_us = |seeds, seed| {
            let (host, interval_ns) = (HostModel::xeon_6230(), 1_000_000_000);
            let world = World::Recorded { traces: traces.clone(), seeds, host, interval_ns };
            let phases = world.measure(&plan, &plan.methods[0], seed).unwrap();
            assert_eq!((phases.len(), phases[0].name.as_str()), (1, "a"));
            phases[0].figures.map(|figures| (figures.operations, figures.device_us.round()))
        };
        let pieces = [101, 102, 103].map(|seed| mean_us(SeedOfTrace::Piece, seed));
        assert_eq!(pieces, [Some((2, 15.0)), Some((2, 35.0)), Some((2, 55.0))]);
        assert_eq!(mean_us(SeedOfTrace::Piece, 7), None, "no seed of the plan has no piece");
        assert_eq!(mean_us(SeedOfTrace::Host, 101), Some((7, 173.0)));
    }

    #[test]
    fn a_small_sweep_can_be_judged_from_end_to_end() {
        let scenario = plans::scenario(20_000_000);
        let plan = plans::of_scenario(&scenario, SOURCE_MODEL, plans::held_out(2), methods::brief());
        let world = World::Model(scenario);
        let calm = std::sync::atomic::AtomicBool::new(false);
        let hands = super::super::SweepHands {
            file: None,
            resume: false,
            workers: std::num::NonZeroUsize::MIN,
            interrupt: &calm,
            progress: &|_| {},
        };
        let done =
            super::super::run(&plan, &|method, seed| world.measure(&plan, method, seed), &hands).unwrap();
        let result = frontier::judge(&plan, &done.parts);
        assert!(result.complete && result.missing.is_empty(), "{:?}", result.missing);
        assert_eq!(result.phases.len(), 3);
        assert!(result.phases.iter().all(|phase| phase.methods.len() == plan.methods.len()));
        // Seven ties, five to be ahead of and seven not beaten by, seven to be ahead of.
        assert_eq!(result.frontier.len(), 26);
        // The candidate and the ratios.
        assert_eq!(result.series.len(), 8);
        assert!(!serde_json::to_string(&result).unwrap().contains("null,null"));
    }
}
