//! The servers of a comparison on the real kernel. Each has its own launcher, which ends it with all that it started,
//! also when Weir is killed.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use weir_record::{
    commands::{FailedEnd, NotReady},
    spec::Ready,
};
use weir_sys::local_port;

use super::{ServerFailure, Slot, places::Places, up, up::Up};
use crate::{
    asked::{Asked, AskedServers},
    private_folder::PrivateFolder,
    run::{CpuSource, OutputTo, Reading, RunEnd, RunError, RunOutcome, RunSpec, Runner, ServerEnd},
};

/// Between two looks whether a server is ready.
const LOOK: Duration = Duration::from_millis(20);

/// How long the message that a server has ended may take to arrive after its clocks have gone.
const END_SAID_MAX: Duration = Duration::from_secs(1);

/// Most ports on which a server is started until it is ready.
const PORTS_MAX: u32 = 4;

/// Other users may enter a folder but not list it: a server may run as another user than Weir.
const ENTERED: u32 = 0o711;

/// Servers that are up, and the words that start them.
#[derive(Debug)]
pub struct House {
    /// The words that start a launcher.
    launcher_words: Vec<OsString>,
    source: CpuSource,
    up: Vec<Up>,
    /// Launchers go before the folder does.
    launchers: BTreeMap<Slot, Runner>,
    folder: Option<PrivateFolder>,
    starts: u32,
}

impl House {
    /// Servers whose CPU comes from this source, by launchers that these words start.
    pub fn new(launcher_words: Vec<OsString>, source: CpuSource) -> Self {
        Self { launcher_words, source, up: Vec::new(), launchers: BTreeMap::new(), folder: None, starts: 0 }
    }

    /// Starts a server and waits until it is ready. Another process may take its port before it does: the server then
    /// starts again on another one.
    pub(crate) fn start(
        &mut self,
        runner: &mut Runner,
        asked: (&Asked, &AskedServers),
        slot: Slot,
        stop: &AtomicBool,
    ) -> Result<(), ServerFailure> {
        let mut tries = 0;
        loop {
            tries += 1;
            let places = self.places(runner)?;
            let port = places.1.port;
            let Err(failure) = self.start_at(places, runner, asked, slot, stop) else { return Ok(()) };
            // The server has ended, so another process holds the port.
            let is_taken = matches!(failure, ServerFailure::NotReady { .. }) && local_port::is_taken(port);
            if !is_taken || tries >= PORTS_MAX {
                return Err(failure);
            }
        }
    }

    /// Starts a server in a folder and on a port. A server that does not become ready is ended, with its cleanup.
    fn start_at(
        &mut self,
        (folder, places): (PathBuf, Places),
        runner: &mut Runner,
        (asked, servers): (&Asked, &AskedServers),
        slot: Slot,
        stop: &AtomicBool,
    ) -> Result<(), ServerFailure> {
        let command = &asked.commands[slot.command];
        let begun = around(runner, "--setup", &places, &command.setup, asked, stop)
            .and_then(|()| self.begin(asked, slot, (folder, places.clone())));
        if begun.is_err() {
            // The first failure is reported.
            let _ = clean_up(runner, asked, slot, &places);
        }
        begun?;
        match self.until_ready(runner, (asked, servers), slot, stop) {
            Ok(()) => self.note_ready(slot),
            Err(failure) => {
                // The first failure is reported.
                let _ = self.end(runner, asked, slot);
                Err(failure)
            }
        }
    }

    /// Starts the process of a server.
    fn begin(
        &mut self,
        asked: &Asked,
        slot: Slot,
        (folder, places): (PathBuf, Places),
    ) -> Result<(), ServerFailure> {
        let log = folder.join("log");
        let words = &asked.commands[slot.command].words;
        let spec = RunSpec { output: OutputTo::Log(log.clone()), ..filled(&places, words, asked) };
        let top = self.folder.as_ref().map_or(folder.as_path(), PrivateFolder::path).to_path_buf();
        let clock = self.launcher(slot)?.serve(&spec, &top)?;
        self.up.push(Up { slot, places, clock, log, folder, last: Reading::default(), has_ended: false });
        Ok(())
    }

