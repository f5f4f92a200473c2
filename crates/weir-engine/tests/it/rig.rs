//! Runs one case on one subject: starts the server's side, lets the script play the peers, collects the results.

use std::{
    env,
    future::Future,
    process::Command,
    sync::{Condvar, Mutex, PoisonError},
    time::Duration,
};

use weir_engine::{
    Config, Driver, Runtime,
    net::{Address, Listener, Stream},
    serve::{Server, ServerConfig},
};
use weir_engine_types::EngineStats;

use crate::{
    board::{Board, block_on},
    conformance::{Case, Place},
    outcome::{CHILD, Outcome, Verdict, Watchdog, note, record},
    peer::{Network, StatsSource},
    random::{Pattern, Random, fresh_seed},
    subject::Subject,
};

/// A test that runs longer than this hangs.
const WATCHDOG: Duration = Duration::from_secs(60);
/// The limit for the full forms.
const WATCHDOG_SLOW: Duration = Duration::from_secs(1200);
/// How long a drain may take before connections are cut.
pub const DRAIN_LIMIT: Duration = Duration::from_secs(40);

/// Descriptors that all cases of this process may have open at a time: below the limit of `select`.
const DESCRIPTORS_MAX: usize = 960;
static DESCRIPTORS: Budget = Budget { used: Mutex::new(0), changed: Condvar::new() };

/// Cases declare how many descriptors they open, and wait while others use too many.
struct Budget {
    used: Mutex<usize>,
    changed: Condvar,
}

struct Reserved(usize);

impl Budget {
    fn reserve(&self, count: usize) -> Reserved {
        assert!(count <= DESCRIPTORS_MAX, "a case with {count} descriptors needs its own process");
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let blocked = |used: &mut usize| *used + count > DESCRIPTORS_MAX;
        let mut used = self.changed.wait_while(used, blocked).unwrap_or_else(PoisonError::into_inner);
        *used += count;
        Reserved(count)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        *DESCRIPTORS.used.lock().unwrap_or_else(PoisonError::into_inner) -= self.0;
        DESCRIPTORS.changed.notify_all();
    }
}

/// Whether the full forms run.
pub fn is_slow_run() -> bool {
    env::var("WEIR_SLOW_TESTS").is_ok_and(|value| value == "1")
}

/// Runs one case on one subject, here or in a separate process.
pub fn run_case(case: &Case, subject: &'static Subject, test: &'static str) {
    // The names that select tests do not include the test binary's name.
    let test = test.split_once("::").map_or(test, |(_, name)| name);
    if let Some(why) = case.exception(subject) {
        return record(test, &Outcome::NotApplicable(why.into()));
    }
    if let Some(why) = subject.refusal() {
        record(test, &Outcome::Skipped(why.clone()));
        assert!(!subject.is_required(), "WEIR_REQUIRE_DRIVERS names {}, but: {why}", subject.driver);
        return;
    }
    let verdict = Verdict::new(test);
    let seed = env::var("WEIR_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(fresh_seed);
    note(&format!("{test}: case {}, WEIR_TEST_SEED={seed}", case.number));
    let skipped = if case.place == Place::OwnProcess && env::var_os(CHILD).is_none() {
        run_in_child(test, seed)
    } else {
        let _reserved = (case.place == Place::Here).then(|| DESCRIPTORS.reserve(case.descriptors));
        let _watchdog = Watchdog::start(test, if is_slow_run() { WATCHDOG_SLOW } else { WATCHDOG });
        let mut rig = Rig::new(subject, seed);
        (case.body)(&mut rig);
        rig.skipped
    };
    match skipped {
        Some(why) => {
            note(&format!("{SKIPPED}{why}"));
            verdict.skipped(why);
        }
        None => verdict.passed(),
    }
}

/// The prefix with which a separate process reports why it did not run its case.
const SKIPPED: &str = "case skipped: ";

/// Runs one test in a separate process, with its own limits and descriptors. Returns why it did not run, if so.
fn run_in_child(test: &str, seed: u64) -> Option<String> {
    let program = env::current_exe().expect("the test binary has a path");
    let output = Command::new(program)
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, test)
        .env("WEIR_TEST_SEED", seed.to_string())
        .output()
        .expect("the test binary starts again");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    note(&stdout);
    assert!(output.status.success(), "its own process ended with {}:\n{stdout}\n{stderr}", output.status);
    assert!(stdout.contains("1 passed"), "no test of this name ran:\n{stdout}");
    stdout.lines().find_map(|line| line.strip_prefix(SKIPPED)).map(str::to_owned)
}

/// The server side's counts, and the script's result.
#[derive(Debug)]
pub struct Served<T> {
    pub value: T,
    pub stats: EngineStats,
    /// Connections that had to be cut at the end: none, unless the case expects it.
    pub connections_cut: usize,
}

/// Everything a case needs.
pub struct Rig {
    pub subject: &'static Subject,
    /// Configuration of the server's side; a case may change it before it starts something.
    pub config: Config,
    pub listen: Address,
    pub seed: u64,
    pub random: Random,
    pub pattern: Pattern,
    skipped: Option<String>,
}

