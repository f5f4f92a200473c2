//! Tasks that belong together: a group waits for its tasks with a time limit, and none outlives it. The executor runs
//! the tasks, not the group. The group collects no results; a task stores its own.

use std::{future::Future, io, time::Duration};

use crate::{
    executor::{JoinHandle, try_spawn},
    time::{now, timeout_at},
};

/// Finished tasks are first removed at this number of tasks.
const TIDY_MIN: usize = 64;

/// Tasks of the current runtime that end together: [`Self::finish`] waits for them and then ends the remaining ones,
/// and dropping the group ends them at once. Use it for a server that answers its pending requests before it ends,
/// and for a handler whose helper tasks must not outlive it.
///
/// [`Runtime::drain`](crate::Runtime::drain) does this for a whole runtime.
///
/// ```
/// use std::time::Duration;
/// use weir_engine::{Config, Driver, Runtime, TaskGroup, time::sleep};
///
/// let runtime = Runtime::new(&Config::with_driver(Driver::Sim)).unwrap();
/// runtime.block_on(async {
///     let mut group = TaskGroup::new();
///     group.spawn(async { sleep(Duration::from_secs(1)).await });
///     group.spawn(async { sleep(Duration::from_secs(3600)).await });
///     assert_eq!(group.finish(Duration::from_secs(5)).await, 1, "one took longer");
/// });
/// ```
#[derive(Debug, Default)]
pub struct TaskGroup {
    tasks: Vec<JoinHandle<()>>,
    /// At this number of tasks, finished ones are removed.
    tidy_at: usize,
}

impl TaskGroup {
    /// A group without tasks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs a future as a task of the current runtime and of this group.
    ///
    /// # Panics
    /// Outside a runtime, and when the runtime is at its task limit; [`Self::try_spawn`] does not panic.
    #[track_caller]
    pub fn spawn(&mut self, future: impl Future<Output = ()> + 'static) {
        if let Err(error) = self.try_spawn(future) {
            panic!("weir_engine::TaskGroup::spawn: {error}");
        }
    }

    /// As [`Self::spawn`]; an error outside a runtime, at the task limit, or on the blocking driver, which runs one
    /// handler in each thread.
    pub fn try_spawn(&mut self, future: impl Future<Output = ()> + 'static) -> io::Result<()> {
        let task = try_spawn(future)?;
        if self.tasks.len() >= self.tidy_at {
            // The list is never longer than twice the running tasks, however many tasks start and end.
            self.tasks.retain(|task| !task.is_finished());
            self.tidy_at = TIDY_MIN.max(2 * self.tasks.len());
        }
        self.tasks.push(task);
        Ok(())
    }

    /// Waits until every task is done, at most for `limit`; then ends the remaining ones, each at its next await, and
    /// returns their number. Dropping the future ends them at once.
    ///
    /// # Panics
    /// When polled outside a runtime, or when a task of the group has panicked: with its payload.
    pub async fn finish(mut self, limit: Duration) -> usize {
        let deadline = now() + limit;
        while let Some(task) = self.tasks.last_mut() {
            if timeout_at(deadline, task).await.is_err() {
                break;
            }
            self.tasks.pop();
        }
        self.tasks.retain(|task| !task.is_finished());
        self.tasks.len()
    }
}

impl Drop for TaskGroup {
    fn drop(&mut self) {
        self.tasks.drain(..).for_each(JoinHandle::abort);
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, future::pending, rc::Rc};

    use super::*;
    use crate::{
        config::{Config, Driver},
        runtime::Runtime,
        time::{sleep, yield_now},
    };

    const SECOND: Duration = Duration::from_secs(1);

    fn simulate<F: Future>(future: F) -> F::Output {
        Runtime::new(&Config::for_test(Driver::Sim)).expect("it runs everywhere").block_on(future)
    }

    /// Counts drops, as a value that a task owns is dropped.
    struct Ends(Rc<Cell<u32>>);

    impl Drop for Ends {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }

    #[test]
    fn a_group_is_over_when_its_last_task_is() {
        simulate(async {
            let begin = now();
            let mut group = TaskGroup::new();
            for seconds in [1, 3, 2] {
                group.spawn(sleep(seconds * SECOND));
            }
            assert_eq!(group.finish(10 * SECOND).await, 0);
            let took = now().since(begin);
            assert!((3 * SECOND..4 * SECOND).contains(&took), "{took:?}");
        });
    }

    #[test]
    fn tasks_that_take_longer_than_the_limit_are_ended_and_counted() {
        simulate(async {
            let (begin, ended) = (now(), Rc::new(Cell::new(0)));
            let mut group = TaskGroup::new();
            for _ in 0..2 {
                let ends = Ends(Rc::clone(&ended));
                group.spawn(async move {
                    let _ends = ends;
                    pending().await
                });
            }
            // The group waits from the back of its list: it stops at one that never ends and never waits for this
            // one.
            group.tasks.insert(0, crate::spawn(sleep(SECOND)));
            assert_eq!((group.finish(5 * SECOND).await, ended.get()), (2, 2));
            let took = now().since(begin);
            assert!((5 * SECOND..6 * SECOND).contains(&took), "{took:?}");
        });
    }

    #[test]
    fn tasks_end_with_a_group_that_is_dropped_and_with_its_finish() {
        simulate(async {
            let ended = Rc::new(Cell::new(0));
            for is_finishing in [false, true] {
                let (mut group, ends) = (TaskGroup::new(), Ends(Rc::clone(&ended)));
                group.spawn(async move {
                    let _ends = ends;
                    pending().await
                });
                yield_now().await;
                if is_finishing {
                    assert!(timeout_at(now(), group.finish(SECOND)).await.is_err(), "given up");
                } else {
                    drop(group);
                }
            }
            assert_eq!(ended.get(), 2);
        });
    }

    #[test]
    fn a_group_whose_tasks_come_and_go_stays_small() {
        simulate(async {
            let mut group = TaskGroup::new();
            for _ in 0..3 * TIDY_MIN {
                group.spawn(async {});
                yield_now().await;
            }
            assert!(group.tasks.len() <= TIDY_MIN, "{} are kept", group.tasks.len());
        });
    }
}
