//! Measures the laboratory's ratio again with a program that shares none of its code: `cargo xtask cross-check`.
//!
//! A second generator (`generator`) loads epoll, epoll again and io_uring in slices of random order, in rounds of
//! fresh processes, all at one rate. Server CPU is read while the server sleeps. The estimator is the simplest one:
//! the mean log-ratio of a round's slices is one value, and the values have an interval of Student's t.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks to its user")]

mod generator;
mod interval;
mod server;
mod stored;

use std::{
    num::NonZeroU64,
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::Duration,
};

use generator::{Generator, MESSAGE_BYTES, SliceCount, Starts};
use interval::{Ratio, mean};
use rustix::{
    process::{Resource, Rlimit, getrlimit, setrlimit},
    thread::set_current_timer_slack,
};
use server::Server;
use stored::StoredRatio;
use weir_stats::random::{Random, derived_seed};
use weir_sys::affinity;

use crate::{weir_program::WeirProgram, words::Words};

const USAGE: &str =
    "usage: cargo xtask cross-check [--connections N] [--rate PER_SECOND | --share SHARE] [--rounds N]
       [--slice MS] [--permutations N] [--gaps poisson|equal] [--seed N] [--study DIR] [--weir PROGRAM]";

/// The runs of every round: the baseline twice, then the driver that is compared with it.
const DRIVERS: [&str; 3] = ["epoll", "epoll", "uring"];

/// Every connection carries some messages before a slice, so that no slice starts with cold caches.
const PRIME: Duration = Duration::from_millis(5);

/// After its last answer a server goes to sleep. Its clock is read then, because the clock of a running thread lags.
const UNTIL_ASLEEP: Duration = Duration::from_micros(300);

/// Timer slack of the generator: the kernel's default of 50 us is longer than a gap.
const TIMER_SLACK_NS: u64 = 1_000;

/// Duration of the closed loop that measures a server's capacity.
const PILOT: Duration = Duration::from_millis(400);

/// Share of the slices that must have kept the rate; below it the check reports that.
const KEPT_MIN: f64 = 0.95;

/// Largest ratio of the study's rate to this one without a remark: CPU per message depends on the rate.
const RATES_APART_MAX: f64 = 1.25;

/// The parsed options.
#[derive(Debug, PartialEq)]
struct Asked {
    connections: usize,
    rate: Option<f64>,
    share: Option<f64>,
    rounds: usize,
    slice: Duration,
    permutations: usize,
    is_poisson: bool,
    seed: u64,
    study: Option<PathBuf>,
    weir: Option<PathBuf>,
}

impl Asked {
    fn parse(words: &[&str]) -> Result<Self, String> {
        let mut asked = Self {
            connections: 100,
            rate: None,
            share: None,
            rounds: 12,
            slice: Duration::from_millis(50),
            permutations: 8,
            is_poisson: true,
            seed: 1,
            study: None,
            weir: None,
        };
        let mut words = Words::new(words);
        while let Some(flag) = words.next() {
            match flag {
                "--connections" => asked.connections = words.number_within(flag, (1, 5_000))?,
                "--rate" => asked.rate = Some(words.number_within(flag, (1.0, 1e7))?),
                "--share" => asked.share = Some(words.number_within(flag, (0.01, 0.95))?),
                "--rounds" => asked.rounds = words.number_within(flag, (2, 1_000))?,
                "--slice" => asked.slice = Duration::from_millis(words.number_within(flag, (5, 10_000))?),
                "--permutations" => asked.permutations = words.number_within(flag, (1, 1_000))?,
                "--gaps" => asked.is_poisson = gaps(words.value(flag)?)?,
                "--seed" => asked.seed = words.number(flag)?,
                "--study" => asked.study = Some(words.value(flag)?.into()),
                "--weir" => asked.weir = Some(words.value(flag)?.into()),
                _ => return Err(format!("{flag} is not known")),
            }
        }
        if asked.rate.is_some() && asked.share.is_some() {
            return Err("--rate and --share both say the rate: give one".to_owned());
        }
        Ok(asked)
    }
}

fn gaps(name: &str) -> Result<bool, String> {
    match name {
        "poisson" => Ok(true),
        "equal" => Ok(false),
        _ => Err(format!("--gaps {name}: they are poisson or equal")),
    }
}

/// The result of a completed check.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    /// There was nothing to compare it with, or the intervals overlap.
    Agrees,
    Disagrees,
}

