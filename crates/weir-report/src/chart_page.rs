//! The charts of document 000: in the report before their tables, and as separate pages that a document can embed in
//! a frame; the first chart fits into 400 pixels.

use maud::{Markup, PreEscaped, html};
use weir_record::{
    figure::Figure,
    overview::{BestCell, MeanRow, Overview, Quantity, ScalingMean, SuccessRow},
    published::TableName,
    study::StudyResult,
};

use crate::{
    answer,
    chart::{self, Axis, Levels, Point},
    cited::Sentence,
    display, format,
    html::{self, Theme, figure, table, themed_document},
    language::Language,
    maps, overview,
    section::{Content, Plot, Section},
    strace,
    table::{Drawing, Table},
    view::View,
    when,
    words::Word,
};

/// A chart of document 000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChartPage {
    /// Throughput by connections.
    Connections,
    /// Throughput by server threads.
    Threads,
    /// The highest throughput of each number of threads.
    ThreadsBest,
    /// The share of right answers by connections.
    Success,
    /// Throughput by cores.
    Cores,
    /// Efficiency relative to ideal scaling.
    Efficiency,
    /// Throughput per core.
    PerCore,
    /// System call cost per message, by connections.
    SystemCalls,
}

impl ChartPage {
    /// All of them, in the order of the document.
    pub const ALL: [Self; 8] = [
        Self::Connections,
        Self::Threads,
        Self::ThreadsBest,
        Self::Success,
        Self::Cores,
        Self::Efficiency,
        Self::PerCore,
        Self::SystemCalls,
    ];

    /// Its name in an address, as in the document.
    pub fn path(self) -> &'static str {
        match self {
            Self::Connections => "connection-chart",
            Self::Threads => "thread-chart",
            Self::ThreadsBest => "thread-max-tps-chart",
            Self::Success => "success-rate-chart",
            Self::Cores => "core-performance-chart",
            Self::Efficiency => "core-efficiency-chart",
            Self::PerCore => "core-per-tps-chart",
            Self::SystemCalls => "syscall-overhead-chart",
        }
    }

    /// Height of its frame in the document.
    pub fn frame_height_px(self) -> u32 {
        match self {
            Self::Connections | Self::Threads | Self::Success => 400,
            Self::ThreadsBest | Self::PerCore => 470,
            Self::Cores | Self::Efficiency => 495,
            Self::SystemCalls => 535,
        }
    }

    /// Its title.
    pub fn title(self, language: Language) -> &'static str {
        language.choose(match self {
            Self::Connections => ["TPS by connections", "연결 수별 TPS", "各连接数下的 TPS"],
            Self::Threads => ["TPS by threads", "스레드 수별 TPS", "各线程数下的 TPS"],
            Self::ThreadsBest => ["Best TPS by threads", "스레드 수별 최고 TPS", "各线程数下的最高 TPS"],
            Self::Success => ["Success rate by connections", "연결 수별 성공률", "各连接数下的成功率"],
            Self::Cores => ["TPS by cores", "코어 수별 TPS", "各核数下的 TPS"],
            Self::Efficiency => ["Scaling efficiency", "확장 효율", "扩展效率"],
            Self::PerCore => ["TPS per core", "코어당 TPS", "每核 TPS"],
            Self::SystemCalls => ["System call overhead", "시스템 콜 오버헤드", "系统调用开销"],
        })
    }

    /// The report's table that it draws.
    fn table(self) -> TableName {
        match self {
            Self::Connections => TableName::Connections,
            Self::Threads => TableName::Threads,
            Self::ThreadsBest => TableName::Best,
            Self::Success => TableName::Success,
            Self::Cores => TableName::Cores,
            Self::Efficiency => TableName::Efficiency,
            Self::PerCore => TableName::PerCore,
            Self::SystemCalls => TableName::SystemCalls,
        }
    }
}

/// Tables of a map, in reading order.
const TABLES: [TableName; 8] = [
    TableName::Overall,
    TableName::Connections,
    TableName::Threads,
    TableName::Best,
    TableName::Success,
    TableName::Cores,
    TableName::Efficiency,
    TableName::PerCore,
];

