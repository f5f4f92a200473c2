//! The tables of a map under their published names, implausible scaling, the figures of a load tester, and the size
//! of a page with many cells.

use weir_record::{
    cpu_account::CpuDifference,
    effect::Effect,
    evidence::{ArmEvidence, CallEvidence},
    figure::Figure,
    finding::{FailureClass, FailureCount},
    goal::Outcome,
    grid::{Difference, Grid, GridCell, GridFactor},
    metric::Metric,
    overview::{
        Aggregate, AggregateRow, BestCell, MeanRatio, MeanRow, Overview, Quantity, Scaling, ScalingCandidate,
        ScalingCause, ScalingMean, Statistic, SuccessRow,
    },
    published::{PublishedRow, PublishedTable, TableName},
    spec::{CellSpec, HttpCell},
    study::{ArmSummary, StudyResult, TimelineEntry},
    text::Text,
    threads::ThreadUse,
};
use weir_report::{Language, csv, html, markdown, terminal};

use crate::{account, evidence, fixture};

fn figure(value: f64) -> Figure {
    Figure { value, interval: Some((value * 0.98, value * 1.02)) }
}

pub fn published(table: TableName, rows: &[(&str, [f64; 2])]) -> PublishedTable {
    PublishedTable {
        table,
        cell_id: None,
        source: Text {
            ko: Some("문서 000".to_owned()),
            zh: Some("文档 000".to_owned()),
            ..Text::from("Document 000")
        },
        arms: vec!["epoll".to_owned(), "uring".to_owned()],
        rows: rows
            .iter()
            .map(|(key, figures)| PublishedRow { key: (*key).to_owned(), figures: figures.to_vec() })
            .collect(),
        explanation: Text {
            ko: Some("서로 다른 조건의 산술 평균입니다.".to_owned()),
            zh: Some("对互不相同的条件取算术平均。".to_owned()),
            ..Text::from("Arithmetic means over unlike cells.")
        },
    }
}

fn mean(level: Option<u64>, arm: &str, factor: f64) -> MeanRow {
    let ratio = |reversed: &[&str]| MeanRatio {
        ratio: figure(factor),
        cells: 3,
        reversed: reversed.iter().map(|cell| (*cell).to_owned()).collect(),
    };
    let is_baseline = arm == "epoll";
    MeanRow {
        level,
        arm: arm.to_owned(),
        cells: 4,
        cells_bound: u32::from(level != Some(100)),
        throughput: Some(figure(120_000.0 * factor)),
        throughput_per_cpu: Some(figure(120_000.0 * factor)),
        per_cpu_second: Some(figure(190_000.0 * factor)),
        throughput_ratio: None,
        per_cpu_second_ratio: (!is_baseline).then(|| ratio(if level.is_none() { &["c100-w2"] } else { &[] })),
    }
}

fn scaling(quantity: Quantity, efficiency: f64, is_alarm: bool) -> Scaling {
    let candidate = |cause, holds, figures| ScalingCandidate { cause, holds, figures };
    Scaling {
        arm: "uring".to_owned(),
        quantity,
        cell_id: "c100-w2".to_owned(),
        cell_id_base: "c100-w1".to_owned(),
        workers: 2,
        workers_base: 1,
        efficiency: Some(figure(efficiency)),
        rounds: 40,
        is_bound: false,
        is_base_bound: quantity == Quantity::Throughput,
        is_alarm,
        candidates: if is_alarm {
            vec![
                candidate(ScalingCause::GeneratorAtLimit, Some(true), Some((0.99, 0.55))),
                candidate(ScalingCause::Oversubscribed, Some(true), Some((1.0, 1.5))),
                candidate(ScalingCause::ServerIdle, Some(false), Some((0.97, 0.93))),
                candidate(ScalingCause::BaseNoisier, None, None),
            ]
        } else {
            Vec::new()
        },
    }
}

