//! The blocking driver's side of a server: one acceptor, and a thread with a runtime for each connection.
//!
//! The acceptor has the next thread and its runtime ready before it accepts, so that a connection for which there is
//! no thread or descriptor waits in the kernel instead of being closed. A thread whose connection has ended waits for
//! the next one, with its runtime and its warm buffers; a few threads wait in this way, the others end. So a
//! connection costs a lock at its begin and at its end, and a wake-up, and no cost grows with the number of
//! connections.
//!
//! A thread that waits for its client notices a drain after at most 50 ms, one that is blocked in a send after at
//! most half a second.

use std::{
    collections::VecDeque,
    io,
    os::fd::OwnedFd,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicU8, Ordering},
        mpsc,
    },
    task::{Poll, Waker},
    thread,
    time::{Duration, Instant},
};

use weir_engine_types::EngineStats;

use super::{CUTTING, DRAINING, Failures, SERVING, ServerConfig, ServerState, lock, pin};
use crate::{
    config::Config,
    counters::Counters,
    executor,
    net::{Listener, Stream},
    runtime::Runtime,
    slab::{Slab, SlotId},
    time,
};

/// Threads that may wait for a connection; each has a descriptor.
const SPARES_MAX: usize = 16;

/// Wake-ups and calls that may wait for a thread: its one future is woken by the drain, and no calls are sent to it.
const REMOTE_QUEUE_MAX: usize = 8;

/// The threads of all connections.
#[derive(Debug)]
pub(super) struct Threads {
    table: Mutex<ThreadTable>,
    /// A connection has arrived, or accepting is over.
    arrival: Condvar,
    /// A thread has ended.
    departure: Condvar,
}

#[derive(Debug)]
struct ThreadTable {
    listener: Option<OwnedFd>,
    threads: Slab<(Arc<Ending>, Arc<Counters>)>,
    /// Counters of threads that have ended.
    retired: EngineStats,
    /// Connections for threads that wait; at most one for each waiting thread, and one for a thread that starts.
    arrived: VecDeque<OwnedFd>,
    /// Connections in that queue, and those that threads serve.
    connections: usize,
    /// Waiting threads.
    spares: usize,
    /// No further connection arrives.
    is_over: bool,
    /// The clocks are on, including those of threads that start from now on.
    is_timed: bool,
}

impl Default for Threads {
    fn default() -> Self {
        let table = ThreadTable {
            listener: None,
            threads: Slab::new(usize::MAX),
            retired: EngineStats::default(),
            arrived: VecDeque::new(),
            connections: 0,
            spares: 0,
            is_over: false,
            is_timed: false,
        };
        Self { table: Mutex::new(table), arrival: Condvar::new(), departure: Condvar::new() }
    }
}

impl Threads {
    /// Stores the listener, which a drain shuts down.
    pub(super) fn listen(&self, listener: OwnedFd) {
        lock(&self.table).listener = Some(listener);
    }

    /// The counters of all threads, including ended ones.
    pub(super) fn stats(&self) -> EngineStats {
        let table = lock(&self.table);
        let mut sum = table.retired;
        table.each().for_each(|(_, counters)| sum.merge(&counters.snapshot()));
        sum
    }

    /// Switches the clocks of all threads.
    pub(super) fn time_calls(&self, on: bool) {
        let mut table = lock(&self.table);
        table.is_timed = on;
        table.each().for_each(|(_, counters)| counters.clock.switch(on));
    }

    /// Drains all threads and the acceptor.
    pub(super) fn drain(&self) {
        let table = lock(&self.table);
        table.each().for_each(|(ending, _)| ending.advance(DRAINING));
        if let Some(listener) = &table.listener {
            let _ = rustix::net::shutdown(listener, rustix::net::Shutdown::Both);
        }
    }

    /// Whether a waiting thread is free for the next connection.
    fn has_spare(&self) -> bool {
        let table = lock(&self.table);
        table.spares > table.arrived.len()
    }

    fn connections(&self) -> usize {
        lock(&self.table).connections
    }

    fn give(&self, connection: OwnedFd) {
        let mut table = lock(&self.table);
        table.connections += 1;
        table.arrived.push_back(connection);
        drop(table);
        self.arrival.notify_one();
    }

    /// Waits for the next connection; `had_connection`: the thread has served one before. `None`: there are no more,
    /// or enough other threads wait.
    fn next(&self, had_connection: bool) -> Option<OwnedFd> {
        let mut table = lock(&self.table);
        table.connections -= usize::from(had_connection);
        if table.spares >= SPARES_MAX && table.arrived.is_empty() {
            return None;
        }
        table.spares += 1;
        let next = loop {
            let next = table.arrived.pop_front();
            if next.is_some() || table.is_over {
                break next;
            }
            table = self.arrival.wait(table).unwrap_or_else(std::sync::PoisonError::into_inner);
        };
        table.spares -= 1;
        next
    }

    /// Ends the waiting threads.
    fn end(&self) {
        lock(&self.table).is_over = true;
        self.arrival.notify_all();
    }

