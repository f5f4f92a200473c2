//! Section `cpus`: the CPUs, whether threads can be pinned, and what changes their speed.

use std::thread;

use weir_record::{
    doctor::{Diagnosis, FindingState},
    finding::{Finding, SharedPart},
    machine::Fingerprint,
};

use super::{finding, unlocked_by, yes_or_limited};
use crate::{
    files,
    placement::{Placement, Sharing, Topology, cores, place},
};

const SECTION: &str = "cpus";

/// Clock sources that are read without a trap to the hypervisor or a device.
const CLOCKS_FAST: [&str; 4] = ["tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"];

pub(super) fn findings(machine: &Fingerprint) -> Vec<Diagnosis> {
    let topology = Topology::from(machine);
    let mut findings = vec![cores_finding(&topology, machine.cpus_online)];
    if let Some(placement) = place(&topology) {
        findings.push(pinning(&placement, &refused_cpus(&placement)));
    }
    findings.push(quota(cpu_quota()));
    findings.push(governor(machine.governor.as_deref()));
    findings.push(clocksource(&machine.clocksource));
    findings
}

fn cores_finding(topology: &Topology, online: u32) -> Diagnosis {
    let cores = cores(topology).len();
    let allowed = topology.allowed.len();
    let state = match (cores, allowed) {
        (2.., _) => FindingState::Yes,
        (_, 2..) => FindingState::Limited,
        _ => FindingState::No,
    };
    let shared = match state {
        FindingState::Yes => SharedPart::Nothing,
        FindingState::Limited => SharedPart::Core,
        FindingState::No => SharedPart::Cpu,
    };
    let found = Finding::CoresFound { allowed: number(allowed), online, cores: number(cores), shared };
    finding(SECTION, "cores", state, found)
}

fn pinning(placement: &Placement, refused: &[usize]) -> Diagnosis {
    let shared = match placement.sharing {
        Sharing::Nothing => SharedPart::Nothing,
        Sharing::Core => SharedPart::Core,
        Sharing::Cpu => SharedPart::Cpu,
    };
    let state = match (refused.is_empty(), shared) {
        (false, _) => FindingState::No,
        (true, shared) => yes_or_limited(shared == SharedPart::Nothing),
    };
    let [server, load, refused] = [&placement.server[..], &placement.load, refused].map(numbers);
    finding(SECTION, "pinning", state, Finding::PinnedTo { server, load, refused, shared })
}

/// CPUs of the placement to which a thread cannot be pinned.
fn refused_cpus(placement: &Placement) -> Vec<usize> {
    let wanted: Vec<usize> = placement.server.iter().chain(&placement.load).copied().collect();
    // In a separate thread, because a pinned thread stays pinned.
    let tried = thread::spawn(move || {
        wanted.into_iter().filter(|cpu| weir_sys::affinity::pin_current_thread(&[*cpu]).is_err()).collect()
    });
    tried.join().unwrap_or_default()
}

fn numbers(cpus: &[usize]) -> Vec<u32> {
    cpus.iter().copied().map(number).collect()
}

fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// The CPU quota of this control group in CPUs, if there is one.
fn cpu_quota() -> Option<f64> {
    files::read_text("/sys/fs/cgroup/cpu.max").as_deref().and_then(parse_quota).or_else(|| {
        let quota = files::read_value("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")?;
        parse_quota(&format!("{quota} {}", files::read_value("/sys/fs/cgroup/cpu/cpu.cfs_period_us")?))
    })
}

/// Parses `QUOTA PERIOD`; the quota is `max` or negative if there is none.
fn parse_quota(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

fn quota(cpus: Option<f64>) -> Diagnosis {
    let found = cpus.map_or(Finding::NoCpuQuota, |cpus| Finding::CpuQuota { cpus });
    finding(SECTION, "quota", yes_or_limited(cpus.is_none()), found)
}

fn governor(governor: Option<&str>) -> Diagnosis {
    let good = matches!(governor, None | Some("performance"));
    let named = |name: &str| Finding::Governor { name: name.to_owned(), follows_load: !good };
    let found = governor.map_or(Finding::NoGovernor, named);
    unlocked_by(
        finding(SECTION, "governor", yes_or_limited(good), found),
        "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
    )
}

fn clocksource(name: &str) -> Diagnosis {
    if name.is_empty() {
        return finding(SECTION, "clocksource", FindingState::Limited, Finding::NoClockSource);
    }
    let is_fast = CLOCKS_FAST.contains(&name);
    let found = Finding::ClockSource { name: name.to_owned(), is_fast };
    let found = finding(SECTION, "clocksource", yes_or_limited(is_fast), found);
    unlocked_by(found, "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topology(allowed: Vec<usize>, siblings: Vec<Vec<usize>>) -> Topology {
        Topology { allowed, siblings }
    }

    #[test]
    fn cores_are_judged_by_what_the_two_sides_share() {
        let state = |allowed, siblings| cores_finding(&topology(allowed, siblings), 8).state;
        assert_eq!(state(vec![0, 1], vec![]), FindingState::Yes);
        assert_eq!(state(vec![0, 1], vec![vec![0, 1]]), FindingState::Limited);
        assert_eq!(state(vec![0], vec![]), FindingState::No);
        assert_eq!(state(vec![], vec![]), FindingState::No);
    }

    #[test]
    fn pinning_names_the_cpus_of_both_sides() {
        let placement = place(&topology(vec![0, 1, 2, 3], vec![vec![0, 2], vec![1, 3]])).expect("four CPUs");
        let good = pinning(&placement, &[]);
        assert_eq!(good.state, FindingState::Yes);
        let pinned = |refused| Finding::PinnedTo {
            server: vec![0, 2],
            load: vec![1, 3],
            refused,
            shared: SharedPart::Nothing,
        };
        assert_eq!(good.found, pinned(vec![]));
        let bad = pinning(&placement, &[3]);
        assert_eq!((bad.state, bad.found), (FindingState::No, pinned(vec![3])));
    }

    #[test]
    fn quotas_of_both_control_group_versions_are_understood() {
        assert_eq!(parse_quota("max 100000\n"), None);
        assert_eq!(parse_quota("-1 100000"), None);
        assert_eq!(parse_quota("150000 100000\n"), Some(1.5));
        assert_eq!(parse_quota("1500"), None);
        assert_eq!(parse_quota("5 0"), None);
        assert_eq!(quota(Some(1.5)).state, FindingState::Limited);
    }

    #[test]
    fn slow_clocks_and_slow_governors_come_with_a_command() {
        assert_eq!(clocksource("tsc").unlock, None);
        let of_slow = clocksource("hpet").unlock;
        assert!(matches!(of_slow, Some(Finding::RunCommand { command }) if command.contains("echo tsc")));
        assert_eq!((clocksource("").state, clocksource("").unlock), (FindingState::Limited, None));
        assert_eq!(governor(None).state, FindingState::Yes);
        assert_eq!(governor(Some("performance")).unlock, None);
        assert!(governor(Some("powersave,schedutil")).unlock.is_some());
    }
}
