//! A runtime as a program has it: started on a driver, run, drained, reached from other threads.

use std::{fmt, future::Future, sync::Arc, time::Duration};

use crate::{
    config::{Config, Driver},
    counters::Counters,
    driver_choice::{self, StartError},
    executor::Executor,
    remote::Remote,
    time::{now, sleep},
};

/// A runtime: tasks, timers and one driver, all on the thread that made it.
pub struct Runtime {
    executor: Executor,
}

impl fmt::Debug for Runtime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Runtime").field("driver", &self.driver()).finish_non_exhaustive()
    }
}

impl Runtime {
    /// Starts a runtime on the configured driver. `auto` takes the first that passes its start-up test; a named
    /// driver that the kernel refuses is an error that says why.
    pub fn new(config: &Config) -> Result<Self, StartError> {
        driver_choice::start(config).map(|executor| Self { executor })
    }

    /// The driver that runs.
    pub fn driver(&self) -> Driver {
        self.executor.core().kind
    }

    /// Runs a future to its end, and every task beside it. What they have sent when it returns has been handed to the
    /// kernel, as far as the connections had room for it; everything else goes on in the next call. With SQPOLL it is
    /// the kernel's thread that takes it, and a connection's output beyond one call's may stay for the next one.
    ///
    /// # Panics
    /// When called inside a runtime, and when the kernel refuses to wait (`epoll_wait` and the like failing for
    /// another reason than a signal: a bug or a kernel out of memory).
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.executor.block_on(future)
    }

    /// Waits until every socket is closed and every task done, at most until `limit` from now; then aborts what is
    /// left. Returns how many connections had to be aborted.
    pub fn drain(&self, limit: Duration) -> usize {
        let core = self.executor.core();
        let deadline = self.block_on(async { now() }) + limit;
        core.drain();
        let left = || core.tasks() + core.with_driver(|driver| driver.sockets());
        self.block_on(async {
            while left() > 0 && core.now() < deadline {
                sleep(Duration::from_millis(1)).await;
            }
        });
        // Without the listener, whose accept may still be on its way back from the kernel.
        let aborted = core.counters.connections_open.get() as usize;
        core.with_driver(|driver| driver.abort_all());
        aborted
    }

    /// A handle for other threads.
    pub fn remote(&self) -> Remote {
        Remote { inbox: Arc::clone(&self.executor.core().inbox) }
    }

    /// The runtime's counters; readable from any thread, also after the runtime has ended.
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.executor.core().counters)
    }
}
