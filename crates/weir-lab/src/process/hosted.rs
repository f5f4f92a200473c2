//! The servers of a round on the machine where they run: starts them, reads their clocks at the edges of each slice,
//! and ends them. The load is the business of [`super::server_round`], on this host or another.
//!
//! A server's CPU time is read while it sleeps, some hundred microseconds after its last answer. The run time of a
//! thread that is on a CPU lags by up to a tick, which is a large part of a slice. The difference covers exactly the
//! messages of the slice, because a slice ends with its last answer. An arm that works while it waits is stopped
//! between its slices (SIGSTOP) and while its CPU time is read, so that it takes nothing from the others. Its CPU use
//! until then is recorded, and so is any use while it is stopped. A server that ran before the study is never
//! stopped. If it serves several of the runs, as a baseline does, its work in the turns of others does not count as
//! waiting.

mod command;

use std::{
    sync::atomic::AtomicBool,
    thread::sleep,
    time::{Duration, Instant},
};

use weir_evidence::{
    edge::Edge,
    ladder::Group,
    memory, network,
    process::{TreeDelta, cpu_ns_of, softirq_threads},
    slice_observers::{
        EngineCounters, LoadedPrograms, Network, Observers, Processes, Programs, RepeatedReadings,
        UnderStrace,
    },
    stats::StatsClient,
};
use weir_record::{
    engine::EngineStats, machine::NoiseWindow, observation::Rung, trial::Reading, trial::WAITING_SHARE_MAX,
    window::ObservedWindow,
};

use super::{
    Deadlines,
    files::{Files, TrialFiles},
    server::{NoServer, Place, Server},
    server_cpu::{CpuEdge, ServerCpu},
    suspend,
};
use crate::{
    launch::{LaunchError, TrialFailure},
    protocol, supervise,
};

pub(crate) use command::{
    ArmStopped, Look, NoAnswer, RoundAnswer, RoundCommand, RoundServers, ServersStarted, Serving, SliceSeen,
    SliceUse, Started, Stopped, Waited,
};

/// Time from the last answer of a slice until its server sleeps.
const SETTLE: Duration = Duration::from_micros(300);

/// The same for the blocking driver: a receive times out after 50 ms of silence, and its thread makes another call.
/// If they were read in between, the counts of engine and kernel would differ by a call for each connection.
const SETTLE_BLOCKING: Duration = Duration::from_millis(75);

/// A wait shorter than this shows nothing about what an arm does while it waits.
const WAITING_MIN: Duration = Duration::from_millis(50);

/// Longest wait until servers have accepted the connections that were opened to them: the kernel completes a
/// connection before its server accepts it. An arm that works while it waits never rests.
const REST_MAX: Duration = Duration::from_millis(50);

/// Time between two checks; more than the clock of a running thread lags.
const REST_LOOK: Duration = Duration::from_millis(5);

/// Groups whose cost shows against slices without them: calls alone, and calls with one further group each.
pub(super) const FEWER_GROUPS: [&[Group]; 4] = [
    &[Group::Calls],
    &[Group::Calls, Group::Scheduling],
    &[Group::Calls, Group::Uring],
    &[Group::Calls, Group::Softirqs],
];

/// Environment of the servers of a round.
#[derive(Clone, Copy)]
pub(crate) struct Runs<'a> {
    pub(crate) place: Place<'a>,
    pub(crate) deadlines: &'a Deadlines,
    /// The programs that slices of evidence may attach to the kernel; `None` if they may not.
    pub(crate) programs: Option<&'a LoadedPrograms>,
    /// Set when the servers must end.
    pub(crate) interrupt: &'a AtomicBool,
    /// A process whose work, with its descendants', belongs to the study besides our own.
    pub(crate) beside: Option<u32>,
}

/// The servers of a round that were started here. Dropping it ends them.
pub(crate) struct HostedRound<'a> {
    runs: Runs<'a>,
    arms: Vec<Arm>,
    /// Kernel memory before any of them started.
    kernel_bytes: Option<u64>,
    /// Kernel threads that process softirqs.
    softirq: Vec<u32>,
    /// The current slice.
    slice: Option<OpenSlice<'a>>,
    /// The machine's counters at the beginning of the timed part.
    timed: Option<Edge>,
    noise: NoiseWindow,
}

/// A slice that has begun.
struct OpenSlice<'a> {
    arm: usize,
    of: SliceUse,
    before: SliceEdge,
    counters: Option<EngineStats>,
    observers: Option<Observers<'a>>,
}

