//! The agent, beside the servers: `weir agent --stdio`. It answers one question at a time, with the launcher that a
//! study of one machine uses.

mod part;
mod whole;

use std::{
    fs::{self, File},
    io::{self, BufRead, Write},
    net::{IpAddr, TcpListener},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::{
    fs::{FlockOperation, Mode, flock},
    io::Errno,
    process::{Pid, Signal, geteuid, kill_process},
};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use weir_evidence::{load_link, network};
use weir_record::{doctor::Diagnosis, machine::Fingerprint};

use super::{
    Prepared, StudyAsked,
    codec::{self, Answer, Answered, Asked, LineError, Question, Refused, RoundStarted},
};
use crate::{
    host_defaults::DriverFound,
    launch::LaunchError,
    process::{
        Deadlines, ProcessLauncher,
        group::TICK,
        hosted::{HostedRound, RoundAnswer, RoundCommand, RoundServers, Serving},
    },
};

/// Longest time without a question. The laboratory asks every few seconds while a study runs, so after this time its
/// host is assumed to have vanished, and another study may have this one. If the laboratory was only stopped, its next
/// round connects again.
const SILENCE_MAX: Duration = Duration::from_secs(600);

/// Prefix of the names of folders that agents work in.
const RUN: &str = "run-";

/// Letters of a SHA-256 in a folder's name.
const HASH_LENGTH: usize = 64;

/// How long an agent that was ended may hold its lock, and between two looks.
const ENDED_MAX: Duration = Duration::from_secs(5);
const ENDED_LOOK: Duration = Duration::from_millis(5);

/// Permission bits with which a group or everybody may write.
const OTHERS_WRITE: u32 = 0o022;

/// File whose lock an agent holds; it names the agent's session and process.
const LOCK: &str = "lock";

/// Facts that an agent knows of its machine before any study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// The machine.
    pub fingerprint: Fingerprint,
    /// Drivers of sockets that were tried there.
    pub drivers: Vec<DriverFound>,
    /// Congestion control algorithms that may be used there.
    pub congestion_controls: Vec<String>,
    /// The address at which the `ssh` connection arrived, if it did.
    pub reached_at: Option<IpAddr>,
    /// Its addresses, without loopback.
    pub addresses: Vec<IpAddr>,
    /// Its network namespace, as `weir_evidence::network::namespace` names it.
    pub network: String,
}

/// An agent, as created by the program.
pub struct Agent<'a> {
    /// The program whose `serve` and `supervise` are run.
    pub weir: PathBuf,
    /// A private folder of this user, for its lock and files written for servers.
    pub folder: PathBuf,
    /// Name of the laboratory's session. An earlier agent of the same session that has lost its connection is ended.
    pub session: String,
    /// Finds out the facts of the machine.
    pub facts: &'a dyn Fn() -> Facts,
    /// Finds out what can be run and measured there.
    pub doctor: &'a dyn Fn() -> Vec<Diagnosis>,
    /// Set when it must end: by a signal or the end of its input.
    pub interrupt: Arc<AtomicBool>,
    /// Called when no server is up.
    pub between_rounds: &'a mut dyn FnMut(),
}

/// Why an agent ends before its input does.
#[derive(Debug, Error)]
pub enum AgentError {
    /// Another agent works for this user.
    #[error("another study or load uses this host: {holder}")]
    Busy {
        /// What that agent wrote into its lock file.
        holder: String,
    },
    /// The folder cannot be used.
    #[error("cannot use {folder}: {source}")]
    Folder {
        /// The folder.
        folder: String,
        /// The system's error.
        source: io::Error,
    },
    /// The input is not a laboratory's.
    #[error("{0}")]
    Input(String),
    /// The output is closed.
    #[error("nobody reads what the agent answers: {0}")]
    Output(io::Error),
    /// No question arrived for so long that the laboratory cannot be there.
    #[error("the laboratory asked nothing for {0} s")]
    Silence(u64),
}

/// An event for the agent.
enum Came {
    Line(String),
    Wrong(LineError),
    End,
}

/// How a round, or the whole session, goes on.
enum Next {
    Question,
    End,
}

