//! The rates of a claim, and which of them decides. Pure.
//!
//! The cost of a message depends on the rate: a busy server finds more messages at each poll. Arms that each run at
//! full speed run at different rates, so their ratio mixes the cost of a message with the effect of the rate. A claim
//! is therefore about one rate that every arm is offered. It is measured on three rungs, shares of the slowest arm's
//! capacity.
//!
//! The highest rung that every arm keeps decides. Only missed starts choose it; costs are never used. A rung is given
//! up once an arm has missed its rate there too often, and is not tried again: a machine that was quiet in the pilot
//! may be shared by now. The remaining rounds then go to the next lower rung.

use std::collections::BTreeMap;

use weir_record::{
    goal::ComparisonSpec,
    spec::{CellRole, CellSpec, EvidencePlan, StudySpec},
    trial::{SliceRecord, TrialRecord},
};

use crate::exclusion;

/// Smallest share of the starts intended in a slice that must be answered: below it, the slice missed its rate. A
/// slice of 50 ms may thus end with a backlog of 5 ms. The cost of a message changes by some 2 % if the rate changes
/// by a tenth, equally for every arm.
pub const SLICE_KEPT_SHARE_MIN: f64 = 0.9;

/// The same for a whole trial, which is longer and has one end.
pub const TRIAL_KEPT_SHARE_MIN: f64 = 0.98;

/// Share of its slices in which an arm must keep a rung.
pub const SLICES_KEPT_MIN: f64 = 0.95;

/// Slices of an arm after which a rung may be given up, or half of the planned ones if those are fewer: one missed
/// slice of a few is no reason.
const SLICES_SEEN_MIN: u64 = 40;

/// Up to this number of whole trials one may miss its rate, whatever its share.
const TRIALS_FEW: u64 = 20;

/// Slices after which it may be given up at once, if an arm missed it by far.
const SLICES_HOPELESS_MIN: u64 = 16;
const HOPELESS_SHARE: f64 = 0.8;

/// Share of a claim's rounds for each rung that only shows the curve. The deciding rung gets the rest: with three
/// rungs 60 %.
pub const CURVE_SHARE: f64 = 0.2;

/// Whether a slice kept its rate. A closed loop always does.
pub fn is_kept(slice: &SliceRecord) -> bool {
    let intended = slice.messages + slice.missed_starts + slice.errors;
    slice.messages as f64 >= SLICE_KEPT_SHARE_MIN * intended as f64
}

/// Whether a whole trial kept its rate.
pub(crate) fn is_trial_kept(trial: &TrialRecord) -> bool {
    trial.load.as_ref().is_some_and(|load| {
        let intended = (load.messages_started + load.missed_starts) as f64;
        load.messages as f64 >= TRIAL_KEPT_SHARE_MIN * intended
    })
}

/// How often an arm kept the rate of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Arm.
    pub arm: String,
    /// Slices, or whole trials, that kept it.
    pub kept: u64,
    /// All slices or trials.
    pub of: u64,
    is_of_slices: bool,
}

impl Kept {
    pub(crate) fn share(&self) -> f64 {
        self.kept as f64 / self.of as f64
    }

    /// Whether that is often enough.
    pub fn is_enough(&self) -> bool {
        let is_accident = !self.is_of_slices && self.of < TRIALS_FEW && self.of - self.kept <= 1;
        self.share() >= SLICES_KEPT_MIN || is_accident
    }

    /// Whether the arm has missed the rate of a cell too often to be chance.
    fn gives_up(&self, cell: &CellSpec) -> bool {
        let of_round = cell.alternation.map_or(1, |turns| u64::from(turns.permutations));
        let planned = of_round * u64::from(cell.blocks);
        let is_hopeless = self.of >= SLICES_HOPELESS_MIN && self.share() < HOPELESS_SHARE;
        !self.is_enough() && (is_hopeless || self.of >= SLICES_SEEN_MIN.min(planned.div_ceil(2)))
    }
}