impl Rig {
    fn new(subject: &'static Subject, seed: u64) -> Self {
        let mut config = subject.config();
        config.sim.seed = seed;
        let listen = "127.0.0.1:0".parse().expect("an address");
        let (random, pattern) = (Random::new(seed), Pattern::new(seed));
        Self { subject, config, listen, seed, random, pattern, skipped: None }
    }

    /// This machine lacks something that the case needs: it tests nothing here, and reports that.
    pub fn skip(&mut self, why: String) {
        self.skipped = Some(why);
    }

    /// The small number, or the full one if slow tests are requested.
    pub fn size(&self, small: usize, full: usize) -> usize {
        if is_slow_run() { full } else { small }
    }

    pub fn runtime(&self) -> Runtime {
        Runtime::new(&self.config).unwrap_or_else(|error| panic!("{error}"))
    }

    /// A unique name in the abstract Unix namespace: its connections leave nothing behind in the kernel when they
    /// close.
    pub fn abstract_address(&mut self) -> Address {
        Address::Abstract(format!("weir-test-{}-{:x}", std::process::id(), self.random.next()))
    }

    /// A server with one handler on every connection, and a script against it.
    pub fn serve<H, F, S, G>(&self, handler: H, script: S) -> Served<G::Output>
    where
        H: Fn(Stream) -> F + Clone + Send + 'static,
        F: Future<Output = ()> + 'static,
        S: FnOnce(Network) -> G,
        G: Future,
    {
        if self.subject.is_sim() {
            return self.serve_simulated(handler, script);
        }
        let config = ServerConfig {
            drain_limit: DRAIN_LIMIT,
            ..ServerConfig::new(self.config.clone(), self.listen.clone())
        };
        let server = Server::start(config, handler).unwrap_or_else(|error| panic!("{error}"));
        let control = server.control();
        let (stop, address) = (Board::new(), server.address().clone());
        let stats = StatsSource::Server(control.clone());
        let network = Network { address, stats, is_simulated: false, stop };
        let value = block_on(script(network));
        server.drain();
        let drained = server.join();
        Served { value, stats: control.stats().total, connections_cut: drained.connections_cut }
    }

    fn serve_simulated<H, F, S, G>(&self, handler: H, script: S) -> Served<G::Output>
    where
        H: Fn(Stream) -> F + Clone + Send + 'static,
        F: Future<Output = ()> + 'static,
        S: FnOnce(Network) -> G,
        G: Future,
    {
        let runtime = self.runtime();
        let counters = runtime.counters();
        let value = runtime.block_on(async {
            let listener = Listener::bind(&self.listen, Default::default()).expect("a simulated port");
            let address = listener.local_address().expect("a listener has an address");
            let stats = StatsSource::Runtime(runtime.counters());
            let network = Network { address, stats, is_simulated: true, stop: Board::new() };
            let acceptor = weir_engine::spawn(async move {
                while let Ok(stream) = listener.accept().await {
                    weir_engine::spawn(handler(stream));
                }
            });
            let value = script(network).await;
            acceptor.abort();
            value
        });
        let connections_cut = runtime.drain(DRAIN_LIMIT);
        Served { value, stats: counters.snapshot(), connections_cut }
    }

    /// Runs one future with a listener on a runtime, and a script against it: for cases that look inside a runtime.
    /// Both run to their end. Not for the blocking driver, which runs handlers only.
    pub fn run<B, F, S, G>(&self, body: B, script: S) -> Served<(F::Output, G::Output)>
    where
        B: FnOnce(Listener, Board) -> F,
        F: Future,
        S: FnOnce(Network) -> G + Send + 'static,
        G: Future + 'static,
        G::Output: Send + 'static,
    {
        assert_ne!(self.subject.driver, Driver::Blocking, "the blocking driver runs handlers only");
        let runtime = self.runtime();
        let counters = runtime.counters();
        let value = runtime.block_on(async {
            let listener = Listener::bind(&self.listen, Default::default()).expect("a free port");
            let address = listener.local_address().expect("a listener has an address");
            let stats = StatsSource::Runtime(runtime.counters());
            let is_simulated = self.subject.is_sim();
            let network = Network { address, stats, is_simulated, stop: Board::new() };
            let (stop, peers) = (network.stop.clone(), network.spawn(script));
            let ours = body(listener, stop).await;
            (ours, peers.join().await)
        });
        let connections_cut = runtime.drain(DRAIN_LIMIT);
        Served { value, stats: counters.snapshot(), connections_cut }
    }
}

impl<T> Served<T> {
    /// Checks that every connection was closed in order.
    #[track_caller]
    pub fn expect_clean(&self) {
        assert_eq!(self.connections_cut, 0, "connections were cut: {:?}", self.stats);
        assert_eq!(self.stats.connections_open, 0, "connections are left: {:?}", self.stats);
        assert_eq!(self.stats.tasks_panicked, 0, "a task panicked: {:?}", self.stats);
        assert_eq!(
            self.stats.accepts + self.stats.connects,
            self.stats.closes,
            "accepts + connects = closes: {:?}",
            self.stats
        );
    }
}
