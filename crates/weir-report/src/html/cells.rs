//! The table of a study's cells at the end of the page, and links to it from sentences that mention cells.

use maud::{Markup, html};
use weir_record::{effect::Effect, metric::Metric, verdict::Verdict};

use super::scrolled;
use crate::{format, language::localized, metrics, table::ROWS_MAX, view::View, words};

/// Most cells linked from a sentence; further ones are counted.
const LINKS_MAX: usize = 6;

/// Most arms per row.
const ARMS_MAX: usize = 6;

/// The identifier of a cell's row: the cell's own, if that is valid in an address.
fn anchor(view: &View<'_>, id: &str) -> Option<String> {
    let place = view.cells.iter().take(ROWS_MAX).position(|cell| *cell == id)?;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    Some(if id.chars().all(is_plain) { format!("cell-{id}") } else { format!("cell-{place}-") })
}

/// `→ 100 connections · 2 workers, 1,000 connections · 2 workers`, each linked to its row. Parts that all of them
/// share are omitted.
pub(super) fn links(view: &View<'_>, cells: &[String]) -> Markup {
    let there: Vec<String> = cells.iter().filter(|cell| anchor(view, cell).is_some()).cloned().collect();
    let further = there.len().saturating_sub(LINKS_MAX);
    let labels = view.labels_apart(&there);
    let more = localized!(view.language, ", {further} more", ", 외 {further}개", "，另 {further} 个");
    html! {
        @if !there.is_empty() {
            span.to-cells {
                "→ "
                @for (place, (cell, label)) in there.iter().zip(&labels).take(LINKS_MAX).enumerate() {
                    @if place > 0 { ", " }
                    @if let Some(anchor) = anchor(view, cell) { a href=(format!("#{anchor}")) { (label) } }
                }
                @if further > 0 { (more) }
            }
        }
    }
}

/// A cell's label that links to its row.
pub(super) fn link(view: &View<'_>, id: &str, label: &str) -> Markup {
    match anchor(view, id) {
        Some(anchor) => html! { a href=(format!("#{anchor}")) { (label) } },
        None => html! { (label) },
    }
}

/// Every cell with its result for the metric of the study's claim.
pub(super) fn section(view: &View<'_>) -> Markup {
    let metric = view.primary().map_or(Metric::ServerCpuPerMessage, |primary| primary.metric);
    let left_out = view.cells.len().saturating_sub(ROWS_MAX);
    let language = view.language;
    let title = language.choose(["All cells", "모든 조건", "全部条件"]);
    let what = metrics::prose(view, metric);
    let help = localized!(
        language,
        "What sentences above lead to. In each cell: {what} of every arm over that of its baseline. `weir export` has every \
         figure of a cell under its identifier.",
        "위 문장에 나온 조건입니다. 조건마다 비교 대상의 {what}을 기준으로 나눈 값을 표시합니다. 조건의 모든 수치는 `weir export`에서 이 식별자로 찾을 수 있습니다.",
        "上文提到的条件。每个条件给出各方案的{what}与其基线之比。条件的全部数值见 `weir export`，按此标识符列出。",
    );
    html! {
        @if !view.cells.is_empty() {
            section #cells { details {
                summary { h2 { (title) } }
                p.help { (help) }
                (scrolled(language, &html! {
                    table.cells {
                        tbody {
                            @for cell in view.cells.iter().take(ROWS_MAX) {
                                tr id=[anchor(view, cell)] {
                                    th scope="row" { (view.cell_label(cell)) " " code { (cell) } }
                                    td { (found(view, cell, metric)) }
                                }
                            }
                        }
                    }
                }))
                @if left_out > 0 { p.hint { (crate::sentence::left_out(view, left_out)) } }
            } }
        }
    }
}

fn found(view: &View<'_>, cell: &str, metric: Metric) -> Markup {
    let own: Vec<&Effect> = view.compared_in(cell).filter(|it| it.metric == metric).collect();
    let further = own.len().saturating_sub(ARMS_MAX);
    let more = localized!(view.language, "{further} more", "외 {further}개", "另 {further} 个");
    // A cell without a claim has a ratio and no word for it.
    let word = |it: &Effect| match it.verdict {
        Verdict::NoClaim => String::new(),
        verdict => format!(" · {}", view.word(words::verdict(it.metric, verdict))),
    };
    html! {
        @if own.is_empty() { (format::ABSENT) }
        @for it in own.iter().take(ARMS_MAX) {
            p { (it.arm) " / " (it.baseline) " " (metrics::effect(it)) (word(it)) }
        }
        @if further > 0 { p { (more) } }
    }
}
