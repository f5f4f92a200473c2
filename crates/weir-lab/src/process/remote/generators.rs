//! Generators of one load on several hosts, as their coordinator sees them: a connection to an agent on each. A
//! question goes to all of them before any answer is waited for, so that they act together as closely as the
//! connections allow. How far apart they were is bounded by this machine's clock alone: nothing happened before the
//! first question was sent, or after the last answer was heard.

use std::{
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use thiserror::Error;
use weir_record::load::parts::{GENERATORS_MAX, PartAnswer, PartOrder, PartSetup};

use super::{
    OwnProgram, Transport,
    codec::{Answer, Question, Refused},
    link::{COPY_MAX, Link, Patience, Unanswered},
    wait::{Limits, Over, Wait},
};
use crate::launch::LaunchError;

/// How long the hosts of a load are waited for: a user waits in front of a terminal.
const PATIENCE: Patience =
    Patience { shell: Duration::from_secs(9), end_early: END_SILENT, end: Duration::from_secs(10) };

/// How long the way to a host is waited for when the host answers nothing.
const END_SILENT: Duration = Duration::from_secs(1);

/// Longest time of an answer. The agent waits less long for its generator.
const ANSWER_MAX: Duration = Duration::from_secs(9);

/// Bytes of a setup that even a slow line carries in a second.
const SETUP_BYTES_PER_SECOND: usize = 64 << 10;

/// Longest time between two looks for an interruption.
const TICK: Duration = Duration::from_millis(20);

/// Exit codes of a generator with a more specific meaning than "it failed".
const EXIT_USAGE: i32 = 2;
const EXIT_ENVIRONMENT: i32 = 13;

/// Why generators on other hosts have no result. Each text names the host.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GeneratorError {
    /// The user interrupted before anything was measured.
    #[error("interrupted before anything was measured")]
    Interrupted,
    /// The request is wrong.
    #[error("{0}")]
    Usage(String),
    /// A host cannot be reached or was lost, or cannot run its generator.
    #[error("{0}")]
    Environment(String),
    /// A generator failed.
    #[error("{0}")]
    Failed(String),
}

impl From<LaunchError> for GeneratorError {
    fn from(error: LaunchError) -> Self {
        match error {
            LaunchError::Interrupted => Self::Interrupted,
            LaunchError::Usage(reason) => Self::Usage(reason),
            LaunchError::Environment(reason) => Self::Environment(reason),
        }
    }
}

/// Connections to the agents of all hosts. Dropping them ends everything there.
pub(crate) struct Generators {
    links: Vec<Link>,
}

/// Answers of all generators to one order.
pub(crate) struct Heard {
    pub(crate) answers: Vec<PartAnswer>,
    /// The order was carried out by all within this time.
    pub(crate) within: Duration,
}

