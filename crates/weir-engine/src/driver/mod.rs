//! The seam: the drivers, and the choice between them. Nothing above this folder knows which one runs.
//!
//! `contract` states what every driver must do.

use std::io;

use crate::{
    config::{Config, Driver},
    driver::readiness::{Linux, Readiness},
};

mod blocking;
mod connection;
mod contract;
mod epoll;
mod error;
pub(crate) mod files;
mod helpers;
mod lingering;
mod poll;
mod readiness;
mod retries;
mod select;
mod send_state;
#[cfg(feature = "sim")]
mod sim;
mod socket;
#[cfg(feature = "uring")]
mod uring;

pub(crate) use contract::{DriverOps, DriverParts, Wait};
pub use error::MissingFeature;
pub use socket::ListenOptions;
pub(crate) use socket::open_listener;

/// The drivers, chosen once at start.
pub(crate) enum AnyDriver {
    #[cfg(feature = "uring")]
    Uring(Box<uring::Uring>),
    Epoll(Box<Readiness<epoll::Epoll, Linux>>),
    Poll(Box<Readiness<poll::Poll, Linux>>),
    Select(Box<Readiness<select::Select, Linux>>),
    Blocking(Box<blocking::Blocking>),
    #[cfg(feature = "sim")]
    Sim(Box<sim::Sim>),
}

macro_rules! dispatch {
    ($self:expr, $driver:ident => $call:expr) => {
        match $self {
            #[cfg(feature = "uring")]
            $crate::driver::AnyDriver::Uring($driver) => $call,
            $crate::driver::AnyDriver::Epoll($driver) => $call,
            $crate::driver::AnyDriver::Poll($driver) => $call,
            $crate::driver::AnyDriver::Select($driver) => $call,
            $crate::driver::AnyDriver::Blocking($driver) => $call,
            #[cfg(feature = "sim")]
            $crate::driver::AnyDriver::Sim($driver) => $call,
        }
    };
}
pub(crate) use dispatch;

impl AnyDriver {
    /// Starts the driver, or returns the kernel's reason for refusing it.
    pub(crate) fn start(driver: Driver, parts: DriverParts) -> io::Result<Self> {
        Ok(match driver {
            #[cfg(feature = "uring")]
            Driver::Uring => AnyDriver::Uring(Box::new(uring::Uring::new(parts)?)),
            Driver::Epoll => {
                let backend = epoll::Epoll::new(parts.config.epoll, parts.config.masked())?;
                AnyDriver::Epoll(Box::new(Readiness::new(backend, Linux, parts)?))
            }
            Driver::Poll => AnyDriver::Poll(Box::new(Readiness::new(poll::Poll::default(), Linux, parts)?)),
            Driver::Select => {
                AnyDriver::Select(Box::new(Readiness::new(select::Select::default(), Linux, parts)?))
            }
            Driver::Blocking => AnyDriver::Blocking(Box::new(blocking::Blocking::new(parts)?)),
            #[cfg(feature = "sim")]
            Driver::Sim => AnyDriver::Sim(Box::new(sim::start(parts)?)),
            #[cfg(not(all(feature = "sim", feature = "uring")))]
            _ => return Err(io::ErrorKind::Unsupported.into()),
        })
    }

    /// Whether this build has a driver.
    pub(crate) fn is_built(driver: Driver) -> bool {
        match driver {
            Driver::Uring => cfg!(feature = "uring"),
            Driver::Sim => cfg!(feature = "sim"),
            Driver::Epoll | Driver::Poll | Driver::Select | Driver::Blocking => true,
        }
    }

    /// The features that the kernel grants a driver with this configuration, as stable names.
    pub(crate) fn granted(driver: Driver, config: &Config) -> io::Result<Vec<&'static str>> {
        Ok(match driver {
            #[cfg(feature = "uring")]
            Driver::Uring => uring::granted(config)?,
            #[cfg(not(feature = "uring"))]
            Driver::Uring => {
                // What others have does not depend on it.
                let _ = config;
                return Err(io::ErrorKind::Unsupported.into());
            }
            Driver::Epoll => vec!["edge-triggered", "registered-once"],
            Driver::Poll => vec!["level-triggered", "whole-list-in-every-call"],
            Driver::Select => vec!["level-triggered", "descriptors-below-1024"],
            Driver::Blocking => vec!["one-thread-a-connection"],
            Driver::Sim => vec!["virtual-time"],
        })
    }
}
