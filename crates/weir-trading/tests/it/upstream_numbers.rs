//! Tests of the numbers of the upstream session, compared with plain maps.

use std::collections::BTreeMap;

use weir_proto::ouch::{Executed, Inbound, Outbound};
use weir_trading::{
    AccountId, Full, MatchingConfig, MatchingVenue, Origin, UpstreamNumbers, Venue, WhenFull,
};

use crate::{
    random::{Messages, Random, seeds},
    support::{HUNDRED, Sink, buy, cancel, replace, sell},
};

fn origin(account: u32, user_ref_num: u32) -> Origin {
    Origin { account: AccountId(account), user_ref_num, home: 1, received_ns: 5 }
}

#[test]
fn numbers_rise_and_lead_both_ways_until_the_order_is_dead() {
    let mut order_ids = UpstreamNumbers::new(7, 10);
    assert_eq!(order_ids.assign(origin(0, 100), None), Ok(7));
    assert_eq!(order_ids.assign(origin(1, 100), None), Ok(8));
    assert_eq!(order_ids.origin_of(8), Some(origin(1, 100)));
    assert_eq!(order_ids.upstream_of(AccountId(0), 100), Some(7));
    order_ids.finish(7);
    order_ids.finish(7);
    assert_eq!((order_ids.origin_of(7), order_ids.upstream_of(AccountId(0), 100)), (None, None));
    assert_eq!((order_ids.len(), order_ids.next()), (1, 9));
}

#[test]
fn it_refuses_or_forgets_when_all_places_are_taken() {
    let mut refusing = UpstreamNumbers::new(1, 2);
    let mut forgetting = UpstreamNumbers::with_policy(1, 2, WhenFull::ForgetOldest);
    for number in 1..=2 {
        refusing.assign(origin(0, number), None).expect("there is room");
        forgetting.assign(origin(0, number), None).expect("there is room");
    }
    assert_eq!(refusing.assign(origin(0, 3), None), Err(Full::Orders));
    assert_eq!(refusing.next(), 3, "no number was used");
    assert_eq!(forgetting.assign(origin(0, 3), None), Ok(3));
    assert_eq!((forgetting.origin_of(1), forgetting.len()), (None, 2));
    assert_eq!(forgetting.origin_of(2), Some(origin(0, 2)));
}

#[test]
fn the_last_number_is_used_and_none_comes_after_it() {
    let mut order_ids = UpstreamNumbers::new(u32::MAX, 2);
    assert_eq!(order_ids.assign(origin(0, 1), None), Ok(u32::MAX));
    assert_eq!(order_ids.assign(origin(0, 2), None), Err(Full::Numbers));
    assert_eq!(order_ids.next(), 0);
}

#[test]
fn a_restored_table_goes_on_where_the_old_one_stopped() {
    let mut order_ids = UpstreamNumbers::new(1, 10);
    order_ids.restore(3, origin(0, 1), None).expect("there is room");
    order_ids.restore(9, origin(1, 1), None).expect("there is room");
    order_ids.restore(9, origin(1, 2), None).expect("known, so ignored");
    assert_eq!(order_ids.origin_of(9), Some(origin(1, 1)));
    order_ids.advance(8);
    assert_eq!(order_ids.next(), 10);
    order_ids.advance(12);
    assert_eq!(order_ids.assign(origin(0, 2), None), Ok(12));
}

#[test]
fn open_orders_are_those_of_the_account_oldest_first() {
    let mut order_ids = UpstreamNumbers::new(1, 10);
    for (account, number) in [(0, 1), (1, 1), (0, 2), (0, 3), (1, 2)] {
        order_ids.assign(origin(account, number), None).expect("there is room");
    }
    order_ids.finish(3);
    let numbers = |account| -> Vec<u32> {
        order_ids.open_orders(AccountId(account)).map(|(upstream, _)| upstream).collect()
    };
    assert_eq!((numbers(0), numbers(1), numbers(2)), (vec![1, 4], vec![2, 5], vec![]));
    assert_eq!(order_ids.all_open_orders().map(|(upstream, _)| upstream).collect::<Vec<_>>(), [1, 2, 4, 5]);
}

