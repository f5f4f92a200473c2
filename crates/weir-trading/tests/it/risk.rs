//! Tests of limits, with a clock that only the test moves.

use std::sync::Arc;

use weir_proto::ouch::{
    Canceled, Enter, Executed, Inbound, Modified, Outbound, Replaced, Symbol, reject_reason,
};
use weir_trading::{
    AccountId, DuplicateLimit, LiveTerms, MatchingConfig, MatchingVenue, Rate, References, Restored,
    RiskConfig, RiskLimits, RiskState, Trade, Venue,
};

use crate::{
    random::{Messages, seeds},
    support::{DAM, HUNDRED, NOBODY, Sink, WEIR, buy, cancel, enter, modify, order, replace, sell},
};

const SECOND: u64 = 1_000_000_000;
const ONE: AccountId = AccountId(0);
const TWO: AccountId = AccountId(1);

fn state(limits: RiskLimits) -> RiskState {
    state_with(limits, &Arc::new(References::new(16)))
}

fn state_with(limits: RiskLimits, references: &Arc<References>) -> RiskState {
    let config = RiskConfig { accounts_max: 4, ..Default::default() };
    let mut state = RiskState::new(config, Arc::clone(references));
    state.set_limits(limits);
    state
}

fn passed(state: &mut RiskState, now_ns: u64, from: u32, messages: u32) -> u32 {
    (from..from + messages)
        .map(|number| u32::from(state.check(now_ns, ONE, &buy(number, number, HUNDRED)).is_ok()))
        .sum()
}

#[test]
fn everything_is_off_by_default() {
    let mut state = state(RiskLimits::default());
    assert_eq!(passed(&mut state, 0, 1, 10_000), 10_000);
    assert_eq!((state.exposure(ONE), state.must_drop(ONE)), (0, false));
}

#[test]
fn the_port_rate_refuses_the_101st_and_gives_back_with_time() {
    let rate = Rate { per_second: 100, burst: 100 };
    let mut state = state(RiskLimits { port_rate: Some(rate), ..Default::default() });
    assert_eq!(passed(&mut state, SECOND, 1, 100), 100);
    let refused = state.check(SECOND, ONE, &buy(101, 1, HUNDRED));
    assert_eq!(refused, Err(reject_reason::RISK_PORT_MESSAGE_RATE));
    assert_eq!(state.check(SECOND, TWO, &buy(1, 1, HUNDRED)), Ok(()), "another port");
    assert_eq!(passed(&mut state, SECOND + SECOND / 2, 102, 100), 50);
    assert_eq!(passed(&mut state, 60 * SECOND, 300, 1_000), 100, "never more than the burst");
}

#[test]
fn cancels_pass_when_orders_do_not() {
    let rate = Rate { per_second: 1, burst: 1 };
    let mut state =
        state(RiskLimits { port_rate: Some(rate), symbol_rate: Some(rate), ..Default::default() });
    assert_eq!(passed(&mut state, 0, 1, 10), 1);
    assert!(state.check(0, ONE, &replace(1, 20, 5, HUNDRED)).is_err(), "a replacement is an order");
    for _ in 0..1_000 {
        assert_eq!(state.check(0, ONE, &cancel(1, 0)), Ok(()));
        assert_eq!(state.check(0, ONE, &modify(1, b'B', 1)), Ok(()));
        assert_eq!(state.check(0, ONE, &Inbound::AccountQuery), Ok(()));
    }
}

#[test]
fn ten_times_the_rate_for_three_seconds_ends_the_session() {
    let rate = Rate { per_second: 10, burst: 10 };
    let mut state = state(RiskLimits { port_rate: Some(rate), ..Default::default() });
    for second in 1..=3 {
        assert!(!state.must_drop(ONE), "not before the third");
        passed(&mut state, second * SECOND, 1, 100);
    }
    assert!(state.must_drop(ONE));
    assert!(!state.must_drop(ONE), "asking clears it");
    passed(&mut state, 4 * SECOND, 1, 100);
    assert!(!state.must_drop(ONE), "a new session starts afresh");
}