    /// Waits until no thread is left, at most for `limit`. Returns the number of remaining connections.
    fn wait_for_departures(&self, limit: Duration) -> usize {
        let deadline = Instant::now() + limit;
        let mut table = lock(&self.table);
        while table.threads.len() > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.departure.wait_timeout(table, left);
            table = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
        table.connections
    }
}

impl ThreadTable {
    fn each(&self) -> impl Iterator<Item = &(Arc<Ending>, Arc<Counters>)> {
        self.threads.ids().into_iter().filter_map(|id| self.threads.get(id))
    }
}

/// The means by which other threads end the handler of one blocking connection.
#[derive(Debug, Default)]
pub(super) struct Ending {
    stage: AtomicU8,
    waker: Mutex<Option<Waker>>,
}

impl Ending {
    /// Callable from any thread. The connection's thread sees it after its current call returns.
    pub(super) fn advance(&self, stage: u8) {
        self.stage.fetch_max(stage, Ordering::SeqCst);
        if let Some(waker) = lock(&self.waker).as_ref() {
            waker.wake_by_ref();
        }
    }

    /// Runs `work` on the connection's thread until it is done or its time is up.
    async fn govern(&self, work: impl Future<Output = ()>) {
        let mut work = std::pin::pin!(work);
        let mut known = false;
        std::future::poll_fn(|context| {
            if !std::mem::replace(&mut known, true) {
                // Before the first check: a thread that changes the stage later finds the waker.
                *lock(&self.waker) = Some(context.waker().clone());
            }
            match self.stage.load(Ordering::SeqCst) {
                SERVING => {}
                DRAINING => executor::drain_current(),
                _ => {
                    executor::with_current(|core| core.with_driver(|driver| driver.abort_all()));
                    return Poll::Ready(());
                }
            }
            work.as_mut().poll(context)
        })
        .await;
    }
}

/// Pause before accepting is tried again when there was no descriptor or no memory for a thread.
const THREAD_RETRY: Duration = Duration::from_millis(100);

/// How long a cut waits for the threads: longer than a call may block. A handler that never ends is left behind.
const CUT_LIMIT: Duration = Duration::from_secs(2);

/// Interval at which a thread whose handler is done checks whether its socket is closed.
const CLOSED_LOOK: Duration = Duration::from_millis(10);

/// The blocking driver's acceptor: a thread for each connection, all of which it waits for at the end.
pub(super) struct Acceptor<H> {
    pub(super) config: ServerConfig,
    pub(super) shared: Arc<ServerState>,
    pub(super) handler: H,
}

impl<H, F> Acceptor<H>
where
    H: Fn(Stream) -> F + Clone + Send + 'static,
    F: Future<Output = ()> + 'static,
{
    /// Returns the number of connections cut.
    pub(super) fn run(
        self,
        listener: OwnedFd,
        on_worker: impl Fn(usize) -> io::Result<()>,
        ready: &mpsc::Sender<io::Result<()>>,
    ) -> usize {
        let started =
            pin(&self.config.cpus).and_then(|()| Runtime::new(&self.config.engine).map_err(io::Error::other));
        let runtime = match started {
            Ok(runtime) => runtime,
            Err(error) => {
                // Only the starting thread waits for this answer; it may be gone.
                let _ = ready.send(Err(error));
                return 0;
            }
        };
        let counters = runtime.counters();
        if let Some(tell) = self.config.on_starved {
            counters.on_starved.get_or_init(|| tell);
        }
        lock(&self.shared.counters).push(Arc::clone(&counters));
        let begun = runtime.block_on(async { on_worker(0) });
        let failed = begun.is_err();
        let _ = ready.send(begun);
        if failed {
            return 0;
        }
        runtime.block_on(async {
            if let Ok(listener) = Listener::from_descriptor(listener) {
                self.accept(&listener, &counters).await;
            }
        });
        self.shared.blocking.end();
        cut(&self.shared, self.config.drain_limit)
    }

    async fn accept(&self, listener: &Listener, counters: &Counters) {
        while self.has_thread(counters).await {
            let Some(descriptor) = self.next_connection(listener, counters).await else { return };
            counters.clock.call(|| self.shared.blocking.give(descriptor));
        }
    }

    /// The next connection for which there is room. `None`: the server ends.
    async fn next_connection(&self, listener: &Listener, counters: &Counters) -> Option<OwnedFd> {
        let mut failures = Failures::default();
        loop {
            let stream = match listener.accept().await {
                Ok(stream) => stream,
                // A drain shuts the listener down.
                Err(_) if !self.shared.is_serving() => return None,
                Err(error) => match failures.pause(time::now()) {
                    Some(pause) => {
                        time::sleep(pause).await;
                        continue;
                    }
                    None => {
                        self.shared.give_up(0, &error);
                        return None;
                    }
                },
            };
            if self.shared.blocking.connections() >= self.config.blocking_connections_max {
                counters.accepts_refused.increment();
            } else if let Ok(descriptor) = stream.into_descriptor() {
                return Some(descriptor);
            }
        }
    }

    /// Waits until the next connection has a thread. False: the server drains.
    async fn has_thread(&self, counters: &Counters) -> bool {
        while self.shared.is_serving() {
            let mut has_thread = self.shared.blocking.has_spare();
            if !has_thread {
                has_thread = self.start_thread(counters).is_ok();
            }
            if has_thread {
                return true;
            }
            counters.starved();
            time::sleep(THREAD_RETRY).await;
        }
        false
    }

    fn start_thread(&self, counters: &Counters) -> io::Result<()> {
        let (shared, handler) = (Arc::clone(&self.shared), self.handler.clone());
        let mut engine = self.config.engine.clone();
        engine.limits.remote_queue_max = engine.limits.remote_queue_max.min(REMOTE_QUEUE_MAX);
        let (ready, started) = mpsc::channel();
        let serve = move || match ConnectionThread::take(&engine, &shared) {
            Ok(thread) => {
                let _ = ready.send(Ok(()));
                thread.serve(engine.limits.linger, handler);
            }
            Err(error) => _ = ready.send(Err(error)),
        };
        let thread = thread::Builder::new().name("weir-connection".into()).stack_size(256 << 10);
        thread.spawn(serve)?;
        let is_ready = counters.clock.call(|| started.recv());
        is_ready.unwrap_or_else(|_| Err(io::Error::other("the thread ended early")))
    }
}

