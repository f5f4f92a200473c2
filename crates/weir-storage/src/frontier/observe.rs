//! What the paper says it saw, beside what came out here.
//!
//! Each observation has a rule that was written down before the measurement: what counts as the same, and what as the
//! same direction with another size. The figures of the paper are images; its text gives the numbers used here.

use weir_record::sweep::{
    MethodResult, Observation, ObservationKind, PhaseResult, Seen, SweepMethod, SweepResult,
};

use super::rows::ratio_of;
use crate::sweep::methods::CLASSIC;

/// Half a point: shares that are nearer count as equal.
const NEAR: f64 = 0.005;

const KINDS: [ObservationKind; 14] = [
    ObservationKind::FirstJobQuiet,
    ObservationKind::SecondJobMisses,
    ObservationKind::SecondJobIops,
    ObservationKind::ThirdJobPeak,
    ObservationKind::ThirdJobMisses,
    ObservationKind::ThirdJobIops,
    ObservationKind::RatioLowersMisses,
    ObservationKind::FivePercentMisses,
    ObservationKind::ThreePercentMisses,
    ObservationKind::CpuAtHalf,
    ObservationKind::CpuAtThreePercent,
    ObservationKind::IopsFlat,
    ObservationKind::IopsMoments,
    ObservationKind::NoRatioLowersBoth,
];

/// All observations, from a sweep over the paper's three jobs; with a second sweep in which the hypotheses about its
/// device are switched on.
pub fn observe(sweep: &SweepResult, hypotheses: Option<&SweepResult>) -> Vec<Observation> {
    let of = |kind: ObservationKind| {
        let (measured, seen) = measure(sweep, kind).unwrap_or((Vec::new(), Seen::Unknown));
        let then = hypotheses.and_then(|sweep| measure(sweep, kind));
        let (with_hypotheses, seen_with_hypotheses) =
            then.map_or((Vec::new(), None), |(measured, seen)| (measured, Some(seen)));
        Observation { kind, measured, seen, with_hypotheses, seen_with_hypotheses }
    };
    KINDS.into_iter().map(of).collect()
}

/// Measured figures of one observation and whether it is seen; `None` when the sweep lacks what it needs.
fn measure(sweep: &SweepResult, kind: ObservationKind) -> Option<(Vec<f64>, Seen)> {
    let [first, second, third] = [sweep.phases.first()?, sweep.phases.get(1)?, sweep.phases.get(2)?];
    match kind {
        ObservationKind::FirstJobQuiet => first_job_quiet(sweep, first),
        ObservationKind::SecondJobMisses => {
            let miss = miss(second, CLASSIC)?;
            Some((vec![miss], grade(miss >= 0.10, miss >= 0.05)))
        }
        ObservationKind::SecondJobIops => {
            let ratio = iops(second, CLASSIC)? / iops(first, CLASSIC)?;
            Some((vec![ratio], grade(ratio >= 0.5, ratio >= 0.33)))
        }
        ObservationKind::ThirdJobPeak => {
            let (peak, whole) = (peak(sweep, third)?, miss(third, CLASSIC)?);
            Some((vec![peak], grade(peak > 0.80, peak > whole * 1.2)))
        }
        ObservationKind::ThirdJobMisses => {
            let miss = miss(third, CLASSIC)?;
            Some((vec![miss], grade((0.25..=0.40).contains(&miss), (0.15..=0.55).contains(&miss))))
        }
        ObservationKind::ThirdJobIops => {
            let ratio = iops(third, CLASSIC)? / iops(first, CLASSIC)?;
            Some((vec![ratio], grade((0.077..=0.125).contains(&ratio), (0.05..=0.2).contains(&ratio))))
        }
        ObservationKind::RatioLowersMisses => ratio_lowers_misses(sweep, third),
        ObservationKind::FivePercentMisses => {
            let miss = at_ratio(sweep, third, 0.05)?.miss_rate.median;
            Some((vec![miss], grade(miss >= 0.03, miss >= 0.01)))
        }
        ObservationKind::ThreePercentMisses => {
            let (small, quiet) = (at_ratio(sweep, third, 0.03)?.miss_rate.median, miss(first, CLASSIC)?);
            let apart = (small - quiet).abs();
            Some((vec![small, quiet], grade(apart <= 0.01, apart <= 0.03)))
        }
        ObservationKind::CpuAtHalf => {
            let cpu = at_ratio(sweep, third, 0.5)?.cpu_share.median;
            Some((vec![cpu], grade(cpu < 0.50, cpu < 0.60)))
        }
        ObservationKind::CpuAtThreePercent => {
            let cpu = at_ratio(sweep, third, 0.03)?.cpu_share.median;
            Some((vec![cpu], grade(cpu > 0.95, cpu > 0.90)))
        }
        ObservationKind::IopsFlat => {
            let all: Vec<f64> = ratios(sweep, third).iter().map(|(_, it)| it.iops.median).collect();
            let flat = least(&all)? / most(&all)?;
            Some((vec![flat], grade(flat >= 0.90, flat >= 0.80)))
        }
        ObservationKind::IopsMoments => iops_moments(sweep, third),
        ObservationKind::NoRatioLowersBoth => no_ratio_lowers_both(sweep, third),
    }
}

