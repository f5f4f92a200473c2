//! Studies made by hand: a realistic one, and odd ones that a report must survive.

use std::collections::BTreeMap;

use weir_record::{
    check::{Check, CheckName},
    effect::{Effect, EffectScale, Effects, IntervalMethod, Question},
    finding::{ExclusionKind, FailedTrial, Finding, MessageKind, UnitKind},
    machine::Fingerprint,
    metric::Metric,
    origin::Origin,
    spec::{ArmSpec, ArmStart, CellRole, CellSpec, LoadMode, StudySpec, Subject},
    study::{ArmSummary, MachineStates, MetricFigures, MissingArm, StudyResult, TimelineEntry},
    verdict::Verdict,
};

use super::jitter::Jitter;

// The example loads this file by its path, so that the module needs one too.
#[path = "fixture/http.rs"]
mod http;

pub use http::{http, survey};

const SECOND_NS: u64 = 1_000_000_000;

pub fn arm(name: &str) -> ArmSpec {
    let subject = Subject::Weir { driver: name.to_owned(), options: BTreeMap::new(), arguments: Vec::new() };
    let (name, load_options) = (name.to_owned(), BTreeMap::new());
    let start = ArmStart::default();
    ArmSpec { name, subject, load_options, baseline: None, is_placebo: false, warmup_ns: 0, start }
}

fn cell(connections: u32, role: CellRole, load: LoadMode, blocks: u32) -> CellSpec {
    let kind = if load == LoadMode::Closed { "closed" } else { "open" };
    CellSpec {
        id: format!("c{connections}-d1-m64-{kind}"),
        protocol: String::new(),
        role,
        connections,
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
        load,
        window_ns: 1_200_000_000,
        warmup_ns_max: 500_000_000,
        blocks,
        http: None,
        storage: None,
        orders: None,
        alternation: None,
        neighbours: Vec::new(),
        is_rung: false,
        arms: Vec::new(),
    }
}

