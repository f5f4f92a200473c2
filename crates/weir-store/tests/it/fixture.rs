//! A small study and its blocks, and a fresh folder for each test.

use std::{
    fs,
    path::{Path, PathBuf},
};

use weir_record::{
    load::LoadReport,
    machine::{CrossCoreReading, Fingerprint},
    observation::Rung,
    origin::Origin,
    spec::{ArmSpec, ArmStart, CellRole, CellSpec, LoadMode, StudySpec, Subject},
    trial::{EvidenceSlice, Reading, TrialRecord},
    window::ObservedWindow,
};
use weir_store::{BlockKey, NewStudy, StoredBlock};

/// A folder for this test that does not exist yet. A folder that an earlier run of the tests left is removed.
pub fn fresh_folder(name: &str) -> PathBuf {
    let run = format!("weir-store-{}", std::process::id());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(run).join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("an earlier run's folder can be removed");
    }
    folder
}

fn arm(name: &str) -> ArmSpec {
    ArmSpec {
        name: name.to_owned(),
        subject: Subject::Weir { driver: name.to_owned(), options: [].into(), arguments: Vec::new() },
        load_options: [].into(),
        baseline: None,
        is_placebo: false,
        warmup_ns: 0,
        start: ArmStart::default(),
    }
}

pub fn study() -> NewStudy {
    let spec = StudySpec {
        name: "store".to_owned(),
        title: "does the store keep what it is given".into(),
        seed: u64::MAX,
        arms: vec![arm("epoll"), arm("uring")],
        cells: vec![CellSpec {
            id: "c1-d1-m64-closed".to_owned(),
            protocol: String::new(),
            role: CellRole::Primary,
            connections: 1,
            depth: 1,
            message_bytes: 64,
            idle_connections: 0,
            workers: 1,
            accept: String::new(),
            congestion_control: String::new(),
            load_workers: 1,
            load_cpus: Vec::new(),
            server_cpus: Vec::new(),
            close: false,
            load: LoadMode::OpenShare { share: 0.6, poisson: true },
            window_ns: 1_000_000_000,
            warmup_ns_max: 400_000_000,
            blocks: 4,
            http: None,
            storage: None,
            orders: None,
            alternation: None,
            neighbours: Vec::new(),
            is_rung: false,
            arms: Vec::new(),
        }],
        server_cpus: vec![0],
        load_cpus: vec![1],
        equivalence_margin: 0.03,
        time_cap_ns: 60_000_000_000,
        published: Vec::new(),
        published_runs: Vec::new(),
        published_tables: Vec::new(),
        published_levels: Vec::new(),
        added_costs: Vec::new(),
        causes: Vec::new(),
        contrasts: Vec::new(),
        comparisons: Vec::new(),
        neighbours: Vec::new(),
        io_models: Vec::new(),
        missing_cells: Vec::new(),
        whole_trials: Vec::new(),
        same_arms: false,
        slices_given: Vec::new(),
        saturation: false,
        requests: Vec::new(),
        origin: Origin::default(),
        server_host: None,
    };
    NewStudy {
        fingerprint: Fingerprint { kernel_release: "6.18.0".to_owned(), ..Fingerprint::default() },
        missing_arms: Vec::new(),
        reproduce: format!("weir study store --seed {}", spec.seed),
        spec,
    }
}

/// A block of three trials whose records are as large as real ones.
pub fn block(number: u32, attempt: u32) -> StoredBlock {
    let trials = ["epoll", "uring", "epoll"]
        .into_iter()
        .zip(0_u32..)
        .map(|(arm, position)| trial(arm, number, attempt, position))
        .collect();
    StoredBlock { key: BlockKey { cell_id: "c1-d1-m64-closed".to_owned(), block: number, attempt }, trials }
}

fn trial(arm: &str, block: u32, attempt: u32, position: u32) -> TrialRecord {
    let mut load = LoadReport {
        messages: 1_000 + u64::from(block),
        observed: Some(ObservedWindow { cpu_ns: 5_000_000, ..ObservedWindow::default() }),
        ..LoadReport::default()
    };
    load.response.quantiles = vec![(0.5, 40_000), (0.99, 90_000)];
    load.response.histogram_v2_base64 = "HISTFAAA".repeat(1_000);
    TrialRecord {
        cell_id: "c1-d1-m64-closed".to_owned(),
        block,
        attempt,
        position,
        arm: arm.to_owned(),
        repeat: position == 2,
        reading_before: CrossCoreReading { cpu_a: 0, cpu_b: 1, round_trip_ns: 101.5, canary_ns: 2.25 },
        load: Some(load),
        evidence: vec![EvidenceSlice {
            rung: Rung::Programs,
            readings: vec![
                Reading { source: "call read".to_owned(), key: "count".to_owned(), value: 1_000.0 },
                Reading { source: "call write".to_owned(), key: "count".to_owned(), value: 999.0 },
            ],
            ..EvidenceSlice::default()
        }],
        ..TrialRecord::default()
    }
}
