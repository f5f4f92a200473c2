//! Differences per message: system calls, switches and the engine's counters, as a table with a bar in each field.

use maud::{Markup, html};
use weir_record::study::ArmSummary;

use super::canvas::{arm_class, swatch};
use crate::{
    format,
    html::scrolled,
    section::{Content, Plot, Section},
    sentence,
    tables::{self, CELLS_MAX, WhyRow},
    view::View,
    words::Word,
};

/// The section: the first cell open, the others folded.
pub(crate) fn why(view: &View<'_>) -> Content {
    let cells = tables::why_cells(view);
    if cells.is_empty() {
        return Content::Nothing(if view.result.arms.is_empty() { Word::NoFigures } else { Word::NoWhy });
    }
    let more = cells.len().saturating_sub(CELLS_MAX);
    let plot = |(index, cell): (usize, &&str)| {
        let summaries = view.summaries(cell);
        Plot {
            id: format!("why-{cell}"),
            title: view.cell_heading(cell),
            image: draw(view, &summaries),
            numbers: tables::why(view, &summaries),
            is_table: true,
            is_half: false,
            is_folded: index > 0,
        }
    };
    Content::Shown(Box::new(Section {
        plots: cells.iter().take(CELLS_MAX).enumerate().map(plot).collect(),
        left_out: (more > 0).then(|| sentence::left_out(view, more)),
        ..Section::new(Word::WhyTitle, Word::WhyHelp)
    }))
}

fn draw(view: &View<'_>, summaries: &[&ArmSummary]) -> Markup {
    let (same, different): (Vec<WhyRow>, Vec<WhyRow>) =
        tables::why_rows(view, summaries).into_iter().partition(WhyRow::is_same);
    html! {
        @if !different.is_empty() { (table(view, summaries, &different)) }
        @if !same.is_empty() {
            details {
                summary { (sentence::rows_alike(view, same.len())) }
                (table(view, summaries, &same))
            }
        }
    }
}

fn table(view: &View<'_>, summaries: &[&ArmSummary], rows: &[WhyRow]) -> Markup {
    html! {
        (scrolled(view.language, &html! {
            table.why {
                thead { tr {
                    td {}
                    @for summary in summaries {
                        th scope="col" { (swatch(view.arm_index(&summary.arm))) " " (summary.arm) }
                    }
                } }
                tbody {
                    @for row in rows {
                        tr {
                            th scope="row" { (row.name) @if let Some(counter) = &row.counter { code { (counter) } } }
                            @for (summary, value) in summaries.iter().zip(&row.values) {
                                td data-arm=(summary.arm) { (bar(view, summary, *value, &row.values)) }
                            }
                        }
                    }
                }
            }
        }))
    }
}

/// A number with a bar whose length is its share of the row's largest.
fn bar(view: &View<'_>, summary: &ArmSummary, value: Option<f64>, row: &[Option<f64>]) -> Markup {
    let largest = row.iter().flatten().copied().filter(|value| value.is_finite()).fold(0.0, f64::max);
    let share = value.filter(|value| value.is_finite() && largest > 0.0).map(|value| value / largest * 100.0);
    let class = format!("fill {}", arm_class(view.arm_index(&summary.arm)));
    html! {
        span.value { (value.map_or_else(|| format::ABSENT.to_owned(), format::per_message)) }
        span.track { @if let Some(share) = share {
            span class=(class) style=(format!("width:{:.1}%", share.clamp(0.0, 100.0))) {}
        } }
    }
}
