//! One worker's accounts: the messages emitted to them, when these may be sent, and how they are found to be resent.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, VecDeque},
    net::IpAddr,
    rc::{Rc, Weak},
    sync::Arc,
};

use weir_engine::{handoff::HandoffCounters, sync::Notify, time::Instant};
use weir_proto::{
    ouch::{self, ClientOrderId, Outbound, reject_reason},
    soup::{self, Name, SEQUENCED},
};
use weir_trading::{AccountId, NumberVerdict};

use super::{
    AccountPlace, Application, ApplicationKind, CutOff, Ended, LastEnding, NodeCounters, Recovery, Waiting,
    account::{Account, Slot},
    clock::Clock,
    events::{Budget, Budgets, Event, EventKind},
    records,
    retransmit::Mark,
    session::{End, Session},
    worker::OrdersState,
};
use crate::journal::{Journal, JournalError, JournalReader, Lsn};

/// Most concurrent reads of old messages on one worker; more wait for their turn.
pub(super) const REPLAYS_MAX: usize = 8;

/// One worker's accounts, as its application and its connections use them.
pub struct SessionStore {
    me: Weak<SessionStore>,
    pub(super) shared: Arc<OrdersState>,
    worker: usize,
    /// By account; empty for accounts of other workers.
    slots: Vec<Option<Box<Slot>>>,
    journal: Option<Rc<Journal>>,
    /// Weak, because the worker owns the application, which owns this.
    application: RefCell<Option<Weak<dyn Application>>>,
    /// Readers of journals that other workers continue, or that are not continued.
    readers: RefCell<BTreeMap<u16, Rc<JournalReader>>>,
    counters: Arc<NodeCounters>,
    clock: Clock,
    /// Buffer of the last frame, kept to reuse its memory.
    frame: Cell<Vec<u8>>,
    /// Journaled messages that are not durable yet, in the journal's order. The journal's limit bounds them.
    undurable: RefCell<VecDeque<Undurable>>,
    /// Accounts in one commit; kept to reuse its memory.
    touched: Cell<Vec<AccountId>>,
    /// Rate limits of events by kind, and of refused orders by reason: as many as there are reasons.
    budgets: Budgets,
    refusals: RefCell<BTreeMap<u16, Budget>>,
    /// Set when nothing can be acknowledged any more.
    failed: Cell<bool>,
    pub(super) draining: Cell<bool>,
    /// In a drain: the application emits nothing more.
    pub(super) settled: Cell<bool>,
    /// In a drain: the session has ended, and clients are informed.
    pub(super) is_over: Cell<bool>,
    pub(super) sessions_open: Cell<usize>,
    /// Reads of old messages in progress.
    pub(super) replays: Cell<usize>,
    pub(super) replay_ended: Notify,
    pub(super) session_left: Notify,
}

/// A message of a stream that waits for the journal.
#[derive(Clone, Copy, Debug)]
struct Undurable {
    lsn: Lsn,
    account: AccountId,
    /// Number of the next message, and its position in the buffer.
    end: Mark,
}

impl std::fmt::Debug for SessionStore {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SessionStore").field("worker", &self.worker).finish_non_exhaustive()
    }
}

impl SessionStore {
    /// Creates the accounts of one worker from the recovered state.
    pub(super) fn new(shared: Arc<OrdersState>, worker: usize, journal: Option<Rc<Journal>>) -> Rc<Self> {
        let slots = (0..shared.accounts.len())
            .map(|index| {
                let account = AccountId(index as u32);
                let is_own = shared.home_of(account) == worker;
                is_own.then(|| Box::new(Slot::new(account, &shared.recovery)))
            })
            .collect::<Vec<_>>();
        for slot in slots.iter().flatten() {
            slot.show(&shared.cells[slot.account.0 as usize]);
        }
        let store = Rc::new_cyclic(|me| Self {
            me: me.clone(),
            worker,
            slots,
            journal,
            application: RefCell::default(),
            readers: RefCell::default(),
            counters: Arc::clone(&shared.counters[worker]),
            clock: Clock::new(shared.config.wall_clock, shared.simulated),
            shared,
            frame: Cell::default(),
            undurable: RefCell::default(),
            touched: Cell::default(),
            budgets: Budgets::default(),
            refusals: RefCell::default(),
            failed: Cell::new(false),
            draining: Cell::new(false),
            settled: Cell::new(false),
            is_over: Cell::new(false),
            sessions_open: Cell::new(0),
            replays: Cell::new(0),
            replay_ended: Notify::default(),
            session_left: Notify::default(),
        });
        if let Some(journal) = &store.journal {
            let weak = Rc::downgrade(&store);
            journal.on_durable(Box::new(move |durable| {
                if let Some(store) = weak.upgrade() {
                    store.on_durable(durable);
                }
            }));
        }
        store
    }

