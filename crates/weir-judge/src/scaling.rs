//! Scaling of a server with its workers, and possible explanations of implausibly good scaling. Pure.
//!
//! Cells that differ only in workers form a line; each is compared with the one with fewest. An efficiency above
//! [`EFFICIENCY_MAX`] with its whole interval is an alarm: workers share one machine, so n of them cannot do more
//! than n times the work of one unless something else was different. Possible explanations are named, each checked
//! against the records; a match does not prove it.

use std::collections::BTreeMap;

use weir_record::{
    figure::Figure,
    overview::{EFFICIENCY_MAX, Quantity, Scaling, ScalingCandidate, ScalingCause, ScalingMean},
    spec::{CellSpec, StudySpec},
    trial::TrialRecord,
};
use weir_stats::{decide::UNITS_MIN, order::median};

use crate::{
    across_cells::{Measured, Terms, difference, figure_of, weighted},
    cell_trials::CellTrials,
    gate::{TrialState, ValidityGate},
    oversubscription,
};

/// A generator's busiest thread with this share of busy time may have been the limit some of the time.
const GENERATOR_BUSY_NEAR: f64 = 0.9;

/// A worker that uses less than this share of a CPU waited for load.
const WORKER_BUSY_MIN: f64 = 0.9;

/// A deviation this many times as large counts as noisier.
const NOISIER: f64 = 2.0;

/// The measurements and their context.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub(crate) spec: &'a StudySpec,
    pub(crate) gate: &'a ValidityGate,
    pub(crate) cells: &'a [CellTrials<'a>],
    /// CPUs this process may use.
    pub(crate) cpus_allowed: usize,
    /// An unfinished schedule raises no alarms.
    pub(crate) is_finished: bool,
}

impl<'a> Scope<'a> {
    pub(crate) fn cell(&self, id: &str) -> Option<&'a CellTrials<'a>> {
        self.cells.iter().find(|cell| cell.spec.id == id)
    }
}

/// Every line of these cells, and the means over lines with the most CPUs.
pub(crate) fn all(scope: &Scope<'_>, group: &[&CellSpec]) -> (Vec<ScalingMean>, Vec<Scaling>) {
    let mut lines: BTreeMap<(u32, u32, u32, usize), Vec<&CellSpec>> = BTreeMap::new();
    for cell in group {
        let rest = (cell.connections, cell.depth, cell.message_bytes, cell.server_cpus.len());
        lines.entry(rest).or_default().push(cell);
    }
    let mut found: Vec<(Scaling, Terms)> = Vec::new();
    for mut line in lines.into_values() {
        line.sort_by_key(|cell| cell.workers);
        let Some((base, others)) = line.split_first() else { continue };
        for many in others {
            for arm in &scope.spec.arms {
                for quantity in Quantity::ALL {
                    found.extend(
                        Pair::of(scope, (&arm.name, quantity), base, many).map(|it| it.scaling(scope)),
                    );
                }
            }
        }
    }
    let cpus = |id: &str| group.iter().find(|cell| cell.id == id).map(|cell| cell.server_cpus.len());
    let cpus_most = group.iter().map(|cell| cell.server_cpus.len()).max();
    let meant: Vec<&(Scaling, Terms)> =
        found.iter().filter(|(it, _)| cpus(&it.cell_id) == cpus_most).collect();
    (means(scope, &meant), found.into_iter().map(|(scaling, _)| scaling).collect())
}

/// Geometric means over the lines with figures; bounds are excluded.
fn means(scope: &Scope<'_>, found: &[&(Scaling, Terms)]) -> Vec<ScalingMean> {
    let steps: std::collections::BTreeSet<(u32, u32)> =
        found.iter().map(|(it, _)| (it.workers, it.workers_base)).collect();
    let of = |(workers, workers_base): (u32, u32), arm: &str| {
        let logs = |quantity: Quantity| -> Vec<&Terms> {
            let is_own = |it: &Scaling| {
                it.arm == arm
                    && (it.workers, it.workers_base) == (workers, workers_base)
                    && it.quantity == quantity
            };
            let is_free = |it: &Scaling| !it.is_bound && !it.is_base_bound;
            let own = found.iter().filter(|(it, _)| is_own(it) && is_free(it) && it.efficiency.is_some());
            own.map(|(_, logs)| logs).collect()
        };
        let (throughput, per_cpu_second) = (logs(Quantity::Throughput), logs(Quantity::PerCpuSecond));
        let count = |lines: &[&Terms]| u32::try_from(lines.len()).unwrap_or(u32::MAX);
        (!per_cpu_second.is_empty()).then(|| ScalingMean {
            arm: arm.to_owned(),
            workers,
            workers_base,
            lines: count(&per_cpu_second),
            lines_free: count(&throughput),
            throughput: mean_over_lines(&throughput),
            per_cpu_second: mean_over_lines(&per_cpu_second),
        })
    };
    let arms = || scope.spec.arms.iter().map(|arm| arm.name.as_str());
    steps
        .into_iter()
        .flat_map(|step| arms().filter_map(move |arm| of(step, arm)).collect::<Vec<_>>())
        .collect()
}

