//! POSIX asynchronous I/O (`aio_read(3)`). The GNU C library implements it with threads of the process that call
//! `pread` and `pwrite`, one at a time for each open file; the kernel is not involved.
//!
//! Invariants of [`PosixAioQueue`]: (1) `controls` holds one control block for each slot, in separate memory; (2) a
//! control block and its buffer belong to the C library from a successful `aio_*` call until `aio_error` returns
//! something other than `EINPROGRESS`: until then they are only passed to the library by address; (3) `order` names
//! the slots in that state, the oldest first.

use std::{fs::File, io, os::fd::AsRawFd, time::Duration};

use libc::aiocb;

use crate::{
    blocks::{Blocks, Completed, Operation, OperationKind},
    region::Region,
};

/// Entries in the list of a wait: the library takes its lock and checks each.
const WAITED_MAX: usize = 8;

/// The thread sleeps until this fraction of the operations in flight is complete. The library serves the operations
/// of a file one after the other, so at great depths a single completion is not worth a wake-up.
const GATHERED_DIVISOR: usize = 8;

/// Operations of one file.
#[derive(Debug)]
pub struct PosixAioQueue {
    controls: Region,
    order: Vec<u32>,
    refused: Vec<Completed>,
    blocks: Blocks,
    file: File,
}

impl PosixAioQueue {
    /// A queue with room for `slots` operations on one file.
    pub fn new(file: File, slots: u32, block_bytes: u32) -> io::Result<Self> {
        let blocks = Blocks::new(slots, block_bytes)?;
        Ok(Self {
            controls: Region::new(slots as usize * size_of::<aiocb>())?,
            order: Vec::with_capacity(slots as usize),
            refused: Vec::with_capacity(slots as usize),
            blocks,
            file,
        })
    }

    /// The buffers.
    pub fn blocks(&mut self) -> &mut Blocks {
        &mut self.blocks
    }

    /// Address of a slot's control block; the slot must exist.
    fn control(&self, slot: u32) -> *mut aiocb {
        debug_assert!(slot < self.blocks.slots());
        // SAFETY: invariant 1: inside the region, whose base is page-aligned.
        unsafe { self.controls.base().as_ptr().cast::<aiocb>().add(slot as usize) }
    }

    /// Submits operations, one call for each. An operation that the library refuses becomes a completion; after
    /// `EAGAIN` fewer are taken.
    pub fn submit(&mut self, operations: &[Operation]) -> io::Result<usize> {
        for (taken, operation) in operations.iter().enumerate() {
            let buffer = match self.blocks.start(operation) {
                Ok(buffer) => buffer,
                Err(error) if taken == 0 => return Err(error),
                Err(_) => return Ok(taken),
            };
            match self.begin(operation, buffer).map_err(|error| error.raw_os_error()) {
                Ok(()) => self.order.push(operation.slot),
                Err(Some(libc::EAGAIN)) => {
                    self.blocks.finish(operation.slot);
                    return Ok(taken);
                }
                Err(number) => {
                    let result = -number.unwrap_or(libc::EIO);
                    self.refused.push(Completed { slot: operation.slot, result });
                }
            }
        }
        Ok(operations.len())
    }

    fn begin(&mut self, operation: &Operation, buffer: *mut u8) -> io::Result<()> {
        let control = self.control(operation.slot);
        // SAFETY: invariant 2: the slot was idle, so the control block is ours; all-zero is a valid one. The call
        // gets a buffer that stays in flight in `blocks`, and memory that lives until `drop` has waited.
        let result = unsafe {
            control.write_bytes(0, 1);
            (*control).aio_fildes = self.file.as_raw_fd();
            (*control).aio_sigevent.sigev_notify = libc::SIGEV_NONE;
            if operation.kind.transfers() {
                (*control).aio_buf = buffer.cast();
                (*control).aio_nbytes = operation.bytes as usize;
                (*control).aio_offset = operation.offset_bytes as libc::off_t;
            }
            match operation.kind {
                OperationKind::Read => libc::aio_read(control),
                OperationKind::Write => libc::aio_write(control),
                OperationKind::Fsync => libc::aio_fsync(libc::O_SYNC, control),
                OperationKind::Fdatasync => libc::aio_fsync(libc::O_DSYNC, control),
            }
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Appends completed operations; no system call.
    pub fn poll(&mut self, completed: &mut Vec<Completed>) {
        for refused in self.refused.drain(..) {
            self.blocks.finish(refused.slot);
            completed.push(refused);
        }
        let mut kept = 0;
        for index in 0..self.order.len() {
            let slot = self.order[index];
            let control = self.control(slot);
            // SAFETY: invariants 1 and 2: this control block was submitted to the library.
            let error = unsafe { libc::aio_error(control) };
            if error == libc::EINPROGRESS {
                self.order[kept] = slot;
                kept += 1;
                continue;
            }
            // SAFETY: as above, and the operation is over; its result is taken once.
            let done = unsafe { libc::aio_return(control) };
            let result = if error == 0 { i32::try_from(done).unwrap_or(i32::MAX) } else { -error };
            self.blocks.finish(slot);
            completed.push(Completed { slot, result });
        }
        self.order.truncate(kept);
    }

    /// Appends completed operations; sleeps until there is at least one, or `limit` has passed.
    pub fn wait(&mut self, limit: Option<Duration>, completed: &mut Vec<Completed>) -> io::Result<()> {
        let before = completed.len();
        self.poll(completed);
        while completed.len() == before && !self.order.is_empty() {
            self.suspend(limit)?;
            self.poll(completed);
            if limit.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Sleeps until some operations are complete, a signal arrived, or `limit` has passed. With fewer than eight in
    /// flight it waits for the first one.
    fn suspend(&self, limit: Option<Duration>) -> io::Result<()> {
        let mut waited = [std::ptr::null::<aiocb>(); WAITED_MAX];
        let awaited = &self.order[self.order.len() / GATHERED_DIVISOR..];
        for (place, &slot) in waited.iter_mut().zip(awaited) {
            *place = self.control(slot);
        }
        let time = limit.map(|limit| libc::timespec {
            tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: limit.subsec_nanos() as libc::c_long,
        });
        let count = awaited.len().min(WAITED_MAX) as libc::c_int;
        // SAFETY: invariants 1 and 2: the list names control blocks that were submitted to the library; null entries
        // are skipped.
        let result = unsafe {
            libc::aio_suspend(
                waited.as_ptr(),
                count,
                time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref),
            )
        };
        if result == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EINTR) => Ok(()),
            _ => Err(error),
        }
    }
}

impl Drop for PosixAioQueue {
    fn drop(&mut self) {
        // SAFETY: the descriptor is open; without a control block the call asks to cancel all of this file's.
        unsafe { libc::aio_cancel(self.file.as_raw_fd(), std::ptr::null_mut()) };
        let mut ended = Vec::with_capacity(self.order.len());
        while !self.order.is_empty() {
            if self.wait(None, &mut ended).is_err() {
                // The library may still write: keep the control blocks too.
                let one_page = Region::new(1);
                if let Ok(one_page) = one_page {
                    std::mem::forget(std::mem::replace(&mut self.controls, one_page));
                }
                return;
            }
        }
        self.poll(&mut ended);
    }
}
