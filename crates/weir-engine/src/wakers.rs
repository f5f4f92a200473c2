//! Stores the wakers of waiting tasks, and postpones those that a driver wakes or drops while it is borrowed.
//!
//! A foreign waker may run foreign code, when it is woken and when it is dropped: its last reference may own anything
//! that a library has attached, for example a connection of the runtime, which closes through the driver. (Cloning a
//! waker is assumed to be harmless.) So a driver neither wakes nor drops the wakers that it was given. Wakers to
//! wake, and wakers that are replaced or no longer needed, are listed here until the driver's caller no longer
//! borrows it. One call of the driver lists at most the wakers of its sockets and operations, and the caller's.
//!
//! The runtime's own wakers run nothing but the runtime: one comparison identifies them, and they are woken at once.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    mem, ptr,
    task::{RawWakerVTable, Waker},
};

/// Stores a waker in place of the previous one, if they do not wake the same task. Returns the previous one.
#[inline]
#[must_use = "dropping a waker may run any code: drop it when nothing is borrowed or locked"]
pub(crate) fn store(place: &mut Option<Waker>, waker: &Waker) -> Option<Waker> {
    match place {
        Some(present) => exchange(present, waker),
        None => {
            *place = Some(waker.clone());
            None
        }
    }
}

/// As [`store`], for a place that holds a waker.
#[inline]
#[must_use = "dropping a waker may run any code: drop it when nothing is borrowed or locked"]
pub(crate) fn exchange(present: &mut Waker, waker: &Waker) -> Option<Waker> {
    if present.will_wake(waker) { None } else { Some(mem::replace(present, waker.clone())) }
}

/// Wakers to be woken or dropped when the driver is not borrowed.
#[derive(Debug)]
pub(crate) struct Departed {
    /// The table of the runtime's own wakers.
    own: &'static RawWakerVTable,
    /// A list is not empty.
    any: Cell<bool>,
    is_settling: Cell<bool>,
    to_wake: RefCell<VecDeque<Waker>>,
    to_drop: RefCell<Vec<Waker>>,
}

/// Ends the settling, even if foreign code panics.
struct Settling<'a>(&'a Departed);

impl Drop for Settling<'_> {
    fn drop(&mut self) {
        self.0.is_settling.set(false);
    }
}

impl Departed {
    /// `own` is the table that identifies the runtime's own wakers.
    pub(crate) fn new(own: &'static RawWakerVTable) -> Self {
        let (any, is_settling) = (Cell::new(false), Cell::new(false));
        Self { own, any, is_settling, to_wake: RefCell::default(), to_drop: RefCell::default() }
    }

    /// Stores a waker in place of the previous one. Does nothing if both wake the same task.
    #[inline]
    pub(crate) fn wait(&self, waiter: &mut Option<Waker>, waker: &Waker) {
        match waiter {
            Some(present) => self.replace(present, waker),
            None => *waiter = Some(waker.clone()),
        }
    }

    /// As [`Self::wait`], for a place that holds a waker.
    #[inline]
    pub(crate) fn replace(&self, present: &mut Waker, waker: &Waker) {
        if let Some(previous) = exchange(present, waker) {
            self.add(previous);
        }
    }

    /// Takes the waker of a task that no longer waits, if there is one.
    #[inline]
    pub(crate) fn let_go(&self, waiter: Option<Waker>) {
        if let Some(waker) = waiter {
            self.add(waker);
        }
    }

    /// Wakes the waiting task, if there is one.
    #[inline]
    pub(crate) fn wake(&self, waiter: Option<Waker>) {
        match waiter {
            Some(waker) if self.is_own(&waker) => waker.wake(),
            Some(waker) => self.postpone(waker),
            None => {}
        }
    }

    /// Wakes the task that is being polled, to be polled again.
    #[inline]
    pub(crate) fn wake_by_ref(&self, waker: &Waker) {
        if self.is_own(waker) {
            waker.wake_by_ref();
        } else {
            self.postpone(waker.clone());
        }
    }

    #[inline]
    fn is_own(&self, waker: &Waker) -> bool {
        ptr::eq(self.own, waker.vtable())
    }

    #[cold]
    fn add(&self, waker: Waker) {
        self.to_drop.borrow_mut().push(waker);
        self.any.set(true);
    }

    #[cold]
    fn postpone(&self, waker: Waker) {
        self.to_wake.borrow_mut().push_back(waker);
        self.any.set(true);
    }

    /// Whether a waker is still to be woken or dropped: the runtime must settle them before it waits for events.
    #[inline]
    pub(crate) fn is_any(&self) -> bool {
        self.any.get()
    }

    /// Wakes and drops the listed wakers. Nothing may be borrowed.
    #[inline]
    pub(crate) fn settle(&self) {
        if self.any.get() {
            self.settle_listed();
        }
    }

