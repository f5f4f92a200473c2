//! Checks that arms match the study's description: different from each other, on the driver that they name, release
//! builds, and unchanged from the first round to the last. Pure.
//!
//! For a foreign program only its file is known; its driver and its build are not checked.

use std::collections::{BTreeMap, BTreeSet};

use weir_record::{
    check::{Check, CheckName},
    engine::EngineStats,
    finding::{Finding, ProgramBuild, ProgramChange, RingApart, SamePair},
    machine::Fingerprint,
    spec::{StudySpec, Subject},
    trial::TrialRecord,
};

/// Most items that a check names.
const NAMED_MAX: usize = 8;

/// The driver that enters a ring.
const RING: &str = "uring";

/// First word of the description of a development build.
const DEBUG: &str = "debug";

/// All arm checks, without those that lack data.
pub(crate) fn all(spec: &StudySpec, fingerprint: &Fingerprint, trials: &[&TrialRecord]) -> Vec<Check> {
    let known = [ring_use(spec, trials), release_build(spec, fingerprint), programs_unchanged(trials)];
    std::iter::once(distinct(spec)).chain(known.into_iter().flatten()).collect()
}

fn distinct(spec: &StudySpec) -> Check {
    let pair = |(arm, other): (&weir_record::spec::ArmSpec, &weir_record::spec::ArmSpec)| SamePair {
        arm: arm.name.clone(),
        other: other.name.clone(),
    };
    let mut pairs: Vec<SamePair> = spec.same_arms().into_iter().map(pair).collect();
    let passed = pairs.is_empty() || spec.same_arms;
    pairs.truncate(NAMED_MAX);
    let detail = Finding::SameArms { pairs, is_asked: spec.same_arms };
    Check { name: CheckName::DistinctArms, passed, detail }
}

/// An arm's use of rings in a cell, over its trials.
#[derive(Default)]
struct RingCounts {
    /// Whether an engine or the kernel counted.
    is_counted: bool,
    /// Calls of `io_uring_enter`.
    enters: u64,
    /// Whether anything went through a ring: with a polling kernel thread a busy server hardly ever calls
    /// `io_uring_enter`.
    is_used: bool,
}

/// Whether Weir arms on io_uring use its ring, and those on other drivers do not; `None` if nothing was counted.
fn ring_use(spec: &StudySpec, trials: &[&TrialRecord]) -> Option<Check> {
    let driver = |name: &str| {
        let arm = spec.arms.iter().find(|arm| arm.name == name)?;
        let cell_driver = |trial: &TrialRecord| {
            let cell = spec.cells.iter().find(|cell| cell.id == trial.cell_id)?;
            Some(cell.orders.as_ref()?.driver.clone())
        };
        Some((
            arm.subject.driver().map(str::to_owned),
            matches!(arm.subject, Subject::Gateway(_)),
            cell_driver,
        ))
    };
    let mut arms: BTreeMap<(&str, &str), (String, RingCounts)> = BTreeMap::new();
    for trial in trials {
        let Some((own, is_gateway, of_cell)) = driver(&trial.arm) else { continue };
        let own = own.or_else(|| if is_gateway { of_cell(trial) } else { None });
        let Some(own) = own.filter(|own| own != "auto" && !own.is_empty()) else { continue };
        let counts = arms.entry((&trial.cell_id, &trial.arm)).or_insert_with(|| (own, RingCounts::default()));
        add(&mut counts.1, trial);
    }
    arms.retain(|_, (_, counts)| counts.is_counted);
    let servers = arms.len() as u64;
    let is_apart = |driver: &str, counts: &RingCounts| counts.is_used != (driver == RING);
    let mut apart: Vec<RingApart> = arms
        .into_iter()
        .filter(|(_, (driver, counts))| is_apart(driver, counts))
        .map(|((cell_id, arm), (driver, counts))| RingApart {
            cell_id: cell_id.to_owned(),
            arm: arm.to_owned(),
            driver,
            enters: counts.enters,
        })
        .collect();
    let passed = apart.is_empty();
    apart.truncate(NAMED_MAX);
    let detail = Finding::RingUse { servers, apart };
    (servers > 0).then_some(Check { name: CheckName::RingUse, passed, detail })
}

