//! Discarding the input of a socket whose handle is gone, where receives are direct calls.

use rustix::io::Errno;

/// What discarding input has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::driver) enum Discarded {
    /// The peer has ended its direction, or is gone.
    Over,
    /// No input was there.
    Silence,
    /// There was input, and all of it is discarded.
    Emptied,
    /// More may be there: a peer that keeps sending must not block others.
    ShareSpent,
}

/// Receives until nothing is left, or at most about `share_bytes`. `receive` does not wait.
pub(in crate::driver) fn discard_input(
    share_bytes: usize,
    mut receive: impl FnMut(&mut [u8]) -> Result<usize, Errno>,
) -> Discarded {
    let mut scratch = [0u8; 4096];
    let mut left = share_bytes;
    loop {
        match receive(&mut scratch) {
            Ok(length) if 0 < length && length < left => left -= length,
            Ok(0) => return Discarded::Over,
            Ok(_) => return Discarded::ShareSpent,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if left == share_bytes => return Discarded::Silence,
            Err(Errno::AGAIN) => return Discarded::Emptied,
            Err(_) => return Discarded::Over,
        }
    }
}
