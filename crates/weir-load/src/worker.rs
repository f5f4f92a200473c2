//! One thread of the generator: a runtime, its part of the connections, and its notes.
//!
//! A worker starts its runtime, opens its connections and reports that; then it waits for the common start. From then
//! on it wakes a hundred times a second to publish its counts and to check whether the window was closed. Messages in
//! flight then have a short time to come back, so that servers see an orderly end.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, Sender},
    },
    time::Duration,
};

use weir_engine::{
    Config, Runtime, TaskPanic,
    net::Address,
    time::{Instant, monotonic, now, sleep, sleep_until},
    try_spawn,
};
use weir_record::{failure::FailureCounts, load::parts::dealt};
use weir_sys::clock::thread_cpu_ns;

use crate::{
    close_backoff::CloseBackoff,
    closed,
    connection::Connection,
    connection_per_message::run_per_request,
    connector::Connector,
    error::LoadError,
    failure::{self, Class},
    open::{self, OpenLoop},
    outcome::{Common, Outcome},
    pacer::{Backlog, Pacer, Poisson, Share, Uniform},
    recorder::{FirstFailure, Outbox, Recorder, WindowBounds},
    spec::{Arrivals, LoadSpec, Protocol},
    spin::SpinGate,
    virtual_user::{Trigger, VirtualUser},
    worker_state::{Connected, Pauses, WorkerState},
    workload::{End, Workload},
};

/// Connections that a worker opens at the same time: fewer than any listener's backlog. When this many attempts have
/// timed out, the remaining connections would time out too, and are not tried before the load.
const CONNECTS_MAX: usize = 64;
/// How often a worker wakes.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Wakes between two checks whether the CPU is free.
pub(crate) const POLLS_PER_SPIN_CHECK: u32 = 10;
/// How long messages in flight at the end of a closed loop may take to come back.
const DRAIN_MAX: Duration = Duration::from_millis(100);

/// A worker's specification.
#[derive(Clone)]
pub(crate) struct Plan<'a> {
    pub(crate) spec: &'a LoadSpec,
    pub(crate) target: Address,
    /// This worker among those of all generators, from 0. The specification's number of workers is that of all.
    pub(crate) worker: u32,
    /// The first worker of this process.
    pub(crate) first: u32,
    pub(crate) bounds: Arc<WindowBounds>,
    pub(crate) outbox: Outbox,
    pub(crate) published: Arc<Published>,
    /// State that all workers share for the protocol.
    pub(crate) common: Common,
}

/// Receives a workload of any type: a run, or the slices of several servers.
pub(crate) trait WorkloadVisitor {
    /// The result.
    type Outcome;

    /// The protocol of the workload.
    fn protocol(&self) -> &Protocol;

    /// Runs the workload to its end.
    fn visit<W: RunnableWorkload>(&self) -> Self::Outcome;
}

/// A workload that workers can create and run.
pub(crate) trait RunnableWorkload: Workload {
    /// Its specification.
    type Spec: 'static;

    /// A worker's part of a load.
    fn of(plan: &Plan<'_>, spec: &Self::Spec) -> Self;

    /// Keeps one user busy until the run ends: its connection, and those that follow it.
    fn run_user(
        shared: Rc<WorkerState<Self>>,
        user: VirtualUser<Self>,
    ) -> impl Future<Output = ()> + 'static {
        run_user(shared, user)
    }
}

/// A worker's counts while it runs. The worker is the only writer.
#[derive(Debug, Default)]
pub(crate) struct Published {
    /// Messages completed since the beginning.
    pub(crate) completed: AtomicU64,
    /// Failures since the beginning.
    pub(crate) errors: AtomicU64,
    /// Messages in flight.
    pub(crate) in_flight: AtomicU64,
    /// Time spent spinning on the clock.
    pub(crate) spun_ns: AtomicU64,
    /// CPU time its thread used until it ended; 0 before. After the thread has ended there is no other source.
    pub(crate) cpu_ns: AtomicU64,
    /// When the last message of a counted run ended; 0 before.
    pub(crate) finished_ns: AtomicU64,
    /// Text of the last failure.
    pub(crate) failure_last: Mutex<Option<String>>,
}

