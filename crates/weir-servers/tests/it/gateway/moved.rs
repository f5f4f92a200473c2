//! A symbol that moves to another venue after all its orders were executed: nothing of that is sent to the other
//! venue, and clients keep their messages.

use std::time::Duration;

use weir_engine::{
    Config, Driver, Runtime,
    net::Address,
    time::{now, sleep},
};
use weir_proto::ouch::{Appendage, Enter, Inbound, Outbound, codes::side, inbound_user_ref_num};
use weir_record::orders::NodeStats;
use weir_servers::{
    exchange::{self, Mode},
    gateway::{GatewayConfig, LocalGateway},
    journal::Level,
    orders::{LocalOrders, OrdersConfig},
};

use super::{
    anew::{expect_accepted, expect_nothing_more},
    rig::{
        Folder, Script, Trader, beside_each_other, drivers, end_exchange, end_gateway, exchange_in, gateway,
        loopback, order, strict, symbol,
    },
    world::{exchange_config, open},
};
use crate::orders::client::{Client, accepted, enter};

/// The same with a second venue, which now has the symbol.
fn moved(mut config: GatewayConfig, other: Address) -> GatewayConfig {
    let mut second = config.venues[0].clone();
    second.name = "OTHER".into();
    second.address = other;
    config.venues.push(second);
    config.symbols = vec![(symbol("WEIR"), 1)];
    config
}