impl Agent<'_> {
    /// Answers until the input ends. All servers and files are gone when this returns, in every case. Must be called
    /// on a thread that lives as long as the process, because servers are bound to it.
    ///
    /// # Errors
    /// If it cannot begin, or the other end is not a laboratory.
    pub fn serve(
        self,
        input: impl BufRead + Send + 'static,
        output: &mut dyn Write,
    ) -> Result<(), AgentError> {
        let came = listen(input, Arc::clone(&self.interrupt));
        let mut session = Session { came, output, number: 0, silence_max: SILENCE_MAX };
        let folder = match WorkFolder::take(&self.folder, &self.session) {
            Ok(folder) => folder,
            Err(error) => return session.refuse_all(error),
        };
        let mut launcher = None;
        while let Some(question) = session.next()? {
            match question {
                Question::Facts => session.answer(Ok(Answer::Facts(Box::new((self.facts)()))))?,
                Question::Nothing => session.answer(Ok(Answer::Nothing))?,
                Question::Doctor => session.answer(Ok(Answer::Doctor((self.doctor)())))?,
                Question::LoadLink(address) => {
                    let interface = load_link::of_own(address);
                    session.answer(Ok(Answer::LoadLink(load_link::facts_of(interface.as_deref()))))?;
                }
                Question::Study(asked) => {
                    let prepared = prepare(&self.weir, &folder.path, &asked);
                    let (mine, answer) = match prepared {
                        Ok((mine, prepared)) => (Some(mine), Ok(Answer::Study(Box::new(prepared)))),
                        Err(refused) => (None, Err(refused)),
                    };
                    launcher = mine.map(|launcher| (launcher, asked.address));
                    session.answer(answer)?;
                }
                Question::Round(serving) => {
                    let next = match &mut launcher {
                        Some((launcher, address)) => {
                            session.round(launcher, &serving, (*address, &self.interrupt))?
                        }
                        None => session.refuse("no study was named before its round")?,
                    };
                    (self.between_rounds)();
                    if matches!(next, Next::End) {
                        break;
                    }
                }
                Question::Whole(asked) => {
                    let place = whole::Place { weir: &self.weir, folder: &folder.path };
                    let ended = whole::run(&mut session, &place, &asked, &self.interrupt);
                    (self.between_rounds)();
                    return ended;
                }
                Question::LoadPart(asked) => {
                    let ended = part::run(&mut session, &self.weir, &asked, &self.interrupt);
                    (self.between_rounds)();
                    return ended;
                }
                Question::Step(_) => {
                    session.refuse("no round has begun")?;
                }
                Question::Part(_) => {
                    session.refuse("no load has begun")?;
                }
                Question::Progress | Question::EndWhole | Question::StoreBytes(_) => {
                    session.refuse("no study has begun")?;
                }
            }
        }
        Ok(())
    }
}

/// Reads lines on a separate thread, so that the end of the input is noticed during other work.
fn listen(mut input: impl BufRead + Send + 'static, interrupt: Arc<AtomicBool>) -> Receiver<Came> {
    let (send, came): (Sender<Came>, _) = mpsc::channel();
    let read = move || {
        loop {
            let came = match codec::next_line(&mut input) {
                Ok(Some(line)) => Came::Line(line),
                Ok(None) => Came::End,
                Err(error) => Came::Wrong(error),
            };
            let is_last = !matches!(came, Came::Line(_));
            if is_last {
                interrupt.store(true, Ordering::Relaxed);
            }
            if send.send(came).is_err() || is_last {
                return;
            }
        }
    };
    // Without the thread the channel closes at once, which counts as the end of the input.
    let _ = thread::Builder::new().name("weir-input".to_owned()).spawn(read);
    came
}

/// The questions and answers of a connection.
struct Session<'o> {
    came: Receiver<Came>,
    output: &'o mut dyn Write,
    /// The question to answer next.
    number: u64,
    /// Longest time without a question.
    silence_max: Duration,
}

