//! One open connection: sends messages, judges what comes back, and notes both.
//!
//! The clock is read once for each lease, after its arrival. That moment is the end of every message the lease
//! completes and the start of every message that is sent because of it: only comparing and copying happens in
//! between. A message therefore starts a little before the kernel gets it and ends a little after the kernel received
//! the answer. A service time contains the generator's own work and is never too short.

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
    /// The last right answers.
    right: Option<RightAnswer>,
}

/// An arrival of bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) now_ns: u64,
    pub(crate) messages: u64,
    /// The peer closes the connection after this.
    pub(crate) closes: bool,
}

/// How the wait for a peer's close ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CloseOutcome {
    /// The peer closed.
    Closed,
    /// The peer sent this many bytes instead.
    Spoke(usize),
    /// The peer kept the connection open beyond the limit.
    KeptOpen,
}

impl<W: Workload> Connection<W> {
    /// A connection at a place of its worker, with at most `depth` messages in flight.
    pub(crate) fn new(shared: &WorkerState<W>, connected: Connected, depth: usize, place: usize) -> Self {
        let protocol = shared.workload.open(place, shared.connection_number(), connected.took_ns);
        let pending = VecDeque::with_capacity(depth);
        Self {
            stream: connected.stream,
            state: RefCell::new(State { protocol, sent: 0, pending, right: None }),
        }
    }

    /// Takes over what was in flight on the previous connection.
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

    /// The last right answers.
    pub(crate) fn right(&self) -> Option<RightAnswer> {
        self.state.borrow().right
    }

    /// When the oldest message in flight was started.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.state.borrow().pending.front().map(|pending| Instant::from_nanos(pending.started_ns))
    }

    /// Starts the next message unless too much is queued. While it waits, no part of the message is queued.
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

    /// Sends bytes that belong to no message.
    pub(crate) fn poll_aside(&self, bytes: &[u8], context: &mut Context<'_>) -> Poll<io::Result<()>> {
        pin!(self.stream.send_slice(bytes)).poll(context)
    }

    /// Receives the next bytes, has them judged and notes the messages they complete.
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

    /// How the connection ended, after receiving or sending failed.
    #[cold]
    pub(crate) fn end(&self, shared: &WorkerState<W>, error: Option<&io::Error>) -> End {
        let now_ns = now().as_nanos();
        let state = &mut *self.state.borrow_mut();
        let mut recorder = shared.recorder.borrow_mut();
        recorder.advance(now_ns);
        let notes = Notes { now_ns, sent: state.sent, pending: &mut state.pending, recorder: &mut recorder };
        shared.workload.end(&mut state.protocol, error, notes)
    }

    /// Waits for the peer to close, at most for `limit`; returns at once if that is zero.
    async fn close_outcome(&self, limit: Duration) -> CloseOutcome {
        let end = poll_fn(|context| pin!(self.stream.recv()).poll(context));
        match timeout(limit, end).await {
            Ok(Ok(Some(lease))) => CloseOutcome::Spoke(lease.len()),
            // Broken or ended: either way the peer has closed.
            Ok(Ok(None) | Err(_)) => CloseOutcome::Closed,
            Err(_) => CloseOutcome::KeptOpen,
        }
    }

    /// Takes back what is in flight.
    pub(crate) fn take_pending(&self) -> VecDeque<PendingMessage> {
        std::mem::take(&mut self.state.borrow_mut().pending)
    }

    /// Notifies the workload that everything in flight is lost.
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

    /// Shuts down the sending direction, so that the peer knows that no message will follow. An error is
    /// ignored: a peer that has closed needs no notice.
    pub(crate) async fn finish(&self) {
        let _ = self.stream.shutdown().await;
    }

    /// Waits for a peer that announced a close. The peer should close first, so that TIME_WAIT is on its side; the
    /// wait has a limit. It is a failure if the peer sends more data instead.
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
            // Nothing can be lost any more, and a reset leaves no port in TIME_WAIT.
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

/// Watches the oldest message of a connection without a timer for each message. The armed timer is left alone until
/// it fires; only then is the oldest message looked up.
pub(crate) struct Watch {
    limit: Duration,
    deadline: Instant,
    sleep: Option<Sleep>,
}

impl Watch {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, deadline: Instant::default(), sleep: None }
    }

    /// Whether to check the timer although an arrival woke the task: it is not armed, or it fired together with the
    /// arrival.
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
