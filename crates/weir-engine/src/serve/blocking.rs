//! The blocking driver's side of a server: one acceptor, and a thread with a runtime for each connection.
//!
//! The acceptor has the next thread and its runtime ready before it accepts, so that a connection for which there is
//! no thread or descriptor waits in the kernel instead of being closed. A thread that waits for its client learns of a
//! drain after at most 50 ms, one that is blocked in a send after at most half a second.

use std::{
    collections::HashMap,
    io,
    os::fd::OwnedFd,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU8, Ordering},
        mpsc,
    },
    task::{Poll, Waker},
    thread,
    time::{Duration, Instant},
};

use weir_record::engine::EngineStats;

use super::{CUTTING, DRAINING, Drained, SERVING, ServerConfig, Shared, lock, pin};
use crate::{
    counters::Counters,
    net::{Listener, Stream},
    runtime::{self, Runtime},
};

/// The blocking driver's connection threads.
#[derive(Debug, Default)]
pub(super) struct Connections {
    pub(super) listener: Option<OwnedFd>,
    pub(super) open: HashMap<u64, (Arc<Ending>, Arc<Counters>)>,
    /// Counters of connections that are closed.
    pub(super) retired: EngineStats,
}

/// How other threads end the handler of one blocking connection.
#[derive(Debug, Default)]
pub(super) struct Ending {
    stage: AtomicU8,
    waker: Mutex<Option<Waker>>,
}

impl Ending {
    /// From any thread. The connection's thread sees it when it has left the call it is in.
    pub(super) fn advance(&self, stage: u8) {
        self.stage.fetch_max(stage, Ordering::SeqCst);
        if let Some(waker) = lock(&self.waker).as_ref() {
            waker.wake_by_ref();
        }
    }

    /// Runs `work` on the connection's thread until it is done or cut.
    async fn govern(&self, work: impl Future<Output = ()>) {
        let mut work = std::pin::pin!(work);
        let mut known = false;
        std::future::poll_fn(|context| {
            if !std::mem::replace(&mut known, true) {
                // Before the first look: whoever changes the stage later finds the waker.
                *lock(&self.waker) = Some(context.waker().clone());
            }
            match self.stage.load(Ordering::SeqCst) {
                SERVING => {}
                DRAINING => runtime::drain_current(),
                _ => {
                    runtime::with_current(|core| core.with_driver(|driver| driver.abort_all()));
                    return Poll::Ready(());
                }
            }
            work.as_mut().poll(context)
        })
        .await;
    }
}

/// Accepting is tried again this long after there was no descriptor or no memory for a thread.
const THREAD_RETRY: Duration = Duration::from_millis(100);

/// How long a cut waits for the threads: longer than a call may block. A handler that computes for ever stays behind.
const CUT_LIMIT: Duration = Duration::from_secs(2);

/// How often a thread whose handler is done looks whether its socket is closed.
const CLOSED_LOOK: Duration = Duration::from_millis(10);

/// The blocking driver's acceptor: a thread for each connection, all of them awaited at the end.
pub(super) struct Acceptor<H> {
    pub(super) config: ServerConfig,
    pub(super) shared: Arc<Shared>,
    pub(super) handler: H,
    /// At most [`ServerConfig::blocking_connections_max`].
    pub(super) threads: Vec<thread::JoinHandle<()>>,
}

/// A thread with a runtime that waits for its connection; it ends when the sender is dropped.
struct Spare {
    connection: mpsc::SyncSender<OwnedFd>,
    thread: thread::JoinHandle<()>,
}

impl Spare {
    /// Ends the thread, which has nothing to do yet, and waits for that: it holds a descriptor.
    fn dismiss(self) {
        drop(self.connection);
        // A panic of a thread that did nothing has been printed, and concerns no connection.
        let _ = self.thread.join();
    }
}

