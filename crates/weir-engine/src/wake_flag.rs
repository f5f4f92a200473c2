//! Decides who must wake a sleeping core, with one atomic word.
//!
//! Contract between one consumer and any number of producers:
//! - A producer publishes its work, then calls [`WakeFlag::notify`]. True means that the consumer sleeps and this
//!   producer, and no other, must wake it (write its eventfd).
//! - The consumer calls [`WakeFlag::prepare_sleep`] right before it would block. False means that something was
//!   published since: do not block, look again. After blocking, or deciding against it, it calls [`WakeFlag::woke`]
//!   and only then looks at the published work.
//!
//! No wake is lost: both sides change the same word with read-modify-writes, and those have one order. Either
//! `notify` comes first and `prepare_sleep` finds it, or `prepare_sleep` comes first and `notify` finds a
//! sleeper; each acquires what the other released, so the work itself needs no further fence. (The same with
//! plain loads and stores is wrong: a test below shows the model checker finding the lost wake.) At most one
//! `notify` returns true per sleep, and none while the consumer is awake, so a busy core costs its producers
//! no system call.
//!
//! It is not a queue and it does not block: the work, the eventfd and the waiting belong to the caller. The write
//! that a true `notify` requires may reach the kernel after the consumer woke for another reason; the consumer then
//! finds its eventfd readable one time too many, which is harmless.

use std::sync::atomic::{AtomicU32, Ordering, fence};

/// The consumer runs and nothing was published since it last looked.
const AWAKE: u32 = 0;
/// The consumer is blocked, or about to block.
const SLEEPING: u32 = 1;
/// Something was published since the consumer last called `woke` or `prepare_sleep`.
const NOTIFIED: u32 = 2;

/// The atomic word the protocols of this crate run on: the standard library's, or the model checker's in tests. Each
/// method is the atomic operation of the same name.
pub trait AtomicWord {
    /// A word that holds `value`.
    fn new(value: u32) -> Self;
    /// Reads the word.
    fn load(&self, order: Ordering) -> u32;
    /// Writes the word.
    fn store(&self, value: u32, order: Ordering);
    /// A fence between all earlier and all later operations, including stores before it and loads after it.
    fn full_fence();
    /// Replaces the word and returns what it held.
    fn swap(&self, value: u32, order: Ordering) -> u32;
    /// Replaces the word if it holds `current`; returns what it held, as `Ok` if it was replaced.
    fn compare_exchange(
        &self,
        current: u32,
        new: u32,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u32, u32>;
    /// Adds and returns what the word held.
    fn fetch_add(&self, value: u32, order: Ordering) -> u32;
    /// Subtracts and returns what the word held.
    fn fetch_sub(&self, value: u32, order: Ordering) -> u32;
}

impl AtomicWord for AtomicU32 {
    fn new(value: u32) -> Self {
        Self::new(value)
    }

    fn load(&self, order: Ordering) -> u32 {
        self.load(order)
    }

    fn store(&self, value: u32, order: Ordering) {
        self.store(value, order);
    }

    fn full_fence() {
        fence(Ordering::SeqCst);
    }

    fn swap(&self, value: u32, order: Ordering) -> u32 {
        self.swap(value, order)
    }

    fn compare_exchange(
        &self,
        current: u32,
        new: u32,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u32, u32> {
        self.compare_exchange(current, new, success, failure)
    }

    fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
        self.fetch_add(value, order)
    }

    fn fetch_sub(&self, value: u32, order: Ordering) -> u32 {
        self.fetch_sub(value, order)
    }
}

/// The three-state flag between one consumer that sleeps and the producers that wake it. Every `notify` writes it:
/// put it on a separate cache line if other fields are hot.
#[derive(Debug)]
pub struct WakeFlag<A = AtomicU32> {
    state: A,
}

impl WakeFlag {
    /// A flag whose consumer is awake.
    pub const fn new() -> Self {
        Self { state: AtomicU32::new(AWAKE) }
    }
}

impl Default for WakeFlag {
    fn default() -> Self {
        Self::new()
    }
}

impl<A: AtomicWord> WakeFlag<A> {
    /// A flag whose consumer is awake, on any kind of word.
    pub fn on_word() -> Self {
        Self { state: A::new(AWAKE) }
    }

    /// Producer: announces work that was published before this call. True: the consumer sleeps, and the caller
    /// must wake it.
    #[must_use = "true means that the consumer sleeps until the caller wakes it"]
    pub fn notify(&self) -> bool {
        // Release hands over the work; acquire shows the producer what the consumer did before it slept.
        self.state.swap(NOTIFIED, Ordering::AcqRel) == SLEEPING
    }

