//! The map of a study: a table with a field for each cell, shaded by how far the arm is ahead or behind, hatched
//! where no difference was found, grey where no comparison is valid, and lighter where threads share CPUs. Signs and
//! marks show the same.

use std::collections::BTreeSet;

use maud::{Markup, html};
use weir_record::{
    figure::Figure,
    grid::{Crossing, Difference, Grid, GridCell, GridFactor, Interaction, Marginal},
    metric::{Better, Family, Metric},
};

use super::levels::{Axis, Levels, Point, Raw, legend, levels as by_level, without_legend};
use crate::{
    cited::Sentence,
    format, html,
    language::localized,
    maps, metrics,
    section::{Content, Plot, Section},
    table::{Drawing, Table},
    view::View,
    words::Word,
};

/// The mark of a cell whose arms ran at rates that the generator set.
const LIMITED: &str = "† ";

/// A difference of this size has the full colour.
const FULL: f64 = 0.3;

/// Remaining part of the colour where threads share CPUs.
const OVER: f64 = 0.4;

/// The section: a map for each arm and metric, sentences about crossings, and the means by level.
pub(crate) fn map(view: &View<'_>) -> Content {
    let grids = &view.result.grids;
    Content::unless(grids.is_empty(), || {
        let crossed = grids.iter().flat_map(|grid| of_grid(view, grid));
        let reversed = grids.iter().flat_map(|grid| reversals(view, grid));
        let means = grids.iter().flat_map(|grid| grid.marginals.iter().map(|it| mean(view, grid, it)));
        let head =
            [Word::Arm, Word::Metric, Word::MapLevel, Word::MapReversed, Word::MapMean, Word::MapCells];
        let means = Table::new(view, &head[..4], &head[4..], means.collect());
        Section {
            sentences: crossed.chain(interactions(view)).chain(reversed).chain(limited(view)).collect(),
            plots: together(grids).iter().map(|grids| plot(view, grids)).collect(),
            tables: if means.rows.is_empty() { Vec::new() } else { vec![means] },
            ..Section::new(Word::MapTitle, Word::MapHelp)
        }
    })
}

/// The maps of a metric alone: adjacent cells with the same result are outlined.
pub(crate) fn regions(view: &View<'_>, metric: Metric) -> Vec<Plot> {
    let grids: Vec<Grid> = view.result.grids.iter().filter(|grid| grid.metric == metric).cloned().collect();
    together(&grids).iter().map(|grids| Plot { image: draw(view, grids), ..plot(view, grids) }).collect()
}

/// Where arms cross the baseline by this metric, in sentences.
pub(crate) fn crossings(view: &View<'_>, metric: Metric) -> Vec<Sentence> {
    let own = view.result.grids.iter().filter(|grid| grid.metric == metric);
    own.flat_map(|grid| of_grid(view, grid)).collect()
}

/// Lines of the map that cross at the same displayed place share a sentence.
fn of_grid(view: &View<'_>, grid: &Grid) -> Vec<Sentence> {
    let mut alike: Vec<Vec<&Crossing>> = Vec::new();
    let key = |it: &Crossing| (place(it), it.beyond, it.cells_left_out);
    for it in &grid.crossings {
        match alike.iter_mut().find(|own| key(own[0]) == key(it)) {
            Some(own) => own.push(it),
            None => alike.push(vec![it]),
        }
    }
    let sentence = |own: &Vec<&Crossing>| Sentence {
        text: crossed(view, grid, own),
        cells: own.iter().flat_map(|it| beside(grid, it)).collect(),
    };
    alike.iter().map(sentence).collect()
}

