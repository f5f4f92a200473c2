//! The configuration of an HTTP server: plain data.

use std::{fmt, fs::File, io::Write, sync::Arc, time::Duration};

use rustix::time::{ClockId, clock_gettime};
use weir_engine::time::Instant;
use weir_proto::{
    content::Content,
    http1::{Limits, Method, MethodSet},
};

use super::{
    file_lookup::{FileIo, Root},
    headers::ReplyHeaders,
};

/// The body of replies.
#[derive(Clone, Debug)]
pub enum Body {
    /// The same content for every path.
    Fixed(Content),
    /// The request's own content. It is sent back while it arrives: a client that sends more than the buffers on the
    /// way hold must read meanwhile.
    Echo,
    /// The file below the root that the target names.
    Files {
        /// The folder.
        root: Root,
        /// How content is sent.
        io: FileIo,
        /// The cache of files between requests.
        cache: FileCache,
    },
}

/// The cache of files between requests: the bytes of short files, the descriptors of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileCache {
    /// Most files in the cache, for all workers together; 0: every request opens its file. At most a quarter of the
    /// descriptors that the process may open are used for cached files.
    pub files_max: usize,
    /// How long a file is served as it was when its path was last looked at. The actual time may be longer by up to a
    /// clock tick.
    pub validity: Duration,
}

impl FileCache {
    /// No cache.
    pub const OFF: Self = Self { files_max: 0, validity: Duration::ZERO };
}

impl Default for FileCache {
    fn default() -> Self {
        Self { files_max: 1024, validity: Duration::from_secs(1) }
    }
}

impl Body {
    /// The methods that every target supports. Pages need no request content: content sent to a fixed page is read
    /// and discarded.
    #[inline]
    pub(super) fn methods(&self) -> MethodSet {
        const FILES: MethodSet = MethodSet::of(&[Method::Get, Method::Head, Method::Options]);
        const PAGES: MethodSet =
            MethodSet::of(&[Method::Get, Method::Head, Method::Post, Method::Put, Method::Options]);
        match self {
            Body::Fixed(_) | Body::Echo => PAGES,
            Body::Files { .. } => FILES,
        }
    }
}

/// Time limits for a client. None of them is extended by single bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Between two requests, and before the first one. It starts when a reply is handed to the engine, and does not
    /// end before that reply has had the time of `content`.
    pub idle: Duration,
    /// From the first byte of a head to its last.
    pub head: Duration,
    /// For each 256 KiB of content: of a request to arrive, of a reply to be taken by the client.
    pub content: Duration,
}

impl Timeouts {
    /// The default timeouts.
    pub const DEFAULT: Self = Self {
        idle: Duration::from_secs(60),
        head: Duration::from_secs(10),
        content: Duration::from_secs(30),
    };
}

impl Default for Timeouts {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Where large [`Body::Fixed`] content is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LargeContent {
    /// In this program's memory: the kernel copies it for every reply.
    Memory,
    /// In the page cache, whose pages the kernel sends directly.
    #[default]
    PageCache,
}

/// Everything a server needs to know before it starts.
#[derive(Clone, Debug)]
pub struct HttpConfig {
    /// The body of replies.
    pub body: Body,
    /// Where the body is stored, if it is large.
    pub large_content: LargeContent,
    /// Limits for one request.
    pub limits: Limits,
    /// Time limits for a client.
    pub timeouts: Timeouts,
    /// Requests answered on one connection; the reply to the last one says that the connection closes.
    pub requests_max: u64,
    /// Most connections at a time; a further one is answered with 503 and closed.
    pub connections_max: usize,
    /// Most connections of one client at a time: an IPv4 address, or the first 64 bits of an IPv6 address.
    pub client_connections_max: Option<usize>,
    /// Fields for every reply with a status below 400.
    pub headers: ReplyHeaders,
    /// The format of a line in the access log.
    pub log_format: LogFormat,
    /// An experiment: every reply says `Connection: close`, and the connection stays open anyway.
    pub say_close: bool,
    /// An experiment: the worker's thread sleeps this long for every request.
    #[cfg(feature = "lab")]
    pub handler_time: Duration,
    /// The source of the time.
    pub clock: Clock,
}

impl HttpConfig {
    /// A configuration with this body and every default.
    pub fn new(body: Body) -> Self {
        Self {
            body,
            large_content: LargeContent::default(),
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            requests_max: u64::MAX,
            connections_max: CONNECTIONS_MAX,
            client_connections_max: None,
            headers: ReplyHeaders::default(),
            log_format: LogFormat::default(),
            say_close: false,
            #[cfg(feature = "lab")]
            handler_time: Duration::ZERO,
            clock: Clock::Kernel,
        }
    }
}

/// The default for connections at a time.
pub const CONNECTIONS_MAX: usize = 65_536;

/// The format of a line in the access log. Byte counts are those of the content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// The Common Log Format: client, time, request, status, bytes.
    Common,
    /// The Combined Log Format: `Common` with referrer and user agent.
    #[default]
    Combined,
    /// `Combined` with the microseconds from the request's first byte until its reply was handed over.
    Timed,
}

/// The source of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The kernel's coarse clocks: a few milliseconds late, and read without entering the kernel.
    Kernel,
    /// The engine's time, which is virtual on the simulator.
    Engine {
        /// The `Date` that corresponds to zero of the engine's clock: seconds since 1970.
        zero_seconds: u64,
    },
}

impl Clock {
    /// The clock for deadlines.
    #[inline]
    pub(super) fn now(self) -> Instant {
        match self {
            Clock::Kernel => Instant::from_nanos(nanoseconds(ClockId::MonotonicCoarse)),
            Clock::Engine { .. } => weir_engine::time::now(),
        }
    }

    /// The time of day, since 1970.
    pub(super) fn wall(self) -> Duration {
        match self {
            Clock::Kernel => Duration::from_nanos(nanoseconds(ClockId::RealtimeCoarse)),
            Clock::Engine { zero_seconds } => {
                Duration::from_secs(zero_seconds) + Duration::from_nanos(weir_engine::time::now().as_nanos())
            }
        }
    }
}

/// Clocks set to a time before 1970 count as 1970.
#[inline]
fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + time.tv_nsec as u64
}

/// The logs of a server; none by default.
#[derive(Default)]
pub struct HttpLogs {
    /// One line for each request, through a bounded queue and a separate thread.
    pub access: Option<Box<dyn Write + Send>>,
    /// An experiment: one line for each connection, written directly by the worker that serves it. Open the file for
    /// appending: workers share it without a lock.
    pub connections: Option<Arc<File>>,
}

impl fmt::Debug for HttpLogs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let connections = &self.connections;
        formatter.debug_struct("HttpLogs").field("connections", connections).finish_non_exhaustive()
    }
}
