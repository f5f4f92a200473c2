//! What one upstream session has sent and what became of it: whose order each number carries, and what to send again
//! when a connection was lost. Pure: no socket, no clock.
//!
//! The exchange handles the messages of a session in order, so an answer to one number says that every lower one was
//! handled too. What it has not said is kept as it was sent, and is sent again with the same numbers after a
//! connection was lost; the exchange ignores those it knows.
//!
//! A replace of an order that ends first is ignored without a word: it ends with its original. Cancels and changes have
//! no number, so nothing says that they were handled. They name what an order shall come to, not by how much it
//! changes, and may be said twice: the last one of each order is sent again too, as long as the order lives.

use std::collections::{HashMap, VecDeque};

use weir_proto::{
    ouch::{
        Outbound, inbound_user_ref_num, original_user_ref_num, outbound_original_user_ref_num,
        outbound_user_ref_num, set_inbound_user_ref_num, set_original_user_ref_num,
        set_outbound_original_user_ref_num, set_outbound_user_ref_num,
    },
    soup,
};
use weir_trading::{AccountId, Origin, Translation, WhenFull};

use super::task::MESSAGE_BYTES_MAX;

/// Bounds of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerLimits {
    /// Orders open at once.
    pub open_max: usize,
    /// Orders sent and not answered; more stop the clients that send here.
    pub unanswered_max: usize,
    /// What happens to one open order too many.
    pub when_full: WhenFull,
}

impl Default for LedgerLimits {
    fn default() -> Self {
        Self { open_max: 1 << 16, unanswered_max: 4096, when_full: WhenFull::Refuse }
    }
}

/// What became of a client's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sending {
    /// It is to be sent and has this number upstream.
    Numbered(u32),
    /// It is to be sent and concerns the order with this number.
    Passed(u32),
    /// It concerns an order that is not open: nothing is sent and nothing is answered.
    Unknown,
    /// There is no room for another open order, or no number.
    Full,
}

/// An answer from upstream; the client's numbers are in the message now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// Whose it is.
    pub(super) origin: Origin,
    /// When its order was handed to the connection, if this is its first answer and the time is known; else zero.
    pub(super) sent_ns: u64,
}

/// A numbered message that was sent and of which nothing was heard.
struct Unanswered {
    received_ns: u64,
    sent_ns: u64,
    number: u32,
    length: u8,
    message: [u8; MESSAGE_BYTES_MAX],
}

impl Unanswered {
    fn message(&self) -> &[u8] {
        &self.message[..usize::from(self.length)]
    }
}

/// A message about an open order, as it was sent.
#[derive(Clone, Copy)]
struct Passed {
    /// The number given last before it.
    after: u32,
    /// Its place among all of these.
    place: u64,
    length: u8,
    message: [u8; MESSAGE_BYTES_MAX],
}

impl Passed {
    fn message(&self) -> &[u8] {
        &self.message[..usize::from(self.length)]
    }

    /// What is to be left of the order.
    fn quantity(&self) -> u32 {
        self.message[5..9].try_into().map_or(0, u32::from_be_bytes)
    }
}

/// The last cancel and the last change of an order.
#[derive(Clone, Copy, Default)]
struct About {
    cancel: Option<Passed>,
    change: Option<Passed>,
}

/// The orders of one upstream session.
pub(super) struct Ledger {
    unanswered_max: usize,
    translation: Translation,
    unanswered: VecDeque<Unanswered>,
    /// By number of an order. Of orders that are open, and of some that were forgotten.
    passed: HashMap<u32, About>,
    passed_count: u64,
    /// Replaces that nobody will answer, not asked for yet.
    ignored: Vec<Origin>,
}

/// So many orders that are not open may be in [`Ledger::passed`] before they are looked for.
const PASSED_SLACK: usize = 64;

impl Ledger {
    /// A ledger whose first order gets the number `next`.
    pub(super) fn new(next: u32, limits: LedgerLimits) -> Self {
        Self {
            unanswered_max: limits.unanswered_max,
            translation: Translation::with_policy(next, limits.open_max, limits.when_full),
            unanswered: VecDeque::with_capacity(limits.unanswered_max.min(1 << 16)),
            passed: HashMap::new(),
            passed_count: 0,
            ignored: Vec::new(),
        }
    }

