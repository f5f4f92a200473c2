//! The cost of matching: `cargo bench -p weir-trading --bench matching`.
//!
//! A seeded flow of new orders, immediate orders, cancels and replacements keeps the book at its size; the live order
//! that a cancel or a replacement names is chosen uniformly from all of them. One operation is one message of a
//! client with all its answers built and given to a sink. Rates come from whole runs without a clock inside. The
//! processor time of an operation is printed beside them and shows whether the machine was free for the run;
//! percentiles come from separate runs in which each operation is timed, including the two readings of the clock
//! (their cost is printed). Goals: 5 million operations a second, p99 below 1 µs, 100,000 live orders, no allocation.
#![expect(clippy::print_stdout, reason = "its output is the result")]

#[path = "../../weir-proto/tests/allocations/counting.rs"]
mod counting;
#[path = "../tests/allocations/flow.rs"]
mod flow;

use std::{hint::black_box, time::Instant};

use weir_proto::ouch::Outbound;
use weir_trading::{AccountId, Emit, MatchingVenue, Venue};

use flow::{Flow, Operation, Plan};

const RUNS: usize = 7;
const SEED: u64 = 2_026;

fn main() {
    let operations = match std::env::var("WEIR_BENCH_OPERATIONS") {
        Ok(count) => count.parse().expect("WEIR_BENCH_OPERATIONS is a number"),
        Err(_) => 2_000_000,
    };
    println!(
        "seed {SEED}, {operations} operations a run, {RUNS} runs; two readings of the clock: {} ns",
        clock_ns()
    );
    println!(
        "{:>7} {:>8} {:>13} {:>23} {:>6} {:>7} {:>7} {:>7} {:>8} {:>11} {:>9} {:>16}",
        "symbols",
        "live",
        "operations/s",
        "(lowest, highest)",
        "cpu ns",
        "p50 ns",
        "p99 ns",
        "p99.9",
        "max ns",
        "allocations",
        "trades",
        "hash"
    );
    for (symbols, live_orders) in [(1, 1_000), (1, 100_000), (16, 100_000), (500, 100_000)] {
        row(&Plan { seed: SEED, symbols, accounts: 32, live_orders, operations });
    }
}

fn row(plan: &Plan) {
    let flow = flow::make(plan);
    let (mut rates, mut processor): (Vec<f64>, Vec<f64>) = (0..RUNS).map(|_| rate(plan, &flow)).unzip();
    rates.sort_by(f64::total_cmp);
    processor.sort_by(f64::total_cmp);
    let mut times: Vec<u32> = (0..3).flat_map(|_| times_ns(plan, &flow)).collect();
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    let mut venue = filled(plan, &flow);
    let mut sink = Sink::default();
    let allocations = counting::allocations(|| run(&mut venue, &flow.steady, &mut sink));
    println!(
        "{:>7} {:>8} {:>13.0} {:>23} {:>6.0} {:>7} {:>7} {:>7} {:>8} {:>11} {:>9} {:>16x}",
        plan.symbols,
        venue.live_orders(),
        rates[RUNS / 2],
        format!("({:.0}, {:.0})", rates[0], rates[RUNS - 1]),
        processor[RUNS / 2],
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0),
        allocations,
        sink.trades,
        sink.hash
    );
}

/// Takes the answers, so that none can be optimised away, and sums them up, so that runs can be compared.
#[derive(Default)]
struct Sink {
    hash: u64,
    trades: u64,
}

impl Emit for Sink {
    #[inline]
    fn emit(&mut self, account: AccountId, message: &Outbound) {
        let message = black_box(message);
        let value = match message {
            Outbound::Executed(executed) => {
                self.trades += 1;
                executed.match_number
            }
            Outbound::Accepted(accepted) => accepted.order_reference,
            Outbound::Replaced(replaced) => replaced.order_reference,
            Outbound::Canceled(canceled) => canceled.quantity.into(),
            _ => 1,
        };
        self.hash =
            (self.hash.rotate_left(5) ^ value ^ u64::from(account.0)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

fn filled(plan: &Plan, flow: &Flow) -> MatchingVenue {
    let mut venue = MatchingVenue::new(&flow::config(plan));
    run(&mut venue, &flow.filling, &mut Sink::default());
    venue
}

fn run(venue: &mut MatchingVenue, operations: &[Operation], sink: &mut Sink) {
    for (operation, now_ns) in operations.iter().zip(0..) {
        let (account, message) = operation.message();
        venue.handle(now_ns, account, &message, sink);
    }
}

/// Operations per second, and nanoseconds of processor time for each.
fn rate(plan: &Plan, flow: &Flow) -> (f64, f64) {
    let mut venue = filled(plan, flow);
    let mut sink = Sink::default();
    let (start, before) = (Instant::now(), processor_ns());
    run(&mut venue, &flow.steady, &mut sink);
    let (took, used) = (start.elapsed(), processor_ns() - before);
    black_box(sink.hash);
    let operations = flow.steady.len() as f64;
    (operations / took.as_secs_f64(), used / operations)
}

/// Processor time of this thread; 0 if the kernel does not report it.
fn processor_ns() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(0.0)
}

fn times_ns(plan: &Plan, flow: &Flow) -> Vec<u32> {
    let mut venue = filled(plan, flow);
    let mut sink = Sink::default();
    let mut times = Vec::with_capacity(flow.steady.len());
    for (operation, now_ns) in flow.steady.iter().zip(0..) {
        let start = Instant::now();
        let (account, message) = operation.message();
        venue.handle(now_ns, account, &message, &mut sink);
        times.push(u32::try_from(start.elapsed().as_nanos()).unwrap_or(u32::MAX));
    }
    times
}

/// The median time between two readings of the clock with nothing between them.
fn clock_ns() -> u128 {
    let mut times: Vec<u128> = (0..10_001).map(|_| Instant::now().elapsed().as_nanos()).collect();
    times.sort_unstable();
    times[times.len() / 2]
}
