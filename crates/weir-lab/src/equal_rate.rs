//! When a CPU verdict of a closed loop stands although the generator was the limit. Pure.
//!
//! The generator then decides how many messages a second an arm is given, and the arms are not given the same. CPU
//! per message depends on the rate: a server that is given less finds less waiting each time it looks, and pays more
//! for each message. A difference could therefore be one of load and not of the arms. Both arms are for this reason
//! also run in open loop, at one rate that both are offered and keep, where that cannot be.
//!
//! The verdict of the closed loop stands when
//!
//! 1. there is an open-loop cell of the same shape, and it is itself valid: right responses, the rate kept by both
//!    arms, and pairs enough to make an interval from ([`PAIRS_MIN`]);
//! 2. that cell does not contradict it. It contradicts *faster* when its ratio is above one with its whole interval,
//!    and by more than the smallest effect; *slower* the other way round; *equivalent* either way.
//!
//! Otherwise the closed loop is not comparable.
//!
//! The two ratios need not be equal, nor need the open one show the same direction. A closed loop at the generator's
//! limit and an open loop at 60 % of it are two operating points with batches of different sizes; an arm may be
//! cheaper at one and equal at the other, and both are true. To ask for the same side of one is to toss a coin
//! whenever the arms are equal at the open rate, and to throw away the closed verdict when it falls the wrong way.
//! But an arm that is dearer where the load is equal and cheaper where it is not is the very case the rule is for.
//!
//! The noise floor and Holm's correction, which make it harder to call a difference, do not apply to a contradiction:
//! here they would make it easier to keep a verdict. Few pairs do not help either: their interval has less confidence
//! and is the shorter for it, so they may contradict; but fewer than [`PAIRS_MIN`] bear nothing out. An open-loop cell
//! that decides nothing leaves the verdict as it is, and the reader sees its figures beside it.

use weir_record::verdict::{Comparison, Verdict};

/// Fewest pairs at an equal rate that can bear a verdict out: with three, an interval from the smallest to the largest
/// holds the median in three of four cases only, and an interval of one pair is that pair.
pub(crate) const PAIRS_MIN: u32 = 4;

/// What an equal rate says of a closed-loop verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bearing {
    /// The same, with its whole interval.
    Agrees,
    /// Nothing against it.
    DoesNotContradict,
    /// The opposite.
    Contradicts,
    /// Nothing against it, from too few pairs to mean much.
    TooFew,
    /// Nothing: it is not valid itself.
    Invalid,
}

impl Bearing {
    /// Whether the verdict stands.
    pub(crate) fn stands(self) -> bool {
        matches!(self, Self::Agrees | Self::DoesNotContradict)
    }
}

/// What the open-loop comparison says of the closed-loop verdict. The smallest effect is a share: 0.03 for 3 %.
pub(crate) fn bearing(closed: &Comparison, open: &Comparison, smallest_effect: f64) -> Bearing {
    let (Some(claimed), Some(ratio), Some((low, high))) = (closed.ratio, open.ratio, open.interval) else {
        return Bearing::Invalid;
    };
    if open.verdict == Verdict::NotComparable {
        return Bearing::Invalid;
    }
    let is_above = low > 1.0;
    let is_below = high < 1.0;
    let matters = ratio.ln().abs() > smallest_effect.ln_1p();
    let (same, opposite) = match closed.verdict {
        Verdict::Equivalent => (open.verdict == Verdict::Equivalent, is_above || is_below),
        _ if claimed > 1.0 => (is_above, is_below),
        _ => (is_below, is_above),
    };
    match (same, opposite && matters) {
        (_, true) => Bearing::Contradicts,
        _ if open.pairs < PAIRS_MIN => Bearing::TooFew,
        (true, false) => Bearing::Agrees,
        (false, false) => Bearing::DoesNotContradict,
    }
}

/// The open-loop comparison in words, to stand beside the closed-loop verdict.
pub(crate) fn words(bearing: Bearing, open: &Comparison, rate_per_second: f64) -> String {
    let (Some(ratio), Some((low, high))) = (open.ratio, open.interval) else {
        return format!("the generator was the limit, and {} gives no figure at an equal rate", open.cell_id);
    };
    let bears = match bearing {
        Bearing::Agrees => "which agrees",
        Bearing::DoesNotContradict => "which does not contradict this",
        Bearing::Contradicts => "which contradicts this",
        Bearing::TooFew => "which are too few to bear this out",
        Bearing::Invalid => "which is not comparable either",
    };
    format!(
        "the generator was the limit; at an equal rate of {rate_per_second:.0}/s: ratio {ratio:.3} [{low:.3}, {high:.3}] \
         from {} pairs, {bears}",
        open.pairs
    )
}

#[cfg(test)]
mod tests {
    use weir_record::verdict::Metric;

    use super::*;

