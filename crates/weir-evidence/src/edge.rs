//! Everything a trial wants to know about a window, read at its two edges.

use std::{collections::HashSet, io};

use weir_record::trial::ObservedWindow;

use crate::{
    foreign::ProcessClocks,
    process::ProcessTree,
    system::{ProcessUse, SystemSnapshot, noise_window},
};

/// The machine, the target and ourselves at one edge of a window.
#[derive(Clone, Debug)]
pub struct Edge {
    system: SystemSnapshot,
    target: ProcessTree,
    own: ProcessTree,
    clocks: ProcessClocks,
}

impl Edge {
    /// Reads the edge. The target's tree and this process's tree count as ours; everything else is foreign.
    pub fn read(target: u32) -> io::Result<Self> {
        Self::with(target, ProcessClocks::read)
    }

    /// As [`Self::read`], for a target that writes to a disk: the kernel's threads, which do that work, are not
    /// foreign.
    pub fn read_beside_kernel(target: u32) -> io::Result<Self> {
        Self::with(target, ProcessClocks::read_of_programs)
    }

    fn with(target: u32, clocks: fn() -> io::Result<ProcessClocks>) -> io::Result<Self> {
        let target = ProcessTree::snapshot(target)?;
        let own = ProcessTree::snapshot(std::process::id())?.without(&target);
        Ok(Self { system: SystemSnapshot::read()?, target, own, clocks: clocks()? })
    }

    /// What was seen between this edge and a later one. `engine` is empty: those counters come from the target.
    pub fn until(&self, later: &Self) -> ObservedWindow {
        let target = ProcessTree::delta(&self.target, &later.target);
        let own = ProcessTree::delta(&self.own, &later.own);
        let mut window = ObservedWindow::default();
        target.fill(&mut window);
        let ours: HashSet<u32> = [self, later].into_iter().flat_map(Self::pids).collect();
        let processes = ProcessUse {
            foreign_cpu_ns: self.clocks.foreign_ns_until(&later.clocks, &ours),
            own_run_delay_ns: target.run_delay_ns + own.run_delay_ns,
        };
        window.noise = noise_window(&self.system, &later.system, processes);
        window
    }

    fn pids(&self) -> impl Iterator<Item = u32> + '_ {
        self.target.processes.iter().chain(&self.own.processes).map(|process| process.pid)
    }
}
