//! The messages that one upstream session has sent, and their outcome: the owner of each number, and the messages to
//! resend after a lost connection. Pure: no socket, no clock.
//!
//! The exchange handles the messages of a session in order, so an answer to one number shows that every lower one was
//! handled too. Messages without such evidence are kept as they were sent, and are resent with the same numbers after
//! a lost connection; the exchange ignores those it knows.
//!
//! A replace of an order that ends first is silently ignored: it ends with its original. Cancels and changes have no
//! number, so nothing shows that they were handled. They state the resulting size, not a difference, and may be sent
//! twice: the last ones of each order are resent too, as long as the order is open.
//!
//! An order ends here, without a message from the exchange, in these cases: the exchange has begun another session;
//! an unanswered order is not resent, because it is too old or is to be cancelled; it is to be cancelled and was
//! never sent; or an operator gave it up. Its client is informed ([`Expiry`]). If the exchange has the order after
//! all, it is cancelled there.

mod messages;
mod restore;
mod saved;
mod upstream_number;
mod withdrawn;

use std::{
    collections::{BTreeMap, VecDeque},
    ops::{Range, RangeInclusive},
};

use foldhash::HashMap;
use weir_proto::{
    ouch::{
        Cancel, Inbound, Outbound, reject_reason, set_outbound_original_user_ref_num,
        set_outbound_user_ref_num,
    },
    soup,
};
use weir_trading::{AccountId, LiveOrder, Origin, UpstreamNumbers, WhenFull};

use super::{order_owners::Owners, unsolicited_cancels::Expiry};

use messages::{About, Passed, Unanswered};

/// Limits of [`OutstandingOrders`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutstandingLimits {
    /// Orders open at once.
    pub open_max: usize,
    /// Orders sent and unanswered; more are refused.
    pub unanswered_max: usize,
    /// What to do with an open order too many.
    pub when_full: WhenFull,
    /// An unanswered order that is older is refused instead of resent, and so is an unsent one that has waited for
    /// longer than that, and for more than a second.
    pub resend_age_max_ns: u64,
}

impl Default for OutstandingLimits {
    fn default() -> Self {
        Self {
            open_max: 1 << 16,
            unanswered_max: 4096,
            when_full: WhenFull::Refuse,
            resend_age_max_ns: 60_000_000_000,
        }
    }
}

/// The result for a client's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sending {
    /// Send it; it has this number upstream.
    Numbered(u32),
    /// Send it; it is about the order with this number.
    Passed(u32),
    /// It is about an order that is not open: nothing is sent.
    Unknown,
    /// There is no room for another open order, or no number left.
    Full,
}

/// An answer from upstream; the message contains the client's numbers now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Response {
    /// The client order.
    pub(super) origin: Origin,
    /// When its order was handed to the connection, if this is its first answer and the time is known; otherwise
    /// zero.
    pub(super) sent_ns: u64,
    /// It is an execution of more shares than were left in the order, possibly none.
    pub(super) is_overfill: bool,
}

/// The orders of one upstream session.
pub(super) struct OutstandingOrders {
    limits: OutstandingLimits,
    upstream_numbers: UpstreamNumbers,
    /// Includes ended orders.
    owners: Owners,
    unanswered: VecDeque<Unanswered>,
    /// By number: unanswered messages that are not resent, because they are too old or are to be cancelled. An answer
    /// to a later number shows nothing about these. Their number is limited to the open orders at each resend.
    skipped: BTreeMap<u32, Unanswered>,
    /// By number of an order. For open orders, and for some forgotten ones.
    passed: HashMap<u32, About>,
    passed_count: u64,
    /// Replaces that will not be answered, and have not been taken. At most as many as may be open.
    ignored: Vec<Origin>,
    /// Orders that ended only here. At most as many as may be open.
    given_up: Vec<u32>,
    /// The session has begun anew, and it is unknown yet which numbers its exchange knows.
    is_new: bool,
    /// The exchange has handled every number below this one that was ever sent to it.
    handled: u32,
    /// Messages of the exchange are missing, possibly answers.
    has_gap: bool,
    /// By account: the highest number with an answer in a journal.
    answered: Vec<u32>,
    /// Answers in journals since the last sweep.
    answers_unswept: usize,
}

/// Memory for this many unanswered messages is reserved from the start; it grows up to the maximum when needed.
/// Usually there are fewer, and a small ring of memory stays in the cache.
const UNANSWERED_RESERVED: usize = 256;

