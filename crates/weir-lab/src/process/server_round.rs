//! A round: the servers of all arms are up together, and one generator loads them in turn.
//!
//! A server's CPU is read while it sleeps, some hundred microseconds after its last answer: the run time of a thread
//! that is on a CPU lags by up to a tick, which is a large part of a slice. What is read covers exactly the messages of
//! the slice, because a slice ends with its last answer. An arm that works while it waits is stopped between its slices
//! (SIGSTOP), so that it takes nothing from the others, and for as long as its CPU is read; what it used until then is
//! recorded, and so is what it uses although it is stopped. A server that ran before the study is never stopped. Where
//! it serves several of the runs, as that of a baseline does, what it did in the turns of others is no waiting.
//!
//! A server that fails costs its own arm the round and no other. So does one that does not answer what it is primed
//! with: every further turn would take as long as the generator waits for an answer.

mod slice_generator;

use std::{
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

use weir_evidence::{
    edge::Edge,
    ladder, memory, network,
    process::{TreeDelta, cpu_ns_of, family_cpu_ns},
    slice_observers::{
        EngineCounters, LoadedPrograms, Network, Observers, Processes, Programs, RepeatedReadings,
        UnderStrace,
    },
    stats::StatsClient,
};
use weir_record::{
    engine::EngineStats,
    load::LoadReport,
    slices::{SliceCommand, SliceCounts},
    spec::CellSpec,
    trial::{EvidenceSlice, SliceRecord, WAITING_SHARE_MAX},
    window::ObservedWindow,
};
use weir_stats::random::{Random, derived_seed};

use super::{
    Deadlines,
    files::{Files, TrialFiles},
    running::RunningServers,
    server::{NoServer, Server},
    server_cpu::{CpuEdge, ServerCpu},
    suspend,
};
use crate::{
    launch::{LaunchError, RoundRequest, Sliced, TrialFailure},
    protocol, supervise,
};

use slice_generator::Generator;

/// From the last answer of a slice until its server sleeps.
const SETTLE: Duration = Duration::from_micros(300);

/// The same on the blocking driver: a receive gives up after 50 ms of silence, and its thread goes over to another
/// call. Read in between, engine and kernel would differ by a call for each connection.
const SETTLE_BLOCKING: Duration = Duration::from_millis(75);

/// Waiting shorter than this says nothing about what an arm does while it waits.
const WAITING_MIN: Duration = Duration::from_millis(50);

/// Longest wait until servers have taken the connections that were opened to them: the kernel opens one before its
/// server hears of it. An arm that works while it waits never rests.
const REST_MAX: Duration = Duration::from_millis(50);

/// Between two looks, which is more than the clock of a running thread lags.
const REST_LOOK: Duration = Duration::from_millis(5);

/// Runs a round in the launcher's place.
pub(super) struct Round<'a> {
    pub(super) weir: (&'a Path, &'a RunningServers),
    pub(super) request: &'a RoundRequest<'a>,
    pub(super) deadlines: &'a Deadlines,
    /// Number of the first server.
    pub(super) number: u64,
    /// The programs that slices of evidence may let into the kernel; `None` where they may not.
    pub(super) programs: Option<&'a LoadedPrograms>,
}

/// What observes a slice of evidence, beside the clocks and counters that are always there.
#[derive(Clone, Copy)]
enum By<'a> {
    Clocks,
    Readings,
    Programs(&'a [ladder::Group], &'a LoadedPrograms),
    /// With the program that runs it as a supervisor.
    Strace(&'a Path),
}

/// Groups whose cost can be told from slices without them: calls alone, and with one further group each.
const FEWER_GROUPS: [&[ladder::Group]; 4] = [
    &[ladder::Group::Calls],
    &[ladder::Group::Calls, ladder::Group::Scheduling],
    &[ladder::Group::Calls, ladder::Group::Uring],
    &[ladder::Group::Calls, ladder::Group::Softirqs],
];

