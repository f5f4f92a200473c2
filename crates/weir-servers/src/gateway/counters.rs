//! What the gateway counts beside its sessions: written by the worker that counts, read by any thread.

use crate::counter::Counter;

/// Counters of one worker, on cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct GatewayCounters {
    /// Of these, handed to another worker.
    pub(super) handed_off: Counter,
    /// Messages taken in: of clients and from upstream.
    pub(super) taken: Counter,
    /// Messages that left this process or came to nothing. Taken in on one worker, passed on by another: only the sums
    /// over all workers say what waits.
    pub(super) passed: Counter,
    /// Data messages from upstream.
    pub(super) upstream_received: Counter,
    /// Data messages to upstream.
    pub(super) upstream_sent: Counter,
    /// Answers about orders that are not known (any more).
    pub(super) unmatched: Counter,
    /// Messages from upstream that cannot be read.
    pub(super) malformed: Counter,
    /// Lines for people that were left out or lost.
    pub(super) lines_left_out: Counter,
    /// Cancels, changes and replaces of orders that are not open: the last are refused.
    pub(super) without_order: Counter,
    /// Orders refused because they do not fit a task.
    pub(super) too_long: Counter,
    /// Orders sent once more after a connection was lost.
    pub(super) resent: Counter,
    /// Upstream connections lost.
    pub(super) upstreams_lost: Counter,
    /// Upstream sessions logged in now.
    pub(super) upstreams_open: Counter,
    /// Orders open upstream now.
    pub(super) open_orders: Counter,
    /// Orders sent upstream and not answered.
    pub(super) unanswered: Counter,
    /// Answers skipped because the client has them already, after a restart.
    pub(super) replayed: Counter,
    /// Messages of upstream sessions that their exchanges did not give any more.
    pub(super) missed: Counter,
    /// Orders that ended without a word of their exchange.
    pub(super) expired: Counter,
    /// Sessions of exchanges that were others than before.
    pub(super) begun_anew: Counter,
    /// Executions of more shares than their order had left.
    pub(super) overfills: Counter,
    /// 1 when the worker cannot journal any more.
    pub(super) has_failed: Counter,
}

/// Adds one counter of all workers up.
pub(super) fn total(
    workers: &[std::sync::Arc<GatewayCounters>],
    count: impl Fn(&GatewayCounters) -> &Counter,
) -> u64 {
    workers.iter().map(|worker| count(worker).get()).sum()
}
