//! A spawned task and its result.

use std::{
    cell::RefCell,
    future::Future,
    pin::Pin,
    rc::{Rc, Weak},
    task::{Context, Poll, Waker},
};

use pin_project_lite::pin_project;

use super::Core;
use crate::slab::SlotId;

#[derive(Debug)]
struct Inner<T> {
    output: Option<T>,
    waiter: Option<Waker>,
}

#[derive(Debug)]
pub(crate) struct JoinState<T>(RefCell<Inner<T>>);

impl<T> JoinState<T> {
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Self(RefCell::new(Inner { output: None, waiter: None })))
    }

    pub(crate) fn finish(&self, output: T) {
        let mut inner = self.0.borrow_mut();
        inner.output = Some(output);
        if let Some(waiter) = inner.waiter.take() {
            waiter.wake();
        }
    }
}

pin_project! {
    /// A task: its future, and where the result goes. As an `async` block that awaits the future it would be twice as
    /// large, because such a block keeps a place for what it was given and another for what it awaits.
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
/// Awaiting the handle of an aborted task waits for ever: whoever aborts does not wait.
#[derive(Debug)]
pub struct JoinHandle<T> {
    state: Rc<JoinState<T>>,
    /// Slots say nothing outside their own runtime.
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

    /// Whether the result is there.
    pub fn is_finished(&self) -> bool {
        self.state.0.borrow().output.is_some()
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut inner = self.state.0.borrow_mut();
        match inner.output.take() {
            Some(output) => Poll::Ready(output),
            None => {
                inner.waiter = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
