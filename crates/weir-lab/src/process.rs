//! The launcher of real trials: a fresh server process and a fresh generator process, or for a disk a fresh job. Each
//! has its own process group, which ends with the trial or with this process, for any cause.
//!
//! The kernel binds Weir's own children to the calling thread (`weir_sys::child`), so trials must run on a thread
//! that lives as long as the session: the main thread. A foreign command may have children; it runs under
//! `supervise`, which ends all of them when this process is gone. The only other way is a control group, which needs
//! rights that an ordinary user does not have.

mod chain;
mod descriptors;
mod elsewhere;
mod files;
mod generator;
mod group;
mod hosted;
mod memory;
mod neighbour;
mod pipe;
mod programs;
mod remote;
mod running;
mod server;
mod server_cpu;
mod server_round;
mod startup_probe;
mod storage;
mod surroundings;
mod suspend;

use std::{
    cell::RefCell,
    collections::BTreeMap,
    net::IpAddr,
    path::PathBuf,
    process::Command,
    rc::Rc,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use rustix::process::getppid;
use weir_evidence::{
    crosscore::read_cross_core,
    fingerprint::program_hash,
    limits::connection_budget,
    memory::memory_budget,
    network,
    program_file::{self, Contents},
    slice_observers::{LoadedPrograms, Programs},
};
use weir_record::{
    gateway::ChainTotals,
    machine::{CrossCoreReading, RunningProcess},
    spec::{ArmSpec, CellSpec, StudySpec},
    study::MissingArm,
};
use weir_stats::random::{Random, derived_seed};

use crate::{
    launch::{LaunchError, Launcher, RoundOutcome, RoundRequest, TrialOutcome, TrialRequest},
    protocol::{self, start::ServerStart},
};
use files::{Files, TrialFiles};
use generator::Loaded;
use hosted::{HostedRound, Runs, ServersStarted, Serving};
use programs::{Found, Lookup};
use remote::Prepared;
pub use remote::{
    Agent, AgentError, Facts, GeneratorError, OwnProgram, RemoteHost, SpreadLoad, SpreadObserver,
    SpreadProgress, StudyThere, Transport, TransportError, WholeEnd, WholeStudy, spread_load,
};
use running::RunningServers;
use server::{LOOPBACK, NoServer, Place, Server, explain};
use server_round::Round;
pub use startup_probe::{ANSWER_MAX, Answer, answer};

/// Most tries at one cross-core reading; another program may occupy a CPU for a moment.
const READING_TRIES: u32 = 3;

/// Longest padding of a child's environment: one page, so that its stack starts anywhere within a page.
const PADDING_BYTES_MAX: u64 = 4096;

/// Folders that trials may make in the run folder.
pub const FOLDERS: [&str; 2] = [files::CONTENTS, files::SCRATCH];

/// Time limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// For a server to become ready, unless its arm sets another limit.
    pub ready: Duration,
    /// For a command before or after a server, unless its arm sets another limit.
    pub setup: Duration,
    /// From asking a server to stop until it is killed.
    pub stop: Duration,
    /// For a generator beyond its warm-up and window: connecting, waiting for an answer that never comes, and cutting
    /// off at the end. It covers the generator's default time limits; longer limits of a cell are added.
    pub load_margin: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            ready: Duration::from_secs(10),
            setup: Duration::from_secs(30),
            stop: Duration::from_secs(5),
            load_margin: Duration::from_secs(20),
        }
    }
}

/// Runs trials as processes of the `weir` program.
#[derive(Debug)]
pub struct ProcessLauncher {
    weir: PathBuf,
    deadlines: Deadlines,
    /// CPUs of the cross-core readings; `None` if the two sides share one CPU.
    pair: Option<(usize, usize)>,
    began: Instant,
    trials: u64,
    files: Files,
    running: RunningServers,
    programs: LoadedPrograms,
    contents: Contents,
    elsewhere: Option<Elsewhere>,
}

/// The servers of a study on another host.
#[derive(Debug)]
struct Elsewhere {
    host: Rc<RefCell<RemoteHost>>,
    prepared: Prepared,
}

