//! When the next operation of a thread may begin. Pure: a schedule, not a clock.

use weir_record::storage::StorageJob;

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
    rate_iops: Option<u32>,
    think_ns: u64,
    origin_ns: u64,
    begun: u64,
    resumes_ns: u64,
}

impl Pace {
    /// The schedule of a job that begins at `origin_ns`.
    pub(super) fn new(job: &StorageJob, origin_ns: u64) -> Self {
        let rate_iops = job.rate_iops.filter(|rate| *rate > 0);
        Self { rate_iops, think_ns: job.think_time_ns, origin_ns, begun: 0, resumes_ns: 0 }
    }

    /// Whether the next operation may begin at `now_ns`.
    #[inline]
    pub(super) fn turn(&self, now_ns: u64) -> Turn {
        let intended_ns = self.rate_iops.map(|rate_iops| {
            let offset_ns = u128::from(self.begun) * 1_000_000_000 / u128::from(rate_iops);
            self.origin_ns.saturating_add(u64::try_from(offset_ns).unwrap_or(u64::MAX))
        });
        let earliest_ns = intended_ns.unwrap_or(0).max(self.resumes_ns);
        if earliest_ns <= now_ns { Turn::Now { intended_ns } } else { Turn::At(earliest_ns) }
    }

    /// An operation begins.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.begun += 1;
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
        pace.begin();
        pace.complete(9_000);
        assert_eq!(pace.turn(0), Turn::Now { intended_ns: None });
    }

    #[test]
    fn a_rate_is_a_schedule_that_does_not_wait_for_completions() {
        let mut pace = pace(Some(3), 0);
        assert_eq!(pace.turn(4_999), Turn::At(5_000));
        assert_eq!(pace.turn(5_000), Turn::Now { intended_ns: Some(5_000) });
        pace.begin();
        assert_eq!(pace.turn(5_000), Turn::At(333_338_333));
        pace.begin();
        pace.begin();
        // Late: it counts from where it was to begin, and no rounding adds up.
        assert_eq!(pace.turn(7_000_000_000), Turn::Now { intended_ns: Some(1_000_005_000) });
    }

    #[test]
    fn a_pause_follows_each_completion() {
        let mut pace = pace(None, 700);
        assert_eq!(pace.turn(0), Turn::Now { intended_ns: None });
        pace.begin();
        pace.complete(9_000);
        assert_eq!(pace.turn(9_699), Turn::At(9_700));
        assert_eq!(pace.turn(9_700), Turn::Now { intended_ns: None });
    }

    #[test]
    fn a_rate_of_nothing_is_no_rate() {
        assert_eq!(pace(Some(0), 0).turn(0), Turn::Now { intended_ns: None });
    }
}
