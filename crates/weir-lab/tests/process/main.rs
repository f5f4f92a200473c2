//! Real processes: a trial ends all processes that it starts, and a killed laboratory leaves none behind.
//!
//! The program starts itself again in every role: as `weir serve`, `weir load` and `weir supervise` with chosen
//! faults, as a foreign server, and as a laboratory that is killed. All of them carry a mark in their environment, by
//! which leftovers are found.

mod elsewhere;
mod leftovers;
mod own;
mod random_kills;
mod roles;

use std::{
    collections::BTreeSet,
    env,
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use leftovers::{MARK, expect_none};
use weir_evidence::slice_observers::{OBSERVER, Programs};
use weir_judge::sample::study;
use weir_lab::{
    launch::{
        LaunchError, Launcher, RoundOutcome, RoundRequest, Sliced, TrialFailure, TrialOutcome, TrialRequest,
    },
    process::{Deadlines, ProcessLauncher},
};
use weir_record::{
    observation::Rung,
    spec::{Alternation, ArmSpec, ArmStart, HttpCell, NeighbourSpec, StudySpec, Subject},
    trial::{EvidenceSlice, SliceRecord},
};
use weir_store::Store;

/// Default length of a slice.
const SLICE: Duration = Duration::from_millis(5);

/// Pairs of slices of evidence.
const EVIDENCE_PAIRS: u32 = 2;

/// Deadlines short enough for servers that never become ready or never end.
const DEADLINES: Deadlines = Deadlines {
    ready: Duration::from_millis(1_500),
    setup: Duration::from_millis(1_500),
    stop: Duration::from_millis(300),
    load_margin: Duration::from_millis(1_500),
};

const SEED: u64 = 5;

/// The tests by their names.
const TESTS: [(&str, fn()); 53] = [
    ("a trial gives its report and leaves nothing", a_trial_gives_its_report_and_leaves_nothing),
    ("what servers are started from is noted", what_servers_are_started_from_is_noted),
    ("a server that dies at once is quoted", a_server_that_dies_at_once_is_quoted),
    ("a refused driver is the environment's fault", a_refused_driver_is_the_environments_fault),
    ("an unknown option ends the session", an_unknown_option_ends_the_session),
    ("a mute server meets its deadline", a_mute_server_meets_its_deadline),
    ("a supervisor that hangs leaves nothing", a_supervisor_that_hangs_leaves_nothing),
    ("a stubborn server is killed", a_stubborn_server_is_killed),
    ("a generator that fails is quoted", a_generator_that_fails_is_quoted),
    ("a generator that hangs meets its deadline", a_generator_that_hangs_meets_its_deadline),
    ("a server that dies under load is blamed", a_server_that_dies_under_load_is_blamed),
    ("a foreign server and its orphans are ended", a_foreign_server_and_its_orphans_are_ended),
    ("an interrupted trial leaves nothing", an_interrupted_trial_leaves_nothing),
    ("neighbours end with their trial", neighbours_end_with_their_trial),
    ("a neighbour that fails is named", a_neighbour_that_fails_is_named),
    ("a round gives each arm its slices and leaves nothing", a_round_gives_each_arm_its_slices),
    ("each arm gives evidence in pairs", each_arm_gives_evidence_in_pairs),
    ("evidence by group has readings of /proc alone", evidence_by_group_has_readings_of_proc_alone),
    (
        "an arm that must be warm is loaded before its round",
        an_arm_that_must_be_warm_is_loaded_before_its_round,
    ),
    ("a server that fails costs its own arm the round", a_server_that_fails_costs_its_own_arm_the_round),
    ("a generator that fails in a slice costs the round", a_generator_that_fails_in_a_slice_costs_the_round),
    ("a generator waits as long as its cell lets it", a_generator_waits_as_long_as_its_cell_lets_it),
    ("an arm that works while it waits is stopped", an_arm_that_works_while_it_waits_is_stopped),
    ("an arm that worked to start is let", an_arm_that_worked_to_start_is_let),
    (
        "a supervisor goes on while what is below it is stopped",
        a_supervisor_goes_on_while_what_is_below_it_is_stopped,
    ),
    (
        "what surrounds a server runs before it and after it",
        own::what_surrounds_a_server_runs_before_it_and_after_it,
    ),
    (
        "a daemon that a setup starts stays until its cleanup",
        own::a_daemon_that_a_setup_starts_stays_until_its_cleanup,
    ),
    (
        "what takes too long is killed and an interruption cleans up",
        own::what_takes_too_long_is_killed_and_an_interruption_cleans_up,
    ),
    (
        "a server is ready when its line comes or its command says so",
        own::a_server_is_ready_when_its_line_comes_or_its_command_says_so,
    ),
    ("a server has its environment and its folder", own::a_server_has_its_environment_and_its_folder),
    ("a program is that on the path of its arm", own::a_program_is_that_on_the_path_of_its_arm),
    ("a server that ran before is loaded and goes on", own::a_server_that_ran_before_is_loaded_and_goes_on),
    ("a server that ran before and ends is named", own::a_server_that_ran_before_and_ends_is_named),
    ("an interrupted round leaves nothing", an_interrupted_round_leaves_nothing),
    ("a round on another host is as one here", elsewhere::a_round_on_another_host_is_as_one_here),
    (
        "a foreign server elsewhere and its orphans are ended",
        elsewhere::a_foreign_server_elsewhere_and_its_orphans_are_ended,
    ),
    (
        "an agent that is killed costs its round and leaves nothing",
        elsewhere::an_agent_that_is_killed_costs_its_round_and_leaves_nothing,
    ),
    (
        "a way that is lost costs its round and leaves nothing",
        elsewhere::a_way_that_is_lost_costs_its_round_and_leaves_nothing,
    ),
    (
        "an agent that does not notice is ended by the next of its session",
        elsewhere::an_agent_that_does_not_notice_is_ended_by_the_next_of_its_session,
    ),
    (
        "a host that does not come back ends the session",
        elsewhere::a_host_that_does_not_come_back_ends_the_session,
    ),
    (
        "a host that is lost while connections open is blamed",
        elsewhere::a_host_that_is_lost_while_connections_open_is_blamed,
    ),
    ("a wrong answer costs its round", elsewhere::a_wrong_answer_costs_its_round),
    ("what a host says moves no cursor", elsewhere::what_a_host_says_moves_no_cursor),
    (
        "an address that leads back is refused unless the network is shared",
        elsewhere::an_address_that_leads_back_is_refused_unless_the_network_is_shared,
    ),
    (
        "an interrupted round elsewhere leaves nothing",
        elsewhere::an_interrupted_round_elsewhere_leaves_nothing,
    ),
    ("one study at a time has a host", elsewhere::one_study_at_a_time_has_a_host),
    (
        "what a host says instead is part of the error",
        elsewhere::what_a_host_says_instead_is_part_of_the_error,
    ),
    ("what cannot be run elsewhere is refused", elsewhere::what_cannot_be_run_elsewhere_is_refused),
    (
        "whatever is killed in a study elsewhere leaves nothing and its study finishes",
        random_kills::whatever_is_killed_in_a_study_elsewhere_leaves_nothing_and_its_study_finishes,
    ),
    ("a killed laboratory leaves nothing but its store", a_killed_laboratory_leaves_nothing_but_its_store),
    (
        "a laboratory killed in a setup or a ready command leaves nothing",
        a_laboratory_killed_in_a_setup_or_a_ready_command_leaves_nothing,
    ),
    (
        "a laboratory killed while arms are stopped leaves nothing but its store",
        a_laboratory_killed_while_arms_are_stopped_leaves_nothing_but_its_store,
    ),
    (
        "a laboratory killed while an orphan is stopped leaves nothing but its store",
        a_laboratory_killed_while_an_orphan_is_stopped_leaves_nothing_but_its_store,
    ),
];

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if roles::play(&words) {
        return;
    }
    say(&format!("seed {SEED}"));
    for (name, test) in TESTS {
        if words.first().is_none_or(|filter| filter.starts_with('-') || name.contains(filter)) {
            test();
            say(&format!("{name} ... ok"));
        }
    }
}

