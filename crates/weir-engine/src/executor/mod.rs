//! The core of a runtime: tasks, timers and a driver on one thread, with one kernel entry per turn.
//!
//! A turn: the ready tasks run, and after each its output is handed to the driver; calls and wake-ups from other
//! threads are taken; timers fire; then the driver waits, or only checks for events if something is already ready.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    future::Future,
    io,
    os::fd::OwnedFd,
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use crate::{
    clock::{Instant, monotonic},
    config::{Config, Driver, TaskPanic},
    counters::Counters,
    driver::{AnyDriver, DriverOps, DriverParts, Wait, dispatch},
    inbox::{self, Inbox},
    slab::{Slab, SlotId},
    timer_wheel::TimerWheel,
    wakers::Departed,
};

mod blocking_pool;
mod ports;
mod run;
mod task;
mod timers;
mod waker;

use blocking_pool::BlockingPool;
use ports::Ports;
#[cfg(feature = "handoff")]
pub(crate) use ports::{PollReason, TurnHook};
pub(crate) use run::make_task;
pub use task::JoinHandle;
use task::{Finishing, JoinState, TaskResult};
use waker::{INDEX_MAIN, TaskName, VTABLE};

/// How many rounds the end of a runtime looks for tasks that destructors of other tasks have spawned.
const END_ROUNDS_MAX: usize = 64;

type BoxedTask = Pin<Box<dyn Future<Output = ()>>>;

struct Task {
    /// Taken out while it is being polled.
    future: Option<BoxedTask>,
    /// Where its handle looks for the result, for a task that panics.
    result: Rc<dyn TaskResult>,
    queued: bool,
    rank: Rank,
}

/// The position of a task among the ready ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rank {
    Common,
    /// Behind all others.
    Last,
}

/// Everything a runtime owns. Streams and listeners keep it alive.
pub(crate) struct Core {
    number: u16,
    pub(crate) kind: Driver,
    pub(crate) driver: RefCell<AnyDriver>,
    tasks: RefCell<Slab<Task>>,
    ready: RefCell<VecDeque<SlotId>>,
    /// As `ready`, for tasks that run after those.
    ready_last: RefCell<VecDeque<SlotId>>,
    main_ready: Cell<bool>,
    /// The task whose code runs now.
    running: Cell<Option<SlotId>>,
    /// The driver's code runs now, or a panic has left it: that is the engine's own, and stays noted while values that
    /// unwinding drops call the driver.
    pub(crate) in_driver: Cell<bool>,
    task_panic: TaskPanic,
    wheel: RefCell<TimerWheel<Waker>>,
    /// Wakers of the timers that fire in one turn; kept to reuse its memory.
    due: Cell<Vec<Waker>>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) inbox: Arc<Inbox>,
    spin: Duration,
    draining: Cell<bool>,
    /// Ports of the hand-off between workers that take part in every turn.
    ports: Ports,
    /// The driver saw another thread's wake-up.
    woken: Rc<Cell<bool>>,
    /// Wakers that the driver wants dropped or woken.
    pub(crate) departed: Rc<Departed>,
    blocking: BlockingPool,
}

thread_local! {
    static CURRENT: RefCell<Option<Rc<Core>>> = const { RefCell::new(None) };
}

/// Polls the driver of a runtime. The replaced wakers are dropped when it is no longer borrowed. Wakers that a poll
/// with an answer has listed, for example those of other waiters of a failure, stay until the next call or turn.
macro_rules! poll_driver {
    ($core:expr, $driver:ident => $poll:expr) => {{
        let core: &$crate::executor::Core = &$core;
        let outside = core.in_driver.replace(true);
        let outcome = $crate::driver::dispatch!(&mut *core.driver.borrow_mut(), $driver => $poll);
        core.in_driver.set(outside);
        if outcome.is_pending() {
            core.departed.settle();
        }
        outcome
    }};
}
pub(crate) use poll_driver;

