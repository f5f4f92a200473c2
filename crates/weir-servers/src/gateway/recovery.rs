//! Recovers a gateway's state from the journals of earlier starts: orders in flight, the answers that clients have,
//! and the changes made at run time.

pub(super) mod checkpoint;
mod client_sessions;
mod naming;

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use foldhash::HashMap;
use weir_proto::{
    ouch::{ClientOrderId, Inbound, Outbound, Symbol, reject_reason},
    soup::Name,
};
use weir_trading::{AccountId, Origin, Restored, WhenFull};

use super::{
    config::VENUES_MAX,
    controls::{Change, Controls},
    outstanding::{OutstandingLimits, OutstandingOrders},
    positions::{Executed, ExecutedShares, Positions},
    unreachable_orders::{Stranded, Why, left_behind},
    unsolicited_cancels::Expiry,
    upstream_session::Resume,
    venue_record::{Endpoint, Venues, of_endpoint_record, of_venues_record},
    worker::{RECORD_CONTROL, RECORD_ENDPOINT, RECORD_HOME, RECORD_SESSION, RECORD_VENUES, Symbols},
    worker_message::{Reject, of_home, of_sent_key, of_session_key, of_session_record, unpack_sequence},
};
use crate::orders::{ClientMessage, KnownNumbers, Record, RecordKind};

use client_sessions::ClientSessions;
use naming::Naming;

/// When and with which number a message was sent.
#[derive(Clone, Copy)]
struct Sent {
    /// The upstream number of the order.
    number: u32,
    origin: Origin,
    resend_until_ns: u64,
}

/// One moment on both clocks: ages are measured by the wall clock, which continues while no process runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// Nanoseconds since 1970.
    pub(super) wall_ns: u64,
    /// Nanoseconds of the engine's clock.
    pub(super) engine_ns: u64,
}

impl Moment {
    /// Until when a message sent at this wall clock time may be resent, on the engine's clock; 0 if not any more. A
    /// time in the future counts as age zero.
    fn resend_until_ns(self, sent_wall_ns: u64, age_max_ns: u64) -> u64 {
        if self.is_open() {
            return checkpoint::open_resend_ns(sent_wall_ns);
        }
        let age_ns = self.wall_ns.saturating_sub(sent_wall_ns);
        age_max_ns.checked_sub(age_ns).map_or(0, |left_ns| self.engine_ns.saturating_add(left_ns))
    }
}

/// An order: its account and its number there.
pub(super) type Key = (u32, u32);

/// A worker and a venue.
type SessionId = (usize, usize);

/// Answers by their orders.
type Answers = BTreeMap<Key, Vec<SentReport>>;

/// A report about an order, as sent to its client.
#[derive(Clone, Copy)]
struct SentReport {
    message: Outbound,
    /// Sent by the gateway itself, which has ended the order.
    is_end: bool,
}

impl SentReport {
    /// Restores it in the outstanding orders.
    fn restore(&self, outstanding: &mut OutstandingOrders, (account, user_ref_num): (AccountId, u32)) {
        if self.is_end {
            outstanding.restore_end(account, user_ref_num);
        } else {
            outstanding.restore_answer(account, &self.message);
        }
    }
}

/// An unanswered order that its client's worker has journaled.
struct Unsent {
    client_order_id: ClientOrderId,
    /// The reason of its refusal. None: it was handed to the sending worker, whose journal shows whether it was sent.
    reason: Option<u16>,
    /// An order without any other record was certainly not sent. If false, it may also have been ignored: an earlier
    /// version, which wrote the record, did not refuse replaces of ended orders, and kept no record of them.
    is_certain: bool,
}

/// One upstream session, from the journals.
struct Session {
    outstanding: OutstandingOrders,
    /// Orders that have no room until answers to earlier ones are read, and the messages that follow them, in order.
    later: VecDeque<(Sent, Vec<u8>)>,
    resume: Resume,
    /// By epoch and journal: the last message of this session whose answers it contains for its clients.
    kept: BTreeMap<(u16, u16), u64>,
    /// By epoch, journal and account: the last message of it whose answers the client has.
    delivered: HashMap<(u16, u16, AccountId), u64>,
    /// Epochs that have begun. In journals of an earlier version an epoch is one byte, and wraps around.
    begun: BTreeSet<u16>,
}