/// How often each arm kept the rate of a cell. Runs without a report, and those excluded for noise, say nothing about
/// a rate.
pub fn kept<'t>(cell: &CellSpec, trials: impl Iterator<Item = &'t TrialRecord>) -> Vec<Kept> {
    let mut arms: BTreeMap<&str, Kept> = BTreeMap::new();
    let counts = |trial: &&TrialRecord| {
        trial.cell_id == cell.id && trial.load.is_some() && !trial.exclusions.iter().any(exclusion::is_noise)
    };
    for trial in trials.filter(counts) {
        let is_of_slices = !trial.slices.is_empty();
        let entry = arms.entry(&trial.arm).or_insert_with(|| Kept {
            arm: trial.arm.clone(),
            kept: 0,
            of: 0,
            is_of_slices,
        });
        let (kept, of) = match is_of_slices {
            true => (trial.slices.iter().filter(|slice| is_kept(slice)).count(), trial.slices.len()),
            false => (usize::from(is_trial_kept(trial)), 1),
        };
        entry.kept += kept as u64;
        entry.of += of as u64;
    }
    arms.into_values().collect()
}

/// The arm that kept the rate of a cell least often; `None` if none ran.
pub fn least_kept<'t>(cell: &CellSpec, trials: impl Iterator<Item = &'t TrialRecord>) -> Option<Kept> {
    kept(cell, trials).into_iter().min_by(|one, other| one.share().total_cmp(&other.share()))
}

/// The rungs of a study, the highest first.
fn rungs(spec: &StudySpec) -> Vec<usize> {
    let mut rungs: Vec<usize> = (0..spec.cells.len()).filter(|cell| spec.cells[*cell].is_rung).collect();
    let share = |cell: &usize| spec.cells[*cell].load.share().unwrap_or(0.0);
    rungs.sort_by(|one, other| share(other).total_cmp(&share(one)));
    rungs
}

/// The currently deciding rung, and those below it.
fn from_the_deciding(spec: &StudySpec) -> Vec<usize> {
    let is_above = |cell: &usize| spec.cells[*cell].role != CellRole::Primary;
    rungs(spec).into_iter().skip_while(is_above).collect()
}

/// The study with its claim at the rung that decides by these trials: the highest kept one, from the current one
/// downwards; the lowest if none is kept. `None` if that is the current one.
pub fn settled(spec: &StudySpec, trials: &[TrialRecord]) -> Option<StudySpec> {
    let ladder = from_the_deciding(spec);
    let is_held = |index: &&usize| {
        let cell = &spec.cells[**index];
        least_kept(cell, trials.iter()).is_none_or(|kept| !kept.gives_up(cell))
    };
    let (first, lowest) = (*ladder.first()?, *ladder.last()?);
    let found = ladder.iter().find(is_held).copied().unwrap_or(lowest);
    (found != first).then(|| with_claim_at(spec, first, found))
}

/// The study with its claim one rung lower, because an arm has missed the rate of the current one too often; the
/// remaining rounds move along, so that the deciding rung gets its share of all. `None` where the claim stays.
///
/// `done` returns the number of stored rounds of a cell.
pub fn descended<'t>(
    spec: &StudySpec,
    trials: impl Iterator<Item = &'t TrialRecord>,
    done: impl Fn(&CellSpec) -> u32,
) -> Option<StudySpec> {
    let [from, to, ..] = from_the_deciding(spec)[..] else { return None };
    least_kept(&spec.cells[from], trials).filter(|kept| kept.gives_up(&spec.cells[from]))?;
    let rungs = rungs(spec);
    let blocks = |spec: &StudySpec, but: usize| -> u32 {
        rungs.iter().filter(|rung| **rung != but).map(|rung| spec.cells[*rung].blocks).sum()
    };
    let all = blocks(spec, usize::MAX);
    let curve = rungs.iter().map(|rung| spec.cells[*rung].blocks).min().unwrap_or(0);
    let mut lower = with_claim_at(spec, from, to);
    lower.cells[from].blocks = done(&spec.cells[from]).max(curve);
    let others = blocks(&lower, to);
    let deciding_share = 1.0 - 2.0 * CURVE_SHARE;
    let wanted = (f64::from(others) * deciding_share / (1.0 - deciding_share)).ceil() as u32;
    lower.cells[to].blocks = all.saturating_sub(others).max(wanted);
    let evidence = lower.cells[from].alternation.as_mut().and_then(|turns| turns.evidence.take());
    if let (Some(turns), Some(evidence)) = (&mut lower.cells[to].alternation, evidence) {
        // All of its evidence comes from future rounds.
        turns.evidence = Some(EvidencePlan { after: done(&spec.cells[to]), ..evidence });
    }
    Some(lower)
}

