//! Running servers as `weir top` sees them. They are read on request, at most once a second for all readers together.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use weir_monitor::{
    frame::{Frame, Node, frame},
    snapshot::{Monitor, Snapshot},
    target::{self, TARGETS_MAX, Target},
};

use crate::top_history::History;

/// Shortest time between two looks: below it the watching would be part of what is watched.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Longest time between two looks for a rate; an older look says nothing about now.
const BEFORE_AGE_MAX: Duration = Duration::from_secs(10);

/// Time between two readings of a process's ports: each reads all of its descriptors, which may be thousands. Ports of
/// a process that has none yet are read at each look.
const PORTS_EVERY: Duration = Duration::from_secs(30);

/// Servers that are watched, and the last state of each.
pub(crate) struct Top {
    looking: Mutex<Looking>,
    seen: Mutex<Arc<Seen>>,
}

/// The last state of all servers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub frame: Frame,
    pub history: History,
    /// Listening ports by process.
    pub ports: BTreeMap<u32, Vec<u16>>,
}

impl Seen {
    /// The ports of a server; empty if they are not known.
    pub(crate) fn ports_of(&self, node: &Node) -> &[u16] {
        node.pid.and_then(|pid| self.ports.get(&pid)).map_or(&[], Vec::as_slice)
    }
}

struct Looking {
    /// The servers that were named.
    named: Vec<Target>,
    others: Others,
    monitor: Monitor,
    before: Option<(Snapshot, Instant)>,
    /// Ports by process, and when they were read.
    ports: BTreeMap<u32, (Vec<u16>, Instant)>,
}

/// The treatment of servers that were not named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Others {
    /// They are looked for each time.
    Found,
    /// They are not shown.
    LeftOut,
}

impl Looking {
    /// Looks for new and ended servers.
    fn find(&mut self) {
        let is_named =
            |found: &Target| self.named.iter().any(|own| own.pid == found.pid || own.socket == found.socket);
        let found = Target::running().into_iter().filter(|target| !is_named(target));
        let targets = self.named.iter().cloned().chain(found).take(TARGETS_MAX).collect();
        if self.monitor.watch(targets) {
            self.before = None;
        }
    }

    /// The ports of these processes. Others are forgotten.
    fn ports(&mut self, nodes: &[Node]) -> BTreeMap<u32, Vec<u16>> {
        let mut known = std::mem::take(&mut self.ports);
        let is_current = |(ports, at): &(Vec<u16>, Instant)| !ports.is_empty() && at.elapsed() < PORTS_EVERY;
        let read = |pid: u32| {
            let old = known.remove(&pid).filter(is_current);
            (pid, old.unwrap_or_else(|| (target::ports(pid), Instant::now())))
        };
        self.ports = nodes.iter().filter_map(|node| node.pid).map(read).collect();
        self.ports.iter().map(|(pid, (ports, _))| (*pid, ports.clone())).collect()
    }

    /// The state after one more look.
    fn look(&mut self, seen: &Seen) -> Seen {
        if self.others == Others::Found {
            self.find();
        }
        let after = self.monitor.snapshot();
        let recent = self.before.as_ref().filter(|(_, at)| at.elapsed() < BEFORE_AGE_MAX);
        let frame = frame(recent.map(|(snapshot, _)| snapshot), &after);
        self.before = Some((after, Instant::now()));
        Seen { history: seen.history.after(&frame), ports: self.ports(&frame.nodes), frame }
    }
}

impl Top {
    /// Servers that answer on these statistics sockets, and perhaps every other one that this user runs.
    pub(crate) fn over(sockets: &[String], others: Others) -> Self {
        let named: Vec<Target> = sockets.iter().map(|socket| Target::of_socket(socket)).collect();
        let monitor = Monitor::new(named.clone());
        let looking = Looking { named, others, monitor, before: None, ports: BTreeMap::new() };
        Self { looking: Mutex::new(looking), seen: Mutex::default() }
    }

    /// Name and process of the servers that are seen now, as far as their processes are known.
    pub(crate) fn servers(&self) -> Vec<(String, u32)> {
        let seen = self.look();
        seen.frame.nodes.iter().filter_map(|node| Some((node.node.clone(), node.pid?))).collect()
    }

    /// The current state. Waits for the servers' answers, unless another request waits for them already: then it
    /// returns the last state.
    pub(crate) fn look(&self) -> Arc<Seen> {
        if let Ok(mut looking) = self.looking.try_lock() {
            let is_due = looking.before.as_ref().is_none_or(|(_, at)| at.elapsed() >= LOOK_EVERY);
            if is_due {
                let seen = Arc::new(looking.look(&self.seen()));
                *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
            }
        }
        self.seen()
    }

    fn seen(&self) -> Arc<Seen> {
        Arc::clone(&self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
