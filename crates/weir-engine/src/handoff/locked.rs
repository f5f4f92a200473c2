//! A queue under a lock, in its usual form: the two strategies that serve as a baseline for the others.
//!
//! `naive` takes one message at a time and announces each; `edge` swaps the whole queue out and announces only the
//! message that finds it empty. This file decides which push announces, not how.
//!
//! Why announcing on the edge is enough: the consumer, once awake, takes everything, so a message that found the
//! queue not empty is taken with the one that found it empty, and that one was announced. The decision is made under
//! the lock in which the message is added.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::Priority;

/// Messages of one priority, each with its producer.
type Fifo<T> = VecDeque<(usize, T)>;

struct Queues<T> {
    by_priority: [Fifo<T>; 2],
    /// By producer: whether it waits for room.
    starved: Vec<bool>,
    /// At least one producer waits.
    any_starved: bool,
}

struct Queue<T> {
    queues: Mutex<Queues<T>>,
    /// Number of messages, so that an empty queue is not locked to be checked.
    count: AtomicUsize,
    capacity: usize,
}

impl<T> Queue<T> {
    /// Valid even if a thread panicked while holding the lock: no step leaves it half changed.
    fn lock(&self) -> MutexGuard<'_, Queues<T>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One producer's side.
pub(super) struct Sender<T> {
    queue: Arc<Queue<T>>,
    from: usize,
    every: bool,
}

/// The consumer's side.
pub(super) struct Receiver<T> {
    queue: Arc<Queue<T>>,
    /// Messages that were swapped out.
    taken: [Fifo<T>; 2],
    room_waiters: Vec<usize>,
    every: bool,
}

/// The queue of one consumer, with a side for each producer; each has `slots` places for each priority. `every`: take
/// and announce messages one by one.
pub(super) fn queue<T>(producers: usize, slots: usize, every: bool) -> (Vec<Sender<T>>, Receiver<T>) {
    let capacity = producers * slots.max(1);
    let fifo = || VecDeque::with_capacity(capacity);
    let queues =
        Queues { by_priority: [fifo(), fifo()], starved: vec![false; producers], any_starved: false };
    let queue = Arc::new(Queue { queues: Mutex::new(queues), count: AtomicUsize::new(0), capacity });
    let sender = |from| Sender { queue: Arc::clone(&queue), from, every };
    let senders = (0..producers).map(sender).collect();
    (senders, Receiver { queue, taken: [fifo(), fifo()], room_waiters: Vec::new(), every })
}

impl<T> Sender<T> {
    /// Queues a message. `Ok(true)`: it must be announced.
    pub(super) fn push(&mut self, priority: Priority, message: T) -> Result<bool, T> {
        let mut queues = self.queue.lock();
        if queues.by_priority[priority.index()].len() >= self.queue.capacity {
            return Err(message);
        }
        // For this priority: the consumer may have left messages of the other one in the queue.
        let was_empty = queues.by_priority[priority.index()].is_empty();
        queues.by_priority[priority.index()].push_back((self.from, message));
        self.queue.count.store(queues.by_priority[0].len() + queues.by_priority[1].len(), Ordering::Release);
        Ok(self.every || was_empty)
    }

    /// Asks the consumer to wake this side when there is room. False: there is already some.
    pub(super) fn await_room(&mut self, priority: Priority) -> bool {
        let mut queues = self.queue.lock();
        if queues.by_priority[priority.index()].len() < self.queue.capacity {
            return false;
        }
        queues.starved[self.from] = true;
        queues.any_starved = true;
        true
    }
}

impl<T> Receiver<T> {
    fn note_starved(room_waiters: &mut Vec<usize>, queues: &mut Queues<T>) {
        if std::mem::take(&mut queues.any_starved) {
            let starved = queues.starved.iter_mut().enumerate();
            room_waiters
                .extend(starved.filter_map(|(from, starved)| std::mem::take(starved).then_some(from)));
        }
    }

    /// Takes all messages of one priority out of the queue, when all earlier ones have been taken. The other priority
    /// stays, so that its producers find it full: a consumer that takes only responses must not make room for
    /// requests.
    fn drain(&mut self, priority: Priority) {
        let mut queues = self.queue.lock();
        let priority = priority.index();
        if queues.by_priority[priority].is_empty() {
            return;
        }
        std::mem::swap(&mut self.taken[priority], &mut queues.by_priority[priority]);
        self.queue.count.store(queues.by_priority[0].len() + queues.by_priority[1].len(), Ordering::Release);
        Self::note_starved(&mut self.room_waiters, &mut queues);
    }