fn say(line: &str) {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}").and_then(|()| output.flush()).expect("standard output takes a line");
}

fn this_program() -> PathBuf {
    env::current_exe().expect("this program has a path")
}

/// A study of `weir` arms whose drivers name a role. The number of connections is the role of the generator.
fn spec(driver: &str, connections: u32) -> StudySpec {
    let mut spec = study(&[driver, "epoll"], 4, SEED);
    (spec.server_cpus, spec.load_cpus) = (Vec::new(), Vec::new());
    let cell = &mut spec.cells[0];
    (cell.connections, cell.window_ns, cell.warmup_ns_max) = (connections, 1_000_000, 0);
    spec
}

fn foreign(words: &[&str]) -> StudySpec {
    let program = this_program().display().to_string();
    let argv = [program.as_str()].iter().chain(words).map(|word| (*word).to_owned()).collect();
    let mut spec = spec("epoll", roles::REPORT);
    spec.arms[0] = ArmSpec {
        name: "foreign".to_owned(),
        subject: Subject::Command { argv },
        load_options: [].into(),
        baseline: None,
        is_placebo: false,
        warmup_ns: 0,
        start: ArmStart::default(),
    };
    spec
}

fn trial_with(spec: &StudySpec, interrupt: &AtomicBool) -> Result<TrialOutcome, LaunchError> {
    let mut launcher = ProcessLauncher::new(this_program(), spec, DEADLINES);
    let outcome = launcher.run_trial(&TrialRequest {
        arm: &spec.arms[0],
        cell: &spec.cells[0],
        server_cpus: &spec.server_cpus,
        load_cpus: &spec.load_cpus,
        neighbours: &spec.neighbours,
        seed: SEED,
        block: 0,
        position: 0,
        interrupt,
    });
    expect_none("");
    outcome
}