fn mean_over_lines(lines: &[&Terms]) -> Option<Figure> {
    let weight = 1.0 / lines.len() as f64;
    figure_of(&lines.iter().flat_map(|line| weighted(line, weight)).collect::<Vec<_>>())
}

/// One arm in two cells of a line.
struct Pair<'a> {
    arm: &'a str,
    quantity: Quantity,
    base: (&'a CellSpec, Option<Measured<'a>>),
    many: (&'a CellSpec, Option<Measured<'a>>),
    /// Logarithms of the efficiency.
    logs: Terms,
}

impl<'a> Pair<'a> {
    /// On a machine with two states, both cells in the one in which they share more rounds. `None` if the arm was
    /// never tried in one of them.
    fn of(
        scope: &Scope<'a>,
        (arm, quantity): (&'a str, Quantity),
        base: &'a CellSpec,
        many: &'a CellSpec,
    ) -> Option<Self> {
        let (few, more) = (scope.cell(&base.id)?, scope.cell(&many.id)?);
        if few.of_arm(arm).next().is_none() || more.of_arm(arm).next().is_none() {
            return None;
        }
        let states: &[TrialState] = if scope.gate.has_two_states() {
            &[TrialState::Near, TrialState::Far]
        } else {
            &[TrialState::Near]
        };
        let in_state = |state: &TrialState| {
            let measured =
                |cell: &CellTrials<'a>| Measured::of(scope.gate, &cell.in_state(*state), arm, quantity);
            let (few, more) = (measured(few), measured(more));
            let ideal = match quantity {
                Quantity::Throughput => (f64::from(many.workers) / f64::from(base.workers)).ln(),
                Quantity::PerCpuSecond => 0.0,
            };
            let mut logs = match (&few, &more) {
                (Some(few), Some(more)) => difference(&more.logs, &few.logs),
                _ => Terms::new(),
            };
            logs.iter_mut().take(1).for_each(|(_, more)| more.values_mut().for_each(|log| *log -= ideal));
            Pair { arm, quantity, base: (base, few), many: (many, more), logs }
        };
        let more_rounds = |one: Self, other: Self| if other.rounds() > one.rounds() { other } else { one };
        states.iter().map(in_state).reduce(more_rounds)
    }

    /// Common rounds, or those of the cell with fewer if they are not paired.
    fn rounds(&self) -> usize {
        self.logs.iter().map(|(_, logs)| logs.len()).min().unwrap_or(0)
    }

    fn scaling(self, scope: &Scope<'_>) -> (Scaling, Terms) {
        let efficiency = figure_of(&weighted(&self.logs, 1.0).collect::<Vec<_>>());
        let low = efficiency.and_then(|it| it.interval).map(|(low, _)| low);
        let is_alarm =
            scope.is_finished && self.rounds() >= UNITS_MIN && low.is_some_and(|low| low > EFFICIENCY_MAX);
        let is_bound = |side: &(&CellSpec, Option<Measured<'_>>)| {
            self.quantity == Quantity::Throughput && side.1.as_ref().is_some_and(|it| it.is_bound)
        };
        let scaling = Scaling {
            arm: self.arm.to_owned(),
            quantity: self.quantity,
            cell_id: self.many.0.id.clone(),
            cell_id_base: self.base.0.id.clone(),
            workers: self.many.0.workers,
            workers_base: self.base.0.workers,
            efficiency,
            rounds: u32::try_from(self.rounds()).unwrap_or(u32::MAX),
            is_bound: is_bound(&self.many),
            is_base_bound: is_bound(&self.base),
            is_alarm,
            candidates: if is_alarm { self.candidates(scope) } else { Vec::new() },
        };
        (scaling, self.logs)
    }

    fn candidates(&self, scope: &Scope<'_>) -> Vec<ScalingCandidate> {
        let (Some(base), Some(many)) = (&self.base.1, &self.many.1) else { return Vec::new() };
        let both = |of: fn(&Measured<'_>) -> Option<f64>| of(base).zip(of(many));
        let candidate = |cause, holds: Option<bool>, figures| ScalingCandidate { cause, holds, figures };
        let generator = both(generator_busy);
        let at_limit = |(few, _): (f64, f64)| base.is_bound || few >= GENERATOR_BUSY_NEAR;
        let crowding = |cell: &CellSpec| oversubscription::for_each_cpu(scope.spec, cell, scope.cpus_allowed);
        let crowding = crowding(self.base.0).zip(crowding(self.many.0));
        let workers = (f64::from(self.base.0.workers), f64::from(self.many.0.workers));
        let busy = both(server_cpus).map(|(few, more)| (few / workers.0, more / workers.1));
        let scatter = both(|it| deviation(&it.logs));
        vec![
            candidate(ScalingCause::GeneratorAtLimit, generator.map(at_limit), generator),
            candidate(
                ScalingCause::Oversubscribed,
                crowding.map(|(few, more)| few > 1.0 || more > 1.0),
                crowding,
            ),
            candidate(ScalingCause::ServerIdle, busy.map(|(few, _)| few < WORKER_BUSY_MIN), busy),
            candidate(ScalingCause::BaseNoisier, scatter.map(|(few, more)| few > NOISIER * more), scatter),
        ]
    }
}

/// Share of the time for which the generator's busiest thread was busy, in the median trial.
fn generator_busy(measured: &Measured<'_>) -> Option<f64> {
    let busy = measured.trials.iter().filter_map(|trial| Some(trial.load.as_ref()?.generator_busy_max));
    median(&busy.collect::<Vec<_>>())
}

/// CPUs that the server used under load, in the median trial.
fn server_cpus(measured: &Measured<'_>) -> Option<f64> {
    let cpus = |trial: &&TrialRecord| {
        let load = trial.load.as_ref()?;
        let (cpu_ns, length_ns) = match trial.slices.as_slice() {
            [] => (load.observed.as_ref()?.cpu_ns, load.window_ns),
            slices => {
                let sums = slices.iter().map(|slice| (slice.server_cpu_ns, slice.length_ns));
                sums.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1))
            }
        };
        (length_ns > 0).then(|| cpu_ns as f64 / length_ns as f64)
    };
    median(&measured.trials.iter().filter_map(cpus).collect::<Vec<_>>())
}

