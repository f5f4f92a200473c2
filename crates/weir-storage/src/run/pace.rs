//! When the next operation of a thread may begin. Pure: a schedule, not a clock.

use weir_record::storage::StorageJob;

const SECOND_NS: u128 = 1_000_000_000;
/// Most groups of operations that were due and never begun.
const GROUPS_MAX: u64 = 1 << 16;

/// Whether an operation may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Now. With a rate it was to begin at this moment.
    Now {
        /// The intended start; absent without a rate.
        intended_ns: Option<u64>,
    },
    /// Not before this moment.
    At(u64),
}

/// The schedule of one thread.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    rate: Option<Rate>,
    think_ns: u64,
    origin_ns: u64,
    /// Operations, or bytes where the rate is one of bytes.
    begun: u64,
    resumes_ns: u64,
}

/// So much a second.
#[derive(Clone, Copy, Debug)]
struct Rate {
    a_second: u64,
    /// What an operation counts that has not begun: one, or the bytes of the largest.
    each: u64,
    of_bytes: bool,
}

impl Rate {
    fn new(job: &StorageJob) -> Option<Self> {
        let of_operations =
            job.rate_iops.map(|rate| Self { a_second: rate.into(), each: 1, of_bytes: false });
        let each = u64::from(job.block_bytes.max(1));
        let of_bytes = job.rate_bytes.map(|a_second| Self { a_second, each, of_bytes: true });
        of_operations.or(of_bytes).filter(|rate| rate.a_second > 0)
    }
}

impl Pace {
    /// The schedule of a job that begins at `origin_ns`.
    pub(super) fn new(job: &StorageJob, origin_ns: u64) -> Self {
        Self { rate: Rate::new(job), think_ns: job.think_time_ns, origin_ns, begun: 0, resumes_ns: 0 }
    }

    /// Whether the next operation may begin at `now_ns`.
    #[inline]
    pub(super) fn turn(&self, now_ns: u64) -> Turn {
        let intended_ns = self.rate.map(|rate| self.intended_ns(self.begun, rate));
        let earliest_ns = intended_ns.unwrap_or(0).max(self.resumes_ns);
        if earliest_ns <= now_ns { Turn::Now { intended_ns } } else { Turn::At(earliest_ns) }
    }

    /// When that much of what the rate counts shall have begun.
    fn intended_ns(&self, amount: u64, rate: Rate) -> u64 {
        let offset_ns = u128::from(amount) * SECOND_NS / u128::from(rate.a_second);
        self.origin_ns.saturating_add(u64::try_from(offset_ns).unwrap_or(u64::MAX))
    }

    /// What was due before `end_ns` and has not begun, but no more than `left` operations: for groups of them how long
    /// each has waited, and how many they are. A group is one operation; where there are more of them than anybody
    /// wants to look at, it is several, and its time that of the last of them, the shortest.
    pub(super) fn overdue(&self, end_ns: u64, left: u64) -> impl Iterator<Item = (u64, u64)> {
        let rate = self.rate.unwrap_or(Rate { a_second: 1, each: 1, of_bytes: false });
        let span_ns = end_ns.saturating_sub(self.origin_ns);
        let due = (u128::from(span_ns) * u128::from(rate.a_second)).div_ceil(SECOND_NS);
        let due = if self.rate.is_some() { u64::try_from(due).unwrap_or(u64::MAX) } else { 0 };
        let count = due.saturating_sub(self.begun).div_ceil(rate.each).min(left);
        let intended_ns = move |number: u64| {
            self.intended_ns(self.begun.saturating_add(number.saturating_mul(rate.each)), rate)
        };
        let size = count.div_ceil(GROUPS_MAX).max(1);
        (0..count.div_ceil(size)).map(move |group| {
            let last = (group * size + size).min(count);
            (end_ns.saturating_sub(intended_ns(last - 1)), last - group * size)
        })
    }

    /// An operation of so many bytes begins.
    #[inline]
    pub(super) fn begin(&mut self, bytes: u32) {
        let amount = if self.rate.is_some_and(|rate| rate.of_bytes) { bytes.into() } else { 1 };
        self.begun = self.begun.saturating_add(amount);
    }

