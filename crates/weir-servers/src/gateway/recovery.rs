//! What the journals of earlier starts say to a gateway: which orders are under way, which answers clients have, and
//! what was changed while it ran.

use std::collections::{BTreeMap, HashMap, VecDeque};

use weir_proto::{
    ouch::{
        ClientOrderId, Inbound, Symbol, inbound_user_ref_num, original_user_ref_num, outbound_user_ref_num,
        reject_reason,
    },
    soup::Name,
};
use weir_trading::{AccountId, Origin};

use super::{
    application::{RECORD_CONTROL, RECORD_SESSION, Symbols},
    commands::{Change, Controls},
    ledger::{Ledger, LedgerLimits},
    task::{Refusal, of_session_key, unpack_sequence},
    upstream::Resume,
};
use crate::orders::{Record, RecordKind};

/// An order that was sent, as its journal has it.
struct Sent {
    number: u32,
    origin: Origin,
    raw: Vec<u8>,
}

/// Answers by account and the number of their order there.
type Answers = BTreeMap<(u32, u32), Vec<Vec<u8>>>;

/// One upstream session as the journals have it.
struct Session {
    ledger: Ledger,
    /// Orders for which it has no room until answers to those before them are read, in order.
    later: VecDeque<Sent>,
    resume: Resume,
    /// By epoch and journal: up to which message of this session it has the answers for its clients.
    kept: BTreeMap<(u8, u16), u64>,
    /// By epoch and account: up to which message of it the client has the answers.
    delivered: HashMap<(u8, AccountId), u64>,
}

impl Session {
    /// Gives orders to the ledger as long as it has room, each with the answers that were read before it.
    fn catch_up(&mut self, early: &mut Answers) {
        while let Some(Sent { number, origin, raw }) = self.later.front() {
            if !self.ledger.restore(*number, *origin, raw) {
                return;
            }
            for answer in early.remove(&(origin.account.0, origin.user_ref_num)).unwrap_or_default() {
                self.ledger.restore_answer(origin.account, &answer);
            }
            self.later.pop_front();
        }
    }
}

/// Takes records in the order of their journals.
pub(super) struct Recovering<'c> {
    workers: usize,
    symbols: &'c Symbols,
    limits: Vec<LedgerLimits>,
    sessions: Vec<Session>,
    /// Orders that their client's worker has journaled and that may never have been sent.
    unsent: BTreeMap<(u32, u32), ClientOrderId>,
    /// By account: the last of its orders that was sent. They are sent in the order of their numbers.
    last_sent: HashMap<AccountId, u32>,
    /// Answers to orders that no ledger has yet.
    early: Answers,
    /// Names of accounts, folded, for changes.
    accounts: &'c dyn Fn(&str) -> Option<AccountId>,
    controls: Controls,
    is_empty: bool,
}

/// What the workers of a gateway begin with.
pub(super) struct Recovered {
    /// By upstream session: worker times venues.
    pub(super) sessions: Vec<(Ledger, Resume)>,
    /// What is in force.
    pub(super) controls: Controls,
    /// Orders whose clients wait for an answer that nobody else will give.
    pub(super) unsent: Vec<(AccountId, Refusal)>,
}

impl<'c> Recovering<'c> {
    pub(super) fn new(
        workers: usize,
        venues: &[LedgerLimits],
        symbols: &'c Symbols,
        accounts: &'c dyn Fn(&str) -> Option<AccountId>,
        controls: Controls,
    ) -> Self {
        let session = |index: usize| Session {
            ledger: Ledger::new(1, venues[index % venues.len()]),
            later: VecDeque::new(),
            resume: Resume::default(),
            kept: BTreeMap::new(),
            delivered: HashMap::new(),
        };
        Self {
            workers,
            symbols,
            limits: venues.to_vec(),
            sessions: (0..workers * venues.len()).map(session).collect(),
            unsent: BTreeMap::new(),
            last_sent: HashMap::new(),
            early: BTreeMap::new(),
            accounts,
            controls,
            is_empty: true,
        }
    }

    /// Takes one record.
    pub(super) fn take(&mut self, record: &Record<'_>) {
        self.is_empty = false;
        match record.kind {
            RecordKind::Inbound { account, upstream, raw } => {
                self.inbound(record.worker, account, upstream, raw);
            }
            RecordKind::Sequenced { account, upstream_sequence, message, .. } => {
                self.sequenced(record.worker, account, upstream_sequence, message);
            }
            RecordKind::Application { kind: RECORD_SESSION, session, payload } => {
                if let Some(place) = self.place_of(session)
                    && let Some((epoch, name)) = payload.split_first()
                    && let Ok(name) = Name::from_padded(name)
                {
                    self.sessions[place].resume.session = Some(name);
                    self.sessions[place].resume.epoch = *epoch;
                }
            }
            RecordKind::Application { kind: RECORD_CONTROL, payload, .. } => {
                if let Ok(change) = serde_json::from_slice::<Change>(payload) {
                    self.change(&change);
                }
            }
            RecordKind::Application { .. } => {}
        }
    }

