//! The server's side of a trial: the processes that the protocol names, each `weir serve` or a foreign command under
//! a supervisor.

use std::{
    collections::BTreeMap,
    io, iter,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::Path,
    process::Command,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use weir_record::spec::Ready;
use weir_sys::local_port;

use super::{
    Deadlines,
    files::TrialFiles,
    group::{Bond, Group, Refusal, TICK},
    neighbour::{self, Neighbour},
    running::{Held, RunningServers},
    server_cpu::ServerCpu,
    surroundings::{self, Surroundings},
};
use crate::{
    host_defaults::cpu_list,
    launch::{LaunchError, TrialFailure, TrialRequest},
    protocol::start::{LISTEN, Program, STATS_SOCKET, ServerStart, UPSTREAM},
    supervise,
};
use rustix::process::Signal;

/// Where servers listen unless another host loads them.
pub(crate) const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Values that the servers' machine provides.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The program whose `serve` and `supervise` are run.
    pub(crate) weir: &'a Path,
    /// Servers that ran before the study.
    pub(crate) running: &'a RunningServers,
    /// Address of this machine on which the other servers listen.
    pub(crate) address: IpAddr,
}

/// A server that accepts connections.
pub(crate) struct Server {
    process: Process,
    /// Dropped after the process.
    surroundings: Surroundings,
    /// Its name among the processes of a trial.
    name: &'static str,
    /// Where it listens.
    pub(crate) address: String,
    /// Abstract socket that answers with engine counters, for Weir's own servers.
    pub(crate) stats_socket: Option<String>,
    /// The server behind this one, to which it connects.
    pub(super) behind: Option<Box<Server>>,
    /// Processes beside it.
    neighbours: Vec<Neighbour>,
}

/// The process that serves.
enum Process {
    /// A child with its descendants. A foreign server is below a supervisor, which is the child.
    Child(Box<Group>, Program),
    /// A process that ran before the study.
    Running(Box<Held>),
}

impl Process {
    fn has_ended(&self) -> bool {
        match self {
            Self::Child(group, _) => group.has_ended(),
            Self::Running(held) => held.has_ended(),
        }
    }

    /// Waits at most this long until it has ended by itself.
    fn wait(&mut self, longest: Duration) -> bool {
        match self {
            Self::Child(group, _) => group.wait(longest),
            Self::Running(held) => {
                let deadline = Instant::now() + longest;
                while !held.has_ended() && Instant::now() < deadline {
                    std::thread::park_timeout(TICK);
                }
                held.has_ended()
            }
        }
    }

    fn drain(&mut self) {
        if let Self::Child(group, _) = self {
            group.drain();
        }
    }

    /// The end of a foreign server's output.
    fn said(&self) -> String {
        match self {
            Self::Child(group, Program::Foreign) => group.said(),
            Self::Child(_, Program::Weir) | Self::Running(_) => String::new(),
        }
    }

    /// Why it ended by itself.
    fn exit_reason(&mut self) -> String {
        match self {
            Self::Child(group, _) => group.exit_reason(),
            Self::Running(held) => format!("lost its server: {}", held.exit_reason()),
        }
    }

    /// Ends it: politely first, by force after `longest`. A server that ran before the study goes on.
    fn end(&mut self, longest: Duration) {
        let Self::Child(group, program) = self else { return };
        match program {
            Program::Weir => group.signal(Signal::TERM),
            Program::Foreign => group.say(supervise::END_POLITELY),
        }
        group.wait(longest);
    }
}

/// Why there is no server: the trial failed, or the session must stop.
pub(crate) enum NoServer {
    Failed(TrialFailure),
    Stop(LaunchError),
}

impl Server {
    /// Starts servers one after the other and returns the last, with its neighbours, when it is ready.
    pub(crate) fn start(
        place: Place<'_>,
        request: &TrialRequest<'_>,
        (starts, files): (&[ServerStart], &TrialFiles),
        number: u64,
        deadlines: &Deadlines,
    ) -> Result<Self, NoServer> {
        let server = match request.arm.running() {
            Some(_) => Self::running(place.running.hold(&request.arm.name).map_err(NoServer::Failed)?),
            None => Self::start_alone(place, request, (starts, files), number, deadlines)?,
        };
        match neighbour::start_all(place.weir, request, files, &server.address, deadlines) {
            Ok(neighbours) => Ok(Self { neighbours, ..server }),
            Err(failure) => {
                // The first failure is reported.
                let _ = server.stop(deadlines);
                Err(failure)
            }
        }
    }

    /// A server that ran before the study.
    fn running(held: Held) -> Self {
        Self {
            address: held.found.address.to_string(),
            process: Process::Running(Box::new(held)),
            surroundings: Surroundings::default(),
            name: "server",
            stats_socket: None,
            behind: None,
            neighbours: Vec::new(),
        }
    }

