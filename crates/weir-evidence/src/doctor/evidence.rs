//! Section `evidence`: which rungs of the ladder can be reached, from counters that cost nothing to kernel programs.

use std::path::Path;

use weir_record::machine::{Finding, FindingState, Fingerprint};

use super::{capabilities, finding, unlocked_by};
use crate::{files, parse};

const SECTION: &str = "evidence";

/// Numbers of capabilities, from capabilities(7).
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

const MOUNT_TRACEFS: &str = "sudo mount -t tracefs tracefs /sys/kernel/tracing";
const RUN_AS_ROOT: &str = "sudo weir doctor";

/// What decides the rungs.
#[derive(Clone, Copy, Debug)]
struct Facts {
    /// The scheduler counts time for every thread (`schedstat` shows more than zeros).
    schedstat: bool,
    /// `kernel.perf_event_paranoid`; absent without perf events in the kernel.
    paranoid: Option<i64>,
    /// The kernel takes BPF programs at all.
    bpf: bool,
    tracepoints: Tracepoints,
    /// `CapEff` of this process.
    capabilities: u64,
}

/// The state of the `raw_syscalls` tracepoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tracepoints {
    Readable,
    Denied,
    NotMounted,
    NotBuilt,
}

pub(super) fn findings(machine: &Fingerprint) -> Vec<Finding> {
    let own_times = files::read_text("/proc/thread-self/schedstat");
    let facts = Facts {
        schedstat: own_times.as_deref().and_then(parse::schedstat).is_some_and(|(cpu_ns, _)| cpu_ns > 0),
        paranoid: machine.limits.get("perf_event_paranoid").and_then(|value| value.parse().ok()),
        bpf: machine.limits.contains_key("unprivileged_bpf_disabled"),
        tracepoints: tracepoints(&["/sys/kernel/tracing", "/sys/kernel/debug/tracing"]),
        capabilities: capabilities(),
    };
    judge(&facts)
}

fn judge(facts: &Facts) -> Vec<Finding> {
    let always = "always on, costs nothing, exact for Weir's own servers".to_owned();
    vec![
        finding(SECTION, "L0 engine counters", FindingState::Yes, always),
        processes(facts.schedstat),
        perf(facts),
        bpf(facts),
    ]
}

fn tracepoints(mounts: &[&str]) -> Tracepoints {
    let mut mounted = false;
    for mount in mounts {
        let event = Path::new(mount).join("events/raw_syscalls/sys_enter/id");
        match std::fs::File::open(event) {
            Ok(_) => return Tracepoints::Readable,
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return Tracepoints::Denied,
            Err(_) => mounted |= Path::new(mount).join("trace_clock").exists(),
        }
    }
    if mounted { Tracepoints::NotBuilt } else { Tracepoints::NotMounted }
}

fn processes(schedstat: bool) -> Finding {
    let (state, detail) = if schedstat {
        (
            FindingState::Yes,
            "CPU time and waiting time in nanoseconds by thread, switches, memory, machine noise",
        )
    } else {
        (
            FindingState::Limited,
            "this kernel keeps no schedstat: CPU by process only, no waiting time (CONFIG_SCHED_INFO)",
        )
    };
    finding(SECTION, "L1 /proc", state, detail.to_owned())
}

fn perf(facts: &Facts) -> Finding {
    let no = |detail: &str| finding(SECTION, "L2 perf tracepoints", FindingState::No, detail.to_owned());
    let privileged = facts.can(CAP_PERFMON);
    match (facts.paranoid, facts.tracepoints) {
        (None, _) => no("this kernel has no perf events (CONFIG_PERF_EVENTS)"),
        (_, Tracepoints::NotBuilt) => {
            no("this kernel has no raw_syscalls tracepoints (CONFIG_FTRACE_SYSCALLS)")
        }
        (Some(level), _) if level > 1 && !privileged => unlocked_by(
            no(&format!("kernel.perf_event_paranoid is {level} and this process has no CAP_PERFMON")),
            "sudo sysctl -w kernel.perf_event_paranoid=1",
        ),
        (_, Tracepoints::NotMounted) => unlocked_by(no("tracefs is not mounted"), MOUNT_TRACEFS),
        (_, Tracepoints::Denied) => unlocked_by(no("only root may read the tracepoints"), RUN_AS_ROOT),
        (Some(_), Tracepoints::Readable) => finding(
            SECTION,
            "L2 perf tracepoints",
            FindingState::Yes,
            "the machine would allow counting system calls by kind; no study uses it yet".to_owned(),
        ),
    }
}

