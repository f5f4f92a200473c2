//! The disk part: the laboratory runs the methods as processes on one file, interleaved in blocks, and its trials
//! become parts of a sweep.

use std::{collections::BTreeMap, path::Path, sync::atomic::AtomicBool};

use anyhow::{Context, Result};
use weir_evidence::placement::{self, Topology};
use weir_lab::{
    exit::ExitCode,
    process::{Deadlines, ProcessLauncher},
    run::{self, Ended, Event, Hands},
    storage::{self, PollingPlan, Waiting},
    surroundings::Surroundings,
};
use weir_record::{
    spec::{CellSpec, StudySpec, Subject},
    storage::{CompletionMethod, SleepPrimitive, WaitingInterval},
    study::MissingArm,
    sweep::{MissingMethod, PartPhase, SweepMethod, SweepPart, SweepPlan, SweepResult, WaitingFigures},
    trial::TrialRecord,
};
use weir_storage::{
    engine::probe,
    frontier,
    sweep::{methods, plans, world},
};
use weir_store::{NewStudy, Store};

use crate::{
    command::{
        report,
        study::default_folder as folder_of,
        study_storage::{self, Ready},
    },
    exit::{Exit, UsageError},
    orphans, output,
};

/// Name of the laboratory's study.
const NAME: &str = "polling-disk";

/// What is asked of a disk.
pub(crate) struct Asked {
    pub(crate) methods: Vec<SweepMethod>,
    pub(crate) window_ns: u64,
    pub(crate) background_depths: Vec<u32>,
    pub(crate) blocks: u64,
    pub(crate) file: Option<String>,
    pub(crate) seed: u64,
}

/// What was measured, and how that ended.
pub(crate) struct OnDisk {
    /// Absent when it was interrupted before the first trial.
    pub(crate) result: Option<SweepResult>,
    pub(crate) ended: Ended,
    /// What cut it short and how far it came.
    pub(crate) cut: Option<String>,
}

/// Where a sweep over a disk goes when nobody says.
pub(crate) fn default_folder() -> std::path::PathBuf {
    folder_of("sweep")
}

/// The file that is read for a folder, where the user names none.
pub(crate) fn data_file(folder: &Path) -> std::path::PathBuf {
    folder.parent().unwrap_or(Path::new("")).join(storage::FILE_NAME)
}

/// The same methods with the kernel's own ways to poll the device below a file; those that it refuses are named and
/// left out, because nothing would be measured of them.
pub(crate) fn with_kernel_polls(mut found: Vec<SweepMethod>, file: &Path) -> Vec<SweepMethod> {
    for method in methods::kernel_polls() {
        match probe::refuses_polling(file, methods::engine_options(&method.name).hybrid_iopoll) {
            Some(reason) => output::tell(&format!("disk: {} is left out: {reason}", method.name)),
            None => found.push(method),
        }
    }
    found
}

/// A sweep by itself: whoever asked for it is told what it lacks, and its exit code says that it lacks something.
pub(crate) fn sweep(
    folder: &Path,
    asked: &Asked,
    resume: bool,
    interrupt: &AtomicBool,
    quiet: bool,
) -> Result<(SweepResult, Exit)> {
    let done = measure(folder, asked, resume, interrupt, quiet)?;
    let result = done.result.unwrap_or_default();
    let command = going_on(&reproduce(asked), folder);
    let (told, exit) = ending(done.ended, done.cut.as_deref(), &result, &command);
    told.iter().for_each(|text| output::tell(text));
    Ok((result, exit))
}

fn going_on(reproduce: &str, folder: &Path) -> String {
    format!("{reproduce} --out {} --resume", folder.display())
}

/// What is told at the end of a sweep, and its exit code. Only a whole one is a success.
fn ending(ended: Ended, cut: Option<&str>, result: &SweepResult, command: &str) -> (Option<String>, Exit) {
    let inconclusive = Exit::Study(ExitCode::Inconclusive);
    let told = cut.map(|cut| format!("{cut}; go on with: {command}"));
    match ended {
        Ended::Interrupted => (told, Exit::Interrupted),
        Ended::TimeCap | Ended::StayedFar => (told, inconclusive),
        // The table names what is missing.
        Ended::ArmsMissing => (told, Exit::Environment),
        Ended::Complete if !result.missing.is_empty() => (told, Exit::Environment),
        Ended::Complete if result.complete => (told, Exit::Ok),
        Ended::Complete => {
            let planned = result.plan.methods.len() * result.plan.seeds.len();
            let lacking = format!(
                "{} of {planned} runs have a clean trial of every phase, and no attempt is left for the others",
                result.parts_done
            );
            (Some(lacking), inconclusive)
        }
    }
}

