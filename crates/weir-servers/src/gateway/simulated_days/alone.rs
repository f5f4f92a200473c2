//! Simulated days of one upstream session alone. It is a value, so such a day has no runtime, no socket and no file:
//! an exchange, a line, a journal in memory, clients, and a choice of what happens next. It costs a sixtieth of a day
//! of a whole gateway. The same model compares both ends.
//!
//! The line loses what is on it when it breaks, delivers frames in parts, or does not take any. The exchange takes its
//! time, refuses logins while it believes that somebody is logged in, and begins its session anew. The disk stalls. A
//! kill loses the records that are not durable, and the next start recovers from the others.

mod exchange;

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicU64, Ordering},
};

use weir_proto::{
    ouch::{Enter, Inbound, Outbound, Rejected, codes::cancel_reason, reject_reason},
    soup::{ClientPacket, Deframer, SEQUENCED, SERVER_HEARTBEAT, Timing, encode_frame},
};
use weir_trading::{AccountId, KillScope, KillSwitch, Origin, WhenFull};

use super::{
    ACCOUNTS, Random, SYMBOLS,
    model::{Bounds, Truth, check},
    parties::{Client, PRICE},
    replaces::name_of,
};
use crate::{
    gateway::{
        controls::Controls,
        outstanding::{OutstandingLimits, OutstandingOrders},
        recovery::{Moment, Recovering},
        upstream_session::{
            Batch, Credentials, Effect, Effects, End, Expired, Piece, Resume, Step, UpstreamSession,
        },
        venue_record::{VenueRecord, venues_record},
        worker::{RECORD_HOME, RECORD_SESSION, RECORD_VENUES, Symbols},
        worker_message::{session_key, session_record, unpack_sequence},
    },
    orders::{ApplicationKind, ClientMessage, Record, RecordKind},
};

use exchange::Exchange;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
/// Between two events there is less than this.
const STEP_NS: u64 = 8 * MS;
/// What is given to a sound line arrives within this time.
const ON_ITS_WAY_NS: u64 = 100 * MS;
/// From this message on the end of a session shows which one it is, however often it is asked for its numbers.
const SESSION_MIN: u64 = 20;
/// Our account at the exchange, and that of everybody else there.
const OWN: AccountId = AccountId(0);
const MARKET: AccountId = AccountId(1);

/// A record of the journal.
struct Entry {
    t_ns: u64,
    kind: Kind,
}

enum Kind {
    Sent { account: AccountId, session: u32, upstream: u32, raw: Vec<u8> },
    Refused { account: AccountId, reason: u16, raw: Vec<u8> },
    Sequenced { account: AccountId, upstream_sequence: u64, message: Vec<u8> },
    Application { kind: ApplicationKind, session: u32, payload: Vec<u8> },
}

impl Entry {
    fn record(&self) -> Record<'_> {
        let kind = match &self.kind {
            Kind::Sent { account, session, upstream, raw } => {
                RecordKind::Sent { account: *account, session: *session, upstream: *upstream, raw }
            }
            Kind::Refused { account, reason, raw } => {
                RecordKind::Refused { account: *account, reason: *reason, raw }
            }
            Kind::Sequenced { account, upstream_sequence, message } => RecordKind::Sequenced {
                account: *account,
                sequence: 1,
                upstream_sequence: *upstream_sequence,
                message,
            },
            Kind::Application { kind, session, payload } => {
                RecordKind::Application { kind: *kind, session: *session, payload }
            }
        };
        Record { worker: 0, t_ns: self.t_ns, generation: 0, kind }
    }
}

/// One connection, and the exchange's side of it.
struct Line {
    /// Bytes on their way, and when the first of them was given.
    to_exchange: Vec<u8>,
    to_session: Vec<u8>,
    since_ns: u64,
    /// Nothing arrives any more, at either end.
    is_dead: bool,
    /// It takes no bytes of the session until then.
    stands_until_ns: u64,
    of_session: Deframer,
    of_exchange: Deframer,
    /// Logged in: the index of the next message to send.
    next: Option<usize>,
    beaten_ns: u64,
}

