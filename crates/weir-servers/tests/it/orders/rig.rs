//! Runs one script against an exchange on a driver: over sockets, on separate threads, or in the same runtime on the
//! simulator.

use std::{future::Future, pin::pin, rc::Rc, task::Context, task::Poll, task::Waker, time::Duration};

use weir_engine::{
    Config, Driver, Runtime, StartError,
    net::{Address, Listener},
    serve::{AcceptMode, ServerConfig},
    time,
};
use weir_record::{engine::EngineStats, orders::NodeStats};
use weir_servers::{
    exchange::{self, Mode},
    orders::{Application, LocalOrders, OrdersConfig, OrdersControl, SessionStore, demo_accounts},
};

use super::client::Client;
use crate::seeds::{Accepted, simulations};

/// The drivers that an exchange runs on.
pub const KERNEL_DRIVERS: [Driver; 4] = [Driver::Uring, Driver::Epoll, Driver::Poll, Driver::Select];

/// How long a drain may take before connections are cut.
const DRAIN_LIMIT: Duration = Duration::from_secs(60);

enum Server {
    Threads(OrdersControl),
    Local(LocalOrders),
}

/// The script's access to its server.
pub struct Network {
    pub driver: Driver,
    pub address: Address,
    server: Server,
    accepted: Accepted,
}

impl Network {
    pub fn is_simulated(&self) -> bool {
        self.driver == Driver::Sim
    }

    pub async fn connect(&self) -> Client {
        match self.is_simulated() {
            true => Client::simulated(self.accepted.connect(&self.address).await),
            false => Client::connect(&self.address, false).await,
        }
    }

    /// A logged-in client that requests only future messages.
    pub async fn enter(&self, account: &str) -> Client {
        let mut client = self.connect().await;
        client.log_in(account, 0).await.expect("it is let in");
        client
    }

    pub fn stats(&self) -> NodeStats {
        match &self.server {
            Server::Threads(control) => control.node_stats(),
            Server::Local(local) => local.node_stats(),
        }
    }

    /// The engine's counters of a server with separate threads.
    pub fn engine(&self) -> EngineStats {
        match &self.server {
            Server::Threads(control) => control.server().stats().total,
            Server::Local(_) => panic!("the simulator counts both sides"),
        }
    }

    /// Drains while the script continues.
    pub async fn drain_beside(&self, script: impl Future<Output = ()>) {
        match &self.server {
            Server::Threads(control) => {
                control.drain();
                script.await;
            }
            Server::Local(local) => {
                let local = local.clone();
                let drained = weir_engine::spawn(async move { local.drain().await });
                script.await;
                drained.await;
            }
        }
    }

    /// Ends the session while the script continues.
    pub async fn end_session_beside(&self, name: &str, script: impl Future<Output = ()>) {
        match &self.server {
            Server::Threads(control) => {
                assert_eq!(control.session().as_str(), name);
                control.end_session(name).expect("it is the one there is");
                script.await;
            }
            Server::Local(local) => {
                let local = local.clone();
                let ended = weir_engine::spawn(async move { local.end_session().await });
                script.await;
                ended.await;
            }
        }
    }

    /// Waits until the counters meet a condition, by checking repeatedly, for at most a minute.
    pub async fn until(&self, holds: impl Fn(&NodeStats) -> bool) {
        // The simulator has another clock.
        let clock = if self.is_simulated() { time::now } else { time::monotonic };
        let begun = clock();
        while !holds(&self.stats()) {
            assert!(clock().since(begun) < Duration::from_secs(60), "it does not happen: {:?}", self.stats());
            if self.is_simulated() {
                // Virtual time passes only while all tasks wait.
                time::sleep(Duration::from_millis(1)).await;
            } else {
                std::thread::yield_now();
            }
        }
    }
}

/// A configuration with this many demonstration accounts, and no journal.
pub fn config(accounts: u32) -> OrdersConfig {
    OrdersConfig::new(demo_accounts(accounts))
}

/// Runs the script on every available driver, with two workers, and on the simulator.
pub fn on_every_driver(config: &OrdersConfig, script: impl AsyncFn(&Network)) {
    for driver in KERNEL_DRIVERS {
        on_kernel(driver, AcceptMode::ReusePort, config.clone(), &script);
    }
    on_sim(config.clone(), &script);
}

/// Runs the script on every driver, and on many simulations with faults: for results that timing must not change.
pub fn on_every_driver_and_seed(config: &OrdersConfig, script: impl AsyncFn(&Network)) {
    on_every_driver(config, &script);
    simulations().for_each(|engine| on_sim_with(engine, config.clone(), &script));
}

/// Runs the script on every available kernel driver, with two workers.
pub fn on_kernel_drivers(config: &OrdersConfig, script: impl AsyncFn(&Network)) {
    for driver in KERNEL_DRIVERS {
        on_kernel(driver, AcceptMode::ReusePort, config.clone(), &script);
    }
}

