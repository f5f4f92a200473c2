//! A load from several hosts: it starts the generators together, opens their windows together, follows them, and
//! merges what they measured. A generator that is lost loses the run: a sum without its part would be a smaller load
//! that looks like the whole.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use weir_record::load::{
    GeneratorPart, Generators as Measured, LoadReport, SecondRow,
    merge::{MergeError, Whole, merged},
    parts::{LoadPart, PartAnswer, PartOrder, PartPhase, PartSetup, SecondSums, WorkerShare},
};

use super::{
    OwnProgram, Transport,
    generators::{GeneratorError, Generators, Heard},
};

/// Time between two looks at the generators while they connect, and when they should have ended.
const LOOK: Duration = Duration::from_millis(50);

/// The same during the warm-up: a bucket of its rule.
const LOOK_WARM_UP: Duration = Duration::from_millis(100);

/// The same while the window is open: rare, because every look is work on the hosts that measure.
const LOOK_WINDOW: Duration = Duration::from_secs(1);

/// Longest time between two looks for an interruption.
const TICK: Duration = Duration::from_millis(20);

/// How much longer than its own limits a generator may take.
const MARGIN: Duration = Duration::from_secs(30);

/// What is asked of all generators.
#[derive(Clone, Debug)]
pub struct SpreadLoad {
    /// The words behind `weir`, beginning with `load`, without the names of hosts.
    pub words: Vec<String>,
    /// Files that they name, in hexadecimal digits.
    pub files: BTreeMap<String, String>,
    /// Workers of each generator.
    pub workers_each: u32,
    /// Offered rate of all; `None` in a closed loop.
    pub rate_per_second: Option<f64>,
    /// Whether there is a warm-up, and its longest length.
    pub warmup_max: Duration,
    /// Time over which the connections are opened.
    pub ramp_up: Duration,
    /// Length of the window.
    pub duration: Duration,
    /// Longest wait for a connection.
    pub connect_timeout: Duration,
    /// Longest wait for a response.
    pub response_timeout: Duration,
}

/// Progress of all generators together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpreadProgress {
    /// How far the last of them is.
    pub phase: PartPhase,
    /// Time since this phase began, and its longest length.
    pub elapsed: Duration,
    /// See `elapsed`.
    pub planned: Duration,
    /// Messages completed.
    pub messages: u64,
    /// Messages in flight.
    pub in_flight: u64,
    /// Failures.
    pub errors: u64,
    /// Text of the last failure of one of them, with its host.
    pub failure_last: Option<String>,
    /// The last whole second of the window.
    pub second: Option<SecondRow>,
}

/// What a load shows while it runs.
pub trait SpreadObserver {
    /// How far it is.
    fn progress(&mut self, progress: SpreadProgress);

    /// A line that a host said.
    fn said(&mut self, line: &str);
}

/// Runs a load on these hosts, and merges what their generators measured. An interruption ends the window early.
///
/// # Errors
/// If a host or a generator refuses, fails or is lost. Then there is no result, and nothing runs there any more.
pub fn spread_load(
    ways: &[Transport],
    own: &OwnProgram,
    asked: &SpreadLoad,
    observer: &mut dyn SpreadObserver,
    interrupt: &AtomicBool,
) -> Result<LoadReport, GeneratorError> {
    let generators = Generators::connect(ways, own, interrupt)?;
    let count = generators.len();
    let mut run = Run {
        generators,
        asked,
        observer,
        interrupt,
        sums: SecondSums::new(count),
        parts: vec![None; count],
    };
    let outcome = run.conduct();
    for line in run.generators.said() {
        run.observer.said(&line);
    }
    outcome
}

/// A run of all generators.
struct Run<'a> {
    generators: Generators,
    asked: &'a SpreadLoad,
    observer: &'a mut dyn SpreadObserver,
    interrupt: &'a AtomicBool,
    sums: SecondSums,
    parts: Vec<Option<LoadPart>>,
}

/// A phase that is being followed.
struct Followed {
    phase: PartPhase,
    began: Instant,
    planned: Duration,
    told: Instant,
}

impl Followed {
    fn begin(phase: PartPhase, planned: Duration) -> Self {
        let now = Instant::now();
        Self { phase, began: now, planned, told: now }
    }
}