/// This many orders that are not open may be in [`OutstandingOrders::passed`] before they are removed.
const PASSED_SLACK: usize = 64;

impl OutstandingOrders {
    /// Creates an empty set; the first one gets the number `next`.
    pub(super) fn new(next: u32, limits: OutstandingLimits) -> Self {
        Self {
            upstream_numbers: UpstreamNumbers::with_policy(next, limits.open_max, limits.when_full),
            owners: Owners::default(),
            unanswered: VecDeque::with_capacity(limits.unanswered_max.min(UNANSWERED_RESERVED)),
            skipped: BTreeMap::new(),
            passed: HashMap::default(),
            passed_count: 0,
            ignored: Vec::new(),
            given_up: Vec::new(),
            is_new: false,
            handled: 0,
            has_gap: false,
            answered: Vec::new(),
            answers_unswept: 0,
            limits,
        }
    }

    /// Its limits.
    pub(super) fn limits(&self) -> OutstandingLimits {
        self.limits
    }

    /// The number of orders that are open, or may be.
    pub(super) fn open(&self) -> usize {
        self.upstream_numbers.len()
    }

    /// The number of unanswered numbered messages.
    pub(super) fn unanswered(&self) -> usize {
        self.unanswered.len() + self.skipped.len()
    }

    /// Whether the maximum of unanswered messages is reached. Messages that are not resent do not count.
    pub(super) fn is_full(&self) -> bool {
        self.unanswered.len() >= self.limits.unanswered_max
    }

    /// The exchange expects `next`: numbers below it are used. Within a session numbers never decrease.
    pub(super) fn raise_next(&mut self, next: u32) {
        if std::mem::take(&mut self.is_new) {
            // An order whose number the exchange has never received needs no cancel, and another order will use the
            // number.
            self.given_up.retain(|number| *number < next);
        }
        self.handled = next.max(self.handled);
        self.upstream_numbers.advance(next);
    }

    /// Records that messages of the exchange are no longer available.
    pub(super) fn note_gap(&mut self) {
        self.has_gap = true;
    }

    /// An order that was handled and whose answer is missing was probably accepted as it was sent: so it ends with
    /// its last share. If the exchange does not have it, the answer to the resend will show that.
    fn accept_missed(&mut self) {
        let handled = self.handled;
        for sent in self.unanswered.iter_mut().filter(|sent| sent.number < handled) {
            self.upstream_numbers.assume(sent.number, sent.quantity);
            // Its answer is missing; it was not skipped.
            sent.is_restored = false;
        }
    }

    /// The exchange has begun another session: none of these orders continues in it, and numbers start again. Returns
    /// the messages for their clients.
    pub(super) fn begin_anew(&mut self) -> Vec<Expiry> {
        let expiries = self.expiries();
        let given_up = self.upstream_numbers.all_open_orders().map(|(number, _)| number).collect();
        // An exchange that has lost only the end of its session still knows some of them.
        let owners = std::mem::take(&mut self.owners);
        *self = Self { given_up, owners, is_new: true, ..Self::new(1, self.limits) };
        expiries
    }

    /// The messages for clients if all open orders end. At a venue that forgets orders, the end of an accepted one is
    /// not expected.
    pub(super) fn expiries(&self) -> Vec<Expiry> {
        let numbers: Vec<u32> = self.upstream_numbers.all_open_orders().map(|(number, _)| number).collect();
        let is_forgetful = self.limits.when_full == WhenFull::ForgetOldest;
        let mut all = self.expiries_of(&numbers);
        all.retain(|expiry| expiry.left.is_none() || !is_forgetful);
        all
    }

    /// The messages for clients if the orders with these numbers, in rising order, end. Unanswered replacements are
    /// reported first, the last ones before the others: for a later start, the end of an order implies the end of its
    /// replacements, and a kill may come between.
    fn expiries_of(&self, numbers: &[u32]) -> Vec<Expiry> {
        let is_replacement = |number: &u32| self.upstream_numbers.original_of(*number).is_some();
        let replacements = numbers.iter().rev().filter(|number| is_replacement(number));
        let others = numbers.iter().filter(|number| !is_replacement(number));
        let expiry = |number: &u32| Some(self.expiry(*number, self.upstream_numbers.origin_of(*number)?));
        replacements.chain(others).filter_map(expiry).collect()
    }