/// The section of the report: every table of every map.
pub(crate) fn section(view: &View<'_>) -> Content {
    let maps = &view.result.overviews;
    let of_map = |map| TABLES.into_iter().flat_map(move |table| charted(view, map, table));
    Content::unless(maps.is_empty(), || Section {
        tables: maps.iter().flat_map(of_map).collect(),
        ..Section::new(Word::OverviewTitle, Word::OverviewHelp)
    })
}

/// Charts are before the table that they draw; for the best configurations, the one by threads.
fn charted(view: &View<'_>, map: &Overview, table: TableName) -> Vec<Table> {
    let mut tables = overview::of_name(view, map, table);
    let page = ChartPage::ALL.into_iter().find(|page| page.table() == table);
    let own = if table == TableName::Best { tables.get_mut(1) } else { tables.first_mut() };
    if let (Some(page), Some(own)) = (page, own) {
        own.charts = drawings(view, page, map);
    }
    tables
}

/// The contents of a page.
#[derive(Default)]
struct Shown {
    plots: Vec<Drawing>,
    sentences: Vec<Sentence>,
    tables: Vec<Table>,
}

/// One chart with its tables as a complete page. `study_href` leads to the study's report.
pub fn chart_page(result: &StudyResult, page: ChartPage, language: Language, study_href: &str) -> String {
    chart_page_in(result, page, (language, None), study_href)
}

/// The same in the colours of a theme; without one they follow the reader's choice.
pub fn chart_page_in(
    result: &StudyResult,
    page: ChartPage,
    (language, theme): (Language, Option<Theme>),
    study_href: &str,
) -> String {
    let view = &View::new(result, language);
    let shown = match page {
        ChartPage::SystemCalls => system_calls(view),
        _ => of_maps(view, page),
    };
    let name = page.title(language);
    let body = html! {
        main.framed-page {
            h1 { (name) }
            p.study {
                (view.word(Word::StudyOf)) " " a href=(study_href) target="_top" { (result.spec.name) }
                @if let Some(made) = when::made_where(view) { " · " bdi { (made) } }
                @if !result.complete { " · " (answer::unfinished(view)) }
            }
            @if shown.plots.is_empty() { p.hint { (nothing(view)) } }
            div .pair[shown.plots.len() > 1] {
                @for plot in &shown.plots { (figure(plot)) }
            }
            @if page != ChartPage::Success && page != ChartPage::SystemCalls && !shown.plots.is_empty() {
                p.help { (reading(view)) }
            }
            @for it in &shown.sentences { p { (display::keep_together(&it.text)) } }
            @for one in &shown.tables {
                @if let Some(title) = &one.title { h2 { (title) } }
                @for it in &one.sentences { p.help { (display::keep_together(&it.text)) } }
                (table(view, one))
            }
        }
    };
    themed_document(language, theme, &format!("{name} · {}", result.spec.name), &body)
}

/// Space around the texts of an image, and the height of a line of them.
const MARGIN: f64 = 16.0;
const LINE: f64 = 20.0;

/// Most columns of a title in an image.
const COLUMNS_MAX: usize = answer::ORIGIN_COLUMNS_MAX;

/// The charts of a page as one SVG image that stands alone, with the study, its date and its machine; `None` if there
/// is nothing to draw. Without a theme its colours follow the reader's choice.
pub fn chart_svg(
    result: &StudyResult,
    page: ChartPage,
    language: Language,
    theme: Option<Theme>,
) -> Option<String> {
    let view = &View::new(result, language);
    let charts = levels(view, page);
    if charts.is_empty() {
        return None;
    }
    let mut height = MARGIN;
    let name = page.title(language);
    let heading = line("strong", name, &mut height);
    let lines: Vec<Markup> = answer::origin(view).iter().map(|it| line("faint", it, &mut height)).collect();
    let mut drawn = Vec::new();
    for (caption, of) in &charts {
        height += LINE / 2.0;
        let caption = display::plain_name(caption, COLUMNS_MAX);
        let caption = line("strong", &caption, &mut height);
        let (plot, end) = chart::alone(view, of, height + LINE / 2.0);
        height = end;
        drawn.push(html! { (caption) (plot) });
    }
    let (width, height) = (chart::ALONE_WIDTH, height + MARGIN);
    let image = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (width) " " (height) } width=(width) height=(height)
            lang=(language.tag()) role="img" {
            title { (name) " · " (display::plain_name(&result.spec.name, COLUMNS_MAX)) }
            style { (PreEscaped(html::drawing_style(language, theme))) }
            rect.paper width="100%" height="100%" {}
            (heading)
            @for one in lines.iter().chain(&drawn) { (one) }
        }
    };
    Some(image.into_string())
}

