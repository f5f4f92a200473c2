//! The results file of a sweep: a line of JSON with the plan, then a line for each finished part.
//!
//! A line is written whole before the next part begins, so a sweep that was killed loses what was under way and no
//! more. A last line without its end is what a kill leaves: it is cut off when the sweep goes on. A file that never was
//! a sweep's is not touched, and one sweep at a time writes to a file: it holds a lock on it (`flock(2)`).

use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};
use serde::{Deserialize, Serialize};
use weir_record::{
    SCHEMA_VERSION,
    sweep::{SweepPart, SweepPlan},
};

/// Parts a file may have; a sweep of the longest kind has a few thousand.
pub const PARTS_MAX: usize = 1_000_000;
/// Bytes of one line, at most; a part with as many intervals as are kept of a phase has some 40 MB.
pub const LINE_BYTES_MAX: u64 = 128 << 20;

/// What the first line begins with, whichever version wrote it.
const BEGINNING: &[u8] = b"{\"schema_version\":";

/// What is wrong with a results file.
#[derive(Debug, thiserror::Error)]
pub enum ResultsFileError {
    /// It cannot be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line is no part of a sweep.
    #[error("{}:{line}: not a part of a sweep: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Why.
        reason: String,
    },
    /// It belongs to another plan.
    #[error("{} holds a sweep over other phases or another source; choose another file with --out", path.display())]
    OtherPlan {
        /// The file.
        path: PathBuf,
    },
    /// Another version of the records wrote it.
    #[error("{} has records of version {found}, and these are of {SCHEMA_VERSION}; choose another file with --out", path.display())]
    OtherVersion {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// Another sweep writes to it.
    #[error("{} is being written by another sweep; wait until that has ended, or choose another place with --out", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// It is there and nobody asked to go on.
    #[error("{} exists; go on with --resume, or choose another file with --out", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
}

#[derive(Serialize, Deserialize)]
struct Header {
    schema_version: u32,
    plan: SweepPlan,
}

/// A results file that parts are appended to.
#[derive(Debug)]
pub struct ResultsFile {
    path: PathBuf,
    file: File,
}

impl ResultsFile {
    /// Begins a new file.
    pub fn create(path: &Path, plan: &SweepPlan) -> Result<Self, ResultsFileError> {
        let file = OpenOptions::new().write(true).create_new(true).open(path).map_err(|source| {
            if source.kind() == io::ErrorKind::AlreadyExists {
                ResultsFileError::Exists { path: path.to_owned() }
            } else {
                ResultsFileError::Io { action: "make", path: path.to_owned(), source }
            }
        })?;
        let mut results = Self::locked(path, file)?;
        results.line(&Header { schema_version: SCHEMA_VERSION, plan: plan.clone() })?;
        Ok(results)
    }

    /// Two sweeps that append at once would measure the same parts twice and break each other's lines.
    fn locked(path: &Path, file: File) -> Result<Self, ResultsFileError> {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { path: path.to_owned(), file }),
            Err(Errno::WOULDBLOCK) => Err(ResultsFileError::Busy { path: path.to_owned() }),
            Err(error) => {
                let (path, source) = (path.to_owned(), error.into());
                Err(ResultsFileError::Io { action: "lock", path, source })
            }
        }
    }

    /// Goes on with a file, or begins it when there is none. The parts in it are those of `plan`: the same world,
    /// source, phases and interval; seeds and methods may be others, so that a plan can grow.
    pub fn resume(path: &Path, plan: &SweepPlan) -> Result<(Self, Vec<SweepPart>), ResultsFileError> {
        if !path.exists() {
            return Ok((Self::create(path, plan)?, Vec::new()));
        }
        let wrap = |action| move |source| ResultsFileError::Io { action, path: path.to_owned(), source };
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(wrap("open"))?;
        // Before it is read: what another sweep appends afterwards would be cut off or measured again.
        let mut results = Self::locked(path, file)?;
        let stored = parse(path, &results.file)?;
        if let Some(found) = stored.version.filter(|found| *found != SCHEMA_VERSION) {
            return Err(ResultsFileError::OtherVersion { path: path.to_owned(), found });
        }
        if stored.plan.as_ref().is_some_and(|stored| !is_same_sweep(stored, plan)) {
            return Err(ResultsFileError::OtherPlan { path: path.to_owned() });
        }
        results.file.set_len(stored.whole_bytes).map_err(wrap("cut"))?;
        results.file.seek(SeekFrom::End(0)).map_err(wrap("go on with"))?;
        if stored.plan.is_none() {
            results.line(&Header { schema_version: SCHEMA_VERSION, plan: plan.clone() })?;
        }
        Ok((results, stored.parts))
    }

    /// Appends a finished part.
    pub fn append(&mut self, part: &SweepPart) -> Result<(), ResultsFileError> {
        self.line(part)
    }

    fn line(&mut self, value: &impl Serialize) -> Result<(), ResultsFileError> {
        let mut write = || {
            let mut line = serde_json::to_vec(value)?;
            line.push(b'\n');
            self.file.write_all(&line)
        };
        write().map_err(|source| ResultsFileError::Io { action: "write to", path: self.path.clone(), source })
    }
}

