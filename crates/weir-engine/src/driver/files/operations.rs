//! Operations in flight: at most as many as the limit allows, the others in line; the answers go to the futures that
//! still wait.
//!
//! It performs no operation: a driver begins the admitted ones and reports when they are over. An operation whose
//! future was dropped continues and keeps its place and its memory until it is over; then its answer is dropped.

use std::{
    rc::Rc,
    task::{Poll, Waker},
};

use super::{FileResult, Request, try_now};
use crate::{
    counters::Counters,
    pool::Pool,
    slab::{Slab, SlotId},
    sync::{FairSemaphore, GivenUp, Ticket},
    wakers::Departed,
};

/// The state of an operation, as its future knows it.
#[derive(Debug)]
pub(crate) enum FileOperation {
    New(Request),
    /// Waits in line.
    Waiting(Request, Ticket),
    /// The driver performs it.
    Begun(SlotId),
    /// The answer was given.
    Over,
}

impl FileOperation {
    /// The answer, if the operation has not begun and cannot block.
    pub(crate) fn try_now(&mut self, pool: &Rc<Pool>, counters: &Counters) -> Option<FileResult> {
        let FileOperation::New(request) = self else { return None };
        let answer = try_now(request, pool, counters)?;
        *self = FileOperation::Over;
        Some(answer)
    }

    /// The request of an operation that is performed at once.
    pub(crate) fn take(&mut self) -> Option<Request> {
        match std::mem::replace(self, FileOperation::Over) {
            FileOperation::New(request) | FileOperation::Waiting(request, _) => Some(request),
            FileOperation::Begun(_) | FileOperation::Over => None,
        }
    }
}

/// The result of polling an operation.
#[derive(Debug)]
pub(crate) enum Step {
    Over(FileResult),
    /// There is room for it: [`Operations::begin`] follows.
    Admitted(Request),
    Pending,
}

#[derive(Debug)]
enum Lifecycle {
    /// A future waits.
    Running(Waker),
    /// The future was dropped.
    Forgotten,
    /// The answer is there.
    Over(FileResult),
}

#[derive(Debug)]
struct Entry<T> {
    /// The driver's state for the operation while it runs.
    work: Option<T>,
    lifecycle: Lifecycle,
}

/// The operations of one driver.
#[derive(Debug)]
pub(crate) struct Operations<T> {
    slots: Slab<Entry<T>>,
    permits: FairSemaphore,
    /// Begun and not over.
    in_flight: usize,
    /// Shared with the driver.
    departed: Rc<Departed>,
}

impl<T> Operations<T> {
    /// At most `maximum` are in flight at a time.
    pub(crate) fn new(maximum: usize, departed: &Rc<Departed>) -> Self {
        Self {
            // Answers that have not been taken belong to futures, as their requests did: the number of tasks bounds
            // them.
            slots: Slab::new(usize::MAX),
            permits: FairSemaphore::new(maximum),
            in_flight: 0,
            departed: Rc::clone(departed),
        }
    }

    /// The next step of a future that is polled.
    pub(crate) fn poll(&mut self, operation: &mut FileOperation, waker: &Waker) -> Step {
        match std::mem::replace(operation, FileOperation::Over) {
            FileOperation::New(request) => self.enter(operation, request, None, waker),
            FileOperation::Waiting(request, ticket) => self.enter(operation, request, Some(ticket), waker),
            FileOperation::Begun(id) => self.look(operation, id, waker),
            FileOperation::Over => Step::Pending,
        }
    }

    fn enter(
        &mut self,
        operation: &mut FileOperation,
        request: Request,
        mut ticket: Option<Ticket>,
        waker: &Waker,
    ) -> Step {
        let (outcome, replaced) = self.permits.poll_acquire(&mut ticket, waker);
        self.departed.let_go(replaced);
        match (outcome, ticket) {
            (Poll::Pending, Some(ticket)) => {
                *operation = FileOperation::Waiting(request, ticket);
                Step::Pending
            }
            (Poll::Pending | Poll::Ready(()), _) => Step::Admitted(request),
        }
    }

    fn look(&mut self, operation: &mut FileOperation, id: SlotId, waker: &Waker) -> Step {
        let Some(entry) = self.slots.get_mut(id) else { return Step::Pending };
        if let Lifecycle::Running(present) = &mut entry.lifecycle {
            self.departed.replace(present, waker);
            *operation = FileOperation::Begun(id);
            return Step::Pending;
        }
        match self.slots.remove(id).map(|entry| entry.lifecycle) {
            Some(Lifecycle::Over(answer)) => Step::Over(answer),
            Some(Lifecycle::Running(_) | Lifecycle::Forgotten) | None => Step::Pending,
        }
    }

    /// Registers an operation that was admitted.
    pub(crate) fn begin(&mut self, operation: &mut FileOperation, waker: &Waker, work: T) -> SlotId {
        let entry = Entry { work: Some(work), lifecycle: Lifecycle::Running(waker.clone()) };
        let Ok(id) = self.slots.insert(entry) else {
            panic!("four thousand million answers wait for their futures");
        };
        self.in_flight += 1;
        *operation = FileOperation::Begun(id);
        id
    }