fn bpf(facts: &Facts) -> Finding {
    let say = |state, detail: &str| finding(SECTION, "L3 kernel programs", state, detail.to_owned());
    let privileged = facts.can(CAP_BPF) && facts.can(CAP_PERFMON);
    match (facts.bpf, facts.tracepoints, privileged) {
        (false, ..) => say(FindingState::No, "this kernel takes no BPF programs (CONFIG_BPF_SYSCALL)"),
        (_, Tracepoints::NotBuilt, _) => {
            say(FindingState::No, "this kernel has no raw_syscalls tracepoints (CONFIG_FTRACE_SYSCALLS)")
        }
        (_, _, false) => unlocked_by(
            say(FindingState::No, "this process has neither CAP_BPF and CAP_PERFMON nor root"),
            RUN_AS_ROOT,
        ),
        (_, Tracepoints::NotMounted, true) => unlocked_by(
            say(FindingState::Limited, "allowed, but without tracefs the tracepoints cannot be confirmed"),
            MOUNT_TRACEFS,
        ),
        (_, Tracepoints::Readable | Tracepoints::Denied, true) => say(
            FindingState::Yes,
            "the machine would allow counting and timing system calls by kind; no study uses it yet",
        ),
    }
}

impl Facts {
    /// Whether this process has the capability, or the one that used to cover it.
    fn can(&self, capability: u32) -> bool {
        [capability, CAP_SYS_ADMIN].iter().any(|number| self.capabilities >> number & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: Facts = Facts {
        schedstat: true,
        paranoid: Some(2),
        bpf: true,
        tracepoints: Tracepoints::Readable,
        capabilities: 0x0000_01ff_feff_ffff,
    };

    const USER: Facts = Facts { tracepoints: Tracepoints::Denied, capabilities: 0, ..ROOT };

    #[test]
    fn root_reaches_every_rung() {
        for finding in judge(&ROOT) {
            assert_eq!((finding.state, &finding.unlock), (FindingState::Yes, &None), "{finding:?}");
        }
    }

    #[test]
    fn a_user_is_told_the_one_command_for_the_next_rung() {
        assert_eq!(perf(&USER).unlock.as_deref(), Some("sudo sysctl -w kernel.perf_event_paranoid=1"));
        assert_eq!(perf(&Facts { paranoid: Some(1), ..USER }).unlock.as_deref(), Some(RUN_AS_ROOT));
        assert_eq!(bpf(&USER).unlock.as_deref(), Some(RUN_AS_ROOT));
    }

    #[test]
    fn named_capabilities_do_as_well_as_root() {
        let perfmon = Facts { capabilities: 1 << CAP_PERFMON, tracepoints: Tracepoints::Readable, ..USER };
        assert_eq!((perf(&perfmon).state, bpf(&perfmon).state), (FindingState::Yes, FindingState::No));
        let both = Facts { capabilities: 1 << CAP_PERFMON | 1 << CAP_BPF, ..perfmon };
        assert_eq!(bpf(&both).state, FindingState::Yes);
    }

    #[test]
    fn without_tracefs_the_mount_is_the_command() {
        let unmounted = Facts { tracepoints: Tracepoints::NotMounted, ..ROOT };
        assert_eq!(perf(&unmounted).unlock.as_deref(), Some(MOUNT_TRACEFS));
        assert_eq!(bpf(&unmounted).unlock.as_deref(), Some(MOUNT_TRACEFS));
    }

    #[test]
    fn what_the_kernel_lacks_has_no_command() {
        let bare = Facts {
            schedstat: false,
            paranoid: None,
            bpf: false,
            tracepoints: Tracepoints::NotBuilt,
            ..USER
        };
        for finding in &judge(&bare)[1..] {
            assert_ne!(finding.state, FindingState::Yes);
            assert_eq!(finding.unlock, None);
        }
    }

    #[test]
    fn a_missing_mount_is_recognised() {
        assert_eq!(tracepoints(&["/dev/null/nowhere"]), Tracepoints::NotMounted);
    }
}
