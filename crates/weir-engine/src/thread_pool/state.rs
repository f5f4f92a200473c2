//! What a pool of threads decides: whether a job has a place, whether a thread starts, what a thread does next. No
//! lock, no clock and no thread is here, so tests drive it step by step.
//!
//! ```text
//!            place free                    thread takes it           it returns
//! caller ───────────────▶ job in the queue ───────────────▶ running ────────────▶ over
//!    │  queue full           ▲          │ close
//!    ▼                       │          ▼
//! in line ──▶ place reserved ┘       dropped
//! ```
//!
//! Invariants: (1) jobs and reserved places together are never more than the maximum; (2) a caller is in line only
//! while they are exactly that many; (3) a job is in the queue only while a thread exists, or is about to be started,
//! unless [`State::take_stranded`] follows.

use std::{collections::VecDeque, mem, task::Waker};

use crate::sync::{Ticket, WaitList};

/// The state of a pool.
#[derive(Debug)]
pub(super) struct State<J> {
    threads_max: usize,
    queue_max: usize,
    /// Not begun.
    jobs: VecDeque<J>,
    /// Callers that wait for a place in the queue, in order.
    line: WaitList,
    /// Places of callers that were taken out of the line and have not used theirs yet.
    reserved: usize,
    /// Threads that wait for a job.
    pub(super) idle: usize,
    /// Threads that exist, or are being started.
    threads: usize,
    /// Jobs that threads perform now.
    running: usize,
    is_closed: bool,
}

/// The answer to a caller that has a job.
#[derive(Debug)]
pub(super) enum Admission {
    /// There is a place for it.
    Place,
    /// It waits in line. Its earlier waker, if it was replaced, is to be dropped when nothing is locked.
    Waits(Option<Waker>),
    /// The pool takes no more jobs.
    Closed,
}

/// What a thread does next.
#[derive(Debug)]
pub(super) enum Next<J> {
    /// This job. The caller that gets the place it leaves is to be woken.
    Run(J, Option<Waker>),
    /// It waits for a job.
    Wait,
    /// It ends. It is no longer counted.
    End,
}

/// The wakers that a caller's departure leaves: one to drop, one to wake. Both when nothing is locked.
#[derive(Debug, Default)]
pub(super) struct Departure {
    pub(super) own: Option<Waker>,
    pub(super) next: Option<Waker>,
}

impl<J> State<J> {
    /// At least one thread, and at least one place.
    pub(super) fn new(threads_max: usize, queue_max: usize) -> Self {
        Self {
            threads_max: threads_max.max(1),
            queue_max: queue_max.max(1),
            jobs: VecDeque::new(),
            line: WaitList::new(),
            reserved: 0,
            idle: 0,
            threads: 0,
            running: 0,
            is_closed: false,
        }
    }

    fn has_room(&self) -> bool {
        self.jobs.len() + self.reserved < self.queue_max
    }

    /// Asks for a place. A caller that comes later does not pass those in line. After `Place` the caller calls
    /// [`Self::push`] at once.
    pub(super) fn admit(&mut self, ticket: &mut Option<Ticket>, waker: &Waker) -> Admission {
        if self.is_closed {
            return Admission::Closed;
        }
        match *ticket {
            Some(own) if !self.line.has(own) => {
                self.reserved -= 1;
                *ticket = None;
                Admission::Place
            }
            None if self.line.is_empty() && self.has_room() => Admission::Place,
            _ => Admission::Waits(self.line.wait(ticket, (), waker)),
        }
    }

    /// Queues a job. True: a thread must be started for it, and is already counted.
    pub(super) fn push(&mut self, job: J) -> bool {
        self.jobs.push_back(job);
        let is_short = self.idle < self.jobs.len() && self.threads < self.threads_max;
        self.threads += usize::from(is_short);
        is_short
    }

    /// A caller that waits in line, or has a reserved place, gives it up.
    pub(super) fn leave(&mut self, ticket: Ticket) -> Departure {
        match self.line.leave(ticket) {
            Some(own) => Departure { own: Some(own), next: None },
            None if self.is_closed => Departure::default(),
            None => {
                self.reserved -= 1;
                Departure { own: None, next: self.reserve() }
            }
        }
    }

    /// Reserves a free place for the first in line, who is to be woken.
    #[must_use = "its task waits to be woken"]
    fn reserve(&mut self) -> Option<Waker> {
        if !self.has_room() {
            return None;
        }
        let first = self.line.take_first()?;
        self.reserved += 1;
        Some(first)
    }

    /// What a thread does next. A thread that has waited long enough ends if there is no job.
    pub(super) fn next(&mut self, has_waited: bool) -> Next<J> {
        if let Some(job) = self.jobs.pop_front() {
            self.running += 1;
            return Next::Run(job, self.reserve());
        }
        if self.is_closed || has_waited {
            self.threads -= 1;
            return Next::End;
        }
        Next::Wait
    }

    /// A thread has performed its job.
    pub(super) fn finish(&mut self) {
        self.running -= 1;
    }

    /// A thread that was counted could not be started, or is gone.
    pub(super) fn lose_thread(&mut self) {
        self.threads -= 1;
    }

    /// The jobs, if there is no thread that could take them, and the callers to wake.
    pub(super) fn take_stranded(&mut self) -> (VecDeque<J>, Vec<Waker>) {
        if self.threads > 0 {
            return Default::default();
        }
        let jobs = mem::take(&mut self.jobs);
        (jobs, std::iter::from_fn(|| self.reserve()).collect())
    }