    /// An operation was complete.
    #[inline]
    pub(super) fn complete(&mut self, noticed_ns: u64) {
        if self.think_ns > 0 {
            self.resumes_ns = noticed_ns.saturating_add(self.think_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(rate_iops: Option<u32>, think_time_ns: u64) -> Pace {
        Pace::new(&StorageJob { rate_iops, think_time_ns, ..StorageJob::default() }, 5_000)
    }

    #[test]
    fn without_a_rate_the_next_may_always_begin() {
        let mut pace = pace(None, 0);
        pace.begin(4096);
        pace.complete(9_000);
        assert_eq!(pace.turn(0), Turn::Now { intended_ns: None });
    }

    #[test]
    fn a_rate_is_a_schedule_that_does_not_wait_for_completions() {
        let mut pace = pace(Some(3), 0);
        assert_eq!(pace.turn(4_999), Turn::At(5_000));
        assert_eq!(pace.turn(5_000), Turn::Now { intended_ns: Some(5_000) });
        pace.begin(4096);
        assert_eq!(pace.turn(5_000), Turn::At(333_338_333));
        pace.begin(4096);
        pace.begin(4096);
        // Late: it counts from where it was to begin, and no rounding adds up.
        assert_eq!(pace.turn(7_000_000_000), Turn::Now { intended_ns: Some(1_000_005_000) });
    }

    #[test]
    fn a_rate_of_bytes_is_a_schedule_of_what_was_handed_over() {
        let job = StorageJob { rate_bytes: Some(1 << 20), block_bytes: 65_536, ..StorageJob::default() };
        let mut pace = Pace::new(&job, 5_000);
        assert_eq!(pace.turn(5_000), Turn::Now { intended_ns: Some(5_000) });
        pace.begin(65_536);
        assert_eq!(pace.turn(5_000), Turn::At(62_505_000));
        // A short operation is followed sooner.
        pace.begin(4_096);
        assert_eq!(pace.turn(5_000), Turn::At(66_411_250));
        // Of what is due in a second 956 KiB are left, in blocks of 64.
        assert_eq!(overdue(&pace, 1_000_005_000, u64::MAX).len(), 15);
    }

    fn overdue(pace: &Pace, end_ns: u64, left: u64) -> Vec<(u64, u64)> {
        pace.overdue(end_ns, left).collect()
    }

    #[test]
    fn what_was_due_and_never_begun_has_waited_until_the_end() {
        let mut pace = pace(Some(1000), 0);
        pace.begin(4096);
        // Due are those of 0, 1, 2 and 3 ms after the start; the end itself belongs to nobody.
        assert_eq!(overdue(&pace, 3_005_000, u64::MAX), [(2_000_000, 1), (1_000_000, 1)]);
        assert_eq!(overdue(&pace, 3_005_001, u64::MAX), [(2_000_001, 1), (1_000_001, 1), (1, 1)]);
        assert_eq!(
            overdue(&pace, 3_005_001, 1),
            [(2_000_001, 1)],
            "the size or the number of operations ends it"
        );
        assert_eq!(overdue(&pace, 1_005_000, u64::MAX), [], "all that was due has begun");
        assert_eq!(overdue(&pace, 0, u64::MAX), [], "it ended before it began");
        assert_eq!(
            overdue(&super::tests::pace(None, 700), 1 << 60, u64::MAX),
            [],
            "nothing is due without a rate"
        );
    }

    #[test]
    fn each_that_is_overdue_is_one_whose_turn_has_come() {
        for rate_iops in [3, 7, 999, 1_000_003] {
            let end_ns = 5_000 + 2_000_003;
            let pace = pace(Some(rate_iops), 0);
            let mut begun = pace.clone();
            let mut turns = 0;
            while let Turn::Now { .. } = begun.turn(end_ns - 1) {
                begun.begin(4096);
                turns += 1;
            }
            assert_eq!(overdue(&pace, end_ns, u64::MAX).len(), turns, "{rate_iops}");
        }
    }

    #[test]
    fn more_than_the_maximum_are_told_in_groups_by_the_shortest_wait() {
        let pace = pace(Some(1_000_000), 0);
        let groups = overdue(&pace, 5_000 + (GROUPS_MAX + 1) * 1_000, u64::MAX);
        assert_eq!(groups.iter().map(|(_, count)| count).sum::<u64>(), GROUPS_MAX + 1);
        assert!(groups.len() as u64 <= GROUPS_MAX, "{}", groups.len());
        assert_eq!((groups[0], groups[1].0), ((GROUPS_MAX * 1_000, 2), (GROUPS_MAX - 2) * 1_000));
        assert_eq!(groups.last(), Some(&(1_000, 1)));
        assert_eq!(overdue(&pace, u64::MAX, u64::MAX).len() as u64, GROUPS_MAX);
    }

    #[test]
    fn a_pause_follows_each_completion() {
        let mut pace = pace(None, 700);
        assert_eq!(pace.turn(0), Turn::Now { intended_ns: None });
        pace.begin(4096);
        pace.complete(9_000);
        assert_eq!(pace.turn(9_699), Turn::At(9_700));
        assert_eq!(pace.turn(9_700), Turn::Now { intended_ns: None });
    }

    #[test]
    fn a_rate_of_nothing_is_no_rate() {
        assert_eq!(pace(Some(0), 0).turn(0), Turn::Now { intended_ns: None });
    }
}