impl Drop for ResultsFile {
    /// Closing alone would do it too late: a child that another thread has just forked holds a copy of the descriptor
    /// until it executes its program.
    fn drop(&mut self) {
        // It fails only for what is no lock.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// The plan and the parts of a file; the plan is absent when the file ended before it.
pub fn read(path: &Path) -> Result<(Option<SweepPlan>, Vec<SweepPart>), ResultsFileError> {
    let file = File::open(path).map_err(|source| ResultsFileError::Io {
        action: "open",
        path: path.to_owned(),
        source,
    })?;
    parse(path, &file).map(|stored| (stored.plan, stored.parts))
}

struct Stored {
    version: Option<u32>,
    plan: Option<SweepPlan>,
    parts: Vec<SweepPart>,
    /// Bytes up to the end of the last whole line.
    whole_bytes: u64,
}

fn parse(path: &Path, file: &File) -> Result<Stored, ResultsFileError> {
    let mut stored = Stored { version: None, plan: None, parts: Vec::new(), whole_bytes: 0 };
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let mut bounded = (&mut reader).take(LINE_BYTES_MAX + 1);
        let length = bounded.read_until(b'\n', &mut line).map_err(|source| ResultsFileError::Io {
            action: "read",
            path: path.to_owned(),
            source,
        })?;
        let malformed =
            |reason: String| ResultsFileError::Malformed { path: path.to_owned(), line: number, reason };
        if length as u64 > LINE_BYTES_MAX {
            return Err(malformed(format!("it has more than {LINE_BYTES_MAX} bytes")));
        }
        if line.last() != Some(&b'\n') {
            // Of another file nothing may be cut off.
            if number == 1 && !may_be_ours(&line) {
                return Err(malformed("it begins as none does".to_owned()));
            }
            break;
        }
        if number == 1 {
            let header: Header =
                serde_json::from_slice(&line).map_err(|error| malformed(error.to_string()))?;
            (stored.version, stored.plan) = (Some(header.schema_version), Some(header.plan));
        } else if stored.parts.len() < PARTS_MAX {
            stored.parts.push(serde_json::from_slice(&line).map_err(|error| malformed(error.to_string()))?);
        } else {
            return Err(malformed(format!("more than {PARTS_MAX} parts")));
        }
        stored.whole_bytes += length as u64;
    }
    Ok(stored)
}

/// Whether this is the first line of a results file, or what a kill left of one.
fn may_be_ours(line: &[u8]) -> bool {
    let common = line.len().min(BEGINNING.len());
    line[..common] == BEGINNING[..common]
}

fn is_same_sweep(stored: &SweepPlan, plan: &SweepPlan) -> bool {
    stored.world == plan.world
        && stored.source == plan.source
        && stored.phases == plan.phases
        && stored.interval_ns == plan.interval_ns
}

#[cfg(test)]
mod tests {
    use std::fs;

