//! The open loop: messages start at intended times, independent of the server.
//!
//! One dispatcher per worker waits for the next intended start and gives it to the connection that has been free for
//! longest. If no connection is free, the starts stay due, and a connection takes one as soon as it has room; the
//! waiting time is part of the response time. Due starts are a position in the schedule, so they need no queue.
//!
//! With one connection per message, a place is a user who opens a connection when it gets a start.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    future::{Future, poll_fn},
    pin::pin,
    rc::Rc,
    task::{Context, Poll, Waker, ready},
};

use weir_engine::time::{Instant, now, sleep_until, yield_now};

use crate::{
    connection::{Connection, Watch},
    outcome::MissedStarts,
    pacer::{Backlog, Pacer},
    recorder::PendingMessage,
    worker_state::WorkerState,
    workload::{End, Workload},
};

/// What the dispatcher and the connections of one worker share.
pub(crate) struct OpenLoop<W: Workload> {
    backlog: Backlog<Box<dyn Pacer>>,
    /// Starts that were made and taken back, and must be made again: intended times, at most a pipeline for each
    /// connection.
    returned: RefCell<VecDeque<u64>>,
    /// Who can take a start, by place.
    receivers: RefCell<Vec<Option<StartReceiver<W>>>>,
    /// Places with room, longest wait first; each at most once.
    free: RefCell<VecDeque<usize>>,
    is_free: RefCell<Vec<bool>>,
    /// When each place got its room.
    free_since_ns: RefCell<Vec<u64>>,
    /// Since when a connection had been free when the load ended; `u64::MAX` if none was free.
    free_at_end_ns: Cell<u64>,
    /// The dispatcher, while it waits for a free connection or for a returned start.
    dispatcher: RefCell<Option<Waker>>,
    /// Wakers of waiting connections by place, for [`Self::dismiss`].
    waiting: RefCell<Vec<Option<Waker>>>,
    /// How long before a start the dispatcher stops sleeping.
    spin_ns: u64,
    may_spin: Cell<bool>,
    spun_ns: Cell<u64>,
}

/// A start is late because of the generator if a connection has been free for longer than this.
const LAG_MAX_NS: u64 = 1_000_000;
/// A start that has been due for longer than this when the load ends has failed; the end of the load did not cut it
/// off. Equal to the time that messages in flight get at the end of a closed loop.
const OVERDUE_NS: u64 = 100_000_000;

/// Who takes a start.
enum StartReceiver<W: Workload> {
    /// An open connection.
    Connection(Rc<Connection<W>>),
    /// A user without a connection.
    User(Rc<User>),
}

impl<W: Workload> Clone for StartReceiver<W> {
    fn clone(&self) -> Self {
        match self {
            StartReceiver::Connection(connection) => StartReceiver::Connection(Rc::clone(connection)),
            StartReceiver::User(user) => StartReceiver::User(Rc::clone(user)),
        }
    }
}

/// Waits for a start.
#[derive(Default)]
struct User {
    given: Cell<Option<PendingMessage>>,
    waker: RefCell<Option<Waker>>,
}

impl User {
    fn give(&self, pending: PendingMessage) {
        self.given.set(Some(pending));
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }
}

impl<W: Workload> OpenLoop<W> {
    /// An open loop over this many connections.
    pub(crate) fn new(backlog: Backlog<Box<dyn Pacer>>, connections: usize, spin_ns: u64) -> Self {
        Self {
            backlog,
            returned: RefCell::new(VecDeque::new()),
            receivers: RefCell::new(std::iter::repeat_with(|| None).take(connections).collect()),
            free: RefCell::new(VecDeque::with_capacity(connections)),
            is_free: RefCell::new(vec![false; connections]),
            free_since_ns: RefCell::new(vec![0; connections]),
            free_at_end_ns: Cell::new(u64::MAX),
            dispatcher: RefCell::new(None),
            waiting: RefCell::new(vec![None; connections]),
            spin_ns,
            may_spin: Cell::new(false),
            spun_ns: Cell::new(0),
        }
    }