    /// The driver's state for a running operation.
    pub(crate) fn work(&mut self, id: SlotId) -> Option<&mut T> {
        self.slots.get_mut(id)?.work.as_mut()
    }

    /// Takes that state out: the operation is about to end.
    pub(crate) fn take_work(&mut self, id: SlotId) -> Option<T> {
        self.slots.get_mut(id)?.work.take()
    }

    /// Whether the future of an operation was dropped.
    pub(crate) fn is_forgotten(&self, id: SlotId) -> bool {
        self.slots.get(id).is_none_or(|entry| matches!(entry.lifecycle, Lifecycle::Forgotten))
    }

    /// An operation is over: its memory is no longer in use.
    pub(crate) fn finish(&mut self, id: SlotId, answer: FileResult) {
        let Some(entry) = self.slots.get_mut(id) else { return };
        entry.work = None;
        match std::mem::replace(&mut entry.lifecycle, Lifecycle::Over(answer)) {
            Lifecycle::Running(waker) => self.departed.wake(Some(waker)),
            Lifecycle::Forgotten => drop(self.slots.remove(id)),
            Lifecycle::Over(_) => return,
        }
        self.in_flight -= 1;
        self.departed.wake(self.permits.release());
    }

    /// The future is dropped.
    pub(crate) fn forget(&mut self, operation: &mut FileOperation) {
        match std::mem::replace(operation, FileOperation::Over) {
            FileOperation::Waiting(_, ticket) => match self.permits.give_up(ticket) {
                GivenUp::Left(waker) => self.departed.let_go(Some(waker)),
                GivenUp::PassedOn(next) => self.departed.wake(next),
            },
            FileOperation::Begun(id) => {
                let Some(entry) = self.slots.get_mut(id) else { return };
                match std::mem::replace(&mut entry.lifecycle, Lifecycle::Forgotten) {
                    Lifecycle::Over(_) => drop(self.slots.remove(id)),
                    Lifecycle::Running(waker) => self.departed.let_go(Some(waker)),
                    Lifecycle::Forgotten => {}
                }
            }
            FileOperation::New(_) | FileOperation::Over => {}
        }
    }

    /// Operations that have begun and are not over.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Their names.
    pub(crate) fn running(&self) -> Vec<SlotId> {
        let is_running = |id: &SlotId| {
            self.slots.get(*id).is_some_and(|entry| !matches!(entry.lifecycle, Lifecycle::Over(_)))
        };
        self.slots.ids().into_iter().filter(is_running).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::files::Outcome;

    fn request() -> FileOperation {
        let path = c"/nowhere".to_owned();
        let (flags, mode) = (rustix::fs::OFlags::empty(), rustix::fs::Mode::empty());
        FileOperation::New(Request::Open { below: None, path, flags, mode })
    }

    fn admit(operations: &mut Operations<()>, operation: &mut FileOperation) -> Option<SlotId> {
        match operations.poll(operation, Waker::noop()) {
            Step::Admitted(_) => Some(operations.begin(operation, Waker::noop(), ())),
            Step::Pending => None,
            Step::Over(answer) => panic!("nobody has answered: {answer:?}"),
        }
    }

    #[test]
    fn a_forgotten_operation_keeps_its_place_until_it_is_over() {
        let mut operations = Operations::new(1, &Rc::default());
        let (mut first, mut second) = (request(), request());
        let id = admit(&mut operations, &mut first).expect("there is room");
        operations.forget(&mut first);
        assert!(operations.is_forgotten(id));
        assert_eq!(admit(&mut operations, &mut second), None, "the first one is still in flight");
        operations.finish(id, Ok(Outcome::Done));
        assert_eq!(operations.in_flight(), 0);
        assert!(admit(&mut operations, &mut second).is_some());
    }

    #[test]
    fn an_answer_that_waits_for_its_future_takes_no_place() {
        let mut operations = Operations::new(1, &Rc::default());
        let (mut first, mut second) = (request(), request());
        let id = admit(&mut operations, &mut first).expect("there is room");
        operations.finish(id, Ok(Outcome::Done));
        assert!(admit(&mut operations, &mut second).is_some());
        assert!(matches!(operations.poll(&mut first, Waker::noop()), Step::Over(Ok(Outcome::Done))));
        operations.forget(&mut second);
        assert_eq!(operations.running().len(), 1, "forgotten, and not over");
    }

    #[test]
    fn who_is_dropped_in_the_line_leaves_it() {
        let mut operations = Operations::new(1, &Rc::default());
        let (mut first, mut second, mut third) = (request(), request(), request());
        let id = admit(&mut operations, &mut first).expect("there is room");
        assert!(
            admit(&mut operations, &mut second).is_none() && admit(&mut operations, &mut third).is_none()
        );
        operations.finish(id, Ok(Outcome::Done));
        // It had already been admitted.
        operations.forget(&mut second);
        assert!(admit(&mut operations, &mut third).is_some());
    }
}
