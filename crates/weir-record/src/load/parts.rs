//! How the coordinator of several generators and each of them talk: one JSON value a line, on the generator's standard
//! input and output. Not documented for users: both ends are always of one build.
//!
//! Each generator runs some workers of one load, whose numbers are those of the whole load: so connections, requests
//! and starts are those of one generator with all workers. The coordinator says when the load starts and when the
//! window opens. A generator answers at once, and hands over each second of the window with its histogram.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LoadReport, SecondRow};
use crate::latency::{HistogramError, add_decoded, base64, empty_histogram, histogram_v2};

/// Most generators of one load.
pub const GENERATORS_MAX: usize = 64;

/// Most seconds in one answer.
pub const SECONDS_MAX: usize = 8;

/// Which workers of a load run in a generator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerShare {
    /// The first of them.
    pub first: u32,
    /// Their number.
    pub workers: u32,
    /// Workers of all generators.
    pub all: u32,
}

impl WorkerShare {
    /// The share of each generator, if all have the same number of workers.
    pub fn of_each(generators: u32, workers: u32) -> impl Iterator<Item = Self> {
        let all = generators.saturating_mul(workers);
        (0..generators).map(move |generator| Self { first: generator.saturating_mul(workers), workers, all })
    }

    /// This share of a total that is dealt to all workers in turn.
    pub fn part_of(&self, total: u32) -> u32 {
        let all = self.all.max(1);
        let more = (total % all).saturating_sub(self.first).min(self.workers);
        (total / all).saturating_mul(self.workers).saturating_add(more)
    }
}

/// The part of a worker in a total that is dealt to all workers in turn.
pub fn dealt(total: u64, worker: u32, workers: u32) -> u64 {
    let workers = u64::from(workers.max(1));
    total / workers + u64::from(u64::from(worker) < total % workers)
}

/// The first line that a generator reads: what it is to load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PartSetup {
    /// The words behind `weir`, beginning with `load`.
    pub words: Vec<String>,
    /// Contents of the files that the words name, by path, in hexadecimal digits.
    pub files: BTreeMap<String, String>,
    /// The workers to run.
    pub share: WorkerShare,
}

/// What a generator does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PartOrder {
    /// Say how far it is.
    Look,
    /// Start the load. Without a warm-up the window opens too.
    Start,
    /// Open the window.
    Open,
    /// End the load now.
    Stop,
}

/// How far a generator is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PartPhase {
    /// It opens its connections.
    #[default]
    Connecting,
    /// It waits for the start.
    Connected,
    /// The load runs, and the window is not open.
    WarmingUp,
    /// The window is open.
    Measuring,
    /// The window is closed, and messages may come back.
    Ending,
    /// It has ended.
    Ended,
}

/// The answer to an order, when it was carried out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PartAnswer {
    /// How far it is.
    pub phase: PartPhase,
    /// Its load has been steady for the last second.
    pub is_steady: bool,
    /// Messages completed and verified since the start.
    pub messages: u64,
    /// Messages in flight.
    pub in_flight: u64,
    /// Failures since the start.
    pub errors: u64,
    /// Text of the last failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_last: Option<String>,
    /// The next seconds of the window that it has finished.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub seconds: Vec<SecondPart>,
    /// What it measured, when it has ended and all seconds are handed over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Box<LoadPart>>,
}

/// One second of the window of one generator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecondPart {
    /// Messages completed.
    pub messages: u64,
    /// Errors seen.
    pub errors: u64,
    /// Times of the answers, as [`crate::latency::LatencySummary::histogram_v2_base64`].
    pub times: String,
}

impl SecondPart {
    /// A second with the times of its answers.
    pub fn of(messages: u64, errors: u64, times: &Histogram<u64>) -> Self {
        let times = if times.is_empty() { String::new() } else { base64(&histogram_v2(times)) };
        Self { messages, errors, times }
    }
}

/// What one generator measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LoadPart {
    /// Its own report, without the rows of its seconds.
    pub report: LoadReport,
    /// When its first failure was seen, from the start of its load.
    pub failure_first_ns: Option<u64>,
    /// When its first bad response of HTTP was seen, from the start of its load.
    pub bad_response_ns: Option<u64>,
    /// A hash of the content that every response of each URL was compared with; `None` where there was none.
    pub contents: Vec<Option<String>>,
}

/// Most seconds that a generator may be behind the first one. It hands its seconds over at least once a second.
const BEHIND_SECONDS_MAX: usize = 120;

/// Rows by second of several generators, from their histograms. It keeps the seconds that not all running
/// ones have passed.
#[derive(Debug)]
pub struct SecondSums {
    /// Finished rows.
    rows: Vec<SecondRow>,
    /// Rows of each generator by itself.
    own: Vec<Vec<SecondRow>>,
    /// Which generators have no further seconds.
    ended: Vec<bool>,
    /// Sums of the seconds after the finished ones.
    open: Vec<SecondSum>,
}

#[derive(Debug)]
struct SecondSum {
    messages: u64,
    errors: u64,
    times: Histogram<u64>,
}

