//! The task that sends in one upstream session.

use std::{
    future::{Future, poll_fn},
    io,
    pin::pin,
    rc::Rc,
    task::Poll,
    time::Duration,
};

use weir_engine::time;

use super::Upstream;
use crate::{
    connection_timer::ConnectionTimer,
    gateway::{
        hop_latency::Hop,
        upstream_session::{Batch, Effects, Piece},
        worker::Gateway,
    },
};

/// How long clients' cancels wait for the journal.
const STALL: Duration = Duration::from_millis(250);

/// Sends waiting messages, for as long as the worker runs.
pub(in crate::gateway) async fn send(gateway: Rc<Gateway>, upstream: Rc<Upstream>) {
    let mut sender = Sender {
        gateway,
        upstream,
        memory: Vec::new(),
        effects: Effects::default(),
        deadline: ConnectionTimer::new(),
        now_ns: 0,
    };
    let mut memory = Vec::new();
    loop {
        sender.upstream.flush.raised().await;
        sender.send_urgent().await;
        let mut batch = sender.upstream.session.borrow_mut().take_waiting(memory);
        if batch.bytes().is_empty() || sender.is_kept(&mut batch).await {
            sender.send_batch(&mut batch).await;
            sender.gateway.counters.passed.add(batch.orders());
        }
        memory = batch.into_memory();
    }
}

/// The task that sends.
struct Sender {
    gateway: Rc<Gateway>,
    upstream: Rc<Upstream>,
    /// Buffer for urgent messages.
    memory: Vec<u8>,
    effects: Effects,
    deadline: ConnectionTimer,
    /// When it last had to wait, and continued.
    now_ns: u64,
}

/// Events while a batch waits for the journal.
enum Meanwhile {
    /// The journal contains it, or never will.
    Decided(bool),
    /// Other messages have to be sent.
    Said,
    /// It takes too long.
    Stalled,
}

impl Sender {
    /// Sends messages that do not wait for the journal. Usually there are none.
    async fn send_urgent(&mut self) {
        if !self.upstream.session.borrow().has_urgent() {
            return;
        }
        let memory = std::mem::take(&mut self.memory);
        let batch = self.upstream.session.borrow_mut().take_urgent(memory);
        if let Some(now_ns) = give(&self.upstream, batch.bytes()).await {
            self.now_ns = now_ns;
            self.note_sent(&batch);
        }
        self.memory = batch.into_memory();
    }

    /// Gives a batch to its connection, a piece at a time. Between two pieces urgent messages are sent, and orders
    /// that were taken back are removed.
    async fn send_batch(&mut self, batch: &mut Batch) {
        loop {
            let upstream = &self.upstream;
            let piece = upstream.session.borrow_mut().next_piece(batch, self.now_ns, &mut self.effects);
            if !self.effects.list.is_empty() {
                upstream.execute(&self.gateway, &mut self.effects, self.gateway.store.now());
                self.gateway.tell_untold(upstream);
            }
            let bytes = match piece {
                Piece::Bytes(bytes) => bytes,
                Piece::Done => break,
                Piece::Gone => return,
            };
            let is_last = bytes.end == batch.bytes().len();
            let Some(now_ns) = give(upstream, &batch.bytes()[bytes]).await else { return };
            self.now_ns = now_ns;
            let out = |received_ns| self.gateway.record(Hop::GatewayOut, now_ns.saturating_sub(received_ns));
            upstream.session.borrow_mut().on_piece_sent(batch, now_ns, out);
            if is_last {
                break;
            }
            self.send_urgent().await;
        }
        self.note_sent(batch);
    }

    /// Counts a batch that has been sent.
    fn note_sent(&self, batch: &Batch) {
        self.upstream.session.borrow_mut().on_batch_sent(batch);
        self.gateway.counters.upstream_sent.add(batch.messages());
        self.gateway.store.counters().add_sent(batch.messages());
    }

    /// Sends clients' cancels ahead of the batch that contains them.
    async fn send_cancels_ahead(&mut self, batch: &mut Batch) {
        self.upstream.session.borrow_mut().send_cancels_ahead(batch);
        self.send_urgent().await;
    }

    /// Waits until the journal contains the records of a batch; false: it never will, and the batch is not sent.
    /// Messages that do not wait for the journal are sent meanwhile.
    async fn is_kept(&mut self, batch: &mut Batch) -> bool {
        let lsn = batch.lsn();
        if self.gateway.is_kept(lsn) {
            return true;
        }
        let (gateway, upstream) = (Rc::clone(&self.gateway), Rc::clone(&self.upstream));
        let mut kept = pin!(gateway.is_durable(lsn));
        let stalls_at = time::now() + STALL;
        let mut is_stalled = false;
        let is_kept = loop {
            let deadline = &mut self.deadline;
            let meanwhile = poll_fn(|context| {
                if let Poll::Ready(is_kept) = kept.as_mut().poll(context) {
                    return Poll::Ready(Meanwhile::Decided(is_kept));
                }
                if upstream.flush.poll(context.waker()).is_ready() {
                    return Poll::Ready(Meanwhile::Said);
                }
                if is_stalled {
                    return Poll::Pending;
                }
                deadline.poll(stalls_at, context).map(|()| Meanwhile::Stalled)
            });
            match meanwhile.await {
                Meanwhile::Decided(is_kept) => break is_kept,
                Meanwhile::Said if !is_stalled => self.send_urgent().await,
                Meanwhile::Said => self.send_cancels_ahead(batch).await,
                Meanwhile::Stalled => {
                    is_stalled = true;
                    self.send_cancels_ahead(batch).await;
                }
            }
        };
        if !is_kept {
            self.send_cancels_ahead(batch).await;
        }
        // Messages that were announced meanwhile and not sent are checked for again.
        upstream.flush.raise();
        self.now_ns = time::now().as_nanos();
        is_kept
    }
}

/// Gives bytes to the current connection, and returns when it had them. `None`: it is gone; the receiving task
/// notices that too.
async fn give(upstream: &Upstream, bytes: &[u8]) -> Option<u64> {
    let stream = upstream.line.borrow().stream.clone()?;
    let generation = upstream.session.borrow().generation();
    {
        let mut send = pin!(stream.send_slice(bytes));
        let outcome = poll_fn(|context| {
            if generation != upstream.session.borrow().generation() {
                return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
            }
            let outcome = send.as_mut().poll(context);
            if outcome.is_pending() {
                upstream.flush.register(context.waker());
            }
            outcome
        });
        outcome.await.ok()?;
    }
    let now_ns = time::now().as_nanos();
    upstream.session.borrow_mut().on_sent(now_ns);
    Some(now_ns)
}
