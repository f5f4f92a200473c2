//! One simulated user of a worker: which connection it begins with, and what tells it to start a message.

use std::{cell::Cell, rc::Rc, time::Duration};

use weir_engine::time::Instant;

use crate::{connector::Connected, open::OpenLoop, workload::Workload};

/// One user: it has one connection at a time, or one for each message.
pub(crate) struct VirtualUser<W: Workload> {
    /// Its number among those of its worker.
    pub(crate) place: usize,
    /// What was opened before the beginning.
    pub(crate) connected: Option<Connected>,
    pub(crate) begin_at: Instant,
    pub(crate) trigger: Trigger<W>,
    /// Every message has a connection of its own.
    pub(crate) is_single: bool,
}

/// What tells a user to start a message.
pub(crate) enum Trigger<W: Workload> {
    /// The answer to the message before, and a pause; so many messages in all.
    Closed { think: Duration, quota: Cell<u64> },
    /// The schedule, which no user has a part of: whoever is free sends the next message.
    Open { open: Rc<OpenLoop<W>>, place: usize },
}

impl<W: Workload> Trigger<W> {
    /// Whether the user has started all the messages it may.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self, Trigger::Closed { quota, .. } if quota.get() == 0)
    }
}
