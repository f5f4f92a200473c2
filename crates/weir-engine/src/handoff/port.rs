//! One worker's port: the hand-off as a program uses it, and its part in every turn of its runtime.
//!
//! Invariants: (1) `Local`, except for its group, is used by one thread at a time: before the port is attached, by
//! the port's owner, which then has the only `Arc` of it; afterwards by the thread that attached it, which every
//! method of the port that uses more checks; (2) the runtime's part (`Hook`) is used on that thread alone, because a
//! runtime does not leave its thread.

use std::{
    cell::{Cell, RefCell, RefMut},
    collections::VecDeque,
    fmt,
    marker::PhantomData,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicUsize, Ordering, fence},
    },
    task::Waker,
    time::Duration,
};

use crossbeam_utils::CachePadded;

use super::{
    HandoffCounters, Options, Priority, SPIN_DEFAULT, Strategy,
    adaptive_spin::AdaptiveSpin,
    queue_ends::{self, QueueEnds},
    waiting::{Ready, Room, Wanted},
    wake_targets::{Group, WakeTarget},
};
use crate::{
    clock::monotonic,
    config::Driver,
    doorbell::Doorbell,
    driver_choice::StartError,
    executor::{self, Core, PollReason, TurnHook},
    sync::WaitList,
};

/// Messages that wait in the producer for one other worker.
pub(super) struct Destination<T> {
    overflow: [VecDeque<T>; 2],
    /// Is on the list of destinations to handle at the end of the turn.
    pending: bool,
    /// Messages were put into its queue and are not announced yet.
    unannounced: bool,
    /// Tasks that wait for room.
    pub(super) waiters: WaitList,
}

/// The parts of a port that change.
pub(super) struct State<T> {
    pub(super) queues: QueueEnds<T>,
    pub(super) destinations: Vec<Destination<T>>,
    /// Destinations to handle at the end of the turn, each once.
    pending: Vec<usize>,
    /// The tasks that wait for arrivals, by the kind that they wait for.
    pub(super) ready: [Option<Waker>; 2],
    /// By worker: messages taken since the last end of a turn.
    taken: Vec<u32>,
    /// Messages were taken since the queues were last found empty.
    found: bool,
    /// The queues were empty when this worker went to sleep.
    slept_empty: bool,
    /// Workers to be woken because they waited for room; kept to reuse its memory.
    room_waiters: Vec<usize>,
    adaptive_spin: Option<AdaptiveSpin>,
    /// The value of this worker's word in `Group::publishing`.
    publishing: u32,
    /// The value of its entry in `Group::congested`.
    is_congested: bool,
}

/// The work that an end of a turn leaves until nothing is borrowed: it runs foreign code.
struct Leftovers<T> {
    wakers: Vec<Waker>,
    /// Messages that waited for workers that have ended.
    lost: Vec<VecDeque<T>>,
}

struct Local<T> {
    group: Arc<Group>,
    own: usize,
    /// The mark of the thread that attached the port; zero before.
    thread: AtomicUsize,
    state: RefCell<State<T>>,
}

/// One worker's end of a hand-off. It is moved to the worker's thread and [attached](Self::attach) there; from then on
/// it belongs to that thread, and its methods panic on any other.
pub struct Port<T> {
    local: Arc<Local<T>>,
    /// Only one thread at a time uses it.
    not_sync: PhantomData<Cell<()>>,
}

// SAFETY: invariants 1 and 2. Before it is attached the port has the only reference to its `Local`, whose parts are
// all `Send` when `T` is. Afterwards a port on another thread only compares thread marks (atomics), uses the group
// (which is `Sync`), and drops its reference: if that is the last one, everything that the other thread did happened
// before, as `Arc` guarantees.
unsafe impl<T: Send> Send for Port<T> {}

const fn is_send<T: Send>() {}
const fn is_sync<T: Sync>() {}
const _: () = is_send::<State<u8>>();
const _: () = is_sync::<Group>();

impl<T> fmt::Debug for Port<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Port").field("worker", &self.local.own).finish_non_exhaustive()
    }
}

