//! The disk part: the laboratory runs the methods as processes on one file, interleaved in blocks, and its trials
//! become parts of a sweep.

use std::{collections::BTreeMap, path::Path, sync::atomic::AtomicBool};

use anyhow::{Context, Result};
use weir_evidence::placement::{self, Topology};
use weir_lab::{
    file::Surroundings,
    process::{Deadlines, ProcessLauncher},
    run::{self, Ended, Event, Hands},
    storage::{self, PollingPlan, Waiting},
};
use weir_record::{
    spec::{CellSpec, StudySpec},
    storage::{CompletionMethod, SleepPrimitive, WaitingInterval},
    study::MissingArm,
    sweep::{MissingMethod, PartPhase, SweepMethod, SweepPart, SweepPlan, SweepResult, WaitingFigures},
    trial::TrialRecord,
};
use weir_storage::{
    frontier,
    sweep::{plans, world},
};
use weir_store::{NewStudy, Store};

use crate::{
    command::{
        report,
        study::default_folder as folder_of,
        study_storage::{self, Ready},
    },
    exit::UsageError,
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

/// What was measured.
pub(crate) struct OnDisk {
    /// Absent when it was interrupted before the first trial.
    pub(crate) result: Option<SweepResult>,
    pub(crate) interrupted: bool,
}

/// Where a sweep over a disk goes when nobody says.
pub(crate) fn default_folder() -> std::path::PathBuf {
    folder_of("sweep")
}

/// The file that is read for a folder, where the user names none.
pub(crate) fn data_file(folder: &Path) -> std::path::PathBuf {
    folder.parent().unwrap_or(Path::new("")).join(storage::FILE_NAME)
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
    let spec = if goes_on { Store::open_read_only(folder)?.study()?.spec } else { study.spec.clone() };
    if !is_same(&spec, &study.spec) {
        let text = format!(
            "{} holds a sweep over other background depths, another --job-time or another --file; choose another folder \
             with --out",
            folder.display()
        );
        return Err(UsageError(text).into());
    }
    if study_storage::prepare(&spec, folder, interrupt)? == Ready::Interrupted {
        let result = goes_on.then(|| judged(folder, asked)).transpose()?;
        return Ok(OnDisk { result, interrupted: true });
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
    let interrupted = outcome?.ended == Ended::Interrupted;
    Ok(OnDisk { result: Some(judged(folder, asked)?), interrupted })
}

/// Whether both ask for the same loads in the same order, with trials of the same length, on the same file.
fn is_same(stored: &StudySpec, asked: &StudySpec) -> bool {
    let file = |cell: &CellSpec| cell.storage.as_ref().and_then(|it| it.file.clone());
    let cells = |spec: &StudySpec| {
        spec.cells.iter().map(|cell| (cell.id.clone(), cell.window_ns, file(cell))).collect::<Vec<_>>()
    };
    cells(stored) == cells(asked)
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
    let surroundings = Surroundings { seed: asked.seed, server_cpus, load_cpus };
    let ways: Vec<Waiting> = asked.methods.iter().map(waiting).collect();
    let plan = PollingPlan {
        background_depths: asked.background_depths.clone(),
        window_ns: asked.window_ns,
        blocks: u32::try_from(asked.blocks).unwrap_or(u32::MAX),
        ..PollingPlan::default()
    };
    let mut spec = storage::polling_disk(NAME, &surroundings, &ways, &plan);
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
    let plan = plans::of_disk(
        &source,
        asked.window_ns,
        &asked.background_depths,
        asked.blocks,
        asked.methods.clone(),
    );
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
    use weir_storage::sweep::methods;

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
        assert!(is_same(&stored, &study(&asked(&[0, 32, 128])).spec));
        for other in [&[0, 8, 128][..], &[0, 32], &[32, 0, 128]] {
            assert!(!is_same(&stored, &study(&asked(other)).spec), "{other:?}");
        }
        let longer = Asked { window_ns: 1_000_000_000, ..asked(&[0, 32, 128]) };
        assert!(!is_same(&stored, &study(&longer).spec));
    }

    #[test]
    fn the_command_that_is_kept_asks_for_the_same() {
        let told = reproduce(&Asked { file: Some("data.bin".to_owned()), ..asked(&[0, 32]) });
        assert!(told.starts_with("weir storage sweep --world disk --methods \"interrupt poll "), "{told}");
        assert!(told.ends_with("--seeds 6 --job-time 500000us --background 0,32 --file data.bin"), "{told}");
    }

    #[test]
    fn every_method_of_a_disk_becomes_an_arm_of_a_valid_study() {
        for list in [methods::disk(), methods::disk_in_full()] {
            let asked = Asked {
                methods: list,
                window_ns: 500_000_000,
                background_depths: vec![0, 32, 128],
                blocks: 6,
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
