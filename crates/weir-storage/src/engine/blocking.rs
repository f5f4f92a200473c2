//! Synchronous engines: when `submit` returns, the operation is complete. One operation at a time.

use std::{
    fs::File,
    io::{self, IoSlice, IoSliceMut},
    os::unix::fs::FileExt,
    time::Duration,
};

use rustix::io::{Errno, ReadWriteFlags, preadv2, pwritev2};

use super::{Completed, Engine, Operation, OperationKind};

/// Buffers begin at multiples of this.
const ALIGNMENT_BYTES: usize = 4096;

/// Memory with a fixed address that is a multiple of 4096, as `O_DIRECT` needs it.
pub(crate) struct AlignedBuffer {
    memory: Box<[u8]>,
    start: usize,
    bytes: usize,
}

impl AlignedBuffer {
    /// Zeroed memory, with every page touched.
    pub(crate) fn new(bytes: usize) -> Self {
        let mut memory = vec![0xff_u8; bytes + ALIGNMENT_BYTES].into_boxed_slice();
        memory.fill(0);
        let start = memory.as_ptr().align_offset(ALIGNMENT_BYTES);
        Self { memory, start, bytes }
    }

    pub(crate) fn as_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.bytes]
    }
}

/// The engine of `pread(2)` and `pwrite(2)`.
pub(super) struct Pread {
    file: File,
    buffer: AlignedBuffer,
    done: Option<Completed>,
}

impl Pread {
    pub(super) fn new(file: File, block_bytes: u32) -> Self {
        Self { file, buffer: AlignedBuffer::new(block_bytes as usize), done: None }
    }
}

/// Does one operation with plain calls; returns its completion's result.
pub(super) fn transfer(file: &File, operation: &Operation, buffer: &mut AlignedBuffer) -> i32 {
    let bytes = operation.bytes as usize;
    let buffer = &mut buffer.as_mut()[..bytes];
    result_of(|| match operation.kind {
        OperationKind::Read => file.read_at(buffer, operation.offset_bytes),
        OperationKind::Write => file.write_at(buffer, operation.offset_bytes),
        OperationKind::Fsync => file.sync_all().map(|()| 0),
        OperationKind::Fdatasync => file.sync_data().map(|()| 0),
    })
}

/// Bytes or a negative error number; a call interrupted before it did anything is repeated.
fn result_of(mut call: impl FnMut() -> io::Result<usize>) -> i32 {
    loop {
        return match call() {
            Ok(bytes) => i32::try_from(bytes).unwrap_or(i32::MAX),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => -error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()),
        };
    }
}

/// The single operation to submit, if there is one and its buffer has room.
fn only<'a>(
    operations: &'a [Operation],
    done: Option<&Completed>,
    block_bytes: usize,
) -> io::Result<Option<&'a Operation>> {
    let Some(first) = operations.first().filter(|_| done.is_none()) else { return Ok(None) };
    if first.slot != 0 || first.bytes as usize > block_bytes {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(Some(first))
}

impl Engine for Pread {
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        assert!(slot == 0 && self.done.is_none(), "slot {slot} is not idle");
        self.buffer.as_mut()
    }

    fn submit(&mut self, operations: &[Operation]) -> io::Result<usize> {
        let Some(operation) = only(operations, self.done.as_ref(), self.buffer.bytes)? else { return Ok(0) };
        let result = transfer(&self.file, operation, &mut self.buffer);
        self.done = Some(Completed { slot: 0, result });
        Ok(1)
    }

    fn poll(&mut self, completed: &mut Vec<Completed>) -> io::Result<()> {
        completed.extend(self.done.take());
        Ok(())
    }

    fn wait(&mut self, completed: &mut Vec<Completed>) -> io::Result<()> {
        self.poll(completed)
    }

    fn wait_at_most(&mut self, _limit: Duration, completed: &mut Vec<Completed>) -> io::Result<()> {
        self.poll(completed)
    }

    fn sleep_whole(&mut self, _length: Duration) -> Option<io::Result<()>> {
        None
    }

    fn is_asynchronous(&self) -> bool {
        false
    }
}

/// The engine of `preadv2(2)` and `pwritev2(2)` with one buffer and, if requested, `RWF_HIPRI`.
pub(super) struct Pwritev {
    file: File,
    buffer: AlignedBuffer,
    flags: ReadWriteFlags,
    done: Option<Completed>,
}

impl Pwritev {
    pub(super) fn new(file: File, block_bytes: u32, high_priority: bool) -> Self {
        let flags = if high_priority { ReadWriteFlags::HIPRI } else { ReadWriteFlags::empty() };
        Self { file, buffer: AlignedBuffer::new(block_bytes as usize), flags, done: None }
    }
}

impl Engine for Pwritev {
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        assert!(slot == 0 && self.done.is_none(), "slot {slot} is not idle");
        self.buffer.as_mut()
    }

    fn submit(&mut self, operations: &[Operation]) -> io::Result<usize> {
        let Some(operation) = only(operations, self.done.as_ref(), self.buffer.bytes)? else { return Ok(0) };
        let (file, offset, flags) = (&self.file, operation.offset_bytes, self.flags);
        let buffer = &mut self.buffer.as_mut()[..operation.bytes as usize];
        let result = result_of(|| match operation.kind {
            OperationKind::Read => Ok(preadv2(file, &mut [IoSliceMut::new(buffer)], offset, flags)?),
            OperationKind::Write => Ok(pwritev2(file, &[IoSlice::new(buffer)], offset, flags)?),
            OperationKind::Fsync => file.sync_all().map(|()| 0),
            OperationKind::Fdatasync => file.sync_data().map(|()| 0),
        });
        self.done = Some(Completed { slot: 0, result });
        Ok(1)
    }

    fn poll(&mut self, completed: &mut Vec<Completed>) -> io::Result<()> {
        completed.extend(self.done.take());
        Ok(())
    }

    fn wait(&mut self, completed: &mut Vec<Completed>) -> io::Result<()> {
        self.poll(completed)
    }

    fn wait_at_most(&mut self, _limit: Duration, completed: &mut Vec<Completed>) -> io::Result<()> {
        self.poll(completed)
    }

    fn sleep_whole(&mut self, _length: Duration) -> Option<io::Result<()>> {
        None
    }

    fn is_asynchronous(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_stay_where_they_are() {
        let mut buffers: Vec<AlignedBuffer> = [1, 512, 4096, 65_536].map(AlignedBuffer::new).into();
        let addresses = |buffers: &mut Vec<AlignedBuffer>| -> Vec<usize> {
            buffers.iter_mut().map(|buffer| buffer.as_mut().as_ptr() as usize).collect()
        };
        let before = addresses(&mut buffers);
        assert!(before.iter().all(|address| address % ALIGNMENT_BYTES == 0));
        buffers.reserve(100);
        assert_eq!(addresses(&mut buffers), before);
        assert_eq!(
            buffers.iter_mut().map(|buffer| buffer.as_mut().len()).collect::<Vec<_>>(),
            [1, 512, 4096, 65_536]
        );
    }

    #[test]
    fn an_interrupted_call_is_made_again_and_other_errors_are_results() {
        let mut answers = vec![
            Err(io::Error::from_raw_os_error(Errno::NOSPC.raw_os_error())),
            Ok(7),
            Err(io::Error::from_raw_os_error(Errno::INTR.raw_os_error())),
        ];
        assert_eq!(result_of(|| answers.pop().expect("an answer")), 7);
        assert_eq!(result_of(|| answers.pop().expect("an answer")), -Errno::NOSPC.raw_os_error());
    }
}
