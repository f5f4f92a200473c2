//! The state of a socket's receives, or of a listener's accepts: at most one is in flight.

/// The receive of a socket. Drivers with operations in flight use `Armed`, `Polling` and `Stopping`; drivers with
/// direct calls use `Empty` and `Granted`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receiving {
    /// Nothing is in flight, and a receive may be started.
    Idle,
    /// The last call found nothing more: the next one waits for the kernel's report.
    Empty,
    /// In flight; with the size of its buffers.
    Armed(u8),
    /// In flight: a wait for data, before a buffer is taken.
    Polling,
    /// In flight, and a cancellation is on its way.
    Stopping,
    /// In line for a buffer.
    Starved,
    /// Its turn in that line has come: it may take a buffer although others wait.
    Granted,
}

/// What follows the end of a receive, or an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::driver) enum AfterReceive {
    Nothing,
    /// Start another one, if a task waits or there is room.
    Receive,
    /// Nothing is in flight any more, and the socket may move.
    Move,
    /// The next step of closing.
    Close,
}
