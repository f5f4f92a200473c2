//! A server: one handler on every connection, N workers on any driver, started and ended in an orderly way.
//!
//! Each worker is a thread with a runtime of its own. On the blocking driver there is one acceptor thread, and a
//! thread with a runtime for each connection. `drain` stops accepting, lets receives end after what has arrived,
//! waits for the handlers, and cuts what is left at the deadline.

use std::{
    io,
    os::fd::OwnedFd,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use weir_record::engine::{EngineStats, ServerStats};

use crate::{
    config::{Config, Driver},
    counters::Counters,
    driver::{BoundPath, ListenOptions, StartError, open_listener},
    net::{Address, Listener, Stream},
    remote::Remote,
    runtime::{self, Runtime},
};

mod blocking;

use blocking::{Acceptor, Connections};

/// How connections reach the workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AcceptMode {
    /// Every worker listens on the same port, and the kernel spreads connections by hash (`SO_REUSEPORT`).
    #[default]
    ReusePort,
    /// The first worker accepts and gives connections out in turn.
    Acceptor,
    /// All workers wait on one listener; an arrival wakes one of them where the kernel can do that.
    Exclusive,
}

/// What a server is asked to be.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Driver, options and limits of each worker's runtime.
    pub engine: Config,
    /// Where to listen.
    pub listen: Address,
    /// Connections the kernel may hold ready.
    pub backlog: u32,
    /// Threads with a runtime; must be 1 on the blocking driver.
    pub workers: usize,
    /// How connections reach them.
    pub accept: AcceptMode,
    /// CPUs to pin workers to, in turn; empty: not pinned.
    pub cpus: Vec<usize>,
    /// How long a drain may take. Connections without a request under way end at once: they need none of it. On the
    /// blocking driver a thread may need 50 ms to see that: less than that cuts idle connections.
    pub drain_limit: Duration,
    /// Most connections at a time on the blocking driver, which needs a thread and two descriptors for each; one
    /// more is closed.
    pub blocking_connections_max: usize,
    /// The handler waits for two operations at once (it receives and sends in separate tasks, or spawns): such a
    /// handler is refused at start on the blocking driver.
    pub handler_waits_for_two: bool,
}

impl ServerConfig {
    /// One worker on `listen`, everything else by default.
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
        }
    }
}

/// A server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The driver cannot run, or cannot do what is asked.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}{}", hint(source))]
    Listen {
        /// Address asked for.
        address: Address,
        /// What the kernel says.
        source: io::Error,
    },
    /// A thread could not be started or pinned.
    #[error("cannot start worker {worker}: {source}")]
    Worker {
        /// Worker number.
        worker: usize,
        /// What the kernel says.
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

/// How a drain ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Connections that had to be cut at the deadline.
    pub connections_cut: usize,
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    address: Address,
    path: Option<BoundPath>,
    driver: Driver,
    shared: Arc<Shared>,
    threads: Vec<thread::JoinHandle<Drained>>,
}

#[derive(Debug)]
struct Shared {
    remotes: Mutex<Vec<Remote>>,
    counters: Mutex<Vec<Arc<Counters>>>,
    /// How far the end has come: [`SERVING`], [`DRAINING`], [`CUTTING`].
    stage: AtomicU8,
    drain_limit: Duration,
    blocking: Mutex<Connections>,
    serial: AtomicU64,
}

