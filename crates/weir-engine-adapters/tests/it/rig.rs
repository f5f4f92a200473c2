//! Runs a case on a driver: the adapter's side is the handler of a server, and the script is the client, on the same
//! driver.

#![expect(
    clippy::print_stdout,
    reason = "the test harness shows it with the failing test, or with --nocapture"
)]

use std::{
    env,
    future::poll_fn,
    io::Write,
    pin::pin,
    sync::{
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc,
    },
    task::Poll,
    time::Duration,
};

use weir_engine::{
    Config, Driver, Runtime, StartError,
    net::{Address, Listener, Stream},
    serve::{Server, ServerConfig},
    spawn, time,
};

use crate::random::{Pattern, Random, fresh_seed};

/// A test that runs longer than this hangs.
const WATCHDOG: Duration = Duration::from_secs(60);
/// How long a drain may take before connections are cut.
const DRAIN_LIMIT: Duration = Duration::from_secs(10);

/// Makes a test of each case for each driver.
macro_rules! on_every_driver {
    ($($case:ident),* $(,)?) => {
        $(mod $case {
            on_every_driver!(@ $case: uring epoll poll select blocking sim sim_short);
        })*
    };
    (@ $case:ident: $($subject:ident)*) => {
        $(#[test]
        fn $subject() {
            $crate::rig::run(stringify!($subject), super::$case);
        })*
    };
}

/// Everything a case needs.
pub struct Rig {
    /// Configuration of both sides; a case may change it before it serves.
    pub config: Config,
    pub driver: Driver,
    pub random: Random,
    pub pattern: Pattern,
}

/// Runs one case on a driver; `sim_short` is the simulator with short sends and receives.
pub fn run(subject: &str, case: fn(&mut Rig)) {
    let name = subject.trim_end_matches("_short");
    let driver =
        Driver::ALL.into_iter().find(|driver| driver.name() == name).expect("a driver has this name");
    let seed = env::var("WEIR_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(fresh_seed);
    println!("{subject}: WEIR_TEST_SEED={seed}");
    let mut config = Config::for_test(driver);
    config.sim.seed = seed;
    config.sim.short_per_mille = if name == subject { 0 } else { 200 };
    if let Err(StartError::Refused { refusal, .. }) = Runtime::new(&config) {
        println!("skipped: {refusal}");
        let required = env::var("WEIR_REQUIRE_DRIVERS").unwrap_or_default();
        assert!(
            !required.split(',').any(|required| required.trim() == name),
            "WEIR_REQUIRE_DRIVERS: {refusal}"
        );
        return;
    }
    let _watchdog = watchdog(subject.to_owned());
    case(&mut Rig { config, driver, random: Random::new(seed), pattern: Pattern::new(seed) });
}

/// Ends the process when the value is not dropped in time: a hang is a failure.
fn watchdog(subject: String) -> mpsc::Sender<()> {
    let (running, watched) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        if watched.recv_timeout(WATCHDOG) == Err(mpsc::RecvTimeoutError::Timeout) {
            let line = format!("watchdog: a test on {subject} hangs\n");
            let _ = std::io::stderr().write_all(line.as_bytes());
            std::process::abort();
        }
    });
    running
}

impl Rig {
    /// A case that does not apply to this driver says why.
    pub fn not_applicable(&self, why: &str) {
        println!("{}: not applicable: {why}", self.driver);
    }

    /// A server with one handler on every connection, and a script against it. At the end no connection was cut, and
    /// none is left.
    pub fn serve<H, F, S, T>(&self, handler: H, script: S) -> T
    where
        H: Fn(Stream) -> F + Clone + Send + 'static,
        F: Future<Output = ()> + 'static,
        S: AsyncFnOnce(Address) -> T,
    {
        let listen: Address = "127.0.0.1:0".parse().expect("an address");
        if self.driver == Driver::Sim {
            return self.simulate(&listen, handler, script);
        }
        let config =
            ServerConfig { drain_limit: DRAIN_LIMIT, ..ServerConfig::new(self.config.clone(), listen) };
        let server = Server::start(config, handler).unwrap_or_else(|error| panic!("{error}"));
        let control = server.control();
        let client = Runtime::new(&self.config).unwrap_or_else(|error| panic!("{error}"));
        let value = client.block_on(script(server.address().clone()));
        drop(client);
        server.drain();
        assert_eq!(server.join().connections_cut, 0);
        assert_eq!(control.stats().total.connections_open, 0);
        value
    }

    fn simulate<H, F, S, T>(&self, listen: &Address, handler: H, script: S) -> T
    where
        H: Fn(Stream) -> F + Clone + Send + 'static,
        F: Future<Output = ()> + 'static,
        S: AsyncFnOnce(Address) -> T,
    {
        let runtime = Runtime::new(&self.config).expect("the simulator starts");
        let value = runtime.block_on(async {
            let listener = Listener::bind(listen, Default::default()).expect("a simulated port");
            let address = listener.local_address().expect("a listener has an address");
            let acceptor = spawn(async move {
                while let Ok(stream) = listener.accept().await {
                    spawn(handler(stream));
                }
            });
            let value = script(address).await;
            acceptor.abort();
            value
        });
        assert_eq!(runtime.drain(DRAIN_LIMIT), 0, "no connection is cut");
        value
    }

    /// Lets the other side run until it has set the flag.
    pub async fn until(&self, flag: &AtomicBool) {
        while !flag.load(SeqCst) {
            if self.driver == Driver::Sim {
                // Virtual time passes only while all tasks wait.
                time::sleep(Duration::from_micros(10)).await;
            } else {
                // A turn, so that what this side has queued leaves.
                time::yield_now().await;
            }
        }
    }
}

/// Polls a future once and drops it; `None` when it was not ready.
pub async fn poll_once<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}
