//! From parts to a judged sweep.

use std::collections::{BTreeMap, BTreeSet};

use weir_record::{
    SCHEMA_VERSION,
    storage::WaitingInterval,
    sweep::{
        Estimate, FamilyVolume, Feeding, MethodResult, MethodRole, MethodSeries, MissingMethod,
        OracleDistance, PhaseResult, Plane, PlaneKind, SeriesPoint, SweepMethod, SweepPart, SweepPlan,
        SweepResult, WaitingFigures,
    },
};

use super::{
    figures::{Figures, estimate, medians},
    gain,
    pareto::{self, Point},
    rows,
};
use crate::{
    predict::PredictorSpec,
    simulate,
    sweep::methods::{CLAIRVOYANT, CLASSIC, CLASSIC_TRUE, CONSTANT, INTERRUPT},
};

/// The added p99 at which a volume ends: so many times what the interrupt adds in the same phase.
pub const ADDED_REFERENCE_INTERRUPTS: f64 = 5.0;

/// Methods in a plan, apart from oracles and what only a model can do.
fn is_contender(method: &SweepMethod) -> bool {
    method.role != MethodRole::Oracle && !method.true_times
}

/// Judges what is done of a plan.
pub fn judge(plan: &SweepPlan, parts: &[SweepPart]) -> SweepResult {
    let figures = Figures::of(parts);
    let candidate = plan.methods.iter().find(|method| method.role == MethodRole::Candidate);
    let name = candidate.map(|method| method.name.as_str());
    let phase = |phase: &str| PhaseResult {
        name: phase.to_owned(),
        methods: plan
            .methods
            .iter()
            .filter_map(|method| method_result(&figures, phase, &method.name))
            .collect(),
        planes: [PlaneKind::Miss, PlaneKind::AddedP99]
            .into_iter()
            .filter_map(|kind| plane(plan, &figures, phase, kind, candidate))
            .collect(),
        price: gain::price(plan, &figures, phase, name),
    };
    let done: BTreeSet<(&str, u64)> = parts
        .iter()
        .filter(|part| part.failure.is_none() && has_every_phase(plan, part))
        .map(|part| (part.method.as_str(), part.seed))
        .collect();
    let planned = plan.methods.len() * plan.seeds.len();
    let phases: Vec<PhaseResult> = plan.phases.iter().map(|it| phase(&it.name)).collect();
    SweepResult {
        schema_version: SCHEMA_VERSION,
        notes: phases.iter().filter_map(|phase| never_slept(plan, phase)).collect(),
        plan: plan.clone(),
        candidate: name.map(str::to_owned),
        parts_done: u32::try_from(done.len()).unwrap_or(u32::MAX),
        complete: done.len() == planned,
        phases,
        frontier: name.map(|name| rows::rows(plan, &figures, name)).unwrap_or_default(),
        gains: name.map(|name| gain::gains(plan, &figures, name)).unwrap_or_default(),
        series: series(plan, parts),
        missing: missing(plan, parts),
    }
}

/// Methods that sleep and did not in a phase: their misses of nothing are no merit.
fn never_slept(plan: &SweepPlan, phase: &PhaseResult) -> Option<String> {
    let has_sleeps = |name: &str| {
        let method = plan.methods.iter().find(|method| method.name == name);
        method.is_some_and(|it| it.predictor.parse().is_ok_and(|spec: PredictorSpec| spec.has_sleeps()))
    };
    let is_sleepless = |result: &&MethodResult| {
        let medians = &result.medians;
        medians.sleep_effective_us == 0.0 && medians.interrupted_rate < 1.0 && has_sleeps(&result.method)
    };
    let sleepless: Vec<&MethodResult> = phase.methods.iter().filter(is_sleepless).collect();
    let names: Vec<String> = sleepless.iter().map(|result| result.method.clone()).collect();
    let figures = &sleepless.first()?.medians;
    let elapsed_ns = figures.operations as f64 * 1e9 / figures.iops.max(f64::MIN_POSITIVE);
    Some(simulate::never_slept(&phase.name, elapsed_ns as u64, &names))
}

