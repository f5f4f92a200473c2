//! The server's side of order sessions (SoupBinTCP with OUCH inside), shared by the exchange and the gateway.
//!
//! An account is a login name. It has one sequenced stream of messages, one sequence of order numbers and one home
//! worker: its index in the configuration modulo the number of workers. A connection logs in on the worker that
//! accepted it and moves to the home of its account. So one thread writes everything of an account, and no locks are
//! needed. The [`Application`] interprets the messages; the [`SessionStore`] sends, stores and resends them.
//!
//! ```no_run
//! use std::rc::Rc;
//! use weir_engine::{Config, serve::ServerConfig};
//! use weir_servers::orders::{Application, SessionStore, OrdersConfig, OrdersServer, demo_accounts};
//!
//! fn application(store: Rc<SessionStore>) -> std::io::Result<Rc<dyn Application>> {
//! #   let _ = store;
//!     // …
//! #   Err(std::io::Error::other("an example"))
//! }
//!
//! let server = ServerConfig::new(Config::default(), "127.0.0.1:9101".parse()?);
//! let server = OrdersServer::start(server, OrdersConfig::new(demo_accounts(10)), application)?;
//! server.join();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! How it works. A connection receives a lease, cuts it into messages and hands each to the application without
//! waiting. A message that the application emits is appended to the stream of its account, journaled if there is a
//! journal, and copied into the output queue of the account's connection once it is durable at the journal's level;
//! everything queued in one turn leaves in one send. An order costs no task, no timer and no allocation.
//!
//! Limits. Connections that have not logged in, in total, by address, and in time; logins that wait to be verified; a
//! frame of a client; the bytes that wait for one client ([`OrdersConfig::outbound_bytes_max`]) and how long it may
//! take none ([`OrdersConfig::stall`], [`OrdersConfig::stall_replay`]); the part of a stream that stays in memory to
//! be resent ([`OrdersConfig::retained_bytes_max`]): the rest is read from the journal, a piece at a time and not
//! faster than [`OrdersConfig::replay_bytes_per_second`]; without a journal it is gone, and a client that requests it
//! gets the answer that the session is not available.
//!
//! How connections end. A client that breaks the protocol gets a debug packet with the error and is cut off; a client
//! that is silent for too long, or does not take what is sent, is cut off without a message. Its messages stay and
//! can be requested. In a drain every client gets everything that waits for it and is disconnected; with a journal,
//! the session continues with the next start, until it is ended explicitly ([`OrdersControl::end_session`]): then
//! clients are informed that it is over, and it cannot be joined again. When the journal fails every client is
//! informed, which acknowledges nothing, and disconnected; no client can log in any more. When a worker panics the
//! process ends.
//!
//! What it does not contain: TLS (passwords cross the wire in plain text), orders, a book, an upstream.

mod account;
mod accounts;
mod admission;
mod client_message;
mod clock;
mod config;
pub(crate) mod config_file;
mod connection;
mod connection_events;
mod counters;
mod described;
mod events;
mod known_numbers;
mod last_endings;
mod login_attempts;
mod password_verifier;
mod records;
mod recovery;
mod replay_reader;
mod replay_sender;
mod retransmit;
mod server;
mod session;
mod session_files;
mod store;
pub(crate) mod stream_index;
mod worker;

use std::{future::Future, pin::Pin};

use weir_engine::time::Instant;
use weir_trading::AccountId;

pub use accounts::AccountPlace;
pub use client_message::ClientMessage;
pub use config::{ACCOUNTS_MAX, AccountConfig, OrdersConfig, accounts_named, demo_accounts};
pub use config_file::{ConfigError, ConfigErrors};
pub use counters::NodeCounters;
pub use described::{Described, FieldValue, is_answer};
pub use events::{Event, EventKind, Events};
pub use last_endings::{Ended, LastEnding};
pub use login_attempts::{LoginLimits, LoginLock};
pub use password_verifier::{hash_password, is_password_hash};
pub use recovery::{
    AccountRecovery, Obstacle, OrdersRecoverError, Record, RecordKind, Recovery, recover,
    recover_with_removed,
};
pub use server::{JournalsWatch, LocalOrders, OrdersControl, OrdersServer};
pub use session_files::{SessionFiles, session_files};
pub use store::SessionStore;