/// Two numbers of connections, one worker and two, with tables made by hand.
pub fn mapped() -> StudyResult {
    let mut result = fixture::quick();
    let shape = result.spec.cells[0].clone();
    let cell = |connections: u32, workers: u32| CellSpec {
        id: format!("c{connections}-w{workers}"),
        connections,
        workers,
        ..shape.clone()
    };
    result.spec.cells = vec![cell(100, 1), cell(100, 2), cell(4000, 1), cell(4000, 2)];
    let both = |level: Option<u64>, factor: f64| [mean(level, "epoll", 1.0), mean(level, "uring", factor)];
    let success = |level: u64, arm: &str, failed: u64| SuccessRow {
        level,
        arm: arm.to_owned(),
        completed: 12_000_000,
        failed,
        classes: if failed > 0 {
            vec![FailureCount { class: FailureClass::Reset, count: failed }]
        } else {
            Vec::new()
        },
        cut_off_at_end: 0,
        success: Some(12e6 / (12e6 + failed as f64)),
        success_interval: Some((12e6 / (12e6 + failed as f64) - 1e-6, 1.0)),
        trials: 120,
        trials_without_report: 0,
    };
    let best = |arm: &str, ties: &[&str]| BestCell {
        arm: arm.to_owned(),
        quantity: Quantity::Throughput,
        cell_id: "c100-w2".to_owned(),
        figure: figure(150_000.0),
        is_bound: true,
        ties: ties.iter().map(|cell| (*cell).to_owned()).collect(),
        success: Some(1.0),
    };
    result.overviews = vec![Overview {
        map: 0,
        cells_far: Vec::new(),
        cells_in_both_states: Vec::new(),
        cells: result.spec.cells.iter().map(|cell| cell.id.clone()).collect(),
        overall: both(None, 1.08).to_vec(),
        by_connections: [both(Some(100), 1.12), both(Some(4000), 1.04)].concat(),
        by_workers: [both(Some(1), 1.1), both(Some(2), 1.06)].concat(),
        by_server_cpus: Vec::new(),
        best: vec![best("epoll", &[]), best("uring", &["c100-w1"])],
        best_by_workers: ["c100-w1", "c4000-w2"]
            .into_iter()
            .flat_map(|cell_id| {
                ["epoll", "uring"].map(|arm| BestCell { cell_id: cell_id.to_owned(), ..best(arm, &[]) })
            })
            .collect(),
        success: vec![success(100, "epoll", 0), success(100, "uring", 3), success(4000, "epoll", 0)],
        scaling: vec![ScalingMean {
            arm: "uring".to_owned(),
            workers: 2,
            workers_base: 1,
            lines: 2,
            lines_free: 1,
            throughput: Some(figure(0.93)),
            per_cpu_second: Some(figure(0.97)),
        }],
        scaling_lines: vec![
            scaling(Quantity::Throughput, 2.43, true),
            scaling(Quantity::PerCpuSecond, 0.97, false),
        ],
    }];
    result.spec.published_tables = published_tables();
    result
}

/// A published table for each name.
fn published_tables() -> Vec<PublishedTable> {
    vec![
        published(TableName::Overall, &[("all", [293_805.0, 391_839.0])]),
        published(
            TableName::Connections,
            &[("100", [479_992.0, 579_383.0]), ("1000", [381_818.0, 649_602.0])],
        ),
        published(TableName::Threads, &[("1", [28_569.0, 31_314.0])]),
        published(
            TableName::Best,
            &[
                ("throughput", [1_707_788.0, 2_036_547.0]),
                ("connections", [100.0, 100.0]),
                ("threads", [16.0, 16.0]),
                ("success", [100.0, 100.0]),
            ],
        ),
        published(TableName::Success, &[("100", [100.0, 99.804]), ("4000", [99.87, 99.468])]),
        published(TableName::Cores, &[("1", [28_569.0, 31_314.0])]),
        published(TableName::Efficiency, &[("2", [94.7, 95.3])]),
        published(TableName::PerCore, &[("1", [28_569.0, 31_314.0]), ("2", [27_052.0, 29_832.0])]),
    ]
}

