//! What an HTTP server is asked to be: plain data.

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

/// What requests are answered with.
#[derive(Clone, Debug)]
pub enum Body {
    /// The same content for every path.
    Fixed(Content),
    /// The request's own content. It goes back while it arrives: a client that sends more than the buffers between
    /// hold must read meanwhile.
    Echo,
    /// The file below the root that the target names.
    Files {
        /// The folder.
        root: Root,
        /// How content reaches the sockets.
        io: FileIo,
        /// What is kept of files between requests.
        cache: FileCache,
    },
}

/// What is kept of files between requests: of short ones the bytes, of others the descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileCache {
    /// Files kept at a time, by all workers together; 0: every request opens its file. Not more than a quarter of the
    /// descriptors that the process may open are kept open.
    pub files_max: usize,
    /// For how long a file is served as it was when its path was last looked at. Something of a clock's tick comes on
    /// top of it.
    pub validity: Duration,
}

impl FileCache {
    /// Nothing is kept.
    pub const OFF: Self = Self { files_max: 0, validity: Duration::ZERO };
}

impl Default for FileCache {
    fn default() -> Self {
        Self { files_max: 1024, validity: Duration::from_secs(1) }
    }
}

impl Body {
    /// What can be asked of every target. No page needs content: what is sent to a fixed one is read and thrown away.
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

/// How long a client may take. None of them is extended byte by byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Between two requests, and before the first one. It begins when a reply is handed to the engine, and does not
    /// end before that has had the time of `content`.
    pub idle: Duration,
    /// From the first byte of a head to its last.
    pub head: Duration,
    /// For each quarter of a mebibyte of content: of a request to arrive, of a reply to be taken.
    pub content: Duration,
}

impl Timeouts {
    /// What a server has that is told nothing.
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

/// Where [`Body::Fixed`] content lies, if it is large.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LargeContent {
    /// In this program's memory: the kernel copies it for every reply.
    Memory,
    /// In the page cache, whose pages the kernel sends as they are.
    #[default]
    PageCache,
}

/// Everything a server needs to know before it starts.
#[derive(Clone, Debug)]
pub struct HttpConfig {
    /// What requests are answered with.
    pub body: Body,
    /// Where it lies, if it is large.
    pub large_content: LargeContent,
    /// What one request may cost.
    pub limits: Limits,
    /// How long a client may take.
    pub timeouts: Timeouts,
    /// Requests answered on one connection; the last of them is told that the connection closes.
    pub requests_max: u64,
    /// Connections at a time; one more is answered with 503 and closed.
    pub connections_max: usize,
    /// … of one client: an IPv4 address, or the first 64 bits of an IPv6 address.
    pub client_connections_max: Option<usize>,
    /// Fields for every reply with a status below 400.
    pub headers: ReplyHeaders,
    /// What a line of the access log says.
    pub log_format: LogFormat,
    /// An experiment: every reply says `Connection: close`, and the connection goes on all the same.
    pub say_close: bool,
    /// An experiment: the worker's thread sleeps this long for every request.
    pub handler_time: Duration,
    /// Where the time comes from.
    pub clock: Clock,
}

impl HttpConfig {
    /// This content, and every default.
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
            handler_time: Duration::ZERO,
            clock: Clock::Kernel,
        }
    }
}

/// Connections at a time, unless more or fewer are asked for.
pub const CONNECTIONS_MAX: usize = 65_536;

/// What a line of the access log says. Bytes are those of the content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// The Common Log Format: client, time, request, status, bytes.
    Common,
    /// The Combined Log Format: the same with referrer and user agent.
    #[default]
    Combined,
    /// The same, and the microseconds from the request's first byte until its reply was handed over.
    Timed,
}

/// Where the time comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The kernel's coarse clocks: a few milliseconds late, and read without entering the kernel.
    Kernel,
    /// The engine's time, which is virtual on the simulator.
    Engine {
        /// What a `Date` says when the engine's clock stands at zero: seconds since 1970.
        zero_seconds: u64,
    },
}

impl Clock {
    /// The time of deadlines.
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

/// Where a server writes about its requests: nowhere, unless told.
#[derive(Default)]
pub struct HttpLogs {
    /// One line for each request, through a bounded queue and a thread of its own.
    pub access: Option<Box<dyn Write + Send>>,
    /// An experiment: one line for each connection, written at once by the worker that serves it. To be opened for
    /// appending: workers share it without a lock.
    pub connections: Option<Arc<File>>,
}

impl fmt::Debug for HttpLogs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let connections = &self.connections;
        formatter.debug_struct("HttpLogs").field("connections", connections).finish_non_exhaustive()
    }
}
