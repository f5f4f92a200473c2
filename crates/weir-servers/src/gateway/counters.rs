//! What the gateway counts beside its sessions: written by the worker that counts, read by any thread.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter with one writer.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    /// Counts. Called by one thread only.
    #[inline]
    pub(super) fn add(&self, count: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
    }

    /// The count now.
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets it, where it is a state and no count.
    pub(super) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}

/// Counters of one worker.
#[derive(Debug, Default)]
pub(super) struct GatewayCounters {
    /// Of these, handed to another worker.
    pub(super) handed_off: Count,
    /// Messages taken in: of clients and from upstream.
    pub(super) taken: Count,
    /// Messages that left this process or came to nothing. Taken in on one worker, passed on by another: only the sums
    /// over all workers say what waits.
    pub(super) passed: Count,
    /// Data messages from upstream.
    pub(super) upstream_received: Count,
    /// Data messages to upstream.
    pub(super) upstream_sent: Count,
    /// Answers about orders that are not known (any more).
    pub(super) unmatched: Count,
    /// Messages from upstream that cannot be read.
    pub(super) malformed: Count,
    /// Lines for people that were left out or lost.
    pub(super) lines_left_out: Count,
    /// Cancels and replaces of orders that are not open: the protocol wants silence.
    pub(super) without_order: Count,
    /// Orders refused because they do not fit a task.
    pub(super) too_long: Count,
    /// Orders sent once more after a connection was lost.
    pub(super) resent: Count,
    /// Upstream connections lost.
    pub(super) upstreams_lost: Count,
    /// Upstream sessions logged in now.
    pub(super) upstreams_open: Count,
    /// Orders open upstream now.
    pub(super) open_orders: Count,
    /// Orders sent upstream and not answered.
    pub(super) unanswered: Count,
    /// Answers skipped because the client has them already, after a restart.
    pub(super) replayed: Count,
    /// Messages of upstream sessions that their exchanges did not give any more.
    pub(super) missed: Count,
    /// Orders that ended without a word of their exchange.
    pub(super) expired: Count,
    /// Sessions of exchanges that were others than before.
    pub(super) begun_anew: Count,
    /// Executions of more shares than their order had left.
    pub(super) overfills: Count,
    /// 1 when the worker cannot journal any more.
    pub(super) has_failed: Count,
}

/// Adds one counter of all workers up.
pub(super) fn total(
    workers: &[std::sync::Arc<GatewayCounters>],
    count: impl Fn(&GatewayCounters) -> &Count,
) -> u64 {
    workers.iter().map(|worker| count(worker).get()).sum()
}
