//! What distinguishes a map of a study from its others: cells that differ in more than levels are on separate maps.

use std::collections::{BTreeMap, BTreeSet};

use weir_record::spec::LoadMode;

use crate::{format, language::localized, view::View};

/// An arm on one of its maps: `uring`, or `uring · HTML page 592 B` if there are several.
pub(crate) fn arm(view: &View<'_>, arm: &str, map: u32) -> String {
    apart(view, map).map_or_else(|| arm.to_owned(), |apart| format!("{arm} · {apart}"))
}

/// The label part that all cells of the map share and those of other maps lack, or its number; `None` for a single
/// map.
pub(crate) fn apart(view: &View<'_>, map: u32) -> Option<String> {
    let mut maps: BTreeMap<u32, BTreeSet<&str>> = BTreeMap::new();
    for grid in &view.result.grids {
        maps.entry(grid.map).or_default().extend(grid.cells.iter().map(|cell| cell.cell_id.as_str()));
    }
    for overview in &view.result.overviews {
        maps.entry(overview.map).or_default().extend(overview.cells.iter().map(String::as_str));
    }
    if maps.len() < 2 {
        return None;
    }
    let parts = |cells: &BTreeSet<&str>| load(view, cells).into_iter().chain(in_all(view, cells)).collect();
    let mut shared: BTreeMap<u32, Vec<String>> =
        maps.into_iter().map(|(number, cells)| (number, parts(&cells))).collect();
    let mut own = shared.remove(&map)?;
    own.retain(|part| !shared.values().all(|other| other.contains(part)));
    let number = map + 1;
    Some(match own.is_empty() {
        true => localized!(view.language, "map {number}", "히트맵 {number}", "热力图 {number}"),
        false => own.join(" · "),
    })
}

/// The load: at full speed for each arm, or at one rate for all arms, which may differ between cells.
fn load(view: &View<'_>, cells: &BTreeSet<&str>) -> Option<String> {
    match cells.first().and_then(|cell| view.cell(cell))?.load.without_rate() {
        LoadMode::Closed => Some(view.language.choose(["closed loop", "폐쇄형 부하", "闭环"]).to_owned()),
        LoadMode::OpenShare { share, .. } => {
            let share = format::whole_percent(share);
            Some(localized!(
                view.language,
                "at equal rates, {share} of what the slowest can do",
                "같은 요청률, 가장 느린 대상 처리 능력의 {share}",
                "相同请求速率，为最慢方案处理能力的 {share}",
            ))
        }
        LoadMode::Open { .. } => None,
    }
}

/// The label parts that all cells share.
pub(crate) fn in_all(view: &View<'_>, cells: &BTreeSet<&str>) -> Vec<String> {
    let parts = |cell: &&str| view.cell_label(cell).split(" · ").map(str::to_owned).collect::<Vec<_>>();
    let shared = |one: Vec<String>, other: Vec<String>| {
        one.into_iter().filter(|part| other.contains(part)).collect::<Vec<_>>()
    };
    cells.iter().map(parts).reduce(shared).unwrap_or_default()
}
