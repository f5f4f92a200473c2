//! Why a dashboard does not start.

use std::{io, net::SocketAddr, path::PathBuf};

use thiserror::Error;

/// Why a dashboard does not start.
#[derive(Debug, Error)]
pub enum DashboardError {
    /// Something else listens there.
    #[error(
        "{address} is in use; choose another port, such as --listen {}, or end what listens there (`ss -ltnp` names it)",
        next(*address)
    )]
    InUse {
        /// What was asked for.
        address: SocketAddr,
    },
    /// The address cannot be listened on.
    #[error(
        "cannot listen on {address}: {source}; write an address of this machine, such as --listen 127.0.0.1:3000"
    )]
    Unlistenable {
        /// What was asked for.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The folder holds one study, and not several.
    #[error("{} is the folder of one study: name the folder that it is in, or see it with `weir report`", .0.display())]
    OneStudy(PathBuf),
    /// The folder is not there, or may not be read.
    #[error("cannot read {}: {source}; name the folder that `weir study` writes its results to", folder.display())]
    Unreadable {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Others than this machine could act, and nobody said from which pages.
    #[error(
        "with a token {address}, which others reach, needs the origins whose pages may act: add --origin, such as \
         --origin http://lab.example:{}", address.port()
    )]
    NoOrigins {
        /// What was asked for.
        address: SocketAddr,
    },
    /// The folder of study files is not there, or may not be read.
    #[error("--studies {}: {source}; name a folder of study files", folder.display())]
    NoStudies {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system gives no thread or event queue.
    #[error("cannot start: {0}")]
    Runtime(io::Error),
}

/// The same address with the next port.
fn next(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip(), address.port().checked_add(1).unwrap_or(3000))
}
