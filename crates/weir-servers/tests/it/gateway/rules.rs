//! Tests of the checks on an order's way through a gateway, from the wire to the refusal: limits, numbers, symbols
//! and kill switches.

use std::time::{Duration, Instant};

use weir_engine::{
    Driver,
    time::{Instant as Moment, sleep_until},
};
use weir_proto::{
    ouch::{
        Appendage, Enter, Inbound, Outbound,
        codes::{cancel_reason, side},
        reject_reason,
    },
    soup::{UNSEQUENCED, encode_frame},
};
use weir_servers::{
    exchange::Mode,
    gateway::{GatewayConfig, GatewayServer},
};
use weir_trading::Route;

use super::{
    rig::{
        Script, Trader, cancels, drivers, end_exchange, end_gateway, eventually, exchange, exchange_in,
        gateway, loopback, order, order_for,
    },
    world::{World, exchange_config, on_sim},
};
use crate::orders::client::{Packet, accepted, cancel, enter, framed};

/// Waits for the start of this clock second.
async fn second(number: u64) {
    sleep_until(Moment::from_nanos(number * 1_000_000_000)).await;
}

#[test]
fn the_101st_order_of_a_second_is_refused_and_cancels_pass() {
    let limited = |at| {
        let mut config = GatewayConfig::demo(1, at);
        config.limits.orders_per_second = Some(100);
        config
    };
    on_sim(exchange_config(), limited, async |world: &World| {
        let mut client = world.enter("C00001").await;
        second(10).await;
        let orders = (1..=101).flat_map(|number| framed(&enter(number)));
        client.write(orders.chain(framed(&cancel(1))).collect::<Vec<u8>>()).await;
        let (mut accepted_numbers, mut refused, mut cancelled) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..102 {
            match client.message().await {
                Outbound::Accepted(accepted) => accepted_numbers.push(accepted.user_ref_num),
                Outbound::Rejected(rejected) => refused.push((rejected.user_ref_num, rejected.reason)),
                Outbound::Canceled(cancelled_one) => cancelled.push(cancelled_one.user_ref_num),
                other => panic!("{other:?}"),
            }
        }
        assert!(accepted_numbers.iter().copied().eq(1..=100), "{accepted_numbers:?}");
        assert_eq!(refused, [(101, reject_reason::RISK_PORT_MESSAGE_RATE)]);
        assert_eq!(cancelled, [1]);
        // A second later there is room for as many.
        second(12).await;
        client.write((102..=201).flat_map(|number| framed(&enter(number))).collect::<Vec<u8>>()).await;
        for number in 102..=201 {
            assert_eq!(accepted(&client.message().await), number);
        }
    });
}

#[test]
fn what_is_refused_as_not_supported_and_account_queries_use_the_rate_up() {
    let limited = |at| {
        let mut config = GatewayConfig::demo(1, at);
        config.limits.orders_per_second = Some(3);
        config
    };
    on_sim(exchange_config(), limited, async |world: &World| {
        let mut client = world.enter("C00001").await;
        second(10).await;
        client.send(&Inbound::AccountQuery).await;
        assert_eq!(client.message().await.kind(), b'Q');
        let mut refusals = Vec::new();
        for number in 1..=4_u32 {
            // A mass cancel.
            let raw = [&b"C"[..], &number.to_be_bytes(), b"FIRM", b"WEIR    ", &[0, 0]].concat();
            let mut frame = Vec::new();
            encode_frame(UNSEQUENCED, &raw, &mut frame);
            client.write(frame).await;
            let Outbound::Rejected(rejected) = client.message().await else { panic!("it is refused") };
            assert_eq!(rejected.user_ref_num, number);
            refusals.push(rejected.reason);
        }
        let (other, rate) = (reject_reason::OTHER, reject_reason::RISK_PORT_MESSAGE_RATE);
        assert_eq!(refusals, [other, other, rate, rate]);
        client.send(&enter(5)).await;
        assert!(matches!(client.message().await, Outbound::Rejected(rejected) if rejected.reason == rate));
        // A query is still answered: without its numbers a client can do nothing.
        client.send(&Inbound::AccountQuery).await;
        assert_eq!(client.message().await.kind(), b'Q');
    });
}

