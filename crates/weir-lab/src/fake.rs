//! A simulated machine and simulated servers: the same sessions as on a real machine, in virtual time, with planted
//! effects, machine states and failures. The seed determines every figure.
//!
//! This is the laboratory's test bench and never a source of results: a record it makes says `fake` where a real
//! record names the generator's driver.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use weir_record::{
    SCHEMA_VERSION,
    engine::EngineStats,
    gateway::ChainTotals,
    latency::LatencySummary,
    load::{LittlesLaw, LoadReport},
    machine::{CrossCoreReading, NetworkCounters, NoiseWindow},
    observation::Rung,
    spec::{LoadMode, StudySpec, Subject},
    storage_trial::StorageTrial,
    trial::{EvidenceSlice, Reading, SliceRecord},
    window::ObservedWindow,
};
use weir_stats::random::{Random, derived_seed};

use crate::launch::{
    LaunchError, Launcher, RoundOutcome, RoundRequest, Sliced, TrialFailure, TrialOutcome, TrialRequest,
};

/// How a fake server behaves.
#[derive(Clone, Debug)]
pub struct FakeArm {
    /// Server CPU per message in the near state, in microseconds.
    pub cpu_us_per_message: f64,
    /// Factor of the cost of a message in the far state.
    pub far_factor: f64,
    /// Factor of the cost of a message in open loop, at an equal rate for every arm.
    pub open_factor: f64,
    /// Its fault.
    pub fault: FakeFault,
}

impl FakeArm {
    /// A healthy server with this cost.
    pub fn costing(cpu_us_per_message: f64) -> Self {
        Self { cpu_us_per_message, far_factor: 1.3, open_factor: 1.0, fault: FakeFault::None }
    }
}

/// Fault of a fake server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FakeFault {
    /// Nothing.
    None,
    /// Every trial: the server reports that this environment cannot run it.
    Environment,
    /// The arm's trials from this number on (from 0): the server dies.
    DiesFrom(u32),
    /// Only the arm's trial of this number (from 0): the server dies.
    DiesOnceAt(u32),
    /// Every trial with at least this many workers: the server dies.
    DiesWithWorkers(u32),
    /// Only the arm's trial of this number (from 0): no message comes back inside the window.
    SilentOnceAt(u32),
    /// Every trial: this many responses are reset.
    Resets(u64),
    /// Every trial: the generator refuses its arguments.
    Usage,
}

/// When the machine is in its far state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FakeStates {
    /// Never.
    Near,
    /// Always.
    Far,
    /// From this time on, permanently.
    FarFrom(Duration),
    /// Alternately, with exponential lengths of these means.
    Switching {
        /// Mean length of a near stretch.
        near: Duration,
        /// Mean length of a far stretch.
        far: Duration,
    },
}

/// Cross-core round trip in the near state.
pub const NEAR_NS: f64 = 100.0;

/// Cross-core round trip in the far state.
pub const FAR_NS: f64 = 400.0;

/// Start-up, teardown and readings of a fake trial.
const OVERHEAD: Duration = Duration::from_millis(150);

/// Share of a server's CPU time that is in its system calls.
const CALLS_SHARE: f64 = 0.6;

/// Longest session the virtual machine has states for.
const SESSION_MAX: Duration = Duration::from_secs(24 * 3600);

/// The fake launcher. Fields may be changed between sessions.
#[derive(Debug)]
pub struct FakeLauncher {
    /// Servers by arm name.
    pub arms: BTreeMap<String, FakeArm>,
    /// Standard deviation of the logarithm of each trial's cost.
    pub noise: f64,
    /// Generator CPU per message in microseconds; when it exceeds the server's, the generator is the limit.
    pub generator_us_per_message: f64,
    /// The generator's p99 lag as a share of the median response time.
    pub lag_share: f64,
    /// Sets the interrupt flag inside this trial (from 0), as Ctrl-C during a trial does.
    pub interrupt_in_trial: Option<u32>,
    /// How long a question to another host of the servers takes; `None` if they run on this machine.
    pub control_delay_ns: Option<u64>,
    /// Trials run so far, in all arms.
    pub trials: u32,
    /// Arms and cells for which the session asked whether this machine can run them.
    pub asked: RefCell<Vec<(Vec<String>, Vec<String>)>>,
    seed: u64,
    states: FakeStates,
    now: Duration,
    trials_by_arm: BTreeMap<String, u32>,
    /// Far stretches, as start and end, generated as far as they were needed.
    far_stretches: Vec<(Duration, Duration)>,
    stretches_random: Random,
    reading_random: Cell<u64>,
}