    /// Orders that are open, or may be.
    pub(super) fn open(&self) -> usize {
        self.translation.len()
    }

    /// Numbered messages without an answer.
    pub(super) fn unanswered(&self) -> usize {
        self.unanswered.len()
    }

    /// Whether so many messages have no answer that the clients that feed it should wait.
    pub(super) fn is_full(&self) -> bool {
        self.unanswered.len() >= self.unanswered_max
    }

    /// Whether the clients that waited may go on: later than [`Self::is_full`] ends, so that they do not come and go
    /// with each answer.
    pub(super) fn has_room(&self) -> bool {
        self.unanswered.len() <= self.unanswered_max / 2
    }

    /// The exchange expects `next`: numbers below it are used. Numbers never go back.
    pub(super) fn raise_next(&mut self, next: u32) {
        self.translation.advance(next);
    }

    /// Whose an open order is.
    pub(super) fn account_of(&self, number: u32) -> Option<AccountId> {
        self.translation.origin_of(number).map(|origin| origin.account)
    }

    /// Whether this client's order is open here.
    pub(super) fn knows(&self, account: AccountId, user_ref_num: u32) -> bool {
        self.translation.upstream_of(account, user_ref_num).is_some()
    }

    /// Whether an open order is of a client of another worker than this one.
    pub(super) fn has_orders_of_others(&self, worker: usize) -> bool {
        self.translation.all_open_orders().any(|(_, origin)| usize::from(origin.home) != worker)
    }

    /// Takes a client's message, at most [`MESSAGE_BYTES_MAX`] long, and appends the frame to send to `out`.
    pub(super) fn send(&mut self, origin: Origin, raw: &[u8], out: &mut Vec<u8>) -> Sending {
        let concerned = match raw.first() {
            Some(b'O') => None,
            Some(b'U') => original_user_ref_num(raw),
            _ => inbound_user_ref_num(raw),
        };
        let concerned = concerned.map(|client| self.translation.upstream_of(origin.account, client));
        if concerned == Some(None) {
            return Sending::Unknown;
        }
        let concerned = concerned.flatten();
        match (raw.first(), concerned) {
            (Some(b'O' | b'U'), _) => {
                let assigned = self.translation.assign_replacement(origin, concerned.unwrap_or(0));
                let Ok(number) = assigned else { return Sending::Full };
                self.bury_orphans();
                let message = frame(raw, out);
                self.note(number, &origin, concerned, &mut out[message..]);
                Sending::Numbered(number)
            }
            (_, Some(number)) => {
                let message = frame(raw, out);
                set_inbound_user_ref_num(&mut out[message..], number);
                self.note_passed(number, &out[message..]);
                Sending::Passed(number)
            }
            (_, None) => Sending::Unknown,
        }
    }

    /// Keeps a cancel or a change. Of two cancels the one that leaves less holds, whichever comes last.
    fn note_passed(&mut self, number: u32, message: &[u8]) {
        if self.passed.len() >= 2 * self.translation.len() + PASSED_SLACK {
            self.passed.retain(|number, _| self.translation.origin_of(*number).is_some());
        }
        self.passed_count += 1;
        let mut kept = [0; MESSAGE_BYTES_MAX];
        kept[..message.len()].copy_from_slice(message);
        let (after, place) = (self.last_number(), self.passed_count);
        let passed = Passed { after, place, length: message.len() as u8, message: kept };
        let about = self.passed.entry(number).or_default();
        match message.first() {
            Some(b'X') if about.cancel.is_some_and(|cancel| cancel.quantity() <= passed.quantity()) => {}
            Some(b'X') => about.cancel = Some(passed),
            _ => about.change = Some(passed),
        }
    }

    /// Writes the numbers into a message and keeps it until it is answered. The order that a replace concerns may be
    /// over when it is read from a journal. Then it has no number, which none has: the client's own would be that of
    /// another client's order there.
    fn note(&mut self, number: u32, origin: &Origin, original: Option<u32>, message: &mut [u8]) {
        set_inbound_user_ref_num(message, number);
        set_original_user_ref_num(message, original.unwrap_or(0));
        let mut kept = [0; MESSAGE_BYTES_MAX];
        kept[..message.len()].copy_from_slice(message);
        let length = message.len() as u8;
        let received_ns = origin.received_ns;
        self.unanswered.push_back(Unanswered { received_ns, sent_ns: 0, number, length, message: kept });
    }

