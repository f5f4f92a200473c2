//! Which arms are missing from a study, according to its trials. Pure.

use weir_record::{
    finding::Finding,
    load::LoadReport,
    spec::{CellSpec, StudySpec},
    study::MissingArm,
    trial::{Exclusion, TrialRecord},
};

/// Suffix of pilot blocks, after the name of the cell whose rate they find.
pub const PILOT_SUFFIX: &str = "-pilot";

/// Trials after which an arm whose server never started, or never answered, is given up.
pub const DEAD_TRIALS_MIN: u32 = 2;

/// Arms known to be missing, and those whose server never started or never answered in at least [`DEAD_TRIALS_MIN`]
/// trials with its fewest workers: an arm that fails with sixteen may run with one.
pub fn missing_arms<'a>(
    spec: &StudySpec,
    known: &[MissingArm],
    trials: impl Iterator<Item = &'a TrialRecord>,
) -> Vec<MissingArm> {
    let mut failures: Vec<(u32, bool, Option<&str>)> = vec![(0, false, None); spec.arms.len()];
    for trial in trials {
        let Some(arm) = spec.arms.iter().position(|arm| arm.name == trial.arm) else { continue };
        let (failed, served, reason) = &mut failures[arm];
        match not_served(trial) {
            Some(why) if has_fewest_workers(spec, trial) => {
                (*failed, *reason) = (*failed + 1, Some(why));
            }
            Some(_) => {}
            None => *served = true,
        }
    }
    let mut missing = known.to_vec();
    for (arm, (failed, served, reason)) in spec.arms.iter().zip(failures) {
        let is_known = missing.iter().any(|gone| gone.name == arm.name);
        if let (false, false, true, Some(reason)) = (is_known, served, failed >= DEAD_TRIALS_MIN, reason) {
            let reason = Finding::NeverServed { trials: failed, said: reason.to_owned() };
            missing.push(MissingArm { name: arm.name.clone(), reason, unlock: None });
        }
    }
    missing
}

/// Whether an arm is not tried again in a cell: its server never started there or never answered, in at least
/// [`DEAD_TRIALS_MIN`] trials.
pub fn is_given_up<'a>(cell_id: &str, arm: &str, trials: impl Iterator<Item = &'a TrialRecord>) -> bool {
    let mut failed = 0;
    for trial in trials.filter(|trial| trial.cell_id == cell_id && trial.arm == arm) {
        if not_served(trial).is_none() {
            return false;
        }
        failed += 1;
    }
    failed >= DEAD_TRIALS_MIN
}

/// Whether an arm no longer runs in a cell: it is missing from the study, or given up there.
pub fn is_gone<'a>(
    missing: &[MissingArm],
    cell_id: &str,
    arm: &str,
    trials: impl Iterator<Item = &'a TrialRecord>,
) -> bool {
    missing.iter().any(|gone| gone.name == arm) || is_given_up(cell_id, arm, trials)
}

/// Whether a cell has nothing left to compare: its baseline is given up there, and so are the baselines that arms
/// name. A study whose baseline is missing is also over.
pub fn is_over<'a>(
    spec: &StudySpec,
    cell: &CellSpec,
    trials: impl Iterator<Item = &'a TrialRecord> + Clone,
) -> bool {
    let own = spec.arms.iter().skip(1).filter(|arm| cell.has_arm(&arm.name)).map(|arm| spec.baseline_of(arm));
    let mut baselines = std::iter::once(spec.arms[0].name.as_str()).chain(own);
    baselines.all(|baseline| is_given_up(&cell.id, baseline, trials.clone()))
}

/// Whether no cell of the arm has fewer workers. A pilot has the workers of the cell it is named after.
fn has_fewest_workers(spec: &StudySpec, trial: &TrialRecord) -> bool {
    let id = trial.cell_id.strip_suffix(PILOT_SUFFIX).unwrap_or(&trial.cell_id);
    let own = spec.cells.iter().find(|cell| cell.id == id).map(|cell| cell.workers);
    let fewest = spec.cells.iter().filter(|cell| cell.has_arm(&trial.arm)).map(|cell| cell.workers).min();
    own.is_none_or(|own| fewest.is_none_or(|fewest| own <= fewest))
}

