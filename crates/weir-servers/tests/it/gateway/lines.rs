//! Tests of lines that go dead silently, on either side of a gateway: in virtual time.

use std::{cell::Cell, rc::Rc};

use weir_engine::{
    Config, Driver, Runtime,
    net::Listener,
    spawn,
    time::{now, sleep, sleep_until},
};
use weir_proto::{
    ouch::{Inbound, Outbound, codes::cancel_reason},
    soup::{CLIENT_HEARTBEAT_FRAME, LOGOUT_FRAME, LoginAccepted},
};
use weir_servers::gateway::{GatewayConfig, LocalGateway};

use super::world::{World, exchange_config, on_sim};
use crate::{
    cable::Cable,
    orders::{
        client::{Client, accepted, enter, login},
        timing::{GRID, SLACK, assert_after, seconds},
    },
};

/// The lines that can be cut between a gateway and its exchange.
const CUTS: [fn(&Cable); 2] = [Cable::cut, Cable::cut_back];

#[test]
fn a_dead_line_to_the_exchange_is_found_by_its_silence_and_every_order_is_executed_once() {
    for (cut, name) in CUTS.iter().zip(["both ways", "the way back"]) {
        println!("{name}");
        on_sim(
            exchange_config(),
            |at| GatewayConfig::demo(1, at),
            async |world: &World| {
                let mut client = world.enter("C00001").await;
                client.send(&enter(1)).await;
                assert_eq!(accepted(&client.message().await), 1);
                let start = now();
                cut(&world.line);
                for number in 2..=4 {
                    client.send(&enter(number)).await;
                }
                // Nothing shows that the line is dead: the session seems to be up until the exchange was silent for
                // too long.
                sleep_until(start + seconds(14)).await;
                assert!(world.gateway.upstreams()[0].is_open);
                world.until(|world| !world.gateway.upstreams()[0].is_open).await;
                assert_after(start, seconds(15), seconds(15) + GRID);
                let trouble = world.gateway.upstreams()[0].trouble.clone().expect("it is told");
                assert!(trouble.contains("silent"), "{trouble}");
                for number in 2..=4 {
                    assert_eq!(accepted(&client.message().await), number);
                }
                assert!(now().since(start) < seconds(25), "{:?}", now().since(start));
                // Nothing arrived twice, on either side.
                client.send(&Inbound::AccountQuery).await;
                assert!(matches!(client.message().await, Outbound::AccountQueryResponse { .. }));
                let stats = world.exchange.node_stats();
                assert_eq!((stats.orders, world.gateway.node_stats().backlog), (4, 0));
            },
        );
    }
}

#[test]
fn who_was_on_a_dead_line_has_its_orders_cancelled_within_a_second_of_that_being_found_and_once() {
    let careful = |at| {
        let mut config = GatewayConfig::demo(2, at);
        config.accounts[0].cancel_on_disconnect = true;
        config
    };
    on_sim(exchange_config(), careful, async |world: &World| {
        let mut client = Client::connect(&world.access.address, true).await;
        client.log_in_with(&login("C00001", 1)).await.expect("it is let in");
        let mut other = world.enter("C00002").await;
        for client in [&mut client, &mut other] {
            for number in 1..=5 {
                client.send(&enter(number)).await;
                assert_eq!(accepted(&client.message().await), number);
            }
        }
        // The other one has logged out.
        other.write(LOGOUT_FRAME).await;
        other.expect_end().await;
        let start = now();
        world.access.cut();
        // Reading all of a gateway's counters each millisecond would be slow.
        sleep_until(start + seconds(14)).await;
        assert_eq!(world.gateway.node_stats().heartbeat_timeouts, 0);
        world.until(|world| world.gateway.node_stats().heartbeat_timeouts == 1).await;
        assert_after(start, seconds(15), seconds(15) + GRID);
        let found = now();
        world.until(|world| world.exchange.node_stats().sent >= 16).await;
        assert!(now().since(found) < seconds(1), "{:?}", now().since(found));
        let mut back = world.enter_at("C00001", 6).await;
        let mut cancelled = Vec::new();
        for _ in 0..5 {
            match back.message().await {
                Outbound::Canceled(message) => {
                    assert_eq!(message.reason, cancel_reason::SYSTEM);
                    cancelled.push(message.user_ref_num);
                }
                other => panic!("{other:?} instead of a cancellation"),
            }
        }
        cancelled.sort_unstable();
        assert_eq!(cancelled, [1, 2, 3, 4, 5]);
        back.send(&Inbound::AccountQuery).await;
        assert!(matches!(back.message().await, Outbound::AccountQueryResponse { .. }), "once");
        let mut other = world.enter_at("C00002", 6).await;
        other.send(&Inbound::AccountQuery).await;
        assert!(matches!(other.message().await, Outbound::AccountQueryResponse { .. }), "it kept its orders");
        assert_eq!(world.gateway.node_stats().cancels_on_disconnect, 5);
    });
}

#[test]
fn lines_on_which_nothing_happens_stay() {
    on_sim(
        exchange_config(),
        |at| GatewayConfig::demo(1, at),
        async |world: &World| {
            let mut client = world.enter("C00001").await;
            let start = now();
            for second in 1..=600 {
                client.write(CLIENT_HEARTBEAT_FRAME).await;
                sleep_until(start + seconds(second)).await;
            }
            client.send(&enter(1)).await;
            assert_eq!(accepted(&client.message().await), 1);
            assert!(now().since(start) < seconds(600) + SLACK);
            let logins = |stats: weir_record::orders::NodeStats| stats.logins.get("accepted").copied();
            assert_eq!(logins(world.exchange.node_stats()), Some(1));
            assert_eq!(logins(world.gateway.node_stats()), Some(1));
        },
    );
}

#[test]
fn an_exchange_that_does_not_answer_the_account_query_is_named_and_tried_again() {
    Runtime::new(&Config::with_driver(Driver::Sim)).expect("it runs everywhere").block_on(async {
        let any = "127.0.0.1:0".parse().expect("an address");
        let listener = Listener::bind(&any, Default::default()).expect("a simulated port");
        let address = listener.local_address().expect("it has one");
        let logins = Rc::new(Cell::new(0));
        let counted = Rc::clone(&logins);
        spawn(async move {
            let mut kept = Vec::new();
            while let Ok(stream) = listener.accept().await {
                drop(stream.recv().await.expect("a login"));
                let mut frame = Vec::new();
                LoginAccepted { session: "DAY".parse().expect("a name"), next_sequence: 1 }
                    .encode(&mut frame);
                stream.send_slice(&frame).await.expect("the gateway listens");
                counted.set(counted.get() + 1);
                kept.push(stream);
            }
        });
        let begun = now();
        let gateway = LocalGateway::start(GatewayConfig::demo(1, address)).await.expect("it starts");
        let trouble = loop {
            assert!(now().since(begun) < seconds(60), "nothing is told");
            sleep(GRID).await;
            if let Some(trouble) = gateway.upstreams()[0].trouble.clone() {
                break trouble;
            }
        };
        assert!(trouble.contains("venue DEMO") && trouble.contains("account query"), "{trouble}");
        assert_after(begun, seconds(5), seconds(7));
        while logins.get() < 2 {
            assert!(now().since(begun) < seconds(60), "it is not tried again");
            sleep(GRID).await;
        }
    });
}
