//! What system calls cost for a message, against the number of connections.

use std::collections::BTreeSet;

use weir_record::{evidence::ArmEvidence, spec::CellSpec};

use crate::{
    format::{self, ABSENT},
    section::{Content, Section},
    table::Table,
    view::View,
    words::Word,
};

/// The section, where the kernel's programs saw more than one number of connections.
pub(crate) fn section(view: &View<'_>) -> Content {
    let cells = cells(view);
    let levels: BTreeSet<u32> = cells.iter().map(|cell| cell.connections).collect();
    Content::unless(levels.len() < 2, || {
        Section::of_table(Word::CallOverheadTitle, Word::CallOverheadHelp, table(view, &cells))
    })
}

/// Cells in which some arm's calls were seen, by rising connections.
fn cells<'v>(view: &View<'v>) -> Vec<&'v CellSpec> {
    let result = view.result;
    let is_seen =
        |cell: &&CellSpec| result.evidence.iter().any(|arm| arm.cell_id == cell.id && !arm.calls.is_empty());
    let mut cells: Vec<&CellSpec> = result.spec.cells.iter().filter(is_seen).collect();
    cells.sort_by_key(|cell| cell.connections);
    cells
}

/// A row for each cell, a pair of columns for each arm: calls, and their time on a CPU with its share.
fn table(view: &View<'_>, cells: &[&CellSpec]) -> Table {
    let arms: Vec<&str> = view.result.spec.arms.iter().map(|arm| arm.name.as_str()).collect();
    let (calls, on_cpu) = (view.word(Word::CallCount), view.word(Word::CallOnCpu));
    let mut head = vec![view.word(Word::Cell).to_owned()];
    head.extend(arms.iter().flat_map(|arm| [format!("{arm} · {calls}"), format!("{arm} · {on_cpu}")]));
    let row = |cell: &&CellSpec| {
        let of_arm = |name: &&str| {
            let seen = |it: &&ArmEvidence| it.cell_id == cell.id && it.arm == *name && !it.calls.is_empty();
            let Some(arm) = view.result.evidence.iter().find(seen) else {
                return [ABSENT; 2].map(str::to_owned);
            };
            let count = arm.calls.iter().map(|call| call.count).sum();
            let on_cpu_ns = arm.calls.iter().map(|call| call.on_cpu_ns).sum();
            let share = format::percent(arm.share(on_cpu_ns));
            [format::per_message(count), format!("{} ({share})", format::nanos(on_cpu_ns))]
        };
        std::iter::once(view.cell_label(&cell.id)).chain(arms.iter().flat_map(of_arm)).collect()
    };
    Table::with_head(head, 1, cells.iter().map(row).collect())
}
