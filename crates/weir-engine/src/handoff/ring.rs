//! A bounded ring between one producer and one consumer: messages by value, no allocation after the start.
//!
//! The producer writes slots and publishes them together; the consumer takes them and gives the slots back together.
//! Each side keeps a copy of the other's position and reads the real one only when the copy says full or empty. It
//! does not wake: the side that publishes announces it (`crate::wake_flag`), and [`Receiver::return_room`] reports
//! when the producer waits for room.
//!
//! Waiting for room loses no wake: the producer sets `starved`, executes a full fence and checks for room once more;
//! the consumer publishes the returned slots, executes a full fence and reads `starved`. The side whose fence comes
//! second sees what the other one wrote. (A test shows the model checker finding the lost wake without the fences.)
//!
//! Invariants: (1) there is one [`Sender`] and one [`Receiver`] for a ring, and neither can be cloned; (2) the slots
//! from `head` to the published tail hold messages and belong to the receiver, and those between the published and
//! the sender's own tail hold messages and belong to the sender; all others hold none and belong to the sender; (3)
//! `tail` is stored with release after the slots were written, and loaded with acquire before they are read; `head`
//! is stored with release after they were read, and loaded with acquire before they are written again; (4) the number
//! of slots is a power of two and at most 2^31, so positions may wrap around.