#[test]
fn the_symbol_rate_is_for_each_symbol_and_holds_for_replacements() {
    let rate = Rate { per_second: 2, burst: 2 };
    let mut state = state(RiskLimits { symbol_rate: Some(rate), ..Default::default() });
    let mut other = enter(9, b'B', 1, HUNDRED);
    other.symbol = DAM;
    assert_eq!(passed(&mut state, 0, 1, 2), 2);
    let refused = Err(reject_reason::RISK_SYMBOL_MESSAGE_RATE);
    assert_eq!(state.check(0, ONE, &buy(3, 1, HUNDRED)), refused);
    assert_eq!(state.check(0, ONE, &replace(1, 4, 1, HUNDRED)), refused, "known to be of the same symbol");
    assert_eq!(state.check(0, ONE, &order(other)), Ok(()));
    assert_eq!(state.check(SECOND, ONE, &replace(1, 5, 1, HUNDRED)), Ok(()));
}

#[test]
fn symbol_rates_that_are_not_in_use_make_room_for_others() {
    let config = RiskConfig { accounts_max: 1, symbol_rates_max: 4, ..Default::default() };
    let mut state = RiskState::new(config, Arc::new(References::new(1)));
    let rate = Rate { per_second: 1, burst: 1 };
    state.set_limits(RiskLimits { symbol_rate: Some(rate), ..Default::default() });
    let of = |index: u32| -> Enter {
        let mut message = enter(index + 1, b'B', 1, HUNDRED);
        message.symbol.0[0] = b'A' + index as u8;
        message
    };
    for index in 0..4 {
        assert_eq!(state.check(0, ONE, &order(of(index))), Ok(()));
    }
    assert!(state.check(0, ONE, &order(of(4))).is_err(), "all are in use");
    for index in 4..8 {
        assert_eq!(state.check(SECOND, ONE, &order(of(index))), Ok(()), "they are full again");
    }
}

#[test]
fn identical_orders_are_counted_in_a_window() {
    let limit = DuplicateLimit { orders_max: 3, window_ns: SECOND };
    let mut state = state(RiskLimits { duplicates: Some(limit), ..Default::default() });
    let mut check = |now_ns, number, quantity| state.check(now_ns, ONE, &buy(number, quantity, HUNDRED));
    for number in 1..=3 {
        assert_eq!(check(0, number, 10), Ok(()));
    }
    assert_eq!(check(0, 4, 10), Err(reject_reason::RISK_DUPLICATE_MESSAGE_RATE));
    assert_eq!(check(0, 5, 11), Ok(()), "another quantity is another order");
    assert_eq!(check(SECOND - 1, 6, 10), Err(reject_reason::RISK_DUPLICATE_MESSAGE_RATE));
    assert_eq!(check(SECOND, 7, 10), Ok(()), "a new window");
    for quantity in 100..200 {
        assert_eq!(check(SECOND, 8, quantity), Ok(()), "more different ones than are remembered");
    }
}

#[test]
fn a_price_far_from_the_reference_is_refused_on_both_sides_of_it() {
    let limits = RiskLimits { fat_finger_basis_points: Some(500), ..Default::default() };
    let references = Arc::new(References::new(16));
    let mut state = state_with(limits, &references);
    assert_eq!(state.check(0, ONE, &buy(1, 1, 5 * HUNDRED)), Ok(()), "no reference price yet");
    assert!(references.set(WEIR, HUNDRED));
    let refused = Err(reject_reason::RISK_FAT_FINGER);
    assert_eq!(state.check(0, ONE, &buy(2, 1, HUNDRED + 50_000)), Ok(()), "exactly five percent");
    assert_eq!(state.check(0, ONE, &buy(3, 1, HUNDRED + 50_001)), refused);
    assert_eq!(state.check(0, ONE, &sell(4, 1, HUNDRED - 50_001)), refused);
    assert_eq!(state.check(0, ONE, &replace(2, 5, 1, 2 * HUNDRED)), refused);
    assert_eq!(state.check(0, ONE, &buy(6, 1, 0x7FFF_FFFF)), Ok(()), "at any price has no distance");
}