impl FakeLauncher {
    /// A slice of evidence of each arm but the baseline's second run, if the round has any.
    fn evidence(&mut self, request: &RoundRequest<'_>, arm: usize) -> Vec<EvidenceSlice> {
        let Some(slice_ns) = request.evidence_slice_ns else { return Vec::new() };
        if request.arms[..arm].iter().any(|it| it.name == request.arms[arm].name) {
            return Vec::new();
        }
        let from = self.now;
        self.now += Duration::from_nanos(slice_ns);
        let slice = slice(&self.report(&trial_request(request, arm), from, self.now), slice_ns, 0, 0);
        let of_calls =
            |key: &str, value| Reading { source: "call read".to_owned(), key: key.to_owned(), value };
        let readings = vec![
            of_calls("count", slice.messages as f64),
            of_calls("on-cpu-ns", CALLS_SHARE * slice.server_cpu_ns as f64),
        ];
        vec![EvidenceSlice { rung: Rung::Process, slice, readings }]
    }

    /// A machine with these servers, 1 % noise and a generator that is never the limit.
    pub fn new(seed: u64, states: FakeStates, arms: &[(&str, FakeArm)]) -> Self {
        let mut launcher = Self {
            arms: arms.iter().map(|(name, arm)| ((*name).to_owned(), arm.clone())).collect(),
            noise: 0.01,
            generator_us_per_message: 1.0,
            lag_share: 0.03,
            interrupt_in_trial: None,
            control_delay_ns: None,
            trials: 0,
            asked: RefCell::default(),
            seed,
            states,
            now: Duration::ZERO,
            trials_by_arm: BTreeMap::new(),
            far_stretches: Vec::new(),
            stretches_random: Random::seeded(derived_seed(seed, 1)),
            reading_random: Cell::new(derived_seed(seed, 2)),
        };
        launcher.make_stretches();
        launcher
    }

    fn make_stretches(&mut self) {
        match self.states {
            FakeStates::Near => {}
            FakeStates::Far => self.far_stretches.push((Duration::ZERO, SESSION_MAX)),
            FakeStates::FarFrom(start) => self.far_stretches.push((start, SESSION_MAX)),
            FakeStates::Switching { near, far } => {
                let mut at = Duration::ZERO;
                while at < SESSION_MAX {
                    let start = at + near.mul_f64(self.stretches_random.exponential(1.0));
                    at = start + far.mul_f64(self.stretches_random.exponential(1.0));
                    self.far_stretches.push((start, at));
                }
            }
        }
    }

    fn far_share(&self, from: Duration, to: Duration) -> f64 {
        let far: Duration = self
            .far_stretches
            .iter()
            .map(|(start, end)| (*end).min(to).saturating_sub((*start).max(from)))
            .sum();
        far.as_secs_f64() / (to - from).as_secs_f64()
    }

    fn reading(&self) -> CrossCoreReading {
        let is_far = self.far_stretches.iter().any(|(start, end)| (*start..*end).contains(&self.now));
        let mut random =
            Random::seeded(self.reading_random.replace(self.reading_random.get().wrapping_add(1)));
        let round_trip_ns = if is_far { FAR_NS } else { NEAR_NS } * (0.03 * random.normal()).exp();
        CrossCoreReading { cpu_a: 0, cpu_b: 1, round_trip_ns, canary_ns: 1_000.0 }
    }

