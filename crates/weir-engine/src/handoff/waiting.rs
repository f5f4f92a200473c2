//! The futures of a port: waiting for room towards another worker, and for arrivals.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use super::{Port, WorkerEnded};
use crate::sync::Ticket;

/// The kind of arrival that a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Anything,
    Response,
}

impl Wanted {
    pub(super) const BOTH: [Wanted; 2] = [Wanted::Anything, Wanted::Response];

    pub(super) fn index(self) -> usize {
        match self {
            Wanted::Anything => 0,
            Wanted::Response => 1,
        }
    }
}

/// The future of [`Port::room`].
#[must_use = "a future does nothing unless it is awaited"]
#[derive(Debug)]
pub struct Room<'a, T> {
    port: &'a Port<T>,
    to: usize,
    ticket: Option<Ticket>,
}

impl<'a, T> Room<'a, T> {
    pub(super) fn new(port: &'a Port<T>, to: usize) -> Self {
        Self { port, to, ticket: None }
    }
}

impl<T> Future for Room<'_, T> {
    type Output = Result<(), WorkerEnded>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Room { port, to, ticket } = &mut *self;
        if port.has_ended(*to) {
            return Poll::Ready(Err(WorkerEnded(*to)));
        }
        let mut state = port.state();
        let Some(destination) = state.destinations.get_mut(*to) else { return Poll::Ready(Ok(())) };
        if !destination.is_congested() {
            return Poll::Ready(Ok(()));
        }
        let replaced = destination.waiters.wait(ticket, (), context.waker());
        drop(state);
        // Dropping a waker may run foreign code.
        drop(replaced);
        Poll::Pending
    }
}

impl<T> Drop for Room<'_, T> {
    /// A task that gives up waiting leaves no entry behind: clients come and go while a destination is congested.
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let mut state = self.port.state();
        let left = state.destinations.get_mut(self.to).and_then(|to| to.waiters.leave(ticket));
        drop(state);
        drop(left);
    }
}

/// The future of [`Port::ready`] and [`Port::ready_response`].
#[must_use = "a future does nothing unless it is awaited"]
#[derive(Debug)]
pub struct Ready<'a, T> {
    port: &'a Port<T>,
    wanted: Wanted,
    waker: Option<Waker>,
}

impl<'a, T> Ready<'a, T> {
    pub(super) fn new(port: &'a Port<T>, wanted: Wanted) -> Self {
        Self { port, wanted, waker: None }
    }
}

impl<T> Future for Ready<'_, T> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.port.state();
        let arrived = state.has(self.wanted);
        let place = &mut state.ready[self.wanted.index()];
        let previous = if arrived { place.take() } else { place.replace(context.waker().clone()) };
        drop(state);
        // Dropping a foreign waker may run foreign code: do it while the state is not borrowed.
        drop(previous);
        self.waker = if arrived { None } else { Some(context.waker().clone()) };
        if arrived { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl<T> Drop for Ready<'_, T> {
    fn drop(&mut self) {
        let Some(own) = self.waker.take() else { return };
        let mut state = self.port.state();
        // Another task may have replaced this one meanwhile.
        let place = &mut state.ready[self.wanted.index()];
        let is_own = place.as_ref().is_some_and(|waker| waker.will_wake(&own));
        let previous = if is_own { place.take() } else { None };
        drop(state);
        drop(previous);
    }
}
