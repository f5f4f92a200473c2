//! The page: one file without scripts or outside resources. Sections are in `sections.rs`.

mod sections;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use weir_record::verdict::Verdict;

use crate::{
    display, sentence,
    tables::{self, Table},
    titles,
    view::View,
    words::{self, Word},
};

const STYLE: &str = include_str!("style.css");

/// The document.
pub(crate) fn page(view: &View<'_>) -> String {
    let result = view.result;
    let title = format!(
        "{} {}{}{}",
        view.word(Word::StudyOf),
        result.spec.name,
        view.language.colon(),
        view.verdict_word(result.verdict)
    );
    let document = html! {
        (DOCTYPE)
        html lang=(view.language.tag()) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) "body{font-family:" (PreEscaped(view.language.fonts())) "}" }
            }
            body {
                main {
                    header.top {
                        p.study { (view.word(Word::StudyOf)) " " b { (result.spec.name) } }
                        p.asks { (titles::told(&result.spec.title, view.language)) }
                    }
                    (verdict_card(view))
                    (chips(view))
                    (missing_arms(view))
                    (sections::comparisons(view))
                    (sections::handoff(view))
                    (sections::published(view))
                    (sections::attributions(view))
                    (sections::ways(view))
                    (sections::figures(view))
                    (sections::latency(view))
                    (sections::why(view))
                    (sections::listening(view))
                    (sections::checks(view))
                    (sections::session(view))
                    (sections::definitions(view))
                    (sections::reproduce(view))
                }
            }
        }
    };
    document.into_string()
}

fn verdict_class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "good",
        Verdict::Slower => "bad",
        Verdict::Equivalent => "even",
        Verdict::Inconclusive | Verdict::NotComparable | Verdict::NoClaim => "doubt",
    }
}

fn verdict_card(view: &View<'_>) -> Markup {
    let verdict = view.result.verdict;
    let absolute = sentence::absolute(view);
    let sensitivity = sentence::sensitivity(view);
    html! {
        section.card.(verdict_class(verdict)) aria-labelledby="verdict" {
            p.badge {
                span.sign aria-hidden="true" { (words::verdict_sign(verdict)) }
                " " (view.verdict_word(verdict))
            }
            h1 #verdict { (display::keep_together(&sentence::headline(view))) }
            ul.absolute { @for line in &absolute { li { (display::keep_together(line)) } } }
            @if !sensitivity.is_empty() { p.sensitivity { (display::keep_together(&sensitivity)) } }
        }
    }
}

fn chips(view: &View<'_>) -> Markup {
    html! {
        ul.chips {
            @for (title, detail) in tables::chips(view) {
                li { b { (title) } @if !detail.is_empty() { span { (detail) } } }
            }
        }
    }
}

fn missing_arms(view: &View<'_>) -> Markup {
    html! {
        @if !view.result.missing_arms.is_empty() {
            section.missing {
                h2 { (view.word(Word::MissingTitle)) }
                dl {
                    @for arm in &view.result.missing_arms {
                        dt { (arm.name) }
                        dd {
                            @let (reason, is_foreign) = view.term(&arm.reason);
                            p lang=[is_foreign.then_some("en")] { (display::keep_together(&reason)) }
                            @if let Some(unlock) = &arm.unlock {
                                p { (view.word(Word::Unlock)) (view.language.colon()) code { (unlock) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A chart with its title and the same numbers as a table. The figure is one image to a screen reader; the table
/// stands outside it so that it stays readable.
fn chart(view: &View<'_>, id: &str, title: &str, image: &Markup, numbers: &Table) -> Markup {
    html! {
        div.chart {
            figure role="img" aria-labelledby=(id) {
                figcaption id=(id) { (title) }
                div.scroll { (image) }
            }
            details {
                summary { (view.word(Word::NumbersInTable)) }
                (table(view, numbers))
            }
        }
    }
}

fn table(view: &View<'_>, content: &Table) -> Markup {
    html! {
        div.scroll {
            table {
                thead {
                    tr { @for (column, title) in content.head.iter().enumerate() {
                        th scope="col" .number[column >= content.text_columns] { (title) }
                    } }
                }
                tbody {
                    @for row in &content.rows {
                        tr { @for (column, cell) in row.iter().enumerate() {
                            td .number[column >= content.text_columns] { (cell) }
                        } }
                    }
                }
            }
            @if content.left_out > 0 { p.hint { (sentence::left_out(view, content.left_out)) } }
        }
    }
}