fn trial(spec: &StudySpec) -> Result<TrialOutcome, LaunchError> {
    trial_with(spec, &AtomicBool::new(false))
}

fn failure(spec: &StudySpec) -> TrialFailure {
    trial(spec).expect("the session goes on").report.expect_err("the trial failed")
}

fn a_trial_gives_its_report_and_leaves_nothing() {
    let report = trial(&spec("epoll", roles::REPORT)).expect("it runs").report.expect("it reports");
    assert_eq!((report.messages, report.seed), (1_000, SEED));
    assert_eq!(report.target, "127.0.0.1:7007");
}

fn what_servers_are_started_from_is_noted() {
    let own = this_program().display().to_string();
    let of_weir = trial(&spec("epoll", roles::REPORT)).expect("it runs").programs;
    assert_eq!(of_weir.keys().collect::<Vec<_>>(), [&own]);
    let script = env::temp_dir().join(format!("weir-script-{}", std::process::id()));
    let name = script.display().to_string();
    let with = |text: &str| {
        std::fs::write(&script, text).expect("it can be written");
        trial(&foreign(&["listen", "{port}", &name])).expect("it runs").programs
    };
    let (one, again, other) = (with("one"), with("one"), with("another"));
    std::fs::remove_file(&script).expect("it was there");
    assert_eq!((one.len(), &one, one.get(&own)), (2, &again, of_weir.get(&own)));
    assert_eq!(one.get(&own), other.get(&own));
    assert_ne!(one.get(&name), other.get(&name));
    let round = round_with(&spec("epoll", roles::REPORT), SLICE, &AtomicBool::new(false)).expect("it runs");
    assert_eq!(round.programs, vec![of_weir; 3]);
}

fn a_server_that_dies_at_once_is_quoted() {
    let reason = "exited with status 1: port in use".to_owned();
    assert_eq!(failure(&spec("dies", roles::REPORT)), TrialFailure::Server { reason });
}

fn a_refused_driver_is_the_environments_fault() {
    let reason = "io_uring is switched off".to_owned();
    assert_eq!(failure(&spec("refused", roles::REPORT)), TrialFailure::ServerEnvironment { reason });
    let mut missing = foreign(&["{port}"]);
    missing.arms[0].subject =
        Subject::Command { argv: vec!["/no/such/server".to_owned(), "{port}".to_owned()] };
    let TrialFailure::ServerEnvironment { reason } = failure(&missing) else { panic!("it cannot start") };
    assert!(reason.starts_with("cannot start /no/such/server"), "{reason}");
}

fn an_unknown_option_ends_the_session() {
    let Err(LaunchError::Usage(message)) = trial(&spec("unknown", roles::REPORT)) else {
        panic!("it is a mistake")
    };
    assert_eq!(message, "arm unknown: there is no driver unknown");
    let Err(LaunchError::Usage(message)) = trial(&spec("epoll", roles::USAGE)) else {
        panic!("it is a mistake")
    };
    assert_eq!(message, "too many connections");
}

