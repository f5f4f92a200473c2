//! The figures of all parts in order, and their differences seed by seed.

use std::collections::BTreeMap;

use weir_record::sweep::{Estimate, SweepPart, WaitingFigures};
use weir_stats::{
    interval::{CONFIDENCE, paired_interval},
    order,
};

/// Seed of all resamples: the same parts give the same intervals.
const RESAMPLE_SEED: u64 = 1;

type BySeed = BTreeMap<u64, WaitingFigures>;

/// Figures by phase, method and seed.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    phases: BTreeMap<String, BTreeMap<String, BySeed>>,
}

impl Figures {
    /// Puts parts in order; of two with the same method and seed the later one stays.
    pub fn of(parts: &[SweepPart]) -> Self {
        let mut figures = Self::default();
        for part in parts {
            for phase in &part.phases {
                let methods = figures.phases.entry(phase.name.clone()).or_default();
                if let Some(found) = phase.figures {
                    methods.entry(part.method.clone()).or_default().insert(part.seed, found);
                }
            }
        }
        figures
    }

    /// One method in one phase.
    pub fn method(&self, phase: &str, method: &str) -> Option<&BySeed> {
        self.phases.get(phase)?.get(method).filter(|seeds| !seeds.is_empty())
    }

    /// One value of each seed.
    pub fn values(
        &self,
        phase: &str,
        method: &str,
        value: impl Fn(&WaitingFigures) -> Option<f64>,
    ) -> Vec<f64> {
        self.method(phase, method).into_iter().flat_map(|seeds| seeds.values().filter_map(&value)).collect()
    }

    /// One value of each seed that both methods have. The first method comes first.
    pub fn pairs(
        &self,
        phase: &str,
        [first, second]: [&str; 2],
        value: impl Fn(&WaitingFigures, &WaitingFigures) -> Option<f64>,
    ) -> Vec<f64> {
        let (Some(first), Some(second)) = (self.method(phase, first), self.method(phase, second)) else {
            return Vec::new();
        };
        first.iter().filter_map(|(seed, figures)| value(figures, second.get(seed)?)).collect()
    }
}

/// Median and interval of some values; `None` without any, or with one that is not finite.
pub fn estimate(values: &[f64]) -> Option<Estimate> {
    let median = order::median(values)?;
    let interval = paired_interval(values, RESAMPLE_SEED)
        .filter(|interval| interval.confidence >= CONFIDENCE)
        .map(|interval| (interval.low, interval.high));
    Some(Estimate { median, interval, values: u32::try_from(values.len()).unwrap_or(u32::MAX) })
}

/// Median over seeds of every figure by itself.
pub fn medians(seeds: &BTreeMap<u64, WaitingFigures>) -> WaitingFigures {
    let median = |value: fn(&WaitingFigures) -> f64| {
        order::median(&seeds.values().map(value).collect::<Vec<_>>()).unwrap_or_default()
    };
    let optional = |value: fn(&WaitingFigures) -> Option<f64>| {
        order::median(&seeds.values().filter_map(value).collect::<Vec<_>>())
    };
    WaitingFigures {
        operations: median(|it| it.operations as f64) as u64,
        iops: median(|it| it.iops),
        miss_rate: median(|it| it.miss_rate),
        miss_harm_rate: median(|it| it.miss_harm_rate),
        woken_early_rate: median(|it| it.woken_early_rate),
        interrupted_rate: median(|it| it.interrupted_rate),
        cpu_share: median(|it| it.cpu_share),
        cpu_us: median(|it| it.cpu_us),
        sleep_effective_us: median(|it| it.sleep_effective_us),
        sleep_actual_us: median(|it| it.sleep_actual_us),
        device_us: median(|it| it.device_us),
        latency_us: median(|it| it.latency_us),
        added_us: median(|it| it.added_us),
        added_p50_us: optional(|it| it.added_p50_us),
        added_p99_us: optional(|it| it.added_p99_us),
        over: median(|it| it.over),
        under: median(|it| it.under),
    }
}

#[cfg(test)]
mod tests {
    use weir_record::sweep::PartPhase;

    use super::*;

    fn part(method: &str, seed: u64, miss_rate: f64) -> SweepPart {
        let figures = Some(WaitingFigures { operations: 10, miss_rate, ..WaitingFigures::default() });
        let phases = vec![PartPhase { name: "Job1".into(), figures, intervals: Vec::new() }];
        SweepPart { method: method.into(), seed, phases, failure: None }
    }

    #[test]
    fn differences_are_of_the_same_seed_and_a_later_part_replaces_an_earlier_one() {
        let parts =
            [part("a", 1, 0.5), part("a", 2, 0.7), part("b", 2, 0.1), part("b", 3, 0.9), part("a", 2, 0.4)];
        let figures = Figures::of(&parts);
        let found = figures.pairs("Job1", ["a", "b"], |a, b| Some(a.miss_rate - b.miss_rate));
        assert_eq!(found.len(), 1);
        assert!((found[0] - 0.3).abs() < 1e-12);
        assert!(figures.pairs("Job2", ["a", "b"], |_, _| Some(0.0)).is_empty());
        assert_eq!(figures.values("Job1", "a", |it| Some(it.miss_rate)), [0.5, 0.4]);
    }

    #[test]
    fn few_values_have_no_interval_and_none_have_no_estimate() {
        assert_eq!(estimate(&[]), None);
        assert_eq!(estimate(&[f64::NAN]), None);
        let few = estimate(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!((few.median, few.interval, few.values), (2.0, None, 3));
        let many: Vec<f64> = (0..20).map(f64::from).collect();
        let (low, high) = estimate(&many).unwrap().interval.unwrap();
        assert!(low < 9.5 && 9.5 < high);
        assert_eq!(estimate(&many), estimate(&many));
    }

    #[test]
    fn medians_are_of_each_figure_by_itself() {
        let parts = [part("a", 1, 0.1), part("a", 2, 0.3), part("a", 3, 0.2)];
        let figures = Figures::of(&parts);
        let found = medians(figures.method("Job1", "a").unwrap());
        assert_eq!((found.miss_rate, found.operations, found.added_p99_us), (0.2, 10, None));
    }
}
