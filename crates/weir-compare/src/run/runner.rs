//! Weir's end of the launcher: it requests runs and waits for their outcomes.

use std::{
    ffi::OsString,
    io::{self, ErrorKind},
    iter,
    os::{
        fd::OwnedFd,
        unix::{net::UnixStream, process::CommandExt},
    },
    path::{Path, PathBuf},
    process::{Child, Command},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, PidfdFlags, pidfd_open},
};

use super::{
    CpuSource, OwnCost, RunError, RunOutcome, RunSpec, ServerClock, ServerEnd, cpu_group,
    wire::{Channel, Hello, Reply, Request},
};

/// The hidden subcommand that runs [`launcher_main`](super::launcher_main).
const SUBCOMMAND: &str = "launch-runs";

/// How long a launcher may take until it is ready: some runs that do nothing.
const READY_MAX: Duration = Duration::from_secs(30);

/// How long beyond the limit of a run the launcher may take: killing, and other load on the CPU meanwhile.
const SLACK: Duration = Duration::from_secs(30);

/// How long a launcher that is released may take to end the run that goes on.
const END_MAX: Duration = Duration::from_secs(15);

/// Between two looks at whether to stop.
const TICK: Duration = Duration::from_millis(100);

/// The program and its arguments that start a launcher.
pub fn launcher_words(weir: &Path) -> Vec<OsString> {
    iter::once(weir.as_os_str().to_owned()).chain([OsString::from(SUBCOMMAND)]).collect()
}

/// Runs commands, one after the other. Dropping it ends the run that goes on and leaves nothing behind.
#[derive(Debug)]
pub struct Runner {
    launcher: Child,
    /// `None` once the launcher is released.
    channel: Option<Channel>,
    hello: Hello,
}

impl Runner {
    /// Starts a launcher with the words of [`launcher_words`]. CPU time comes from the named source, or from the best
    /// one that works.
    ///
    /// # Errors
    /// When it cannot be started, or the named source is not available.
    pub fn start(words: &[OsString], source: Option<CpuSource>) -> Result<Self, RunError> {
        let failed = |error: io::Error| RunError::Launcher(format!("cannot be started: {error}"));
        let (program, rest) = words.split_first().ok_or(RunError::Empty)?;
        let (own, others) = UnixStream::pair().map_err(failed)?;
        let channel = Channel::new(own.into()).map_err(failed)?;
        // In a separate process group: Ctrl-C is for Weir, which then stops the launcher.
        let mut command = Command::new(program);
        command.args(rest).stdin(OwnedFd::from(others)).process_group(0);
        let launcher = command.spawn().map_err(failed)?;
        // The command still holds the other end. Its closing shows that the launcher is gone.
        drop(command);
        let hello = Hello { source: CpuSource::Rusage, refusals: Vec::new(), group: None };
        let mut runner = Self { launcher, channel: Some(channel), hello };
        runner.say(&Request::Begin(source))?;
        match runner.answer(READY_MAX, None)? {
            Reply::Ready(hello) => {
                runner.hello = hello;
                Ok(runner)
            }
            Reply::Refused(reason) => Err(RunError::Launcher(reason)),
            other => Err(unexpected(&other)),
        }
    }

    /// The source of CPU time.
    pub fn cpu_source(&self) -> CpuSource {
        self.hello.source
    }

    /// Why CPU time does not come from a better source: one line for each that was tried.
    pub fn cpu_refusals(&self) -> &[String] {
        &self.hello.refusals
    }

    /// The launcher's process number.
    pub fn launcher(&self) -> u32 {
        self.launcher.id()
    }

    /// The control group that contains the groups of runs.
    pub fn group(&self) -> Option<PathBuf> {
        self.hello.group.clone().map(PathBuf::from)
    }

    /// Has the launcher remove a folder, with its content, when this process is gone, even if it is killed. While a run
    /// or a server goes on, the launcher takes no such request.
    ///
    /// # Errors
    /// When the launcher is gone.
    pub fn hold_folder(&mut self, folder: &Path) -> Result<(), RunError> {
        self.say(&Request::Hold(folder.as_os_str().to_owned()))
    }

    /// Weir's own cost in a run that does nothing.
    ///
    /// # Errors
    /// When the launcher is gone or cannot start processes.
    pub fn own_cost(&mut self) -> Result<OwnCost, RunError> {
        self.say(&Request::MeasureOwnCost)?;
        match self.answer(READY_MAX, None)? {
            Reply::OwnCost(cost) => cost,
            other => Err(unexpected(&other)),
        }
    }

    /// Runs a command and waits for its end. Once `stop` is set, the run is killed with all that it started.
    ///
    /// # Errors
    /// When it could not be started, was stopped, or the launcher is gone. After [`RunError::Launcher`] no more runs
    /// are possible; after any other error they are.
    pub fn run(&mut self, spec: &RunSpec, stop: &AtomicBool) -> Result<RunOutcome, RunError> {
        self.run_unless(spec, &mut || stop.load(Ordering::Relaxed))
    }