impl Session {
    fn new(limits: OutstandingLimits) -> Self {
        Self {
            outstanding: OutstandingOrders::new(1, limits),
            later: VecDeque::new(),
            resume: Resume::default(),
            kept: BTreeMap::new(),
            delivered: HashMap::default(),
            begun: BTreeSet::new(),
        }
    }

    /// From here on there are answers for clients of this journal's worker, after the message `before`: it has none
    /// of them until it shows some, regardless of other clients' answers and of earlier starts.
    fn expect_answers(&mut self, (epoch, journal, before): (u16, u16, u64)) {
        let kept = self.kept.entry((epoch, journal)).or_insert(before);
        *kept = before.min(*kept);
    }

    /// Adds a message that was sent; an order with the answers that were read before it. False: there is no room.
    fn add(&mut self, sent: Sent, message: &ClientMessage<'_>, early: &mut Answers) -> bool {
        let Sent { number, origin, resend_until_ns } = sent;
        if !message.is_order() {
            self.outstanding.restore_passed(origin.account, message);
            return true;
        }
        if !self.outstanding.restore(number, origin, message, resend_until_ns) {
            return false;
        }
        let order = (origin.account, origin.user_ref_num);
        for report in early.remove(&(order.0.0, order.1)).unwrap_or_default() {
            report.restore(&mut self.outstanding, order);
        }
        true
    }

    /// Adds a message behind the waiting ones, or at once if there is room.
    fn take(&mut self, sent: Sent, message: &ClientMessage<'_>, early: &mut Answers) {
        self.catch_up(early);
        if !self.later.is_empty() || !self.add(sent, message, early) {
            self.later.push_back((sent, message.raw().to_vec()));
        }
    }

    /// Adds waiting messages as long as there is room.
    fn catch_up(&mut self, early: &mut Answers) {
        while let Some((sent, raw)) = self.later.pop_front() {
            // It was decoded before it had to wait.
            let Ok(message) = ClientMessage::decode(&raw) else { continue };
            if !self.add(sent, &message, early) {
                self.later.push_front((sent, raw));
                return;
            }
        }
    }

    /// Every record has been read: waiting orders are added now if earlier ones have ended.
    fn finish_orders(&mut self, early: &mut Answers) {
        loop {
            let left = self.later.len();
            self.catch_up(early);
            self.outstanding.sweep();
            if self.later.len() == left {
                return;
            }
        }
    }

    /// The worker logs in elsewhere: earlier orders stay in the former session, which is returned if there are any.
    /// Messages from there are no answers to the new session, even if it has the same name. Answers of sessions there
    /// may already have been read, from another worker's journal.
    fn leave(&mut self, limits: OutstandingLimits) -> Option<Self> {
        let mut next = Self::new(limits);
        next.resume.epoch = self.resume.epoch;
        next.kept = std::mem::take(&mut self.kept);
        next.delivered = std::mem::take(&mut self.delivered);
        next.begun = std::mem::take(&mut self.begun);
        let former = std::mem::replace(self, next);
        (former.outstanding.open() > 0 || !former.later.is_empty()).then_some(former)
    }

    /// Call it when everything has been read. `homes`: the workers of the clients that it has answers for.
    fn conclude(&mut self, homes: impl Iterator<Item = usize>, is_empty: bool) {
        // Numbers of former sessions have no meaning in this one.
        let epoch = self.resume.epoch;
        self.kept.retain(|(of, _), _| *of == epoch);
        for ((_, _, account), sequence) in self.delivered.iter().filter(|((of, _, _), _)| *of == epoch) {
            let delivered = self.resume.delivered.entry(*account).or_default();
            *delivered = (*sequence).max(*delivered);
        }
        // Each journal has its clients' answers without a gap; the one that is furthest behind decides. A journal
        // that has lost every answer is found by the records of the sending worker, or because one of its clients has
        // an open order or is one that the worker sends for now.
        let of_open: BTreeSet<usize> =
            self.outstanding.open_orders().map(|(origin, _)| usize::from(origin.home)).collect();
        let feeding =
            homes.chain(of_open).map(|home| self.kept.get(&(epoch, home as u16)).copied().unwrap_or(0));
        let kept = feeding.chain(self.kept.values().copied()).min().unwrap_or(0);
        // If there is no record or the session was never joined, the exchange's earlier messages are not requested.
        let is_new = is_empty || self.resume.session.is_none();
        self.resume.next = if is_new { 0 } else { kept + 1 };
        let heard = self.resume.delivered.values().copied().max();
        self.resume.heard = heard.filter(|_| !is_new).unwrap_or(0);
    }