    /// Takes no more jobs. Returns those that have not begun, and the callers to wake; `None` if it was closed before.
    /// Threads end after their job.
    pub(super) fn close(&mut self) -> Option<(VecDeque<J>, Vec<Waker>)> {
        if mem::replace(&mut self.is_closed, true) {
            return None;
        }
        let mut waiting = Vec::new();
        self.line.take_all(&mut waiting);
        Some((mem::take(&mut self.jobs), waiting))
    }

    /// Threads that exist, or are being started.
    pub(super) fn threads(&self) -> usize {
        self.threads
    }

    /// Jobs that threads perform now.
    pub(super) fn running(&self) -> usize {
        self.running
    }

    /// Jobs that wait for a thread.
    #[cfg(test)]
    pub(super) fn queued(&self) -> usize {
        self.jobs.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A caller: in line, or with a reserved place, if it has a ticket.
    #[derive(Default)]
    struct Caller(Option<Ticket>);

    impl Caller {
        /// Whether it has queued its job.
        fn tries(&mut self, state: &mut State<u32>, job: u32, started: &mut usize) -> bool {
            match state.admit(&mut self.0, Waker::noop()) {
                Admission::Place => {
                    *started += usize::from(state.push(job));
                    true
                }
                Admission::Waits(_) => false,
                Admission::Closed => panic!("nobody closes it"),
            }
        }
    }

    #[test]
    fn who_waits_is_not_passed_and_a_place_given_up_goes_to_the_next() {
        let (mut state, mut started) = (State::new(1, 1), 0);
        assert!(Caller::default().tries(&mut state, 0, &mut started) && started == 1);
        let (mut first, mut second, mut late) = (Caller::default(), Caller::default(), Caller::default());
        assert!(!first.tries(&mut state, 1, &mut started) && !second.tries(&mut state, 2, &mut started));
        let Next::Run(0, Some(_)) = state.next(false) else { panic!("the first in line is to be woken") };
        assert!(!late.tries(&mut state, 3, &mut started), "the place is reserved");
        let departure = state.leave(first.0.take().expect("it has a place"));
        assert!(departure.own.is_none() && departure.next.is_some());
        assert!(second.tries(&mut state, 2, &mut started));
        state.finish();
        assert!(matches!(state.next(false), Next::Run(2, Some(_))));
        assert_eq!((started, state.threads(), state.running()), (1, 1, 1));
    }

    #[test]
    fn a_thread_that_has_waited_ends_only_without_a_job_and_the_next_job_starts_another() {
        let mut state = State::new(2, 8);
        assert!(state.push(1));
        assert!(matches!(state.next(true), Next::Run(1, None)));
        state.finish();
        assert!(matches!(state.next(false), Next::Wait));
        assert!(matches!(state.next(true), Next::End));
        assert_eq!(state.threads(), 0);
        assert!(state.push(2), "a thread must start");
    }

    #[test]
    fn jobs_without_a_thread_are_given_back_and_a_closed_pool_takes_none() {
        let mut state = State::new(1, 1);
        assert!(state.push(1));
        let mut caller = Caller::default();
        assert!(matches!(state.admit(&mut caller.0, Waker::noop()), Admission::Waits(None)));
        state.lose_thread();
        let (jobs, wakers) = state.take_stranded();
        assert_eq!((Vec::from(jobs), wakers.len()), (vec![1], 1));
        assert!(matches!(state.admit(&mut caller.0, Waker::noop()), Admission::Place));
        assert!(state.push(2));
        let (dropped, _) = state.close().expect("it is open");
        assert_eq!(Vec::from(dropped), [2]);
        assert!(state.close().is_none(), "its threads were waited for once");
        assert!(matches!(state.admit(&mut caller.0, Waker::noop()), Admission::Closed));
        assert!(matches!(state.next(false), Next::End));
    }

    proptest! {
        /// Callers come, give up and go on in any order, and threads too: no limit is exceeded, jobs begin in the
        /// order in which they were queued, nobody waits while there is room, and every job has a thread.
        #[test]
        fn random_lives_keep_every_invariant(
            threads_max in 1_usize..4,
            queue_max in 1_usize..4,
            steps in prop::collection::vec((0_u8..6, any::<prop::sample::Index>()), 0..200),
        ) {
            let mut state = State::new(threads_max, queue_max);
            let (mut callers, mut queued, mut begun) = (Vec::<Caller>::new(), Vec::new(), Vec::new());
            let (mut job, mut started) = (0, 0);
            for (kind, choice) in steps {
                match kind {
                    0 | 1 => {
                        let mut caller = Caller::default();
                        job += 1;
                        if caller.tries(&mut state, job, &mut started) {
                            queued.push(job);
                        } else {
                            callers.push(caller);
                        }
                    }
                    2 if !callers.is_empty() => {
                        let index = choice.index(callers.len());
                        job += 1;
                        if callers[index].tries(&mut state, job, &mut started) {
                            queued.push(job);
                            callers.remove(index);
                        }
                    }
                    3 if !callers.is_empty() => {
                        let caller = callers.remove(choice.index(callers.len()));
                        drop(state.leave(caller.0.expect("it waits or has a place")));
                    }
                    4 if state.running() > 0 => state.finish(),
                    5 if state.threads() > state.running() => {
                        match state.next(choice.index(2) == 0) {
                            Next::Run(number, _) => begun.push(number),
                            Next::Wait => {}
                            Next::End => started -= 1,
                        }
                    }
                    _ => {}
                }
                prop_assert!(state.threads() == started && started <= threads_max);
                prop_assert!(state.queued() + state.reserved <= queue_max);
                prop_assert!(state.line.is_empty() || !state.has_room());
                prop_assert!(state.queued() == 0 || state.threads() > 0);
                prop_assert_eq!(state.line.len() + state.reserved, callers.len());
            }
            prop_assert_eq!(&queued[..begun.len()], &begun[..]);
        }
    }
}
