//! The map in tables, under their published names, and next to the published figures.

mod scaling;
mod success;

pub(crate) use success::share;
use weir_record::{
    figure::Figure,
    overview::{MeanRatio, MeanRow, Overview, Quantity},
    published::{PublishedTable, TableName},
};

use crate::{
    cited::{Sentence, distinct, of_no_cell},
    findings,
    format::{self, ABSENT},
    language::localized,
    maps,
    table::Table,
    titles,
    view::View,
    words::Word,
};

/// Efficiencies above the plausible limit that a terminal mentions in sentences.
const ALARMS_SHOWN: usize = 2;

/// Summary in a few lines, for a terminal: each arm over all cells, and implausible scaling.
pub(crate) fn lines(view: &View<'_>) -> Vec<String> {
    let maps = &view.result.overviews;
    let of_map = |map: &Overview| -> Vec<String> {
        map.overall.iter().filter_map(|row| sentence(view, map, row)).collect()
    };
    let over_all = maps.iter().flat_map(of_map);
    let alarms = maps.iter().flat_map(|map| scaling::alarms(view, map, ALARMS_SHOWN));
    over_all.chain(alarms.map(|it| it.text)).collect()
}

/// The nonempty tables of a map under a name.
pub(crate) fn of_name(view: &View<'_>, map: &Overview, table: TableName) -> Vec<Table> {
    let mut tables = match table {
        TableName::Overall => vec![means(view, map, table, &map.overall)],
        TableName::Connections => vec![means(view, map, table, &map.by_connections)],
        TableName::Threads => vec![means(view, map, table, &map.by_workers)],
        TableName::Best => vec![success::best(view, map), success::best_by_workers(view, map)],
        TableName::Success => vec![success::by_class(view, map)],
        TableName::Cores => match (&map.by_server_cpus[..], &map.by_workers[..]) {
            ([], []) => Vec::new(),
            ([], _) => vec![no_cores(view, map)],
            (rows, _) => vec![means(view, map, table, rows)],
        },
        TableName::Efficiency => scaling::tables(view, map),
        TableName::PerCore => vec![match &map.by_server_cpus[..] {
            [] => per_core(view, Word::MapWorkers, &map.by_workers),
            rows => per_core(view, Word::MapServerCpus, rows),
        }],
        TableName::SystemCalls
        | TableName::SystemCallShares
        | TableName::SystemCallOverhead
        | TableName::Aggregate => Vec::new(),
    };
    tables.retain(|table| !(table.rows.is_empty() && table.sentences.is_empty()));
    let mut tables: Vec<Table> = tables.into_iter().map(|table| with_open_intervals(view, table)).collect();
    if let Some(apart) = maps::apart(view, map.map) {
        let titles = tables.iter_mut().filter_map(|table| table.title.as_mut());
        titles.for_each(|title| title.push_str(&format!(" · {apart}")));
    }
    tables
}

/// Cells that were measured in another state of the machine than the others.
fn states(view: &View<'_>, map: &Overview) -> Option<Sentence> {
    let (far, both, all) = (map.cells_far.len(), map.cells_in_both_states.len(), map.cells.len());
    let are_alike = [far, both].contains(&all) || far + both == 0;
    let text = localized!(
        view.language,
        "The machine has two states. Figures of {far} of {all} cells are of its far state, of {both} of both, and of the \
         others of its near one: means over them and the best of them are of both, ratios are each of one.",
        "이 머신에는 두 가지 상태가 있습니다. 조건 {all}개 중 {far}개의 수치는 코어 간 지연이 긴 상태(far), {both}개는 두 상태 모두, 나머지는 짧은 상태(near)에서 쟀습니다. \
        따라서 평균과 최고 구성에는 두 상태가 섞여 있습니다. 비율은 각각 한 상태의 값입니다.",
        "本机有两种状态。{all} 个条件中有 {far} 个的数值取自核间延迟较长的状态（far），{both} 个取自两种状态，其余取自较短的状态（near）：均值与最佳配置混合了两种状态，\
         而每个比值只取自一种状态。",
    );
    let cells = distinct(map.cells_far.iter().chain(&map.cells_in_both_states));
    (!are_alike).then_some(Sentence { text, cells })
}