impl<H, F> Acceptor<H>
where
    H: Fn(Stream) -> F + Clone + Send + 'static,
    F: Future<Output = ()> + 'static,
{
    pub(super) fn run(
        mut self,
        listener: OwnedFd,
        on_worker: impl Fn(usize) -> io::Result<()>,
        ready: &mpsc::Sender<io::Result<()>>,
    ) -> Drained {
        let started =
            pin(&self.config.cpus).and_then(|()| Runtime::new(&self.config.engine).map_err(io::Error::other));
        let runtime = match started {
            Ok(runtime) => runtime,
            Err(error) => {
                // The starter waits for this answer and nobody else does.
                let _ = ready.send(Err(error));
                return Drained::default();
            }
        };
        let counters = runtime.counters();
        lock(&self.shared.counters).push(Arc::clone(&counters));
        let begun = runtime.block_on(async { on_worker(0) });
        let failed = begun.is_err();
        let _ = ready.send(begun);
        if failed {
            return Drained::default();
        }
        runtime.block_on(async {
            if let Ok(listener) = Listener::from_descriptor(listener) {
                self.accept(&listener, &counters).await;
            }
        });
        cut_blocking(&self.shared, &self.threads, self.config.drain_limit, threads_left)
    }

    async fn accept(&mut self, listener: &Listener, counters: &Counters) {
        while let Some(spare) = self.prepare(counters).await {
            let Some(descriptor) = self.next_connection(listener).await else { return spare.dismiss() };
            // Fails only when the thread is gone, which it has no reason to be: the connection is closed.
            let _ = spare.connection.send(descriptor);
            self.threads.push(spare.thread);
        }
    }

    /// The next connection for which there is room. `None`: the server drains.
    async fn next_connection(&mut self, listener: &Listener) -> Option<OwnedFd> {
        loop {
            let stream = match listener.accept().await {
                Ok(stream) => stream,
                // One connection too many is closed; the others and the server go on.
                Err(error) if error.kind() == io::ErrorKind::QuotaExceeded => continue,
                Err(_) => return None,
            };
            self.threads.retain(|thread| !thread.is_finished());
            if self.threads.len() < self.config.blocking_connections_max
                && let Ok(descriptor) = stream.into_descriptor()
            {
                return Some(descriptor);
            }
        }
    }

    /// A thread for the next connection, as soon as there can be one. `None`: the server drains.
    async fn prepare(&self, counters: &Counters) -> Option<Spare> {
        while self.shared.stage.load(Ordering::SeqCst) == SERVING {
            match self.start_thread() {
                Ok(spare) => return Some(spare),
                Err(_) => {
                    counters.accepts_starved.increment();
                    crate::time::sleep(THREAD_RETRY).await;
                }
            }
        }
        None
    }

    fn start_thread(&self) -> io::Result<Spare> {
        let (engine, shared, handler) =
            (self.config.engine.clone(), Arc::clone(&self.shared), self.handler.clone());
        let (connection, arrived) = mpsc::sync_channel(1);
        let (ready, started) = mpsc::channel();
        let serve = move || match Runtime::new(&engine) {
            Ok(runtime) => {
                let _ = ready.send(Ok(()));
                if let Ok(descriptor) = arrived.recv() {
                    serve_blocking(&runtime, descriptor, engine.limits.linger, &shared, handler);
                }
            }
            Err(error) => _ = ready.send(Err(io::Error::other(error))),
        };
        let thread = thread::Builder::new().name("weir-connection".into()).stack_size(256 << 10);
        let thread = thread.spawn(serve)?;
        started.recv().unwrap_or_else(|_| Err(io::Error::other("the thread ended early")))?;
        Ok(Spare { connection, thread })
    }
}

fn threads_left(threads: &[thread::JoinHandle<()>]) -> usize {
    threads.iter().filter(|thread| !thread.is_finished()).count()
}

/// An entry of [`Connections`]: whatever ends the thread, a panic of the handler too, ends the entry.
struct Open<'a> {
    shared: &'a Shared,
    serial: u64,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let mut connections = lock(&self.shared.blocking);
        if let Some((_, counters)) = connections.open.remove(&self.serial) {
            connections.retired.merge(&counters.snapshot());
        }
    }
}

/// One connection, on a thread of its own.
fn serve_blocking<H, F>(runtime: &Runtime, descriptor: OwnedFd, linger: Duration, shared: &Shared, handler: H)
where
    H: Fn(Stream) -> F,
    F: Future<Output = ()>,
{
    let serial = shared.serial.fetch_add(1, Ordering::Relaxed);
    let ending = Arc::new(Ending::default());
    lock(&shared.blocking).open.insert(serial, (Arc::clone(&ending), runtime.counters()));
    let _open = Open { shared, serial };
    // A drain that has begun before the entry was there has not found it.
    ending.advance(shared.stage.load(Ordering::SeqCst));
    runtime.block_on(ending.govern(async {
        if let Ok(stream) = Stream::from_descriptor(descriptor) {
            handler(stream).await;
        }
        let deadline = crate::time::now() + linger;
        let is_open = || runtime::with_current(|core| core.with_driver(|driver| driver.sockets() > 0));
        while is_open() == Some(true) && crate::time::now() < deadline {
            crate::time::sleep(CLOSED_LOOK).await;
        }
    }));
}

/// Waits for the connection threads; cuts their sockets at the deadline.
fn cut_blocking(
    shared: &Shared,
    threads: &[thread::JoinHandle<()>],
    limit: Duration,
    left: impl Fn(&[thread::JoinHandle<()>]) -> usize,
) -> Drained {
    let deadline = Instant::now() + limit;
    while left(threads) > 0 && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(1));
    }
    let connections_cut = left(threads);
    if connections_cut > 0 {
        shared.stage.store(CUTTING, Ordering::SeqCst);
        lock(&shared.blocking).open.values().for_each(|(ending, _)| ending.advance(CUTTING));
        let end = Instant::now() + CUT_LIMIT;
        while left(threads) > 0 && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
    }
    Drained { connections_cut }
}
