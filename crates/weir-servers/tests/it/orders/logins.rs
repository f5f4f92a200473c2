//! Tests of accepted and refused logins, and of moves to the home worker.

use std::sync::Arc;

use weir_engine::{
    serve::AcceptMode,
    time::{now, sleep_until},
};
use weir_proto::soup::{LOGOUT_FRAME, LoginRequest};
use weir_servers::orders::{AccountConfig, OrdersConfig};

use super::{
    client::{Client, Packet, accepted, encoded, enter, framed, login},
    rig::{KERNEL_DRIVERS, Network, config, on_every_driver, on_kernel, on_one_worker, on_sim},
    timing::{SLACK, seconds},
};

#[test]
fn only_the_right_password_the_right_session_and_a_sequence_that_can_be_are_let_in() {
    on_every_driver(&config(2), async |network| {
        let right = login("C00001", 1);
        let refused = [
            (LoginRequest { password: "WRONG".parse().expect("a password"), ..right }, b'A'),
            (LoginRequest { password: "".parse().expect("blank"), ..right }, b'A'),
            (LoginRequest { username: "NOBODY".parse().expect("a name"), ..right }, b'A'),
            (LoginRequest { session: "OTHER".parse().expect("a session"), ..right }, b'S'),
            (LoginRequest { sequence: 2, ..right }, b'S'),
            (LoginRequest { sequence: u64::MAX, ..right }, b'S'),
        ];
        for (login, reason) in refused {
            let mut client = network.connect().await;
            assert_eq!(client.log_in_with(&login).await, Err(reason), "{login:?}");
            // It is the only packet.
            client.expect_end().await;
        }
        let mut client = network.connect().await;
        assert_eq!(client.log_in_with(&right).await, Ok(("WEIR000001".into(), 1)));
        let logins = network.stats().logins;
        assert_eq!(logins.get("not_authorised"), Some(&3), "{logins:?}");
        assert_eq!(logins.get("other_session"), Some(&1), "{logins:?}");
        assert_eq!(logins.get("sequence_too_high"), Some(&2), "{logins:?}");
    });
}

