//! From a file to a socket: `sendfile(2)`, or reading where a file system does not support it.
//!
//! The pages of the page cache become part of the packet; nothing is copied. The caller limits the bytes of one call,
//! because with a peer that reads quickly a call on a long file would not end.
//!
//! `sendfile` has no flag against SIGPIPE, which a Rust program ignores from its start.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::{
    event::PollFlags,
    io::{Errno, ReadWriteFlags},
};

use super::read;
use crate::{
    counters::Counters,
    driver::{error::FILE_ENDED, socket::has_event},
    send_queue::{FileRange, Front, SendQueue},
};

/// Bytes per read where `sendfile` is not possible.
const PIECE_BYTES_MAX: usize = 64 << 10;

/// One `sendfile` of at most `bytes_max` bytes; on a blocking socket it waits for room. Only this call is timed, not
/// the work around it.
pub(crate) fn send_part(
    socket: BorrowedFd<'_>,
    range: &FileRange<'_>,
    bytes_max: usize,
    counters: &Counters,
) -> Result<usize, Errno> {
    let mut offset = range.offset;
    let length = range.length.min(bytes_max);
    counters.clock.call(|| rustix::fs::sendfile(socket, range.file, Some(&mut offset), length))
}

/// As [`send_part`], without waiting on a blocking socket: the socket is made non-blocking for the length of the
/// call, because `sendfile` has no flag for that. No other call may use the socket meanwhile.
pub(crate) fn send_part_without_waiting(
    socket: BorrowedFd<'_>,
    range: &FileRange<'_>,
    bytes_max: usize,
    counters: &Counters,
) -> Result<usize, Errno> {
    counters.setup_calls.add(2);
    rustix::io::ioctl_fionbio(socket.as_fd(), true)?;
    let outcome = send_part(socket, range, bytes_max, counters);
    rustix::io::ioctl_fionbio(socket.as_fd(), false)?;
    outcome
}

/// Sends from the file at the front of a queue by `send`, and returns the bytes sent. Zero: the next bytes of the
/// file are now in the queue, to be sent like any others.
pub(crate) fn pass_front(
    queue: &mut SendQueue,
    counters: &Counters,
    send: impl FnOnce(&FileRange<'_>) -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    let Some(Front::File(range)) = queue.front() else { return Ok(0) };
    match send(&range) {
        Ok(0) => Err(FILE_ENDED),
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => read_front(queue, counters).map(|()| 0),
        outcome => outcome,
    }
}

/// The progress of sending a file at the front of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendOutcome {
    /// All of it has been sent: the front is something else, or the queue is empty.
    Done,
    /// The share is used up; other sockets are served first.
    ShareSpent,
    /// The socket is full, and reports when it has room again.
    SocketFull,
}

/// Sends from the file at the front of a queue by `send`, at most `share_bytes` bytes in all; `has_room` asks the
/// socket.
///
/// A short call means that the socket is full, the file has ended, or a page cannot be read. Retrying at once while
/// the peer reads would send the file in small pieces, each at the cost of a call that gathers pages for nothing;
/// poll and its relatives report room when a third of the socket's buffer is free.
pub(crate) fn send_share(
    queue: &mut SendQueue,
    share_bytes: usize,
    counters: &Counters,
    has_room: impl Fn() -> bool,
    mut send: impl FnMut(&FileRange<'_>, usize) -> Result<usize, Errno>,
) -> Result<SendOutcome, Errno> {
    let mut left = share_bytes;
    while let Some(Front::File(range)) = queue.front() {
        let offered = range.length.min(left);
        if offered == 0 {
            return Ok(SendOutcome::ShareSpent);
        }
        counters.send_calls.increment();
        let sent = match pass_front(queue, counters, |range| send(range, offered)) {
            Err(Errno::INTR) => continue,
            // The next bytes of the file are in the queue.
            Ok(0) => break,
            outcome => outcome?,
        };
        counters.sends.increment();
        counters.bytes_sent.add(sent as u64);
        queue.consume(sent);
        left -= sent;
        if sent < offered {
            counters.sends_short.increment();
            if !has_room() {
                return Ok(SendOutcome::SocketFull);
            }
        }
    }
    Ok(SendOutcome::Done)
}

/// Whether a socket has room for a considerable part of its buffer. If it has not, this call makes sure that the
/// kernel will report when it has.
pub(crate) fn has_room(socket: BorrowedFd<'_>, counters: &Counters) -> bool {
    // If the question fails, the send will show the error.
    has_event(socket, PollFlags::OUT, counters).unwrap_or(true)
}

/// Reads the next bytes of the file at the front of a queue and puts them in its place.
fn read_front(queue: &mut SendQueue, counters: &Counters) -> Result<(), Errno> {
    let Some(Front::File(range)) = queue.front() else { return Ok(()) };
    let piece = read_part(&range, usize::MAX, counters)?;
    if piece.is_empty() {
        return Err(FILE_ENDED);
    }
    queue.place_front(piece.into_boxed_slice());
    Ok(())
}

/// Reads a piece of a part of a file, at most `bytes_max` bytes; empty at its end.
pub(crate) fn read_part(
    range: &FileRange<'_>,
    bytes_max: usize,
    counters: &Counters,
) -> Result<Vec<u8>, Errno> {
    let mut piece = vec![0; range.length.min(bytes_max).min(PIECE_BYTES_MAX)];
    let count = read(range.file, range.offset, &mut piece, ReadWriteFlags::empty(), counters)?;
    piece.truncate(count);
    Ok(piece)
}

#[cfg(test)]
mod tests {
    use std::{os::unix::net::UnixStream, sync::Arc, time::Duration};

    use super::*;
    use crate::{clock::monotonic, send_queue::FilePart};

    #[test]
    fn what_goes_with_sending_a_file_is_not_in_the_time_of_the_call() {
        let counters = Counters::default();
        let file = Arc::new(std::fs::File::open("/dev/null").expect("it is everywhere").into());
        let mut queue = SendQueue::default();
        queue.push(FilePart::new(file, 0, 16).into());
        let (socket, _peer) = UnixStream::pair().expect("sockets");
        counters.clock.switch(true);
        counters.clock.call(|| ());
        let other_call = Duration::from_millis(1);
        let send = |_: &FileRange<'_>, bytes_max| {
            let end = monotonic() + other_call;
            while monotonic() < end {}
            counters.clock.call(|| Ok(bytes_max))
        };
        let outcome = send_share(&mut queue, 16, &counters, || has_room(socket.as_fd(), &counters), send);
        assert_eq!((outcome, queue.len()), (Ok(SendOutcome::Done), 0));
        let outside_ns = counters.snapshot().outside_calls_ns;
        assert!(u128::from(outside_ns) >= other_call.as_nanos(), "{outside_ns}");
    }
}
