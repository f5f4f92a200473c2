//! Names of the operations of io_uring (`enum io_uring_op` in `include/uapi/linux/io_uring.h`).

/// Indexed by number, up to Linux 6.18.
const NAMES: [&str; 63] = [
    "nop",
    "readv",
    "writev",
    "fsync",
    "read_fixed",
    "write_fixed",
    "poll_add",
    "poll_remove",
    "sync_file_range",
    "sendmsg",
    "recvmsg",
    "timeout",
    "timeout_remove",
    "accept",
    "async_cancel",
    "link_timeout",
    "connect",
    "fallocate",
    "openat",
    "close",
    "files_update",
    "statx",
    "read",
    "write",
    "fadvise",
    "madvise",
    "send",
    "recv",
    "openat2",
    "epoll_ctl",
    "splice",
    "provide_buffers",
    "remove_buffers",
    "tee",
    "shutdown",
    "renameat",
    "unlinkat",
    "mkdirat",
    "symlinkat",
    "linkat",
    "msg_ring",
    "fsetxattr",
    "setxattr",
    "fgetxattr",
    "getxattr",
    "socket",
    "uring_cmd",
    "send_zc",
    "sendmsg_zc",
    "read_multishot",
    "waitid",
    "futex_wait",
    "futex_wake",
    "futex_waitv",
    "fixed_fd_install",
    "ftruncate",
    "bind",
    "listen",
    "recv_zc",
    "epoll_wait",
    "readv_fixed",
    "writev_fixed",
    "pipe",
];

/// The name of an operation, in lower case and without `IORING_OP_`; `None` if it is newer than this list.
pub fn name(number: u32) -> Option<&'static str> {
    NAMES.get(number as usize).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_have_the_names_of_the_kernels_header() {
        let known =
            [(0, "nop"), (13, "accept"), (22, "read"), (27, "recv"), (40, "msg_ring"), (47, "send_zc")];
        for (number, expected) in known {
            assert_eq!(name(number), Some(expected));
        }
        assert_eq!((name(NAMES.len() as u32), name(u32::MAX)), (None, None));
    }
}
