//! Old messages, sent again: from memory and from the journal, from every place, and to clients that break off.

use std::path::Path;

use weir_engine::time::{now, sleep};
use weir_servers::{journal::Level, orders::OrdersConfig};
use weir_stats::random::Random;

use super::{
    client::{Client, Packet, enter, framed},
    rig::{Network, config, on_every_driver, on_sim},
    timing::{SLACK, seconds},
};
use crate::random::{between, seed};

/// A folder of this test alone, empty at first and gone afterwards.
pub struct Folder(std::path::PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("weir-orders-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Journaled in small files, with very little kept in memory.
pub fn journaled(folder: &Folder, level: Level, accounts: u32) -> OrdersConfig {
    OrdersConfig {
        journal: Some((folder.path().to_owned(), level)),
        journal_segment_bytes: 64 << 10,
        retained_bytes_max: 2 << 10,
        ..config(accounts)
    }
}

/// Has so many orders answered, and returns the answers.
pub async fn fill(client: &mut Client, numbers: std::ops::RangeInclusive<u32>) -> Vec<Vec<u8>> {
    let count = numbers.clone().count();
    client.write(numbers.map(|number| framed(&enter(number))).collect::<Vec<_>>().concat()).await;
    client.messages(count).await
}

/// Ends a connection and waits until the account is free.
async fn leave(network: &Network, client: Client) {
    client.reset();
    network.until(|stats| stats.sessions_open == 0).await;
}

async fn replayed_from_everywhere(network: &Network, account: &str, all: &[Vec<u8>], step: usize) {
    for sequence in (1..=all.len() + 1).step_by(step) {
        let mut client = network.connect().await;
        let (_, next) = client.log_in(account, sequence as u64).await.expect("it is let in");
        assert_eq!(next, sequence as u64);
        assert_eq!(client.messages(all.len() + 1 - sequence).await, all[sequence - 1..], "from {sequence}");
        leave(network, client).await;
    }
    let mut client = network.connect().await;
    assert_eq!(client.log_in(account, all.len() as u64 + 2).await, Err(b'S'), "beyond the end");
    // Only what is to come.
    let mut client = network.connect().await;
    assert_eq!(client.log_in(account, 0).await.map(|(_, next)| next), Ok(all.len() as u64 + 1));
    leave(network, client).await;
}

#[test]
fn every_part_of_a_stream_can_be_had_again_from_memory() {
    on_every_driver(&config(2), async |network| {
        let mut client = network.enter("C00002").await;
        let all = fill(&mut client, 1..=300).await;
        leave(network, client).await;
        replayed_from_everywhere(network, "C00002", &all, 7).await;
    });
}

#[test]
fn every_part_of_a_stream_can_be_had_again_from_the_journal() {
    for level in [Level::Os, Level::Disk] {
        for driver in 0..5 {
            let folder = Folder::new(&format!("replay-{level}-{driver}"));
            let config = journaled(&folder, level, 3);
            let script = async |network: &Network| {
                let mut other = network.enter("C00003").await;
                let mut client = network.enter("C00001").await;
                let mut all = Vec::new();
                // Two accounts in one journal.
                for round in 0..6 {
                    all.extend(fill(&mut client, round * 100 + 1..=round * 100 + 100).await);
                    fill(&mut other, round * 90 + 1..=round * 90 + 90).await;
                }
                other.reset();
                leave(network, client).await;
                replayed_from_everywhere(network, "C00001", &all, 41).await;
            };
            super::rig::on_driver_number(driver, config, script);
        }
    }
}

#[test]
fn without_a_journal_what_is_not_kept_is_gone_and_that_is_said() {
    let narrow = OrdersConfig { retained_bytes_max: 2 << 10, ..config(1) };
    on_every_driver(&narrow, async |network| {
        let mut client = network.enter("C00001").await;
        let all = fill(&mut client, 1..=2000).await;
        leave(network, client).await;
        let mut client = network.connect().await;
        assert_eq!(client.log_in("C00001", 1).await, Err(b'S'));
        network.until(|stats| stats.logins.get("sequence_gone") == Some(&1)).await;
        let mut client = network.connect().await;
        client.log_in("C00001", 1990).await.expect("the last ones are kept");
        assert_eq!(client.messages(11).await, all[1989..]);
    });
}

#[test]
fn a_client_that_breaks_off_anywhere_and_goes_on_has_every_message_once() {
    let random = std::cell::RefCell::new(Random::seeded(seed()));
    let folder = Folder::new("resume");
    let config = journaled(&folder, Level::Os, 1);
    on_sim(config, async |network| {
        let mut client = network.enter("C00001").await;
        let all = fill(&mut client, 1..=3000).await;
        leave(network, client).await;
        for _ in 0..20 {
            let mut have: Vec<Vec<u8>> = Vec::new();
            while have.len() < all.len() {
                let mut client = network.connect().await;
                client.log_in("C00001", have.len() as u64 + 1).await.expect("it is let in");
                // Some messages, and the connection ends in the middle of one.
                let reads = between(&mut random.borrow_mut(), 0, 12);
                for _ in 0..reads {
                    if client.read(64 << 10).await.expect("it goes on") == 0 {
                        break;
                    }
                    while let Some(packet) = client.held() {
                        match packet {
                            Packet::Sequenced(message) => have.push(message),
                            Packet::Heartbeat => {}
                            other => panic!("{other:?} in the stream"),
                        }
                    }
                    if have.len() == all.len() {
                        break;
                    }
                }
                leave(network, client).await;
            }
            assert!(have == all, "the streams differ");
        }
    });
}

#[test]
fn clients_that_replay_again_and_again_do_not_keep_others_from_being_answered() {
    let folder = Folder::new("loop");
    on_sim(journaled(&folder, Level::Os, 4), async |network| {
        for account in ["C00001", "C00002"] {
            let mut client = network.enter(account).await;
            fill(&mut client, 1..=5000).await;
            leave(network, client).await;
        }
        let mut other = network.enter("C00003").await;
        let mut number = 0;
        for _ in 0..10 {
            let mut greedy = Vec::new();
            for account in ["C00001", "C00002"] {
                let mut client = network.connect().await;
                client.log_in(account, 1).await.expect("it is let in");
                greedy.push(client);
            }
            number += 1;
            let asked = weir_engine::time::now();
            other.send(&enter(number)).await;
            other.message().await;
            let took = weir_engine::time::now().since(asked);
            assert!(took < std::time::Duration::from_millis(100), "{took:?}");
            for mut client in greedy {
                client.messages(5000).await;
                client.reset();
            }
            network.until(|stats| stats.sessions_open == 1).await;
        }
    });
}

#[test]
fn who_asks_for_everything_again_and_again_gets_it_at_a_rate_and_others_are_answered() {
    const ORDERS: usize = 2000;
    const ROUNDS: usize = 5;
    // An acceptance in its frame.
    const STREAM_BYTES: u64 = 67 * ORDERS as u64;
    const RATE: u64 = 100_000;
    let folder = Folder::new("rate");
    let limited = OrdersConfig {
        replay_bytes_per_second: RATE,
        replay_burst_bytes: STREAM_BYTES,
        ..journaled(&folder, Level::Os, 3)
    };
    on_sim(limited, async |network| {
        for account in ["C00001", "C00002"] {
            let mut client = network.enter(account).await;
            let orders = ORDERS as u32;
            for first in (1..=orders).step_by(500) {
                fill(&mut client, first..=first + 499).await;
            }
            leave(network, client).await;
        }
        let mut other = network.enter("C00003").await;
        let (start, mut number) = (now(), 0);
        let mut greedy = Vec::new();
        for account in ["C00001", "C00002"] {
            let (address, is_simulated) = (network.address.clone(), network.is_simulated());
            greedy.push(weir_engine::spawn(async move {
                for _ in 0..ROUNDS {
                    let mut client = loop {
                        // Until the seat is free.
                        let mut client = Client::connect(&address, is_simulated).await;
                        if client.log_in(account, 1).await.is_ok() {
                            break client;
                        }
                    };
                    assert_eq!(client.messages(ORDERS).await.len(), ORDERS);
                    client.reset();
                }
                now()
            }));
        }
        while greedy.iter().any(|client| !client.is_finished()) {
            number += 1;
            let asked = now();
            other.send(&enter(number)).await;
            other.message().await;
            assert!(now().since(asked) < SLACK, "{:?}", now().since(asked));
            sleep(seconds(1) / 10).await;
        }
        // All but the burst takes its time, and each account has its own. Not counted are what is in memory anyway, and
        // the last read, behind which nobody waits.
        let rationed = (ROUNDS as u64 - 1) * STREAM_BYTES;
        let uncounted = ROUNDS as u64 * (12 << 10) + (32 << 10);
        for client in greedy {
            let took = client.await.since(start);
            let least = seconds(1).mul_f64((rationed - uncounted) as f64 / RATE as f64);
            let most = seconds(1).mul_f64(rationed as f64 / RATE as f64) + seconds(1);
            assert!((least..=most).contains(&took), "{took:?} instead of {least:?} to {most:?}");
        }
    });
}
