//! A fair semaphore: first come, first served. A caller never waits while a permit is free.
//!
//! Pure except for the wakers, which it hands to [`Departed`]. A released permit goes to the first waiter and to
//! nobody else: a later arrival cannot take it, and a waiter that gives up after that passes it on.
//!
//! Invariant: there is no waiter while a permit is free.

use std::{
    collections::VecDeque,
    task::{Poll, Waker},
};

use crate::wakers::Departed;

/// A place in the queue for a permit; smaller means earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Waiter(u64);

/// Permits and the queue of waiters.
#[derive(Debug)]
pub(crate) struct FairSemaphore {
    free: usize,
    /// In order of arrival.
    waiting: VecDeque<(Waiter, Waker)>,
    next: u64,
}

impl FairSemaphore {
    /// A semaphore with this many permits; at least one, because with none a waiter would never get one.
    pub(crate) fn new(permits: usize) -> Self {
        Self { free: permits.max(1), waiting: VecDeque::new(), next: 0 }
    }

    /// Takes a permit, or waits in line for one. A waiter takes the permit that was handed over to it.
    pub(crate) fn poll_acquire(
        &mut self,
        waiter: &mut Option<Waiter>,
        waker: &Waker,
        departed: &Departed,
    ) -> Poll<()> {
        if let Some(own) = *waiter {
            return match self.position(own) {
                Some(position) => {
                    departed.replace(&mut self.waiting[position].1, waker);
                    Poll::Pending
                }
                None => {
                    *waiter = None;
                    Poll::Ready(())
                }
            };
        }
        if self.free > 0 {
            self.free -= 1;
            return Poll::Ready(());
        }
        let own = Waiter(self.next);
        self.next += 1;
        self.waiting.push_back((own, waker.clone()));
        *waiter = Some(own);
        Poll::Pending
    }

    /// Returns a permit.
    pub(crate) fn release(&mut self, departed: &Departed) {
        match self.waiting.pop_front() {
            Some((_, waker)) => departed.wake(Some(waker)),
            None => self.free += 1,
        }
    }

    /// Removes a waiter.
    pub(crate) fn give_up(&mut self, waiter: Waiter, departed: &Departed) {
        match self.position(waiter) {
            Some(position) => departed.let_go(self.waiting.remove(position).map(|(_, waker)| waker)),
            // The waiter had been handed a permit that it will not take.
            None => self.release(departed),
        }
    }

    /// The position of a waiter; `None` once it has been handed a permit.
    fn position(&self, waiter: Waiter) -> Option<usize> {
        self.waiting.binary_search_by_key(&waiter, |(waiter, _)| *waiter).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    };

    use proptest::prelude::*;

    use super::*;

    struct Count(AtomicUsize);

    impl std::task::Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    fn acquire(semaphore: &mut FairSemaphore, waiter: &mut Option<Waiter>) -> bool {
        semaphore.poll_acquire(waiter, Waker::noop(), &Departed::default()).is_ready()
    }

    #[test]
    fn a_permit_goes_to_the_first_in_line_and_not_to_who_comes_later() {
        let mut semaphore = FairSemaphore::new(1);
        let (mut inside, mut first, mut second, mut late) = (None, None, None, None);
        assert!(acquire(&mut semaphore, &mut inside));
        let woken = Arc::new(Count(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&woken));
        let departed = Departed::default();
        assert!(semaphore.poll_acquire(&mut first, &waker, &departed).is_pending());
        assert!(!acquire(&mut semaphore, &mut second));
        semaphore.release(&departed);
        departed.settle();
        assert_eq!(woken.0.load(SeqCst), 1);
        assert!(!acquire(&mut semaphore, &mut late), "the permit is the first one's");
        assert!(acquire(&mut semaphore, &mut first));
        semaphore.release(&departed);
        assert!(!acquire(&mut semaphore, &mut late) && acquire(&mut semaphore, &mut second));
    }

    #[test]
    fn who_gives_up_a_permit_that_was_handed_over_passes_it_on() {
        let (mut semaphore, departed) = (FairSemaphore::new(1), Departed::default());
        let (mut inside, mut first, mut second) = (None, None, None);
        assert!(acquire(&mut semaphore, &mut inside));
        assert!(!acquire(&mut semaphore, &mut first) && !acquire(&mut semaphore, &mut second));
        semaphore.release(&departed);
        semaphore.give_up(first.expect("it has a waiter"), &departed);
        assert!(acquire(&mut semaphore, &mut second));
    }

    proptest! {
        #[test]
        fn permits_are_neither_lost_nor_handed_out_twice(
            permits in 1usize..4,
            steps in prop::collection::vec((0u8..4, any::<prop::sample::Index>()), 0..200),
        ) {
            let (mut semaphore, departed) = (FairSemaphore::new(permits), Departed::default());
            let mut waiting: Vec<Option<Waiter>> = Vec::new();
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
                        semaphore.give_up(waiter.expect("it waits"), &departed);
                    }
                    3 if inside > 0 => {
                        inside -= 1;
                        semaphore.release(&departed);
                    }
                    _ => {}
                }
                prop_assert!(inside <= permits);
                prop_assert!(semaphore.free == 0 || semaphore.waiting.is_empty());
            }
            for waiter in waiting {
                semaphore.give_up(waiter.expect("it waits"), &departed);
            }
            (0..inside).for_each(|_| semaphore.release(&departed));
            prop_assert_eq!(semaphore.free, permits);
        }
    }
}
