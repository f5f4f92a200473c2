//! The schedule of an open loop: when each message should start. Pure: it uses no clock and never waits.
//!
//! The rate of a run is divided between its workers so that together they keep the schedule of the whole: equal gaps
//! interleave, and independent Poisson processes add up to one.

use std::cell::Cell;

use crate::payload::mix;

/// A schedule of starts.
pub trait Pacer {
    /// When message `sequence` should start, in nanoseconds from the start of the run. Never decreases as `sequence`
    /// increases, and depends only on the schedule's own parameters.
    fn intended_start(&self, sequence: u64) -> u64;
}

/// One worker's part of a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Messages a second over all workers.
    pub rate_per_second: f64,
    /// This worker, from 0.
    pub worker: u32,
    /// Number of workers.
    pub workers: u32,
}

/// Equal gaps. Message `k` of worker `w` of `n` is number `k * n + w` of the run.
#[derive(Clone, Copy, Debug)]
pub struct Uniform {
    share: Share,
}

impl Uniform {
    /// The schedule of one worker.
    pub fn new(share: Share) -> Self {
        Self { share }
    }
}

impl Pacer for Uniform {
    fn intended_start(&self, sequence: u64) -> u64 {
        let number = u128::from(sequence) * u128::from(self.share.workers) + u128::from(self.share.worker);
        (number as f64 * 1e9 / self.share.rate_per_second) as u64
    }
}

/// Exponential gaps: independent arrivals.
///
/// The gap before message `k` is a hash of seed, worker and `k` turned into an exponential number, and the start is
/// the sum of the gaps up to it. The last sum is remembered, so that ascending requests cost one gap each; a request
/// for an earlier start adds from the beginning and returns the same value.
#[derive(Clone, Debug)]
pub struct Poisson {
    key: u64,
    gap_mean_ns: f64,
    /// Number of gaps in the remembered sum, and the sum.
    remembered: Cell<(u64, f64)>,
}

impl Poisson {
    /// The schedule of one worker.
    pub fn new(share: Share, seed: u64) -> Self {
        let key = mix(seed.wrapping_add(mix(u64::from(share.worker) ^ 0x706f_6973_736f_6e00)));
        let gap_mean_ns = 1e9 * f64::from(share.workers) / share.rate_per_second;
        Self { key, gap_mean_ns, remembered: Cell::new((0, 0.0)) }
    }

