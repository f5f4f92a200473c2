//! The roles that this program plays when it starts itself.

use std::{
    cell::RefCell,
    env,
    io::{BufReader, Write, stderr, stdin, stdout},
    net::{IpAddr, Ipv4Addr, TcpListener},
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Stdio, exit},
    rc::Rc,
    sync::{Arc, atomic::AtomicBool},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use weir_lab::{
    fake::NEVER,
    process::{Agent, Facts, ProcessLauncher, RemoteHost, Transport},
    run::{self, Callbacks, Event},
    supervise::{self, Until},
};
use weir_record::{
    load::LoadReport,
    machine::Fingerprint,
    slices::{SliceAnswer, SliceCommand, SliceCounts, SliceSetup},
    spec::{Alternation, ArmSpec, ArmStart, Ready, StudySpec, Subject},
};
use weir_store::NewStudy;

/// Numbers of connections that select the generator's behaviour; in a round it shows in the third slice.
pub const REPORT: u32 = 1;
pub const FAILS: u32 = 2;
pub const HANGS: u32 = 3;
pub const USAGE: u32 = 4;
pub const GARBAGE: u32 = 5;
pub const KILLS_THE_SERVER: u32 = 6;
/// In a round: no connection to the last server.
pub const REFUSED: u32 = 7;
/// In a round: connections open only after servers that work at their start have started.
pub const LATE: u32 = 8;

/// In a round: the last server accepts its connections and answers nothing.
pub const SILENT: u32 = 9;

/// In a round: the report gives the number of a server's untimed slices as missed starts.
pub const COUNTS: u32 = 10;

/// In a round: no connection to any server.
pub const UNREACHED: u32 = 12;

/// In a round: the same, after every other process that the laboratory started was killed.
pub const CUT: u32 = 13;

/// Variable of an agent that makes it seem to be in this network namespace.
pub const APART: &str = "WEIR_TEST_NETWORK";

/// In a round: the first priming takes longer than a generator may, unless its cell lets it wait for an answer.
pub const WAITS: u32 = 11;
const LONG_PRIME: Duration = Duration::from_millis(2_000);

/// How long a server works at its start; the next constant is the time until a late generator has its connections.
const STARTING: Duration = Duration::from_millis(60);
const CONNECTED: Duration = Duration::from_millis(200);

/// Time until a server dies in a round: its slices have begun and are not over.
const IN_THE_ROUND: Duration = Duration::from_millis(150);

/// Plays the role that the words name; `false` if they name none.
pub fn play(words: &[&str]) -> bool {
    match words {
        ["serve", "echo" | "http", "--driver", driver, ..] => serve(driver),
        ["load", "echo", ..] => load(words),
        ["load-slices"] => load_slices(),
        ["agent", "--stdio", "--session", session] => agent(session),
        ["supervise", "--", argv @ ..] => supervised(argv, Until::AllEnded),
        ["supervise", supervise::UNTIL_EXIT, "--", argv @ ..] => supervised(argv, Until::CommandEnded),
        ["listen", port, ..] => listen(port),
        ["listen-with-orphan", port] => {
            start(&["start-lingerer"]).wait().expect("it starts its child and ends");
            listen(port);
        }
        ["listen-with-spinner", port] => {
            start(&["start-spinner"]).wait().expect("it starts its child and ends");
            listen(port);
        }
        ["linger-with-orphan", ..] => linger_with_orphan(),
        ["stops-its-supervisor", ..] => {
            let supervisor = std::os::unix::process::parent_id();
            let supervisor = Pid::from_raw(supervisor.cast_signed()).expect("a process");
            kill_process(supervisor, Signal::STOP).expect("it runs");
            linger_with_orphan();
        }
        ["listen-in-background", port] => drop(start(&["listen", port])),
        ["start-lingerer"] => drop(start(&["linger"])),
        ["start-spinner"] => start_spinner(),
        ["spin"] => spin(),
        ["linger", ..] => linger(),
        ["neighbour", how, address, port] => neighbour(how, &format!("{address} {port}")),
        ["laboratory", folder] => laboratory(Path::new(folder), in_trials()),
        ["laboratory-in-turns", folder] => laboratory(Path::new(folder), in_turns()),
        ["laboratory-of-orphans", folder] => laboratory(Path::new(folder), orphans_in_turns()),
        ["laboratory-elsewhere", folder, cache, blocks] => {
            laboratory_elsewhere(Path::new(folder), cache, blocks)
        }
        ["laboratory-in-setup", folder] => laboratory(Path::new(folder), in_setup()),
        ["laboratory-in-ready", folder] => laboratory(Path::new(folder), in_ready()),
        _ => return false,
    }
    true
}

