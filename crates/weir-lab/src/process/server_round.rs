//! A round: the servers of all arms are up together, and one generator loads them in turn. [`super::hosted`] defines
//! what is read of the servers and how; they may run on another host.
//!
//! If a server fails, only its own arm loses the round. The same holds for a server that does not answer its priming
//! messages, because every further turn would last as long as the generator waits for an answer. If a host is lost,
//! all arms lose the round.

mod slice_generator;

use std::path::Path;

use weir_evidence::{network, process::family_cpu_ns};
use weir_record::{
    load::LoadReport,
    slices::{SliceCommand, SliceCounts},
    spec::CellSpec,
    trial::{EvidenceSlice, SliceRecord},
    window::ObservedWindow,
};
use weir_stats::random::{Random, derived_seed};

use super::{
    Deadlines,
    files::TrialFiles,
    hosted::{
        ArmStopped, FEWER_GROUPS, Look, NoAnswer, RoundAnswer, RoundCommand, RoundServers, ServersStarted,
        SliceSeen, SliceUse, Started, Stopped, Waited,
    },
    server::explain,
};
use crate::launch::{LaunchError, RoundRequest, Sliced, TrialFailure};

use slice_generator::Generator;

/// Runs a round in the launcher's place.
pub(super) struct Round<'a> {
    pub(super) weir: &'a Path,
    pub(super) request: &'a RoundRequest<'a>,
    pub(super) deadlines: &'a Deadlines,
    /// The files that the generator reads.
    pub(super) files: &'a TrialFiles,
}

/// One arm in a round.
struct Arm {
    server: Option<Started>,
    failure: Option<TrialFailure>,
    slices: Vec<SliceRecord>,
    evidence: Vec<EvidenceSlice>,
}

