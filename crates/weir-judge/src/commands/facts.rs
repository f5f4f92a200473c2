//! Findings about the runs of commands, beside their cost: what they write, how they end, what they leave behind. Pure.

use std::collections::BTreeSet;

use weir_record::commands::{
    CommandArm, CommandFinding, CommandRun, FailedEnd, RunEnding, RunPhase, Stream, Written,
};
use weir_stats::order::median;

use super::{Judged, is_usable};

mod of_loads;

pub use of_loads::has_many_errors;

/// Largest share of a command's runs that may fail before it is not comparable, as for a study's arms.
const FAILED_SHARE_MAX: f64 = 0.25;

/// CPU time below which a run is called short.
const SHORT_NS: f64 = 1e6;

/// Likewise in steps of the clock.
const SHORT_STEPS: f64 = 20.0;

/// Share of a command's runs all on one side of the division into user and system time, above which the division says
/// nothing.
const ONE_SIDED_SHARE_MAX: f64 = 0.5;

/// The same share where runs have few timer ticks.
const ONE_SIDED_SHARE_OF_FEW_TICKS_MAX: f64 = 0.1;

/// CPU time of ten timer ticks, which most kernels set to 4 ms.
const FEW_TICKS_NS: f64 = 40e6;

/// The source that counts processes which outlive a run.
const GROUPS: &str = "cgroup";

/// Everything that runs show, and what was seen where they ran.
pub(super) fn all(judged: &Judged<'_>) -> Vec<CommandFinding> {
    let mut found = judged.seen.to_vec();
    for (place, command) in judged.commands.iter().enumerate() {
        let own: Vec<&CommandRun> = judged.runs.iter().filter(|run| run.command as usize == place).collect();
        if !judged.ignore_failure {
            found.extend(failures(command, &own, judged.limit_ns));
        } else {
            found.extend(cut(command, &own, judged.limit_ns));
        }
        if judged.is_served {
            found.extend(of_loads::all(command, &own, judged));
        }
        found.extend(left_processes(command, &own, &judged.measured_by.cpu_source));
        found.extend(short(judged, command, &own));
    }
    if judged.is_served {
        of_loads::rename(&mut found);
    }
    found.extend(outputs(judged));
    if judged.ignore_failure {
        found.extend(ends(judged));
    }
    found.extend(same_commands(judged.commands));
    if is_split_by_ticks(judged) {
        found.push(CommandFinding::SplitByTicks);
    }
    found
}

/// Whether user and system time of a run say too little. A kernel that samples gives a run without a tick on one side
/// nothing there. Every process spends some time on both sides, so a clock that counts exactly shows no such run.
pub(super) fn is_split_by_ticks(judged: &Judged<'_>) -> bool {
    let is_measured = |run: &&CommandRun| run.phase == RunPhase::Measured && is_usable(judged, run);
    let is_coarse = |place: usize| {
        let own = judged.runs.iter().filter(|run| run.command as usize == place).filter(is_measured);
        is_division_coarse(&own.map(|run| (run.cost.user_ns, run.cost.system_ns)).collect::<Vec<_>>())
    };
    (0..judged.commands.len()).any(is_coarse)
}

/// The same for a command's runs: user and system time of each.
fn is_division_coarse(runs: &[(u64, u64)]) -> bool {
    let cpu_ns: Vec<f64> = runs.iter().map(|(user, system)| user.saturating_add(*system) as f64).collect();
    let Some(middle_ns) = median(&cpu_ns) else { return false };
    let one_sided = runs.iter().filter(|(user, system)| (*user == 0) != (*system == 0)).count();
    let share = one_sided as f64 / runs.len() as f64;
    share > ONE_SIDED_SHARE_MAX || (share > ONE_SIDED_SHARE_OF_FEW_TICKS_MAX && middle_ns < FEW_TICKS_NS)
}