#[test]
fn account_queries_without_end_end_the_session() {
    let limited = |at| {
        let mut config = GatewayConfig::demo(1, at);
        config.limits.orders_per_second = Some(3);
        config
    };
    on_sim(exchange_config(), limited, async |world: &World| {
        let mut client = world.enter("C00001").await;
        for at in [10, 11, 12] {
            second(at).await;
            assert_eq!(world.gateway.node_stats().sessions_open, 1, "it lasts two seconds");
            client.write((0..30).flat_map(|_| framed(&Inbound::AccountQuery)).collect::<Vec<u8>>()).await;
        }
        let mut packet = client.packet().await;
        while matches!(packet, Packet::Sequenced(_) | Packet::Heartbeat) {
            packet = client.packet().await;
        }
        let why = b"this connection is ended: ten times the rate that is allowed".to_vec();
        assert_eq!(packet, Packet::Debug(why));
        world.until(|world| world.gateway.node_stats().sessions_open == 0).await;
    });
}

#[test]
fn ten_times_the_rate_for_three_seconds_ends_the_session_and_nobody_elses() {
    let limited = |at| {
        let mut config = GatewayConfig::demo(2, at);
        config.limits.orders_per_second = Some(100);
        config
    };
    on_sim(exchange_config(), limited, async |world: &World| {
        let (mut client, mut other) = (world.enter("C00001").await, world.enter("C00002").await);
        let mut number = 0;
        for at in [10, 11, 12] {
            second(at).await;
            assert_eq!(world.gateway.node_stats().sessions_open, 2, "it lasts two seconds");
            let frames = (number + 1..=number + 1000).flat_map(|number| framed(&enter(number)));
            client.write(frames.collect::<Vec<u8>>()).await;
            number += 1000;
            other.send(&enter(number)).await;
            assert_eq!(accepted(&other.message().await), number);
            // It reads as long as messages arrive.
            for _ in 0..1000 {
                if matches!(client.packet().await, Packet::End | Packet::Reset) {
                    break;
                }
            }
        }
        world.until(|world| world.gateway.node_stats().sessions_open == 1).await;
        other.send(&enter(number + 1)).await;
        assert_eq!(accepted(&other.message().await), number + 1);
    });
}

fn limit(gateway: &GatewayServer, account: &str, limits: &str) {
    let limits = serde_json::from_str(limits).expect("a JSON object");
    gateway.control().set_limits(Some(account), limits).expect("it can be kept");
}

pub fn expect_refused(trader: &mut Trader, number: u32, reason: u16) {
    match trader.next() {
        Outbound::Rejected(rejected) => {
            assert_eq!((rejected.user_ref_num, rejected.reason), (number, reason));
        }
        other => panic!("{other:?} instead of a refusal of {number}"),
    }
}

pub fn expect_accepted(trader: &mut Trader, number: u32) {
    match trader.next() {
        Outbound::Accepted(accepted) => assert_eq!(accepted.user_ref_num, number),
        other => panic!("{other:?} instead of an acceptance of {number}"),
    }
}

/// An order for a hundred shares at a price.
pub fn priced(number: u32, side: u8, price: u64) -> Inbound<'static> {
    let Inbound::Enter(enter, _) = order_for(number, 100, "TRADED") else { panic!("it is an order") };
    Inbound::Enter(Enter { side, price, ..enter }, Appendage::EMPTY)
}

