//! Carries a plan through: every method with every seed, at most as many at a time as there are workers, each finished
//! part stored before its worker takes the next.

use std::{
    collections::BTreeSet,
    num::NonZeroUsize,
    path::Path,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use weir_record::sweep::{PartPhase, SweepMethod, SweepPart, SweepPlan};
use weir_stats::random::Random;

use super::results_file::{ResultsFile, ResultsFileError};

/// A sweep that ended early for a reason of its own.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The results file cannot be used.
    #[error(transparent)]
    File(#[from] ResultsFileError),
    /// Nothing was asked.
    #[error("there is nothing to sweep: the plan has no {0}")]
    Empty(&'static str),
    /// Two methods have one name.
    #[error("the method {0} is in the plan twice")]
    Twice(String),
}

/// How far a sweep is.
#[derive(Clone, Debug)]
pub struct SweepProgress<'p> {
    /// Parts that are done.
    pub done: usize,
    /// Parts in the plan.
    pub planned: usize,
    /// The part that was finished last; absent at the beginning.
    pub part: Option<&'p SweepPart>,
}

/// What a sweep is given to work with.
pub struct SweepHands<'h> {
    /// Where finished parts go; absent to keep them in memory only.
    pub file: Option<&'h Path>,
    /// Whether an existing file is gone on with.
    pub resume: bool,
    /// Parts at a time. A disk is one thing: it takes one.
    pub workers: NonZeroUsize,
    /// Set from outside to end the sweep after the parts under way.
    pub interrupt: &'h AtomicBool,
    /// Told at the beginning and after each part.
    pub progress: &'h (dyn Fn(&SweepProgress<'_>) + Sync),
}

/// What came out.
#[derive(Clone, Debug)]
pub struct SweepRun {
    /// Parts in the plan's order; those of an earlier session are among them.
    pub parts: Vec<SweepPart>,
    /// Ended before all was done.
    pub interrupted: bool,
}

/// Measures one method with one seed: its phases, or why there are none.
pub type Measure<'m> = dyn Fn(&SweepMethod, u64) -> Result<Vec<PartPhase>, String> + Sync + 'm;

/// Carries a plan through.
///
/// Seed after seed, the methods of each in an order of its own that follows from the seed: on a disk that interleaves
/// them, so that a slow minute meets all of them. Parts that are in the file already are not measured again, unless
/// they had failed.
pub fn run(plan: &SweepPlan, measure: &Measure<'_>, hands: &SweepHands<'_>) -> Result<SweepRun, SweepError> {
    check(plan)?;
    let (file, stored) = match hands.file {
        None => (None, Vec::new()),
        Some(path) if hands.resume => {
            let (file, stored) = ResultsFile::resume(path, plan)?;
            (Some(file), stored)
        }
        Some(path) => (Some(ResultsFile::create(path, plan)?), Vec::new()),
    };
    let kept: Vec<SweepPart> = stored.into_iter().filter(|part| is_planned(plan, part)).collect();
    let left = left(plan, &kept);
    let planned = plan.methods.len() * plan.seeds.len();
    (hands.progress)(&SweepProgress { done: planned - left.len(), planned, part: None });
    let shared = Shared { file, parts: kept, done: planned - left.len(), error: None };
    let shared = work(&left, planned, shared, measure, hands);
    if let Some(error) = shared.error {
        return Err(error.into());
    }
    let interrupted = hands.interrupt.load(Ordering::Relaxed) && shared.done < planned;
    Ok(SweepRun { parts: in_order(plan, shared.parts), interrupted })
}

fn check(plan: &SweepPlan) -> Result<(), SweepError> {
    for (what, is_empty) in [
        ("phases", plan.phases.is_empty()),
        ("seeds", plan.seeds.is_empty()),
        ("methods", plan.methods.is_empty()),
    ] {
        if is_empty {
            return Err(SweepError::Empty(what));
        }
    }
    let mut names = BTreeSet::new();
    match plan.methods.iter().find(|method| !names.insert(&method.name)) {
        Some(method) => Err(SweepError::Twice(method.name.clone())),
        None => Ok(()),
    }
}

fn is_planned(plan: &SweepPlan, part: &SweepPart) -> bool {
    part.failure.is_none()
        && plan.seeds.contains(&part.seed)
        && plan.methods.iter().any(|method| method.name == part.method)
}

/// What is still to be measured, in order.
fn left<'p>(plan: &'p SweepPlan, kept: &[SweepPart]) -> Vec<(&'p SweepMethod, u64)> {
    let done: BTreeSet<(&str, u64)> = kept.iter().map(|part| (part.method.as_str(), part.seed)).collect();
    let of_seed = |seed: &u64| {
        let order = Random::seeded(*seed).permutation(plan.methods.len());
        order.into_iter().map(|index| (&plan.methods[index], *seed)).collect::<Vec<_>>()
    };
    plan.seeds
        .iter()
        .flat_map(of_seed)
        .filter(|(method, seed)| !done.contains(&(method.name.as_str(), *seed)))
        .collect()
}

struct Shared {
    file: Option<ResultsFile>,
    parts: Vec<SweepPart>,
    done: usize,
    error: Option<ResultsFileError>,
}

