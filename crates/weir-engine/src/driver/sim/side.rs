//! One end of a simulated connection: its unread bytes, and how much of its own output is still on the way.

use std::{collections::VecDeque, io::IoSlice};

use rustix::io::Errno;

use super::network::{Owner, State};
use crate::{address::Address, clock::Instant};

/// One end.
#[derive(Debug, Default)]
pub(super) struct Side {
    /// The descriptor that holds it; none while the connection waits to be accepted.
    pub(super) owner: Option<Owner>,
    pub(super) local: Option<Address>,
    /// The target of a client's end, before the connection is accepted.
    pub(super) target: Option<Address>,
    /// The handle is gone, or does not exist yet.
    pub(super) closed: bool,
    /// The connection is established, or was.
    pub(super) stands: bool,
    /// The reason if the connection was refused or reset, by the peer or by a fault.
    pub(super) error: Option<Errno>,
    /// A call has reported the error; no other does.
    is_error_reported: bool,
    /// The peer's end of stream has arrived.
    pub(super) ended: bool,
    /// Our end of stream is on its way.
    pub(super) fin_sent: bool,
    /// When the latest item on its way to this end arrives, and its tie: nothing overtakes it.
    pub(super) last_arrival: (Instant, u64),
    /// Sent by the peer and not read yet: first the bytes that have arrived, then those on their way.
    bytes: VecDeque<u8>,
    arrived: usize,
    /// Bytes sent whose room has not been released.
    charged: usize,
    /// Room on its way back.
    returning: usize,
    room_planned: bool,
    /// A send found no room, and the sender wants a report when there is some.
    wants_room: bool,
}

impl Side {
    /// An established end that no descriptor holds yet.
    pub(super) fn new(local: Option<Address>) -> Self {
        Self { stands: true, local, ..Self::default() }
    }

    /// A client's end, before the answer.
    pub(super) fn starting(local: Option<Address>, target: Address) -> Self {
        Self { local, target: Some(target), ..Self::default() }
    }

    /// An end without a handle.
    pub(super) fn absent() -> Self {
        Self { closed: true, ..Self::default() }
    }

    /// Bytes that can be read now.
    pub(super) fn arrived(&self) -> usize {
        self.arrived
    }

    /// The calls that are possible without waiting. As on Linux, there is room only when a considerable part is free.
    pub(super) fn state(&self, capacity: usize) -> State {
        let broken = self.error.is_some();
        State {
            readable: self.arrived > 0 || self.ended || broken,
            writable: broken || self.stands && self.charged <= capacity / 2,
            ended: self.ended || broken,
            hung_up: broken || self.ended && self.fin_sent,
        }
    }

    /// The error, for the first caller.
    pub(super) fn take_error(&mut self) -> Option<Errno> {
        if std::mem::replace(&mut self.is_error_reported, self.error.is_some()) { None } else { self.error }
    }

    /// Whether the handle is gone, or every byte and the end of the stream have arrived and been read.
    pub(super) fn has_read_all(&self) -> bool {
        self.closed || self.ended && self.bytes.is_empty()
    }

    /// Bytes that the sender may still send.
    pub(super) fn room(&self, capacity: usize) -> usize {
        capacity.saturating_sub(self.charged)
    }

    /// Records `count` bytes sent from here.
    pub(super) fn charge(&mut self, count: usize) {
        self.charged += count;
    }

    /// The sender got less room than it asked for.
    pub(super) fn want_room(&mut self) {
        self.wants_room = true;
    }

    /// Puts the first `count` bytes of `slices` on their way to this end.
    pub(super) fn put(&mut self, slices: &[IoSlice<'_>], mut count: usize) {
        for slice in slices {
            let part = count.min(slice.len());
            self.bytes.extend(&slice[..part]);
            count -= part;
        }
    }

    /// `count` more bytes have arrived.
    pub(super) fn arrive(&mut self, count: usize) {
        self.arrived = (self.arrived + count).min(self.bytes.len());
    }

    /// Moves bytes that have arrived into `into`; at most `count`.
    pub(super) fn take(&mut self, into: &mut [u8], count: usize) -> usize {
        let count = count.min(self.arrived).min(into.len());
        let (front, back) = self.bytes.as_slices();
        let first = count.min(front.len());
        into[..first].copy_from_slice(&front[..first]);
        into[first..count].copy_from_slice(&back[..count - first]);
        self.bytes.drain(..count);
        self.arrived -= count;
        if self.bytes.is_empty() && self.bytes.capacity() > 4096 {
            // Ten thousand idle connections must not keep the memory of their busiest moment.
            self.bytes = VecDeque::new();
        }
        count
    }

    /// Room for `count` bytes starts its way back to this sender; true when an event must be planned for it.
    pub(super) fn release(&mut self, count: usize) -> bool {
        self.returning += count;
        self.plan_room()
    }

    /// The sender's kernel checks again soon; true when an event must be planned for it.
    pub(super) fn plan_room(&mut self) -> bool {
        !std::mem::replace(&mut self.room_planned, true)
    }

    /// Room has come back; true when the sender is to be informed, which needs a considerable part free.
    pub(super) fn take_back(&mut self, capacity: usize) -> bool {
        self.room_planned = false;
        self.charged = self.charged.saturating_sub(std::mem::take(&mut self.returning));
        self.state(capacity).writable && std::mem::take(&mut self.wants_room)
    }

    /// The handle is gone; unread bytes are discarded.
    pub(super) fn close(&mut self) {
        self.closed = true;
        self.owner = None;
        self.bytes = VecDeque::new();
        self.arrived = 0;
    }

    /// The connection is broken: bytes that have arrived can still be read, and no more will come.
    pub(super) fn fail(&mut self, error: Errno) {
        self.error.get_or_insert(error);
        self.bytes.truncate(self.arrived);
    }
}
