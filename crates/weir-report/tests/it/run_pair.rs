//! Two runs side by side, in each form and language.

use maud::{Markup, html};
use weir_record::{
    SCHEMA_VERSION,
    effect::{Effect, EffectScale, Question},
    finding::Finding,
    goal::{ComparisonSpec, Goal, Outcome, Side},
    machine::FactDifference,
    metric::Metric,
    run_pair::{Change, FigurePair, PairObstacle, Parts, RunEffect, RunFacts, RunPair},
    spec::CellRole,
    verdict::Verdict,
};
use weir_report::{Language, run_pair};

use crate::fixture;

const CELL: &str = "c100-d1-m64-closed";

fn run(seed: u64, kernel: &str) -> RunFacts {
    RunFacts {
        name: "quick".to_owned(),
        seed,
        weir_version: "0.1.0 (b9cf284)".to_owned(),
        kernel_release: kernel.to_owned(),
        elapsed_ns: 92_000_000_000,
        reproduce: format!("weir study quick --seed {seed}"),
    }
}

fn change(metric: Metric, scale: EffectScale, verdict: Verdict) -> Change {
    let effect = |figure: f64| RunEffect {
        figure: Some(figure),
        interval: Some((figure - 0.009, figure + 0.01)),
        units: 30,
        verdict: Verdict::Better,
    };
    Change {
        cell_id: CELL.to_owned(),
        role: CellRole::Primary,
        arm: "uring".to_owned(),
        baseline: "epoll".to_owned(),
        metric,
        scale,
        one: effect(0.783),
        other: effect(0.822),
        figure: Some(1.0498),
        interval: Some((1.021, 1.081)),
        confidence: 0.99,
        p_value: Some(0.0002),
        p_value_holm: Some(0.0004),
        detectable: Some(0.031),
        verdict,
        reasons: Vec::new(),
    }
}

/// Two runs with all elements of a pair.
pub fn pair() -> RunPair {
    let differs = |name: &str, one: &str, other: &str| FactDifference {
        name: name.to_owned(),
        one: one.to_owned(),
        other: other.to_owned(),
    };
    let side = |arm: &str| Side {
        arm: arm.to_owned(),
        cell_id: CELL.to_owned(),
        metric: Metric::ServerCpuPerMessage,
    };
    let barred = Change {
        figure: None,
        interval: None,
        detectable: None,
        reasons: vec![Finding::OtherStates],
        ..change(Metric::Throughput, EffectScale::Ratio, Verdict::NotComparable)
    };
    let figure = |arm: &str, one: f64, other: f64| FigurePair {
        cell_id: CELL.to_owned(),
        arm: arm.to_owned(),
        metric: Metric::ServerCpuPerMessage,
        one,
        other,
    };
    RunPair {
        schema_version: SCHEMA_VERSION,
        one: run(7, "6.12.1"),
        other: run(8, "6.18.2"),
        machine: vec![differs("kernel_release", "6.12.1", "6.18.2")],
        asked: vec![differs("uring.subject.weir.options.spin-us", "", "50|*")],
        only_one: Parts { cells: vec!["c10-d1-m64-closed".to_owned()], arms: Vec::new() },
        only_other: Parts { cells: Vec::new(), arms: vec!["poll".to_owned(), "select".to_owned()] },
        obstacles: Vec::new(),
        changes: vec![
            change(Metric::ServerCpuPerMessage, EffectScale::Ratio, Verdict::Worse),
            change(Metric::SwitchesPerMessage, EffectScale::Difference, Verdict::NoClaim),
            barred,
        ],
        figures: vec![figure("epoll", 6.87, 7.3), figure("uring", 5.38, 6.0)],
        thresholds: vec![ComparisonSpec {
            of: side("uring"),
            to: vec![side("epoll")],
            goal: Some(Goal::AtMost(1.05)),
            is_threshold: true,
        }],
        answers: vec![Effect {
            question: Question::Asked(0),
            cell_id: CELL.to_owned(),
            arm: "uring".to_owned(),
            baseline: "epoll".to_owned(),
            metric: Metric::ServerCpuPerMessage,
            estimate: Some(1.0498),
            interval: Some((1.021, 1.081)),
            level: 0.99,
            units: 30,
            outcome: Some(Outcome::Open),
            reasons: vec![Finding::IncludesBound { bound: 1.05 }],
            ..Effect::default()
        }],
    }
}

