//! The specification's rules for single orders, one at a time.

use weir_trading::{Handled, MatchingConfig, MatchingVenue, Venue};

use crate::support::{
    DAM, HUNDRED, IMMEDIATE, Sink, WEIR, buy, cancel, enter, handled, modify, order, replace, replies, sell,
    words,
};

fn venue() -> MatchingVenue {
    MatchingVenue::new(&MatchingConfig {
        symbols: vec![WEIR, DAM],
        symbols_open_max: 0,
        accounts_max: 4,
        ..Default::default()
    })
}

const NOTHING: [&str; 0] = [];

#[test]
fn accepted_comes_first_and_both_sides_are_told_of_a_trade() {
    let mut venue = venue();
    assert_eq!(replies(&mut venue, 0, sell(1, 100, HUNDRED)), ["0 A 1 S 100 @ 1000000"]);
    assert_eq!(
        replies(&mut venue, 1, buy(1, 150, HUNDRED + 500)),
        ["1 A 1 B 150 @ 1000500", "0 E 1 100 @ 1000000 A #1", "1 E 1 100 @ 1000000 R #1"]
    );
    assert_eq!(venue.live_orders(), 1, "the rest of the buy");
}

#[test]
fn the_better_price_trades_first_and_then_the_earlier_order() {
    let mut venue = venue();
    replies(&mut venue, 0, sell(1, 10, HUNDRED + 100));
    replies(&mut venue, 0, sell(2, 10, HUNDRED));
    replies(&mut venue, 0, sell(3, 10, HUNDRED));
    assert_eq!(
        replies(&mut venue, 1, buy(1, 25, HUNDRED + 100)),
        [
            "1 A 1 B 25 @ 1000100",
            "0 E 2 10 @ 1000000 A #1",
            "1 E 1 10 @ 1000000 R #1",
            "0 E 3 10 @ 1000000 A #2",
            "1 E 1 10 @ 1000000 R #2",
            "0 E 1 5 @ 1000100 A #3",
            "1 E 1 5 @ 1000100 R #3",
        ]
    );
}

#[test]
fn what_an_immediate_order_cannot_execute_is_cancelled() {
    let mut venue = venue();
    replies(&mut venue, 0, sell(1, 10, HUNDRED));
    let mut immediate = enter(1, b'B', 30, HUNDRED);
    immediate.time_in_force = IMMEDIATE;
    assert_eq!(
        replies(&mut venue, 1, order(immediate)),
        ["1 A 1 B 30 @ 1000000", "0 E 1 10 @ 1000000 A #1", "1 E 1 10 @ 1000000 R #1", "1 C 1 -20 I"]
    );
    assert_eq!(venue.live_orders(), 0);
}

#[test]
fn an_order_at_any_price_takes_what_there_is_and_does_not_rest() {
    let mut venue = venue();
    replies(&mut venue, 0, buy(1, 10, 1));
    assert_eq!(
        replies(&mut venue, 1, sell(1, 15, 0x7FFF_FFFF)),
        ["1 A 1 S 15 @ 2147483647", "0 E 1 10 @ 1 A #1", "1 E 1 10 @ 1 R #1", "1 C 1 -5 I"]
    );
}

#[test]
fn a_cancel_to_a_smaller_size_takes_the_difference_and_keeps_the_place() {
    let mut venue = venue();
    replies(&mut venue, 0, sell(1, 500, HUNDRED));
    replies(&mut venue, 0, sell(2, 500, HUNDRED));
    assert_eq!(replies(&mut venue, 0, cancel(1, 200)), ["0 C 1 -300 U"]);
    let traded = replies(&mut venue, 1, buy(1, 100, HUNDRED));
    assert_eq!(traded[1], "0 E 1 100 @ 1000000 A #1", "still first in line");
    assert_eq!(
        replies(&mut venue, 0, cancel(1, 150)),
        ["0 C 1 -50 U"],
        "the size is a total: 100 are executed"
    );
    assert_eq!(replies(&mut venue, 0, cancel(1, 0)), ["0 C 1 -50 U"]);
    assert_eq!(venue.live_orders(), 1);
}

