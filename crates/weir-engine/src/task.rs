//! The result of a spawned task.

use std::{
    cell::RefCell,
    future::Future,
    pin::Pin,
    rc::{Rc, Weak},
    task::{Context, Poll, Waker},
};

use crate::{runtime::Core, slots::SlotId};

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
