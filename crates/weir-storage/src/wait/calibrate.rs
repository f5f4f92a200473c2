//! Measures the costs of sleeping and of interrupts on this machine, in the thread that will wait, before its job
//! starts.
//!
//! Each sleep primitive is tried with several lengths: the lag of a sleep depends on its length, because a CPU that
//! expects to be idle for longer enters a deeper idle state. Then the device is read a little, alternately polled and
//! by interrupt: the difference of the medians is the latency that an interrupt adds. Everything together stays below
//! two seconds on any machine: every part has a limit in time as well as in number.

use std::{fmt, io};

use weir_record::storage::SleepPrimitive;
use weir_stats::random::splitmix;

use crate::{
    engine::{Completed, Engine, Operation, OperationKind},
    predict::Costs,
    wait::time::{RealTime, Time},
};

/// Requested lengths.
const LENGTHS_NS: [u64; 6] = [1_000, 5_000, 10_000, 25_000, 50_000, 100_000];
/// Requests from this length on determine the lag: shorter ones do not let the CPU go idle.
const USUAL_LENGTH_NS_MIN: u64 = 10_000;
/// The length whose CPU is measured.
const COST_LENGTH_NS: u64 = 25_000;
/// Sleeps of each length.
const SLEEPS: usize = 60;
/// Longest time for one primitive.
const SLEEPS_NS_MAX: u64 = 200_000_000;
/// Reads in each turn, and turns of each kind.
const READS: usize = 16;
const TURNS: usize = 16;
/// Longest time for all reads.
const READS_NS_MAX: u64 = 1_000_000_000;

/// The lag of one primitive for one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LagRow {
    /// The primitive.
    pub primitive: SleepPrimitive,
    /// The requested length.
    pub requested_ns: u64,
    /// Median lag.
    pub lag_ns_p50: u64,
    /// 90th percentile of the lag.
    pub lag_ns_p90: u64,
    /// 99th percentile of the lag.
    pub lag_ns_p99: u64,
    /// CPU of one sleep.
    pub cpu_ns: u64,
}

/// The results of a calibration.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// For predictors.
    pub costs: Costs,
    /// The primitive to sleep with: the requested one, or the one with the smallest lag.
    pub primitive: SleepPrimitive,
    /// All measured lags.
    pub lags: Vec<LagRow>,
    /// Median of the device's time, polled; 0 when the file could not be read.
    pub device_ns: u64,
    /// Number of reads of the file.
    pub reads: u64,
    /// Duration of the calibration.
    pub elapsed_ns: u64,
}

impl fmt::Display for Calibration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.primitive {
            SleepPrimitive::Auto | SleepPrimitive::ClockNanosleep => "clock_nanosleep",
            SleepPrimitive::RingTimeout => "a wait of the ring",
            SleepPrimitive::Timerfd => "a timerfd",
        };
        let us = |ns: u64| ns as f64 / 1e3;
        let costs = &self.costs;
        write!(
            formatter,
            "sleeps by {name}, late by {:.1} µs and for {:.1} µs of CPU; an interrupt adds {:.1} µs and {:.1} µs of CPU",
            us(costs.wake_lag_ns),
            us(costs.sleep_cpu_ns),
            us(costs.interrupt_lag_ns),
            us(costs.interrupt_cpu_ns)
        )?;
        match self.reads {
            0 => Ok(()),
            reads => write!(formatter, "; found by {reads} reads before the run, which no figure counts"),
        }
    }
}

/// Where to read: block `i` begins at `first_byte + i * block_bytes`.
#[derive(Clone, Copy, Debug)]
pub struct Blocks {
    /// First byte.
    pub first_byte: u64,
    /// Number of blocks.
    pub count: u64,
    /// Bytes of one.
    pub block_bytes: u32,
}

