//! Tasks that wait, each for a value that it names: the base for futures outside this folder.

use std::{
    cell::{Cell, RefCell},
    fmt,
    task::Waker,
};

use super::wait_list::{Ticket, WaitList};

/// Tasks of one thread that wait, in order of arrival, each with what it waits for.
///
/// A future keeps a [`Place`], and waits in it whenever it is polled and may not go on. The place is given up when the
/// future is dropped. So there is one entry for each future that waits, and their number is the bound.
///
/// ```
/// use std::{cell::Cell, future::poll_fn, rc::Rc, task::Poll};
/// use weir_engine::{Config, Driver, Runtime, spawn, sync::Waiters};
///
/// /// Bytes that were written, and tasks that wait until theirs are.
/// #[derive(Default)]
/// struct Written(Cell<u64>, Waiters<u64>);
///
/// impl Written {
///     async fn reached(&self, position: u64) {
///         let mut place = self.1.place();
///         poll_fn(|context| {
///             if self.0.get() >= position {
///                 return Poll::Ready(());
///             }
///             place.wait(position, context.waker());
///             Poll::Pending
///         })
///         .await;
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// Runtime::new(&Config::with_driver(Driver::Sim))?.block_on(async {
///     let written = Rc::new(Written::default());
///     let other = Rc::clone(&written);
///     let waiting = spawn(async move { other.reached(100).await });
///     written.0.set(100);
///     written.1.wake_due(|position| *position <= 100);
///     waiting.await;
/// });
/// # Ok(())
/// # }
/// ```
pub struct Waiters<T = ()> {
    list: RefCell<WaitList<T>>,
    /// Kept to reuse its memory.
    due: Cell<Vec<Waker>>,
}

impl<T> Default for Waiters<T> {
    fn default() -> Self {
        Self { list: RefCell::new(WaitList::new()), due: Cell::default() }
    }
}

impl<T> fmt::Debug for Waiters<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Waiters").field("waiting", &self.len()).finish_non_exhaustive()
    }
}

impl<T> Waiters<T> {
    /// Number of futures that wait.
    pub fn len(&self) -> usize {
        self.list.borrow().len()
    }

    /// Whether no future waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.borrow().is_empty()
    }

    /// A place for one future.
    pub fn place(&self) -> Place<'_, T> {
        Place { waiters: self, ticket: None }
    }

    /// Wakes all futures that wait now, in order.
    #[inline]
    pub fn wake_all(&self) {
        if !self.is_empty() {
            self.wake(WaitList::take_all);
        }
    }

    /// Wakes those whose condition holds, in order. The condition is asked once for each of them.
    #[inline]
    pub fn wake_due(&self, is_due: impl FnMut(&T) -> bool) {
        if !self.is_empty() {
            self.wake(|list, due| list.take_due(due, is_due));
        }
    }

    fn wake(&self, take: impl FnOnce(&mut WaitList<T>, &mut Vec<Waker>)) {
        let mut due = self.due.take();
        take(&mut self.list.borrow_mut(), &mut due);
        // Nothing is borrowed now, because a waker may run any code.
        due.drain(..).for_each(Waker::wake);
        self.due.set(due);
    }
}

/// The place of one future among the [`Waiters`]; dropping it gives it up.
#[derive(Debug)]
pub struct Place<'a, T = ()> {
    waiters: &'a Waiters<T>,
    ticket: Option<Ticket>,
}

impl<T> Place<'_, T> {
    /// Waits to be woken: in the place that it has, or at the end of the line.
    pub fn wait(&mut self, wanted: T, waker: &Waker) {
        let replaced = self.waiters.list.borrow_mut().wait(&mut self.ticket, wanted, waker);
        drop(replaced);
    }
}

impl<T> Drop for Place<'_, T> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            let left = self.waiters.list.borrow_mut().leave(ticket);
            drop(left);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{rc::Rc, sync::Arc, task::Wake};

    use super::*;

    #[test]
    fn a_place_that_is_dropped_leaves_no_entry() {
        let waiters = Waiters::default();
        let (mut kept, mut dropped) = (waiters.place(), waiters.place());
        for _ in 0..3 {
            kept.wait(1, Waker::noop());
            dropped.wait(2, Waker::noop());
        }
        assert_eq!(waiters.len(), 2);
        drop(dropped);
        assert_eq!(waiters.len(), 1);
        waiters.wake_due(|number| *number > 1);
        assert_eq!(waiters.len(), 1, "the other one is not due");
        waiters.wake_due(|number| *number == 1);
        assert!(waiters.is_empty());
    }

    thread_local! {
        static SHARED: RefCell<Option<Rc<Waiters>>> = const { RefCell::new(None) };
        static CALLS: Cell<u32> = const { Cell::new(0) };
    }

    /// A foreign waker that wakes all others when it is woken and when it is dropped.
    struct Again;

    impl Again {
        fn wake_others() {
            CALLS.set(CALLS.get() + 1);
            SHARED.with_borrow(|shared| shared.clone()).expect("the test has one").wake_all();
        }
    }

    impl Wake for Again {
        fn wake(self: Arc<Self>) {
            Self::wake_others();
        }
    }

    impl Drop for Again {
        fn drop(&mut self) {
            Self::wake_others();
        }
    }

    #[test]
    fn a_waker_may_wake_others_when_it_is_woken_replaced_and_given_up() {
        let shared = Rc::new(Waiters::default());
        SHARED.set(Some(Rc::clone(&shared)));
        let mut place = shared.place();
        place.wait((), &Waker::from(Arc::new(Again)));
        place.wait((), Waker::noop());
        assert_eq!(CALLS.get(), 1, "it was replaced and dropped, and woke the one that replaced it");
        place.wait((), &Waker::from(Arc::new(Again)));
        shared.wake_all();
        assert_eq!(CALLS.get(), 3, "woken and dropped");
        place.wait((), &Waker::from(Arc::new(Again)));
        drop(place);
        assert_eq!((CALLS.get(), shared.is_empty()), (4, true));
    }
}
