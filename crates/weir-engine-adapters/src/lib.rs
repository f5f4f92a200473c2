//! Connections of [`weir_engine`] for libraries that know other traits.
//!
//! [`EngineIo`] is a [`Stream`](weir_engine::net::Stream) that implements the traits of the features that are on:
//!
//! | feature | on by default | what it adds |
//! | --- | --- | --- |
//! | `futures-io` | yes | `futures_io::AsyncRead` and `AsyncWrite` |
//! | `tokio` | yes | `tokio::io::AsyncRead` and `AsyncWrite`. They need no runtime of tokio |
//! | `hyper` | yes | `hyper::rt::Read` and `Write`, [`EngineTimer`] and [`EngineExecutor`] |
//! | `tls` | no | `tls::TlsStream`: TLS by rustls and ring, with the traits of the other features |
//!
//! hyper serves on any driver:
//!
//! ```
//! # #[cfg(feature = "hyper")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::convert::Infallible;
//!
//! use http_body_util::Full;
//! use hyper::{Response, body::Bytes, server::conn::http1, service::service_fn};
//! use weir_engine::{Config, Driver, Runtime, net::{Listener, Stream}, spawn};
//! use weir_engine_adapters::{EngineIo, EngineTimer};
//!
//! let runtime = Runtime::new(&Config::with_driver(Driver::Sim))?;
//! runtime.block_on(async {
//!     let listener = Listener::bind(&"127.0.0.1:80".parse()?, Default::default())?;
//!     let client = Stream::connect(&listener.local_address()?).await?;
//!     let stream = listener.accept().await?;
//!     spawn(async move {
//!         let service = service_fn(async |_request| {
//!             Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"hello"))))
//!         });
//!         let mut builder = http1::Builder::new();
//!         builder.timer(EngineTimer::new());
//!         builder.serve_connection(EngineIo::new(stream), service).await
//!     });
//!     client.send(&b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"[..]).await?;
//!     let mut answer = Vec::new();
//!     while let Some(bytes) = client.recv().await? {
//!         answer.extend_from_slice(&bytes);
//!     }
//!     assert!(answer.ends_with(b"hello"));
//!     Ok(())
//! })
//! # }
//! # #[cfg(not(feature = "hyper"))]
//! # fn main() {}
//! ```
//!
//! # What a connection holds
//!
//! - Received bytes that the caller has not read: at most one receive buffer of the engine, which is 128 KiB unless
//!   [`BufferOptions::bytes`](weir_engine::BufferOptions) sets another size. The adapter copies them out of the
//!   engine's buffer, so a slow reader keeps no buffer from other connections.
//! - Sent bytes that the kernel has not taken: the engine's output queue. A write takes at most
//!   [`WRITE_BYTES_MAX`] bytes, and waits while more than
//!   [`output_high_water_bytes`](weir_engine::Limits) are queued. So the queue is at most the sum of both.
//!
//! # Rules of every driver
//!
//! - A pending read, write, flush or close is not an operation of the adapter: bytes belong to the connection. The
//!   caller may drop the stream, or drop a future that polls it, at any moment. No byte is lost or repeated by a
//!   dropped read, and a write that returned a number has queued that many bytes.
//! - Dropping the stream sends what is queued, for at most [`Limits::linger`](weir_engine::Limits), and then closes.
//! - One task reads and one task writes at a time. They may be two tasks of one runtime.
//! - A flush is ready when the kernel has taken everything. Bytes that are not flushed leave as well, at the end of the
//!   runtime's turn.
//! - A read returns the end of the stream while the runtime drains, after the bytes that had arrived.
//! - The blocking driver waits in one call at a time: there a task must not wait for this connection and for another
//!   one at once.
//!
//! # What is absent
//!
//! - Nothing here is `Send`, except [`EngineTimer`] and what it returns: a connection stays with its runtime. Code that
//!   spawns with `tokio::spawn`, and hyper's upgrades, require `Send`.
//! - `AsyncBufRead` and `AsyncSeek`. The buffered readers of the libraries work on these streams.
//! - hyper's HTTP/2 needs [`EngineExecutor`]; it does not run on the blocking driver, which has one task.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(any(feature = "futures-io", feature = "hyper", feature = "tokio")),
    allow(dead_code, unused_macros, reason = "without their traits, streams only move between owners")
)]

mod rest;
#[macro_use]
mod traits;
mod engine_io;
#[cfg(feature = "hyper")]
mod executor;
#[cfg(feature = "hyper")]
mod timer;
#[cfg(feature = "tls")]
pub mod tls;

pub use engine_io::{EngineIo, WRITE_BYTES_MAX};
#[cfg(feature = "hyper")]
pub use executor::EngineExecutor;
#[cfg(feature = "hyper")]
pub use timer::{EngineSleep, EngineTimer};

/// The programs of the guide compile.
#[cfg(all(doctest, feature = "futures-io", feature = "hyper", feature = "tokio"))]
#[doc = include_str!("../../../docs/guide/from-tokio-and-monoio.md")]
mod guide {}
