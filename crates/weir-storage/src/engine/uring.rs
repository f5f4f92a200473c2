//! io_uring in all its modes. A mode that the kernel or the device does not support is refused here, with the reason.

use std::{fs::File, io, time::Duration};

use weir_record::storage::{RingMode, StorageEngineOptions, StorageJob};
use weir_sys::block_ring::{BlockRing, RingOptions, TaskRun};

use super::{Completed, Engine, EngineError, Operation, OperationKind, idle_buffer, probe};

pub(super) struct Uring {
    ring: BlockRing,
}

impl Uring {
    pub(super) fn new(file: File, job: &StorageJob) -> Result<Self, EngineError> {
        let options = &job.options;
        let refused = |reason: String| EngineError::Refused { mode: mode(options), reason };
        // Read now, because the ring owns the file afterwards.
        let queue = probe::polled_queues(&file);
        let ring = BlockRing::new(file, job.depth, job.block_bytes, ring_options(options))
            .map_err(|error| refused(probe::explain_ring(options, &error)))?;
        let mut engine = Self { ring };
        if options.iopoll || options.hybrid_iopoll {
            // The kernel creates such a ring for every file, but fails its first operation.
            let result = engine.try_reading(job).map_err(|error| refused(error.to_string()))?;
            if result < 0 {
                return Err(refused(probe::explain_polled(-result, queue.as_ref())));
            }
        }
        Ok(engine)
    }

    fn try_reading(&mut self, job: &StorageJob) -> io::Result<i32> {
        let operation = Operation {
            slot: 0,
            kind: OperationKind::Read,
            offset_bytes: job.offset_bytes,
            bytes: job.block_bytes,
        };
        let mut completed = Vec::with_capacity(1);
        self.ring.submit_and_wait(&[operation], &mut completed)?;
        completed.first().map(|completed| completed.result).ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }
}

fn ring_options(options: &StorageEngineOptions) -> RingOptions {
    RingOptions {
        submission_thread: options.sqpoll,
        polled: options.iopoll,
        polled_hybrid: options.hybrid_iopoll,
        fixed_buffers: options.fixed_buffers,
        fixed_file: options.fixed_files,
        task_run: match options.ring_mode {
            RingMode::Default => TaskRun::Interrupting,
            RingMode::Coop => TaskRun::Cooperative,
            RingMode::Defer => TaskRun::Deferred,
        },
    }
}

/// The mode in terms of the command line.
fn mode(options: &StorageEngineOptions) -> String {
    let parts = [
        (options.hybrid_iopoll, "hybrid_iopoll"),
        (options.iopoll && !options.hybrid_iopoll, "iopoll"),
        (options.sqpoll, "sqpoll"),
        (options.fixed_buffers, "fixed buffers"),
        (options.fixed_files, "fixed files"),
        (options.ring_mode == RingMode::Coop && !options.sqpoll, "coop"),
        (options.ring_mode == RingMode::Defer && !options.sqpoll, "defer"),
    ];
    let set: Vec<&str> = parts.into_iter().filter_map(|(set, name)| set.then_some(name)).collect();
    if set.is_empty() { "io_uring".to_owned() } else { format!("io_uring ({})", set.join(", ")) }
}

impl Engine for Uring {
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        idle_buffer(self.ring.blocks(), slot)
    }

    fn submit(&mut self, operations: &[Operation]) -> io::Result<usize> {
        self.ring.submit(operations)
    }

    fn poll(&mut self, completed: &mut Vec<Completed>) -> io::Result<()> {
        self.ring.poll(completed)
    }

    fn wait(&mut self, completed: &mut Vec<Completed>) -> io::Result<()> {
        self.ring.wait(None, completed)
    }

    fn wait_at_most(&mut self, limit: Duration, completed: &mut Vec<Completed>) -> io::Result<()> {
        self.ring.wait(Some(limit), completed)
    }

    fn submit_and_wait(
        &mut self,
        operations: &[Operation],
        completed: &mut Vec<Completed>,
    ) -> io::Result<usize> {
        self.ring.submit_and_wait(operations, completed)
    }

    fn sleep_whole(&mut self, length: Duration) -> Option<io::Result<()>> {
        self.ring.sleep_whole(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_named_as_on_the_command_line() {
        let options = StorageEngineOptions::default();
        assert_eq!(mode(&options), "io_uring (defer)");
        let options = StorageEngineOptions { hybrid_iopoll: true, iopoll: true, sqpoll: true, ..options };
        assert_eq!(mode(&options), "io_uring (hybrid_iopoll, sqpoll)");
        let options =
            StorageEngineOptions { ring_mode: RingMode::Default, ..StorageEngineOptions::default() };
        assert_eq!(mode(&options), "io_uring");
    }
}
