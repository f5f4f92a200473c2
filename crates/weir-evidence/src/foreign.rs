//! CPU that foreign processes used in a window, each by its own CPU clock.
//!
//! It is not computed as the machine's busy time minus our processes: interrupts and idle transitions belong to no
//! process, our own traffic causes them, and they grow with the number of sleeps, so that a paced load on a quiet
//! machine would look disturbed. Kernel threads count: they are processes here. The exception is `ksoftirqd`, which
//! has no own work: it finishes interrupts that took too long, and if no other process uses the network those
//! are ours. (Large messages over loopback give it 5 to 9 % of a CPU; every such cell looked disturbed.) If the
//! traffic belongs to others, their processes count as usual. For the same reason a measurement that writes to a disk
//! through a filesystem may exclude all kernel threads: they do the work of its journal and its block queue.
//!
//! There are two limits. The CPU of a process that ended within the window is lost, because its clock ended with it.
//! A process that runs on another CPU when it is read is known as of that CPU's last tick (4 ms at 250 Hz), so a
//! process that spins throughout is known to within a tick; all others exactly.

use std::{
    collections::{HashMap, HashSet},
    fs, io,
    sync::OnceLock,
};

use weir_sys::{
    clock::process_cpu_ns,
    process_stat::{self, ProcessStat},
};

/// CPU clocks of all processes at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessClocks(HashMap<u32, u64>);

impl ProcessClocks {
    /// Reads the clock of every visible process.
    pub fn read() -> io::Result<Self> {
        let not_counted = softirq_threads();
        Self::of(|pid| !not_counted.contains(&pid))
    }

    /// Like [`Self::read`], without kernel threads.
    pub fn read_of_programs() -> io::Result<Self> {
        Self::of(|pid| process_stat::read(pid).is_none_or(|stat| kernel_thread(&stat).is_none()))
    }

    fn of(is_counted: impl Fn(u32) -> bool) -> io::Result<Self> {
        let numbers =
            fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        // A process that ends between the listing and its reading is left out.
        let clock = |pid: u32| Some((pid, process_cpu_ns(pid).ok()?));
        Ok(Self(numbers.filter(|pid| is_counted(*pid)).filter_map(clock).collect()))
    }

    /// Nanoseconds that processes not in `own` used between this moment and `later`.
    pub fn foreign_ns_until(&self, later: &Self, own: &HashSet<u32>) -> u64 {
        let used = |(pid, end): (&u32, &u64)| {
            let start = self.0.get(pid).copied().unwrap_or(0);
            // A clock that decreased belongs to a new process with a reused number.
            if *end < start { *end } else { end - start }
        };
        later.0.iter().filter(|(pid, _)| !own.contains(pid)).map(used).sum()
    }
}

/// The kernel's `ksoftirqd` threads, one per CPU. They live as long as the machine, so they are listed once; empty if
/// kernel threads are not visible.
fn softirq_threads() -> &'static HashSet<u32> {
    static FOUND: OnceLock<HashSet<u32>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let Ok(entries) = fs::read_dir("/proc") else { return HashSet::new() };
        let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        let is_softirq = |pid: &u32| {
            process_stat::read(*pid)
                .is_some_and(|stat| kernel_thread(&stat).is_some_and(|name| name.starts_with("ksoftirqd/")))
        };
        numbers.filter(is_softirq).collect()
    })
}

/// Name of the kernel thread in a line of `/proc/PID/stat`, if it is one: its parent is `kthreadd`, which is always
/// process 2 and has only kernel threads as children (`proc_pid_stat(5)`).
fn kernel_thread(stat: &str) -> Option<&str> {
    let stat = ProcessStat::parse(stat)?;
    (stat.parent() == Some(2)).then_some(stat.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_calls_itself_ksoftirqd_is_no_kernel_thread() {
        assert_eq!(kernel_thread("14 (ksoftirqd/0) S 2 0 0 0 -1 69238848 0 0"), Some("ksoftirqd/0"));
        assert_eq!(kernel_thread("914 (ksoftirqd/0) S 1 0 0 0 -1 4194304 0 0"), None);
        assert_eq!(kernel_thread("15 (kworker/0:1) I 2 0 0 0 -1 69238880 0 0"), Some("kworker/0:1"));
        assert_eq!(kernel_thread("915 (ksoftirqd/) 2 ) S 1 0 0"), None);
        assert_eq!(kernel_thread(""), None);
    }

    fn clocks(list: &[(u32, u64)]) -> ProcessClocks {
        ProcessClocks(list.iter().copied().collect())
    }

    #[test]
    fn only_what_others_used_in_the_window_counts() {
        let before = clocks(&[(1, 100), (2, 500), (3, 900), (4, 70)]);
        let after = clocks(&[(1, 150), (2, 800), (3, 20), (5, 7)]);
        // 1 used 50; 2 is ours; 3 is a new process with a reused number; 4 has ended; 5 started in the window.
        assert_eq!(before.foreign_ns_until(&after, &HashSet::from([2])), 50 + 20 + 7);
    }

    #[test]
    fn programs_are_the_processes_that_are_no_kernel_threads() {
        let (all, programs) = (ProcessClocks::read().unwrap(), ProcessClocks::read_of_programs().unwrap());
        assert!(programs.0.contains_key(&std::process::id()));
        let kernels: Vec<u32> = all.0.keys().copied().filter(|pid| !programs.0.contains_key(pid)).collect();
        // A thread that is gone by now cannot be checked.
        let is_kernels = |pid: &u32| process_stat::read(*pid).is_none_or(|it| kernel_thread(&it).is_some());
        assert!(kernels.iter().all(is_kernels), "{kernels:?}");
    }

    #[test]
    fn this_process_is_foreign_to_others_and_not_to_itself() {
        let before = ProcessClocks::read().unwrap();
        let own = std::process::id();
        let started = process_cpu_ns(own).unwrap();
        while process_cpu_ns(own).unwrap() < started + 30_000_000 {
            std::hint::black_box(0);
        }
        let after = ProcessClocks::read().unwrap();
        let whole = before.foreign_ns_until(&after, &HashSet::new());
        let without = before.foreign_ns_until(&after, &HashSet::from([own]));
        assert!(whole >= without + 25_000_000, "{whole} {without}");
    }
}
