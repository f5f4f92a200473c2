//! The account and its connection against a small in-memory exchange: a right stream never causes an error, and a
//! missing message is always noticed.

use std::rc::Rc;

use proptest::prelude::*;
use weir_proto::{
    ouch::{Accepted, CancelReject, Canceled, Inbound, Outbound, Rejected, codes},
    soup,
};
use weir_record::orders::MISMATCHES_MAX;

use super::{
    generator::OrderGenerator,
    notes::{Hop, RequestKind},
    session::{Moment, Session, SessionOptions},
    spec::OrderMix,
    trader::{Trader, Verdict},
};
use crate::{
    failure::{Class, Failure},
    payload::mix,
};

#[path = "../../tests/it/orders_host.rs"]
mod host;

use host::{Connection, Habits, Host, Tamper};

const EVERYTHING: OrderMix = OrderMix { enter: 3, replace: 1, cancel: 1 };
const CANCELS: OrderMix = OrderMix { enter: 1, replace: 0, cancel: 1_000_000 };
const AT: Moment = Moment { now_ns: 1_000, wall_ns: 50_000 };

/// An account, the exchange, and the bytes in transit between them.
struct Desk {
    session: Session,
    host: Host,
    connection: Connection,
    to_client: Vec<u8>,
    /// Numbers of requests in flight as the generator would keep them: one entry each.
    in_flight: Vec<u64>,
    sent: u64,
    right: Vec<u64>,
    failures: Vec<Failure>,
}

