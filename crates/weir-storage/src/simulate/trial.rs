//! One trial of a study on a simulated device: turns a cell into a scenario or a trace, and the thread's measurements
//! into the record that a trial on a disk also has. Pure: the same cell, arm, seed and block give the same record, on
//! any machine.

use weir_record::{
    SCHEMA_VERSION,
    load::{LittlesLaw, LoadReport},
    spec::{CellSpec, StorageSubject},
    storage::{CompletionMethod, StorageDevice, WaitingInterval},
    storage_trial::StorageTrial,
};

use super::{
    HostModel, LagTail, Method, Pace, Phase, PhaseReport, Scenario, StartTransient, replay, simulate,
    synthetic,
};
use crate::trace::Trace;

/// A slow start takes half a second, and at most this fraction of the window.
const TRANSIENT_PART: u64 = 8;

/// The description of a trial.
#[derive(Clone, Copy, Debug)]
pub struct SimulatedTrial<'a> {
    /// The load on the device.
    pub cell: &'a CellSpec,
    /// The method of waiting.
    pub arm: &'a StorageSubject,
    /// The same for all arms of a block, so that they have the same random numbers.
    pub seed: u64,
    /// Number of the block; with a recorded trace each block uses the next piece.
    pub block: u32,
    /// The recorded trace, if the cell's device is one.
    pub trace: Option<&'a Trace>,
}

/// The method of an arm, or why there is none.
pub fn method(completion: &CompletionMethod) -> Result<Method, String> {
    match (Method::parse(&completion.predictor, completion.armed)?, completion.true_times) {
        (Method::Predicted { predictor, armed, .. }, true_times) => {
            Ok(Method::Predicted { predictor, armed, true_times })
        }
        (_, true) => {
            Err(format!("{} knows the device's times by itself; leave true_times out", completion.predictor))
        }
        (oracle, false) => Ok(oracle),
    }
}

/// Simulates a trial.
pub fn trial(asked: &SimulatedTrial<'_>) -> Result<LoadReport, String> {
    let SimulatedTrial { cell, seed, .. } = *asked;
    let Some(storage) = &cell.storage else { return Err(format!("{} asks nothing of a disk", cell.id)) };
    let method = method(&asked.arm.completion)?;
    let host = HostModel::xeon_6230();
    let replayed = |operations: &[_]| replay(operations, &host, &method, seed, INTERVAL_NS, Pace::BackToBack);
    let report = match &storage.device {
        StorageDevice::Model | StorageDevice::ModelLate => {
            let phases = simulate(&scenario(cell)?, &method, seed).phases;
            // A warm-up precedes them; all steps belong to the window.
            let measured = storage.core_steps.len().max(1);
            let kept = phases.into_iter().rev().take(measured).rev();
            kept.reduce(joined).ok_or("the scenario has no phase")?
        }
        StorageDevice::Synthetic(kind) => replayed(&synthetic(*kind, seed)),
        StorageDevice::Trace(file) => {
            let trace = asked.trace.ok_or_else(|| format!("the trace {file} was not read"))?;
            replayed(piece(trace, cell.blocks, asked.block))
        }
        StorageDevice::Disk => return Err(format!("{} is on a disk", cell.id)),
    };
    Ok(record(asked, report))
}

/// Measurement points are summed over the window; its intervals are kept if the load changes.
const INTERVAL_NS: u64 = 1_000_000_000;

