//! Ways to wait in the plane of misses and CPU. Pure.
//!
//! Every cell whose arms have both figures gets a frontier. If the two are claims, the standing of arms follows only
//! from their verdicts.

use std::collections::BTreeSet;

use weir_record::{
    effect::{Effect, Effects},
    frontier::{FrontierAnswer, FrontierRow, Standing},
    metric::Metric,
    spec::{CellRole, CellSpec, StudySpec, Subject},
    study::ArmSummary,
    verdict::Verdict,
};

/// Suffix of a family with armed sleeps, and of one with true times.
const ARMED: &str = " armed";
const TRUE_TIMES: &str = " true-times";

/// The arms of every cell that has a frontier, in the order of the plan.
pub(crate) fn rows(spec: &StudySpec, arms: &[ArmSummary], effects: &Effects) -> Vec<FrontierRow> {
    let mut rows = Vec::new();
    for cell in spec.cells.iter().filter(|cell| asks_how_to_wait(spec, cell)) {
        let of_cell: Vec<Point<'_>> = spec
            .arms
            .iter()
            .filter_map(|arm| {
                let summary = arms.iter().find(|it| it.cell_id == cell.id && it.arm == arm.name)?;
                Point::of(&arm.name, &arm.subject, summary)
            })
            .collect();
        if of_cell.len() < 2 {
            continue;
        }
        rows.extend(of_cell.iter().map(|point| FrontierRow {
            cell_id: cell.id.clone(),
            arm: point.arm.to_owned(),
            family: point.family.clone(),
            is_oracle: point.is_oracle,
            is_on_frontier: !of_cell.iter().any(|other| other.is_ahead_of(point)),
            standing: standing(effects, &cell.id, (point.arm, &spec.arms[0].name)),
        }));
    }
    rows
}

/// Whether some arm of the cell does not wait for its interrupt; otherwise there are no misses.
fn asks_how_to_wait(spec: &StudySpec, cell: &CellSpec) -> bool {
    let waits_otherwise = |subject: &Subject| match subject {
        Subject::Storage(storage) => storage.completion.predictor != "interrupt",
        _ => false,
    };
    spec.arms.iter().any(|arm| cell.has_arm(&arm.name) && waits_otherwise(&arm.subject))
}

/// An arm in the plane.
struct Point<'a> {
    arm: &'a str,
    family: String,
    is_oracle: bool,
    miss_rate: f64,
    cpu_share: f64,
}

impl<'a> Point<'a> {
    fn of(arm: &'a str, subject: &Subject, summary: &ArmSummary) -> Option<Self> {
        let Subject::Storage(storage) = subject else { return None };
        let wait = &storage.completion;
        // A numeric suffix is a parameter; another suffix is another way to wait.
        let is_number = |rest: &str| rest.starts_with(|first: char| first.is_ascii_digit());
        let family = match wait.predictor.split_once(':') {
            Some((family, rest)) if is_number(rest) => family,
            _ => &wait.predictor,
        };
        let armed = if wait.armed { ARMED } else { "" };
        let true_times = if wait.true_times { TRUE_TIMES } else { "" };
        Some(Self {
            arm,
            family: format!("{family}{armed}{true_times}"),
            is_oracle: matches!(family, "clairvoyant" | "constant") || wait.true_times,
            miss_rate: summary.mean(Metric::MissRate)?,
            cpu_share: summary.mean(Metric::WaitingCpuShare)?,
        })
    }

    fn is_ahead_of(&self, other: &Self) -> bool {
        let is_no_worse = self.miss_rate <= other.miss_rate && self.cpu_share <= other.cpu_share;
        let is_better = self.miss_rate < other.miss_rate || self.cpu_share < other.cpu_share;
        !self.is_oracle && is_no_worse && is_better
    }
}

fn standing(effects: &Effects, cell_id: &str, (arm, candidate): (&str, &str)) -> Option<Standing> {
    let verdict = |metric: Metric| {
        let found = effects.comparison(cell_id, (arm, candidate), metric);
        found.map(|it| it.verdict).filter(|it| *it != Verdict::NoClaim)
    };
    let both = [verdict(Metric::MissRate)?, verdict(Metric::WaitingCpuShare)?];
    let has = |verdict: Verdict| both.contains(&verdict);
    let is_decided = |it: &Verdict| matches!(it, Verdict::Better | Verdict::Worse | Verdict::Equivalent);
    Some(match (has(Verdict::Better), has(Verdict::Worse)) {
        _ if !both.iter().all(is_decided) => Standing::Open,
        (true, true) => Standing::TradeOff,
        (true, false) => Standing::Ahead,
        (false, true) => Standing::Behind,
        (false, false) => Standing::Level,
    })
}

