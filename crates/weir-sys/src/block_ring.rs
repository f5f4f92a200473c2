//! An io_uring for operations on one file. It supports every setup flag of the kernel (the `io-uring` crate lacks
//! `IORING_SETUP_HYBRID_IOPOLL`), and its poll only reads memory while the kernel has nothing to do.
//!
//! Sources: `io_uring_setup(2)`, `io_uring_enter(2)`; for the hybrid flag `include/uapi/linux/io_uring.h` of 6.13.
//!
//! Invariants of [`BlockRing`]: (1) every entry pushed names a buffer that is in flight in `blocks` until its
//! completion was taken, and the descriptor of `file`; (2) fields are dropped in the order ring, blocks, file, and only
//! after nothing is in flight; (3) `flags` maps the ring's own page and is not used after the ring is closed.

use std::{
    fmt,
    fs::File,
    io,
    os::fd::{AsRawFd, BorrowedFd, RawFd},
    ptr::NonNull,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use io_uring::{IoUring, Parameters, opcode, squeue, types};

use crate::{
    blocks::{Blocks, Completed, Operation, OperationKind},
    ring::{self, ENTER_EXT_ARG, ENTER_GETEVENTS, ENTER_REGISTERED_RING, ENTER_SQ_WAKEUP, EnterWait},
};

const SETUP_IOPOLL: u32 = 1;
const SETUP_SQPOLL: u32 = 1 << 1;
const SETUP_SUBMIT_ALL: u32 = 1 << 7;
const SETUP_COOP_TASKRUN: u32 = 1 << 8;
const SETUP_TASKRUN_FLAG: u32 = 1 << 9;
const SETUP_SINGLE_ISSUER: u32 = 1 << 12;
const SETUP_DEFER_TASKRUN: u32 = 1 << 13;
const SETUP_HYBRID_IOPOLL: u32 = 1 << 17;

const QUEUE_NEEDS_WAKEUP: u32 = 1;
const QUEUE_HAS_TASK_WORK: u32 = 1 << 2;

/// Milliseconds without work after which the kernel's submission thread sleeps; the kernel's default.
const SUBMISSION_THREAD_IDLE_MS: u32 = 1000;

/// When the kernel runs the task work that makes completions visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskRun {
    /// It interrupts the thread.
    Interrupting,
    /// At the thread's next system call (5.19).
    Cooperative,
    /// When the thread enters the ring (6.1).
    Deferred,
}

/// How a ring is set up.
#[derive(Clone, Copy, Debug)]
pub struct RingOptions {
    /// A kernel thread takes submissions; `task_run` is then ignored.
    pub submission_thread: bool,
    /// The device is polled for completions.
    pub polled: bool,
    /// The kernel sleeps before it polls; implies `polled`.
    pub polled_hybrid: bool,
    /// The buffers are registered.
    pub fixed_buffers: bool,
    /// The file is registered.
    pub fixed_file: bool,
    /// See [`TaskRun`].
    pub task_run: TaskRun,
}

/// Which step of setting up a ring failed.
#[derive(Debug)]
pub struct SetupError {
    /// The failed step.
    pub step: &'static str,
    /// The kernel's error.
    pub source: io::Error,
}

impl SetupError {
    fn at(step: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self { step, source }
    }
}

impl fmt::Display for SetupError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.step, self.source)
    }
}

impl std::error::Error for SetupError {}

/// `struct io_uring_params`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct SetupParameters {
    submission_entries: u32,
    completion_entries: u32,
    flags: u32,
    submission_thread_cpu: u32,
    submission_thread_idle_ms: u32,
    features: u32,
    shared_workers: u32,
    reserved: [u32; 3],
    submission_offsets: QueueOffsets,
    completion_offsets: QueueOffsets,
}

/// `struct io_sqring_offsets` and `struct io_cqring_offsets`: their first four fields, as far as used here, are the
/// same.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct QueueOffsets {
    head: u32,
    tail: u32,
    mask: u32,
    entries: u32,
    /// In the submission queue: its flags.
    fifth: u32,
    rest: [u32; 3],
    user_address: u64,
}

const _: () = assert!(size_of::<SetupParameters>() == 120);
const _: () = assert!(size_of::<SetupParameters>() == size_of::<Parameters>());
const _: () = assert!(align_of::<SetupParameters>() == align_of::<Parameters>());

/// A ring, one file, and the buffers of its operations. It belongs to the thread that created it.
pub struct BlockRing {
    ring: IoUring,
    words: QueueWords,
    registered: Option<i32>,
    options: RingOptions,
    /// Entries in the queue that the kernel has not taken yet.
    unsubmitted: u32,
    blocks: Blocks,
    file: File,
}