impl ProcessLauncher {
    /// Creates a launcher for a study. `weir` is the program whose `serve`, `load` and `supervise` are run.
    pub fn new(weir: PathBuf, spec: &StudySpec, deadlines: Deadlines) -> Self {
        let pair = match (spec.server_cpus.first(), spec.load_cpus.first()) {
            (Some(server), Some(load)) if server != load => Some((*server, *load)),
            _ => None,
        };
        Self {
            weir,
            deadlines,
            pair,
            began: Instant::now(),
            trials: 0,
            files: Files::asking(&spec.requests),
            running: RunningServers::find(spec),
            programs: LoadedPrograms::default(),
            contents: Contents::default(),
            elsewhere: None,
        }
    }

    /// Creates a launcher whose servers run on another host and listen on this address there. No other study may use
    /// the host while it exists.
    ///
    /// # Errors
    /// If the study cannot run with remote servers, or the host was lost or refuses it.
    pub fn elsewhere(
        weir: PathBuf,
        spec: &StudySpec,
        deadlines: Deadlines,
        (host, address): (Rc<RefCell<RemoteHost>>, IpAddr),
        interrupt: &AtomicBool,
    ) -> Result<Self, LaunchError> {
        elsewhere::check(spec)?;
        let prepared = host.borrow_mut().prepare(spec, address, interrupt)?;
        // Servers that run before the study run on that host.
        let arms = spec.arms.iter().filter(|arm| arm.running().is_none()).cloned().collect();
        let own = Self::new(weir, &StudySpec { arms, ..spec.clone() }, deadlines);
        Ok(Self { pair: None, elsewhere: Some(Elsewhere { host, prepared }), ..own })
    }

    /// What a study needs to know of the machine whose servers this launcher would start. A generator on this machine
    /// would need more descriptors than a server, and is checked then.
    fn prepared(&self, spec: &StudySpec) -> Prepared {
        let checked = self.check_servers(spec);
        let checked = checked.and_then(|()| descriptors::check_servers(spec, connection_budget()));
        Prepared {
            programs: self.programs(spec),
            program_builds: self.program_builds(spec),
            looked_for: self.looked_for(),
            missing: self.missing(spec),
            refused: checked.err().map(Into::into),
        }
    }

    fn check_servers(&self, spec: &StudySpec) -> Result<(), LaunchError> {
        self.running.check(spec)?;
        memory::check(spec, memory_budget())
    }

    /// For each arm of a round, the files that its servers are started from.
    fn programs_of(&mut self, serving: &Serving, interrupt: &AtomicBool) -> Vec<BTreeMap<String, String>> {
        let places = (0_u32..).zip(&serving.arms).map(|(place, _)| place);
        let requests = places.filter_map(|place| serving.of_arm(place, interrupt));
        requests.map(|request| self.files_of(&request)).collect()
    }

