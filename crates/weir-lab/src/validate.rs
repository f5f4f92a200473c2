//! Checks the conditions between the parts of a study. Built-in studies, a user's studies and specs from any other
//! source are all checked here.

use std::collections::BTreeSet;

use weir_record::{
    metric_rows::{METRICS, Part},
    spec::{ArmSpec, CellRole, CellSpec, LoadMode, NeighbourSpec, StudySpec},
};
use weir_stats::{
    decide::{ALPHA, UNITS_MIN},
    student,
};

use crate::{
    alternation,
    limits::{
        self, ARMS_MAX, BYTES_IN_FLIGHT_MAX, CELLS_MAX, EQUIVALENCE_MARGIN, Level, PUBLISHED_MAX,
        RATE_PER_SECOND, SHARE, SpecError, TIME_CAP_NS, WARMUP_NS, WINDOW_NS, instead, level, within,
    },
    protocol,
};

/// Largest difference, in standard deviations of a round or block, that a claim may need to be found. A study that
/// needs a larger one cannot reach a verdict on any machine.
const DEVIATIONS_MAX: f64 = 3.0;

/// Checks a whole study.
pub fn study(spec: &StudySpec) -> Result<(), SpecError> {
    limits::name("name", &spec.name)?;
    within("equivalence_margin", spec.equivalence_margin, &EQUIVALENCE_MARGIN)?;
    if !TIME_CAP_NS.contains(&spec.time_cap_ns) {
        return Err(SpecError::new("time_cap", "it must be from 1s to 24h".to_owned()));
    }
    arms(spec)?;
    if spec.cells.is_empty() || spec.cells.len() > CELLS_MAX {
        let message = format!("the study has {} cells; it must have from 1 to {CELLS_MAX}", spec.cells.len());
        return Err(SpecError::new("factors", message));
    }
    has_cell(spec)?;
    let mut ids = BTreeSet::new();
    for cell in &spec.cells {
        check_cell(cell)?;
        cell_arms(spec, cell)?;
        neighbours(spec, cell)?;
        turns(spec, cell)?;
        if !ids.insert(&cell.id) {
            return Err(SpecError::new("factors", format!("the cell {} occurs twice", cell.id)));
        }
    }
    let primaries = spec.cells.iter().filter(|cell| cell.role == CellRole::Primary).count();
    if primaries != 1 {
        return Err(SpecError::new(
            "primary",
            format!("{primaries} cells are the primary; exactly one must be"),
        ));
    }
    protocol::check(spec)?;
    decidable(spec)?;
    published(spec)
}

/// Checks that a neighbour is beside the servers of some cell.
fn has_cell(spec: &StudySpec) -> Result<(), SpecError> {
    let is_idle = |name: &str| spec.cells.iter().all(|cell| cell.neighbours.iter().all(|own| own != name));
    match spec.neighbours.iter().find(|it| is_idle(&it.name)) {
        Some(NeighbourSpec { name, .. }) => {
            let message =
                format!("no cell has the neighbour {name:?}; name it in the `neighbours` of a [[cell]]");
            Err(SpecError::new("neighbour", message))
        }
        None => Ok(()),
    }
}

/// Checks that a cell's neighbours are the study's, each once, and have a server to be beside.
fn neighbours(spec: &StudySpec, cell: &CellSpec) -> Result<(), SpecError> {
    let wrong = |message: String| Err(SpecError::new("cell.neighbours", message));
    let known: BTreeSet<&str> = spec.neighbours.iter().map(|it| it.name.as_str()).collect();
    let own: BTreeSet<&str> = cell.neighbours.iter().map(String::as_str).collect();
    match own.difference(&known).next() {
        Some(unknown) => wrong(format!("{} has a neighbour {unknown:?} that is not there", cell.id)),
        None if own.len() < cell.neighbours.len() => wrong(format!("{} has a neighbour twice", cell.id)),
        None if !own.is_empty() && cell.storage.is_some() => {
            wrong("a storage job has no server to be beside; it has `background_depth`".to_owned())
        }
        None => Ok(()),
    }
}

/// Checks that arms take turns only where they can.
fn turns(spec: &StudySpec, cell: &CellSpec) -> Result<(), SpecError> {
    let Some(alternation) = &cell.alternation else { return Ok(()) };
    if let Some(obstacle) = alternation::obstacle(spec, cell) {
        let [why, ..] = obstacle.words();
        let message = format!("the arms of {} cannot take turns: {why}", cell.id);
        return Err(SpecError::new("alternate", message));
    }
    limits::slice_ns(alternation.slice_ns)?;
    if let Some(evidence) = alternation.evidence {
        limits::evidence_slice_ns(evidence.slice_ns)?;
        level(Level::EvidenceRounds, i64::from(evidence.rounds))?;
        level(Level::EvidencePairs, i64::from(evidence.pairs))?;
    }
    level(Level::Permutations, i64::from(alternation.permutations)).map(|_| ())
}

