//! What the candidate must show against each ratio of the kernel's mean, phase by phase.
//!
//! Third phase: no more misses, less CPU and no fewer operations a second than each ratio. Second phase: the same
//! against ratios up to 30 %, and no ratio has fewer misses and less CPU at once. First phase: a tie. With margins of
//! half a point of misses and half a percent of operations a second. The latter is our own, because two methods that
//! are equal are never measured equal; [`FrontierRow::outcome_without_margin`] takes "no fewer" literally.

use weir_record::sweep::{
    Difference, Estimate, FrontierRow, FrontierRule, MethodRole, Outcome, SweepPlan, SweepWorld,
    WaitingFigures,
};

use super::figures::{Figures, estimate};

/// Further misses that still count as no more.
pub const MISS_MARGIN: f64 = 0.005;
/// Further CPU that still counts as a tie.
pub const CPU_MARGIN: f64 = 0.005;
/// Fewer operations a second that still count as no fewer, as a fraction.
pub const IOPS_MARGIN: f64 = 0.005;
/// In the second phase the candidate must be ahead of ratios up to this one.
pub const SECOND_PHASE_RATIO_MAX: f64 = 0.30;

/// The table; empty without a candidate, a ratio or a pair of seeds.
pub fn rows(plan: &SweepPlan, figures: &Figures, candidate: &str) -> Vec<FrontierRow> {
    let ratios = || plan.methods.iter().filter(|method| method.role == MethodRole::Ratio);
    let mut rows = Vec::new();
    for (index, phase) in plan.phases.iter().enumerate() {
        for ratio in ratios() {
            for rule in rules(plan.world, index, plan.phases.len(), ratio_of(&ratio.predictor)) {
                rows.extend(row(figures, &phase.name, [candidate, &ratio.name], rule));
            }
        }
    }
    rows
}

/// The ratio in a predictor's text, `linux-mean:0.3` or `linux-mean:0.3,100`; the kernel's own when it has none.
pub fn ratio_of(predictor: &str) -> f64 {
    let parameters = predictor.split_once(':').map(|(_, rest)| rest).unwrap_or_default();
    parameters.split(',').next().and_then(|first| first.parse().ok()).unwrap_or(0.5)
}

/// What is asked in a phase: the load grows from the first to the last, and with one phase only it is all there is. On
/// a disk the second phase is the last of which anything is asked, and so it is of what was recorded on one; deeper
/// loads are only reported.
fn rules(world: SweepWorld, index: usize, phases: usize, ratio: f64) -> Vec<FrontierRule> {
    match index {
        2.. if world.is_of_this_machine() => Vec::new(),
        0 if phases > 1 => vec![FrontierRule::Tie],
        1 if phases > 2 && ratio > SECOND_PHASE_RATIO_MAX + 1e-9 => vec![FrontierRule::NotBeatenOnBoth],
        1 if phases > 2 => vec![FrontierRule::Ahead, FrontierRule::NotBeatenOnBoth],
        _ => vec![FrontierRule::Ahead],
    }
}

fn row(figures: &Figures, phase: &str, pair: [&str; 2], rule: FrontierRule) -> Option<FrontierRow> {
    let of = |value: fn(&WaitingFigures, &WaitingFigures) -> f64| {
        estimate(&figures.pairs(phase, pair, |a, b| Some(value(a, b))))
    };
    let misses = of(|a, b| a.miss_rate - b.miss_rate)?;
    let cpu = of(|a, b| a.cpu_share - b.cpu_share)?;
    let iops = of(|a, b| a.iops / b.iops - 1.0)?;
    let cpu_outcome = match rule {
        FrontierRule::Tie => at_most(&cpu, CPU_MARGIN),
        FrontierRule::Ahead | FrontierRule::NotBeatenOnBoth => below(&cpu, 0.0),
    };
    let misses = Difference { estimate: misses, outcome: at_most(&misses, MISS_MARGIN) };
    let cpu = Difference { estimate: cpu, outcome: cpu_outcome };
    let iops = Difference { estimate: iops, outcome: at_least(&iops, -IOPS_MARGIN) };
    let outcome = match rule {
        FrontierRule::Ahead | FrontierRule::Tie => {
            all([misses.outcome, cpu.outcome, iops.outcome].into_iter())
        }
        FrontierRule::NotBeatenOnBoth => not_beaten(&misses.estimate, &cpu.estimate),
    };
    let [_, against] = pair;
    Some(FrontierRow {
        phase: phase.to_owned(),
        against: against.to_owned(),
        rule,
        misses,
        cpu,
        iops,
        outcome,
    })
}