fn spec() -> StudySpec {
    let share = LoadMode::OpenShare { share: 0.6, poisson: true };
    StudySpec {
        name: "quick".to_owned(),
        title: "Which of epoll and io_uring serves a 64 B echo with less CPU?".into(),
        seed: 20_261_121,
        arms: vec![arm("epoll"), arm("uring")],
        cells: vec![
            cell(10, CellRole::Exploratory, LoadMode::Closed, 6),
            cell(100, CellRole::Primary, LoadMode::Closed, 12),
            cell(1000, CellRole::Exploratory, LoadMode::Closed, 6),
            cell(100, CellRole::Exploratory, share, 6),
        ],
        server_cpus: vec![0],
        load_cpus: vec![1],
        equivalence_margin: 0.03,
        time_cap_ns: 240 * SECOND_NS,
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

fn counters(uring: bool) -> Vec<(String, f64)> {
    let counters: &[(&str, f64)] = if uring {
        &[
            ("completions", 2.0),
            ("enters", 0.0312),
            ("receives", 1.0),
            ("sends", 1.0),
            ("submissions", 1.0),
            ("turns", 0.0312),
        ]
    } else {
        &[
            ("completions", 1.0),
            ("recv_calls", 1.0),
            ("receives", 1.0),
            ("send_calls", 1.0),
            ("sends", 1.0),
            ("turns", 0.0164),
            ("wait_calls", 0.0164),
            ("would_block", 0.0002),
        ]
    };
    counters.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

fn curve(base_ns: f64, tail: f64) -> Vec<(f64, u64)> {
    [0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999]
        .into_iter()
        .map(|quantile: f64| (quantile, (base_ns * (1.0 - quantile).powf(-tail)) as u64))
        .collect()
}

fn summary(jitter: &mut Jitter, cell: &CellSpec, arm: &str, cpu_us: f64, throughput: f64) -> ArmSummary {
    let trials = cell.blocks as usize * if arm == "epoll" { 2 } else { 1 };
    let open = cell.load != LoadMode::Closed;
    let rates = jitter.around(throughput, if open { 0.002 } else { 0.012 }, trials);
    let cpus = jitter.around(cpu_us, 0.013, trials);
    let uring = arm == "uring";
    let figures =
        |metric: Metric, units: Vec<f64>| MetricFigures::of(metric, units).expect("there are units");
    let response = if uring { 54_000.0 } else { 61_000.0 };
    ArmSummary {
        cell_id: cell.id.clone(),
        arm: arm.to_owned(),
        trials: trials as u32,
        figures: vec![
            figures(Metric::ServerCpuPerMessage, cpus),
            figures(Metric::MachineCpuPerMessage, jitter.around(cpu_us + 7.4, 0.01, trials)),
            figures(Metric::SwitchesPerMessage, jitter.around(0.012, 0.2, trials)),
            figures(Metric::Throughput, rates),
            figures(Metric::GeneratorCpuPerMessage, jitter.around(7.1, 0.01, trials)),
            figures(Metric::InvoluntarySwitchesPerMessage, jitter.around(0.0004, 0.2, trials)),
        ],
        generator_bound: !open && cell.connections < 1000,
        engine_per_message: counters(uring),
        syscalls_per_message: Some(if uring { 0.0312 } else { 2.0164 }),
        response_quantiles: curve(response, if uring { 0.28 } else { 0.30 }),
        service_quantiles: curve(if uring { 47_000.0 } else { 52_000.0 }, if uring { 0.21 } else { 0.22 }),
    }
}

/// A comparison, and the first arm compared with itself.
fn compared(
    jitter: &mut Jitter,
    cell: &CellSpec,
    metric: Metric,
    ratio: f64,
    verdict: Verdict,
) -> [Effect; 2] {
    let is_claim = cell.blocks == 12;
    let width = if is_claim { 0.011 } else { 0.019 };
    let comparison = Effect {
        cell_id: cell.id.clone(),
        arm: "uring".to_owned(),
        baseline: "epoll".to_owned(),
        metric,
        estimate: Some(ratio),
        interval: Some((ratio * (1.0 - width), ratio * (1.0 + width))),
        level: if is_claim { 0.95 } else { 0.969 },
        method: IntervalMethod::StudentT,
        units: cell.blocks,
        is_paired: true,
        p_value: Some(if is_claim { 0.0005 } else { 0.031 }),
        p_value_holm: (cell.role == CellRole::Primary).then_some(0.0005),
        detectable: Some(if is_claim { 0.014 } else { 0.027 }),
        role: cell.role,
        verdict,
        values: logarithms(&jitter.around(ratio, width * 1.4, cell.blocks as usize)),
        ..Effect::default()
    };
    let values = logarithms(&jitter.around(1.0, 0.012, cell.blocks as usize));
    let own = Effect { values, ..itself(&cell.id, metric, if is_claim { 0.012 } else { 0.021 }) };
    [comparison, own]
}

/// The first arm compared with itself, with an interval of this reach around no difference.
pub fn itself(cell_id: &str, metric: Metric, reach: f64) -> Effect {
    let scale = EffectScale::of(metric);
    Effect {
        question: Question::Itself,
        cell_id: cell_id.to_owned(),
        arm: "epoll".to_owned(),
        baseline: "epoll".to_owned(),
        metric,
        scale,
        interval: Some(match scale {
            EffectScale::Ratio => (1.0 / (1.0 + reach), 1.0 + reach),
            _ => (-reach, reach),
        }),
        ..Effect::default()
    }
}

/// Effects as they are stored, of ratios.
pub fn logarithms(ratios: &[f64]) -> Vec<f64> {
    ratios.iter().map(|ratio| ratio.ln()).collect()
}

/// The row that answers another question about a comparison, with its figure and no interval.
pub fn beside(of: &Effect, question: Question, estimate: f64) -> Effect {
    Effect {
        question,
        cell_id: of.cell_id.clone(),
        arm: of.arm.clone(),
        baseline: of.baseline.clone(),
        metric: of.metric,
        scale: match question {
            Question::Ratio | Question::WithNoise => EffectScale::Ratio,
            _ => of.scale,
        },
        estimate: Some(estimate),
        ..Effect::default()
    }
}

/// Adds a comparison after all others.
pub fn compare(result: &mut StudyResult, row: Effect) {
    let place = result.effects.comparisons().count();
    result.effects.rows.insert(place, row);
}

/// Adds a comparison with its row with noise, and with the first arm against itself where the cell has no such row yet.
fn add(result: &mut StudyResult, [comparison, own]: [Effect; 2]) {
    let is_known = result.effects.itself(&comparison).is_some();
    let further = with_noise(&comparison).into_iter().chain((!is_known).then_some(own));
    result.effects.rows.extend(further);
    compare(result, comparison);
}

fn with_noise(comparison: &Effect) -> Option<Effect> {
    comparison.estimate.map(|ratio| beside(comparison, Question::WithNoise, ratio * 1.004))
}

fn effects(jitter: &mut Jitter, cells: &[CellSpec]) -> Effects {
    let (mut compared, mut beside): (Vec<Effect>, Vec<Effect>) = Default::default();
    for index in [1, 0, 2, 3] {
        for [comparison, own] in of_cell(jitter, &cells[index]) {
            beside.push(own);
            beside.extend(with_noise(&comparison));
            if comparison.role == CellRole::Primary && comparison.metric == Metric::ServerCpuPerMessage {
                beside.extend(in_states(&comparison));
            }
            compared.push(comparison);
        }
    }
    let calls = Finding::AlsoSyscalls { arm: 0.0312, baseline: 2.0164, kind: MessageKind::Message };
    compared[0].notes.push(calls);
    compared.extend(beside);
    Effects { rows: compared }
}

fn in_states(comparison: &Effect) -> [Effect; 2] {
    let in_state = |question: Question, units: u32, ratio: f64| Effect {
        units,
        interval: Some((ratio * 0.98, ratio * 1.02)),
        ..beside(comparison, question, ratio)
    };
    let near = comparison.estimate.expect("it has one");
    [in_state(Question::NearState, 8, near), in_state(Question::FarState, 4, 0.851)]
}

fn of_cell(jitter: &mut Jitter, cell: &CellSpec) -> Vec<[Effect; 2]> {
    let is_open = cell.load != LoadMode::Closed;
    let cpu_ratio = match (cell.connections, is_open) {
        (100, false) => 0.781,
        (10, false) => 0.823,
        (100, true) => 0.846,
        _ => 0.792,
    };
    let mut all = Vec::new();
    let mut cpu = compared(jitter, cell, Metric::ServerCpuPerMessage, cpu_ratio, Verdict::Better);
    cpu[0].figures = Some((5.1 * cpu_ratio, 5.1));
    all.push(cpu);
    let machine_ratio = 1.0 - (1.0 - cpu_ratio) * 0.4;
    all.push(compared(jitter, cell, Metric::MachineCpuPerMessage, machine_ratio, Verdict::Better));
    if is_open {
        all.push(compared(jitter, cell, Metric::LatencyP50, 0.893, Verdict::Better));
        let [mut tail, own] = compared(jitter, cell, Metric::LatencyP99, 0.972, Verdict::Inconclusive);
        (tail.interval, tail.detectable) = (Some((0.931, 1.024)), Some(0.071));
        let own = Effect { values: own.values, ..itself(&cell.id, Metric::LatencyP99, 0.062) };
        all.push([tail, own]);
    } else if cell.connections < 1000 {
        let mut bound = compared(jitter, cell, Metric::Throughput, 1.062, Verdict::NotComparable);
        bound[0].figures = Some((126_219.0, 121_700.0));
        bound[0].reasons.push(Finding::LowerBound {
            arm: "uring".to_owned(),
            per_second: 126_219.0,
            kind: MessageKind::Message,
        });
        all.push(bound);
    } else {
        let mut even = compared(jitter, cell, Metric::Throughput, 1.006, Verdict::Equivalent);
        even[0].excluded.push(Finding::Excluded { reason: ExclusionKind::StateChanged, count: 1 });
        all.push(even);
    }
    all
}

fn timeline(jitter: &mut Jitter, cells: &[CellSpec]) -> Vec<TimelineEntry> {
    let mut entries: Vec<TimelineEntry> = Vec::new();
    let mut now_ns = 2 * SECOND_NS;
    // Cells take turns: two blocks of the primary comparison, then one of each other cell.
    let rounds =
        (0..6).flat_map(|round| [(1, round * 2), (1, round * 2 + 1), (2, round), (0, round), (3, round)]);
    for (cell, block) in rounds {
        let mut arms = ["epoll", "uring", "epoll"];
        arms.rotate_left(((jitter.next() + 1.0) * 1.5) as usize);
        for arm in arms {
            let changed = cell == 2 && block == 3;
            let elapsed_ns = 1_750_000_000 + ((jitter.next() + 1.0) * 1e8) as u64;
            entries.push(TimelineEntry {
                arm: arm.to_owned(),
                cell_id: cells[cell].id.clone(),
                block,
                started_ns: now_ns,
                elapsed_ns,
                round_trip_ns: if changed { 318.0 } else { 118.0 * (1.0 + 0.03 * jitter.next()) },
                steal_share: if changed { 0.014 } else { 0.0 },
                clean: !changed,
            });
            now_ns += elapsed_ns + 120_000_000;
        }
    }
    entries
}

fn fingerprint() -> Fingerprint {
    Fingerprint {
        kernel_release: "6.18.2".to_owned(),
        kernel_version: "#1 SMP PREEMPT_DYNAMIC".to_owned(),
        architecture: "x86_64".to_owned(),
        host: "bench".to_owned(),
        cpu_model: "AMD EPYC 9R14".to_owned(),
        cpus_online: 2,
        cpus_allowed: vec![0, 1],
        cpu_siblings: vec![vec![0], vec![1]],
        memory_bytes: 8 << 30,
        distribution: "Debian GNU/Linux 12 (bookworm)".to_owned(),
        hypervisor: Some("kvm".to_owned()),
        governor: None,
        clocksource: "kvm-clock".to_owned(),
        softirqs_are_apart: Some(false),
        mitigations: BTreeMap::from([("spectre_v2".to_owned(), "Mitigation: Retpolines".to_owned())]),
        limits: BTreeMap::from([("nofile".to_owned(), "1048576".to_owned())]),
        control_group: BTreeMap::from([("cpu.max".to_owned(), "max 100000".to_owned())]),
        loopback_mtu: Some(65_536),
        links: BTreeMap::new(),
        load_link: BTreeMap::new(),
        transparent_hugepages: "madvise".to_owned(),
        programs: BTreeMap::new(),
        weir_version: "0.1.0 (b9cf284)".to_owned(),
        build: "release, opt-level 3, rustc 1.90.0".to_owned(),
        program_builds: BTreeMap::new(),
        running: BTreeMap::new(),
        load_host: None,
    }
}

fn checks() -> Vec<Check> {
    let passed = |name: CheckName, detail: Finding| Check { name, passed: true, detail };
    let failed = |name: CheckName, detail: Finding| Check { name, passed: false, detail };
    let bytes = 1_402_331_904;
    vec![
        passed(
            CheckName::BytesVerified,
            Finding::BytesCompared { compared: bytes, expected: bytes, wrong: 0 },
        ),
        passed(CheckName::FailuresClassified, Finding::Failures { count: 0, classes: Vec::new() }),
        passed(
            CheckName::LittlesLaw,
            Finding::LittlesLaw {
                kind: MessageKind::Message,
                error: 0.006,
                over: 0,
                trials: 90,
                error_max: 0.05,
            },
        ),
        passed(CheckName::Interleaving, Finding::Interleaving { matching: 30, blocks: 30, seed: 20_261_121 }),
        passed(
            CheckName::BaselineAgainstItself,
            Finding::AgainstItself {
                units: 12,
                unit: UnitKind::Pair,
                kind: MessageKind::Message,
                ratio: 1.001,
                interval: Some((0.996, 1.006)),
            },
        ),
        passed(
            CheckName::Other("a-check-of-tomorrow".to_owned()),
            Finding::Text("known by its own name only".to_owned()),
        ),
        failed(CheckName::GeneratorHeadroom, Finding::GeneratorLimit { bound: 54, trials: 72 }),
    ]
}

/// `weir study quick` with a good result.
pub fn quick() -> StudyResult {
    let mut jitter = Jitter(7);
    let spec = spec();
    let figures = [
        (0, 5.02, 4.14, 98_400.0),
        (1, 5.10, 3.98, 121_700.0),
        (2, 5.71, 4.52, 96_300.0),
        (3, 5.9, 4.99, 73_000.0),
    ];
    let mut arms = Vec::new();
    for (index, epoll_us, uring_us, throughput) in figures {
        let cell = &spec.cells[index];
        let gain = if cell.load == LoadMode::Closed { 1.04 } else { 1.0 };
        arms.push(summary(&mut jitter, cell, "epoll", epoll_us, throughput));
        arms.push(summary(&mut jitter, cell, "uring", uring_us, throughput * gain));
    }
    StudyResult {
        schema_version: weir_record::SCHEMA_VERSION,
        fingerprint: fingerprint(),
        primary: Some(0),
        verdict: Verdict::Better,
        effects: effects(&mut jitter, &spec.cells),
        arms,
        checks: checks(),
        states: MachineStates {
            boundary_ns: Some(190.0),
            near_ns: 118.0,
            far_ns: Some(318.0),
            trials: (87, 3, 0),
        },
        timeline: timeline(&mut jitter, &spec.cells),
        missing_arms: Vec::new(),
        complete: true,
        elapsed_ns: 192 * SECOND_NS,
        reproduce: "weir study quick --seed 20261121".to_owned(),
        spec,
        listening: Vec::new(),
        evidence: Vec::new(),
        strace: Vec::new(),
        threads: Vec::new(),
        cpu_differences: Vec::new(),
        syn_ladder_s: Vec::new(),
        oversubscribed: Vec::new(),
        grids: Vec::new(),
        overviews: Vec::new(),
        latency_ladders: Vec::new(),
        connection_costs: None,
        aggregates: Vec::new(),
        guidance: None,
        frontier: Vec::new(),
        frontier_answers: Vec::new(),
        wait_series: Vec::new(),
        period: None,
        among_runs: None,
    }
}

/// The same study with another primary verdict; ratio and interval fit the word.
pub fn with_verdict(verdict: Verdict) -> StudyResult {
    let mut result = quick();
    let (ratio, interval) = match verdict {
        Verdict::Better => (0.781, (0.772, 0.790)),
        Verdict::Worse => (1.274, (1.251, 1.302)),
        Verdict::Equivalent => (1.004, (0.991, 1.012)),
        Verdict::Inconclusive | Verdict::NotComparable | Verdict::NoClaim => (0.972, (0.941, 1.013)),
    };
    let primary = &mut result.effects.rows[0];
    (primary.estimate, primary.interval, primary.verdict) = (Some(ratio), Some(interval), verdict);
    primary.values = vec![ratio.ln(); 12];
    if verdict != Verdict::Better {
        primary.notes.clear();
    }
    if verdict == Verdict::Inconclusive {
        primary.reasons.push(Finding::IncludesNone { none: 1.0, units_wanted: Some(60) });
    }
    if verdict == Verdict::NotComparable {
        primary.reasons.push(Finding::Unexplained { arm: "uring".to_owned(), failures: 3 });
    }
    result.verdict = verdict;
    result
}

/// Nothing was finished.
pub fn empty() -> StudyResult {
    StudyResult {
        primary: None,
        verdict: Verdict::NotComparable,
        effects: Effects::default(),
        arms: Vec::new(),
        checks: Vec::new(),
        states: MachineStates::default(),
        timeline: Vec::new(),
        complete: false,
        elapsed_ns: 0,
        ..quick()
    }
}

/// io_uring is switched off, so one arm has figures and nothing is compared.
pub fn one_arm_missing() -> StudyResult {
    let mut result = quick();
    result.arms.retain(|summary| summary.arm == "epoll");
    result.timeline.retain(|entry| entry.arm == "epoll");
    result.missing_arms.push(MissingArm {
        name: "uring".to_owned(),
        reason: Finding::IoUringDisabled { level: 2 },
        unlock: Some(command("sysctl kernel.io_uring_disabled=0")),
    });
    StudyResult { primary: None, verdict: Verdict::NotComparable, effects: Effects::default(), ..result }
}

/// No comparison could be judged.
pub fn all_not_comparable() -> StudyResult {
    let mut result = with_verdict(Verdict::NotComparable);
    for comparison in result.effects.comparisons_mut() {
        comparison.verdict = Verdict::NotComparable;
        (comparison.estimate, comparison.interval, comparison.p_value) = (None, None, None);
        comparison.values.clear();
    }
    result
}

/// Every measured figure is NaN or infinite.
pub fn not_finite() -> StudyResult {
    let mut result = quick();
    for summary in &mut result.arms {
        for figures in &mut summary.figures {
            (figures.mean, figures.units) = (f64::NAN, vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY]);
        }
        summary.syscalls_per_message = Some(f64::NAN);
        summary.engine_per_message = vec![("enters".to_owned(), f64::NAN)];
        summary.response_quantiles = vec![(f64::NAN, 1), (0.5, 0), (1.0, u64::MAX)];
    }
    for row in &mut result.effects.rows {
        row.estimate = Some(f64::NAN);
        row.interval = row.interval.map(|_| (f64::NEG_INFINITY, f64::INFINITY));
        if row.is_comparison() {
            row.values = vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
            row.detectable = Some(f64::NAN);
            row.p_value = Some(f64::NAN);
            row.excluded.push(Finding::Excluded { reason: ExclusionKind::StateChanged, count: 2 });
        }
    }
    for entry in &mut result.timeline {
        (entry.round_trip_ns, entry.steal_share) = (f64::NAN, f64::NAN);
    }
    result.states = MachineStates {
        boundary_ns: Some(f64::NAN),
        near_ns: f64::NAN,
        far_ns: Some(f64::NAN),
        trials: (0, 0, 0),
    };
    result
}

/// The text of names in [`hostile_names`].
pub const HOSTILE: &str = "<script>alert(\"x\")</script>&|`*,\u{1b}[2J";

/// Every external text tries to be markup.
pub fn hostile_names() -> StudyResult {
    let mut result = with_verdict(Verdict::NotComparable);
    let hostile = || HOSTILE.to_owned();
    (result.spec.name, result.spec.title, result.reproduce) = (hostile(), hostile().into(), hostile());
    result.spec.arms[1].name = hostile();
    for summary in result.arms.iter_mut().filter(|summary| summary.arm == "uring") {
        summary.arm = hostile();
        summary.engine_per_message.push((hostile(), 1.0));
    }
    for row in result.effects.rows.iter_mut().filter(|row| row.arm == "uring") {
        row.arm = hostile();
        if row.is_comparison() {
            row.reasons = vec![Finding::WrongBytes { arm: hostile(), responses: 1 }];
            row.notes = vec![Finding::Text(hostile())];
            row.excluded = vec![Finding::Text(hostile())];
        }
    }
    let timeline = result.timeline.iter_mut().filter(|entry| entry.arm == "uring");
    timeline.for_each(|entry| entry.arm = hostile());
    result.checks[0].name = CheckName::Other(hostile());
    let first = FailedTrial { arm: hostile(), said: Some(hostile()), ..FailedTrial::default() };
    result.checks[1].detail = Finding::Reports { missing: 1, trials: 2, first: Some(first) };
    result.fingerprint.cpu_model = hostile();
    let (reason, unlock) = (Finding::Said { text: hostile() }, Some(command(&hostile())));
    result.missing_arms.push(MissingArm { name: hostile(), reason, unlock });
    result
}

/// More cells than any chart shows.
pub fn two_hundred_cells() -> StudyResult {
    let mut result = quick();
    let mut jitter = Jitter(11);
    for connections in 2000..2196 {
        let cell = cell(connections, CellRole::Confirmatory, LoadMode::Closed, 6);
        result.arms.push(summary(&mut jitter, &cell, "epoll", 5.8, 90_000.0));
        result.arms.push(summary(&mut jitter, &cell, "uring", 4.6, 93_000.0));
        let rows = compared(&mut jitter, &cell, Metric::ServerCpuPerMessage, 0.79, Verdict::Better);
        add(&mut result, rows);
        result.spec.cells.push(cell);
    }
    result
}

/// Ten servers compared with each other, some with long names, two of them foreign.
pub fn ten_arms() -> StudyResult {
    const NAMES: [&str; 10] = [
        "epoll",
        "uring",
        "poll",
        "select",
        "uring-single-shot-receive",
        "epoll-level-triggered",
        "control",
        "tokio",
        "libuv",
        "go",
    ];
    let mut jitter = Jitter(13);
    let mut result = quick();
    result.spec.arms = NAMES.map(arm).to_vec();
    result.spec.name = "peers".to_owned();
    result.spec.title = "How do our drivers compare with other runtimes?".into();
    result.spec.cells.truncate(2);
    let cells = result.spec.cells.clone();
    (result.arms, result.effects, result.timeline) = Default::default();
    for (position, name) in NAMES.into_iter().enumerate() {
        for cell in &cells {
            let cost_us = 5.1 * if position == 0 { 1.0 } else { 0.75 + 0.05 * position as f64 };
            let mut summary = summary(&mut jitter, cell, name, cost_us, 120_000.0);
            if position >= 7 {
                (summary.engine_per_message, summary.syscalls_per_message) = (Vec::new(), None);
            }
            result.arms.push(summary);
        }
        for block in 0..12 {
            let place = u64::from(block) * 10 + (position as u64 * 7 + u64::from(block)) % 10;
            result.timeline.push(TimelineEntry {
                arm: name.to_owned(),
                cell_id: cells[1].id.clone(),
                block,
                started_ns: place * 2 * SECOND_NS,
                elapsed_ns: 1_800_000_000,
                round_trip_ns: 120.0,
                steal_share: 0.0,
                clean: true,
            });
        }
    }
    result.timeline.sort_by_key(|entry| entry.started_ns);
    for cell in [&cells[1], &cells[0]] {
        for (position, name) in NAMES.into_iter().enumerate().skip(1) {
            let ratio = 0.75 + 0.05 * position as f64;
            let verdict = match ratio {
                ratio if ratio < 0.97 => Verdict::Better,
                ratio if ratio > 1.03 => Verdict::Worse,
                _ => Verdict::Equivalent,
            };
            let mut rows = compared(&mut jitter, cell, Metric::ServerCpuPerMessage, ratio, verdict);
            name.clone_into(&mut rows[0].arm);
            add(&mut result, rows);
        }
    }
    result
}

fn command(command: &str) -> Finding {
    Finding::RunCommand { command: command.to_owned() }
}