/// Measures, or goes on where an earlier session ended, and judges what is there.
pub(crate) fn measure(
    folder: &Path,
    asked: &Asked,
    resume: bool,
    interrupt: &AtomicBool,
    quiet: bool,
) -> Result<OnDisk> {
    let goes_on = resume && folder.join(weir_store::FILE_NAME).exists();
    let study = study(asked);
    let spec = if goes_on { stored(folder, &study.spec)? } else { study.spec.clone() };
    if study_storage::prepare(&spec, folder, interrupt)? == Ready::Interrupted {
        let result = goes_on.then(|| judged(folder, asked)).transpose()?;
        let cut = Some("interrupted before a block began".to_owned());
        return Ok(OnDisk { result, ended: Ended::Interrupted, cut });
    }
    let program = std::env::current_exe().context("cannot find the weir program itself")?;
    let mut launcher =
        ProcessLauncher::new(program, &spec, Deadlines::default()).in_folder(folder.to_owned());
    // Where the kernel refuses, the supervisors alone see to it.
    let _ = orphans::adopt();
    let mut progress = |event: &Event| {
        if matches!(event, Event::TrialFinished { .. }) {
            orphans::end();
        }
        if !quiet {
            tell(event);
        }
    };
    let hands = Hands { launcher: &mut launcher, interrupt, progress: &mut progress };
    let outcome = if goes_on {
        run::resume(folder, &study.fingerprint, hands)
    } else {
        run::start(folder, &study, hands)
    };
    orphans::end();
    let outcome = outcome?;
    let cut = outcome.cut_short();
    Ok(OnDisk { result: Some(judged(folder, asked)?), ended: outcome.ended, cut })
}

/// What a folder of the laboratory is to hold. Its schedule is fixed when it begins, so that another one that is asked
/// for would not be measured.
fn stored(folder: &Path, asked: &StudySpec) -> Result<StudySpec> {
    let header = Store::open_read_only(folder)?.study()?;
    let others = differences(&header.spec, asked);
    if others.is_empty() {
        return Ok(header.spec);
    }
    let text = format!(
        "{} holds a sweep with other {}; go on with it by `{}`, or choose another folder with --out",
        folder.display(),
        others.join(" and "),
        going_on(&header.reproduce, folder)
    );
    Err(UsageError(text).into())
}

/// Options by which two sweeps differ: neither goes on with the blocks of the other.
fn differences(stored: &StudySpec, asked: &StudySpec) -> Vec<&'static str> {
    fn differ<V: PartialEq>(specs: [&StudySpec; 2], of: impl Fn(&CellSpec) -> V) -> bool {
        let [stored, asked] = specs.map(|spec| spec.cells.iter().map(&of).collect::<Vec<V>>());
        stored != asked
    }
    let both = [stored, asked];
    let file = |cell: &CellSpec| cell.storage.as_ref().and_then(|it| it.file.clone());
    let options = [
        ("--methods", stored.arms != asked.arms),
        ("--background", differ(both, |cell| cell.id.clone())),
        ("--seeds", differ(both, |cell| cell.blocks)),
        ("--job-time", differ(both, |cell| cell.window_ns)),
        ("--file", differ(both, file)),
    ];
    // All but the methods are one for each depth, so that with other depths every one of them would differ.
    let is_other_depths = options[1].1;
    let depths_alone = |name: &str| !is_other_depths || ["--methods", "--background"].contains(&name);
    options
        .into_iter()
        .filter(|(name, is_other)| *is_other && depths_alone(name))
        .map(|(name, _)| name)
        .collect()
}

fn tell(event: &Event) {
    match event {
        Event::BlockStored { cell_id, block, blocks_done, blocks, .. } => {
            output::tell(&format!("disk: {blocks_done}/{blocks} blocks: {cell_id} block {block}"));
        }
        Event::ArmMissing { arm } => output::tell(&format!("disk: {} is missing: {}", arm.name, arm.reason)),
        _ => {}
    }
}