/// The cells on both sides of a crossing.
fn beside(grid: &Grid, crossing: &Crossing) -> Vec<String> {
    let Some(place) = grid.factors.iter().position(|it| *it == GridFactor::Connections) else {
        return Vec::new();
    };
    let rest = |cell: &GridCell| {
        let others = cell.levels.iter().enumerate().filter(|(index, _)| *index != place);
        others.map(|(_, level)| *level).collect::<Vec<u64>>()
    };
    let own = grid.cells.iter().find(|cell| cell.cell_id == crossing.cell_id).map(rest);
    let is_sound =
        |cell: &&GridCell| !matches!(cell.difference, Difference::GeneratorLimited | Difference::Invalid);
    let line = || grid.cells.iter().filter(|cell| Some(rest(cell)) == own).filter(is_sound);
    let is_below = |cell: &&GridCell| cell.levels[place] as f64 <= crossing.connections;
    let below = line().filter(is_below).max_by_key(|cell| cell.levels[place]);
    let above = line().filter(|cell| !is_below(cell)).min_by_key(|cell| cell.levels[place]);
    below.into_iter().chain(above).map(|cell| cell.cell_id.clone()).collect()
}

/// The arms of each map: arms with one row each share a map.
fn together(grids: &[Grid]) -> Vec<Vec<&Grid>> {
    let mut all: Vec<Vec<&Grid>> = Vec::new();
    for grid in grids {
        let has_one_row = |it: &Grid| it.factors.len() == 1;
        let is_alike = |it: &Grid| (it.map, it.metric) == (grid.map, grid.metric) && has_one_row(it);
        match all.iter_mut().find(|own| has_one_row(grid) && is_alike(own[0])) {
            Some(own) => own.push(grid),
            None => all.push(vec![grid]),
        }
    }
    all
}

/// A map of these grids, which all have the same metric.
fn plot(view: &View<'_>, grids: &[&Grid]) -> Plot {
    let first = grids[0];
    let (metric, key) = (metrics::name(view, first.metric), first.metric.row().key);
    let (id, title) = match grids {
        [one] => {
            let arm = maps::arm(view, &view.compared(&one.arm, &one.baseline), one.map);
            (format!("map-{}-{}-{key}", one.map + 1, one.arm), format!("{arm} · {metric}"))
        }
        _ => (format!("map-{}-{key}", first.map + 1), maps::arm(view, &metric, first.map)),
    };
    Plot {
        id,
        title,
        image: image(view, grids),
        numbers: numbers(view, grids),
        is_table: true,
        is_half: false,
        is_folded: false,
    }
}

/// The map, its rows as charts, and its numbers: the map has no room for intervals and p-values.
fn image(view: &View<'_>, grids: &[&Grid]) -> Markup {
    let rows = multiples(view, grids);
    let (open, folded) = rows.split_at(rows.len().min(OPEN_MAX));
    let further = folded.len();
    html! {
        (draw(view, grids))
        @if !open.is_empty() {
            div.pair { @for row in open { (html::figure(row)) } }
            p.hint { (view.language.choose(MULTIPLES)) }
        }
        @if further > 0 {
            details {
                summary {
                    (localized!(view.language, "{further} more rows as charts, without the rounds", "나머지 {further}개 행의 차트(라운드 점 없음)", "其余 {further} 行的图表（不含各轮的点）"))
                }
                (legend(view, &grids.iter().map(|grid| grid.arm.as_str()).collect::<Vec<_>>()))
                p.hint { (factor(view, grids[0].factors[0])) " →" }
                div.pair { @for row in folded { (html::figure(row)) } }
            }
        }
        details {
            summary { (view.word(Word::NumbersInTable)) }
            (html::table(view, &numbers(view, grids)))
        }
    }
}

const MULTIPLES: [&str; 3] = [
    "Ratios to the baseline with their 99 % intervals; each dot is a round. Cells that may not be compared are left out.",
    "기준 대비 비율과 99 % 신뢰구간입니다. 점 하나가 라운드 하나입니다. 비교할 수 없는 조건은 뺐습니다.",
    "与基线之比及其 99 % 置信区间，每个点是一轮。不可比较的条件未画出。",
];

/// Most rows of a map with open charts; those of further rows are folded.
const OPEN_MAX: usize = 8;

