//! A runtime's threads for closures that may block. They are made at the first use, and end with the runtime.

use std::cell::OnceCell;

use super::Core;
use crate::{
    config::Limits,
    inbox::Call,
    thread_pool::{PoolRules, ThreadPool},
};

/// The threads, once there is a use for them.
pub(super) struct BlockingPool {
    rules: PoolRules,
    pool: OnceCell<ThreadPool<Call>>,
}

impl BlockingPool {
    pub(super) fn new(limits: &Limits) -> Self {
        let rules = PoolRules {
            name: "weir-blocking",
            threads_max: limits.blocking_threads_max,
            queue_max: limits.blocking_queue_max,
            idle: Some(limits.blocking_idle),
        };
        Self { rules, pool: OnceCell::new() }
    }
}

impl Core {
    /// The pool of threads for closures that may block.
    pub(crate) fn blocking_pool(&self) -> &ThreadPool<Call> {
        self.blocking.pool.get_or_init(|| ThreadPool::new(self.blocking.rules, |call: Call| call()))
    }

    /// The runtime ends: drops the closures that have not begun, and waits for the others for a limited time.
    pub(super) fn end_blocking(&self) {
        if let Some(pool) = self.blocking.pool.get() {
            let unfinished = pool.close();
            self.counters.blocking_dropped.add(unfinished.dropped as u64);
            self.counters.blocking_left.add(unfinished.running as u64);
        }
    }
}
