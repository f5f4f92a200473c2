//! Runs the program, reads its output, waits for its effects. Every wait has a deadline and none is a sleep.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    ops::Deref,
    os::{
        fd::OwnedFd,
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixStream},
        unix::process::ExitStatusExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
        mpsc::{self, Receiver},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open},
};
use weir_record::{engine::ServerStats, study::StudyResult};

use super::still_running;

/// The program under test.
pub const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// Longest wait for an event that should come soon, on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Time between two polls of a condition: the process that should fulfil it needs the CPU.
pub const LOOK_PAUSE: Duration = Duration::from_millis(1);

/// Between the two looks at a process that does not end.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// The output of a finished run.
pub struct Said {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Runs the program to its end.
pub fn weir(words: &[&str]) -> Said {
    run(assert_cmd::Command::new(WEIR).args(words))
}

/// Runs a shell line in which `$WEIR` is the program.
pub fn shell(line: &str) -> Said {
    run(assert_cmd::Command::new("sh").args(["-c", line]).env("WEIR", WEIR))
}

fn run(command: &mut assert_cmd::Command) -> Said {
    // The width of help is independent of any terminal.
    command.env_remove("COLUMNS").env("LC_ALL", "C");
    let output = command.timeout(4 * PATIENCE).output().expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("it prints UTF-8");
    let code = output.status.code().or_else(|| output.status.signal().map(|signal| -signal));
    Said { code, stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

/// The program refuses: with this exit code and one sentence that contains all of these words, and nothing else.
pub fn expect_refusal(said: &Said, code: i32, words: &[&str]) {
    let Said { stderr, stdout, .. } = said;
    assert_eq!(said.code, Some(code), "{stderr}{stdout}");
    let sentences: Vec<&str> = stderr.lines().filter(|line| line.starts_with("weir: ")).collect();
    assert_eq!(sentences.len(), 1, "{stderr}");
    assert_eq!(stderr.lines().last(), sentences.first().copied(), "{stderr}");
    assert!(!stderr.contains("weir: weir:") && !stderr.contains("panicked"), "{stderr}");
    for word in words {
        assert!(sentences[0].contains(word), "no {word:?} in: {stderr}");
    }
}

/// Descriptors that a generator with one worker needs besides its connections and the inherited ones.
const DESCRIPTORS_BESIDE_MAX: usize = 64;

/// The number of descriptors in a refusal. The refusal has it twice, the second time as a command. It includes the
/// inherited descriptors: shells, editors and build servers leave different ones open.
pub fn descriptors_asked_for(said: &Said, connections: usize) -> usize {
    let number_after = |words: &str| -> usize {
        let (_, rest) =
            said.stderr.split_once(words).unwrap_or_else(|| panic!("no {words:?}: {}", said.stderr));
        let digits = rest.split(|letter: char| !letter.is_ascii_digit()).next().unwrap_or_default();
        digits.parse().unwrap_or_else(|_| panic!("no number after {words:?}: {}", said.stderr))
    };
    let needed = number_after(&format!("{connections} connections need "));
    assert_eq!(number_after("`ulimit -n "), needed, "{}", said.stderr);
    // Descriptors that a child inherits are open here too.
    let inherited_max = fs::read_dir("/proc/self/fd").expect("/proc is there").count();
    let most = connections + DESCRIPTORS_BESIDE_MAX + inherited_max;
    assert!((connections + 1..=most).contains(&needed), "at most {most}: {}", said.stderr);
    needed
}

/// An empty folder of one test in one process, removed at its end. A test that fails keeps it and says where it is.
pub struct Folder(PathBuf);

/// Makes one below the target folder.
pub fn folder(name: &str) -> Folder {
    Folder::make(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("weir-it"), name)
}

/// Makes one in the system's temporary folder: the path of a socket must be short, and the path of the target folder
/// may be long.
pub fn socket_folder(name: &str) -> Folder {
    Folder::make(&std::env::temp_dir(), &format!("weir-it-{name}"))
}

impl Folder {
    fn make(parent: &Path, name: &str) -> Self {
        let path = parent.join(format!("{name}-{}", std::process::id()));
        if path.exists() {
            fs::remove_dir_all(&path).expect("what a killed run left can be removed");
        }
        fs::create_dir_all(&path).expect("a folder can be made");
        Self(path)
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if thread::panicking() {
            println!("kept: {}", self.0.display());
        } else if let Err(error) = fs::remove_dir_all(&self.0) {
            println!("left: {}: {error}", self.0.display());
        }
    }
}

/// Writes a program that can be run at once. Another process writes it: a child that another test has forked keeps this
/// process's open files until it runs its own program, and the kernel runs no file that is open for writing.
pub fn executable(file: &Path, text: &str) {
    let line = "cat >\"$0\" && chmod 755 \"$0\"";
    let mut command = assert_cmd::Command::new("sh");
    command.args(["-c", line, shown(file)]).write_stdin(text).assert().success();
}

/// Copies a program, so that the copy can be run at once, for the reason of [`executable`].
pub fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("cp").args([from, to]).status().expect("coreutils are everywhere");
    assert!(copied.success(), "{} can be copied", from.display());
}

/// An address on which a server may be started again: a port that the system chooses on a loopback address that no
/// other test uses. On 127.0.0.1 another test may get the port while the server is down.
pub fn own_address() -> String {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    // 127.0.0.0/16 has the address that all others use.
    let second = 1 + GIVEN.fetch_add(1, Ordering::Relaxed) % 254;
    let [.., third, fourth] = std::process::id().to_be_bytes();
    format!("127.{second}.{third}.{fourth}:0")
}

/// A running program whose lines are read as they arrive. Killed when dropped.
pub struct Running {
    child: Child,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
}

impl Running {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stdout = lines(child.stdout.take().expect("a pipe"));
        let stderr = lines(child.stderr.take().expect("a pipe"));
        Self { child, stdout, stderr }
    }

    pub fn weir(words: &[&str]) -> Self {
        Self::start(Command::new(WEIR).args(words).env("LC_ALL", "C"))
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it is not reaped yet");
    }

    /// The next line on standard output; `None` at its end.
    pub fn next_line(&self) -> Option<String> {
        next(&self.stdout)
    }

    /// The next line on standard error; `None` at its end.
    pub fn next_error_line(&self) -> Option<String> {
        next(&self.stderr)
    }

    /// The next line on standard error that contains these words.
    pub fn error_line_with(&self, words: &str) -> String {
        loop {
            let line = self.next_error_line().unwrap_or_else(|| panic!("nobody is told: {words}"));
            if line.contains(words) {
                return line;
            }
        }
    }

    /// The rest of standard error.
    pub fn rest_of_errors(&self) -> String {
        std::iter::from_fn(|| next(&self.stderr)).collect::<Vec<_>>().join("\n")
    }

    /// Whether it has ended; it is not reaped.
    pub fn has_ended(&self) -> bool {
        let descriptor = pidfd_open(self.pid(), PidfdFlags::empty()).expect("it is not reaped yet");
        ends_within(&descriptor, Duration::ZERO)
    }

    /// Exit code, or minus the signal's number. Fails when the program does not end in time, and prints what it does.
    pub fn wait(&mut self, longest: Duration) -> i32 {
        let descriptor = pidfd_open(self.pid(), PidfdFlags::empty()).expect("it is not reaped yet");
        if !ends_within(&descriptor, longest) {
            println!("{}", still_running::report(self.pid(), || _ = ends_within(&descriptor, LOOK_AGAIN)));
            self.stderr.try_iter().for_each(|line| println!("it has said: {line}"));
            panic!("it still runs after {longest:?}");
        }
        let status: ExitStatus = self.child.wait().expect("it can be reaped");
        status.code().or_else(|| status.signal().map(|signal| -signal)).expect("it has ended")
    }
}

/// Whether a process ends in this time.
fn ends_within(process: &OwnedFd, longest: Duration) -> bool {
    let timeout = Timespec::try_from(longest).expect("a short time");
    let ready = poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&timeout));
    ready.expect("it can be waited for") == 1
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails only if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(source: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        BufReader::new(source).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    receiver
}

