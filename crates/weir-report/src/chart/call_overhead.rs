//! What system calls cost for a message, against the number of connections: how many there are, and their time on a
//! CPU. A line for each arm in each plot; cells that differ in more than connections have plots of their own.

use std::collections::BTreeMap;

use maud::Markup;
use weir_record::{evidence::ArmEvidence, overview, spec::CellSpec};

use super::levels::{Axis, Levels, Point, levels};
use crate::{
    format::{self, ABSENT},
    section::{Content, Plot, Section},
    table::Table,
    view::View,
    words::Word,
};

/// What is drawn of an arm in a cell.
#[derive(Clone, Copy)]
enum Figure {
    Calls,
    OnCpu,
}

impl Figure {
    fn of(self, arm: &ArmEvidence) -> f64 {
        match self {
            Self::Calls => arm.calls.iter().map(|call| call.count).sum(),
            Self::OnCpu => arm.calls.iter().map(|call| call.on_cpu_ns).sum(),
        }
    }

    fn title(self) -> Word {
        match self {
            Self::Calls => Word::CallCount,
            Self::OnCpu => Word::CallOnCpu,
        }
    }

    fn text(self) -> fn(f64) -> String {
        match self {
            Self::Calls => format::per_message,
            Self::OnCpu => format::nanos,
        }
    }

    fn tick(self) -> fn(f64) -> String {
        match self {
            Self::Calls => format::per_message,
            Self::OnCpu => format::nanos_tick,
        }
    }
}

/// Cells by rising connections, which differ in nothing else.
type Line<'v> = Vec<&'v CellSpec>;

/// The section, where the kernel's programs saw more than one number of connections.
pub(crate) fn call_overhead(view: &View<'_>) -> Content {
    let lines = lines(view);
    let is_alone = lines.len() == 1;
    Content::unless(lines.is_empty(), || Section {
        plots: lines.iter().flat_map(|(rest, cells)| plots(view, rest, cells, is_alone)).collect(),
        ..Section::new(Word::CallOverheadTitle, Word::CallOverheadHelp)
    })
}

/// Two beside each other.
fn plots(view: &View<'_>, rest: &str, cells: &Line<'_>, is_alone: bool) -> [Plot; 2] {
    let title = |figure: Figure| match view.word(figure.title()) {
        name if is_alone => name.to_owned(),
        name => format!("{name} · {}", rest.trim_start_matches('-')),
    };
    [(Figure::Calls, "calls"), (Figure::OnCpu, "time")].map(|(figure, key)| Plot {
        id: format!("call-overhead-{key}{rest}"),
        title: title(figure),
        image: draw(view, cells, figure),
        numbers: table(view, cells, figure),
        is_table: false,
        is_half: true,
        is_folded: false,
    })
}

/// Of each set of cells that differ in connections alone those in which some arm's calls were seen, if they are
/// several; by what they have in common.
fn lines<'v>(view: &View<'v>) -> BTreeMap<String, Line<'v>> {
    let result = view.result;
    let is_seen =
        |cell: &&CellSpec| result.evidence.iter().any(|arm| arm.cell_id == cell.id && !arm.calls.is_empty());
    let mut lines: BTreeMap<String, Line<'v>> = BTreeMap::new();
    for cell in result.spec.cells.iter().filter(is_seen) {
        lines.entry(without_connections(cell)).or_default().push(cell);
    }
    for line in lines.values_mut() {
        line.sort_by_key(|cell| cell.connections);
        line.dedup_by_key(|cell| cell.connections);
    }
    lines.retain(|_, line| line.len() > 1);
    lines
}

/// What a cell's identifier says beside its connections, which it begins with.
fn without_connections(cell: &CellSpec) -> String {
    let connections = format!("c{}", cell.connections);
    cell.id.strip_prefix(&connections).unwrap_or(&cell.id).to_owned()
}

fn seen<'v>(view: &View<'v>, cell: &CellSpec, arm: &str) -> Option<&'v ArmEvidence> {
    let evidence = &view.result.evidence;
    evidence.iter().find(|it| it.cell_id == cell.id && it.arm == arm && !it.calls.is_empty())
}

fn arms<'v>(view: &View<'v>) -> Vec<&'v str> {
    view.result.spec.arms.iter().map(|arm| arm.name.as_str()).collect()
}

fn draw(view: &View<'_>, cells: &Line<'_>, figure: Figure) -> Markup {
    let of_cell = |cell: &&CellSpec| -> Vec<Point> {
        let level = u64::from(cell.connections);
        let of_arm = |arm: &&str| {
            let value = figure.of(seen(view, cell, arm)?);
            let figure = overview::Figure { value, interval: None };
            Some(Point { arm: (*arm).to_owned(), level, figure, is_bound: false })
        };
        arms(view).iter().filter_map(of_arm).collect()
    };
    let shown = Levels {
        factor: view.word(Word::MapConnections),
        points: cells.iter().flat_map(of_cell).collect(),
        raw: Vec::new(),
        axis: Axis::Factors,
        text: figure.text(),
        tick: figure.tick(),
        ideal: None,
    };
    levels(view, &shown)
}

/// A row for each cell, a column for each arm; a time with its share of the server CPU.
fn table(view: &View<'_>, cells: &Line<'_>, figure: Figure) -> Table {
    let arms = arms(view);
    let mut head = vec![view.word(Word::Cell).to_owned()];
    head.extend(arms.iter().map(|arm| format!("{arm} · {}", view.word(figure.title()))));
    let row = |cell: &&CellSpec| {
        let of_arm = |name: &&str| {
            let Some(arm) = seen(view, cell, name) else { return ABSENT.to_owned() };
            let (value, text) = (figure.of(arm), figure.text());
            match figure {
                Figure::Calls => text(value),
                Figure::OnCpu => format!("{} ({})", text(value), format::percent(arm.share(value))),
            }
        };
        std::iter::once(view.cell_label(&cell.id)).chain(arms.iter().map(of_arm)).collect()
    };
    Table::with_head(head, 1, cells.iter().map(row).collect())
}
