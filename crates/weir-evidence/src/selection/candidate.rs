//! The data of each process in /proc that a selection uses.

use std::path::Path;

use weir_sys::process_stat::{NAME_BYTES_MAX, ProcessStat};

use crate::{control_group::membership, files};

/// Field of `/proc/PID/stat` with the kernel's flags of a task, and the flag of kernel threads (`PF_KTHREAD`).
const FLAGS: usize = 9;
const KERNEL_THREAD: u64 = 0x0020_0000;

/// A process that may be selected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// Its number.
    pub pid: u32,
    /// Its name, as the kernel keeps it.
    pub name: String,
    /// File name of its program; empty if unreadable.
    pub program: String,
    /// File names of its first arguments, because the kernel may truncate its name: the program's own, and the next
    /// one, which is the file of a script.
    pub words: Vec<String>,
    /// Its control groups.
    pub cgroups: Vec<Membership>,
}

/// A line of `/proc/PID/cgroup`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Membership {
    /// The controllers of the hierarchy, separated by commas; empty for version 2.
    pub controllers: String,
    /// Path from the root of the hierarchy.
    pub path: String,
}

/// Every process except kernel threads and this one, by ascending number.
pub fn candidates(proc: &Path) -> Vec<Candidate> {
    let own = std::process::id();
    let others = files::numbered_entries(proc).into_iter().filter(|pid| *pid != own);
    others.filter_map(|pid| read(proc, pid)).collect()
}

fn read(proc: &Path, pid: u32) -> Option<Candidate> {
    let folder = proc.join(pid.to_string());
    let line = files::read_text(folder.join("stat"))?;
    let stat = ProcessStat::parse(&line)?;
    if stat.number(FLAGS).is_some_and(|flags| flags & KERNEL_THREAD != 0) || stat.has_ended() {
        return None;
    }
    let link = std::fs::read_link(folder.join("exe")).unwrap_or_default();
    let program = link.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let cgroups = files::read_text(folder.join("cgroup")).unwrap_or_default();
    Some(Candidate {
        pid,
        name: stat.name.to_owned(),
        program: program.strip_suffix(" (deleted)").map_or(program.clone(), str::to_owned),
        words: if stat.name.len() < NAME_BYTES_MAX { Vec::new() } else { words(&folder) },
        cgroups: cgroups.lines().filter_map(membership).map(Membership::from).collect(),
    })
}

impl From<(&str, &str)> for Membership {
    fn from((controllers, path): (&str, &str)) -> Self {
        Self { controllers: controllers.to_owned(), path: path.to_owned() }
    }
}

/// Arguments of a command line that may be the name of a program.
const WORDS_MAX: usize = 2;

fn words(folder: &Path) -> Vec<String> {
    let text = files::read_text(folder.join("cmdline")).unwrap_or_default();
    let last = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
    text.split('\0').take(WORDS_MAX).map(last).filter(|word| !word.is_empty()).collect()
}