/// Commands that are not comparable because of a finding.
pub(super) fn barred(judged: &Judged<'_>, findings: &[CommandFinding]) -> BTreeSet<String> {
    let names = findings.iter().filter_map(|found| match found {
        CommandFinding::OutputDiffers { command, .. }
        | CommandFinding::StatusDiffers { command, .. }
        | CommandFinding::NotStarted { command, .. }
        | CommandFinding::Failed { command, .. }
        | CommandFinding::CutSometimes { command, .. }
        | CommandFinding::ServerNotReady { command, .. }
        | CommandFinding::ServersCollide { command, .. }
        | CommandFinding::ServerEnded { command, .. }
        | CommandFinding::FileChanged { command, .. } => Some(command),
        CommandFinding::LoadErrors { command, errors, work, .. } if !judged.ignore_failure => {
            of_loads::are_many(*errors, *work).then_some(command)
        }
        CommandFinding::LoadFailed { command, failed, runs, .. }
        | CommandFinding::FailedSometimes { command, failed, runs, .. } => {
            (f64::from(*failed) > FAILED_SHARE_MAX * f64::from(*runs)).then_some(command)
        }
        _ => None,
    });
    let has = |name: &str| judged.commands.iter().any(|it| it.name == name);
    names.filter(|name| has(name)).cloned().collect()
}

/// Whether something outside the command ended a run.
fn is_cut(end: RunEnding) -> bool {
    matches!(end, RunEnding::OutOfMemory | RunEnding::Overran)
}

/// The order of findings: the first are those that make a figure meaningless.
pub(super) fn gravity(found: &CommandFinding) -> u8 {
    match found {
        CommandFinding::NotStarted { .. }
        | CommandFinding::Failed { .. }
        | CommandFinding::AroundFailed { .. }
        | CommandFinding::AroundNotStarted { .. }
        | CommandFinding::ServerNotReady { .. }
        | CommandFinding::ServersCollide { .. }
        | CommandFinding::ServerEnded { .. }
        | CommandFinding::Broken { .. } => 0,
        CommandFinding::OutputDiffers { .. } | CommandFinding::StatusDiffers { .. } => 1,
        CommandFinding::LoadFailed { .. }
        | CommandFinding::LoadErrors { .. }
        | CommandFinding::FileChanged { .. }
        | CommandFinding::CutSometimes { .. }
        | CommandFinding::FailedSometimes { .. } => 2,
        CommandFinding::CutShort { .. } => 3,
        CommandFinding::WithinPlacebos { .. } | CommandFinding::BaselineDiffers { .. } => 4,
        CommandFinding::LeftProcesses { .. } | CommandFinding::OrderEffect { .. } => 5,
        CommandFinding::SameCommands { .. } | CommandFinding::OutputVaries { .. } => 6,
        CommandFinding::ShortRuns { .. }
        | CommandFinding::ShortLoads { .. }
        | CommandFinding::BackgroundCpu { .. }
        | CommandFinding::SplitByTicks
        | CommandFinding::StartCost { .. } => 7,
        CommandFinding::NoControlGroup { .. } | CommandFinding::NoSystemCalls { .. } => 8,
    }
}

fn failed_end(end: RunEnding, limit_ns: u64) -> Option<FailedEnd> {
    match end {
        RunEnding::Exited(0) => None,
        RunEnding::Exited(status) => Some(FailedEnd::Status(status)),
        RunEnding::Killed(signal) => Some(FailedEnd::Signal(signal)),
        RunEnding::OutOfMemory => Some(FailedEnd::OutOfMemory),
        RunEnding::Overran => Some(FailedEnd::Overran { limit_ns }),
        RunEnding::NoCount => Some(FailedEnd::NoCount),
    }
}

/// Runs that failed: a first one, or some of the others.
fn failures(command: &CommandArm, own: &[&CommandRun], limit_ns: u64) -> Vec<CommandFinding> {
    failed(command, own, |run| failed_end(run.end, limit_ns))
}

/// Runs that did not end by themselves. Where failures are ignored, these are failures all the same.
fn cut(command: &CommandArm, own: &[&CommandRun], limit_ns: u64) -> Vec<CommandFinding> {
    failed(command, own, |run| failed_end(run.end, limit_ns).filter(|_| is_cut(run.end)))
}

