//! Views of the study `polling` and of a single sweep: page, Markdown and terminal. As everywhere in this crate nothing
//! is judged here; [`sentence`] puts what was judged into words.

mod draw;
mod markdown;
mod page;
mod sentence;
mod sheet;
mod sheets;
mod terminal;
mod texts;

use weir_record::sweep::{PollingResult, SweepResult};

use crate::language::Language;

/// One self-contained page, as [`crate::html`] makes for other studies.
pub fn polling_html(result: &PollingResult, language: Language) -> String {
    page::page(result, language)
}

/// The same in GitHub-flavoured Markdown, charts as tables.
pub fn polling_markdown(result: &PollingResult, language: Language) -> String {
    markdown::document(result, language)
}

/// The answer and the tables for a terminal.
pub fn polling_terminal(
    result: &PollingResult,
    language: Language,
    width_columns: usize,
    color: bool,
) -> String {
    terminal::study(result, language, width_columns, color)
}

/// The tables of one sweep for a terminal.
pub fn sweep_terminal(result: &SweepResult, language: Language, width_columns: usize, color: bool) -> String {
    terminal::sweep(result, language, width_columns, color)
}
