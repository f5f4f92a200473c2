//! A study that runs: how the estimate of its primary comparison narrows, and the map of its cells as they fill.
//! Neither has the colour of a verdict, because there is none before the end.

use std::collections::BTreeMap;

use maud::{Markup, html};
use weir_record::running::{CellSoFar, TrackPoint};

use super::{
    canvas::{Anchor, Canvas},
    framed,
    scale::Scale,
};
use crate::{format, html as page, language::localized, view::View};

const HEIGHT: f64 = 150.0;
const PLOT_Y: (f64, f64) = (124.0, 10.0);

/// A ratio of this size has the full shade.
const FULL: f64 = 0.3;
/// Per cent of the shade's colour in the fullest cell.
const SHADE_MAX: f64 = 45.0;

/// Most columns of the map; a study with more numbers of connections has a row for each cell.
const COLUMNS_MAX: usize = 16;

/// The estimate from the first units, by their number: a point with its interval for each. Nothing with one point.
pub(crate) fn track(view: &View<'_>, points: &[TrackPoint]) -> Markup {
    let (Some(first), Some(last)) = (points.first(), points.last().filter(|_| points.len() > 1)) else {
        return html! {};
    };
    let x = Scale::linear(first.units as f64, last.units as f64, 1.0, 99.0);
    let values = points.iter().flat_map(|point| [point.ratio, point.interval.0, point.interval.1]);
    let y = Scale::ratios(values, PLOT_Y.0, PLOT_Y.1);
    let mut canvas = Canvas::fluid(HEIGHT);
    for tick in y.ticks(4.0) {
        canvas.line("grid", [0.0, y.at(tick), 100.0, y.at(tick)]);
    }
    canvas.line("one", [0.0, y.at(1.0), 100.0, y.at(1.0)]);
    for point in points {
        let (at, (low, high)) = (x.at(point.units as f64), point.interval);
        canvas.line("whisker", [at, y.at(low), at, y.at(high)]);
    }
    let line: Vec<(f64, f64)> =
        points.iter().map(|point| (x.at(point.units as f64), y.at(point.ratio))).collect();
    canvas.polyline("a0 curve", &line);
    let ends = [(first, Anchor::Start), (last, Anchor::End)];
    for (point, anchor) in ends {
        let text = format::count(point.units as u64);
        canvas.text("tick", x.at(point.units as f64), PLOT_Y.0 + 17.0, anchor, &text);
    }
    let (units, interval) = (last.units, format::ratio_and_interval(Some(last.ratio), Some(last.interval)));
    let began = format::ratio_and_interval(Some(first.ratio), Some(first.interval));
    let first_units = first.units;
    let label = localized!(
        view.language,
        "Ratio with its 99 % interval after {first_units} rounds or blocks: {began}; after {units}: {interval}",
        "라운드·블록 {first_units}개 후 비율과 99 % 신뢰구간: {began}. {units}개 후: {interval}",
        "{first_units} 个轮次或区组后的比值及 99 % 置信区间：{began}；{units} 个后：{interval}",
    );
    html! {
        div.chart { figure role="img" aria-label=(label) {
            figcaption { (view.language.choose(TRACK)) }
            (framed(HEIGHT, &y, |ratio| format::ratio(Some(ratio)), &canvas.finish()))
        } }
    }
}

const TRACK: [&str; 3] = [
    "The ratio and its 99 % interval, by the number of rounds or blocks",
    "라운드·블록 수에 따른 비율과 99 % 신뢰구간",
    "比值及其 99 % 置信区间随轮次或区组数的变化",
];

/// The cells of the plan: a column for each number of connections where there are several, a row for all other
/// conditions. A cell has the share of its blocks that are done, and then its ratio.
pub(crate) fn cells(view: &View<'_>, cells: &[CellSoFar]) -> Markup {
    if cells.len() < 2 {
        return html! {};
    }
    let mut columns: Vec<Option<u32>> = cells.iter().map(|cell| connections(view, cell)).collect();
    columns.sort_unstable();
    columns.dedup();
    let is_table = columns.len() > 1 && columns.len() <= COLUMNS_MAX && !columns.contains(&None);
    let columns = if is_table { columns } else { vec![None] };
    let mut rows: Vec<(String, BTreeMap<Option<u32>, &CellSoFar>)> = Vec::new();
    for cell in cells {
        let column = connections(view, cell).filter(|_| is_table);
        let label = if is_table {
            view.label_beside_connections(&cell.cell_id)
        } else {
            view.cell_label(&cell.cell_id)
        };
        // Two cells of one label have a row each.
        match rows.iter_mut().find(|(own, filled)| *own == label && !filled.contains_key(&column)) {
            Some((_, filled)) => _ = filled.insert(column, cell),
            None => rows.push((label, BTreeMap::from([(column, cell)]))),
        }
    }
    html! {
        (page::scrolled(view.language, &html! { table.map style=(format!("--columns:{}", columns.len())) {
            caption.hint { (view.language.choose(CELLS)) }
            @if is_table { thead { tr {
                th scope="col" { (view.language.choose(["Connections", "연결", "连接"])) }
                @for column in columns.iter().flatten() { th scope="col" { (format::count(u64::from(*column))) } }
            } } }
            tbody { @for (label, filled) in &rows { tr {
                th scope="row" { (label) }
                @for column in &columns { (square(filled.get(column).copied())) }
            } } }
        } }))
    }
}

const CELLS: [&str; 3] = [
    "Blocks that are done in each cell, and the ratio to the baseline when all of them are. Provisional: noise is not \
     excluded yet.",
    "조건별로 끝난 블록 수이며, 모두 끝나면 기준 대비 비율을 표시합니다. 노이즈를 제외하기 전의 잠정 수치입니다.",
    "各条件已完成的区组数；全部完成后显示与基线之比。尚未排除噪声，为暂定数值。",
];

/// The number of connections of a cell; absent if it is not one of messages over connections.
fn connections(view: &View<'_>, cell: &CellSoFar) -> Option<u32> {
    let spec = view.cell(&cell.cell_id)?;
    (spec.storage.is_none() && spec.orders.is_none()).then_some(spec.connections)
}

fn square(cell: Option<&CellSoFar>) -> Markup {
    let Some(cell) = cell else { return html! { td.void { "" } } };
    match cell.ratio {
        Some(ratio) => {
            let shade = (ratio.ln().abs() / FULL).min(1.0) * SHADE_MAX;
            html! { td style=(format!("--strength:{shade:.0}%")) { (format::ratio(Some(ratio))) } }
        }
        None if cell.blocks_done == cell.blocks => html! { td style="--strength:0%" { "✓" } },
        None if cell.blocks_done == 0 => html! { td.void style="--strength:0%" { "–" } },
        None => html! { td.open { (cell.blocks_done) "/" (cell.blocks) } },
    }
}