    /// Starts the servers of a round for a laboratory on another host. They listen on this address of this machine.
    fn servers<'a>(
        &'a mut self,
        serving: &Serving,
        address: IpAddr,
        interrupt: &'a AtomicBool,
    ) -> Result<(HostedRound<'a>, ServersStarted), LaunchError> {
        // The parent carries the laboratory's messages: a daemon of ssh, or the laboratory itself.
        let parent = getppid().map(|pid| pid.as_raw_nonzero().get().unsigned_abs());
        let runs = Runs {
            place: Place { weir: &self.weir, running: &self.running, address },
            deadlines: &self.deadlines,
            programs: (serving.has_evidence && Programs::are_allowed()).then_some(&self.programs),
            interrupt,
            beside: parent.filter(|parent| *parent > 1),
        };
        HostedRound::start(runs, serving, &mut self.files)
    }

    /// Sets the run folder. Commands that name `{content}`, `{content_dir}` or `{scratch}` need one.
    pub fn in_folder(self, folder: PathBuf) -> Self {
        Self { files: self.files.below(folder), ..self }
    }

    /// The foreign programs of a study that exist, each with what identifies its build.
    pub fn programs(&self, spec: &StudySpec) -> BTreeMap<String, String> {
        if let Some(Elsewhere { prepared, .. }) = &self.elsewhere {
            return prepared.programs.clone();
        }
        let files =
            self.foreign(spec).filter_map(|file| Some((file.display().to_string(), program_hash(&file)?)));
        files.collect()
    }

    /// The servers that ran before the study, by arm, as they were found.
    pub fn running(&self) -> BTreeMap<String, RunningProcess> {
        let found = |(arm, found): (String, Result<RunningProcess, String>)| Some((arm, found.ok()?));
        self.looked_for().into_iter().filter_map(found).collect()
    }

    /// The same, including servers for which a study would be refused, with the reason.
    pub fn looked_for(&self) -> Vec<(String, Result<RunningProcess, String>)> {
        match &self.elsewhere {
            Some(Elsewhere { prepared, .. }) => prepared.looked_for.clone(),
            None => self.running.looked_for(),
        }
    }

    /// Build information of the programs that are builds of Weir.
    pub fn program_builds(&self, spec: &StudySpec) -> BTreeMap<String, String> {
        if let Some(Elsewhere { prepared, .. }) = &self.elsewhere {
            return prepared.program_builds.clone();
        }
        let build = |file: PathBuf| Some((file.display().to_string(), program_file::build_of(&file)?));
        self.foreign(spec).filter_map(build).collect()
    }

    /// The files that the servers of an arm are started from.
    fn files_of(&mut self, request: &TrialRequest<'_>) -> BTreeMap<String, String> {
        programs::of_arm(&mut self.contents, &self.weir, request, std::env::var_os("PATH"))
    }

    /// The foreign programs that arms start, if they exist.
    fn foreign(&self, spec: &StudySpec) -> impl Iterator<Item = PathBuf> {
        spec.arms.iter().filter_map(|arm| match self.lookup(arm).find(arm.subject.program()?) {
            Found::File(file) => Some(file),
            Found::InTrial | Found::Nowhere => None,
        })
    }

    fn lookup<'a>(&self, arm: &'a ArmSpec) -> Lookup<'a> {
        Lookup::new(&self.weir, &arm.start, std::env::var_os("PATH"))
    }

    /// Starts the servers of an arm and loads the last of them.
    fn load(
        &self,
        request: &TrialRequest<'_>,
        (starts, files): (&[ServerStart], &TrialFiles),
    ) -> Result<(Loaded, Option<ChainTotals>), LaunchError> {
        let place = Place { weir: &self.weir, running: &self.running, address: LOOPBACK };
        let mut server = match Server::start(place, request, (starts, files), self.trials, &self.deadlines) {
            Ok(server) => server,
            Err(NoServer::Stop(error)) => return Err(error),
            Err(NoServer::Failed(failure)) => return Ok((Err(failure), None)),
        };
        let mut loaded = generator::load(&self.weir, (request, files), &mut server, &self.deadlines);
        if let Ok(Err(failure)) = &mut loaded {
            explain(failure, &server.said());
        }
        let has_report = matches!(loaded, Ok(Ok(_)));
        let chain = if has_report { chain::totals(&server, request.cell) } else { None };
        let failure = server.stop(&self.deadlines);
        let loaded = match (loaded?, failure) {
            (Ok(_), Some(failure)) => Err(failure),
            (loaded, _) => loaded,
        };
        Ok((loaded, chain))
    }

    fn reading(&self) -> CrossCoreReading {
        let Some((cpu_a, cpu_b)) = self.pair else {
            return CrossCoreReading::default();
        };
        let taken = (0..READING_TRIES).find_map(|_| read_cross_core(cpu_a, cpu_b).ok());
        // A reading of zero means "not taken"; the trial's other reading then decides its state.
        taken.unwrap_or(CrossCoreReading { cpu_a, cpu_b, ..CrossCoreReading::default() })
    }
}

impl Launcher for ProcessLauncher {
    fn missing(&self, spec: &StudySpec) -> Vec<MissingArm> {
        if let Some(Elsewhere { prepared, .. }) = &self.elsewhere {
            let is_asked = |gone: &&MissingArm| spec.arms.iter().any(|arm| arm.name == gone.name);
            return prepared.missing.iter().filter(is_asked).cloned().collect();
        }
        let arms = spec.arms.iter().filter_map(|arm| {
            let reason = self.lookup(arm).not_there(arm.subject.program()?)?;
            Some(MissingArm { name: arm.name.clone(), reason, unlock: None })
        });
        arms.collect()
    }