pub(super) fn group<T: Send + 'static>(workers: usize, options: &Options) -> Vec<Port<T>> {
    let group = Arc::new(Group::new(workers, options));
    let destination = |_| Destination {
        overflow: Default::default(),
        pending: false,
        unannounced: false,
        waiters: WaitList::new(),
    };
    let port = |(own, queues)| {
        let state = State {
            queues,
            destinations: (0..workers).map(destination).collect(),
            pending: Vec::with_capacity(workers),
            ready: Default::default(),
            taken: vec![0; workers],
            found: false,
            slept_empty: false,
            room_waiters: Vec::new(),
            adaptive_spin: spin_budget(workers, options).map(AdaptiveSpin::new),
            publishing: 0,
            is_congested: false,
        };
        let local =
            Local { group: Arc::clone(&group), own, thread: AtomicUsize::new(0), state: RefCell::new(state) };
        Port { local: Arc::new(local), not_sync: PhantomData }
    };
    queue_ends::queue_ends(workers, options).into_iter().enumerate().map(port).collect()
}

/// How long consumers may poll before they sleep, if at all.
fn spin_budget(workers: usize, options: &Options) -> Option<Duration> {
    if options.strategy != Strategy::MeshSpin {
        return None;
    }
    if !options.spin.is_zero() {
        return Some(options.spin);
    }
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    (workers < cpus).then_some(SPIN_DEFAULT)
}

/// A number that is unique among all threads of the process, past and present; not zero.
fn thread_mark() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    thread_local! { static MARK: usize = NEXT.fetch_add(1, Ordering::Relaxed); }
    MARK.with(|mark| *mark)
}

impl<T: Send + 'static> Port<T> {
    /// Joins the port to the runtime of this thread. Earlier messages from others can then be taken.
    ///
    /// # Errors
    /// Outside a runtime; a second time; on the blocking driver, which has no second task that could take arrivals;
    /// `msgring` on any driver but io_uring.
    pub fn attach(&self) -> Result<(), StartError> {
        let local = &self.local;
        let core = executor::current().map_err(|_| StartError::Outside("a port cannot be attached"))?;
        let unable = |reason: String| StartError::Unable { driver: core.kind, reason };
        if core.kind == Driver::Blocking {
            let reason = "it has one task a thread, and none that could take what other workers hand over";
            return Err(unable(reason.into()));
        }
        if local.thread.load(Ordering::Relaxed) != 0 {
            return Err(unable("this port is attached already".into()));
        }
        let messages = match local.group.strategy {
            Strategy::MsgRing => {
                let ring = core.with_driver(|driver| driver.message_ring());
                Some(ring.map_err(|error| unable(format!("the hand-off msgring is refused: {error}")))?)
            }
            _ => None,
        };
        local.thread.store(thread_mark(), Ordering::Relaxed);
        let eventfd = Arc::clone(core.inbox.eventfd());
        let doorbell = Arc::new(Doorbell::new(eventfd, messages, Arc::clone(&core.counters)));
        // Set once: attaching twice was refused above.
        let _ = local.group.targets[local.own].set(WakeTarget { inbox: Arc::clone(&core.inbox), doorbell });
        // Pairs with the fence in `Group::target`: a producer that does not find this worker yet has its messages
        // seen by the first check.
        fence(Ordering::SeqCst);
        if local.group.strategy != Strategy::Owner && local.group.targets.len() > 1 {
            core.attach_port(Box::new(Hook(Arc::clone(local))));
        }
        Ok(())
    }
}

impl<T> Port<T> {
    /// The mutable parts of the port, for this thread (invariant 1).
    #[inline]
    fn local(&self) -> &Local<T> {
        let thread = self.local.thread.load(Ordering::Relaxed);
        assert!(thread == 0 || thread == thread_mark(), "a port is used on the thread that attached it");
        &self.local
    }

