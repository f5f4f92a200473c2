//! Ways to wait in the plane of misses and CPU: the answer, the table and the drawing.

use weir_record::{
    effect::{Effect, EffectScale, Effects},
    finding::Finding,
    frontier::{FrontierAnswer, FrontierRow, Standing},
    metric::Metric,
    spec::{CellRole, MissingCell, StorageCell, StorageSubject, Subject},
    storage::{AccessPattern, StorageDevice},
    study::{ArmSummary, MetricFigures, StudyResult},
    verdict::Verdict,
    wait_series::{
        LevelBeside, LevelOf, LevelSense, PublishedLevel, SeriesKind, SeriesMetric, WaitFigures, WaitPart,
        WaitPoint, WaitSeries,
    },
};
use weir_report::{Language, html, markdown, sentence, terminal};

use crate::fixture;

const CELL: &str = "model-bg32-cores4";

/// Name, wait, misses, CPU, and the candidate's standing relative to it.
type Arm = (&'static str, &'static str, f64, f64, Option<Standing>);

const ARMS: [Arm; 5] = [
    ("regime-0.003", "regime:0.003", 0.0, 0.021, None),
    ("linux-mean-0.5", "linux-mean:0.5", 0.377, 0.504, Some(Standing::Behind)),
    ("linux-mean-0.1", "linux-mean:0.1", 0.041, 0.901, Some(Standing::TradeOff)),
    ("interrupt", "interrupt", 0.0, 0.02, Some(Standing::Level)),
    ("clairvoyant", "clairvoyant", 0.0, 0.0205, Some(Standing::Ahead)),
];

fn beside_four_cores() -> StorageCell {
    StorageCell {
        device: StorageDevice::Model,
        pattern: AccessPattern::RandRead,
        engine: None,
        background_depth: 32,
        background_cores: 4,
        core_steps: Vec::new(),
        file_bytes: 1 << 30,
        file: None,
    }
}

/// A study of one simulated cell, whose real disk could not be used.
fn polling() -> StudyResult {
    let mut result = fixture::quick();
    let mut cell = result.spec.cells[0].clone();
    (cell.id, cell.role, cell.message_bytes, cell.depth) = (CELL.to_owned(), CellRole::Primary, 4_096, 1);
    cell.storage = Some(beside_four_cores());
    result.spec.cells = vec![cell];
    let reason = Finding::DiskUnusable { said: "/dev/shm/data: it is in memory".to_owned() };
    result.spec.missing_cells = vec![MissingCell { id: "randread-b4096-qd1".to_owned(), reason }];
    let arm = result.spec.arms[0].clone();
    result.spec.arms = ARMS
        .iter()
        .map(|(name, wait, ..)| {
            let mut subject = StorageSubject::default();
            subject.completion.predictor = (*wait).to_owned();
            let mut arm = arm.clone();
            (arm.name, arm.subject) = ((*name).to_owned(), Subject::Storage(subject));
            arm
        })
        .collect();
    result.arms = ARMS.iter().map(|(name, _, misses, cpu, _)| summary(name, *misses, *cpu)).collect();
    let of_misses = |metric: Metric| Effect {
        cell_id: CELL.to_owned(),
        arm: ARMS[1].0.to_owned(),
        baseline: ARMS[0].0.to_owned(),
        metric,
        scale: EffectScale::Difference,
        estimate: Some(0.377),
        interval: Some((0.37, 0.384)),
        figures: Some((0.377, 0.0)),
        detectable: None,
        notes: Vec::new(),
        reasons: Vec::new(),
        ..result.effects.rows[0].clone()
    };
    let rows = [Metric::MissRate, Metric::WaitingCpuShare].map(of_misses).to_vec();
    result.effects = Effects { rows };
    (result.primary, result.verdict) = (Some(1), Verdict::Inconclusive);
    result.timeline.clear();
    result.checks.clear();
    result.frontier = ARMS
        .iter()
        .map(|(name, wait, _, _, standing)| FrontierRow {
            cell_id: CELL.to_owned(),
            arm: (*name).to_owned(),
            family: wait.split(':').next().unwrap_or_default().to_owned(),
            is_oracle: *name == "clairvoyant",
            is_on_frontier: *name == "interrupt",
            standing: *standing,
        })
        .collect();
    result.frontier_answers = vec![FrontierAnswer {
        cell_id: CELL.to_owned(),
        candidate: ARMS[0].0.to_owned(),
        family: "linux-mean".to_owned(),
        settings: 2,
        behind: 1,
        ahead: 0,
        others: vec![("linux-mean-0.1".to_owned(), Standing::TradeOff)],
        interrupted: 0.0,
    }];
    result
}

