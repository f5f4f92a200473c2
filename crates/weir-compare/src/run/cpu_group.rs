//! Control groups of runs: one for all runs of a comparison, and in it a fresh one for each run, whose clock starts at
//! zero. Either version of control groups works, if it has a clock of CPU time.
//!
//! A group is made in Weir's own group. So where a user may make groups there (as in `systemd-run --user --scope`),
//! nothing else is needed.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind},
    os::fd::AsFd,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use weir_sys::launched::{Membership, now_ns};

use super::CpuSource;

/// Where the second version may be mounted.
const MOUNTS_SECOND: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// Where the first version's clock of CPU may be.
const MOUNTS_FIRST: [&str; 2] = ["/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/cpu,cpuacct"];

/// How often the removal of a group is tried again that the kernel reports as in use: a reaped process takes a moment
/// to leave it, longer on a busy machine.
const REMOVALS_MAX: u32 = 5_000;

/// Time between two of these attempts.
const REMOVAL_PAUSE: Duration = Duration::from_millis(1);

/// Most groups that are looked for below the one of a comparison.
const GROUPS_MAX: usize = 64;

/// The group of a comparison. It is removed with those below it when this is dropped.
#[derive(Debug)]
pub(super) struct Groups {
    folder: PathBuf,
    source: CpuSource,
    runs: u64,
}

/// The group of a run.
#[derive(Debug)]
pub(super) struct RunGroup {
    folder: PathBuf,
    source: CpuSource,
    /// The folder itself, or the file that takes its members.
    entry: File,
}

/// CPU of a group, with how it divides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GroupCpu {
    /// All of it, exactly.
    pub(super) total_ns: u64,
    /// Parts in user mode and in the kernel, whose ratio counts.
    pub(super) user: u64,
    pub(super) system: u64,
}

impl Groups {
    /// Makes the group of a comparison.
    pub(super) fn make(source: CpuSource) -> io::Result<Self> {
        let parent = own_group(source)?;
        let folder = parent.join(format!("weir-compare-{}-{:x}", std::process::id(), now_ns()));
        match fs::create_dir(&folder) {
            Ok(()) => Ok(Self { folder, source, runs: 0 }),
            Err(error) => Err(io::Error::new(error.kind(), format!("{}: {error}", folder.display()))),
        }
    }

    /// A group for the next run.
    pub(super) fn for_next_run(&mut self) -> io::Result<RunGroup> {
        self.runs += 1;
        let folder = self.folder.join(format!("run-{}", self.runs));
        fs::create_dir(&folder)?;
        let entry = match self.source {
            CpuSource::GroupSecond => File::open(&folder),
            CpuSource::GroupFirst | CpuSource::Rusage => {
                OpenOptions::new().write(true).open(folder.join("tasks"))
            }
        };
        match entry {
            Ok(entry) => Ok(RunGroup { folder, source: self.source, entry }),
            Err(error) => {
                remove(&folder);
                Err(error)
            }
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        remove_tree(&self.folder);
    }
}

impl RunGroup {
    /// How a process enters it.
    pub(super) fn membership(&self) -> Membership<'_> {
        match self.source {
            CpuSource::GroupSecond => Membership::Born(self.entry.as_fd()),
            // One thread that moves itself by `tasks` does not wait; `cgroup.procs` waits for all CPUs.
            CpuSource::GroupFirst | CpuSource::Rusage => Membership::Joins(self.entry.as_fd()),
        }
    }

    /// CPU of all processes that are or were in it.
    pub(super) fn cpu(&self) -> io::Result<GroupCpu> {
        cpu_of(&self.folder, self.source)
    }

    /// Its folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Processes in it.
    pub(super) fn processes(&self) -> Vec<u32> {
        processes(&self.folder)
    }

    /// Kills all processes in it at once, where the kernel can. Says whether the kernel did.
    pub(super) fn kill(&self) -> bool {
        fs::write(self.folder.join("cgroup.kill"), "1").is_ok()
    }
}

impl Drop for RunGroup {
    fn drop(&mut self) {
        remove(&self.folder);
    }
}

/// CPU of all processes that are or were in a group.
pub(super) fn cpu_of(folder: &Path, source: CpuSource) -> io::Result<GroupCpu> {
    let read = |name: &str| fs::read_to_string(folder.join(name));
    let cpu = match source {
        CpuSource::GroupSecond => second(&read("cpu.stat")?),
        CpuSource::GroupFirst | CpuSource::Rusage => {
            let number = |name: &str| read(name).map(|text| text.trim().parse::<u64>().ok());
            let (user, system) = (number("cpuacct.usage_user"), number("cpuacct.usage_sys"));
            number("cpuacct.usage")?.map(|total_ns| GroupCpu {
                total_ns,
                user: user.ok().flatten().unwrap_or(0),
                system: system.ok().flatten().unwrap_or(0),
            })
        }
    };
    cpu.ok_or_else(|| io::Error::other(format!("{}: it has no clock of CPU", folder.display())))
}

/// Processes in a group and in those below it that a run made.
pub(super) fn processes(folder: &Path) -> Vec<u32> {
    let own = |folder: &PathBuf| fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    let texts: Vec<String> = with_groups_below(folder).iter().map(own).collect();
    texts.iter().flat_map(|text| text.lines()).filter_map(|line| line.parse().ok()).collect()
}

/// A group and those below it, parents first.
fn with_groups_below(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut next) = (vec![folder.to_path_buf()], 0);
    while let Some(folder) = found.get(next).cloned() {
        next += 1;
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let groups = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        found.extend(groups.map(|entry| entry.path()).take(GROUPS_MAX.saturating_sub(found.len())));
    }
    found
}

