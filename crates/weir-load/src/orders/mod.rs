//! The orders workload: sessions that log in over SoupBinTCP and trade in OUCH, and everything that is checked about
//! what comes back.
//!
//! [`spec`] says what is asked for. [`generator`] makes every order from the seed and writes its send time into it,
//! [`blotter`] keeps what a client knows of its orders and balances their shares, [`trader`] chooses the next request
//! of an account and judges every message, [`session`] is the account's connection: login, replay, sequence.
//! [`workload`] joins them to the generator, [`account_task`] keeps an account connected and busy, [`round_robin`]
//! passes what may be in flight over the whole run from session to session. [`notes`] is what is counted, [`outcome`]
//! the orders' part of a report.
//!
//! All but [`workload`], [`account_task`] and [`round_robin`] are pure.

pub(crate) mod account_task;
pub(crate) mod blotter;
pub(crate) mod generator;
pub mod notes;
pub(crate) mod outcome;
pub(crate) mod round_robin;
pub(crate) mod session;
pub mod spec;
#[cfg(test)]
mod tests;
pub(crate) mod trader;
pub(crate) mod workload;