/// Runs the calibration. `asked` is the primitive of the job; [`SleepPrimitive::Auto`] chooses the best one.
///
/// If the file cannot be read (it is open for writing only), the interrupt's cost is an estimate: waking by it is
/// assumed to cost the same as waking from a sleep.
pub fn calibrate(
    engine: &mut dyn Engine,
    asked: SleepPrimitive,
    blocks: Blocks,
    seed: u64,
) -> io::Result<Calibration> {
    let clock = RealTime::new(SleepPrimitive::ClockNanosleep)?;
    let start_ns = clock.now_ns();
    let mut lags = Vec::new();
    for primitive in candidates(asked) {
        let mut time = RealTime::new(primitive)?;
        match lags_of(&mut time, engine, primitive) {
            Ok(rows) => lags.extend(rows),
            // An engine without a ring is acceptable, unless the ring was requested.
            Err(error) if asked != SleepPrimitive::Auto => return Err(error),
            Err(_) => {}
        }
    }
    let (primitive, lag_ns) = best(&lags)
        .ok_or_else(|| io::Error::other("no way to sleep works here, not even clock_nanosleep"))?;
    let sleep_cpu_ns = lags
        .iter()
        .find(|row| row.primitive == primitive && row.requested_ns == COST_LENGTH_NS)
        .map_or(0, |row| row.cpu_ns);
    let mut reads = 0;
    let found = read(&clock, engine, blocks, seed, &mut reads)?;
    let costs = costs(found.as_ref(), sleep_cpu_ns, lag_ns);
    let device_ns = found.map_or(0, |found| found.polled_ns);
    Ok(Calibration { costs, primitive, lags, device_ns, reads, elapsed_ns: clock.now_ns() - start_ns })
}

fn candidates(asked: SleepPrimitive) -> Vec<SleepPrimitive> {
    match asked {
        SleepPrimitive::Auto => {
            vec![SleepPrimitive::ClockNanosleep, SleepPrimitive::RingTimeout, SleepPrimitive::Timerfd]
        }
        one => vec![one],
    }
}

/// Tries one primitive with every length.
fn lags_of<T: Time>(
    time: &mut T,
    engine: &mut dyn Engine,
    primitive: SleepPrimitive,
) -> io::Result<Vec<LagRow>> {
    let deadline_ns = time.now_ns() + SLEEPS_NS_MAX;
    let mut rows = Vec::with_capacity(LENGTHS_NS.len());
    for requested_ns in LENGTHS_NS {
        let mut lags = Vec::with_capacity(SLEEPS);
        let cpu_before_ns = time.thread_cpu_ns();
        for _ in 0..SLEEPS {
            let before_ns = time.now_ns();
            time.sleep(engine, requested_ns)?;
            let after_ns = time.now_ns();
            lags.push((after_ns - before_ns).saturating_sub(requested_ns));
            // At least one of each length, however slow the machine.
            if after_ns > deadline_ns {
                break;
            }
        }
        let cpu_ns = (time.thread_cpu_ns() - cpu_before_ns) / lags.len() as u64;
        lags.sort_unstable();
        rows.push(LagRow {
            primitive,
            requested_ns,
            lag_ns_p50: at(&lags, 50),
            lag_ns_p90: at(&lags, 90),
            lag_ns_p99: at(&lags, 99),
            cpu_ns,
        });
    }
    Ok(rows)
}

/// A percentile of the sorted values.
fn at(sorted: &[u64], percent: usize) -> u64 {
    let index = sorted.len() * percent / 100;
    sorted.get(index.min(sorted.len().saturating_sub(1))).copied().unwrap_or(0)
}

/// The primitive with the smallest lag, and that lag: the mean of the medians of usual lengths. The first of equal
/// ones.
fn best(lags: &[LagRow]) -> Option<(SleepPrimitive, u64)> {
    let mut found: Option<(SleepPrimitive, u64)> = None;
    for row in lags {
        let usual = || {
            lags.iter()
                .filter(|other| other.primitive == row.primitive && other.requested_ns >= USUAL_LENGTH_NS_MIN)
        };
        let mean_ns = usual().map(|row| row.lag_ns_p50).sum::<u64>() / usual().count().max(1) as u64;
        if found.is_none_or(|(_, smallest_ns)| mean_ns < smallest_ns) {
            found = Some((row.primitive, mean_ns));
        }
    }
    found
}

