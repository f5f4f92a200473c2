//! Permits, first come, first served: a pure core for the drivers, and a semaphore for tasks on it.

use std::{
    cell::RefCell,
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use super::wait_list::{Ticket, WaitList};

/// The core. A released permit goes to the first waiter and to nobody else: a later arrival cannot take it, and a
/// waiter that gives up after that passes it on. It is pure: wakers leave as return values.
///
/// Invariant: there is no waiter while a permit is free.
#[derive(Debug)]
pub(crate) struct FairSemaphore {
    free: usize,
    waiting: WaitList,
}

/// What is left to do for the caller when a waiter has given up.
#[derive(Debug)]
pub(crate) enum GivenUp {
    /// It was in line. The caller drops its waker.
    Left(Waker),
    /// It had a permit. The next in line has it now, if there is one, and the caller wakes it.
    PassedOn(Option<Waker>),
}

impl FairSemaphore {
    /// A semaphore with this many permits; at least one, because with none a waiter would never get one.
    pub(crate) fn new(permits: usize) -> Self {
        Self { free: permits.max(1), waiting: WaitList::new() }
    }

    /// Takes a permit, or waits in line for one. A waiter takes the permit that was handed over to it. The caller drops
    /// the waker, which was replaced.
    pub(crate) fn poll_acquire(
        &mut self,
        ticket: &mut Option<Ticket>,
        waker: &Waker,
    ) -> (Poll<()>, Option<Waker>) {
        match *ticket {
            Some(own) if !self.waiting.has(own) => {
                *ticket = None;
                (Poll::Ready(()), None)
            }
            None if self.free > 0 => {
                self.free -= 1;
                (Poll::Ready(()), None)
            }
            _ => (Poll::Pending, self.waiting.wait(ticket, (), waker)),
        }
    }

    /// Takes a permit if one is free, which means that no task waits.
    pub(crate) fn try_acquire(&mut self) -> bool {
        let is_free = self.free > 0;
        self.free -= usize::from(is_free);
        is_free
    }

    /// Returns a permit. The first in line has it now, and the caller wakes it.
    #[must_use = "its task waits to be woken"]
    pub(crate) fn release(&mut self) -> Option<Waker> {
        let first = self.waiting.take_first();
        self.free += usize::from(first.is_none());
        first
    }

    /// Removes a waiter.
    #[must_use = "the caller drops its waker, or wakes another one"]
    pub(crate) fn give_up(&mut self, ticket: Ticket) -> GivenUp {
        match self.waiting.leave(ticket) {
            Some(waker) => GivenUp::Left(waker),
            None => GivenUp::PassedOn(self.release()),
        }
    }
}

/// Permits for tasks of one thread, first come, first served: a bound on how many of them do something at a time.
///
/// ```
/// use std::rc::Rc;
/// use weir_engine::{Config, Driver, Runtime, spawn, sync::Semaphore};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// Runtime::new(&Config::with_driver(Driver::Sim))?.block_on(async {
///     let permits = Rc::new(Semaphore::new(2));
///     let tasks: Vec<_> = (0..10)
///         .map(|_| {
///             let permits = Rc::clone(&permits);
///             spawn(async move {
///                 let _permit = permits.acquire().await;
///                 // At most two tasks are here.
///             })
///         })
///         .collect();
///     for task in tasks {
///         task.await;
///     }
/// });
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Semaphore(RefCell<FairSemaphore>);

impl Semaphore {
    /// A semaphore with this many permits; at least one.
    pub fn new(permits: usize) -> Self {
        Self(RefCell::new(FairSemaphore::new(permits)))
    }

    /// Waits for a permit. A task never waits while one is free. Dropping the future gives its place in line up; a
    /// permit that it had been handed goes to the next.
    pub fn acquire(&self) -> Acquire<'_> {
        Acquire { semaphore: self, ticket: None }
    }

    /// A permit, if one is free.
    pub fn try_acquire(&self) -> Option<Permit<'_>> {
        let is_free = self.0.borrow_mut().try_acquire();
        is_free.then(|| Permit(self))
    }

    /// Number of free permits.
    pub fn free(&self) -> usize {
        self.0.borrow().free
    }
}

/// The future of [`Semaphore::acquire`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Acquire<'a> {
    semaphore: &'a Semaphore,
    ticket: Option<Ticket>,
}

impl<'a> Future for Acquire<'a> {
    type Output = Permit<'a>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Permit<'a>> {
        let semaphore = self.semaphore;
        let (outcome, replaced) = semaphore.0.borrow_mut().poll_acquire(&mut self.ticket, context.waker());
        drop(replaced);
        outcome.map(|()| Permit(semaphore))
    }
}