#[test]
fn a_symbol_that_is_written_differently_passes_no_limit() {
    let forms = [*b"DAM\0    ", *b"dam     ", *b" Dam\0   "].map(Symbol);
    let form = |number: u32, symbol: Symbol, price: u64| {
        order(Enter { symbol, ..enter(number, b'B', number, price) })
    };
    let references = Arc::new(References::new(16));
    assert!(references.set(DAM, HUNDRED));
    let check = |limits: RiskLimits, number: u32, symbol, price| {
        state_with(limits, &references).check(0, ONE, &form(number, symbol, price))
    };
    for symbol in forms {
        let restricted = |symbol| RiskLimits { restricted: vec![symbol], ..Default::default() };
        let refused = Err(reject_reason::RISK_RESTRICTED_STOCK);
        assert_eq!(check(restricted(DAM), 1, symbol, HUNDRED), refused, "{symbol:?}");
        assert_eq!(check(restricted(symbol), 1, DAM, HUNDRED), refused, "{symbol:?}");
        assert_eq!(check(restricted(WEIR), 1, symbol, HUNDRED), Ok(()), "{symbol:?}");
        let near = RiskLimits { fat_finger_basis_points: Some(500), ..Default::default() };
        assert_eq!(check(near, 1, symbol, 2 * HUNDRED), Err(reject_reason::RISK_FAT_FINGER), "{symbol:?}");
    }
    let rate = Rate { per_second: 1, burst: 3 };
    let mut state = state(RiskLimits { symbol_rate: Some(rate), ..Default::default() });
    for (number, symbol) in (1..).zip(forms) {
        assert_eq!(state.check(0, ONE, &form(number, symbol, HUNDRED)), Ok(()));
    }
    assert_eq!(state.check(0, ONE, &form(9, DAM, HUNDRED)), Err(reject_reason::RISK_SYMBOL_MESSAGE_RATE));
}

#[test]
fn single_orders_are_limited_in_shares_value_and_symbol() {
    let limits = RiskLimits {
        shares_max: Some(100),
        notional_max: Some(50 * HUNDRED),
        restricted: vec![DAM],
        ..Default::default()
    };
    let mut state = state(limits);
    let mut restricted = enter(1, b'B', 1, HUNDRED);
    restricted.symbol = DAM;
    let cases = [
        (buy(1, 50, HUNDRED), Ok(())),
        (buy(2, 51, HUNDRED), Err(reject_reason::NOTIONAL_EXCEEDED)),
        (buy(3, 101, 1), Err(reject_reason::SHARES_EXCEED_THRESHOLD)),
        (replace(1, 4, 51, HUNDRED), Err(reject_reason::NOTIONAL_EXCEEDED)),
        (order(restricted), Err(reject_reason::RISK_RESTRICTED_STOCK)),
    ];
    for (message, verdict) in cases {
        assert_eq!(state.check(0, ONE, &message), verdict, "{message:?}");
    }
}

#[test]
fn an_order_at_any_price_without_a_reference_is_refused_where_its_value_is_limited() {
    const MARKET: u64 = 0x7FFF_FFFF;
    let notional = RiskLimits { notional_max: Some(50 * HUNDRED), ..Default::default() };
    let exposure = RiskLimits { exposure_max: Some(50 * HUNDRED), ..Default::default() };
    for (limits, reason) in
        [(notional, reject_reason::NOTIONAL_EXCEEDED), (exposure, reject_reason::RISK_AGGREGATE_EXPOSURE)]
    {
        let references = Arc::new(References::new(16));
        let mut state = state_with(limits, &references);
        let refused = Err(reason);
        assert_eq!(state.check(0, ONE, &buy(1, 1, HUNDRED)), Ok(()));
        assert_eq!(state.check(0, ONE, &buy(2, 999_999, MARKET)), refused);
        assert_eq!(state.check(0, ONE, &buy(3, 1, 2_000_000_000)), refused, "any price has two forms");
        assert_eq!(state.check(0, ONE, &replace(1, 4, 1, MARKET)), refused);
        assert_eq!(state.check(0, ONE, &replace(77, 5, 1, MARKET)), refused, "what it is about is not known");
        assert!(references.set(WEIR, HUNDRED));
        assert_eq!(state.check(0, ONE, &buy(6, 49, MARKET)), Ok(()));
        assert_eq!(state.check(0, ONE, &buy(7, 51, MARKET)), refused);
        state.set_limits(RiskLimits { shares_max: Some(10), ..Default::default() });
        let mut other = enter(8, b'B', 10, MARKET);
        other.symbol = DAM;
        assert_eq!(state.check(0, ONE, &order(other)), Ok(()), "no value is limited");
    }
}

#[test]
fn limits_change_between_two_messages_and_may_be_an_accounts_own() {
    let mut state = state(RiskLimits::default());
    assert_eq!(state.check(0, ONE, &buy(1, 100, HUNDRED)), Ok(()));
    state.set_limits(RiskLimits { shares_max: Some(10), ..Default::default() });
    assert!(state.check(0, ONE, &buy(2, 100, HUNDRED)).is_err());
    assert!(state.set_account_limits(ONE, Some(RiskLimits { shares_max: Some(200), ..Default::default() })));
    assert_eq!(state.check(0, ONE, &buy(3, 100, HUNDRED)), Ok(()));
    assert!(state.check(0, TWO, &buy(3, 100, HUNDRED)).is_err());
    assert!(state.set_account_limits(ONE, None));
    assert!(state.check(0, ONE, &buy(4, 100, HUNDRED)).is_err());
    assert!(!state.set_account_limits(AccountId(4), None), "no such account");
    state.set_limits(RiskLimits::default());
    assert_eq!(state.check(0, ONE, &buy(5, 100, HUNDRED)), Ok(()));
}

