//! An HTTP/1.1 server: one handler for every driver, including the blocking one.
//!
//! ```no_run
//! use weir_engine::{Config, Driver, serve::{Server, ServerConfig}};
//! use weir_proto::content::Content;
//! use weir_servers::http::{Body, HttpConfig, HttpLogs, HttpServer};
//!
//! let http = HttpServer::start(HttpConfig::new(Body::Fixed(Content::Html)), HttpLogs::default())?;
//! let config = ServerConfig::new(Config::with_driver(Driver::Epoll), "127.0.0.1:8088".parse()?);
//! let handler = http.clone();
//! let server = Server::start(config, move |stream| handler.serve(stream))?;
//! server.join();
//! http.finish();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! How it works. A connection receives a lease, decodes every request that it completes and writes the replies into
//! one batch, which leaves in one send: a request costs no task, no timer and no allocation. A small fixed reply is
//! rendered once a second, with its head, and copied once; a large one is sent from where it is stored, and from 32
//! KiB on that is a sealed file in memory, whose pages no reply copies. A connection has one timer, which is moved
//! only when it fires or when an earlier deadline is waited for.
//!
//! A file below the root is cached for a second, short ones as bytes with their head, longer ones as open files
//! ([`FileCache`]); a path that is not cached is opened off the worker's thread if that may wait for a disk.
//!
//! Limits. Connections: by their number, in total and per client; a further one gets a 503. A head and a content: by
//! [`Limits`](weir_proto::http1::Limits); a head: by its total time, however slowly its bytes arrive; content, in
//! both directions: by a time for each 256 KiB; replies that wait for a client: by the engine's high-water mark,
//! above which the client is not read. However fast a client takes a reply, other connections are served after each
//! mebibyte of it. A lease never waits for a client: its remaining bytes are copied before a send can wait.
//!
//! How connections end. After a refusal, and whenever the client may not know that the server stops reading, our
//! direction ends first and input is discarded for a while: closing with unread bytes would make the kernel send a
//! reset, which may overtake the reply. The last reply has the same time limit as every other. A connection that is
//! idle for too long is closed silently; one that has started a request gets a 408. In a drain, requests that have
//! arrived are answered, and a connection without a request ends at once.
//!
//! What it does not do: it has no routes (every path has the same content, or names a file) and no TLS, it upgrades
//! nothing, and it compresses nothing.

mod access_log_line;
mod access_log_writer;
mod admission;
mod cache;
mod config;
mod connection;
mod counters;
mod file_body;
mod file_cache;
mod file_lookup;
mod file_quotas;
mod headers;
mod input;
mod response_encoder;
mod static_body;
mod worker;

use std::{future::Future, io, sync::Arc};

use weir_engine::net::Stream;
use weir_record::engine::FileCacheStats;

pub use config::{
    Body, CONNECTIONS_MAX, Clock, FileCache, HttpConfig, HttpLogs, LargeContent, LogFormat, Timeouts,
};
pub use counters::{HttpCounters, Refusal};
pub use file_cache::FileCacheCounts;
pub use file_lookup::{FileError, FileIo, Root};
pub use headers::{HeaderError, ReplyHeaders};

use worker::{HttpState, Worker};

/// The server's side of HTTP on every connection of every worker. Clones refer to the same server.
#[derive(Clone, Debug)]
pub struct HttpServer {
    shared: Arc<HttpState>,
}

impl HttpServer {
    /// Renders the fixed replies, and starts the access log's thread if there is one.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start(config: HttpConfig, logs: HttpLogs) -> io::Result<Self> {
        Ok(Self { shared: Arc::new(HttpState::new(config, logs)?) })
    }

    /// Serves one connection, on the worker that polls it: the handler of a [`Server`](weir_engine::serve::Server).
    pub fn serve(&self, stream: Stream) -> impl Future<Output = ()> + use<> {
        connection::serve(Worker::of_thread(&self.shared), stream)
    }

    /// The replies and refusals so far. Requests count when their connection ends.
    pub fn counters(&self) -> &HttpCounters {
        &self.shared.counters
    }

    /// Statistics of the file cache; `None` if no files are served.
    pub fn files(&self) -> Option<FileCacheStats> {
        let Body::Files { .. } = self.shared.config.body else { return None };
        let FileCacheCounts { hits, misses, revalidations, evictions } = self.counters().files();
        let (kept, open) = self.files_kept();
        let (kept, open) = (kept as u64, open as u64);
        Some(FileCacheStats { kept, open, hits, misses, revalidations, evictions })
    }

    /// The number of cached files, and how many of them are open.
    pub fn files_kept(&self) -> (usize, usize) {
        let quotas = &self.shared.quotas;
        (quotas.entries.taken(), quotas.descriptors.taken())
    }

    /// Writes the lines that are still queued in the access log. Later lines of open connections are dropped, and
    /// counted.
    pub fn finish(&self) {
        self.shared.finish();
    }
}
