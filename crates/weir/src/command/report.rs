//! `weir report`: a study's pages, from its store, or the page of an observation, from its file.

use std::{env, path::Path};

use anyhow::{Context, Result};
use weir_lab::stored;
use weir_record::{study::StudyResult, trial::TrialRecord};
use weir_report::Language;

use super::observe;
use crate::{
    args::Report,
    exit::{Exit, UsageError},
    output,
};

pub(crate) fn run(arguments: &Report) -> Result<Exit> {
    let language = language(arguments.lang.as_deref())?;
    if arguments.run.is_file() {
        return observe::report(&arguments.run, language, arguments.out.as_deref());
    }
    let (result, _) = read(&arguments.run)?;
    write(&result, language, arguments.out.as_deref().unwrap_or(&arguments.run))?;
    Ok(Exit::Ok)
}

/// The language that was given, or else that of the locale.
pub(crate) fn language(code: Option<&str>) -> Result<Language> {
    let Some(code) = code else { return Ok(locale()) };
    code.parse().map_err(|_| UsageError(format!("--lang {code:?} is not known; use en, ko or zh")).into())
}

/// The language that the environment asks for: the first of these variables that says something.
fn locale() -> Language {
    let said = ["LC_ALL", "LC_MESSAGES", "LANG"].iter().filter_map(|name| env::var(name).ok());
    said.into_iter()
        .find(|locale| !locale.is_empty())
        .and_then(|locale| weir_dashboard::accepted(&locale))
        .unwrap_or_default()
}

/// What marked the folder of a study `polling` while that was a sweep of its own.
const SWEEP: &str = "polling.json";

/// Refuses the folder of a sweep, which was no study of the laboratory.
pub(crate) fn refuse_sweep(folder: &Path) -> Result<()> {
    if !folder.join(SWEEP).exists() {
        return Ok(());
    }
    let text = format!(
        "{} holds a sweep, as the study polling was up to commit 96a1a42 of Weir {}; that one reads it, and `weir \
         study polling` measures it again",
        folder.display(),
        env!("CARGO_PKG_VERSION")
    );
    Err(UsageError(text).into())
}

/// The study in a run folder, judged from its blocks: also when its session was killed before it could judge.
pub(crate) fn read(folder: &Path) -> Result<(StudyResult, Vec<TrialRecord>)> {
    refuse_sweep(folder)?;
    Ok(stored::read(folder)?)
}

/// Writes the pages into `folder` and the table to standard output.
pub(crate) fn write(result: &StudyResult, language: Language, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make {}; choose another folder with --out", folder.display()))?;
    output::write_whole(&folder.join("report.html"), &weir_report::html(result, language))?;
    output::write_whole(&folder.join("report.md"), &weir_report::markdown(result, language))?;
    if let Some(page) = weir_report::guidance(result, language) {
        output::write_whole(&folder.join("guidance.md"), &page)?;
    }
    output::print(&weir_report::terminal(result, language, output::width_columns(), output::has_color()))?;
    output::tell(&format!("report: {}", folder.join("report.html").display()));
    Ok(())
}