fn study(asked: &Asked) -> NewStudy {
    let fingerprint = weir_evidence::fingerprint::fingerprint();
    let place = placement::place(&Topology::from(&fingerprint));
    let (server_cpus, load_cpus) = place.map(|place| (place.server, place.load)).unwrap_or_default();
    let surroundings = Surroundings { seed: asked.seed, server_cpus, load_cpus, ..Surroundings::default() };
    let ways: Vec<Waiting> = asked.methods.iter().map(waiting).collect();
    let plan = PollingPlan {
        background_depths: asked.background_depths.clone(),
        window_ns: asked.window_ns,
        blocks: u32::try_from(asked.blocks).unwrap_or(u32::MAX),
        ..PollingPlan::default()
    };
    let mut spec = storage::polling_disk(NAME, &surroundings, &ways, &plan);
    for arm in &mut spec.arms {
        if let Subject::Storage(subject) = &mut arm.subject {
            subject.options = methods::engine_options(&arm.name);
        }
    }
    if let Some(file) = &asked.file {
        study_storage::use_file(&mut spec, file);
    }
    let reproduce = reproduce(asked);
    NewStudy { spec, fingerprint, missing_arms: Vec::new(), reproduce }
}

fn reproduce(asked: &Asked) -> String {
    let names: Vec<&str> = asked.methods.iter().map(|method| method.name.as_str()).collect();
    let depths: Vec<String> = asked.background_depths.iter().map(u32::to_string).collect();
    let file = asked.file.as_ref().map(|file| format!(" --file {file}")).unwrap_or_default();
    format!(
        "weir storage sweep --world disk --methods \"{}\" --seeds {} --job-time {}us --background {}{file}",
        names.join(" "),
        asked.blocks,
        asked.window_ns / 1_000,
        depths.join(","),
    )
}

fn waiting(method: &SweepMethod) -> Waiting {
    let completion = CompletionMethod {
        predictor: method.predictor.clone(),
        armed: method.armed,
        sleep: SleepPrimitive::Auto,
    };
    Waiting { name: arm_name(&method.name), completion }
}

/// A method's name without the signs that a file name cannot have.
fn arm_name(method: &str) -> String {
    method.replace(':', "-").replace(',', "_")
}

/// Judges what a folder of the laboratory holds.
fn judged(folder: &Path, asked: &Asked) -> Result<SweepResult> {
    let (study, trials) = report::read(folder)?;
    let source = asked.file.clone().unwrap_or_else(|| source(&study.spec, folder));
    let plan = plan_of(&study.spec, &source, &asked.methods);
    let mut result = frontier::judge(&plan, &parts(&plan, &study.spec, &trials));
    let name_of = |arm: &MissingArm| {
        let method = asked.methods.iter().find(|method| arm_name(&method.name) == arm.name);
        method.map_or_else(|| arm.name.clone(), |method| method.name.clone())
    };
    let missing =
        study.missing_arms.iter().map(|arm| MissingMethod { name: name_of(arm), reason: arm.reason.clone() });
    result.missing.extend(missing);
    Ok(result)
}

/// What the laboratory was asked, as the plan of a sweep. A method's role and family are no part of what it keeps.
fn plan_of(spec: &StudySpec, source: &str, methods: &[SweepMethod]) -> SweepPlan {
    let window_ns = spec.cells.first().map_or(0, |cell| cell.window_ns);
    let blocks = spec.cells.iter().map(|cell| u64::from(cell.blocks)).max().unwrap_or(0);
    let cells = spec.cells.iter().filter_map(|cell| cell.storage.as_ref());
    let depths: Vec<u32> = cells.map(|cell| cell.background_depth).collect();
    let is_arm = |method: &&SweepMethod| spec.arms.iter().any(|arm| arm.name == arm_name(&method.name));
    plans::of_disk(source, window_ns, &depths, blocks, methods.iter().filter(is_arm).cloned().collect())
}

fn source(spec: &StudySpec, folder: &Path) -> String {
    let cell = spec.cells.iter().find_map(|cell| cell.storage.as_ref());
    cell.map(|cell| storage::data_file(folder, cell).display().to_string()).unwrap_or_default()
}

/// Phases of one part by their place in the plan, each with the attempt it comes from.
type Phases = BTreeMap<usize, (u32, PartPhase)>;

