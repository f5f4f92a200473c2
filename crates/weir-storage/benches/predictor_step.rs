//! Cost of a predictor per operation, plan and observation: `cargo bench -p weir-storage --bench predictor_step`.
//!
//! The device is idle, then busy, then saturated, so that predictors change their plans during the run. `poll` does
//! nothing: its time is the loop itself and two calls. The output is the median of all blocks and the allocations of
//! one. The goals are below 50 ns, and no allocations.
#![expect(clippy::print_stdout, reason = "its output is the result")]

#[path = "../../weir-proto/tests/allocations/counting.rs"]
mod counting;
#[path = "../tests/predictor_allocations/rehearsal.rs"]
mod rehearsal;

use std::{hint::black_box, time::Instant};

use weir_storage::predict::{ALL_DEFAULTS, Predictor, PredictorSpec};

const BLOCKS: usize = 101;

fn main() {
    let device_times_ns = rehearsal::device_times();
    println!("{:<18} {:>12} {:>12}", "predictor", "ns", "allocations");
    for text in ALL_DEFAULTS {
        let spec: PredictorSpec = text.parse().expect("a predictor");
        let mut predictor = spec.build(&rehearsal::COSTS);
        let mut now_ns = 0;
        let mut block = || now_ns = run(black_box(&mut *predictor), now_ns, &device_times_ns);
        let mut blocks_ns: Vec<f64> = (0..BLOCKS).map(|_| nanoseconds(&mut block)).collect();
        blocks_ns.sort_by(f64::total_cmp);
        let step_ns = blocks_ns[BLOCKS / 2] / rehearsal::OPERATIONS as f64;
        let allocations = counting::allocations(&mut block);
        println!("{text:<18} {step_ns:>12.1} {allocations:>12}");
    }
}

fn run(predictor: &mut dyn Predictor, start_ns: u64, device_times_ns: &[u64]) -> u64 {
    device_times_ns
        .iter()
        .fold(start_ns, |now_ns, device_ns| rehearsal::step(predictor, now_ns, black_box(*device_ns)))
}

fn nanoseconds(body: &mut impl FnMut()) -> f64 {
    let start = Instant::now();
    body();
    start.elapsed().as_nanos() as f64
}