    fn start_alone(
        place: Place<'_>,
        request: &TrialRequest<'_>,
        (starts, files): (&[ServerStart], &TrialFiles),
        number: u64,
        deadlines: &Deadlines,
    ) -> Result<Self, NoServer> {
        let mut behind: Option<Self> = None;
        for (index, start) in starts.iter().enumerate() {
            let filled =
                FilledStart::new(place, request, start, behind.as_ref(), (files, number), deadlines)?;
            let server = Self::start_one(place, request, filled, behind.take());
            let is_behind = index + 1 < starts.len();
            behind = Some(
                server.map_err(|failure| if is_behind { of_name(failure, start.name) } else { failure })?,
            );
        }
        behind.ok_or_else(|| {
            let reason = format!("arm {} serves no connections", request.arm.name);
            NoServer::Stop(LaunchError::Usage(reason))
        })
    }

    fn start_one(
        place: Place<'_>,
        request: &TrialRequest<'_>,
        start: FilledStart,
        behind: Option<Self>,
    ) -> Result<Self, NoServer> {
        let FilledStart { name, program, words, build, stats_socket, port, mut surroundings } = start;
        surroundings.set_up(request.interrupt)?;
        let mut command = Command::new(build.as_deref().map_or(place.weir, Path::new));
        let bond = match program {
            Program::Weir => Bond::Dies,
            Program::Foreign => {
                command.args(supervise::arguments(request.server_cpus));
                Bond::CleansUp
            }
        };
        command.args(words);
        surroundings.dress(&mut command);
        let mut group = Box::new(spawn(&mut command, request, bond)?);
        if let Ready::Line(text) = &surroundings.ready {
            group.await_line(text);
        }
        let mut server = Self {
            process: Process::Child(group, program),
            surroundings,
            name,
            address: String::new(),
            stats_socket,
            behind: behind.map(Box::new),
            neighbours: Vec::new(),
        };
        server.address =
            server.until_ready(request, port.map(|port| SocketAddr::new(place.address, port)))?;
        Ok(server)
    }

    /// Waits until it is ready, and returns the address on which it listens.
    fn until_ready(
        &mut self,
        request: &TrialRequest<'_>,
        address: Option<SocketAddr>,
    ) -> Result<String, NoServer> {
        let Process::Child(group, program) = &mut self.process else { return Ok(self.address.clone()) };
        let deadline = Instant::now() + self.surroundings.ready_within;
        let mut probe = Probe::default();
        loop {
            if request.interrupt.load(Ordering::Relaxed) {
                return Err(NoServer::Stop(LaunchError::Interrupted));
            }
            group.tick();
            let address = match address {
                None => group.stdout.line_after("listening on "),
                Some(address) => {
                    let is_ready = probe.is_ready(group, &self.surroundings, address)?;
                    is_ready.then(|| address.to_string())
                }
            };
            if let Some(address) = address {
                return Ok(address);
            }
            if group.has_ended() {
                return Err(refusal(group, *program, &request.arm.name));
            }
            if Instant::now() >= deadline {
                return Err(failed(probe.too_late(group, &self.surroundings)));
            }
        }
    }

    /// The process whose CPU is the server's: Weir's own process, the foreign server below the supervisor, or the
    /// server that ran before the study.
    pub(crate) fn cpu(&self) -> ServerCpu {
        match &self.process {
            Process::Child(..) => ServerCpu::Process(self.observed_pid().unwrap_or_default()),
            Process::Running(held) => held.found.cpu.clone(),
        }
    }

    /// Process that is observed as the server; `None` for a control group.
    pub(crate) fn observed_pid(&self) -> Option<u32> {
        match &self.process {
            Process::Child(group, program) => {
                let own = group.pid();
                match (program, supervise::children(own).as_slice()) {
                    (Program::Foreign, [only]) => Some(*only),
                    _ => Some(own),
                }
            }
            Process::Running(held) => match held.found.cpu {
                ServerCpu::Process(pid) => Some(pid),
                ServerCpu::Group(_) => None,
            },
        }
    }

    /// Whether it ran before the study, and is therefore never stopped.
    pub(crate) fn ran_before(&self) -> bool {
        matches!(self.process, Process::Running(_))
    }

    /// Our process above a foreign server. It ends the server's processes when this process is gone, and must
    /// therefore never be suspended.
    pub(crate) fn supervisor(&self) -> Option<u32> {
        match &self.process {
            Process::Child(group, Program::Foreign) => Some(group.pid()),
            Process::Child(_, Program::Weir) | Process::Running(_) => None,
        }
    }

