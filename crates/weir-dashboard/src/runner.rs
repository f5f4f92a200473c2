//! The one study that the dashboard runs: `weir study` as a child process. A separate thread starts it, reads its
//! output and reaps it. It cannot outlive the dashboard: the kernel kills it when that thread ends, whatever the cause.

use std::{
    ffi::{OsStr, OsString},
    io::{self, Read},
    os::{
        fd::{AsFd, OwnedFd},
        unix::process::ExitStatusExt,
    },
    path::PathBuf,
    process::{ChildStderr, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::{Errno, ioctl_fionbio},
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use tokio::{sync::watch, time::sleep};
use weir_sys::child::spawn_bound;

/// Bytes of a study's last output on standard error that are kept.
pub const SAID_BYTES_MAX: usize = 4 << 10;

/// Time limits of a study when the dashboard ends: to give up its trial and write its report, to end without that, and
/// to die.
const PATIENCE: [(Signal, Duration); 3] = [
    (Signal::TERM, Duration::from_secs(10)),
    (Signal::TERM, Duration::from_secs(2)),
    (Signal::KILL, Duration::from_secs(5)),
];

/// The study that runs, or ran last.
#[derive(Clone, Debug, Default)]
pub(crate) enum Stage {
    /// Nothing was started yet.
    #[default]
    Idle,
    /// A study runs.
    Running { of: Started, is_ending: bool, process: Arc<OwnedFd> },
    /// It has ended.
    Ended { of: Started, how: Ending, said: String },
}

/// A study that was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Started {
    /// Its name in the list.
    pub name: String,
    /// The name of its folder among the results.
    pub folder: OsString,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// In a way that the system did not report.
    Unknown,
}

/// Why a study does not start.
#[derive(Debug)]
pub(crate) enum StartFailure {
    /// Another one runs.
    Busy,
    /// The dashboard ends.
    Ending,
    /// The system refused a process.
    Refused(io::Error),
}

/// The study to run.
pub(crate) struct Task<'t> {
    pub of: Started,
    /// Its name on the command line.
    pub study: &'t OsStr,
    /// Which of its plans; absent for the default plan.
    pub levels: Option<&'t str>,
    /// The folder of its results.
    pub out: PathBuf,
    /// Code of the language of its report.
    pub language: &'static str,
}

/// Runs one study at a time.
pub(crate) struct Runner {
    program: PathBuf,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    stage: Mutex<(Stage, Admission)>,
    is_running: watch::Sender<bool>,
}

/// Whether studies may still be started.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Admission {
    #[default]
    Open,
    Closed,
}

impl Runner {
    /// A runner that starts this program.
    pub(crate) fn of(program: PathBuf) -> Self {
        Self { program, shared: Arc::default() }
    }

    /// The study that runs now, or ran last.
    pub(crate) fn stage(&self) -> Stage {
        held(&self.shared.stage).0.clone()
    }

    /// Starts a study, unless one runs. Waits until the process exists.
    pub(crate) fn start(&self, task: Task<'_>) -> Result<(), StartFailure> {
        // Held until it is known whether it runs: of two simultaneous requests, one is refused because another study
        // runs.
        let mut stage = held(&self.shared.stage);
        match *stage {
            (_, Admission::Closed) => return Err(StartFailure::Ending),
            (Stage::Running { .. }, _) => return Err(StartFailure::Busy),
            _ => {}
        }
        let Task { of, study, levels, out, language } = task;
        let mut command = Command::new(&self.program);
        command.args(["study", "--quiet", "--lang", language, "--out"]).arg(out);
        command.args(levels.map(|levels| format!("--levels={levels}"))).arg("--").arg(study);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let (sender, receiver) = mpsc::sync_channel(1);
        let (shared, own) = (Arc::clone(&self.shared), of.clone());
        let run = move || {
            let Some((how, said)) = run(command, &sender) else { return };
            // Waits for `start` if the process ended first.
            let mut stage = held(&shared.stage);
            stage.0 = Stage::Ended { of: own, how, said };
            shared.is_running.send_replace(false);
        };
        thread::Builder::new().name("weir-study".into()).spawn(run).map_err(StartFailure::Refused)?;
        let process = receiver.recv().unwrap_or_else(|_| Err(io::Error::other("its thread ended")));
        let process = Arc::new(process.map_err(StartFailure::Refused)?);
        stage.0 = Stage::Running { of, is_ending: false, process };
        self.shared.is_running.send_replace(true);
        Ok(())
    }

    /// Asks the running study to end: it gives up its trial and writes its report. The signal is sent only once,
    /// because at a second one it would end without a report. `false` when none runs.
    pub(crate) fn stop(&self) -> bool {
        let mut stage = held(&self.shared.stage);
        let Stage::Running { is_ending, process, .. } = &mut stage.0 else { return false };
        if !*is_ending {
            *is_ending = true;
            // Fails only if it has ended.
            let _ = pidfd_send_signal(&**process, Signal::TERM);
        }
        true
    }