use std::{
    cell::UnsafeCell,
    mem::MaybeUninit,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use crossbeam_utils::CachePadded;

use crate::wake_flag::AtomicWord;

/// The state that both sides share.
struct Ring<T, W: AtomicWord> {
    /// Messages taken and returned. Written by the consumer.
    head: CachePadded<W>,
    /// Messages published. Written by the producer.
    tail: CachePadded<W>,
    /// One: the producer waits for room.
    starved: CachePadded<W>,
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
}

// SAFETY: the only parts that are not `Sync` by themselves are the slots. Invariants 1 to 3: each is accessed by one
// side at a time, and the change of sides orders the accesses. The messages move between threads, hence `T: Send`.
unsafe impl<T: Send, W: AtomicWord + Sync> Sync for Ring<T, W> {}

impl<T, W: AtomicWord> Ring<T, W> {
    fn mask(&self) -> u32 {
        self.slots.len() as u32 - 1
    }

    fn slot(&self, position: u32) -> &UnsafeCell<MaybeUninit<T>> {
        &self.slots[(position & self.mask()) as usize]
    }
}

impl<T, W: AtomicWord> Drop for Ring<T, W> {
    fn drop(&mut self) {
        if !std::mem::needs_drop::<T>() {
            return;
        }
        let (mut head, tail) = (self.head.load(Ordering::Acquire), self.tail.load(Ordering::Acquire));
        while head != tail {
            // SAFETY: invariant 2; both sides published their positions when they were dropped, and are gone.
            unsafe { self.slot(head).get().cast::<T>().drop_in_place() };
            head = head.wrapping_add(1);
        }
    }
}

/// The producer's side.
pub(super) struct Sender<T, W: AtomicWord = AtomicU32> {
    ring: Arc<Ring<T, W>>,
    /// The position of the next message.
    tail: u32,
    /// The tail that the consumer sees.
    published: u32,
    /// The last head read from the consumer.
    head_seen: u32,
}

/// The consumer's side.
pub(super) struct Receiver<T, W: AtomicWord = AtomicU32> {
    ring: Arc<Ring<T, W>>,
    /// The position of the next message.
    head: u32,
    /// The head that the producer sees.
    given_back: u32,
    /// The last tail read from the producer.
    tail_seen: u32,
    /// Slots were returned since the last `return_room`.
    unsettled: bool,
}

/// A ring of `slots` places, rounded up to a power of two.
pub(super) fn ring<T, W: AtomicWord>(slots: usize) -> (Sender<T, W>, Receiver<T, W>) {
    let slots = slots.clamp(1, 1 << 20).next_power_of_two();
    let ring = Arc::new(Ring {
        head: CachePadded::new(W::new(0)),
        tail: CachePadded::new(W::new(0)),
        starved: CachePadded::new(W::new(0)),
        slots: (0..slots).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect(),
    });
    let sender = Sender { ring: Arc::clone(&ring), tail: 0, published: 0, head_seen: 0 };
    (sender, Receiver { ring, head: 0, given_back: 0, tail_seen: 0, unsettled: false })
}

impl<T, W: AtomicWord> Sender<T, W> {
    #[inline]
    fn is_full(&self) -> bool {
        self.tail.wrapping_sub(self.head_seen) > self.ring.mask()
    }

    /// Whether there is no room, after reading the consumer's position.
    fn is_still_full(&mut self) -> bool {
        self.head_seen = self.ring.head.load(Ordering::Acquire);
        self.is_full()
    }

    /// Writes a message; the consumer sees it when it is published.
    #[inline]
    pub(super) fn push(&mut self, message: T) -> Result<(), T> {
        if self.is_full() && self.is_still_full() {
            return Err(message);
        }
        // SAFETY: invariants 1 to 3: there is room, so this slot is the sender's and holds no message.
        unsafe { (*self.ring.slot(self.tail).get()).write(message) };
        self.tail = self.tail.wrapping_add(1);
        Ok(())
    }

    /// Messages written and not published.
    #[inline]
    pub(super) fn unpublished(&self) -> u32 {
        self.tail.wrapping_sub(self.published)
    }

    /// Publishes the written messages. False: there were none.
    #[inline]
    pub(super) fn publish(&mut self) -> bool {
        if self.published == self.tail {
            return false;
        }
        self.ring.tail.store(self.tail, Ordering::Release);
        self.published = self.tail;
        true
    }

    /// Asks the consumer to wake this side when there is room. False: there is already some.
    pub(super) fn await_room(&mut self) -> bool {
        self.ring.starved.store(1, Ordering::Relaxed);
        W::full_fence();
        if self.is_still_full() {
            return true;
        }
        // The consumer may have seen the request: its wake is then spurious.
        self.ring.starved.store(0, Ordering::Relaxed);
        false
    }
}

impl<T, W: AtomicWord> Drop for Sender<T, W> {
    fn drop(&mut self) {
        // Unpublished messages have no receiver; they are dropped with the ring.
        if std::mem::needs_drop::<T>() {
            self.publish();
        }
    }
}

impl<T, W: AtomicWord> Receiver<T, W> {
    /// Whether a message is there.
    #[inline]
    pub(super) fn has_some(&mut self) -> bool {
        if self.head == self.tail_seen {
            self.tail_seen = self.ring.tail.load(Ordering::Acquire);
        }
        self.head != self.tail_seen
    }

    /// The next message.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        if !self.has_some() {
            return None;
        }
        // SAFETY: invariants 1 to 3: the slot is published and not taken yet, and is read once because `head` moves on.
        let message = unsafe { (*self.ring.slot(self.head).get()).assume_init_read() };
        self.head = self.head.wrapping_add(1);
        self.unsettled = true;
        if self.head.wrapping_sub(self.given_back) > self.ring.mask() / 4 {
            self.return_slots();
        }
        Some(message)
    }

    fn return_slots(&mut self) {
        if self.given_back != self.head {
            self.ring.head.store(self.head, Ordering::Release);
            self.given_back = self.head;
        }
    }

    /// Returns the slots of taken messages. True: the producer waits for that, and must be woken.
    pub(super) fn return_room(&mut self) -> bool {
        if !std::mem::take(&mut self.unsettled) {
            return false;
        }
        self.return_slots();
        W::full_fence();
        self.ring.starved.load(Ordering::Relaxed) == 1 && self.ring.starved.swap(0, Ordering::AcqRel) == 1
    }
}

