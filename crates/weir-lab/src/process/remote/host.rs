//! A host as the laboratory sees it: its connection, which is renewed after a loss, and what is known of it.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use weir_evidence::{load_link, network};
use weir_record::{
    doctor::Diagnosis,
    machine::{FactDifference, RunningProcess, differences, other_machine},
    spec::{ArmSpec, StudySpec},
    study::MissingArm,
};

use super::{
    Facts, Transport,
    codec::{self, Answer, Question, Refused, RoundStarted},
    fit::{self, OwnAddresses, Reach},
    link::{Link, OwnProgram, QUESTION_MAX, Unanswered},
    wait::Limits,
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

/// Longest time that an interrupted session waits until the servers are stopped. If it is over, the connection is
/// closed, which ends them too.
const STOP_INTERRUPTED_MAX: Duration = Duration::from_secs(5);

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
    own: OwnProgram,
    link: Option<Link>,
    facts: Facts,
    /// This machine's addresses.
    addresses: OwnAddresses,
    delay: Duration,
    study: Option<StudyAsked>,
    /// The interface of this machine that carries the load; `None` if both sides have one network namespace.
    interface: Option<String>,
    said: Vec<String>,
    changes: Vec<FactDifference>,
}

impl RemoteHost {
    /// Connects, and asks which machine it is.
    ///
    /// # Errors
    /// If the connection fails, or the host cannot run the agent.
    pub fn connect(way: Transport, interrupt: &AtomicBool) -> Result<Self, LaunchError> {
        let own = OwnProgram::read().map_err(|error| {
            LaunchError::Environment(format!("cannot read the weir program itself: {error}"))
        })?;
        let mut link = Link::open(&way, &own, interrupt)?;
        let facts = facts(&mut link, interrupt).map_err(|unanswered| unanswered.of_host(&way.name))?;
        let delay = delay(&mut link, interrupt).map_err(|unanswered| unanswered.of_host(&way.name))?;
        let here = network::namespace();
        let is_shared = !here.is_empty() && facts.network == here;
        let addresses = OwnAddresses { interfaces: network::own_addresses(), is_shared };
        Ok(Self {
            way,
            own,
            link: Some(link),
            facts,
            addresses,
            delay,
            study: None,
            interface: None,
            said: Vec::new(),
            changes: Vec::new(),
        })
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

    /// Whether both sides have one network namespace, so that its counters and addresses are ours too.
    pub fn shares_network(&self) -> bool {
        self.addresses.is_shared
    }

    /// Refuses an address at which the load would reach this machine instead of the host.
    ///
    /// # Errors
    /// If it is an address of loopback or of this machine.
    pub fn check_address(&self, address: IpAddr) -> Result<(), LaunchError> {
        if !self.addresses.lead_back(address) {
            return Ok(());
        }
        Err(LaunchError::Usage(format!(
            "--server-address {address} leads back to this machine, and the load would miss the servers on {name}; \
             write an address of {name} that this machine reaches, or leave the flag out",
            name = self.way
        )))
    }

    /// Adds the facts of the interface that has this address to those of the machine. The load of servers that listen
    /// there passes it, unless both sides have one network namespace.
    ///
    /// # Errors
    /// If the host was lost.
    pub fn find_load_link(&mut self, address: IpAddr, interrupt: &AtomicBool) -> Result<(), LaunchError> {
        if self.addresses.is_shared {
            return Ok(());
        }
        let Some(link) = &mut self.link else {
            return Err(LaunchError::Environment(format!("{}: the connection was lost", self.way)));
        };
        let found = link_facts(link, address, interrupt);
        self.facts.fingerprint.load_link = found.map_err(|unanswered| unanswered.of_host(&self.way.name))?;
        Ok(())
    }

    /// Refuses servers that ran before the study at an address that leads back to this machine.
    pub(crate) fn check_running(&self, prepared: &Prepared) -> Result<(), LaunchError> {
        let Some((arm, address)) = leading_back(prepared, &self.addresses) else { return Ok(()) };
        Err(LaunchError::Usage(format!(
            "--arm {arm}: {address} leads back to this machine, and the load would miss the server on {name}; write \
             an address of {name} that this machine reaches, as in --arm {arm}=http://HOST:PORT",
            name = self.way
        )))
    }

    /// The interface of this machine that carries the load of a study, if it passes a network.
    pub(crate) fn interface(&self) -> Option<&str> {
        self.interface.as_deref()
    }

    /// Facts that were different when the connection was renewed, since the last call.
    pub fn take_changes(&mut self) -> Vec<FactDifference> {
        std::mem::take(&mut self.changes)
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
    pub fn doctor(&mut self, interrupt: &AtomicBool) -> Result<Vec<Diagnosis>, LaunchError> {
        let asked = self.ask(Question::Doctor, Limits::new(QUESTION_MAX, interrupt));
        let found = asked.and_then(|answer| match answer {
            Answer::Doctor(found) => Ok(found),
            other => Err(self.misunderstood(&other)),
        });
        found.map_err(|unanswered| unanswered.of_host(&self.way.name))
    }

    /// Sends it a study.
    pub(crate) fn prepare(
        &mut self,
        spec: &StudySpec,
        address: IpAddr,
        interrupt: &AtomicBool,
    ) -> Result<Prepared, LaunchError> {
        self.check_address(address)?;
        let spec = StudySpec { requests: Vec::new(), ..spec.clone() };
        let asked = StudyAsked { spec, address };
        let told = self.tell(&asked, interrupt);
        let prepared = told.map_err(|unanswered| unanswered.of_host(&self.way.name))?;
        self.check_running(&prepared)?;
        self.study = Some(asked);
        self.interface = if self.addresses.is_shared { None } else { load_link::towards(address) };
        Ok(prepared)
    }

    fn tell(&mut self, asked: &StudyAsked, interrupt: &AtomicBool) -> Result<Prepared, Unanswered> {
        let question = Question::Study(Box::new(asked.clone()));
        match self.ask(question, Limits::new(QUESTION_MAX, interrupt))? {
            Answer::Study(prepared) => Ok(*prepared),
            other => Err(self.misunderstood(&other)),
        }
    }

    /// Connects again if the connection was lost, also since the last round. The machine must still be the same, by the
    /// facts that let a study resume.
    pub(crate) fn reconnect(&mut self, interrupt: &AtomicBool) -> Result<(), LaunchError> {
        if self.link.is_some() {
            match self.ask(Question::Nothing, Limits::new(QUESTION_MAX, interrupt)) {
                Ok(_) => return Ok(()),
                // Nothing was lost with it.
                Err(Unanswered::Lost(reason)) => self.said.push(reason),
                Err(other) => return Err(other.of_host(&self.way.name)),
            }
        }
        let mut link = Link::open(&self.way, &self.own, interrupt)?;
        let mut found =
            facts(&mut link, interrupt).map_err(|unanswered| unanswered.of_host(&self.way.name))?;
        if let Some(StudyAsked { address, .. }) = &self.study
            && !self.addresses.is_shared
        {
            let facts = link_facts(&mut link, *address, interrupt);
            found.fingerprint.load_link = facts.map_err(|unanswered| unanswered.of_host(&self.way.name))?;
        }
        let others = other_machine(&self.facts.fingerprint, &found.fingerprint);
        if let Some(FactDifference { name, one, other }) = others.first() {
            return Err(LaunchError::Environment(format!(
                "{}: it is another machine than before the connection was lost ({name}: {one} then, {other} now); let \
                 the name lead to the first one and go on with --resume, or start a new study",
                self.way
            )));
        }
        self.changes.extend(differences(&self.facts.fingerprint, &found.fingerprint));
        self.facts = found;
        self.link = Some(link);
        if let Some(asked) = self.study.clone() {
            let told = self.tell(&asked, interrupt);
            let prepared = told.map_err(|unanswered| unanswered.of_host(&self.way.name))?;
            self.check_running(&prepared)?;
            if let Some(refused) = prepared.refused {
                return Err(refused.of_host(&self.way.name));
            }
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
        let question = Question::Round(Box::new(serving.clone()));
        match self.ask(question, Limits::new(longest, interrupt)) {
            Ok(Answer::Round(started)) => {
                let address =
                    self.study.as_ref().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |study| study.address);
                let fits = fit::of_round(serving, &Reach { address, own: &self.addresses }, &started);
                fits.map_err(|reason| self.wrong(&reason))?;
                Ok(*started)
            }
            Ok(other) => {
                let unanswered = self.misunderstood(&other);
                Err(self.no_answer(unanswered))
            }
            Err(unanswered) => Err(self.no_answer(unanswered)),
        }
    }

    /// Asks, and drops a connection that gives no answer.
    fn ask(&mut self, question: Question, limits: Limits<'_>) -> Result<Answer, Unanswered> {
        let Some(link) = &mut self.link else {
            return Err(Unanswered::Lost(format!("{}: the connection was lost", self.way)));
        };
        let answer = link.ask(question, limits);
        if matches!(answer, Err(Unanswered::Interrupted | Unanswered::Lost(_))) {
            self.hang_up();
        }
        answer
    }

    /// Drops the connection, which ends everything on the other side.
    fn hang_up(&mut self) {
        if let Some(mut link) = self.link.take() {
            self.said.extend(link.said());
        }
    }

    /// An answer that cannot be right: the host is given up for this round.
    fn wrong(&mut self, reason: &str) -> NoAnswer {
        self.hang_up();
        NoAnswer::Lost(format!("{}: its agent gave a wrong answer: {reason}", self.way))
    }

    fn no_answer(&self, unanswered: Unanswered) -> NoAnswer {
        match unanswered {
            Unanswered::Lost(reason) => NoAnswer::Lost(reason),
            other => NoAnswer::Stop(other.of_host(&self.way.name)),
        }
    }

    fn misunderstood(&mut self, answer: &Answer) -> Unanswered {
        self.hang_up();
        Unanswered::Lost(another(&self.way.name, answer))
    }
}

/// The first server that ran before the study at an address that leads from here to this machine, with its arm.
fn leading_back<'p>(prepared: &'p Prepared, own: &OwnAddresses) -> Option<(&'p str, SocketAddr)> {
    prepared.looked_for.iter().find_map(|(arm, found)| {
        let address: SocketAddr = found.as_ref().ok()?.address.parse().ok()?;
        own.lead_back(address.ip()).then_some((arm.as_str(), address))
    })
}

/// Says that an answer is to another question.
pub(super) fn another(host: &str, answer: &Answer) -> String {
    /// Most letters of an answer that are quoted.
    const QUOTED: usize = 80;
    let quoted: String = format!("{answer:?}").chars().take(QUOTED).collect();
    format!("{host}: it answered another question: {quoted}")
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
    match link.ask(Question::Facts, Limits::new(QUESTION_MAX, interrupt))? {
        Answer::Facts(facts) => Ok(*facts),
        other => Err(Unanswered::Lost(another(link.name(), &other))),
    }
}

fn link_facts(
    link: &mut Link,
    address: IpAddr,
    interrupt: &AtomicBool,
) -> Result<BTreeMap<String, String>, Unanswered> {
    match link.ask(Question::LoadLink(address), Limits::new(QUESTION_MAX, interrupt))? {
        Answer::LoadLink(facts) => Ok(facts),
        other => Err(Unanswered::Lost(another(link.name(), &other))),
    }
}

fn delay(link: &mut Link, interrupt: &AtomicBool) -> Result<Duration, Unanswered> {
    let mut delays = Vec::with_capacity(DELAYS);
    for _ in 0..DELAYS {
        let asked = Instant::now();
        link.ask(Question::Nothing, Limits::new(QUESTION_MAX, interrupt))?;
        delays.push(asked.elapsed());
    }
    delays.sort_unstable();
    Ok(delays[DELAYS / 2])
}

/// The servers of a round on another host.
pub(crate) struct ServersThere<'a> {
    pub(crate) host: &'a mut RemoteHost,
    /// Their number.
    arms: usize,
    /// Longest time to end them.
    stop_max: Duration,
    interrupt: &'a AtomicBool,
}

