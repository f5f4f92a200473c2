//! The kernel's asynchronous I/O; completions are read from its mapped ring.

use std::{fs::File, io, time::Duration};

use weir_sys::aio::{AioQueue, Reaping};

use super::{Completed, Engine, Operation, idle_buffer};

pub(super) struct Libaio {
    queue: AioQueue,
}

impl Libaio {
    pub(super) fn new(file: File, depth: u32, block_bytes: u32) -> io::Result<Self> {
        Self::with(file, depth, block_bytes, Reaping::Mapped)
    }

    pub(super) fn with(file: File, depth: u32, block_bytes: u32, reaping: Reaping) -> io::Result<Self> {
        Ok(Self { queue: AioQueue::new(file, depth, block_bytes, reaping)? })
    }

    /// Whether completions are really read from the mapped ring.
    pub(super) fn is_mapped(&self) -> bool {
        self.queue.reaping() == Reaping::Mapped
    }
}

impl Engine for Libaio {
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        idle_buffer(self.queue.blocks(), slot)
    }

    fn submit(&mut self, operations: &[Operation]) -> io::Result<usize> {
        self.queue.submit(operations)
    }

    fn poll(&mut self, completed: &mut Vec<Completed>) -> io::Result<()> {
        self.queue.poll(completed)
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
