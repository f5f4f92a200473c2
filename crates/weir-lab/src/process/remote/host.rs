//! A host as the laboratory sees it: its connection, which is renewed after a loss, and what is known of it.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use weir_record::{
    doctor::Diagnosis,
    machine::RunningProcess,
    spec::{ArmSpec, StudySpec},
    study::MissingArm,
};

use super::{
    Facts, Transport,
    codec::{self, Answer, Question, Refused, RoundStarted},
    link::{Link, Own, QUESTION_MAX, Unanswered},
};
use crate::{
    launch::LaunchError,
    process::{
        Deadlines,
        hosted::{NoAnswer, RoundAnswer, RoundCommand, RoundServers, Serving, SliceUse},
    },
};

/// Longest time of one step of a round: reading clocks, and waiting for servers to be stopped or resumed.
const STEP_MAX: Duration = Duration::from_secs(30);

/// The same for steps around a slice of evidence: a tracer may be slow to attach to threads and to detach.
const EVIDENCE_MAX: Duration = Duration::from_secs(120);

/// Margin beyond an arm's own time limits.
const SLACK: Duration = Duration::from_secs(10);

/// Number of questions that measure the round trip.
const DELAYS: usize = 21;

/// A study, as sent to its servers' host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StudyAsked {
    /// Without the requests of a mix, which may be secrets: only a generator needs them.
    pub(crate) spec: StudySpec,
    /// The address on which its servers listen.
    pub(crate) address: IpAddr,
}

/// A host's answer about a study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Prepared {
    /// Foreign programs that exist there, each with what identifies its build.
    pub(crate) programs: BTreeMap<String, String>,
    /// Build information of those that are builds of Weir.
    pub(crate) program_builds: BTreeMap<String, String>,
    /// Servers that ran before the study, by arm, or why an arm would be refused.
    pub(crate) looked_for: Vec<(String, Result<RunningProcess, String>)>,
    /// Arms whose program is not there.
    pub(crate) missing: Vec<MissingArm>,
    /// Why nothing of the study can run there.
    pub(crate) refused: Option<Refused>,
}

/// A host that servers run on. One connection at a time.
#[derive(Debug)]
pub struct RemoteHost {
    way: Transport,
    own: Own,
    link: Option<Link>,
    facts: Facts,
    delay: Duration,
    study: Option<StudyAsked>,
    said: Vec<String>,
}

impl RemoteHost {
    /// Connects, and asks which machine it is.
    ///
    /// # Errors
    /// If the connection fails, or the host cannot run the agent.
    pub fn connect(way: Transport, interrupt: &AtomicBool) -> Result<Self, LaunchError> {
        let own = Own::read().map_err(|error| {
            LaunchError::Environment(format!("cannot read the weir program itself: {error}"))
        })?;
        let mut link = Link::open(&way, &own, interrupt)?;
        let facts = facts(&mut link, interrupt).map_err(|unanswered| unanswered.of_host(&way.name))?;
        let delay = delay(&mut link, interrupt).map_err(|unanswered| unanswered.of_host(&way.name))?;
        Ok(Self { way, own, link: Some(link), facts, delay, study: None, said: Vec::new() })
    }

    /// Its name in messages.
    pub fn name(&self) -> &str {
        &self.way.name
    }

    /// The facts found there.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Round trip of an empty question: the median of several.
    pub fn delay(&self) -> Duration {
        self.delay
    }

    /// The transport's process on this machine, while there is one.
    pub fn pid(&self) -> Option<u32> {
        self.link.as_ref().map(Link::pid)
    }

    /// The default address on which servers listen there: the one at which the connection arrived, else its only IPv4
    /// address, else its only address.
    ///
    /// # Errors
    /// If it has none of these: several addresses, or no address.
    pub fn address(&self) -> Result<IpAddr, LaunchError> {
        let all = &self.facts.addresses;
        let of_four: Vec<&IpAddr> = all.iter().filter(|address| address.is_ipv4()).collect();
        match (self.facts.reached_at, of_four.as_slice(), all.as_slice()) {
            (Some(address), ..) => Ok(address),
            (None, [only], _) => Ok(**only),
            (None, _, [only]) => Ok(*only),
            (None, _, []) => Err(LaunchError::Environment(format!(
                "{}: it has no address but that of loopback, where nobody else can load a server",
                self.way
            ))),
            (None, _, several) => Err(LaunchError::Usage(format!(
                "{}: it has several addresses ({}); say with --server-address at which its servers listen",
                self.way,
                codec::shown(several)
            ))),
        }
    }

    /// Lines of its standard error since the last call, each with its name in front.
    pub fn take_said(&mut self) -> Vec<String> {
        let lines = self.link.as_mut().map(Link::said).unwrap_or_default();
        self.said.extend(lines);
        std::mem::take(&mut self.said)
    }

    /// Asks what can be run and measured there.
    ///
    /// # Errors
    /// If it was lost.
    pub fn doctor(&mut self) -> Result<Vec<Diagnosis>, LaunchError> {
        let asked = self.ask(Question::Doctor, QUESTION_MAX, None);
        let found = asked.and_then(|answer| match answer {
            Answer::Doctor(found) => Ok(found),
            other => Err(self.misunderstood(&other)),
        });
        found.map_err(|unanswered| unanswered.of_host(&self.way.name))
    }

    /// Sends it a study.
    pub(crate) fn prepare(&mut self, spec: &StudySpec, address: IpAddr) -> Result<Prepared, LaunchError> {
        let spec = StudySpec { requests: Vec::new(), ..spec.clone() };
        let asked = StudyAsked { spec, address };
        let prepared = self.tell(&asked).map_err(|unanswered| unanswered.of_host(&self.way.name))?;
        self.study = Some(asked);
        Ok(prepared)
    }

