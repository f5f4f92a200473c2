//! Selects processes by name, control group, systemd unit or container.
//!
//! A selection is a [`Rule`] over the data of each process in /proc ([`Candidate`]). The rule is applied again during
//! the watch, to find processes that join. Kernel threads and the observing process are never selected.

mod candidate;
mod container;

use std::{collections::BTreeSet, path::Path};

use weir_record::observation::{Found, Selected};
use weir_sys::process_stat::NAME_BYTES_MAX;

pub use self::candidate::{Candidate, Membership, candidates};
use self::container::Container;
pub use self::container::{Answer, Asked, ask_runtimes};
use crate::control_group::MOUNT;

/// Most names that an error lists.
const NEAR_MAX: usize = 5;

/// What the user requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Processes with these numbers.
    Pids(Vec<u32>),
    /// Processes of a control group and of the groups below it.
    Cgroup(String),
    /// Processes of a systemd unit.
    Unit(String),
    /// Processes of a container, by its name or the start of its identifier.
    Container(String),
    /// Processes with this name, or whose program has it.
    Name(String),
}

/// Whether a process belongs to a selection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// It is one of these.
    Pids(Vec<u32>),
    /// It is in this control group, or below it.
    Cgroup(Cgroup),
    /// A component of one of its groups' paths has this name.
    Part(String),
    /// A component of one of its groups' paths is the container with this identifier.
    Container(String),
    /// The process or its program has this name.
    Name(String),
}

/// A control group as in `/proc/PID/cgroup`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    /// Restricts it to the hierarchy of a controller; the empty name means version 2.
    controller: Option<String>,
    path: String,
    /// Whether it was written as a folder below [`MOUNT`], where the folders of version 1 begin with their hierarchy.
    is_folder: bool,
}

/// Why nothing is selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectionError {
    /// The name is empty.
    Empty,
    /// It is not the path of a control group.
    NoCgroupPath,
    /// No process matches, or nothing has that name.
    Nothing {
        /// Existing names that resemble it.
        near: Vec<String>,
        /// Answers of the container runtimes.
        asked: Vec<Asked>,
    },
    /// Several containers match.
    Several(Vec<String>),
}

/// Processes to observe, and the rule by which further ones join them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The current processes, by ascending number.
    pub pids: Vec<u32>,
    /// Absent if no processes can join.
    pub rule: Option<Rule>,
    /// How they were found; absent for a single process that was named by its number.
    pub found: Option<Found>,
}

impl Selection {
    /// One process, by its number.
    pub fn pid(pid: u32) -> Self {
        Self { pids: vec![pid], rule: None, found: None }
    }

    /// Finds the requested processes.
    ///
    /// # Errors
    /// Fails when no process matches.
    pub fn find(wanted: &Wanted) -> Result<Self, SelectionError> {
        match wanted {
            Wanted::Pids(pids) => Ok(Self::of_pids(pids)),
            _ => find_among(wanted, &candidates(Path::new("/proc")), &ask_runtimes),
        }
    }

    fn of_pids(pids: &[u32]) -> Self {
        let distinct: BTreeSet<u32> = pids.iter().copied().collect();
        let pids: Vec<u32> = distinct.into_iter().collect();
        match pids[..] {
            [pid] => Self::pid(pid),
            _ => {
                let text = Wanted::Pids(pids.clone()).text();
                Self { pids, rule: None, found: Some(Found { by: Selected::Pids, text, container: None }) }
            }
        }
    }
}

/// The same for a given list of processes, with a function that asks the container runtimes.
fn find_among(
    wanted: &Wanted,
    all: &[Candidate],
    ask: &dyn Fn(&str) -> Vec<Asked>,
) -> Result<Selection, SelectionError> {
    if wanted.is_empty() {
        return Err(SelectionError::Empty);
    }
    let (by, rule, container) = match wanted {
        Wanted::Pids(pids) => return Ok(Selection::of_pids(pids)),
        Wanted::Cgroup(text) => {
            let cgroup = Cgroup::parse(text).ok_or(SelectionError::NoCgroupPath)?;
            (Selected::Cgroup, Rule::Cgroup(cgroup), None)
        }
        Wanted::Unit(_) => (Selected::Unit, Rule::Part(wanted.text()), None),
        Wanted::Name(text) => (Selected::Name, Rule::Name(text.clone()), None),
        Wanted::Container(text) => {
            let Container { rule, how } = container::find(text, all, ask)?;
            (Selected::Container, rule, Some(how))
        }
    };
    let pids = rule.members(all);
    if pids.is_empty() {
        let near = near(wanted, all);
        return Err(SelectionError::Nothing { near, asked: Vec::new() });
    }
    let found = Found { by, text: wanted.text(), container };
    // The number may later belong to another process.
    let rule = Some(rule).filter(|rule| !matches!(rule, Rule::Pids(_)));
    Ok(Selection { pids, rule, found: Some(found) })
}

impl Wanted {
    /// Whether the name is empty: a process whose program is unreadable has an empty program name.
    fn is_empty(&self) -> bool {
        match self {
            Self::Pids(pids) => pids.is_empty(),
            Self::Cgroup(text) | Self::Unit(text) | Self::Container(text) | Self::Name(text) => {
                text.is_empty()
            }
        }
    }

    /// Describes the request in words.
    pub fn text(&self) -> String {
        match self {
            Self::Pids(pids) => pids.iter().map(u32::to_string).collect::<Vec<_>>().join(","),
            Self::Unit(name) => unit_name(name),
            Self::Cgroup(text) | Self::Container(text) | Self::Name(text) => text.clone(),
        }
    }
}

