//! The sections of the page below the verdict, in reading order.

use maud::{Markup, html};
use weir_record::{study::ArmSummary, verdict::Metric};

use super::{chart, table};
use crate::{
    chart::{self as charts, ARM_STYLES, Figure},
    definitions, display, findings, format, gateway, published, sentence,
    tables::{self, CELLS_MAX},
    view::{METRICS, View},
    ways,
    words::{self, Word},
};

fn section(view: &View<'_>, title: Word, help: Option<Word>, body: &Markup) -> Markup {
    html! {
        section {
            h2 { (view.word(title)) }
            @if let Some(help) = help { p.help { (view.word(help)) } }
            (body)
        }
    }
}

/// Arms with their markers.
fn legend(view: &View<'_>) -> Markup {
    html! {
        ul.legend {
            @for (index, arm) in view.arms.iter().enumerate() {
                li {
                    (charts::swatch(index)) " " (arm)
                    @if view.baseline() == Some(arm) { span.faint { " (" (view.word(Word::Baseline)) ")" } }
                }
            }
        }
    }
}

pub(super) fn comparisons(view: &View<'_>) -> Markup {
    let shown: Vec<Metric> =
        METRICS.into_iter().filter(|metric| !view.comparisons_of(*metric).is_empty()).collect();
    if shown.is_empty() {
        let nothing = html! { p.hint { (view.word(Word::NoComparisons)) } };
        return section(view, Word::ComparisonsTitle, None, &nothing);
    }
    let body = html! {
        (legend(view))
        @for (index, metric) in shown.iter().enumerate() {
            @let numbers = tables::comparisons_of(view, *metric);
            @let id = format!("comparisons-{index}");
            (chart(view, &id, view.word(words::metric(*metric)), &charts::forest(view, *metric), &numbers))
            @let more = view.comparisons_of(*metric).len().saturating_sub(charts::ROWS_MAX);
            @if more > 0 { p.hint { (sentence::left_out(view, more)) } }
        }
        (notes(view))
    };
    section(view, Word::ComparisonsTitle, Some(Word::ComparisonsHelp), &body)
}

fn notes(view: &View<'_>) -> Markup {
    let notes = sentence::notes(view);
    let left_out = notes.len().saturating_sub(tables::ROWS_MAX);
    html! {
        @if !notes.is_empty() {
            ul.notes {
                @for note in notes.iter().take(tables::ROWS_MAX) {
                    li {
                        b { (note.subject(view, words::metric, ", ")) } (view.language.colon())
                        span lang=[note.is_foreign.then_some("en")] { (display::keep_together(&note.text)) }
                    }
                }
            }
        }
        @if left_out > 0 { p.hint { (sentence::left_out(view, left_out)) } }
    }
}

/// Published figures beside the measured ones; nothing for a study without any.
pub(super) fn published(view: &View<'_>) -> Markup {
    if !published::has_claims(view) {
        return html! {};
    }
    section(view, Word::PublishedTitle, Some(Word::PublishedHelp), &table(view, &published::claims(view)))
}

/// The runs of document 001, what handing over costs, and figures per order; nothing for a study of anything else.
pub(super) fn handoff(view: &View<'_>) -> Markup {
    html! {
        @for (index, (title, help, content)) in gateway::sections(view).iter().enumerate() {
            @let body = html! {
                @if index == 0 {
                    @for answer in gateway::answers(view) { p { (display::keep_together(&answer)) } }
                    @if let Some(text) = gateway::crowded(view) { p.hint { (display::keep_together(&text)) } }
                }
                (table(view, content))
            };
            (section(view, *title, Some(*help), &body))
        }
    }
}

/// What each cause of a published difference makes; nothing for a study without such arms.
pub(super) fn attributions(view: &View<'_>) -> Markup {
    if view.result.attributions.is_empty() {
        return html! {};
    }
    let body = table(view, &published::attributions(view));
    section(view, Word::AttributionsTitle, Some(Word::AttributionsHelp), &body)
}

/// Which ways of waiting the machine has; nothing for a study of a few.
pub(super) fn ways(view: &View<'_>) -> Markup {
    if !ways::has_ways(view) {
        return html! {};
    }
    section(view, Word::WaysTitle, Some(Word::WaysHelp), &table(view, &ways::table(view)))
}

/// How connections came about; nothing when no listener lost one.
pub(super) fn listening(view: &View<'_>) -> Markup {
    if view.result.listening.is_empty() {
        return html! {};
    }
    let body = html! {
        @if let Some(ladder) = published::ladder(view) { p { (display::keep_together(&ladder)) } }
        (table(view, &published::listening(view)))
    };
    section(view, Word::ListeningTitle, Some(Word::ListeningHelp), &body)
}

pub(super) fn figures(view: &View<'_>) -> Markup {
    let numbers = tables::figures(view);
    if numbers.rows.is_empty() {
        return section(view, Word::FiguresTitle, None, &html! { p.hint { (view.word(Word::NoFigures)) } });
    }
    let body = html! {
        (legend(view))
        div.pair {
            @for (figure, word, id) in [
                (Figure::ServerCpu, Word::ServerCpu, "figure-server-cpu"),
                (Figure::Throughput, Word::Throughput, "figure-throughput"),
            ] {
                figure role="img" aria-labelledby=(id) {
                    figcaption id=(id) { (view.word(word)) }
                    div.scroll { (charts::bars(view, figure)) }
                }
            }
        }
        @let more = charts::cells_left_out(view);
        @if more > 0 { p.hint { (sentence::left_out(view, more)) } }
        @if view.result.arms.iter().any(|arm| arm.generator_bound) {
            p.hint { "≥: " (view.word(Word::GeneratorBound)) }
        }
        details {
            summary { (view.word(Word::NumbersInTable)) }
            (table(view, &numbers))
        }
    };
    section(view, Word::FiguresTitle, Some(Word::FiguresHelp), &body)
}

