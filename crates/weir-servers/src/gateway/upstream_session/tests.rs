//! Tests of a session by the events that its owner passes on.

use std::cell::Cell;

use weir_proto::{
    ouch::{Cancel, Inbound, reject_reason},
    soup::{Deframer, HEADER_BYTES, LoginAccepted, SEQUENCED},
};
use weir_trading::Origin;

use super::{outgoing::CANCEL_FRAME_BYTES, *};
use crate::{
    gateway::{
        kill_switch::Cancels,
        outstanding::{OutstandingLimits, append_cancel},
        test_messages::{accepted, enter},
        unsolicited_cancels::Expiry,
    },
    orders::ClientMessage,
};

const CREDENTIALS: fn() -> Credentials = || Credentials {
    username: "G00001".parse().expect("a name"),
    password: "DEMO".parse().expect("a password"),
    timing: Timing::default(),
};

/// A session and what it has asked for.
struct Rig {
    session: UpstreamSession,
    effects: Effects,
    /// The last message of the exchange.
    said: Cell<u64>,
}

impl Rig {
    /// A session that is up.
    fn new() -> Self {
        let mut rig =
            Self::down(OutstandingLimits { unanswered_max: 1 << 16, ..OutstandingLimits::default() });
        rig.come_up("DAY", 1);
        rig
    }

    fn down(limits: OutstandingLimits) -> Self {
        let session = UpstreamSession::new(0, OutstandingOrders::new(1, limits), Resume::default(), true);
        Self { session, effects: Effects::default(), said: Cell::new(0) }
    }

    /// A connection on which the exchange lets it in to this session, and expects this order next.
    fn come_up(&mut self, session: &str, next_order: u32) {
        self.session.connect(0, &CREDENTIALS());
        self.log_in(session).expect("it is the one");
        self.say(&Outbound::AccountQueryResponse { timestamp_ns: 0, next_user_ref_num: next_order });
        assert!(self.session.is_up());
        self.leave();
    }

    fn log_in(&mut self, session: &str) -> Result<(), End> {
        let next_sequence = self.said.get() + 1;
        let mut bytes = Vec::new();
        LoginAccepted { session: session.parse().expect("a name"), next_sequence }.encode(&mut bytes);
        self.hear(&bytes)
    }

    /// The exchange sends its next message.
    fn say(&mut self, message: &Outbound) {
        let (mut payload, mut bytes) = (Vec::new(), Vec::new());
        message.encode(&mut payload);
        encode_frame(SEQUENCED, &payload, &mut bytes);
        self.said.set(self.said.get() + 1);
        self.hear(&bytes).expect("it goes on");
    }

    fn hear(&mut self, mut bytes: &[u8]) -> Result<(), End> {
        let mut deframer = Deframer::new(1024);
        let frame = deframer.next(&mut bytes).expect("a frame").expect("a whole one");
        let step = Step { now_ns: 0, has_room: true, kept: Some(u64::MAX) };
        self.session.on_frame(frame, step, &mut self.effects)
    }

    fn send(&mut self, message: &Inbound<'_>) -> Result<bool, u16> {
        self.send_received(message, 0)
    }

    /// Sends a message with this receive time.
    fn send_received(&mut self, message: &Inbound<'_>, received_ns: u64) -> Result<bool, u16> {
        let mut raw = Vec::new();
        let message = ClientMessage::encode(*message, &mut raw);
        let user_ref_num = message.user_ref_num();
        let origin = Origin { account: AccountId(0), user_ref_num, home: 0, received_ns };
        let numbered = self.session.accept(origin, &message)?;
        self.session.journaled(1);
        Ok(numbered.is_some())
    }

    fn enter(&mut self, numbers: std::ops::RangeInclusive<u32>) {
        numbers.for_each(|number| assert_eq!(self.send(&enter(number, 100)), Ok(true)));
    }

    fn cancel_all(&mut self, has_failed: bool) -> u64 {
        self.session.cancel_all(None, b'S', has_failed, &mut self.effects)
    }

    /// Sends the urgent bytes; returns the number of cancels.
    fn leave(&mut self) -> usize {
        let batch = self.session.take_urgent(Vec::new());
        self.session.on_batch_sent(&batch);
        batch.bytes().len() / CANCEL_FRAME_BYTES
    }

    /// Marks orders up to this number as sent.
    fn hand(&mut self, through: u32) {
        self.session.handed = through;
        self.connection().handed_here = through;
    }

    fn connection(&mut self) -> &mut Connection {
        self.session.connection.as_mut().expect("it is connected")
    }

