//! The task that sends in one upstream session, and the messages that collect for it.

use std::{
    cell::Cell,
    collections::BTreeMap,
    future::{Future, poll_fn},
    io,
    ops::RangeInclusive,
    pin::pin,
    rc::Rc,
    task::Poll,
    time::Duration,
};

use weir_engine::time;
use weir_proto::{
    ouch::{Cancel, Inbound, inbound_user_ref_num},
    soup::HEADER_BYTES,
};
use weir_trading::Origin;

use super::Upstream;
use crate::{
    connection_timer::ConnectionTimer,
    gateway::{
        hop_latency::Hop,
        outstanding::{Sending, append_cancel},
        worker::Gateway,
    },
    journal::Lsn,
};

/// How long clients' cancels wait for the journal.
const STALL: Duration = Duration::from_millis(250);

/// Most bytes of clients' messages that are given to a connection at once: bytes that it has and the exchange does
/// not read cannot be taken back. This is some three hundred orders.
const PIECE_BYTES: usize = 16 << 10;

/// Bytes of a cancel on the wire.
const CANCEL_FRAME_BYTES: usize = HEADER_BYTES + Cancel::BYTES;

/// Messages that wait to be sent.
#[derive(Default)]
pub(super) struct Waiting {
    pub(super) bytes: Vec<u8>,
    /// Data messages in `bytes`.
    pub(super) messages: u64,
    /// Client messages among these that have not been counted as sent on.
    pub(super) orders: u64,
    /// Numbers of the new orders in `bytes`, or 0.
    pub(super) first: u32,
    pub(super) last: u32,
    /// The highest number of an order in `bytes`, including resent ones; or 0.
    pub(super) through: u32,
    /// When the oldest of these orders, or of those behind them, is too old to be sent.
    pub(super) until_ns: Option<u64>,
    /// The journal must contain this record before they may be sent.
    pub(super) lsn: Lsn,
    /// The gateway's own cancels in `bytes`: the counter to raise when they are sent, and their number.
    pub(super) cancels: Vec<(Rc<Cell<u64>>, u64)>,
    /// Copies of clients' cancels in `bytes` whose orders were sent before.
    pub(super) copies: Vec<u8>,
    /// Cancels that follow separately because too many bytes wait: by order, the shares to leave.
    pub(super) late: BTreeMap<u32, u32>,
    /// Copies of those whose orders were sent before.
    pub(super) late_copies: BTreeMap<u32, u32>,
}

impl Waiting {
    /// Takes the collected messages. Later ones collect in `memory`.
    fn take(&mut self, memory: Vec<u8>) -> Self {
        let mut taken = std::mem::replace(self, Self { bytes: memory, ..Self::default() });
        for (number, quantity) in &taken.late {
            append_cancel(*number, *quantity, &mut taken.bytes);
        }
        taken
    }

    /// Whether there are bytes to send. Counted messages always have bytes.
    fn has_bytes(&self) -> bool {
        let has_bytes = !self.bytes.is_empty();
        debug_assert!(
            has_bytes || self.messages == 0 && self.cancels.is_empty(),
            "what is counted has bytes"
        );
        has_bytes
    }

    /// Stores a copy of a client's cancel.
    pub(super) fn copy(&mut self, number: u32, raw: &[u8]) {
        if let Some(quantity) = quantity_of_cancel(raw) {
            append_cancel(number, quantity, &mut self.copies);
        }
    }

    /// Takes all copies.
    fn take_copies(&mut self) -> Vec<u8> {
        let mut copies = std::mem::take(&mut self.copies);
        for (number, quantity) in std::mem::take(&mut self.late_copies) {
            append_cancel(number, quantity, &mut copies);
        }
        copies
    }
}

/// Keeps the one of several cancels of an order that leaves least.
fn keep_least(cancels: &mut BTreeMap<u32, u32>, number: u32, quantity: u32) {
    let least = cancels.entry(number).or_insert(quantity);
    *least = quantity.min(*least);
}

