//! Where a gain is from, and what waiting for the interrupt is worth.

use weir_record::sweep::{
    Estimate, Gain, GainStep, MethodRole, Price, SweepPlan, SweepWorld, WaitingFigures,
};
use weir_stats::order;

use super::figures::{Figures, estimate};
use crate::sweep::methods::{CLASSIC, CONSTANT, INTERRUPT, POLL, QUANTILE};

/// Latency that is saved below this, in microseconds, is no saving that a price could be named for.
const SAVED_US_MIN: f64 = 0.05;

/// The steps from the kernel's default to the candidate, phase by phase; a step one of whose ends is not in the plan is
/// left out.
pub fn gains(plan: &SweepPlan, figures: &Figures, candidate: &str) -> Vec<Gain> {
    let steps = [
        (GainStep::Whole, CLASSIC, candidate),
        (GainStep::BetterQuantile, CLASSIC, QUANTILE),
        (GainStep::ChangedMechanism, QUANTILE, candidate),
        (GainStep::QuantileToOracle, CONSTANT, QUANTILE),
        (GainStep::InterruptToCandidate, INTERRUPT, candidate),
    ];
    let of_phase = |phase: &str| {
        steps
            .iter()
            .filter_map(|(step, from, to)| gain(figures, phase, *step, [from, to]))
            .collect::<Vec<_>>()
    };
    plan.phases.iter().flat_map(|phase| of_phase(&phase.name)).collect()
}

fn gain(figures: &Figures, phase: &str, step: GainStep, [from, to]: [&str; 2]) -> Option<Gain> {
    let of = |value: fn(&WaitingFigures, &WaitingFigures) -> Option<f64>| {
        estimate(&figures.pairs(phase, [to, from], value))
    };
    Some(Gain {
        phase: phase.to_owned(),
        step,
        from: from.to_owned(),
        to: to.to_owned(),
        misses: of(|to, from| Some(to.miss_rate - from.miss_rate))?,
        cpu: of(|to, from| Some(to.cpu_share - from.cpu_share))?,
        iops: of(|to, from| Some(to.iops / from.iops - 1.0))?,
        added_p99_us: of(|to, from| Some(to.added_p99_us? - from.added_p99_us?)),
    })
}

/// What the interrupt is worth in one phase; `None` when it was not tried there.
///
/// A method that notices earlier than the interrupt pays CPU for it. CPU-µs over latency-µs is its price, and the
/// lowest price over all methods is where the answer changes: whoever would pay less waits for the interrupt.
pub fn price(plan: &SweepPlan, figures: &Figures, phase: &str, candidate: Option<&str>) -> Option<Price> {
    figures.method(phase, INTERRUPT)?;
    let offers = plan
        .methods
        .iter()
        .filter(|method| method.role != MethodRole::Oracle && !method.true_times && method.name != INTERRUPT)
        .filter_map(|method| {
            offer(plan.world, figures, phase, &method.name).map(|(price, saved)| (&method.name, price, saved))
        });
    let cheapest = offers.min_by(|(_, a, _), (_, b, _)| a.median.total_cmp(&b.median));
    let interrupted = candidate
        .map(|candidate| figures.values(phase, candidate, |it| Some(it.interrupted_rate)))
        .and_then(|values| order::median(&values));
    Some(Price {
        candidate_interrupted_rate: interrupted.unwrap_or_default(),
        method: cheapest.as_ref().map(|(method, ..)| (*method).clone()),
        cpu_us_for_latency_us: cheapest.as_ref().map(|(_, price, _)| *price),
        latency_saved_us: cheapest.as_ref().map(|(.., saved)| *saved),
        poll_cpu_us_for_latency_us: offer(plan.world, figures, phase, POLL).map(|(price, _)| price),
    })
}