    /// The open orders, with their terms.
    fn open(&self, orders: &HashMap<Key, Restored>) -> Vec<(AccountId, Restored)> {
        let restored = |(origin, shares): (Origin, Option<u32>)| {
            let Origin { account, user_ref_num, .. } = origin;
            let order = orders.get(&(account.0, user_ref_num))?;
            let original = self.outstanding.original_of(account, user_ref_num);
            Some((account, Restored { shares: shares.unwrap_or(order.shares), original, ..*order }))
        };
        self.outstanding.open_orders().filter_map(restored).collect()
    }

    /// The open orders that cannot continue, with the reason from `why`.
    fn stranded(&self, venue: &str, why: impl Fn(Key) -> Option<Why>) -> Vec<Stranded> {
        let stranded = |(origin, _): (Origin, Option<u32>)| {
            let Origin { account, user_ref_num, .. } = origin;
            let why = why((account.0, user_ref_num))?;
            Some(Stranded { account, user_ref_num, venue: venue.to_owned(), why })
        };
        self.outstanding.open_orders().filter_map(stranded).collect()
    }

    /// A journal shows that another session begins: earlier orders stay in this one, which is returned if there are
    /// any. Answers in this session may still be read.
    fn begin_anew(
        &mut self,
        (epoch, name): (u16, Name<10>),
        journal: u16,
        limits: OutstandingLimits,
    ) -> Option<Self> {
        let is_first = self.resume.session.replace(name).is_none();
        let before = std::mem::replace(&mut self.resume.epoch, epoch);
        let comes_again = !self.begun.insert(epoch);
        if is_first || before == epoch {
            return None;
        }
        // Earlier records with this epoch are of the former session with the same number. In other journals that is
        // so if there was one: its records are older by the full range of epochs, so differences between the
        // journals' clocks do not matter.
        let is_former = |of: u16, by: u16| of == epoch && (comes_again || by == journal);
        self.kept.retain(|(of, by), _| !is_former(*of, *by));
        self.delivered.retain(|(of, by, _), _| !is_former(*of, *by));
        let mut next = Self::new(limits);
        next.resume = self.resume.clone();
        next.kept = std::mem::take(&mut self.kept);
        next.delivered = std::mem::take(&mut self.delivered);
        next.begun = std::mem::take(&mut self.begun);
        let mut former = std::mem::replace(self, next);
        former.resume.epoch = before;
        (former.outstanding.open() > 0 || !former.later.is_empty()).then_some(former)
    }
}

/// Processes records in the order of their journals.
pub(super) struct Recovering<'c> {
    workers: usize,
    /// Accounts from this number on are no longer configured.
    configured: usize,
    symbols: &'c Symbols,
    limits: Vec<OutstandingLimits>,
    /// The configured venues, in order, followed by others that the journals name.
    venues: Vec<String>,
    /// By journal: the venues by their numbers in the following records. None: as configured.
    numbers: HashMap<u16, Vec<usize>>,
    /// By worker and venue: where the worker has logged in, according to its journal, and where it will log in.
    endpoints: BTreeMap<SessionId, Endpoint>,
    endpoints_now: BTreeMap<SessionId, Endpoint>,
    /// Journals in which all records from here on were written by this version.
    certain: HashSet<u16>,
    /// By worker and venue: the configured ones, and others whose orders are in the journals.
    sessions: BTreeMap<SessionId, Session>,
    /// By worker and venue: sessions that were followed by others, with orders whose end has not been read.
    former: Vec<(SessionId, Session)>,
    now: Moment,
    positions: Positions,
    /// Orders that may never have been sent.
    unsent: BTreeMap<Key, Unsent>,
    /// Orders that are refused in their client's stream without a record of its worker. The worker that they were
    /// handed to may have a record, and its journal may be read later.
    refused_in_stream: HashSet<Key>,
    /// By account: orders that were sent, without an earlier record of another worker that they were handed over.
    /// Such a record may be read later. If a replace that had no effect used a number, and a later order with it was
    /// handed over and lost, the number counts as sent here too: the client has no answer to that order.
    sent_first: HashMap<AccountId, KnownNumbers>,
    /// By account: the last of its orders that was sent.
    last_sent: HashMap<AccountId, u32>,
    /// Answers to orders that are not among the outstanding ones yet.
    early: Answers,
    /// Account numbers by folded name, for changes.
    accounts: &'c dyn Fn(&str) -> Option<AccountId>,
    controls: Controls,
    is_empty: bool,
    clients: ClientSessions,
}