    /// Sets whether the CPU is free for spinning.
    pub(crate) fn allow_spin(&self, allowed: bool) {
        self.may_spin.set(allowed);
    }

    /// Time the dispatcher spent spinning on the clock while nothing else happened. That time counts as waiting, not
    /// as work.
    pub(crate) fn spun_ns(&self) -> u64 {
        self.spun_ns.get()
    }

    /// Notes, when the load has ended and before connections are dropped, since when a connection was free.
    pub(crate) fn note_end(&self, close_ns: u64) {
        let (free, receivers, since) =
            (self.free.borrow(), self.receivers.borrow(), self.free_since_ns.borrow());
        let open = free.iter().filter(|place| receivers[**place].is_some()).map(|place| since[*place]);
        let first_ns = open.filter(|since_ns| *since_ns < close_ns).min().unwrap_or(u64::MAX);
        self.free_at_end_ns.set(self.free_at_end_ns.get().min(first_ns));
    }

    /// Skips at most `starts_max` starts intended inside a window that were not made, and calls `show` with each
    /// intended time.
    pub(crate) fn pass_over(
        &self,
        (open_ns, close_ns): (u64, u64),
        starts_max: u64,
        mut show: impl FnMut(u64),
    ) -> MissedStarts {
        let free_ns = self.free_at_end_ns.get();
        let waited_ns = |since_ns: u64| close_ns.saturating_sub(since_ns);
        let mut missed = MissedStarts::default();
        let returned = self.returned.take();
        let again = returned.into_iter().filter(|intended_ns| (open_ns..close_ns).contains(intended_ns));
        let all = again.chain(self.backlog.pass_over(open_ns, close_ns));
        for intended_ns in all.take(usize::try_from(starts_max).unwrap_or(usize::MAX)) {
            missed.starts += 1;
            missed.with_free_connection += u64::from(waited_ns(free_ns.max(intended_ns)) > LAG_MAX_NS);
            missed.overdue += u64::from(waited_ns(intended_ns) > OVERDUE_NS);
            show(intended_ns);
        }
        missed
    }

    /// Returns starts, to be made again at once. They keep their intended times. The caller has added them to the
    /// budget again; the dispatcher may have used it up and may be waiting for them.
    pub(crate) fn return_starts(&self, pending: &VecDeque<PendingMessage>) {
        self.returned.borrow_mut().extend(pending.iter().map(|pending| pending.intended_ns));
        self.wake_dispatcher();
    }

    /// Wakes the dispatcher and the connections with nothing in flight after the load has stopped.
    pub(crate) fn dismiss(&self) {
        let waiting = self.waiting.borrow_mut().iter_mut().filter_map(Option::take).collect::<Vec<_>>();
        waiting.into_iter().for_each(Waker::wake);
        self.wake_dispatcher();
    }

    /// Intended time of the next start.
    fn next_ns(&self) -> u64 {
        self.returned.borrow().front().copied().unwrap_or_else(|| self.backlog.next_ns())
    }

    /// Counts the next start as made.
    fn made(&self) {
        if self.returned.borrow_mut().pop_front().is_none() {
            self.backlog.made();
        }
    }