impl<'a> ServersThere<'a> {
    pub(crate) fn of(host: &'a mut RemoteHost, serving: &Serving, interrupt: &'a AtomicBool) -> Self {
        let stop_max = serving.arms.iter().map(start_max).sum::<Duration>() + SLACK;
        Self { host, arms: serving.arms.len(), stop_max, interrupt }
    }

    /// How long a command may take. An interrupted session still ends the servers.
    fn limits(&self, command: &RoundCommand) -> Limits<'a> {
        let longest = match command {
            RoundCommand::Stop => self.stop_max,
            RoundCommand::BeginSlice { of: SliceUse::Evidence(_), .. } | RoundCommand::EndSlice { .. } => {
                EVIDENCE_MAX
            }
            _ => STEP_MAX,
        };
        let is_last = *command == RoundCommand::Stop;
        let interrupted = if is_last { STOP_INTERRUPTED_MAX } else { Duration::ZERO };
        Limits { longest, interrupt: self.interrupt, interrupted }
    }
}

impl RoundServers for ServersThere<'_> {
    fn ask(&mut self, command: RoundCommand) -> Result<RoundAnswer, NoAnswer> {
        let limits = self.limits(&command);
        match self.host.ask(Question::Step(command.clone()), limits) {
            Ok(Answer::Step(answer)) => {
                fit::of_step(&command, &answer, self.arms).map_err(|reason| self.host.wrong(&reason))?;
                Ok(answer)
            }
            Ok(other) => {
                let unanswered = self.host.misunderstood(&other);
                Err(self.host.no_answer(unanswered))
            }
            Err(unanswered) => Err(self.host.no_answer(unanswered)),
        }
    }

    /// Their agent reads it.
    fn read_output(&mut self) {}

    fn host(&self) -> Option<&str> {
        Some(self.host.name())
    }

    fn share_network(&self) -> bool {
        self.host.shares_network()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_ran_before_and_leads_back_is_found_by_its_address() {
        let at =
            |address: &str| Ok(RunningProcess { address: address.to_owned(), ..RunningProcess::default() });
        let looked_for = vec![
            ("gone".to_owned(), Err("no process listens".to_owned())),
            ("far".to_owned(), at("10.9.0.2:80")),
            ("near".to_owned(), at("127.0.0.1:80")),
        ];
        let prepared = Prepared { looked_for, ..Prepared::default() };
        let own = OwnAddresses { interfaces: vec![IpAddr::from([10, 9, 0, 1])], is_shared: false };
        let found = leading_back(&prepared, &own);
        assert_eq!(found, Some(("near", SocketAddr::from(([127, 0, 0, 1], 80)))));
        assert_eq!(leading_back(&prepared, &OwnAddresses { is_shared: true, ..own }), None);
        assert_eq!(leading_back(&Prepared::default(), &OwnAddresses::default()), None);
    }

    #[test]
    fn an_answer_to_another_question_is_quoted_in_part() {
        let answer = Answer::Study(Box::new(Prepared {
            programs: [("p".repeat(4_000), "7 bytes".to_owned())].into(),
            ..Prepared::default()
        }));
        let said = another("b", &answer);
        assert!(said.starts_with("b: it answered another question: Study(") && said.len() < 200, "{said}");
    }
}
