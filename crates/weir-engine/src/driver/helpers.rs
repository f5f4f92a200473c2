//! Helper threads for calls on files that may block: the counterpart of io_uring's kernel workers.
//!
//! The threads are a pool of the runtime (`thread_pool.rs`), which start when there are more jobs than threads, and end
//! with it. Their number and the number of queued calls are limited. A thread announces a finished call by a write to
//! the runtime's wake-up descriptor, one write for all calls that finish before the runtime looks.
//!
//! A job owns everything it touches. So the runtime can end while a thread hangs in a call: the thread is left
//! behind, and its job's memory is freed when the call returns.

use std::{
    io, mem,
    os::fd::OwnedFd,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Poll, Waker},
};

use super::{
    contract::DriverParts,
    files::{FileOperation, FileResult, Operations, Outcome, Request, Step, perform},
};
use crate::{
    counters::Counters,
    slab::SlotId,
    thread_pool::{PoolRules, ThreadPool},
};

/// The result of a thread's job.
type Done = (SlotId, io::Result<Outcome<Vec<u8>>>);

#[derive(Debug)]
struct Finished {
    done: Mutex<Vec<Done>>,
    /// A finished call was announced to the runtime, which has not looked since.
    announced: AtomicBool,
    wake: Arc<OwnedFd>,
    counters: Arc<Counters>,
}