fn section(text: &str, title: &str) -> String {
    let from = text.find(title).unwrap_or_else(|| panic!("{title} is there"));
    text[from..from + text[from + 3..].find("\n## ").map_or(text.len() - from, |end| end + 3)].to_owned()
}

#[test]
fn every_table_stands_under_its_published_name_and_beside_what_was_published() {
    let of = |language, title| section(&markdown(&mapped(), language), title);
    insta::assert_snapshot!("overview-markdown", of(Language::English, "## The map in tables"));
    insta::assert_snapshot!("overview-markdown-ko", of(Language::Korean, "## 조건별 결과표"));
    insta::assert_snapshot!("overview-markdown-zh", of(Language::Chinese, "## 各条件结果表"));
    for language in Language::ALL {
        let page = html(&mapped(), language);
        assert!(page.contains("243 %") && page.contains("1,707,788 (100 × 16, 100 %)"), "{language:?}");
    }
}

#[test]
fn a_mean_of_throughput_that_cells_contradict_names_them_as_one_of_cpu_does() {
    let mut result = mapped();
    let sentence = "uring, messages/s: the mean over all cells hides cells that go the other way: 100 connections · 64 B \
                    · 2 workers.";
    assert!(!markdown(&result, Language::English).contains(sentence));
    let row = result.overviews[0].overall.iter_mut().find(|row| row.arm == "uring").expect("it is there");
    row.throughput_ratio.clone_from(&row.per_cpu_second_ratio);
    row.throughput_ratio.as_mut().expect("it is there").cells = 1;
    let text = markdown(&result, Language::English);
    assert!(text.contains(sentence) && text.contains("1.080 [1.058, 1.102] (1 cell) |"), "{text}");
    assert!(text.contains("uring, messages per CPU-second: the mean over all cells hides cells"), "{text}");
}

#[test]
fn a_terminal_has_a_line_for_each_arm_and_what_scales_too_well() {
    insta::assert_snapshot!("overview-terminal", {
        let text = terminal(&mapped(), Language::English, 100, false);
        let from = text.find("The map in tables").expect("it is there");
        text[from..].split("\n\n").next().unwrap_or_default().to_owned()
    });
    assert!(!terminal(&fixture::quick(), Language::English, 100, false).contains("The map in tables"));
}

#[test]
fn the_export_has_every_figure_of_the_tables() {
    let text = csv(&mapped());
    let lines: Vec<&str> = text.lines().collect();
    for line in [
        "map-1,uring,,mean-messages-per-cpu-second,all,205200,1/s",
        "map-1,uring,epoll,mean-messages-per-cpu-second-ratio,connections-100,1.12,ratio",
        "map-1,uring,epoll,mean-messages-per-cpu-second-ratio,connections-100-cells,3,count",
        "c100-w2,uring,epoll,mean-messages-per-cpu-second-ratio,is-against-all,1,bool",
        "map-1,epoll,,mean-cells-generator-bound,workers-1,1,count",
        "c100-w2,uring,,scaling-efficiency-throughput,is-alarm,1,bool",
        "c100-w2,uring,,scaling-efficiency-throughput,is-upper-bound,1,bool",
        "c100-w2,uring,,scaling-efficiency-throughput,is-lower-bound,0,bool",
        "c100-w2,uring,,scaling-efficiency-throughput,candidate-generator-at-limit,yes,",
        "c100-w2,uring,,scaling-efficiency-throughput,candidate-base-noisier,unknown,",
        "map-1,uring,,mean-scaling-efficiency-throughput,workers-2-over-1,0.93,ratio",
        "map-1,uring,,mean-scaling-efficiency-throughput,workers-2-over-1-lines,1,count",
        "map-1,uring,,mean-scaling-efficiency-messages-per-cpu-second,workers-2-over-1-lines,2,count",
        "c100-w2,uring,,best-throughput,is-lower-bound,1,bool",
        "c100-w1,uring,,best-throughput,is-tie,1,bool",
        "c100-w2,uring,,best-throughput,success,1,fraction",
        "map-1,uring,,failed-reset,connections-100,3,count",
        "map-1,epoll,,success,connections-4000,1,fraction",
        "map-1,epoll,,success,connections-4000-interval-high,1,fraction",
        "map-1,uring,,trials-without-report,connections-100,0,count",
        "c4000-w1,,,map,name,map-1,",
    ] {
        assert!(lines.contains(&line), "{line} in {lines:#?}");
    }
}

