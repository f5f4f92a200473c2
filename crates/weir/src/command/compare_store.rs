//! Comparisons in a folder of results: one file each, `compare-YYYYMMDD-HHMMSS.json`, beside the folders of studies.
//! `weir history` and `weir dashboard` read them.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};
use weir_lab::stored_history::comparison_name;
use weir_record::commands::CommandReport;
use weir_report::{Language, localized};

use crate::output;

/// Most comparisons that begin within one second.
const SAME_SECOND_MAX: u32 = 100;

/// Most single runs that are stored. With more, only the conclusions are stored.
const RUNS_MAX: usize = 50_000;

/// Makes the folder, and checks that it can be written, before there is anything to write.
pub(super) fn prepare(folder: &Path) -> Result<()> {
    let tried = fs::create_dir_all(folder)
        .and_then(|()| output::begin_beside(&folder.join("compare")))
        .and_then(|(partial, _)| fs::remove_file(partial));
    tried.with_context(|| cannot(folder))
}

fn cannot(folder: &Path) -> String {
    format!("--out: cannot write to {}; choose another folder with --out", folder.display())
}

/// Stores a comparison in a new file, and returns its path.
pub(super) fn store(folder: &Path, report: &CommandReport, language: Language) -> Result<()> {
    let text = serde_json::to_string(&bounded(report))? + "\n";
    let path =
        new_file(folder, report.started_unix_ns / 1_000_000_000, &text).with_context(|| cannot(folder))?;
    let (path, folder) = (path.display(), folder.display());
    output::tell(&localized!(
        language,
        "stored in {path}; weir history {folder} shows it beside others",
        "{path}에 저장했습니다. weir history {folder}으로 다른 결과와 함께 볼 수 있습니다",
        "已保存到 {path}；可用 weir history {folder} 与其他结果一起查看",
    ));
    Ok(())
}

/// The report with its runs, unless they are too many.
fn bounded(report: &CommandReport) -> CommandReport {
    let mut report = report.clone();
    let runs: usize = report.comparisons.iter().map(|it| it.runs.len()).sum();
    if runs > RUNS_MAX {
        report.comparisons.iter_mut().for_each(|it| it.runs.clear());
    }
    report
}

/// Writes a file under the first free name of that moment: whole, or not at all.
fn new_file(folder: &Path, began_unix_s: u64, text: &str) -> io::Result<PathBuf> {
    let (partial, mut file) = output::begin_beside(&folder.join("compare"))?;
    let written = write(&mut file, text).and_then(|()| {
        let names = (1..=SAME_SECOND_MAX).map(|number| folder.join(comparison_name(began_unix_s, number)));
        named_first(&partial, names)
    });
    if written.is_err() {
        // This process made the file, so it may remove it. If that fails, the error that is reported is worse.
        let _ = fs::remove_file(&partial);
    }
    written
}

fn write(file: &mut File, text: &str) -> io::Result<()> {
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Gives a file the first of these names that is free.
fn named_first(partial: &Path, mut names: impl Iterator<Item = PathBuf>) -> io::Result<PathBuf> {
    let named =
        names.find_map(|name| match renameat_with(CWD, partial, CWD, &name, RenameFlags::NOREPLACE) {
            Ok(()) => Some(Ok(name)),
            Err(Errno::EXIST) => None,
            // Some file systems do not know the flag.
            Err(Errno::INVAL | Errno::NOSYS) if name.exists() => None,
            Err(Errno::INVAL | Errno::NOSYS) => Some(fs::rename(partial, &name).map(|()| name)),
            Err(other) => Some(Err(other.into())),
        });
    named.unwrap_or_else(|| Err(io::ErrorKind::AlreadyExists.into()))
}

#[cfg(test)]
mod tests {
    use weir_record::commands::{CommandComparison, CommandRun};

    use super::*;

    #[test]
    fn comparisons_of_one_second_have_a_file_each_and_none_is_replaced() {
        let folder = std::env::temp_dir().join(format!("weir-compare-store-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        prepare(&folder.join("below")).expect("it can be made");
        let report = CommandReport { started_unix_ns: 5_000_000_000, ..CommandReport::default() };
        for seed in 1..=3 {
            store(&folder, &CommandReport { seed, ..report.clone() }, Language::English)
                .expect("it is stored");
        }
        let seeds: Vec<u64> = (1..=3)
            .map(|number| {
                let text = fs::read_to_string(folder.join(comparison_name(5, number))).expect("it is there");
                serde_json::from_str::<CommandReport>(&text).expect("it is one").seed
            })
            .collect();
        assert_eq!(seeds, [1, 2, 3]);
        let names = fs::read_dir(&folder).expect("it can be read").count();
        assert_eq!(names, 4, "nothing else is left");
        fs::remove_dir_all(&folder).expect("it can be removed");
    }

    #[test]
    fn of_too_many_runs_none_is_stored() {
        let of = |count: usize| {
            let comparison = CommandComparison {
                runs: vec![CommandRun::default(); count],
                ..CommandComparison::default()
            };
            let report = CommandReport { comparisons: vec![comparison], ..CommandReport::default() };
            bounded(&report).comparisons[0].runs.len()
        };
        assert_eq!([of(RUNS_MAX), of(RUNS_MAX + 1)], [RUNS_MAX, 0]);
    }
}
