//! An HTTP/1.1 server: one handler for every driver, blocking calls included.
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
//! How it works. A connection receives a lease, decodes every request that it completes and writes the replies into one
//! batch, which leaves in one send: no task, no timer and no allocation a request. A small fixed reply is rendered once
//! a second, with its head, and copied once; a large one is sent from where it lies, and from 32 KiB on that is a
//! sealed file in memory, whose pages no reply copies. A connection has one timer, which is moved only when it fires or
//! when something nearer is waited for.
//!
//! A file below the root is kept for a second, short ones as bytes with their head, longer ones open ([`FileCache`]); a
//! path that is not kept is opened off the worker's thread where that may wait for a disk.
//!
//! What is bounded. Connections by their number, all together and of one client; one more gets a 503. A head and a
//! content by [`Limits`](weir_proto::http1::Limits); a head by its total time, however its bytes drip; content, in both
//! directions, by a time for each quarter of a mebibyte; the replies that wait for a client by the engine's high-water
//! mark, above which nothing more is read. However fast a client takes a reply, after
//! a mebibyte of it others have their turn. A lease never waits for a client: what is left of it is copied before a
//! send can wait.
//!
//! How connections end. After a refusal, and whenever the client may not know that nothing more is read, our direction
//! ends first and what still arrives is thrown away for a while: closing with unread bytes would make the kernel send
//! a reset, which may overtake the reply. The last reply has the time of every other. A connection that is idle for too
//! long ends silently; one that has begun a request gets a 408. In a drain, what has arrived is answered,
//! and a connection without a request ends at once.
//!
//! What it is not: it has no routes (every path has the same content, or names a file) and no TLS, it upgrades nothing,
//! and it compresses nothing.

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

/// The server's side of HTTP on every connection of every worker. Clones are the same server.
#[derive(Clone, Debug)]
pub struct HttpServer {
    shared: Arc<HttpState>,
}

impl HttpServer {
    /// Renders what is answered, and starts the access log's thread if there is one.
    ///
    /// # Errors
    /// When no thread can be had.
    pub fn start(config: HttpConfig, logs: HttpLogs) -> io::Result<Self> {
        Ok(Self { shared: Arc::new(HttpState::new(config, logs)?) })
    }

    /// Serves one connection, on the worker that polls it: the handler of a [`Server`](weir_engine::serve::Server).
    pub fn serve(&self, stream: Stream) -> impl Future<Output = ()> + use<> {
        connection::serve(Worker::of_thread(&self.shared), stream)
    }

    /// What was answered and refused so far. Requests count when their connection ends.
    pub fn counters(&self) -> &HttpCounters {
        &self.shared.counters
    }

    /// What is kept of files, and how often that was found; `None` where none are served.
    pub fn files(&self) -> Option<FileCacheStats> {
        let Body::Files { .. } = self.shared.config.body else { return None };
        let FileCacheCounts { hits, misses, revalidations, evictions } = self.counters().files();
        let (kept, open) = self.files_kept();
        let (kept, open) = (kept as u64, open as u64);
        Some(FileCacheStats { kept, open, hits, misses, revalidations, evictions })
    }

    /// Files that are kept now, and how many of them are kept open.
    pub fn files_kept(&self) -> (usize, usize) {
        let quotas = &self.shared.quotas;
        (quotas.entries.taken(), quotas.descriptors.taken())
    }

    /// Writes what the access log still holds. Lines of connections that go on are dropped, and counted.
    pub fn finish(&self) {
        self.shared.finish();
    }
}
