//! One logged-in connection of an account, as its account sees it.

use std::{
    cell::{Cell, RefCell},
    future::Future,
    net::SocketAddr,
    pin::pin,
    rc::Rc,
    task::{Context, Poll, Waker},
};

use weir_engine::{JoinHandle, net::Stream, sync::Signal, time::Instant, try_spawn};
use weir_proto::soup::ServerSession;
use weir_trading::AccountId;

use super::{
    CutOff, connection::on_grid, events::Pace, replay_sender, retransmit::Mark, store::SessionStore,
};

/// Bytes given to a connection before it is checked whether the kernel has taken them. Further messages wait in the
/// account's stream: there it is known that they wait.
pub(super) const UNFLUSHED_BYTES_MAX: usize = 32 << 10;

/// Why a connection is to end, for a reason other than its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    CutOff(CutOff),
    /// The server drains.
    Drained,
}

/// How messages reach the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    /// It has received everything that may be sent: the next message goes straight into its output queue.
    Live,
    /// A task sends the missing messages, as fast as the client takes them.
    CatchingUp,
}

/// The next message to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Buffered(Mark),
    /// It is no longer in memory: it is read from a journal.
    Journal(u64),
}

/// A logged-in connection.
pub(super) struct Session {
    pub(super) stream: Stream,
    /// The address of the client.
    pub(super) peer: Option<SocketAddr>,
    pub(super) rules: RefCell<ServerSession>,
    flow: Cell<Flow>,
    next: Cell<Next>,
    /// Bytes given to the output queue since it was last seen empty.
    unflushed_bytes: Cell<usize>,
    /// It has been up to date at some time.
    has_caught_up: Cell<bool>,
    /// The replay sender waits for the kernel to take something.
    is_waiting: Cell<bool>,
    /// An ignored order number that its client has not been informed of, and when another one may be reported.
    number_to_tell: Cell<Option<u32>>,
    next_to_tell_ns: Cell<u64>,
    end: Cell<Option<End>>,
    /// Wakes the receiving task.
    reader: Signal,
    replay_sender: RefCell<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Session")
            .field("flow", &self.flow)
            .field("next", &self.next)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

/// Polls a future once and drops it if it is not ready.
fn now_or_never<F: Future>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

impl Session {
    /// Creates the session of a connection whose login was accepted. Its queue is empty.
    pub(super) fn new(
        stream: Stream,
        peer: Option<SocketAddr>,
        rules: ServerSession,
        next: Next,
    ) -> Rc<Self> {
        Rc::new(Self {
            stream,
            peer,
            rules: RefCell::new(rules),
            flow: Cell::new(Flow::Live),
            next: Cell::new(next),
            unflushed_bytes: Cell::new(0),
            has_caught_up: Cell::new(false),
            is_waiting: Cell::new(false),
            number_to_tell: Cell::new(None),
            next_to_tell_ns: Cell::new(0),
            end: Cell::new(None),
            reader: Signal::default(),
            replay_sender: RefCell::default(),
        })
    }

    #[inline]
    pub(super) fn is_live(&self) -> bool {
        self.flow.get() == Flow::Live
    }

    #[inline]
    pub(super) fn next(&self) -> Next {
        self.next.get()
    }

    #[inline]
    pub(super) fn next_buffered(&self) -> Option<Mark> {
        match self.next.get() {
            Next::Buffered(mark) => Some(mark),
            Next::Journal(_) => None,
        }
    }

    #[inline]
    pub(super) fn set_next(&self, mark: Mark) {
        self.next.set(Next::Buffered(mark));
    }

    pub(super) fn set_next_in_journal(&self, sequence: u64) {
        self.next.set(Next::Journal(sequence));
    }

    /// Puts bytes into the output queue if there is room. False: there is none, or the connection is broken, which
    /// its receiver sees.
    #[inline]
    pub(super) fn push(&self, bytes: &[u8], now: Instant) -> bool {
        self.push_both(bytes, &[], now)
    }

    /// As [`Self::push`], for bytes in two pieces: both or none.
    #[inline]
    pub(super) fn push_both(&self, first: &[u8], second: &[u8], now: Instant) -> bool {
        let bytes = first.len() + second.len();
        if self.unflushed_bytes.get() + bytes > UNFLUSHED_BYTES_MAX
            && (bytes > UNFLUSHED_BYTES_MAX || !self.look_flushed())
        {
            return false;
        }
        self.push_piece(first, now) && (second.is_empty() || self.push_piece(second, now))
    }

