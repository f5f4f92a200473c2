//! From a file to a socket: `sendfile(2)`, and reading where a file system cannot do that.
//!
//! The pages of the page cache become the packet's own; nothing is copied. How much leaves in one call is the
//! caller's choice, because a peer that reads quickly would never let a call on a long file end.
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

/// Bytes read at a time where `sendfile` is not possible.
const PIECE_BYTES_MAX: usize = 64 << 10;

/// One `sendfile` of at most `bytes_max` bytes; it waits for room if the socket is a blocking one. It alone is timed,
/// and none of what may go with it.
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

/// The same without waiting on a blocking socket: it is a non-blocking one for the length of the call, because
/// `sendfile` has no flag for that. Nothing else may use the socket meanwhile.
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

/// Sends from the file at the front of a queue by `send`, and says how much has left. Zero: the next bytes of the file
/// are at the front of the queue now, to be sent like any others.
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

/// How far the sending of what was at the front of a queue has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendOutcome {
    /// All of it has left: something else is at the front of the queue, or nothing.
    Done,
    /// A share has left, and others get theirs.
    ShareSpent,
    /// The socket is full, and tells when it has room again.
    SocketFull,
}

/// Sends from the file at the front of a queue by `send`, at most so many bytes in all; `has_room` asks the socket.
///
/// A call that moved less than it was given has found the socket full, the end of the file, or a page that cannot be
/// read. To try again at once at a full socket, while the peer is reading, would move the file in crumbs, each at the
/// price of a call that gathers pages for nothing; a socket has room for poll and its kin when a third of it is free.
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

/// Whether a socket has room for a good part. One that has not tells when it has: the question sees to that.
pub(crate) fn has_room(socket: BorrowedFd<'_>, counters: &Counters) -> bool {
    // What cannot be asked is found out by trying.
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

/// Reads a piece of a part of a file, at most `bytes_max` bytes; nothing at its end.
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