/// The next question from what was heard within a time; `None` at the end of the input.
fn question(
    heard: Result<Came, RecvTimeoutError>,
    silence_max: Duration,
) -> Result<Option<Asked>, AgentError> {
    let wrong = |error: LineError| AgentError::Input(error.to_string());
    match heard {
        Ok(Came::Line(line)) => codec::value(&line).map(Some).map_err(wrong),
        Ok(Came::Wrong(error)) => Err(wrong(error)),
        Ok(Came::End) | Err(RecvTimeoutError::Disconnected) => Ok(None),
        Err(RecvTimeoutError::Timeout) => Err(AgentError::Silence(silence_max.as_secs())),
    }
}

impl Session<'_> {
    /// The next question; `None` at the end of the input. A longer silence than allowed is an error.
    fn next(&mut self) -> Result<Option<Question>, AgentError> {
        self.next_in(self.silence_max, || {})
    }

    /// The same; `meanwhile` is called before the wait, and again after each tick of it.
    fn next_in(
        &mut self,
        tick: Duration,
        mut meanwhile: impl FnMut(),
    ) -> Result<Option<Question>, AgentError> {
        let began = Instant::now();
        let heard = loop {
            meanwhile();
            let left = self.silence_max.saturating_sub(began.elapsed());
            match self.came.recv_timeout(left.min(tick)) {
                Err(RecvTimeoutError::Timeout) if !left.is_zero() => {}
                heard => break heard,
            }
        };
        let asked = question(heard, self.silence_max)?;
        Ok(asked.map(|Asked { number, question }| {
            self.number = number;
            question
        }))
    }

    fn answer(&mut self, answer: Result<Answer, Refused>) -> Result<(), AgentError> {
        let number = self.number;
        let line = codec::line(&Answered { number, answer }).or_else(|error| {
            let answer = Err(Refused::Environment(format!("its answer {error}")));
            codec::line(&Answered { number, answer })
        });
        let line = line.map_err(|error| AgentError::Output(io::Error::other(error)))?;
        self.output.write_all(&line).and_then(|()| self.output.flush()).map_err(AgentError::Output)
    }

    fn refuse(&mut self, reason: &str) -> Result<Next, AgentError> {
        self.answer(Err(Refused::Environment(reason.to_owned())))?;
        Ok(Next::Question)
    }

    /// Answers every question with the reason why nothing can run here.
    fn refuse_all(mut self, error: AgentError) -> Result<(), AgentError> {
        while self.next()?.is_some() {
            self.refuse(&error.to_string())?;
        }
        Ok(())
    }

    /// Starts servers and carries out commands until the servers are stopped.
    fn round(
        &mut self,
        launcher: &mut ProcessLauncher,
        serving: &Serving,
        (address, interrupt): (IpAddr, &AtomicBool),
    ) -> Result<Next, AgentError> {
        let programs = launcher.programs_of(serving, interrupt);
        let interface = load_link::of_own(address);
        let counters = network::read_with_link(interface.as_deref());
        let (mut servers, started) = match launcher.servers(serving, address, interrupt) {
            Ok(started) => started,
            Err(error) => {
                self.answer(Err(error.into()))?;
                return Ok(Next::Question);
            }
        };
        self.answer(Ok(Answer::Round(Box::new(RoundStarted { servers: started, programs }))))?;
        while let Some(question) = self.next_in(TICK, || servers.read_output())? {
            let Question::Step(command) = question else {
                self.refuse("a round has begun and was not ended")?;
                continue;
            };
            let is_last = command == RoundCommand::Stop;
            let answer = step(&mut servers, command).map(|answer| match answer {
                RoundAnswer::Stopped(mut stopped) => {
                    stopped.network = network::read_with_link(interface.as_deref()).since(&counters);
                    RoundAnswer::Stopped(stopped)
                }
                other => other,
            });
            self.answer(answer.map(Answer::Step))?;
            if is_last {
                return Ok(Next::Question);
            }
        }
        Ok(Next::End)
    }
}

fn step(servers: &mut HostedRound<'_>, command: RoundCommand) -> Result<RoundAnswer, Refused> {
    servers.answer(command).map_err(LaunchError::into)
}