/// The names of the tables, as in document 000.
pub(crate) fn name(view: &View<'_>, table: TableName) -> &'static str {
    view.language.choose(match table {
        TableName::Overall => ["Overall mean TPS", "전체 평균 TPS", "总体平均 TPS"],
        TableName::Connections => ["TPS by connections", "연결 수별 TPS", "各连接数下的 TPS"],
        TableName::Threads => ["TPS by threads", "스레드 수별 TPS", "各线程数下的 TPS"],
        TableName::Best => ["Best TPS and its configuration", "최고 TPS 구성", "最高 TPS 及其配置"],
        TableName::Success => ["Success rate by connections", "연결 수별 성공률", "各连接数下的成功率"],
        TableName::Cores => ["TPS by cores", "코어 수별 TPS", "各核数下的 TPS"],
        TableName::Efficiency => [
            "Scaling efficiency, against ideal linear scaling",
            "확장 효율(이상적인 선형 확장 대비)",
            "扩展效率（与理想线性扩展相比）",
        ],
        TableName::PerCore => ["TPS per core", "코어당 TPS", "每核 TPS"],
        TableName::SystemCalls => {
            ["System calls as published", "시스템 콜(발표 수치)", "系统调用（公布的数值）"]
        }
        TableName::SystemCallShares => [
            "Shares of system calls as published, and here",
            "시스템 콜별 비중(발표 수치와 측정 수치)",
            "各系统调用的占比（公布与实测）",
        ],
        TableName::SystemCallOverhead => [
            "System call overhead as traffic grows",
            "트래픽 증가에 따른 시스템 콜 오버헤드",
            "流量增加时的系统调用开销",
        ],
        TableName::Aggregate => ["Aggregate report", "집계 보고서", "聚合报告"],
    })
}

/// The published table with this name.
pub(crate) fn published<'v>(view: &View<'v>, table: TableName) -> Option<&'v PublishedTable> {
    view.result.spec.published_tables.iter().find(|it| it.table == table)
}

/// Why our figures differ: `Beside it, Document 000. …`.
pub(crate) fn explained(view: &View<'_>, table: &PublishedTable) -> String {
    let (source, why) = (
        titles::localized(&table.source, view.language),
        titles::localized(&table.explanation, view.language),
    );
    localized!(
        view.language,
        "Published beside it ({source}): {why}",
        "{source}의 발표 수치와 비교: {why}",
        "{source} 公布的数值（供对照）：{why}",
    )
}

/// The same if only a sentence was published, without data.
pub(crate) fn published_as_text(view: &View<'_>, table: &PublishedTable) -> String {
    let (source, why) = (
        titles::localized(&table.source, view.language),
        titles::localized(&table.explanation, view.language),
    );
    localized!(
        view.language,
        "{source}: published as text only, without data. {why}",
        "{source}: 데이터 없이 글로만 발표했습니다. {why}",
        "{source}：只有文字，没有公布数据。{why}",
    )
}

/// Headers of both columns of published figures.
pub(super) fn published_heads(view: &View<'_>) -> [String; 2] {
    let heads = [["published", "발표", "公布"], ["published ratio", "발표 비율", "公布的比值"]];
    heads.map(|head| view.language.choose(head).to_owned())
}

/// A figure of a published table, and its ratio to the baseline's figure.
fn published_cells(view: &View<'_>, table: Option<&PublishedTable>, key: &str, arm: &str) -> [String; 2] {
    let number = table.and_then(|it| it.figure(key, arm)).map_or_else(|| ABSENT.to_owned(), format::grouped);
    let baseline = view.baseline().unwrap_or_default();
    [number, format::ratio(table.and_then(|it| it.ratio(key, arm, baseline)))]
}

/// Placeholder for interval ends that are too far apart to be informative.
const OPEN_INTERVAL: &str = "[–]";

/// Largest ratio of the ends of an informative interval.
const ENDS_APART_MAX: f64 = 1_000.0;

/// `195,432 [190,001, 201,113]`: a figure with an interval of factors; `45,392 [–]` if that is uninformative.
pub(crate) fn figure(figure: Option<Figure>, number: impl Fn(f64) -> String) -> String {
    match figure {
        Some(Figure { value, interval: Some(ends) }) if says_nothing(ends) => {
            format!("{} {OPEN_INTERVAL}", number(value))
        }
        _ => with_ends(figure, number),
    }
}

/// Very few rounds give such an interval, and its digits would look informative.
fn says_nothing((low, high): (f64, f64)) -> bool {
    high.is_infinite() || (low > 0.0 && high > ENDS_APART_MAX * low)
}

/// The table, with an explanation of the mark if a figure has it.
pub(crate) fn with_open_intervals(view: &View<'_>, mut table: Table) -> Table {
    let note = open_intervals(view, table.rows.iter().flatten());
    table.sentences.extend(note);
    table
}