/// Why a second cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecondError {
    /// Its histogram cannot be read.
    #[error("the times of a second cannot be read: {0}")]
    Histogram(#[from] HistogramError),
    /// Another generator is far behind.
    #[error("another generator is more than {BEHIND_SECONDS_MAX} s behind")]
    Behind,
    /// There is no generator of this number.
    #[error("there is no such generator")]
    Unknown,
    /// It said before that it has no further seconds.
    #[error("a second came after the last one")]
    Ended,
}

impl SecondSums {
    /// Sums of this many generators.
    pub fn new(generators: usize) -> Self {
        Self {
            rows: Vec::new(),
            own: vec![Vec::new(); generators],
            ended: vec![false; generators],
            open: Vec::new(),
        }
    }

    /// Adds the next second of a generator.
    ///
    /// # Errors
    /// If its histogram is none, it has ended, or another generator that runs is far behind.
    pub fn add(&mut self, generator: usize, second: &SecondPart) -> Result<(), SecondError> {
        let number = self.own.get(generator).ok_or(SecondError::Unknown)?.len();
        if self.ended[generator] {
            return Err(SecondError::Ended);
        }
        // Finished rows are those that every running generator has passed, so this one's next row is none of them.
        let place = number.saturating_sub(self.rows.len());
        if place > BEHIND_SECONDS_MAX {
            return Err(SecondError::Behind);
        }
        let mut times = empty_histogram();
        if !second.times.is_empty() {
            add_decoded(&second.times, &mut times)?;
        }
        self.own[generator].push(SecondRow::of(second.messages, second.errors, &times));
        match self.open.get_mut(place) {
            Some(sum) => {
                sum.messages = sum.messages.saturating_add(second.messages);
                sum.errors = sum.errors.saturating_add(second.errors);
                // Both have the bounds of the format.
                let _ = sum.times.add(&times);
            }
            None => self.open.push(SecondSum { messages: second.messages, errors: second.errors, times }),
        }
        self.close(self.passed());
        Ok(())
    }

    /// A generator has no further seconds. The others do not wait for it: a counted load may end on one host long
    /// before it ends on another.
    pub fn end(&mut self, generator: usize) {
        if let Some(ended) = self.ended.get_mut(generator) {
            *ended = true;
            self.close(self.passed());
        }
    }

    /// How many seconds are complete: those that every running generator has passed.
    fn passed(&self) -> usize {
        let running = self.own.iter().zip(&self.ended).filter(|(_, ended)| !**ended);
        let slowest = running.map(|(own, _)| own.len()).min();
        slowest.unwrap_or_else(|| self.own.iter().map(Vec::len).max().unwrap_or(0))
    }

    fn close(&mut self, until: usize) {
        while self.rows.len() < until && !self.open.is_empty() {
            let SecondSum { messages, errors, times } = self.open.remove(0);
            self.rows.push(SecondRow::of(messages, errors, &times));
        }
    }

    /// The last row that all running generators have passed.
    pub fn last(&self) -> Option<SecondRow> {
        self.rows.last().copied()
    }

