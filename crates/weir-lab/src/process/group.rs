//! A child with its process group: ended with everything in its group, also when this process is killed.

use std::{
    io::{self, Write},
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid},
};
use weir_sys::child::spawn_bound;

use super::pipe::{Keep, Pipe, wait_readable, wait_writable};
use crate::{launch::LaunchError, supervise};

/// Longest output of a child that is kept; a load report with its histograms is a tenth of it.
const STDOUT_BYTES_MAX: usize = 4 << 20;

/// How much of the end of a child's error output is kept for messages.
const STDERR_BYTES_MAX: usize = 4 << 10;

/// Longest time between two looks at the deadline, the interrupt flag and the child.
pub(crate) const TICK: Duration = Duration::from_millis(20);

/// How long a child that cleans up has for it; it needs some milliseconds.
const CLEAN_UP_MAX: Duration = Duration::from_secs(1);

/// What becomes of a child when this process is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bond {
    /// The kernel kills it.
    Dies,
    /// It lives to clean up, and ends itself when its input closes.
    CleansUp,
    /// The kernel kills it; until then it takes commands on its input, and ends when that closes.
    Commanded,
}

/// Exit codes of `weir` that mean more than "it failed".
const EXIT_USAGE: i32 = 2;
const EXIT_ENVIRONMENT: i32 = 13;

/// Why a child would not do its work, in its own words.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    /// What it was told cannot be meant.
    Usage(String),
    /// It cannot run here.
    Environment(String),
}

impl Refusal {
    /// The words.
    pub(crate) fn reason(&self) -> &str {
        match self {
            Self::Usage(said) | Self::Environment(said) => said,
        }
    }

    /// The same with the arm that it is about.
    pub(crate) fn about(&self, arm: &str) -> Self {
        let text = format!("arm {arm}: {}", self.reason());
        match self {
            Self::Usage(_) => Self::Usage(text),
            Self::Environment(_) => Self::Environment(text),
        }
    }
}

impl From<Refusal> for LaunchError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Usage(said) => LaunchError::Usage(said),
            Refusal::Environment(said) => LaunchError::Environment(said),
        }
    }
}

/// A running child, or one that ended and is not reaped yet. Dropping it ends the child and all below it.
pub(crate) struct Group {
    child: Child,
    pid: Pid,
    /// Held open while a child that cleans up must not: it does when this end closes, also because this process was
    /// killed. Commands go through it too. `None` for children that are only bound.
    stdin: Option<ChildStdin>,
    pub(crate) stdout: Pipe<ChildStdout>,
    stderr: Pipe<ChildStderr>,
    reaped: Option<ExitStatus>,
}

