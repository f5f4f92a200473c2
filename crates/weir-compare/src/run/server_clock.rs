//! A server's figures so far, read while it runs: CPU from its control group or from the clocks of its processes, the
//! rest from the kernel's figures for each process.
//!
//! Faults and bytes of processes that ended are in those of a parent that waited for them. Switches of threads and
//! processes that ended are lost.

use std::{fs, io, path::PathBuf};

use weir_evidence::process::{ProcessTree, family_of};
use weir_sys::{
    launched::now_ns,
    process_stat::{self, ProcessStat},
};

use super::{
    CpuSource, RunCost, Serving,
    cpu_group::{self, GroupCpu},
    launch::{bytes_of, divide},
};

/// Written to `/proc/PID/clear_refs`, it resets the peak of resident memory.
const FORGET_PEAK: &str = "5";

/// Fields of `/proc/PID/stat` with page faults: without and with a disk, each with those of children waited for.
const FAULTS_MINOR: [usize; 2] = [10, 11];
const FAULTS_MAJOR: [usize; 2] = [12, 13];

/// Where a server's figures are read.
#[derive(Clone, Debug)]
pub struct ServerClock {
    launcher: u32,
    group: Option<PathBuf>,
    source: CpuSource,
}

/// A server's figures at one moment.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// The moment, on the monotonic clock.
    pub at_ns: u64,
    group: Option<GroupCpu>,
    tree: ProcessTree,
    faults_minor: u64,
    faults_major: u64,
    bytes: Option<(u64, u64)>,
    memory_bytes_max: Option<u64>,
}

impl ServerClock {
    pub(super) fn new(serving: Serving, source: CpuSource) -> Self {
        Self { launcher: serving.launcher, group: serving.group.map(PathBuf::from), source }
    }

    /// The figures now. Costs some small files for each process and each thread.
    ///
    /// # Errors
    /// When its CPU cannot be read.
    pub fn read(&self) -> io::Result<Reading> {
        let processes = self.processes();
        let group = self.group.as_deref().map(|folder| cpu_group::cpu_of(folder, self.source)).transpose()?;
        let at_ns = now_ns();
        let sum = |fields: [usize; 2]| processes.iter().map(|process| faults(*process, fields)).sum();
        let bytes = processes.iter().filter_map(|process| bytes_of(&text(*process, "io")?));
        let peaks = processes.iter().filter_map(|process| peak_in(&text(*process, "status")?));
        Ok(Reading {
            at_ns,
            group,
            faults_minor: sum(FAULTS_MINOR),
            faults_major: sum(FAULTS_MAJOR),
            bytes: bytes.reduce(|one, other| (one.0 + other.0, one.1 + other.1)),
            memory_bytes_max: peaks.max(),
            tree: ProcessTree::of(processes)?,
        })
    }

    /// Resets peaks of memory, where the system allows it; otherwise they are those since the start.
    pub fn forget_peaks(&self) {
        for process in self.processes() {
            // Refused for processes of other users.
            let _ = fs::write(format!("/proc/{process}/clear_refs"), FORGET_PEAK);
        }
    }

    /// Processes of the server.
    fn processes(&self) -> Vec<u32> {
        match &self.group {
            Some(folder) => cpu_group::processes(folder),
            None => family_of(self.launcher).unwrap_or_default().into_iter().skip(1).collect(),
        }
    }
}

impl Reading {
    /// The use between this moment and a later one. The time is left out: the load measures it.
    pub fn until(&self, later: &Self) -> RunCost {
        let delta = ProcessTree::delta(&self.tree, &later.tree);
        let (user_ns, system_ns) = match (self.group, later.group) {
            (Some(before), Some(after)) => divide(
                after.total_ns.saturating_sub(before.total_ns),
                after.user.saturating_sub(before.user),
                after.system.saturating_sub(before.system),
            ),
            _ => {
                let system_ns = delta.system_ns.min(delta.cpu_ns);
                (delta.cpu_ns - system_ns, system_ns)
            }
        };
        let bytes = self.bytes.zip(later.bytes);
        RunCost {
            user_ns,
            system_ns,
            memory_bytes_max: later.memory_bytes_max,
            faults_minor: later.faults_minor.saturating_sub(self.faults_minor),
            faults_major: later.faults_major.saturating_sub(self.faults_major),
            switches_voluntary: delta.context_switches_voluntary,
            switches_involuntary: delta.context_switches_involuntary,
            read_bytes: bytes.map(|(before, after)| after.0.saturating_sub(before.0)),
            written_bytes: bytes.map(|(before, after)| after.1.saturating_sub(before.1)),
            ..RunCost::default()
        }
    }
}

fn text(process: u32, name: &str) -> Option<String> {
    fs::read_to_string(format!("/proc/{process}/{name}")).ok()
}

fn faults(process: u32, fields: [usize; 2]) -> u64 {
    let line = process_stat::read(process).unwrap_or_default();
    let stat = ProcessStat::parse(&line);
    fields.into_iter().filter_map(|field| stat?.number(field)).sum()
}

/// The peak of resident memory in `/proc/PID/status`, in bytes.
fn peak_in(status: &str) -> Option<u64> {
    let rest = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    rest.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_between_two_readings_is_divided_as_the_samples_of_the_same_time() {
        let cpu = |total_ns, user, system| Some(GroupCpu { total_ns, user, system });
        let before = Reading {
            group: cpu(1_000, 900, 100),
            faults_minor: 5,
            bytes: Some((10, 20)),
            ..Reading::default()
        };
        let after = Reading {
            group: cpu(3_000, 1_400, 1_600),
            faults_minor: 8,
            bytes: Some((110, 25)),
            memory_bytes_max: Some(4_096),
            ..Reading::default()
        };
        let cost = before.until(&after);
        assert_eq!((cost.user_ns, cost.system_ns, cost.faults_minor), (500, 1_500, 3));
        assert_eq!((cost.read_bytes, cost.written_bytes), (Some(100), Some(5)));
        assert_eq!((cost.memory_bytes_max, cost.wall_ns), (Some(4_096), 0));
        assert_eq!(before.until(&Reading::default()).cpu_ns(), 0, "one that is gone has used nothing more");
    }

    #[test]
    fn this_process_has_faults_bytes_and_a_peak() {
        let own = std::process::id();
        assert!(faults(own, FAULTS_MINOR) > 0);
        assert!(peak_in(&text(own, "status").expect("it runs")).is_some_and(|peak| peak > 1 << 20));
        assert_eq!(peak_in("VmHWM:\t    17 kB\n"), Some(17 << 10));
        assert_eq!(peak_in("Name: x\n"), None, "a process without its own memory");
    }
}
