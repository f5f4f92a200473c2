//! Whether the machine stayed the same from the first rounds to the last. Pure.
//!
//! Arms that take turns run under the same conditions, so that a changing machine does not affect their ratios. It
//! does affect other results: absolute figures, means over cells, best cells. The rounds of every cell are spread
//! over the whole session (`plan`), so the first and the second half of each compare the session's beginning with its
//! end, for all cells alike. The check uses the baseline, which every cell has, in the state of the machine in which
//! the cell is compared; and the CPU of other processes. Consecutive rounds are not independent, so there is no test:
//! a change is reported if it is larger than a reader of the figures would accept.

use weir_record::{
    check::{Check, CheckName},
    finding::{Finding, MessageKind},
    metric::Metric,
    spec::{LoadMode, StudySpec},
    trial::TrialRecord,
};
use weir_stats::order::median;

use crate::{cell_trials::CellTrials, gate::ValidityGate, units};

/// Largest change of the baseline's figures from one half to the other, as a share. In recorded undisturbed sessions
/// of a virtual machine (`tests/planted.rs`) they change by up to 14 %, within one of its states.
const CHANGE_MAX: f64 = 0.2;

/// Largest change of other processes' CPU, in CPUs.
const FOREIGN_CPUS_CHANGE_MAX: f64 = 0.1;

/// With fewer rounds of a cell per half the median is unreliable.
const ROUNDS_MIN: usize = 6;

/// The check; `None` if no cell has enough rounds and the CPU of other processes has not changed either. If that has
/// changed, it may be the reason: rounds excluded for it are missing.
pub(crate) fn check(spec: &StudySpec, gate: &ValidityGate, trials: &[&TrialRecord]) -> Option<Check> {
    let cells: Vec<CellTrials<'_>> = spec
        .cells
        .iter()
        .filter(|cell| matches!(cell.load, LoadMode::Closed))
        .map(|cell| CellTrials::of(cell, gate, trials))
        // Figures of both states combined would depend on how often each occurred.
        .filter(|cell| cell.state.is_some() || !gate.has_two_states())
        .collect();
    let baseline = &spec.arms[0].name;
    let changes = |metric: Metric| -> Vec<f64> {
        cells.iter().filter_map(|cell| change(gate, cell, baseline, metric)).collect()
    };
    let (server_cpu, throughput) = (changes(Metric::ServerCpuPerMessage), changes(Metric::Throughput));
    let logs = [median(&server_cpu), median(&throughput)];
    let foreign_cpus = foreign_cpus(spec, trials)?;
    let is_steady = (foreign_cpus.1 - foreign_cpus.0).abs() <= FOREIGN_CPUS_CHANGE_MAX;
    if server_cpu.is_empty() && is_steady {
        return None;
    }
    let limit = (1.0 + CHANGE_MAX).ln();
    let passed = is_steady && logs.iter().flatten().all(|log| log.abs() <= limit);
    let [of_cpu, of_throughput] = logs.map(|log| log.map(f64::exp));
    let detail = Finding::MachineDrift {
        foreign_cpus,
        foreign_cpus_change_max: FOREIGN_CPUS_CHANGE_MAX,
        server_cpu: of_cpu,
        throughput: of_throughput,
        cells: u32::try_from(server_cpu.len()).unwrap_or(u32::MAX),
        change_max: CHANGE_MAX,
        kind: MessageKind::of_study(spec),
    };
    Some(Check { name: CheckName::SteadyMachine, passed, detail })
}

/// Logarithm of the figure in the second half of the rounds over that in the first.
fn change(gate: &ValidityGate, cell: &CellTrials<'_>, arm: &str, metric: Metric) -> Option<f64> {
    let figures = units::alone(gate, cell, arm, metric.row());
    let is_late = |round: &u32| 2 * round >= cell.spec.blocks;
    let half = |late: bool| -> Vec<f64> {
        figures.iter().filter(|(round, _)| is_late(round) == late).map(|(_, (log, _))| *log).collect()
    };
    let (first, second) = (half(false), half(true));
    if first.len().min(second.len()) < ROUNDS_MIN {
        return None;
    }
    Some(median(&second)? - median(&first)?)
}

/// CPUs of other processes in the trials of both halves; `None` with too few trials.
fn foreign_cpus(spec: &StudySpec, trials: &[&TrialRecord]) -> Option<(f64, f64)> {
    let blocks = |id: &str| spec.cells.iter().find(|cell| cell.id == id).map_or(0, |cell| cell.blocks);
    let half = |late: bool| {
        let own = trials.iter().filter(|trial| (2 * trial.block >= blocks(&trial.cell_id)) == late);
        let seen = own.filter_map(|trial| trial.load.as_ref()?.observed.as_ref());
        let seen: Vec<f64> = seen.map(|seen| seen.noise.foreign_cpus).collect();
        median(&seen).filter(|_| seen.len() >= ROUNDS_MIN)
    };
    half(false).zip(half(true))
}