impl<T, W: AtomicWord> Drop for Receiver<T, W> {
    fn drop(&mut self) {
        if std::mem::needs_drop::<T>() {
            self.return_slots();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_written_is_seen_when_it_is_published() {
        let (mut sender, mut receiver) = ring::<u32, AtomicU32>(4);
        assert!(!sender.publish());
        assert_eq!(sender.push(1), Ok(()));
        assert_eq!((sender.unpublished(), receiver.pop()), (1, None));
        assert!(sender.publish());
        assert_eq!((sender.unpublished(), receiver.pop(), receiver.pop()), (0, Some(1), None));
    }

    #[test]
    fn the_stated_number_of_slots_is_reached_and_not_passed() {
        for (asked, slots) in [(0, 1), (1, 1), (3, 4), (256, 256)] {
            let (mut sender, mut receiver) = ring::<usize, AtomicU32>(asked);
            for round in 0..3 {
                for number in 0..slots {
                    assert_eq!(sender.push(number), Ok(()), "{asked}, round {round}");
                }
                assert_eq!(sender.push(9), Err(9));
                sender.publish();
                assert!((0..slots).all(|number| receiver.pop() == Some(number)));
                receiver.return_room();
            }
        }
    }

    #[test]
    fn whoever_goes_first_every_message_is_dropped_once() {
        for sender_first in [false, true] {
            let life = Arc::new(());
            let (mut sender, mut receiver) = ring::<Arc<()>, AtomicU32>(8);
            (0..5).for_each(|_| sender.push(Arc::clone(&life)).expect("there is room"));
            sender.publish();
            drop((receiver.pop(), receiver.pop()));
            sender.push(Arc::clone(&life)).expect("there is room");
            if sender_first {
                drop(sender);
                assert!(receiver.pop().is_some());
                drop(receiver);
            } else {
                drop(receiver);
                drop(sender);
            }
            assert_eq!(Arc::strong_count(&life), 1);
        }
    }

    #[test]
    fn positions_may_wrap_around() {
        let (mut sender, mut receiver) = ring::<u32, AtomicU32>(4);
        let near = u32::MAX - 2;
        sender.ring.head.store(near, Ordering::Relaxed);
        sender.ring.tail.store(near, Ordering::Relaxed);
        (sender.tail, sender.published, sender.head_seen) = (near, near, near);
        (receiver.head, receiver.given_back, receiver.tail_seen) = (near, near, near);
        for number in 0..20 {
            assert_eq!(sender.push(number), Ok(()));
            assert!(sender.publish());
            assert_eq!(receiver.pop(), Some(number));
        }
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_queue(slots in 1usize..9, steps in prop::collection::vec(0u8..5, 0..200)) {
            let (mut sender, mut receiver) = ring::<usize, AtomicU32>(slots);
            let slots = slots.next_power_of_two();
            let (mut written, mut visible) = (VecDeque::new(), VecDeque::new());
            let (mut held, mut starved) = (0, false);
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    0 | 1 => {
                        let pushed = sender.push(number).is_ok();
                        prop_assert!(pushed || written.len() + visible.len() + held >= slots);
                        if pushed {
                            written.push_back(number);
                        }
                    }
                    2 => {
                        prop_assert_eq!(sender.publish(), !written.is_empty());
                        visible.append(&mut written);
                    }
                    3 => {
                        prop_assert_eq!(receiver.has_some(), !visible.is_empty());
                        let expected = visible.pop_front();
                        prop_assert_eq!(receiver.pop(), expected);
                        held += usize::from(expected.is_some());
                    }
                    _ => {
                        prop_assert_eq!(receiver.return_room(), starved && held > 0);
                        starved &= held == 0;
                        held = 0;
                        if written.len() + visible.len() == slots && !starved {
                            starved = sender.await_room();
                            prop_assert!(starved);
                        }
                    }
                }
                prop_assert!(written.len() + visible.len() <= slots);
            }
        }
    }

    #[test]
    fn two_threads_pass_half_a_million_messages_in_order() {
        const MESSAGES: u64 = 500_000;
        let (mut sender, mut receiver) = ring::<[u64; 4], AtomicU32>(64);
        let producer = std::thread::spawn(move || {
            for number in 0..MESSAGES {
                let mut message = [number, !number, number, !number];
                while let Err(refused) = sender.push(message) {
                    message = refused;
                    sender.publish();
                    std::thread::yield_now();
                }
                if number % 7 == 0 || number == MESSAGES - 1 {
                    sender.publish();
                }
            }
        });
        for number in 0..MESSAGES {
            let message = loop {
                match receiver.pop() {
                    Some(message) => break message,
                    None => {
                        receiver.return_room();
                        std::thread::yield_now();
                    }
                }
            };
            assert_eq!(message, [number, !number, number, !number]);
        }
        producer.join().expect("the producer");
    }
}