/// Adds the engine's counts in the window, and the kernel programs' in slices of evidence. A window without messages
/// shows nothing.
fn add(counts: &mut RingCounts, trial: &TrialRecord) {
    let load = trial.load.as_ref().filter(|load| load.messages > 0);
    let engine = load.and_then(|load| load.observed.as_ref()?.engine.as_ref());
    if let Some(EngineStats { enters, submissions, .. }) = engine {
        counts.is_counted = true;
        counts.enters += enters;
        counts.is_used |= enters + submissions > 0;
    }
    let rows = trial.evidence.iter().flat_map(|slice| &slice.readings);
    let entered = rows.filter(|row| row.source == "call io_uring_enter" && row.key == "count");
    let entered: f64 = entered.map(|row| row.value).sum();
    counts.is_used |= entered > 0.0;
    counts.is_counted |= entered > 0.0;
    counts.enters += if engine.is_none() { entered as u64 } else { 0 };
}

/// Whether all measured Weir programs are release builds; `None` if no build is known.
fn release_build(spec: &StudySpec, fingerprint: &Fingerprint) -> Option<Check> {
    // If arms name another program, this one is still the generator, which is measured too.
    let own = (!spec.cells.iter().all(|cell| cell.is_simulated())).then_some(("weir", &fingerprint.build));
    let others = fingerprint.program_builds.iter().map(|(program, build)| (program.as_str(), build));
    let known: Vec<(&str, &String)> =
        own.into_iter().chain(others).filter(|(_, build)| !build.is_empty()).collect();
    let of = |(program, build): &(&str, &String)| ProgramBuild {
        program: (*program).to_owned(),
        build: (*build).clone(),
    };
    let debug: Vec<ProgramBuild> =
        known.iter().filter(|(_, build)| build.starts_with(DEBUG)).map(of).take(NAMED_MAX).collect();
    let passed = debug.is_empty();
    let detail = Finding::Builds { programs: known.len() as u64, debug };
    (!known.is_empty()).then_some(Check { name: CheckName::ReleaseBuild, passed, detail })
}

/// Whether every program file had the same content at every start; `None` if none was read.
fn programs_unchanged(trials: &[&TrialRecord]) -> Option<Check> {
    let mut files: BTreeMap<&str, (&str, BTreeSet<&str>)> = BTreeMap::new();
    for trial in trials {
        for (file, content) in &trial.programs {
            let (_, contents) = files.entry(file).or_insert_with(|| (&trial.arm, BTreeSet::new()));
            contents.insert(content);
        }
    }
    let change = |(file, (arm, contents)): (&&str, &(&str, BTreeSet<&str>))| ProgramChange {
        arm: (*arm).to_owned(),
        file: (*file).to_owned(),
        contents: u32::try_from(contents.len()).unwrap_or(u32::MAX),
    };
    let changed: Vec<ProgramChange> =
        files.iter().filter(|(_, (_, contents))| contents.len() > 1).map(change).take(NAMED_MAX).collect();
    let passed = changed.is_empty();
    let detail = Finding::ProgramFiles { files: files.len() as u64, changed };
    (!files.is_empty()).then_some(Check { name: CheckName::ProgramsUnchanged, passed, detail })
}

#[cfg(test)]
mod tests {
    use weir_record::{observation::Rung, trial::EvidenceSlice, trial::Reading};

    use super::*;
    use crate::sample;

    const CELL: &str = "c100-d1-m64-closed";

    fn found(spec: &StudySpec, trials: &[TrialRecord], name: CheckName) -> Option<Check> {
        let trials: Vec<&TrialRecord> = trials.iter().collect();
        all(spec, &Fingerprint::default(), &trials).into_iter().find(|check| check.name == name)
    }

    fn passes(spec: &StudySpec, trials: &[TrialRecord], name: CheckName) -> bool {
        found(spec, trials, name).expect("it is checked").passed
    }

    #[test]
    fn two_arms_that_are_the_same_are_named_unless_they_are_meant_to_be() {
        let mut spec = sample::study(&["epoll", "uring"], 12, 1);
        assert!(passes(&spec, &[], CheckName::DistinctArms));
        spec.arms[1].subject = spec.arms[0].subject.clone();
        let check = found(&spec, &[], CheckName::DistinctArms).expect("it is checked");
        let pairs = vec![SamePair { arm: "epoll".to_owned(), other: "uring".to_owned() }];
        assert_eq!((check.passed, check.detail), (false, Finding::SameArms { pairs, is_asked: false }));
        spec.arms[1].load_options.insert("spin-us".to_owned(), "50".to_owned());
        assert!(passes(&spec, &[], CheckName::DistinctArms), "they are loaded differently");
        spec.arms[1].load_options.clear();
        let meant = StudySpec { same_arms: true, ..spec.clone() };
        assert!(passes(&meant, &[], CheckName::DistinctArms));
        spec.arms[1].is_placebo = true;
        assert!(passes(&spec, &[], CheckName::DistinctArms));
    }

