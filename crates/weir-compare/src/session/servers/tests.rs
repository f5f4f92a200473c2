//! Sessions of canned servers: which are started and loaded, in which order, and the results.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use weir_record::{
    commands::{
        CommandComparison, CommandEnd, CommandFinding, CommandRole, CommandSettings, FailedEnd, LoadRun,
        MeasuredBy, NotReady, RunEnding, RunPhase, ServerSettings,
    },
    metric::Metric,
    spec::Ready,
    verdict::Verdict,
};
use weir_stats::random::Random;

use crate::{
    asked::{Asked, AskedCommand, AskedServers},
    load::{Count, Tool},
    machine::Launch,
    run::{LaunchCost, OutputDigest, OutputTo, RunCost, RunEnd, RunError, RunOutcome, RunSpec},
    servers::{Loaded, ServerFailure, Slot},
    session::{PILOT_PAIRS_MAX, compare},
};

const MILLISECOND_NS: u64 = 1_000_000;

/// Requests of a load run.
const WORK: u64 = 20_000;

/// Canned servers, in time that passes only while something runs: `serve 50` costs 50 µs a request.
struct Fake {
    now_ns: u64,
    random: Random,
    /// Servers that are up, with the effect of this start on their cost.
    up: BTreeMap<Slot, f64>,
    /// By how much starts differ, as a logarithm.
    start_scatter: f64,
    /// Starts of all servers: the slots of each.
    starts: Vec<BTreeSet<Slot>>,
    loads: usize,
    /// The load in which a server ends, and its command.
    ends_in: Option<(usize, usize)>,
    /// The load after which the test interrupts.
    interrupted_after: usize,
    /// Whether the load reports no number for this command.
    silent: Option<usize>,
    ended: usize,
}

impl Fake {
    fn new() -> Self {
        Self {
            now_ns: 0,
            random: Random::seeded(3),
            up: BTreeMap::new(),
            start_scatter: 0.0,
            starts: Vec::new(),
            loads: 0,
            ends_in: None,
            interrupted_after: usize::MAX,
            silent: None,
            ended: 0,
        }
    }
}

impl Launch for Fake {
    fn run(&mut self, _: &RunSpec, _: &AtomicBool) -> Result<RunOutcome, RunError> {
        Err(RunError::Empty)
    }

    fn now_ns(&mut self) -> u64 {
        self.now_ns
    }

    fn start_server(&mut self, asked: &Asked, slot: Slot, _: &AtomicBool) -> Result<(), ServerFailure> {
        let command = &asked.commands[slot.command];
        let word = command.words[0].to_str().expect("a plain word");
        let is_blocked = word == "lonely" && !self.up.is_empty();
        if word == "broken" || is_blocked {
            let why = NotReady::Ended(FailedEnd::Status(1));
            return Err(ServerFailure::NotReady { why, said: "Address already in use".to_owned() });
        }
        if self.up.is_empty() {
            self.starts.push(BTreeSet::new());
        }
        self.starts.last_mut().expect("it was just made").insert(slot);
        self.now_ns += 20 * MILLISECOND_NS;
        let effect = self.start_scatter * self.random.normal();
        self.up.insert(slot, effect);
        Ok(())
    }

    fn load_server(&mut self, asked: &Asked, slot: Slot, stop: &AtomicBool) -> Result<Loaded, ServerFailure> {
        if stop.load(Ordering::Relaxed) {
            return Err(RunError::Stopped.into());
        }
        self.loads += 1;
        if self.ends_in == Some((self.loads, slot.command)) {
            return Err(ServerFailure::Ended { end: FailedEnd::Signal(11), said: "oh".to_owned() });
        }
        if self.loads == self.interrupted_after {
            stop.store(true, Ordering::Relaxed);
        }
        let effect = self.up.get(&slot).expect("it is up");
        let us: f64 =
            asked.commands[slot.command].words[1].to_str().expect("a number").parse().expect("a number");
        let scatter = 0.003 * self.random.normal();
        let cpu_ns = (us * 1e3 * WORK as f64 * (effect + scatter).exp()) as u64;
        self.now_ns += 200 * MILLISECOND_NS;
        let is_silent = self.silent == Some(slot.command);
        let outcome = RunOutcome {
            cost: RunCost { wall_ns: 200 * MILLISECOND_NS, user_ns: cpu_ns, ..RunCost::default() },
            end: RunEnd::Exited(0),
            stdout: OutputDigest::default(),
            stderr: OutputDigest::default(),
            children_left: 0,
            children_left_names: Vec::new(),
            launch: LaunchCost::default(),
        };
        Ok(Loaded {
            outcome,
            work: (!is_silent).then_some(WORK),
            lacks_count: is_silent,
            beside: LoadRun { counted_ns: 300 * MILLISECOND_NS, ..LoadRun::default() },
        })
    }

