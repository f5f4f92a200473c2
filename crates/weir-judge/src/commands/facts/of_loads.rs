//! Findings about the runs of a load, beside what they cost their server. Pure.

use weir_record::commands::{CommandArm, CommandFinding, CommandRun, RunPhase};

use super::{super::Judged, count};

/// Largest share of the CPU time in a load's runs that its server may use without a load before that is reported.
const BACKGROUND_SHARE_MAX: f64 = 0.01;

/// Share of a load's work that may fail before its server is not comparable: it may do less work for what fails.
const ERRORS_SHARE_MAX: f64 = 0.01;

/// Errors, and work in the background.
pub(super) fn all(
    command: &CommandArm,
    own: &[&CommandRun],
    judged: &Judged<'_>,
) -> impl Iterator<Item = CommandFinding> {
    errors(command, own).into_iter().chain(background(command, own, judged))
}

fn errors(command: &CommandArm, own: &[&CommandRun]) -> Option<CommandFinding> {
    let errors_of = |run: &CommandRun| run.load.map_or(0, |load| load.errors);
    let wrong: Vec<&CommandRun> = own.iter().copied().filter(|run| errors_of(run) > 0).collect();
    let work: Option<u64> = wrong.iter().map(|run| run.cost.work).sum();
    (!wrong.is_empty()).then(|| CommandFinding::LoadErrors {
        command: command.name.clone(),
        errors: wrong.iter().map(|run| errors_of(run)).sum(),
        work,
        runs: count(wrong.len()),
    })
}

/// Whether errors are too large a part of the work.
pub(super) fn are_many(errors: u64, work: Option<u64>) -> bool {
    work.is_none_or(|work| errors as f64 > ERRORS_SHARE_MAX * work as f64)
}

/// Whether a load run reported so many errors that its server is not comparable.
pub fn has_many_errors(run: &CommandRun) -> bool {
    run.load.is_some_and(|load| load.errors > 0 && are_many(load.errors, run.cost.work))
}

/// What the server uses between its runs, compared with what it uses in them.
fn background(command: &CommandArm, own: &[&CommandRun], judged: &Judged<'_>) -> Option<CommandFinding> {
    let measured = own.iter().filter(|run| run.phase == RunPhase::Measured && super::is_usable(judged, run));
    let (mut idle_ns, mut idle_cpu_ns, mut counted_ns, mut cpu_ns) = (0.0, 0.0, 0.0, 0.0);
    for run in measured {
        let load = run.load?;
        idle_ns += load.idle_ns as f64;
        idle_cpu_ns += load.idle_cpu_ns as f64;
        counted_ns += load.counted_ns as f64;
        cpu_ns += run.cost.cpu_ns() as f64;
    }
    let per_ns = idle_cpu_ns / idle_ns;
    let share = per_ns * counted_ns / cpu_ns;
    (share.is_finite() && share > BACKGROUND_SHARE_MAX).then(|| CommandFinding::BackgroundCpu {
        command: command.name.clone(),
        cpu_ns_per_second: (per_ns * 1e9) as u64,
        share,
    })
}

/// Servers have their own findings in place of those of commands.
pub(super) fn rename(found: &mut [CommandFinding]) {
    for it in found {
        let other = match it.clone() {
            CommandFinding::Failed { command, end, said } => {
                CommandFinding::LoadFailed { command, end, failed: 1, runs: 1, said }
            }
            CommandFinding::FailedSometimes { command, end, failed, runs, said } => {
                CommandFinding::LoadFailed { command, end, failed, runs, said }
            }
            CommandFinding::ShortRuns { command, cpu_ns, resolution_ns } => {
                CommandFinding::ShortLoads { command, cpu_ns, resolution_ns }
            }
            _ => continue,
        };
        *it = other;
    }
}

#[cfg(test)]
mod tests {
    use weir_record::commands::{FailedEnd, LoadRun, MeasuredBy, RunEnding, RunFigures};

    use super::*;

