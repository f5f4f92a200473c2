//! Misses against CPU: all ways to wait of a cell, its families as curves, and the frontier.

use maud::html;
use weir_record::{frontier::FrontierRow, metric::Metric};

use super::plane::{PlaneFamily, PlanePoint, plane};
use crate::{
    cited::of_no_cell,
    format, frontier,
    section::{Content, Plot, Section},
    view::View,
    words::Word,
};

/// The section: a plot for each cell.
pub(crate) fn frontier(view: &View<'_>) -> Content {
    let cells = frontier::cells(view);
    Content::unless(cells.is_empty(), || Section {
        sentences: frontier::elsewhere(view),
        plots: cells.into_iter().map(|cell| plot(view, cell)).collect(),
        ..Section::new(Word::FrontierTitle, Word::FrontierHelp)
    })
}

/// What is simulated, in a separate section.
pub(crate) fn simulated(view: &View<'_>) -> Content {
    let texts = frontier::simulated(view);
    Content::unless(texts.is_empty(), || Section {
        sentences: of_no_cell(texts),
        ..Section::new(Word::SimulatedTitle, Word::SimulatedHelp)
    })
}

fn plot(view: &View<'_>, cell: &str) -> Plot {
    let rows = frontier::rows(view, cell);
    let mut families: Vec<(&str, Vec<&FrontierRow>)> = Vec::new();
    for row in rows {
        match families.iter_mut().find(|(name, _)| *name == row.family) {
            Some((_, own)) => own.push(row),
            None => families.push((&row.family, vec![row])),
        }
    }
    let mut drawn: Vec<PlaneFamily> = families.iter().map(|(_, rows)| family(view, rows)).collect();
    // The candidate is drawn last, on top.
    drawn.sort_by_key(|family| family.is_candidate);
    Plot {
        id: format!("frontier-{cell}"),
        title: view.cell_label(cell),
        image: html! { div.plane { (plane((view.word(Word::MissAxis), view.word(Word::CpuAxis)), &drawn)) } },
        numbers: frontier::table(view, cell),
        is_table: false,
        is_half: true,
        is_folded: false,
    }
}

fn family(view: &View<'_>, rows: &[&FrontierRow]) -> PlaneFamily {
    let point = |(index, row): (usize, &&FrontierRow)| {
        let mean = |metric: Metric| view.summary(&row.cell_id, &row.arm)?.mean(metric);
        let (x, y) = (mean(Metric::MissRate)?, mean(Metric::WaitingCpuShare)?);
        // One member of a family has its full name; for the others the parameter is enough.
        let short =
            row.arm.strip_prefix(&row.family).map(|parameter| parameter.trim_start_matches('-').to_owned());
        Some(PlanePoint {
            x,
            y,
            title: format!("{} · {} · {}", row.arm, format::percent(x), format::percent(y)),
            label: short.filter(|it| index > 0 && !it.is_empty()).unwrap_or_else(|| row.arm.clone()),
            is_on_frontier: row.is_on_frontier && !row.is_oracle,
        })
    };
    let mut points: Vec<PlanePoint> = rows.iter().enumerate().filter_map(point).collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x).then(b.y.total_cmp(&a.y)));
    let first = rows.first();
    PlaneFamily {
        style: first.map_or(0, |row| view.arm_index(&row.arm)),
        is_oracle: rows.iter().any(|row| row.is_oracle),
        is_candidate: rows.iter().any(|row| view.baseline() == Some(&row.arm)),
        points,
    }
}