    #[inline]
    pub(super) fn state(&self) -> RefMut<'_, State<T>> {
        self.local().state.borrow_mut()
    }

    /// This worker's number.
    pub fn worker(&self) -> usize {
        self.local.own
    }

    /// Number of workers in the group.
    pub fn workers(&self) -> usize {
        self.local.group.targets.len()
    }

    /// The strategy of the group.
    pub fn strategy(&self) -> Strategy {
        self.local.group.strategy
    }

    /// Hands a message to another worker. Never blocks.
    ///
    /// # Errors
    /// The message comes back as the error when [`Options::overflow_max`] messages already wait for this destination
    /// and priority; also for a worker that [has ended](Self::has_ended), for the worker itself, for one that does
    /// not exist, and with the strategy `owner`.
    #[inline]
    pub fn push(&self, to: usize, priority: Priority, message: T) -> Result<(), T> {
        self.state().push(&self.local.group, self.local.own, to, priority, message)
    }

    /// Whether messages wait here because the queue to that worker was full.
    pub fn is_congested(&self, to: usize) -> bool {
        !self.has_ended(to) && self.state().destinations.get(to).is_some_and(Destination::is_congested)
    }

    /// Whether a worker no longer takes messages: its port is gone, or its runtime has ended.
    pub fn has_ended(&self, worker: usize) -> bool {
        self.local.group.has_ended(worker)
    }

    /// Waits until no message waits here for that worker. Any number of tasks may wait.
    ///
    /// The future fails if that worker has ended, at once or while it waits: the messages for that worker are
    /// dropped.
    pub fn room(&self, to: usize) -> Room<'_, T> {
        Room::new(self, to)
    }

    /// Waits until there is a message to take, of either priority. One task at a time: a second one replaces the
    /// first.
    pub fn ready(&self) -> Ready<'_, T> {
        Ready::new(self, Wanted::Anything)
    }

    /// As [`Self::ready`], for responses only: for a worker that may not take requests now. Its place is separate
    /// from that of [`Self::ready`].
    pub fn ready_response(&self) -> Ready<'_, T> {
        Ready::new(self, Wanted::Response)
    }

    /// The next message and the worker it comes from; responses first.
    #[inline]
    pub fn take(&self) -> Option<(usize, T)> {
        let mut state = self.state();
        let state = &mut *state;
        let taken = state.queues.take(Priority::Response).or_else(|| state.queues.take(Priority::Request));
        state.note_taken(&self.local.group.counters[self.local.own], taken)
    }

    /// As [`Self::take`], responses only.
    pub fn take_response(&self) -> Option<(usize, T)> {
        let mut state = self.state();
        let taken = state.queues.take(Priority::Response);
        state.note_taken(&self.local.group.counters[self.local.own], taken)
    }

    /// Publishes pushed messages now, instead of at the end of the turn.
    pub fn flush(&self) {
        end_turn(self.local(), None);
    }

    /// The port's counters; readable from any thread.
    pub fn counters(&self) -> Arc<HandoffCounters> {
        Arc::clone(&self.local.group.counters[self.local.own])
    }
}

#[cfg(test)]
impl<T> Port<T> {
    /// The descriptor through which others send messages to a worker's ring.
    pub(super) fn message_ring_of(&self, worker: usize) -> Option<Arc<std::os::fd::OwnedFd>> {
        self.local.group.targets[worker].get().and_then(|target| target.doorbell.messages())
    }
}

impl<T> Drop for Port<T> {
    fn drop(&mut self) {
        self.local.group.end(self.local.own);
    }
}

impl<T> Destination<T> {
    pub(super) fn is_congested(&self) -> bool {
        self.overflow.iter().any(|priority| !priority.is_empty())
    }
}

impl<T> State<T> {
    /// Whether a message of this kind is there.
    pub(super) fn has(&mut self, wanted: Wanted) -> bool {
        match wanted {
            Wanted::Anything => self.queues.has_some(),
            Wanted::Response => self.queues.has_response(),
        }
    }

    /// Whether a task waits for a message of this kind, and one is there.
    fn is_due(&mut self, wanted: Wanted) -> bool {
        self.ready[wanted.index()].is_some() && self.has(wanted)
    }

    /// The tasks whose messages have arrived.
    fn take_due(&mut self) -> [Option<Waker>; 2] {
        Wanted::BOTH.map(|wanted| if self.is_due(wanted) { self.ready[wanted.index()].take() } else { None })
    }

    /// From now on a queue may contain unannounced messages.
    fn begin_publishing(&mut self, group: &Group, own: usize) {
        if self.publishing.is_multiple_of(2) {
            self.publishing = self.publishing.wrapping_add(1);
            group.publishing[own].store(self.publishing, Ordering::Relaxed);
        }
    }

    fn end_publishing(&mut self, group: &Group, own: usize) {
        if !self.publishing.is_multiple_of(2) {
            self.publishing = self.publishing.wrapping_add(1);
            group.publishing[own].store(self.publishing, Ordering::Release);
        }
    }

    /// Marks a destination to be handled at the end of the turn.
    #[inline]
    fn look_after(&mut self, to: usize) {
        if !std::mem::replace(&mut self.destinations[to].pending, true) {
            self.pending.push(to);
        }
    }