/// Clocks at one edge of a slice.
struct SliceEdge {
    server: CpuEdge,
    softirq_cpu_ns: u64,
    segments_sent: u64,
}

/// One arm in a round.
struct Arm {
    server: Option<Server>,
    /// Kept until the server is gone.
    files: Option<TrialFiles>,
    pid: u32,
    /// The processes whose CPU is read.
    cpu: ServerCpu,
    /// Whether it ran before the study.
    ran_before: bool,
    /// The process that cleans up after a foreign server; it keeps running while the others are stopped.
    supervisor: Option<u32>,
    /// Time from the last answer until its threads make no further call.
    settle: Duration,
    stats: Option<StatsClient>,
    total: TreeDelta,
    engine: Option<EngineStats>,
    /// After the timed part: its resident memory, and its part of the kernel's.
    memory: (u64, Option<u64>),
    /// Connections of each of its workers, when its counters were last read; empty for servers without counters.
    connections_by_worker: Vec<u64>,
    /// CPU time at the end of its last slice, and when that was.
    left: (u64, Instant),
    /// CPU time at the beginning of its last turn, and when that was.
    entered: (u64, Instant),
    /// Its activity before that turn.
    waited: Waited,
    works_while_waiting: bool,
    is_stopped: bool,
}

impl<'a> HostedRound<'a> {
    /// Starts the servers one after the other. If a server fails, only its own arm loses the round.
    pub(crate) fn start(
        runs: Runs<'a>,
        serving: &Serving,
        files: &mut Files,
    ) -> Result<(Self, ServersStarted), LaunchError> {
        let kernel_bytes = memory::kernel_bytes();
        let mut arms = Vec::with_capacity(serving.arms.len());
        let mut told = Vec::with_capacity(serving.arms.len());
        for (position, spec) in (0_u32..).zip(&serving.arms) {
            let Some(request) = serving.of_arm(position, runs.interrupt) else { break };
            let starts = protocol::of(request.cell).servers(&request);
            let files = files.prepare(&request, &starts)?;
            let number = serving.number + u64::from(position);
            let (arm, started) =
                match Server::start(runs.place, &request, (&starts, &files), number, runs.deadlines) {
                    Ok(server) => Arm::of(server, files, spec.subject.driver()),
                    Err(NoServer::Failed(failure)) => (Arm::empty(), Err(failure)),
                    Err(NoServer::Stop(error)) => return Err(error),
                };
            arms.push(arm);
            told.push(started);
        }
        let round = Self {
            runs,
            arms,
            kernel_bytes,
            softirq: softirq_threads(),
            slice: None,
            timed: None,
            noise: NoiseWindow::default(),
        };
        Ok((round, ServersStarted { arms: told, may_trace: runs.programs.is_some() }))
    }

    /// Waits until the arms rest, and then marks the beginning of their waiting. Their work to start and to accept
    /// their connections must not count, or most arms would appear to work while they wait.
    fn rest(&mut self, arms: &[u32]) -> Result<(), LaunchError> {
        let places = self.places(arms)?;
        let used = |all: &[Arm]| -> u64 { places.iter().map(|place| all[*place].cpu.ns()).sum() };
        let deadline = Instant::now() + REST_MAX;
        let mut before = used(&self.arms);
        while Instant::now() < deadline {
            sleep(REST_LOOK);
            let now = used(&self.arms);
            if now == before {
                break;
            }
            before = now;
        }
        for place in places {
            let arm = &mut self.arms[place];
            arm.left = (arm.cpu.ns(), Instant::now());
        }
        Ok(())
    }

    fn begin_slice(&mut self, place: usize, of: SliceUse) {
        let mut observers = match of {
            SliceUse::Evidence(look) => Some(self.observers(place, look)),
            SliceUse::WarmUp | SliceUse::Timed => None,
        };
        let arm = &mut self.arms[place];
        if let Some(observers) = &mut observers {
            sleep(arm.settle);
            observers.begin();
        }
        // A request for counters wakes a server.
        let counters = if of == SliceUse::Timed { arm.counters() } else { None };
        sleep(SETTLE);
        let before = arm.edge(&self.softirq, of == SliceUse::Timed);
        self.slice = Some(OpenSlice { arm: place, of, before, counters, observers });
    }