/// Deviation of the logarithms: approximately the coefficient of variation.
fn deviation(logs: &crate::across_cells::ByRound) -> Option<f64> {
    let count = logs.len() as f64;
    let mean = logs.values().sum::<f64>() / count;
    let squares: f64 = logs.values().map(|log| (log - mean).powi(2)).sum();
    Some((squares / (count - 1.0)).sqrt()).filter(|deviation| deviation.is_finite())
}

#[cfg(test)]
mod tests {
    use weir_record::{load::LoadReport, window::ObservedWindow};

    use super::*;
    use crate::{cell_trials, sample};

    const ROUNDS: u32 = 12;
    const WINDOW_NS: u64 = 1_000_000_000;

    /// The behaviour of a cell of the test study.
    #[derive(Clone, Copy)]
    struct Behaviour {
        throughput: f64,
        cpu_us: f64,
        noise: f64,
        generator_busy: f64,
        is_bound: bool,
    }

    impl Default for Behaviour {
        fn default() -> Self {
            Self { throughput: 100_000.0, cpu_us: 9.8, noise: 0.01, generator_busy: 0.4, is_bound: false }
        }
    }

    fn study() -> StudySpec {
        let mut spec = sample::study(&["epoll", "uring"], ROUNDS, 1);
        let shape = spec.cells[0].clone();
        let workers = |workers: u32| CellSpec { id: format!("w{workers}"), workers, ..shape.clone() };
        spec.cells = [4, 1, 2].map(workers).to_vec();
        (spec.server_cpus, spec.load_cpus) = (vec![0, 1, 2, 3], vec![4, 5]);
        spec
    }