    /// Makes every start when it is due, until the run ends. When all are made, it waits for returned ones.
    pub(crate) async fn dispatch(&self, shared: &WorkerState<W>) {
        while shared.is_running() {
            self.wait_for(|| shared.may_start() || !shared.is_running()).await;
            if !shared.is_running() {
                return;
            }
            let next_ns = self.next_ns();
            let now_ns = now().as_nanos();
            if now_ns < next_ns {
                self.wait_until(shared, next_ns).await;
                continue;
            }
            let Some((place, receiver)) = self.take_free() else {
                self.wait_for(|| !self.free.borrow().is_empty() || !shared.is_running()).await;
                continue;
            };
            let pending = PendingMessage { intended_ns: next_ns, started_ns: now_ns };
            let connection = match receiver {
                StartReceiver::Connection(connection) => connection,
                StartReceiver::User(user) => {
                    self.made();
                    // Counted as in flight from here on: a run that has spent all starts ends when nothing is in
                    // flight.
                    shared.started(pending);
                    shared.consume_budget();
                    user.give(pending);
                    continue;
                }
            };
            let outcome =
                poll_fn(|context| Poll::Ready(connection.poll_start(shared, pending, context))).await;
            // A connection that has failed, or has no room, becomes free again through its own task.
            if let Poll::Ready(Ok(())) = outcome {
                self.made();
                shared.consume_budget();
                self.offer(shared, place, &connection, now_ns);
            }
        }
    }

    async fn wait_until(&self, shared: &WorkerState<W>, next_ns: u64) {
        if !self.may_spin.get() {
            return self.sleep_until(next_ns, next_ns).await;
        }
        self.sleep_until(next_ns.saturating_sub(self.spin_ns), next_ns).await;
        let mut before_ns = now().as_nanos();
        while before_ns < next_ns && self.next_ns() >= next_ns && shared.is_running() {
            let events_before = shared.recorder.borrow().completed();
            yield_now().await;
            let after_ns = now().as_nanos();
            if shared.recorder.borrow().completed() == events_before {
                self.spun_ns.set(self.spun_ns.get() + (after_ns - before_ns));
            }
            before_ns = after_ns;
        }
    }