/// Medians over the reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reads {
    submit_ns: u64,
    polled_ns: u64,
    interrupted_ns: u64,
    /// CPU of one interrupted read, including the submission.
    interrupted_cpu_ns: u64,
}

/// Alternates polled and interrupted reads; `None` if the file cannot be read. Counts all reads that the kernel took.
fn read<T: Time>(
    time: &T,
    engine: &mut dyn Engine,
    blocks: Blocks,
    seed: u64,
    count: &mut u64,
) -> io::Result<Option<Reads>> {
    if !engine.is_asynchronous() || blocks.count == 0 {
        return Ok(None);
    }
    let deadline_ns = time.now_ns() + READS_NS_MAX;
    let mut state = seed;
    let mut completed = Vec::with_capacity(1);
    let (mut submits, mut polled, mut interrupted, mut cpu) = (vec![], vec![], vec![], vec![]);
    for turn in 0..2 * TURNS {
        let polls = turn % 2 == 0;
        let cpu_before_ns = time.thread_cpu_ns();
        for _ in 0..READS {
            let before_ns = time.now_ns();
            if submit_read(engine, blocks, &mut state)? == 0 {
                return Ok(None);
            }
            *count += 1;
            let handed_ns = time.now_ns();
            let done = finish_read(engine, polls, &mut completed)?;
            let noticed_ns = time.now_ns();
            if done.result < 0 {
                return Ok(None);
            }
            submits.push(handed_ns - before_ns);
            (if polls { &mut polled } else { &mut interrupted }).push(noticed_ns - handed_ns);
        }
        if !polls {
            cpu.push((time.thread_cpu_ns() - cpu_before_ns) / READS as u64);
            if time.now_ns() > deadline_ns {
                break;
            }
        }
    }
    let median = |values: &mut Vec<u64>| {
        values.sort_unstable();
        at(values, 50)
    };
    Ok(Some(Reads {
        submit_ns: median(&mut submits),
        polled_ns: median(&mut polled),
        interrupted_ns: median(&mut interrupted),
        interrupted_cpu_ns: median(&mut cpu),
    }))
}

fn submit_read(engine: &mut dyn Engine, blocks: Blocks, state: &mut u64) -> io::Result<usize> {
    let block = splitmix(state) % blocks.count;
    let offset_bytes = blocks.first_byte + block * u64::from(blocks.block_bytes);
    engine.submit(&[Operation {
        slot: 0,
        kind: OperationKind::Read,
        offset_bytes,
        bytes: blocks.block_bytes,
    }])
}

fn finish_read(
    engine: &mut dyn Engine,
    polls: bool,
    completed: &mut Vec<Completed>,
) -> io::Result<Completed> {
    completed.clear();
    loop {
        if polls {
            engine.poll(completed)?
        } else {
            engine.wait(completed)?
        }
        if let Some(done) = completed.first() {
            return Ok(*done);
        }
    }
}