/// The frontier's answers about the family of the study's second arm, the primary cell first.
pub(crate) fn answers(spec: &StudySpec, arms: &[ArmSummary], rows: &[FrontierRow]) -> Vec<FrontierAnswer> {
    let Some(second) = spec.arms.get(1) else { return Vec::new() };
    let Some(family) = rows.iter().find(|row| row.arm == second.name).map(|row| &row.family) else {
        return Vec::new();
    };
    let mut cells: Vec<_> = spec.cells.iter().filter(|cell| cell.role != CellRole::Exploratory).collect();
    cells.sort_by_key(|cell| cell.role != CellRole::Primary);
    let interrupted = |cell_id: &str| {
        let candidate = arms.iter().find(|it| it.cell_id == cell_id && it.arm == spec.arms[0].name);
        candidate.and_then(|it| it.mean(Metric::InterruptedRate)).unwrap_or(0.0)
    };
    let answer = |cell_id: &str| {
        let own: Vec<(&str, Standing)> = rows
            .iter()
            .filter(|row| row.cell_id == cell_id && row.family == *family)
            .filter_map(|row| Some((row.arm.as_str(), row.standing?)))
            .collect();
        let count = |standing: Standing| {
            u32::try_from(own.iter().filter(|(_, it)| *it == standing).count()).unwrap_or(u32::MAX)
        };
        let is_other = |it: Standing| !matches!(it, Standing::Behind | Standing::Ahead);
        (!own.is_empty()).then(|| FrontierAnswer {
            cell_id: cell_id.to_owned(),
            candidate: spec.arms[0].name.clone(),
            family: family.clone(),
            settings: u32::try_from(own.len()).unwrap_or(u32::MAX),
            behind: count(Standing::Behind),
            ahead: count(Standing::Ahead),
            others: own
                .iter()
                .filter(|(_, it)| is_other(*it))
                .map(|(arm, it)| ((*arm).to_owned(), *it))
                .collect(),
            interrupted: interrupted(cell_id),
        })
    };
    cells.into_iter().filter_map(|cell| answer(&cell.id)).collect()
}

/// The verdict of a study: that of its primary comparison, or of the frontier in that cell, if there is one.
pub(crate) fn verdict_of(primary: Option<&Effect>, answers: &[FrontierAnswer]) -> Verdict {
    let Some(primary) = primary else { return Verdict::NotComparable };
    let answer = answers.iter().find(|it| it.cell_id == primary.cell_id);
    answer.map_or(primary.verdict, verdict)
}

/// The verdict of a study whose primary result is a frontier: the candidate is ahead of the whole family, or one of
/// its arms is ahead of the candidate, or none differs. If the candidate leaves the wait to the interrupt, nothing
/// can be said about predictions.
fn verdict(answer: &FrontierAnswer) -> Verdict {
    if answer.is_of_interrupts() {
        return Verdict::NotComparable;
    }
    let standings: BTreeSet<bool> = answer.others.iter().map(|(_, it)| *it == Standing::Level).collect();
    match (answer.behind, answer.ahead) {
        (behind, _) if behind == answer.settings => Verdict::Better,
        (_, ahead) if ahead > 0 => Verdict::Worse,
        (0, 0) if standings == BTreeSet::from([true]) => Verdict::Equivalent,
        _ => Verdict::Inconclusive,
    }
}

#[cfg(test)]
mod tests {
    use weir_record::{
        spec::{StorageCell, StorageSubject},
        storage::{AccessPattern, StorageDevice},
        study::MetricFigures,
    };

    use super::*;
    use crate::sample;

