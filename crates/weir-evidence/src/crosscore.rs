//! The distance of two CPUs right now: the round trip of one cache line between them, and a canary loop on the first.
//!
//! A hypervisor may move a virtual machine's CPUs closer together or further apart. Everything that crosses CPUs then
//! changes its speed by up to a third, while single-threaded work is unaffected. The round trip shows it at once. A
//! single reading means nothing; it is compared with other readings of the same two CPUs.

use std::{
    hint::black_box,
    io,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use weir_record::machine::CrossCoreReading;

/// How long batches are measured without disturbance.
const READING: Duration = Duration::from_millis(10);
/// After this time the reading ends with the batches so far.
const READING_MAX: Duration = Duration::from_millis(80);
/// After this time no further canary loop starts.
const TOTAL_MAX: Duration = Duration::from_millis(95);
/// Round trips timed together; the clock is read once per batch.
const BATCH_ROUND_TRIPS: u64 = 1000;
/// Batches required for a median.
const BATCHES_MIN: usize = 5;
/// Batches after which a reading ends on any machine.
const BATCHES_MAX: usize = 1000;
/// Polls of the line before a waiting thread checks the time and yields its CPU.
const SPINS_BEFORE_YIELD: u64 = 4096;
/// Steps of the canary loop: about a millisecond at 3 GHz.
const CANARY_STEPS: u64 = 500_000;
/// Canary loops, whose median counts.
const CANARY_REPEATS: usize = 5;

/// Why a reading failed.
#[derive(Debug, thiserror::Error)]
pub enum CrossCoreError {
    /// One CPU was named twice; it has no distance to itself.
    #[error("a cross-core reading needs two different CPUs, not CPU {cpu} twice")]
    SameCpu {
        /// The CPU.
        cpu: usize,
    },
    /// The CPU does not exist, is offline or is outside this process's CPU set.
    #[error("a thread cannot be pinned to CPU {cpu}")]
    Pin {
        /// The CPU.
        cpu: usize,
        /// The kernel's error.
        source: io::Error,
    },
    /// A thread could not be started.
    #[error("no thread for the cross-core reading")]
    Thread(#[source] io::Error),
    /// Too few batches finished in time: other work occupies one of the CPUs.
    #[error("CPUs {cpu_a} and {cpu_b} are too busy for a cross-core reading")]
    Starved {
        /// First CPU.
        cpu_a: usize,
        /// Second CPU.
        cpu_b: usize,
    },
}

/// Reads the round trip between two CPUs and the canary on the first: 10 to 20 ms, at most 100 ms and one canary.
///
/// Both CPUs should be idle. The caller's affinity is unchanged: two new threads do the work.
pub fn read_cross_core(cpu_a: usize, cpu_b: usize) -> Result<CrossCoreReading, CrossCoreError> {
    if cpu_a == cpu_b {
        return Err(CrossCoreError::SameCpu { cpu: cpu_a });
    }
    let start = Instant::now();
    let court = Court::new(start + READING_MAX);
    thread::scope(|scope| {
        let answering = thread::Builder::new()
            .spawn_scoped(scope, || {
                let pinned = pin(cpu_b);
                if pinned.is_ok() {
                    court.answer()
                } else {
                    court.end()
                }
                pinned
            })
            .map_err(CrossCoreError::Thread)?;
        let serving = thread::Builder::new().spawn_scoped(scope, || {
            let served = pin(cpu_a).map(|()| court.serve());
            court.end();
            served.map(|batches| (batches, canary_ns(start + TOTAL_MAX)))
        });
        let serving = match serving {
            Ok(thread) => thread,
            Err(error) => {
                court.end();
                return Err(CrossCoreError::Thread(error));
            }
        };
        answering.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let (batches, canary_ns) = serving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        if batches.len() < BATCHES_MIN {
            return Err(CrossCoreError::Starved { cpu_a, cpu_b });
        }
        Ok(CrossCoreReading { cpu_a, cpu_b, round_trip_ns: median(batches), canary_ns })
    })
}

fn pin(cpu: usize) -> Result<(), CrossCoreError> {
    weir_sys::affinity::pin_current_thread(&[cpu]).map_err(|source| CrossCoreError::Pin { cpu, source })
}

/// The line that is passed back and forth: odd numbers go out, the next even number comes back. Aligned to two cache
/// lines, because adjacent lines are prefetched in pairs.
#[repr(align(128))]
struct Line(AtomicU64);

struct Court {
    line: Line,
    ended: AtomicBool,
    deadline: Instant,
}

impl Court {
    fn new(deadline: Instant) -> Self {
        Self { line: Line(AtomicU64::new(0)), ended: AtomicBool::new(false), deadline }
    }

    fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    /// Spins until the line contains `number`; `false` when the reading has ended or its time is up.
    fn wait_for(&self, number: u64) -> bool {
        loop {
            for _ in 0..SPINS_BEFORE_YIELD {
                if self.line.0.load(Ordering::Acquire) == number {
                    return true;
                }
            }
            if self.ended.load(Ordering::Acquire) || Instant::now() >= self.deadline {
                return false;
            }
            // The other side is slow or not running, perhaps because this thread occupies its CPU.
            thread::yield_now();
        }
    }

    fn answer(&self) {
        let mut number = 1;
        while self.wait_for(number) {
            self.line.0.store(number + 1, Ordering::Release);
            number += 2;
        }
    }

    /// Nanoseconds per round trip, by batch; the first batch also waits for the other thread to start and is dropped.
    fn serve(&self) -> Vec<f64> {
        let mut batches = Vec::new();
        let mut number = 1;
        let mut reading_end = None;
        while batches.len() < BATCHES_MAX {
            let start = Instant::now();
            for _ in 0..BATCH_ROUND_TRIPS {
                self.line.0.store(number, Ordering::Release);
                if !self.wait_for(number + 1) {
                    return batches;
                }
                number += 2;
            }
            let now = Instant::now();
            match reading_end {
                None => reading_end = Some(now + READING),
                Some(end) => {
                    batches.push((now - start).as_nanos() as f64 / BATCH_ROUND_TRIPS as f64);
                    if now >= end && batches.len() >= BATCHES_MIN {
                        break;
                    }
                }
            }
        }
        batches
    }
}

/// Median time of a fixed chain of dependent arithmetic on the current CPU.
fn canary_ns(deadline: Instant) -> f64 {
    let mut repeats = Vec::with_capacity(CANARY_REPEATS);
    loop {
        let start = Instant::now();
        let mut state = black_box(0x9e37_79b9_7f4a_7c15_u64);
        for _ in 0..CANARY_STEPS {
            state ^= state >> 33;
            state = state.wrapping_mul(0xff51_afd7_ed55_8ccd);
        }
        black_box(state);
        repeats.push(start.elapsed().as_nanos() as f64);
        if repeats.len() >= CANARY_REPEATS || Instant::now() >= deadline {
            return median(repeats);
        }
    }
}

/// The median; of two middle values the upper one. The list must not be empty.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cpu_twice_is_refused() {
        assert!(matches!(read_cross_core(0, 0), Err(CrossCoreError::SameCpu { cpu: 0 })));
    }

    #[test]
    fn a_cpu_the_machine_lacks_is_refused_without_waiting_for_the_other_side() {
        let first = weir_sys::affinity::allowed_cpus().expect("own affinity")[0];
        for (cpu_a, cpu_b) in [(first, 1023), (1023, first), (first, 1_000_000)] {
            assert!(
                matches!(read_cross_core(cpu_a, cpu_b), Err(CrossCoreError::Pin { cpu, .. }) if cpu != first)
            );
        }
    }

    #[test]
    #[expect(clippy::print_stdout, reason = "says why the test was skipped")]
    fn two_cpus_are_read_within_the_cap() {
        let allowed = weir_sys::affinity::allowed_cpus().expect("own affinity");
        let [cpu_a, cpu_b, ..] = allowed[..] else {
            println!("skipped: one CPU only");
            return;
        };
        match read_cross_core(cpu_a, cpu_b) {
            Ok(reading) => {
                assert_eq!((reading.cpu_a, reading.cpu_b), (cpu_a, cpu_b));
                // From below any hardware to far above a busy test machine.
                assert!((5.0..1e6).contains(&reading.round_trip_ns), "{reading:?}");
                assert!((1e5..1e9).contains(&reading.canary_ns), "{reading:?}");
            }
            Err(error) => assert!(matches!(error, CrossCoreError::Starved { .. }), "{error}"),
        }
        assert_eq!(weir_sys::affinity::allowed_cpus().expect("own affinity"), allowed);
    }

    #[test]
    fn a_side_without_an_opponent_gives_up_at_the_deadline() {
        let court = Court::new(Instant::now() + Duration::from_millis(2));
        assert!(court.serve().is_empty());
        court.answer();
        assert!(Instant::now() >= court.deadline);
    }

    #[test]
    fn the_median_is_the_middle_value() {
        assert_eq!(median(vec![9.0, 1.0, 5.0]), 5.0);
        assert_eq!(median(vec![2.0]), 2.0);
    }
}
