//! Tests of timeouts, in virtual time: every limit is exact.

use std::{
    rc::Rc,
    sync::atomic::{AtomicI64, Ordering::Relaxed},
    time::Duration,
};

use weir_engine::{
    Config, Driver, SimOptions,
    time::{Instant, now, sleep, sleep_until},
};
use weir_proto::{
    ouch::Outbound,
    soup::{CLIENT_HEARTBEAT_FRAME, LoginRequest},
};
use weir_servers::{
    journal::Level,
    orders::{Application, ClientMessage, OrdersConfig, SessionStore, Waiting},
};
use weir_trading::AccountId;

use super::{
    client::{Client, Packet, encoded, enter, framed, login},
    replay::{Folder, fill, journaled},
    rig::{Network, config, on_sim, on_sim_serving, on_sim_with},
};

/// Deliveries take microseconds; limits are seconds.
pub const SLACK: Duration = Duration::from_millis(2);

/// How much later than due the timer of a connection may fire.
pub const GRID: Duration = Duration::from_millis(500);

pub fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

#[track_caller]
pub fn assert_after(start: Instant, least: Duration, most: Duration) {
    let took = now().since(start);
    assert!((least - SLACK..=most + SLACK).contains(&took), "{took:?} instead of {least:?} to {most:?}");
}

#[test]
fn who_does_not_log_in_is_closed_after_five_seconds_however_it_drips() {
    on_sim(config(1), async |network| {
        let (mut silent, start) = (network.connect().await, now());
        silent.expect_end().await;
        assert_after(start, seconds(5), seconds(5));
        let (mut slow, start) = (network.connect().await, now());
        for (second, byte) in encoded(&login("C00001", 1)).iter().take(5).enumerate() {
            slow.write([*byte]).await;
            sleep_until(start + seconds(second as u64 + 1) - SLACK).await;
        }
        slow.expect_end().await;
        assert_after(start, seconds(5), seconds(5));
        assert_eq!(network.stats().logins.get("no_login"), Some(&2));
    });
}

#[test]
fn every_refusal_of_a_password_takes_the_same_time() {
    on_sim(config(1), async |network| {
        let wrong = LoginRequest { password: "WRONG".parse().expect("a password"), ..login("C00001", 1) };
        let nobody = LoginRequest { username: "NOBODY".parse().expect("a name"), ..login("C00001", 1) };
        for refused in [wrong, nobody] {
            let mut client = network.connect().await;
            let start = now();
            assert_eq!(client.log_in_with(&refused).await, Err(b'A'));
            assert_after(start, Duration::from_millis(250), Duration::from_millis(250));
        }
    });
}

#[test]
fn an_idle_server_sends_a_heartbeat_within_a_second_and_a_half_and_a_busy_one_none() {
    on_sim(config(1), async |network| {
        let mut client = network.enter("C00001").await;
        let mut last = now();
        for _ in 0..10 {
            client.write(CLIENT_HEARTBEAT_FRAME).await;
            assert_eq!(client.next().await, Packet::Heartbeat);
            assert_after(last, seconds(1), seconds(1) + GRID);
            last = now();
        }
        for number in 1..=50 {
            client.send(&enter(number)).await;
            assert!(matches!(client.next().await, Packet::Sequenced(_)), "a heartbeat between messages");
            sleep(Duration::from_millis(900)).await;
        }
    });
}

#[test]
fn a_silent_client_is_given_up_after_fifteen_seconds_or_after_what_it_asked_for() {
    on_sim(config(1), async |network| {
        for (asked_ms, expected) in [
            (None, seconds(15)),
            (Some(3000), seconds(3)),
            (Some(0), seconds(1)),
            (Some(99_999), seconds(60)),
        ] {
            let mut client = network.connect().await;
            let request = LoginRequest { heartbeat_timeout_ms: asked_ms, ..login("C00001", 1) };
            client.log_in_with(&request).await.expect("it is let in");
            let start = now();
            client.expect_end().await;
            assert_after(start, expected, expected + GRID);
            network.until(|stats| stats.sessions_open == 0).await;
        }
        assert_eq!(network.stats().heartbeat_timeouts, 4);
        // A heartbeat is enough.
        let mut client = network.enter("C00001").await;
        for _ in 0..30 {
            sleep(seconds(10)).await;
            client.write(CLIENT_HEARTBEAT_FRAME).await;
        }
        assert_eq!(network.stats().sessions_open, 1);
    });
}

