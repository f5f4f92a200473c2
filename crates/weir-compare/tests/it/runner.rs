//! Runs on the real kernel: their cost, their ends, and that nothing of them stays. The test program itself is the
//! launcher, and the program of some runs, when a variable names a role.

use std::{
    env,
    ffi::OsString,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open},
};
use weir_compare::run::{
    CpuSource, NAMES_LEFT_MAX, OutputTo, RunEnd, RunError, RunOutcome, RunSpec, Runner, TAIL_BYTES_MAX,
    launcher_main,
};

/// The variable that names the role of this program when it is not the tests.
const ROLE: &str = "WEIR_TEST_ROLE";

/// CPU time that a role uses, so that hundreds of clock ticks and any machine's noise are small against it.
pub const SPIN_MS: u64 = 60;

/// Longest run of a test that is not about the limit.
const LIMIT: Duration = Duration::from_secs(120);

/// Not a test itself: the program that the other tests start.
#[test]
fn roles_of_other_tests() {
    let Some(role) = env::var(ROLE).ok() else { return };
    match role.split_once(' ').unwrap_or((&role, "")) {
        ("launcher", _) => launcher_main().expect("the tests are at the other end"),
        ("spin", milliseconds) => spin(milliseconds.parse().expect("a number")),
        ("spin-and-stay", fifo) => {
            spin(SPIN_MS);
            fs::write(fifo, format!("{}\n", std::process::id())).expect("somebody reads it");
            loop {
                thread::park();
            }
        }
        ("parent", fifo) => {
            let mut runner = runner(None);
            let stays = shell(&format!("echo $$ > {fifo}; exec tail -f /dev/null"));
            let outcome = runner.run(&stays, &AtomicBool::new(false));
            panic!("the parent is killed before: {outcome:?}");
        }
        ("holding", places) => {
            let (fifo, folder) = places.split_once(' ').expect("two places");
            let mut runner = runner(None);
            runner.hold_folder(Path::new(folder)).expect("the launcher lives");
            let stays = shell(&format!("echo $$ > {fifo}; exec tail -f /dev/null"));
            let outcome = runner.run(&stays, &AtomicBool::new(false));
            panic!("it is killed before: {outcome:?}");
        }
        other => panic!("no such role: {other:?}"),
    }
}

/// Uses CPU until this process has used the given time since its fork, in user mode.
fn spin(milliseconds: u64) {
    let mut sum = 0_u64;
    while weir_sys::clock::process_cpu_ns(0).expect("the own clock") < milliseconds * 1_000_000 {
        for _ in 0..10_000 {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(7));
        }
    }
}

/// The words that start this program in a role.
pub fn role(role: &str) -> Vec<OsString> {
    let own = env::current_exe().expect("this program has a path");
    let words = ["--exact", "runner::roles_of_other_tests", "--nocapture", "--test-threads=1"];
    let start = [OsString::from("env"), format!("{ROLE}={role}").into(), own.into_os_string()];
    start.into_iter().chain(words.map(OsString::from)).collect()
}

pub(crate) fn runner(source: Option<CpuSource>) -> Runner {
    Runner::start(&role("launcher"), source).expect("a launcher starts")
}

/// A runner for each source of CPU time of this machine. Prints the sources that it lacks.
pub fn runners() -> Vec<Runner> {
    let started = CpuSource::ALL.map(|source| match Runner::start(&role("launcher"), Some(source)) {
        Ok(runner) => Some(runner),
        Err(error) => {
            skipped(&format!("{}: {error}", source.name()));
            None
        }
    });
    let runners: Vec<Runner> = started.into_iter().flatten().collect();
    assert!(!runners.is_empty(), "the last source needs nothing");
    runners
}

#[expect(clippy::print_stdout, reason = "says why a test, or a part of it, was skipped")]
pub(crate) fn skipped(why: &str) {
    println!("skipped: {why}");
}

pub(crate) fn spec(words: Vec<OsString>) -> RunSpec {
    RunSpec {
        words,
        environment: Vec::new(),
        folder: None,
        input: None,
        output: OutputTo::Digest,
        limit: LIMIT,
    }
}

