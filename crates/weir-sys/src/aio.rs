//! The kernel's asynchronous I/O (`io_submit(2)`), commonly called libaio after its library.
//!
//! Completions are read without a system call from the ring that the kernel maps into the process: the context's
//! number is the ring's address. libaio, fio and others read it in the same way, and the layout has not changed since
//! 2.5. The magic number and feature words are still checked first; if they are not as expected, `io_getevents(2)` is
//! called instead.
//!
//! Writes are made durable by a call in this thread at submission (`fsync(2)`, `fdatasync(2)`): the context's own
//! fsync operation came late (Linux 4.18) and uses a kernel thread, and programs that use libaio block in fsync.
//! Writes in flight continue meanwhile.
//!
//! Invariants of [`AioQueue`]: (1) `context` is a context that `io_setup` returned and that no other code uses; its
//! ring stays mapped until `io_destroy`; (2) a control block is read by the kernel during `io_submit` only, and its
//! buffer stays in flight in `blocks` until its event was taken; (3) the ring's head is written by the kernel only
//! inside `io_getevents`, which only this value calls.

use std::{
    fs::File,
    io,
    os::fd::AsRawFd,
    ptr::NonNull,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use crate::blocks::{Blocks, Completed, Operation, OperationKind};

const RING_MAGIC: u32 = 0xa10a_10a1;
const RING_HEADER_BYTES: usize = 32;
const RING_CAPACITY_AT: usize = 4;
const RING_HEAD_AT: usize = 8;
const RING_TAIL_AT: usize = 12;
const RING_MAGIC_AT: usize = 16;
const RING_INCOMPATIBLE_AT: usize = 24;
const RING_HEADER_BYTES_AT: usize = 28;

const COMMAND_READ: u16 = 0;
const COMMAND_WRITE: u16 = 1;

/// `struct iocb`. `key` and `flags_of_the_call` are swapped on big-endian machines; both are 0 here.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct ControlBlock {
    data: u64,
    key: u32,
    flags_of_the_call: i32,
    command: u16,
    priority: i16,
    descriptor: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    result_descriptor: u32,
}

/// `struct io_event`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Event {
    data: u64,
    control_block: u64,
    result: i64,
    result_second: i64,
}

const _: () = assert!(size_of::<ControlBlock>() == 64);
const _: () = assert!(size_of::<Event>() == 32);

/// How completions are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaping {
    /// From the mapped ring, if its layout is as expected.
    Mapped,
    /// By `io_getevents`.
    SystemCall,
}

/// One context with its file and its buffers.
pub struct AioQueue {
    context: u64,
    ring: Option<MappedRing>,
    control_blocks: Box<[ControlBlock]>,
    /// Addresses for one `io_submit`.
    prepared: Vec<*mut ControlBlock>,
    /// Where `io_getevents` writes.
    events: Box<[Event]>,
    /// Operations that completed at submission: syncs, and operations that the kernel refused.
    immediate: Vec<Completed>,
    blocks: Blocks,
    file: File,
}

impl std::fmt::Debug for AioQueue {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("AioQueue")
            .field("mapped", &self.ring.is_some())
            .field("blocks", &self.blocks)
            .finish_non_exhaustive()
    }
}

