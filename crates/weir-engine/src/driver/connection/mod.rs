//! A socket's states, decided once for all drivers: what a receive finds, what a send may do, and when the descriptor
//! may be closed.
//!
//! Pure: it does no I/O, reads no clock and holds no waker, no byte and no descriptor. A driver reports what happened
//! (a handle was closed, an operation began or ended, a send failed), asks for the next step, and performs it. The
//! drivers differ in how they perform a step, and in nothing that is decided here.
//!
//! The life of a socket ([`Life`]); a drain is the runtime's orderly end:
//!
//! ```text
//!          close                   output is sent             no operation is in flight
//!   Owned ───────▶ Closing ────────────────────────────────────────────▶ closed
//!    ▲ │              │  │                                                  ▲
//!    └─▼              │  └── operations in flight ──▶ Cancelled ────────────┤
//!   Moving            │                                   ▲                 │
//!   (to another       │ in a drain, once output is sent:  │ the peer has    │
//!    runtime)         ▼ our end of the stream             │ ended, failed,  │
//!                 Discarding ─────────────────────────────┴ or taken all ───┘
//! ```
//!
//! A failure leads from each state with a closed handle to `Cancelled` or closed. The linger deadline is a failure. A
//! drain that begins while a receive is being cancelled leads from `Cancelled` to `Discarding`.
//! The input ([`Input`]):
//!
//! ```text
//!            the peer's end                    Open: a send fails because the connection is over
//!   Open ────────────────────▶ Ended             │
//!    │                           │               ▼      nothing is left, or a receive fails
//!    └── another failure ──▶ Failed ◀────────── Rest  (bytes that arrived before are received first)
//! ```
//!
//! Invariants: (1) [`Step::Close`] is the answer only while no operation is in flight, and no output is left on a
//! connection that has not failed; (2) the first error stays, and never turns into an end of stream; (3) after a drain
//! began, a socket with an open input is closed only after our end was sent, or could not be sent.

use rustix::io::Errno;

mod discard;
mod input;
mod receiving;
mod sending;
#[cfg(test)]
mod tests;

pub(super) use discard::{Discarded, discard_input};
pub(crate) use input::Input;
pub(super) use receiving::AfterReceive;
pub(crate) use receiving::Receiving;
pub(crate) use sending::Sending;

/// Who a socket belongs to, and how far its closing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    /// A handle owns it.
    Owned,
    /// It moves to another runtime: no receive is started any more.
    Moving,
    /// The handle is gone. Its output is still sent.
    Closing,
    /// Our end is sent: input is discarded until the peer ends too, or has received everything.
    Discarding,
    /// Every operation in flight is cancelled; the last one that ends closes the socket.
    Cancelled,
}

/// The next step of a socket whose handle may be gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing, until something else happens.
    Wait,
    /// Send the end of our direction, then report it to [`Connection::begin_discarding`].
    EndOutput,
    /// Receive, and discard the bytes.
    Discard,
    /// Cancel every operation in flight, after [`Connection::cancel`].
    Cancel,
    /// Close the descriptor.
    Close,
}

/// The states of one socket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Connection {
    life: Life,
    input: Input,
    receiving: Receiving,
    sending: Sending,
    /// Operations that name the descriptor and have no answer yet.
    operations: u8,
}

impl Connection {
    pub(super) fn new() -> Self {
        Self {
            life: Life::Owned,
            input: Input::Open,
            receiving: Receiving::Idle,
            sending: Sending::Idle,
            operations: 0,
        }
    }

    /// A socket that the kernel reports on when it is connected.
    pub(super) fn connecting() -> Self {
        Self { receiving: Receiving::Empty, sending: Sending::AwaitsRoom, ..Self::new() }
    }

    pub(super) fn input(&self) -> Input {
        self.input
    }

    pub(super) fn error(&self) -> Option<super::error::StoredError> {
        self.input.error()
    }

    pub(super) fn receiving(&self) -> Receiving {
        self.receiving
    }

    pub(super) fn sending(&self) -> Sending {
        self.sending
    }

    pub(super) fn is_closing(&self) -> bool {
        matches!(self.life, Life::Closing | Life::Discarding | Life::Cancelled)
    }

    pub(super) fn is_discarding(&self) -> bool {
        self.life == Life::Discarding
    }

    /// Operations without an answer.
    pub(super) fn operations(&self) -> u8 {
        self.operations
    }

    /// Whether a receive may be started.
    pub(super) fn may_receive(&self) -> bool {
        match self.life {
            Life::Owned => self.input.may_arrive(),
            Life::Discarding => self.input == Input::Open,
            Life::Moving | Life::Closing | Life::Cancelled => false,
        }
    }

    /// An operation has begun.
    pub(super) fn begin(&mut self) {
        self.operations += 1;
    }

    /// An operation has ended.
    pub(super) fn finish(&mut self) {
        self.operations -= 1;
    }

    /// A send, or a wait for room, is in flight from now on.
    pub(super) fn begin_send(&mut self, sending: Sending) {
        self.operations += 1;
        self.sending = sending;
    }

    /// The send in flight has taken this many bytes, or none because it failed. Returns how many it was offered.
    pub(super) fn end_send(&mut self, taken: u32) -> u32 {
        self.operations -= 1;
        self.sending.end(taken)
    }

    /// Sends are direct calls, and the last one found no room.
    pub(super) fn await_room(&mut self) {
        self.sending = Sending::AwaitsRoom;
    }

