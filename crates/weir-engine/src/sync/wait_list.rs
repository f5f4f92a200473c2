//! The tasks that wait for something, first come, first served: the base of the other files here.
//!
//! It is pure: it neither wakes nor drops a waker. Each waker that is no longer needed leaves as a return value, and
//! the caller wakes or drops it when nothing is borrowed, because a waker may run any code.

use std::{collections::VecDeque, task::Waker};

use crate::wakers;

/// The place of one future in a list; a smaller one is earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

#[derive(Debug)]
struct Entry<T> {
    ticket: Ticket,
    wanted: T,
    waker: Waker,
}

/// Waiting tasks in order of arrival, each with what it waits for.
///
/// A future keeps an `Option<Ticket>`, begins with `None`, and passes it to [`wait`](Self::wait) whenever it is polled
/// and has to wait. When it is dropped it gives the ticket to [`leave`](Self::leave). So the list has one entry for
/// each future that waits, and the number of these futures is its bound.
#[derive(Debug)]
pub(crate) struct WaitList<T = ()> {
    /// In order of their tickets.
    entries: VecDeque<Entry<T>>,
    next: u64,
}

impl<T> WaitList<T> {
    /// An empty list.
    pub(crate) const fn new() -> Self {
        Self { entries: VecDeque::new(), next: 0 }
    }

    /// Number of waiting futures.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no future waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether this ticket is still in line. If not, it was taken out to be woken.
    pub(crate) fn has(&self, ticket: Ticket) -> bool {
        self.position(ticket).is_some()
    }

    /// Waits with this ticket; without one, or when it is no longer in line, at the end of the line with a new one.
    /// Returns the waker that was replaced.
    #[must_use = "dropping a waker may run any code: drop it when nothing is borrowed"]
    pub(crate) fn wait(&mut self, ticket: &mut Option<Ticket>, wanted: T, waker: &Waker) -> Option<Waker> {
        if let Some(position) = ticket.and_then(|ticket| self.position(ticket)) {
            let entry = &mut self.entries[position];
            entry.wanted = wanted;
            return wakers::exchange(&mut entry.waker, waker);
        }
        let own = Ticket(self.next);
        self.next += 1;
        self.entries.push_back(Entry { ticket: own, wanted, waker: waker.clone() });
        *ticket = Some(own);
        None
    }

    /// Gives a place up. Returns its waker, to be dropped; `None`: the ticket is no longer in line, and what it was
    /// woken for may have to be passed on.
    #[must_use = "`None` says that the future had been taken out to be woken"]
    pub(crate) fn leave(&mut self, ticket: Ticket) -> Option<Waker> {
        let position = self.position(ticket)?;
        self.entries.remove(position).map(|entry| entry.waker)
    }

    /// Takes the first in line out, to be woken.
    #[must_use = "its task waits to be woken"]
    #[inline]
    pub(crate) fn take_first(&mut self) -> Option<Waker> {
        self.entries.pop_front().map(|entry| entry.waker)
    }

    /// Takes all out, to be woken, in order.
    #[inline]
    pub(crate) fn take_all(&mut self, due: &mut Vec<Waker>) {
        due.extend(self.entries.drain(..).map(|entry| entry.waker));
    }

    /// Takes those out whose condition holds, to be woken, in order. It asks for each one once.
    pub(crate) fn take_due(&mut self, due: &mut Vec<Waker>, mut is_due: impl FnMut(&T) -> bool) {
        // Usually those that came first are due first, and nothing has to move.
        let kept = loop {
            match self.entries.pop_front() {
                Some(entry) if is_due(&entry.wanted) => due.push(entry.waker),
                other => break other,
            }
        };
        let Some(kept) = kept else { return };
        self.entries.push_front(kept);
        let Some(begin) = (1..self.entries.len()).find(|at| is_due(&self.entries[*at].wanted)) else {
            return;
        };
        let mut rest = self.entries.split_off(begin).into_iter();
        due.extend(rest.next().map(|entry| entry.waker));
        for entry in rest {
            if is_due(&entry.wanted) {
                due.push(entry.waker);
            } else {
                self.entries.push_back(entry);
            }
        }
    }