    /// A journal says that this was sent with this number. Of one session they come in the order of their numbers.
    /// False: there is no room for it, as long as none of those before it has ended.
    pub(super) fn restore(&mut self, number: u32, origin: Origin, raw: &[u8]) -> bool {
        let original = original_user_ref_num(raw)
            .and_then(|client| self.translation.upstream_of(origin.account, client));
        if number < self.translation.next() || raw.len() > MESSAGE_BYTES_MAX {
            return true;
        }
        if self.translation.restore_replacement(number, origin, original.unwrap_or(0)).is_err() {
            return false;
        }
        self.bury_orphans();
        self.note(number, &origin, original, &mut raw.to_vec());
        true
    }

    /// A journal says that the client has this answer; its numbers are the client's.
    pub(super) fn restore_answer(&mut self, account: AccountId, raw: &[u8]) {
        let upstream = |client: Option<u32>| self.translation.upstream_of(account, client?);
        let Some(number) = upstream(outbound_user_ref_num(raw)) else { return };
        let original = upstream(outbound_original_user_ref_num(raw)).unwrap_or(0);
        let mut raw = raw.to_vec();
        set_outbound_user_ref_num(&mut raw, number);
        set_outbound_original_user_ref_num(&mut raw, original);
        if let Ok((message, _)) = Outbound::decode(&raw) {
            self.acknowledge(number);
            self.translation.settle(&message);
            self.bury(&message);
        }
    }

    /// Takes an answer and puts the client's numbers into it. `None`: it concerns no order known here. `message` is
    /// what `raw` means.
    pub(super) fn answer(&mut self, message: &Outbound, raw: &mut [u8]) -> Option<Answer> {
        let original = match message {
            Outbound::Replaced(replaced) => self.translation.origin_of(replaced.original_user_ref_num),
            _ => None,
        };
        let sent_ns = self.acknowledge(message.user_ref_num()?);
        let origin = self.translation.settle(message);
        self.bury(message);
        let origin = origin?;
        set_outbound_user_ref_num(raw, origin.user_ref_num);
        // An original that is not known any more has no number the client would recognise.
        set_outbound_original_user_ref_num(raw, original.map_or(0, |original| original.user_ref_num));
        Some(Answer { origin, sent_ns })
    }

    /// The numbers `from..=to` were handed to the connection now. `received` is told when each of them had arrived.
    pub(super) fn stamp(&mut self, from: u32, to: u32, now_ns: u64, mut received: impl FnMut(u64)) {
        let start = self.unanswered.partition_point(|sent| sent.number < from);
        for sent in self.unanswered.range_mut(start..).take_while(|sent| sent.number <= to) {
            sent.sent_ns = now_ns;
            received(sent.received_ns);
        }
    }

    /// Appends every message that has no answer or never has one, as it was sent, in order. Says how many there are.
    pub(super) fn resend(&self, out: &mut Vec<u8>) -> u64 {
        let of_open = self.passed.iter().filter(|(number, _)| self.translation.origin_of(**number).is_some());
        let mut passed: Vec<&Passed> =
            of_open.flat_map(|(_, about)| [&about.cancel, &about.change]).flatten().collect();
        passed.sort_unstable_by_key(|passed| passed.place);
        let count = self.unanswered.len() + passed.len();
        let mut passed = passed.into_iter().peekable();
        for unanswered in &self.unanswered {
            while let Some(earlier) = passed.next_if(|passed| passed.after < unanswered.number) {
                frame(earlier.message(), out);
            }
            frame(unanswered.message(), out);
        }
        for later in passed {
            frame(later.message(), out);
        }
        count as u64
    }

    /// The replaces since the last call that the exchange has ignored: their numbers are not used up.
    pub(super) fn take_ignored(&mut self) -> Vec<Origin> {
        std::mem::take(&mut self.ignored)
    }

