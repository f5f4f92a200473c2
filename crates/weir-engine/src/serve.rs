//! A server: one handler on every connection, N workers on any driver, started and ended in an orderly way.
//!
//! Each worker is a thread with its own runtime. On the blocking driver there is one acceptor thread, and a thread
//! with a runtime for each connection. `drain` stops accepting, ends receives after the bytes that have already
//! arrived, waits for the handlers, and cuts the remaining connections at the deadline. A worker that cannot accept
//! any more, for any reason, ends the whole server, and [`Drained`] gives the reason: a server that listens and
//! serves only some connections is worse than none. A panic in a handler ends its own connection, and is counted
//! ([`Config::task_panic`] can make it end the worker). The end does not wait for a worker that hangs: that worker is
//! reported and left behind.
//!
//! ```
//! use std::io::{Read, Write};
//! use weir_engine::{Config, net::Stream, serve::{Server, ServerConfig}};
//!
//! async fn echo(stream: Stream) {
//!     while let Ok(Some(bytes)) = stream.recv().await {
//!         if stream.send(bytes).await.is_err() {
//!             return;
//!         }
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = ServerConfig { workers: 2, ..ServerConfig::new(Config::default(), "127.0.0.1:0".parse()?) };
//! let server = Server::start(config, echo)?;
//! let mut client = std::net::TcpStream::connect(server.address().to_string())?;
//! client.write_all(b"hello")?;
//! let mut answer = [0; 5];
//! client.read_exact(&mut answer)?;
//! assert_eq!(&answer, b"hello");
//!
//! server.drain();
//! assert_eq!(server.join().connections_cut, 0);
//! # Ok(())
//! # }
//! ```

use std::{
    io,
    os::fd::OwnedFd,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use departures::Departures;
use failures::Failures;
use weir_engine_types::EngineStats;
use weir_sys::unix_path::BoundPath;

use crate::{
    config::{Config, Driver},
    counters::Counters,
    driver::{ListenOptions, open_listener},
    driver_choice::StartError,
    executor,
    net::{Address, Listener, Stream},
    remote::Remote,
    runtime::Runtime,
    time,
};

mod blocking;
mod departures;
mod failures;
#[cfg(test)]
mod tests;

use blocking::{Acceptor, Threads};

/// How connections reach the workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AcceptMode {
    /// Every worker listens on the same port, and the kernel spreads connections by hash (`SO_REUSEPORT`).
    #[default]
    ReusePort,
    /// The first worker accepts and distributes connections in turn.
    Acceptor,
    /// All workers wait on one listener; an arrival wakes one of them, if the kernel supports that.
    Exclusive,
}

/// The configuration of a server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Driver, options and limits of each worker's runtime.
    pub engine: Config,
    /// The address to listen on.
    pub listen: Address,
    /// Connections that may wait in the kernel.
    pub backlog: u32,
    /// Worker threads, each with a runtime; must be 1 on the blocking driver.
    pub workers: usize,
    /// How connections reach them.
    pub accept: AcceptMode,
    /// CPUs to pin workers to, in turn; empty: not pinned.
    pub cpus: Vec<usize>,
    /// How long a drain may take. Connections without a request in progress end at once and need none of it. On the
    /// blocking driver a thread may need 50 ms to notice: a shorter limit cuts idle connections.
    pub drain_limit: Duration,
    /// Most connections at once on the blocking driver, which needs a thread and two descriptors for each; further
    /// ones are closed.
    pub blocking_connections_max: usize,
    /// The handler waits for two operations at once (it receives and sends in separate tasks, or spawns): such a
    /// handler is refused at start on the blocking driver.
    pub handler_waits_for_two: bool,
    /// Called on the accepting thread whenever accepting pauses because descriptors or memory are short. Clients see
    /// such a pause as silence. The function must not wait.
    pub on_starved: Option<fn()>,
}

impl ServerConfig {
    /// A configuration with one worker on `listen` and every default.
    pub fn new(engine: Config, listen: Address) -> Self {
        Self {
            engine,
            listen,
            backlog: 4096,
            workers: 1,
            accept: AcceptMode::default(),
            cpus: Vec::new(),
            drain_limit: Duration::from_secs(5),
            blocking_connections_max: 8192,
            handler_waits_for_two: false,
            on_starved: None,
        }
    }
}

