//! One open connection: messages go out, what comes back is judged, and both are noted down.
//!
//! The clock is read once for each lease, after it has arrived. That moment is the end of every message the lease
//! completes and the start of every message that goes out because of it: between the two lies nothing but comparing
//! and copying. A message therefore starts a little before the kernel has it and ends a little after the kernel had
//! it, so a service time contains the generator's own work and is never too short.

use std::{
    cell::RefCell,
    collections::VecDeque,
    future::{Future, poll_fn},
    io,
    pin::{Pin, pin},
    rc::Rc,
    task::{Context, Poll, ready},
    time::Duration,
};

use weir_engine::{
    net::Stream,
    time::{Instant, Sleep, now, sleep_until, timeout},
};

use crate::{
    connector::Connected,
    failure::{Class, Failure},
    recorder::{PendingMessage, RightAnswer},
    worker_state::WorkerState,
    workload::{Accepted, End, Loss, Notes, Workload},
};

/// A connection that carries messages.
pub(crate) struct Connection<W: Workload> {
    stream: Stream,
    state: RefCell<State<W::ConnectionState>>,
}

struct State<P> {
    protocol: P,
    sent: u64,
    pending: VecDeque<PendingMessage>,
    /// What the last arrival completed that was right.
    right: Option<RightAnswer>,
}

/// An arrival of bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) now_ns: u64,
    pub(crate) messages: u64,
    /// The peer closes the connection now.
    pub(crate) closes: bool,
}

/// What came of waiting for a peer to close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CloseOutcome {
    /// It did.
    Closed,
    /// It sent so many bytes instead.
    Spoke(usize),
    /// It kept the connection open for longer than anybody should wait.
    KeptOpen,
}

impl<W: Workload> Connection<W> {
    /// A connection at a place of its worker that carries so many messages at most.
    pub(crate) fn new(shared: &WorkerState<W>, connected: Connected, depth: usize, place: usize) -> Self {
        let protocol = shared.workload.open(place, shared.connection_number(), connected.took_ns);
        let pending = VecDeque::with_capacity(depth);
        Self {
            stream: connected.stream,
            state: RefCell::new(State { protocol, sent: 0, pending, right: None }),
        }
    }

    /// Goes on with what was in flight on the connection before.
    pub(crate) fn adopt_pending(&self, pending: VecDeque<PendingMessage>) {
        let mut state = self.state.borrow_mut();
        state.sent = pending.len() as u64;
        state.pending = pending;
    }