/// The initial state of a gateway's workers.
pub(super) struct Recovered {
    /// By upstream session: worker times venues.
    pub(super) sessions: Vec<(OutstandingOrders, Resume)>,
    /// The controls in force.
    pub(super) controls: Controls,
    /// Orders whose clients wait for an answer that nothing else will give.
    pub(super) unsent: Vec<(AccountId, Reject)>,
    /// Orders that are open, or may be.
    pub(super) open: Vec<(AccountId, Restored)>,
    /// The executions of each account.
    pub(super) executed: HashMap<AccountId, Executed>,
    /// Their executed shares.
    pub(super) executed_shares: ExecutedShares,
    /// See [`Positions::prices`].
    pub(super) prices: Vec<(Symbol, u64)>,
    /// Open orders that cannot continue with this configuration.
    pub(super) stranded: Vec<Stranded>,
    /// Ended orders whose clients were not informed; each with the key of its session.
    pub(super) expired: Vec<(u64, Expiry)>,
    /// The venues that the numbers in these keys stand for: the configured ones, followed by others.
    pub(super) venues: Vec<String>,
}

impl Recovered {
    /// Accounts from this number on are no longer configured and have no open orders: their state waits for a start
    /// that has them.
    pub(super) fn leave_removed(&mut self, configured: usize) {
        let is_there = |account: AccountId| (account.0 as usize) < configured;
        self.sessions.iter_mut().for_each(|(outstanding, _)| outstanding.leave_accounts(is_there));
        self.unsent.retain(|(account, _)| is_there(*account));
        self.open.retain(|(account, _)| is_there(*account));
        self.executed.retain(|account, _| is_there(*account));
        self.executed_shares.positions.retain(|position| is_there(position.account));
        self.executed_shares.unattributed.retain(|(account, _)| is_there(*account));
        self.expired.retain(|(_, expiry)| is_there(expiry.origin.account));
    }

    /// Orders that are open in a session of another worker than the one that now sends for their accounts, with that
    /// worker.
    pub(super) fn elsewhere(
        &self,
        venues: usize,
        sender: impl Fn(AccountId) -> u16,
    ) -> Vec<(AccountId, u32, u16)> {
        let mut found = Vec::new();
        for (index, (outstanding, _)) in self.sessions.iter().enumerate() {
            let worker = (index / venues) as u16;
            let of_session =
                outstanding.open_orders().map(|(origin, _)| (origin.account, origin.user_ref_num));
            let elsewhere = of_session.filter(|(account, _)| sender(*account) != worker);
            found.extend(elsewhere.map(|(account, number)| (account, number, worker)));
        }
        found
    }

    /// Whether an upstream session has an open order of another worker's client: sent when the route, or the number
    /// of workers, was different.
    pub(super) fn has_orders_of_others(&self, venues: usize) -> bool {
        let mut sessions = self.sessions.iter().enumerate();
        sessions.any(|(index, (outstanding, _))| outstanding.has_orders_of_others(index / venues))
    }
}

