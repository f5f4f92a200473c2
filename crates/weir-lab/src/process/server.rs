//! The server's side of a trial: `weir serve`, or a foreign command under a supervisor.

use std::{
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Command, ExitStatus},
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use weir_record::spec::{CellSpec, GatewaySubject, Subject};

use super::{
    Deadlines,
    files::TrialFiles,
    group::{Bond, Group, TICK},
    neighbour::{self, Neighbour},
    orders::{self, Upstream, Use},
};
use crate::{
    host_defaults::cpu_list,
    launch::{LaunchError, TrialFailure, TrialRequest},
    protocol, supervise,
};

/// Longest try to connect while waiting for a foreign server.
const CONNECT_TRY: Duration = Duration::from_millis(50);

/// Exit codes of `weir serve` that mean more than "it failed".
const EXIT_USAGE: i32 = 2;
const EXIT_ENVIRONMENT: i32 = 13;

/// A server that accepts connections.
pub(crate) struct Server {
    group: Group,
    kind: Kind,
    /// Where it listens.
    pub(crate) address: String,
    /// Abstract socket that answers with engine counters, for Weir's own servers.
    pub(crate) stats_socket: Option<String>,
    /// The exchange behind a gateway.
    pub(super) behind: Option<Box<Upstream>>,
    /// Processes beside it.
    neighbours: Vec<Neighbour>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Weir,
    /// A foreign server below a supervisor, which is the child.
    Supervised,
}

/// Why there is no server: the trial failed, or the session must stop.
pub(crate) enum NoServer {
    Failed(TrialFailure),
    Stop(LaunchError),
}

impl Server {
    /// Starts a server, and its neighbours when it is ready.
    pub(crate) fn start(
        weir: &std::path::Path,
        request: &TrialRequest<'_>,
        files: &TrialFiles,
        number: u64,
        deadlines: &Deadlines,
    ) -> Result<Self, NoServer> {
        let server = Self::start_alone(weir, request, files, number, deadlines)?;
        match neighbour::start_all(weir, request, files, &server.address, deadlines) {
            Ok(neighbours) => Ok(Self { neighbours, ..server }),
            Err(failure) => {
                server.stop(deadlines);
                Err(failure)
            }
        }
    }

    fn start_alone(
        weir: &std::path::Path,
        request: &TrialRequest<'_>,
        files: &TrialFiles,
        number: u64,
        deadlines: &Deadlines,
    ) -> Result<Self, NoServer> {
        match &request.arm.subject {
            Subject::Weir { driver, options, arguments } => {
                let stats_socket = format!("@weir-{}-{number}", std::process::id());
                let mut words = own_arguments(request, driver, &stats_socket);
                for (name, value) in options {
                    words.extend(["--option".to_owned(), format!("{name}={value}")]);
                }
                words.extend(arguments.iter().map(|word| files.substituted(word)));
                Self::start_own(weir, request, &words, (stats_socket, None), deadlines)
            }
            Subject::Gateway(subject) => {
                Self::start_gateway((weir, files), request, subject, number, deadlines)
            }
            Subject::Command { argv } => {
                let port = free_port().map_err(|error| failed(format!("no free port: {error}")))?;
                let mut command = Command::new(weir);
                command.args(supervise::arguments(request.server_cpus));
                command
                    .args(substituted(argv, weir, port, request).iter().map(|word| files.substituted(word)));
                let group = spawn(&mut command, request, Bond::CleansUp)?;
                let server = Self {
                    group,
                    kind: Kind::Supervised,
                    address: String::new(),
                    stats_socket: None,
                    behind: None,
                    neighbours: Vec::new(),
                };
                let address = SocketAddr::from(([127, 0, 0, 1], port));
                server.until_ready(request, deadlines, |_| {
                    TcpStream::connect_timeout(&address, CONNECT_TRY).ok().map(|_| address.to_string())
                })
            }
            Subject::Storage(_) | Subject::Fio { .. } => {
                let reason = format!("arm {} serves no connections", request.arm.name);
                Err(NoServer::Stop(LaunchError::Usage(reason)))
            }
        }
    }

    /// One of Weir's own servers, with these words.
    fn start_own(
        weir: &std::path::Path,
        request: &TrialRequest<'_>,
        words: &[String],
        (stats_socket, behind): (String, Option<Box<Upstream>>),
        deadlines: &Deadlines,
    ) -> Result<Self, NoServer> {
        let mut command = Command::new(weir);
        command.args(words);
        let group = spawn(&mut command, request, Bond::Dies)?;
        let server = Self {
            group,
            kind: Kind::Weir,
            address: String::new(),
            stats_socket: Some(stats_socket),
            behind,
            neighbours: Vec::new(),
        };
        server.until_ready(request, deadlines, |server| server.group.stdout.line_after("listening on "))
    }