/// Number of claims of a study, which all share Holm's correction: the figures of each arm but the baseline in each
/// cell with a claim, and the contrasts.
pub fn claims(spec: &StudySpec) -> usize {
    let of_cell = |cell: &CellSpec| {
        let arms = spec.arms.iter().skip(1).filter(|arm| cell.has_arm(&arm.name)).count();
        arms * METRICS.iter().filter(|row| (row.part)(cell) == Part::Claim).count()
    };
    let of_cells = spec.cells.iter().filter(|cell| cell.role != CellRole::Exploratory).map(of_cell);
    of_cells.sum::<usize>() + spec.contrasts.len()
}

/// Difference, in standard deviations of a unit, at which the first of `claims` claims is found half of the time:
/// `t(1 - alpha / 2m, n - 1) / sqrt(n)`.
pub fn deviations_found(units: u32, claims: usize) -> Option<f64> {
    let tail = ALPHA / (2.0 * claims.max(1) as f64);
    let critical = student::quantile(1.0 - tail, units.checked_sub(1).filter(|it| *it > 0)?)?;
    Some(critical / f64::from(units).sqrt())
}

/// Checks that every claim has enough units to be decided, corrected for all other claims.
fn decidable(spec: &StudySpec) -> Result<(), SpecError> {
    let claims = claims(spec);
    let decides = |units: u32| {
        units as usize >= UNITS_MIN
            && deviations_found(units, claims).is_some_and(|found| found <= DEVIATIONS_MAX)
    };
    let is_contrasted = |cell: &CellSpec| {
        spec.contrasts.iter().any(|it| it.of.contains(&cell.id) || it.to.contains(&cell.id))
    };
    let is_claimed = |cell: &&CellSpec| cell.role != CellRole::Exploratory || is_contrasted(cell);
    let of_claims = spec.cells.iter().filter(is_claimed);
    let Some(cell) = of_claims.into_iter().find(|cell| !decides(cell.blocks)) else { return Ok(()) };
    let unit = if cell.alternation.is_some() { "rounds" } else { "blocks" };
    let range = Level::Blocks.range();
    let enough = range.clone().find(|units| decides(*units)).unwrap_or(*range.end());
    let message = format!(
        "{} claims something and has {} {unit}; with {claims} claims in the study it needs {enough} or more",
        cell.id, cell.blocks
    );
    Err(SpecError::new(unit, message))
}

/// Checks that the arms of a cell are arms of the study, that the baseline is one of them, and that there is another.
fn cell_arms(spec: &StudySpec, cell: &CellSpec) -> Result<(), SpecError> {
    let wrong = |message: String| Err(SpecError::new("cell.arms", message));
    if let Some(unknown) = cell.arms.iter().find(|name| spec.arms.iter().all(|arm| arm.name != **name)) {
        return wrong(format!("{} names an arm {unknown:?} that is not there", cell.id));
    }
    let own = spec.arms.iter().filter(|arm| cell.has_arm(&arm.name)).count();
    if cell.is_series() {
        return Ok(());
    }
    match spec.arms.first() {
        Some(baseline) if !cell.has_arm(&baseline.name) => {
            wrong(format!("{} lacks the baseline {:?}", cell.id, baseline.name))
        }
        _ if own < 2 => wrong(format!("{} has the baseline alone", cell.id)),
        _ => Ok(()),
    }
}

fn published(spec: &StudySpec) -> Result<(), SpecError> {
    let wrong = |message: String| Err(SpecError::new("published", message));
    if spec.published.len() > PUBLISHED_MAX {
        return wrong(format!("{} figures; at most {PUBLISHED_MAX} are allowed", spec.published.len()));
    }
    for claim in &spec.published {
        if spec.cells.iter().all(|cell| cell.id != claim.cell_id) {
            return wrong(format!("{} stands beside a cell {:?} that is not there", claim.id, claim.cell_id));
        }
        if claim.ratio.is_some_and(|ratio| !ratio.is_finite() || ratio <= 0.0) {
            return wrong(format!("{} has a ratio that is none", claim.id));
        }
    }
    Ok(())
}

fn arms(spec: &StudySpec) -> Result<(), SpecError> {
    if !(2..=ARMS_MAX).contains(&spec.arms.len()) {
        let message = format!(
            "a study needs a baseline and from 1 to {} other arms; this one has {} in all",
            ARMS_MAX - 1,
            spec.arms.len()
        );
        return Err(SpecError::new("arm", message));
    }
    let mut names = BTreeSet::new();
    for arm in &spec.arms {
        limits::name("arm.name", &arm.name)?;
        if !names.insert(&arm.name) {
            return Err(SpecError::new("arm.name", format!("two arms are named {:?}", arm.name)));
        }
    }
    spec.arms.iter().try_for_each(|arm| own_baseline(spec, arm))
}

