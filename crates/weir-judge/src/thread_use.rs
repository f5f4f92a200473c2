//! Activity of threads by name, per second and per message in the same windows. It is used in no comparison. Pure.
//!
//! A window is a whole trial, whose two readings contain every thread of the server and of programs beside it; or a
//! slice of evidence observed only by clocks and free counters. Figures per second depend on the message rate as well
//! as on the threads; those per message are comparable.

use std::collections::{BTreeMap, BTreeSet};

use weir_record::{
    figure::Spread,
    observation::{Rung, ThreadFigures},
    spec::StudySpec,
    threads::ThreadUse,
    trial::{EvidenceSlice, TrialRecord},
};
use weir_stats::order::median;

use crate::{cell_trials::CellTrials, gate::ValidityGate, sums::further_group};

/// Threads with fewer switches a second than this, and less CPU than a thousandth of one, count as idle.
const SWITCHES_MIN: f64 = 1.0;
/// See [`SWITCHES_MIN`].
const CPUS_MIN: f64 = 0.001;

/// Threads that the kernel names after their process: combined under one name.
const NUMBERED: [&str; 2] = ["iou-wrk", "iou-sqp"];

/// One entry per name in each arm and cell, by process, those with most switches first.
pub(crate) fn all(spec: &StudySpec, gate: &ValidityGate, cells: &[CellTrials<'_>]) -> Vec<ThreadUse> {
    let of_cell = |cell| spec.arms.iter().flat_map(move |arm| of_arm(gate, cell, &arm.name));
    cells.iter().flat_map(of_cell).collect()
}

fn of_arm(gate: &ValidityGate, cell: &CellTrials<'_>, arm: &str) -> Vec<ThreadUse> {
    let is_used = |trial: &&TrialRecord| gate.obstacle(trial, cell.state).is_none();
    let windows: Vec<Window> = cell.of_arm(arm).filter(is_used).flat_map(windows_of).collect();
    let names: BTreeSet<&Name> = windows.iter().flat_map(|window| window.did.keys()).collect();
    let mut found: Vec<ThreadUse> = names
        .into_iter()
        .map(|name| ThreadUse {
            cell_id: cell.spec.id.clone(),
            arm: arm.to_owned(),
            ..of_name(name, &windows)
        })
        .filter(did_something)
        .collect();
    let switches = |it: &ThreadUse| it.per_second.0.median + it.per_second.1.median;
    found.sort_by(|one, other| one.node.cmp(&other.node).then(switches(other).total_cmp(&switches(one))));
    found
}

fn did_something(it: &ThreadUse) -> bool {
    it.per_second.0.max >= SWITCHES_MIN || it.per_second.1.max >= SWITCHES_MIN || it.cpus.max >= CPUS_MIN
}

/// A process and a thread's name.
type Name = (String, String);

/// Activity of threads in one window, by name.
struct Window {
    length_s: f64,
    messages: f64,
    did: BTreeMap<Name, Did>,
}

#[derive(Clone, Copy, Default)]
struct Did {
    cpu_ns: f64,
    run_delay_ns: f64,
    voluntary: f64,
    involuntary: f64,
}

impl Window {
    fn new(length_ns: u64, messages: u64) -> Self {
        Self { length_s: length_ns as f64 / 1e9, messages: messages as f64, did: BTreeMap::new() }
    }

    fn did(&mut self, node: &str, name: &str) -> &mut Did {
        let is_numbered = |own: &&&str| name.strip_prefix(**own).is_some_and(|rest| rest.starts_with('-'));
        let name = NUMBERED.iter().find(is_numbered).map_or(name, |own| own);
        self.did.entry((node.to_owned(), name.to_owned())).or_default()
    }

    fn add_thread(&mut self, node: &str, thread: &ThreadFigures) {
        let did = self.did(node, &thread.name);
        did.cpu_ns += thread.cpu_ns as f64;
        did.run_delay_ns += thread.run_delay_ns as f64;
        did.voluntary += thread.context_switches_voluntary as f64;
        did.involuntary += thread.context_switches_involuntary as f64;
    }
}

/// The windows of a trial in which something was completed.
fn windows_of(trial: &TrialRecord) -> Vec<Window> {
    let load = trial.load.as_ref();
    let whole = load.and_then(|load| {
        let threads = load.observed.as_ref()?.thread_window.as_ref()?;
        let mut window = Window::new(threads.length_ns, load.messages);
        for process in &threads.processes {
            process.threads.iter().for_each(|thread| window.add_thread(&process.node, thread));
        }
        Some(window)
    });
    let is_free = |slice: &&EvidenceSlice| {
        slice.rung <= Rung::Process && slice.slice.errors == 0 && further_group(slice).is_none()
    };
    let free = trial.evidence.iter().filter(is_free);
    let slices = free.map(|evidence| {
        let mut window = Window::new(evidence.slice.length_ns, evidence.slice.messages);
        for row in &evidence.readings {
            let Some(name) = row.source.strip_prefix("thread ") else { continue };
            let did = window.did("", name);
            match row.key.as_str() {
                "cpu-ns" => did.cpu_ns += row.value,
                "run-delay-ns" => did.run_delay_ns += row.value,
                "context-switches-voluntary" => did.voluntary += row.value,
                "context-switches-involuntary" => did.involuntary += row.value,
                _ => {}
            }
        }
        window
    });
    let is_full = |window: &Window| window.length_s > 0.0 && window.messages > 0.0;
    whole.into_iter().chain(slices).filter(is_full).collect()
}

fn of_name(name: &Name, windows: &[Window]) -> ThreadUse {
    let of = |figure: &dyn Fn(&Window, Did) -> f64| {
        let each: Vec<f64> = windows
            .iter()
            .map(|window| figure(window, window.did.get(name).copied().unwrap_or_default()))
            .collect();
        Spread {
            median: median(&each).unwrap_or(0.0),
            min: each.iter().copied().fold(f64::INFINITY, f64::min),
            max: each.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    };
    ThreadUse {
        node: name.0.clone(),
        name: name.1.clone(),
        windows: u32::try_from(windows.len()).unwrap_or(u32::MAX),
        per_second: (
            of(&|window, did| did.voluntary / window.length_s),
            of(&|window, did| did.involuntary / window.length_s),
        ),
        per_message: (
            of(&|window, did| did.voluntary / window.messages),
            of(&|window, did| did.involuntary / window.messages),
        ),
        cpus: of(&|window, did| did.cpu_ns / 1e9 / window.length_s),
        run_delay_ns: of(&|window, did| did.run_delay_ns / window.messages),
        ..ThreadUse::default()
    }
}

#[cfg(test)]
mod tests {
    use weir_record::{
        load::LoadReport,
        threads::{ProcessThreads, ThreadWindow},
        trial::{Exclusion, Reading, SliceRecord},
        window::ObservedWindow,
    };

    use super::*;
    use crate::sample;

    fn thread(name: &str, voluntary: u64) -> ThreadFigures {
        ThreadFigures {
            name: name.to_owned(),
            cpu_ns: voluntary * 10_000,
            run_delay_ns: voluntary * 100,
            context_switches_voluntary: voluntary,
            context_switches_involuntary: voluntary / 100,
            ..ThreadFigures::default()
        }
    }

    /// Two seconds in which the gateway's worker slept `voluntary` times, and the exchange's half as often.
    fn trial(block: u32, voluntary: u64) -> TrialRecord {
        let process = |node: &str, threads: Vec<ThreadFigures>| ProcessThreads {
            node: node.to_owned(),
            threads,
            ..ProcessThreads::default()
        };
        let processes = vec![
            process("", vec![thread("weir", 0), thread("weir-worker-0", voluntary)]),
            process("exchange", vec![thread("weir-worker-0", voluntary / 2), thread("iou-wrk-77", 4)]),
        ];
        let thread_window = ThreadWindow { length_ns: 2_000_000_000, processes, ..ThreadWindow::default() };
        TrialRecord {
            cell_id: "c100-d1-m64-closed".to_owned(),
            arm: "epoll".to_owned(),
            block,
            load: Some(LoadReport {
                messages: 10_000,
                observed: Some(ObservedWindow {
                    thread_window: Some(thread_window),
                    ..ObservedWindow::default()
                }),
                ..LoadReport::default()
            }),
            ..TrialRecord::default()
        }
    }

    fn found(trials: &[TrialRecord]) -> Vec<ThreadUse> {
        let spec = sample::study(&["epoll", "uring"], 6, 1);
        let gate = ValidityGate::new(trials);
        let trials: Vec<&TrialRecord> = trials.iter().collect();
        all(&spec, &gate, &[CellTrials::of(&spec.cells[0], &gate, &trials)])
    }

    #[test]
    fn threads_are_told_a_second_and_a_message_by_process_and_idle_ones_are_not() {
        let mut spoilt = trial(3, 90_000);
        spoilt.exclusions.push(Exclusion::Steal);
        let found = found(&[trial(0, 20_000), trial(1, 22_000), trial(2, 24_000), spoilt]);
        let names: Vec<(&str, &str)> = found.iter().map(|it| (it.node.as_str(), it.name.as_str())).collect();
        assert_eq!(names, [("", "weir-worker-0"), ("exchange", "weir-worker-0"), ("exchange", "iou-wrk")]);
        let worker = &found[0];
        assert_eq!((worker.windows, worker.arm.as_str()), (3, "epoll"));
        assert_eq!(worker.per_second.0, Spread { median: 11_000.0, min: 10_000.0, max: 12_000.0 });
        assert_eq!((worker.per_message.0.median, worker.per_message.1.median), (2.2, 0.022));
        assert!(
            (worker.cpus.median - 0.11).abs() < 1e-12 && (worker.run_delay_ns.median - 220.0).abs() < 1e-9
        );
        assert_eq!(found[1].per_message.0.median, 1.1);
    }

    #[test]
    fn slices_of_evidence_count_where_nothing_else_observed_them() {
        let row = |key: &str, value: f64| Reading {
            source: "thread server".to_owned(),
            key: key.to_owned(),
            value,
        };
        let slice = |rung: Rung, switches: f64| EvidenceSlice {
            rung,
            slice: SliceRecord { length_ns: 500_000_000, messages: 1_000, ..SliceRecord::default() },
            readings: vec![row("context-switches-voluntary", switches), row("cpu-ns", 5e6)],
        };
        let trial = TrialRecord {
            load: None,
            evidence: vec![slice(Rung::Process, 300.0), slice(Rung::Programs, 900.0)],
            ..trial(0, 0)
        };
        let found = found(&[trial]);
        let [one] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((one.name.as_str(), one.windows), ("server", 1));
        assert_eq!((one.per_second.0.median, one.per_message.0.median), (600.0, 0.3));
    }
}