    /// Sleeps until a moment, or until a start that is due before `next_ns` is returned.
    async fn sleep_until(&self, until_ns: u64, next_ns: u64) {
        let mut sleep = pin!(sleep_until(Instant::from_nanos(until_ns)));
        let mut returned = pin!(self.wait_for(|| self.next_ns() < next_ns));
        poll_fn(|context| match returned.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(()),
            Poll::Pending => sleep.as_mut().poll(context),
        })
        .await;
    }

    /// Waits until [`Self::wake_dispatcher`] reports the condition.
    async fn wait_for(&self, is_there: impl Fn() -> bool) {
        poll_fn(|context| {
            if is_there() {
                return Poll::Ready(());
            }
            *self.dispatcher.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn wake_dispatcher(&self) {
        if let Some(waker) = self.dispatcher.borrow_mut().take() {
            waker.wake();
        }
    }

    fn take_free(&self) -> Option<(usize, StartReceiver<W>)> {
        loop {
            let place = self.free.borrow_mut().pop_front()?;
            self.is_free.borrow_mut()[place] = false;
            if let Some(receiver) = &self.receivers.borrow()[place] {
                return Some((place, receiver.clone()));
            }
        }
    }

    /// Appends a connection to the free ones if it has room now.
    fn offer(&self, shared: &WorkerState<W>, place: usize, connection: &Connection<W>, now_ns: u64) {
        if connection.in_flight() < shared.depth {
            self.set_free(place, now_ns);
        }
    }

    /// Appends a place to the free ones.
    fn set_free(&self, place: usize, now_ns: u64) {
        if !std::mem::replace(&mut self.is_free.borrow_mut()[place], true) {
            self.free_since_ns.borrow_mut()[place] = now_ns;
            self.free.borrow_mut().push_back(place);
            self.wake_dispatcher();
        }
    }

    /// Sets who takes a start at a place from now on. The place may still be in the list of free ones because of its
    /// previous connection.
    fn set_receiver(&self, place: usize, receiver: StartReceiver<W>, now_ns: u64) {
        self.receivers.borrow_mut()[place] = Some(receiver);
        self.free_since_ns.borrow_mut()[place] = now_ns;
    }

    /// Waits for a start at `place`, without a connection. The start is already noted and subtracted from the budget.
    pub(crate) async fn turn(&self, place: usize) -> PendingMessage {
        let user = Rc::new(User::default());
        let now_ns = now().as_nanos();
        self.set_receiver(place, StartReceiver::User(Rc::clone(&user)), now_ns);
        self.set_free(place, now_ns);
        let pending = poll_fn(|context| match user.given.take() {
            Some(pending) => Poll::Ready(pending),
            None => {
                *user.waker.borrow_mut() = Some(context.waker().clone());
                Poll::Pending
            }
        })
        .await;
        self.receivers.borrow_mut()[place] = None;
        pending
    }
}

/// Receives on the connection at `place` and starts what is due when it has room; an error says what ended it.
pub(crate) async fn exchange<W: Workload>(
    shared: &WorkerState<W>,
    open: &OpenLoop<W>,
    place: usize,
    connection: &Rc<Connection<W>>,
) -> Result<(), End> {
    let now_ns = now().as_nanos();
    open.set_receiver(place, StartReceiver::Connection(Rc::clone(connection)), now_ns);
    open.offer(shared, place, connection, now_ns);
    let mut watch = Watch::new(shared.response_timeout);
    let outcome = poll_fn(|context| poll(shared, open, place, connection, &mut watch, context)).await;
    open.receivers.borrow_mut()[place] = None;
    outcome
}

fn poll<W: Workload>(
    shared: &WorkerState<W>,
    open: &OpenLoop<W>,
    place: usize,
    connection: &Connection<W>,
    watch: &mut Watch,
    context: &mut Context<'_>,
) -> Poll<Result<(), End>> {
    let mut arrived_ns = None;
    while let Poll::Ready(moment) = connection.poll_arrival(shared, context) {
        let moment = moment?;
        if moment.closes {
            return Poll::Ready(Err(End::Closing));
        }
        arrived_ns = Some(moment.now_ns);
        if let Poll::Ready(Err(error)) = poll_due(shared, open, connection, moment.now_ns, context) {
            return Poll::Ready(Err(connection.end(shared, Some(&error))));
        }
        open.offer(shared, place, connection, moment.now_ns);
    }
    if !shared.is_running() && connection.in_flight() == 0 {
        return Poll::Ready(Ok(()));
    }
    if arrived_ns.is_none_or(|now_ns| watch.is_due(now_ns)) {
        watch.check(connection.oldest(), context)?;
    }
    let waker = &mut open.waiting.borrow_mut()[place];
    if !waker.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
        *waker = Some(context.waker().clone());
    }
    Poll::Pending
}

/// Makes starts that are due while the connection has room.
fn poll_due<W: Workload>(
    shared: &WorkerState<W>,
    open: &OpenLoop<W>,
    connection: &Connection<W>,
    now_ns: u64,
    context: &mut Context<'_>,
) -> Poll<std::io::Result<()>> {
    while shared.may_start() && connection.in_flight() < shared.depth {
        let next_ns = open.next_ns();
        if next_ns > now_ns {
            break;
        }
        let pending = PendingMessage { intended_ns: next_ns, started_ns: now_ns };
        ready!(connection.poll_start(shared, pending, context))?;
        open.made();
        shared.consume_budget();
    }
    Poll::Ready(Ok(()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use weir_engine::{Config, Driver, Runtime};

    use super::*;
    use crate::{
        echo::Echo,
        pacer::{Share, Uniform},
    };

    fn open() -> OpenLoop<Echo> {
        let share = Share { rate_per_second: 1000.0, worker: 0, workers: 1 };
        OpenLoop::new(Backlog::new(Box::new(Uniform::new(share)), 0), 1, 0)
    }

    #[test]
    fn what_is_due_is_counted_without_a_connection() {
        let open = open();
        assert!(open.take_free().is_none());
        let mut intended = Vec::new();
        let missed =
            open.pass_over((2_000_000, 10_000_000), u64::MAX, |intended_ns| intended.push(intended_ns));
        assert_eq!(missed, MissedStarts { starts: 8, ..MissedStarts::default() });
        assert_eq!(
            (intended.len(), intended.first(), intended.last()),
            (8, Some(&2_000_000), Some(&9_000_000))
        );
    }

    #[test]
    fn a_start_is_missed_by_the_generator_only_where_a_connection_was_free_for_it() {
        let user = || StartReceiver::User(Rc::new(User::default()));
        let missed = |free_ns: Option<u64>, close_ns| {
            let open = open();
            if let Some(free_ns) = free_ns {
                open.set_receiver(0, user(), free_ns);
                open.set_free(0, free_ns);
            }
            open.note_end(close_ns);
            let missed = open.pass_over((0, close_ns), u64::MAX, |_| ());
            (missed.starts, missed.with_free_connection)
        };
        assert_eq!(missed(None, 10_000_000), (10, 0));
        assert_eq!(missed(Some(5_000_000), 10_000_000), (10, 9), "the last one is due for a millisecond");
        assert_eq!(missed(Some(9_500_000), 10_000_000), (10, 0), "it got free as the load ended");
        assert_eq!(missed(Some(11_000_000), 10_000_000), (10, 0), "it got free when the load had ended");
        let open = open();
        open.set_free(0, 5);
        open.note_end(10_000_000);
        let missed = open.pass_over((0, 10_000_000), u64::MAX, |_| ());
        assert_eq!(missed.with_free_connection, 0, "its connection was closed");
    }

    #[test]
    fn a_start_that_was_due_for_long_has_failed_and_a_counted_run_misses_no_more_than_it_has_left() {
        let missed = open().pass_over((0, 1_000_000_000), u64::MAX, |_| ());
        assert_eq!((missed.starts, missed.overdue), (1000, 900));
        let missed = open().pass_over((0, 1_000_000_000), 7, |_| ());
        assert_eq!((missed.starts, missed.overdue), (7, 7));
    }

    #[test]
    fn a_start_that_was_taken_back_is_made_again_first_and_keeps_its_time() {
        let open = open();
        for _ in 0..5 {
            open.made();
        }
        let pending = |intended_ns| PendingMessage { intended_ns, started_ns: intended_ns + 7 };
        open.return_starts(&VecDeque::from([pending(3_000_000), pending(4_000_000)]));
        assert_eq!(open.next_ns(), 3_000_000);
        open.made();
        assert_eq!(open.next_ns(), 4_000_000);
        let missed = open.pass_over((4_000_000, 7_000_000), u64::MAX, |_| ());
        assert_eq!(missed.starts, 3, "one again, and two that are still to come");
    }

    #[test]
    fn a_start_that_comes_back_is_not_left_until_the_next_one_is_due() {
        let runtime = Runtime::new(&Config::for_test(Driver::Sim)).expect("the simulator runs everywhere");
        let slept = runtime.block_on(async {
            let open = Rc::new(open());
            let next_ns = now().as_nanos() + 1_000_000_000_000;
            while open.next_ns() < next_ns {
                open.made();
            }
            let (began, again) = (now(), Rc::clone(&open));
            weir_engine::spawn(async move {
                sleep_until(began + Duration::from_secs(1)).await;
                again.return_starts(&VecDeque::from([PendingMessage { intended_ns: 1, started_ns: 2 }]));
            });
            open.sleep_until(next_ns, open.next_ns()).await;
            now().since(began)
        });
        assert_eq!(slept, Duration::from_secs(1));
    }

    #[test]
    fn a_free_user_is_given_the_start() {
        let open = open();
        let user = Rc::new(User::default());
        open.set_receiver(0, StartReceiver::User(Rc::clone(&user)), 0);
        open.set_free(0, 0);
        open.set_free(0, 0);
        let Some((0, StartReceiver::User(free))) = open.take_free() else { panic!("the user is free") };
        free.give(PendingMessage { intended_ns: 1, started_ns: 2 });
        assert_eq!(user.given.take(), Some(PendingMessage { intended_ns: 1, started_ns: 2 }));
        assert!(open.take_free().is_none(), "each place is free at most once");
    }
}