/// The study with the claim and the questions of one rung moved to another.
fn with_claim_at(spec: &StudySpec, from: usize, to: usize) -> StudySpec {
    let mut moved = spec.clone();
    moved.cells[to].role = moved.cells[from].role;
    moved.cells[from].role = CellRole::Exploratory;
    let (old, new) = (spec.cells[from].id.clone(), spec.cells[to].id.clone());
    let follow = |id: &mut String| {
        if *id == old {
            id.clone_from(&new);
        }
    };
    for cause in &mut moved.causes {
        cause.cells.iter_mut().for_each(follow);
    }
    // Two rates that are compared with each other remain two.
    let is_of_both = |asked: &ComparisonSpec| {
        let sides = || std::iter::once(&asked.of).chain(&asked.to);
        sides().any(|side| side.cell_id == old) && sides().any(|side| side.cell_id == new)
    };
    for asked in moved.comparisons.iter_mut().filter(|asked| !is_of_both(asked)) {
        for side in std::iter::once(&mut asked.of).chain(&mut asked.to) {
            follow(&mut side.cell_id);
        }
    }
    for asked in &mut moved.added_costs {
        asked.cells.iter_mut().for_each(follow);
    }
    moved
}

#[cfg(test)]
mod tests {
    use weir_record::{
        cause::CauseSpec,
        load::LoadReport,
        metric::Metric,
        spec::{Alternation, LoadMode},
    };

    use super::*;
    use crate::sample;

    /// A study with its claim at the highest of three rungs: 18 rounds there, and 6 at each other.
    fn study() -> StudySpec {
        let mut spec = sample::study(&["epoll", "uring"], 8, 1);
        let shape = CellSpec { role: CellRole::Exploratory, ..spec.cells[0].clone() };
        let evidence =
            EvidencePlan { rounds: 4, slice_ns: 1, pairs: 1, by_group: false, strace: false, after: 0 };
        let turns = Alternation { slice_ns: 1, permutations: 8, prime_messages: 1, evidence: None };
        let rung = |(share, blocks): (f64, u32)| CellSpec {
            id: format!("rung-{share}"),
            load: LoadMode::OpenShare { share, poisson: true },
            is_rung: true,
            blocks,
            alternation: Some(turns),
            ..shape.clone()
        };
        spec.cells = [(0.25, 6), (0.75, 18), (0.5, 6)].map(rung).to_vec();
        spec.cells[1].role = CellRole::Primary;
        spec.cells[1].alternation = Some(Alternation { evidence: Some(evidence), ..turns });
        spec.cells.push(shape);
        spec
    }

    /// A round at a rung in which an arm kept its rate in `kept` of 16 slices.
    fn ran(cell_id: &str, arm: &str, kept: usize) -> TrialRecord {
        let slice = |place: usize| SliceRecord {
            messages: 900,
            missed_starts: if place < kept { 10 } else { 200 },
            ..SliceRecord::default()
        };
        TrialRecord {
            cell_id: cell_id.to_owned(),
            arm: arm.to_owned(),
            load: Some(LoadReport::default()),
            slices: (0..16).map(slice).collect(),
            ..TrialRecord::default()
        }
    }

    fn primary(spec: &StudySpec) -> &CellSpec {
        let mut found = spec.cells.iter().filter(|cell| cell.role == CellRole::Primary);
        let primary = found.next().expect("there is one");
        assert_eq!(found.next(), None, "there is one");
        primary
    }

    #[test]
    fn a_slice_keeps_its_rate_when_nearly_all_that_should_start_comes_back() {
        let slice = |messages, missed_starts, errors| {
            is_kept(&SliceRecord { messages, missed_starts, errors, ..SliceRecord::default() })
        };
        assert!(slice(900, 100, 0) && !slice(899, 101, 0));
        assert!(!slice(890, 0, 110), "what failed did not come back");
        assert!(slice(700, 0, 0), "a closed loop has no rate to miss");
    }

    #[test]
    fn the_highest_rung_that_every_arm_kept_decides_and_no_cost_is_looked_at() {
        let spec = study();
        assert_eq!(settled(&spec, &[]), None, "nothing is known");
        let quiet = [ran("rung-0.75", "epoll", 16), ran("rung-0.75", "uring", 16)];
        assert_eq!(settled(&spec, &quiet), None);
        let disturbed = [ran("rung-0.75", "epoll", 16), ran("rung-0.75", "uring", 12)];
        assert_eq!(primary(&settled(&spec, &disturbed).expect("it moves")).id, "rung-0.5");
        let once = [ran("rung-0.75", "epoll", 16), ran("rung-0.75", "uring", 15)];
        assert_eq!(settled(&spec, &once), None, "one slice may be an accident");
        let mut costly = quiet.to_vec();
        costly[1].slices.iter_mut().for_each(|slice| slice.server_cpu_ns = 1 << 40);
        assert_eq!(settled(&spec, &costly), None);
    }

