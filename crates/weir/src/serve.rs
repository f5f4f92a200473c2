//! `weir serve`: the common part of all servers, from the flags to the end of the drain.

use std::{
    fs,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc, Mutex, Once, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use anyhow::{Context, Result};
use weir_engine::{
    Driver, DriverChoice,
    net::{Address, Stream},
    serve::{AcceptMode, Drained, ServeError, Server, ServerConfig, ServerControl},
};
use weir_monitor::target;
use weir_servers::{
    metrics::{MetricsPort, Plain, Source},
    orders::OrdersServer,
    stats::{NodeSource, StatsSocket},
};

use crate::{
    engine,
    exit::UsageError,
    flags::{Accept, ServeShared},
    hanging::WorkersHang,
    output, signals,
};

/// A server that can start: its flags are checked, and its names are taken.
pub(crate) struct Prepared {
    config: ServerConfig,
    /// Why this driver was chosen, if no flag named it.
    why: Option<String>,
    stats: Option<StatsSocket>,
    metrics: Option<MetricsPort>,
    /// Other code opens logs anew at SIGHUP.
    reopens_logs: bool,
}

/// Checks the flags that every server has, and takes its names.
pub(crate) fn prepare(shared: &ServeShared, listen: &str) -> Result<Prepared> {
    // Raises a low soft limit to the hard one; if that fails, the server runs with its present limit.
    let _ = weir_evidence::limits::raise_nofile();
    let stats = stats_socket(shared.stats_socket.as_deref())?;
    let metrics = shared.metrics.map(metrics_port).transpose()?;
    Ok(Prepared { stats, metrics, ..examine(shared, listen)? })
}

/// Checks the flags that every server has, and takes no name.
pub(crate) fn examine(shared: &ServeShared, listen: &str) -> Result<Prepared> {
    let (config, why) = config(shared, listen)?;
    Ok(Prepared { config, why, stats: None, metrics: None, reopens_logs: false })
}

/// A server that runs.
pub(crate) struct Running {
    address: Address,
    control: ServerControl,
    node: Option<NodeSource>,
    /// The source of its metrics, if that is more than engine and `node`.
    source: Option<Arc<dyn Source>>,
    drain: Box<dyn Fn() + Send>,
    /// What a SIGHUP makes it read again.
    reload: Option<Box<dyn Fn() + Send + Sync>>,
    /// Called before the server prints its address.
    until_ready: Box<dyn FnOnce()>,
    join: Box<dyn FnOnce() -> Drained>,
}

impl Running {
    fn plain(server: Server, node: Option<NodeSource>) -> Self {
        let control = server.control();
        Self {
            address: server.address().clone(),
            control: control.clone(),
            node,
            source: None,
            drain: Box::new(move || control.drain()),
            reload: None,
            until_ready: Box::new(|| {}),
            join: Box::new(move || server.join()),
        }
    }

    /// A server of order sessions. It prints its address when `until_ready` returns.
    pub(crate) fn orders(
        server: OrdersServer,
        node: NodeSource,
        source: Option<Arc<dyn Source>>,
        until_ready: impl FnOnce() + 'static,
    ) -> Self {
        let control = server.control();
        Self {
            address: server.address().clone(),
            control: control.server().clone(),
            node: Some(node),
            source,
            drain: Box::new(move || control.drain()),
            reload: None,
            until_ready: Box::new(until_ready),
            join: Box::new(move || server.join()),
        }
    }

    /// The same; `drain` is called at a signal that ends the server.
    pub(crate) fn with_drain(self, drain: impl Fn() + Send + 'static) -> Self {
        Self { drain: Box::new(drain), ..self }
    }

    /// The same; `end` is called when the server has drained.
    pub(crate) fn and_then(self, end: impl FnOnce() + 'static) -> Self {
        let join = self.join;
        let join = Box::new(move || {
            let drained = join();
            end();
            drained
        });
        Self { join, ..self }
    }

    /// The same; `reload` is called at a SIGHUP, on a separate thread, and reports what it did.
    pub(crate) fn with_reload(self, reload: impl Fn() + Send + Sync + 'static) -> Self {
        Self { reload: Some(Box::new(reload)), ..self }
    }
}

impl Prepared {
    /// Starts a server with this handler, prints its address, and returns when it has drained. `node` is the server's
    /// own part beside the engine's counters.
    pub(crate) fn run<H, F>(self, node: Option<NodeSource>, handler: H) -> Result<()>
    where
        H: Fn(Stream) -> F + Clone + Send + 'static,
        F: Future<Output = ()> + 'static,
    {
        self.run_server(|config| Server::start(config, handler).map(|server| Running::plain(server, node)))
    }

    /// As [`Self::run`], for a server that starts in another way.
    pub(crate) fn run_server(
        self,
        start: impl FnOnce(ServerConfig) -> Result<Running, ServeError>,
    ) -> Result<()> {
        let stop = Arc::new(Mutex::new(Stop::default()));
        let of_signal = Arc::clone(&stop);
        let hang_up = Arc::new(HangUp::default());
        let at_signal = Arc::clone(&hang_up);
        let is_heard = !self.reopens_logs;
        let on_hang_up = move || {
            if is_heard {
                HangUp::act(&at_signal);
            }
        };
        signals::of_server(move |count| lock(&of_signal).ask(count), on_hang_up)?;
        let listen = self.config.listen.clone();
        let running = start(self.config).map_err(|error| explain(error, &listen))?;
        let driver = running.control.driver();
        let control = running.control.clone();
        if let Some(why) = &self.why {
            output::tell(why);
        }
        if let Some(port) = self.metrics {
            let (control, node) = (running.control.clone(), running.node.clone());
            let source = running.source.unwrap_or_else(|| Arc::new(Plain { control, node }));
            let address = port.address().context("the metrics port has no address")?;
            port.answer(source).context("cannot start a thread for the metrics")?;
            output::tell(&format!("metrics on http://{address}/metrics"));
        }
        if let Some(stats) = self.stats {
            stats
                .answer(running.control, running.node)
                .context("cannot start a thread for the statistics socket")?;
        }
        lock(&stop).serve(&running.address, running.drain);
        if let Some(reload) = running.reload {
            // There is only one server.
            let _ = hang_up.reload.set(reload);
        }
        (running.until_ready)();
        // A closed output does not stop the server.
        let _ = output::print(&format!("listening on {}", running.address));
        let drained = (running.join)();
        sentences(&drained, driver).iter().for_each(|sentence| output::tell(sentence));
        starvation(control.stats().total.accepts_starved).iter().for_each(|sentence| output::tell(sentence));
        if !drained.workers_left.is_empty() {
            if let Some(error) = &drained.accept_error {
                output::tell(&error.to_string());
            }
            return Err(WorkersHang::now(&drained.workers_left).into());
        }
        drained.accept_error.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Leaves half of the descriptors to files: each connection may have one open.
    pub(crate) fn reserve_for_files(&mut self) {
        self.config.engine.limits.descriptors_reserved = usize::MAX;
    }

    /// Other code opens logs anew at SIGHUP, and reports that.
    pub(crate) fn reopens_logs(&mut self) {
        self.reopens_logs = true;
    }

    /// Serves metrics there, unless the command line gave an address.
    pub(crate) fn metrics_at(&mut self, address: Option<SocketAddr>) -> Result<()> {
        if self.metrics.is_none() {
            self.metrics = address.map(metrics_port).transpose()?;
        }
        Ok(())
    }

    /// The number of workers.
    pub(crate) fn workers(&self) -> usize {
        self.config.workers
    }

    /// The driver of the workers, by name.
    pub(crate) fn driver(&self) -> &'static str {
        match self.config.engine.driver {
            DriverChoice::Named(driver) => driver.name(),
            DriverChoice::Auto => "auto",
        }
    }

    /// Refuses to listen where other machines can connect, unless a flag insists: passwords and orders cross the
    /// network in plain text.
    pub(crate) fn refuse_insecure(&self, is_insisted: bool) -> Result<()> {
        refuse_insecure("--listen", &self.config.listen, is_insisted)
    }
}

/// The same for an address that this flag or key gives.
pub(crate) fn refuse_insecure(name: &str, address: &Address, is_insisted: bool) -> Result<()> {
    match address {
        Address::Tcp(address) if !address.ip().is_loopback() && !is_insisted => Err(UsageError(format!(
            "{name} {address}: passwords and orders would cross the network unprotected; listen on 127.0.0.1 \
             behind something that encrypts, or add --insecure"
        ))
        .into()),
        _ => Ok(()),
    }
}

/// The effect of SIGHUP.
#[derive(Default)]
struct HangUp {
    /// Set when the server runs, if it can read something again.
    reload: OnceLock<Box<dyn Fn() + Send + Sync>>,
    is_acting: AtomicBool,
    is_repeated: AtomicBool,
}

impl HangUp {
    /// Reads again, or reports that there is nothing to read. On a separate thread: that may take some time, the
    /// reader of our output may block us, and the next signal may ask for the end. A signal meanwhile is one more
    /// request, since a file may have changed after it was read.
    fn act(this: &Arc<Self>) {
        this.is_repeated.store(true, Ordering::SeqCst);
        if this.is_acting.swap(true, Ordering::SeqCst) {
            return;
        }
        let acting = Arc::clone(this);
        let act = move || {
            loop {
                while acting.is_repeated.swap(false, Ordering::SeqCst) {
                    acting.once();
                }
                acting.is_acting.store(false, Ordering::SeqCst);
                let is_left = acting.is_repeated.load(Ordering::SeqCst);
                if !is_left || acting.is_acting.swap(true, Ordering::SeqCst) {
                    return;
                }
            }
        };
        if thread::Builder::new().name("weir-hang-up".into()).spawn(act).is_err() {
            // Without memory for a thread nothing is read; the next signal tries again.
            this.is_acting.store(false, Ordering::SeqCst);
        }
    }

    fn once(&self) {
        match self.reload.get() {
            Some(reload) => reload(),
            None => output::tell(
                "SIGHUP is ignored, for there is nothing to read anew; SIGTERM ends the server in good order",
            ),
        }
    }
}

/// Reports once that accepting pauses, because clients see only a silent server. On a separate thread: the reader of
/// our output may block us.
fn tell_starved() {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        let tell = || {
            output::tell(
                "accepting pauses: no descriptor or no memory is left for another connection, so that new ones wait in \
                 the kernel; raise the limit (`ulimit -n`), or serve fewer at a time",
            );
        };
        // Without memory for a thread, the report at the end has it.
        let _ = thread::Builder::new().name("weir-starved".into()).spawn(tell);
    });
}

