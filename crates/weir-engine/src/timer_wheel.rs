//! A hierarchical timer wheel: six levels of 64 slots, one millisecond per slot at the bottom.
//!
//! Contract: a timer fires at the first [`TimerWheel::expire`] whose `now_ns` has reached its deadline, never
//! earlier, although the slots are coarse: deadlines are kept to the nanosecond. One `expire` fires in order of
//! deadline, and timers with equal deadlines in order of insertion. `insert` and `remove` are O(1), a timer moves
//! down at most [`LEVELS`] times in its life (plus once for being beyond the wheel's span), and nothing is allocated
//! once the slab has grown to the largest number of timers held at once.
//!
//! It is not a clock: every instant comes from the caller, as nanoseconds of any one monotonic clock. It wakes no
//! thread, and it is not shared: one wheel belongs to one core.
//!
//! A timer's place depends only on its tick and on the wheel's current tick: the level is the highest group of six
//! bits in which the two differ. Hence, and the code below relies on it:
//! 1. Every timer of a level is due before every timer of the levels above it.
//! 2. Within a level the slots are in order of time and never wrap, so the lowest occupied one comes first.
//! 3. Moving the current tick forward without passing the start of an occupied slot moves no timer.
//!
//! A timer whose tick differs above the sixth group is in a separate list, the far list, and is checked again when
//! the wheel enters its next span (about every two years).

/// Number of levels of the wheel.
pub const LEVELS: usize = 6;
/// Length of a slot of the lowest level.
pub const TICK_NS: u64 = 1_000_000;
/// Most timers a wheel made by [`TimerWheel::new`] holds at once.
#[cfg(test)]
pub const TIMERS_MAX: u32 = 1 << 24;

const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
const SPAN_BITS: u32 = SLOT_BITS * LEVELS as u32;
/// Place of the far list, behind the slots of all levels.
const FAR: usize = LEVELS * SLOTS;
/// End of a list.
const NONE: u32 = u32::MAX;

/// Names one armed timer. It goes stale when the timer fires or is removed; a stale id removes nothing (an
/// entry would have to be reused 2^32 times for one to be mistaken for a live one).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimerId {
    index: u32,
    generation: u32,
}

/// The wheel already holds its stated maximum of timers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the timer wheel is full: it holds at most {timers_max} timers")]
pub struct TimersFull {
    /// The maximum the wheel was made with.
    pub timers_max: u32,
}

/// The wheel. The module header states its contract.
#[derive(Debug)]
pub struct TimerWheel<T> {
    /// The slab: armed entries are linked into a list of `lists`, the others into the free list.
    entries: Vec<Entry<T>>,
    free_head: u32,
    timers: u32,
    timers_max: u32,
    /// Every position is relative to this tick. Never behind the last slot that was fired.
    tick: u64,
    /// Latest instant seen.
    now_ns: u64,
    /// One bit per slot that holds a timer.
    occupied: [u64; LEVELS],
    lists: Box<[List; FAR + 1]>,
    /// Reused while a slot fires, so that sorting it allocates nothing.
    due: Vec<Due>,
}

#[derive(Debug)]
struct Entry<T> {
    deadline_ns: u64,
    /// `None` while the entry is free.
    value: Option<T>,
    generation: u32,
    previous: u32,
    next: u32,
    place: u16,
}

const _: () = assert!(size_of::<Entry<std::task::Waker>>() == 40);

#[derive(Debug, Clone, Copy)]
struct List {
    head: u32,
    tail: u32,
}

/// A timer about to fire; compared field by field, which is the order of firing.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    deadline_ns: u64,
    rank: u32,
    index: u32,
}

impl<T> TimerWheel<T> {
    /// An empty wheel that starts at `now_ns` and holds at most [`TIMERS_MAX`] timers.
    #[cfg(test)]
    pub fn new(now_ns: u64) -> Self {
        Self::with_max(now_ns, TIMERS_MAX)
    }

