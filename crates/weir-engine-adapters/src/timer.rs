//! hyper's timer on the engine's clock.
//!
//! hyper requires sleeps that are `Send` and `Sync`, and timers of the engine belong to their thread. So each thread
//! has a table of its engine timers, and a sleep names its entry. The entries are those of the thread's pending sleeps.
//! A sleep that is dropped, or polled, on another thread leaves its key for the table's thread, which removes the entry
//! when it begins its next sleep.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use hyper::rt::{Sleep, Timer};
use weir_engine::time;

/// hyper's timer: its sleeps are timers of the runtime that polls them.
///
/// On the simulator it follows virtual time. Make it inside the runtime that uses it, because the virtual time of each
/// runtime begins anew.
#[derive(Clone, Copy, Debug)]
pub struct EngineTimer {
    /// One moment on both clocks.
    standard: Instant,
    engine: time::Instant,
}

impl EngineTimer {
    /// A timer on the clock of the current runtime, or on the kernel's monotonic clock outside one.
    pub fn new() -> Self {
        Self { standard: Instant::now(), engine: time::now() }
    }

    fn moment(&self, deadline: Instant) -> time::Instant {
        match deadline.checked_duration_since(self.standard) {
            Some(later) => self.engine + later,
            None => self.engine - self.standard.saturating_duration_since(deadline),
        }
    }
}

impl Default for EngineTimer {
    fn default() -> Self {
        Self::new()
    }
}

impl Timer for EngineTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(EngineSleep { deadline: time::now() + duration, entry: None })
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(EngineSleep { deadline: self.moment(deadline), entry: None })
    }

    fn now(&self) -> Instant {
        self.standard + time::now().since(self.engine)
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn Sleep>>, new_deadline: Instant) {
        match sleep.as_mut().downcast_mut_pin::<EngineSleep>() {
            Some(present) => {
                let present = present.get_mut();
                present.disarm();
                present.deadline = self.moment(new_deadline);
            }
            None => *sleep = self.sleep_until(new_deadline),
        }
    }
}

/// A sleep of [`EngineTimer`].
///
/// # Panics
/// When polled outside a runtime, and at the runtime's limit of timers.
#[derive(Debug)]
pub struct EngineSleep {
    deadline: time::Instant,
    entry: Option<Entry>,
}

/// The place of the engine's timer.
#[derive(Debug)]
struct Entry {
    table: Arc<LeftKeys>,
    key: u64,
}

/// Keys that other threads have left for the owner of a table.
type LeftKeys = Mutex<Vec<u64>>;

/// The engine timers of one thread.
#[derive(Default)]
struct Table {
    sleeps: RefCell<HashMap<u64, time::Sleep>>,
    next_key: Cell<u64>,
    left: Arc<LeftKeys>,
}

thread_local! {
    static TABLE: Table = Table::default();
}

impl Table {
    /// A timer is polled, replaced and dropped while the table is not borrowed: this may drop a waker of other code,
    /// and that code may have sleeps.
    fn take(&self, key: u64) -> Option<time::Sleep> {
        self.sleeps.borrow_mut().remove(&key)
    }

    fn new_key(&self) -> u64 {
        let left = std::mem::take(&mut *self.left.lock().unwrap_or_else(PoisonError::into_inner));
        left.into_iter().for_each(|key| drop(self.take(key)));
        let key = self.next_key.get();
        self.next_key.set(key + 1);
        key
    }
}

impl EngineSleep {
    fn disarm(&mut self) {
        let Some(Entry { table: left, key }) = self.entry.take() else { return };
        let removed = TABLE.try_with(|table| Arc::ptr_eq(&table.left, &left).then(|| table.take(key)));
        // The table of a thread that ends is gone, and nobody reads its keys.
        if !matches!(removed, Ok(Some(_))) {
            left.lock().unwrap_or_else(PoisonError::into_inner).push(key);
        }
    }
}