fn summary(arm: &str, misses: f64, cpu: f64) -> ArmSummary {
    let figures =
        |metric: Metric, figure: f64| MetricFigures::of(metric, vec![figure]).expect("there is a unit");
    ArmSummary {
        cell_id: CELL.to_owned(),
        arm: arm.to_owned(),
        trials: 20,
        figures: vec![
            figures(Metric::MissRate, misses),
            figures(Metric::WaitingCpuShare, cpu),
            figures(Metric::AddedLatency, 1.64),
        ],
        ..ArmSummary::default()
    }
}

#[test]
fn the_answer_is_one_short_sentence_and_names_what_neither_holds_nor_fails() {
    let result = polling();
    let told = sentence(&result, Language::English);
    assert!(
        told.ends_with("regime-0.003 is ahead of 1 of 2 settings of linux-mean on misses and CPU together.")
    );
    assert!(told.split_whitespace().count() <= 25, "{told}");
    for language in Language::ALL {
        insta::assert_snapshot!(
            format!("frontier-terminal-{}", language.code()),
            terminal(&result, language, 100, false)
        );
    }
}

#[test]
fn the_page_draws_every_arm_once_and_the_document_has_the_same_numbers() {
    let result = polling();
    let page = html(&result, Language::English);
    assert_eq!(page.matches("class=\"frontier\"").count(), 1, "the frontier");
    assert_eq!(page.matches("mark hollow\"").count(), 1, "an oracle is hollow");
    for (name, ..) in ARMS {
        assert!(page.contains(&format!("<title>{name} · ")), "{name}");
    }
    let document = markdown(&result, Language::English);
    assert!(
        document.contains("| linux-mean-0.5 | behind | 37.7 % | +37.70 [+37.00, +38.40] | 50.4 % |"),
        "{document}"
    );
    for text in [&page, &document] {
        assert!(text.contains("randread-b4096-qd1") && text.contains("it is in memory"));
        assert!(text.contains("fitted to published figures"), "what is simulated is said");
    }
}

#[test]
fn waiting_over_time_is_drawn_and_tabled_beside_what_was_published() {
    let mut result = polling();
    let figures = |miss_rate: f64, iops: f64| WaitFigures {
        miss_rate,
        iops,
        sleep_effective_ns: 7_000.0,
        cpu_share: 0.55,
    };
    let published = PublishedLevel {
        claim: "Job2: misses stay above 10 %".into(),
        kind: SeriesKind::Load,
        arm: ARMS[1].0.to_owned(),
        background_cores: 1,
        metric: SeriesMetric::MissRate,
        of: LevelOf::Mean,
        sense: LevelSense::AtLeast,
        level: 0.1,
    };
    let part = |cores: u32, figures: WaitFigures, published: Vec<LevelBeside>| WaitPart {
        arm: ARMS[1].0.to_owned(),
        background_cores: cores,
        start_ns: u64::from(cores) * 2_000_000_000,
        length_ns: 2_000_000_000,
        figures: Some(figures),
        iops_of_first: Some(figures.iops / 60_000.0),
        published,
    };
    let holds = LevelBeside { published, measured: Some(0.12), holds: Some(true) };
    let point = |second: u64, figures| WaitPoint { at_ns: second * 1_000_000_000, figures };
    result.wait_series = vec![WaitSeries {
        cell_id: CELL.to_owned(),
        kind: SeriesKind::Load,
        parts: vec![
            part(0, figures(0.0, 60_000.0), Vec::new()),
            part(1, figures(0.12, 6_000.0), vec![holds]),
        ],
        points: vec![
            point(0, figures(0.01, 59_000.0)),
            point(1, figures(0.0, 61_000.0)),
            point(2, figures(0.13, 5_900.0)),
            point(3, figures(0.11, 6_100.0)),
        ],
    }];
    for (language, title) in [
        (Language::English, "Waiting over time"),
        (Language::Korean, "시간에 따른 대기"),
        (Language::Chinese, "随时间变化的等待"),
    ] {
        let page = html(&result, language);
        assert!(page.contains(title), "{title}");
        assert_eq!(page.matches("class=\"boundary\"").count(), 1, "the published level");
        let document = markdown(&result, language);
        for text in ["Job2: misses stay above 10 %", "12 % ✓", "60,000", "0.100"] {
            assert!(document.contains(text), "{text}: {document}");
        }
        let told = terminal(&result, language, 100, false);
        assert!(told.contains("Job2: misses stay above 10 %") && told.contains("6,000"), "{told}");
    }
}

#[test]
fn a_candidate_that_leaves_the_wait_to_the_interrupt_is_told_and_nothing_is_decided() {
    let mut result = polling();
    result.frontier_answers[0].interrupted = 1.0;
    result.verdict = Verdict::NotComparable;
    for (language, words) in [
        (Language::English, "not decided; regime-0.003 leaves 100"),
        (Language::Korean, "판정하지 않음"),
        (Language::Chinese, "不作判定"),
    ] {
        let told = sentence(&result, language);
        assert!(told.contains(words), "{told}");
    }
}
