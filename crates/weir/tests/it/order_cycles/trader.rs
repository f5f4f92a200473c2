//! A client that buys or sells in two symbols, cancels and replaces orders, and records all messages to it.

use std::{collections::BTreeMap, time::Instant};

use weir_proto::{
    ouch::{
        Appendage, Cancel, ClientOrderId, Enter, Inbound, Outbound, Replace, codes::cancel_reason,
        original_user_ref_num,
    },
    soup::SEQUENCED,
};
use weir_stats::random::splitmix;

use super::super::{harness::PATIENCE, order_kill::Session};

/// Unanswered orders of each client when an event comes.
const WINDOW: usize = 16;
/// Every order has this price, so that they trade.
const PRICE: u64 = 10_000;
/// The lowest price: no client sells at it.
const PRICE_LOW: u64 = 100;

pub const SYMBOLS: [&str; 2] = ["AAA", "BBB"];
/// A symbol that is traded on its own now and then, and has no open orders in between.
pub const MOVING: &str = "CCC";

/// The state of an order, as its client knows it.
#[derive(Clone, Debug, Default)]
pub struct OrderOutcome {
    /// `A`, `U` or `J`, each time.
    pub answers: Vec<u8>,
    pub left: i64,
    /// Shares and match number of each execution.
    pub fills: Vec<(u32, u64)>,
    /// The gateway has ended it, because its exchange has begun another session.
    pub has_expired: bool,
}

/// Removes the execution of a broken trade; the client must have received it.
pub fn undo(fills: &mut Vec<(u32, u64)>, match_number: u64) {
    let place = fills.iter().position(|(_, number)| *number == match_number);
    fills.remove(place.expect("a trade that is broken was told before, and is broken once"));
}

impl OrderOutcome {
    pub fn is_taken(&self) -> bool {
        matches!(self.answers[..], [b'A' | b'U'])
    }
}

pub struct Trader {
    pub name: String,
    side: u8,
    session: Option<Session>,
    next: u32,
    /// Orders and replaces that may still get an answer, as they were sent.
    unanswered: BTreeMap<u32, Vec<u8>>,
    /// By number: every order that was sent.
    pub orders: BTreeMap<u32, OrderOutcome>,
    pub stream: Vec<Vec<u8>>,
    taken: usize,
}

impl Trader {
    pub fn new(name: &str, side: u8) -> Self {
        Self {
            name: name.into(),
            side,
            session: None,
            next: 1,
            unanswered: BTreeMap::new(),
            orders: BTreeMap::new(),
            stream: Vec::new(),
            taken: 0,
        }
    }

    /// The name of an order with this number.
    pub fn id(&self, number: u32) -> String {
        format!("{}-{number}", self.name)
    }

    /// Logs in if necessary, and sends unanswered orders once more.
    fn be_there(&mut self, address: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.session.is_none() {
            let wanted = self.stream.len() as u64 + 1;
            assert!(Instant::now() < deadline, "{} does not get message {wanted}", self.name);
            self.session = Session::login(address, &self.name, wanted);
            if let Some(session) = &mut self.session {
                session.send(self.unanswered.values().cloned());
            }
        }
    }

    /// Sends new orders up to the limit, and between them changes of earlier ones.
    pub fn fill(&mut self, state: &mut u64) {
        let mut messages = Vec::new();
        while self.orders_unanswered() < WINDOW {
            let quantity = 1 + splitmix(state) as u32 % 100;
            let any = self.next.saturating_sub(1 + splitmix(state) as u32 % 12).max(1);
            match splitmix(state) % 10 {
                0..7 => {
                    let symbol = SYMBOLS[splitmix(state) as usize % 2];
                    messages.push(self.enter(symbol, quantity, PRICE));
                }
                7 => messages.push(self.replace(any, quantity)),
                8 => messages.push(encoded(Inbound::Cancel(Cancel { user_ref_num: any, quantity: 0 }))),
                _ => messages.push(encoded(Inbound::Cancel(Cancel { user_ref_num: any, quantity }))),
            }
        }
        self.send(messages);
    }

    /// Replaces do not count: a replace of an order that its client's worker no longer reaches has no answer.
    fn orders_unanswered(&self) -> usize {
        self.unanswered.values().filter(|raw| original_user_ref_num(raw).is_none()).count()
    }

