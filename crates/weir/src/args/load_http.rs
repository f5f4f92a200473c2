//! Arguments of `weir load http`.

use std::path::PathBuf;

use clap::Args;

use super::{Arrivals, fraction, number};

/// What the help ends with.
const AFTER_HELP: &str = "\
Every response is checked: framing, length, status, and content. Contents up to 64 KiB are always compared byte for
byte; of larger ones all in the warm-up and with -n, and one in 16 in a timed window. Redirects are not followed.

A plan of 100 users, ramp-up in 10 s, 30 s in all, as load testers know it:
  weir load http URL --users 100 --ramp-up 10s -d 30s --warmup-max 0s \\
                     --connect-timeout 5000ms --response-timeout 3000ms --close";

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true, after_help = AFTER_HELP)]
pub(crate) struct LoadHttp {
    /// What to ask for: http://HOST[:PORT]/PATH; several on one server are asked for in turn
    #[arg(required = true, value_name = "URL")]
    pub(crate) urls: Vec<String>,
    /// Connections that carry requests, or users
    #[arg(long, short = 'c', visible_alias = "users", default_value_t = 100)]
    pub(crate) connections: u32,
    /// Further connections that stay silent
    #[arg(long, default_value_t = 0)]
    pub(crate) idle_connections: u32,
    /// Exactly so many requests on each connection, without a warm-up; --duration is then the limit
    #[arg(long, short = 'n', value_parser = number::<u64>)]
    pub(crate) requests: Option<u64>,
    /// Measured time: 1.5s, 500ms, 2min
    #[arg(long, short = 'd', default_value = "10s", value_name = "TIME")]
    pub(crate) duration: String,
    /// Longest warm-up; it ends earlier when the throughput is steady
    #[arg(long, default_value = "5s", value_name = "TIME")]
    pub(crate) warmup_max: String,
    /// Requests in flight on each connection (pipelining)
    #[arg(long, default_value_t = 1)]
    pub(crate) depth: u32,
    /// A new connection for each request, closed by the server after it
    #[arg(long)]
    pub(crate) close: bool,
    /// Open loop: requests a second over all connections, whatever the server does
    #[arg(long, value_name = "PER_SECOND", value_parser = fraction)]
    pub(crate) rate: Option<f64>,
    /// Open loop: how requests are spaced
    #[arg(long, value_enum, default_value = "poisson", requires = "rate")]
    pub(crate) arrivals: Arrivals,
    /// Closed loop: pause between a response and the next request
    #[arg(long, default_value = "0s", value_name = "TIME", conflicts_with = "rate")]
    pub(crate) think: String,
    /// Time over which the connections are opened, or the users begin
    #[arg(long, default_value = "0s", value_name = "TIME")]
    pub(crate) ramp_up: String,
    /// Longest wait for a connection
    #[arg(long, default_value = "5s", value_name = "TIME")]
    pub(crate) connect_timeout: String,
    /// Longest wait for a complete response
    #[arg(long, default_value = "5s", value_name = "TIME")]
    pub(crate) response_timeout: String,
    /// Method of every request [default: GET, and POST with content]
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
    /// Generator threads
    #[arg(long, default_value_t = 1)]
    pub(crate) workers: u32,
    /// CPUs to pin the threads to, in turn: 1,3
    #[arg(long, value_delimiter = ',', value_name = "CPUS", value_parser = number::<usize>)]
    pub(crate) pin: Vec<usize>,
    /// Driver of the generator itself
    #[arg(long, default_value = "auto")]
    pub(crate) driver: String,
    /// Engine option of the generator, repeatable; as for `weir serve`
    #[arg(long = "option", short = 'o', value_name = "NAME=VALUE")]
    pub(crate) options: Vec<String>,
    /// Seed of arrivals and samples
    #[arg(long, default_value_t = 1, value_parser = number::<u64>)]
    pub(crate) seed: u64,
    /// Read CPU, switches and memory of this process at both edges of the window
    #[arg(long, value_name = "PID")]
    pub(crate) observe_pid: Option<u32>,
    /// Read the target's engine counters from this socket at both edges of the window
    #[arg(long, value_name = "@NAME")]
    pub(crate) observe_stats: Option<String>,
    /// Print the report as one line of JSON and no progress
    #[arg(long)]
    pub(crate) json: bool,
}