pub fn run(root: &Path, words: &[&str]) -> ExitCode {
    let asked = match Asked::parse(words) {
        Ok(asked) => asked,
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match check(root, &asked) {
        Ok(Answer::Agrees) => ExitCode::SUCCESS,
        Ok(Answer::Disagrees) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cross-check: {error}");
            ExitCode::from(2)
        }
    }
}

fn check(root: &Path, asked: &Asked) -> Result<Answer, String> {
    let weir = WeirProgram::prepare(root, asked.weir.as_deref())?;
    let stored = asked.study.as_deref().map(|study| stored_ratios(&weir, study, asked)).transpose()?;
    let bench = Bench::new(&weir.path, asked)?;
    let rate = match (asked.rate, asked.share, &stored) {
        (Some(rate), ..) => rate,
        (None, None, Some(stored)) => stored[0].rate_per_second,
        (None, share, _) => share.unwrap_or(0.5) * bench.capacity()?,
    };
    println!(
        "{rate:.0} messages a second over {} connections, {} rounds of {} x {} slices of {} ms, seed {}",
        asked.connections,
        asked.rounds,
        asked.permutations,
        DRIVERS.len(),
        asked.slice.as_millis(),
        asked.seed
    );
    let mut measured = Measured::default();
    for round in 0..asked.rounds {
        measured.take(&bench.round(rate, derived_seed(asked.seed, round as u64))?);
    }
    let found = measured.found().ok_or("a slice has no message: the rate is too low for its length")?;
    print!("{}", table(&found));
    let Some(nearest) = stored.as_deref().and_then(|stored| stored::nearest(stored, rate)) else {
        return Ok(Answer::Agrees);
    };
    let (text, answer) = beside(&found.compared, rate, nearest);
    print!("{text}");
    Ok(answer)
}

fn stored_ratios(weir: &WeirProgram, study: &Path, asked: &Asked) -> Result<Vec<StoredRatio>, String> {
    let study = study.to_str().ok_or("--study: the path is no text")?;
    let json = weir.output(&["export", study, "--format", "json"])?;
    stored::ratios(&json, asked.connections as u64, MESSAGE_BYTES as u64)
        .map_err(|error| format!("--study {study}: {error}"))
}

/// The programs and CPUs of the check.
struct Bench<'a> {
    weir: &'a Path,
    asked: &'a Asked,
    server_cpu: usize,
    generator_cpu: usize,
}

/// One slice: the generator's counts, and the server's CPU.
#[derive(Clone, Copy, Debug)]
struct Measurement {
    count: SliceCount,
    server_cpu_ns: u64,
}

impl Measurement {
    fn cpu_per_message_ns(&self) -> Option<f64> {
        let (used, answered) = (self.server_cpu_ns, self.count.answered);
        (used > 0 && answered > 0).then(|| used as f64 / answered as f64)
    }
}

impl<'a> Bench<'a> {
    fn new(weir: &'a Path, asked: &'a Asked) -> Result<Self, String> {
        let cpus = affinity::allowed_cpus().map_err(|error| format!("own CPUs: {error}"))?;
        let [server_cpu, .., generator_cpu] = cpus[..] else {
            return Err("it needs a CPU for the server and another for the generator".to_owned());
        };
        allow_files()?;
        Ok(Self { weir, asked, server_cpu, generator_cpu })
    }

    /// Starts a server and connections to it. The server inherits CPU and timer slack of the calling thread.
    fn start(&self, driver: &str) -> Result<(Server, Generator), String> {
        become_thread_of(self.server_cpu, None)?;
        let server = Server::start(self.weir, driver)?;
        become_thread_of(self.generator_cpu, NonZeroU64::new(TIMER_SLACK_NS))?;
        let generator = Generator::connect(server.address, self.asked.connections)?;
        Ok((server, generator))
    }

    /// Messages a second that the slower driver can process.
    fn capacity(&self) -> Result<f64, String> {
        let mut capacity = f64::INFINITY;
        for driver in &DRIVERS[1..] {
            let (_server, mut generator) = self.start(driver)?;
            generator.closed_loop(PILOT / 4)?;
            let count = generator.closed_loop(PILOT)?;
            capacity = capacity.min(count.answered as f64 / count.length.as_secs_f64());
        }
        Ok(capacity)
    }