/// Calls `action` with this thread's current runtime.
pub(crate) fn with_current<R>(action: impl FnOnce(&Rc<Core>) -> R) -> Option<R> {
    // A thread that is being torn down has no runtime.
    CURRENT.try_with(|current| current.borrow().as_ref().map(action)).ok().flatten()
}

/// This thread's current runtime, or an error that there is none.
pub(crate) fn current() -> io::Result<Rc<Core>> {
    with_current(Rc::clone)
        .ok_or_else(|| io::Error::other("this needs a weir runtime: call it inside block_on"))
}

/// Wakes a task of this thread's current runtime. False: it belongs to another one.
pub(crate) fn wake_local(name: TaskName) -> bool {
    with_current(|core| {
        let own = core.number == name.runtime;
        if own {
            core.wake(name.slot);
        }
        own
    })
    .unwrap_or(false)
}

/// Runs a future as a task of the current runtime. If it panics, [`TaskPanic`] says what ends.
///
/// # Panics
/// Outside a runtime, and when the runtime is at its task limit; [`try_spawn`] does not panic.
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    match try_spawn(future) {
        Ok(handle) => handle,
        Err(error) => panic!("weir_engine::spawn: {error}"),
    }
}

/// Runs a future as a task of the current runtime; an error outside one, at the task limit, or on the blocking
/// driver, which runs one handler in each thread.
pub fn try_spawn<F>(future: F) -> io::Result<JoinHandle<F::Output>>
where
    F: Future + 'static,
    F::Output: 'static,
{
    current()?.spawn(future, Rank::Common)
}

/// Runs a future as a task that runs after all others: of the tasks that are ready together it runs last, and if one
/// of them wakes it, it still runs before the runtime checks for events. Use it for a task that processes what other
/// tasks collect, such as a writer that sends their queued records at once. Several such tasks run in the order in
/// which they were woken.
///
/// # Panics
/// As [`spawn`].
#[track_caller]
pub fn spawn_last<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    match current().and_then(|core| core.spawn(future, Rank::Last)) {
        Ok(handle) => handle,
        Err(error) => panic!("weir_engine::spawn_last: {error}"),
    }
}

/// Starts draining the current runtime.
pub(crate) fn drain_current() {
    with_current(|core| core.drain());
}

/// Whether the current runtime drains: it ends when its connections and tasks have ended. False outside a runtime.
pub fn is_draining() -> bool {
    with_current(|core| core.draining.get()).unwrap_or(false)
}

/// Waits until the current runtime drains; returns at once outside a runtime. A task that would otherwise never end
/// waits for this as well, and then ends: draining waits for every task. The drain wakes every task once, and no
/// finer unit: a task that polls futures only when their wakers were called must await this directly too.
pub async fn draining() {
    std::future::poll_fn(|_| match with_current(|core| core.draining.get()) {
        Some(false) => Poll::Pending,
        Some(true) | None => Poll::Ready(()),
    })
    .await;
}

impl Core {
    fn start(config: &Config, kind: Driver) -> io::Result<Rc<Self>> {
        let counters = Arc::new(Counters::default());
        let inbox = Inbox::new(config.limits.remote_queue_max, Arc::clone(&counters))?;
        let wake: Arc<OwnedFd> = Arc::clone(inbox.eventfd());
        let departed = Rc::new(Departed::new(&VTABLE));
        let parts = DriverParts::new(config, Arc::clone(&counters), wake, Rc::clone(&departed));
        let woken = Rc::clone(&parts.woken);
        let driver = AnyDriver::start(kind, parts)?;
        let now = dispatch!(&driver, driver => driver.virtual_now()).unwrap_or_else(monotonic);
        let timers_max = u32::try_from(config.limits.timers_max).unwrap_or(u32::MAX);
        Ok(Rc::new(Self {
            number: inbox::register(&inbox)?,
            kind,
            driver: RefCell::new(driver),
            tasks: RefCell::new(Slab::new(config.limits.tasks_max.min(INDEX_MAIN as usize))),
            ready: RefCell::new(VecDeque::new()),
            ready_last: RefCell::new(VecDeque::new()),
            main_ready: Cell::new(false),
            running: Cell::new(None),
            in_driver: Cell::new(false),
            task_panic: config.task_panic,
            wheel: RefCell::new(TimerWheel::with_max(now.as_nanos(), timers_max)),
            due: Cell::default(),
            counters,
            inbox,
            // The simulator's time does not pass while the runtime polls.
            spin: if kind == Driver::Sim { Duration::ZERO } else { config.spin },
            draining: Cell::new(false),
            ports: Ports::default(),
            woken,
            departed,
            blocking: BlockingPool::new(&config.limits),
        }))
    }