fn grade(is_shown: bool, is_partly: bool) -> Seen {
    match (is_shown, is_partly) {
        (true, _) => Seen::Shown,
        (false, true) => Seen::Partly,
        (false, false) => Seen::NotShown,
    }
}

fn miss(phase: &PhaseResult, method: &str) -> Option<f64> {
    phase.method(method).map(|it| it.miss_rate.median)
}

fn iops(phase: &PhaseResult, method: &str) -> Option<f64> {
    phase.method(method).map(|it| it.iops.median).filter(|iops| *iops > 0.0)
}

/// The largest miss rate of an interval of the kernel's default in a phase.
fn peak(sweep: &SweepResult, phase: &PhaseResult) -> Option<f64> {
    let series = sweep.series.iter().find(|series| series.method == CLASSIC)?;
    let of_phase = series.points.iter().filter(|point| point.phase == phase.name);
    most(&of_phase.map(|point| point.miss_rate).collect::<Vec<_>>())
}

/// "Rises for a moment, then stays at 0."
fn first_job_quiet(sweep: &SweepResult, phase: &PhaseResult) -> Option<(Vec<f64>, Seen)> {
    let (whole, peak) = (miss(phase, CLASSIC)?, peak(sweep, phase)?);
    Some((vec![whole, peak], grade(whole <= 0.01 && peak >= 0.05, whole <= 0.01)))
}

/// Misses and effective sleep must fall with the ratio, from one to the next.
fn ratio_lowers_misses(sweep: &SweepResult, phase: &PhaseResult) -> Option<(Vec<f64>, Seen)> {
    let all = ratios(sweep, phase);
    let misses: Vec<f64> = all.iter().map(|(_, it)| it.miss_rate.median).collect();
    let sleeps: Vec<f64> = all.iter().map(|(_, it)| it.medians.sleep_effective_us).collect();
    let (first, last) = (*misses.first()?, *misses.last()?);
    let falls = |values: &[f64], slack: f64| values.windows(2).all(|pair| pair[1] <= pair[0] + slack);
    let seen = grade(falls(&misses, NEAR) && falls(&sleeps, 0.0) && last < first, last < first);
    Some((misses, seen))
}

/// The most operations a second of an interval, and their mean over all, at 50 % and at 3 %.
fn iops_moments(sweep: &SweepResult, phase: &PhaseResult) -> Option<(Vec<f64>, Seen)> {
    let of = |ratio: f64| {
        let method = at_ratio(sweep, phase, ratio)?;
        let series = sweep.series.iter().find(|series| series.method == method.method)?;
        let points = series.points.iter().filter(|point| point.phase == phase.name);
        Some((most(&points.map(|point| point.iops).collect::<Vec<_>>())?, method.iops.median))
    };
    let ((half, half_mean), (small, small_mean)) = (of(0.5)?, of(0.03)?);
    let (rise, rise_of_mean) = (small / half, small_mean / half_mean);
    let is_flat = (rise_of_mean - 1.0).abs() <= 0.10;
    let seen = grade(is_flat && rise >= 1.05 * rise_of_mean, is_flat && rise >= 1.05);
    Some((vec![half, small, half_mean, small_mean], seen))
}

/// How many pairs of ratios there are of which one has fewer misses and less CPU.
fn no_ratio_lowers_both(sweep: &SweepResult, phase: &PhaseResult) -> Option<(Vec<f64>, Seen)> {
    let all = ratios(sweep, phase);
    let is_better = |a: &MethodResult, b: &MethodResult| {
        a.miss_rate.median < b.miss_rate.median - NEAR && a.cpu_share.median < b.cpu_share.median - NEAR
    };
    let better = |(_, a): &(f64, &MethodResult)| all.iter().filter(|(_, b)| is_better(a, b)).count();
    let pairs: usize = all.iter().map(better).sum();
    (all.len() > 1).then(|| (vec![pairs as f64], grade(pairs == 0, pairs <= 2)))
}

/// The ratios tried, the largest first, with their figures.
pub fn ratios<'s>(sweep: &'s SweepResult, phase: &'s PhaseResult) -> Vec<(f64, &'s MethodResult)> {
    let is_plain = |method: &&SweepMethod| {
        method.role == weir_record::sweep::MethodRole::Ratio && !method.armed && !method.true_times
    };
    let of = |method: &SweepMethod| Some((ratio_of(&method.predictor), phase.method(&method.name)?));
    let mut found: Vec<_> = sweep.plan.methods.iter().filter(is_plain).filter_map(of).collect();
    found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    found
}

fn at_ratio<'s>(sweep: &'s SweepResult, phase: &'s PhaseResult, ratio: f64) -> Option<&'s MethodResult> {
    let mut all = ratios(sweep, phase).into_iter();
    all.find(|(found, _)| (found - ratio).abs() < 1e-9).map(|(_, method)| method)
}

fn most(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::max)
}

fn least(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::min)
}

