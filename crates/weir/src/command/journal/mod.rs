//! `weir journal`: the journals of a gateway or an exchange, read without a lock and without changing a byte.

use std::{fs, io, path::Path};

use anyhow::{Context, Result};
use weir_report::{Language, localized};
use weir_servers::journal::workers_in;

use crate::{
    args::{Journal, JournalTask},
    exit::{Exit, UsageError},
};

mod archive;
mod capture;
mod export;
mod moment;
mod print;
mod problem;
mod repair;
mod row;
mod selection;
mod stats;
mod tail;
mod verify;

pub(crate) fn run(journal: &Journal) -> Result<Exit> {
    match &journal.task {
        JournalTask::Print(print) => print::run(print),
        JournalTask::Verify(verify) => verify::run(verify),
        JournalTask::Stats(stats) => stats::run(stats),
        JournalTask::Repair(repair) => repair::run(repair),
        JournalTask::Tail(tail) => tail::run(tail),
        JournalTask::Export(export) => export::run(export),
        JournalTask::Archive(asked) => archive::run(asked),
    }
}

/// The workers whose journals are in a folder. A folder without any is not the one that was meant.
fn workers(directory: &Path, language: Language) -> Result<Vec<u16>> {
    let shown = directory.display();
    match fs::metadata(directory) {
        Ok(found) if found.is_dir() => {}
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(error).with_context(|| shown.to_string());
        }
        _ => return Err(UsageError(no_folder(directory, language)).into()),
    }
    let workers = workers_in(directory).with_context(|| shown.to_string())?;
    if workers.is_empty() {
        return Err(UsageError(no_journal(directory, language)).into());
    }
    Ok(workers)
}

fn no_folder(directory: &Path, language: Language) -> String {
    let shown = directory.display();
    localized!(
        language,
        "{shown} is no folder; name the one that `weir serve gateway` got as --journal-dir",
        "{shown}: 폴더가 아닙니다. `weir serve gateway`에 --journal-dir로 준 폴더를 지정하십시오",
        "{shown}：不是文件夹；请指定 `weir serve gateway` 的 --journal-dir 所用的文件夹",
    )
}

fn no_journal(directory: &Path, language: Language) -> String {
    let shown = directory.display();
    localized!(
        language,
        "{shown} contains no journal; name the folder that `weir serve gateway` got as --journal-dir",
        "{shown}: 저널이 없습니다. `weir serve gateway`에 --journal-dir로 준 폴더를 지정하십시오",
        "{shown}：没有日志；请指定 `weir serve gateway` 的 --journal-dir 所用的文件夹",
    )
}
