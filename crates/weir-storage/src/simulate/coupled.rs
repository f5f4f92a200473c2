//! The coupled closed loops: a foreground thread, background cores and the device, phase after phase.

use super::{
    background::Background,
    device::{Device, Left, Owner},
    method::Method,
    oracle,
    report::{PhaseReport, SimulationReport},
    scenario::{Phase, Scenario},
    schedule::{NEVER, Schedule},
    thread::{Operation, Planner, Thread},
};
use crate::{
    measure::{Measured, Meter},
    predict::{Direction, Plan},
};

/// Bytes of every simulated operation.
const BYTES: u32 = 4096;

/// Runs a scenario with one method. The same arguments give the same report.
///
/// # Panics
/// Panics if the scenario cannot be simulated; [`Scenario::check`] checks that.
pub fn simulate(scenario: &Scenario, method: &Method, seed: u64) -> SimulationReport {
    let sleep_ns = match method {
        Method::ConstantSleep { miss_share, .. } => {
            let mut seen = oracle::Seen::new(scenario.phases.len(), &scenario.host, seed);
            let poller = Thread::new(
                scenario.host,
                Planner::Constant { sleep_ns: vec![0; scenario.phases.len()] },
                false,
                seed,
            );
            Simulation::new(scenario, poller, seed, |phase, latency_ns| seen.add(phase, latency_ns)).run();
            seen.longest_sleeps(*miss_share)
        }
        Method::Predicted { .. } | Method::Clairvoyant => Vec::new(),
    };
    let thread = Thread::with_method(scenario.host, method, seed, sleep_ns);
    Simulation::new(scenario, thread, seed, |_, _| {}).run()
}

/// An operation of the foreground on the device.
struct Pending {
    operation: Operation,
    plan: Plan,
}

struct Simulation<'a, Look> {
    scenario: &'a Scenario,
    schedule: Schedule,
    device: Device,
    background: Background,
    thread: Thread,
    pending: Option<Pending>,
    /// Measurement of the last operation, until the thread has noticed it: the interval may end before.
    noticed_later: Option<Measured>,
    meter: Meter,
    phase: usize,
    phase_end_ns: u64,
    interval_end_ns: u64,
    background_operations: u64,
    /// CPU of the foreground until the last operation it noticed.
    thread_busy_ns: u64,
    events: u64,
    /// Called with phase and latency of each foreground operation.
    look: Look,
}

impl<'a, Look: FnMut(usize, u64)> Simulation<'a, Look> {
    fn new(scenario: &'a Scenario, thread: Thread, seed: u64, look: Look) -> Self {
        let checked = scenario.check();
        assert!(checked.is_ok(), "{checked:?}");
        let operations_max = scenario.operations_max();
        let device = Device::new(scenario.device, operations_max, seed);
        let background =
            Background::new(scenario.cores_max(), operations_max, scenario.host.background_ns, seed);
        Self {
            // After units and cores: the foreground, and the end of the interval.
            schedule: Schedule::new(device.units() + background.cores() + 2),
            device,
            background,
            thread,
            pending: None,
            noticed_later: None,
            meter: scenario.host.meter(scenario.interval_ns),
            phase: 0,
            phase_end_ns: 0,
            interval_end_ns: 0,
            background_operations: 0,
            thread_busy_ns: 0,
            events: 0,
            look,
            scenario,
        }
    }

    fn source_of_core(&self, core: usize) -> usize {
        self.device.units() + core
    }

    fn source_of_foreground(&self) -> usize {
        self.device.units() + self.background.cores()
    }

    fn source_of_interval(&self) -> usize {
        self.source_of_foreground() + 1
    }

    fn run(mut self) -> SimulationReport {
        let scenario = self.scenario;
        self.schedule.set(self.source_of_foreground(), scenario.host.submit_ns);
        let phases = scenario.phases.iter().enumerate();
        let phases = phases.map(|(index, phase)| self.run_phase(index, phase)).collect();
        SimulationReport { phases, events: self.events }
    }

    fn run_phase(&mut self, index: usize, phase: &Phase) -> PhaseReport {
        self.begin(index, phase);
        let (units, foreground) = (self.device.units(), self.source_of_foreground());
        loop {
            let (now_ns, source) = self.schedule.first();
            self.events += 1;
            if source < units {
                self.leave(source, now_ns);
            } else if source < foreground {
                self.background_arrives(source - units, now_ns);
            } else if source == foreground {
                self.foreground_arrives(now_ns);
            } else if self.interval_ends(now_ns) {
                break;
            }
        }
        let meter = std::mem::replace(&mut self.meter, self.scenario.host.meter(self.scenario.interval_ns));
        let (waiting, intervals) = meter.finish(self.phase_end_ns);
        PhaseReport {
            name: phase.name.clone(),
            waiting,
            intervals,
            background_operations: self.background_operations,
        }
    }