    fn send(&mut self, messages: Vec<Vec<u8>>) {
        if let Some(session) = &mut self.session {
            session.send(messages.into_iter());
        }
    }

    fn enter(&mut self, symbol: &str, quantity: u32, price: u64) -> Vec<u8> {
        let (number, client_order_id) = self.number();
        let order = Enter {
            user_ref_num: number,
            side: self.side,
            quantity,
            symbol: symbol.parse().expect("a symbol"),
            price,
            time_in_force: b'0',
            display: b'Y',
            capacity: b'P',
            intermarket_sweep: b'N',
            cross_type: b'N',
            client_order_id,
        };
        self.keep(number, encoded(Inbound::Enter(order, Appendage::EMPTY)))
    }

    fn replace(&mut self, original_user_ref_num: u32, quantity: u32) -> Vec<u8> {
        let (number, client_order_id) = self.number();
        let replace = Replace {
            original_user_ref_num,
            user_ref_num: number,
            quantity,
            price: PRICE,
            time_in_force: b'0',
            display: b'Y',
            intermarket_sweep: b'N',
            client_order_id,
        };
        let raw = encoded(Inbound::Replace(replace, Appendage::EMPTY));
        if self.orders.get(&original_user_ref_num).is_some_and(|outcome| !outcome.is_over()) {
            return self.keep(number, raw);
        }
        // It has no answer.
        raw
    }

    fn number(&mut self) -> (u32, ClientOrderId) {
        let number = self.next;
        self.next += 1;
        (number, self.id(number).parse().expect("it is short"))
    }

    fn keep(&mut self, number: u32, raw: Vec<u8>) -> Vec<u8> {
        self.orders.insert(number, OrderOutcome::default());
        self.unanswered.insert(number, raw.clone());
        raw
    }

    /// Handles one receive. Detects a peer that is gone.
    fn take(&mut self) {
        let Some(session) = &mut self.session else { return };
        let Some(messages) = session.read(|kind, payload| (kind == SEQUENCED).then(|| payload.to_vec()))
        else {
            self.session = None;
            return;
        };
        for message in messages {
            let decoded = Outbound::decode(&message).expect("a message").0;
            self.hear(&decoded);
            self.stream.push(message);
        }
    }

    fn hear(&mut self, message: &Outbound) {
        let number = message.user_ref_num().expect("it is about an order");
        let name = self.id(number);
        let outcome = self.orders.entry(number).or_default();
        match message {
            Outbound::Accepted(accepted) => {
                outcome.answers.push(b'A');
                outcome.left = accepted.quantity.into();
            }
            Outbound::Replaced(replaced) => {
                outcome.answers.push(b'U');
                outcome.left = replaced.quantity.into();
            }
            Outbound::Rejected(_) => outcome.answers.push(b'J'),
            Outbound::Executed(executed) => {
                outcome.left -= i64::from(executed.quantity);
                outcome.fills.push((executed.quantity, executed.match_number));
            }
            Outbound::Canceled(canceled) => {
                outcome.left -= i64::from(canceled.quantity);
                outcome.has_expired |= canceled.reason == cancel_reason::TIMEOUT;
            }
            // A crash of the exchange has left the trade with one side, which gets a message; its shares do not come
            // back.
            Outbound::BrokenTrade(broken) => undo(&mut outcome.fills, broken.match_number),
            // For a cancel without a route to the exchange.
            Outbound::CancelReject(_) => {}
            other => panic!("{name}: {other:?}"),
        }
        assert!(outcome.answers.len() < 2, "order {name} is answered twice: {outcome:?}");
        assert!(outcome.left >= 0, "order {name} has more shares than it had: {outcome:?}");
        let is_over = outcome.is_over();
        self.taken += usize::from(matches!(message, Outbound::Accepted(_)));
        if matches!(message, Outbound::Accepted(_) | Outbound::Replaced(_) | Outbound::Rejected(_)) {
            self.unanswered.remove(&number);
        }
        if is_over {
            self.forget_replaces_of(number);
        }
        if let Outbound::Replaced(replaced) = message {
            self.orders.entry(replaced.original_user_ref_num).or_default().left = 0;
            self.forget_replaces_of(replaced.original_user_ref_num);
        }
    }

