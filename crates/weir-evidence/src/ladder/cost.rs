//! Cost of tracing per system call, measured on trivial calls of this process.
//!
//! The same calls verify that the programs count: their number is known.

use std::{hint::black_box, io};

use weir_record::observation::ProbeCost;

use weir_sys::bpf::{Attachment, Program, Refused};

use super::{
    programs,
    tables::Side,
    tracer::{Tracer, TracerError, monotonic_ns},
};
use crate::process::family_of;

/// Programs that are attached to measure the cost of one more.
const COPIES: usize = 4;

/// Repetitions, each of [`CALLS`] calls: an interrupt affects one repetition, not the median.
const REPETITIONS: usize = 9;
const CALLS: u64 = 250;
/// `getppid`, which only reads a number.
const CALL: u32 = weir_sys::syscalls::GETPPID;

/// The measured cost and counts on this process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tried {
    /// Cost per call.
    pub cost: ProbeCost,
    /// Number of calls made.
    pub made: u64,
    /// Number of calls counted.
    pub counted: u64,
}

impl Tried {
    /// The cost per call.
    ///
    /// # Errors
    /// Fails when calls were missed: then no count of the programs can be trusted.
    pub fn believed(self) -> io::Result<ProbeCost> {
        let Self { cost, made, counted } = self;
        if counted >= made {
            return Ok(cost);
        }
        let text = format!("the programs counted {counted} of {made} calls that were made to try them");
        Err(io::Error::other(text))
    }
}

/// Time of a call without programs, for each repetition.
pub fn untraced() -> Vec<f64> {
    (0..REPETITIONS).map(|_| time_of_calls()).collect()
}

/// The same with programs; this process is observed meanwhile, and nothing afterwards.
pub fn tried(tracer: &Tracer, untraced: &[f64]) -> Result<Tried, TracerError> {
    let failed =
        |error: io::Error| TracerError::Refused { what: "a reading".to_owned(), log: String::new(), error };
    let own = std::process::id();
    tracer.add_members(&[own], Side::First)?;
    let before = tracer.read_call(CALL).map_err(failed)?;
    let traced: Vec<f64> = (0..REPETITIONS).map(|_| time_of_calls()).collect();
    let call = tracer.read_call(CALL).map_err(failed)?.combined(&before, u64::saturating_sub);
    // Children that this process started meanwhile are observed as well.
    let members = family_of(own).unwrap_or_else(|_| vec![own]);
    tracer.forget_all(&members).map_err(failed)?;
    let made = CALLS * REPETITIONS as u64;
    let inside_ns = call.wall_ns() as f64 / call.count.max(1) as f64;
    let cost = ProbeCost { run_ns: tracer.run_ns(), ..cost(untraced, &traced, inside_ns) };
    Ok(Tried { cost, made, counted: call.count })
}

/// Time that one more program adds to the end of a call if it only reads the clock once: the median of the
/// repetitions with several of them less the median with one, per program.
pub(super) fn of_run_ns() -> Result<f64, Refused> {
    let load = || Program::load("weir_empty", &programs::empty().linked(|_| 0));
    let attach =
        |program: &Program| program.attach("sys_exit").map_err(|error| Refused { error, log: String::new() });
    let median = || sorted(&untraced())[REPETITIONS / 2];
    let first = load()?;
    let _first = attach(&first)?;
    let of_one = median();
    let others = (0..COPIES).map(|_| load()).collect::<Result<Vec<Program>, Refused>>()?;
    let _others = others.iter().map(attach).collect::<Result<Vec<Attachment>, Refused>>()?;
    Ok(((median() - of_one) / COPIES as f64).max(0.0))
}

/// Cost of one clock reading: the median of the repetitions.
pub fn of_clock_ns() -> f64 {
    let repetition = |_| {
        let start_ns = monotonic_ns();
        for _ in 1..CALLS {
            black_box(monotonic_ns());
        }
        monotonic_ns().saturating_sub(start_ns) as f64 / CALLS as f64
    };
    let costs = sorted(&(0..REPETITIONS).map(repetition).collect::<Vec<f64>>());
    costs[REPETITIONS / 2]
}

/// Medians, and the range of the added time: from the difference of traced lower and untraced upper quartile to the
/// opposite one, so that two disturbed repetitions on either side do not widen it.
fn cost(untraced: &[f64], traced: &[f64], inside_ns: f64) -> ProbeCost {
    let (without, with) = (sorted(untraced), sorted(traced));
    let quartile = |values: &[f64], number: usize| {
        let last = values.len().saturating_sub(1);
        values.get(number * last / 4).copied().unwrap_or_default()
    };
    ProbeCost {
        untraced_ns: quartile(&without, 2),
        traced_ns: quartile(&with, 2),
        inside_ns,
        run_ns: 0.0,
        added_ns: (quartile(&with, 1) - quartile(&without, 3), quartile(&with, 3) - quartile(&without, 1)),
    }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values
}

fn time_of_calls() -> f64 {
    let start_ns = monotonic_ns();
    for _ in 0..CALLS {
        black_box(rustix::process::getppid());
    }
    monotonic_ns().saturating_sub(start_ns) as f64 / CALLS as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_call_that_is_tried_is_the_one_that_is_looked_for() {
        assert_eq!(weir_sys::syscalls::name(CALL), Some("getppid"));
    }

    #[test]
    fn programs_that_missed_calls_are_not_believed() {
        let tried = |counted| Tried { cost: ProbeCost::default(), made: 2_250, counted };
        let error = tried(2_249).believed().expect_err("one was missed");
        assert!(error.to_string().contains("2249 of 2250"), "{error}");
        // Another thread of this process may make the same call.
        for counted in [2_250, 2_251] {
            assert_eq!(tried(counted).believed().expect("none was missed"), ProbeCost::default());
        }
    }

    #[test]
    fn a_repetition_that_was_disturbed_does_not_move_the_cost() {
        let untraced = [100.0, 101.0, 99.0, 98.0, 7_000.0];
        let cost = cost(&untraced, &[300.0, 9_000.0, 301.0, 302.0, 299.0], 40.0);
        assert_eq!((cost.untraced_ns, cost.traced_ns, cost.inside_ns), (100.0, 301.0, 40.0));
        assert_eq!(cost.added_ns, (300.0 - 101.0, 302.0 - 99.0));
        assert_eq!(super::cost(&[], &[], 0.0), ProbeCost::default());
    }
}
