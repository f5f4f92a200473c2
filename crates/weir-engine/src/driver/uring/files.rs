//! Operations on files: submitted one for one, taken up again where the kernel did a part, and files closed.
//!
//! All of them exist since 5.11, the oldest kernel this driver runs on, so no step of the ladder lacks one. A
//! path that is in memory is opened, and bytes that are in the page cache are read, while the kernel takes the
//! submission; for everything else it has workers. A write that holds something is theirs from the start. Where it can
//! start none, for want of memory or at a limit of threads, it ends with `ECANCELED` what it has not begun
//! (`io_wq_enqueue`): the call is made here then, as where no helper thread can be started.

use std::{
    io,
    os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd},
    sync::Arc,
    task::{Poll, Waker},
};

use io_uring::{
    opcode,
    squeue::Flags,
    types::{Fd, FsyncFlags, OpenHow},
};
use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};

use super::{Kind, Uring};
use crate::{
    driver::files::{
        FileOperation, FileResult, Outcome, RESOLVE_BELOW, Request, Step, Storage, perform_here,
    },
    slab::SlotId,
};

/// Bytes of one submission; the kernel moves at most `0x7fff_f000` in a call.
const CALL_BYTES_MAX: usize = 1 << 30;

/// What an operation in flight owns (invariant 1).
#[derive(Debug)]
pub(super) struct Submitted {
    request: Request,
    /// Of a read.
    storage: Option<Storage>,
    /// Of an open below a folder; in a box, so that this may move.
    how: Option<Box<OpenHow>>,
    /// Bytes read or written so far.
    done: usize,
}

impl Uring {
    pub(super) fn poll_operation(
        &mut self,
        operation: &mut FileOperation,
        waker: &Waker,
    ) -> Poll<FileResult> {
        match self.files.poll(operation, waker) {
            Step::Over(answer) => Poll::Ready(answer),
            Step::Pending => Poll::Pending,
            Step::Admitted(request) => {
                let storage = if let Request::Read { length, .. } = &request {
                    Some(Storage::take(&self.parts.send_pool, *length))
                } else {
                    None
                };
                let submitted = Submitted { request, storage, how: None, done: 0 };
                let id = self.files.begin(operation, waker, submitted);
                self.submit_operation(id);
                Poll::Pending
            }
        }
    }

    /// Submits an operation, or the rest of it.
    fn submit_operation(&mut self, id: SlotId) {
        let Some(Submitted { request, storage, how, done }) = self.files.work(id) else { return };
        let done = *done;
        let entry = match request {
            Request::Open { below: Some(folder), path, flags, mode } => {
                let how = how.get_or_insert_with(|| Box::new(self::how(*flags, *mode)));
                opcode::OpenAt2::new(Fd(folder.as_raw_fd()), path.as_ptr(), &raw const **how).build()
            }
            Request::Open { below: None, path, flags, mode } => {
                let flags = (*flags | OFlags::CLOEXEC).bits() as i32;
                opcode::OpenAt::new(Fd(libc::AT_FDCWD), path.as_ptr()).flags(flags).mode(mode.bits()).build()
            }
            Request::Read { file, offset, length } => {
                let into = storage.as_mut().map(Storage::as_mut_slice).unwrap_or_default();
                let rest = &mut into[done..*length];
                let count = rest.len().min(CALL_BYTES_MAX) as u32;
                let read = opcode::Read::new(Fd(file.as_raw_fd()), rest.as_mut_ptr(), count);
                read.offset(*offset + done as u64).build()
            }
            Request::Write { file, offset, bytes, held } => {
                let rest = &bytes[done..];
                let count = rest.len().min(CALL_BYTES_MAX) as u32;
                let write = opcode::Write::new(Fd(file.as_raw_fd()), rest.as_ptr(), count);
                // See `File::write_at_holding`.
                let flags = if held.is_some() { Flags::ASYNC } else { Flags::empty() };
                write.offset(*offset + done as u64).build().flags(flags)
            }
            Request::Sync { file, data_only } => {
                let flags = if *data_only { FsyncFlags::DATASYNC } else { FsyncFlags::empty() };
                opcode::Fsync::new(Fd(file.as_raw_fd())).flags(flags).build()
            }
            Request::Allocate { file, length } => {
                opcode::Fallocate::new(Fd(file.as_raw_fd()), *length).build()
            }
            Request::Rename { from, to, .. } => {
                let here = Fd(libc::AT_FDCWD);
                opcode::RenameAt::new(here, from.as_ptr(), here, to.as_ptr()).build()
            }
        };
        self.push(entry.user_data(Kind::File.token(id)));
    }

