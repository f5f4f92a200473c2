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

    /// What the order shall come to.
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

    /// Orders that are open, or may be, with the shares that are left of those the exchange accepted.
    pub(super) fn open_orders(&self) -> impl Iterator<Item = (Origin, Option<u32>)> {
        let orders = self.translation.all_open_orders();
        orders.map(|(number, origin)| (origin, self.translation.shares_of(number)))
    }

    /// Whether an open order is of a client of another worker than this one.
    pub(super) fn has_orders_of_others(&self, worker: usize) -> bool {
        self.open_orders().any(|(origin, _)| usize::from(origin.home) != worker)
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
        self.keep_used();
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
            self.keep_used();
        }
    }

    /// Of what a journal tells, no number is given back: that was done when it happened, and the client may have used
    /// it for another order since. Given back again, that order would be taken twice.
    fn keep_used(&mut self) {
        self.ignored.clear();
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
mod tests;
