//! One async program, any I/O model.
//!
//! A [`Runtime`] runs tasks on one thread over one [`Driver`]: io_uring, epoll, poll, select, blocking calls, or a
//! simulated kernel. The program is the same on all of them; the driver is one line of configuration.
//!
//! An echo server:
//!
//! ```no_run
//! use weir_engine::{Config, Runtime, net::{Listener, Stream}, spawn};
//!
//! async fn echo(stream: Stream) -> std::io::Result<()> {
//!     while let Some(bytes) = stream.recv().await? {
//!         stream.send(bytes).await?;
//!     }
//!     Ok(())
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let runtime = Runtime::new(&Config::default())?;
//!     runtime.block_on(async {
//!         let listener = Listener::bind(&"127.0.0.1:7007".parse()?, Default::default())?;
//!         loop {
//!             let stream = listener.accept().await?;
//!             spawn(async move { echo(stream).await });
//!         }
//!     })
//! }
//! ```
//!
//! Received bytes arrive as [`Lease`]s: engine buffers that return to the engine when dropped and can be sent on
//! without a copy. Nothing is lost when a future is dropped: received bytes belong to the connection, queued bytes to
//! its output queue. Files are read and written in the same program, see [`fs`].
//!
//! # Features
//!
//! | feature | on by default | what it adds |
//! | --- | --- | --- |
//! | `uring` | yes | the driver for io_uring |
//! | `sim` | yes | the simulated kernel, for tests |
//! | `handoff` | no | messages between the runtimes of one process (`handoff`) |
//! | `lab` | no | what only measurements need: options that are experiments, drivers as on an older kernel |
//!
//! A driver that a build leaves out is refused by name ([`Refusal::NotBuilt`]); `auto` takes the next one.
//!
//! The [guide] explains how to write a program on it: limits, cancellation, backpressure, tests, the choice of a
//! driver.
#![cfg_attr(
    not(all(feature = "handoff", feature = "sim", feature = "uring")),
    allow(
        dead_code,
        reason = "mechanisms that drivers and the hand-off share have parts that a smaller build leaves out"
    )
)]

mod address;
mod call_clock;
mod clock;
mod config;
mod counter;
mod counters;
mod doorbell;
mod driver;
mod driver_choice;
mod driver_report;
mod executor;
mod file_bytes;
pub mod fs;
pub mod guide;
#[cfg(feature = "handoff")]
pub mod handoff;
mod inbox;
mod inline_queue;
pub mod mailbox;
mod multishot_probe;
pub mod net;
mod pool;
mod remote;
mod runtime;
mod send_queue;
pub mod serve;
mod slab;
mod spawn_blocking;
pub mod sync;
mod task_group;
mod thread_pool;
pub mod time;
mod timer_wheel;
mod wake_flag;
mod wakers;

#[cfg(any(test, feature = "lab"))]
pub use config::KernelMask;
pub use config::{
    BufferOptions, Config, Driver, DriverChoice, EpollOptions, Limits, OptionError, ReceiveMode, SimOptions,
    TaskPanic, UringOptions,
};
pub use counters::Counters;
pub use driver::MissingFeature;
pub use driver_choice::{Refusal, StartError};
pub use driver_report::{DriverReport, probe};
pub use executor::{JoinHandle, draining, is_draining, spawn, spawn_last, try_spawn};
pub use pool::Lease;
pub use remote::{Remote, RemoteError};
pub use runtime::Runtime;
pub use send_queue::SendBuf;
pub use spawn_blocking::{BlockingError, BlockingHandle, spawn_blocking};
pub use task_group::TaskGroup;
pub use weir_engine_types::{EngineStats, HandoffStats};