    /// Appends one message to the stream of an account, which must be one of this worker's. It is sent when it is
    /// durable at the journal's level, or at once without a journal. Clients can request it again by its number.
    ///
    /// `upstream_sequence` is stored with the record for the application; 0 for none.
    ///
    /// # Panics
    /// When the account's home is another worker, or when the message does not fit into a frame: these are bugs of
    /// the application.
    pub fn emit(&self, account: AccountId, parts: &[&[u8]], upstream_sequence: u64) {
        let mut frame = self.frame.take();
        frame.clear();
        let payload_bytes = parts.iter().map(|part| part.len()).sum();
        frame.extend_from_slice(&soup::header(SEQUENCED, payload_bytes));
        parts.iter().for_each(|part| frame.extend_from_slice(part));
        self.append(account, &frame, upstream_sequence);
        self.frame.set(frame);
    }

    /// Encodes a message and appends it, as [`Self::emit`].
    pub fn emit_message(&self, account: AccountId, message: &Outbound) {
        let mut frame = self.frame.take();
        frame.clear();
        frame.extend_from_slice(&[0; soup::HEADER_BYTES]);
        message.encode(&mut frame);
        let header = soup::header(SEQUENCED, frame.len() - soup::HEADER_BYTES);
        frame[..soup::HEADER_BYTES].copy_from_slice(&header);
        self.append(account, &frame, 0);
        self.frame.set(frame);
    }

    /// Refuses an order.
    pub fn reject(&self, account: AccountId, user_ref_num: u32, reason: u16, client_order_id: ClientOrderId) {
        self.counters.count_reject(reason);
        self.tell_refused(account, user_ref_num, reason);
        let timestamp_ns = self.time_of_day_ns(self.now());
        self.emit_message(
            account,
            &Outbound::Rejected(ouch::Rejected { timestamp_ns, user_ref_num, reason, client_order_id }),
        );
    }

    /// Releases the number of a message that was ignored without using its number up.
    pub fn release_number(&self, account: AccountId, user_ref_num: u32) {
        let slot = self.slot(account);
        let mut numbers = slot.numbers.get();
        numbers.release_number(user_ref_num);
        slot.numbers.set(numbers);
        self.shared.cells[account.0 as usize].user_ref_num.set(numbers.last().into());
    }

    /// Any worker's account.
    #[inline]
    pub fn account(&self, account: AccountId) -> &AccountPlace {
        self.shared.accounts.at(account)
    }

    /// The account with this login name, case-insensitive.
    pub fn account_named(&self, name: &Name<6>) -> Option<AccountId> {
        self.shared.accounts.named(name)
    }

    /// The number of accounts, on all workers, with those that may be added.
    pub fn account_count(&self) -> usize {
        self.shared.accounts.len()
    }

    /// The home worker of an account.
    pub fn home_of(&self, account: AccountId) -> usize {
        self.shared.home_of(account)
    }

    /// This worker.
    pub fn worker(&self) -> usize {
        self.worker
    }

    /// The number of workers.
    pub fn workers(&self) -> usize {
        self.shared.workers
    }

    /// Whether an account of this worker has a connection.
    pub fn is_connected(&self, account: AccountId) -> bool {
        self.slot(account).state.borrow().session.is_some()
    }

    /// The last number accepted from an account of this worker.
    pub fn user_ref_num(&self, account: AccountId) -> u32 {
        self.slot(account).numbers.get().last()
    }

    /// Ends the connection of an account of this worker whose client sends many times what it may.
    pub fn disconnect(&self, account: AccountId) {
        self.cut_off(account, CutOff::Flooding);
    }

    /// Ends the connection of an account that was removed, if it has one.
    pub(crate) fn disconnect_removed(&self, account: AccountId) {
        self.cut_off(account, CutOff::Removed);
    }

    fn cut_off(&self, account: AccountId, reason: CutOff) {
        let session = self.slot(account).state.borrow().session.clone();
        if let Some(session) = session {
            session.end(End::CutOff(reason));
        }
    }

