//! What surrounds a server: its environment and its folder, what runs before it starts, and what runs when it has
//! ended.
//!
//! Both commands run to their end in a process group of their own, on any CPU, and what they leave in that group ends
//! with them. Until then a supervisor holds them, so that they and all below them end with a laboratory that is killed.
//! What runs after the server does so however it ended, also when the study is interrupted; only a laboratory that is
//! killed leaves it out.

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

/// What is known of it when a server is about to start.
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
    /// How long that may take.
    pub(super) ready_within: Duration,
    /// How long either command may take.
    longest: Duration,
    /// Whether something has begun that is to be cleaned up.
    has_begun: bool,
}

/// Why a command did not do its work.
enum Undone {
    Interrupted,
    Failed(String),
}

impl Surroundings {
    /// Those of an arm, with everything filled in that is known only now.
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

    /// Gives a command the environment and the folder.
    pub(super) fn dress(&self, command: &mut Command) {
        command.envs(&self.environment);
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
    }

    /// Starts a command of the arm's beside its server, if there is one.
    pub(super) fn start(&self, words: &[String]) -> io::Result<Option<Group>> {
        if words.is_empty() {
            return Ok(None);
        }
        let mut command = Command::new(&self.weir);
        command.args(supervise::arguments_until_exit()).args(words);
        self.dress(&mut command);
        Group::start(&mut command, Bond::CleansUp).map(Some)
    }

    /// Runs what comes before the server.
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

    /// Runs what comes after the server, once.
    pub(super) fn clean_up(&mut self) -> Result<(), String> {
        if !std::mem::take(&mut self.has_begun) {
            return Ok(());
        }
        match self.run(&self.cleanup, None) {
            Ok(()) | Err(Undone::Interrupted) => Ok(()),
            Err(Undone::Failed(reason)) => Err(format!("its cleanup {reason}")),
        }
    }

    /// Runs a command to its end, if there is one. An interruption ends it where it may.
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
        // Whoever ends in good order has asked for it and knows what came of it.
        let _ = self.clean_up();
    }
}

/// Why a command did not even begin, in the words of its supervisor; `None` of one that ended by itself. A shell has
/// the same exit status for what it cannot start.
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

/// How a command ended, and the end of what it said: of its error output, or else of its output.
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
