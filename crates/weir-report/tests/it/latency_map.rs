//! Latency against offered load, and costs of connections.

use weir_record::{
    connection_costs::{ChurnCost, ConnectionCosts, IdleCost, KernelCost},
    effect::Effect,
    figure::Figure,
    finding::Finding,
    guidance::{Advice, Guidance, Standing},
    latency_map::{Capacity, LatencyLadder, LatencyPoint, LatencyRung},
    metric::Metric,
    spec::{CellSpec, LoadMode},
    study::StudyResult,
    verdict::Verdict,
};
use weir_report::{Language, csv, html, markdown};

use crate::{fixture, page::paths};

fn figure(value: f64) -> Figure {
    Figure { value, interval: Some((value * 0.98, value * 1.02)) }
}

fn point(arm: &str, p50_us: f64, achieved: f64, reasons: Vec<Finding>) -> LatencyPoint {
    let is_latency = reasons.is_empty();
    LatencyPoint {
        arm: arm.to_owned(),
        p50_ns: is_latency.then(|| figure(1e3 * p50_us)),
        p99_ns: is_latency.then(|| figure(4e3 * p50_us)),
        is_upper_bound: false,
        is_generator_busy: false,
        lag_p99_ns: Some(3_200.0),
        achieved_per_second: achieved,
        reasons,
        units: 24,
    }
}

/// Three rates; one arm does not keep the last, and the generator was late for the other there.
fn result() -> StudyResult {
    let mut result = fixture::quick();
    let shape = result.spec.cells[1].clone();
    let open = |percent: u32| CellSpec {
        id: format!("c100-open{percent}pct"),
        load: LoadMode::Open { rate_per_second: 1_000.0 * f64::from(percent), poisson: true, share: None },
        ..shape.clone()
    };
    let silent = CellSpec { id: "c100-i3900".to_owned(), idle_connections: 3_900, ..shape.clone() };
    let churn = CellSpec { id: "c100-reconnect".to_owned(), close: true, ..shape.clone() };
    result.spec.cells.extend([open(50), open(70), open(90), silent, churn]);
    let rung = |percent: u32, arms: Vec<LatencyPoint>| LatencyRung {
        cell_id: format!("c100-open{percent}pct"),
        rate_per_second: 1_000.0 * f64::from(percent),
        share: Some(f64::from(percent) / 98.0),
        arms,
    };
    let kept = |p50_us: f64, rate: f64| {
        vec![point("epoll", p50_us, rate, Vec::new()), point("uring", 0.9 * p50_us, rate, Vec::new())]
    };
    let late = LatencyPoint {
        is_upper_bound: true,
        is_generator_busy: false,
        lag_p99_ns: Some(61_000.0),
        ..point("epoll", 130.0, 90_000.0, Vec::new())
    };
    let slow = Finding::RateNotKept { arm: "uring".to_owned(), missed: 20, trials: 24 };
    let last = vec![late, point("uring", 0.0, 81_000.0, vec![slow])];
    result.latency_ladders = vec![LatencyLadder {
        capacity: Some(Capacity {
            cell_id: shape.id.clone(),
            arm: "epoll".to_owned(),
            per_second: figure(98_000.0),
            is_bound: true,
        }),
        rungs: vec![rung(50, kept(42.0, 50_000.0)), rung(70, kept(61.0, 70_000.0)), rung(90, last)],
    }];
    result.connection_costs = Some(costs(&shape));
    result
}

fn costs(shape: &CellSpec) -> ConnectionCosts {
    let idle = |arm: &str, ratio: f64| IdleCost {
        arm: arm.to_owned(),
        cell_id: "c100-i3900".to_owned(),
        cell_id_base: shape.id.clone(),
        connections: 3_900,
        cpu_us: Some(figure(5.0 * ratio)),
        cpu_us_base: Some(figure(5.0)),
        ratio: Some(figure(ratio)),
        is_bound: arm == "epoll",
        private_bytes: Some(figure(540.0)),
        proportional_bytes: Some(figure(655.0)),
        reasons: Vec::new(),
    };
    let churned = |arm: &str, cpu_us: f64| ChurnCost {
        arm: arm.to_owned(),
        cell_id: "c100-reconnect".to_owned(),
        per_second: Some(figure(14_000.0)),
        cpu_us: Some(figure(cpu_us)),
        cell_id_base: Some(shape.id.clone()),
        cpu_us_base: Some(figure(5.0)),
        ratio: Some(figure(cpu_us / 5.0)),
        is_bound: true,
        is_base_bound: false,
        reasons: Vec::new(),
    };
    ConnectionCosts {
        idle: vec![idle("epoll", 1.01), idle("uring", 1.04)],
        kernel: vec![KernelCost {
            cell_id: "c100-i3900".to_owned(),
            cell_id_base: shape.id.clone(),
            connections: 3_900,
            bytes: figure(8_400.0),
        }],
        churn: vec![churned("epoll", 31.0), churned("uring", 29.0)],
    }
}

fn sections(language: Language, titles: [&str; 2]) -> String {
    let text = markdown(&result(), language);
    let section = |title: &str| {
        let from = text.find(title).unwrap_or_else(|| panic!("{title} is there"));
        let end = text[from + 3..].find("\n## ").map_or(text.len(), |end| from + 3 + end);
        text[from..end].to_owned()
    };
    titles.map(section).join("\n")
}

#[test]
fn latency_and_connections_are_told_in_three_languages() {
    let of = |language, titles| sections(language, titles);
    insta::assert_snapshot!(
        "latency-markdown",
        of(Language::English, ["## Latency against offered load", "## What connections cost"])
    );
    insta::assert_snapshot!(
        "latency-markdown-ko",
        of(Language::Korean, ["## 요청률별 응답 시간", "## 연결 자체의 비용"])
    );
    insta::assert_snapshot!(
        "latency-markdown-zh",
        of(Language::Chinese, ["## 不同请求速率下的响应时间", "## 连接本身的开销"])
    );
}