#[test]
fn exposure_is_what_is_live_and_what_was_executed() {
    let limits = RiskLimits { exposure_max: Some(100 * HUNDRED), ..Default::default() };
    let mut state = state(limits);
    let mut venue = MatchingVenue::new(&MatchingConfig { accounts_max: 4, ..Default::default() });
    let mut sink = Sink::default();
    let mut pass = |state: &mut RiskState, account, message: Inbound<'_>| -> Result<u64, u16> {
        state.check(0, account, &message)?;
        venue.handle(0, account, &message, &mut sink);
        for (account, said) in sink.take() {
            state.follow(account, &said);
        }
        Ok(state.exposure(account) / HUNDRED)
    };
    let refused = Err(reject_reason::RISK_AGGREGATE_EXPOSURE);
    assert_eq!(pass(&mut state, ONE, buy(1, 60, HUNDRED)), Ok(60));
    assert_eq!(pass(&mut state, ONE, buy(2, 41, HUNDRED)), refused);
    assert_eq!(pass(&mut state, ONE, cancel(1, 50)), Ok(50));
    assert_eq!(pass(&mut state, ONE, replace(1, 3, 101, HUNDRED)), refused);
    assert_eq!(pass(&mut state, ONE, replace(1, 4, 100, HUNDRED)), Ok(100));
    assert_eq!(pass(&mut state, TWO, sell(1, 40, HUNDRED)), Ok(40), "executed counts on both sides");
    assert_eq!(state.exposure(ONE) / HUNDRED, 100);
    assert_eq!(pass(&mut state, ONE, cancel(4, 0)), Ok(40), "what was executed stays");
    assert_eq!(pass(&mut state, ONE, buy(5, 60, HUNDRED)), Ok(100));
    assert_eq!(pass(&mut state, ONE, order(enter(6, b'Z', 0, 1))), Ok(100), "refused by the venue");
}

fn replaced(original_user_ref_num: u32, user_ref_num: u32, quantity: u32, order_state: u8) -> Outbound {
    Outbound::Replaced(Replaced {
        timestamp_ns: 0,
        original_user_ref_num,
        user_ref_num,
        side: b'B',
        quantity,
        symbol: WEIR,
        price: HUNDRED,
        time_in_force: b'0',
        display: b'Y',
        order_reference: 1,
        capacity: b'P',
        intermarket_sweep: b'N',
        cross_type: b'N',
        order_state,
        client_order_id: NOBODY,
    })
}

fn executed(user_ref_num: u32, quantity: u32) -> Outbound {
    let (timestamp_ns, price, liquidity, match_number) = (0, HUNDRED, b'A', 1);
    Outbound::Executed(Executed { timestamp_ns, user_ref_num, quantity, price, liquidity, match_number })
}

fn restored(user_ref_num: u32, shares: u32, original: Option<u32>) -> Restored {
    Restored { user_ref_num, symbol: WEIR, side: b'B', price: HUNDRED, shares, original }
}

fn modified(user_ref_num: u32, quantity: u32) -> Outbound {
    Outbound::Modified(Modified { timestamp_ns: 0, user_ref_num, side: b'B', quantity })
}

#[test]
fn a_modification_may_lower_an_order_and_no_more() {
    let mut state = state(RiskLimits { exposure_max: Some(1_000 * HUNDRED), ..Default::default() });
    let most = |state: &mut RiskState, number, quantity| {
        assert_eq!(state.check(0, ONE, &modify(number, b'B', quantity)), Ok(()), "{quantity}");
        let more = state.check(0, ONE, &modify(number, b'B', quantity + 1));
        assert_eq!(more, Err(reject_reason::INVALID_QUANTITY), "{quantity}");
    };
    assert_eq!(state.check(0, ONE, &buy(1, 100, HUNDRED)), Ok(()));
    most(&mut state, 1, 100);
    // Executed shares are part of an order's total.
    state.follow(ONE, &executed(1, 40));
    most(&mut state, 1, 100);
    let canceled = Canceled { timestamp_ns: 0, user_ref_num: 1, quantity: 10, reason: b'U' };
    state.follow(ONE, &Outbound::Canceled(canceled));
    most(&mut state, 1, 90);
    state.follow(ONE, &modified(1, 30));
    most(&mut state, 1, 70);
    assert_eq!(state.check(0, ONE, &replace(1, 2, 80, HUNDRED)), Ok(()));
    state.follow(ONE, &replaced(1, 2, 40, b'L'));
    most(&mut state, 2, 80);
    // The venue knows more about these.
    state.restore(ONE, &restored(3, 50, None));
    for number in [3, 4] {
        assert_eq!(state.check(0, ONE, &modify(number, b'B', 999_999)), Ok(()));
    }
}