/// A disk gives its phases one by one, so a part may have some of them and not yet the others.
fn has_every_phase(plan: &SweepPlan, part: &SweepPart) -> bool {
    plan.phases.iter().all(|planned| part.phases.iter().any(|phase| phase.name == planned.name))
}

fn method_result(figures: &Figures, phase: &str, method: &str) -> Option<MethodResult> {
    let seeds = figures.method(phase, method)?;
    let of = |value: fn(&WaitingFigures) -> Option<f64>| estimate(&figures.values(phase, method, value));
    Some(MethodResult {
        method: method.to_owned(),
        miss_rate: of(|it| Some(it.miss_rate))?,
        cpu_share: of(|it| Some(it.cpu_share))?,
        iops: of(|it| Some(it.iops))?,
        added_p99_us: of(|it| it.added_p99_us),
        medians: medians(seeds),
    })
}

fn point(kind: PlaneKind, figures: &WaitingFigures) -> Option<Point> {
    let cost = match kind {
        PlaneKind::Miss => figures.miss_rate,
        PlaneKind::AddedP99 => figures.added_p99_us?,
    };
    Some(Point { cost, cpu: figures.cpu_share })
}

/// One plane of one phase; `None` when nothing can be put into it.
fn plane(
    plan: &SweepPlan,
    figures: &Figures,
    phase: &str,
    kind: PlaneKind,
    candidate: Option<&SweepMethod>,
) -> Option<Plane> {
    let reference = reference(figures, phase, kind)?;
    let place = |method: &str| point(kind, &medians(figures.method(phase, method)?));
    let contenders: Vec<(&SweepMethod, Point)> = plan
        .methods
        .iter()
        .filter(|method| is_contender(method))
        .filter_map(|method| Some((method, place(&method.name)?)))
        .collect();
    let points: Vec<Point> = contenders.iter().map(|(_, point)| *point).collect();
    let ahead = pareto::ahead(&points);
    let oracles = [place(CLAIRVOYANT), place(CONSTANT)];
    let distance = |(method, from): &(&SweepMethod, Point)| {
        let [clairvoyant, constant] =
            oracles.map(|oracle| oracle.and_then(|oracle| pareto::distance(*from, oracle, reference)));
        OracleDistance { method: method.name.clone(), clairvoyant, constant }
    };
    Some(Plane {
        kind,
        reference: (reference.cost, reference.cpu),
        ahead: ahead.into_iter().map(|index| contenders[index].0.name.clone()).collect(),
        volumes: volumes(plan, figures, (phase, kind, reference), candidate),
        distances: contenders.iter().map(distance).collect(),
    })
}

/// 100 % misses and 100 % CPU; or several times what the interrupt adds, and 100 % CPU.
fn reference(figures: &Figures, phase: &str, kind: PlaneKind) -> Option<Point> {
    let cost = match kind {
        PlaneKind::Miss => 1.0,
        PlaneKind::AddedP99 => {
            let interrupt = medians(figures.method(phase, INTERRUPT)?);
            interrupt.added_p99_us? * ADDED_REFERENCE_INTERRUPTS
        }
    };
    (cost > 0.0).then_some(Point { cost, cpu: 1.0 })
}

type BySeed = BTreeMap<u64, f64>;