    fn begin(&mut self, index: usize, phase: &Phase) {
        let now_ns = self.phase_end_ns;
        self.phase = index;
        self.phase_end_ns = now_ns + phase.length_ns;
        self.background_operations = 0;
        self.device.begin(now_ns, self.scenario.start_transient);
        let first_core = self.source_of_core(0);
        for (core, first_ns) in self.background.begin(phase, now_ns).enumerate() {
            self.schedule.set(first_core + core, first_ns.unwrap_or(NEVER));
        }
        self.meter.start(now_ns);
        self.meter.machine_busy(self.machine_busy_ns());
        self.set_interval_end(now_ns);
    }

    fn set_interval_end(&mut self, start_ns: u64) {
        self.interval_end_ns = start_ns.saturating_add(self.scenario.interval_ns).min(self.phase_end_ns);
        self.schedule.set(self.source_of_interval(), self.interval_end_ns);
    }

    /// An operation leaves its unit. Its completion time is then known.
    #[inline]
    fn leave(&mut self, unit: usize, now_ns: u64) {
        let Left { owner, done_ns, next_ns } = self.device.leave(unit, now_ns);
        self.schedule.set(unit, next_ns);
        match owner {
            Owner::Foreground => self.foreground_done(done_ns),
            Owner::Background(core) => {
                self.background.leave(now_ns, done_ns);
                self.background_operations += 1;
                let core = core as usize;
                if let Some(next_ns) = self.background.again(core, done_ns) {
                    self.schedule.set(self.source_of_core(core), next_ns);
                }
            }
            Owner::Gone => self.background.leave(now_ns, done_ns),
        }
    }

    #[inline]
    fn background_arrives(&mut self, core: usize, now_ns: u64) {
        let next_ns = self.background.arrive(core);
        self.schedule.set(self.source_of_core(core), next_ns.unwrap_or(NEVER));
        let (unit, leaves_ns) = self.device.arrive(Owner::Background(core as u32), now_ns);
        if let Some(leaves_ns) = leaves_ns {
            self.schedule.set(unit, leaves_ns);
        }
    }

    #[inline]
    fn foreground_arrives(&mut self, now_ns: u64) {
        self.record_noticed(u64::MAX);
        self.schedule.set(self.source_of_foreground(), NEVER);
        let operation = Operation {
            issued_ns: now_ns,
            bytes: BYTES,
            direction: Direction::Read,
            in_flight_others: Some(self.background.in_flight(now_ns)),
        };
        let plan = self.thread.plan(self.phase, &operation);
        self.pending = Some(Pending { operation, plan });
        let (unit, leaves_ns) = self.device.arrive(Owner::Foreground, now_ns);
        if let Some(leaves_ns) = leaves_ns {
            self.schedule.set(unit, leaves_ns);
        }
    }

    #[inline]
    fn foreground_done(&mut self, done_ns: u64) {
        let Pending { operation, plan } =
            self.pending.take().expect("the foreground's operation was on the device");
        (self.look)(self.phase, done_ns - operation.issued_ns);
        let waited = self.thread.wait(&operation, plan, done_ns);
        self.noticed_later = Some(waited.measured);
        // A sleep may be longer than the whole simulation.
        self.schedule.set(self.source_of_foreground(), waited.ready_ns.min(NEVER));
    }

    /// Records the last operation if it was noticed before `before_ns`: then it belongs to the interval.
    #[inline]
    fn record_noticed(&mut self, before_ns: u64) {
        if let Some(measured) = self.noticed_later.take_if(|measured| measured.noticed_ns < before_ns) {
            self.thread_busy_ns += measured.cpu_ns;
            self.meter.record(&measured);
        }
    }

    /// Ends the interval; returns whether the phase is over too.
    #[cold]
    fn interval_ends(&mut self, now_ns: u64) -> bool {
        self.record_noticed(now_ns);
        self.meter.machine_busy(self.machine_busy_ns());
        if now_ns >= self.phase_end_ns {
            return true;
        }
        self.set_interval_end(now_ns);
        false
    }

    /// Busy time of all cores.
    fn machine_busy_ns(&self) -> u64 {
        self.thread_busy_ns + self.background.busy_ns()
    }
}
