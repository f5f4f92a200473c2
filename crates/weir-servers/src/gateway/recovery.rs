//! What the journals of earlier starts say to a gateway: which orders are under way, which answers clients have, and
//! what was changed while it ran.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use weir_proto::{
    ouch::{
        ClientOrderId, Inbound, Symbol, inbound_user_ref_num, original_user_ref_num, outbound_user_ref_num,
        reject_reason,
    },
    soup::Name,
};
use weir_trading::{AccountId, Origin, Restored, WhenFull};

use super::{
    application::{RECORD_CONTROL, RECORD_SESSION, RECORD_VENUES, Symbols},
    commands::{Change, Controls},
    config::VENUES_MAX,
    ledger::{Ledger, LedgerLimits},
    positions::Positions,
    stranded::{Stranded, Why},
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

/// An order by its account and its number there.
pub(super) type Key = (u32, u32);

/// Answers by their orders.
type Answers = BTreeMap<Key, Vec<Vec<u8>>>;

/// An order that its client's worker has journaled and that was not answered.
struct Unsent {
    client_order_id: ClientOrderId,
    /// Why it was refused. None: it was handed to the worker that sends, whose journal says whether it was sent.
    reason: Option<u16>,
}

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
    fn new(limits: LedgerLimits) -> Self {
        Self {
            ledger: Ledger::new(1, limits),
            later: VecDeque::new(),
            resume: Resume::default(),
            kept: BTreeMap::new(),
            delivered: HashMap::new(),
        }
    }

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
    /// Those that are configured, in their order, and behind them others that the journals name.
    venues: Vec<String>,
    /// By journal: the venues by their numbers in what follows there. None: as they are configured.
    numbers: HashMap<u16, Vec<usize>>,
    /// By worker and venue: those that are configured, and others whose orders the journals have.
    sessions: BTreeMap<(usize, usize), Session>,
    positions: Positions,
    /// Orders that may never have been sent.
    unsent: BTreeMap<Key, Unsent>,
    /// Orders that are refused in their client's stream and not by a record of its worker. The worker that they were
    /// handed to may have one, and its journal may be read later.
    told: HashSet<Key>,
    /// By account: the last of its orders that was sent. They are sent or refused in the order of their numbers, and of
    /// each the worker that does it keeps a record: so whichever has a lower number and is not known to be refused was
    /// sent.
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
    /// Orders that are open, or may be.
    pub(super) open: Vec<(AccountId, Restored)>,
    /// What each account has executed, in ten-thousandths of the currency.
    pub(super) executed: HashMap<AccountId, u64>,
    /// The price of each symbol's last trade.
    pub(super) prices: Vec<(Symbol, u64)>,
    /// Open orders that cannot go on with this configuration.
    pub(super) stranded: Vec<Stranded>,
}

impl Recovered {
    /// Whether an upstream session has an open order of a client of another worker: sent while there was another route,
    /// or another number of workers.
    pub(super) fn has_orders_of_others(&self, venues: usize) -> bool {
        let mut sessions = self.sessions.iter().enumerate();
        sessions.any(|(index, (ledger, _))| ledger.has_orders_of_others(index / venues))
    }
}

