//! Tracks which threads of a server have not ended, and how long its end waits for them.
//!
//! A worker exceeds the limit of a drain only if it hangs: in a handler that computes forever, or in a kernel call
//! that does not return. Such a worker cannot be ended from outside. It is left behind and reported to the thread
//! that waits for the end.

use std::{
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use super::lock;

/// How much longer than the drain limit the end waits: helper threads that hang in a call are waited for 2 s, cut
/// threads of the blocking driver too, and a busy machine is slow.
const MARGIN: Duration = Duration::from_secs(10);

/// The threads of one server.
#[derive(Debug, Default)]
pub(super) struct Departures {
    state: Mutex<State>,
    /// A thread has ended, or the limit has been set.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// By thread: whether it has ended.
    gone: Vec<bool>,
    /// A thread has panicked.
    has_panicked: bool,
    /// `None`: the server has not been asked to end.
    until: Option<Instant>,
}

/// Held by a thread; when it is dropped the thread has ended.
pub(super) struct Present {
    departures: Arc<Departures>,
    thread: usize,
}

impl Drop for Present {
    fn drop(&mut self) {
        let mut state = lock(&self.departures.state);
        state.gone[self.thread] = true;
        state.has_panicked |= thread::panicking();
        drop(state);
        self.departures.changed.notify_all();
    }
}

impl Departures {
    /// Registers the next thread, which starts now.
    pub(super) fn begin(self: &Arc<Self>) -> Present {
        let mut state = lock(&self.state);
        state.gone.push(false);
        Present { departures: Arc::clone(self), thread: state.gone.len() - 1 }
    }

    /// Limits the end to this long from now on. Only the first call counts.
    pub(super) fn limit(&self, limit: Duration) {
        // A limit too large to be added means no limit.
        if let Some(until) = Instant::now().checked_add(limit.saturating_add(MARGIN)) {
            self.limit_until(until);
        }
    }

    /// As [`Self::limit`], without a margin.
    pub(super) fn limit_until(&self, until: Instant) {
        lock(&self.state).until.get_or_insert(until);
        self.changed.notify_all();
    }

    /// Waits for the end of all threads: returns those that have not ended when the limit and its margin are over. A
    /// panic before the server was asked to end also ends the wait.
    pub(super) fn wait(&self) -> Vec<usize> {
        let mut state = lock(&self.state);
        loop {
            let all = (0..).zip(&state.gone);
            let left: Vec<usize> = all.filter(|(_, gone)| !**gone).map(|(thread, _)| thread).collect();
            let time = state.until.map(|until| until.saturating_duration_since(Instant::now()));
            let is_over = time.map_or(state.has_panicked, |time| time.is_zero());
            if left.is_empty() || is_over {
                return left;
            }
            state = match time {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(time) => {
                    self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    #[cfg(test)]
    pub(super) fn is_limited(&self) -> bool {
        lock(&self.state).until.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn the_end_waits_for_all_and_when_its_limit_is_over_names_those_that_are_left() {
        let departures = Arc::new(Departures::default());
        let (first, second, third) = (departures.begin(), departures.begin(), departures.begin());
        let (waiting, (say, said)) = (Arc::clone(&departures), mpsc::channel());
        let ending = thread::spawn(move || say.send(waiting.wait()).expect("it is waited for"));
        drop(second);
        assert!(said.try_recv().is_err(), "nobody has told the server to end");
        departures.limit_until(Instant::now());
        assert_eq!(said.recv(), Ok(vec![0, 2]));
        ending.join().expect("it has ended");
        // The first limit counts.
        departures.limit(Duration::from_secs(600));
        assert_eq!(departures.wait(), vec![0, 2]);
        drop((first, third));
        assert!(departures.wait().is_empty());
    }

    #[test]
    fn a_panic_ends_a_server_that_nobody_has_told_to_end_and_does_not_cut_one_that_drains() {
        let departures = Arc::new(Departures::default());
        let (living, present) = (departures.begin(), departures.begin());
        let panics = thread::spawn(move || {
            let _present = present;
            panic!("on purpose");
        });
        assert!(panics.join().is_err());
        assert_eq!(departures.wait(), vec![0]);
        departures.limit(Duration::from_secs(600));
        let ends = thread::spawn(move || drop(living));
        assert!(departures.wait().is_empty(), "it is waited for");
        ends.join().expect("it does not panic");
    }

    #[test]
    fn a_limit_that_is_too_long_to_be_added_up_is_none() {
        let departures = Departures::default();
        departures.limit(Duration::MAX);
        assert!(!departures.is_limited());
    }
}