impl AioQueue {
    /// A context for `slots` operations on one file.
    pub fn new(file: File, slots: u32, block_bytes: u32, reaping: Reaping) -> io::Result<Self> {
        let blocks = Blocks::new(slots, block_bytes)?;
        let mut context = 0_u64;
        // SAFETY: `context` is a valid place for one aio_context_t and is zero, as the call requires.
        let result = unsafe { libc::syscall(libc::SYS_io_setup, slots, &raw mut context) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        let ring = match reaping {
            // SAFETY: invariant 1: the number of a new context is the address of its ring.
            Reaping::Mapped => unsafe { MappedRing::of(context) },
            Reaping::SystemCall => None,
        };
        let slots = slots as usize;
        Ok(Self {
            context,
            ring,
            control_blocks: vec![ControlBlock::default(); slots].into_boxed_slice(),
            prepared: Vec::with_capacity(slots),
            events: vec![Event::default(); slots].into_boxed_slice(),
            immediate: Vec::with_capacity(slots),
            blocks,
            file,
        })
    }

    /// The method actually used to read completions.
    pub fn reaping(&self) -> Reaping {
        if self.ring.is_some() { Reaping::Mapped } else { Reaping::SystemCall }
    }

    /// The buffers.
    pub fn blocks(&mut self) -> &mut Blocks {
        &mut self.blocks
    }

    /// Submits operations, in order. An operation that the kernel refuses becomes a completion; after `EAGAIN` fewer
    /// are taken.
    pub fn submit(&mut self, operations: &[Operation]) -> io::Result<usize> {
        let mut taken = 0;
        for same in operations.chunk_by(|first, second| first.kind.transfers() == second.kind.transfers()) {
            let is_transfer = same[0].kind.transfers();
            let result = if is_transfer { self.submit_transfers(same) } else { self.make_durable(same) };
            let count = match result {
                Err(error) if taken == 0 => return Err(error),
                // The error is returned when the first remaining operation is submitted again, alone.
                result => result.unwrap_or(0),
            };
            taken += count;
            // Later operations must not overtake those that were not taken.
            if count < same.len() {
                break;
            }
        }
        Ok(taken)
    }

    /// Syncs in this thread: complete on return.
    fn make_durable(&mut self, operations: &[Operation]) -> io::Result<usize> {
        for operation in operations {
            self.blocks.start(operation)?;
            // Writes in flight to the same file continue.
            let result = match operation.kind {
                OperationKind::Fdatasync => self.file.sync_data(),
                _ => self.file.sync_all(),
            };
            let number = result.err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EIO));
            self.immediate.push(Completed { slot: operation.slot, result: -number });
        }
        Ok(operations.len())
    }

    fn submit_transfers(&mut self, operations: &[Operation]) -> io::Result<usize> {
        self.prepared.clear();
        for operation in operations {
            match self.blocks.start(operation) {
                Ok(buffer) => self.prepare(operation, buffer),
                Err(error) if self.prepared.is_empty() => return Err(error),
                Err(_) => break,
            }
        }
        let taken = self.hand_over();
        for operation in &operations[taken..self.prepared.len()] {
            self.blocks.finish(operation.slot);
        }
        Ok(taken)
    }

    fn prepare(&mut self, operation: &Operation, buffer: *mut u8) {
        let command = match operation.kind {
            OperationKind::Read => COMMAND_READ,
            // Only reads and writes are prepared.
            _ => COMMAND_WRITE,
        };
        let control_block = ControlBlock {
            data: operation.slot.into(),
            command,
            descriptor: self.file.as_raw_fd() as u32,
            buffer: buffer as u64,
            bytes: operation.bytes.into(),
            offset: operation.offset_bytes as i64,
            ..ControlBlock::default()
        };
        self.control_blocks[operation.slot as usize] = control_block;
        self.prepared.push(&raw mut self.control_blocks[operation.slot as usize]);
    }

    /// Number of prepared operations that the kernel took or refused for good.
    fn hand_over(&mut self) -> usize {
        let mut taken = 0;
        while taken < self.prepared.len() {
            let rest = &mut self.prepared[taken..];
            // SAFETY: invariant 2: every pointer is to a block of `control_blocks`, whose buffers are in flight.
            let result =
                unsafe { libc::syscall(libc::SYS_io_submit, self.context, rest.len(), rest.as_mut_ptr()) };
            if result > 0 {
                taken += result as usize;
                continue;
            }
            match io::Error::last_os_error().raw_os_error() {
                _ if result == 0 => break,
                Some(libc::EINTR) => {}
                Some(libc::EAGAIN) | None => break,
                Some(number) => {
                    // SAFETY: invariant 2: the pointer is to a block of ours, which is not written meanwhile.
                    let slot = unsafe { (*rest[0]).data } as u32;
                    self.immediate.push(Completed { slot, result: -number });
                    taken += 1;
                }
            }
        }
        taken
    }

    /// Appends completed operations; no system call if the ring is mapped.
    pub fn poll(&mut self, completed: &mut Vec<Completed>) -> io::Result<()> {
        self.take_immediate(completed);
        if self.ring.is_some() {
            self.take_mapped(completed)
        } else {
            self.take(0, Some(Duration::ZERO), completed)
        }
    }

    /// Appends completed operations; sleeps until there is at least one, or `limit` has passed.
    pub fn wait(&mut self, limit: Option<Duration>, completed: &mut Vec<Completed>) -> io::Result<()> {
        let before = completed.len();
        self.take_immediate(completed);
        self.take_mapped(completed)?;
        while completed.len() == before && self.blocks.in_flight() > 0 {
            self.take(1, limit, completed)?;
            if limit.is_some() {
                break;
            }
        }
        Ok(())
    }

    fn take_immediate(&mut self, completed: &mut Vec<Completed>) {
        for done in self.immediate.drain(..) {
            self.blocks.finish(done.slot);
            completed.push(done);
        }
    }

    fn take_mapped(&mut self, completed: &mut Vec<Completed>) -> io::Result<()> {
        let Some(ring) = &mut self.ring else { return Ok(()) };
        while let Some(event) = ring.next() {
            accept(&mut self.blocks, &event, completed)?;
        }
        Ok(())
    }

    /// One `io_getevents`. An interruption by a signal returns no completions and is no error.
    fn take(
        &mut self,
        minimum: usize,
        limit: Option<Duration>,
        completed: &mut Vec<Completed>,
    ) -> io::Result<()> {
        let time = limit.map(|limit| libc::timespec {
            tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: limit.subsec_nanos() as libc::c_long,
        });
        // SAFETY: `events` has room for as many records as the call may write; `time` lives until it returns.
        let result = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.context,
                minimum,
                self.events.len(),
                self.events.as_mut_ptr(),
                time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref),
            )
        };
        if result < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) };
        }
        for event in &self.events[..result as usize] {
            accept(&mut self.blocks, event, completed)?;
        }
        Ok(())
    }
}