    /// The rows of the whole seconds of a window of this length, when every generator has ended; and for each
    /// generator those of its own window.
    pub fn finish(mut self, window_ns: u64, own_ns: &[u64]) -> (Vec<SecondRow>, Vec<Vec<SecondRow>>) {
        let whole = |window_ns: u64| usize::try_from(window_ns / 1_000_000_000).unwrap_or(usize::MAX);
        self.close(usize::MAX);
        self.rows.truncate(whole(window_ns));
        for (rows, window_ns) in self.own.iter_mut().zip(own_ns) {
            rows.truncate(whole(*window_ns));
        }
        (self.rows, self.own)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn second(times_ns: &[u64], errors: u64) -> SecondPart {
        let mut times = empty_histogram();
        times_ns.iter().for_each(|time| times.saturating_record(*time));
        SecondPart::of(times_ns.len() as u64, errors, &times)
    }

    proptest! {
        // A histogram has a quarter of a megabyte, and a case has many.
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn shares_of_a_total_are_dealt_to_workers_in_turn(
            generators in 1_u32..9,
            workers in 1_u32..5,
            total in 0_u32..1000,
        ) {
            let shares: Vec<WorkerShare> = WorkerShare::of_each(generators, workers).collect();
            let of_workers = |share: &WorkerShare| {
                let workers = share.first..share.first + share.workers;
                workers.map(|worker| dealt(total.into(), worker, share.all)).sum::<u64>()
            };
            prop_assert!(shares.iter().all(|share| u64::from(share.part_of(total)) == of_workers(share)));
            prop_assert_eq!(shares.iter().map(|share| share.part_of(total)).sum::<u32>(), total);
        }

        #[test]
        fn rows_of_parts_are_those_of_the_whole(
            seconds in prop::collection::vec(prop::collection::vec((1_u64..5_000_000_000, 0_usize..3), 0..60), 0..12),
            order in prop::collection::vec(0_usize..3, 36),
        ) {
            let all: Vec<Vec<u64>> =
                seconds.iter().map(|second| second.iter().map(|(time, _)| *time).collect()).collect();
            let whole: Vec<SecondRow> = all
                .iter()
                .map(|times| {
                    let mut histogram = empty_histogram();
                    times.iter().for_each(|time| histogram.saturating_record(*time));
                    SecondRow::of(times.len() as u64, 3, &histogram)
                })
                .collect();
            let part = |generator: usize, second: &[(u64, usize)]| {
                let times: Vec<u64> =
                    second.iter().filter(|(_, of)| *of == generator).map(|(time, _)| *time).collect();
                self::second(&times, 1)
            };
            let mut sums = SecondSums::new(3);
            let mut next = [0; 3];
            // In any order among the generators, then what is left.
            let rest = (0..3).flat_map(|generator| std::iter::repeat_n(generator, seconds.len()));
            for generator in order.into_iter().chain(rest) {
                if let Some(second) = seconds.get(next[generator]) {
                    next[generator] += 1;
                    prop_assert_eq!(sums.add(generator, &part(generator, second)), Ok(()));
                }
            }
            let window_ns = seconds.len() as u64 * 1_000_000_000;
            let (rows, own) = sums.finish(window_ns, &[window_ns; 3]);
            prop_assert_eq!(&rows, &whole);
            for (generator, own) in own.iter().enumerate() {
                let alone = seconds.iter().map(|second| {
                    let SecondPart { messages, errors, times } = part(generator, second);
                    let mut histogram = empty_histogram();
                    if !times.is_empty() {
                        add_decoded(&times, &mut histogram).expect("it was written here");
                    }
                    SecondRow::of(messages, errors, &histogram)
                });
                prop_assert_eq!(own, &alone.collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_generator_that_ends_early_is_in_the_seconds_that_it_ran() {
        let mut sums = SecondSums::new(2);
        sums.add(0, &second(&[100, 100], 0)).expect("it is right");
        sums.add(0, &second(&[100], 1)).expect("it is right");
        for _ in 0..3 {
            sums.add(1, &second(&[300], 0)).expect("it is right");
        }
        assert_eq!(sums.last(), Some(SecondRow { messages: 2, errors: 1, p50_ns: 100, p99_ns: 300 }));
        let (rows, own) = sums.finish(3_200_000_000, &[1_500_000_000, 3_200_000_000]);
        assert_eq!(rows.iter().map(|row| row.messages).collect::<Vec<_>>(), [3, 2, 1]);
        assert_eq!(own.iter().map(Vec::len).collect::<Vec<_>>(), [1, 3], "its last second is no whole one");
    }

    #[test]
    fn a_generator_that_has_ended_holds_no_row_back() {
        let mut sums = SecondSums::new(2);
        for _ in 0..2 {
            sums.add(0, &second(&[100], 1)).expect("it is right");
        }
        assert_eq!(sums.last(), None, "the other one runs and has passed nothing");
        sums.end(0);
        assert_eq!(sums.add(0, &second(&[], 0)), Err(SecondError::Ended));
        for number in 0..300 {
            assert_eq!(sums.add(1, &second(&[300], 0)), Ok(()), "second {number}");
        }
        assert_eq!(sums.last(), Some(SecondRow { messages: 1, errors: 0, p50_ns: 300, p99_ns: 300 }));
        sums.end(1);
        let (rows, own) = sums.finish(300_000_000_000, &[2_000_000_000, 300_000_000_000]);
        assert_eq!(own.iter().map(Vec::len).collect::<Vec<_>>(), [2, 300]);
        let counts: Vec<(u64, u64)> = rows.iter().map(|row| (row.messages, row.errors)).collect();
        assert_eq!(counts[..2], [(2, 1); 2]);
        assert_eq!(counts[2..], [(1, 0); 298]);
    }

    #[test]
    fn rows_are_complete_when_the_slower_of_two_has_ended() {
        let mut sums = SecondSums::new(2);
        for _ in 0..3 {
            sums.add(1, &second(&[300], 0)).expect("it is right");
        }
        sums.add(0, &second(&[100], 0)).expect("it is right");
        sums.end(1);
        assert_eq!(sums.last().map(|row| row.messages), Some(2), "the first one may have further seconds");
        sums.end(0);
        assert_eq!(sums.last().map(|row| row.messages), Some(1), "all rows are complete");
    }

    #[test]
    fn what_is_no_second_and_one_that_is_far_ahead_are_refused() {
        let mut sums = SecondSums::new(2);
        let wrong = SecondPart { times: "!".into(), ..SecondPart::default() };
        assert_eq!(sums.add(0, &wrong), Err(SecondError::Histogram(HistogramError::Base64)));
        assert_eq!(sums.add(2, &second(&[], 0)), Err(SecondError::Unknown));
        for _ in 0..=BEHIND_SECONDS_MAX {
            sums.add(0, &second(&[], 0)).expect("it is right");
        }
        assert_eq!(sums.add(0, &second(&[], 0)), Err(SecondError::Behind));
    }
}
