//! Recorded rounds as data of the project: `cargo xtask record SITTING` runs the studies of `docs/studies/recordings`
//! with the release build of the tree, once on the machine as it is and once beside `cargo xtask hog`, and writes what
//! they measured as text that tests read (docs/formats/recording.md).
//!
//! It judges nothing. What was finished before Ctrl-C is kept, and the same command goes on with what is missing.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks to its user")]

pub mod company;
pub mod stored;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGINT, SIGTERM};
use weir_stats::recording::Recording;
use weir_sys::child::spawn_bound;

use crate::{
    hog::Beside,
    weir_program::{WeirProgram, output_of},
    words::Words,
};

pub const USAGE: &str =
    "usage: cargo xtask record SITTING [--only NAME,NAME] [--condition quiet|hog] [--seed N]
       [--out FOLDER] [--studies FOLDER] [--weir PROGRAM] [--beside-others]";

const STUDIES: &str = "docs/studies/recordings";
const RECORDED: &str = "crates/weir-judge/tests/recorded";

/// Share of each CPU that the hog takes.
pub const HOG_SHARE: &str = "0.2";

/// Largest file that is written: recordings are part of the tree.
const BYTES_MAX: usize = 1 << 20;

/// The fact that says that the user stopped a recording.
const STOPPED: &str = "stopped";

/// How often it is looked whether a study has ended, or the user has asked to stop.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What the machine does beside a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    Quiet,
    Hog,
}

impl Condition {
    fn name(self) -> &'static str {
        match self {
            Self::Quiet => "quiet",
            Self::Hog => "hog",
        }
    }
}

/// What is asked.
#[derive(Debug, PartialEq)]
struct Asked {
    sitting: String,
    /// Names of study files; empty for all.
    only: Vec<String>,
    conditions: Vec<Condition>,
    seed: u64,
    out: Option<PathBuf>,
    studies: Option<PathBuf>,
    weir: Option<PathBuf>,
    beside_others: bool,
}

impl Asked {
    fn parse(words: &[&str]) -> Result<Self, String> {
        let mut asked = Self {
            sitting: String::new(),
            only: Vec::new(),
            conditions: vec![Condition::Quiet, Condition::Hog],
            seed: 1,
            out: None,
            studies: None,
            weir: None,
            beside_others: false,
        };
        let mut words = Words::new(words);
        while let Some(word) = words.next() {
            match word {
                "--only" => asked.only = words.value(word)?.split(',').map(str::to_owned).collect(),
                "--condition" => asked.conditions = vec![condition(words.value(word)?)?],
                "--seed" => asked.seed = words.number(word)?,
                "--out" => asked.out = Some(words.value(word)?.into()),
                "--studies" => asked.studies = Some(words.value(word)?.into()),
                "--weir" => asked.weir = Some(words.value(word)?.into()),
                "--beside-others" => asked.beside_others = true,
                _ if word.starts_with('-') => return Err(format!("{word} is not known")),
                _ if asked.sitting.is_empty() => asked.sitting = word.to_owned(),
                _ => return Err(format!("{word}: a sitting has one name, and that is {}", asked.sitting)),
            }
        }
        let is_name = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
        if asked.sitting.is_empty() || !asked.sitting.chars().all(is_name) {
            return Err("SITTING is a name of small letters, digits and `-`, such as epyc-guest".to_owned());
        }
        Ok(asked)
    }
}

fn condition(name: &str) -> Result<Condition, String> {
    let all = [Condition::Quiet, Condition::Hog];
    all.into_iter().find(|it| it.name() == name).ok_or(format!("--condition {name}: it is quiet or hog"))
}

/// One recording that is to be taken.
struct Planned {
    name: String,
    study: PathBuf,
    condition: Condition,
    /// The file that it becomes.
    file: PathBuf,
    length: Duration,
}

/// How a recording ended.
#[derive(PartialEq, Eq)]
enum Ended {
    Finished,
    Stopped,
}