    /// The same for an operator; the client is informed. Returns whether there was a connection.
    pub(crate) fn disconnect_for_operator(&self, account: AccountId) -> bool {
        let session = self.slot(account).state.borrow().session.clone();
        session.inspect(|session| session.end(End::CutOff(CutOff::Operator))).is_some()
    }

    /// Records why an account is not logged in.
    pub(super) fn note_ending(&self, account: AccountId, what: LastEnding, address: Option<IpAddr>) {
        self.tick();
        self.shared.last_endings.note(account, Ended { what, at_ns: self.epoch_ns(), address });
    }

    /// The worker's journal; `None` at level `none`.
    pub fn journal(&self) -> Option<&Rc<Journal>> {
        self.journal.as_ref()
    }

    /// Journals a client's message as received. Returns the record's number, 0 without a journal. Nothing waits for
    /// it automatically: see [`Journal::committed`].
    pub fn log_inbound(&self, account: AccountId, raw: &[u8]) -> Lsn {
        let head = records::inbound_head(&self.account(account).name(), self.shared.generation, 0);
        self.journal_append(records::INBOUND, account.0, &[&head, raw])
    }

    /// Journals a client's message that is sent upstream: with the session, as the application names it, and the
    /// number there. As [`Self::log_inbound`].
    pub fn log_sent(&self, account: AccountId, raw: &[u8], session: u32, upstream: u32) -> Lsn {
        let head = records::inbound_head(&self.account(account).name(), self.shared.generation, upstream);
        self.journal_append(records::SENT, session, &[&head, raw])
    }

    /// Journals a client's message that is refused, with the reason in its answer: if a crash loses the answer, it
    /// can be sent again. As [`Self::log_inbound`].
    pub fn log_refused(&self, account: AccountId, raw: &[u8], reason: u16) -> Lsn {
        let head =
            records::inbound_head(&self.account(account).name(), self.shared.generation, reason.into());
        self.journal_append(records::REFUSED, account.0, &[&head, raw])
    }

    /// Journals a record of the application. Returns the record's number, 0 without a journal.
    pub fn log(&self, kind: ApplicationKind, session: u32, parts: &[&[u8]]) -> Lsn {
        self.journal_append(kind.number(), session, parts)
    }

    /// Whether so many bytes wait for the journal that no further message should be accepted.
    #[inline]
    pub fn is_congested(&self) -> bool {
        // Waiting for a journal that accepts nothing any more would never end.
        self.journal.as_ref().is_some_and(|journal| !journal.has_room() && !self.failed.get())
    }

    /// Whether cancels may be accepted although other messages may not.
    pub(crate) fn takes_cancels(&self) -> bool {
        !self.is_failed() && self.journal.as_ref().is_none_or(|journal| journal.has_reserve())
    }

    /// Waits until the journal has room, or has failed.
    pub fn room(&self) -> Waiting {
        match &self.journal {
            Some(journal) if !journal.has_room() && !self.is_failed() => {
                let journal = Rc::clone(journal);
                Box::pin(async move { journal.room().await })
            }
            _ => Box::pin(std::future::ready(())),
        }
    }

    /// Whether the journal has failed: messages emitted from now on are not sent.
    #[inline]
    pub fn is_failed(&self) -> bool {
        self.failed.get() || self.journal.as_ref().is_some_and(|journal| journal.is_failed())
    }

    /// The recovered state.
    pub fn recovered(&self) -> &Recovery {
        &self.shared.recovery
    }

    /// Reads the clock; everything until the next call has this time.
    #[inline]
    pub fn tick(&self) -> Instant {
        let now = self.clock.tick();
        if self.clock.take_stepped() {
            self.tell_clock_step();
        }
        now
    }

    /// The time of the last [`Self::tick`].
    #[inline]
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Nanoseconds since midnight UTC at this instant.
    #[inline]
    pub fn time_of_day_ns(&self, now: Instant) -> u64 {
        self.clock.time_of_day_ns(now)
    }

    /// This worker's counters.
    pub fn counters(&self) -> &NodeCounters {
        &self.counters
    }

    /// Adds the counters of this worker's port to those of the node.
    pub fn add_handoff(&self, counters: Arc<HandoffCounters>) {
        self.shared.add_handoff(counters);
    }

    /// Nanoseconds since 1970, at the last tick.
    pub(super) fn epoch_ns(&self) -> u64 {
        self.clock.epoch_ns(self.now())
    }

