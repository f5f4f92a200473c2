//! The question and programs of a run, as far as they decide whether its effects answer the same question as
//! another's.

use std::collections::HashMap;

use serde_json::Value;
use weir_record::{
    machine::{FactDifference, record_differences},
    spec::{Alternation, ArmSpec, CellRole, CellSpec, StudySpec, Subject},
    study::StudyResult,
};

/// The question of a run.
pub(super) struct Asked {
    /// Version and build of Weir, which is server, generator and laboratory.
    weir: Value,
    cells: HashMap<String, Value>,
    arms: HashMap<String, Value>,
}

impl Asked {
    pub(super) fn of(result: &StudyResult) -> Self {
        let (spec, machine) = (&result.spec, &result.fingerprint);
        let weir = serde_json::json!({ "weir_version": machine.weir_version, "build": machine.build });
        let arm = |arm: &ArmSpec| {
            let ran_before = machine.running.get(&arm.name).map(|found| found.program_hash.clone());
            let program = arm.subject.program().and_then(|name| {
                let name = name.rsplit('/').next()?;
                let is_own = |path: &String| path.rsplit('/').next() == Some(name);
                // Arms may start files with the same name in several folders. The contents of each are then compared.
                let own =
                    machine.programs.iter().filter(|(path, _)| is_own(path)).map(|(_, hash)| hash.as_str());
                let own = own.collect::<Vec<_>>().join(", ");
                (!own.is_empty()).then_some(own)
            });
            let value = serde_json::json!({ "spec": lasting(arm), "program": ran_before.or(program) });
            (arm.name.clone(), value)
        };
        let cell =
            |cell: &CellSpec| (cell.id.clone(), serde_json::to_value(plain(spec, cell)).unwrap_or_default());
        Self { weir, cells: spec.cells.iter().map(cell).collect(), arms: spec.arms.iter().map(arm).collect() }
    }

    /// The question about one arm and one baseline in one cell.
    pub(super) fn of_row<'a>(&'a self, cell_id: &'a str, arm: &'a str, baseline: &'a str) -> Row<'a> {
        Row {
            parts: [
                ("weir", Some(&self.weir)),
                (cell_id, self.cells.get(cell_id)),
                (arm, self.arms.get(arm)),
                (baseline, self.arms.get(baseline)),
            ],
        }
    }
}

/// A part of a question, by name, with its value.
type Part<'a> = (&'a str, Option<&'a Value>);

/// The question of one effect, by the names of its parts.
#[derive(Clone, PartialEq)]
pub(super) struct Row<'a> {
    parts: [Part<'a>; 4],
}

impl Row<'_> {
    /// The differences from another run's question.
    pub(super) fn differences(&self, other: &Row<'_>) -> Vec<FactDifference> {
        let pairs = self.parts.iter().zip(&other.parts).filter(|(own, its)| own.1 != its.1);
        let named = |(own, its): (&Part<'_>, &Part<'_>)| {
            let prefix = own.0.to_owned();
            let found = record_differences(&own.1, &its.1).into_iter();
            found.map(move |it| FactDifference { name: format!("{prefix}.{}", it.name), ..it })
        };
        pairs.flat_map(named).collect()
    }
}

/// An arm without a process number: the same server has another one on another day.
fn lasting(arm: &ArmSpec) -> ArmSpec {
    let mut arm = arm.clone();
    if let Subject::Running(server) = &mut arm.subject {
        server.pid = None;
    }
    arm
}

/// A cell without what may differ between runs of one question: the number of rounds, the claim, the machine's CPUs,
/// the rate found for a share, and the slice length chosen by the laboratory.
fn plain(spec: &StudySpec, cell: &CellSpec) -> CellSpec {
    let is_given = spec.slices_given.contains(&cell.id);
    let turns = |turns: Alternation| Alternation {
        slice_ns: if is_given { turns.slice_ns } else { 0 },
        permutations: 0,
        evidence: None,
        ..turns
    };
    CellSpec {
        role: CellRole::Exploratory,
        blocks: 0,
        arms: Vec::new(),
        load_cpus: Vec::new(),
        server_cpus: Vec::new(),
        protocol: cell.protocol().to_owned(),
        load: cell.load.without_rate(),
        alternation: cell.alternation.map(turns),
        ..cell.clone()
    }
}

/// The most frequent value; of several, the one that occurs last.
pub(super) fn most<T: PartialEq>(all: impl Iterator<Item = T>) -> Option<T> {
    let mut counted: Vec<(usize, usize, T)> = Vec::new();
    for (place, value) in all.enumerate() {
        match counted.iter_mut().find(|(.., own)| *own == value) {
            Some((count, last, _)) => (*count, *last) = (*count + 1, place),
            None => counted.push((1, place, value)),
        }
    }
    counted.into_iter().max_by_key(|(count, last, _)| (*count, *last)).map(|(.., value)| value)
}