pub fn run(root: &Path, words: &[&str]) -> ExitCode {
    let asked = match Asked::parse(words) {
        Ok(asked) => asked,
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match take(root, &asked) {
        Ok(Ended::Finished) => ExitCode::SUCCESS,
        Ok(Ended::Stopped) => ExitCode::from(130),
        Err(error) => {
            eprintln!("record: {error}");
            ExitCode::FAILURE
        }
    }
}

fn take(root: &Path, asked: &Asked) -> Result<Ended, String> {
    let beside = beside_others(asked)?;
    let weir = WeirProgram::prepare(root, asked.weir.as_deref())?;
    let stop = stop_flag()?;
    let planned = plan(root, asked, &weir)?;
    let mut left: Duration = planned.iter().map(|it| it.length).sum();
    let all = planned.len();
    println!("{all} recordings, about {}", minutes(left));
    for (place, it) in (1..).zip(&planned) {
        let name = format!("{}-{}", it.name, it.condition.name());
        println!(
            "[{place}/{all}] {name}: about {}, {} with all that follow",
            minutes(it.length),
            minutes(left)
        );
        left = left.saturating_sub(it.length);
        let began = Instant::now();
        let session = Session { root, asked, weir: &weir, beside: &beside, stop: &stop };
        let ended = session.record(it)?;
        println!("        {} after {}", it.file.display(), minutes(began.elapsed()));
        if ended == Ended::Stopped {
            println!("stopped; the same command goes on with what is missing");
            return Ok(Ended::Stopped);
        }
    }
    Ok(Ended::Finished)
}

/// Names of other programs that are measured as well, where the user wants that; else they are a reason to refuse.
fn beside_others(asked: &Asked) -> Result<String, String> {
    let names = company::loud().into_iter().collect::<Vec<_>>().join(", ");
    if !names.is_empty() && !asked.beside_others {
        return Err(format!(
            "{names}: a build or another study runs here; wait for it, or say --beside-others"
        ));
    }
    if let Some(load) = company::load_average() {
        eprintln!("record: the load average is {load}: this machine does other work, or did a minute ago");
    }
    Ok(names)
}

fn stop_flag() -> Result<Arc<AtomicBool>, String> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .map_err(|error| format!("signals: {error}"))?;
    }
    Ok(stop)
}

/// What is to be taken: every study under each condition, without those that are there already.
fn plan(root: &Path, asked: &Asked, weir: &WeirProgram) -> Result<Vec<Planned>, String> {
    let folder = asked.studies.clone().unwrap_or_else(|| root.join(STUDIES));
    let studies = studies(&folder)?;
    if let Some(name) = asked.only.iter().find(|name| !studies.iter().any(|(known, _)| known == *name)) {
        return Err(format!("--only {name}: there is no {name}.toml in {}", folder.display()));
    }
    let out = asked.out.clone().unwrap_or_else(|| root.join(RECORDED)).join(&asked.sitting);
    fs::create_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    let mut planned = Vec::new();
    for condition in &asked.conditions {
        for (name, study) in &studies {
            let file = out.join(format!("{name}-{}.txt", condition.name()));
            if (!asked.only.is_empty() && !asked.only.contains(name)) || is_taken(&file) {
                continue;
            }
            let study_text = study.to_str().ok_or("the path of a study is no text")?;
            let dry_run = weir.output(&["study", study_text, "--dry-run"])?;
            let length = length(&dry_run).ok_or(format!("weir study {name} --dry-run says no length"))?;
            let (name, study, condition) = (name.clone(), study.clone(), *condition);
            planned.push(Planned { name, study, condition, file, length });
        }
    }
    Ok(planned)
}

/// Names and paths of the study files of a folder, in the order of names.
fn studies(folder: &Path) -> Result<Vec<(String, PathBuf)>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let files =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.extension() == Some("toml".as_ref()));
    let named = |path: PathBuf| Some((path.file_stem()?.to_str()?.to_owned(), path));
    let mut found: Vec<(String, PathBuf)> = files.filter_map(named).collect();
    found.sort();
    if found.is_empty() { Err(format!("{}: there is no study file", folder.display())) } else { Ok(found) }
}

