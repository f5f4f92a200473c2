//! `weir serve gateway` as it is typed.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, builder::RangedU64ValueParser};

use super::{JournalFlags, ServeShared, number};

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct ServeGateway {
    /// Address for clients: HOST:PORT (port 0 takes a free one), unix:/path or @name [default: that of the file, or
    /// 127.0.0.1:9100]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// Accounts, venues, routes, limits and everything else from this file; flags go before it
    #[arg(long, value_name = "FILE.toml", required_unless_present = "demo")]
    pub(crate) config: Option<PathBuf>,
    /// This many accounts C00001, C00002, ... with the password DEMO, in front of an exchange that has --demo too
    #[arg(long, value_name = "COUNT", conflicts_with = "config",
          value_parser = RangedU64ValueParser::<u32>::new().range(1..=50_000))]
    pub(crate) demo: Option<u32>,
    /// Address of the exchange [default: that of the file, or 127.0.0.1:9101]
    #[arg(long, value_name = "ADDR")]
    pub(crate) upstream: Option<String>,
    /// Which worker sends a client's orders: own, other (the next one) or modulo (half of them with two workers)
    /// [default: that of the file, or own]
    #[arg(long, value_name = "ROUTE")]
    pub(crate) route: Option<String>,
    /// How orders cross between workers: owner, naive, edge, armed, mesh, mesh-spin or msgring [default: that of the
    /// file, or mesh]
    #[arg(long, value_name = "STRATEGY")]
    pub(crate) handoff: Option<String>,
    /// Microseconds that mesh-spin looks at memory before it sleeps [default: 50, and 0 where workers reach the CPUs]
    #[arg(long, value_name = "MICROSECONDS", value_parser = number::<u64>)]
    pub(crate) spin_us: Option<u64>,
    #[command(flatten)]
    pub(crate) journal: JournalFlags,
    /// Path of the Unix socket for `weir ctl` [default: that of the file; without one there is none]
    #[arg(long, value_name = "PATH")]
    pub(crate) control: Option<PathBuf>,
    /// Loopback address for /metrics and /healthz [default: that of the file; without one there is none]
    #[arg(long, value_name = "ADDR")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Do not take the times of an order's hops
    #[arg(long)]
    pub(crate) no_hop_times: bool,
    /// Listen beyond this machine although passwords and orders cross the network as they are
    #[arg(long)]
    pub(crate) insecure: bool,
    #[command(flatten)]
    pub(crate) shared: ServeShared,
}