fn work(
    left: &[(&SweepMethod, u64)],
    planned: usize,
    shared: Shared,
    measure: &Measure<'_>,
    hands: &SweepHands<'_>,
) -> Shared {
    let (next, shared) = (AtomicUsize::new(0), Mutex::new(shared));
    let worker = || {
        while let Some((method, seed)) = left.get(next.fetch_add(1, Ordering::Relaxed)) {
            if hands.interrupt.load(Ordering::Relaxed) {
                return;
            }
            let outcome = measure(method, *seed);
            // What was cut short by the interruption is no result.
            if outcome.is_err() && hands.interrupt.load(Ordering::Relaxed) {
                return;
            }
            let (phases, failure) = match outcome {
                Ok(phases) => (phases, None),
                Err(reason) => (Vec::new(), Some(reason)),
            };
            let part = SweepPart { method: method.name.clone(), seed: *seed, phases, failure };
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            // What could not be written may have left half a line, behind which nothing can be read again.
            if shared.error.is_some() {
                return;
            }
            if let Some(error) = shared.file.as_mut().and_then(|file| file.append(&part).err()) {
                shared.error.get_or_insert(error);
                next.store(left.len(), Ordering::Relaxed);
                return;
            }
            shared.done += 1;
            (hands.progress)(&SweepProgress { done: shared.done, planned, part: Some(&part) });
            shared.parts.push(part);
        }
    };
    thread::scope(|scope| {
        for _ in 0..hands.workers.get().min(left.len()) {
            scope.spawn(worker);
        }
    });
    shared.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Parts by method and seed as the plan has them, whichever was finished first.
fn in_order(plan: &SweepPlan, mut parts: Vec<SweepPart>) -> Vec<SweepPart> {
    let place = |part: &SweepPart| {
        let method = plan.methods.iter().position(|method| method.name == part.method);
        let seed = plan.seeds.iter().position(|seed| *seed == part.seed);
        (method, seed)
    };
    parts.sort_by_key(place);
    parts
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf, sync::atomic::AtomicU32};

    use weir_record::sweep::{SweepPhase, WaitingFigures};

    use super::*;

    fn plan() -> SweepPlan {
        let method = |name: &str| SweepMethod { name: name.into(), ..SweepMethod::default() };
        SweepPlan {
            phases: vec![SweepPhase { name: "Job1".into(), ..SweepPhase::default() }],
            seeds: vec![1, 2, 3],
            methods: vec![method("a"), method("b")],
            ..SweepPlan::default()
        }
    }

    fn phases(seed: u64) -> Vec<PartPhase> {
        let figures = Some(WaitingFigures { operations: seed, ..WaitingFigures::default() });
        vec![PartPhase { name: "Job1".into(), figures, intervals: Vec::new() }]
    }

    fn hands<'h>(file: Option<&'h Path>, workers: usize, interrupt: &'h AtomicBool) -> SweepHands<'h> {
        let workers = NonZeroUsize::new(workers).unwrap();
        SweepHands { file, resume: true, workers, interrupt, progress: &|_| {} }
    }

    fn temporary(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("weir-sweep-run-{name}-{}.jsonl", std::process::id()));
        let _ = fs::remove_file(&path);
        path
    }

    #[test]
    fn every_method_meets_every_seed_whatever_the_number_of_workers() {
        let calm = AtomicBool::new(false);
        let measure = |_: &SweepMethod, seed| Ok(phases(seed));
        let one = run(&plan(), &measure, &hands(None, 1, &calm)).unwrap();
        let two = run(&plan(), &measure, &hands(None, 2, &calm)).unwrap();
        assert_eq!(one.parts, two.parts);
        let order: Vec<_> = one.parts.iter().map(|part| (part.method.as_str(), part.seed)).collect();
        assert_eq!(order, [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2), ("b", 3)]);
        assert!(!one.interrupted);
    }

    #[test]
    fn an_interruption_keeps_what_is_done_and_the_next_session_measures_the_rest() {
        let path = temporary("interrupt");
        let (interrupt, calls) = (AtomicBool::new(false), AtomicU32::new(0));
        let measure = |_: &SweepMethod, seed| {
            if calls.fetch_add(1, Ordering::Relaxed) == 2 {
                interrupt.store(true, Ordering::Relaxed);
                return Err("stopped".to_owned());
            }
            Ok(phases(seed))
        };
        let first = run(&plan(), &measure, &hands(Some(&path), 1, &interrupt)).unwrap();
        assert!(first.interrupted);
        assert_eq!(first.parts.len(), 2);
        interrupt.store(false, Ordering::Relaxed);
        let second = run(&plan(), &measure, &hands(Some(&path), 1, &interrupt)).unwrap();
        assert_eq!((second.parts.len(), second.interrupted), (6, false));
        assert_eq!(calls.load(Ordering::Relaxed), 7);
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_failed_part_is_kept_with_its_reason_and_tried_again() {
        let path = temporary("failed");
        let calm = AtomicBool::new(false);
        let refuse = |method: &SweepMethod, seed| {
            if method.name == "b" { Err("the kernel says no".to_owned()) } else { Ok(phases(seed)) }
        };
        let first = run(&plan(), &refuse, &hands(Some(&path), 2, &calm)).unwrap();
        assert_eq!(first.parts.iter().filter(|part| part.failure.is_some()).count(), 3);
        let second = run(&plan(), &|_, seed| Ok(phases(seed)), &hands(Some(&path), 2, &calm)).unwrap();
        assert!(second.parts.iter().all(|part| part.failure.is_none()) && second.parts.len() == 6);
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_plan_without_seeds_or_with_a_method_twice_is_refused() {
        let calm = AtomicBool::new(false);
        let measure = |_: &SweepMethod, seed| Ok(phases(seed));
        let mut empty = plan();
        empty.seeds.clear();
        let error = run(&empty, &measure, &hands(None, 1, &calm)).unwrap_err();
        assert!(error.to_string().contains("no seeds"), "{error}");
        let mut twice = plan();
        twice.methods[1].name = "a".into();
        let error = run(&twice, &measure, &hands(None, 1, &calm)).unwrap_err();
        assert!(error.to_string().contains("method a"), "{error}");
    }
}