#[test]
fn two_runs_read_well_in_every_language() {
    for language in Language::ALL {
        let code = language.code();
        let text = run_pair::terminal(&pair(), &fixture::quick(), language, 80, false);
        insta::assert_snapshot!(format!("run-pair-terminal-{code}"), text);
        let document = run_pair::markdown(&pair(), &fixture::quick(), language);
        insta::assert_snapshot!(format!("run-pair-markdown-{code}"), document);
    }
}

#[test]
fn the_page_draws_the_changes_and_has_every_number_of_the_other_forms() {
    for language in Language::ALL {
        let above = html! { nav { "where one can go" } };
        let page = run_pair::html(&pair(), &fixture::quick(), language, &above);
        assert!(page.contains("<nav>where one can go</nav>"));
        assert_eq!(
            page.matches("<figure").count(),
            2,
            "{language:?}: a ratio, a difference; one has no figure"
        );
        assert!(page.contains("1.050 [1.021, 1.081]") && page.contains("class=\"a1 interval\""), "{page}");
        for fact in ["kernel_release", "6.18.2", "uring.subject.weir.options.spin-us", "c10-d1-m64-closed"] {
            assert!(page.contains(fact), "{language:?}: {fact}");
        }
    }
    let bare = RunPair { changes: Vec::new(), obstacles: vec![PairObstacle::NoCommonCell], ..pair() };
    let page = run_pair::html(&bare, &fixture::quick(), Language::English, &Markup::default());
    assert!(!page.contains("<figure") && page.contains("no cell is in both runs"), "{page}");
}

#[test]
fn two_runs_that_cannot_be_compared_say_why_and_claim_nothing_of_intervals() {
    let obstacles = vec![
        PairObstacle::Protocols { one: "echo".to_owned(), other: "http".to_owned() },
        PairObstacle::OneUnfinished { blocks_done: 3, blocks: 8 },
        PairObstacle::OtherUnfinished { blocks_done: 4, blocks: 8 },
        PairObstacle::NoCommonCell,
        PairObstacle::NoCommonPair { one: "epoll".to_owned(), other: "poll".to_owned() },
    ];
    let bare = RunPair { obstacles: obstacles.clone(), changes: Vec::new(), answers: Vec::new(), ..pair() };
    for language in Language::ALL {
        let text = run_pair::markdown(&bare, &fixture::quick(), language);
        assert!(!text.contains("--baseline"), "{text}");
        let mut told: Vec<String> = obstacles.iter().map(|it| run_pair::obstacle(it, language)).collect();
        assert!(told.iter().all(|line| text.contains(line)), "{text}");
        told.dedup();
        assert_eq!(told.len(), obstacles.len());
    }
}

#[test]
fn no_name_and_no_number_that_is_none_breaks_the_document() {
    let mut odd = pair();
    odd.changes[0].figure = Some(f64::NAN);
    odd.changes[0].interval = Some((f64::NEG_INFINITY, f64::INFINITY));
    odd.figures[0].one = f64::NAN;
    odd.asked[0].name = "a\u{1b}[2J`b`".to_owned();
    for language in Language::ALL {
        for text in [
            run_pair::terminal(&odd, &fixture::hostile_names(), language, 60, false),
            run_pair::markdown(&odd, &fixture::hostile_names(), language),
        ] {
            assert!(!text.contains("NaN") && !text.contains("inf]") && !text.contains('\u{1b}'), "{text}");
        }
        let page = run_pair::html(&odd, &fixture::hostile_names(), language, &Markup::default());
        assert!(!page.contains("NaN") && !page.contains("inf]") && !page.contains("alert(\"x\")"), "{page}");
    }
}