    /// Forgets what was kept of orders that a message has ended.
    fn bury(&mut self, message: &Outbound) {
        self.bury_orphans();
        if self.passed.is_empty() {
            return;
        }
        if let Some(number) = message.user_ref_num()
            && self.translation.origin_of(number).is_none()
        {
            self.passed.remove(&number);
        }
        if let Outbound::Replaced(replaced) = message {
            self.passed.remove(&replaced.original_user_ref_num);
        }
    }

    /// A replace that was not confirmed before its original ended will not be answered. Had the exchange handled it
    /// first, it would have said so first.
    fn bury_orphans(&mut self) {
        let orphans = self.translation.take_orphans();
        if orphans.is_empty() {
            return;
        }
        let mut numbers: Vec<u32> = orphans.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        self.unanswered.retain(|sent| numbers.binary_search(&sent.number).is_err());
        self.passed.retain(|number, _| numbers.binary_search(number).is_err());
        self.ignored.extend(orphans.into_iter().map(|(_, origin)| origin));
    }

    /// The number given last; 0 when none was.
    pub(super) fn last_number(&self) -> u32 {
        self.translation.next().wrapping_sub(1)
    }

    /// Appends cancels of every open order up to a number of an account, or of all accounts, and says how many there
    /// are.
    pub(super) fn cancel_all(&self, account: Option<AccountId>, through: u32, out: &mut Vec<u8>) -> u64 {
        let mut cancel = [0; CANCEL_BYTES];
        cancel[0] = b'X';
        let mut count = 0;
        let mut append = |(number, _): (u32, Origin)| {
            set_inbound_user_ref_num(&mut cancel, number);
            frame(&cancel, out);
            count += 1;
        };
        // Older ones have lower numbers.
        let is_meant = |(number, _): &(u32, Origin)| *number <= through;
        match account {
            Some(account) => {
                self.translation.open_orders(account).take_while(is_meant).for_each(&mut append);
            }
            None => self.translation.all_open_orders().take_while(is_meant).for_each(&mut append),
        }
        count
    }

    /// The exchange has handled this number, and with it every lower one; says when it was sent. A replace that got no
    /// answer of its own was ignored.
    fn acknowledge(&mut self, number: u32) -> u64 {
        let mut sent_ns = 0;
        while let Some(front) = self.unanswered.front()
            && front.number <= number
        {
            let (handled, is_replace) = (front.number, front.message[0] == b'U');
            if handled == number {
                sent_ns = front.sent_ns;
            }
            self.unanswered.pop_front();
            if handled != number && is_replace {
                self.ignored.extend(self.translation.origin_of(handled));
                self.translation.finish(handled);
            }
        }
        sent_ns
    }
}

/// Bytes of a cancel.
const CANCEL_BYTES: usize = 9;

/// Appends a message as an unsequenced frame, and says where the message begins.
fn frame(message: &[u8], out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&soup::header(soup::UNSEQUENCED, message.len()));
    out.extend_from_slice(message);
    out.len() - message.len()
}

#[cfg(test)]
mod tests {
    use weir_proto::ouch::{Accepted, Appendage, Cancel, ClientOrderId, Enter, Inbound, Outbound, Symbol};

    use super::*;

    const LIMITS: LedgerLimits = LedgerLimits { open_max: 4, unanswered_max: 3, when_full: WhenFull::Refuse };

    fn origin(account: u32, user_ref_num: u32) -> Origin {
        Origin { account: AccountId(account), user_ref_num, home: 0, received_ns: 0 }
    }

    fn enter(user_ref_num: u32, quantity: u32) -> Vec<u8> {
        let order = Enter {
            user_ref_num,
            side: b'B',
            quantity,
            symbol: Symbol(*b"WEIR    "),
            price: 10_000,
            time_in_force: b'0',
            display: b'Y',
            capacity: b'P',
            intermarket_sweep: b'N',
            cross_type: b'N',
            client_order_id: ClientOrderId(*b"              "),
        };
        let mut bytes = Vec::new();
        Inbound::Enter(order, Appendage::default()).encode(&mut bytes);
        bytes
    }