/// The explanation of the mark, if one of the texts has it.
pub(crate) fn open_intervals<'t>(
    view: &View<'_>,
    texts: impl IntoIterator<Item = &'t String>,
) -> Option<Sentence> {
    let is_met = texts.into_iter().any(|text| text.contains(OPEN_INTERVAL));
    let apart = format::grouped(ENDS_APART_MAX);
    let text = localized!(
        view.language,
        "{OPEN_INTERVAL}: the rounds are too few for an interval; its ends are more than {apart} times apart.",
        "{OPEN_INTERVAL}: 라운드가 너무 적어 신뢰구간이 의미가 없습니다. 양 끝이 {apart}배 넘게 벌어집니다.",
        "{OPEN_INTERVAL}：轮次太少，置信区间没有意义，两端相差超过 {apart} 倍。",
    );
    is_met.then(|| text.into())
}

/// The same with the ends of its interval in every case: that of a difference may be close to zero.
pub(crate) fn with_ends(figure: Option<Figure>, number: impl Fn(f64) -> String) -> String {
    match figure {
        None => ABSENT.to_owned(),
        Some(Figure { value, interval: Some((low, high)) }) => {
            format!("{} [{}, {}]", number(value), number(low), number(high))
        }
        Some(Figure { value, interval: None }) => number(value),
    }
}

/// The name of a quantity as a column header.
pub(crate) fn quantity(view: &View<'_>, quantity: Quantity) -> String {
    let rate = findings::rate(view.language, view.kind());
    let several = findings::plural(view.language, view.kind());
    match quantity {
        Quantity::Throughput => rate.to_owned(),
        Quantity::PerCpuSecond => {
            localized!(
                view.language,
                "{several} per CPU-second",
                "CPU 1초당 {several}",
                "每 CPU 秒处理的{several}数",
            )
        }
    }
}

/// The same for a narrow column.
fn brief(view: &View<'_>, of: Quantity) -> String {
    match of {
        Quantity::Throughput => quantity(view, of),
        Quantity::PerCpuSecond => {
            view.language.choose(["per CPU-second", "CPU 1초당", "每 CPU 秒"]).to_owned()
        }
    }
}

fn cells_head(view: &View<'_>) -> String {
    let head = ["cells (generator-bound)", "조건 수(부하 생성기 한계)", "条件数（受负载生成器限制）"];
    view.language.choose(head).to_owned()
}

/// Levels of a table: measured and published ones.
fn levels(rows: &[MeanRow], published: Option<&PublishedTable>) -> Vec<Option<u64>> {
    let own = rows.iter().map(|row| row.level);
    let theirs =
        published.into_iter().flat_map(|it| it.rows.iter().filter_map(|row| row.key.parse().ok().map(Some)));
    let all: std::collections::BTreeSet<Option<u64>> = own.chain(theirs).collect();
    all.into_iter().collect()
}

fn key(level: Option<u64>) -> String {
    level.map_or_else(|| "all".to_owned(), |level| level.to_string())
}

/// A row for each level and arm.
fn each_row<'r>(
    view: &View<'_>,
    rows: &'r [MeanRow],
    published: Option<&PublishedTable>,
    row: impl Fn(Option<u64>, &str, Option<&'r MeanRow>) -> Vec<String>,
) -> Vec<Vec<String>> {
    let mut shown = Vec::new();
    for level in levels(rows, published) {
        for arm in &view.arms {
            let own = rows.iter().find(|row| row.level == level && row.arm == *arm);
            if own.is_some() || published.is_some_and(|it| it.figure(&key(level), arm).is_some()) {
                shown.push(row(level, arm, own));
            }
        }
    }
    shown
}

fn level_head(view: &View<'_>, table: TableName) -> Option<String> {
    let word = match table {
        TableName::Connections | TableName::Success => Word::MapConnections,
        TableName::Threads | TableName::Efficiency => Word::MapWorkers,
        TableName::Cores => Word::MapServerCpus,
        TableName::Overall
        | TableName::Best
        | TableName::PerCore
        | TableName::SystemCalls
        | TableName::SystemCallShares
        | TableName::SystemCallOverhead
        | TableName::Aggregate => return None,
    };
    Some(view.word(word).to_owned())
}

/// Means by level, or over all cells, with ratios to the baseline and published figures.
fn means(view: &View<'_>, map: &Overview, table: TableName, rows: &[MeanRow]) -> Table {
    means_beside(view, map, rows, (table, published(view, table).filter(|_| !rows.is_empty())))
}

