//! The records in a worker's journal besides its clients' messages: the meaning of the numbers in its records, the
//! addresses of its sessions, and the homes of the clients that have answers in them.

use std::collections::BTreeSet;

use weir_proto::soup::Name;
use weir_trading::Origin;

use super::{Gateway, RECORD_ENDPOINT, RECORD_HOME, RECORD_SESSION, RECORD_STRAY, RECORD_VENUES};
use crate::gateway::{
    config::VENUES_MAX,
    upstream_session::Numbered,
    venue_record::{Endpoint, VenueRecord, endpoint_record, venues_record},
    worker_message::{of_session_key, session_record},
};
use crate::journal::Lsn;

const _: () = assert!(VENUES_MAX <= u64::BITS as usize, "of each venue there is a bit");

impl Gateway {
    /// Records that an upstream session was joined: after a restart it is requested by name, at its address.
    pub(in crate::gateway) fn log_session(&self, key: u32, epoch: u16, session: &Name<10>) {
        // Written first: at another address the sessions of the former one are left.
        self.log_endpoint(key);
        self.name_venues();
        self.store.log(RECORD_SESSION, key, &[&session_record(epoch, session)]);
    }

    /// Records where the worker has logged in, when it joins a session or continues one. Written once per start,
    /// before any order is sent there. Not earlier: an address that was never reached has no orders, and they are
    /// still where they were.
    pub(in crate::gateway) fn log_endpoint(&self, key: u32) {
        let (_, venue) = of_session_key(key);
        let kept = self.endpoints_kept.get();
        let endpoints = self.endpoints.borrow();
        let Some(endpoint) = endpoints.get(venue) else { return };
        if kept & 1 << venue == 0 {
            self.endpoints_kept.set(kept | 1 << venue);
            self.name_venues();
            self.store.log(RECORD_ENDPOINT, key, &[&endpoint_record(endpoint)]);
        }
    }

    /// From the next login on the worker logs in there.
    pub(in crate::gateway) fn set_endpoint(&self, venue: usize, endpoint: Endpoint) {
        self.endpoints_kept.set(self.endpoints_kept.get() & !(1 << venue));
        if let Some(place) = self.endpoints.borrow_mut().get_mut(venue) {
            *place = endpoint;
        }
    }

    /// Records a message of an exchange without an addressee, which somebody may have to settle.
    pub(in crate::gateway) fn log_stray(&self, session: u32, sequence: u64, raw: &[u8]) {
        self.name_venues();
        self.store.log(RECORD_STRAY, session, &[&sequence.to_le_bytes(), raw]);
    }

    /// Records a message about an order that leaves by an upstream session, with the order's number there.
    #[inline]
    pub(in crate::gateway) fn log_sent(
        &self,
        key: u32,
        origin: &Origin,
        raw: &[u8],
        numbered: Numbered,
    ) -> Lsn {
        self.name_venues();
        self.log_home(key, numbered.home);
        self.store.log_sent(origin.account, raw, numbered.session, numbered.number)
    }

    /// Written before the first record of an order in a session: from here on it has answers for clients of this
    /// worker.
    #[inline]
    fn log_home(&self, key: u32, home: Option<[u8; 12]>) {
        if let Some(record) = home {
            self.name_venues();
            self.store.log(RECORD_HOME, key, &[&record]);
        }
    }

    /// The same for orders of earlier starts: the exchange's messages about them go to their clients' current homes.
    pub(in crate::gateway) fn log_homes(&self) {
        for upstream in &self.upstreams {
            let mut session = upstream.session.borrow_mut();
            let open: BTreeSet<u16> =
                session.outstanding().open_orders().map(|(origin, _)| origin.home).collect();
            open.into_iter().for_each(|home| self.log_home(upstream.key, session.note_home(home)));
        }
    }

    /// Written before the first record that names a session, or an order that is handed over: the meaning of its
    /// venue numbers, which a configuration may change, and that this version has written it.
    #[inline]
    pub(super) fn name_venues(&self) {
        if !self.are_venues_named.replace(true) {
            let record = |name: &String| VenueRecord { name: name.clone() };
            let venues: Vec<VenueRecord> = self.common.venues_recorded.iter().map(record).collect();
            self.store.log(RECORD_VENUES, 0, &[&venues_record(&venues)]);
        }
    }
}