/// What each family reaches, the largest first.
fn volumes(
    plan: &SweepPlan,
    figures: &Figures,
    (phase, kind, reference): (&str, PlaneKind, Point),
    candidate: Option<&SweepMethod>,
) -> Vec<FamilyVolume> {
    let mut families: BTreeMap<&str, Vec<&SweepMethod>> = BTreeMap::new();
    for method in plan.methods.iter().filter(|method| is_contender(method)) {
        families.entry(&method.family).or_default().push(method);
    }
    let reached = |methods: &[&SweepMethod]| -> BySeed {
        let mut points: BTreeMap<u64, Vec<Point>> = BTreeMap::new();
        for method in methods {
            for (seed, found) in figures.method(phase, &method.name).into_iter().flatten() {
                points.entry(*seed).or_default().extend(point(kind, found));
            }
        }
        points.into_iter().map(|(seed, points)| (seed, pareto::hypervolume(&points, reference))).collect()
    };
    let all: BTreeMap<&str, BySeed> =
        families.iter().map(|(family, methods)| (*family, reached(methods))).collect();
    let own = candidate.and_then(|method| all.get(method.family.as_str()));
    let volume = |(family, seeds): (&&str, &BySeed)| {
        let values: Vec<f64> = seeds.values().copied().collect();
        let is_own = candidate.is_some_and(|method| method.family == **family);
        Some(FamilyVolume {
            family: (**family).to_owned(),
            settings: u32::try_from(families.get(*family).map_or(0, Vec::len)).unwrap_or(u32::MAX),
            volume: estimate(&values)?,
            candidate_less_this: own.filter(|_| !is_own).and_then(|own| less(own, seeds)),
        })
    };
    let mut found: Vec<FamilyVolume> = all.iter().filter_map(volume).collect();
    found.sort_by(|a, b| b.volume.median.total_cmp(&a.volume.median));
    found
}

fn less(own: &BySeed, other: &BySeed) -> Option<Estimate> {
    let pairs: Vec<f64> = own.iter().filter_map(|(seed, volume)| Some(volume - other.get(seed)?)).collect();
    estimate(&pairs)
}

/// Parts that were drawn over time.
fn series(plan: &SweepPlan, parts: &[SweepPart]) -> Vec<MethodSeries> {
    let drawn = parts.iter().filter(|part| part.phases.iter().any(|phase| !phase.intervals.is_empty()));
    let lengths: Vec<u64> = plan.phases.iter().map(|phase| phase.length_ns).collect();
    drawn
        .map(|part| {
            let mut origin_ns = 0;
            let mut points = Vec::new();
            for (index, phase) in part.phases.iter().enumerate() {
                let begin_ns = phase.intervals.first().map_or(0, |first| first.start_ns);
                points.extend(
                    phase.intervals.iter().map(|it| series_point(&phase.name, origin_ns, begin_ns, it)),
                );
                let measured_ns = phase.intervals.iter().map(|it| it.elapsed_ns).sum();
                origin_ns += lengths.get(index).copied().filter(|length| *length > 0).unwrap_or(measured_ns);
            }
            MethodSeries { method: part.method.clone(), seed: part.seed, points }
        })
        .collect()
}

/// Intervals count from the first one of their phase, whichever origin the measurement had.
fn series_point(phase: &str, origin_ns: u64, begin_ns: u64, interval: &WaitingInterval) -> SeriesPoint {
    let operations = interval.operations.max(1) as f64;
    let elapsed = interval.elapsed_ns.max(1) as f64;
    SeriesPoint {
        phase: phase.to_owned(),
        start_ns: origin_ns + interval.start_ns.saturating_sub(begin_ns),
        elapsed_ns: interval.elapsed_ns,
        iops: interval.operations as f64 * 1e9 / elapsed,
        miss_rate: interval.misses as f64 / operations,
        cpu_share: interval.cpu_ns as f64 / elapsed,
        sleep_effective_us: interval.sleep_requested_ns as f64 / operations / 1e3,
    }
}

/// Methods that have failed parts and no other.
fn missing(plan: &SweepPlan, parts: &[SweepPart]) -> Vec<MissingMethod> {
    let of = |method: &SweepMethod| {
        let mut own = parts.iter().filter(|part| part.method == method.name).peekable();
        own.peek()?;
        let reasons: Option<Vec<&String>> = own.map(|part| part.failure.as_ref()).collect();
        Some(MissingMethod { name: method.name.clone(), reason: (*reasons?.first()?).clone() })
    };
    plan.methods.iter().filter_map(of).collect()
}

