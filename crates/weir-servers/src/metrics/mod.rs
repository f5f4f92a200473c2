//! The operators' view of a running server: `/metrics` and `/healthz` on a separate loopback port, off by default.
//! They only read counters.

mod families;
mod port;

use weir_engine::serve::ServerControl;
use weir_record::engine::ServerStats;

pub(crate) use families::{build, engine, node, of_server};
pub use port::MetricsPort;

use crate::stats::NodeSource;

/// The data behind a metrics port.
pub trait Source: Send + Sync {
    /// Counters as they are now, in Prometheus' text format.
    fn metrics(&self) -> String;

    /// Checks whether it works.
    ///
    /// # Errors
    /// The reason why not, in words.
    fn health(&self) -> Result<(), String>;
}

/// Why a server that is ending accepts no new work.
pub(crate) const DRAINING: &str = "it drains";
/// Why a server whose journal has failed accepts no new work.
pub(crate) const JOURNAL_FAILED: &str = "the journal has failed";

/// A server with only the engine's counters and what `node` adds.
pub struct Plain {
    /// The server.
    pub control: ServerControl,
    /// Its additional data, as on its statistics socket.
    pub node: Option<NodeSource>,
}

impl Plain {
    fn stats(&self) -> ServerStats {
        let mut stats = crate::stats::of_server(&self.control);
        self.node.iter().for_each(|node| node(&mut stats));
        stats
    }
}

impl Source for Plain {
    fn metrics(&self) -> String {
        of_server(&self.stats())
    }

    fn health(&self) -> Result<(), String> {
        if !self.control.is_serving() {
            return Err(DRAINING.to_owned());
        }
        let journal = self.stats().node.and_then(|node| node.journal);
        if journal.is_some_and(|journal| journal.failed) { Err(JOURNAL_FAILED.to_owned()) } else { Ok(()) }
    }
}