#[test]
fn an_interval_that_says_nothing_has_no_ends_but_in_the_export() {
    let mut result = mapped();
    let wide = Figure { value: 45_392.0, interval: Some((1.0, 2_554_684_068.0)) };
    (result.overviews[0].overall[0].throughput, result.overviews[0].overall[0].cells_bound) = (Some(wide), 0);
    for (language, note) in [
        (Language::English, "[–]: the rounds are too few for an interval"),
        (Language::Korean, "[–]: 라운드가 너무 적어"),
        (Language::Chinese, "[–]：轮次太少"),
    ] {
        let text = markdown(&result, language);
        assert!(text.contains("| 45,392 [–] |") && !text.contains("2,554,684,068"), "{language:?}: {text}");
        assert_eq!(text.matches(note).count(), 1, "{language:?}: at the table that has one");
        assert!(html(&result, language).contains(note), "{language:?}");
        assert!(!markdown(&mapped(), language).contains("[–]"), "{language:?}");
    }
    assert!(csv(&result).contains(",all-interval-high,2554684068,"));
}

#[test]
fn two_maps_of_a_study_share_no_key_and_no_title() {
    let mut result = mapped();
    let cells = result.spec.cells.clone();
    result.spec.cells.extend(cells.into_iter().map(|cell| CellSpec {
        id: format!("{}-idle", cell.id),
        idle_connections: 40,
        ..cell
    }));
    let mut second = result.overviews[0].clone();
    let idle = |id: &mut String| id.push_str("-idle");
    second.map = 1;
    second.cells.iter_mut().for_each(idle);
    second.best.iter_mut().for_each(|it| {
        idle(&mut it.cell_id);
        it.ties.iter_mut().for_each(idle);
    });
    second.scaling_lines.iter_mut().for_each(|it| idle(&mut it.cell_id));
    let rows = [&mut second.overall, &mut second.by_connections, &mut second.by_workers];
    let ratios = rows.into_iter().flatten().filter_map(|row| row.per_cpu_second_ratio.as_mut());
    ratios.for_each(|ratio| ratio.reversed.iter_mut().for_each(idle));
    result.overviews.push(second);
    result.grids = vec![grid(&result, (0, ""), Metric::ServerCpuPerMessage); 2];
    let [first, second] = result.grids.as_mut_slice() else { unreachable!("there are two") };
    first.cells.truncate(4);
    (second.map, second.cells) = (1, second.cells.split_off(4));
    let text = csv(&result);
    let key = |line: &str| line.splitn(6, ',').take(5).collect::<Vec<_>>().join(",");
    // A comparison has several of each of these, and a block has two of the baseline's trials.
    let several = [",reason,", ",note,", ",excluded,", ",trial,"];
    let is_one_of_several = |line: &&str| several.iter().any(|it| line.contains(it));
    let mut keys: Vec<String> = text.lines().filter(|line| !is_one_of_several(line)).map(key).collect();
    keys.sort_unstable();
    let twice: Vec<&[String]> = keys.windows(2).filter(|two| two[0] == two[1]).collect();
    assert!(twice.is_empty(), "{:?}", twice.first());
    let apart = ["· 40 idle", "· 유휴 연결 40개", "· 空闲连接 40 个"];
    for (language, apart) in Language::ALL.into_iter().zip(apart) {
        let page = markdown(&result, language);
        let mut titles: Vec<&str> = page.lines().filter(|line| line.starts_with('#')).collect();
        let all = titles.len();
        titles.sort_unstable();
        titles.dedup();
        assert_eq!(titles.len(), all, "{titles:#?}");
        assert!(page.contains(apart), "{language:?}: {titles:#?}");
    }
}