    fn gap_ns(&self, sequence: u64) -> f64 {
        // 53 random bits in (0, 1]: the logarithm is finite.
        let uniform = ((mix(self.key ^ mix(sequence)) >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        -uniform.ln() * self.gap_mean_ns
    }
}

impl Pacer for Poisson {
    fn intended_start(&self, sequence: u64) -> u64 {
        let wanted = sequence + 1;
        let (mut gaps, mut sum) = self.remembered.get();
        if gaps > wanted {
            (gaps, sum) = (0, 0.0);
        }
        while gaps < wanted {
            sum += self.gap_ns(gaps);
            gaps += 1;
        }
        self.remembered.set((gaps, sum));
        sum as u64
    }
}

/// Starts that are due but not made, as a position in a schedule: it needs no memory however long the backlog is, and
/// a late start keeps its intended time.
#[derive(Debug)]
pub(crate) struct Backlog<P> {
    pacer: P,
    origin_ns: u64,
    next: Cell<u64>,
}

impl<P: Pacer> Backlog<P> {
    pub(crate) fn new(pacer: P, origin_ns: u64) -> Self {
        Self { pacer, origin_ns, next: Cell::new(0) }
    }

    /// Intended time of the next start.
    pub(crate) fn next_ns(&self) -> u64 {
        self.origin_ns.saturating_add(self.pacer.intended_start(self.next.get()))
    }

    /// Counts the next start as made.
    pub(crate) fn made(&self) {
        self.next.set(self.next.get() + 1);
    }

    /// Intended times of the starts from `open` to before `close` that were not made. Skips them.
    pub(crate) fn pass_over(&self, open: u64, close: u64) -> impl Iterator<Item = u64> {
        let next = move || {
            let next_ns = self.next_ns();
            (next_ns < close).then(|| {
                self.made();
                next_ns
            })
        };
        std::iter::from_fn(next).filter(move |intended_ns| *intended_ns >= open)
    }
}

impl<P: Pacer + ?Sized> Pacer for Box<P> {
    fn intended_start(&self, sequence: u64) -> u64 {
        (**self).intended_start(sequence)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn share(rate_per_second: f64, worker: u32, workers: u32) -> Share {
        Share { rate_per_second, worker, workers }
    }

    #[test]
    fn equal_gaps_interleave_over_the_workers_without_drift() {
        let first = Uniform::new(share(1000.0, 0, 2));
        let second = Uniform::new(share(1000.0, 1, 2));
        let starts: Vec<u64> =
            (0..3).flat_map(|k| [first.intended_start(k), second.intended_start(k)]).collect();
        assert_eq!(starts, [0, 1_000_000, 2_000_000, 3_000_000, 4_000_000, 5_000_000]);
        let thirds = Uniform::new(share(3.0, 0, 1));
        assert_eq!(thirds.intended_start(3_000_000), 1_000_000_000_000_000);
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_the_spread_of_an_exponential() {
        let pacer = Poisson::new(share(20_000.0, 0, 2), 42);
        let starts: Vec<u64> = (0..100_001).map(|k| pacer.intended_start(k)).collect();
        let gaps: Vec<f64> = starts.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // Half of 20,000 a second: 100 us. Standard error of the mean: 0.3 %.
        assert!((mean / 100_000.0 - 1.0).abs() < 0.015, "mean {mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.03, "spread {}", variance.sqrt() / mean);
        let long = gaps.iter().filter(|gap| **gap > 300_000.0).count() as f64 / gaps.len() as f64;
        assert!((long / (-3.0_f64).exp() - 1.0).abs() < 0.1, "share of long gaps {long}");
    }

    #[test]
    fn workers_and_seeds_have_arrivals_of_their_own() {
        let starts = |worker, seed| {
            let pacer = Poisson::new(share(1000.0, worker, 2), seed);
            (0..4).map(|k| pacer.intended_start(k)).collect::<Vec<_>>()
        };
        assert_eq!(starts(0, 1), starts(0, 1));
        assert_ne!(starts(0, 1), starts(1, 1));
        assert_ne!(starts(0, 1), starts(0, 2));
    }

    #[test]
    fn a_backlog_keeps_intended_times_and_counts_what_was_never_started() {
        let backlog = Backlog::new(Uniform::new(share(1000.0, 0, 1)), 5_000_000);
        assert_eq!(backlog.next_ns(), 5_000_000);
        backlog.made();
        assert_eq!(backlog.next_ns(), 6_000_000);
        // Due at 6, 7, 8 and 9 ms; the window is from 7 to 9 ms.
        let missed: Vec<u64> = backlog.pass_over(7_000_000, 9_000_000).collect();
        assert_eq!(missed, [7_000_000, 8_000_000]);
        assert_eq!(backlog.next_ns(), 9_000_000);
        assert_eq!(backlog.pass_over(7_000_000, 9_000_000).count(), 0);
    }

    proptest! {
        #[test]
        fn a_schedule_depends_on_the_number_alone_and_never_falls(
            seed: u64,
            rate in 0.1_f64..1e6,
            workers in 1_u32..8,
            order in prop::collection::vec(0_u64..500, 1..30),
        ) {
            let shared = share(rate, workers - 1, workers);
            let pacers: [Box<dyn Pacer>; 2] =
                [Box::new(Uniform::new(shared)), Box::new(Poisson::new(shared, seed))];
            for pacer in pacers {
                let in_order: Vec<u64> = (0..500).map(|k| pacer.intended_start(k)).collect();
                prop_assert!(in_order.is_sorted());
                for k in &order {
                    prop_assert_eq!(pacer.intended_start(*k), in_order[*k as usize]);
                }
            }
        }
    }
}
