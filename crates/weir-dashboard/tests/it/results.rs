//! Results folders with studies of the fake machine, of a given age.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use rusqlite::Connection;
use weir_lab::{
    builtin::BuiltIn,
    fake::{FakeArm, FakeLauncher, FakeStates, NEVER},
    host_defaults::HostDefaults,
    run::{self, Callbacks, Event},
    run_locks::RunLock,
};
use weir_record::{
    machine::Fingerprint,
    spec::{CellRole, LoadMode, StudySpec},
};
use weir_store::NewStudy;

/// Rounds of a cell that are enough for figures with intervals.
const ROUNDS: u32 = 8;

/// An empty results folder of one test, of this run of the tests.
pub fn folder(name: &str) -> PathBuf {
    let run = format!("weir-dashboard-{}", std::process::id());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(run).join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("an earlier run's folder can be removed");
    }
    fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

/// Runs a built-in study without its open loops, and makes its store look as if it had been written `age_s` ago.
pub fn study(results: &Path, study: (&str, &str), age_s: u64) -> PathBuf {
    let path = run_study(results, study, "quick", ROUNDS);
    sql(&path, "UPDATE study SET created_at = '2026-11-23 13:30:05'");
    make_old(&path, age_s);
    path
}

/// The same at the levels of this plan of a map, with at most this many rounds of a cell.
pub fn run_study(results: &Path, (folder, study): (&str, &str), plan: &str, rounds_max: u32) -> PathBuf {
    let plan = (study == "tps").then(|| plan.to_owned());
    let spec = closed_loops(study, &HostDefaults { seed: 3, plan, ..HostDefaults::default() }, rounds_max);
    run_spec(&results.join(folder), study, spec)
}

/// A small map on a machine with two server CPUs: several numbers of connections, of threads and of CPUs, and
/// evidence of its calls, so that each of the eight charts has something to draw.
pub fn charted_study(path: &Path) {
    let host_defaults = HostDefaults {
        seed: 3,
        server_cpus: vec![0, 1],
        load_cpus: vec![2, 3],
        plan: Some("standard".to_owned()),
        ..HostDefaults::default()
    };
    let mut spec = closed_loops("tps", &host_defaults, ROUNDS);
    spec.cells.retain(|cell| {
        let is_level = [100, 1000].contains(&cell.connections) && [1, 16].contains(&cell.workers);
        is_level && cell.idle_connections == 0 && cell.alternation.is_some()
    });
    run_spec(path, "tps", spec);
}

/// The closed loops of a built-in study, with at most this many rounds of a cell.
fn closed_loops(study: &str, host_defaults: &HostDefaults, rounds_max: u32) -> StudySpec {
    let built_in = BuiltIn::named(study).unwrap_or_else(|| panic!("{study} is built in"));
    let mut spec = built_in.study(host_defaults).unwrap_or_else(|error| panic!("{error}")).spec;
    spec.cells.retain(|cell| cell.load == LoadMode::Closed);
    spec.contrasts.clear();
    // The rungs are not kept. A cell at saturation is the primary one instead.
    spec.saturation = true;
    let primary = spec.cells.iter_mut().find(|cell| cell.connections == 100).expect("every plan has it");
    primary.role = CellRole::Primary;
    spec.cells.iter_mut().for_each(|cell| cell.blocks = cell.blocks.min(rounds_max));
    spec
}

fn run_spec(path: &Path, study: &str, spec: StudySpec) -> PathBuf {
    let reproduce = format!("weir study {study} --seed 3");
    let asked = NewStudy { spec, fingerprint: Fingerprint::default(), missing_arms: Vec::new(), reproduce };
    let arms = [("epoll", FakeArm::costing(5.0)), ("uring", FakeArm::costing(4.0))];
    let mut launcher = FakeLauncher::new(3, FakeStates::Near, &arms);
    let callbacks = Callbacks { launcher: &mut launcher, interrupt: &NEVER, progress: &mut |_: &Event| {} };
    run::start(path, &asked, callbacks).unwrap_or_else(|error| panic!("{error}"));
    path.to_owned()
}

/// A session works on a run folder, until this is dropped.
pub fn session_on(folder: &Path) -> RunLock {
    RunLock::of(folder).expect("nobody else works on it")
}

/// Changes a store behind the dashboard's back.
pub fn sql(study: &Path, statement: &str) {
    let store = Connection::open(study.join(weir_store::FILE_NAME)).expect("the store can be opened");
    store.execute_batch(statement).expect("a statement that SQLite takes");
}

/// Sets the time since the store was last written.
pub fn make_old(study: &Path, age_s: u64) {
    let store = File::options().write(true).open(study.join(weir_store::FILE_NAME)).expect("a store");
    store.set_modified(SystemTime::now() - Duration::from_secs(age_s)).expect("a time can be set");
}
