//! The drop copy: firms receive what was executed, refused and broken for their accounts, and send nothing.
//!
//! It is a second server of order sessions ([`crate::orders`]) with its own thread and its own journal. Its accounts
//! are the firms. Its application reads the journals of the gateway's workers behind them, and emits a copy of each
//! message that a firm gets. So logins, locks, replays, heartbeats, take-overs, bounds for slow readers and the end of
//! a session are those of clients, and no part of it is in the path of an order: a worker of the gateway only notes
//! how far its journal is durable.
//!
//! A message is copied when it is durable, so that no firm sees what a crash could undo. The journals of several
//! workers have no common order that a later start would find again. Therefore the order is chosen once, when a
//! message is copied, and kept: the number of a copy is its number in the drop copy's journal. It is sent when it is
//! durable there. Each record of that journal says which record of the gateway it copies ([`place`]), so a start goes
//! on behind the last one, without a gap and without a repetition.
//!
//! What it does not do: it copies no order and no cancel, and a reload does not change it.

mod config;
mod copier;
mod firms;
mod journal_ends;
mod place;
mod server;

pub(super) use config::DropCopyTable;
pub use config::{DropCopyConfig, FIRMS_MAX, FirmConfig};
pub(super) use journal_ends::JournalEnds;
pub(super) use server::DropCopyControl;
pub use server::DropCopyServer;