impl fmt::Debug for BlockRing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("BlockRing")
            .field("options", &self.options)
            .field("blocks", &self.blocks)
            .finish_non_exhaustive()
    }
}

impl BlockRing {
    /// A ring for `slots` operations on one file.
    pub fn new(file: File, slots: u32, block_bytes: u32, options: RingOptions) -> Result<Self, SetupError> {
        let blocks = Blocks::new(slots, block_bytes).map_err(SetupError::at("memory for buffers"))?;
        let (ring, words) = set_up(slots, &options)?;
        if options.fixed_buffers {
            let buffers: Vec<libc::iovec> = blocks
                .addresses()
                .map(|(base, length)| libc::iovec { iov_base: base.cast(), iov_len: length })
                .collect();
            // SAFETY: the buffers are those of `blocks`, which outlive the ring (invariant 2).
            unsafe { ring.submitter().register_buffers(&buffers) }
                .map_err(SetupError::at("IORING_REGISTER_BUFFERS"))?;
        }
        if options.fixed_file {
            ring.submitter()
                .register_files(&[file.as_raw_fd()])
                .map_err(SetupError::at("IORING_REGISTER_FILES"))?;
        }
        // SAFETY: the ring is open for as long as the borrow lasts, which is this call.
        let registered = ring::register_ring(unsafe { BorrowedFd::borrow_raw(ring.as_raw_fd()) }).ok();
        Ok(Self { ring, words, registered, options, unsubmitted: 0, blocks, file })
    }

    /// The buffers.
    pub fn blocks(&mut self) -> &mut Blocks {
        &mut self.blocks
    }

    /// Submits operations in at most one system call; in none if a kernel thread takes them and is awake.
    ///
    /// Taken means queued: if the kernel lacks memory it gets the rest with the next `io_uring_enter`.
    pub fn submit(&mut self, operations: &[Operation]) -> io::Result<usize> {
        let taken = self.push(operations)?;
        if self.options.submission_thread {
            self.wake_submission_thread()?;
        } else if self.unsubmitted > 0 {
            self.enter(0, 0, None)?;
        }
        Ok(taken)
    }

    /// [`Self::submit`] and [`Self::wait`] in one system call.
    pub fn submit_and_wait(
        &mut self,
        operations: &[Operation],
        completed: &mut Vec<Completed>,
    ) -> io::Result<usize> {
        if self.options.submission_thread {
            let taken = self.submit(operations)?;
            self.wait(None, completed)?;
            return Ok(taken);
        }
        let taken = self.push(operations)?;
        let before = completed.len();
        while completed.len() == before && self.blocks.in_flight() > 0 {
            self.enter(1, ENTER_GETEVENTS, None)?;
            self.drain(completed)?;
        }
        Ok(taken)
    }

    /// Appends completed operations, and never sleeps. It enters the kernel only if the kernel must do work to make a
    /// completion visible.
    pub fn poll(&mut self, completed: &mut Vec<Completed>) -> io::Result<()> {
        if self.words.has_completions() {
            return self.drain(completed);
        }
        let is_polled = self.is_polled() && !self.options.submission_thread && self.blocks.in_flight() > 0;
        let enters = is_polled || self.unsubmitted > 0 || self.words.flags() & QUEUE_HAS_TASK_WORK != 0;
        if enters {
            self.enter(0, ENTER_GETEVENTS, None)?;
            self.drain(completed)?;
        }
        Ok(())
    }

    /// Appends completed operations; sleeps until there is at least one, or `limit` has passed. On a polled device
    /// the kernel polls instead of sleeping.
    pub fn wait(&mut self, limit: Option<Duration>, completed: &mut Vec<Completed>) -> io::Result<()> {
        let before = completed.len();
        if self.words.has_completions() {
            return self.drain(completed);
        }
        if let Some(limit) = limit.filter(|_| self.is_polled()) {
            return self.poll_until(limit, completed);
        }
        let flags = if limit.is_some() { ENTER_GETEVENTS | ENTER_EXT_ARG } else { ENTER_GETEVENTS };
        while completed.len() == before && self.blocks.in_flight() > 0 {
            self.enter(1, flags, limit)?;
            self.drain(completed)?;
            if limit.is_some() {
                break;
            }
        }
        Ok(())
    }

    fn poll_until(&mut self, limit: Duration, completed: &mut Vec<Completed>) -> io::Result<()> {
        let before = completed.len();
        let start = Instant::now();
        while completed.len() == before && self.blocks.in_flight() > 0 && start.elapsed() < limit {
            self.poll(completed)?;
        }
        Ok(())
    }