impl<'c> Recovering<'c> {
    pub(super) fn new(
        workers: usize,
        venues: &[(String, OutstandingLimits)],
        symbols: &'c Symbols,
        accounts: &'c dyn Fn(&str) -> Option<AccountId>,
        controls: Controls,
        now: Moment,
    ) -> Self {
        let limits: Vec<OutstandingLimits> = venues.iter().map(|(_, limits)| *limits).collect();
        let places = (0..workers).flat_map(|worker| (0..limits.len()).map(move |venue| (worker, venue)));
        Self {
            workers,
            configured: usize::MAX,
            symbols,
            sessions: places.map(|place| (place, Session::new(limits[place.1]))).collect(),
            limits,
            venues: venues.iter().map(|(name, _)| name.clone()).collect(),
            numbers: HashMap::default(),
            endpoints: BTreeMap::new(),
            endpoints_now: BTreeMap::new(),
            certain: HashSet::new(),
            former: Vec::new(),
            now,
            positions: Positions::default(),
            unsent: BTreeMap::new(),
            refused_in_stream: HashSet::new(),
            sent_first: HashMap::default(),
            last_sent: HashMap::default(),
            early: BTreeMap::new(),
            accounts,
            controls,
            is_empty: true,
            clients: ClientSessions::default(),
        }
    }

    /// This many accounts are configured; records of others have higher numbers.
    pub(super) fn of_accounts(self, configured: usize) -> Self {
        Self { configured, ..self }
    }

    /// Workers log in here: orders that they have sent elsewhere cannot be reached.
    pub(super) fn with_endpoints(self, endpoints_now: BTreeMap<SessionId, Endpoint>) -> Self {
        Self { endpoints_now, ..self }
    }

    /// Processes one record.
    pub(super) fn take(&mut self, record: &Record<'_>) {
        self.is_empty = false;
        if self.is_of_ended_session(record) {
            return;
        }
        match record.kind {
            RecordKind::Inbound { account, upstream, raw } => {
                let Ok(message) = ClientMessage::decode(raw) else { return };
                self.inbound(record, (account, upstream), &message);
            }
            RecordKind::Refused { account, reason, raw } => {
                let Ok(message) = ClientMessage::decode(raw) else { return };
                self.refused(account, reason, &message);
            }
            RecordKind::Sequenced { account, upstream_sequence, message, .. } => {
                let message = Outbound::decode(message).ok().map(|(message, _)| message);
                if let Some(message) = &message {
                    self.positions.note_execution((record.t_ns, record.generation), account, message);
                }
                self.sequenced(record.worker, account, upstream_sequence, message);
            }
            RecordKind::Sent { account, session, upstream, raw } => {
                let (key, epoch) = of_sent_key(session);
                let Ok(message) = ClientMessage::decode(raw) else { return };
                self.note_sent(account, &message);
                if let Some(place) = self.place_of(record.worker, key) {
                    self.sent(((place, epoch), record.t_ns), (account, upstream), &message);
                }
            }
            RecordKind::Application { kind: RECORD_SESSION, session, payload } => {
                if let Some(place) = self.place_of(record.worker, session)
                    && let Some(begun) = of_session_record(payload)
                {
                    let limits = self.limits_of(place.1);
                    let former = self.session(place).begin_anew(begun, record.worker, limits);
                    self.former.extend(former.map(|former| (place, former)));
                }
            }
            RecordKind::Application { kind: RECORD_HOME, session, payload } => {
                if let (Some(place), Some(home)) = (self.place_of(record.worker, session), of_home(payload)) {
                    self.session(place).expect_answers(home);
                }
            }
            RecordKind::Application { kind: RECORD_VENUES, payload, .. } => {
                if let Some(venues) = of_venues_record(payload) {
                    self.name_venues(record.worker, venues);
                }
            }
            RecordKind::Application { kind: RECORD_ENDPOINT, session, payload } => {
                if let (Some(place), Some(endpoint)) =
                    (self.place_of(record.worker, session), of_endpoint_record(payload))
                {
                    self.log_in(place, endpoint);
                }
            }
            RecordKind::Application { kind: RECORD_CONTROL, payload, .. } => {
                if let Ok(change) = serde_json::from_slice::<Change>(payload) {
                    self.change(record.t_ns, &change);
                }
            }
            RecordKind::Application { .. } => {}
        }
    }

    /// Sets the meaning of venue numbers from here on in a journal.
    fn name_venues(&mut self, journal: u16, venues: Venues) {
        if venues.is_certain {
            self.certain.insert(journal);
        } else {
            self.certain.remove(&journal);
            // It is unknown where that version has logged in.
            self.endpoints.retain(|(worker, _), _| *worker != usize::from(journal));
        }
        let names = venues.names.into_iter().take(VENUES_MAX);
        let numbers: Vec<usize> = names.map(|name| self.venue(name)).collect();
        self.numbers.insert(journal, numbers);
    }