    fn counted(arm: &str, enters: u64, submissions: u64) -> TrialRecord {
        let mut trial = sample::trial(CELL, arm, 0, 10.0);
        let observed = trial.load.as_mut().and_then(|load| load.observed.as_mut()).expect("it was observed");
        observed.engine = Some(EngineStats { enters, submissions, ..EngineStats::default() });
        trial
    }

    #[test]
    fn an_arm_that_does_not_use_the_ring_that_it_names_fails_a_check() {
        let spec = sample::study(&["epoll", "uring"], 12, 1);
        let check = |epoll, uring| passes(&spec, &[epoll, uring], CheckName::RingUse);
        let (still, entering) = (counted("epoll", 0, 0), counted("uring", 500, 1_000));
        assert!(check(still.clone(), entering.clone()));
        assert!(!check(still.clone(), counted("uring", 0, 0)));
        assert!(!check(counted("epoll", 3, 3), entering.clone()));
        assert!(check(still.clone(), counted("uring", 0, 1_000)), "a kernel thread polls its ring");
        let uncounted = |arm: &str| sample::trial(CELL, arm, 0, 10.0);
        let nothing = [uncounted("epoll"), uncounted("uring")];
        assert_eq!(found(&spec, &nothing, CheckName::RingUse), None, "nobody counted");
        let mut seen = still;
        let reading =
            Reading { source: "call io_uring_enter".to_owned(), key: "count".to_owned(), value: 9.0 };
        let slice = EvidenceSlice { rung: Rung::Programs, readings: vec![reading], ..Default::default() };
        seen.evidence.push(slice);
        assert!(!check(seen, entering), "the kernel saw it, whatever the engine says");
    }

    #[test]
    fn nothing_is_claimed_of_the_driver_of_a_foreign_program() {
        let mut spec = sample::study(&["epoll", "uring"], 12, 1);
        for arm in &mut spec.arms {
            arm.subject = Subject::Command { argv: vec!["server".to_owned(), arm.name.clone()] };
        }
        let trials = [counted("epoll", 5, 5), counted("uring", 0, 0)];
        assert_eq!(found(&spec, &trials, CheckName::RingUse), None);
    }

    #[test]
    fn a_build_for_development_fails_a_check_and_of_an_unknown_one_nothing_is_claimed() {
        let spec = sample::study(&["epoll", "uring"], 12, 1);
        let check = |build: &str, other: &str| {
            let fingerprint = Fingerprint {
                build: build.to_owned(),
                program_builds: BTreeMap::from([("/old/weir".to_owned(), other.to_owned())]),
                ..Fingerprint::default()
            };
            release_build(&spec, &fingerprint).map(|check| check.passed)
        };
        assert_eq!(check("", ""), None);
        let (release, debug) = ("release, opt-level 3, rustc 1.88.0", "debug, opt-level 1, rustc 1.88.0");
        assert_eq!(check(release, release), Some(true));
        assert_eq!(check(debug, release), Some(false));
        assert_eq!(check(release, debug), Some(false));
    }

    #[test]
    fn a_program_that_changes_between_rounds_fails_a_check() {
        let spec = sample::study(&["epoll", "uring"], 12, 1);
        let started = |block: u32, content: &str| {
            let programs = BTreeMap::from([("/bin/server".to_owned(), content.to_owned())]);
            TrialRecord { programs, ..sample::trial(CELL, "uring", block, 10.0) }
        };
        let same = [started(0, "a"), started(1, "a")];
        assert!(passes(&spec, &same, CheckName::ProgramsUnchanged));
        let check = found(&spec, &[started(0, "a"), started(1, "b")], CheckName::ProgramsUnchanged);
        let changed =
            vec![ProgramChange { arm: "uring".to_owned(), file: "/bin/server".to_owned(), contents: 2 }];
        let check = check.expect("it is checked");
        assert_eq!((check.passed, check.detail), (false, Finding::ProgramFiles { files: 1, changed }));
        let unread = [sample::trial(CELL, "uring", 0, 10.0)];
        assert_eq!(found(&spec, &unread, CheckName::ProgramsUnchanged), None);
    }
}
