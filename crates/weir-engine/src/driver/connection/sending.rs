//! The output's operation in flight: at most one, so bytes leave in order.

use crate::slab::SlotId;

/// The send of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sending {
    /// Nothing is in flight, and the socket had room for the last send.
    Idle,
    /// Nothing is in flight. The last try took less than it was offered: the next send waits.
    Stalled,
    /// A send that does not wait for room is in flight. With a number, if its success makes no completion.
    Tried { bytes: u32, number: Option<u32> },
    /// A send that waits for room is in flight.
    Waiting { bytes: u32 },
    /// A send that reads its bytes in place is in flight; its slot is one of the zero-copy sends.
    Lent { bytes: u32, slot: SlotId },
    /// The socket is full: what is queued waits for room.
    AwaitsRoom,
}

impl Sending {
    /// Bytes at the front of the queue that an operation in flight may read.
    pub(crate) fn borrowed(self) -> usize {
        match self {
            Sending::Tried { bytes, .. } | Sending::Waiting { bytes } => bytes as usize,
            // A lent chunk is not in the queue.
            Sending::Idle | Sending::Stalled | Sending::Lent { .. } | Sending::AwaitsRoom => 0,
        }
    }

    /// The send in flight has taken this many bytes, or none because it failed. Returns how many it was offered.
    pub(super) fn end(&mut self, taken: u32) -> u32 {
        let (offered, was_tried) = match *self {
            Sending::Tried { bytes, .. } => (bytes, true),
            Sending::Waiting { bytes } | Sending::Lent { bytes, .. } => (bytes, false),
            Sending::Idle | Sending::Stalled | Sending::AwaitsRoom => (0, false),
        };
        // A peer that takes less than it is offered gets a waiting send, until it has caught up.
        *self = if was_tried && taken < offered { Sending::Stalled } else { Sending::Idle };
        offered
    }
}