    fn fault(&mut self, request: &TrialRequest<'_>) -> Result<Option<TrialFailure>, LaunchError> {
        let number = self.trials_by_arm.entry(request.arm.name.clone()).or_default();
        let this = *number;
        *number += 1;
        let died = || TrialFailure::Server { reason: "exited with status 1: no such thing".to_owned() };
        match self.arms[&request.arm.name].fault {
            FakeFault::DiesFrom(first) if this >= first => Ok(Some(died())),
            FakeFault::DiesOnceAt(only) if this == only => Ok(Some(died())),
            FakeFault::DiesWithWorkers(workers) if request.cell.workers >= workers => Ok(Some(died())),
            FakeFault::Environment => {
                Ok(Some(TrialFailure::ServerEnvironment { reason: "io_uring is switched off".to_owned() }))
            }
            FakeFault::Usage => Err(LaunchError::Usage("message size 0 is out of range".to_owned())),
            _ => Ok(None),
        }
    }

    fn report(&self, request: &TrialRequest<'_>, from: Duration, to: Duration) -> LoadReport {
        let arm = &self.arms[&request.arm.name];
        let mut random = Random::seeded(derived_seed(self.seed, 1_000 + u64::from(self.trials)));
        let far_share = self.far_share(from, to);
        let noise = (self.noise * random.normal()).exp();
        let is_open = matches!(request.cell.load, LoadMode::Open { .. });
        let mode_factor = if is_open { arm.open_factor } else { 1.0 };
        let state_factor = 1.0 + far_share * (arm.far_factor - 1.0);
        let server_us = arm.cpu_us_per_message * state_factor * mode_factor * noise;
        let generator_us = self.generator_us_per_message;
        let capacity = 1e6 / server_us.max(generator_us);
        let (rate, throughput) = match request.cell.load {
            LoadMode::Open { rate_per_second, .. } => (Some(rate_per_second), rate_per_second.min(capacity)),
            LoadMode::Closed | LoadMode::OpenShare { .. } => (None, capacity),
        };
        let window = Duration::from_nanos(request.cell.window_ns).as_secs_f64();
        let messages = (throughput * window) as u64;
        let in_flight = f64::from(request.cell.connections * request.cell.depth);
        let service_ns = match rate {
            None => in_flight / throughput * 1e9,
            Some(_) => 1_000.0 * server_us * (5.0 + 1.0 / (1.02 - throughput / capacity)),
        };
        let messages_f64 = messages as f64;
        let mut report = LoadReport {
            schema_version: SCHEMA_VERSION,
            driver: "fake".to_owned(),
            mode: if rate.is_some() { "open" } else { "closed" }.to_owned(),
            connections: request.cell.connections,
            depth: request.cell.depth,
            message_bytes: request.cell.message_bytes,
            seed: request.seed,
            rate_per_second: rate,
            warmup_steady: true,
            window_ns: request.cell.window_ns,
            messages,
            messages_started: (rate.unwrap_or(throughput) * window) as u64,
            throughput_per_second: throughput,
            bytes_verified: messages * u64::from(request.cell.message_bytes),
            response: latency(service_ns, messages),
            service: latency(service_ns, messages),
            // The p99 of a distribution is three times its median here.
            send_lag: latency(service_ns * self.lag_share / 3.0, messages),
            littles_law: LittlesLaw {
                in_flight_mean: throughput * service_ns / 1e9,
                throughput_times_latency: throughput * service_ns / 1e9,
            },
            generator_cpu_ns: (messages_f64 * generator_us * 1e3) as u64,
            generator_busy_max: throughput * generator_us / 1e6,
            generator_bound: rate.is_none() && generator_us > server_us && request.cell.storage.is_none(),
            observed: Some(observed(messages, server_us, generator_us, request)),
            storage: request.cell.storage.as_ref().map(|_| StorageTrial {
                tool: "fake".to_owned(),
                iops_reported: throughput,
                ..StorageTrial::default()
            }),
            ..LoadReport::default()
        };
        match arm.fault {
            FakeFault::Resets(count) => report.failures.reset = count,
            // The current trial is counted already.
            FakeFault::SilentOnceAt(only) if self.trials_by_arm[&request.arm.name] == only + 1 => {
                (report.messages, report.bytes_verified, report.throughput_per_second) = (0, 0, 0.0);
            }
            _ => {}
        }
        report
    }
}