impl<'c> Recovering<'c> {
    pub(super) fn new(
        workers: usize,
        venues: &[(String, LedgerLimits)],
        symbols: &'c Symbols,
        accounts: &'c dyn Fn(&str) -> Option<AccountId>,
        controls: Controls,
    ) -> Self {
        let limits: Vec<LedgerLimits> = venues.iter().map(|(_, limits)| *limits).collect();
        let places = (0..workers).flat_map(|worker| (0..limits.len()).map(move |venue| (worker, venue)));
        Self {
            workers,
            symbols,
            sessions: places.map(|place| (place, Session::new(limits[place.1]))).collect(),
            limits,
            venues: venues.iter().map(|(name, _)| name.clone()).collect(),
            numbers: HashMap::new(),
            positions: Positions::default(),
            unsent: BTreeMap::new(),
            told: HashSet::new(),
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
            RecordKind::Refused { account, reason, raw } => self.refused(account, reason, raw),
            RecordKind::Sequenced { account, upstream_sequence, message, .. } => {
                self.positions.told(record.t_ns, account, message);
                self.sequenced(record.worker, account, upstream_sequence, message);
            }
            RecordKind::Sent { account, session, upstream, raw } => {
                if let Some(place) = self.place_of(record.worker, session) {
                    self.sent(place, account, upstream, raw);
                }
            }
            RecordKind::Application { kind: RECORD_SESSION, session, payload } => {
                if let Some(place) = self.place_of(record.worker, session)
                    && let Some((epoch, name)) = payload.split_first()
                    && let Ok(name) = Name::from_padded(name)
                {
                    let session = self.session(place);
                    session.resume.session = Some(name);
                    session.resume.epoch = *epoch;
                }
            }
            RecordKind::Application { kind: RECORD_VENUES, payload, .. } => {
                if let Ok(names) = serde_json::from_slice::<Vec<String>>(payload) {
                    let numbers = names.into_iter().take(VENUES_MAX).map(|name| self.venue(name)).collect();
                    self.numbers.insert(record.worker, numbers);
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

    /// The worker and the venue of a session, as a record of this journal names it.
    fn place_of(&self, journal: u16, key: u32) -> Option<(usize, usize)> {
        let (worker, number) = of_session_key(key);
        let venue = match self.numbers.get(&journal) {
            Some(numbers) => *numbers.get(number)?,
            None => Some(number).filter(|number| *number < self.limits.len())?,
        };
        Some((worker, venue))
    }

    /// The number of a venue here.
    fn venue(&mut self, name: String) -> usize {
        let known = self.venues.iter().position(|own| *own == name);
        known.unwrap_or_else(|| {
            self.venues.push(name);
            self.venues.len() - 1
        })
    }

    fn session(&mut self, place: (usize, usize)) -> &mut Session {
        let limits = self.limits.get(place.1).copied().unwrap_or_default();
        self.sessions.entry(place).or_insert_with(|| Session::new(limits))
    }

    fn inbound(&mut self, worker: u16, account: AccountId, upstream: u32, raw: &[u8]) {
        let Some(number) = new_number(raw) else { return };
        if upstream == 0 {
            let unsent = Unsent { client_order_id: name_of(raw), reason: None };
            // The worker that it was handed to may have refused it.
            self.unsent.entry((account.0, number)).or_insert(unsent);
            return;
        }
        if let Some(venue) = self.venue_of(worker.into(), account, raw) {
            self.sent((worker.into(), venue), account, upstream, raw);
        }
    }

    fn refused(&mut self, account: AccountId, reason: u16, raw: &[u8]) {
        let Some(number) = new_number(raw) else { return };
        let key = (account.0, number);
        if !self.told.remove(&key) {
            self.unsent.insert(key, Unsent { client_order_id: name_of(raw), reason: Some(reason) });
        }
    }

    /// The venue by which a worker sent its own client's order, where the record does not say so: an earlier version
    /// wrote it, with the routes that are configured now.
    fn venue_of(&self, worker: usize, account: AccountId, raw: &[u8]) -> Option<usize> {
        if self.limits.len() == 1 {
            return Some(0);
        }
        if let Some(original) = original_user_ref_num(raw) {
            let mut own = self.sessions.range((worker, 0)..(worker + 1, 0));
            return own
                .find(|(_, session)| session.ledger.knows(account, original))
                .map(|((_, venue), _)| *venue);
        }
        self.symbols.route(symbol_of(raw)?)
    }

    fn sent(&mut self, place: (usize, usize), account: AccountId, number: u32, raw: &[u8]) {
        let Some(user_ref_num) = new_number(raw) else { return };
        let last = self.last_sent.entry(account).or_default();
        *last = user_ref_num.max(*last);
        self.positions.sent((account.0, user_ref_num), raw);
        let home = (account.0 as usize % self.workers) as u16;
        let origin = Origin { account, user_ref_num, home, received_ns: 0 };
        self.session(place).later.push_back(Sent { number, origin, raw: raw.to_vec() });
        // The entry was made just now.
        if let Some(session) = self.sessions.get_mut(&place) {
            session.catch_up(&mut self.early);
        }
    }

    fn sequenced(&mut self, worker: u16, account: AccountId, upstream_sequence: u64, message: &[u8]) {
        let number = outbound_user_ref_num(message);
        if let (Some(number), Some(b'A' | b'J' | b'U')) = (number, message.first()) {
            let key = (account.0, number);
            let is_refused_here = self.unsent.remove(&key).is_some_and(|unsent| unsent.reason.is_some());
            if upstream_sequence == 0 && !is_refused_here {
                self.told.insert(key);
            }
        }
        if upstream_sequence == 0 {
            return;
        }
        let (key, epoch, sequence) = unpack_sequence(upstream_sequence);
        let Some(place) = self.place_of(worker, key) else { return };
        let session = self.session(place);
        let delivered = session.delivered.entry((epoch, account)).or_default();
        *delivered = sequence.max(*delivered);
        let kept = session.kept.entry((epoch, worker)).or_default();
        *kept = sequence.max(*kept);
        let Some(number) = number else { return };
        if session.ledger.knows(account, number) {
            session.ledger.restore_answer(account, message);
            if !session.ledger.knows(account, number) {
                self.positions.asked.remove(&(account.0, number));
            }
        } else if usize::from(worker) != place.0 || !session.later.is_empty() {
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
        let Self { workers, limits, mut sessions, mut unsent, last_sent, mut early, controls, .. } = self;
        // It does not matter which worker's journal was read first.
        unsent.retain(|(account, number), unsent| {
            let last = last_sent.get(&AccountId(*account));
            unsent.reason.is_some() || last.is_none_or(|last| number > last)
        });
        for ((worker, _), session) in &mut sessions {
            session.catch_up(&mut early);
            // Numbers of sessions that were before mean nothing in this one.
            let epoch = session.resume.epoch;
            session.kept.retain(|(of, _), _| *of == epoch);
            let delivered = session.delivered.iter().filter(|((of, _), _)| *of == epoch);
            session.resume.delivered =
                delivered.map(|((_, account), sequence)| (*account, *sequence)).collect();
            // Each journal has its clients' answers without a gap; the one that has come least far decides.
            let homes = (0..workers).filter(|home| feeds(*worker, *home));
            let feeding = homes.map(|home| session.kept.get(&(epoch, home as u16)).copied().unwrap_or(0));
            let kept = feeding.chain(session.kept.values().copied()).min().unwrap_or(0);
            // Where nothing was kept or the session was never joined, what the exchange said before is not asked for.
            let is_new = self.is_empty || session.resume.session.is_none();
            session.resume.next = if is_new { 0 } else { kept + 1 };
        }
        let (mut stranded, mut open) = (Vec::new(), Vec::new());
        for ((worker, venue), session) in &sessions {
            for (origin, shares) in session.ledger.open_orders() {
                let asked = self.positions.asked.get(&(origin.account.0, origin.user_ref_num));
                let left = asked.map(|asked| Restored { shares: shares.unwrap_or(asked.shares), ..*asked });
                open.extend(left.map(|left| (origin.account, left)));
                let symbol = asked.map(|asked| &asked.symbol);
                // Of those it is known of none whether it is open.
                let is_forgetful = |limits: &LedgerLimits| limits.when_full == WhenFull::ForgetOldest;
                let why = match symbol {
                    _ if limits.get(*venue).is_some_and(is_forgetful) => None,
                    _ if *worker >= workers => Some(Why::Worker(*worker)),
                    _ if *venue >= limits.len() => Some(Why::Venue),
                    Some(symbol) if self.symbols.route(*symbol) != Some(*venue) => Some(Why::Route(*symbol)),
                    _ => None,
                };
                let venue = self.venues[*venue].clone();
                let Origin { account, user_ref_num, .. } = origin;
                stranded.extend(why.map(|why| Stranded { account, user_ref_num, venue, why }));
            }
        }
        sessions.retain(|(worker, venue), _| *worker < workers && *venue < limits.len());
        let refusal = |((account, user_ref_num), unsent): (Key, Unsent)| {
            let reason = unsent.reason.unwrap_or(reject_reason::DESTINATION_CLOSED);
            let client_order_id = unsent.client_order_id;
            (AccountId(account), Refusal { user_ref_num, reason, client_order_id })
        };
        Recovered {
            sessions: sessions.into_values().map(|session| (session.ledger, session.resume)).collect(),
            controls,
            unsent: unsent.into_iter().map(refusal).collect(),
            open,
            prices: self.positions.prices(),
            executed: self.positions.executed,
            stranded,
        }
    }
}

/// The number that a client's message brings: an order or a replacement.
fn new_number(raw: &[u8]) -> Option<u32> {
    inbound_user_ref_num(raw).filter(|_| matches!(raw.first(), Some(b'O' | b'U')))
}

/// What a new order trades.
pub(super) fn symbol_of(raw: &[u8]) -> Option<Symbol> {
    Some(Symbol(raw.get(10..18).filter(|_| raw[0] == b'O')?.try_into().ok()?))
}

/// The client's own name of its order.
fn name_of(raw: &[u8]) -> ClientOrderId {
    let id = Inbound::decode(raw).ok().and_then(|message| message.client_order_id());
    id.unwrap_or(ClientOrderId([b' '; 14]))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use weir_proto::ouch::{Accepted, Appendage, Enter, Executed, Outbound, Rejected};

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
        accepted_as(user_ref_num, b'D')
    }

    fn live(user_ref_num: u32) -> Vec<u8> {
        accepted_as(user_ref_num, b'L')
    }

    fn accepted_as(user_ref_num: u32, order_state: u8) -> Vec<u8> {
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
            order_state,
            client_order_id: ClientOrderId([b' '; 14]),
        });
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        bytes
    }

    fn recover(records: &[(u16, RecordKind<'_>)]) -> Recovered {
        let records: Vec<_> = records.iter().map(|(worker, kind)| (*worker, *kind, 0)).collect();
        recover_at(&records)
    }

    fn recover_at(records: &[(u16, RecordKind<'_>, u64)]) -> Recovered {
        let symbols = Symbols { other: Some(0), ..Symbols::default() };
        let limits = LedgerLimits { open_max: 2, ..LedgerLimits::default() };
        let nobody = |_: &str| None;
        let venues = [("A".to_owned(), limits)];
        let mut recovering = Recovering::new(2, &venues, &symbols, &nobody, Controls::default());
        for (worker, kind, t_ns) in records {
            recovering.take(&Record { worker: *worker, t_ns: *t_ns, kind: *kind });
        }
        recovering.finish(|_, _| true)
    }

    fn inbound(upstream: u32, raw: &[u8]) -> RecordKind<'_> {
        RecordKind::Inbound { account: ACCOUNT, upstream, raw }
    }

    #[test]
    fn what_an_account_has_open_and_executed_and_the_last_price_outlive_the_gateway() {
        let executed = |user_ref_num: u32, quantity: u32, price: u64| {
            let message = Outbound::Executed(Executed {
                timestamp_ns: 1,
                user_ref_num,
                quantity,
                price,
                liquidity: b'A',
                match_number: 1,
            });
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            bytes
        };
        let (first, second) = (enter(1), enter(2));
        let (early, late) = (executed(1, 40, 9_000), executed(1, 10, 8_000));
        let answer = |sequence: u64, message| {
            let upstream_sequence = pack_sequence(session_key(0, 0), 0, sequence);
            RecordKind::Sequenced { account: ACCOUNT, sequence, upstream_sequence, message }
        };
        let accepted = live(1);
        let sent = |number: u32, raw| RecordKind::Sent {
            account: ACCOUNT,
            session: session_key(0, 0),
            upstream: number,
            raw,
        };
        let of_sender = [(0, sent(1, &first), 1), (0, sent(2, &second), 2)];
        let of_home = [
            (1, inbound(0, &first), 1),
            (1, answer(1, &accepted), 3),
            // The later trade is in the journal that is read first, or last.
            (1, answer(2, &late), 9),
            (1, answer(3, &early), 4),
            (1, inbound(0, &second), 5),
        ];
        let whichever = [[&of_sender[..], &of_home[..]].concat(), [&of_home[..], &of_sender[..]].concat()];
        for records in whichever {
            let recovered = recover_at(&records);
            let order = |user_ref_num, shares| {
                (ACCOUNT, Restored { user_ref_num, symbol: Symbol(*b"WEIR    "), price: 10_000, shares })
            };
            assert_eq!(recovered.open, [order(1, 50), order(2, 100)]);
            assert_eq!(recovered.executed[&ACCOUNT], 40 * 9_000 + 10 * 8_000);
            assert_eq!(recovered.prices, [(Symbol(*b"WEIR    "), 8_000)]);
        }
    }

    /// Two venues of which the first has order 1 and the second order 2, then a start with other venues and routes.
    fn restarted(venues: &[&str], routes: &[(&str, usize)]) -> Recovered {
        let of_symbol = |number: u32, symbol: [u8; 8]| {
            let mut raw = enter(number);
            raw[10..18].copy_from_slice(&symbol);
            raw
        };
        let (first, second) = (of_symbol(1, *b"WEIR    "), of_symbol(2, *b"DAM     "));
        let sent = |venue: usize, raw| RecordKind::Sent {
            account: ACCOUNT,
            session: session_key(1, venue),
            upstream: 1,
            raw,
        };
        let named = RecordKind::Application { kind: RECORD_VENUES, session: 0, payload: br#"["A","B"]"# };
        let limits = LedgerLimits::default();
        let venues: Vec<_> = venues.iter().map(|name| ((*name).to_owned(), limits)).collect();
        let route = |(symbol, venue): &(&str, usize)| (symbol.parse().expect("it is short"), *venue);
        let symbols = Symbols { venues: routes.iter().map(route).collect(), other: None };
        let nobody = |_: &str| None;
        let mut recovering = Recovering::new(2, &venues, &symbols, &nobody, Controls::default());
        for kind in [named, sent(0, &first), sent(1, &second)] {
            recovering.take(&Record { worker: 1, t_ns: 0, kind });
        }
        recovering.finish(|_, _| true)
    }

    #[test]
    fn orders_stay_with_the_venue_they_were_sent_to_whatever_is_configured_now() {
        let open = |recovered: &Recovered| -> Vec<usize> {
            recovered.sessions.iter().map(|(ledger, _)| ledger.open()).collect()
        };
        let same = restarted(&["A", "B"], &[("WEIR", 0), ("DAM", 1)]);
        assert_eq!((open(&same), same.stranded.len()), (vec![0, 0, 1, 1], 0));
        let turned = restarted(&["C", "B", "A"], &[("WEIR", 2), ("DAM", 1)]);
        assert_eq!((open(&turned), turned.stranded.len()), (vec![0, 0, 0, 0, 1, 1], 0));
        let stranded = |recovered: Recovered| -> Vec<(u32, String, Why)> {
            let found = recovered.stranded.into_iter();
            found.map(|it| (it.user_ref_num, it.venue, it.why)).collect()
        };
        let moved = restarted(&["A", "B"], &[("WEIR", 1), ("DAM", 1)]);
        let weir = Symbol(*b"WEIR    ");
        assert_eq!(stranded(moved), [(1, "A".to_owned(), Why::Route(weir))]);
        let gone = restarted(&["B"], &[("WEIR", 0), ("DAM", 0)]);
        assert_eq!(stranded(gone), [(1, "A".to_owned(), Why::Venue)]);
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

    fn rejected(user_ref_num: u32, reason: u16) -> Vec<u8> {
        let client_order_id = ClientOrderId([b' '; 14]);
        let message = Outbound::Rejected(Rejected { timestamp_ns: 1, user_ref_num, reason, client_order_id });
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        bytes
    }

    /// A record as a test writes it down.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Written {
        /// By the client's worker: it hands the order on.
        Handed(u32),
        /// By either worker: it refuses the order.
        Refused(u32),
        /// By the sender: the order and its number upstream.
        Sent(u32, u32),
        /// By the client's worker: an answer, and its number in the exchange's stream.
        Accepted(u32, u64),
        /// By the client's worker: the refusal.
        Told(u32),
    }

    const REASON: u16 = reject_reason::SHARES_EXCEED_THRESHOLD;

    /// Shows the records of one journal.
    fn read(recovering: &mut Recovering<'_>, account: AccountId, worker: u16, sender: u16, all: &[Written]) {
        for (written, sequence) in all.iter().zip(1..) {
            let (Written::Handed(number)
            | Written::Refused(number)
            | Written::Sent(number, _)
            | Written::Accepted(number, _)
            | Written::Told(number)) = *written;
            let raw = enter(number);
            let message = match written {
                Written::Told(_) => rejected(number, REASON),
                _ => accepted(number),
            };
            let key = session_key(sender.into(), 0);
            let kind = match *written {
                Written::Handed(_) => RecordKind::Inbound { account, upstream: 0, raw: &raw },
                Written::Refused(_) => RecordKind::Refused { account, reason: REASON, raw: &raw },
                Written::Sent(_, upstream) => RecordKind::Inbound { account, upstream, raw: &raw },
                Written::Accepted(_, of_exchange) => {
                    let upstream_sequence = pack_sequence(key, 0, of_exchange);
                    RecordKind::Sequenced { account, sequence, upstream_sequence, message: &message }
                }
                Written::Told(_) => {
                    RecordKind::Sequenced { account, sequence, upstream_sequence: 0, message: &message }
                }
            };
            recovering.take(&Record { worker, t_ns: 0, kind });
        }
    }

    /// Each journal ends where the kill found it. What is in any of them has one end: an answer that the client has, a
    /// place among those that are sent again, or a refusal that it is told now.
    #[test]
    fn every_journaled_order_ends_in_one_way_wherever_a_kill_has_cut_the_journals() {
        use Written::{Accepted, Handed, Refused, Sent, Told};
        let of_home = [
            Handed(1),
            Refused(2),
            Told(2),
            Handed(3),
            Handed(4),
            Accepted(1, 1),
            Told(3),
            Handed(6),
            Accepted(4, 2),
            Told(6),
            Handed(7),
            Handed(8),
        ];
        let of_sender = [Sent(1, 1), Refused(3), Sent(4, 2), Refused(6), Sent(7, 3)];
        for home in [0_u16, 1] {
            let (account, sender) = (AccountId(home.into()), 1 - home);
            for kept in 0..=of_home.len() {
                for sent in 0..=of_sender.len() {
                    let (of_home, of_sender) = (&of_home[..kept], &of_sender[..sent]);
                    // An order is sent when its record is durable, and answered when it was sent.
                    let was_sent = |order: u32| {
                        of_sender.iter().any(|one| matches!(one, Sent(number, _) if *number == order))
                    };
                    let is_possible = |one: &Written| !matches!(one, Accepted(order, _) if !was_sent(*order));
                    if !of_home.iter().all(is_possible) {
                        continue;
                    }
                    // The next start says what is missing, and is killed too.
                    let missing = ends_in_one_way(account, sender, of_home, of_sender);
                    for said in 0..=missing.len() {
                        let told = missing[..said].iter().map(|number| Told(*number));
                        let of_home: Vec<Written> = of_home.iter().copied().chain(told).collect();
                        let rest = ends_in_one_way(account, sender, &of_home, of_sender);
                        assert_eq!(rest, missing[said..]);
                    }
                }
            }
        }
    }

    /// Which orders are refused now.
    fn ends_in_one_way(
        account: AccountId,
        sender: u16,
        of_home: &[Written],
        of_sender: &[Written],
    ) -> Vec<u32> {
        let home = 1 - sender;
        let symbols = Symbols { other: Some(0), ..Symbols::default() };
        let nobody = |_: &str| None;
        let venues = [("A".to_owned(), LedgerLimits::default())];
        let mut recovering = Recovering::new(2, &venues, &symbols, &nobody, Controls::default());
        for worker in [0, 1] {
            let all = if worker == home { of_home } else { of_sender };
            read(&mut recovering, account, worker, sender, all);
        }
        let recovered = recovering.finish(|_, _| true);
        let ledger = &recovered.sessions[usize::from(sender)].0;
        let shown = format!("account {}, home {of_home:?}, sender {of_sender:?}", account.0);
        let told_now: Vec<u32> = recovered.unsent.iter().map(|(_, refusal)| refusal.user_ref_num).collect();
        let all = || of_home.iter().chain(of_sender);
        let numbers =
            |number: fn(&Written) -> Option<u32>| all().filter_map(number).collect::<BTreeSet<u32>>();
        let refused = numbers(|written| match *written {
            Written::Refused(number) => Some(number),
            _ => None,
        });
        let answered = numbers(|written| match *written {
            Written::Accepted(number, _) | Written::Told(number) => Some(number),
            _ => None,
        });
        let journaled = numbers(|written| match *written {
            Written::Handed(number) | Written::Sent(number, _) | Written::Refused(number) => Some(number),
            _ => None,
        });
        let mut again = 0;
        for number in journaled {
            let is_sent_again = ledger.knows(account, number);
            let is_told_now = told_now.iter().filter(|told| **told == number).count();
            let ends = usize::from(answered.contains(&number)) + usize::from(is_sent_again) + is_told_now;
            assert_eq!(ends, 1, "order {number}: {shown}");
            again += usize::from(is_sent_again);
        }
        assert_eq!(ledger.unanswered(), again, "{shown}");
        for (_, refusal) in &recovered.unsent {
            let reason = if refused.contains(&refusal.user_ref_num) { REASON } else { 2 };
            assert_eq!(refusal.reason, reason, "{shown}");
        }
        told_now
    }
}
