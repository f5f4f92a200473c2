//! CPU and processes of a control group, in version 1 or 2.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::{files, process::PROCESSES_MAX};

/// Where control groups are mounted, as users copy paths.
pub(crate) const MOUNT: &str = "/sys/fs/cgroup";

/// Folders below it with the CPU controllers: version 2 alone, version 2 beside version 1, and version 1.
const TOPS: [&str; 4] = ["", "unified", "cpuacct", "cpu,cpuacct"];

/// Parses a line of `/proc/PID/cgroup`, `HIERARCHY:CONTROLLERS:PATH`: the controllers of the hierarchy, separated by
/// commas and empty for version 2, and the path from its root, which may contain colons.
pub(crate) fn membership(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.split_once(':')?;
    rest.split_once(':')
}

/// The mounted folder of a hierarchy, if it has the controller or is of version 2.
pub(crate) fn folder_of(mount: &Path, controllers: &str, controller: &str) -> Option<PathBuf> {
    match controllers {
        "" => Some(mount.to_owned()),
        _ if controllers.split(',').any(|one| one == controller) => Some(mount.join(controllers)),
        _ => None,
    }
}

/// Most groups below one that are read.
const GROUPS_MAX: usize = 4096;

/// A control group with a CPU clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlGroup {
    folder: PathBuf,
}

impl ControlGroup {
    /// Finds a group by its folder, or by its name in the form of /proc/PID/cgroup (`/system.slice/nginx.service`).
    ///
    /// # Errors
    /// Fails if no group with this name has a readable CPU clock.
    pub fn find(name: &str) -> io::Result<Self> {
        let named = Path::new(name);
        let below = |top: &str| Path::new(MOUNT).join(top).join(name.trim_start_matches('/'));
        let own = named.starts_with(MOUNT).then(|| named.to_path_buf());
        let folders = own.into_iter().chain(TOPS.iter().map(|top| below(top)));
        let mut groups = folders.map(|folder| Self { folder });
        groups.find(|group| group.cpu_ns().is_some()).ok_or_else(|| {
            let reason = format!("there is no control group {name} below {MOUNT} with a cpu.stat");
            io::Error::new(io::ErrorKind::NotFound, reason)
        })
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// CPU of all processes that are or were in it or below it. `None` if it is gone.
    pub fn cpu_ns(&self) -> Option<u64> {
        let of_second = files::read_text(self.folder.join("cpu.stat")).and_then(|text| usage_ns(&text));
        of_second.or_else(|| files::read_value(self.folder.join("cpuacct.usage"))?.parse().ok())
    }

    /// Processes in it and below it that have a number here, ascending.
    ///
    /// # Errors
    /// Fails if there are more processes or groups than the limits.
    pub fn pids(&self) -> io::Result<Vec<u32>> {
        let (mut found, mut folders, mut next) = (Vec::new(), vec![self.folder.clone()], 0);
        while let Some(folder) = folders.get(next).cloned() {
            next += 1;
            let own = files::read_text(folder.join("cgroup.procs")).unwrap_or_default();
            // The kernel writes 0 for a process of a PID namespace that is not visible here.
            found.extend(own.lines().filter_map(|line| line.parse::<u32>().ok()).filter(|pid| *pid > 0));
            let below = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            let below = below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            folders.extend(below.map(|entry| entry.path()));
            if folders.len() > GROUPS_MAX || found.len() > PROCESSES_MAX {
                return Err(self.too_large());
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    fn too_large(&self) -> io::Error {
        let folder = self.folder.display();
        io::Error::other(format!(
            "the control group {folder} has more than {PROCESSES_MAX} processes, or more than {GROUPS_MAX} groups"
        ))
    }
}

/// The CPU usage in `cpu.stat` of version 2; version 1 has no such line.
fn usage_ns(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
    line.trim().parse::<u64>().ok()?.checked_mul(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_in_either_version_of_the_file() {
        assert_eq!(usage_ns("usage_usec 1234\nuser_usec 1000\n"), Some(1_234_000));
        assert_eq!(usage_ns("nr_periods 0\nnr_throttled 0\n"), None, "the first version's");
        assert_eq!(usage_ns("usage_usec many\n"), None);
    }

    #[test]
    fn a_line_has_controllers_and_a_path_and_those_of_version_1_have_a_folder() {
        assert_eq!(membership("4:cpu,cpuacct:/a:b"), Some(("cpu,cpuacct", "/a:b")));
        assert_eq!((membership("0::/a"), membership("0:/a"), membership("")), (Some(("", "/a")), None, None));
        let folder = |controllers| folder_of(Path::new("/m"), controllers, "cpu");
        assert_eq!(folder(""), Some("/m".into()));
        assert_eq!((folder("cpuacct,cpu"), folder("cpuset")), (Some("/m/cpuacct,cpu".into()), None));
    }

    #[test]
    fn a_group_is_read_with_those_below_it() {
        let folder = std::env::temp_dir().join(format!("weir-control-group-{}", std::process::id()));
        let below = folder.join("below");
        std::fs::create_dir_all(&below).expect("it can be made");
        let write = |path: PathBuf, text: &str| std::fs::write(path, text).expect("it can be written");
        write(folder.join("cgroup.procs"), "30\n10\n");
        write(below.join("cgroup.procs"), "20\n");
        let group = ControlGroup { folder: folder.clone() };
        assert_eq!(group.cpu_ns(), None, "nobody says");
        write(folder.join("cpuacct.usage"), "77\n");
        assert_eq!((group.cpu_ns(), pids(&group)), (Some(77), vec![10, 20, 30]));
        write(below.join("cgroup.procs"), "0\n20\n0\n");
        assert_eq!(pids(&group), [10, 20, 30], "those of another PID namespace have no number here");
        write(folder.join("cpu.stat"), "usage_usec 5\n");
        assert_eq!(group.cpu_ns(), Some(5_000));
        std::fs::remove_dir_all(&folder).expect("it was made");
        assert_eq!((group.cpu_ns(), pids(&group)), (None, vec![]), "it is gone");
    }

    fn pids(group: &ControlGroup) -> Vec<u32> {
        group.pids().expect("there are few")
    }

    #[test]
    fn a_group_of_too_many_processes_is_no_smaller_one() {
        let folder = std::env::temp_dir().join(format!("weir-large-group-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("it can be made");
        let group = ControlGroup { folder: folder.clone() };
        let with = |count: usize| {
            let text: String = (1..=count).map(|pid| format!("{pid}\n")).collect();
            std::fs::write(folder.join("cgroup.procs"), text).expect("it can be written");
            group.pids().map(|pids| pids.len()).map_err(|error| error.to_string())
        };
        assert_eq!(with(PROCESSES_MAX), Ok(PROCESSES_MAX));
        let error = with(PROCESSES_MAX + 1).expect_err("one too many");
        assert!(error.contains("more than 4096 processes"), "{error}");
        std::fs::remove_dir_all(&folder).expect("it was made");
    }

    #[test]
    fn a_group_that_is_not_there_is_named() {
        let error = ControlGroup::find("/no-such.slice").expect_err("it is not there").to_string();
        assert!(error.contains("/no-such.slice"), "{error}");
    }
}
