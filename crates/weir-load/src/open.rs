//! The open loop: messages start at intended times, whatever the server does.
//!
//! One dispatcher a worker waits for the next intended start and gives it to the connection that has been free for
//! longest. When no connection is free the starts stay due, and a connection takes one as soon as it has room; the
//! time they waited is part of their response time. What is due is a place in the schedule, so it needs no queue.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    future::poll_fn,
    rc::Rc,
    task::{Context, Poll, Waker, ready},
};

use weir_engine::time::{Instant, now, sleep_until, yield_now};

use crate::{
    failure::Stage,
    lane::{Failure, Lane, Watch},
    pacer::{Backlog, Pacer},
    recorder::Flight,
    shared::Shared,
};

/// What the dispatcher and the connections of one worker share.
pub(crate) struct OpenLoop {
    backlog: Backlog<Box<dyn Pacer>>,
    /// The open connections, by place.
    lanes: RefCell<Vec<Option<Rc<Lane>>>>,
    /// Places with room, the one that has waited longest first; each at most once.
    free: RefCell<VecDeque<usize>>,
    is_free: RefCell<Vec<bool>>,
    /// The dispatcher, when it waits for a free connection.
    dispatcher: RefCell<Option<Waker>>,
    /// How long before a start the dispatcher stops sleeping.
    spin_ns: u64,
    may_spin: Cell<bool>,
    spun_ns: Cell<u64>,
}

impl OpenLoop {
    /// An open loop over this many connections.
    pub(crate) fn new(backlog: Backlog<Box<dyn Pacer>>, connections: usize, spin_ns: u64) -> Self {
        Self {
            backlog,
            lanes: RefCell::new(std::iter::repeat_with(|| None).take(connections).collect()),
            free: RefCell::new(VecDeque::with_capacity(connections)),
            is_free: RefCell::new(vec![false; connections]),
            dispatcher: RefCell::new(None),
            spin_ns,
            may_spin: Cell::new(false),
            spun_ns: Cell::new(0),
        }
    }

    /// The CPU is free for spinning, or not.
    pub(crate) fn allow_spin(&self, allowed: bool) {
        self.may_spin.set(allowed);
    }

    /// Time the dispatcher spent watching the clock while nothing else happened. That is waiting, not work.
    pub(crate) fn spun_ns(&self) -> u64 {
        self.spun_ns.get()
    }

    /// Starts intended inside a window that were not made; see [`Backlog::pass_over`].
    pub(crate) fn pass_over(&self, open_ns: u64, close_ns: u64) -> u64 {
        self.backlog.pass_over(open_ns, close_ns)
    }

    /// Makes every start when it is due, until the run ends.
    pub(crate) async fn dispatch(&self, shared: &Shared) {
        while shared.may_start() {
            let next_ns = self.backlog.next_ns();
            let now_ns = now().as_nanos();
            if now_ns < next_ns {
                self.wait_until(shared, next_ns).await;
                continue;
            }
            let Some((place, lane)) = self.take_free() else {
                self.wait_for_free().await;
                continue;
            };
            let flight = Flight { intended_ns: next_ns, started_ns: now_ns };
            let outcome = poll_fn(|context| Poll::Ready(lane.poll_start(shared, flight, context))).await;
            // A connection that has failed, or has no room, comes back through its own task.
            if let Poll::Ready(Ok(())) = outcome {
                self.backlog.made();
                shared.spend();
                self.offer(shared, place, &lane);
            }
        }
    }

    async fn wait_until(&self, shared: &Shared, next_ns: u64) {
        if !self.may_spin.get() {
            return sleep_until(Instant::from_nanos(next_ns)).await;
        }
        sleep_until(Instant::from_nanos(next_ns.saturating_sub(self.spin_ns))).await;
        let mut before_ns = now().as_nanos();
        while before_ns < next_ns && shared.is_running() {
            let events_before = shared.recorder.borrow().completed();
            yield_now().await;
            let after_ns = now().as_nanos();
            if shared.recorder.borrow().completed() == events_before {
                self.spun_ns.set(self.spun_ns.get() + (after_ns - before_ns));
            }
            before_ns = after_ns;
        }
    }

    async fn wait_for_free(&self) {
        poll_fn(|context| {
            if !self.free.borrow().is_empty() {
                return Poll::Ready(());
            }
            *self.dispatcher.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn take_free(&self) -> Option<(usize, Rc<Lane>)> {
        loop {
            let place = self.free.borrow_mut().pop_front()?;
            self.is_free.borrow_mut()[place] = false;
            if let Some(lane) = &self.lanes.borrow()[place] {
                return Some((place, Rc::clone(lane)));
            }
        }
    }

    /// Puts a connection at the end of the free ones if it has room.
    fn offer(&self, shared: &Shared, place: usize, lane: &Lane) {
        if lane.in_flight() < shared.depth && !std::mem::replace(&mut self.is_free.borrow_mut()[place], true)
        {
            self.free.borrow_mut().push_back(place);
            if let Some(waker) = self.dispatcher.borrow_mut().take() {
                waker.wake();
            }
        }
    }
}

/// Receives on the connection at `place` and starts what is due when it has room; an error says what ended it.
pub(crate) async fn exchange(
    shared: &Shared,
    open: &OpenLoop,
    place: usize,
    lane: &Rc<Lane>,
) -> Result<(), Failure> {
    open.lanes.borrow_mut()[place] = Some(Rc::clone(lane));
    open.offer(shared, place, lane);
    let mut watch = Watch::new(shared.response_timeout);
    let outcome = poll_fn(|context| poll(shared, open, place, lane, &mut watch, context)).await;
    open.lanes.borrow_mut()[place] = None;
    outcome
}

fn poll(
    shared: &Shared,
    open: &OpenLoop,
    place: usize,
    lane: &Lane,
    watch: &mut Watch,
    context: &mut Context<'_>,
) -> Poll<Result<(), Failure>> {
    let mut arrived_ns = None;
    while let Poll::Ready(moment) = lane.poll_arrival(shared, context) {
        let now_ns = moment?.now_ns;
        arrived_ns = Some(now_ns);
        if let Poll::Ready(Err(error)) = poll_due(shared, open, lane, now_ns, context) {
            return Poll::Ready(Err(Failure::system(Stage::Exchange, &error)));
        }
        open.offer(shared, place, lane);
    }
    if arrived_ns.is_none_or(|now_ns| watch.is_due(now_ns)) {
        watch.check(lane, context)?;
    }
    Poll::Pending
}

/// Makes starts that are due while the connection has room.
fn poll_due(
    shared: &Shared,
    open: &OpenLoop,
    lane: &Lane,
    now_ns: u64,
    context: &mut Context<'_>,
) -> Poll<std::io::Result<()>> {
    while shared.may_start() && lane.in_flight() < shared.depth {
        let next_ns = open.backlog.next_ns();
        if next_ns > now_ns {
            break;
        }
        let flight = Flight { intended_ns: next_ns, started_ns: now_ns };
        ready!(lane.poll_start(shared, flight, context))?;
        open.backlog.made();
        shared.spend();
    }
    Poll::Ready(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pacer::{Share, Uniform};

    #[test]
    fn what_is_due_is_counted_without_a_connection() {
        let share = Share { rate_per_second: 1000.0, worker: 0, workers: 1 };
        let open = OpenLoop::new(Backlog::new(Box::new(Uniform::new(share)), 0), 1, 0);
        assert!(open.take_free().is_none());
        assert_eq!(open.pass_over(2_000_000, 10_000_000), 8);
    }
}