    fn replace(original: u32, number: u32, quantity: u32) -> Vec<u8> {
        let mut bytes = vec![b' '; 40];
        bytes[0] = b'U';
        bytes[1..5].copy_from_slice(&original.to_be_bytes());
        bytes[5..9].copy_from_slice(&number.to_be_bytes());
        bytes[9..13].copy_from_slice(&quantity.to_be_bytes());
        bytes[38..40].copy_from_slice(&[0, 0]);
        bytes
    }

    fn cancel(user_ref_num: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        Inbound::Cancel(Cancel { user_ref_num, quantity: 0 }).encode(&mut bytes);
        bytes
    }

    fn accepted(user_ref_num: u32, order_state: u8) -> Vec<u8> {
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
            client_order_id: ClientOrderId(*b"              "),
        });
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        bytes
    }

    fn reduced(kind: u8, user_ref_num: u32, by: u32) -> Vec<u8> {
        let mut bytes = vec![
            0;
            match kind {
                b'C' => 18,
                b'J' => 29,
                _ => 36,
            }
        ];
        bytes[0] = kind;
        bytes[9..13].copy_from_slice(&user_ref_num.to_be_bytes());
        bytes[13..17].copy_from_slice(&by.to_be_bytes());
        bytes
    }

    fn replaced(original: u32, number: u32, quantity: u32) -> Vec<u8> {
        let mut bytes = vec![0; 68];
        bytes[0] = b'U';
        bytes[9..13].copy_from_slice(&original.to_be_bytes());
        bytes[13..17].copy_from_slice(&number.to_be_bytes());
        bytes[18..22].copy_from_slice(&quantity.to_be_bytes());
        bytes[51] = b'L';
        bytes
    }

    fn number_at(message: &[u8], at: usize) -> u32 {
        u32::from_be_bytes(message[at..at + 4].try_into().expect("four bytes"))
    }

    fn answer(ledger: &mut Ledger, mut raw: Vec<u8>) -> Option<(Answer, Vec<u8>)> {
        let message = Outbound::decode(&raw).expect("a message").0;
        ledger.answer(&message, &mut raw).map(|answer| (answer, raw))
    }

    #[test]
    fn numbers_are_exchanged_on_the_way_out_and_back() {
        let mut ledger = Ledger::new(50, LIMITS);
        let mut out = Vec::new();
        assert_eq!(ledger.send(origin(3, 7), &enter(7, 100), &mut out), Sending::Numbered(50));
        assert_eq!(out[..3], [0, 48, b'U']);
        assert_eq!(inbound_user_ref_num(&out[3..]), Some(50));
        let (found, raw) = answer(&mut ledger, accepted(50, b'L')).expect("it is known");
        assert_eq!((found.origin.account, outbound_user_ref_num(&raw)), (AccountId(3), Some(7)));
        assert_eq!(answer(&mut ledger, accepted(51, b'L')), None, "nobody sent that");
    }

    #[test]
    fn an_order_is_open_until_its_last_share_is_gone() {
        let mut ledger = Ledger::new(1, LIMITS);
        let mut out = Vec::new();
        ledger.send(origin(0, 1), &enter(1, 100), &mut out);
        answer(&mut ledger, accepted(1, b'L'));
        answer(&mut ledger, reduced(b'E', 1, 60));
        assert_eq!(ledger.open(), 1);
        assert_eq!(ledger.send(origin(0, 1), &cancel(1), &mut out), Sending::Passed(1));
        answer(&mut ledger, reduced(b'C', 1, 40));
        assert_eq!(ledger.open(), 0);
        assert_eq!(ledger.send(origin(0, 1), &cancel(1), &mut out), Sending::Unknown);
    }

    #[test]
    fn a_rejected_or_dead_order_is_not_open() {
        let mut ledger = Ledger::new(1, LIMITS);
        let mut out = Vec::new();
        for number in 1..=2 {
            ledger.send(origin(0, number), &enter(number, 100), &mut out);
        }
        answer(&mut ledger, accepted(1, b'D'));
        answer(&mut ledger, reduced(b'J', 2, 0));
        assert_eq!((ledger.open(), ledger.unanswered()), (0, 0));
    }

    #[test]
    fn what_was_not_answered_is_sent_again_with_its_number() {
        let mut ledger = Ledger::new(10, LIMITS);
        let mut sent = Vec::new();
        for number in 1..=3 {
            ledger.send(origin(0, number), &enter(number, 100), &mut sent);
        }
        assert!(ledger.is_full());
        answer(&mut ledger, accepted(10, b'L'));
        assert!(!ledger.is_full());
        let mut again = Vec::new();
        assert_eq!(ledger.resend(&mut again), 2);
        assert_eq!(again, sent[sent.len() / 3..]);
        // An answer to a number speaks for those before it.
        answer(&mut ledger, accepted(12, b'L'));
        assert_eq!(ledger.unanswered(), 0);
    }

    #[test]
    fn an_order_has_the_time_it_was_handed_to_the_connection_until_its_first_answer() {
        let mut ledger = Ledger::new(10, LIMITS);
        let mut out = Vec::new();
        for number in 1..=3 {
            let origin = Origin { received_ns: u64::from(number), ..origin(0, number) };
            ledger.send(origin, &enter(number, 100), &mut out);
        }
        let mut received = Vec::new();
        ledger.stamp(11, 12, 77, |received_ns| received.push(received_ns));
        assert_eq!(received, [2, 3]);
        let sent_ns = |found: Option<(Answer, Vec<u8>)>| found.expect("it is known").0.sent_ns;
        assert_eq!(sent_ns(answer(&mut ledger, accepted(10, b'L'))), 0, "it was not handed over");
        assert_eq!(sent_ns(answer(&mut ledger, accepted(11, b'L'))), 77);
        assert_eq!(sent_ns(answer(&mut ledger, reduced(b'E', 11, 1))), 0, "that is not the first");
    }

    #[test]
    fn a_replace_moves_the_order_to_its_new_number() {
        let mut ledger = Ledger::new(1, LIMITS);
        let mut out = Vec::new();
        ledger.send(origin(0, 11), &enter(11, 100), &mut out);
        answer(&mut ledger, accepted(1, b'L'));
        out.clear();
        assert_eq!(ledger.send(origin(0, 12), &replace(11, 12, 50), &mut out), Sending::Numbered(2));
        assert_eq!((number_at(&out[3..], 1), number_at(&out[3..], 5)), (1, 2));
        let (_, raw) = answer(&mut ledger, replaced(1, 2, 50)).expect("it is known");
        assert_eq!((number_at(&raw, 9), number_at(&raw, 13)), (11, 12));
        assert_eq!(ledger.open(), 1);
        answer(&mut ledger, reduced(b'E', 2, 50));
        assert_eq!(ledger.open(), 0);
    }

    #[test]
    fn a_replace_the_exchange_ignored_is_forgotten_when_a_later_order_is_answered() {
        let mut ledger = Ledger::new(1, LIMITS);
        let mut out = Vec::new();
        ledger.send(origin(0, 1), &enter(1, 100), &mut out);
        ledger.send(origin(0, 2), &replace(1, 2, 50), &mut out);
        ledger.send(origin(0, 3), &enter(3, 100), &mut out);
        answer(&mut ledger, accepted(3, b'L'));
        assert_eq!((ledger.open(), ledger.unanswered()), (2, 0));
    }

    #[test]
    fn one_open_order_too_many_is_refused_or_the_oldest_is_forgotten() {
        let mut out = Vec::new();
        let mut ledger = Ledger::new(1, LIMITS);
        for number in 1..=4 {
            assert_eq!(
                ledger.send(origin(0, number), &enter(number, 100), &mut out),
                Sending::Numbered(number)
            );
        }
        assert_eq!(ledger.send(origin(0, 5), &enter(5, 100), &mut out), Sending::Full);
        let mut ledger = Ledger::new(1, LedgerLimits { when_full: WhenFull::ForgetOldest, ..LIMITS });
        for number in 1..=9 {
            assert_eq!(
                ledger.send(origin(0, number), &enter(number, 100), &mut out),
                Sending::Numbered(number)
            );
        }
        assert_eq!(ledger.open(), 4);
        assert_eq!(answer(&mut ledger, accepted(5, b'L')), None);
        assert!(answer(&mut ledger, accepted(6, b'L')).is_some());
    }

    #[test]
    fn an_old_open_order_outlives_many_that_ended() {
        let mut ledger = Ledger::new(1, LIMITS);
        let mut out = Vec::new();
        ledger.send(origin(0, 1), &enter(1, 100), &mut out);
        answer(&mut ledger, accepted(1, b'L'));
        for number in 2..=20 {
            ledger.send(origin(0, number), &enter(number, 100), &mut out);
            answer(&mut ledger, accepted(number, b'D'));
        }
        assert_eq!(ledger.open(), 1);
        assert!(answer(&mut ledger, reduced(b'E', 1, 100)).is_some());
        assert_eq!(ledger.open(), 0);
    }

    #[test]
    fn every_open_order_of_an_account_is_cancelled_in_order() {
        let mut ledger = Ledger::new(1, LIMITS);
        let mut out = Vec::new();
        for (account, number) in [(0, 1), (1, 1), (0, 2)] {
            ledger.send(origin(account, number), &enter(number, 100), &mut out);
        }
        out.clear();
        assert_eq!(ledger.last_number(), 3);
        assert_eq!(ledger.cancel_all(Some(AccountId(0)), 3, &mut out), 2);
        assert_eq!((number_at(&out[3..], 1), number_at(&out[15..], 1)), (1, 3));
        assert_eq!(ledger.cancel_all(None, 3, &mut Vec::new()), 3);
        assert_eq!(ledger.cancel_all(None, 2, &mut Vec::new()), 2, "a later one is not meant");
        assert_eq!(ledger.cancel_all(Some(AccountId(1)), 1, &mut Vec::new()), 0);
    }

    #[test]
    fn a_replace_dies_with_its_original_and_gives_its_number_back() {
        // Cancelled because of the replace, or executed before it: there is no word about the replace itself.
        for kind in [b'C', b'E'] {
            let mut ledger = Ledger::new(1, LIMITS);
            let mut out = Vec::new();
            ledger.send(origin(0, 1), &enter(1, 100), &mut out);
            answer(&mut ledger, accepted(1, b'L'));
            ledger.send(origin(0, 2), &replace(1, 2, 0), &mut out);
            ledger.send(origin(0, 3), &replace(2, 3, 50), &mut out);
            assert_eq!((ledger.open(), ledger.unanswered()), (3, 2));
            assert!(answer(&mut ledger, reduced(kind, 1, 100)).is_some());
            assert_eq!((ledger.open(), ledger.unanswered()), (0, 0));
            let mut ignored: Vec<u32> = ledger.take_ignored().iter().map(|it| it.user_ref_num).collect();
            ignored.sort_unstable();
            assert_eq!(ignored, [2, 3]);
            assert!(ledger.take_ignored().is_empty());
        }
    }

    #[test]
    fn a_confirmed_replace_outlives_its_original() {
        let mut ledger = Ledger::new(1, LIMITS);
        let mut out = Vec::new();
        ledger.send(origin(0, 1), &enter(1, 100), &mut out);
        ledger.send(origin(0, 2), &replace(1, 2, 50), &mut out);
        ledger.send(origin(0, 3), &replace(1, 3, 60), &mut out);
        answer(&mut ledger, accepted(1, b'L'));
        answer(&mut ledger, replaced(1, 2, 50));
        assert_eq!((ledger.open(), ledger.unanswered()), (1, 0), "the other one had lost its original");
        assert_eq!(ledger.take_ignored(), [origin(0, 3)]);
    }

    #[test]
    fn a_replace_whose_original_is_over_when_it_is_restored_names_no_order() {
        let mut ledger = Ledger::new(1, LIMITS);
        assert!(ledger.restore(70, origin(0, 1), &enter(1, 100)));
        ledger.restore_answer(AccountId(0), &accepted(1, b'L'));
        ledger.restore_answer(AccountId(0), &reduced(b'E', 1, 100));
        assert!(ledger.restore(71, origin(0, 2), &replace(1, 2, 50)));
        let mut out = Vec::new();
        assert_eq!(ledger.resend(&mut out), 1);
        assert_eq!((number_at(&out[3..], 1), number_at(&out[3..], 5)), (0, 71), "1 may be another client's");
    }

    #[test]
    fn a_restored_replace_dies_with_its_original() {
        let mut ledger = Ledger::new(1, LIMITS);
        assert!(ledger.restore(70, origin(0, 1), &enter(1, 100)));
        assert!(ledger.restore(71, origin(0, 2), &replace(1, 2, 50)));
        ledger.restore_answer(AccountId(0), &accepted(1, b'L'));
        ledger.restore_answer(AccountId(0), &reduced(b'E', 1, 100));
        assert_eq!((ledger.open(), ledger.unanswered()), (0, 0));
    }

    fn cancel_to(user_ref_num: u32, quantity: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        Inbound::Cancel(Cancel { user_ref_num, quantity }).encode(&mut bytes);
        bytes
    }

    /// Kind and number of every message.
    fn kinds(mut frames: &[u8]) -> Vec<(u8, u32)> {
        let mut found = Vec::new();
        while let [high, low, _, rest @ ..] = frames {
            let (message, next) = rest.split_at(usize::from(u16::from_be_bytes([*high, *low])) - 1);
            let at = if message[0] == b'U' { 5 } else { 1 };
            found.push((message[0], number_at(message, at)));
            frames = next;
        }
        found
    }

    #[test]
    fn a_cancel_is_said_again_where_it_was_said_as_long_as_its_order_lives() {
        let mut ledger = Ledger::new(10, LIMITS);
        let mut out = Vec::new();
        ledger.send(origin(0, 1), &enter(1, 100), &mut out);
        ledger.send(origin(0, 2), &enter(2, 100), &mut out);
        answer(&mut ledger, accepted(11, b'L'));
        ledger.send(origin(0, 1), &cancel_to(1, 80), &mut out);
        ledger.send(origin(0, 1), &cancel_to(1, 50), &mut out);
        ledger.send(origin(0, 1), &cancel_to(1, 60), &mut out);
        ledger.send(origin(0, 3), &replace(1, 3, 70), &mut out);
        ledger.send(origin(0, 2), &cancel(2), &mut out);
        let mut again = Vec::new();
        assert_eq!(ledger.resend(&mut again), 3);
        assert_eq!(kinds(&again), [(b'X', 10), (b'U', 12), (b'X', 11)]);
        assert_eq!(number_at(&again[3..], 5), 50, "the one that leaves least");
        answer(&mut ledger, reduced(b'C', 11, 100));
        answer(&mut ledger, replaced(10, 12, 70));
        again.clear();
        assert_eq!((ledger.resend(&mut again), ledger.passed.len()), (0, 0));
    }

    #[test]
    fn cancels_of_orders_that_were_forgotten_do_not_pile_up() {
        let mut ledger = Ledger::new(1, LedgerLimits { when_full: WhenFull::ForgetOldest, ..LIMITS });
        let mut out = Vec::new();
        for number in 1..=1000 {
            ledger.send(origin(0, number), &enter(number, 100), &mut out);
            ledger.send(origin(0, number), &cancel(number), &mut out);
            assert!(ledger.passed.len() <= PASSED_SLACK + 2 * 4);
        }
    }

    #[test]
    fn a_journal_gives_the_ledger_back() {
        let mut ledger = Ledger::new(1, LIMITS);
        let mut out = Vec::new();
        let mut journal = Vec::new();
        for client in 101..=103 {
            let raw = enter(client, 100);
            let Sending::Numbered(number) = ledger.send(origin(0, client), &raw, &mut out) else {
                panic!("there is room")
            };
            journal.push((number, client, raw));
        }
        let (_, first) = answer(&mut ledger, accepted(1, b'L')).expect("it is known");
        let mut again = Ledger::new(1, LIMITS);
        for (number, client, raw) in &journal {
            assert!(again.restore(*number, origin(0, *client), raw));
        }
        again.restore_answer(AccountId(0), &first);
        assert_eq!((again.open(), again.unanswered(), again.translation.next()), (3, 2, 4));
        let (mut sent, mut sent_again) = (Vec::new(), Vec::new());
        ledger.resend(&mut sent);
        again.resend(&mut sent_again);
        assert_eq!(sent, sent_again);
    }
}
