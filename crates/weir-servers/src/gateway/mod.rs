//! The order gateway: clients in front, exchanges behind, and new order numbers between them.
//!
//! Each worker has the sessions of its own clients ([`crate::orders`]) and one session with each venue. A client's
//! order passes the kill switch and the limits and goes to the worker of its route (its own, unless work is handed
//! off deliberately). There it gets its upstream number when it is sent. The answer comes back the same way, and the
//! client's home worker appends it to the client's stream. So each client's messages stay in order, and every number,
//! stream and journal has one writer.
//!
//! The journal contains: every order with its upstream number before it is sent, every answer with its upstream
//! sequence number before the client gets it, and every change by `weir ctl`. After a restart, a gateway asks each
//! exchange for the messages after the last answer in the journal, and resends unanswered messages with the same
//! numbers: the exchange ignores those it knows. If the exchange has begun another session meanwhile, the orders of
//! the previous one expire, and each is reported to its client once; none of them is sent again.
//!
//! The queues are bounded: unanswered orders and waiting bytes for each upstream session, beyond which orders are
//! refused and cancels pass; and messages between workers that are not taken: while there are any, the clients that
//! send that way, and the exchanges, are not read.
//!
//! What it does not do: it keeps no book, and it does not send an order to another venue when one is down: that order
//! is refused.

mod absences;
mod account_limits;
mod audit;
mod backoff;
mod checkpoints;
mod commands;
mod config;
mod control;
mod controls;
mod counters;
mod day;
mod described;
mod drop_copy;
mod hop_latency;
mod kill_switch;
mod limit_sources;
mod listing_pages;
mod listings;
mod metrics;
mod notices;
mod operator_settings;
mod order_id_timestamp;
mod order_owners;
mod orders_of_other_workers;
mod outstanding;
mod positions;
mod pre_trade_checks;
mod queries;
mod record_kinds;
mod recovery;
mod reference_prices;
mod reload;
mod reloading;
mod server;
#[cfg(test)]
mod simulated_days;
#[cfg(test)]
mod test_messages;
mod undelivered_bounds;
mod unreachable_orders;
mod unsolicited_cancels;
mod upstream;
mod upstream_session;
mod venue_record;
mod wire;
mod worker;
mod worker_message;

pub use account_limits::Limits;
pub use checkpoints::checkpoint_of_start;
pub use config::{GatewayConfig, Listeners, VENUES_MAX, VenueConfig, WORKERS_MAX, parse};
pub use control::{
    AwayAccount, ControlPath, ControlRequest, ControlResponse, ControlSocket, LockedLogin, ProtocolErrors,
    UpstreamStatus,
};
pub use day::{DayConfig, DayStatus};
pub use described::{describe, record_names};
pub use drop_copy::{DropCopyConfig, DropCopyServer, FIRMS_MAX, FirmConfig};
pub use kill_switch::{KillError, VenueCancels};
pub use limit_sources::{LimitOrigin, LimitStatus};
pub use listing_pages::CancelReport;
pub use listings::{Cursor, ExposureRow, NEVER_SENT, OrderFilter, OrderRow, Page, PositionRow, ROWS_MAX};
pub use outstanding::OutstandingLimits;
pub use reloading::ReadConfig;
pub use server::{GatewayControl, GatewayServer, LocalGateway};
pub use weir_trading::Route;
pub use wire::{Flow, WireMessage, WireMessages};
