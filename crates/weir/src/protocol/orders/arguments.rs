//! `weir serve exchange`, `weir serve gateway` and `weir load orders` as they are typed.

use std::path::PathBuf;

use clap::{Args, builder::RangedU64ValueParser};

use super::event_log::LogFlags;
use crate::flags::{LoadShared, ServeShared, number};

/// Flags of the journal, the same for everything that keeps one.
#[derive(Clone, Debug, Args)]
pub(crate) struct JournalFlags {
    /// What an acknowledged message must survive: none, os (the end of the process) or disk (a loss of power) [default:
    /// the file's, or disk; none with --demo and no --journal-dir]
    #[arg(long, value_name = "LEVEL")]
    pub(crate) journal: Option<String>,
    /// Folder of the journals [default: the file's]
    #[arg(long, value_name = "DIR")]
    pub(crate) journal_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct ServeExchange {
    /// Address: HOST:PORT (port 0 takes a free one), unix:/path or @name [default: the file's, or 127.0.0.1:9101]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// Accounts and everything else from this file; flags go before it
    #[arg(long, value_name = "FILE.toml", required_unless_present = "demo")]
    pub(crate) config: Option<PathBuf>,
    /// This many accounts C00001, C00002, ... and those of a demonstration gateway (G00001, ...), all with the password
    /// DEMO
    #[arg(long, value_name = "COUNT", conflicts_with = "config",
          value_parser = RangedU64ValueParser::<u32>::new().range(1..=50_000))]
    pub(crate) demo: Option<u32>,
    /// End the session in the journal, with its orders, and begin the next one
    #[arg(long)]
    pub(crate) new_session: bool,
    /// Treatment of orders: echo-accept (each is answered once) or match (a market) [default: the file's, or
    /// echo-accept]
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<String>,
    #[command(flatten)]
    pub(crate) journal: JournalFlags,
    #[command(flatten)]
    pub(crate) log: LogFlags,
    /// Listen beyond this machine although passwords and orders cross the network in plain text
    #[arg(long)]
    pub(crate) insecure: bool,
    #[command(flatten)]
    pub(crate) shared: ServeShared,
}

#[derive(Clone, Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct ServeGateway {
    /// Address for clients: HOST:PORT (port 0 takes a free one), unix:/path or @name [default: the file's, or
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
    /// Address of the exchange [default: the file's, or 127.0.0.1:9101]
    #[arg(long, value_name = "ADDR")]
    pub(crate) upstream: Option<String>,
    /// Which worker sends a client's orders: own, other (the next one) or modulo (half of them with two workers)
    /// [default: the file's, or own]
    #[arg(long, value_name = "ROUTE")]
    pub(crate) route: Option<String>,
    /// How orders cross between workers: owner, naive, edge, armed, mesh, mesh-spin or msgring [default: the file's,
    /// or mesh]
    #[arg(long, value_name = "STRATEGY")]
    pub(crate) handoff: Option<String>,
    /// Microseconds that mesh-spin polls memory before it sleeps [default: 50, and 0 where workers reach the CPUs]
    #[arg(long, value_name = "MICROSECONDS", value_parser = number::<u64>)]
    pub(crate) spin_us: Option<u64>,
    #[command(flatten)]
    pub(crate) journal: JournalFlags,
    #[command(flatten)]
    pub(crate) log: LogFlags,
    /// Path of the Unix socket for `weir ctl` [default: the file's; without one there is none]
    #[arg(long, value_name = "PATH")]
    pub(crate) control: Option<PathBuf>,
    /// Read the configuration, the variables with passwords and the journal folder, say what is there or every error,
    /// and start nothing
    #[arg(long)]
    pub(crate) check: bool,
    /// Let open orders that this configuration no longer reaches expire, instead of refusing to start. Their
    /// clients get a message, those of a removed account when it is back. What a removed venue does with them is not
    /// reported: cancel them there first
    #[arg(long)]
    pub(crate) expire_unreachable: bool,
    /// Do not measure the times of an order's hops
    #[arg(long)]
    pub(crate) no_hop_times: bool,
    /// Listen beyond this machine although passwords and orders cross the network in plain text
    #[arg(long)]
    pub(crate) insecure: bool,
    #[command(flatten)]
    pub(crate) shared: ServeShared,
}

/// What the help ends with.
const AFTER_HELP: &str = "\
Each session logs in over SoupBinTCP and trades in OUCH 5.0. Every answer is checked: the fields that must come back as
they were sent, its place among the answers of its session, the numbers of the stream over reconnects, and in the end
the balance of all shares. The client order id holds the send time, so gateways and exchanges can measure the way to them.

One order in flight over ten sessions, in turn:
  weir load orders --target 127.0.0.1:9100 --sessions 10 --in-flight-total 1
Orders at a steady rate, of which every third is cancelled again:
  weir load orders --target 127.0.0.1:9100 --sessions 10 --in-flight 64 \\
                   --rate 20k --mix enter=3,cancel=1

The password is that of --password, or of WEIR_PASSWORD, or DEMO.";

#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    after_help = AFTER_HELP,
    mut_arg("connections", |argument| argument
        .long("sessions")
        .value_name("N")
        .default_value("10")
        .help("Sessions, each with its own account and connection")),
    mut_arg("depth", |argument| argument
        .long("in-flight")
        .value_name("K")
        .help("Orders in flight on each session; in an open loop, at most")),
    mut_arg("idle_connections", |argument| argument.hide(true))
)]
pub(crate) struct LoadOrders {
    /// Address of the gateway or exchange: HOST:PORT, unix:/path or @name
    #[arg(long, default_value = "127.0.0.1:9100", value_name = "ADDR")]
    pub(crate) target: String,
    /// Orders in flight over the whole run, handed from session to session in turn
    #[arg(long, value_name = "K", conflicts_with_all = ["depth", "rate"], value_parser = number::<u32>)]
    pub(crate) in_flight_total: Option<u32>,
    /// Exactly N orders on each session, without a warm-up; with --rate N in all, each on a session that is free then.
    /// --duration is the limit
    #[arg(long, short = 'n', value_name = "N", value_parser = number::<u64>)]
    pub(crate) orders: Option<u64>,
    /// Kinds of orders: enter; enter,cancel; enter,replace,cancel; with shares enter=6,replace=1,cancel=3
    #[arg(long, default_value = "enter", value_name = "KINDS")]
    pub(crate) mix: String,
    /// Symbols that orders are for
    #[arg(long, value_delimiter = ',', default_value = "WEIRA,WEIRB,WEIRC,WEIRD", value_name = "SYMBOLS")]
    pub(crate) symbols: Vec<String>,
    /// Accounts are this and the number of the session, in six letters: C00001
    #[arg(long, default_value = "C", value_name = "PREFIX")]
    pub(crate) accounts_prefix: String,
    /// Password of every account; the variable WEIR_PASSWORD hides it from other users
    #[arg(long)]
    pub(crate) password: Option<String>,
    /// Drop each connection after N answers and log in again where the stream stopped
    #[arg(long, value_name = "N", value_parser = number::<u64>)]
    pub(crate) reconnect_every: Option<u64>,
    /// Begin with the first message the server has for each account, instead of the newest
    #[arg(long)]
    pub(crate) resume: bool,
    #[command(flatten)]
    pub(crate) shared: LoadShared,
}
