//! The same session with servers. A run is one run of the load, and every unit has a fresh start of all servers, so the
//! interval includes the differences between starts.

use std::sync::atomic::Ordering;

use weir_record::commands::{CommandEnd, CommandFinding, RunPhase};

use super::{Next, Session};
use crate::{
    files,
    recorded::{self, Turn},
    run::RunError,
    servers::{ServerFailure, Slot},
};

/// Fewest units for a number of pairs that the user asked for.
const UNITS_MIN: u32 = weir_judge::commands::PAIRS_DECIDING_MIN;

/// The result of a start of all servers.
enum Started {
    Up,
    /// This one did not start, and has been named.
    Without(usize),
    Ended(CommandEnd),
}

impl Session<'_> {
    /// Starts every server, the baseline twice, and loads each once. Servers that do not start, or fail, are left out.
    pub(super) fn first_servers(&mut self) -> Result<Next, RunError> {
        for (place, command) in self.asked.commands.iter().enumerate() {
            self.commands[place].files = files::named(&self.asked.spec(&command.words), self.stop);
        }
        let began_ns = self.launch.now_ns();
        // One server fewer in each round of the loop.
        loop {
            match self.start_all(RunPhase::First, 0) {
                Started::Up => break,
                Started::Ended(ended) => return Ok(Next::Ended(ended)),
                Started::Without(command) => {
                    self.are_alive[command] = false;
                    if let ended @ Next::Ended(_) = self.if_comparable() {
                        return Ok(ended);
                    }
                }
            }
        }
        for (place, (command, repeat)) in self.order(RunPhase::First, 0).into_iter().enumerate() {
            if !self.are_alive[command] {
                continue;
            }
            let turn = self.turn(RunPhase::First, 0, place, (command, repeat));
            match self.turned(turn) {
                Ok(Next::On) => {}
                Ok(Next::Ended(CommandEnd::ServerEnded)) => self.are_alive[command] = false,
                Ok(ended) => return Ok(ended),
                Err(error) => return Ok(self.broken(&error)),
            }
        }
        self.drop_failed();
        self.drop_wrong();
        self.round_ns = self.launch.now_ns().saturating_sub(began_ns).max(1);
        // Until a pilot shows more: a start has one load run of each server, or several.
        self.start_ns = self.round_ns / 2 * u64::from(self.asked.settings.warmup.max(1));
        self.drop_own_outputs();
        Ok(self.if_comparable())
    }

    /// Leaves out servers for which the first load reported too many errors: there would be no verdict on them.
    fn drop_wrong(&mut self) {
        if self.asked.settings.ignore_failure {
            return;
        }
        for run in self.runs.iter().filter(|run| weir_judge::commands::has_many_errors(run)) {
            self.are_alive[run.command as usize] = false;
        }
    }

    /// Pairs of one start where there are servers: few enough that the number of pairs that the user asked for has
    /// enough starts.
    pub(super) fn pairs_per_start(&self, pairs: Option<u32>) -> Option<u32> {
        let servers = self.asked.servers.as_ref()?;
        let most = pairs.map_or(u32::MAX, |pairs| pairs / UNITS_MIN);
        Some(servers.pairs_per_start.min(most).max(1))
    }

    /// Time of a start with this many pairs. In a pilot every pair has its own start.
    pub(super) fn unit_ns(&self, pair_ns: u64, pairs: u32) -> u64 {
        let start_ns = self.start_ns.min(pair_ns);
        start_ns.saturating_add((pair_ns - start_ns).saturating_mul(u64::from(pairs))).max(1)
    }

    /// Starts all servers anew where a pair needs it: each pair of a pilot, and the first pair of every unit.
    pub(super) fn start_servers_for(&mut self, phase: RunPhase, number: u32) -> Next {
        if self.asked.servers.is_none() {
            return Next::On;
        }
        let unit_pairs = if phase == RunPhase::Measured { self.plan.unit_pairs.max(1) } else { 1 };
        // Pairs that would make no whole unit belong to the last one.
        let units = (self.plan.pairs / unit_pairs).max(1);
        let is_first =
            number.is_multiple_of(unit_pairs) && (phase != RunPhase::Measured || number / unit_pairs < units);
        if !is_first {
            return Next::On;
        }
        let began_ns = self.launch.now_ns();
        let next = match self.start_all(phase, number) {
            Started::Up => self.warmed_up(),
            Started::Without(_) => Next::Ended(CommandEnd::ServerEnded),
            Started::Ended(ended) => Next::Ended(ended),
        };
        self.start_ns = self.launch.now_ns().saturating_sub(began_ns).max(1);
        next
    }

    /// Loads that are not evaluated: a server that has just started has cold caches.
    fn warmed_up(&mut self) -> Next {
        for round in 0..self.asked.settings.warmup {
            let number = self.starts.saturating_mul(self.asked.settings.warmup).saturating_add(round);
            for (place, (command, repeat)) in self.order(RunPhase::Warmup, number).into_iter().enumerate() {
                if !self.are_alive[command] {
                    continue;
                }
                let turn = self.turn(RunPhase::Warmup, number, place, (command, repeat));
                match self.turned(turn) {
                    Ok(Next::On) => {}
                    Ok(ended) => return ended,
                    Err(error) => return self.broken(&error),
                }
            }
        }
        Next::On
    }

    /// Ends all servers that are up, and starts every server in the order of a pair.
    fn start_all(&mut self, phase: RunPhase, number: u32) -> Started {
        if let Next::Ended(ended) = self.end_servers() {
            return Started::Ended(ended);
        }
        self.starts += 1;
        let mut others = 0;
        for (command, repeat) in self.order(phase, number) {
            if !self.are_alive[command] {
                continue;
            }
            let slot = Slot { command, repeat };
            match self.launch.start_server(self.asked, slot, self.stop) {
                Ok(()) => others += 1,
                Err(failure) => return self.not_up(slot, others > 0, failure),
            }
        }
        Started::Up
    }

    /// A server that did not start is started alone: another server may hold a resource that it needs.
    fn not_up(&mut self, slot: Slot, has_others: bool, failure: ServerFailure) -> Started {
        let command = self.commands[slot.command].name.clone();
        let found = match failure {
            ServerFailure::NotReady { why, said } => {
                let starts_alone = has_others
                    && matches!(self.end_servers(), Next::On)
                    && self.launch.start_server(self.asked, slot, self.stop).is_ok();
                match starts_alone {
                    true => CommandFinding::ServersCollide { command, said },
                    false => CommandFinding::ServerNotReady { command, why, said },
                }
            }
            ServerFailure::Run(
                error @ (RunError::Missing(_) | RunError::NotStarted { .. } | RunError::Empty),
            ) => CommandFinding::NotStarted { command, reason: error.to_string() },
            other => return self.failed(slot.command, other),
        };
        self.seen.push(found);
        match self.stop.load(Ordering::Relaxed) {
            true => Started::Ended(CommandEnd::Interrupted),
            false => Started::Without(slot.command),
        }
    }

    /// A run of the load.
    pub(super) fn loaded(&mut self, turn: Turn) -> Result<Next, RunError> {
        let slot = Slot { command: turn.command, repeat: turn.repeat };
        let loaded = match self.launch.load_server(self.asked, slot, self.stop) {
            Ok(loaded) => loaded,
            Err(ServerFailure::Run(error)) if error != RunError::Stopped => return Err(error),
            Err(failure) => {
                return Ok(match self.failed(turn.command, failure) {
                    Started::Ended(ended) => Next::Ended(ended),
                    Started::Up | Started::Without(_) => Next::Ended(CommandEnd::ServerEnded),
                });
            }
        };
        self.runs.push(recorded::load_run(turn, &loaded));
        let is_stopped = self.stop.load(Ordering::Relaxed);
        Ok(if is_stopped { Next::Ended(CommandEnd::Interrupted) } else { Next::On })
    }

    /// What a failure of a server means for the comparison.
    fn failed(&mut self, command: usize, failure: ServerFailure) -> Started {
        let name = self.commands[command].name.clone();
        match failure {
            ServerFailure::Run(RunError::Stopped) => Started::Ended(CommandEnd::Interrupted),
            ServerFailure::Run(error) => self.ended_by(&error),
            ServerFailure::Around(flag, came_of_it) => match self.came_of_around(flag, *came_of_it) {
                Next::Ended(ended) => Started::Ended(ended),
                Next::On => Started::Up,
            },
            ServerFailure::NotReady { why, said } => {
                self.seen.push(CommandFinding::ServerNotReady { command: name, why, said });
                Started::Without(command)
            }
            ServerFailure::Ended { end, said } => {
                self.seen.push(CommandFinding::ServerEnded { command: name, end, said });
                Started::Without(command)
            }
        }
    }

    fn ended_by(&mut self, error: &RunError) -> Started {
        match self.broken(error) {
            Next::Ended(ended) => Started::Ended(ended),
            Next::On => Started::Up,
        }
    }

    /// Ends all servers.
    pub(super) fn end_servers(&mut self) -> Next {
        match self.launch.end_servers(self.asked) {
            Ok(()) => Next::On,
            Err(failure) => match self.failed(0, failure) {
                Started::Ended(ended) => Next::Ended(ended),
                Started::Up | Started::Without(_) => Next::On,
            },
        }
    }
}

#[cfg(test)]
mod tests;
