//! A line in front of a fixed number of places: first come, first served, and nobody waits for a place that is free.
//!
//! Pure but for the wakers it calls. A place that becomes free is handed to the first in the line and to nobody else:
//! who comes later cannot take it, and who gives up after that passes it on.
//!
//! Invariant: nobody waits while a place is free.

use std::{
    collections::VecDeque,
    task::{Poll, Waker},
};

/// A position in the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

/// The line and its places.
#[derive(Debug)]
pub(crate) struct Line {
    free: usize,
    /// In the order of their tickets.
    waiting: VecDeque<(Ticket, Waker)>,
    next: u64,
}

impl Line {
    /// A line in front of `places` places; of at least one, because nobody would ever get one of none.
    pub(crate) fn new(places: usize) -> Self {
        Self { free: places.max(1), waiting: VecDeque::new(), next: 0 }
    }

    /// Takes a place, or a ticket for the next one that nobody else waits for; with a ticket, takes the place that was
    /// handed over for it.
    pub(crate) fn poll_enter(&mut self, ticket: &mut Option<Ticket>, waker: &Waker) -> Poll<()> {
        if let Some(own) = *ticket {
            return match self.position(own) {
                Some(position) => {
                    self.waiting[position].1.clone_from(waker);
                    Poll::Pending
                }
                None => {
                    *ticket = None;
                    Poll::Ready(())
                }
            };
        }
        if self.free > 0 {
            self.free -= 1;
            return Poll::Ready(());
        }
        let own = Ticket(self.next);
        self.next += 1;
        self.waiting.push_back((own, waker.clone()));
        *ticket = Some(own);
        Poll::Pending
    }

    /// Gives a place back.
    pub(crate) fn leave(&mut self) {
        match self.waiting.pop_front() {
            Some((_, waker)) => waker.wake(),
            None => self.free += 1,
        }
    }

    /// Who holds this ticket waits no more.
    pub(crate) fn give_up(&mut self, ticket: Ticket) {
        match self.position(ticket) {
            Some(position) => drop(self.waiting.remove(position)),
            // A place was handed over that nobody will take.
            None => self.leave(),
        }
    }

    /// Where a ticket stands; `None` once a place was handed over for it.
    fn position(&self, ticket: Ticket) -> Option<usize> {
        self.waiting.binary_search_by_key(&ticket, |(ticket, _)| *ticket).ok()
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

    fn enter(line: &mut Line, ticket: &mut Option<Ticket>) -> bool {
        line.poll_enter(ticket, Waker::noop()).is_ready()
    }

    #[test]
    fn a_place_goes_to_the_first_in_the_line_and_not_to_who_comes_later() {
        let mut line = Line::new(1);
        let (mut inside, mut first, mut second, mut late) = (None, None, None, None);
        assert!(enter(&mut line, &mut inside));
        let woken = Arc::new(Count(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&woken));
        assert!(line.poll_enter(&mut first, &waker).is_pending());
        assert!(!enter(&mut line, &mut second));
        line.leave();
        assert_eq!(woken.0.load(SeqCst), 1);
        assert!(!enter(&mut line, &mut late), "the place is the first one's");
        assert!(enter(&mut line, &mut first));
        line.leave();
        assert!(!enter(&mut line, &mut late) && enter(&mut line, &mut second));
    }

    #[test]
    fn who_gives_up_a_place_that_was_handed_over_passes_it_on() {
        let mut line = Line::new(1);
        let (mut inside, mut first, mut second) = (None, None, None);
        assert!(enter(&mut line, &mut inside));
        assert!(!enter(&mut line, &mut first) && !enter(&mut line, &mut second));
        line.leave();
        line.give_up(first.expect("it has a ticket"));
        assert!(enter(&mut line, &mut second));
    }

    proptest! {
        #[test]
        fn places_are_neither_lost_nor_handed_out_twice(
            places in 1usize..4,
            steps in prop::collection::vec((0u8..4, any::<prop::sample::Index>()), 0..200),
        ) {
            let mut line = Line::new(places);
            let mut waiting: Vec<Option<Ticket>> = Vec::new();
            let mut inside = 0;
            for (kind, choice) in steps {
                match kind {
                    0 => {
                        let mut ticket = None;
                        if enter(&mut line, &mut ticket) { inside += 1 } else { waiting.push(ticket) }
                    }
                    1 if !waiting.is_empty() => {
                        let place = choice.index(waiting.len());
                        if enter(&mut line, &mut waiting[place]) {
                            waiting.remove(place);
                            inside += 1;
                        }
                    }
                    2 if !waiting.is_empty() => {
                        let ticket = waiting.remove(choice.index(waiting.len()));
                        line.give_up(ticket.expect("it waits"));
                    }
                    3 if inside > 0 => {
                        inside -= 1;
                        line.leave();
                    }
                    _ => {}
                }
                prop_assert!(inside <= places);
                prop_assert!(line.free == 0 || line.waiting.is_empty());
            }
            for ticket in waiting {
                line.give_up(ticket.expect("it waits"));
            }
            (0..inside).for_each(|_| line.leave());
            prop_assert_eq!(line.free, places);
        }
    }
}
