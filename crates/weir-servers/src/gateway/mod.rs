//! The order gateway: clients in front, exchanges behind, and every order numbered anew between them.
//!
//! Each worker has the sessions of its own clients ([`crate::orders`]) and one session with each venue. An order comes
//! from a client, passes the kill switch and the limits, goes to the worker of its route (its own, unless work is
//! handed off on purpose), gets its upstream number there when it is sent, and leaves. The answer comes back the same
//! way and is appended to the client's stream by the worker the client lives on. So what one client sends stays in
//! order, and every number, stream and journal has one writer.
//!
//! What is kept in the journal: every order with its upstream number before it is sent, every answer with its upstream
//! sequence number before the client sees it, and every change by `weir ctl`. A gateway that is started again asks each
//! exchange for what comes after the last answer it kept, and sends what was not answered once more with the same
//! numbers: the exchange ignores what it knows. If the exchange has begun another session meanwhile, the orders of the
//! one before expire, each told to its client once; nothing of it is sent again.
//!
//! What waits is bounded: orders without an answer and bytes for each upstream session, where more are refused and
//! cancels pass; and what is handed over and not taken, where the clients that send that way are not read any more, nor
//! the exchanges.
//!
//! What it is not: it keeps no book, and it does not send an order to another venue when one is down: that order is
//! refused.

mod account_limits;
mod backoff;
mod commands;
mod config;
mod control;
mod counters;
mod hop_latency;
mod kill_and_disconnect;
mod metrics;
mod notices;
mod order_id_timestamp;
mod order_owners;
mod orders_of_other_workers;
mod outstanding;
mod positions;
mod pre_trade_checks;
mod recovery;
mod reference_prices;
mod server;
#[cfg(test)]
mod simulated_days;
#[cfg(test)]
mod test_messages;
mod undelivered_bounds;
mod unreachable_orders;
mod unsolicited_cancels;
mod upstream;
mod upstream_login;
mod venue_record;
mod worker;
mod worker_message;

pub use account_limits::Limits;
pub use config::{GatewayConfig, Listeners, VENUES_MAX, VenueConfig, WORKERS_MAX, parse};
pub use control::{
    ControlPath, ControlRequest, ControlResponse, ControlSocket, KillError, ProtocolErrors, UpstreamStatus,
    VenueCancels,
};
pub use outstanding::OutstandingLimits;
pub use server::{GatewayControl, GatewayServer, LocalGateway};
pub use weir_trading::Route;