/// Nothing ends yet.
const SERVING: u8 = 0;
/// Receives end after what has arrived.
const DRAINING: u8 = 1;
/// The handler is dropped, and the connection reset.
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

    /// As [`Self::start`]; before a worker accepts, `on_worker` runs with its number on its thread, inside its runtime,
    /// where it may spawn tasks. What it fails with is the error of the start. Tasks that wait for ever keep a drain
    /// from ending before its limit: let them wait for [`crate::draining`] as well.
    ///
    /// The blocking driver has no workers: there it runs once, on the acceptor's thread, and cannot spawn.
    pub fn start_with<W, H, F>(config: ServerConfig, on_worker: W, handler: H) -> Result<Self, ServeError>
    where
        W: Fn(usize) -> io::Result<()> + Clone + Send + 'static,
        H: Fn(Stream) -> F + Clone + Send + 'static,
        F: Future<Output = ()> + 'static,
    {
        let shared = Arc::new(Shared {
            remotes: Mutex::default(),
            counters: Mutex::default(),
            stage: AtomicU8::new(SERVING),
            drain_limit: config.drain_limit,
            blocking: Mutex::default(),
            serial: AtomicU64::new(0),
        });
        let driver = Runtime::new(&config.engine)?.driver();
        let mut config = config;
        config.engine.driver = crate::DriverChoice::Named(driver);
        refuse_impossible(driver, &config)?;
        let listeners = open_listeners(&config)?;
        let address = listeners[0].1.clone();
        let path = BoundPath::of(&address);
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
            let thread =
                thread::Builder::new().name(format!("weir-worker-{worker}")).spawn(move || job.run(&ready));
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
        lock(&self.shared.blocking).listener = Some(listener.try_clone().map_err(wrap)?);
        let (shared, config) = (Arc::clone(&self.shared), config.clone());
        let (ready, started) = mpsc::channel();
        let acceptor = Acceptor { config, shared, handler, threads: Vec::new() };
        let acceptor = thread::Builder::new()
            .name("weir-acceptor".into())
            .spawn(move || acceptor.run(listener, on_worker, &ready));
        self.threads.push(acceptor.map_err(wrap)?);
        started.recv().unwrap_or_else(|_| Err(io::Error::other("the acceptor ended early"))).map_err(wrap)
    }

    /// Where the server listens, with the port the kernel chose.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The driver that runs.
    pub fn driver(&self) -> Driver {
        self.driver
    }

    /// A handle that can be asked for counters and told to drain, from any thread.
    pub fn control(&self) -> ServerControl {
        ServerControl { driver: self.driver, shared: Arc::clone(&self.shared) }
    }

    /// Starts draining; `join` waits for its end.
    pub fn drain(&self) {
        self.control().drain();
    }

    /// Waits until the server has drained.
    ///
    /// # Panics
    /// When a worker panicked: with its message.
    pub fn join(self) -> Drained {
        let mut total = Drained::default();
        for worker in self.threads {
            match worker.join() {
                Ok(drained) => total.connections_cut += drained.connections_cut,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        if let Some(path) = &self.path {
            path.remove();
        }
        total
    }
}

/// Counters and drain of a running server, for any thread.
#[derive(Clone, Debug)]
pub struct ServerControl {
    driver: Driver,
    shared: Arc<Shared>,
}

impl ServerControl {
    /// Counters now: in total and by worker (by connection on the blocking driver, closed ones summed up first).
    pub fn stats(&self) -> ServerStats {
        let mut workers: Vec<EngineStats> =
            lock(&self.shared.counters).iter().map(|counters| counters.snapshot()).collect();
        if self.driver == Driver::Blocking {
            let connections = lock(&self.shared.blocking);
            let mut sum = connections.retired;
            connections.open.values().for_each(|(_, counters)| sum.merge(&counters.snapshot()));
            workers.push(sum);
        }
        let mut total = EngineStats::default();
        workers.iter().for_each(|worker| total.merge(worker));
        ServerStats { driver: self.driver.name().into(), total, workers, node: None }
    }

    /// Starts draining.
    pub fn drain(&self) {
        if self.shared.stage.fetch_max(DRAINING, Ordering::SeqCst) != SERVING {
            return;
        }
        lock(&self.shared.remotes).iter().for_each(Remote::drain);
        let connections = lock(&self.shared.blocking);
        connections.open.values().for_each(|(ending, _)| ending.advance(DRAINING));
        if let Some(listener) = &connections.listener {
            let _ = rustix::net::shutdown(listener, rustix::net::Shutdown::Both);
        }
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
    let first = open_listener(&config.listen, &options).map_err(wrap)?;
    let address = first.1.clone();
    let mut listeners = vec![first];
    while listeners.len() < config.workers && config.accept != AcceptMode::Acceptor {
        let next = if share_port {
            open_listener(&address, &options).map_err(wrap)?
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
    shared: Arc<Shared>,
    on_worker: W,
    handler: H,
}

impl<W, H, F> Worker<W, H>
where
    W: Fn(usize) -> io::Result<()>,
    H: Fn(Stream) -> F + Clone + Send + 'static,
    F: Future<Output = ()> + 'static,
{
    fn run(mut self, ready: &mpsc::Sender<io::Result<()>>) -> Drained {
        let runtime = match self.prepare() {
            Ok(runtime) => runtime,
            Err(error) => {
                // The starter waits for this answer and nobody else does.
                let _ = ready.send(Err(error));
                return Drained::default();
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
                None => runtime::draining().await,
            }
        });
        Drained { connections_cut: runtime.drain(self.shared.drain_limit) }
    }

    fn prepare(&self) -> io::Result<Runtime> {
        if !self.config.cpus.is_empty() {
            pin(&[self.config.cpus[self.number % self.config.cpus.len()]])?;
        }
        let runtime = Runtime::new(&self.config.engine).map_err(io::Error::other)?;
        lock(&self.shared.remotes).push(runtime.remote());
        lock(&self.shared.counters).push(runtime.counters());
        Ok(runtime)
    }

    async fn accept(&self, listener: Listener) {
        let hand_out = self.config.accept == AcceptMode::Acceptor && self.config.workers > 1;
        let mut next = 0;
        loop {
            let stream = match listener.accept().await {
                Ok(stream) => stream,
                // One connection too many is closed; the others and the server go on.
                Err(error) if error.kind() == io::ErrorKind::QuotaExceeded => continue,
                Err(_) => return,
            };
            next = (next + 1) % self.config.workers;
            let own =
                if hand_out && next != self.number { self.hand_out(stream, next) } else { Some(stream) };
            if let Some(stream) = own {
                // Fails only at the task limit: then the connection is closed, which the peer sees.
                let _ = runtime::try_spawn((self.handler)(stream));
            }
        }
    }

    /// Gives a connection to another worker; gives it back when that one cannot take it (not started yet, or busy).
    fn hand_out(&self, stream: Stream, worker: usize) -> Option<Stream> {
        let Some(remote) = lock(&self.shared.remotes).get(worker).cloned() else { return Some(stream) };
        let handler = self.handler.clone();
        // A call that is refused is dropped, and its captures with it: the socket stays reachable from here.
        let place = Arc::new(Mutex::new(Some(stream.into_descriptor().ok()?)));
        let there = Arc::clone(&place);
        let refused = remote.call(move || {
            let descriptor = lock(&there).take();
            if let Some(Ok(stream)) = descriptor.map(Stream::from_descriptor) {
                let _ = runtime::try_spawn(handler(stream));
            }
        });
        let descriptor = refused.err().and_then(|_| lock(&place).take())?;
        Stream::from_descriptor(descriptor).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::TcpStream,
        os::unix::net::UnixStream,
    };

    use super::*;

    async fn echo(stream: Stream) {
        while let Ok(Some(bytes)) = stream.recv().await {
            if stream.send(bytes).await.is_err() {
                return;
            }
        }
    }

    fn config(driver: Driver, listen: Address) -> ServerConfig {
        ServerConfig::new(Config::with_driver(driver), listen)
    }

    fn loopback() -> Address {
        "127.0.0.1:0".parse().expect("an address")
    }

    fn connect(server: &Server) -> TcpStream {
        let Address::Tcp(address) = server.address() else { panic!("it listens on TCP") };
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a time limit");
        stream
    }

    fn is_echoed(stream: &mut TcpStream) -> bool {
        let mut reply = [0; 4];
        stream.write_all(b"ping").is_ok() && stream.read_exact(&mut reply).is_ok() && reply == *b"ping"
    }

    #[test]
    fn one_connection_too_many_is_closed_and_the_server_goes_on() {
        for driver in [Driver::Uring, Driver::Epoll, Driver::Poll, Driver::Select, Driver::Blocking] {
            let mut config = config(driver, loopback());
            // Two connections and, where a runtime has it, the listener.
            config.engine.limits.sockets_max = 3;
            config.blocking_connections_max = 2;
            let Ok(server) = Server::start(config, echo) else { continue };
            let (mut first, mut second) = (connect(&server), connect(&server));
            assert!(is_echoed(&mut first) && is_echoed(&mut second));
            assert!(!is_echoed(&mut connect(&server)), "{driver}: two connections are the limit");
            assert!(is_echoed(&mut first), "{driver}: those that are there go on");
            drop(second);
            let accepted = (0..1000).any(|_| is_echoed(&mut connect(&server)));
            assert!(accepted, "{driver}: there is room again");
            drop(first);
            server.drain();
            assert_eq!(server.join(), Drained::default());
        }
    }

    #[test]
    fn workers_begin_as_they_are_told_and_what_they_spawned_ends_with_the_drain() {
        for driver in [Driver::Uring, Driver::Epoll, Driver::Poll, Driver::Select] {
            let mut config = config(driver, loopback());
            config.workers = 2;
            config.drain_limit = Duration::from_secs(60);
            let (begun, ended) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
            let (begin, end) = (Arc::clone(&begun), Arc::clone(&ended));
            let on_worker = move |worker: usize| {
                begin.fetch_add(1 << (8 * worker), Ordering::SeqCst);
                let end = Arc::clone(&end);
                runtime::try_spawn(async move {
                    assert!(!runtime::is_draining());
                    runtime::draining().await;
                    assert!(runtime::is_draining());
                    end.fetch_add(1, Ordering::SeqCst);
                })?;
                Ok(())
            };
            let Ok(server) = Server::start_with(config, on_worker, echo) else { continue };
            assert_eq!(begun.load(Ordering::SeqCst), 0x101, "{driver}: once each");
            assert!(is_echoed(&mut connect(&server)));
            server.drain();
            assert_eq!(server.join(), Drained::default());
            assert_eq!(ended.load(Ordering::SeqCst), 2, "{driver}");
        }
    }

    #[test]
    fn a_drain_waits_for_no_place_in_a_queue() {
        let mut config = config(Driver::Poll, loopback());
        config.engine.limits.remote_queue_max = 1;
        let ((hold, held), (release, released)) = (mpsc::channel(), mpsc::channel::<()>());
        let released = Arc::new(Mutex::new(released));
        // A handler that does not give its thread back.
        let holds = move |stream: Stream| {
            let (hold, released) = (hold.clone(), Arc::clone(&released));
            async move {
                hold.send(()).expect("it is waited for");
                lock(&released).recv().expect("it is released");
                drop(stream);
            }
        };
        let server = Server::start(config, holds).expect("poll runs everywhere");
        let stream = connect(&server);
        held.recv().expect("the connection is served");
        let worker = lock(&server.shared.remotes)[0].clone();
        while worker.call(|| {}).is_ok() {}
        let (control, (done, drained)) = (server.control(), mpsc::channel());
        let draining = thread::spawn(move || {
            control.drain();
            done.send(()).expect("it is waited for");
        });
        drained.recv_timeout(Duration::from_secs(30)).expect("it has been told, and looks when it can");
        release.send(()).expect("the handler waits");
        draining.join().expect("it has ended");
        drop(stream);
        assert_eq!(server.join(), Drained::default());
    }

    #[test]
    fn a_worker_that_cannot_begin_is_the_error_of_the_start() {
        for driver in [Driver::Poll, Driver::Blocking] {
            let fails = |_| Err(io::Error::other("there is no journal"));
            let error = Server::start_with(config(driver, loopback()), fails, echo).expect_err("it fails");
            assert_eq!(error.to_string(), "cannot start worker 0: there is no journal");
        }
    }

    #[test]
    fn a_connection_that_cannot_be_handed_out_is_kept() {
        let mut config = config(Driver::Poll, loopback());
        config.workers = 2;
        config.accept = AcceptMode::Acceptor;
        let server = Server::start(config, echo).expect("poll runs everywhere");
        // As before the second worker has started.
        lock(&server.shared.remotes).truncate(1);
        let mut streams: Vec<TcpStream> = (0..4).map(|_| connect(&server)).collect();
        assert!(streams.iter_mut().all(is_echoed));
        drop(streams);
        server.drain();
        // The second worker cannot be told to drain any more: it is not waited for.
    }

    #[test]
    fn a_blocking_connection_ends_with_a_handler_that_panics() {
        let panics = |stream: Stream| async move {
            let _ = stream.recv().await;
            panic!("on purpose");
        };
        let server = Server::start(config(Driver::Blocking, loopback()), panics).expect("it runs everywhere");
        let mut stream = connect(&server);
        stream.write_all(b"go").expect("it fits");
        assert_eq!(stream.read(&mut [0; 1]).expect("the connection ends in order"), 0);
        server.drain();
        server.join();
    }

    #[test]
    fn a_stream_that_is_cut_does_not_look_whole() {
        let hangs = |stream: Stream| async move {
            stream.send(b"half").await.expect("the peer reads");
            std::future::pending::<()>().await;
        };
        for driver in [Driver::Uring, Driver::Epoll, Driver::Poll, Driver::Select, Driver::Blocking] {
            let mut config = config(driver, loopback());
            config.drain_limit = Duration::from_millis(10);
            let Ok(server) = Server::start(config, hangs) else { continue };
            let mut stream = connect(&server);
            stream.read_exact(&mut [0; 4]).expect("half a reply");
            server.drain();
            assert_eq!(server.join().connections_cut, 1, "{driver}");
            let error = stream.read(&mut [0; 1]).expect_err("no end of stream");
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{driver}");
        }
    }

    #[test]
    fn a_sender_whose_peer_does_not_read_is_cut_at_the_deadline() {
        const BYTES: usize = 32 << 20;
        let sends = |stream: Stream| async move {
            let _ = stream.send(vec![b'x'; BYTES]).await;
            let _ = stream.flush().await;
        };
        for driver in [Driver::Uring, Driver::Epoll, Driver::Poll, Driver::Select, Driver::Blocking] {
            let mut config = config(driver, loopback());
            config.drain_limit = Duration::from_millis(10);
            let Ok(server) = Server::start(config, sends) else { continue };
            let mut stream = connect(&server);
            stream.read_exact(&mut [0; 4]).expect("the first bytes");
            server.drain();
            assert_eq!(server.join().connections_cut, 1, "{driver}");
            let mut received = Vec::new();
            let error = stream.read_to_end(&mut received).expect_err("no end of stream");
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{driver}");
            assert!(received.len() < BYTES, "{driver}");
        }
    }

    #[test]
    fn a_drain_ends_idle_connections_in_order_and_does_not_wait_for_the_ends_of_their_peers() {
        for driver in [Driver::Uring, Driver::Epoll, Driver::Poll, Driver::Select, Driver::Blocking] {
            let mut config = config(driver, loopback());
            // Whoever waits for the peer, waits until the limit and cuts it.
            config.engine.limits.linger = Duration::from_secs(3600);
            config.drain_limit = Duration::from_secs(10);
            let Ok(server) = Server::start(config, echo) else { continue };
            let (mut used, mut fresh) = (connect(&server), connect(&server));
            assert!(is_echoed(&mut used));
            while server.control().stats().total.connections_open < 2 {
                thread::yield_now();
            }
            server.drain();
            for stream in [&mut used, &mut fresh] {
                assert_eq!(stream.read(&mut [0; 1]).expect("an end in order"), 0, "{driver}");
            }
            // The directions of both peers stay open.
            assert_eq!(server.join(), Drained::default(), "{driver}");
        }
    }

    #[test]
    fn a_drain_without_time_counts_each_connection_once_and_no_listener() {
        for driver in [Driver::Uring, Driver::Epoll, Driver::Poll, Driver::Select, Driver::Blocking] {
            let mut config = config(driver, loopback());
            config.drain_limit = Duration::ZERO;
            let Ok(server) = Server::start(config, echo) else { continue };
            let mut stream = connect(&server);
            assert!(is_echoed(&mut stream));
            server.drain();
            assert_eq!(server.join().connections_cut, 1, "{driver}");
        }
    }

    #[test]
    fn a_path_that_another_server_has_bound_since_is_left_alone() {
        let path = std::env::temp_dir().join(format!("weir-rebound-{}.sock", std::process::id()));
        let address = Address::Unix(path.clone());
        let first = Server::start(config(Driver::Poll, address.clone()), echo).expect("a free path");
        std::fs::remove_file(&path).expect("it is there");
        let second = Server::start(config(Driver::Poll, address), echo).expect("a free path");
        first.drain();
        first.join();
        assert!(UnixStream::connect(&path).is_ok(), "the second server is reachable");
        second.drain();
        second.join();
        assert!(!path.exists());
    }
}