/// The kernel's default fed with what a thread sees, beside the same fed with what the device took.
pub fn feeding(plan: &SweepPlan, parts: &[SweepPart]) -> Vec<Feeding> {
    let figures = Figures::of(parts);
    let of =
        |phase: &str| {
            let pair = [CLASSIC, CLASSIC_TRUE];
            Some(Feeding {
                phase: phase.to_owned(),
                observed: medians(figures.method(phase, CLASSIC)?),
                true_times: medians(figures.method(phase, CLASSIC_TRUE)?),
                misses: estimate(
                    &figures.pairs(phase, pair, |seen, known| Some(seen.miss_rate - known.miss_rate)),
                )?,
                sleep_effective_us: estimate(&figures.pairs(phase, pair, |seen, known| {
                    Some(seen.sleep_effective_us - known.sleep_effective_us)
                }))?,
            })
        };
    plan.phases.iter().filter_map(|phase| of(&phase.name)).collect()
}

#[cfg(test)]
mod tests {
    use weir_record::sweep::{PartPhase, SweepPhase};

    use super::*;
    use crate::sweep::methods::POLL;

    fn plan() -> SweepPlan {
        let method = |name: &str, family: &str, role| SweepMethod {
            name: name.into(),
            predictor: name.into(),
            family: family.into(),
            role,
            ..SweepMethod::default()
        };
        SweepPlan {
            phases: vec![SweepPhase { name: "Job1".into(), length_ns: 2_000, ..SweepPhase::default() }],
            seeds: (101..=120).collect(),
            methods: vec![
                method("ours", "ours", MethodRole::Candidate),
                method("ours:2", "ours", MethodRole::Variant),
                method(CLASSIC, "linux-mean", MethodRole::Ratio),
                method(POLL, POLL, MethodRole::Baseline),
                method(INTERRUPT, INTERRUPT, MethodRole::Baseline),
                method(CLAIRVOYANT, "oracle", MethodRole::Oracle),
                method("broken", "broken", MethodRole::Rival),
            ],
            ..SweepPlan::default()
        }
    }

    fn parts() -> Vec<SweepPart> {
        let values = [
            ("ours", 0.01, 0.40, 2.0),
            ("ours:2", 0.20, 0.20, 4.0),
            (CLASSIC, 0.30, 0.55, 50.0),
            (POLL, 0.0, 1.0, 0.1),
            (INTERRUPT, 0.0, 0.30, 2.0),
            (CLAIRVOYANT, 0.0, 0.15, 0.1),
        ];
        let part = |seed: u64, (method, miss_rate, cpu_share, added): &(&str, f64, f64, f64)| {
            let found = WaitingFigures {
                operations: 1,
                iops: 1.0,
                miss_rate: *miss_rate,
                cpu_share: *cpu_share,
                added_p99_us: Some(*added),
                ..WaitingFigures::default()
            };
            let interval = WaitingInterval {
                start_ns: 500,
                elapsed_ns: 1_000,
                operations: 4,
                misses: 1,
                ..Default::default()
            };
            let intervals = if *method == CLASSIC && seed == 101 { vec![interval] } else { Vec::new() };
            let phases = vec![PartPhase { name: "Job1".into(), figures: Some(found), intervals }];
            SweepPart { method: (*method).into(), seed, phases, failure: None }
        };
        let mut parts: Vec<SweepPart> =
            (101..=120).flat_map(|seed| values.iter().map(move |value| part(seed, value))).collect();
        parts.push(SweepPart {
            method: "broken".into(),
            seed: 101,
            failure: Some("no".into()),
            ..SweepPart::default()
        });
        parts
    }