/// Clean trials of the methods as parts: a block is a seed, a cell a phase. The baseline's second runs are left out,
/// and of several attempts at a block the last one counts.
fn parts(plan: &SweepPlan, spec: &StudySpec, trials: &[TrialRecord]) -> Vec<SweepPart> {
    let mut parts: BTreeMap<(&str, u64), Phases> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| trial.taints.is_empty() && !trial.repeat) {
        let Some(method) = plan.methods.iter().find(|method| arm_name(&method.name) == trial.arm) else {
            continue;
        };
        let Some(index) = spec.cells.iter().position(|cell| cell.id == trial.cell_id) else { continue };
        let measured = trial.load.as_ref().and_then(|load| load.storage.as_ref());
        let Some((report, storage)) = measured.and_then(|it| Some((it.waiting.as_ref()?, it))) else {
            continue;
        };
        let (seed, phase) = (u64::from(trial.block) + 1, plan.phases.get(index));
        let Some((figures, phase)) = WaitingFigures::of(report).zip(phase) else { continue };
        let intervals: Vec<WaitingInterval> =
            if world::keeps_intervals(plan, method, seed) { storage.intervals.clone() } else { Vec::new() };
        let phase = PartPhase { name: phase.name.clone(), figures: Some(figures), intervals };
        let phases = parts.entry((&method.name, seed)).or_default();
        if phases.get(&index).is_none_or(|(attempt, _)| *attempt <= trial.attempt) {
            phases.insert(index, (trial.attempt, phase));
        }
    }
    parts
        .into_iter()
        .map(|((method, seed), phases)| SweepPart {
            method: method.to_owned(),
            seed,
            phases: phases.into_values().map(|(_, phase)| phase).collect(),
            failure: None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(background_depths: &[u32]) -> Asked {
        Asked {
            methods: methods::disk(),
            window_ns: 500_000_000,
            background_depths: background_depths.to_vec(),
            blocks: 6,
            file: None,
            seed: 3,
        }
    }

    #[test]
    fn a_folder_with_other_loads_is_not_gone_on_with() {
        let stored = study(&asked(&[0, 32, 128])).spec;
        let other = |asked: Asked| differences(&stored, &study(&asked).spec);
        assert!(other(asked(&[0, 32, 128])).is_empty());
        for depths in [&[0, 8, 128][..], &[0, 32], &[32, 0, 128]] {
            assert_eq!(other(asked(depths)), ["--background"], "{depths:?}");
        }
        assert_eq!(other(Asked { window_ns: 1_000_000_000, ..asked(&[0, 32, 128]) }), ["--job-time"]);
        assert_eq!(other(Asked { file: Some("data".to_owned()), ..asked(&[0, 32, 128]) }), ["--file"]);
    }

    #[test]
    fn more_blocks_or_methods_than_were_begun_with_are_refused_by_name() {
        let folder = std::env::temp_dir().join(format!("weir-disk-sweep-{}", std::process::id()));
        let begun = Asked { methods: methods::parse("interrupt poll").expect("methods"), ..asked(&[0, 32]) };
        drop(Store::create(&folder, &study(&begun)).expect("a store"));
        // Whoever is not refused is interrupted before anything is laid out.
        let interrupt = AtomicBool::new(true);
        let go_on = |asked: &Asked| measure(&folder, asked, true, &interrupt, true).map(|done| done.ended);
        let refusals = [
            Asked { blocks: 12, methods: begun.methods.clone(), ..asked(&[0, 32]) },
            Asked { methods: methods::parse("interrupt poll lmd").expect("methods"), ..asked(&[0, 32]) },
            Asked { blocks: 3, ..asked(&[0, 32]) },
        ]
        .map(|asked| go_on(&asked).map_err(|error| error.to_string()));
        let _ = std::fs::remove_dir_all(&folder);
        for (refusal, options) in refusals.into_iter().zip(["--seeds", "--methods", "--methods and --seeds"])
        {
            let refusal = refusal.expect_err("it is another sweep");
            assert!(refusal.contains(&format!("holds a sweep with other {options}; ")), "{refusal}");
            let command =
                "--methods \"interrupt poll\" --seeds 6 --job-time 500000us --background 0,32 --out ";
            assert!(refusal.contains(command), "{refusal}");
        }
    }

    #[test]
    fn what_is_judged_is_what_the_laboratory_was_asked() {
        let spec =
            study(&Asked { methods: methods::parse("interrupt poll").expect("methods"), ..asked(&[0, 8]) })
                .spec;
        let plan = plan_of(&spec, "data", &methods::parse("interrupt lmd poll").expect("methods"));
        let names: Vec<&str> = plan.methods.iter().map(|method| method.name.as_str()).collect();
        assert_eq!((names, plan.seeds), (vec!["interrupt", "poll"], (1..=6).collect()));
        let phases: Vec<(u32, u64)> =
            plan.phases.iter().map(|phase| (phase.background_depth, phase.length_ns)).collect();
        assert_eq!(phases, [(0, 500_000_000), (8, 500_000_000)]);
    }

    #[test]
    fn only_a_whole_sweep_is_a_success_and_what_cuts_it_is_told_with_the_way_on() {
        let whole = SweepResult { complete: true, ..SweepResult::default() };
        let mut partial = SweepResult { parts_done: 3, ..SweepResult::default() };
        partial.plan.methods = methods::parse("interrupt poll").expect("methods");
        partial.plan.seeds = vec![1, 2];
        let missing = SweepResult { missing: vec![MissingMethod::default()], ..partial.clone() };
        let of = |ended, cut, result| ending(ended, cut, result, "weir storage sweep --resume");
        let inconclusive = Exit::Study(ExitCode::Inconclusive);
        assert_eq!(of(Ended::Complete, None, &whole), (None, Exit::Ok));
        assert_eq!(of(Ended::Complete, None, &missing), (None, Exit::Environment));
        assert_eq!(of(Ended::ArmsMissing, None, &missing), (None, Exit::Environment));
        let (told, exit) = of(Ended::Complete, None, &partial);
        assert!(told.is_some_and(|told| told.starts_with("3 of 4 runs have a clean trial")));
        assert_eq!(exit, inconclusive);
        for (ended, expected) in [
            (Ended::TimeCap, inconclusive),
            (Ended::StayedFar, inconclusive),
            (Ended::Interrupted, Exit::Interrupted),
        ] {
            let (told, exit) = of(ended, Some("cut: 4 of 18 blocks are done"), &partial);
            assert_eq!(exit, expected, "{ended:?}");
            let way_on = "cut: 4 of 18 blocks are done; go on with: weir storage sweep --resume";
            assert_eq!(told.as_deref(), Some(way_on), "{ended:?}");
        }
    }

    #[test]
    fn the_command_that_is_kept_asks_for_the_same() {
        let told = reproduce(&Asked { file: Some("data.bin".to_owned()), ..asked(&[0, 32]) });
        assert!(told.starts_with("weir storage sweep --world disk --methods \"interrupt poll "), "{told}");
        assert!(told.ends_with("--seeds 6 --job-time 500000us --background 0,32 --file data.bin"), "{told}");
    }

    #[test]
    fn the_kernels_own_polls_are_asked_of_the_ring() {
        let methods = methods::parse("interrupt iopoll iopoll-hybrid").expect("methods");
        let spec = study(&Asked { methods, ..asked(&[0]) }).spec;
        assert_eq!(weir_lab::validate::study(&spec), Ok(()));
        let asked: Vec<(bool, bool)> = spec
            .arms
            .iter()
            .filter_map(|arm| match &arm.subject {
                Subject::Storage(subject) => Some((subject.options.iopoll, subject.options.hybrid_iopoll)),
                _ => None,
            })
            .collect();
        assert_eq!(asked, [(false, false), (true, false), (true, true)]);
    }

    #[test]
    fn every_method_of_a_disk_becomes_an_arm_of_a_valid_study() {
        for list in [methods::disk(), methods::disk_in_full()] {
            let asked = Asked {
                methods: list,
                window_ns: 500_000_000,
                background_depths: vec![0, 32, 128],
                blocks: 12,
                file: Some("data.bin".to_owned()),
                seed: 3,
            };
            let spec = study(&asked).spec;
            assert_eq!(weir_lab::validate::study(&spec), Ok(()));
            assert_eq!((spec.cells.len(), spec.arms.len()), (3, asked.methods.len()));
            assert_eq!(spec.arms[0].name, "interrupt");
        }
    }
}