    /// The kernel reports room. False: that was known already.
    pub(super) fn find_room(&mut self) -> bool {
        std::mem::replace(&mut self.sending, Sending::Idle) == Sending::AwaitsRoom
    }

    /// Whether a direct send may find room.
    pub(super) fn has_room(&self) -> bool {
        self.sending != Sending::AwaitsRoom
    }

    /// The socket is to move to another runtime.
    pub(super) fn begin_moving(&mut self) {
        self.life = Life::Moving;
    }

    /// The handle is closed, or the socket is to be closed without waiting for anything more.
    pub(super) fn close(&mut self) {
        self.life = Life::Closing;
    }

    /// A send, a connect or the driver has failed. Bytes that arrived before may still be received, if the error means
    /// that the connection is over.
    pub(super) fn fail(&mut self, error: Errno) {
        self.input.fail(error);
        if matches!(self.input, Input::Rest(..)) {
            // It can be received without another report.
            self.find_input();
        }
    }

    /// A receive has failed, or no bytes can be received any more.
    pub(super) fn break_off(&mut self, error: Errno) {
        self.input.break_off(error);
    }

    /// A receive has found the end of the stream.
    pub(super) fn end_input(&mut self) {
        self.input.end();
    }

    /// A receive, or a wait for data, is in flight from now on.
    pub(super) fn begin_receive(&mut self, receiving: Receiving) {
        self.operations += 1;
        self.receiving = receiving;
    }

    /// The receive in flight has ended.
    pub(super) fn end_receive(&mut self) {
        self.operations -= 1;
        self.receiving = Receiving::Idle;
    }

    /// The receive in flight shall end: returns which one to cancel, once.
    pub(super) fn stop_receive(&mut self) -> Option<Receiving> {
        match self.receiving {
            Receiving::Armed(_) | Receiving::Polling => {
                Some(std::mem::replace(&mut self.receiving, Receiving::Stopping))
            }
            Receiving::Idle
            | Receiving::Empty
            | Receiving::Stopping
            | Receiving::Starved
            | Receiving::Granted => None,
        }
    }

    /// There is no buffer for a receive. Returns the state before.
    pub(super) fn starve(&mut self) -> Receiving {
        std::mem::replace(&mut self.receiving, Receiving::Starved)
    }

    /// The receive that waited for a buffer may be started.
    pub(super) fn feed(&mut self) {
        self.receiving = Receiving::Idle;
    }

    /// The receive that waited for a buffer may take one although others wait.
    pub(super) fn grant(&mut self) {
        self.receiving = Receiving::Granted;
    }

    /// Whether a direct receive may find something.
    pub(super) fn has_input(&self) -> bool {
        self.receiving != Receiving::Empty
    }

    /// The kernel has reported input, or may have some without a report.
    pub(super) fn find_input(&mut self) {
        if self.receiving == Receiving::Empty {
            self.receiving = Receiving::Idle;
        }
    }

    /// A direct receive has taken everything that was there.
    pub(super) fn await_input(&mut self) {
        self.receiving = Receiving::Empty;
    }

    /// A direct receive has found nothing. True: on a failed connection that is its end.
    pub(super) fn would_block(&mut self) -> bool {
        self.await_input();
        self.input.empty()
    }

    /// What follows a completion of a receive; `more`: it stays in flight.
    pub(super) fn after_receive(&self, more: bool) -> AfterReceive {
        match self.life {
            Life::Closing | Life::Cancelled => AfterReceive::Close,
            Life::Discarding if self.input != Input::Open => AfterReceive::Close,
            Life::Moving if !more => AfterReceive::Move,
            _ if more || !self.may_receive() => AfterReceive::Nothing,
            _ => AfterReceive::Receive,
        }
    }

    /// A bug planted by a test.
    #[cfg(test)]
    pub(super) fn plant(&mut self, receiving: Receiving) {
        self.receiving = receiving;
    }

    /// The turn in which a receive first asked for the rest of a failed connection; `None`: it has none.
    pub(super) fn rest_asked_in(&mut self, turn: u64) -> Option<u64> {
        match &mut self.input {
            Input::Rest(_, since) => Some(*since.get_or_insert(turn)),
            Input::Open | Input::Ended | Input::Failed(_) => None,
        }
    }

    /// Takes the error of a listener, which may accept again.
    pub(super) fn take_error(&mut self) -> Option<super::error::StoredError> {
        let error = self.error();
        if error.is_some() {
            self.input = Input::Open;
        }
        error
    }

    /// The next step towards the end. `has_output`: something is still to be sent. `drains`: the runtime drains, and
    /// this is a stream.
    pub(super) fn step(&self, has_output: bool, drains: bool) -> Step {
        if !self.is_closing() || has_output && self.error().is_none() {
            return Step::Wait;
        }
        match self.life {
            // Closing with unread bytes would make the kernel send a reset, and the peer could lose replies.
            Life::Discarding if drains && self.input == Input::Open => Step::Discard,
            // A receive that was cancelled when the socket was closed may be started again.
            _ if drains && self.input == Input::Open => Step::EndOutput,
            _ if self.operations == 0 => Step::Close,
            Life::Cancelled => Step::Wait,
            _ => Step::Cancel,
        }
    }

    /// Our end of the stream is sent: input is discarded.
    pub(super) fn begin_discarding(&mut self) {
        self.life = Life::Discarding;
    }

    /// Every operation in flight is being cancelled.
    pub(super) fn cancel(&mut self) {
        self.life = Life::Cancelled;
    }
}
