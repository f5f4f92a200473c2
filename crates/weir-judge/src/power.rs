//! The expected sensitivity of a schedule before it runs, from earlier rounds of the same cells on a similar machine.
//! Pure; without such rounds there is no expectation.

use weir_record::{
    effect::{Effect, Effects},
    finding::{Finding, RoundComponents},
    machine::Fingerprint,
    metric::Metric,
    spec::{ArmSpec, CellRole, CellSpec, StudySpec},
    study::StudyResult,
};
use weir_stats::decide::expected_detectable;

/// The expected sensitivity of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// Cell.
    pub cell_id: String,
    /// Arm.
    pub arm: String,
    /// The baseline of the comparison.
    pub baseline: String,
    /// Planned rounds or blocks.
    pub units: u32,
    /// The expectation; `None` without earlier rounds.
    pub found: Option<Found>,
}

/// The smallest effect that a comparison finds in four studies of five, and its basis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// The effect on server CPU per message, as a ratio less one, for a single claim.
    pub detectable: f64,
    /// Earlier rounds or blocks.
    pub earlier: u32,
    /// Whether they compare the baseline with itself, not with this arm.
    pub is_self: bool,
}

/// Whether rounds of one machine apply to another: the same kind and number of CPUs.
pub fn is_alike(one: &Fingerprint, other: &Fingerprint) -> bool {
    let key = |it: &Fingerprint| (it.architecture.clone(), it.cpu_model.clone(), it.cpus_online);
    key(one) == key(other)
}

/// Whether rounds of one cell apply to another: the same load, measured for the same time in the same way.
pub fn is_same_cell(one: &CellSpec, other: &CellSpec) -> bool {
    let turns = |cell: &CellSpec| cell.alternation.map(|it| (it.slice_ns, it.permutations));
    (&one.id, one.window_ns, turns(one)) == (&other.id, other.window_ns, turns(other))
}

/// Whether an arm with this name is the same in both: its program, and its load. Two programs may share a name.
fn is_same_arm(one: &StudySpec, other: &StudySpec, name: &str) -> bool {
    let of = |spec: &StudySpec| {
        let arm = spec.arms.iter().find(|arm| arm.name == name)?;
        Some((arm.subject.clone(), arm.load_options.clone(), arm.start.clone()))
    };
    of(one).is_some_and(|arm| of(other) == Some(arm))
}

/// The expected sensitivity of each claim on server CPU, the primary cell first. Every earlier run is one set: the
/// arms' own rounds if there are any, otherwise the baseline compared with itself.
pub fn expected(spec: &StudySpec, earlier: &[StudyResult]) -> Vec<Expected> {
    let mut cells: Vec<&CellSpec> =
        spec.cells.iter().filter(|cell| cell.role != CellRole::Exploratory && !cell.is_simulated()).collect();
    cells.sort_by_key(|cell| cell.role != CellRole::Primary);
    let one = |cell: &CellSpec, arm: &ArmSpec| {
        let baseline = spec.baseline_of(arm);
        let is_own = |run: &StudyResult, it: &Effect| {
            it.arm == arm.name
                && it.baseline == baseline
                && is_same_arm(spec, &run.spec, &arm.name)
                && is_same_arm(spec, &run.spec, baseline)
        };
        let own = sets(cell, earlier, is_own, |_, it| Some(it));
        let is_self = own.is_empty();
        let first = &spec.arms[0].name;
        let is_first =
            |run: &StudyResult, it: &Effect| it.baseline == *first && is_same_arm(spec, &run.spec, first);
        let sets = if is_self { sets(cell, earlier, is_first, Effects::itself) } else { own };
        let count: usize = sets.iter().map(Vec::len).sum();
        let found = expected_detectable(&sets, cell.blocks).map(|log| Found {
            detectable: log.exp_m1(),
            earlier: u32::try_from(count).unwrap_or(u32::MAX),
            is_self,
        });
        let (arm, baseline) = (arm.name.clone(), baseline.to_owned());
        Expected { cell_id: cell.id.clone(), arm, baseline, units: cell.blocks, found }
    };
    let of_cell = |cell: &CellSpec| {
        let arms = spec.arms.iter().skip(1).filter(|arm| cell.has_arm(&arm.name));
        arms.map(|arm| one(cell, arm)).collect::<Vec<_>>()
    };
    cells.into_iter().flat_map(of_cell).collect()
}

