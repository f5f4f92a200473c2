//! Fresh run folders, and sessions that record their events.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

use weir_lab::{
    builtin::BuiltIn,
    fake::{FakeArm, FakeLauncher, FakeStates, NEVER},
    host_defaults::HostDefaults,
    run::{self, Callbacks, Event, Outcome, RunError},
    study_file::Study,
};
use weir_record::{effect::Effect, machine::Fingerprint, metric::Metric, spec::StudySpec};
use weir_store::NewStudy;

/// The folder of this name, for this run of the tests alone.
pub fn folder(name: &str) -> PathBuf {
    let run = format!("weir-lab-{}", std::process::id());
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(run).join(name)
}

/// The same, not existing yet; a folder that an earlier test left is removed.
pub fn fresh_folder(name: &str) -> PathBuf {
    let folder = folder(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("an earlier run's folder can be removed");
    }
    folder
}

/// A built-in study on a machine with these defaults.
pub fn study_on(name: &str, host_defaults: &HostDefaults) -> Study {
    let study = BuiltIn::named(name).unwrap_or_else(|| panic!("{name} is built in"));
    study.study(host_defaults).unwrap_or_else(|error| panic!("{error}"))
}

/// A built-in study on a machine on which everything runs.
pub fn built_in(name: &str) -> StudySpec {
    study_on(name, &HostDefaults { seed: 3, ..HostDefaults::default() }).spec
}

pub fn new_study(spec: StudySpec) -> NewStudy {
    let reproduce = format!("weir study {} --seed {}", spec.name, spec.seed);
    NewStudy { spec, fingerprint: Fingerprint::default(), missing_arms: Vec::new(), reproduce }
}

/// epoll at 5 µs a message, and uring at `ratio` times that.
pub fn launcher(seed: u64, states: FakeStates, ratio: f64) -> FakeLauncher {
    let arms = [("epoll", FakeArm::costing(5.0)), ("uring", FakeArm::costing(5.0 * ratio))];
    FakeLauncher::new(seed, states, &arms)
}

/// Runs the first session of a study to its end.
pub fn start(name: &str, spec: &StudySpec, launcher: &mut FakeLauncher) -> Result<Outcome, RunError> {
    let folder = fresh_folder(name);
    let mut ignore = |_: &Event| {};
    let callbacks = Callbacks { launcher, interrupt: &NEVER, progress: &mut ignore };
    run::start(&folder, &new_study(spec.clone()), callbacks)
}

/// Continues a study to its end.
pub fn resume(
    folder: &Path,
    launcher: &mut FakeLauncher,
    interrupt: &AtomicBool,
) -> Result<Outcome, RunError> {
    let mut ignore = |_: &Event| {};
    run::resume(folder, &Fingerprint::default(), Callbacks { launcher, interrupt, progress: &mut ignore })
}

pub fn comparison<'a>(outcome: &'a Outcome, cell_id: &str, metric: Metric) -> &'a Effect {
    outcome
        .result
        .effects
        .comparisons()
        .find(|comparison| comparison.cell_id == cell_id && comparison.metric == metric)
        .expect("the comparison was made")
}