fn a_mute_server_meets_its_deadline() {
    let reason = "did not accept connections within 1.5 s: still thinking".to_owned();
    assert_eq!(failure(&spec("mute", roles::REPORT)), TrialFailure::Server { reason });
    let reason = "did not accept connections within 1.5 s".to_owned();
    for role in ["linger", "linger-with-orphan"] {
        let reason = reason.clone();
        assert_eq!(failure(&foreign(&[role, "{port}"])), TrialFailure::Server { reason });
    }
}

fn a_supervisor_that_hangs_leaves_nothing() {
    let reason = "did not accept connections within 1.5 s".to_owned();
    let failure = failure(&foreign(&["stops-its-supervisor", "{port}"]));
    assert_eq!(failure, TrialFailure::Server { reason });
}

fn a_stubborn_server_is_killed() {
    let outcome = trial(&spec("stubborn", roles::REPORT)).expect("it runs");
    assert!(outcome.report.is_ok());
}

fn a_generator_that_fails_is_quoted() {
    let reason = "exited with status 1: out of luck".to_owned();
    assert_eq!(failure(&spec("epoll", roles::FAILS)), TrialFailure::Load { reason });
    let TrialFailure::Load { reason } = failure(&spec("epoll", roles::GARBAGE)) else {
        panic!("it is to blame")
    };
    assert!(reason.starts_with("its report cannot be read"), "{reason}");
}

fn a_generator_that_hangs_meets_its_deadline() {
    let reason = "gave no report within 1.501 s".to_owned();
    assert_eq!(failure(&spec("epoll", roles::HANGS)), TrialFailure::Load { reason });
}

fn a_server_that_dies_under_load_is_blamed() {
    let reason = "during the load it was killed by signal 9".to_owned();
    assert_eq!(failure(&spec("epoll", roles::KILLS_THE_SERVER)), TrialFailure::Server { reason });
}

fn a_foreign_server_and_its_orphans_are_ended() {
    for role in ["listen", "listen-with-orphan", "listen-in-background"] {
        let report = trial(&foreign(&[role, "{port}"])).expect("it runs").report;
        assert_eq!(report.expect(role).messages, 1_000);
    }
}

fn an_interrupted_trial_leaves_nothing() {
    for interrupted in [
        spec("epoll", roles::HANGS),
        spec("mute", roles::REPORT),
        foreign(&["linger", "{port}"]),
        foreign(&["linger-with-orphan", "{port}"]),
        beside(spec("epoll", roles::HANGS), "ready"),
        beside(spec("epoll", roles::REPORT), "silent"),
    ] {
        let interrupt = AtomicBool::new(false);
        let outcome = thread::scope(|scope| {
            scope.spawn(|| {
                leftovers::wait_for_any();
                interrupt.store(true, Ordering::Relaxed);
            });
            trial_with(&interrupted, &interrupt)
        });
        assert!(matches!(outcome, Err(LaunchError::Interrupted)), "{outcome:?}");
    }
}

/// The same with a neighbour in this role beside every server.
fn beside(mut spec: StudySpec, role: &str) -> StudySpec {
    let program = this_program().display().to_string();
    let argv = [&program, "neighbour", role, "{address}", "{port}"].map(str::to_owned).to_vec();
    spec.neighbours = vec![NeighbourSpec { name: "drip".to_owned(), argv }];
    spec.cells[0].neighbours = vec!["drip".to_owned()];
    spec
}

fn neighbours_end_with_their_trial() {
    let outcome = trial(&beside(spec("epoll", roles::REPORT), "ready")).expect("the session goes on");
    assert_eq!(outcome.report.expect("it was loaded").messages, 1_000);
    let round = round_with(&beside(spec("epoll", roles::REPORT), "ready"), SLICE, &AtomicBool::new(false));
    for arm in round.expect("the session goes on").arms {
        assert_eq!(arm.expect("it was loaded").slices.len(), 3);
    }
    // Neighbours receive the address of their server.
    let failed = failure(&beside(spec("epoll", roles::REPORT), "tells"));
    let told = "drip: exited with status 9: 127.0.0.1:7007 7007".to_owned();
    assert_eq!(failed, TrialFailure::Neighbour { reason: told });
}

