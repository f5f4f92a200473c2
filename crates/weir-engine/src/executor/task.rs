//! A spawned task and its result.

use std::{
    any::Any,
    cell::RefCell,
    future::Future,
    panic::resume_unwind,
    pin::Pin,
    rc::{Rc, Weak},
    task::{Context, Poll, Waker},
};

use pin_project_lite::pin_project;

use super::Core;
use crate::{slab::SlotId, wakers};

type Panic = Box<dyn Any + Send>;

#[derive(Debug)]
struct Inner<T> {
    /// The output, or the panic that ended the task.
    output: Option<Result<T, Panic>>,
    waiter: Option<Waker>,
}

/// The place of a task's result, whatever its type.
pub(super) trait TaskResult {
    /// The task ended by this panic. A task that had its result before keeps it: its values panicked afterwards.
    fn fail(&self, panic: Panic);
}

#[derive(Debug)]
pub(crate) struct JoinState<T>(RefCell<Inner<T>>);

impl<T> JoinState<T> {
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Self(RefCell::new(Inner { output: None, waiter: None })))
    }

    pub(crate) fn finish(&self, output: T) {
        self.end(Ok(output));
    }

    fn end(&self, output: Result<T, Panic>) {
        let mut inner = self.0.borrow_mut();
        inner.output = Some(output);
        let waiter = inner.waiter.take();
        // The woken code may read the result at once.
        drop(inner);
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }
}

impl<T> TaskResult for JoinState<T> {
    fn fail(&self, panic: Panic) {
        if self.0.borrow().output.is_none() {
            self.end(Err(panic));
        }
    }
}

pin_project! {
    /// A task: its future and the place of its result. As an `async` block that awaits the future it would be twice
    /// as large, because such a block keeps one place for the captured future and another for the awaited one.
    pub(crate) struct Finishing<F: Future> {
        #[pin]
        future: F,
        state: Rc<JoinState<F::Output>>,
    }
}

impl<F: Future> Finishing<F> {
    pub(crate) fn new(future: F, state: Rc<JoinState<F::Output>>) -> Self {
        Self { future, state }
    }
}

impl<F: Future> Future for Finishing<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let task = self.project();
        task.future.poll(context).map(|output| task.state.finish(output))
    }
}

/// Waits for a task's result. Dropping it leaves the task running.
///
/// Awaiting the handle of an aborted task never ends: do not await it after an abort.
///
/// # Panics
/// When the task has panicked, with its payload: the panic goes on in the task that awaits the result.
#[derive(Debug)]
pub struct JoinHandle<T> {
    state: Rc<JoinState<T>>,
    /// A slot has a meaning only in its own runtime.
    core: Weak<Core>,
    slot: SlotId,
}

impl<T> JoinHandle<T> {
    pub(crate) fn new(state: Rc<JoinState<T>>, core: Weak<Core>, slot: SlotId) -> Self {
        Self { state, core, slot }
    }

    /// Ends the task: its future is dropped now, or at its next await if it is running.
    pub fn abort(self) {
        if let Some(core) = self.core.upgrade() {
            core.cancel(self.slot);
        }
    }

    /// Whether the result is available.
    pub fn is_finished(&self) -> bool {
        self.state.0.borrow().output.is_some()
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut inner = self.state.0.borrow_mut();
        if let Some(output) = inner.output.take() {
            match output {
                Ok(output) => return Poll::Ready(output),
                Err(panic) => {
                    drop(inner);
                    resume_unwind(panic)
                }
            }
        }
        let previous = wakers::store(&mut inner.waiter, context.waker());
        drop(inner);
        drop(previous);
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, pin::pin, sync::Arc, task::Wake};

    use super::*;

    thread_local! {
        /// The task that the test's wakers check: it belongs to a thread, and wakers belong to none.
        static TASK: RefCell<Option<Rc<JoinState<u8>>>> = const { RefCell::new(None) };
        static LOOKS: Cell<u32> = const { Cell::new(0) };
    }

    /// A foreign waker that checks for the result when it wakes and when its last reference is dropped.
    struct Looks;

    impl Looks {
        fn look() {
            TASK.with_borrow(|task| {
                let state = task.as_ref().expect("the test has one");
                drop(state.0.borrow_mut());
            });
            LOOKS.set(LOOKS.get() + 1);
        }
    }

    impl Wake for Looks {
        fn wake(self: Arc<Self>) {
            Self::look();
        }
    }

    impl Drop for Looks {
        fn drop(&mut self) {
            Self::look();
        }
    }

    #[test]
    fn whoever_waits_for_a_task_may_look_at_it_when_woken_and_when_replaced() {
        let state = JoinState::new();
        TASK.set(Some(Rc::clone(&state)));
        let slot = SlotId { index: 0, generation: 0 };
        let mut handle = pin!(JoinHandle::new(Rc::clone(&state), Weak::new(), slot));
        for _ in 0..2 {
            let waker = Waker::from(Arc::new(Looks));
            assert!(handle.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        }
        assert_eq!(LOOKS.get(), 1, "the second has replaced the first");
        state.finish(7);
        assert_eq!(LOOKS.get(), 3, "it is woken, and then it goes");
        assert_eq!(handle.poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(7));
    }

    #[test]
    fn a_task_is_its_future_and_a_pointer() {
        let bytes = [7_u8; 1000];
        let future = async move {
            crate::time::yield_now().await;
            bytes.len()
        };
        let alone = size_of_val(&future);
        assert_eq!(size_of_val(&Finishing::new(future, JoinState::new())), alone + size_of::<usize>());
    }
}