    /// Ends the slice and the arm's turn; it is an error if the slice never began.
    fn end_slice(&mut self, place: usize) -> Result<SliceSeen, LaunchError> {
        let open = self.slice.take().filter(|slice| slice.arm == place);
        let Some(OpenSlice { of, before, counters, observers, .. }) = open else {
            return Err(LaunchError::Usage(format!("no slice of arm {place} has begun")));
        };
        let is_timed = of == SliceUse::Timed;
        let arm = &mut self.arms[place];
        sleep(if is_timed { SETTLE } else { arm.settle });
        let after = arm.edge(&self.softirq, is_timed);
        if is_timed {
            arm.add(&before, &after, counters);
        }
        let evidence = observers.map(|mut observers| observers.end());
        arm.leave();
        let failure = arm.look_after();
        if failure.is_none() {
            // An arm that failed in its turn has not left it, and is not loaded again.
            self.share_turn(place);
        }
        Ok(seen((&before, &after), evidence, failure))
    }

    /// Excludes the turn of an arm from the waiting of other arms whose server is the same process.
    fn share_turn(&mut self, place: usize) {
        let arm = &self.arms[place];
        let (cpu, entered, left) = (arm.cpu.clone(), arm.entered, arm.left);
        if !arm.ran_before {
            return;
        }
        let (used_ns, length) =
            (left.0.saturating_sub(entered.0), left.1.saturating_duration_since(entered.1));
        for (other, arm) in self.arms.iter_mut().enumerate() {
            if other != place && arm.cpu == cpu {
                arm.left = (arm.left.0 + used_ns, arm.left.1 + length);
            }
        }
    }

    fn end_timed(&mut self, arms: &[u32], loaded: u32) -> Result<(), LaunchError> {
        let places = self.places(arms)?;
        let before = self.timed.take();
        self.noise =
            before.and_then(|before| Some(before.until(&self.noise_edge()?).noise)).unwrap_or_default();
        let kernel_bytes = taken_each(self.kernel_bytes, loaded);
        for place in places {
            let arm = &mut self.arms[place];
            arm.memory = (arm.cpu.pss_bytes(), kernel_bytes);
        }
        Ok(())
    }

    /// The machine's counters at one edge of the timed part. Servers that ran before the study are not our children,
    /// so their processes are looked up at each edge: they may start others meanwhile.
    fn noise_edge(&self) -> Option<Edge> {
        let serving = self.arms.iter().filter(|arm| arm.ran_before).flat_map(|arm| arm.cpu.pids());
        let serving: Vec<u32> = serving.chain(self.runs.beside).collect();
        Edge::read_serving(std::process::id(), &serving).ok()
    }

    fn totals(&self) -> Vec<ObservedWindow> {
        let of_arm = |arm: &Arm| {
            let mut observed =
                ObservedWindow { engine: arm.engine, noise: self.noise, ..ObservedWindow::default() };
            arm.total.fill(&mut observed);
            (observed.pss_bytes, observed.kernel_bytes) = arm.memory;
            observed.connections_by_worker.clone_from(&arm.connections_by_worker);
            observed
        };
        self.arms.iter().map(of_arm).collect()
    }

    /// Ends all of them. They are gone when this returns.
    fn stop(&mut self) -> Vec<ArmStopped> {
        let deadlines = self.runs.deadlines;
        let stop = |arm: &mut Arm| {
            arm.go_on();
            let Some(server) = arm.server.take() else { return ArmStopped::default() };
            let said = server.said();
            let failure = server.stop(deadlines);
            arm.files = None;
            ArmStopped { said, failure }
        };
        self.arms.iter_mut().map(stop).collect()
    }

