//! What an exchange or a gateway counts about itself, and what a run of orders measured.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use weir_engine_types::HandoffStats;

use crate::latency::LatencySummary;

/// Counters of one exchange or gateway process, taken at one moment. They count from its start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NodeStats {
    /// `GATEWAY` or `EXCHANGE`.
    pub node: String,
    /// Process number.
    pub pid: u32,
    /// When it was taken: `CLOCK_MONOTONIC`, in nanoseconds.
    pub at_ns: u64,
    /// Protocol messages received, on all sides: data messages only, no heartbeats and no logins.
    pub received: u64,
    /// Protocol messages sent, on all sides, counted likewise.
    pub sent: u64,
    /// Orders taken in (enter, replace, cancel, modify).
    pub orders: u64,
    /// Received and not yet passed on: what waits in this process now.
    pub backlog: u64,
    /// Strategy by which work crosses between workers, and its counters; absent with one worker that hands nothing on.
    pub handoff: Option<HandoffStats>,
    /// Journal; absent at level `none`.
    pub journal: Option<JournalStats>,
    /// Times between named points, over all workers.
    pub hops: Vec<HopStats>,
    /// Sessions of clients that are logged in, at most [`SESSIONS_LISTED_MAX`].
    pub sessions: Vec<SessionStats>,
    /// Sessions logged in, listed or not.
    pub sessions_open: u64,
    /// Those among them that have not got everything yet.
    pub sessions_replaying: u64,
    /// Upstream sessions logged in (gateway only).
    pub upstreams_open: u64,
    /// Sessions of exchanges that were others than the ones before (gateway only).
    pub upstreams_begun_anew: u64,
    /// Orders that ended without a word of their exchange: with its session, too old to be sent again, or given up
    /// (gateway only).
    pub orders_expired: u64,
    /// Whether the kill switch of all accounts is on (gateway only).
    pub is_everyone_killed: bool,
    /// Accounts whose own kill switch is on (gateway only).
    pub accounts_killed: u64,
    /// Orders refused, by OUCH reason in words.
    pub rejects: BTreeMap<String, u64>,
    /// Connections ended for breaking the protocol, by kind.
    pub protocol_errors: BTreeMap<String, u64>,
    /// Logins by result.
    pub logins: BTreeMap<String, u64>,
    /// Connections ended because the peer was silent too long.
    pub heartbeat_timeouts: u64,
    /// Connections ended because the client did not take what was sent.
    pub slow_consumer_disconnects: u64,
    /// Orders cancelled because their owner's connection ended.
    pub cancels_on_disconnect: u64,
    /// Messages ignored as retransmissions (a number not above the last one).
    pub duplicates_ignored: u64,
}

/// What one exchange or gateway did between two snapshots.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NodeWindow {
    /// `GATEWAY` or `EXCHANGE`.
    pub node: String,
    /// Data messages received.
    pub received: u64,
    /// Data messages sent.
    pub sent: u64,
    /// Orders taken in.
    pub orders: u64,
    /// Hand-off, `overflow_depth_max` and `depth` as at the end.
    pub handoff: Option<HandoffStats>,
}

impl NodeStats {
    /// What happened since `earlier`. A counter that went back (the process was started again) gives zero.
    pub fn since(&self, earlier: &Self) -> NodeWindow {
        let handoff = self.handoff.as_ref().map(|later| match &earlier.handoff {
            Some(earlier) => later.since(earlier),
            None => later.clone(),
        });
        NodeWindow {
            node: self.node.clone(),
            received: self.received.saturating_sub(earlier.received),
            sent: self.sent.saturating_sub(earlier.sent),
            orders: self.orders.saturating_sub(earlier.orders),
            handoff,
        }
    }
}

/// Most sessions a snapshot lists.
pub const SESSIONS_LISTED_MAX: usize = 1_000;