    pub(super) fn on_file(&mut self, id: SlotId, result: i32) {
        // What a forgotten read would still bring, nobody wants; a write goes on to its end.
        let is_forgotten = self.files.is_forgotten(id);
        let Some(submitted) = self.files.work(id) else {
            self.parts.counters.events_stale.increment();
            return;
        };
        let is_done = match (&submitted.request, result) {
            (_, ..0) => result != -libc::EINTR,
            (Request::Read { length, .. }, count) => {
                submitted.done += count as usize;
                count == 0 || submitted.done >= *length || is_forgotten
            }
            (Request::Write { bytes, .. }, count) => {
                submitted.done += count as usize;
                count == 0 || submitted.done >= bytes.len()
            }
            (
                Request::Open { .. }
                | Request::Sync { .. }
                | Request::Allocate { .. }
                | Request::Rename { .. },
                _,
            ) => true,
        };
        if !is_done {
            return self.submit_operation(id);
        }
        let Some(submitted) = self.files.take_work(id) else { return };
        let answer = if result == -libc::ECANCELED && !self.ending {
            // From the start: to write or to read a part again changes nothing.
            perform_here(submitted.request, &self.parts.send_pool, &self.parts.counters)
        } else {
            submitted.answer(result)
        };
        self.files.finish(id, answer);
    }

    /// Closes a file, unless an operation or a queue still has it: then that does.
    pub(super) fn submit_close(&mut self, file: Arc<OwnedFd>) {
        let Some(descriptor) = Arc::into_inner(file) else { return };
        let number = descriptor.into_raw_fd();
        let token = Kind::CloseFile.token(SlotId { index: number as u32, generation: 0 });
        self.files_closing += 1;
        self.push(opcode::Close::new(Fd(number)).build().user_data(token));
    }

    pub(super) fn on_file_closed(&mut self, number: u32, result: i32) {
        self.files_closing -= 1;
        if result == -libc::ECANCELED {
            // SAFETY: `submit_close` gave the descriptor to the ring alone, and the kernel takes a descriptor whose
            // file must be flushed out of its table when a worker closes it (`io_close`): this close was not begun.
            drop(unsafe { OwnedFd::from_raw_fd(number as RawFd) });
        }
    }
}

/// How a path is opened below a folder.
fn how(flags: OFlags, mode: Mode) -> OpenHow {
    let flags = flags | OFlags::CLOEXEC;
    let how = OpenHow::new().flags(flags.bits().into()).mode(mode.bits().into());
    how.resolve(RESOLVE_BELOW.bits())
}

impl Submitted {
    /// What the last completion makes of the operation.
    fn answer(self, result: i32) -> FileResult {
        if result < 0 {
            return Err(Errno::from_raw_os_error(-result).into());
        }
        match (self.request, self.storage) {
            (Request::Open { .. }, _) => {
                // SAFETY: a non-negative result of an open is a new descriptor that nobody else owns.
                Ok(Outcome::Opened(unsafe { OwnedFd::from_raw_fd(result) }))
            }
            (Request::Read { .. }, Some(storage)) => Ok(Outcome::Read(storage.into_bytes(self.done))),
            (Request::Read { .. }, None) => Ok(Outcome::Read(Vec::new().into())),
            (Request::Write { bytes, .. }, _) if self.done < bytes.len() => {
                Err(io::ErrorKind::WriteZero.into())
            }
            (Request::Write { bytes, .. }, _) => Ok(Outcome::Written(bytes)),
            (Request::Sync { .. } | Request::Allocate { .. } | Request::Rename { .. }, _) => {
                Ok(Outcome::Done)
            }
        }
    }
}
