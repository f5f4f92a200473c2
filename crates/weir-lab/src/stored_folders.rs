//! Folders with stored studies: which of them hold a run, and which runs lie beside one.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use weir_judge::{
    pool::{self, PlacedRun, is_same_group},
    progress::Progress,
};
use weir_record::{
    finding::Finding,
    run_pool::{AmongRuns, RunPool},
    study::StudyResult,
};
use weir_store::{FILE_NAME, Store};

use crate::stored::StoredRun;

/// Most stores of a folder that are read, the newest first.
const STORES_MAX: usize = 200;

/// Most earlier runs that a run is compared with, the newest first.
const EARLIER_MAX: usize = 20;

/// Whether a folder is a run folder.
fn has_store(folder: &Path) -> bool {
    folder.join(FILE_NAME).is_file()
}

/// The folder itself if it holds a study; otherwise its subfolders that do, the newest first.
pub fn stores(folder: &Path) -> io::Result<Vec<PathBuf>> {
    if has_store(folder) {
        return Ok(vec![folder.to_path_buf()]);
    }
    let found = fs::read_dir(folder)?.flatten().map(|entry| entry.path()).filter(|it| has_store(it));
    // A folder whose time cannot be read counts as the oldest. Names break ties.
    let changed_at = |folder: &Path| fs::metadata(folder.join(FILE_NAME)).and_then(|it| it.modified()).ok();
    let mut found: Vec<_> = found.map(|folder| (changed_at(&folder), folder)).collect();
    found.sort_by(|one, other| other.cmp(one));
    found.truncate(STORES_MAX);
    Ok(found.into_iter().map(|(_, folder)| folder).collect())
}

/// Records how a run compares with earlier runs of its study beside its folder, if there are any.
pub fn set_among(run: &mut StoredRun, folder: &Path) {
    run.result.among_runs = among(run, folder);
}

/// How a run compares with earlier runs beside it. Unreadable runs are left out.
fn among(run: &StoredRun, folder: &Path) -> Option<AmongRuns> {
    run.result.primary?;
    let began = run.result.period?.began_unix_s;
    let own = fs::canonicalize(folder).ok()?;
    let is_earlier = |other: &PathBuf| {
        let Ok(store) = Store::open_read_only(other) else { return false };
        let (study, period) = (store.study(), store.period(None));
        let is_alike = study.is_ok_and(|study| {
            study.spec.name == run.result.spec.name
                && is_same_group(&study.fingerprint, &run.result.fingerprint)
        });
        is_alike && period.is_ok_and(|it| it.is_some_and(|period| period.began_unix_s <= began))
    };
    let beside = stores(own.parent()?).ok()?.into_iter().filter(|other| *other != own).filter(is_earlier);
    let earlier: Vec<StoredRun> = beside.filter_map(|folder| finished(&folder)).take(EARLIER_MAX).collect();
    let placed = |run| PlacedRun { run, place: "" };
    pool::among(placed(run.run()), &earlier.iter().map(|it| placed(it.run())).collect::<Vec<_>>())
}

/// A finished run as it was judged when it ended. Only runs by the same build of Weir are compared, so judging the
/// trials again would give the same result. That is done if the stored result has records of another version.
pub fn finished(folder: &Path) -> Option<StoredRun> {
    let store = Store::open_read_only(folder).ok()?;
    store.result_brief().ok()??;
    let run = match store.result().ok()? {
        Some(result) => StoredRun { progress: progress(&result)?, result },
        None => StoredRun::read(folder).ok()?,
    };
    run.progress.is_finished().then_some(run)
}

/// Progress of a run when it was judged.
fn progress(result: &StudyResult) -> Option<Progress> {
    result.checks.iter().find_map(|check| match check.detail {
        Finding::Schedule { blocks_done, blocks, blocks_to_repeat, has_near_state, .. } => {
            Some(Progress { blocks_done, blocks, blocks_to_repeat, has_near_state })
        }
        _ => None,
    })
}

/// Judged runs together, each with its folder.
pub fn pooled(runs: &[(PathBuf, StoredRun)]) -> RunPool {
    let places: Vec<String> = runs.iter().map(|(folder, _)| folder.display().to_string()).collect();
    let placed = runs.iter().zip(&places).map(|((_, run), place)| PlacedRun { run: run.run(), place });
    pool::pool(&placed.collect::<Vec<_>>())
}

/// The run whose names a view of the pool uses: the last that counts, or else the last.
pub fn named<'a>(pool: &RunPool, runs: &'a [(PathBuf, StoredRun)]) -> Option<&'a StudyResult> {
    let counts = pool.runs.iter().rev().find(|run| run.left_out.is_none()).or(pool.runs.last())?;
    let is_it = |(folder, _): &&(PathBuf, StoredRun)| folder.display().to_string() == counts.place;
    runs.iter().find(is_it).map(|(_, run)| &run.result)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn the_newest_stores_are_those_that_changed_last_whatever_their_names() {
        let all = std::env::temp_dir().join(format!("weir-earlier-{}", std::process::id()));
        let begun = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
        for (hours, name) in [(2, "a"), (0, "b"), (1, "c")] {
            let folder = all.join(name);
            fs::create_dir_all(&folder).expect("a folder");
            let store = fs::File::create(folder.join(FILE_NAME)).expect("a file");
            store.set_modified(begun + Duration::from_secs(3_600 * hours)).expect("its time is set");
        }
        let names: Vec<_> = stores(&all)
            .expect("it can be read")
            .iter()
            .filter_map(|folder| folder.file_name().map(|name| name.to_string_lossy().into_owned()))
            .collect();
        fs::remove_dir_all(&all).expect("the folder can be removed");
        assert_eq!(names, ["a", "c", "b"]);
    }
}
