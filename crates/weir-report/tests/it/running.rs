//! What a live view draws: the estimate as it narrows, and the cells as they fill.

use weir_record::running::{CellSoFar, TrackPoint};
use weir_report::{Language, running_cells, running_track};

use crate::{fixture, map};

fn point(units: usize, half: f64) -> TrackPoint {
    TrackPoint { units, ratio: 0.8, interval: (0.8 - half, 0.8 + half) }
}

#[test]
fn an_estimate_that_narrows_is_drawn_from_two_points_on_and_described_for_readers_who_do_not_see_it() {
    let plan = fixture::quick();
    let drawn = |points: &[TrackPoint], language| running_track(&plan, points, language).into_string();
    assert!(
        drawn(&[], Language::English).is_empty() && drawn(&[point(6, 0.2)], Language::English).is_empty()
    );
    let words = [
        "after 6 rounds or blocks: 0.800 [0.600, 1.000]; after 12: 0.800 [0.750, 0.850]",
        "라운드·블록 6개 후",
        "6 个轮次或区组后",
    ];
    for (language, words) in Language::ALL.into_iter().zip(words) {
        let drawn = drawn(&[point(6, 0.2), point(12, 0.05)], language);
        assert!(drawn.contains(words) && drawn.contains("role=\"img\""), "{drawn}");
    }
    let odd = drawn(&[point(6, f64::NAN), point(12, f64::INFINITY)], Language::English);
    assert!(!odd.contains("MNaN") && !odd.contains("LNaN") && !odd.contains("Vinf"), "{odd}");
}

#[test]
fn a_cell_shows_how_far_it_is_and_its_ratio_when_it_is_done() {
    let plan = map::mapped();
    let mut cells: Vec<CellSoFar> = plan
        .spec
        .cells
        .iter()
        .map(|cell| CellSoFar { cell_id: cell.id.clone(), blocks_done: 0, blocks: 4, ratio: None })
        .collect();
    (cells[0].blocks_done, cells[0].ratio) = (4, Some(0.8));
    cells[1].blocks_done = 1;
    cells[2].blocks_done = 4;
    (cells[3].blocks_done, cells[3].ratio) = (4, Some(1e-9));
    let drawn = running_cells(&plan, &cells, Language::English).into_string();
    for part in [">0.800</td>", "--strength:33%", ">1/4</td>", ">✓</td>", "--strength:45%", ">–</td>"] {
        assert!(drawn.contains(part), "{part} in {drawn}");
    }
    assert_eq!(drawn.matches("<td").count() - drawn.matches("<td class=\"void\"></td>").count(), cells.len());
    for verdict in ["good", "bad", "better", "worse"] {
        assert!(!drawn.contains(verdict), "nothing has the look of a verdict: {drawn}");
    }
    assert!(running_cells(&plan, &cells[..1], Language::English).into_string().is_empty());
}

#[test]
fn cells_without_connections_have_a_row_each() {
    let plan = fixture::hostile_names();
    let unknown =
        |number: usize| CellSoFar { cell_id: format!("<{number}>"), blocks_done: 0, blocks: 1, ratio: None };
    let drawn = running_cells(&plan, &[unknown(1), unknown(2)], Language::Korean).into_string();
    assert_eq!(drawn.matches("<tr>").count(), 2, "{drawn}");
    assert!(drawn.contains("&lt;1&gt;") && !drawn.contains("<thead>"), "{drawn}");
}
