//! One worker's side of orders: writes requests, notes their outcome, and keeps silent sessions alive.

use std::{
    any::Any,
    cell::{Cell, RefCell},
    collections::VecDeque,
    future::Future,
    io,
    pin::pin,
    rc::Rc,
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use weir_engine::{
    net::Stream,
    time::{now, timeout},
};
use weir_proto::soup::{CLIENT_HEARTBEAT_FRAME, Name};

use super::{
    account_task,
    generator::{OrderGenerator, since_midnight_ns},
    notes::{OrderNotes, OrderTotals, RequestKind},
    round_robin::RoundRobin,
    session::{Message, Moment, Session, SessionOptions},
    spec::OrdersSpec,
    trader::{Trader, Verdict},
};
use crate::{
    connection::Connection,
    connector::{Connected, Connector},
    failure::{Class, Failure, Stage},
    payload::Arrival,
    recorder::{PendingMessage, Recorder},
    virtual_user::VirtualUser,
    worker::{Plan, RunnableWorkload},
    worker_state::{Pauses, WorkerState},
    workload::{Accepted, End, Loss, Notes, Workload},
};

/// Orders that all sessions of a worker keep individually, and the bounds per session.
const KEPT_TOGETHER: usize = 1 << 20;
const KEPT_MIN: usize = 256;
const KEPT_MAX: usize = 1 << 16;
/// Time between two checks for silent sessions. A heartbeat is due after a second without anything sent.
const HEARTBEAT_POLL_NS: u64 = 400_000_000;
/// How long a session may stay taken after its client has left.
pub(crate) const TAKEN_MAX: Duration = Duration::from_secs(1);

/// The sessions of one worker.
pub(crate) struct Orders {
    /// By place.
    sessions: Vec<Rc<RefCell<Session>>>,
    /// Requests that each session may still start.
    quotas: Vec<Cell<u64>>,
    /// Connections that are logged in, by place.
    connections: RefCell<Vec<Option<Rc<Connection<Orders>>>>>,
    round_robin: Option<RoundRobin>,
    login_max: Duration,
    /// Buffer for writing a request.
    scratch: RefCell<Vec<u8>>,
    /// Kind of the last request that was queued.
    kind: Cell<RequestKind>,
    looked_ns: Cell<u64>,
}

impl Orders {
    /// Sessions of this worker.
    pub(crate) fn places(&self) -> usize {
        self.sessions.len()
    }

    pub(crate) fn session(&self, place: usize) -> &Rc<RefCell<Session>> {
        &self.sessions[place]
    }

    /// Requests that the session at `place` may still start.
    pub(crate) fn quota(&self, place: usize) -> &Cell<u64> {
        &self.quotas[place]
    }

    pub(crate) fn round_robin(&self) -> Option<&RoundRobin> {
        self.round_robin.as_ref()
    }

    /// The connection at `place`, when it is logged in.
    pub(crate) fn connection(&self, place: usize) -> Option<Rc<Connection<Orders>>> {
        self.connections.borrow()[place].clone()
    }

    /// Sets or clears the logged-in connection at `place`.
    pub(crate) fn set_connection(&self, place: usize, connection: Option<Rc<Connection<Orders>>>) {
        self.connections.borrow_mut()[place] = connection;
    }

    /// Longest wait for the answers to a login.
    pub(crate) fn login_max(&self) -> Duration {
        self.login_max
    }

    /// Logs in on a connection before the run begins: nothing is in flight and nothing is noted.
    async fn log_in(&self, place: usize, stream: &Stream) -> Result<(), Failure> {
        let session = &self.sessions[place];
        let broken = |error: io::Error| Failure::system(Stage::Exchange, &error);
        let mut bytes = Vec::new();
        session.borrow_mut().begin(now().as_nanos());
        loop {
            session.borrow_mut().take_aside(&mut bytes);
            stream.send_slice(&bytes).await.map_err(broken)?;
            if session.borrow().is_live() {
                return Ok(());
            }
            let Some(lease) = stream.recv().await.map_err(broken)? else {
                return Err(closed(session.borrow().account()));
            };
            let at = moment(now().as_nanos());
            let mut session = session.borrow_mut();
            let mut input: &[u8] = &lease;
            while session.next(&mut input, at)?.is_some() {}
        }
    }
}

/// The current time on both clocks.
fn moment(now_ns: u64) -> Moment {
    Moment { now_ns, wall_ns: since_midnight_ns() }
}

/// The server ended a connection before the login was answered.
#[cold]
fn closed(account: Name<6>) -> Failure {
    let text = format!("the server closed the connection before {account} was logged in");
    Failure { class: Class::Short, text }
}

/// The answers to a login did not come in time.
#[cold]
pub(crate) fn no_login(account: Name<6>, limit: Duration) -> Failure {
    let text = format!("{account} was not logged in within {limit:?}");
    Failure { class: Class::ResponseTimeout, text }
}

/// Removes a pending message; usually the oldest one.
#[inline]
fn take(pending: &mut VecDeque<PendingMessage>, place: usize) -> Option<PendingMessage> {
    if place == 0 { pending.pop_front() } else { pending.remove(place) }
}

/// Notes a message.
#[inline]
fn note(message: Message, notes: &mut Notes<'_>, accepted: &mut Accepted) {
    if let Some(orders) = notes.recorder.section::<OrderNotes>() {
        orders.received(message.letter);
    }
    match message.verdict {
        Verdict::Aside => {}
        Verdict::Right { place, hop } => {
            let arrival = Arrival { messages: 1, bytes: message.bytes as u64, wrong: None };
            let pending = take(notes.pending, place);
            notes.recorder.arrived(notes.now_ns, &arrival, pending.into_iter());
            if let Some(orders) = notes.recorder.section::<OrderNotes>() {
                orders.hop(hop);
            }
            accepted.messages += 1;
        }
        Verdict::Wrong { place, failure } => {
            take(notes.pending, place);
            notes.recorder.failed(notes.now_ns, failure.class, 1, failure.text);
            accepted.messages += 1;
        }
    }
}

impl RunnableWorkload for Orders {
    type Spec = OrdersSpec;

    fn of(plan: &Plan<'_>, spec: &OrdersSpec) -> Self {
        let (load, places) = (plan.spec, plan.connections());
        let generator = Rc::new(OrderGenerator::new(load.seed, spec.symbols()));
        let kept = (KEPT_TOGETHER / places.max(1)).max(4 * load.depth as usize).clamp(KEPT_MIN, KEPT_MAX);
        let session = |place: usize| {
            let number = place as u32 * load.workers + plan.worker;
            let options = SessionOptions {
                account: spec.account(number),
                // The specification was validated, so the password fits.
                password: spec.password.0.parse().unwrap_or_default(),
                resume: spec.resume,
                reconnect_every: spec.reconnect_every,
            };
            let trader = Trader::new(Rc::clone(&generator), number, spec.mix, kept);
            Rc::new(RefCell::new(Session::new(options, trader)))
        };
        Self {
            sessions: (0..places).map(session).collect(),
            quotas: vec![Cell::new(plan.quota()); places],
            connections: RefCell::new(vec![None; places]),
            round_robin: spec.in_flight_total.map(|total| RoundRobin::new(plan.part_of(total.into()))),
            login_max: load.response_timeout,
            scratch: RefCell::new(Vec::with_capacity(64)),
            kind: Cell::new(RequestKind::Enter),
            looked_ns: Cell::new(0),
        }
    }

    async fn run_user(shared: Rc<WorkerState<Self>>, user: VirtualUser<Self>) {
        account_task::run_user(shared, user).await;
    }
}

impl Workload for Orders {
    type ConnectionState = Rc<RefCell<Session>>;

    fn open(&self, place: usize, _connection: u32, _connect_ns: u64) -> Self::ConnectionState {
        Rc::clone(&self.sessions[place])
    }

    /// Connects and logs in.
    async fn connect(&self, place: usize, connector: &Connector) -> Result<Connected, Failure> {
        let began = now();
        let mut pauses = Pauses::default();
        loop {
            let connected = connector.connect().await?;
            let outcome = match timeout(self.login_max, self.log_in(place, &connected.stream)).await {
                Ok(outcome) => outcome,
                Err(_) => Err(no_login(self.sessions[place].borrow().account(), self.login_max)),
            };
            let Err(failure) = outcome else { return Ok(connected) };
            connected.stream.abort();
            if !self.sessions[place].borrow().is_taken() || now().since(began) > TAKEN_MAX {
                return Err(failure);
            }
            pauses.pause().await;
        }
    }

    #[inline]
    fn poll_request(
        &self,
        state: &Self::ConnectionState,
        _sent: u64,
        stream: &Stream,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let mut session = state.borrow_mut();
        let trader = session.trader();
        let Some(request) = trader.next_request(since_midnight_ns()) else {
            return Poll::Ready(Err(io::Error::other("no order number is left")));
        };
        let mut message = self.scratch.borrow_mut();
        message.clear();
        trader.encode(&request, &mut message);
        ready!(pin!(stream.send_slice(&message)).poll(context))?;
        self.kind.set(request.kind);
        trader.sent(request);
        session.spoke();
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn started(&self, recorder: &mut Recorder) {
        if let Some(orders) = recorder.section::<OrderNotes>() {
            orders.sent(self.kind.get());
        }
    }

    #[inline]
    fn accept(
        &self,
        state: &mut Self::ConnectionState,
        bytes: &[u8],
        mut notes: Notes<'_>,
    ) -> Result<Accepted, Failure> {
        let mut session = state.borrow_mut();
        let at = moment(notes.now_ns);
        let mut input = bytes;
        let mut accepted = Accepted::default();
        while let Some(message) = session.next(&mut input, at)? {
            note(message, &mut notes, &mut accepted);
        }
        accepted.closes = session.is_due_to_leave();
        Ok(accepted)
    }

    fn end(&self, state: &mut Self::ConnectionState, error: Option<&io::Error>, notes: Notes<'_>) -> End {
        let mut session = state.borrow_mut();
        End::Failed(match error {
            Some(_) if session.trader().is_exhausted() => {
                let account = session.account();
                let text =
                    format!("{account} has used up its order numbers; use other accounts, or another day");
                Failure { class: Class::LocalLimit, text }
            }
            Some(error) => Failure::system(Stage::Exchange, error),
            None if session.is_live() => Failure::short(notes.pending.len()),
            None => closed(session.account()),
        })
    }

    fn lost(
        &self,
        state: Option<&Self::ConnectionState>,
        _pending: &VecDeque<PendingMessage>,
        _loss: &Loss<'_>,
    ) {
        if let Some(session) = state {
            session.borrow_mut().give_up();
        }
    }

    /// Sends a heartbeat on every silent connection.
    fn tick(&self) {
        let now_ns = now().as_nanos();
        if now_ns.saturating_sub(self.looked_ns.get()) < HEARTBEAT_POLL_NS {
            return;
        }
        self.looked_ns.set(now_ns);
        // A connection without room for three bytes has data queued and needs no heartbeat.
        let mut context = Context::from_waker(Waker::noop());
        for (connection, session) in self.connections.borrow().iter().zip(&self.sessions) {
            if let Some(connection) = connection
                && session.borrow_mut().is_silent()
            {
                // The connection's own task notices a failure.
                let _ = connection.poll_aside(&CLIENT_HEARTBEAT_FRAME, &mut context);
            }
        }
    }

    fn totals(&self) -> Option<Box<dyn Any + Send>> {
        let mut sum = OrderTotals::default();
        self.sessions.iter().for_each(|session| sum.merge(&session.borrow().totals()));
        Some(Box::new(sum))
    }
}