pub(crate) fn shell(script: &str) -> RunSpec {
    spec(["sh", "-c", script].map(OsString::from).to_vec())
}

fn run(runner: &mut Runner, spec: &RunSpec) -> RunOutcome {
    runner.run(spec, &AtomicBool::new(false)).expect("it can be started")
}

fn refusal(runner: &mut Runner, spec: &RunSpec) -> RunError {
    runner.run(spec, &AtomicBool::new(false)).expect_err("it cannot be run")
}

/// A folder of a test, removed with what is in it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("weir-runner-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("it can be made");
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A named pipe: a reader waits for a writer.
    fn fifo(&self) -> String {
        let path = self.file("fifo");
        let status = Command::new("mkfifo").arg(&path).status().expect("coreutils are everywhere");
        assert!(status.success());
        path.to_str().expect("a plain name").to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Leftovers are harmless.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Waits until a process is gone. A process that stays hangs the test, which shows the defect as well.
pub fn await_end_of(process: u32) {
    let pid = Pid::from_raw(i32::try_from(process).expect("a process number")).expect("not zero");
    if let Ok(life) = pidfd_open(pid, PidfdFlags::empty()) {
        poll(&mut [PollFd::new(&life, PollFlags::IN)], None).expect("it ends");
    }
}

fn is_alive(process: u32) -> bool {
    let line = weir_sys::process_stat::read(process);
    let stat = line.as_deref().and_then(weir_sys::process_stat::ProcessStat::parse);
    stat.is_some_and(|stat| !stat.has_ended())
}

fn numbers(text: &str) -> Vec<u32> {
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn cpu_is_what_a_program_used_by_its_own_clock_from_every_source() {
    for mut runner in runners() {
        let source = runner.cpu_source();
        // Long enough that the start of this program is small against it, on any busy machine.
        for milliseconds in [5 * SPIN_MS, 10 * SPIN_MS] {
            let outcome = run(&mut runner, &spec(role(&format!("spin {milliseconds}"))));
            assert_eq!(outcome.end, RunEnd::Exited(0), "{outcome:?}");
            // Its clock began at the fork; after its last look at the clock only its exit remains.
            let used = outcome.cost.cpu_ns() + outcome.launch.cpu_ns + 2 * source.resolution_ns();
            let spun = milliseconds * 1_000_000;
            assert!(used >= spun, "{source:?}: {outcome:?}");
            assert!(used < spun + spun / 3, "{source:?}: {outcome:?}");
            assert!(
                outcome.cost.user_ns > outcome.cost.system_ns,
                "{source:?}: it spins in user mode: {outcome:?}"
            );
            assert!(outcome.cost.wall_ns > 0 && outcome.launch.wall_ns > 0, "{outcome:?}");
        }
    }
}

#[test]
fn a_process_that_outlives_the_command_is_counted_named_and_killed() {
    for mut runner in runners() {
        let source = runner.cpu_source();
        let folder = Folder::new(&format!("outlives-{source:?}"));
        let fifo = folder.fifo();
        let stays = role(&format!("spin-and-stay {fifo}"));
        // The inner shell ends at once, so that its child is an orphan.
        let script = format!("( \"$@\" & ) ; read -r pid < {fifo}; echo $pid; exit 3");
        let words: Vec<OsString> =
            ["sh", "-c", &script, "sh"].into_iter().map(OsString::from).chain(stays).collect();
        let outcome = run(&mut runner, &spec(words));
        assert_eq!((outcome.end, outcome.children_left), (RunEnd::Exited(3), 1), "{source:?}: {outcome:?}");
        assert_eq!(outcome.children_left_names.len(), 1, "{outcome:?}");
        let left = *numbers(&outcome.stdout.tail).last().expect("its number");
        assert!(!is_alive(left), "{source:?}: {left} lives");
        assert!(outcome.cost.cpu_ns() >= SPIN_MS * 1_000_000, "{source:?}: its CPU counts: {outcome:?}");
    }
}

#[test]
fn of_many_that_outlive_the_command_all_are_counted_and_a_few_named() {
    let mut runner = runner(None);
    let many = NAMES_LEFT_MAX + 2;
    let script =
        format!("i=0; while [ $i -lt {many} ]; do (exec tail -f /dev/null) & i=$((i+1)); done; exit 0");
    let outcome = run(&mut runner, &shell(&script));
    assert_eq!((outcome.children_left as usize, outcome.children_left_names.len()), (many, NAMES_LEFT_MAX));
    // The pipe is closed when the child is about to be gone; a busy machine may have run it late.
    let folder = Folder::new("leaves");
    let fifo = folder.fifo();
    let outcome = run(&mut runner, &shell(&format!("(exec 3> {fifo}) & cat {fifo}; exit 0")));
    assert_eq!(
        (outcome.children_left, outcome.end),
        (0, RunEnd::Exited(0)),
        "who leaves by itself is no finding"
    );
}

#[test]
fn a_run_beyond_its_limit_is_killed_with_all_that_it_started() {
    for mut runner in runners() {
        let script =
            "trap '' TERM HUP INT; tail -f /dev/null & (setsid tail -f /dev/null &); echo $$ $!; wait";
        let endless = RunSpec { limit: Duration::from_secs(1), ..shell(script) };
        let outcome = run(&mut runner, &endless);
        assert_eq!((outcome.end, outcome.children_left), (RunEnd::Overran, 0), "{outcome:?}");
        for process in numbers(&outcome.stdout.tail) {
            assert!(!is_alive(process), "{process} lives");
        }
        assert!(children_of(runner.launcher()).is_empty(), "nothing is below the launcher");
        assert_eq!(run(&mut runner, &shell("exit 0")).end, RunEnd::Exited(0), "the next one is as usual");
    }
}

fn children_of(process: u32) -> Vec<u32> {
    let family = weir_evidence::process::family_of(process).expect("the system lists processes");
    family.into_iter().filter(|pid| *pid != process && is_alive(*pid)).collect()
}

#[test]
fn output_without_end_is_hashed_and_takes_no_memory() {
    let mut runner = runner(None);
    let launcher = runner.launcher();
    let peak_bytes = || {
        let status = fs::read_to_string(format!("/proc/{launcher}/status")).expect("it lives");
        let line =
            status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("every process has one");
        let kilobytes = line.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
        kilobytes.expect("a number") << 10
    };
    run(&mut runner, &shell("head -c 1000000 /dev/zero"));
    let before = peak_bytes();
    let outcome = run(&mut runner, &shell("head -c 1000000000 /dev/zero; echo the end >&2"));
    assert_eq!((outcome.stdout.bytes, outcome.stderr.bytes), (1_000_000_000, 8));
    assert_eq!(outcome.stdout.tail.len(), TAIL_BYTES_MAX);
    assert_eq!(outcome.stderr.tail, "the end\n");
    let grown = peak_bytes() - before;
    assert!(grown < 8 << 20, "{grown} bytes");
}

#[test]
fn equal_outputs_are_equal_and_others_are_not() {
    let mut runner = runner(None);
    let mut of = |script: &str| run(&mut runner, &shell(script)).stdout;
    assert_eq!(of("echo a; echo b"), of("printf 'a\\nb\\n'"));
    assert_ne!(of("echo a").hash, of("echo b").hash);
}

#[test]
fn a_run_reads_nothing_but_what_it_is_given_and_has_no_terminal() {
    let folder = Folder::new("input");
    let file = folder.file("input");
    fs::write(&file, "some words\n").expect("it can be written");
    let mut runner = runner(None);
    let outcome = run(&mut runner, &shell("cat"));
    assert_eq!((outcome.stdout.bytes, outcome.end), (0, RunEnd::Exited(0)));
    let given = RunSpec { input: Some(file), ..shell("cat") };
    for _ in 0..2 {
        assert_eq!(run(&mut runner, &given).stdout.tail, "some words\n", "from its beginning, each time");
    }
    let outcome = run(&mut runner, &shell("if (exec 3<>/dev/tty) 2> /dev/null; then exit 1; fi"));
    assert_eq!(outcome.end, RunEnd::Exited(0), "it cannot read the terminal");
}

#[test]
fn how_a_run_ends_is_said_as_it_was() {
    let mut runner = runner(None);
    let mut of = |script: &str| run(&mut runner, &shell(script)).end;
    assert_eq!(of("exit 0"), RunEnd::Exited(0));
    assert_eq!(of("exit 255"), RunEnd::Exited(255));
    for (name, signal) in [("TERM", Signal::TERM), ("KILL", Signal::KILL), ("SEGV", Signal::SEGV)] {
        let killed = RunEnd::Killed { signal: signal.as_raw(), out_of_memory: false };
        assert_eq!(of(&format!("ulimit -c 0; kill -{name} $$")), killed);
    }
    assert_eq!(of("trap 'exit 0' PIPE; kill -PIPE $$; exit 1"), RunEnd::Exited(0), "SIGPIPE is not ignored");
}

#[test]
fn a_run_for_which_memory_is_wanting_says_so() {
    let Some(group) = MemoryGroup::small() else {
        skipped("no control group with a limit of memory can be made");
        return;
    };
    let script = format!("echo $$ > {}/cgroup.procs && exec tail /dev/zero", group.0.display());
    let outcome = run(&mut runner(Some(CpuSource::Rusage)), &shell(&script));
    assert_eq!(
        outcome.end,
        RunEnd::Killed { signal: Signal::KILL.as_raw(), out_of_memory: true },
        "{outcome:?}"
    );
}

/// A control group with a limit of memory, removed at the end.
struct MemoryGroup(PathBuf);

impl MemoryGroup {
    fn small() -> Option<Self> {
        const BYTES_MAX: &str = "33554432";
        let name = format!("weir-runner-memory-{}", std::process::id());
        let group = Self(Path::new("/sys/fs/cgroup/memory").join(name));
        fs::create_dir(&group.0).ok()?;
        fs::write(group.0.join("memory.limit_in_bytes"), BYTES_MAX).ok()?;
        // Where the kernel counts swap, the run must not go there; where it does not, this file is not there.
        let _ = fs::write(group.0.join("memory.memsw.limit_in_bytes"), BYTES_MAX);
        Some(group)
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // The remaining group is empty.
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn the_peak_memory_of_a_small_command_is_its_own() {
    const OWN_BYTES: usize = 256 << 20;
    let own = vec![1_u8; OWN_BYTES];
    let mut runner = runner(None);
    let outcome = run(&mut runner, &spec(vec!["true".into()]));
    let peak = outcome.cost.memory_bytes_max;
    assert!(peak.is_none_or(|peak| peak < 64 << 20), "{peak:?} beside {}", own.len());
    let outcome = run(&mut runner, &shell("head -c 100000000 /dev/zero | tail -c 50000000"));
    let larger = outcome.cost.memory_bytes_max.expect("it stands out");
    assert!(larger > 50_000_000 && larger < 128 << 20, "a child counts that was waited for: {larger}");
}

#[test]
fn bytes_are_those_that_the_program_reads_and_writes() {
    for mut runner in runners() {
        let folder = Folder::new(&format!("bytes-{:?}", runner.cpu_source()));
        let file = folder.file("written");
        let mut of = |count: &str| {
            let words = ["head", "-c", count, "/dev/zero"].map(OsString::from).to_vec();
            let outcome = run(&mut runner, &RunSpec { output: OutputTo::File(file.clone()), ..spec(words) });
            (outcome.cost.read_bytes, outcome.cost.written_bytes)
        };
        let (nothing, something) = (of("0"), of("1000000"));
        let ((Some(read_before), Some(0)), (Some(read), Some(written))) = (nothing, something) else {
            assert_eq!(nothing, (None, None), "a kernel that does not count them");
            skipped("this kernel does not count the bytes of a process");
            return;
        };
        assert_eq!(written, 1_000_000, "{:?}", runner.cpu_source());
        assert!(read >= read_before + 1_000_000, "{read}");
    }
}

#[test]
fn users_other_than_root_have_the_same_figures() {
    let nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"].map(OsString::from);
    let words: Vec<OsString> = nobody.into_iter().chain(role("launcher")).collect();
    let mut runner = match Runner::start(&words, None) {
        Ok(runner) => runner,
        Err(error) => return skipped(&format!("no launcher can be another user's: {error}")),
    };
    assert_eq!(runner.cpu_source(), CpuSource::Rusage);
    assert_eq!(runner.cpu_refusals().len(), 2, "each says why not: {:?}", runner.cpu_refusals());
    let cost = run(&mut runner, &shell("head -c 1000000 /dev/zero")).cost;
    assert!(cost.cpu_ns() > 0 && cost.faults_minor > 0, "{cost:?}");
    assert!(cost.written_bytes.is_none_or(|bytes| bytes >= 1_000_000), "{cost:?}");
    let by_root = run(&mut self::runner(None), &shell("head -c 1000000 /dev/zero")).cost;
    assert_eq!(cost.written_bytes, by_root.written_bytes);
}

#[test]
fn faults_and_switches_are_counted() {
    let mut runner = runner(None);
    let small = run(&mut runner, &shell("exit 0")).cost;
    let large = run(&mut runner, &shell("head -c 40000000 /dev/zero | tail -c 20000000 > /dev/null")).cost;
    assert!(small.faults_minor > 0, "{small:?}");
    assert!(large.faults_minor > small.faults_minor, "{large:?}");
    assert!(large.switches_voluntary + large.switches_involuntary > 0, "{large:?}");
}

#[test]
fn instructions_are_there_where_the_machine_counts_them() {
    let mut runner = runner(None);
    let mut of = |count: u32| {
        let script = format!("i=0; while [ $i -lt {count} ]; do i=$((i+1)); done");
        run(&mut runner, &shell(&script)).cost.instructions
    };
    let (few, many) = (of(1_000), of(100_000));
    let Some((few, many)) = few.zip(many) else {
        skipped("this machine does not count instructions");
        return;
    };
    assert!(few > 10_000 && many > 10 * few, "{few}, {many}");
}

#[test]
fn output_goes_where_it_is_sent() {
    let folder = Folder::new("output");
    let file = folder.file("out");
    let mut runner = runner(None);
    let mut of = |output| run(&mut runner, &RunSpec { output, ..shell("echo out; echo err >&2") });
    for _ in 0..2 {
        let outcome = of(OutputTo::File(file.clone()));
        assert_eq!((outcome.stdout.bytes, outcome.stdout.hash.as_str()), (0, ""), "nobody read it");
        assert_eq!(outcome.stderr.tail, "err\n");
        assert_eq!(fs::read_to_string(&file).expect("it was written"), "out\n", "once");
    }
    let outcome = of(OutputTo::Discard);
    assert_eq!((outcome.stdout.hash.as_str(), outcome.stderr.tail.as_str()), ("", "err\n"));
    let outcome = of(OutputTo::Inherit);
    assert_eq!((outcome.stdout.hash.as_str(), outcome.stderr.hash.as_str()), ("", ""));
}

#[test]
fn a_run_has_its_folder_and_its_variables() {
    let folder = Folder::new("folder");
    let told = RunSpec {
        environment: vec![("WEIR_TEST_WORD".into(), "a b".into())],
        folder: Some(folder.0.clone()),
        ..shell("pwd -P; echo \"$WEIR_TEST_WORD\"")
    };
    let outcome = run(&mut runner(None), &told);
    let place = folder.0.canonicalize().expect("it is there");
    assert_eq!(outcome.stdout.tail, format!("{}\na b\n", place.display()));
}

#[test]
fn what_cannot_be_run_is_named_and_the_next_run_is_as_usual() {
    let folder = Folder::new("refused");
    let script = folder.file("script");
    // Another process writes it: a child that another test has forked keeps this process's open files for a moment, and
    // a file that is open for writing is refused for that reason.
    let write = |text: &str| {
        let line = "printf '%s\\n' \"$1\" >\"$0\"";
        let written = Command::new("sh").args(["-c", line]).arg(&script).arg(text).status().expect("a shell");
        assert!(written.success(), "it can be written");
    };
    write("echo no interpreter");
    let fifo = folder.fifo();
    let mut runner = runner(None);
    let mut said = |spec: &RunSpec| refusal(&mut runner, spec).to_string();
    assert!(said(&spec(Vec::new())).contains("the command is empty"));
    assert!(said(&spec(vec!["no-such-program".into()])).contains("there is no program no-such-program"));
    assert!(said(&spec(vec![script.clone().into()])).contains("chmod +x"));
    fs::set_permissions(&script, Permissions::from_mode(0o755)).expect("it is ours");
    assert!(said(&spec(vec![script.clone().into()])).contains("a script needs #!"));
    write("#!/no/such/interpreter");
    assert!(said(&spec(vec![script.clone().into()])).contains("the interpreter that it names is not there"));
    let at = |folder: &str| RunSpec { folder: Some(folder.into()), ..shell("exit 0") };
    assert!(said(&at("/no/such/folder")).starts_with("--dir /no/such/folder: No such file"));
    let from = |input: &str| RunSpec { input: Some(input.into()), ..shell("exit 0") };
    assert!(said(&from("/no/such/file")).starts_with("--input /no/such/file: No such file"));
    assert!(said(&from(&fifo)).contains("neither a file nor a device"));
    let to = |output: &str| RunSpec { output: OutputTo::File(output.into()), ..shell("exit 0") };
    assert!(said(&to("/no/such/folder/file")).starts_with("--output /no/such/folder/file: No such file"));
    assert!(said(&to(&fifo)).contains("neither a file nor a device"));
    let zero = RunSpec { environment: vec![("A".into(), "\0".into())], ..shell("exit 0") };
    assert!(said(&zero).contains("zero byte"));
    let long = RunSpec { environment: vec![("A".into(), "a".repeat(3 << 20).into())], ..shell("exit 0") };
    assert!(said(&long).contains("Argument list too long"), "{}", said(&long));
    let longer = RunSpec { environment: vec![("A".into(), "a".repeat(8 << 20).into())], ..shell("exit 0") };
    assert!(said(&longer).contains("too long for any kernel"), "{}", said(&longer));
    assert_eq!(run(&mut runner, &shell("exit 0")).end, RunEnd::Exited(0));
}

#[test]
fn a_stop_kills_the_run_and_leaves_the_runner() {
    let folder = Folder::new("stop");
    let fifo = folder.fifo();
    let mut runner = runner(None);
    let stop = AtomicBool::new(false);
    let stays = shell(&format!("echo $$ > {fifo}; exec tail -f /dev/null"));
    let process = thread::scope(|scope| {
        let stopper = scope.spawn(|| {
            let process = numbers(&fs::read_to_string(&fifo).expect("the run writes it"))[0];
            stop.store(true, Ordering::Relaxed);
            process
        });
        assert_eq!(runner.run(&stays, &stop), Err(RunError::Stopped));
        stopper.join().expect("it does not panic")
    });
    assert!(!is_alive(process));
    assert_eq!(runner.run(&stays, &stop), Err(RunError::Stopped), "nothing is started any more");
    assert_eq!(run(&mut runner, &shell("exit 0")).end, RunEnd::Exited(0), "a command that cleans up can run");
}

#[test]
fn no_control_group_stays() {
    for mut runner in runners() {
        let Some(group) = runner.group() else { continue };
        let below = || {
            let entries = fs::read_dir(&group).expect("it is there").flatten();
            entries.filter(|entry| entry.path().is_dir()).count()
        };
        run(&mut runner, &shell("exit 0"));
        run(&mut runner, &shell("(tail -f /dev/null &); exit 0"));
        run(&mut runner, &RunSpec { limit: Duration::from_millis(10), ..shell("tail -f /dev/null") });
        refusal(&mut runner, &spec(vec!["no-such-program".into()]));
        assert_eq!(below(), 0, "{}", group.display());
        drop(runner);
        assert!(!group.exists(), "{}", group.display());
    }
}

#[test]
fn nothing_runs_on_when_weir_is_killed() {
    let folder = Folder::new("killed");
    let fifo = folder.fifo();
    let words = role(&format!("parent {fifo}"));
    let mut parent = Command::new(&words[0]).args(&words[1..]).spawn().expect("this program starts");
    let process = numbers(&fs::read_to_string(&fifo).expect("the run writes it"))[0];
    let group = group_of(process);
    let below = children_of(parent.id());
    assert!(below.contains(&process), "{below:?}");
    parent.kill().expect("it is ours");
    parent.wait().expect("it was ours");
    for process in below {
        await_end_of(process);
    }
    for top in ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpuacct"] {
        let folder = group.as_ref().map(|group| Path::new(top).join(group.trim_start_matches('/')));
        assert!(folder.as_ref().is_none_or(|folder| !folder.exists()), "{folder:?}");
    }
}

#[test]
fn a_folder_that_is_held_goes_when_weir_is_killed_while_no_server_runs() {
    let folder = Folder::new("held");
    let (fifo, held) = (folder.fifo(), folder.file("data"));
    fs::create_dir(&held).expect("it can be made");
    fs::write(held.join("file"), "x").expect("it can be written");
    let words = role(&format!("holding {fifo} {}", held.display()));
    let mut parent = Command::new(&words[0]).args(&words[1..]).spawn().expect("this program starts");
    assert_eq!(numbers(&fs::read_to_string(&fifo).expect("the run writes it")).len(), 1);
    let below = children_of(parent.id());
    assert!(held.exists(), "it goes when nobody needs it");
    parent.kill().expect("it is ours");
    parent.wait().expect("it was ours");
    for process in below {
        await_end_of(process);
    }
    assert!(!held.exists());
}

/// The control group of a run, as the kernel names it.
fn group_of(process: u32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{process}/cgroup")).ok()?;
    let line = text.lines().find(|line| line.contains("/weir-compare-"))?;
    line.splitn(3, ':').nth(2).map(str::to_owned)
}

#[test]
fn nothing_runs_on_when_the_launcher_is_killed() {
    for mut runner in runners() {
        let folder = Folder::new(&format!("launcher-{:?}", runner.cpu_source()));
        let fifo = folder.fifo();
        let (launcher, group) = (runner.launcher(), runner.group());
        let stays = shell(&format!("echo $$ > {fifo}; exec tail -f /dev/null"));
        let (outcome, process) = thread::scope(|scope| {
            let killer = scope.spawn(|| {
                let process = numbers(&fs::read_to_string(&fifo).expect("the run writes it"))[0];
                let launcher = Pid::from_raw(launcher.cast_signed()).expect("not zero");
                kill_process(launcher, Signal::KILL).expect("it is ours");
                process
            });
            let outcome = runner.run(&stays, &AtomicBool::new(false));
            (outcome, killer.join().expect("it does not panic"))
        });
        let said = outcome.expect_err("nobody is left who could answer").to_string();
        assert!(said.contains("it ended or was killed"), "{said}");
        await_end_of(process);
        assert!(group.is_none_or(|group| !group.exists()));
        let said = refusal(&mut runner, &shell("exit 0")).to_string();
        assert!(said.contains("start the comparison again"), "{said}");
    }
}

#[test]
fn weirs_own_cost_is_measured_and_small() {
    for mut runner in runners() {
        let cost = runner.own_cost().expect("runs that do nothing");
        assert!(cost.launch.cpu_ns > 0 && cost.launch.wall_ns >= cost.launch.cpu_ns / 2, "{cost:?}");
        assert!(cost.cpu_ns_left < 20_000_000, "{cost:?}");
        let charged = cost.charged_cpu_ns;
        if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
            assert!(charged.is_some_and(|it| it < 20_000_000), "{cost:?}");
        }
    }
}

#[test]
fn the_best_source_is_chosen_and_what_refused_is_said() {
    let chosen = runner(None);
    let available: Vec<CpuSource> = runners().iter().map(Runner::cpu_source).collect();
    assert_eq!(Some(&chosen.cpu_source()), available.first());
    let better = CpuSource::ALL.iter().filter(|source| **source < chosen.cpu_source()).count();
    assert_eq!(chosen.cpu_refusals().len(), better);
    let error = Runner::start(&["true".into()], None).expect_err("it is no launcher").to_string();
    assert!(error.contains("it ended or was killed"), "{error}");
    let error = Runner::start(&["/no/such/weir".into()], None).expect_err("it is not there").to_string();
    assert!(error.contains("cannot be started"), "{error}");
}