/// A worker's message before the start.
pub(crate) enum Event {
    /// The runtime is ready.
    Ready { worker: usize, driver: &'static str, thread: u32 },
    /// Every connection was tried.
    Connected { opened: usize, failures: FailureCounts, failure_last: Option<String> },
    /// The worker cannot continue.
    Failed(LoadError),
}

/// Connections opened before the start, by place; a place is empty when opening failed or happens later.
#[derive(Default)]
pub(crate) struct Opened {
    pub(crate) connections: Vec<Option<Connected>>,
    failures: FailureCounts,
    failure_first: Option<FirstFailure>,
    pub(crate) failure_last: Option<String>,
}

/// Runs a worker to its end. `begin` gives the time of the common start; it is closed if there is none. `dispatch`
/// knows the workload.
pub(crate) fn run(
    plan: &Plan<'_>,
    events: &Sender<Event>,
    begin: &Receiver<u64>,
    dispatch: impl FnOnce(&RunContext<'_>) -> Option<Outcome>,
) -> Option<Outcome> {
    let runtime = match start(plan, 1) {
        Ok(runtime) => runtime,
        Err(error) => {
            // A coordinator that no longer listens already has a reason to stop.
            let _ = events.send(Event::Failed(error));
            return None;
        }
    };
    let ready =
        Event::Ready { worker: plan.place(), driver: runtime.driver().name(), thread: thread_number() };
    events.send(ready).ok()?;
    let outcome = dispatch(&RunContext { plan, runtime: &runtime, events, begin });
    plan.published.cpu_ns.store(thread_cpu_ns().unwrap_or(0), Ordering::Release);
    outcome
}

/// A worker that is ready to run any workload.
pub(crate) struct RunContext<'a> {
    plan: &'a Plan<'a>,
    runtime: &'a Runtime,
    events: &'a Sender<Event>,
    begin: &'a Receiver<u64>,
}

impl WorkloadVisitor for RunContext<'_> {
    type Outcome = Option<Outcome>;

    fn protocol(&self) -> &Protocol {
        &self.plan.spec.protocol
    }

    /// Opens the connections, waits for the common start, and runs the load.
    fn visit<W: RunnableWorkload>(&self) -> Option<Outcome> {
        let RunContext { plan, runtime, .. } = self;
        let workload = Rc::new(plan.workload::<W>());
        let connector = Rc::new(plan.connector());
        let opened = runtime.block_on(open_connections(plan, &connector, &workload));
        let count = opened.connections.iter().flatten().count();
        let (failures, failure_last) = (opened.failures, opened.failure_last.clone());
        self.events.send(Event::Connected { opened: count, failures, failure_last }).ok()?;
        let origin_ns = self.begin.recv().ok()?;
        let start = Start { connector, opened, origin_ns };
        Some(runtime.block_on(load(plan, workload, start)))
    }
}

/// Where a load begins.
struct Start {
    connector: Rc<Connector>,
    opened: Opened,
    origin_ns: u64,
}

/// Starts the runtime of a worker, for connections to this many servers.
pub(crate) fn start(plan: &Plan<'_>, targets: usize) -> Result<Runtime, LoadError> {
    let spec = plan.spec;
    if !spec.pin.is_empty() {
        let cpu = spec.pin[plan.place() % spec.pin.len()];
        weir_sys::affinity::pin_current_thread(&[cpu])
            .map_err(|error| LoadError::Environment(format!("cannot pin a thread to CPU {cpu}: {error}")))?;
    }
    let runtime = Runtime::new(&engine_config(spec, targets))?;
    // A driver that runs one handler per thread cannot carry many connections on one thread.
    runtime.block_on(async { try_spawn(async {}) }).map_err(|error| {
        LoadError::Environment(format!("the generator cannot run on this driver: {error}"))
    })?;
    Ok(runtime)
}

/// The runtime's limits, raised to what the run needs.
fn engine_config(spec: &LoadSpec, targets: usize) -> Config {
    let mut config = spec.engine.clone();
    // A load without one of its connections would be another load.
    config.task_panic = TaskPanic::Runtime;
    let sockets = targets * spec.sockets() as usize + 64;
    let limits = &mut config.limits;
    limits.sockets_max = limits.sockets_max.max(sockets);
    limits.tasks_max = limits.tasks_max.max(2 * sockets);
    limits.timers_max = limits.timers_max.max(4 * sockets);
    // The whole pipeline of a connection must fit into its queue: a message that waits there counts as in flight.
    let pipeline_bytes = spec.depth as usize * spec.request_bytes_max();
    limits.output_high_water_bytes = limits.output_high_water_bytes.max(pipeline_bytes);
    config
}