    /// The slices of one round: by permutation, in the order of [`DRIVERS`].
    fn round(&self, rate: f64, seed: u64) -> Result<Vec<[Measurement; 3]>, String> {
        let mut random = Random::seeded(seed);
        let mut servers = Vec::with_capacity(DRIVERS.len());
        for driver in DRIVERS {
            servers.push(self.start(driver)?);
        }
        let mut starts = Starts {
            mean_gap_ns: 1e9 / rate,
            is_poisson: self.asked.is_poisson,
            random: Random::seeded(derived_seed(seed, 1)),
        };
        let mut found = Vec::with_capacity(self.asked.permutations);
        for _ in 0..self.asked.permutations {
            let mut slices = [None; DRIVERS.len()];
            for place in random.permutation(DRIVERS.len()) {
                let (server, generator) = &mut servers[place];
                let slice = slice(server, generator, &mut starts, self.asked.slice);
                slices[place] = Some(slice.map_err(|error| format!("{}: {error}", DRIVERS[place]))?);
            }
            let [Some(one), Some(other), Some(compared)] = slices else { continue };
            found.push([one, other, compared]);
        }
        Ok(found)
    }
}

/// Moves this thread to a CPU; without `slack_ns` it gets the kernel's default timer slack.
fn become_thread_of(cpu: usize, slack_ns: Option<NonZeroU64>) -> Result<(), String> {
    affinity::pin_current_thread(&[cpu]).map_err(|error| format!("CPU {cpu}: {error}"))?;
    set_current_timer_slack(slack_ns).map_err(|error| format!("timer slack: {error}"))
}

/// Raises the limit of open files: three times the connections may exceed a shell's default.
fn allow_files() -> Result<(), String> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
        .map_err(|error| format!("the limit of open files: {error}"))
}

fn slice(
    server: &Server,
    generator: &mut Generator,
    starts: &mut Starts,
    length: Duration,
) -> Result<Measurement, String> {
    generator.closed_loop(PRIME)?;
    thread::sleep(UNTIL_ASLEEP);
    let before = server.cpu()?;
    let count = generator.open_loop(starts, length)?;
    thread::sleep(UNTIL_ASLEEP);
    Ok(Measurement { count, server_cpu_ns: server.cpu()?.since(&before) })
}

/// Values of rounds, and counts over all slices.
#[derive(Debug, Default)]
struct Measured {
    compared: Vec<f64>,
    itself: Vec<f64>,
    /// Logarithms of CPU per message, of the baseline and of the compared driver.
    levels: [Vec<f64>; 2],
    slices: usize,
    slices_in_rate: usize,
    has_empty_slice: bool,
}

/// The result of the rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Found {
    compared: Ratio,
    itself: Ratio,
    cpu_per_message_ns: [f64; 2],
    slices: usize,
    share_in_rate: f64,
}

impl Measured {
    /// Adds a round: the mean over its permutations is one value.
    fn take(&mut self, round: &[[Measurement; 3]]) {
        let (mut compared, mut itself) = (Vec::new(), Vec::new());
        for slices in round {
            self.slices += slices.len();
            self.slices_in_rate += slices.iter().filter(|slice| slice.count.kept_its_rate()).count();
            let [Some(one), Some(other), Some(third)] = slices.map(|it| it.cpu_per_message_ns().map(f64::ln))
            else {
                self.has_empty_slice = true;
                return;
            };
            let baseline = f64::midpoint(one, other);
            compared.push(third - baseline);
            itself.push(other - one);
            self.levels[0].push(baseline);
            self.levels[1].push(third);
        }
        self.compared.extend(mean(&compared));
        self.itself.extend(mean(&itself));
    }

    fn found(&self) -> Option<Found> {
        if self.has_empty_slice {
            return None;
        }
        Some(Found {
            compared: Ratio::of(&self.compared)?,
            itself: Ratio::of(&self.itself)?,
            cpu_per_message_ns: [mean(&self.levels[0])?.exp(), mean(&self.levels[1])?.exp()],
            slices: self.slices,
            share_in_rate: self.slices_in_rate as f64 / self.slices as f64,
        })
    }
}

fn table(found: &Found) -> String {
    let line = |name: &str, it: &Ratio, says: &str| {
        format!("{name:12} {:.4} [{:.4}, {:.4}]  {says}\n", it.ratio, it.low, it.high)
    };
    let [epoll, uring] = found.cpu_per_message_ns;
    let mut text = line("uring/epoll", &found.compared, "server CPU per message, 99 % interval");
    text += &line("epoll/epoll", &found.itself, "the same program twice (A/A)");
    text += &format!("{:12} {epoll:.0} ns on epoll, {uring:.0} ns on io_uring\n", "CPU");
    text +=
        &format!("{:12} by {:.1} % of {} slices\n", "rate kept", 100.0 * found.share_in_rate, found.slices);
    if found.share_in_rate < KEPT_MIN {
        text += "             the rate was not kept: the ratio is not one at this rate\n";
    }
    text
}

