//! The map of a study: shades, marks and sentences, in three languages, and its absence.

use weir_record::{
    grid::{Crossing, Difference, Grid, GridCell, GridFactor, Marginal},
    metric::Metric,
    study::{OversubscribedCell, StudyResult},
};
use weir_report::{Language, html, markdown};

use crate::fixture;

/// Two rows of three cells: one crossing, one cell without a difference, one that may not be compared.
fn mapped() -> StudyResult {
    let mut result = fixture::quick();
    let shape = result.spec.cells[0].clone();
    result.spec.cells.clear();
    let mut cells = Vec::new();
    for (workers, row) in [(1, [1.12, 1.01, 0.8]), (2, [1.2, 0.95, f64::NAN])] {
        for (connections, ratio) in [1, 100, 4000].into_iter().zip(row) {
            let id = format!("c{connections}-w{workers}");
            result.spec.cells.push(weir_record::spec::CellSpec {
                id: id.clone(),
                connections,
                workers,
                ..shape.clone()
            });
            let (ratio, difference) = match ratio {
                ratio if ratio > 1.05 => (Some(ratio), Difference::More),
                ratio if ratio > 1.0 => (Some(ratio), Difference::Undetected),
                ratio if ratio.is_nan() => (None, Difference::Invalid),
                ratio => (Some(ratio), Difference::Less),
            };
            cells.push(GridCell {
                cell_id: id,
                levels: vec![connections.into(), workers.into()],
                ratio,
                interval: ratio.map(|ratio| (ratio - 0.02, ratio + 0.02)),
                p_value_adjusted: ratio.map(|_| 0.004),
                difference,
            });
        }
    }
    result.grids = vec![Grid {
        arm: "uring".to_owned(),
        baseline: "epoll".to_owned(),
        metric: Metric::ServerCpuPerMessage,
        factors: vec![GridFactor::Connections, GridFactor::Workers],
        cells,
        marginals: vec![Marginal {
            factor: GridFactor::Workers,
            level: 2,
            ratio: 1.07,
            interval: Some((1.05, 1.09)),
            cells: 2,
            reversed: vec!["c100-w2".to_owned()],
        }],
        crossings: vec![Crossing {
            cell_id: "c1-w1".to_owned(),
            connections: 130.4,
            low: Some(80.2),
            high: None,
            beyond: Difference::Less,
        }],
    }];
    result.oversubscribed = vec![OversubscribedCell { cell_id: "c1-w2".to_owned(), threads: 3, cpus: 2 }];
    result
}

fn section(text: &str, title: &str) -> String {
    let from = text.find(title).expect("the section is there");
    text[from..from + text[from + 3..].find("\n## ").map_or(text.len() - from, |end| end + 3)].to_owned()
}

#[test]
fn a_map_in_a_document_is_its_table_and_its_sentences() {
    insta::assert_snapshot!("map-markdown", section(&markdown(&mapped(), Language::English), "## The map"));
    insta::assert_snapshot!("map-markdown-ko", section(&markdown(&mapped(), Language::Korean), "## 지도"));
    insta::assert_snapshot!("map-markdown-zh", section(&markdown(&mapped(), Language::Chinese), "## 分布图"));
}

#[test]
fn on_a_page_every_cell_says_its_direction_without_colour() {
    for language in Language::ALL {
        let page = html(&mapped(), language);
        assert!(
            page.contains("▲ +12 %") && page.contains("▼ -20 %") && page.contains("≈ +1 %"),
            "{language:?}"
        );
        assert!(page.contains("<sup>*</sup>"), "{language:?}");
        assert_eq!(page.matches("table class=\"map\"").count(), 1);
    }
}

#[test]
fn a_study_of_few_cells_has_no_map() {
    assert!(!markdown(&fixture::quick(), Language::English).contains("## The map"));
}
