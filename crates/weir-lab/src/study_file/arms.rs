//! Arms of a study file, and which of them run in which cell.

use std::collections::BTreeMap;

use weir_record::{
    finding::NoTurns,
    spec::{ArmSpec, CellRole, CellSpec, StudySpec},
    study::MissingArm,
};

use super::{
    arm_start,
    cells::{Draft, Drafts},
    elsewhere,
};
use crate::{
    alternation,
    host_defaults::{DriverFound, HostDefaults},
    limits::{self, SpecError, WARMUP_NS, instead},
    protocol::{Machine, Protocol, Value, driver_name},
    toml_table::{At, Entry, FieldError, Table},
};

/// An arm as the file defines it.
pub(super) struct Arm {
    spec: ArmSpec,
    at: usize,
    places: BTreeMap<&'static str, usize>,
    /// Levels in which it runs, by the index of their factor; it does not run in other cells. Empty for all cells.
    only: Vec<(usize, Vec<Value>)>,
    /// Whether the arm receives the cell's number of workers, or the file itself says how many it runs with. An arm
    /// with an unknown number would keep that number and still be shown with another one in every cell.
    is_told_workers: bool,
}

/// The factor that a command may leave out.
const WORKERS: &str = "workers";

/// An arm by its name and its driver.
pub(super) struct OfDriver {
    name: String,
    driver: Option<String>,
}

/// Places of a file's arms and of their keys.
pub(super) struct Places {
    all: Vec<(String, usize, BTreeMap<&'static str, usize>)>,
    /// Arms that run in no cell.
    idle: Vec<String>,
}

impl Places {
    /// Place at which to show an error about an arm: its key, or else the arm.
    pub(super) fn of(&self, error: &SpecError) -> Option<usize> {
        let name = error.arm.as_ref()?;
        let (_, at, keys) = self.all.iter().find(|(own, _, _)| own == name)?;
        let key = error.key.strip_prefix("arm.").and_then(|key| keys.get(key));
        Some(*key.unwrap_or(at))
    }
}

/// Names and drivers of arms that another list replaces. An arm that became the command of a build has its driver
/// among the words.
pub(super) fn of_drivers(tables: Vec<Table<'_>>) -> Result<Vec<OfDriver>, FieldError> {
    let one = |mut arm: Table<'_>| {
        let name = arm.required("name", Entry::text)?;
        let words = arm.take("command").and_then(|command| command.words().ok()).unwrap_or_default();
        let of_build = words.iter().skip_while(|word| *word != "--driver").nth(1).cloned();
        let driver = arm.read("driver", Entry::text)?.or(of_build);
        Ok(OfDriver { name, driver: driver.map(|driver| driver_name(&driver).to_owned()) })
    };
    tables.into_iter().map(one).collect()
}

/// Reads the arms of a file.
pub(super) fn read(
    table: &mut Table<'_>,
    protocol: &'static dyn Protocol,
    machine: Machine<'_>,
) -> Result<Vec<Arm>, FieldError> {
    let options = |table: &mut Table<'_>| {
        if protocol.generator().is_some() { table.read("load_options", Entry::options) } else { Ok(None) }
    };
    let load_options: BTreeMap<String, String> = options(table)?.unwrap_or_default();
    let mut arms: Vec<Arm> = Vec::new();
    for mut arm in table.tables("arm")? {
        let at = arm.at();
        let name = arm.required("name", |entry| name(entry, &arms))?;
        let own_options = options(&mut arm)?;
        let only = arm.read("where", |entry| only(entry, protocol, machine))?.unwrap_or_default();
        let baseline = arm.read("baseline", Entry::text)?;
        let is_placebo = arm.read("placebo", Entry::flag)?.unwrap_or(false);
        let has_load = protocol.generator().is_some();
        let warmup_ns = if has_load { arm.read("warmup", warmup)?.unwrap_or(0) } else { 0 };
        let subject = protocol.subject(&mut arm)?;
        let start = arm_start::read(&mut arm, &subject)?;
        let places = arm.places();
        arm.finish(|_| None)?;
        let load_options = own_options.unwrap_or_else(|| load_options.clone());
        let names_workers = |(factor, _): &(usize, Vec<Value>)| protocol.factors()[*factor].key == WORKERS;
        let is_told_workers = subject.is_told_workers() || only.iter().any(names_workers);
        let spec = ArmSpec { name, subject, load_options, baseline, is_placebo, warmup_ns, start };
        arms.push(Arm { spec, at, places, only, is_told_workers });
    }
    Ok(arms)
}

/// A name that no earlier arm has.
fn name(entry: Entry<'_>, earlier: &[Arm]) -> Result<String, FieldError> {
    let at = entry.at;
    let name = entry.text()?;
    limits::name("arm.name", &name).at(at)?;
    if earlier.iter().any(|arm| arm.spec.name == name) {
        return Err(FieldError::new(at, "arm.name", format!("two arms are named {name:?}")));
    }
    Ok(name)
}

