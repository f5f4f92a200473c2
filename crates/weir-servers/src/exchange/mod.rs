//! An exchange: order sessions with a venue behind them, for a gateway or a client to trade with.
//!
//! `echo-accept` answers every order once, on the worker its account lives on: what a gateway costs, without a market
//! behind it. `match` is one market with price-time priority; each symbol is traded on one worker, and messages and
//! answers cross to it and back. Its books are in memory alone: an exchange that is started again tells every account
//! which of its orders were live, by cancelling them.

mod config;
mod echo;
mod live;
mod matching;
mod numbers;

use std::{
    fmt, io,
    rc::Rc,
    str::FromStr,
    sync::{Arc, Mutex, PoisonError},
};

use weir_engine::{
    handoff::{self, Strategy},
    serve::{ServeError, ServerConfig},
};
use weir_proto::ouch::Outbound;

use crate::orders::{
    self, Application, OrdersConfig, OrdersRecoverError, OrdersServer, RecordKind, Recovery, SessionStore,
};

pub use config::{ExchangeConfig, parse};

use live::LiveOrders;
use matching::{MatchExchange, Stage};
use numbers::GivenNumbers;

/// What happens to orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Each message is answered once, and nothing is traded.
    #[default]
    EchoAccept,
    /// Orders trade by price and time.
    Match,
}

impl Mode {
    /// Every mode, in the order in which documentation lists them.
    pub const ALL: [Mode; 2] = [Mode::EchoAccept, Mode::Match];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Mode::EchoAccept => "echo-accept",
            Mode::Match => "match",
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

/// What the journals of an exchange say.
#[derive(Debug)]
pub struct Recovered {
    recovery: Recovery,
    /// Orders that no book has any more.
    lost: LiveOrders,
    given: GivenNumbers,
}

impl Recovered {
    /// The session of the journals is over: the exchange begins the next one. What was live in that, nobody asks for in
    /// this one.
    pub fn end_session(&mut self) {
        self.recovery.end_session();
        self.lost = LiveOrders::default();
    }

    /// What they say of the sessions.
    pub fn sessions(&self) -> &Recovery {
        &self.recovery
    }
}

/// Reads the journals.
///
/// # Errors
/// As [`orders::recover`].
pub fn recover(config: &OrdersConfig, mode: Mode) -> Result<Recovered, OrdersRecoverError> {
    let mut lost = LiveOrders::default();
    let mut given = GivenNumbers::default();
    let recovery = orders::recover(config, &mut |record| {
        if let RecordKind::Sequenced { account, message, .. } = record.kind
            && let Ok((message, _)) = Outbound::decode(message)
        {
            given.note(&message);
            if mode == Mode::Match {
                lost.note(account, &message);
            }
        }
    })?;
    Ok(Recovered { recovery, lost, given })
}

/// Recovers what the journals say, and starts an exchange.
///
/// # Errors
/// As [`OrdersServer::start`].
pub fn start(server: ServerConfig, orders: OrdersConfig, mode: Mode) -> Result<OrdersServer, ServeError> {
    let recovered = recover(&orders, mode)
        .map_err(|error| ServeError::Worker { worker: 0, source: io::Error::other(error) })?;
    start_recovered(server, orders, recovered, mode)
}

/// Starts an exchange with what [`recover`] has found.
///
/// # Errors
/// As [`OrdersServer::start`].
pub fn start_recovered(
    server: ServerConfig,
    orders: OrdersConfig,
    recovered: Recovered,
    mode: Mode,
) -> Result<OrdersServer, ServeError> {
    let Recovered { recovery, lost, given } = recovered;
    match mode {
        Mode::EchoAccept => {
            let given_max = given.reference_max();
            let make = move |store| echo(store, given_max);
            OrdersServer::start_recovered(server, orders, recovery, make)
        }
        Mode::Match => {
            let make = market(server.workers.max(1), lost, given);
            OrdersServer::start_recovered(server, orders, recovery, make)
        }
    }
}

/// The application of one worker in mode `echo-accept` that has given out no order references.
///
/// # Errors
/// None: it cannot fail.
pub fn echo_accept(store: Rc<SessionStore>) -> io::Result<Rc<dyn Application>> {
    echo(store, 0)
}

fn echo(store: Rc<SessionStore>, given_max: u64) -> io::Result<Rc<dyn Application>> {
    Ok(Rc::new(echo::EchoExchange::new(store, given_max)))
}

/// Makes the applications of so many workers in mode `match`.
fn market(
    workers: usize,
    lost: LiveOrders,
    given: GivenNumbers,
) -> impl Fn(Rc<SessionStore>) -> io::Result<Rc<dyn Application>> + Clone + Send + 'static {
    let options = handoff::Options { strategy: Strategy::Mesh, ..handoff::Options::default() };
    let ports = handoff::group(workers, &options).into_iter().map(Some).collect::<Vec<_>>();
    let (ports, stage, lost) = (Arc::new(Mutex::new(ports)), Arc::new(Stage::default()), Arc::new(lost));
    move |store| {
        let mut ports = ports.lock().unwrap_or_else(PoisonError::into_inner);
        let port = ports.get_mut(store.worker()).and_then(Option::take);
        let port = port.ok_or_else(|| io::Error::other("each worker has its part of the market once"))?;
        let first = given.first(store.worker());
        Ok(MatchExchange::start(store, port, Arc::clone(&stage), first, &lost)?)
    }
}

/// The application of the only worker in mode `match`, with what [`recover`] has found.
///
/// # Errors
/// When no task can be had.
pub fn match_alone(
    recovered: &Recovered,
) -> impl Fn(Rc<SessionStore>) -> io::Result<Rc<dyn Application>> + use<> {
    market(1, recovered.lost.clone(), recovered.given.clone())
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
