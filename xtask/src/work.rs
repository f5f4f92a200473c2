//! A program that only computes, for a known number of turns: what comparisons of commands are tried on, because a
//! share more turns is a share more CPU time.

use std::{
    hint::black_box,
    path::Path,
    process::{Command, ExitCode, Stdio},
    time::Instant,
};

/// Additions in a turn.
const TURN: u64 = 1_000;

/// Starts and turns of which the length is taken, the shortest of several.
const TRIES: usize = 15;
const TURNS_TRIED: u64 = 20_000;

/// Does so many turns.
pub fn run(words: &[&str]) -> ExitCode {
    let [turns] = words else { return ExitCode::from(2) };
    let Ok(turns) = turns.parse::<u64>() else { return ExitCode::from(2) };
    black_box(work(turns));
    ExitCode::SUCCESS
}

fn work(turns: u64) -> u64 {
    let mut sum = 0_u64;
    for turn in 0..turns {
        for _ in 0..TURN {
            sum = black_box(sum.wrapping_mul(31).wrapping_add(turn));
        }
    }
    sum
}

/// How long this program takes to start and end, and how long a turn is, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    start_ms: f64,
    turn_ms: f64,
}

impl Pace {
    /// Measures it. The shortest of several times has least of anything else in it.
    pub fn measure(program: &Path) -> Result<Self, String> {
        let shortest = |turns: u64| {
            let times = (0..TRIES).map(|_| {
                let mut command = Command::new(program);
                command.args(["work", &turns.to_string()]).stdin(Stdio::null());
                let began = Instant::now();
                let status = command.status().map_err(|error| format!("this program: {error}"))?;
                let ms = began.elapsed().as_secs_f64() * 1e3;
                if status.success() { Ok(ms) } else { Err(format!("work: {status}")) }
            });
            times.collect::<Result<Vec<f64>, String>>().map(|all| all.into_iter().fold(f64::MAX, f64::min))
        };
        let start_ms = shortest(0)?;
        let turn_ms = (shortest(TURNS_TRIED)? - start_ms) / TURNS_TRIED as f64;
        if turn_ms > 0.0 { Ok(Self { start_ms, turn_ms }) } else { Err("work takes no time".to_owned()) }
    }

    /// Turns of a run that takes so long in all.
    pub fn turns(&self, milliseconds: f64) -> u64 {
        ((milliseconds - self.start_ms) / self.turn_ms).round().max(0.0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_more_of_the_whole_is_more_turns_than_that_share() {
        let pace = Pace { start_ms: 1.0, turn_ms: 0.001 };
        assert_eq!((pace.turns(5.0), pace.turns(5.15)), (4_000, 4_150));
        assert_eq!(pace.turns(0.5), 0, "shorter than its start");
    }

    #[test]
    fn words_that_are_no_number_of_turns_are_refused() {
        assert_eq!(run(&["x"]), ExitCode::from(2));
        assert_eq!(run(&[]), ExitCode::from(2));
        assert_eq!(run(&["1"]), ExitCode::SUCCESS);
    }
}