impl Generators {
    /// Connects to all hosts at the same time.
    ///
    /// # Errors
    /// If one cannot be reached or cannot run the agent: the first that was found.
    pub(crate) fn connect(
        ways: &[Transport],
        own: &OwnProgram,
        interrupt: &AtomicBool,
    ) -> Result<Self, GeneratorError> {
        if ways.is_empty() || ways.len() > GENERATORS_MAX {
            let reason = format!("{} hosts are not possible; use 1 to {GENERATORS_MAX}", ways.len());
            return Err(GeneratorError::Usage(reason));
        }
        let given_up = AtomicBool::new(false);
        let mut links: Vec<Option<Link>> = ways.iter().map(|_| None).collect();
        let mut error = None;
        thread::scope(|scope| {
            let (send, opened) = mpsc::channel();
            for (place, way) in ways.iter().enumerate() {
                let (send, given_up) = (send.clone(), &given_up);
                scope.spawn(move || {
                    // No one waits for it after an error elsewhere.
                    let _ = send.send((place, open(way, own, given_up)));
                });
            }
            drop(send);
            loop {
                match opened.recv_timeout(TICK) {
                    Ok((place, Ok(link))) => links[place] = Some(link),
                    Ok((_, Err(found))) => {
                        // The others are given up, and end as if they were interrupted.
                        error.get_or_insert(found);
                        given_up.store(true, Ordering::Relaxed);
                    }
                    Err(RecvTimeoutError::Timeout) if interrupt.load(Ordering::Relaxed) => {
                        error.get_or_insert(LaunchError::Interrupted);
                        given_up.store(true, Ordering::Relaxed);
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
        });
        let generators = Self { links: links.into_iter().flatten().collect() };
        match error {
            Some(error) => Err(error.into()),
            None => Ok(generators),
        }
    }

    /// The host of a generator in messages.
    pub(crate) fn name(&self, place: usize) -> &str {
        self.links.get(place).map_or("", Link::name)
    }

    /// Their number.
    pub(crate) fn len(&self) -> usize {
        self.links.len()
    }

    /// Lines of the hosts' standard error since the last call, each with its host in front.
    pub(crate) fn said(&mut self) -> Vec<String> {
        self.links.iter_mut().flat_map(Link::said).collect()
    }

    /// Starts the generators, unless the user interrupts.
    pub(crate) fn begin(
        &mut self,
        setups: Vec<PartSetup>,
        interrupt: &AtomicBool,
    ) -> Result<(), GeneratorError> {
        let longest = sending_max(&setups);
        let questions = setups.into_iter().map(|setup| Question::LoadPart(Box::new(setup))).collect();
        for (place, answer) in
            self.ask_all(questions, Limits::new(longest, interrupt))?.into_iter().enumerate()
        {
            if answer != Answer::Nothing {
                return Err(self.misunderstood(place, &answer));
            }
        }
        Ok(())
    }

    /// Gives all of them an order, and waits until all have carried it out.
    pub(crate) fn order(&mut self, order: PartOrder) -> Result<Heard, GeneratorError> {
        // An interruption is an order too, and an answer is short.
        let never = AtomicBool::new(false);
        let limits = Limits::new(ANSWER_MAX, &never);
        let began = Instant::now();
        let answers = self.ask_all(vec![Question::Part(order); self.links.len()], limits)?;
        let within = began.elapsed();
        let mut all = Vec::with_capacity(answers.len());
        for (place, answer) in answers.into_iter().enumerate() {
            let Answer::Part(answer) = answer else { return Err(self.misunderstood(place, &answer)) };
            let ended = match *answer {
                Ok(answer) => {
                    all.push(answer);
                    continue;
                }
                Err(ended) => ended,
            };
            let reason = format!("{}: {}", self.name(place), ended.how);
            return Err(match ended.code {
                Some(EXIT_USAGE) => GeneratorError::Usage(reason),
                Some(EXIT_ENVIRONMENT) => GeneratorError::Environment(reason),
                _ => GeneratorError::Failed(reason),
            });
        }
        Ok(Heard { answers: all, within })
    }

    /// Asks all of them at once, and waits for all answers.
    fn ask_all(
        &mut self,
        questions: Vec<Question>,
        limits: Limits<'_>,
    ) -> Result<Vec<Answer>, GeneratorError> {
        let mut wait = Wait::new(limits, Instant::now());
        for (place, question) in questions.into_iter().enumerate() {
            if let Some(link) = self.links.get_mut(place)
                && let Err(unanswered) = link.send(question, &mut wait)
            {
                return Err(self.unanswered(place, unanswered));
            }
        }
        let mut answers: Vec<Option<Answer>> = self.links.iter().map(|_| None).collect();
        loop {
            for (place, answer) in answers.iter_mut().enumerate().filter(|(_, answer)| answer.is_none()) {
                match self.links[place].come() {
                    None => {}
                    Some(Ok(come)) => *answer = Some(come),
                    Some(Err(unanswered)) => return Err(self.unanswered(place, unanswered)),
                }
            }
            let Some(silent) = answers.iter().position(Option::is_none) else {
                return Ok(answers.into_iter().flatten().collect());
            };
            match wait.over(Instant::now()) {
                None => {}
                Some(Over::Interrupted) => return Err(GeneratorError::Interrupted),
                Some(Over::TooLate) => {
                    let reason = format!("it gave no answer within {} s", wait.longest().as_secs());
                    let unanswered = self.links[silent].lost(reason);
                    return Err(self.unanswered(silent, unanswered));
                }
            }
            let waiting = self.links.iter().zip(&answers).filter(|(_, answer)| answer.is_none());
            Link::wait_any(waiting.map(|(link, _)| link), TICK);
        }
    }

    /// A host without an answer. It is not waited for long any more.
    fn unanswered(&mut self, place: usize, unanswered: Unanswered) -> GeneratorError {
        self.links[place].give_up_after(END_SILENT);
        match unanswered {
            Unanswered::Interrupted => GeneratorError::Interrupted,
            Unanswered::Refused(Refused::Usage(reason)) => {
                GeneratorError::Usage(format!("{}: {reason}", self.name(place)))
            }
            Unanswered::Refused(refused) => refused.of_host(self.name(place)).into(),
            Unanswered::Lost(reason) => GeneratorError::Environment(reason),
        }
    }

    fn misunderstood(&self, place: usize, answer: &Answer) -> GeneratorError {
        GeneratorError::Environment(super::host::another(self.name(place), answer))
    }
}

impl Drop for Generators {
    fn drop(&mut self) {
        // All of them end at the same time, and are waited for afterwards: together, so that several silent ones take
        // no longer than one.
        self.links.iter_mut().for_each(Link::close);
        let until = Instant::now() + PATIENCE.end;
        for mut link in self.links.drain(..) {
            link.end_within(until.saturating_duration_since(Instant::now()));
        }
    }
}

/// Longest time until all setups are sent, one after the other, and answered: their files may be long.
fn sending_max(setups: &[PartSetup]) -> Duration {
    let bytes = |setup: &PartSetup| {
        let files = setup.files.iter().map(|(path, digits)| path.len() + digits.len());
        files.chain(setup.words.iter().map(String::len)).sum::<usize>()
    };
    let seconds = setups.iter().map(bytes).sum::<usize>().div_ceil(SETUP_BYTES_PER_SECOND);
    let longest = Duration::from_secs(u64::try_from(seconds).unwrap_or(u64::MAX));
    ANSWER_MAX.saturating_add(longest).min(COPY_MAX)
}

/// Opens a connection. Two agents of one session would end each other, so each has its own.
fn open(way: &Transport, own: &OwnProgram, given_up: &AtomicBool) -> Result<Link, LaunchError> {
    let own = own.for_another_session().map_err(|error| {
        LaunchError::Environment(format!("{way}: cannot draw the name of a session: {error}"))
    })?;
    Link::open_within(way, &own, PATIENCE, given_up)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_setups_have_more_time_within_a_limit() {
        let setup = |bytes: usize| PartSetup {
            files: [("x".to_owned(), "0".repeat(bytes - 1))].into(),
            ..PartSetup::default()
        };
        let none = PartSetup::default();
        assert_eq!(sending_max(&[none.clone(), none]), ANSWER_MAX);
        let two = [setup(SETUP_BYTES_PER_SECOND), setup(SETUP_BYTES_PER_SECOND)];
        assert_eq!(sending_max(&two), ANSWER_MAX + Duration::from_secs(2));
        assert_eq!(sending_max(&vec![setup(1 << 20); GENERATORS_MAX]), COPY_MAX);
    }
}