    /// The place of a session that is still configured.
    fn place_of(&self, key: u32) -> Option<usize> {
        let (worker, venue) = of_session_key(key);
        (worker < self.workers && venue < self.limits.len()).then(|| worker * self.limits.len() + venue)
    }

    fn inbound(&mut self, worker: u16, account: AccountId, upstream: u32, raw: &[u8]) {
        let Some(number) = inbound_user_ref_num(raw) else { return };
        if !matches!(raw.first(), Some(b'O' | b'U')) {
            return;
        }
        if upstream == 0 {
            let id = Inbound::decode(raw).ok().and_then(|message| message.client_order_id());
            self.unsent.insert((account.0, number), id.unwrap_or(ClientOrderId([b' '; 14])));
            return;
        }
        if let Some(venue) = self.venue_of(worker.into(), account, raw) {
            self.sent(worker, venue, account, upstream, raw);
        }
    }

    /// The venue by which a worker sent its own client's order.
    fn venue_of(&self, worker: usize, account: AccountId, raw: &[u8]) -> Option<usize> {
        let venues = self.limits.len();
        if venues == 1 {
            return Some(0);
        }
        if let Some(original) = original_user_ref_num(raw) {
            let sessions = self.sessions.get(worker * venues..(worker + 1) * venues)?;
            return sessions.iter().position(|session| session.ledger.knows(account, original));
        }
        let symbol = Symbol(raw.get(10..18)?.try_into().ok()?);
        self.symbols.venues.get(&symbol).copied().or(self.symbols.other)
    }

    fn sent(&mut self, worker: u16, venue: usize, account: AccountId, number: u32, raw: &[u8]) {
        let Some(user_ref_num) = inbound_user_ref_num(raw) else { return };
        let last = self.last_sent.entry(account).or_default();
        *last = user_ref_num.max(*last);
        if venue >= self.limits.len() {
            return;
        }
        let Some(session) = self.sessions.get_mut(usize::from(worker) * self.limits.len() + venue) else {
            return;
        };
        let home = (account.0 as usize % self.workers) as u16;
        let origin = Origin { account, user_ref_num, home, received_ns: 0 };
        session.later.push_back(Sent { number, origin, raw: raw.to_vec() });
        session.catch_up(&mut self.early);
    }

    fn sequenced(&mut self, worker: u16, account: AccountId, upstream_sequence: u64, message: &[u8]) {
        let number = outbound_user_ref_num(message);
        if let Some(number) = number {
            self.unsent.remove(&(account.0, number));
        }
        if upstream_sequence == 0 {
            return;
        }
        let (key, epoch, sequence) = unpack_sequence(upstream_sequence);
        let Some(place) = self.place_of(key) else { return };
        let session = &mut self.sessions[place];
        let delivered = session.delivered.entry((epoch, account)).or_default();
        *delivered = sequence.max(*delivered);
        let kept = session.kept.entry((epoch, worker)).or_default();
        *kept = sequence.max(*kept);
        let Some(number) = number else { return };
        if session.ledger.knows(account, number) {
            session.ledger.restore_answer(account, message);
        } else if usize::from(worker) != place / self.limits.len() || !session.later.is_empty() {
            self.early.entry((account.0, number)).or_default().push(message.to_vec());
        }
    }

    fn change(&mut self, change: &Change) {
        let (Change::Kill { account: name, .. } | Change::Limits { account: name, .. }) = change;
        let account = name.as_deref().map(self.accounts);
        // An account that is not configured any more has nothing to be changed.
        if account != Some(None) {
            self.controls.apply(account.flatten(), change);
        }
    }