/// A server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The driver cannot run, or does not support a setting.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}{}", hint(source))]
    Listen {
        /// The address asked for.
        address: Address,
        /// The kernel's error.
        source: io::Error,
    },
    /// A thread could not be started or pinned.
    #[error("cannot start worker {worker}: {source}")]
    Worker {
        /// The worker's number.
        worker: usize,
        /// The kernel's error.
        source: io::Error,
    },
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            ", and stayed so for a second: `ss -tlnp` shows who listens; choose another port, or port 0 for a free one"
        }
        io::ErrorKind::PermissionDenied => "; ports below 1024 need a privilege: choose a higher one",
        io::ErrorKind::AddrNotAvailable => "; this machine has no such address",
        _ => "",
    }
}

/// How a server ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Connections that had to be cut at the deadline.
    pub connections_cut: usize,
    /// Connections that were closed as soon as they were accepted, because a limit was reached.
    pub connections_refused: u64,
    /// Handlers and other tasks that a panic has ended. The server went on without them.
    pub tasks_panicked: u64,
    /// Why it ended without a request to drain.
    pub accept_error: Option<AcceptError>,
    /// Workers that had not ended long after the deadline. They hang and are left behind: whatever they do may
    /// continue as long as the process lives.
    pub workers_left: Vec<usize>,
}

/// A worker can accept no more connections: the whole server has ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("worker {worker} can accept no more connections: {reason}")]
pub struct AcceptError {
    /// The worker's number.
    pub worker: usize,
    /// The kernel's error.
    pub reason: String,
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    address: Address,
    path: Option<BoundPath>,
    driver: Driver,
    shared: Arc<ServerState>,
    /// Each returns the number of connections that it has cut.
    threads: Vec<thread::JoinHandle<usize>>,
}

#[derive(Debug)]
struct ServerState {
    remotes: Mutex<Vec<Remote>>,
    counters: Mutex<Vec<Arc<Counters>>>,
    /// The stage of the end: [`SERVING`], [`DRAINING`], [`CUTTING`].
    stage: AtomicU8,
    drain_limit: Duration,
    departures: Arc<Departures>,
    blocking: Threads,
    /// The first error with which a worker stopped accepting.
    accept_error: Mutex<Option<AcceptError>>,
}

