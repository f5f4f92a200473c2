//! How arms waited over time: each part of a series with its means, next to the published ones.

use weir_record::wait_series::{
    LevelBeside, LevelOf, LevelSense, SeriesKind, SeriesMetric, WaitPart, WaitSeries,
};

use crate::{format, language::localized, table::Table, titles, view::View};

/// Title of a series.
pub(crate) fn title(view: &View<'_>, series: &WaitSeries) -> String {
    let place = view.cell_label(&series.cell_id);
    let first = series.parts.first().map_or("", |part| part.arm.as_str());
    match series.kind {
        SeriesKind::Load => format!("{place} · {first}"),
        SeriesKind::Setting => {
            let last = series.parts.last().map_or("", |part| part.arm.as_str());
            format!("{place} · {first} … {last}")
        }
    }
}

/// Name of a part.
pub(crate) fn part(view: &View<'_>, kind: SeriesKind, part: &WaitPart) -> String {
    let cores = part.background_cores;
    match (kind, cores) {
        (SeriesKind::Setting, _) => part.arm.clone(),
        (SeriesKind::Load, 0) => {
            view.language.choose(["no load beside", "배경 부하 없음", "无背景负载"]).to_owned()
        }
        (SeriesKind::Load, 1) => {
            view.language.choose(["1 core beside", "배경 1코어", "背景 1 核"]).to_owned()
        }
        (SeriesKind::Load, _) => {
            localized!(view.language, "{cores} cores beside", "배경 {cores}코어", "背景 {cores} 核")
        }
    }
}

/// The name of a figure.
pub(crate) fn name(view: &View<'_>, metric: SeriesMetric) -> &'static str {
    view.language.choose(match metric {
        SeriesMetric::MissRate => ["misses", "miss 비율", "miss 率"],
        SeriesMetric::Iops => ["IOPS"; 3],
        SeriesMetric::EffectiveSleep => ["effective sleep", "유효 sleep", "有效睡眠"],
        SeriesMetric::CpuShare => ["CPU of the thread", "스레드 CPU", "线程 CPU"],
    })
}

/// Format of a figure.
pub(crate) fn written(metric: SeriesMetric) -> fn(f64) -> String {
    match metric {
        SeriesMetric::MissRate | SeriesMetric::CpuShare => format::percent,
        SeriesMetric::Iops => format::grouped,
        SeriesMetric::EffectiveSleep => format::nanos,
    }
}

/// The parts of a series with their means.
pub(crate) fn table(view: &View<'_>, series: &WaitSeries) -> Table {
    let [part_head, of_first, published] = [
        ["part", "구간", "阶段"],
        ["IOPS of the first", "첫 구간 대비 IOPS", "IOPS 与首段之比"],
        ["published: measured", "발표: 측정", "公布：实测"],
    ]
    .map(|texts| view.language.choose(texts).to_owned());
    let metrics = SeriesMetric::ALL.map(|metric| name(view, metric).to_owned());
    let head = [part_head, published].into_iter().chain(metrics).chain([of_first]).collect();
    let row = |it: &WaitPart| {
        let beside: Vec<String> = it.published.iter().map(|level| beside(view, level)).collect();
        let figure = |metric: SeriesMetric| {
            it.figures
                .map_or_else(|| format::ABSENT.to_owned(), |figures| written(metric)(figures.get(metric)))
        };
        let texts = [part(view, series.kind, it), beside.join(view.language.semicolon())];
        texts
            .into_iter()
            .chain(SeriesMetric::ALL.map(figure))
            .chain([format::ratio(it.iops_of_first)])
            .collect()
    };
    Table::with_head(head, 2, series.parts.iter().map(row).collect())
}

/// The same without published figures.
pub(crate) fn narrow_table(view: &View<'_>, series: &WaitSeries) -> Table {
    let mut whole = table(view, series);
    whole.head.remove(1);
    whole.rows.iter_mut().for_each(|row| _ = row.remove(1));
    Table { text_columns: 1, ..whole }
}

/// The published figures of each part, a line for each.
pub(crate) fn published(view: &View<'_>, series: &WaitSeries) -> Vec<String> {
    series.parts.iter().flat_map(|part| &part.published).map(|level| beside(view, level)).collect()
}

/// `misses stay at about 30 %: 37 %`, with a sign if a bound holds or not.
fn beside(view: &View<'_>, level: &LevelBeside) -> String {
    let claim = titles::localized(&level.published.claim, view.language);
    let written = match level.published.of {
        LevelOf::First => |share: f64| format::ratio(Some(share)),
        LevelOf::Mean | LevelOf::Peak => written(level.published.metric),
    };
    let measured = level.measured.map_or_else(|| format::ABSENT.to_owned(), written);
    let sign = match level.holds {
        Some(true) => " ✓",
        Some(false) => " ✗",
        None => "",
    };
    format!("{claim}{}{measured}{sign}", view.language.colon())
}

/// A published level as the label of its mark: `published: at least 10 %`.
pub(crate) fn level(view: &View<'_>, beside: &LevelBeside) -> String {
    let published = &beside.published;
    let figure = written(published.metric)(published.level);
    match published.sense {
        LevelSense::About => {
            localized!(view.language, "published: about {figure}", "발표: 약 {figure}", "公布：约 {figure}")
        }
        LevelSense::AtLeast => {
            localized!(
                view.language,
                "published: at least {figure}",
                "발표: {figure} 이상",
                "公布：不低于 {figure}"
            )
        }
        LevelSense::AtMost => {
            localized!(
                view.language,
                "published: at most {figure}",
                "발표: {figure} 이하",
                "公布：不高于 {figure}"
            )
        }
    }
}
