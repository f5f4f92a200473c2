//! The launcher of a study's trials: processes, or the simulator if a cell's device is simulated.

use std::{
    collections::BTreeMap,
    fs::File,
    io::BufReader,
    path::Path,
    sync::{Mutex, atomic::Ordering},
    thread,
    time::Duration,
};

use anyhow::Result;
use weir_lab::{
    launch::{LaunchError, Launcher, RoundOutcome, RoundRequest, TrialFailure, TrialOutcome, TrialRequest},
    process::ProcessLauncher,
};
use weir_record::{
    load::LoadReport,
    machine::{CrossCoreReading, NetworkCounters},
    spec::{ArmSpec, CellSpec, StorageSubject, StudySpec, Subject},
    storage::StorageDevice,
    study::MissingArm,
};
use weir_storage::{
    simulate::trial::{SimulatedTrial, trial},
    trace::{self, Trace},
};

use crate::exit::UsageError;

/// Most threads that simulate at once: more would leave no CPU to other work on the machine.
const THREADS_MAX: usize = 2;

/// Chooses by the cell.
pub(super) struct StudyLauncher {
    processes: ProcessLauncher,
    simulator: Simulator,
}

impl StudyLauncher {
    pub(super) fn new(processes: ProcessLauncher, simulator: Simulator) -> Self {
        Self { processes, simulator }
    }
}

impl Launcher for StudyLauncher {
    fn missing(&self, spec: &StudySpec) -> Vec<MissingArm> {
        self.processes.missing(spec)
    }

    fn check(&self, spec: &StudySpec) -> Result<(), LaunchError> {
        self.processes.check(spec)
    }

    fn control_delay_ns(&self) -> Option<u64> {
        self.processes.control_delay_ns()
    }

    fn run_trial(&mut self, request: &TrialRequest<'_>) -> Result<TrialOutcome, LaunchError> {
        if request.cell.is_simulated() {
            return self.simulator.run_trial(request);
        }
        self.processes.run_trial(request)
    }

    fn run_round(&mut self, request: &RoundRequest<'_>) -> Result<RoundOutcome, LaunchError> {
        self.processes.run_round(request)
    }

    fn read_machine(&mut self) -> Result<CrossCoreReading, LaunchError> {
        self.processes.read_machine()
    }

    fn elapsed(&self) -> Duration {
        self.processes.elapsed()
    }

    fn pause(&mut self, length: Duration) {
        self.processes.pause(length);
    }
}

type Simulated = Result<LoadReport, String>;

/// Computes all trials of a block when the first of them is requested.
pub(super) struct Simulator {
    /// Arms in the order of the study: the baseline is computed twice in a block, to check that it repeats.
    arms: Vec<ArmSpec>,
    traces: BTreeMap<String, Trace>,
    /// The block of the trials in `ready`: cell and seed.
    block: (String, u64),
    /// Trials that were computed and not requested yet, by arm.
    ready: Vec<(String, Simulated)>,
}

impl Simulator {
    /// A simulator for a study. It reads traces at once, so that an unreadable one is reported before anything runs.
    pub(super) fn new(spec: &StudySpec) -> Result<Self> {
        let mut traces = BTreeMap::new();
        for cell in spec.cells.iter().filter_map(|cell| cell.storage.as_ref()) {
            if let StorageDevice::Trace(file) = &cell.device
                && !traces.contains_key(file)
            {
                traces.insert(file.clone(), read(file)?);
            }
        }
        Ok(Self { arms: spec.arms.clone(), traces, block: Default::default(), ready: Vec::new() })
    }

    fn run_trial(&mut self, request: &TrialRequest<'_>) -> Result<TrialOutcome, LaunchError> {
        let block = (request.cell.id.clone(), request.seed);
        let place =
            |ready: &[(String, Simulated)]| ready.iter().position(|(arm, _)| *arm == request.arm.name);
        if self.block != block || place(&self.ready).is_none() {
            self.ready = self.compute(request)?;
            self.block = block;
        }
        let Some(place) = place(&self.ready) else {
            return Err(LaunchError::Usage(format!(
                "arm {} does not run in {}",
                request.arm.name, request.cell.id
            )));
        };
        let (_, simulated) = self.ready.swap_remove(place);
        Ok(TrialOutcome {
            reading_before: CrossCoreReading::default(),
            reading_after: CrossCoreReading::default(),
            network: NetworkCounters::default(),
            chain: None,
            programs: BTreeMap::new(),
            report: simulated.map(Box::new).map_err(|reason| TrialFailure::Job { reason }),
        })
    }

