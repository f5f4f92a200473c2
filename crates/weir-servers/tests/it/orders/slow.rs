//! Tests of clients that do not take what they are sent: cut off at a limit, on every driver, without loss of
//! messages.

use std::time::Duration;

use weir_engine::{
    Config, Driver, SimOptions,
    serve::AcceptMode,
    time::{now, sleep, sleep_until},
};
use weir_proto::{
    ouch::Outbound,
    soup::{CLIENT_HEARTBEAT_FRAME, LOGOUT_FRAME},
};
use weir_servers::{journal::Level, orders::OrdersConfig};

use super::{
    client::{Client, accepted, enter, framed},
    replay::{Folder, fill, journaled},
    rig::{KERNEL_DRIVERS, Network, on_kernel, on_sim, on_sim_with},
    timing::{SLACK, assert_after, seconds},
};

/// The stream of an account, from its first message on, contains the acceptances of its first orders.
async fn expect_whole_stream(network: &Network, account: &str) -> u64 {
    /// Messages between two heartbeats: on a busy machine reading the whole stream takes longer than a client may be
    /// silent.
    const PIECE: usize = 1_000;
    let mut client = network.connect().await;
    let (_, next) = client.log_in(account, 0).await.expect("it is let in");
    client.write(LOGOUT_FRAME).await;
    client.expect_end().await;
    let mut client = loop {
        // Until the account is free.
        let mut client = network.connect().await;
        if client.log_in(account, 1).await.is_ok() {
            break client;
        }
    };
    let count = next - 1;
    for first in (1..=count as u32).step_by(PIECE) {
        let piece = PIECE.min(count as usize + 1 - first as usize);
        for (number, message) in (first..).zip(client.messages(piece).await) {
            assert_eq!(accepted(&Outbound::decode(&message).expect("a message").0), number);
        }
        client.write(CLIENT_HEARTBEAT_FRAME).await;
    }
    count
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
                // No other client is delayed.
                other.send(&enter(number)).await;
                assert_eq!(accepted(&other.message().await), number);
            }
            network.until(|stats| stats.slow_consumer_disconnects == 1 && stats.sessions_open == 1).await;
            // Besides the bytes that may wait, the kernel holds some.
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

/// Takes this many bytes a second for some time, and is not cut off.
async fn read_slowly(network: &Network, client: &mut Client, bytes_per_second: u64, time: Duration) {
    let (start, mut received) = (now(), 0);
    while now().since(start) < time {
        received += client.read(64 << 10).await.expect("it goes on") as u64;
        let due = start + seconds(1).mul_f64(received as f64 / bytes_per_second as f64);
        while now() < due {
            client.write(CLIENT_HEARTBEAT_FRAME).await;
            sleep_until(due.min(now() + seconds(1))).await;
        }
    }
    assert_eq!(network.stats().slow_consumer_disconnects, 0);
}

/// Takes some bytes once more and then none, and is cut off.
async fn take_nothing(network: &Network, client: &mut Client, stall: Duration) {
    client.read(64 << 10).await.expect("something waits");
    let start = now();
    while network.stats().slow_consumer_disconnects == 0 {
        // The connection may have ended meanwhile.
        let _ = client.try_write(&CLIENT_HEARTBEAT_FRAME).await;
        sleep(Duration::from_millis(100)).await;
    }
    // Progress is checked once a second.
    assert_after(start, stall, stall + seconds(1) + seconds(1) / 10);
}

#[test]
fn who_takes_little_is_not_cut_off_until_it_takes_nothing() {
    const MESSAGES: u32 = 5000;
    // At these rates a piece takes longer than the limit for taking nothing.
    for (is_replay, bytes_per_second, stall) in [(false, 2000, seconds(10)), (true, 500, seconds(30))] {
        let folder = Folder::new(&format!("little-{is_replay}"));
        let sim = SimOptions { socket_buffer_bytes: 4 << 10, ..SimOptions::default() };
        let engine = Config { sim, ..Config::with_driver(Driver::Sim) };
        on_sim_with(engine, journaled(&folder, Level::Os, 1), async |network| {
            let mut client = network.enter("C00001").await;
            if is_replay {
                for first in (1..=MESSAGES).step_by(500) {
                    fill(&mut client, first..=first + 499).await;
                }
                client.reset();
                network.until(|stats| stats.sessions_open == 0).await;
                client = network.connect().await;
                client.log_in("C00001", 1).await.expect("it is let in");
            } else {
                client
                    .write((1..=MESSAGES).flat_map(|number| framed(&enter(number))).collect::<Vec<_>>())
                    .await;
            }
            read_slowly(network, &mut client, bytes_per_second, 12 * stall).await;
            take_nothing(network, &mut client, stall).await;
        });
    }
}
