//! Memory of connections: of the processes that have them, and of the kernel. Also the memory that is still
//! available.

use std::path::{Path, PathBuf};

use crate::{
    control_group::{MOUNT, folder_of, membership},
    files, parse, process,
};

/// Memory that this process and its children may still use before the OOM killer acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBudget {
    /// Bytes, including reclaimable caches.
    pub available_bytes: u64,
    /// The limit of the control group that causes this value; absent if the machine does.
    pub group_limit_bytes: Option<u64>,
}

/// Reads the budget; `None` if the system does not report it.
pub fn memory_budget() -> Option<MemoryBudget> {
    budget_under(Path::new("/"))
}

fn budget_under(root: &Path) -> Option<MemoryBudget> {
    let meminfo = files::read_text(root.join("proc/meminfo"))?;
    let available_bytes = parse::number_field(&meminfo, "MemAvailable")? * 1024;
    let machine = MemoryBudget { available_bytes, group_limit_bytes: None };
    let groups = memory_groups(root).into_iter().filter_map(|group| budget_of_group(&group));
    groups.chain([machine]).min_by_key(|budget| budget.available_bytes)
}

/// Folders of the groups that may limit this process's memory: its own and all above it, of both versions. With
/// cgroup namespaces, its own group is the root of what is visible.
fn memory_groups(root: &Path) -> Vec<PathBuf> {
    let groups = files::read_text(root.join("proc/self/cgroup")).unwrap_or_default();
    let mount = root.join(MOUNT.trim_start_matches('/'));
    let mut found = Vec::new();
    for (controllers, path) in groups.lines().filter_map(membership) {
        let Some(top) = folder_of(&mount, controllers, "memory") else { continue };
        let own = top.join(path.trim_start_matches('/'));
        found.extend(own.ancestors().take_while(|folder| folder.starts_with(&top)).map(Path::to_path_buf));
    }
    found
}

/// Memory left in a group; `None` if it has no limit.
fn budget_of_group(group: &Path) -> Option<MemoryBudget> {
    let number = |file: &str| files::read_value(group.join(file))?.parse::<u64>().ok();
    let (limit, used, cached) = match number("memory.max") {
        Some(limit) => (limit, number("memory.current")?, ["inactive_file ", "active_file "]),
        None => {
            let limit = number("memory.limit_in_bytes")?;
            (limit, number("memory.usage_in_bytes")?, ["total_inactive_file ", "total_active_file "])
        }
    };
    let stat = files::read_text(group.join("memory.stat")).unwrap_or_default();
    let of_stat = |key: &str| -> u64 {
        stat.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok()).unwrap_or(0)
    };
    let held = used.saturating_sub(cached.into_iter().map(of_stat).sum());
    Some(MemoryBudget { available_bytes: limit.saturating_sub(held), group_limit_bytes: Some(limit) })
}

/// Resident memory of a process and its descendants, with shared pages divided by their users (PSS); `None` if the
/// system does not report it.
pub fn pss_bytes(root: u32) -> Option<u64> {
    let family = process::family_of(root).ok()?;
    family.into_iter().map(|pid| pss_in(&files::read_text(format!("/proc/{pid}/smaps_rollup"))?)).sum()
}

fn pss_in(rollup: &str) -> Option<u64> {
    parse::number_field(rollup, "Pss").map(|kib| kib * 1024)
}

/// Kernel memory that grows with connections, over the whole machine: its structures, and socket buffers of this
/// network namespace. `None` if the system does not report it.
pub fn kernel_bytes() -> Option<u64> {
    let sockets = files::read_text("/proc/net/sockstat").unwrap_or_default();
    kernel_in(&files::read_text("/proc/meminfo")?, &sockets, rustix::param::page_size() as u64)
}

fn kernel_in(meminfo: &str, sockstat: &str, page_bytes: u64) -> Option<u64> {
    let structures = parse::number_field(meminfo, "Slab")? * 1024;
    let of_tcp =
        parse::field(sockstat, "TCP").and_then(|line| line.split_once("mem ")?.1.parse::<u64>().ok());
    Some(structures + of_tcp.unwrap_or(0) * page_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_in_the_kernels_texts() {
        let rollup =
            "559010b39000-7ffd7167d000 ---p 00000000 00:00 0  [rollup]\nRss:  1772 kB\nPss:   342 kB\n";
        assert_eq!((pss_in(rollup), pss_in("")), (Some(342 << 10), None));
        let sockstat = "sockets: used 38\nTCP: inuse 19 orphan 0 tw 3 alloc 19 mem 43\nUDP: inuse 0 mem 7\n";
        assert_eq!(kernel_in("Slab:  100 kB\n", sockstat, 4096), Some((100 << 10) + 43 * 4096));
        assert_eq!(kernel_in("Slab:  100 kB\n", "", 4096), Some(100 << 10));
        assert_eq!(kernel_in("MemTotal: 1 kB\n", sockstat, 4096), None);
    }

    #[test]
    fn the_tightest_group_above_this_process_sets_the_budget() {
        let root = std::env::temp_dir().join(format!("weir-memory-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
            std::fs::write(path, text).expect("a file can be written");
        };
        let budget = || budget_under(&root).map(|it| (it.available_bytes, it.group_limit_bytes));
        write("proc/meminfo", "MemTotal: 900 kB\nMemAvailable:  800 kB\n");
        assert_eq!(budget(), Some((800 << 10, None)));
        write("proc/self/cgroup", "4:memory:/a/b\n1:cpu:/\n0::/user/own\n");
        write("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
        write("sys/fs/cgroup/memory/a/b/memory.usage_in_bytes", "4096\n");
        write("sys/fs/cgroup/user/own/memory.max", "max\n");
        assert_eq!(budget(), Some((800 << 10, None)), "no group has a limit that matters");
        write("sys/fs/cgroup/user/memory.max", "500000\n");
        write("sys/fs/cgroup/user/memory.current", "300000\n");
        write("sys/fs/cgroup/user/memory.stat", "anon 1\ninactive_file 50000\nactive_file 10000\n");
        assert_eq!(
            budget(),
            Some((260_000, Some(500_000))),
            "the caches of the group above can be taken back"
        );
        write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "100000\n");
        write("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "200000\n");
        assert_eq!(budget(), Some((0, Some(100_000))), "it holds more than it may");
        std::fs::remove_dir_all(&root).expect("it can be removed");
    }

    #[test]
    fn this_process_has_memory() {
        assert!(pss_bytes(std::process::id()).is_none_or(|bytes| bytes > 0));
        assert_eq!(pss_bytes(u32::MAX), None);
    }
}