    fn end_servers(&mut self, _: &Asked) -> Result<(), ServerFailure> {
        self.ended += self.up.len();
        self.up.clear();
        Ok(())
    }
}

fn asked(servers: &[&str]) -> Asked {
    let words = |text: &str| text.split_whitespace().map(OsString::from).collect::<Vec<_>>();
    let command = |(place, text): (usize, &&str)| AskedCommand {
        name: (*text).to_owned(),
        role: if place == 0 { CommandRole::Baseline } else { CommandRole::Candidate },
        words: words(text),
        load: words("wrk"),
        ..AskedCommand::default()
    };
    Asked {
        parameters: Vec::new(),
        commands: servers.iter().enumerate().map(command).collect(),
        settings: CommandSettings {
            budget_ns: 120_000 * MILLISECOND_NS,
            limit_ns: 10_000 * MILLISECOND_NS,
            warmup: 1,
            equivalence_margin: 0.01,
            servers: Some(ServerSettings::default()),
            ..CommandSettings::default()
        },
        environment: Vec::new(),
        folder: None,
        input: None,
        output: OutputTo::Discard,
        thresholds: Vec::new(),
        seed: 5,
        servers: Some(AskedServers {
            count: Count::Tool(Tool::Wrk),
            ready: Ready::Port,
            ready_words: Vec::new(),
            ready_within: Duration::from_secs(30),
            settle: Duration::ZERO,
            pairs_per_start: 3,
        }),
    }
}

fn compared(asked: &Asked, fake: &mut Fake) -> CommandComparison {
    let stop = AtomicBool::new(false);
    compare(asked, &MeasuredBy::default(), fake, &stop, &mut |_| {}).expect("it can run")
}

#[test]
fn a_server_that_costs_more_for_a_request_is_told_and_each_start_is_a_unit() {
    let mut fake = Fake::new();
    let found = compared(&asked(&["serve 50", "serve 51.5"]), &mut fake);
    assert_eq!(
        (found.ended, found.verdict()),
        (CommandEnd::Complete, Verdict::Worse),
        "{:?}",
        found.findings
    );
    assert_eq!((found.plan.unit_pairs, found.plan.pilot_pairs), (3, PILOT_PAIRS_MAX), "{:?}", found.plan);
    let row = found.decisive("serve 51.5").expect("it is compared");
    assert_eq!(row.units * 3, found.plan.pairs);
    let (own, baseline) = row.figures.expect("it has figures");
    assert!((baseline - 50.0).abs() < 0.5 && (own - 51.5).abs() < 0.5, "µs for a request: {own} {baseline}");
    assert_eq!(fake.starts.len() as u32, 1 + found.plan.pilot_pairs + row.units);
    let all: BTreeSet<Slot> = [(0, false), (0, true), (1, false)]
        .map(|(command, repeat)| Slot { command, repeat })
        .into_iter()
        .collect();
    assert!(fake.starts.iter().all(|start| *start == all), "the baseline has two");
    assert_eq!(fake.ended, 3 * fake.starts.len(), "nothing is left up");
    let warmups = found.runs.iter().filter(|run| run.phase == RunPhase::Warmup).count();
    assert_eq!(warmups, 3 * (fake.starts.len() - 1), "one of each server after each start but the first");
    let mut throughput = found.effects.comparisons().filter(|row| row.metric == Metric::CommandThroughput);
    assert_eq!(throughput.next().map(|row| row.verdict), Some(Verdict::NoClaim));
}

/// Equal servers whose starts differ by 2 %, with runs that scatter by a seventh of that. Judged pair by pair, each
/// comparison would find a difference.
#[test]
fn what_one_start_differs_from_the_next_is_no_difference_of_servers() {
    let mut called = 0;
    for seed in 0..20 {
        let mut fake = Fake { start_scatter: 0.02, random: Random::seeded(seed), ..Fake::new() };
        let mut asked = asked(&["serve 50", "serve 50.0"]);
        asked.settings.runs = Some(60);
        let found = compared(&asked, &mut fake);
        assert_eq!((found.ended, found.plan.unit_pairs), (CommandEnd::Complete, 3));
        called += u32::from(matches!(found.verdict(), Verdict::Better | Verdict::Worse));
    }
    assert!(called <= 1, "{called} of 20");
}

