//! From a file to a socket: `sendfile(2)`, and reading where a file system cannot do that.
//!
//! The pages of the page cache become the packet's own; nothing is copied. How much leaves in one call is the
//! caller's choice, because a peer that reads quickly would never let a call on a long file end.
//!
//! `sendfile` has no flag against SIGPIPE, which a Rust program ignores from its start.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::{Errno, ReadWriteFlags};

use super::read;
use crate::outbound::{FileRange, Front, Outbound};

/// What a connection fails with when a file ends before the length that was asked for: what is left of a promise to
/// the peer cannot be kept, and nothing else may be sent instead. No call on a socket fails with this number.
pub(crate) const FILE_ENDED: Errno = Errno::NODATA;

/// Bytes read at a time where `sendfile` is not possible.
const PIECE_BYTES_MAX: usize = 64 << 10;

/// One `sendfile` of at most `bytes_max` bytes; it waits for room if the socket is a blocking one.
pub(crate) fn send_part(
    socket: BorrowedFd<'_>,
    range: &FileRange<'_>,
    bytes_max: usize,
) -> Result<usize, Errno> {
    let mut offset = range.offset;
    rustix::fs::sendfile(socket, range.file, Some(&mut offset), range.length.min(bytes_max))
}

/// The same without waiting on a blocking socket: it is a non-blocking one for the length of the call, because
/// `sendfile` has no flag for that. Nothing else may use the socket meanwhile.
pub(crate) fn send_part_without_waiting(
    socket: BorrowedFd<'_>,
    range: &FileRange<'_>,
    bytes_max: usize,
) -> Result<usize, Errno> {
    rustix::io::ioctl_fionbio(socket.as_fd(), true)?;
    let outcome = send_part(socket, range, bytes_max);
    rustix::io::ioctl_fionbio(socket.as_fd(), false)?;
    outcome
}

/// Sends from the file at the front of a queue by `send`, and says how much has left. Zero: the next bytes of the file
/// are at the front of the queue now, to be sent like any others.
pub(crate) fn pass_front(
    queue: &mut Outbound,
    send: impl FnOnce(&FileRange<'_>) -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    let Some(Front::File(range)) = queue.front() else { return Ok(0) };
    match send(&range) {
        Ok(0) => Err(FILE_ENDED),
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => read_front(queue).map(|()| 0),
        outcome => outcome,
    }
}

/// Reads the next bytes of the file at the front of a queue and puts them in its place.
pub(crate) fn read_front(queue: &mut Outbound) -> Result<(), Errno> {
    let Some(Front::File(range)) = queue.front() else { return Ok(()) };
    let mut piece = vec![0; range.length.min(PIECE_BYTES_MAX)];
    let count = read(range.file, range.offset, &mut piece, ReadWriteFlags::empty())?;
    if count == 0 {
        return Err(FILE_ENDED);
    }
    piece.truncate(count);
    queue.place_front(piece.into_boxed_slice());
    Ok(())
}
