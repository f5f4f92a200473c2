//! The server's side of a trial: the processes that the protocol says, each `weir serve` or a foreign command under a
//! supervisor.

use std::{
    iter,
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::Command,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use super::{
    Deadlines,
    files::TrialFiles,
    group::{Bond, Group, Refusal, TICK},
    neighbour::{self, Neighbour},
};
use crate::{
    host_defaults::cpu_list,
    launch::{LaunchError, TrialFailure, TrialRequest},
    protocol::start::{Program, STATS_SOCKET, ServerStart, UPSTREAM},
    supervise,
};
use rustix::process::Signal;

/// Longest try to connect while waiting for a foreign server.
const CONNECT_TRY: Duration = Duration::from_millis(50);

/// A server that accepts connections.
pub(crate) struct Server {
    group: Group,
    /// What it is called among the processes of a trial.
    name: &'static str,
    /// A foreign server is below a supervisor, which is the child.
    program: Program,
    /// Where it listens.
    pub(crate) address: String,
    /// Abstract socket that answers with engine counters, for Weir's own servers.
    pub(crate) stats_socket: Option<String>,
    /// The server that this one stands before.
    pub(super) behind: Option<Box<Server>>,
    /// Processes beside it.
    neighbours: Vec<Neighbour>,
}

/// Why there is no server: the trial failed, or the session must stop.
pub(crate) enum NoServer {
    Failed(TrialFailure),
    Stop(LaunchError),
}

impl Server {
    /// Starts servers one after the other and gives the last, with its neighbours when it is ready.
    pub(crate) fn start(
        weir: &Path,
        request: &TrialRequest<'_>,
        (starts, files): (&[ServerStart], &TrialFiles),
        number: u64,
        deadlines: &Deadlines,
    ) -> Result<Self, NoServer> {
        let server = Self::start_alone(weir, request, (starts, files), number, deadlines)?;
        match neighbour::start_all(weir, request, files, &server.address, deadlines) {
            Ok(neighbours) => Ok(Self { neighbours, ..server }),
            Err(failure) => {
                server.stop(deadlines);
                Err(failure)
            }
        }
    }

    fn start_alone(
        weir: &Path,
        request: &TrialRequest<'_>,
        (starts, files): (&[ServerStart], &TrialFiles),
        number: u64,
        deadlines: &Deadlines,
    ) -> Result<Self, NoServer> {
        let mut behind: Option<Self> = None;
        for (index, start) in starts.iter().enumerate() {
            let filled = FilledStart::new(weir, request, start, behind.as_ref(), (files, number))?;
            let server = Self::start_one(weir, request, filled, behind.take(), deadlines);
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
        weir: &Path,
        request: &TrialRequest<'_>,
        start: FilledStart,
        behind: Option<Self>,
        deadlines: &Deadlines,
    ) -> Result<Self, NoServer> {
        let mut command = Command::new(start.build.as_deref().map_or(weir, Path::new));
        let bond = match start.program {
            Program::Weir => Bond::Dies,
            Program::Foreign => {
                command.args(supervise::arguments(request.server_cpus));
                Bond::CleansUp
            }
        };
        command.args(start.words);
        let server = Self {
            group: spawn(&mut command, request, bond)?,
            name: start.name,
            program: start.program,
            address: String::new(),
            stats_socket: start.stats_socket,
            behind: behind.map(Box::new),
            neighbours: Vec::new(),
        };
        let port = start.port;
        server.until_ready(request, deadlines, |server| match port {
            None => server.group.stdout.line_after("listening on "),
            Some(port) => {
                let address = SocketAddr::from(([127, 0, 0, 1], port));
                TcpStream::connect_timeout(&address, CONNECT_TRY).ok().map(|_| address.to_string())
            }
        })
    }

    fn until_ready(
        mut self,
        request: &TrialRequest<'_>,
        deadlines: &Deadlines,
        mut ready: impl FnMut(&mut Self) -> Option<String>,
    ) -> Result<Self, NoServer> {
        let deadline = Instant::now() + deadlines.ready;
        loop {
            if request.interrupt.load(Ordering::Relaxed) {
                return Err(NoServer::Stop(LaunchError::Interrupted));
            }
            self.group.tick();
            if let Some(address) = ready(&mut self) {
                self.address = address;
                return Ok(self);
            }
            if self.group.has_ended() {
                return Err(self.refusal(request));
            }
            if Instant::now() >= deadline {
                let waited = deadlines.ready.as_secs_f64();
                let mut reason = format!("did not accept connections within {waited} s");
                let said = self.group.said();
                if !said.is_empty() {
                    reason = format!("{reason}: {said}");
                }
                return Err(failed(reason));
            }
        }
    }

    /// What the exit of a server that never became ready means.
    fn refusal(mut self, request: &TrialRequest<'_>) -> NoServer {
        match self.group.refusal(self.program == Program::Weir) {
            Some(Refusal::Usage(said)) => {
                NoServer::Stop(LaunchError::Usage(format!("arm {}: {said}", request.arm.name)))
            }
            Some(Refusal::Environment(reason)) => {
                NoServer::Failed(TrialFailure::ServerEnvironment { reason })
            }
            None => failed(self.group.exit_reason()),
        }
    }

    /// Process whose CPU is the server's: its own, or the foreign server below the supervisor.
    pub(crate) fn observed_pid(&self) -> u32 {
        let own = self.group.pid();
        match (self.program, supervise::children(own).as_slice()) {
            (Program::Foreign, [only]) => *only,
            _ => own,
        }
    }

    /// The process of ours above a foreign server. It ends what is below it when this process is gone, and must
    /// therefore never be stopped.
    pub(crate) fn supervisor(&self) -> Option<u32> {
        (self.program == Program::Foreign).then(|| self.group.pid())
    }

    /// Itself, and all that stand behind it.
    pub(super) fn chain(&self) -> impl Iterator<Item = &Self> {
        iter::successors(Some(self), |server| server.behind.as_deref())
    }

    /// What runs beside it and is ours too, by name: what stands behind it, its neighbours.
    pub(super) fn beside(&self) -> impl Iterator<Item = (&str, u32)> {
        let behind = self.chain().skip(1).map(|server| (server.name, server.observed_pid()));
        behind.chain(self.neighbours.iter().map(Neighbour::process))
    }

    /// Reads its output, so that it never waits for us. Says whether it still runs.
    pub(crate) fn still_runs(&mut self) -> bool {
        self.group.stdout.drain();
        let behind_runs = self.behind.as_mut().is_none_or(|behind| behind.still_runs());
        let neighbours_run = self.neighbours.iter_mut().all(Neighbour::still_runs);
        !self.group.has_ended() && behind_runs && neighbours_run
    }

    /// Whether it ends within a moment: peers see the end of its connections before its parent sees its own.
    pub(crate) fn is_ending(&mut self) -> bool {
        self.has_ended_soon() || !self.neighbours.iter_mut().all(Neighbour::still_runs)
    }

    fn has_ended_soon(&mut self) -> bool {
        self.group.wait(5 * TICK) || self.behind.as_mut().is_some_and(|it| it.group.has_ended())
    }

    /// Adds what a foreign server said to the failure of its generator.
    pub(crate) fn explain(&self, failure: &mut TrialFailure) {
        let said = self.group.said();
        if let TrialFailure::Load { reason } = failure
            && self.program == Program::Foreign
            && !said.is_empty()
        {
            reason.push_str(&format!("; the server said: {said}"));
        }
    }

    /// What its end during the load means, or that of a process beside it: a neighbour may well end over a server that
    /// did.
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
            Some(behind) if behind.group.has_ended() => {
                format!("lost its {}, which {}", behind.name, behind.group.exit_reason())
            }
            _ => self.group.exit_reason(),
        }
    }

    /// Ends it: politely first, by force after the deadline. When this returns, it and all below it are gone.
    pub(crate) fn stop(mut self, deadlines: &Deadlines) {
        self.neighbours.clear();
        match self.program {
            Program::Weir => self.group.signal(Signal::TERM),
            Program::Foreign => self.group.say(supervise::END_POLITELY),
        }
        self.group.wait(deadlines.stop);
        if let Some(behind) = self.behind {
            behind.stop(deadlines);
        }
    }
}