/// A row of a map: its index, its levels except the first, and its ratios with their rounds.
type Row<'a> = (usize, &'a [u64], (Vec<Point>, Vec<Raw>));

/// Each row of a map of CPU as a chart: the ratio at every level of the first factor, with its interval and its
/// rounds.
fn multiples(view: &View<'_>, grids: &[&Grid]) -> Vec<Drawing> {
    let first = grids[0];
    if first.metric.row().family != Family::Cpu {
        return Vec::new();
    }
    let rows: BTreeSet<&[u64]> =
        grids.iter().flat_map(|grid| &grid.cells).map(|cell| &cell.levels[1..]).collect();
    let key =
        format!("rounds-{}-{}", first.map + 1, if grids.len() == 1 { first.arm.as_str() } else { "all" });
    let is_line = |(_, _, (points, _)): &Row<'_>| {
        points.iter().map(|point| point.level).collect::<BTreeSet<u64>>().len() > 1
    };
    let lines =
        rows.iter().enumerate().map(|(place, row)| (place, *row, of_row(view, grids, row))).filter(is_line);
    let lines: Vec<Row<'_>> = lines.collect();
    let columns: BTreeSet<u64> =
        grids.iter().flat_map(|grid| &grid.cells).map(|cell| cell.levels[0]).collect();
    let of_points = lines.iter().flat_map(|(_, _, (points, _))| points);
    let all: Vec<Figure> = of_points.map(|point| point.figure).collect();
    let chart = |(index, (place, row, (points, raw))): (usize, Row<'_>)| {
        let is_open = index < OPEN_MAX;
        // Rarely opened charts should not make the page much longer.
        let raw = if is_open { raw } else { Vec::new() };
        let shown = Levels {
            factor: if is_open { factor(view, first.factors[0]) } else { "" },
            levels: columns.iter().copied().collect(),
            points,
            beside: all.clone(),
            raw,
            axis: Axis::Ratios,
            text: |ratio| format::ratio(Some(ratio)),
            tick: ratio_tick,
            ideal: Some(1.0),
        };
        let title = match levels(view, &first.factors[1..], row) {
            none if none.is_empty() => metrics::name(view, first.metric),
            levels => levels,
        };
        let image = if is_open { by_level(view, &shown) } else { without_legend(view, &shown) };
        Drawing { id: format!("{key}-{place}"), title, image }
    };
    lines.into_iter().enumerate().map(chart).collect()
}

/// Valid ratios of a row, and their rounds.
fn of_row(view: &View<'_>, grids: &[&Grid], row: &[u64]) -> (Vec<Point>, Vec<Raw>) {
    let (mut points, mut raw) = (Vec::new(), Vec::new());
    for grid in grids {
        let is_sound = |cell: &&GridCell| {
            cell.levels[1..] == *row
                && !matches!(cell.difference, Difference::GeneratorLimited | Difference::Invalid)
        };
        for cell in grid.cells.iter().filter(is_sound) {
            let Some(ratio) = cell.ratio else { continue };
            let (arm, level) = (grid.arm.clone(), cell.levels[0]);
            let compared = view.pair(&cell.cell_id, (&grid.arm, &grid.baseline), grid.metric);
            let units = compared.map_or_else(Vec::new, |it| it.shown_values());
            raw.push(Raw { arm: arm.clone(), level, units });
            let figure = Figure { value: ratio, interval: cell.interval };
            points.push(Point { arm, level, figure, is_bound: false });
        }
    }
    (points, raw)
}

/// `0.95`: a tick of an axis around one.
fn ratio_tick(ratio: f64) -> String {
    ((ratio * 1e3).round() / 1e3).to_string()
}