/// The study's ratio, and whether both intervals overlap.
fn beside(found: &Ratio, rate: f64, stored: &StoredRatio) -> (String, Answer) {
    let StoredRatio { cell_id, rate_per_second, ratio } = stored;
    let (said, answer) = if found.overlaps(ratio) {
        ("overlap", Answer::Agrees)
    } else {
        ("do not overlap", Answer::Disagrees)
    };
    let mut text = format!(
        "{:12} {:.4} [{:.4}, {:.4}]  cell {cell_id} at {rate_per_second:.0} a second\n",
        "study", ratio.ratio, ratio.low, ratio.high
    );
    if (rate_per_second / rate).ln().abs() > RATES_APART_MAX.ln() {
        text += "             no rate of the study is near: the two ratios may differ for that reason\n";
    }
    text += &format!("the intervals {said}\n");
    (text, answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measurement(cost_ns: u64, intended: u64) -> Measurement {
        let count = SliceCount { answered: 100, intended, length: Duration::from_millis(50) };
        Measurement { count, server_cpu_ns: 100 * cost_ns }
    }

    #[test]
    fn a_round_is_the_mean_of_its_log_ratios_and_both_baselines_count_alike() {
        let mut measured = Measured::default();
        let permutation = [measurement(1_000, 100), measurement(1_210, 101), measurement(990, 102)];
        for _ in 0..3 {
            measured.take(&[permutation, permutation]);
        }
        let found = measured.found().expect("three rounds");
        assert!((found.compared.ratio - 0.9).abs() < 1e-12, "{found:?}");
        assert!((found.itself.ratio - 1.21).abs() < 1e-12);
        assert!((found.cpu_per_message_ns[0] - 1_100.0).abs() < 1e-9);
        assert_eq!(found.slices, 18);
        assert!((found.share_in_rate - 2.0 / 3.0).abs() < 1e-12, "one of three missed two starts of 102");
        assert!(table(&found).contains("the rate was not kept"));
    }

    #[test]
    fn a_slice_without_a_message_leaves_no_ratio() {
        let mut measured = Measured::default();
        let mut empty = measurement(1_000, 1);
        empty.count.answered = 0;
        measured.take(&[[measurement(1_000, 100), empty, measurement(990, 100)]]);
        assert_eq!(measured.found(), None);
    }

    #[test]
    fn the_study_agrees_where_the_intervals_overlap() {
        let at = |low: f64, high: f64| Ratio { ratio: f64::midpoint(low, high), low, high };
        let stored =
            |low, high| StoredRatio { cell_id: "c".to_owned(), rate_per_second: 5e4, ratio: at(low, high) };
        let (text, answer) = beside(&at(0.98, 1.02), 5.5e4, &stored(1.01, 1.05));
        assert!(text.ends_with("cell c at 50000 a second\nthe intervals overlap\n"), "{text}");
        assert_eq!(answer, Answer::Agrees);
        let (text, answer) = beside(&at(0.98, 1.00), 1e4, &stored(1.01, 1.05));
        let said = "no rate of the study is near: the two ratios may differ for that reason\nthe intervals do not overlap\n";
        assert!(text.ends_with(said), "{text}");
        assert_eq!(answer, Answer::Disagrees);
    }

    #[test]
    fn words_that_make_no_sense_are_named() {
        let asked =
            Asked::parse(&["--rate", "40000", "--slice", "20", "--gaps", "equal"]).expect("sound words");
        assert_eq!(
            (asked.rate, asked.slice, asked.is_poisson),
            (Some(4e4), Duration::from_millis(20), false)
        );
        for (words, said) in [
            (&["--rate"][..], "--rate needs a value"),
            (&["--rate", "0"], "--rate is from 1 to 10000000"),
            (&["--rate", "5", "--share", "0.5"], "--rate and --share both say the rate: give one"),
            (&["--share", "1"], "--share is from 0.01 to 0.95"),
            (&["--share", "NaN"], "--share is from 0.01 to 0.95"),
            (&["--connections", "0"], "--connections is from 1 to 5000"),
            (&["--rounds", "1"], "--rounds is from 2 to 1000"),
            (&["--slice", "x"], "--slice x: invalid digit found in string"),
            (&["--gaps", "wide"], "--gaps wide: they are poisson or equal"),
            (&["--loud"], "--loud is not known"),
        ] {
            assert_eq!(Asked::parse(words), Err(said.to_owned()));
        }
    }
}