    /// Allows no more starts, and ends the running study. A second request to end the dashboard skips the wait.
    pub(crate) async fn end(&self, asked: &mut watch::Receiver<u32>) {
        held(&self.shared.stage).1 = Admission::Closed;
        for (turn, (signal, patience)) in PATIENCE.into_iter().enumerate() {
            let Stage::Running { process, is_ending, .. } = self.stage() else { return };
            // A study that a reader has stopped is writing its report.
            if turn > 0 || !is_ending {
                let _ = pidfd_send_signal(&*process, signal);
            }
            let mut running = self.shared.is_running.subscribe();
            asked.mark_unchanged();
            tokio::select! {
                _ = running.wait_for(|is_running| !is_running) => return,
                () = sleep(patience) => {}
                Ok(()) = asked.changed(), if signal != Signal::KILL => {}
            }
        }
    }
}

/// Starts the command, reports whether that worked, and waits for its end. Returns how it ended, and the last part of
/// its output.
fn run(mut command: Command, started: &mpsc::SyncSender<io::Result<OwnedFd>>) -> Option<(Ending, String)> {
    // The starter waits for the answer.
    let tell = |answer| drop(started.send(answer));
    let mut child = match spawn_bound(&mut command) {
        Ok(child) => child,
        Err(error) => {
            tell(Err(error));
            return None;
        }
    };
    let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).map_err(io::Error::from);
    let both = process.and_then(|process| Ok((process.try_clone()?, process)));
    let mut said = Said::default();
    match both {
        Ok((own, process)) => {
            tell(Ok(process));
            listen(&own, child.stderr.take(), &mut said);
        }
        Err(error) => {
            // Without this it could not be stopped.
            let _ = child.kill();
            let _ = child.wait();
            tell(Err(error));
            return None;
        }
    }
    // If this process inherited an ignored SIGCHLD, the system does not report how children end.
    let how = child.wait().map_or(Ending::Unknown, ending);
    Some((how, said.text()))
}

/// Reads a process's output until it ends. It does not wait for outputs that its children still hold open.
fn listen(process: &OwnedFd, stderr: Option<ChildStderr>, said: &mut Said) {
    let mut stderr = stderr.filter(|stderr| ioctl_fionbio(stderr, true).is_ok());
    loop {
        let mut looked_at = vec![PollFd::new(process, PollFlags::IN)];
        looked_at
            .extend(stderr.as_ref().map(|stderr| PollFd::from_borrowed_fd(stderr.as_fd(), PollFlags::IN)));
        match poll(&mut looked_at, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            // Then it waits for the end, and the rest of the output is lost.
            Err(_) => return,
        }
        let has_ended = !looked_at[0].revents().is_empty();
        if let Some(open) = &mut stderr
            && said.read(open) == Heard::Last
        {
            stderr = None;
        }
        if has_ended {
            return;
        }
    }
}

/// The last part of an output.
#[derive(Default)]
struct Said(Vec<u8>);

/// Whether more may come.
#[derive(PartialEq, Eq)]
enum Heard {
    All,
    Last,
}

impl Said {
    /// Takes the available output, at most as much as a pipe holds; the rest is read in the next turn.
    fn read(&mut self, from: &mut impl Read) -> Heard {
        let mut buffer = [0; 4 << 10];
        for _ in 0..16 {
            match from.read(&mut buffer) {
                Ok(0) => return Heard::Last,
                Ok(length) => self.add(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Heard::All,
                Err(_) => return Heard::Last,
            }
        }
        Heard::All
    }

    fn add(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        self.0.drain(..self.0.len().saturating_sub(SAID_BYTES_MAX));
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).trim().to_owned()
    }
}

fn ending(status: ExitStatus) -> Ending {
    match status.code() {
        Some(code) => Ending::Code(code),
        None => Ending::Signal(status.signal().unwrap_or_default()),
    }
}

/// Every change is whole before its lock is released.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_is_said_the_last_is_kept() {
        let mut said = Said::default();
        let long = "x".repeat(3 * SAID_BYTES_MAX) + "the end";
        assert!(said.read(&mut long.as_bytes()) == Heard::Last);
        assert_eq!(said.text().len(), SAID_BYTES_MAX);
        assert!(said.text().ends_with("xthe end"));
    }

    #[test]
    fn a_program_that_is_not_there_does_not_start_and_another_may() {
        let runner = Runner::of(PathBuf::from("/nowhere/weir"));
        let task = || Task {
            of: Started { name: "quick".to_owned(), folder: OsString::from("quick-1") },
            study: OsStr::new("quick"),
            levels: None,
            out: PathBuf::from("quick-1"),
            language: "en",
        };
        for _ in 0..2 {
            assert!(matches!(runner.start(task()), Err(StartFailure::Refused(_))));
            assert!(matches!(runner.stage(), Stage::Idle));
        }
        assert!(!runner.stop(), "nothing runs");
    }
}