impl Rule {
    /// The processes that match now.
    pub fn members_now(&self) -> Vec<u32> {
        self.members(&candidates(Path::new("/proc")))
    }

    fn members(&self, all: &[Candidate]) -> Vec<u32> {
        all.iter().filter(|candidate| self.takes(candidate)).map(|candidate| candidate.pid).collect()
    }

    fn takes(&self, candidate: &Candidate) -> bool {
        let has_part = |is_it: &dyn Fn(&str) -> bool| {
            candidate.cgroups.iter().any(|group| group.path.split('/').any(is_it))
        };
        match self {
            Self::Pids(pids) => pids.contains(&candidate.pid),
            Self::Cgroup(cgroup) => candidate.cgroups.iter().any(|group| cgroup.holds(group)),
            Self::Part(name) => has_part(&|part| part == name),
            Self::Container(id) => has_part(&|part| container::identifier(part) == Some(id.as_str())),
            Self::Name(name) => candidate.is_called(name),
        }
    }
}

impl Candidate {
    /// Whether this is the name of the process or of its program. The kernel truncates a long name: then the rest
    /// must match its command line.
    fn is_called(&self, name: &str) -> bool {
        // It may have been cut inside a character.
        let is_cut = || self.name == String::from_utf8_lossy(&name.as_bytes()[..NAME_BYTES_MAX]);
        let is_whole = || self.words.iter().any(|word| word == name);
        self.name == name || self.program == name || name.len() > NAME_BYTES_MAX && is_cut() && is_whole()
    }
}

impl Cgroup {
    /// Parses a path from the root of its hierarchy, optionally preceded by the controllers as in a line of
    /// `/proc/PID/cgroup`; or the path of its folder.
    fn parse(text: &str) -> Option<Self> {
        let trimmed = |path: &str| match path.trim_end_matches('/') {
            "" => "/".to_owned(),
            path => path.to_owned(),
        };
        if let Some(below) = text.strip_prefix(MOUNT)
            && (below.is_empty() || below.starts_with('/'))
        {
            return Some(Self { controller: None, path: trimmed(below), is_folder: true });
        }
        if text.starts_with('/') {
            return Some(Self { controller: None, path: trimmed(text), is_folder: false });
        }
        let (before, path) = text.split_once(":/")?;
        // `4:memory:/path` and `0::/path` are whole lines, `memory:/path` lacks the hierarchy's number.
        let controller = before.rsplit_once(':').map_or(before, |(_, controllers)| controllers);
        let path = trimmed(&format!("/{path}"));
        Some(Self { controller: Some(controller.to_owned()), path, is_folder: false })
    }

    fn holds(&self, group: &Membership) -> bool {
        let is_there = match &self.controller {
            None => true,
            Some(controller) => group.hierarchy_names().any(|name| name == controller),
        };
        is_there && is_below(&group.path, &self.path)
            || self.is_folder && self.begins_with_hierarchy_of(group)
    }

    /// Whether its path begins with the folder of that hierarchy.
    fn begins_with_hierarchy_of(&self, group: &Membership) -> bool {
        let below = |name: &str| self.path.strip_prefix('/')?.strip_prefix(name)?.strip_prefix('/');
        let names = group.hierarchy_names().map(|name| match name {
            "" => "unified",
            name => name.strip_prefix("name=").unwrap_or(name),
        });
        names.filter_map(below).any(|path| is_below(&group.path, &format!("/{path}")))
    }
}

impl Membership {
    /// The combined controllers, and each one.
    fn hierarchy_names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.controllers.as_str()).chain(self.controllers.split(','))
    }
}

fn is_below(path: &str, above: &str) -> bool {
    above == "/" || path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The full name of a unit, as `systemctl` completes it.
fn unit_name(text: &str) -> String {
    const KINDS: [&str; 6] = [".service", ".scope", ".slice", ".socket", ".mount", ".swap"];
    if KINDS.iter().any(|kind| text.ends_with(kind)) { text.to_owned() } else { format!("{text}.service") }
}

/// Names of the requested kind, the most similar first.
fn near(wanted: &Wanted, all: &[Candidate]) -> Vec<String> {
    let paths = || all.iter().flat_map(|candidate| &candidate.cgroups).map(|group| group.path.as_str());
    let is_unit = |part: &&str| [".service", ".scope", ".slice"].iter().any(|kind| part.ends_with(kind));
    let names: BTreeSet<&str> = match wanted {
        Wanted::Pids(_) => return Vec::new(),
        Wanted::Cgroup(_) => paths().collect(),
        Wanted::Unit(_) => paths().flat_map(|path| path.split('/')).filter(is_unit).collect(),
        Wanted::Container(_) => paths().flat_map(container::names_in).collect(),
        Wanted::Name(_) => all.iter().map(|candidate| candidate.name.as_str()).collect(),
    };
    nearest(&wanted.text(), names)
}

/// Names similar to a text, best first: containing it, or a few letters apart.
fn nearest(text: &str, names: BTreeSet<&str>) -> Vec<String> {
    let wanted = text.to_lowercase();
    let distance = |name: &str| {
        let name = name.to_lowercase();
        if name.contains(&wanted) { 0 } else { strsim::damerau_levenshtein(&wanted, &name) }
    };
    let mut near: Vec<(usize, &str)> = names.into_iter().map(|name| (distance(name), name)).collect();
    near.retain(|(distance, name)| {
        !name.is_empty() && *distance <= (wanted.chars().count().max(name.chars().count()) / 2).max(1)
    });
    near.sort_unstable();
    near.into_iter().take(NEAR_MAX).map(|(_, name)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests;
