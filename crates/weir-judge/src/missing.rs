//! Which arms a study had to do without, as its trials tell. Pure.

use weir_record::{
    finding::Finding,
    spec::StudySpec,
    study::MissingArm,
    trial::{Exclusion, TrialRecord},
};

/// Trials after which an arm whose server never came up is given up.
pub const DEAD_TRIALS_MIN: u32 = 2;

/// Arms known to be missing, and those whose server failed in every one of at least [`DEAD_TRIALS_MIN`] trials.
pub fn missing_arms<'a>(
    spec: &StudySpec,
    known: &[MissingArm],
    trials: impl Iterator<Item = &'a TrialRecord>,
) -> Vec<MissingArm> {
    let mut failures: Vec<(u32, bool, Option<&str>)> = vec![(0, false, None); spec.arms.len()];
    for trial in trials {
        let Some(arm) = spec.arms.iter().position(|arm| arm.name == trial.arm) else { continue };
        let (failed, served, reason) = &mut failures[arm];
        match trial.exclusions.iter().find_map(server_failure) {
            Some(why) => (*failed, *reason) = (*failed + 1, Some(why)),
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

fn server_failure(exclusion: &Exclusion) -> Option<&str> {
    match exclusion {
        Exclusion::ServerFailed { reason } | Exclusion::JobFailed { reason } => Some(reason),
        _ => None,
    }
}
