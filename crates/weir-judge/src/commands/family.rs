//! Several comparisons of one call, one for each combination of parameters: their claims share one correction. Pure.

use weir_record::{commands::CommandComparison, effect::Effect, finding::Finding, verdict::Verdict};
use weir_stats::{decide::ALPHA, holm::holm};

/// Applies Holm's correction to the claims of all comparisons. A difference that is not significant any more loses its
/// verdict; no other verdict changes, because only a difference rests on a p-value.
pub fn correct_together(comparisons: &mut [CommandComparison]) {
    // A row with a correction in its own comparison is a claim.
    let is_claim = |row: &Effect| row.p_value_holm.is_some();
    let rows = comparisons.iter().flat_map(|it| &it.effects.rows);
    let p_values: Vec<f64> = rows.filter(|row| is_claim(row)).filter_map(|row| row.p_value).collect();
    let Some(adjusted) = holm(&p_values) else { return };
    let rows = comparisons.iter_mut().flat_map(|it| &mut it.effects.rows);
    for (row, p_value) in rows.filter(|row| is_claim(row) && row.p_value.is_some()).zip(adjusted) {
        correct(row, p_value);
    }
}

fn correct(row: &mut Effect, p_value: f64) {
    row.p_value_holm = Some(p_value);
    for reason in &mut row.reasons {
        if let Finding::NotSignificant { p_value: own } = reason {
            *own = p_value;
        }
    }
    if matches!(row.verdict, Verdict::Better | Verdict::Worse) && p_value > ALPHA {
        row.verdict = Verdict::Inconclusive;
        row.reasons.push(Finding::NotSignificant { p_value });
    }
}

#[cfg(test)]
mod tests {
    use weir_record::effect::Effects;

    use super::*;

    fn comparison(rows: &[(Option<f64>, Verdict)]) -> CommandComparison {
        let row = |(p_value, verdict): &(Option<f64>, Verdict)| Effect {
            p_value: Some(p_value.unwrap_or(0.5)),
            p_value_holm: *p_value,
            verdict: *verdict,
            ..Effect::default()
        };
        CommandComparison {
            effects: Effects { rows: rows.iter().map(row).collect() },
            ..CommandComparison::default()
        }
    }

    #[test]
    fn a_difference_must_stand_out_among_all_comparisons() {
        let (worse, equal, none) = (Verdict::Worse, Verdict::Equivalent, Verdict::NoClaim);
        let clear = comparison(&[(Some(0.000_1), worse), (None, none)]);
        let close = comparison(&[(Some(0.006), worse)]);
        let mut all = vec![clear, close, comparison(&[(Some(0.4), equal)])];
        correct_together(&mut all);
        let found: Vec<(Verdict, Option<f64>)> =
            all.iter().flat_map(|it| &it.effects.rows).map(|row| (row.verdict, row.p_value_holm)).collect();
        let near = |one: Option<f64>, other: f64| one.is_some_and(|one| (one - other).abs() < 1e-12);
        assert!(found[0].0 == worse && near(found[0].1, 0.000_3), "{found:?}");
        assert_eq!(found[1], (none, None), "what claims nothing is not corrected");
        assert!(found[2].0 == Verdict::Inconclusive && near(found[2].1, 0.012), "{found:?}");
        assert_eq!(found[3].0, equal, "that two cost the same rests on an interval");
        let reasons = &all[1].effects.rows[0].reasons;
        assert!(matches!(reasons[..], [Finding::NotSignificant { .. }]), "{reasons:?}");
    }

    #[test]
    fn one_comparison_alone_stays_as_it_is() {
        let mut one = vec![comparison(&[(Some(0.006), Verdict::Better)])];
        let before = one.clone();
        correct_together(&mut one);
        assert_eq!(one, before);
    }
}