fn accept(blocks: &mut Blocks, event: &Event, completed: &mut Vec<Completed>) -> io::Result<()> {
    let slot = event.data as u32;
    if !blocks.finish(slot) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a completion of no operation in flight"));
    }
    completed.push(Completed { slot, result: i32::try_from(event.result).unwrap_or(i32::MIN) });
    Ok(())
}

impl Drop for AioQueue {
    fn drop(&mut self) {
        // SAFETY: invariant 1. The call returns when nothing of this context is in flight.
        let result = unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
        if result == 0 {
            self.blocks.finish_all();
        }
    }
}

/// The ring of one context. Valid until the context is destroyed.
struct MappedRing {
    base: NonNull<u8>,
    capacity: u32,
}

impl MappedRing {
    /// # Safety
    /// `context` must come from `io_setup`, and the result must not be used after its `io_destroy`.
    unsafe fn of(context: u64) -> Option<Self> {
        let base = NonNull::new(context as *mut u8)?;
        // SAFETY: a context's number is the address of its ring, which begins with a header of eight such words.
        let word = |at: usize| unsafe { base.as_ptr().add(at).cast::<u32>().read_volatile() };
        let capacity = word(RING_CAPACITY_AT);
        let known = word(RING_MAGIC_AT) == RING_MAGIC
            && word(RING_INCOMPATIBLE_AT) == 0
            && word(RING_HEADER_BYTES_AT) as usize == RING_HEADER_BYTES
            && capacity > 0;
        known.then_some(Self { base, capacity })
    }