fn latency(p50_ns: f64, count: u64) -> LatencySummary {
    LatencySummary {
        count,
        ns_min: p50_ns as u64 / 2,
        ns_mean: p50_ns,
        ns_max: p50_ns as u64 * 4,
        quantiles: vec![(0.5, p50_ns as u64), (0.99, p50_ns as u64 * 3)],
        ..LatencySummary::default()
    }
}

fn observed(messages: u64, server_us: f64, generator_us: f64, request: &TrialRequest<'_>) -> ObservedWindow {
    let server_ns = messages as f64 * server_us * 1e3;
    let engine = match request.arm.subject.driver() {
        Some("uring") => EngineStats { enters: messages, submissions: messages, ..EngineStats::default() },
        _ => EngineStats {
            recv_calls: messages,
            send_calls: messages,
            wait_calls: messages / 50,
            ..EngineStats::default()
        },
    };
    let is_weir = matches!(request.arm.subject, Subject::Weir { .. });
    ObservedWindow {
        cpu_ns: server_ns as u64,
        context_switches_voluntary: messages / 100,
        threads: 1,
        engine: is_weir.then_some(engine),
        noise: NoiseWindow {
            window_ns: request.cell.window_ns,
            machine_busy_ns: (server_ns + messages as f64 * generator_us * 1e3) as u64,
            ..NoiseWindow::default()
        },
        ..ObservedWindow::default()
    }
}

impl Launcher for FakeLauncher {
    fn check(&self, spec: &StudySpec) -> Result<(), LaunchError> {
        let arms = spec.arms.iter().map(|arm| arm.name.clone()).collect();
        let cells = spec.cells.iter().map(|cell| cell.id.clone()).collect();
        self.asked.borrow_mut().push((arms, cells));
        Ok(())
    }

    fn control_delay_ns(&self) -> Option<u64> {
        self.control_delay_ns
    }

    fn run_trial(&mut self, request: &TrialRequest<'_>) -> Result<TrialOutcome, LaunchError> {
        if self.interrupt_in_trial == Some(self.trials) {
            request.interrupt.store(true, Ordering::Relaxed);
        }
        if request.interrupt.load(Ordering::Relaxed) {
            return Err(LaunchError::Interrupted);
        }
        let reading_before = self.reading();
        let from = self.now;
        let failure = self.fault(request)?;
        let window = Duration::from_nanos(request.cell.window_ns + request.cell.warmup_ns_max / 2);
        self.now += OVERHEAD + window;
        let report = match failure {
            Some(failure) => Err(failure),
            None => Ok(Box::new(self.report(request, from, self.now))),
        };
        self.trials += 1;
        let network = NetworkCounters::default();
        let chain = request.cell.orders.as_ref().map(|_| ChainTotals {
            gateway_received: 2,
            gateway_orders: 1,
            exchange_received: 1,
            exchange_orders: 1,
            exchange_sent: 1,
            ..ChainTotals::default()
        });
        Ok(TrialOutcome {
            reading_before,
            reading_after: self.reading(),
            network,
            chain,
            programs: BTreeMap::new(),
            report,
        })
    }