/// Of several things that must hold.
pub fn all(outcomes: impl Iterator<Item = Outcome>) -> Outcome {
    outcomes.fold(Outcome::Holds, |whole, part| match (whole, part) {
        (Outcome::Fails, _) | (_, Outcome::Fails) => Outcome::Fails,
        (Outcome::Open, _) | (_, Outcome::Open) => Outcome::Open,
        (Outcome::Holds, Outcome::Holds) => Outcome::Holds,
    })
}

fn at_most(estimate: &Estimate, limit: f64) -> Outcome {
    match estimate.interval {
        Some((_, high)) if high <= limit => Outcome::Holds,
        Some((low, _)) if low > limit => Outcome::Fails,
        _ => Outcome::Open,
    }
}

fn below(estimate: &Estimate, limit: f64) -> Outcome {
    match estimate.interval {
        Some((_, high)) if high < limit => Outcome::Holds,
        Some((low, _)) if low >= limit => Outcome::Fails,
        _ => Outcome::Open,
    }
}

fn at_least(estimate: &Estimate, limit: f64) -> Outcome {
    match estimate.interval {
        Some((low, _)) if low >= limit => Outcome::Holds,
        Some((_, high)) if high < limit => Outcome::Fails,
        _ => Outcome::Open,
    }
}

/// Beaten is who has more of both.
fn not_beaten(misses: &Estimate, cpu: &Estimate) -> Outcome {
    match (at_most(misses, 0.0), at_most(cpu, 0.0)) {
        (Outcome::Holds, _) | (_, Outcome::Holds) => Outcome::Holds,
        (Outcome::Fails, Outcome::Fails) => Outcome::Fails,
        _ => Outcome::Open,
    }
}

#[cfg(test)]
mod tests {
    use weir_record::sweep::{PartPhase, SweepMethod, SweepPart, SweepPhase};

    use super::*;

    fn figures(values: &[(&str, f64, f64, f64)]) -> Figures {
        let parts: Vec<SweepPart> = (1..=20)
            .flat_map(|seed| {
                values.iter().map(move |(method, miss_rate, cpu_share, iops)| {
                    // What the seed does is the same for both.
                    let luck = seed as f64 * 1e-3;
                    let found = WaitingFigures {
                        operations: 1,
                        miss_rate: miss_rate + luck,
                        cpu_share: cpu_share + luck,
                        iops: iops * (1.0 + luck),
                        ..WaitingFigures::default()
                    };
                    let phases = ["Job1", "Job2", "Job3"].map(|name| PartPhase {
                        name: name.into(),
                        figures: Some(found),
                        intervals: Vec::new(),
                    });
                    SweepPart { method: (*method).into(), seed, phases: phases.into(), failure: None }
                })
            })
            .collect();
        Figures::of(&parts)
    }

    fn plan() -> SweepPlan {
        let phase = |name: &str| SweepPhase { name: name.into(), ..SweepPhase::default() };
        let method = |predictor: &str, role| SweepMethod {
            name: predictor.into(),
            predictor: predictor.into(),
            role,
            ..SweepMethod::default()
        };
        SweepPlan {
            phases: ["Job1", "Job2", "Job3"].map(phase).into(),
            methods: vec![
                method("ours", MethodRole::Candidate),
                method("linux-mean:0.5", MethodRole::Ratio),
                method("linux-mean:0.03,100", MethodRole::Ratio),
            ],
            ..SweepPlan::default()
        }
    }

