//! The gateway's counters besides those of its sessions: one worker writes them, any thread reads them.

use crate::counter::Counter;

/// Counters of one worker, on separate cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct GatewayCounters {
    /// Orders handed to another worker.
    pub(super) handed_off: Counter,
    /// Messages received: from clients and from upstream.
    pub(super) taken: Counter,
    /// Messages that were sent on or had no effect. A message may be received on one worker and sent on by another:
    /// only the sums over all workers show what is waiting.
    pub(super) passed: Counter,
    /// Data messages from upstream.
    pub(super) upstream_received: Counter,
    /// Data messages to upstream.
    pub(super) upstream_sent: Counter,
    /// Answers about unknown or forgotten orders.
    pub(super) unmatched: Counter,
    /// Malformed messages from upstream.
    pub(super) malformed: Counter,
    /// Events about exchanges that were left out because of their rate.
    pub(super) lines_left_out: Counter,
    /// Cancels, changes and replaces of orders that are not open: replaces of them are refused.
    pub(super) without_order: Counter,
    /// Cancels and modifications refused because their account exceeds its rate of them.
    pub(super) cancels_limited: Counter,
    /// Orders refused because they do not fit into a worker message.
    pub(super) too_long: Counter,
    /// Orders resent after a connection was lost.
    pub(super) resent: Counter,
    /// Upstream connections lost.
    pub(super) upstreams_lost: Counter,
    /// Upstream sessions logged in now.
    pub(super) upstreams_open: Counter,
    /// Orders open upstream now.
    pub(super) open_orders: Counter,
    /// Orders sent upstream and not answered.
    pub(super) unanswered: Counter,
    /// Answers skipped after a restart because the client already has them.
    pub(super) replayed: Counter,
    /// Messages of upstream sessions that their exchanges no longer provided.
    pub(super) missed: Counter,
    /// Orders that ended without a message from their exchange.
    pub(super) expired: Counter,
    /// How often an exchange began another session.
    pub(super) begun_anew: Counter,
    /// Executions of more shares than were left in their order.
    pub(super) overfills: Counter,
    /// 1 if the worker can no longer journal.
    pub(super) has_failed: Counter,
}

/// Sums one counter over all workers.
pub(super) fn total(
    workers: &[std::sync::Arc<GatewayCounters>],
    count: impl Fn(&GatewayCounters) -> &Counter,
) -> u64 {
    workers.iter().map(|worker| count(worker).get()).sum()
}
