//! Wakers that are kept for whoever waits, and those that are let go of while a driver is borrowed.
//!
//! Dropping somebody else's waker may run code of theirs: its last reference may own whatever a library has put behind
//! it, a connection of the runtime for one, which closes through the driver. So a driver drops none of the wakers that
//! it was given. What is replaced or given up stands here until the driver's caller does not borrow it any more. A call
//! of the driver lets go of at most those that its sockets and operations have.

use std::{
    cell::{Cell, RefCell},
    mem,
    task::Waker,
};

/// Wakers to be dropped when the driver is not borrowed.
#[derive(Debug, Default)]
pub(crate) struct Departed {
    any: Cell<bool>,
    list: RefCell<Vec<Waker>>,
}

impl Departed {
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

    #[cold]
    fn add(&self, waker: Waker) {
        self.list.borrow_mut().push(waker);
        self.any.set(true);
    }

    /// Drops them: nothing may be borrowed.
    #[inline]
    pub(crate) fn drop_all(&self) {
        if self.any.get() {
            self.drop_listed();
        }
    }

    #[cold]
    fn drop_listed(&self) {
        // What is dropped may call the driver, which lets go of others.
        while self.any.replace(false) {
            let departed = self.list.take();
            drop(departed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, task::Wake};

    use super::*;

    struct Nobody;

    impl Wake for Nobody {
        fn wake(self: Arc<Self>) {}
    }

    #[test]
    fn who_is_replaced_or_given_up_is_kept_until_all_are_dropped() {
        let departed = Departed::default();
        let (first, second) = (Arc::new(Nobody), Arc::new(Nobody));
        let mut waiter = None;
        departed.wait(&mut waiter, &Waker::from(Arc::clone(&first)));
        departed.wait(&mut waiter, &Waker::from(Arc::clone(&second)));
        assert_eq!(Arc::strong_count(&first), 2, "it is replaced, and not dropped");
        departed.drop_all();
        assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (1, 2));
        departed.let_go(waiter.take());
        departed.drop_all();
        assert_eq!(Arc::strong_count(&second), 1);
    }
}