/// Joins two phases. Their distributions are dropped: percentiles over both would be meaningless.
fn joined(mut one: PhaseReport, other: PhaseReport) -> PhaseReport {
    let PhaseReport { waiting, intervals, background_operations, .. } = other;
    let length_ns = one.waiting.elapsed_ns;
    let later = |it: WaitingInterval| WaitingInterval { start_ns: it.start_ns + length_ns, ..it };
    one.intervals.extend(intervals.into_iter().map(later));
    one.background_operations += background_operations;
    let sum = &mut one.waiting;
    for (into, from) in [
        (&mut sum.operations, waiting.operations),
        (&mut sum.slept, waiting.slept),
        (&mut sum.polled, waiting.polled),
        (&mut sum.interrupted, waiting.interrupted),
        (&mut sum.misses, waiting.misses),
        (&mut sum.misses_harmful, waiting.misses_harmful),
        (&mut sum.woken_early, waiting.woken_early),
        (&mut sum.sleep_requested_ns, waiting.sleep_requested_ns),
        (&mut sum.sleep_actual_ns, waiting.sleep_actual_ns),
        (&mut sum.device_ns, waiting.device_ns),
        (&mut sum.oversleep_ns, waiting.oversleep_ns),
        (&mut sum.wake_ns, waiting.wake_ns),
        (&mut sum.notice_ns, waiting.notice_ns),
        (&mut sum.total_ns, waiting.total_ns),
        (&mut sum.spin_ns, waiting.spin_ns),
        (&mut sum.device_known, waiting.device_known),
        (&mut sum.cpu_ns, waiting.cpu_ns),
        (&mut sum.elapsed_ns, waiting.elapsed_ns),
    ] {
        *into += from;
    }
    (sum.latency, sum.added) = Default::default();
    one
}

/// The load of the cell: a warm-up and then the window, or each step for a window.
fn scenario(cell: &CellSpec) -> Result<Scenario, String> {
    let storage = cell.storage.as_ref().ok_or("it asks nothing of a disk")?;
    let phase = |name: &str, length_ns, cores| Phase {
        name: name.to_owned(),
        length_ns,
        background_cores: if storage.background_depth == 0 { 0 } else { cores },
        background_depth: storage.background_depth,
    };
    let one = [storage.background_cores];
    let steps = if cell.is_series() { &storage.core_steps[..] } else { &one[..] };
    let warm_up = phase("warm-up", cell.warmup_ns_max, steps[0]);
    let phases = std::iter::once(warm_up);
    let phases = phases.chain(steps.iter().map(|cores| phase("window", cell.window_ns, *cores)));
    let interval_ns = if cell.is_series() { cell.series_interval_ns() } else { INTERVAL_NS };
    let mut scenario = Scenario {
        phases: phases.filter(|phase| phase.length_ns > 0).collect(),
        interval_ns,
        ..Scenario::paper(cell.window_ns)
    };
    if storage.device == StorageDevice::ModelLate {
        let start = StartTransient::half_second();
        scenario.host = scenario.host.with_tail(LagTail::deep_idle());
        scenario.start_transient =
            Some(StartTransient { length_ns: start.length_ns.min(cell.window_ns / TRANSIENT_PART), ..start });
    }
    scenario.check().map_err(|error| format!("{}: {error}", cell.id))?;
    Ok(scenario)
}

/// The piece of a block: consecutive pieces of equal length, without the remainder.
fn piece(trace: &Trace, blocks: u32, block: u32) -> &[crate::trace::TraceOperation] {
    let length = trace.operations.len() / blocks.max(1) as usize;
    let from = block as usize * length;
    trace.operations.get(from..from + length).unwrap_or_default()
}

/// No process was observed, so its CPU and the machine's noise are empty.
fn record(asked: &SimulatedTrial<'_>, report: PhaseReport) -> LoadReport {
    let SimulatedTrial { cell, seed, .. } = *asked;
    let PhaseReport { mut waiting, intervals, background_operations, .. } = report;
    let intervals = if cell.is_series() { intervals } else { Vec::new() };
    // The curves are most of a record, no report draws them, and the seed reproduces them.
    waiting.latency.histogram_v2_base64.clear();
    waiting.added.histogram_v2_base64.clear();
    let elapsed_ns = waiting.elapsed_ns.max(1) as f64;
    let iops = waiting.operations as f64 * 1e9 / elapsed_ns;
    let device = cell.storage.as_ref().map(|storage| storage.device.to_string()).unwrap_or_default();
    let fingerprint = asked.trace.map(|trace| format!(" ({:016x})", trace.fingerprint())).unwrap_or_default();
    LoadReport {
        schema_version: SCHEMA_VERSION,
        target: format!("{device}{fingerprint}"),
        mode: "closed".to_owned(),
        connections: 1,
        depth: 1,
        message_bytes: cell.message_bytes,
        workers: 1,
        seed,
        warmup_ns: cell.warmup_ns_max,
        window_ns: waiting.elapsed_ns,
        messages: waiting.operations,
        messages_started: waiting.operations,
        throughput_per_second: iops,
        littles_law: LittlesLaw {
            in_flight_mean: 1.0,
            throughput_times_latency: waiting.total_ns as f64 / elapsed_ns,
        },
        response: waiting.latency.clone(),
        storage: Some(StorageTrial {
            tool: format!("weir {}", env!("CARGO_PKG_VERSION")),
            threads: 1,
            iops_reported: iops,
            background_iops: (background_operations > 0)
                .then(|| background_operations as f64 * 1e9 / elapsed_ns),
            waiting: Some(waiting),
            intervals,
            ..StorageTrial::default()
        }),
        ..LoadReport::default()
    }
}

