//! The process at the other end of a Unix socket.

use std::{
    io, mem,
    os::fd::{AsFd, AsRawFd},
};

/// Who is at the other end of a Unix socket: who connected, or, for the side that connected, who listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerCredentials {
    /// Its user when it connected, or began to listen.
    pub uid: u32,
    /// The process; `None`: it is in another namespace of processes, where its number means nothing here.
    pub pid: Option<i32>,
}

/// Asks the kernel who is at the other end (`SO_PEERCRED`).
///
/// # Errors
/// It is no Unix socket.
pub fn credentials(socket: impl AsFd) -> io::Result<PeerCredentials> {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = mem::size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `found`, which has that many, and both outlive the call. Any
    // bytes are a valid `ucred`.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut found).cast(),
            &raw mut length,
        )
    };
    if outcome != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(PeerCredentials { uid: found.uid, pid: Some(found.pid).filter(|pid| *pid > 0) })
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_peer_of_this_process_is_this_process() {
        let (ours, _theirs) = UnixStream::pair().expect("two sockets");
        let found = credentials(&ours).expect("it is a Unix socket");
        let expected = PeerCredentials {
            uid: rustix::process::geteuid().as_raw(),
            pid: Some(std::process::id() as i32),
        };
        assert_eq!(found, expected);
        assert!(credentials(std::fs::File::open("/dev/null").expect("it is there")).is_err());
    }
}