/// How often accepting paused, if it did.
fn starvation(pauses: u64) -> Option<String> {
    (pauses > 0).then(|| {
        format!("accepting paused {pauses} times: no descriptor or no memory was left for another connection")
    })
}

/// The report of a server that has ended: empty, if nothing was unusual.
fn sentences(drained: &Drained, driver: Driver) -> Vec<String> {
    let mut sentences = Vec::new();
    match drained.connections_cut {
        0 => {}
        1 => sentences.push("drained: 1 connection was cut at the deadline".into()),
        cut => sentences.push(format!("drained: {cut} connections were cut at the deadline")),
    }
    if drained.connections_refused > 0 {
        let why = match driver {
            Driver::Select => "select can watch no descriptors from 1024 on; use epoll or poll",
            Driver::Blocking => "there were as many threads as there may be; use another driver",
            _ => "there were as many as one worker may have; use more workers",
        };
        sentences.push(format!("refused {} connections: {why}", drained.connections_refused));
    }
    match drained.tasks_panicked {
        0 => {}
        1 => sentences.push("1 task panicked: its connection was closed, and the others went on".into()),
        panics => {
            sentences.push(format!(
                "{panics} tasks panicked: their connections were closed, and the others went on"
            ));
        }
    }
    sentences
}

fn config(shared: &ServeShared, listen: &str) -> Result<(ServerConfig, Option<String>)> {
    let mut engine = engine::config(&shared.driver, &shared.options)?;
    let listen = engine::address("--listen", listen)?;
    engine::check_pin(&shared.pin)?;
    let drain_limit = engine::seconds("--drain-limit", shared.drain_limit)?;
    let why = engine::resolve(&mut engine, &shared.options)?;
    let mut config = ServerConfig::new(engine, listen);
    config.backlog = shared.backlog;
    config.workers = shared.workers;
    config.cpus.clone_from(&shared.pin);
    config.drain_limit = drain_limit;
    config.on_starved = Some(tell_starved);
    config.accept = match shared.accept {
        Accept::Reuseport => AcceptMode::ReusePort,
        Accept::Acceptor => AcceptMode::Acceptor,
        Accept::Exclusive => AcceptMode::Exclusive,
    };
    Ok((config, why))
}