/// Measured runs that were cut make the command not comparable. They are distinguished from failures, which lose only
/// their pairs.
fn failed(
    command: &CommandArm,
    own: &[&CommandRun],
    end: impl Fn(&CommandRun) -> Option<FailedEnd>,
) -> Vec<CommandFinding> {
    let bars = |run: &CommandRun| run.phase == RunPhase::Measured && is_cut(run.end);
    let ends: Vec<(&CommandRun, FailedEnd)> = own.iter().filter_map(|run| Some((*run, end(run)?))).collect();
    // A command that fails in its first run is not run again.
    if let Some((first, end)) = ends.first().filter(|(run, _)| run.phase == RunPhase::First) {
        let (command, end, said) = (command.name.clone(), *end, first.said.clone());
        return vec![CommandFinding::Failed { command, end, said }];
    }
    let (cut, others): (Vec<_>, Vec<_>) = ends.into_iter().partition(|(run, _)| bars(run));
    let of_cut = cut.first().map(|(_, end)| CommandFinding::CutSometimes {
        command: command.name.clone(),
        end: *end,
        cut: count(cut.len()),
        runs: count(own.iter().filter(|run| run.phase == RunPhase::Measured).count()),
    });
    let of_others = others.first().map(|(first, end)| CommandFinding::FailedSometimes {
        command: command.name.clone(),
        end: *end,
        failed: count(others.len()),
        runs: count(own.len()),
        said: first.said.clone(),
    });
    of_cut.into_iter().chain(of_others).collect()
}

fn left_processes(command: &CommandArm, own: &[&CommandRun], source: &str) -> Option<CommandFinding> {
    let processes_max = own.iter().map(|run| run.children_left).max().filter(|most| *most > 0)?;
    Some(CommandFinding::LeftProcesses {
        command: command.name.clone(),
        names: own
            .iter()
            .map(|run| &run.children_left_names)
            .find(|it| !it.is_empty())
            .cloned()
            .unwrap_or_default(),
        processes_max,
        runs: count(own.iter().filter(|run| run.children_left > 0).count()),
        is_counted: source.starts_with(GROUPS),
    })
}

fn short(judged: &Judged<'_>, command: &CommandArm, own: &[&CommandRun]) -> Option<CommandFinding> {
    let resolution_ns = judged.measured_by.cpu_resolution_ns;
    let measured = own.iter().filter(|run| run.phase == RunPhase::Measured);
    // This is about a whole run: a figure of a server is per unit of its work.
    let own_ns = judged.measured_by.subtracted_cpu_ns.unwrap_or_default();
    let cpu_ns: Vec<f64> = measured.map(|run| run.cost.cpu_ns().saturating_sub(own_ns) as f64).collect();
    let cpu_ns = median(&cpu_ns)?;
    let is_short = cpu_ns < SHORT_NS || cpu_ns < SHORT_STEPS * resolution_ns as f64;
    is_short.then(|| CommandFinding::ShortRuns {
        command: command.name.clone(),
        cpu_ns: cpu_ns as u64,
        resolution_ns,
    })
}

/// What a run wrote to a stream: bytes and their hash.
type Output<'a> = (u64, &'a str);

/// What runs of one command wrote to a stream. Runs that were cut wrote only a part of it. Runs that failed and are not
/// compared have the failure, which says more.
fn written<'a>(judged: &Judged<'a>, place: usize, stream: Stream) -> Vec<Output<'a>> {
    let of = |run: &'a CommandRun| -> &'a Written {
        match stream {
            Stream::Stdout => &run.stdout,
            Stream::Stderr => &run.stderr,
        }
    };
    let own = judged.runs.iter().filter(|run| run.command as usize == place);
    let compared = own.filter(|run| super::is_usable(judged, run));
    let looked_at = compared.map(of).filter(|it| !it.content.is_empty());
    looked_at.map(|it| (it.bytes, it.content.as_str())).collect()
}