    #[test]
    fn each_phase_asks_for_its_own() {
        let figures = figures(&[
            ("ours", 0.003, 0.40, 99.8),
            ("linux-mean:0.5", 0.30, 0.55, 90.0),
            ("linux-mean:0.03,100", 0.0, 0.97, 100.0),
        ]);
        let rows = rows(&plan(), &figures, "ours");
        let rules: Vec<_> = rows
            .iter()
            .map(|row| (row.phase.as_str(), row.against.as_str(), row.rule, row.outcome))
            .collect();
        let (half, small) = ("linux-mean:0.5", "linux-mean:0.03,100");
        assert_eq!(
            rules,
            [
                ("Job1", half, FrontierRule::Tie, Outcome::Holds),
                ("Job1", small, FrontierRule::Tie, Outcome::Holds),
                ("Job2", half, FrontierRule::NotBeatenOnBoth, Outcome::Holds),
                ("Job2", small, FrontierRule::Ahead, Outcome::Holds),
                ("Job2", small, FrontierRule::NotBeatenOnBoth, Outcome::Holds),
                ("Job3", half, FrontierRule::Ahead, Outcome::Holds),
                ("Job3", small, FrontierRule::Ahead, Outcome::Holds),
            ]
        );
    }

    #[test]
    fn one_axis_that_is_worse_fails_and_says_which() {
        let figures = figures(&[
            ("ours", 0.02, 0.60, 98.0),
            ("linux-mean:0.5", 0.01, 0.55, 100.0),
            ("linux-mean:0.03,100", 0.0, 0.97, 98.0),
        ]);
        let rows = rows(&plan(), &figures, "ours");
        let third = rows.iter().find(|row| row.phase == "Job3" && row.against == "linux-mean:0.5").unwrap();
        assert_eq!(third.outcome, Outcome::Fails);
        assert_eq!([third.misses.outcome, third.cpu.outcome, third.iops.outcome], [Outcome::Fails; 3]);
        assert!((third.iops.estimate.median + 0.02).abs() < 1e-9);
        let both = rows.iter().find(|row| row.rule == FrontierRule::NotBeatenOnBoth).unwrap();
        assert_eq!((both.against.as_str(), both.outcome), ("linux-mean:0.5", Outcome::Fails));
        let small = rows.iter().rfind(|row| row.against == "linux-mean:0.03,100").unwrap();
        assert_eq!((small.misses.outcome, small.cpu.outcome), (Outcome::Fails, Outcome::Holds));
    }

    #[test]
    fn too_few_seeds_decide_nothing() {
        let one = WaitingFigures { operations: 1, iops: 1.0, ..WaitingFigures::default() };
        let part = |method: &str| SweepPart {
            method: method.into(),
            seed: 1,
            phases: vec![PartPhase { name: "Job3".into(), figures: Some(one), intervals: Vec::new() }],
            failure: None,
        };
        let figures = Figures::of(&[part("ours"), part("linux-mean:0.5")]);
        let rows = rows(&plan(), &figures, "ours");
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].outcome, Outcome::Open);
    }

    #[test]
    fn the_ratio_is_read_from_the_text() {
        assert_eq!(ratio_of("linux-mean:0.3,100"), 0.3);
        assert_eq!(ratio_of("linux-mean:0.05"), 0.05);
        assert_eq!(ratio_of("linux-mean"), 0.5);
    }

    #[test]
    fn a_failure_outweighs_an_open_question() {
        assert_eq!(all([Outcome::Holds, Outcome::Open, Outcome::Fails].into_iter()), Outcome::Fails);
        assert_eq!(all([Outcome::Holds, Outcome::Open].into_iter()), Outcome::Open);
        assert_eq!(all(std::iter::empty()), Outcome::Holds);
    }
}