    /// The values for a server at its start: a port, and an empty folder.
    fn places(&mut self, runner: &mut Runner) -> Result<(PathBuf, Places), ServerFailure> {
        let failed = |error: io::Error| broken("make a folder for a server", &error);
        let top_path = match &self.folder {
            Some(folder) => folder.path().to_path_buf(),
            None => {
                let made = PrivateFolder::below(&std::env::temp_dir()).map_err(failed)?;
                let path = self.folder.insert(made).path().to_path_buf();
                // The first `--setup` runs before there is a launcher of a server, which removes it too.
                runner.hold_folder(&path)?;
                path
            }
        };
        self.starts += 1;
        let folder = top_path.join(self.starts.to_string());
        let data = folder.join("data");
        let made = fs::set_permissions(&top_path, Permissions::from_mode(ENTERED))
            .and_then(|()| DirBuilder::new().mode(ENTERED).create(&folder))
            .and_then(|()| DirBuilder::new().mode(0o700).create(&data));
        made.map_err(failed)?;
        let port = local_port::free().map_err(|error| broken("find a free port", &error))?;
        let out = folder.join("out");
        Ok((folder, Places { port, folder: data, out }))
    }

    fn launcher(&mut self, slot: Slot) -> Result<&mut Runner, RunError> {
        if !self.launchers.contains_key(&slot) {
            let launcher = Runner::start(&self.launcher_words, Some(self.source))?;
            self.launchers.insert(slot, launcher);
        }
        let gone = || RunError::Launcher("it is gone".to_owned());
        self.launchers.get_mut(&slot).ok_or_else(gone)
    }

    fn until_ready(
        &mut self,
        runner: &mut Runner,
        (asked, servers): (&Asked, &AskedServers),
        slot: Slot,
        stop: &AtomicBool,
    ) -> Result<(), ServerFailure> {
        let deadline = Instant::now() + servers.ready_within;
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(RunError::Stopped.into());
            }
            self.still_runs(slot)?;
            if self.is_ready(runner, (asked, servers), slot, stop)? {
                // Another process may accept connections on the port of a server that ended for want of it.
                return self.still_runs(slot);
            }
            if Instant::now() >= deadline {
                let limit_ns = u64::try_from(servers.ready_within.as_nanos()).unwrap_or(u64::MAX);
                let why = NotReady::TooLate { ready: servers.ready.clone(), limit_ns };
                return Err(ServerFailure::NotReady { why, said: self.said(slot) });
            }
            thread::park_timeout(LOOK);
        }
    }

    /// An error if a server has ended before it was ready.
    fn still_runs(&mut self, slot: Slot) -> Result<(), ServerFailure> {
        match self.has_ended(slot)? {
            Some((end, said)) => Err(ServerFailure::NotReady { why: NotReady::Ended(end), said }),
            None => Ok(()),
        }
    }

    fn is_ready(
        &self,
        runner: &mut Runner,
        (asked, servers): (&Asked, &AskedServers),
        slot: Slot,
        stop: &AtomicBool,
    ) -> Result<bool, ServerFailure> {
        let Some(up) = self.find(slot) else { return Ok(false) };
        match &servers.ready {
            Ready::Port => Ok(local_port::accepts_locally(up.places.port)),
            Ready::Line(text) => Ok(up::has_line(&up.log, text)),
            Ready::Command(_) => {
                let spec = RunSpec {
                    output: OutputTo::Digest,
                    limit: servers.ready_within,
                    ..filled(&up.places, &servers.ready_words, asked)
                };
                match runner.run(&spec, stop) {
                    Ok(outcome) => Ok(outcome.end == RunEnd::Exited(0)),
                    Err(RunError::Stopped) => Err(RunError::Stopped.into()),
                    Err(error) => Err(ServerFailure::Around("--ready", Box::new(Err(error)))),
                }
            }
        }
    }

    /// The work until a server is ready belongs to no load.
    fn note_ready(&mut self, slot: Slot) -> Result<(), ServerFailure> {
        let last = self.read(slot)?;
        self.note(slot, last);
        Ok(())
    }

    /// From here on, a server's CPU time counts as used without a load.
    pub(super) fn note(&mut self, slot: Slot, last: Reading) {
        if let Some(up) = self.find_mut(slot) {
            up.last = last;
        }
    }

    /// A server's figures so far. If it has ended, that is the error, because its clocks go with it.
    pub(super) fn read(&mut self, slot: Slot) -> Result<Reading, ServerFailure> {
        let up = self.find(slot).ok_or_else(|| RunError::Launcher("the server is not up".to_owned()))?;
        let error = match up.clock.read() {
            Ok(reading) => return Ok(reading),
            Err(error) => error,
        };
        let deadline = Instant::now() + END_SAID_MAX;
        while Instant::now() < deadline {
            if let Some((end, said)) = self.has_ended(slot)? {
                return Err(ServerFailure::Ended { end, said });
            }
            thread::park_timeout(LOOK);
        }
        Err(broken("read the CPU time of a server", &error))
    }

    /// Ends all servers, each with its cleanup. Reports the first failure, and ends the others all the same.
    pub(crate) fn end_all(&mut self, runner: &mut Runner, asked: &Asked) -> Result<(), ServerFailure> {
        let slots: Vec<Slot> = self.up.iter().map(|up| up.slot).collect();
        let ended: Vec<Result<(), ServerFailure>> =
            slots.into_iter().map(|slot| self.end(runner, asked, slot)).collect();
        ended.into_iter().collect()
    }

    fn end(&mut self, runner: &mut Runner, asked: &Asked, slot: Slot) -> Result<(), ServerFailure> {
        let Some(place) = self.up.iter().position(|up| up.slot == slot) else { return Ok(()) };
        let up = self.up.remove(place);
        let ended = match up.has_ended {
            true => Ok(()),
            false => self.launcher(slot).and_then(Runner::end_server).map(drop),
        };
        let cleaned = clean_up(runner, asked, slot, &up.places);
        // A file that remains is removed with the folder of all servers.
        let _ = fs::remove_dir_all(&up.folder);
        ended?;
        cleaned
    }

    /// How a server ended although nothing asked it to, and the end of its output; `None` while it runs.
    pub(super) fn has_ended(&mut self, slot: Slot) -> Result<Option<(FailedEnd, String)>, RunError> {
        let Some(end) = self.launcher(slot)?.server_end()? else { return Ok(None) };
        let Some(up) = self.find_mut(slot) else { return Ok(None) };
        up.has_ended = true;
        Ok(Some((failed_end(end), up::said(&up.log))))
    }

    pub(super) fn find(&self, slot: Slot) -> Option<&Up> {
        self.up.iter().find(|up| up.slot == slot)
    }

    pub(super) fn find_mut(&mut self, slot: Slot) -> Option<&mut Up> {
        self.up.iter_mut().find(|up| up.slot == slot)
    }

    /// The end of a server's output.
    fn said(&self, slot: Slot) -> String {
        self.find(slot).map(|up| up::said(&up.log)).unwrap_or_default()
    }
}

