//! The sections of the page below the verdict.

use maud::{Markup, PreEscaped, html};

use super::{cells, figure, scrolled, table};
use crate::{
    cited::Sentence,
    definitions, display, findings,
    section::{CellNotes, Layer, Plot, Section},
    sentence,
    table::{ROWS_MAX, Table},
    tables,
    view::View,
    when,
    words::Word,
};

/// Most words of an explanation that stands below its title; a longer one is folded.
const HELP_WORDS_MAX: usize = 24;

/// Most rows of a table that is not folded, among the findings.
const OPEN_ROWS_MAX: usize = 8;

/// A section with a title that can be linked. Reference is folded: a link to it, or to something in it, unfolds it.
fn titled(view: &View<'_>, (id, layer): (&str, Layer), (title, help): (&str, &str), body: &Markup) -> Markup {
    let id = Some(id).filter(|id| !id.is_empty());
    let heading = html! {
        h2 { (title) @if let Some(id) = id { " " a.here href=(format!("#{id}")) aria-label=(title) { "#" } } }
    };
    html! {
        section id=[id] {
            @match layer {
                Layer::Findings => { (heading) (explanation(view, help)) (body) }
                Layer::Reference => details {
                    summary { h2 { (title) } }
                    @if !help.is_empty() { p.help { (help) } }
                    (body)
                },
            }
        }
    }
}

/// How to read a section.
fn explanation(view: &View<'_>, help: &str) -> Markup {
    // Han characters are words of about two letters.
    let letters = help.chars().filter(|letter| !letter.is_ascii()).count();
    let words = help.split_whitespace().count().max(letters / 2);
    html! {
        @if help.is_empty() {}
        @else if words <= HELP_WORDS_MAX { p.help { (help) } }
        @else { details.how { summary { (view.word(Word::HowToRead)) } p.help { (help) } } }
    }
}

/// What is known beside the answer: further figures, how small an effect the run finds, and what to do next.
pub(super) fn beside(view: &View<'_>) -> Markup {
    let lines = [
        sentence::beside(view),
        Some(sentence::sensitivity(view)),
        when::among(view),
        sentence::next_step(view),
    ];
    let lines: Vec<String> = lines.into_iter().flatten().filter(|line| !line.is_empty()).collect();
    let body = html! { @for line in &lines { p { (display::keep_together(line)) } } };
    html! {
        @if !lines.is_empty() {
            (titled(view, ("beside", Layer::Findings), (view.word(Word::BesideTitle), ""), &body))
        }
    }
}

/// A section of the list.
pub(super) fn section(view: &View<'_>, section: &Section) -> Markup {
    let (folded, open): (Vec<&Plot>, Vec<&Plot>) = section.plots.iter().partition(|plot| plot.is_folded);
    let is_open = |one: &Table| {
        let is_short = section.layer == Layer::Reference || one.rows.len() <= OPEN_ROWS_MAX;
        section.plots.is_empty() && one.charts.is_empty() && is_short
    };
    let body = html! {
        @for one in &section.sentences { (cited(view, one)) }
        @if let Some(legend) = &section.legend { (legend) }
        div .pair[open.iter().any(|plot| plot.is_half)] { @for one in &open { (plot(view, one)) } }
        @if !folded.is_empty() {
            details {
                summary { (view.word(Word::MoreFigures)) " (" (folded.len()) ")" }
                @for one in &folded { (plot(view, one)) }
            }
        }
        @for one in &section.tables {
            @if let Some(title) = &one.title { h3 { (title) } }
            @for one in &one.sentences { (cited(view, one)) }
            @if !one.charts.is_empty() { div.pair { @for chart in &one.charts { (figure(chart)) } } }
            @if is_open(one) { (table(view, one)) }
            @else if section.plots.is_empty() {
                details { summary { (view.word(Word::NumbersInTable)) } (table(view, one)) }
            } @else { details { summary { (view.word(Word::FurtherNumbers)) } (table(view, one)) } }
        }
        @if let Some(left_out) = &section.left_out { p.hint { (left_out) } }
        @if !section.notes.is_empty() {
            details {
                summary { (view.word(Word::NotesByCell)) " (" (section.notes.len()) ")" }
                @for cell in &section.notes { (notes(view, cell)) }
            }
        }
    };
    let text = (section.title.localized(view), section.help.localized(view));
    titled(view, (section.id, section.layer), text, &body)
}

/// A sentence with links to its cells.
fn cited(view: &View<'_>, of: &Sentence) -> Markup {
    html! {
        p {
            (display::keep_together(&of.text))
            @if !of.cells.is_empty() { " " (cells::links(view, &of.cells)) }
        }
    }
}

/// A chart with its title and the same numbers as a table. The figure is one image to a screen reader; the table is
/// outside of it so that it stays readable.
pub(super) fn plot(view: &View<'_>, plot: &Plot) -> Markup {
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
    let text = (view.word(Word::ChecksTitle), view.word(Word::ChecksHelp));
    titled(view, ("checks", Layer::Reference), text, &body)
}

pub(super) fn definitions(view: &View<'_>) -> Markup {
    let body = html! {
        dl.definitions {
            @for (term, text) in definitions::all(view) { div { dt { (term) } dd { (text) } } }
        }
    };
    titled(view, ("definitions", Layer::Reference), (view.word(Word::DefinitionsTitle), ""), &body)
}

pub(super) fn reproduce(view: &View<'_>) -> Markup {
    let result = view.result;
    let pretty = |text: serde_json::Result<String>| literal(&text.unwrap_or_else(|error| error.to_string()));
    let body = html! {
        pre.command tabindex="0" { code { (result.reproduce) } }
        p { (view.word(Word::Seed)) " " code { (result.spec.seed) } }
        details {
            summary { (view.word(Word::Specification)) }
            pre tabindex="0" { code { (pretty(serde_json::to_string_pretty(&result.spec))) } }
        }
        details {
            summary { (view.word(Word::MachineFacts)) }
            pre tabindex="0" { code { (pretty(serde_json::to_string_pretty(&result.fingerprint))) } }
        }
    };
    titled(view, ("reproduce", Layer::Findings), (view.word(Word::ReproduceTitle), ""), &body)
}

/// A text between tags. Quotes need no escape there, and JSON has many of them.
fn literal(text: &str) -> Markup {
    PreEscaped(text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"))
}