/// Variance components of earlier rounds of the primary cell, and the best allocation in the same time: for each arm
/// from the first run that has it.
pub fn components(spec: &StudySpec, earlier: &[StudyResult]) -> Vec<RoundComponents> {
    let primary = |spec: &StudySpec| spec.cells.iter().find(|cell| cell.role == CellRole::Primary).cloned();
    let Some(cell) = primary(spec) else { return Vec::new() };
    let is_same = |run: &&StudyResult| primary(&run.spec).is_some_and(|own| is_same_cell(&own, &cell));
    let of_run = |run: &StudyResult| {
        let found = run.checks.iter().find_map(|check| match &check.detail {
            Finding::RoundComponents { arms } => Some(arms.clone()),
            _ => None,
        });
        found.unwrap_or_default()
    };
    let components: Vec<RoundComponents> = earlier.iter().filter(is_same).flat_map(of_run).collect();
    let of_arm = |arm: &ArmSpec| components.iter().find(|it| it.arm == arm.name).cloned();
    spec.arms.iter().filter(|arm| cell.has_arm(&arm.name)).filter_map(of_arm).collect()
}

/// Logarithms of earlier runs, one set for each that has the cell: from the first matching comparison.
fn sets(
    cell: &CellSpec,
    earlier: &[StudyResult],
    is_meant: impl Fn(&StudyResult, &Effect) -> bool,
    row_of: for<'r> fn(&'r Effects, &'r Effect) -> Option<&'r Effect>,
) -> Vec<Vec<f64>> {
    let of_run = |run: &StudyResult| {
        run.spec.cells.iter().find(|own| is_same_cell(own, cell))?;
        let is_own = |it: &&Effect| {
            it.cell_id == cell.id && it.metric == Metric::ServerCpuPerMessage && is_meant(run, it)
        };
        let found = run.effects.comparisons().find(is_own)?;
        Some(row_of(&run.effects, found)?.values.clone()).filter(|values| values.len() > 1)
    };
    earlier.iter().filter_map(of_run).collect()
}

#[cfg(test)]
mod tests {
    use weir_record::{
        check::{Check, CheckName},
        spec::{LoadMode, Subject},
        trial::TrialRecord,
    };

    use super::*;
    use crate::{judge, sample};

    fn trial(spec: &StudySpec, place: usize, (block, is_again): (u32, bool), cpu_us: f64) -> TrialRecord {
        let (cell, arm) = (&spec.cells[0].id, &spec.arms[place].name);
        TrialRecord { repeat: is_again, ..sample::trial(cell, arm, block, cpu_us) }
    }

    /// A run whose arm scatters by this much per block; the baseline's two trials by a fixed one per cent.
    fn run(arms: &[&str], scatter: f64) -> StudyResult {
        let spec = sample::study(arms, 12, 3);
        let of_block = |block: u32| {
            let own = f64::from(block * 5 % 12) / 12.0 - 0.5;
            let other = f64::from(block * 7 % 12) / 12.0 - 0.5;
            [
                trial(&spec, 0, (block, false), 10.0 * (1.0 + 0.005 * other)),
                trial(&spec, 0, (block, true), 10.0 * (1.0 - 0.005 * other)),
                trial(&spec, 1, (block, false), 8.0 * (1.0 + scatter * own)),
            ]
        };
        judge::judged(&spec, &(0..12).flat_map(of_block).collect::<Vec<_>>())
    }

    fn found(arms: &[&str], blocks: u32, earlier: &[StudyResult]) -> Option<Found> {
        let expected = expected(&sample::study(arms, blocks, 9), earlier);
        let [only] = &expected[..] else { panic!("{expected:?}") };
        assert_eq!((only.units, only.baseline.as_str()), (blocks, arms[0]));
        only.found
    }

    #[test]
    fn the_rounds_of_the_same_arms_tell_what_more_of_them_will_find() {
        let arms = ["epoll", "uring"];
        let earlier = [run(&arms, 0.02)];
        let own = earlier[0].effects.comparisons().find(|it| it.metric == Metric::ServerCpuPerMessage);
        let detectable = own.and_then(|it| it.detectable).expect("it was measured");
        let again = found(&arms, 12, &earlier).expect("there are rounds");
        assert!((again.detectable - detectable).abs() < 1e-9, "{again:?} {detectable}");
        assert_eq!((again.earlier, again.is_self), (12, false));
        let more = found(&arms, 48, &earlier).expect("there are rounds");
        assert!(more.detectable < 0.5 * detectable, "{more:?}");
        let noisier = found(&arms, 12, &[run(&arms, 0.02), run(&arms, 0.08)]).expect("there are rounds");
        assert!(noisier.detectable > detectable && noisier.earlier == 24);
    }

