//! Memory that connections take: of the processes that hold them, and of the kernel.

use crate::{files, parse, process};

/// Resident memory of a process and all below it, with its share of what it has in common with others (PSS); `None`
/// where the system does not tell.
pub fn pss_bytes(root: u32) -> Option<u64> {
    let family = process::family_of(root).ok()?;
    family.into_iter().map(|pid| pss_in(&files::read_text(format!("/proc/{pid}/smaps_rollup"))?)).sum()
}

fn pss_in(rollup: &str) -> Option<u64> {
    parse::number_field(rollup, "Pss").map(|kib| kib * 1024)
}

/// Memory of the kernel that grows with connections, over the whole machine: its structures, and socket buffers of this
/// network namespace. `None` where the system does not tell.
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
    fn this_process_has_memory() {
        assert!(pss_bytes(std::process::id()).is_none_or(|bytes| bytes > 0));
        assert_eq!(pss_bytes(u32::MAX), None);
    }
}