    /// What the workers begin with. `feeds` says which homes an upstream session has answers for.
    pub(super) fn finish(self, feeds: impl Fn(usize, usize) -> bool) -> Recovered {
        let Self {
            workers, limits, mut sessions, mut unsent, last_sent, mut early, controls, is_empty, ..
        } = self;
        // It does not matter which worker's journal was read first.
        unsent.retain(|(account, number), _| {
            last_sent.get(&AccountId(*account)).is_none_or(|last| number > last)
        });
        for (index, session) in sessions.iter_mut().enumerate() {
            session.catch_up(&mut early);
            // Numbers of sessions that were before mean nothing in this one.
            let epoch = session.resume.epoch;
            session.kept.retain(|(of, _), _| *of == epoch);
            let delivered = session.delivered.iter().filter(|((of, _), _)| *of == epoch);
            session.resume.delivered =
                delivered.map(|((_, account), sequence)| (*account, *sequence)).collect();
            // Each journal has its clients' answers without a gap; the one that has come least far decides.
            let homes = (0..workers).filter(|home| feeds(index / limits.len(), *home));
            let feeding = homes.map(|home| session.kept.get(&(epoch, home as u16)).copied().unwrap_or(0));
            let kept = feeding.chain(session.kept.values().copied()).min().unwrap_or(0);
            // Where nothing was kept or the session was never joined, what the exchange said before is not asked for.
            let is_new = is_empty || session.resume.session.is_none();
            session.resume.next = if is_new { 0 } else { kept + 1 };
        }
        let refusal = |((account, user_ref_num), client_order_id)| {
            let reason = reject_reason::DESTINATION_CLOSED;
            (AccountId(account), Refusal { user_ref_num, reason, client_order_id })
        };
        Recovered {
            sessions: sessions.into_iter().map(|session| (session.ledger, session.resume)).collect(),
            controls,
            unsent: unsent.into_iter().map(refusal).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_proto::ouch::{Accepted, Appendage, Enter, Outbound};

    use super::*;
    use crate::gateway::task::{pack_sequence, session_key};

    const ACCOUNT: AccountId = AccountId(1);

    fn enter(user_ref_num: u32) -> Vec<u8> {
        let order = Enter {
            user_ref_num,
            side: b'B',
            quantity: 100,
            symbol: Symbol(*b"WEIR    "),
            price: 10_000,
            time_in_force: b'0',
            display: b'Y',
            capacity: b'P',
            intermarket_sweep: b'N',
            cross_type: b'N',
            client_order_id: ClientOrderId([b' '; 14]),
        };
        let mut bytes = Vec::new();
        Inbound::Enter(order, Appendage::default()).encode(&mut bytes);
        bytes
    }

    /// Accepted and over at once.
    fn accepted(user_ref_num: u32) -> Vec<u8> {
        let message = Outbound::Accepted(Accepted {
            timestamp_ns: 1,
            user_ref_num,
            side: b'B',
            quantity: 100,
            symbol: Symbol(*b"WEIR    "),
            price: 10_000,
            time_in_force: b'0',
            display: b'Y',
            order_reference: 1,
            capacity: b'P',
            intermarket_sweep: b'N',
            cross_type: b'N',
            order_state: b'D',
            client_order_id: ClientOrderId([b' '; 14]),
        });
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        bytes
    }

    fn recover(records: &[(u16, RecordKind<'_>)]) -> Recovered {
        let symbols = Symbols { other: Some(0), ..Symbols::default() };
        let limits = LedgerLimits { open_max: 2, ..LedgerLimits::default() };
        let nobody = |_: &str| None;
        let mut recovering = Recovering::new(2, &[limits], &symbols, &nobody, Controls::default());
        for (worker, kind) in records {
            recovering.take(&Record { worker: *worker, t_ns: 0, kind: *kind });
        }
        recovering.finish(|_, _| true)
    }

    fn inbound(upstream: u32, raw: &[u8]) -> RecordKind<'_> {
        RecordKind::Inbound { account: ACCOUNT, upstream, raw }
    }

    #[test]
    fn an_order_that_another_worker_sent_is_not_refused_whichever_journal_is_read_first() {
        let (sent, unsent) = (enter(5), enter(6));
        let (home, sender) = ([inbound(0, &sent), inbound(0, &unsent)], inbound(1, &sent));
        let home_first = [(0, home[0]), (0, home[1]), (1, sender)];
        let sender_first = [(0, sender), (1, home[0]), (1, home[1])];
        for (records, place) in [(home_first, 1), (sender_first, 0)] {
            let recovered = recover(&records);
            let refused: Vec<u32> =
                recovered.unsent.iter().map(|(_, refusal)| refusal.user_ref_num).collect();
            assert_eq!(refused, [6]);
            let (ledger, resume) = &recovered.sessions[place];
            assert_eq!((ledger.unanswered(), ledger.knows(ACCOUNT, 5)), (1, true));
            assert_eq!(resume.next, 0, "a session that was never joined is not asked for its past");
        }
    }

    #[test]
    fn more_orders_than_have_room_are_restored_once_the_answers_are_read() {
        let orders: Vec<Vec<u8>> = (1..=5).map(enter).collect();
        let answers: Vec<Vec<u8>> = (1..=3).map(accepted).collect();
        let mut records: Vec<_> =
            orders.iter().zip(1..).map(|(raw, number)| (0, inbound(number, raw))).collect();
        records.extend(answers.iter().zip(1..).map(|(message, sequence)| {
            let upstream_sequence = pack_sequence(session_key(0, 0), 0, sequence);
            (1, RecordKind::Sequenced { account: ACCOUNT, sequence, upstream_sequence, message })
        }));
        let recovered = recover(&records);
        let ledger = &recovered.sessions[0].0;
        assert_eq!((ledger.open(), ledger.unanswered()), (2, 2));
        assert!(ledger.knows(ACCOUNT, 4) && ledger.knows(ACCOUNT, 5));
    }
}