    fn position(&self, at: usize) -> &AtomicU32 {
        // SAFETY: invariant 1 of the file: the header is mapped while `self` lives; the word is aligned.
        unsafe { &*self.base.as_ptr().add(at).cast::<AtomicU32>() }
    }

    #[inline]
    fn next(&mut self) -> Option<Event> {
        let head = self.position(RING_HEAD_AT).load(Ordering::Relaxed);
        let tail = self.position(RING_TAIL_AT).load(Ordering::Acquire);
        if head == tail || head >= self.capacity {
            return None;
        }
        let at = RING_HEADER_BYTES + head as usize * size_of::<Event>();
        // SAFETY: invariant 1 of the file: the ring has `capacity` records behind its header, and the kernel has
        // written this one before it moved the tail (acquired above).
        let event = unsafe { self.base.as_ptr().add(at).cast::<Event>().read() };
        let after = if head + 1 == self.capacity { 0 } else { head + 1 };
        // Invariant 3: only this code moves the head now.
        self.position(RING_HEAD_AT).store(after, Ordering::Release);
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::Region;

    const CAPACITY: u32 = 3;

    /// A ring laid out like the kernel's, in our own memory.
    struct Fake {
        region: Region,
    }

    impl Fake {
        fn new() -> Self {
            let mut fake = Self { region: Region::new(4096).expect("memory") };
            fake.set(RING_CAPACITY_AT, CAPACITY);
            fake.set(RING_MAGIC_AT, RING_MAGIC);
            fake.set(RING_HEADER_BYTES_AT, RING_HEADER_BYTES as u32);
            fake
        }

        fn set(&mut self, at: usize, value: u32) {
            // SAFETY: the header is inside the region, and its words are aligned.
            unsafe { self.region.base().as_ptr().add(at).cast::<u32>().write_volatile(value) };
        }

        fn ring(&self) -> Option<MappedRing> {
            // SAFETY: the address is that of a page laid out like a ring, which outlives the result in each test.
            unsafe { MappedRing::of(self.region.base().as_ptr() as u64) }
        }

        fn complete(&mut self, at: u32, data: u64) {
            let event = Event { data, result: 4096, ..Event::default() };
            let place = RING_HEADER_BYTES + at as usize * size_of::<Event>();
            // SAFETY: the tests write below the capacity, which is inside the region.
            unsafe { self.region.base().as_ptr().add(place).cast::<Event>().write(event) };
            self.set(RING_TAIL_AT, (at + 1) % CAPACITY);
        }
    }

    #[test]
    fn completions_are_taken_in_order_around_the_end_of_the_ring() {
        let mut fake = Fake::new();
        let mut ring = fake.ring().expect("as expected");
        assert!(ring.next().is_none());
        for round in 0..7_u32 {
            fake.complete(round % CAPACITY, round.into());
            let event = ring.next().expect("one");
            assert_eq!((event.data, event.result), (round.into(), 4096));
            assert!(ring.next().is_none());
        }
    }

    #[test]
    fn a_ring_that_is_not_as_expected_is_not_read() {
        for (at, value) in [
            (RING_MAGIC_AT, RING_MAGIC + 1),
            (RING_INCOMPATIBLE_AT, 1),
            (RING_HEADER_BYTES_AT, 64),
            (RING_CAPACITY_AT, 0),
        ] {
            let mut fake = Fake::new();
            assert!(fake.ring().is_some());
            fake.set(at, value);
            assert!(fake.ring().is_none(), "word at {at}");
        }
    }

    #[test]
    fn a_head_beyond_the_ring_gives_nothing() {
        let mut fake = Fake::new();
        let mut ring = fake.ring().expect("as expected");
        fake.set(RING_HEAD_AT, CAPACITY);
        assert!(ring.next().is_none());
    }
}