/// Counters of the journals of all workers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct JournalStats {
    /// `os` or `disk`.
    pub level: String,
    /// Records written.
    pub records: u64,
    /// Bytes written, padding included.
    pub bytes: u64,
    /// Commits: one write, and at level `disk` one `fdatasync`, each.
    pub commits: u64,
    /// Largest number of records in one commit.
    pub records_per_commit_max: u64,
    /// True once a write or sync has failed: nothing is acknowledged any more.
    pub failed: bool,
    /// How long the commit under way has been, in nanoseconds: the longest of all workers; 0 if there is none.
    pub waiting_ns: u64,
    /// Further files of each worker that the disk has room for; absent if that is not watched.
    pub files_left: Option<u64>,
}

impl JournalStats {
    /// A disk that takes longer for one commit has stalled.
    pub const STALLED_NS: u64 = 2_000_000_000;

    /// With this many files left a disk is nearly full.
    pub const FILES_SCARCE: u64 = 2;

    /// Whether the disk of a journal has stalled.
    pub fn is_stalled(&self) -> bool {
        self.waiting_ns >= Self::STALLED_NS
    }

    /// The files left, if they are few.
    pub fn files_scarce(&self) -> Option<u64> {
        self.files_left.filter(|files| *files <= Self::FILES_SCARCE)
    }
}

/// Times between two points on an order's way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HopStats {
    /// `client_to_gateway`, `gateway_out`, `handoff`, `upstream`, `gateway_back`, `venue`.
    pub hop: String,
    /// Summary in nanoseconds.
    pub latency: LatencySummary,
}

/// One client session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SessionStats {
    /// Account (login name).
    pub account: String,
    /// Worker that owns it.
    pub worker: u32,
    /// `live`, `replaying` or `away`.
    pub state: String,
    /// Last sequence number sent.
    pub sequence_sent: u64,
    /// Last sequence number there is.
    pub sequence_last: u64,
    /// Last UserRefNum taken in.
    pub user_ref_num: u32,
    /// Bytes queued and not yet taken by the kernel.
    pub queued_bytes: u64,
}

/// Most entries of [`OrdersLoadReport::mismatches`].
pub const MISMATCHES_MAX: usize = 8;

/// A wrong answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Mismatch {
    /// The account.
    pub session: String,
    /// Its number of the order.
    pub order: u32,
    /// The expected answer, or the sent bytes that were expected back.
    pub expected: String,
    /// What came.
    pub got: String,
}

/// What `weir load orders` measured beside the fields of every load report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OrdersLoadReport {
    /// Sessions that logged in.
    pub sessions: u32,
    /// Orders in flight at most: over the whole run (`total`) or per session (`session`).
    pub in_flight: u32,
    /// `total` or `session`.
    pub in_flight_scope: String,
    /// Orders entered, cancels, replaces sent in the window.
    pub entered: u64,
    /// See `entered`.
    pub cancels: u64,
    /// See `entered`.
    pub replaces: u64,
    /// Sequenced messages received in the window, by OUCH type letter.
    pub received: BTreeMap<String, u64>,
    /// Sequenced messages received over the whole run whose number or place was checked.
    pub sequenced_checked: u64,
    /// Replies that came in another order than their orders left, per client: must be zero.
    pub inversions: u64,
    /// Shares entered, executed, cancelled and still live at the end, over the whole run.
    pub shares: ShareBalance,
    /// Logins made after a connection was dropped on purpose.
    pub reconnects: u64,
    /// The first wrong answers of the whole run, at most eight.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mismatches: Vec<Mismatch>,
    /// From the client's send to the exchange's time stamp; absent when the peer's time stamps are no wall clock.
    pub out: Option<LatencySummary>,
    /// From the exchange's time stamp to the client's receive.
    pub back: Option<LatencySummary>,
}

/// Shares at the end of a run: `entered = executed + cancelled + live` or something is wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ShareBalance {
    /// Shares of accepted orders.
    pub entered: u64,
    /// Shares executed.
    pub executed: u64,
    /// Shares cancelled.
    pub cancelled: u64,
    /// Shares of orders that are still live.
    pub live: u64,
}

impl ShareBalance {
    /// Whether nothing came from nowhere and nothing went.
    pub fn is_conserved(&self) -> bool {
        self.entered == self.executed.saturating_add(self.cancelled).saturating_add(self.live)
    }
}