/// Columns are the levels of the first factor, rows those of the others, or the arms.
fn draw(view: &View<'_>, grids: &[&Grid]) -> Markup {
    let columns: BTreeSet<u64> =
        grids.iter().flat_map(|grid| &grid.cells).map(|cell| cell.levels[0]).collect();
    let rows_of = |grid: &Grid| -> BTreeSet<Vec<u64>> {
        grid.cells.iter().map(|cell| cell.levels[1..].to_vec()).collect()
    };
    let rows = grids.iter().flat_map(|grid| rows_of(grid).into_iter().map(move |row| (*grid, row)));
    let rows: Vec<(&Grid, Vec<u64>)> = rows.collect();
    let columns: Vec<u64> = columns.into_iter().collect();
    let lines = Lines { rows: &rows, columns: &columns };
    html! {
        (html::scrolled(view.language, &html! { table.map style=(format!("--columns:{}", columns.len())) {
            thead { tr {
                th scope="col" { (factor(view, grids[0].factors[0])) }
                @for column in &columns { th scope="col" { (format::count(*column)) } }
            } }
            tbody { @for (down, (grid, row)) in rows.iter().enumerate() { tr {
                th scope="row" {
                    @if row.is_empty() { (view.compared(&grid.arm, &grid.baseline)) }
                    @else { (levels(view, &grid.factors[1..], row)) }
                }
                @for across in 0..columns.len() { (square(view, grid, &lines, (down, across))) }
            } } }
        } }))
    }
}

/// The cells of a map by position.
struct Lines<'g> {
    rows: &'g [(&'g Grid, Vec<u64>)],
    columns: &'g [u64],
}

impl<'g> Lines<'g> {
    fn at(&self, (down, across): (usize, usize)) -> Option<&'g GridCell> {
        let (grid, row) = self.rows.get(down)?;
        cell_at(grid, *self.columns.get(across)?, row)
    }

    /// Sides with another or no result on their other side: the outline of a region.
    fn edges(&self, (down, across): (usize, usize)) -> [(&'static str, bool); 4] {
        let own = self.at((down, across)).map(|cell| cell.difference);
        let differs = |place: Option<(usize, usize)>| {
            let other = place.and_then(|place| self.at(place)).map(|cell| cell.difference);
            own.is_some() && own != other
        };
        // Rows of several arms are not adjacent to each other.
        let rows_of_arms = self.rows.iter().any(|(_, row)| row.is_empty());
        let down_to = |down: Option<usize>| down.filter(|_| !rows_of_arms).map(|down| (down, across));
        [
            ("edge-left", differs(across.checked_sub(1).map(|across| (down, across)))),
            ("edge-right", differs(Some((down, across + 1)))),
            ("edge-top", differs(down_to(down.checked_sub(1)))),
            ("edge-bottom", differs(down_to(Some(down + 1)))),
        ]
    }
}

fn cell_at<'g>(grid: &'g Grid, column: u64, row: &[u64]) -> Option<&'g GridCell> {
    grid.cells.iter().find(|cell| cell.levels[0] == column && &cell.levels[1..] == row)
}

/// Levels of several factors: `1 worker · 4 KiB`.
pub(crate) fn levels(view: &View<'_>, factors: &[GridFactor], levels: &[u64]) -> String {
    let parts = factors.iter().zip(levels).map(|(factor, it)| level(view, *factor, *it));
    parts.collect::<Vec<_>>().join(" · ")
}

/// A level of a factor, with its unit.
pub(crate) fn level(view: &View<'_>, factor: GridFactor, level: u64) -> String {
    let (number, language) = (format::count(level), view.language);
    match factor {
        GridFactor::Connections => view.connections(u32::try_from(level).unwrap_or(u32::MAX)),
        GridFactor::Workers if level == 1 => localized!(language, "1 worker", "워커 1개", "1 个工作线程"),
        GridFactor::Workers => {
            localized!(language, "{number} workers", "워커 {number}개", "{number} 个工作线程")
        }
        GridFactor::Depth => {
            localized!(
                language,
                "{number} in flight each",
                "연결당 동시 {number}건",
                "每连接在途 {number} 条"
            )
        }
        GridFactor::MessageBytes => format::bytes(level),
        GridFactor::ServerCpus if level == 1 => {
            localized!(language, "1 server CPU", "서버 CPU 1개", "1 个服务器 CPU")
        }
        GridFactor::ServerCpus => {
            localized!(language, "{number} server CPUs", "서버 CPU {number}개", "{number} 个服务器 CPU")
        }
    }
}

