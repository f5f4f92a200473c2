//! The orders workload: sessions that log in over SoupBinTCP and trade in OUCH, and all checks of what comes back.
//!
//! [`spec`] is the specification. [`generator`] makes every order from the seed and writes its send time into it.
//! [`blotter`] keeps a client's view of its orders and balances their shares. [`trader`] chooses the next request of
//! an account and judges every message. [`session`] is the account's connection: login, replay, sequence.
//! [`workload`] connects them to the generator, [`account_task`] keeps an account connected and busy, and
//! [`round_robin`] passes the requests allowed in flight over the whole run from session to session. [`notes`]
//! contains the counts, [`outcome`] the orders' part of a report.
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
