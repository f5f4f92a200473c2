//! An exchange: order sessions with a venue behind them, for a gateway or a client to trade with.
//!
//! `echo-accept` answers every order once, on the worker its account lives on: what a gateway costs, without a market
//! behind it. `match` has one market for all workers.

mod config;
mod echo;

use std::{fmt, io, rc::Rc, str::FromStr};

use weir_engine::serve::{ServeError, ServerConfig};

use crate::orders::{Application, Hub, OrdersConfig, OrdersServer, Recovery};

pub use config::{ExchangeConfig, ExchangeConfigError, parse};

/// What happens to orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Each message is answered once, and nothing is traded.
    #[default]
    EchoAccept,
}

impl Mode {
    /// Every mode, in the order in which documentation lists them.
    pub const ALL: [Mode; 1] = [Mode::EchoAccept];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Mode::EchoAccept => "echo-accept",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A mode that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no mode of an exchange; use {list}", list = Mode::ALL.map(Mode::name).join(" or "))]
pub struct UnknownMode(String);

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(name: &str) -> Result<Self, UnknownMode> {
        Self::ALL.into_iter().find(|mode| mode.name() == name).ok_or_else(|| UnknownMode(name.to_owned()))
    }
}

/// Starts an exchange; see [`OrdersServer::start`].
///
/// # Errors
/// As [`OrdersServer::start`].
pub fn start(server: ServerConfig, orders: OrdersConfig, mode: Mode) -> Result<OrdersServer, ServeError> {
    match mode {
        Mode::EchoAccept => OrdersServer::start(server, orders, echo_accept),
    }
}

/// As [`start`], with what [`recover`](crate::orders::recover) has found.
///
/// # Errors
/// As [`OrdersServer::start`].
pub fn start_recovered(
    server: ServerConfig,
    orders: OrdersConfig,
    recovery: Recovery,
    mode: Mode,
) -> Result<OrdersServer, ServeError> {
    match mode {
        Mode::EchoAccept => OrdersServer::start_recovered(server, orders, recovery, echo_accept),
    }
}

/// The application of one worker in mode `echo-accept`.
///
/// # Errors
/// None: it cannot fail.
pub fn echo_accept(hub: Rc<Hub>) -> io::Result<Rc<dyn Application>> {
    Ok(Rc::new(echo::EchoExchange::new(hub)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_round_trip_and_others_are_refused_with_the_list() {
        for mode in Mode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        let error = "echo".parse::<Mode>().expect_err("there is none of that name").to_string();
        assert!(error.contains("\"echo\"") && error.contains("echo-accept"), "{error}");
    }
}
