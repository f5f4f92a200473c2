//! When the next operation of a thread may start. Pure: a schedule, not a clock.

use weir_record::storage::StorageJob;

use crate::engine::OperationKind;

const SECOND_NS: u128 = 1_000_000_000;
/// Most groups of operations that were due and never started.
const GROUPS_MAX: u64 = 1 << 16;

/// When an operation may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Now: a read, a write, or either.
    Now(Option<OperationKind>),
    /// Not before this moment.
    At(u64),
}

/// The schedule of one thread.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    tracks: Tracks,
    origin_ns: u64,
    think: Think,
}

/// Why nothing may start, whatever the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// All operations in flight must complete before a pause.
    Draining,
    /// The pause ends at this time.
    Until(u64),
}

/// A pause after completions, in fio's way: whether one is due is checked when an operation has started or completed.
/// So the operations that are in flight together at first stay so only until the first pause; after that there is one
/// at a time.
#[derive(Clone, Copy, Debug, Default)]
struct Think {
    length_ns: u64,
    completed: u64,
    /// Those counted by the last pause.
    paused: u64,
    has_begun: bool,
    /// A pause is due, at this total count.
    due: Option<u64>,
    resumes_ns: u64,
}

impl Think {
    fn look(&mut self) {
        if self.length_ns > 0 && self.due.is_none() && self.has_begun && self.completed > self.paused {
            self.due = Some(self.completed);
        }
    }
}

/// What has a rate.
#[derive(Clone, Debug)]
enum Tracks {
    None,
    /// All operations together.
    All(Track),
    /// Reads and writes separately.
    Apart([Track; 2]),
}

/// A rate, and the amount that has started.
#[derive(Clone, Copy, Debug)]
struct Track {
    a_second: u64,
    /// Amount of an operation that has not started: one, or the largest length in bytes.
    each: u64,
    of_bytes: bool,
    /// Operations started, or bytes if the rate is in bytes.
    begun: u64,
}

impl Tracks {
    fn new(job: &StorageJob) -> Self {
        let track = |operations: Option<u32>, bytes: Option<u64>| {
            let each = if operations.is_some() { 1 } else { u64::from(job.block_bytes.max(1)) };
            let a_second = operations.map(u64::from).or(bytes).filter(|a_second| *a_second > 0)?;
            Some(Track { a_second, each, of_bytes: operations.is_none(), begun: 0 })
        };
        let first = track(job.rate_iops, job.rate_bytes);
        match (first, track(job.rate_writes_iops, job.rate_writes_bytes)) {
            (Some(reads), Some(writes)) => Self::Apart([reads, writes]),
            (Some(all), None) => Self::All(all),
            (None, _) => Self::None,
        }
    }

    fn all(&self) -> &[Track] {
        match self {
            Self::None => &[],
            Self::All(track) => std::slice::from_ref(track),
            Self::Apart(tracks) => tracks,
        }
    }
}

impl Track {
    /// When the next operation should start.
    fn next_ns(&self, origin_ns: u64) -> u64 {
        self.at_ns(origin_ns, self.begun)
    }

    /// When this amount should have started.
    fn at_ns(&self, origin_ns: u64, amount: u64) -> u64 {
        let offset_ns = u128::from(amount) * SECOND_NS / u128::from(self.a_second);
        origin_ns.saturating_add(u64::try_from(offset_ns).unwrap_or(u64::MAX))
    }

    /// Operations that were due before `end_ns` and have not started.
    fn overdue(&self, origin_ns: u64, end_ns: u64) -> u64 {
        let span_ns = end_ns.saturating_sub(origin_ns);
        let due = (u128::from(span_ns) * u128::from(self.a_second)).div_ceil(SECOND_NS);
        u64::try_from(due).unwrap_or(u64::MAX).saturating_sub(self.begun).div_ceil(self.each)
    }
}

impl Pace {
    /// The schedule of a job that starts at `origin_ns`.
    pub(super) fn new(job: &StorageJob, origin_ns: u64) -> Self {
        let think = Think { length_ns: job.think_time_ns, ..Think::default() };
        Self { tracks: Tracks::new(job), origin_ns, think }
    }