    #[test]
    fn another_arm_has_the_baseline_against_itself_and_another_cell_nothing() {
        let earlier = [run(&["epoll", "uring"], 0.2)];
        let other = found(&["epoll", "poll"], 12, &earlier).expect("the baseline ran twice");
        assert!(other.is_self && other.detectable < 0.03, "{other:?}");
        assert_eq!(found(&["poll", "uring"], 12, &earlier), None, "no other baseline stands in for one");
        assert_eq!(found(&["epoll", "uring"], 12, &[]), None);
        let mut longer = run(&["epoll", "uring"], 0.02);
        longer.spec.cells[0].window_ns *= 2;
        assert_eq!(found(&["epoll", "uring"], 12, &[longer]), None, "windows of another length");
    }

    #[test]
    fn the_newest_run_of_the_primary_cell_tells_what_rounds_scatter_by() {
        let run_with = |permutations_best: u32, arms: &[&str]| {
            let mut run = run(arms, 0.02);
            let of_arm = |arm: &&str| RoundComponents {
                arm: (*arm).to_owned(),
                within: 0.01,
                between: 0.02,
                permutations: 8,
                rounds: 44,
                permutations_best,
                rounds_best: 60,
            };
            let arms = arms.iter().skip(1).map(of_arm).collect();
            let detail = Finding::RoundComponents { arms };
            run.checks = vec![Check { name: CheckName::RoundComponents, passed: true, detail }];
            run
        };
        let spec = sample::study(&["epoll", "uring", "poll"], 12, 1);
        let mut other = run_with(9, &["epoll", "poll"]);
        other.spec.cells[0].window_ns *= 2;
        let earlier = [other, run_with(3, &["epoll", "uring"]), run_with(5, &["epoll", "uring", "poll"])];
        let found = components(&spec, &earlier);
        let found: Vec<(&str, u32)> =
            found.iter().map(|it| (it.arm.as_str(), it.permutations_best)).collect();
        assert_eq!(found, [("uring", 3), ("poll", 5)]);
        assert_eq!(components(&spec, &[run(&["epoll", "uring"], 0.02)]), []);
    }

    #[test]
    fn another_program_of_the_same_name_is_not_the_same_arm() {
        let arms = ["epoll", "uring"];
        let other = |place: usize| {
            let mut run = run(&arms, 0.2);
            run.spec.arms[place].subject = Subject::Command { argv: vec!["./mine".to_owned()] };
            run
        };
        let self_alone = found(&arms, 12, &[other(1)]).expect("the baseline is the same");
        assert!(self_alone.is_self, "{self_alone:?}");
        assert_eq!(found(&arms, 12, &[other(0)]), None, "nothing is known of another baseline");
        let mut loaded = run(&arms, 0.2);
        loaded.spec.arms[1].load_options.insert("spin-us".to_owned(), "5".to_owned());
        assert!(found(&arms, 12, &[loaded]).is_some_and(|it| it.is_self));
    }

    #[test]
    fn only_what_claims_something_is_told_of() {
        let mut spec = sample::study(&["epoll", "uring", "poll"], 12, 1);
        let second = CellSpec { id: "c5".to_owned(), role: CellRole::Confirmatory, ..spec.cells[0].clone() };
        let third = CellSpec { id: "c6".to_owned(), role: CellRole::Exploratory, ..spec.cells[0].clone() };
        spec.cells.splice(0..0, [third, second]);
        spec.cells[1].load = LoadMode::Open { rate_per_second: 1.0, poisson: true, share: None };
        let told = expected(&spec, &[]);
        let cells: Vec<&str> = told.iter().map(|it| it.cell_id.as_str()).collect();
        assert_eq!(cells, ["c100-d1-m64-closed", "c100-d1-m64-closed", "c5", "c5"]);
        assert!(told.iter().all(|it| it.found.is_none()));
    }
}