/// Where commands wrote different things.
fn outputs(judged: &Judged<'_>) -> Vec<CommandFinding> {
    let baseline = &judged.commands[0].name;
    let mut found = Vec::new();
    for stream in [Stream::Stdout, Stream::Stderr] {
        let expected = written(judged, 0, stream);
        let Some(usual) = expected.first() else { continue };
        if expected.iter().any(|it| it != usual) {
            found.push(CommandFinding::OutputVaries { command: baseline.clone(), stream });
            continue;
        }
        let others = 1..judged.commands.len();
        found.extend(others.filter_map(|place| output_differs(judged, place, stream, *usual)));
    }
    found
}

/// The baseline always writes the same, so one run that writes something else is wrong.
fn output_differs(
    judged: &Judged<'_>,
    place: usize,
    stream: Stream,
    usual: Output<'_>,
) -> Option<CommandFinding> {
    let own = written(judged, place, stream);
    let different = || own.iter().filter(|it| **it != usual);
    let (bytes, _) = different().next()?;
    let first = judged.partings.iter().find(|it| (it.command, it.stream) == (place, stream));
    Some(CommandFinding::OutputDiffers {
        command: judged.commands[place].name.clone(),
        baseline: judged.commands[0].name.clone(),
        stream,
        bytes: (*bytes, usual.0),
        runs: (count(different().count()), count(own.len())),
        first: first.map(|it| Box::new(it.at.clone())),
    })
}

/// Where failures are ignored: commands that end, in some run, as the baseline never does. Runs that were cut are
/// failures all the same ([`cut`]).
fn ends(judged: &Judged<'_>) -> Vec<CommandFinding> {
    let expected = ends_of(judged, 0);
    let Some(usual) = expected.first().copied() else { return Vec::new() };
    let differs = |(place, command): (usize, &CommandArm)| {
        let other = ends_of(judged, place).into_iter().find(|end| !expected.contains(end))?;
        Some(CommandFinding::StatusDiffers {
            command: command.name.clone(),
            baseline: judged.commands[0].name.clone(),
            ends: (other, usual),
        })
    };
    judged.commands.iter().enumerate().skip(1).filter_map(differs).collect()
}

/// How the runs of one command ended by themselves, in the order in which they did so first.
fn ends_of(judged: &Judged<'_>, place: usize) -> Vec<FailedEnd> {
    let mut found = Vec::new();
    for run in judged.runs.iter().filter(|run| run.command as usize == place && !is_cut(run.end)) {
        let end = failed_end(run.end, judged.limit_ns).unwrap_or(FailedEnd::Status(0));
        if !found.contains(&end) {
            found.push(end);
        }
    }
    found
}

/// Commands that run the same words as the baseline with the same files. This can be intended.
fn same_commands(commands: &[CommandArm]) -> Vec<CommandFinding> {
    let Some((baseline, others)) = commands.split_first() else { return Vec::new() };
    let same = others.iter().filter(|it| it.words == baseline.words);
    let found = |it: &CommandArm| CommandFinding::SameCommands {
        command: it.name.clone(),
        baseline: baseline.name.clone(),
    };
    same.map(found).collect()
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_division_by_ticks_is_coarse_where_many_runs_lie_on_one_side() {
        let runs = |one_sided: usize, cpu_ns: u64| {
            let run = |place| if place < one_sided { (cpu_ns, 0) } else { (cpu_ns / 2, cpu_ns / 2) };
            is_division_coarse(&(0..20).map(run).collect::<Vec<_>>())
        };
        // Runs of a millisecond whose division is exact have none on one side.
        assert!(!runs(0, 1_000_000));
        assert!(!runs(2, 39_000_000) && runs(3, 39_000_000), "a tenth of runs with few ticks");
        assert!(!runs(3, 41_000_000), "longer runs have more ticks");
        assert!(!runs(10, 1_000_000_000) && runs(11, 1_000_000_000), "half of any runs");
        assert!(!is_division_coarse(&[]) && !is_division_coarse(&[(0, 0); 20]));
        assert!(is_division_coarse(&[(0, 5), (u64::MAX, 0)]));
    }
}