/// Prepares a study whose servers listen on an address of this machine.
fn prepare(weir: &Path, folder: &Path, asked: &StudyAsked) -> Result<(ProcessLauncher, Prepared), Refused> {
    if TcpListener::bind((asked.address, 0)).is_err() {
        return Err(Refused::Usage(format!("{} is not one of its addresses", asked.address)));
    }
    let launcher = ProcessLauncher::new(weir.to_path_buf(), &asked.spec, Deadlines::default());
    let launcher = launcher.in_folder(folder.to_path_buf());
    let prepared = launcher.prepared(&asked.spec);
    Ok((launcher, prepared))
}

/// A private folder of this agent, removed at its end. At its beginning it removes the folders of agents that were
/// killed.
struct WorkFolder {
    path: PathBuf,
    _lock: File,
}

impl WorkFolder {
    fn take(parent: &Path, session: &str) -> Result<Self, AgentError> {
        let folder = parent.display().to_string();
        let cannot = |source: io::Error| AgentError::Folder { folder: folder.clone(), source };
        private_folder(parent).map_err(cannot)?;
        let path = parent.join(LOCK);
        let file = File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = file.map_err(cannot)?;
        if !try_lock(&file).map_err(cannot)? {
            let holder = fs::read_to_string(&path).unwrap_or_default();
            let was_ours = end_earlier(&holder, session);
            if !was_ours || !lock_within(&file, ENDED_MAX).map_err(cannot)? {
                let pid = holder.split_whitespace().last().unwrap_or("that says nothing of itself");
                return Err(AgentError::Busy { holder: format!("its agent is process {pid}") });
            }
        }
        // Names the holder, for the message of a refused agent.
        let text = format!("{session} {}", std::process::id());
        let _ = file.set_len(0).and_then(|()| file.write_all(text.as_bytes()));
        remove_left(parent);
        let own = std::env::current_exe().ok();
        remove_other_programs(parent, own.as_deref().and_then(Path::parent));
        let path = parent.join(format!("{RUN}{}", std::process::id()));
        private_folder(&path).map_err(cannot)?;
        Ok(Self { path, _lock: file })
    }
}

