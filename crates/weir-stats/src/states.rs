//! One or two states of the machine, found from its own cross-core readings. There is no threshold in nanoseconds,
//! because a near reading of one machine is a far one of another.

use crate::order::{median_of_sorted, quantile_of_sorted};

/// The medians of two states differ at least by this factor.
pub const RATIO_MIN: f64 = 1.5;

/// With fewer readings there is one state: among so few, a wide gap is no surprise.
pub const READINGS_MIN: usize = 8;

/// A state with fewer readings than this must be twice as far away, because its own width is not known.
const READINGS_KNOWN_MIN: usize = 3;

/// One reading in this many of the smaller state may lie between the states, for each of the two: the machine may
/// change its state during a reading.
const STRADDLERS_ONE_IN: usize = 10;

/// The gap must be wider when there are few readings, by this number divided by the number of readings. That is twice
/// as wide at 8 readings and a fifth wider at 40; set by simulation so that log-uniform noise is rarely called two
/// states.
const CAUTION_READINGS: f64 = 8.0;

/// The states that the readings show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum States {
    /// All readings belong to one state.
    One {
        /// Median reading in nanoseconds.
        median_ns: f64,
    },
    /// Readings fall into a near (fast) and a far (slow) state.
    Two {
        /// Median reading of the near state in nanoseconds.
        near_ns: f64,
        /// Median reading of the far state in nanoseconds.
        far_ns: f64,
        /// Readings from here on are far; the geometric mean of the gap's edges.
        boundary_ns: f64,
        /// Readings in the near state.
        near_count: usize,
        /// Readings in the far state.
        far_count: usize,
    },
}

impl States {
    /// The boundary between near and far in nanoseconds, when there are two states.
    pub fn boundary_ns(&self) -> Option<f64> {
        match self {
            States::One { .. } => None,
            States::Two { boundary_ns, .. } => Some(*boundary_ns),
        }
    }

    /// Whether a reading belongs to the far state; never with one state.
    pub fn is_far(&self, reading_ns: f64) -> bool {
        self.boundary_ns().is_some_and(|boundary_ns| reading_ns >= boundary_ns)
    }

    /// Whether two readings belong to the same state.
    pub fn is_same(&self, one_ns: f64, other_ns: f64) -> bool {
        self.is_far(one_ns) == self.is_far(other_ns)
    }
}

/// Finds one or two states in the readings.
///
/// Every split of the ordered readings is tried, on logarithms because noise is a share of the reading. A split is
/// accepted when the medians of its sides differ at least by [`RATIO_MIN`] and the gap between the sides (without a
/// few readings taken during a change of state) is wider than the interquartile ranges of both sides together.
/// Cutting one large normal or uniform cloud in two leaves a gap of at most about a fifth of that. If
/// several splits are accepted, the one with the largest variance between its sides is taken: Otsu, "A Threshold
/// Selection Method from Gray-Level Histograms", IEEE Transactions on Systems, Man and Cybernetics 9 (1979), exact in
/// one dimension because all splits are tried. Otsu's criterion alone is not enough: it cuts any cloud, and cuts a
/// large near cloud in half rather than isolate a rare far reading.
///
/// One or two readings can be a state if they are twice as far away: a trial with such a reading should not be paired
/// with the others, whether the machine changed its state or the reading was disturbed. Three or more states become
/// two, cut where they differ most. Below [`READINGS_MIN`] readings the answer is one state. `None` without readings,
/// or if one is not finite and above zero.
pub fn find_states(readings_ns: &[f64]) -> Option<States> {
    if readings_ns.is_empty() || readings_ns.iter().any(|reading| !reading.is_finite() || *reading <= 0.0) {
        return None;
    }
    let mut ordered: Vec<f64> = readings_ns.iter().map(|reading| reading.ln()).collect();
    ordered.sort_by(f64::total_cmp);
    let one = States::One { median_ns: median_of_sorted(&ordered).exp() };
    if ordered.len() < READINGS_MIN {
        return Some(one);
    }
    let total: f64 = ordered.iter().sum();
    let mut best: Option<(f64, usize)> = None;
    let mut sum_below = 0.0;
    for near_count in 1..ordered.len() {
        sum_below += ordered[near_count - 1];
        let (near, far) = ordered.split_at(near_count);
        if is_real(near, far) {
            let variance = variance_between(near, sum_below, far, total - sum_below);
            if best.is_none_or(|(largest, _)| variance > largest) {
                best = Some((variance, near_count));
            }
        }
    }
    let Some((_, near_count)) = best else {
        return Some(one);
    };
    let (near, far) = ordered.split_at(near_count);
    Some(States::Two {
        near_ns: median_of_sorted(near).exp(),
        far_ns: median_of_sorted(far).exp(),
        boundary_ns: (0.5 * (near[near.len() - 1] + far[0])).exp(),
        near_count,
        far_count: far.len(),
    })
}

