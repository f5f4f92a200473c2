//! A queue of fixed capacity: first in, first out.

pub(super) struct Ring<T> {
    items: Box<[T]>,
    /// Both only increase; their difference is the number of items.
    head: usize,
    tail: usize,
}

impl<T: Copy + Default> Ring<T> {
    /// Room for at least `capacity` items.
    pub(super) fn new(capacity: usize) -> Self {
        Self { items: vec![T::default(); capacity.max(1).next_power_of_two()].into(), head: 0, tail: 0 }
    }

    #[inline]
    fn place(&self, index: usize) -> usize {
        index & (self.items.len() - 1)
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.tail - self.head
    }

    #[inline]
    pub(super) fn push(&mut self, item: T) {
        assert!(self.len() < self.items.len(), "a queue is larger than all operations");
        let place = self.place(self.tail);
        self.items[place] = item;
        self.tail += 1;
    }

    #[inline]
    pub(super) fn first(&self) -> Option<T> {
        (!self.is_empty()).then(|| self.items[self.place(self.head)])
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        let first = self.first()?;
        self.head += 1;
        Some(first)
    }

    pub(super) fn clear(&mut self) {
        self.head = self.tail;
    }

    pub(super) fn for_each(&mut self, mut change: impl FnMut(&mut T)) {
        for index in self.head..self.tail {
            let place = self.place(index);
            change(&mut self.items[place]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_queue(steps in prop::collection::vec(any::<bool>(), 0..300)) {
            let (mut ring, mut queue) = (Ring::new(5), VecDeque::new());
            for (number, is_push) in steps.into_iter().enumerate() {
                if is_push && queue.len() < 8 {
                    ring.push(number);
                    queue.push_back(number);
                } else {
                    prop_assert_eq!(ring.pop(), queue.pop_front());
                }
                prop_assert_eq!(ring.first(), queue.front().copied());
                prop_assert_eq!((ring.len(), ring.is_empty()), (queue.len(), queue.is_empty()));
            }
            ring.for_each(|number| *number += 1);
            let left: Vec<usize> = std::iter::from_fn(|| ring.pop()).collect();
            prop_assert_eq!(left, queue.iter().map(|number| number + 1).collect::<Vec<_>>());
        }
    }

    #[test]
    #[should_panic(expected = "larger than all operations")]
    fn it_has_a_limit() {
        let mut ring = Ring::new(4);
        (0..5).for_each(|number| ring.push(number));
    }
}
