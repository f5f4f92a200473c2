//! Clients, a gateway and an exchange on one simulator, connected by lines that can go dead.

use std::time::Duration;

use weir_engine::{
    Config, Driver, Runtime,
    net::{Address, Listener, Stream},
    spawn,
    time::{now, sleep},
};
use weir_proto::soup::LoginRequest;
use weir_servers::{
    exchange,
    gateway::{GatewayConfig, LocalGateway},
    orders::{LocalOrders, OrdersConfig, accounts_named},
};

use crate::{
    cable::Cable,
    orders::client::{Client, login},
};

/// All parties.
pub struct World {
    pub exchange: LocalOrders,
    pub gateway: LocalGateway,
    /// Between the clients and the gateway.
    pub access: Cable,
    /// Between the gateway and the exchange.
    pub line: Cable,
}

/// An exchange for gateways.
pub fn exchange_config() -> OrdersConfig {
    OrdersConfig::new(accounts_named('G', 1))
}

/// Runs a script with both of them, in virtual time; `shape` makes the gateway's configuration from the address of its
/// exchange. The runtime ends as after a crash.
pub fn on_sim(
    exchange: OrdersConfig,
    shape: impl FnOnce(Address) -> GatewayConfig,
    script: impl AsyncFn(&World),
) {
    let runtime = Runtime::new(&Config::with_driver(Driver::Sim)).expect("it runs everywhere");
    runtime.block_on(async {
        let exchange = LocalOrders::start(exchange, exchange::echo_accept).await.expect("it starts");
        let of_exchange = exchange.clone();
        let line = Cable::lay(open(move |stream| of_exchange.serve(stream)));
        let gateway = LocalGateway::start(shape(line.address.clone())).await.expect("it starts");
        let of_gateway = gateway.clone();
        let access = Cable::lay(open(move |stream| of_gateway.serve(stream)));
        let world = World { exchange, gateway, access, line };
        world.until(|world| world.gateway.upstreams()[0].is_open).await;
        script(&world).await;
    });
}

/// Listens, and serves every connection.
pub fn open<F: Future<Output = ()> + 'static>(serve: impl Fn(Stream) -> F + 'static) -> Address {
    let any = "127.0.0.1:0".parse().expect("an address");
    let listener = Listener::bind(&any, Default::default()).expect("a simulated port");
    let address = listener.local_address().expect("it has one");
    spawn(async move {
        while let Ok(stream) = listener.accept().await {
            spawn(serve(stream));
        }
    });
    address
}

impl World {
    /// A logged-in client that requests only future messages, and may be silent for a minute.
    pub async fn enter(&self, account: &str) -> Client {
        self.enter_at(account, 0).await
    }

    /// The same, with the messages from this one on.
    pub async fn enter_at(&self, account: &str, sequence: u64) -> Client {
        let mut client = Client::connect(&self.access.address, true).await;
        let patient = LoginRequest { heartbeat_timeout_ms: Some(60_000), ..login(account, sequence) };
        client.log_in_with(&patient).await.expect("it is let in");
        client
    }

    /// Waits until a condition holds, by checking repeatedly, for at most a virtual minute.
    pub async fn until(&self, holds: impl Fn(&World) -> bool) {
        let begun = now();
        while !holds(self) {
            assert!(now().since(begun) < Duration::from_secs(60), "it does not happen");
            // Virtual time passes only while all tasks wait.
            sleep(Duration::from_millis(1)).await;
        }
    }
}
