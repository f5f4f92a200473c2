//! The study `polling`: a study made by hand through every view.

use weir_record::{
    machine::Fingerprint,
    sweep::{
        Difference, DiskEnvironment, DiskFacts, Estimate, FamilyVolume, Feeding, FrontierRow, FrontierRule,
        Gain, GainStep, MethodResult, MethodRole, MethodSeries, MissingMethod, Observation, ObservationKind,
        OracleDistance, Outcome, PhaseResult, Plane, PlaneKind, PollingResult, Price, Seen, SeriesPoint,
        SweepMethod, SweepPhase, SweepPlan, SweepResult, SweepWorld, WaitingFigures,
    },
};
use weir_report::{Language, polling_html, polling_markdown, polling_terminal, sweep_terminal};

const CANDIDATE: &str = "regime:0.003";
const CLASSIC: &str = "linux-mean:0.5";

fn estimate(median: f64) -> Estimate {
    Estimate { median, interval: Some((median - 0.001, median + 0.001)), values: 20 }
}

fn method(name: &str, role: MethodRole) -> SweepMethod {
    let family = name.split(':').next().unwrap_or_default().to_owned();
    SweepMethod { name: name.into(), predictor: name.into(), family, role, ..SweepMethod::default() }
}

fn found(name: &str, miss: f64, cpu: f64) -> MethodResult {
    MethodResult {
        method: name.into(),
        miss_rate: estimate(miss),
        cpu_share: estimate(cpu),
        iops: Estimate { median: 6_000.0, interval: None, values: 20 },
        added_p99_us: Some(estimate(2.1)),
        medians: WaitingFigures { sleep_effective_us: 80.0, cpu_us: 12.0, ..WaitingFigures::default() },
    }
}

fn row(rule: FrontierRule, outcome: Outcome) -> FrontierRow {
    let of = |median| Difference { estimate: estimate(median), outcome };
    FrontierRow {
        phase: "Job3".into(),
        against: CLASSIC.into(),
        rule,
        misses: of(-0.31),
        cpu: of(-0.5),
        iops: of(0.02),
        outcome,
    }
}

fn plane(kind: PlaneKind) -> Plane {
    let volume = |family: &str, less| FamilyVolume {
        family: family.into(),
        settings: 2,
        volume: estimate(0.9),
        candidate_less_this: less,
    };
    Plane {
        kind,
        reference: (1.0, 1.0),
        ahead: vec![CANDIDATE.into()],
        volumes: vec![volume("regime", None), volume("linux-mean", Some(estimate(0.4)))],
        distances: vec![OracleDistance { method: CANDIDATE.into(), clairvoyant: Some(0.1), constant: None }],
    }
}

fn series(method: &str) -> MethodSeries {
    let point = |at: u64| SeriesPoint {
        phase: "Job3".into(),
        start_ns: at * 1_000_000,
        elapsed_ns: 1_000_000,
        iops: 6_000.0,
        miss_rate: 0.3,
        cpu_share: 0.5,
        sleep_effective_us: 80.0,
    };
    MethodSeries { method: method.into(), seed: 101, points: (0..3).map(point).collect() }
}

fn sweep(world: SweepWorld, outcome: Outcome) -> SweepResult {
    let gain = Gain {
        phase: "Job3".into(),
        step: GainStep::BetterQuantile,
        from: CLASSIC.into(),
        to: "quantile:0.003".into(),
        misses: estimate(-0.3),
        cpu: estimate(0.4),
        iops: estimate(0.05),
        added_p99_us: None,
    };
    let price = Price {
        candidate_interrupted_rate: 0.97,
        method: Some("poll".into()),
        cpu_us_for_latency_us: Some(estimate(73.0)),
        latency_saved_us: Some(estimate(2.0)),
        poll_cpu_us_for_latency_us: Some(estimate(73.0)),
    };
    SweepResult {
        plan: SweepPlan {
            world,
            source: "983 ZET".into(),
            phases: vec![SweepPhase {
                name: "Job3".into(),
                background_cores: 4,
                background_depth: 32,
                ..Default::default()
            }],
            seeds: (101..=120).collect(),
            methods: vec![
                method(CANDIDATE, MethodRole::Candidate),
                method(CLASSIC, MethodRole::Ratio),
                method("linux-mean:0.03", MethodRole::Ratio),
                method("interrupt", MethodRole::Baseline),
            ],
            ..SweepPlan::default()
        },
        candidate: Some(CANDIDATE.into()),
        parts_done: 80,
        complete: true,
        phases: vec![PhaseResult {
            name: "Job3".into(),
            methods: vec![
                found(CANDIDATE, 0.0, 0.04),
                found(CLASSIC, 0.31, 0.55),
                found("linux-mean:0.03", 0.0, 0.97),
                found("interrupt", 0.0, 0.02),
            ],
            planes: vec![plane(PlaneKind::Miss), plane(PlaneKind::AddedP99)],
            price: Some(price),
        }],
        frontier: vec![row(FrontierRule::Ahead, outcome), row(FrontierRule::NotBeatenOnBoth, Outcome::Holds)],
        gains: vec![gain],
        series: [CLASSIC, "linux-mean:0.03"].map(series).into(),
        ..SweepResult::default()
    }
}