    /// The same until a condition holds, which is polled.
    ///
    /// # Errors
    /// As for [`Self::run`].
    pub fn run_unless(
        &mut self,
        spec: &RunSpec,
        is_over: &mut dyn FnMut() -> bool,
    ) -> Result<RunOutcome, RunError> {
        if is_over() {
            return Err(RunError::Stopped);
        }
        self.say(&Request::Run(Box::new(spec.into())))?;
        match self.answer(spec.limit.saturating_add(SLACK), Some(is_over))? {
            Reply::Ended(outcome) => *outcome,
            other => Err(unexpected(&other)),
        }
    }

    /// Starts a server, which runs until [`Self::end_server`], or until Weir is gone. The folder, which contains the
    /// folders of all servers, is removed with the launcher.
    ///
    /// # Errors
    /// When it could not be started, or the launcher is gone.
    pub fn serve(&mut self, spec: &RunSpec, folder: &Path) -> Result<ServerClock, RunError> {
        self.say(&Request::Serve(Box::new(spec.into()), folder.as_os_str().to_owned()))?;
        match self.answer(SLACK, None)? {
            Reply::Serving(started) => started.map(|started| ServerClock::new(started, self.hello.source)),
            other => Err(unexpected(&other)),
        }
    }

    /// How the started server ended; `None` while it runs.
    ///
    /// # Errors
    /// When the launcher is gone.
    pub fn server_end(&mut self) -> Result<Option<ServerEnd>, RunError> {
        match self.channel()?.receive(Some(Duration::ZERO)) {
            Ok(None) => Ok(None),
            Ok(Some(Reply::Served(end))) => end.map(Some),
            Ok(Some(other)) => Err(unexpected(&other)),
            Err(error) => Err(self.give_up(&error)),
        }
    }

    /// Ends the server that runs, politely first, with all that it started.
    ///
    /// # Errors
    /// When the launcher is gone, or something of it cannot be killed.
    pub fn end_server(&mut self) -> Result<ServerEnd, RunError> {
        self.say(&Request::Stop)?;
        match self.answer(SLACK, None)? {
            Reply::Served(end) => end,
            other => Err(unexpected(&other)),
        }
    }

    fn say(&mut self, request: &Request) -> Result<(), RunError> {
        match self.channel()?.send(request) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                Err(RunError::NotStarted { program: "the command".to_owned(), reason: error.to_string() })
            }
            Err(error) => Err(self.give_up(&error)),
        }
    }

    /// Waits for the next reply. Passes a request to stop on, once.
    fn answer(
        &mut self,
        longest: Duration,
        mut is_over: Option<&mut dyn FnMut() -> bool>,
    ) -> Result<Reply, RunError> {
        let mut deadline = Instant::now().checked_add(longest);
        let mut is_told = false;
        loop {
            match self.channel()?.receive(Some(TICK)) {
                Ok(Some(reply)) => return Ok(reply),
                Ok(None) => {}
                Err(error) => return Err(self.give_up(&error)),
            }
            if !is_told && is_over.as_mut().is_some_and(|is_over| is_over()) {
                is_told = true;
                self.say(&Request::Stop)?;
                deadline = Instant::now().checked_add(SLACK);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(self.give_up(&io::Error::other("it hangs")));
            }
        }
    }

    fn channel(&mut self) -> Result<&mut Channel, RunError> {
        let gone = || RunError::Launcher("it is gone; start the comparison again".to_owned());
        self.channel.as_mut().ok_or_else(gone)
    }

    /// Ends a launcher that is of no use any more.
    fn give_up(&mut self, reason: &io::Error) -> RunError {
        self.end();
        RunError::Launcher(match reason.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
                "it ended or was killed".to_owned()
            }
            _ => reason.to_string(),
        })
    }

    /// Releases the launcher: it ends the run that goes on and itself. If it does not, it is killed, and its group
    /// emptied.
    fn end(&mut self) {
        if self.channel.take().is_none() {
            return;
        }
        if !ends_within(&self.launcher, END_MAX) {
            // Fails only if it has ended.
            let _ = self.launcher.kill();
        }
        let _ = self.launcher.wait();
        if let Some(group) = self.hello.group.as_deref().map(Path::new).filter(|group| group.exists()) {
            cpu_group::end_tree(group);
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.end();
    }
}

fn unexpected(reply: &Reply) -> RunError {
    RunError::Launcher(format!("it answered another question: {reply:?}"))
}

/// Whether a process ends within the time. A process that cannot be watched is not waited for.
fn ends_within(child: &Child, longest: Duration) -> bool {
    let Ok(life) = pidfd_open(Pid::from_child(child), PidfdFlags::empty()) else { return false };
    let deadline = Instant::now() + longest;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).ok();
        match poll(&mut [PollFd::new(&life, PollFlags::IN)], timeout.as_ref()) {
            Ok(0) => return false,
            Ok(_) => return true,
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}
