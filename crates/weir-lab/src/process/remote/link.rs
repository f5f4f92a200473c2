//! A connection to an agent: the transport's process, with questions on its input and answers on its output, each
//! within a deadline. Dropping it closes the input, which ends all processes on the other host, and waits for their
//! end.

use std::{
    fmt,
    fs::File,
    io::{self, Read},
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use sha2::{Digest, Sha256};

use super::{
    Transport,
    bootstrap::{self, Copy, Program, Said},
    codec::{self, Answer, Answered, Asked, Question, Refused},
};
use crate::{
    launch::LaunchError,
    process::group::{Bond, Group},
};

/// Longest time until the shell of the other host answers: connecting, authentication, jump hosts.
const SHELL_MAX: Duration = Duration::from_secs(40);

/// Longest time until the program is copied, and until it begins.
const COPY_MAX: Duration = Duration::from_secs(300);
const CHECK_MAX: Duration = Duration::from_secs(30);

/// Longest time of a question that concerns no server.
pub(super) const QUESTION_MAX: Duration = Duration::from_secs(30);

/// Longest time from the end of its input until the transport has ended: the agent ends its servers first.
const END_MAX: Duration = Duration::from_secs(10);

/// Most bytes of a login shell's output that are quoted.
const NOISE_BYTES_MAX: usize = 400;

/// Random bytes in the name of a session.
const SESSION_BYTES: usize = 8;

/// The running program, to be copied.
pub(super) struct Own {
    program: Program,
    bytes: Vec<u8>,
    /// Distinguishes this laboratory's connections from another's.
    session: String,
}

impl Own {
    /// Reads the program of this process, even if its file was replaced.
    pub(super) fn read() -> io::Result<Self> {
        let bytes = std::fs::read("/proc/self/exe")?;
        let hash = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let mut drawn = [0; SESSION_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut drawn)?;
        let session = drawn.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { program: Program { hash, length: bytes.len() }, bytes, session })
    }
}

/// Why a question has no answer.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// The user interrupted; the connection is closed.
    Interrupted,
    /// The agent refuses.
    Refused(Refused),
    /// The host, the connection or its agent was lost. The text is one line and names the host.
    Lost(String),
}

impl Unanswered {
    /// Converts to an error of the session.
    pub(super) fn of_host(self, host: &str) -> LaunchError {
        match self {
            Self::Interrupted => LaunchError::Interrupted,
            Self::Refused(refused) => refused.of_host(host),
            Self::Lost(reason) => LaunchError::Environment(reason),
        }
    }
}

/// An open connection.
pub(super) struct Link {
    name: String,
    transport: Group,
    asked: u64,
}

impl Link {
    /// Starts an agent at the other end, and sends the program if it is not there.
    pub(super) fn open(way: &Transport, own: &Own, interrupt: &AtomicBool) -> Result<Self, LaunchError> {
        let cannot = |what: String| LaunchError::Environment(format!("{way}: {what}"));
        let (program, words) =
            way.words.split_first().ok_or_else(|| cannot("there is no way to it".to_owned()))?;
        let mut command = Command::new(program);
        command.args(words).arg("sh");
        let transport = Group::start(&mut command, Bond::CleansUp)
            .map_err(|error| cannot(format!("cannot start {program}: {error}")))?;
        let mut link = Self { name: way.name.clone(), transport, asked: 0 };
        match link.begin(own, interrupt) {
            Ok(()) => Ok(link),
            Err(unanswered) => Err(unanswered.of_host(&link.name)),
        }
    }

    fn begin(&mut self, own: &Own, interrupt: &AtomicBool) -> Result<(), Unanswered> {
        let script = bootstrap::script(&own.program, &own.session);
        self.say(script.as_bytes(), SHELL_MAX)?;
        let Said::Found { system, machine, copy } = self.hear(SHELL_MAX, interrupt)? else {
            return Err(self.lost("its shell said something else than what machine it is".to_owned()));
        };
        let refuse = |reason: String| Err(Unanswered::Refused(Refused::Environment(reason)));
        let uname = rustix::system::uname();
        let here = (uname.sysname().to_string_lossy(), uname.machine().to_string_lossy());
        if (system.as_str(), machine.as_str()) != (&here.0, &here.1) {
            return refuse(format!(
                "it is {system} on {machine}, and this weir is for {} on {}; run the study from a machine of that kind \
                 with a weir built for it, or on that host itself",
                here.0, here.1
            ));
        }
        match copy {
            Copy::There => {}
            Copy::Needed => self.say(&own.bytes, COPY_MAX)?,
            Copy::NoFolder => {
                return refuse(
                    "neither HOME nor XDG_CACHE_HOME is set there, so that weir has no place".to_owned(),
                );
            }
            Copy::NoHash => {
                return refuse(
                    "it has neither sha256sum nor shasum, so that nobody can check what is run; install coreutils \
                     there"
                        .to_owned(),
                );
            }
        }
        match self.hear(CHECK_MAX, interrupt)? {
            Said::Ready => Ok(()),
            Said::Damaged => refuse("what arrived there is not the program that was sent".to_owned()),
            Said::Found { .. } => Err(self.lost("its shell said twice what machine it is".to_owned())),
        }
    }

