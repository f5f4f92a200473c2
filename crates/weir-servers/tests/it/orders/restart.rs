//! Tests of restarts after a process has ended in the middle of its work: streams and numbers continue where they
//! were.

use weir_engine::{Config, Driver, Runtime, SimOptions, serve::AcceptMode};
use weir_proto::ouch::{Inbound, Outbound};
use weir_servers::{
    exchange,
    journal::Level,
    orders::{LocalOrders, OrdersConfig, recover},
};

use super::{
    client::{accepted, enter, framed},
    replay::{Folder, fill, journaled},
    rig::{on_kernel, on_sim, on_sim_with},
};
use crate::random::seed;

#[test]
fn after_a_crash_streams_and_numbers_go_on_where_they_were() {
    for level in [Level::Os, Level::Disk] {
        let folder = Folder::new(&format!("crash-{level}"));
        let config = journaled(&folder, level, 2);
        let all = std::cell::RefCell::new(Vec::new());
        for life in 0..4_u32 {
            on_sim(config.clone(), async |network| {
                let mut client = network.connect().await;
                let next = all.borrow().len() as u64 + 1;
                assert_eq!(client.log_in("C00001", next).await, Ok(("WEIR000001".into(), next)));
                client.send(&Inbound::AccountQuery).await;
                match client.message().await {
                    Outbound::AccountQueryResponse { next_user_ref_num, .. } => {
                        assert_eq!(next_user_ref_num, life * 100 + 1);
                    }
                    other => panic!("{other:?} instead of an answer"),
                }
                // The answer to the query is a message of the stream like any other.
                all.borrow_mut().push(Vec::new());
                let mut again = network.connect().await;
                assert_eq!(again.log_in("C00001", next).await, Err(b'S'), "occupied");
                // Orders that had been answered are ignored.
                client
                    .write((1..=life * 100).map(|number| framed(&enter(number))).collect::<Vec<_>>().concat())
                    .await;
                let new = fill(&mut client, life * 100 + 1..=life * 100 + 100).await;
                all.borrow_mut().extend(new);
                let mut again = network.connect().await;
                client.reset();
                network.until(|stats| stats.sessions_open == 0).await;
                again.log_in("C00001", 1).await.expect("it is let in");
                let count = all.borrow().len();
                let replayed = again.messages(count).await;
                for (index, (message, known)) in replayed.iter().zip(&*all.borrow()).enumerate() {
                    assert!(known.is_empty() || message == known, "message {} of life {life}", index + 1);
                }
                // No drain: as if the process were killed here.
            });
        }
    }
}

#[test]
fn what_was_acknowledged_survives_a_crash_at_any_moment() {
    let seed = seed();
    for round in 0..40 {
        let folder = Folder::new("any-moment");
        let config = journaled(&folder, Level::Os, 1);
        let engine = |seed: u64| Config {
            sim: SimOptions { seed, ..SimOptions::default() },
            ..Config::with_driver(Driver::Sim)
        };
        let acknowledged = std::cell::RefCell::new(Vec::new());
        on_sim_with(engine(seed + round), config.clone(), async |network| {
            let mut client = network.enter("C00001").await;
            client.write((1..=400).map(|number| framed(&enter(number))).collect::<Vec<_>>().concat()).await;
            // It ends after some of the answers.
            let count = (seed.wrapping_add(round * 7919) % 400) as usize;
            acknowledged.replace(client.messages(count).await);
        });
        on_sim_with(engine(seed + round), config, async |network| {
            let mut client = network.connect().await;
            client.log_in("C00001", 1).await.expect("it is let in");
            let known: Vec<Vec<u8>> = acknowledged.borrow().clone();
            assert!(
                client.messages(known.len()).await == known,
                "round {round}: what was acknowledged is gone"
            );
            let have = network.stats().sessions[0].sequence_last;
            let rest = client.messages(have as usize - known.len()).await;
            // Everything is resent, and only the lost orders are accepted.
            client.write((1..=400).map(|number| framed(&enter(number))).collect::<Vec<_>>().concat()).await;
            let mut numbers: Vec<u32> = Vec::new();
            for raw in known.iter().chain(&rest) {
                numbers.push(accepted(&Outbound::decode(raw).expect("a message").0));
            }
            while numbers.len() < 400 {
                numbers.push(accepted(&client.message().await));
            }
            assert!(numbers.iter().copied().eq(1..=400), "round {round}: {numbers:?}");
        });
    }
}

