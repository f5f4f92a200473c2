//! One connection of an account that is logged in, as its account sees it.

use std::{
    cell::{Cell, RefCell},
    future::Future,
    pin::pin,
    rc::Rc,
    task::{Context, Poll, Waker},
};

use weir_engine::{JoinHandle, net::Stream, time::Instant, try_spawn};
use weir_proto::soup::ServerSession;
use weir_trading::AccountId;

use super::{
    CutOff, connection::on_grid, lines::Budget, replay_sender, retransmit::Mark, store::SessionStore,
};
use crate::notify::Notify;

/// Bytes given to a connection before it is asked whether the kernel has taken them. More wait in the account's stream:
/// so they are known to wait.
pub(super) const UNFLUSHED_BYTES_MAX: usize = 32 << 10;

/// Why a connection is to end, as somebody else than its client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    CutOff(CutOff),
    /// The server drains.
    Drained,
}

/// How messages reach the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    /// It has everything that may be sent: the next message goes straight into its output queue.
    Live,
    /// A task sends what it has not got yet, as fast as it takes it.
    CatchingUp,
}

/// The next message to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Buffered(Mark),
    /// Not in memory any more: it is read from a journal.
    Journal(u64),
}

/// A connection that is logged in.
pub(super) struct Session {
    pub(super) stream: Stream,
    pub(super) rules: RefCell<ServerSession>,
    flow: Cell<Flow>,
    next: Cell<Next>,
    /// Bytes given to the output queue since it was last seen empty.
    unflushed_bytes: Cell<usize>,
    /// It had everything at some time.
    has_caught_up: Cell<bool>,
    /// The replay sender waits for the kernel to take something.
    is_waiting: Cell<bool>,
    /// An ignored order number that its client has not been told of yet, and when it may have to hear of another one.
    number_to_tell: Cell<Option<u32>>,
    next_to_tell_ns: Cell<u64>,
    end: Cell<Option<End>>,
    /// The task that receives, when it waits.
    reader: Notify,
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

/// Polls a future once. What it cannot do at once it is not asked again.
fn now_or_never<F: Future>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

impl Session {
    /// A connection whose login was accepted. Nothing is in its queue yet.
    pub(super) fn new(stream: Stream, rules: ServerSession, next: Next) -> Rc<Self> {
        Rc::new(Self {
            stream,
            rules: RefCell::new(rules),
            flow: Cell::new(Flow::Live),
            next: Cell::new(next),
            unflushed_bytes: Cell::new(0),
            has_caught_up: Cell::new(false),
            is_waiting: Cell::new(false),
            number_to_tell: Cell::new(None),
            next_to_tell_ns: Cell::new(0),
            end: Cell::new(None),
            reader: Notify::default(),
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

    /// Puts bytes into the output queue if that has room. False: it has none, or the connection is broken, which its
    /// receiver sees.
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

    /// Puts bytes into the output queue, which is known to have room. False: the connection is broken.
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
                // Only where the engine was told to queue less than this.
                self.end(End::CutOff(CutOff::Slow));
                false
            }
        }
    }

    /// Whether the kernel has taken everything. Only while no replay sender waits for that.
    pub(super) fn look_flushed(&self) -> bool {
        let is_flushed = matches!(now_or_never(self.stream.flush()), Some(Ok(())));
        if is_flushed {
            self.unflushed_bytes.set(0);
        }
        is_flushed
    }

    /// Whether something may still be in the output queue, as far as is known without asking.
    pub(super) fn has_unflushed(&self) -> bool {
        self.unflushed_bytes.get() > 0
    }

    /// An order number is ignored. Whether the client has to hear of it: it has, unless there was another just before.
    pub(super) fn note_ignored(&self, number: u32, now_ns: u64) -> bool {
        if now_ns < self.next_to_tell_ns.get() {
            return false;
        }
        self.next_to_tell_ns.set(now_ns.saturating_add(Budget::EVERY_NS));
        self.number_to_tell.set(Some(number));
        true
    }

    /// The ignored number that its client has to hear of, if there is one.
    pub(super) fn number_to_tell(&self) -> Option<u32> {
        self.number_to_tell.get()
    }

    pub(super) fn clear_number_to_tell(&self) {
        self.number_to_tell.set(None);
    }

    pub(super) fn set_waiting(&self, is_waiting: bool) {
        self.is_waiting.set(is_waiting);
    }

    /// Whether the replay sender waits for the kernel to take something. Then nobody else may wait for that.
    pub(super) fn is_waiting(&self) -> bool {
        self.is_waiting.get()
    }

    /// When the connection's timer has to fire next.
    #[inline]
    pub(super) fn timer(&self) -> Instant {
        on_grid(self.rules.borrow().deadline_ns())
    }

    /// The replay sender has seen the output queue empty.
    pub(super) fn set_flushed(&self) {
        self.unflushed_bytes.set(0);
    }

    /// Leaves sending to a task of its own until everything is sent.
    pub(super) fn fall_behind(self: &Rc<Self>, store: &Rc<SessionStore>, account: AccountId) {
        if self.flow.replace(Flow::CatchingUp) == Flow::CatchingUp {
            return;
        }
        match try_spawn(replay_sender::run(Rc::clone(store), account, Rc::clone(self))) {
            Ok(task) => *self.replay_sender.borrow_mut() = Some(task),
            // No task can be had: it is let go, like one that does not read.
            Err(_) => self.end(End::CutOff(CutOff::Slow)),
        }
    }

    /// Everything was sent, or there was nothing to send.
    pub(super) fn catch_up(&self) {
        self.flow.set(Flow::Live);
        self.has_caught_up.set(true);
    }

    pub(super) fn has_caught_up(&self) -> bool {
        self.has_caught_up.get()
    }

    /// Asks the receiving task to end the connection; the first reason holds, but for a drain, during which it may
    /// have to be cut off after all.
    pub(super) fn end(&self, end: End) {
        if matches!(self.end.get(), None | Some(End::Drained)) {
            self.end.set(Some(end));
            self.reader.notify();
        }
    }

    /// Why somebody wants the connection to end, if anybody does.
    pub(super) fn requested_end(&self) -> Option<End> {
        self.end.get()
    }

    /// Leaves the waker of the receiving task for when somebody wants the connection to end.
    #[inline]
    pub(super) fn wake_at_end(&self, waker: &Waker) {
        self.reader.register(waker);
    }

    /// Ends the sending side's task.
    pub(super) fn stop_replay(&self) {
        if let Some(task) = self.replay_sender.take() {
            task.abort();
        }
    }

    /// Ends the connection: what is queued is sent on, or lost with a reset.
    pub(super) fn close(session: Rc<Self>, is_reset: bool) {
        session.stop_replay();
        // Nobody else has it: the account gave it up, and the replay sender is gone.
        if let Some(session) = Rc::into_inner(session)
            && is_reset
        {
            session.stream.abort();
        }
    }
}