    /// Whether a pause applies at `now_ns`.
    #[inline]
    pub(super) fn pause(&self, now_ns: u64) -> Option<Pause> {
        match self.think {
            Think { due: Some(_), .. } => Some(Pause::Draining),
            Think { resumes_ns, .. } => (resumes_ns > now_ns).then_some(Pause::Until(resumes_ns)),
        }
    }

    /// Whether the next operation may start at `now_ns`. With rates for both directions, the due one starts; if both
    /// are due, the job's mix decides.
    #[inline]
    pub(super) fn turn(&self, now_ns: u64) -> Turn {
        let (earliest_ns, direction) = match &self.tracks {
            Tracks::None => (0, None),
            Tracks::All(track) => (track.next_ns(self.origin_ns), None),
            Tracks::Apart(tracks) => {
                let [read_ns, write_ns] = tracks.each_ref().map(|track| track.next_ns(self.origin_ns));
                let first = if read_ns <= write_ns { OperationKind::Read } else { OperationKind::Write };
                (read_ns.min(write_ns), (read_ns.max(write_ns) > now_ns).then_some(first))
            }
        };
        if earliest_ns <= now_ns { Turn::Now(direction) } else { Turn::At(earliest_ns) }
    }

    /// Operations that were due before `end_ns` and have not started, at most `left`: for each group the waiting
    /// time, and the number of operations. A group is one operation; if there are more than [`GROUPS_MAX`], a group
    /// contains several, with the time of the last of them, the shortest.
    pub(super) fn overdue(&self, end_ns: u64, left: u64) -> impl Iterator<Item = (u64, u64)> {
        let origin_ns = self.origin_ns;
        let mut left = left;
        self.tracks.all().iter().flat_map(move |track| {
            let count = track.overdue(origin_ns, end_ns).min(left);
            left -= count;
            let intended_ns = move |number: u64| {
                track.at_ns(origin_ns, track.begun.saturating_add(number.saturating_mul(track.each)))
            };
            let size = count.div_ceil(GROUPS_MAX).max(1);
            (0..count.div_ceil(size)).map(move |group| {
                let last = (group * size + size).min(count);
                (end_ns.saturating_sub(intended_ns(last - 1)), last - group * size)
            })
        })
    }

    /// Starts an operation of `bytes` bytes. Returns its intended start if there is a rate.
    #[inline]
    pub(super) fn begin(&mut self, kind: OperationKind, bytes: u32) -> Option<u64> {
        self.think.has_begun = true;
        self.think.look();
        let track = match &mut self.tracks {
            Tracks::None => return None,
            Tracks::All(track) => track,
            Tracks::Apart([reads, _]) if kind == OperationKind::Read => reads,
            Tracks::Apart([_, writes]) => writes,
        };
        let intended_ns = track.next_ns(self.origin_ns);
        track.begun = track.begun.saturating_add(if track.of_bytes { bytes.into() } else { 1 });
        Some(intended_ns)
    }

