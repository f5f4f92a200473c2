//! Arguments of `weir load orders`.

use clap::Args;

use super::{LoadShared, number};

/// What the help ends with.
const AFTER_HELP: &str = "\
Each session logs in over SoupBinTCP and trades in OUCH 5.0. Every answer is checked: the fields that must come back as
they were sent, its place among the answers of its session, the numbers of the stream over reconnects, and in the end
the balance of all shares. The client order id holds the send time, so gateways and exchanges can tell the way to them.

One order in flight over ten sessions, in turn:
  weir load orders --target 127.0.0.1:9100 --sessions 10 --in-flight-total 1
Orders at a steady rate, of which every third is cancelled again:
  weir load orders --target 127.0.0.1:9100 --sessions 10 --in-flight 64 --rate 20000 --mix enter=3,cancel=1

The password is that of --password, or of WEIR_PASSWORD, or DEMO.";

#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    after_help = AFTER_HELP,
    mut_arg("connections", |argument| argument
        .long("sessions")
        .value_name("N")
        .default_value("10")
        .help("Sessions, each with an account and a connection of its own")),
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
    /// Exactly so many orders on each session, without a warm-up; with --rate as many in all, each on a session that is
    /// free then. --duration is the limit
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
    /// Drop each connection after so many answers and log in again where the stream stopped
    #[arg(long, value_name = "N", value_parser = number::<u64>)]
    pub(crate) reconnect_every: Option<u64>,
    /// Begin with the first message the server has for each account, instead of the newest
    #[arg(long)]
    pub(crate) resume: bool,
    #[command(flatten)]
    pub(crate) shared: LoadShared,
}
