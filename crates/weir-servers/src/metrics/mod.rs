//! The operators' view of a running server: `/metrics` and `/healthz` on a separate loopback port, off by default.
//! They only read counters.

mod families;
mod port;

use weir_engine::serve::ServerControl;
use weir_record::{engine::ServerStats, orders::JournalStats};

pub(crate) use families::{build, by_label, engine, node, of_server};
pub use port::MetricsPort;

use crate::{journal::watch, stats::NodeSource};

/// The data behind a metrics port.
pub trait Source: Send + Sync {
    /// Counters as they are now, in Prometheus' text format.
    fn metrics(&self) -> String;

    /// Checks whether it works.
    ///
    /// # Errors
    /// The reason why not, in words.
    fn health(&self) -> Result<(), String>;

    /// What an operator should know although it works, in words: a line each.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Why a server that is ending accepts no new work.
pub(crate) const DRAINING: &str = "it drains";
/// Why a server whose journal has failed accepts no new work.
pub(crate) const JOURNAL_FAILED: &str = "the journal has failed";

/// Why a server whose journal is as in these statistics accepts no new work.
pub(crate) fn journal_trouble(journal: &JournalStats) -> Option<String> {
    if journal.failed {
        return Some(JOURNAL_FAILED.to_owned());
    }
    journal.is_stalled().then(|| watch::stalled(journal.waiting_ns))
}

/// What an operator should know of a journal that works.
pub(crate) fn journal_remark(journal: &JournalStats) -> Option<String> {
    journal.files_scarce().map(watch::scarce)
}

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

    fn journal(&self) -> Option<JournalStats> {
        self.stats().node?.journal
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
        self.journal().as_ref().and_then(journal_trouble).map_or(Ok(()), Err)
    }

    fn remarks(&self) -> Vec<String> {
        self.journal().as_ref().and_then(journal_remark).into_iter().collect()
    }
}