/// Why a trial served nothing: its server failed, or answered none of the messages in flight. A whole trial of such a
/// server still has a report, and may have waited for the generator's full timeout.
fn not_served(trial: &TrialRecord) -> Option<&str> {
    let is_silent = |load: &LoadReport| load.messages == 0 && load.littles_law.in_flight_mean > 0.0;
    let is_silent = trial.slices.is_empty() && trial.load.as_ref().is_some_and(is_silent);
    trial.exclusions.iter().find_map(|exclusion| match exclusion {
        Exclusion::ServerFailed { reason } | Exclusion::JobFailed { reason } => Some(reason.as_str()),
        Exclusion::LoadFailed { reason } if is_silent => Some(reason.as_str()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use weir_record::{load::LittlesLaw, machine::NetworkCounters, protocol};

    use super::*;
    use crate::{exclusion, sample};

    fn trial(cell_id: &str, block: u32, failed: bool) -> TrialRecord {
        let reason = "exited with status 1: too many workers".to_owned();
        TrialRecord {
            cell_id: cell_id.to_owned(),
            arm: "uring".to_owned(),
            block,
            exclusions: failed.then_some(Exclusion::ServerFailed { reason }).into_iter().collect(),
            ..TrialRecord::default()
        }
    }

    /// A whole trial with this many messages answered, and this many in flight.
    fn loaded(block: u32, messages: u64, in_flight_mean: f64) -> TrialRecord {
        let littles_law = LittlesLaw { in_flight_mean, ..LittlesLaw::default() };
        let load = LoadReport { messages, littles_law, ..LoadReport::default() };
        let exclusions = exclusion::of_report(&load, protocol::row("echo"), &NetworkCounters::default(), 1.0);
        TrialRecord { load: Some(load), exclusions, ..trial("w1", block, false) }
    }

    #[test]
    fn an_arm_that_never_answers_is_given_up_as_one_that_never_came_up() {
        let spec = sample::study(&["epoll", "uring"], 12, 1);
        let silent = [loaded(0, 0, 4.0), loaded(1, 0, 4.0)];
        assert!(is_given_up("w1", "uring", silent.iter()));
        let [MissingArm { name, reason: Finding::NeverServed { trials: 2, said }, .. }] =
            &missing_arms(&spec, &[], silent.iter())[..]
        else {
            panic!("it is missing")
        };
        assert_eq!((name.as_str(), said.as_str()), ("uring", "no message was completed in the window"));
        assert!(!is_given_up("w1", "uring", silent[..1].iter()), "one trial may be an accident");
        let nothing_sent = [loaded(0, 0, 0.0), loaded(1, 0, 0.0)];
        assert!(!is_given_up("w1", "uring", nothing_sent.iter()), "nobody asked it anything");
        let answers = [loaded(0, 0, 4.0), loaded(1, 0, 4.0), loaded(2, 7, 4.0)];
        assert!(!is_given_up("w1", "uring", answers.iter()));
    }

    #[test]
    fn an_arm_that_fails_with_many_workers_is_given_up_there_and_not_everywhere() {
        let mut spec = sample::study(&["epoll", "uring"], 12, 1);
        let shape = spec.cells[0].clone();
        let workers = |workers: u32| CellSpec { id: format!("w{workers}"), workers, ..shape.clone() };
        spec.cells = [1, 16].map(workers).to_vec();
        let many: Vec<TrialRecord> = (0..3).map(|block| trial("w16", block, true)).collect();
        let names = |trials: &[TrialRecord]| -> Vec<String> {
            missing_arms(&spec, &[], trials.iter()).into_iter().map(|arm| arm.name).collect()
        };
        assert_eq!(names(&many), [""; 0]);
        let of_pilot: Vec<TrialRecord> = (0..3).map(|block| trial("w16-pilot", block, true)).collect();
        assert_eq!(names(&of_pilot), [""; 0], "a pilot has the workers of its cell");
        assert!(is_given_up("w16", "uring", many.iter()) && !is_given_up("w1", "uring", many.iter()));
        assert!(!is_given_up("w16", "uring", many[..1].iter()), "one failure may be an accident");
        let served = [&many[..], &[trial("w16", 3, false)]].concat();
        assert!(!is_given_up("w16", "uring", served.iter()), "it came up once");
        let few = [trial("w1", 0, true), trial("w1", 1, true)];
        assert_eq!(names(&few), ["uring"]);
        assert_eq!(names(&[&many[..], &few[..1]].concat()), [""; 0]);
        assert!(is_gone(&[], "w16", "uring", many.iter()) && !is_gone(&[], "w1", "uring", many.iter()));
        let missing = missing_arms(&spec, &[], few.iter());
        assert!(is_gone(&missing, "w16", "uring", few.iter()), "it is missing everywhere");
    }
}