    /// All that a batch of the waiting messages gives to the connection now.
    fn sent(&mut self, now_ns: u64) -> Vec<u8> {
        let (mut batch, mut sent) = (self.session.take_waiting(Vec::new()), Vec::new());
        while let Piece::Bytes(bytes) = self.session.next_piece(&mut batch, now_ns, &mut self.effects) {
            sent.extend_from_slice(&batch.bytes()[bytes]);
        }
        self.session.on_batch_sent(&batch);
        sent
    }

    /// Clients' numbers of the orders that have ended here.
    fn ended(&mut self) -> Vec<u32> {
        let ended = self.effects.list.drain(..).filter_map(|effect| match effect {
            Effect::Expired(expired) => Some(expired.expiries),
            Effect::BegunAnew { ended, .. } => Some(ended.expiries),
            _ => None,
        });
        ended.flatten().map(|expiry: Expiry| expiry.origin.user_ref_num).collect()
    }
}

fn cancel(user_ref_num: u32, quantity: u32) -> Inbound<'static> {
    Inbound::Cancel(Cancel { user_ref_num, quantity })
}

/// The numbers of the orders in these frames.
fn orders(mut frames: &[u8]) -> Vec<u32> {
    let (mut deframer, mut numbers) = (Deframer::new(1024), Vec::new());
    while let Ok(Some(frame)) = deframer.next(&mut frames) {
        let message = ClientMessage::decode(frame.payload).expect("a message");
        numbers.extend(message.new_number());
    }
    numbers
}

#[test]
fn when_too_much_waits_orders_are_refused_and_one_cancel_of_each_order_is_kept() {
    let mut rig = Rig::new();
    let mut number = 1;
    let reason = loop {
        match rig.send(&enter(number, 100)) {
            Ok(is_sent) => assert!(is_sent),
            Err(reason) => break reason,
        }
        number += 1;
    };
    assert_eq!(reason, reject_reason::PROCESSING_ERROR);
    let bytes = rig.session.waiting.bytes.len();
    assert!((WAITING_BYTES_MAX..WAITING_BYTES_MAX + 64).contains(&(bytes - 1)), "{bytes}");
    for quantity in [50, 20, 70, 20] {
        for number in 1..=10 {
            assert_eq!(rig.send(&cancel(number, quantity)), Ok(true));
        }
    }
    assert_eq!(rig.send(&cancel(number, 0)), Ok(false), "it was refused");
    assert_eq!(rig.session.waiting.bytes.len(), bytes);
    let taken = rig.session.take_waiting(Vec::new());
    let (orders, cancels) = taken.bytes().split_at(bytes);
    assert_eq!(taken.messages(), (orders.len() / 50 + 10) as u64);
    assert_eq!(taken.orders(), u64::from(number - 1) + 40);
    for (cancel, number) in cancels.chunks(CANCEL_FRAME_BYTES).zip(1_u32..) {
        let expected = [&number.to_be_bytes()[..], &20_u32.to_be_bytes()].concat();
        assert_eq!(cancel[4..], expected);
    }
    assert_eq!(cancels.len(), 10 * CANCEL_FRAME_BYTES);
    assert!(rig.send(&enter(number, 100)).is_ok(), "there is room again");
}

#[test]
fn what_was_sent_is_cancelled_at_once_and_what_was_not_stays_here() {
    let mut rig = Rig::new();
    rig.enter(1..=5);
    rig.hand(3);
    let before = rig.session.waiting.bytes.len();
    // With a failed journal the others will never be sent, and are not reported.
    assert_eq!(rig.cancel_all(true), 3);
    assert_eq!((rig.leave(), rig.ended()), (3, Vec::new()));
    assert_eq!(rig.cancel_all(false), 5);
    // Repeated while the first ones are on their way: nothing is added.
    assert_eq!(rig.cancel_all(false), 3);
    assert_eq!(rig.session.waiting.bytes.len(), before, "no cancel waits");
    assert_eq!(rig.ended(), [4, 5]);
    let of_sent = |sent| Cancels { orders: 3, sent, open: 3, expired: 0 };
    assert_eq!(rig.session.cancels_of(None), of_sent(0));
    assert_eq!(rig.leave(), 3);
    assert_eq!(rig.session.cancels_of(None), of_sent(3));
    assert!(rig.session.has_cancels_open());
    assert_eq!(rig.session.cancels_of(Some(AccountId(0))), Cancels::default());
    rig.enter(6..=6);
    assert_eq!(orders(&rig.sent(0)), [1, 2, 3, 6], "those had left, and what comes later does leave");
}

#[test]
fn orders_that_only_an_earlier_connection_had_are_cancelled_and_not_sent_again() {
    let mut rig = Rig::new();
    rig.enter(1..=5);
    // The previous connection had sent three, and all are waiting again.
    rig.session.handed = 3;
    assert_eq!(rig.cancel_all(false), 5);
    assert_eq!(rig.session.cancels_of(None), Cancels { orders: 5, sent: 0, open: 3, expired: 2 });
    assert_eq!((rig.leave(), rig.ended()), (3, vec![4, 5]));
    let stale = rig.connection().stale;
    assert_eq!(stale, Some(6), "whether the exchange has them, it says before anything later");
    assert_eq!(orders(&rig.sent(0)), Vec::<u32>::new());
}