impl Upstream {
    /// Too many bytes wait: of several cancels of an order only the one that leaves least is kept.
    #[cold]
    pub(super) fn send_late(
        &self,
        origin: &Origin,
        raw: &[u8],
        waiting: &mut Waiting,
        log: impl FnOnce(u32) -> Lsn,
    ) -> bool {
        let sending = self.outstanding.borrow_mut().assign_upstream_number(*origin, raw, &mut Vec::new());
        let (Sending::Passed(number), Some(quantity)) = (sending, quantity_of_cancel(raw)) else {
            return false;
        };
        waiting.messages += u64::from(!waiting.late.contains_key(&number));
        keep_least(&mut waiting.late, number, quantity);
        if number <= self.handed.get() {
            keep_least(&mut waiting.late_copies, number, quantity);
        }
        waiting.orders += 1;
        self.note_lsn(waiting, log(number));
        self.flush.raise();
        true
    }
}

/// Sends waiting messages, for as long as the worker runs.
pub(in crate::gateway) async fn send(gateway: Rc<Gateway>, upstream: Rc<Upstream>) {
    let mut sender =
        Sender { gateway, upstream, memory: Vec::new(), deadline: ConnectionTimer::new(), now_ns: 0 };
    let mut memory = Vec::new();
    loop {
        sender.upstream.flush.raised().await;
        sender.send_urgent().await;
        let upstream = &sender.upstream;
        let generation = upstream.generation.get();
        let mut batch = upstream.waiting.borrow_mut().take(std::mem::take(&mut memory));
        let is_kept = batch.bytes.is_empty() || sender.is_kept(&mut batch).await;
        if is_kept {
            sender.send_batch(generation, &mut batch).await;
            sender.gateway.counters.passed.add(batch.orders);
        }
        memory = batch.bytes;
        memory.clear();
    }
}

/// The task that sends.
struct Sender {
    gateway: Rc<Gateway>,
    upstream: Rc<Upstream>,
    /// Buffer for urgent messages.
    memory: Vec<u8>,
    deadline: ConnectionTimer,
    /// When it last had to wait, and continued.
    now_ns: u64,
}

/// Events while a batch waits for the journal.
enum Meanwhile {
    /// The journal contains it, or never will.
    Decided(bool),
    /// Other messages have to be sent.
    Said,
    /// It takes too long.
    Stalled,
}

impl Sender {
    /// Sends messages that do not wait for the journal. Usually there are none.
    async fn send_urgent(&mut self) {
        if !self.upstream.urgent.borrow().has_bytes() {
            return;
        }
        let memory = std::mem::take(&mut self.memory);
        let mut batch = self.upstream.urgent.borrow_mut().take(memory);
        if let Some(now_ns) = give(&self.upstream, &batch.bytes).await {
            self.now_ns = now_ns;
            count(&self.gateway, &batch);
        }
        batch.bytes.clear();
        self.memory = batch.bytes;
    }

    /// Gives a batch to its connection, a piece at a time. Between two pieces urgent messages are sent, and orders
    /// that were taken back are removed.
    async fn send_batch(&mut self, generation: u64, batch: &mut Waiting) {
        let mut begin = 0;
        while begin < batch.bytes.len() {
            if begin > 0 {
                self.send_urgent().await;
            }
            let upstream = &self.upstream;
            if generation != upstream.generation.get() {
                return;
            }
            // Later orders are young. They need no reading of the clock.
            if batch.until_ns.is_some_and(|until_ns| until_ns < self.now_ns) {
                batch.until_ns = upstream.refuse_late(&self.gateway, self.now_ns);
                self.gateway.tell_untold(upstream);
            }
            if upstream.taken_back.get() > upstream.handed_here.get() {
                let outstanding = upstream.outstanding.borrow();
                let struck = strike(&mut batch.bytes, begin, |number| !outstanding.awaits(number));
                batch.messages = batch.messages.saturating_sub(struck);
            }
            let (end, through) = piece(batch, begin);
            // From now on, messages about these orders come after them.
            let before = upstream.handed_here.get();
            for handed in [&upstream.handed, &upstream.handed_here] {
                handed.set(through.max(handed.get()));
            }
            if end > begin {
                let Some(now_ns) = give(upstream, &batch.bytes[begin..end]).await else { return };
                self.now_ns = now_ns;
                let first = batch.first.max(before.saturating_add(1));
                stamp(&self.gateway, upstream, first..=through.min(batch.last), now_ns);
            }
            begin = end;
        }
        count(&self.gateway, batch);
    }