#[cfg(test)]
mod tests {
    use weir_record::{
        metric::Metric,
        spec::{CellRole, LoadMode, StorageCell},
        storage::{AccessPattern, SyntheticTrace},
        trial::TrialRecord,
        wait_series::WaitFigures,
    };

    use super::*;

    fn cell(device: StorageDevice, background_cores: u32) -> CellSpec {
        CellSpec {
            id: device.to_string(),
            protocol: String::new(),
            role: CellRole::Primary,
            connections: 1,
            depth: 1,
            message_bytes: 4_096,
            idle_connections: 0,
            workers: 1,
            accept: String::new(),
            congestion_control: String::new(),
            load_workers: 1,
            load_cpus: Vec::new(),
            server_cpus: Vec::new(),
            close: false,
            load: LoadMode::Closed,
            window_ns: 1_000_000_000,
            warmup_ns_max: 0,
            blocks: 20,
            http: None,
            storage: Some(StorageCell {
                device,
                pattern: AccessPattern::RandRead,
                engine: None,
                background_depth: if background_cores == 0 { 0 } else { 32 },
                background_cores: background_cores.max(1),
                core_steps: Vec::new(),
                file_bytes: 1 << 30,
                file: None,
            }),
            orders: None,
            alternation: None,
            neighbours: Vec::new(),
            is_rung: false,
            arms: Vec::new(),
        }
    }

    fn arm(predictor: &str) -> StorageSubject {
        let completion = CompletionMethod { predictor: predictor.to_owned(), ..CompletionMethod::default() };
        StorageSubject { completion, ..StorageSubject::default() }
    }

    fn figures(cell: &CellSpec, arm: &StorageSubject) -> [f64; 5] {
        let load = trial(&SimulatedTrial { cell, arm, seed: 101, block: 0, trace: None })
            .expect("it can be simulated");
        let trial = TrialRecord { load: Some(load), ..TrialRecord::default() };
        [
            Metric::MissRate,
            Metric::WaitingCpuShare,
            Metric::Throughput,
            Metric::EffectiveSleep,
            Metric::AddedLatency,
        ]
        .map(|metric| metric.row().of_trial(&trial).expect("it was measured"))
    }

    /// The figures of the earlier sweep program for the same scenario and seed.
    #[test]
    fn figures_are_those_that_the_sweep_had() {
        let model = cell(StorageDevice::Model, 0);
        let recorded = |trace| cell(StorageDevice::Synthetic(trace), 0);
        let (calm, drifting) = (recorded(SyntheticTrace::Calm), recorded(SyntheticTrace::Drifting));
        let expected = [
            (
                &model,
                "regime:0.003",
                [0.003241950206162853, 0.3949937, 63542.0, 9.62294452488118, 0.0014607346322117654],
            ),
            (&model, "linux-mean:0.5", [0.0, 0.5942378, 63731.0, 6.4588514694575645, 0.0]),
            (&model, "clairvoyant", [0.0, 0.22495992, 63548.0, 12.297885661232455, 0.0]),
            (
                &model,
                "constant:0.003",
                [0.002958626441936956, 0.395945101, 63543.0, 9.608, 0.0012611145208756276],
            ),
            (
                &calm,
                "regime:0.003",
                [1.0 / 300.0, 0.4584866358892082, f64::NAN, 8.461638716666666, 0.0015532999999999999],
            ),
            (
                &drifting,
                "linux-mean:0.5",
                [0.26793333333333336, 0.5310004833721644, f64::NAN, 65.09387746666667, 6.525724533333333],
            ),
        ];
        for (cell, predictor, figures_before) in expected {
            let found = figures(cell, &arm(predictor));
            for (now, before) in found.into_iter().zip(figures_before) {
                assert!(
                    before.is_nan() || (now - before).abs() <= 1e-9 * before.abs(),
                    "{predictor}: {found:?}"
                );
            }
        }
    }