#[test]
fn the_oldest_of_the_orders_that_wait_decides_when_one_is_too_old_wherever_it_is() {
    let mut rig = Rig::new();
    let wait_max_ns = rig.session.outstanding.wait_max_ns();
    for (number, received_ns) in [(1, 50), (2, 10), (3, 70)] {
        assert_eq!(rig.send_received(&enter(number, 100), received_ns), Ok(true));
    }
    assert_eq!(rig.session.waiting.until_ns, Some(wait_max_ns + 10));
    // Also when all of them are resent.
    let until_ns = |above| rig.session.outstanding.first_wait_until_ns(above);
    assert_eq!([0, 2, 3].map(until_ns), [Some(wait_max_ns + 10), Some(wait_max_ns + 70), None]);
}

#[test]
fn what_is_late_ends_once_and_the_rest_is_looked_at_again_only_when_it_is_late_too() {
    let mut rig = Rig::new();
    let wait_max_ns = rig.session.outstanding.wait_max_ns();
    for (number, received_ns) in [(1, 0), (2, 40), (3, 0), (4, 50)] {
        assert_eq!(rig.send_received(&enter(number, 100), received_ns), Ok(true));
    }
    // The first one has been sent: the exchange reports its outcome, however late.
    rig.hand(1);
    let until_ns = rig.session.refuse_late(wait_max_ns + 1, &mut rig.effects);
    assert_eq!((rig.ended(), until_ns), (vec![3], Some(wait_max_ns + 40)));
    assert_eq!((rig.connection().stale, rig.connection().taken_back), (None, 4));
    let until_ns = rig.session.refuse_late(wait_max_ns + 51, &mut rig.effects);
    assert_eq!((rig.ended(), until_ns), (vec![2, 4], None), "nothing is left to be looked at");
    assert_eq!(orders(&rig.sent(0)), [1]);
}

#[test]
fn late_orders_that_only_an_earlier_connection_had_wait_for_what_the_exchange_says_of_them() {
    let mut rig = Rig::new();
    rig.enter(1..=3);
    // The previous connection had sent two, and this one does not read.
    rig.session.handed = 2;
    let now_ns = rig.session.outstanding.wait_max_ns() + 1;
    assert_eq!(orders(&rig.sent(now_ns)), Vec::<u32>::new(), "none of them is sent again");
    assert_eq!(rig.ended(), [3], "that one no exchange can have");
    assert_eq!((rig.connection().stale, rig.connection().taken_back), (Some(4), 3));
    assert_eq!((rig.session.outstanding.has_stale(), rig.session.is_idle()), (true, false));
}

#[test]
fn an_order_of_another_worker_is_late_when_it_is_older_than_one_may_be_that_is_sent_first() {
    let rig = Rig::new();
    let origin = Origin { account: AccountId(0), user_ref_num: 1, home: 1, received_ns: 5 };
    let is_late = |now_ns| rig.session.is_late(&origin, now_ns);
    let limit_ns = rig.session.outstanding.wait_max_ns() + 5;
    assert_eq!([0, limit_ns, limit_ns + 1].map(is_late), [false, false, true]);
}

#[test]
fn a_batch_leaves_in_pieces_and_what_is_over_is_struck_out_of_what_is_left() {
    let mut rig = Rig::new();
    let count = 700;
    rig.enter(1..=count);
    let mut batch = rig.session.take_waiting(Vec::new());
    let frame_bytes = batch.bytes().len() / count as usize;
    let Piece::Bytes(first) = rig.session.next_piece(&mut batch, 0, &mut rig.effects) else {
        panic!("there is a piece")
    };
    let through = rig.session.handed;
    assert_eq!((first.start, first.end % frame_bytes, first.end / frame_bytes), (0, 0, through as usize));
    assert!(first.end < batch.bytes().len() && first.end > (16 << 10) - frame_bytes);
    // Those that have left are cancelled, and the others do not leave.
    assert_eq!(rig.cancel_all(false), u64::from(count));
    assert_eq!(rig.session.next_piece(&mut batch, 0, &mut rig.effects), Piece::Done);
    assert_eq!((batch.bytes().len(), batch.messages()), (first.end, u64::from(through)));
    assert_eq!((rig.leave(), rig.ended().len()), (through as usize, (count - through) as usize));
}