/// An agent, as the program runs it.
fn agent(session: &str) {
    let weir = env::current_exe().expect("this program has a path");
    let folder = weir.ancestors().nth(2).expect("it lies in a folder of the cache").to_path_buf();
    let facts = || Facts {
        fingerprint: Fingerprint::default(),
        drivers: Vec::new(),
        congestion_controls: Vec::new(),
        reached_at: None,
        addresses: Vec::new(),
        // A test may ask for an agent that seems to be on another network.
        network: env::var(APART).unwrap_or_else(|_| weir_evidence::network::namespace()),
    };
    let interrupt = Arc::new(AtomicBool::new(false));
    let agent = Agent {
        weir,
        folder,
        session: session.to_owned(),
        facts: &facts,
        doctor: &Vec::new,
        interrupt,
        between_rounds: &mut || (),
    };
    if let Err(error) = agent.serve(BufReader::new(stdin()), &mut stdout().lock()) {
        end(1, &error.to_string());
    }
}

fn supervised(argv: &[&str], until: Until) -> ! {
    let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
    match supervise::run(&[], &argv, until) {
        Ok(code) => exit(code.into()),
        Err(error) => end(supervise::EXIT_NOT_STARTED, &format!("weir: {error}")),
    }
}

/// Starts this program in a role, in a separate process group, as a server that leaves its starter does.
fn start(words: &[&str]) -> std::process::Child {
    let program = env::current_exe().expect("this program has a path");
    Command::new(program).args(words).process_group(0).spawn().expect("it starts")
}

/// Starts a process that works on in the background as daemons do: in a separate group, and ignoring SIGHUP.
fn start_spinner() {
    let program = env::current_exe().expect("this program has a path");
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' HUP; exec \"$0\" spin"]).arg(program);
    drop(shell.process_group(0).spawn().expect("it starts"));
}

#[expect(clippy::print_stderr, reason = "the role's program says on standard error why it ends")]
fn end(code: i32, said: &str) -> ! {
    eprintln!("{said}");
    exit(code)
}

fn linger() -> ! {
    loop {
        thread::park();
    }
}

fn spin() -> ! {
    loop {
        std::hint::spin_loop();
    }
}

fn linger_with_orphan() -> ! {
    start(&["start-lingerer"]).wait().expect("it starts its child and ends");
    linger()
}

/// A process beside a server. Unless it fails, it leaves an orphan.
fn neighbour(how: &str, told: &str) {
    match how {
        "dies" => end(3, "no luck"),
        "tells" => end(9, told),
        "leaves" => {
            super::say("ready");
            end(4, "had enough");
        }
        "chatters" => {
            super::say("ready");
            chatter(&mut stderr());
            end(4, "had enough");
        }
        "silent" => {
            super::say("not yet");
            Command::new("sh").args(["-c", "echo still thinking >&2"]).status().expect("a shell");
            linger();
        }
        _ => {
            super::say("ready");
            linger_with_orphan();
        }
    }
}

/// Prints more than a pipe holds, a line at a time.
fn chatter(output: &mut impl Write) {
    const LINES: usize = 4 << 10;
    let line = [&[b'.'; 1_023][..], b"\n"].concat();
    for _ in 0..LINES {
        output.write_all(&line).expect("the laboratory reads it");
    }
}

fn serve(driver: &str) {
    match driver {
        "dies" => end(1, "port in use"),
        "refused" => end(13, "weir: io_uring is switched off"),
        "unknown" => end(2, "there is no driver unknown"),
        "mute" => {
            let line = "still thinking";
            Command::new("sh").args(["-c", &format!("echo {line} >&2")]).status().expect("a shell");
            linger();
        }
        "stubborn" => {
            let script = "trap '' TERM; echo listening on 127.0.0.1:7007; while :; do read word; done";
            let error = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).exec();
            end(1, &error.to_string());
        }
        "dies-in-the-round" => {
            super::say("listening on 127.0.0.1:7007");
            thread::park_timeout(IN_THE_ROUND);
            end(3, "had enough");
        }
        "chatters" => {
            super::say("listening on 127.0.0.1:7007");
            chatter(&mut stdout());
            chatter(&mut stderr());
            end(3, "had enough");
        }
        "spins" => {
            super::say("listening on 127.0.0.1:7007");
            spin();
        }
        "works-to-start" => {
            let end = Instant::now() + STARTING;
            super::say("listening on 127.0.0.1:7007");
            while Instant::now() < end {
                std::hint::spin_loop();
            }
            linger();
        }
        _ => {
            super::say("listening on 127.0.0.1:7007");
            linger();
        }
    }
}