/// Whether there is a recording whose study was not stopped by the user. One that ran into its time cap is as long as
/// this machine allows.
fn is_taken(file: &Path) -> bool {
    let recording = fs::read_to_string(file).ok().and_then(|text| text.parse::<Recording>().ok());
    recording.is_some_and(|it| it.fact(STOPPED).is_none())
}

/// How long a study takes by its dry run: `It takes about 6 min; …`.
fn length(dry_run: &str) -> Option<Duration> {
    let mut words = dry_run.split_once("It takes about ")?.1.split([' ', ';', '\n']);
    let number: f64 = words.next()?.parse().ok()?;
    let unit_s = match words.next()?.trim_end_matches('.') {
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3_600.0,
        _ => return None,
    };
    Some(Duration::from_secs_f64(number * unit_s))
}

fn minutes(length: Duration) -> String {
    if length < Duration::from_secs(90) {
        return format!("{} s", length.as_secs());
    }
    format!("{:.0} min", length.as_secs_f64() / 60.0)
}

/// What all recordings of one command share.
struct Session<'a> {
    root: &'a Path,
    asked: &'a Asked,
    weir: &'a WeirProgram,
    beside: &'a str,
    stop: &'a AtomicBool,
}

impl Session<'_> {
    /// Takes one recording. What a study has finished is written, whether it was stopped or not.
    fn record(&self, planned: &Planned) -> Result<Ended, String> {
        let taken_at = output_of(Command::new("date").args(["-u", "+%Y-%m-%dT%H:%MZ"]))?;
        let results = self.root.join("target/recordings").join(&self.asked.sitting);
        let results = results.join(format!("{}-{}", planned.name, planned.condition.name()));
        // What an earlier run left is no part of this recording.
        let _ = fs::remove_dir_all(&results);
        let hog = (planned.condition == Condition::Hog).then(|| Beside::start(self.asked.seed, HOG_SHARE));
        let hog = hog.transpose()?;
        let ended = self.study(planned, &results);
        drop(hog);
        let ended = ended?;
        let results = results.to_str().ok_or("the path of the results is no text")?;
        let stored = stored::read(&self.weir.output(&["export", results])?)?;
        let mut facts = self.facts(planned, taken_at);
        if ended == Ended::Stopped {
            facts.push((STOPPED, "by the user".to_owned()));
        }
        let recording = stored::recording(&facts, stored);
        write(&planned.file, &recording)?;
        Ok(ended)
    }

    fn facts(&self, planned: &Planned, taken_at: String) -> Vec<(&'static str, String)> {
        let mut facts = vec![
            ("study", planned.name.clone()),
            ("condition", planned.condition.name().to_owned()),
            ("taken", taken_at),
            ("weir", self.weir.version.clone()),
            ("command", format!("cargo xtask record {} --seed {}", self.asked.sitting, self.asked.seed)),
        ];
        if planned.condition == Condition::Hog {
            facts.push(("hog", format!("--seed {} --share {HOG_SHARE}", self.asked.seed)));
        }
        if !self.beside.is_empty() {
            facts.push(("beside", self.beside.to_owned()));
        }
        facts
    }

    /// Runs the study to its end, or until the user asks to stop; then the study ends its round and stores it.
    fn study(&self, planned: &Planned, results: &Path) -> Result<Ended, String> {
        let mut command = Command::new(&self.weir.path);
        command.arg("study").arg(&planned.study).arg("--out").arg(results);
        command.args(["--seed", &self.asked.seed.to_string(), "--lang", "en"]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut child =
            spawn_bound(&mut command).map_err(|error| format!("cannot start weir study: {error}"))?;
        let mut is_asked_to_stop = false;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(|error| format!("weir study: {error}"))? {
                break status;
            }
            if self.stop.load(Ordering::Relaxed) && !is_asked_to_stop {
                is_asked_to_stop = true;
                interrupt(&child);
            }
            thread::sleep(LOOK_EVERY);
        };
        match status.code() {
            _ if is_asked_to_stop => Ok(Ended::Stopped),
            // A verdict has an exit code (inconclusive, not comparable), and every verdict will do.
            Some(0 | 10..=12) => Ok(Ended::Finished),
            _ => Err(format!("weir study {}: {status}", planned.study.display())),
        }
    }
}

