//! `weir history`: results of stored studies and comparisons, by commit.

use std::path::{Path, PathBuf};

use anyhow::Result;
use weir_judge::history::{self, Asked};
use weir_lab::{
    stored_history::{self, FoundRuns, HistoryMetrics, OfStudies},
    study_file,
};
use weir_report::{Language, localized};

use super::{origin, study::RESULTS};
use crate::{
    args::{History, HistoryFormat},
    exit::{Exit, UsageError},
    language, output,
};

pub(crate) fn run(arguments: &History) -> Result<Exit> {
    let language = language::chosen(arguments.lang.as_deref())?;
    let asked = Asked {
        name: arguments.study.clone(),
        branch: arguments.branch.clone(),
        labels: origin::labels(&arguments.label)?.into_iter().collect(),
        runs: usize::try_from(arguments.limit).unwrap_or_default(),
    };
    let metrics = metrics(arguments.metric.as_deref())?;
    let mut found = FoundRuns::default();
    let results = [PathBuf::from(RESULTS)];
    let folders = if arguments.folders.is_empty() { &results[..] } else { &arguments.folders };
    for folder in folders {
        found.add(read(folder, &metrics, language)?);
    }
    let all = found.runs;
    let mut history = history::history(found.entries, found.left_out, &asked);
    history.results_unread = u32::try_from(found.unread).unwrap_or(u32::MAX);
    if history.series.is_empty() && !matches!(arguments.format, HistoryFormat::Json | HistoryFormat::Csv) {
        return Err(nothing(folders, all, language).into());
    }
    output::print(&match arguments.format {
        HistoryFormat::Text => weir_report::history::terminal(&history, language, output::width_columns()),
        HistoryFormat::Markdown => weir_report::history::markdown(&history, language),
        HistoryFormat::Csv => weir_report::history::csv(&history),
        HistoryFormat::Json => serde_json::to_string_pretty(&history)?,
    })?;
    Ok(Exit::Ok)
}

/// The filter. A name may be that of a metric of studies, of one of commands, or of both.
fn metrics(name: Option<&str>) -> Result<HistoryMetrics> {
    let Some(name) = name else { return Ok(HistoryMetrics::default()) };
    let found = study_file::metrics_named(name);
    let [of_studies, of_commands] = found.map_err(|mistake| {
        UsageError(format!("--metric: {}", mistake.localized(language::of_command_line())))
    })?;
    Ok(HistoryMetrics { of_studies: of_studies.map_or(OfStudies::Nothing, OfStudies::Metric), of_commands })
}

fn read(folder: &Path, metrics: &HistoryMetrics, language: Language) -> Result<FoundRuns, UsageError> {
    stored_history::read(folder, metrics).map_err(|error| {
        let shown = folder.display();
        UsageError(localized!(
            language,
            "{shown}: {error}; name a folder with runs of studies, or one that `weir compare --out` wrote",
            "{shown}: {error}. 실험 결과가 있는 폴더나 `weir compare --out`으로 저장한 폴더를 지정하십시오",
            "{shown}：{error}；请指定存有实验结果的文件夹，或 `weir compare --out` 保存的文件夹",
        ))
    })
}

/// The error that there is nothing to show, and its remedy.
fn nothing(folders: &[PathBuf], runs: usize, language: Language) -> UsageError {
    let shown = folders.iter().map(|it| it.display().to_string()).collect::<Vec<_>>().join(language.list());
    UsageError(match runs {
        0 => localized!(
            language,
            "{shown}: there is no finished run; `weir compare OLD NEW --out {shown}` stores one",
            "{shown}: 끝난 실행이 없습니다. `weir compare OLD NEW --out {shown}`으로 저장할 수 있습니다",
            "{shown}：没有已完成的运行；可用 `weir compare OLD NEW --out {shown}` 保存",
        ),
        runs => localized!(
            language,
            "{shown}: none of {runs} runs is of what was asked for; leave --study, --branch, --label or --metric out",
            "{shown}: 실행 {runs}회 중 조건에 맞는 것이 없습니다. --study, --branch, --label, --metric을 빼 보십시오",
            "{shown}：{runs} 次运行中没有符合条件的；请去掉 --study、--branch、--label 或 --metric",
        ),
    })
}