#[test]
fn what_a_venue_says_of_a_modification_counts_also_when_it_is_more() {
    let mut state = state(RiskLimits { exposure_max: Some(1_000 * HUNDRED), ..Default::default() });
    assert_eq!(state.check(0, ONE, &buy(1, 100, HUNDRED)), Ok(()));
    for (left, exposure) in [(1_000, 1_000), (30, 30), (0, 0)] {
        state.follow(ONE, &modified(1, left));
        assert_eq!(state.exposure(ONE) / HUNDRED, exposure, "{left}");
        let refused = if left == 1_000 { Err(reject_reason::RISK_AGGREGATE_EXPOSURE) } else { Ok(()) };
        assert_eq!(state.check(0, ONE, &buy(2, 1, HUNDRED)), refused, "{left}");
        state.follow(
            ONE,
            &Outbound::Canceled(Canceled { timestamp_ns: 0, user_ref_num: 2, quantity: 1, reason: b'U' }),
        );
    }
}

#[test]
fn a_replacement_without_an_answer_counts_with_its_original_after_a_restart_too() {
    let mut state = state(RiskLimits { exposure_max: Some(1_000 * HUNDRED), ..Default::default() });
    // 500 were entered and 100 of them executed when a replacement for 500 in all was sent.
    state.restore_executed(ONE, 100 * HUNDRED);
    state.restore(ONE, &restored(1, 400, None));
    state.restore(ONE, &restored(2, 500, Some(1)));
    assert_eq!(state.exposure(ONE) / HUNDRED, 600, "as before");
    state.follow(ONE, &replaced(1, 2, 400, b'L'));
    assert_eq!(state.exposure(ONE) / HUNDRED, 500);
    state.follow(ONE, &executed(2, 400));
    assert_eq!(state.exposure(ONE) / HUNDRED, 500, "all of it is executed, and nothing open");
    state.restore(ONE, &restored(4, 70, Some(3)));
    assert_eq!(state.exposure(ONE) / HUNDRED, 570, "without its original it is an order like others");
}

#[test]
fn what_there_is_no_room_to_follow_counts_all_the_same() {
    let config = RiskConfig { accounts_max: 1, orders_max: 1, ..Default::default() };
    let mut state = RiskState::new(config, Arc::new(References::new(1)));
    state.set_limits(RiskLimits { exposure_max: Some(100 * HUNDRED), ..Default::default() });
    state.restore(ONE, &restored(1, 30, None));
    state.restore(ONE, &restored(2, 50, None));
    state.restore(ONE, &restored(3, 10, Some(1)));
    assert_eq!(state.exposure(ONE) / HUNDRED, 90);
    let canceled = Canceled { timestamp_ns: 0, user_ref_num: 1, quantity: 30, reason: b'U' };
    state.follow(ONE, &Outbound::Canceled(canceled));
    assert_eq!(state.exposure(ONE) / HUNDRED, 60);
}

#[test]
fn a_replacement_that_is_dead_at_once_counts_for_nothing() {
    let mut state = state(RiskLimits { exposure_max: Some(100 * HUNDRED), ..Default::default() });
    assert_eq!(state.check(0, ONE, &buy(1, 30, HUNDRED)), Ok(()));
    assert_eq!(state.check(0, ONE, &replace(1, 2, 90, HUNDRED)), Ok(()));
    state.follow(ONE, &replaced(1, 2, 90, b'D'));
    assert_eq!(state.exposure(ONE), 0);
    assert_eq!(state.check(0, ONE, &buy(3, 100, HUNDRED)), Ok(()));
}

