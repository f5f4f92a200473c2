//! An exchange: order sessions with a venue behind them, for a gateway or a client.
//!
//! `echo-accept` answers every order once, on the home worker of its account: it measures the cost of a gateway
//! without a market behind it. `match` is one market with price-time priority; each symbol is traded on one worker,
//! and messages and answers cross between workers. Its books exist only in memory: after a restart, the exchange
//! cancels every order that was live, which informs the accounts. A trade of which a crash has left only one side is
//! broken.

mod config;
mod echo;
mod live;
mod matching;
mod numbers;
mod one_sided;

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
use weir_trading::AccountId;

use crate::orders::{
    self, Application, OrdersConfig, OrdersRecoverError, OrdersServer, RecordKind, Recovery, SessionStore,
};

pub use config::{ExchangeConfig, parse};

use live::LiveOrders;
use matching::{MatchExchange, Stage};
use numbers::GivenNumbers;
use one_sided::OneSidedTrades;

/// What the exchange does with orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Each message is answered once; nothing is traded.
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

/// The error for an unknown mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no mode of an exchange; use {list}", list = Mode::ALL.map(Mode::name).join(" or "))]
pub struct UnknownMode(String);

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(name: &str) -> Result<Self, UnknownMode> {
        Self::ALL.into_iter().find(|mode| mode.name() == name).ok_or_else(|| UnknownMode(name.to_owned()))
    }
}

/// The state recovered from the journals of an exchange.
#[derive(Debug)]
pub struct Recovered {
    recovery: Recovery,
    left: Left,
    given: GivenNumbers,
}

/// The unfinished state of a session's market that has to be settled.
#[derive(Clone, Debug, Default)]
struct Left {
    /// The session.
    generation: u16,
    /// The number of configured accounts; accounts that exist only in records have higher numbers.
    configured: usize,
    /// Orders that are in no book any more.
    orders: LiveOrders,
    trades: OneSidedTrades,
}

impl Left {
    /// A message was sent to an account, in a session.
    fn note(&mut self, generation: u16, account: AccountId, message: &Outbound) {
        self.begin(generation);
        if generation < self.generation {
            return;
        }
        self.trades.note(account, message);
        if (account.0 as usize) < self.configured {
            self.orders.note(account, message);
        }
        if let Some(number) = message.user_ref_num()
            && self.orders.find(account, number).is_none()
        {
            self.trades.order_ended(account, number);
        }
    }

    /// Discards the state of earlier sessions: it is not needed in this one.
    fn begin(&mut self, generation: u16) {
        if generation > self.generation {
            *self = Self { generation, configured: self.configured, ..Self::default() };
        }
    }
}

impl Recovered {
    /// The session in the journals is over: the exchange starts the next one.
    pub fn end_session(&mut self) {
        self.recovery.end_session();
        self.left.begin(self.recovery.generation());
    }

    /// The number of trades of which the journals contain only one side. The account that was informed of its side
    /// gets a message that the trade is broken.
    pub fn one_sided_trades(&self) -> usize {
        self.left.trades.iter().filter(|(_, side)| (side.account.0 as usize) < self.left.configured).count()
    }

    /// The state of the sessions.
    pub fn sessions(&self) -> &Recovery {
        &self.recovery
    }
}

/// Reads the journals.
///
/// # Errors
/// As [`orders::recover`].
pub fn recover(config: &OrdersConfig, mode: Mode) -> Result<Recovered, OrdersRecoverError> {
    let mut left = Left { configured: config.accounts.len(), ..Left::default() };
    let mut given = GivenNumbers::default();
    // The other side of a trade may be an account that is no longer configured.
    let recovery = orders::recover_with_removed(config, &mut |record| {
        if let RecordKind::Sequenced { account, message, .. } = record.kind
            && let Ok((message, _)) = Outbound::decode(message)
        {
            given.note(&message);
            if mode == Mode::Match {
                left.note(record.generation, account, &message);
            }
        }
    })?;
    left.begin(recovery.generation());
    Ok(Recovered { recovery, left, given })
}

/// Recovers the state from the journals, and starts an exchange.
///
/// # Errors
/// As [`OrdersServer::start`].
pub fn start(server: ServerConfig, orders: OrdersConfig, mode: Mode) -> Result<OrdersServer, ServeError> {
    let recovered = recover(&orders, mode)
        .map_err(|error| ServeError::Worker { worker: 0, source: io::Error::other(error) })?;
    start_recovered(server, orders, recovered, mode)
}

/// Starts an exchange with the state from [`recover`].
///
/// # Errors
/// As [`OrdersServer::start`].
pub fn start_recovered(
    server: ServerConfig,
    orders: OrdersConfig,
    recovered: Recovered,
    mode: Mode,
) -> Result<OrdersServer, ServeError> {
    let Recovered { recovery, left, given } = recovered;
    match mode {
        Mode::EchoAccept => {
            let given_max = given.reference_max();
            let make = move |store| echo(store, given_max);
            OrdersServer::start_recovered(server, orders, recovery, make)
        }
        Mode::Match => {
            let make = market(server.workers.max(1), left, given);
            OrdersServer::start_recovered(server, orders, recovery, make)
        }
    }
}

/// The application of one worker in mode `echo-accept` that has given out no order references.
///
/// # Errors
/// Never: it cannot fail.
pub fn echo_accept(store: Rc<SessionStore>) -> io::Result<Rc<dyn Application>> {
    echo(store, 0)
}

fn echo(store: Rc<SessionStore>, given_max: u64) -> io::Result<Rc<dyn Application>> {
    Ok(Rc::new(echo::EchoExchange::new(store, given_max)))
}

/// Creates the applications of this many workers in mode `match`.
fn market(
    workers: usize,
    left: Left,
    given: GivenNumbers,
) -> impl Fn(Rc<SessionStore>) -> io::Result<Rc<dyn Application>> + Clone + Send + 'static {
    let options = handoff::Options { strategy: Strategy::Mesh, ..handoff::Options::default() };
    let ports = handoff::group(workers, &options).into_iter().map(Some).collect::<Vec<_>>();
    let (ports, stage, left) = (Arc::new(Mutex::new(ports)), Arc::new(Stage::default()), Arc::new(left));
    move |store| {
        let mut ports = ports.lock().unwrap_or_else(PoisonError::into_inner);
        let port = ports.get_mut(store.worker()).and_then(Option::take);
        let port = port.ok_or_else(|| io::Error::other("each worker has its part of the market once"))?;
        let first = given.first(store.worker());
        Ok(MatchExchange::start(store, port, Arc::clone(&stage), first, &left)?)
    }
}

/// The application of the only worker in mode `match`, with the state from [`recover`].
///
/// # Errors
/// When a task cannot be spawned.
pub fn match_alone(
    recovered: &Recovered,
) -> impl Fn(Rc<SessionStore>) -> io::Result<Rc<dyn Application>> + use<> {
    market(1, recovered.left.clone(), recovered.given.clone())
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