#[test]
fn a_batch_of_an_earlier_connection_is_not_given_to_the_next() {
    let mut rig = Rig::new();
    rig.enter(1..=2);
    let mut batch = rig.session.take_waiting(Vec::new());
    assert!(rig.session.lost(None), "it was up");
    rig.come_up("DAY", 1);
    assert_eq!(rig.session.next_piece(&mut batch, 0, &mut rig.effects), Piece::Gone);
    assert_eq!(orders(&rig.sent(0)), [1, 2], "they leave again");
}

#[test]
fn orders_of_the_next_session_have_not_left_and_what_ended_with_the_one_before_is_not_confirmed() {
    let mut rig = Rig::new();
    rig.enter(1..=5);
    rig.hand(5);
    assert_eq!(rig.cancel_all(false), 5);
    assert_eq!(rig.leave(), 5);
    assert_eq!(rig.session.leave_orders().len(), 5);
    assert_eq!(rig.session.cancels_of(None), Cancels { orders: 5, sent: 5, open: 0, expired: 5 });
    assert!(!rig.session.has_cancels_open());
    rig.enter(6..=6);
    assert_eq!(rig.session.outstanding.last_number(), 1);
    assert_eq!((rig.cancel_all(false), rig.leave()), (1, 0));
    assert_eq!(rig.session.cancels_of(None), Cancels { orders: 1, sent: 0, open: 0, expired: 1 });
}

#[test]
fn a_clients_cancel_is_kept_once_more_if_its_order_was_sent_and_a_journal_may_hold_it_up() {
    let mut rig = Rig::new();
    rig.enter(1..=2);
    rig.session.handed = 1;
    (1..=2).for_each(|number| assert_eq!(rig.send(&cancel(number, 0)), Ok(true)));
    let mut copies = Vec::new();
    append_cancel(1, 0, &mut copies);
    let ahead = |rig: &mut Rig| {
        let mut batch = rig.session.take_waiting(Vec::new());
        rig.session.send_cancels_ahead(&mut batch);
        let urgent = rig.session.take_urgent(Vec::new());
        assert_eq!(urgent.messages() as usize, urgent.bytes().len() / CANCEL_FRAME_BYTES);
        urgent.bytes().to_vec()
    };
    assert_eq!(ahead(&mut rig), copies);
    assert_eq!(copies[HEADER_BYTES + 1..HEADER_BYTES + 5], 1_u32.to_be_bytes());
    // Also when so many bytes wait that only one cancel of each order is kept.
    rig.session.waiting.bytes.resize(WAITING_BYTES_MAX + 1, 0);
    for quantity in [50, 20, 70] {
        (1..=2).for_each(|number| assert_eq!(rig.send(&cancel(number, quantity)), Ok(true)));
    }
    let mut late = Vec::new();
    append_cancel(1, 20, &mut late);
    assert_eq!(ahead(&mut rig), late);
}

#[test]
fn an_answer_goes_to_its_client_and_what_comes_of_another_session_ends_the_orders_of_the_one_before() {
    let mut rig = Rig::new();
    rig.effects.list.clear();
    rig.enter(1..=2);
    assert_eq!(orders(&rig.sent(0)), [1, 2]);
    rig.say(&Outbound::decode(&accepted(1, b'L')).expect("a message").0);
    let [Effect::Deliver(delivery)] = rig.effects.list.as_slice() else { panic!("{:?}", rig.effects.list) };
    assert_eq!((delivery.origin.user_ref_num, delivery.is_overfill), (1, false));
    assert_eq!(rig.effects.raw, accepted(1, b'L'));
    rig.effects.list.clear();
    assert!(rig.session.lost(None));
    rig.session.connect(0, &CREDENTIALS());
    rig.said.set(0);
    assert_eq!(rig.log_in("NEXT"), Ok(()));
    assert!(matches!(rig.effects.list[0], Effect::BegunAnew { .. }), "{:?}", rig.effects.list);
    assert_eq!(rig.ended(), [1, 2]);
    let Cancels { open, .. } = rig.session.cancels_of(None);
    assert_eq!((open, rig.session.outstanding.open()), (0, 0));
}

#[test]
fn an_exchange_that_does_not_name_its_next_number_is_left() {
    let mut rig = Rig::down(OutstandingLimits::default());
    rig.session.connect(0, &CREDENTIALS());
    rig.log_in("DAY").expect("it is the first one");
    assert_eq!(rig.send(&enter(1, 100)), Err(reject_reason::DESTINATION_CLOSED));
    assert_eq!(rig.session.on_time(QUERY_LIMIT_NS - 1, &mut rig.effects), Ok(()));
    assert_eq!(rig.session.deadline_ns(), QUERY_LIMIT_NS);
    assert_eq!(rig.session.on_time(QUERY_LIMIT_NS, &mut rig.effects), Err(End::NoNumbers));
}
