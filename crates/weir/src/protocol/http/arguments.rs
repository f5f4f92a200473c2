//! `weir serve http` and `weir load http` as they are typed.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum, builder::RangedU64ValueParser};
use weir_proto::http1::Limits;
use weir_servers::http::{CONNECTIONS_MAX, Timeouts};

use crate::flags::{LoadShared, ServeShared, number, size, size_within};

/// A length of time of whole seconds, as it is typed.
fn typed(length: Duration) -> String {
    format!("{}s", length.as_secs())
}

/// How the content of files reaches the sockets.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum FileIo {
    /// Read into memory, then sent
    Read,
    /// From the page cache to the socket
    Sendfile,
}

/// What a line of the access log says.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    /// Common Log Format: client, time, request, status, bytes of content
    Common,
    /// Combined Log Format: the same with referrer and user agent
    Combined,
    /// Combined, and the microseconds until the reply was handed over
    Timed,
}

/// Where a body of 32 KiB or more lies.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LargeContent {
    /// In the program's memory: the kernel copies it for every reply
    Memory,
    /// In the page cache, whose pages the kernel sends as they are
    PageCache,
}

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct ServeHttp {
    /// Address: HOST:PORT (port 0 takes a free one), unix:/path or @name
    #[arg(long, default_value = "127.0.0.1:8088", value_name = "ADDR")]
    pub(crate) listen: String,
    /// The answer of every path: html, image (a JPEG of 148 KiB), a number of bytes such as 16k, or echo (the
    /// request's own)
    #[arg(long, default_value = "html", value_name = "BODY")]
    pub(crate) body: String,
    /// Where a body of 32 KiB or more lies
    #[arg(long, value_enum, default_value = "page-cache", value_name = "PLACE", conflicts_with = "root")]
    pub(crate) large_content: LargeContent,
    /// Answer with the files below this folder instead
    #[arg(long, value_name = "DIR", conflicts_with = "body")]
    pub(crate) root: Option<PathBuf>,
    /// How the content of files reaches the sockets
    #[arg(long, value_enum, default_value = "sendfile", requires = "root")]
    pub(crate) file_io: FileIo,
    /// Most files that all workers together keep between requests: short ones (32 KiB) as bytes, longer ones open, with
    /// at most a quarter of the allowed descriptors. 0 opens a file for each request
    #[arg(long, default_value_t = 1024, requires = "root", value_name = "COUNT",
          value_parser = RangedU64ValueParser::<usize>::new().range(0..=1_048_576))]
    pub(crate) file_cache: usize,
    /// How long a kept file is served before its path is opened again: a replaced, changed or removed file is noticed
    /// after that time
    #[arg(long, default_value = "1s", requires = "root", value_name = "TIME")]
    pub(crate) file_cache_time: String,
    /// Serve files and folders whose names begin with a dot as well (/.well-known/ always is)
    #[arg(long, requires = "root")]
    pub(crate) dotfiles: bool,
    /// Send FILE.br, FILE.zst or FILE.gz instead of FILE to clients that read it, where it is no older than FILE
    #[arg(long, requires = "root")]
    pub(crate) precompressed: bool,
    /// Add this field to every reply that is no refusal, repeatable: 'Cache-Control: max-age=60'
    #[arg(long = "header", value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,
    #[command(flatten)]
    pub(crate) shared: ServeShared,
    /// Longest pause between two requests; then the connection ends silently
    #[arg(long, default_value = typed(Timeouts::DEFAULT.idle), value_name = "TIME")]
    pub(crate) idle_timeout: String,
    /// Longest time for a whole head, however slowly it arrives
    #[arg(long, default_value = typed(Timeouts::DEFAULT.head), value_name = "TIME")]
    pub(crate) header_timeout: String,
    /// Longest time for each 256 KiB of content: for a request to arrive, and for a client to take a reply
    #[arg(long, default_value = typed(Timeouts::DEFAULT.content), value_name = "TIME")]
    pub(crate) body_timeout: String,
    /// Largest head of a request, such as 16k
    #[arg(long, default_value_t = Limits::DEFAULT.head_bytes_max, value_name = "BYTES",
          value_parser = |text: &str| size_within(text, 256..=1_048_576))]
    pub(crate) head_bytes_max: usize,
    /// Largest content of a request, such as 1m
    #[arg(long, default_value_t = Limits::DEFAULT.body_bytes_max, value_name = "BYTES",
          value_parser = size::<u64>)]
    pub(crate) content_bytes_max: u64,
    /// Most requests on one connection [default: no limit]
    #[arg(long, value_name = "COUNT", value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub(crate) requests_max: Option<u64>,
    /// Most connections at a time; one more is answered with 503 and closed
    #[arg(long, value_name = "COUNT", default_value_t = CONNECTIONS_MAX,
          value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) connections_max: usize,
    /// Most connections at a time of one IPv4 address, or of one /64 of IPv6 [default: no limit]
    #[arg(long, value_name = "COUNT", value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) connections_max_per_client: Option<usize>,
    /// Write a line for each request to this file, or to standard output: -. Lines are dropped, and counted, when they
    /// come faster than they are written
    #[arg(long, value_name = "FILE")]
    pub(crate) access_log: Option<PathBuf>,
    /// What a line of the access log says
    #[arg(long, value_enum, default_value = "combined", requires = "access_log", value_name = "FORMAT")]
    pub(crate) log_format: LogFormat,
    /// Experiment: the worker itself writes a line to this file for each connection, and flushes it
    #[arg(long, value_name = "FILE", help_heading = "Experiments")]
    pub(crate) log_connections: Option<PathBuf>,
    /// Experiment: say `Connection: close` in every reply, and go on all the same
    #[arg(long, help_heading = "Experiments")]
    pub(crate) say_close: bool,
    /// Experiment: the worker's thread sleeps this long for every request
    #[arg(long, default_value = "0s", value_name = "TIME", help_heading = "Experiments")]
    pub(crate) handler_time: String,
}

