//! A queue under a lock, as it is usually written: the two strategies that the others are compared with.
//!
//! `naive` takes one message at a time and announces each; `edge` swaps the whole queue out and announces only the
//! message that finds it empty. Who announces what is decided here, how is not.
//!
//! Why the edge is enough: the consumer, once awake, takes everything, so what found the queue not empty is taken with
//! what found it empty, and that was announced. The decision is made under the lock in which the message is added.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::Lane;

/// One lane: who sent it, and the message.
type Line<T> = VecDeque<(usize, T)>;

struct Lines<T> {
    lanes: [Line<T>; 2],
    /// By producer: it waits for room.
    starved: Vec<bool>,
    /// Somebody does.
    any_starved: bool,
}

struct Queue<T> {
    lines: Mutex<Lines<T>>,
    /// Messages in it, so that an empty queue is not locked to be found empty.
    count: AtomicUsize,
    capacity: usize,
}

impl<T> Queue<T> {
    /// Valid whatever panicked while it was locked: nothing is half done in between.
    fn lock(&self) -> MutexGuard<'_, Lines<T>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
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
    /// What was swapped out.
    taken: [Line<T>; 2],
    owed: Vec<usize>,
    every: bool,
}

/// The queue of one consumer, with a side for each producer; `slots` for each of them and lane. `every`: take and
/// announce one by one.
pub(super) fn queue<T>(producers: usize, slots: usize, every: bool) -> (Vec<Sender<T>>, Receiver<T>) {
    let capacity = producers * slots.max(1);
    let line = || VecDeque::with_capacity(capacity);
    let lines = Lines { lanes: [line(), line()], starved: vec![false; producers], any_starved: false };
    let queue = Arc::new(Queue { lines: Mutex::new(lines), count: AtomicUsize::new(0), capacity });
    let sender = |from| Sender { queue: Arc::clone(&queue), from, every };
    let senders = (0..producers).map(sender).collect();
    (senders, Receiver { queue, taken: [line(), line()], owed: Vec::new(), every })
}

impl<T> Sender<T> {
    /// Queues a message. `Ok(true)`: it is to be announced.
    pub(super) fn push(&mut self, lane: Lane, message: T) -> Result<bool, T> {
        let mut lines = self.queue.lock();
        if lines.lanes[lane.index()].len() >= self.queue.capacity {
            return Err(message);
        }
        // Of this lane: the consumer may have left the other one standing.
        let was_empty = lines.lanes[lane.index()].is_empty();
        lines.lanes[lane.index()].push_back((self.from, message));
        self.queue.count.store(lines.lanes[0].len() + lines.lanes[1].len(), Ordering::Release);
        Ok(self.every || was_empty)
    }

    /// Asks the consumer to wake this side when there is room. False: there is some already.
    pub(super) fn await_room(&mut self, lane: Lane) -> bool {
        let mut lines = self.queue.lock();
        if lines.lanes[lane.index()].len() < self.queue.capacity {
            return false;
        }
        lines.starved[self.from] = true;
        lines.any_starved = true;
        true
    }
}

impl<T> Receiver<T> {
    fn note_starved(owed: &mut Vec<usize>, lines: &mut Lines<T>) {
        if std::mem::take(&mut lines.any_starved) {
            let starved = lines.starved.iter_mut().enumerate();
            owed.extend(starved.filter_map(|(from, starved)| std::mem::take(starved).then_some(from)));
        }
    }

    /// Takes everything of one lane out of the queue, when nothing is left of what was taken before. The other lane
    /// stays where its producers find it full: a consumer that takes responses only must not make room for requests.
    fn drain(&mut self, lane: Lane) {
        let mut lines = self.queue.lock();
        let lane = lane.index();
        if lines.lanes[lane].is_empty() {
            return;
        }
        std::mem::swap(&mut self.taken[lane], &mut lines.lanes[lane]);
        self.queue.count.store(lines.lanes[0].len() + lines.lanes[1].len(), Ordering::Release);
        Self::note_starved(&mut self.owed, &mut lines);
    }