/// The costs that follow from the readings.
fn costs(reads: Option<&Reads>, sleep_cpu_ns: u64, wake_lag_ns: u64) -> Costs {
    match reads {
        Some(reads) => Costs {
            submit_ns: reads.submit_ns,
            sleep_cpu_ns,
            interrupt_cpu_ns: reads.interrupted_cpu_ns.saturating_sub(reads.submit_ns),
            interrupt_lag_ns: reads.interrupted_ns.saturating_sub(reads.polled_ns),
            wake_lag_ns,
        },
        None => Costs {
            submit_ns: 0,
            sleep_cpu_ns,
            interrupt_cpu_ns: sleep_cpu_ns,
            interrupt_lag_ns: wake_lag_ns,
            wake_lag_ns,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait::fake::{FakeEngine, FakeTime, INTERRUPT_NS, LAG_NS, LOOK_NS, SUBMIT_NS, World};

    const BLOCKS: Blocks = Blocks { first_byte: 8192, count: 10, block_bytes: 4096 };

    #[test]
    fn the_lag_is_what_a_sleep_lasts_beyond_its_request() {
        let world = World::default();
        let mut engine = FakeEngine::new(&world, &[1]);
        let rows = lags_of(&mut FakeTime(world), &mut engine, SleepPrimitive::Timerfd).expect("a fake");
        assert_eq!(rows.iter().map(|row| row.requested_ns).collect::<Vec<_>>(), LENGTHS_NS);
        for row in rows {
            assert_eq!((row.lag_ns_p50, row.lag_ns_p99), (LAG_NS, LAG_NS));
            assert_eq!(row.cpu_ns, (row.requested_ns + LAG_NS) / 2);
        }
    }

    #[test]
    fn the_primitive_with_the_smallest_usual_lag_is_chosen() {
        let row = |primitive, requested_ns, lag_ns_p50| LagRow {
            primitive,
            requested_ns,
            lag_ns_p50,
            lag_ns_p90: 0,
            lag_ns_p99: 0,
            cpu_ns: 0,
        };
        let lags = [
            row(SleepPrimitive::ClockNanosleep, 1_000, 5),
            row(SleepPrimitive::ClockNanosleep, 50_000, 24_000),
            row(SleepPrimitive::RingTimeout, 1_000, 14_000),
            row(SleepPrimitive::RingTimeout, 10_000, 15_000),
            row(SleepPrimitive::RingTimeout, 50_000, 25_000),
        ];
        assert_eq!(best(&lags), Some((SleepPrimitive::RingTimeout, 20_000)));
        assert_eq!(best(&lags[..2]), Some((SleepPrimitive::ClockNanosleep, 24_000)));
        assert_eq!(best(&[]), None);
    }

    #[test]
    fn reads_tell_what_an_interrupt_adds() {
        let world = World::default();
        let mut engine = FakeEngine::new(&world, &[41_000]);
        let journal = engine.journal();
        let mut count = 0;
        let reads = read(&FakeTime(world), &mut engine, BLOCKS, 7, &mut count);
        let reads = reads.expect("a fake").expect("it can be read");
        assert_eq!(count, journal.borrow().len() as u64, "every read is counted");
        assert_eq!(reads.submit_ns, SUBMIT_NS);
        assert!((40_000..=40_000 + LOOK_NS).contains(&reads.polled_ns));
        assert_eq!(reads.interrupted_ns, 40_000 + INTERRUPT_NS);
        let costs = costs(Some(&reads), 1_500, LAG_NS);
        assert_eq!(costs.interrupt_lag_ns, INTERRUPT_NS + 40_000 - reads.polled_ns);
        assert_eq!(costs.interrupt_cpu_ns, (41_000 + INTERRUPT_NS) / 2 - SUBMIT_NS);
        for (_, operation) in journal.borrow().iter() {
            assert_eq!(operation.kind, OperationKind::Read);
            assert_eq!(operation.offset_bytes % 4096, 0);
            assert!((8192..8192 + 10 * 4096).contains(&operation.offset_bytes));
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_leaves_an_estimate() {
        let world = World::default();
        let mut engine = FakeEngine::new(&world, &[1_000]).failing(&[(0, -9)]);
        let mut count = 0;
        assert_eq!(read(&FakeTime(world), &mut engine, BLOCKS, 7, &mut count).expect("a fake"), None);
        assert_eq!(count, 1);
        let costs = costs(None, 1_500, 20_000);
        assert_eq!((costs.interrupt_lag_ns, costs.interrupt_cpu_ns), (20_000, 1_500));
    }

    #[test]
    fn a_real_calibration_finds_a_primitive_and_stays_below_its_limit() {
        let mut engine = FakeEngine::without_a_ring().failing(&[(0, -5)]);
        let found = calibrate(&mut engine, SleepPrimitive::Auto, BLOCKS, 1).expect("sleeping works");
        assert_ne!(found.primitive, SleepPrimitive::RingTimeout);
        assert_eq!(found.lags.len(), 2 * LENGTHS_NS.len());
        assert_eq!(found.device_ns, 0);
        let refused = calibrate(&mut engine, SleepPrimitive::RingTimeout, BLOCKS, 1);
        assert!(refused.is_err());
    }
}
