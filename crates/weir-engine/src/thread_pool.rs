//! A few threads for jobs that may block: calls on files (`driver/helpers.rs`), and closures of the program
//! (`spawn_blocking.rs`).
//!
//! The threads belong to one runtime, start when there are more jobs than threads, and end with it, or when they have
//! had no job for the pool's time. Their number and the number of queued jobs are limited; a caller that finds the
//! queue full waits in line. `state.rs` decides; this file locks, waits and starts threads.
//!
//! A job owns everything it touches. So the runtime can end while a thread hangs in a job: the thread is left behind,
//! and the job's memory is freed when it returns.
//!
//! There is one lock, and every decision is taken under it: no wake-up can be lost between two atomics, and no order of
//! memory has to be proved. Wakers and jobs are run and dropped when it is not held, because they may call the pool.

use std::{
    fmt, mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
    thread,
    time::Duration,
};

use crate::sync::Ticket;

mod state;

use state::{Admission, Next, State};

/// How long the end of a pool waits for jobs that have begun.
pub(crate) const TEARDOWN: Duration = Duration::from_millis(if cfg!(test) { 50 } else { 2000 });

/// The limits of a pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolRules {
    /// The name of its threads.
    pub(crate) name: &'static str,
    pub(crate) threads_max: usize,
    /// Jobs that may wait for a thread.
    pub(crate) queue_max: usize,
    /// How long a thread waits for a job before it ends; `None`: until the pool ends.
    pub(crate) idle: Option<Duration>,
}

/// The pool takes no more jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolClosed;

/// What was not finished when a pool ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unfinished {
    /// Jobs that had not begun. They were dropped.
    pub(crate) dropped: usize,
    /// Jobs whose threads are left behind.
    pub(crate) running: usize,
}

/// The threads and their jobs.
pub(crate) struct ThreadPool<J>(Arc<Shared<J>>);

struct Shared<J> {
    rules: PoolRules,
    state: Mutex<State<J>>,
    /// There is a job, or the threads shall end.
    work: Condvar,
    /// A thread has ended.
    ended: Condvar,
    /// Performs a job, on a thread of the pool.
    perform: Box<dyn Fn(J) + Send + Sync>,
}

impl<J> fmt::Debug for ThreadPool<J> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ThreadPool").field("rules", &self.0.rules).finish_non_exhaustive()
    }
}

impl<J: Send + 'static> ThreadPool<J> {
    /// A pool without a thread. `perform` performs one job.
    pub(crate) fn new(rules: PoolRules, perform: impl Fn(J) + Send + Sync + 'static) -> Self {
        Self(Arc::new(Shared {
            rules,
            state: Mutex::new(State::new(rules.threads_max, rules.queue_max)),
            work: Condvar::new(),
            ended: Condvar::new(),
            perform: Box::new(perform),
        }))
    }

    /// A caller that has a job.
    pub(crate) fn caller(&self) -> Caller<'_, J> {
        Caller { pool: self, ticket: None }
    }

    /// Queues a job at once, for a caller that limits its jobs to the pool's queue by other means. If there is no
    /// thread and none can be started, this thread performs what is queued.
    pub(crate) fn push(&self, job: J) {
        let is_short = self.0.lock().push(job);
        if let Some(worker) = self.worker(is_short) {
            self.start(worker);
        }
    }

    /// Wakes a thread for a job that was queued. The worker, if there is one, must be started.
    fn worker(&self, is_short: bool) -> Option<Worker<J>> {
        self.0.work.notify_one();
        is_short.then(|| Worker { shared: Arc::clone(&self.0), is_counted: true })
    }

    /// Makes a thread of a worker. If the system gives none, and there is no other, this thread performs the jobs.
    pub(crate) fn start(&self, worker: Worker<J>) {
        let started = thread::Builder::new().name(self.0.rules.name.into()).spawn(move || worker.run());
        if started.is_err() {
            self.do_without_thread();
        }
    }

    /// A worker could not be started. If there is no other, this thread performs the jobs now.
    pub(crate) fn do_without_thread(&self) {
        let (jobs, admitted) = self.0.lock().take_stranded();
        admitted.into_iter().for_each(Waker::wake);
        jobs.into_iter().for_each(|job| self.0.perform(job));
    }
}

