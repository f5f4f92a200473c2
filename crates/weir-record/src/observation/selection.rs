//! Which processes were observed together, where it was not one by its number.

use serde::{Deserialize, Serialize};

/// Most processes that a record names, those with the lowest numbers.
pub const SELECTED_ROWS_MAX: usize = 64;

/// What was asked for, and how it was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Kind of the selection.
    pub by: Selected,
    /// Numbers, path or name, as it was looked for.
    pub text: String,
    /// How a container was found; absent for other selections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<FoundContainer>,
}

/// Kind of a selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Selected {
    /// Several numbers.
    Pids,
    /// A control group with those below it.
    Cgroup,
    /// A unit of systemd.
    Unit,
    /// A container.
    Container,
    /// The name of a process or of its program.
    Name,
}

/// How a container was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FoundContainer {
    /// Its identifier or its name is in the path of a control group.
    Path,
    /// `docker inspect` knew its name.
    Docker,
    /// `podman inspect` did.
    Podman,
}

/// Several processes that were observed together, each with its children.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// How they were found.
    pub found: Found,
    /// Those at the begin, by rising number.
    pub processes: Vec<SelectedProcess>,
    /// Those that are not in the list.
    pub processes_left_out: u64,
    /// Those that were found later, at a reading of /proc.
    pub joined: u64,
    /// Time between two readings: a process that joins and ends within it may not be seen.
    pub looked_every_ns: u64,
}

/// A process of a selection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelectedProcess {
    /// Its number.
    pub pid: u32,
    /// What it was called with; its name where that may not be read.
    pub command: String,
}