#[test]
fn an_arm_without_latency_has_a_hollow_mark_and_no_line_to_it_and_so_has_an_upper_bound_with_one() {
    let page = html(&result(), Language::English);
    let from = page.find("id=\"load-latency-p99-").expect("the chart is there");
    let chart = &page[from..from + page[from..].find("</figure>").unwrap_or(page.len() - from)];
    assert!(chart.contains("uring: rate not kept") && chart.contains("epoll: ≤ 520 µs"), "{chart}");
    // Three connected points, and two.
    let joined = |class: &str| paths(chart, class).matches(['V', 'H', 'L']).count();
    assert_eq!(joined("a0 curve") + joined("a1 curve"), 2 + 1, "{chart}");
    assert_eq!(chart.matches("mark hollow").count(), 2);
}

#[test]
fn a_reason_that_arms_share_is_told_once_and_arms_are_named_where_there_are_several() {
    let mut result = result();
    let churn = &mut result.connection_costs.as_mut().expect("they are known").churn;
    for it in churn.iter_mut() {
        (it.cpu_us, it.reasons) = (None, vec![Finding::NoUnitLeft]);
    }
    let told = "\n\ntoo few trials are left that can be compared; the notes say why\n\n";
    assert_eq!(markdown(&result, Language::English).matches(told).count(), 1);
    let page = html(&result, Language::English);
    assert_eq!(page.matches("<p>too few trials are left that can be compared").count(), 1, "with its cells");
    let churn = &mut result.connection_costs.as_mut().expect("they are known").churn;
    churn[1].reasons = vec![Finding::NoPairLeft];
    for (language, told) in [
        (Language::English, ["epoll: too few trials are left", "uring: no pair is left"]),
        (Language::Korean, ["epoll: 비교할 수 있는 시행이 너무 적음", "uring: "]),
        (Language::Chinese, ["epoll：可比较的试验所剩过少", "uring："]),
    ] {
        let text = markdown(&result, language);
        assert!(told.iter().all(|told| text.contains(&format!("\n\n{told}"))), "{language:?}: {text}");
    }
}

#[test]
fn an_interval_that_says_nothing_has_no_ends_and_that_of_a_difference_has_them() {
    let mut result = result();
    let costs = result.connection_costs.as_mut().expect("they are known");
    costs.churn[0].cpu_us = Some(Figure { value: 31.0, interval: Some((0.5, 1_900.0)) });
    costs.idle[0].private_bytes = Some(Figure { value: 901.0, interval: Some((1.0, 1_801.0)) });
    result.latency_ladders[0].rungs[0].arms[0].p50_ns =
        Some(Figure { value: 42e3, interval: Some((1.0, 42e6)) });
    let text = markdown(&result, Language::English);
    for told in ["| 31.0 µs [–] |", "| 901 B [1 B, 1,801 B] |", "| 42.0 µs [–] |"] {
        assert!(text.contains(told), "{told}: {text}");
    }
    let note = "[–]: the rounds are too few for an interval; its ends are more than 1,000 times apart.";
    assert_eq!(text.matches(note).count(), 2, "one in each section");
    assert!(!markdown(&self::result(), Language::English).contains("[–]"));
}

#[test]
fn every_figure_is_in_the_csv() {
    let text = csv(&result());
    let rows = [
        "c100-open50pct,epoll,,offered-latency-p50,value,42000,ns",
        "c100-open90pct,uring,,offered-rate-answered,value,81000,1/s",
        "c100-i3900,uring,,silent-cpu-ratio,value,1.04,ratio",
        "c100-i3900,epoll,,memory-per-connection,value,540,B",
        "c100-i3900,,,kernel-memory-per-connection,value,8400,B",
        "c100-reconnect,epoll,,cpu-per-connection,value,31,us",
    ];
    for row in rows {
        assert!(text.lines().any(|line| line == row), "{row}\n{text}");
    }
}

#[test]
fn guidance_tells_the_ratios_at_equal_rates_beside_that_of_the_closed_loop() {
    let mut result = result();
    let closed = result.spec.cells[1].id.clone();
    let of_closed = result.effects.comparison(&closed, ("uring", "epoll"), Metric::ServerCpuPerMessage);
    let of_closed = of_closed.expect("the cell is compared").clone();
    let at = |percent: u32, ratio: f64, verdict: Verdict| Effect {
        cell_id: format!("c100-open{percent}pct"),
        estimate: Some(ratio),
        interval: Some((ratio - 0.02, ratio + 0.02)),
        verdict,
        ..of_closed.clone()
    };
    let told = [at(50, 0.97, Verdict::NoClaim), at(70, 0.93, Verdict::NoClaim)];
    told.into_iter().for_each(|row| fixture::compare(&mut result, row));
    fixture::compare(&mut result, at(90, 0.5, Verdict::NotComparable));
    result.guidance = Some(Guidance { access: None, advice: vec![advice()], observed: None });
    let page = weir_report::guidance(&result, Language::English).expect("there is advice");
    let expected = "51 %: 0.970 [0.950, 0.990]; 71 %: 0.930 [0.910, 0.950]. In closed loop";
    assert!(page.contains(expected), "{page}");
}

fn advice() -> Advice {
    Advice {
        map: 0,
        arm: "uring".to_owned(),
        baseline: "epoll".to_owned(),
        standing: Standing::Undetected,
        cells: 1,
        less: 0,
        more: 0,
        undetected: 1,
        equivalent: 0,
        not_borne_out: 0,
        not_comparable: 0,
        generator_limited: 0,
        regions: Vec::new(),
    }
}
