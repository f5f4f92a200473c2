//! Runs studies through the release binary, one after the other, and reads what they found. A study that ended is not
//! run again, one that was interrupted goes on where it stopped.

use std::{
    env, fs,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{
    children::{self, Children},
    plan::{self, Plan},
    sample::Export,
};

/// Written into a study's folder when its session has ended in good order with nothing left to run.
const ENDED: &str = "ended";

/// Exit codes of `weir study` that leave a study with a result: decided, inconclusive, not comparable, arms missing.
const CODES_ENDED: [i32; 4] = [0, 11, 12, 13];

const CODE_INTERRUPTED: i32 = 130;

/// Keys of a study file that a rehearsal replaces, with what it writes instead.
const REHEARSED: [(&str, &str); 5] = [
    ("window", "\"100ms\""),
    ("warmup_max", "\"50ms\""),
    ("blocks", "4"),
    ("exploratory_blocks", "4"),
    ("time_cap", "\"1min\""),
];

/// Why a study gave nothing.
#[derive(Debug, PartialEq, Eq)]
pub enum Stop {
    /// Ctrl-C: nothing more is run.
    Interrupted,
    /// This one failed; others may go on.
    Failed(String),
}

/// Where everything is.
pub struct Laboratory {
    /// The workspace.
    pub root: PathBuf,
    /// Folder of all results.
    pub out: PathBuf,
    /// The release binary.
    pub weir: PathBuf,
    /// Tiny windows: to see that everything runs. Its numbers mean nothing.
    pub rehearsal: bool,
    /// What was started, and whether the user has had enough.
    pub children: Children,
}

/// One study to run.
pub struct Run {
    /// Folder below the results.
    pub folder: String,
    /// Name of a built-in study, or a path from the workspace.
    pub study: String,
    /// Seed; a fresh one when absent.
    pub seed: Option<u64>,
    /// Whether and how progress is shown.
    pub display: Display,
}

/// Whether and how progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Display {
    /// As the caller's terminal is.
    Plain,
    /// The progress bar of a terminal, on a terminal made for it.
    Bar,
    /// A terminal, and nothing on it.
    Quiet,
}

impl Run {
    /// A study of `docs/studies` in a folder of its name.
    pub fn once(study: &str) -> Self {
        Self {
            folder: study.to_owned(),
            study: format!("docs/studies/{study}.toml"),
            seed: None,
            display: Display::Plain,
        }
    }

    /// One of several runs of a study, each with its own seed.
    pub fn copy(study: &str, name: &str, number: u64) -> Self {
        Self {
            folder: format!("{name}-{number:02}"),
            study: study.to_owned(),
            seed: Some(number),
            display: Display::Plain,
        }
    }
}

impl Laboratory {
    /// Builds what the studies run: the binary, the controls, and the peers that can be built here.
    pub fn build(&self) -> Result<(), String> {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let arguments = ["build", "--release", "--locked", "-p", "weir", "-p", "weir-controls"];
        let status = self.command(cargo.as_ref()).args(arguments).status();
        if !status.as_ref().is_ok_and(std::process::ExitStatus::success) {
            return Err("cargo build failed".to_owned());
        }
        let peers = self.root.join("peers/build");
        if peers.exists() {
            // It names what is missing; the studies name those arms again.
            let _ = self.command(peers.as_os_str()).status();
        }
        Ok(())
    }