    /// The sweep went from job to job without a pause; a cell has a warm-up under its own load instead. So these are
    /// compared with the sweep's jobs of 20 s, in which the transition between loads was a small part.
    #[test]
    fn under_load_figures_are_those_of_the_sweeps_long_jobs() {
        let expected = [
            (0, "linux-mean:0.5", [0.0, 0.5512]),
            (1, "regime:0.003", [0.0030, 0.6055]),
            (1, "linux-mean:0.5", [0.1178, 0.5308]),
            (4, "regime:0.003", [0.0, 0.0218]),
            (4, "linux-mean:0.5", [0.3723, 0.5063]),
        ];
        for (cores, predictor, [misses, cpu]) in expected {
            let cell = CellSpec { warmup_ns_max: 300_000_000, ..cell(StorageDevice::Model, cores) };
            let found = figures(&cell, &arm(predictor));
            assert!(
                (found[0] - misses).abs() < 0.02 && (found[1] - cpu).abs() < 0.02,
                "{predictor}: {found:?}"
            );
        }
    }

    #[test]
    fn a_load_that_changes_in_steps_is_one_job_with_its_intervals() {
        let mut cell = cell(StorageDevice::Model, 1);
        (cell.window_ns, cell.storage.as_mut().expect("it is of storage").core_steps) =
            (200_000_000, vec![0, 1, 4]);
        let load = trial(&SimulatedTrial {
            cell: &cell,
            arm: &arm("linux-mean:0.5"),
            seed: 1,
            block: 0,
            trace: None,
        })
        .expect("it can be simulated");
        let storage = load.storage.expect("it is of storage");
        assert_eq!((load.window_ns, storage.intervals.len()), (600_000_000, 60));
        let starts: Vec<u64> = storage.intervals.iter().map(|it| it.start_ns / 10_000_000).collect();
        assert_eq!(starts, (0..60).collect::<Vec<_>>());
        let of = |steps: std::ops::Range<usize>| {
            WaitFigures::of(storage.intervals[steps].iter()).expect("operations completed")
        };
        let (first, last) = (of(5..20), of(50..60));
        assert!(first.miss_rate < 0.01 && last.miss_rate > 0.2, "{first:?} {last:?}");
        assert!((0.07..0.13).contains(&(last.iops / first.iops)), "{first:?} {last:?}");
        let whole = storage.waiting.expect("it was measured");
        let sum: u64 = storage.intervals.iter().map(|it| it.operations).sum();
        assert_eq!((whole.operations, load.messages), (sum, sum));
    }

    #[test]
    fn each_block_of_a_recorded_trace_has_its_own_piece() {
        let lines: String = (0..40).map(|index| format!("{},0\n", 10_000 + index)).collect();
        let trace =
            crate::trace::read(format!("io_time_ns,timestamp\n{lines}").as_bytes(), "t").expect("a trace");
        let first = |block| piece(&trace, 20, block).iter().map(|it| it.latency_ns).collect::<Vec<_>>();
        assert_eq!(first(0), [10_000, 10_001]);
        assert_eq!(first(19), [10_038, 10_039]);
        assert!(first(20).is_empty());
    }

    #[test]
    fn only_a_predictor_can_be_told_the_truth() {
        let told = |predictor: &str| {
            method(&CompletionMethod { true_times: true, ..arm(predictor).completion })
                .map(|it| it.true_times())
        };
        assert_eq!(told("linux-mean:0.5"), Ok(true));
        assert!(told("clairvoyant").expect_err("it knows").contains("leave true_times out"));
    }
}