impl Run<'_> {
    fn conduct(&mut self) -> Result<LoadReport, GeneratorError> {
        let asked = self.asked;
        let generators = u32::try_from(self.generators.len()).unwrap_or(u32::MAX);
        let setup = |share| PartSetup { words: asked.words.clone(), files: asked.files.clone(), share };
        let shares = WorkerShare::of_each(generators, asked.workers_each);
        self.generators.begin(shares.map(setup).collect(), self.interrupt)?;
        self.await_connections()?;
        let mut skew = self.generators.order(PartOrder::Start)?.within;
        if !asked.warmup_max.is_zero() {
            self.warm_up()?;
            skew = self.generators.order(PartOrder::Open)?.within;
        }
        self.measure()?;
        self.report(skew)
    }

    /// Waits until every generator has tried all its connections.
    fn await_connections(&mut self) -> Result<(), GeneratorError> {
        let mut followed = Followed::begin(PartPhase::Connecting, self.asked.connect_timeout);
        loop {
            let heard = self.look(&mut followed)?;
            let late = heard.answers.iter().position(|answer| answer.phase < PartPhase::Connected);
            let Some(late) = late else { return Ok(()) };
            self.refuse_after(&followed, self.asked.connect_timeout + MARGIN, late, "connected")?;
            self.wait(LOOK)?;
        }
    }

    /// Waits until all are steady at the same time, or the longest warm-up is over.
    fn warm_up(&mut self) -> Result<(), GeneratorError> {
        let longest = self.asked.ramp_up.saturating_add(self.asked.warmup_max);
        let mut followed = Followed::begin(PartPhase::WarmingUp, longest);
        loop {
            let left = longest.saturating_sub(followed.began.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            self.wait(LOOK_WARM_UP.min(left))?;
            let heard = self.look(&mut followed)?;
            if heard.answers.iter().all(|answer| answer.is_steady) {
                return Ok(());
            }
        }
    }

    /// Follows the window to its end, and takes what was measured.
    fn measure(&mut self) -> Result<(), GeneratorError> {
        let mut followed = Followed::begin(PartPhase::Measuring, self.asked.duration);
        let longest = self.asked.duration.saturating_add(self.asked.response_timeout).saturating_add(MARGIN);
        let mut is_stopped = false;
        loop {
            if self.interrupt.load(Ordering::Relaxed) && !is_stopped {
                is_stopped = true;
                let heard = self.generators.order(PartOrder::Stop)?;
                self.take(heard.answers, &mut followed)?;
            }
            let heard = self.look(&mut followed)?;
            let late = heard.answers.iter().position(|answer| answer.phase < PartPhase::Ending);
            let Some(unended) = self.parts.iter().position(Option::is_none) else { return Ok(()) };
            self.refuse_after(&followed, longest, late.unwrap_or(unended), "ended")?;
            let left = self.asked.duration.saturating_sub(followed.began.elapsed());
            let is_open = late.is_some() && !is_stopped && left > LOOK;
            let pause = if is_open { LOOK_WINDOW.min(left) } else { LOOK };
            let until = Instant::now() + pause;
            while Instant::now() < until && (is_stopped || !self.interrupt.load(Ordering::Relaxed)) {
                thread::sleep(TICK.min(until.saturating_duration_since(Instant::now())));
            }
        }
    }

    /// Asks all how far they are. Shows that about once a second.
    fn look(&mut self, followed: &mut Followed) -> Result<Heard, GeneratorError> {
        let mut heard = self.generators.order(PartOrder::Look)?;
        let answers = std::mem::take(&mut heard.answers);
        heard.answers = self.take(answers, followed)?;
        for line in self.generators.said() {
            self.observer.said(&line);
        }
        Ok(heard)
    }

    /// Takes seconds and results out of answers.
    fn take(
        &mut self,
        mut answers: Vec<PartAnswer>,
        followed: &mut Followed,
    ) -> Result<Vec<PartAnswer>, GeneratorError> {
        for (place, answer) in answers.iter_mut().enumerate() {
            for second in std::mem::take(&mut answer.seconds) {
                self.sums.add(place, &second).map_err(|error| {
                    GeneratorError::Failed(format!("{}: {error}", self.generators.name(place)))
                })?;
            }
            if let Some(part) = answer.ended.take() {
                self.parts[place].get_or_insert(*part);
                // It comes after all its seconds.
                self.sums.end(place);
            }
        }
        if followed.told.elapsed() >= LOOK_WINDOW {
            followed.told = Instant::now();
            self.observer.progress(self.progress(&answers, followed));
        }
        Ok(answers)
    }

    fn progress(&self, answers: &[PartAnswer], followed: &Followed) -> SpreadProgress {
        let sum = |count: fn(&PartAnswer) -> u64| answers.iter().map(count).fold(0, u64::saturating_add);
        let failed = answers.iter().enumerate().find_map(|(place, answer)| {
            Some(format!("{}: {}", self.generators.name(place), answer.failure_last.as_ref()?))
        });
        SpreadProgress {
            phase: followed.phase,
            elapsed: followed.began.elapsed(),
            planned: followed.planned,
            messages: sum(|answer| answer.messages),
            in_flight: sum(|answer| answer.in_flight),
            errors: sum(|answer| answer.errors),
            failure_last: failed,
            second: self.sums.last(),
        }
    }

    /// Refuses a generator that is not `done` after this time although it answers.
    fn refuse_after(
        &self,
        followed: &Followed,
        longest: Duration,
        place: usize,
        done: &str,
    ) -> Result<(), GeneratorError> {
        if followed.began.elapsed() < longest {
            return Ok(());
        }
        let (name, longest) = (self.generators.name(place), longest.as_secs_f64());
        Err(GeneratorError::Failed(format!("{name}: its generator has not {done} within {longest:.0} s")))
    }

    /// Waits, unless the user interrupts.
    fn wait(&self, length: Duration) -> Result<(), GeneratorError> {
        let until = Instant::now() + length;
        loop {
            if self.interrupt.load(Ordering::Relaxed) {
                return Err(GeneratorError::Interrupted);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(TICK.min(left));
        }
    }

    /// The report of all, with the parts by host.
    fn report(&mut self, skew: Duration) -> Result<LoadReport, GeneratorError> {
        let parts: Vec<LoadPart> = self.parts.iter_mut().filter_map(Option::take).collect();
        let own_ns: Vec<u64> = parts.iter().map(|part| part.report.window_ns).collect();
        let window_ns = own_ns.iter().copied().max().unwrap_or(0);
        let sums = std::mem::replace(&mut self.sums, SecondSums::new(0));
        let (seconds, own) = sums.finish(window_ns, &own_ns);
        let has_warmup = !self.asked.warmup_max.is_zero();
        let ramp_seconds =
            if has_warmup { 0 } else { self.asked.ramp_up.as_nanos().div_ceil(1_000_000_000) as usize };
        let whole = Whole { rate_per_second: self.asked.rate_per_second, seconds, ramp_seconds };
        let mut report = merged(&parts, whole).map_err(|error| self.unmergeable(&error))?;
        let part = |(place, (part, seconds)): (usize, (LoadPart, Vec<SecondRow>))| GeneratorPart {
            host: self.generators.name(place).to_owned(),
            report: LoadReport { seconds, ..part.report },
        };
        report.generators = Some(Measured {
            skew_ns: u64::try_from(skew.as_nanos()).unwrap_or(u64::MAX),
            parts: parts.into_iter().zip(own).enumerate().map(part).collect(),
        });
        Ok(report)
    }

    fn unmergeable(&self, error: &MergeError) -> GeneratorError {
        let name = |place: usize| self.generators.name(place);
        GeneratorError::Failed(match error {
            MergeError::Nothing => error.to_string(),
            MergeError::Histogram { generator, name: what, reason } => {
                format!("{}: its {what} cannot be read: {reason}", name(*generator))
            }
            MergeError::Count { generator, count } => {
                format!("{}: it reports {count} of something, which cannot be right", name(*generator))
            }
            MergeError::Contents { one, other, url } => format!(
                "{} and {} got different contents of {url} as the first right response, so that what is right is not \
                 known; give the content with --expect-content, or write --expect-content any",
                name(*one),
                name(*other)
            ),
        })
    }
}
