//! The code that runs for every order does not allocate, once accounts and symbols are known.

#[path = "../../../weir-proto/tests/allocations/counting.rs"]
mod counting;
mod flow;

use std::sync::Arc;

use weir_proto::ouch::Outbound;
use weir_trading::{
    AccountId, EchoConfig, EchoVenue, MatchingVenue, Origin, Rate, References, RiskConfig, RiskLimits,
    RiskState, UpstreamNumbers, Venue, WhenFull,
};

use flow::{Flow, Operation, Plan};

const PLAN: Plan = Plan { seed: 7, symbols: 3, accounts: 5, live_orders: 3_000, operations: 30_000 };

fn ignore(_: AccountId, message: &Outbound) {
    std::hint::black_box(message);
}

fn apply(venue: &mut impl Venue, operations: &[Operation]) {
    for (operation, now_ns) in operations.iter().zip(0..) {
        let (account, message) = operation.message();
        venue.handle(now_ns, account, &message, &mut ignore);
    }
}

#[test]
fn matching_does_not_allocate() {
    let Flow { filling, steady } = flow::make(&PLAN);
    let mut venue = MatchingVenue::new(&flow::config(&PLAN));
    let filled = counting::allocations(|| apply(&mut venue, &filling));
    assert_eq!(filled, 0, "everything is reserved when the venue is made");
    let before = venue.live_orders();
    assert_eq!(counting::allocations(|| apply(&mut venue, &steady)), 0);
    assert!(venue.live_orders().abs_diff(before) < 100, "the book keeps its size");
}

#[test]
fn echoing_allocates_once_for_each_account() {
    let Flow { filling, steady } = flow::make(&PLAN);
    let mut venue = EchoVenue::new(EchoConfig { accounts_max: 8, ..Default::default() });
    let made = counting::allocations(|| apply(&mut venue, &filling));
    assert_eq!(made, u64::from(PLAN.accounts));
    assert_eq!(counting::allocations(|| apply(&mut venue, &steady)), 0);
}

#[test]
fn translating_does_not_allocate_once_the_accounts_are_known() {
    let mut order_ids = UpstreamNumbers::with_policy(1, 1_000, WhenFull::ForgetOldest);
    let assign = |order_ids: &mut UpstreamNumbers, user_ref_num| {
        let origin = Origin { account: AccountId(user_ref_num % 4), user_ref_num, home: 0, received_ns: 0 };
        order_ids.assign(origin, None).expect("the oldest makes room")
    };
    (1..10).for_each(|number| _ = assign(&mut order_ids, number));
    let made = counting::allocations(|| {
        for number in 10..20_000 {
            let upstream = assign(&mut order_ids, number);
            if number % 3 == 0 {
                order_ids.finish(upstream - number % 700);
            }
        }
    });
    assert_eq!(made, 0);
}

#[test]
fn checking_allocates_once_for_each_account() {
    let Flow { filling, steady } = flow::make(&PLAN);
    let mut state =
        RiskState::new(RiskConfig { accounts_max: 8, ..Default::default() }, Arc::new(References::new(8)));
    let rate = Rate { per_second: 1_000_000, burst: 1_000_000 };
    state.set_limits(RiskLimits {
        port_rate: Some(rate),
        symbol_rate: Some(rate),
        exposure_max: Some(u64::MAX),
        ..Default::default()
    });
    let mut venue = MatchingVenue::new(&flow::config(&PLAN));
    let mut run = |operations: &[Operation]| {
        for operation in operations {
            let (account, message) = operation.message();
            state.check(1, account, &message).expect("far below the limits");
            let mut follow = |account: AccountId, message: &Outbound| _ = state.follow(account, message);
            venue.handle(0, account, &message, &mut follow);
        }
    };
    assert_eq!(counting::allocations(|| run(&filling)), u64::from(PLAN.accounts));
    assert_eq!(counting::allocations(|| run(&steady)), 0);
}
