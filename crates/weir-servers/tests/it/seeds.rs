//! The simulator's seeds: a script that may run there once runs on many of them, with faults, on both kinds of
//! readiness. So the server's state machines and the engine's are tested together: partial messages, transient
//! errors, spurious wakes. Connections are never reset: a script could not distinguish that from a server error.

use std::{cell::Cell, rc::Rc, time::Duration};

use weir_engine::{
    Config, Driver, SimOptions,
    net::{Address, Stream},
    time::timeout,
};

/// Seeds of a test if `WEIR_SEEDS` is not set.
const SEEDS: u64 = 200;

/// A run for each of `WEIR_SEEDS` seeds, or for the one in `WEIR_SIM_SEED`, which a failed test has printed last.
pub fn simulations() -> impl Iterator<Item = Config> {
    let number = |name| std::env::var(name).ok().map(|text| text.parse().expect("a whole number"));
    let seeds = match number("WEIR_SIM_SEED") {
        Some(seed) => seed..=seed,
        None => 1..=number("WEIR_SEEDS").unwrap_or(SEEDS),
    };
    seeds.map(|seed| {
        println!("WEIR_SIM_SEED={seed}");
        let sim = SimOptions {
            seed,
            short_per_mille: 300,
            error_per_mille: 20,
            spurious_per_mille: 50,
            edge: seed.is_multiple_of(2),
            ..SimOptions::default()
        };
        Config { sim, ..Config::for_test(Driver::Sim) }
    })
}

/// Counts the connections that a simulated server has accepted. If calls fail, a connection may be lost before that:
/// then it is retried, as a client would.
#[derive(Clone, Default)]
pub struct Accepted {
    loses_some: bool,
    count: Rc<Cell<u64>>,
}

impl Accepted {
    pub fn new(engine: &Config) -> Self {
        Self { loses_some: engine.sim.error_per_mille > 0, count: Rc::default() }
    }

    /// The server has accepted a connection.
    pub fn note(&self) {
        self.count.set(self.count.get() + 1);
    }

    /// A connection to a server that sends nothing unasked.
    pub async fn connect(&self, address: &Address) -> Stream {
        loop {
            let before = self.count.get();
            let connected = Stream::connect(address).await;
            if !self.loses_some {
                return connected.expect("it listens");
            }
            // It may be lost before the client learns that it is established.
            if let Ok(mut stream) = connected
                && self.has_arrived(before, &mut stream).await
            {
                return stream;
            }
        }
    }

    async fn has_arrived(&self, before: u64, stream: &mut Stream) -> bool {
        while self.count.get() == before {
            // Nothing comes but the end.
            if timeout(Duration::from_millis(1), stream.recv()).await.is_ok() {
                return false;
            }
        }
        true
    }
}
