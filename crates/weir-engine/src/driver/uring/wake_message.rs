//! Messages from ring to ring, by which one runtime wakes another without an eventfd.
//!
//! The message carries no content: the work that it announces is in shared memory. It is submitted with this ring's
//! next submissions, and makes no completion here if it was delivered. If it was not (the other ring is full beyond
//! its overflow list, or going away, or this runtime ends before it submits again) the eventfd is written instead, so
//! a wake is never lost. An overflow of the other ring's completion queue needs no action here: the kernel keeps the
//! message and reports the overflow, and the ring's owner fetches it.

use std::{
    os::fd::{AsRawFd, OwnedFd},
    sync::Arc,
};

use io_uring::types::Fd;

use super::{Kind, PlainEntry, Uring};
use crate::{doorbell::Doorbell, slab::SlotId};

/// A message that the kernel may not have taken yet.
pub(super) struct Unsent {
    /// The index of its doorbell in `Uring::doorbells`.
    place: usize,
    /// The other ring's descriptor, which must be open when the kernel takes the message.
    _ring: Arc<OwnedFd>,
}

impl Uring {
    /// Submits a message that wakes the doorbell's runtime.
    pub(super) fn submit_message(&mut self, doorbell: &Arc<Doorbell>) {
        let Some(ring) = doorbell.messages() else { return doorbell.ring() };
        let known = self.doorbells.iter().position(|known| Arc::ptr_eq(known, doorbell));
        let place = known.unwrap_or_else(|| {
            // Kept as long as the driver lives: a message may come back at any time.
            self.doorbells.push(Arc::clone(doorbell));
            self.doorbells.len() - 1
        });
        let token = |kind: Kind, index: usize| kind.token(SlotId { index: index as u32, generation: 0 });
        let message = PlainEntry::message(Fd(ring.as_raw_fd()), token(Kind::Woken, 0));
        let message = message.token(token(Kind::Message, place));
        let silent = self.ring.granted.skip_success;
        self.push(if silent { message.silent_on_success() } else { message });
        self.unsent.push(Unsent { place, _ring: ring });
    }

    /// How many messages the kernel has consumed, with their completions ready to be reaped; call it right after
    /// entering the ring.
    pub(super) fn messages_submitted(&mut self) -> usize {
        if self.unsent.is_empty() || !self.ring.is_caught_up() { 0 } else { self.unsent.len() }
    }

    /// Wakes the receivers of messages that the kernel may not have taken. The messages stay queued: queued entries
    /// name descriptors.
    pub(super) fn ring_for_unsent(&self) {
        self.unsent.iter().for_each(|message| self.doorbells[message.place].ring());
    }

    pub(super) fn on_message_sent(&mut self, id: SlotId, result: i32) {
        if result < 0
            && let Some(doorbell) = self.doorbells.get(id.index as usize)
        {
            doorbell.ring();
        }
    }
}
