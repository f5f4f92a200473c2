//! One simulated user of a worker: the connection it begins with, and what triggers its messages.

use std::{cell::Cell, rc::Rc, time::Duration};

use weir_engine::time::Instant;

use crate::{connector::Connected, open::OpenLoop, workload::Workload};

/// One user: it has one connection at a time, or one for each message.
pub(crate) struct VirtualUser<W: Workload> {
    /// Its number among those of its worker.
    pub(crate) place: usize,
    /// The connection that was opened before the start.
    pub(crate) connected: Option<Connected>,
    pub(crate) begin_at: Instant,
    pub(crate) trigger: Trigger<W>,
    /// Every message has its own connection.
    pub(crate) is_single: bool,
}

/// What triggers a user's messages.
pub(crate) enum Trigger<W: Workload> {
    /// The previous answer, and a pause; at most `quota` messages.
    Closed { think: Duration, quota: Cell<u64> },
    /// The schedule, which is not divided between users: the next free one sends the next message.
    Open { open: Rc<OpenLoop<W>>, place: usize },
}

impl<W: Workload> Trigger<W> {
    /// Whether the user has started all the messages it may.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self, Trigger::Closed { quota, .. } if quota.get() == 0)
    }
}
