//! The sections of the page below the verdict.

use maud::{Markup, PreEscaped, html};

use super::{cells, figure, scrolled, table};
use crate::{
    cited::Sentence,
    definitions, display, findings,
    section::{CellNotes, Plot, Section},
    table::ROWS_MAX,
    tables,
    view::View,
    words::Word,
};

fn titled(title: &str, help: Option<&str>, body: &Markup) -> Markup {
    html! {
        section {
            h2 { (title) }
            @if let Some(help) = help.filter(|help| !help.is_empty()) { p.help { (help) } }
            (body)
        }
    }
}

/// A section of the list.
pub(super) fn section(view: &View<'_>, section: &Section) -> Markup {
    let (folded, open): (Vec<&Plot>, Vec<&Plot>) = section.plots.iter().partition(|plot| plot.is_folded);
    let body = html! {
        @for one in &section.sentences { (sentence(view, one)) }
        @if let Some(legend) = &section.legend { (legend) }
        div .pair[open.iter().any(|plot| plot.is_half)] { @for one in &open { (plot(view, one)) } }
        @if !folded.is_empty() {
            details {
                summary { (view.word(Word::OtherCells)) }
                @for one in &folded { (plot(view, one)) }
            }
        }
        @for one in &section.tables {
            @if let Some(title) = &one.title { h3 { (title) } }
            @for one in &one.sentences { (sentence(view, one)) }
            @if !one.charts.is_empty() { div.pair { @for chart in &one.charts { (figure(chart)) } } }
            @if section.plots.is_empty() && one.charts.is_empty() { (table(view, one)) }
            @else if section.plots.is_empty() {
                details { summary { (view.word(Word::NumbersInTable)) } (table(view, one)) }
            } @else { details { summary { (view.word(Word::FurtherNumbers)) } (table(view, one)) } }
        }
        @if let Some(left_out) = &section.left_out { p.hint { (left_out) } }
        @for cell in &section.notes { (notes(view, cell)) }
    };
    titled(section.title.localized(view), Some(section.help.localized(view)), &body)
}

/// A sentence with links to its cells.
fn sentence(view: &View<'_>, of: &Sentence) -> Markup {
    html! {
        p {
            (display::keep_together(&of.text))
            @if !of.cells.is_empty() { " " (cells::links(view, &of.cells)) }
        }
    }
}

/// A chart with its title and the same numbers as a table. The figure is one image to a screen reader; the table is
/// outside of it so that it stays readable.
fn plot(view: &View<'_>, plot: &Plot) -> Markup {
    if plot.is_table {
        return html! { h3 { (plot.title) } (plot.image) };
    }
    html! {
        div.chart {
            figure role="img" aria-labelledby=(plot.id) {
                figcaption id=(plot.id) { (plot.title) }
                (plot.image)
            }
            details {
                summary { (view.word(Word::NumbersInTable)) }
                (table(view, &plot.numbers))
            }
        }
    }
}

fn notes(view: &View<'_>, cell: &CellNotes) -> Markup {
    html! {
        div.notes {
            h3 { (cells::link(view, &cell.cell_id, &cell.cell)) }
            ul {
                @for (subject, text, is_foreign) in cell.notes.iter().take(ROWS_MAX) {
                    li {
                        b { (subject) } (view.language.colon())
                        span lang=[is_foreign.then_some("en")] { (display::keep_together(text)) }
                    }
                }
            }
        }
    }
}

/// Why some sections are empty, in one line.
pub(super) fn empty(view: &View<'_>, reasons: &[Word]) -> Markup {
    let texts: Vec<&str> = reasons.iter().map(|reason| view.word(*reason)).collect();
    html! {
        @if !texts.is_empty() {
            p.hint.empty { (view.word(Word::NotDrawn)) (view.language.colon()) (texts.join(" ")) }
        }
    }
}

pub(super) fn checks(view: &View<'_>) -> Markup {
    let checks = &view.result.checks;
    let body = html! {
        @if checks.is_empty() { p.hint { (view.word(Word::NoChecks)) } }
        @else {
            (scrolled(view.language, &html! { table.checks {
                thead { tr {
                    @for word in [Word::Outcome, Word::Check, Word::Found] { th scope="col" { (view.word(word)) } }
                } }
                tbody { @for (check, row) in checks.iter().zip(tables::checks(view).rows) {
                    tr .failed[!check.passed] {
                        td.outcome { (row[0]) }
                        td.name { (row[1]) }
                        td.found lang=[findings::is_foreign(view.language, &check.detail).then_some("en")] {
                            (display::keep_together(&row[2]))
                            @let cells = crate::notes::cells_of(view, &check.detail);
                            @if !cells.is_empty() { " " (cells::links(view, &cells)) }
                        }
                    }
                } }
            } }))
        }
    };
    titled(view.word(Word::ChecksTitle), Some(view.word(Word::ChecksHelp)), &body)
}

pub(super) fn definitions(view: &View<'_>) -> Markup {
    let body = html! {
        dl.definitions {
            @for (term, text) in definitions::all(view) { div { dt { (term) } dd { (text) } } }
        }
    };
    titled(view.word(Word::DefinitionsTitle), None, &body)
}

pub(super) fn reproduce(view: &View<'_>) -> Markup {
    let result = view.result;
    let pretty = |text: serde_json::Result<String>| literal(&text.unwrap_or_else(|error| error.to_string()));
    let body = html! {
        pre.command { code { (result.reproduce) } }
        p { (view.word(Word::Seed)) " " code { (result.spec.seed) } }
        details {
            summary { (view.word(Word::Specification)) }
            pre { code { (pretty(serde_json::to_string_pretty(&result.spec))) } }
        }
        details {
            summary { (view.word(Word::MachineFacts)) }
            pre { code { (pretty(serde_json::to_string_pretty(&result.fingerprint))) } }
        }
    };
    titled(view.word(Word::ReproduceTitle), None, &body)
}

/// A text between tags. Quotes need no escape there, and JSON has many of them.
fn literal(text: &str) -> Markup {
    PreEscaped(text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"))
}