fn interrupt(child: &Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // One that has ended meanwhile needs no signal.
        let _ = kill_process(pid, Signal::INT);
    }
}

/// Writes a recording whole or not at all.
fn write(file: &Path, recording: &Recording) -> Result<(), String> {
    let text = recording.to_text()?;
    if text.len() > BYTES_MAX {
        return Err(format!("{}: {} bytes are more than {BYTES_MAX}", file.display(), text.len()));
    }
    let unfinished = file.with_extension("unfinished");
    fs::write(&unfinished, text)
        .and_then(|()| fs::rename(&unfinished, file))
        .map_err(|error| format!("{}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use std::env;

    use super::*;

    #[test]
    fn words_that_make_no_sense_are_named() {
        let asked = Asked::parse(&["epyc-2", "--only", "echo,http", "--condition", "hog", "--seed", "7"]);
        let asked = asked.expect("sound words");
        assert_eq!((asked.sitting.as_str(), asked.seed, asked.beside_others), ("epyc-2", 7, false));
        assert_eq!(
            (asked.only, asked.conditions),
            (vec!["echo".into(), "http".into()], vec![Condition::Hog])
        );
        let name = "SITTING is a name of small letters, digits and `-`, such as epyc-guest";
        for (words, said) in [
            (&[][..], name),
            (&["../elsewhere"], name),
            (&["a", "b"], "b: a sitting has one name, and that is a"),
            (&["a", "--seed"], "--seed needs a value"),
            (&["a", "--seed", "x"], "--seed x: invalid digit found in string"),
            (&["a", "--condition", "loud"], "--condition loud: it is quiet or hog"),
            (&["a", "--loud"], "--loud is not known"),
        ] {
            assert_eq!(Asked::parse(words), Err(said.to_owned()));
        }
    }

    #[test]
    fn the_length_is_read_from_what_a_dry_run_says() {
        let of = |text: &str| length(text).map(|it| it.as_secs());
        assert_eq!(of("cells\nIt takes about 6 min; no round or block starts after 20 min."), Some(360));
        assert_eq!(of("It takes about 92 s; no"), Some(92));
        assert_eq!(of("It takes about 1.5 h."), Some(5_400));
        assert_eq!(of("It takes about long"), None);
        assert_eq!(of("nothing"), None);
        assert_eq!(
            (minutes(Duration::from_secs(89)), minutes(Duration::from_secs(570))),
            ("89 s".into(), "10 min".into())
        );
    }

    #[test]
    fn a_recording_that_the_user_stopped_is_taken_again() {
        let folder = env::temp_dir().join(format!("weir-record-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("echo-quiet.txt");
        assert!(!is_taken(&file), "there is none");
        let mut recording = Recording::default();
        write(&file, &recording).expect("it can be written");
        assert!(is_taken(&file));
        recording.facts.push((STOPPED.to_owned(), "by the user".to_owned()));
        write(&file, &recording).expect("it can be written");
        assert!(!is_taken(&file));
        fs::write(&file, "# weir-recording 1\nhalf").expect("it can be written");
        assert!(!is_taken(&file), "what cannot be read is no recording");
        recording.facts.push(("long".to_owned(), "x".repeat(BYTES_MAX)));
        let error = write(&file, &recording).expect_err("a file of more than a megabyte");
        assert!(error.contains("are more than 1048576"), "{error}");
        fs::remove_dir_all(&folder).expect("it can be removed");
    }

    #[test]
    fn the_studies_of_the_tree_are_found_by_name() {
        let found = studies(&crate::workspace_root().join(STUDIES)).expect("the folder is there");
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["echo", "http", "orders"]);
        assert!(studies(Path::new("/nowhere")).is_err_and(|error| error.starts_with("/nowhere: ")));
    }
}