/// Whether a page has a chart to draw.
pub fn has_chart(result: &StudyResult, page: ChartPage) -> bool {
    !levels(&View::new(result, Language::English), page).is_empty()
}

/// A line of text below the last one.
fn line(class: &str, text: &str, height: &mut f64) -> Markup {
    *height += LINE;
    html! { text class=(class) x=(MARGIN) y=(*height) { (text) } }
}

/// The charts of a page with their titles.
fn levels<'v>(view: &View<'v>, page: ChartPage) -> Vec<(String, Levels<'v>)> {
    if page == ChartPage::SystemCalls {
        return chart::call_levels(view);
    }
    let of_map = |map| {
        let of = move |quantity: &Quantity| levels_of(view, page, map, *quantity);
        quantities(page).iter().filter_map(of)
    };
    view.result.overviews.iter().flat_map(of_map).collect()
}

fn nothing(view: &View<'_>) -> &'static str {
    view.language.choose([
        "This study has nothing to draw here: its cells do not differ in this, or it was not observed.",
        "이 실험에는 여기에 그릴 내용이 없습니다. 이 요인만 다른 조건이 없거나 관찰하지 않았습니다.",
        "本实验在此没有可绘制的内容：没有只在这一因子上不同的条件，或未作观测。",
    ])
}

fn reading(view: &View<'_>) -> &'static str {
    view.language.choose([
        "Geometric means with their intervals.",
        "점은 기하 평균, 세로선은 99 % 신뢰구간입니다.",
        "点为几何平均，竖线为 99 % 置信区间。",
    ])
}

/// Both throughput measures, on every map.
fn of_maps(view: &View<'_>, page: ChartPage) -> Shown {
    let mut shown = Shown::default();
    for map in &view.result.overviews {
        shown.plots.extend(drawings(view, page, map));
        shown.tables.extend(overview::of_name(view, map, page.table()));
    }
    shown
}

/// The charts of a map; empty if it has nothing to draw.
fn drawings(view: &View<'_>, page: ChartPage, map: &Overview) -> Vec<Drawing> {
    quantities(page).iter().filter_map(|quantity| plot(view, page, map, *quantity)).collect()
}

fn quantities(page: ChartPage) -> &'static [Quantity] {
    match page {
        ChartPage::Success => &[Quantity::Throughput],
        _ => &Quantity::ALL,
    }
}

/// Formats a figure.
type Format = fn(f64) -> String;

fn plot(view: &View<'_>, page: ChartPage, map: &Overview, quantity: Quantity) -> Option<Drawing> {
    let (title, levels) = levels_of(view, page, map, quantity)?;
    let id = format!("{}-{}-{}", page.path(), map.map + 1, quantity.key());
    Some(Drawing { id, title, image: chart::by_level(view, &levels) })
}

/// The title and the content of a chart; `None` if it has no points.
fn levels_of<'v>(
    view: &View<'v>,
    page: ChartPage,
    map: &Overview,
    quantity: Quantity,
) -> Option<(String, Levels<'v>)> {
    let points = points(view, page, map, quantity);
    let (text, tick): (Format, Format) = match page {
        ChartPage::Success => (overview::share, share_tick),
        ChartPage::Efficiency => (format::percent, format::percent),
        _ => (format::grouped, format::grouped),
    };
    let name = match page {
        ChartPage::Success => format!("{} (%)", page.title(view.language)),
        _ => overview::quantity(view, quantity),
    };
    let title = maps::apart(view, map.map).map_or_else(|| name.clone(), |apart| format!("{name} · {apart}"));
    let levels = Levels {
        factor: view.word(factor(page, map)),
        levels: Vec::new(),
        points,
        beside: Vec::new(),
        raw: Vec::new(),
        axis: if page == ChartPage::Success { Axis::ToOne } else { Axis::FromZero },
        text,
        tick,
        ideal: (page == ChartPage::Efficiency).then_some(1.0),
    };
    (!levels.points.is_empty()).then_some((title, levels))
}

