//! Latencies between named points on an order's path. One thread records, any thread reads; recording is an increment
//! in an array, without a lock and without allocation.

use std::sync::Arc;

use weir_record::{
    latency::{HISTOGRAM_NS_MAX, LatencySummary, empty_histogram},
    orders::HopStats,
};

use crate::counter::Counter;

/// Number of buckets in each power of two, in bits: a bucket is at most 1/128 (0.8 %) wide.
const STEPS_BITS: u32 = 7;
const STEPS: u64 = 1 << STEPS_BITS;
/// Up to an hour: 2^42 ns.
const PLACES: usize = ((42 - STEPS_BITS as usize) + 1) << STEPS_BITS;

/// Two points between which latency is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hop {
    /// From the stamp in the client order id to the receive.
    ClientToGateway,
    /// From the receive to handing the order to the upstream connection.
    GatewayOut,
    /// From one worker's push to the other's take.
    Handoff,
    /// From handing the order to the upstream connection to the receive of its first answer.
    Upstream,
    /// From the receive of an answer to appending it to the client's stream.
    GatewayBack,
}

impl Hop {
    /// All hops, in the order of an order's path.
    pub(super) const ALL: [Hop; 5] =
        [Hop::ClientToGateway, Hop::GatewayOut, Hop::Handoff, Hop::Upstream, Hop::GatewayBack];

    /// Its name in records and metrics.
    pub(super) fn name(self) -> &'static str {
        match self {
            Hop::ClientToGateway => "client_to_gateway",
            Hop::GatewayOut => "gateway_out",
            Hop::Handoff => "handoff",
            Hop::Upstream => "upstream",
            Hop::GatewayBack => "gateway_back",
        }
    }
}

/// The latencies of one worker.
#[derive(Debug)]
pub(super) struct Hops {
    hops: [Times; Hop::ALL.len()],
}

#[derive(Debug)]
struct Times {
    places: Box<[Counter]>,
}

impl Hops {
    pub(super) fn new() -> Self {
        let times = || Times { places: (0..PLACES).map(|_| Counter::default()).collect() };
        Self { hops: std::array::from_fn(|_| times()) }
    }

    /// Records one latency. Call it from one thread only.
    #[inline]
    pub(super) fn record(&self, hop: Hop, nanoseconds: u64) {
        self.record_many(hop, nanoseconds, 1);
    }

    /// Records a latency that many messages had. Call it from one thread only.
    #[inline]
    pub(super) fn record_many(&self, hop: Hop, nanoseconds: u64, count: u64) {
        self.hops[hop as usize].places[place_of(nanoseconds)].add(count);
    }
}

/// Sums the latencies over all workers. Hops without values are omitted.
pub(super) fn summarize(workers: &[Arc<Hops>]) -> Vec<HopStats> {
    let mut all = Vec::new();
    for hop in Hop::ALL {
        let mut histogram = empty_histogram();
        for place in 0..PLACES {
            let count = |hops: &Arc<Hops>| hops.hops[hop as usize].places[place].get();
            let count: u64 = workers.iter().map(count).sum();
            if count > 0 {
                // Never out of bounds: the value is clamped to the histogram's range.
                let _ = histogram.record_n(middle_of(place).clamp(1, HISTOGRAM_NS_MAX), count);
            }
        }
        if !histogram.is_empty() {
            all.push(HopStats {
                hop: hop.name().into(),
                latency: LatencySummary::from_histogram(&histogram),
            });
        }
    }
    all
}

#[inline]
fn place_of(nanoseconds: u64) -> usize {
    if nanoseconds < STEPS {
        return nanoseconds as usize;
    }
    let shift = u64::BITS - 1 - nanoseconds.leading_zeros() - STEPS_BITS;
    let place = (u64::from(shift) << STEPS_BITS) + (nanoseconds >> shift);
    (place as usize).min(PLACES - 1)
}

/// The middle value of a bucket.
fn middle_of(place: usize) -> u64 {
    let place = place as u64;
    if place < 2 * STEPS {
        return place;
    }
    let shift = (place >> STEPS_BITS) - 1;
    let lowest = (place - (shift << STEPS_BITS)) << shift;
    lowest + (1 << shift) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_found_again_within_one_percent() {
        let mut value = 1_u64;
        while value < HISTOGRAM_NS_MAX {
            for time in [value - 1, value, value + 1, value + value / 3] {
                let found = middle_of(place_of(time));
                assert!(found.abs_diff(time) * 128 <= time, "{time} was found as {found}");
            }
            value *= 2;
        }
    }

    #[test]
    fn places_rise_with_times_and_end_in_the_last_one() {
        let times: Vec<u64> = (0..4_000).chain((12..63).map(|power| (1_u64 << power) + 5)).collect();
        assert!(times.windows(2).all(|pair| place_of(pair[0]) <= place_of(pair[1])));
        assert_eq!(place_of(u64::MAX), PLACES - 1);
    }

    #[test]
    fn workers_add_up_and_hops_nobody_took_are_left_out() {
        let workers = [Arc::new(Hops::new()), Arc::new(Hops::new())];
        for time in 1..=1000 {
            workers[0].record(Hop::Upstream, time * 100);
            workers[1].record(Hop::Upstream, time * 100);
        }
        let summary = summarize(&workers);
        assert_eq!(summary.len(), 1);
        assert_eq!((summary[0].hop.as_str(), summary[0].latency.count), ("upstream", 2000));
        let median = summary[0].latency.quantile_ns(0.5).expect("enough samples");
        assert!(median.abs_diff(50_000) < 500, "{median}");
    }
}
