//! Stored runs of a folder for a history: studies in its folders, and comparisons of commands in its files
//! (`compare-YYYYMMDD-HHMMSS.json`, as `weir compare --out` writes them).

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use weir_judge::history::{Entry, is_finished, of_commands, of_study};
use weir_record::{
    commands::{COMPARISON_VERSION, CommandReport},
    history::{HistoryLack, HistoryLeftOut},
    metric::Metric,
};
use weir_store::{Store, StoreError};

use crate::{run_folder::utc_stamp, stored_folders};

/// Prefix and suffix of the name of a stored comparison.
const COMPARISON: (&str, &str) = ("compare-", ".json");

/// Most comparisons of a folder that are read, the newest by name first.
const COMPARISONS_MAX: usize = 2_000;

/// Largest file of a comparison that is read, in bytes.
const BYTES_MAX: u64 = 64 << 20;

/// Most names of a folder that are read.
const NAMES_MAX: usize = 100_000;

/// Name of a stored comparison that began at this time, in seconds since 1970. If several began within one second,
/// the later names have a number.
pub fn comparison_name(began_unix_s: u64, number: u32) -> String {
    let (begin, end) = COMPARISON;
    let number = if number > 1 { format!("-{number}") } else { String::new() };
    format!("{begin}{}{number}{end}", utc_stamp(began_unix_s))
}

/// What to read from each kind of run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryMetrics {
    /// From studies: their primary comparison, another metric of the same arms, or nothing.
    pub of_studies: OfStudies,
    /// From comparisons of commands; `None` reads nothing.
    pub of_commands: Option<Metric>,
}

/// What to read from studies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfStudies {
    /// The primary comparison.
    Primary,
    /// This metric of its arms.
    Metric(Metric),
    /// They are not read.
    Nothing,
}

impl Default for HistoryMetrics {
    fn default() -> Self {
        Self { of_studies: OfStudies::Primary, of_commands: Some(Metric::CommandCpu) }
    }
}

/// Entries of a folder, or of one file of a comparison.
#[derive(Clone, Debug, Default)]
pub struct FoundRuns {
    /// The entries of the runs.
    pub entries: Vec<Entry>,
    /// Runs that could not be used.
    pub left_out: Vec<HistoryLeftOut>,
    /// Runs that were read.
    pub runs: usize,
    /// Older comparisons that were not read.
    pub unread: usize,
}

impl FoundRuns {
    /// Adds the entries of another folder.
    pub fn add(&mut self, other: Self) {
        self.entries.extend(other.entries);
        self.left_out.extend(other.left_out);
        self.runs += other.runs;
        self.unread += other.unread;
    }

    fn leave_out(&mut self, place: &str, reason: HistoryLack) {
        self.left_out.push(HistoryLeftOut { place: place.to_owned(), reason });
    }
}

/// Reads a run folder of a study, a folder that contains run folders and comparisons, or the file of one comparison.
pub fn read(path: &Path, metrics: &HistoryMetrics) -> io::Result<FoundRuns> {
    let mut found = FoundRuns::default();
    let shown = |path: &Path| path.display().to_string();
    if path.is_file() {
        read_comparison((path, &shown(path)), metrics, &mut found);
        return Ok(found);
    }
    for folder in stored_folders::stores(path)? {
        read_study((&folder, &shown(&folder)), metrics, &mut found);
    }
    let (files, unread) = comparisons(path)?;
    found.unread += unread;
    for file in files {
        read_comparison((&file, &shown(&file)), metrics, &mut found);
    }
    Ok(found)
}

/// Stored comparisons of a folder to be read, the newest by name first, and the number of older ones. Only regular
/// files count.
pub fn comparisons(folder: &Path) -> io::Result<(Vec<PathBuf>, usize)> {
    let (begin, end) = COMPARISON;
    let entries = fs::read_dir(folder)?.flatten().take(NAMES_MAX);
    let is_one = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with(begin) && name.ends_with(end) && entry.file_type().is_ok_and(|kind| kind.is_file())
    };
    let mut found: Vec<PathBuf> = entries.filter(is_one).map(|entry| entry.path()).collect();
    // Sorted without the suffix: a name with a number sorts after the same name without one.
    found.sort_by(|one, other| other.file_stem().cmp(&one.file_stem()));
    let unread = found.len().saturating_sub(COMPARISONS_MAX);
    found.truncate(COMPARISONS_MAX);
    Ok((found, unread))
}

/// Adds the entry of the study in a run folder, under the name to show for it.
pub fn read_study((folder, place): (&Path, &str), metrics: &HistoryMetrics, found: &mut FoundRuns) {
    let metric = match metrics.of_studies {
        OfStudies::Primary => None,
        OfStudies::Metric(metric) => Some(metric),
        OfStudies::Nothing => return,
    };
    let Some(run) = stored_folders::finished(folder) else {
        return found.leave_out(place, study_lack(folder));
    };
    found.runs += 1;
    let began = run.result.period.map(|period| period.began_unix_s);
    found.entries.extend(of_study(&run.result, place, began, metric));
}