#[test]
fn the_number_of_workers_may_change_from_one_start_to_the_next() {
    let folder = Folder::new("workers");
    let config = journaled(&folder, Level::Os, 4);
    let all = std::cell::RefCell::new(vec![Vec::new(); 4]);
    // One worker on the simulator, two on threads, and so on.
    for life in 0..4_u32 {
        let script = async |network: &super::rig::Network| {
            for account in 0..4 {
                let name = format!("C0000{}", account + 1);
                let mut client = network.connect().await;
                let next = all.borrow()[account].len() as u64 + 1;
                assert_eq!(client.log_in(&name, next).await.map(|(_, next)| next), Ok(next));
                let new = fill(&mut client, life * 150 + 1..=life * 150 + 150).await;
                all.borrow_mut()[account].extend(new);
                client.reset();
                network.until(|stats| stats.sessions_open == 0).await;
                let mut client = network.connect().await;
                client.log_in(&name, 1).await.expect("it is let in");
                let known = all.borrow()[account].clone();
                assert!(client.messages(known.len()).await == known, "account {account} in life {life}");
                client.reset();
                network.until(|stats| stats.sessions_open == 0).await;
            }
        };
        match life % 2 {
            1 => on_kernel(Driver::Epoll, AcceptMode::ReusePort, config.clone(), script),
            _ => on_sim(config.clone(), script),
        }
    }
}

#[test]
fn a_start_that_ends_the_session_has_the_next_one_and_so_have_those_behind_it() {
    let folder = Folder::new("next-session");
    let config = OrdersConfig { numbers_go_on: true, ..journaled(&folder, Level::Os, 1) };
    on_sim(config.clone(), async |network| {
        let mut client = network.enter("C00001").await;
        fill(&mut client, 1..=10).await;
    });
    let runtime = Runtime::new(&Config::with_driver(Driver::Sim)).expect("it runs everywhere");
    runtime.block_on(async {
        let mut recovery = recover(&config, &mut |_| {}).expect("the journal is whole");
        recovery.end_session();
        let begun = LocalOrders::start_recovered(config.clone(), recovery, exchange::echo_accept);
        begun.await.expect("it starts");
    });
    drop(runtime);
    // The first message of the session is there for the next start.
    for (life, next) in [(0, 1), (1, 2)] {
        on_sim(config.clone(), async |network| {
            let mut client = network.connect().await;
            assert_eq!(client.log_in("C00001", next).await, Ok(("WEIR000002".into(), next)));
            client.write([framed(&enter(10)), framed(&enter(11 + life))].concat()).await;
            client.expect_text(&format!("the next has to be above {}", 10 + life)).await;
            assert_eq!(accepted(&client.message().await), 11 + life, "the tenth was taken in before");
        });
    }
}

#[test]
fn numbers_that_are_used_up_stay_used_up_after_a_crash() {
    let folder = Folder::new("used-up");
    let config = journaled(&folder, Level::Os, 1);
    on_sim(config.clone(), async |network| {
        let mut client = network.enter("C00001").await;
        client.send(&enter(u32::MAX)).await;
        assert_eq!(accepted(&client.message().await), u32::MAX);
    });
    on_sim(config, async |network| {
        let mut client = network.enter("C00001").await;
        // Orders in flight may be resent, and a client that starts again at the bottom is informed.
        client.send(&enter(u32::MAX)).await;
        client.send(&enter(1)).await;
        match client.message().await {
            Outbound::Rejected(rejected) => assert_eq!(rejected.user_ref_num, 1),
            other => panic!("{other:?} instead of a refusal"),
        }
        client.send(&Inbound::AccountQuery).await;
        match client.message().await {
            Outbound::AccountQueryResponse { next_user_ref_num, .. } => assert_eq!(next_user_ref_num, 0),
            other => panic!("{other:?} instead of an answer"),
        }
        assert_eq!(network.stats().duplicates_ignored, 1);
    });
}