impl Plan<'_> {
    /// This worker's part of the load, as the workload of the plan's protocol.
    pub(crate) fn workload<W: RunnableWorkload>(&self) -> W {
        let Some(spec) = self.spec.protocol.spec() else {
            panic!("a workload is made of its own specification")
        };
        W::of(self, spec)
    }

    /// The state that all workers share, of the type that the plan's protocol made.
    pub(crate) fn common<T: Send + Sync + 'static>(&self) -> Arc<T> {
        let Ok(common) = Arc::clone(&self.common).downcast() else {
            panic!("a workload shares what its own specification made")
        };
        common
    }

    /// Opens this worker's connections.
    pub(crate) fn connector(&self) -> Connector {
        let sources = self.spec.protocol.0.source_addresses().unwrap_or_default();
        Connector::new(self.target.clone(), self.spec.connect_timeout, sources.to_vec())
    }

    /// This worker among those of this process, from 0.
    pub(crate) fn place(&self) -> usize {
        (self.worker - self.first) as usize
    }

    /// This worker's part of a total that is dealt in turn.
    pub(crate) fn part_of(&self, total: u64) -> u64 {
        dealt(total, self.worker, self.spec.workers)
    }

    pub(crate) fn connections(&self) -> usize {
        self.part_of(self.spec.connections.into()) as usize
    }

    fn idle_connections(&self) -> usize {
        self.part_of(self.spec.idle_connections.into()) as usize
    }

    /// Whether to open a connection before the start. A ramp opens them later. A load with one connection per message
    /// also does, except for one that shows whether the server is reachable.
    fn is_early(&self, place: usize) -> bool {
        let is_later = !self.spec.ramp_up.is_zero() || self.is_single();
        !is_later || place == 0 || place >= self.connections()
    }

    /// Whether every message has its own connection.
    fn is_single(&self) -> bool {
        self.spec.protocol.0.facts().connection_per_message
    }

    /// Messages that one connection of a closed loop, and later ones in its place, may start.
    pub(crate) fn quota(&self) -> u64 {
        self.spec.protocol.0.facts().messages_each.unwrap_or(u64::MAX)
    }

    /// Messages that this worker may start.
    fn budget(&self) -> u64 {
        match (self.spec.messages, self.quota()) {
            (None, _) => u64::MAX,
            (Some(messages), u64::MAX) => self.part_of(messages),
            (Some(_), quota) => quota.saturating_mul(self.connections() as u64),
        }
    }

    /// When the connection at `place` starts.
    pub(crate) fn begin_at(&self, origin_ns: u64, place: usize) -> Instant {
        if place >= self.connections() {
            return Instant::from_nanos(origin_ns);
        }
        let number = place as u32 * self.spec.workers + self.worker;
        let share = f64::from(number) / f64::from(self.spec.connections);
        Instant::from_nanos(origin_ns) + self.spec.ramp_up.mul_f64(share)
    }
}

/// Opens the early connections, some at a time. It gives up when the run is stopped, and on a server that does not
/// accept: that takes little longer than the time limit of one connection, however many were to be opened.
pub(crate) async fn open_connections<W: Workload>(
    plan: &Plan<'_>,
    connector: &Rc<Connector>,
    workload: &Rc<W>,
) -> Opened {
    let places = plan.connections() + plan.idle_connections();
    let opened = Rc::new(RefCell::new(Opened::default()));
    opened.borrow_mut().connections.resize_with(places, || None);
    let todo: Rc<RefCell<Vec<usize>>> =
        Rc::new(RefCell::new((0..places).rev().filter(|place| plan.is_early(*place)).collect()));
    let left = Rc::new(Cell::new(todo.borrow().len()));
    let timed_out = Rc::new(Cell::new(0));
    for _ in 0..CONNECTS_MAX.min(left.get()) {
        let (opened, todo, left) = (Rc::clone(&opened), Rc::clone(&todo), Rc::clone(&left));
        let timed_out = Rc::clone(&timed_out);
        let (connector, workload) = (Rc::clone(connector), Rc::clone(workload));
        weir_engine::spawn(async move {
            loop {
                let Some(place) = todo.borrow_mut().pop() else { return };
                let outcome = workload.connect(place, &connector).await;
                let mut opened = opened.borrow_mut();
                match outcome {
                    Ok(connected) => opened.connections[place] = Some(connected),
                    Err(error) => {
                        failure::count(&mut opened.failures, error.class, 1);
                        let (class, text) = (error.class, error.text);
                        timed_out.set(timed_out.get() + usize::from(class == Class::ConnectTimeout));
                        if timed_out.get() >= CONNECTS_MAX {
                            left.set(left.get() - todo.borrow_mut().drain(..).count());
                        }
                        let first = FirstFailure { at_ns: now().as_nanos(), class, text: text.clone() };
                        opened.failure_first.get_or_insert(first);
                        opened.failure_last = Some(text);
                    }
                }
                left.set(left.get() - 1);
            }
        });
    }
    while left.get() > 0 && plan.bounds.close_ns() == u64::MAX {
        sleep(Duration::from_millis(1)).await;
    }
    opened.take()
}