    /// Sends clients' cancels ahead of the batch that contains them.
    async fn send_copies(&mut self, batch: &mut Waiting) {
        {
            let mut urgent = self.upstream.urgent.borrow_mut();
            for mut copies in [batch.take_copies(), self.upstream.waiting.borrow_mut().take_copies()] {
                urgent.messages += (copies.len() / CANCEL_FRAME_BYTES) as u64;
                urgent.bytes.append(&mut copies);
            }
        }
        self.send_urgent().await;
    }

    /// Waits until the journal contains the records of a batch; false: it never will, and the batch is not sent.
    /// Messages that do not wait for the journal are sent meanwhile.
    async fn is_kept(&mut self, batch: &mut Waiting) -> bool {
        if self.gateway.is_kept(batch.lsn) {
            return true;
        }
        let (gateway, upstream) = (Rc::clone(&self.gateway), Rc::clone(&self.upstream));
        let mut kept = pin!(gateway.is_durable(batch.lsn));
        let stalls_at = time::now() + STALL;
        let mut is_stalled = false;
        let is_kept = loop {
            let deadline = &mut self.deadline;
            let meanwhile = poll_fn(|context| {
                if let Poll::Ready(is_kept) = kept.as_mut().poll(context) {
                    return Poll::Ready(Meanwhile::Decided(is_kept));
                }
                if upstream.flush.poll(context.waker()).is_ready() {
                    return Poll::Ready(Meanwhile::Said);
                }
                if is_stalled {
                    return Poll::Pending;
                }
                deadline.poll(stalls_at, context).map(|()| Meanwhile::Stalled)
            });
            let happened = meanwhile.await;
            match happened {
                Meanwhile::Decided(is_kept) => break is_kept,
                Meanwhile::Said if !is_stalled => self.send_urgent().await,
                Meanwhile::Said => self.send_copies(batch).await,
                Meanwhile::Stalled => {
                    is_stalled = true;
                    self.send_copies(batch).await;
                }
            }
        };
        if !is_kept {
            self.send_copies(batch).await;
        }
        // Messages that were announced meanwhile and not sent are checked for again.
        upstream.flush.raise();
        self.now_ns = time::now().as_nanos();
        is_kept
    }
}

/// The shares that a cancel leaves; `None`: it is not a cancel.
fn quantity_of_cancel(raw: &[u8]) -> Option<u32> {
    match Inbound::decode(raw) {
        Ok(Inbound::Cancel(cancel)) => Some(cancel.quantity),
        _ => None,
    }
}

/// The end of the piece of a batch that begins here, and the highest order number in it.
fn piece(batch: &Waiting, begin: usize) -> (usize, u32) {
    if batch.bytes.len() - begin <= PIECE_BYTES {
        return (batch.bytes.len(), batch.through);
    }
    let (mut end, mut through) = (begin, 0);
    while let Some(next) = frame_end(&batch.bytes, end).filter(|next| next - begin <= PIECE_BYTES) {
        through = number_of_order(&batch.bytes[end..next]).unwrap_or(0).max(through);
        end = next;
    }
    // No message is as long as a piece.
    if end > begin { (end, through) } else { (batch.bytes.len(), batch.through) }
}

/// Removes ended orders from the bytes that begin here; returns their number.
fn strike(bytes: &mut Vec<u8>, begin: usize, is_over: impl Fn(u32) -> bool) -> u64 {
    let (mut from, mut to, mut count) = (begin, begin, 0);
    while let Some(end) = frame_end(bytes, from) {
        if number_of_order(&bytes[from..end]).is_some_and(&is_over) {
            count += 1;
        } else {
            bytes.copy_within(from..end, to);
            to += end - from;
        }
        from = end;
    }
    bytes.truncate(to);
    count
}

