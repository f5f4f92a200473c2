//! One account: chooses its next request and judges every message about its orders. Pure.
//!
//! Requests are answered in the order in which they were sent: the venue handles the requests of an account one after
//! the other, and nothing on the way may overtake. There are three exceptions. A refusal may arrive early: a gateway
//! refuses a request itself while earlier ones are in flight. The answer to a cancel may arrive early: a gateway
//! sends it before orders that wait for its disk. Two kinds of requests have no answer: a cancel and a replace of an
//! order that ends while they are in flight, because it is executed in full or is cancelled by somebody else. The end
//! of the order ends them, whatever was requested before.

use std::{collections::VecDeque, fmt, rc::Rc};

use weir_proto::{
    ouch::{
        self, Accepted, Appendage, Canceled, Enter, Executed, Inbound, Outbound, Rejected, Replaced, codes,
        reject_reason,
    },
    soup,
};
use weir_record::orders::{MISMATCHES_MAX, Mismatch};

use super::{
    blotter::{Blotter, Discrepancy, Fate},
    generator::{OrderGenerator, Terms, client_order_id, hop},
    notes::{Hop, RequestKind},
    spec::OrderMix,
};
use crate::failure::{Class, Failure};

/// Most requests that were given up but may still be answered.
const GIVEN_UP_MAX: usize = 4096;

/// Most replaces whose order ended first and which may still be refused: as many as can be in flight.
const SPARE_REPLACES_MAX: usize = 4096;

/// A request without an answer yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) kind: RequestKind,
    /// For a new order and a replace its own number, for a cancel the order's number.
    pub(crate) number: u32,
    /// For a replace, the order that is replaced.
    original: u32,
    terms: Terms,
    /// When it was sent, since midnight.
    stamp_ns: u64,
    /// Its place among the requests of the account.
    ordinal: u64,
    /// It was sent more than once.
    is_resent: bool,
}

/// The meaning of a message.
#[derive(Clone, Debug)]
pub(crate) enum Verdict {
    /// Ends no request in flight.
    Aside,
    /// The request at this place among those in flight ended right.
    Right { place: usize, hop: Hop },
    /// It ended wrong.
    Wrong { place: usize, failure: Failure },
}

/// An account.
#[derive(Debug)]
pub(crate) struct Trader {
    generator: Rc<OrderGenerator>,
    /// Number of the session in the run.
    session: u32,
    mix: OrderMix,
    /// Lower numbers were used before this run, or before the stream was given up.
    first: u64,
    /// Number of the next order; exceeds `u32` when all numbers are used up.
    next: u64,
    /// Requests without an answer, oldest first. The first `given_up` of them have failed already.
    pending: VecDeque<Request>,
    given_up: usize,
    ordinal: u64,
    /// One more than the highest ordinal that was answered.
    answered_until: u64,
    /// Highest number that the venue has mentioned. This excludes a replace that ends with the cancel of its
    /// original: the venue need not have used its number.
    known: u32,
    blotter: Blotter,
    inversions: u64,
    /// Cancels that were sent twice, were given up, or came too late: a venue may refuse them or not answer at all.
    spare_cancels: u64,
    /// Replaces whose order ended before they were answered, newest last: a venue may not answer them, and one that
    /// cannot reach the order's book at that moment refuses them.
    spare_replaces: VecDeque<Request>,
    /// The first wrong answers.
    mismatches: Vec<Mismatch>,
}

impl Trader {
    /// An account that keeps its latest `kept` orders individually.
    pub(crate) fn new(generator: Rc<OrderGenerator>, session: u32, mix: OrderMix, kept: usize) -> Self {
        Self {
            generator,
            session,
            mix,
            first: 1,
            next: 1,
            pending: VecDeque::new(),
            given_up: 0,
            ordinal: 0,
            answered_until: 0,
            known: 0,
            blotter: Blotter::new(kept, mix.needs_targets()),
            inversions: 0,
            spare_cancels: 0,
            spare_replaces: VecDeque::new(),
            mismatches: Vec::new(),
        }
    }

    pub(crate) fn blotter(&self) -> &Blotter {
        &self.blotter
    }

    pub(crate) fn inversions(&self) -> u64 {
        self.inversions
    }

