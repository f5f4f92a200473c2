//! `weir study diff`: a stored run against an earlier one.

use std::path::Path;

use anyhow::Result;
use weir_judge::progress::Progress;
use weir_lab::{exit::ExitCode, stored::StoredRun, study_file};
use weir_record::{goal::ComparisonSpec, run_pair::PairObstacle, spec::StudySpec};
use weir_report::{Language, localized, run_pair};

use super::{report, study};
use crate::{
    args::{PairFormat, StudyDiff},
    exit::{Exit, NoBaseline, UsageError, sentence},
    language, output,
};

pub(crate) fn run(arguments: &StudyDiff) -> Result<Exit> {
    let language = language::chosen(arguments.lang.as_deref())?;
    let one = baseline(&arguments.one, language)?;
    let other = read(&arguments.other)?;
    let thresholds = thresholds(&other.result.spec, &arguments.fail_if)?;
    let (pair, other) = (other.against(&one, &thresholds), other.result);
    let text = match arguments.format {
        PairFormat::Text => {
            run_pair::terminal(&pair, &other, language, output::width_columns(), output::has_color())
        }
        PairFormat::Markdown => run_pair::markdown(&pair, &other, language),
        PairFormat::Json => serde_json::to_string_pretty(&pair)?,
    };
    output::print(&text)?;
    let code = ExitCode::of_pair(&pair);
    let is_tolerant = arguments.inconclusive_passes;
    let answered = pair.thresholds.iter().zip(&pair.answers);
    Ok(Exit::Study(study::after_thresholds(answered, is_tolerant, code, language)))
}

fn read(folder: &Path) -> Result<StoredRun> {
    report::refuse_sweep(folder)?;
    Ok(StoredRun::read(folder)?)
}

/// The earlier run, which must exist and be finished.
fn baseline(folder: &Path, language: Language) -> Result<StoredRun, NoBaseline> {
    let shown = folder.display();
    let named = |reason: String| {
        NoBaseline(localized!(
            language,
            "no baseline in {shown}: {reason}",
            "{shown}: 비교할 기준이 없습니다. {reason}",
            "{shown} 中没有可对比的基线：{reason}",
        ))
    };
    let run = read(folder).map_err(|error| named(sentence(&error, language)))?;
    let Progress { blocks_done, blocks, .. } = run.progress;
    if blocks_done < blocks {
        let found = PairObstacle::OneUnfinished { blocks_done, blocks };
        let why = run_pair::obstacle(&found, language);
        return Err(named(localized!(
            language,
            "{why}; finish it with `weir study --resume {shown}`",
            "{why}. `weir study --resume {shown}`으로 끝까지 실행하십시오",
            "{why}；请用 `weir study --resume {shown}` 完成",
        )));
    }
    Ok(run)
}

/// Thresholds on changes. Absolute figures have none, because figures of two times are not compared.
fn thresholds(spec: &StudySpec, lines: &[String]) -> Result<Vec<ComparisonSpec>, UsageError> {
    let language = language::of_command_line();
    let usage = |why: &str| UsageError(format!("--fail-if {why}"));
    let all = study_file::thresholds(spec, lines).map_err(|mistake| usage(mistake.localized(language)))?;
    if all.iter().any(|asked| asked.to.is_empty()) {
        let why = language.choose([
            "absolute figures of two runs are not compared; write METRIC ratio > NUMBER",
            "두 실행의 절대 수치는 비교하지 않습니다. METRIC ratio > NUMBER로 쓰십시오",
            "不比较两次运行的绝对数值；请写 METRIC ratio > NUMBER",
        ]);
        return Err(usage(why));
    }
    Ok(all)
}
