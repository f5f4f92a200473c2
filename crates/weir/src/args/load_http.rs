//! Arguments of `weir load http`.

use std::path::PathBuf;

use clap::Args;

use super::{LoadShared, number};

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
    /// What to ask for: http://HOST[:PORT]/PATH; several on one server are asked for in turn
    #[arg(required = true, value_name = "URL")]
    pub(crate) urls: Vec<String>,
    /// Exactly so many requests on each connection, without a warm-up; with --rate as many in all, each on a connection
    /// that is free then. --duration is the limit
    #[arg(long, short = 'n', value_parser = number::<u64>)]
    pub(crate) requests: Option<u64>,
    /// A new connection for each request, closed by the server after it
    #[arg(long)]
    pub(crate) close: bool,
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
