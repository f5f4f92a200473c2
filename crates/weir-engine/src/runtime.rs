//! A runtime as programs use it: started on a driver, run, drained, reached from other threads.

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
    /// driver that the kernel refuses gives an error with the reason.
    pub fn new(config: &Config) -> Result<Self, StartError> {
        driver_choice::start(config).map(|executor| Self { executor })
    }

    /// The driver that runs.
    pub fn driver(&self) -> Driver {
        self.executor.core().kind
    }

    /// Runs a future to its end, and every other task meanwhile. When it returns, everything that they have sent has
    /// been handed to the kernel, as far as the connections had room for it; everything else continues in the next
    /// call. With SQPOLL the kernel's thread takes the sends, and output of a connection beyond one send call may
    /// stay queued until the next `block_on`.
    ///
    /// # Panics
    /// When called inside a runtime, or when the kernel refuses to wait: `epoll_wait` or the like fails for another
    /// reason than a signal, from a bug or because the kernel is out of memory.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.executor.block_on(future)
    }

    /// Waits until every socket is closed and every task is done, at most for `limit`; then aborts the rest. Returns
    /// the number of aborted connections.
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
        // The listener is not counted: its accept may still be on its way back from the kernel.
        let aborted = core.counters.connections_open.get() as usize;
        core.with_driver(|driver| driver.abort_all());
        aborted
    }

    /// A handle for other threads.
    pub fn remote(&self) -> Remote {
        Remote { inbox: Arc::clone(&self.executor.core().inbox) }
    }

    /// The runtime's counters; any thread may read them, even after the runtime has ended.
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.executor.core().counters)
    }
}