/// The other side of an order.
fn sale(order: Inbound<'static>) -> Inbound<'static> {
    let Inbound::Enter(enter, _) = order else { panic!("it is an order") };
    Inbound::Enter(Enter { side: side::SELL, ..enter }, Appendage::EMPTY)
}

/// How many orders a venue has received, and how many of them repeatedly.
fn orders_of(venue: &NodeStats) -> (u64, u64) {
    (venue.orders, venue.duplicates_ignored)
}

fn expect_executed(message: &Outbound) {
    let Outbound::Executed(executed) = message else { panic!("{message:?} instead of an execution") };
    assert_eq!((executed.user_ref_num, executed.quantity), (1, 100));
}

#[test]
fn what_was_executed_is_not_sent_to_the_venue_that_has_its_symbol_after_a_drain() {
    beside_each_other(drivers(), |driver| {
        println!("{driver}");
        let (venue, other) = (exchange_in(Mode::Match, driver, loopback()), Script::new());
        let folder = Folder::new();
        let config = || strict(2, venue.address().clone(), &folder);
        let first = gateway(driver, 1, config());
        let mut traders = ["C00001", "C00002"].map(|client| Trader::login(&first, client, 1));
        traders[0].send(&[order(1, 100)]);
        expect_accepted(&mut traders[0], 1);
        traders[1].send(&[sale(order(1, 100))]);
        expect_accepted(&mut traders[1], 1);
        traders.iter_mut().for_each(|trader| expect_executed(&trader.next()));
        drop(traders);
        end_gateway(first);
        assert_eq!(orders_of(&venue.control().node_stats()), (2, 0));

        let config = moved(config(), other.address());
        let starting = std::thread::spawn(move || gateway(driver, 1, config));
        let mut session = other.accept_session("ELSE", 1, 1);
        let second = starting.join().expect("it starts");
        let mut traders = ["C00001", "C00002"].map(|client| {
            let mut trader = Trader::try_login_to(&second, "WEIRGW0001", client, 1)
                .unwrap_or_else(|reason| panic!("{client} is refused with {}", char::from(reason)));
            expect_accepted(&mut trader, 1);
            expect_executed(&trader.next());
            expect_nothing_more(&mut trader);
            trader
        });
        traders[0].send(&[order(2, 100)]);
        let raw = session.next();
        assert_eq!((raw[0], inbound_user_ref_num(&raw)), (b'O', Some(1)), "nothing came before it");
        session.accept_order(&raw);
        expect_accepted(&mut traders[0], 2);
        traders.iter_mut().for_each(expect_nothing_more);
        drop(traders);
        end_gateway(second);
        assert!(session.is_left(), "nothing came behind it");
        assert_eq!(orders_of(&venue.control().node_stats()), (2, 0), "nor is it sent again where it was");
        end_exchange(venue);
    });
}

/// A gateway, a market, another venue that accepts every order, and an address for clients, on a simulator.
struct Trading {
    gateway: LocalGateway,
    access: Address,
    market: LocalOrders,
    other: LocalOrders,
}

impl Trading {
    /// A client of a continuing session, which requests all of it.
    async fn enter(&self, account: &str) -> Client {
        let mut client = Client::connect(&self.access, true).await;
        client.log_in(account, 1).await.expect("it is let in");
        client
    }
}

/// Serves every connection.
fn serving(venue: &LocalOrders) -> Address {
    let venue = venue.clone();
    open(move |stream| venue.serve(stream))
}

/// Runs a script in virtual time; `shape` makes the gateway's configuration from the addresses of the market and of
/// the other venue. The runtime ends as after a crash.
fn on_sim(
    folder: &Folder,
    shape: impl FnOnce(Address, Address) -> GatewayConfig,
    script: impl AsyncFn(&Trading),
) {
    let config = OrdersConfig {
        journal: Some((folder.0.clone(), Level::Os)),
        journal_segment_bytes: 64 << 10,
        ..exchange_config()
    };
    let recovered = exchange::recover(&config, Mode::Match).expect("the journal is whole");
    let make = exchange::match_alone(&recovered);
    // It holds the lock for writing them.
    drop(recovered);
    let runtime = Runtime::new(&Config::with_driver(Driver::Sim)).expect("it runs everywhere");
    runtime.block_on(async {
        let market = LocalOrders::start(config, make).await.expect("it starts");
        let other = LocalOrders::start(exchange_config(), exchange::echo_accept).await.expect("it starts");
        let config = shape(serving(&market), serving(&other));
        let gateway = LocalGateway::start(config).await.expect("it starts");
        let of_gateway = gateway.clone();
        let access = open(move |stream| of_gateway.serve(stream));
        let begun = now();
        while !gateway.upstreams().iter().all(|upstream| upstream.is_open) {
            assert!(now().since(begun) < Duration::from_secs(60), "{:?}", gateway.upstreams());
            // Virtual time passes only while all tasks wait.
            sleep(Duration::from_millis(1)).await;
        }
        script(&Trading { gateway, access, market, other }).await;
    });
}

#[test]
fn what_was_executed_is_not_sent_to_the_venue_that_has_its_symbol_after_a_crash() {
    let (of_market, of_gateway) = (Folder::new(), Folder::new());
    let config = |market| strict(2, market, &of_gateway);
    on_sim(
        &of_market,
        |market, _| config(market),
        async |trading| {
            let (mut buyer, mut seller) = (trading.enter("C00001").await, trading.enter("C00002").await);
            buyer.send(&enter(1)).await;
            assert_eq!(accepted(&buyer.message().await), 1);
            seller.send(&sale(enter(1))).await;
            assert_eq!(accepted(&seller.message().await), 1);
            expect_executed(&buyer.message().await);
            expect_executed(&seller.message().await);
            assert_eq!(trading.other.node_stats().received, 0, "it is not configured");
            assert_eq!(orders_of(&trading.market.node_stats()), (2, 0));
        },
    );
    on_sim(
        &of_market,
        |market, other| moved(config(market), other),
        async |trading| {
            let mut clients = Vec::new();
            for account in ["C00001", "C00002"] {
                let mut client = trading.enter(account).await;
                assert_eq!(accepted(&client.message().await), 1);
                expect_executed(&client.message().await);
                expect_no_more(&mut client).await;
                clients.push(client);
            }
            // Long enough for everything that is still to be sent.
            sleep(Duration::from_secs(5)).await;
            assert_eq!(trading.other.node_stats().received, 1, "the account query alone");
            assert_eq!(orders_of(&trading.market.node_stats()), (0, 0), "nor is it sent again where it was");
            assert_eq!(trading.gateway.node_stats().upstreams_begun_anew, 0, "the market is the same");
            clients[0].send(&enter(2)).await;
            assert_eq!(accepted(&clients[0].message().await), 2);
            for client in &mut clients {
                expect_no_more(client).await;
            }
            assert_eq!(orders_of(&trading.other.node_stats()), (1, 0));
            assert_eq!(orders_of(&trading.market.node_stats()), (0, 0));
        },
    );
}

/// The next message to a client is the answer to its query.
async fn expect_no_more(client: &mut Client) {
    client.send(&Inbound::AccountQuery).await;
    let next = client.message().await;
    assert!(matches!(next, Outbound::AccountQueryResponse { .. }), "{next:?}");
}