    /// All observers of an arm for this look, or those without cost to it. Its own counters come first, because the
    /// request wakes it.
    fn observers(&self, place: usize, look: Look) -> Observers<'a> {
        let arm = &self.arms[place];
        let mut observers = Observers::default();
        let socket = arm.server.as_ref().and_then(|server| server.stats_socket.as_deref());
        if let Some(stats) = socket.and_then(|name| StatsClient::connect(name).ok()) {
            // The engine's clock is for accounts, which use slices with all programs. In other slices its cost would
            // be attributed to the programs.
            let is_timed = look == Look::Programs && self.runs.programs.is_some();
            observers.push(Box::new(EngineCounters::new(stats, is_timed)));
        }
        observers.push(Box::new(Network::new(arm.pid)));
        observers.push(Box::new(Processes::new(arm.pid)));
        match (look, groups(look), self.runs.programs) {
            (Look::Readings, ..) => observers.push(Box::new(RepeatedReadings::new(arm.pid))),
            (Look::Strace, ..) => {
                let supervisor = supervise::words(self.runs.place.weir);
                observers.push(Box::new(UnderStrace::new(arm.pid, supervisor)));
            }
            (_, Some(groups), Some(loaded)) => {
                observers.push(Box::new(Programs::new(arm.pid, groups, loaded)));
            }
            (Look::Clocks | Look::Programs | Look::FewerPrograms(_), ..) => {}
        }
        observers
    }

    fn place(&self, arm: u32) -> Result<usize, LaunchError> {
        let place = usize::try_from(arm).ok().filter(|place| *place < self.arms.len());
        place.ok_or_else(|| LaunchError::Usage(format!("the round has no arm {arm}")))
    }

    fn places(&self, arms: &[u32]) -> Result<Vec<usize>, LaunchError> {
        arms.iter().map(|arm| self.place(*arm)).collect()
    }

    /// Carries a command out, and returns the answer.
    pub(crate) fn answer(&mut self, command: RoundCommand) -> Result<RoundAnswer, LaunchError> {
        Ok(match command {
            RoundCommand::Rest { arms } => {
                self.rest(&arms)?;
                RoundAnswer::Done
            }
            RoundCommand::BeginTimed => {
                self.timed = self.noise_edge();
                RoundAnswer::Done
            }
            RoundCommand::Enter { arm } => {
                let place = self.place(arm)?;
                RoundAnswer::Entered(self.arms[place].enter())
            }
            RoundCommand::BeginSlice { arm, of } => {
                self.begin_slice(self.place(arm)?, of);
                RoundAnswer::Done
            }
            RoundCommand::EndSlice { arm } => {
                RoundAnswer::SliceEnded(Box::new(self.end_slice(self.place(arm)?)?))
            }
            RoundCommand::EndTimed { arms, loaded } => {
                self.end_timed(&arms, loaded)?;
                RoundAnswer::Done
            }
            RoundCommand::HasEnded { arm, waits } => {
                let place = self.place(arm)?;
                RoundAnswer::HasEnded(self.arms[place].has_ended(waits))
            }
            RoundCommand::Totals => RoundAnswer::Totals(self.totals()),
            RoundCommand::Stop => RoundAnswer::Stopped(Stopped { arms: self.stop(), ..Stopped::default() }),
        })
    }
}

impl RoundServers for HostedRound<'_> {
    fn ask(&mut self, command: RoundCommand) -> Result<RoundAnswer, NoAnswer> {
        Ok(self.answer(command)?)
    }

    fn read_output(&mut self) {
        self.arms.iter_mut().filter_map(|arm| arm.server.as_mut()).for_each(|server| server.read_output());
    }

    fn host(&self) -> Option<&str> {
        None
    }

    fn share_network(&self) -> bool {
        true
    }
}

/// The groups of programs that a look attaches to the kernel.
fn groups(look: Look) -> Option<&'static [Group]> {
    match look {
        Look::Programs => Some(&Group::ALL),
        Look::FewerPrograms(place) => FEWER_GROUPS.get(place as usize).copied(),
        Look::Clocks | Look::Readings | Look::Strace => None,
    }
}

fn seen(
    (before, after): (&SliceEdge, &SliceEdge),
    evidence: Option<(Rung, Vec<Reading>)>,
    failure: Option<TrialFailure>,
) -> SliceSeen {
    SliceSeen {
        server_cpu_ns: before.server.until(&after.server).cpu_ns,
        softirq_cpu_ns: after.softirq_cpu_ns.saturating_sub(before.softirq_cpu_ns),
        segments_sent: after.segments_sent.saturating_sub(before.segments_sent),
        evidence,
        failure,
    }
}

/// Kernel memory taken since then, for each of these servers and its connections.
fn taken_each(before: Option<u64>, servers: u32) -> Option<u64> {
    Some(memory::kernel_bytes()?.saturating_sub(before?) / u64::from(servers.max(1)))
}

