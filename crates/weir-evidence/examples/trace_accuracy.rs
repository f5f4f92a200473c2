//! Compares the times of a trace with a clock around the same calls, and measures the cost of tracing. Run it on an
//! idle machine; it needs what `weir observe --trace` needs. Fails where a time differs from the clock by more than
//! the documented accuracy: 2 % for calls of 50 µs and more, 300 ns for shorter ones.
//!
//! ```sh
//! cargo run --release -p weir-evidence --example trace_accuracy
//! ```

use std::{fs::File, hint::black_box, io::Read, time::Duration};

use rustix::{
    process::getppid,
    thread::{NanosleepRelativeResult, clock_nanosleep_relative},
    time::{ClockId, Timespec, clock_gettime},
};
use weir_evidence::ladder::{Group, cost, tables::Side, tracer::Tracer};

/// Documented accuracy of a call's mean time: relative from this length on, absolute below.
const LONG_CALL_NS: f64 = 50_000.0;
const LONG_CALL_SHARE_MAX: f64 = 0.02;
const SHORT_CALL_NS_MAX: f64 = 300.0;

fn is_as_promised(clock_ns: f64, trace_ns: f64) -> bool {
    let apart_ns = (trace_ns - clock_ns).abs();
    apart_ns <= if clock_ns < LONG_CALL_NS { SHORT_CALL_NS_MAX } else { LONG_CALL_SHARE_MAX * clock_ns }
}

/// Calls of each kind.
const CALLS: u64 = 500;

/// A kind of call that only one workload makes.
struct Workload {
    what: &'static str,
    call: &'static str,
    run: fn(&mut [u8]),
}

fn read_zeros(buffer: &mut [u8]) {
    thread_local! { static ZEROS: File = File::open("/dev/zero").expect("every Linux has it"); }
    ZEROS.with(|mut zeros| zeros.read_exact(buffer)).expect("it never ends");
}

fn sleep(length: Duration) {
    let request = Timespec::try_from(length).expect("a short time");
    let slept = clock_nanosleep_relative(ClockId::Monotonic, &request);
    assert!(matches!(slept, NanosleepRelativeResult::Ok), "no signal comes");
}

const WORKLOADS: [Workload; 3] = [
    Workload { what: "reading 4 MiB of zeros", call: "read", run: read_zeros },
    Workload {
        what: "sleeping 100 µs", call: "clock_nanosleep", run: |_| sleep(Duration::from_micros(100))
    },
    Workload { what: "a call that does nothing", call: "getppid", run: |_| _ = black_box(getppid()) },
];

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[expect(clippy::print_stdout, reason = "an example prints what it found")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let untraced = cost::untraced();
    let tracer = Tracer::start(&[], &Group::ALL)?;
    let tried = cost::tried(&tracer, &untraced)?;
    println!("{:?}, {} of {} calls counted", tried.cost, tried.counted, tried.made);
    tracer.add_members(&[std::process::id()], Side::First)?;
    let mut buffer = vec![0; 4 << 20];
    let mut broken = Vec::new();
    for Workload { what, call, run } in WORKLOADS {
        run(&mut buffer);
        let before = tracer.read()?;
        let mut clock_ns = 0;
        for _ in 0..CALLS {
            let start_ns = now_ns();
            run(&mut buffer);
            clock_ns += now_ns() - start_ns;
        }
        let counts = tracer.read()?.since(&before);
        let found = counts.calls.iter().find(|(number, _)| weir_sys::syscalls::name(**number) == Some(call));
        let (_, traced) = found.ok_or("the call was not counted")?;
        let mean = |ns: u64| ns as f64 / CALLS as f64;
        let (clock, wall) = (mean(clock_ns), mean(traced.wall_ns()));
        println!(
            "{what}: {} calls, clock {clock:.0} ns, trace {wall:.0} ns ({:+.2} %, {:+.0} ns), on a CPU {:.0} ns",
            traced.count,
            100.0 * (wall - clock) / clock,
            wall - clock,
            mean(traced.on_cpu_ns),
        );
        if !is_as_promised(clock, wall) {
            broken.push(what);
        }
    }
    if broken.is_empty() {
        Ok(())
    } else {
        Err(format!("further from the clock: {}", broken.join(", ")).into())
    }
}
