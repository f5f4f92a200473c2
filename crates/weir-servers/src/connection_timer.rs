//! One timer for a connection, moved as rarely as possible.
//!
//! A timer that fires too early is set again for the remaining time; only an earlier deadline moves it before it
//! fires. So a busy connection's timer is touched about once per idle timeout, not once per request.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use weir_engine::time::{Instant, Sleep, now, sleep_until};

/// Later than everything.
const NEVER: Instant = Instant::from_nanos(u64::MAX);

/// The timer of one connection.
#[derive(Debug)]
pub(crate) struct ConnectionTimer {
    sleep: Sleep,
    /// When the timer fires; not later than any deadline that was waited for since it was set.
    fires: Instant,
    /// Whether a wait was needed since the flag was last taken.
    has_waited: bool,
}

impl ConnectionTimer {
    pub(crate) fn new() -> Self {
        // It becomes a timer at the first wait.
        Self { sleep: sleep_until(NEVER), fires: NEVER, has_waited: false }
    }

    /// Whether something was not ready at once since the last call.
    #[inline]
    pub(crate) fn take_has_waited(&mut self) -> bool {
        std::mem::take(&mut self.has_waited)
    }

    /// Waits for a future, at most until `at`; then returns `None`.
    pub(crate) async fn until<F: Future>(&mut self, at: Instant, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => self.poll(at, context).map(|()| None),
        })
        .await
    }

    /// Waits for a future, at most for `limit`; then returns `None`. A future that is ready at once costs no reading
    /// of the clock.
    pub(crate) async fn within<F: Future>(&mut self, limit: Duration, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        let mut at = None;
        poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => {
                let at = *at.get_or_insert_with(|| now() + limit);
                self.poll(at, context).map(|()| None)
            }
        })
        .await
    }

    /// Ready when `at` is reached, at the time of this call or, by a timer, later.
    pub(crate) fn poll(&mut self, at: Instant, context: &mut Context<'_>) -> Poll<()> {
        self.has_waited = true;
        if at < self.fires {
            self.set(at);
        }
        loop {
            if Pin::new(&mut self.sleep).poll(context).is_pending() {
                return Poll::Pending;
            }
            // A timer that has fired is no longer set: the next deadline sets it again.
            self.fires = NEVER;
            if now() >= at {
                return Poll::Ready(());
            }
            self.set(at);
        }
    }

    fn set(&mut self, at: Instant) {
        self.sleep = sleep_until(at);
        self.fires = at;
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use weir_engine::{Config, Driver, Runtime, time};

    use super::*;

    fn on_sim(body: impl Future<Output = ()>) -> u64 {
        let runtime = Runtime::new(&Config::for_test(Driver::Sim)).expect("it runs everywhere");
        let counters = runtime.counters();
        runtime.block_on(body);
        counters.snapshot().timers_fired
    }

    #[test]
    fn a_deadline_is_exact_whether_it_is_nearer_or_farther_than_the_one_before() {
        on_sim(async {
            let mut deadline = ConnectionTimer::new();
            let mut expected = time::now();
            for seconds in [5, 1, 30, 2, 2, 60] {
                expected = expected + Duration::from_secs(seconds);
                assert!(deadline.until(expected, pending::<()>()).await.is_none());
                assert_eq!(time::now(), expected);
            }
            assert!(deadline.within(Duration::from_secs(7), pending::<()>()).await.is_none());
            assert_eq!(time::now(), expected + Duration::from_secs(7));
        });
    }

    #[test]
    fn a_deadline_that_moves_on_all_the_time_costs_few_timers() {
        const WAITS: u64 = 1000;
        let fired = on_sim(async {
            let mut deadline = ConnectionTimer::new();
            for _ in 0..WAITS {
                let at = time::now() + Duration::from_secs(60);
                // The future completes after 100 ms, by a separate timer.
                let outcome = deadline.until(at, time::sleep(Duration::from_millis(100))).await;
                assert!(outcome.is_some());
            }
        });
        // 100 s of requests: the connection's timer fires once, and never early.
        assert!((WAITS..WAITS + 3).contains(&fired), "{fired} timers fired for {WAITS} waits");
    }

    #[test]
    fn a_future_that_is_ready_is_taken_even_when_it_is_late() {
        on_sim(async {
            let mut deadline = ConnectionTimer::new();
            let past = time::now();
            time::sleep(Duration::from_secs(1)).await;
            assert_eq!(deadline.until(past, async { 7 }).await, Some(7));
            assert_eq!(deadline.until(past, pending::<()>()).await, None);
            assert!(deadline.take_has_waited() && !deadline.take_has_waited());
            assert_eq!(deadline.within(Duration::ZERO, async { 7 }).await, Some(7));
            assert!(!deadline.take_has_waited());
            assert_eq!(deadline.within(Duration::ZERO, pending::<()>()).await, None);
            assert!(deadline.take_has_waited() && !deadline.take_has_waited());
        });
    }
}
