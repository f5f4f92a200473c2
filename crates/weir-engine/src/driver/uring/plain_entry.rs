//! Submissions that name no memory: any code may push them. An entry that names memory goes through
//! [`Ring::push_naming_memory`](super::ring::Ring::push_naming_memory), whose caller says who owns that memory.
//!
//! Each constructor takes what the operation names: a descriptor that it uses up is passed as its owner. A descriptor
//! that is only named must stay open until the final completion (`Connection::operations`); if it did not, the
//! operation would reach another file, which is a bug, but no memory is touched that is not the kernel's.

use std::os::fd::{IntoRawFd, OwnedFd};

use io_uring::{
    opcode,
    squeue::{Entry, Flags},
    types::Fd,
};

use super::table::Target;

/// An entry that names descriptors and numbers, and no memory.
pub(super) struct PlainEntry(Entry);

impl PlainEntry {
    /// Waits for events of a socket.
    pub(super) fn poll(target: Target, events: i16) -> Self {
        Self(opcode::PollAdd::new(target.fd, events as u32).build().flags(target.flags))
    }

    /// Waits for input of a descriptor, once or again and again.
    pub(super) fn poll_input(descriptor: Fd, stays_armed: bool) -> Self {
        Self(opcode::PollAdd::new(descriptor, libc::POLLIN as u32).multi(stays_armed).build())
    }

    /// Accepts one connection or all that come, without asking for addresses.
    pub(super) fn accept(target: Target, stays_armed: bool) -> Self {
        let entry = if stays_armed {
            opcode::AcceptMulti::new(target.fd).flags(libc::SOCK_CLOEXEC).build()
        } else {
            let accept = opcode::Accept::new(target.fd, std::ptr::null_mut(), std::ptr::null_mut());
            accept.flags(libc::SOCK_CLOEXEC).build()
        };
        Self(entry.flags(target.flags))
    }

    /// Receives into a buffer that the kernel takes from this group. Those buffers are the kernel's already.
    pub(super) fn receive_provided(target: Target, priority: u16, group: u8) -> Self {
        let receive = opcode::Recv::new(target.fd, std::ptr::null_mut(), 0);
        let entry = receive.ioprio(priority).buf_group(group.into()).build();
        Self(entry.flags(Flags::BUFFER_SELECT | target.flags))
    }

    /// Cancels the operation with this token.
    pub(super) fn cancel(token: u64) -> Self {
        Self(opcode::AsyncCancel::new(token).build())
    }

    /// Closes a file.
    pub(super) fn close(file: OwnedFd) -> Self {
        Self(opcode::Close::new(Fd(file.into_raw_fd())).build())
    }

    /// Does nothing.
    pub(super) fn nothing() -> Self {
        Self(opcode::Nop::new().build())
    }

    /// Leaves a completion with this token in another ring.
    pub(super) fn message(ring: Fd, token: u64) -> Self {
        Self(opcode::MsgRingData::new(ring, 0, token, None).build())
    }

    /// A worker of the kernel performs it.
    pub(super) fn in_worker(self) -> Self {
        Self(self.0.flags(Flags::ASYNC))
    }

    /// It makes a completion only if it fails.
    pub(super) fn silent_on_success(self) -> Self {
        Self(self.0.flags(Flags::SKIP_SUCCESS))
    }

    /// Its completion carries this token.
    pub(super) fn token(self, token: u64) -> Self {
        Self(self.0.user_data(token))
    }

    pub(super) fn into_entry(self) -> Entry {
        self.0
    }
}
