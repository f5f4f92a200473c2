//! The event heap: what happens next.
//!
//! All events come from a few dozen sources: a unit of the device, a background core, the foreground, the end of an
//! interval. Each source is first come, first served, so it has at most one next event. The pending events are
//! therefore a tournament over sources (Knuth, "The Art of Computer Programming" 3, 5.4.1), not a heap over the
//! operations in flight: four levels instead of eight for the published device, and no removal. A key holds time and
//! source in one word, so that the smaller of two is found without a branch and events at the same time always come
//! in the order of their sources.

const SOURCE_BITS: u32 = 8;
/// Most sources.
pub(super) const SOURCES_MAX: usize = 1 << SOURCE_BITS;
/// A time that never comes: two years after the start.
pub(super) const NEVER: u64 = u64::MAX >> SOURCE_BITS;

pub(super) struct Schedule {
    /// Node 1 is the root; the children of node `n` are `2n` and `2n + 1`; the last half are the sources.
    nodes: Box<[u64]>,
    sources: usize,
}

impl Schedule {
    pub(super) fn new(sources: usize) -> Self {
        assert!((1..=SOURCES_MAX).contains(&sources), "{sources} sources");
        let sources = sources.next_power_of_two();
        Self { nodes: vec![u64::MAX; 2 * sources].into(), sources }
    }

    /// The earliest event: its time and its source. It stays until its source is set again.
    #[inline]
    pub(super) fn first(&self) -> (u64, usize) {
        let key = self.nodes[1];
        (key >> SOURCE_BITS, (key & (SOURCES_MAX as u64 - 1)) as usize)
    }

    /// Sets the next event of a source to `time_ns`, or [`NEVER`].
    #[inline]
    pub(super) fn set(&mut self, source: usize, time_ns: u64) {
        debug_assert!(source < self.sources && time_ns <= NEVER);
        let mut key = (time_ns << SOURCE_BITS) | source as u64;
        let mut node = self.sources + source;
        self.nodes[node] = key;
        while node > 1 {
            key = key.min(self.nodes[node ^ 1]);
            node /= 2;
            self.nodes[node] = key;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn events_at_the_same_time_come_in_the_order_of_their_sources() {
        let mut schedule = Schedule::new(5);
        for source in [4, 2, 3, 0, 1] {
            schedule.set(source, 7);
        }
        for source in 0..5 {
            assert_eq!(schedule.first(), (7, source));
            schedule.set(source, NEVER);
        }
        assert_eq!(schedule.first().0, NEVER);
    }

    #[test]
    fn one_source_is_enough_and_the_limit_works() {
        let mut schedule = Schedule::new(1);
        schedule.set(0, 3);
        assert_eq!(schedule.first(), (3, 0));

        let mut schedule = Schedule::new(SOURCES_MAX);
        schedule.set(SOURCES_MAX - 1, NEVER - 1);
        assert_eq!(schedule.first(), (NEVER - 1, SOURCES_MAX - 1));
    }

    proptest! {
        #[test]
        fn the_first_event_is_the_smallest(
            sources in 1_usize..=64,
            changes in prop::collection::vec((any::<prop::sample::Index>(), 0..NEVER), 1..200),
        ) {
            let mut schedule = Schedule::new(sources);
            let mut times = vec![NEVER; sources];
            for (source, time_ns) in changes {
                let source = source.index(sources);
                schedule.set(source, time_ns);
                times[source] = time_ns;
                let expected = (0..sources).map(|source| (times[source], source)).min();
                prop_assert_eq!(Some(schedule.first()), expected);
            }
        }
    }
}
