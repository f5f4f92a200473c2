//! Which system calls answer a number of bytes, and which way these go.

/// Which way bytes go, as the process sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Into its memory.
    Read,
    /// Out of its memory, or from one descriptor to another.
    Written,
}

/// The way of the bytes that a call answers; none of a call that answers something else, such as messages.
pub fn direction(call: &str) -> Option<Direction> {
    match call {
        "read" | "readv" | "pread64" | "preadv" | "preadv2" | "recvfrom" | "recvmsg" => Some(Direction::Read),
        "write" | "writev" | "pwrite64" | "pwritev" | "pwritev2" | "sendto" | "sendmsg" | "sendfile"
        | "splice" | "tee" | "vmsplice" | "copy_file_range" => Some(Direction::Written),
        _ => None,
    }
}
