//! Operations that lacked a resource, and when they are tried again: accepts without a descriptor, and sends for which
//! the kernel had no memory.
//!
//! It knows times and names, and no socket. The driver says what is missing, and tries again what is due.

use super::error::{ACCEPT_RETRY, SEND_RETRY};
use crate::{clock::Instant, slab::SlotId};

/// The operations of one driver that wait for a resource.
#[derive(Debug, Default)]
pub(super) struct Retries {
    /// Listeners that wait for descriptors, each once.
    listeners: Vec<SlotId>,
    accept_at: Option<Instant>,
    /// Streams whose send waits for memory, each once; they count as dirty until the next try.
    streams: Vec<SlotId>,
    send_at: Option<Instant>,
}

impl Retries {
    /// Descriptors or memory are short: this listener accepts when some are free, or after a pause.
    pub(super) fn pause_accepts(&mut self, listener: SlotId, now: Instant) {
        if !self.is_paused(listener) {
            self.listeners.push(listener);
        }
        self.accept_at.get_or_insert(now + ACCEPT_RETRY);
    }

    pub(super) fn is_paused(&self, listener: SlotId) -> bool {
        self.listeners.contains(&listener)
    }

    /// The listeners that may accept again, because a descriptor is free or their pause is over.
    pub(super) fn take_listeners(&mut self) -> Vec<SlotId> {
        self.accept_at = None;
        std::mem::take(&mut self.listeners)
    }

    pub(super) fn are_accepts_due(&self, now: Instant) -> bool {
        self.accept_at.is_some_and(|at| at <= now)
    }

    /// The kernel has no memory for a send: its stream waits, with the bytes that are added to its queue.
    pub(super) fn pause_send(&mut self, stream: SlotId, now: Instant) {
        self.send_at.get_or_insert(now + SEND_RETRY);
        self.streams.push(stream);
    }

    /// Moves the streams whose pause is over to the sockets to flush.
    pub(super) fn take_due_sends(&mut self, now: Instant, dirty: &mut Vec<SlotId>) {
        if self.send_at.take_if(|at| *at <= now).is_some() {
            dirty.append(&mut self.streams);
        }
    }

    /// The next moment when something is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.accept_at.into_iter().chain(self.send_at).min()
    }

    /// The streams that wait for memory, and whether they will be tried again.
    #[cfg(test)]
    pub(super) fn streams(&self) -> (&[SlotId], bool) {
        (&self.streams, self.send_at.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(index: u32) -> SlotId {
        SlotId { index, generation: 0 }
    }

    fn after_ms(count: u64) -> Instant {
        Instant::from_nanos(count * 1_000_000)
    }

    #[test]
    fn a_pause_does_not_grow_and_ends_for_all_at_once() {
        let mut retries = Retries::default();
        retries.pause_accepts(id(1), after_ms(0));
        retries.pause_accepts(id(1), after_ms(50));
        retries.pause_accepts(id(2), after_ms(90));
        assert!(!retries.are_accepts_due(after_ms(99)) && retries.are_accepts_due(after_ms(100)));
        assert_eq!(retries.take_listeners(), [id(1), id(2)], "each once");
        assert!(retries.deadline().is_none() && !retries.is_paused(id(1)));
    }

    #[test]
    fn sends_and_accepts_are_tried_again_each_at_their_time() {
        let (mut retries, mut dirty) = (Retries::default(), Vec::new());
        retries.pause_accepts(id(1), after_ms(0));
        retries.pause_send(id(2), after_ms(0));
        retries.pause_send(id(3), after_ms(9));
        assert_eq!(retries.deadline(), Some(after_ms(10)));
        retries.take_due_sends(after_ms(9), &mut dirty);
        assert!(dirty.is_empty());
        retries.take_due_sends(after_ms(10), &mut dirty);
        assert_eq!((dirty, retries.deadline()), (vec![id(2), id(3)], Some(after_ms(100))));
        assert!(!retries.are_accepts_due(after_ms(10)));
    }
}