/// What happened on these days: days without it would test nothing.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    fills: u64,
    resends: u64,
    expiries: u64,
    anew: u64,
    kills: u64,
    lost: u64,
}

struct Day {
    random: Random,
    now_ns: u64,
    session: UpstreamSession,
    effects: Effects,
    journal: Vec<Entry>,
    durable: usize,
    stalls_until_ns: u64,
    batch: Option<Batch>,
    line: Option<Line>,
    again_ns: u64,
    exchange: Exchange,
    clients: Vec<Client>,
    /// The numbers that the worker has accepted, by account.
    known: BTreeSet<(u32, u32)>,
    switch: KillSwitch,
    truth: Truth,
    /// Records were lost in a kill: another session of the same name may pass for the known one.
    has_lost: bool,
    is_named: bool,
    /// The last session of the exchange that the journal has as joined.
    heard_session: usize,
    limits: OutstandingLimits,
    /// Everything works from now on.
    is_calm: bool,
    counts: Counts,
}

impl Day {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let ages = [60 * SECOND, 60 * SECOND, 2 * SECOND, 0];
        let limits = OutstandingLimits {
            open_max: 64,
            unanswered_max: 32,
            when_full: WhenFull::Refuse,
            resend_age_max_ns: ages[random.below(4) as usize],
        };
        Self {
            random,
            now_ns: SECOND,
            session: session(OutstandingOrders::new(1, limits), Resume::default()),
            effects: Effects::default(),
            journal: Vec::new(),
            durable: 0,
            stalls_until_ns: 0,
            batch: None,
            line: None,
            again_ns: 0,
            exchange: Exchange::new(0, 0),
            clients: (0..ACCOUNTS).map(Client::new).collect(),
            known: BTreeSet::new(),
            switch: KillSwitch::new(ACCOUNTS as usize),
            truth: Truth::default(),
            has_lost: false,
            is_named: false,
            heard_session: 0,
            limits,
            is_calm: false,
            counts: Counts::default(),
        }
    }

    fn run(mut self) -> Result<Counts, String> {
        for _ in 0..400 + self.random.below(400) {
            self.step();
        }
        self.is_calm = true;
        self.stalls_until_ns = 0;
        // Long enough for every timeout, and for everything that is resent.
        self.go_on(15 * SECOND);
        // An answer to a later order shows what became of earlier ones, if every probe was refused.
        (0..ACCOUNTS).map(Some).chain([None]).for_each(|account| self.kill_switch(account, false));
        self.resend_of_clients();
        (0..4 * ACCOUNTS).for_each(|_| self.trade());
        self.go_on(5 * SECOND);
        self.kill_switch(None, true);
        self.go_on(10 * SECOND);
        if !self.session.is_up() {
            return Err("the exchange is there, and the session is not up".into());
        }
        let sent = self.journal.iter().filter_map(|entry| match &entry.kind {
            Kind::Sent { raw, .. } => name_of(raw),
            _ => None,
        });
        self.truth.sent_on = sent.collect();
        self.counts.fills = self.truth.fills();
        check(&self.truth, &self.clients, Bounds::NONE)?;
        Ok(self.counts)
    }

    /// Nothing disturbs for this long.
    fn go_on(&mut self, time_ns: u64) {
        let until_ns = self.now_ns + time_ns;
        while self.now_ns < until_ns {
            self.work();
            self.now_ns += 50 * MS;
        }
    }

    fn step(&mut self) {
        self.now_ns += self.random.below(STEP_NS);
        match self.random.below(1000) {
            0..250 => self.trade(),
            250..300 => self.trade_of_others(),
            300..306 => self.lose(None),
            306..310 => self.with_line(|line| line.is_dead = true),
            310..316 => {
                let until_ns = self.now_ns + self.random.below(3 * SECOND);
                self.with_line(|line| line.stands_until_ns = until_ns);
            }
            316..322 => self.stalls_until_ns = self.now_ns + self.random.below(2 * SECOND),
            322..326 => self.begin_anew(),
            326..331 => self.die(),
            331..340 => {
                let account = self.random.below(u64::from(ACCOUNTS)) as u32;
                let account = Some(account).filter(|_| self.random.chance(90));
                let is_on = self.random.chance(40);
                self.kill_switch(account, is_on);
            }
            340..346 => self.disconnect(),
            346..352 => self.sleep(),
            352..362 => self.resend_of_clients(),
            _ => {}
        }
        self.work();
    }

    /// Time passes, and nothing is done meanwhile except what cannot wait.
    fn sleep(&mut self) {
        let until_ns = self.now_ns + self.random.below(4 * SECOND);
        while self.now_ns < until_ns {
            self.work();
            self.now_ns += 40 * MS;
        }
    }

    fn with_line(&mut self, change: impl FnOnce(&mut Line)) {
        if let Some(line) = &mut self.line {
            change(line);
        }
    }

    /// Everything that goes on by itself, a part of it each time.
    fn work(&mut self) {
        if self.line.is_none() && self.now_ns >= self.again_ns {
            self.connect();
        }
        if self.now_ns >= self.session.deadline_ns() {
            let outcome = self.session.on_time(self.now_ns, &mut self.effects);
            self.execute();
            if let Err(end) = outcome {
                self.lose(Some(end));
            }
        }
        self.sync();
        self.send();
        self.arrive();
        self.answer();
        self.receive();
        self.note_heard();
    }

    fn connect(&mut self) {
        let credentials = Credentials {
            username: "G00001".parse().expect("a name"),
            password: "DEMO".parse().expect("a password"),
            timing: Timing { heartbeat_timeout_ns: 3 * SECOND, ..Timing::default() },
        };
        self.session.connect(self.now_ns, &credentials);
        self.line = Some(Line {
            to_exchange: Vec::new(),
            to_session: Vec::new(),
            since_ns: self.now_ns,
            is_dead: false,
            stands_until_ns: 0,
            of_session: Deframer::new(4096),
            of_exchange: Deframer::new(1024),
            next: None,
            beaten_ns: self.now_ns,
        });
    }

    /// The connection is gone, with what is on it; the exchange notices that later.
    fn lose(&mut self, end: Option<End>) {
        if let Some(line) = self.line.take() {
            self.counts.lost += 1;
            if line.next.is_some() && !self.is_calm {
                self.exchange.taken_until_ns = self.now_ns + self.random.below(2 * SECOND);
            }
        }
        self.session.lost(end.as_ref());
        self.again_ns = self.now_ns + self.random.below(500 * MS);
    }

    fn append(&mut self, kind: Kind) -> u64 {
        if !std::mem::replace(&mut self.is_named, true) {
            let payload = venues_record(&[VenueRecord { name: "V".into() }]);
            self.append(Kind::Application { kind: RECORD_VENUES, session: 0, payload });
        }
        self.journal.push(Entry { t_ns: self.now_ns, kind });
        self.journal.len() as u64
    }

    /// The disk takes what has been appended; then clients have their messages.
    fn sync(&mut self) {
        if self.now_ns < self.stalls_until_ns || !self.is_calm && self.random.chance(30) {
            return;
        }
        let (all, random) = (self.journal.len(), &mut self.random);
        let is_all = self.is_calm || random.chance(70);
        let left = if is_all { 0 } else { random.below((all - self.durable) as u64 + 1) as usize };
        for entry in &self.journal[self.durable..all - left] {
            if let Kind::Sequenced { account, message, .. } = &entry.kind {
                self.clients[account.0 as usize].hear(message.clone());
            }
        }
        self.durable = all - left;
    }

    /// What the sending task does, a piece at a time.
    fn send(&mut self) {
        let takes = self.line.as_ref().is_some_and(|line| self.now_ns >= line.stands_until_ns);
        if self.session.has_urgent() && takes {
            let batch = self.session.take_urgent(Vec::new());
            self.give(batch.bytes());
            self.session.on_batch_sent(&batch);
        }
        let mut batch = self.batch.take().unwrap_or_else(|| self.session.take_waiting(Vec::new()));
        if batch.lsn() > self.durable as u64 {
            if self.random.chance(10) {
                self.session.send_cancels_ahead(&mut batch);
            }
            self.batch = Some(batch);
            return;
        }
        if !takes && self.line.is_some() {
            self.batch = Some(batch);
            return;
        }
        let piece = self.session.next_piece(&mut batch, self.now_ns, &mut self.effects);
        self.execute();
        match piece {
            Piece::Gone => {}
            Piece::Done => self.session.on_batch_sent(&batch),
            Piece::Bytes(bytes) => {
                self.give(&batch.bytes()[bytes]);
                self.session.on_piece_sent(&batch, self.now_ns, |_| ());
                self.batch = Some(batch);
            }
        }
    }

    fn give(&mut self, bytes: &[u8]) {
        let Some(line) = &mut self.line else { return };
        if line.to_exchange.is_empty() {
            line.since_ns = self.now_ns;
        }
        line.to_exchange.extend_from_slice(bytes);
        self.session.on_sent(self.now_ns);
    }

    /// Bytes arrive at the exchange.
    fn arrive(&mut self) {
        let Self { line: Some(line), exchange, truth, random, now_ns, .. } = self else { return };
        if line.is_dead || line.to_exchange.is_empty() {
            return;
        }
        let all = line.to_exchange.len();
        let is_old = *now_ns > line.since_ns + ON_ITS_WAY_NS;
        let count = if is_old || random.chance(60) { all } else { random.below(all as u64 + 1) as usize };
        let bytes: Vec<u8> = line.to_exchange.drain(..count).collect();
        let mut input: &[u8] = &bytes;
        let mut is_refused = false;
        while let Ok(Some(frame)) = line.of_exchange.next(&mut input) {
            match ClientPacket::parse(frame).expect("the gateway keeps to the protocol") {
                ClientPacket::Login(login) => {
                    line.next = exchange.let_in(*now_ns, &login, &mut line.to_session);
                    is_refused = line.next.is_none();
                }
                ClientPacket::Unsequenced(raw) if line.next.is_some() => exchange.hear(truth, *now_ns, raw),
                _ => {}
            }
        }
        if is_refused {
            // It closes the connection behind its answer.
            line.to_exchange.clear();
        }
    }

    /// The exchange sends what it has to say, or a heartbeat.
    fn answer(&mut self) {
        let Self { line: Some(line), exchange, random, now_ns, is_calm, .. } = self else { return };
        let Some(next) = &mut line.next else { return };
        let left = exchange.stream.len() - *next;
        let count = if *is_calm || random.chance(50) { left } else { random.below(left as u64 + 1) as usize };
        for message in &exchange.stream[*next..*next + count] {
            encode_frame(SEQUENCED, message, &mut line.to_session);
        }
        *next += count;
        // Also in the middle of what it sends again.
        if *now_ns >= line.beaten_ns + SECOND || random.chance(1) {
            line.beaten_ns = *now_ns;
            encode_frame(SERVER_HEARTBEAT, &[], &mut line.to_session);
        }
    }

    /// Bytes arrive at the session.
    fn receive(&mut self) {
        let Some(line) = &mut self.line else { return };
        if line.is_dead || line.to_session.is_empty() {
            return;
        }
        let all = line.to_session.len();
        let count = if self.is_calm || self.random.chance(60) {
            all
        } else {
            self.random.below(all as u64 + 1) as usize
        };
        let bytes: Vec<u8> = line.to_session.drain(..count).collect();
        let mut deframer = std::mem::replace(&mut line.of_session, Deframer::new(4096));
        let mut input: &[u8] = &bytes;
        while let Ok(Some(frame)) = deframer.next(&mut input) {
            let has_room = self.is_calm || !self.random.chance(1) || !self.random.chance(10);
            let step = Step { now_ns: self.now_ns, has_room, kept: Some(self.durable as u64) };
            let outcome = self.session.on_frame(frame, step, &mut self.effects);
            self.execute();
            if let Err(end) = outcome {
                return self.lose(Some(end));
            }
        }
        if let Some(line) = &mut self.line {
            line.of_session = deframer;
        }
    }

    fn execute(&mut self) {
        let mut list = std::mem::take(&mut self.effects.list);
        for effect in list.drain(..) {
            match effect {
                Effect::Deliver(delivery) => {
                    let message = self.effects.raw.clone();
                    let (account, upstream_sequence) = (delivery.origin.account, delivery.upstream_sequence);
                    self.append(Kind::Sequenced { account, upstream_sequence, message });
                }
                Effect::Begun { epoch, session } => self.log_session(epoch, &session),
                Effect::BegunAnew { epoch, session, ended, .. } => {
                    self.counts.anew += 1;
                    self.log_session(epoch, &session);
                    self.expire(ended);
                }
                Effect::Expired(expired) => self.expire(expired),
                Effect::Up { again } => self.counts.resends += again,
                Effect::Pass(_) | Effect::LoggedIn(_) | Effect::Gap { .. } | Effect::Release(_) => {}
            }
        }
        self.effects.list = list;
    }

    fn log_session(&mut self, epoch: u16, session: &weir_proto::soup::Name<10>) {
        let payload = session_record(epoch, session).to_vec();
        self.append(Kind::Application { kind: RECORD_SESSION, session: session_key(0, 0), payload });
    }

    fn expire(&mut self, expired: Expired) {
        for expiry in expired.expiries {
            self.counts.expiries += 1;
            let mut message = Vec::new();
            expiry.message(self.now_ns).encode(&mut message);
            let account = expiry.origin.account;
            self.append(Kind::Sequenced { account, upstream_sequence: expired.session, message });
        }
    }

    /// A message of a client arrives at the worker.
    fn take(&mut self, account: AccountId, raw: Vec<u8>) {
        let message = ClientMessage::decode(&raw).expect("clients send messages");
        if message.new_number().is_some_and(|number| !self.known.insert((account.0, number))) {
            return;
        }
        if message.is_order()
            && let Err(reason) = self.switch.check(account)
        {
            return self.refuse(account, reason, &message);
        }
        let user_ref_num = message.user_ref_num();
        let origin = Origin { account, user_ref_num, home: 0, received_ns: self.now_ns };
        match self.session.accept(origin, &message) {
            Ok(Some(numbered)) => {
                if let Some(home) = numbered.home {
                    let (kind, session) = (RECORD_HOME, session_key(0, 0));
                    self.append(Kind::Application { kind, session, payload: home.to_vec() });
                }
                let (session, upstream) = (numbered.session, numbered.number);
                let lsn = self.append(Kind::Sent { account, session, upstream, raw });
                self.session.journaled(lsn);
            }
            Ok(None) => self.refuse(account, reject_reason::REPLACE_NOT_ALLOWED, &message),
            Err(reason) => self.refuse(account, reason, &message),
        }
    }

    fn refuse(&mut self, account: AccountId, reason: u16, message: &ClientMessage<'_>) {
        if !message.is_order() {
            return;
        }
        self.append(Kind::Refused { account, reason, raw: message.raw().to_vec() });
        self.reject(account, message.user_ref_num(), reason, message.client_order_id());
    }

    fn reject(
        &mut self,
        account: AccountId,
        user_ref_num: u32,
        reason: u16,
        client_order_id: weir_proto::ouch::ClientOrderId,
    ) {
        let rejected = Rejected { timestamp_ns: self.now_ns, user_ref_num, reason, client_order_id };
        let mut message = Vec::new();
        Outbound::Rejected(rejected).encode(&mut message);
        self.append(Kind::Sequenced { account, upstream_sequence: 0, message });
    }

    fn trade(&mut self) {
        let client = self.random.below(u64::from(ACCOUNTS)) as usize;
        let raw = self.clients[client].next_message(&mut self.random);
        self.take(AccountId(client as u32), raw);
    }

    /// Clients send what has no answer again, as after a connection that was lost.
    fn resend_of_clients(&mut self) {
        for account in 0..ACCOUNTS {
            for raw in self.clients[account as usize].unanswered() {
                self.take(AccountId(account), raw);
            }
        }
    }

    /// Another member trades at the exchange.
    fn trade_of_others(&mut self) {
        let Self { exchange, clients, random, truth, now_ns, .. } = self;
        exchange.market_number += 1;
        let quantity = 1 + random.below(100) as u32;
        let enter = clients[0].enter(exchange.market_number, quantity, Default::default(), random);
        let side = if random.chance(50) { b'B' } else { b'S' };
        let enter = Enter { side, price: PRICE, symbol: SYMBOLS[0].parse().expect("a symbol"), ..enter };
        exchange.handle(truth, *now_ns, MARKET, &Inbound::Enter(enter, Default::default()));
    }

    /// The exchange begins another session: it has no order of the one before.
    fn begin_anew(&mut self) {
        self.lose(None);
        // Another session of the same name cannot be distinguished from one of which hardly an answer was stored.
        let is_short = self.kept_of_session() < SESSION_MIN;
        let has_other_name = self.has_lost || is_short || self.random.chance(40);
        let Exchange { session, name, .. } = self.exchange;
        self.truth.end(self.exchange.place(), self.now_ns);
        self.exchange = Exchange::new(session + 1, name + u32::from(has_other_name));
    }

    /// The last message of the exchange's session whose answers the journal has.
    fn kept_of_session(&self) -> u64 {
        let last = self.journal[..self.durable].iter().rev().find_map(|entry| match &entry.kind {
            Kind::Sequenced { upstream_sequence, .. } => Some(unpack_sequence(*upstream_sequence).2),
            _ => None,
        });
        last.filter(|_| self.heard_session == self.exchange.session).unwrap_or(0)
    }

    /// Turns a switch, as an operator does. What the journal says of it is durable at once.
    fn kill_switch(&mut self, account: Option<u32>, is_on: bool) {
        self.truth.kill(self.now_ns, account, is_on);
        let scope = account.map_or(KillScope::Everyone, |account| KillScope::Account(AccountId(account)));
        self.switch.set(scope, is_on);
        if is_on {
            self.cancel_all(account.map(AccountId), cancel_reason::SUPERVISORY);
        }
    }

    /// A client leaves, and wants none of its orders to outlive its connection.
    fn disconnect(&mut self) {
        let account = self.random.below(u64::from(ACCOUNTS)) as u32;
        self.cancel_all(Some(AccountId(account)), cancel_reason::SYSTEM);
    }

    fn cancel_all(&mut self, account: Option<AccountId>, reason: u8) {
        self.session.cancel_all(account, reason, false, &mut self.effects);
        self.execute();
    }

    /// The process is killed and starts again. A part of what it had given to the line still arrives.
    fn die(&mut self) {
        if self.heard_session != self.exchange.session {
            // A session that the journal does not name yet cannot be distinguished either.
            return;
        }
        self.counts.kills += 1;
        if self.random.chance(50) {
            self.arrive();
        }
        self.lose(None);
        self.has_lost |= self.durable < self.journal.len();
        self.journal.truncate(self.durable);
        (self.is_named, self.batch) = (false, None);
        let symbols = Symbols { other: Some(0), ..Symbols::default() };
        let nobody = |_: &str| None;
        let venues = [("V".to_owned(), self.limits)];
        let now = Moment { wall_ns: self.now_ns, engine_ns: self.now_ns };
        let mut recovering = Recovering::new(1, &venues, &symbols, &nobody, Controls::default(), now);
        self.known.clear();
        for entry in &self.journal {
            recovering.take(&entry.record());
            if let Kind::Sent { account, raw, .. } | Kind::Refused { account, raw, .. } = &entry.kind {
                let number = ClientMessage::decode(raw).ok().and_then(|message| message.new_number());
                self.known.extend(number.map(|number| (account.0, number)));
            }
        }
        let mut recovered = recovering.finish(|_, _| true, false);
        let (outstanding, resume) = recovered.sessions.remove(0);
        self.session = session(outstanding, resume);
        if let Some(home) =
            (self.session.outstanding().open() > 0).then(|| self.session.note_home(0)).flatten()
        {
            let (kind, session) = (RECORD_HOME, session_key(0, 0));
            self.append(Kind::Application { kind, session, payload: home.to_vec() });
        }
        for (account, reject) in recovered.unsent {
            self.reject(account, reject.user_ref_num, reject.reason, reject.client_order_id);
        }
        for (upstream_sequence, expiry) in recovered.expired {
            let mut message = Vec::new();
            expiry.message(self.now_ns).encode(&mut message);
            self.append(Kind::Sequenced { account: expiry.origin.account, upstream_sequence, message });
        }
        let on: Vec<KillScope> = self.switch.engaged().collect();
        for scope in on {
            let account = if let KillScope::Account(account) = scope { Some(account) } else { None };
            self.cancel_all(account, cancel_reason::SUPERVISORY);
        }
    }

    /// The gateway has stored all that the exchange has said so far.
    fn note_heard(&mut self) {
        let Some(line) = &self.line else { return };
        let has_all = line.next == Some(self.exchange.stream.len()) && line.to_session.is_empty();
        if has_all && !line.is_dead && self.session.is_up() && self.durable == self.journal.len() {
            self.heard_session = self.exchange.session;
            self.truth.hear(self.exchange.place(), 0, self.now_ns);
        }
    }
}