/// Sends orders on one account until the expected number of messages waits for another connection of it; the client
/// does not read.
async fn keep_answering(network: &Network, client: &mut Client, from: u32, bytes: usize) {
    let orders = bytes / 67 + 1;
    for chunk in (from..from + orders as u32).collect::<Vec<_>>().chunks(500) {
        let frames: Vec<u8> = chunk.iter().flat_map(|number| framed(&enter(*number))).collect();
        if client.try_write(&frames).await.is_err() {
            return;
        }
        sleep(Duration::from_millis(1)).await;
    }
    let _ = network;
}

#[test]
fn a_client_that_takes_nothing_is_cut_off_when_too_much_waits_and_misses_nothing() {
    let narrow = OrdersConfig { outbound_bytes_max: 512 << 10, ..config(2) };
    on_sim(narrow, async |network| {
        let mut slow = network.enter("C00001").await;
        let start = now();
        keep_answering(network, &mut slow, 1, 1 << 20).await;
        network.until(|stats| stats.slow_consumer_disconnects == 1).await;
        assert!(now().since(start) < seconds(10), "for what waits, and not for its time");
        // No other client is delayed.
        let mut other = network.enter("C00002").await;
        let asked = now();
        other.send(&enter(1)).await;
        other.message().await;
        assert!(now().since(asked) < SLACK);
    });
}

#[test]
fn a_client_that_takes_nothing_is_cut_off_after_ten_seconds_with_little_waiting_too() {
    let folder = Folder::new("stall");
    on_sim(journaled(&folder, Level::Os, 1), async |network| {
        let mut slow = network.enter("C00001").await;
        // More than a simulated socket holds in both directions, and less than the limit.
        keep_answering(network, &mut slow, 1, 300 << 10).await;
        let start = now();
        network.until(|stats| stats.slow_consumer_disconnects == 1).await;
        assert_after(start, seconds(8), seconds(12));
        // A client that requests everything again has a longer limit.
        let mut slow = network.connect().await;
        slow.log_in("C00001", 1).await.expect("it is let in");
        let start = now();
        while now().since(start) < seconds(28) {
            slow.write(CLIENT_HEARTBEAT_FRAME).await;
            sleep_until(now() + seconds(1)).await;
            assert_eq!(network.stats().slow_consumer_disconnects, 1);
        }
        network.until(|stats| stats.slow_consumer_disconnects == 2).await;
        assert!(now().since(start) < seconds(32));
        let answered = {
            let mut client = network.connect().await;
            let next = client.log_in("C00001", 0).await.expect("it is let in").1;
            client.reset();
            network.until(|stats| stats.sessions_open == 0).await;
            next - 1
        };
        assert!(answered > 3000, "{answered}");
        let mut client = network.connect().await;
        client.log_in("C00001", 1).await.expect("it is let in");
        for (number, message) in (1..).zip(client.messages(answered as usize).await) {
            match Outbound::decode(&message).expect("a message").0 {
                Outbound::Accepted(accepted) => assert_eq!(accepted.user_ref_num, number),
                other => panic!("{other:?} in the stream"),
            }
        }
    });
}