#[test]
fn few_pairs_that_are_asked_for_have_a_start_each() {
    let mut asked = asked(&["serve 50", "serve 55"]);
    for (pairs, per_start) in [(6, 1), (11, 1), (12, 2), (18, 3), (100, 3)] {
        asked.settings.runs = Some(pairs);
        let found = compared(&asked, &mut Fake::new());
        assert_eq!((found.plan.pairs, found.plan.unit_pairs), (pairs, per_start));
        assert_eq!(found.decisive("serve 55").map(|row| row.units), Some(pairs / per_start));
        assert_eq!(found.verdict(), Verdict::Worse);
    }
}

#[test]
fn a_server_that_does_not_start_is_left_out_and_one_that_starts_alone_is_told_apart() {
    let found = compared(&asked(&["serve 50", "broken 1", "serve 55"]), &mut Fake::new());
    assert_eq!(found.decisive("serve 55").map(|row| row.verdict), Some(Verdict::Worse));
    let is_named = |it: &CommandFinding| match it {
        CommandFinding::ServerNotReady { command, said, .. } => {
            command == "broken 1" && said.contains("in use")
        }
        _ => false,
    };
    assert!(found.findings.iter().any(is_named), "{:?}", found.findings);
    assert_eq!(found.decisive("broken 1").map(|row| row.verdict), Some(Verdict::NotComparable));
    let found = compared(&asked(&["serve 50", "lonely 50"]), &mut Fake::new());
    assert_eq!(found.ended, CommandEnd::NothingToCompare);
    assert!(
        found.findings.iter().any(|it| matches!(it, CommandFinding::ServersCollide { .. })),
        "{:?}",
        found.findings
    );
    let found = compared(&asked(&["lonely 50", "serve 50"]), &mut Fake::new());
    assert_eq!(found.ended, CommandEnd::NothingToCompare, "the baseline's two collide");
}

#[test]
fn a_load_that_says_no_number_is_a_failed_run() {
    let mut fake = Fake { silent: Some(1), ..Fake::new() };
    let found = compared(&asked(&["serve 50", "serve 55"]), &mut fake);
    assert_eq!((found.ended, found.verdict()), (CommandEnd::NothingToCompare, Verdict::NotComparable));
    let is_named = |it: &CommandFinding| match it {
        CommandFinding::LoadFailed { command, end, .. } => {
            command == "serve 55" && *end == FailedEnd::NoCount
        }
        _ => false,
    };
    assert!(found.findings.iter().any(is_named), "{:?}", found.findings);
    assert!(found.runs.iter().any(|run| run.end == RunEnding::NoCount));
}

#[test]
fn a_server_that_ends_in_the_middle_ends_the_comparison_and_what_was_measured_stays() {
    let mut asked = asked(&["serve 50", "serve 55"]);
    asked.settings.runs = Some(60);
    // Any three loads include one of the candidate.
    for load in 100..103 {
        let mut fake = Fake { ends_in: Some((load, 1)), ..Fake::new() };
        let found = compared(&asked, &mut fake);
        if found.ended == CommandEnd::Complete {
            continue;
        }
        assert_eq!((found.ended, found.verdict()), (CommandEnd::ServerEnded, Verdict::NotComparable));
        assert!(found.pairs_done > 10 && found.pairs_done < 60, "{}", found.pairs_done);
        assert!(
            matches!(&found.findings[0], CommandFinding::ServerEnded { command, .. } if command == "serve 55")
        );
        let is_cut = |it: &CommandFinding| matches!(it, CommandFinding::CutShort { .. });
        assert!(!found.findings.iter().any(is_cut), "one reason is enough: {:?}", found.findings);
        assert!(fake.up.is_empty());
        return;
    }
    panic!("no load of the candidate");
}

#[test]
fn who_interrupts_keeps_what_was_measured_and_every_server_ends() {
    let mut fake = Fake { interrupted_after: 100, ..Fake::new() };
    let mut asked = asked(&["serve 50", "serve 60"]);
    asked.settings.runs = Some(60);
    let found = compared(&asked, &mut fake);
    assert_eq!((found.ended, found.verdict()), (CommandEnd::Interrupted, Verdict::Inconclusive));
    assert!(fake.up.is_empty() && found.runs.len() == 100);
}

#[test]
fn a_start_and_its_pairs_fit_into_the_budget() {
    let mut fake = Fake { start_scatter: 0.05, ..Fake::new() };
    let found = compared(&asked(&["serve 50", "serve 50.0"]), &mut fake);
    let budget_ns = 120_000 * MILLISECOND_NS;
    assert!(
        fake.now_ns > budget_ns * 9 / 10 && fake.now_ns < budget_ns * 11 / 10,
        "{} {:?}",
        fake.now_ns,
        found.plan
    );
}