fn study(outcome: Outcome) -> PollingResult {
    let figures = WaitingFigures {
        miss_rate: 0.3,
        cpu_share: 0.5,
        sleep_effective_us: 80.0,
        ..WaitingFigures::default()
    };
    let observation = Observation {
        kind: ObservationKind::FivePercentMisses,
        measured: vec![0.0],
        seen: Seen::NotShown,
        with_hypotheses: vec![0.04],
        seen_with_hypotheses: Some(Seen::Shown),
    };
    PollingResult {
        sweeps: vec![sweep(SweepWorld::Simulator, outcome), sweep(SweepWorld::Disk, outcome)],
        observations: vec![observation],
        feeding: vec![Feeding {
            phase: "Job3".into(),
            observed: figures,
            true_times: figures,
            misses: estimate(0.05),
            sleep_effective_us: estimate(12.0),
        }],
        missing: vec![MissingMethod { name: "<b>disk</b>".into(), reason: "tmpfs & no device".into() }],
        reproduce: "weir study polling --seed 7".into(),
        ..PollingResult::default()
    }
}

#[test]
fn the_answer_says_that_the_mechanism_changed_and_names_the_price() {
    let page = polling_terminal(&study(Outcome::Holds), Language::English, 100, false);
    let flat = flat(&page);
    for expected in [
        "Study polling: ahead on both",
        "in the simulator's Job3 one setting, regime:0.003, has no more misses, less CPU and no fewer IOPS",
        "In Job3 it leaves 97 % of the operations to the interrupt",
        "A better prediction alone does not do it",
        "is worth less than 73.0 µs of CPU",
        "not shown (shown)",
        "weir study polling --seed 7",
    ] {
        assert!(flat.contains(expected), "{expected}\n{page}");
    }
}

#[test]
fn a_condition_that_fails_is_the_headline() {
    let page = polling_terminal(&study(Outcome::Fails), Language::English, 100, false);
    assert!(page.starts_with("Study polling: not ahead everywhere\nNot shown in full"), "{page}");
    assert!(page.contains("Disk: 1 of 2 conditions hold, 1 fail."), "{page}");
    let open = polling_terminal(&study(Outcome::Open), Language::English, 100, false);
    assert!(open.starts_with("Study polling: not decided\nNot decided yet"), "{open}");
    let empty = polling_terminal(&PollingResult::default(), Language::English, 100, false);
    assert!(empty.contains("There is no simulator part to judge."), "{empty}");
}

