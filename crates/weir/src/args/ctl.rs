//! `weir ctl` as it is typed.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// What the help ends with.
const AFTER_HELP: &str = "\
Set the socket once for the shell, or write --socket PATH into each command:
  export WEIR_CONTROL=/var/lib/weir-servers/gateway/gateway.sock

Who is logged in, which exchange is missing and why, which kill switch is on:
  weir ctl sessions
Stop an account and cancel its orders; the same for everybody; end that:
  weir ctl kill C00001
  weir ctl kill all
  weir ctl kill all --off
Open orders of an account, and a cancel of one, or of all in a symbol:
  weir ctl orders --account C00001
  weir ctl cancel C00001/17
  weir ctl cancel --symbol WEIR
Change limits of an account; take that back; do both for accounts without separate limits:
  weir ctl limits --account C00001 shares_max=1000 notional_max=off
  weir ctl limits --account C00001 --reset shares_max
  weir ctl limits shares_max=1000
  weir ctl limits --reset
Let an account try its password again:
  weir ctl unlock C00001

Exit codes: 0 done; 1 the gateway refuses or does not answer, and says why; 2 the command line is wrong.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Ctl {
    /// Path of the gateway's control socket [default: that of the variable WEIR_CONTROL]
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
        /// Limits with new values; off takes one away. Keys: orders_per_second, orders_burst, cancels_per_second,
        /// cancels_burst, symbol_orders_per_second, symbol_orders_burst, duplicates_max, duplicates_window_ms,
        /// fat_finger_percent, shares_max, notional_max, exposure_max, restricted (symbols with commas between)
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
    /// Begin a trading day, or the session of [day] that is due now; orders are taken
    StartOfDay,
    /// End the trading day: orders are refused, and the session with clients ends when none is open
    EndOfDay,
    /// Read the configuration file again: accounts, passwords, limits, routes, addresses of venues; all or nothing
    Reload,
    /// Show the sessions of clients and with exchanges, and why one is not open
    Sessions {
        /// Only this account's session
        #[arg(long, value_name = "NAME")]
        account: Option<String>,
    },
    /// Show open orders, a thousand at a time
    Orders {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        page: Paging,
    },
    /// Show executed shares by account and symbol, since the first record of the journal
    Positions {
        /// Only of this account
        #[arg(long, value_name = "NAME")]
        account: Option<String>,
        /// Only in this symbol
        #[arg(long, value_name = "SYMBOL")]
        symbol: Option<String>,
        #[command(flatten)]
        page: Paging,
    },
    /// Show what counts against the exposure of accounts, and its limit; of one account also by order
    Exposure {
        /// Only of this account, with its open orders
        #[arg(long, value_name = "NAME")]
        account: Option<String>,
        #[command(flatten)]
        page: Paging,
    },
    /// Cancel one open order, or those of an account, a symbol or a venue
    Cancel {
        /// The order, as in weir ctl orders: C00001/17
        #[arg(value_name = "ACCOUNT/ORDER", conflicts_with_all = ["account", "symbol", "venue"])]
        order: Option<String>,
        #[command(flatten)]
        which: Which,
    },
    /// Unlock logins that are locked after too many wrong passwords
    Unlock {
        /// Account, firm, address, or all
        #[arg(value_name = "ACCOUNT|FIRM|ADDRESS|all")]
        whom: String,
    },
    /// End the connection of a client, which may log in again
    Disconnect {
        /// Account, or the session and the account: WEIRGW0001/C00001
        #[arg(value_name = "[SESSION/]ACCOUNT")]
        account: String,
    },
    /// Read a password from standard input and print the hash that configuration files have
    HashPassword,
}

/// Which orders are meant: those that match everything that is given.
#[derive(Clone, Debug, Args)]
pub(crate) struct Which {
    /// Orders of this account
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    /// Orders in this symbol
    #[arg(long, value_name = "SYMBOL")]
    pub(crate) symbol: Option<String>,
    /// Orders that were sent to this venue
    #[arg(long, value_name = "NAME")]
    pub(crate) venue: Option<String>,
}

/// Which part of a list is shown, and how.
#[derive(Clone, Debug, Args)]
pub(crate) struct Paging {
    /// Continue where a page has ended, as its last line says
    #[arg(long, value_name = "PLACE")]
    pub(crate) after: Option<String>,
    /// What to print
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: ListFormat,
}

/// How a list is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    /// One line for each row, in columns
    Table,
    /// The gateway's answer, one JSON object
    Json,
}