    /// Runs `action` with the driver.
    pub(crate) fn with_driver<R>(&self, action: impl FnOnce(&mut dyn DriverOps) -> R) -> R {
        let outside = self.in_driver.replace(true);
        let outcome = dispatch!(&mut *self.driver.borrow_mut(), driver => action(&mut **driver));
        self.in_driver.set(outside);
        self.departed.settle();
        outcome
    }

    pub(crate) fn is_simulated(&self) -> bool {
        self.kind == Driver::Sim
    }

    pub(crate) fn now(&self) -> Instant {
        if self.kind == Driver::Sim
            && let Ok(driver) = self.driver.try_borrow()
            && let Some(now) = dispatch!(&*driver, driver => driver.virtual_now())
        {
            return now;
        }
        monotonic()
    }

    fn spawn<F>(self: &Rc<Self>, future: F, rank: Rank) -> io::Result<JoinHandle<F::Output>>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        if self.kind == Driver::Blocking {
            let reason =
                "the blocking driver runs one handler a thread and cannot spawn a second task beside it";
            return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
        }
        let state = JoinState::new();
        let future: BoxedTask = Box::pin(Finishing::new(future, Rc::clone(&state)));
        let result: Rc<dyn TaskResult> = Rc::clone(&state) as _;
        let task = Task { future: Some(future), result, queued: true, rank };
        let limit = || io::Error::other("the runtime's limit of tasks is reached");
        let inserted = self.tasks.borrow_mut().insert(task);
        // A rejected future is dropped when no table is borrowed: its values may wake or spawn tasks.
        let slot = inserted.map_err(|_rejected| limit())?;
        self.queue(rank).borrow_mut().push_back(slot);
        Ok(JoinHandle::new(state, Rc::downgrade(self), slot))
    }

    /// Ends a task early. A task that is being polled continues to its next await.
    pub(crate) fn cancel(&self, slot: SlotId) {
        let task = self.tasks.borrow_mut().remove(slot);
        drop(task);
    }

    /// Ends every task, including those that destructors of ended tasks spawn: these would never run, and their
    /// values would keep the runtime alive. The number of rounds is limited, because a destructor may spawn another
    /// task of its kind each time: its last task is leaked. Such tasks are not refused: a refused task would be
    /// dropped, and spawn again, within that same spawn.
    fn end_tasks(&self) {
        for _ in 0..END_ROUNDS_MAX {
            let slots = self.tasks.borrow().ids();
            if slots.is_empty() {
                return;
            }
            slots.into_iter().for_each(|slot| self.cancel(slot));
        }
        let left = self.tasks.borrow().ids();
        left.into_iter().for_each(|slot| std::mem::forget(self.tasks.borrow_mut().remove(slot)));
    }

    #[inline]
    fn wake(&self, slot: SlotId) {
        if slot.index == INDEX_MAIN {
            self.main_ready.set(true);
            return;
        }
        if let Some(task) = self.tasks.borrow_mut().get_mut(slot)
            && !std::mem::replace(&mut task.queued, true)
        {
            self.queue(task.rank).borrow_mut().push_back(slot);
        }
    }

    #[inline]
    fn queue(&self, rank: Rank) -> &RefCell<VecDeque<SlotId>> {
        match rank {
            Rank::Common => &self.ready,
            Rank::Last => &self.ready_last,
        }
    }

    /// Whether a task is ready.
    #[inline]
    fn has_ready(&self) -> bool {
        self.main_ready.get() || !self.ready.borrow().is_empty() || !self.ready_last.borrow().is_empty()
    }

    /// Hands the output of the task that just yielded to the driver.
    #[inline]
    fn flush(&self) {
        let was_dirty = dispatch!(&mut *self.driver.borrow_mut(), driver => {
            let is_dirty = driver.is_dirty();
            if is_dirty {
                driver.flush();
            }
            is_dirty
        });
        if was_dirty {
            self.departed.settle();
        }
    }

    fn take_remote(&self) {
        if self.inbox.is_empty() {
            return;
        }
        // Take only what is there now: threads that never pause must not keep this runtime from its sockets.
        let (calls, wakes) = self.inbox.waiting();
        for call in std::iter::from_fn(|| self.inbox.next_call()).take(calls) {
            call();
        }
        for slot in std::iter::from_fn(|| self.inbox.next_wake()).take(wakes) {
            self.wake(slot);
        }
        let flags = self.inbox.take_control_flags();
        if flags.drain {
            self.drain();
        }
        if flags.wake_all {
            self.wake_all();
        }
    }

    /// How long the next wait may be.
    fn wait(&self) -> Wait {
        // The next turn calls each listed waker: the tasks they wake must not wait.
        if self.has_ready() || !self.inbox.is_empty() || self.departed.is_any() {
            return Wait::No;
        }
        let timer = self.wheel.borrow().next_deadline().map(Instant::from_nanos);
        let own = dispatch!(&*self.driver.borrow(), driver => {
            if driver.is_dirty() { return Wait::No }
            driver.deadline()
        });
        Wait::Forever.at_most(timer).at_most(own)
    }

    fn turn_driver(&self, wait: Wait) -> io::Result<()> {
        let outcome = dispatch!(&mut *self.driver.borrow_mut(), driver => driver.turn(wait));
        self.departed.settle();
        outcome
    }

    /// Polls for events for the spin budget, or until something is ready.
    fn spin(&self, wait: Wait) -> io::Result<()> {
        let start = monotonic();
        let end = match wait.at_most(Some(start + self.spin)) {
            Wait::Until(end) => end,
            Wait::No | Wait::Forever => start,
        };
        loop {
            self.turn_driver(Wait::No)?;
            if self.wait() == Wait::No || monotonic() >= end {
                return Ok(());
            }
            std::hint::spin_loop();
        }
    }

    fn turn(&self) -> io::Result<()> {
        if self.ports.are_attached() {
            return self.turn_with_ports();
        }
        let mut wait = self.wait();
        if wait != Wait::No && !self.spin.is_zero() {
            self.spin(wait)?;
            // The events may have made tasks ready, or set an earlier deadline of the driver.
            wait = self.wait();
        }
        if wait != Wait::No && !self.inbox.flag.prepare_sleep() {
            wait = Wait::No;
        }
        let outcome = self.turn_driver(wait);
        self.inbox.flag.woke();
        outcome?;
        self.take_remote();
        self.fire_timers();
        // Output of calls from other threads, and sends that the kernel had no memory for.
        self.flush();
        Ok(())
    }

    pub(crate) fn drain(&self) {
        if !self.draining.replace(true) {
            self.with_driver(|driver| driver.drain());
            // Any task may wait for the drain: wake all of them.
            self.wake_all();
        }
    }

    /// Tasks that are not done.
    pub(crate) fn tasks(&self) -> usize {
        self.tasks.borrow().len()
    }

    fn wake_all(&self) {
        let slots = self.tasks.borrow().ids();
        slots.into_iter().for_each(|slot| self.wake(slot));
        self.main_ready.set(true);
    }
}

