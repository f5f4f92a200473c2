//! Wakers that are kept for whoever waits, and those that a driver wakes or lets go of while it is borrowed.
//!
//! Somebody else's waker may run code of theirs: when it is woken, and when it is dropped, because its last reference
//! may own whatever a library has put behind it, a connection of the runtime for one, which closes through the driver.
//! (To clone one is taken to be harmless.) So a driver does neither with the wakers that it was given. Who is to be
//! woken, and who is replaced or given up, stands here until the driver's caller does not borrow it any more. A call of
//! the driver leaves at most those that its sockets and operations have, and that of its caller.
//!
//! The runtime's own wakers run nothing but the runtime: they are told by one comparison, and woken at once.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    mem, ptr,
    task::{RawWakerVTable, Waker},
};

/// Wakers to be called or dropped when the driver is not borrowed.
#[derive(Debug)]
pub(crate) struct Departed {
    /// What the runtime's own wakers have.
    own: &'static RawWakerVTable,
    /// Something stands in a list.
    any: Cell<bool>,
    is_settling: Cell<bool>,
    to_wake: RefCell<VecDeque<Waker>>,
    to_drop: RefCell<Vec<Waker>>,
}

/// Ends the settling, also when somebody's code panics.
struct Settling<'a>(&'a Departed);

impl Drop for Settling<'_> {
    fn drop(&mut self) {
        self.0.is_settling.set(false);
    }
}

impl Departed {
    /// With what tells the runtime's own wakers from those of others.
    pub(crate) fn new(own: &'static RawWakerVTable) -> Self {
        let (any, is_settling) = (Cell::new(false), Cell::new(false));
        Self { own, any, is_settling, to_wake: RefCell::default(), to_drop: RefCell::default() }
    }

    /// Remembers who waits, in place of whoever waited there. For the same one nothing is done.
    #[inline]
    pub(crate) fn wait(&self, waiter: &mut Option<Waker>, waker: &Waker) {
        match waiter {
            Some(present) => self.replace(present, waker),
            None => *waiter = Some(waker.clone()),
        }
    }

    /// The same where somebody waits.
    #[inline]
    pub(crate) fn replace(&self, present: &mut Waker, waker: &Waker) {
        if !present.will_wake(waker) {
            self.add(mem::replace(present, waker.clone()));
        }
    }

    /// Takes who does not wait any more, if anybody did.
    #[inline]
    pub(crate) fn let_go(&self, waiter: Option<Waker>) {
        if let Some(waker) = waiter {
            self.add(waker);
        }
    }

    /// Wakes who waited, if anybody did.
    #[inline]
    pub(crate) fn wake(&self, waiter: Option<Waker>) {
        match waiter {
            Some(waker) if self.is_own(&waker) => waker.wake(),
            Some(waker) => self.postpone(waker),
            None => {}
        }
    }

    /// Wakes who polls right now and shall poll again.
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

    /// Whether somebody is still to be woken or dropped: the runtime must not wait for events before.
    #[inline]
    pub(crate) fn is_any(&self) -> bool {
        self.any.get()
    }

    /// Wakes and drops them: nothing may be borrowed.
    #[inline]
    pub(crate) fn settle(&self) {
        if self.any.get() {
            self.settle_listed();
        }
    }

    /// Whoever is woken or dropped may call the engine, which comes here again and leaves what it adds. Of that, who is
    /// to be woken stays for the next time: somebody who goes on where they are woken, and who has had their share of
    /// this turn, would be woken here for ever. One at a time, so that one that panics takes no other's wake-up along.
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

/// Of a driver without a runtime. That waker does nothing.
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

    /// Goes on where it is woken, and has to wait again at once.
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
