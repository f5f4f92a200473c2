//! The closed loop: a connection keeps its pipeline full and starts a message when an earlier one has returned.

use std::{
    cell::Cell,
    collections::VecDeque,
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use weir_engine::time::{Instant, Sleep, now, sleep_until};

use crate::{
    connection::{Connection, Watch},
    recorder::PendingMessage,
    worker_state::WorkerState,
    workload::{End, Workload},
};

/// Exchanges messages until the run ends or `quota` is used up; an error says what ended the connection before that.
pub(crate) async fn exchange<W: Workload>(
    shared: &WorkerState<W>,
    connection: &Connection<W>,
    think: Duration,
    quota: &Cell<u64>,
) -> Result<(), End> {
    let now_ns = now().as_nanos();
    let mut exchange = Exchange {
        shared,
        connection,
        think_ns: u64::try_from(think.as_nanos()).unwrap_or(u64::MAX),
        quota,
        now_ns,
        free: shared.depth.saturating_sub(connection.in_flight()),
        resting: VecDeque::new(),
        thinking: None,
        watch: Watch::new(shared.response_timeout),
    };
    poll_fn(|context| exchange.poll(context)).await
}

struct Exchange<'a, W: Workload> {
    shared: &'a WorkerState<W>,
    connection: &'a Connection<W>,
    think_ns: u64,
    /// Messages that this connection, and later ones in its place, may still start.
    quota: &'a Cell<u64>,
    now_ns: u64,
    /// Places in the pipeline that may be used now.
    free: usize,
    /// For each pausing place, when it may be used again. Ascending; empty without think time.
    resting: VecDeque<u64>,
    thinking: Option<Sleep>,
    watch: Watch,
}

impl<W: Workload> Exchange<'_, W> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), End>> {
        let mut has_arrived = false;
        if self.think_ns > 0 {
            self.now_ns = now().as_nanos();
        }
        loop {
            // Keep receiving while a send waits for room: the peer may wait for us to read its answers first.
            if let Poll::Ready(Err(end)) = self.poll_starts(context) {
                return Poll::Ready(Err(end));
            }
            if let Poll::Ready(moment) = self.connection.poll_arrival(self.shared, context) {
                let moment = moment?;
                if moment.closes {
                    return Poll::Ready(Err(End::Closing));
                }
                has_arrived = true;
                self.now_ns = moment.now_ns;
                let places = moment.messages as usize;
                if self.think_ns == 0 {
                    self.free += places;
                } else {
                    let usable_ns = moment.now_ns.saturating_add(self.think_ns);
                    self.resting.extend(std::iter::repeat_n(usable_ns, places));
                }
                continue;
            }
            if !self.may_start() && self.connection.in_flight() == 0 {
                return Poll::Ready(Ok(()));
            }
            // If a wake-up brought bytes, the timer has usually not fired.
            if !has_arrived || self.watch.is_due(self.now_ns) {
                self.watch.check(self.connection.oldest(), context)?;
            }
            return Poll::Pending;
        }
    }

    #[inline]
    fn may_start(&self) -> bool {
        self.quota.get() > 0 && self.shared.may_start()
    }

    /// Starts whatever may be started; waits for room or for the end of a pause.
    #[inline]
    fn poll_starts(&mut self, context: &mut Context<'_>) -> Poll<Result<(), End>> {
        while self.may_start() {
            if self.free == 0 {
                if self.resting.is_empty() {
                    break;
                }
                ready!(self.poll_rest(context));
            }
            let pending = PendingMessage { intended_ns: self.now_ns, started_ns: self.now_ns };
            ready!(self.connection.poll_start(self.shared, pending, context))
                .map_err(|error| self.connection.end(self.shared, Some(&error)))?;
            self.shared.consume_budget();
            self.quota.set(self.quota.get() - 1);
            self.free -= 1;
        }
        Poll::Ready(Ok(()))
    }

    /// Waits until a place has paused long enough.
    fn poll_rest(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while let Some(usable_ns) = self.resting.front().copied() {
            if usable_ns <= self.now_ns {
                self.resting.pop_front();
                self.free += 1;
                return Poll::Ready(());
            }
            let sleep = self.thinking.get_or_insert_with(|| sleep_until(Instant::from_nanos(usable_ns)));
            ready!(Pin::new(sleep).poll(context));
            self.thinking = None;
            self.now_ns = now().as_nanos();
        }
        Poll::Pending
    }
}
