//! A table of results by path, each valid for a limited time. Pure: time is an argument, and the owner limits the
//! size.
//!
//! When there is no room, the CLOCK algorithm evicts: a hand moves round over the entries, skips those that were used
//! since its last visit, and takes the first that was not, or that has expired.

use std::{collections::HashMap, mem, rc::Rc, time::Duration};

use weir_engine::time::Instant;

/// The result of a lookup.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Look<T> {
    Fresh(T),
    /// There is an entry, but it has expired.
    Expired,
    Absent,
}

#[derive(Debug)]
struct Entry<T> {
    path: Rc<[u8]>,
    value: T,
    /// Expires at this moment.
    until: Instant,
    is_used: bool,
}

#[derive(Debug)]
pub(super) struct Cache<T> {
    validity: Duration,
    /// The index in `entries` for each path.
    places: HashMap<Rc<[u8]>, usize>,
    entries: Vec<Entry<T>>,
    /// The entry that is checked next when one has to be evicted.
    hand: usize,
}

impl<T: Clone> Cache<T> {
    /// An empty table whose entries are valid for this long.
    pub(super) fn new(validity: Duration) -> Self {
        Self { validity, places: HashMap::new(), entries: Vec::new(), hand: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn look(&mut self, path: &[u8], now: Instant) -> Look<T> {
        let Some(place) = self.places.get(path) else { return Look::Absent };
        let entry = &mut self.entries[*place];
        if entry.until <= now {
            return Look::Expired;
        }
        entry.is_used = true;
        Look::Fresh(entry.value.clone())
    }

    /// Stores a result for a path without an entry. `looked_at` is when the path was looked at, which may be a while
    /// ago.
    pub(super) fn insert(&mut self, path: &[u8], value: T, looked_at: Instant) {
        debug_assert!(!self.places.contains_key(path), "an older entry is removed first");
        let path: Rc<[u8]> = path.into();
        self.places.insert(Rc::clone(&path), self.entries.len());
        self.entries.push(Entry { path, value, until: looked_at + self.validity, is_used: false });
    }

    pub(super) fn remove(&mut self, path: &[u8]) -> Option<T> {
        self.places.get(path).copied().map(|place| self.take(place))
    }

    /// Evicts an entry to make room, from those that `may_go` allows. `None`: there is none.
    pub(super) fn evict(&mut self, now: Instant, may_go: impl Fn(&T) -> bool) -> Option<T> {
        // In the second round, no entry is marked as used any more.
        for _ in 0..2 * self.entries.len() {
            if self.hand >= self.entries.len() {
                self.hand = 0;
            }
            let entry = &mut self.entries[self.hand];
            let is_passed = !may_go(&entry.value) || (entry.until > now && mem::take(&mut entry.is_used));
            if !is_passed {
                return Some(self.take(self.hand));
            }
            self.hand += 1;
        }
        None
    }

    /// Removes every expired entry.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<T> {
        let mut gone = Vec::new();
        for place in (0..self.entries.len()).rev() {
            if self.entries[place].until <= now {
                gone.push(self.take(place));
            }
        }
        gone
    }

    fn take(&mut self, place: usize) -> T {
        let entry = self.entries.swap_remove(place);
        self.places.remove(&entry.path);
        if let Some(moved) = self.entries.get(place) {
            self.places.insert(Rc::clone(&moved.path), place);
        }
        entry.value
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const VALIDITY: Duration = Duration::from_millis(100);

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    #[test]
    fn an_entry_is_good_until_its_time_is_over_and_not_a_moment_longer() {
        let mut cache = Cache::new(VALIDITY);
        assert_eq!(cache.look(b"a", at(0)), Look::Absent);
        cache.insert(b"a", 1, at(50));
        assert_eq!(cache.look(b"a", at(149)), Look::Fresh(1));
        assert_eq!(cache.look(b"a", at(150)), Look::Expired);
        assert_eq!(cache.remove(b"a"), Some(1), "it is there to be replaced");
        cache.insert(b"a", 2, at(150));
        assert_eq!((cache.look(b"a", at(249)), cache.len()), (Look::Fresh(2), 1));
        assert!(cache.expire(at(249)).is_empty());
        assert_eq!(cache.expire(at(250)), [2]);
        assert_eq!((cache.look(b"a", at(0)), cache.len()), (Look::Absent, 0));
    }

    #[test]
    fn what_was_used_since_the_hand_came_by_stays_for_a_round() {
        let mut cache = Cache::new(VALIDITY);
        for (path, value) in [(b"a", 1), (b"b", 2), (b"c", 3)] {
            cache.insert(path, value, at(0));
        }
        cache.look(b"a", at(1));
        assert_eq!(cache.evict(at(1), |_| true), Some(2), "the first that nobody used");
        cache.insert(b"d", 4, at(1));
        cache.look(b"c", at(1));
        cache.look(b"d", at(1));
        assert_eq!(cache.evict(at(1), |_| true), Some(1), "its time of grace is over");
        cache.look(b"c", at(1));
        cache.look(b"d", at(1));
        assert_eq!(cache.evict(at(100), |_| true), Some(3), "used, and too old to be used again");
    }

    #[test]
    fn only_what_may_go_is_evicted() {
        let mut cache = Cache::new(VALIDITY);
        for (path, value) in [(b"a", 1), (b"b", 2), (b"c", 3)] {
            cache.insert(path, value, at(0));
            cache.look(path, at(0));
        }
        assert_eq!(cache.evict(at(0), |value| *value == 3), Some(3), "although it was used");
        assert_eq!(cache.evict(at(0), |value| *value == 3), None);
        assert_eq!(cache.len(), 2);
        assert_eq!(Cache::<u8>::new(VALIDITY).evict(at(0), |_| true), None);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Look(u8),
        Insert(u8),
        Remove(u8),
        Evict,
        Expire,
        Wait(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (0u8..12).prop_map(Step::Look),
            (0u8..12).prop_map(Step::Insert),
            (0u8..12).prop_map(Step::Remove),
            Just(Step::Evict),
            Just(Step::Expire),
            (0u64..60).prop_map(Step::Wait),
        ];
        prop::collection::vec(step, 0..200)
    }

    proptest! {
        /// Compared with a plain map that holds each path's value and its expiry.
        #[test]
        fn whatever_happens_a_path_has_its_own_value_and_no_other(script in steps()) {
            let mut cache = Cache::new(VALIDITY);
            let mut model: BTreeMap<u8, (u32, u64)> = BTreeMap::new();
            let (mut now, mut serial) = (0, 0);
            for step in script {
                match step {
                    Step::Look(path) => {
                        let expected = match model.get(&path) {
                            Some((value, until)) if *until > now => Look::Fresh(*value),
                            Some(_) => Look::Expired,
                            None => Look::Absent,
                        };
                        prop_assert_eq!(cache.look(&[path], at(now)), expected);
                    }
                    Step::Insert(path) => {
                        serial += 1;
                        cache.remove(&[path]);
                        cache.insert(&[path], serial, at(now));
                        model.insert(path, (serial, now + 100));
                    }
                    Step::Remove(path) => {
                        prop_assert_eq!(cache.remove(&[path]), model.remove(&path).map(|(value, _)| value));
                    }
                    Step::Evict => {
                        let gone = cache.evict(at(now), |_| true);
                        prop_assert_eq!(gone.is_none(), model.is_empty());
                        model.retain(|_, (value, _)| Some(*value) != gone);
                    }
                    Step::Expire => {
                        let mut gone = cache.expire(at(now));
                        gone.sort_unstable();
                        let mut over: Vec<u32> =
                            model.values().filter(|(_, until)| *until <= now).map(|(value, _)| *value).collect();
                        over.sort_unstable();
                        prop_assert_eq!(gone, over);
                        model.retain(|_, (_, until)| *until > now);
                    }
                    Step::Wait(milliseconds) => now += milliseconds,
                }
                prop_assert_eq!((cache.len(), cache.places.len()), (model.len(), model.len()));
            }
        }
    }
}