    /// Notes that `count` reads and writes were complete at this time, and whether none is in flight now.
    #[inline]
    pub(super) fn complete(&mut self, count: u64, noticed_ns: u64, is_idle: bool) {
        self.think.completed += count;
        self.think.look();
        if is_idle && let Some(paused) = self.think.due.take() {
            (self.think.paused, self.think.has_begun) = (paused, false);
            self.think.resumes_ns = noticed_ns.saturating_add(self.think.length_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: OperationKind = OperationKind::Read;
    const WRITE: OperationKind = OperationKind::Write;

    fn pace(rate_iops: Option<u32>, think_time_ns: u64) -> Pace {
        Pace::new(&StorageJob { rate_iops, think_time_ns, ..StorageJob::default() }, 5_000)
    }

    #[test]
    fn without_a_rate_the_next_may_always_begin() {
        let mut pace = pace(None, 0);
        assert_eq!(pace.begin(READ, 4096), None);
        pace.complete(1, 9_000, true);
        assert_eq!((pace.pause(0), pace.turn(0)), (None, Turn::Now(None)));
    }

    #[test]
    fn a_rate_is_a_schedule_that_does_not_wait_for_completions() {
        let mut pace = pace(Some(3), 0);
        assert_eq!(pace.turn(4_999), Turn::At(5_000));
        assert_eq!(pace.turn(5_000), Turn::Now(None));
        assert_eq!(pace.begin(READ, 4096), Some(5_000));
        assert_eq!(pace.turn(5_000), Turn::At(333_338_333));
        pace.begin(WRITE, 4096);
        pace.begin(READ, 4096);
        // A late start counts from its intended start, and rounding errors do not accumulate.
        assert_eq!(pace.turn(7_000_000_000), Turn::Now(None));
        assert_eq!(pace.begin(READ, 4096), Some(1_000_005_000));
    }

    #[test]
    fn a_rate_of_bytes_is_a_schedule_of_what_was_handed_over() {
        let job = StorageJob { rate_bytes: Some(1 << 20), block_bytes: 65_536, ..StorageJob::default() };
        let mut pace = Pace::new(&job, 5_000);
        assert_eq!(pace.turn(5_000), Turn::Now(None));
        assert_eq!(pace.begin(READ, 65_536), Some(5_000));
        assert_eq!(pace.turn(5_000), Turn::At(62_505_000));
        // A shorter operation is followed sooner.
        pace.begin(READ, 4_096);
        assert_eq!(pace.turn(5_000), Turn::At(66_411_250));
        // 956 KiB of the amount due in a second are left, in blocks of 64.
        assert_eq!(overdue(&pace, 1_000_005_000, u64::MAX).len(), 15);
    }

    fn overdue(pace: &Pace, end_ns: u64, left: u64) -> Vec<(u64, u64)> {
        pace.overdue(end_ns, left).collect()
    }

    #[test]
    fn what_was_due_and_never_begun_has_waited_until_the_end() {
        let mut pace = pace(Some(1000), 0);
        pace.begin(READ, 4096);
        // Due are those at 0, 1, 2 and 3 ms after the start; the end itself is excluded.
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
            while let Turn::Now(_) = begun.turn(end_ns - 1) {
                begun.begin(READ, 4096);
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
        for noticed_ns in [9_000, 19_000] {
            assert_eq!(pace.pause(noticed_ns - 1_000), None);
            pace.begin(READ, 4096);
            pace.complete(1, noticed_ns, true);
            assert_eq!(pace.pause(noticed_ns + 699), Some(Pause::Until(noticed_ns + 700)));
            // A sync does not count towards a pause.
            pace.complete(0, noticed_ns + 700, true);
            assert_eq!(pace.pause(noticed_ns + 700), None);
        }
    }

    #[test]
    fn a_pause_waits_for_all_in_flight_and_then_there_is_one() {
        let mut pace = pace(None, 700);
        for _ in 0..4 {
            pace.begin(READ, 4096);
        }
        assert_eq!(pace.pause(0), None);
        pace.complete(1, 1_000, false);
        assert_eq!(pace.pause(90_000), Some(Pause::Draining));
        pace.complete(2, 2_000, false);
        pace.complete(1, 3_000, true);
        assert_eq!((pace.pause(3_000), pace.pause(3_700)), (Some(Pause::Until(3_700)), None));
        pace.begin(READ, 4096);
        assert_eq!(pace.pause(3_700), Some(Pause::Draining));
        pace.complete(1, 4_000, true);
        assert_eq!(pace.pause(4_000), Some(Pause::Until(4_700)));
    }

    #[test]
    fn a_rate_of_nothing_is_no_rate() {
        assert_eq!(pace(Some(0), 0).turn(0), Turn::Now(None));
    }

    #[test]
    fn reads_and_writes_may_have_rates_of_their_own() {
        let job = StorageJob { rate_iops: Some(1000), rate_writes_iops: Some(500), ..StorageJob::default() };
        let mut pace = Pace::new(&job, 5_000);
        assert_eq!(pace.turn(5_000), Turn::Now(None), "both are due: the mix decides");
        assert_eq!(pace.begin(WRITE, 4096), Some(5_000));
        assert_eq!(pace.turn(5_000), Turn::Now(Some(READ)));
        assert_eq!(pace.begin(READ, 4096), Some(5_000));
        assert_eq!(pace.turn(5_000), Turn::At(1_005_000));
        assert_eq!(pace.turn(1_005_000), Turn::Now(Some(READ)));
        pace.begin(READ, 4096);
        assert_eq!(pace.turn(2_005_000), Turn::Now(None));
        // One of each started in time, and one more read; due in 10 ms are 10 and 5.
        assert_eq!(overdue(&pace, 10_005_000, u64::MAX).len(), 8 + 4);
        assert_eq!(overdue(&pace, 10_005_000, 9).len(), 9);
    }
}
