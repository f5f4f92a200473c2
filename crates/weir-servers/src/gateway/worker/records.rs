//! What a worker's journal has beside the messages of its clients: what the numbers in its records stand for, where its
//! sessions are, and who has answers of them.

use std::collections::BTreeSet;

use weir_proto::soup::Name;

use super::{Gateway, RECORD_ENDPOINT, RECORD_HOME, RECORD_SESSION, RECORD_STRAY, RECORD_VENUES};
use crate::gateway::{
    config::VENUES_MAX,
    upstream::Upstream,
    venue_record::{VenueRecord, endpoint_record, venues_record},
    worker_message::{of_session_key, session_record},
};

const _: () = assert!(VENUES_MAX <= u64::BITS as usize, "of each venue there is a bit");

impl Gateway {
    /// An upstream session was joined: after a restart it is asked for by name, and where it is.
    pub(in crate::gateway) fn log_session(&self, key: u32, epoch: u16, session: &Name<10>) {
        // Before it: at another address the sessions of the one before are left.
        self.log_endpoint(key);
        self.name_venues();
        self.store.log(RECORD_SESSION, key, &[&session_record(epoch, session)]);
    }

    /// A session is joined, or goes on: where the worker has logged in for it. Once in a start, before any order is
    /// sent there. Not earlier: what was never reached has nothing, and orders are still where they were.
    pub(in crate::gateway) fn log_endpoint(&self, key: u32) {
        let (_, venue) = of_session_key(key);
        let kept = self.endpoints_kept.get();
        let Some(endpoint) = self.common.endpoints.get(&(self.worker, venue)) else { return };
        if kept & 1 << venue == 0 {
            self.endpoints_kept.set(kept | 1 << venue);
            self.name_venues();
            self.store.log(RECORD_ENDPOINT, key, &[&endpoint_record(endpoint)]);
        }
    }

    /// A message of an exchange has no addressee, and somebody may have to settle what it says.
    pub(in crate::gateway) fn log_stray(&self, session: u32, sequence: u64, raw: &[u8]) {
        self.name_venues();
        self.store.log(RECORD_STRAY, session, &[&sequence.to_le_bytes(), raw]);
    }

    /// Before the first record of an order in a session: that it has answers for clients of this worker from here on.
    #[inline]
    pub(super) fn log_home(&self, upstream: &Upstream, home: u16) {
        if let Some(record) = upstream.note_home(home) {
            self.name_venues();
            self.store.log(RECORD_HOME, upstream.key, &[&record]);
        }
    }

    /// The same of orders of earlier starts: what the exchange has to say of them comes to where their clients are now.
    pub(in crate::gateway) fn log_homes(&self) {
        for upstream in &self.upstreams {
            let open: BTreeSet<u16> =
                upstream.outstanding.borrow().open_orders().map(|(origin, _)| origin.home).collect();
            open.into_iter().for_each(|home| self.log_home(upstream, home));
        }
    }

    /// Before the first record that names a session, or an order that is handed over: what its number of a venue stands
    /// for, which a configuration may change, and that this version has written it.
    #[inline]
    pub(super) fn name_venues(&self) {
        if !self.are_venues_named.replace(true) {
            let record = |name: &String| VenueRecord { name: name.clone() };
            let venues: Vec<VenueRecord> = self.common.venues_recorded.iter().map(record).collect();
            self.store.log(RECORD_VENUES, 0, &[&venues_record(&venues)]);
        }
    }
}