    #[test]
    fn where_no_rung_is_kept_the_lowest_decides_and_a_rung_that_was_given_up_is_not_tried_again() {
        let missed = ["rung-0.75", "rung-0.5", "rung-0.25"].map(|cell| ran(cell, "epoll", 8));
        assert_eq!(primary(&settled(&study(), &missed).expect("it moves")).id, "rung-0.25");
        let mut lower = study();
        (lower.cells[1].role, lower.cells[2].role) = (CellRole::Exploratory, CellRole::Primary);
        let kept = ["rung-0.75", "rung-0.5"].map(|cell| ran(cell, "epoll", 16));
        assert_eq!(settled(&lower, &kept), None);
    }

    #[test]
    fn the_rounds_that_are_left_go_along_with_the_claim() {
        const DONE: u32 = 2;
        let spec = study();
        let trials = [ran("rung-0.75", "epoll", 16), ran("rung-0.75", "uring", 12)];
        let lower = descended(&spec, trials.iter(), |_| DONE).expect("the claim moves");
        assert_eq!(primary(&lower).id, "rung-0.5");
        let blocks: Vec<u32> = lower.cells[..3].iter().map(|cell| cell.blocks).collect();
        assert_eq!(blocks, [6, 6, 18], "the curve keeps its rounds");
        let evidence = |cell: usize| lower.cells[cell].alternation.and_then(|turns| turns.evidence);
        assert_eq!(evidence(1), None);
        let evidence = evidence(2).expect("it goes along");
        assert_eq!((evidence.rounds, evidence.after), (4, DONE), "in rounds that are still to come");
        // Late in the session more rounds are needed for the deciding rung to get 60 % of all.
        let late = descended(&spec, trials.iter(), |_| 15).expect("the claim moves");
        let blocks: Vec<u32> = late.cells[..3].iter().map(|cell| cell.blocks).collect();
        assert_eq!(blocks, [6, 15, 32]);
        assert!(f64::from(blocks[2]) / f64::from(blocks.iter().sum::<u32>()) >= 0.6);
    }

    #[test]
    fn a_rung_is_not_given_up_after_few_slices_and_the_lowest_never() {
        let spec = study();
        let mut few = ran("rung-0.75", "epoll", 0);
        few.slices.truncate(15);
        assert_eq!(descended(&spec, [few].iter(), |_| 1), None);
        let some = [ran("rung-0.75", "epoll", 14), ran("rung-0.75", "epoll", 14)];
        assert_eq!(descended(&spec, some.iter(), |_| 2), None, "28 of 32 may be an accident");
        let more = [&some[..], &some[..1]].concat();
        assert!(descended(&spec, more.iter(), |_| 3).is_some());
        let mut lowest = study();
        (lowest.cells[1].role, lowest.cells[0].role) = (CellRole::Exploratory, CellRole::Primary);
        assert_eq!(descended(&lowest, [ran("rung-0.25", "epoll", 0)].iter(), |_| 4), None);
    }

    #[test]
    fn one_of_few_whole_trials_may_miss_its_rate() {
        let whole = |messages: u64| TrialRecord {
            cell_id: "rung-0.75".to_owned(),
            arm: "epoll".to_owned(),
            load: Some(LoadReport { messages, messages_started: 100, ..LoadReport::default() }),
            ..TrialRecord::default()
        };
        let enough = |missed: usize| {
            let trials = (0..12).map(|trial| whole(if trial < missed { 90 } else { 99 }));
            let trials: Vec<TrialRecord> = trials.collect();
            least_kept(&study().cells[1], trials.iter()).expect("they ran").is_enough()
        };
        assert!(enough(0) && enough(1) && !enough(2));
    }

    #[test]
    fn what_is_asked_of_the_claim_moves_with_it() {
        let mut spec = study();
        spec.causes.push(CauseSpec {
            arm: "uring".to_owned(),
            without: "uring-single".to_owned(),
            switch: "options.receive".to_owned(),
            cells: vec!["rung-0.75".to_owned(), "other".to_owned()],
            metric: Metric::ServerCpuPerMessage,
        });
        let moved = settled(&spec, &[ran("rung-0.75", "epoll", 4)]).expect("it moves");
        assert_eq!(moved.causes[0].cells, ["rung-0.5", "other"]);
    }
}