    #[inline]
    fn push(
        &mut self,
        group: &Group,
        own: usize,
        to: usize,
        priority: Priority,
        message: T,
    ) -> Result<(), T> {
        let exists = to != own && to < self.destinations.len() && group.strategy != Strategy::Owner;
        if !exists || group.has_ended(to) {
            return Err(message);
        }
        self.begin_publishing(group, own);
        let put = if self.destinations[to].overflow[priority.index()].is_empty() {
            self.put(group, own, to, priority, message)
        } else {
            Err(message)
        };
        if let Err(message) = put {
            let overflow = &mut self.destinations[to].overflow[priority.index()];
            if overflow.len() >= group.overflow_max {
                return Err(message);
            }
            overflow.push_back(message);
            let depth = overflow.len() as u64;
            group.counters[own].overflowed.increment();
            group.counters[own].overflow_depth_max.raise_to(depth);
            self.look_after(to);
        }
        if self.pending.is_empty() {
            self.end_publishing(group, own);
        }
        group.counters[own].pushed.increment();
        Ok(())
    }

    /// Puts a message into the queue and announces it, unless that is left to the end of the turn.
    #[inline]
    fn put(&mut self, group: &Group, own: usize, to: usize, priority: Priority, message: T) -> Result<(), T> {
        let announce = self.queues.put(to, priority, message)?;
        if self.queues.are_published_later() {
            self.destinations[to].unannounced = true;
            self.look_after(to);
        } else if announce {
            group.announce(own, to, None);
        } else {
            group.counters[own].wakes_suppressed.increment();
        }
        Ok(())
    }

    /// Moves waiting messages of a destination into its queue. Returns the priority in which messages remain, if any.
    fn move_overflow(&mut self, group: &Group, own: usize, to: usize) -> Option<Priority> {
        let mut congested = None;
        for priority in Priority::BOTH {
            while let Some(message) = self.destinations[to].overflow[priority.index()].pop_front() {
                if let Err(message) = self.put(group, own, to, priority, message) {
                    self.destinations[to].overflow[priority.index()].push_front(message);
                    congested = congested.or(Some(priority));
                    break;
                }
            }
        }
        congested
    }

    /// Messages wait here because a queue is full. True: the worker they wait for has ended.
    fn note_congested(&mut self, group: &Group, own: usize, to: usize) -> bool {
        if !std::mem::replace(&mut self.is_congested, true) {
            group.congested[own].store(true, Ordering::Relaxed);
        }
        // Pairs with the fence in `Group::end`.
        fence(Ordering::SeqCst);
        group.has_ended(to)
    }

    /// Gives up the messages for a worker that has ended.
    fn forget(&mut self, to: usize, leftovers: &mut Leftovers<T>) {
        let destination = &mut self.destinations[to];
        destination.pending = false;
        destination.unannounced = false;
        destination.waiters.take_all(&mut leftovers.wakers);
        let waiting = destination.overflow.iter_mut().filter(|priority| !priority.is_empty());
        leftovers.lost.extend(waiting.map(std::mem::take));
    }

    /// Publishes and announces the new and the waiting messages for a destination. Collects the tasks that waited for
    /// room.
    fn send_off(&mut self, local: &Local<T>, to: usize, core: Option<&Core>, leftovers: &mut Leftovers<T>) {
        let (group, own) = (&*local.group, local.own);
        loop {
            if group.has_ended(to) {
                return self.forget(to, leftovers);
            }
            let congested =
                if self.destinations[to].is_congested() { self.move_overflow(group, own, to) } else { None };
            if std::mem::take(&mut self.destinations[to].unannounced) {
                self.queues.publish(to);
                group.announce(own, to, core);
            }
            if congested.is_none() {
                self.destinations[to].pending = false;
                self.destinations[to].waiters.take_all(&mut leftovers.wakers);
                return;
            }
            if self.note_congested(group, own, to) {
                continue;
            }
            let priorities = Priority::BOTH.into_iter();
            let mut waiting =
                priorities.filter(|priority| !self.destinations[to].overflow[priority.index()].is_empty());
            let queues = &mut self.queues;
            if waiting.all(|priority| queues.await_room(to, priority)) {
                self.pending.push(to);
                return;
            }
        }
    }