/// A thread's entry among the others: it is removed when the thread ends for any reason, including a panic of the
/// handler.
struct ConnectionThread<'a> {
    shared: &'a ServerState,
    id: SlotId,
    ending: Arc<Ending>,
    /// `None`: it has ended, and closed its lingering sockets.
    runtime: Option<Runtime>,
    has_connection: bool,
}

impl<'a> ConnectionThread<'a> {
    fn take(engine: &Config, shared: &'a ServerState) -> io::Result<Self> {
        let runtime = Runtime::new(engine).map_err(io::Error::other)?;
        let ending = Arc::new(Ending::default());
        let entry = (Arc::clone(&ending), runtime.counters());
        let full = |_| io::Error::other("there are too many threads");
        let mut table = lock(&shared.blocking.table);
        entry.1.clock.switch(table.is_timed);
        let id = table.threads.insert(entry).map_err(full)?;
        drop(table);
        // A drain that began before the entry existed has missed it.
        ending.advance(shared.stage.load(Ordering::SeqCst));
        Ok(Self { shared, id, ending, runtime: Some(runtime), has_connection: false })
    }

    /// Serves one connection after the other.
    fn serve<H, F>(mut self, linger: Duration, handler: H)
    where
        H: Fn(Stream) -> F,
        F: Future<Output = ()>,
    {
        while let Some(connection) = self.next()
            && let Some(runtime) = &self.runtime
        {
            runtime.block_on(self.ending.govern(async {
                if let Ok(stream) = Stream::from_descriptor(connection) {
                    handler(stream).await;
                }
                let deadline = time::now() + linger;
                while has_sockets() && time::now() < deadline {
                    time::sleep(CLOSED_LOOK).await;
                }
            }));
            if runtime.block_on(async { has_sockets() }) {
                // Its socket still lingers, and no other connection shall share that runtime.
                return;
            }
        }
    }

    /// The next connection, from [`Threads::next`].
    fn next(&mut self) -> Option<OwnedFd> {
        let (threads, counters) = (&self.shared.blocking, self.runtime.as_ref()?.counters());
        // The end of one connection and the start of the next are the thread's own work; the wait between them is
        // not.
        let next = counters.clock.call(|| threads.next(std::mem::take(&mut self.has_connection)));
        self.has_connection = next.is_some();
        next
    }
}

impl Drop for ConnectionThread<'_> {
    fn drop(&mut self) {
        // First: a lingering socket counts as a connection until then, and its counters are not final.
        self.runtime = None;
        let mut table = lock(&self.shared.blocking.table);
        table.connections -= usize::from(self.has_connection);
        if let Some((_, counters)) = table.threads.remove(self.id) {
            counters.tasks_panicked.add(u64::from(thread::panicking()));
            table.retired.merge(&counters.snapshot());
        }
        drop(table);
        self.shared.blocking.departure.notify_all();
    }
}

/// Whether sockets of this thread's runtime are open, including lingering ones.
fn has_sockets() -> bool {
    executor::with_current(|core| core.with_driver(|driver| driver.sockets() > 0)) == Some(true)
}

/// Waits for the threads; cuts their sockets at the deadline. Returns the number of connections cut.
fn cut(shared: &ServerState, limit: Duration) -> usize {
    let connections_cut = shared.blocking.wait_for_departures(limit);
    if connections_cut > 0 {
        shared.stage.store(CUTTING, Ordering::SeqCst);
        lock(&shared.blocking.table).each().for_each(|(ending, _)| ending.advance(CUTTING));
        shared.blocking.wait_for_departures(CUT_LIMIT);
    }
    connections_cut
}