#[test]
fn replacements_that_the_venue_has_not_answered_count_as_much_as_the_dearest_of_them() {
    let limits = RiskLimits { exposure_max: Some(100 * HUNDRED), ..Default::default() };
    let mut state = state(limits);
    let refused = Err(reject_reason::RISK_AGGREGATE_EXPOSURE);
    let check = |state: &mut RiskState, message: Inbound<'_>| {
        state.check(0, ONE, &message).map(|()| state.exposure(ONE) / HUNDRED)
    };
    assert_eq!(check(&mut state, buy(1, 30, HUNDRED)), Ok(30));
    // Each replaces the one before, all in one write: only the last can be live in the end.
    assert_eq!(check(&mut state, replace(1, 2, 60, HUNDRED)), Ok(60));
    assert_eq!(check(&mut state, replace(2, 3, 50, HUNDRED)), Ok(60), "the one before may be the last");
    assert_eq!(check(&mut state, replace(3, 4, 90, HUNDRED)), Ok(90));
    assert_eq!(check(&mut state, replace(4, 5, 101, HUNDRED)), refused);
    assert_eq!(check(&mut state, buy(6, 20, HUNDRED)), refused, "90 are taken");
    assert_eq!(check(&mut state, buy(7, 10, HUNDRED)), Ok(100));
    assert_eq!(check(&mut state, replace(1, 8, 90, HUNDRED)), Ok(100), "one of them at most");
    assert_eq!(check(&mut state, replace(7, 9, 11, HUNDRED)), refused);
    // The venue's message decides.
    let replaced = |original, number, quantity| replaced(original, number, quantity, b'L');
    state.follow(ONE, &replaced(1, 2, 60));
    assert_eq!(state.exposure(ONE) / HUNDRED, 100, "8 and 4 are not answered");
    state.forget_replacement(ONE, 8);
    assert_eq!(state.exposure(ONE) / HUNDRED, 100);
    state.forget_replacement(ONE, 4);
    assert_eq!(state.exposure(ONE) / HUNDRED, 70, "10, and 60 until 3 is confirmed");
    state.follow(ONE, &replaced(2, 3, 50));
    assert_eq!(state.exposure(ONE) / HUNDRED, 60);
    assert_eq!(check(&mut state, replace(3, 10, 90, HUNDRED)), Ok(100));
    state.follow(
        ONE,
        &Outbound::Canceled(Canceled { timestamp_ns: 0, user_ref_num: 3, quantity: 50, reason: b'U' }),
    );
    assert_eq!(state.exposure(ONE) / HUNDRED, 10, "10 is ignored by the venue");
    assert_eq!(check(&mut state, buy(11, 90, HUNDRED)), Ok(100));
}

#[test]
fn a_replacement_that_costs_less_passes_whatever_the_limit_is_now() {
    let limits = |hundreds: u64| RiskLimits { exposure_max: Some(hundreds * HUNDRED), ..Default::default() };
    let mut state = state(limits(100));
    assert_eq!(state.check(0, ONE, &buy(1, 90, HUNDRED)), Ok(()));
    state.set_limits(limits(10));
    assert_eq!(state.check(0, ONE, &replace(1, 2, 50, HUNDRED)), Ok(()));
    assert!(state.check(0, ONE, &replace(1, 3, 91, HUNDRED)).is_err());
    assert!(state.check(0, ONE, &buy(4, 1, HUNDRED)).is_err());
}

#[test]
fn an_order_has_a_maximum_of_replacements_that_are_not_answered() {
    let mut state = state(RiskLimits { exposure_max: Some(u64::MAX), ..Default::default() });
    assert_eq!(state.check(0, ONE, &buy(1, 1, HUNDRED)), Ok(()));
    for number in 2..66 {
        assert_eq!(state.check(0, ONE, &replace(number - 1, number, 1, HUNDRED)), Ok(()));
    }
    assert_eq!(state.check(0, ONE, &replace(65, 66, 1, HUNDRED)), Err(reject_reason::PROCESSING_ERROR));
    state.forget_replacement(ONE, 65);
    assert_eq!(state.check(0, ONE, &replace(64, 67, 1, HUNDRED)), Ok(()));
}

