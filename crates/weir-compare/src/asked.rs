//! The complete request for one comparison: words are split, parameters are in their places, files are named.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use weir_record::{
    commands::{CommandRole, CommandSettings},
    goal::ComparisonSpec,
    spec::Ready,
};

use crate::{
    load::Count,
    run::{OutputTo, RunSpec},
};

/// Most commands of a comparison, placebos among them.
pub const COMMANDS_MAX: usize = 16;

/// Most comparisons of one call: combinations of parameters.
pub const COMPARISONS_MAX: usize = 64;

/// Most warm-up rounds.
pub const WARMUP_MAX: u32 = 1_000;

/// One comparison.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Parameters and their values, for the record.
    pub parameters: Vec<(String, String)>,
    /// The baseline first.
    pub commands: Vec<AskedCommand>,
    /// Other settings, which the session follows and the record contains.
    pub settings: CommandSettings,
    /// Variables that are set.
    pub environment: Vec<(OsString, OsString)>,
    /// Folder in which commands run.
    pub folder: Option<PathBuf>,
    /// File on standard input.
    pub input: Option<PathBuf>,
    /// Where the output goes.
    pub output: OutputTo,
    /// What fails the comparison.
    pub thresholds: Vec<ComparisonSpec>,
    /// Seed of every random order.
    pub seed: u64,
    /// Settings of servers; `None` for commands that end by themselves.
    pub servers: Option<AskedServers>,
}

/// Settings of servers beside their words.
#[derive(Clone, Debug)]
pub struct AskedServers {
    /// How the number of a load's units of work is read.
    pub count: Count,
    /// How a server shows that it is ready; a command's words are in `ready_words`.
    pub ready: Ready,
    /// The command of [`Ready::Command`].
    pub ready_words: Vec<OsString>,
    /// Longest time until it is ready.
    pub ready_within: Duration,
    /// From the end of a load run to the reading of the clocks.
    pub settle: Duration,
    /// Most pairs of one start.
    pub pairs_per_start: u32,
}

/// A command, with what runs around it.
#[derive(Clone, Debug, Default)]
pub struct AskedCommand {
    /// Its name.
    pub name: String,
    /// Its role.
    pub role: CommandRole,
    /// Program and arguments.
    pub words: Vec<OsString>,
    /// Before each run.
    pub prepare: Vec<OsString>,
    /// After each run.
    pub conclude: Vec<OsString>,
    /// Before the first run.
    pub setup: Vec<OsString>,
    /// After the last run.
    pub cleanup: Vec<OsString>,
    /// Its load, where it is a server.
    pub load: Vec<OsString>,
}

/// The commands around a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Around {
    /// Before the first run.
    Setup,
    /// Before each run.
    Prepare,
    /// After each run.
    Conclude,
    /// After the last run.
    Cleanup,
}

impl Around {
    /// The flag that sets it.
    pub fn flag(self) -> &'static str {
        match self {
            Self::Setup => "--setup",
            Self::Prepare => "--prepare",
            Self::Conclude => "--conclude",
            Self::Cleanup => "--cleanup",
        }
    }
}

impl AskedCommand {
    /// The words of the command at this place; empty where there is none.
    pub fn around(&self, around: Around) -> &[OsString] {
        match around {
            Around::Setup => &self.setup,
            Around::Prepare => &self.prepare,
            Around::Conclude => &self.conclude,
            Around::Cleanup => &self.cleanup,
        }
    }
}

impl Asked {
    /// A run of these words, with its output to the place for the output of commands.
    pub(crate) fn spec(&self, words: &[OsString]) -> RunSpec {
        RunSpec {
            words: words.to_vec(),
            environment: self.environment.clone(),
            folder: self.folder.clone(),
            input: self.input.clone(),
            output: self.output.clone(),
            limit: Duration::from_nanos(self.settings.limit_ns),
        }
    }

    /// A run around the measured ones: it has no input, and its output is for messages.
    pub(crate) fn spec_around(&self, words: &[OsString]) -> RunSpec {
        RunSpec { input: None, output: OutputTo::Digest, ..self.spec(words) }
    }
}