    fn check(&self, spec: &StudySpec) -> Result<(), LaunchError> {
        descriptors::check(spec, connection_budget())?;
        match &self.elsewhere {
            Some(Elsewhere { host, prepared }) => {
                let refused = prepared.refused.clone();
                refused.map_or(Ok(()), |refused| Err(refused.of_host(host.borrow().name())))
            }
            None => self.check_servers(spec),
        }
    }

    fn control_delay_ns(&self) -> Option<u64> {
        let delay = self.elsewhere.as_ref()?.host.borrow().delay();
        Some(u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX))
    }

    fn run_trial(&mut self, request: &TrialRequest<'_>) -> Result<TrialOutcome, LaunchError> {
        if request.interrupt.load(Ordering::Relaxed) {
            return Err(LaunchError::Interrupted);
        }
        self.trials += 1;
        if self.elsewhere.is_some() {
            return Err(elsewhere::whole_trial(request.cell));
        }
        let starts = protocol::of(request.cell).servers(request);
        let files = self.files.prepare(request, &starts)?;
        let programs = self.files_of(request);
        let reading_before = self.reading();
        let counters = network::read();
        let (report, chain) = match is_job(request.cell) {
            true => (storage::run(&self.weir, &self.files, request, &self.deadlines)?, None),
            false => self.load(request, (&starts, &files))?,
        };
        let network = network::read().since(&counters);
        Ok(TrialOutcome { reading_before, reading_after: self.reading(), network, chain, programs, report })
    }

    fn run_round(&mut self, request: &RoundRequest<'_>) -> Result<RoundOutcome, LaunchError> {
        if request.interrupt.load(Ordering::Relaxed) {
            return Err(LaunchError::Interrupted);
        }
        let number = self.trials + 1;
        self.trials += request.arms.len() as u64;
        if let Some(Elsewhere { host, .. }) = &self.elsewhere {
            let lab = elsewhere::Lab { weir: &self.weir, deadlines: &self.deadlines, files: &mut self.files };
            return elsewhere::run_round(&mut host.borrow_mut(), lab, request, number);
        }
        let arms = (0..).zip(request.arms);
        let programs = arms.map(|(place, arm)| self.files_of(&request.of_arm(arm, place))).collect();
        let reading_before = self.reading();
        let counters = network::read();
        let arms = match is_job(request.cell) {
            true => storage::job_round::run(&self.weir, &self.files, request, &self.deadlines)?,
            false => {
                let files = self.files.of_generator(request.cell)?;
                let may_trace = request.evidence_slice_ns.is_some() && Programs::are_allowed();
                let runs = Runs {
                    place: Place { weir: &self.weir, running: &self.running, address: LOOPBACK },
                    deadlines: &self.deadlines,
                    programs: may_trace.then_some(&self.programs),
                    interrupt: request.interrupt,
                    beside: None,
                };
                let serving = Serving::of(request, number);
                let (mut servers, started) = HostedRound::start(runs, &serving, &mut self.files)?;
                let round = Round { weir: &self.weir, request, deadlines: &self.deadlines, files: &files };
                round.run(&mut servers, started)?.0
            }
        };
        let network = network::read().since(&counters);
        Ok(RoundOutcome { reading_before, reading_after: self.reading(), network, programs, arms })
    }

    fn read_machine(&mut self) -> Result<CrossCoreReading, LaunchError> {
        Ok(self.reading())
    }

    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    fn pause(&mut self, length: Duration) {
        std::thread::park_timeout(length);
    }
}

/// Whether the arms of a cell are jobs that do the work themselves instead of servers.
fn is_job(cell: &CellSpec) -> bool {
    protocol::of(cell).generator().is_none()
}

/// Gives each child an environment of another size. The size shifts the start of the stack and with it alignment
/// effects, which would otherwise be the same in every trial and be taken for an effect of the arm.
fn vary_environment(command: &mut Command, request: &TrialRequest<'_>, side: &str) {
    let seed = derived_seed(derived_seed(request.seed, u64::from(request.position)), side.len() as u64);
    pad_environment(command, seed);
}

fn pad_environment(command: &mut Command, seed: u64) {
    let length = Random::seeded(seed).below(PADDING_BYTES_MAX);
    command.env("WEIR_PADDING", "x".repeat(usize::try_from(length).unwrap_or(0)));
}