    fn pop_one(&mut self, lane: Lane) -> Option<(usize, T)> {
        let mut lines = self.queue.lock();
        let message = lines.lanes[lane.index()].pop_front()?;
        self.queue.count.store(lines.lanes[0].len() + lines.lanes[1].len(), Ordering::Release);
        Self::note_starved(&mut self.owed, &mut lines);
        Some(message)
    }

    /// The next message of a lane, and whose it is.
    pub(super) fn pop(&mut self, lane: Lane) -> Option<(usize, T)> {
        let in_queue = self.queue.count.load(Ordering::Acquire) > 0;
        if self.every {
            return if in_queue { self.pop_one(lane) } else { None };
        }
        if self.taken[lane.index()].is_empty() && in_queue {
            self.drain(lane);
        }
        self.taken[lane.index()].pop_front()
    }

    /// Adds the producers that waited for room, which must be woken.
    pub(super) fn settle(&mut self, owed: &mut Vec<usize>) {
        owed.append(&mut self.owed);
    }

    /// Whether a message is there.
    pub(super) fn has_some(&mut self) -> bool {
        !self.taken.iter().all(VecDeque::is_empty) || self.queue.count.load(Ordering::Acquire) > 0
    }

    /// Whether a message of a lane is there.
    pub(super) fn has_some_of(&mut self, lane: Lane) -> bool {
        let lane = lane.index();
        !self.taken[lane].is_empty()
            || self.queue.count.load(Ordering::Acquire) > 0 && !self.queue.lock().lanes[lane].is_empty()
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
            assert_eq!(sender.push(Lane::Request, 1), Ok(true));
            assert_eq!(sender.push(Lane::Request, 2), Ok(every));
            assert_eq!(sender.push(Lane::Request, 3), Err(3));
            assert!(sender.await_room(Lane::Request) && !sender.await_room(Lane::Response));
            assert_eq!(receiver.pop(Lane::Request), Some((0, 1)));
            let mut owed = Vec::new();
            receiver.settle(&mut owed);
            assert_eq!(owed, [0]);
            assert!(!sender.await_room(Lane::Request));
        }
    }

    #[test]
    fn who_takes_responses_only_makes_no_room_for_requests() {
        for every in [true, false] {
            let (mut senders, mut receiver) = queue::<u32>(1, 2, every);
            assert_eq!(senders[0].push(Lane::Request, 1), Ok(true));
            assert_eq!(senders[0].push(Lane::Request, 2), Ok(every));
            assert_eq!(receiver.pop(Lane::Response), None);
            assert_eq!(senders[0].push(Lane::Request, 3), Err(3));
            // A response behind requests that are left standing is news all the same.
            assert_eq!(senders[0].push(Lane::Response, 4), Ok(true));
            assert_eq!(receiver.pop(Lane::Response), Some((0, 4)));
            assert_eq!(receiver.pop(Lane::Request), Some((0, 1)));
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
            let (mut shared, mut taken): ([Line<usize>; 2], [Line<usize>; 2]) = Default::default();
            for (number, (step, from)) in steps.into_iter().enumerate() {
                let lane = if step % 2 == 0 { Lane::Response } else { Lane::Request };
                let place = lane.index();
                match step {
                    0..4 => {
                        let is_empty = shared[place].is_empty();
                        let is_full = shared[place].len() == 2 * SLOTS;
                        let expected = if is_full { Err(number) } else { Ok(every || is_empty) };
                        prop_assert_eq!(senders[from].push(lane, number), expected);
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
                        prop_assert_eq!(receiver.pop(lane), expected);
                    }
                    _ => {
                        let is_empty = shared.iter().chain(&taken).all(VecDeque::is_empty);
                        prop_assert_eq!(receiver.has_some(), !is_empty);
                        for lane in Lane::BOTH {
                            let is_empty = shared[lane.index()].is_empty() && taken[lane.index()].is_empty();
                            prop_assert_eq!(receiver.has_some_of(lane), !is_empty);
                        }
                    }
                }
            }
        }
    }
}
