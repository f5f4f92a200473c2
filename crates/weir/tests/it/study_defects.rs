//! Defects that are planted into real servers are reported by name, and none is reported where there is none. The tests
//! check counts, and no times.

use weir_record::{
    effect::Effect,
    finding::{ExclusionKind, FailureClass, Finding},
    overview::SuccessRow,
    study::StudyResult,
    verdict::Verdict,
};

use super::harness::judged;

/// A map of three cells, and one at a rate that no generator keeps with one connection. The second arm has the planted
/// defect.
fn study(planted: &str) -> String {
    format!(
        r#"name = "defects"
saturation = true
same_arms = true
rounds = 6
slice = "25ms"
permutations = 4
time_cap = "2min"

[factors]
connections = [1, 2, 4]

[primary]
connections = 1

[[cell]]
connections = 1
rate = 5000000
rounds = 2
arms = ["plain", "same"]

[[arm]]
name = "plain"
driver = "epoll"

[[arm]]
name = "same"
driver = "epoll"

[[arm]]
name = "planted"
driver = "epoll"
{planted}
"#
    )
}

/// Comparisons of an arm in the cells of the map.
fn of_arm<'a>(result: &'a StudyResult, arm: &'a str) -> impl Iterator<Item = &'a Effect> {
    let is_own = move |it: &&Effect| it.arm == arm && it.cell_id.ends_with("closed");
    result.effects.comparisons().filter(is_own)
}

fn success<'a>(result: &'a StudyResult, arm: &'a str) -> impl Iterator<Item = &'a SuccessRow> {
    result.overviews[0].success.iter().filter(move |row| row.arm == arm)
}

/// Why an arm's figures are not trusted.
fn failures(comparison: &Effect) -> impl Iterator<Item = &Finding> {
    let is_failure = |reason: &&Finding| {
        matches!(
            reason,
            Finding::TrialsFailed { .. } | Finding::WrongBytes { .. } | Finding::Unexplained { .. }
        )
    };
    comparison.reasons.iter().filter(is_failure)
}

fn passes(result: &StudyResult, check: &str) -> bool {
    result.checks.iter().find(|it| it.name.as_str() == check).is_some_and(|it| it.passed)
}

#[test]
fn an_arm_that_loses_messages_is_named_with_the_class_and_is_not_compared() {
    let (_, result) = judged("study-lossy", &study("arguments = [\"--plant\", \"lose-50\"]"));
    let mut levels = 0;
    for row in success(&result, "planted") {
        levels += 1;
        assert!(row.failed > 0 && row.completed > 0, "{row:?}");
        let is_an_end = |class| matches!(class, FailureClass::CutShort | FailureClass::Reset);
        assert!(row.classes.iter().all(|it| is_an_end(it.class)), "{row:?}");
        let counted: u64 = row.classes.iter().map(|it| it.count).sum();
        assert_eq!(counted, row.failed, "{row:?}");
        let (low, high) = row.success_interval.expect("messages ended");
        assert!(low < high && high < 1.0, "{row:?}");
    }
    assert_eq!(levels, 3);
    let mut compared = 0;
    for it in of_arm(&result, "planted") {
        compared += 1;
        assert_eq!(it.verdict, Verdict::NotComparable, "{it:?}");
        let [Finding::TrialsFailed { arm, first, .. }] = failures(it).collect::<Vec<_>>()[..] else {
            panic!("{it:?}")
        };
        assert_eq!((arm.as_str(), first.reason), ("planted", Some(ExclusionKind::Errors)), "{it:?}");
    }
    assert!(compared > 0, "{:?}", result.effects);
    // The others ran beside it in every round.
    for arm in ["plain", "same"] {
        assert!(success(&result, arm).all(|row| row.failed == 0 && row.classes.is_empty()), "{arm}");
    }
    assert!(of_arm(&result, "same").all(|it| failures(it).next().is_none()));
    assert!(passes(&result, "failures-classified"));
}

#[test]
fn a_generator_that_cannot_keep_its_rate_is_named_and_of_sound_arms_nothing_is_said() {
    let (_, result) = judged("study-sound", &study(""));
    for arm in ["plain", "same", "planted"] {
        assert_eq!(success(&result, arm).count(), 3);
        for row in success(&result, arm) {
            assert!(row.completed > 0 && row.failed == 0 && row.classes.is_empty(), "{row:?}");
            assert_eq!((row.success, row.trials_without_report), (Some(1.0), 0), "{row:?}");
        }
    }
    for arm in ["same", "planted"] {
        assert!(of_arm(&result, arm).count() > 0);
        assert!(of_arm(&result, arm).all(|it| failures(it).next().is_none()));
    }
    assert!(passes(&result, "failures-classified") && passes(&result, "processes"), "{:?}", result.checks);
    let at_rate = result.effects.comparisons().filter(|it| it.cell_id.contains("open"));
    let named = at_rate.flat_map(|it| &it.reasons).filter(|reason| {
        matches!(reason, Finding::RateNotKept { missed, trials, .. } if missed == trials && *trials > 0)
    });
    assert!(named.count() > 0, "{:?}", result.effects);
    assert!(!passes(&result, "rate-kept"), "{:?}", result.checks);
}
