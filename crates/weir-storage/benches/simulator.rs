//! Events of the simulator a second on one core: `cargo bench -p weir-storage --bench simulator`.
//!
//! Blocks of all cases take turns, so that a change of the processor's speed affects all of them. The output contains
//! medians. `weir_storage::simulate` defines an event; an operation is two. The goal is at least 5 million a second
//! in every case. The last column is a hash of the reports: it is the same on every machine.
#![expect(clippy::print_stdout, reason = "its output is the result")]

use std::{hint::black_box, time::Instant};

use weir_storage::simulate::{Method, Scenario, SimulationReport, simulate};

const BLOCKS: usize = 11;
const JOB_NS: u64 = 500_000_000;
const SEED: u64 = 1;

struct Case {
    name: &'static str,
    scenario: Scenario,
    method: Method,
    events_a_second: Vec<f64>,
    operations: u64,
    hash: u64,
}

fn main() {
    let mut cases = cases();
    for _ in 0..BLOCKS {
        for case in &mut cases {
            let start = Instant::now();
            let report = black_box(simulate(&case.scenario, &case.method, SEED));
            case.events_a_second.push(report.events as f64 / start.elapsed().as_secs_f64());
            (case.operations, case.hash) = summary(&report);
        }
    }
    println!("{:<24} {:>12} {:>16} {:>18}", "case", "operations", "events a second", "hash");
    for case in &mut cases {
        case.events_a_second.sort_by(f64::total_cmp);
        let median = case.events_a_second[BLOCKS / 2];
        println!("{:<24} {:>12} {median:>16.0} {:>18x}", case.name, case.operations, case.hash);
    }
}

fn cases() -> Vec<Case> {
    let method = |text| Method::parse(text, false).expect("a method");
    let paper = Scenario::paper(JOB_NS);
    let only = |index: usize| Scenario { phases: vec![paper.phases[index].clone()], ..paper.clone() };
    let case = |name, scenario, text| Case {
        name,
        scenario,
        method: method(text),
        events_a_second: Vec::with_capacity(BLOCKS),
        operations: 0,
        hash: 0,
    };
    vec![
        case("Job1, poll", only(0), "poll"),
        case("Job1, linux-mean", only(0), "linux-mean"),
        case("Job2, linux-mean", only(1), "linux-mean"),
        case("Job3, linux-mean", only(2), "linux-mean"),
        case("Job1 to 3, interrupt", paper.clone(), "interrupt"),
        case("Job1 to 3, linux-mean", paper.clone(), "linux-mean"),
    ]
}

/// All operations, and a hash of the measurements (FNV-1a over words, which never changes).
fn summary(report: &SimulationReport) -> (u64, u64) {
    let (mut operations, mut hash) = (0, 0xcbf2_9ce4_8422_2325_u64);
    for phase in &report.phases {
        let waiting = &phase.waiting;
        operations += waiting.operations + phase.background_operations;
        let words = [waiting.operations, waiting.misses, waiting.device_ns, waiting.cpu_ns, waiting.total_ns];
        for word in words.into_iter().chain([phase.background_operations]) {
            hash = (hash ^ word).wrapping_mul(0x0100_0000_01b3);
        }
    }
    (operations, hash)
}