impl Desk {
    fn new(host: Host, mix: OrderMix) -> Self {
        let symbols = vec!["WEIRA".parse().expect("a symbol"), "WEIRB".parse().expect("a symbol")];
        let trader = Trader::new(Rc::new(OrderGenerator::new(7, symbols)), 3, mix, 1024);
        let options = SessionOptions {
            account: "C00004".parse().expect("a name"),
            password: "DEMO".parse().expect("a name"),
            resume: false,
            reconnect_every: None,
        };
        Self {
            session: Session::new(options, trader),
            host,
            connection: Connection::default(),
            to_client: Vec::new(),
            in_flight: Vec::new(),
            sent: 0,
            right: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// Opens a new connection: logs in and receives missed messages. The client gets its bytes in pieces of `piece`.
    fn connect(&mut self, piece: usize) -> Result<(), Failure> {
        self.host.ended(&self.connection);
        self.connection = Connection::default();
        self.to_client.clear();
        self.session.begin(0);
        while !self.session.is_live() {
            let sent = self.say_aside();
            self.hear(piece)?;
            assert!(sent || self.session.is_live(), "nobody says anything any more");
        }
        self.say_aside();
        Ok(())
    }

    fn say_aside(&mut self) -> bool {
        let mut bytes = Vec::new();
        self.session.take_aside(&mut bytes);
        self.host.receive(&mut self.connection, &bytes, &mut self.to_client);
        !bytes.is_empty()
    }

    /// Sends a request; it is lost unless it `arrives`.
    fn send(&mut self, arrives: bool) {
        let trader = self.session.trader();
        let request = trader.next_request(AT.wall_ns - 100).expect("numbers are left");
        let mut bytes = Vec::new();
        trader.encode(&request, &mut bytes);
        trader.sent(request);
        self.in_flight.push(self.sent);
        self.sent += 1;
        if arrives {
            self.host.receive(&mut self.connection, &bytes, &mut self.to_client);
        }
    }

    /// Receives everything in transit, in pieces.
    fn hear(&mut self, piece: usize) -> Result<(), Failure> {
        let bytes = std::mem::take(&mut self.to_client);
        for chunk in bytes.chunks(piece) {
            let mut input = chunk;
            while let Some(message) = self.session.next(&mut input, AT)? {
                match message.verdict {
                    Verdict::Aside => {}
                    Verdict::Right { place, .. } => self.right.push(self.in_flight.remove(place)),
                    Verdict::Wrong { place, failure } => {
                        self.in_flight.remove(place);
                        self.failures.push(failure);
                    }
                }
            }
        }
        Ok(())
    }

    /// Sends this many requests, a few in flight at a time.
    fn trade(&mut self, requests: u64, depth: usize) -> Result<(), Failure> {
        for number in 0..requests {
            self.send(true);
            if number as usize % depth == depth - 1 {
                self.hear(17)?;
            }
        }
        self.hear(1 << 16)
    }

    /// Cancels all live orders.
    fn cancel_all(&mut self) -> Result<(), Failure> {
        self.session.trader().set_mix(CANCELS);
        while self.session.trader().has_target() {
            self.send(true);
            self.hear(1 << 16)?;
        }
        Ok(())
    }

    /// The evidence that something went wrong, if there is any.
    fn suspicion(&mut self, outcome: Result<(), Failure>) -> Option<String> {
        let totals = self.session.totals();
        if let Err(failure) = outcome {
            Some(failure.text)
        } else if let Some(failure) = self.failures.first() {
            Some(failure.text.clone())
        } else if !self.in_flight.is_empty() {
            Some(format!("{} requests without an answer", self.in_flight.len()))
        } else if !totals.shares.is_conserved() {
            Some(format!("{:?}", totals.shares))
        } else {
            (totals.inversions > 0).then(|| "inversions".into())
        }
    }
}

#[test]
fn a_first_login_goes_on_with_the_numbers_of_the_account_and_ignores_its_past() {
    let mut old = Vec::new();
    let enter = weir_proto::ouch::Enter {
        user_ref_num: 41,
        side: b'B',
        quantity: 1,
        symbol: "OLD".parse().expect("a symbol"),
        price: 1,
        time_in_force: b'0',
        display: b'Y',
        capacity: b'P',
        intermarket_sweep: b'N',
        cross_type: b'N',
        client_order_id: "OLD".parse().expect("an id"),
    };
    Outbound::Accepted(Accepted::of(&enter, 5, 41)).encode(&mut old);
    let host = Host::default().with_past("C00004", 41, vec![vec![b'S'; 10], old]);
    let mut desk = Desk::new(host, OrderMix::ENTER);
    desk.connect(1).expect("a right server");
    desk.trade(10, 3).expect("a right stream");
    let account = desk.host.account("C00004");
    assert_eq!((account.last, account.live.keys().copied().min()), (51, Some(42)));
    assert_eq!(desk.right, (0..10).collect::<Vec<_>>());
    assert_eq!(desk.suspicion(Ok(())), None);
    // The newest old message, the answer to the query, and ten acceptances.
    assert_eq!(desk.session.totals().sequenced, 12);
}

#[test]
fn the_ways_of_an_order_are_told_from_the_time_stamp_of_its_answer() {
    for (clock, expected) in [
        ((|| 49_960) as fn() -> u64, Hop::Timed { out_ns: 60, back_ns: 40 }),
        (|| 7, Hop::Implausible),
        (|| u64::MAX, Hop::Implausible),
    ] {
        let mut desk = Desk::new(Host::new(Habits { clock, ..Habits::default() }), OrderMix::ENTER);
        desk.connect(1 << 16).expect("a right server");
        desk.send(true);
        let bytes = std::mem::take(&mut desk.to_client);
        let mut input = &bytes[..];
        let message = desk.session.next(&mut input, AT).expect("right").expect("an answer");
        assert!(
            matches!(message.verdict, Verdict::Right { place: 0, hop } if hop == expected),
            "{message:?}"
        );
    }
}

#[test]
fn a_stream_that_goes_on_elsewhere_is_told_at_the_login() {
    let mut desk = Desk::new(Host::default(), OrderMix::ENTER);
    desk.connect(1 << 16).expect("a right server");
    desk.trade(5, 1).expect("a right stream");
    desk.session.leave();
    desk.session.begin(0);
    let mut bytes = Vec::new();
    let accepted = soup::LoginAccepted { session: "DAY1".parse().expect("a name"), next_sequence: 5 };
    accepted.encode(&mut bytes);
    let failure = desk.session.next(&mut &bytes[..], AT).expect_err("message 7 comes next");
    assert!(failure.text.contains("message 7 was asked for") && failure.text.contains("with message 5"));
}

#[test]
fn an_account_query_that_forgets_an_order_is_told() {
    let mut desk = Desk::new(Host::default(), OrderMix::ENTER);
    desk.connect(1 << 16).expect("a right server");
    desk.trade(5, 1).expect("a right stream");
    desk.session.leave();
    let past = desk.host.account("C00004").log.clone();
    desk.host = Host::default().with_past("C00004", 3, past);
    let failure = desk.connect(1 << 16).expect_err("order 5 was answered");
    assert!(failure.text.contains("order 4 comes next, but order 5 was answered"), "{}", failure.text);
}

#[test]
fn what_was_given_up_may_still_be_answered_and_then_its_shares_count() {
    let mut desk = Desk::new(Host::default(), OrderMix::ENTER);
    desk.connect(1 << 16).expect("a right server");
    desk.trade(5, 1).expect("a right stream");
    desk.send(true);
    desk.send(false);
    desk.session.give_up();
    desk.in_flight.clear();
    desk.connect(1 << 16).expect("a right server");
    desk.trade(5, 2).expect("a right stream");
    assert_eq!(desk.suspicion(Ok(())), None);
    let live: u64 = desk.host.account("C00004").live.values().map(|order| u64::from(order.left)).sum();
    assert_eq!(desk.session.totals().shares.live, live);
    assert_eq!(desk.right.len(), 10, "the two that were given up are not among them");
}

#[test]
fn a_cancel_that_was_sent_twice_may_be_refused_the_second_time() {
    // The first is in flight behind the server that the client talks to, and is answered after the second login.
    let mut held = Vec::new();
    let messages = move |number: u64, said: &mut Vec<Vec<u8>>| match number {
        1 => held = std::mem::take(said),
        2 => drop(said.splice(0..0, held.drain(..))),
        _ => {}
    };
    let tamper = Tamper { messages: Box::new(messages), ..Tamper::default() };
    let host = Host::new(Habits { tamper, answers_all: true, ..Habits::default() });
    let mut desk = Desk::new(host, CANCELS);
    desk.connect(1 << 16).expect("a right server");
    desk.trade(2, 1).expect("a right stream");
    desk.session.leave();
    desk.connect(1 << 16).expect("a right server");
    let outcome = desk.hear(1 << 16);
    assert_eq!((desk.suspicion(outcome), &desk.right[..]), (None, &[0, 1][..]));
    let letters: Vec<u8> = desk.host.account("C00004").log.iter().map(|message| message[0]).collect();
    assert_eq!(letters, b"QAQCI");
}

#[test]
fn a_replace_that_only_cancels_its_original_need_not_use_up_its_number() {
    let symbols = vec!["WEIRA".parse().expect("a symbol")];
    let mut trader = Trader::new(Rc::new(OrderGenerator::new(7, symbols)), 0, EVERYTHING, 16);
    let enter = trader.next_request(AT.wall_ns).expect("a number");
    let mut bytes = Vec::new();
    trader.encode(&enter, &mut bytes);
    trader.sent(enter);
    let inbound = Inbound::decode(&bytes[soup::HEADER_BYTES..]).expect("it is right");
    let Inbound::Enter(order, _) = inbound else { panic!("{inbound:?} without an order to replace") };
    let mut tell = |trader: &mut Trader, message: Outbound| {
        bytes.clear();
        message.encode(&mut bytes);
        trader.judge(&bytes, AT.wall_ns).expect("it is right")
    };
    let accepted = Accepted::of(&order, 1, 1);
    assert!(matches!(tell(&mut trader, Outbound::Accepted(accepted)), Verdict::Right { .. }));
    trader.set_mix(OrderMix { enter: 1, replace: 1_000_000, cancel: 0 });
    let replace = trader.next_request(AT.wall_ns).expect("a number");
    assert_eq!((replace.kind, replace.number), (RequestKind::Replace, 2));
    trader.sent(replace);
    let canceled = Canceled {
        timestamp_ns: 2,
        user_ref_num: 1,
        quantity: order.quantity,
        reason: codes::cancel_reason::USER,
    };
    assert!(matches!(tell(&mut trader, Outbound::Canceled(canceled)), Verdict::Right { .. }));
    // The venue may give number 2 back or keep it; number 1 is gone for good.
    assert!(trader.go_on(1).is_err());
    assert!(trader.go_on(2).is_ok() && trader.go_on(3).is_ok());
}

#[test]
fn an_account_without_numbers_sends_nothing_more() {
    let host = Host::default().with_past("C00004", u32::MAX - 1, Vec::new());
    let mut desk = Desk::new(host, OrderMix::ENTER);
    desk.connect(1 << 16).expect("a right server");
    desk.trade(1, 1).expect("the last number");
    assert!(desk.session.trader().is_exhausted());
    assert_eq!(desk.session.trader().next_request(0), None);
    assert_eq!((desk.host.account("C00004").last, desk.right.len()), (u32::MAX, 1));
}

/// An account without a connection, which enters orders until it gets another mix.
fn lone_trader() -> Trader {
    let symbols = vec!["WEIRA".parse().expect("a symbol")];
    let mut trader = Trader::new(Rc::new(OrderGenerator::new(7, symbols)), 0, EVERYTHING, 16);
    trader.set_mix(OrderMix::ENTER);
    trader
}

/// Sends the next request; returns an exchange's answer if it is a new order.
fn send_next(trader: &mut Trader) -> (u32, Option<Outbound>) {
    let request = trader.next_request(AT.wall_ns - 100).expect("numbers are left");
    let mut bytes = Vec::new();
    trader.encode(&request, &mut bytes);
    trader.sent(request);
    let answer = match Inbound::decode(&bytes[soup::HEADER_BYTES..]).expect("it is right") {
        Inbound::Enter(enter, _) => Some(Outbound::Accepted(Accepted::of(&enter, AT.wall_ns, 1))),
        _ => None,
    };
    (request.number, answer)
}

fn hear(trader: &mut Trader, message: &Outbound) -> Verdict {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    trader.judge(&bytes, AT.wall_ns).expect("the stream can be trusted")
}

fn cancelled(user_ref_num: u32, quantity: u32, reason: u8) -> Outbound {
    Outbound::Canceled(Canceled { timestamp_ns: 2, user_ref_num, quantity, reason })
}

#[test]
fn a_refusal_that_comes_before_answers_to_earlier_orders_is_no_inversion() {
    let mut trader = lone_trader();
    let orders: Vec<Outbound> =
        (0..4).map(|_| send_next(&mut trader).1.expect("an order is answered")).collect();
    for answer in &orders[2..] {
        let Outbound::Accepted(accepted) = answer else { panic!("{answer:?} instead of an acceptance") };
        let refused = Rejected {
            timestamp_ns: 1,
            user_ref_num: accepted.user_ref_num,
            reason: weir_proto::ouch::reject_reason::PROCESSING_ERROR,
            client_order_id: accepted.client_order_id,
        };
        let verdict = hear(&mut trader, &Outbound::Rejected(refused));
        let Verdict::Wrong { place: 2, failure } = verdict else { panic!("{verdict:?}: it was refused") };
        assert_eq!(failure.class, Class::WrongStatus);
    }
    for answer in &orders[..2] {
        let verdict = hear(&mut trader, answer);
        assert!(matches!(verdict, Verdict::Right { place: 0, .. }), "{verdict:?}");
    }
    assert_eq!((trader.inversions(), trader.mismatches()), (0, &[][..]));
}

#[test]
fn an_order_that_somebody_else_cancels_ends_what_is_asked_about_it_and_inverts_nothing() {
    for mix in [OrderMix { enter: 1, replace: 1_000_000, cancel: 0 }, CANCELS] {
        let mut trader = lone_trader();
        let (first, answer) = send_next(&mut trader);
        let answer = answer.expect("an order is answered");
        hear(&mut trader, &answer);
        let Outbound::Accepted(accepted) = answer else { panic!("an order is accepted") };
        let (_, earlier) = send_next(&mut trader);
        trader.set_mix(mix);
        send_next(&mut trader);
        // After a kill the exchange cancels what it has lost before it answers what it had not taken.
        let verdict = hear(&mut trader, &cancelled(first, accepted.quantity, codes::cancel_reason::SYSTEM));
        assert!(matches!(verdict, Verdict::Right { place: 1, .. }), "{verdict:?}");
        let verdict = hear(&mut trader, &earlier.expect("an order is answered"));
        assert!(matches!(verdict, Verdict::Right { place: 0, .. }), "{verdict:?}");
        assert_eq!((trader.inversions(), trader.mismatches()), (0, &[][..]));
        if mix == CANCELS {
            // The cancel comes too late, and a venue may say so.
            let late = Outbound::CancelReject(CancelReject { timestamp_ns: 3, user_ref_num: first });
            assert!(matches!(hear(&mut trader, &late), Verdict::Aside));
        }
        assert!(trader.blotter().shares().is_conserved());
    }
}

#[test]
fn a_replace_of_an_order_that_is_over_may_be_refused_once() {
    let mut trader = lone_trader();
    let (first, answer) = send_next(&mut trader);
    let answer = answer.expect("an order is answered");
    hear(&mut trader, &answer);
    let Outbound::Accepted(accepted) = answer else { panic!("an order is accepted") };
    trader.set_mix(OrderMix { enter: 1, replace: 1_000_000, cancel: 0 });
    let (number, _) = send_next(&mut trader);
    hear(&mut trader, &cancelled(first, accepted.quantity, codes::cancel_reason::SYSTEM));
    // A gateway cannot reach the exchange, and refuses a request it need not have answered.
    let refused = Outbound::Rejected(Rejected {
        timestamp_ns: 3,
        user_ref_num: number,
        reason: weir_proto::ouch::reject_reason::PROCESSING_ERROR,
        client_order_id: super::generator::client_order_id(AT.wall_ns - 100),
    });
    assert!(matches!(hear(&mut trader, &refused), Verdict::Aside));
    let mut bytes = Vec::new();
    refused.encode(&mut bytes);
    let error = trader.judge(&bytes, AT.wall_ns).expect_err("it was refused already");
    assert!(error.text.contains("not waiting for an answer"), "{}", error.text);
}

#[test]
fn a_cancel_may_overtake_an_order_and_not_come_behind_one() {
    for is_early in [true, false] {
        let mut trader = lone_trader();
        let (first, answer) = send_next(&mut trader);
        let answer = answer.expect("an order is answered");
        hear(&mut trader, &answer);
        let Outbound::Accepted(accepted) = answer else { panic!("an order is accepted") };
        let done = cancelled(first, accepted.quantity, codes::cancel_reason::USER);
        let (mut order, mut mixes) = (None, [OrderMix::ENTER, CANCELS]);
        if !is_early {
            mixes.reverse();
        }
        for mix in mixes {
            trader.set_mix(mix);
            order = send_next(&mut trader).1.or(order);
        }
        let accepted = order.expect("an order is answered");
        let answers = if is_early { [done, accepted] } else { [accepted, done] };
        answers.iter().for_each(|answer| drop(hear(&mut trader, answer)));
        assert_eq!(trader.inversions(), u64::from(!is_early));
    }
}

#[test]
fn of_answers_that_are_wrong_the_first_are_told_with_what_was_expected() {
    let mut trader = lone_trader();
    let orders: Vec<Outbound> =
        (0..20).map(|_| send_next(&mut trader).1.expect("an order is answered")).collect();
    for answer in orders.iter().rev() {
        hear(&mut trader, answer);
    }
    assert_eq!((trader.inversions(), trader.mismatches().len()), (19, MISMATCHES_MAX));
    let first = &trader.mismatches()[0];
    assert_eq!((first.order, first.expected.as_str()), (19, "an answer before that to request 19"));
    assert_eq!(first.got, "one to request 18 behind it");
    // Shares that no longer exist.
    let mut trader = lone_trader();
    let (number, answer) = send_next(&mut trader);
    hear(&mut trader, &answer.expect("an order is answered"));
    trader.set_mix(CANCELS);
    send_next(&mut trader);
    hear(&mut trader, &cancelled(number, 501, codes::cancel_reason::USER));
    let [wrong] = trader.mismatches() else { panic!("{:?}", trader.mismatches()) };
    assert!(wrong.order == number && wrong.expected.ends_with("shares"), "{wrong:?}");
    assert!(wrong.got.contains("quantity: 501"), "{wrong:?}");
}

proptest! {
    /// A right stream is accepted however it is cut and whatever is executed meanwhile: every request is answered
    /// once, in order.
    #[test]
    fn a_right_stream_is_right(seed in 1_u64..1000, depth in 1_usize..8, executes: bool) {
        let requests = 40 + seed % 100;
        let mut desk = Desk::new(Host::new(Habits { executes, ..Habits::default() }), EVERYTHING);
        desk.connect(1 + (seed % 60) as usize).expect("a right server");
        let outcome = desk.trade(requests, depth).and_then(|()| desk.cancel_all());
        prop_assert_eq!(desk.suspicion(outcome), None);
        let totals = desk.session.totals();
        prop_assert_eq!(desk.right.len() as u64, desk.sent);
        prop_assert_eq!((totals.shares.live, desk.host.account("C00004").live.len()), (0, 0));
        prop_assert_eq!(totals.sequenced, desk.host.account("C00004").log.len() as u64);
    }

    /// Connections that break anywhere, with bytes lost in both directions, neither lose nor duplicate anything.
    #[test]
    fn nothing_is_lost_or_doubled_over_reconnects(seed: u64, executes: bool) {
        // A venue that only answers does not execute.
        let habits = Habits { executes, answers_all: !executes, ..Habits::default() };
        let mut desk = Desk::new(Host::new(habits), EVERYTHING);
        desk.connect(1 << 16).expect("a right server");
        let mut outcome = Ok(());
        for round in 0..30_u64 {
            let random = mix(seed ^ round);
            let (sent, arriving) = (random % 6, (random >> 8) % 7);
            (0..sent).for_each(|number| desk.send(number < arriving));
            // The client receives the beginning of the answers, cut anywhere; the rest is lost.
            let heard = (random >> 16) as usize % (desk.to_client.len() + 1);
            desk.to_client.truncate(heard);
            outcome = outcome.and_then(|()| desk.hear(9));
            desk.session.leave();
            outcome = outcome.and_then(|()| desk.connect(1 + (random >> 40) as usize % 99));
        }
        outcome = outcome.and_then(|()| desk.hear(5)).and_then(|()| desk.cancel_all());
        prop_assert_eq!(desk.suspicion(outcome), None, "seed {}", seed);
        prop_assert_eq!(desk.right.len() as u64, desk.sent);
        let totals = desk.session.totals();
        prop_assert_eq!((totals.reconnects, totals.shares.live), (30, 0));
        prop_assert_eq!(totals.sequenced, desk.host.account("C00004").log.len() as u64);
    }

    /// A message of the venue that never arrives is noticed: by its request, or by the balance of shares.
    #[test]
    fn a_lost_message_is_noticed(lost in 0_u64..100, place in 0_usize..2, executes: bool) {
        let mut gone = Vec::new();
        let (sender, receiver) = std::sync::mpsc::channel();
        let messages = move |number: u64, said: &mut Vec<Vec<u8>>| {
            if number == lost && place < said.len() {
                let _ = sender.send(said.remove(place));
            }
        };
        let tamper = Tamper { messages: Box::new(messages), ..Tamper::default() };
        let mut desk = Desk::new(Host::new(Habits { executes, tamper, ..Habits::default() }), EVERYTHING);
        desk.connect(1 << 16).expect("a right server");
        let outcome = desk.trade(100, 3).and_then(|()| desk.cancel_all());
        gone.extend(receiver.try_iter());
        prop_assert_eq!(desk.suspicion(outcome).is_some(), !gone.is_empty(), "{:?}", gone);
    }

    /// One wrong byte of the venue is noticed wherever it is, except in fields that only the venue knows.
    #[test]
    fn a_wrong_byte_of_an_acceptance_is_noticed(request in 0_u64..20, place in 0_usize..64, bit in 0_u32..8) {
        let messages = move |number: u64, said: &mut Vec<Vec<u8>>| {
            if number == request {
                said[0][place] ^= 1 << bit;
            }
        };
        let tamper = Tamper { messages: Box::new(messages), ..Tamper::default() };
        let mut desk = Desk::new(Host::new(Habits { tamper, ..Habits::default() }), OrderMix::ENTER);
        desk.connect(1 << 16).expect("a right server");
        let outcome = desk.trade(20, 1);
        // The time stamp, the venue's number of the order, and whether it is live: L and D differ in one bit.
        let is_theirs =
            (1..9).contains(&place) || (36..44).contains(&place) || (place, 1 << bit) == (47, b'L' ^ b'D');
        prop_assert_eq!(desk.suspicion(outcome).is_none(), is_theirs);
    }

    /// Bytes that are not a valid stream end the connection, and do nothing else.
    #[test]
    fn garbage_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut desk = Desk::new(Host::default(), EVERYTHING);
        desk.connect(1 << 16).expect("a right server");
        desk.trade(10, 2).expect("a right stream");
        desk.to_client = bytes;
        let _ = desk.hear(7);
    }
}
