//! A child with its process group. It is ended with everything in its group, also when this process is killed.

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

/// Most bytes of a child's output that are kept; a load report with its histograms is a tenth of it.
const STDOUT_BYTES_MAX: usize = 4 << 20;

/// Most bytes of a child's error output that are kept for messages, from its end.
const STDERR_BYTES_MAX: usize = 4 << 10;

/// Longest time between two checks of the deadline, the interrupt flag and the child.
pub(crate) const TICK: Duration = Duration::from_millis(20);

/// Time limit of a child that cleans up; it needs some milliseconds.
const CLEAN_UP_MAX: Duration = Duration::from_secs(1);

/// How a child ends when this process is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bond {
    /// The kernel kills it.
    Dies,
    /// It survives to clean up, and ends itself when its input closes.
    CleansUp,
    /// The kernel kills it; until then it takes commands on its input, and ends when that closes.
    Commanded,
}

/// Exit codes of `weir` with a more specific meaning than "it failed".
const EXIT_USAGE: i32 = 2;
const EXIT_ENVIRONMENT: i32 = 13;

/// Why a child refused its work, in its own message.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    /// Its arguments are invalid.
    Usage(String),
    /// It cannot run here.
    Environment(String),
}

impl Refusal {
    /// The message.
    pub(crate) fn reason(&self) -> &str {
        match self {
            Self::Usage(said) | Self::Environment(said) => said,
        }
    }

    /// The same with the arm it concerns.
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

/// A running child, or one that ended and is not reaped yet. Dropping it ends the child and all its descendants.
pub(crate) struct Group {
    child: Child,
    pid: Pid,
    /// Kept open until a child that cleans up must end: it ends when this pipe closes, also because this process was
    /// killed. Commands go through it too. `None` for children that are only bound by the kernel.
    stdin: Option<ChildStdin>,
    pub(crate) stdout: Pipe<ChildStdout>,
    stderr: Pipe<ChildStderr>,
    /// It was waited for after the end of its input.
    has_hung_up: bool,
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
        Ok(Self { child, pid, stdin, stdout, stderr, has_hung_up: false, reaped: None })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Sends a word to a child that reads its input.
    pub(crate) fn say(&mut self, word: &[u8]) {
        if let Some(stdin) = &mut self.stdin {
            // Fails only if the child is gone.
            let _ = stdin.write_all(word);
        }
    }

    /// Sends bytes of any length and drains the child's output meanwhile, so that neither waits for the other. From
    /// then on the child's input is non-blocking.
    ///
    /// # Errors
    /// If the child no longer reads, or `is_over` says that the wait for it is over.
    pub(crate) fn say_unless(
        &mut self,
        mut bytes: &[u8],
        mut is_over: impl FnMut() -> bool,
    ) -> io::Result<()> {
        let Some(mut stdin) = self.stdin.take() else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let set = fcntl_getfl(&stdin).and_then(|flags| fcntl_setfl(&stdin, flags | OFlags::NONBLOCK));
        let mut said = set.map_err(io::Error::from);
        while said.is_ok() && !bytes.is_empty() {
            match stdin.write(bytes) {
                Ok(length) => bytes = &bytes[length..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => said = Err(error),
                Err(_) if is_over() => said = Err(io::ErrorKind::TimedOut.into()),
                Err(_) => {
                    wait_writable(&stdin, TICK);
                    self.drain();
                }
            }
        }
        self.stdin = Some(stdin);
        said
    }

    /// Closes its input, and waits at most this long until it has ended by itself. Nothing happens the second time.
    pub(crate) fn hang_up(&mut self, longest: Duration) {
        if !std::mem::replace(&mut self.has_hung_up, true) {
            self.stdin = None;
            self.wait(longest);
        }
    }

    /// Closes its input without a wait. [`Self::end`] ends it.
    pub(crate) fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Takes the next line of its output, after waiting for at most a tick.
    pub(crate) fn next_line(&mut self) -> Option<String> {
        if let Some(line) = self.stdout.take_line() {
            return Some(line);
        }
        self.tick();
        self.stdout.take_line()
    }

    /// Reads its output, so that it never blocks on a full pipe.
    pub(crate) fn drain(&mut self) {
        self.stdout.drain();
        self.stderr.drain();
    }

    /// Begins to watch for a line with this text.
    pub(crate) fn await_line(&mut self, text: &str) {
        self.stdout.await_line(text);
        self.stderr.await_line(text);
    }

    /// Whether the awaited line has arrived.
    pub(crate) fn line_has_come(&self) -> bool {
        self.stdout.line_has_come() || self.stderr.line_has_come()
    }

    /// Waits at most a tick for output and reads it.
    pub(crate) fn tick(&mut self) {
        self.tick_at_most(TICK);
    }

    /// The same with a limit that may be shorter.
    pub(crate) fn tick_at_most(&mut self, longest: Duration) {
        wait_readable(&self.stdout, &self.stderr, TICK.min(longest));
        self.drain();
    }

    /// Waits this long for output, longer than a tick if asked, and reads it. For a child that measures and should not
    /// be disturbed.
    pub(crate) fn wait_output(&mut self, longest: Duration) {
        wait_readable(&self.stdout, &self.stderr, longest);
        self.drain();
    }

    /// Takes the complete lines of its error output.
    pub(crate) fn take_errors(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.stderr.take_line()).collect()
    }