#[test]
fn every_limit_that_is_set_while_the_gateway_runs_refuses_with_its_own_reason() {
    for driver in drivers() {
        let venue = exchange_in(Mode::Match, driver, loopback());
        let gateway = gateway(driver, 2, GatewayConfig::demo(7, venue.address().clone()));
        let mut traders: Vec<Trader> =
            (1..=7).map(|account| Trader::login(&gateway, &format!("C{account:05}"), 1)).collect();
        let [rate, twice, far, seller, value, symbol, shares] = traders.as_mut_slice() else {
            panic!("seven")
        };

        limit(&gateway, "C00001", r#"{"symbol_orders_per_second":1,"symbol_orders_burst":2}"#);
        rate.send(&[order_for(1, 1, "A"), order_for(2, 2, "A"), order_for(3, 3, "A"), order_for(4, 4, "B")]);
        expect_refused_among(rate, 3, reject_reason::RISK_SYMBOL_MESSAGE_RATE, 4);

        limit(&gateway, "C00002", r#"{"duplicates_max":2,"duplicates_window_ms":60000}"#);
        twice.send(&[order(1, 5), order(2, 5), order(3, 5), order(4, 6)]);
        expect_refused_among(twice, 3, reject_reason::RISK_DUPLICATE_MESSAGE_RATE, 4);

        // The distance of a price is defined once there was a trade.
        limit(&gateway, "C00003", r#"{"fat_finger_percent":10.0}"#);
        seller.send(&[priced(1, side::SELL, 10_000)]);
        expect_accepted(seller, 1);
        far.send(&[priced(1, side::BUY, 10_000)]);
        expect_accepted(far, 1);
        assert!(matches!(far.next(), Outbound::Executed(executed) if executed.price == 10_000));
        far.send(&[priced(2, side::BUY, 11_001)]);
        expect_refused(far, 2, reject_reason::RISK_FAT_FINGER);
        far.send(&[priced(3, side::BUY, 11_000)]);
        expect_accepted(far, 3);

        // 100 shares at 1.0000.
        limit(&gateway, "C00005", r#"{"notional_max":99.0}"#);
        value.send(&[order(1, 100)]);
        expect_refused(value, 1, reject_reason::NOTIONAL_EXCEEDED);
        value.send(&[order(2, 99)]);
        expect_accepted(value, 2);

        limit(&gateway, "C00006", r#"{"restricted":["BANNED"]}"#);
        symbol.send(&[order_for(1, 1, "BANNED")]);
        expect_refused(symbol, 1, reject_reason::RISK_RESTRICTED_STOCK);
        symbol.send(&[order_for(2, 1, "OTHER")]);
        expect_accepted(symbol, 2);

        limit(&gateway, "C00007", r#"{"shares_max":10}"#);
        shares.send(&[order(1, 11)]);
        expect_refused(shares, 1, reject_reason::SHARES_EXCEED_THRESHOLD);
        limit(&gateway, "C00007", r#"{"shares_max":null}"#);
        shares.send(&[order(2, 11)]);
        expect_accepted(shares, 2);
        drop(traders);
        end_gateway(gateway);
        end_exchange(venue);
    }
}

/// One of this many orders is refused and the others are accepted. The refusal does not wait for the exchange.
fn expect_refused_among(trader: &mut Trader, number: u32, reason: u16, orders: u32) {
    let mut accepted_numbers = Vec::new();
    for _ in 1..=orders {
        match trader.next() {
            Outbound::Accepted(accepted) => accepted_numbers.push(accepted.user_ref_num),
            Outbound::Rejected(rejected) => {
                assert_eq!((rejected.user_ref_num, rejected.reason), (number, reason));
            }
            // They may trade with orders of others.
            Outbound::Executed(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(accepted_numbers.iter().copied().eq((1..=orders).filter(|order| *order != number)));
}

#[test]
fn numbers_that_are_used_up_upstream_refuse_and_do_not_begin_again() {
    for driver in drivers() {
        for next_number in [u32::MAX, 0] {
            let venue = Script::new();
            let config = GatewayConfig::demo(1, venue.address());
            let starting = std::thread::spawn(move || gateway(driver, 1, config));
            let mut session = venue.accept_session("X", 1, next_number);
            let gateway = starting.join().expect("it starts");
            let mut trader = Trader::login(&gateway, "C00001", 1);
            let mut number = 1;
            if next_number != 0 {
                trader.send(&[order(number, 100)]);
                let raw = session.next();
                assert_eq!(weir_proto::ouch::inbound_user_ref_num(&raw), Some(u32::MAX));
                session.accept_order(&raw);
                expect_accepted(&mut trader, number);
                number += 1;
            }
            for number in number..number + 3 {
                trader.send(&[order(number, 100)]);
                expect_refused(&mut trader, number, reject_reason::PROCESSING_ERROR);
            }
            drop(trader);
            end_gateway(gateway);
            assert!(session.is_left(), "nothing else was sent");
        }
    }
}

#[test]
fn a_symbol_that_no_venue_has_is_refused() {
    for driver in drivers() {
        let venue = exchange(driver, loopback());
        let mut config = GatewayConfig::demo(1, venue.address().clone());
        config.default_venue = None;
        config.symbols = vec![(super::rig::symbol("WEIR"), 0)];
        let gateway = gateway(driver, 1, config);
        let mut trader = Trader::login(&gateway, "C00001", 1);
        trader.send(&[order_for(1, 100, "ELSE")]);
        expect_refused(&mut trader, 1, reject_reason::INVALID_SYMBOL);
        trader.send(&[order_for(2, 100, "WEIR")]);
        expect_accepted(&mut trader, 2);
        drop(trader);
        end_gateway(gateway);
        end_exchange(venue);
    }
}

/// All accounts are stopped while this many orders of each of four accounts are open: all are cancelled, each once.
fn kill_everybody(driver: Driver, route: Route, orders: u32) {
    const CHUNK: u32 = 250;
    println!("{driver}, route {route}, {orders} orders each");
    // An exchange that only echoes remembers at most a thousand orders of a gateway.
    let mode = if orders > 500 { Mode::Match } else { Mode::EchoAccept };
    let venue = exchange_in(mode, driver, loopback());
    let config = GatewayConfig { route, ..GatewayConfig::demo(4, venue.address().clone()) };
    let gateway = gateway(driver, 2, config);
    let mut traders: Vec<Trader> =
        (1..=4).map(|account| Trader::login(&gateway, &format!("C{account:05}"), 1)).collect();
    for first in (1..=orders).step_by(CHUNK as usize) {
        for trader in &mut traders {
            trader.send(&(first..first + CHUNK).map(|number| order(number, 100)).collect::<Vec<_>>());
        }
        for trader in &mut traders {
            for number in first..first + CHUNK {
                expect_accepted(trader, number);
            }
        }
    }
    let begun = Instant::now();
    let all = u64::from(4 * orders);
    let told = gateway.control().kill(None, true).expect("it is kept");
    let confirmed = begun.elapsed();
    // It waits for a second; a busy machine may confirm the rest after that.
    let in_time = if confirmed < Duration::from_secs(1) { all } else { told[0].confirmed };
    assert_eq!(told, cancels("DEMO", all, all, in_time));
    for trader in &mut traders {
        let mut cancelled: Vec<u32> = (0..orders)
            .map(|_| match trader.next() {
                Outbound::Canceled(canceled) => {
                    assert_eq!((canceled.quantity, canceled.reason), (100, cancel_reason::SUPERVISORY));
                    canceled.user_ref_num
                }
                other => panic!("{other:?} instead of a cancellation"),
            })
            .collect();
        cancelled.sort_unstable();
        assert!(cancelled.iter().copied().eq(1..=orders));
    }
    println!("confirmed in {confirmed:?}, the last client told in {:?}", begun.elapsed());
    for trader in &mut traders {
        trader.send(&[order(orders + CHUNK + 1, 1)]);
        expect_refused(trader, orders + CHUNK + 1, reject_reason::FIRM_NOT_AUTHORIZED);
    }
    assert_eq!(gateway.control().kill(None, false), Ok(Vec::new()));
    // A client's own cancel has its own reason again.
    traders[0].send(&[order(orders + CHUNK + 2, 1)]);
    expect_accepted(&mut traders[0], orders + CHUNK + 2);
    traders[0].send(&[super::rig::cancel(orders + CHUNK + 2)]);
    assert!(
        matches!(traders[0].next(), Outbound::Canceled(canceled) if canceled.reason == cancel_reason::USER)
    );
    eventually("nothing waits any more", || gateway.control().node_stats().backlog == 0);
    drop(traders);
    end_gateway(gateway);
    end_exchange(venue);
}

#[test]
fn a_kill_switch_for_everybody_cancels_every_open_order_once_and_says_why() {
    for driver in drivers() {
        for route in [Route::Own, Route::Other] {
            kill_everybody(driver, route, 250);
        }
    }
    if std::env::var_os("WEIR_SLOW_TESTS").is_some() {
        // A hundred thousand in total.
        drivers().into_iter().for_each(|driver| kill_everybody(driver, Route::Own, 25_000));
    }
}
