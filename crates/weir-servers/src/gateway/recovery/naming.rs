//! The numbers of venues in the records from a start on.

use super::{Session, SessionId};
use crate::gateway::{
    unsolicited_cancels::Expiry,
    worker_message::{pack_sequence, session_key},
};

/// The naming of venues in records from now on.
pub(super) struct Naming<'a> {
    /// All venues that the journals name.
    all: &'a [String],
    /// The configured venues, followed by others that are needed.
    pub(super) venues: Vec<String>,
    /// In the next session of its client an order's number is another order: nobody is informed.
    is_over: bool,
}

impl<'a> Naming<'a> {
    /// The first venues are configured. `is_over`: all orders are of sessions with clients that have ended, and order
    /// numbers begin with 1 again.
    pub(super) fn new(all: &'a [String], configured: usize, is_over: bool) -> Self {
        Self { all, venues: all[..configured].to_vec(), is_over }
    }

    /// Adds the expired orders of a session.
    pub(super) fn add(
        &mut self,
        (worker, venue): SessionId,
        session: &Session,
        expiries: Vec<Expiry>,
        to: &mut Vec<(u64, Expiry)>,
    ) {
        if expiries.is_empty() || self.is_over {
            return;
        }
        let name = &self.all[venue];
        let number = self.venues.iter().position(|known| known == name).unwrap_or_else(|| {
            self.venues.push(name.clone());
            self.venues.len() - 1
        });
        let of = pack_sequence(session_key(worker, number), session.resume.epoch, 0);
        to.extend(expiries.into_iter().map(|expiry| (of, expiry)));
    }
}
