//! The surroundings of a server: its environment, its folder, the command that runs before it starts, and the command
//! that runs after it ended.
//!
//! Both commands run to their end in a separate process group, on any CPU, and processes left in that group end with
//! them. Until then a supervisor holds them, so that they and all their descendants end with a laboratory that is
//! killed. The command after the server runs however the server ended, also when the study is interrupted. It is
//! skipped only if the laboratory is killed.

use std::{
    collections::BTreeMap,
    fmt, io,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use weir_record::spec::{ArmStart, Ready};

use super::{
    Deadlines,
    group::{Bond, Group},
    server::{NoServer, failed},
};
use crate::{launch::LaunchError, supervise};

/// What is known when a server is about to start.
#[derive(Default)]
pub(crate) struct Surroundings {
    /// The program whose `supervise` holds the commands.
    weir: PathBuf,
    environment: BTreeMap<String, String>,
    folder: Option<String>,
    setup: Vec<String>,
    cleanup: Vec<String>,
    /// How the server shows that it is ready.
    pub(super) ready: Ready,
    /// Longest time to become ready.
    pub(super) ready_within: Duration,
    /// Longest time of either command.
    longest: Duration,
    /// Whether something has begun that must be cleaned up.
    has_begun: bool,
}

/// Why a command failed.
enum Undone {
    Interrupted,
    Failed(String),
}

impl Surroundings {
    /// Creates those of an arm, with the values filled in that are known only now.
    pub(super) fn new(
        weir: &Path,
        start: &ArmStart,
        deadlines: &Deadlines,
        fill: impl Fn(&String) -> String,
    ) -> Self {
        let words = |words: &[String]| words.iter().map(&fill).collect();
        let length = |ns: Option<u64>, usual: Duration| ns.map_or(usual, Duration::from_nanos);
        Self {
            weir: weir.to_path_buf(),
            environment: start.environment.iter().map(|(name, value)| (name.clone(), fill(value))).collect(),
            folder: start.folder.as_ref().map(&fill),
            setup: words(&start.setup),
            cleanup: words(&start.cleanup),
            ready: match &start.ready {
                Ready::Command(command) => Ready::Command(words(command)),
                Ready::Line(text) => Ready::Line(fill(text)),
                Ready::Port => Ready::Port,
            },
            ready_within: length(start.ready_ns_max, deadlines.ready),
            longest: length(start.command_ns_max, deadlines.setup),
            has_begun: false,
        }
    }

    /// Sets the environment and the folder of a command.
    pub(super) fn dress(&self, command: &mut Command) {
        command.envs(&self.environment);
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
    }

    /// Starts a command of the arm beside its server, if there is one.
    pub(super) fn start(&self, words: &[String]) -> io::Result<Option<Group>> {
        if words.is_empty() {
            return Ok(None);
        }
        let mut command = Command::new(&self.weir);
        command.args(supervise::arguments_until_exit()).args(words);
        self.dress(&mut command);
        Group::start(&mut command, Bond::CleansUp).map(Some)
    }

    /// Runs the command before the server, if there is one.
    pub(super) fn set_up(&mut self, interrupt: &AtomicBool) -> Result<(), NoServer> {
        if let Some(folder) = self.folder.as_ref().filter(|folder| !Path::new(folder).is_dir()) {
            return Err(failed(format!("its folder {folder} is not there")));
        }
        self.has_begun = true;
        match self.run(&self.setup, Some(interrupt)) {
            Ok(()) => Ok(()),
            Err(Undone::Interrupted) => Err(NoServer::Stop(LaunchError::Interrupted)),
            Err(Undone::Failed(reason)) => {
                let after = self.clean_up().err().map(|reason| format!("; {reason}")).unwrap_or_default();
                Err(failed(format!("its setup {reason}{after}")))
            }
        }
    }

    /// Runs the command after the server, once.
    pub(super) fn clean_up(&mut self) -> Result<(), String> {
        if !std::mem::take(&mut self.has_begun) {
            return Ok(());
        }
        match self.run(&self.cleanup, None) {
            Ok(()) | Err(Undone::Interrupted) => Ok(()),
            Err(Undone::Failed(reason)) => Err(format!("its cleanup {reason}")),
        }
    }

    /// Runs a command to its end, if there is one. An interruption ends it if `interrupt` is given.
    fn run(&self, words: &[String], interrupt: Option<&AtomicBool>) -> Result<(), Undone> {
        let started = self.start(words).map_err(|error| Undone::Failed(cannot_start(&words[0], &error)))?;
        let Some(mut group) = started else { return Ok(()) };
        let deadline = Instant::now() + self.longest;
        while !group.has_ended() {
            if interrupt.is_some_and(|interrupt| interrupt.load(Ordering::Relaxed)) {
                return Err(Undone::Interrupted);
            }
            if Instant::now() >= deadline {
                let said = said(&group);
                let seconds = self.longest.as_secs_f64();
                return Err(Undone::Failed(format!("took more than {seconds} s and was killed{said}")));
            }
            group.tick();
        }
        match group.end() {
            Ok(status) if status.success() => Ok(()),
            _ => {
                let not_started = not_started(&mut group, &words[0]);
                Err(Undone::Failed(not_started.unwrap_or_else(|| exit_reason(&mut group))))
            }
        }
    }
}

impl Drop for Surroundings {
    fn drop(&mut self) {
        // A caller that ends in good order has cleaned up before and knows the outcome.
        let _ = self.clean_up();
    }
}

/// Why a command did not start, from its supervisor's message; `None` if it ended by itself. The message is needed
/// because a shell has the same exit status for a program that it cannot start.
pub(super) fn not_started(group: &mut Group, program: &str) -> Option<String> {
    let status = group.end().ok()?;
    let said = group.said();
    let why = said.strip_prefix(&format!("cannot start {program}: "))?;
    let is_supervisors = status.code() == Some(supervise::EXIT_NOT_STARTED);
    is_supervisors.then(|| cannot_start(program, &why))
}

pub(super) fn cannot_start(program: &str, why: &dyn fmt::Display) -> String {
    format!("cannot start: {program}: {why}")
}

/// How a command ended, and the end of its error output, or else of its output.
pub(super) fn exit_reason(group: &mut Group) -> String {
    match group.said().is_empty() {
        true => format!("{}{}", group.exit_reason(), said(group)),
        false => group.exit_reason(),
    }
}

fn said(group: &Group) -> String {
    /// Most bytes of its output in a message.
    const SAID_MAX: usize = 400;
    let (errors, output) = (group.said(), group.stdout.text());
    let said = if errors.is_empty() { output.trim() } else { errors.as_str() };
    let from = said.len().saturating_sub(SAID_MAX);
    let from = (from..said.len()).find(|at| said.is_char_boundary(*at)).unwrap_or(0);
    let said = said[from..].replace('\n', "; ");
    if said.is_empty() { said } else { format!(": {said}") }
}