impl Drop for Acquire<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let given_up = self.semaphore.0.borrow_mut().give_up(ticket);
        match given_up {
            GivenUp::PassedOn(Some(next)) => next.wake(),
            GivenUp::Left(_) | GivenUp::PassedOn(None) => {}
        }
    }
}

/// A permit; dropping it hands it to the first task in line.
#[derive(Debug)]
#[must_use = "a permit that is dropped at once permits nothing"]
pub struct Permit<'a>(&'a Semaphore);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let next = self.0.0.borrow_mut().release();
        if let Some(next) = next {
            next.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        rc::Rc,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering::SeqCst},
        },
    };

    use proptest::prelude::*;

    use super::*;
    use crate::{Config, Driver, Runtime, spawn, time::yield_now};

    struct Count(AtomicUsize);

    impl std::task::Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    fn acquire(semaphore: &mut FairSemaphore, ticket: &mut Option<Ticket>) -> bool {
        semaphore.poll_acquire(ticket, Waker::noop()).0.is_ready()
    }

    #[test]
    fn a_permit_goes_to_the_first_in_line_and_not_to_who_comes_later() {
        let mut semaphore = FairSemaphore::new(1);
        let (mut inside, mut first, mut second, mut late) = (None, None, None, None);
        assert!(acquire(&mut semaphore, &mut inside));
        let woken = Arc::new(Count(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&woken));
        assert!(semaphore.poll_acquire(&mut first, &waker).0.is_pending());
        assert!(!acquire(&mut semaphore, &mut second));
        semaphore.release().expect("two wait").wake();
        assert_eq!(woken.0.load(SeqCst), 1);
        assert!(!acquire(&mut semaphore, &mut late), "the permit is the first one's");
        assert!(acquire(&mut semaphore, &mut first));
        assert!(semaphore.release().is_some());
        assert!(!acquire(&mut semaphore, &mut late) && acquire(&mut semaphore, &mut second));
    }

    #[test]
    fn who_gives_up_a_permit_that_was_handed_over_passes_it_on() {
        let mut semaphore = FairSemaphore::new(1);
        let (mut inside, mut first, mut second) = (None, None, None);
        assert!(acquire(&mut semaphore, &mut inside));
        assert!(!acquire(&mut semaphore, &mut first) && !acquire(&mut semaphore, &mut second));
        assert!(semaphore.release().is_some());
        let given_up = semaphore.give_up(first.expect("it has a place"));
        assert!(matches!(given_up, GivenUp::PassedOn(Some(_))), "{given_up:?}");
        assert!(acquire(&mut semaphore, &mut second));
    }

    #[test]
    fn tasks_share_permits_and_one_that_is_aborted_keeps_none() {
        let runtime = Runtime::new(&Config::for_test(Driver::Sim)).expect("it runs everywhere");
        runtime.block_on(async {
            let permits = Rc::new(Semaphore::new(1));
            let held = permits.try_acquire().expect("it is free");
            assert!(permits.try_acquire().is_none());
            let wait = || {
                let permits = Rc::clone(&permits);
                spawn(async move { drop(permits.acquire().await) })
            };
            let (first, second) = (wait(), wait());
            yield_now().await;
            drop(held);
            assert_eq!(permits.free(), 0, "it was handed over");
            first.abort();
            second.await;
            assert_eq!(permits.free(), 1);
        });
    }

    proptest! {
        #[test]
        fn permits_are_neither_lost_nor_handed_out_twice(
            permits in 1usize..4,
            steps in prop::collection::vec((0u8..4, any::<prop::sample::Index>()), 0..200),
        ) {
            let mut semaphore = FairSemaphore::new(permits);
            let mut waiting: Vec<Option<Ticket>> = Vec::new();
            let mut inside = 0;
            for (kind, choice) in steps {
                match kind {
                    0 => {
                        let mut waiter = None;
                        if acquire(&mut semaphore, &mut waiter) { inside += 1 } else { waiting.push(waiter) }
                    }
                    1 if !waiting.is_empty() => {
                        let at = choice.index(waiting.len());
                        if acquire(&mut semaphore, &mut waiting[at]) {
                            waiting.remove(at);
                            inside += 1;
                        }
                    }
                    2 if !waiting.is_empty() => {
                        let waiter = waiting.remove(choice.index(waiting.len()));
                        drop(semaphore.give_up(waiter.expect("it waits")));
                    }
                    3 if inside > 0 => {
                        inside -= 1;
                        drop(semaphore.release());
                    }
                    _ => {}
                }
                prop_assert!(inside <= permits);
                prop_assert!(semaphore.free == 0 || semaphore.waiting.is_empty());
            }
            for waiter in waiting {
                drop(semaphore.give_up(waiter.expect("it waits")));
            }
            (0..inside).for_each(|_| drop(semaphore.release()));
            prop_assert_eq!(semaphore.free, permits);
        }
    }
}