    fn tell(&mut self, asked: &StudyAsked) -> Result<Prepared, Unanswered> {
        match self.ask(Question::Study(Box::new(asked.clone())), QUESTION_MAX, None)? {
            Answer::Study(prepared) => Ok(*prepared),
            other => Err(self.misunderstood(&other)),
        }
    }

    /// Connects again if the connection was lost. The machine must still be the same.
    pub(crate) fn reconnect(&mut self, interrupt: &AtomicBool) -> Result<(), LaunchError> {
        if self.link.is_some() {
            return Ok(());
        }
        let mut link = Link::open(&self.way, &self.own, interrupt)?;
        let found = facts(&mut link, interrupt).map_err(|unanswered| unanswered.of_host(&self.way.name))?;
        if found.fingerprint != self.facts.fingerprint {
            return Err(LaunchError::Environment(format!(
                "{}: it is not the machine that it was before the connection was lost, or was changed; go on with \
                 --resume, which says what is different",
                self.way
            )));
        }
        self.link = Some(link);
        if let Some(asked) = self.study.clone() {
            self.tell(&asked).map_err(|unanswered| unanswered.of_host(&self.way.name))?;
        }
        Ok(())
    }

    /// Starts the servers of a round.
    pub(crate) fn start(
        &mut self,
        serving: &Serving,
        interrupt: &AtomicBool,
    ) -> Result<RoundStarted, NoAnswer> {
        let longest = serving.arms.iter().map(start_max).sum::<Duration>() + SLACK;
        match self.ask(Question::Round(Box::new(serving.clone())), longest, Some(interrupt)) {
            Ok(Answer::Round(started)) => Ok(*started),
            Ok(other) => {
                self.link = None;
                Err(self.no_answer(self.misunderstood(&other)))
            }
            Err(unanswered) => Err(self.no_answer(unanswered)),
        }
    }

    /// Asks, and drops a connection that gives no answer.
    fn ask(
        &mut self,
        question: Question,
        longest: Duration,
        interrupt: Option<&AtomicBool>,
    ) -> Result<Answer, Unanswered> {
        let Some(link) = &mut self.link else {
            return Err(Unanswered::Lost(format!("{}: the connection was lost", self.way)));
        };
        let answer = link.ask(question, longest, interrupt);
        if matches!(answer, Err(Unanswered::Interrupted | Unanswered::Lost(_))) {
            self.said.extend(link.said());
            self.link = None;
        }
        answer
    }

    fn no_answer(&self, unanswered: Unanswered) -> NoAnswer {
        match unanswered {
            Unanswered::Lost(reason) => NoAnswer::Lost(reason),
            other => NoAnswer::Stop(other.of_host(&self.way.name)),
        }
    }

    fn misunderstood(&self, answer: &Answer) -> Unanswered {
        Unanswered::Lost(format!("{}: it answered another question: {answer:?}", self.way))
    }
}

/// Longest start of an arm, by its own time limits.
fn start_max(arm: &ArmSpec) -> Duration {
    let deadlines = Deadlines::default();
    let length = |ns: Option<u64>, usual: Duration| ns.map_or(usual, Duration::from_nanos);
    length(arm.start.ready_ns_max, deadlines.ready)
        + 2 * length(arm.start.command_ns_max, deadlines.setup)
        + deadlines.stop
}

fn facts(link: &mut Link, interrupt: &AtomicBool) -> Result<Facts, Unanswered> {
    match link.ask(Question::Facts, QUESTION_MAX, Some(interrupt))? {
        Answer::Facts(facts) => Ok(*facts),
        other => Err(Unanswered::Lost(format!("it answered another question: {other:?}"))),
    }
}

fn delay(link: &mut Link, interrupt: &AtomicBool) -> Result<Duration, Unanswered> {
    let mut delays = Vec::with_capacity(DELAYS);
    for _ in 0..DELAYS {
        let asked = Instant::now();
        link.ask(Question::Nothing, QUESTION_MAX, Some(interrupt))?;
        delays.push(asked.elapsed());
    }
    delays.sort_unstable();
    Ok(delays[DELAYS / 2])
}

/// The servers of a round on another host.
pub(crate) struct ServersThere<'a> {
    pub(crate) host: &'a mut RemoteHost,
    /// Longest time to end them.
    pub(crate) stop_max: Duration,
    pub(crate) interrupt: &'a AtomicBool,
}

impl<'a> ServersThere<'a> {
    pub(crate) fn of(host: &'a mut RemoteHost, serving: &Serving, interrupt: &'a AtomicBool) -> Self {
        let stop_max = serving.arms.iter().map(start_max).sum::<Duration>() + SLACK;
        Self { host, stop_max, interrupt }
    }
}

impl RoundServers for ServersThere<'_> {
    fn ask(&mut self, command: RoundCommand) -> Result<RoundAnswer, NoAnswer> {
        // An interrupted session still ends the servers.
        let is_last = command == RoundCommand::Stop;
        let interrupt = if is_last { None } else { Some(self.interrupt) };
        let longest = match &command {
            RoundCommand::Stop => self.stop_max,
            RoundCommand::BeginSlice { of: SliceUse::Evidence(_), .. } | RoundCommand::EndSlice { .. } => {
                EVIDENCE_MAX
            }
            _ => STEP_MAX,
        };
        match self.host.ask(Question::Step(command), longest, interrupt) {
            Ok(Answer::Step(answer)) => Ok(answer),
            Ok(other) => Err(self.host.no_answer(self.host.misunderstood(&other))),
            Err(unanswered) => Err(self.host.no_answer(unanswered)),
        }
    }

    fn are_elsewhere(&self) -> bool {
        true
    }
}