/// The same next to published figures, even if nothing was measured.
fn means_beside(
    view: &View<'_>,
    map: &Overview,
    rows: &[MeanRow],
    (table, theirs): (TableName, Option<&PublishedTable>),
) -> Table {
    let mut head: Vec<String> = level_head(view, table).into_iter().collect();
    head.push(view.word(Word::Arm).to_owned());
    let text_columns = head.len();
    let ratio = view.language.choose(["ratio to baseline", "기준 대비 비율", "与基线之比"]).to_owned();
    head.extend(Quantity::ALL.iter().flat_map(|of| [brief(view, *of), ratio.clone()]));
    head.push(cells_head(view));
    head.extend(theirs.iter().flat_map(|_| published_heads(view)));
    let shown = each_row(view, rows, theirs, |level, arm, row| {
        let mut cells: Vec<String> = level.map(format::count).into_iter().collect();
        cells.push(arm.to_owned());
        cells.extend(row.map_or_else(|| vec![ABSENT.to_owned(); 5], |row| measured(view, row)));
        cells.extend(theirs.iter().flat_map(|it| published_cells(view, Some(it), &key(level), arm)));
        cells
    });
    let is_first = table == TableName::Overall;
    let of_row = |row: &MeanRow| -> Vec<Sentence> {
        Quantity::ALL.into_iter().filter_map(|of| reversed(view, map, row, of)).collect()
    };
    let reversed = rows.iter().filter(|_| is_first).flat_map(of_row);
    let states = states(view, map).into_iter().filter(|_| is_first);
    let sentences = reversed
        .chain(states)
        .chain(ratios_of_fewer(view, rows))
        .chain(theirs.map(|it| explained(view, it).into()))
        .collect();
    Table::with_head(head, text_columns, shown).titled(name(view, table), sentences)
}

/// Both quantities with their ratios, and the cells.
fn measured(view: &View<'_>, row: &MeanRow) -> Vec<String> {
    let bound = if row.cells_bound > 0 { "≥ " } else { "" };
    vec![
        format!("{bound}{}", figure(row.throughput, format::grouped)),
        ratio(view, row, row.throughput_ratio.as_ref()),
        figure(row.per_cpu_second, format::grouped),
        ratio(view, row, row.per_cpu_second_ratio.as_ref()),
        format!("{} ({})", row.cells, row.cells_bound),
    ]
}

/// `1.084 [1.071, 1.097]`, with its number of cells if that differs.
fn ratio(view: &View<'_>, row: &MeanRow, ratio: Option<&MeanRatio>) -> String {
    let Some(found) = ratio else { return ABSENT.to_owned() };
    let text = format::ratio_and_interval(Some(found.ratio.value), found.ratio.interval);
    match found.cells {
        cells if cells == row.cells => text,
        1 => localized!(view.language, "{text} (1 cell)", "{text}(조건 1개)", "{text}（1 个条件）"),
        cells => localized!(
            view.language,
            "{text} ({cells} cells)",
            "{text}(조건 {cells}개)",
            "{text}（{cells} 个条件）",
        ),
    }
}

/// Note that ratios are paired, if some cover other cells than the adjacent figures.
fn ratios_of_fewer(view: &View<'_>, rows: &[MeanRow]) -> Option<Sentence> {
    let is_fewer = |row: &MeanRow| {
        let ratios = [&row.throughput_ratio, &row.per_cpu_second_ratio];
        ratios.into_iter().flatten().any(|ratio| ratio.cells != row.cells)
    };
    let texts = [
        "A ratio with a number of cells is of those in which the two may be compared; it is not that of the figures beside it.",
        "조건 수가 적힌 비율은 두 대상을 비교할 수 있는 조건만으로 구한 값입니다. 옆에 있는 수치끼리의 비율이 아닙니다.",
        "注明条件数的比值只取双方可比的条件，不是旁边两个数值之比。",
    ];
    rows.iter().any(is_fewer).then(|| view.language.choose(texts).to_owned().into())
}

/// A mean over all cells that is contradicted by some of them.
fn reversed(view: &View<'_>, map: &Overview, row: &MeanRow, of: Quantity) -> Option<Sentence> {
    let ratio = match of {
        Quantity::Throughput => &row.throughput_ratio,
        Quantity::PerCpuSecond => &row.per_cpu_second_ratio,
    };
    let found = ratio.as_ref().filter(|it| !it.reversed.is_empty())?;
    let cells = found.reversed.iter().map(|cell| view.cell_label(cell)).collect::<Vec<_>>().join("; ");
    let (arm, what) = (maps::arm(view, &row.arm, map.map), quantity(view, of));
    let text = localized!(
        view.language,
        "{arm}, {what}: the mean over all cells hides cells that go the other way: {cells}.",
        "{arm}, {what}: 전체 평균과 방향이 반대인 조건이 있습니다: {cells}.",
        "{arm}，{what}：总体平均掩盖了方向相反的条件：{cells}。",
    );
    Some(Sentence { text, cells: found.reversed.clone() })
}