/// Runs on the driver with this number; the simulator is the last one.
pub fn on_driver_number(number: usize, config: OrdersConfig, script: impl AsyncFn(&Network)) {
    match KERNEL_DRIVERS.get(number) {
        Some(driver) => on_kernel(*driver, AcceptMode::ReusePort, config, script),
        None => on_sim(config, script),
    }
}

/// Runs the script on every available kernel driver, with one worker, so that connections are seen in the order in
/// which they are made.
pub fn on_one_worker(config: &OrdersConfig, script: impl AsyncFn(&Network)) {
    for driver in KERNEL_DRIVERS {
        on_workers(1, driver, AcceptMode::ReusePort, config.clone(), &script);
    }
}

/// Two workers on one driver; does nothing if the kernel refuses it.
pub fn on_kernel(driver: Driver, accept: AcceptMode, config: OrdersConfig, script: impl AsyncFn(&Network)) {
    on_workers(2, driver, accept, config, script);
}

/// A market on two workers, on every available kernel driver.
pub fn on_markets(config: &OrdersConfig, script: impl AsyncFn(&Network)) {
    for driver in KERNEL_DRIVERS {
        on_market(driver, config.clone(), &script);
    }
}

/// A market on two workers, on one driver; does nothing if the kernel refuses it.
pub fn on_market(driver: Driver, config: OrdersConfig, script: impl AsyncFn(&Network)) {
    on_mode(Mode::Match, 2, driver, AcceptMode::ReusePort, config, script);
}

fn on_workers(
    workers: usize,
    driver: Driver,
    accept: AcceptMode,
    config: OrdersConfig,
    script: impl AsyncFn(&Network),
) {
    on_mode(Mode::EchoAccept, workers, driver, accept, config, script);
}

fn on_mode(
    mode: Mode,
    workers: usize,
    driver: Driver,
    accept: AcceptMode,
    config: OrdersConfig,
    script: impl AsyncFn(&Network),
) {
    if let Err(StartError::Refused { refusal, .. }) = Runtime::new(&Config::with_driver(driver)) {
        println!("skipped: {driver}: {refusal}");
        let required = std::env::var("WEIR_REQUIRE_DRIVERS").unwrap_or_default();
        assert!(!required.split(',').any(|name| name.trim() == driver.name()), "{driver} is required");
        return;
    }
    println!("{driver}");
    let listen = "127.0.0.1:0".parse().expect("an address");
    let server_config = ServerConfig {
        workers,
        accept,
        drain_limit: DRAIN_LIMIT,
        ..ServerConfig::new(Config::with_driver(driver), listen)
    };
    let server = exchange::start(server_config, config, mode).expect("the driver runs here");
    let network = Network {
        driver,
        address: server.address().clone(),
        server: Server::Threads(server.control()),
        accepted: Accepted::default(),
    };
    now(script(&network));
    server.drain();
    let connections_cut = server.join().connections_cut;
    assert_eq!(connections_cut, 0, "{driver}: connections were cut");
}

/// On the simulator, in virtual time.
pub fn on_sim(config: OrdersConfig, script: impl AsyncFn(&Network)) {
    on_sim_with(Config::with_driver(Driver::Sim), config, script);
}

/// A market on the simulator, in virtual time. The runtime ends as after a crash, unless the script drains.
pub fn on_sim_market(config: OrdersConfig, script: impl AsyncFn(&Network)) {
    let recovered = exchange::recover(&config, Mode::Match).expect("the journal is whole");
    let make = exchange::match_alone(&recovered);
    // It holds the lock for writing them.
    drop(recovered);
    on_sim_serving(Config::with_driver(Driver::Sim), config, make, script);
}

/// On the simulator, with other options. The runtime ends as after a crash, unless the script drains.
pub fn on_sim_with(engine: Config, config: OrdersConfig, script: impl AsyncFn(&Network)) {
    on_sim_serving(engine, config, exchange::echo_accept, script);
}

/// The test's own application, on the simulator.
pub fn on_sim_serving(
    engine: Config,
    config: OrdersConfig,
    make: impl Fn(Rc<SessionStore>) -> std::io::Result<Rc<dyn Application>>,
    script: impl AsyncFn(&Network),
) {
    println!("sim");
    let runtime = Runtime::new(&engine).expect("it runs everywhere");
    runtime.block_on(async {
        let listen = "127.0.0.1:0".parse().expect("an address");
        let listener = Listener::bind(&listen, Default::default()).expect("a simulated port");
        let address = listener.local_address().expect("it has one");
        let local = LocalOrders::start(config, make).await.expect("it starts");
        let (server, accepted) = (local.clone(), Accepted::new(&engine));
        let arrivals = accepted.clone();
        let acceptor = weir_engine::spawn(async move {
            while let Ok(stream) = listener.accept().await {
                arrivals.note();
                weir_engine::spawn(server.serve(stream));
            }
        });
        let network = Network { driver: Driver::Sim, address, server: Server::Local(local), accepted };
        script(&network).await;
        acceptor.abort();
    });
}

/// The result of a future that never waits: sockets of scripts are blocking.
pub fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a script over sockets waits"),
    }
}