    /// An empty wheel that starts at `now_ns` and holds at most `timers_max` timers; never more than `u32::MAX - 1`,
    /// because `u32::MAX` marks the end of a list.
    pub fn with_max(now_ns: u64, timers_max: u32) -> Self {
        Self {
            entries: Vec::new(),
            free_head: NONE,
            timers: 0,
            timers_max: timers_max.min(NONE - 1),
            tick: now_ns / TICK_NS,
            now_ns,
            occupied: [0; LEVELS],
            lists: Box::new([List { head: NONE, tail: NONE }; FAR + 1]),
            due: Vec::new(),
        }
    }

    /// Arms a timer that hands `value` to the closure of the first `expire` at or after `deadline_ns`. A deadline in
    /// the past fires at the next `expire`; `u64::MAX` is practically never.
    ///
    /// # Errors
    /// [`TimersFull`] when the wheel already holds its maximum.
    pub fn insert(&mut self, deadline_ns: u64, value: T) -> Result<TimerId, TimersFull> {
        if self.timers == self.timers_max {
            return Err(TimersFull { timers_max: self.timers_max });
        }
        let index = self.allocate(deadline_ns, value);
        self.timers += 1;
        self.link(index);
        Ok(TimerId { index, generation: self.entries[index as usize].generation })
    }

    /// The value that an armed timer will hand over; `None` if it has fired or was removed.
    pub fn get_mut(&mut self, id: TimerId) -> Option<&mut T> {
        // A free entry already carries the generation of its next use, so no issued id matches it.
        let entry = self.entries.get_mut(id.index as usize).filter(|entry| entry.generation == id.generation);
        entry?.value.as_mut()
    }

    /// Disarms a timer. `None` if it has fired or was removed before.
    pub fn remove(&mut self, id: TimerId) -> Option<T> {
        self.get_mut(id)?;
        self.unlink(id.index);
        self.release(id.index)
    }

    /// When `expire` has to be called next, or `None` while no timer is armed.
    ///
    /// Exact when the earliest timer is in the lowest level (a deadline in the same 64-tick block as now, or past);
    /// otherwise the instant at which `expire` moves it to a lower level, which is never later than its deadline.
    /// After `expire(now)` it is always later than `now`, so a caller that waits for it does not spin. Costs a look
    /// at each level, plus a walk over one slot when the answer is exact.
    pub fn next_deadline(&self) -> Option<u64> {
        let (place, start_tick) = self.earliest_place()?;
        if place >= SLOTS {
            return Some(start_tick * TICK_NS);
        }
        let mut earliest_ns = u64::MAX;
        let mut index = self.lists[place].head;
        while index != NONE {
            let entry = &self.entries[index as usize];
            earliest_ns = earliest_ns.min(entry.deadline_ns);
            index = entry.next;
        }
        Some(earliest_ns)
    }

    /// Fires every timer whose deadline is at or before `now_ns`, in order of deadline, then of insertion, and
    /// returns how many. A `now_ns` before the latest one seen counts as that one: time does not go back.
    ///
    /// If `fire` panics, the timers not yet handed to it stay armed.
    pub fn expire(&mut self, now_ns: u64, mut fire: impl FnMut(T)) -> usize {
        self.now_ns = self.now_ns.max(now_ns);
        let target_tick = self.now_ns / TICK_NS;
        let mut fired = 0;
        while let Some((place, start_tick)) = self.earliest_place()
            && start_tick <= target_tick
        {
            if place == FAR {
                if !self.cascade_far(target_tick) {
                    break;
                }
            } else if place >= SLOTS {
                self.tick = start_tick;
                self.cascade(place);
            } else {
                self.tick = start_tick;
                fired += self.fire_slot(place, &mut fire);
                // Timers left in the slot of the present tick are due later within it.
                if start_tick == target_tick {
                    break;
                }
            }
        }
        self.tick = target_tick;
        fired
    }

