//! Counters of a worker's sessions and its application. One thread writes, any thread reads, and there are no locks
//! in the path of orders.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use weir_proto::ouch::reject_reason;
use weir_record::orders::NodeStats;
use weir_trading::AccountId;

use crate::counter::Counter;

/// The label for a number of a session that has ended.
pub(super) const NUMBER_USED_BEFORE: &str = "number_used_before";

/// Counts by label, for rare events: the cost of a lock is negligible. There are as many entries as labels.
#[derive(Debug, Default)]
struct Labelled(Mutex<BTreeMap<&'static str, u64>>);

impl Labelled {
    fn add(&self, label: &'static str, count: u64) {
        *self.lock().entry(label).or_default() += count;
    }

    fn merge_into(&self, sum: &mut BTreeMap<String, u64>) {
        for (label, count) in self.lock().iter() {
            *sum.entry((*label).to_owned()).or_default() += count;
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counters of one worker, on separate cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct NodeCounters {
    pub(super) received: Counter,
    pub(super) sent: Counter,
    pub(super) orders: Counter,
    pub(super) handed_off: Counter,
    pub(super) sessions_open: Counter,
    pub(super) duplicates_ignored: Counter,
    pub(super) heartbeat_timeouts: Counter,
    pub(super) slow_consumers: Counter,
    pub(super) cancels_on_disconnect: Counter,
    pub(super) clock_steps: Counter,
    /// Orders with a number of a session that has ended.
    pub(super) numbers_used_before: Counter,
    /// Events that were left out because of their rate.
    pub(super) lines_left_out: Counter,
    rejects: Labelled,
    protocol_errors: Labelled,
    logins: Labelled,
}

impl NodeCounters {
    /// Counts data messages that the application received on its own connections (a gateway's upstream). Call it only
    /// on the worker's thread.
    #[inline]
    pub fn add_received(&self, count: u64) {
        self.received.add(count);
    }

    /// Counts data messages that the application sent on its own connections. Call it only on the worker's thread.
    #[inline]
    pub fn add_sent(&self, count: u64) {
        self.sent.add(count);
    }

    /// Counts orders that the application handed to another worker. Call it only on the worker's thread.
    #[inline]
    pub fn add_handed_off(&self, count: u64) {
        self.handed_off.add(count);
    }

    /// Counts orders that were cancelled because their owner's connection ended. Call it only on the worker's thread.
    pub fn add_cancels_on_disconnect(&self, count: u64) {
        self.cancels_on_disconnect.add(count);
    }

    /// Counts a refused order, by a reason of OUCH.
    pub fn count_reject(&self, reason: u16) {
        self.rejects.add(reject_reason::name(reason), 1);
    }

    /// Counts a connection that was ended for breaking the protocol.
    pub fn count_protocol_error(&self, label: &'static str) {
        self.protocol_errors.add(label, 1);
    }

    pub(super) fn count_login(&self, result: &'static str) {
        self.logins.add(result, 1);
    }

    /// Adds this worker's counts to a snapshot.
    pub(super) fn merge_into(&self, stats: &mut NodeStats) {
        stats.received += self.received.get();
        stats.sent += self.sent.get();
        stats.orders += self.orders.get();
        stats.sessions_open += self.sessions_open.get();
        stats.duplicates_ignored += self.duplicates_ignored.get();
        stats.heartbeat_timeouts += self.heartbeat_timeouts.get();
        stats.slow_consumer_disconnects += self.slow_consumers.get();
        stats.cancels_on_disconnect += self.cancels_on_disconnect.get();
        self.rejects.merge_into(&mut stats.rejects);
        self.protocol_errors.merge_into(&mut stats.protocol_errors);
        self.logins.merge_into(&mut stats.logins);
        // These end no connection, and may be many: they use no lock.
        for (kind, counter) in
            [("clock_step", &self.clock_steps), (NUMBER_USED_BEFORE, &self.numbers_used_before)]
        {
            if counter.get() > 0 {
                *stats.protocol_errors.entry(kind.into()).or_default() += counter.get();
            }
        }
    }
}

/// Entries of [`ProtocolErrors`]; beyond that, errors are counted by kind only.
pub(super) const PROTOCOL_ERRORS_MAX: usize = 256;

/// How often each account has sent invalid or unsupported messages: rare, so behind a lock.
#[derive(Debug, Default)]
pub(super) struct ProtocolErrors(Mutex<BTreeMap<(AccountId, &'static str), u64>>);

impl ProtocolErrors {
    pub(super) fn note(&self, account: AccountId, kind: &'static str) {
        let mut errors = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if errors.len() < PROTOCOL_ERRORS_MAX || errors.contains_key(&(account, kind)) {
            *errors.entry((account, kind)).or_default() += 1;
        }
    }

    /// By account and kind.
    pub(super) fn list(&self) -> Vec<(AccountId, &'static str, u64)> {
        let errors = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        errors.iter().map(|((account, kind), count)| (*account, *kind, *count)).collect()
    }
}

/// The values of one account that other threads may see; its home worker writes it. The next account belongs to
/// another worker: so each has separate cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct AccountCells {
    pub(super) state: Counter,
    pub(super) sequence_sent: Counter,
    pub(super) sequence_last: Counter,
    pub(super) user_ref_num: Counter,
    pub(super) queued_bytes: Counter,
    /// Orders with a number of a session that has ended.
    pub(super) numbers_used_before: Counter,
}

impl AccountCells {
    pub(super) const AWAY: u64 = 0;
    pub(super) const LIVE: u64 = 1;
    pub(super) const REPLAYING: u64 = 2;

    /// The state in words.
    pub(super) fn state_name(&self) -> &'static str {
        match self.state.get() {
            Self::LIVE => "live",
            Self::REPLAYING => "replaying",
            _ => "away",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_kept_by_account_and_kind_up_to_a_maximum() {
        let errors = ProtocolErrors::default();
        for account in (0..1000).chain([3]) {
            errors.note(AccountId(account), "ouch_length");
        }
        let list = errors.list();
        assert_eq!((list.len(), list[3]), (PROTOCOL_ERRORS_MAX, (AccountId(3), "ouch_length", 2)));
    }

    #[test]
    fn counts_of_two_workers_add_up_by_label() {
        let (first, second) = (NodeCounters::default(), NodeCounters::default());
        first.add_received(2);
        second.add_received(3);
        first.count_login("accepted");
        second.count_login("accepted");
        second.count_login("refused");
        second.count_reject(reject_reason::DESTINATION_CLOSED);
        let mut stats = NodeStats::default();
        first.merge_into(&mut stats);
        second.merge_into(&mut stats);
        assert_eq!(stats.received, 5);
        assert_eq!(stats.logins, BTreeMap::from([("accepted".into(), 2), ("refused".into(), 1)]));
        assert_eq!(stats.rejects.values().sum::<u64>(), 1);
        assert!(stats.protocol_errors.is_empty(), "{:?}", stats.protocol_errors);
    }

    #[test]
    fn what_breaks_the_protocol_and_ends_no_connection_is_counted_with_what_does() {
        let counters = NodeCounters::default();
        counters.numbers_used_before.add(3);
        counters.count_protocol_error("ouch_length");
        let mut stats = NodeStats::default();
        counters.merge_into(&mut stats);
        let expected = [(NUMBER_USED_BEFORE.into(), 3), ("ouch_length".into(), 1)];
        assert_eq!(stats.protocol_errors, BTreeMap::from(expected));
    }
}
