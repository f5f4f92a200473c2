//! Clients that do not take what they are sent: cut off at a bound, on every driver, and nothing is lost by it.

use weir_engine::{
    serve::AcceptMode,
    time::{now, sleep},
};
use weir_proto::{ouch::Outbound, soup::LOGOUT_FRAME};
use weir_servers::{journal::Level, orders::OrdersConfig};

use super::{
    client::{accepted, enter, framed},
    replay::{Folder, journaled},
    rig::{KERNEL_DRIVERS, Network, on_kernel, on_sim},
    timing::{SLACK, seconds},
};

/// Everything that an account was told, from its first message on, is the acceptances of its first orders.
async fn expect_whole_stream(network: &Network, account: &str) -> u64 {
    let mut client = network.connect().await;
    let (_, next) = client.log_in(account, 0).await.expect("it is let in");
    client.write(LOGOUT_FRAME).await;
    client.expect_end().await;
    let mut client = loop {
        // Until the seat is free.
        let mut client = network.connect().await;
        if client.log_in(account, 1).await.is_ok() {
            break client;
        }
    };
    for (number, message) in (1..).zip(client.messages(next as usize - 1).await) {
        assert_eq!(accepted(&Outbound::decode(&message).expect("a message").0), number);
    }
    next - 1
}

#[test]
fn on_every_driver_who_takes_nothing_is_cut_off_and_has_everything_later() {
    for driver in KERNEL_DRIVERS {
        let folder = Folder::new(&format!("slow-{driver}"));
        let narrow = OrdersConfig { outbound_bytes_max: 256 << 10, ..journaled(&folder, Level::Os, 2) };
        on_kernel(driver, AcceptMode::ReusePort, narrow, async |network| {
            let (mut other, mut slow) = (network.enter("C00002").await, network.enter("C00001").await);
            let mut number = 0;
            while network.stats().slow_consumer_disconnects == 0 {
                let frames: Vec<u8> =
                    (number + 1..=number + 100).flat_map(|number| framed(&enter(number))).collect();
                number += 100;
                assert!(number < 500_000, "all of it waits somewhere");
                if slow.try_write(&frames).await.is_err() {
                    break;
                }
                // Nobody else is delayed.
                other.send(&enter(number)).await;
                assert_eq!(accepted(&other.message().await), number);
            }
            network.until(|stats| stats.slow_consumer_disconnects == 1 && stats.sessions_open == 1).await;
            // Beside what may wait, the kernel holds some.
            let told = expect_whole_stream(network, "C00001").await;
            assert!(told > (256 << 10) / 67, "{told}");
        });
    }
}

#[test]
fn four_mebibytes_may_wait_for_a_client_and_no_more() {
    const BOUND: u64 = 4 << 20;
    let folder = Folder::new("four");
    on_sim(journaled(&folder, Level::Os, 1), async |network| {
        let mut slow = network.enter("C00001").await;
        let (start, mut number, mut waiting_max) = (now(), 0, 0);
        loop {
            let frames: Vec<u8> =
                (number + 1..=number + 500).flat_map(|number| framed(&enter(number))).collect();
            number += 500;
            if slow.try_write(&frames).await.is_err() {
                break;
            }
            sleep(SLACK).await;
            let stats = network.stats();
            let Some(session) = stats.sessions.first() else { break };
            waiting_max = waiting_max.max(session.queued_bytes);
        }
        network.until(|stats| stats.slow_consumer_disconnects == 1).await;
        assert!((BOUND - (64 << 10)..=BOUND).contains(&waiting_max), "{waiting_max}");
        assert!(now().since(start) < seconds(10), "for what waits, and not for its time");
        expect_whole_stream(network, "C00001").await;
    });
}