    /// Messages in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.state.borrow().pending.len()
    }

    /// Messages that were answered.
    pub(crate) fn completed(&self) -> u64 {
        let state = self.state.borrow();
        state.sent - state.pending.len() as u64
    }

    /// The last answers that were right.
    pub(crate) fn right(&self) -> Option<RightAnswer> {
        self.state.borrow().right
    }

    /// When the oldest message in flight was started.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.state.borrow().pending.front().map(|pending| Instant::from_nanos(pending.started_ns))
    }

    /// Starts the next message unless too much is queued. When it waits, nothing of the message is queued.
    #[inline]
    pub(crate) fn poll_start(
        &self,
        shared: &WorkerState<W>,
        pending: PendingMessage,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_send(shared, pending, context))?;
        shared.started(pending);
        Poll::Ready(Ok(()))
    }

    /// Sends a message that was started before.
    #[inline]
    pub(crate) fn poll_send(
        &self,
        shared: &WorkerState<W>,
        pending: PendingMessage,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let state = &mut *self.state.borrow_mut();
        ready!(shared.workload.poll_request(&state.protocol, state.sent, &self.stream, context))?;
        state.sent += 1;
        state.pending.push_back(pending);
        Poll::Ready(Ok(()))
    }

    /// Sends bytes that are no message.
    pub(crate) fn poll_aside(&self, bytes: &[u8], context: &mut Context<'_>) -> Poll<io::Result<()>> {
        pin!(self.stream.send_slice(bytes)).poll(context)
    }

    /// Takes the next bytes, has them judged and notes the messages they complete.
    #[inline]
    pub(crate) fn poll_arrival(
        &self,
        shared: &WorkerState<W>,
        context: &mut Context<'_>,
    ) -> Poll<Result<Moment, End>> {
        let lease = match ready!(pin!(self.stream.recv()).poll(context)) {
            Ok(Some(lease)) => lease,
            Ok(None) => return Poll::Ready(Err(self.end(shared, None))),
            Err(error) => return Poll::Ready(Err(self.end(shared, Some(&error)))),
        };
        let now_ns = now().as_nanos();
        let state = &mut *self.state.borrow_mut();
        let mut recorder = shared.recorder.borrow_mut();
        recorder.advance(now_ns);
        let (right_before, bytes_before) = (recorder.completed(), recorder.bytes());
        let notes = Notes { now_ns, sent: state.sent, pending: &mut state.pending, recorder: &mut recorder };
        let accepted = shared.workload.accept(&mut state.protocol, &lease, notes);
        drop(lease);
        if recorder.completed() > right_before {
            let (bytes, is_in_window) = (recorder.bytes() - bytes_before, recorder.is_in_window());
            state.right = Some(RightAnswer { now_ns, bytes, is_in_window });
        }
        Poll::Ready(match accepted {
            Ok(Accepted { messages, closes }) => Ok(Moment { now_ns, messages, closes }),
            Err(failure) => Err(End::Failed(failure)),
        })
    }

    /// The connection has ended, or is broken, as receiving or sending has told.
    #[cold]
    pub(crate) fn end(&self, shared: &WorkerState<W>, error: Option<&io::Error>) -> End {
        let now_ns = now().as_nanos();
        let state = &mut *self.state.borrow_mut();
        let mut recorder = shared.recorder.borrow_mut();
        recorder.advance(now_ns);
        let notes = Notes { now_ns, sent: state.sent, pending: &mut state.pending, recorder: &mut recorder };
        shared.workload.end(&mut state.protocol, error, notes)
    }

    /// Waits for the peer to close, at most for a time; there and then when the time is zero.
    async fn close_outcome(&self, limit: Duration) -> CloseOutcome {
        let end = poll_fn(|context| pin!(self.stream.recv()).poll(context));
        match timeout(limit, end).await {
            Ok(Ok(Some(lease))) => CloseOutcome::Spoke(lease.len()),
            // Broken or ended: either way the peer has let go.
            Ok(Ok(None) | Err(_)) => CloseOutcome::Closed,
            Err(_) => CloseOutcome::KeptOpen,
        }
    }

    /// Takes back what is in flight.
    pub(crate) fn take_pending(&self) -> VecDeque<PendingMessage> {
        std::mem::take(&mut self.state.borrow_mut().pending)
    }

    /// Tells the workload that what is in flight is lost.
    pub(crate) fn lost(&self, shared: &WorkerState<W>, loss: &Loss<'_>) {
        let state = self.state.borrow();
        shared.workload.lost(Some(&state.protocol), &state.pending, loss);
    }

    /// Notes a failure that ended everything in flight.
    pub(crate) fn failed(&self, shared: &WorkerState<W>, failure: &Failure) {
        shared.failed(failure, self.in_flight() as u64);
        shared.unanswered(failure, &self.state.borrow().pending);
        self.lost(shared, &Loss { failure, now_ns: now().as_nanos() });
    }

    /// Keeps an idle connection for the next load, where there is one.
    pub(crate) fn park(self: Rc<Self>, shared: &WorkerState<W>, place: usize) {
        let Some(parking) = &shared.parking else { return };
        if self.in_flight() == 0 {
            let connected = |own: Self| Connected { stream: own.stream, took_ns: 0 };
            parking.borrow_mut()[place] = Rc::into_inner(self).map(connected);
        }
    }

    /// Tells the peer that no message will follow. One that has let go need not be told.
    pub(crate) async fn finish(&self) {
        let _ = self.stream.shutdown().await;
    }

    /// Takes leave of a connection that the peer closes: it is to close first, so that the port waits out its time on
    /// the peer's side, but not for ever. A peer that sends more instead has failed.
    pub(crate) async fn await_close(self, shared: &WorkerState<W>) -> Result<(), Failure> {
        let limit = shared.close_backoff.borrow_mut().limit(now());
        shared.awaiting_close.set(shared.awaiting_close.get() + 1);
        let close_outcome = self.close_outcome(limit).await;
        shared.awaiting_close.set(shared.awaiting_close.get() - 1);
        shared.close_backoff.borrow_mut().saw(close_outcome != CloseOutcome::KeptOpen, limit, now());
        if let Some(connections) = shared.recorder.borrow_mut().connections() {
            match close_outcome {
                CloseOutcome::Closed => connections.closed_as_said += 1,
                CloseOutcome::KeptOpen => connections.kept_open += 1,
                CloseOutcome::Spoke(_) => {}
            }
        }
        if close_outcome != CloseOutcome::Closed {
            // Nothing is left to be lost, and a reset leaves no port behind.
            self.abort();
        }
        match close_outcome {
            CloseOutcome::Spoke(bytes) => Err(Failure::unsolicited(W::UNASKED, bytes)),
            CloseOutcome::Closed | CloseOutcome::KeptOpen => Ok(()),
        }
    }

    /// Closes at once.
    pub(crate) fn abort(self) {
        self.stream.abort();
    }
}

/// Watches the oldest message of a connection without a timer for each message: the timer that is armed is left alone
/// until it fires, and only then is it looked at which message has become the oldest.
pub(crate) struct Watch {
    limit: Duration,
    deadline: Instant,
    sleep: Option<Sleep>,
}

impl Watch {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, deadline: Instant::default(), sleep: None }
    }

    /// Whether the timer has to be looked at although it was not what woke the task: it is not armed, or it fired
    /// together with an arrival.
    #[inline]
    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.deadline.as_nanos()
    }

    /// Fails when the oldest message has waited too long; otherwise arranges to be polled when it may have.
    pub(crate) fn check(
        &mut self,
        oldest: Option<Instant>,
        context: &mut Context<'_>,
    ) -> Result<(), Failure> {
        loop {
            let sleep = match &mut self.sleep {
                Some(sleep) => sleep,
                None => {
                    self.deadline = oldest.unwrap_or_else(now) + self.limit;
                    self.sleep.insert(sleep_until(self.deadline))
                }
            };
            if Pin::new(sleep).poll(context).is_pending() {
                return Ok(());
            }
            self.sleep = None;
            if oldest.is_some_and(|oldest| now() >= oldest + self.limit) {
                return Err(no_response(self.limit));
            }
        }
    }
}

/// A message was not answered in time.
pub(crate) fn no_response(limit: Duration) -> Failure {
    Failure { class: Class::ResponseTimeout, text: format!("no response within {limit:?}") }
}