impl<J> ThreadPool<J> {
    /// Drops the jobs that have not begun, and waits for the others, at most for [`TEARDOWN`]. From then on it takes
    /// no more jobs. A pool that was closed before is not waited for again.
    pub(crate) fn close(&self) -> Unfinished {
        let Some((jobs, waiting)) = self.0.lock().close() else { return Unfinished::default() };
        let dropped = jobs.len();
        waiting.into_iter().for_each(Waker::wake);
        drop(jobs);
        self.0.work.notify_all();
        let is_left = |state: &mut State<J>| state.threads() > 0;
        let waited = self.0.ended.wait_timeout_while(self.0.lock(), TEARDOWN, is_left);
        // A thread that needs longer is left behind: its job owns the memory that it uses.
        let running = waited.unwrap_or_else(PoisonError::into_inner).0.running();
        Unfinished { dropped, running }
    }
}

impl<J> Drop for ThreadPool<J> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<J> Shared<J> {
    fn lock(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for work. True: that took as long as a thread may be idle.
    fn wait<'a>(&self, mut state: MutexGuard<'a, State<J>>) -> (MutexGuard<'a, State<J>>, bool) {
        state.idle += 1;
        let (mut state, has_waited) = match self.rules.idle {
            Some(limit) => {
                let waited = self.work.wait_timeout(state, limit).unwrap_or_else(PoisonError::into_inner);
                (waited.0, waited.1.timed_out())
            }
            None => (self.work.wait(state).unwrap_or_else(PoisonError::into_inner), false),
        };
        state.idle -= 1;
        (state, has_waited)
    }

    /// Performs a job. A panic must not end the thread, which other jobs need: jobs that may panic report it
    /// themselves. What is caught here is leaked, because dropping it may panic again.
    fn perform(&self, job: J) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (self.perform)(job))) {
            mem::forget(panic);
        }
    }

    /// Performs a job for a worker, and wakes the caller that got its place.
    fn run(&self, job: J, admitted: Option<Waker>) {
        // As the job: a waker may run foreign code.
        let woken = catch_unwind(AssertUnwindSafe(|| admitted.into_iter().for_each(Waker::wake)));
        if let Err(panic) = woken {
            mem::forget(panic);
        }
        self.perform(job);
    }
}

/// A caller that has a job, and waits for a place in the queue if there is none. It gives up when it is dropped.
pub(crate) struct Caller<'a, J> {
    pool: &'a ThreadPool<J>,
    ticket: Option<Ticket>,
}

impl<J: Send + 'static> Caller<'_, J> {
    /// Queues the job once there is a place, taking it out of the option. A worker that is returned must be started,
    /// by [`ThreadPool::start`] or in its place by calls of [`Worker::step`].
    pub(crate) fn poll_push(
        &mut self,
        job: &mut Option<J>,
        waker: &Waker,
    ) -> Poll<Result<Option<Worker<J>>, PoolClosed>> {
        let mut state = self.pool.0.lock();
        match state.admit(&mut self.ticket, waker) {
            Admission::Place => {
                let is_short = job.take().is_some_and(|job| state.push(job));
                drop(state);
                Poll::Ready(Ok(self.pool.worker(is_short)))
            }
            Admission::Waits(replaced) => {
                drop(state);
                drop(replaced);
                Poll::Pending
            }
            Admission::Closed => {
                self.ticket = None;
                Poll::Ready(Err(PoolClosed))
            }
        }
    }
}

impl<J> Drop for Caller<'_, J> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket.take() else { return };
        let departure = self.pool.0.lock().leave(ticket);
        drop(departure.own);
        departure.next.into_iter().for_each(Waker::wake);
    }
}

/// A thread of the pool, or what takes its place: it is counted from before it starts until it ends or is dropped.
pub(crate) struct Worker<J> {
    shared: Arc<Shared<J>>,
    is_counted: bool,
}