/// Why a run cannot be used.
fn study_lack(folder: &Path) -> HistoryLack {
    match Store::open_read_only(folder).and_then(|store| store.brief()) {
        Ok(_) => HistoryLack::Unfinished,
        Err(StoreError::Newer { .. }) => HistoryLack::Newer,
        Err(_) => HistoryLack::Unreadable,
    }
}

/// Adds the entry of a stored comparison, under the name to show for it.
pub fn read_comparison((file, place): (&Path, &str), metrics: &HistoryMetrics, found: &mut FoundRuns) {
    let Some(metric) = metrics.of_commands else { return };
    match comparison(file) {
        Ok(report) if !report.comparisons.iter().any(is_finished) => {
            found.leave_out(place, HistoryLack::Unfinished);
        }
        Ok(report) => {
            found.runs += 1;
            found.entries.extend(of_commands(&report, place, metric));
        }
        Err(reason) => found.leave_out(place, reason),
    }
}

/// A stored comparison.
fn comparison(file: &Path) -> Result<CommandReport, HistoryLack> {
    let mut text = Vec::new();
    let opened = File::open(file).map_err(|_| HistoryLack::Unreadable)?;
    opened.take(BYTES_MAX + 1).read_to_end(&mut text).map_err(|_| HistoryLack::Unreadable)?;
    if text.len() as u64 > BYTES_MAX {
        return Err(HistoryLack::TooLong);
    }
    let version = |text: &[u8]| {
        let value: Version = serde_json::from_slice(text).ok()?;
        Some(value.schema_version)
    };
    match serde_json::from_slice::<CommandReport>(&text) {
        Ok(report) if report.schema_version <= COMPARISON_VERSION => Ok(report),
        _ if version(&text).is_some_and(|version| version > COMPARISON_VERSION) => Err(HistoryLack::Newer),
        _ => Err(HistoryLack::Unreadable),
    }
}

/// Fields that every version of the record has.
#[derive(serde::Deserialize)]
struct Version {
    schema_version: u32,
}

#[cfg(test)]
mod tests {
    use weir_record::commands::{CommandComparison, CommandEnd};

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("weir-history-{name}-{}", std::process::id()));
        // An earlier run of the tests may have had the same process number.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder can be made");
        folder
    }

    #[test]
    fn comparisons_are_found_by_their_names_the_newest_first() {
        let folder = folder("names");
        let names = [comparison_name(0, 1), comparison_name(86_400, 1), comparison_name(86_400, 2)];
        assert_eq!(names[0], "compare-19700101-000000.json");
        assert_eq!(names[2], "compare-19700102-000000-2.json");
        for name in
            names.iter().map(String::as_str).chain(["compare.json", "other-1.json", "compare-x.json.partial"])
        {
            fs::write(folder.join(name), "{}").expect("it can be written");
        }
        fs::create_dir(folder.join("compare-folder.json")).expect("a folder can be made");
        let (found, unread) = comparisons(&folder).expect("it can be read");
        assert_eq!(unread, 0);
        let found: Vec<String> = found
            .iter()
            .map(|path| path.file_name().unwrap_or_default().to_string_lossy().into_owned())
            .collect();
        assert_eq!(found, [names[2].as_str(), &names[1], &names[0]]);
        fs::remove_dir_all(&folder).expect("it can be removed");
    }

    #[test]
    fn what_cannot_be_used_is_named_with_its_reason() {
        let folder = folder("lacks");
        let write = |second: u64, text: &str| {
            fs::write(folder.join(comparison_name(second, 1)), text).expect("it can be written");
        };
        write(3, "{\"schema_version\": 1");
        write(2, "{\"schema_version\": 999, \"other\": true}");
        let comparisons = vec![CommandComparison::default()];
        let report =
            CommandReport { schema_version: COMPARISON_VERSION, comparisons, ..CommandReport::default() };
        write(1, &serde_json::to_string(&report).expect("it serialises"));
        let cut = CommandComparison { ended: CommandEnd::Interrupted, ..CommandComparison::default() };
        let cut = CommandReport { comparisons: vec![cut], ..report };
        write(0, &serde_json::to_string(&cut).expect("it serialises"));
        let study = folder.join("study");
        fs::create_dir(&study).expect("a folder can be made");
        fs::write(study.join(weir_store::FILE_NAME), "no store").expect("it can be written");
        let found = read(&folder, &HistoryMetrics::default()).expect("it can be read");
        let reasons: Vec<HistoryLack> = found.left_out.iter().map(|it| it.reason).collect();
        let expected =
            [HistoryLack::Unreadable, HistoryLack::Unreadable, HistoryLack::Newer, HistoryLack::Unfinished];
        assert_eq!((found.runs, reasons.as_slice()), (1, &expected[..]));
        assert!(found.entries.is_empty(), "nothing was compared");
        let only = read(&folder.join(comparison_name(1, 1)), &HistoryMetrics::default());
        assert_eq!(only.expect("it can be read").runs, 1);
        assert!(read(&folder.join("nowhere"), &HistoryMetrics::default()).is_err());
        fs::remove_dir_all(&folder).expect("it can be removed");
    }
}