/// Says whose failure it is.
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

fn failed(reason: String) -> NoServer {
    NoServer::Failed(TrialFailure::Server { reason })
}

/// A port that was free a moment ago. Nobody else on this machine picks it unless by chance; then the trial fails,
/// and its block runs again.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// The start of a server with everything filled in that is known only now.
struct FilledStart {
    name: &'static str,
    program: Program,
    words: Vec<String>,
    build: Option<String>,
    stats_socket: Option<String>,
    /// Where a foreign server is to listen.
    port: Option<u16>,
}

impl FilledStart {
    fn new(
        weir: &Path,
        request: &TrialRequest<'_>,
        start: &ServerStart,
        behind: Option<&Server>,
        (files, number): (&TrialFiles, u64),
    ) -> Result<Self, NoServer> {
        let ServerStart { name, program, words, build } = start;
        let build = build.clone();
        let filled =
            Self { name, program: *program, words: Vec::new(), build, stats_socket: None, port: None };
        match program {
            Program::Weir => {
                let socket = format!("@weir-{}-{number}-{name}", std::process::id());
                let upstream = behind.map_or("", |behind| &behind.address);
                let own = |word: &String| word.replace(STATS_SOCKET, &socket).replace(UPSTREAM, upstream);
                let words = words.iter().map(own).map(|word| files.substituted(&word)).collect();
                Ok(Self { words, stats_socket: Some(socket), ..filled })
            }
            Program::Foreign => {
                let port = free_port().map_err(|error| failed(format!("no free port: {error}")))?;
                let words = words.iter().map(|word| files.substituted(&foreign(word, weir, port, request)));
                Ok(Self { words: words.collect(), port: Some(port), ..filled })
            }
        }
    }
}

/// What the words of a foreign command stand for.
fn foreign(word: &str, weir: &Path, port: u16, request: &TrialRequest<'_>) -> String {
    let folder = weir.parent().map(|folder| folder.display().to_string()).unwrap_or_default();
    word.replace("{address}", &format!("127.0.0.1:{port}"))
        .replace("{port}", &port.to_string())
        .replace("{cpus}", &cpu_list(request.server_cpus))
        .replace("{workers}", &request.cell.workers.to_string())
        .replace("{bin}", &folder)
}