/// Runs the load from the common start to the end.
async fn load<W: RunnableWorkload>(plan: &Plan<'_>, workload: Rc<W>, start: Start) -> Outcome {
    let Start { connector, opened, origin_ns } = start;
    let shared = Rc::new(share(plan, workload, connector, origin_ns));
    opened.connections.iter().flatten().for_each(|connected| shared.connected(connected.took_ns));
    let open_loop = open_loop(plan, origin_ns).map(Rc::new);
    for (place, connected) in opened.connections.into_iter().enumerate() {
        if place >= plan.connections() {
            weir_engine::spawn(keep_idle(Rc::clone(&shared), connected, place));
        } else if let Some(trigger) = trigger(plan, open_loop.as_ref(), place) {
            let user = VirtualUser {
                place,
                connected,
                begin_at: plan.begin_at(origin_ns, place),
                trigger,
                is_single: plan.is_single(),
            };
            weir_engine::spawn(W::run_user(Rc::clone(&shared), user));
        }
    }
    if let Some(open) = &open_loop {
        let (open, shared) = (Rc::clone(open), Rc::clone(&shared));
        weir_engine::spawn(async move { open.dispatch(&shared).await });
    }
    watch(plan, &shared, open_loop.as_deref()).await;
    if let Some(open) = &open_loop {
        open.note_end(plan.bounds.close_ns());
    }
    let is_open_loop = open_loop.is_some();
    drain(&shared, is_open_loop).await;
    let now_ns = now().as_nanos();
    shared.workload.flush();
    let mut recorder = shared.recorder.borrow_mut();
    recorder.advance(now_ns);
    let window_ns = (plan.bounds.open_ns(), plan.bounds.close_ns());
    let missed = open_loop.map(|open| {
        // A counted run intends no more starts than it has messages left.
        open.pass_over(window_ns, shared.budget.get(), |intended_ns| {
            recorder.unanswered(window_ns.1, intended_ns);
        })
    });
    let late = if is_open_loop && !plan.bounds.is_given_up() { recorder.in_flight() } else { 0 };
    let mut leftover = recorder.finish(now_ns);
    // They had the full time limit of a message.
    leftover.failures.cut_off_at_end -= late;
    leftover.failures.response_timeout += late;
    leftover.failures.merge(&opened.failures);
    Outcome {
        leftover,
        missed: missed.unwrap_or_default(),
        completed: recorder.completed(),
        failure_first: opened.failure_first.or_else(|| recorder.failure_first().cloned()),
        connections: recorder.connections().map(|notes| notes.clone()),
        totals: shared.workload.totals(),
    }
}

/// The state that the tasks of this worker share.
pub(crate) fn share<W: Workload>(
    plan: &Plan<'_>,
    workload: Rc<W>,
    connector: Rc<Connector>,
    origin_ns: u64,
) -> WorkerState<W> {
    let spec = plan.spec;
    let recorder = Recorder::new(
        plan.place(),
        spec.sections(),
        Arc::clone(&plan.bounds),
        origin_ns,
        Arc::clone(&plan.outbox),
    );
    WorkerState {
        workload,
        connector,
        depth: spec.depth as usize,
        response_timeout: spec.response_timeout,
        bounds: Arc::clone(&plan.bounds),
        recorder: RefCell::new(recorder),
        close_backoff: RefCell::new(CloseBackoff::default()),
        awaiting_close: Cell::new(0),
        budget: Cell::new(plan.budget()),
        connection_next: Cell::new(plan.worker),
        connection_step: spec.workers,
        is_over: Cell::new(false),
        parking: None,
    }
}