    /// An exchange, and a gateway in front of it.
    fn start_gateway(
        (weir, files): (&std::path::Path, &TrialFiles),
        request: &TrialRequest<'_>,
        subject: &GatewaySubject,
        number: u64,
        deadlines: &Deadlines,
    ) -> Result<Self, NoServer> {
        let Some(cell) = &request.cell.orders else {
            let reason =
                format!("arm {} is a gateway, and {} has no orders", request.arm.name, request.cell.id);
            return Err(NoServer::Stop(LaunchError::Usage(reason)));
        };
        let stats_socket = |side: &str| format!("@weir-{}-{number}-{side}", std::process::id());
        let own = stats_socket("exchange");
        let words = orders::exchange_arguments(request, subject, cell, (&own, files));
        let exchange = Self::start_own(weir, request, &words, (own, None), deadlines).map_err(of_exchange)?;
        let at_start = Use::of(&exchange);
        let own = stats_socket("gateway");
        let words = orders::gateway_arguments(request, subject, cell, &exchange.address, (&own, files));
        let behind = Some(Box::new(Upstream { exchange, at_start }));
        Self::start_own(weir, request, &words, (own, behind), deadlines)
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
        let code = self.group.end().ok().and_then(|status: ExitStatus| status.code());
        let reason = self.group.exit_reason();
        let is_weir = self.kind == Kind::Weir;
        match code {
            Some(EXIT_USAGE) if is_weir => {
                let said = self.group.said();
                NoServer::Stop(LaunchError::Usage(format!("arm {}: {said}", request.arm.name)))
            }
            Some(EXIT_ENVIRONMENT) if is_weir => {
                NoServer::Failed(TrialFailure::ServerEnvironment { reason: self.group.said() })
            }
            Some(supervise::EXIT_NOT_STARTED) if !is_weir => {
                NoServer::Failed(TrialFailure::ServerEnvironment { reason: self.group.said() })
            }
            _ => failed(reason),
        }
    }

    /// Process whose CPU is the server's: its own, or the foreign server below the supervisor.
    pub(crate) fn observed_pid(&self) -> u32 {
        let own = self.group.pid();
        match (self.kind, supervise::children(own).as_slice()) {
            (Kind::Supervised, [only]) => *only,
            _ => own,
        }
    }

    /// Reads its output, so that it never waits for us. Says whether it still runs.
    pub(crate) fn still_runs(&mut self) -> bool {
        self.group.stdout.drain();
        let behind_runs = self.behind.as_mut().is_none_or(|behind| behind.exchange.still_runs());
        let neighbours_run = self.neighbours.iter_mut().all(Neighbour::still_runs);
        !self.group.has_ended() && behind_runs && neighbours_run
    }

    /// Whether it ends within a moment: peers see the end of its connections before its parent sees its own.
    pub(crate) fn is_ending(&mut self) -> bool {
        self.has_ended_soon() || !self.neighbours.iter_mut().all(Neighbour::still_runs)
    }

    fn has_ended_soon(&mut self) -> bool {
        self.group.wait(5 * TICK) || self.behind.as_mut().is_some_and(|it| it.exchange.group.has_ended())
    }

    /// Adds what a foreign server said to the failure of its generator.
    pub(crate) fn explain(&self, failure: &mut TrialFailure) {
        let said = self.group.said();
        if let TrialFailure::Load { reason } = failure
            && self.kind == Kind::Supervised
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

    /// CPUs its neighbours used, in the mean.
    pub(super) fn cpus_beside(&self) -> f64 {
        self.neighbours.iter().map(Neighbour::cpus_used).sum()
    }

    /// Why it ended by itself.
    fn exit_reason(&mut self) -> String {
        match &mut self.behind {
            Some(behind) if behind.exchange.group.has_ended() => {
                format!("lost its exchange, which {}", behind.exchange.group.exit_reason())
            }
            _ => self.group.exit_reason(),
        }
    }

    /// Ends it: politely first, by force after the deadline. When this returns, it and all below it are gone.
    pub(crate) fn stop(mut self, deadlines: &Deadlines) {
        self.neighbours.clear();
        match self.kind {
            Kind::Weir => self.group.signal(Signal::TERM),
            Kind::Supervised => self.group.say(supervise::END_POLITELY),
        }
        self.group.wait(deadlines.stop);
        if let Some(behind) = self.behind {
            behind.exchange.stop(deadlines);
        }
    }
}

/// Says whose failure it is.
fn of_exchange(failure: NoServer) -> NoServer {
    let behind = |reason: String| format!("the exchange {reason}");
    match failure {
        NoServer::Failed(TrialFailure::Server { reason }) => {
            NoServer::Failed(TrialFailure::Server { reason: behind(reason) })
        }
        other => other,
    }
}

/// What a study wrote for the server's command line.
pub(crate) fn words(subject: &Subject) -> &[String] {
    match subject {
        Subject::Weir { arguments, .. } => arguments,
        Subject::Command { argv } => argv,
        Subject::Gateway(subject) => &subject.arguments,
        Subject::Storage(_) | Subject::Fio { .. } => &[],
    }
}

/// What the laboratory says to `weir serve`.
fn own_arguments(request: &TrialRequest<'_>, driver: &str, stats_socket: &str) -> Vec<String> {
    let protocol = protocol::of(request.cell);
    let listen = ["serve", protocol.name(), "--driver", driver, "--listen", "127.0.0.1:0"];
    let mut arguments: Vec<String> = listen.map(str::to_owned).to_vec();
    let mut option = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
    option("--workers", request.cell.workers.to_string());
    option("--stats-socket", stats_socket.to_owned());
    if !request.server_cpus.is_empty() {
        option("--pin", cpu_list(request.server_cpus));
    }
    arguments.extend(protocol.server_words(request.cell, words(&request.arm.subject)));
    arguments
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

fn substituted(
    argv: &[String],
    weir: &std::path::Path,
    port: u16,
    request: &TrialRequest<'_>,
) -> Vec<String> {
    let CellSpec { workers, .. } = request.cell;
    let cpus = cpu_list(request.server_cpus);
    let folder = weir.parent().map(|folder| folder.display().to_string()).unwrap_or_default();
    argv.iter()
        .map(|word| {
            word.replace("{address}", &format!("127.0.0.1:{port}"))
                .replace("{port}", &port.to_string())
                .replace("{cpus}", &cpus)
                .replace("{workers}", &workers.to_string())
                .replace("{bin}", &folder)
        })
        .collect()
}