    /// A replace of an order that has ended is not answered any more, nor is one of that replace.
    fn forget_replaces_of(&mut self, original: u32) {
        let of_it = self.unanswered.iter().filter(|(_, raw)| original_user_ref_num(raw) == Some(original));
        let numbers: Vec<u32> = of_it.map(|(number, _)| *number).collect();
        for number in numbers {
            self.unanswered.remove(&number);
            self.forget_replaces_of(number);
        }
    }

    /// Works until this many more orders are taken.
    pub fn work(&mut self, address: &str, orders: usize, state: &mut u64) {
        let wanted = self.taken + orders;
        let deadline = Instant::now() + PATIENCE;
        while self.taken < wanted {
            let taken = self.taken;
            assert!(Instant::now() < deadline, "{}: {taken} of {wanted} orders are taken", self.name);
            self.be_there(address);
            self.fill(state);
            self.take();
        }
    }

    /// Has one order in a symbol that stays open.
    pub fn rest(&mut self, address: &str, symbol: &str) {
        self.have_taken(address, symbol, PRICE_LOW);
    }

    /// Has one order in a symbol that trades with the other side: its number.
    pub fn cross(&mut self, address: &str, symbol: &str) -> u32 {
        self.have_taken(address, symbol, PRICE)
    }

    fn have_taken(&mut self, address: &str, symbol: &str, price: u64) -> u32 {
        self.be_there(address);
        let number = self.next;
        let order = self.enter(symbol, 1, price);
        self.send(vec![order]);
        self.hear_until(address, |trader| !trader.orders[&number].answers.is_empty());
        assert!(self.orders[&number].is_taken(), "{:?}", self.orders[&number]);
        number
    }

    /// Waits until an order that was taken is over.
    pub fn wait_for_end(&mut self, address: &str, number: u32) {
        self.hear_until(address, |trader| trader.orders[&number].is_over());
    }

    /// Waits until everything that it has sent before is handled: one more order at each exchange is answered.
    pub fn settle(&mut self, address: &str) {
        self.be_there(address);
        let last = SYMBOLS.map(|symbol| self.enter(symbol, 1, PRICE)).to_vec();
        self.send(last);
        self.finish(address);
    }

    /// Waits for the answer of every order that must have one.
    fn finish(&mut self, address: &str) {
        self.hear_until(address, |trader| trader.orders_unanswered() == 0);
    }

    /// Waits until it has no open order.
    pub fn end(&mut self, address: &str) {
        self.finish(address);
        self.hear_until(address, |trader| trader.orders.values().all(|outcome| outcome.left == 0));
    }

    fn hear_until(&mut self, address: &str, holds: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds(self) {
            let open: Vec<_> = self.orders.iter().filter(|(_, told)| told.left > 0).take(5).collect();
            let unanswered: Vec<_> = self.unanswered.keys().take(5).collect();
            assert!(
                Instant::now() < deadline,
                "{} does not hear of the end of {open:?}, and waits for an answer to {unanswered:?}",
                self.name
            );
            self.be_there(address);
            self.take();
        }
    }

    /// Requests the whole stream once more: it must equal the one before.
    pub fn ask_again(&mut self, address: &str) {
        self.session = None;
        let stream = std::mem::take(&mut self.stream);
        let mut again = Vec::new();
        let deadline = Instant::now() + PATIENCE;
        while again.len() < stream.len() {
            assert!(Instant::now() < deadline, "{}: {} of {}", self.name, again.len(), stream.len());
            if self.session.is_none() {
                again.clear();
                self.session = Session::login(address, &self.name, 1);
            }
            let Some(session) = &mut self.session else { continue };
            match session.read(|kind, payload| (kind == SEQUENCED).then(|| payload.to_vec())) {
                Some(messages) => again.extend(messages),
                None => self.session = None,
            }
        }
        assert!(again == stream, "{}: the stream is another one when it is asked for again", self.name);
        self.stream = stream;
    }
}

impl OrderOutcome {
    /// Whether nothing more can happen to it.
    fn is_over(&self) -> bool {
        !self.answers.is_empty() && self.left == 0
    }
}

fn encoded(message: Inbound<'_>) -> Vec<u8> {
    let mut raw = Vec::new();
    message.encode(&mut raw);
    raw
}