fn factor(view: &View<'_>, factor: GridFactor) -> &'static str {
    view.word(match factor {
        GridFactor::Connections => Word::MapConnections,
        GridFactor::Workers => Word::MapWorkers,
        GridFactor::Depth => Word::MapDepth,
        GridFactor::MessageBytes => Word::MapMessageBytes,
        GridFactor::ServerCpus => Word::MapServerCpus,
    })
}

fn square(view: &View<'_>, grid: &Grid, lines: &Lines<'_>, place: (usize, usize)) -> Markup {
    let Some(cell) = lines.at(place) else { return html! { td {} } };
    let edges = lines.edges(place).into_iter().filter(|(_, is_there)| *is_there);
    let edges = edges.map(|(edge, _)| format!(" {edge}")).collect::<String>();
    let is_over = view.result.oversubscribed.iter().any(|it| it.cell_id == cell.cell_id);
    let (class, word) = (tone(grid, cell.difference), difference_word(cell.difference));
    let effect = cell.ratio.map_or(0.0, |ratio| ratio - 1.0);
    // Cells with more threads than CPUs support weaker conclusions, and are lighter.
    let full = if is_over { OVER } else { 1.0 };
    let strength = match cell.difference {
        Difference::Less | Difference::More => full * (12.0 + 48.0 * (effect.abs() / FULL).min(1.0)),
        Difference::Equivalent
        | Difference::Undetected
        | Difference::NotBorneOut
        | Difference::GeneratorLimited
        | Difference::Invalid
        | Difference::Unfinished => 0.0,
    };
    html! {
        td class=(format!("{class}{}{edges}", if is_over { " over" } else { "" })) style=(format!("--strength:{strength:.0}%")) title=(format!(
            "{} · {} · {}", view.cell_label(&cell.cell_id), view.word(word),
            format::ratio_and_interval(cell.ratio, cell.interval)
        )) {
            span.way { (mark(cell.difference)) } (change(cell))
            @if is_over { sup { "*" } }
            @if cell.difference == Difference::GeneratorLimited { small { (view.word(Word::MapLimitedShort)) } }
        }
    }
}

/// Whether it is an improvement for the metric.
fn tone(grid: &Grid, difference: Difference) -> &'static str {
    let is_good = match difference {
        Difference::Less => grid.metric.row().better == Better::Smaller,
        Difference::More => grid.metric.row().better == Better::Larger,
        Difference::Equivalent | Difference::Undetected | Difference::NotBorneOut => return "open",
        Difference::GeneratorLimited => return "limited",
        Difference::Invalid => return "invalid",
        Difference::Unfinished => return "void",
    };
    if is_good { "good" } else { "bad" }
}

/// A cell's result in a word.
pub(crate) fn difference_word(difference: Difference) -> Word {
    match difference {
        Difference::Less => Word::MapLess,
        Difference::More => Word::MapMore,
        Difference::Equivalent => Word::Equivalent,
        Difference::Undetected => Word::MapUndetected,
        Difference::NotBorneOut => Word::MapNotBorneOut,
        Difference::GeneratorLimited => Word::MapLimited,
        Difference::Invalid => Word::MapInvalid,
        Difference::Unfinished => Word::MapUnfinished,
    }
}

fn mark(difference: Difference) -> &'static str {
    match difference {
        Difference::Less => "▼ ",
        Difference::More => "▲ ",
        Difference::Equivalent => "= ",
        Difference::Undetected => "≈ ",
        Difference::NotBorneOut => "? ",
        Difference::GeneratorLimited => LIMITED,
        Difference::Invalid => "",
        Difference::Unfinished => "… ",
    }
}

