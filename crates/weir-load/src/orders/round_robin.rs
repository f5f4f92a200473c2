//! Requests in flight over the whole run, handed from session to session.
//!
//! With one order in flight the answer to session 1 starts an order of session 2, and so on in turn: every order uses
//! another session than the one before. Each worker has its part of the number and its own sessions.

use std::{
    cell::Cell,
    future::poll_fn,
    rc::Rc,
    task::{Context, Poll},
};

use weir_engine::time::now;

use super::workload::Orders;
use crate::{
    connection::{Connection, Watch},
    recorder::PendingMessage,
    worker_state::WorkerState,
    workload::End,
};

/// The round of one worker.
#[derive(Debug)]
pub(crate) struct RoundRobin {
    in_flight_max: u64,
    /// Place of the next session.
    next: Cell<usize>,
}

impl RoundRobin {
    pub(crate) fn new(in_flight_max: u64) -> Self {
        Self { in_flight_max, next: Cell::new(0) }
    }

    /// Starts as many requests as allowed, each on the next session that is ready.
    pub(crate) fn start(&self, shared: &WorkerState<Orders>, now_ns: u64, context: &mut Context<'_>) {
        let places = shared.workload.places();
        let mut passed = 0;
        while passed < places
            && shared.may_start()
            && shared.recorder.borrow().in_flight() < self.in_flight_max
        {
            let place = self.next.get();
            self.next.set((place + 1) % places);
            if self.start_at(shared, place, now_ns, context) {
                passed = 0;
            } else {
                passed += 1;
            }
        }
    }

    /// Starts an order at one place if its session is ready and allowed to.
    fn start_at(
        &self,
        shared: &WorkerState<Orders>,
        place: usize,
        now_ns: u64,
        context: &mut Context<'_>,
    ) -> bool {
        let quota = shared.workload.quota(place);
        let Some(connection) = shared.workload.connection(place).filter(|_| quota.get() > 0) else {
            return false;
        };
        if connection.in_flight() >= shared.depth {
            return false;
        }
        let pending = PendingMessage { intended_ns: now_ns, started_ns: now_ns };
        // A connection that has failed, or has no room, becomes available again through its own task.
        let has_started = matches!(connection.poll_start(shared, pending, context), Poll::Ready(Ok(())));
        if has_started {
            shared.consume_budget();
            quota.set(quota.get() - 1);
        }
        has_started
    }
}

/// Continues the round when a session was connected or lost.
pub(crate) async fn go_on(shared: &WorkerState<Orders>) {
    if let Some(round_robin) = shared.workload.round_robin() {
        poll_fn(|context| {
            round_robin.start(shared, now().as_nanos(), context);
            Poll::Ready(())
        })
        .await;
    }
}

/// Receives on one connection and starts the next order of the round for each answer; returns what ended the
/// connection.
pub(crate) async fn exchange(
    shared: &WorkerState<Orders>,
    round_robin: &RoundRobin,
    connection: &Rc<Connection<Orders>>,
) -> End {
    let mut watch = Watch::new(shared.response_timeout);
    go_on(shared).await;
    poll_fn(|context| poll(shared, round_robin, connection, &mut watch, context)).await
}

fn poll(
    shared: &WorkerState<Orders>,
    round_robin: &RoundRobin,
    connection: &Connection<Orders>,
    watch: &mut Watch,
    context: &mut Context<'_>,
) -> Poll<End> {
    let mut arrived_ns = None;
    while let Poll::Ready(moment) = connection.poll_arrival(shared, context) {
        let moment = match moment {
            Ok(moment) => moment,
            Err(end) => return Poll::Ready(end),
        };
        if moment.closes {
            return Poll::Ready(End::Closing);
        }
        arrived_ns = Some(moment.now_ns);
        round_robin.start(shared, moment.now_ns, context);
    }
    if arrived_ns.is_none_or(|now_ns| watch.is_due(now_ns))
        && let Err(failure) = watch.check(connection.oldest(), context)
    {
        return Poll::Ready(End::Failed(failure));
    }
    Poll::Pending
}
