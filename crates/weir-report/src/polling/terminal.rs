//! The answer and the tables for a terminal.

use weir_record::sweep::{PollingResult, SweepResult};

use super::{sentence, sheet::Sheet, sheets, texts::Text};
use crate::{
    display::wrap,
    language::Language,
    terminal::{TERMINAL_COLUMNS_MAX, TERMINAL_COLUMNS_MIN},
};

pub(super) fn study(result: &PollingResult, language: Language, width_columns: usize, color: bool) -> String {
    let width = width_columns.clamp(TERMINAL_COLUMNS_MIN, TERMINAL_COLUMNS_MAX);
    let mut out = String::new();
    let badge = sentence::badge(result).of(language);
    bold(&mut out, &format!("{} polling: {badge}", Text::Study.of(language)), color);
    sentence::answer(result, language).iter().for_each(|line| wrapped(&mut out, line, width));
    out.push('\n');
    for (title, detail) in sentence::chips(result, language) {
        wrapped(&mut out, &format!("{title}{}{detail}", language.colon()), width);
    }
    for sweep in &result.sweeps {
        tables(&mut out, sweep, language, width, color);
    }
    if !result.observations.is_empty() {
        out.push('\n');
        bold(&mut out, Text::PublishedTitle.of(language), color);
        lines(&mut out, &without_reasons(sheets::observations(result, language)), width, color);
    }
    for (name, reason) in sheets::missing(result, language) {
        wrapped(
            &mut out,
            &format!("{} · {name}{}{reason}", Text::MissingTitle.of(language), language.colon()),
            width,
        );
    }
    out.push('\n');
    bold(&mut out, Text::EmulatedTitle.of(language), color);
    sentence::notes(result, language).iter().for_each(|note| wrapped(&mut out, note, width));
    out.push('\n');
    wrapped(
        &mut out,
        &format!("{}{}{}", Text::ReproduceTitle.of(language), language.colon(), result.reproduce),
        width,
    );
    out
}

pub(super) fn sweep(sweep: &SweepResult, language: Language, width_columns: usize, color: bool) -> String {
    let width = width_columns.clamp(TERMINAL_COLUMNS_MIN, TERMINAL_COLUMNS_MAX);
    let mut out = String::new();
    tables(&mut out, sweep, language, width, color);
    for missing in &sweep.missing {
        wrapped(
            &mut out,
            &format!(
                "{} · {}{}{}",
                Text::MissingTitle.of(language),
                missing.name,
                language.colon(),
                missing.reason
            ),
            width,
        );
    }
    out.push('\n');
    wrapped(&mut out, sentence::note(sweep).of(language), width);
    out.trim_start().to_owned()
}

fn tables(out: &mut String, sweep: &SweepResult, language: Language, width: usize, color: bool) {
    let (name, detail) = sheets::world(sweep, language);
    out.push('\n');
    bold(out, &name, color);
    wrapped(out, &detail, width);
    for phase in &sweep.phases {
        out.push('\n');
        bold(out, &phase.name, color);
        lines(out, &sheets::methods(sweep, phase, language), width, color);
    }
    for (title, sheet) in [
        (Text::FrontierTitle, without_intervals(sheets::frontier(sweep, language))),
        (Text::PriceTitle, sheets::prices(sweep, language)),
    ] {
        if !sheet.rows.is_empty() {
            out.push('\n');
            bold(out, title.of(language), color);
            lines(out, &sheet, width, color);
        }
    }
}

/// All three figures that decide must fit; their intervals are on the page.
fn without_intervals(mut sheet: Sheet) -> Sheet {
    for cell in sheet.rows.iter_mut().flat_map(|(_, cells)| cells) {
        if let Some((figure, _)) = cell.split_once(" [") {
            *cell = figure.to_owned();
        }
    }
    sheet
}

/// Explanations have no room in a table of a terminal.
fn without_reasons(mut sheet: Sheet) -> Sheet {
    sheet.head.remove(sheets::REASONS);
    sheet.rows.iter_mut().for_each(|(_, cells)| drop(cells.remove(sheets::REASONS)));
    sheet
}

fn lines(out: &mut String, sheet: &Sheet, width: usize, color: bool) {
    for line in sheet.lines(width, color) {
        out.push_str(&line);
        out.push('\n');
    }
}

fn wrapped(out: &mut String, text: &str, width: usize) {
    for (index, line) in wrap(&crate::display::printable(text), width - 2).iter().enumerate() {
        out.push_str(if index == 0 { "" } else { "  " });
        out.push_str(line);
        out.push('\n');
    }
}

fn bold(out: &mut String, text: &str, color: bool) {
    let text = if color { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text.to_owned() };
    out.push_str(&text);
    out.push('\n');
}