    /// Records that a worker has logged in here, and nowhere else from then on.
    fn log_in(&mut self, place: SessionId, endpoint: Endpoint) {
        let before = self.endpoints.get(&place);
        let has_changed = before.is_some_and(|before| endpoint.change_from(before).is_some());
        self.endpoints.insert(place, endpoint);
        if has_changed {
            let limits = self.limits_of(place.1);
            let former = self.session(place).leave(limits);
            self.former.extend(former.map(|former| (place, former)));
        }
    }

    /// The worker and the venue of a session key in a record of this journal.
    fn place_of(&self, journal: u16, key: u32) -> Option<SessionId> {
        let (worker, number) = of_session_key(key);
        let venue = match self.numbers.get(&journal) {
            Some(numbers) => *numbers.get(number)?,
            None => Some(number).filter(|number| *number < self.limits.len())?,
        };
        Some((worker, venue))
    }

    /// The number of a venue in this recovery.
    fn venue(&mut self, name: String) -> usize {
        let known = self.venues.iter().position(|own| *own == name);
        known.unwrap_or_else(|| {
            self.venues.push(name);
            self.venues.len() - 1
        })
    }

    fn session(&mut self, place: SessionId) -> &mut Session {
        let limits = self.limits_of(place.1);
        self.sessions.entry(place).or_insert_with(|| Session::new(limits))
    }

    fn limits_of(&self, venue: usize) -> OutstandingLimits {
        self.limits.get(venue).copied().unwrap_or_default()
    }

    fn inbound(&mut self, record: &Record<'_>, order: (AccountId, u32), message: &ClientMessage<'_>) {
        let (account, upstream) = order;
        let worker = usize::from(record.worker);
        let Some(number) = message.new_number() else { return };
        if upstream == 0 {
            if self.sent_first.get(&account).is_some_and(|sent| sent.has(number)) {
                return;
            }
            let is_enter = matches!(message.inbound(), Inbound::Enter(..));
            let is_certain = is_enter || self.certain.contains(&record.worker);
            let unsent = Unsent { client_order_id: message.client_order_id(), reason: None, is_certain };
            // The worker that it was handed to may have refused it.
            self.unsent.entry((account.0, number)).or_insert(unsent);
            return;
        }
        self.note_sent(account, message);
        if let Some(venue) = self.venue_of(worker, account, message.inbound()) {
            self.sent((((worker, venue), 0), record.t_ns), (account, upstream), message);
        }
    }

    fn refused(&mut self, account: AccountId, reason: u16, message: &ClientMessage<'_>) {
        let Some(number) = message.new_number() else { return };
        let key = (account.0, number);
        if !self.refused_in_stream.remove(&key) {
            let client_order_id = message.client_order_id();
            let unsent = Unsent { client_order_id, reason: Some(reason), is_certain: true };
            self.unsent.insert(key, unsent);
        }
    }

    /// Records that a client's message was sent.
    fn note_sent(&mut self, account: AccountId, message: &ClientMessage<'_>) {
        let Some(number) = message.new_number() else { return };
        let last = self.last_sent.entry(account).or_default();
        *last = number.max(*last);
        let key = (account.0, number);
        if self.unsent.get(&key).is_some_and(|unsent| unsent.reason.is_none()) {
            self.unsent.remove(&key);
        } else {
            self.sent_first.entry(account).or_default().add(number);
        }
    }

    /// The venue through which a worker sent its own client's order, if the record does not contain it: an earlier
    /// version wrote the record, with the routes that are configured now.
    fn venue_of(&self, worker: usize, account: AccountId, message: &Inbound<'_>) -> Option<usize> {
        match message {
            _ if self.limits.len() == 1 => Some(0),
            Inbound::Enter(enter, _) => self.symbols.route(enter.symbol),
            Inbound::Replace(replace, _) => {
                let original = replace.original_user_ref_num;
                let mut own = self.sessions.range((worker, 0)..(worker + 1, 0));
                own.find(|(_, session)| session.outstanding.knows(account, original))
                    .map(|((_, venue), _)| *venue)
            }
            Inbound::Cancel(_) | Inbound::Modify(_) | Inbound::AccountQuery => None,
        }
    }