/// Not ending.
const SERVING: u8 = 0;
/// Draining: receives end after the bytes that have already arrived.
const DRAINING: u8 = 1;
/// Cutting: the handler is dropped, and the connection reset.
const CUTTING: u8 = 2;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Server {
    /// Listens and starts the workers; returns when all of them accept.
    pub fn start<H, F>(config: ServerConfig, handler: H) -> Result<Self, ServeError>
    where
        H: Fn(Stream) -> F + Clone + Send + 'static,
        F: Future<Output = ()> + 'static,
    {
        Self::start_with(config, |_| Ok(()), handler)
    }

    /// As [`Self::start`], with a function for each worker: before a worker accepts, `on_worker` runs with its number
    /// on its thread, inside its runtime, where it may spawn tasks. An error that it returns is the error of the
    /// start. Tasks that never end keep a drain running until its limit: let them wait for [`crate::draining`] as
    /// well.
    ///
    /// The blocking driver has no workers: there it runs once, on the acceptor's thread, and cannot spawn.
    pub fn start_with<W, H, F>(config: ServerConfig, on_worker: W, handler: H) -> Result<Self, ServeError>
    where
        W: Fn(usize) -> io::Result<()> + Clone + Send + 'static,
        H: Fn(Stream) -> F + Clone + Send + 'static,
        F: Future<Output = ()> + 'static,
    {
        Self::start_on(config, open_listeners, on_worker, handler)
    }

    fn start_on<W, H, F>(
        config: ServerConfig,
        open: impl FnOnce(&ServerConfig) -> Result<Vec<(OwnedFd, Address)>, ServeError>,
        on_worker: W,
        handler: H,
    ) -> Result<Self, ServeError>
    where
        W: Fn(usize) -> io::Result<()> + Clone + Send + 'static,
        H: Fn(Stream) -> F + Clone + Send + 'static,
        F: Future<Output = ()> + 'static,
    {
        let shared = Arc::new(ServerState {
            remotes: Mutex::default(),
            counters: Mutex::default(),
            stage: AtomicU8::new(SERVING),
            drain_limit: config.drain_limit,
            departures: Arc::default(),
            blocking: Threads::default(),
            accept_error: Mutex::default(),
        });
        let driver = Runtime::new(&config.engine)?.driver();
        let mut config = config;
        config.engine.driver = crate::DriverChoice::Named(driver);
        refuse_impossible(driver, &config)?;
        let listeners = open(&config)?;
        let address = listeners[0].1.clone();
        let path = address.path().and_then(BoundPath::of);
        let mut server = Self { address, path, driver, shared, threads: Vec::new() };
        let started = match driver {
            Driver::Blocking => server.start_blocking(&config, listeners, on_worker, handler),
            _ => server.start_workers(&config, listeners, on_worker, handler),
        };
        match started {
            Ok(()) => Ok(server),
            Err(error) => {
                server.drain();
                server.join();
                Err(error)
            }
        }
    }

    fn start_workers<W, H, F>(
        &mut self,
        config: &ServerConfig,
        listeners: Vec<(OwnedFd, Address)>,
        on_worker: W,
        handler: H,
    ) -> Result<(), ServeError>
    where
        W: Fn(usize) -> io::Result<()> + Clone + Send + 'static,
        H: Fn(Stream) -> F + Clone + Send + 'static,
        F: Future<Output = ()> + 'static,
    {
        let mut listeners = listeners.into_iter();
        for worker in 0..config.workers {
            let job = Worker {
                number: worker,
                config: config.clone(),
                listener: listeners.next().map(|(descriptor, _)| descriptor),
                shared: Arc::clone(&self.shared),
                on_worker: on_worker.clone(),
                handler: handler.clone(),
            };
            let (ready, started) = mpsc::channel();
            let present = self.shared.departures.begin();
            let run = move || {
                let _present = present;
                job.run(&ready)
            };
            let thread = thread::Builder::new().name(format!("weir-worker-{worker}")).spawn(run);
            self.threads.push(thread.map_err(|source| ServeError::Worker { worker, source })?);
            let dead = || io::Error::other("the worker ended before it was ready");
            let outcome = started.recv().unwrap_or_else(|_| Err(dead()));
            outcome.map_err(|source| ServeError::Worker { worker, source })?;
        }
        Ok(())
    }

    fn start_blocking<W, H, F>(
        &mut self,
        config: &ServerConfig,
        listeners: Vec<(OwnedFd, Address)>,
        on_worker: W,
        handler: H,
    ) -> Result<(), ServeError>
    where
        W: Fn(usize) -> io::Result<()> + Send + 'static,
        H: Fn(Stream) -> F + Clone + Send + 'static,
        F: Future<Output = ()> + 'static,
    {
        let wrap = |source| ServeError::Worker { worker: 0, source };
        let Some((listener, _)) = listeners.into_iter().next() else { return Ok(()) };
        self.shared.blocking.listen(listener.try_clone().map_err(wrap)?);
        let (shared, config) = (Arc::clone(&self.shared), config.clone());
        let (ready, started) = mpsc::channel();
        let present = self.shared.departures.begin();
        let acceptor = Acceptor { config, shared, handler };
        let run = move || {
            let _present = present;
            acceptor.run(listener, on_worker, &ready)
        };
        let acceptor = thread::Builder::new().name("weir-acceptor".into()).spawn(run);
        self.threads.push(acceptor.map_err(wrap)?);
        started.recv().unwrap_or_else(|_| Err(io::Error::other("the acceptor ended early"))).map_err(wrap)
    }

    /// The address that the server listens on, with the port that the kernel chose.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The driver that runs.
    pub fn driver(&self) -> Driver {
        self.driver
    }

    /// A handle for any thread: it reads counters and drains the server.
    pub fn control(&self) -> ServerControl {
        ServerControl { driver: self.driver, shared: Arc::clone(&self.shared) }
    }

    /// Starts draining; `join` waits until it is done.
    pub fn drain(&self) {
        self.control().drain();
    }

    /// Waits until the server has drained, at most some seconds longer than the drain limit.
    ///
    /// # Panics
    /// When a worker panicked: with its message. A panic in a handler ends its worker only if
    /// [`TaskPanic::Runtime`](crate::TaskPanic) asks for that.
    pub fn join(self) -> Drained {
        let control = self.control();
        let workers_left = self.shared.departures.wait();
        let mut connections_cut = 0;
        let ended = self.threads.into_iter().enumerate().filter(|(worker, _)| !workers_left.contains(worker));
        for (_, worker) in ended {
            match worker.join() {
                Ok(cut) => connections_cut += cut,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        if let Some(path) = &self.path {
            path.remove();
        }
        let EngineStats { accepts_refused: connections_refused, tasks_panicked, .. } = control.stats().total;
        let accept_error = lock(&self.shared.accept_error).take();
        Drained { connections_cut, connections_refused, tasks_panicked, accept_error, workers_left }
    }
}

/// The server's counts since it started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerStats {
    /// Sum over all workers.
    pub total: EngineStats,
    /// One entry for each worker, in their order.
    pub workers: Vec<EngineStats>,
}

/// Counters and drain of a running server, for any thread.
#[derive(Clone, Debug)]
pub struct ServerControl {
    driver: Driver,
    shared: Arc<ServerState>,
}

impl ServerControl {
    /// Counters now: the total and one entry for each worker. The blocking driver has two entries: its acceptor, and
    /// the sum of its other threads.
    pub fn stats(&self) -> ServerStats {
        let mut workers: Vec<EngineStats> =
            lock(&self.shared.counters).iter().map(|counters| counters.snapshot()).collect();
        if self.driver == Driver::Blocking {
            workers.push(self.shared.blocking.stats());
        }
        let mut total = EngineStats::default();
        workers.iter().for_each(|worker| total.merge(worker));
        ServerStats { total, workers }
    }

    /// Switches the clock that measures how long the workers are outside kernel calls
    /// ([`EngineStats::outside_calls_ns`]).
    pub fn time_calls(&self, on: bool) {
        lock(&self.shared.counters).iter().for_each(|counters| counters.clock.switch(on));
        self.shared.blocking.time_calls(on);
    }

    /// Starts draining.
    pub fn drain(&self) {
        self.shared.drain();
    }

    /// Whether new connections are accepted: until a drain begins, for any reason.
    pub fn is_serving(&self) -> bool {
        self.shared.is_serving()
    }

    /// The driver that runs.
    pub fn driver(&self) -> Driver {
        self.driver
    }
}

impl ServerState {
    fn drain(&self) {
        if self.stage.fetch_max(DRAINING, Ordering::SeqCst) != SERVING {
            return;
        }
        self.departures.limit(self.drain_limit);
        lock(&self.remotes).iter().for_each(Remote::drain);
        self.blocking.drain();
    }

    fn is_serving(&self) -> bool {
        self.stage.load(Ordering::SeqCst) == SERVING
    }

    /// Ends the server and records the reason, unless it is already ending.
    fn give_up(&self, worker: usize, error: &io::Error) {
        if self.is_serving() {
            let reason = error.to_string();
            lock(&self.accept_error).get_or_insert(AcceptError { worker, reason });
        }
        self.drain();
    }
}

fn refuse_impossible(driver: Driver, config: &ServerConfig) -> Result<(), ServeError> {
    let unable = |reason: &str| Err(StartError::Unable { driver, reason: reason.into() }.into());
    match driver {
        Driver::Sim => unable("simulated sockets exist inside one process only"),
        Driver::Blocking if config.handler_waits_for_two => {
            unable("this handler waits for two operations at once, and a thread blocks in one call")
        }
        Driver::Blocking if config.workers != 1 => {
            unable("it has a thread for each connection and no workers; ask for 1 worker")
        }
        _ if config.workers == 0 => unable("a server needs at least 1 worker"),
        _ => Ok(()),
    }
}

/// One listening socket for each worker that accepts.
fn open_listeners(config: &ServerConfig) -> Result<Vec<(OwnedFd, Address)>, ServeError> {
    let wrap = |source| ServeError::Listen { address: config.listen.clone(), source };
    let is_tcp = matches!(config.listen, Address::Tcp(_));
    let share_port = config.accept == AcceptMode::ReusePort && is_tcp && config.workers > 1;
    let options = ListenOptions { backlog: config.backlog, share_port, exclusive: false };
    let congestion_control = config.engine.congestion_control.as_deref();
    let first = open_listener(&config.listen, &options, congestion_control).map_err(wrap)?;
    let address = first.1.clone();
    let mut listeners = vec![first];
    while listeners.len() < config.workers && config.accept != AcceptMode::Acceptor {
        let next = if share_port {
            open_listener(&address, &options, congestion_control).map_err(wrap)?
        } else {
            (listeners[0].0.try_clone().map_err(wrap)?, address.clone())
        };
        listeners.push(next);
    }
    Ok(listeners)
}

fn pin(cpus: &[usize]) -> io::Result<()> {
    if cpus.is_empty() { Ok(()) } else { weir_sys::affinity::pin_current_thread(cpus) }
}

struct Worker<W, H> {
    number: usize,
    config: ServerConfig,
    listener: Option<OwnedFd>,
    shared: Arc<ServerState>,
    on_worker: W,
    handler: H,
}

impl<W, H, F> Worker<W, H>
where
    W: Fn(usize) -> io::Result<()>,
    H: Fn(Stream) -> F + Clone + Send + 'static,
    F: Future<Output = ()> + 'static,
{
    /// Returns the number of connections cut.
    fn run(mut self, ready: &mpsc::Sender<io::Result<()>>) -> usize {
        let runtime = match self.prepare() {
            Ok(runtime) => runtime,
            Err(error) => {
                // Only the starting thread waits for this answer; it may be gone.
                let _ = ready.send(Err(error));
                return 0;
            }
        };
        let listener = self.listener.take();
        runtime.block_on(async {
            let begun = (self.on_worker)(self.number)
                .and_then(|()| listener.map(Listener::from_descriptor).transpose());
            let listener = match begun {
                Ok(listener) => listener,
                Err(error) => {
                    let _ = ready.send(Err(error));
                    return;
                }
            };
            let _ = ready.send(Ok(()));
            match listener {
                Some(listener) => self.accept(listener).await,
                None => executor::draining().await,
            }
        });
        runtime.drain(self.shared.drain_limit)
    }

    fn prepare(&self) -> io::Result<Runtime> {
        if !self.config.cpus.is_empty() {
            pin(&[self.config.cpus[self.number % self.config.cpus.len()]])?;
        }
        let runtime = Runtime::new(&self.config.engine).map_err(io::Error::other)?;
        lock(&self.shared.remotes).push(runtime.remote());
        let counters = runtime.counters();
        if let Some(tell) = self.config.on_starved {
            counters.on_starved.get_or_init(|| tell);
        }
        lock(&self.shared.counters).push(counters);
        Ok(runtime)
    }

    async fn accept(&self, listener: Listener) {
        let gives_away = self.config.accept == AcceptMode::Acceptor && self.config.workers > 1;
        let (mut next, mut failures) = (0, Failures::default());
        loop {
            let stream = match listener.accept().await {
                Ok(stream) => stream,
                Err(_) if executor::is_draining() => return,
                Err(error) => match failures.pause(time::now()) {
                    Some(pause) if time::timeout(pause, executor::draining()).await.is_err() => continue,
                    Some(_) => return,
                    None => return self.shared.give_up(self.number, &error),
                },
            };
            failures = Failures::default();
            next = (next + 1) % self.config.workers;
            let own =
                if gives_away && next != self.number { self.give_to(next, stream) } else { Some(stream) };
            if let Some(stream) = own {
                serve(|| (self.handler)(stream));
            }
        }
    }

    /// Gives a connection to another worker. Returns it if that worker cannot take it (not started yet, or busy).
    fn give_to(&self, worker: usize, stream: Stream) -> Option<Stream> {
        let Some(remote) = lock(&self.shared.remotes).get(worker).cloned() else { return Some(stream) };
        let handler = self.handler.clone();
        // A refused call is dropped with its captures: through this place the socket stays reachable from here.
        let place = Arc::new(Mutex::new(Some(stream.into_descriptor().ok()?)));
        let there = Arc::clone(&place);
        let refused = remote.call(move || {
            let descriptor = lock(&there).take();
            if let Some(stream) = descriptor.and_then(take_over) {
                serve(|| handler(stream));
            }
        });
        let descriptor = refused.err().and_then(|_| lock(&place).take())?;
        take_over(descriptor)
    }
}

/// Moves a connection into this worker's runtime. At the socket limit the connection is closed, which the peer sees.
fn take_over(descriptor: OwnedFd) -> Option<Stream> {
    let taken = Stream::from_descriptor(descriptor);
    if taken.is_err() {
        executor::with_current(|core| {
            core.counters.accepts_refused.increment();
            core.counters.closes.increment();
        });
    }
    taken.ok()
}

/// Runs a handler as a task. At the task limit its connection is closed, which the peer sees. A handler that panics
/// before it has made its task is treated as the task would be.
fn serve<F: Future<Output = ()> + 'static>(handler: impl FnOnce() -> F) {
    let Some(task) = executor::make_task(handler) else { return };
    if executor::try_spawn(task).is_err() {
        executor::with_current(|core| core.counters.accepts_refused.increment());
    }
}
