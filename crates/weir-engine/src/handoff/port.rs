//! One worker's port: what a program sees of the hand-off, and its part in every turn of its runtime.
//!
//! Invariants: (1) `Local` is used by one thread at a time: before the port is attached by whoever owns the port, which
//! then has the only `Arc` of it, and afterwards by the thread that attached it, which every method of the port checks;
//! (2) the runtime's part (`Hook`) is used on that thread alone, because a runtime does not leave its thread.

use std::{
    cell::{Cell, RefCell, RefMut},
    collections::VecDeque,
    fmt,
    future::Future,
    marker::PhantomData,
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, AtomicUsize, Ordering, fence},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use crossbeam_utils::CachePadded;

use super::{
    HandoffCounters, Lane, Options, SPIN_DEFAULT, Strategy,
    ends::{self, Ends},
    gaps::Gaps,
};
use crate::{
    config::Driver,
    driver::{Doorbell, StartError},
    remote::Inbox,
    runtime::{self, Attached, Core, Sight},
    time::monotonic,
};

/// How a worker is reached, once it is attached.
struct Place {
    inbox: Arc<Inbox>,
    doorbell: Arc<Doorbell>,
}

/// What all ports of a group know.
struct Group {
    strategy: Strategy,
    overflow_max: usize,
    places: Box<[OnceLock<Place>]>,
    /// By worker: odd from before it puts something into a queue until it has announced it.
    publishing: Box<[CachePadded<AtomicU32>]>,
    counters: Box<[Arc<HandoffCounters>]>,
}

/// What waits with the producer for one other worker.
struct Destination<T> {
    overflow: [VecDeque<T>; 2],
    /// Is on the list of those to look after at the end of the turn.
    pending: bool,
    /// Something was put into its queue that is not announced yet.
    unannounced: bool,
    /// Who waits for room.
    waiters: Vec<Waker>,
}

/// The parts of a port that change.
pub(super) struct State<T> {
    pub(super) ends: Ends<T>,
    destinations: Vec<Destination<T>>,
    /// Destinations to look after at the end of the turn, each once.
    pending: Vec<usize>,
    /// The task that waits for arrivals.
    ready: Option<Waker>,
    /// By worker: messages taken since the last end of a turn.
    taken: Vec<u32>,
    /// Messages were taken since the queues were last found empty.
    found: bool,
    /// Nothing was there when this worker went to sleep.
    slept_empty: bool,
    /// Workers to be woken because they waited for room; kept for its memory.
    owed: Vec<usize>,
    gaps: Option<Gaps>,
    /// This worker's word in `Group::publishing`.
    publishing: u32,
}

struct Local<T> {
    group: Arc<Group>,
    own: usize,
    /// Of the thread that attached the port; zero before.
    thread: AtomicUsize,
    state: RefCell<State<T>>,
}

/// One worker's end of a hand-off. It is moved to the worker's thread and [attached](Self::attach) there; from then on
/// it belongs to that thread, and its methods panic on any other.
pub struct Port<T> {
    local: Arc<Local<T>>,
    /// Used by one thread at a time.
    not_sync: PhantomData<Cell<()>>,
}

// SAFETY: invariants 1 and 2. Before it is attached the port has the only reference to its `Local`, whose parts are all
// `Send` when `T` is. Afterwards a port on another thread does nothing but compare thread marks (atomics), and drop its
// reference: if that is the last one, everything the other thread did has happened before, as `Arc` orders it.
unsafe impl<T: Send> Send for Port<T> {}

const fn is_send<T: Send>() {}
const _: () = is_send::<State<u8>>();

impl<T> fmt::Debug for Port<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Port").field("worker", &self.local.own).finish_non_exhaustive()
    }
}

pub(super) fn group<T: Send + 'static>(workers: usize, options: &Options) -> Vec<Port<T>> {
    let counters = || Arc::new(HandoffCounters::new(options.strategy));
    let group = Arc::new(Group {
        strategy: options.strategy,
        overflow_max: options.overflow_max.max(1),
        places: (0..workers).map(|_| OnceLock::new()).collect(),
        publishing: (0..workers).map(|_| CachePadded::new(AtomicU32::new(0))).collect(),
        counters: (0..workers).map(|_| counters()).collect(),
    });
    let destination = |_| Destination {
        overflow: Default::default(),
        pending: false,
        unannounced: false,
        waiters: Vec::new(),
    };
    let port = |(own, ends)| {
        let state = State {
            ends,
            destinations: (0..workers).map(destination).collect(),
            pending: Vec::with_capacity(workers),
            ready: None,
            taken: vec![0; workers],
            found: false,
            slept_empty: false,
            owed: Vec::new(),
            gaps: spin_budget(workers, options).map(Gaps::new),
            publishing: 0,
        };
        let local =
            Local { group: Arc::clone(&group), own, thread: AtomicUsize::new(0), state: RefCell::new(state) };
        Port { local: Arc::new(local), not_sync: PhantomData }
    };
    ends::ends(workers, options).into_iter().enumerate().map(port).collect()
}

