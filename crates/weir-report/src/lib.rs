//! Views of a judged study: one HTML page, Markdown, a terminal table, CSV, and the verdict in one sentence.
//!
//! Pure text output: no I/O, no clock, no randomness, so the same result always gives the same bytes. Nothing is
//! judged or estimated here; numbers are arranged, rounded for reading and drawn. Values that are not finite are left
//! out of charts and printed as a dash.
//!
//! ```
//! use weir_record::study::StudyResult;
//! use weir_report::Language;
//!
//! fn verdict_table(result: &StudyResult) -> String {
//!     weir_report::terminal(result, Language::Korean, 80, false)
//! }
//! ```

mod added_cost;
mod aggregate;
mod answer;
mod cause;
mod change;
mod chart;
mod chart_page;
mod check_words;
mod cited;
pub mod commands;
mod connection_costs;
mod contrasts;
mod cpu_account;
mod csv;
mod definitions;
mod display;
mod doctor;
mod evidence;
mod evidence_csv;
mod findings;
mod format;
mod frontier;
mod goals;
mod guidance;
pub mod history;
mod html;
mod io_models;
mod kernels;
mod language;
mod maps;
mod markdown;
mod metrics;
mod notes;
pub mod observation;
mod origin;
mod overview;
mod pidstat;
mod published;
mod ring_options;
pub mod run_pair;
pub mod run_pool;
mod rung;
mod saturation;
mod section;
mod sections;
mod sentence;
mod slices_csv;
mod strace;
mod table;
mod tables;
mod terminal;
mod threads;
mod titles;
mod view;
mod wait_series;
mod ways_to_wait;
mod when;
mod words;

use std::path::Path;

use maud::Markup;
use weir_record::{
    answer::StudyAnswer,
    doctor::Diagnosis,
    finding::{Finding, MessageKind},
    metric::Metric,
    running::{CellSoFar, TrackPoint},
    study::StudyResult,
    text::Text,
    trial::TrialRecord,
    verdict::Verdict,
};

pub use chart::Listed;
pub use chart_page::{ChartPage, chart_page, chart_page_in, chart_svg, has_chart};
pub use display::{columns, keep_together, pad_end, pad_start, pieces, plain_name, shell_word, spaced, wrap};
pub use html::{PICTURE_SCRIPT, Theme, picture_script};
pub use language::{Language, UnknownLanguage, assert_translations_alike};

/// One self-contained page: no network, light and dark, printable. Its only script saves charts as PNG.
pub fn html(result: &StudyResult, language: Language) -> String {
    page(&view::View::new(result, language), (&Markup::default(), None))
}

/// The same page of a study in a run folder, which it names.
pub fn html_of_run(result: &StudyResult, language: Language, folder: &Path) -> String {
    page(&view::View::new(result, language).in_folder(folder), (&Markup::default(), None))
}

/// The same page with a header, if it is one of several. The server has [`PICTURE_SCRIPT`] at this address.
pub fn html_of_run_below(
    result: &StudyResult,
    language: Language,
    folder: &Path,
    (above, script): (&Markup, &str),
) -> String {
    page(&view::View::new(result, language).in_folder(folder), (above, Some(script)))
}

fn page(view: &view::View<'_>, around: (&Markup, Option<&str>)) -> String {
    let (shown, empty) = sections::all(view);
    html::page(view, around, chart::answer(view).as_ref(), (&shown, &empty))
}

/// A page about something other than one study, in the style of the report.
pub fn document(language: Language, title: &str, body: &Markup) -> String {
    html::document(language, title, body)
}

/// The same blocks as the page in GitHub-flavoured Markdown, charts as tables.
pub fn markdown(result: &StudyResult, language: Language) -> String {
    markdown::document(&view::View::new(result, language))
}

/// The answer in at most [`COMMENT_LINES_MAX`] lines of Markdown, for a comment on a change.
pub fn comment(result: &StudyResult, language: Language) -> String {
    markdown::comment(&view::View::new(result, language))
}

/// The same of a study in a run folder, which it names.
pub fn markdown_of_run(result: &StudyResult, language: Language, folder: &Path) -> String {
    markdown::document(&view::View::new(result, language).in_folder(folder))
}

/// Guidance from the study for someone who must choose, as one page of Markdown to share; `None` without a map.
pub fn guidance(result: &StudyResult, language: Language) -> Option<String> {
    let view = view::View::new(result, language);
    let section::Content::Shown(section) = guidance::section_alone(&view) else { return None };
    Some(markdown::page_of(&view, &section))
}

/// The same as one page to print, with the regions of the map drawn; `None` without a map.
pub fn guidance_html(result: &StudyResult, language: Language) -> Option<String> {
    guidance::page(&view::View::new(result, language))
}

