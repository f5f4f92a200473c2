//! The kernel's state of a connected socket's output.

use std::{
    io,
    mem::offset_of,
    os::fd::{AsRawFd, BorrowedFd},
};

/// Bytes that were sent and that the peer does not have yet. On TCP these are unacknowledged bytes, and the end of
/// our direction counts as one; on Unix sockets they are unread bytes, including the kernel's overhead.
pub fn outstanding_bytes(socket: BorrowedFd<'_>) -> io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the call writes one int, which lives until it returns; the descriptor is borrowed and therefore open.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(usize::try_from(bytes).unwrap_or(0)) }
}

/// Bytes of window that the peer of a TCP connection advertises, including bytes in flight (Linux 5.4).
///
/// # Errors
/// Also fails if the socket is not TCP, or the kernel is older.
pub fn peer_window(socket: BorrowedFd<'_>) -> io::Result<u32> {
    // SAFETY: the type is plain C data for which all-zero is a valid value.
    let mut record: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = size_of_val(&record) as libc::socklen_t;
    // SAFETY: the call writes at most `length` bytes of the record, and the length; both live until it returns; the
    // descriptor is borrowed and therefore open.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut record).cast(),
            &raw mut length,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let is_told = length as usize >= offset_of!(libc::tcp_info, tcpi_snd_wnd) + size_of::<u32>();
    if is_told { Ok(record.tcpi_snd_wnd) } else { Err(io::ErrorKind::Unsupported.into()) }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::{TcpListener, TcpStream},
        os::{fd::AsFd, unix::net::UnixStream},
        thread,
        time::{Duration, Instant},
    };

    use super::*;

    #[test]
    fn bytes_are_outstanding_until_the_other_side_has_them() {
        let (mut ours, mut theirs) = UnixStream::pair().expect("a socket pair");
        assert_eq!(outstanding_bytes(ours.as_fd()).expect("a socket"), 0);
        ours.write_all(b"four").expect("it fits");
        assert!(outstanding_bytes(ours.as_fd()).expect("a socket") >= 4);
        theirs.read_exact(&mut [0; 4]).expect("they are there");
        assert_eq!(outstanding_bytes(ours.as_fd()).expect("a socket"), 0);
    }

    #[test]
    fn the_window_of_a_peer_that_does_not_read_becomes_small() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let _peer = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
        let (mut ours, _) = listener.accept().expect("a connection");
        let at_first = peer_window(ours.as_fd()).expect("it is TCP");
        assert!(at_first > 16 << 10, "{at_first}");
        ours.set_nonblocking(true).expect("a socket can be made non-blocking");
        // The window grows at first, and data arrives at the pace of congestion control.
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut at_last = at_first;
        while at_last >= at_first && Instant::now() < deadline {
            while ours.write(&[0; 64 << 10]).is_ok() {}
            at_last = peer_window(ours.as_fd()).expect("it is TCP");
            thread::yield_now();
        }
        assert!(at_last < at_first, "{at_first}, then {at_last}");
    }

    #[test]
    fn what_is_not_tcp_has_no_window() {
        let (ours, _theirs) = UnixStream::pair().expect("a socket pair");
        assert!(peer_window(ours.as_fd()).is_err());
    }

    #[test]
    fn what_is_no_socket_has_no_output() {
        let folder = std::fs::File::open("/").expect("it is there");
        assert!(outstanding_bytes(folder.as_fd()).is_err());
    }
}