    use weir_record::sweep::{PartPhase, WaitingFigures};

    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("weir-sweep-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn file(&self) -> PathBuf {
            self.0.join("parts.jsonl")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn part(seed: u64) -> SweepPart {
        let figures = Some(WaitingFigures { operations: seed, miss_rate: 0.1, ..WaitingFigures::default() });
        let phases = vec![PartPhase { name: "Job1".into(), figures, intervals: Vec::new() }];
        SweepPart { method: "poll".into(), seed, phases, failure: None }
    }

    #[test]
    fn what_was_appended_is_read_back_and_the_file_goes_on() {
        let folder = Folder::new("append");
        let plan = SweepPlan { source: "model".into(), ..SweepPlan::default() };
        let mut file = ResultsFile::create(&folder.file(), &plan).unwrap();
        file.append(&part(1)).unwrap();
        drop(file);
        let (mut file, parts) = ResultsFile::resume(&folder.file(), &plan).unwrap();
        assert_eq!(parts, [part(1)]);
        file.append(&part(2)).unwrap();
        let (stored, parts) = read(&folder.file()).unwrap();
        assert_eq!((stored, parts), (Some(plan.clone()), vec![part(1), part(2)]));
        assert!(matches!(ResultsFile::create(&folder.file(), &plan), Err(ResultsFileError::Exists { .. })));
    }

    #[test]
    fn a_file_cut_anywhere_keeps_its_whole_lines() {
        let folder = Folder::new("cut");
        let plan = SweepPlan::default();
        let mut file = ResultsFile::create(&folder.file(), &plan).unwrap();
        file.append(&part(1)).unwrap();
        file.append(&part(2)).unwrap();
        drop(file);
        let whole = fs::read(folder.file()).unwrap();
        for length in 0..whole.len() {
            fs::write(folder.file(), &whole[..length]).unwrap();
            let (mut file, parts) = ResultsFile::resume(&folder.file(), &plan).unwrap();
            let ends = whole[..length].iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(parts.len(), ends.saturating_sub(1), "{length} bytes");
            file.append(&part(9)).unwrap();
            let (_, parts) = read(&folder.file()).unwrap();
            assert_eq!(parts.last(), Some(&part(9)), "{length} bytes");
        }
    }

    #[test]
    fn a_file_that_never_was_a_sweeps_is_not_touched() {
        let folder = Folder::new("foreign");
        for content in [&b"a diary without an end of line"[..], b"{\"schema\": 1}", b"[", b"\n", b"{}\n"] {
            fs::write(folder.file(), content).unwrap();
            let error = ResultsFile::resume(&folder.file(), &SweepPlan::default()).unwrap_err();
            assert!(error.to_string().contains("parts.jsonl:1: not a part of a sweep"), "{error}");
            assert_eq!(fs::read(folder.file()).unwrap(), content);
        }
    }

    #[test]
    fn one_sweep_at_a_time_writes_to_a_file() {
        let folder = Folder::new("busy");
        let plan = SweepPlan::default();
        let mut first = ResultsFile::create(&folder.file(), &plan).unwrap();
        first.append(&part(1)).unwrap();
        let error = ResultsFile::resume(&folder.file(), &plan).unwrap_err();
        assert!(matches!(error, ResultsFileError::Busy { .. }), "{error}");
        assert!(error.to_string().contains("parts.jsonl is being written by another sweep"), "{error}");
        assert!(error.to_string().contains("--out"), "{error}");
        // Nothing of it was cut, and it can be read meanwhile.
        first.append(&part(2)).unwrap();
        assert_eq!(read(&folder.file()).unwrap().1, [part(1), part(2)]);
        drop(first);
        let (mut second, parts) = ResultsFile::resume(&folder.file(), &plan).unwrap();
        assert_eq!(parts.len(), 2);
        assert!(matches!(ResultsFile::resume(&folder.file(), &plan), Err(ResultsFileError::Busy { .. })));
        second.append(&part(3)).unwrap();
    }

    #[test]
    fn another_plan_and_a_broken_line_are_told_with_the_way_out() {
        let folder = Folder::new("other");
        let plan = SweepPlan { source: "model".into(), ..SweepPlan::default() };
        drop(ResultsFile::create(&folder.file(), &plan).unwrap());
        let other = SweepPlan { source: "trace".into(), ..SweepPlan::default() };
        let error = ResultsFile::resume(&folder.file(), &other).unwrap_err();
        assert!(error.to_string().contains("--out"), "{error}");
        let mut text = fs::read_to_string(folder.file()).unwrap();
        let version = format!("\"schema_version\":{SCHEMA_VERSION}");
        fs::write(folder.file(), text.replace(&version, "\"schema_version\":0")).unwrap();
        let error = ResultsFile::resume(&folder.file(), &plan).unwrap_err();
        assert!(error.to_string().contains("version 0") && error.to_string().contains("--out"), "{error}");
        text.push_str("{\"method\": 7}\n");
        fs::write(folder.file(), text).unwrap();
        let error = ResultsFile::resume(&folder.file(), &plan).unwrap_err();
        assert!(error.to_string().contains("parts.jsonl:2: "), "{error}");
    }
}