/// How long consumers may look before they sleep, if at all.
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

/// A number that no other thread has or had; not zero.
fn thread_mark() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    thread_local! { static MARK: usize = NEXT.fetch_add(1, Ordering::Relaxed); }
    MARK.with(|mark| *mark)
}

impl<T: Send + 'static> Port<T> {
    /// Joins the port to the runtime of this thread. What others have pushed before is there afterwards.
    ///
    /// # Errors
    /// Outside a runtime; a second time; on the blocking driver, which has no second task that could take what arrives;
    /// `msgring` on anything but io_uring.
    pub fn attach(&self) -> Result<(), StartError> {
        let local = &self.local;
        let outside =
            |_| StartError::Nothing("a port is attached inside a runtime, and there is none".into());
        let core = runtime::current().map_err(outside)?;
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
        let doorbell = Arc::new(Doorbell { eventfd, messages });
        // Set once: attaching twice was refused above.
        let _ = local.group.places[local.own].set(Place { inbox: Arc::clone(&core.inbox), doorbell });
        // Against `Group::place`: a producer that does not find this worker yet has its messages seen by the first
        // look.
        fence(Ordering::SeqCst);
        if local.group.strategy != Strategy::Owner && local.group.places.len() > 1 {
            core.attach_port(Box::new(Hook(Arc::clone(local))));
        }
        Ok(())
    }
}

impl<T> Port<T> {
    /// The port's parts that change, for this thread (invariant 1).
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
        self.local.group.places.len()
    }

    /// The strategy of the group.
    pub fn strategy(&self) -> Strategy {
        self.local.group.strategy
    }

    /// Hands a message to another worker. Never blocks.
    ///
    /// # Errors
    /// The message, when as many wait for this destination and lane as [`Options::overflow_max`] allows; for the worker
    /// itself, for one that does not exist, and with the strategy `owner`.
    #[inline]
    pub fn push(&self, to: usize, lane: Lane, message: T) -> Result<(), T> {
        self.state().push(&self.local.group, self.local.own, to, lane, message)
    }

    /// Whether something waits here because the queue to that worker was full.
    pub fn is_congested(&self, to: usize) -> bool {
        self.state().destinations.get(to).is_some_and(Destination::is_congested)
    }

    /// Waits until nothing waits here for that worker. Any number of tasks may.
    pub fn room(&self, to: usize) -> Room<'_, T> {
        Room { port: self, to, waker: None }
    }

    /// Waits until there is something to take. One task at a time: a second one takes the first one's place.
    pub fn ready(&self) -> Ready<'_, T> {
        Ready { port: self, waker: None }
    }

    /// The next message and the worker it comes from; responses first.
    #[inline]
    pub fn take(&self) -> Option<(usize, T)> {
        let mut state = self.state();
        let state = &mut *state;
        let taken = state.ends.take(Lane::Response).or_else(|| state.ends.take(Lane::Request));
        state.note_taken(&self.local.group.counters[self.local.own], taken)
    }

    /// As [`Self::take`], responses only.
    pub fn take_response(&self) -> Option<(usize, T)> {
        let mut state = self.state();
        let taken = state.ends.take(Lane::Response);
        state.note_taken(&self.local.group.counters[self.local.own], taken)
    }

    /// Publishes what was pushed now, instead of at the end of the turn.
    pub fn flush(&self) {
        end_turn(self.local(), None);
    }

    /// The port's counters; readable from any thread.
    pub fn counters(&self) -> Arc<HandoffCounters> {
        Arc::clone(&self.local.group.counters[self.local.own])
    }
}

/// The future of [`Port::room`].
#[must_use = "a future does nothing unless it is awaited"]
#[derive(Debug)]
pub struct Room<'a, T> {
    port: &'a Port<T>,
    to: usize,
    waker: Option<Waker>,
}

impl<T> Future for Room<'_, T> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.port.state();
        let Some(destination) = state.destinations.get_mut(self.to) else { return Poll::Ready(()) };
        if !destination.is_congested() {
            return Poll::Ready(());
        }
        let waker = context.waker();
        if !destination.waiters.iter().any(|present| present.will_wake(waker)) {
            destination.waiters.push(waker.clone());
        }
        drop(state);
        self.waker = Some(waker.clone());
        Poll::Pending
    }
}