    fn expiry(&self, number: u32, origin: Origin) -> Expiry {
        let place = self.unanswered.binary_search_by_key(&number, |sent| sent.number);
        let sent = place.map_or_else(|_| self.skipped.get(&number), |place| self.unanswered.get(place));
        let id = sent.map(|sent| sent.client_order_id);
        let refusal = sent.map_or(reject_reason::DESTINATION_CLOSED, |sent| sent.refusal);
        Expiry::new(origin, self.upstream_numbers.shares_of(number), id).refused_with(refusal)
    }

    /// Ends clients' orders that are open here. Returns the messages for their clients.
    pub(super) fn give_up(&mut self, orders: impl IntoIterator<Item = (AccountId, u32)>) -> Vec<Expiry> {
        let number = |(account, user_ref_num)| self.upstream_numbers.upstream_of(account, user_ref_num);
        let mut numbers: Vec<u32> = orders.into_iter().filter_map(number).collect();
        numbers.sort_unstable();
        let expiries = self.expiries_of(&numbers);
        self.end_here(&numbers);
        expiries
    }

    /// Ends unanswered orders that were not resent, and appends cancels of them.
    pub(super) fn take_stale(&mut self, cancels: &mut Vec<u8>) -> Vec<Expiry> {
        let stale: Vec<u32> = self.skipped.keys().copied().collect();
        let expiries = self.expiries_of(&stale);
        self.end_here(&stale);
        stale.iter().for_each(|number| append_cancel(*number, 0, cancels));
        expiries
    }

    /// Whether an order waits to be sent or to be answered, and is not set aside.
    pub(super) fn awaits(&self, number: u32) -> bool {
        self.unanswered.binary_search_by_key(&number, |sent| sent.number).is_ok()
    }

    /// Ends the orders with these numbers, in rising order, and remembers that the exchange may have them.
    fn end_here(&mut self, numbers: &[u32]) {
        self.end_all(numbers);
        self.given_up.extend(numbers);
        let surplus = self.given_up.len().saturating_sub(self.limits.open_max);
        self.given_up.drain(..surplus);
    }

    /// Ends the orders with these numbers, in rising order.
    fn end_all(&mut self, numbers: &[u32]) {
        // A replacement before its original: otherwise it would end silently with that.
        numbers.iter().rev().for_each(|number| self.upstream_numbers.finish(*number));
        self.forget(numbers);
        self.bury_orphans();
    }

    /// Appends cancels of the orders that ended only here, in case the exchange has them after all. Returns their
    /// number.
    pub(super) fn cancel_given_up(&self, out: &mut Vec<u8>) -> u64 {
        self.given_up.iter().for_each(|number| append_cancel(*number, 0, out));
        self.given_up.len() as u64
    }

    /// The account of an open or ended order.
    pub(super) fn account_of(&self, number: u32) -> Option<AccountId> {
        self.upstream_numbers
            .origin_of(number)
            .or_else(|| self.owners.of(number))
            .map(|origin| origin.account)
    }

    /// What the exchange says about orders that have ended concerns nobody from now on.
    pub(super) fn forget_ended_orders(&mut self) {
        self.owners = Owners::default();
    }

    /// Whether this client's order is open here.
    pub(super) fn knows(&self, account: AccountId, user_ref_num: u32) -> bool {
        self.upstream_numbers.upstream_of(account, user_ref_num).is_some()
    }

    /// The number of this client's open order.
    pub(super) fn number_of(&self, account: AccountId, user_ref_num: u32) -> Option<u32> {
        self.upstream_numbers.upstream_of(account, user_ref_num)
    }

    /// Whether the order with this number is open.
    pub(super) fn is_open(&self, number: u32) -> bool {
        self.upstream_numbers.origin_of(number).is_some()
    }

    /// Whether a cancel of all shares of the order with this number was sent, or will be.
    pub(super) fn has_cancel(&self, number: u32) -> bool {
        let cancel = self.passed.get(&number).and_then(|about| about.cancel);
        cancel.is_some_and(|cancel| cancel.quantity == 0)
    }