    /// Consumer: about to block. False: something was published since the last `woke`, so look at the work again
    /// instead; the flag is then awake, and `woke` need not be called.
    #[must_use = "false means that there is work to look at"]
    pub fn prepare_sleep(&self) -> bool {
        // If the exchange found `AWAKE`, this side wrote the word: there is nothing to acquire.
        let slept = self.state.compare_exchange(AWAKE, SLEEPING, Ordering::Release, Ordering::Relaxed);
        debug_assert_ne!(slept, Err(SLEEPING), "one consumer, and woke() after each sleep");
        if slept.is_err() {
            // A swap, not a store: it acquires from every notify before it, including those after the exchange.
            self.state.swap(AWAKE, Ordering::AcqRel);
        }
        slept.is_ok()
    }

    /// Consumer: whether something was announced since it last called `woke` or `prepare_sleep`.
    pub fn is_notified(&self) -> bool {
        self.state.load(Ordering::Acquire) == NOTIFIED
    }

    /// Consumer: no longer blocked. Call it before looking at the work; everything announced before this call is
    /// visible after it. True: it was announced since `prepare_sleep`, so a wake was or will be sent.
    pub fn woke(&self) -> bool {
        self.state.swap(AWAKE, Ordering::AcqRel) == NOTIFIED
    }
}

#[cfg(test)]
pub(crate) mod model {
    //! The model checker's counterparts of the primitives that the protocols use.

    use loom::sync::atomic::AtomicU32;
    use loom::sync::{Condvar, Mutex};

    use super::{AtomicWord, Ordering};

    impl AtomicWord for AtomicU32 {
        fn new(value: u32) -> Self {
            Self::new(value)
        }

        fn load(&self, order: Ordering) -> u32 {
            self.load(order)
        }

        fn store(&self, value: u32, order: Ordering) {
            self.store(value, order);
        }

        fn full_fence() {
            loom::sync::atomic::fence(Ordering::SeqCst);
        }

        fn swap(&self, value: u32, order: Ordering) -> u32 {
            self.swap(value, order)
        }

        fn compare_exchange(
            &self,
            current: u32,
            new: u32,
            success: Ordering,
            failure: Ordering,
        ) -> Result<u32, u32> {
            self.compare_exchange(current, new, success, failure)
        }

        fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
            self.fetch_add(value, order)
        }

        fn fetch_sub(&self, value: u32, order: Ordering) -> u32 {
            self.fetch_sub(value, order)
        }
    }

    /// A model of an eventfd: a write makes one wait return, even a later one. A wait that never ends is a deadlock,
    /// which the model checker reports.
    #[derive(Debug)]
    pub(crate) struct EventCount {
        count: Mutex<u32>,
        written: Condvar,
    }

    impl EventCount {
        pub(crate) fn new() -> Self {
            Self { count: Mutex::new(0), written: Condvar::new() }
        }

        pub(crate) fn write(&self) {
            *self.count.lock().unwrap() += 1;
            self.written.notify_one();
        }

        pub(crate) fn wait(&self) {
            let mut count = self.count.lock().unwrap();
            while *count == 0 {
                count = self.written.wait(count).unwrap();
            }
            *count = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Condvar, Mutex};

    use loom::sync::atomic::AtomicU32 as ModelWord;

    use super::model::EventCount;
    use super::*;

    /// A consumer, its flag, its eventfd, and a count of published items, which orders nothing by itself.
    struct Core<A> {
        flag: WakeFlag<A>,
        published: ModelWord,
        event: EventCount,
        /// Not part of the protocol, hence unknown to the model checker.
        writes: AtomicU32,
    }

    impl<A: AtomicWord> Core<A> {
        fn new() -> Self {
            let event = EventCount::new();
            Self { flag: WakeFlag::on_word(), published: ModelWord::new(0), event, writes: AtomicU32::new(0) }
        }

        fn produce(&self) {
            self.published.fetch_add(1, Ordering::Relaxed);
            if self.flag.notify() {
                self.writes.fetch_add(1, Ordering::Relaxed);
                self.event.write();
            }
        }

        /// Sleeps until `items` were published; returns how often it slept.
        fn consume(&self, items: u32) -> u32 {
            let mut sleeps = 0;
            while self.published.load(Ordering::Relaxed) < items {
                if self.flag.prepare_sleep() {
                    sleeps += 1;
                    self.event.wait();
                    assert!(self.flag.woke(), "only a notify ends this sleep");
                }
            }
            sleeps
        }
    }