fn session(outstanding: OutstandingOrders, resume: Resume) -> UpstreamSession {
    UpstreamSession::new(session_key(0, 0), outstanding, resume, true)
}

/// Days of every run, and the least of what happens on them.
const DAYS: u64 = 2_000;
const LEAST: Counts =
    Counts { fills: 20_000, resends: 2_000, expiries: 500, anew: 500, kills: 1_000, lost: 10_000 };

#[test]
fn nothing_is_lost_and_nothing_is_doubled_on_any_day_of_a_session_alone() {
    if let Some(seed) = super::variable("WEIR_TEST_SEED") {
        Day::new(seed).run().unwrap_or_else(|wrong| panic!("day {seed}: {wrong}"));
        return;
    }
    let days = super::variable("WEIR_TEST_DAYS").unwrap_or(DAYS);
    let first = super::variable("WEIR_TEST_FIRST").unwrap_or(0);
    let next = AtomicU64::new(first);
    let sum = std::sync::Mutex::new(Counts::default());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed - first >= days {
                        return;
                    }
                    let day = Day::new(seed).run();
                    let day =
                        day.unwrap_or_else(|wrong| panic!("WEIR_TEST_SEED={seed} repeats this day: {wrong}"));
                    let mut sum = sum.lock().expect("no panic");
                    sum.fills += day.fills;
                    sum.resends += day.resends;
                    sum.expiries += day.expiries;
                    sum.anew += day.anew;
                    sum.kills += day.kills;
                    sum.lost += day.lost;
                }
            });
        }
    });
    let sum = sum.into_inner().expect("no panic");
    let enough = [
        (sum.fills, LEAST.fills),
        (sum.resends, LEAST.resends),
        (sum.expiries, LEAST.expiries),
        (sum.anew, LEAST.anew),
        (sum.kills, LEAST.kills),
        (sum.lost, LEAST.lost),
    ];
    assert!(days < DAYS || enough.iter().all(|(count, least)| count >= least), "too few: {sum:?}");
}

#[test]
fn a_day_of_a_session_alone_finds_a_fault_that_is_planted() {
    super::PLANTED.set(Some(super::Plant::SentPassesForUnsent));
    let is_found = (0..DAYS).any(|seed| Day::new(seed).run().is_err());
    super::PLANTED.set(None);
    assert!(is_found, "orders that were sent pass for unsent ones, and no day finds that");
}