/// The answer on one screen of a terminal: question, verdict, machine and time, the primary comparison, and what limits
/// it, in at most [`ANSWER_LINES_MAX`] lines; longer only if the question and the verdict alone are.
pub fn terminal_answer(
    result: &StudyResult,
    language: Language,
    width_columns: usize,
    color: bool,
) -> String {
    terminal::answer(&view::View::new(result, language), width_columns, color)
}

/// The whole report for a terminal. `width_columns` is limited to the range from [`TERMINAL_COLUMNS_MIN`] to
/// [`TERMINAL_COLUMNS_MAX`]; `color` adds ANSI escapes and never carries additional information.
pub fn terminal(result: &StudyResult, language: Language, width_columns: usize, color: bool) -> String {
    terminal::table(&view::View::new(result, language), width_columns, color)
}

/// Every figure in long form, one per line, with names that do not depend on a language.
pub fn csv(result: &StudyResult) -> String {
    csv::long_form(result)
}

/// Every slice of a study whose arms took turns, one per line; only the header if there are none.
pub fn slices_csv(trials: &[TrialRecord]) -> String {
    slices_csv::lines(trials)
}

/// A finding of the laboratory, in one language.
pub fn finding(found: &Finding, language: Language) -> String {
    findings::localized(language, found)
}

/// The findings of `weir doctor`, as a table in lines of at most `columns_max` columns.
pub fn doctor(diagnoses: &[Diagnosis], language: Language, columns_max: usize) -> String {
    doctor::table(diagnoses, language, columns_max)
}

/// The remedy of a finding of `weir doctor`; a command is unchanged, so that it can be copied.
pub fn remedy(remedy: &Finding, language: Language) -> String {
    doctor::remedy(language, remedy)
}

/// Every reading of every slice of evidence, one per line; only the header if a study has none.
pub fn evidence_csv(trials: &[TrialRecord]) -> String {
    evidence_csv::lines(trials)
}

/// The threads of every whole trial in the format of `pidstat -w -t`, a reading for each trial's window; only the
/// header if no trial has any. A line that begins with `#` names the trial that follows.
pub fn pidstat(result: &StudyResult, trials: &[TrialRecord]) -> String {
    pidstat::lines(&result.fingerprint, trials)
}

/// The word of the study's verdict, and the class for its colour in a page.
pub fn verdict(result: &StudyResult, language: Language) -> (&'static str, &'static str) {
    let view = view::View::new(result, language);
    (view.own_verdict(), html::verdict_class(view.verdict()))
}

/// The study's verdict; none while planned blocks have not run.
pub fn shown_verdict(result: &StudyResult) -> Verdict {
    view::View::new(result, Language::English).verdict()
}

/// The primary comparison for a list of studies, in figures that do not depend on a language; `None` without one.
pub fn listed(result: &StudyResult) -> Option<Listed> {
    chart::listed(&view::View::new(result, Language::English))
}

/// How the estimate of a study that runs narrowed; `plan` is the study without trials. Empty with fewer than two
/// points.
pub fn running_track(plan: &StudyResult, points: &[TrackPoint], language: Language) -> Markup {
    chart::running_track(&view::View::new(plan, language), points)
}

/// The cells of a study that runs as a table that fills; `plan` is the study without trials. Empty for one cell.
pub fn running_cells(plan: &StudyResult, cells: &[CellSoFar], language: Language) -> Markup {
    chart::running_cells(&view::View::new(plan, language), cells)
}

/// A cell of a study in a few words; its identifier if the study has none of it.
pub fn cell_label(plan: &StudyResult, cell_id: &str, language: Language) -> String {
    view::View::new(plan, language).cell_label(cell_id)
}

/// A text by the study's author: in the given language if it was translated, otherwise in English.
pub fn localized(text: &Text, language: Language) -> &str {
    titles::localized(text, language)
}

/// A moment of seconds since 1970, as pages write it: `2026-11-29 07:10`, in UTC.
pub fn minute(unix_s: u64) -> String {
    when::minute(unix_s)
}

/// A metric inside a sentence about messages of a kind: `server CPU per request`.
pub fn metric(metric: Metric, kind: MessageKind, language: Language) -> String {
    metrics::of_kind(metric, kind, language)
}

/// The answer as plain data in English, which JSON documents begin with.
pub fn answer(result: &StudyResult) -> StudyAnswer {
    answer::in_short(&view::View::new(result, Language::English))
}

/// The primary verdict in one sentence.
pub fn sentence(result: &StudyResult, language: Language) -> String {
    sentence::headline(&view::View::new(result, language))
}

pub use markdown::COMMENT_LINES_MAX;
pub use terminal::{TERMINAL_COLUMNS_MAX, TERMINAL_COLUMNS_MIN, answer::ANSWER_LINES_MAX};