    /// Puts bytes into the output queue, which must have room. False: the connection is broken.
    #[inline]
    pub(super) fn push_piece(&self, bytes: &[u8], now: Instant) -> bool {
        self.unflushed_bytes.set(self.unflushed_bytes.get() + bytes.len());
        match self.stream.try_send_slice(bytes) {
            Ok(true) => {
                self.rules.borrow_mut().on_sent(now.as_nanos());
                true
            }
            Err(_) => false,
            Ok(false) => {
                // Only if the engine's queue limit was configured below this.
                self.end(End::CutOff(CutOff::Slow));
                false
            }
        }
    }

    /// Whether the kernel has taken everything. Call it only while no replay sender waits for that.
    pub(super) fn look_flushed(&self) -> bool {
        let is_flushed = matches!(now_or_never(self.stream.flush()), Some(Ok(())));
        if is_flushed {
            self.unflushed_bytes.set(0);
        }
        is_flushed
    }

    /// Whether bytes may still be in the output queue, as far as is known without asking.
    pub(super) fn has_unflushed(&self) -> bool {
        self.unflushed_bytes.get() > 0
    }

    /// Records an ignored order number. Returns whether to inform the client: yes, unless another one was reported
    /// shortly before.
    pub(super) fn note_ignored(&self, number: u32, now_ns: u64) -> bool {
        if now_ns < self.next_to_tell_ns.get() {
            return false;
        }
        self.next_to_tell_ns.set(now_ns.saturating_add(Pace::SECOND_NS));
        self.number_to_tell.set(Some(number));
        true
    }

    /// The ignored number to report to the client, if there is one.
    pub(super) fn number_to_tell(&self) -> Option<u32> {
        self.number_to_tell.get()
    }

    pub(super) fn clear_number_to_tell(&self) {
        self.number_to_tell.set(None);
    }

    pub(super) fn set_waiting(&self, is_waiting: bool) {
        self.is_waiting.set(is_waiting);
    }

    /// Whether the replay sender waits for the kernel to take something. Then no other task may wait for that.
    pub(super) fn is_waiting(&self) -> bool {
        self.is_waiting.get()
    }

    /// When the connection's timer must fire next.
    #[inline]
    pub(super) fn timer(&self) -> Instant {
        on_grid(self.rules.borrow().deadline_ns())
    }

    /// Records that the replay sender has seen the output queue empty.
    pub(super) fn set_flushed(&self) {
        self.unflushed_bytes.set(0);
    }

    /// Leaves sending to a separate task until everything is sent.
    pub(super) fn fall_behind(self: &Rc<Self>, store: &Rc<SessionStore>, account: AccountId) {
        if self.flow.replace(Flow::CatchingUp) == Flow::CatchingUp {
            return;
        }
        match try_spawn(replay_sender::run(Rc::clone(store), account, Rc::clone(self))) {
            Ok(task) => *self.replay_sender.borrow_mut() = Some(task),
            // No task can be spawned: the connection is ended, like that of a client that does not read.
            Err(_) => self.end(End::CutOff(CutOff::Slow)),
        }
    }

    /// Everything has been sent, or there was nothing to send.
    pub(super) fn catch_up(&self) {
        self.flow.set(Flow::Live);
        self.has_caught_up.set(true);
    }

    pub(super) fn has_caught_up(&self) -> bool {
        self.has_caught_up.get()
    }

    /// Asks the receiving task to end the connection; the first reason counts, except a drain, during which it may
    /// still have to be cut off.
    pub(super) fn end(&self, end: End) {
        if matches!(self.end.get(), None | Some(End::Drained)) {
            self.end.set(Some(end));
            self.reader.wake();
        }
    }

    /// The reason for which the connection is to end, if there is one.
    pub(super) fn requested_end(&self) -> Option<End> {
        self.end.get()
    }

    /// Stores the waker of the receiving task for an end request.
    #[inline]
    pub(super) fn wake_at_end(&self, waker: &Waker) {
        self.reader.register(waker);
    }

    /// Ends the sending task.
    pub(super) fn stop_replay(&self) {
        if let Some(task) = self.replay_sender.take() {
            task.abort();
        }
    }

    /// Ends the connection: queued bytes are still sent, or lost with a reset.
    pub(super) fn close(session: Rc<Self>, is_reset: bool) {
        session.stop_replay();
        // There is no other reference: the account has released it, and the replay sender is gone.
        if let Some(session) = Rc::into_inner(session)
            && is_reset
        {
            session.stream.abort();
        }
    }
}
