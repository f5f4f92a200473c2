//! Figures of each interval of a window: differences of cumulative sums. Pure.

use std::{
    collections::BTreeMap,
    mem,
    time::{Duration, Instant},
};

use weir_record::observation::{
    Direction, INTERVAL_KINDS_MAX, INTERVALS_MAX, Interval, IntervalCalls, IntervalKind, Series, direction,
};

use crate::ladder::{trace::name_of, tracer::KernelCounts};

/// CPU and waiting since the start of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Used {
    pub(super) cpu_ns: u64,
    pub(super) run_delay_ns: u64,
}

/// Collects the series, see the head of this file.
#[derive(Clone, Debug)]
pub(super) struct Collector {
    asked: Duration,
    /// Longer than requested, once intervals were joined.
    interval: Duration,
    began: Instant,
    /// End of the next interval.
    due: Instant,
    /// End of the last one.
    last: Instant,
    used: Used,
    /// By number of the call: the counts already assigned to intervals.
    counted: Option<BTreeMap<u32, IntervalKind>>,
    intervals: Vec<(Interval, BTreeMap<u32, IntervalKind>)>,
}

impl Collector {
    /// Starts at a moment, with the counts at that time; `None` without a trace.
    pub(super) fn new(interval: Duration, began: Instant, counts: Option<&KernelCounts>) -> Self {
        Self {
            asked: interval,
            interval,
            began,
            due: began + interval,
            last: began,
            used: Used::default(),
            counted: counts.map(sums),
            intervals: Vec::new(),
        }
    }

    /// End of the next interval.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// Ends an interval here.
    pub(super) fn add(&mut self, at: Instant, used: Used, counts: Option<&KernelCounts>) {
        if self.intervals.len() == INTERVALS_MAX {
            self.join_neighbours();
        }
        let by_kind = counts.map(|counts| self.since_last(sums(counts)));
        let interval = Interval {
            from_ns: nanoseconds(self.last - self.began),
            length_ns: nanoseconds(at - self.last),
            // The clocks of an ended process may be behind its last reading.
            cpu_ns: used.cpu_ns.saturating_sub(self.used.cpu_ns),
            run_delay_ns: used.run_delay_ns.saturating_sub(self.used.run_delay_ns),
            traced: by_kind.as_ref().map(of_all),
        };
        self.intervals.push((interval, by_kind.unwrap_or_default()));
        (self.last, self.used) = (at, used);
        // A late reading does not move later ends.
        while self.due <= at {
            self.due += self.interval;
        }
    }

    /// The increase of each sum. The tables are read one after another while calls continue, so a sum may seem to
    /// fall: the increase back to its old value was counted before.
    fn since_last(&mut self, now: BTreeMap<u32, IntervalKind>) -> BTreeMap<u32, IntervalKind> {
        let counted = self.counted.get_or_insert_default();
        let mut grown = BTreeMap::new();
        for (number, now) in now {
            let before = counted.entry(number).or_default();
            let more = |now: u64, before: &mut u64| {
                let grown = now.saturating_sub(*before);
                *before += grown;
                grown
            };
            let kind = IntervalKind {
                calls: more(now.calls, &mut before.calls),
                on_cpu_ns: more(now.on_cpu_ns, &mut before.on_cpu_ns),
                blocked_ns: more(now.blocked_ns, &mut before.blocked_ns),
                bytes: more(now.bytes, &mut before.bytes),
            };
            if kind != IntervalKind::default() {
                grown.insert(number, kind);
            }
        }
        grown
    }

    /// Joins pairs of adjacent intervals.
    fn join_neighbours(&mut self) {
        let mut joined: Vec<(Interval, BTreeMap<u32, IntervalKind>)> = Vec::with_capacity(INTERVALS_MAX);
        for (index, (interval, kinds)) in mem::take(&mut self.intervals).into_iter().enumerate() {
            match joined.last_mut().filter(|_| index % 2 == 1) {
                None => joined.push((interval, kinds)),
                Some((own, own_kinds)) => {
                    own.add(&interval);
                    for (number, kind) in kinds {
                        own_kinds.entry(number).or_default().add(&kind);
                    }
                }
            }
        }
        self.intervals = joined;
        self.interval *= 2;
    }