    fn trials(behaviour: impl Fn(u32) -> Behaviour) -> Vec<TrialRecord> {
        let one = |workers: u32, arm: &str, block: u32| {
            let Behaviour { throughput, cpu_us, noise, generator_busy, is_bound } = behaviour(workers);
            let scatter = 1.0 + noise * (f64::from((block * 5 + workers) % 7) / 3.0 - 1.0);
            let throughput = throughput * scatter;
            let cpu_ns = (throughput * cpu_us * 1e3) as u64;
            TrialRecord {
                cell_id: format!("w{workers}"),
                arm: arm.to_owned(),
                block,
                load: Some(LoadReport {
                    messages: throughput as u64,
                    window_ns: WINDOW_NS,
                    throughput_per_second: throughput,
                    generator_busy_max: generator_busy,
                    generator_bound: is_bound,
                    observed: Some(ObservedWindow { cpu_ns, ..ObservedWindow::default() }),
                    ..LoadReport::default()
                }),
                ..TrialRecord::default()
            }
        };
        let all = (0..ROUNDS).flat_map(|block| [1, 2, 4].map(|workers| (workers, block)));
        all.flat_map(|(workers, block)| ["epoll", "uring"].map(|arm| one(workers, arm, block))).collect()
    }

    fn scaled(behaviour: impl Fn(u32) -> Behaviour) -> (Vec<ScalingMean>, Vec<Scaling>) {
        let (spec, trials) = (study(), trials(behaviour));
        let gate = ValidityGate::new(&trials);
        let cells = cell_trials::by_role(&spec, &gate, &trials);
        let scope = Scope { spec: &spec, gate: &gate, cells: &cells, cpus_allowed: 6, is_finished: true };
        all(&scope, &spec.cells.iter().collect::<Vec<_>>())
    }

    fn of(found: &[Scaling], workers: u32, quantity: Quantity) -> &Scaling {
        let is_it = |it: &&Scaling| it.workers == workers && it.quantity == quantity && it.arm == "uring";
        found.iter().find(is_it).expect("it is there")
    }

    fn holds(scaling: &Scaling) -> Vec<ScalingCause> {
        scaling.candidates.iter().filter(|it| it.holds == Some(true)).map(|it| it.cause).collect()
    }

    /// Four workers do 3.6 times the work of one, two 1.9 times.
    fn sound(workers: u32) -> Behaviour {
        let times = [1.0, 1.0, 1.9, 0.0, 3.6][workers as usize];
        Behaviour { throughput: 100_000.0 * times, ..Behaviour::default() }
    }

    #[test]
    fn a_server_that_scales_has_its_efficiency_and_no_alarm() {
        let (means, lines) = scaled(sound);
        assert_eq!((means.len(), lines.len()), (4, 8));
        assert!(lines.iter().all(|it| !it.is_alarm && it.candidates.is_empty() && it.rounds == ROUNDS));
        let four = of(&lines, 4, Quantity::Throughput);
        assert_eq!((four.cell_id.as_str(), four.cell_id_base.as_str()), ("w4", "w1"));
        let efficiency = four.efficiency.expect("it has one");
        let (low, high) = efficiency.interval.expect("there are rounds");
        assert!((efficiency.value - 0.9).abs() < 0.01 && low < 0.9 && 0.9 < high && high < 0.93, "{four:?}");
        let cost = of(&lines, 4, Quantity::PerCpuSecond).efficiency.expect("it has one");
        assert!((cost.value - 1.0).abs() < 0.001, "a message costs the same: {cost:?}");
        let mean = means.iter().find(|it| it.arm == "epoll" && it.workers == 2).expect("it has one");
        assert!((mean.throughput.expect("it has").value - 0.95).abs() < 0.01 && mean.lines == 1, "{mean:?}");
    }

