//! File operations: each is one submission, repeated after a partial result. The ring also closes files.
//!
//! All of them exist since 5.11, the oldest kernel that this driver runs on, so every version in `KernelMask::LADDER`
//! has them. While the kernel takes the submission, it opens a path that is in memory and reads bytes that are in the
//! page cache; for everything else it uses workers. A write that holds a value goes to a worker from the start.
//!
//! If the kernel cannot start a worker (at a limit on threads, without memory, with signals pending), it ends
//! operations that have not begun with `ECANCELED` (Linux, `io_uring/io-wq.c`: `io_wq_enqueue`, `create_worker_cont`;
//! before commit 0453aad676ff of 2024 it retries forever, and the operation waits). A file system may also return
//! that error, and a sync reports an error only once. So a no-op request then asks for a worker: if it fails in the
//! same way, the driver makes the call itself, as where no helper thread can be started. It does so for the
//! operations of the next second too, because each try costs the kernel tens of milliseconds.

use std::{
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    sync::Arc,
    task::{Poll, Waker},
    time::Duration,
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

use super::{Kind, PlainEntry, Uring};
use crate::{
    clock::{Instant, monotonic},
    driver::files::{
        FileOperation, FileResult, Outcome, RESOLVE_BELOW, Request, Step, Storage, perform_here,
    },
    slab::SlotId,
};

/// Bytes of one submission; the kernel moves at most `0x7fff_f000` in a call.
const CALL_BYTES_MAX: usize = 1 << 30;

/// How long the driver avoids workers after one could not be started.
const WITHOUT_WORKERS: Duration = Duration::from_secs(1);

/// The state of the kernel's workers, as far as known.
#[derive(Debug, Default)]
pub(super) struct Workers {
    /// No worker could be started; none is tried before this moment.
    missing_until: Option<Instant>,
    /// Teardown has cancelled the operations in flight.
    pub(super) ending: bool,
}

/// The values that an operation in flight owns (invariant 1).
#[derive(Debug)]
pub(super) struct Submitted {
    request: Request,
    /// For a read.
    storage: Option<Storage>,
    /// For an open below a folder; in a box, so that this value may move.
    how: Option<Box<OpenHow>>,
    /// Bytes read or written so far.
    done: usize,
    /// It was cancelled, and a request is asking whether a worker was missing.
    asks_for_worker: bool,
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
                let is_here = self.lacks_workers();
                let storage = match request {
                    Request::Read { length, .. } if !is_here => {
                        Some(Storage::take(&self.parts.send_pool, length))
                    }
                    _ => None,
                };
                let submitted = Submitted { request, storage, how: None, done: 0, asks_for_worker: false };
                let id = self.files.begin(operation, waker, submitted);
                if is_here {
                    self.perform(id);
                } else {
                    self.submit_operation(id);
                }
                Poll::Pending
            }
        }
    }

    fn lacks_workers(&mut self) -> bool {
        self.workers.missing_until = self.workers.missing_until.filter(|until| monotonic() < *until);
        self.workers.missing_until.is_some()
    }

    /// Makes the call on this thread. If a part was done already, it starts over: that part is read or written again.
    fn perform(&mut self, id: SlotId) {
        let Some(Submitted { request, .. }) = self.files.take_work(id) else { return };
        self.files.finish(id, perform_here(request, &self.parts.send_pool, &self.parts.counters));
    }

    /// Submits an operation, or the rest of it.
    fn submit_operation(&mut self, id: SlotId) {
        let Some(Submitted { request, storage, how, done, .. }) = self.files.work(id) else { return };
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
        // SAFETY: the operation's slot owns request, storage and `how`, each in separate memory, until `on_file` sees
        // the completion; a future that is dropped leaves them there.
        unsafe { self.push_naming_memory(entry.user_data(Kind::File.token(id))) };
    }

    pub(super) fn on_file(&mut self, id: SlotId, result: i32) {
        // The rest of a forgotten read is not needed; a write runs to its end.
        let is_forgotten = self.files.is_forgotten(id);
        let Some(submitted) = self.files.work(id) else {
            self.parts.counters.events_stale.increment();
            return;
        };
        let is_cancelled = result == -libc::ECANCELED && !self.workers.ending;
        if submitted.asks_for_worker && is_cancelled {
            self.workers.missing_until = Some(monotonic() + WITHOUT_WORKERS);
            return self.perform(id);
        }
        if submitted.asks_for_worker {
            return self.answer(id, -libc::ECANCELED);
        }
        if is_cancelled && !(is_forgotten && matches!(submitted.request, Request::Read { .. })) {
            submitted.asks_for_worker = true;
            return self.push(PlainEntry::nothing().in_worker().token(Kind::File.token(id)));
        }
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
        self.answer(id, result);
    }

    fn answer(&mut self, id: SlotId, result: i32) {
        if let Some(submitted) = self.files.take_work(id) {
            self.files.finish(id, submitted.answer(result));
        }
    }

    /// Closes a file, unless an operation or a queue still uses it: then the last user closes it. A close that must
    /// flush needs a worker. If that is the first worker that cannot be started, the file stays open: the completion
    /// does not show for certain who owns the descriptor then.
    pub(super) fn submit_close(&mut self, file: Arc<OwnedFd>) {
        let Some(descriptor) = Arc::into_inner(file) else { return };
        if self.lacks_workers() {
            return drop(descriptor);
        }
        self.files_closing += 1;
        let token = Kind::CloseFile.token(SlotId { index: 0, generation: 0 });
        self.push(PlainEntry::close(descriptor).token(token));
    }
}

/// How a path is opened below a folder.
fn how(flags: OFlags, mode: Mode) -> OpenHow {
    let flags = flags | OFlags::CLOEXEC;
    let how = OpenHow::new().flags(flags.bits().into()).mode(mode.bits().into());
    how.resolve(RESOLVE_BELOW.bits())
}

impl Submitted {
    /// The result of the operation, from its last completion.
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