    fn sent(
        &mut self,
        ((place, epoch), t_ns): ((SessionId, u16), u64),
        (account, number): (AccountId, u32),
        message: &ClientMessage<'_>,
    ) {
        let user_ref_num = message.user_ref_num();
        self.positions.sent((account.0, user_ref_num), message.inbound());
        let home = (account.0 as usize % self.workers) as u16;
        let origin = Origin { account, user_ref_num, home, received_ns: 0 };
        let resend_until_ns = self.now.resend_until_ns(t_ns, self.limits_of(place.1).resend_age_max_ns);
        self.session(place);
        let is_it = |session: &Session| session.resume.epoch == epoch;
        let Some(session) = session_of(&mut self.sessions, &mut self.former, place, is_it) else { return };
        session.take(Sent { number, origin, resend_until_ns }, message, &mut self.early);
    }

    /// Records that a client has a message of an exchange. Returns its place, and its number in the session there.
    fn note_heard(
        &mut self,
        worker: u16,
        account: AccountId,
        upstream_sequence: u64,
    ) -> Option<(SessionId, u64)> {
        let (key, epoch, sequence) = unpack_sequence(upstream_sequence);
        let place = self.place_of(worker, key).filter(|_| upstream_sequence != 0)?;
        let session = self.session(place);
        // Zero: the gateway sent it, not the exchange.
        if sequence > 0 {
            let delivered = session.delivered.entry((epoch, worker, account)).or_default();
            *delivered = sequence.max(*delivered);
            let kept = session.kept.entry((epoch, worker)).or_default();
            *kept = sequence.max(*kept);
        }
        Some((place, sequence))
    }

    /// `message`: none if it cannot be decoded.
    fn sequenced(
        &mut self,
        worker: u16,
        account: AccountId,
        upstream_sequence: u64,
        message: Option<Outbound>,
    ) {
        let number = message.as_ref().and_then(Outbound::user_ref_num);
        if let Some(number) = number
            && let Some(Outbound::Accepted(_) | Outbound::Rejected(_) | Outbound::Replaced(_)) = message
        {
            let key = (account.0, number);
            let is_refused_here = self.unsent.remove(&key).is_some_and(|unsent| unsent.reason.is_some());
            if upstream_sequence == 0 && !is_refused_here {
                self.refused_in_stream.insert(key);
            }
        }
        if upstream_sequence == 0 {
            return;
        }
        let Some((place, sequence)) = self.note_heard(worker, account, upstream_sequence) else { return };
        let (Some(number), Some(message)) = (number, message) else { return };
        let report = SentReport { message, is_end: sequence == 0 };
        let is_it = |session: &Session| session.outstanding.knows(account, number);
        let Some(session) = session_of(&mut self.sessions, &mut self.former, place, is_it) else { return };
        if session.outstanding.knows(account, number) {
            report.restore(&mut session.outstanding, (account, number));
            if !session.outstanding.knows(account, number) {
                self.positions.orders.remove(&(account.0, number));
            }
        } else if usize::from(worker) != place.0 || self.has_later(place) {
            self.early.entry((account.0, number)).or_default().push(report);
        }
    }

    /// Whether a current or former session at a place has orders waiting for room.
    fn has_later(&self, place: SessionId) -> bool {
        let of_place = self.former.iter().filter(|(of, _)| *of == place).map(|(_, former)| former);
        of_place.chain(self.sessions.get(&place)).any(|session| !session.later.is_empty())
    }

    fn change(&mut self, t_ns: u64, change: &Change) {
        let name = match change {
            Change::Kill { account: name, .. }
            | Change::Limits { account: name, .. }
            | Change::LimitValues { account: name, .. } => name,
            Change::References { prices } => return self.positions.priced(t_ns, prices),
            Change::Day(_) => return self.controls.apply(None, change, t_ns),
        };
        let account = name.as_deref().map(self.accounts);
        // An account that is no longer configured has nothing to change.
        if account != Some(None) {
            self.controls.apply(account.flatten(), change, t_ns);
        }
    }