#[test]
fn exposure_returns_to_what_was_executed_when_all_orders_are_gone() {
    for seed in seeds(4) {
        let limits = RiskLimits { exposure_max: Some(u64::MAX), ..Default::default() };
        let references = Arc::new(References::new(16));
        assert!([WEIR, DAM].into_iter().all(|symbol| references.set(symbol, HUNDRED)));
        let mut state = state_with(limits, &references);
        let mut venue = MatchingVenue::new(&MatchingConfig { accounts_max: 4, ..Default::default() });
        let mut messages = Messages::new(seed, 4, 100, false);
        let mut sink = Sink::default();
        let mut executed = [0; 4];
        for step in 0..20_000 {
            let (account, message) = messages.next();
            let account = AccountId(account);
            if state.check(step, account, &message).is_ok() {
                venue.handle(step, account, &message, &mut sink);
            } else {
                // At any price, and in place of an unknown order; or it asks for more than the order has.
                assert!(matches!(message, Inbound::Replace(..) | Inbound::Modify(_)), "{message:?}");
            }
            if step == 19_999 {
                (0..4).for_each(|account| venue.disconnected(step, AccountId(account), &mut sink));
            }
            for (account, said) in sink.take() {
                state.follow(account, &said);
                if let Outbound::Executed(trade) = said {
                    executed[account.0 as usize] += trade.price * u64::from(trade.quantity);
                }
            }
        }
        assert_eq!([0, 1, 2, 3].map(|account| state.exposure(AccountId(account))), executed, "seed {seed}");
    }
}

#[test]
fn what_is_executed_of_an_order_that_is_over_counts_too() {
    let mut state = state(RiskLimits { exposure_max: Some(100 * HUNDRED), ..Default::default() });
    assert_eq!(state.check(0, ONE, &buy(1, 60, HUNDRED)), Ok(()));
    state.follow(ONE, &executed(1, 60));
    state.follow(ONE, &executed(1, 30));
    assert_eq!(state.exposure(ONE) / HUNDRED, 90);
    assert!(state.check(0, ONE, &buy(2, 11, HUNDRED)).is_err());
}

#[test]
fn trades_move_the_reference_price_of_all_workers() {
    let limits = RiskLimits { fat_finger_basis_points: Some(1_000), ..Default::default() };
    let references = Arc::new(References::new(16));
    let [mut state, mut other] = [(); 2].map(|()| state_with(limits.clone(), &references));
    let mut venue = MatchingVenue::new(&MatchingConfig { accounts_max: 4, ..Default::default() });
    let mut sink = Sink::default();
    for (account, message) in [(ONE, sell(1, 10, HUNDRED)), (TWO, buy(1, 10, HUNDRED))] {
        state.check(0, account, &message).expect("no reference price yet");
        venue.handle(0, account, &message, &mut sink);
    }
    for (account, said) in sink.take() {
        state.follow(account, &said);
    }
    assert_eq!(references.get(WEIR), Some(HUNDRED));
    assert!(state.check(0, ONE, &buy(2, 1, 2 * HUNDRED)).is_err());
    assert!(other.check(0, ONE, &buy(2, 1, 2 * HUNDRED)).is_err(), "it has seen no trade itself");
}

#[test]
fn cancels_have_a_rate_of_their_own_and_a_flood_of_them_ends_the_session() {
    let rate = Rate { per_second: 10, burst: 20 };
    let mut state = state(RiskLimits { cancel_rate: Some(rate), ..Default::default() });
    let counted = |state: &mut RiskState, now_ns: u64, account: AccountId, cancels: u32| -> u32 {
        (0..cancels).map(|_| u32::from(state.count_cancel(now_ns, account).is_ok())).sum()
    };
    assert_eq!(counted(&mut state, SECOND, ONE, 25), 20, "the burst");
    assert_eq!(counted(&mut state, SECOND, TWO, 25), 20, "another account");
    assert_eq!(counted(&mut state, SECOND + SECOND / 2, ONE, 25), 5);
    assert_eq!(passed(&mut state, SECOND, 1, 100), 100, "orders have none");
    for second in 10..13 {
        assert!(!state.must_drop(ONE));
        counted(&mut state, second * SECOND, ONE, 100);
    }
    assert!(state.must_drop(ONE) && !state.must_drop(ONE), "asking clears it");
    state.set_limits(RiskLimits::default());
    assert_eq!(counted(&mut state, 13 * SECOND, ONE, 1_000), 1_000);
}

#[test]
fn orders_beyond_those_that_can_be_followed_are_refused_while_a_limit_needs_them() {
    let config = RiskConfig { accounts_max: 1, orders_max: 2, ..Default::default() };
    let mut state = RiskState::new(config, Arc::new(References::new(1)));
    state.set_limits(RiskLimits { exposure_max: Some(u64::MAX), ..Default::default() });
    assert_eq!(passed(&mut state, 0, 1, 3), 2);
    state.set_limits(RiskLimits { shares_max: Some(1_000), ..Default::default() });
    assert_eq!(passed(&mut state, 0, 10, 3), 3, "shares need no memory");
}