#[test]
fn where_cells_were_met_in_unlike_states_of_the_machine_the_means_say_so() {
    let mut result = mapped();
    let sentence = |result: &StudyResult| {
        markdown(result, Language::English)
            .contains("Figures of 1 of 4 cells are of its far state, of 2 of both")
    };
    assert!(!sentence(&result));
    result.overviews[0].cells_far = vec!["c100-w1".to_owned()];
    result.overviews[0].cells_in_both_states = vec!["c100-w2".to_owned(), "c4000-w2".to_owned()];
    assert!(sentence(&result));
    assert!(csv(&result).contains("\nc100-w1,,,map,is-in-far-state,1,bool\n"));
    result.overviews[0].cells_far = result.overviews[0].cells.clone();
    result.overviews[0].cells_in_both_states.clear();
    assert!(!markdown(&result, Language::English).contains("of its far state"), "all were met in one");
}

#[test]
fn system_calls_against_traffic_stand_beside_the_tables_of_a_map_with_evidence() {
    let mut result = mapped();
    let evidence = |cell: &str, arm: &str, count: f64| ArmEvidence {
        cell_id: cell.to_owned(),
        arm: arm.to_owned(),
        calls: vec![CallEvidence {
            name: "recvfrom".to_owned(),
            count,
            on_cpu_ns: 400.0 * count,
            ..CallEvidence::default()
        }],
        ..ArmEvidence::default()
    };
    result.evidence = vec![
        evidence("c100-w1", "epoll", 2.0),
        evidence("c100-w1", "uring", 0.1),
        evidence("c4000-w1", "epoll", 2.1),
    ];
    let text = markdown(&result, Language::English);
    assert!(text.contains("## System call overhead as traffic (connections) grows"));
    assert!(
        markdown(&result, Language::Korean).contains("## 트래픽(연결 수) 증가에 따른 시스템 콜 오버헤드")
    );
    let of_two_workers = ["c100-w2", "c4000-w2"].map(|cell| evidence(cell, "epoll", 2.0));
    result.evidence.extend(of_two_workers);
    let text = markdown(&result, Language::English);
    assert!(text.contains("calls · 64 B · 2 workers"), "charts are named by what their cells share: {text}");
}

/// An HTTP study whose closed cell has the rows of a load tester.
fn aggregated() -> StudyResult {
    let mut result = fixture::quick();
    for cell in &mut result.spec.cells {
        cell.http = Some(HttpCell { content: "html".to_owned(), close: true, ..HttpCell::default() });
    }
    let cell_id = result.spec.cells[1].id.clone();
    let values = [40_400.0, 19e6, 18e6, 20e6, 21e6, 105e6, 200e6, 0.0015, 4e6, 12_345.0, 13_000.0];
    let row = |(statistic, value): (Statistic, f64)| AggregateRow {
        statistic,
        value,
        range: (!matches!(statistic, Statistic::Samples | Statistic::Errors))
            .then_some((value * 0.9, value * 1.1)),
    };
    let rows: Vec<AggregateRow> = Statistic::ALL.into_iter().zip(values).map(row).collect();
    let of = |arm: &str, rows: &[AggregateRow]| Aggregate {
        cell_id: cell_id.clone(),
        arm: arm.to_owned(),
        trials: 12,
        is_bound: arm == "uring",
        rows: rows.to_vec(),
    };
    result.aggregates = vec![of("epoll", &rows), of("uring", &rows[..10])];
    result.spec.published_tables = vec![PublishedTable {
        cell_id: Some(cell_id.clone()),
        ..published(
            TableName::Aggregate,
            &[
                ("samples", [22_544.0, 23_168.0]),
                ("mean", [118.0, 113.0]),
                ("errors", [0.15, 0.16]),
                ("throughput", [592.8, 615.0]),
            ],
        )
    }];
    result
}