fn next(lines: &Receiver<String>) -> Option<String> {
    match lines.recv_timeout(PATIENCE) {
        Ok(line) => Some(line),
        Err(mpsc::RecvTimeoutError::Disconnected) => None,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("nothing was said for {PATIENCE:?}"),
    }
}

/// Held by tests that ask every server of this user, and by those that count the calls of one, which accepts any peer.
pub fn every_server() -> MutexGuard<'static, ()> {
    static EVERY_SERVER: Mutex<()> = Mutex::new(());
    EVERY_SERVER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reports that a test cannot run here, for want of a separate disk. Fails when `WEIR_REQUIRE_DISKS` is set.
pub fn skip_without_disk(needed: &str) {
    assert!(std::env::var_os("WEIR_REQUIRE_DISKS").is_none(), "WEIR_REQUIRE_DISKS: {needed}");
    println!("skipped: {needed}");
}

/// Waits until a condition holds, by polling.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what} did not come in {PATIENCE:?}");
        thread::park_timeout(LOOK_PAUSE);
    }
}

/// An echo server that accepts.
pub struct Server {
    pub process: Running,
    pub address: String,
}

impl Server {
    /// Starts one on a free port of this machine.
    pub fn start(words: &[&str]) -> Self {
        Self::start_on("127.0.0.1:0", words).unwrap_or_else(|errors| panic!("it does not start: {errors}"))
    }

    /// Starts one, or returns its output instead.
    pub fn start_on(listen: &str, words: &[&str]) -> Result<Self, String> {
        let words = [&["serve", "echo", "--listen", listen], words].concat();
        let process = Running::weir(&words);
        match next(&process.stdout).as_deref().and_then(|line| line.strip_prefix("listening on ")) {
            Some(address) => Ok(Self { address: address.to_owned(), process }),
            None => Err(process.rest_of_errors()),
        }
    }

