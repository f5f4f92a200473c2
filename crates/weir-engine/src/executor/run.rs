//! Runs the ready tasks, and limits a panic to the task that it happens in.
//!
//! One `catch_unwind` stands around all tasks that run together, so that it costs nothing for each of them. The slot of
//! the task whose code runs is noted; a panic at any other moment is the engine's own, and ends the runtime: the driver
//! may have stopped halfway through an operation.

use std::{
    any::Any,
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    task::{Context, Poll},
};

use super::{Core, Rank, waker::TaskName};
use crate::{config::TaskPanic, slab::SlotId};

impl Core {
    /// Runs the tasks that are ready now, and then the last ones; tasks that they wake run in the next turn.
    pub(super) fn run_tasks(&self) {
        for rank in [Rank::Common, Rank::Last] {
            let queue = self.queue(rank);
            let left = Cell::new(queue.borrow().len());
            // Again for those behind a task that panics.
            while left.get() > 0 {
                let run = || {
                    while left.get() > 0 {
                        left.set(left.get() - 1);
                        let Some(slot) = queue.borrow_mut().pop_front() else { return left.set(0) };
                        self.run_task(slot);
                    }
                };
                if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
                    self.end_panicked(panic);
                }
            }
        }
    }

    #[inline]
    fn run_task(&self, slot: SlotId) {
        let taken = self.tasks.borrow_mut().get_mut(slot).and_then(|task| {
            task.queued = false;
            task.future.take()
        });
        let Some(mut future) = taken else { return };
        self.counters.task_polls.increment();
        let waker = TaskName { runtime: self.number, slot }.waker();
        self.running.set(Some(slot));
        let outcome = future.as_mut().poll(&mut Context::from_waker(&waker));
        let rest = match (outcome, self.tasks.borrow_mut().get_mut(slot)) {
            (Poll::Pending, Some(task)) => {
                task.future = Some(future);
                None
            }
            // Done, or cancelled while it ran: dropped below, when no table is borrowed.
            _ => Some(future),
        };
        if rest.is_some() {
            drop(rest);
            self.tasks.borrow_mut().remove(slot);
        }
        self.running.set(None);
        self.flush();
    }

    /// Ends the task that has panicked, and hands the panic to the task that awaits it. Its message was printed when it
    /// happened. Its future was dropped while the panic passed through it, so its connections are closed.
    #[cold]
    fn end_panicked(&self, panic: Box<dyn Any + Send>) {
        let running = self.running.take();
        let (Some(slot), TaskPanic::Task, false) = (running, self.task_panic, self.in_driver.get()) else {
            resume_unwind(panic)
        };
        self.counters.tasks_panicked.increment();
        let task = self.tasks.borrow_mut().remove(slot);
        if let Some(task) = &task {
            task.result.fail(panic);
        }
        drop(task);
        self.flush();
    }
}

/// Calls a function that makes a task, under the runtime's rule for panics. `None`: it panicked, which is counted.
pub(crate) fn make_task<T>(make: impl FnOnce() -> T) -> Option<T> {
    let isolates = |core: &std::rc::Rc<Core>| core.task_panic == TaskPanic::Task;
    if super::with_current(isolates) != Some(true) {
        return Some(make());
    }
    let made = catch_unwind(AssertUnwindSafe(make)).ok();
    if made.is_none() {
        super::with_current(|core| core.counters.tasks_panicked.increment());
    }
    made
}

#[cfg(test)]
mod tests {
    use std::{panic::catch_unwind, rc::Rc};

    use super::*;
    use crate::{
        Config, Driver, Runtime,
        net::Listener,
        spawn,
        time::{timeout, yield_now},
    };

    fn runtime(task_panic: TaskPanic) -> Runtime {
        Runtime::new(&Config { task_panic, ..Config::for_test(Driver::Sim) }).expect("it runs everywhere")
    }

    fn text(panic: &(dyn Any + Send)) -> &str {
        panic.downcast_ref::<&str>().copied().unwrap_or("another payload")
    }

    #[test]
    fn a_task_that_panics_drops_its_values_and_leaves_the_others_running() {
        let (runtime, life) = (runtime(TaskPanic::Task), Rc::new(()));
        let held = Rc::clone(&life);
        runtime.block_on(async {
            let tasks = [1, 2, 3].map(|number| {
                let held = Rc::clone(&held);
                spawn(async move {
                    yield_now().await;
                    assert!(number != 2, "the second one");
                    drop(held);
                    number
                })
            });
            let [first, second, third] = tasks;
            assert_eq!((first.await, third.await), (1, 3));
            assert!(second.is_finished());
        });
        drop(held);
        assert_eq!(Rc::strong_count(&life), 1, "all have dropped theirs");
        assert_eq!(runtime.counters().snapshot().tasks_panicked, 1);
    }

    #[test]
    fn who_waits_for_a_task_gets_its_panic() {
        let runtime = runtime(TaskPanic::Task);
        let wait = || runtime.block_on(async { spawn(async { panic!("in the task") }).await });
        let panic = catch_unwind(AssertUnwindSafe(wait)).expect_err("it is passed on");
        assert_eq!(text(&*panic), "in the task");
        assert_eq!(runtime.block_on(async { spawn(async { 7 }).await }), 7, "the runtime goes on");
    }

    #[test]
    fn a_panic_ends_the_runtime_where_that_was_asked_for() {
        let runtime = runtime(TaskPanic::Runtime);
        let run = || {
            runtime.block_on(async {
                drop(spawn(async { panic!("in the task") }));
                std::future::pending::<()>().await;
            });
        };
        let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("nobody waits for it");
        assert_eq!(text(&*panic), "in the task");
        assert_eq!(runtime.counters().snapshot().tasks_panicked, 0);
    }

    #[test]
    fn a_panic_inside_the_driver_ends_the_runtime() {
        let runtime = runtime(TaskPanic::Task);
        let run = || {
            runtime.block_on(async {
                let address = "127.0.0.1:80".parse().expect("an address");
                let listener = Listener::bind(&address, Default::default()).expect("a simulated port");
                drop(spawn(async move {
                    crate::executor::with_current(|core| core.with_driver(|_| panic!("a bug")));
                    // It closes through the driver when the panic drops it.
                    drop(listener);
                }));
                yield_now().await;
            });
        };
        let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("it is the engine's own");
        assert_eq!(text(&*panic), "a bug");
    }

    #[test]
    fn a_task_that_panics_after_it_was_aborted_is_counted_and_nobody_is_woken() {
        let runtime = runtime(TaskPanic::Task);
        runtime.block_on(async {
            let handle = Rc::new(Cell::new(None));
            let own = Rc::clone(&handle);
            handle.set(Some(spawn(async move {
                let own: crate::JoinHandle<()> = own.take().expect("it was put there");
                own.abort();
                panic!("it runs to its next await");
            })));
            assert!(timeout(std::time::Duration::from_secs(1), std::future::pending::<()>()).await.is_err());
        });
        assert_eq!(runtime.counters().snapshot().tasks_panicked, 1);
    }
}