pub(super) fn latency(view: &View<'_>) -> Markup {
    let cells = view.latency_cells();
    if cells.is_empty() {
        let nothing = html! { p.hint { (view.word(Word::NoLatency)) } };
        return section(view, Word::LatencyTitle, None, &nothing);
    }
    let body = html! {
        @for (index, cell) in cells.iter().take(CELLS_MAX).enumerate() {
            @let id = format!("latency-{index}");
            (chart(view, &id, &view.cell_heading(cell), &charts::curves(view, cell), &tables::latency(view, cell)))
        }
        @if cells.len() > CELLS_MAX { p.hint { (sentence::left_out(view, cells.len() - CELLS_MAX)) } }
    };
    section(view, Word::LatencyTitle, Some(Word::LatencyHelp), &body)
}

pub(super) fn why(view: &View<'_>) -> Markup {
    let cells = tables::why_cells(view);
    let Some((first, others)) = cells.split_first() else {
        let nothing = html! { p.hint { (view.word(tables::why_absent(view))) } };
        return section(view, Word::WhyTitle, None, &nothing);
    };
    let more = others.len().saturating_sub(CELLS_MAX);
    let others = &others[..others.len() - more];
    let body = html! {
        (why_table(view, first))
        @if !others.is_empty() {
            details {
                summary { (view.word(Word::OtherCells)) }
                @for cell in others { (why_table(view, cell)) }
                @if more > 0 { p.hint { (sentence::left_out(view, more)) } }
            }
        }
    };
    section(view, Word::WhyTitle, Some(Word::WhyHelp), &body)
}

fn why_table(view: &View<'_>, cell: &str) -> Markup {
    let summaries: Vec<&ArmSummary> = view.summaries(cell);
    html! {
        h3 { (view.cell_heading(cell)) }
        div.scroll {
            table.why {
                thead { tr {
                    th scope="col" {}
                    @for summary in &summaries {
                        th scope="col" { (charts::swatch(view.arm_index(&summary.arm))) " " (summary.arm) }
                    }
                } }
                tbody {
                    @for row in tables::why_rows(view, &summaries) {
                        tr {
                            th scope="row" { (row.name) @if let Some(counter) = &row.counter { code { (counter) } } }
                            @for (summary, value) in summaries.iter().zip(&row.values) {
                                td { (bar(view, summary, *value, &row.values)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A number with a bar whose length is its share of the row's largest.
fn bar(view: &View<'_>, summary: &ArmSummary, value: Option<f64>, row: &[Option<f64>]) -> Markup {
    let largest = row.iter().flatten().copied().filter(|value| value.is_finite()).fold(0.0, f64::max);
    let share = value.filter(|value| value.is_finite() && largest > 0.0).map(|value| value / largest * 100.0);
    let class = format!("fill a{}", view.arm_index(&summary.arm) % ARM_STYLES);
    html! {
        span.value { (value.map_or_else(|| format::ABSENT.to_owned(), format::per_message)) }
        span.track { @if let Some(share) = share {
            span class=(class) style=(format!("width:{:.1}%", share.clamp(0.0, 100.0))) {}
        } }
    }
}

pub(super) fn checks(view: &View<'_>) -> Markup {
    let checks = &view.result.checks;
    let body = html! {
        @if checks.is_empty() { p.hint { (view.word(Word::NoChecks)) } }
        @else {
            div.scroll { table.checks {
                thead { tr {
                    @for word in [Word::Outcome, Word::Check, Word::Found] { th scope="col" { (view.word(word)) } }
                } }
                tbody { @for (check, row) in checks.iter().zip(tables::checks(view).rows) {
                    tr .failed[!check.passed] {
                        td.outcome { (row[0]) }
                        td.name { (row[1]) }
                        td.found lang=[findings::is_foreign(view.language, &check.detail).then_some("en")] {
                            (display::keep_together(&row[2]))
                        }
                    }
                } }
            } }
        }
    };
    section(view, Word::ChecksTitle, Some(Word::ChecksHelp), &body)
}

pub(super) fn session(view: &View<'_>) -> Markup {
    if view.result.timeline.is_empty() {
        let nothing = html! { p.hint { (view.word(Word::NoTimeline)) } };
        return section(view, Word::TimelineTitle, None, &nothing);
    }
    let caption = sentence::noise(view).1;
    let more = view.result.timeline.len().saturating_sub(charts::TRIALS_MAX);
    let body = html! {
        (chart(view, "session", &caption, &charts::timeline(view), &tables::timeline(view)))
        @if more > 0 { p.hint { (sentence::left_out(view, more)) } }
    };
    section(view, Word::TimelineTitle, Some(Word::TimelineHelp), &body)
}

pub(super) fn definitions(view: &View<'_>) -> Markup {
    let body = html! {
        dl.definitions {
            @for (term, text) in definitions::all(view) { div { dt { (term) } dd { (text) } } }
        }
    };
    section(view, Word::DefinitionsTitle, None, &body)
}

pub(super) fn reproduce(view: &View<'_>) -> Markup {
    let result = view.result;
    let pretty = |text: serde_json::Result<String>| text.unwrap_or_else(|error| error.to_string());
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
    section(view, Word::ReproduceTitle, None, &body)
}