/// A run of words with all values in place.
pub(super) fn filled(places: &Places, words: &[OsString], asked: &Asked) -> RunSpec {
    let spec = asked.spec_around(words);
    RunSpec { words: places.fill(words), environment: places.fill_values(&spec.environment), ..spec }
}

/// Runs the commands around servers and loads, if there are any.
pub(super) fn around(
    runner: &mut Runner,
    flag: &'static str,
    places: &Places,
    words: &[OsString],
    asked: &Asked,
    stop: &AtomicBool,
) -> Result<(), ServerFailure> {
    if words.is_empty() {
        return Ok(());
    }
    match runner.run(&filled(places, words, asked), stop) {
        Ok(RunOutcome { end: RunEnd::Exited(0), .. }) => Ok(()),
        other => Err(ServerFailure::Around(flag, Box::new(other))),
    }
}

/// Runs the commands after a server, also after an interruption.
fn clean_up(runner: &mut Runner, asked: &Asked, slot: Slot, places: &Places) -> Result<(), ServerFailure> {
    let nobody_stops = AtomicBool::new(false);
    around(runner, "--cleanup", places, &asked.commands[slot.command].cleanup, asked, &nobody_stops)
}

/// Waits this long, unless it is stopped.
pub(super) fn wait(length: Duration, stop: &AtomicBool) {
    let deadline = Instant::now() + length;
    while !stop.load(Ordering::Relaxed) {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::park_timeout(left.min(Duration::from_millis(100)));
    }
}

pub(super) fn broken(what: &str, error: &io::Error) -> ServerFailure {
    RunError::Launcher(format!("cannot {what}: {error}")).into()
}

fn failed_end(end: ServerEnd) -> FailedEnd {
    match end.end {
        RunEnd::Exited(status) => FailedEnd::Status(status),
        RunEnd::Killed { out_of_memory: true, .. } => FailedEnd::OutOfMemory,
        RunEnd::Killed { signal, .. } => FailedEnd::Signal(signal),
        // A server's time has no limit.
        RunEnd::Overran => FailedEnd::Status(0),
    }
}