    /// Foreign code that is woken or dropped may call the engine, which comes here again and lists more wakers. New
    /// wakers to wake stay for the next time: a task that runs inline where it is woken, and has had its share of
    /// this turn, would otherwise be woken here forever. One at a time, so that a panic in one loses no other
    /// wake-up.
    #[cold]
    fn settle_listed(&self) {
        if self.is_settling.replace(true) {
            return;
        }
        let settling = Settling(self);
        let listed = self.to_wake.borrow().len();
        for _ in 0..listed {
            let woken = self.to_wake.borrow_mut().pop_front();
            woken.into_iter().for_each(Waker::wake);
        }
        loop {
            let dropped = self.to_drop.borrow_mut().pop();
            if dropped.is_none() {
                break;
            }
        }
        self.any.set(!self.to_wake.borrow().is_empty());
        drop(settling);
    }
}

/// For a driver without a runtime, with a waker that does nothing.
#[cfg(test)]
impl Default for Departed {
    fn default() -> Self {
        Self::new(Waker::noop().vtable())
    }
}

#[cfg(test)]
mod tests {
    use std::{rc::Rc, sync::Arc, task::Wake};

    use super::*;

    struct Nobody;

    impl Wake for Nobody {
        fn wake(self: Arc<Self>) {}
    }

    thread_local! {
        static DEPARTED: RefCell<Option<Rc<Departed>>> = const { RefCell::new(None) };
        static WOKEN: Cell<u32> = const { Cell::new(0) };
    }

    /// Runs inline when woken, and has to wait again at once.
    struct Inline;

    impl Wake for Inline {
        fn wake(self: Arc<Self>) {
            WOKEN.set(WOKEN.get() + 1);
            let departed = DEPARTED.with_borrow(|departed| departed.clone());
            if let Some(departed) = departed {
                departed.wake_by_ref(&Waker::from(self));
                departed.settle();
            }
        }
    }

    #[test]
    fn a_waker_is_stored_once_and_the_previous_one_comes_back() {
        let (first, second) = (Waker::from(Arc::new(Nobody)), Waker::from(Arc::new(Nobody)));
        let mut place = None;
        assert!(store(&mut place, &first).is_none() && store(&mut place, &first).is_none());
        let previous = store(&mut place, &second).expect("it is another task");
        assert!(previous.will_wake(&first) && place.is_some_and(|present| present.will_wake(&second)));
    }

    #[test]
    fn who_is_replaced_or_given_up_is_kept_until_all_are_dropped() {
        let departed = Departed::default();
        let (first, second) = (Arc::new(Nobody), Arc::new(Nobody));
        let mut waiter = None;
        departed.wait(&mut waiter, &Waker::from(Arc::clone(&first)));
        departed.wait(&mut waiter, &Waker::from(Arc::clone(&second)));
        assert_eq!(Arc::strong_count(&first), 2, "it is replaced, and not dropped");
        departed.settle();
        assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (1, 2));
        departed.let_go(waiter.take());
        departed.settle();
        assert_eq!(Arc::strong_count(&second), 1);
    }

    #[test]
    fn own_wakers_are_woken_at_once_and_others_when_all_are() {
        WOKEN.set(0);
        let waker = Waker::from(Arc::new(Inline));
        let (own, other) = (Departed::new(waker.vtable()), Departed::default());
        own.wake(Some(waker));
        assert_eq!((WOKEN.get(), own.is_any()), (1, false));
        other.wake(Some(Waker::from(Arc::new(Inline))));
        assert_eq!((WOKEN.get(), other.is_any()), (1, true));
        other.settle();
        assert_eq!((WOKEN.get(), other.is_any()), (2, false));
    }

    #[test]
    fn who_wants_to_be_woken_again_when_woken_is_woken_by_the_next_call() {
        WOKEN.set(0);
        let departed = Rc::new(Departed::default());
        DEPARTED.set(Some(Rc::clone(&departed)));
        departed.wake(Some(Waker::from(Arc::new(Inline))));
        for count in 1..4 {
            departed.settle();
            assert_eq!((WOKEN.get(), departed.is_any()), (count, true));
        }
        DEPARTED.set(None);
        departed.settle();
        assert!(!departed.is_any());
    }

    struct Panics;

    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("somebody else's code");
        }
    }

    struct Counts;

    impl Wake for Counts {
        fn wake(self: Arc<Self>) {
            WOKEN.set(WOKEN.get() + 1);
        }
    }

    #[test]
    fn a_waker_that_panics_takes_no_others_wake_up_along() {
        WOKEN.set(0);
        let departed = Departed::default();
        departed.wake(Some(Arc::new(Panics).into()));
        departed.wake(Some(Arc::new(Counts).into()));
        let settled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| departed.settle()));
        assert!(settled.is_err() && departed.is_any(), "the other one is still to be woken");
        departed.settle();
        assert_eq!((WOKEN.get(), departed.is_any()), (1, false));
    }
}