    /// The next line of the bootstrap. Other output until then becomes part of the error if there is none.
    fn hear(&mut self, longest: Duration, interrupt: &AtomicBool) -> Result<Said, Unanswered> {
        let deadline = Instant::now() + longest;
        let mut noise = String::new();
        loop {
            let line = self.line(deadline, Some(interrupt)).map_err(|unanswered| match unanswered {
                Unanswered::Lost(reason) if !noise.is_empty() => {
                    Unanswered::Lost(format!("{reason}; before that it said: {noise}"))
                }
                other => other,
            })?;
            if let Some(said) = bootstrap::said(line.trim_end()) {
                return Ok(said);
            }
            if !line.trim().is_empty() && noise.len() < NOISE_BYTES_MAX {
                let separator = if noise.is_empty() { "" } else { "; " };
                noise.push_str(separator);
                noise.extend(line.trim().chars().take(NOISE_BYTES_MAX - noise.len().min(NOISE_BYTES_MAX)));
            }
        }
    }

    /// Asks, and waits for the answer. If `interrupt` is given, setting it closes the connection.
    pub(super) fn ask(
        &mut self,
        question: Question,
        longest: Duration,
        interrupt: Option<&AtomicBool>,
    ) -> Result<Answer, Unanswered> {
        self.asked += 1;
        let asked = Asked { number: self.asked, question };
        let line = codec::line(&asked).map_err(|error| self.lost(error.to_string()))?;
        let deadline = Instant::now() + longest;
        self.say(&line, longest)?;
        loop {
            let line = self.line(deadline, interrupt)?;
            let answered: Answered = codec::value(&line).map_err(|error| self.lost(error.to_string()))?;
            if answered.number == self.asked {
                return answered.answer.map_err(Unanswered::Refused);
            }
            // An answer to a question that was given up. A number above the last question's is an error.
            if answered.number > self.asked {
                return Err(self.lost(format!("it answered question {}", answered.number)));
            }
        }
    }

    fn say(&mut self, bytes: &[u8], longest: Duration) -> Result<(), Unanswered> {
        match self.transport.say_by(bytes, Instant::now() + longest) {
            Ok(()) => Ok(()),
            // The wait for its answer finds out why it ended, with its earlier output.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                Err(self.lost(format!("it took nothing more for {} s", longest.as_secs())))
            }
            Err(error) => Err(self.lost(error.to_string())),
        }
    }

    fn line(&mut self, deadline: Instant, interrupt: Option<&AtomicBool>) -> Result<String, Unanswered> {
        let asked_at = Instant::now();
        loop {
            if interrupt.is_some_and(|interrupt| interrupt.load(Ordering::Relaxed)) {
                self.transport.hang_up(END_MAX);
                return Err(Unanswered::Interrupted);
            }
            if let Some(line) = self.transport.next_line() {
                return Ok(line);
            }
            if self.transport.stdout.is_full() {
                return Err(self.lost("a line came that is longer than any of ours".to_owned()));
            }
            if self.transport.has_ended() {
                // Its last output may have arrived since.
                self.transport.drain();
                return self.transport.stdout.take_line().ok_or_else(|| self.ended());
            }
            if Instant::now() >= deadline {
                let waited = asked_at.elapsed().as_secs();
                return Err(self.lost(format!("it gave no answer within {waited} s")));
            }
        }
    }

    fn ended(&mut self) -> Unanswered {
        self.transport.hang_up(END_MAX);
        let how = self.transport.exit_reason();
        self.lost(format!("the way to it {how}"))
    }

    fn lost(&self, reason: String) -> Unanswered {
        Unanswered::Lost(format!("{}: {reason}", self.name))
    }

    /// The transport's process.
    pub(super) fn pid(&self) -> u32 {
        self.transport.pid()
    }

    /// Lines of standard error since the last call, each with the host in front.
    pub(super) fn said(&mut self) -> Vec<String> {
        self.transport.drain();
        let lines = self.transport.take_errors();
        lines.iter().map(|line| format!("{}: {line}", self.name)).collect()
    }
}

impl fmt::Debug for Own {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.program.fmt(formatter)
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Link").field("name", &self.name).field("asked", &self.asked).finish()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.transport.hang_up(END_MAX);
    }
}
