//! What a server reports on its statistics socket.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use weir_engine_types::EngineStats;

use crate::orders::NodeStats;

/// The line that switches the clock of [`EngineStats::outside_calls_ns`] on, sent to a statistics socket.
pub const CLOCK_ON: &str = "clock on";
/// The line that switches it off.
pub const CLOCK_OFF: &str = "clock off";

/// What a Weir server answers on its statistics socket, one JSON object per request line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerStats {
    /// The driver that runs, as resolved (`uring`, `epoll`, …).
    pub driver: String,
    /// Sum over all workers.
    pub total: EngineStats,
    /// One entry per worker, in worker order.
    pub workers: Vec<EngineStats>,
    /// What an exchange or a gateway counts beside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeStats>,
    /// What an HTTP server of files keeps of them, and how often that is found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<FileCacheStats>,
}

impl ServerStats {
    /// Connections that each worker has open now.
    pub fn connections_by_worker(&self) -> Vec<u64> {
        self.workers.iter().map(|worker| worker.connections_open).collect()
    }
}

/// What an HTTP server keeps of the files it serves. Requests count when their connection ends, and once a second on
/// workers that are busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileCacheStats {
    /// Files that are kept now, by all workers together.
    pub kept: u64,
    /// Those of them that are kept open.
    pub open: u64,
    /// Requests for which nothing was opened.
    pub hits: u64,
    /// Requests for a path that was not kept.
    pub misses: u64,
    /// Requests for a path that was kept for so long that it was opened anew.
    pub revalidations: u64,
    /// Files that were given up before their time was over, because others needed the room or one had become shorter.
    pub evictions: u64,
}
