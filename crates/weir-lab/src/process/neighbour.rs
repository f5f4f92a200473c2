//! Processes beside a server: clients that misbehave, or that do other work than the measured load.
//!
//! Every server of a cell has its own neighbours, so that all arms have the same. They start when their server is
//! ready, end before it does, and run under `supervise` on the CPUs of the load side. A neighbour prints `ready` on a
//! separate line when its work has begun; the load starts after that. If a neighbour ends by itself, its trial fails,
//! because the conditions are no longer those that were asked for.

use std::{path::Path, process::Command, sync::atomic::Ordering, time::Instant};

use weir_record::spec::NeighbourSpec;
use weir_stats::random::derived_seed;

use super::{
    Deadlines,
    files::TrialFiles,
    group::{Bond, Group},
    server::NoServer,
};
use crate::{
    host_defaults::cpu_list,
    launch::{LaunchError, TrialFailure, TrialRequest},
    supervise,
};

/// The line that a neighbour prints when its work has begun.
const READY: &str = "ready";

/// A running neighbour.
pub(super) struct Neighbour {
    name: String,
    group: Group,
    began: Instant,
}

/// Starts the neighbours of the request's cell beside the server at this address. All of them are ready when this
/// returns.
pub(super) fn start_all(
    weir: &Path,
    request: &TrialRequest<'_>,
    files: &TrialFiles,
    address: &str,
    deadlines: &Deadlines,
) -> Result<Vec<Neighbour>, NoServer> {
    let is_asked = |spec: &&NeighbourSpec| request.cell.neighbours.contains(&spec.name);
    let asked: Vec<&NeighbourSpec> = request.neighbours.iter().filter(is_asked).collect();
    let mut running = Vec::with_capacity(asked.len());
    for (number, spec) in asked.into_iter().enumerate() {
        let mut command = Command::new(weir);
        command.args(supervise::arguments(request.load_cpus));
        let words = spec.argv.iter().map(|word| substituted(word, weir, request, (address, number)));
        command.args(words.map(|word| files.substituted(&word)));
        super::pad_environment(&mut command, derived_seed(request.seed, 2 + number as u64));
        let group = Group::start(&mut command, Bond::CleansUp).map_err(|error| {
            let reason = format!("cannot start {}: {error}", weir.display());
            NoServer::Stop(LaunchError::Environment(reason))
        })?;
        let neighbour = Neighbour { name: spec.name.clone(), group, began: Instant::now() };
        running.push(neighbour.until_ready(request, deadlines)?);
    }
    Ok(running)
}

/// The values of the placeholders in a neighbour's command. Its account is one that no session of the generator uses.
fn substituted(
    word: &str,
    weir: &Path,
    request: &TrialRequest<'_>,
    (address, number): (&str, usize),
) -> String {
    let port = address.rsplit_once(':').map_or("", |(_, port)| port);
    let folder = weir.parent().map(|folder| folder.display().to_string()).unwrap_or_default();
    let account = request.cell.connections as usize + number + 1;
    word.replace("{address}", address)
        .replace("{port}", port)
        .replace("{cpus}", &cpu_list(request.load_cpus))
        .replace("{account}", &format!("C{account:05}"))
        .replace("{bin}", &folder)
}

impl Neighbour {
    fn until_ready(mut self, request: &TrialRequest<'_>, deadlines: &Deadlines) -> Result<Self, NoServer> {
        let deadline = self.began + deadlines.ready;
        loop {
            if request.interrupt.load(Ordering::Relaxed) {
                return Err(NoServer::Stop(LaunchError::Interrupted));
            }
            // Reads one line at a time, so that a neighbour with much output meets its deadline too.
            if self.group.next_line().is_some_and(|line| line.trim() == READY) {
                return Ok(self);
            }
            if self.group.has_ended() {
                return Err(NoServer::Failed(self.death()));
            }
            if Instant::now() >= deadline {
                let waited = deadlines.ready.as_secs_f64();
                let said = self.group.said();
                let colon = if said.is_empty() { "" } else { ": " };
                let reason = format!("{}: was not ready within {waited} s{colon}{said}", self.name);
                return Err(NoServer::Failed(TrialFailure::Neighbour { reason }));
            }
        }
    }

    /// Reads its output, so that it never blocks on a full pipe.
    pub(super) fn read_output(&mut self) {
        self.group.drain();
    }

    /// The same. Returns whether it still runs.
    pub(super) fn still_runs(&mut self) -> bool {
        self.read_output();
        !self.group.has_ended()
    }

    /// Why it ended by itself.
    pub(super) fn death(&mut self) -> TrialFailure {
        TrialFailure::Neighbour { reason: format!("{}: {}", self.name, self.group.exit_reason()) }
    }

    /// Its name, and the process of its supervisor.
    pub(super) fn process(&self) -> (&str, u32) {
        (&self.name, self.group.pid())
    }
}