#[cfg(test)]
pub(crate) use described::test_payloads;
pub(crate) use described::{
    MESSAGES, MessageOf, SESSION_KINDS, UpstreamPlace, describe_session_record, message_of, of_outbound,
};
pub(crate) use events::Budgets;
#[cfg(test)]
pub(crate) use events::Pace;
pub(crate) use known_numbers::KnownNumbers;
pub(crate) use recovery::{Collector, checkpoint_of_start, recover_at_checkpoint, write_checkpoint};
pub(crate) use worker::{session_name, until_draining};

/// Kinds of journal records from here on belong to the application ([`SessionStore::log`]); lower ones belong to this
/// module.
pub const RECORD_KIND_APPLICATION: u8 = 64;

/// The kind of a record of the application. Only the list of its kinds makes one, so that each has a description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApplicationKind(u8);

impl ApplicationKind {
    /// The kind with this number.
    ///
    /// # Panics
    /// When the number belongs to this module.
    pub(crate) const fn new(kind: u8) -> Self {
        assert!(kind >= RECORD_KIND_APPLICATION, "the kind is not the application's");
        Self(kind)
    }

    /// The number in a record's header.
    pub const fn number(self) -> u8 {
        self.0
    }
}

/// A future that an application returns.
pub type Waiting = Pin<Box<dyn Future<Output = ()>>>;

/// The application behind a worker's sessions: the exchange or the gateway. All calls come on the worker's thread,
/// from inside its runtime, and must not block.
pub trait Application: 'static {
    /// A message of a client. Enters and replaces come with new numbers only: retransmissions are dropped before, and
    /// account queries are answered before. `now` is the time of its receive.
    fn on_message(&self, account: AccountId, message: &ClientMessage<'_>, now: Instant);

    /// A message that is handled before it reaches the application: an account query, which is answered regardless of
    /// the result, or a message that is refused, with the returned reason if there is one. It is refused because it
    /// is not supported, or because a restart has lost it ([`OrdersConfig::journals_each_number`]).
    fn on_other(&self, account: AccountId, now: Instant) -> Result<(), u16> {
        let _ = (account, now);
        Ok(())
    }

    /// Whether more may be read from this client. It is called before each message.
    fn is_ready(&self, account: AccountId) -> bool {
        let _ = account;
        true
    }

    /// Waits until [`Self::is_ready`] is likely; it is called again afterwards.
    fn ready(&self, account: AccountId) -> Waiting {
        let _ = account;
        Box::pin(std::future::ready(()))
    }

    /// A client has logged in.
    fn on_login(&self, account: AccountId) {
        let _ = account;
    }

    /// A client's connection has ended, for any reason. [`AccountConfig::cancel_on_disconnect`] says whether to
    /// cancel its orders, see [`SessionStore::account`].
    fn on_disconnect(&self, account: AccountId) {
        let _ = account;
    }

    /// Whether [`Self::on_disconnect`] emits. If so, it is called when the journal has room.
    fn emits_on_disconnect(&self) -> bool {
        true
    }

    /// The worker's journal has failed: messages emitted from now on are not sent.
    fn on_journal_failed(&self) {}

    /// The server drains: no more messages from clients will come. Tasks of the application have to end soon.
    fn on_drain(&self) {}

    /// In a drain, waits until the application has emitted its last messages; then clients are disconnected. The
    /// drain's limit applies to this too: a session in which clients only receive does not end if it is exceeded.
    fn settled(&self) -> Waiting {
        Box::pin(std::future::ready(()))
    }
}

/// Why the server ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutOff {
    /// Another connection of the account has logged in.
    TakenOver,
    /// The client did not take the messages sent to it.
    Slow,
    /// The client sent many times what it may ([`SessionStore::disconnect`]).
    Flooding,
    /// The account was removed from the configuration.
    Removed,
    /// An operator asked for it.
    Operator,
    /// The journal has failed: nothing can be acknowledged any more.
    JournalFailed,
}