/// Whether a split separates two clouds rather than cutting one. Both sides are ascending logarithms and not empty.
fn is_real(near: &[f64], far: &[f64]) -> bool {
    if median_of_sorted(far) - median_of_sorted(near) < RATIO_MIN.ln() {
        return false;
    }
    let smaller_count = near.len().min(far.len());
    let straddlers = smaller_count / STRADDLERS_ONE_IN;
    let gap = far[straddlers] - near[near.len() - 1 - straddlers];
    let width = |side: &[f64]| quantile_of_sorted(side, 0.75) - quantile_of_sorted(side, 0.25);
    let caution = 1.0 + CAUTION_READINGS / (near.len() + far.len()) as f64;
    let unknown = if smaller_count < READINGS_KNOWN_MIN { 2.0 } else { 1.0 };
    gap > caution * unknown * (width(near) + width(far))
}

/// Otsu's variance between the sides, up to the constant `1 / n^2`.
fn variance_between(near: &[f64], near_sum: f64, far: &[f64], far_sum: f64) -> f64 {
    let (near_count, far_count) = (near.len() as f64, far.len() as f64);
    near_count * far_count * (far_sum / far_count - near_sum / near_count).powi(2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::random::Random;

    const STUDIES: u64 = 400;

    /// How many of the seeded sets of readings are called two states.
    fn two_states_count(readings: usize, draw: impl Fn(&mut Random, usize) -> f64) -> u64 {
        let is_two = |seed: &u64| {
            let mut random = Random::seeded(*seed);
            let drawn: Vec<f64> = (0..readings).map(|index| draw(&mut random, index)).collect();
            matches!(find_states(&drawn), Some(States::Two { .. }))
        };
        (0..STUDIES).filter(is_two).count() as u64
    }

    fn around(random: &mut Random, center_ns: f64, deviation: f64) -> f64 {
        center_ns * (deviation * random.normal()).exp()
    }

    #[test]
    fn a_constant_machine_has_one_state() {
        assert_eq!(find_states(&[101.0; 40]), Some(States::One { median_ns: 101.0_f64.ln().exp() }));
    }

    #[test]
    fn noise_around_one_state_stays_one_state() {
        for readings in [8, 12, 24, 40, 100, 426] {
            let called = two_states_count(readings, |random, _| around(random, 100.0, 0.15));
            assert!(called <= STUDIES / 50, "{called} of {STUDIES} with {readings} readings");
        }
    }

    #[test]
    fn readings_spread_evenly_over_a_wide_range_are_one_state() {
        for (readings, share_max) in [(12, 0.08), (24, 0.02), (40, 0.01), (426, 0.0)] {
            let called = two_states_count(readings, |random, _| 50.0 * 32_f64.powf(random.uniform()));
            assert!(called as f64 <= share_max * STUDIES as f64, "{called} with {readings} readings");
        }
    }

    #[test]
    fn near_and_far_are_told_apart_at_any_share() {
        for far_percent in [5, 24, 50, 76, 95] {
            for readings in [24, 40, 100, 426] {
                let called = two_states_count(readings, |random, index| {
                    let far = (index + 1) * far_percent / 100 > index * far_percent / 100;
                    around(random, if far { 400.0 } else { 100.0 }, 0.12)
                });
                assert!(
                    called >= STUDIES * 98 / 100,
                    "{called} of {STUDIES}: {far_percent} % far, {readings} readings"
                );
            }
        }
    }

    #[test]
    fn one_far_reading_in_forty_is_a_state_of_its_own() {
        let mut random = Random::seeded(6);
        let mut readings: Vec<f64> = (0..40).map(|_| around(&mut random, 100.0, 0.1)).collect();
        readings[17] = 404.0;
        let found = find_states(&readings).unwrap();
        assert!(matches!(found, States::Two { near_count: 39, far_count: 1, .. }), "{found:?}");
        assert!(found.is_far(404.0) && !found.is_far(120.0) && !found.is_same(404.0, 100.0));
    }

    #[test]
    fn a_reading_taken_during_a_change_does_not_hide_the_states() {
        let called = two_states_count(426, |random, index| match index {
            0 => 250.0,
            1 => 210.0,
            _ => around(random, if index % 4 == 0 { 404.0 } else { 101.0 }, 0.15),
        });
        assert_eq!(called, STUDIES);
    }

    #[test]
    fn a_disturbed_reading_does_not_merge_near_and_far() {
        let mut random = Random::seeded(8);
        let mut readings: Vec<f64> = (0..60)
            .map(|index| around(&mut random, if index % 4 == 0 { 400.0 } else { 100.0 }, 0.1))
            .collect();
        readings[30] = 40_000.0;
        let found = find_states(&readings).unwrap();
        let boundary_ns = found.boundary_ns().unwrap();
        assert!((140.0..300.0).contains(&boundary_ns), "{found:?}");
    }

    #[test]
    fn clusters_less_than_half_again_apart_are_one_state() {
        let split = |far_ns: f64| {
            let readings: Vec<f64> = (0..40)
                .map(|index| if index % 2 == 0 { 100.0 } else { far_ns } + f64::from(index) * 0.01)
                .collect();
            find_states(&readings).unwrap().boundary_ns()
        };
        assert_eq!(split(140.0), None);
        assert!((120.0..124.0).contains(&split(151.0).unwrap()));
    }

    #[test]
    fn few_readings_are_one_state_and_impossible_ones_none() {
        let few = [100.0, 101.0, 99.0, 400.0, 401.0, 402.0, 403.0];
        assert!(matches!(find_states(&few), Some(States::One { .. })));
        let enough = [100.0, 101.0, 99.0, 400.0, 401.0, 402.0, 403.0, 404.0];
        assert!(matches!(find_states(&enough), Some(States::Two { near_count: 3, far_count: 5, .. })));
        for wrong in [&[][..], &[0.0], &[-1.0], &[f64::NAN], &[100.0, f64::INFINITY]] {
            assert_eq!(find_states(wrong), None);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn states_ignore_order_follow_the_unit_and_lie_on_their_side_of_the_boundary(
            mut readings in prop::collection::vec(prop_oneof![90.0_f64..110.0, 380.0_f64..420.0], 1..80),
        ) {
            let found = find_states(&readings).unwrap();
            readings.reverse();
            readings.iter_mut().for_each(|reading| *reading *= 1000.0);
            let scaled = find_states(&readings).unwrap();
            match (found, scaled) {
                (States::One { median_ns }, States::One { median_ns: other_ns }) => {
                    prop_assert!((other_ns / median_ns / 1000.0 - 1.0).abs() < 1e-9);
                }
                (States::Two { near_ns, far_ns, boundary_ns, near_count, far_count }, States::Two { .. }) => {
                    prop_assert!((110.0..=380.0).contains(&boundary_ns));
                    prop_assert!(near_ns < boundary_ns && boundary_ns < far_ns);
                    prop_assert_eq!(near_count + far_count, readings.len());
                    prop_assert!((scaled.boundary_ns().unwrap() / boundary_ns / 1000.0 - 1.0).abs() < 1e-9);
                    let far = readings.iter().filter(|reading| found.is_far(**reading / 1000.0)).count();
                    prop_assert_eq!(far, far_count);
                }
                _ => prop_assert!(false, "the unit changed the answer: {found:?} and {scaled:?}"),
            }
        }
    }
}
