//! A history as one page: a chart for each series, and the same numbers in a table below it.

use maud::{Markup, html};
use weir_record::{
    effect::EffectScale,
    history::{History, HistoryRun, HistorySeries},
    verdict::Verdict,
};

use super::{facts, left_out, letter, machine, mark, number, program, runs, title};
use crate::{
    chart::{self, HistoryPlot, HistoryRow},
    display::{keep_together, printable},
    html as page,
    language::Language,
    origin,
    table::Table,
    words::{self, Word},
};

const TITLE: [&str; 3] = ["Results by commit", "커밋별 결과", "各提交的结果"];

const NOTHING: [&str; 3] = [
    "No finished study and no stored comparison was found.",
    "끝난 실험과 저장된 비교가 없습니다.",
    "没有已完成的实验，也没有已保存的比较。",
];

/// The page, below what it begins with.
pub fn html_below(history: &History, language: Language, above: &Markup) -> String {
    let title = language.choose(TITLE);
    let body = html! {
        (above)
        main {
            h1 { (title) }
            @if history.series.is_empty() { p { (language.choose(NOTHING)) } }
            @for (place, series) in history.series.iter().enumerate() { (section(series, place, language)) }
            @for line in left_out(history, language) { p.hint { (line) } }
        }
    };
    page::document(language, title, &body)
}

fn section(series: &HistorySeries, place: usize, language: Language) -> Markup {
    let id = format!("history-{place}");
    html! {
        section {
            h2 id=(id) { (title(series, language)) }
            @for line in facts(series, language) { p.help { (keep_together(&line)) } }
            div.chart { figure role="img" aria-labelledby=(id) {
                (chart::history(language, &plot(series, language)))
            } }
            details {
                summary { (Word::NumbersInTable.text(language)) }
                (page::scrolled(language, &page::columns(&table(series, language), |_| Markup::default())))
            }
        }
    }
}

fn table(series: &HistorySeries, language: Language) -> Table {
    let cells = runs::table(series, language);
    // Effects and what stands behind them are no texts to be searched; all is set alike.
    let columns = cells.head.len();
    Table::with_head(cells.head, columns, cells.rows)
}

fn plot(series: &HistorySeries, language: Language) -> HistoryPlot {
    HistoryPlot {
        metric: series.metric,
        is_difference: series.scale == EffectScale::Difference,
        rows: series.runs.iter().map(|run| row(series, run, language)).collect(),
    }
}

fn row(series: &HistorySeries, run: &HistoryRun, language: Language) -> HistoryRow {
    let found = run.from_reference.unwrap_or_default();
    let parts = [runs::date(run), origin::commit(&run.origin), origin::labels(&run.origin)];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let word = words::verdict(series.metric, run.verdict).text(language);
    let links = if run.links > 1 { format!(" ×{}", run.links) } else { String::new() };
    HistoryRow {
        group: group(series, run, language),
        text: parts.join(" · "),
        number: format!("{}{links}", number(series, run.from_reference)),
        verdict: format!("{} {word} {}", words::verdict_sign(run.verdict), mark(run.change))
            .trim_end()
            .to_owned(),
        note: run.origin.note.as_deref().map(printable).unwrap_or_default(),
        figure: found.figure,
        interval: found.interval,
        is_void: run.verdict == Verdict::NotComparable,
    }
}

/// The reference and the machine of a run, where the series has several.
fn group(series: &HistorySeries, run: &HistoryRun, language: Language) -> String {
    let stretch = series.stretches.iter().find(|it| it.number == run.stretch);
    let named = stretch.filter(|_| series.stretches.len() > 1).map(|stretch| {
        let (program, machine) = (program(&stretch.reference, language), machine(stretch, language));
        format!("{} · {program} · {machine}", letter(stretch.number))
    });
    named.unwrap_or_default()
}
