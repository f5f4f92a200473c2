//! The rungs of the ladder of evidence, and what keeps one from being used.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A rung of the ladder of evidence, lowest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rung {
    /// L0: what an engine counts of itself.
    Engine,
    /// L1: what the kernel always keeps of a process.
    #[default]
    Process,
    /// L2: programs at the kernel's tracepoints.
    Programs,
    /// L3: `strace`, to be shown, never to measure.
    Strace,
}

impl Rung {
    /// Its name in records and exports.
    pub fn key(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Process => "process",
            Self::Programs => "programs",
            Self::Strace => "strace",
        }
    }
}

/// Whether a rung can be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RungState {
    /// Which one.
    pub rung: Rung,
    /// What keeps it from being used.
    pub obstacle: Option<Obstacle>,
    /// The command that removes the obstacle, where there is one.
    pub unlock: Option<String>,
}

/// What keeps a rung from being used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "code")]
pub enum Obstacle {
    /// This process has neither CAP_BPF with CAP_PERFMON nor CAP_SYS_ADMIN.
    NoPrivilege,
    /// It has them, and a seccomp filter refuses all the same.
    Filtered,
    /// It has them in its own user namespace, where they do not count for this.
    UserNamespace,
    /// The kernel takes no BPF programs.
    NoBpf,
    /// It has no tracepoints at system calls.
    NoTracepoints,
    /// This process lives in a PID namespace, and programs see the numbers of the first one: before Linux 5.7.
    PidNamespace,
    /// The kernel is locked down.
    Lockdown {
        /// `integrity` or `confidentiality`.
        mode: String,
    },
    /// Another refusal.
    Refused {
        /// The kernel's words.
        error: String,
    },
    /// The scheduler keeps no times of threads.
    NoSchedstat,
    /// The program is not installed.
    NotInstalled,
    /// The observed program is one of 32 bits, whose system calls have other numbers.
    Bits32,
}

/// English; the report has the other languages.
impl fmt::Display for Obstacle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NoPrivilege => {
                "this process has neither CAP_BPF with CAP_PERFMON nor CAP_SYS_ADMIN, which root has outside of \
                 containers"
            }
            Self::Filtered => {
                "a seccomp filter refuses it, although this process has the capabilities; allow bpf and perf_event_open \
                 in the container's profile"
            }
            Self::UserNamespace => {
                "this process has its capabilities in a user namespace alone (a rootless container), where the kernel \
                 takes no programs; run it on the host"
            }
            Self::NoBpf => "this kernel takes no BPF programs (CONFIG_BPF_SYSCALL)",
            Self::NoTracepoints => "this kernel has no tracepoints at system calls (CONFIG_FTRACE_SYSCALLS)",
            Self::PidNamespace => {
                "this process runs in a PID namespace (a container), whose process numbers kernels give their programs from \
                 5.7 on; run it on the host, where they are the kernel's own"
            }
            Self::Lockdown { mode } => return write!(formatter, "the kernel is locked down ({mode})"),
            Self::Refused { error } => return write!(formatter, "the kernel refuses it: {error}"),
            Self::NoSchedstat => {
                "this kernel keeps no schedstat: CPU by process only, no waiting time (CONFIG_SCHED_INFO)"
            }
            Self::NotInstalled => "strace is not installed",
            Self::Bits32 => "the program is one of 32 bits, whose system calls have other numbers",
        })
    }
}