#[cfg(test)]
mod tests {
    use weir_record::sweep::{Estimate, MethodRole, MethodSeries, SeriesPoint, SweepPlan, WaitingFigures};

    use super::*;

    fn figures(name: &str, miss: f64, cpu: f64, iops: f64, sleep: f64) -> MethodResult {
        let of = |median| Estimate { median, interval: None, values: 20 };
        MethodResult {
            method: name.into(),
            miss_rate: of(miss),
            cpu_share: of(cpu),
            iops: of(iops),
            medians: WaitingFigures { sleep_effective_us: sleep, ..WaitingFigures::default() },
            added_p99_us: None,
        }
    }

    /// What the paper's text says, as if it had been measured.
    fn as_published() -> SweepResult {
        let third = [
            (0.5, 0.30, 0.48),
            (0.4, 0.25, 0.58),
            (0.3, 0.18, 0.68),
            (0.2, 0.12, 0.78),
            (0.1, 0.08, 0.88),
            (0.05, 0.04, 0.94),
            (0.03, 0.002, 0.96),
        ];
        let name = |ratio: f64| format!("linux-mean:{ratio}");
        let method = |ratio: f64| SweepMethod {
            name: name(ratio),
            predictor: name(ratio),
            role: MethodRole::Ratio,
            ..SweepMethod::default()
        };
        let phase =
            |name: &str, methods| PhaseResult { name: name.into(), methods, ..PhaseResult::default() };
        let point =
            |phase: &str, miss_rate| SeriesPoint { phase: phase.into(), miss_rate, ..SeriesPoint::default() };
        let moment = |phase: &str, miss_rate, iops| SeriesPoint { iops, ..point(phase, miss_rate) };
        let all = third
            .iter()
            .map(|(ratio, miss, cpu)| figures(&name(*ratio), *miss, *cpu, 6_000.0, 100.0 * ratio));
        SweepResult {
            plan: SweepPlan {
                methods: third.iter().map(|(ratio, ..)| method(*ratio)).collect(),
                ..SweepPlan::default()
            },
            phases: vec![
                phase("Job1", vec![figures(CLASSIC, 0.001, 0.55, 60_000.0, 7.0)]),
                phase("Job2", vec![figures(CLASSIC, 0.12, 0.55, 45_000.0, 9.0)]),
                phase("Job3", all.collect()),
            ],
            series: vec![
                MethodSeries {
                    method: CLASSIC.into(),
                    seed: 1,
                    points: vec![
                        moment("Job1", 0.2, 60_000.0),
                        point("Job1", 0.0),
                        moment("Job3", 0.85, 6_200.0),
                        moment("Job3", 0.3, 5_800.0),
                    ],
                },
                MethodSeries {
                    method: name(0.03),
                    seed: 1,
                    points: vec![moment("Job3", 0.0, 7_000.0), moment("Job3", 0.0, 5_000.0)],
                },
            ],
            ..SweepResult::default()
        }
    }

    #[test]
    fn the_papers_own_figures_show_everything_it_says() {
        for found in observe(&as_published(), None) {
            assert_eq!(found.seen, Seen::Shown, "{:?}: {:?}", found.kind, found.measured);
            assert_eq!(found.seen_with_hypotheses, None);
        }
    }

    #[test]
    fn what_differs_is_not_shown_and_what_is_missing_is_unknown() {
        let mut other = as_published();
        other.series.clear();
        for method in &mut other.phases[2].methods {
            method.miss_rate.median = if method.method == CLASSIC { 0.36 } else { 0.0 };
        }
        other.phases[2].methods[1].cpu_share.median = 0.40;
        let found = observe(&other, Some(&as_published()));
        let seen = |kind| found.iter().find(|it| it.kind == kind).unwrap().seen;
        assert_eq!(seen(ObservationKind::ThirdJobPeak), Seen::Unknown);
        assert_eq!(seen(ObservationKind::FirstJobQuiet), Seen::Unknown);
        assert_eq!(seen(ObservationKind::IopsMoments), Seen::Unknown);
        assert_eq!(seen(ObservationKind::FivePercentMisses), Seen::NotShown);
        let mut alike = as_published();
        // The mean rises as much as the maximum does.
        alike.phases[2].methods[6].iops.median = 6_500.0;
        let moments = |sweep: &SweepResult| {
            observe(sweep, None).iter().find(|it| it.kind == ObservationKind::IopsMoments).unwrap().seen
        };
        assert_eq!(moments(&alike), Seen::Partly);
        alike.phases[2].methods[6].iops.median = 7_000.0;
        assert_eq!(moments(&alike), Seen::NotShown);
        assert_eq!(seen(ObservationKind::NoRatioLowersBoth), Seen::Partly);
        let five = found.iter().find(|it| it.kind == ObservationKind::FivePercentMisses).unwrap();
        assert_eq!(
            (five.with_hypotheses.as_slice(), five.seen_with_hypotheses),
            (&[0.04][..], Some(Seen::Shown))
        );
        assert!(observe(&SweepResult::default(), None).iter().all(|it| it.seen == Seen::Unknown));
    }
}
