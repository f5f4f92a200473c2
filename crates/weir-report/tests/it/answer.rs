//! The answer as plain data.

use weir_record::{answer::UnmeasuredKind, finding::Finding, spec::MissingCell, verdict::Verdict};
use weir_report::{Language, answer, sentence};

use crate::fixture;

#[test]
fn the_answer_has_the_question_the_sentence_and_the_primary_effect() {
    let mut result = fixture::quick();
    result.created_unix_s = Some(1_795_936_205);
    let short = answer(&result);
    let primary = result.primary().expect("it was compared");
    assert_eq!(short.question, result.spec.title.en);
    assert_eq!(short.sentence, sentence(&result, Language::English));
    assert_eq!((short.verdict, short.complete), (Verdict::Better, true));
    let effect = short.effect.expect("it was compared");
    assert_eq!((effect.estimate, effect.interval), (primary.estimate, primary.interval));
    assert_eq!([&effect.cell_id, &effect.arm], [&primary.cell_id, &primary.arm]);
    assert_eq!(short.machine.host, result.fingerprint.host);
    assert_eq!(short.created.as_deref(), Some("2026-11-29T07:10:05Z"));
    assert!(short.not_measured.is_empty());
}

#[test]
fn arms_and_cells_that_could_not_run_are_named_with_the_reason() {
    let mut result = fixture::one_arm_missing();
    let reason = Finding::Text("no room".to_owned());
    result.spec.missing_cells = vec![MissingCell { id: "c9".to_owned(), reason }];
    let short = answer(&result);
    let [arm, cell] = &short.not_measured[..] else { panic!("{:?}", short.not_measured) };
    assert_eq!((arm.kind, cell.kind), (UnmeasuredKind::Arm, UnmeasuredKind::Cell));
    assert!(!arm.reason.is_empty() && !arm.name.is_empty());
    assert_eq!((cell.name.as_str(), cell.reason.as_str()), ("c9", "no room"));
}

#[test]
fn an_unfinished_study_answers_nothing_yet_and_a_failed_check_has_its_name() {
    let mut result = fixture::with_verdict(Verdict::Better);
    result.complete = false;
    let short = answer(&result);
    assert_eq!((short.verdict, short.complete), (Verdict::Inconclusive, false));
    assert_eq!(short.failed_checks, ["generator-headroom"]);
}

#[test]
fn an_estimate_that_rounds_to_zero_is_no_difference_in_every_language() {
    let words = [
        "the estimate is no difference (95 % interval",
        "추정값으로는 차이가 없습니다(95 %",
        "估计值显示无差异（95 %",
    ];
    for verdict in [Verdict::Equivalent, Verdict::Inconclusive] {
        let mut result = fixture::with_verdict(verdict);
        let primary = &mut result.effects.rows[0];
        (primary.estimate, primary.interval) = (Some(0.999_8), Some((0.991, 1.012)));
        for (language, words) in Language::ALL.into_iter().zip(words) {
            let said = sentence(&result, language);
            assert!(said.to_lowercase().contains(&words.to_lowercase()), "{verdict:?} {language:?}: {said}");
            assert!(!said.contains("0.0 %"), "{said}");
        }
    }
    let mut result = fixture::with_verdict(Verdict::Worse);
    let primary = &mut result.effects.rows[0];
    (primary.estimate, primary.interval) = (Some(1.000_4), Some((1.000_2, 1.000_45)));
    assert!(sentence(&result, Language::English).contains("uring uses under 0.1 % more"), "{result:?}");
}
