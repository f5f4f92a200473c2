//! POSIX asynchronous I/O: threads of the C library.

use std::{fs::File, io, time::Duration};

use weir_sys::posix_aio::PosixAioQueue;

use super::{Completed, Engine, Operation, idle_buffer};

pub(super) struct PosixAio {
    queue: PosixAioQueue,
}

impl PosixAio {
    pub(super) fn new(file: File, depth: u32, block_bytes: u32) -> io::Result<Self> {
        Ok(Self { queue: PosixAioQueue::new(file, depth, block_bytes)? })
    }
}

impl Engine for PosixAio {
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        idle_buffer(self.queue.blocks(), slot)
    }

    fn submit(&mut self, operations: &[Operation]) -> io::Result<usize> {
        self.queue.submit(operations)
    }

    fn poll(&mut self, completed: &mut Vec<Completed>) -> io::Result<()> {
        self.queue.poll(completed);
        Ok(())
    }

    fn wait(&mut self, completed: &mut Vec<Completed>) -> io::Result<()> {
        self.queue.wait(None, completed)
    }

    fn wait_at_most(&mut self, limit: Duration, completed: &mut Vec<Completed>) -> io::Result<()> {
        self.queue.wait(Some(limit), completed)
    }

    fn sleep_whole(&mut self, _length: Duration) -> Option<io::Result<()>> {
        None
    }
}