#[test]
fn cancels_that_change_nothing_are_ignored() {
    let mut venue = venue();
    replies(&mut venue, 0, buy(1, 100, HUNDRED));
    assert_eq!(replies(&mut venue, 0, cancel(1, 100)), NOTHING, "not less");
    assert_eq!(replies(&mut venue, 0, cancel(1, 999_999)), NOTHING, "more");
    assert_eq!(replies(&mut venue, 0, cancel(7, 0)), NOTHING, "unknown");
    assert_eq!(replies(&mut venue, 1, cancel(1, 0)), NOTHING, "another account's");
    replies(&mut venue, 0, cancel(1, 0));
    assert_eq!(replies(&mut venue, 0, cancel(1, 0)), NOTHING, "dead");
}

#[test]
fn a_cancel_that_crosses_an_execution_adds_up_to_what_was_entered() {
    let mut venue = venue();
    replies(&mut venue, 0, sell(1, 100, HUNDRED));
    replies(&mut venue, 1, buy(1, 60, HUNDRED));
    assert_eq!(replies(&mut venue, 0, cancel(1, 0)), ["0 C 1 -40 U"]);
}

#[test]
fn a_replacement_of_an_order_that_is_not_live_is_ignored_and_its_number_stays_free() {
    let mut venue = venue();
    assert_eq!(handled(&mut venue, 0, replace(1, 2, 100, HUNDRED)), (Handled::NotConsumed, vec![]));
    replies(&mut venue, 0, buy(3, 100, HUNDRED));
    replies(&mut venue, 0, cancel(3, 0));
    assert_eq!(handled(&mut venue, 0, replace(3, 4, 100, HUNDRED)), (Handled::NotConsumed, vec![]));
}

#[test]
fn a_replacement_by_a_number_that_is_live_is_ignored() {
    let mut venue = venue();
    replies(&mut venue, 0, buy(1, 100, HUNDRED));
    replies(&mut venue, 0, buy(2, 100, HUNDRED));
    assert_eq!(handled(&mut venue, 0, replace(1, 2, 50, HUNDRED)), (Handled::NotConsumed, vec![]));
    assert_eq!(handled(&mut venue, 0, replace(1, 1, 50, HUNDRED)), (Handled::NotConsumed, vec![]));
    assert_eq!(venue.live_orders(), 2);
}

#[test]
fn a_replacement_with_invalid_details_cancels_the_original() {
    for (quantity, price) in [(0, HUNDRED), (1_000_000, HUNDRED), (10, 0), (10, 1_999_999_901)] {
        let mut venue = venue();
        replies(&mut venue, 0, buy(1, 100, HUNDRED));
        let (handled, replies) = handled(&mut venue, 0, replace(1, 2, quantity, price));
        assert_eq!((handled, replies), (Handled::NotConsumed, vec!["0 C 1 -100 U".to_owned()]));
        assert_eq!(venue.live_orders(), 0);
    }
}

#[test]
fn the_quantity_of_a_replacement_counts_what_is_executed_already() {
    let mut venue = venue();
    replies(&mut venue, 0, sell(1, 500, HUNDRED));
    replies(&mut venue, 1, buy(1, 100, HUNDRED));
    assert_eq!(
        handled(&mut venue, 0, replace(1, 2, 500, HUNDRED + 100)),
        (Handled::Consumed, vec!["0 U 1>2 400 @ 1000100".to_owned()])
    );
    replies(&mut venue, 1, buy(2, 50, HUNDRED + 100));
    let chained = replies(&mut venue, 0, replace(2, 3, 500, HUNDRED));
    assert_eq!(chained, ["0 U 2>3 350 @ 1000000"], "over the whole chain");
    assert_eq!(
        replies(&mut venue, 0, replace(3, 4, 150, HUNDRED)),
        ["0 C 3 -350 U"],
        "all of it is executed"
    );
}

#[test]
fn a_replacement_goes_to_the_end_of_the_line_and_trades_at_its_new_price() {
    let mut venue = venue();
    replies(&mut venue, 0, buy(1, 10, HUNDRED));
    replies(&mut venue, 1, buy(1, 10, HUNDRED));
    replies(&mut venue, 0, replace(1, 2, 10, HUNDRED));
    let traded = replies(&mut venue, 2, sell(1, 5, HUNDRED));
    assert_eq!(traded[1], "1 E 1 5 @ 1000000 A #1");
    replies(&mut venue, 2, sell(2, 10, HUNDRED + 100));
    assert_eq!(
        replies(&mut venue, 0, replace(2, 3, 10, HUNDRED + 100)),
        ["0 U 2>3 10 @ 1000100", "2 E 2 10 @ 1000100 A #2", "0 E 3 10 @ 1000100 R #2"]
    );
}