    #[test]
    fn lines_with_fewer_cpus_are_told_and_are_in_no_mean() {
        let mut spec = study();
        spec.cells.iter_mut().for_each(|cell| cell.server_cpus = vec![0, 1, 2, 3]);
        let with_one = |cell: &CellSpec| CellSpec {
            id: format!("{}-one", cell.id),
            server_cpus: vec![0],
            ..cell.clone()
        };
        spec.cells.extend(spec.cells.iter().map(with_one).collect::<Vec<_>>());
        let mut all_trials = trials(sound);
        // On one CPU more workers achieve no more.
        all_trials.extend(trials(|_| Behaviour::default()).into_iter().map(|trial| {
            let cell_id = format!("{}-one", trial.cell_id);
            TrialRecord { cell_id, ..trial }
        }));
        let gate = ValidityGate::new(&all_trials);
        let cells = cell_trials::by_role(&spec, &gate, &all_trials);
        let scope = Scope { spec: &spec, gate: &gate, cells: &cells, cpus_allowed: 6, is_finished: true };
        let (means, lines) = all(&scope, &spec.cells.iter().collect::<Vec<_>>());
        assert_eq!((means.len(), lines.len()), (4, 16));
        let four = means.iter().find(|it| it.arm == "epoll" && it.workers == 4).expect("it has one");
        assert_eq!((four.lines, four.lines_free), (1, 1));
        assert!((four.throughput.expect("it has").value - 0.9).abs() < 0.01, "{four:?}");
    }

    #[test]
    fn a_generator_that_limited_one_worker_is_named_and_the_others_are_ruled_out() {
        let (_, lines) = scaled(|workers| match workers {
            1 => Behaviour {
                throughput: 40_000.0,
                cpu_us: 24.0,
                generator_busy: 0.97,
                is_bound: true,
                ..Behaviour::default()
            },
            _ => sound(workers),
        });
        let four = of(&lines, 4, Quantity::Throughput);
        assert!(four.is_alarm && four.is_base_bound && !four.is_bound, "{four:?}");
        assert!((four.efficiency.expect("it has").value - 2.25).abs() < 0.02);
        assert_eq!(holds(four), [ScalingCause::GeneratorAtLimit]);
        assert!(four.candidates.iter().all(|it| it.holds.is_some()), "{four:?}");
        let cost = of(&lines, 4, Quantity::PerCpuSecond);
        assert!(cost.is_alarm && !cost.is_base_bound, "a bound is one of rates: {cost:?}");
    }

    #[test]
    fn an_idle_worker_and_a_noisy_cell_are_named() {
        let (_, lines) = scaled(|workers| match workers {
            1 => Behaviour { throughput: 50_000.0, ..Behaviour::default() },
            _ => sound(workers),
        });
        assert_eq!(holds(of(&lines, 4, Quantity::Throughput)), [ScalingCause::ServerIdle]);
        let (_, lines) = scaled(|workers| match workers {
            1 => Behaviour { throughput: 50_000.0, cpu_us: 19.6, noise: 0.05, ..Behaviour::default() },
            _ => sound(workers),
        });
        assert_eq!(holds(of(&lines, 2, Quantity::Throughput)), [ScalingCause::BaseNoisier]);
    }

    #[test]
    fn more_threads_than_cpus_are_named() {
        let (mut spec, trials) = (
            study(),
            trials(|workers| Behaviour {
                throughput: 2.0 * sound(workers).throughput * f64::from(workers),
                cpu_us: 5.0,
                ..Behaviour::default()
            }),
        );
        spec.server_cpus = vec![0];
        spec.load_cpus = vec![1];
        let gate = ValidityGate::new(&trials);
        let cells = cell_trials::by_role(&spec, &gate, &trials);
        let scope = Scope { spec: &spec, gate: &gate, cells: &cells, cpus_allowed: 6, is_finished: true };
        let (_, lines) = all(&scope, &spec.cells.iter().collect::<Vec<_>>());
        let four = of(&lines, 4, Quantity::Throughput);
        assert_eq!(holds(four), [ScalingCause::Oversubscribed]);
        assert_eq!(four.candidates[1].figures, Some((1.0, 2.5)));
        let unfinished = Scope { is_finished: false, ..scope };
        let (_, lines) = all(&unfinished, &spec.cells.iter().collect::<Vec<_>>());
        assert!(lines.iter().all(|it| !it.is_alarm), "an unfinished schedule alarms nobody");
    }

    #[test]
    fn an_interval_that_reaches_the_limit_is_no_alarm() {
        let (_, lines) = scaled(|workers| Behaviour {
            throughput: 100_000.0 * f64::from(workers) * if workers == 1 { 1.0 } else { 1.06 },
            noise: 0.05,
            ..Behaviour::default()
        });
        let four = of(&lines, 4, Quantity::Throughput);
        assert!(four.efficiency.expect("it has").value > EFFICIENCY_MAX && !four.is_alarm, "{four:?}");
    }
}