/// What the help ends with.
const AFTER_HELP: &str = "\
Every response is checked: status, framing, length, and every byte of its content, which must be what --expect-content
says, or else what the first right response of its URL was. With --expect-content any, and for HEAD, contents are not
compared. Redirects are not followed; where the first one points to is said.

A plan of 100 users, ramp-up in 10 s, 30 s in all, as load testers know it:
  weir load http URL --users 100 --ramp-up 10s -d 30s --warmup-max 0s \\
                     --connect-timeout 5000ms --response-timeout 3000ms --close";

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true, after_help = AFTER_HELP)]
pub(crate) struct LoadHttp {
    /// URLs: http://HOST[:PORT]/PATH; several on one server are requested in turn
    #[arg(required = true, value_name = "URL")]
    pub(crate) urls: Vec<String>,
    /// Send exactly this many requests over all connections, without a warm-up; --duration is then the limit
    #[arg(long, short = 'n', value_parser = number::<u64>)]
    pub(crate) requests: Option<u64>,
    /// A new connection for each request, closed by the server after it
    #[arg(long)]
    pub(crate) close: bool,
    /// Send the requests of this file, each as often as its weight says; the URL is then the server alone,
    /// http://HOST:PORT/, and --header applies to all of them
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["method", "data", "data_file", "expect_status", "expect_content"]
    )]
    pub(crate) request_mix: Option<PathBuf>,
    /// Method of every request: a known one, or any other such as PURGE; --data goes with each
    /// [default: GET, and POST with content]
    #[arg(long, short = 'X')]
    pub(crate) method: Option<String>,
    /// A header field of every request, repeatable
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,
    /// Content of every request
    #[arg(long, value_name = "TEXT", conflicts_with = "data_file")]
    pub(crate) data: Option<String>,
    /// File with the content of every request
    #[arg(long, value_name = "FILE")]
    pub(crate) data_file: Option<PathBuf>,
    /// Statuses that are right; any other is a failure
    #[arg(long, value_delimiter = ',', default_value = "200", value_parser = number::<u16>)]
    pub(crate) expect_status: Vec<u16>,
    /// Content that is right: html, image or a number of bytes (what `weir serve http --body` sends), a FILE, or any
    /// [default: the first response of each URL]
    #[arg(long, value_name = "CONTENT")]
    pub(crate) expect_content: Option<String>,
    /// Local addresses to connect from, in turn: 127.0.0.2-9 or a list with commas
    #[arg(long, value_name = "ADDRESSES")]
    pub(crate) source_addresses: Option<String>,
    /// Write a row for each response of the window to this file, in the columns of JMeter
    #[arg(long, value_name = "FILE")]
    pub(crate) jtl: Option<PathBuf>,
    /// Write a row for each second of the window to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) shared: LoadShared,
}
