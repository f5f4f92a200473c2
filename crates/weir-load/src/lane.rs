//! One open connection: messages go out, what comes back is compared, and both are noted down.
//!
//! The clock is read once for each lease, after it has arrived. That moment is the end of every message the lease
//! completes and the start of every message that goes out because of it: between the two lies nothing but comparing
//! and copying. A message therefore starts a little before the kernel has it and ends a little after the kernel had
//! it, so a service time contains the generator's own work and is never too short.

use std::{
    cell::RefCell,
    collections::VecDeque,
    future::Future,
    io,
    pin::{Pin, pin},
    task::{Context, Poll, ready},
    time::Duration,
};

use weir_engine::{
    net::Stream,
    time::{Instant, Sleep, now, sleep_until},
};

use crate::{
    failure::{Class, Stage, classify},
    payload::{Codec, Verifier},
    recorder::Flight,
    shared::Shared,
};

/// Messages up to this size are copied behind what is queued, so that many leave as one and none is allocated. For
/// larger ones copying costs more than an allocation.
const COPIED_BYTES_MAX: usize = 2048;

/// A connection that carries messages.
pub(crate) struct Lane {
    stream: Stream,
    state: RefCell<State>,
}

struct State {
    verifier: Verifier,
    sent: u64,
    flights: VecDeque<Flight>,
}

/// Why a connection ended.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) class: Class,
    pub(crate) text: String,
}

/// An arrival of bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) now_ns: u64,
    pub(crate) messages: u64,
}

impl Failure {
    pub(crate) fn system(stage: Stage, error: &io::Error) -> Self {
        Self { class: classify(stage, error), text: error.to_string() }
    }
}

impl Lane {
    pub(crate) fn new(stream: Stream, codec: Codec, depth: usize) -> Self {
        let flights = VecDeque::with_capacity(depth);
        Self { stream, state: RefCell::new(State { verifier: Verifier::new(codec), sent: 0, flights }) }
    }

    /// Messages in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.state.borrow().flights.len()
    }

    /// Messages that came back right.
    pub(crate) fn completed(&self) -> u64 {
        let state = self.state.borrow();
        state.sent - state.flights.len() as u64
    }

    /// When the oldest message in flight was started.
    pub(crate) fn oldest_ns(&self) -> Option<u64> {
        self.state.borrow().flights.front().map(|flight| flight.started_ns)
    }

    /// Starts the next message unless too much is queued. When it waits, nothing of the message is queued.
    #[inline]
    pub(crate) fn poll_start(
        &self,
        shared: &Shared,
        flight: Flight,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let mut state = self.state.borrow_mut();
        let codec = state.verifier.codec();
        if codec.message_bytes() <= COPIED_BYTES_MAX {
            let mut message = shared.scratch.borrow_mut();
            message.clear();
            codec.append(state.sent, &mut message);
            ready!(pin!(self.stream.send_slice(&message)).poll(context))?;
        } else {
            let mut message = Vec::with_capacity(codec.message_bytes());
            codec.append(state.sent, &mut message);
            ready!(pin!(self.stream.send(message)).poll(context))?;
        }
        state.sent += 1;
        state.flights.push_back(flight);
        let mut recorder = shared.recorder.borrow_mut();
        recorder.advance(flight.started_ns);
        recorder.started(flight);
        Poll::Ready(Ok(()))
    }

    /// Takes the next bytes, compares them and notes the messages they complete.
    #[inline]
    pub(crate) fn poll_arrival(
        &self,
        shared: &Shared,
        context: &mut Context<'_>,
    ) -> Poll<Result<Moment, Failure>> {
        let lease = match ready!(pin!(self.stream.recv()).poll(context)) {
            Ok(Some(lease)) => lease,
            Ok(None) => return Poll::Ready(Err(self.ended())),
            Err(error) => return Poll::Ready(Err(Failure::system(Stage::Exchange, &error))),
        };
        let now_ns = now().as_nanos();
        let mut state = self.state.borrow_mut();
        let sent = state.sent;
        let arrival = state.verifier.accept(&lease, sent);
        drop(lease);
        let mut recorder = shared.recorder.borrow_mut();
        recorder.advance(now_ns);
        recorder.arrived(now_ns, &arrival, state.flights.drain(..arrival.messages as usize));
        Poll::Ready(match arrival.wrong {
            None => Ok(Moment { now_ns, messages: arrival.messages }),
            Some(wrong) => Err(Failure { class: Class::WrongBytes, text: wrong.to_string() }),
        })
    }

    fn ended(&self) -> Failure {
        let text = match self.in_flight() {
            0 => "the server closed a connection that nothing was in flight on".into(),
            messages => format!("the server closed a connection with {messages} messages in flight"),
        };
        Failure { class: Class::Short, text }
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
    pub(crate) fn check(&mut self, lane: &Lane, context: &mut Context<'_>) -> Result<(), Failure> {
        let oldest = lane.oldest_ns().map(Instant::from_nanos);
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
                let text = format!("no response within {:?}", self.limit);
                return Err(Failure { class: Class::ResponseTimeout, text });
            }
        }
    }
}
