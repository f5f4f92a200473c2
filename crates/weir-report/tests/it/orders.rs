//! A study of the order gateway: added costs of arms in one sentence, published runs, costs and figures per order.

use weir_record::{
    added_cost::AddedCostSpec,
    check::{Check, CheckName},
    effect::{Effect, EffectScale, Effects, Question},
    figure::Spread,
    finding::Finding,
    goal::Outcome,
    metric::Metric,
    published::PublishedRun,
    spec::{CellRole, CellSpec, GatewaySubject, OrdersCell, Subject},
    study::{ArmSummary, MetricFigures, OversubscribedCell, StudyResult},
    threads::ThreadUse,
    verdict::Verdict,
};
use weir_report::{Language, html, markdown, sentence, terminal};

use crate::fixture;

const CELL: &str = "closed-epoll-w2";

fn figures(metric: Metric, figure: f64) -> MetricFigures {
    MetricFigures { metric, mean: figure, interval: None, units: vec![0.9 * figure, figure, 1.1 * figure] }
}

fn spread(median: f64) -> Spread {
    Spread { median, min: 0.9 * median, max: 1.1 * median }
}

const LOADS: [(&str, f64, f64); 3] = [("closed", 12.0, 4.8), ("paced", 8.0, 2.4), ("flood", 5.0, 0.5)];

fn added_cost_asked() -> AddedCostSpec {
    AddedCostSpec {
        group: "epoll".to_owned(),
        cells: LOADS.map(|(load, ..)| cell_id(load)).to_vec(),
        arms: vec!["naive".to_owned(), "mesh".to_owned()],
        reference: "naive".to_owned(),
        metrics: vec![Metric::ServerCpuPerMessage, Metric::SwitchesPerMessage, Metric::LatencyP50],
        share_max: Some(0.5),
    }
}

/// An arm's added CPU, switches and median round trip.
fn cost(load: &str, arm: &str, cpu_us: f64) -> [Effect; 3] {
    let added = [
        (Metric::ServerCpuPerMessage, cpu_us),
        (Metric::SwitchesPerMessage, 2.0),
        (Metric::LatencyP50, 9_000.0),
    ];
    added.map(|(metric, it)| Effect {
        question: Question::Added(0),
        cell_id: cell_id(load),
        arm: arm.to_owned(),
        baseline: "owner".to_owned(),
        metric,
        scale: EffectScale::Difference,
        estimate: Some(it),
        interval: Some((0.98 * it, 1.02 * it)),
        units: 6,
        ..Effect::default()
    })
}

/// An arm's added cost as a share of the reference's, where known.
fn share(load: &str, arm: &str, ratio: Option<f64>) -> Effect {
    Effect {
        question: Question::AddedShare(0),
        cell_id: cell_id(load),
        arm: arm.to_owned(),
        baseline: "naive".to_owned(),
        metric: Metric::ServerCpuPerMessage,
        estimate: ratio,
        interval: ratio.map(|ratio| (0.9 * ratio, 1.1 * ratio)),
        units: 6,
        ..Effect::default()
    }
}

/// Added costs of two arms in three cells; four further arms have no known share.
fn added_costs() -> Vec<Effect> {
    let added = LOADS.iter().flat_map(|(load, naive, mesh)| {
        [cost(load, "naive", *naive), cost(load, "mesh", *mesh)].into_iter().flatten()
    });
    let shares = LOADS.iter().flat_map(|(load, naive, mesh)| {
        let unknown = ["spray", "ring", "lock", "pipe"].map(|arm| share(load, arm, None));
        [share(load, "mesh", Some(mesh / naive))].into_iter().chain(unknown)
    });
    let least = Effect {
        question: Question::LeastAdded(0),
        cell_id: String::new(),
        outcome: Some(Outcome::Met),
        ..share("closed", "mesh", Some(0.4))
    };
    added.chain(shares).chain([least]).collect()
}

fn published_run() -> PublishedRun {
    PublishedRun {
        name: "s3-modulo".to_owned(),
        source: "Document 001".into(),
        about: "the share that its source hands over".into(),
        arm: "naive".to_owned(),
        cells: vec![cell_id("closed")],
        figures: vec![(Metric::SwitchesPerMessage, 3.13), (Metric::LatencyP50, 41_100.0)],
        threads: vec![(31_834.0, 0.0), (27_858.0, 0.0)],
    }
}

fn cell_id(load: &str) -> String {
    format!("{load}-epoll-w2")
}

/// One order in flight, and two loads more.
fn cells(of: &CellSpec) -> Vec<CellSpec> {
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
        orders: Some(orders.clone()),
        ..of.clone()
    };
    let further = |load: &str| CellSpec {
        id: cell_id(load),
        role: CellRole::Exploratory,
        orders: Some(OrdersCell { load: load.to_owned(), ..orders.clone() }),
        ..cell.clone()
    };
    vec![cell.clone(), further("paced"), further("flood")]
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
    result.spec.name = "gateway".to_owned();
    result.spec.cells = cells(&result.spec.cells[1]);
    result.spec.published_runs = vec![published_run()];
    result.spec.added_costs = vec![added_cost_asked()];
    result.arms = names
        .map(|arm| ArmSummary {
            cell_id: CELL.to_owned(),
            arm: arm.to_owned(),
            trials: 6,
            figures: [
                (Metric::ServerCpuPerMessage, if arm == "owner" { 20.0 } else { 25.0 }),
                (Metric::SwitchesPerMessage, if arm == "owner" { 2.0 } else { 4.0 }),
                (Metric::Throughput, 24_000.0),
                (Metric::LatencyP50, 32_000.0),
                (Metric::LatencyP99, 60_000.0),
                (Metric::WakesPerOrder, 2.0),
                (Metric::WakesPerHandoff, if arm == "owner" { f64::NAN } else { 1.0 }),
                (Metric::HandedOffShare, if arm == "owner" { 0.0 } else { 1.0 }),
            ]
            .into_iter()
            .filter(|(_, figure)| figure.is_finite())
            .map(|(metric, figure)| figures(metric, figure))
            .collect(),
            ..ArmSummary::default()
        })
        .to_vec();
    let mut switches = result.effects.rows[0].clone();
    switches.cell_id = CELL.to_owned();
    (switches.arm, switches.baseline) = ("naive".to_owned(), "owner".to_owned());
    switches.metric = Metric::SwitchesPerMessage;
    switches.notes.clear();
    result.effects = Effects { rows: [switches].into_iter().chain(added_costs()).collect() };
    result.timeline.clear();
    result.checks = vec![Check {
        name: CheckName::ChainWhole,
        passed: true,
        detail: Finding::ChainWhole { whole: 342, trials: 342 },
    }];
    result.oversubscribed = vec![OversubscribedCell { cell_id: CELL.to_owned(), threads: 5, cpus: 2 }];
    result
}