/// The named statistics socket, or the default one, where the monitor looks. If the default one is not available, the
/// server runs without it.
fn stats_socket(named: Option<&str>) -> Result<Option<StatsSocket>> {
    let name = match named {
        Some(target::NO_SOCKET) => return Ok(None),
        Some(name) => name,
        None => &target::default_socket(std::process::id()),
    };
    match StatsSocket::bind(name) {
        Ok(socket) => Ok(Some(socket)),
        Err(error) if named.is_none() => {
            output::tell(&format!(
                "no statistics socket, so that `weir top` sees only threads: {name}: {error}; name another one with \
                 --stats-socket @NAME"
            ));
            Ok(None)
        }
        Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => {
            let text = format!("--stats-socket {name}: {error}; write @name, at most 107 bytes, or off");
            Err(UsageError(text).into())
        }
        Err(error) => Err(anyhow::Error::new(error)
            .context(format!("--stats-socket {name} cannot be had; choose another name"))),
    }
}

fn metrics_port(address: SocketAddr) -> Result<MetricsPort> {
    MetricsPort::bind(address).map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidInput => UsageError(format!("--metrics: {error}")).into(),
        _ => anyhow::Error::new(error)
            .context(format!("--metrics {address} cannot be listened on; choose another port")),
    })
}