#[cfg(test)]
mod tests {
    use weir_record::{load::LoadReport, machine::NoiseWindow, trial::Exclusion, window::ObservedWindow};

    use super::*;
    use crate::sample;

    const WINDOW_NS: u64 = 1_000_000_000;

    /// A study of whole trials whose second half costs more and is slower by these factors, with this much of a CPU
    /// used by others.
    fn checked(blocks: u32, second_half: (f64, f64, f64)) -> Option<Check> {
        checked_of(blocks, second_half, false)
    }

    /// The same; optionally the machine changes its state in each round of the second half.
    fn checked_of(
        blocks: u32,
        (dearer, slower, foreign): (f64, f64, f64),
        is_spoiled: bool,
    ) -> Option<Check> {
        let spec = sample::study(&["epoll", "uring"], blocks, 1);
        let trial = |block: u32| {
            let is_late = 2 * block >= blocks;
            let of = |factor: f64| if is_late { factor } else { 1.0 };
            let noise = 1.0 + 0.01 * (f64::from(block * 5 % 7) / 3.0 - 1.0);
            let messages = (100_000.0 * noise / of(slower)) as u64;
            let foreign_cpus = 0.05 + if is_late { foreign } else { 0.0 };
            TrialRecord {
                cell_id: spec.cells[0].id.clone(),
                arm: "epoll".to_owned(),
                block,
                exclusions: if is_late && is_spoiled { vec![Exclusion::StateChanged] } else { Vec::new() },
                load: Some(LoadReport {
                    messages,
                    window_ns: WINDOW_NS,
                    throughput_per_second: messages as f64,
                    observed: Some(ObservedWindow {
                        cpu_ns: (messages as f64 * 9_000.0 * of(dearer)) as u64,
                        noise: NoiseWindow { foreign_cpus, ..NoiseWindow::default() },
                        ..ObservedWindow::default()
                    }),
                    ..LoadReport::default()
                }),
                ..TrialRecord::default()
            }
        };
        let trials: Vec<TrialRecord> = (0..blocks).map(trial).collect();
        check(&spec, &ValidityGate::new(&trials), &trials.iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_machine_that_stays_what_it_was_passes_and_one_that_changes_in_any_way_does_not() {
        let passed = |second_half| checked(24, second_half).map(|check| check.passed);
        assert_eq!(passed((1.0, 1.0, 0.0)), Some(true));
        assert_eq!(passed((1.15, 1.15, 0.08)), Some(true), "within what is put up with");
        assert_eq!(passed((1.25, 1.0, 0.0)), Some(false));
        assert_eq!(passed((0.8, 1.0, 0.0)), Some(false), "cheaper is a change too");
        assert_eq!(passed((1.0, 1.5, 0.0)), Some(false));
        assert_eq!(passed((1.0, 1.0, 0.9)), Some(false));
        assert_eq!(checked(11, (2.0, 2.0, 1.0)), None, "five rounds in a half say nothing");
    }

    #[test]
    fn what_changed_is_told_in_numbers() {
        let check = checked(24, (1.3, 1.5, 0.9)).expect("there are rounds");
        let Finding::MachineDrift {
            foreign_cpus,
            server_cpu: Some(server_cpu),
            throughput: Some(throughput),
            cells,
            ..
        } = check.detail
        else {
            panic!("{check:?}")
        };
        assert!((server_cpu - 1.3).abs() < 0.01 && (throughput - 1.0 / 1.5).abs() < 0.01, "{check:?}");
        assert!((foreign_cpus.0 - 0.05).abs() < 1e-9 && (foreign_cpus.1 - 0.95).abs() < 1e-9, "{check:?}");
        assert_eq!(cells, 1);
    }

    #[test]
    fn a_machine_that_spoils_the_rounds_of_a_half_is_told_by_what_others_used() {
        let [disturbed, alone] = [0.9, 0.0].map(|foreign| checked_of(24, (1.0, 1.0, foreign), true));
        let check = disturbed.expect("others used more");
        let Finding::MachineDrift { server_cpu, throughput, cells, .. } = check.detail else {
            panic!("{check:?}")
        };
        assert_eq!((check.passed, server_cpu, throughput, cells), (false, None, None, 0));
        assert_eq!(alone, None, "there is nothing to tell");
    }
}
