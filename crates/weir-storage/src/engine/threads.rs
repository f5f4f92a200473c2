//! A pool of threads, one for each operation that can be in flight, each in `pread(2)` or `pwrite(2)`.
//!
//! Buffers move with their operation: the owner of the message owns the memory.

use std::{
    collections::VecDeque,
    fs::File,
    io,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use super::{
    Completed, Engine, Operation,
    blocking::{AlignedBuffer, transfer},
};

/// Most threads of one pool.
pub(super) const WORKERS_MAX: u32 = 256;

struct Task {
    operation: Operation,
    buffer: AlignedBuffer,
}

struct Done {
    completed: Completed,
    buffer: AlignedBuffer,
}

#[derive(Default)]
struct Tasks {
    queue: VecDeque<Task>,
    is_stopping: bool,
}

#[derive(Default)]
struct Results {
    done: Vec<Done>,
    /// The owner sleeps, and needs a wake-up.
    is_awaited: bool,
}

struct Shared {
    file: File,
    tasks: Mutex<Tasks>,
    has_tasks: Condvar,
    results: Mutex<Results>,
    has_results: Condvar,
    /// Whether `results` contains anything, to avoid the lock.
    is_ready: AtomicBool,
}

/// The pool and the buffers that are not in flight.
pub(super) struct Threads {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    buffers: Vec<Option<AlignedBuffer>>,
    block_bytes: u32,
    in_flight: usize,
    /// Swapped with `Results::done`, so that neither allocates again.
    taken: Vec<Done>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Threads {
    pub(super) fn new(file: File, depth: u32, block_bytes: u32, thread: u32) -> io::Result<Self> {
        let room = depth as usize;
        let shared = Arc::new(Shared {
            file,
            tasks: Mutex::new(Tasks { queue: VecDeque::with_capacity(room), is_stopping: false }),
            has_tasks: Condvar::new(),
            results: Mutex::new(Results { done: Vec::with_capacity(room), is_awaited: false }),
            has_results: Condvar::new(),
            is_ready: AtomicBool::new(false),
        });
        let buffers = (0..depth).map(|_| Some(AlignedBuffer::new(block_bytes as usize))).collect();
        let mut pool = Self {
            shared,
            workers: Vec::with_capacity(room),
            buffers,
            block_bytes,
            in_flight: 0,
            taken: Vec::with_capacity(room),
        };
        for number in 0..depth {
            let shared = Arc::clone(&pool.shared);
            let builder = thread::Builder::new().name(format!("weir-io-{thread}-{number}"));
            // If this fails the pool is dropped, which ends the threads that already run.
            pool.workers.push(builder.spawn(move || work(&shared))?);
        }
        Ok(pool)
    }

    /// Moves the results out of the locked list.
    fn take(&mut self, completed: &mut Vec<Completed>) {
        let shared = Arc::clone(&self.shared);
        let mut results = lock(&shared.results);
        self.take_locked(&mut results, completed);
    }

    fn take_locked(&mut self, results: &mut Results, completed: &mut Vec<Completed>) {
        self.shared.is_ready.store(false, Ordering::Relaxed);
        std::mem::swap(&mut results.done, &mut self.taken);
        self.in_flight -= self.taken.len();
        for done in self.taken.drain(..) {
            self.buffers[done.completed.slot as usize] = Some(done.buffer);
            completed.push(done.completed);
        }
    }
}

fn work(shared: &Shared) {
    loop {
        let mut tasks = lock(&shared.tasks);
        while tasks.queue.is_empty() && !tasks.is_stopping {
            tasks = shared.has_tasks.wait(tasks).unwrap_or_else(PoisonError::into_inner);
        }
        let Some(mut task) = tasks.queue.pop_front() else { return };
        drop(tasks);
        let result = transfer(&shared.file, &task.operation, &mut task.buffer);
        let completed = Completed { slot: task.operation.slot, result };
        let mut results = lock(&shared.results);
        results.done.push(Done { completed, buffer: task.buffer });
        shared.is_ready.store(true, Ordering::Release);
        let is_awaited = std::mem::replace(&mut results.is_awaited, false);
        drop(results);
        if is_awaited {
            shared.has_results.notify_one();
        }
    }
}

impl Engine for Threads {
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        let buffer = self.buffers.get_mut(slot as usize).and_then(Option::as_mut);
        buffer.unwrap_or_else(|| panic!("slot {slot} is not idle")).as_mut()
    }

    fn submit(&mut self, operations: &[Operation]) -> io::Result<usize> {
        let mut tasks = lock(&self.shared.tasks);
        let mut taken = 0;
        for operation in operations {
            let fits = operation.bytes <= self.block_bytes;
            let slot = self.buffers.get_mut(operation.slot as usize).filter(|_| fits);
            let Some(buffer) = slot.and_then(Option::take) else {
                if taken == 0 {
                    return Err(io::ErrorKind::InvalidInput.into());
                }
                break;
            };
            tasks.queue.push_back(Task { operation: *operation, buffer });
            taken += 1;
        }
        drop(tasks);
        self.in_flight += taken;
        for _ in 0..taken {
            self.shared.has_tasks.notify_one();
        }
        Ok(taken)
    }

    fn poll(&mut self, completed: &mut Vec<Completed>) -> io::Result<()> {
        if self.shared.is_ready.load(Ordering::Acquire) {
            self.take(completed);
        }
        Ok(())
    }

    fn wait(&mut self, completed: &mut Vec<Completed>) -> io::Result<()> {
        if self.in_flight == 0 {
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        let mut results = lock(&shared.results);
        while results.done.is_empty() {
            results.is_awaited = true;
            results = shared.has_results.wait(results).unwrap_or_else(PoisonError::into_inner);
        }
        self.take_locked(&mut results, completed);
        Ok(())
    }

    fn wait_at_most(&mut self, limit: Duration, completed: &mut Vec<Completed>) -> io::Result<()> {
        if self.in_flight == 0 {
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        let mut results = lock(&shared.results);
        results.is_awaited = true;
        let waited = shared
            .has_results
            .wait_timeout_while(results, limit, |results| {
                results.is_awaited = results.done.is_empty();
                results.is_awaited
            })
            .unwrap_or_else(PoisonError::into_inner);
        let mut results = waited.0;
        results.is_awaited = false;
        self.take_locked(&mut results, completed);
        Ok(())
    }

    fn sleep_whole(&mut self, _length: Duration) -> Option<io::Result<()>> {
        None
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        let mut tasks = lock(&self.shared.tasks);
        tasks.is_stopping = true;
        tasks.queue.clear();
        drop(tasks);
        self.shared.has_tasks.notify_all();
        for worker in self.workers.drain(..) {
            // A worker that panicked has nothing in flight, and its buffer is freed.
            let _: thread::Result<()> = worker.join();
        }
    }
}