#[test]
fn names_are_told_apart_by_nothing_but_their_letters() {
    on_every_driver(&config(1), async |network| {
        let plain = encoded(&login("C00001", 1));
        // Left-justified where the protocol requires right-justified, and NULs for spaces.
        let mut odd = plain.clone();
        odd[3..19].copy_from_slice(b"c00001demo\0\0\0\0\0\0");
        odd[19..29].copy_from_slice(b"weir000001");
        odd[29..49].copy_from_slice(b"1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
        let mut later = odd.clone();
        later[1] = 52;
        later.extend_from_slice(b"15000");
        for bytes in [plain, odd, later] {
            let mut client = network.connect().await;
            client.write(&bytes).await;
            let packet = client.packet().await;
            assert_eq!(packet, Packet::Accepted { session: "WEIR000001".into(), next: 1 });
            client.write(LOGOUT_FRAME).await;
            client.expect_end().await;
            network.until(|stats| stats.sessions_open == 0).await;
        }
    });
}

#[test]
fn a_second_connection_of_an_account_is_refused_and_the_first_one_goes_on() {
    on_every_driver(&config(2), async |network| {
        let mut first = network.enter("C00002").await;
        let mut second = network.connect().await;
        assert_eq!(second.log_in("C00002", 1).await, Err(b'S'));
        second.expect_end().await;
        first.send(&enter(1)).await;
        assert_eq!(accepted(&first.message().await), 1);
        // Another account is not affected.
        network.enter("C00001").await;
    });
}

#[test]
fn with_takeover_the_second_connection_ends_the_first_one_and_misses_nothing() {
    let mut takeover = config(2);
    let accounts =
        takeover.accounts.iter().map(|account| AccountConfig { takeover: true, ..account.clone() });
    takeover.accounts = Arc::new(accounts.collect());
    on_every_driver(&takeover, async |network| {
        let mut current = network.enter("C00002").await;
        for round in 1..=5 {
            current.send(&enter(round)).await;
            assert_eq!(accepted(&current.message().await), round);
            let mut next = network.connect().await;
            let let_in = next.log_in("C00002", 1).await.expect("it takes over");
            assert_eq!(let_in.1, 1);
            current.expect_end().await;
            for number in 1..=round {
                assert_eq!(accepted(&next.message().await), number);
            }
            current = next;
        }
        assert_eq!(network.stats().sessions_open, 1);
    });
}

#[test]
fn a_connection_moves_to_the_home_of_its_account_with_everything_it_has_sent() {
    for accept in [AcceptMode::ReusePort, AcceptMode::Acceptor, AcceptMode::Exclusive] {
        for driver in KERNEL_DRIVERS {
            on_kernel(driver, accept, config(8), async |network| {
                let mut clients = Vec::new();
                for account in 1..=8 {
                    let mut client = network.connect().await;
                    // Everything at once: most of these arrive on a worker that is not their home.
                    let orders = (1..=50).map(|number| framed(&enter(number))).collect::<Vec<_>>().concat();
                    let account = format!("C0000{account}");
                    client.write([encoded(&login(&account, 1)), orders].concat()).await;
                    clients.push(client);
                }
                for client in &mut clients {
                    assert!(matches!(client.packet().await, Packet::Accepted { next: 1, .. }));
                    for number in 1..=50 {
                        assert_eq!(accepted(&client.message().await), number);
                    }
                }
                let stats = network.stats();
                for session in &stats.sessions {
                    let account: u32 = session.account[1..].parse().expect("a number");
                    assert_eq!(session.worker, (account - 1) % 2);
                    assert_eq!((session.sequence_sent, session.user_ref_num), (50, 50));
                    assert_eq!(session.state, "live");
                }
                assert_eq!((stats.sessions.len(), stats.sessions_open), (8, 8));
            });
        }
    }
}

#[test]
fn connections_that_do_not_log_in_are_limited_by_address_and_in_total() {
    let narrow = OrdersConfig { unauthenticated_max: 30, unauthenticated_per_address_max: 20, ..config(2) };
    on_one_worker(&narrow, async |network| {
        let mut session = network.enter("C00001").await;
        let mut idle: Vec<Client> = Vec::new();
        for _ in 0..20 {
            idle.push(network.connect().await);
        }
        // Then there is no more room.
        for _ in 0..3 {
            network.connect().await.expect_end().await;
        }
        assert_eq!(network.stats().logins.get("too_many_from_address"), Some(&3));
        // A logged-in client does not notice.
        session.send(&enter(1)).await;
        assert_eq!(accepted(&session.message().await), 1);
        idle.pop().expect("one of them").log_in("C00002", 1).await.expect("it was there before");
    });
}

#[test]
fn in_total_the_limit_holds_without_addresses_too() {
    let narrow = OrdersConfig { unauthenticated_max: 5, ..config(2) };
    let script = async |network: &Network| {
        let mut idle = Vec::new();
        for _ in 0..5 {
            idle.push(network.connect().await);
        }
        let mut client = network.connect().await;
        client.expect_end().await;
        network.until(|stats| stats.logins.get("too_many_unauthenticated") == Some(&1)).await;
        idle[0].log_in("C00001", 1).await.expect("it was there before");
        network.enter("C00002").await;
    };
    on_one_worker(&narrow, script);
    on_sim(narrow, script);
}

#[test]
fn ten_thousand_connections_that_do_not_log_in_are_kept_to_their_limit_and_disturb_nobody() {
    const IDLE: u64 = 10_000;
    let config = config(2);
    let limit = config.unauthenticated_max as u64;
    assert!(limit < IDLE);
    on_sim(config, async |network| {
        let mut session = network.enter("C00001").await;
        let mut number = 0;
        let mut idle: Vec<Client> = Vec::new();
        let start = now();
        for count in 1..=IDLE {
            idle.push(network.connect().await);
            if count.is_multiple_of(500) {
                number += 1;
                let asked = now();
                session.send(&enter(number)).await;
                assert_eq!(accepted(&session.message().await), number);
                assert!(now().since(asked) < SLACK, "{:?} beside {count} others", now().since(asked));
            }
        }
        network.until(|stats| stats.logins.get("too_many_unauthenticated") == Some(&(IDLE - limit))).await;
        assert!(now().since(start) < seconds(5), "nobody's time was over yet");
        // There is room again when their time is up.
        sleep_until(start + seconds(7)).await;
        assert_eq!(network.stats().logins.get("no_login"), Some(&limit));
        network.enter("C00002").await;
    });
}
