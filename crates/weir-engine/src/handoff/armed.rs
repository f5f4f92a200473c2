//! A queue from many producers to one consumer whose word both holds the messages and shows that the consumer sleeps.
//! It has the form of folly's `AtomicNotificationQueue`.
//!
//! `head` is `EMPTY`, or `WAITED_FOR`, or names the newest of a chain of nodes. The consumer arms the queue before it
//! sleeps: it replaces `EMPTY` by `WAITED_FOR`, which only succeeds while the queue is empty; the producer that
//! replaces `WAITED_FOR` by its node, and no other, must wake it. Queue and flag are one word, so there are no two
//! words to order and no fence is needed.
//!
//! Nodes are allocated once: each producer has `slots` of them for each priority to this consumer, and gets them back
//! through a similar word (`returned`). A producer without nodes leaves `WAITED_FOR` in it, and the consumer that
//! replaces that by nodes must wake it.
//!
//! Invariants: (1) there is one [`Sender`] for each producer and one [`Receiver`]; (2) a node is in exactly one
//! place: in its sender's `free`, in the chain of `head`, in the receiver's lists, in the receiver's `returning`, or
//! in the chain of `returned`; it holds a message in the second and third and in no other; (3) it moves between
//! threads only with a read-modify-write of `head` or `returned` that releases and one that acquires; (4) only the
//! sender of a node takes from its `returned`, and only the receiver adds to it; the receiver takes all of `head` at
//! once. Single nodes are never removed from a chain that other threads change, so a reused number cannot cause an
//! ABA error.