    fn comparison(verdict: Verdict, ratio: f64, interval: Option<(f64, f64)>) -> Comparison {
        Comparison {
            cell_id: "c100-d1-m64-open60pct".to_owned(),
            arm: "uring".to_owned(),
            baseline: "epoll".to_owned(),
            metric: Metric::ServerCpuPerMessage,
            ratio: Some(ratio),
            interval,
            confidence: 0.969,
            interval_method: "order-statistics".to_owned(),
            p_value: None,
            p_value_holm: None,
            noise_floor: Some(0.2),
            detectable_effect: None,
            pairs: 6,
            pairs_excluded: Vec::new(),
            ratios: Vec::new(),
            ratios_self: Vec::new(),
            ratio_all_pairs: None,
            verdict,
            notes: Vec::new(),
        }
    }

    /// What an inconclusive open loop with these figures says of a closed-loop verdict.
    fn of(verdict: Verdict, claimed: f64, ratio: f64, interval: (f64, f64)) -> Bearing {
        let closed = comparison(verdict, claimed, Some((claimed, claimed)));
        bearing(&closed, &comparison(Verdict::Inconclusive, ratio, Some(interval)), 0.03)
    }

    #[test]
    fn an_equal_rate_at_which_the_arms_are_alike_leaves_either_direction() {
        for (low, ratio, high) in [(0.995, 1.005, 1.015), (0.985, 0.995, 1.005)] {
            let open = (low, high);
            assert_eq!(of(Verdict::Faster, 0.957, ratio, open), Bearing::DoesNotContradict);
            assert_eq!(of(Verdict::Slower, 1.045, ratio, open), Bearing::DoesNotContradict);
        }
    }

    #[test]
    fn the_opposite_direction_contradicts_when_it_is_certain_and_matters() {
        for (ratio, interval, bearing) in [
            (1.05, (1.01, 1.09), Bearing::Contradicts),
            // Not certain.
            (1.05, (0.99, 1.11), Bearing::DoesNotContradict),
            // Certain, and too small to matter.
            (1.02, (1.01, 1.03), Bearing::DoesNotContradict),
            // One pair.
            (1.04, (1.04, 1.04), Bearing::Contradicts),
            (0.95, (0.91, 0.99), Bearing::Agrees),
            (0.99, (0.985, 0.995), Bearing::Agrees),
        ] {
            assert_eq!(of(Verdict::Faster, 0.95, ratio, interval), bearing, "{ratio} {interval:?}");
            let (low, high) = interval;
            let mirrored = of(Verdict::Slower, 1.05, 1.0 / ratio, (1.0 / high, 1.0 / low));
            assert_eq!(mirrored, bearing, "1 / {ratio} {interval:?}");
        }
    }

    #[test]
    fn any_difference_that_matters_contradicts_equality() {
        assert_eq!(of(Verdict::Equivalent, 1.0, 1.05, (1.01, 1.09)), Bearing::Contradicts);
        assert_eq!(of(Verdict::Equivalent, 1.0, 0.95, (0.91, 0.99)), Bearing::Contradicts);
        assert_eq!(of(Verdict::Equivalent, 1.0, 1.05, (0.95, 1.15)), Bearing::DoesNotContradict);
        let open = comparison(Verdict::Equivalent, 1.001, Some((0.99, 1.01)));
        assert_eq!(bearing(&comparison(Verdict::Equivalent, 1.0, None), &open, 0.03), Bearing::Agrees);
    }

    #[test]
    fn a_pair_or_two_may_contradict_and_bear_nothing_out() {
        let closed = comparison(Verdict::Faster, 0.9, Some((0.89, 0.91)));
        for (pairs, ratio, expected) in [
            (1, 0.9, Bearing::TooFew),
            (PAIRS_MIN - 1, 1.0, Bearing::TooFew),
            (PAIRS_MIN, 0.9, Bearing::Agrees),
            (1, 1.1, Bearing::Contradicts),
        ] {
            let open = comparison(Verdict::Inconclusive, ratio, Some((ratio, ratio)));
            let found = bearing(&closed, &Comparison { pairs, ..open }, 0.03);
            assert_eq!(found, expected, "{pairs} pairs at {ratio}");
            assert_eq!(found.stands(), expected == Bearing::Agrees);
        }
    }

    #[test]
    fn a_cell_that_is_not_valid_bears_nothing_out() {
        let closed = comparison(Verdict::Faster, 0.9, Some((0.89, 0.91)));
        let barred = comparison(Verdict::NotComparable, 0.9, Some((0.89, 0.91)));
        let empty = Comparison { ratio: None, ..comparison(Verdict::Inconclusive, 0.9, None) };
        for open in [barred, empty] {
            let bearing = bearing(&closed, &open, 0.03);
            assert_eq!(bearing, Bearing::Invalid);
            assert!(!bearing.stands());
        }
    }

    #[test]
    fn the_words_have_the_rate_the_ratio_and_the_interval() {
        let open = comparison(Verdict::Inconclusive, 1.005, Some((0.995, 1.015)));
        insta::assert_snapshot!(words(Bearing::DoesNotContradict, &open, 120_000.0), @"the generator was the limit; at an equal rate of 120000/s: ratio 1.005 [0.995, 1.015] from 6 pairs, which does not contradict this");
    }
}
