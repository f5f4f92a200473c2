//! Everything a trial wants to know about a window, read at its two edges.

use std::io;

use weir_record::trial::ObservedWindow;

use crate::{
    process::{ProcessTree, TreeDelta},
    system::{OwnUse, SystemSnapshot, noise_window},
};

/// The machine, the target and ourselves at one edge of a window.
#[derive(Clone, Debug)]
pub struct Edge {
    system: SystemSnapshot,
    target: ProcessTree,
    own: ProcessTree,
}

impl Edge {
    /// Reads the edge. The target's tree and this process's tree count as ours; everything else is foreign.
    pub fn read(target: u32) -> io::Result<Self> {
        let target = ProcessTree::snapshot(target)?;
        let own = ProcessTree::snapshot(std::process::id())?.without(&target);
        Ok(Self { system: SystemSnapshot::read()?, target, own })
    }

    /// What was seen between this edge and a later one. `engine` is empty: those counters come from the target.
    pub fn until(&self, later: &Self) -> ObservedWindow {
        let target = ProcessTree::delta(&self.target, &later.target);
        let own = ProcessTree::delta(&self.own, &later.own);
        let mut window = ObservedWindow::default();
        target.fill(&mut window);
        window.noise = noise_window(&self.system, &later.system, together(&target, &own));
        window
    }
}

fn together(target: &TreeDelta, own: &TreeDelta) -> OwnUse {
    OwnUse { cpu_ns: target.cpu_ns + own.cpu_ns, run_delay_ns: target.run_delay_ns + own.run_delay_ns }
}
