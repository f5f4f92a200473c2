//! Future events, in order of virtual time. Events at the same moment are in seeded order.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
};

use crate::clock::Instant;

#[derive(Debug)]
struct Entry<T> {
    at: Instant,
    tie: u64,
    serial: u64,
    event: T,
}

impl<T> Entry<T> {
    fn key(&self) -> (Instant, u64, u64) {
        (self.at, self.tie, self.serial)
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// The queue of future events.
#[derive(Debug)]
pub(super) struct EventQueue<T> {
    entries: BinaryHeap<Reverse<Entry<T>>>,
    serial: u64,
}

impl<T> EventQueue<T> {
    pub(super) fn new() -> Self {
        Self { entries: BinaryHeap::new(), serial: 0 }
    }

    /// Plans an event; `tie` orders events of the same moment.
    pub(super) fn plan(&mut self, at: Instant, tie: u64, event: T) {
        self.serial += 1;
        self.entries.push(Reverse(Entry { at, tie, serial: self.serial, event }));
    }

    /// When the next event happens.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.entries.peek().map(|Reverse(entry)| entry.at)
    }

    /// The next event, if its time has come.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<T> {
        if self.next_at()? > now {
            return None;
        }
        self.entries.pop().map(|Reverse(entry)| entry.event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_order_of_time_then_of_chance_then_of_planning() {
        let mut events = EventQueue::new();
        let at = Instant::from_nanos;
        for (time, tie, name) in [(9, 0, 'e'), (5, 7, 'd'), (5, 2, 'b'), (5, 2, 'c'), (1, 9, 'a')] {
            events.plan(at(time), tie, name);
        }
        let due: String = std::iter::from_fn(|| events.pop_due(at(5))).collect();
        assert_eq!(due, "abcd");
        assert_eq!(events.next_at(), Some(at(9)));
    }
}
