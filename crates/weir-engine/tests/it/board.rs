//! A board on which handlers and scripts post notes for each other, across threads or inside one runtime: a test
//! waits for a note instead of letting time pass.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Wake, Waker},
    thread::Thread,
};

#[derive(Debug, Default)]
struct Notes {
    lines: Vec<String>,
    waiters: Vec<Waker>,
}

/// The board; clones are the same board.
#[derive(Clone, Debug, Default)]
pub struct Board(Arc<Mutex<Notes>>);

impl Board {
    pub fn new() -> Self {
        Self::default()
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Posts a note and wakes every waiter.
    pub fn post(&self, line: impl Into<String>) {
        let waiters = {
            let mut notes = self.notes();
            notes.lines.push(line.into());
            std::mem::take(&mut notes.waiters)
        };
        waiters.into_iter().for_each(Waker::wake);
    }

    /// The notes left so far.
    pub fn lines(&self) -> Vec<String> {
        self.notes().lines.clone()
    }

    /// Waits until there are `count` notes.
    pub async fn reached(&self, count: usize) {
        poll_fn(|context| {
            let mut notes = self.notes();
            if notes.lines.len() >= count {
                return Poll::Ready(());
            }
            notes.waiters.push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on a thread that has no runtime: blocking peers are ready at once, boards park the thread.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Polls a future once and drops it; `None` when it was not ready.
pub async fn poll_once<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}
