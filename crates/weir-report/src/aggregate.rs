//! The figures of a load tester for each server, next to the published ones.

use weir_record::{
    overview::{Aggregate, Statistic},
    published::{PublishedTable, TableName},
};

use crate::{
    cited::Sentence,
    format::{self, ABSENT},
    overview::explained,
    section::{Content, Section},
    table::Table,
    titles,
    view::View,
    words::Word,
};

/// The section, if the messages are requests.
pub(crate) fn section(view: &View<'_>) -> Content {
    Content::unless(view.result.aggregates.is_empty(), || Section {
        sentences: published(view)
            .map(|it| Sentence { text: explained(view, it), cells: it.cell_id.iter().cloned().collect() })
            .collect(),
        ..Section::of_table(Word::AggregateTitle, Word::AggregateHelp, table(view))
    })
}

fn published<'v>(view: &View<'v>) -> impl Iterator<Item = &'v PublishedTable> {
    view.result.spec.published_tables.iter().filter(|it| it.table == TableName::Aggregate)
}

fn table(view: &View<'_>) -> Table {
    let text = [Word::Cell, Word::Arm].map(|word| view.word(word).to_owned());
    let head = text.into_iter().chain(Statistic::ALL.map(|statistic| name(view, statistic).to_owned()));
    let mut rows = Vec::new();
    for cell in &view.cells {
        let label = view.cell_label(cell);
        for it in view.result.aggregates.iter().filter(|it| it.cell_id == *cell) {
            let slice = view.cell(cell).and_then(|cell| cell.alternation).map(|turns| turns.slice_ns);
            rows.push(row(&label, &it.arm, |statistic| own(it, statistic, slice)));
            let ranges = ["smallest – largest", "최소 – 최대", "最小 – 最大"];
            rows.push(row("", view.language.choose(ranges), |statistic| range(it, statistic)));
        }
        for theirs in published(view).filter(|it| it.cell_id.as_deref() == Some(*cell)) {
            let source = titles::localized(&theirs.source, view.language);
            for arm in &theirs.arms {
                let published = |statistic: Statistic| {
                    let found = theirs.figure(statistic.key(), arm);
                    found.map_or_else(|| ABSENT.to_owned(), |it| as_published(statistic, it))
                };
                rows.push(row(&label, &format!("{arm} ({source})"), published));
            }
        }
    }
    Table::with_head(head.collect(), 2, rows)
}

fn row(cell: &str, server: &str, of: impl Fn(Statistic) -> String) -> Vec<String> {
    [cell.to_owned(), server.to_owned()].into_iter().chain(Statistic::ALL.map(of)).collect()
}

/// A measured figure; a peak over slices includes the slice's length.
fn own(it: &Aggregate, statistic: Statistic, slice_ns: Option<u64>) -> String {
    let found = it.rows.iter().find(|row| row.statistic == statistic);
    let bound = if it.is_bound && is_rate(statistic) { "≥ " } else { "" };
    let length = slice_ns.filter(|_| statistic == Statistic::Peak);
    let length = length.map_or_else(String::new, |ns| format!(" ({})", format::nanos(ns as f64)));
    found.map_or_else(|| ABSENT.to_owned(), |row| format!("{bound}{}{length}", number(statistic, row.value)))
}

fn range(it: &Aggregate, statistic: Statistic) -> String {
    let found = it.rows.iter().find(|row| row.statistic == statistic).and_then(|row| row.range);
    let text = |(least, most)| format!("{} – {}", number(statistic, least), number(statistic, most));
    found.map_or_else(String::new, text)
}

fn is_rate(statistic: Statistic) -> bool {
    matches!(statistic, Statistic::Throughput | Statistic::Peak)
}

fn number(statistic: Statistic, value: f64) -> String {
    match statistic {
        Statistic::Samples => format::grouped(value),
        Statistic::Errors => errors(value),
        Statistic::Throughput | Statistic::Peak => format::rate(value),
        Statistic::Mean
        | Statistic::Median
        | Statistic::P90
        | Statistic::P95
        | Statistic::P99
        | Statistic::Max
        | Statistic::Deviation => format::nanos(value),
    }
}

/// A share of failures, never rounded down to zero.
fn errors(share: f64) -> String {
    if share <= 0.0 { "0 %".to_owned() } else { format!("{:.4} %", (share * 1e6).ceil() / 1e4) }
}

/// A published figure with its original digits; its times are milliseconds and its errors percent.
fn as_published(statistic: Statistic, value: f64) -> String {
    match statistic {
        Statistic::Errors => format!("{value:.2} %"),
        Statistic::Samples => number(statistic, value),
        Statistic::Throughput | Statistic::Peak => format!("{}/s", format::bound(value)),
        _ => format!("{} ms", format::bound(value)),
    }
}

/// The names that load testers give their rows.
fn name(view: &View<'_>, statistic: Statistic) -> &'static str {
    view.language.choose(match statistic {
        Statistic::Samples => ["samples", "표본 수", "样本数"],
        Statistic::Mean => ["mean", "평균", "平均响应时间"],
        Statistic::Median => ["median", "중앙값", "中位数"],
        Statistic::P90 => ["90 %", "90 %", "90 %"],
        Statistic::P95 => ["95 %", "95 %", "95 %"],
        Statistic::P99 => ["99 %", "99 %", "99 %"],
        Statistic::Max => ["maximum", "최댓값", "最大响应时间"],
        Statistic::Errors => ["errors", "오류", "错误"],
        Statistic::Deviation => ["std. deviation", "표준편차", "标准偏差"],
        Statistic::Throughput => ["throughput", "처리량", "吞吐量"],
        Statistic::Peak => ["peak throughput", "최고 처리량", "峰值吞吐量"],
    })
}

#[cfg(test)]
mod tests {
    use super::errors;

    #[test]
    fn a_few_failures_in_many_are_not_rounded_away() {
        assert_eq!(
            [errors(0.0), errors(3e-5), errors(1e-9), errors(1.0)],
            ["0 %", "0.0030 %", "0.0001 %", "100.0000 %"]
        );
    }
}