impl Future for EngineSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        TABLE.with(|table| {
            if self.entry.as_ref().is_some_and(|entry| !Arc::ptr_eq(&entry.table, &table.left)) {
                self.disarm();
            }
            let key = self.entry.take().map_or_else(|| table.new_key(), |entry| entry.key);
            let mut sleep = table.take(key).unwrap_or_else(|| time::sleep_until(self.deadline));
            let outcome = Pin::new(&mut sleep).poll(context);
            if outcome.is_pending() {
                table.sleeps.borrow_mut().insert(key, sleep);
                self.entry = Some(Entry { table: Arc::clone(&table.left), key });
            }
            outcome
        })
    }
}

impl Sleep for EngineSleep {}

impl Drop for EngineSleep {
    fn drop(&mut self) {
        self.disarm();
    }
}

#[cfg(test)]
mod tests {
    use weir_engine::{Config, Driver, Runtime};

    use super::*;

    fn entries() -> usize {
        TABLE.with(|table| table.sleeps.borrow().len())
    }

    async fn poll_once(sleep: &mut Pin<Box<dyn Sleep>>) -> Poll<()> {
        std::future::poll_fn(|context| Poll::Ready(sleep.as_mut().poll(context))).await
    }

    fn simulated<F: Future>(test: impl FnOnce(EngineTimer) -> F) -> F::Output {
        let runtime = Runtime::new(&Config::for_test(Driver::Sim)).expect("the simulator starts");
        runtime.block_on(async { test(EngineTimer::new()).await })
    }

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_sleep_ends_at_its_deadline_in_virtual_time() {
        simulated(async |timer| {
            let begin = timer.now();
            timer.sleep(HOUR).await;
            assert_eq!(timer.now() - begin, HOUR);
            timer.sleep_until(begin + 3 * HOUR).await;
            assert_eq!(timer.now() - begin, 3 * HOUR);
            // A moment that has passed, also one before the timer was made.
            timer.sleep_until(begin - Duration::from_millis(1)).await;
            assert_eq!((timer.now() - begin, entries()), (3 * HOUR, 0));
        });
    }

    #[test]
    fn a_reset_moves_the_deadline_of_a_pending_sleep() {
        simulated(async |timer| {
            let begin = timer.now();
            let mut sleep = timer.sleep(5 * HOUR);
            assert!(poll_once(&mut sleep).await.is_pending());
            timer.reset(&mut sleep, begin + HOUR);
            assert_eq!(entries(), 0, "the first timer is gone");
            sleep.await;
            assert_eq!(timer.now() - begin, HOUR);
        });
    }

    #[test]
    fn a_dropped_sleep_leaves_no_timer_behind() {
        simulated(async |timer| {
            let mut sleep = timer.sleep(HOUR);
            assert!(poll_once(&mut sleep).await.is_pending());
            assert!(poll_once(&mut sleep).await.is_pending());
            assert_eq!(entries(), 1);
            drop(sleep);
            assert_eq!(entries(), 0);
        });
    }

    #[test]
    fn a_sleep_that_another_thread_drops_is_removed_by_the_next_one() {
        simulated(async |timer| {
            let mut sleep = timer.sleep(HOUR);
            assert!(poll_once(&mut sleep).await.is_pending());
            std::thread::spawn(move || drop(sleep)).join().expect("dropping it does not panic");
            assert_eq!(entries(), 1, "its timer belongs to this thread");
            timer.sleep(Duration::from_secs(1)).await;
            assert_eq!(entries(), 0);
        });
    }

    #[test]
    fn a_sleep_goes_on_in_the_runtime_of_another_thread() {
        simulated(async |timer| {
            let mut sleep = timer.sleep(HOUR);
            assert!(poll_once(&mut sleep).await.is_pending());
            let other = std::thread::spawn(move || simulated(async |_| sleep.await));
            other.join().expect("it ends there");
            assert!(poll_once(&mut timer.sleep(HOUR)).await.is_pending());
            assert_eq!(entries(), 0, "the first one was removed, and the second one dropped");
        });
    }
}