    fn run_round(&mut self, request: &RoundRequest<'_>) -> Result<RoundOutcome, LaunchError> {
        if self.interrupt_in_trial == Some(self.trials) {
            request.interrupt.store(true, Ordering::Relaxed);
        }
        if request.interrupt.load(Ordering::Relaxed) {
            return Err(LaunchError::Interrupted);
        }
        let reading_before = self.reading();
        let mut arms: Vec<(LoadReport, Vec<SliceRecord>)> = vec![Default::default(); request.arms.len()];
        let failures = (0..request.arms.len()).map(|arm| self.fault(&trial_request(request, arm)));
        let failures = failures.collect::<Result<Vec<_>, _>>()?;
        for (permutation, order) in (0_u32..).zip(request.orders) {
            for (place, arm) in (0_u32..).zip(order) {
                let from = self.now;
                self.now += Duration::from_nanos(request.alternation.slice_ns);
                self.trials += 1;
                let report = self.report(&trial_request(request, *arm), from, self.now);
                let (total, slices) = &mut arms[*arm];
                slices.push(slice(&report, request.alternation.slice_ns, permutation, place));
                add(total, report);
            }
        }
        self.now += OVERHEAD;
        let evidence: Vec<Vec<EvidenceSlice>> =
            arms.iter().enumerate().map(|(arm, _)| self.evidence(request, arm)).collect();
        let sliced = arms.into_iter().zip(evidence).map(|((report, slices), evidence)| Sliced {
            report: Box::new(report),
            slices,
            evidence,
        });
        let arms = sliced.zip(failures).map(|(sliced, failure)| failure.map_or(Ok(sliced), Err)).collect();
        let network = NetworkCounters::default();
        Ok(RoundOutcome {
            reading_before,
            reading_after: self.reading(),
            network,
            programs: vec![BTreeMap::new(); request.arms.len()],
            arms,
        })
    }

    fn read_machine(&mut self) -> Result<CrossCoreReading, LaunchError> {
        Ok(self.reading())
    }

    fn elapsed(&self) -> Duration {
        self.now
    }

    fn pause(&mut self, length: Duration) {
        self.now += length;
    }
}

/// One arm of a round, as if it ran alone.
fn trial_request<'a>(request: &RoundRequest<'a>, arm: usize) -> TrialRequest<'a> {
    TrialRequest {
        arm: request.arms[arm],
        cell: request.cell,
        server_cpus: request.server_cpus,
        load_cpus: request.load_cpus,
        neighbours: request.neighbours,
        seed: request.seed,
        block: 0,
        position: u32::try_from(arm).unwrap_or(u32::MAX),
        interrupt: request.interrupt,
    }
}

/// A fake trial cut down to a slice: its figures per message stay.
fn slice(report: &LoadReport, slice_ns: u64, permutation: u32, place: u32) -> SliceRecord {
    let share = slice_ns as f64 / report.window_ns.max(1) as f64;
    let part = |total: u64| (total as f64 * share) as u64;
    let observed = report.observed.as_ref();
    SliceRecord {
        permutation,
        place,
        length_ns: slice_ns,
        messages: part(report.messages),
        server_cpu_ns: part(observed.map_or(0, |seen| seen.cpu_ns)),
        machine_cpu_ns: part(observed.map_or(0, |seen| seen.noise.machine_busy_ns)),
        generator_cpu_ns: part(report.generator_cpu_ns),
        errors: report.failures.errors(),
        missed_starts: part(report.messages_started.saturating_sub(report.messages)),
        ..SliceRecord::default()
    }
}

/// Adds a slice's report to the arm's total in the round; means and shares are those of the last slice.
fn add(total: &mut LoadReport, report: LoadReport) {
    let sums = [total.messages, total.messages_started, total.bytes_verified, total.window_ns];
    let (cpu_ns, busy_ns) =
        total.observed.as_ref().map_or((0, 0), |seen| (seen.cpu_ns, seen.noise.machine_busy_ns));
    let generator_cpu_ns = total.generator_cpu_ns;
    *total = report;
    let fields =
        [&mut total.messages, &mut total.messages_started, &mut total.bytes_verified, &mut total.window_ns];
    fields.into_iter().zip(sums).for_each(|(field, sum)| *field += sum);
    total.generator_cpu_ns += generator_cpu_ns;
    if let Some(observed) = &mut total.observed {
        observed.cpu_ns += cpu_ns;
        observed.noise.machine_busy_ns += busy_ns;
    }
}

/// A flag that is never set.
pub static NEVER: AtomicBool = AtomicBool::new(false);