#[test]
fn wrong_fields_are_rejected_with_their_code() {
    let mut venue = venue();
    let base = enter(1, b'B', 100, HUNDRED);
    let mut symbol = base;
    symbol.symbol = weir_proto::ouch::Symbol(*b"NOSUCH  ");
    let cases = [
        (enter(1, b'Z', 100, HUNDRED), "0x0009"),
        (enter(1, b'B', 0, HUNDRED), "0x0013"),
        (enter(1, b'B', 1_000_000, HUNDRED), "0x0013"),
        (enter(1, b'B', 100, 0), "0x001d"),
        (enter(1, b'B', 100, 1_999_999_901), "0x001d"),
        (enter(1, b'B', 100, u64::MAX), "0x001d"),
        (symbol, "0x0017"),
    ];
    for (message, reason) in cases {
        assert_eq!(replies(&mut venue, 0, order(message)), [format!("0 J 1 {reason}")]);
    }
    assert_eq!(replies(&mut venue, 9, order(base)), ["9 J 1 0x000a"], "no such account");
    let largest = enter(1, b'B', 999_999, 1_999_999_900);
    assert_eq!(replies(&mut venue, 0, order(largest)), ["0 A 1 B 999999 @ 1999999900"]);
}

#[test]
fn the_last_number_is_an_order_like_any_other() {
    let mut venue = venue();
    assert_eq!(replies(&mut venue, 0, buy(u32::MAX, 1, 1)), ["0 A 4294967295 B 1 @ 1"]);
    assert_eq!(replies(&mut venue, 0, cancel(u32::MAX, 0)), ["0 C 4294967295 -1 U"]);
}

#[test]
fn a_modification_changes_the_kind_of_sell_and_lowers_the_quantity() {
    let mut venue = venue();
    replies(&mut venue, 0, sell(1, 100, HUNDRED));
    assert_eq!(replies(&mut venue, 0, modify(1, b'T', 80)), ["0 M 1 T 80"]);
    assert_eq!(replies(&mut venue, 0, modify(1, b'E', 500)), ["0 M 1 E 80"], "never more");
    assert_eq!(replies(&mut venue, 0, modify(1, b'B', 50)), NOTHING, "a sell stays one");
    assert_eq!(replies(&mut venue, 0, modify(2, b'S', 50)), NOTHING);
}

#[test]
fn the_maxima_refuse_new_orders_and_let_replacements_through() {
    let mut venue = MatchingVenue::new(&MatchingConfig {
        accounts_max: 2,
        orders_max: 3,
        orders_per_account_max: 2,
        symbols_open_max: 1,
        ..Default::default()
    });
    replies(&mut venue, 0, buy(1, 10, HUNDRED));
    replies(&mut venue, 0, buy(2, 10, HUNDRED));
    assert_eq!(replies(&mut venue, 0, buy(3, 10, HUNDRED)), ["0 J 3 0x000a"], "its share");
    replies(&mut venue, 1, buy(1, 10, HUNDRED));
    assert_eq!(replies(&mut venue, 1, buy(2, 10, HUNDRED)), ["1 J 2 0x000a"], "all places");
    assert_eq!(replies(&mut venue, 1, replace(1, 3, 20, HUNDRED)), ["1 U 1>3 20 @ 1000000"]);
    let mut other = enter(4, b'B', 10, HUNDRED);
    other.symbol = DAM;
    assert_eq!(
        replies(&mut venue, 1, order(other)),
        ["1 J 4 0x0017"],
        "one symbol may be opened, and WEIR was"
    );
}

#[test]
fn the_orders_of_a_connection_that_ended_are_cancelled_once_and_nobody_elses() {
    let mut venue = venue();
    replies(&mut venue, 0, buy(1, 10, HUNDRED));
    replies(&mut venue, 1, buy(1, 10, HUNDRED));
    replies(&mut venue, 0, sell(2, 10, HUNDRED + 100));
    let mut sink = Sink::default();
    venue.disconnected(1, weir_trading::AccountId(0), &mut sink);
    venue.disconnected(1, weir_trading::AccountId(0), &mut sink);
    assert_eq!(words(&sink.take()), ["0 C 1 -10 Z", "0 C 2 -10 Z"]);
    assert_eq!(venue.live_orders(), 1);
}