    /// The first wrong answers, without the account.
    pub(crate) fn mismatches(&self) -> &[Mismatch] {
        &self.mismatches
    }

    /// Whether all order numbers are used up.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.next > u64::from(u32::MAX)
    }

    /// Sets the mix of the requests from now on.
    #[cfg(test)]
    pub(crate) fn set_mix(&mut self, mix: OrderMix) {
        self.mix = mix;
    }

    /// Whether there is an order to cancel.
    #[cfg(test)]
    pub(crate) fn has_target(&mut self) -> bool {
        self.blotter.target().is_some()
    }

    /// Sets the venue's next number, at the first login or after the stream was given up.
    pub(crate) fn begin(&mut self, next: u32) {
        self.next = self.next.max(u64::from(next));
        self.first = self.next;
        self.pending.clear();
        self.spare_replaces.clear();
        self.given_up = 0;
        self.blotter.forget();
    }

    /// Checks the venue's next number, on a stream that continues where it stopped.
    pub(crate) fn go_on(&mut self, next: u32) -> Result<(), Failure> {
        let (known, sent) = (self.known, self.next - 1);
        if next <= known {
            return Err(wrong(format!(
                "the account query says that order {next} comes next, but order {known} was answered"
            )));
        }
        if u64::from(next) > self.next {
            return Err(wrong(format!(
                "the account query says that order {next} comes next, but only {sent} were sent"
            )));
        }
        // Requests that were given up and never arrived will not be answered.
        let mut dropped = 0;
        let given_up = self.given_up;
        let mut place = 0;
        let (blotter, spare_cancels) = (&mut self.blotter, &mut self.spare_cancels);
        self.pending.retain(|request| {
            let is_gone = match request.kind {
                RequestKind::Enter | RequestKind::Replace => request.number >= next,
                RequestKind::Cancel => true,
            };
            let stays = place >= given_up || !is_gone;
            if !stays {
                dropped += 1;
                *spare_cancels += u64::from(request.kind == RequestKind::Cancel);
                blotter.release(request.target());
            }
            place += 1;
            stays
        });
        self.given_up -= dropped;
        Ok(())
    }

    /// The next request, if it is sent at `stamp_ns`; `None` when the numbers are used up. [`Self::sent`] notes that
    /// it was sent.
    #[inline]
    pub(crate) fn next_request(&mut self, stamp_ns: u64) -> Option<Request> {
        let number = u32::try_from(self.next).ok()?;
        let terms = self.generator.terms(self.session, self.next);
        let kind = if self.mix.needs_targets() {
            self.mix.kind(self.generator.choice(self.session, self.ordinal))
        } else {
            RequestKind::Enter
        };
        let mut request = Request {
            kind: RequestKind::Enter,
            number,
            original: 0,
            terms,
            stamp_ns,
            ordinal: self.ordinal,
            is_resent: false,
        };
        if kind == RequestKind::Enter {
            return Some(request);
        }
        let Some(target) = self.blotter.target() else { return Some(request) };
        request.kind = kind;
        if kind == RequestKind::Cancel {
            request.number = target.number;
        } else {
            request.original = target.number;
            request.terms = Terms { side: target.side, symbol: target.symbol, ..terms };
        }
        Some(request)
    }

    /// Appends a request in wire form with its send time.
    #[inline]
    pub(crate) fn encode(&self, request: &Request, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; soup::HEADER_BYTES]);
        self.message(request).encode(out);
        let header = soup::header(soup::UNSEQUENCED, out.len() - start - soup::HEADER_BYTES);
        out[start..start + soup::HEADER_BYTES].copy_from_slice(&header);
    }

    /// Notes that a request was sent.
    #[inline]
    pub(crate) fn sent(&mut self, request: Request) {
        match request.kind {
            RequestKind::Enter => self.next += 1,
            RequestKind::Replace => {
                self.next += 1;
                self.blotter.occupy(request.original);
            }
            RequestKind::Cancel => self.blotter.occupy(request.number),
        }
        self.ordinal += 1;
        self.pending.push_back(request);
    }

    /// Appends everything in flight again; the venue ignores what it already has.
    pub(crate) fn resend(&mut self, out: &mut Vec<u8>) {
        for place in self.given_up..self.pending.len() {
            self.pending[place].is_resent = true;
            let request = self.pending[place];
            self.spare_cancels += u64::from(request.kind == RequestKind::Cancel);
            self.encode(&request, out);
        }
    }

    /// Gives up everything in flight. Answers may still arrive and are then not an error.
    pub(crate) fn give_up(&mut self) {
        let surplus = self.pending.len().saturating_sub(GIVEN_UP_MAX);
        self.pending.drain(..surplus);
        self.given_up = self.pending.len();
    }

    /// Judges a message received at `wall_ns` since midnight; an error means that the stream can no longer be
    /// trusted.
    #[inline]
    pub(crate) fn judge(&mut self, payload: &[u8], wall_ns: u64) -> Result<Verdict, Failure> {
        let (message, _) = Outbound::decode(payload).map_err(malformed)?;
        if message.user_ref_num().is_some_and(|number| u64::from(number) < self.first) {
            return Ok(Verdict::Aside);
        }
        let verdict = match message {
            Outbound::Accepted(accepted) => self.accepted(&accepted, wall_ns),
            Outbound::Canceled(canceled) => self.canceled(&canceled, wall_ns),
            Outbound::Replaced(replaced) => self.replaced(&replaced, wall_ns),
            Outbound::Executed(executed) => self.executed(&executed),
            Outbound::Rejected(rejected) => self.rejected(&rejected),
            Outbound::AiqCanceled(canceled) => self.reduced(canceled.user_ref_num, canceled.quantity),
            Outbound::CancelReject(refused) => self.cancel_refused(refused.user_ref_num),
            Outbound::SystemEvent { .. }
            | Outbound::BrokenTrade(_)
            | Outbound::CancelPending(_)
            | Outbound::PriorityUpdate(_)
            | Outbound::Modified(_)
            | Outbound::Restated(_)
            | Outbound::AccountQueryResponse { .. } => Ok(Verdict::Aside),
        };
        verdict.inspect_err(|failure| {
            let order = message.user_ref_num().unwrap_or(0);
            self.note_mismatch(order, "an answer to what was asked".into(), failure.text.clone());
        })
    }

    fn message(&self, request: &Request) -> Inbound<'static> {
        let Request { number, original, terms, stamp_ns, .. } = *request;
        match request.kind {
            RequestKind::Enter => {
                let enter = Enter {
                    user_ref_num: number,
                    side: terms.side,
                    quantity: terms.quantity,
                    symbol: self.generator.symbol(terms.symbol),
                    price: terms.price,
                    time_in_force: codes::time_in_force::DAY,
                    display: codes::display::VISIBLE,
                    capacity: codes::capacity::PRINCIPAL,
                    intermarket_sweep: codes::intermarket_sweep::NOT_ELIGIBLE,
                    cross_type: codes::cross_type::CONTINUOUS,
                    client_order_id: client_order_id(stamp_ns),
                };
                Inbound::Enter(enter, Appendage::EMPTY)
            }
            RequestKind::Replace => {
                let replace = ouch::Replace {
                    original_user_ref_num: original,
                    user_ref_num: number,
                    quantity: terms.quantity,
                    price: terms.price,
                    time_in_force: codes::time_in_force::DAY,
                    display: codes::display::VISIBLE,
                    intermarket_sweep: codes::intermarket_sweep::NOT_ELIGIBLE,
                    client_order_id: client_order_id(stamp_ns),
                };
                Inbound::Replace(replace, Appendage::EMPTY)
            }
            RequestKind::Cancel => Inbound::Cancel(ouch::Cancel { user_ref_num: number, quantity: 0 }),
        }
    }

    fn accepted(&mut self, accepted: &Accepted, wall_ns: u64) -> Result<Verdict, Failure> {
        let number = accepted.user_ref_num;
        let is_it = |request: &Request| request.kind == RequestKind::Enter && request.number == number;
        let Some(place) = self.find(is_it) else {
            return Err(unsolicited(format!("order {number} was accepted, which was not waiting for it")));
        };
        self.known = self.known.max(number);
        let request = self.pending[place];
        let is_dead = accepted.order_state == codes::order_state::DEAD;
        if is_dead {
            self.blotter.accept_dead(accepted.quantity);
        } else {
            self.blotter.accept(number, request.terms, accepted.quantity);
        }
        let failure = self.differs_accepted(accepted, &request).map(|field| {
            self.note_mismatch(number, format!("{:?}", self.message(&request)), format!("{accepted:?}"));
            echo(number, field)
        });
        Ok(self.answered(place, accepted.timestamp_ns, wall_ns, failure))
    }

    /// The first field of an acceptance that differs from the request.
    #[inline]
    fn differs_accepted(&self, accepted: &Accepted, request: &Request) -> Option<&'static str> {
        let terms = &request.terms;
        let fields = [
            (accepted.side == terms.side, "side"),
            (accepted.quantity == terms.quantity, "quantity"),
            (accepted.symbol == self.generator.symbol(terms.symbol), "symbol"),
            (accepted.price == terms.price, "price"),
            (accepted.client_order_id == client_order_id(request.stamp_ns), "client order id"),
            (accepted.time_in_force == codes::time_in_force::DAY, "time in force"),
            (accepted.display == codes::display::VISIBLE, "display"),
            (accepted.capacity == codes::capacity::PRINCIPAL, "capacity"),
            (accepted.intermarket_sweep == codes::intermarket_sweep::NOT_ELIGIBLE, "intermarket sweep"),
            (accepted.cross_type == codes::cross_type::CONTINUOUS, "cross type"),
            (is_state(accepted.order_state), "order state"),
        ];
        first_wrong(&fields)
    }

    fn replaced(&mut self, replaced: &Replaced, wall_ns: u64) -> Result<Verdict, Failure> {
        let (original, number) = (replaced.original_user_ref_num, replaced.user_ref_num);
        let is_it = |request: &Request| request.kind == RequestKind::Replace && request.number == number;
        let Some(place) = self.find(is_it) else {
            return Err(unsolicited(format!(
                "order {number} replaced another, which was not waiting for it"
            )));
        };
        self.known = self.known.max(number);
        let request = self.pending[place];
        let terms = &request.terms;
        let fields = [
            (original == request.original, "original number"),
            (replaced.side == terms.side, "side"),
            (replaced.symbol == self.generator.symbol(terms.symbol), "symbol"),
            (replaced.price == terms.price, "price"),
            (replaced.client_order_id == client_order_id(request.stamp_ns), "client order id"),
            (replaced.time_in_force == codes::time_in_force::DAY, "time in force"),
            (replaced.display == codes::display::VISIBLE, "display"),
            (replaced.capacity == codes::capacity::PRINCIPAL, "capacity"),
            (replaced.intermarket_sweep == codes::intermarket_sweep::NOT_ELIGIBLE, "intermarket sweep"),
            (replaced.cross_type == codes::cross_type::CONTINUOUS, "cross type"),
            (is_state(replaced.order_state), "order state"),
        ];
        let differs = first_wrong(&fields).map(|field| {
            self.note_mismatch(number, format!("{:?}", self.message(&request)), format!("{replaced:?}"));
            echo(number, field)
        });
        let outcome =
            self.blotter.replace(request.original, number, request.terms.quantity, replaced.quantity);
        if replaced.order_state == codes::order_state::DEAD && replaced.quantity > 0 {
            // It is not on the book any more, and no further message about it will come.
            let _ = self.blotter.cancel(number, replaced.quantity);
        }
        let failure = differs.or_else(|| outcome.err().map(|what| self.discrepancy(number, &what, replaced)));
        Ok(self.answered(place, replaced.timestamp_ns, wall_ns, failure))
    }

    fn canceled(&mut self, canceled: &Canceled, wall_ns: u64) -> Result<Verdict, Failure> {
        let Canceled { timestamp_ns, user_ref_num: number, quantity, reason } = *canceled;
        // The cancel answers a request about the order only if the user requested it.
        let place = self.find(|request| request.is_about(number));
        let Some(place) = place.filter(|_| reason == codes::cancel_reason::USER) else {
            return self.reduced(number, quantity);
        };
        let outcome = self.blotter.cancel(number, quantity);
        let failure = outcome.err().map(|what| self.discrepancy(number, &what, canceled));
        Ok(self.answered(place, timestamp_ns, wall_ns, failure))
    }

    fn executed(&mut self, executed: &Executed) -> Result<Verdict, Failure> {
        let outcome = self.blotter.execute(executed.user_ref_num, executed.quantity);
        self.after(executed.user_ref_num, outcome)
    }

    /// Shares of an order were cancelled without a request of ours.
    fn reduced(&mut self, number: u32, shares: u32) -> Result<Verdict, Failure> {
        let outcome = self.blotter.reduce(number, shares);
        self.after(number, outcome)
    }

    /// Handles an order that has fewer shares; if it has ended, so has the request about it.
    fn after(&mut self, number: u32, outcome: Result<Fate, Discrepancy>) -> Result<Verdict, Failure> {
        let fate = outcome.map_err(|what| unsolicited(what.to_string()))?;
        let over = if fate == Fate::Ended { self.find(|request| request.is_about(number)) } else { None };
        let Some(place) = over else { return Ok(Verdict::Aside) };
        match self.pending.remove(place) {
            Some(request) if request.kind == RequestKind::Replace => self.spare(request),
            request => self.spare_cancels += u64::from(request.is_some()),
        }
        Ok(match self.among_in_flight(place) {
            Some(place) => Verdict::Right { place, hop: Hop::Untimed },
            None => Verdict::Aside,
        })
    }

    fn rejected(&mut self, rejected: &Rejected) -> Result<Verdict, Failure> {
        let number = rejected.user_ref_num;
        let is_it = |request: &Request| request.kind != RequestKind::Cancel && request.number == number;
        let Some(place) = self.find(is_it) else { return self.spare_refused(rejected) };
        self.known = self.known.max(number);
        let request = self.pending[place];
        self.blotter.release(request.original);
        let failure = if rejected.client_order_id == client_order_id(request.stamp_ns) {
            let (code, name) = (rejected.reason, reject_reason::name(rejected.reason));
            refused(format!("order {number} was refused: {name} ({code:#06x})"))
        } else {
            self.note_mismatch(number, format!("{:?}", self.message(&request)), format!("{rejected:?}"));
            echo(number, "client order id")
        };
        Ok(self.refused(place, failure))
    }

    /// Keeps a replace that need not be answered any more.
    fn spare(&mut self, replace: Request) {
        if self.spare_replaces.len() == SPARE_REPLACES_MAX {
            self.spare_replaces.pop_front();
        }
        self.spare_replaces.push_back(replace);
    }

    /// Handles the refusal of a replace whose order has ended. Only one refusal is accepted for each.
    fn spare_refused(&mut self, rejected: &Rejected) -> Result<Verdict, Failure> {
        let number = rejected.user_ref_num;
        let place = self.spare_replaces.iter().position(|request| request.number == number);
        let Some(request) = place.and_then(|place| self.spare_replaces.remove(place)) else {
            let text = format!("order {number} was refused, which was not waiting for an answer");
            return Err(unsolicited(text));
        };
        self.known = self.known.max(number);
        if rejected.client_order_id == client_order_id(request.stamp_ns) {
            Ok(Verdict::Aside)
        } else {
            Err(echo(number, "client order id"))
        }
    }

    fn cancel_refused(&mut self, number: u32) -> Result<Verdict, Failure> {
        let is_it = |request: &Request| request.kind == RequestKind::Cancel && request.number == number;
        let Some(place) = self.find(is_it) else {
            if self.spare_cancels == 0 {
                let text = format!("a cancel of order {number} was refused although no cancel was sent");
                return Err(unsolicited(text));
            }
            self.spare_cancels -= 1;
            return Ok(Verdict::Aside);
        };
        self.blotter.release(number);
        Ok(self.refused(place, refused(format!("the cancel of order {number} was refused"))))
    }

    /// Index of a request without an answer: usually the oldest one in flight.
    #[inline]
    fn find(&self, is_it: impl Fn(&Request) -> bool) -> Option<usize> {
        match self.pending.get(self.given_up) {
            Some(request) if is_it(request) => Some(self.given_up),
            _ => self.pending.iter().position(is_it),
        }
    }

    /// Removes a refused request. The time of a refusal says nothing about other requests.
    fn refused(&mut self, place: usize, failure: Failure) -> Verdict {
        self.pending.remove(place);
        self.among_in_flight(place).map_or(Verdict::Aside, |place| Verdict::Wrong { place, failure })
    }

    /// Removes an answered request, and returns the verdict.
    #[inline]
    fn answered(&mut self, place: usize, stamp_ns: u64, wall_ns: u64, failure: Option<Failure>) -> Verdict {
        let taken = if place == 0 { self.pending.pop_front() } else { self.pending.remove(place) };
        let Some(request) = taken else { return Verdict::Aside };
        let is_inverted = request.ordinal < self.answered_until;
        if request.kind != RequestKind::Cancel {
            self.answered_until = self.answered_until.max(request.ordinal + 1);
        }
        if is_inverted {
            self.inversions += 1;
            let later = format!("an answer before that to request {}", self.answered_until - 1);
            self.note_mismatch(
                request.number,
                later,
                format!("one to request {} behind it", request.ordinal),
            );
        }
        let Some(place) = self.among_in_flight(place) else { return Verdict::Aside };
        match failure {
            Some(failure) => Verdict::Wrong { place, failure },
            None if is_inverted => Verdict::Wrong { place, failure: inverted(&request) },
            None if request.is_resent => Verdict::Right { place, hop: Hop::Untimed },
            None => Verdict::Right { place, hop: hop(request.stamp_ns, stamp_ns, wall_ns) },
        }
    }

    /// Keeps a wrong answer, if it is one of the first.
    #[cold]
    fn note_mismatch(&mut self, order: u32, expected: String, got: String) {
        if self.mismatches.len() < MISMATCHES_MAX {
            self.mismatches.push(Mismatch { session: String::new(), order, expected, got });
        }
    }

    /// Notes that the shares of an order are wrong.
    #[cold]
    fn discrepancy(&mut self, order: u32, what: &Discrepancy, message: &impl fmt::Debug) -> Failure {
        let expected = match what {
            Discrepancy::Unknown(number) => format!("nothing of order {number}, which is not live"),
            Discrepancy::TooMany { left, .. } => format!("{left} shares at most"),
            Discrepancy::Lost { left, .. } => format!("{left} shares"),
        };
        self.note_mismatch(order, expected, format!("{message:?}"));
        wrong(what.to_string())
    }

    /// The place among those in flight of a request that was just removed; `None` if it was given up before.
    #[inline]
    fn among_in_flight(&mut self, place: usize) -> Option<usize> {
        let in_flight = place.checked_sub(self.given_up);
        if in_flight.is_none() {
            self.given_up -= 1;
        }
        in_flight
    }
}