    /// Sleeps for `length`, whatever completes: it waits for one completion more than can arrive. `None` if the
    /// device is polled, because the kernel does not sleep then.
    pub fn sleep_whole(&mut self, length: Duration) -> Option<io::Result<()>> {
        if self.is_polled() {
            return None;
        }
        let more_than_can_come = self.blocks.in_flight() + 1;
        Some(self.enter(more_than_can_come, ENTER_GETEVENTS | ENTER_EXT_ARG, Some(length)))
    }

    fn is_polled(&self) -> bool {
        self.options.polled || self.options.polled_hybrid
    }

    fn push(&mut self, operations: &[Operation]) -> io::Result<usize> {
        let mut queue = self.ring.submission();
        let mut taken = 0;
        for operation in operations {
            if queue.is_full() {
                break;
            }
            let buffer = match self.blocks.start(operation) {
                Ok(buffer) => buffer,
                Err(error) if taken == 0 => return Err(error),
                Err(_) => break,
            };
            let entry = entry(operation, buffer, self.file.as_raw_fd(), &self.options);
            // SAFETY: invariant 1: the buffer is now in flight, and the file is ours. There is room (see above), so
            // the entry is pushed.
            if unsafe { queue.push(&entry) }.is_err() {
                self.blocks.finish(operation.slot);
                break;
            }
            taken += 1;
        }
        drop(queue);
        if !self.options.submission_thread {
            self.unsubmitted += taken as u32;
        }
        Ok(taken)
    }

    fn wake_submission_thread(&mut self) -> io::Result<()> {
        // The kernel sets the flag and then reads the tail; this code has moved the tail and then reads the flag.
        std::sync::atomic::fence(Ordering::SeqCst);
        if self.words.flags() & QUEUE_NEEDS_WAKEUP != 0 {
            self.enter(0, ENTER_SQ_WAKEUP, None)
        } else {
            Ok(())
        }
    }

    /// One `io_uring_enter`. A signal, a timeout and a lack of memory are no errors: the caller checks the queue and
    /// decides again.
    fn enter(&mut self, minimum: u32, flags: u32, limit: Option<Duration>) -> io::Result<()> {
        let (descriptor, flags) = match self.registered {
            Some(index) => (index, flags | ENTER_REGISTERED_RING),
            None => (self.ring.as_raw_fd(), flags),
        };
        let wait = EnterWait { completions: minimum, limit, minimum: Duration::ZERO };
        // SAFETY: invariant 1.
        let result = unsafe { ring::enter(descriptor, self.unsubmitted, flags, wait) };
        match result {
            Ok(taken) => {
                self.unsubmitted = self.unsubmitted.saturating_sub(taken);
                Ok(())
            }
            Err(error) => match error.raw_os_error() {
                Some(libc::EINTR | libc::ETIME | libc::EAGAIN | libc::EBUSY) => Ok(()),
                _ => Err(error),
            },
        }
    }

    fn drain(&mut self, completed: &mut Vec<Completed>) -> io::Result<()> {
        let mut strays = 0;
        for entry in self.ring.completion() {
            let slot = entry.user_data() as u32;
            if self.blocks.finish(slot) {
                completed.push(Completed { slot, result: entry.result() });
            } else {
                strays += 1;
            }
        }
        if strays == 0 {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "a completion of no operation in flight"))
    }
}

impl Drop for BlockRing {
    fn drop(&mut self) {
        let mut ended = Vec::with_capacity(self.blocks.slots() as usize);
        while self.blocks.in_flight() > 0 {
            // If the ring no longer works, the buffers stay mapped forever: see `Blocks`.
            if self.wait(None, &mut ended).is_err() {
                break;
            }
        }
        if let Some(index) = self.registered {
            // SAFETY: the ring is open for as long as the borrow lasts, which is this call.
            let descriptor = unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) };
            // A failure has no effect: then the kernel drops the ring when the thread ends.
            let _: io::Result<()> = ring::unregister_ring(descriptor, index);
        }
    }
}