#[test]
fn a_client_that_replays_slowly_is_waited_for_and_others_do_not_notice() {
    const MESSAGES: u32 = 20_000;
    let folder = Folder::new("slowly");
    let config = OrdersConfig { outbound_bytes_max: 256 << 10, ..journaled(&folder, Level::Os, 2) };
    // A small socket, so that the time of the simulated network is the client's.
    let sim = SimOptions { socket_buffer_bytes: 8 << 10, ..SimOptions::default() };
    on_sim_with(Config { sim, ..Config::with_driver(Driver::Sim) }, config, async |network| {
        let mut client = network.enter("C00001").await;
        for first in (1..=MESSAGES).step_by(500) {
            fill(&mut client, first..=first + 499).await;
        }
        client.reset();
        let mut other = network.enter("C00002").await;
        network.until(|stats| stats.sessions_open == 1).await;
        let mut slow = network.connect().await;
        slow.log_in("C00001", 1).await.expect("it is let in");
        let (start, mut number, mut received) = (now(), 0, 0);
        while now().since(start) < seconds(30) {
            // 10 kB a second.
            let bytes = slow.read(64 << 10).await.expect("it goes on");
            received += bytes;
            sleep_until(start + Duration::from_micros(received as u64 * 100)).await;
            slow.write(CLIENT_HEARTBEAT_FRAME).await;
            number += 1;
            let asked = now();
            other.send(&enter(number)).await;
            other.message().await;
            assert!(now().since(asked) < SLACK);
            let waiting = network.stats().sessions[0].queued_bytes;
            assert!(waiting <= 256 << 10, "{waiting}");
        }
        assert_eq!(network.stats().slow_consumer_disconnects, 0);
        // And then as fast as possible.
        for (number, message) in (1..=MESSAGES).zip(slow.messages(MESSAGES as usize).await) {
            assert_eq!(Outbound::decode(&message).expect("a message").0.user_ref_num(), Some(number));
        }
    });
}

#[test]
fn a_step_of_the_wall_clock_changes_time_stamps_is_told_first_and_changes_no_waiting() {
    const HOUR_NS: i64 = 3600 * 1_000_000_000;
    // Between noon and one, so that no day ends.
    const NOON_NS: i64 = 12 * HOUR_NS;
    static STEP_NS: AtomicI64 = AtomicI64::new(0);
    let wall = |now: Instant| now.as_nanos().wrapping_add_signed(NOON_NS + STEP_NS.load(Relaxed));
    for hours in [1, -1] {
        STEP_NS.store(0, Relaxed);
        let stepped = OrdersConfig { wall_clock: Some(wall), ..config(2) };
        on_sim(stepped, async |network| {
            let mut client = network.enter("C00001").await;
            let mut silent = network.enter("C00002").await;
            let silent_since = now();
            let (mut jumps, mut last_ns, mut is_told) = (0, None, false);
            let start = now();
            for number in 1..=20 {
                if number == 10 {
                    STEP_NS.store(hours * HOUR_NS, Relaxed);
                }
                client.write(CLIENT_HEARTBEAT_FRAME).await;
                sleep(seconds(1)).await;
                client.send(&enter(number)).await;
                let stamp_ns = loop {
                    match client.next().await {
                        Packet::Sequenced(message) => match Outbound::decode(&message).expect("one").0 {
                            Outbound::Accepted(accepted) => break accepted.timestamp_ns as i64,
                            other => panic!("{other:?} instead of an acceptance"),
                        },
                        Packet::Heartbeat => {}
                        Packet::Debug(text) => {
                            assert!(text.starts_with(b"the clock was stepped"), "{text:?}");
                            assert!(!is_told, "once");
                            is_told = true;
                        }
                        other => panic!("{other:?} after a step of the clock"),
                    }
                };
                // Seconds are seconds, except for the step.
                let moved_ns = stamp_ns - last_ns.replace(stamp_ns).unwrap_or(stamp_ns - 1_000_000_000);
                let is_jump = moved_ns.unsigned_abs() > HOUR_NS.unsigned_abs() / 2;
                jumps += i32::from(is_jump);
                let expected_ns = 1_000_000_000 + if is_jump { hours * HOUR_NS } else { 0 };
                assert!((moved_ns - expected_ns).abs() < 5_000_000, "{moved_ns} ns");
                assert_eq!(jumps > 0, is_told, "who gets a time of the new clock was told before");
            }
            assert_eq!(jumps, 1);
            assert!(now().since(start) < seconds(21));
            assert_eq!(network.stats().protocol_errors.get("clock_step"), Some(&1));
            // The step does not lengthen or shorten any client's timeout.
            while !matches!(silent.next().await, Packet::End | Packet::Reset) {}
            let took = network.stats().heartbeat_timeouts;
            assert_eq!((took, network.stats().sessions_open), (1, 1));
            assert!(now().since(silent_since) >= seconds(15));
        });
    }
}