    /// The record, with figures of the most frequent kinds.
    pub(super) fn finish(self) -> Series {
        let mut calls: BTreeMap<u32, u64> = BTreeMap::new();
        for (number, kind) in self.intervals.iter().flat_map(|(_, kinds)| kinds) {
            let calls = calls.entry(*number).or_default();
            *calls = calls.saturating_add(kind.calls);
        }
        let mut numbers: Vec<(u32, u64)> = calls.into_iter().filter(|(_, calls)| *calls > 0).collect();
        numbers.sort_by_key(|(number, calls)| (std::cmp::Reverse(*calls), *number));
        numbers.truncate(INTERVAL_KINDS_MAX);
        let intervals = self.intervals.into_iter().map(|(interval, kinds)| {
            let of_kind = |(number, _): &(u32, u64)| kinds.get(number).copied().unwrap_or_default();
            let each = || numbers.iter().map(of_kind).collect();
            let traced = interval.traced.map(|traced| IntervalCalls { kinds: each(), ..traced });
            Interval { traced, ..interval }
        });
        let intervals = intervals.collect();
        Series {
            asked_ns: nanoseconds(self.asked),
            interval_ns: nanoseconds(self.interval),
            kinds: numbers.iter().map(|(number, _)| name_of(*number)).collect(),
            intervals,
        }
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Sums by number, including the sleep of calls in progress.
fn sums(counts: &KernelCounts) -> BTreeMap<u32, IntervalKind> {
    let mut sums: BTreeMap<u32, IntervalKind> = BTreeMap::new();
    for (number, call) in &counts.calls {
        let moves_bytes = direction(&name_of(*number)).is_some();
        let bytes = if moves_bytes { call.returned } else { 0 };
        let (on_cpu_ns, blocked_ns) = (call.on_cpu_ns, call.blocked_ns);
        sums.insert(*number, IntervalKind { calls: call.count, on_cpu_ns, blocked_ns, bytes });
    }
    for thread in &counts.threads {
        if let Some((number, _)) = thread.in_call {
            let asleep = &mut sums.entry(number).or_default().blocked_ns;
            *asleep = asleep.saturating_add(thread.asleep_in_call_ns(counts.at_ns));
        }
    }
    sums
}

fn of_all(kinds: &BTreeMap<u32, IntervalKind>) -> IntervalCalls {
    let mut all = IntervalCalls::default();
    for (number, kind) in kinds {
        all.sum.add(kind);
        match direction(&name_of(*number)) {
            Some(Direction::Read) => all.read_bytes = all.read_bytes.saturating_add(kind.bytes),
            Some(Direction::Written) => all.written_bytes = all.written_bytes.saturating_add(kind.bytes),
            None => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ladder::tables::{TracedCall, TracedThread};

    /// The call's number on this architecture.
    fn number(name: &str) -> u32 {
        (0..512).find(|number| name_of(*number) == name).expect("every Linux has it")
    }

    fn counts(at_ns: u64, calls: &[(&str, u64, u64)]) -> KernelCounts {
        let of = |(name, count, blocked_ns): &(&str, u64, u64)| {
            let (count, blocked_ns) = (*count, *blocked_ns);
            let call = TracedCall { count, blocked_ns, returned: 100 * count, ..TracedCall::default() };
            (number(name), call)
        };
        KernelCounts { at_ns, calls: calls.iter().map(of).collect(), ..KernelCounts::default() }
    }

    fn collector(interval: Duration, counts: Option<&KernelCounts>) -> (Collector, Instant) {
        let began = Instant::now();
        (Collector::new(interval, began, counts), began)
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn each_interval_has_what_was_done_in_it_and_the_sum_is_the_whole() {
        let (mut it, began) = collector(SECOND, Some(&counts(0, &[("read", 5, 0)])));
        let used = |cpu_ns| Used { cpu_ns, run_delay_ns: cpu_ns / 10 };
        it.add(
            began + SECOND,
            used(300),
            Some(&counts(0, &[("read", 9, 0), ("sendto", 2, 0), ("getppid", 1, 7)])),
        );
        it.add(
            began + SECOND * 2,
            used(350),
            Some(&counts(0, &[("read", 9, 0), ("sendto", 50, 0), ("getppid", 1, 7)])),
        );
        let series = it.finish();
        assert_eq!(series.kinds, ["sendto", "read", "getppid"]);
        let [first, second] = &series.intervals[..] else { panic!("{series:?}") };
        assert_eq!((first.from_ns, second.from_ns, second.length_ns), (0, 1_000_000_000, 1_000_000_000));
        assert_eq!((first.cpu_ns, second.cpu_ns, second.run_delay_ns), (300, 50, 5));
        let [first, second] = [first, second].map(|it| it.traced.as_ref().expect("it was traced"));
        assert_eq!((first.sum.calls, first.read_bytes, first.written_bytes), (7, 400, 200));
        assert_eq!((second.sum.calls, second.read_bytes, second.written_bytes), (48, 0, 4_800));
        let calls = |it: &IntervalCalls| it.kinds.iter().map(|kind| kind.calls).collect::<Vec<_>>();
        assert_eq!((calls(first), calls(second)), (vec![2, 4, 1], vec![48, 0, 0]));
        assert_eq!(first.sum.blocked_ns, 7, "of the call that returned");
    }

    #[test]
    fn a_sleep_is_in_the_intervals_in_which_it_happened_and_counted_once() {
        let asleep = |at_ns, since_ns| {
            let thread = TracedThread {
                tid: 1,
                in_call: Some((number("read"), since_ns)),
                parked_since_ns: Some(since_ns),
                ..TracedThread::default()
            };
            KernelCounts { at_ns, threads: vec![thread], ..KernelCounts::default() }
        };
        // It had slept for 100 ns before the window began.
        let (mut it, began) = collector(SECOND, Some(&asleep(100, 0)));
        it.add(began + SECOND, Used::default(), Some(&asleep(1_100, 0)));
        // It returned between the readings of calls and of threads: it is in neither.
        it.add(began + SECOND * 2, Used::default(), Some(&counts(2_100, &[])));
        it.add(began + SECOND * 3, Used::default(), Some(&counts(3_100, &[("read", 1, 1_700)])));
        let blocked: Vec<u64> = it
            .finish()
            .intervals
            .iter()
            .map(|it| it.traced.as_ref().map_or(0, |it| it.sum.blocked_ns))
            .collect();
        assert_eq!(blocked, [1_000, 0, 600]);
        let runnable =
            TracedThread { parked_since_ns: Some(5), is_runnable: true, ..TracedThread::default() };
        assert_eq!(runnable.asleep_in_call_ns(100), 0, "it waits for a CPU");
    }

    #[test]
    fn intervals_beyond_the_most_are_joined_two_by_two_and_nothing_is_lost() {
        let (mut it, began) = collector(SECOND, None);
        let most = INTERVALS_MAX as u32;
        let (mut at, mut ends) = (began, 0);
        while ends < most * 2 {
            at = it.due();
            ends += 1;
            it.add(at, Used { cpu_ns: u64::from(ends) * 7, run_delay_ns: 0 }, None);
            assert!(it.intervals.len() <= INTERVALS_MAX);
        }
        let series = it.finish();
        assert_eq!((series.asked_ns, series.interval_ns), (1_000_000_000, 4_000_000_000));
        let length_ns: u64 = series.intervals.iter().map(|it| it.length_ns).sum();
        assert_eq!(u128::from(length_ns), (at - began).as_nanos());
        assert_eq!(series.intervals.iter().map(|it| it.cpu_ns).sum::<u64>(), u64::from(ends) * 7);
        let mut from_ns = 0;
        for interval in &series.intervals {
            assert_eq!(interval.from_ns, from_ns, "there is no gap");
            assert!(interval.traced.is_none());
            from_ns += interval.length_ns;
        }
    }

    #[test]
    fn a_late_reading_makes_one_interval_long_and_leaves_the_ends_of_the_others() {
        let (mut it, began) = collector(SECOND, None);
        it.add(began + SECOND * 7 / 2, Used::default(), None);
        assert_eq!(it.due(), began + SECOND * 4);
    }
}