    /// Whether the child itself has ended. It stays unreaped, so that the number of its group is not reused.
    pub(crate) fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.reaped.is_some() || !matches!(waitid(WaitId::Pid(self.pid), options), Ok(None))
    }

    /// Waits at most this long until the child has ended by itself.
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
            // Fails only if the group is gone already.
            let _ = kill_process_group(self.pid, signal);
        }
    }

    /// Ends the child and all its descendants, reaps the child and returns its status.
    ///
    /// A supervisor ends last. Its descendants may have left its group, and orphans can be found only while it lives
    /// and adopts them. So its input is closed, and it ends them and itself. If it hangs, this process ends them.
    pub(crate) fn end(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.reaped {
            return Ok(status);
        }
        if self.stdin.take().is_some() && !self.wait(CLEAN_UP_MAX) {
            supervise::kill_below(self.pid());
        }
        // Before the child is reaped, because afterwards the group's number may be reused.
        self.signal(Signal::KILL);
        let status = self.child.wait()?;
        self.drain();
        self.reaped = Some(status);
        Ok(status)
    }

    /// Ends the child and returns its refusal; `None` if its exit code means only that it failed. Every code has a
    /// known meaning only for `weir` itself.
    pub(crate) fn refusal(&mut self, is_weir: bool) -> Option<Refusal> {
        match self.end().ok()?.code()? {
            EXIT_USAGE if is_weir => Some(Refusal::Usage(self.said())),
            EXIT_ENVIRONMENT if is_weir => Some(Refusal::Environment(self.said())),
            supervise::EXIT_NOT_STARTED => Some(Refusal::Environment(self.said())),
            _ => None,
        }
    }

    /// How the child ended and the end of its error output, in one line.
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

    /// The end of the child's error output, in one line. The prefix of Weir's own name is dropped, because it adds
    /// nothing in a study of Weir.
    pub(crate) fn said(&self) -> String {
        let text = self.stderr.text();
        let lines = text.lines().map(|line| line.trim().trim_start_matches("weir: "));
        let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
        lines[lines.len().saturating_sub(3)..].join("; ")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A group that cannot be killed or reaped is gone.
        let _ = self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_nobody_reads_are_given_up_when_the_wait_is_over() {
        let mut command = Command::new("sh");
        command.args(["-c", "kill -STOP $$"]);
        let mut child = Group::start(&mut command, Bond::CleansUp).expect("it starts");
        let mut looks = 0;
        let said = child.say_unless(&vec![0; 1 << 20], || {
            looks += 1;
            looks > 1
        });
        child.signal(Signal::KILL);
        assert_eq!(said.expect_err("it is stopped").kind(), io::ErrorKind::TimedOut);
        assert_eq!(looks, 2);
    }
}
