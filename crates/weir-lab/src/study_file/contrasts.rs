//! Contrasts between levels or between two cells, as a study file declares them.

use std::collections::BTreeMap;

use weir_record::{
    contrast::ContrastSpec,
    metric::{Metric, Scale},
    metric_rows::Part,
    spec::{CellSpec, LoadMode},
};

use super::{
    comparisons::{Chosen, Known, metric},
    fraction,
};
use crate::{
    limits::{CONTRASTS_MAX, EQUIVALENCE_MARGIN, SHARE},
    protocol,
    toml_table::{FieldError, Table},
};

/// Reads the tables. A contrast of arms or cells that this machine lacks is left out.
pub(super) fn read(tables: Vec<Table<'_>>, known: &Known<'_>) -> Result<Vec<ContrastSpec>, FieldError> {
    let mut all = Vec::new();
    for table in tables {
        let at = table.at();
        all.extend(one(table, known)?);
        if all.len() > CONTRASTS_MAX {
            let message = format!("more than {CONTRASTS_MAX} contrasts, each arm counted");
            return Err(FieldError::new(at, "contrast", message));
        }
    }
    Ok(all)
}

fn one(mut table: Table<'_>, known: &Known<'_>) -> Result<Vec<ContrastSpec>, FieldError> {
    let of = table.required("of", |entry| known.side(entry))?;
    let to = table.required("to", |entry| known.side(entry))?;
    let given = table.read("metric", |entry| Ok((entry.at, metric(entry)?)))?;
    let metric_key = table.key("metric");
    let (metric_at, metric) = given.unwrap_or((table.at(), Metric::ServerCpuPerMessage));
    let equivalence_margin =
        table.read("equivalence_margin", |entry| fraction(entry, &EQUIVALENCE_MARGIN))?;
    let share = table.read("share", |entry| Ok((entry.at, fraction(entry, &SHARE)?)))?;
    let share_key = table.key("share");
    table.finish(|_| None)?;
    let is_of_cells = of.cell.is_some() && to.cell.is_some();
    if let Some((at, _)) = share.filter(|_| is_of_cells) {
        return Err(FieldError::new(
            at,
            &share_key,
            "a cell's identifier has its load; give either".to_owned(),
        ));
    }
    if !is_of_cells && (of.levels.is_empty() || to.levels.is_empty()) {
        let message =
            "both sides name levels: of = { workers = 2 }, to = { workers = 1 }; or each names a cell";
        return Err(of.wrong(message.to_owned()));
    }
    if !to.arms.is_empty() {
        return Err(to.wrong("the arm is named in `of`; both sides are about its ratio".to_owned()));
    }
    let share = share.map(|(_, share)| share);
    let (above, below) = if is_of_cells { cells(known, &of, &to)? } else { sides(known, (&of, &to), share)? };
    let is_compared = |cell: &&CellSpec| (metric.row().part)(cell) == Part::Claim;
    if metric.row().scale != Scale::Ratio || !above.iter().chain(&below).all(is_compared) {
        let message = format!("{} is no claim that is a ratio in these cells", metric.row().key);
        return Err(FieldError::new(metric_at, &metric_key, message));
    }
    let ids = |cells: &[&CellSpec]| cells.iter().map(|cell| cell.id.clone()).collect::<Vec<_>>();
    let others = known.spec.arms.iter().skip(1);
    let arms = others.filter(|arm| of.arms.is_empty() || of.arms.contains(&arm.name));
    let runs = |cell: &&CellSpec, arm: &str| cell.has_arm(arm);
    let arms = arms.filter(|arm| above.iter().chain(&below).all(|cell| runs(cell, &arm.name)));
    let contrast = |arm: &weir_record::spec::ArmSpec| ContrastSpec {
        arm: arm.name.clone(),
        baseline: known.spec.baseline_of(arm).to_owned(),
        metric,
        of: ids(&above),
        to: ids(&below),
        equivalence_margin,
    };
    let is_absent = above.is_empty() || below.is_empty();
    let found: Vec<ContrastSpec> = if is_absent { Vec::new() } else { arms.map(contrast).collect() };
    let is_for_others = known.lacks_cells || of.arms.iter().any(|arm| known.absent.contains(&arm.as_str()));
    if found.is_empty() && !is_for_others {
        let message = match is_of_cells {
            true => "no arm beside the baseline runs in both cells",
            false => "no arm beside the baseline runs in cells that have these levels and all others alike",
        };
        return Err(of.wrong(message.to_owned()));
    }
    Ok(found)
}

/// The cell of each side, with any load.
fn cells<'k>(
    known: &'k Known<'_>,
    of: &Chosen,
    to: &Chosen,
) -> Result<(Vec<&'k CellSpec>, Vec<&'k CellSpec>), FieldError> {
    if of.cell == to.cell {
        return Err(to.wrong("both sides are the same cell".to_owned()));
    }
    Ok((known.cells(of), known.cells(to)))
}

/// Cells with the levels of each side, for every combination of the other levels that both sides have completely: the
/// cells at this share of the smallest capacity, or else those in closed loop.
fn sides<'k>(
    known: &'k Known<'_>,
    (of, to): (&Chosen, &Chosen),
    share: Option<f64>,
) -> Result<(Vec<&'k CellSpec>, Vec<&'k CellSpec>), FieldError> {
    let named = || of.levels.iter().chain(&to.levels);
    // The identifier that a cell would have with one level of each factor that is named.
    let rest = |cell: &CellSpec| {
        let mut bare = cell.clone();
        for (factor, levels) in named() {
            if let Some(level) = levels.first() {
                (factor.set)(&mut bare, level);
            }
        }
        bare.load = cell.load;
        protocol::cell_id(&bare)
    };
    let is_loaded_so = |cell: &&CellSpec| match (share, cell.load) {
        (None, LoadMode::Closed) => true,
        (Some(asked), LoadMode::OpenShare { share, .. }) => share.total_cmp(&asked).is_eq(),
        _ => false,
    };
    let by_rest = |side: &Chosen| {
        let mut groups: BTreeMap<String, Vec<&'k CellSpec>> = BTreeMap::new();
        for cell in known.cells(side).into_iter().filter(is_loaded_so) {
            groups.entry(rest(cell)).or_default().push(cell);
        }
        let whole = groups.values().map(Vec::len).max().unwrap_or(0);
        groups.retain(|_, cells| cells.len() == whole);
        groups
    };
    let (mut above, mut below) = (by_rest(of), by_rest(to));
    above.retain(|rest, _| below.contains_key(rest));
    below.retain(|rest, _| above.contains_key(rest));
    let flat = |groups: BTreeMap<String, Vec<&'k CellSpec>>| groups.into_values().flatten().collect();
    let (above, below): (Vec<&CellSpec>, Vec<&CellSpec>) = (flat(above), flat(below));
    if above.iter().any(|cell| below.iter().any(|other| other.id == cell.id)) {
        return Err(to.wrong("a cell is on both sides; say levels that differ".to_owned()));
    }
    Ok((above, below))
}