/// Explains the error of an address that is no port, a Unix path or an abstract name.
fn explain(error: ServeError, listen: &Address) -> anyhow::Error {
    let is_in_use = matches!(&error, ServeError::Listen { source, .. }
        if source.kind() == std::io::ErrorKind::AddrInUse);
    match listen {
        Address::Unix(_) if is_in_use => {
            anyhow::anyhow!(
                "--listen {listen}: another process listens there, and did so for a second; end it (`ss -xlp` shows it) \
                 or choose another path"
            )
        }
        Address::Abstract(_) if is_in_use => {
            anyhow::anyhow!(
                "--listen {listen}: the name stayed taken for a second; `ss -xlp` shows who has it; choose another one"
            )
        }
        _ => error.into(),
    }
}

/// The effect of signals: the first one drains, also before there is a server; the second one ends at once.
#[derive(Default)]
struct Stop {
    is_requested: bool,
    drain: Option<Box<dyn Fn() + Send>>,
    /// Path to remove if no other code will.
    path: Option<PathBuf>,
}

impl Stop {
    fn ask(&mut self, count: usize) {
        if count > 1 {
            if let Some(path) = &self.path {
                // It may be gone already.
                let _ = fs::remove_file(path);
            }
            std::process::exit(130);
        }
        self.is_requested = true;
        if let Some(drain) = &self.drain {
            drain();
        }
    }

    fn serve(&mut self, address: &Address, drain: Box<dyn Fn() + Send>) {
        if let Address::Unix(path) = address {
            self.path = Some(path.clone());
        }
        if self.is_requested {
            drain();
        }
        self.drain = Some(drain);
    }
}

fn lock(stop: &Mutex<Stop>) -> std::sync::MutexGuard<'_, Stop> {
    stop.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_tells_of_cut_and_refused_connections_and_of_nothing_else() {
        assert!(sentences(&Drained::default(), Driver::Epoll).is_empty());
        let drained =
            Drained { connections_cut: 2, connections_refused: 7, tasks_panicked: 3, ..Drained::default() };
        let said = sentences(&drained, Driver::Select);
        assert_eq!(starvation(0), None);
        assert!(starvation(7).expect("it paused").starts_with("accepting paused 7 times"));
        assert_eq!(said[0], "drained: 2 connections were cut at the deadline");
        assert_eq!(
            said[1],
            "refused 7 connections: select can watch no descriptors from 1024 on; use epoll or poll"
        );
        assert_eq!(said[2], "3 tasks panicked: their connections were closed, and the others went on");
    }
}