fn set_up(slots: u32, options: &RingOptions) -> Result<(IoUring, QueueWords), SetupError> {
    let mut parameters = SetupParameters {
        flags: setup_flags(options),
        submission_thread_idle_ms: if options.submission_thread { SUBMISSION_THREAD_IDLE_MS } else { 0 },
        ..SetupParameters::default()
    };
    // SAFETY: `parameters` is one correctly laid out record; the kernel writes only into it.
    let descriptor = unsafe { libc::syscall(libc::SYS_io_uring_setup, slots, &raw mut parameters) };
    if descriptor < 0 {
        return Err(SetupError { step: "io_uring_setup", source: io::Error::last_os_error() });
    }
    // SAFETY: both are `struct io_uring_params`; size and alignment are asserted above.
    let known = unsafe { std::mem::transmute::<SetupParameters, Parameters>(parameters) };
    // SAFETY: the kernel has just returned the descriptor, with these parameters.
    let ring = unsafe { IoUring::from_fd(descriptor as RawFd, known) }
        .map_err(SetupError::at("mapping the queues"))?;
    let words =
        QueueWords::map(ring.as_raw_fd(), &parameters).map_err(SetupError::at("mapping the queues"))?;
    Ok((ring, words))
}

fn setup_flags(options: &RingOptions) -> u32 {
    let mut flags = SETUP_SUBMIT_ALL;
    if options.submission_thread {
        flags |= SETUP_SQPOLL;
    } else {
        flags |= match options.task_run {
            TaskRun::Interrupting => 0,
            TaskRun::Cooperative => SETUP_COOP_TASKRUN | SETUP_TASKRUN_FLAG,
            TaskRun::Deferred => SETUP_DEFER_TASKRUN | SETUP_SINGLE_ISSUER | SETUP_TASKRUN_FLAG,
        };
    }
    if options.polled || options.polled_hybrid {
        flags |= SETUP_IOPOLL;
    }
    if options.polled_hybrid {
        flags |= SETUP_HYBRID_IOPOLL;
    }
    flags
}

fn entry(operation: &Operation, buffer: *mut u8, descriptor: RawFd, options: &RingOptions) -> squeue::Entry {
    let file = types::Fd(if options.fixed_file { 0 } else { descriptor });
    let (bytes, offset) = (operation.bytes, operation.offset_bytes);
    let index = operation.slot as u16;
    let entry = match (operation.kind, options.fixed_buffers) {
        (OperationKind::Read, false) => opcode::Read::new(file, buffer, bytes).offset(offset).build(),
        (OperationKind::Read, true) => {
            opcode::ReadFixed::new(file, buffer, bytes, index).offset(offset).build()
        }
        (OperationKind::Write, false) => opcode::Write::new(file, buffer, bytes).offset(offset).build(),
        (OperationKind::Write, true) => {
            opcode::WriteFixed::new(file, buffer, bytes, index).offset(offset).build()
        }
        (OperationKind::Fsync, _) => opcode::Fsync::new(file).build(),
        (OperationKind::Fdatasync, _) => opcode::Fsync::new(file).flags(types::FsyncFlags::DATASYNC).build(),
    };
    let entry = entry.user_data(operation.slot.into());
    if options.fixed_file { entry.flags(squeue::Flags::FIXED_FILE) } else { entry }
}

/// The queue words that a polling thread reads, mapped a second time: the crate's own access writes the queue heads
/// back each time, into the cache lines that the completing CPU needs.
struct QueueWords {
    base: NonNull<u8>,
    length_bytes: usize,
    flags_at: usize,
    completion_head_at: usize,
    completion_tail_at: usize,
}

impl QueueWords {
    fn map(ring: RawFd, parameters: &SetupParameters) -> io::Result<Self> {
        let flags_at = parameters.submission_offsets.fifth as usize;
        let completion_head_at = parameters.completion_offsets.head as usize;
        let completion_tail_at = parameters.completion_offsets.tail as usize;
        let length_bytes = flags_at.max(completion_head_at).max(completion_tail_at) + size_of::<u32>();
        // SAFETY: a fresh shared mapping for reading, at an address the kernel chooses; offset 0 is that of both
        // queues (IORING_FEAT_SINGLE_MMAP, 5.4).
        let address = unsafe {
            libc::mmap(std::ptr::null_mut(), length_bytes, libc::PROT_READ, libc::MAP_SHARED, ring, 0)
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(address.cast()).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(Self { base, length_bytes, flags_at, completion_head_at, completion_tail_at })
    }

    #[inline]
    fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: `map` mapped at least up to the end of each of the three words, and the kernel aligns them.
        unsafe { &*self.base.as_ptr().add(at).cast::<AtomicU32>() }
    }

    #[inline]
    fn flags(&self) -> u32 {
        self.word(self.flags_at).load(Ordering::Acquire)
    }

    #[inline]
    fn has_completions(&self) -> bool {
        // Only this thread writes the head.
        let head = self.word(self.completion_head_at).load(Ordering::Relaxed);
        self.word(self.completion_tail_at).load(Ordering::Acquire) != head
    }
}

impl Drop for QueueWords {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and has this length; no reference to it outlives `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.length_bytes) };
    }
}
