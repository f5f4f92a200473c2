//! Studies made by hand: a realistic one, and odd ones that a report must survive.

use std::collections::BTreeMap;

use weir_record::{
    check::{Check, CheckName},
    doctor::FindingState,
    figure::PairedRatio,
    finding::{ExclusionKind, FailedTrial, Finding, MessageKind, UnitKind},
    machine::{Fingerprint, NetworkCounters},
    metric::Metric,
    published::{Cause, PublishedClaim},
    spec::{ArmSpec, CellRole, CellSpec, HttpCell, IoModel, LoadMode, StudySpec, Subject},
    study::{
        ArmSummary, Attribution, ListenSummary, MachineStates, MetricFigures, MissingArm, StudyResult,
        TimelineEntry, TimesSummary,
    },
    text::Text,
    verdict::{Comparison, StateEffect, Verdict},
};

use super::jitter::Jitter;

const SECOND_NS: u64 = 1_000_000_000;

pub fn arm(name: &str) -> ArmSpec {
    let subject = Subject::Weir { driver: name.to_owned(), options: BTreeMap::new(), arguments: Vec::new() };
    let (name, load_options) = (name.to_owned(), BTreeMap::new());
    ArmSpec { name, subject, load_options, baseline: None, is_placebo: false, warmup_ns: 0 }
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

fn comparison(
    jitter: &mut Jitter,
    cell: &CellSpec,
    metric: Metric,
    ratio: f64,
    verdict: Verdict,
) -> Comparison {
    let width = if cell.blocks == 12 { 0.011 } else { 0.019 };
    Comparison {
        cell_id: cell.id.clone(),
        arm: "uring".to_owned(),
        baseline: "epoll".to_owned(),
        metric,
        ratio: Some(ratio),
        interval: Some((ratio * (1.0 - width), ratio * (1.0 + width))),
        confidence: if cell.blocks == 12 { 0.95 } else { 0.969 },
        interval_method: if cell.blocks == 12 { "bootstrap" } else { "order-statistics" }.to_owned(),
        difference: None,
        levels: None,
        p_value: Some(if cell.blocks == 12 { 0.0005 } else { 0.031 }),
        p_value_holm: (cell.role == CellRole::Primary).then_some(0.0005),
        noise_floor: Some(if cell.blocks == 12 { 0.012 } else { 0.021 }),
        detectable_effect: Some(if cell.blocks == 12 { 0.014 } else { 0.027 }),
        pairs: cell.blocks,
        pairs_excluded: Vec::new(),
        effects: logarithms(&jitter.around(ratio, width * 1.4, cell.blocks as usize)),
        effects_self: logarithms(&jitter.around(1.0, 0.012, cell.blocks as usize)),
        ratio_all_pairs: Some(ratio * 1.004),
        interval_self: None,
        by_state: Vec::new(),
        verdict,
        reasons: Vec::new(),
        notes: Vec::new(),
    }
}

/// Effects as they are stored, of ratios.
pub fn logarithms(ratios: &[f64]) -> Vec<f64> {
    ratios.iter().map(|ratio| ratio.ln()).collect()
}

fn comparisons(jitter: &mut Jitter, cells: &[CellSpec]) -> Vec<Comparison> {
    let mut all = Vec::new();
    for (index, cpu_ratio) in [(1, 0.781), (0, 0.823), (2, 0.792), (3, 0.846)] {
        let cell = &cells[index];
        let open = cell.load != LoadMode::Closed;
        let mut cpu = comparison(jitter, cell, Metric::ServerCpuPerMessage, cpu_ratio, Verdict::Better);
        cpu.levels = Some((5.1 * cpu_ratio, 5.1));
        if cell.role == CellRole::Primary {
            let in_state = |is_far: bool, units: u32, ratio: f64| StateEffect {
                is_far,
                units,
                ratio,
                interval: (ratio * 0.98, ratio * 1.02),
            };
            cpu.by_state = vec![in_state(false, 8, cpu_ratio), in_state(true, 4, 0.851)];
        }
        all.push(cpu);
        let machine_ratio = 1.0 - (1.0 - cpu_ratio) * 0.4;
        all.push(comparison(jitter, cell, Metric::MachineCpuPerMessage, machine_ratio, Verdict::Better));
        if open {
            all.push(comparison(jitter, cell, Metric::LatencyP50, 0.893, Verdict::Better));
            let mut tail = comparison(jitter, cell, Metric::LatencyP99, 0.972, Verdict::Inconclusive);
            tail.interval = Some((0.931, 1.024));
            tail.noise_floor = Some(0.062);
            tail.detectable_effect = Some(0.071);
            all.push(tail);
        } else if cell.connections < 1000 {
            let mut bound = comparison(jitter, cell, Metric::Throughput, 1.062, Verdict::NotComparable);
            bound.levels = Some((126_219.0, 121_700.0));
            bound.reasons.push(Finding::LowerBound {
                arm: "uring".to_owned(),
                per_second: 126_219.0,
                kind: MessageKind::Message,
            });
            all.push(bound);
        } else {
            let mut even = comparison(jitter, cell, Metric::Throughput, 1.006, Verdict::Equivalent);
            even.pairs_excluded.push(Finding::Excluded { reason: ExclusionKind::StateChanged, count: 1 });
            all.push(even);
        }
    }
    let calls = Finding::AlsoSyscalls { arm: 0.0312, baseline: 2.0164, kind: MessageKind::Message };
    all[0].notes.push(calls);
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
        transparent_hugepages: "madvise".to_owned(),
        programs: BTreeMap::new(),
        weir_version: "0.1.0 (b9cf284)".to_owned(),
        build: "release, opt-level 3, rustc 1.90.0".to_owned(),
        program_builds: BTreeMap::new(),
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

/// `weir study quick` as it comes out on a good day.
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
        comparisons: comparisons(&mut jitter, &spec.cells),
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
        attributions: Vec::new(),
        listening: Vec::new(),
        evidence: Vec::new(),
        strace: Vec::new(),
        threads: Vec::new(),
        cpu_differences: Vec::new(),
        syn_ladder_s: Vec::new(),
        added_costs: Vec::new(),
        causes: Vec::new(),
        oversubscribed: Vec::new(),
        answers: Vec::new(),
        grids: Vec::new(),
        contrasts: Vec::new(),
        overviews: Vec::new(),
        latency_ladders: Vec::new(),
        connection_costs: None,
        aggregates: Vec::new(),
        guidance: None,
        frontier: Vec::new(),
        frontier_answers: Vec::new(),
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
    let primary = &mut result.comparisons[0];
    (primary.ratio, primary.interval, primary.verdict) = (Some(ratio), Some(interval), verdict);
    primary.effects = vec![ratio.ln(); 12];
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
        comparisons: Vec::new(),
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
    StudyResult { primary: None, verdict: Verdict::NotComparable, comparisons: Vec::new(), ..result }
}

/// No comparison could be judged.
pub fn all_not_comparable() -> StudyResult {
    let mut result = with_verdict(Verdict::NotComparable);
    for comparison in &mut result.comparisons {
        comparison.verdict = Verdict::NotComparable;
        (comparison.ratio, comparison.interval, comparison.p_value) = (None, None, None);
        comparison.effects.clear();
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
    for comparison in &mut result.comparisons {
        comparison.ratio = Some(f64::NAN);
        comparison.interval = Some((f64::NEG_INFINITY, f64::INFINITY));
        comparison.effects = vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        comparison.noise_floor = Some(f64::INFINITY);
        comparison.detectable_effect = Some(f64::NAN);
        comparison.ratio_all_pairs = Some(f64::NAN);
        comparison.p_value = Some(f64::NAN);
        comparison.pairs_excluded.push(Finding::Excluded { reason: ExclusionKind::StateChanged, count: 2 });
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

/// The text that names are made of in [`hostile_names`].
pub const HOSTILE: &str = "<script>alert(\"x\")</script>&|`*,\u{1b}[2J";

/// Every text that comes from outside tries to be markup.
pub fn hostile_names() -> StudyResult {
    let mut result = with_verdict(Verdict::NotComparable);
    let hostile = || HOSTILE.to_owned();
    (result.spec.name, result.spec.title, result.reproduce) = (hostile(), hostile().into(), hostile());
    result.spec.arms[1].name = hostile();
    for summary in result.arms.iter_mut().filter(|summary| summary.arm == "uring") {
        summary.arm = hostile();
        summary.engine_per_message.push((hostile(), 1.0));
    }
    for comparison in &mut result.comparisons {
        comparison.arm = hostile();
        comparison.reasons = vec![Finding::WrongBytes { arm: hostile(), responses: 1 }];
        comparison.notes = vec![Finding::Text(hostile())];
        comparison.pairs_excluded = vec![Finding::Text(hostile())];
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
        result.comparisons.push(comparison(
            &mut jitter,
            &cell,
            Metric::ServerCpuPerMessage,
            0.79,
            Verdict::Better,
        ));
        result.spec.cells.push(cell);
    }
    result
}

/// Ten servers against each other, some with long names, two of them foreign.
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
    (result.arms, result.comparisons, result.timeline) = (Vec::new(), Vec::new(), Vec::new());
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
            let mut it = comparison(&mut jitter, cell, Metric::ServerCpuPerMessage, ratio, verdict);
            name.clone_into(&mut it.arm);
            result.comparisons.push(it);
        }
    }
    result
}

fn claims(cell_id: &str) -> Vec<PublishedClaim> {
    let text = |text: &str| text.to_owned();
    let told = |[en, ko, zh]: [&str; 3]| Text { en: text(en), ko: Some(text(ko)), zh: Some(text(zh)) };
    vec![
        PublishedClaim {
            id: text("S2-08 page"),
            source: told(["Document 002", "문서 002", "文档 002"]),
            claim: told([
                "HTML page, 100 connections: uring 4800+ requests/s at 20 ms, epoll 4000+ at 23 ms",
                "HTML 페이지, 연결 100개: uring 초당 4800건 이상 20 ms, epoll 4000건 이상 23 ms",
                "HTML 页面，100 个连接：uring 每秒 4800+ 个请求，20 ms；epoll 4000+，23 ms",
            ]),
            ratio: Some(1.2),
            metric: Metric::Throughput,
            cell_id: text(cell_id),
            arm: text("uring"),
            baseline: text("epoll"),
            explanation: told([
                "A connection for every request, and a log line flushed for every connection by the epoll server alone; the tool stopped its clock at the head.",
                "요청마다 새 연결을 열었고, epoll 서버만 연결마다 로그 한 줄을 바로 기록했으며, 도구는 응답 헤더까지만 시간을 쟀습니다.",
                "每个请求新建一个连接，且只有 epoll 服务器为每个连接立即写出一行日志；测试工具的计时止于响应头。",
            ]),
            causes: vec![Cause { arm: text("uring"), baseline: text("epoll-log-lines") }],
        },
        PublishedClaim {
            id: text("S4-09"),
            source: told(["Document 004", "문서 004", "文档 004"]),
            claim: told(["the bottleneck is not the network", "병목은 네트워크가 아니다", "瓶颈不在网络"]),
            ratio: None,
            metric: Metric::Throughput,
            cell_id: text(cell_id),
            arm: text("gone"),
            baseline: text("epoll"),
            explanation: told([
                "True, and it was not the I/O model either, but the listener's queue of 10: http-confounders switches it on.",
                "맞지만 기다리는 방식도 아니었습니다. 수신 대기열 10이 병목이었으며, http-confounders에서 켜 볼 수 있습니다.",
                "没错，但也不是等待方式，而是长度为 10 的监听队列：http-confounders 可以打开它。",
            ]),
            causes: Vec::new(),
        },
    ]
}

fn listening(cell_id: &str) -> Vec<ListenSummary> {
    let text = |text: &str| text.to_owned();
    let times = |p50_ns: u64, ns_max: u64| TimesSummary {
        count: 90_000,
        p50_ns: Some(p50_ns),
        p99_ns: Some(p50_ns * 3),
        ns_max,
    };
    vec![
        ListenSummary {
            cell_id: cell_id.to_owned(),
            arm: text("epoll"),
            trials: 12,
            connect: times(80_000, 2_000_000),
            first_byte: times(900_000, 4_000_000),
            last_byte: times(905_000, 4_100_000),
            ..ListenSummary::default()
        },
        ListenSummary {
            cell_id: cell_id.to_owned(),
            arm: text("uring"),
            trials: 6,
            network: NetworkCounters {
                listen_overflows: 5_231,
                listen_drops: 5_231,
                tcp_retransmits: 6_200,
                syn_retransmits: 5_102,
            },
            connect: times(90_000, 3_020_000_000),
            stalled: vec![(1, 4_800), (3, 12)],
            ..ListenSummary::default()
        },
    ]
}

fn of_requests(finding: &mut Finding) {
    if let Finding::LowerBound { kind, .. } | Finding::AlsoSyscalls { kind, .. } = finding {
        *kind = MessageKind::Request;
    }
}

/// A study of HTTP with published figures, causes switched on, and a listener that lost connections.
pub fn http() -> StudyResult {
    let mut result = quick();
    result.spec.name = "http-confounders".to_owned();
    result.spec.title = "How much of the published differences does each of their causes make here?".into();
    for cell in &mut result.spec.cells {
        let content = if cell.connections == 1000 { "image" } else { "html" };
        cell.message_bytes = if content == "image" { 151_552 } else { 592 };
        let close = cell.role == CellRole::Primary;
        cell.http = Some(HttpCell { content: content.to_owned(), close, ..HttpCell::default() });
    }
    let cell_id = result.comparisons[0].cell_id.clone();
    let text = |text: &str| text.to_owned();
    result.spec.published = claims(&cell_id);
    let ratio =
        |ratio: f64| Some(PairedRatio { ratio, interval: Some((ratio * 0.98, ratio * 1.02)), pairs: 6 });
    result.attributions = vec![Attribution {
        claim: text("S2-08 page"),
        cell_id: cell_id.clone(),
        arm: text("uring"),
        baseline: text("epoll-log-lines"),
        throughput: ratio(1.14),
        server_cpu: ratio(0.71),
        throughput_share: Some(0.37),
        server_cpu_share: Some(0.524),
    }];
    for (index, summary) in result.arms.iter_mut().enumerate() {
        for (metric, ns) in [(Metric::FirstByteP50, 410_000.0), (Metric::LastByteP50, 437_000.0)] {
            let units = vec![ns, ns * 1.02 + index as f64 * 1e3];
            summary.figures.extend(MetricFigures::of(metric, units));
        }
    }
    result.listening = listening(&cell_id);
    result.syn_ladder_s = vec![1, 2, 3, 4, 5, 7, 11, 19];
    result.fingerprint.limits.insert(text("tcp_syn_linear_timeouts"), text("4"));
    result.checks = vec![Check {
        name: CheckName::ResponsesChecked,
        passed: true,
        detail: Finding::ResponsesChecked {
            bytes: 592_000,
            bytes_expected: 592_000,
            compared: 1000,
            responses: 1000,
            compared_share: 1.0,
            wrong: 0,
        },
    }];
    for comparison in &mut result.comparisons {
        comparison.reasons.iter_mut().chain(&mut comparison.notes).for_each(of_requests);
    }
    result
}

/// The same with a table of I/O models, of which one is missing and one used up.
pub fn survey() -> StudyResult {
    let way = |name: &str, state: FindingState, detail: Finding, source: Finding| IoModel {
        name: name.to_owned(),
        state,
        detail,
        source,
        unlock: None,
    };
    let driver = |name: &str, features: &[&str]| {
        let features = features.iter().map(|it| (*it).to_owned()).collect();
        way(name, FindingState::Yes, Finding::DriverGranted { features }, Finding::TriedOnSockets)
    };
    let paths = vec!["/proc/sys/fs/aio-max-nr".to_owned()];
    let taken = Finding::RequestsTaken { taken: 65_536, most: 65_536 };
    let refused = Finding::IoUringDisabled { level: 2 };
    let mut result = http();
    result.spec.name = "survey".to_owned();
    result.spec.io_models = vec![
        driver("blocking", &["one-thread-a-connection"]),
        driver("select", &["level-triggered", "descriptors-below-1024"]),
        driver("poll", &["level-triggered", "whole-list-in-every-call"]),
        driver("epoll", &["edge-triggered", "registered-once"]),
        IoModel {
            unlock: Some(command("sudo sysctl -w fs.aio-max-nr=1048576")),
            ..way("aio", FindingState::Limited, taken, Finding::ReadFrom { paths })
        },
        IoModel {
            unlock: Some(command("sudo sysctl -w kernel.io_uring_disabled=0")),
            ..way("io_uring", FindingState::No, refused, Finding::TriedOnSockets)
        },
        way("pwritev", FindingState::Yes, Finding::TwoBuffers, Finding::TriedGathering),
    ];
    result
}

fn command(command: &str) -> Finding {
    Finding::RunCommand { command: command.to_owned() }
}
