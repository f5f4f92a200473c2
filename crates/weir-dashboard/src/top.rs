//! Running servers as `weir top` sees them. They are read on request, at most once a second for all readers together.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use weir_monitor::{
    frame::{Frame, frame},
    snapshot::{Monitor, Snapshot},
    target::{TARGETS_MAX, Target},
};

/// Shortest time between two looks: below it the watching would be part of what is watched.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Longest time between two looks for a rate; an older look says nothing about now.
const BEFORE_AGE_MAX: Duration = Duration::from_secs(10);

/// Servers that are watched, and the last state of each.
pub(crate) struct Top {
    looking: Mutex<Looking>,
    seen: Mutex<Frame>,
}

struct Looking {
    /// The servers that were named.
    named: Vec<Target>,
    others: Others,
    monitor: Monitor,
    before: Option<(Snapshot, Instant)>,
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
}

impl Top {
    /// Servers that answer on these statistics sockets, and perhaps every other one that this user runs.
    pub(crate) fn over(sockets: &[String], others: Others) -> Self {
        let named: Vec<Target> = sockets.iter().map(|socket| Target::of_socket(socket)).collect();
        let monitor = Monitor::new(named.clone());
        let looking = Looking { named, others, monitor, before: None };
        Self { looking: Mutex::new(looking), seen: Mutex::default() }
    }

    /// Name and process of the servers that are seen now, as far as their processes are known.
    pub(crate) fn servers(&self) -> Vec<(String, u32)> {
        let nodes = self.look().nodes.into_iter();
        nodes.filter_map(|node| Some((node.node, node.pid?))).collect()
    }

    /// The current state. Waits for the servers' answers, unless another request waits for them already: then it
    /// returns the last state.
    pub(crate) fn look(&self) -> Frame {
        if let Ok(mut looking) = self.looking.try_lock() {
            let is_due = looking.before.as_ref().is_none_or(|(_, at)| at.elapsed() >= LOOK_EVERY);
            if is_due {
                if looking.others == Others::Found {
                    looking.find();
                }
                let Looking { monitor, before, .. } = &mut *looking;
                let after = monitor.snapshot();
                let recent = before.as_ref().filter(|(_, at)| at.elapsed() < BEFORE_AGE_MAX);
                let now = frame(recent.map(|(snapshot, _)| snapshot), &after);
                *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = now;
                *before = Some((after, Instant::now()));
            }
        }
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
