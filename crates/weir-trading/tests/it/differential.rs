//! Compares the venue with the naive one: the same messages, word for word, and the same book afterwards.

use std::collections::BTreeMap;

use weir_proto::ouch::Symbol;
use weir_trading::{AccountId, MatchingConfig, MatchingVenue, Quote, Venue};

use crate::{
    naive::Naive,
    random::{Messages, seeds},
    support::{DAM, Sink, WEIR},
};

const ACCOUNTS: usize = 4;
const STEPS: u64 = 6_000;

fn config(orders_max: usize) -> MatchingConfig {
    MatchingConfig {
        symbols: vec![WEIR, DAM],
        symbols_open_max: 0,
        accounts_max: ACCOUNTS,
        orders_max,
        orders_per_account_max: orders_max,
        reference_first: 1,
        match_first: 1,
    }
}

/// The naive venue's book, summed by price.
fn naive_quotes(naive: &Naive, symbol: Symbol, side: u8) -> Vec<Quote> {
    let mut levels = BTreeMap::new();
    for live in
        naive.live.iter().filter(|live| live.symbol == symbol && (live.side == b'B') == (side == b'B'))
    {
        let level = levels.entry(live.price).or_insert(Quote { price: live.price, shares: 0, orders: 0 });
        level.shares += u64::from(live.leaves);
        level.orders += 1;
    }
    let rising = levels.into_values();
    if side == b'B' { rising.rev().collect() } else { rising.collect() }
}

fn compare(seed: u64, orders_max: usize) {
    let mut venue = MatchingVenue::new(&config(orders_max));
    let mut naive = Naive::new(&[WEIR, DAM], orders_max);
    let mut messages = Messages::new(seed, ACCOUNTS, 60, true);
    let mut sink = Sink::default();
    for step in 0..STEPS {
        let context = || format!("seed {seed}, step {step}: WEIR_TEST_SEED={seed} repeats it");
        match messages.random().below(400) {
            0..3 => {
                let account = AccountId(messages.random().below(ACCOUNTS as u64) as u32);
                venue.disconnected(step, account, &mut sink);
                naive.disconnected(step, account);
            }
            _ => {
                let (account, message) = messages.next();
                let account = AccountId(account);
                let handled = venue.handle(step, account, &message, &mut sink);
                assert_eq!(handled, naive.handle(step, account, &message), "{} {message:?}", context());
            }
        }
        assert_eq!(sink.take(), std::mem::take(&mut naive.said), "{}", context());
        assert_eq!(venue.live_orders(), naive.live.len(), "{}", context());
        if step % 50 == 0 {
            for (symbol, side) in [(WEIR, b'B'), (WEIR, b'S'), (DAM, b'B'), (DAM, b'S')] {
                let quotes: Vec<Quote> = venue.quotes(symbol, side).collect();
                assert_eq!(quotes, naive_quotes(&naive, symbol, side), "{}", context());
            }
        }
    }
}

#[test]
fn the_book_agrees_with_the_naive_one_message_for_message() {
    for seed in seeds(16) {
        compare(seed, 10_000);
    }
}

#[test]
fn it_agrees_when_its_places_run_out() {
    for seed in seeds(4) {
        compare(seed, 12);
    }
}