/// One arm in a round.
struct Arm {
    server: Option<Server>,
    /// Held until the server is gone.
    files: Option<TrialFiles>,
    pid: u32,
    /// Whose CPU is read.
    cpu: ServerCpu,
    /// Whether it ran before the study.
    ran_before: bool,
    /// The process that cleans up after a foreign server, which goes on while the others are stopped.
    supervisor: Option<u32>,
    /// From the last answer until its threads make no further call.
    settle: Duration,
    stats: Option<StatsClient>,
    failure: Option<TrialFailure>,
    slices: Vec<SliceRecord>,
    evidence: Vec<EvidenceSlice>,
    total: TreeDelta,
    engine: Option<EngineStats>,
    /// After all that is timed: its resident memory, and its part of the kernel's.
    memory: (u64, Option<u64>),
    /// Of each of its workers, when its counters were last read; empty of servers that have none.
    connections_by_worker: Vec<u64>,
    /// CPU when its last slice ended, and when that was.
    left: (u64, Instant),
    /// CPU when its last turn began, and when that was.
    entered: (u64, Instant),
    works_while_waiting: bool,
    is_stopped: bool,
}

impl Round<'_> {
    /// One result for each arm. Servers and generator are gone when this returns.
    pub(super) fn run(&self, files: &mut Files) -> Result<Vec<Result<Sliced, TrialFailure>>, LaunchError> {
        let kernel_bytes = memory::kernel_bytes();
        let mut arms = self.start_all(files)?;
        let loaded = self.load(&mut arms, kernel_bytes);
        for arm in &mut arms {
            arm.go_on();
            if let Some(server) = arm.server.take() {
                if let Some(failure) = &mut arm.failure {
                    server.explain(failure);
                }
                let failure = server.stop(self.deadlines);
                arm.failure = arm.failure.take().or(failure);
            }
        }
        let reports = loaded?;
        let outcome = |(arm, report): (Arm, Option<LoadReport>)| match (arm.failure, report) {
            (Some(failure), _) => Err(failure),
            (None, Some(report)) => {
                Ok(Sliced { report: Box::new(report), slices: arm.slices, evidence: arm.evidence })
            }
            (None, None) => Err(TrialFailure::Load { reason: "it gave no report".to_owned() }),
        };
        Ok(arms.into_iter().zip(reports).map(outcome).collect())
    }

    fn start_all(&self, files: &mut Files) -> Result<Vec<Arm>, LaunchError> {
        let mut arms = Vec::with_capacity(self.request.arms.len());
        for (position, spec) in (0_u32..).zip(self.request.arms) {
            let request = self.request.of_arm(spec, position);
            let starts = protocol::of(request.cell).servers(&request);
            let files = files.prepare(&request, &starts)?;
            let number = self.number + u64::from(position);
            arms.push(match Server::start(self.weir, &request, (&starts, &files), number, self.deadlines) {
                Ok(server) => Arm::of(server, files, spec.subject.driver()),
                Err(NoServer::Failed(failure)) => Arm::failed(failure),
                Err(NoServer::Stop(error)) => return Err(error),
            });
        }
        Ok(arms)
    }

    /// Loads the arms in turn and gives the report of each that was loaded. The kernel had so much memory before any of
    /// them started.
    fn load(
        &self,
        arms: &mut [Arm],
        kernel_bytes: Option<u64>,
    ) -> Result<Vec<Option<LoadReport>>, LaunchError> {
        let there: Vec<usize> = (0..arms.len()).filter(|arm| arms[*arm].failure.is_none()).collect();
        let mut reports: Vec<Option<LoadReport>> = vec![None; arms.len()];
        if there.is_empty() {
            return Ok(reports);
        }
        let mut generator = match Generator::start(self, arms, &there) {
            Ok(generator) => generator,
            Err(error) => return error.into_reports(arms, &there, reports),
        };
        begin_waiting(arms);
        if let Err(error) = self.warm_up(&mut generator, arms, &there) {
            return error.into_reports(arms, &there, reports);
        }
        let before = noise_edge(arms);
        for (permutation, order) in (0_u32..).zip(self.request.orders) {
            let turns =
                order.iter().filter_map(|arm| there.iter().position(|it| it == arm).map(|it| (*arm, it)));
            for (place, (index, target)) in (0_u32..).zip(turns) {
                let arm = &mut arms[index];
                if arm.failure.is_some() {
                    continue;
                }
                match self.slice(&mut generator, arm, target, (permutation, place)) {
                    Ok(None) => continue,
                    Ok(Some(slice)) => arm.slices.push(slice),
                    Err(error) => return error.into_reports(arms, &there, reports),
                }
                arm.look_after();
                share_turn(arms, index);
            }
        }
        let noise = before.and_then(|before| Some(before.until(&noise_edge(arms)?).noise));
        let kernel_bytes = taken_each(kernel_bytes, there.len());
        for arm in arms.iter_mut().filter(|arm| arm.failure.is_none()) {
            arm.memory = (arm.cpu.pss_bytes(), kernel_bytes);
        }
        if let Err(error) = self.evidence(&mut generator, arms, &there) {
            return error.into_reports(arms, &there, reports);
        }
        match generator.finish(self) {
            Ok(found) => {
                for (index, report) in there.iter().copied().zip(found) {
                    reports[index] = Some(arms[index].completed(report, noise.unwrap_or_default()));
                }
                Ok(reports)
            }
            Err(error) => error.into_reports(arms, &there, reports),
        }
    }

    /// Loads the arms that must be warm, each for as long as it says, before anything is timed.
    fn warm_up(&self, generator: &mut Generator, arms: &mut [Arm], there: &[usize]) -> Result<(), Broken> {
        for (target, index) in there.iter().copied().enumerate() {
            let (length_ns, arm) = (self.request.arms[index].warmup_ns, &mut arms[index]);
            if length_ns == 0 || arm.failure.is_some() {
                continue;
            }
            let Some(waited) = self.prime(generator, arm, target)? else { continue };
            let load = SliceLoad { length_ns, is_timed: false, arrivals: Arrivals::WarmUp };
            self.run_slice(generator, arm, target, load)?;
            arm.leave(&waited);
            arm.look_after();
            share_turn(arms, index);
        }
        Ok(())
    }

    /// One turn of an arm; `None` where it failed before the slice began.
    fn slice(
        &self,
        generator: &mut Generator,
        arm: &mut Arm,
        target: usize,
        (permutation, place): (u32, u32),
    ) -> Result<Option<SliceRecord>, Broken> {
        let Some(waited) = self.prime(generator, arm, target)? else { return Ok(None) };
        let counters = arm.counters();
        let length_ns = self.request.alternation.slice_ns;
        let load = SliceLoad { length_ns, is_timed: true, arrivals: Arrivals::Timed(permutation) };
        let ran = self.run_slice(generator, arm, target, load)?;
        arm.add(&ran.before, &ran.after, counters);
        arm.leave(&waited);
        Ok(Some(SliceRecord { permutation, place, ..ran.record(&waited) }))
    }

    /// After all that is timed: every arm once more by its clocks and free counters, and once observed by more where
    /// that can be had. The baseline's second server is the first over again.
    fn evidence(&self, generator: &mut Generator, arms: &mut [Arm], there: &[usize]) -> Result<(), Broken> {
        let Some(length_ns) = self.request.evidence_slice_ns else { return Ok(()) };
        let pairs = self.request.evidence_pairs;
        let turns = (0..pairs).flat_map(|pair| there.iter().copied().enumerate().map(move |it| (pair, it)));
        for (pair, (target, index)) in turns {
            let name = &self.request.arms[index].name;
            let arm = &arms[index];
            let is_again = self.request.arms[..index].iter().any(|it| it.name == *name);
            // Observers follow a process, which a control group is not.
            let is_process = matches!(arm.cpu, ServerCpu::Process(_));
            if arm.failure.is_some() || is_again || !is_process {
                continue;
            }
            let mut looks = self.looks(target, pair);
            // Last, because nobody knows what it leaves behind.
            let is_under_strace = self.request.evidence_strace && pair + 1 == pairs;
            looks.extend(is_under_strace.then_some(By::Strace(self.weir.0)));
            for (place, by) in (0_u32..).zip(looks) {
                self.observed(generator, (&mut arms[index], target), (by, (pair, place)), length_ns)?;
                share_turn(arms, index);
                if arms[index].failure.is_some() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// A pair of an arm's slices of evidence, with what stands beside it, in an order in which none goes first always.
    fn looks(&self, target: usize, pair: u32) -> Vec<By<'_>> {
        let mut looks = vec![By::Clocks];
        looks.extend(self.request.evidence_by_group.then_some(By::Readings));
        if let Some(loaded) = self.programs {
            looks.push(By::Programs(&ladder::Group::ALL, loaded));
            let fewer = FEWER_GROUPS.iter().filter(|_| self.request.evidence_by_group);
            looks.extend(fewer.map(|groups| By::Programs(groups, loaded)));
        }
        let seed = derived_seed(self.request.seed, (u64::from(pair) << 32 | u64::from(number(target))) + 2);
        Random::seeded(seed).shuffle(&mut looks);
        looks
    }

    /// One slice of evidence.
    fn observed(
        &self,
        generator: &mut Generator,
        (arm, target): (&mut Arm, usize),
        (by, (permutation, place)): (By<'_>, (u32, u32)),
        length_ns: u64,
    ) -> Result<(), Broken> {
        let Some(waited) = self.prime(generator, arm, target)? else { return Ok(()) };
        let mut observers = arm.observers(by);
        sleep(arm.settle);
        observers.begin();
        let load = SliceLoad { length_ns, is_timed: false, arrivals: Arrivals::Evidence(permutation) };
        let ran = self.run_slice(generator, arm, target, load)?;
        let (rung, readings) = observers.end();
        arm.leave(&waited);
        let slice = SliceRecord { permutation, place, ..ran.record(&waited) };
        arm.evidence.push(EvidenceSlice { rung, slice, readings });
        arm.look_after();
        Ok(())
    }

    /// An arm's turn begins: some messages, after which its connections are there and warm. `None` where most of them
    /// were not answered, which is the arm's failure.
    fn prime(
        &self,
        generator: &mut Generator,
        arm: &mut Arm,
        target: usize,
    ) -> Result<Option<Waited>, Broken> {
        let waited = arm.enter();
        let messages_each = self.request.alternation.prime_messages;
        let primed = generator.done(self, SliceCommand::Prime { target: number(target), messages_each })?;
        if let Some(reason) = unanswered(self.request.cell, messages_each, &primed) {
            arm.failure = Some(arm.silence(reason));
            return Ok(None);
        }
        Ok(Some(Waited { reopened: primed.reopened, ..waited }))
    }

    fn run_slice(
        &self,
        generator: &mut Generator,
        arm: &Arm,
        target: usize,
        SliceLoad { length_ns, is_timed, arrivals }: SliceLoad,
    ) -> Result<Ran, Broken> {
        sleep(SETTLE);
        let before = arm.edge(generator, is_timed);
        let arrivals_seed = arrivals.seed(self.request.seed);
        let run = SliceCommand::Run { target: number(target), length_ns, is_timed, arrivals_seed };
        let counts = generator.done(self, run)?;
        sleep(if is_timed { SETTLE } else { arm.settle });
        Ok(Ran { before, after: arm.edge(generator, is_timed), counts })
    }
}

/// How a slice is loaded.
#[derive(Clone, Copy)]
struct SliceLoad {
    length_ns: u64,
    /// Whether it is in the report on its arm.
    is_timed: bool,
    arrivals: Arrivals,
}

/// Which slices an open loop loads with the same arrivals: those of one permutation, which are compared with each
/// other.
#[derive(Clone, Copy)]
enum Arrivals {
    WarmUp,
    Timed(u32),
    Evidence(u32),
}

impl Arrivals {
    fn seed(self, round: u64) -> u64 {
        let slice = match self {
            Self::WarmUp => 0,
            Self::Timed(permutation) => 1 << 32 | u64::from(permutation),
            Self::Evidence(pair) => 2 << 32 | u64::from(pair),
        };
        derived_seed(round, slice)
    }
}

/// Clocks at one edge of a slice.
struct SliceEdge {
    server: CpuEdge,
    generator_cpu_ns: u64,
    softirq_cpu_ns: u64,
    segments_sent: u64,
}

/// What an arm did since its slice before.
struct Waited {
    cpu_ns: u64,
    length: Duration,
    /// Whether it was stopped meanwhile.
    stopped: bool,
    /// Connections that had to be opened again.
    reopened: u32,
}

/// A slice with its edges.
struct Ran {
    before: SliceEdge,
    after: SliceEdge,
    counts: SliceCounts,
}

impl Ran {
    fn record(&self, waited: &Waited) -> SliceRecord {
        let Self { before, after, counts } = self;
        let server_cpu_ns = before.server.until(&after.server).cpu_ns;
        let generator_cpu_ns = after.generator_cpu_ns.saturating_sub(before.generator_cpu_ns);
        let softirq_cpu_ns = after.softirq_cpu_ns.saturating_sub(before.softirq_cpu_ns);
        SliceRecord {
            permutation: 0,
            place: 0,
            length_ns: counts.length_ns,
            messages: counts.messages,
            server_cpu_ns,
            machine_cpu_ns: server_cpu_ns + generator_cpu_ns + softirq_cpu_ns,
            generator_cpu_ns: counts.generator_cpu_ns,
            waiting_cpu_ns: waited.cpu_ns,
            waiting_ns: u64::try_from(waited.length.as_nanos()).unwrap_or(u64::MAX),
            stopped: waited.stopped,
            errors: counts.failures.errors(),
            missed_starts: counts.missed_starts,
            reopened: waited.reopened,
            segments: after.segments_sent.saturating_sub(before.segments_sent),
        }
    }
}

/// Arms wait from here on: what they did to start and to take their connections is no part of it, or most of them would
/// pass for arms that work while they wait.
fn begin_waiting(arms: &mut [Arm]) {
    let mut arms: Vec<&mut Arm> = arms.iter_mut().filter(|arm| arm.failure.is_none()).collect();
    let used = |arms: &[&mut Arm]| -> u64 { arms.iter().map(|arm| arm.cpu.ns()).sum() };
    let deadline = Instant::now() + REST_MAX;
    let mut before = used(&arms);
    while Instant::now() < deadline {
        sleep(REST_LOOK);
        let now = used(&arms);
        if now == before {
            break;
        }
        before = now;
    }
    for arm in &mut arms {
        arm.left = (arm.cpu.ns(), Instant::now());
    }
}

/// Takes the turn of an arm out of what others wait whose server is the same process.
fn share_turn(arms: &mut [Arm], index: usize) {
    let (cpu, entered, left) = (arms[index].cpu.clone(), arms[index].entered, arms[index].left);
    // One that failed in its turn has not left it, and is loaded no more.
    if arms[index].failure.is_some() || !arms[index].ran_before {
        return;
    }
    let (used_ns, length) = (left.0.saturating_sub(entered.0), left.1.saturating_duration_since(entered.1));
    for (other, arm) in arms.iter_mut().enumerate() {
        if other != index && arm.cpu == cpu {
            arm.left = (arm.left.0 + used_ns, arm.left.1 + length);
        }
    }
}

/// The machine at one edge of all that is timed. Servers that ran before are no children of the laboratory's, and are
/// looked for at each edge: they may start others meanwhile.
fn noise_edge(arms: &[Arm]) -> Option<Edge> {
    let serving: Vec<u32> = arms.iter().filter(|arm| arm.ran_before).flat_map(|arm| arm.cpu.pids()).collect();
    Edge::read_serving(std::process::id(), &serving).ok()
}

fn number(target: usize) -> u32 {
    u32::try_from(target).unwrap_or(u32::MAX)
}

/// What the kernel took since then, for each of these servers and its connections.
fn taken_each(before: Option<u64>, servers: usize) -> Option<u64> {
    Some(memory::kernel_bytes()?.saturating_sub(before?) / u64::try_from(servers.max(1)).ok()?)
}

impl Arm {
    fn of(server: Server, files: TrialFiles, driver: Option<&str>) -> Self {
        let (pid, cpu) = (server.observed_pid().unwrap_or_default(), server.cpu());
        let (supervisor, ran_before) = (server.supervisor(), server.ran_before());
        let stats = server.stats_socket.as_deref().and_then(|name| StatsClient::connect(name).ok());
        let left = (cpu.ns(), Instant::now());
        let settle = if driver == Some("blocking") { SETTLE_BLOCKING } else { SETTLE };
        let (server, files) = (Some(server), Some(files));
        Self { server, files, pid, cpu, ran_before, supervisor, settle, stats, left, ..Self::empty() }
    }

    fn failed(failure: TrialFailure) -> Self {
        Self { failure: Some(failure), ..Self::empty() }
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
            failure: None,
            slices: Vec::new(),
            evidence: Vec::new(),
            total: TreeDelta::default(),
            engine: None,
            memory: (0, None),
            connections_by_worker: Vec::new(),
            left: (0, Instant::now()),
            entered: (0, Instant::now()),
            works_while_waiting: false,
            is_stopped: false,
        }
    }

    /// Its turn begins: what it used while it waited, and how long that was.
    fn enter(&mut self) -> Waited {
        let (cpu_ns, at) = self.left;
        self.entered = (self.cpu.ns(), Instant::now());
        let waited = Waited {
            cpu_ns: self.entered.0.saturating_sub(cpu_ns),
            length: at.elapsed(),
            stopped: self.is_stopped,
            reopened: 0,
        };
        self.go_on();
        waited
    }

    /// Its turn ends. One that worked while it waited is stopped until its next turn.
    fn leave(&mut self, waited: &Waited) {
        let share = waited.cpu_ns as f64 / waited.length.as_nanos().max(1) as f64;
        let works = waited.length >= WAITING_MIN && share > WAITING_SHARE_MAX;
        self.works_while_waiting |= works && !self.ran_before;
        if self.works_while_waiting {
            suspend::suspend(self.pid, self.supervisor);
            self.is_stopped = true;
        }
        // Read when it is stopped: of a thread that is on a CPU the clock lags.
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

    /// What the clocks say. That of a thread which never sleeps is right while it is stopped, which nobody may be that
    /// something observes: a tracer would take part in it.
    fn edge(&self, generator: &Generator, is_timed: bool) -> SliceEdge {
        let stops = is_timed && self.works_while_waiting;
        if stops {
            suspend::suspend(self.pid, self.supervisor);
        }
        let edge = SliceEdge {
            // The death of a server is found after the slice.
            server: self.cpu.edge(),
            generator_cpu_ns: family_cpu_ns(generator.group.pid()),
            softirq_cpu_ns: cpu_ns_of(&generator.softirq),
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

    /// All that can be observed of it, or what costs it nothing: what it says of itself first, because asking wakes it.
    fn observers<'a>(&self, by: By<'a>) -> Observers<'a> {
        let mut observers = Observers::default();
        let socket = self.server.as_ref().and_then(|server| server.stats_socket.as_deref());
        if let Some(stats) = socket.and_then(|name| StatsClient::connect(name).ok()) {
            // For accounts, which are of slices that everything watches. In the others the clock would pass for a cost
            // of the programs.
            let is_timed = matches!(by, By::Programs(groups, _) if groups == ladder::Group::ALL);
            observers.push(Box::new(EngineCounters::new(stats, is_timed)));
        }
        observers.push(Box::new(Network::new(self.pid)));
        observers.push(Box::new(Processes::new(self.pid)));
        match by {
            By::Clocks => {}
            By::Readings => observers.push(Box::new(RepeatedReadings::new(self.pid))),
            By::Programs(groups, loaded) => {
                observers.push(Box::new(Programs::new(self.pid, groups, loaded)));
            }
            By::Strace(weir) => {
                let supervisor = supervise::words(weir);
                observers.push(Box::new(UnderStrace::new(self.pid, supervisor)));
            }
        }
        observers
    }

    /// Why it does not answer: it may be about to end, and what it says then tells more.
    fn silence(&mut self, reason: String) -> TrialFailure {
        if let Some(server) = &mut self.server
            && server.is_ending()
        {
            return server.death();
        }
        TrialFailure::Server { reason }
    }

    /// Finds out whether the slice was its end.
    fn look_after(&mut self) {
        if !self.still_runs() {
            self.failure = Some(self.death());
        }
    }

    fn still_runs(&mut self) -> bool {
        self.server.as_mut().is_some_and(Server::still_runs)
    }

    fn death(&mut self) -> TrialFailure {
        let gone = || TrialFailure::Server { reason: "it was not there".to_owned() };
        self.server.as_mut().map_or_else(gone, Server::death)
    }

    /// The generator's report with what was observed of the server.
    fn completed(&self, mut report: LoadReport, noise: weir_record::machine::NoiseWindow) -> LoadReport {
        let mut observed = ObservedWindow { engine: self.engine, noise, ..ObservedWindow::default() };
        self.total.fill(&mut observed);
        (observed.pss_bytes, observed.kernel_bytes) = self.memory;
        observed.connections_by_worker.clone_from(&self.connections_by_worker);
        observed.noise.machine_busy_ns = self.slices.iter().map(|slice| slice.machine_cpu_ns).sum();
        report.observed = Some(observed);
        report
    }
}

/// Why a round ends before its time.
enum Broken {
    /// The generator failed.
    Load(String),
    Stop(LaunchError),
}

impl Broken {
    /// Every arm that was to be loaded has failed, unless the session must stop. An arm whose server died is told as
    /// that, because a generator may well fail over it.
    fn into_reports(
        self,
        arms: &mut [Arm],
        there: &[usize],
        reports: Vec<Option<LoadReport>>,
    ) -> Result<Vec<Option<LoadReport>>, LaunchError> {
        let reason = match self {
            Self::Stop(error) => return Err(error),
            Self::Load(reason) => reason,
        };
        for index in there {
            let arm = &mut arms[*index];
            if arm.failure.is_none() {
                let failure = if arm.still_runs() {
                    TrialFailure::Load { reason: reason.clone() }
                } else {
                    arm.death()
                };
                arm.failure = Some(failure);
            }
        }
        Ok(reports)
    }
}

/// Why an arm is not loaded further: not even half of what it was primed with was answered. A server that loses a few
/// messages is loaded, and its trial says so.
fn unanswered(cell: &CellSpec, messages_each: u32, primed: &SliceCounts) -> Option<String> {
    let asked = u64::from(cell.connections) * u64::from(messages_each);
    let why = primed.failure_last.as_deref().unwrap_or("its connections ended");
    (2 * primed.messages < asked).then(|| format!("answered {} of {asked} messages: {why}", primed.messages))
}

#[cfg(test)]
mod tests {
    use weir_judge::sample;

    use super::*;

    #[test]
    fn an_arm_is_given_up_for_a_round_that_answers_less_than_half_of_what_it_is_primed_with() {
        let study = sample::study(&["epoll", "uring"], 6, 1);
        let cell = CellSpec { connections: 100, ..study.cells[0].clone() };
        let reason = |messages: u64| {
            let failure_last = Some("no answer within 5s".to_owned());
            unanswered(&cell, 2, &SliceCounts { messages, failure_last, ..SliceCounts::default() })
        };
        assert_eq!([reason(200), reason(196), reason(100)], [None, None, None], "a few may be lost");
        // A server that serves one connection to its end before it takes the next.
        assert_eq!(reason(2).as_deref(), Some("answered 2 of 200 messages: no answer within 5s"));
        assert!(unanswered(&cell, 2, &SliceCounts::default()).is_some_and(|it| it.contains("ended")));
    }
}
