//! The rows of a series as texts: one for each run.

use weir_record::{
    history::{HistoryRun, HistorySeries},
    origin::Origin,
};

use super::{common_branch, letter, mark, number};
use crate::{
    display::{printable, truncate},
    format,
    language::Language,
    origin::{commit, labels},
    when, words,
};

/// Columns of a branch.
const BRANCH_COLUMNS_MAX: usize = 20;

/// The table of a series.
pub(super) struct Cells {
    pub(super) head: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

/// Columns that no run has anything in are left out.
pub(super) fn table(series: &HistorySeries, language: Language) -> Cells {
    let columns = columns(series);
    Cells {
        head: columns.iter().map(|(title, _)| language.choose(*title).to_owned()).collect(),
        rows: series
            .runs
            .iter()
            .map(|run| columns.iter().map(|(_, cell)| cell(series, run, language)).collect())
            .collect(),
    }
}

type Column = ([&'static str; 3], fn(&HistorySeries, &HistoryRun, Language) -> String);

fn columns(series: &HistorySeries) -> Vec<Column> {
    let any = |has: fn(&HistoryRun) -> bool| series.runs.iter().any(has);
    let mut columns: Vec<Column> = vec![
        (["date (UTC)", "날짜(UTC)", "日期（UTC）"], |_, run, _| date(run)),
        (["commit", "커밋", "提交"], |_, run, _| commit(&run.origin)),
    ];
    if common_branch(series).is_none() && any(|run| run.origin.branch.is_some()) {
        columns.push((["branch", "브랜치", "分支"], |_, run, _| branch(&run.origin)));
    }
    if any(|run| !run.origin.labels.is_empty()) {
        columns.push((["labels", "라벨", "标签"], |_, run, _| labels(&run.origin)));
    }
    if series.stretches.len() > 1 {
        columns.push((["ref", "참조", "参照"], |_, run, _| letter(run.stretch)));
    }
    columns.push((["effect", "효과", "效应"], |series, run, _| number(series, Some(run.effect))));
    if any(|run| run.links > 1) {
        columns.push((["against the reference", "참조 대비", "相对参照"], |series, run, _| {
            let links = if run.links > 1 { format!(" ×{}", run.links) } else { String::new() };
            format!("{}{links}", number(series, run.from_reference))
        }));
    }
    columns.push((["verdict", "판정", "判定"], |series, run, language| {
        let word = words::verdict(series.metric, run.verdict).text(language);
        format!("{word} {}", mark(run.change)).trim_end().to_owned()
    }));
    columns
}

/// When a run began.
pub(super) fn date(run: &HistoryRun) -> String {
    run.began_unix_s.map_or_else(|| format::ABSENT.to_owned(), when::minute)
}

fn branch(origin: &Origin) -> String {
    let branch = origin.branch.as_deref().unwrap_or(format::ABSENT);
    truncate(&printable(branch), BRANCH_COLUMNS_MAX)
}
