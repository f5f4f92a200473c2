//! The arguments of a fio command line: `--name=a --rw=randread`. Pure.
//!
//! As in fio, options before the first `--name` apply to all jobs, and each `--name` starts a job. An argument is
//! `--key=value`, or a key with its value in the next argument; one dash works like two. fio's options outside its
//! jobs (`--output`) are read here too, as far as they apply.

use super::{fio_file::JobFileError, lines::Lines};

/// Format of the report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FioFormat {
    /// Text for people.
    #[default]
    Normal,
    /// The structure of fio's JSON.
    Json,
    /// Like `Json`, with all bins of the completion times.
    JsonPlus,
}

/// A parsed fio command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FioWords {
    /// Its jobs, if there are any.
    pub lines: Lines,
    /// Job files that it names; then it has no other jobs.
    pub files: Vec<String>,
    /// Target of the report; absent for standard output.
    pub output: Option<String>,
    /// See [`FioFormat`].
    pub format: FioFormat,
    /// No job may write.
    pub readonly: bool,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// Keys without a value, unless `=` follows.
const ALONE: [&str; 15] = [
    "time_based",
    "group_reporting",
    "new_group",
    "stonewall",
    "wait_for_previous",
    "thread",
    "norandommap",
    "hipri",
    "sqthread_poll",
    "registerfiles",
    "fixedbufs",
    "exitall",
    "weir_armed",
    "weir_hybrid_iopoll",
    "readonly",
];

/// Options of fio itself that do not affect the measurement.
const WITHOUT_EFFECT: [&str; 5] = ["eta", "eta-interval", "eta-newline", "status-interval", "max-jobs"];

impl FioWords {
    /// Parses the arguments.
    pub fn read(words: &[String]) -> Result<Self, JobFileError> {
        let mut read = Self::default();
        let mut is_inside = false;
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let error =
                |reason: &str| JobFileError { file: word.clone(), line: 0, reason: reason.to_owned() };
            let Some(option) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else {
                read.files.push(word.clone());
                continue;
            };
            let (key, value) = match option.split_once('=') {
                Some((key, value)) => (key, Some(value.to_owned())),
                None if ALONE.contains(&option) => (option, None),
                None => (option, rest.clone().next().filter(|next| !next.starts_with('-')).cloned()),
            };
            if value.is_some() && !option.contains('=') {
                rest.next();
            }
            if read.own(key, value.as_deref()).map_err(|reason| error(&reason))? {
                continue;
            }
            if key == "name" {
                let name =
                    value.filter(|name| !name.is_empty()).ok_or_else(|| error("the job has no name"))?;
                read.lines.push_word(format!("[{name}]"), word);
                is_inside = true;
                continue;
            }
            if !is_inside {
                read.lines.push_word("[global]".to_owned(), word);
                is_inside = true;
            }
            let text = value.map_or_else(|| key.to_owned(), |value| format!("{key}={value}"));
            read.lines.push_word(text, word);
        }
        if let (Some(file), false) = (read.files.first(), read.lines.are_none()) {
            let reason = "a job file stands alone; put its keys into it, or leave it out".to_owned();
            return Err(JobFileError { file: file.clone(), line: 0, reason });
        }
        Ok(read)
    }

    /// Parses an option of fio itself; returns whether it is one.
    fn own(&mut self, key: &str, value: Option<&str>) -> Result<bool, String> {
        match key {
            "output" => {
                self.output =
                    Some(value.filter(|path| !path.is_empty()).ok_or("it names no file")?.to_owned());
            }
            "output-format" => {
                self.format = match value.ok_or("it names no format")? {
                    "normal" => FioFormat::Normal,
                    "json" => FioFormat::Json,
                    "json+" => FioFormat::JsonPlus,
                    other => return Err(format!("{other:?} is not written here; use normal, json or json+")),
                };
            }
            "readonly" => self.readonly = true,
            "minimal" => {
                return Err("the terse format is not written here; use --output-format=json".to_owned());
            }
            _ if WITHOUT_EFFECT.contains(&key) => {
                self.notes
                    .push(format!("--{key}: without effect: progress is on standard error, once a second"));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use weir_record::storage::{AccessPattern, StorageEngine};

    use super::*;
    use crate::job::JobFile;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn read(text: &str) -> FioWords {
        FioWords::read(&words(text)).expect("it can be read")
    }

    fn refused(text: &str) -> String {
        let refused =
            FioWords::read(&words(text)).and_then(|read| JobFile::of_lines(read.lines, false)?.validate());
        refused.expect_err("it is refused").to_string()
    }

    #[test]
    fn options_before_the_first_name_hold_for_all_jobs() {
        let read = read(
            "--filename=data --direct 1 -bs=8k --time_based --runtime=5 --name=a --rw=randread --name=b --rw=write --iodepth 4 \
             --ioengine=libaio --output=out.json --output-format=json",
        );
        assert_eq!((read.output.as_deref(), read.format), (Some("out.json"), FioFormat::Json));
        let jobs = JobFile::of_lines(read.lines, false).expect("jobs").jobs;
        let [a, b] = &jobs[..] else { panic!("{} jobs", jobs.len()) };
        assert_eq!((a.name.as_str(), a.pattern, a.block_bytes), ("a", AccessPattern::RandRead, 8192));
        assert_eq!((b.name.as_str(), b.pattern, b.depth), ("b", AccessPattern::Write, 4));
        assert!(jobs.iter().all(|job| job.direct && job.time_based && job.file == "data"));
        assert_eq!((a.engine, b.engine), (StorageEngine::Pread, StorageEngine::Libaio));
    }

    #[test]
    fn a_section_by_the_name_global_and_letters_that_a_job_file_would_cut() {
        let jobs = |text: &str| JobFile::of_lines(read(text).lines, false).expect("jobs").jobs;
        let found = jobs("--name=global --filename=a;b#c --name=x --rw=read --stonewall");
        assert_eq!((found.len(), found[0].file.as_str(), found[0].stonewall), (1, "a;b#c", true));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_word() {
        for (text, expected) in [
            ("--name=a --filename=f --bs=4q", "--bs=4q: bs: "),
            ("--name=a --filename=f --colour=red", "--colour=red: there is no key \"colour\""),
            ("--name=a --filename=f --rw randwalk", "--rw: rw: "),
            ("--name= --filename=f", "--name=: the job has no name"),
            (
                "--name=a --filename=f --output-format=terse",
                "--output-format=terse: \"terse\" is not written",
            ),
            ("--name=a jobs.fio", "jobs.fio: a job file stands alone"),
            ("--name=a --filename=f --time_based", "--time_based: time_based: a job that begins again"),
            ("--filename=f --bs=4k", "--filename=f: there is no job"),
        ] {
            let said = refused(text);
            assert!(said.starts_with(expected), "{text}: {said}");
        }
    }

    #[test]
    fn options_of_fio_itself_are_read_or_noted() {
        let read = read("--eta=never --readonly jobs.fio");
        assert_eq!(
            (read.readonly, read.files.as_slice(), read.notes.len()),
            (true, &["jobs.fio".to_owned()][..], 1)
        );
        assert!(read.notes[0].starts_with("--eta: without effect"));
    }
}
