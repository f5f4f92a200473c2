//! Reaches a runtime from other threads: a handle that calls and drains it.

use std::sync::Arc;

use crate::{executor, inbox::Inbox};

pub use crate::inbox::RemoteError;

/// A handle to a runtime that any thread may hold.
///
/// ```
/// use weir_engine::{Config, Runtime, mailbox::mailbox};
///
/// let runtime = Runtime::new(&Config::default()).unwrap();
/// let remote = runtime.remote();
/// let (sender, mut receiver) = mailbox(1);
/// std::thread::spawn(move || remote.call(move || sender.try_send("called on the runtime's thread").unwrap()));
/// assert_eq!(runtime.block_on(receiver.recv()), Some("called on the runtime's thread"));
/// ```
#[derive(Clone, Debug)]
pub struct Remote {
    pub(crate) inbox: Arc<Inbox>,
}

impl Remote {
    /// Runs `call` on the runtime's thread, between two tasks; there it may spawn.
    ///
    /// A call that is accepted just as the runtime ends may not run.
    pub fn call(&self, call: impl FnOnce() + Send + 'static) -> Result<(), RemoteError> {
        self.inbox.call(Box::new(call))
    }

    /// Begins to drain the runtime, even if its call queue is full. A runtime that has ended needs no draining.
    pub(crate) fn drain(&self) {
        self.inbox.drain();
    }

    /// Makes a task on the runtime's thread from `make` and runs it there.
    pub fn spawn<M, F>(&self, make: M) -> Result<(), RemoteError>
    where
        M: FnOnce() -> F + Send + 'static,
        F: Future<Output = ()> + 'static,
    {
        self.call(move || {
            // Fails only at the task limit. The caller on another thread can no longer be informed.
            let _ = executor::try_spawn(make());
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Driver, Runtime};

    #[test]
    fn a_call_that_races_the_end_of_the_runtime_is_dropped() {
        for round in 0..500 {
            let runtime = Runtime::new(&Config::for_test(Driver::Poll)).expect("poll runs everywhere");
            let (remote, held) = (runtime.remote(), Arc::new(()));
            let (caller, token) = (remote.clone(), Arc::clone(&held));
            let thread = std::thread::spawn(move || {
                loop {
                    let token = Arc::clone(&token);
                    if caller.call(move || drop(token)) == Err(RemoteError::Ended) {
                        return;
                    }
                }
            });
            while remote.inbox.is_empty() {
                std::hint::spin_loop();
            }
            drop(runtime);
            thread.join().expect("it sees the end");
            assert_eq!(Arc::strong_count(&held), 1, "round {round}");
            drop(remote);
        }
    }
}