/// How long an arm is loaded before it is timed.
fn warmup(entry: Entry<'_>) -> Result<u64, FieldError> {
    let long = entry.wrong("it must be at most 1min".to_owned());
    entry.length().and_then(|ns| if WARMUP_NS.contains(&ns) { Ok(ns) } else { Err(long) })
}

fn only(
    entry: Entry<'_>,
    protocol: &dyn Protocol,
    machine: Machine<'_>,
) -> Result<Vec<(usize, Vec<Value>)>, FieldError> {
    let mut table = entry.table()?;
    let mut only = Vec::new();
    for (index, factor) in protocol.factors().iter().enumerate() {
        let Some(entry) = table.take(factor.key) else { continue };
        let mut levels = Vec::new();
        for entry in entry.one_or_many()? {
            levels.extend(factor.read(entry, machine)?);
        }
        only.push((index, levels));
    }
    table.finish(|key| elsewhere(key, protocol))?;
    Ok(only)
}

impl Arm {
    fn runs_in(&self, draft: &Draft) -> bool {
        let is_asked = draft.arms.is_empty() || draft.arms.iter().any(|(_, name)| *name == self.spec.name);
        let is_there = |(factor, levels): &(usize, Vec<Value>)| {
            draft.shape[*factor].as_ref().is_some_and(|level| levels.contains(level))
        };
        is_asked && self.only.iter().all(is_there)
    }

    /// Fewest workers of the cells in which it may run: an arm with an unknown number of workers runs only in these
    /// cells.
    fn workers_fewest(&self, drafts: &[Draft]) -> Option<u32> {
        let own = drafts.iter().filter(|draft| !self.is_told_workers && self.runs_in(draft));
        own.map(|draft| draft.spec.workers).min()
    }

    /// The error if the primary comparison has more workers than the arm can receive.
    fn is_not_told(&self, workers: u32, fewest: u32) -> FieldError {
        if self.spec.running().is_some() {
            let message = format!(
                "it runs already, with as many workers as it has, so the arm runs in the cells with {fewest} alone, and \
                 the primary comparison has {workers}; write `where = {{ workers = {workers} }}`, or choose with --levels"
            );
            return FieldError {
                at: self.at,
                error: SpecError::new("arm.running", message).of_arm(&self.spec.name),
            };
        }
        let message = format!(
            "it does not name {{workers}}, so the arm runs in the cells with {fewest} alone, and the primary comparison \
             has {workers}; name them in the command, or write `where = {{ workers = {workers} }}`"
        );
        let at = self.places.get("command").copied().unwrap_or(self.at);
        FieldError { at, error: SpecError::new("arm.command", message).of_arm(&self.spec.name) }
    }

    /// Whether a cell has more workers than an arm is known to have. A cell that names the arm is taken as it is
    /// written.
    fn is_kept_out(&self, draft: &Draft, fewest: Option<u32>) -> bool {
        draft.arms.is_empty() && fewest.is_some_and(|fewest| draft.spec.workers > fewest)
    }
}

/// Assigns arms to cells: each cell has the arms that run in it, and they take turns if they can.
pub(super) fn cast(arms: Vec<Arm>, drafts: Drafts, spec: &mut StudySpec) -> Result<Places, FieldError> {
    let names: Vec<&str> = arms.iter().map(|arm| arm.spec.name.as_str()).collect();
    let is_idle = |arm: &&Arm| drafts.cells.iter().all(|draft| !arm.runs_in(draft));
    let idle = arms.iter().filter(is_idle).map(|arm| arm.spec.name.clone()).collect();
    let fewest: Vec<Option<u32>> = arms.iter().map(|arm| arm.workers_fewest(&drafts.cells)).collect();
    let mut cells: Vec<(Draft, Vec<String>)> = Vec::new();
    for draft in drafts.cells {
        if let Some((at, unknown)) = draft.arms.iter().find(|(_, name)| !names.contains(&name.as_str())) {
            let message = format!("there is no arm {unknown:?}; {}", instead(unknown, &names));
            return Err(FieldError::new(*at, "cell.arms", message));
        }
        let beside: Vec<&str> = spec.neighbours.iter().map(|it| it.name.as_str()).collect();
        if let Some((at, unknown)) =
            draft.neighbours.iter().find(|(_, name)| !beside.contains(&name.as_str()))
        {
            let message = match beside.is_empty() {
                true => format!("there is no neighbour {unknown:?}; write a [[neighbour]]"),
                false => format!("there is no neighbour {unknown:?}; {}", instead(unknown, &beside)),
            };
            return Err(FieldError::new(*at, "cell.neighbours", message));
        }
        let may_run = arms.iter().zip(&fewest).filter(|(arm, _)| arm.runs_in(&draft));
        let (out, own): (Vec<_>, Vec<_>) =
            may_run.partition(|(arm, fewest)| arm.is_kept_out(&draft, **fewest));
        let has_baseline = out.iter().all(|(arm, _)| arm.spec.name != names[0]);
        if let Some((arm, fewest)) = out.first()
            && (own.len() < 2 || !has_baseline)
        {
            // The comparison is with arms that have fewer workers, in other cells.
            if draft.spec.role == CellRole::Primary {
                return Err(arm.is_not_told(draft.spec.workers, fewest.unwrap_or(1)));
            }
            continue;
        }
        let own: Vec<String> = own.iter().map(|(arm, _)| arm.spec.name.clone()).collect();
        // A combination with nothing to compare was not requested explicitly.
        if own.len() > 1 || !draft.is_combined || arms.len() < 2 {
            cells.push((draft, own));
        }
    }
    spec.arms = arms.iter().map(|arm| arm.spec.clone()).collect();
    spec.cells = cells.iter().map(|(draft, own)| with_arms(&draft.spec, own, arms.len())).collect();
    for (index, (draft, _)) in cells.iter().enumerate().filter(|(_, (draft, _))| draft.round_plan.alternate) {
        take_turns(spec, index, draft)?;
    }
    alternation::note_whole_trials(spec);
    if let (Some((at, key)), Some(cell)) = (drafts.rounds_at, spec.cells.first())
        && spec.cells.iter().all(|cell| cell.alternation.is_none())
    {
        let [obstacle, ..] = alternation::obstacle(spec, cell).unwrap_or(NoTurns::Asked).words();
        let message = format!("no arms take turns ({obstacle}); give `blocks` and a `window`");
        return Err(FieldError::new(at, key, message));
    }
    if let Some((at, key)) = drafts.blocks_at
        && spec.cells.iter().all(|cell| cell.alternation.is_some())
    {
        let rounds = key.replace("blocks", "rounds");
        let message = format!("the arms of every cell take turns; give `{rounds}`, or `alternate = false`");
        return Err(FieldError::new(at, key, message));
    }
    Ok(Places { all: arms.into_iter().map(|arm| (arm.spec.name, arm.at, arm.places)).collect(), idle })
}

