//! Why a load has no report.

use std::path::PathBuf;

use weir_engine::StartError;
use weir_record::failure::FailureCounts;

/// Why a load has no report.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The specification asks for something impossible.
    #[error("{field}: {reason}")]
    Invalid {
        /// Field of [`LoadSpec`](crate::LoadSpec).
        field: &'static str,
        /// What is wrong with it, and what would be valid.
        reason: String,
    },
    /// The limit on open files is too low.
    #[error(
        "{connections} connections need {needed} file descriptors, but the limit is {allowed}; \
         run `ulimit -n {needed}` first (as root if it is refused)"
    )]
    Descriptors {
        /// Connections asked for, idle ones included.
        connections: u32,
        /// Descriptors needed.
        needed: u64,
        /// Descriptors allowed.
        allowed: u64,
    },
    /// There are fewer local ports than connections.
    #[error(
        "{connections} connections to one address need as many local ports, but there are {ports}; \
         widen them with `sysctl net.ipv4.ip_local_port_range=\"1024 65535\"` as root{}",
        more_ports(*.has_sources)
    )]
    Ports {
        /// Connections asked for, idle ones included.
        connections: u32,
        /// Ports there are, over all source addresses.
        ports: u64,
        /// More source addresses would help too.
        has_sources: bool,
    },
    /// The log of results cannot be written.
    #[error("cannot write {}: {reason}", .path.display())]
    ResultLog {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The generator's engine cannot start.
    #[error("{0}")]
    Start(#[from] StartError),
    /// The generator cannot get its threads, CPUs or tasks.
    #[error("{0}")]
    Environment(String),
    /// Not one connection could be opened.
    #[error("cannot connect to {target}: {reason}")]
    Unreachable {
        /// Target as given.
        target: String,
        /// The last attempt's error.
        reason: String,
        /// All attempts by class.
        failures: Box<FailureCounts>,
    },
    /// The target cannot be observed.
    #[error("cannot observe {what}: {reason}")]
    Observe {
        /// The process or the socket.
        what: String,
        /// Why not.
        reason: String,
    },
    /// Stopped before the window opened.
    #[error("interrupted before anything was measured")]
    Interrupted,
    /// A thread of the generator ended by a panic.
    #[error("a generator thread ended by a bug of ours: {0}")]
    Panicked(String),
}

impl LoadError {
    /// Whether another machine or another limit would help.
    pub fn is_environment(&self) -> bool {
        matches!(
            self,
            LoadError::Descriptors { .. }
                | LoadError::Ports { .. }
                | LoadError::Start(_)
                | LoadError::Environment(_)
        )
    }
}

/// The other remedy for a lack of ports.
fn more_ports(has_sources: bool) -> &'static str {
    if has_sources { ", or spread them over more local addresses with --source-addresses" } else { "" }
}

pub(crate) fn invalid<T>(field: &'static str, reason: impl Into<String>) -> Result<T, LoadError> {
    Err(LoadError::Invalid { field, reason: reason.into() })
}

pub(crate) fn within(field: &'static str, value: u32, least: u32, most: u32) -> Result<(), LoadError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let reason = if field == "workers" {
        format!("{value} is not possible; each worker needs a connection: use {least} to {most}")
    } else {
        format!("{value} is not possible; use {least} to {most}")
    };
    invalid(field, reason)
}
