//! Servers on another host: the transport is a shell on this machine, and this program plays the agent, copied and
//! started as a user's is.

use std::{
    cell::RefCell,
    fs,
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
    rc::Rc,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use weir_lab::{
    launch::{LaunchError, Launcher, RoundOutcome, RoundRequest, Sliced, TrialFailure},
    process::{ProcessLauncher, RemoteHost, Transport},
};
use weir_record::spec::{Alternation, StudySpec};

use super::{
    DEADLINES, SEED, SLICE, foreign,
    leftovers::{MARK, expect_none, wait_for_any},
    roles, spec, this_program,
};

/// Longer than a kill takes.
const LONG_SLICE: Duration = Duration::from_millis(400);

/// A host with a separate cache and mark.
struct There {
    mark: String,
    cache: PathBuf,
}

impl There {
    fn new(name: &str) -> Self {
        let mark = format!("elsewhere-{name}-{}", std::process::id());
        let cache = std::env::temp_dir().join(format!("weir-{mark}"));
        let _ = fs::remove_dir_all(&cache);
        fs::create_dir_all(&cache).expect("a folder can be made");
        Self { mark, cache }
    }

    /// A transport that becomes the agent.
    fn way(&self) -> Transport {
        self.way_with(&[])
    }

    fn way_with(&self, more: &[&str]) -> Transport {
        let mark = format!("{MARK}={}", self.mark);
        let cache = format!("XDG_CACHE_HOME={}", self.cache.display());
        let words = ["env", &mark, &cache].into_iter().chain(more.iter().copied());
        Transport::command("there", words.map(str::to_owned).collect(), Some("there")).expect("a command")
    }

    fn host(&self, way: Transport) -> Rc<RefCell<RemoteHost>> {
        let host = RemoteHost::connect(way, &AtomicBool::new(false)).expect("it is there");
        Rc::new(RefCell::new(host))
    }

    /// Checks that no process runs there any more, and that only the program is left.
    fn expect_clean(&self) {
        expect_none(&self.mark);
        let left: Vec<String> = fs::read_dir(self.cache.join("weir"))
            .expect("it was made")
            .map(|entry| entry.expect("it is readable").file_name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with("run-"))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

impl Drop for There {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.cache);
    }
}

fn in_turns(mut spec: StudySpec) -> StudySpec {
    let slice_ns = SLICE.as_nanos().try_into().expect("a short slice");
    let turns = Alternation { slice_ns, permutations: 3, prime_messages: 2, evidence: None };
    spec.cells.iter_mut().for_each(|cell| cell.alternation = Some(turns));
    spec
}

fn launcher(spec: &StudySpec, host: &Rc<RefCell<RemoteHost>>) -> ProcessLauncher {
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let host = (Rc::clone(host), address);
    ProcessLauncher::elsewhere(this_program(), spec, DEADLINES, host, &calm()).expect("it is told")
}

fn round(
    launcher: &mut ProcessLauncher,
    spec: &StudySpec,
    (slice, evidence): (Duration, Option<Duration>),
    interrupt: &AtomicBool,
) -> Result<RoundOutcome, LaunchError> {
    let nanoseconds = |length: Duration| -> u64 { length.as_nanos().try_into().expect("a short slice") };
    launcher.run_round(&RoundRequest {
        cell: &spec.cells[0],
        alternation: Alternation {
            slice_ns: nanoseconds(slice),
            permutations: 3,
            prime_messages: 2,
            evidence: None,
        },
        evidence_slice_ns: evidence.map(nanoseconds),
        evidence_pairs: 1,
        evidence_by_group: false,
        evidence_strace: false,
        arms: &[&spec.arms[1], &spec.arms[0], &spec.arms[1]],
        orders: &[vec![0, 1, 2], vec![2, 1, 0], vec![1, 0, 2]],
        server_cpus: &[],
        load_cpus: &[],
        neighbours: &spec.neighbours,
        seed: SEED,
        interrupt,
    })
}

fn calm() -> AtomicBool {
    AtomicBool::new(false)
}

fn arms(outcome: Result<RoundOutcome, LaunchError>) -> Vec<Sliced> {
    let arms = outcome.expect("the session goes on").arms;
    arms.into_iter().map(|arm| arm.expect("it was loaded")).collect()
}

pub fn a_round_on_another_host_is_as_one_here() {
    let there = There::new("round");
    let mut spec = in_turns(spec("epoll", roles::REPORT));
    spec.arms[1].name = "other".to_owned();
    let host = there.host(there.way());
    assert!(host.borrow().delay() > Duration::ZERO);
    let mut launcher = launcher(&spec, &host);
    for _ in 0..2 {
        let outcome = round(&mut launcher, &spec, (SLICE, Some(Duration::from_millis(70))), &calm());
        expect_none("");
        let program = |programs: &std::collections::BTreeMap<String, String>| programs.keys().next().cloned();
        let programs = &outcome.as_ref().expect("it ran").programs;
        let copied =
            programs.iter().map(|it| program(it).expect("a program")).all(|it| it.contains("weir-elsewhere"));
        assert!(copied, "{programs:?}");
        let arms = arms(outcome);
        let places: Vec<Vec<(u32, u32)>> = arms
            .iter()
            .map(|arm| arm.slices.iter().map(|slice| (slice.permutation, slice.place)).collect())
            .collect();
        assert_eq!(places, [[(0, 0), (1, 2), (2, 1)], [(0, 1), (1, 1), (2, 0)], [(0, 2), (1, 0), (2, 2)]]);
        assert!(arms.iter().all(|arm| arm.report.observed.is_some() && arm.report.messages == 100));
        // The baseline's second server gives no evidence.
        assert_eq!(arms.iter().map(|arm| arm.evidence.is_empty()).collect::<Vec<_>>(), [false, false, true]);
    }
    drop((launcher, host));
    there.expect_clean();
}

pub fn a_foreign_server_elsewhere_and_its_orphans_are_ended() {
    let there = There::new("foreign");
    let spec = in_turns(foreign(&["listen-with-orphan", "{port}"]));
    let host = there.host(there.way());
    let mut launcher = launcher(&spec, &host);
    assert_eq!(arms(round(&mut launcher, &spec, (SLICE, None), &calm())).len(), 3);
    expect_none("");
    drop((launcher, host));
    there.expect_clean();
}

/// Kills the transport's process while a round runs. The agent is that process, or below it.
fn lost_in_a_round(name: &str, more: &[&str]) {
    let there = There::new(name);
    let spec = in_turns(foreign(&["listen-with-orphan", "{port}"]));
    let host = there.host(there.way_with(more));
    let mut launcher = launcher(&spec, &host);
    let pid = host.borrow().pid().expect("it is connected");
    let outcome = thread::scope(|scope| {
        scope.spawn(move || {
            wait_for_any();
            kill_process(Pid::from_raw(pid.cast_signed()).expect("a process"), Signal::KILL)
                .expect("it runs");
        });
        round(&mut launcher, &spec, (LONG_SLICE, None), &calm())
    });
    for arm in outcome.expect("the session goes on").arms {
        let Err(TrialFailure::Host { reason }) = arm else { panic!("it was lost: {arm:?}") };
        assert!(reason.starts_with("there: ") && reason.contains("was killed by signal 9"), "{reason}");
    }
    expect_none(&there.mark);
    // The next round connects again.
    assert_eq!(arms(round(&mut launcher, &spec, (SLICE, None), &calm())).len(), 3);
    drop((launcher, host));
    there.expect_clean();
}

pub fn an_agent_that_is_killed_costs_its_round_and_leaves_nothing() {
    lost_in_a_round("agent", &[]);
}

pub fn a_way_that_is_lost_costs_its_round_and_leaves_nothing() {
    lost_in_a_round("way", &["sh", "-c", "\"$0\" \"$@\"; :"]);
}

/// The agent is stopped in a separate session, so that it neither sees the end of its input nor ends with the
/// transport. It is lost between two rounds, so the next round connects again and none is lost.
pub fn an_agent_that_does_not_notice_is_ended_by_the_next_of_its_session() {
    let there = There::new("partition");
    let spec = in_turns(spec("epoll", roles::REPORT));
    let host = there.host(there.way_with(&["sh", "-c", "setsid \"$0\" \"$@\"; :"]));
    let mut launcher = launcher(&spec, &host);
    let lock = fs::read_to_string(there.cache.join("weir").join("lock")).expect("an agent holds it");
    let agent: i32 = lock.split_whitespace().last().and_then(|pid| pid.parse().ok()).expect("its process");
    let signal = |pid: i32, signal: Signal| {
        kill_process(Pid::from_raw(pid).expect("a process"), signal).expect("it runs");
    };
    signal(agent, Signal::STOP);
    signal(host.borrow().pid().expect("it is connected").cast_signed(), Signal::KILL);
    assert_eq!(arms(round(&mut launcher, &spec, (SLICE, None), &calm())).len(), 3);
    drop((launcher, host));
    there.expect_clean();
}

pub fn a_host_that_does_not_come_back_ends_the_session() {
    let there = There::new("gone");
    let spec = in_turns(spec("epoll", roles::REPORT));
    let flag = there.cache.join("open");
    fs::write(&flag, "").expect("it can be written");
    let script =
        format!("[ -e {} ] || {{ echo no route >&2; exit 255; }}; exec \"$0\" \"$@\"", flag.display());
    let host = there.host(there.way_with(&["sh", "-c", &script]));
    let mut launcher = launcher(&spec, &host);
    let pid = host.borrow().pid().expect("it is connected");
    fs::remove_file(&flag).expect("it is there");
    kill_process(Pid::from_raw(pid.cast_signed()).expect("a process"), Signal::KILL).expect("it runs");
    let error = round(&mut launcher, &spec, (SLICE, None), &calm()).expect_err("it is gone").to_string();
    assert!(error.contains("there: the way to it exited with status 255: no route"), "{error}");
    expect_none(&there.mark);
}

/// All arms of a round whose host was lost, with the reason.
fn lost(outcome: Result<RoundOutcome, LaunchError>) -> String {
    let reason = |arm: Result<Sliced, TrialFailure>| match arm {
        Err(TrialFailure::Host { reason }) => reason,
        other => panic!("it was lost: {other:?}"),
    };
    let mut reasons: Vec<String> =
        outcome.expect("the session goes on").arms.into_iter().map(reason).collect();
    reasons.dedup();
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    reasons.swap_remove(0)
}

pub fn a_host_that_is_lost_while_connections_open_is_blamed() {
    for (role, said) in [
        (roles::CUT, "there: the way to it was killed by signal 9"),
        (roles::UNREACHED, "there: its servers run and none can be reached from here: accepted 0 of 12"),
    ] {
        let there = There::new(&format!("unreached-{role}"));
        let spec = in_turns(spec("epoll", role));
        let host = there.host(there.way());
        let mut launcher = launcher(&spec, &host);
        let reason = lost(round(&mut launcher, &spec, (SLICE, None), &calm()));
        assert!(reason.contains(said), "{reason}");
        drop((launcher, host));
        expect_none(&there.mark);
    }
}

pub fn a_wrong_answer_costs_its_round() {
    // The first would be an index outside of the round, the second a trial less.
    for (name, change, said) in [
        (
            "more",
            "s/\"arms\":\\[{\"Ok\"/\"arms\":[{\"Ok\":{\"address\":\"127.0.0.1:1\",\"is_process\":true}},{\"Ok\"/",
            "asked for 3 servers, and answered for 4",
        ),
        ("fewer", "s/\"programs\":\\[.*\\]/\"programs\":[]/", "for 3 and for files of 0"),
        ("another", "s/{\"totals\":\\[.*\\]}/\"done\"/", "it answered another command"),
        ("none", "s/\"programs\":\\[.*/\"programs\":[/", "none of ours"),
    ] {
        let there = There::new(&format!("wrong-{name}"));
        let spec = in_turns(spec("epoll", roles::REPORT));
        let script = format!("\"$0\" \"$@\" | sed -u '{change}'");
        let host = there.host(there.way_with(&["sh", "-c", &script]));
        let mut launcher = launcher(&spec, &host);
        let reason = lost(round(&mut launcher, &spec, (SLICE, None), &calm()));
        assert!(reason.starts_with("there: ") && reason.contains(said), "{name}: {reason}");
        drop((launcher, host));
        there.expect_clean();
    }
}

pub fn what_a_host_says_moves_no_cursor() {
    let there = There::new("escapes");
    let script = "printf 'a\\033[2Jb\\n'; printf 'no \\033]0;route\\007\\n' >&2; exit 3";
    let way = there.way_with(&["sh", "-c", script]);
    let error = RemoteHost::connect(way, &calm()).expect_err("there is no agent").to_string();
    for words in ["no \\u{1b}]0;route\\u{7}", "it said: a\\u{1b}[2Jb"] {
        assert!(error.contains(words), "no {words:?}: {error:?}");
    }
    let script = "printf 'odd \\033[31m\\n' >&2; exec \"$0\" \"$@\"";
    let host = there.host(there.way_with(&["sh", "-c", script]));
    let said = host.borrow_mut().take_said();
    assert_eq!(said, ["there: odd \\u{1b}[31m"]);
    drop(host);
    there.expect_clean();
}

/// The load would reach this machine, and its answers would be taken for those of the other.
pub fn an_address_that_leads_back_is_refused_unless_the_network_is_shared() {
    let there = There::new("back");
    let host = there.host(there.way_with(&[&format!("{}=another", roles::APART)]));
    let spec = in_turns(spec("epoll", roles::REPORT));
    let own = weir_evidence::network::own_addresses();
    let own = own.iter().map(IpAddr::to_string);
    for address in ["127.0.0.1", "127.9.9.9", "0.0.0.0", "::1"].map(str::to_owned).into_iter().chain(own) {
        let host = (Rc::clone(&host), address.parse().expect("an address"));
        let launcher = ProcessLauncher::elsewhere(this_program(), &spec, DEADLINES, host, &calm());
        let refused = launcher.expect_err("it leads back").to_string();
        for words in
            [&format!("--server-address {address} leads back"), "an address of there that this machine"]
        {
            assert!(refused.contains(words), "no {words:?}: {refused}");
        }
    }
    drop(host);
    // Both sides have one loopback here, as all other tests of this file assume.
    let host = there.host(there.way());
    drop(launcher(&spec, &host));
    drop(host);
    there.expect_clean();
}

pub fn an_interrupted_round_elsewhere_leaves_nothing() {
    let there = There::new("interrupt");
    let spec = in_turns(foreign(&["listen-with-orphan", "{port}"]));
    let host = there.host(there.way());
    let mut launcher = launcher(&spec, &host);
    let interrupt = AtomicBool::new(false);
    let outcome = thread::scope(|scope| {
        scope.spawn(|| {
            wait_for_any();
            interrupt.store(true, Ordering::Relaxed);
        });
        round(&mut launcher, &spec, (LONG_SLICE, None), &interrupt)
    });
    assert!(matches!(outcome, Err(LaunchError::Interrupted)), "{outcome:?}");
    expect_none("");
    drop((launcher, host));
    there.expect_clean();
}

pub fn one_study_at_a_time_has_a_host() {
    let there = There::new("busy");
    let first = there.host(there.way());
    let refused = RemoteHost::connect(there.way(), &calm()).expect_err("it is taken").to_string();
    assert!(
        refused.starts_with("there: another study or load uses this host: its agent is process "),
        "{refused}"
    );
    drop(first);
    drop(there.host(there.way()));
    there.expect_clean();
}

pub fn what_a_host_says_instead_is_part_of_the_error() {
    let there = There::new("noise");
    let refused = |more: &[&str]| {
        let error = RemoteHost::connect(there.way_with(more), &calm()).expect_err("there is no agent");
        error.to_string()
    };
    let noisy = refused(&["sh", "-c", "echo Welcome to b; echo no such user >&2; exit 3"]);
    for words in ["there: ", "exited with status 3: no such user", "before that it said: Welcome to b"] {
        assert!(noisy.contains(words), "no {words:?}: {noisy}");
    }
    let absent = refused(&["/nowhere/ssh"]);
    assert!(absent.contains("exited with status 127"), "{absent}");
    // A host whose `uname` reports another machine.
    let bin = there.cache.join("bin");
    fs::create_dir_all(&bin).expect("a folder can be made");
    let uname = bin.join("uname");
    fs::write(&uname, "#!/bin/sh\ncase $1 in -s) echo Linux ;; *) echo pdp11 ;; esac\n")
        .expect("it can be written");
    let made = std::process::Command::new("chmod").arg("755").arg(&uname).status();
    assert!(made.expect("chmod").success());
    let path = format!("PATH={}:/usr/bin:/bin", bin.display());
    let other = refused(&[&path]);
    assert!(other.contains("it is Linux on pdp11") && other.contains("with a weir built for it"), "{other}");
    assert!(!there.cache.join("weir").join("weir").exists());
    expect_none(&there.mark);
}

pub fn what_cannot_be_run_elsewhere_is_refused() {
    let there = There::new("refused");
    let host = there.host(there.way());
    let whole = spec("epoll", roles::REPORT);
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let tell = |spec: &StudySpec, address: IpAddr| {
        let host = (Rc::clone(&host), address);
        let launcher = ProcessLauncher::elsewhere(this_program(), spec, DEADLINES, host, &calm());
        launcher.expect_err("it cannot").to_string()
    };
    let refused = tell(&whole, address);
    assert!(refused.contains("do not take turns"), "{refused}");
    // TEST-NET-1 (RFC 5737) is assigned to no host.
    let refused = tell(&in_turns(whole), IpAddr::V4(Ipv4Addr::new(192, 0, 2, 77)));
    assert_eq!(refused, "there: 192.0.2.77 is not one of its addresses");
    drop(host);
    there.expect_clean();
}
