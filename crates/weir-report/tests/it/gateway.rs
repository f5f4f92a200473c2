//! A study of the order gateway: the answer in one sentence, the document's runs, costs and figures per order.

use weir_record::{
    finding::Finding,
    gateway::{
        AnsweredLoad, GatewayFindings, HandoffAnswer, HandoffCost, NamedRun, OrderFigures,
        OversubscribedCell, PairedDifference,
    },
    spec::{CellRole, CellSpec, GatewaySubject, OrdersCell, Subject},
    study::{ArmSummary, Check, MetricFigures, PairedRatio, Spread, StudyResult},
    verdict::Metric,
};
use weir_report::{Language, html, markdown, sentence, terminal};

use crate::fixture;

const CELL: &str = "closed-epoll-w2";

fn figures(metric: Metric, median: f64) -> MetricFigures {
    MetricFigures { metric, spread: spread(median), trials: vec![median] }
}

fn spread(median: f64) -> Spread {
    Spread { median, min: 0.9 * median, max: 1.1 * median }
}

fn share(ratio: f64) -> Option<PairedRatio> {
    Some(PairedRatio { ratio, interval: Some((0.9 * ratio, 1.1 * ratio)), pairs: 6 })
}

fn difference(difference: f64) -> Option<PairedDifference> {
    Some(PairedDifference { difference, interval: Some((difference - 0.25, difference + 0.25)), pairs: 6 })
}

fn load(load: &str, reference_us: f64, best_us: f64, wakes: Option<(f64, f64)>) -> AnsweredLoad {
    AnsweredLoad {
        load: load.to_owned(),
        cell_id: format!("{load}-epoll-w2"),
        reference_us,
        best_us,
        share: (reference_us > 0.0).then(|| share(best_us / reference_us)).flatten(),
        reference_wakes: wakes.map(|(reference, _)| reference),
        best_wakes: wakes.map(|(_, best)| best),
    }
}

fn findings() -> GatewayFindings {
    let run = NamedRun {
        name: "s3-modulo".to_owned(),
        driver: "epoll".to_owned(),
        cell_id: CELL.to_owned(),
        arm: "naive".to_owned(),
        published_context_switches_per_second: Some(59_692.0),
        published_context_switches_per_order: Some(3.13),
        published_p50_us: Some(41.1),
        ..NamedRun::default()
    };
    let cost = |arm: &str, cpu_us: f64, of_reference| HandoffCost {
        cell_id: CELL.to_owned(),
        arm: arm.to_owned(),
        cpu_us: difference(cpu_us),
        switches: difference(2.0),
        p50_us: difference(9.0),
        of_reference,
    };
    let answer = HandoffAnswer {
        driver: "epoll".to_owned(),
        reference: "naive".to_owned(),
        best: "mesh".to_owned(),
        loads: vec![
            load("closed", 12.0, 4.8, Some((1.0, 1.0))),
            load("paced", 8.0, 2.4, Some((1.0, 0.4))),
            load("flood", 5.0, 0.5, Some((1.0, 0.05))),
        ],
        is_halved: Some(true),
    };
    GatewayFindings {
        runs: vec![run],
        costs: vec![cost("naive", 12.0, None), cost("mesh", 4.8, share(0.4))],
        answers: vec![answer],
        oversubscribed: vec![OversubscribedCell { cell_id: CELL.to_owned(), threads: 5, cpus: 2 }],
    }
}