fn a_neighbour_that_fails_is_named() {
    let failed = |how: &str, generator| failure(&beside(spec("epoll", generator), how));
    let neighbour = |reason: &str| TrialFailure::Neighbour { reason: format!("drip: {reason}") };
    assert_eq!(failed("dies", roles::REPORT), neighbour("exited with status 3: no luck"));
    assert_eq!(failed("silent", roles::REPORT), neighbour("was not ready within 1.5 s: still thinking"));
    assert_eq!(failed("leaves", roles::HANGS), neighbour("exited with status 4: had enough"));
    let TrialFailure::Neighbour { reason } = failed("chatters", roles::HANGS) else { panic!("it ended") };
    assert!(reason.contains("exited with status 4") && reason.ends_with("had enough"), "its output is read");
    // If a server dies, it is the cause, and not the neighbour that lost it.
    let dead = failed("ready", roles::KILLS_THE_SERVER);
    assert!(matches!(dead, TrialFailure::Server { .. }), "{dead:?}");
    let round = round_with(&beside(spec("epoll", roles::REPORT), "dies"), SLICE, &AtomicBool::new(false));
    for arm in round.expect("the session goes on").arms {
        assert_eq!(arm.err(), Some(neighbour("exited with status 3: no luck")));
    }
}

/// Runs a round of the study's two arms, the first of them twice, with slices of this length and these orders.
fn round_with(
    spec: &StudySpec,
    slice: Duration,
    interrupt: &AtomicBool,
) -> Result<RoundOutcome, LaunchError> {
    round_with_evidence(spec, slice, (None, false), interrupt)
}

fn round_with_evidence(
    spec: &StudySpec,
    slice: Duration,
    (evidence, by_group): (Option<Duration>, bool),
    interrupt: &AtomicBool,
) -> Result<RoundOutcome, LaunchError> {
    let mut launcher = ProcessLauncher::new(this_program(), spec, DEADLINES);
    let slice_ns = slice.as_nanos().try_into().expect("a short slice");
    let outcome = launcher.run_round(&RoundRequest {
        cell: &spec.cells[0],
        alternation: Alternation { slice_ns, permutations: 3, prime_messages: 2, evidence: None },
        evidence_slice_ns: evidence.map(|length| length.as_nanos().try_into().expect("a short slice")),
        evidence_pairs: EVIDENCE_PAIRS,
        evidence_by_group: by_group,
        evidence_strace: false,
        arms: &[&spec.arms[1], &spec.arms[0], &spec.arms[1]],
        orders: &[vec![0, 1, 2], vec![2, 1, 0], vec![1, 0, 2]],
        server_cpus: &[],
        load_cpus: &[],
        neighbours: &spec.neighbours,
        seed: SEED,
        interrupt,
    });
    expect_none("");
    outcome
}

fn round(driver: &str, connections: u32) -> Vec<Result<Sliced, TrialFailure>> {
    round_of(driver, connections, SLICE)
}

fn round_of(driver: &str, connections: u32, slice: Duration) -> Vec<Result<Sliced, TrialFailure>> {
    let outcome = round_with(&spec(driver, connections), slice, &AtomicBool::new(false));
    outcome.expect("the session goes on").arms
}

fn a_round_gives_each_arm_its_slices() {
    let places: Vec<Vec<(u32, u32)>> = round("epoll", roles::REPORT)
        .into_iter()
        .map(|arm| {
            let sliced = arm.expect("it was loaded");
            assert_eq!(sliced.report.messages, 100);
            assert!(sliced.report.observed.is_some());
            sliced.slices.iter().map(|slice| (slice.permutation, slice.place)).collect()
        })
        .collect();
    assert_eq!(places, [[(0, 0), (1, 2), (2, 1)], [(0, 1), (1, 1), (2, 0)], [(0, 2), (1, 0), (2, 2)]]);
}