#[test]
fn what_arms_add_is_told_in_one_sentence_with_figures() {
    let said: Vec<String> = Language::ALL.into_iter().map(|language| sentence(&study(), language)).collect();
    insta::assert_snapshot!(said.join("\n\n"));
}

#[test]
fn a_limit_that_is_open_or_missed_says_so() {
    let mut result = study();
    let of = |result: &mut StudyResult, outcome| {
        let least = result.effects.rows.last_mut().expect("it has one");
        least.outcome = Some(outcome);
        sentence(result, Language::English)
    };
    let asked = "epoll: the data do not decide whether mesh, the least costly of 5, adds at most 0.5×";
    let known = of(&mut result, Outcome::Open);
    assert!(known.contains("naive has 21.9 % less"), "what is known comes first: {known}");
    let page = markdown(&result, Language::English);
    assert!(page.find(&known) < page.find(asked) && page.contains(asked), "{page}");
    result.verdict = Verdict::Inconclusive;
    let open = of(&mut result, Outcome::Open);
    assert!(open.starts_with(asked), "{open}");
    let missed = of(&mut result, Outcome::Missed);
    assert!(
        missed.starts_with("epoll: mesh, the least costly of 5, adds more than 0.5× of what naive"),
        "{missed}"
    );
    result
        .effects
        .rows
        .retain(|row| row.question != Question::AddedShare(0) || row.cell_id != cell_id("paced"));
    let without = of(&mut result, Outcome::Open);
    assert!(without.contains("[0.36, 0.44]; paced not known; flood 0.10×"), "{without}");
}

#[test]
fn a_study_of_orders_that_adds_nothing_and_stands_beside_no_run_has_no_headings_for_them() {
    let mut result = study();
    result.effects.rows.retain(Effect::is_comparison);
    result.spec.published_runs.clear();
    for text in [markdown(&result, Language::English), terminal(&result, Language::English, 100, false)] {
        for heading in ["What arms add", "Published runs"] {
            assert!(!text.contains(heading), "{heading} in {text}");
        }
    }
}

#[test]
fn the_runs_costs_and_figures_stand_in_every_view_and_language() {
    for (language, runs, oversubscribed) in [
        (Language::English, "Published runs", "Over-subscribed: 1 of 3 cells"),
        (Language::Korean, "발표된 실행", "CPU 부족"),
        (Language::Chinese, "公布的运行", "CPU 不足"),
    ] {
        let result = study();
        for text in
            [markdown(&result, language), html(&result, language), terminal(&result, language, 120, false)]
        {
            for told in [runs, oversubscribed, "s3-modulo", "3.13", "41.1", "0.400"] {
                assert!(text.contains(told), "{language:?}: no {told} in {text}");
            }
        }
        // The page also contains the specification, in its own words.
        for message in ["essage", "메시지", "消息"] {
            let text = markdown(&result, language);
            let found = text.lines().find(|line| line.contains(message));
            assert_eq!(found, None, "{language:?}");
        }
    }
}

#[test]
fn markdown_of_orders_reads_well() {
    let text = markdown(&study(), Language::English);
    let from = text.find("## What arms add").expect("the section is there");
    let until = text.find("## Throughput and CPU").expect("the next one is there");
    insta::assert_snapshot!(&text[from..until]);
}

#[test]
fn threads_stand_beside_the_published_ones_and_then_by_process() {
    let mut result = study();
    let row = |node: &str, name: &str, each: f64| ThreadUse {
        cell_id: CELL.to_owned(),
        arm: "naive".to_owned(),
        node: node.to_owned(),
        name: name.to_owned(),
        windows: 6,
        per_second: (spread(10_000.0 * each), spread(12.0)),
        per_message: (spread(each), spread(0.001)),
        cpus: spread(0.4),
        run_delay_ns: spread(2_500.0),
    };
    result.threads = vec![
        row("", "weir-worker-0", 1.7),
        row("", "weir-worker-1", 1.4),
        row("exchange", "weir-worker-0", 2.0),
    ];
    let text = markdown(&result, Language::English);
    let from = text.find("## What each thread did").expect("the section is there");
    let section = &text[from..from + text[from + 3..].find("\n## ").map_or(text.len() - from, |end| end + 3)];
    insta::assert_snapshot!("orders-threads", section);
    for (language, heads) in [
        (Language::Korean, ["cswch/s(발표)", "cswch/주문"]),
        (Language::Chinese, ["cswch/s（公布）", "cswch/订单"]),
    ] {
        let page = html(&result, language);
        assert!(heads.iter().all(|head| page.contains(head)), "{language:?}");
    }
}
