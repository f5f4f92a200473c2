//! Tests of the events about clients.

use std::time::{Duration, Instant};

use weir_engine::Driver;
use weir_proto::ouch::reject_reason;
use weir_servers::{
    gateway::{GatewayConfig, Limits},
    orders::{Event, EventKind},
};

use super::{
    changes::get,
    faults::health_page,
    rig::{PATIENCE, Trader, end_exchange, end_gateway, exchange, gateway, loopback, order},
    rules::{expect_accepted, expect_refused},
};

#[test]
fn logins_takeovers_refusals_and_ends_have_an_event_with_the_address() {
    let venue = exchange(Driver::Poll, loopback());
    let mut config = GatewayConfig::demo(2, venue.address().clone());
    config.accounts[0].takeover = true;
    config.limits = Limits { shares_max: Some(10), ..Limits::default() };
    let gateway = gateway(Driver::Poll, 1, config);
    let events = gateway.control().events().expect("nobody has them");
    let next = |kind: EventKind| -> Event {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
            let event = events.recv_timeout(left).unwrap_or_else(|_| panic!("there is no {kind:?}"));
            if event.kind == kind {
                return event;
            }
        }
    };
    let first = Trader::login(&gateway, "C00001", 1);
    let login = next(EventKind::LogIn);
    let peer = login.peer.expect("it has an address");
    assert!(
        peer.ip().is_loopback() && login.to_string() == format!("worker 0: C00001 has logged in from {peer}")
    );
    let mut second = Trader::login(&gateway, "C00001", 1);
    let taken = next(EventKind::TakeOver);
    let after = taken.peer.expect("it has an address");
    let expected = format!("worker 0: a login of C00001 from {after} ends its connection from {peer}");
    assert_eq!(taken.to_string(), expected);
    let ended = next(EventKind::LogOut);
    assert_eq!((ended.peer, ended.reason), (Some(peer), Some("taken_over")));
    second.send(&[order(1, 11), order(2, 12), order(3, 10)]);
    expect_refused(&mut second, 1, reject_reason::SHARES_EXCEED_THRESHOLD);
    expect_refused(&mut second, 2, reject_reason::SHARES_EXCEED_THRESHOLD);
    expect_accepted(&mut second, 3);
    let refused = next(EventKind::OrderRefused);
    assert_eq!((refused.account.as_deref(), refused.left_out), (Some("C00001"), 0));
    assert!(refused.text.starts_with("order 1 of C00001 is refused with 0x001E ("), "{refused}");
    assert_eq!(Trader::try_login(&gateway, "NOBODY", 1).err(), Some(b'A'));
    let refused = next(EventKind::LogInRefused);
    assert_eq!((refused.account.as_deref(), refused.reason), (Some("NOBODY"), Some("not_authorised")));
    assert_eq!(Trader::try_bytes(&gateway, b"\0\x02L "), Some(b'+'), "a login has another length");
    let broken = next(EventKind::ProtocolBroken);
    let peer = broken.peer.expect("it has an address");
    let expected = format!(
        "worker 0: a connection from {peer} is cut off before its login: a login request of length 2; 47 and 52 are \
         known"
    );
    assert_eq!((broken.to_string(), broken.reason), (expected, Some("login_length")));
    drop((first, second));
    assert_eq!(next(EventKind::LogOut).reason, Some("left"));
    gateway.drain();
    assert!(next(EventKind::Drain).text.starts_with("the server drains; "));
    end_gateway(gateway);
    end_exchange(venue);
}

#[test]
fn events_about_clients_that_are_left_out_are_counted() {
    const REFUSED: u32 = 20;
    let venue = exchange(Driver::Poll, loopback());
    let mut config = GatewayConfig::demo(1, venue.address().clone());
    config.limits = Limits { shares_max: Some(10), ..Limits::default() };
    let gateway = gateway(Driver::Poll, 1, config);
    let events = gateway.control().events().expect("nobody has them");
    let mut trader = Trader::login(&gateway, "C00001", 1);
    trader.send(&(1..=REFUSED).map(|number| order(number, 11)).collect::<Vec<_>>());
    (1..=REFUSED)
        .for_each(|number| expect_refused(&mut trader, number, reject_reason::SHARES_EXCEED_THRESHOLD));
    let told = events.try_iter().filter(|event| event.kind == EventKind::OrderRefused).count();
    let page = get(health_page(&gateway), "/metrics");
    let name = "weir_lines_left_out_total{about=\"clients\"} ";
    let count = page.lines().find_map(|line| line.strip_prefix(name)?.parse::<usize>().ok());
    assert_eq!(count.map(|left_out| left_out + told), Some(REFUSED as usize), "{told} have a line");
    drop(trader);
    end_gateway(gateway);
    end_exchange(venue);
}
