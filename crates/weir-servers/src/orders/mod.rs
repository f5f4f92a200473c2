//! The server's side of order sessions (SoupBinTCP with OUCH inside), shared by the exchange and the gateway.
//!
//! An account is a login name. It has one sequenced stream of messages, one rule for its order numbers and one home
//! worker: its place in the configuration modulo the number of workers. A connection logs in on the worker that
//! accepted it and moves to the home of its account, so that everything an account has is written by one thread and
//! nothing is locked. What the messages mean is the [`Application`]'s affair; what is sent, kept and sent again is the
//! [`SessionStore`]'s.
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
//! waiting. What the application emits is appended to the stream of its account, journaled if there is a journal, and,
//! once it is durable at the journal's level, copied into the output queue of the account's connection; everything that
//! was queued in one turn leaves in one send. An order costs no task, no timer and no allocation.
//!
//! What is bounded. Connections that have not logged in, in total, by address, and in time; logins that wait to be
//! verified; a frame of a client; what waits for one client ([`OrdersConfig::outbound_bytes_max`]) and how long it may
//! take nothing ([`OrdersConfig::stall`], [`OrdersConfig::stall_replay`]); what is kept in memory of a stream to be
//! sent again ([`OrdersConfig::retained_bytes_max`]): the rest is read from the journal, a piece at a time and not
//! faster than [`OrdersConfig::replay_bytes_per_second`]; without a journal it is gone, and who asks for it is told
//! that the session is not available.
//!
//! How connections end. A client that breaks the protocol is told how, in a debug packet, and cut off; so is one,
//! without a word, that is silent for too long or does not take what is sent. Its messages stay and can be asked for.
//! In a drain every client gets what there is for it and is let go; with a journal, the session goes on with the next
//! start, until it is ended on purpose ([`OrdersControl::end_session`]): then clients are told that it is over, and it
//! cannot be joined again. When the journal fails every client is told so, which is no answer to anything, and let go;
//! nobody is let in any more. When a worker panics the process ends.
//!
//! What it is not: it has no TLS (passwords cross the wire as they are), no orders, no book and no upstream.

mod account;
mod admission;
mod clock;
mod config;
pub(crate) mod config_file;
mod connection;
mod counters;
mod known_numbers;
mod lines;
mod password_verifier;
mod records;
mod recovery;
mod replay_reader;
mod replay_sender;
mod retransmit;
mod server;
mod session;
mod store;
mod worker;

use std::{future::Future, pin::Pin};

use weir_engine::time::Instant;
use weir_proto::ouch;
use weir_trading::AccountId;

pub use config::{ACCOUNTS_MAX, AccountConfig, OrdersConfig, accounts_named, demo_accounts};
pub use config_file::ConfigError;
pub use counters::NodeCounters;
pub use lines::Lines;
pub use password_verifier::{hash_password, is_password_hash};
pub use recovery::{
    AccountRecovery, OrdersRecoverError, Record, RecordKind, Recovery, recover, recover_with_removed,
};
pub use server::{LocalOrders, OrdersControl, OrdersServer};
pub use store::SessionStore;

pub(crate) use known_numbers::KnownNumbers;
pub(crate) use lines::Budget;
pub(crate) use worker::until_draining;

/// Kinds of journal records from here on are the application's own ([`SessionStore::log`]); those below are this
/// module's.
pub const RECORD_KIND_APPLICATION: u8 = 64;

/// A future that an application gives out.
pub type Waiting = Pin<Box<dyn Future<Output = ()>>>;

/// What runs on a worker behind its sessions: the exchange or the gateway. All calls come on the worker's thread, from
/// inside its runtime, and none may wait.
pub trait Application: 'static {
    /// A message of a client. Enters and replaces come with new numbers only: retransmissions are dropped before, and
    /// account queries are answered before. `raw` is the whole message as it came, `now` the time of its receive.
    fn on_message(&self, account: AccountId, message: ouch::Inbound<'_>, raw: &[u8], now: Instant);

    /// A message of a client that is dealt with before it comes here: an account query, which is answered whatever this
    /// says, or one that is refused, with this reason if there is one: it is not supported, or a restart has lost it
    /// ([`OrdersConfig::journals_each_number`]).
    fn on_other(&self, account: AccountId, now: Instant) -> Result<(), u16> {
        let _ = (account, now);
        Ok(())
    }

    /// Whether more may be read from this client. Asked before each message.
    fn is_ready(&self, account: AccountId) -> bool {
        let _ = account;
        true
    }

    /// Waits until [`Self::is_ready`] is likely; it is asked again afterwards.
    fn ready(&self, account: AccountId) -> Waiting {
        let _ = account;
        Box::pin(std::future::ready(()))
    }

    /// A client has logged in.
    fn on_login(&self, account: AccountId) {
        let _ = account;
    }

    /// A client's connection has ended, for whatever reason. Whether its orders are to be cancelled is
    /// [`AccountConfig::cancel_on_disconnect`], see [`SessionStore::account`].
    fn on_disconnect(&self, account: AccountId) {
        let _ = account;
    }

    /// Whether [`Self::on_disconnect`] emits. Then it is called when the journal has room.
    fn emits_on_disconnect(&self) -> bool {
        true
    }

    /// The worker's journal has failed: nothing that is emitted from now on is sent.
    fn on_journal_failed(&self) {}

    /// The server drains: no more messages of clients will come. Tasks of the application have to end soon.
    fn on_drain(&self) {}

    /// Waits, in a drain, until the application has emitted what it is going to emit; then clients are let go. The
    /// drain's limit holds for this too.
    fn settled(&self) -> Waiting {
        Box::pin(std::future::ready(()))
    }
}

/// Why a connection was ended by us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutOff {
    /// Another connection of the account has logged in.
    TakenOver,
    /// The client did not take what was sent.
    Slow,
    /// The application does not want it any more ([`SessionStore::disconnect`]).
    Unwanted,
    /// The journal has failed: nothing can be acknowledged any more.
    JournalFailed,
}