    /// See [`UpstreamNumbers::live_in`].
    pub(super) fn live_in(&self, places: Range<u32>) -> impl Iterator<Item = LiveOrder> + '_ {
        self.upstream_numbers.live_in(places)
    }

    /// See [`UpstreamNumbers::places`].
    pub(super) fn places(&self) -> u32 {
        self.upstream_numbers.places()
    }

    /// Orders that are open, or may be, with the remaining shares of the accepted ones.
    pub(super) fn open_orders(&self) -> impl Iterator<Item = (Origin, Option<u32>)> {
        let orders = self.upstream_numbers.all_open_orders();
        orders.map(|(number, origin)| (origin, self.upstream_numbers.shares_of(number)))
    }

    /// The original of an unconfirmed replacement, in the client's numbers.
    pub(super) fn original_of(&self, account: AccountId, user_ref_num: u32) -> Option<u32> {
        let number = self.upstream_numbers.upstream_of(account, user_ref_num)?;
        self.upstream_numbers.original_of(number).map(|origin| origin.user_ref_num)
    }

    /// Whether there is an open order of another worker's client.
    pub(super) fn has_orders_of_others(&self, worker: usize) -> bool {
        self.open_orders().any(|(origin, _)| usize::from(origin.home) != worker)
    }

    /// Applies an answer and writes the client's numbers into it. `None`: it is about no known order. For an order
    /// that has ended, only messages about its trades count as answers. `message` is the decoded form of `raw`.
    pub(super) fn apply_response(&mut self, message: &mut Outbound, raw: &mut [u8]) -> Option<Response> {
        let original = match message {
            Outbound::Replaced(replaced) => self.upstream_numbers.origin_of(replaced.original_user_ref_num),
            _ => None,
        };
        let is_overfill = match message {
            Outbound::Executed(executed) => {
                let left = self.upstream_numbers.shares_of(executed.user_ref_num);
                left.is_some_and(|left| executed.quantity > left)
            }
            _ => false,
        };
        let sent_ns = self.acknowledge(message.user_ref_num()?);
        let origin = self.upstream_numbers.apply(message);
        self.bury(message);
        let is_late = origin.is_none();
        let origin = origin.or_else(|| self.owners.of(traded_order(message)?))?;
        // A forgotten order is not known to have ended.
        let is_overfill = is_overfill
            || is_late
                && self.limits.when_full == WhenFull::Refuse
                && matches!(message, Outbound::Executed(_));
        // An unknown original has no number that the client would recognise.
        let original = original.map_or(0, |original| original.user_ref_num);
        message.set_user_ref_nums(origin.user_ref_num, original);
        set_outbound_user_ref_num(raw, origin.user_ref_num);
        set_outbound_original_user_ref_num(raw, original);
        Some(Response { origin, sent_ns, is_overfill })
    }

    /// The numbers `from..=to` were handed to the connection now. `received` gets the time when each of them had
    /// arrived.
    pub(super) fn stamp(&mut self, from: u32, to: u32, now_ns: u64, mut received: impl FnMut(u64)) {
        let start = self.unanswered.partition_point(|sent| sent.number < from);
        for sent in self.unanswered.range_mut(start..).take_while(|sent| sent.number <= to) {
            sent.sent_ns = now_ns;
            received(sent.received_ns);
        }
    }

    /// Whether an unanswered message was not resent.
    pub(super) fn has_stale(&self) -> bool {
        !self.skipped.is_empty()
    }

    /// Sets aside the messages that must not be resent; `refusal` returns the reason for which each is then refused.
    /// Returns whether there are any.
    fn set_aside(&mut self, refusal: impl Fn(&Unanswered) -> Option<u16>) -> bool {
        let is_any = self.unanswered.iter().any(|sent| refusal(sent).is_some());
        let all = if is_any { std::mem::take(&mut self.unanswered) } else { VecDeque::new() };
        for mut sent in all {
            let Some(reason) = refusal(&sent) else {
                self.unanswered.push_back(sent);
                continue;
            };
            (sent.refusal, sent.resend_until_ns) = (reason, 0);
            self.skipped.insert(sent.number, sent);
        }
        // Forgotten orders are not reported.
        self.skipped.retain(|number, _| self.upstream_numbers.origin_of(*number).is_some());
        is_any
    }

    /// Appends every message that is unanswered and not too old, and every one that is never answered, as it was
    /// sent, in order. Returns their number. `withheld` returns the reason for which an order is refused instead, if
    /// the exchange does not have it: it is one that is to be cancelled.
    pub(super) fn resend(
        &mut self,
        now_ns: u64,
        withheld: impl Fn(u32, AccountId) -> Option<u16>,
        out: &mut Vec<u8>,
    ) -> u64 {
        self.set_aside(|sent| {
            let is_stale = sent.resend_until_ns < now_ns;
            let stale = is_stale.then_some(reject_reason::DESTINATION_CLOSED);
            withheld(sent.number, sent.account).or(stale)
        });
        let of_open =
            self.passed.iter().filter(|(number, _)| self.upstream_numbers.origin_of(**number).is_some());
        let mut passed: Vec<&Passed> =
            of_open.flat_map(|(_, about)| [&about.cancel, &about.change]).flatten().collect();
        passed.sort_unstable_by_key(|passed| passed.place);
        let mut count = passed.len() as u64;
        let mut passed = passed.into_iter().peekable();
        for unanswered in &self.unanswered {
            while let Some(earlier) = passed.next_if(|passed| passed.after < unanswered.number) {
                frame(earlier.message(), out);
            }
            frame(unanswered.message(), out);
            count += 1;
        }
        for later in passed {
            frame(later.message(), out);
        }
        if std::mem::take(&mut self.has_gap) {
            self.accept_missed();
        } else {
            self.set_aside_passed_over();
        }
        count
    }

    /// An earlier start may have sent the messages behind an order without the order itself: then the exchange
    /// ignores it, and it is refused unless the exchange still sends an answer to it. Returns whether there are any.
    pub(super) fn set_aside_passed_over(&mut self) -> bool {
        let handled = self.handled;
        let is_it = |sent: &Unanswered| sent.is_restored && sent.number < handled && !sent.is_replace();
        self.set_aside(|sent| is_it(sent).then_some(reject_reason::DESTINATION_CLOSED))
    }

    /// Whether an unanswered message would not be resent now: see [`Self::resend`].
    pub(super) fn refuses(&self, now_ns: u64, withheld: impl Fn(u32, AccountId) -> Option<u16>) -> bool {
        let is_it = |sent: &Unanswered| {
            sent.resend_until_ns < now_ns || withheld(sent.number, sent.account).is_some()
        };
        !self.skipped.is_empty() || self.unanswered.iter().any(is_it)
    }

    /// Appends the cancels that clients have sent of open orders with numbers up to this one. Returns their number.
    pub(super) fn resend_cancels(&self, through: u32, out: &mut Vec<u8>) -> u64 {
        let mut count = 0;
        for (number, about) in &self.passed {
            if let Some(cancel) = about.cancel.filter(|_| *number <= through)
                && self.upstream_numbers.origin_of(*number).is_some()
            {
                frame(cancel.message(), out);
                count += 1;
            }
        }
        count
    }

    /// The replaces that the exchange has ignored since the last call: their numbers are not used up.
    pub(super) fn take_ignored(&mut self) -> Vec<Origin> {
        std::mem::take(&mut self.ignored)
    }

    /// Removes the messages kept for orders that a message has ended.
    fn bury(&mut self, message: &Outbound) {
        self.bury_orphans();
        if self.passed.is_empty() {
            return;
        }
        if let Some(number) = message.user_ref_num()
            && self.upstream_numbers.origin_of(number).is_none()
        {
            self.passed.remove(&number);
        }
        if let Outbound::Replaced(replaced) = message {
            self.passed.remove(&replaced.original_user_ref_num);
        }
    }

    /// A replace that was unconfirmed when its original ended will not be answered. If the exchange had handled it
    /// first, its confirmation would have come first.
    fn bury_orphans(&mut self) {
        let orphans = self.upstream_numbers.take_orphans();
        if orphans.is_empty() {
            return;
        }
        let mut numbers: Vec<u32> = orphans.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        self.forget(&numbers);
        self.ignore(orphans.into_iter().map(|(_, origin)| origin));
    }

    /// Records replaces that will not be answered. For an account with several, only the last number can be released,
    /// so the first ones are dropped if there are too many: an exchange may be silent for a long time.
    fn ignore(&mut self, replaces: impl IntoIterator<Item = Origin>) {
        self.ignored.extend(replaces);
        let surplus = self.ignored.len().saturating_sub(self.limits.open_max);
        self.ignored.drain(..surplus);
    }

    /// Removes the messages with these numbers, in rising order.
    fn forget(&mut self, numbers: &[u32]) {
        self.unanswered.retain(|sent| numbers.binary_search(&sent.number).is_err());
        self.skipped.retain(|number, _| numbers.binary_search(number).is_err());
        self.passed.retain(|number, _| numbers.binary_search(number).is_err());
    }

    /// The last number assigned; 0 if there is none.
    pub(super) fn last_number(&self) -> u32 {
        self.upstream_numbers.next().wrapping_sub(1)
    }

    /// Appends cancels of the open orders with these numbers, of an account or of all accounts, and returns their
    /// number.
    pub(super) fn cancel_all(
        &self,
        account: Option<AccountId>,
        numbers: RangeInclusive<u32>,
        out: &mut Vec<u8>,
    ) -> u64 {
        let mut count = 0;
        for number in self.open_among(account, numbers) {
            append_cancel(number, 0, out);
            count += 1;
        }
        count
    }

    /// The number of open orders up to a number, of an account or of all accounts.
    pub(super) fn count_open(&self, account: Option<AccountId>, through: u32) -> u64 {
        self.open_among(account, 0..=through).count() as u64
    }

    /// Whether an order up to a number is open, of an account or of all accounts.
    pub(super) fn has_open(&self, account: Option<AccountId>, through: u32) -> bool {
        self.open_among(account, 0..=through).next().is_some()
    }

    /// The open orders among these numbers. Older ones have lower numbers.
    fn open_among(
        &self,
        account: Option<AccountId>,
        numbers: RangeInclusive<u32>,
    ) -> impl Iterator<Item = u32> + '_ {
        let of_one = account.map(|account| self.upstream_numbers.open_orders(account));
        let of_all = account.is_none().then(|| self.upstream_numbers.all_open_orders());
        let open = of_one.into_iter().flatten().chain(of_all.into_iter().flatten());
        let (first, last) = numbers.into_inner();
        open.map(|(number, _)| number)
            .take_while(move |number| *number <= last)
            .filter(move |number| *number >= first)
    }

    /// The exchange has handled this number, and every lower one except those that were too old to be resent; returns
    /// when it was sent. A replace without an answer was ignored.
    fn acknowledge(&mut self, number: u32) -> u64 {
        let mut sent_ns = self.skipped.remove(&number).map_or(0, |sent| sent.sent_ns);
        while let Some(front) = self.unanswered.front()
            && front.number <= number
        {
            let (handled, is_replace) = (front.number, front.is_replace());
            if handled == number {
                sent_ns = front.sent_ns;
                self.unanswered.pop_front();
                continue;
            }
            let is_skipped = self.may_be_skipped(front);
            let front = self.unanswered.pop_front();
            if is_skipped {
                self.skipped.extend(front.map(|front| (handled, front)));
            } else if is_replace {
                let origin = self.upstream_numbers.origin_of(handled);
                self.ignore(origin);
                self.upstream_numbers.finish(handled);
            }
        }
        sent_ns
    }

    /// Whether a later message may have been sent without this one, which is from an earlier start: it was too old to
    /// be resent, or it is an order that was to be cancelled. In the latter case it has an answer if it was sent. A
    /// replace of an ended order has no answer anyway.
    fn may_be_skipped(&self, sent: &Unanswered) -> bool {
        let is_open = |number: u32| self.upstream_numbers.origin_of(number).is_some();
        let is_order = sent.is_restored && !sent.is_replace();
        (sent.resend_until_ns == 0 || is_order) && is_open(sent.number) && sent.original.is_none_or(is_open)
    }
}

/// The order whose trade a message concerns.
pub(super) fn traded_order(message: &Outbound) -> Option<u32> {
    match message {
        Outbound::Executed(executed) => Some(executed.user_ref_num),
        Outbound::BrokenTrade(broken) => Some(broken.user_ref_num),
        _ => None,
    }
}

/// Appends a cancel that leaves `quantity` shares, as a frame.
pub(super) fn append_cancel(number: u32, quantity: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&soup::header(soup::UNSEQUENCED, Cancel::BYTES));
    Inbound::Cancel(Cancel { user_ref_num: number, quantity }).encode(out);
}

/// Appends a message as an unsequenced frame, and returns where the message begins.
fn frame(message: &[u8], out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&soup::header(soup::UNSEQUENCED, message.len()));
    out.extend_from_slice(message);
    out.len() - message.len()
}

#[cfg(test)]
mod tests;
