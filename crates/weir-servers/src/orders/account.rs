//! A worker's state of one account.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use weir_engine::sync::Notify;
use weir_trading::{AccountId, TokenBucket, UserRefNums};

use super::{
    counters::AccountCells,
    events::Budget,
    known_numbers::KnownNumbers,
    recovery::Recovery,
    retransmit::{Mark, RetransmitBuffer},
    session::Session,
};
use crate::journal::Position;

/// Messages between two index entries: how many have to be read to find one.
pub(super) const INDEX_EVERY: u64 = 64;

/// One account on its home worker.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) account: AccountId,
    pub(super) numbers: Cell<UserRefNums>,
    /// The known numbers of earlier starts.
    pub(super) known: RefCell<KnownNumbers>,
    /// The highest number of ended sessions, and a rate limit for lines about a client that uses one of theirs again.
    pub(super) used_before: u32,
    pub(super) repeats: Budget,
    pub(super) state: RefCell<Account>,
    /// The bytes that it may still have read from journals. All bytes read count, not only those of its own messages,
    /// because a few messages may lie among gigabytes of others'. The limit belongs to the account and not to the
    /// connection, because a client that keeps requesting everything uses a new connection each time.
    pub(super) replay_bytes: Cell<TokenBucket>,
    /// Is on the list of accounts in a commit.
    pub(super) touched: Cell<bool>,
    /// The connection has ended.
    pub(super) vacated: Notify,
}

/// The stream of an account and its receiver.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) retransmit: RetransmitBuffer,
    /// The position behind the last message that may be sent.
    pub(super) durable: Mark,
    pub(super) index: Index,
    pub(super) session: Option<Rc<Session>>,
}

impl Slot {
    pub(super) fn new(account: AccountId, recovery: &Recovery) -> Self {
        let found = recovery.account(account);
        let retransmit = RetransmitBuffer::new(found.sequence + 1);
        Self {
            account,
            numbers: Cell::new(UserRefNums::new(found.user_ref_num)),
            known: RefCell::new(recovery.known_numbers(account)),
            used_before: recovery.used_before(account),
            repeats: Budget::default(),
            state: RefCell::new(Account {
                durable: retransmit.end(),
                retransmit,
                index: recovery.index(account),
                session: None,
            }),
            replay_bytes: Cell::new(TokenBucket::FULL),
            touched: Cell::new(false),
            vacated: Notify::default(),
        }
    }

    /// Shows the recovered state to other threads.
    pub(super) fn show(&self, cells: &AccountCells) {
        let last = self.state.borrow().retransmit.end().sequence - 1;
        cells.sequence_last.set(last);
        cells.sequence_sent.set(last);
        cells.user_ref_num.set(self.numbers.get().last().into());
    }
}

impl Account {
    /// The first message that has to stay in memory.
    #[inline]
    pub(super) fn kept_from(&self) -> Mark {
        match self.session.as_ref().and_then(|session| session.next_buffered()) {
            Some(next) if next.sequence < self.durable.sequence => next,
            _ => self.durable,
        }
    }
}

/// The positions of a stream's messages in journals: every 64th, and each one at which the journal changes. It grows
/// with the journal, by one byte per 3 messages.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    /// In order of the messages.
    entries: Vec<Entry>,
}

/// The position of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) sequence: u64,
    /// The worker whose journal it is.
    pub(super) worker: u16,
    pub(super) position: Position,
}

impl Index {
    /// Records a journaled message; later ones follow.
    #[inline]
    pub(super) fn note(&mut self, sequence: u64, worker: u16, position: Position) {
        if (sequence - 1).is_multiple_of(INDEX_EVERY)
            || self.entries.last().is_none_or(|last| last.worker != worker)
        {
            self.entries.push(Entry { sequence, worker, position });
        }
    }

    /// Entries in any order, from recovery. If there are several for one message, the last one counts.
    pub(super) fn from_entries(mut entries: Vec<Entry>) -> Self {
        entries.reverse();
        entries.sort_by_key(|entry| entry.sequence);
        entries.dedup_by_key(|entry| entry.sequence);
        Self { entries }
    }

    /// The entry at or before a message, and the message number of the next entry.
    pub(super) fn find(&self, sequence: u64) -> Option<(Entry, u64)> {
        let after = self.entries.partition_point(|entry| entry.sequence <= sequence);
        let entry = *self.entries.get(after.checked_sub(1)?)?;
        Some((entry, self.entries.get(after).map_or(u64::MAX, |next| next.sequence)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(offset: u64) -> Position {
        Position { segment: 1, offset }
    }

    #[test]
    fn every_64th_message_has_an_entry_and_each_that_changes_the_journal() {
        let mut index = Index::default();
        for sequence in 1..=200 {
            index.note(sequence, u16::from(sequence > 100), at(sequence * 10));
        }
        let found = |sequence| index.find(sequence).map(|(entry, next)| (entry.sequence, entry.worker, next));
        assert_eq!(index.entries.len(), 5);
        assert_eq!(found(1), Some((1, 0, 65)));
        assert_eq!(found(64), Some((1, 0, 65)));
        assert_eq!(found(100), Some((65, 0, 101)));
        assert_eq!(found(101), Some((101, 1, 129)));
        assert_eq!(found(5000), Some((193, 1, u64::MAX)));
        assert_eq!(found(0), None);
    }

    #[test]
    fn entries_of_several_journals_are_put_in_the_order_of_messages() {
        let entry = |sequence, worker| Entry { sequence, worker, position: at(sequence) };
        let index = Index::from_entries(vec![entry(129, 0), entry(1, 0), entry(65, 1), entry(129, 1)]);
        assert_eq!(index.find(70), Some((entry(65, 1), 129)));
        assert_eq!(index.find(130), Some((entry(129, 1), u64::MAX)), "the last that was found");
    }
}