impl<J> Worker<J> {
    /// The main loop of a thread.
    fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let (mut state, mut has_waited) = (shared.lock(), false);
        loop {
            match state.next(has_waited) {
                Next::Run(job, admitted) => {
                    drop(state);
                    shared.run(job, admitted);
                    (state, has_waited) = (shared.lock(), false);
                    state.finish();
                }
                Next::Wait => (state, has_waited) = shared.wait(state),
                Next::End => {
                    self.is_counted = false;
                    return;
                }
            }
        }
    }

    /// Performs the next job, in place of a thread. False: there is none, and the worker has ended.
    pub(crate) fn step(&mut self) -> bool {
        let next = self.shared.lock().next(true);
        match next {
            Next::Run(job, admitted) => {
                self.shared.run(job, admitted);
                self.shared.lock().finish();
                true
            }
            Next::Wait => false,
            Next::End => {
                self.is_counted = false;
                false
            }
        }
    }
}

impl<J> Drop for Worker<J> {
    fn drop(&mut self) {
        if self.is_counted {
            self.shared.lock().lose_thread();
        }
        self.shared.ended.notify_all();
    }
}

/// What tests look at.
#[cfg(test)]
impl<J> ThreadPool<J> {
    /// Threads, and jobs that have not begun.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let state = self.0.lock();
        (state.threads(), state.queued())
    }

    /// Queues a job as if a thread had been counted for it, which then could not be started.
    pub(crate) fn push_without_thread(&self, job: J) {
        let mut state = self.0.lock();
        if state.push(job) {
            state.lose_thread();
        }
        drop(state);
    }

    /// Blocks until every thread has ended.
    fn wait_until_idle(&self) {
        let is_left = |state: &mut State<J>| state.threads() > 0;
        drop(self.0.ended.wait_while(self.0.lock(), is_left).expect("no thread panics with the lock"));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    type Job = Box<dyn FnOnce() + Send>;

    fn pool(threads_max: usize, idle: Option<Duration>) -> ThreadPool<Job> {
        ThreadPool::new(PoolRules { name: "weir-test", threads_max, queue_max: 4, idle }, |job: Job| job())
    }

    /// A job that says that it has begun, and then waits to be let go.
    fn held(begun: &Sender<()>) -> (Job, Sender<()>) {
        let (go, wait): (Sender<()>, Receiver<()>) = channel();
        let begun = begun.clone();
        let job = move || {
            // The test may be over.
            let _ = begun.send(());
            let _ = wait.recv();
        };
        (Box::new(job), go)
    }

    #[test]
    fn an_idle_thread_ends_and_the_next_job_gets_a_new_one() {
        let pool = pool(2, Some(Duration::from_millis(1)));
        for number in 0..3 {
            let (sender, done) = channel();
            pool.push(Box::new(move || sender.send(number).expect("the test waits")));
            assert_eq!(done.recv(), Ok(number));
            pool.wait_until_idle();
        }
    }

    #[test]
    fn a_job_that_panics_leaves_its_thread_to_the_others() {
        let pool = pool(1, None);
        let (sender, done) = channel();
        pool.push(Box::new(|| panic!("as this test asks for")));
        pool.push(Box::new(move || sender.send(7).expect("the test waits")));
        assert_eq!((done.recv(), pool.counts()), (Ok(7), (1, 0)));
    }

    #[test]
    fn the_end_drops_what_has_not_begun_and_leaves_behind_what_hangs() {
        let pool = pool(1, None);
        let (begun, has_begun) = channel();
        let (first, go) = held(&begun);
        pool.push(first);
        has_begun.recv().expect("it begins");
        let life = Arc::new(());
        let other = Arc::clone(&life);
        pool.push(Box::new(move || drop(other)));
        assert_eq!(pool.close(), Unfinished { dropped: 1, running: 1 });
        assert_eq!(Arc::strong_count(&life), 1);
        drop(go);
        pool.wait_until_idle();
        assert_eq!(pool.close(), Unfinished::default());
    }

    #[test]
    fn a_worker_that_is_dropped_is_no_longer_counted() {
        let pool = pool(1, None);
        let (sender, done) = channel();
        let mut job: Option<Job> = Some(Box::new(move || sender.send(7).expect("the test waits")));
        let Poll::Ready(Ok(Some(worker))) = pool.caller().poll_push(&mut job, Waker::noop()) else {
            panic!("there is a place, and no thread");
        };
        assert_eq!(pool.counts(), (1, 1));
        drop(worker);
        assert_eq!(pool.counts(), (0, 1));
        pool.do_without_thread();
        assert_eq!((done.try_recv(), pool.counts()), (Ok(7), (0, 0)));
    }
}