/// A miniature gateway: clients' messages are renumbered on their way to a real venue, and its answers are translated
/// back.
#[test]
fn what_a_venue_holds_and_what_the_table_holds_stay_the_same() {
    for seed in seeds(4) {
        let mut order_ids = UpstreamNumbers::new(1, 10_000);
        let mut venue = MatchingVenue::new(&MatchingConfig { accounts_max: 1, ..Default::default() });
        let mut messages = Messages::new(seed, 5, 80, false);
        let mut sink = Sink::default();
        for step in 0..20_000 {
            let (account, message) = messages.next();
            let Some(upstream) = renumber(&mut order_ids, AccountId(account), message) else { continue };
            venue.handle(step, AccountId(0), &upstream, &mut sink);
            for (_, said) in sink.take() {
                let origin = order_ids.apply(&said);
                assert!(origin.is_some(), "seed {seed}, step {step}: {said:?} has an addressee");
            }
            // Both sides process one message at a time, so they hold the same orders after each.
            assert_eq!(order_ids.len(), venue.live_orders(), "seed {seed}, step {step}: {message:?}");
        }
        for (number, _) in venue.open_orders(AccountId(0)) {
            assert!(order_ids.origin_of(number).is_some(), "seed {seed}: {number} is live");
        }
    }
}

#[test]
fn replacements_that_wait_die_with_their_original() {
    let mut order_ids = UpstreamNumbers::new(1, 10);
    let first = order_ids.assign(origin(0, 1), None).expect("there is room");
    let second = order_ids.assign(origin(0, 2), Some(first)).expect("there is room");
    let rival = order_ids.assign(origin(0, 3), Some(first)).expect("there is room");
    order_ids.assign(origin(0, 4), Some(second)).expect("there is room");
    let other = order_ids.assign(origin(0, 5), None).expect("there is room");
    order_ids.finish(rival);
    assert_eq!(order_ids.len(), 4);
    order_ids.finish(first);
    let left: Vec<u32> = order_ids.open_orders(AccountId(0)).map(|(upstream, _)| upstream).collect();
    assert_eq!(left, [other]);
}

#[test]
fn a_long_chain_of_waiting_replacements_ends_at_once() {
    let mut order_ids = UpstreamNumbers::new(1, 100_000);
    let mut last = order_ids.assign(origin(0, 1), None).expect("there is room");
    for number in 2..=100_000 {
        last = order_ids.assign(origin(0, number), Some(last)).expect("there is room");
    }
    order_ids.finish(1);
    assert!(order_ids.is_empty());
}

/// The upstream form of a message; `None` if its order is not live.
fn renumber(
    order_ids: &mut UpstreamNumbers,
    account: AccountId,
    message: Inbound<'static>,
) -> Option<Inbound<'static>> {
    let mut assign = |user_ref_num| {
        let origin = Origin { account, user_ref_num, home: 0, received_ns: 0 };
        order_ids.assign(origin, None).expect("there is room")
    };
    Some(match message {
        Inbound::Enter(mut enter, appendage) => {
            enter.user_ref_num = assign(enter.user_ref_num);
            Inbound::Enter(enter, appendage)
        }
        Inbound::Replace(mut replace, appendage) => {
            let original = order_ids.upstream_of(account, replace.original_user_ref_num)?;
            replace.original_user_ref_num = original;
            let origin = Origin { account, user_ref_num: replace.user_ref_num, home: 0, received_ns: 0 };
            replace.user_ref_num = order_ids.assign(origin, Some(original)).expect("there is room");
            Inbound::Replace(replace, appendage)
        }
        Inbound::Cancel(mut cancel) => {
            cancel.user_ref_num = order_ids.upstream_of(account, cancel.user_ref_num)?;
            Inbound::Cancel(cancel)
        }
        Inbound::Modify(mut modify) => {
            modify.user_ref_num = order_ids.upstream_of(account, modify.user_ref_num)?;
            Inbound::Modify(modify)
        }
        Inbound::AccountQuery => Inbound::AccountQuery,
    })
}

#[test]
fn it_agrees_with_plain_maps() {
    for seed in seeds(10) {
        let mut random = Random::new(seed);
        let mut order_ids = UpstreamNumbers::new(1, 50);
        let mut plain: BTreeMap<u32, Origin> = BTreeMap::new();
        let mut number = 0;
        for step in 0..5_000 {
            if random.one_in(2) {
                number += 1;
                let account = random.below(3) as u32;
                let assigned = order_ids.assign(origin(account, number), None);
                assert_eq!(assigned.is_ok(), plain.len() < 50, "seed {seed}, step {step}");
                if let Ok(upstream) = assigned {
                    plain.insert(upstream, origin(account, number));
                }
            } else {
                let upstream = order_ids.next().saturating_sub(random.below(120) as u32);
                order_ids.finish(upstream);
                plain.remove(&upstream);
            }
            assert_eq!(order_ids.len(), plain.len(), "seed {seed}, step {step}");
            assert!(order_ids.all_open_orders().eq(plain.iter().map(|(a, b)| (*a, *b))), "seed {seed}");
        }
        for (upstream, origin) in &plain {
            assert_eq!(order_ids.origin_of(*upstream), Some(*origin));
            assert_eq!(order_ids.upstream_of(origin.account, origin.user_ref_num), Some(*upstream));
        }
    }
}