impl<T> Drop for Room<'_, T> {
    /// Who gives up waiting leaves nothing behind: clients come and go while a destination is congested.
    fn drop(&mut self) {
        let Some(own) = self.waker.take() else { return };
        let mut state = self.port.state();
        let Some(destination) = state.destinations.get_mut(self.to) else { return };
        let place = destination.waiters.iter().position(|waker| waker.will_wake(&own));
        let left = place.map(|place| destination.waiters.swap_remove(place));
        drop(state);
        // Dropping a waker may run code of somebody's.
        drop(left);
    }
}

/// The future of [`Port::ready`].
#[must_use = "a future does nothing unless it is awaited"]
#[derive(Debug)]
pub struct Ready<'a, T> {
    port: &'a Port<T>,
    waker: Option<Waker>,
}

impl<T> Future for Ready<'_, T> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.port.state();
        let previous = if state.ends.has_some() {
            state.ready.take()
        } else {
            state.ready.replace(context.waker().clone())
        };
        let arrived = state.ready.is_none();
        drop(state);
        // Dropping somebody's waker may run code of theirs: not while the state is borrowed.
        drop(previous);
        self.waker = if arrived { None } else { Some(context.waker().clone()) };
        if arrived { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl<T> Drop for Ready<'_, T> {
    fn drop(&mut self) {
        let Some(own) = self.waker.take() else { return };
        let mut state = self.port.state();
        // Another task may have taken the place meanwhile.
        let is_own = state.ready.as_ref().is_some_and(|waker| waker.will_wake(&own));
        let previous = if is_own { state.ready.take() } else { None };
        drop(state);
        drop(previous);
    }
}

impl<T> Destination<T> {
    fn is_congested(&self) -> bool {
        self.overflow.iter().any(|lane| !lane.is_empty())
    }
}

impl Group {
    /// How to reach a worker; `None` before it is attached.
    fn place(&self, worker: usize) -> Option<&Place> {
        self.places[worker].get().or_else(|| {
            // Either this sees the place, or the worker's first look sees what was published.
            fence(Ordering::SeqCst);
            self.places[worker].get()
        })
    }

    /// Announces what was published for a worker. With a runtime in its turn a sleeper may be sent a message.
    fn announce(&self, own: usize, to: usize, core: Option<&Core>) {
        let Some(place) = self.place(to) else { return };
        let counters = &self.counters[own];
        match self.strategy {
            Strategy::Owner => {}
            Strategy::Naive | Strategy::Edge | Strategy::Armed => {
                // The flag decides nothing here: it tells the consumer that its wake was no accident.
                place.inbox.announce();
                place.doorbell.ring();
                counters.wakes_sent.increment();
            }
            Strategy::Mesh | Strategy::MeshSpin | Strategy::MsgRing => self.wake_sleeper(own, place, core),
        }
    }

    /// Wakes a worker if it sleeps.
    fn wake_sleeper(&self, own: usize, place: &Place, core: Option<&Core>) {
        let counters = &self.counters[own];
        if !place.inbox.announce() {
            counters.wakes_suppressed.increment();
            return;
        }
        counters.wakes_sent.increment();
        match core {
            Some(core) if self.strategy == Strategy::MsgRing => {
                core.with_driver(|driver| driver.send_message(&place.doorbell));
            }
            _ => place.doorbell.ring(),
        }
    }
}

impl<T> State<T> {
    /// From now on something may be in a queue that is not announced.
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

    /// Has a destination looked after at the end of the turn.
    #[inline]
    fn look_after(&mut self, to: usize) {
        if !std::mem::replace(&mut self.destinations[to].pending, true) {
            self.pending.push(to);
        }
    }

