//! The echo venue: one answer for each message, for any message.

use weir_proto::ouch::Inbound;
use weir_trading::{AccountId, EchoConfig, EchoVenue, Venue};

use crate::{
    random::{Messages, seeds},
    support::{HUNDRED, Sink, buy, cancel, enter, modify, order, replace, replies, sell, words},
};

fn venue(remembered_max: usize) -> EchoVenue {
    EchoVenue::new(EchoConfig { accounts_max: 4, remembered_max, ..Default::default() })
}

#[test]
fn every_message_has_exactly_one_answer() {
    for seed in seeds(5) {
        let mut venue = venue(64);
        let mut messages = Messages::new(seed, 6, 100, true);
        let mut sink = Sink::default();
        for step in 0..20_000 {
            let (account, message) = messages.next();
            venue.handle(step, AccountId(account), &message, &mut sink);
            let said = sink.take();
            assert_eq!(said.len(), 1, "seed {seed}, step {step}: {message:?}");
            assert_eq!(said[0].0, AccountId(account));
        }
    }
}

#[test]
fn orders_are_answered_and_never_trade() {
    let mut venue = venue(64);
    assert_eq!(replies(&mut venue, 0, sell(1, 100, HUNDRED)), ["0 A 1 S 100 @ 1000000"]);
    assert_eq!(replies(&mut venue, 1, buy(1, 100, HUNDRED)), ["1 A 1 B 100 @ 1000000"]);
    assert_eq!(replies(&mut venue, 0, replace(1, 2, 50, HUNDRED)), ["0 U 1>2 50 @ 1000000"]);
    assert_eq!(replies(&mut venue, 0, modify(2, b'T', 40)), ["0 M 2 T 40"]);
    assert_eq!(replies(&mut venue, 0, cancel(2, 10)), ["0 C 2 -30 U"]);
    assert_eq!(replies(&mut venue, 0, cancel(2, 0)), ["0 C 2 -10 U"]);
    assert_eq!(replies(&mut venue, 0, Inbound::AccountQuery), ["0 Q 3"]);
    assert_eq!(replies(&mut venue, 3, Inbound::AccountQuery), ["3 Q 1"]);
}

#[test]
fn where_another_venue_is_silent_it_says_so() {
    let mut venue = venue(64);
    assert_eq!(replies(&mut venue, 0, cancel(1, 0)), ["0 I 1"]);
    assert_eq!(replies(&mut venue, 0, modify(1, b'B', 1)), ["0 I 1"]);
    assert_eq!(replies(&mut venue, 0, replace(1, 2, 50, HUNDRED)), ["0 J 2 0x000a"]);
    assert_eq!(replies(&mut venue, 0, order(enter(3, b'Z', 1, 1))), ["0 J 3 0x0009"]);
    assert_eq!(replies(&mut venue, 9, buy(1, 1, 1)), ["9 J 1 0x000a"], "no such account");
    replies(&mut venue, 0, buy(4, 100, HUNDRED));
    assert_eq!(replies(&mut venue, 0, replace(4, 5, 0, HUNDRED)), ["0 C 4 -100 U"], "invalid details");
}

#[test]
fn it_forgets_the_oldest_orders_beyond_its_maximum() {
    let mut venue = venue(8);
    for number in 1..=9 {
        replies(&mut venue, 0, buy(number, 10, HUNDRED));
    }
    assert_eq!(replies(&mut venue, 0, cancel(1, 0)), ["0 I 1"], "forgotten");
    assert_eq!(replies(&mut venue, 0, cancel(2, 0)), ["0 C 2 -10 U"]);
    let mut sink = Sink::default();
    venue.disconnected(1, AccountId(0), &mut sink);
    let said = sink.take();
    assert_eq!(said.len(), 7);
    assert!(words(&said).iter().all(|word| word.ends_with("-10 Z")));
    venue.disconnected(1, AccountId(0), &mut sink);
    assert!(sink.take().is_empty());
}

#[test]
fn order_references_of_several_venues_do_not_meet() {
    let mut seen = std::collections::HashSet::new();
    for worker in 0..3 {
        let mut venue = EchoVenue::new(EchoConfig {
            reference_first: worker + 1,
            reference_step: 3,
            ..Default::default()
        });
        let mut sink = Sink::default();
        for number in 1..=50 {
            venue.handle(1, AccountId(0), &buy(number, 1, 1), &mut sink);
        }
        for (_, message) in sink.take() {
            let weir_proto::ouch::Outbound::Accepted(accepted) = message else { panic!("accepted") };
            assert!(seen.insert(accepted.order_reference));
        }
    }
}