/// The schedule of an open loop.
pub(crate) fn open_loop<W: Workload>(plan: &Plan<'_>, origin_ns: u64) -> Option<OpenLoop<W>> {
    let Arrivals::Open { rate_per_second, poisson, spin } = plan.spec.arrivals else { return None };
    let share = Share { rate_per_second, worker: plan.worker, workers: plan.spec.workers };
    let pacer: Box<dyn Pacer> =
        if poisson { Box::new(Poisson::new(share, plan.spec.seed)) } else { Box::new(Uniform::new(share)) };
    let spin_ns = u64::try_from(spin.as_nanos()).unwrap_or(u64::MAX);
    Some(OpenLoop::new(Backlog::new(pacer, origin_ns), plan.connections(), spin_ns))
}

/// What triggers the messages of a place.
fn trigger<W: Workload>(
    plan: &Plan<'_>,
    open_loop: Option<&Rc<OpenLoop<W>>>,
    place: usize,
) -> Option<Trigger<W>> {
    match plan.spec.arrivals {
        Arrivals::Closed { think } => Some(Trigger::Closed { think, quota: Cell::new(plan.quota()) }),
        Arrivals::Open { .. } => open_loop.map(|open| Trigger::Open { open: Rc::clone(open), place }),
    }
}

/// Keeps one user busy, with one connection for all messages or one for each.
pub(crate) async fn run_user<W: Workload>(shared: Rc<WorkerState<W>>, user: VirtualUser<W>) {
    if user.is_single {
        run_per_request(shared, user).await;
    } else {
        run_persistent(shared, user).await;
    }
}

/// Keeps one connection open and busy; reopens it after a failure, and after the server has closed it.
async fn run_persistent<W: Workload>(shared: Rc<WorkerState<W>>, user: VirtualUser<W>) {
    let VirtualUser { place, mut connected, begin_at, trigger, .. } = user;
    sleep_until(begin_at).await;
    let mut pauses = Pauses::default();
    while shared.is_running() {
        let opened = match connected.take() {
            Some(connected) => Ok(connected),
            None => shared.connect().await,
        };
        let connection = match opened {
            Ok(connected) => Rc::new(Connection::new(&shared, connected, shared.depth, place)),
            Err(failure) => {
                shared.failed(&failure, 0);
                pauses.pause().await;
                continue;
            }
        };
        let outcome = match &trigger {
            Trigger::Closed { think, quota } => closed::exchange(&shared, &connection, *think, quota).await,
            Trigger::Open { open, place } => open::exchange(&shared, open, *place, &connection).await,
        };
        let Err(end) = outcome else { return connection.park(&shared, place) };
        let has_failed = matches!(end, End::Failed(_));
        if connection.completed() > 0 {
            pauses.reset();
        }
        let is_fruitful = connection.completed() > 0 && !has_failed;
        leave(&shared, &trigger, connection, end).await;
        if shared.is_exhausted() || trigger.is_over() {
            return;
        }
        match &trigger {
            _ if !is_fruitful => pauses.pause().await,
            Trigger::Closed { think, .. } if !think.is_zero() => sleep(*think).await,
            Trigger::Closed { .. } | Trigger::Open { .. } => {}
        }
    }
}

/// Handles a connection that has ended.
async fn leave<W: Workload>(
    shared: &WorkerState<W>,
    trigger: &Trigger<W>,
    connection: Rc<Connection<W>>,
    end: End,
) {
    if let End::Failed(failure) = &end {
        connection.failed(shared, failure);
    } else {
        withdraw(shared, trigger, &connection);
    }
    // The dispatcher holds a connection only while it starts a message.
    let Some(connection) = Rc::into_inner(connection) else { return };
    match end {
        End::Failed(_) => connection.abort(),
        End::Closed => {}
        End::Closing => {
            if let Err(failure) = connection.await_close(shared).await {
                shared.failed(&failure, 0);
            }
        }
    }
}

