//! Counters of servers behind each other, read when the load is over.

use std::time::{Duration, Instant};

use weir_evidence::stats::StatsClient;
use weir_record::{gateway::ChainTotals, orders::NodeStats, spec::CellSpec};

use super::server::Server;
use crate::protocol;

/// Longest wait until no message is in flight between them.
const SETTLE_MAX: Duration = Duration::from_secs(1);

/// Time between two checks during that wait.
const SETTLE_LOOK: Duration = Duration::from_millis(10);

/// Reads their counters when no message is in flight; `None` for a server that stands alone, or if one of them does
/// not answer.
pub(super) fn totals(server: &Server, cell: &CellSpec) -> Option<ChainTotals> {
    server.behind.as_ref()?;
    let protocol = protocol::of(cell);
    let deadline = Instant::now() + SETTLE_MAX;
    loop {
        let nodes = server.chain().map(node).collect::<Option<Vec<_>>>()?;
        let totals = protocol.chain_totals(cell, &nodes)?;
        if totals.is_whole() || Instant::now() >= deadline {
            return Some(totals);
        }
        std::thread::park_timeout(SETTLE_LOOK);
    }
}

fn node(server: &Server) -> Option<NodeStats> {
    StatsClient::connect(server.stats_socket.as_deref()?).ok()?.read().ok()?.node
}
