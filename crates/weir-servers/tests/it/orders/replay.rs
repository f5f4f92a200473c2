//! Tests of resent messages: from memory and from the journal, from every position, and to clients that disconnect.

use std::path::Path;

use weir_engine::time::{now, sleep};
use weir_servers::{journal::Level, orders::OrdersConfig};
use weir_stats::random::Random;

use super::{
    client::{Client, Packet, encoded, enter, framed, login},
    rig::{Network, config, on_every_driver, on_every_driver_and_seed, on_sim},
    timing::{SLACK, seconds},
};
use crate::random::{between, seed};

/// A test's own folder, empty at first and removed at its end.
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

/// Gets this many orders answered, and returns the answers.
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
    // Only future messages.
    let mut client = network.connect().await;
    assert_eq!(client.log_in(account, 0).await.map(|(_, next)| next), Ok(all.len() as u64 + 1));
    leave(network, client).await;
}

#[test]
fn every_part_of_a_stream_can_be_had_again_from_memory() {
    on_every_driver_and_seed(&config(2), async |network| {
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

/// Gets this many orders answered, 500 at a time, and returns how many bytes that added to the journal.
async fn fill_journal(network: &Network, client: &mut Client, orders: u32) -> u64 {
    let written = || network.stats().journal.expect("it has one").bytes;
    let before = written();
    for first in (1..=orders).step_by(500) {
        fill(client, first..=orders.min(first + 499)).await;
    }
    written() - before
}

#[test]
fn who_asks_for_everything_again_and_again_gets_it_at_a_rate_and_others_are_answered() {
    const ORDERS: u32 = 2000;
    const ROUNDS: u64 = 5;
    const RATE: u64 = 400_000;
    const BURST: u64 = 400_000;
    let folder = Folder::new("rate");
    let limited = OrdersConfig {
        replay_bytes_per_second: RATE,
        replay_burst_bytes: BURST,
        ..journaled(&folder, Level::Os, 3)
    };
    on_sim(limited, async |network| {
        let mut journal_bytes = Vec::new();
        for account in ["C00001", "C00002"] {
            let mut client = network.enter(account).await;
            journal_bytes.push(fill_journal(network, &mut client, ORDERS).await);
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
                        // Until the account is free.
                        let mut client = Client::connect(&address, is_simulated).await;
                        if client.log_in(account, 1).await.is_ok() {
                            break client;
                        }
                    };
                    assert_eq!(client.messages(ORDERS as usize).await.len(), ORDERS as usize);
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
        // All but the burst is rate-limited, and each account has its own limit. Messages in memory do not count, nor
        // does the last read, which nothing waits for.
        for (client, bytes) in greedy.into_iter().zip(journal_bytes) {
            let rationed = ROUNDS * bytes - BURST;
            let uncounted = ROUNDS * (48 << 10) + (32 << 10);
            let took = client.await.since(start);
            let least = seconds(1).mul_f64((rationed - uncounted) as f64 / RATE as f64);
            let most = seconds(1).mul_f64(rationed as f64 / RATE as f64) + seconds(1);
            assert!((least..=most).contains(&took), "{took:?} instead of {least:?} to {most:?}");
        }
    });
}

/// This many orders have more answers than are ever kept in memory.
const FORGOTTEN: u32 = 150;

/// As [`fill`], up to this many orders. Only the last answer is still in memory then.
async fn fill_forgotten(client: &mut Client, from: u32) -> Vec<Vec<u8>> {
    let mut all = fill(client, from..=FORGOTTEN - 1).await;
    // A sent message is dropped when another follows.
    all.extend(fill(client, FORGOTTEN..=FORGOTTEN).await);
    all
}

/// Keeps few sent messages in memory.
fn kept_in_the_journal(folder: &Folder, accounts: u32) -> OrdersConfig {
    OrdersConfig { retained_bytes_max: 0, ..journaled(folder, Level::Os, accounts) }
}

#[test]
fn what_is_read_to_find_a_message_is_rationed_and_not_what_is_found() {
    const RATE: u64 = 100_000;
    const CHUNK: u64 = 32 << 10;
    let folder = Folder::new("far");
    let limited = OrdersConfig {
        replay_bytes_per_second: RATE,
        replay_burst_bytes: CHUNK,
        ..kept_in_the_journal(&folder, 2)
    };
    on_sim(limited, async |network| {
        let (mut client, mut other) = (network.enter("C00001").await, network.enter("C00002").await);
        let mut all = fill(&mut client, 1..=1).await;
        let between = fill_journal(network, &mut other, 5000).await;
        all.extend(fill_forgotten(&mut client, 2).await);
        client.reset();
        other.reset();
        network.until(|stats| stats.sessions_open == 0).await;
        let (mut client, start) = (network.connect().await, now());
        client.log_in("C00001", 1).await.expect("it is let in");
        assert_eq!(client.messages(1).await, all[..1]);
        assert!(now().since(start) < seconds(1), "the first one is where the index says");
        assert_eq!(client.messages(FORGOTTEN as usize - 1).await, all[1..]);
        // The burst and the last read, which nothing waits for, do not count.
        let took = now().since(start);
        let least = seconds(1).mul_f64((between - 2 * CHUNK) as f64 / RATE as f64);
        let most = seconds(1).mul_f64(between as f64 / RATE as f64) + seconds(1);
        assert!(least > seconds(3), "{between} bytes lie between");
        assert!((least..=most).contains(&took), "{took:?} instead of {least:?} to {most:?}");
    });
}

#[test]
fn long_searches_keep_nobody_from_a_short_one() {
    // Twice the maximum of concurrent reads.
    const SEARCHES: u32 = 16;
    let folder = Folder::new("searches");
    on_sim(kept_in_the_journal(&folder, SEARCHES + 2), async |network| {
        let name = |account: u32| format!("C{account:05}");
        let (short, noise) = (SEARCHES + 1, SEARCHES + 2);
        let mut clients = Vec::new();
        for account in 1..=SEARCHES {
            let mut client = network.enter(&name(account)).await;
            fill(&mut client, 1..=1).await;
            clients.push(client);
        }
        let mut other = network.enter(&name(noise)).await;
        fill_journal(network, &mut other, 20_000).await;
        let mut client = network.enter(&name(short)).await;
        fill_forgotten(&mut client, 1).await;
        client.reset();
        other.reset();
        for mut client in clients {
            fill_forgotten(&mut client, 2).await;
            client.reset();
        }
        network.until(|stats| stats.sessions_open == 0).await;
        let mut clients = Vec::new();
        for _ in 1..=short {
            clients.push(network.connect().await);
        }
        for (account, client) in (1..).zip(&mut clients) {
            client.write(encoded(&login(&name(account), 1))).await;
        }
        let mut client = clients.pop().expect("the short one");
        assert!(matches!(client.packet().await, Packet::Accepted { next: 1, .. }), "it is let in");
        assert_eq!(client.messages(FORGOTTEN as usize).await.len(), FORGOTTEN as usize);
        let stats = network.stats();
        let searching = stats.sessions.iter().filter(|session| session.state == "replaying").count();
        assert_eq!(searching, SEARCHES as usize, "all of them are still searching");
        for mut client in clients {
            assert!(matches!(client.packet().await, Packet::Accepted { next: 1, .. }), "it is let in");
            assert_eq!(client.messages(FORGOTTEN as usize).await.len(), FORGOTTEN as usize);
        }
    });
}
