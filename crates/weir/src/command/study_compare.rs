//! `weir study compare`: a stored run against an earlier one.

use std::path::Path;

use anyhow::Result;
use weir_judge::{
    compare::{Run, compare},
    progress::Progress,
};
use weir_lab::{exit::ExitCode, file};
use weir_record::{goal::ComparisonSpec, run_pair::PairObstacle, spec::StudySpec, study::StudyResult};
use weir_report::{Language, run_pair};

use super::{report, study};
use crate::{
    args::{PairFormat, StudyCompare},
    exit::{Exit, NoBaseline, UsageError},
    output,
};

pub(crate) fn run(arguments: &StudyCompare) -> Result<Exit> {
    let language = report::language(&arguments.lang)?;
    let (one, progress) = baseline(&arguments.one)?;
    let (other, other_progress) = read(&arguments.other)?;
    let thresholds = thresholds(&other.spec, &arguments.fail_if)?;
    let before = Run { result: &one, progress: &progress };
    let after = Run { result: &other, progress: &other_progress };
    let pair = compare(before, after, &thresholds);
    let text = match arguments.format {
        PairFormat::Text => {
            run_pair::terminal(&pair, &other, language, output::width_columns(), output::has_color())
        }
        PairFormat::Markdown => run_pair::markdown(&pair, &other, language),
        PairFormat::Json => serde_json::to_string_pretty(&pair)?,
    };
    output::print(&text)?;
    let code = ExitCode::of_pair(&pair);
    Ok(Exit::Study(study::after_thresholds(&pair.answers, arguments.inconclusive_passes, code)))
}

fn read(folder: &Path) -> Result<(StudyResult, Progress)> {
    let (result, trials) = report::read(folder)?;
    let progress = Progress::of(&result.spec, &trials.iter().collect::<Vec<_>>(), &result.missing_arms);
    Ok((result, progress))
}

/// The earlier run, which must be there and finished.
fn baseline(folder: &Path) -> Result<(StudyResult, Progress), NoBaseline> {
    let named = |reason: String| NoBaseline(format!("no baseline in {}: {reason}", folder.display()));
    let (result, progress) = read(folder).map_err(|error| named(format!("{error:#}")))?;
    let Progress { blocks_done, blocks, .. } = progress;
    if blocks_done < blocks {
        let found = PairObstacle::OneUnfinished { blocks_done, blocks };
        let why = run_pair::obstacle(&found, Language::English);
        return Err(named(format!("{why}; finish it with `weir study --resume {}`", folder.display())));
    }
    Ok((result, progress))
}

/// Thresholds on changes. A figure alone has none: figures of two times are not compared.
fn thresholds(spec: &StudySpec, lines: &[String]) -> Result<Vec<ComparisonSpec>, UsageError> {
    let usage = |why: String| UsageError(format!("--fail-if {why}"));
    let all = file::thresholds(spec, lines).map_err(usage)?;
    if all.iter().any(|asked| asked.to.is_empty()) {
        let why = "absolute figures of two runs are not compared; write METRIC ratio > NUMBER";
        return Err(usage(why.to_owned()));
    }
    Ok(all)
}
