//! Tests of the end of connections: by their clients, by a drain, and by a panicking worker.

use std::{
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use weir_engine::{
    Config, Driver,
    serve::ServerConfig,
    time::{Instant, sleep},
};
use weir_proto::{ouch::Outbound, soup::LOGOUT_FRAME};
use weir_servers::{
    journal::Level,
    orders::{AccountConfig, Application, ClientMessage, OrdersConfig, OrdersServer, SessionStore},
};
use weir_trading::AccountId;

use super::{
    client::{Client, Packet, accepted, enter, framed, login},
    replay::{Folder, fill, journaled},
    rig::{KERNEL_DRIVERS, config, now, on_driver_number, on_every_driver, on_sim, on_sim_serving},
    timing::seconds,
};

#[test]
fn a_logout_ends_the_connection_without_a_word() {
    on_every_driver(&config(1), async |network| {
        let mut client = network.enter("C00001").await;
        client.write([framed(&enter(1)), LOGOUT_FRAME.to_vec(), framed(&enter(2))].concat()).await;
        assert_eq!(accepted(&client.message().await), 1);
        client.expect_end().await;
        network.until(|stats| stats.sessions_open == 0).await;
        assert_eq!(network.stats().orders, 1, "nothing behind the logout counts");
    });
}

#[test]
fn a_client_that_ends_its_direction_has_ended() {
    on_every_driver(&config(1), async |network| {
        let mut client = network.enter("C00001").await;
        client.send(&enter(1)).await;
        assert_eq!(accepted(&client.message().await), 1);
        client.shutdown().await;
        client.expect_end().await;
        network.until(|stats| stats.sessions_open == 0).await;
    });
}

#[test]
fn after_a_drain_the_session_goes_on_with_every_message_as_after_a_crash() {
    for driver in 0..=KERNEL_DRIVERS.len() {
        let folder = Folder::new(&format!("drain-{driver}"));
        let config = journaled(&folder, Level::Os, 2);
        let all = std::cell::RefCell::new(Vec::new());
        on_driver_number(driver, config.clone(), async |network| {
            let mut away = network.enter("C00001").await;
            all.replace(fill(&mut away, 1..=10).await);
            away.reset();
            let mut client = network.enter("C00002").await;
            fill(&mut client, 1..=10).await;
            // It is not informed of an end of the session, because there is none.
            network.drain_beside(client.expect_end()).await;
        });
        if all.borrow().is_empty() {
            // The kernel refuses this driver.
            continue;
        }
        on_driver_number(driver, config, async |network| {
            for name in ["WEIR000001", ""] {
                let mut client = network.connect().await;
                let again = client.log_in_with(&login_to("C00001", name, 1)).await;
                assert_eq!(again, Ok(("WEIR000001".into(), 1)));
                assert_eq!(client.messages(10).await, *all.borrow());
                client.reset();
                network.until(|stats| stats.sessions_open == 0).await;
            }
            let mut client = network.connect().await;
            let on = client.log_in_with(&login_to("C00002", "WEIR000001", 11)).await;
            assert_eq!(on, Ok(("WEIR000001".into(), 11)));
            client.send(&enter(10)).await;
            client.send(&enter(11)).await;
            assert_eq!(accepted(&client.message().await), 11, "the tenth was taken in before");
        });
    }
}

#[test]
fn a_session_that_is_ended_on_purpose_cannot_be_joined_again_and_clients_are_told() {
    for driver in 0..=KERNEL_DRIVERS.len() {
        let folder = Folder::new(&format!("end-{driver}"));
        let config = OrdersConfig { numbers_go_on: true, ..journaled(&folder, Level::Os, 2) };
        on_driver_number(driver, config.clone(), async |network| {
            let mut clients = vec![network.enter("C00001").await, network.enter("C00002").await];
            for client in &mut clients {
                fill(client, 1..=10).await;
            }
            network
                .end_session_beside("WEIR000001", async {
                    for client in &mut clients {
                        assert_eq!(client.packet().await, Packet::EndOfSession);
                        client.expect_end().await;
                    }
                })
                .await;
        });
        // The next start has the next session. Message numbers start again in it, order numbers, as configured here,
        // do not.
        on_driver_number(driver, config, async |network| {
            let mut client = network.connect().await;
            let ended = login_to("C00001", "WEIR000001", 11);
            assert_eq!(client.log_in_with(&ended).await, Err(b'S'));
            let mut client = network.connect().await;
            assert_eq!(client.log_in("C00001", 1).await, Ok(("WEIR000002".into(), 1)));
            client.send(&enter(10)).await;
            client.send(&enter(11)).await;
            client.expect_text("the next has to be above 10").await;
            assert_eq!(accepted(&client.message().await), 11, "the tenth was taken in before");
            // A retransmission within the session is not reported.
            client.send(&enter(11)).await;
            client.send(&enter(12)).await;
            assert_eq!(accepted(&client.message().await), 12);
        });
    }
}

/// An exchange whose first session has ended with ten orders of its account, in simulated time.
fn after_ten_orders(folder: &Folder) -> OrdersConfig {
    let config = OrdersConfig { numbers_go_on: true, ..journaled(folder, Level::Os, 1) };
    on_sim(config.clone(), async |network| {
        let mut client = network.enter("C00001").await;
        fill(&mut client, 1..=10).await;
        network
            .end_session_beside("WEIR000001", async {
                assert_eq!(client.packet().await, Packet::EndOfSession);
                client.expect_end().await;
            })
            .await;
    });
    config
}

#[test]
fn a_client_that_begins_with_the_first_number_again_while_it_is_sent_old_messages_is_told_behind_them() {
    // More than a socket holds, a hundred at a time.
    const BATCHES: u32 = 50;
    let folder = Folder::new("begins-in-replay");
    on_sim(after_ten_orders(&folder), async |network| {
        let mut client = network.enter("C00001").await;
        for batch in 0..BATCHES {
            let first = 11 + 100 * batch;
            fill(&mut client, first..=first + 99).await;
        }
        client.reset();
        network.until(|stats| stats.sessions_open == 0).await;
        let mut client = network.connect().await;
        client.log_in("C00001", 1).await.expect("it is let in");
        client.write([framed(&enter(1)), framed(&enter(2))].concat()).await;
        network.until(|stats| stats.protocol_errors.get("number_used_before") == Some(&2)).await;
        assert_eq!(network.stats().sessions_replaying, 1);
        client.messages(100 * BATCHES as usize).await;
        let why = "order number 1 is not above 10, the last of an earlier session: it is ignored";
        client.expect_text(&format!("{why}, and the next has to be above 5010")).await;
        client.send(&enter(5011)).await;
        assert_eq!(accepted(&client.message().await), 5011, "of two within a second one is told");
    });
}

#[test]
fn a_client_that_begins_with_the_first_number_again_is_told_also_where_nobody_takes_lines() {
    let folder = Folder::new("begins-unheard");
    on_sim(after_ten_orders(&folder), async |network| {
        let mut client = network.enter("C00001").await;
        // More often than the number of lines that may wait.
        for _ in 0..100 {
            client.send(&enter(1)).await;
            client.expect_text("the next has to be above 10").await;
            sleep(seconds(1)).await;
        }
    });
}

#[test]
fn where_numbers_of_orders_do_not_go_on_they_begin_again_with_the_next_session_and_not_before() {
    for driver in 0..=KERNEL_DRIVERS.len() {
        let folder = Folder::new(&format!("begin-again-{driver}"));
        let config = journaled(&folder, Level::Os, 1);
        on_driver_number(driver, config.clone(), async |network| {
            let mut client = network.enter("C00001").await;
            fill(&mut client, 1..=10).await;
            network
                .end_session_beside("WEIR000001", async {
                    assert_eq!(client.packet().await, Packet::EndOfSession);
                    client.expect_end().await;
                })
                .await;
        });
        // The second start of the session finds what the first one has accepted.
        for number in [1_u32, 2] {
            on_driver_number(driver, config.clone(), async |network| {
                let mut client = network.connect().await;
                let next = u64::from(number);
                assert_eq!(client.log_in("C00001", next).await, Ok(("WEIR000002".into(), next)));
                client.write([framed(&enter(1)), framed(&enter(number))].concat()).await;
                assert_eq!(accepted(&client.message().await), number);
            });
        }
    }
}

#[test]
fn without_a_journal_a_drain_is_the_end_of_the_session_and_clients_are_told() {
    on_every_driver(&config(1), async |network| {
        let mut client = network.enter("C00001").await;
        fill(&mut client, 1..=3).await;
        network
            .drain_beside(async {
                assert_eq!(client.packet().await, Packet::EndOfSession);
                client.expect_end().await;
            })
            .await;
    });
}

fn login_to(account: &str, session: &str, sequence: u64) -> weir_proto::soup::LoginRequest {
    weir_proto::soup::LoginRequest {
        session: session.parse().expect("a session"),
        ..login(account, sequence)
    }
}

#[test]
fn orders_of_a_client_that_has_gone_are_cancelled_once_where_that_is_wanted() {
    let mut careful = config(2);
    let accounts = careful
        .accounts
        .iter()
        .zip(0..)
        .map(|(account, index)| AccountConfig { cancel_on_disconnect: index == 0, ..account.clone() });
    careful.accounts = Arc::new(accounts.collect());
    on_every_driver(&careful, async |network| {
        for account in ["C00001", "C00002"] {
            let mut client = network.enter(account).await;
            fill(&mut client, 1..=5).await;
            client.reset();
        }
        // A session leaves before its orders are cancelled.
        network.until(|stats| stats.sessions_open == 0 && stats.cancels_on_disconnect > 0).await;
        assert_eq!(network.stats().cancels_on_disconnect, 5);
        // It is informed when it comes back.
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
        client.reset();
        network.until(|stats| stats.sessions_open == 0).await;
        assert_eq!(network.stats().cancels_on_disconnect, 5, "once");
        let mut other = network.connect().await;
        assert_eq!(other.log_in("C00002", 0).await.map(|(_, next)| next), Ok(6), "nothing was cancelled");
    });
}

struct Panics;

impl Application for Panics {
    fn on_message(&self, _: AccountId, _: &ClientMessage<'_>, _: Instant) {
        panic!("on purpose");
    }
}

#[test]
fn a_worker_that_panics_raises_the_alarm() {
    static ALARMS: AtomicUsize = AtomicUsize::new(0);
    let orders = OrdersConfig { on_panic: Some(|| _ = ALARMS.fetch_add(1, SeqCst)), ..config(1) };
    let listen = "127.0.0.1:0".parse().expect("an address");
    let server_config =
        ServerConfig { workers: 2, ..ServerConfig::new(Config::with_driver(Driver::Poll), listen) };
    let make = |_: Rc<SessionStore>| -> std::io::Result<Rc<dyn Application>> { Ok(Rc::new(Panics)) };
    let server = OrdersServer::start(server_config, orders, make).expect("it runs everywhere");
    now(async {
        let mut client = Client::connect(server.address(), false).await;
        client.log_in("C00001", 1).await.expect("it is let in");
        client.send(&enter(1)).await;
        while ALARMS.load(SeqCst) == 0 {
            std::thread::yield_now();
        }
    });
    assert_eq!(ALARMS.load(SeqCst), 1);
    // Otherwise the other worker would live on, as half a server: the alarm exists to end the process then.
    drop(server);
}

/// Emits more at once than a journal accepts.
struct Floods(Rc<SessionStore>);

impl Application for Floods {
    fn on_message(&self, account: AccountId, _: &ClientMessage<'_>, _: Instant) {
        for _ in 0..70_000 {
            self.0.emit(account, &[&[b'x'; 1000]], 0);
        }
        assert!(self.0.is_failed());
        assert!(!self.0.is_congested(), "a client that waits for room goes on, and sees that it has failed");
    }
}

#[test]
fn a_message_that_the_journal_does_not_take_ends_everybody_and_is_seen_from_outside() {
    let folder = Folder::new("flood");
    let orders = OrdersConfig { journal_segment_bytes: 64 << 20, ..journaled(&folder, Level::Os, 2) };
    let make =
        |store: Rc<SessionStore>| -> std::io::Result<Rc<dyn Application>> { Ok(Rc::new(Floods(store))) };
    on_sim_serving(Config::with_driver(Driver::Sim), orders, make, async |network| {
        let (mut other, mut client) = (network.enter("C00002").await, network.enter("C00001").await);
        assert!(!network.stats().journal.expect("there is one").failed);
        client.send(&enter(1)).await;
        let is_told =
            |packet| matches!(packet, Packet::Debug(text) if text.starts_with(b"the journal has failed"));
        assert!(is_told(other.packet().await));
        other.expect_end().await;
        // Messages that were accepted before may still arrive.
        while let Packet::Sequenced(_) = client.packet().await {}
        network.until(|stats| stats.sessions_open == 0).await;
        assert!(network.stats().journal.expect("there is one").failed);
        assert_eq!(network.connect().await.log_in("C00002", 0).await, Err(b'S'));
    });
}

#[test]
fn the_blocking_driver_is_refused_with_its_reason() {
    let listen = "127.0.0.1:0".parse().expect("an address");
    let server_config = ServerConfig::new(Config::with_driver(Driver::Blocking), listen);
    let make = |_: Rc<SessionStore>| -> std::io::Result<Rc<dyn Application>> { Ok(Rc::new(Panics)) };
    let error = OrdersServer::start(server_config, config(1), make).expect_err("it cannot").to_string();
    assert!(error.contains("blocking") && error.contains("two operations"), "{error}");
}

#[test]
fn two_accounts_of_one_name_and_none_at_all_are_refused() {
    on_sim(config(1), async |_| {
        let twice = config(1).accounts.iter().cycle().take(2).cloned().collect();
        for (accounts, says) in [(twice, "same name"), (Vec::new(), "0 accounts")] {
            let config = OrdersConfig::new(accounts);
            let outcome =
                weir_servers::orders::LocalOrders::start(config, weir_servers::exchange::echo_accept).await;
            let error = outcome.expect_err("it cannot").to_string();
            assert!(error.contains(says), "{error}");
        }
    });
}
