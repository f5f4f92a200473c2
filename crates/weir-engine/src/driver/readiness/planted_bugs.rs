//! Faults planted in readiness, for the test that the simulator's programs find them. They exist in tests only.

use std::cell::Cell;

use crate::slab::SlotId;

/// A mistake that this code could contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plant {
    /// What a partial write left is continued one byte too early.
    RestFromWrongPlace,
    /// A write that waits for room is never watched for it.
    RoomNotWatched,
    /// Write interest stays when nothing waits for room any more.
    RoomStaysWatched,
    /// The first short read after `EAGAIN` counts as the end of the stream.
    ShortReadIsEnd,
    /// A receive that has had its turn for a buffer stands in the queue for ever.
    TurnIsLost,
}

thread_local! {
    static PLANTED: Cell<Option<Plant>> = const { Cell::new(None) };
    /// The socket that said `EAGAIN` last.
    static EMPTY: Cell<Option<SlotId>> = const { Cell::new(None) };
}

/// Plants a fault in this thread's drivers, or none.
pub(crate) fn plant(fault: Option<Plant>) {
    PLANTED.set(fault);
}

pub(super) fn is_planted(fault: Plant) -> bool {
    PLANTED.get() == Some(fault)
}

/// A socket has said `EAGAIN`.
pub(super) fn note_empty(id: SlotId) {
    EMPTY.set(Some(id));
}

/// Whether the planted mistake takes this short read for the end.
pub(super) fn mistakes_for_end(id: SlotId) -> bool {
    is_planted(Plant::ShortReadIsEnd) && EMPTY.get() == Some(id) && EMPTY.take().is_some()
}
