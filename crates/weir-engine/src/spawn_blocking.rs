//! Closures that may block, on threads beside the runtime, and the task that waits for the result.
//!
//! The threads are those of `thread_pool.rs`. The result comes back through a [`mailbox`](crate::mailbox) for one
//! message, which wakes the waiting task on its own runtime: there is no second protocol between threads to prove.

use std::{
    any::Any,
    fmt,
    future::{Future, poll_fn},
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};

use crate::{
    config::Driver,
    executor::{self, Core},
    inbox::Call,
    mailbox::{MailboxReceiver, mailbox},
    thread_pool::{PoolClosed, Worker},
    time::yield_now,
};

type Panic = Box<dyn Any + Send>;

/// Gives a closure that may block to a thread beside the runtime, and returns a handle that waits for its result. For
/// calls of libraries that block, and for computations that would hold the runtime up for too long.
///
/// ```
/// use weir_engine::{Config, Runtime, spawn_blocking};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// Runtime::new(&Config::default())?.block_on(async {
///     // The closure is queued. Other tasks run while it does.
///     let sum = spawn_blocking(|| (1..=1_000_000_u64).sum::<u64>()).await?;
///     assert_eq!(sum.await?, 500_000_500_000);
///     Ok(())
/// })
/// # }
/// ```
///
/// A runtime has at most [`Limits::blocking_threads_max`](crate::Limits) such threads, with the CPUs of the runtime's
/// thread. They start when there are more closures than threads, and end when they had none for
/// [`Limits::blocking_idle`](crate::Limits). At most [`Limits::blocking_queue_max`](crate::Limits) closures wait for a
/// thread; if that many do, this call waits for a place, in the order of the callers. If no thread can be started, as
/// at a limit on threads, the runtime's thread runs the closure and waits.
///
/// **Cancellation.** If the future of this function is dropped, the closure is dropped and never begins, unless it was
/// queued. From then on it runs to its end: dropping the handle only discards the result. Nothing can stop a closure
/// that has begun.
///
/// **The end of the runtime.** Closures that have not begun are dropped, and their handles get
/// [`BlockingError::Ended`]. Those that run are waited for, for at most two seconds; a thread that needs longer is left
/// behind. [`Counters::blocking_unfinished`](crate::Counters::blocking_unfinished) says how many of both there were.
/// [`Runtime::drain`](crate::Runtime::drain) waits for tasks that wait for a handle, and for no other closure.
///
/// **Drivers.** On the blocking driver the connection's own thread runs the closure at once. On the simulator the
/// threads are tasks: each runs one closure in a turn, on the runtime's thread and in the order of the queue, and
/// virtual time does not pass meanwhile. A closure that waits for another one, or for a task, never ends there.
///
/// # Errors
/// [`BlockingError::NoRuntime`] outside a runtime, [`BlockingError::Ended`] in one that ends.
pub async fn spawn_blocking<F, T>(closure: F) -> Result<BlockingHandle<T>, BlockingError>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let core = executor::current().map_err(|_| BlockingError::NoRuntime)?;
    let (sender, receiver) = mailbox(1);
    let call: Call = Box::new(move || {
        // Fails if nobody waits for the result.
        let _ = sender.try_send(catch_unwind(AssertUnwindSafe(closure)));
    });
    if core.kind == Driver::Blocking {
        call();
    } else {
        submit(&core, call).await?;
    }
    Ok(BlockingHandle { receiver })
}

/// Waits for a place in the queue, and starts a thread if there are too few.
async fn submit(core: &Rc<Core>, call: Call) -> Result<(), BlockingError> {
    let pool = core.blocking_pool();
    let (mut caller, mut call) = (pool.caller(), Some(call));
    let pushed = poll_fn(|context| caller.poll_push(&mut call, context.waker())).await;
    let Some(worker) = pushed.map_err(|PoolClosed| BlockingError::Ended)? else { return Ok(()) };
    if !core.is_simulated() {
        pool.start(worker);
    } else if executor::try_spawn(simulated_thread(worker)).is_err() {
        // At the limit of tasks there is no simulated thread, as there is no thread at the system's limit.
        pool.do_without_thread();
    }
    Ok(())
}

/// A thread of the pool, as a task: one closure in a turn.
async fn simulated_thread(mut worker: Worker<Call>) {
    while worker.step() {
        yield_now().await;
    }
}

/// Waits for the result of a closure that [`spawn_blocking`] has queued. Dropping it discards the result; the closure
/// runs all the same.
#[must_use = "the result is discarded; drop it if that is meant"]
pub struct BlockingHandle<T> {
    receiver: MailboxReceiver<Result<T, Panic>>,
}

impl<T> BlockingHandle<T> {
    /// Whether the result is available.
    pub fn is_finished(&self) -> bool {
        !self.receiver.is_empty()
    }
}

impl<T> fmt::Debug for BlockingHandle<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("BlockingHandle").field("is_finished", &self.is_finished()).finish()
    }
}

impl<T> Future for BlockingHandle<T> {
    type Output = Result<T, BlockingError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.receiver.poll_recv(context).map(|received| match received {
            Some(Ok(value)) => Ok(value),
            Some(Err(panic)) => Err(BlockingError::Panicked(panic)),
            None => Err(BlockingError::Ended),
        })
    }
}

/// Why there is no result of a closure.
#[derive(Debug, thiserror::Error)]
pub enum BlockingError {
    /// There is no runtime on this thread.
    #[error("spawn_blocking needs a weir runtime: call it inside block_on")]
    NoRuntime,
    /// The runtime has ended, or ends, and the closure never began.
    #[error("the runtime ended before the closure began")]
    Ended,
    /// The closure panicked, with this payload. The message was printed when it happened.
    #[error("the closure panicked: {}", text(.0.as_ref()))]
    Panicked(Panic),
}

impl BlockingError {
    /// The payload of the closure's panic, for [`resume_unwind`](std::panic::resume_unwind).
    ///
    /// # Errors
    /// Any other error, unchanged.
    pub fn into_panic(self) -> Result<Box<dyn Any + Send>, Self> {
        match self {
            Self::Panicked(panic) => Ok(panic),
            other => Err(other),
        }
    }
}

impl From<BlockingError> for io::Error {
    fn from(error: BlockingError) -> Self {
        io::Error::other(error.to_string())
    }
}

/// The message of a panic, if it has one.
fn text(panic: &(dyn Any + Send)) -> &str {
    let literal = panic.downcast_ref::<&str>().copied();
    literal.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}

#[cfg(test)]
mod tests;