    /// This server and all servers behind it.
    pub(super) fn chain(&self) -> impl Iterator<Item = &Self> {
        iter::successors(Some(self), |server| server.behind.as_deref())
    }

    /// Our other processes beside it, by name: the servers behind it and its neighbours.
    pub(super) fn beside(&self) -> impl Iterator<Item = (&str, u32)> {
        let behind = self.chain().skip(1).filter_map(|server| Some((server.name, server.observed_pid()?)));
        behind.chain(self.neighbours.iter().map(Neighbour::process))
    }

    /// Reads its output and that of the processes beside it, so that none blocks on a full pipe.
    pub(crate) fn read_output(&mut self) {
        self.process.drain();
        if let Some(behind) = &mut self.behind {
            behind.read_output();
        }
        self.neighbours.iter_mut().for_each(Neighbour::read_output);
    }

    /// The same. Returns whether all of them still run.
    pub(crate) fn still_runs(&mut self) -> bool {
        self.process.drain();
        let behind_runs = self.behind.as_mut().is_none_or(|behind| behind.still_runs());
        let neighbours_run = self.neighbours.iter_mut().all(Neighbour::still_runs);
        !self.process.has_ended() && behind_runs && neighbours_run
    }

    /// Whether it ends within a moment: peers see the end of its connections before its parent sees its exit.
    pub(crate) fn is_ending(&mut self) -> bool {
        self.has_ended_soon() || !self.neighbours.iter_mut().all(Neighbour::still_runs)
    }

    fn has_ended_soon(&mut self) -> bool {
        self.process.wait(5 * TICK) || self.behind.as_mut().is_some_and(|it| it.process.has_ended())
    }

    /// The end of a foreign server's output: see [`explain`].
    pub(crate) fn said(&self) -> String {
        self.process.said()
    }

    /// The failure for its end during the load, or for the end of a process beside it. If the server ended, that is
    /// the cause: a neighbour often ends because its server did.
    pub(crate) fn death(&mut self) -> TrialFailure {
        let has_ended = self.has_ended_soon();
        let neighbour = self.neighbours.iter_mut().find_map(|it| (!it.still_runs()).then_some(it));
        match neighbour.filter(|_| !has_ended) {
            Some(neighbour) => neighbour.death(),
            None => TrialFailure::Server { reason: format!("during the load it {}", self.exit_reason()) },
        }
    }

    /// Why it ended by itself.
    fn exit_reason(&mut self) -> String {
        match &mut self.behind {
            Some(behind) if behind.process.has_ended() => {
                format!("lost its {}, which {}", behind.name, behind.process.exit_reason())
            }
            _ => self.process.exit_reason(),
        }
    }

    /// Ends it: politely first, by force after the deadline. When this returns, it and all its descendants are gone,
    /// and the command after it has run. Returns the failure of that command.
    pub(crate) fn stop(self, deadlines: &Deadlines) -> Option<TrialFailure> {
        let Self { mut process, mut surroundings, mut neighbours, behind, .. } = self;
        neighbours.clear();
        process.end(deadlines.stop);
        let behind = behind.and_then(|behind| behind.stop(deadlines));
        drop(process);
        let cleaned = surroundings.clean_up().err().map(|reason| TrialFailure::Server { reason });
        cleaned.or(behind)
    }
}

/// Adds a foreign server's output to the failure of its generator.
pub(crate) fn explain(failure: &mut TrialFailure, said: &str) {
    if let TrialFailure::Load { reason } = failure
        && !said.is_empty()
    {
        reason.push_str(&format!("; the server said: {said}"));
    }
}

/// What the exit of a server that never became ready means.
fn refusal(group: &mut Group, program: Program, arm: &str) -> NoServer {
    match group.refusal(program == Program::Weir) {
        Some(Refusal::Usage(said)) => NoServer::Stop(LaunchError::Usage(format!("arm {arm}: {said}"))),
        Some(Refusal::Environment(reason)) => NoServer::Failed(TrialFailure::ServerEnvironment { reason }),
        None => failed(group.exit_reason()),
    }
}

/// Checks whether a foreign server is ready.
#[derive(Default)]
struct Probe {
    /// A running command that checks readiness.
    command: Option<Group>,
    /// Why the last check failed.
    no: Option<String>,
}

impl Probe {
    fn is_ready(
        &mut self,
        server: &Group,
        surroundings: &Surroundings,
        address: SocketAddr,
    ) -> Result<bool, NoServer> {
        match &surroundings.ready {
            Ready::Port => Ok(local_port::accepts(address)),
            Ready::Line(_) => Ok(server.line_has_come()),
            Ready::Command(words) => self.ask(surroundings, words),
        }
    }