    /// Tries every interleaving, or only those with at most this many preemptions if all would take minutes.
    fn producers_and_consumer<A: AtomicWord + Send + Sync + 'static>(
        producers: u32,
        preemptions_max: Option<usize>,
    ) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = preemptions_max;
        builder.check(move || {
            let core = loom::sync::Arc::new(Core::<A>::new());
            let threads: Vec<_> = (0..producers)
                .map(|_| {
                    let core = core.clone();
                    loom::thread::spawn(move || core.produce())
                })
                .collect();
            let sleeps = core.consume(producers);
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(core.writes.load(Ordering::Relaxed), sleeps, "one write for each sleep");
        });
    }

    #[test]
    fn one_producer_never_loses_a_wake_in_any_interleaving() {
        producers_and_consumer::<ModelWord>(1, None);
    }

    #[test]
    fn two_producers_never_lose_a_wake_and_write_once_per_sleep() {
        producers_and_consumer::<ModelWord>(2, Some(3));
    }

    #[test]
    fn a_sleep_that_ends_for_another_reason_still_sees_what_was_announced() {
        loom::model(|| {
            let core = loom::sync::Arc::new(Core::<ModelWord>::new());
            let producer = {
                let core = core.clone();
                loom::thread::spawn(move || core.produce())
            };
            // Blocks for I/O that is ready at once: the consumer does not wait for the event, so only the flag orders
            // anything.
            let announced = !core.flag.prepare_sleep() || core.flag.woke();
            if announced {
                assert_eq!(core.published.load(Ordering::Relaxed), 1);
            }
            core.consume(1);
            producer.join().unwrap();
        });
    }

    #[test]
    fn who_wakes_the_consumer_sees_what_it_did_before_it_slept() {
        loom::model(|| {
            let core = loom::sync::Arc::new(Core::<ModelWord>::new());
            let producer = {
                let core = core.clone();
                loom::thread::spawn(move || {
                    !core.flag.notify() || core.published.load(Ordering::Relaxed) == 1
                })
            };
            core.published.fetch_add(1, Ordering::Relaxed);
            let slept = core.flag.prepare_sleep();
            assert!(producer.join().unwrap(), "slept: {slept}");
        });
    }

    /// A word whose read-modify-writes are a load and a store, as in a careless implementation.
    struct SplitWord(ModelWord);

    impl AtomicWord for SplitWord {
        fn new(value: u32) -> Self {
            Self(ModelWord::new(value))
        }

        fn load(&self, _: Ordering) -> u32 {
            self.0.load(Ordering::SeqCst)
        }

        fn store(&self, value: u32, _: Ordering) {
            self.0.store(value, Ordering::SeqCst);
        }

        fn full_fence() {
            loom::sync::atomic::fence(Ordering::SeqCst);
        }

        fn swap(&self, value: u32, _: Ordering) -> u32 {
            let before = self.0.load(Ordering::SeqCst);
            self.0.store(value, Ordering::SeqCst);
            before
        }

        fn compare_exchange(&self, current: u32, new: u32, order: Ordering, _: Ordering) -> Result<u32, u32> {
            match self.load(order) {
                before if before == current => Ok(self.swap(new, order)),
                before => Err(before),
            }
        }

        fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
            self.swap(self.load(order) + value, order)
        }

        fn fetch_sub(&self, value: u32, order: Ordering) -> u32 {
            self.swap(self.load(order) - value, order)
        }
    }

    #[test]
    #[should_panic(expected = "deadlock")]
    fn the_model_finds_the_lost_wake_of_plain_loads_and_stores() {
        producers_and_consumer::<SplitWord>(1, None);
    }

    #[test]
    fn states_follow_the_table() {
        let flag = WakeFlag::new();
        assert!(!flag.notify(), "an awake consumer needs no wake");
        assert!(!flag.prepare_sleep(), "it was notified");
        assert!(flag.prepare_sleep());
        assert!(flag.notify());
        assert!(!flag.notify(), "one wake per sleep");
        assert!(flag.woke());
        assert!(flag.prepare_sleep());
        assert!(!flag.woke(), "nobody notified");
    }

    #[test]
    fn real_threads_hand_over_a_hundred_thousand_items_each() {
        const ITEMS: u32 = 100_000;
        struct Shared {
            flag: WakeFlag,
            published: AtomicU32,
            event: Mutex<bool>,
            written: Condvar,
        }
        let shared = Arc::new(Shared {
            flag: WakeFlag::new(),
            published: AtomicU32::new(0),
            event: Mutex::new(false),
            written: Condvar::new(),
        });
        let producers = [(); 2].map(|()| {
            let shared = shared.clone();
            std::thread::spawn(move || {
                for _ in 0..ITEMS {
                    shared.published.fetch_add(1, Ordering::Relaxed);
                    if shared.flag.notify() {
                        *shared.event.lock().unwrap() = true;
                        shared.written.notify_one();
                    }
                }
            })
        });
        while shared.published.load(Ordering::Relaxed) < 2 * ITEMS {
            if shared.flag.prepare_sleep() {
                let event = shared.event.lock().unwrap();
                *shared.written.wait_while(event, |written| !*written).unwrap() = false;
                assert!(shared.flag.woke());
            }
        }
        for producer in producers {
            producer.join().unwrap();
        }
    }
}