fn change(cell: &GridCell) -> String {
    let Some(ratio) = cell.ratio else { return format::ABSENT.to_owned() };
    // A printed zero has no sign.
    let effect = Some(ratio - 1.0).filter(|effect| effect.abs() >= 0.0005).unwrap_or(0.0);
    let sign = if effect > 0.0 { "+" } else { "" };
    format!("{sign}{}", format::percent(effect))
}

fn numbers(view: &View<'_>, grids: &[&Grid]) -> Table {
    let head = [Word::Arm, Word::Cell, Word::MapDifference];
    // A single arm is in the title.
    let left_out = usize::from(grids.len() == 1);
    let row = |grid: &Grid, cell: &GridCell| {
        let all = [
            view.compared(&grid.arm, &grid.baseline),
            view.cell_label(&cell.cell_id),
            view.word(difference_word(cell.difference)).to_owned(),
            format::ratio_and_interval(cell.ratio, cell.interval),
            format::probability(cell.p_value_adjusted),
        ];
        all.into_iter().skip(left_out).collect()
    };
    let rows = grids.iter().flat_map(|grid| grid.cells.iter().map(|cell| row(grid, cell))).collect();
    Table::new(view, &head[left_out..], &[Word::MapRatio, Word::MapPValue], rows)
}

fn mean(view: &View<'_>, grid: &Grid, marginal: &Marginal) -> Vec<String> {
    let reversed: Vec<String> = marginal.reversed.iter().map(|cell| view.cell_label(cell)).collect();
    vec![
        maps::arm(view, &grid.arm, grid.map),
        metrics::name(view, grid.metric),
        level(view, marginal.factor, marginal.level),
        if reversed.is_empty() { format::ABSENT.to_owned() } else { reversed.join("; ") },
        format::ratio_and_interval(Some(marginal.ratio), marginal.interval),
        match marginal.cells_left_out {
            0 => format::count(u64::from(marginal.cells)),
            left_out => format!("{} (+{left_out} {})", marginal.cells, LIMITED.trim_end()),
        },
    ]
}

/// `30 [12, 70]`.
fn place(crossing: &Crossing) -> String {
    let number = |value: f64| {
        format::grouped(if value < 10.0 { (value * 10.0).round() / 10.0 } else { value.round() })
    };
    let end = |end: Option<f64>| end.map_or_else(|| format::ABSENT.to_owned(), number);
    format!("{} [{}, {}]", number(crossing.connections), end(crossing.low), end(crossing.high))
}

/// `uring needs less server CPU from about 30 [12, 70] connections on`, for lines with the same direction.
fn crossed(view: &View<'_>, grid: &Grid, alike: &[&Crossing]) -> String {
    let (language, crossing) = (view.language, alike[0]);
    let at = place(crossing);
    let line = |crossing: &&Crossing| {
        let own = grid.cells.iter().find(|it| it.cell_id == crossing.cell_id);
        let own = grid.factors.iter().zip(own.map_or(&[][..], |cell| &cell.levels));
        let others = own.filter(|(factor, _)| **factor != GridFactor::Connections);
        others.map(|(factor, it)| level(view, *factor, *it)).collect::<Vec<_>>().join(" · ")
    };
    let rest = match alike.iter().map(line).collect::<Vec<_>>().join("; ") {
        rest if rest.is_empty() => rest,
        rest => localized!(language, " ({rest})", " ({rest})", "（{rest}）"),
    };
    let left_out = match crossing.cells_left_out {
        0 => String::new(),
        cells => localized!(
            language,
            " On each line, cells marked † that were not used: {cells}.",
            " 각 선에서 † 표시가 있는 조건 {cells}개는 계산에서 뺐습니다.",
            "每条线上标有 † 的 {cells} 个条件未参与计算。",
        ),
    };
    let (arm, baseline) = (maps::arm(view, &grid.arm, grid.map), &grid.baseline);
    let metric = metrics::name(view, grid.metric);
    let text = match crossing.beyond {
        Difference::Less => localized!(
            language,
            "{metric}: from about {at} connections on, {arm} has less than {baseline}{rest}.",
            "{metric}: 연결이 약 {at}개부터는 {arm} 쪽이 {baseline} 쪽보다 적습니다{rest}.",
            "{metric}：从约 {at} 个连接起，{arm} 少于 {baseline}{rest}。",
        ),
        _ => localized!(
            language,
            "{metric}: from about {at} connections on, {arm} has more than {baseline}{rest}.",
            "{metric}: 연결이 약 {at}개부터는 {arm} 쪽이 {baseline} 쪽보다 많습니다{rest}.",
            "{metric}：从约 {at} 个连接起，{arm} 多于 {baseline}{rest}。",
        ),
    };
    text + &left_out
}

