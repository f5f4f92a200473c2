//! Load generator that verifies every answer and reports its own limits.
//!
//! The generator sends messages over many connections, compares what comes back, times every message, and classifies
//! every failure. There are three kinds of messages: an echo, which must return byte for byte; an HTTP/1.1 request,
//! whose response must have the right framing, status, length and content; and an order, whose answer must return the
//! sent fields at its place in the stream. [`run`] executes a [`LoadSpec`] on N threads, each with an engine runtime,
//! and returns a [`LoadReport`](weir_record::load::LoadReport).
//!
//! - **closed loop**: a connection starts a message when an earlier one returned; measures capacity;
//! - **open loop**: messages start at times fixed by a [`pacer`], independent of the server. Their latency counts
//!   from the intended start, so that a stalled server cannot hide its queue: this avoids coordinated omission.
//!
//! The report includes the generator's own limits: the CPU share of its busiest thread, how late messages left,
//! starts that were never made, and both sides of Little's law. The crate prints nothing and has no command line.
//!
//! ```no_run
//! use std::{sync::atomic::AtomicBool, time::Duration};
//! use weir_load::{Arrivals, EchoSpec, LoadSpec, run};
//!
//! let spec = LoadSpec {
//!     target: "127.0.0.1:7007".into(),
//!     connections: 100,
//!     idle_connections: 0,
//!     depth: 1,
//!     arrivals: Arrivals::Closed { think: Duration::ZERO },
//!     workers: 1,
//!     pin: vec![1],
//!     seed: 1,
//!     duration: Duration::from_secs(10),
//!     messages: None,
//!     warmup_max: Duration::from_secs(5),
//!     ramp_up: Duration::ZERO,
//!     connect_timeout: Duration::from_secs(5),
//!     response_timeout: Duration::from_secs(5),
//!     engine: weir_engine::Config::default(),
//!     observe_pid: None,
//!     observe_beside: Vec::new(),
//!     observe_stats: None,
//!     protocol: EchoSpec { message_bytes: 64, connection_per_message: false }.into(),
//! };
//! let report = run(&spec, &mut |_| {}, &AtomicBool::new(false))?;
//! assert_eq!(report.failures.errors(), 0);
//! assert_eq!(report.bytes_verified, report.messages * 64);
//! # Ok::<(), weir_load::LoadError>(())
//! ```
#![forbid(unsafe_code)]

mod error;
mod spec;

mod workload;

mod closed;
mod connection_per_message;
mod open;
pub mod pacer;
mod virtual_user;

mod echo;
mod http;
mod orders;
pub mod payload;

mod close_backoff;
mod connection;
mod connection_notes;
mod connector;
mod dispatch;
mod failure;
mod lead;
mod limits;
mod progress;
mod run;
mod slice_worker;
mod spin;
mod warmup;
mod window_readings;
mod worker;
mod worker_state;

mod slices;

mod gather;
mod littles_law;
mod outcome;
mod recorder;
mod report;
mod summary;

pub use echo::EchoSpec;
pub use error::LoadError;
pub use http::{
    request_order::WEIGHTS_MAX,
    spec::{ExpectedContent, HEADERS_MAX, HttpSpec, HttpUrl, OwnRequest, SOURCE_ADDRESSES_MAX, URLS_MAX},
};
pub use lead::PartControl;
pub use orders::spec::{MixError, ORDER_BYTES, OrderMix, OrdersSpec, Password, SHARE_MAX, SYMBOLS_MAX};
pub use progress::{Phase, Progress};
pub use run::{run, run_part};
pub use slices::{Control, DRAIN_MAX, PRIME_MESSAGES_MAX, SLICE_MAX, TARGETS_MAX, run_slices};
pub use spec::{
    Arrivals, CONNECTIONS_MAX, DEPTH_MAX, DURATION_MAX, IN_FLIGHT_BYTES_MAX, LoadSpec, MESSAGE_BYTES_MAX,
    Protocol, RATE_PER_SECOND_MAX, WORKERS_MAX,
};
