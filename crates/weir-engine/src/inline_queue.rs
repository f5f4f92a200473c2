//! A first-in, first-out queue that is usually empty or holds one element. That one is stored inline, without a heap
//! allocation.
//!
//! A request-response connection has at most one piece each way. Its queues then cost neither an allocation nor
//! another cache line. Pure.
//!
//! Invariant: `rest` is empty while `first` is.

use std::collections::VecDeque;

#[derive(Debug)]
pub(crate) struct InlineQueue<T> {
    first: Option<T>,
    rest: VecDeque<T>,
}

impl<T> Default for InlineQueue<T> {
    fn default() -> Self {
        Self { first: None, rest: VecDeque::new() }
    }
}

impl<T> InlineQueue<T> {
    #[inline]
    pub(crate) fn push_back(&mut self, element: T) {
        if self.first.is_none() {
            self.first = Some(element);
        } else {
            self.rest.push_back(element);
        }
    }

    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<T> {
        let element = self.first.take();
        if !self.rest.is_empty() {
            self.first = self.rest.pop_front();
        }
        element
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        self.first.as_ref()
    }

    /// Puts an element before all others.
    pub(crate) fn push_front(&mut self, element: T) {
        if let Some(second) = self.first.replace(element) {
            self.rest.push_front(second);
        }
    }

    #[inline]
    pub(crate) fn front_mut(&mut self) -> Option<&mut T> {
        self.first.as_mut()
    }

    #[inline]
    pub(crate) fn back_mut(&mut self) -> Option<&mut T> {
        self.rest.back_mut().or(self.first.as_mut())
    }

    /// Whether there are two or more.
    #[inline]
    pub(crate) fn has_several(&self) -> bool {
        !self.rest.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(&self.rest)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.first.iter_mut().chain(&mut self.rest)
    }

    #[inline]
    pub(crate) fn clear(&mut self) {
        self.first = None;
        if !self.rest.is_empty() {
            self.rest.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_behaves_like_the_queue_of_the_standard_library(
            steps in prop::collection::vec(prop::option::weighted(0.6, any::<u8>()), 0..80),
            clear_at in 0usize..80,
            ahead_at in 0usize..80,
        ) {
            let (mut queue, mut model) = (InlineQueue::default(), VecDeque::new());
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Some(element) => {
                        queue.push_back(element);
                        model.push_back(element);
                    }
                    None => prop_assert_eq!(queue.pop_front(), model.pop_front()),
                }
                if number == ahead_at {
                    queue.push_front(7);
                    model.push_front(7);
                }
                if number == clear_at {
                    queue.clear();
                    model.clear();
                }
                prop_assert_eq!(queue.front(), model.front());
                prop_assert_eq!(queue.front_mut(), model.front_mut());
                prop_assert_eq!(queue.back_mut(), model.back_mut());
                prop_assert_eq!(queue.has_several(), model.len() > 1);
                prop_assert!(queue.iter().eq(model.iter()));
                prop_assert!(queue.iter_mut().eq(model.iter_mut()));
            }
        }
    }
}