/// A metric, the number of limited cells and of all cells, the arms with these numbers, and the limited cells.
type Limited = ((Metric, u32, usize), Vec<String>, BTreeSet<String>);

/// How many cells were limited by the generator, and what follows. Arms with the same statement share a sentence.
fn limited(view: &View<'_>) -> Vec<Sentence> {
    let mut alike: Vec<Limited> = Vec::new();
    for grid in view.result.grids.iter().filter(|grid| grid.cells_left_out > 0) {
        let key = (grid.metric, grid.cells_left_out, grid.cells.len());
        let arm = maps::arm(view, &grid.arm, grid.map);
        let own = grid.cells.iter().filter(|cell| cell.difference == Difference::GeneratorLimited);
        let own = own.map(|cell| cell.cell_id.clone());
        match alike.iter_mut().find(|(other, ..)| *other == key) {
            Some((_, arms, cells)) => {
                arms.push(arm);
                cells.extend(own);
            }
            None => alike.push((key, vec![arm], own.collect())),
        }
    }
    let sentence = |(key, arms, cells): Limited| {
        let text = left_out(view, key, &arms.join(view.language.list()));
        Sentence { text, cells: cells.into_iter().collect() }
    };
    alike.into_iter().map(sentence).collect()
}

/// Why cells limited by the generator are in no mean: an equal rate may support a cost, but never a rate.
fn left_out(view: &View<'_>, (metric, limited, all): (Metric, u32, usize), arms: &str) -> String {
    let (family, metric) = (metric.row().family, metrics::name(view, metric));
    if family == Family::Rate {
        return localized!(
            view.language,
            "{metric} ({arms}): in {limited} of {all} cells (†) the generator was the limit, so that figures there are \
             lower bounds. Bounds have no ratio, and these cells are in no mean and no crossing.",
            "{metric} ({arms}): 조건 {all}개 중 {limited}개(†)는 부하 생성기가 한계여서 그 값이 하한입니다. 하한으로는 비율을 낼 수 없으므로 평균과 교차점 계산에서 \
            뺐습니다.",
            "{metric}（{arms}）：{all} 个条件中有 {limited} 个（†）受限于负载生成器，其数值只是下限。下限不能求比值，因此不计入均值与交叉点。",
        );
    }
    localized!(
        view.language,
        "{metric} ({arms}): in {limited} of {all} cells (†) the generator was the limit, and no cell with one rate for \
         both arms bears a difference out. What differs there may be the rate, so that these cells are in no mean and no \
         crossing.",
        "{metric} ({arms}): 조건 {all}개 중 {limited}개(†)는 부하 생성기가 한계였고, 두 대상의 요청률이 같은 조건 중에 차이를 뒷받침하는 것이 없습니다. 이 차이는 요청률 \
        때문일 수 있으므로 평균과 교차점 계산에서 뺐습니다.",
        "{metric}（{arms}）：{all} 个条件中有 {limited} 个（†）受限于负载生成器，且没有以相同请求速率比较双方的条件支持这一差异。该差异可能只是请求速率之差，因此不计入均值与交叉点。",
    )
}

