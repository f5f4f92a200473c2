//! What the kernel knows of the output of a connected socket.

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd},
};

/// Bytes that were sent and that the other side does not have yet: on TCP not acknowledged, where the end of our
/// direction counts as one; on Unix sockets not read, with what the kernel needs beside them.
pub fn outstanding_bytes(socket: BorrowedFd<'_>) -> io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the call writes one int, which lives until it returns; the descriptor is borrowed and therefore open.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(usize::try_from(bytes).unwrap_or(0)) }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        os::{fd::AsFd, unix::net::UnixStream},
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
    fn what_is_no_socket_has_no_output() {
        let folder = std::fs::File::open("/").expect("it is there");
        assert!(outstanding_bytes(folder.as_fd()).is_err());
    }
}
