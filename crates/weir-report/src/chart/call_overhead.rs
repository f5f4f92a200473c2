//! Cost of system calls per message, against the number of connections: their number, and their time on a CPU. A line
//! for each arm in each plot; cells that differ in more than connections have separate plots.

use std::collections::BTreeMap;

use maud::Markup;
use weir_record::{evidence::ArmEvidence, figure::Figure as Value, published::TableName, spec::CellSpec};

use super::levels::{Axis, Levels, Point, levels};
use crate::{
    cited::Sentence,
    format::{self, ABSENT},
    maps, overview,
    section::{Content, Plot, Section},
    table::Table,
    view::View,
    words::Word,
};

/// The drawn figure of an arm in a cell.
#[derive(Clone, Copy)]
enum Figure {
    Calls,
    OnCpu,
}

impl Figure {
    const ALL: [Self; 2] = [Self::Calls, Self::OnCpu];

    /// Over rounds; for evidence without rounds, over all slices together.
    fn of(self, arm: &ArmEvidence) -> Value {
        let over_rounds = arm.all_calls.as_ref().map(|all| match self {
            Self::Calls => all.count.mean,
            Self::OnCpu => all.on_cpu_ns.mean,
        });
        over_rounds.unwrap_or_else(|| Value { value: self.of_all_slices(arm), interval: None })
    }

    fn of_all_slices(self, arm: &ArmEvidence) -> f64 {
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

/// Cells that differ only in connections, in ascending order.
type Line<'v> = Vec<&'v CellSpec>;

/// The section, if the kernel's programs observed more than one number of connections.
pub(crate) fn call_overhead(view: &View<'_>) -> Content {
    let lines = lines(view);
    let is_alone = lines.len() == 1;
    Content::unless(lines.is_empty(), || {
        let plots: Vec<Plot> =
            lines.iter().flat_map(|(rest, cells)| plots(view, rest, cells, is_alone)).collect();
        Section {
            sentences: sentences(view, &lines, &plots),
            plots,
            ..Section::new(Word::CallOverheadTitle, Word::CallOverheadHelp)
        }
    })
}

/// Published statements about it, why some marks have no interval, and why some intervals are not shown.
fn sentences(view: &View<'_>, lines: &BTreeMap<String, Line<'_>>, plots: &[Plot]) -> Vec<Sentence> {
    let is_bare = |arm: &ArmEvidence| Figure::ALL.iter().any(|it| it.of(arm).interval.is_none());
    let has_bare =
        |cell: &CellSpec| arms(view).into_iter().filter_map(|arm| seen(view, cell, arm)).any(is_bare);
    let is_any_bare = lines.values().flatten().any(|cell| has_bare(cell));
    let bare = is_any_bare.then(|| Sentence::from(view.language.choose(BARE).to_owned()));
    let texts = plots.iter().flat_map(|plot| plot.numbers.rows.iter().flatten());
    let theirs = overview::published(view, TableName::SystemCallOverhead);
    let as_text = theirs.map(|it| Sentence::from(overview::published_as_text(view, it)));
    as_text.into_iter().chain(bare).chain(overview::open_intervals(view, texts)).collect()
}

const BARE: [&str; 3] = [
    "A mark without an interval is of fewer than three rounds that the kernel's programs saw, or of a record that \
     does not have them one by one.",
    "신뢰구간이 없는 점은 커널 프로그램이 관찰한 라운드가 3회 미만이거나, 기록에 라운드별 값이 없는 것입니다.",
    "没有置信区间的点：内核程序观测的轮次不足三轮，或记录中没有各轮的数值。",
];

/// Two plots next to each other.
fn plots(view: &View<'_>, rest: &str, cells: &Line<'_>, is_alone: bool) -> [Plot; 2] {
    [(Figure::Calls, "calls"), (Figure::OnCpu, "time")].map(|(figure, key)| Plot {
        id: format!("call-overhead-{key}{rest}"),
        title: title(view, cells, is_alone, figure),
        image: draw(view, cells, figure),
        numbers: table(view, cells, figure),
        is_table: false,
        is_half: true,
        is_folded: false,
    })
}

fn title(view: &View<'_>, cells: &Line<'_>, is_alone: bool, figure: Figure) -> String {
    match view.word(figure.title()) {
        name if is_alone => name.to_owned(),
        name => format!("{name} · {}", in_common(view, cells)),
    }
}

/// The part that the labels of all these cells share.
fn in_common(view: &View<'_>, cells: &Line<'_>) -> String {
    maps::in_all(view, &cells.iter().map(|cell| cell.id.as_str()).collect()).join(" · ")
}

/// For each set of cells that differ only in connections, those in which some arm's calls were observed, if there are
/// several; keyed by what they share.
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

/// A cell's identifier without its connections, with which it begins.
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

/// The plots with their titles, for images that stand alone.
pub(crate) fn call_levels<'v>(view: &View<'v>) -> Vec<(String, Levels<'v>)> {
    let lines = lines(view);
    let of_line = |cells: &Line<'v>| {
        Figure::ALL.map(|figure| (title(view, cells, lines.len() == 1, figure), shown(view, cells, figure)))
    };
    lines.values().flat_map(of_line).collect()
}

fn draw(view: &View<'_>, cells: &Line<'_>, figure: Figure) -> Markup {
    levels(view, &shown(view, cells, figure))
}

fn shown<'v>(view: &View<'v>, cells: &Line<'_>, figure: Figure) -> Levels<'v> {
    let of_cell = |cell: &&CellSpec| -> Vec<Point> {
        let level = u64::from(cell.connections);
        let of_arm = |arm: &&str| {
            let figure = figure.of(seen(view, cell, arm)?);
            Some(Point { arm: (*arm).to_owned(), level, figure, is_bound: false })
        };
        arms(view).iter().filter_map(of_arm).collect()
    };
    Levels {
        factor: view.word(Word::MapConnections),
        levels: cells.iter().map(|cell| u64::from(cell.connections)).collect(),
        points: cells.iter().flat_map(of_cell).collect(),
        beside: Vec::new(),
        raw: Vec::new(),
        axis: Axis::Factors,
        text: figure.text(),
        tick: figure.tick(),
        ideal: None,
    }
}

/// A row for each cell, a column for each arm; a time with its share of the server CPU.
fn table(view: &View<'_>, cells: &Line<'_>, figure: Figure) -> Table {
    let arms = arms(view);
    let mut head = vec![view.word(Word::Cell).to_owned()];
    head.extend(arms.iter().map(|arm| format!("{arm} · {}", view.word(figure.title()))));
    let row = |cell: &&CellSpec| {
        let of_arm = |name: &&str| {
            let Some(arm) = seen(view, cell, name) else { return ABSENT.to_owned() };
            let found = figure.of(arm);
            let text = overview::figure(Some(found), figure.text());
            match figure {
                Figure::Calls => text,
                Figure::OnCpu => format!("{text} ({})", format::percent(arm.share(found.value))),
            }
        };
        std::iter::once(view.cell_label(&cell.id)).chain(arms.iter().map(of_arm)).collect()
    };
    Table::with_head(head, 1, cells.iter().map(row).collect())
}
