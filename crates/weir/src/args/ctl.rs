//! `weir ctl` as it is typed.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct Ctl {
    /// Path of the gateway's control socket
    #[arg(long, value_name = "PATH", global = true)]
    pub(crate) socket: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) task: CtlTask,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CtlTask {
    /// Show limits, or change them: weir ctl limits --account C00001 shares_max=1000 notional_max=off
    Limits {
        /// Account [default: the limits of all accounts without own ones]
        #[arg(long, value_name = "NAME")]
        account: Option<String>,
        /// Limits with new values; off takes one away. Keys: orders_per_second, orders_burst, symbol_orders_per_second,
        /// symbol_orders_burst, duplicates_max, duplicates_window_ms, fat_finger_percent, shares_max, notional_max,
        /// exposure_max, restricted (symbols with commas between)
        #[arg(value_name = "KEY=VALUE")]
        changes: Vec<String>,
        /// Take back what was set with this command, all of it or the named limits (KEY): the file's hold again
        #[arg(long)]
        reset: bool,
    },
    /// Show the reference prices of orders, or set some: weir ctl references WEIR=12.50
    References {
        /// Symbols with prices, in units of the currency; off takes one away. Each holds until the next trade
        #[arg(value_name = "SYMBOL=PRICE")]
        prices: Vec<String>,
    },
    /// Stop an account, or everybody: new orders are refused, and open ones cancelled
    Kill {
        /// Account, or all
        account: String,
        /// End the stop: orders are taken again
        #[arg(long)]
        off: bool,
    },
    /// End the gateway in good order; clients can join their session again after the next start
    Drain,
    /// End the session with clients, and with it the gateway: the next start has the next session
    EndSession {
        /// Name of the session, as weir ctl sessions shows it
        name: String,
    },
    /// Read the configuration file again: accounts, passwords, limits, routes, addresses of venues; all or nothing
    Reload,
    /// Show the sessions of clients and with exchanges
    Sessions,
    /// Read a password from standard input and print the hash that configuration files have
    HashPassword,
}
