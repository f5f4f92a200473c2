//! All readings of a trial's window, taken at its two edges.

use std::{collections::HashSet, io};

use weir_record::{
    threads::{ProcessThreads, THREADS_OF_PROCESS_MAX, ThreadWindow},
    window::ObservedWindow,
};
use weir_sys::clock::local_time;

use crate::{
    foreign::ProcessClocks,
    process::{ProcessSample, ProcessTree, family_of_all},
    system::{ProcessUse, SystemSnapshot, noise_window},
};

/// Most additional processes whose threads are read beside a target.
pub const BESIDE_MAX: usize = 16;

/// A process that belongs to a trial in addition to its target: an exchange, a neighbour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beside {
    /// Its role.
    pub node: String,
    /// Its process id.
    pub pid: u32,
}

/// The machine, the target and this process at one edge of a window.
#[derive(Clone, Debug)]
pub struct Edge {
    system: SystemSnapshot,
    target: ProcessTree,
    beside: Vec<(String, ProcessTree)>,
    own: ProcessTree,
    clocks: ProcessClocks,
    /// Further processes that count as own.
    serving: Vec<u32>,
}

impl Edge {
    /// Reads the edge. The target's tree and this process's tree count as own; everything else is foreign.
    pub fn read(target: u32) -> io::Result<Self> {
        Self::read_with(target, &[])
    }

    /// Like [`Self::read`], with additional processes, which also count as own. A process that cannot be read is left
    /// out.
    ///
    /// # Errors
    /// Also fails when there are more of them than [`BESIDE_MAX`].
    pub fn read_with(target: u32, beside: &[Beside]) -> io::Result<Self> {
        Self::with(target, beside, ProcessClocks::read)
    }

    /// Like [`Self::read`], where these processes and all their descendants also count as own, although none of them
    /// is a descendant of this process. A process that is named twice, or is a descendant of another one of them,
    /// counts once.
    ///
    /// # Errors
    /// Also fails when they and their descendants are more than [`PROCESSES_MAX`](crate::process::PROCESSES_MAX).
    pub fn read_serving(target: u32, serving: &[u32]) -> io::Result<Self> {
        let edge = Self::read(target)?;
        // Read after the clocks, so that every process with a clock is known.
        Ok(Self { serving: family_of_all(serving)?, ..edge })
    }

    /// Like [`Self::read`], for a target that writes to a disk: kernel threads, which do that work, do not count as
    /// foreign.
    pub fn read_beside_kernel(target: u32) -> io::Result<Self> {
        Self::with(target, &[], ProcessClocks::read_of_programs)
    }

    fn with(target: u32, beside: &[Beside], clocks: fn() -> io::Result<ProcessClocks>) -> io::Result<Self> {
        if beside.len() > BESIDE_MAX {
            let reason = format!("{} processes beside the target are more than {BESIDE_MAX}", beside.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        let target = ProcessTree::snapshot(target)?;
        let of_one = |it: &Beside| Some((it.node.clone(), ProcessTree::snapshot(it.pid).ok()?));
        let beside = beside.iter().filter_map(of_one).collect();
        let own = ProcessTree::snapshot(std::process::id())?.without(&target);
        let (system, clocks) = (SystemSnapshot::read()?, clocks()?);
        Ok(Self { system, target, beside, own, clocks, serving: Vec::new() })
    }

    /// Everything between this edge and a later one. `engine` is empty, because those counters come from the target.
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

    /// What each thread of the target and of the additional processes did between this edge and a later one, which
    /// has just ended a window of this length.
    pub fn threads_until(&self, later: &Self, length_ns: u64) -> ThreadWindow {
        let mut processes = threads_of("", &self.target, &later.target);
        for (node, after) in &later.beside {
            let before = self.beside.iter().find(|(own, _)| own == node).map(|(_, tree)| tree);
            processes.extend(before.into_iter().flat_map(|before| threads_of(node, before, after)));
        }
        ThreadWindow { ended_local: local_time().unwrap_or_default(), length_ns, processes }
    }

    fn pids(&self) -> impl Iterator<Item = u32> + '_ {
        let beside = self.beside.iter().flat_map(|(_, tree)| &tree.processes);
        let with_threads = self.target.processes.iter().chain(beside).chain(&self.own.processes);
        with_threads.map(|process| process.pid).chain(self.serving.iter().copied())
    }
}

/// The processes of a tree with the deltas of their threads.
fn threads_of(node: &str, before: &ProcessTree, after: &ProcessTree) -> Vec<ProcessThreads> {
    let mut all = ProcessTree::thread_figures(before, after);
    let of_process = |process: &ProcessSample| {
        let mut threads: Vec<_> = all.extract_if(.., |thread| thread.pid == process.pid).collect();
        let threads_left_out = threads.len().saturating_sub(THREADS_OF_PROCESS_MAX) as u64;
        // The first thread represents the process, busy or not.
        threads.sort_by_key(|thread| (thread.tid != process.pid, std::cmp::Reverse(thread.cpu_ns)));
        threads.truncate(THREADS_OF_PROCESS_MAX);
        threads.sort_by_key(|thread| thread.tid);
        ProcessThreads {
            node: node.to_owned(),
            pid: process.pid,
            uid: process.uid,
            threads,
            threads_left_out,
        }
    };
    after.processes.iter().map(of_process).collect()
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    #[test]
    fn what_runs_beside_the_target_is_ours() {
        let init = [Beside { node: "exchange".to_owned(), pid: 1 }];
        let own = std::process::id();
        let is_ours = |edge: io::Result<Edge>| edge.is_ok_and(|edge| edge.pids().any(|pid| pid == 1));
        assert!(is_ours(Edge::read_with(own, &init)) && (own == 1 || !is_ours(Edge::read(own))));
        let gone = [Beside { node: "exchange".to_owned(), pid: u32::MAX }];
        assert!(Edge::read_with(own, &gone).is_ok_and(|edge| edge.beside.is_empty()));
        let many = |count: usize| vec![gone[0].clone(); count];
        assert!(Edge::read_with(own, &many(BESIDE_MAX)).is_ok());
        let error = Edge::read_with(own, &many(BESIDE_MAX + 1)).expect_err("one too many").to_string();
        assert_eq!(error, "17 processes beside the target are more than 16");
    }

    #[test]
    fn servers_of_many_processes_are_ours_to_the_last_and_each_once() {
        let start = || Command::new("cat").stdin(Stdio::piped()).spawn().expect("it starts");
        let mut children: Vec<Child> = (0..=BESIDE_MAX).map(|_| start()).collect();
        let pids: Vec<u32> = children.iter().map(Child::id).collect();
        // Like a control group, and a process in it, named by two arms.
        let named = [&pids[..], &pids[..2]].concat();
        let edge = Edge::read_serving(std::process::id(), &named).expect("they are there");
        assert_eq!(edge.serving, pids);
        assert!(pids.iter().all(|pid| edge.pids().any(|own| own == *pid)));
        for child in &mut children {
            drop(child.stdin.take());
            child.wait().expect("it ends with its input");
        }
        let none = Edge::read_serving(std::process::id(), &[]).expect("none is no mistake");
        assert!(none.serving.is_empty());
    }
}
