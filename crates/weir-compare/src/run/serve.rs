//! A server, in the launcher: it is started, runs until it is asked to end, and is then gone with all that it started.
//! It may go on in the background when its first process has ended.

use std::{
    collections::HashSet,
    io,
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};
use weir_sys::launched::{Reaped, Reaping, reap};

use super::{
    RunEnd, RunError, ServerEnd, Serving,
    cpu_group::{Groups, RunGroup},
    household::{self, Used},
    launch::{Prepared, end_by_itself, kills_for_memory},
    outputs::Outputs,
    server_log::ServerLog,
    wire::{Channel, Reply, Request},
};

/// How long a server that is asked to end may take before it is killed.
const POLITE_MAX: Duration = Duration::from_secs(5);

/// Between two looks at the processes of a server: at those that it left to the launcher, whose ends are not announced,
/// and at those that are born while the others are asked to end. Also between two looks at its log.
const LOOK: Duration = Duration::from_millis(100);

/// Starts a prepared server and waits until it is over: it has ended, was asked to end, or the other end is gone. The
/// outer error says that it did not start.
pub(super) fn serve(
    prepared: Prepared,
    log: Option<ServerLog>,
    groups: Option<&mut Groups>,
    channel: &mut Channel,
) -> Result<Result<ServerEnd, RunError>, RunError> {
    let launcher = |what: &str, error: io::Error| RunError::Launcher(format!("cannot {what}: {error}"));
    let group = groups.map(Groups::for_next_run).transpose();
    let group = group.map_err(|error| launcher("make a control group", error))?;
    let kills_before = kills_for_memory();
    let (main, _) = prepared.launch(group.as_ref(), |_| {}).map_err(|failure| prepared.explain(&failure))?;
    drop(prepared);
    let used = Used::default();
    let mut server = Server { main, life: None, status: None, used, kills_before, group, log };
    server.life = match pidfd_open(main, PidfdFlags::empty()) {
        Ok(life) => Some(life),
        Err(error) => {
            server.end()?;
            return Err(launcher("watch a process", error.into()));
        }
    };
    let serving = Serving {
        process: main.as_raw_nonzero().get().unsigned_abs(),
        launcher: std::process::id(),
        group: server.group.as_ref().map(|group| group.folder().as_os_str().to_owned()),
    };
    if channel.send(&Reply::Serving(Ok(serving))).is_err() {
        server.end()?;
    }
    Ok(server.until_over(channel))
}

/// A server that runs.
struct Server {
    main: Pid,
    /// Readable when the first process ends; `None` when it has ended.
    life: Option<OwnedFd>,
    /// How it ended.
    status: Option<Reaped>,
    used: Used,
    kills_before: Option<u64>,
    group: Option<RunGroup>,
    log: Option<ServerLog>,
}

impl Server {
    fn until_over(mut self, channel: &mut Channel) -> Result<ServerEnd, RunError> {
        let by_itself = self.ends_by_itself(channel)?;
        if !by_itself {
            self.end()?;
        }
        Ok(ServerEnd { end: if by_itself { self.how() } else { RunEnd::Exited(0) }, by_itself })
    }

    /// Waits until nothing of it is left, or a request to end comes.
    fn ends_by_itself(&mut self, channel: &mut Channel) -> Result<bool, RunError> {
        loop {
            if self.reaped_all()? {
                return Ok(true);
            }
            if let Some(log) = &mut self.log {
                log.cut();
            }
            // The only message to a server is to stop; an error says that the other end is gone.
            if self.is_spoken_to(channel)
                && !matches!(channel.receive::<Request>(Some(Duration::ZERO)), Ok(None))
            {
                return Ok(false);
            }
        }
    }

    /// Reaps what has ended. Says whether nothing is left.
    fn reaped_all(&mut self) -> Result<bool, RunError> {
        loop {
            match reap(None).map_err(|error| RunError::Launcher(format!("cannot reap: {error}")))? {
                Reaping::Ended(reaped) => {
                    self.used.add(&reaped);
                    if reaped.pid == self.main {
                        self.life = None;
                        self.status = Some(reaped);
                    }
                }
                Reaping::Childless => return Ok(true),
                Reaping::Running => return Ok(false),
            }
        }
    }

    /// Waits until a message comes, a process may have ended, or the log may have grown. Says whether a message came.
    fn is_spoken_to(&self, channel: &Channel) -> bool {
        let mut ends = vec![PollFd::from_borrowed_fd(channel.waits_for(), PollFlags::IN)];
        ends.extend(self.life.as_ref().map(|life| PollFd::new(life, PollFlags::IN)));
        let looks = self.life.is_none() || self.log.is_some();
        let patience = looks.then(|| Timespec::try_from(LOOK).ok()).flatten();
        // Whatever ends the wait, the caller looks again.
        let _ = poll(&mut ends, patience.as_ref());
        !ends[0].revents().is_empty()
    }

    /// Ends all of it: by SIGTERM first, and after a while by SIGKILL.
    fn end(&mut self) -> Result<(), RunError> {
        let (deadline, mut asked) = (Instant::now() + POLITE_MAX, HashSet::new());
        while Instant::now() < deadline {
            // A process may be born while the others are asked.
            household::ask_to_end(self.group.as_ref(), &mut asked);
            if household::all_end_within(&mut self.used, LOOK, &mut Outputs::none())? {
                return Ok(());
            }
        }
        household::kill_all(&mut self.used, self.group.as_ref(), &mut Outputs::none())
    }

    /// How its first process ended.
    fn how(&self) -> RunEnd {
        self.status
            .as_ref()
            .map_or(RunEnd::Exited(0), |reaped| end_by_itself(reaped, self.kills_before, kills_for_memory()))
    }
}