    fn pop_one(&mut self, priority: Priority) -> Option<(usize, T)> {
        let mut queues = self.queue.lock();
        let message = queues.by_priority[priority.index()].pop_front()?;
        self.queue.count.store(queues.by_priority[0].len() + queues.by_priority[1].len(), Ordering::Release);
        Self::note_starved(&mut self.room_waiters, &mut queues);
        Some(message)
    }

    /// The next message of a priority, and its producer.
    pub(super) fn pop(&mut self, priority: Priority) -> Option<(usize, T)> {
        let in_queue = self.queue.count.load(Ordering::Acquire) > 0;
        if self.every {
            return if in_queue { self.pop_one(priority) } else { None };
        }
        if self.taken[priority.index()].is_empty() && in_queue {
            self.drain(priority);
        }
        self.taken[priority.index()].pop_front()
    }

    /// Adds the producers that waited for room, which must be woken.
    pub(super) fn return_room(&mut self, room_waiters: &mut Vec<usize>) {
        room_waiters.append(&mut self.room_waiters);
    }

    /// Whether a message is there.
    pub(super) fn has_some(&mut self) -> bool {
        !self.taken.iter().all(VecDeque::is_empty) || self.queue.count.load(Ordering::Acquire) > 0
    }

    /// Whether a message of a priority is there.
    pub(super) fn has_some_of(&mut self, priority: Priority) -> bool {
        let priority = priority.index();
        !self.taken[priority].is_empty()
            || self.queue.count.load(Ordering::Acquire) > 0
                && !self.queue.lock().by_priority[priority].is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_producer_that_finds_no_room_is_woken_when_there_is_some() {
        for every in [true, false] {
            let (mut senders, mut receiver) = queue::<u32>(1, 2, every);
            let sender = &mut senders[0];
            assert_eq!(sender.push(Priority::Request, 1), Ok(true));
            assert_eq!(sender.push(Priority::Request, 2), Ok(every));
            assert_eq!(sender.push(Priority::Request, 3), Err(3));
            assert!(sender.await_room(Priority::Request) && !sender.await_room(Priority::Response));
            assert_eq!(receiver.pop(Priority::Request), Some((0, 1)));
            let mut room_waiters = Vec::new();
            receiver.return_room(&mut room_waiters);
            assert_eq!(room_waiters, [0]);
            assert!(!sender.await_room(Priority::Request));
        }
    }

    #[test]
    fn who_takes_responses_only_makes_no_room_for_requests() {
        for every in [true, false] {
            let (mut senders, mut receiver) = queue::<u32>(1, 2, every);
            assert_eq!(senders[0].push(Priority::Request, 1), Ok(true));
            assert_eq!(senders[0].push(Priority::Request, 2), Ok(every));
            assert_eq!(receiver.pop(Priority::Response), None);
            assert_eq!(senders[0].push(Priority::Request, 3), Err(3));
            // A response behind requests that remain in the queue must still be announced.
            assert_eq!(senders[0].push(Priority::Response, 4), Ok(true));
            assert_eq!(receiver.pop(Priority::Response), Some((0, 4)));
            assert_eq!(receiver.pop(Priority::Request), Some((0, 1)));
        }
    }

    proptest! {
        #[test]
        fn it_agrees_with_queues(
            every in any::<bool>(),
            steps in prop::collection::vec((0u8..7, 0usize..2), 0..200),
        ) {
            const SLOTS: usize = 3;
            let (mut senders, mut receiver) = queue::<usize>(2, SLOTS, every);
            let (mut shared, mut taken): ([Fifo<usize>; 2], [Fifo<usize>; 2]) = Default::default();
            for (number, (step, from)) in steps.into_iter().enumerate() {
                let priority = if step % 2 == 0 { Priority::Response } else { Priority::Request };
                let place = priority.index();
                match step {
                    0..4 => {
                        let is_empty = shared[place].is_empty();
                        let is_full = shared[place].len() == 2 * SLOTS;
                        let expected = if is_full { Err(number) } else { Ok(every || is_empty) };
                        prop_assert_eq!(senders[from].push(priority, number), expected);
                        if !is_full {
                            shared[place].push_back((from, number));
                        }
                    }
                    4 | 5 => {
                        if !every && taken[place].is_empty() {
                            let shared = std::mem::take(&mut shared[place]);
                            taken[place] = shared;
                        }
                        let expected = if every { shared[place].pop_front() } else { taken[place].pop_front() };
                        prop_assert_eq!(receiver.pop(priority), expected);
                    }
                    _ => {
                        let is_empty = shared.iter().chain(&taken).all(VecDeque::is_empty);
                        prop_assert_eq!(receiver.has_some(), !is_empty);
                        for priority in Priority::BOTH {
                            let is_empty = shared[priority.index()].is_empty() && taken[priority.index()].is_empty();
                            prop_assert_eq!(receiver.has_some_of(priority), !is_empty);
                        }
                    }
                }
            }
        }
    }
}