impl Round<'_> {
    /// Runs the round: one result for each arm, and the final readings of the servers. Servers and generator are gone
    /// when this returns.
    pub(super) fn run(
        &self,
        servers: &mut dyn RoundServers,
        started: ServersStarted,
    ) -> Result<(Vec<Result<Sliced, TrialFailure>>, Stopped), LaunchError> {
        let mut arms: Vec<Arm> = started.arms.into_iter().map(Arm::of).collect();
        let loaded = self.load(servers, &mut arms, started.may_trace);
        let stopped = match servers.ask(RoundCommand::Stop) {
            Ok(RoundAnswer::Stopped(stopped)) => stopped,
            Ok(other) => return Err(misunderstood(&other)),
            Err(NoAnswer::Stop(error)) => return Err(error),
            Err(NoAnswer::Lost(reason)) => {
                arms.iter_mut().for_each(|arm| arm.lose(&reason));
                Stopped::default()
            }
        };
        for (arm, ArmStopped { said, failure }) in arms.iter_mut().zip(&stopped.arms) {
            if let Some(failure) = &mut arm.failure {
                explain(failure, said);
            }
            arm.failure = arm.failure.take().or_else(|| failure.clone());
        }
        let outcome = |(arm, report): (Arm, Option<LoadReport>)| match (arm.failure, report) {
            (Some(failure), _) => Err(failure),
            (None, Some(report)) => {
                Ok(Sliced { report: Box::new(report), slices: arm.slices, evidence: arm.evidence })
            }
            (None, None) => Err(TrialFailure::Load { reason: "it gave no report".to_owned() }),
        };
        Ok((arms.into_iter().zip(loaded?).map(outcome).collect(), stopped))
    }

    /// Loads the arms in turn and returns the report of each arm that was loaded.
    fn load(
        &self,
        servers: &mut dyn RoundServers,
        arms: &mut [Arm],
        may_trace: bool,
    ) -> Result<Vec<Option<LoadReport>>, LaunchError> {
        let there: Vec<usize> = (0..arms.len()).filter(|arm| arms[*arm].failure.is_none()).collect();
        if there.is_empty() {
            return Ok(vec![None; arms.len()]);
        }
        match self.load_those(servers, arms, &there, may_trace) {
            Ok(reports) => Ok(reports),
            Err(broken) => {
                broken.blame(servers, arms, &there)?;
                Ok(vec![None; arms.len()])
            }
        }
    }

    fn load_those(
        &self,
        servers: &mut dyn RoundServers,
        arms: &mut [Arm],
        there: &[usize],
        may_trace: bool,
    ) -> Result<Vec<Option<LoadReport>>, Broken> {
        let (mut generator, unopened) = Generator::start(self, servers, (arms, there))?;
        blame_unopened(servers, arms, there, unopened)?;
        done(servers.ask(RoundCommand::Rest { arms: unfailed(arms) })?)?;
        self.warm_up(servers, &mut generator, arms, there)?;
        done(servers.ask(RoundCommand::BeginTimed)?)?;
        for (permutation, order) in (0_u32..).zip(self.request.orders) {
            let turns =
                order.iter().filter_map(|arm| there.iter().position(|it| it == arm).map(|it| (*arm, it)));
            for (place, turn) in (0_u32..).zip(turns) {
                if arms[turn.0].failure.is_none() {
                    self.slice(servers, &mut generator, arms, (turn, permutation, place))?;
                }
            }
        }
        let loaded = number(there.len());
        done(servers.ask(RoundCommand::EndTimed { arms: unfailed(arms), loaded })?)?;
        self.evidence(servers, &mut generator, arms, (there, may_trace))?;
        let found = generator.finish(self, servers)?;
        let observed = match servers.ask(RoundCommand::Totals)? {
            RoundAnswer::Totals(observed) => observed,
            other => return Err(Broken::Stop(misunderstood(&other))),
        };
        let mut reports: Vec<Option<LoadReport>> = vec![None; arms.len()];
        for (index, report) in there.iter().copied().zip(found) {
            let observed = observed.get(index).cloned().unwrap_or_default();
            reports[index] = Some(arms[index].completed(report, observed));
        }
        Ok(reports)
    }

    /// Loads the arms that have a warm-up, each for its own length, before the timed part.
    fn warm_up(
        &self,
        servers: &mut dyn RoundServers,
        generator: &mut Generator,
        arms: &mut [Arm],
        there: &[usize],
    ) -> Result<(), Broken> {
        for (target, index) in there.iter().copied().enumerate() {
            let length_ns = self.request.arms[index].warmup_ns;
            if length_ns == 0 || arms[index].failure.is_some() {
                continue;
            }
            let turn = Turn { index, target, length_ns, of: SliceUse::WarmUp, arrivals: Arrivals::WarmUp };
            self.turn(servers, generator, &mut arms[index], turn)?;
        }
        Ok(())
    }

    /// Runs one timed slice of an arm, unless it failed before the slice began.
    fn slice(
        &self,
        servers: &mut dyn RoundServers,
        generator: &mut Generator,
        arms: &mut [Arm],
        ((index, target), permutation, place): ((usize, usize), u32, u32),
    ) -> Result<(), Broken> {
        let length_ns = self.request.alternation.slice_ns;
        let arrivals = Arrivals::Timed(permutation);
        let turn = Turn { index, target, length_ns, of: SliceUse::Timed, arrivals };
        if let Some(ran) = self.turn(servers, generator, &mut arms[index], turn)? {
            arms[index].slices.push(SliceRecord { permutation, place, ..ran.record() });
        }
        Ok(())
    }

    /// After the timed part: observes every arm once more by its clocks and free counters, and once by more observers
    /// if they are available. The baseline's second server is skipped, because it repeats the first.
    fn evidence(
        &self,
        servers: &mut dyn RoundServers,
        generator: &mut Generator,
        arms: &mut [Arm],
        (there, may_trace): (&[usize], bool),
    ) -> Result<(), Broken> {
        let Some(length_ns) = self.request.evidence_slice_ns else { return Ok(()) };
        let pairs = self.request.evidence_pairs;
        let turns = (0..pairs).flat_map(|pair| there.iter().copied().enumerate().map(move |it| (pair, it)));
        for (pair, (target, index)) in turns {
            let name = &self.request.arms[index].name;
            let is_again = self.request.arms[..index].iter().any(|it| it.name == *name);
            // Observers follow a process; a control group cannot be followed.
            let is_process = arms[index].server.as_ref().is_some_and(|server| server.is_process);
            if arms[index].failure.is_some() || is_again || !is_process {
                continue;
            }
            let mut looks = self.looks((target, pair), may_trace);
            // Last, because its after-effects are unknown.
            let is_under_strace = self.request.evidence_strace && pair + 1 == pairs;
            looks.extend(is_under_strace.then_some(Look::Strace));
            for (place, look) in (0_u32..).zip(looks) {
                let (of, arrivals) = (SliceUse::Evidence(look), Arrivals::Evidence(pair));
                let turn = Turn { index, target, length_ns, of, arrivals };
                let arm = &mut arms[index];
                if let Some(ran) = self.turn(servers, generator, arm, turn)? {
                    let slice = SliceRecord { permutation: pair, place, ..ran.record() };
                    let (rung, readings) = ran.seen.evidence.unwrap_or_default();
                    arm.evidence.push(EvidenceSlice { rung, slice, readings });
                }
                if arm.failure.is_some() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// A pair of an arm's slices of evidence and the further looks beside it, in random order, so that none always
    /// comes first.
    fn looks(&self, (target, pair): (usize, u32), may_trace: bool) -> Vec<Look> {
        let mut looks = vec![Look::Clocks];
        looks.extend(self.request.evidence_by_group.then_some(Look::Readings));
        if may_trace {
            looks.push(Look::Programs);
            let fewer = (0..number(FEWER_GROUPS.len())).filter(|_| self.request.evidence_by_group);
            looks.extend(fewer.map(Look::FewerPrograms));
        }
        let seed = derived_seed(self.request.seed, (u64::from(pair) << 32 | u64::from(number(target))) + 2);
        Random::seeded(seed).shuffle(&mut looks);
        looks
    }

    /// Runs an arm's turn: some priming messages, after which its connections are open and warm, and a slice. `None`
    /// if most priming messages were not answered, which is the arm's failure.
    fn turn(
        &self,
        servers: &mut dyn RoundServers,
        generator: &mut Generator,
        arm: &mut Arm,
        turn: Turn,
    ) -> Result<Option<Ran>, Broken> {
        let (index, target) = (number(turn.index), number(turn.target));
        let waited = match servers.ask(RoundCommand::Enter { arm: index })? {
            RoundAnswer::Entered(waited) => waited,
            other => return Err(Broken::Stop(misunderstood(&other))),
        };
        let messages_each = self.request.alternation.prime_messages;
        let primed = generator.done(self, servers, SliceCommand::Prime { target, messages_each })?;
        if let Some(reason) = unanswered(self.request.cell, messages_each, &primed) {
            // It may be about to end, and then its own message explains more.
            let ended = ended(servers, index, true)?;
            arm.failure = Some(ended.unwrap_or(TrialFailure::Server { reason }));
            return Ok(None);
        }
        done(servers.ask(RoundCommand::BeginSlice { arm: index, of: turn.of })?)?;
        let own = OwnEdge::read(generator, servers);
        let arrivals_seed = turn.arrivals.seed(self.request.seed);
        let (length_ns, is_timed) = (turn.length_ns, turn.of == SliceUse::Timed);
        let counts = generator.done(
            self,
            servers,
            SliceCommand::Run { target, length_ns, is_timed, arrivals_seed },
        )?;
        let own_segments = OwnEdge::segments_sent(servers).saturating_sub(own.segments_sent);
        let seen = match servers.ask(RoundCommand::EndSlice { arm: index })? {
            RoundAnswer::SliceEnded(seen) => *seen,
            other => return Err(Broken::Stop(misunderstood(&other))),
        };
        let generator_cpu_ns = OwnEdge::generator_cpu_ns(generator, servers).saturating_sub(own.cpu_ns);
        arm.failure = seen.failure.clone();
        Ok(Some(Ran { waited, reopened: primed.reopened, counts, seen, own_segments, generator_cpu_ns }))
    }
}

/// A turn of an arm.
#[derive(Clone, Copy)]
struct Turn {
    /// Its index among the arms; the other is its index among the arms that are loaded.
    index: usize,
    target: usize,
    length_ns: u64,
    of: SliceUse,
    arrivals: Arrivals,
}

/// Slices that an open loop loads with the same arrivals: those of one permutation, which are compared with each
/// other.
#[derive(Clone, Copy)]
enum Arrivals {
    WarmUp,
    Timed(u32),
    Evidence(u32),
}

impl Arrivals {
    fn seed(self, round: u64) -> u64 {
        let slice = match self {
            Self::WarmUp => 0,
            Self::Timed(permutation) => 1 << 32 | u64::from(permutation),
            Self::Evidence(pair) => 2 << 32 | u64::from(pair),
        };
        derived_seed(round, slice)
    }
}

/// The generator's counters at one edge of a slice. If the servers run on this machine, its CPU time counts as the
/// machine's. If they have its network namespace, its segments are in their counter; otherwise they are added to it.
struct OwnEdge {
    cpu_ns: u64,
    segments_sent: u64,
}

impl OwnEdge {
    fn read(generator: &Generator, servers: &dyn RoundServers) -> Self {
        Self {
            cpu_ns: Self::generator_cpu_ns(generator, servers),
            segments_sent: Self::segments_sent(servers),
        }
    }

    fn generator_cpu_ns(generator: &Generator, servers: &dyn RoundServers) -> u64 {
        if servers.host().is_some() { 0 } else { family_cpu_ns(generator.group.pid()) }
    }

    fn segments_sent(servers: &dyn RoundServers) -> u64 {
        if servers.share_network() { 0 } else { network::segments_sent() }
    }
}

/// A slice as seen by generator and servers.
struct Ran {
    waited: Waited,
    /// Connections that were reopened.
    reopened: u32,
    counts: SliceCounts,
    seen: SliceSeen,
    own_segments: u64,
    generator_cpu_ns: u64,
}

impl Ran {
    fn record(&self) -> SliceRecord {
        let Self { waited, reopened, counts, seen, own_segments, generator_cpu_ns } = self;
        SliceRecord {
            permutation: 0,
            place: 0,
            length_ns: counts.length_ns,
            messages: counts.messages,
            server_cpu_ns: seen.server_cpu_ns,
            machine_cpu_ns: seen.server_cpu_ns + generator_cpu_ns + seen.softirq_cpu_ns,
            generator_cpu_ns: counts.generator_cpu_ns,
            waiting_cpu_ns: waited.cpu_ns,
            waiting_ns: waited.length_ns,
            stopped: waited.stopped,
            errors: counts.failures.errors(),
            missed_starts: counts.missed_starts,
            reopened: *reopened,
            segments: seen.segments_sent + own_segments,
        }
    }
}

/// The arms that have not failed.
fn unfailed(arms: &[Arm]) -> Vec<u32> {
    arms.iter().enumerate().filter(|(_, arm)| arm.failure.is_none()).map(|(place, _)| number(place)).collect()
}

/// A server to which the generator could not open all connections.
struct Unopened {
    /// Its index among the arms.
    index: usize,
    /// Whether it accepted no connection at all.
    is_silent: bool,
    /// What the generator reports.
    reason: String,
}

/// Blames servers that did not accept all connections, after a question to each: a host that was lost accepts none
/// either, and does not answer. If no server of another host accepts a connection and all of them run, the way to them
/// is lost.
fn blame_unopened(
    servers: &mut dyn RoundServers,
    arms: &mut [Arm],
    there: &[usize],
    unopened: Vec<Unopened>,
) -> Result<(), Broken> {
    let mut found = Vec::with_capacity(unopened.len());
    for Unopened { index, is_silent, reason } in unopened {
        found.push((index, is_silent, ended(servers, number(index), true)?, reason));
    }
    let unreached = found.iter().filter(|(_, is_silent, ended, _)| *is_silent && ended.is_none()).count();
    if let (Some(host), [(.., reason), ..]) = (servers.host(), found.as_slice())
        && unreached == there.len()
    {
        return Err(Broken::Lost(format!(
            "{host}: its servers run and none can be reached from here: {reason}"
        )));
    }
    for (index, _, ended, reason) in found {
        arms[index].failure = Some(ended.unwrap_or(TrialFailure::Server { reason }));
    }
    Ok(())
}

/// Why an arm has ended, if it has.
fn ended(servers: &mut dyn RoundServers, arm: u32, waits: bool) -> Result<Option<TrialFailure>, Broken> {
    match servers.ask(RoundCommand::HasEnded { arm, waits })? {
        RoundAnswer::HasEnded(failure) => Ok(failure),
        other => Err(Broken::Stop(misunderstood(&other))),
    }
}

fn done(answer: RoundAnswer) -> Result<(), Broken> {
    match answer {
        RoundAnswer::Done => Ok(()),
        other => Err(Broken::Stop(misunderstood(&other))),
    }
}

/// An answer to another command, which cannot happen between two sides of one build.
fn misunderstood(answer: &RoundAnswer) -> LaunchError {
    LaunchError::Environment(format!("the side of the servers answered another command: {answer:?}"))
}

fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

impl Arm {
    fn of(started: Result<Started, TrialFailure>) -> Self {
        let (server, failure) = match started {
            Ok(server) => (Some(server), None),
            Err(failure) => (None, Some(failure)),
        };
        Self { server, failure, slices: Vec::new(), evidence: Vec::new() }
    }

    fn lose(&mut self, reason: &str) {
        self.failure.get_or_insert_with(|| TrialFailure::Host { reason: reason.to_owned() });
    }

    /// The generator's report with the observations of the server.
    fn completed(&self, mut report: LoadReport, mut observed: ObservedWindow) -> LoadReport {
        observed.noise.machine_busy_ns = self.slices.iter().map(|slice| slice.machine_cpu_ns).sum();
        report.observed = Some(observed);
        report
    }
}

/// Why a round ends early.
enum Broken {
    /// The generator failed.
    Load(String),
    /// The host of the servers was lost.
    Lost(String),
    Stop(LaunchError),
}

impl From<NoAnswer> for Broken {
    fn from(none: NoAnswer) -> Self {
        match none {
            NoAnswer::Stop(error) => Self::Stop(error),
            NoAnswer::Lost(reason) => Self::Lost(reason),
        }
    }
}

impl Broken {
    /// Attributes the failure to every arm that was to be loaded, unless the session must stop. If the server of an
    /// arm died, that is its failure, because the generator often fails as a result.
    fn blame(
        self,
        servers: &mut dyn RoundServers,
        arms: &mut [Arm],
        there: &[usize],
    ) -> Result<(), LaunchError> {
        let reason = match self {
            Self::Stop(error) => return Err(error),
            Self::Lost(reason) => {
                arms.iter_mut().for_each(|arm| arm.lose(&reason));
                return Ok(());
            }
            Self::Load(reason) => reason,
        };
        for index in there.iter().copied().filter(|index| arms[*index].failure.is_none()).collect::<Vec<_>>()
        {
            arms[index].failure = match ended(servers, number(index), false) {
                Ok(ended) => ended.or_else(|| Some(TrialFailure::Load { reason: reason.clone() })),
                Err(Self::Stop(error)) => return Err(error),
                Err(Self::Lost(reason) | Self::Load(reason)) => Some(TrialFailure::Host { reason }),
            };
        }
        Ok(())
    }
}

/// Why an arm is not loaded further: fewer than half of its priming messages were answered. A server that loses a few
/// messages is loaded, and its trial reports them.
fn unanswered(cell: &CellSpec, messages_each: u32, primed: &SliceCounts) -> Option<String> {
    let asked = u64::from(cell.connections) * u64::from(messages_each);
    let why = primed.failure_last.as_deref().unwrap_or("its connections ended");
    (2 * primed.messages < asked).then(|| format!("answered {} of {asked} messages: {why}", primed.messages))
}

#[cfg(test)]
mod tests {
    use weir_judge::sample;

    use super::*;

    /// Servers of another host that give one answer to all questions.
    struct Elsewhere(Result<RoundAnswer, String>);

    impl RoundServers for Elsewhere {
        fn ask(&mut self, _: RoundCommand) -> Result<RoundAnswer, NoAnswer> {
            self.0.clone().map_err(NoAnswer::Lost)
        }

        fn read_output(&mut self) {}

        fn host(&self) -> Option<&str> {
            Some("b")
        }

        fn share_network(&self) -> bool {
            false
        }
    }

    /// The failures of three arms after these of them accepted no connection, or why the round is over.
    fn blamed(answer: Result<RoundAnswer, String>, silent: &[usize]) -> Result<Vec<Option<String>>, String> {
        let server = |_| Arm::of(Ok(Started { address: "10.9.0.2:7".to_owned(), is_process: true }));
        let mut arms: Vec<Arm> = (0..3).map(server).collect();
        let unopened = silent.iter().map(|index| Unopened {
            index: *index,
            is_silent: true,
            reason: "accepted 0 of 7 connections: timed out".to_owned(),
        });
        match blame_unopened(&mut Elsewhere(answer), &mut arms, &[0, 1, 2], unopened.collect()) {
            Ok(()) => Ok(arms
                .into_iter()
                .map(|arm| match arm.failure? {
                    TrialFailure::Server { reason } => Some(reason),
                    other => Some(format!("{other:?}")),
                })
                .collect()),
            Err(Broken::Lost(reason)) => Err(reason),
            Err(_) => Err("another cause".to_owned()),
        }
    }

    #[test]
    fn a_host_that_is_lost_while_connections_open_is_blamed_and_not_its_servers() {
        let lost = "b: the way to it exited with status 255".to_owned();
        assert_eq!(blamed(Err(lost.clone()), &[0, 1, 2]), Err(lost.clone()));
        assert_eq!(blamed(Err(lost.clone()), &[2]), Err(lost));
        let runs = || Ok(RoundAnswer::HasEnded(None));
        let one = Some("accepted 0 of 7 connections: timed out".to_owned());
        assert_eq!(blamed(runs(), &[1]), Ok(vec![None, one, None]), "the others can be reached");
        let way = blamed(runs(), &[0, 1, 2]).expect_err("no server can be reached");
        assert_eq!(
            way,
            "b: its servers run and none can be reached from here: accepted 0 of 7 connections: timed out"
        );
        let died = TrialFailure::Server { reason: "had enough".to_owned() };
        let all = blamed(Ok(RoundAnswer::HasEnded(Some(died))), &[0, 1, 2]);
        assert_eq!(all, Ok(vec![Some("had enough".to_owned()); 3]));
    }

    #[test]
    fn an_arm_is_given_up_for_a_round_that_answers_less_than_half_of_what_it_is_primed_with() {
        let study = sample::study(&["epoll", "uring"], 6, 1);
        let cell = CellSpec { connections: 100, ..study.cells[0].clone() };
        let reason = |messages: u64| {
            let failure_last = Some("no answer within 5s".to_owned());
            unanswered(&cell, 2, &SliceCounts { messages, failure_last, ..SliceCounts::default() })
        };
        assert_eq!([reason(200), reason(196), reason(100)], [None, None, None], "a few may be lost");
        // A server that serves one connection to its end before it takes the next.
        assert_eq!(reason(2).as_deref(), Some("answered 2 of 200 messages: no answer within 5s"));
        assert!(unanswered(&cell, 2, &SliceCounts::default()).is_some_and(|it| it.contains("ended")));
    }
}
