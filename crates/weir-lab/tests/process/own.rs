//! A user's own servers: the commands around their start, how they show that they are ready, and servers that ran
//! before the study.

use std::{
    env, fs,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use weir_lab::launch::{LaunchError, Launcher, TrialFailure};
use weir_record::spec::{ArmStart, Ready, RunningServer, StudySpec, Subject};

use super::{failure, foreign, leftovers, roles, round_with, spec, this_program, trial, trial_with};

/// Longest wait for something that happens soon.
const PATIENCE: Duration = Duration::from_secs(10);

/// A folder of one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = env::temp_dir().join(format!("weir-own-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("it can be made");
        Self(folder)
    }

    fn log(&self) -> PathBuf {
        self.0.join("log")
    }

    /// The notes of a start's commands since the last call.
    fn noted(&self) -> String {
        let noted = fs::read_to_string(self.log()).unwrap_or_default();
        let _ = fs::remove_file(self.log());
        noted.replace('\n', " ")
    }

    /// A shell that notes a word and then runs the rest of the line.
    fn noting(&self, word: &str, rest: &str) -> Vec<String> {
        shell(&format!("echo {word} >> '{}'; {rest}", self.log().display()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn shell(line: &str) -> Vec<String> {
    ["sh", "-c", line].map(str::to_owned).to_vec()
}

/// A shell that replaces itself with this program in a role.
fn becoming(line: &str, role: &str) -> Vec<String> {
    shell(&format!("{line} exec '{}' {role}", this_program().display()))
}

fn starting(mut spec: StudySpec, start: ArmStart) -> StudySpec {
    spec.arms[0].start = start;
    spec
}

fn command(argv: Vec<String>, start: ArmStart) -> StudySpec {
    let mut spec = starting(foreign(&[]), start);
    spec.arms[0].subject = Subject::Command { argv };
    spec
}

fn server(reason: &str) -> TrialFailure {
    TrialFailure::Server { reason: reason.to_owned() }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what} did not come");
        thread::yield_now();
    }
}

pub(super) fn what_surrounds_a_server_runs_before_it_and_after_it() {
    let folder = Folder::new("surroundings");
    let around = |setup: &str, cleanup: &str| ArmStart {
        setup: folder.noting("setup", setup),
        cleanup: folder.noting("cleanup", cleanup),
        ..ArmStart::default()
    };
    for server in [foreign(&["listen", "{port}"]), spec("epoll", roles::REPORT)] {
        let report = trial(&starting(server, around("", ""))).expect("it runs").report;
        assert_eq!(
            (report.map(|report| report.messages), folder.noted().as_str()),
            (Ok(1_000), "setup cleanup ")
        );
    }
    let round = starting(spec("epoll", roles::REPORT), around("", ""));
    let round = round_with(&round, super::SLICE, &AtomicBool::new(false)).expect("it runs");
    assert!(round.arms.iter().all(Result::is_ok));
    assert_eq!(folder.noted(), "setup cleanup ", "one of the three has them");
    // A start that fails, a setup that fails, and a cleanup.
    let failed = failure(&starting(spec("dies", roles::REPORT), around("", "")));
    assert_eq!(
        (failed, folder.noted().as_str()),
        (server("exited with status 1: port in use"), "setup cleanup ")
    );
    let failed = failure(&starting(foreign(&["listen", "{port}"]), around("echo no luck; exit 3", "")));
    assert_eq!(
        (failed, folder.noted().as_str()),
        (server("its setup exited with status 3: no luck"), "setup cleanup ")
    );
    let failed =
        failure(&starting(foreign(&["listen", "{port}"]), around("", "echo still busy >&2; exit 4")));
    let reason = server("its cleanup exited with status 4: still busy");
    assert_eq!((failed, folder.noted().as_str()), (reason, "setup cleanup "));
    let absent = ArmStart { setup: vec!["/no/such/program".to_owned()], ..around("", "") };
    let TrialFailure::Server { reason } = failure(&starting(foreign(&["listen", "{port}"]), absent)) else {
        panic!("it cannot start")
    };
    assert!(reason.starts_with("its setup cannot start: /no/such/program: "), "{reason}");
    assert_eq!(folder.noted(), "cleanup ", "what has begun is cleaned up");
    let missing = ArmStart { folder: Some("/no/such/folder".to_owned()), ..around("", "") };
    let failed = failure(&starting(foreign(&["listen", "{port}"]), missing));
    assert_eq!((failed, folder.noted().as_str()), (server("its folder /no/such/folder is not there"), ""));
}

/// The daemon left the process group of the setup, as daemons do. The cleanup can end it only if it still runs.
pub(super) fn a_daemon_that_a_setup_starts_stays_until_its_cleanup() {
    let folder = Folder::new("daemon");
    let [has_left, may_end] = ["has-left", "may-end"].map(|name| folder.0.join(name).display().to_string());
    let daemon = format!("setsid sh -c \"echo > '{has_left}'; read end < '{may_end}'\" >/dev/null 2>&1");
    let setup = format!("mkfifo '{has_left}' '{may_end}'; {daemon} & read left < '{has_left}'");
    let cleanup = format!("echo > '{may_end}'; rm '{has_left}' '{may_end}'");
    let start = ArmStart { setup: shell(&setup), cleanup: shell(&cleanup), ..ArmStart::default() };
    let report = trial(&starting(foreign(&["listen", "{port}"]), start)).expect("it runs").report;
    assert_eq!(report.map(|report| report.messages), Ok(1_000));
}

pub(super) fn what_takes_too_long_is_killed_and_an_interruption_cleans_up() {
    let folder = Folder::new("too-long");
    let program = this_program().display().to_string();
    let lingering = ArmStart {
        setup: folder.noting("setup", &format!("exec '{program}' linger")),
        cleanup: folder.noting("cleanup", ""),
        command_ns_max: Some(300_000_000),
        ..ArmStart::default()
    };
    let failed = failure(&starting(foreign(&["listen", "{port}"]), lingering.clone()));
    let reason = server("its setup took more than 0.3 s and was killed");
    assert_eq!((failed, folder.noted().as_str()), (reason, "setup cleanup "));
    let patient = ArmStart { command_ns_max: Some(60_000_000_000), ..lingering };
    let interrupted = starting(foreign(&["listen", "{port}"]), patient);
    let interrupt = AtomicBool::new(false);
    let outcome = thread::scope(|scope| {
        scope.spawn(|| {
            // Its note may be begun and not written yet.
            until("the setup", || fs::read_to_string(folder.log()).is_ok_and(|text| text == "setup\n"));
            interrupt.store(true, Ordering::Relaxed);
        });
        trial_with(&interrupted, &interrupt)
    });
    assert!(matches!(outcome, Err(LaunchError::Interrupted)), "{outcome:?}");
    assert_eq!(folder.noted(), "setup cleanup ");
}

pub(super) fn a_server_is_ready_when_its_line_comes_or_its_command_says_so() {
    let folder = Folder::new("ready");
    let with = |ready: Ready| ArmStart { ready, ..ArmStart::default() };
    let messages = |spec: &StudySpec| trial(spec).expect("it runs").report.map(|report| report.messages);
    for stream in ["", ">&2"] {
        let saying = becoming(&format!("echo begins; echo it is up now {stream};"), "linger {port}");
        assert_eq!(messages(&command(saying.clone(), with(Ready::Line("is up".to_owned())))), Ok(1_000));
        let failed = failure(&command(saying, with(Ready::Line("is down".to_owned()))));
        let TrialFailure::Server { reason } = failed else { panic!("{failed:?}") };
        assert!(reason.starts_with("wrote no line with \"is down\" within 1.5 s"), "{reason}");
    }
    // Placeholders of the awaited line are filled in as in a command.
    let saying = becoming("echo up at {port};", "linger {port}");
    assert_eq!(messages(&command(saying, with(Ready::Line("up at {port}".to_owned())))), Ok(1_000));
    let mark = folder.0.join("mark");
    let marking = becoming(&format!("echo x > '{}';", mark.display()), "linger {port}");
    let asking = Ready::Command(shell(&format!("test -e '{}'", mark.display())));
    assert_eq!(messages(&command(marking.clone(), with(asking))), Ok(1_000));
    let never = Ready::Command(shell("echo not yet >&2; exit 7"));
    let reason = "was not ready within 1.5 s: its ready command exited with status 7: not yet";
    assert_eq!(failure(&command(marking.clone(), with(never))), server(reason));
    let hanging = Ready::Command(vec![this_program().display().to_string(), "linger".to_owned()]);
    let short = ArmStart { ready_ns_max: Some(200_000_000), ..with(hanging) };
    let reason = "was not ready within 0.2 s: its ready command did not end";
    assert_eq!(failure(&command(marking.clone(), short)), server(reason));
    let none = with(Ready::Command(vec!["/no/such/program".to_owned()]));
    let TrialFailure::Server { reason } = failure(&command(marking, none)) else { panic!("it cannot start") };
    assert!(reason.starts_with("its ready command cannot start: /no/such/program"), "{reason}");
}

pub(super) fn a_server_has_its_environment_and_its_folder() {
    let folder = Folder::new("folder");
    fs::write(folder.0.join("here"), "").expect("it can be written");
    let listening = becoming("test -e here || exit 5;", "listen \"$PORT\" {cpus}");
    let start = |folder: &Path| ArmStart {
        environment: [("PORT".to_owned(), "{port}".to_owned())].into(),
        folder: Some(folder.display().to_string()),
        ..ArmStart::default()
    };
    let report = trial(&command(listening.clone(), start(&folder.0))).expect("it runs").report;
    assert_eq!(report.map(|report| report.messages), Ok(1_000));
    let failed = failure(&command(listening, start(&env::temp_dir())));
    assert_eq!(failed, server("exited with status 5"));
}

pub(super) fn a_program_is_that_on_the_path_of_its_arm() {
    let folder = Folder::new("path");
    let bin = folder.0.join("bin");
    fs::create_dir(&bin).expect("it can be made");
    std::os::unix::fs::symlink(this_program(), bin.join("weir-own-server")).expect("it can be linked");
    let start = |path: &str| ArmStart {
        environment: [("PATH".to_owned(), path.to_owned())].into(),
        folder: Some(folder.0.display().to_string()),
        ..ArmStart::default()
    };
    let argv = ["weir-own-server", "listen", "{port}"].map(str::to_owned).to_vec();
    for path in ["bin", &bin.display().to_string()] {
        let spec = command(argv.clone(), start(path));
        let launcher = weir_lab::process::ProcessLauncher::new(this_program(), &spec, super::DEADLINES);
        assert_eq!(launcher.missing(&spec), []);
        let outcome = trial(&spec).expect("it runs");
        assert_eq!(outcome.report.map(|report| report.messages), Ok(1_000));
        let file = bin.join("weir-own-server").display().to_string();
        assert_eq!(outcome.programs.keys().collect::<Vec<_>>(), [&file]);
        assert_eq!(launcher.programs(&spec).keys().collect::<Vec<_>>(), [&file]);
    }
}

/// This program as a server that the laboratory neither starts nor ends.
struct Before(Child, String);

impl Before {
    fn new() -> Self {
        let free =
            TcpListener::bind(("127.0.0.1", 0)).expect("a free port").local_addr().expect("it has one");
        let port = free.port().to_string();
        let child = Command::new(this_program()).args(["listen", &port]).spawn().expect("it starts");
        until("the server", || TcpStream::connect(free).is_ok());
        Self(child, free.to_string())
    }

    fn spec(&self, generator: u32, pid: Option<u32>) -> StudySpec {
        let mut spec = spec("epoll", generator);
        let server = RunningServer { address: self.1.clone(), pid, cgroup: None };
        spec.arms[0].subject = Subject::Running(server);
        spec
    }

    fn runs(&mut self) -> bool {
        self.0.try_wait().expect("it is a child").is_none()
    }

    fn reason(&self) -> TrialFailure {
        let pid = self.0.id();
        server(&format!(
            "during the load it lost its server: process {pid}, which ran before the study, has ended"
        ))
    }
}

impl Drop for Before {
    fn drop(&mut self) {
        // Fails only if it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(super) fn a_server_that_ran_before_is_loaded_and_goes_on() {
    let mut before = Before::new();
    let pid = before.0.id();
    for named in [None, Some(pid)] {
        let spec = before.spec(roles::REPORT, named);
        let report = trial(&spec).expect("it runs").report.expect("it reports");
        assert_eq!((report.messages, &report.target), (1_000, &before.1));
        let launcher = weir_lab::process::ProcessLauncher::new(this_program(), &spec, super::DEADLINES);
        let found = &launcher.running()["epoll"];
        assert_eq!((found.pid, found.found_by_port), (Some(pid), named.is_none()));
        assert_eq!(found.program, this_program().display().to_string());
        let round = round_with(&spec, super::SLICE, &AtomicBool::new(false)).expect("it runs");
        let slices: Vec<usize> =
            round.arms.iter().map(|arm| arm.as_ref().map_or(0, |arm| arm.slices.len())).collect();
        assert_eq!(slices, [3, 3, 3]);
        assert!(before.runs());
    }
}

pub(super) fn a_server_that_ran_before_and_ends_is_named() {
    let before = Before::new();
    assert_eq!(failure(&before.spec(roles::KILLS_THE_SERVER, None)), before.reason());
    let mut before = Before::new();
    let both = {
        let mut spec = before.spec(roles::REPORT, None);
        // The first arm is the one that runs twice in the round.
        spec.arms.swap(0, 1);
        spec
    };
    let (interrupt, killed) = (AtomicBool::new(false), before.reason());
    let round = thread::scope(|scope| {
        scope.spawn(|| {
            leftovers::wait_for_any();
            before.0.kill().expect("it runs");
            before.0.wait().expect("it ends");
        });
        round_with(&both, Duration::from_millis(100), &interrupt)
    });
    let failures: Vec<Option<TrialFailure>> =
        round.expect("the session goes on").arms.into_iter().map(Result::err).collect();
    assert_eq!(failures[1], None, "the other arm goes on");
    // It may have ended before its turn began.
    for failure in [&failures[0], &failures[2]] {
        let Some(TrialFailure::Server { reason }) = failure else { panic!("{failures:?}") };
        let TrialFailure::Server { reason: expected } = &killed else { panic!("it is a server's") };
        assert!(expected.ends_with(reason) || reason == expected, "{reason}");
    }
}