/// Kills what is in a group and below it, and removes them all. For a comparison whose launcher was killed.
pub(super) fn end_tree(folder: &Path) {
    for _ in 0..REMOVALS_MAX {
        let left = processes(folder);
        if left.is_empty() {
            break;
        }
        for pid in left.into_iter().filter_map(super::household::pid) {
            // Fails only for a process that has ended.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        thread::park_timeout(REMOVAL_PAUSE);
    }
    remove_tree(folder);
}

fn remove_tree(folder: &Path) {
    with_groups_below(folder).iter().rev().for_each(|group| remove(group));
}

/// Removes a group. Groups that a run made in its own go with it.
fn remove(folder: &Path) {
    for _ in 0..REMOVALS_MAX {
        match fs::remove_dir(folder) {
            Err(error) if error.kind() == ErrorKind::ResourceBusy => {}
            Ok(()) | Err(_) => return,
        }
        let below = with_groups_below(folder);
        for group in below.iter().skip(1).rev() {
            // A group in use is tried again in the next round.
            let _ = fs::remove_dir(group);
        }
        thread::park_timeout(REMOVAL_PAUSE);
    }
}

/// The folder of the group that this process is in.
fn own_group(source: CpuSource) -> io::Result<PathBuf> {
    let none = |what: &str| io::Error::new(ErrorKind::NotFound, what.to_owned());
    let own = fs::read_to_string("/proc/self/cgroup")?;
    let (mounts, file) = match source {
        CpuSource::GroupSecond => (MOUNTS_SECOND, "cgroup.controllers"),
        CpuSource::GroupFirst => (MOUNTS_FIRST, "cpuacct.usage"),
        CpuSource::Rusage => return Err(none("this source has no groups")),
    };
    let name = name_of_own(&own, source).ok_or_else(|| none("this process is in no such control group"))?;
    let mounts = mounts.map(Path::new);
    let mounted = mounts.into_iter().find(|mount| mount.join(file).exists());
    let mount = mounted.ok_or_else(|| none("no such control groups are mounted below /sys/fs/cgroup"))?;
    // In a container the name is the host's, and the mount begins at the container's own group.
    let named = mount.join(name.trim_start_matches('/'));
    Ok(if named.join(file).exists() { named } else { mount.to_path_buf() })
}

/// The name of the own group in `/proc/self/cgroup`: `0::/user.slice`, or `2:cpu,cpuacct:/` of the first version.
fn name_of_own(text: &str, source: CpuSource) -> Option<&str> {
    text.lines().find_map(|line| {
        let (number, rest) = line.split_once(':')?;
        let (controllers, name) = rest.split_once(':')?;
        let is_it = match source {
            CpuSource::GroupSecond => number == "0" && controllers.is_empty(),
            CpuSource::GroupFirst => controllers.split(',').any(|controller| controller == "cpuacct"),
            CpuSource::Rusage => false,
        };
        is_it.then_some(name)
    })
}

/// Values of `cpu.stat` of the second version.
fn second(text: &str) -> Option<GroupCpu> {
    let number = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        line.trim().parse::<u64>().ok()
    };
    Some(GroupCpu {
        total_ns: number("usage_usec")?.checked_mul(1_000)?,
        user: number("user_usec").unwrap_or(0),
        system: number("system_usec").unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_found_in_either_version_of_the_list() {
        let hybrid = "9:name=systemd:/\n2:cpu,cpuacct:/a:b\n1:cpuset:/c\n0::/d/e\n";
        assert_eq!(name_of_own(hybrid, CpuSource::GroupSecond), Some("/d/e"));
        assert_eq!(name_of_own(hybrid, CpuSource::GroupFirst), Some("/a:b"));
        assert_eq!(name_of_own("1:cpu:/\n", CpuSource::GroupFirst), None);
        assert_eq!(name_of_own("nonsense\n0::/x", CpuSource::GroupSecond), Some("/x"));
        assert_eq!(name_of_own("", CpuSource::GroupSecond), None);
    }

    #[test]
    fn a_clock_of_the_second_version_has_its_parts() {
        let text = "usage_usec 1234\nuser_usec 1000\nsystem_usec 234\nnice_usec 0\n";
        assert_eq!(second(text), Some(GroupCpu { total_ns: 1_234_000, user: 1_000, system: 234 }));
        assert_eq!(second("nr_periods 0\nusage_usec_x 3\n"), None, "there is none");
        assert_eq!(second(&format!("usage_usec {}\n", u64::MAX)), None, "no clock says this");
    }

    #[test]
    fn a_tree_of_groups_is_removed_from_below() {
        let top = std::env::temp_dir().join(format!("weir-groups-{}", std::process::id()));
        fs::create_dir_all(top.join("run-1/inner")).expect("it can be made");
        fs::create_dir_all(top.join("run-2")).expect("it can be made");
        assert_eq!(with_groups_below(&top).len(), 4);
        remove_tree(&top);
        assert!(!top.exists());
    }

    #[test]
    fn no_more_groups_are_looked_for_than_the_maximum() {
        let top = std::env::temp_dir().join(format!("weir-many-groups-{}", std::process::id()));
        for number in 0..GROUPS_MAX + 3 {
            fs::create_dir_all(top.join(number.to_string())).expect("it can be made");
        }
        assert_eq!(with_groups_below(&top).len(), GROUPS_MAX);
        fs::remove_dir_all(&top).expect("it was made");
    }
}
