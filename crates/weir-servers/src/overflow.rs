//! Messages that one worker could not hand to another: one queue for each priority, in order, with a stated maximum.
//! The gateway and the exchange have one for each worker that they send to.
//!
//! Requests have a maximum because their sources stop: a client whose requests go to a worker with undelivered
//! messages is not read, so each account has at most one message here. A cancel of everything may follow it, and one
//! more for each account; a further one would find nothing to cancel, and is dropped. Responses must not be lost, and
//! their number is bounded by what the messages in flight may cause. The creator of an [`Overflow`] states that
//! number, and makes sure that it accepts no more; one too many is a bug and ends the process, instead of exhausting
//! its memory.

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, VecDeque, hash_map::Entry},
};

use weir_engine::handoff::Priority;

/// Requests that belong to no account.
const OTHERS_MAX: usize = 4;

/// The kind of a handed-over message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A message of this account.
    Message(u32),
    /// Cancel everything that this account has open.
    CancelAll(u32),
    /// Another request.
    Request,
    Response,
}

impl Role {
    /// Responses overtake requests, so that work in progress finishes.
    pub(crate) fn priority(self) -> Priority {
        match self {
            Role::Message(_) | Role::CancelAll(_) | Role::Request => Priority::Request,
            Role::Response => Priority::Response,
        }
    }
}

/// A message that is handed over.
pub(crate) trait Handed: Copy {
    fn role(&self) -> Role;
}

/// Upper bounds for the undelivered messages to one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Number of accounts: each may have one message and two cancels of everything.
    pub(crate) accounts: usize,
    pub(crate) responses: usize,
}

impl Bounds {
    fn of(&self, priority: Priority) -> usize {
        match priority {
            Priority::Request => 3 * self.accounts + OTHERS_MAX,
            Priority::Response => self.responses,
        }
    }
}

/// Messages that the port to another worker did not take.
pub(crate) struct Overflow<T> {
    bounds: Bounds,
    queues: [RefCell<VecDeque<T>>; 2],
    messages: Cell<usize>,
    /// The number of requests stored, and how many of them have left.
    kept: Cell<u64>,
    left: Cell<u64>,
    /// Accounts whose last request in here cancels everything, with the number of requests stored before it. It keeps
    /// a client that connects and disconnects repeatedly from filling the list with them.
    cancelling: RefCell<HashMap<u32, u64>>,
}