/// An arm compared with the baseline over all cells, in one sentence.
fn sentence(view: &View<'_>, map: &Overview, row: &MeanRow) -> Option<String> {
    let (arm, baseline) = (maps::arm(view, &row.arm, map.map), view.baseline()?);
    // One cell has no mean, and its ratio is in the table of cells.
    let found = row.per_cpu_second_ratio.as_ref().filter(|found| found.cells > 1)?;
    let ratio = format::ratio_and_interval(Some(found.ratio.value), found.ratio.interval);
    let (what, cells) = (quantity(view, Quantity::PerCpuSecond), found.cells);
    let hidden = reversed(view, map, row, Quantity::PerCpuSecond);
    let hidden = hidden.map_or_else(String::new, |it| format!(" {}", it.text));
    Some(localized!(
        view.language,
        "{what}, geometric mean over {cells} cells: {arm} / {baseline} {ratio}.{hidden}",
        "{what}, 조건 {cells}개의 기하 평균: {arm} / {baseline} {ratio}.{hidden}",
        "{what}，{cells} 个条件的几何平均：{arm} / {baseline} {ratio}。{hidden}",
    ))
}

/// A study has one number of server CPUs, so there are no measured figures by CPUs; the reader learns that before the
/// published ones.
fn no_cores(view: &View<'_>, map: &Overview) -> Table {
    let theirs = published(view, TableName::Cores);
    let cpus = view.result.spec.server_cpus.len();
    let own = match cpus {
        0 => localized!(
            view.language,
            "The server's side was not pinned to CPUs, so that nothing was measured by cores. Threads are no \
             cores: they are in the table by threads.",
            "서버를 CPU에 고정하지 않았으므로 코어 수별 측정값이 없습니다. 스레드 수는 코어 수가 아니며, 스레드 수별 표에 있습니다.",
            "服务器没有绑定 CPU，因此没有各核数下的测量值。线程数不是核数，见各线程数下的表。",
        ),
        _ => localized!(
            view.language,
            "Every cell ran with the same number of CPUs for the server's side ({cpus}), so that nothing was \
             measured by cores. Threads are no cores: they are in the table by threads.",
            "모든 조건에서 서버의 CPU 수가 {cpus}개로 같으므로 코어 수별 측정값이 없습니다. 스레드 수는 코어 수가 아니며, 스레드 수별 표에 있습니다.",
            "所有条件下服务器的 CPU 数相同（{cpus} 个），因此没有各核数下的测量值。线程数不是核数，见各线程数下的表。",
        ),
    };
    let mut table = means_beside(view, map, &[], (TableName::Cores, theirs));
    table.sentences.insert(0, own.into());
    table
}

/// Throughput per CPU of the server, and per second of CPU time, by CPUs, or by workers if the number of CPUs is
/// fixed.
fn per_core(view: &View<'_>, level: Word, rows: &[MeanRow]) -> Table {
    let theirs = published(view, TableName::PerCore).filter(|_| !rows.is_empty());
    let rate = findings::rate(view.language, view.kind());
    let each = localized!(
        view.language,
        "{rate} per server CPU",
        "서버 CPU 1개당 {rate}",
        "每个服务器 CPU 的{rate}"
    );
    let mut head = vec![view.word(level).to_owned()];
    head.extend([view.word(Word::Arm).to_owned(), each, quantity(view, Quantity::PerCpuSecond)]);
    head.extend(theirs.iter().flat_map(|_| published_heads(view)));
    let shown = each_row(view, rows, theirs, |level, arm, row| {
        let bound = if row.is_some_and(|row| row.cells_bound > 0) { "≥ " } else { "" };
        let throughput = figure(row.and_then(|row| row.throughput_per_cpu), format::grouped);
        let mut cells = vec![
            level.map_or_else(|| ABSENT.to_owned(), format::count),
            arm.to_owned(),
            if throughput == ABSENT { throughput } else { format!("{bound}{throughput}") },
            figure(row.and_then(|row| row.per_cpu_second), format::grouped),
        ];
        cells.extend(theirs.iter().flat_map(|it| published_cells(view, Some(it), &key(level), arm)));
        cells
    });
    let sentences = of_no_cell(theirs.map(|it| explained(view, it)));
    Table::with_head(head, 2, shown).titled(name(view, TableName::PerCore), sentences)
}
