//! What a study can be expected to find, told before it runs, from results that are stored already.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Result;
use weir_judge::power::{self, Expected, Found};
use weir_record::{finding::RoundComponents, machine::Fingerprint, spec::StudySpec, study::StudyResult};
use weir_store::{FILE_NAME, Store};

use super::report;
use crate::exit::UsageError;

/// Most stores of a folder that are looked into, the newest first.
const STORES_MAX: usize = 200;

/// Most of them whose rounds are used.
const RUNS_MAX: usize = 10;

/// Most lines about single comparisons.
const LINES_MAX: usize = 12;

/// What the schedule can be expected to find, in lines; and why nothing is known where that is so.
pub(super) fn lines(
    spec: &StudySpec,
    fingerprint: &Fingerprint,
    earlier: Option<&Path>,
) -> Result<Vec<String>> {
    let runs = earlier.map(|folder| runs(folder, spec, fingerprint)).transpose()?.unwrap_or_default();
    let mut expected = power::expected(spec, &runs);
    expected.retain(|it| it.found.is_some());
    if expected.is_empty() {
        let why = match earlier {
            None => "--earlier DIR takes them from stored results".to_owned(),
            Some(folder) => {
                format!("{} has no rounds of these cells and arms on a machine like this", folder.display())
            }
        };
        return Ok(vec![format!(
            "What this schedule can find is not known: that takes earlier rounds of its cells; {why}."
        )]);
    }
    let more = expected.len().saturating_sub(LINES_MAX);
    let mut lines: Vec<String> = expected.iter().take(LINES_MAX).filter_map(line).collect();
    if more > 0 {
        lines.push(format!("and {more} further comparisons"));
    }
    lines.extend(power::components(spec, &runs).iter().take(LINES_MAX).map(scatter));
    Ok(lines)
}

/// What earlier rounds scatter by, and what would do best in their time.
fn scatter(found: &RoundComponents) -> String {
    let RoundComponents { arm, permutations, rounds, permutations_best, rounds_best, .. } = found;
    let [within, between] = [found.within, found.between].map(|deviation| 100.0 * deviation);
    format!(
        "earlier rounds of {arm} scatter by {within:.1} % within and {between:.1} % between rounds; in the time of {rounds} \
         rounds of {permutations} permutations, {rounds_best} of {permutations_best} would do best"
    )
}

fn line(expected: &Expected) -> Option<String> {
    let Expected { cell_id, arm, baseline, units, found } = expected;
    let Found { detectable, earlier, is_self } = (*found)?;
    let of = if is_self { "the first arm against itself" } else { "these arms" };
    Some(format!(
        "{cell_id}: {units} rounds or blocks of {arm} against {baseline} are expected to find {:.1} % in server CPU four \
         times of five, as a claim that stands alone (from {earlier} earlier ones of {of})",
        100.0 * detectable
    ))
}

/// Earlier runs that have a cell of the study and are of a machine like this one.
fn runs(folder: &Path, spec: &StudySpec, fingerprint: &Fingerprint) -> Result<Vec<StudyResult>> {
    let is_of_use = |folder: &PathBuf| {
        // What cannot be read tells nothing.
        let Ok(study) = Store::open_read_only(folder).and_then(|store| store.study()) else { return false };
        let has_cell = |cell| study.spec.cells.iter().any(|own| power::is_same_cell(own, cell));
        power::is_alike(&study.fingerprint, fingerprint) && spec.cells.iter().any(has_cell)
    };
    let stores = stores(folder)?.into_iter().filter(is_of_use).take(RUNS_MAX);
    Ok(stores.filter_map(|store| Some(report::read(&store).ok()?.0)).collect())
}

/// The folder itself where it holds a study, and else those in it that do, the newest first.
fn stores(folder: &Path) -> Result<Vec<PathBuf>> {
    let has_store = |folder: &PathBuf| folder.join(FILE_NAME).is_file();
    let own = folder.to_path_buf();
    if has_store(&own) {
        return Ok(vec![own]);
    }
    let entries = fs::read_dir(folder).map_err(|error| {
        let why = "name a folder that `weir study` wrote, or one of such folders";
        UsageError(format!("--earlier {}: {error}; {why}", folder.display()))
    })?;
    let found = entries.flatten().map(|entry| entry.path()).filter(has_store);
    // One whose time cannot be read counts as the oldest. Names part those of one time.
    let changed_at = |folder: &Path| fs::metadata(folder.join(FILE_NAME)).and_then(|it| it.modified()).ok();
    let mut found: Vec<_> = found.map(|folder| (changed_at(&folder), folder)).collect();
    found.sort_by(|one, other| other.cmp(one));
    found.truncate(STORES_MAX);
    Ok(found.into_iter().map(|(_, folder)| folder).collect())
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
