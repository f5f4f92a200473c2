//! Synthetic traces: seeded latencies of processes that are unlike the queueing model, so that they expose a setting
//! that only fits the model. They are generated, not recorded, and results say so.

use weir_record::storage::SyntheticTrace;
use weir_stats::random::Random;

use crate::{
    predict::Direction,
    trace::{BYTES_DEFAULT, TraceOperation},
};

/// Separates the seeds of the traces from those of the waiting thread.
const SEED_SALT: u64 = 0x7472_6163_6573;

/// Operations of a trace: about a second of each device.
const fn operations(trace: SyntheticTrace) -> usize {
    match trace {
        SyntheticTrace::Calm => 60_000,
        SyntheticTrace::TwoSpeed => 40_000,
        SyntheticTrace::Drifting => 15_000,
    }
}

/// The trace of a seed.
pub fn synthetic(trace: SyntheticTrace, seed: u64) -> Vec<TraceOperation> {
    let mut random = Random::seeded(seed ^ SEED_SALT ^ ((trace as u64) << 56));
    let make = match trace {
        SyntheticTrace::Calm => calm,
        SyntheticTrace::TwoSpeed => two_speed,
        SyntheticTrace::Drifting => drifting,
    };
    make(&mut random, operations(trace)).into_iter().map(operation).collect()
}

fn operation(latency_us: f64) -> TraceOperation {
    TraceOperation {
        issued_ns: None,
        latency_ns: (latency_us * 1e3).round() as u64,
        bytes: BYTES_DEFAULT,
        direction: Direction::Read,
        in_flight: None,
    }
}

/// Median 14 µs with a spread of 8 %, and once in 1500 operations a stall of four to twelve times that.
fn calm(random: &mut Random, operations: usize) -> Vec<f64> {
    let one = |_| {
        let usual = 14.0 * (0.08 * random.normal()).exp();
        if random.uniform() < 1.0 / 1500.0 { usual * (4.0 + 8.0 * random.uniform()) } else { usual }
    };
    (0..operations).map(one).collect()
}

/// 15 µs for some 400 operations, then 42 µs for some 150, each with a spread of a quarter and a floor of 9 µs.
fn two_speed(random: &mut Random, operations: usize) -> Vec<f64> {
    let mut slow = false;
    let one = |_| {
        let (median, stays) = if slow { (42.0, 150.0) } else { (15.0, 400.0) };
        if random.uniform() < 1.0 / stays {
            slow = !slow;
        }
        9.0 + (median - 9.0) * (0.25 * random.normal()).exp()
    };
    (0..operations).map(one).collect()
}

/// A mean near 130 µs that drifts by a factor of about one and a half over some thousand operations; single
/// operations are a floor of 12 µs and two exponential parts, like an operation that waits behind others.
fn drifting(random: &mut Random, operations: usize) -> Vec<f64> {
    const KEEPS: f64 = 0.999;
    const WANDERS: f64 = 0.4;
    let step = WANDERS * (1.0_f64 - KEEPS * KEEPS).sqrt();
    let mut level = WANDERS * random.normal();
    let one = |_| {
        level = KEEPS * level + step * random.normal();
        let half = 59.0 * level.exp();
        12.0 + random.exponential(half) + random.exponential(half)
    };
    (0..operations).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_us(trace: &[TraceOperation]) -> f64 {
        trace.iter().map(|it| it.latency_ns as f64 / 1e3).sum::<f64>() / trace.len() as f64
    }

    #[test]
    fn a_seed_gives_the_same_trace_and_another_seed_another() {
        for kind in SyntheticTrace::ALL {
            assert_eq!(synthetic(kind, 101), synthetic(kind, 101));
            assert_ne!(synthetic(kind, 101), synthetic(kind, 102));
            assert_eq!(synthetic(kind, 101).len(), operations(kind));
        }
    }

    #[test]
    fn the_load_grows_from_kind_to_kind() {
        let means = SyntheticTrace::ALL.map(|kind| mean_us(&synthetic(kind, 7)));
        assert!((13.5..15.0).contains(&means[0]), "{means:?}");
        assert!((18.0..28.0).contains(&means[1]), "{means:?}");
        assert!((80.0..220.0).contains(&means[2]), "{means:?}");
    }

    #[test]
    fn scatter_and_memory_are_as_described() {
        let calm = synthetic(SyntheticTrace::Calm, 3);
        let stalls = calm.iter().filter(|it| it.latency_ns > 40_000).count();
        assert!((10..=100).contains(&stalls), "{stalls}");
        let two = synthetic(SyntheticTrace::TwoSpeed, 3);
        let is_slow = |it: &TraceOperation| it.latency_ns > 28_000;
        let changes = two.windows(2).filter(|pair| is_slow(&pair[0]) != is_slow(&pair[1])).count();
        // Independent operations would change some 16 000 times.
        assert!(changes < 4_000, "{changes}");
        let drifting = synthetic(SyntheticTrace::Drifting, 3);
        let mean = mean_us(&drifting);
        let variance = drifting.iter().map(|it| (it.latency_ns as f64 / 1e3 - mean).powi(2)).sum::<f64>()
            / drifting.len() as f64;
        assert!((0.6..1.3).contains(&(variance.sqrt() / mean)), "{}", variance.sqrt() / mean);
    }
}