/// Sets the current runtime for the length of a `block_on`, or of a runtime's end.
struct Entered {
    /// The runtime that becomes the current one again afterwards.
    outer: Option<Rc<Core>>,
}

impl Entered {
    #[track_caller]
    fn new(core: &Rc<Core>) -> Self {
        CURRENT.with(|current| {
            let mut current = current.borrow_mut();
            assert!(current.is_none(), "block_on was called inside a runtime: await the future instead");
            *current = Some(Rc::clone(core));
        });
        Entered { outer: None }
    }

    /// Enters a runtime that ends, possibly inside another one. `None` if no runtime can be entered: the thread is
    /// being torn down, or the caller ends this runtime while the current one is borrowed.
    fn ending(core: &Rc<Core>) -> Option<Self> {
        let enter = |current: &RefCell<Option<Rc<Core>>>| {
            let outer = current.try_borrow_mut().ok()?.replace(Rc::clone(core));
            Some(Entered { outer })
        };
        CURRENT.try_with(enter).ok().flatten()
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let outer = self.outer.take();
        let _ = CURRENT.try_with(|current| current.replace(outer));
    }
}

/// A core on the thread that made it. Its remaining tasks end with it.
pub(crate) struct Executor {
    core: Rc<Core>,
}

impl Executor {
    /// Starts a core on this driver.
    pub(crate) fn start(config: &Config, kind: Driver) -> io::Result<Self> {
        Core::start(config, kind).map(|core| Self { core })
    }

