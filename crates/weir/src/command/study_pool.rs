//! `weir study pool`: several stored runs of one study together.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::Result;
use weir_lab::{exit::ExitCode, stored::StoredRun, stored_folders};
use weir_record::run_pool::RunPool;
use weir_report::{Language, localized, run_pool};

use super::report;
use crate::{
    args::{PoolFormat, StudyPool},
    exit::{Exit, UsageError, sentence},
    language, output,
};

/// Fewest runs that can be pooled.
const RUNS_MIN: usize = 2;

pub(crate) fn run(arguments: &StudyPool) -> Result<Exit> {
    let language = language::chosen(arguments.lang.as_deref())?;
    let mut runs = Vec::new();
    for folder in &arguments.runs {
        for run in read_all(folder, language)? {
            let is_known = |(other, _): &(PathBuf, StoredRun)| is_same_folder(other, &run.0);
            if !runs.iter().any(is_known) {
                runs.push(run);
            }
        }
    }
    if let Some(name) = &arguments.study {
        runs.retain(|(_, run)| run.result.spec.name == *name);
    }
    check(&runs, arguments.study.as_deref(), language)?;
    let pool = stored_folders::pooled(&runs);
    print(&pool, &runs, arguments.format, language)?;
    Ok(Exit::Study(ExitCode::of_pool(&pool)))
}

/// Prints a pool in a form.
pub(super) fn print(
    pool: &RunPool,
    runs: &[(PathBuf, StoredRun)],
    format: PoolFormat,
    language: Language,
) -> Result<()> {
    let Some(named) = stored_folders::named(pool, runs) else { return Ok(()) };
    let text = match format {
        PoolFormat::Text => {
            run_pool::terminal(pool, named, language, output::width_columns(), output::has_color())
        }
        PoolFormat::Markdown => run_pool::markdown(pool, named, language),
        PoolFormat::Html => run_pool::html(pool, named, language),
        PoolFormat::Json => serde_json::to_string_pretty(pool)?,
    };
    output::print(&text)
}

fn is_same_folder(one: &Path, other: &Path) -> bool {
    let canonical = |path: &Path| std::fs::canonicalize(path).ok();
    one == other || canonical(one).is_some() && canonical(one) == canonical(other)
}

/// The runs of a folder: its own, or those of the folders in it. A named one must be readable; of several in a folder,
/// an unreadable one is named and left out.
fn read_all(folder: &Path, language: Language) -> Result<Vec<(PathBuf, StoredRun)>> {
    report::refuse_sweep(folder)?;
    let shown = folder.display();
    let found = stored_folders::stores(folder).map_err(|error| {
        UsageError(localized!(
            language,
            "{shown}: {error}; name folders that `weir study` wrote, or a folder of such folders",
            "{shown}: {error}. `weir study`가 만든 폴더나 그런 폴더를 모아 둔 폴더를 지정하십시오",
            "{shown}：{error}；请指定 `weir study` 生成的文件夹，或存放此类文件夹的文件夹",
        ))
    })?;
    if found.is_empty() {
        return Err(UsageError(localized!(
            language,
            "{shown} holds no study, and neither does a folder in it; name folders that `weir study` wrote, or a folder of \
             such folders",
            "{shown} 폴더와 그 하위 폴더에 실험이 없습니다. `weir study`가 만든 폴더나 그런 폴더를 모아 둔 폴더를 지정하십시오",
            "{shown} 及其下的文件夹中都没有实验；请指定 `weir study` 生成的文件夹，或存放此类文件夹的文件夹",
        ))
        .into());
    }
    let is_named = found == [folder.to_path_buf()];
    let mut runs = Vec::new();
    for folder in found {
        match StoredRun::read(&folder) {
            Ok(run) => runs.push((folder, run)),
            Err(error) if is_named => return Err(error.into()),
            Err(error) => {
                let (shown, why) = (folder.display(), sentence(&error.into(), language));
                output::tell(&localized!(
                    language,
                    "left out: {shown}: {why}",
                    "제외: {shown}: {why}",
                    "未计入：{shown}：{why}",
                ));
            }
        }
    }
    Ok(runs)
}

/// Refuses what cannot be pooled: a run alone, and runs of several studies.
fn check(runs: &[(PathBuf, StoredRun)], asked: Option<&str>, language: Language) -> Result<(), UsageError> {
    let mut studies: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, run) in runs {
        *studies.entry(&run.result.spec.name).or_default() += 1;
    }
    if studies.len() > 1 {
        let all = studies.iter().map(|(name, count)| format!("{name} ({count})")).collect::<Vec<_>>();
        let all = all.join(language.list());
        return Err(UsageError(localized!(
            language,
            "these are runs of several studies: {all}; choose one with --study NAME",
            "여러 실험의 실행이 섞여 있습니다: {all}. --study NAME으로 하나를 고르십시오",
            "其中有多项实验的运行：{all}；请用 --study NAME 选择一项",
        )));
    }
    let count = runs.len();
    if count >= RUNS_MIN {
        return Ok(());
    }
    let name = asked.or_else(|| studies.keys().next().copied()).unwrap_or("NAME");
    Err(UsageError(localized!(
        language,
        "runs found: {count}; there is nothing to pool below two, and an interval takes three: `weir study {name} --repeat \
         5 --every 10min` makes more",
        "찾은 실행: {count}회. 종합하려면 두 번 이상, 신뢰구간을 구하려면 세 번 이상 필요합니다. `weir study {name} --repeat 5 --every 10min`으로 더 \
        실행하십시오",
        "找到的运行：{count} 次；合并至少需要两次，给出置信区间需要三次：请用 `weir study {name} --repeat 5 --every 10min` 增加运行",
    )))
}
