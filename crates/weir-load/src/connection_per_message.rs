//! One connection per message: opened for it, and closed after its answer; by the server where the protocol asks it
//! to, otherwise by this side.
//!
//! A message starts when its connection is started, so connecting is part of its time. Its user continues when the
//! server has closed the connection, or when the wait for the close timed out.

use std::{
    collections::VecDeque,
    future::poll_fn,
    rc::Rc,
    task::{Poll, ready},
};

use weir_engine::time::{now, sleep, sleep_until, timeout};

use crate::{
    connection::{Connection, no_response},
    failure::{Failure, Stage},
    recorder::{PendingMessage, RightAnswer},
    virtual_user::{Trigger, VirtualUser},
    worker_state::{Connected, Pauses, WorkerState},
    workload::{End, Loss, Workload},
};

/// One user: sends messages one after the other until the run ends or its quota is used up. The first may use a
/// connection that is already open.
pub(crate) async fn run_per_request<W: Workload>(shared: Rc<WorkerState<W>>, user: VirtualUser<W>) {
    let VirtualUser { place, connected: mut first, begin_at, trigger, .. } = user;
    sleep_until(begin_at).await;
    let mut pauses = Pauses::default();
    let mut is_first = true;
    while !trigger.is_over() && shared.is_running() {
        let pending = match &trigger {
            Trigger::Closed { think, quota } => {
                if !std::mem::take(&mut is_first) && !think.is_zero() {
                    sleep(*think).await;
                }
                if !shared.may_start() {
                    return;
                }
                let now_ns = now().as_nanos();
                let pending = PendingMessage { intended_ns: now_ns, started_ns: now_ns };
                shared.started(pending);
                shared.consume_budget();
                quota.set(quota.get() - 1);
                pending
            }
            Trigger::Open { open, place } => open.turn(*place).await,
        };
        match ask(&shared, pending, first.take(), place).await {
            Ok(()) => pauses.reset(),
            Err(_) => pauses.pause().await,
        }
    }
}

/// The message was lost, and the loss is noted.
struct Lost;

/// One message, from opening its connection to closing it.
async fn ask<W: Workload>(
    shared: &WorkerState<W>,
    pending: PendingMessage,
    connected: Option<Connected>,
    place: usize,
) -> Result<(), Lost> {
    let connected = match connected {
        Some(connected) => Ok(connected),
        None => shared.connect().await,
    };
    let connection = match connected {
        Ok(connected) => Connection::new(shared, connected, 1, place),
        Err(failure) => {
            shared.failed(&failure, 1);
            shared.unanswered(&failure, [&pending]);
            let loss = Loss { failure: &failure, now_ns: now().as_nanos() };
            shared.workload.lost(None, &VecDeque::from([pending]), &loss);
            return Err(Lost);
        }
    };
    let end = converse(shared, &connection, pending).await;
    let (right, is_answered) = (connection.right(), connection.completed() > 0);
    match end {
        End::Failed(failure) if is_answered => {
            connection.abort();
            take_back(shared, pending, right, &failure);
            Err(Lost)
        }
        End::Failed(failure) => {
            // The message stays in flight until it is answered, whether or not it was sent.
            shared.failed(&failure, 1);
            shared.unanswered(&failure, [&pending]);
            connection.lost(shared, &Loss { failure: &failure, now_ns: now().as_nanos() });
            connection.abort();
            Err(Lost)
        }
        End::Closed => Ok(()),
        End::Closing => {
            if W::CLOSES_FIRST {
                connection.finish().await;
            }
            let Err(failure) = connection.await_close(shared).await else { return Ok(()) };
            take_back(shared, pending, right, &failure);
            Err(Lost)
        }
    }
}

/// Extra bytes followed the answer, so the supposedly right answer was part of something else: retracts it. A message
/// fails once, so nothing is noted if its answer was already wrong.
fn take_back<W: Workload>(
    shared: &WorkerState<W>,
    pending: PendingMessage,
    right: Option<RightAnswer>,
    failure: &Failure,
) {
    let Some(right) = right else { return };
    shared.recorder.borrow_mut().retract(right, pending);
    shared.failed(failure, 0);
}

/// Sends a message and waits for its answer.
async fn converse<W: Workload>(
    shared: &WorkerState<W>,
    connection: &Connection<W>,
    pending: PendingMessage,
) -> End {
    if let Err(error) = poll_fn(|context| connection.poll_send(shared, pending, context)).await {
        // The message is not among those in flight on the connection, so `Connection::end` could take this for a
        // regular close.
        return End::Failed(Failure::system(Stage::Exchange, &error));
    }
    let answer = poll_fn(|context| {
        loop {
            match ready!(connection.poll_arrival(shared, context)) {
                Ok(moment) if moment.messages > 0 => return Poll::Ready(End::Closing),
                Ok(_) => {}
                Err(end) => return Poll::Ready(end),
            }
        }
    });
    match timeout(shared.response_timeout, answer).await {
        Ok(end) => end,
        Err(_) => End::Failed(no_response(shared.response_timeout)),
    }
}