fn option<'a>(words: &[&'a str], name: &str) -> &'a str {
    let at = words.iter().position(|word| *word == name).expect("the option is given");
    words[at + 1]
}

fn load(words: &[&str]) {
    match option(words, "--connections").parse().expect("a number") {
        FAILS => end(1, "out of luck"),
        HANGS => linger(),
        USAGE => end(2, "weir: too many connections"),
        GARBAGE => super::say("not JSON"),
        KILLS_THE_SERVER => {
            let server: i32 = option(words, "--observe-pid").parse().expect("a number");
            let server = Pid::from_raw(server).expect("a process");
            kill_process(server, Signal::KILL).expect("it runs");
            end(1, "connection reset");
        }
        _ => {
            let report = LoadReport {
                target: option(words, "--target").to_owned(),
                seed: option(words, "--seed").parse().expect("a number"),
                messages: 1_000,
                message_bytes: 64,
                bytes_verified: 64_000,
                throughput_per_second: 1_000.0,
                ..LoadReport::default()
            };
            super::say(&serde_json::to_string(&report).expect("a record serialises"));
        }
    }
}

/// The generator of a round: priming costs nothing and slices take their time, until its behaviour shows.
fn load_slices() {
    let mut lines = stdin().lines().map(|line| line.expect("its input is readable"));
    let setup: SliceSetup = parse(&lines.next().expect("it is told what to load"));
    let words: Vec<&str> = setup.loads[0].iter().map(String::as_str).collect();
    let connections: u32 = option(&words, "--connections").parse().expect("a number");
    // The last server accepts no connection in this role.
    let mut opened = vec![connections; setup.loads.len()];
    let mut failures = vec![None; setup.loads.len()];
    if connections == REFUSED
        && let (Some(opened), Some(failure)) = (opened.last_mut(), failures.last_mut())
    {
        (*opened, *failure) = (0, Some("connection refused".to_owned()));
    }
    if connections == CUT {
        kill_siblings();
    }
    if matches!(connections, UNREACHED | CUT) {
        opened.fill(0);
        failures.fill(Some("timed out".to_owned()));
    }
    if connections == LATE {
        take(CONNECTED);
    }
    tell(&SliceAnswer::Ready { opened, failures });
    let (mut primes, mut slices) = (0, 0);
    let mut untimed = vec![0; setup.loads.len()];
    for line in lines {
        match parse(&line) {
            SliceCommand::Prime { target, messages_each } => {
                primes += 1;
                if connections == WAITS && primes == 1 {
                    take(LONG_PRIME);
                }
                let counts = if connections == SILENT && target as usize + 1 == setup.loads.len() {
                    let failure_last = Some("no answer within 5s".to_owned());
                    SliceCounts { failure_last, ..SliceCounts::default() }
                } else {
                    let messages = u64::from(connections) * u64::from(messages_each);
                    SliceCounts { messages, ..SliceCounts::default() }
                };
                tell(&SliceAnswer::Done(counts));
            }
            SliceCommand::Run { length_ns, target, is_timed, .. } => {
                slices += 1;
                untimed[target as usize] += u64::from(!is_timed);
                match connections {
                    FAILS if slices == 3 => end(1, "out of luck"),
                    HANGS if slices == 3 => linger(),
                    GARBAGE if slices == 3 => super::say("not JSON"),
                    _ => {
                        take(Duration::from_nanos(length_ns));
                        let counts = SliceCounts { messages: 100, length_ns, ..SliceCounts::default() };
                        tell(&SliceAnswer::Done(counts));
                    }
                }
            }
            SliceCommand::Finish => {
                let counts = |untimed: &u64| if connections == COUNTS { *untimed } else { 0 };
                let report =
                    |missed_starts: u64| LoadReport { messages: 100, missed_starts, ..LoadReport::default() };
                tell(&SliceAnswer::Finished(untimed.iter().map(counts).map(report).collect()));
                return;
            }
        }
    }
}

/// Kills all other children of the process that started this one.
fn kill_siblings() {
    let (parent, own) = (std::os::unix::process::parent_id(), std::process::id().cast_signed());
    let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    let children = children.expect("the kernel lists children");
    for pid in children.split_whitespace().filter_map(|pid| pid.parse().ok()).filter(|pid: &i32| *pid != own)
    {
        kill_process(Pid::from_raw(pid).expect("a process"), Signal::KILL).expect("it runs");
    }
}

/// Lets time pass without CPU use.
fn take(length: Duration) {
    let end = Instant::now() + length;
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        thread::park_timeout(left);
    }
}

fn parse<T: serde::de::DeserializeOwned>(line: &str) -> T {
    serde_json::from_str(line).expect("a line of the laboratory's")
}

