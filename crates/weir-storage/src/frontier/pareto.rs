//! Points in a plane of two costs, and the room behind them.

/// A method in a plane: less is better on both axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// First cost.
    pub cost: f64,
    /// CPU share.
    pub cpu: f64,
}

impl Point {
    /// Whether this point is nowhere worse than the other, and somewhere better.
    pub fn dominates(self, other: Self) -> bool {
        self.cost <= other.cost && self.cpu <= other.cpu && self != other
    }

    fn is_finite(self) -> bool {
        self.cost.is_finite() && self.cpu.is_finite()
    }
}

/// Which points no other dominates, by index. Equal points are all ahead; one that is not finite never is.
pub fn ahead(points: &[Point]) -> Vec<usize> {
    let is_ahead = |index: &usize| {
        let point = points[*index];
        point.is_finite() && !points.iter().any(|other| other.is_finite() && other.dominates(point))
    };
    (0..points.len()).filter(is_ahead).collect()
}

/// Share of the box from the origin to the reference that is dominated by at least one of the points: 1 for a point at
/// the origin, 0 when every point is on or beyond the reference (Zitzler and Thiele, "Multiobjective Optimization
/// Using Evolutionary Algorithms", PPSN V, 1998). Costs below 0 count as 0.
pub fn hypervolume(points: &[Point], reference: Point) -> f64 {
    if !(reference.cost > 0.0 && reference.cpu > 0.0) {
        return 0.0;
    }
    let mut inside: Vec<Point> = points
        .iter()
        .filter(|point| point.is_finite() && point.cost < reference.cost && point.cpu < reference.cpu)
        .map(|point| Point { cost: point.cost.max(0.0), cpu: point.cpu.max(0.0) })
        .collect();
    inside.sort_by(|a, b| a.cost.total_cmp(&b.cost).then(a.cpu.total_cmp(&b.cpu)));
    let (mut area, mut lowest) = (0.0, reference.cpu);
    for point in inside {
        if point.cpu < lowest {
            area += (reference.cost - point.cost) * (lowest - point.cpu);
            lowest = point.cpu;
        }
    }
    area / (reference.cost * reference.cpu)
}

/// Distance of two points after both axes were divided by the reference's.
pub fn distance(from: Point, to: Point, reference: Point) -> Option<f64> {
    let apart = ((from.cost - to.cost) / reference.cost).hypot((from.cpu - to.cpu) / reference.cpu);
    apart.is_finite().then_some(apart)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CORNER: Point = Point { cost: 1.0, cpu: 1.0 };

    fn points(values: &[(f64, f64)]) -> Vec<Point> {
        values.iter().map(|(cost, cpu)| Point { cost: *cost, cpu: *cpu }).collect()
    }

    #[test]
    fn volumes_are_those_of_the_rectangles() {
        assert_eq!(hypervolume(&points(&[(0.0, 0.0)]), CORNER), 1.0);
        assert_eq!(hypervolume(&points(&[(0.5, 0.5)]), CORNER), 0.25);
        // Two steps: 0.75 wide and 0.5 high, then 0.5 wide and 0.25 high.
        let steps = points(&[(0.25, 0.5), (0.5, 0.25)]);
        assert!((hypervolume(&steps, CORNER) - (0.75 * 0.5 + 0.5 * 0.25)).abs() < 1e-12);
        assert_eq!(hypervolume(&points(&[(1.0, 0.0), (0.0, 1.0), (2.0, 0.1)]), CORNER), 0.0);
        assert_eq!(hypervolume(&[], CORNER), 0.0);
        assert_eq!(hypervolume(&points(&[(0.0, 0.0)]), Point { cost: 0.0, cpu: 1.0 }), 0.0);
    }

    #[test]
    fn the_front_holds_what_nothing_dominates_and_equal_points_twice() {
        let all = points(&[(0.1, 0.9), (0.5, 0.5), (0.5, 0.6), (0.9, 0.1), (0.1, 0.9), (f64::NAN, 0.0)]);
        assert_eq!(ahead(&all), [0, 1, 3, 4]);
        assert!(!all[0].dominates(all[4]));
    }

    proptest! {
        #[test]
        fn a_further_point_never_takes_volume_and_a_dominated_one_adds_none(
            values in prop::collection::vec((0.0_f64..1.2, 0.0_f64..1.2), 1..12),
            further in (0.0_f64..1.2, 0.0_f64..1.2),
        ) {
            let mut all = points(&values);
            let before = hypervolume(&all, CORNER);
            let point = Point { cost: further.0, cpu: further.1 };
            let is_behind = all.iter().any(|other| other.dominates(point));
            all.push(point);
            let after = hypervolume(&all, CORNER);
            prop_assert!(after >= before - 1e-12 && after <= 1.0 + 1e-12);
            if is_behind {
                prop_assert!((after - before).abs() < 1e-12);
            }
        }

        #[test]
        fn volume_is_what_throwing_darts_finds(values in prop::collection::vec((0.0_f64..1.0, 0.0_f64..1.0), 1..8)) {
            let all = points(&values);
            let steps = 200;
            let hits = (0..steps * steps)
                .map(|index| ((index % steps) as f64 + 0.5, (index / steps) as f64 + 0.5))
                .filter(|(x, y)| all.iter().any(|p| p.cost * 200.0 <= *x && p.cpu * 200.0 <= *y))
                .count();
            let found = hits as f64 / f64::from(steps * steps);
            prop_assert!((found - hypervolume(&all, CORNER)).abs() < 0.02);
        }
    }
}
