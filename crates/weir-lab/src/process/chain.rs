//! What servers behind each other counted when the load is over.

use std::time::{Duration, Instant};

use weir_evidence::stats::StatsClient;
use weir_record::{gateway::ChainTotals, orders::NodeStats, spec::CellSpec};

use super::server::Server;
use crate::protocol;

/// Longest wait until nothing is on its way between them any more.
const SETTLE_MAX: Duration = Duration::from_secs(1);

/// Time between two looks while waiting for that.
const SETTLE_LOOK: Duration = Duration::from_millis(10);

/// Reads what they counted, when nothing is on its way any more; `None` for a server that stands alone, and where one
/// of them does not answer.
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