    /// Every arm of the cell with the block's seed, the baseline twice.
    fn compute(&self, request: &TrialRequest<'_>) -> Result<Vec<(String, Simulated)>, LaunchError> {
        let of_cell =
            self.arms.iter().take(1).chain(&self.arms).filter(|arm| request.cell.has_arm(&arm.name));
        let waiting: Mutex<Vec<&ArmSpec>> = Mutex::new(of_cell.collect());
        let next = || waiting.lock().ok().and_then(|mut arms| arms.pop());
        let work = || {
            let mut done = Vec::new();
            while let Some(arm) = next().filter(|_| !request.interrupt.load(Ordering::Relaxed)) {
                done.push((arm.name.clone(), self.one(request, arm)));
            }
            done
        };
        let threads = thread::available_parallelism().map_or(1, |cpus| cpus.get().min(THREADS_MAX));
        let done = thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let mut done = work();
            // A thread that panicked shows a defect of the program, and none of the study.
            let joined = others
                .into_iter()
                .map(|it| it.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload)));
            done.extend(joined.flatten());
            done
        });
        if request.interrupt.load(Ordering::Relaxed) {
            return Err(LaunchError::Interrupted);
        }
        Ok(done)
    }

    fn one(&self, request: &TrialRequest<'_>, arm: &ArmSpec) -> Simulated {
        let Subject::Storage(subject) = &arm.subject else {
            return Err(format!("arm {} waits for no simulated device", arm.name));
        };
        let TrialRequest { cell, seed, block, .. } = *request;
        trial(&SimulatedTrial { cell, arm: subject, seed, block, trace: self.trace(cell) })
    }

    fn trace(&self, cell: &CellSpec) -> Option<&Trace> {
        match &cell.storage.as_ref()?.device {
            StorageDevice::Trace(file) => self.traces.get(file),
            _ => None,
        }
    }
}

fn read(file: &str) -> Result<Trace> {
    let opened =
        File::open(file).map_err(|error| UsageError(format!("cannot read the trace {file}: {error}")))?;
    let shown = Path::new(file).display().to_string();
    Ok(trace::read(BufReader::new(opened), &shown).map_err(|error| UsageError(error.to_string()))?)
}

/// Whether this method of waiting exists, whatever the device.
pub(super) fn check_wait(subject: &StorageSubject) -> Result<(), String> {
    weir_storage::simulate::trial::method(&subject.completion).map(|_| ())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use weir_lab::{host_defaults::HostDefaults, process::Deadlines, study_file};

    use super::*;

    const STUDY: &str = "name = \"waits\"\nprotocol = \"storage\"\nwindow = \"100ms\"\nwarmup_max = \"50ms\"\n\
        [[cell]]\nrole = \"primary\"\ndevice = \"model\"\nbackground_depth = 8\n\
        [[arm]]\nname = \"poll\"\nwait = \"poll\"\n[[arm]]\nname = \"interrupt\"\n";

    fn spec() -> StudySpec {
        study_file::parse(Path::new("waits.toml"), STUDY, &HostDefaults::default()).expect("it is right").spec
    }

    fn launcher(spec: &StudySpec) -> StudyLauncher {
        let processes = ProcessLauncher::new("no-such-program".into(), spec, Deadlines::default());
        StudyLauncher::new(processes, Simulator::new(spec).expect("there is no trace"))
    }

    fn request<'a>(spec: &'a StudySpec, arm: usize, interrupt: &'a AtomicBool) -> TrialRequest<'a> {
        TrialRequest {
            arm: &spec.arms[arm],
            cell: &spec.cells[0],
            server_cpus: &[],
            load_cpus: &[],
            seed: 7,
            block: 0,
            position: 0,
            neighbours: &[],
            interrupt,
        }
    }

    #[test]
    fn arms_of_a_block_meet_one_seed_and_the_baseline_is_computed_twice() {
        let (spec, calm) = (spec(), AtomicBool::new(false));
        let mut launcher = launcher(&spec);
        let mut run = |arm: usize| {
            launcher.run_trial(&request(&spec, arm, &calm)).expect("it runs").report.expect("it is simulated")
        };
        let (first, other, again) = (run(0), run(1), run(0));
        assert_eq!(first, again);
        assert!(other.throughput_per_second < first.throughput_per_second, "the interrupt wakes later");
        assert!(launcher.simulator.ready.is_empty(), "nothing was computed in vain");
    }

    #[test]
    fn an_interruption_ends_it_between_two_trials() {
        let (spec, stopped) = (spec(), AtomicBool::new(true));
        let outcome = launcher(&spec).run_trial(&request(&spec, 0, &stopped));
        assert!(matches!(outcome, Err(LaunchError::Interrupted)));
    }

    #[test]
    fn a_trace_that_is_not_there_is_named_before_anything_runs() {
        let text = STUDY.replace("\"model\"\nbackground_depth = 8", "\"trace:/nowhere/reads.csv\"");
        let spec = study_file::parse(Path::new("waits.toml"), &text, &HostDefaults::default())
            .expect("it is right")
            .spec;
        let error = Simulator::new(&spec).err().expect("it is not there").to_string();
        assert!(error.starts_with("cannot read the trace /nowhere/reads.csv: "), "{error}");
    }
}
