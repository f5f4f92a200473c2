//! The tasks that wait for a journal. One thread only.

use std::{
    cell::{Cell, RefCell},
    task::Waker,
};

/// Wakers, each with the number that it waits for.
///
/// A future that is polled again needlessly takes no second place. A dropped future keeps its place until the number
/// is reached, and its waker is then called needlessly.
#[derive(Default)]
pub(super) struct WaitList {
    entries: RefCell<Vec<(u64, Waker)>>,
    /// Changes when places move.
    epoch: Cell<u64>,
    /// Kept to reuse its memory.
    due: Cell<Vec<Waker>>,
}

/// The place of one future in a list.
#[derive(Default)]
pub(super) struct WaitKey(Option<(u64, usize)>);

impl WaitList {
    /// Registers the waker for the moment when `number` is reached.
    pub(super) fn wait(&self, wait_key: &mut WaitKey, number: u64, waker: &Waker) {
        let mut entries = self.entries.borrow_mut();
        if let Some((epoch, index)) = wait_key.0
            && epoch == self.epoch.get()
        {
            entries[index].1.clone_from(waker);
            return;
        }
        wait_key.0 = Some((self.epoch.get(), entries.len()));
        entries.push((number, waker.clone()));
    }

    /// Calls the wakers that wait for this number or a lower one.
    pub(super) fn reached(&self, number: u64) {
        if self.entries.borrow().is_empty() {
            return;
        }
        let mut due = self.due.take();
        due.extend(
            self.entries.borrow_mut().extract_if(.., |(wanted, _)| *wanted <= number).map(|(_, waker)| waker),
        );
        self.epoch.set(self.epoch.get() + 1);
        // No list is borrowed now, because a waker may run any code.
        due.drain(..).for_each(Waker::wake);
        self.due.set(due);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering::Relaxed},
        },
        task::Wake,
    };

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn each_waits_for_its_own_number_and_takes_one_place() {
        let list = WaitList::default();
        let counts: [Arc<Count>; 2] = Default::default();
        let wakers = counts.clone().map(Waker::from);
        let mut wait_keys = [WaitKey::default(), WaitKey::default()];
        for _ in 0..3 {
            list.wait(&mut wait_keys[0], 5, &wakers[0]);
            list.wait(&mut wait_keys[1], 7, &wakers[1]);
        }
        list.reached(4);
        list.reached(6);
        assert_eq!(counts.each_ref().map(|count| count.0.load(Relaxed)), [1, 0]);
        // Its place has moved.
        list.wait(&mut wait_keys[1], 7, &wakers[1]);
        list.reached(u64::MAX);
        assert_eq!(counts[0].0.load(Relaxed), 1);
        assert!(counts[1].0.load(Relaxed) >= 1);
        assert!(list.entries.borrow().is_empty());
    }
}