/// The helper threads of one runtime, and the operations they work on.
#[derive(Debug)]
pub(crate) struct Helpers {
    pool: ThreadPool<(SlotId, Request)>,
    finished: Arc<Finished>,
    operations: Operations<()>,
    /// Kept to reuse its memory.
    taken: Vec<Done>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Helpers {
    pub(crate) fn new(parts: &DriverParts) -> Self {
        let limits = &parts.config.limits;
        let finished = Arc::new(Finished {
            done: Mutex::default(),
            announced: AtomicBool::new(false),
            wake: Arc::clone(&parts.wake),
            counters: Arc::clone(&parts.counters),
        });
        let rules = PoolRules {
            name: "weir-file",
            threads_max: limits.file_threads_max,
            queue_max: limits.file_operations_max,
            idle: None,
        };
        let of_threads = Arc::clone(&finished);
        let work = move |(id, request)| of_threads.add((id, perform(request, &of_threads.counters)));
        Self {
            pool: ThreadPool::new(rules, work),
            finished,
            operations: Operations::new(limits.file_operations_max, &parts.departed),
            taken: Vec::new(),
        }
    }

    /// Gives an operation to a thread when the limit allows it, and waits for its answer.
    pub(crate) fn poll(&mut self, operation: &mut FileOperation, waker: &Waker) -> Poll<FileResult> {
        match self.operations.poll(operation, waker) {
            Step::Over(answer) => Poll::Ready(answer),
            Step::Pending => Poll::Pending,
            Step::Admitted(request) => {
                let id = self.operations.begin(operation, waker, ());
                // The limit on operations in flight is the one of the queue.
                self.pool.push((id, request));
                Poll::Pending
            }
        }
    }

    /// The future of an operation was dropped.
    pub(crate) fn forget(&mut self, operation: &mut FileOperation) {
        self.operations.forget(operation);
    }

    /// Hands out the results that have come since the last look.
    pub(crate) fn collect(&mut self) {
        // Before the look: a thread that finishes after this swap announces itself again.
        self.finished.announced.swap(false, Ordering::AcqRel);
        mem::swap(&mut *lock(&self.finished.done), &mut self.taken);
        for (id, outcome) in self.taken.drain(..) {
            self.operations.finish(id, outcome.map(Outcome::from));
        }
    }
}

impl Finished {
    fn add(&self, done: Done) {
        lock(&self.done).push(done);
        if !self.announced.swap(true, Ordering::AcqRel) {
            self.counters.wake_calls.increment_shared();
            // The counter cannot overflow: the write fails with EAGAIN at 2^64 - 2, and then it is readable anyway.
            let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{thread, time::Instant};

    use rustix::{
        event::EventfdFlags,
        fs::{FileType, Mode, OFlags},
    };

    use super::*;
    use crate::{Config, driver::files::Outcome, thread_pool::TEARDOWN};

    fn helpers(threads_max: usize, operations_max: usize) -> Helpers {
        let mut config = Config::default();
        config.limits.file_threads_max = threads_max;
        config.limits.file_operations_max = operations_max;
        let wake = rustix::event::eventfd(0, EventfdFlags::CLOEXEC).expect("an eventfd");
        Helpers::new(&DriverParts::new(&config, Arc::default(), Arc::new(wake), Default::default()))
    }

    fn open(path: &std::ffi::CStr) -> FileOperation {
        FileOperation::New(Request::Open {
            below: None,
            path: path.to_owned(),
            flags: OFlags::RDONLY,
            mode: Mode::empty(),
        })
    }

    /// Blocks until a thread announces a result, as a runtime's wait does.
    fn wait(helpers: &mut Helpers) {
        rustix::io::read(&*helpers.finished.wake, &mut [0u8; 8]).expect("an announcement");
        helpers.collect();
    }

    #[test]
    fn no_more_threads_start_than_the_limit_allows_and_every_call_is_answered() {
        let mut helpers = helpers(2, 8);
        let mut operations: Vec<FileOperation> = (0..50).map(|_| open(c"/dev/null")).collect();
        let mut opened = 0;
        while opened < operations.len() {
            let mut progress = false;
            for operation in
                operations.iter_mut().filter(|operation| !matches!(operation, FileOperation::Over))
            {
                if let Poll::Ready(answer) = helpers.poll(operation, Waker::noop()) {
                    assert!(matches!(answer, Ok(Outcome::Opened(_))), "{answer:?}");
                    opened += 1;
                    progress = true;
                }
            }
            let (threads, queued) = helpers.pool.counts();
            assert!(threads <= 2 && queued <= 8 && helpers.operations.in_flight() <= 8);
            if !progress {
                wait(&mut helpers);
            }
        }
    }

    #[test]
    fn without_a_thread_the_call_is_made_in_place() {
        let mut helpers = helpers(1, 4);
        let mut operation = open(c"/dev/null");
        let Step::Admitted(request) = helpers.operations.poll(&mut operation, Waker::noop()) else {
            panic!("there is room");
        };
        let id = helpers.operations.begin(&mut operation, Waker::noop(), ());
        // The same as when the kernel refuses the thread that was counted.
        helpers.pool.push_without_thread((id, request));
        helpers.pool.do_without_thread();
        helpers.collect();
        assert!(matches!(helpers.poll(&mut operation, Waker::noop()), Poll::Ready(Ok(Outcome::Opened(_)))));
    }

    #[test]
    fn a_thread_that_hangs_does_not_hold_up_the_end_for_ever() {
        let directory = std::env::temp_dir().join(format!("weir-hang-{}", std::process::id()));
        let path = std::ffi::CString::new(directory.to_str().expect("a plain path")).expect("no zero byte");
        rustix::fs::mknodat(rustix::fs::CWD, path.as_c_str(), FileType::Fifo, Mode::RWXU, 0)
            .expect("a named pipe can be made");
        let mut helpers = helpers(1, 4);
        // Opening a pipe for reading waits for a writer.
        let mut operation = open(&path);
        assert!(helpers.poll(&mut operation, Waker::noop()).is_pending());
        while helpers.pool.counts().1 > 0 {
            thread::yield_now();
        }
        let start = Instant::now();
        drop(helpers);
        assert!(start.elapsed() >= TEARDOWN, "it waited for the call");
        // Releases the thread.
        let writer = std::fs::OpenOptions::new().write(true).open(&directory);
        std::fs::remove_file(&directory).expect("it is there");
        drop(writer);
    }
}