use std::{
    cell::UnsafeCell,
    collections::VecDeque,
    mem::MaybeUninit,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use crossbeam_utils::CachePadded;

use super::Priority;
use crate::wake_flag::AtomicWord;

/// Nothing is in the chain.
const EMPTY: u32 = 0;
/// The chain is empty and one side waits: the thread that replaces this must wake it. In `head` the consumer waits,
/// in `returned` a producer.
const WAITED_FOR: u32 = 1;
/// Offset that is added to the number of a node.
const FIRST: u32 = 2;

struct Node<T, W> {
    /// The next older node in its chain.
    next: W,
    message: UnsafeCell<MaybeUninit<T>>,
}

/// The state that all sides share.
struct Queue<T, W: AtomicWord> {
    head: CachePadded<W>,
    /// For each producer and priority, the nodes on their way back.
    returned: Box<[CachePadded<W>]>,
    /// In the same order, `slots` for each producer and priority.
    nodes: Box<[Node<T, W>]>,
    slots: u32,
}

// SAFETY: the only parts that are not `Sync` by themselves are the messages in nodes. Invariants 1 to 3: each node is
// accessed by one thread at a time, and its moves between threads order the accesses. Messages move, hence `T: Send`.
unsafe impl<T: Send, W: AtomicWord + Sync> Sync for Queue<T, W> {}

impl<T, W: AtomicWord> Queue<T, W> {
    fn node(&self, number: u32) -> &Node<T, W> {
        &self.nodes[number as usize]
    }

    /// Puts a chain of nodes, from `newest` to `oldest`, in front of the chain in `word`. True: the other side waited
    /// for it.
    fn attach(&self, word: &W, newest: u32, oldest: u32) -> bool {
        let mut present = word.load(Ordering::Relaxed);
        loop {
            let next = if present == WAITED_FOR { EMPTY } else { present };
            self.node(oldest).next.store(next, Ordering::Relaxed);
            match word.compare_exchange(present, newest + FIRST, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return present == WAITED_FOR,
                Err(now) => present = now,
            }
        }
    }

    /// Takes the whole chain out of `word` and appends its nodes to `into`, newest first.
    fn take_all(&self, word: &W, into: &mut Vec<u32>) {
        // Load first: an exchange would needlessly take the cache line from other cores.
        if word.load(Ordering::Relaxed) < FIRST {
            return;
        }
        let mut name = word.swap(EMPTY, Ordering::AcqRel);
        while name >= FIRST {
            into.push(name - FIRST);
            name = self.node(name - FIRST).next.load(Ordering::Relaxed);
        }
    }
}

impl<T, W: AtomicWord> Drop for Queue<T, W> {
    fn drop(&mut self) {
        if !std::mem::needs_drop::<T>() {
            return;
        }
        let mut left = Vec::new();
        self.take_all(&self.head, &mut left);
        for number in left {
            // SAFETY: invariant 2: a node in the chain of `head` holds a message, and it leaves the chain here.
            unsafe { self.node(number).message.get().cast::<T>().drop_in_place() };
        }
    }
}

/// One producer's side.
pub(super) struct Sender<T, W: AtomicWord = AtomicU32> {
    queue: Arc<Queue<T, W>>,
    from: usize,
    free: [Vec<u32>; 2],
}

/// The consumer's side.
pub(super) struct Receiver<T, W: AtomicWord = AtomicU32> {
    queue: Arc<Queue<T, W>>,
    /// Nodes taken out of the queue, oldest first.
    lists: [VecDeque<u32>; 2],
    /// Nodes to return, by producer and priority: the newest, the oldest, how many.
    returning: Box<[Option<(u32, u32, u32)>]>,
    /// Producers that waited for nodes and now have some.
    room_waiters: Vec<usize>,
    batch: Vec<u32>,
}

/// The queue of one consumer, with a side for each producer.
pub(super) fn queue<T, W: AtomicWord>(producers: usize, slots: usize) -> (Vec<Sender<T, W>>, Receiver<T, W>) {
    let slots = slots.clamp(1, 1 << 20) as u32;
    let (pools, word) = (producers * 2, || CachePadded::new(W::new(EMPTY)));
    let count = pools as u32 * slots;
    let node = |_| Node { next: W::new(EMPTY), message: UnsafeCell::new(MaybeUninit::uninit()) };
    let queue = Arc::new(Queue {
        head: word(),
        returned: (0..pools).map(|_| word()).collect(),
        nodes: (0..count).map(node).collect(),
        slots,
    });
    let nodes_of = |pool: usize| (pool as u32 * slots..(pool as u32 + 1) * slots).rev().collect();
    let sender = |from: usize| Sender {
        queue: Arc::clone(&queue),
        from,
        free: [nodes_of(from * 2), nodes_of(from * 2 + 1)],
    };
    let senders = (0..producers).map(sender).collect();
    let lists = [VecDeque::with_capacity(count as usize), VecDeque::with_capacity(count as usize)];
    let receiver = Receiver {
        queue,
        lists,
        returning: vec![None; pools].into(),
        room_waiters: Vec::new(),
        batch: Vec::with_capacity(count as usize),
    };
    (senders, receiver)
}

impl<T, W: AtomicWord> Sender<T, W> {
    /// Queues a message. `Ok(true)`: the consumer sleeps, and this side must wake it.
    pub(super) fn push(&mut self, priority: Priority, message: T) -> Result<bool, T> {
        let node = match self.free[priority.index()].pop() {
            Some(node) => node,
            None => {
                self.reclaim(priority);
                match self.free[priority.index()].pop() {
                    Some(node) => node,
                    None => return Err(message),
                }
            }
        };
        // SAFETY: invariant 2: a node out of `free` holds no message and is nobody else's.
        unsafe { (*self.queue.node(node).message.get()).write(message) };
        Ok(self.queue.attach(&self.queue.head, node, node))
    }

    fn reclaim(&mut self, priority: Priority) {
        let word = &self.queue.returned[self.from * 2 + priority.index()];
        self.queue.take_all(word, &mut self.free[priority.index()]);
    }

    /// Asks the consumer to wake this side when there are nodes. False: there are already some.
    pub(super) fn await_room(&mut self, priority: Priority) -> bool {
        let word = &self.queue.returned[self.from * 2 + priority.index()];
        let relaxed = Ordering::Relaxed;
        match word.compare_exchange(EMPTY, WAITED_FOR, Ordering::AcqRel, relaxed) {
            Ok(_) | Err(WAITED_FOR) => true,
            Err(_) => false,
        }
    }
}

impl<T, W: AtomicWord> Receiver<T, W> {
    /// Takes all nodes out of the queue.
    pub(super) fn drain(&mut self) {
        let mut batch = std::mem::take(&mut self.batch);
        self.queue.take_all(&self.queue.head, &mut batch);
        for node in batch.drain(..).rev() {
            self.lists[(node / self.queue.slots % 2) as usize].push_back(node);
        }
        self.batch = batch;
    }

    /// The next message of a priority, and its producer.
    pub(super) fn pop(&mut self, priority: Priority) -> Option<(usize, T)> {
        if self.lists[priority.index()].is_empty() {
            self.drain();
        }
        let node = self.lists[priority.index()].pop_front()?;
        // SAFETY: invariant 2: a node of the lists holds a message; it leaves them here, so this is read once.
        let message = unsafe { (*self.queue.node(node).message.get()).assume_init_read() };
        let pool = (node / self.queue.slots) as usize;
        let (newest, oldest, count) = match self.returning[pool] {
            Some((newest, oldest, count)) => {
                self.queue.node(node).next.store(newest + FIRST, Ordering::Relaxed);
                (node, oldest, count + 1)
            }
            None => (node, node, 1),
        };
        self.returning[pool] = Some((newest, oldest, count));
        if count > self.queue.slots / 4 {
            self.return_nodes(pool);
        }
        Some((pool / 2, message))
    }

    fn return_nodes(&mut self, pool: usize) {
        if let Some((newest, oldest, _)) = self.returning[pool].take()
            && self.queue.attach(&self.queue.returned[pool], newest, oldest)
        {
            self.room_waiters.push(pool / 2);
        }
    }

    /// Returns the nodes of taken messages; adds the producers that waited for them, which must be woken.
    pub(super) fn return_room(&mut self, room_waiters: &mut Vec<usize>) {
        for pool in 0..self.returning.len() {
            self.return_nodes(pool);
        }
        room_waiters.append(&mut self.room_waiters);
    }

    /// Whether a message is there.
    pub(super) fn has_some(&mut self) -> bool {
        if self.lists.iter().all(VecDeque::is_empty) {
            self.drain();
        }
        !self.lists.iter().all(VecDeque::is_empty)
    }

    /// Whether a message of a priority is there. Messages of the other priority are set aside.
    pub(super) fn has_some_of(&mut self, priority: Priority) -> bool {
        if self.lists[priority.index()].is_empty() {
            self.drain();
        }
        !self.lists[priority.index()].is_empty()
    }

    /// About to sleep. False: something has arrived.
    pub(super) fn arm(&mut self) -> bool {
        let word = &self.queue.head;
        matches!(
            word.compare_exchange(EMPTY, WAITED_FOR, Ordering::AcqRel, Ordering::Relaxed),
            Ok(_) | Err(WAITED_FOR)
        )
    }

    /// No longer asleep: a push need not wake it now. True: no message was pushed while it slept. (If one was, there
    /// is nothing to reset.)
    pub(super) fn disarm(&mut self) -> bool {
        let head = &self.queue.head;
        head.compare_exchange(WAITED_FOR, EMPTY, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

impl<T, W: AtomicWord> Drop for Receiver<T, W> {
    fn drop(&mut self) {
        for node in self.lists.iter_mut().flat_map(|list| list.drain(..)) {
            // SAFETY: invariant 2: a node of the lists holds a message; it leaves them here.
            unsafe { self.queue.node(node).message.get().cast::<T>().drop_in_place() };
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_the_push_that_finds_the_consumer_asleep_wakes_it() {
        let (mut senders, mut receiver) = queue::<u32, AtomicU32>(2, 4);
        assert_eq!(senders[0].push(Priority::Request, 1), Ok(false), "nobody sleeps");
        assert!(!receiver.arm(), "something is there");
        assert_eq!(receiver.pop(Priority::Request), Some((0, 1)));
        assert!(receiver.arm() && receiver.arm());
        assert_eq!(senders[1].push(Priority::Response, 2), Ok(true));
        assert_eq!(senders[0].push(Priority::Request, 3), Ok(false), "one wake for a sleep");
        assert!(!receiver.disarm(), "somebody pushed meanwhile");
        assert_eq!(
            (receiver.pop(Priority::Response), receiver.pop(Priority::Request)),
            (Some((1, 2)), Some((0, 3)))
        );
        assert!(receiver.arm() && receiver.disarm(), "nobody pushed meanwhile");
        assert_eq!(senders[0].push(Priority::Request, 4), Ok(false));
    }

    #[test]
    fn a_producer_without_nodes_is_woken_when_some_come_back() {
        let (mut senders, mut receiver) = queue::<u32, AtomicU32>(1, 2);
        let sender = &mut senders[0];
        assert_eq!(
            [1, 2, 3].map(|number| sender.push(Priority::Request, number)),
            [Ok(false), Ok(false), Err(3)]
        );
        assert_eq!(sender.push(Priority::Response, 4), Ok(false), "the other priority has its own");
        assert!(sender.await_room(Priority::Request));
        assert_eq!(receiver.pop(Priority::Request), Some((0, 1)));
        let mut room_waiters = Vec::new();
        receiver.return_room(&mut room_waiters);
        assert_eq!(room_waiters, [0]);
        assert!(!sender.await_room(Priority::Request));
        assert_eq!(sender.push(Priority::Request, 3), Ok(false));
    }

    #[test]
    fn wherever_it_is_every_message_is_dropped_once() {
        let life = Arc::new(());
        let (mut senders, mut receiver) = queue::<Arc<()>, AtomicU32>(2, 8);
        for sender in &mut senders {
            for priority in [Priority::Response, Priority::Request, Priority::Request] {
                assert!(sender.push(priority, Arc::clone(&life)).is_ok());
            }
        }
        drop(receiver.pop(Priority::Request));
        assert!(senders[0].push(Priority::Request, Arc::clone(&life)).is_ok());
        drop(receiver);
        assert!(senders[1].push(Priority::Response, Arc::clone(&life)).is_ok());
        drop(senders);
        assert_eq!(Arc::strong_count(&life), 1);
    }

    proptest! {
        #[test]
        fn it_agrees_with_queues(slots in 1usize..5, steps in prop::collection::vec((0u8..6, 0usize..2), 0..200)) {
            let (mut senders, mut receiver) = queue::<usize, AtomicU32>(2, slots);
            let mut models: [VecDeque<(usize, usize)>; 2] = Default::default();
            let (mut outstanding, mut asleep, mut room_waiters) = ([[0; 2]; 2], false, Vec::new());
            for (number, (step, choice)) in steps.into_iter().enumerate() {
                let priority = if step % 2 == 0 { Priority::Response } else { Priority::Request };
                match step {
                    0..4 => {
                        let from = usize::from(step / 2);
                        let pushed = senders[from].push(priority, number);
                        // Nodes return in batches: a push may be refused before the last node is used.
                        prop_assert!(pushed.is_ok() || outstanding[from][priority.index()] >= slots);
                        if let Ok(wakes) = pushed {
                            prop_assert_eq!(wakes, std::mem::take(&mut asleep));
                            models[priority.index()].push_back((from, number));
                            outstanding[from][priority.index()] += 1;
                        }
                    }
                    4 => {
                        let priority = if choice == 0 { Priority::Response } else { Priority::Request };
                        prop_assert_eq!(receiver.pop(priority), models[priority.index()].pop_front());
                    }
                    _ if choice == 0 => {
                        receiver.return_room(&mut room_waiters);
                        outstanding = Default::default();
                        for (priority, model) in models.iter().enumerate() {
                            model.iter().for_each(|(from, _)| outstanding[*from][priority] += 1);
                        }
                    }
                    _ => {
                        let is_empty = models.iter().all(VecDeque::is_empty);
                        prop_assert_eq!(receiver.has_some(), !is_empty);
                        for priority in Priority::BOTH {
                            prop_assert_eq!(receiver.has_some_of(priority), !models[priority.index()].is_empty());
                        }
                        receiver.drain();
                        prop_assert!(receiver.arm(), "everything was taken out");
                        asleep = true;
                    }
                }
            }
        }
    }
}