#[test]
fn the_rows_of_a_load_tester_stand_beside_the_published_ones() {
    let of = |language, title| section(&markdown(&aggregated(), language), title);
    insta::assert_snapshot!("aggregate-markdown", of(Language::English, "## Aggregate report"));
    insta::assert_snapshot!(
        "aggregate-markdown-ko",
        of(Language::Korean, "## 집계 보고서(Aggregate Report)")
    );
    insta::assert_snapshot!("aggregate-markdown-zh", of(Language::Chinese, "## 聚合报告"));
    let text = csv(&aggregated());
    assert!(text.contains("epoll,,aggregate-p99,value,105000000,ns"));
    let bounds = |arm: &str, is_bound: u8| {
        text.contains(&format!("{arm},,aggregate-throughput,is-lower-bound,{is_bound},bool"))
    };
    assert!(bounds("uring", 1) && bounds("epoll", 0), "{text}");
}

/// Rounds of each cell of the large map.
const ROUNDS: usize = 40;

/// 120 cells, half of them at one rate for all arms, each with all questions and observations of a study.
pub fn large() -> StudyResult {
    let base = fixture::quick();
    let mut result = base.clone();
    (result.spec.cells, result.arms, result.effects, result.timeline) = Default::default();
    for (shape, load) in [(&base.spec.cells[1], "closed"), (&base.spec.cells[3], "open")] {
        for message_bytes in [64, 4096] {
            for workers in [1, 2, 4, 8, 16] {
                for connections in [1, 10, 100, 1000, 2000, 4000] {
                    let id = format!("c{connections}-d1-m{message_bytes}-w{workers}-{load}");
                    result.spec.cells.push(CellSpec {
                        id,
                        connections,
                        message_bytes,
                        workers,
                        ..shape.clone()
                    });
                }
            }
        }
    }
    assert_eq!(result.spec.cells.len(), 120);
    for number in 0..result.spec.cells.len() {
        measured(&mut result, &base, number);
        observed(&mut result, number);
    }
    result.effects.rows.sort_by_key(|row| !row.is_comparison());
    result.timeline.sort_by_key(|entry| entry.started_ns);
    let metrics = [Metric::ServerCpuPerMessage, Metric::Throughput];
    let of_load = |map: (u32, &str)| metrics.map(|metric| grid(&result, map, metric));
    result.grids = [(0, "closed"), (1, "open")].into_iter().flat_map(of_load).collect();
    result.overviews = mapped().overviews;
    let lines = &mut result.overviews[0].scaling_lines;
    let one = lines.clone();
    let pairs = result.spec.cells.iter().filter(|cell| cell.workers > 1);
    *lines = pairs
        .flat_map(|cell| one.iter().map(|it| Scaling { cell_id: cell.id.clone(), ..it.clone() }))
        .collect();
    result
}

/// Figures, comparisons and trials of a cell, copied from a cell of the base with the same load.
fn measured(result: &mut StudyResult, base: &StudyResult, number: usize) {
    let cell = result.spec.cells[number].clone();
    let like = base.spec.cells.iter().rfind(|it| it.load == cell.load).expect("there is one").id.as_str();
    for arm in base.arms.iter().filter(|it| it.cell_id == like) {
        let mut arm = ArmSummary { cell_id: cell.id.clone(), ..arm.clone() };
        for figures in &mut arm.figures {
            figures.units = (0..ROUNDS).map(|round| figures.mean * (1.0 + 0.001 * round as f64)).collect();
        }
        result.arms.push(arm);
    }
    let ratio = |round: usize| 0.8 + 0.01 * (number % 40) as f64 + 0.001 * round as f64;
    let values = fixture::logarithms(&(0..ROUNDS).map(ratio).collect::<Vec<_>>());
    for row in base.effects.rows.iter().filter(|it| it.cell_id == like) {
        let values = if row.values.is_empty() { Vec::new() } else { values.clone() };
        result.effects.rows.push(Effect { cell_id: cell.id.clone(), values, ..row.clone() });
    }
    for round in 0..ROUNDS {
        let started_ns = (round * 120 + number) as u64 * 1_500_000_000;
        let block = round as u32;
        result.timeline.extend(base.timeline.iter().take(3).map(|entry| TimelineEntry {
            cell_id: cell.id.clone(),
            block,
            started_ns,
            ..entry.clone()
        }));
    }
}