impl Arm {
    fn of(server: Server, files: TrialFiles, driver: Option<&str>) -> (Self, Result<Started, TrialFailure>) {
        let (pid, cpu) = (server.observed_pid().unwrap_or_default(), server.cpu());
        let (supervisor, ran_before) = (server.supervisor(), server.ran_before());
        let stats = server.stats_socket.as_deref().and_then(|name| StatsClient::connect(name).ok());
        let left = (cpu.ns(), Instant::now());
        let settle = if driver == Some("blocking") { SETTLE_BLOCKING } else { SETTLE };
        let is_process = matches!(cpu, ServerCpu::Process(_));
        let started = Started { address: server.address.clone(), is_process };
        let (server, files) = (Some(server), Some(files));
        let arm =
            Self { server, files, pid, cpu, ran_before, supervisor, settle, stats, left, ..Self::empty() };
        (arm, Ok(started))
    }

    fn empty() -> Self {
        Self {
            server: None,
            files: None,
            pid: 0,
            cpu: ServerCpu::Process(0),
            ran_before: false,
            supervisor: None,
            settle: SETTLE,
            stats: None,
            total: TreeDelta::default(),
            engine: None,
            memory: (0, None),
            connections_by_worker: Vec::new(),
            left: (0, Instant::now()),
            entered: (0, Instant::now()),
            waited: Waited::default(),
            works_while_waiting: false,
            is_stopped: false,
        }
    }

    /// Begins its turn: the CPU time that it used while it waited, and the length of the wait.
    fn enter(&mut self) -> Waited {
        let (cpu_ns, at) = self.left;
        self.entered = (self.cpu.ns(), Instant::now());
        self.waited = Waited {
            cpu_ns: self.entered.0.saturating_sub(cpu_ns),
            length_ns: u64::try_from(at.elapsed().as_nanos()).unwrap_or(u64::MAX),
            stopped: self.is_stopped,
        };
        self.go_on();
        self.waited
    }

    /// Ends its turn. An arm that worked while it waited is stopped until its next turn.
    fn leave(&mut self) {
        let Waited { cpu_ns, length_ns, .. } = self.waited;
        let share = cpu_ns as f64 / length_ns.max(1) as f64;
        let works = Duration::from_nanos(length_ns) >= WAITING_MIN && share > WAITING_SHARE_MAX;
        self.works_while_waiting |= works && !self.ran_before;
        if self.works_while_waiting {
            suspend::suspend(self.pid, self.supervisor);
            self.is_stopped = true;
        }
        // Read while it is stopped, because the clock of a running thread lags.
        self.left = (self.cpu.ns(), Instant::now());
    }

    fn go_on(&mut self) {
        if std::mem::take(&mut self.is_stopped) {
            suspend::resume(self.pid, self.supervisor);
        }
    }

    fn counters(&mut self) -> Option<EngineStats> {
        let said = self.stats.as_mut()?.read().ok()?;
        self.connections_by_worker = said.connections_by_worker();
        Some(said.total)
    }

    /// Reads the clocks. The clock of a thread that never sleeps is exact only while it is stopped. An observed
    /// thread must not be stopped, because a tracer would take part in the stop.
    fn edge(&self, softirq: &[u32], is_timed: bool) -> SliceEdge {
        let stops = is_timed && self.works_while_waiting;
        if stops {
            suspend::suspend(self.pid, self.supervisor);
        }
        let edge = SliceEdge {
            // The exit of a server is noticed after the slice.
            server: self.cpu.edge(),
            softirq_cpu_ns: cpu_ns_of(softirq),
            segments_sent: network::segments_sent(),
        };
        if stops {
            suspend::resume(self.pid, self.supervisor);
        }
        edge
    }

    fn add(&mut self, before: &SliceEdge, after: &SliceEdge, counters: Option<EngineStats>) {
        self.total.add(&before.server.until(&after.server));
        if let (Some(before), Some(after)) = (counters, self.counters()) {
            self.engine.get_or_insert_default().merge(&after.since(&before));
        }
    }

    /// Why it has ended, if it has. A peer sees the end of its connections before its parent sees its exit, so with
    /// `waits` an arm that is about to end gets a moment to do so.
    fn has_ended(&mut self, waits: bool) -> Option<TrialFailure> {
        if !waits {
            return self.look_after();
        }
        let server = self.server.as_mut()?;
        if server.is_ending() { Some(server.death()) } else { None }
    }

    /// Finds out whether it ended in the slice.
    fn look_after(&mut self) -> Option<TrialFailure> {
        let gone = || TrialFailure::Server { reason: "it was not there".to_owned() };
        let Some(server) = &mut self.server else { return Some(gone()) };
        (!server.still_runs()).then(|| server.death())
    }
}