    #[test]
    fn planes_say_who_is_ahead_and_leave_oracles_out() {
        let result = judge(&plan(), &parts());
        let miss = &result.phases[0].planes[0];
        assert_eq!(miss.kind, PlaneKind::Miss);
        // Busy polling has the interrupt's misses and more CPU.
        assert_eq!(miss.ahead, ["ours:2", INTERRUPT]);
        let added = &result.phases[0].planes[1];
        assert_eq!(added.reference, (10.0, 1.0));
        assert_eq!(added.ahead, ["ours:2", POLL, INTERRUPT]);
    }

    #[test]
    fn volumes_are_of_families_with_all_their_settings() {
        let result = judge(&plan(), &parts());
        let miss = &result.phases[0].planes[0];
        let family = |name: &str| miss.volumes.iter().find(|it| it.family == name).unwrap();
        assert!((family(INTERRUPT).volume.median - 0.70).abs() < 1e-9);
        // 0.99 wide and 0.6 high, then 0.8 wide and 0.2 high.
        let ours = family("ours");
        assert!((ours.volume.median - (0.99 * 0.6 + 0.8 * 0.2)).abs() < 1e-9);
        assert_eq!((ours.settings, ours.candidate_less_this), (2, None));
        let less = family("linux-mean").candidate_less_this.unwrap();
        assert!((less.median - (0.754 - 0.7 * 0.45)).abs() < 1e-9);
        assert_eq!(miss.volumes[0].family, "ours");
        assert!(!miss.volumes.iter().any(|it| it.family == "oracle" || it.family == "broken"));
    }

    #[test]
    fn what_failed_is_named_and_makes_the_sweep_incomplete() {
        let result = judge(&plan(), &parts());
        assert!(!result.complete);
        assert_eq!((result.parts_done, result.missing[0].name.as_str()), (120, "broken"));
        assert_eq!(result.candidate.as_deref(), Some("ours"));
        assert_eq!(result.frontier.len(), 1);
    }

    #[test]
    fn a_part_without_one_of_its_phases_is_not_done() {
        let phase = |name: &str| SweepPhase { name: name.into(), ..SweepPhase::default() };
        let of_part = |name: &str| PartPhase { name: name.into(), ..PartPhase::default() };
        let plan = SweepPlan {
            phases: vec![phase("Job1"), phase("Job2")],
            seeds: vec![1, 2],
            methods: vec![SweepMethod { name: POLL.into(), ..SweepMethod::default() }],
            ..SweepPlan::default()
        };
        let part = |seed, phases| SweepPart { method: POLL.into(), seed, phases, failure: None };
        let both = || vec![of_part("Job1"), of_part("Job2")];
        let whole = judge(&plan, &[part(1, both()), part(2, both())]);
        assert_eq!((whole.complete, whole.parts_done), (true, 2));
        for phases in [vec![of_part("Job1")], vec![of_part("Job2")], Vec::new()] {
            let lacking = judge(&plan, &[part(1, both()), part(2, phases)]);
            assert_eq!((lacking.complete, lacking.parts_done), (false, 1));
        }
    }

    #[test]
    fn series_begin_at_the_first_phase_whatever_the_clock_said() {
        let result = judge(&plan(), &parts());
        let [series] = result.series.as_slice() else { panic!("one series") };
        assert_eq!((series.points[0].start_ns, series.points[0].miss_rate), (0, 0.25));
        assert!((series.points[0].iops - 4e6).abs() < 1e-3);
    }

    #[test]
    fn distances_are_to_the_oracles_that_were_tried() {
        let result = judge(&plan(), &parts());
        let ours = result.phases[0].planes[0].distances.iter().find(|it| it.method == "ours").unwrap();
        assert!((ours.clairvoyant.unwrap() - 0.01_f64.hypot(0.25)).abs() < 1e-9);
        assert_eq!(ours.constant, None);
    }
}