    fn run(phase: RunPhase, errors: u64, idle_cpu_ns: u64) -> CommandRun {
        CommandRun {
            phase,
            cost: RunFigures { user_ns: 100_000_000, work: Some(1_000), ..RunFigures::default() },
            load: Some(LoadRun { errors, counted_ns: 1_000_000_000, idle_ns: 2_000_000_000, idle_cpu_ns }),
            ..CommandRun::default()
        }
    }

    fn found(runs: &[CommandRun]) -> Vec<CommandFinding> {
        let commands = [CommandArm { name: "new".to_owned(), ..CommandArm::default() }];
        let measured_by = MeasuredBy::default();
        let judged = Judged {
            commands: &commands,
            runs,
            pairs: 6,
            unit_pairs: Some(1),
            is_interrupted: false,
            is_ended_by_server: false,
            equivalence_margin: 0.01,
            ignore_failure: false,
            is_served: true,
            limit_ns: 1,
            measured_by: &measured_by,
            thresholds: &[],
            seen: &[],
            partings: &[],
        };
        all(&commands[0], &runs.iter().collect::<Vec<_>>(), &judged).collect()
    }

    #[test]
    fn work_between_loads_is_told_where_it_is_a_part_of_a_run_that_matters() {
        // In the second of a run 1 ms of 100 ms, which is a hundredth; twice as much in the two seconds before it.
        assert_eq!(found(&[run(RunPhase::Measured, 0, 2_000_000)]), []);
        let told = found(&[run(RunPhase::Measured, 0, 4_000_000), run(RunPhase::Measured, 0, 0)]);
        assert_eq!(told, [], "on average");
        let CommandFinding::BackgroundCpu { cpu_ns_per_second, share, .. } =
            found(&[run(RunPhase::Measured, 0, 6_000_000), run(RunPhase::Warmup, 0, 0)])[0]
        else {
            panic!("it is told")
        };
        assert_eq!(cpu_ns_per_second, 3_000_000);
        assert!((share - 0.03).abs() < 1e-9, "{share}");
        assert_eq!(found(&[run(RunPhase::Warmup, 0, 6_000_000)]), [], "a start is no background");
    }

    #[test]
    fn errors_are_added_up_and_many_of_them_leave_nothing_to_compare() {
        let runs = [run(RunPhase::Measured, 3, 0), run(RunPhase::Measured, 0, 0), run(RunPhase::First, 4, 0)];
        let command = "new".to_owned();
        assert_eq!(
            found(&runs),
            [CommandFinding::LoadErrors { command, errors: 7, work: Some(2_000), runs: 2 }]
        );
        assert!(!are_many(10, Some(1_000)) && are_many(11, Some(1_000)) && are_many(1, None));
    }

    #[test]
    fn a_failed_run_of_a_load_is_not_told_as_one_of_a_command() {
        let (command, said) = ("new".to_owned(), "refused".to_owned());
        let end = FailedEnd::Status(2);
        let mut findings = [
            CommandFinding::Failed { command: command.clone(), end, said: said.clone() },
            CommandFinding::FailedSometimes {
                command: command.clone(),
                end,
                failed: 2,
                runs: 9,
                said: said.clone(),
            },
        ];
        rename(&mut findings);
        let failed = |failed, runs| CommandFinding::LoadFailed {
            command: command.clone(),
            end,
            failed,
            runs,
            said: said.clone(),
        };
        assert_eq!(findings, [failed(1, 1), failed(2, 9)]);
        assert!(!super::super::super::is_usable(
            &Judged {
                commands: &[],
                runs: &[],
                pairs: 0,
                unit_pairs: None,
                is_interrupted: false,
                is_ended_by_server: false,
                equivalence_margin: 0.0,
                ignore_failure: true,
                is_served: true,
                limit_ns: 0,
                measured_by: &MeasuredBy::default(),
                thresholds: &[],
                seen: &[],
                partings: &[],
            },
            &CommandRun { end: RunEnding::NoCount, ..CommandRun::default() }
        ));
    }
}