#[test]
fn without_descriptors_accepting_waits_and_sessions_live_on() {
    let sim = SimOptions { descriptors_max: 12, ..SimOptions::default() };
    on_sim_with(Config { sim, ..Config::with_driver(Driver::Sim) }, config(3), async |network| {
        let mut client = network.enter("C00001").await;
        // Both ends count here.
        let mut idle = vec![network.connect().await, network.connect().await, network.connect().await];
        for number in 1..=10 {
            client.send(&enter(number)).await;
            client.message().await;
        }
        idle.clear();
        sleep(seconds(1)).await;
        network.enter("C00002").await;
    });
}

#[test]
fn clients_that_read_their_replay_slowly_keep_nobody_else_from_theirs() {
    const MESSAGES: u32 = 2000;
    // One more than the maximum of concurrent reads from the journal.
    const CLIENTS: u32 = 9;
    let folder = Folder::new("ninth");
    let sim = SimOptions { socket_buffer_bytes: 8 << 10, ..SimOptions::default() };
    let engine = Config { sim, ..Config::with_driver(Driver::Sim) };
    on_sim_with(engine, journaled(&folder, Level::Os, CLIENTS), async |network| {
        let mut clients = Vec::new();
        for account in 1..=CLIENTS {
            let mut client = network.enter(&format!("C0000{account}")).await;
            for first in (1..=MESSAGES).step_by(500) {
                fill(&mut client, first..=first + 499).await;
            }
            client.reset();
        }
        network.until(|stats| stats.sessions_open == 0).await;
        for account in 1..=CLIENTS {
            let mut client = network.connect().await;
            client.log_in(&format!("C0000{account}"), 1).await.expect("it is let in");
            clients.push(client);
        }
        // The others take nothing at present.
        let start = now();
        let mut last = clients.pop().expect("the ninth");
        last.messages(MESSAGES as usize).await;
        assert!(now().since(start) < seconds(1), "{:?}", now().since(start));
        for client in &mut clients {
            assert_eq!(client.messages(MESSAGES as usize).await.len(), MESSAGES as usize);
        }
        assert_eq!(network.stats().slow_consumer_disconnects, 0);
    });
}

/// Accepts no messages until some time has passed, and then answers.
struct HoldsBack {
    store: Rc<SessionStore>,
    until: Instant,
}

impl Application for HoldsBack {
    fn on_message(&self, account: AccountId, _: &ClientMessage<'_>, _: Instant) {
        self.store.emit(account, &[b"taken"], 0);
    }

    fn is_ready(&self, _: AccountId) -> bool {
        now() >= self.until
    }

    fn ready(&self, _: AccountId) -> Waiting {
        Box::pin(sleep_until(self.until))
    }
}

#[test]
fn a_client_that_is_held_back_is_not_taken_for_a_silent_one() {
    let make = |store: Rc<SessionStore>| -> std::io::Result<Rc<dyn Application>> {
        Ok(Rc::new(HoldsBack { store, until: now() + seconds(40) }))
    };
    on_sim_serving(Config::with_driver(Driver::Sim), config(1), make, async |network| {
        let mut client = network.enter("C00001").await;
        let start = now();
        client.send(&enter(1)).await;
        for _ in 0..39 {
            client.write(CLIENT_HEARTBEAT_FRAME).await;
            sleep(seconds(1)).await;
        }
        assert_eq!(client.raw_message().await, b"taken");
        assert_after(start, seconds(40), seconds(40));
        assert_eq!(network.stats().heartbeat_timeouts, 0);
        // From now on silence counts again.
        let start = now();
        client.expect_end().await;
        assert_after(start, seconds(15), seconds(15) + GRID);
        assert_eq!(network.stats().heartbeat_timeouts, 1);
    });
}