/// The baseline's second server gives no evidence, because it repeats the first. Slices of evidence are not among the
/// timed ones.
fn each_arm_gives_evidence_in_pairs() {
    let mut spec = spec("epoll", roles::REPORT);
    spec.arms[1].name = "other".to_owned();
    let length = Duration::from_millis(70);
    let outcome = round_with_evidence(&spec, SLICE, (Some(length), false), &AtomicBool::new(false));
    let arms = outcome.expect("the session goes on").arms;
    let arms: Vec<Sliced> = arms.into_iter().map(|arm| arm.expect("it was loaded")).collect();
    assert_eq!(arms.iter().map(|arm| arm.slices.len()).collect::<Vec<_>>(), [3, 3, 3]);
    // Each pair has one look by the clocks alone, and one by the kernel's programs if they may run.
    let looks: u32 = if Programs::are_allowed() { 2 } else { 1 };
    let expected: Vec<(u32, u32)> =
        (0..EVIDENCE_PAIRS).flat_map(|pair| (0..looks).map(move |place| (pair, place))).collect();
    let places = |arm: &Sliced| {
        arm.evidence.iter().map(|it| (it.slice.permutation, it.slice.place)).collect::<Vec<_>>()
    };
    assert_eq!(arms.iter().map(places).collect::<Vec<_>>(), [expected.clone(), expected, Vec::new()]);
    let rungs: BTreeSet<Rung> = arms.iter().flat_map(|arm| &arm.evidence).map(|slice| slice.rung).collect();
    assert_eq!(rungs.contains(&Rung::Programs), looks == 2);
    for slice in arms.iter().flat_map(|arm| &arm.evidence) {
        assert_eq!((u128::from(slice.slice.length_ns), slice.slice.messages), (length.as_nanos(), 100));
        let of = |source: &str| slice.readings.iter().any(|row| row.source == source && row.key == "cpu-ns");
        assert!(of("process"), "{:?}", slice.readings);
    }
}

fn evidence_by_group_has_readings_of_proc_alone() {
    let mut spec = spec("epoll", roles::REPORT);
    spec.arms[1].name = "other".to_owned();
    let length = Duration::from_millis(70);
    let outcome = round_with_evidence(&spec, SLICE, (Some(length), true), &AtomicBool::new(false));
    let arms = outcome.expect("the session goes on").arms;
    let arms: Vec<Sliced> = arms.into_iter().map(|arm| arm.expect("it was loaded")).collect();
    let is_read = |slice: &&EvidenceSlice| {
        slice.readings.iter().any(|row| (row.source.as_str(), row.key.as_str()) == (OBSERVER, "readings"))
    };
    for arm in &arms[..2] {
        let read: Vec<&EvidenceSlice> = arm.evidence.iter().filter(is_read).collect();
        assert_eq!(read.len(), EVIDENCE_PAIRS as usize, "one in each pair");
        assert!(read.iter().all(|slice| slice.rung == Rung::Process), "nothing else looked");
        // Besides the readings: the clocks alone, and if the kernel's programs may run, all groups and four smaller
        // sets.
        let looks = if Programs::are_allowed() { 7 } else { 2 };
        assert_eq!(arm.evidence.len(), looks * EVIDENCE_PAIRS as usize);
    }
}

/// The warm-up loads the arm and is in none of its slices.
fn an_arm_that_must_be_warm_is_loaded_before_its_round() {
    let mut spec = spec("epoll", roles::COUNTS);
    let warmup = Duration::from_millis(30);
    spec.arms[0].warmup_ns = warmup.as_nanos().try_into().expect("a short time");
    let outcome = round_with(&spec, SLICE, &AtomicBool::new(false)).expect("the session goes on");
    let arms: Vec<Sliced> = outcome.arms.into_iter().map(|arm| arm.expect("it was loaded")).collect();
    for arm in &arms {
        let lengths: Vec<u128> = arm.slices.iter().map(|slice| slice.length_ns.into()).collect();
        assert_eq!(lengths, [SLICE.as_nanos(); 3]);
    }
    // The generator reports the number of its slices that were not timed.
    let untimed: Vec<u64> = arms.iter().map(|arm| arm.report.missed_starts).collect();
    assert_eq!(untimed, [0, 1, 0]);
}