/// Observations of a cell by the kernel, the engine's clock and the threads.
fn observed(result: &mut StudyResult, number: usize) {
    let cell_id = result.spec.cells[number].id.clone();
    let accounted = account::accounted(Outcome::Met);
    for (arm, timed) in evidence::observed().evidence.into_iter().zip(accounted.evidence) {
        let of_thread = |name: usize| ThreadUse {
            cell_id: cell_id.clone(),
            arm: arm.arm.clone(),
            name: format!("weir-worker-{name}"),
            windows: ROUNDS as u32,
            ..ThreadUse::default()
        };
        result.threads.extend((0..4).map(of_thread));
        result.evidence.push(ArmEvidence { cell_id: cell_id.clone(), account: timed.account, ..arm });
    }
    let differences = accounted.cpu_differences.into_iter();
    result.cpu_differences.extend(differences.map(|it| CpuDifference { cell_id: cell_id.clone(), ..it }));
}

fn grid(result: &StudyResult, (map, load): (u32, &str), metric: Metric) -> Grid {
    let levels =
        |cell: &CellSpec| [cell.connections, cell.workers, cell.depth, cell.message_bytes].map(u64::from);
    let cell = |(number, cell): (usize, &CellSpec)| {
        let ratio = 0.8 + 0.01 * (number % 40) as f64;
        GridCell {
            cell_id: cell.id.clone(),
            levels: levels(cell).to_vec(),
            ratio: Some(ratio),
            interval: Some((ratio - 0.02, ratio + 0.02)),
            p_value_adjusted: Some(0.004),
            difference: if ratio < 1.0 { Difference::Less } else { Difference::More },
        }
    };
    let cells = result.spec.cells.iter().filter(|cell| cell.id.ends_with(load));
    Grid {
        map,
        cells_left_out: 0,
        arm: "uring".to_owned(),
        baseline: "epoll".to_owned(),
        metric,
        factors: vec![
            GridFactor::Connections,
            GridFactor::Workers,
            GridFactor::Depth,
            GridFactor::MessageBytes,
        ],
        cells: cells.enumerate().map(cell).collect(),
        marginals: Vec::new(),
        interactions: Vec::new(),
        crossings: Vec::new(),
    }
}

#[test]
fn a_page_of_120_cells_is_smaller_than_three_megabytes_in_every_language() {
    let result = large();
    for language in Language::ALL {
        let page = html(&result, language);
        assert!(page.len() < 3_000_000, "{language:?}: {} bytes", page.len());
        assert!(page.contains("table class=\"map\"") && page.matches("<td").count() > 10_000);
        let drawn = ["id=\"latency-", "id=\"account-", "weir-worker-3", "a1 point"];
        assert!(drawn.iter().all(|part| page.contains(part)), "{language:?}: it is a whole page");
    }
}

#[test]
fn a_session_of_thousands_of_trials_is_a_small_drawing() {
    let mut result = fixture::quick();
    let without = html(&result, Language::English).len();
    let entry = result.timeline[0].clone();
    let of = |number: u64| TimelineEntry {
        block: number as u32,
        started_ns: number * 1_500_000_000,
        elapsed_ns: 1_400_000_000,
        clean: !number.is_multiple_of(50),
        round_trip_ns: 90.0 + (number % 7) as f64,
        ..entry.clone()
    };
    result.timeline = (0..2000).map(of).collect();
    let page = html(&result, Language::English);
    // The table is most of it.
    assert!(page.len() < without + 300_000, "{} bytes more", page.len() - without);
    assert!(page.matches("trial aside").count() >= 40, "what was left out is seen all the same");
}