    /// A command in the workspace's folder, where the paths of study files begin.
    pub fn command(&self, program: &std::ffi::OsStr) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root).stdin(Stdio::null());
        command
    }

    /// Runs a study to its end, unless an earlier call did, and reads it.
    pub fn study(&self, run: &Run) -> Result<Export, Stop> {
        let folder = self.out.join(&run.folder);
        if folder.join(ENDED).exists() {
            return self.export(&folder);
        }
        if self.children.is_interrupted() {
            return Err(Stop::Interrupted);
        }
        eprintln!("-- {}", run.folder);
        self.session(run, &folder)?;
        let export = self.export(&folder)?;
        // A study whose time cap came before its last block goes on at the next call.
        if export.has_all_blocks() {
            let written = fs::write(folder.join(ENDED), "every planned block ran\n");
            written.map_err(|error| Stop::Failed(format!("{}: {error}", run.folder)))?;
        }
        Ok(export)
    }

    /// What an interrupted run has found so far.
    pub fn so_far(&self, run: &Run) -> Option<Export> {
        let folder = self.out.join(&run.folder);
        folder.join("study.db").exists().then(|| self.export(&folder).ok()).flatten()
    }

    /// What a run is planned to take, and whether an earlier call finished it.
    pub fn plan(&self, run: &Run) -> Result<(Plan, bool), String> {
        let text = match run.study.as_str() {
            plan::QUICK => plan::QUICK_AS_FILE.to_owned(),
            file => fs::read_to_string(self.root.join(file)).map_err(|error| format!("{file}: {error}"))?,
        };
        let text = if self.rehearsal { rehearsal(&text) } else { text };
        let planned = plan::of_study(&text).map_err(|error| format!("{}: {error}", run.study))?;
        Ok((planned, self.out.join(&run.folder).join(ENDED).exists()))
    }

    fn session(&self, run: &Run, folder: &Path) -> Result<(), Stop> {
        let failed = |what: String| Stop::Failed(format!("{}: {what}", run.folder));
        let mut arguments = vec!["study".to_owned()];
        if folder.join("study.db").exists() {
            arguments.extend(["--resume".to_owned(), folder.display().to_string()]);
        } else {
            let study = self.rehearsed(run).map_err(failed)?;
            arguments.extend([study, "--out".to_owned(), folder.display().to_string()]);
            arguments.extend(run.seed.map(|seed| format!("--seed={seed}")));
        }
        if run.display == Display::Quiet {
            arguments.push("--quiet".to_owned());
        }
        let mut command = match run.display {
            Display::Plain => self.command(self.weir.as_os_str()),
            Display::Bar | Display::Quiet => {
                let words: Vec<String> =
                    [self.weir.display().to_string()].into_iter().chain(arguments.drain(..)).collect();
                arguments = vec!["-qec".to_owned(), shell_line(&words), "/dev/null".to_owned()];
                self.command("script".as_ref())
            }
        };
        // The verdict tables of many studies would bury the one at the end.
        let running = self.children.start(command.args(&arguments).stdout(Stdio::null()));
        let status = running.and_then(children::Running::wait);
        let status = status.map_err(|error| failed(format!("cannot be run: {error}")))?;
        if self.children.is_interrupted() || status.code() == Some(CODE_INTERRUPTED) {
            return Err(Stop::Interrupted);
        }
        match status.code() {
            Some(code) if CODES_ENDED.contains(&code) => Ok(()),
            Some(code) => Err(failed(format!("weir study ended with exit code {code}"))),
            None => {
                Err(failed(format!("weir study was ended by signal {}", status.signal().unwrap_or_default())))
            }
        }
    }

    /// The judged study and its trials, as the binary exports them.
    fn export(&self, folder: &Path) -> Result<Export, Stop> {
        let failed = |what: String| Stop::Failed(format!("{}: {what}", folder.display()));
        let mut command = self.command(self.weir.as_os_str());
        command.arg("export").arg(folder).args(["--format", "json"]).stderr(Stdio::inherit());
        let output = command.output().map_err(|error| failed(error.to_string()))?;
        if !output.status.success() {
            return Err(failed("weir export failed".to_owned()));
        }
        serde_json::from_slice(&output.stdout).map_err(|error| failed(format!("cannot be read: {error}")))
    }

    /// The study to run: the file itself, or a copy with tiny windows.
    fn rehearsed(&self, run: &Run) -> Result<String, String> {
        if !self.rehearsal {
            return Ok(run.study.clone());
        }
        let text = fs::read_to_string(self.root.join(&run.study)).map_err(|error| error.to_string())?;
        let path = self.out.join(format!("{}.toml", run.folder));
        fs::write(&path, rehearsal(&text)).map_err(|error| error.to_string())?;
        Ok(path.display().to_string())
    }
}

/// A study file with other values for the keys of its head.
fn rehearsal(text: &str) -> String {
    let head_end = text.find("\n[").map_or(text.len(), |at| at + 1);
    let (head, rest) = text.split_at(head_end);
    let is_replaced = |line: &str| {
        line.split_once(" = ").is_some_and(|(key, _)| REHEARSED.iter().any(|(own, _)| *own == key))
    };
    let kept = head.lines().filter(|line| !is_replaced(line)).map(str::to_owned);
    let written = REHEARSED.iter().map(|(key, value)| format!("{key} = {value}"));
    let head: Vec<String> = kept.chain(written).collect();
    format!("{}\n{rest}", head.join("\n"))
}

/// Words as a POSIX shell reads them.
fn shell_line(words: &[String]) -> String {
    words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rehearsal_replaces_the_head_and_keeps_the_rest() {
        let text = "name = \"x\"\nwindow = \"1s\"\n\n[factors]\nconnections = [1]\n";
        let short = rehearsal(text);
        assert!(short.starts_with("name = \"x\"\n\nwindow = \"100ms\"\n"), "{short}");
        assert!(short.ends_with("\n[factors]\nconnections = [1]\n"), "{short}");
        assert_eq!(short.matches("window").count(), 1);
    }

    #[test]
    fn words_survive_the_shell() {
        assert_eq!(shell_line(&["a b".to_owned(), "it's".to_owned()]), r"'a b' 'it'\''s'");
    }
}