    /// Starts one on a driver. `None`, and a line that says so, when the kernel refuses it; a failure when
    /// `WEIR_REQUIRE_DRIVERS` names it.
    pub fn on_driver(driver: &str, words: &[&str]) -> Option<Self> {
        match Self::start_on("127.0.0.1:0", &[&["--driver", driver], words].concat()) {
            Ok(server) => Some(server),
            Err(errors) if errors.contains("cannot run here") => {
                let required = std::env::var("WEIR_REQUIRE_DRIVERS").unwrap_or_default();
                assert!(!required.split(',').any(|name| name == driver), "{driver} is required: {errors}");
                println!("skipped: {errors}");
                None
            }
            Err(errors) => panic!("{driver} does not start: {errors}"),
        }
    }

    pub fn connect(&self) -> std::net::TcpStream {
        let stream = std::net::TcpStream::connect(&self.address).expect("it accepts");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream
    }

    /// Asks it to end and gives its exit code.
    pub fn terminate(mut self) -> i32 {
        self.process.signal(Signal::TERM);
        self.process.wait(PATIENCE)
    }
}

/// Asks a statistics socket once.
pub fn stats(name: &str) -> ServerStats {
    StatsReader::connect(name).ask("")
}

/// A connection to a statistics socket.
pub struct StatsReader(BufReader<UnixStream>);

impl StatsReader {
    pub fn connect(name: &str) -> Self {
        let name = name.strip_prefix('@').expect("an abstract name");
        let address = SocketAddr::from_abstract_name(name).expect("a name");
        Self(BufReader::new(UnixStream::connect_addr(&address).expect("it answers")))
    }

    pub fn ask(&mut self, line: &str) -> ServerStats {
        writeln!(self.0.get_mut(), "{line}").expect("it listens");
        let mut answer = String::new();
        self.0.read_line(&mut answer).expect("it answers");
        serde_json::from_str(&answer).expect("one line of JSON")
    }
}

/// Bytes without near repetitions, the same in every run.
pub fn bytes(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut step = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..length).map(|_| step()).collect()
}

/// Sends everything while it reads, ends its direction, and compares the received bytes.
pub fn echo_exactly<S>(stream: S, twin: S, sent: Vec<u8>, end: impl FnOnce(&S) + Send + 'static)
where
    S: Read + Write + Send + 'static,
{
    let expected = sent.clone();
    let mut input = twin;
    let writer = thread::spawn(move || {
        let mut stream = stream;
        stream.write_all(&sent).expect("the server reads");
        end(&stream);
    });
    let mut received = Vec::new();
    input.read_to_end(&mut received).expect("the server answers and then ends its direction");
    writer.join().expect("everything was sent");
    assert!(received == expected, "{} bytes came back of {}", received.len(), expected.len());
}

/// The same over TCP.
pub fn echo_tcp(stream: std::net::TcpStream, sent: Vec<u8>) {
    let twin = stream.try_clone().expect("a second handle");
    echo_exactly(stream, twin, sent, |stream| stream.shutdown(std::net::Shutdown::Write).expect("open"));
}

/// A study of short rounds, without its arms.
pub fn study_head(rounds: u32, time_cap: &str) -> String {
    format!(
        "name = \"tiny\"\nsaturation = true\nrounds = {rounds}\nwindow = \"100ms\"\nwarmup_max = \"20ms\"\ntime_cap = \"{time_cap}\"\n\
         [factors]\nconnections = [4]\n"
    )
}

/// Two arms that run everywhere.
pub const TWO_ARMS: &str =
    "[[arm]]\nname = \"epoll\"\ndriver = \"epoll\"\n[[arm]]\nname = \"poll\"\ndriver = \"poll\"\n";

/// Writes a study file and returns its path and that of its results, which do not exist yet.
pub fn study_file(folder: &Path, text: &str) -> (String, PathBuf) {
    let file = folder.join("tiny.toml");
    fs::write(&file, text).expect("a file can be written");
    (file.display().to_string(), folder.join("out"))
}

/// Runs a study in a separate folder, and returns its output and the judged result.
pub fn judged(name: &str, text: &str) -> (Said, StudyResult) {
    let folder = folder(name);
    let (file, out) = study_file(&folder, text);
    let said = weir(&["study", &file, "--out", shown(&out)]);
    assert!(matches!(said.code, Some(0 | 11 | 12)), "{:?} {}{}", said.code, said.stdout, said.stderr);
    let data: serde_json::Value =
        serde_json::from_str(&weir(&["export", shown(&out)]).stdout).expect("it is JSON");
    (said, serde_json::from_value(data["result"].clone()).expect("the judged result"))
}

/// Path as text, for command lines.
pub fn shown(path: &Path) -> &str {
    path.to_str().expect("paths of the tests are UTF-8")
}