    #[inline]
    fn note_taken(&mut self, counters: &HandoffCounters, taken: Option<(usize, T)>) -> Option<(usize, T)> {
        match &taken {
            Some((from, _)) => {
                self.taken[*from] += 1;
                self.found = true;
            }
            None if std::mem::take(&mut self.found) => counters.drains.increment(),
            None => {}
        }
        taken
    }

    /// Returns the room of taken messages, and wakes the workers that wait for it.
    fn return_room(&mut self, local: &Local<T>, core: Option<&Core>) {
        let group = &local.group;
        let mut count = 0;
        for (from, taken) in self.taken.iter_mut().enumerate() {
            if *taken > 0 {
                count += *taken;
                group.counters[from].add_taken(std::mem::take(taken));
            }
        }
        if count == 0 {
            return;
        }
        if let Some(spin) = &mut self.adaptive_spin {
            spin.observe(monotonic(), count);
        }
        let mut room_waiters = std::mem::take(&mut self.room_waiters);
        self.queues.return_room(&mut room_waiters);
        for worker in room_waiters.drain(..) {
            if let Some(target) = group.target(worker) {
                group.wake_sleeper(local.own, target, core);
            }
        }
        self.room_waiters = room_waiters;
    }
}

/// The end of a turn, or an early publication by the program.
fn end_turn<T>(local: &Local<T>, core: Option<&Core>) {
    let mut leftovers = Leftovers { wakers: Vec::new(), lost: Vec::new() };
    let mut state = local.state.borrow_mut();
    state.return_room(local, core);
    if !state.pending.is_empty() {
        state.begin_publishing(&local.group, local.own);
    }
    for _ in 0..state.pending.len() {
        let to = state.pending.remove(0);
        state.send_off(local, to, core, &mut leftovers);
    }
    if state.is_congested && state.pending.is_empty() {
        state.is_congested = false;
        local.group.congested[local.own].store(false, Ordering::Relaxed);
    }
    state.end_publishing(&local.group, local.own);
    drop(state);
    leftovers.wakers.into_iter().for_each(Waker::wake);
}

/// The runtime's part.
struct Hook<T>(Arc<Local<T>>);

impl<T> Drop for Hook<T> {
    fn drop(&mut self) {
        // No task waits for arrivals any more.
        self.0.group.end(self.0.own);
    }
}

impl<T> Hook<T> {
    fn counters(&self) -> &HandoffCounters {
        &self.0.group.counters[self.0.own]
    }
}

impl<T> TurnHook for Hook<T> {
    fn end_turn(&self, core: &Core, in_turn: bool) {
        end_turn(&self.0, in_turn.then_some(core));
    }

    fn look(&self, core: &Core, reason: PollReason) -> bool {
        let mut state = self.0.state.borrow_mut();
        let is_awaited = state.ready.iter().any(Option::is_some);
        if !is_awaited && reason == PollReason::Turn || !state.queues.has_some() {
            return false;
        }
        if reason == PollReason::Unannounced && state.slept_empty {
            // The order matters: a worker that has finished publishing has announced it before.
            let publishing = |word: &CachePadded<AtomicU32>| !word.load(Ordering::Acquire).is_multiple_of(2);
            if !self.0.group.publishing.iter().any(publishing) && !core.inbox.flag.is_notified() {
                self.counters().wakes_recovered.increment();
            }
        }
        let due = state.take_due();
        drop(state);
        let is_any = due.iter().any(Option::is_some);
        due.into_iter().flatten().for_each(Waker::wake);
        is_any
    }

    fn arm(&self) -> bool {
        let mut state = self.0.state.borrow_mut();
        // The order matters: collected messages are checked afterwards.
        state.queues.collect();
        state.slept_empty = !state.queues.has_some();
        !Wanted::BOTH.into_iter().any(|wanted| state.is_due(wanted)) && state.queues.arm()
    }

    fn disarm(&self) {
        let mut state = self.0.state.borrow_mut();
        if state.queues.disarm() {
            // Messages that arrive between now and the check are not lost wakes: they were pushed to a worker that is
            // awake.
            state.slept_empty = false;
        }
    }

    fn count_spurious(&self) {
        self.counters().wakes_spurious.increment();
    }

    fn spin_budget(&self) -> Duration {
        self.0.state.borrow().adaptive_spin.as_ref().map_or(Duration::ZERO, AdaptiveSpin::budget)
    }

    fn is_over(&self) -> bool {
        Arc::strong_count(&self.0) == 1 && self.0.state.borrow().pending.is_empty()
    }
}