    /// Number of armed timers.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.timers as usize
    }

    /// True while no timer is armed.
    pub fn is_empty(&self) -> bool {
        self.timers == 0
    }

    /// The place to look at first and the tick at which its time begins. For the far list that is the next span,
    /// whether or not it contains one of the list's timers.
    fn earliest_place(&self) -> Option<(usize, u64)> {
        for (level, &bits) in self.occupied.iter().enumerate() {
            if bits != 0 {
                let slot = bits.trailing_zeros() as usize;
                let shift = SLOT_BITS * level as u32;
                let block = self.tick >> (shift + SLOT_BITS) << (shift + SLOT_BITS);
                return Some((level * SLOTS + slot, block | (slot as u64) << shift));
            }
        }
        (self.lists[FAR].head != NONE).then(|| (FAR, ((self.tick >> SPAN_BITS) + 1) << SPAN_BITS))
    }

    /// The place of a timer, seen from the current tick. A timer in the past is in the slot of the current tick.
    fn place_of(&self, deadline_ns: u64) -> usize {
        let tick = (deadline_ns / TICK_NS).max(self.tick);
        let differing = (tick ^ self.tick) | (SLOTS as u64 - 1);
        let level = (differing.ilog2() / SLOT_BITS) as usize;
        if level >= LEVELS {
            return FAR;
        }
        let slot = (tick >> (SLOT_BITS * level as u32)) as usize % SLOTS;
        level * SLOTS + slot
    }

    /// Fires the due timers in a slot of the lowest level.
    fn fire_slot(&mut self, place: usize, fire: &mut impl FnMut(T)) -> usize {
        let mut due = std::mem::take(&mut self.due);
        let mut index = self.lists[place].head;
        while index != NONE {
            let entry = &self.entries[index as usize];
            if entry.deadline_ns <= self.now_ns {
                due.push(Due { deadline_ns: entry.deadline_ns, rank: due.len() as u32, index });
            }
            index = entry.next;
        }
        due.sort_unstable();
        for timer in &due {
            self.unlink(timer.index);
            if let Some(value) = self.release(timer.index) {
                fire(value);
            }
        }
        let fired = due.len();
        due.clear();
        self.due = due;
        fired
    }

    /// Moves the timers of a slot whose time has begun to the levels below.
    fn cascade(&mut self, place: usize) {
        let mut index = self.lists[place].head;
        while index != NONE {
            let next = self.entries[index as usize].next;
            self.unlink(index);
            self.link(index);
            index = next;
        }
    }

    /// Enters the span of the earliest far timer, if it has begun at `target_tick`, and takes that span's timers
    /// into the levels. All levels are empty when this is called.
    fn cascade_far(&mut self, target_tick: u64) -> bool {
        let mut span_earliest = u64::MAX;
        let mut index = self.lists[FAR].head;
        while index != NONE {
            let entry = &self.entries[index as usize];
            span_earliest = span_earliest.min((entry.deadline_ns / TICK_NS) >> SPAN_BITS);
            index = entry.next;
        }
        if span_earliest > target_tick >> SPAN_BITS {
            return false;
        }
        self.tick = span_earliest << SPAN_BITS;
        let mut index = self.lists[FAR].head;
        while index != NONE {
            let entry = &self.entries[index as usize];
            let next = entry.next;
            if (entry.deadline_ns / TICK_NS) >> SPAN_BITS == span_earliest {
                self.unlink(index);
                self.link(index);
            }
            index = next;
        }
        true
    }

    /// Appends an entry to the list of its place: appending keeps equal deadlines in order of insertion.
    fn link(&mut self, index: u32) {
        let place = self.place_of(self.entries[index as usize].deadline_ns);
        let tail = self.lists[place].tail;
        let entry = &mut self.entries[index as usize];
        entry.place = place as u16;
        entry.previous = tail;
        entry.next = NONE;
        match tail {
            NONE => self.lists[place].head = index,
            tail => self.entries[tail as usize].next = index,
        }
        self.lists[place].tail = index;
        if place != FAR {
            self.occupied[place / SLOTS] |= 1 << (place % SLOTS);
        }
    }

    fn unlink(&mut self, index: u32) {
        let Entry { previous, next, place, .. } = &self.entries[index as usize];
        let (previous, next, place) = (*previous, *next, usize::from(*place));
        match previous {
            NONE => self.lists[place].head = next,
            previous => self.entries[previous as usize].next = next,
        }
        match next {
            NONE => self.lists[place].tail = previous,
            next => self.entries[next as usize].previous = previous,
        }
        if self.lists[place].head == NONE && place != FAR {
            self.occupied[place / SLOTS] &= !(1 << (place % SLOTS));
        }
    }

    fn allocate(&mut self, deadline_ns: u64, value: T) -> u32 {
        let value = Some(value);
        let index = self.free_head;
        if index != NONE {
            let entry = &mut self.entries[index as usize];
            self.free_head = entry.next;
            entry.deadline_ns = deadline_ns;
            entry.value = value;
            return index;
        }
        let index = self.entries.len() as u32;
        self.entries.push(Entry { deadline_ns, value, generation: 0, previous: NONE, next: NONE, place: 0 });
        index
    }

    fn release(&mut self, index: u32) -> Option<T> {
        let entry = &mut self.entries[index as usize];
        entry.generation = entry.generation.wrapping_add(1);
        entry.next = self.free_head;
        self.free_head = index;
        self.timers -= 1;
        entry.value.take()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use proptest::prelude::*;

    use super::*;

    const SPAN_NS: u64 = TICK_NS << SPAN_BITS;

    fn fired_at(wheel: &mut TimerWheel<u64>, now_ns: u64) -> Vec<u64> {
        let mut keys = Vec::new();
        let count = wheel.expire(now_ns, |key| keys.push(key));
        assert_eq!(count, keys.len());
        keys
    }

    #[test]
    fn a_deadline_is_exact_to_the_nanosecond() {
        let mut wheel = TimerWheel::new(0);
        wheel.insert(5_000_700, 1).unwrap();
        assert_eq!(wheel.next_deadline(), Some(5_000_700));
        assert!(fired_at(&mut wheel, 5_000_699).is_empty());
        assert_eq!(wheel.next_deadline(), Some(5_000_700));
        assert_eq!(fired_at(&mut wheel, 5_000_700), [1]);
        assert_eq!(wheel.next_deadline(), None);
    }

    #[test]
    fn one_slot_fires_in_order_of_deadline_then_of_insertion() {
        let mut wheel = TimerWheel::new(0);
        for (deadline_ns, key) in [(900, 1), (100, 2), (900, 3), (500, 4), (100, 5)] {
            wheel.insert(deadline_ns, key).unwrap();
        }
        assert_eq!(fired_at(&mut wheel, 1_000), [2, 5, 4, 1, 3]);
    }

    #[test]
    fn a_deadline_in_the_past_fires_at_the_next_expire() {
        let mut wheel = TimerWheel::new(10 * SPAN_NS);
        wheel.insert(3, 7).unwrap();
        assert_eq!(wheel.next_deadline(), Some(3));
        assert_eq!(fired_at(&mut wheel, 0), [7], "time going back does not hold it");
    }

    #[test]
    fn time_going_back_fires_nothing_new() {
        let mut wheel = TimerWheel::new(0);
        wheel.insert(2 * TICK_NS, 1).unwrap();
        wheel.insert(9 * TICK_NS, 2).unwrap();
        assert_eq!(fired_at(&mut wheel, 5 * TICK_NS), [1]);
        assert!(fired_at(&mut wheel, 1).is_empty());
        assert_eq!(wheel.next_deadline(), Some(9 * TICK_NS));
        assert_eq!(fired_at(&mut wheel, 9 * TICK_NS), [2]);
    }

    #[test]
    fn every_level_is_reached_by_following_next_deadline() {
        for level in 0..=LEVELS as u32 {
            let deadline_ns = (TICK_NS << (SLOT_BITS * level)) + 12_345;
            let mut wheel = TimerWheel::new(0);
            wheel.insert(deadline_ns, 1).unwrap();
            let mut calls = 0;
            let fired_ns = loop {
                let at_ns = wheel.next_deadline().unwrap();
                calls += 1;
                if wheel.expire(at_ns, |_| ()) == 1 {
                    break at_ns;
                }
            };
            assert_eq!(fired_ns, deadline_ns);
            assert!(calls <= LEVELS + 2, "level {level} took {calls} calls");
        }
    }

    #[test]
    fn timers_beyond_the_span_and_at_the_end_of_time_fire_in_order() {
        let mut wheel = TimerWheel::new(SPAN_NS - 1);
        wheel.insert(u64::MAX, 5).unwrap();
        wheel.insert(200 * SPAN_NS, 4).unwrap();
        wheel.insert(3 * SPAN_NS + 1, 3).unwrap();
        wheel.insert(SPAN_NS, 1).unwrap();
        wheel.insert(3 * SPAN_NS, 2).unwrap();
        assert_eq!(wheel.next_deadline(), Some(SPAN_NS));
        assert_eq!(fired_at(&mut wheel, 2 * SPAN_NS), [1]);
        assert_eq!(wheel.next_deadline(), Some(3 * SPAN_NS));
        assert_eq!(fired_at(&mut wheel, u64::MAX - 1), [2, 3, 4]);
        assert_eq!(wheel.next_deadline(), Some(u64::MAX));
        assert_eq!(fired_at(&mut wheel, u64::MAX), [5]);
    }

    #[test]
    fn a_stale_id_removes_nothing_even_when_its_entry_is_reused() {
        let mut wheel = TimerWheel::new(0);
        let first = wheel.insert(1, 1).unwrap();
        assert!(wheel.remove(first).is_some());
        assert!(wheel.remove(first).is_none());
        let second = wheel.insert(2, 2).unwrap();
        assert_eq!(first.index, second.index);
        assert!(wheel.remove(first).is_none());
        assert_eq!(fired_at(&mut wheel, 2), [2]);
        assert!(wheel.remove(second).is_none());
        assert!(wheel.is_empty());
    }

    #[test]
    fn the_maximum_is_refused_by_name_and_freed_by_removal() {
        let mut wheel = TimerWheel::with_max(0, 2);
        let first = wheel.insert(1, 1).unwrap();
        wheel.insert(2, 2).unwrap();
        assert_eq!(wheel.insert(3, 3), Err(TimersFull { timers_max: 2 }));
        assert_eq!(wheel.len(), 2);
        assert!(wheel.remove(first).is_some());
        wheel.insert(4, 4).unwrap();
        assert_eq!(fired_at(&mut wheel, 4), [2, 4]);
        assert_eq!(TimerWheel::with_max(0, 0).insert(1, 1), Err(TimersFull { timers_max: 0 }));
    }

    #[test]
    fn churn_after_warm_up_does_not_grow_the_slab() {
        let mut wheel = TimerWheel::new(0);
        let mut run = |rounds: std::ops::Range<u64>| {
            for round in rounds {
                let now_ns = round * 40 * TICK_NS;
                let ids: Vec<_> =
                    (0..100).map(|n| wheel.insert(now_ns + n * n * TICK_NS, n).unwrap()).collect();
                assert!(ids.into_iter().skip(5).all(|id| wheel.remove(id).is_some()));
                wheel.expire(now_ns, |_| ());
            }
            (wheel.entries.capacity(), wheel.due.capacity())
        };
        let warm = run(0..4);
        assert_eq!(run(4..400), warm);
    }

    #[test]
    fn a_panic_while_firing_leaves_the_rest_armed() {
        let mut wheel = TimerWheel::new(0);
        for key in 0..3 {
            wheel.insert(key + 1, key).unwrap();
        }
        let result = catch_unwind(AssertUnwindSafe(|| {
            wheel.expire(TICK_NS * 70, |key| assert!(key != 1, "on purpose"))
        }));
        assert!(result.is_err());
        assert_eq!(wheel.len(), 1);
        assert_eq!(fired_at(&mut wheel, 0), [2]);
    }

    #[derive(Debug, Clone)]
    enum Step {
        /// Deadline relative to now: ahead, or behind when negative.
        Insert(i128),
        /// One of all ids ever issued, live or stale.
        Remove(prop::sample::Index),
        Advance(u64),
        AdvanceToNext,
        GoBack(u64),
    }

    /// Distances of every magnitude: each level and beyond the span is as likely as the next nanosecond.
    fn distance() -> impl Strategy<Value = u64> {
        (0..64u32, any::<u64>()).prop_map(|(bits, noise)| noise >> bits)
    }

    /// Distances that share a few values, so that equal deadlines occur.
    fn near() -> impl Strategy<Value = u64> {
        (0..200u64, 0..3u64).prop_map(|(ticks, part)| ticks * TICK_NS + part * 400_000)
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => near().prop_map(|ahead| Step::Insert(ahead.into())),
            4 => distance().prop_map(|ahead| Step::Insert(ahead.into())),
            1 => distance().prop_map(|behind| Step::Insert(-i128::from(behind))),
            2 => any::<prop::sample::Index>().prop_map(Step::Remove),
            3 => near().prop_map(Step::Advance),
            1 => distance().prop_map(Step::Advance),
            3 => Just(Step::AdvanceToNext),
            1 => distance().prop_map(Step::GoBack),
        ]
    }

    /// The specification: a sorted map from (deadline, order of insertion) to nothing else.
    #[derive(Default)]
    struct Model {
        armed: BTreeMap<(u64, u64), TimerId>,
        issued: Vec<((u64, u64), TimerId)>,
    }

    impl Model {
        fn expire(&mut self, now_ns: u64) -> Vec<u64> {
            let later = self.armed.split_off(&(now_ns, u64::MAX));
            std::mem::replace(&mut self.armed, later).into_keys().map(|(_, key)| key).collect()
        }

        fn check_next(&self, wheel: &TimerWheel<u64>, now_ns: u64) -> Result<(), TestCaseError> {
            prop_assert_eq!(wheel.len(), self.armed.len());
            let Some((&(earliest_ns, _), _)) = self.armed.first_key_value() else {
                prop_assert_eq!(wheel.next_deadline(), None);
                return Ok(());
            };
            let next_ns = wheel.next_deadline().expect("a timer is armed");
            prop_assert!(next_ns <= earliest_ns);
            prop_assert!(next_ns > now_ns || earliest_ns <= now_ns, "{} would spin at {}", next_ns, now_ns);
            if earliest_ns <= now_ns || earliest_ns / TICK_NS / 64 == now_ns / TICK_NS / 64 {
                prop_assert_eq!(next_ns, earliest_ns);
            }
            Ok(())
        }
    }

    fn run(start_ns: u64, steps: &[Step]) -> Result<(), TestCaseError> {
        let mut wheel = TimerWheel::new(start_ns);
        let mut model = Model::default();
        let mut now_ns = start_ns;
        for step in steps {
            let expire_ns = match step {
                Step::Insert(distance_ns) => {
                    let deadline_ns = (i128::from(now_ns) + distance_ns).clamp(0, u64::MAX.into()) as u64;
                    let key = model.issued.len() as u64;
                    let id = wheel.insert(deadline_ns, key).unwrap();
                    model.armed.insert((deadline_ns, key), id);
                    model.issued.push(((deadline_ns, key), id));
                    None
                }
                Step::Remove(which) => {
                    if !model.issued.is_empty() {
                        let (entry, id) = model.issued[which.index(model.issued.len())];
                        let armed = model.armed.remove(&entry).map(|_| entry.1);
                        prop_assert_eq!(wheel.get_mut(id).copied(), armed);
                        prop_assert_eq!(wheel.remove(id), armed);
                    }
                    None
                }
                Step::Advance(distance_ns) => Some(now_ns.saturating_add(*distance_ns)),
                Step::AdvanceToNext => wheel.next_deadline(),
                Step::GoBack(distance_ns) => Some(now_ns.saturating_sub(*distance_ns)),
            };
            if let Some(expire_ns) = expire_ns {
                now_ns = now_ns.max(expire_ns);
                prop_assert_eq!(fired_at(&mut wheel, expire_ns), model.expire(now_ns));
            }
            model.check_next(&wheel, now_ns)?;
        }
        prop_assert_eq!(fired_at(&mut wheel, u64::MAX), model.expire(u64::MAX));
        prop_assert!(wheel.is_empty());
        Ok(())
    }

    proptest! {
        #[test]
        fn the_wheel_agrees_with_a_sorted_map(
            start_ns in distance(),
            steps in prop::collection::vec(step(), 1..200),
        ) {
            run(start_ns, &steps)?;
        }

        #[test]
        fn the_wheel_agrees_with_a_sorted_map_near_the_edge_of_a_span(
            before_ns in near(),
            steps in prop::collection::vec(step(), 1..100),
        ) {
            run(SPAN_NS - before_ns, &steps)?;
        }
    }
}