/// Orders are followed before any limit is set.
fn following(orders_max: usize) -> RiskState {
    let config = RiskConfig { accounts_max: 4, orders_max, follows_orders: true, ..Default::default() };
    RiskState::new(config, Arc::new(References::new(16)))
}

#[test]
fn a_limit_counts_what_was_open_and_executed_before_it_was_set() {
    let mut state = following(16);
    assert_eq!(passed(&mut state, 0, 1, 3), 3, "1, 2 and 3 shares");
    state.follow(ONE, &executed(2, 2));
    state.follow(ONE, &executed(9, 4));
    assert_eq!(state.exposure(ONE) / HUNDRED, 10);
    state.set_limits(RiskLimits { exposure_max: Some(20 * HUNDRED), ..Default::default() });
    assert_eq!(state.check(0, ONE, &buy(10, 10, HUNDRED)), Ok(()));
    assert_eq!(state.check(0, ONE, &buy(11, 1, HUNDRED)), Err(reject_reason::RISK_AGGREGATE_EXPOSURE));
    assert_eq!(state.check(0, ONE, &replace(3, 12, 3, HUNDRED)), Ok(()), "no higher price");
    state.set_limits(RiskLimits { restricted: vec![WEIR], ..Default::default() });
    assert_eq!(state.check(0, ONE, &replace(1, 13, 1, HUNDRED)), Err(reject_reason::RISK_RESTRICTED_STOCK));
    assert_eq!(state.check(0, ONE, &replace(77, 14, 1, HUNDRED)), Ok(()), "there is no such order");
}

#[test]
fn what_was_not_followed_is_not_replaced_where_a_limit_would_have_to_know_it() {
    let restricted = RiskLimits { restricted: vec![DAM], ..Default::default() };
    let refused = Err(reject_reason::PROCESSING_ERROR);
    let mut late = state(RiskLimits::default());
    assert_eq!(late.check(0, ONE, &buy(1, 1, HUNDRED)), Ok(()));
    late.set_limits(restricted.clone());
    assert_eq!(late.check(0, ONE, &replace(1, 2, 1, HUNDRED)), refused, "it may be anything");
    assert_eq!(late.check(0, ONE, &cancel(1, 0)), Ok(()));
    assert_eq!(late.check(0, ONE, &buy(3, 1, HUNDRED)), Ok(()));
    assert_eq!(late.check(0, ONE, &replace(3, 4, 1, HUNDRED)), Ok(()));
    late.set_limits(RiskLimits { shares_max: Some(5), ..Default::default() });
    assert_eq!(late.check(0, ONE, &replace(1, 5, 1, HUNDRED)), Ok(()), "shares need no memory");
    let mut full = following(1);
    assert_eq!(passed(&mut full, 0, 1, 2), 2, "without a limit nothing is refused");
    assert_eq!(full.exposure(ONE) / HUNDRED, 3, "and it counts for good");
    full.set_limits(restricted);
    assert_eq!(full.check(0, ONE, &replace(2, 3, 1, HUNDRED)), refused);
    let mut given = state(RiskLimits { exposure_max: Some(u64::MAX), ..Default::default() });
    assert_eq!(given.check(0, ONE, &replace(1, 2, 1, HUNDRED)), Ok(()));
    given.note_unfollowed();
    assert_eq!(given.check(0, ONE, &replace(1, 2, 1, HUNDRED)), refused);
}

#[test]
fn the_terms_of_a_live_order_are_known_and_its_executions_say_what_was_traded() {
    let mut state = following(16);
    assert_eq!(state.check(0, ONE, &sell(1, 30, HUNDRED)), Ok(()));
    assert_eq!(state.check(0, ONE, &replace(1, 2, 20, 2 * HUNDRED)), Ok(()));
    let terms = |price, shares| Some(LiveTerms { symbol: WEIR, side: b'S', price, shares });
    assert_eq!(state.terms_of(ONE, 1), terms(HUNDRED, 30));
    assert_eq!(state.terms_of(ONE, 2), terms(2 * HUNDRED, 20), "its replacement");
    let traded = Trade { symbol: WEIR, side: b'S', shares: 10, price: HUNDRED };
    assert_eq!(state.follow(ONE, &executed(1, 10)), Some(traded));
    assert_eq!((state.follow(ONE, &executed(9, 10)), state.terms_of(TWO, 1)), (None, None));
    assert_eq!(state.terms_of(ONE, 1), terms(HUNDRED, 20));
}