fn a_server_that_fails_costs_its_own_arm_the_round() {
    let failures = |arms: Vec<Result<Sliced, TrialFailure>>| -> Vec<Option<TrialFailure>> {
        arms.into_iter().map(Result::err).collect()
    };
    let server = |reason: &str| Some(TrialFailure::Server { reason: reason.to_owned() });
    let dead = failures(round("dies", roles::REPORT));
    assert_eq!(dead, [None, server("exited with status 1: port in use"), None]);
    let refused = failures(round("epoll", roles::REFUSED));
    assert_eq!(refused, [None, None, server("accepted 0 of 7 connections: connection refused")]);
    let silent = failures(round("epoll", roles::SILENT));
    assert_eq!(silent, [None, None, server("answered 0 of 18 messages: no answer within 5s")]);
    let chatty = failures(round_of("chatters", roles::REPORT, Duration::from_millis(100)));
    let [None, Some(TrialFailure::Server { reason }), None] = &chatty[..] else { panic!("{chatty:?}") };
    assert!(reason.ends_with("had enough"), "its output is read in its turn: {reason}");
    let between = failures(round_of("dies-in-the-round", roles::REPORT, Duration::from_millis(100)));
    assert_eq!(between, [None, server("during the load it exited with status 3: had enough"), None]);
}

fn a_generator_that_fails_in_a_slice_costs_the_round() {
    for (how, reason) in [
        (roles::FAILS, "exited with status 1: out of luck"),
        (roles::HANGS, "gave no answer within 1.505 s"),
        (roles::GARBAGE, "its answer cannot be read"),
    ] {
        for arm in round("epoll", how) {
            let Err(TrialFailure::Load { reason: found }) = arm else { panic!("{arm:?}") };
            assert!(found.starts_with(reason), "{found}");
        }
    }
}

/// The generator uses the time limits of its cell, and the laboratory waits longer for it.
fn a_generator_waits_as_long_as_its_cell_lets_it() {
    let mut spec = spec("epoll", roles::WAITS);
    let cell = &mut spec.cells[0];
    let response_timeout_ns = 6_500_000_000;
    (cell.protocol, cell.http) = (
        "http".to_owned(),
        Some(HttpCell { content: "html".to_owned(), response_timeout_ns, ..HttpCell::default() }),
    );
    let patient = round_with(&spec, SLICE, &AtomicBool::new(false)).expect("the session goes on").arms;
    assert!(patient.iter().all(Result::is_ok), "{patient:?}");
    spec.cells[0].http.as_mut().expect("it is HTTP").response_timeout_ns = 0;
    for arm in round_with(&spec, SLICE, &AtomicBool::new(false)).expect("the session goes on").arms {
        let reason = "gave no answer within 1.5 s".to_owned();
        assert_eq!(arm.err(), Some(TrialFailure::Load { reason }));
    }
}

fn an_arm_that_works_while_it_waits_is_stopped() {
    // Long enough that the CPU time during one slice of another arm shows what it does while it waits.
    let arms = round_of("spins", roles::REPORT, Duration::from_millis(60));
    let slices = |arm: usize| &arms[arm].as_ref().expect("it was loaded").slices;
    let last = slices(1).last().expect("three slices");
    let used = |slice: &SliceRecord| slice.waiting_cpu_ns as f64 / slice.waiting_ns.max(1) as f64;
    assert!(used(&slices(1)[0]) > 0.05, "it spun while the others were started: {:?}", slices(1)[0]);
    assert!(last.stopped && used(last) < 0.05, "it was stopped: {last:?}");
    assert!(!slices(1)[0].stopped, "nobody knew yet: {:?}", slices(1)[0]);
    assert!(slices(0).iter().all(|slice| !slice.stopped && used(slice) < 0.05), "{:?}", slices(0));
}

/// Work before an arm's connections are open does not count as work while it waits.
fn an_arm_that_worked_to_start_is_let() {
    for arm in round_of("works-to-start", roles::LATE, Duration::from_millis(60)) {
        let slices = arm.expect("it was loaded").slices;
        assert!(slices.iter().all(|slice| !slice.stopped), "{slices:?}");
    }
}