/// CPU paid for each latency saved against the interrupt, and the latency saved for each operation. `None` when with
/// some seed nothing is saved.
///
/// On a disk the moment of completion is mostly not known, so there the whole latency is compared.
fn offer(world: SweepWorld, figures: &Figures, phase: &str, method: &str) -> Option<(Estimate, Estimate)> {
    let latency_us =
        |it: &WaitingFigures| if world == SweepWorld::Disk { it.latency_us } else { it.added_us };
    let saved = figures
        .pairs(phase, [method, INTERRUPT], |it, interrupt| Some(latency_us(interrupt) - latency_us(it)));
    if saved.iter().any(|us| *us < SAVED_US_MIN) {
        return None;
    }
    let paid = figures.pairs(phase, [method, INTERRUPT], |it, interrupt| Some(it.cpu_us - interrupt.cpu_us));
    let prices: Vec<f64> = paid.iter().zip(&saved).map(|(paid, saved)| (paid / saved).max(0.0)).collect();
    Some((estimate(&prices)?, estimate(&saved)?))
}

#[cfg(test)]
mod tests {
    use weir_record::sweep::{PartPhase, SweepMethod, SweepPart, SweepPhase};

    use super::*;

    fn parts(values: &[(&str, f64, f64)]) -> Vec<SweepPart> {
        let part = |seed: u64, (method, cpu_us, added_us): &(&str, f64, f64)| {
            let found = WaitingFigures {
                operations: 1,
                iops: 100.0,
                cpu_us: *cpu_us + seed as f64 * 0.01,
                cpu_share: *cpu_us / 20.0,
                added_us: *added_us,
                interrupted_rate: if *method == "ours" { 0.75 } else { 0.0 },
                ..WaitingFigures::default()
            };
            let phases = vec![PartPhase { name: "Job3".into(), figures: Some(found), intervals: Vec::new() }];
            SweepPart { method: (*method).into(), seed, phases, failure: None }
        };
        (1..=20).flat_map(|seed| values.iter().map(move |value| part(seed, value))).collect()
    }

    fn plan(names: &[&str]) -> SweepPlan {
        SweepPlan {
            phases: vec![SweepPhase { name: "Job3".into(), ..SweepPhase::default() }],
            methods: names
                .iter()
                .map(|name| SweepMethod { name: (*name).into(), ..SweepMethod::default() })
                .collect(),
            ..SweepPlan::default()
        }
    }

    #[test]
    fn the_price_is_that_of_the_cheapest_method_which_saves_something() {
        // The interrupt takes 3 and adds 2. Polling takes 15 and adds 0: 6 for each. A half-way method: 4 for each.
        let figures = Figures::of(&parts(&[
            (INTERRUPT, 3.0, 2.0),
            (POLL, 15.0, 0.0),
            ("ours", 7.0, 1.0),
            ("late", 2.0, 9.0),
        ]));
        let plan = plan(&[INTERRUPT, POLL, "ours", "late"]);
        let found = price(&plan, &figures, "Job3", Some("ours")).unwrap();
        assert_eq!(found.method.as_deref(), Some("ours"));
        assert!((found.cpu_us_for_latency_us.unwrap().median - 4.0).abs() < 1e-9);
        assert!((found.poll_cpu_us_for_latency_us.unwrap().median - 6.0).abs() < 1e-9);
        assert!((found.latency_saved_us.unwrap().median - 1.0).abs() < 1e-9);
        assert_eq!(found.candidate_interrupted_rate, 0.75);
        assert_eq!(price(&plan, &figures, "Job1", None), None);
    }

    #[test]
    fn the_two_halves_of_a_gain_add_up_to_the_whole() {
        let figures = Figures::of(&parts(&[(CLASSIC, 10.0, 1.0), (QUANTILE, 8.0, 1.0), ("ours", 2.0, 2.0)]));
        let found = gains(&plan(&[CLASSIC, QUANTILE, "ours"]), &figures, "ours");
        let cpu = |step| found.iter().find(|gain| gain.step == step).unwrap().cpu.median;
        let (whole, quantile) = (cpu(GainStep::Whole), cpu(GainStep::BetterQuantile));
        assert!((whole + 0.4).abs() < 1e-9 && (quantile + 0.1).abs() < 1e-9);
        assert!((whole - quantile - cpu(GainStep::ChangedMechanism)).abs() < 1e-9);
        // Neither the oracle nor the interrupt was tried.
        assert_eq!(found.len(), 3);
    }
}