impl<T: Handed> Overflow<T> {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            queues: Default::default(),
            messages: Cell::new(0),
            kept: Cell::new(0),
            left: Cell::new(0),
            cancelling: RefCell::default(),
        }
    }

    /// Whether one more client message may be undelivered.
    pub(crate) fn takes_message(&self) -> bool {
        self.messages.get() < self.bounds.accounts
    }

    pub(crate) fn is_empty(&self) -> bool {
        Priority::BOTH.into_iter().all(|priority| self.count(priority) == 0)
    }

    /// The number of undelivered messages of a priority. Later ones wait behind them.
    pub(crate) fn count(&self, priority: Priority) -> usize {
        self.of(priority).borrow().len()
    }

    /// Stores a message that the port did not take.
    pub(crate) fn add(&self, handed: T) {
        let role = handed.role();
        let before = self.kept.get();
        match role {
            Role::CancelAll(account) => match self.cancelling.borrow_mut().entry(account) {
                Entry::Occupied(_) => return,
                Entry::Vacant(place) => _ = place.insert(before),
            },
            Role::Message(account) => {
                self.cancelling.borrow_mut().remove(&account);
                self.messages.set(self.messages.get() + 1);
            }
            Role::Request | Role::Response => {}
        }
        if role.priority() == Priority::Request {
            self.kept.set(before + 1);
        }
        let (mut queue, most) = (self.of(role.priority()).borrow_mut(), self.bounds.of(role.priority()));
        assert!(queue.len() < most, "more than {most} messages ({:?}) wait for a worker", role.priority());
        queue.push_back(handed);
    }

    /// Hands over, responses first, until one of each priority is not taken.
    pub(crate) fn hand_over(&self, mut takes: impl FnMut(T) -> bool) {
        for priority in Priority::BOTH {
            let mut queue = self.of(priority).borrow_mut();
            while let Some(handed) = queue.front().copied() {
                if !takes(handed) {
                    break;
                }
                queue.pop_front();
                if priority == Priority::Request {
                    self.let_go(handed.role());
                }
            }
        }
    }

    /// A request has left.
    fn let_go(&self, role: Role) {
        let before = self.left.replace(self.left.get() + 1);
        match role {
            Role::Message(_) => self.messages.set(self.messages.get() - 1),
            Role::CancelAll(account) => {
                // A later one of this account may still be in here; then no other is added.
                if let Entry::Occupied(last) = self.cancelling.borrow_mut().entry(account)
                    && *last.get() == before
                {
                    last.remove();
                }
            }
            Role::Request | Role::Response => {}
        }
    }

    /// The destination worker accepts nothing any more.
    pub(crate) fn clear(&self) {
        self.hand_over(|_| true);
    }

    fn of(&self, priority: Priority) -> &RefCell<VecDeque<T>> {
        &self.queues[usize::from(priority == Priority::Response)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Handed for Role {
        fn role(&self) -> Role {
            *self
        }
    }

    fn overflow(accounts: usize, responses: usize) -> Overflow<Role> {
        Overflow::new(Bounds { accounts, responses })
    }

    /// Takes this many, and returns their roles.
    fn take(waiting: &Overflow<Role>, count: usize) -> Vec<Role> {
        let mut taken = Vec::new();
        waiting.hand_over(|role| {
            let is_taken = taken.len() < count;
            taken.extend(is_taken.then_some(role));
            is_taken
        });
        taken
    }

    #[test]
    fn what_is_undelivered_leaves_in_order_and_a_client_that_comes_and_goes_adds_one_cancel() {
        let waiting = overflow(3, 0);
        for account in [1, 2, 1] {
            assert!(waiting.takes_message());
            waiting.add(Role::Message(account));
            (0..1000).for_each(|_| waiting.add(Role::CancelAll(account)));
        }
        assert!(!waiting.takes_message(), "as many messages as accounts");
        let both = |account: u32| [Role::Message(account), Role::CancelAll(account)];
        let expected = [both(1), both(2), both(1)].concat();
        assert_eq!(take(&waiting, 4), expected[..4]);
        assert!(waiting.takes_message(), "two of three have left");
        // Another one of the first account is still in here.
        waiting.add(Role::CancelAll(1));
        waiting.add(Role::CancelAll(2));
        assert_eq!(
            take(&waiting, 9),
            [&expected[4..], &[Role::CancelAll(2)]].concat(),
            "the one before has left"
        );
        assert!(waiting.is_empty());
    }

    #[test]
    fn a_client_that_comes_and_goes_with_each_that_leaves_adds_no_more_than_is_stated() {
        let waiting = overflow(1, 0);
        for _ in 0..1000 {
            waiting.add(Role::CancelAll(1));
            if waiting.takes_message() {
                waiting.add(Role::Message(1));
                waiting.add(Role::CancelAll(1));
            }
            assert!(waiting.count(Priority::Request) <= 3);
            assert_eq!(take(&waiting, 1).len(), 1);
        }
    }

    #[test]
    fn responses_leave_first_and_one_priority_does_not_hold_the_other_up() {
        let waiting = overflow(1, 2);
        for role in [Role::Message(1), Role::Response, Role::Request, Role::Response] {
            waiting.add(role);
        }
        let mut offered = Vec::new();
        waiting.hand_over(|role| {
            offered.push(role);
            role.priority() == Priority::Request
        });
        assert_eq!(offered, [Role::Response, Role::Message(1), Role::Request]);
        assert_eq!((waiting.count(Priority::Request), waiting.count(Priority::Response)), (0, 2));
        waiting.clear();
        assert!(waiting.is_empty() && waiting.takes_message());
    }

    #[test]
    fn the_most_that_is_stated_finds_room_and_one_more_does_not() {
        let waiting = overflow(1, 2);
        (0..2).for_each(|_| waiting.add(Role::Response));
        waiting.add(Role::CancelAll(1));
        waiting.add(Role::Message(1));
        waiting.add(Role::CancelAll(1));
        (0..OTHERS_MAX).for_each(|_| waiting.add(Role::Request));
        for one_more in [Role::Response, Role::Request] {
            let add = std::panic::AssertUnwindSafe(|| waiting.add(one_more));
            assert!(std::panic::catch_unwind(add).is_err(), "{one_more:?}");
        }
    }
}
