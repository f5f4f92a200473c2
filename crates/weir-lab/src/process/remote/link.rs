//! A connection to an agent: the transport's process, with questions on its input and answers on its output, each
//! within a deadline. Dropping it closes the input, which ends all processes on the other host, and waits for their
//! end.

use std::{
    fmt,
    fs::File,
    io::{self, Read},
    process::Command,
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant},
};

use sha2::{Digest, Sha256};

use super::{
    Transport,
    bootstrap::{self, Copy, Program, Said},
    codec::{self, Answer, Asked, Question, Refused},
    escape::escaped,
    wait::{Limits, Over, Wait},
};
use crate::{
    launch::LaunchError,
    process::{
        group::{Bond, Group},
        pipe::wait_any,
    },
};

/// Longest time until the shell of the other host answers: connecting, authentication, jump hosts.
const SHELL_MAX: Duration = Duration::from_secs(40);

/// Longest time until the program is copied, and until it begins.
pub(super) const COPY_MAX: Duration = Duration::from_secs(300);
const CHECK_MAX: Duration = Duration::from_secs(30);

/// Longest time of a question that concerns no server.
pub(super) const QUESTION_MAX: Duration = Duration::from_secs(30);

/// Longest time from the end of its input until the transport has ended: the agent ends its servers first. An
/// interrupted session waits that long once.
const END_MAX: Duration = Duration::from_secs(10);

/// How long a connection is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// Until the shell of the other host answers.
    pub(super) shell: Duration,
    /// From the end of its input until the transport has ended, before an agent was there.
    pub(super) end_early: Duration,
    /// The same afterwards.
    pub(super) end: Duration,
}

impl Patience {
    /// For a session that runs for long.
    const USUAL: Self = Self { shell: SHELL_MAX, end_early: END_MAX, end: END_MAX };
}

/// Most bytes of a login shell's output that are quoted.
const NOISE_BYTES_MAX: usize = 400;

/// Random bytes in the name of a session.
const SESSION_BYTES: usize = 8;

/// The running program, to be copied.
#[derive(Clone)]
pub struct OwnProgram {
    program: Program,
    bytes: Arc<[u8]>,
    /// Distinguishes this laboratory's connections from another's.
    session: String,
}

impl OwnProgram {
    /// Reads the program of this process, even if its file was replaced.
    ///
    /// # Errors
    /// If it cannot be read, or no session can be drawn.
    pub fn read() -> io::Result<Self> {
        let bytes: Arc<[u8]> = std::fs::read("/proc/self/exe")?.into();
        let hash = hexadecimal(&Sha256::digest(&bytes));
        Ok(Self { program: Program { hash, length: bytes.len() }, bytes, session: drawn_session()? })
    }

    /// The same program for another session. Two agents of one session end each other, so each host of several has its
    /// own: two names may lead to one machine.
    pub(super) fn for_another_session(&self) -> io::Result<Self> {
        Ok(Self { session: drawn_session()?, ..self.clone() })
    }
}

fn drawn_session() -> io::Result<String> {
    let mut drawn = [0; SESSION_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut drawn)?;
    Ok(hexadecimal(&drawn))
}

/// Two digits for each byte.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing into a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
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
    /// Longest wait for its end.
    end_max: Duration,
}

impl Link {
    /// Starts an agent at the other end, and sends the program if it is not there.
    pub(super) fn open(
        way: &Transport,
        own: &OwnProgram,
        interrupt: &AtomicBool,
    ) -> Result<Self, LaunchError> {
        Self::open_within(way, own, Patience::USUAL, interrupt)
    }

    /// The same with other limits.
    pub(super) fn open_within(
        way: &Transport,
        own: &OwnProgram,
        patience: Patience,
        interrupt: &AtomicBool,
    ) -> Result<Self, LaunchError> {
        let cannot = |what: String| LaunchError::Environment(format!("{way}: {what}"));
        let (program, words) =
            way.words.split_first().ok_or_else(|| cannot("there is no way to it".to_owned()))?;
        let mut command = Command::new(program);
        command.args(words).arg("sh");
        let transport = Group::start(&mut command, Bond::CleansUp)
            .map_err(|error| cannot(format!("cannot start {program}: {error}")))?;
        let mut link = Self { name: way.name.clone(), transport, asked: 0, end_max: patience.end_early };
        match link.begin(own, patience.shell, interrupt) {
            Ok(()) => {
                link.end_max = patience.end;
                Ok(link)
            }
            Err(unanswered) => Err(unanswered.of_host(&link.name)),
        }
    }

