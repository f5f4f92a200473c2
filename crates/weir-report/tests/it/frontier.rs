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
};
use weir_report::{Language, html, markdown, sentence, terminal};

use crate::fixture;

const CELL: &str = "model-bg32-cores4";

/// Name, wait, misses, CPU, and how the candidate stands to it.
type Arm = (&'static str, &'static str, f64, f64, Option<Standing>);

const ARMS: [Arm; 5] = [
    ("regime-0.003", "regime:0.003", 0.0, 0.021, None),
    ("linux-mean-0.5", "linux-mean:0.5", 0.377, 0.504, Some(Standing::Behind)),
    ("linux-mean-0.1", "linux-mean:0.1", 0.041, 0.901, Some(Standing::TradeOff)),
    ("interrupt", "interrupt", 0.0, 0.02, Some(Standing::Level)),
    ("clairvoyant", "clairvoyant", 0.0, 0.0205, Some(Standing::Ahead)),
];

/// A study of one simulated cell, whose disk could not be used.
fn polling() -> StudyResult {
    let mut result = fixture::quick();
    let mut cell = result.spec.cells[0].clone();
    (cell.id, cell.role, cell.message_bytes, cell.depth) = (CELL.to_owned(), CellRole::Primary, 4_096, 1);
    cell.storage = Some(StorageCell {
        device: StorageDevice::Model,
        pattern: AccessPattern::RandRead,
        engine: None,
        background_depth: 32,
        background_cores: 4,
        file_bytes: 1 << 30,
        file: None,
    });
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
        document.contains("| linux-mean-0.5 | ahead | 37.7 % | +37.70 [+37.00, +38.40] | 50.4 % |"),
        "{document}"
    );
    for text in [&page, &document] {
        assert!(text.contains("randread-b4096-qd1") && text.contains("it is in memory"));
        assert!(text.contains("fitted to published figures"), "what is simulated is said");
    }
}
