//! A small study for tests and test benches: one closed primary cell; and a trial of it.

use std::collections::BTreeMap;

use weir_record::{
    load::LoadReport,
    machine::NoiseWindow,
    origin::Origin,
    spec::{ArmSpec, ArmStart, CellRole, CellSpec, LoadMode, StudySpec, Subject},
    trial::TrialRecord,
    window::ObservedWindow,
};

/// A study of one closed primary cell over Weir drivers with these names.
pub fn study(arms: &[&str], blocks: u32, seed: u64) -> StudySpec {
    let arm = |name: &&str| ArmSpec {
        name: (*name).to_owned(),
        subject: Subject::Weir {
            driver: (*name).to_owned(),
            options: BTreeMap::new(),
            arguments: Vec::new(),
        },
        load_options: BTreeMap::new(),
        baseline: None,
        is_placebo: false,
        warmup_ns: 0,
        start: ArmStart::default(),
    };
    StudySpec {
        name: "fake".to_owned(),
        title: "what the fake was told".into(),
        seed,
        arms: arms.iter().map(arm).collect(),
        cells: vec![CellSpec {
            id: "c100-d1-m64-closed".to_owned(),
            protocol: String::new(),
            role: CellRole::Primary,
            connections: 100,
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
            load: LoadMode::Closed,
            window_ns: 1_000_000_000,
            warmup_ns_max: 400_000_000,
            blocks,
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
        time_cap_ns: 600_000_000_000,
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
    }
}

/// A trial of a thousand messages that cost the server so much each, the generator half of it and the machine twice.
pub fn trial(cell: &str, arm: &str, block: u32, cpu_us: f64) -> TrialRecord {
    let noise = NoiseWindow { machine_busy_ns: (cpu_us * 2e6) as u64, ..NoiseWindow::default() };
    let observed = ObservedWindow { cpu_ns: (cpu_us * 1e6) as u64, noise, ..ObservedWindow::default() };
    let load = LoadReport {
        messages: 1_000,
        throughput_per_second: 1e6 / cpu_us,
        generator_cpu_ns: (cpu_us * 5e5) as u64,
        observed: Some(observed),
        ..LoadReport::default()
    };
    let (cell_id, arm) = (cell.to_owned(), arm.to_owned());
    TrialRecord { cell_id, arm, block, load: Some(load), ..TrialRecord::default() }
}