/// Checks that the baseline an arm names is another arm and runs in every cell of the arm, and that a placebo has a
/// baseline.
fn own_baseline(spec: &StudySpec, arm: &ArmSpec) -> Result<(), SpecError> {
    let ArmSpec { name, .. } = arm;
    let wrong = |key: &str, message: String| Err(SpecError::new(key, message).of_arm(name));
    let Some(baseline) = &arm.baseline else {
        if arm.is_placebo {
            let message = "say with `baseline` which arm it is built again from".to_owned();
            return wrong("arm.placebo", message);
        }
        return Ok(());
    };
    let others: Vec<&str> = spec.arms.iter().map(|it| it.name.as_str()).filter(|it| it != name).collect();
    if *name == spec.arms[0].name {
        return wrong("arm.baseline", format!("{name} is the first arm, which is the baseline itself"));
    }
    if !others.contains(&baseline.as_str()) {
        let message = format!("there is no other arm {baseline:?}; {}", instead(baseline, &others));
        return wrong("arm.baseline", message);
    }
    let is_alone = |cell: &&CellSpec| cell.has_arm(name) && !cell.has_arm(baseline);
    match spec.cells.iter().find(is_alone) {
        Some(cell) => wrong("arm.baseline", format!("{name} runs in {} without {baseline}", cell.id)),
        None => Ok(()),
    }
}

fn check_cell(cell: &CellSpec) -> Result<(), SpecError> {
    protocol::of(cell).check_cell(cell)?;
    for (which, value) in [
        (Level::Connections, cell.connections),
        (Level::Depth, cell.depth),
        (Level::MessageBytes, cell.message_bytes),
        (Level::Workers, cell.workers),
        (Level::LoadWorkers, cell.load_workers),
        (Level::IdleConnections, cell.idle_connections),
    ] {
        level(which, i64::from(value))?;
    }
    if !cell.is_series() {
        level(Level::Blocks, i64::from(cell.blocks))?;
    }
    if cell.load_workers > cell.connections {
        let message = format!(
            "{} workers of the generator have {} connections to share; each needs one",
            cell.load_workers, cell.connections
        );
        return Err(SpecError::new("load_workers", message));
    }
    let bytes = u64::from(cell.connections) * u64::from(cell.depth) * u64::from(cell.message_bytes);
    if bytes > BYTES_IN_FLIGHT_MAX {
        let message = format!(
            "{} has {} MiB in flight (connections x depth x message_bytes); at most {} MiB are allowed",
            cell.id,
            bytes >> 20,
            BYTES_IN_FLIGHT_MAX >> 20
        );
        return Err(SpecError::new("factors", message));
    }
    if !WINDOW_NS.contains(&cell.window_ns) {
        return Err(SpecError::new("window", "it must be from 100ms to 10min".to_owned()));
    }
    if !WARMUP_NS.contains(&cell.warmup_ns_max) {
        return Err(SpecError::new("warmup_max", "it must be from 0s to 1min".to_owned()));
    }
    match cell.load {
        LoadMode::Closed => Ok(()),
        LoadMode::Open { rate_per_second, .. } => within("latency.rate", rate_per_second, &RATE_PER_SECOND),
        LoadMode::OpenShare { share, .. } => within("latency.share", share, &SHARE),
    }
}

#[cfg(test)]
mod tests {
    use weir_judge::sample;

    use super::*;

    #[test]
    fn more_claims_need_more_units() {
        let found = |units, claims| deviations_found(units, claims).expect("there are units");
        assert!(found(6, 1) < 2.0 && found(6, 20) > 3.0, "{} {}", found(6, 1), found(6, 20));
        assert!(found(12, 32) < 2.0);
        assert_eq!(deviations_found(1, 1), None);
    }

    #[test]
    fn a_study_that_could_never_decide_its_claims_is_told_how_many_units_would() {
        let mut spec = sample::study(&["epoll", "uring"], 5, 1);
        let few = study(&spec).expect_err("five decide nothing").to_string();
        assert!(few.starts_with("blocks: ") && few.ends_with("it needs 6 or more"), "{few}");
        spec.cells[0].blocks = 6;
        assert_eq!((study(&spec), claims(&spec)), (Ok(()), 2));
        let others = (0..20).map(|connections| {
            let mut cell = CellSpec {
                connections: 1_000 + connections,
                role: CellRole::Confirmatory,
                ..spec.cells[0].clone()
            };
            cell.id = protocol::cell_id(&cell);
            cell
        });
        let others: Vec<CellSpec> = others.collect();
        spec.cells.extend(others);
        let many = study(&spec).expect_err("42 claims share the correction").to_string();
        assert!(
            many.contains("with 42 claims in the study it needs 8 or more")
                || many.contains("needs 7 or more"),
            "{many}"
        );
    }
}
