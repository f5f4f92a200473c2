//! The closed loop: a connection keeps its pipeline full and starts a message when an earlier one has returned.

use std::{
    collections::VecDeque,
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use weir_engine::time::{Instant, Sleep, now, sleep_until};

use crate::{
    failure::Stage,
    lane::{Failure, Lane, Watch},
    recorder::Flight,
    shared::Shared,
};

/// Exchanges messages until the run ends; an error says what ended the connection before.
pub(crate) async fn exchange(shared: &Shared, lane: &Lane, think: Duration) -> Result<(), Failure> {
    let now_ns = now().as_nanos();
    let mut exchange = Exchange {
        shared,
        lane,
        think_ns: u64::try_from(think.as_nanos()).unwrap_or(u64::MAX),
        now_ns,
        free: std::iter::repeat_n(now_ns, shared.depth).collect(),
        thinking: None,
        watch: Watch::new(shared.response_timeout),
    };
    poll_fn(|context| exchange.poll(context)).await
}

struct Exchange<'a> {
    shared: &'a Shared,
    lane: &'a Lane,
    think_ns: u64,
    now_ns: u64,
    /// For each free place in the pipeline, when it may be used. Rising.
    free: VecDeque<u64>,
    thinking: Option<Sleep>,
    watch: Watch,
}

impl Exchange<'_> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        let mut has_arrived = false;
        if self.think_ns > 0 {
            self.now_ns = now().as_nanos();
        }
        loop {
            // Waiting for room is no reason not to receive: the peer may wait for us to take its answers first.
            if let Poll::Ready(Err(failure)) = self.poll_starts(context) {
                return Poll::Ready(Err(failure));
            }
            if let Poll::Ready(moment) = self.lane.poll_arrival(self.shared, context) {
                let moment = moment?;
                has_arrived = true;
                self.now_ns = moment.now_ns;
                let usable_ns = moment.now_ns.saturating_add(self.think_ns);
                self.free.extend(std::iter::repeat_n(usable_ns, moment.messages as usize));
                continue;
            }
            if self.free.len() == self.shared.depth && !self.shared.may_start() {
                return Poll::Ready(Ok(()));
            }
            // A wake-up that brought bytes was not the timer's, as a rule.
            if !has_arrived || self.watch.is_due(self.now_ns) {
                self.watch.check(self.lane, context)?;
            }
            return Poll::Pending;
        }
    }

    /// Starts whatever may be started; waits for room or for the end of a pause.
    #[inline]
    fn poll_starts(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        while let Some(usable_ns) = self.free.front().copied()
            && self.shared.may_start()
        {
            if usable_ns > self.now_ns {
                let wake_at = Instant::from_nanos(usable_ns);
                let sleep = self.thinking.get_or_insert_with(|| sleep_until(wake_at));
                ready!(Pin::new(sleep).poll(context));
                self.thinking = None;
                self.now_ns = now().as_nanos();
                continue;
            }
            let flight = Flight { intended_ns: self.now_ns, started_ns: self.now_ns };
            ready!(self.lane.poll_start(self.shared, flight, context))
                .map_err(|error| Failure::system(Stage::Exchange, &error))?;
            self.shared.spend();
            self.free.pop_front();
        }
        Poll::Ready(Ok(()))
    }
}