fn tell(answer: &SliceAnswer) {
    super::say(&serde_json::to_string(answer).expect("a record serialises"));
}

fn listen(port: &str) {
    let port = port.parse().expect("a number");
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("the port is free");
    for connection in listener.incoming() {
        drop(connection);
    }
}

/// A foreign server that leaves an orphan, and one of ours.
fn in_trials() -> StudySpec {
    let mut spec = super::foreign(&["listen-with-orphan", "{port}"]);
    spec.arms[1] = ArmSpec {
        name: "own".to_owned(),
        subject: Subject::Weir { driver: "epoll".to_owned(), options: [].into(), arguments: Vec::new() },
        load_options: [].into(),
        baseline: None,
        is_placebo: false,
        warmup_ns: 0,
        start: ArmStart::default(),
    };
    spec
}

/// Servers that are stopped between their slices.
fn in_turns() -> StudySpec {
    let mut spec = super::spec("spins", REPORT);
    spec.cells[0].alternation =
        Some(Alternation { slice_ns: 60_000_000, permutations: 3, prime_messages: 2, evidence: None });
    spec
}

/// The same with a foreign server that works in a process which left its group.
fn orphans_in_turns() -> StudySpec {
    let mut spec = super::foreign(&["listen-with-spinner", "{port}"]);
    spec.cells[0].alternation = in_turns().cells[0].alternation;
    spec
}

/// A server whose setup does not end, with a child that left its group.
fn in_setup() -> StudySpec {
    let mut spec = super::foreign(&["listen", "{port}"]);
    spec.arms[0].start.setup = in_role("linger-with-orphan");
    patient(spec)
}

/// The same with the command that checks whether a server is ready.
fn in_ready() -> StudySpec {
    let mut spec = super::foreign(&["linger", "{port}"]);
    spec.arms[0].start.ready = Ready::Command(in_role("linger-with-orphan"));
    patient(spec)
}

fn in_role(role: &str) -> Vec<String> {
    let program = env::current_exe().expect("this program has a path");
    vec![program.display().to_string(), role.to_owned()]
}

/// Sets long deadlines, so that no trial gives up during a test.
fn patient(mut spec: StudySpec) -> StudySpec {
    let start = &mut spec.arms[0].start;
    (start.command_ns_max, start.ready_ns_max) = (Some(60_000_000_000), Some(60_000_000_000));
    spec
}

/// A session that runs until it is ended.
fn laboratory(folder: &Path, mut spec: StudySpec) {
    spec.cells[0].blocks = 1_000;
    let program = env::current_exe().expect("this program has a path");
    let launcher = ProcessLauncher::new(program, &spec, super::DEADLINES);
    session(folder, spec, launcher);
}

/// A session whose servers run on another host: this machine behind a shell, with a separate cache.
fn laboratory_elsewhere(folder: &Path, cache: &str, blocks: &str) {
    let mut spec = super::foreign(&["listen-with-orphan", "{port}"]);
    spec.cells[0].blocks = blocks.parse().expect("a number");
    spec.cells[0].alternation =
        Some(Alternation { slice_ns: 20_000_000, permutations: 3, prime_messages: 2, evidence: None });
    let cache = format!("XDG_CACHE_HOME={cache}");
    let words = ["env", &cache, "sh", "-c", "\"$0\" \"$@\"; :"].map(str::to_owned).to_vec();
    let way = Transport::command("there", words, Some("there")).expect("a command");
    let host = match RemoteHost::connect(way, &NEVER) {
        Ok(host) => (Rc::new(RefCell::new(host)), IpAddr::V4(Ipv4Addr::LOCALHOST)),
        Err(error) => end(1, &error.to_string()),
    };
    let program = env::current_exe().expect("this program has a path");
    match ProcessLauncher::elsewhere(program, &spec, super::DEADLINES, host, &NEVER) {
        Ok(launcher) => session(folder, spec, launcher),
        Err(error) => end(1, &error.to_string()),
    }
}

fn session(folder: &Path, spec: StudySpec, mut launcher: ProcessLauncher) {
    let mut progress = |event: &Event| super::say(&format!("{event:?}").replace('\n', " "));
    let callbacks = Callbacks { launcher: &mut launcher, interrupt: &NEVER, progress: &mut progress };
    let fingerprint = Fingerprint::default();
    let outcome = if folder.join(weir_store::FILE_NAME).exists() {
        run::resume(folder, &fingerprint, callbacks)
    } else {
        let reproduce = "weir study killed".to_owned();
        run::start(folder, &NewStudy { spec, fingerprint, missing_arms: Vec::new(), reproduce }, callbacks)
    };
    if let Err(error) = outcome {
        end(1, &error.to_string());
    }
}
