//! The generator of a round, `weir load-slices`: it receives which server to load and for how long, and answers with
//! the result.

use std::{
    process::Command,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use weir_record::{
    load::LoadReport,
    slices::{SliceAnswer, SliceCommand, SliceCounts, SliceSetup},
    spec::CellSpec,
};
use weir_stats::random::derived_seed;

use super::{Arm, Broken, Round, Started, Unopened};
use crate::{
    launch::LaunchError,
    process::{
        generator,
        group::{Bond, Group},
        hosted::RoundServers,
        pad_environment,
    },
};

/// The generator of a round.
pub(super) struct Generator {
    pub(super) group: Group,
}

impl Generator {
    /// Starts it and waits until it has tried all connections. Returns the servers of which it could not open all.
    pub(super) fn start(
        round: &Round<'_>,
        servers: &mut dyn RoundServers,
        (arms, there): (&[Arm], &[usize]),
    ) -> Result<(Self, Vec<Unopened>), Broken> {
        let setup = setup(round, arms, there)?;
        let mut command = Command::new(round.weir);
        command.arg("load-slices");
        pad_environment(&mut command, derived_seed(round.request.seed, 1));
        let group = Group::start(&mut command, Bond::Commanded).map_err(|error| {
            let reason = format!("cannot start {}: {error}", round.weir.display());
            Broken::Stop(LaunchError::Environment(reason))
        })?;
        let mut generator = Self { group };
        generator.say(&setup)?;
        // A server that accepts no connection costs one connect time limit, and servers are tried one after the
        // other.
        let targets = u32::try_from(there.len()).unwrap_or(u32::MAX);
        let opening = generator::connect_timeout(round.request.cell).saturating_mul(targets);
        let SliceAnswer::Ready { opened, failures } =
            generator.answer(round, servers, round.deadlines.load_margin + opening)?
        else {
            return Err(Broken::Load("it answered something else than that it is ready".to_owned()));
        };
        let tried = there.iter().zip(opened.into_iter().zip(failures));
        let unopened = tried.filter_map(|(index, (opened, failure))| {
            let reason = too_few(round.request.cell, opened, failure)?;
            Some(Unopened { index: *index, is_silent: opened == 0, reason })
        });
        let unopened = unopened.collect();
        Ok((generator, unopened))
    }

    fn say(&mut self, value: &impl serde::Serialize) -> Result<(), Broken> {
        let mut line = serde_json::to_vec(value).map_err(|error| Broken::Load(error.to_string()))?;
        line.push(b'\n');
        self.group.say(&line);
        Ok(())
    }

    fn answer(
        &mut self,
        round: &Round<'_>,
        servers: &mut dyn RoundServers,
        longest: Duration,
    ) -> Result<SliceAnswer, Broken> {
        let deadline = Instant::now() + longest;
        loop {
            servers.read_output();
            if round.request.interrupt.load(Ordering::Relaxed) {
                return Err(Broken::Stop(LaunchError::Interrupted));
            }
            if let Some(line) = self.group.next_line() {
                return serde_json::from_str(&line)
                    .map_err(|error| Broken::Load(format!("its answer cannot be read: {error}")));
            }
            if self.group.has_ended() {
                return Err(self.death());
            }
            if Instant::now() >= deadline {
                return Err(Broken::Load(format!("gave no answer within {} s", longest.as_secs_f64())));
            }
        }
    }

    fn death(&mut self) -> Broken {
        match self.group.refusal(true) {
            Some(refusal) => Broken::Stop(refusal.into()),
            None => Broken::Load(self.group.exit_reason()),
        }
    }

    pub(super) fn done(
        &mut self,
        round: &Round<'_>,
        servers: &mut dyn RoundServers,
        command: SliceCommand,
    ) -> Result<SliceCounts, Broken> {
        self.say(&command)?;
        let work = match command {
            SliceCommand::Run { length_ns, .. } => Duration::from_nanos(length_ns),
            SliceCommand::Prime { .. } | SliceCommand::Finish => generator::longer_waits(round.request.cell),
        };
        match self.answer(round, servers, work + round.deadlines.load_margin)? {
            SliceAnswer::Done(counts) => Ok(counts),
            _ => Err(Broken::Load("it answered something else than what it was asked".to_owned())),
        }
    }

    pub(super) fn finish(
        mut self,
        round: &Round<'_>,
        servers: &mut dyn RoundServers,
    ) -> Result<Vec<LoadReport>, Broken> {
        self.say(&SliceCommand::Finish)?;
        match self.answer(round, servers, round.deadlines.load_margin)? {
            SliceAnswer::Finished(reports) => Ok(reports),
            _ => Err(Broken::Load("it answered something else than its reports".to_owned())),
        }
    }
}

/// Why an arm cannot be loaded: connections are missing, counting those that are to stay idle.
fn too_few(cell: &CellSpec, opened: u32, failure: Option<String>) -> Option<String> {
    let asked = cell.connections + cell.idle_connections;
    let why = failure.unwrap_or_else(|| "no attempt was made".to_owned());
    (opened < asked).then(|| format!("accepted {opened} of {asked} connections: {why}"))
}

/// The generator's setup for the servers that run.
fn setup(round: &Round<'_>, arms: &[Arm], there: &[usize]) -> Result<SliceSetup, Broken> {
    let servers = there.iter().filter_map(|index| Some((*index, arms[*index].server.as_ref()?)));
    let words = |(index, server): (usize, &Started)| {
        let request = round.request.of_arm(round.request.arms[index], 0);
        generator::words((&request, round.files), &server.address)
    };
    Ok(SliceSetup { loads: servers.map(words).collect::<Result<_, _>>().map_err(Broken::Stop)? })
}

#[cfg(test)]
mod tests {
    use weir_judge::sample;

    use super::*;

    #[test]
    fn a_connection_that_is_to_stay_silent_is_missed_as_one_that_is_not() {
        let study = sample::study(&["epoll", "uring"], 6, 1);
        let cell = CellSpec { idle_connections: 3_900, ..study.cells[0].clone() };
        assert_eq!(too_few(&cell, 4_000, None), None);
        let reason = too_few(&cell, 1_010, Some("connection refused".to_owned()));
        assert_eq!(reason.as_deref(), Some("accepted 1010 of 4000 connections: connection refused"));
    }
}
