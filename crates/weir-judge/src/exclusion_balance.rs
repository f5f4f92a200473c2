//! Whether noise excludes trials of all arms equally often. Pure.
//!
//! The order of a block is random, so the machine's noise affects every arm equally often. If it excludes trials of
//! one arm more often, the supposed noise comes from the arm, and excluding those trials flatters it.

use weir_record::{
    check::{Check, CheckName},
    finding::{ArmExclusions, Finding},
    spec::StudySpec,
    trial::TrialRecord,
};
use weir_stats::{decide::ALPHA, fisher, holm::holm};

use crate::{exclusion, gate::ValidityGate};

/// The check, over whole trials; `None` if all arms take turns, because noise does not exclude rounds.
pub(crate) fn check(spec: &StudySpec, gate: &ValidityGate, trials: &[&TrialRecord]) -> Option<Check> {
    let of_arm = |name: &str| {
        let own = trials.iter().filter(|trial| trial.arm == name && trial.slices.is_empty());
        let noise: Vec<bool> =
            own.map(|trial| gate.exclusions(trial).iter().any(exclusion::is_noise)).collect();
        let excluded = noise.iter().filter(|is_noise| **is_noise).count();
        ArmExclusions { arm: name.to_owned(), excluded: count(excluded), trials: count(noise.len()) }
    };
    let arms: Vec<ArmExclusions> =
        spec.arms.iter().map(|arm| of_arm(&arm.name)).filter(|arm| arm.trials > 0).collect();
    let (excluded, all) =
        arms.iter().fold((0, 0), |(excluded, all), arm| (excluded + arm.excluded, all + arm.trials));
    let against_others = |arm: &ArmExclusions| {
        let others = (excluded - arm.excluded, all - arm.trials);
        fisher::exact_p_value((arm.excluded, arm.trials), others)
    };
    let p_values: Vec<f64> = arms.iter().filter_map(against_others).collect();
    let p_value = holm(&p_values)?.into_iter().reduce(f64::min)?;
    let detail = Finding::ExclusionsByArm { arms, p_value };
    Some(Check { name: CheckName::ExclusionsBalanced, passed: p_value > ALPHA, detail })
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use weir_record::trial::{Exclusion, SliceRecord};

    use super::*;
    use crate::sample;

    fn trials(excluded: [u32; 2]) -> Vec<TrialRecord> {
        let arms = [("epoll", excluded[0]), ("uring", excluded[1])];
        let of_arm = |(arm, excluded): (&str, u32)| {
            (0..12)
                .map(move |block| TrialRecord {
                    arm: arm.to_owned(),
                    block,
                    exclusions: if block < excluded { vec![Exclusion::Steal] } else { Vec::new() },
                    ..TrialRecord::default()
                })
                .collect::<Vec<_>>()
        };
        arms.into_iter().flat_map(of_arm).collect()
    }

    fn checked(trials: &[TrialRecord]) -> Option<Check> {
        let spec = sample::study(&["epoll", "uring"], 12, 1);
        check(&spec, &ValidityGate::new(trials), &trials.iter().collect::<Vec<_>>())
    }

    #[test]
    fn noise_that_meets_one_arm_alone_is_not_the_machines() {
        assert!(checked(&trials([5, 4])).is_some_and(|check| check.passed));
        let found = checked(&trials([0, 9])).expect("there are trials");
        assert!(!found.passed, "{found:?}");
        let Finding::ExclusionsByArm { arms, p_value } = found.detail else { panic!("{found:?}") };
        assert_eq!((arms[1].excluded, arms[1].trials), (9, 12));
        assert!(p_value < 0.01);
    }

    #[test]
    fn failures_and_rounds_are_no_noise() {
        let mut failed = trials([0, 9]);
        for trial in failed.iter_mut().filter(|trial| !trial.exclusions.is_empty()) {
            trial.exclusions = vec![Exclusion::Errors { count: 1 }];
        }
        assert!(checked(&failed).is_some_and(|check| check.passed));
        let mut rounds = trials([0, 9]);
        rounds.iter_mut().for_each(|trial| trial.slices = vec![SliceRecord::default()]);
        assert_eq!(checked(&rounds), None);
    }
}
