//! Noise of the whole machine between two moments.
//!
//! *Busy* is the wall time of all CPUs minus idle, I/O wait and steal. I/O wait counts as idle: the CPU had nothing
//! to run. Steal is excluded because it has a separate number and is no work of this machine. The obvious sum (user,
//! system, interrupts) is not used: those are sampled at ticks, and a program in step with its own timers is
//! miscounted by 5 % of a CPU and more within a second, while idle time on a tickless kernel is measured.
//!
//! Resolution: `/proc/stat` prints ticks of 10 ms, so busy time is known to within about two of them. On a kernel
//! with periodic ticks everything here is sampled at its tick rate. The CPU of single processes is not computed from
//! it: their own clocks are exact ([`ProcessUse`]).
//!
//! TCP counters belong to this process's network namespace.

use std::{io, time::Instant};

use weir_record::machine::NoiseWindow;

use crate::{files, parse};

/// Time of one CPU, or of all, since boot by state; in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// User code.
    pub user: u64,
    /// User code of niced processes.
    pub nice: u64,
    /// Kernel code.
    pub system: u64,
    /// Nothing to run.
    pub idle: u64,
    /// Nothing to run while a task of this CPU waits for storage.
    pub iowait: u64,
    /// Hardware interrupts.
    pub irq: u64,
    /// Soft interrupts; with loopback traffic most of the network stack.
    pub softirq: u64,
    /// Ready to run while the hypervisor ran something else.
    pub steal: u64,
}

/// Counters of the machine at one moment.
#[derive(Clone, Debug)]
pub struct SystemSnapshot {
    /// Time of the reading.
    pub taken: Instant,
    /// All CPUs together.
    pub total: CpuTimes,
    /// Every CPU online, with its number.
    pub cpus: Vec<(usize, CpuTimes)>,
    /// TCP segments retransmitted.
    pub tcp_retransmits: u64,
    /// Connections lost to a full accept queue.
    pub listen_overflows: u64,
    /// Connections a listener dropped for any reason, overflows included.
    pub listen_drops: u64,
}

/// CPU use of processes in a window, from their own clocks and counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessUse {
    /// CPU of all foreign processes (`foreign`).
    pub foreign_cpu_ns: u64,
    /// Time that threads of the target, the generator and other own processes waited for a CPU.
    pub own_run_delay_ns: u64,
}

impl CpuTimes {
    /// Share of steal in the time since boot, 0 to 1.
    pub fn steal_share(&self) -> f64 {
        let all = self.user + self.nice + self.system + self.unused() + self.irq + self.softirq;
        if all == 0 { 0.0 } else { self.steal as f64 / all as f64 }
    }

    fn unused(&self) -> u64 {
        self.idle.saturating_add(self.iowait).saturating_add(self.steal)
    }
}

impl SystemSnapshot {
    /// Reads the counters; fails when `/proc/stat` cannot be read, because all other figures would be meaningless.
    pub fn read() -> io::Result<Self> {
        let missing = || io::Error::new(io::ErrorKind::NotFound, "/proc/stat cannot be read");
        let stat = files::read_text("/proc/stat").ok_or_else(missing)?;
        let taken = Instant::now();
        let (total, cpus) = cpu_times(&stat).ok_or_else(missing)?;
        let snmp = files::read_text("/proc/net/snmp").unwrap_or_default();
        let netstat = files::read_text("/proc/net/netstat").unwrap_or_default();
        let counter = |text: &str, group, name| parse::network_counter(text, group, name).unwrap_or(0);
        Ok(Self {
            taken,
            total,
            cpus,
            tcp_retransmits: counter(&snmp, "Tcp", "RetransSegs"),
            listen_overflows: counter(&netstat, "TcpExt", "ListenOverflows"),
            listen_drops: counter(&netstat, "TcpExt", "ListenDrops"),
        })
    }
}

/// Steal between two snapshots, in ticks, and the time of all CPUs.
pub fn stolen(before: &SystemSnapshot, after: &SystemSnapshot) -> (u64, u64) {
    let machine_ns = elapsed_ns(before, after).saturating_mul(after.cpus.len().max(1) as u64);
    (ticks_ns(after.total.steal.saturating_sub(before.total.steal)).min(machine_ns), machine_ns)
}

/// The window between two snapshots, with the CPU use of processes in it.
pub fn noise_window(before: &SystemSnapshot, after: &SystemSnapshot, processes: ProcessUse) -> NoiseWindow {
    let window_ns = elapsed_ns(before, after);
    let (steal_ns, machine_ns) = stolen(before, after);
    let machine_busy_ns =
        machine_ns.saturating_sub(ticks_ns(after.total.unused().saturating_sub(before.total.unused())));
    NoiseWindow {
        window_ns,
        steal_share: share(steal_ns, machine_ns),
        foreign_cpus: share(processes.foreign_cpu_ns, window_ns),
        machine_busy_ns,
        run_delay_ns: processes.own_run_delay_ns,
        tcp_retransmits: after.tcp_retransmits.saturating_sub(before.tcp_retransmits),
        listen_overflows: after.listen_overflows.saturating_sub(before.listen_overflows),
    }
}

/// Busy share of each CPU in the window, 0 to 1; only CPUs online at both ends.
pub fn busy_by_cpu(before: &SystemSnapshot, after: &SystemSnapshot) -> Vec<(usize, f64)> {
    let window_ns = elapsed_ns(before, after);
    let start = |cpu| before.cpus.iter().find(|(other, _)| *other == cpu).map(|(_, times)| times.unused());
    after
        .cpus
        .iter()
        .filter_map(|(cpu, times)| {
            let unused_ns = ticks_ns(times.unused().saturating_sub(start(*cpu)?));
            Some((*cpu, share(window_ns.saturating_sub(unused_ns), window_ns)))
        })
        .collect()
}

