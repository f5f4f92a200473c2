//! Tests of lines that go dead silently, and of connections that replace others: in virtual time.

use std::sync::Arc;

use weir_engine::time::{now, sleep, sleep_until};
use weir_proto::ouch::Outbound;
use weir_servers::{
    journal::Level,
    orders::{AccountConfig, OrdersConfig},
};

use super::{
    client::{Client, accepted, enter, framed},
    replay::{Folder, fill, journaled},
    rig::{config, on_sim},
    timing::{GRID, SLACK, assert_after, seconds},
};
use crate::cable::Cable;

/// The same accounts, each with the same change.
fn with(config: OrdersConfig, change: impl Fn(AccountConfig) -> AccountConfig) -> OrdersConfig {
    let accounts = config.accounts.iter().cloned().map(change).collect();
    OrdersConfig { accounts: Arc::new(accounts), ..config }
}

#[test]
fn a_dead_line_is_found_by_the_heartbeat_and_its_orders_are_cancelled_then_and_once() {
    let careful = with(config(2), |account| AccountConfig { cancel_on_disconnect: true, ..account });
    on_sim(careful, async |network| {
        let cable = Cable::lay(network.address.clone());
        let mut client = Client::connect(&cable.address, true).await;
        client.log_in("C00001", 1).await.expect("it is let in");
        fill(&mut client, 1..=5).await;
        let start = now();
        cable.cut();
        // This one reaches nobody.
        client.send(&enter(6)).await;
        // Until the dead line is noticed, the account is in use.
        sleep_until(start + seconds(14)).await;
        let mut early = network.connect().await;
        assert_eq!(early.log_in("C00001", 6).await, Err(b'S'));
        assert_eq!(network.stats().sessions_open, 1);
        network.until(|stats| stats.sessions_open == 0).await;
        assert_after(start, seconds(15), seconds(15) + GRID);
        let stats = network.stats();
        assert_eq!((stats.heartbeat_timeouts, stats.cancels_on_disconnect), (1, 5));
        // It gets its messages when it is back, and an order lost on the line is accepted when it is resent.
        let mut client = network.connect().await;
        client.log_in("C00001", 6).await.expect("it is let in");
        let mut cancelled = Vec::new();
        for _ in 0..5 {
            match client.message().await {
                Outbound::Canceled(message) => cancelled.push(message.user_ref_num),
                other => panic!("{other:?} instead of a cancellation"),
            }
        }
        cancelled.sort_unstable();
        assert_eq!(cancelled, [1, 2, 3, 4, 5]);
        client.send(&enter(6)).await;
        assert_eq!(accepted(&client.message().await), 6);
        assert_eq!(network.stats().orders, 6);
    });
}

#[test]
fn with_takeover_who_was_on_a_dead_line_is_back_at_once() {
    let takeover = with(config(1), |account| AccountConfig { takeover: true, ..account });
    on_sim(takeover, async |network| {
        let cable = Cable::lay(network.address.clone());
        let mut client = Client::connect(&cable.address, true).await;
        client.log_in("C00001", 1).await.expect("it is let in");
        let all = fill(&mut client, 1..=5).await;
        cable.cut();
        let start = now();
        let mut back = network.connect().await;
        back.log_in("C00001", 1).await.expect("it takes over");
        assert_eq!(back.messages(5).await, all);
        assert!(now().since(start) < SLACK, "{:?}", now().since(start));
        back.send(&enter(6)).await;
        assert_eq!(accepted(&back.message().await), 6);
        assert_eq!((network.stats().sessions_open, network.stats().heartbeat_timeouts), (1, 0));
    });
}

#[test]
fn with_takeover_a_client_that_takes_nothing_gives_way_and_nothing_is_missed() {
    const ORDERS: u32 = 5000;
    let folder = Folder::new("stuck");
    let takeover =
        with(journaled(&folder, Level::Os, 1), |account| AccountConfig { takeover: true, ..account });
    on_sim(takeover, async |network| {
        let mut stuck = network.enter("C00001").await;
        for first in (1..=ORDERS).step_by(500) {
            let frames: Vec<u8> = (first..first + 500).flat_map(|number| framed(&enter(number))).collect();
            stuck.write(frames).await;
        }
        network.until(|stats| stats.sessions[0].sequence_last == u64::from(ORDERS)).await;
        let sent = network.stats().sessions[0].sequence_sent;
        assert!(sent < u64::from(ORDERS), "more than a socket holds: {sent}");
        let mut client = network.connect().await;
        client.log_in("C00001", 1).await.expect("it takes over");
        for (number, message) in (1..=ORDERS).zip(client.messages(ORDERS as usize).await) {
            assert_eq!(accepted(&Outbound::decode(&message).expect("a message").0), number);
        }
        // The old connection ends, after the bytes that were on their way.
        while stuck.read(64 << 10).await.is_ok_and(|count| count > 0) {}
        sleep(SLACK).await;
        assert_eq!(network.stats().sessions_open, 1);
    });
}