    pub(crate) fn core(&self) -> &Rc<Core> {
        &self.core
    }

    /// Runs a future to its end, and every other task meanwhile.
    ///
    /// # Panics
    /// When called inside a runtime, and when the kernel refuses to wait.
    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        let _entered = Entered::new(&self.core);
        let core = &self.core;
        let waker = TaskName::main(core.number).waker();
        let mut future = std::pin::pin!(Some(future));
        core.main_ready.set(true);
        loop {
            if core.main_ready.replace(false) {
                let mut context = Context::from_waker(&waker);
                let running = future.as_mut().as_pin_mut();
                let outcome = running.map_or(Poll::Pending, |future| future.poll(&mut context));
                if outcome.is_ready() {
                    // Its values are closed in this call as well.
                    future.set(None);
                }
                core.flush();
                if let Poll::Ready(output) = outcome {
                    // When the next turn comes is unknown.
                    core.end_of_turn(false);
                    core.with_driver(|driver| {
                        driver.submit_queued();
                        driver.settle_messages();
                    });
                    return output;
                }
            }
            core.run_tasks();
            if let Err(error) = core.turn() {
                panic!("the {} driver cannot wait any more: {error}", core.kind);
            }
        }
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        // Tasks own streams, and streams own the core: taking the tasks out breaks the cycle. They are dropped inside
        // the runtime, because their values close through it, and tasks that they spawn end with it.
        let entered = Entered::ending(&self.core);
        self.core.end_tasks();
        self.core.flush();
        self.core.close_ports();
        self.core.end_blocking();
        inbox::unregister(self.core.number);
        self.core.inbox.drop_calls();
        // Dropped calls, closures and messages, and woken code, may have spawned tasks as well. A remaining waker may
        // own a connection, which owns the core.
        for _ in 0..END_ROUNDS_MAX {
            self.core.departed.settle();
            self.core.end_tasks();
            self.core.flush();
            if !self.core.departed.is_any() {
                break;
            }
        }
        drop(entered);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Remote,
        time::{sleep, timeout, yield_now},
    };

    fn executor() -> Executor {
        start(&Config::for_test(Driver::Poll))
    }

    fn start(config: &Config) -> Executor {
        Executor::start(config, Driver::Poll).expect("poll runs everywhere")
    }

    fn remote(executor: &Executor) -> Remote {
        Remote { inbox: Arc::clone(&executor.core.inbox) }
    }

    #[test]
    fn a_handle_aborts_the_task_of_its_own_runtime_and_no_other() {
        let (first, second) = (executor(), executor());
        let handle =
            first.block_on(std::future::poll_fn(|_| Poll::Ready(spawn(std::future::pending::<()>()))));
        let other = second.block_on(async {
            let other = spawn(async { 7 });
            handle.abort();
            timeout(Duration::from_secs(5), other).await
        });
        assert_eq!(other, Ok(7));
        assert_eq!(first.core.tasks.borrow().len(), 0, "aborted");
    }

    /// Runs a function when it is dropped, as a guard in a task does.
    struct OnDrop<F: FnMut()>(F);

    impl<F: FnMut()> Drop for OnDrop<F> {
        fn drop(&mut self) {
            (self.0)();
        }
    }

    /// Spawns another of its kind when it is dropped, this many times.
    struct Again(Rc<()>, usize);

    impl Drop for Again {
        fn drop(&mut self) {
            if let Some(left) = self.1.checked_sub(1) {
                spawn(hold(Again(Rc::clone(&self.0), left)));
            }
        }
    }

    async fn hold<T>(held: T) {
        std::future::pending::<()>().await;
        drop(held);
    }

    #[test]
    fn tasks_that_destructors_spawn_end_with_their_runtime_unless_that_never_ends() {
        // The first task already exists.
        for (spawned, left) in [(END_ROUNDS_MAX - 1, 0), (usize::MAX, 1)] {
            let (executor, life) = (executor(), Rc::new(()));
            let first = Again(Rc::clone(&life), spawned);
            executor.block_on(async { drop(spawn(hold(first))) });
            drop(executor);
            assert_eq!(Rc::strong_count(&life), 1 + left, "{spawned} are spawned");
        }
    }

    #[test]
    fn what_tasks_of_a_runtime_spawn_when_it_ends_inside_another_is_none_of_that_one() {
        let (first, second, life) = (executor(), executor(), Rc::new(()));
        let guard = Again(Rc::clone(&life), 3);
        first.block_on(async { drop(spawn(hold(guard))) });
        second.block_on(async {
            drop(first);
            assert_eq!(Rc::strong_count(&life), 1, "all of them have ended");
            assert_eq!(with_current(|core| core.tasks()), Some(0));
            assert_eq!(spawn(async { 7 }).await, 7, "the runtime that goes on is the current one again");
        });
    }

    #[test]
    fn a_task_rejected_at_the_limit_may_wake_others_when_it_is_dropped() {
        let mut config = Config::for_test(Driver::Poll);
        config.limits.tasks_max = 1;
        let executor = start(&config);
        executor.block_on(async {
            let waiting = Rc::new(RefCell::new(None::<Waker>));
            let waker = Rc::clone(&waiting);
            let first = spawn(std::future::poll_fn(move |context| {
                match waker.borrow_mut().replace(context.waker().clone()) {
                    Some(_) => Poll::Ready(7),
                    None => Poll::Pending,
                }
            }));
            yield_now().await;
            let guard = OnDrop(move || waiting.borrow().as_ref().expect("it has run").wake_by_ref());
            let rejected = try_spawn(async move { drop(guard) });
            let error = rejected.expect_err("there is room for one task");
            assert_eq!(error.to_string(), "the runtime's limit of tasks is reached");
            assert_eq!(first.await, 7, "woken by what the rejected task owned");
        });
    }

    #[test]
    fn a_timer_dropped_inside_another_runtime_is_removed_from_its_own() {
        let (first, second) = (executor(), executor());
        let minute = Duration::from_secs(60);
        let mut sleeping = Box::pin(sleep(minute));
        assert!(first.block_on(async { timeout(Duration::ZERO, &mut sleeping).await }).is_err());
        second.block_on(async {
            let mut other = Box::pin(sleep(Duration::from_millis(1)));
            assert!(timeout(Duration::ZERO, &mut other).await.is_err());
            drop(sleeping);
            assert!(first.core.wheel.borrow().is_empty());
            other.await;
        });
    }

    #[test]
    fn a_last_task_deals_at_once_with_what_all_others_of_a_turn_have_collected() {
        let executor = executor();
        let counters = Arc::clone(&executor.core.counters);
        let collected = Rc::new(RefCell::new((Vec::new(), None::<Waker>)));
        let seen = Rc::new(RefCell::new(Vec::new()));
        executor.block_on(async {
            let (from, into, turns) = (Rc::clone(&collected), Rc::clone(&seen), Arc::clone(&counters));
            drop(spawn_last(std::future::poll_fn::<(), _>(move |context| {
                let mut from = from.borrow_mut();
                let batch = std::mem::take(&mut from.0);
                into.borrow_mut().push((batch, turns.snapshot().turns));
                from.1 = Some(context.waker().clone());
                Poll::Pending
            })));
            yield_now().await;
            let before = counters.snapshot().turns;
            for number in 0..3 {
                let into = Rc::clone(&collected);
                spawn(async move {
                    let mut into = into.borrow_mut();
                    into.0.push(number);
                    into.1.as_ref().expect("the last task has run").wake_by_ref();
                });
            }
            yield_now().await;
            assert_eq!(*seen.borrow().last().expect("twice"), (vec![0, 1, 2], before));
        });
        assert_eq!(seen.borrow().len(), 2, "it runs when it is woken, and once for all of them");
    }

    #[test]
    fn a_call_that_calls_itself_again_does_not_keep_tasks_from_running() {
        fn again(remote: Remote) {
            let next = remote.clone();
            // This fails once the runtime has ended.
            let _ = remote.call(move || again(next));
        }
        let executor = executor();
        let remote = remote(&executor);
        executor.block_on(async move {
            again(remote);
            for _ in 0..10 {
                yield_now().await;
            }
        });
    }

    /// A foreign waker that wakes a task in turn.
    struct PassesOn(Waker);

    impl std::task::Wake for PassesOn {
        fn wake(self: Arc<Self>) {
            self.0.wake_by_ref();
        }
    }

    #[test]
    fn whoever_a_poll_has_left_to_be_woken_is_woken_before_the_runtime_waits() {
        const LIMIT: Duration = Duration::from_secs(5);
        let executor = executor();
        let core = Rc::clone(&executor.core);
        let start = monotonic();
        let mut is_woken = false;
        let waiting = std::future::poll_fn(|context| {
            if std::mem::replace(&mut is_woken, true) {
                return Poll::Ready(());
            }
            core.departed.wake(Some(Waker::from(Arc::new(PassesOn(context.waker().clone())))));
            Poll::Pending
        });
        assert_eq!(executor.block_on(timeout(LIMIT, waiting)), Ok(()));
        assert!(monotonic().since(start) < LIMIT, "it has waited for something else");
    }

    #[test]
    fn output_queued_by_nobody_in_particular_is_written_without_another_task() {
        let executor = executor();
        let (ours, mut theirs) = std::os::unix::net::UnixStream::pair().expect("a socket pair");
        let stream = executor.block_on(async { crate::net::Stream::from_descriptor(ours.into()) });
        let stream = stream.expect("there is room");
        // As after a flush that the kernel had no memory for.
        executor.core.with_driver(|driver| driver.push(stream.slot(), b"late".into())).expect("it is open");
        executor.core.turn().expect("poll works");
        theirs.set_nonblocking(true).expect("a socket can be made non-blocking");
        let mut bytes = [0; 4];
        std::io::Read::read_exact(&mut theirs, &mut bytes).expect("they are there");
        assert_eq!(&bytes, b"late");
        executor.block_on(yield_now());
    }
}