    /// Returns the initial state of the workers. `feeds` says for which homes an upstream session has answers.
    /// `gives_up`: orders that cannot continue with this configuration expire.
    pub(super) fn finish(mut self, feeds: impl Fn(usize, usize) -> bool, gives_up: bool) -> Recovered {
        let executed_shares = self.positions.executed_shares();
        let Self { workers, limits, mut sessions, mut unsent, last_sent, mut early, controls, .. } = self;
        let (configured, is_over) = (self.configured, self.clients.are_over());
        let orders = &self.positions.orders;
        // The order in which the workers' journals were read does not matter.
        unsent.retain(|(account, number), unsent| {
            let last = last_sent.get(&AccountId(*account));
            unsent.is_certain || last.is_none_or(|last| number > last)
        });
        let mut naming = Naming::new(&self.venues, limits.len(), is_over);
        let mut expired = Vec::new();
        for (place, mut session) in self.former {
            session.finish_orders(&mut early);
            naming.add(place, &session, session.outstanding.expiries(), &mut expired);
        }
        let mut stranded = Vec::new();
        for ((worker, venue), session) in &mut sessions {
            session.finish_orders(&mut early);
            let place = (*worker, *venue);
            let endpoints = self.endpoints.get(&place).zip(self.endpoints_now.get(&place));
            if let Some(why) = endpoints.and_then(|(before, now)| now.change_from(before)) {
                let expiries = session.outstanding.expiries();
                stranded.extend(expiries.iter().map(|it| left_behind(it.origin, &self.venues[*venue], &why)));
                if gives_up {
                    naming.add(place, session, expiries, &mut expired);
                }
                session.leave(limits.get(*venue).copied().unwrap_or_default());
            }
            session.conclude((0..workers).filter(|home| feeds(*worker, *home)), self.is_empty);
            // For these it is unknown whether they are open.
            if limits.get(*venue).is_some_and(|limits| limits.when_full == WhenFull::ForgetOldest) {
                if is_over {
                    session.leave_orders(limits[*venue]);
                }
                continue;
            }
            let why = |key: Key| match orders.get(&key) {
                _ if is_over => Some(Why::Session),
                _ if *worker >= workers => Some(Why::Worker(*worker)),
                _ if *venue >= limits.len() => Some(Why::Venue),
                _ if key.0 as usize >= configured => Some(Why::Account),
                Some(Restored { symbol, .. }) if self.symbols.route(*symbol) != Some(*venue) => {
                    Some(Why::Route(*symbol))
                }
                _ => None,
            };
            let found = session.stranded(&self.venues[*venue], why);
            if gives_up {
                let orders = found.iter().map(|it| (it.account, it.user_ref_num));
                let expiries = session.outstanding.give_up(orders);
                naming.add((*worker, *venue), session, expiries, &mut expired);
            }
            stranded.extend(found);
        }
        let open = sessions.values().flat_map(|session| session.open(orders)).collect();
        sessions.retain(|(worker, venue), _| *worker < workers && *venue < limits.len());
        Recovered {
            sessions: sessions.into_values().map(|session| (session.outstanding, session.resume)).collect(),
            controls,
            unsent: unsent.into_iter().map(refusal).collect(),
            open,
            prices: self.positions.prices(),
            executed: self.positions.executed,
            executed_shares,
            stranded,
            expired,
            venues: naming.venues,
        }
    }
}

/// The refusal of an order that was never sent.
fn refusal(((account, user_ref_num), unsent): (Key, Unsent)) -> (AccountId, Reject) {
    let reason = unsent.reason.unwrap_or(reject_reason::DESTINATION_CLOSED);
    (AccountId(account), Reject { user_ref_num, reason, client_order_id: unsent.client_order_id })
}

/// Among the current and the former sessions of a place, the last one that matches; the current one if none does.
fn session_of<'s>(
    sessions: &'s mut BTreeMap<SessionId, Session>,
    former: &'s mut [(SessionId, Session)],
    place: SessionId,
    is_it: impl Fn(&Session) -> bool,
) -> Option<&'s mut Session> {
    let current = sessions.get_mut(&place)?;
    if is_it(current) {
        return Some(current);
    }
    let former = former.iter_mut().rev().find(|(of, former)| *of == place && is_it(former));
    Some(former.map_or(current, |(_, former)| former))
}

#[cfg(test)]
mod tests;
