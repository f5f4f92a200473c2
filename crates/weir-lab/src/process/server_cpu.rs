//! CPU time of a server: of a process with its descendants, or of a control group.

use weir_evidence::{
    control_group::ControlGroup,
    memory,
    process::{ProcessTree, TreeDelta, family_cpu_ns},
};

/// The processes whose CPU time is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServerCpu {
    /// A process and its descendants.
    Process(u32),
    /// All processes that are or were in a control group.
    Group(ControlGroup),
}

/// The clocks at one moment.
pub(crate) struct CpuEdge {
    tree: ProcessTree,
    group_ns: Option<u64>,
}

impl ServerCpu {
    /// The process, or the processes of the group; empty if these cannot be listed.
    pub(super) fn pids(&self) -> Vec<u32> {
        match self {
            Self::Process(pid) => vec![*pid],
            Self::Group(group) => group.pids().unwrap_or_default(),
        }
    }

    /// CPU time since it began, in nanoseconds. An unreadable clock counts as zero.
    pub(super) fn ns(&self) -> u64 {
        match self {
            Self::Process(pid) => family_cpu_ns(*pid),
            Self::Group(group) => group.cpu_ns().unwrap_or(0),
        }
    }

    /// Reads the clocks. A server that is gone has used no further time.
    pub(super) fn edge(&self) -> CpuEdge {
        match self {
            Self::Process(pid) => {
                CpuEdge { tree: ProcessTree::snapshot(*pid).unwrap_or_default(), group_ns: None }
            }
            Self::Group(group) => {
                CpuEdge { tree: ProcessTree::of(self.pids()).unwrap_or_default(), group_ns: group.cpu_ns() }
            }
        }
    }

    /// Resident memory of its processes.
    pub(super) fn pss_bytes(&self) -> u64 {
        match self {
            Self::Process(pid) => memory::pss_bytes(*pid).unwrap_or(0),
            Self::Group(_) => self.pids().into_iter().filter_map(memory::pss_bytes).sum(),
        }
    }
}

impl CpuEdge {
    /// Use between this moment and a later one. A group's clock includes processes that ended in between.
    pub(super) fn until(&self, later: &Self) -> TreeDelta {
        let mut delta = ProcessTree::delta(&self.tree, &later.tree);
        if let (Some(before), Some(after)) = (self.group_ns, later.group_ns) {
            delta.cpu_ns = after.saturating_sub(before);
        }
        delta
    }
}
