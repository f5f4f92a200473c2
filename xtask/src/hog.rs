//! Bursts of other work beside a study: one thread on each CPU computes in short bursts, so that a noisy machine can
//! be reproduced on a quiet one, with the same noise each time.

use std::{
    env,
    fmt::Display,
    hint,
    process::{Child, Command, ExitCode},
    str::FromStr,
    thread,
    time::{Duration, Instant},
};

use weir_stats::random::{Random, derived_seed};
use weir_sys::child::spawn_bound;

const USAGE: &str = "usage: cargo xtask hog [--seed N] [--share SHARE] [--after S] [--seconds S]";

/// The hog in a process beside this one, until it is dropped.
pub struct Beside(Child);

impl Beside {
    /// Starts one that takes this share of each CPU.
    pub fn start(seed: u64, share: &str) -> Result<Self, String> {
        let own = env::current_exe().map_err(|error| format!("this program: {error}"))?;
        let mut command = Command::new(own);
        command.args(["hog", "--seed", &seed.to_string(), "--share", share, "--seconds", "86400"]);
        spawn_bound(&mut command).map(Self).map_err(|error| format!("cannot start the hog: {error}"))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Shortest and longest burst.
const BURST: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));

/// Longest run, and longest delay before it.
const SECONDS_MAX: u64 = 24 * 3_600;

/// The parsed options.
#[derive(Debug, PartialEq)]
struct Hog {
    seed: u64,
    /// Share of each CPU, above 0 and below 1.
    share: f64,
    /// Delay before it starts: for a machine that changes during a study.
    after: Duration,
    length: Duration,
}

impl Hog {
    fn parse(words: &[&str]) -> Result<Self, String> {
        let (after, length) = (Duration::ZERO, Duration::from_secs(120));
        let mut hog = Self { seed: 1, share: 0.2, after, length };
        for pair in words.chunks(2) {
            let [name, value] = pair else { return Err(format!("{} needs a value", pair[0])) };
            match *name {
                "--seed" => hog.seed = number(name, value)?,
                "--share" => hog.share = number(name, value)?,
                "--after" => hog.after = Duration::from_secs(number(name, value)?),
                "--seconds" => hog.length = Duration::from_secs(number(name, value)?),
                _ => return Err(format!("{name} is not known")),
            }
        }
        if !(hog.share > 0.0 && hog.share < 1.0) {
            return Err("--share is above 0 and below 1, such as 0.2".to_owned());
        }
        if hog.after.as_secs() > SECONDS_MAX {
            return Err(format!("--after is at most {SECONDS_MAX}"));
        }
        if !(1..=SECONDS_MAX).contains(&hog.length.as_secs()) {
            return Err(format!("--seconds is from 1 to {SECONDS_MAX}"));
        }
        Ok(hog)
    }
}

fn number<T: FromStr<Err: Display>>(name: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|error| format!("{name} {value}: {error}"))
}

/// A burst and the pause after it. Bursts are log-uniform; pauses are exponential with the mean that gives the share
/// over the long run.
fn turn(random: &mut Random, share: f64) -> (Duration, Duration) {
    let (shortest, longest) = (BURST.0.as_secs_f64(), BURST.1.as_secs_f64());
    let burst = shortest * (longest / shortest).powf(random.uniform());
    let burst_mean = (longest - shortest) / (longest / shortest).ln();
    let pause = random.exponential(burst_mean * (1.0 - share) / share);
    (Duration::from_secs_f64(burst), Duration::from_secs_f64(pause))
}

#[expect(clippy::print_stderr, reason = "a command line tool talks to its user")]
pub fn run(words: &[&str]) -> ExitCode {
    let hog = match Hog::parse(words) {
        Ok(hog) => hog,
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    thread::sleep(hog.after);
    let end = Instant::now() + hog.length;
    let cpus = weir_sys::affinity::allowed_cpus().unwrap_or_default();
    thread::scope(|scope| {
        for cpu in &cpus {
            let mut random = Random::seeded(derived_seed(hog.seed, *cpu as u64));
            scope.spawn(move || {
                // Without pinning the kernel chooses the CPU, which is noise as well.
                let _ = weir_sys::affinity::pin_current_thread(&[*cpu]);
                while Instant::now() < end {
                    let (burst, pause) = turn(&mut random, hog.share);
                    let busy_until = Instant::now() + burst;
                    while Instant::now() < busy_until {
                        hint::spin_loop();
                    }
                    thread::sleep(pause.min(end.saturating_duration_since(Instant::now())));
                }
            });
        }
    });
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_the_long_run_it_takes_its_share_in_bursts_of_stated_length() {
        let mut random = Random::seeded(3);
        let (mut busy, mut all) = (0.0, 0.0);
        for _ in 0..20_000 {
            let (burst, pause) = turn(&mut random, 0.2);
            assert!((BURST.0..=BURST.1).contains(&burst), "{burst:?}");
            busy += burst.as_secs_f64();
            all += (burst + pause).as_secs_f64();
        }
        assert!((busy / all - 0.2).abs() < 0.01, "{}", busy / all);
    }

    #[test]
    fn words_that_make_no_sense_are_named() {
        let share = Hog::parse(&["--share", "0.5", "--seed", "7"]).map(|hog| (hog.share, hog.seed));
        assert_eq!(share, Ok((0.5, 7)));
        let times = Hog::parse(&["--after", "14", "--seconds", "60"]).map(|hog| (hog.after, hog.length));
        assert_eq!(times, Ok((Duration::from_secs(14), Duration::from_secs(60))));
        for (words, said) in [
            (&["--share", "1"][..], "--share is above 0 and below 1, such as 0.2"),
            (&["--seed"], "--seed needs a value"),
            (&["--loud", "1"], "--loud is not known"),
            (&["--after", "86401"], "--after is at most 86400"),
            (&["--seconds", "0"], "--seconds is from 1 to 86400"),
            (&["--seconds", "86401"], "--seconds is from 1 to 86400"),
            (&["--seconds", "x"], "--seconds x: invalid digit found in string"),
        ] {
            assert_eq!(Hog::parse(words), Err(said.to_owned()));
        }
    }
}
