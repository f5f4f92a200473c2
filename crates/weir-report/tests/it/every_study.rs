//! Every study of the fixtures, for properties of all reports.

use weir_record::{study::StudyResult, verdict::Verdict};

use crate::fixture::{
    all_not_comparable, empty, hostile_names, http, not_finite, one_arm_missing, quick, survey, ten_arms,
    two_hundred_cells, with_verdict,
};

/// Every study, with a name for failure messages.
pub fn all() -> Vec<(&'static str, StudyResult)> {
    vec![
        ("quick", quick()),
        ("slower", with_verdict(Verdict::Worse)),
        ("equivalent", with_verdict(Verdict::Equivalent)),
        ("inconclusive", with_verdict(Verdict::Inconclusive)),
        ("not comparable", with_verdict(Verdict::NotComparable)),
        ("empty", empty()),
        ("one arm missing", one_arm_missing()),
        ("all not comparable", all_not_comparable()),
        ("not finite", not_finite()),
        ("hostile names", hostile_names()),
        ("http", http()),
        ("survey", survey()),
        ("ten arms", ten_arms()),
        ("two hundred cells", two_hundred_cells()),
    ]
}