/// The end of the frame that begins here.
fn frame_end(bytes: &[u8], begin: usize) -> Option<usize> {
    let length = bytes.get(begin..)?.first_chunk::<2>()?;
    Some(begin + length.len() + usize::from(u16::from_be_bytes(*length))).filter(|end| *end <= bytes.len())
}

/// The number of the order or the replacement in a frame, if it is one.
fn number_of_order(frame: &[u8]) -> Option<u32> {
    let message = frame.get(HEADER_BYTES..)?;
    inbound_user_ref_num(message).filter(|_| matches!(message.first(), Some(b'O' | b'U')))
}

/// Gives bytes to the current connection, and returns when it had them. `None`: it is gone; the receiving task
/// notices that too.
async fn give(upstream: &Upstream, bytes: &[u8]) -> Option<u64> {
    let stream = upstream.stream.borrow().clone()?;
    let generation = upstream.generation.get();
    {
        let mut send = pin!(stream.send_slice(bytes));
        let outcome = poll_fn(|context| {
            if generation != upstream.generation.get() {
                return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
            }
            let outcome = send.as_mut().poll(context);
            if outcome.is_pending() {
                upstream.flush.register(context.waker());
            }
            outcome
        });
        outcome.await.ok()?;
    }
    let now_ns = time::now().as_nanos();
    if let Some(rules) = upstream.rules.borrow_mut().as_mut() {
        rules.on_sent(now_ns);
    }
    Some(now_ns)
}

/// The new orders with these numbers have been sent.
fn stamp(gateway: &Gateway, upstream: &Upstream, numbers: RangeInclusive<u32>, now_ns: u64) {
    let out = |received_ns: u64| gateway.record(Hop::GatewayOut, now_ns.saturating_sub(received_ns));
    upstream.outstanding.borrow_mut().stamp(*numbers.start(), *numbers.end(), now_ns, out);
}

/// Counts a batch that has been sent.
fn count(gateway: &Gateway, batch: &Waiting) {
    for (sent, count) in &batch.cancels {
        sent.set(sent.get() + count);
    }
    gateway.counters.upstream_sent.add(batch.messages);
    gateway.store.counters().add_sent(batch.messages);
}

#[cfg(test)]
mod tests {
    use weir_proto::{ouch::reject_reason, soup::Timing};
    use weir_trading::AccountId;

    use super::*;
    use crate::gateway::{
        commands::Cancels,
        outstanding::{OutstandingLimits, OutstandingOrders},
        test_messages::enter,
        unsolicited_cancels::Expiry,
        upstream::{Login, Resume, UpstreamId, WAITING_BYTES_MAX},
    };

    /// A session that is up.
    fn session() -> Upstream {
        let limits = OutstandingLimits { unanswered_max: 1 << 16, ..OutstandingLimits::default() };
        let login = Login {
            address: "127.0.0.1:1".parse().expect("an address"),
            username: "G00001".parse().expect("a name"),
            password: "DEMO".parse().expect("a password"),
            timing: Timing::default(),
        };
        let place = UpstreamId { worker: 0, venue: 0, venues: 1 };
        let session = Upstream::new(place, login, OutstandingOrders::new(1, limits), Resume::default());
        session.is_up.set(true);
        session
    }

    fn send(session: &Upstream, message: &Inbound<'_>) -> Result<bool, u16> {
        send_received(session, message, 0)
    }

    /// Sends a message with this receive time.
    fn send_received(session: &Upstream, message: &Inbound<'_>, received_ns: u64) -> Result<bool, u16> {
        let user_ref_num = message.user_ref_num().expect("it has one");
        let origin = Origin { account: AccountId(0), user_ref_num, home: 0, received_ns };
        let mut raw = Vec::new();
        message.encode(&mut raw);
        session.send(origin, &raw, |_| 1)
    }

