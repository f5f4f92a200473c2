//! Keeps one account connected and busy: logs in, exchanges requests and answers, and logs in again where the stream
//! stopped, whether the connection was dropped on purpose or failed.

use std::{collections::VecDeque, future::poll_fn, rc::Rc};

use weir_engine::time::{Instant, now, sleep_until, timeout};

use super::{
    round_robin,
    workload::{Orders, TAKEN_MAX, no_login},
};
use crate::{
    closed,
    connection::Connection,
    failure::Failure,
    open,
    recorder::PendingMessage,
    virtual_user::{Trigger, VirtualUser},
    worker_state::{Pauses, WorkerState},
    workload::End,
};

/// One account, from its first connection to the end of the run.
pub(crate) async fn run_user(shared: Rc<WorkerState<Orders>>, user: VirtualUser<Orders>) {
    let VirtualUser { place, connected, begin_at, trigger, .. } = user;
    let mut account =
        AccountTask { shared, place, trigger, carried: VecDeque::new(), pauses: Pauses::default() };
    sleep_until(begin_at).await;
    // The connection opened before the run is already logged in.
    if let Some(connected) = connected {
        let connection = Connection::new(&account.shared, connected, account.shared.depth, place);
        if !account.trade(Rc::new(connection)).await {
            return;
        }
    }
    while account.goes_on() {
        if let Some(connection) = account.join().await
            && !account.trade(connection).await
        {
            return;
        }
    }
    account.cut_off();
}

struct AccountTask {
    shared: Rc<WorkerState<Orders>>,
    place: usize,
    trigger: Trigger<Orders>,
    /// Requests in flight without a connection, after it was dropped on purpose.
    carried: VecDeque<PendingMessage>,
    pauses: Pauses,
}

impl AccountTask {
    /// Whether the account has anything left to do.
    fn goes_on(&self) -> bool {
        let may_start = !self.shared.is_exhausted() && self.shared.workload.quota(self.place).get() > 0;
        self.shared.is_running() && (may_start || !self.carried.is_empty())
    }

    /// Counts requests as cut off if the run ended while their connection was dropped on purpose.
    fn cut_off(&mut self) {
        let messages = std::mem::take(&mut self.carried).len() as u64;
        self.shared.recorder.borrow_mut().cut_off(now().as_nanos(), messages);
    }

    /// Connects and logs in. A failure is noted and followed by a pause.
    async fn join(&mut self) -> Option<Rc<Connection<Orders>>> {
        let began = now();
        loop {
            let connected = match self.shared.connect().await {
                Ok(connected) => connected,
                Err(failure) => {
                    self.shared.failed(&failure, self.carried.len() as u64);
                    self.shared.unanswered(&failure, &self.carried);
                    self.carried.clear();
                    self.shared.workload.session(self.place).borrow_mut().give_up();
                    break;
                }
            };
            let connection = Rc::new(Connection::new(&self.shared, connected, self.shared.depth, self.place));
            connection.adopt_pending(std::mem::take(&mut self.carried));
            let Err(failure) = self.log_in(&connection).await else { return Some(connection) };
            if self.is_patient(began) {
                // The server has not noticed yet that the previous connection was dropped.
                self.carried = connection.take_pending();
                abort(connection);
                self.pauses.pause().await;
                continue;
            }
            connection.failed(&self.shared, &failure);
            abort(connection);
            let mut session = self.shared.workload.session(self.place).borrow_mut();
            if session.is_taken() {
                session.distrust();
            }
            break;
        }
        round_robin::go_on(&self.shared).await;
        self.pauses.pause().await;
        None
    }

    /// Whether to retry a refused login without noting a failure.
    fn is_patient(&self, began: Instant) -> bool {
        let is_taken = self.shared.workload.session(self.place).borrow().is_taken();
        is_taken && now().since(began) <= TAKEN_MAX && self.shared.is_running()
    }

    async fn log_in(&self, connection: &Connection<Orders>) -> Result<(), Failure> {
        let orders = &self.shared.workload;
        let limit = orders.login_max();
        match timeout(limit, self.greet(connection)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(End::Failed(failure))) => Err(failure),
            Ok(Err(End::Closed | End::Closing)) | Err(_) => {
                Err(no_login(orders.session(self.place).borrow().account(), limit))
            }
        }
    }

    /// Sends the login and the account query, and receives missed messages, until requests may be sent.
    async fn greet(&self, connection: &Connection<Orders>) -> Result<(), End> {
        let shared = &self.shared;
        let session = shared.workload.session(self.place);
        let mut bytes = Vec::new();
        session.borrow_mut().begin(now().as_nanos());
        loop {
            session.borrow_mut().take_aside(&mut bytes);
            poll_fn(|context| connection.poll_aside(&bytes, context))
                .await
                .map_err(|error| connection.end(shared, Some(&error)))?;
            if session.borrow().is_live() {
                return Ok(());
            }
            poll_fn(|context| connection.poll_arrival(shared, context)).await?;
        }
    }

    /// Trades on a connection that is logged in until it ends. Returns whether the account continues.
    async fn trade(&mut self, connection: Rc<Connection<Orders>>) -> bool {
        let shared = &self.shared;
        let orders = &shared.workload;
        orders.set_connection(self.place, Some(Rc::clone(&connection)));
        let outcome = match (&self.trigger, orders.round_robin()) {
            (_, Some(round_robin)) => Err(round_robin::exchange(shared, round_robin, &connection).await),
            (Trigger::Closed { think, .. }, None) => {
                closed::exchange(shared, &connection, *think, orders.quota(self.place)).await
            }
            (Trigger::Open { open, place }, None) => open::exchange(shared, open, *place, &connection).await,
        };
        orders.set_connection(self.place, None);
        let Err(end) = outcome else { return false };
        if connection.completed() > 0 {
            self.pauses.reset();
        }
        match end {
            End::Failed(failure) => {
                connection.failed(shared, &failure);
                abort(connection);
                round_robin::go_on(shared).await;
                self.pauses.pause().await;
            }
            End::Closing | End::Closed => {
                self.carried = connection.take_pending();
                orders.session(self.place).borrow_mut().leave();
                abort(connection);
                round_robin::go_on(shared).await;
            }
        }
        true
    }
}

/// Closes at once; the kernel discards data queued in either direction.
fn abort(connection: Rc<Connection<Orders>>) {
    // The dispatcher and the round robin hold a connection only while they start a message.
    if let Some(connection) = Rc::into_inner(connection) {
        connection.abort();
    }
}