    /// Arms with their misses and CPU, and the verdicts on these against the first.
    type Arm<'a> = (&'a str, f64, f64, Option<[Verdict; 2]>);

    fn comparison((arm, baseline): (&str, &str), metric: Metric, verdict: Verdict) -> Effect {
        Effect {
            cell_id: "model".to_owned(),
            arm: arm.to_owned(),
            baseline: baseline.to_owned(),
            metric,
            units: 12,
            verdict,
            ..Effect::default()
        }
    }

    fn judged(arms: &[Arm<'_>]) -> (StudySpec, Vec<FrontierRow>) {
        let names: Vec<&str> = arms.iter().map(|(name, ..)| *name).collect();
        let mut spec = sample::study(&names, 12, 1);
        let cell = CellSpec {
            id: "model".to_owned(),
            storage: Some(StorageCell {
                device: StorageDevice::Model,
                pattern: AccessPattern::RandRead,
                engine: None,
                background_depth: 0,
                background_cores: 1,
                core_steps: Vec::new(),
                file_bytes: 1 << 30,
                file: None,
            }),
            ..spec.cells[0].clone()
        };
        spec.cells = vec![cell];
        for arm in &mut spec.arms {
            let mut subject = StorageSubject::default();
            arm.name.trim_end_matches("-again").clone_into(&mut subject.completion.predictor);
            arm.subject = Subject::Storage(subject);
        }
        let figures =
            |metric: Metric, figure: f64| MetricFigures::of(metric, vec![figure]).expect("there is a unit");
        let summaries: Vec<ArmSummary> = arms
            .iter()
            .map(|(name, misses, cpu, _)| ArmSummary {
                cell_id: "model".to_owned(),
                arm: (*name).to_owned(),
                trials: 12,
                figures: vec![figures(Metric::MissRate, *misses), figures(Metric::WaitingCpuShare, *cpu)],
                ..ArmSummary::default()
            })
            .collect();
        let mut comparisons = Vec::new();
        for (name, .., verdicts) in arms {
            let metrics = [Metric::MissRate, Metric::WaitingCpuShare];
            for (metric, verdict) in metrics.into_iter().zip(verdicts.iter().flatten()) {
                comparisons.push(comparison((name, arms[0].0), metric, *verdict));
            }
        }
        let rows = rows(&spec, &summaries, &Effects { rows: comparisons });
        (spec, rows)
    }

    #[test]
    fn a_cell_in_which_all_wait_for_their_interrupts_has_no_frontier() {
        let rows = |other| judged(&[("interrupt", 0.0, 0.03, None), (other, 0.3, 0.5, None)]).1.len();
        assert_eq!((rows("interrupt-again"), rows("linux-mean:0.5")), (0, 2));
    }

    #[test]
    fn ahead_is_who_has_less_of_one_and_no_more_of_the_other() {
        use Verdict::{Better, Equivalent, Inconclusive, Worse};
        let (spec, rows) = judged(&[
            ("regime", 0.003, 0.03, None),
            ("linux-mean:0.5", 0.34, 0.55, Some([Worse, Worse])),
            ("linux-mean:0.03", 0.0, 0.97, Some([Equivalent, Worse])),
            ("linux-mean:0.2", 0.0, 0.02, Some([Better, Inconclusive])),
            ("linux-mean:0.1", 0.0, 0.97, Some([Better, Worse])),
            ("clairvoyant", 0.0, 0.01, Some([Equivalent, Better])),
        ]);
        let standings: Vec<Option<Standing>> = rows.iter().map(|row| row.standing).collect();
        let expected = [
            None,
            Some(Standing::Behind),
            Some(Standing::Behind),
            Some(Standing::Open),
            Some(Standing::TradeOff),
            Some(Standing::Ahead),
        ];
        assert_eq!(standings, expected);
        let on_frontier: Vec<&str> =
            rows.iter().filter(|row| row.is_on_frontier).map(|row| row.arm.as_str()).collect();
        assert_eq!(on_frontier, ["linux-mean:0.2", "clairvoyant"], "an oracle takes nobody's place");
        let answers = answers(&spec, &[], &rows);
        let [answer] = &answers[..] else { panic!("one cell: {answers:?}") };
        assert_eq!((answer.settings, answer.behind, answer.ahead), (4, 2, 0));
        let others = [
            ("linux-mean:0.2".to_owned(), Standing::Open),
            ("linux-mean:0.1".to_owned(), Standing::TradeOff),
        ];
        assert_eq!(answer.others, others);
        assert_eq!(verdict(answer), Verdict::Inconclusive);
    }

    #[test]
    fn the_verdict_is_on_the_whole_family() {
        let answer = |settings, behind, ahead, others: &[Standing]| {
            verdict(&FrontierAnswer {
                cell_id: "model".to_owned(),
                candidate: "regime".to_owned(),
                family: "linux-mean".to_owned(),
                settings,
                behind,
                ahead,
                others: others.iter().map(|it| ("a".to_owned(), *it)).collect(),
                interrupted: 0.49,
            })
        };
        assert_eq!(answer(7, 7, 0, &[]), Verdict::Better);
        assert_eq!(answer(7, 6, 1, &[]), Verdict::Worse);
        assert_eq!(answer(2, 0, 0, &[Standing::Level; 2]), Verdict::Equivalent);
        assert_eq!(answer(2, 1, 0, &[Standing::Level]), Verdict::Inconclusive);
        assert_eq!(answer(1, 0, 0, &[Standing::Open]), Verdict::Inconclusive);
    }

    #[test]
    fn a_candidate_that_leaves_the_wait_to_the_interrupt_is_ahead_of_no_prediction() {
        use Verdict::Worse;
        let (spec, rows) =
            judged(&[("regime", 0.0, 0.03, None), ("linux-mean:0.5", 0.34, 0.55, Some([Worse, Worse]))]);
        let verdict_at = |share: f64| {
            let arm = ArmSummary {
                cell_id: "model".to_owned(),
                arm: "regime".to_owned(),
                figures: MetricFigures::of(Metric::InterruptedRate, vec![share]).into_iter().collect(),
                ..ArmSummary::default()
            };
            let answers = answers(&spec, &[arm], &rows);
            assert_eq!((answers[0].interrupted, answers[0].behind), (share, 1));
            verdict(&answers[0])
        };
        assert_eq!(verdict_at(1.0), Verdict::NotComparable);
        assert_eq!(verdict_at(0.5), Verdict::NotComparable);
        assert_eq!(verdict_at(0.02), Verdict::Better);
    }
}