fn flat(page: &str) -> String {
    page.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn margins_are_named_and_a_loss_within_them_fails_without() {
    let mut slower = study(Outcome::Holds);
    slower.sweeps[0].frontier[0].iops.estimate = estimate(-0.003);
    let page = flat(&polling_terminal(&slower, Language::English, 100, false));
    assert!(page.contains("no fewer IOPS, within the margins below, than 1 of 1 ratios"), "{page}");
    assert!(page.contains("0 of 1 conditions that ask for no fewer IOPS hold and 1 fail"), "{page}");
    assert!(page.contains("the largest loss is 0.30 %"), "{page}");
    let table = polling_markdown(&slower, Language::English);
    assert!(table.contains("| fails | holds |"), "{table}");
    let faster = flat(&polling_terminal(&study(Outcome::Holds), Language::English, 100, false));
    assert!(faster.contains("1 of 1 conditions that ask for no fewer IOPS hold and 0 fail"), "{faster}");
    assert!(faster.contains("the largest loss is 0.00 %"), "{faster}");
}

#[test]
fn the_loss_of_operations_is_that_of_lines_which_fail_for_it() {
    let mut failing = study(Outcome::Fails);
    failing.sweeps[0].frontier[0].iops = Difference { estimate: estimate(-0.2), outcome: Outcome::Open };
    let page = flat(&polling_terminal(&failing, Language::English, 100, false));
    assert!(page.contains("0 on IOPS, there by 0.0 % at most"), "{page}");
}

#[test]
fn what_is_emulated_is_said_wherever_figures_are_shown() {
    let mut traces = sweep(SweepWorld::Trace, Outcome::Holds);
    let told = |sweep: &SweepResult, language| flat(&sweep_terminal(sweep, language, 80, false));
    assert!(told(&traces, Language::English).contains("the latencies are those of the file"));
    traces.plan.source = "synthetic".into();
    assert!(told(&traces, Language::English).contains("None was recorded from a device"));
    for language in Language::ALL {
        let model = sweep(SweepWorld::Simulator, Outcome::Holds);
        assert!(told(&model, language).contains("Xeon Gold 6230"));
        let page = flat(&polling_terminal(&study(Outcome::Holds), language, 100, false));
        assert!(page.contains("1.9 µs") && page.contains("101"), "{page}");
    }
}

#[test]
fn the_environment_stands_beside_that_of_the_paper() {
    let mut here = study(Outcome::Holds);
    let unknown = polling_markdown(&here, Language::English);
    assert!(!unknown.contains("983 ZET, 480 GB"), "nothing is known, so there is no table: {unknown}");
    here.fingerprint = Some(Fingerprint {
        kernel_release: "6.18.1".into(),
        architecture: "x86_64".into(),
        cpu_model: "A CPU".into(),
        cpus_online: 2,
        memory_bytes: 8 << 30,
        weir_version: "0.1.0".into(),
        ..Fingerprint::default()
    });
    here.environment = Some(DiskEnvironment {
        operating_system: "Debian GNU/Linux 12".into(),
        disk: Some(DiskFacts {
            name: "vda".into(),
            model: None,
            driver: Some("virtio_blk".into()),
            bytes: 20 << 30,
        }),
        filesystem: "ext4".into(),
    });
    let table = polling_markdown(&here, Language::English);
    for row in [
        "| operating system | Ubuntu 18.04 | Debian GNU/Linux 12 |",
        "| kernel | Linux 5.11 | Linux 6.18.1 x86_64 |",
        "| CPU | Intel Xeon Gold 6230 | A CPU, 2 CPU |",
        "| memory | 192 GB | 8 GiB |",
        "| disk | Samsung 983 ZET, 480 GB | vda, virtio_blk, 20 GiB, ext4 |",
        "| load generator | fio 3.26 | Weir 0.1.0 |",
    ] {
        assert!(table.contains(row), "no {row} in {table}");
    }
    for language in Language::ALL {
        let page = polling_html(&here, language);
        assert!(page.contains("Samsung 983 ZET, 480 GB") && page.contains("vda, virtio_blk, 20 GiB, ext4"));
    }
    // A disk that is not known is a dash, not an empty cell.
    here.environment = None;
    assert!(polling_markdown(&here, Language::English).contains("| Samsung 983 ZET, 480 GB | – |"));
}

#[test]
fn traces_that_were_recorded_stand_beside_the_others_and_decide_nothing() {
    let mut recorded = study(Outcome::Holds);
    recorded.sweeps.push(sweep(SweepWorld::Recording, Outcome::Fails));
    let page = flat(&polling_terminal(&recorded, Language::English, 100, false));
    assert!(page.starts_with("Study polling: ahead on both"), "{page}");
    for expected in [
        "Recorded traces: 1 of 2 conditions hold, 1 fail.",
        "20 pieces",
        "how long this machine's disk took for each read of one thread, from the kernel's block tracepoints",
        "the other's reads, and those that the kernel issued in another thread's name",
        "cut into consecutive pieces",
    ] {
        assert!(page.contains(expected), "{expected}\n{page}");
    }
    let mut without = study(Outcome::Holds);
    without.unrecorded = Some("it needs <root>".into());
    for language in Language::ALL {
        assert!(flat(&polling_terminal(&without, language, 100, false)).contains("it needs <root>"));
        assert!(polling_html(&without, language).contains("it needs &lt;root&gt;"));
    }
}

#[test]
fn a_sweep_is_headed_with_the_seeds_that_have_figures() {
    let heading = |sweep: &SweepResult, language| flat(&sweep_terminal(sweep, language, 100, false));
    let mut cut = sweep(SweepWorld::Disk, Outcome::Open);
    assert!(heading(&cut, Language::English).contains(" · 20 blocks "));
    for found in &mut cut.phases[0].methods {
        found.miss_rate.values = 4;
    }
    assert!(heading(&cut, Language::English).contains(" · 4 of 20 blocks "));
    assert!(heading(&cut, Language::Korean).contains(" · 블록 20개 중 4개 "));
    assert!(heading(&cut, Language::Chinese).contains(" · 20 个区组中的 4 个 "));
    cut.phases[0].methods[1].miss_rate.values = 6;
    assert!(heading(&cut, Language::English).contains(" · 4–6 of 20 blocks "));
    // One that has none yet has no row in the table either; one that cannot be had is named below it.
    let last = cut.phases[0].methods.pop().expect("a method");
    assert!(heading(&cut, Language::English).contains(" · 0–6 of 20 blocks "));
    cut.missing.push(MissingMethod { name: last.method, reason: "no".into() });
    assert!(heading(&cut, Language::English).contains(" · 4–6 of 20 blocks "));
}

#[test]
fn a_disk_that_was_interrupted_before_its_first_figure_leaves_the_page_whole() {
    let mut early = study(Outcome::Holds);
    early.sweeps[1].phases[0] = PhaseResult { name: "background 0".into(), ..PhaseResult::default() };
    early.sweeps[1].frontier.clear();
    early.sweeps[1].series.clear();
    let page = polling_html(&early, Language::English);
    assert!(!page.contains("NaN") && !page.contains("inf\""), "{page}");
}

#[test]
fn the_page_is_whole_in_every_language_and_loads_nothing() {
    for language in Language::ALL {
        for outcome in [Outcome::Holds, Outcome::Fails, Outcome::Open] {
            let page = polling_html(&study(outcome), language);
            for forbidden in
                ["http://", "https://", "<script", "<link", "<img", " src=", "url(", "NaN", "{0}", "{1}"]
            {
                assert!(!page.contains(forbidden), "{language:?}: {forbidden}");
            }
            assert!(page.contains("&lt;b&gt;disk&lt;/b&gt;") && page.contains("tmpfs &amp; no device"));
            // Two worlds: figures 1, 2, 3, the last two over time, and two planes each.
            assert_eq!(page.matches("<figure role=\"img\"").count(), 12, "{language:?}");
            for tag in ["figure", "table", "section", "svg", "details", "tr"] {
                let count = |text: String| page.matches(&text).count();
                let opened = count(format!("<{tag} ")) + count(format!("<{tag}>"));
                assert_eq!(opened, count(format!("</{tag}>")), "{language:?}: {tag}");
            }
        }
    }
}

#[test]
fn the_momentary_maximum_of_operations_stands_beside_the_mean() {
    let mut study = study(Outcome::Holds);
    study.observations.push(Observation {
        kind: ObservationKind::IopsMoments,
        measured: vec![6_100.0, 7_200.0, 5_520.0, 6_035.0],
        seen: Seen::Shown,
        ..Observation::default()
    });
    let page = polling_html(&study, Language::English);
    assert!(page.contains("most 6,100 → 7,200, mean 5,520 → 6,035"), "{page}");
    assert!(page.contains("Figures 2 and 3 over time: one ratio after the other, Job3, momentary and mean"));
    // In the first figure the default alone stands for the ratios.
    let first =
        page.split("id=\"figure-1-simulator\"").nth(1).and_then(|rest| rest.split("</figure>").next());
    let first = first.unwrap_or_default();
    assert!(first.contains(CLASSIC) && !first.contains("linux-mean:0.03"), "{first}");
}

#[test]
fn identifiers_of_figures_are_unique() {
    let page = polling_html(&study(Outcome::Holds), Language::English);
    let mut ids: Vec<&str> = page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all);
}

#[test]
fn markdown_has_a_table_for_every_block() {
    for language in Language::ALL {
        let text = polling_markdown(&study(Outcome::Holds), language);
        assert!(text.starts_with("# ") && text.ends_with("```\n"), "{text}");
        assert!(text.matches("| ---").count() >= 12, "{text}");
        assert!(!text.contains("{0}") && !text.contains("NaN") && !text.contains("<b>"));
    }
}

#[test]
fn a_sweep_by_itself_fits_a_terminal() {
    let text = sweep_terminal(&sweep(SweepWorld::Simulator, Outcome::Holds), Language::English, 80, false);
    assert!(text.starts_with("Simulator\n"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.contains("31.0 % [30.9, 31.1]"), "{text}");
    let narrow = sweep_terminal(&sweep(SweepWorld::Simulator, Outcome::Holds), Language::English, 60, false);
    assert!(narrow.lines().all(|line| line.chars().count() <= 60), "{narrow}");
}
