//! Runs one script against one server on a driver: over sockets on a separate thread, or in the same runtime on the
//! simulator.

use std::{future::Future, pin::pin, task::Context, task::Poll, task::Waker, time::Duration};

use weir_engine::{
    Config, Driver, Runtime, StartError,
    net::{Address, Listener},
    serve::{Server, ServerConfig, ServerControl},
};
use weir_record::engine::EngineStats;
use weir_servers::http::{Clock, HttpConfig, HttpLogs, HttpServer, LargeContent};

use crate::{
    client::Client,
    seeds::{Accepted, simulations},
};

/// 1994-11-06 08:49:37: the date of a simulated server's replies when the engine's clock is zero.
pub const SIM_ZERO_SECONDS: u64 = 784_111_777;

/// The script's access to its server.
pub struct Network {
    pub driver: Driver,
    pub address: Address,
    pub http: HttpServer,
    control: Option<ServerControl>,
    accepted: Accepted,
}

impl Network {
    pub fn is_simulated(&self) -> bool {
        self.driver == Driver::Sim
    }

    pub async fn connect(&self) -> Client {
        self.connect_with(None).await
    }

    /// A client whose socket holds few received bytes (kernel drivers only).
    pub async fn connect_narrow(&self) -> Client {
        self.connect_with(Some(64 << 10)).await
    }

    async fn connect_with(&self, receive_bytes: Option<usize>) -> Client {
        match self.is_simulated() {
            true => Client::simulated(self.accepted.connect(&self.address).await),
            false => Client::connect(&self.address, receive_bytes),
        }
    }

    /// The engine's counters; `None` on the simulator, where they are those of both sides.
    pub fn stats(&self) -> Option<EngineStats> {
        self.control.as_ref().map(|control| control.stats().total)
    }

    /// Starts a drain; kernel drivers only.
    pub fn drain(&self) {
        self.control.as_ref().expect("its own server").drain();
    }

    /// Waits until a condition holds, by checking repeatedly.
    pub async fn until(&self, holds: impl Fn(&Self) -> bool) {
        while !holds(self) {
            if self.is_simulated() {
                // Virtual time passes only while all tasks wait.
                weir_engine::time::sleep(Duration::from_millis(1)).await;
            } else {
                std::thread::yield_now();
            }
        }
    }
}

/// The result of a script.
pub struct Served<T> {
    pub value: T,
    pub http: HttpServer,
    pub connections_cut: usize,
}

/// How long a drain may take before connections are cut.
const DRAIN_LIMIT: Duration = Duration::from_secs(60);

/// Runs the script on every available driver, including the simulator.
pub fn on_every_driver<T>(config: HttpConfig, script: impl AsyncFn(&Network) -> T) -> Vec<(Driver, T)> {
    Driver::ALL
        .into_iter()
        .filter_map(|driver| {
            let served = on_driver(driver, config.clone(), HttpLogs::default(), &script)?;
            assert_eq!(served.connections_cut, 0, "{driver}: connections were cut");
            Some((driver, served.value))
        })
        .collect()
}

/// Runs the script on every driver, and on many simulations with faults: for results that timing must not change.
pub fn on_every_driver_and_seed<T>(
    config: HttpConfig,
    script: impl AsyncFn(&Network) -> T,
) -> Vec<(Driver, T)> {
    let mut values = on_every_driver(config.clone(), &script);
    values.extend(simulations().map(|engine| {
        let served = on_sim(engine, config.clone(), HttpLogs::default(), &script);
        assert_eq!(served.connections_cut, 0, "connections were cut");
        (Driver::Sim, served.value)
    }));
    values
}

/// Runs the script on one driver; `None` if the kernel refuses it.
pub fn on_driver<T>(
    driver: Driver,
    config: HttpConfig,
    logs: HttpLogs,
    script: impl AsyncFn(&Network) -> T,
) -> Option<Served<T>> {
    if let Err(StartError::Refused { refusal, .. }) = Runtime::new(&Config::for_test(driver)) {
        println!("skipped: {driver}: {refusal}");
        let required = std::env::var("WEIR_REQUIRE_DRIVERS").unwrap_or_default();
        assert!(!required.split(',').any(|name| name.trim() == driver.name()), "{driver} is required");
        return None;
    }
    println!("{driver}");
    Some(match driver {
        Driver::Sim => on_sim(Config::for_test(driver), config, logs, script),
        _ => on_kernel(Config::for_test(driver), config, logs, script),
    })
}

fn on_kernel<T>(
    engine: Config,
    config: HttpConfig,
    logs: HttpLogs,
    script: impl AsyncFn(&Network) -> T,
) -> Served<T> {
    let listen = "127.0.0.1:0".parse().expect("an address");
    let http = HttpServer::start(config, logs).expect("it starts");
    let handler = http.clone();
    let server_config = ServerConfig { drain_limit: DRAIN_LIMIT, ..ServerConfig::new(engine, listen) };
    let server =
        Server::start(server_config, move |stream| handler.serve(stream)).expect("the driver runs here");
    let network = Network {
        driver: server.driver(),
        address: server.address().clone(),
        http: http.clone(),
        control: Some(server.control()),
        accepted: Accepted::default(),
    };
    let value = now(script(&network));
    server.drain();
    let connections_cut = server.join().connections_cut;
    http.finish();
    Served { value, http, connections_cut }
}

/// On the simulator, with other options.
pub fn on_sim<T>(
    engine: Config,
    config: HttpConfig,
    logs: HttpLogs,
    script: impl AsyncFn(&Network) -> T,
) -> Served<T> {
    let clock = Clock::Engine { zero_seconds: SIM_ZERO_SECONDS };
    // Kernel files are not part of the simulation.
    let config = HttpConfig { clock, large_content: LargeContent::Memory, ..config };
    let http = HttpServer::start(config, logs).expect("it starts");
    let runtime = Runtime::new(&engine).expect("it runs everywhere");
    let value = runtime.block_on(async {
        let listen = "127.0.0.1:0".parse().expect("an address");
        let listener = Listener::bind(&listen, Default::default()).expect("a simulated port");
        let address = listener.local_address().expect("it has one");
        let (handler, accepted) = (http.clone(), Accepted::new(&engine));
        let arrivals = accepted.clone();
        let acceptor = weir_engine::spawn(async move {
            while let Ok(stream) = listener.accept().await {
                arrivals.note();
                weir_engine::spawn(handler.serve(stream));
            }
        });
        let network = Network { driver: Driver::Sim, address, http: http.clone(), control: None, accepted };
        let value = script(&network).await;
        acceptor.abort();
        value
    });
    let connections_cut = runtime.drain(DRAIN_LIMIT);
    http.finish();
    Served { value, http, connections_cut }
}

/// The result of a future that never waits: sockets of scripts are blocking.
fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a script over sockets waits"),
    }
}