/// The factor of the levels.
fn factor(page: ChartPage, map: &Overview) -> Word {
    match page {
        ChartPage::Connections | ChartPage::Success | ChartPage::SystemCalls => Word::MapConnections,
        ChartPage::Cores => Word::MapServerCpus,
        ChartPage::PerCore if !map.by_server_cpus.is_empty() => Word::MapServerCpus,
        ChartPage::Threads | ChartPage::ThreadsBest | ChartPage::Efficiency | ChartPage::PerCore => {
            Word::MapWorkers
        }
    }
}

fn points(view: &View<'_>, page: ChartPage, map: &Overview, quantity: Quantity) -> Vec<Point> {
    let of_rows = |rows: &[MeanRow]| rows.iter().filter_map(|row| of_mean(row, quantity)).collect();
    match page {
        ChartPage::Connections => of_rows(&map.by_connections),
        ChartPage::Threads => of_rows(&map.by_workers),
        ChartPage::Cores => of_rows(&map.by_server_cpus),
        ChartPage::PerCore => {
            let rows = if map.by_server_cpus.is_empty() { &map.by_workers } else { &map.by_server_cpus };
            rows.iter().filter_map(|row| of_core(row, quantity)).collect()
        }
        ChartPage::ThreadsBest => {
            let own = map.best_by_workers.iter().filter(|it| it.quantity == quantity);
            own.filter_map(|it| of_best(view, it)).collect()
        }
        ChartPage::Success => map.success.iter().filter_map(of_success).collect(),
        ChartPage::Efficiency => map.scaling.iter().filter_map(|it| of_scaling(it, quantity)).collect(),
        ChartPage::SystemCalls => Vec::new(),
    }
}

fn of_mean(row: &MeanRow, quantity: Quantity) -> Option<Point> {
    let (figure, is_bound) = match quantity {
        Quantity::Throughput => (row.throughput, row.cells_bound > 0),
        Quantity::PerCpuSecond => (row.per_cpu_second, false),
    };
    Some(Point { arm: row.arm.clone(), level: row.level?, figure: figure?, is_bound })
}

fn of_core(row: &MeanRow, quantity: Quantity) -> Option<Point> {
    of_mean(&MeanRow { throughput: row.throughput_per_cpu, ..row.clone() }, quantity)
}

fn of_best(view: &View<'_>, best: &BestCell) -> Option<Point> {
    let level = u64::from(view.cell(&best.cell_id)?.workers);
    Some(Point { arm: best.arm.clone(), level, figure: best.figure, is_bound: best.is_bound })
}

fn of_success(row: &SuccessRow) -> Option<Point> {
    let figure = Figure { value: row.success?, interval: row.success_interval };
    Some(Point { arm: row.arm.clone(), level: row.level, figure, is_bound: false })
}

/// The mean of throughput over lines in which the generator was not the limit.
fn of_scaling(mean: &ScalingMean, quantity: Quantity) -> Option<Point> {
    let figure = match quantity {
        Quantity::Throughput => mean.throughput,
        Quantity::PerCpuSecond => mean.per_cpu_second,
    };
    Some(Point { arm: mean.arm.clone(), level: u64::from(mean.workers), figure: figure?, is_bound: false })
}

/// `99.95`: the unit is in the title, because there is little room.
fn share_tick(share: f64) -> String {
    ((share * 1e4).round() / 1e2).to_string()
}

/// The report's sections about system calls: against connections, and as strace sums them.
fn system_calls(view: &View<'_>) -> Shown {
    let mut shown = Shown::default();
    if let Content::Shown(section) = chart::call_overhead(view) {
        for Plot { id, title, image, numbers, .. } in section.plots {
            shown.tables.push(Table { title: Some(title.clone()), ..numbers });
            shown.plots.push(Drawing { id, title, image });
        }
        shown.sentences.extend(section.sentences);
    }
    if let Content::Shown(section) = strace::section(view) {
        shown.sentences.extend(section.sentences);
        shown.tables.extend(section.tables);
    }
    shown
}