    fn position(&self, ticket: Ticket) -> Option<usize> {
        self.entries.binary_search_by_key(&ticket, |entry| entry.ticket).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering::Relaxed},
        },
        task::Wake,
    };

    use proptest::prelude::*;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn a_future_that_is_polled_again_keeps_its_place_and_gets_its_old_waker_back() {
        let mut list = WaitList::new();
        let (mut first, mut second) = (None, None);
        let counts: [Arc<Count>; 2] = Default::default();
        let wakers = counts.clone().map(Waker::from);
        assert!(list.wait(&mut first, (), &wakers[0]).is_none());
        assert!(list.wait(&mut second, (), Waker::noop()).is_none());
        assert!(list.wait(&mut first, (), &wakers[0]).is_none(), "it is the same");
        let replaced = list.wait(&mut first, (), &wakers[1]).expect("it has moved to another task");
        assert!(replaced.will_wake(&wakers[0]));
        assert_eq!(list.len(), 2);
        list.take_first().expect("two wait").wake();
        assert_eq!(counts.map(|count| count.0.load(Relaxed)), [0, 1]);
        assert!(!list.has(first.expect("it had a place")) && list.has(second.expect("it has a place")));
    }

    #[test]
    fn who_was_taken_out_and_waits_again_goes_to_the_end_of_the_line() {
        let mut list = WaitList::new();
        let (mut first, mut second) = (None, None);
        assert!(list.wait(&mut first, (), Waker::noop()).is_none());
        assert!(list.wait(&mut second, (), Waker::noop()).is_none());
        assert!(list.take_first().is_some());
        assert!(list.wait(&mut first, (), Waker::noop()).is_none());
        assert!(first > second);
        assert!(list.leave(second.expect("it waits")).is_some());
        assert!(list.leave(second.expect("it had a place")).is_none(), "a ticket leaves once");
        assert!(list.take_first().is_some() && list.is_empty());
    }

    proptest! {
        /// Against a list of numbers: what leaves the list is what the model says, in its order.
        #[test]
        fn takes_what_is_due_in_order_and_keeps_the_rest(
            steps in prop::collection::vec((0u8..4, 0u32..50, any::<prop::sample::Index>()), 0..200),
        ) {
            let mut list = WaitList::new();
            let mut model: Vec<(Ticket, u32)> = Vec::new();
            for (kind, number, choice) in steps {
                match kind {
                    0 | 1 => {
                        let mut ticket = None;
                        prop_assert!(list.wait(&mut ticket, number, Waker::noop()).is_none());
                        model.push((ticket.expect("it waits"), number));
                    }
                    2 if !model.is_empty() => {
                        let (ticket, _) = model.remove(choice.index(model.len()));
                        prop_assert!(list.leave(ticket).is_some() && !list.has(ticket));
                    }
                    _ => {
                        let (mut due, mut asked) = (Vec::new(), Vec::new());
                        list.take_due(&mut due, |wanted| {
                            asked.push(*wanted);
                            *wanted <= number
                        });
                        let all: Vec<u32> = model.iter().map(|(_, wanted)| *wanted).collect();
                        prop_assert_eq!(asked, all, "each is asked once, in order");
                        let before = model.len();
                        model.retain(|(_, wanted)| *wanted > number);
                        prop_assert_eq!(due.len(), before - model.len());
                    }
                }
                let kept: Vec<_> = list.entries.iter().map(|entry| (entry.ticket, entry.wanted)).collect();
                prop_assert_eq!(&kept, &model);
            }
            let mut due = Vec::new();
            list.take_all(&mut due);
            prop_assert!(due.len() == model.len() && list.is_empty());
        }
    }
}