    /// Runs the command repeatedly; between two checks of it the server's output is read.
    fn ask(&mut self, surroundings: &Surroundings, words: &[String]) -> Result<bool, NoServer> {
        let Some(command) = &mut self.command else {
            let cannot = |error: io::Error| surroundings::cannot_start(&words[0], &error);
            let started = surroundings.start(words).map_err(cannot);
            self.command = started.map_err(|reason| failed(format!("its ready command {reason}")))?;
            return Ok(self.command.is_none());
        };
        command.drain();
        if !command.has_ended() {
            return Ok(false);
        }
        if let Some(reason) = surroundings::not_started(command, &words[0]) {
            return Err(failed(format!("its ready command {reason}")));
        }
        let is_ready = command.end().is_ok_and(|status| status.success());
        self.no = (!is_ready).then(|| surroundings::exit_reason(command));
        self.command = None;
        Ok(is_ready)
    }

    /// Why the wait for readiness was given up.
    fn too_late(&self, server: &Group, surroundings: &Surroundings) -> String {
        let within = format!("within {} s", surroundings.ready_within.as_secs_f64());
        let late = match (&surroundings.ready, &self.no) {
            (Ready::Port, _) => format!("did not accept connections {within}"),
            (Ready::Line(text), _) => format!("wrote no line with {text:?} {within}"),
            (Ready::Command(_), Some(no)) => format!("was not ready {within}: its ready command {no}"),
            (Ready::Command(_), None) => format!("was not ready {within}: its ready command did not end"),
        };
        match server.said() {
            said if said.is_empty() => late,
            said => format!("{late}: {said}"),
        }
    }
}

/// Adds the name of the process to its failure.
fn of_name(failure: NoServer, name: &str) -> NoServer {
    match failure {
        NoServer::Failed(TrialFailure::Server { reason }) => failed(format!("the {name} {reason}")),
        other => other,
    }
}

fn spawn(command: &mut Command, request: &TrialRequest<'_>, bond: Bond) -> Result<Group, NoServer> {
    super::vary_environment(command, request, "server");
    Group::start(command, bond).map_err(|error| {
        let program = command.get_program().display().to_string();
        NoServer::Stop(LaunchError::Environment(format!("cannot start {program}: {error}")))
    })
}

pub(super) fn failed(reason: String) -> NoServer {
    NoServer::Failed(TrialFailure::Server { reason })
}

/// The start of a server with the values filled in that are known only now.
struct FilledStart {
    name: &'static str,
    program: Program,
    words: Vec<String>,
    build: Option<String>,
    stats_socket: Option<String>,
    /// The port on which a foreign server is to listen.
    port: Option<u16>,
    surroundings: Surroundings,
}

impl FilledStart {
    fn new(
        place: Place<'_>,
        request: &TrialRequest<'_>,
        start: &ServerStart,
        behind: Option<&Server>,
        (files, number): (&TrialFiles, u64),
        deadlines: &Deadlines,
    ) -> Result<Self, NoServer> {
        let ServerStart { name, program, words, build } = start;
        let mut places = places(place.weir, request);
        let (mut stats_socket, mut port) = (None, None);
        match program {
            Program::Weir => {
                let socket = format!("@weir-{}-{number}-{name}", std::process::id());
                let upstream = behind.map(|behind| behind.address.clone()).unwrap_or_default();
                let listen = SocketAddr::new(place.address, 0).to_string();
                places.extend([(STATS_SOCKET, socket.clone()), (UPSTREAM, upstream), (LISTEN, listen)]);
                stats_socket = Some(socket);
            }
            Program::Foreign => {
                // If another process takes the port before the server does, the trial fails, and its block runs
                // again.
                let free = local_port::free_at(place.address);
                let free = free.map_err(|error| failed(format!("no free port: {error}")))?;
                let address = SocketAddr::new(place.address, free).to_string();
                places.extend([("{address}", address), ("{port}", free.to_string())]);
                port = Some(free);
            }
        }
        let fill = |word: &String| {
            let filled = places.iter().fold(word.clone(), |word, (place, value)| word.replace(place, value));
            files.substituted(&filled)
        };
        Ok(Self {
            name,
            program: *program,
            words: words.iter().map(fill).collect(),
            build: build.clone(),
            stats_socket,
            port,
            surroundings: Surroundings::new(place.weir, &request.arm.start, deadlines, fill),
        })
    }
}

/// The values that replace the placeholders in the words of every server.
fn places(weir: &Path, request: &TrialRequest<'_>) -> BTreeMap<&'static str, String> {
    let folder = weir.parent().map(|folder| folder.display().to_string()).unwrap_or_default();
    BTreeMap::from([
        ("{cpus}", cpu_list(request.server_cpus)),
        ("{workers}", request.cell.workers.to_string()),
        ("{bin}", folder),
    ])
}