    fn cancel(user_ref_num: u32, quantity: u32) -> Inbound<'static> {
        Inbound::Cancel(Cancel { user_ref_num, quantity })
    }

    #[test]
    fn when_too_much_waits_orders_are_refused_and_one_cancel_of_each_order_is_kept() {
        let session = session();
        let mut number = 1;
        let reason = loop {
            match send(&session, &enter(number, 100)) {
                Ok(is_sent) => assert!(is_sent),
                Err(reason) => break reason,
            }
            number += 1;
        };
        assert_eq!(reason, reject_reason::PROCESSING_ERROR);
        let bytes = session.waiting.borrow().bytes.len();
        assert!((WAITING_BYTES_MAX..WAITING_BYTES_MAX + 64).contains(&(bytes - 1)), "{bytes}");
        for quantity in [50, 20, 70, 20] {
            for number in 1..=10 {
                assert_eq!(send(&session, &cancel(number, quantity)), Ok(true));
            }
        }
        assert_eq!(send(&session, &cancel(number, 0)), Ok(false), "it was refused");
        assert_eq!(session.waiting.borrow().bytes.len(), bytes);
        let taken = session.waiting.borrow_mut().take(Vec::new());
        let (orders, cancels) = taken.bytes.split_at(bytes);
        assert_eq!(taken.messages, (orders.len() / 50 + 10) as u64);
        assert_eq!(taken.orders, u64::from(number - 1) + 40);
        for (cancel, number) in cancels.chunks(CANCEL_FRAME_BYTES).zip(1_u32..) {
            let expected = [&number.to_be_bytes()[..], &20_u32.to_be_bytes()].concat();
            assert_eq!(cancel[4..], expected);
        }
        assert_eq!(cancels.len(), 10 * CANCEL_FRAME_BYTES);
        assert!(send(&session, &enter(number, 100)).is_ok(), "there is room again");
    }

    /// Sends the urgent bytes; returns the number of cancels.
    fn leave(session: &Upstream) -> usize {
        let batch = session.urgent.borrow_mut().take(Vec::new());
        batch.cancels.iter().for_each(|(sent, count)| sent.set(sent.get() + count));
        batch.bytes.len() / CANCEL_FRAME_BYTES
    }

    /// Marks orders up to this number as sent.
    fn hand(session: &Upstream, through: u32) {
        session.handed.set(through);
        session.handed_here.set(through);
    }

    /// The waiting orders that would be sent now.
    fn orders_left(session: &Upstream) -> Vec<u32> {
        let mut bytes = session.waiting.borrow().bytes.clone();
        let outstanding = session.outstanding.borrow();
        strike(&mut bytes, 0, |number| !outstanding.awaits(number));
        let (mut begin, mut left) = (0, Vec::new());
        while let Some(end) = frame_end(&bytes, begin) {
            left.extend(number_of_order(&bytes[begin..end]));
            begin = end;
        }
        left
    }

    /// Clients' numbers of the orders that have ended here.
    fn untold(session: &Upstream) -> Vec<u32> {
        session.untold.borrow().iter().map(|(_, expiry)| expiry.origin.user_ref_num).collect()
    }

    #[test]
    fn what_was_sent_is_cancelled_at_once_and_what_was_not_stays_here() {
        let session = session();
        (1..=5).for_each(|number| assert_eq!(send(&session, &enter(number, 100)), Ok(true)));
        hand(&session, 3);
        let before = session.waiting.borrow().bytes.len();
        // With a failed journal the others will never be sent, and are not reported.
        assert_eq!(session.cancel_all(None, b'S', true), 3);
        assert_eq!((leave(&session), untold(&session)), (3, Vec::new()));
        assert_eq!(session.cancel_all(None, b'S', false), 5);
        // Repeated while the first ones are on their way: nothing is added.
        assert_eq!(session.cancel_all(None, b'S', false), 3);
        assert_eq!(session.waiting.borrow().bytes.len(), before, "no cancel waits");
        assert_eq!(untold(&session), [4, 5]);
        assert_eq!(orders_left(&session), [1, 2, 3], "those have left");
        let of_sent = |sent| Cancels { orders: 3, sent, open: 3, expired: 0 };
        assert_eq!(session.cancels_of(None), of_sent(0));
        assert_eq!(leave(&session), 3);
        assert_eq!(session.cancels_of(None), of_sent(3));
        assert!(session.has_cancels_open());
        assert_eq!(session.cancels_of(Some(AccountId(0))), Cancels::default());
        assert_eq!(send(&session, &enter(6, 100)), Ok(true));
        assert_eq!(orders_left(&session), [1, 2, 3, 6], "what comes later does leave");
    }

    #[test]
    fn orders_that_only_an_earlier_connection_had_are_cancelled_and_not_sent_again() {
        let session = session();
        (1..=5).for_each(|number| assert_eq!(send(&session, &enter(number, 100)), Ok(true)));
        // The previous connection had sent three, and all are waiting again.
        session.handed.set(3);
        assert_eq!(session.cancel_all(None, b'S', false), 5);
        assert_eq!(session.cancels_of(None), Cancels { orders: 5, sent: 0, open: 3, expired: 2 });
        assert_eq!((leave(&session), orders_left(&session), untold(&session)), (3, Vec::new(), vec![4, 5]));
        assert_eq!(
            session.stale.get(),
            Some(6),
            "whether the exchange has them, it says before anything later"
        );
    }

    /// Clients' numbers in these expiries.
    fn numbers(expiries: &[Expiry]) -> Vec<u32> {
        expiries.iter().map(|expiry| expiry.origin.user_ref_num).collect()
    }

    #[test]
    fn the_oldest_of_the_orders_that_wait_decides_when_one_is_too_old_wherever_it_is() {
        let session = session();
        let wait_max_ns = session.wait_max_ns;
        for (number, received_ns) in [(1, 50), (2, 10), (3, 70)] {
            assert_eq!(send_received(&session, &enter(number, 100), received_ns), Ok(true));
        }
        assert_eq!(session.waiting.borrow().until_ns, Some(wait_max_ns + 10));
        // Also when all of them are resent.
        let until_ns = |above| session.outstanding.borrow().first_wait_until_ns(above);
        assert_eq!([0, 2, 3].map(until_ns), [Some(wait_max_ns + 10), Some(wait_max_ns + 70), None]);
    }

    #[test]
    fn what_is_late_ends_once_and_the_rest_is_looked_at_again_only_when_it_is_late_too() {
        let session = session();
        let wait_max_ns = session.wait_max_ns;
        for (number, received_ns) in [(1, 0), (2, 40), (3, 0), (4, 50)] {
            assert_eq!(send_received(&session, &enter(number, 100), received_ns), Ok(true));
        }
        // The first one has been sent: the exchange reports its outcome, however late.
        hand(&session, 1);
        let (late, until_ns) = session.end_late(wait_max_ns + 1);
        assert_eq!((numbers(&late), until_ns), (vec![3], Some(wait_max_ns + 40)));
        assert_eq!((session.stale.get(), session.taken_back.get()), (None, 4));
        assert_eq!(orders_left(&session), [1, 2, 4]);
        let (late, until_ns) = session.end_late(wait_max_ns + 51);
        assert_eq!((numbers(&late), until_ns), (vec![2, 4], None), "nothing is left to be looked at");
    }

    #[test]
    fn late_orders_that_only_an_earlier_connection_had_wait_for_what_the_exchange_says_of_them() {
        let session = session();
        (1..=3).for_each(|number| assert_eq!(send(&session, &enter(number, 100)), Ok(true)));
        // The previous connection had sent two, and this one does not read.
        session.handed.set(2);
        let (late, until_ns) = session.end_late(session.wait_max_ns + 1);
        assert_eq!((numbers(&late), until_ns), (vec![3], None), "that one no exchange can have");
        assert_eq!((session.stale.get(), session.taken_back.get()), (Some(4), 3));
        assert_eq!(orders_left(&session), Vec::<u32>::new(), "none of them is sent again");
        assert_eq!((session.outstanding.borrow().has_stale(), session.is_idle()), (true, false));
    }

    #[test]
    fn an_order_of_another_worker_is_late_when_it_is_older_than_one_may_be_that_is_sent_first() {
        let session = session();
        let origin = Origin { account: AccountId(0), user_ref_num: 1, home: 1, received_ns: 5 };
        let is_late = |now_ns| session.is_late(&origin, now_ns);
        let limit_ns = session.wait_max_ns + 5;
        assert_eq!([0, limit_ns, limit_ns + 1].map(is_late), [false, false, true]);
    }

    #[test]
    fn a_batch_leaves_in_pieces_and_what_is_over_is_struck_out_of_what_is_left() {
        let session = session();
        let count = 700;
        (1..=count).for_each(|number| assert_eq!(send(&session, &enter(number, 100)), Ok(true)));
        let mut batch = session.waiting.borrow_mut().take(Vec::new());
        let frame_bytes = batch.bytes.len() / count as usize;
        let (end, through) = piece(&batch, 0);
        assert_eq!(end % frame_bytes, 0);
        assert_eq!(through as usize, end / frame_bytes);
        assert!((PIECE_BYTES - frame_bytes..=PIECE_BYTES).contains(&end));
        let struck = strike(&mut batch.bytes, end, |number| number % 2 == 0 && number < count);
        assert_eq!(batch.bytes.len(), (count as usize - struck as usize) * frame_bytes);
        let (next, last) = piece(&batch, end);
        assert_eq!((next, last), (batch.bytes.len(), count), "the rest is one piece");
        let first_left = number_of_order(&batch.bytes[end..]).expect("an order");
        assert_eq!(first_left, (through + 1) | 1, "odd ones are left");
    }

    #[test]
    fn orders_of_the_next_session_have_not_left_and_what_ended_with_the_one_before_is_not_confirmed() {
        let session = session();
        (1..=5).for_each(|number| assert_eq!(send(&session, &enter(number, 100)), Ok(true)));
        hand(&session, 5);
        assert_eq!(session.cancel_all(None, b'S', false), 5);
        assert_eq!(leave(&session), 5);
        assert_eq!(session.leave_orders().len(), 5);
        assert_eq!(session.cancels_of(None), Cancels { orders: 5, sent: 5, open: 0, expired: 5 });
        assert!(!session.has_cancels_open());
        assert_eq!(send(&session, &enter(6, 100)), Ok(true));
        assert_eq!(session.outstanding.borrow().last_number(), 1);
        assert_eq!((session.cancel_all(None, b'S', false), leave(&session)), (1, 0));
        assert_eq!(session.cancels_of(None), Cancels { orders: 1, sent: 0, open: 0, expired: 1 });
    }

    #[test]
    fn a_clients_cancel_is_kept_once_more_if_its_order_was_sent_and_a_journal_may_hold_it_up() {
        let session = session();
        (1..=2).for_each(|number| assert_eq!(send(&session, &enter(number, 100)), Ok(true)));
        session.handed.set(1);
        (1..=2).for_each(|number| assert_eq!(send(&session, &cancel(number, 0)), Ok(true)));
        let copies = session.waiting.borrow().copies.clone();
        assert_eq!(copies.len(), CANCEL_FRAME_BYTES);
        assert_eq!(copies[HEADER_BYTES + 1..HEADER_BYTES + 5], 1_u32.to_be_bytes());
        // Also when so many bytes wait that only one cancel of each order is kept.
        session.waiting.borrow_mut().bytes.resize(WAITING_BYTES_MAX + 1, 0);
        for quantity in [50, 20, 70] {
            (1..=2).for_each(|number| assert_eq!(send(&session, &cancel(number, quantity)), Ok(true)));
        }
        let mut late = Vec::new();
        append_cancel(1, 20, &mut late);
        assert_eq!(session.waiting.borrow_mut().take_copies(), [copies, late].concat());
    }
}