impl Request {
    /// The order of a replace or a cancel; 0 for a new order.
    fn target(&self) -> u32 {
        match self.kind {
            RequestKind::Enter => 0,
            RequestKind::Replace => self.original,
            RequestKind::Cancel => self.number,
        }
    }

    fn is_about(&self, number: u32) -> bool {
        self.kind != RequestKind::Enter && self.target() == number
    }
}

fn is_state(state: u8) -> bool {
    matches!(state, codes::order_state::LIVE | codes::order_state::DEAD)
}

#[inline]
fn first_wrong(fields: &[(bool, &'static str)]) -> Option<&'static str> {
    fields.iter().find(|(is_right, _)| !is_right).map(|(_, name)| *name)
}

#[cold]
fn echo(number: u32, field: &str) -> Failure {
    wrong(format!("the answer to order {number} has another {field} than was sent"))
}

#[cold]
fn inverted(request: &Request) -> Failure {
    wrong(format!("the answer to order {} came after that to a later one", request.number))
}

#[cold]
fn wrong(text: String) -> Failure {
    Failure { class: Class::WrongBytes, text }
}

#[cold]
fn refused(text: String) -> Failure {
    Failure { class: Class::WrongStatus, text }
}

#[cold]
fn unsolicited(text: String) -> Failure {
    Failure { class: Class::Malformed, text }
}

#[cold]
fn malformed(error: ouch::DecodeError) -> Failure {
    Failure { class: Class::Malformed, text: format!("the server sent {error}") }
}