/// Takes back requests sent after an answer that closed its connection: the server has said that it will not answer
/// them, so they are sent again.
fn withdraw<W: Workload>(shared: &WorkerState<W>, trigger: &Trigger<W>, connection: &Connection<W>) {
    let pending = connection.take_pending();
    let messages = pending.len() as u64;
    if messages == 0 {
        return;
    }
    shared.recorder.borrow_mut().withdrawn(now().as_nanos(), messages);
    shared.budget.set(shared.budget.get().saturating_add(messages));
    match trigger {
        Trigger::Closed { quota, .. } => quota.set(quota.get().saturating_add(messages)),
        Trigger::Open { open, .. } => open.return_starts(&pending),
    }
}

/// Keeps one connection open and silent. Anything received on it is a failure, and so is its end unless the workload
/// allows that.
async fn keep_idle<W: Workload>(shared: Rc<WorkerState<W>>, mut connected: Option<Connected>, place: usize) {
    let mut pauses = Pauses::default();
    while shared.is_running() {
        let opened = match connected.take() {
            Some(connected) => Ok(connected),
            None => shared.connect().await,
        };
        let failure = match opened {
            Err(failure) => Some(failure),
            Ok(connected) => {
                let connection = Connection::new(&shared, connected, 0, place);
                loop {
                    match std::future::poll_fn(|context| connection.poll_arrival(&shared, context)).await {
                        Err(End::Failed(failure)) => break Some(failure),
                        Err(End::Closed | End::Closing) => break None,
                        Ok(_) => {}
                    }
                }
            }
        };
        if let Some(failure) = failure {
            shared.failed(&failure, 0);
        }
        pauses.pause().await;
    }
}

/// Publishes counts and checks the bounds until the window is closed.
async fn watch<W: Workload>(plan: &Plan<'_>, shared: &WorkerState<W>, open: Option<&OpenLoop<W>>) {
    let published = &plan.published;
    let mut gate = SpinGate::default();
    let mut polls = 0;
    while shared.is_running() {
        sleep(if plan.spec.messages.is_some() { Duration::from_millis(1) } else { POLL_INTERVAL }).await;
        shared.workload.flush();
        shared.workload.tick();
        let mut recorder = shared.recorder.borrow_mut();
        recorder.advance(now().as_nanos());
        published.completed.store(recorder.completed(), Ordering::Relaxed);
        published.in_flight.store(recorder.in_flight(), Ordering::Relaxed);
        let errors = recorder.failures().errors();
        if errors != published.errors.swap(errors, Ordering::Relaxed) {
            let text = recorder.failure_last().map(str::to_owned);
            *published.failure_last.lock().unwrap_or_else(PoisonError::into_inner) = text;
        }
        if shared.is_exhausted() && recorder.in_flight() == 0 {
            let finished_ns = recorder.completed_ns().max(1);
            published.finished_ns.store(finished_ns, Ordering::Release);
        }
        if let Some(open) = open {
            published.spun_ns.store(open.spun_ns(), Ordering::Relaxed);
            if polls % POLLS_PER_SPIN_CHECK == 0 {
                open.allow_spin(
                    thread_delay_ns().is_some_and(|delay| gate.poll(monotonic().as_nanos(), delay)),
                );
            }
            polls += 1;
        }
    }
}

/// Gives messages in flight time to come back, and servers a short time to close connections. In a closed loop the
/// time is short: the behaviour of a server at the end affects only a message or two of each connection. In an open
/// loop a short time would hide the late answers of a server that stalls until the end, so each message has its usual
/// time limit, and fails by the usual rule.
async fn drain<W: Workload>(shared: &WorkerState<W>, is_open_loop: bool) {
    let short = DRAIN_MAX.min(shared.response_timeout);
    let deadline = now() + short;
    let deadline_max = if is_open_loop { deadline + shared.response_timeout } else { deadline };
    let has_time = || now() < deadline || (now() < deadline_max && !shared.bounds.is_given_up());
    let is_unfinished = || shared.recorder.borrow().in_flight() > 0 || shared.awaiting_close.get() > 0;
    while is_unfinished() && has_time() {
        sleep(Duration::from_millis(1)).await;
    }
}

/// Time this thread was ready and waited for a CPU.
pub(crate) fn thread_delay_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The kernel's thread id of this thread; 0 when it cannot be read.
pub(crate) fn thread_number() -> u32 {
    let link = std::fs::read_link("/proc/thread-self").unwrap_or_default();
    link.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok()).unwrap_or(0)
}