fn with_arms(cell: &CellSpec, own: &[String], all: usize) -> CellSpec {
    let arms = if own.len() == all { Vec::new() } else { own.to_vec() };
    CellSpec { arms, ..cell.clone() }
}

fn take_turns(spec: &mut StudySpec, index: usize, draft: &Draft) -> Result<(), FieldError> {
    let Some(mut alternation) = alternation::suited(spec, &spec.cells[index]) else {
        let Some(at) = draft.round_plan.turns_at else { return Ok(()) };
        let cell = &spec.cells[index];
        let obstacle = alternation::obstacle(spec, cell).map_or("", |why| why.words()[0]);
        let message = format!("the arms of {} cannot take turns: {obstacle}; give `blocks`", cell.id);
        return Err(FieldError::new(at, "cell.rounds", message));
    };
    if let Some(at) = draft.round_plan.blocks_at {
        let message = format!("the arms of {} take turns; give `rounds`", spec.cells[index].id);
        return Err(FieldError::new(at, "cell.blocks", message));
    }
    if let Some(slice_ns) = draft.round_plan.slice_ns {
        alternation.slice_ns = slice_ns;
        let cell_id = spec.cells[index].id.clone();
        spec.slices_given.push(cell_id);
    }
    alternation.permutations = draft.round_plan.permutations.unwrap_or(alternation.permutations);
    alternation.evidence = draft.round_plan.evidence;
    spec.cells[index].alternation = Some(alternation);
    spec.cells[index].blocks = draft.round_plan.rounds;
    Ok(())
}

/// Arms that this machine cannot run: those that others replace, those of a driver that does not run, and those that
/// are in no cell because none of their drivers runs. Only the last are not arms of the study.
pub(super) fn missing(
    spec: &mut StudySpec,
    places: &Places,
    replaced: &[OfDriver],
    left_out: &[String],
    host_defaults: &HostDefaults,
) -> Result<Vec<MissingArm>, FieldError> {
    let missing_arm = |name: &str, found: &DriverFound| MissingArm {
        name: name.to_owned(),
        reason: found.detail.clone(),
        unlock: found.unlock.clone(),
    };
    let refused = |driver: Option<&str>| host_defaults.refused(driver?);
    let mut missing: Vec<MissingArm> = replaced
        .iter()
        .filter(|arm| spec.arms.iter().all(|own| own.name != arm.name))
        .filter_map(|arm| Some(missing_arm(&arm.name, refused(arm.driver.as_deref())?)))
        .collect();
    let of_driver =
        spec.arms.iter().filter_map(|arm| Some(missing_arm(&arm.name, refused(arm.subject.driver())?)));
    missing.extend(of_driver.collect::<Vec<_>>());
    let left_out = left_out.iter().find_map(|driver| host_defaults.refused(driver));
    for name in &places.idle {
        let Some(found) = left_out else {
            let message = format!("{name} runs in no cell; look at its `where` and at the arms of the cells");
            let error = SpecError::new("arm.where", message).of_arm(name);
            return Err(FieldError { at: places.of(&error).unwrap_or(0), error });
        };
        missing.push(missing_arm(name, found));
        spec.arms.retain(|arm| arm.name != *name);
    }
    Ok(missing)
}
