//! Cancels all orders of an account at once, with a hundred thousand live orders: in a venue, and by the kill switch
//! in a gateway's table.

use std::time::{Duration, Instant};

use weir_proto::ouch::{Outbound, reject_reason};
use weir_trading::{
    AccountId, KillScope, KillSwitch, MatchingConfig, MatchingVenue, Origin, UpstreamNumbers, Venue,
};

use crate::support::{HUNDRED, Sink, buy, sell};

const ORDERS: u32 = 100_000;
const ACCOUNTS: u32 = 10;

fn full_venue() -> MatchingVenue {
    let mut venue = MatchingVenue::new(&MatchingConfig { accounts_max: 16, ..Default::default() });
    let mut sink = Sink::default();
    for index in 0..ORDERS {
        let (account, number) = (AccountId(index % ACCOUNTS), index / ACCOUNTS + 1);
        let distance = u64::from(index % 977) * 100;
        let message = if index % 2 == 0 {
            buy(number, 100, HUNDRED - 100 - distance)
        } else {
            sell(number, 100, HUNDRED + distance)
        };
        venue.handle(0, account, &message, &mut sink);
    }
    assert_eq!(venue.live_orders(), ORDERS as usize);
    venue
}

#[test]
fn a_connection_that_ends_cancels_exactly_the_orders_of_its_account() {
    let mut venue = full_venue();
    let mut sink = Sink::default();
    venue.disconnected(1, AccountId(3), &mut sink);
    let said = sink.take();
    assert_eq!(said.len() as u32, ORDERS / ACCOUNTS);
    let mut last = 0;
    for (account, message) in said {
        let Outbound::Canceled(canceled) = message else { panic!("a cancel") };
        assert_eq!((account, canceled.reason, canceled.quantity), (AccountId(3), b'Z', 100));
        assert!(canceled.user_ref_num > last, "oldest first, each once");
        last = canceled.user_ref_num;
    }
    assert_eq!(venue.live_orders() as u32, ORDERS - ORDERS / ACCOUNTS);
}

#[test]
fn when_a_hundred_thousand_orders_go_the_book_is_empty_in_time() {
    let mut venue = full_venue();
    let mut sink = Sink::default();
    sink.0.reserve(ORDERS as usize);
    let start = Instant::now();
    (0..ACCOUNTS).for_each(|account| venue.disconnected(1, AccountId(account), &mut sink));
    let took = start.elapsed();
    println!("cancelled {} orders in {took:?}", sink.0.len());
    assert_eq!((sink.0.len() as u32, venue.live_orders()), (ORDERS, 0));
    // The goal is 100 ms. An unoptimised build on a busy machine is allowed ten times that.
    let limit = if cfg!(debug_assertions) { Duration::from_secs(1) } else { Duration::from_millis(100) };
    assert!(took < limit, "{took:?}");
}

#[test]
fn a_gateway_finds_all_orders_of_a_killed_account() {
    let mut order_ids = UpstreamNumbers::new(1, ORDERS as usize);
    for index in 0..ORDERS {
        let origin = Origin {
            account: AccountId(index % ACCOUNTS),
            user_ref_num: index / ACCOUNTS + 1,
            home: 0,
            received_ns: 0,
        };
        order_ids.assign(origin, None).expect("there is room");
    }
    assert_eq!(order_ids.open_orders(AccountId(7)).count() as u32, ORDERS / ACCOUNTS);
    assert!(order_ids.open_orders(AccountId(7)).all(|(_, origin)| origin.account == AccountId(7)));
    assert_eq!(order_ids.all_open_orders().count() as u32, ORDERS);
}

#[test]
fn a_killed_account_is_refused_until_it_is_released() {
    let mut switch = KillSwitch::new(2);
    switch.set(KillScope::Account(AccountId(1)), true);
    assert_eq!(switch.check(AccountId(0)), Ok(()));
    assert_eq!(switch.check(AccountId(1)), Err(reject_reason::FIRM_NOT_AUTHORIZED));
    switch.set(KillScope::Account(AccountId(1)), false);
    assert_eq!(switch.check(AccountId(1)), Ok(()));
}