/// If a server left processes behind, the arm is everything below its supervisor.
fn a_supervisor_goes_on_while_what_is_below_it_is_stopped() {
    let spec = foreign(&["listen-with-spinner", "{port}"]);
    let (interrupt, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let (outcome, stopped) = thread::scope(|scope| {
        let looked = scope.spawn(|| leftovers::stopped_until(&over));
        let outcome = round_with(&spec, Duration::from_millis(60), &interrupt);
        over.store(true, Ordering::Relaxed);
        (outcome, looked.join().expect("it only looks"))
    });
    let arms = outcome.expect("the session goes on").arms;
    let slices = &arms[1].as_ref().expect("it was loaded").slices;
    assert!(slices.last().expect("three slices").stopped, "{slices:?}");
    assert!(stopped.iter().any(|command| command.ends_with("spin ")), "{stopped:?}");
    assert!(stopped.iter().all(|command| !command.contains(" supervise ")), "{stopped:?}");
}

fn an_interrupted_round_leaves_nothing() {
    let interrupt = AtomicBool::new(false);
    let spec = spec("spins", roles::HANGS);
    let outcome = thread::scope(|scope| {
        scope.spawn(|| {
            leftovers::wait_for_any();
            interrupt.store(true, Ordering::Relaxed);
        });
        round_with(&spec, SLICE, &interrupt)
    });
    assert!(matches!(outcome, Err(LaunchError::Interrupted)), "{outcome:?}");
}

fn a_killed_laboratory_leaves_nothing_but_its_store() {
    kill_laboratories("laboratory", Moment::Random { ms_max: 40 });
}

fn a_laboratory_killed_while_arms_are_stopped_leaves_nothing_but_its_store() {
    kill_laboratories("laboratory-in-turns", Moment::Stopped);
}

fn a_laboratory_killed_while_an_orphan_is_stopped_leaves_nothing_but_its_store() {
    kill_laboratories("laboratory-of-orphans", Moment::Stopped);
}

/// The command's child left its process group, so only a supervisor finds it.
fn a_laboratory_killed_in_a_setup_or_a_ready_command_leaves_nothing() {
    for role in ["laboratory-in-setup", "laboratory-in-ready"] {
        let name = format!("weir-lab-{}-{role}", std::process::id());
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(&name);
        let mut laboratory = Command::new(this_program())
            .arg(role)
            .arg(&folder)
            .env(MARK, &name)
            .stdout(Stdio::null())
            .spawn()
            .expect("the laboratory starts");
        leftovers::wait_for(&name, "linger");
        laboratory.kill().expect("it can be killed");
        laboratory.wait().expect("it can be reaped");
        expect_none(&name);
        std::fs::remove_dir_all(&folder).expect("the folder can be removed");
    }
}

/// When a laboratory is killed, after some of its events.
#[derive(Clone, Copy)]
enum Moment {
    /// At most this much later.
    Random { ms_max: u64 },
    /// As soon as an arm of it is found stopped.
    Stopped,
}

impl Moment {
    fn wait(self, random: &mut weir_stats::random::Random, mark: &str) {
        match self {
            Self::Random { ms_max } => {
                let until = Instant::now() + Duration::from_micros(random.below(1_000 * ms_max));
                while Instant::now() < until {
                    std::hint::spin_loop();
                }
            }
            Self::Stopped => leftovers::wait_for_stopped(mark),
        }
    }
}

/// Ten kills, or fifty with `WEIR_SLOW_TESTS=1`, each some events into the session and then at this moment.
fn kill_laboratories(role: &str, moment: Moment) {
    let kills = if env::var_os("WEIR_SLOW_TESTS").is_some() { 50 } else { 10 };
    let folder =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("weir-lab-{}-{role}", std::process::id()));
    if folder.exists() {
        std::fs::remove_dir_all(&folder).expect("an earlier run's folder can be removed");
    }
    let mut random = weir_stats::random::Random::seeded(SEED);
    let mut stored = 0;
    for kill in 0..kills {
        let mark = format!("killed-{role}-{kill}");
        let mut laboratory = Command::new(this_program())
            .arg(role)
            .arg(&folder)
            .env(MARK, &mark)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the laboratory starts");
        // Some events into the session, and then a little into the next step.
        let mut events = BufReader::new(laboratory.stdout.take().expect("its output is a pipe")).lines();
        let wanted = usize::try_from(1 + random.below(12)).expect("it is small");
        assert_eq!(events.by_ref().take(wanted).count(), wanted, "kill {kill}: the laboratory ended early");
        moment.wait(&mut random, &mark);
        laboratory.kill().expect("it can be killed");
        laboratory.wait().expect("it can be reaped");
        expect_none(&mark);
        let store = Store::open_read_only(&folder).expect("the store is readable");
        store.check_integrity().expect("the store is whole");
        let blocks = store.blocks().expect("the blocks are readable").len();
        assert!(blocks >= stored, "kill {kill} lost blocks");
        stored = blocks;
    }
    assert!(stored > 0, "no block was ever finished");
    std::fs::remove_dir_all(&folder).expect("the folder can be removed");
}