impl Group {
    pub(crate) fn start(command: &mut Command, bond: Bond) -> io::Result<Self> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = match bond {
            Bond::Dies => spawn_bound(command.stdin(Stdio::null()))?,
            Bond::Commanded => spawn_bound(command.stdin(Stdio::piped()))?,
            Bond::CleansUp => command.stdin(Stdio::piped()).process_group(0).spawn()?,
        };
        let pid = Pid::from_child(&child);
        let pipes = (child.stdout.take(), child.stderr.take());
        let (Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("a child without pipes"));
        };
        let stdout = Pipe::new(stdout, Keep::First, STDOUT_BYTES_MAX)?;
        let stderr = Pipe::new(stderr, Keep::Last, STDERR_BYTES_MAX)?;
        let stdin = child.stdin.take();
        Ok(Self { child, pid, stdin, stdout, stderr, reaped: None })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Says something to a child that listens.
    pub(crate) fn say(&mut self, word: &[u8]) {
        if let Some(stdin) = &mut self.stdin {
            // Fails only when the child is gone.
            let _ = stdin.write_all(word);
        }
    }

    /// Says something however long, and reads meanwhile what it says, so that neither waits for the other. From then on
    /// its input does not block.
    ///
    /// # Errors
    /// When it no longer listens, or has not taken all of it by the deadline.
    pub(crate) fn say_by(&mut self, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
        let Some(mut stdin) = self.stdin.take() else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let set = fcntl_getfl(&stdin).and_then(|flags| fcntl_setfl(&stdin, flags | OFlags::NONBLOCK));
        let mut said = set.map_err(io::Error::from);
        while said.is_ok() && !bytes.is_empty() {
            match stdin.write(bytes) {
                Ok(length) => bytes = &bytes[length..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => said = Err(error),
                Err(_) if Instant::now() >= deadline => said = Err(io::ErrorKind::TimedOut.into()),
                Err(_) => {
                    wait_writable(&stdin, TICK);
                    self.drain();
                }
            }
        }
        self.stdin = Some(stdin);
        said
    }

    /// Closes its input, and waits until it has ended by itself, at most so long.
    pub(crate) fn hang_up(&mut self, longest: Duration) {
        drop(self.stdin.take());
        self.wait(longest);
    }

    /// Takes the next line of its output, within a moment.
    pub(crate) fn next_line(&mut self) -> Option<String> {
        if let Some(line) = self.stdout.take_line() {
            return Some(line);
        }
        self.tick();
        self.stdout.take_line()
    }

    /// Reads what it has said, so that it never waits for us.
    pub(crate) fn drain(&mut self) {
        self.stdout.drain();
        self.stderr.drain();
    }

    /// From now on it is noted whether it writes a line with this text.
    pub(crate) fn await_line(&mut self, text: &str) {
        self.stdout.await_line(text);
        self.stderr.await_line(text);
    }

    /// Whether it did.
    pub(crate) fn line_has_come(&self) -> bool {
        self.stdout.line_has_come() || self.stderr.line_has_come()
    }

    /// Waits a moment for output and reads it.
    pub(crate) fn tick(&mut self) {
        self.tick_at_most(TICK);
    }

    /// The same for a moment that may be shorter.
    pub(crate) fn tick_at_most(&mut self, longest: Duration) {
        wait_readable(&self.stdout, &self.stderr, TICK.min(longest));
        self.drain();
    }

    /// Takes the complete lines of its error output.
    pub(crate) fn take_errors(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.stderr.take_line()).collect()
    }

    /// Whether the child itself has ended. It stays unreaped, so that its group's number stays ours.
    pub(crate) fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.reaped.is_some() || !matches!(waitid(WaitId::Pid(self.pid), options), Ok(None))
    }

    /// Waits until the child has ended by itself, at most so long.
    pub(crate) fn wait(&mut self, longest: Duration) -> bool {
        let deadline = Instant::now() + longest;
        while !self.has_ended() {
            if Instant::now() >= deadline {
                return false;
            }
            self.tick();
        }
        true
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if self.reaped.is_none() {
            // Fails only when the group is gone already, which is what is wanted.
            let _ = kill_process_group(self.pid, signal);
        }
    }

    /// Ends the child and everything below it, reaps the child and gives its status.
    ///
    /// A supervisor goes last. Processes below it may have left its group, and only while it lives do orphans come to
    /// it and can be found; so its input is closed, it ends them and itself, and if it hangs they are ended from here.
    pub(crate) fn end(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.reaped {
            return Ok(status);
        }
        if self.stdin.take().is_some() && !self.wait(CLEAN_UP_MAX) {
            supervise::kill_below(self.pid());
        }
        // Before the child is reaped, because afterwards the group's number may belong to others.
        self.signal(Signal::KILL);
        let status = self.child.wait()?;
        self.drain();
        self.reaped = Some(status);
        Ok(status)
    }

    /// Ends the child; `None` when its exit code says no more than that it failed. Only of `weir` itself all codes are
    /// known.
    pub(crate) fn refusal(&mut self, is_weir: bool) -> Option<Refusal> {
        match self.end().ok()?.code()? {
            EXIT_USAGE if is_weir => Some(Refusal::Usage(self.said())),
            EXIT_ENVIRONMENT if is_weir => Some(Refusal::Environment(self.said())),
            supervise::EXIT_NOT_STARTED => Some(Refusal::Environment(self.said())),
            _ => None,
        }
    }

    /// How the child ended and the end of what it said, in one line.
    pub(crate) fn exit_reason(&mut self) -> String {
        let how = match self.end() {
            Ok(status) => match (status.code(), status.signal()) {
                (Some(code), _) => format!("exited with status {code}"),
                (None, Some(signal)) => format!("was killed by signal {signal}"),
                (None, None) => "ended".to_owned(),
            },
            Err(error) => format!("cannot be reaped ({error})"),
        };
        match self.said() {
            said if said.is_empty() => how,
            said => format!("{how}: {said}"),
        }
    }

    /// The end of the child's error output, in one line. Weir's own name in front says nothing in a study of Weir.
    pub(crate) fn said(&self) -> String {
        let text = self.stderr.text();
        let lines = text.lines().map(|line| line.trim().trim_start_matches("weir: "));
        let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
        lines[lines.len().saturating_sub(3)..].join("; ")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A group that cannot be killed or reaped is one that is gone.
        let _ = self.end();
    }
}
