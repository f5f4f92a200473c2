//! The process that starts runs (`weir launch-runs`): small, with one thread, and one for a whole comparison. When the
//! other end of its standard input is closed, also because Weir was killed, it ends with all that runs.

use std::{collections::BTreeSet, ffi::OsString, fs, io::stdin, os::fd::AsFd, time::Duration};

use rustix::process::{getpid, set_child_subreaper};
use weir_sys::child_counter::{ChildCounter, Counted};

use super::{
    CpuSource, LaunchCost, OutputTo, OwnCost, RunEnd, RunError, RunOutcome, RunSpec, ServerEnd,
    cpu_group::Groups,
    launch::{Clocks, Prepared, Start, run},
    noop::Noop,
    serve::serve,
    server_log::ServerLog,
    wire::{Channel, Hello, Reply, Request},
};

/// Runs that do nothing, whose median is taken.
const OWN_COST_RUNS: usize = 21;

/// Runs of a program that does nothing, of each kind.
const CHARGE_RUNS: usize = 51;

/// How long the first request may take to come.
const BEGIN_MAX: Duration = Duration::from_secs(30);

/// Serves runs until the other end is closed. Belongs on the main thread of a separate process.
///
/// # Errors
/// When standard input is no socket of [`Runner`](super::Runner)'s, or the system refuses what it needs.
pub fn launcher_main() -> Result<(), RunError> {
    let foreign = |what: &dyn std::fmt::Display| {
        RunError::Launcher(format!("weir compare starts it; it is of no use without it ({what})"))
    };
    let input = stdin().as_fd().try_clone_to_owned().map_err(|error| foreign(&error))?;
    let mut channel = Channel::new(input).map_err(|error| foreign(&error))?;
    let Ok(Some(Request::Begin(source))) = channel.receive(Some(BEGIN_MAX)) else {
        return Err(foreign(&"nothing was asked of it"));
    };
    set_child_subreaper(Some(getpid())).map_err(|error| RunError::Launcher(error.to_string()))?;
    let (mut launcher, hello) = match Launcher::with(source) {
        Ok(ready) => ready,
        Err(reason) => return answer(&mut channel, &Reply::Refused(reason)),
    };
    answer(&mut channel, &Reply::Ready(hello))?;
    let mut folders = BTreeSet::<OsString>::new();
    // Without the other end there is no process to serve.
    while let Ok(Some(request)) = channel.receive::<Request>(None) {
        let reply = match request {
            Request::Run(spec) => Reply::Ended(Box::new(launcher.run(&RunSpec::from(*spec), &mut channel))),
            Request::Serve(spec, of_servers) => {
                folders.insert(of_servers);
                match launcher.serve(&RunSpec::from(*spec), &mut channel) {
                    Ok(served) => Reply::Served(served),
                    Err(not_started) => Reply::Serving(Err(not_started)),
                }
            }
            Request::Hold(folder) => {
                folders.insert(folder);
                continue;
            }
            Request::MeasureOwnCost => Reply::OwnCost(launcher.own_cost()),
            // The run that it was for is over; the first request does not come twice.
            Request::Stop | Request::Begin(_) => continue,
        };
        if answer(&mut channel, &reply).is_err() {
            break;
        }
    }
    for folder in folders {
        // With several launchers, the last one finds the folder without a server. A killed Weir cannot remove it.
        let _ = fs::remove_dir_all(folder);
    }
    Ok(())
}

fn answer(channel: &mut Channel, reply: &Reply) -> Result<(), RunError> {
    channel.send(reply).map_err(|error| RunError::Launcher(error.to_string()))
}

/// What starts runs.
struct Launcher {
    clocks: Clocks,
}

impl Launcher {
    /// With the named source, or the best one that works: a run that does nothing tests a source.
    fn with(source: Option<CpuSource>) -> Result<(Self, Hello), String> {
        let wanted = CpuSource::ALL.into_iter().filter(|one| source.is_none_or(|source| source == *one));
        let mut refusals = Vec::new();
        for source in wanted {
            match Self::try_source(source) {
                Ok(launcher) => {
                    let group =
                        launcher.clocks.groups.as_ref().map(|groups| groups.folder().as_os_str().to_owned());
                    return Ok((launcher, Hello { source, refusals, group }));
                }
                Err(reason) => refusals.push(format!("{}: {reason}", source.name())),
            }
        }
        Err(refusals.join("; "))
    }

    fn try_source(source: CpuSource) -> Result<Self, String> {
        let groups = match source {
            CpuSource::Rusage => None,
            CpuSource::GroupSecond | CpuSource::GroupFirst => {
                Some(Groups::make(source).map_err(|error| error.to_string())?)
            }
        };
        let instructions = ChildCounter::open(Counted::Instructions).ok();
        let mut launcher = Self { clocks: Clocks { groups, instructions } };
        launcher.run_nothing().map_err(|error| error.to_string())?;
        Ok(launcher)
    }

    fn run(&mut self, spec: &RunSpec, channel: &mut Channel) -> Result<RunOutcome, RunError> {
        run(Prepared::of(spec)?, &mut self.clocks, Some(channel))
    }

    /// Runs a server until it ends. The outer error says that it did not start.
    fn serve(
        &mut self,
        spec: &RunSpec,
        channel: &mut Channel,
    ) -> Result<Result<ServerEnd, RunError>, RunError> {
        let prepared = Prepared::of(spec)?;
        let log = match &spec.output {
            OutputTo::Log(path) => ServerLog::open(path).ok(),
            _ => None,
        };
        serve(prepared, log, self.clocks.groups.as_mut(), channel)
    }

    fn run_nothing(&mut self) -> Result<RunOutcome, RunError> {
        run(Prepared::nothing()?, &mut self.clocks, None)
    }

    fn own_cost(&mut self) -> Result<OwnCost, RunError> {
        let runs = (0..OWN_COST_RUNS).map(|_| self.run_nothing()).collect::<Result<Vec<_>, _>>()?;
        let of = |figure: fn(&RunOutcome) -> u64| median(runs.iter().map(figure).collect());
        Ok(OwnCost {
            launch: LaunchCost { wall_ns: of(|run| run.launch.wall_ns), cpu_ns: of(|run| run.launch.cpu_ns) },
            cpu_ns_left: of(|run| run.cost.cpu_ns()),
            charged_cpu_ns: Self::charged_cpu_ns(),
        })
    }

    /// CPU that a copy of this process's memory adds to a program that does nothing. The two kinds of run take turns,
    /// so that other work on the machine affects both. They are in no group, because a process that shares memory
    /// cannot be born in one, and if a process moves, the kernel charges a part to each.
    fn charged_cpu_ns() -> Option<u64> {
        let program = Noop::new().ok()?;
        let mut clocks = Clocks { groups: None, instructions: None };
        let mut cost = |start: Start| -> Option<i64> {
            let prepared = Prepared::program_alone(program.path(), start).ok()?;
            let outcome = run(prepared, &mut clocks, None).ok()?;
            (outcome.end == RunEnd::Exited(0)).then_some(outcome.cost.cpu_ns())?.try_into().ok()
        };
        let turns = (0..CHARGE_RUNS).map(|_| Some(cost(Start::Copy)? - cost(Start::Sharing)?));
        let mut differences = turns.collect::<Option<Vec<i64>>>()?;
        differences.sort_unstable();
        u64::try_from(differences[differences.len() / 2]).ok()
    }
}

/// The middle one of an odd number of values.
fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one() {
        assert_eq!(median(vec![5, 1, 9]), 5);
        assert_eq!((median(vec![]), median(vec![7])), (0, 7));
    }
}
