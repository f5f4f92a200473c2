//! Time as the engine sees it: a monotonic clock on kernel drivers, virtual time on the simulator.

use std::{
    future::Future,
    pin::Pin,
    rc::{Rc, Weak},
    task::{Context, Poll, Waker},
    time::Duration,
};

use crate::{
    executor::{self, Core},
    timer_wheel::TimerId,
};

pub use crate::clock::{Instant, monotonic};

/// The current time: of the current runtime, or of the kernel's monotonic clock outside one.
pub fn now() -> Instant {
    executor::with_current(|core| core.now()).unwrap_or_else(monotonic)
}

/// Waits for a duration.
///
/// # Panics
/// When polled outside a runtime.
pub fn sleep(duration: Duration) -> Sleep {
    sleep_until(now() + duration)
}

/// Waits until a moment. Returns at once if the moment has passed.
///
/// # Panics
/// When polled outside a runtime.
pub fn sleep_until(deadline: Instant) -> Sleep {
    Sleep { deadline, timer: None, core: Weak::new() }
}

/// A timer of the current runtime. Dropping it removes it.
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Sleep {
    deadline: Instant,
    timer: Option<TimerId>,
    /// The runtime that has the timer. The future may be polled or dropped in another one.
    core: Weak<Core>,
}

impl Sleep {
    fn disarm(&mut self) {
        if let Some(timer) = self.timer.take()
            && let Some(core) = self.core.upgrade()
        {
            core.remove_timer(timer);
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let outcome = executor::with_current(|core| {
            if !std::ptr::eq(this.core.as_ptr(), Rc::as_ptr(core)) {
                this.disarm();
                this.core = Rc::downgrade(core);
            }
            core.poll_timer(this.deadline, &mut this.timer, context.waker())
        });
        match outcome {
            Some(poll) => poll,
            None => panic!("weir_engine::time::sleep was polled outside a runtime"),
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.disarm();
    }
}

/// The time limit was reached before the future was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("time limit reached")]
pub struct Elapsed;

/// Waits for a future, at most for `limit`. The future is dropped when the limit is reached; receives and
/// sends lose nothing by that.
///
/// ```
/// use std::time::Duration;
/// use weir_engine::{Config, Driver, Runtime, time::{Elapsed, sleep, timeout}};
///
/// let runtime = Runtime::new(&Config::with_driver(Driver::Sim)).unwrap();
/// runtime.block_on(async {
///     assert_eq!(timeout(Duration::from_secs(1), async { 7 }).await, Ok(7));
///     assert_eq!(timeout(Duration::from_secs(1), sleep(Duration::from_secs(2))).await, Err(Elapsed));
/// });
/// ```
pub async fn timeout<F: Future>(limit: Duration, future: F) -> Result<F::Output, Elapsed> {
    timeout_at(now() + limit, future).await
}

/// Waits for a future, at most until `deadline`.
pub async fn timeout_at<F: Future>(deadline: Instant, future: F) -> Result<F::Output, Elapsed> {
    let mut future = std::pin::pin!(future);
    let mut sleep = std::pin::pin!(sleep_until(deadline));
    std::future::poll_fn(move |context| {
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(Ok(output));
        }
        sleep.as_mut().poll(context).map(|()| Err(Elapsed))
    })
    .await
}

/// Lets every other ready task run, and looks for events, before the caller continues.
pub async fn yield_now() {
    let mut yielded = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        Waker::wake_by_ref(context.waker());
        Poll::Pending
    })
    .await;
}