/// Takes the lock; `false` if another process holds it.
fn try_lock(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Takes the lock of a holder that is about to end; `false` if it did not end within this time.
fn lock_within(file: &File, longest: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + longest;
    while !try_lock(file)? {
        if Instant::now() >= deadline {
            return Ok(false);
        }
        thread::sleep(ENDED_LOOK);
    }
    Ok(true)
}

/// Ends the agent that holds the lock if it belongs to this session: the laboratory has lost it, and it has not
/// noticed yet. Its servers end with it. A process number that another program reused is not an agent's. This process
/// can be the holder: a child that it has just forked has the lock until it executes its program.
fn end_earlier(holder: &str, session: &str) -> bool {
    let Some((of, pid)) = holder.split_once(' ') else { return false };
    let pid = pid.trim().parse().ok().filter(|pid: &i32| *pid > 0);
    let Some(pid) = pid.filter(|_| of == session) else { return false };
    if pid.unsigned_abs() == std::process::id() {
        return true;
    }
    let program = |name: &str| fs::read_link(format!("/proc/{name}/exe")).ok();
    let is_agent = program(&pid.to_string()).is_some_and(|it| Some(it) == program("self"));
    is_agent && Pid::from_raw(pid).is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        // The next agent removes what cannot be removed now, unless it is not ours.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Creates a folder that only its owner may read, and its parents. A folder that is there must be the user's own: other
/// users who may write to it could replace the program and files of servers.
fn private_folder(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    match rustix::fs::mkdir(path, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let found = fs::metadata(path)?;
    let is_own = found.is_dir() && found.uid() == geteuid().as_raw();
    if is_own && found.mode() & OTHERS_WRITE == 0 {
        return Ok(());
    }
    let reason =
        "it belongs to another user, or other users may write to it; remove it, or run `chmod go-w` on it";
    Err(io::Error::other(reason))
}

/// Removes the folders of agents that are gone: only the holder of the lock is alive.
fn remove_left(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(RUN)) {
        let _ = fs::remove_dir_all(entry.path());
    }
}

/// Removes programs that other laboratories copied here. Only the holder of the lock may: a study that runs starts its
/// servers from one. Nothing is removed if this program was not copied here itself.
fn remove_other_programs(parent: &Path, own: Option<&Path>) {
    let Some(own) = own.filter(|own| own.parent() == Some(parent)) else { return };
    let is_hash = |name: &str| {
        name.len() == HASH_LENGTH && name.bytes().all(|it| it.is_ascii_digit() || (b'a'..=b'f').contains(&it))
    };
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten().filter(|entry| is_hash(&entry.file_name().to_string_lossy())) {
        if entry.path() != own {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufReader, PipeWriter},
        os::unix::fs::PermissionsExt,
    };

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("weir-agent-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    #[test]
    fn programs_of_others_go_and_nothing_else_does() {
        let parent = folder("programs");
        let named = |name: &str| parent.join(name);
        let (own, other) = (named(&"a1".repeat(32)), named(&"b2".repeat(32)));
        let beside = [named("fontcache"), named(&"B2".repeat(32)), named("0123")];
        for folder in beside.iter().chain([&own, &other]) {
            fs::create_dir_all(folder).expect("a folder can be made");
        }
        remove_other_programs(&parent, Some(Path::new("/usr/bin")));
        assert!(other.exists(), "this program is from elsewhere");
        remove_other_programs(&parent, Some(&own));
        assert!(!other.exists() && own.exists() && beside.iter().all(|it| it.exists()));
        fs::remove_dir_all(&parent).expect("it can be removed");
    }

    fn no_facts() -> Facts {
        Facts {
            fingerprint: Fingerprint::default(),
            drivers: Vec::new(),
            congestion_controls: Vec::new(),
            reached_at: None,
            addresses: Vec::new(),
            network: String::new(),
        }
    }

    /// Runs an agent in this process with its input from a pipe, and returns its answers and how it ended.
    fn answers(
        folder: &Path,
        write: impl FnOnce(&mut PipeWriter),
    ) -> (Vec<Answered>, Result<(), AgentError>) {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        let interrupt = Arc::new(AtomicBool::new(false));
        let agent = Agent {
            weir: PathBuf::from("/nowhere/weir"),
            folder: folder.to_path_buf(),
            session: "5".to_owned(),
            facts: &no_facts,
            doctor: &Vec::new,
            interrupt: Arc::clone(&interrupt),
            between_rounds: &mut || (),
        };
        write(&mut writer);
        drop(writer);
        let mut output = Vec::new();
        let ended = agent.serve(BufReader::new(reader), &mut output);
        let has_ended = interrupt.load(Ordering::Relaxed);
        assert!(ended.is_err() || has_ended, "the end of the input ends what is under way");
        let lines = String::from_utf8(output).expect("it is text");
        (lines.lines().map(|line| codec::value(line).expect("it is ours")).collect(), ended)
    }

    fn ask(writer: &mut PipeWriter, number: u64, question: Question) {
        let line = codec::line(&Asked { number, question }).expect("it is short");
        writer.write_all(&line).expect("it is open");
    }

    #[test]
    fn questions_are_answered_in_order_and_what_cannot_be_is_refused() {
        let folder = folder("order");
        let (answers, ended) = answers(&folder, |writer| {
            ask(writer, 3, Question::Nothing);
            ask(writer, 4, Question::Facts);
            ask(writer, 9, Question::Step(RoundCommand::Totals));
            ask(writer, 10, Question::Doctor);
        });
        assert!(ended.is_ok(), "{ended:?}");
        assert_eq!(answers.iter().map(|it| it.number).collect::<Vec<_>>(), [3, 4, 9, 10]);
        assert_eq!(answers[0].answer, Ok(Answer::Nothing));
        assert!(matches!(answers[1].answer, Ok(Answer::Facts(_))));
        assert_eq!(answers[2].answer, Err(Refused::Environment("no round has begun".to_owned())));
        assert_eq!(answers[3].answer, Ok(Answer::Doctor(Vec::new())));
        let left: Vec<_> =
            fs::read_dir(&folder).expect("it was made").flatten().map(|it| it.file_name()).collect();
        assert_eq!(left, [LOCK], "its own folder is gone");
        fs::remove_dir_all(&folder).expect("it can be removed");
    }

    #[test]
    fn what_is_no_question_ends_it_with_a_reason() {
        let folder = folder("wrong");
        let ended = |bytes: &[u8]| {
            let (answers, ended) = answers(&folder, |writer| writer.write_all(bytes).expect("it is open"));
            assert!(answers.is_empty(), "{answers:?}");
            ended.expect_err("it is wrong").to_string()
        };
        assert!(ended(b"SSH-2.0-scan\n").contains("none of ours"));
        assert_eq!(ended(b"{\"number\":1"), "a line was cut off after 11 bytes");
        assert!(ended(b"{\"number\":1,\"question\":\"sing\"}\n").contains("sing"));
        fs::remove_dir_all(&folder).expect("it can be removed");
    }

    #[test]
    fn silence_ends_it_with_or_without_servers_and_the_end_of_the_input_is_none() {
        let longest = Duration::from_secs(600);
        let heard = |heard| question(heard, longest);
        let silent = heard(Err(RecvTimeoutError::Timeout)).expect_err("the laboratory is gone");
        assert_eq!(silent.to_string(), "the laboratory asked nothing for 600 s");
        assert!(matches!(heard(Ok(Came::End)), Ok(None)));
        assert!(matches!(heard(Err(RecvTimeoutError::Disconnected)), Ok(None)));
        let line = "{\"number\":7,\"question\":\"nothing\"}".to_owned();
        let asked = heard(Ok(Came::Line(line))).expect("it is a question").expect("it is not the end");
        assert_eq!((asked.number, asked.question), (7, Question::Nothing));
        // An open input without a question, for no time at all.
        let (_open, came) = mpsc::channel();
        let mut output = Vec::new();
        let mut idle = Session { came, output: &mut output, number: 0, silence_max: Duration::ZERO };
        assert!(matches!(idle.next(), Err(AgentError::Silence(0))));
    }

    #[test]
    fn an_agent_that_waits_for_its_own_lock_is_not_ended() {
        let own = format!("7 {}", std::process::id());
        assert!(end_earlier(&own, "7"), "the lock is waited for");
        assert!(!end_earlier(&own, "8"), "it is another session's");
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_not_used() {
        let folder = folder("open");
        fs::create_dir_all(&folder).expect("a folder can be made");
        let set = |mode: u32| {
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).expect("it is ours");
            WorkFolder::take(&folder, "7").map(drop).map_err(|error| error.to_string())
        };
        for mode in [0o777, 0o775, 0o1777] {
            let refused = set(mode).expect_err("others may write to it");
            assert!(
                refused.contains("other users may write to it") && refused.contains("chmod go-w"),
                "{refused}"
            );
        }
        assert_eq!([set(0o755), set(0o700)], [Ok(()), Ok(())]);
        // Only root can give a folder away.
        if std::os::unix::fs::chown(&folder, Some(65_534), None).is_ok() {
            assert!(set(0o700).expect_err("it is another's").contains("belongs to another user"));
        }
        fs::remove_dir_all(&folder).expect("it can be removed");
    }

    #[test]
    fn another_session_is_refused_and_says_who_works() {
        let folder = folder("busy");
        let held = WorkFolder::take(&folder, "7").expect("it is free");
        let (answers, ended) = answers(&folder, |writer| ask(writer, 1, Question::Facts));
        assert!(ended.is_ok());
        let own = std::process::id();
        let reason = format!("another study or load uses this host: its agent is process {own}");
        assert_eq!(answers[0].answer, Err(Refused::Environment(reason)));
        drop(held);
        assert!(WorkFolder::take(&folder, "5").is_ok());
        assert!(!end_earlier("5 1", "5"), "the first process is no agent");
        assert!(!end_earlier(&format!("7 {own}"), "5") && !end_earlier("", "5"));
        fs::remove_dir_all(&folder).expect("it can be removed");
    }
}