fn elapsed_ns(before: &SystemSnapshot, after: &SystemSnapshot) -> u64 {
    u64::try_from(after.taken.saturating_duration_since(before.taken).as_nanos()).unwrap_or(u64::MAX)
}

fn ticks_ns(ticks: u64) -> u64 {
    ticks.saturating_mul(1_000_000_000 / rustix::param::clock_ticks_per_second().max(1))
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// The `cpu` lines of `/proc/stat`: the sum, and each CPU with its number.
fn cpu_times(text: &str) -> Option<(CpuTimes, Vec<(usize, CpuTimes)>)> {
    let mut total = None;
    let mut cpus = Vec::new();
    for line in text.lines() {
        let Some((name, times)) = line.strip_prefix("cpu").and_then(|rest| rest.split_once(' ')) else {
            continue;
        };
        match (name.is_empty(), name.parse()) {
            (true, _) => total = one_cpu(times),
            (false, Ok(number)) => cpus.extend(one_cpu(times).map(|times| (number, times))),
            (false, Err(_)) => {}
        }
    }
    Some((total?, cpus))
}

fn one_cpu(text: &str) -> Option<CpuTimes> {
    // Guest time, fields 9 and 10, is already included in user and nice.
    let mut numbers = text.split_ascii_whitespace().map(|word| word.parse::<u64>().ok());
    let mut next = || numbers.next().flatten();
    Some(CpuTimes {
        user: next()?,
        nice: next()?,
        system: next()?,
        idle: next()?,
        iowait: next()?,
        irq: next()?,
        softirq: next()?,
        steal: next()?,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    const STAT: &str = "cpu  1958 1 1220 182274 305 2 33 12 7 0\ncpu0 752 0 431 91693 17 0 7 1 0 0\n\
                        cpu1 1206 1 789 90580 287 2 25 10 0 0\nintr 5 6\nctxt 77\nbtime 1\n";

    fn snapshot(taken: Instant, idle: u64, iowait: u64, steal: u64, retransmits: u64) -> SystemSnapshot {
        let each = CpuTimes { idle: idle / 2, iowait: iowait / 2, steal: steal / 2, ..CpuTimes::default() };
        SystemSnapshot {
            taken,
            total: CpuTimes { idle, iowait, steal, ..CpuTimes::default() },
            cpus: vec![(0, each), (1, each)],
            tcp_retransmits: retransmits,
            listen_overflows: 0,
            listen_drops: 0,
        }
    }

    #[test]
    fn cpu_lines_are_read_by_column() {
        let (total, cpus) = cpu_times(STAT).expect("a whole file");
        assert_eq!(
            total,
            CpuTimes {
                user: 1958,
                nice: 1,
                system: 1220,
                idle: 182_274,
                iowait: 305,
                irq: 2,
                softirq: 33,
                steal: 12
            }
        );
        assert_eq!(
            cpus.iter().map(|(number, times)| (*number, times.steal)).collect::<Vec<_>>(),
            [(0, 1), (1, 10)]
        );
        assert!((total.steal_share() - 12.0 / 185_805.0).abs() < 1e-12);
    }

    #[test]
    fn cut_files_give_fewer_cpus_or_nothing() {
        assert_eq!(cpu_times(""), None);
        assert_eq!(cpu_times("cpu  1 2 3 4 5 6 7\ncpu0 1 2 3 4 5 6 7 8\n"), None);
        let cut = STAT.find(" 91693").expect("idle time of CPU 0 in the fixture");
        let (_, cpus) = cpu_times(&STAT[..cut]).expect("the first line is whole");
        assert!(cpus.is_empty());
    }

    #[test]
    fn busy_is_what_is_neither_idle_nor_stolen() {
        let start = Instant::now();
        let before = snapshot(start, 1000, 10, 0, 5);
        // Two seconds of two CPUs: 4 s, of which 1.5 s idle, 0.1 s waiting for storage, 0.4 s stolen.
        let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second();
        let ticks = |ms: u64| ms * 1_000_000 / tick;
        let after =
            snapshot(start + Duration::from_secs(2), 1000 + ticks(1500), 10 + ticks(100), ticks(400), 8);
        let processes = ProcessUse { foreign_cpu_ns: 300_000_000, own_run_delay_ns: 42 };
        let noise = noise_window(&before, &after, processes);
        assert_eq!((noise.window_ns, noise.machine_busy_ns), (2_000_000_000, 2_000_000_000));
        assert!((noise.steal_share - 0.1).abs() < 1e-9);
        assert!((noise.foreign_cpus - 0.15).abs() < 1e-9);
        assert_eq!((noise.tcp_retransmits, noise.run_delay_ns), (3, 42));
        for (_, busy) in busy_by_cpu(&before, &after) {
            assert!((busy - 0.5).abs() < 1e-9);
        }
    }

    #[test]
    fn an_empty_window_and_counters_that_fall_give_zeros() {
        let start = Instant::now();
        let before = snapshot(start, 1000, 100, 50, 9);
        let noise = noise_window(&before, &snapshot(start, 900, 0, 0, 0), ProcessUse::default());
        assert_eq!(noise, NoiseWindow::default());
    }

    #[test]
    fn the_live_files_are_understood() {
        let snapshot = SystemSnapshot::read().expect("/proc/stat");
        assert!(!snapshot.cpus.is_empty());
        assert!(snapshot.total.idle > 0);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "(cpu[0-9]{0,3} [0-9 ]{0,60}\n|[a-z0-9 \n]{0,40}){0,6}") {
            let _ = cpu_times(&text);
        }
    }
}
