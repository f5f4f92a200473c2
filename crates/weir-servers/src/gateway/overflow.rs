//! What one worker could not hand to another.

use std::{
    cell::{Cell, RefCell},
    collections::{HashSet, VecDeque},
};

use super::task::{Kind, Task};
use crate::notify::Signal;

/// What the port to another worker did not take, in order.
///
/// While it is not empty no more is received of the exchanges (`Gateway::after_receive`), of the clients whose orders
/// go to that worker (`Gateway::is_congested`), and, when answers are in it, of those whose orders are sent here
/// (`Gateway::fall_behind`). So its maximum is: one order for each account, of which more are refused; a cancel of
/// everything for each of these and for each account; and answers, none of which may be lost, as many as one receive
/// of each upstream session has and one to each order that was on its way here.
pub(super) struct Overflow {
    orders_max: usize,
    orders: Cell<usize>,
    tasks: RefCell<VecDeque<Task>>,
    /// Accounts whose last task in here cancels everything: another one behind it would find nothing more. A client
    /// that comes and goes would fill the list with them.
    cancelling: RefCell<HashSet<u32>>,
    pub(super) added: Signal,
}

impl Overflow {
    /// For the clients of so many accounts.
    pub(super) fn new(accounts: usize) -> Self {
        Self {
            orders_max: accounts,
            orders: Cell::new(0),
            tasks: RefCell::default(),
            cancelling: RefCell::default(),
            added: Signal::default(),
        }
    }

    /// Whether one more order may be stuck.
    pub(super) fn takes_order(&self) -> bool {
        self.orders.get() < self.orders_max
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tasks.borrow().is_empty()
    }

    pub(super) fn add(&self, task: Task) {
        let mut cancelling = self.cancelling.borrow_mut();
        let adds_something = match task.kind {
            Kind::CancelAll => cancelling.insert(task.account),
            Kind::Order => {
                cancelling.remove(&task.account);
                self.orders.set(self.orders.get() + 1);
                true
            }
            Kind::Reply | Kind::Refusal | Kind::GiveBack | Kind::Room => true,
        };
        if adds_something {
            self.tasks.borrow_mut().push_back(task);
            self.added.raise();
        }
    }

    /// Hands over until one is not taken.
    pub(super) fn hand_over(&self, mut takes: impl FnMut(Task) -> bool) {
        let mut tasks = self.tasks.borrow_mut();
        while let Some(task) = tasks.front().copied() {
            if !takes(task) {
                return;
            }
            tasks.pop_front();
            if task.kind == Kind::Order {
                self.orders.set(self.orders.get() - 1);
            }
            if task.kind == Kind::CancelAll {
                self.cancelling.borrow_mut().remove(&task.account);
            }
        }
    }

    pub(super) fn clear(&self) {
        self.orders.set(0);
        self.tasks.borrow_mut().clear();
        self.cancelling.borrow_mut().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(stuck: &Overflow) -> Vec<(Kind, u32)> {
        stuck.tasks.borrow().iter().map(|task| (task.kind, task.account)).collect()
    }

    #[test]
    fn what_is_stuck_leaves_in_order_and_a_client_that_comes_and_goes_adds_one_cancel() {
        let stuck = Overflow::new(2);
        let add = |kind: Kind, account: u32| stuck.add(Task::bare(kind, account));
        assert!(stuck.takes_order());
        for account in [1, 2, 1] {
            add(Kind::Order, account);
            (0..1000).for_each(|_| add(Kind::CancelAll, account));
        }
        let both = |account: u32| [(Kind::Order, account), (Kind::CancelAll, account)];
        let expected = [both(1), both(2), both(1)].concat();
        assert_eq!(kinds(&stuck), expected);
        assert!(!stuck.takes_order(), "as many orders as accounts");
        let mut taken = Vec::new();
        stuck.hand_over(|task| {
            let is_taken = taken.len() < 4;
            taken.extend(is_taken.then_some((task.kind, task.account)));
            is_taken
        });
        assert_eq!((&taken[..], kinds(&stuck)), (&expected[..4], expected[4..].to_vec()));
        assert!(stuck.takes_order(), "two of three have left");
        add(Kind::CancelAll, 2);
        assert_eq!(kinds(&stuck).last(), Some(&(Kind::CancelAll, 2)), "the one before has left");
    }
}
