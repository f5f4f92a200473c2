//! One run of the load: the clocks of its server before and after it, and the work that it reports.

use std::{
    fs,
    os::unix::fs::OpenOptionsExt,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use weir_record::commands::LoadRun;

use super::{
    House, Loaded, ServerFailure, Slot,
    house::{around, broken, filled, wait},
    places::Places,
    up,
};
use crate::{
    asked::{Asked, AskedServers},
    load::{Said, Work},
    run::{OutputTo, Reading, RunCost, RunEnd, RunError, RunOutcome, RunSpec, Runner},
};

/// A run of the load, with what was counted meanwhile.
struct Counted {
    /// The load's end, with the cost of the server.
    outcome: RunOutcome,
    work: Option<Work>,
    /// Time between the two readings.
    counted_ns: u64,
    /// The second reading.
    after: Reading,
}

impl House {
    /// Loads a server once.
    pub(crate) fn load(
        &mut self,
        runner: &mut Runner,
        (asked, servers): (&Asked, &AskedServers),
        slot: Slot,
        stop: &AtomicBool,
    ) -> Result<Loaded, ServerFailure> {
        let command = &asked.commands[slot.command];
        let (places, stdout) = self.places_of(slot)?;
        let (idle_ns, idle_cpu_ns) = self.without_load(slot)?;
        around(runner, "--between", &places, &command.prepare, asked, stop)?;
        if !command.prepare.is_empty() {
            wait(servers.settle, stop);
        }
        let counted = self.counted(runner, (asked, servers), slot, (&places, &stdout), stop);
        // Also after a load that failed or was stopped: what ran before it has its counterpart.
        let unstopped = AtomicBool::new(false);
        let concluded = around(runner, "--conclude", &places, &command.conclude, asked, &unstopped);
        let Counted { outcome, work, counted_ns, after } = counted?;
        concluded?;
        let last = if command.conclude.is_empty() { after } else { self.read(slot)? };
        self.note(slot, last);
        let lacks_count = outcome.end == RunEnd::Exited(0) && work.is_none() && servers.count.is_expected();
        let errors = work.map_or(0, |work| work.errors);
        Ok(Loaded {
            outcome,
            work: work.map(|work| work.count),
            lacks_count,
            beside: LoadRun { errors, counted_ns, idle_ns, idle_cpu_ns },
        })
    }

    /// Runs the load between two readings of its server's clocks.
    fn counted(
        &mut self,
        runner: &mut Runner,
        (asked, servers): (&Asked, &AskedServers),
        slot: Slot,
        (places, stdout): (&Places, &PathBuf),
        stop: &AtomicBool,
    ) -> Result<Counted, ServerFailure> {
        let before = self.before_load(slot)?;
        // The run before may have left the file.
        let _ = fs::remove_file(&places.out);
        // What a load writes is for this user alone.
        let made = fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(stdout);
        made.map_err(|error| broken("make a file for what the load writes", &error))?;
        let spec = RunSpec {
            output: OutputTo::File(stdout.clone()),
            limit: Duration::from_nanos(asked.settings.limit_ns),
            ..filled(places, &asked.commands[slot.command].load, asked)
        };
        let mut outcome = self.run_load(runner, &spec, slot, stop)?;
        wait(servers.settle, stop);
        let after = self.read(slot)?;
        if let Some((end, said)) = self.has_ended(slot)? {
            return Err(ServerFailure::Ended { end, said });
        }
        let work = work(servers, &spec, (places, stdout), &outcome);
        outcome.stdout.tail = up::said(stdout);
        outcome.cost = RunCost { wall_ns: outcome.cost.wall_ns, ..before.until(&after) };
        Ok(Counted { outcome, work, counted_ns: after.at_ns.saturating_sub(before.at_ns), after })
    }

    /// Runs the load. If its server has ended, a load could wait until its limit; it is ended instead.
    fn run_load(
        &mut self,
        runner: &mut Runner,
        spec: &RunSpec,
        slot: Slot,
        stop: &AtomicBool,
    ) -> Result<RunOutcome, ServerFailure> {
        let mut ended = Ok(None);
        let outcome = runner.run_unless(spec, &mut || {
            if let Ok(None) = ended {
                ended = self.has_ended(slot);
            }
            stop.load(Ordering::Relaxed) || !matches!(ended, Ok(None))
        });
        match ended? {
            Some((end, said)) => Err(ServerFailure::Ended { end, said }),
            None => Ok(outcome?),
        }
    }

    /// The values of a load's placeholders, and where its output goes.
    fn places_of(&self, slot: Slot) -> Result<(Places, PathBuf), RunError> {
        let up = self.find(slot).ok_or_else(|| RunError::Launcher("the server is not up".to_owned()))?;
        Ok((up.places.clone(), up.folder.join("stdout")))
    }

    /// Time since the server's last load, and the CPU time that the server used in it.
    fn without_load(&mut self, slot: Slot) -> Result<(u64, u64), ServerFailure> {
        let now = self.read(slot)?;
        let last = self.find(slot).map(|up| up.last.clone()).unwrap_or_default();
        Ok((now.at_ns.saturating_sub(last.at_ns), last.until(&now).cpu_ns()))
    }

    /// The clocks right before a load; the peak of memory is reset.
    fn before_load(&mut self, slot: Slot) -> Result<Reading, ServerFailure> {
        if let Some(up) = self.find(slot) {
            up.clock.forget_peaks();
        }
        self.read(slot)
    }
}

/// The work that a load reports.
fn work(
    servers: &AskedServers,
    spec: &RunSpec,
    (places, stdout): (&Places, &PathBuf),
    outcome: &RunOutcome,
) -> Option<Work> {
    let words: Vec<String> = spec.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let (file, text) = (up::text(&places.out), up::text(stdout));
    let said = Said { words: &words, stdout: &text, stderr: &outcome.stderr.tail, file: &file };
    servers.count.read(&said)
}