    /// A strong reference to this.
    pub(super) fn strong(&self) -> Option<Rc<SessionStore>> {
        self.me.upgrade()
    }

    /// A reader of another worker's journal.
    pub(super) fn reader(&self, worker: u16) -> Option<Rc<JournalReader>> {
        let (directory, _) = self.shared.config.active_journal()?;
        let mut readers = self.readers.borrow_mut();
        let open = || Rc::new(JournalReader::new(directory.clone(), worker));
        Some(Rc::clone(readers.entry(worker).or_insert_with(open)))
    }

    pub(super) fn set_application(&self, application: &Rc<dyn Application>) {
        *self.application.borrow_mut() = Some(Rc::downgrade(application));
    }

    /// The application, until the end of a drain.
    pub(super) fn application(&self) -> Option<Rc<dyn Application>> {
        self.application.borrow().as_ref().and_then(Weak::upgrade)
    }

    #[inline]
    pub(super) fn slot(&self, account: AccountId) -> &Slot {
        match self.slots.get(account.0 as usize) {
            Some(Some(slot)) => slot,
            _ => panic!("account {} does not live on worker {}", account.0, self.worker),
        }
    }

    /// The accounts of this worker.
    pub(super) fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().flatten().map(|slot| &**slot)
    }

    /// Judges the number of an enter or a replace.
    #[inline]
    pub(super) fn judge(&self, slot: &Slot, user_ref_num: u32) -> NumberVerdict {
        let mut numbers = slot.numbers.get();
        let verdict = numbers.judge(user_ref_num);
        slot.numbers.set(numbers);
        self.shared.cells[slot.account.0 as usize].user_ref_num.set(numbers.last().into());
        verdict
    }

    /// Answers an account query.
    pub(super) fn answer_query(&self, slot: &Slot) {
        let timestamp_ns = self.time_of_day_ns(self.now());
        let next_user_ref_num = slot.numbers.get().next();
        self.emit_message(slot.account, &Outbound::AccountQueryResponse { timestamp_ns, next_user_ref_num });
    }

    fn append(&self, account: AccountId, frame: &[u8], upstream_sequence: u64) {
        if self.failed.get() {
            // It will never be sent, and cannot be requested: storing it would be useless.
            return;
        }
        let slot = self.slot(account);
        let state = &mut *slot.state.borrow_mut();
        let sequence = state.retransmit.end().sequence;
        state.retransmit.push(frame);
        let end = state.retransmit.end();
        self.shared.cells[account.0 as usize].sequence_last.set(sequence);
        if self.journal.is_none() {
            state.durable = end;
            self.send_frame(slot, state, frame, end);
        } else {
            let head = records::sequenced_head(
                sequence,
                upstream_sequence,
                &self.account(account).name(),
                self.shared.generation,
            );
            let message = &frame[soup::HEADER_BYTES..];
            let parts = [&head[..], message];
            if let Some((lsn, position)) = self.append_record(records::SEQUENCED, account.0, &parts) {
                state.index.note(sequence, self.worker as u16, position);
                self.undurable.borrow_mut().push_back(Undurable { lsn, account, end });
            }
        }
        let keep = state.kept_from();
        state.retransmit.trim(self.shared.config.retained_bytes_max, keep);
    }

    fn journal_append(&self, kind: u8, session: u32, parts: &[&[u8]]) -> Lsn {
        if self.journal.is_none() {
            return 0;
        }
        self.append_record(kind, session, parts).map_or(Lsn::MAX, |(lsn, _)| lsn)
    }

    /// `None`: the journal has no room for it, now or earlier, and every client is informed.
    fn append_record(
        &self,
        kind: u8,
        session: u32,
        parts: &[&[u8]],
    ) -> Option<(Lsn, crate::journal::Position)> {
        if self.failed.get() {
            // One record is missing: no other may follow it.
            return None;
        }
        let time_ns = self.clock.epoch_ns(self.now());
        let outcome = self.journal.as_ref()?.append(kind, session, time_ns, parts);
        outcome.inspect_err(|error| self.fail(error)).ok()
    }

    /// Sends the frame that was appended last and ends at `end`, if its connection has received everything before it.
    #[inline]
    fn send_frame(&self, slot: &Slot, state: &Account, frame: &[u8], end: Mark) {
        let Some(session) = &state.session else { return };
        if !session.is_live() {
            self.check_backlog(slot, state);
            return;
        }
        if session.push(frame, self.now()) {
            session.set_next(end);
            self.count_sent(slot, 1, end.sequence - 1);
        } else {
            self.fall_behind(slot, session);
        }
    }

    /// Records up to `durable` are durable now: their messages may be sent.
    fn on_durable(&self, durable: Lsn) {
        let mut touched = self.touched.take();
        let mut undurable = self.undurable.borrow_mut();
        while let Some(first) = undurable.front().filter(|first| first.lsn <= durable) {
            let slot = self.slot(first.account);
            slot.state.borrow_mut().durable = first.end;
            if !slot.touched.replace(true) {
                touched.push(first.account);
            }
            undurable.pop_front();
        }
        drop(undurable);
        for account in touched.drain(..) {
            let slot = self.slot(account);
            slot.touched.set(false);
            self.send_durable(slot);
        }
        self.touched.set(touched);
        if let Some(error) = self.journal.as_ref().and_then(|journal| journal.failure()) {
            self.fail(&error);
        }
    }

    /// Sends messages that have become durable, if the connection has received everything before them.
    fn send_durable(&self, slot: &Slot) {
        let state = &*slot.state.borrow();
        let Some(session) = &state.session else { return };
        let (true, Some(next)) = (session.is_live(), session.next_buffered()) else {
            self.check_backlog(slot, state);
            return;
        };
        if next.sequence >= state.durable.sequence {
            return;
        }
        let messages = state.durable.sequence - next.sequence;
        let (first, second) = state.retransmit.between(next, state.durable);
        if session.push_both(first, second, self.now()) {
            session.set_next(state.durable);
            self.count_sent(slot, messages, state.durable.sequence - 1);
        } else {
            self.fall_behind(slot, session);
        }
    }

    /// Hands a connection that does not take what is sent to a separate task, which waits for it.
    pub(super) fn fall_behind(&self, slot: &Slot, session: &Rc<Session>) {
        self.shared.cells[slot.account.0 as usize].state.set(super::counters::AccountCells::REPLAYING);
        let Some(store) = self.strong() else { return };
        session.fall_behind(&store, slot.account);
    }

    /// Cuts off a connection with too many waiting bytes.
    fn check_backlog(&self, slot: &Slot, state: &Account) {
        let Some(session) = &state.session else { return };
        let Some(next) = session.next_buffered() else { return };
        let waiting = state.durable.offset.saturating_sub(next.offset);
        self.shared.cells[slot.account.0 as usize].queued_bytes.set(waiting);
        if waiting > self.shared.config.outbound_bytes_max as u64 {
            session.end(End::CutOff(CutOff::Slow));
        }
    }

    /// Counts messages handed to a connection, the last one with this number.
    #[inline]
    pub(super) fn count_sent(&self, slot: &Slot, messages: u64, last: u64) {
        self.counters.sent.add(messages);
        self.shared.cells[slot.account.0 as usize].sequence_sent.set(last);
    }

    /// The journal has failed, or did not take a record: every connection ends, and no client can log in any more.
    #[cold]
    pub(super) fn fail(&self, error: &JournalError) {
        if self.failed.replace(true) {
            return;
        }
        // A record that comes too late in a drain is not a disk failure.
        if !matches!(error, JournalError::Closed) {
            let text = format!("the journal has failed: {error}");
            self.shared
                .config
                .events
                .leave(Event::new(EventKind::JournalFailed, text).at_worker(self.worker));
        }
        if let Some(journal) = &self.journal {
            journal.counters().failed();
        }
        if let Some(application) = self.application() {
            application.on_journal_failed();
        }
        for slot in self.slots() {
            // The connection of the account being written to checks for itself.
            if let Ok(state) = slot.state.try_borrow()
                && let Some(session) = &state.session
            {
                session.end(End::CutOff(CutOff::JournalFailed));
            }
        }
    }

    /// Handles a client that broke the protocol: counts it, and leaves a line for operators.
    #[cold]
    pub(super) fn note_fault(&self, account: AccountId, label: &'static str) {
        self.shared.protocol_errors.note(account, label);
        let name = self.account(account).name();
        let text = || format!("{name} broke the protocol and is cut off: {label}");
        self.tell(EventKind::ProtocolBroken, || {
            Event::new(EventKind::ProtocolBroken, text()).of_account(name).because(label)
        });
    }

    /// Leaves an event of this worker, unless there were many of its kind shortly before.
    pub(super) fn tell(&self, kind: EventKind, event: impl FnOnce() -> Event) {
        self.tell_within(self.budgets.of(kind), kind, event);
    }

    /// The same with another budget than that of its kind.
    fn tell_within(&self, budget: &Budget, kind: EventKind, event: impl FnOnce() -> Event) {
        let times = (self.now().as_nanos(), kind.pace());
        let event = || event().at_worker(self.worker);
        if !budget.tell(&self.shared.config.events, times, event) {
            self.counters.lines_left_out.add(1);
        }
    }

    /// Reports a refused order: one of each reason in a second.
    #[cold]
    fn tell_refused(&self, account: AccountId, number: u32, reason: u16) {
        let (kind, label) = (EventKind::OrderRefused, reject_reason::name(reason));
        let event = || {
            let name = self.account(account).name();
            let text = format!("order {number} of {name} is refused with 0x{reason:04X} ({label})");
            Event::new(kind, text).of_account(name).because(label)
        };
        self.tell_within(self.refusals.borrow_mut().entry(reason).or_default(), kind, event);
    }

    /// Ignores a message with this number. Usually it is a retransmission, and need not be reported. With a number of
    /// a session that has ended it is not one: its client has started again at the first number, and would wait for
    /// answers forever.
    #[cold]
    pub(super) fn ignore(&self, account: AccountId, number: u32) {
        self.counters.duplicates_ignored.add(1);
        let slot = self.slot(account);
        if !(1..=slot.used_before).contains(&number) {
            return;
        }
        self.counters.numbers_used_before.add(1);
        self.shared.cells[account.0 as usize].numbers_used_before.add(1);
        let kind = EventKind::NumberUsedBefore;
        let event = || {
            let (name, why) = (self.account(account).name(), why_ignored(slot));
            let text = format!("{name} sends order number {number}, which {why}");
            Event::new(kind, text).of_account(name)
        };
        self.tell_within(&slot.repeats, kind, event);
        let session = slot.state.borrow().session.clone();
        if session.is_some_and(|session| session.note_ignored(number, self.now().as_nanos())) {
            self.tell_ignored(slot);
        }
    }

    /// Whether no journal of earlier starts contains this number of an account, although some contain higher ones:
    /// its message was lost before it had any effect. From now on it is known, because it is answered.
    #[cold]
    pub(super) fn take_lost(&self, account: AccountId, number: u32) -> bool {
        let slot = self.slot(account);
        if !slot.known.borrow_mut().fill(number) {
            return false;
        }
        let kind = EventKind::NumberLost;
        let event = || {
            let name = self.account(account).name();
            let text = format!(
                "{name} sends order number {number}, which no journal has although it has higher ones: it was never \
                 sent on, and is refused"
            );
            Event::new(kind, text).of_account(name)
        };
        self.tell_within(&slot.repeats, kind, event);
        true
    }

    /// Informs a client of an ignored number, if there is one to report: at once, or when its connection has received
    /// everything else and calls this again.
    #[cold]
    pub(super) fn tell_ignored(&self, slot: &Slot) {
        let state = slot.state.borrow();
        let Some(session) = state.session.as_ref().filter(|session| session.is_live()) else { return };
        let Some(number) = session.number_to_tell() else { return };
        let text = format!("order number {number} {}", why_ignored(slot));
        if self.say(session, text.as_bytes()) {
            session.clear_number_to_tell();
        } else {
            self.fall_behind(slot, session);
        }
    }

    #[cold]
    fn tell_clock_step(&self) {
        self.counters.clock_steps.add(1);
        for slot in self.slots() {
            self.tell_client(slot, b"the clock was stepped: times of orders jump");
        }
    }

    /// Sends a client a text that acknowledges nothing. If there is no room now, it is skipped.
    fn tell_client(&self, slot: &Slot, text: &[u8]) {
        if let Ok(state) = slot.state.try_borrow()
            && let Some(session) = &state.session
            && session.is_live()
        {
            self.say(session, text);
        }
    }

    /// Sends a debug packet. False: there is no room for it.
    fn say(&self, session: &Session, text: &[u8]) -> bool {
        let mut frame = Vec::new();
        soup::encode_frame(soup::DEBUG, text, &mut frame);
        session.push(&frame, self.now())
    }
}

/// The reason why a number of an ended session is ignored. It may have been used there, or skipped.
fn why_ignored(slot: &Slot) -> String {
    format!(
        "is not above {}, the last of an earlier session: it is ignored, and the next has to be above {}",
        slot.used_before,
        slot.numbers.get().last()
    )
}