#[test]
fn only_the_last_message_of_an_order_ends_it() {
    let mut order_ids = UpstreamNumbers::new(1, 10);
    let mut venue = MatchingVenue::new(&MatchingConfig { accounts_max: 1, ..Default::default() });
    let mut sink = Sink::default();
    for number in 1..=2 {
        order_ids.assign(origin(0, number), None).expect("there is room");
    }
    let mut apply = |order_ids: &mut UpstreamNumbers, message: Inbound<'_>| {
        venue.handle(1, AccountId(0), &message, &mut sink);
        for (_, said) in sink.take() {
            order_ids.apply(&said);
        }
        order_ids.len()
    };
    assert_eq!(apply(&mut order_ids, buy(1, 100, HUNDRED)), 2);
    assert_eq!(apply(&mut order_ids, cancel(1, 60)), 2, "some are left");
    assert_eq!(apply(&mut order_ids, sell(2, 20, HUNDRED)), 1, "one is executed, the other in part");
    order_ids.assign(origin(0, 3), None).expect("there is room");
    assert_eq!(apply(&mut order_ids, replace(1, 3, 100, HUNDRED)), 1, "the replacement takes its place");
    assert_eq!(order_ids.upstream_of(AccountId(0), 1), None);
    assert_eq!(apply(&mut order_ids, cancel(3, 0)), 0);
    let event = Outbound::SystemEvent { timestamp_ns: 0, event: b'E' };
    assert_eq!(order_ids.apply(&event), None);
}

#[test]
fn a_replacement_has_its_original_until_one_of_them_is_over() {
    let mut order_ids = UpstreamNumbers::new(1, 10);
    order_ids.assign(origin(0, 1), None).expect("there is room");
    for (number, original) in [(2, 1), (3, 2)] {
        order_ids.assign(origin(0, number), Some(original)).expect("there is room");
    }
    assert_eq!(
        [1, 2, 3, 4].map(|number| order_ids.original_of(number)),
        [None, Some(origin(0, 1)), Some(origin(0, 2)), None]
    );
    order_ids.finish(1);
    assert_eq!(order_ids.original_of(2), None);
}

#[test]
fn an_order_whose_acceptance_is_missing_has_the_shares_that_are_assumed() {
    let mut order_ids = UpstreamNumbers::new(1, 10);
    for number in 1..=2 {
        order_ids.assign(origin(0, number), None).expect("there is room");
    }
    let executed = |user_ref_num, quantity| {
        let (timestamp_ns, price, liquidity, match_number) = (1, HUNDRED, b'A', 1);
        Outbound::Executed(Executed { timestamp_ns, user_ref_num, quantity, price, liquidity, match_number })
    };
    order_ids.apply(&executed(1, 100));
    assert!(order_ids.origin_of(1).is_some(), "how much is left is not known");
    order_ids.assume(2, 100);
    order_ids.assume(7, 100);
    order_ids.apply(&executed(2, 60));
    assert_eq!(order_ids.shares_of(2), Some(40));
    order_ids.assume(2, 100);
    order_ids.apply(&executed(2, 40));
    assert_eq!((order_ids.origin_of(2), order_ids.len()), (None, 1));
}

#[test]
fn orders_are_found_by_their_places_each_once_however_many_end_and_come_meanwhile() {
    let mut order_ids = UpstreamNumbers::new(1, 16);
    (1..=10).for_each(|number| _ = order_ids.assign(origin(0, number), None).expect("there is room"));
    let mut found = BTreeMap::new();
    let mut place = 0;
    while place < order_ids.places() {
        for live in order_ids.live_in(place..place + 3) {
            assert_eq!(order_ids.origin_of(live.upstream), Some(live.origin));
            *found.entry(live.upstream).or_insert(0) += 1;
        }
        place += 3;
        // One that was found ends, another takes its place, and one ends that was not reached.
        order_ids.finish(place / 3);
        order_ids.finish(11 - place / 3);
        order_ids.assign(origin(0, 100 + place), None).expect("there is room");
    }
    // Those that lived all the time.
    (5..=6).for_each(|number| assert_eq!(found.get(&number), Some(&1), "{number} of {found:?}"));
    assert!(found.values().all(|times| *times == 1), "{found:?}");
    assert_eq!(order_ids.live_in(0..u32::MAX).count(), order_ids.len());
    assert_eq!(order_ids.live_in(u32::MAX..u32::MAX).count(), 0);
}