/// `weir study gateway`, with one cell and two arms beside the baseline.
fn study() -> StudyResult {
    let mut result = fixture::quick();
    let names = ["owner", "naive", "mesh"];
    let template = result.spec.arms[0].clone();
    result.spec.arms = names
        .map(|name| {
            let subject = GatewaySubject { handoff: name.to_owned(), ..GatewaySubject::default() };
            weir_record::spec::ArmSpec {
                name: name.to_owned(),
                subject: Subject::Gateway(subject),
                ..template.clone()
            }
        })
        .to_vec();
    let orders = OrdersCell {
        driver: "epoll".to_owned(),
        load: "closed".to_owned(),
        in_flight_total: Some(1),
        journal: "none".to_owned(),
        accept: "acceptor".to_owned(),
        exchange_driver: "uring".to_owned(),
        exchange_cpus: Vec::new(),
    };
    let cell = CellSpec {
        id: CELL.to_owned(),
        role: CellRole::Primary,
        connections: 10,
        workers: 2,
        blocks: 6,
        orders: Some(orders),
        ..result.spec.cells[1].clone()
    };
    result.spec.name = "gateway".to_owned();
    result.spec.cells = vec![cell];
    result.arms = names
        .map(|arm| ArmSummary {
            cell_id: CELL.to_owned(),
            arm: arm.to_owned(),
            trials: 6,
            figures: vec![
                figures(Metric::ServerCpuPerMessage, if arm == "owner" { 20.0 } else { 25.0 }),
                figures(Metric::SwitchesPerMessage, if arm == "owner" { 2.0 } else { 4.0 }),
                figures(Metric::Throughput, 24_000.0),
            ],
            orders: Some(OrderFigures {
                p50_us: Some(spread(32.0)),
                p99_us: Some(spread(60.0)),
                wakes_per_order: Some(spread(2.0)),
                wakes_per_handoff: (arm != "owner").then(|| spread(1.0)),
                handed_off_share: Some(spread(if arm == "owner" { 0.0 } else { 1.0 })),
                ..OrderFigures::default()
            }),
            ..ArmSummary::default()
        })
        .to_vec();
    let mut switches = result.comparisons[0].clone();
    switches.cell_id = CELL.to_owned();
    (switches.arm, switches.baseline) = ("naive".to_owned(), "owner".to_owned());
    switches.metric = Metric::SwitchesPerMessage;
    switches.notes.clear();
    result.comparisons = vec![switches];
    result.timeline.clear();
    result.checks = vec![Check {
        name: "chain-whole".to_owned(),
        passed: true,
        detail: Finding::ChainWhole { whole: 342, trials: 342 },
    }];
    result.gateway = Some(findings());
    result
}

#[test]
fn the_wish_is_answered_in_one_sentence_with_figures() {
    let said: Vec<String> = Language::ALL.into_iter().map(|language| sentence(&study(), language)).collect();
    insta::assert_snapshot!(said.join("\n\n"));
}

#[test]
fn a_wish_that_is_open_or_denied_says_so() {
    let mut result = study();
    let of = |result: &mut StudyResult, is_halved| {
        let answer = &mut result.gateway.as_mut().expect("it has findings").answers[0];
        answer.is_halved = is_halved;
        answer.loads[2].share = None;
        sentence(result, Language::English)
    };
    assert!(of(&mut result, None).ends_with("stays open."), "{}", of(&mut result, None));
    let denied = of(&mut result, Some(false));
    assert!(denied.ends_with("does not save half of that cost under every load."), "{denied}");
}

#[test]
fn the_runs_costs_and_figures_stand_in_every_view_and_language() {
    for (language, runs, oversubscribed) in [
        (Language::English, "The runs of document 001", "Over-subscribed: 1 of 1 cells"),
        (Language::Korean, "문서 001의 실행", "CPU 부족"),
        (Language::Chinese, "文档 001 的各次运行", "CPU 不足"),
    ] {
        let result = study();
        for text in
            [markdown(&result, language), html(&result, language), terminal(&result, language, 120, false)]
        {
            for told in [runs, oversubscribed, "s3-modulo", "59,692", "3.13", "41.1", "0.400"] {
                assert!(text.contains(told), "{language:?}: no {told} in {text}");
            }
        }
        // The page has the specification as well, in its own words.
        for message in ["essage", "메시지", "消息"] {
            let text = markdown(&result, language);
            let found = text.lines().find(|line| line.contains(message));
            assert_eq!(found, None, "{language:?}");
        }
    }
}

#[test]
fn markdown_of_the_gateway_reads_well() {
    let text = markdown(&study(), Language::English);
    let from = text.find("## The runs of document 001").expect("the section is there");
    let until = text.find("## Throughput and CPU").expect("the next one is there");
    insta::assert_snapshot!(&text[from..until]);
}