    #[inline]
    fn push(&mut self, group: &Group, own: usize, to: usize, lane: Lane, message: T) -> Result<(), T> {
        if to == own || to >= self.destinations.len() || group.strategy == Strategy::Owner {
            return Err(message);
        }
        self.begin_publishing(group, own);
        let put = if self.destinations[to].overflow[lane.index()].is_empty() {
            self.put(group, own, to, lane, message)
        } else {
            Err(message)
        };
        if let Err(message) = put {
            let overflow = &mut self.destinations[to].overflow[lane.index()];
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

    /// Puts a message into the queue and announces it, if that is not left to the end of the turn.
    #[inline]
    fn put(&mut self, group: &Group, own: usize, to: usize, lane: Lane, message: T) -> Result<(), T> {
        let announce = self.ends.put(to, lane, message)?;
        if self.ends.are_published_later() {
            self.destinations[to].unannounced = true;
            self.look_after(to);
        } else if announce {
            group.announce(own, to, None);
        } else {
            group.counters[own].wakes_suppressed.increment();
        }
        Ok(())
    }

    /// Moves what waits for a destination into its queue. The lane in which something is left, if so.
    fn move_overflow(&mut self, group: &Group, own: usize, to: usize) -> Option<Lane> {
        let mut stuck = None;
        for lane in Lane::BOTH {
            while let Some(message) = self.destinations[to].overflow[lane.index()].pop_front() {
                if let Err(message) = self.put(group, own, to, lane, message) {
                    self.destinations[to].overflow[lane.index()].push_front(message);
                    stuck = stuck.or(Some(lane));
                    break;
                }
            }
        }
        stuck
    }

    /// Publishes and announces what was put for a destination, and what waited. Collects who waited for room.
    fn send_off(&mut self, local: &Local<T>, to: usize, core: Option<&Core>, wakers: &mut Vec<Waker>) {
        let (group, own) = (&*local.group, local.own);
        loop {
            let stuck =
                if self.destinations[to].is_congested() { self.move_overflow(group, own, to) } else { None };
            if std::mem::take(&mut self.destinations[to].unannounced) {
                self.ends.publish(to);
                group.announce(own, to, core);
            }
            if stuck.is_none() {
                self.destinations[to].pending = false;
                wakers.append(&mut self.destinations[to].waiters);
                return;
            }
            let lanes = Lane::BOTH.into_iter();
            let mut waiting = lanes.filter(|lane| !self.destinations[to].overflow[lane.index()].is_empty());
            let ends = &mut self.ends;
            if waiting.all(|lane| ends.await_room(to, lane)) {
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

    /// Gives back the room of what was taken, and tells those who wait for it.
    fn settle(&mut self, local: &Local<T>, core: Option<&Core>) {
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
        if let Some(gaps) = &mut self.gaps {
            gaps.observe(monotonic(), count);
        }
        let mut owed = std::mem::take(&mut self.owed);
        self.ends.settle(&mut owed);
        for worker in owed.drain(..) {
            if let Some(place) = group.place(worker) {
                group.wake_sleeper(local.own, place, core);
            }
        }
        self.owed = owed;
    }
}

/// The end of a turn, or of what a program wants published early.
fn end_turn<T>(local: &Local<T>, core: Option<&Core>) {
    let mut wakers = Vec::new();
    let mut state = local.state.borrow_mut();
    state.settle(local, core);
    if !state.pending.is_empty() {
        state.begin_publishing(&local.group, local.own);
    }
    for _ in 0..state.pending.len() {
        let to = state.pending.remove(0);
        state.send_off(local, to, core, &mut wakers);
    }
    state.end_publishing(&local.group, local.own);
    // Woken when nothing is borrowed: what they do is not ours to know.
    drop(state);
    wakers.into_iter().for_each(Waker::wake);
}

/// The runtime's part.
struct Hook<T>(Arc<Local<T>>);

impl<T> Hook<T> {
    fn counters(&self) -> &HandoffCounters {
        &self.0.group.counters[self.0.own]
    }
}

impl<T> Attached for Hook<T> {
    fn end_turn(&self, core: &Core, in_turn: bool) {
        end_turn(&self.0, in_turn.then_some(core));
    }

    fn look(&self, core: &Core, sight: Sight) -> bool {
        let mut state = self.0.state.borrow_mut();
        if state.ready.is_none() && sight == Sight::Turn || !state.ends.has_some() {
            return false;
        }
        if sight == Sight::Unannounced && state.slept_empty {
            // In this order: whoever is done publishing has announced it before.
            let publishing = |word: &CachePadded<AtomicU32>| !word.load(Ordering::Acquire).is_multiple_of(2);
            if !self.0.group.publishing.iter().any(publishing) && !core.inbox.flag.is_notified() {
                self.counters().wakes_recovered.increment();
            }
        }
        let waker = state.ready.take();
        drop(state);
        waker.map(Waker::wake).is_some()
    }

    fn arm(&self) -> bool {
        let mut state = self.0.state.borrow_mut();
        state.slept_empty = !state.ends.has_some();
        if state.ready.is_none() {
            state.ends.collect();
        } else if !state.slept_empty {
            return false;
        }
        state.ends.arm()
    }

    fn disarm(&self) {
        let mut state = self.0.state.borrow_mut();
        if state.ends.disarm() {
            // What comes between now and the look is nobody's lost wake: it was pushed to somebody awake.
            state.slept_empty = false;
        }
    }

    fn count_spurious(&self) {
        self.counters().wakes_spurious.increment();
    }

    fn spin_budget(&self) -> Duration {
        self.0.state.borrow().gaps.as_ref().map_or(Duration::ZERO, Gaps::budget)
    }

    fn is_over(&self) -> bool {
        Arc::strong_count(&self.0) == 1 && self.0.state.borrow().pending.is_empty()
    }
}
