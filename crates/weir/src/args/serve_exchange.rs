//! `weir serve exchange` as it is typed.

use std::path::PathBuf;

use clap::{Args, builder::RangedU64ValueParser};

use super::{JournalFlags, ServeShared};

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct ServeExchange {
    /// Address: HOST:PORT (port 0 takes a free one), unix:/path or @name [default: that of the file, or 127.0.0.1:9101]
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
    /// What happens to orders: echo-accept (each is answered once) or match (a market) [default: that of the file, or
    /// echo-accept]
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<String>,
    #[command(flatten)]
    pub(crate) journal: JournalFlags,
    /// Listen beyond this machine although passwords and orders cross the network as they are
    #[arg(long)]
    pub(crate) insecure: bool,
    #[command(flatten)]
    pub(crate) shared: ServeShared,
}