    fn begin(
        &mut self,
        own: &OwnProgram,
        shell_max: Duration,
        interrupt: &AtomicBool,
    ) -> Result<(), Unanswered> {
        let script = bootstrap::script(&own.program, &own.session);
        let mut wait = Wait::new(Limits::new(shell_max, interrupt), Instant::now());
        self.say(script.as_bytes(), &mut wait)?;
        let Said::Found { system, machine, copy } = self.hear(&mut wait)? else {
            return Err(self.lost("its shell said something else than what machine it is".to_owned()));
        };
        let refuse = |reason: String| Err(Unanswered::Refused(Refused::Environment(reason)));
        let uname = rustix::system::uname();
        let here = (uname.sysname().to_string_lossy(), uname.machine().to_string_lossy());
        if (system.as_str(), machine.as_str()) != (&here.0, &here.1) {
            return refuse(format!(
                "it is {system} on {machine}, and this weir is for {} on {}; name a host of that kind, or start from a \
                 machine like it with a weir built for it",
                here.0, here.1
            ));
        }
        match copy {
            Copy::There => {}
            Copy::Needed => {
                let mut wait = Wait::new(Limits::new(COPY_MAX, interrupt), Instant::now());
                self.say(&own.bytes, &mut wait)?;
            }
            Copy::NoFolder => {
                return refuse(
                    "neither HOME nor XDG_CACHE_HOME is set there, so that weir has no place".to_owned(),
                );
            }
            Copy::OpenFolder => {
                return refuse(
                    "its folder weir in ~/.cache (or XDG_CACHE_HOME) belongs to another user, or other users may write \
                     to it and could replace the program that is run; remove the folder, or run `chmod -R go-w` on it"
                        .to_owned(),
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
        match self.hear(&mut Wait::new(Limits::new(CHECK_MAX, interrupt), Instant::now()))? {
            Said::Ready => Ok(()),
            Said::Damaged => refuse("what arrived there is not the program that was sent".to_owned()),
            Said::Found { .. } => Err(self.lost("its shell said twice what machine it is".to_owned())),
        }
    }

    /// The next line of the bootstrap. Other output until then becomes part of the error if there is none.
    fn hear(&mut self, wait: &mut Wait<'_>) -> Result<Said, Unanswered> {
        let mut noise = String::new();
        loop {
            let line = self.line(wait).map_err(|unanswered| match unanswered {
                Unanswered::Lost(reason) if !noise.is_empty() => {
                    Unanswered::Lost(format!("{reason}; before that it said: {noise}"))
                }
                other => other,
            })?;
            let line = escaped(line.trim());
            if let Some(said) = bootstrap::said(&line) {
                return Ok(said);
            }
            if !line.is_empty() && noise.len() < NOISE_BYTES_MAX {
                let separator = if noise.is_empty() { "" } else { "; " };
                noise.push_str(separator);
                noise.extend(line.chars().take(NOISE_BYTES_MAX - noise.len().min(NOISE_BYTES_MAX)));
            }
        }
    }

    /// Asks, and waits for the answer. An interruption closes the connection.
    pub(super) fn ask(&mut self, question: Question, limits: Limits<'_>) -> Result<Answer, Unanswered> {
        let mut wait = Wait::new(limits, Instant::now());
        self.send(question, &mut wait)?;
        loop {
            let line = self.line(&mut wait)?;
            if let Some(answer) = self.answer_of(&line)? {
                return answer;
            }
        }
    }

    /// Asks without a wait for the answer.
    pub(super) fn send(&mut self, question: Question, wait: &mut Wait<'_>) -> Result<(), Unanswered> {
        self.asked += 1;
        let asked = Asked { number: self.asked, question };
        let line = codec::line(&asked).map_err(|error| self.lost(error.to_string()))?;
        self.say(&line, wait)
    }

    /// The answer to the last question, if it has come.
    pub(super) fn come(&mut self) -> Option<Result<Answer, Unanswered>> {
        // Looked at first: its last output may come before its end.
        let has_ended = self.transport.has_ended();
        self.transport.drain();
        while let Some(line) = self.transport.stdout.take_line() {
            match self.answer_of(&line) {
                Ok(None) => {}
                Ok(Some(answer)) => return Some(answer),
                Err(unanswered) => return Some(Err(unanswered)),
            }
        }
        if self.transport.stdout.is_full() {
            return Some(Err(self.lost("a line came that is longer than any of ours".to_owned())));
        }
        has_ended.then(|| Err(self.ended()))
    }

    /// The answer in a line; `None` if it is to a question that was given up. A number above the last question's is an
    /// error.
    fn answer_of(&self, line: &str) -> Result<Option<Result<Answer, Unanswered>>, Unanswered> {
        let answered = codec::answered(line).map_err(|error| self.lost(error.to_string()))?;
        if answered.number > self.asked {
            return Err(self.lost(format!("it answered question {}", answered.number)));
        }
        let is_last = answered.number == self.asked;
        Ok(is_last.then(|| answered.answer.map_err(Unanswered::Refused)))
    }

    /// Closes its input, which ends everything on the other side. Dropping it waits for that.
    pub(super) fn close(&mut self) {
        self.transport.close_input();
    }

    /// Drops it sooner: it does not answer any more, or never did.
    pub(super) fn give_up_after(&mut self, longest: Duration) {
        self.end_max = longest;
    }

    /// Drops it at most this long from now.
    pub(super) fn end_within(&mut self, longest: Duration) {
        self.end_max = self.end_max.min(longest);
    }

    /// Waits until one of several connections has output, or the time is over.
    pub(super) fn wait_any<'l>(links: impl Iterator<Item = &'l Self>, longest: Duration) {
        let outputs: Vec<_> = links.map(|link| &link.transport.stdout).collect();
        wait_any(&outputs, longest);
    }

    fn say(&mut self, bytes: &[u8], wait: &mut Wait<'_>) -> Result<(), Unanswered> {
        let mut over = None;
        let said = self.transport.say_unless(bytes, || {
            over = wait.over(Instant::now());
            over.is_some()
        });
        match (said, over) {
            (Ok(()), _) => Ok(()),
            (Err(_), Some(over)) => {
                let reason = format!("it took nothing more for {} s", wait.longest().as_secs());
                Err(self.given_up(over, reason))
            }
            // The wait for its answer finds out why it ended, with its earlier output.
            (Err(error), None) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            (Err(error), None) => Err(self.lost(error.to_string())),
        }
    }

    fn line(&mut self, wait: &mut Wait<'_>) -> Result<String, Unanswered> {
        loop {
            if wait.over(Instant::now()) == Some(Over::Interrupted) {
                return Err(self.given_up(Over::Interrupted, String::new()));
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
            if let Some(over) = wait.over(Instant::now()) {
                let reason = format!("it gave no answer within {} s", wait.longest().as_secs());
                return Err(self.given_up(over, reason));
            }
        }
    }

    fn given_up(&mut self, over: Over, reason: String) -> Unanswered {
        match over {
            Over::TooLate => self.lost(reason),
            Over::Interrupted => {
                self.transport.hang_up(self.end_max);
                Unanswered::Interrupted
            }
        }
    }

    fn ended(&mut self) -> Unanswered {
        self.transport.hang_up(self.end_max);
        let how = self.transport.exit_reason();
        self.lost(format!("the way to it {how}"))
    }

    pub(super) fn lost(&self, reason: String) -> Unanswered {
        Unanswered::Lost(format!("{}: {}", self.name, escaped(&reason)))
    }

    /// The host's name in messages.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The transport's process.
    pub(super) fn pid(&self) -> u32 {
        self.transport.pid()
    }

    /// Lines of standard error since the last call, each with the host in front.
    pub(super) fn said(&mut self) -> Vec<String> {
        self.transport.drain();
        let lines = self.transport.take_errors();
        lines.iter().map(|line| format!("{}: {}", self.name, escaped(line.trim_end()))).collect()
    }
}

impl fmt::Debug for OwnProgram {
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
        self.transport.hang_up(self.end_max);
    }
}