/// Whether the effect of one factor depends on another, with the largest interaction.
fn interactions(view: &View<'_>) -> Vec<Sentence> {
    let sentence = |(grid, it): (&Grid, &Interaction)| {
        let (language, arm) = (view.language, maps::arm(view, &grid.arm, grid.map));
        let (metric, found) =
            (metrics::name(view, grid.metric), format::ratio_and_interval(Some(it.ratio), Some(it.interval)));
        let [one, other] = [it.factors.0, it.factors.1].map(|of| factor(view, of));
        let place = levels(view, &[it.factors.0, it.factors.1], &[it.levels.0, it.levels.1]);
        let (p_value, cells) = (format::probability(Some(it.p_value)), it.cells);
        let text = match it.p_value <= INTERACTION_P_MAX {
            true => localized!(
                language,
                "{arm}, {metric}: the effect of {one} depends on {other}, most at {place}, where the ratio is {found} times the \
                 product of their separate effects (p {p_value}, over {cells} cells): a mean over one of them does not stand for its \
                 cells.",
                "{arm}, {metric}: {one}의 효과가 {other}에 따라 다릅니다. 가장 뚜렷한 곳은 {place}이며, 비율이 두 요인의 효과를 곱한 값의 {found}배입니다(p \
                {p_value}, 조건 {cells}개). 어느 한쪽의 평균도 각 조건을 대표하지 못합니다.",
                "{arm}，{metric}：{one}的效应取决于{other}，在 {place} 处最明显，比值为两者各自效应之积的 {found} 倍（p {p_value}，{cells} \
                个条件）。对其中一个求平均不能代表各个条件。",
            ),
            false => localized!(
                language,
                "{arm}, {metric}: the effect of {one} was not found to depend on {other} ({cells} cells; the largest {found}, at \
                 {place}).",
                "{arm}, {metric}: {one}의 효과가 {other}에 따라 달라진다는 근거가 없습니다(조건 {cells}개, 최대 {found}, {place}).",
                "{arm}，{metric}：没有发现{one}的效应取决于{other}（{cells} 个条件；最大为 {found}，在 {place}）。",
            ),
        };
        Sentence { text, cells: at_levels(grid, it) }
    };
    let grids = view.result.grids.iter();
    grids.flat_map(|grid| grid.interactions.iter().map(move |it| (grid, it))).map(sentence).collect()
}

/// Largest p-value at which an interaction is reported; it is corrected for all tested ones.
const INTERACTION_P_MAX: f64 = 0.01;

/// Cells with the levels of an interaction.
fn at_levels(grid: &Grid, it: &Interaction) -> Vec<String> {
    let asked = [(it.factors.0, it.levels.0), (it.factors.1, it.levels.1)];
    let is_there = |cell: &&GridCell| {
        asked.iter().all(|(factor, level)| {
            let place = grid.factors.iter().position(|own| own == factor);
            place.and_then(|place| cell.levels.get(place)) == Some(level)
        })
    };
    grid.cells.iter().filter(is_there).map(|cell| cell.cell_id.clone()).collect()
}

/// Means that are contradicted by cells.
fn reversals(view: &View<'_>, grid: &Grid) -> Vec<Sentence> {
    let language = view.language;
    let sentence = |marginal: &Marginal| {
        let cells = marginal.reversed.iter().map(|cell| view.cell_label(cell)).collect::<Vec<_>>().join("; ");
        let (arm, metric) = (maps::arm(view, &grid.arm, grid.map), metrics::name(view, grid.metric));
        let level = level(view, marginal.factor, marginal.level);
        let text = localized!(
            language,
            "{arm}, {metric}: the mean over {level} hides cells that go the other way: {cells}.",
            "{arm}, {metric}: {level} 전체의 평균과 방향이 반대인 조건이 있습니다: {cells}.",
            "{arm}，{metric}：{level}的平均值掩盖了方向相反的条件：{cells}。",
        );
        Sentence { text, cells: marginal.reversed.clone() }
    };
    grid.marginals.iter().filter(|it| !it.reversed.is_empty()).map(sentence).collect()
}
