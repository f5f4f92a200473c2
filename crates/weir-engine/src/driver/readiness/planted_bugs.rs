//! Bugs planted in readiness, for the test that the simulator's programs find them. They exist in tests only.

use std::cell::Cell;

use crate::slab::SlotId;

/// A mistake that this code could contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plant {
    /// The rest of a partial write is continued one byte too early.
    RestFromWrongPlace,
    /// A write that waits for room is not watched for it.
    RoomNotWatched,
    /// Write interest stays after the wait for room has ended.
    RoomStaysWatched,
    /// The first short read after `EAGAIN` counts as the end of the stream.
    ShortReadIsEnd,
    /// A receive whose turn for a buffer has passed stays in the queue forever.
    TurnIsLost,
}

thread_local! {
    static PLANTED: Cell<Option<Plant>> = const { Cell::new(None) };
    /// The socket that returned `EAGAIN` last.
    static EMPTY: Cell<Option<SlotId>> = const { Cell::new(None) };
}

/// Plants a bug in this thread's drivers, or removes it.
pub(crate) fn plant(fault: Option<Plant>) {
    PLANTED.set(fault);
}

pub(super) fn is_planted(fault: Plant) -> bool {
    PLANTED.get() == Some(fault)
}

/// Records that a socket returned `EAGAIN`.
pub(super) fn note_empty(id: SlotId) {
    EMPTY.set(Some(id));
}

/// Whether the planted bug takes this short read for the end.
pub(super) fn mistakes_for_end(id: SlotId) -> bool {
    is_planted(Plant::ShortReadIsEnd) && EMPTY.get() == Some(id) && EMPTY.take().is_some()
}
